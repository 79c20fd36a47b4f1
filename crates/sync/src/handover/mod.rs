//! Work that threads hand to each other. When they write in groups: a queue whose waiters are
//! served by the holder of a lock ([`WaitQueue`]), and numbers that are published in order by
//! whichever thread can ([`InOrder`]). When they work in the background: bodies for threads that
//! wait ([`IdleThreads`]).
//!
//! All are models for loom as well (`tests/loom.rs`): with `--cfg loom` they run on its atomics,
//! locks and parking.

mod facade;
mod idle_threads;
mod in_order;
mod wait_queue;

pub use idle_threads::IdleThreads;
pub use in_order::InOrder;
pub use wait_queue::{WaitOutcome, WaitQueue, Waiter};
