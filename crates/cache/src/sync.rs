//! Atomics, locks and slots: the real ones, or loom's when the crate is compiled with `--cfg loom`.
//!
//! Loom runs a model in every order of its threads' steps and with every value that the memory
//! orderings let a load see; `tests/loom.rs` has the models.

#[cfg(not(loom))]
pub(crate) use esker_sync::Mutex;
#[cfg(not(loom))]
pub(crate) use esker_sync::atomic::{AtomicUsize, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use model::Mutex;

/// As loom has it.
#[cfg(loom)]
mod model {
    use esker_sync::Rank;

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
    }
}
