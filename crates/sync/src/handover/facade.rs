//! The atomics, locks and parking of the hand-overs: the real ones, or loom's with `--cfg loom`.

#[cfg(not(loom))]
pub(super) use crate::control::thread::{Thread, current, park, park_timeout, spin_loop};
#[cfg(not(loom))]
pub(super) use crate::rank::Mutex;
#[cfg(not(loom))]
pub(super) use std::sync::Arc;
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(loom)]
pub(super) use model::*;

/// As loom has it.
#[cfg(loom)]
mod model {
    use crate::Rank;
    pub(crate) use loom::sync::Arc;
    use loom::sync::MutexGuard;
    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::thread::{Thread, current, park, yield_now as spin_loop};

    /// A wait whose time is up at once.
    pub(crate) fn park_timeout(_limit: std::time::Duration) {
        loom::thread::yield_now();
    }

    const NO_PANIC: &str = "no model panics while it holds a lock";

    /// Loom's lock with the face of ours.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(_rank: Rank, value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect(NO_PANIC)
        }
    }
}
