//! Locks, atomics and threads behind one facade, with lock ranks; sizes and counters of memory.
//!
//! Every lock carries a [`Rank`]; in builds with debug assertions a thread that takes a lock whose
//! rank is not above every rank it already holds panics with both names, so a lock-order inversion
//! fails the first test that runs it and not the thousandth. `docs/locks.md` lists the ranks. Locks
//! are `parking_lot`'s: no poisoning, one byte, adaptive spin. With the feature `controlled` a
//! simulation can decide which thread runs (`control.rs`).

mod control;
pub mod handover;
pub mod memory;
mod padded;
mod point;
mod rank;

pub use arc_swap::{ArcSwap, ArcSwapOption, Guard as ArcSwapGuard};
pub use control::thread;
#[cfg(feature = "controlled")]
pub use control::{MemberHandle, Running, Schedule, on_stuck, sleep, start};
pub use padded::CachePadded;
pub use point::sync_point;
#[cfg(debug_assertions)]
pub use point::{SyncPointGuard, at_sync_point};
pub use rank::{
    Condvar, Mutex, MutexGuard, Rank, RwLock, RwLockReadGuard, RwLockWriteGuard, check_may_block,
    check_may_take_long,
};
pub use std::sync::{Arc, OnceLock, Weak, atomic};
