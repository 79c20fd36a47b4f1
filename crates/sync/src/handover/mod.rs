//! What threads hand to each other when they write in groups: a queue whose waiters are served by
//! the holder of a lock ([`WaitQueue`]), and numbers that are published in order by whichever
//! thread can ([`InOrder`]).
//!
//! Both are models for loom as well (`tests/loom.rs`): with `--cfg loom` they run on its atomics,
//! locks and parking.

mod facade;
mod in_order;
mod wait_queue;

pub use in_order::InOrder;
pub use wait_queue::{Turn, WaitQueue, Waiter};
