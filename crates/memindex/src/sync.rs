//! Atomics, the arena's lock and shared cells: the real ones, or loom's when the crate is compiled
//! with `--cfg loom`.
//!
//! Loom runs a model again and again, in every order of its threads' steps and with every value
//! that the memory orderings let a load see; `tests/loom.rs` has the models. Nodes are narrow there
//! (`ranks.rs`), so that models split them.

#[cfg(not(loom))]
pub(crate) use real::*;

#[cfg(loom)]
pub(crate) use model::*;

/// As it runs.
#[cfg(not(loom))]
mod real {
    pub(crate) use esker_sync::atomic::{
        AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use esker_sync::thread::{spin_loop, yield_now};
    pub(crate) use esker_sync::{Mutex, Rank};

    /// A place that is written before it is shared, and only read afterwards.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct Once<T>(std::cell::UnsafeCell<T>);

    impl<T: Copy> Once<T> {
        #[inline(always)]
        pub(crate) fn new(value: T) -> Self {
            Once(std::cell::UnsafeCell::new(value))
        }

        /// # Safety
        /// There is no write at the same time.
        #[inline(always)]
        pub(crate) unsafe fn get(&self) -> T {
            // SAFETY: the caller's promise.
            unsafe { *self.0.get() }
        }
    }
}

/// As loom has it.
#[cfg(loom)]
mod model {
    pub(crate) use esker_sync::Rank;
    pub(crate) use loom::sync::atomic::{
        AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::thread::yield_now;

    pub(crate) fn spin_loop() {}

    /// Loom's lock with the face of ours.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(_rank: Rank, value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }
        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0
                .lock()
                .expect("no model panics while it holds a lock")
        }
        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0
                .get_mut()
                .expect("no model panics while it holds a lock")
        }
    }

    /// Loom notices a read that is not ordered after the write.
    #[derive(Debug)]
    pub(crate) struct Once<T>(loom::cell::UnsafeCell<T>);

    impl<T: Copy> Once<T> {
        pub(crate) fn new(value: T) -> Self {
            Once(loom::cell::UnsafeCell::new(value))
        }

        /// # Safety
        /// There is no write at the same time.
        pub(crate) unsafe fn get(&self) -> T {
            // SAFETY: the caller's promise.
            self.0.with(|p| unsafe { *p })
        }
    }
}
