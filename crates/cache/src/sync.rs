//! Atomics, locks and slots: the real ones, or loom's when the crate is compiled with `--cfg loom`.
//!
//! Loom runs a model in every order of its threads' steps and with every value that the memory
//! orderings let a load see; `tests/loom.rs` has the models.

#[cfg(not(loom))]
pub(crate) use esker_sync::Mutex;
#[cfg(not(loom))]
pub(crate) use esker_sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use model::{Condvar, Mutex, Slot, SlotGuard};
#[cfg(not(loom))]
pub(crate) use real::{Condvar, Slot, SlotGuard};

/// As it runs.
#[cfg(not(loom))]
mod real {
    use esker_sync::{Arc, ArcSwapGuard, ArcSwapOption, MutexGuard};
    use std::mem::ManuallyDrop;

    /// A condition variable that takes the guard and gives it back, as loom's does.
    pub(crate) struct Condvar(esker_sync::Condvar);

    impl Condvar {
        pub(crate) const fn new() -> Self {
            Condvar(esker_sync::Condvar::new())
        }
        pub(crate) fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(&mut guard);
            guard
        }
        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    /// A place for a shared value, read without a lock. Its owner empties it before it is dropped:
    /// dropping an arc-swap looks at what every thread reads, even an empty one's, and a cache has
    /// thousands of empty slots.
    pub(crate) struct Slot<T>(ManuallyDrop<ArcSwapOption<T>>);

    /// A value of a slot that is kept in memory, without a reference of its own where possible.
    pub(crate) struct SlotGuard<T>(ArcSwapGuard<Option<Arc<T>>>);

    impl<T> std::ops::Deref for SlotGuard<T> {
        type Target = T;
        #[inline]
        fn deref(&self) -> &T {
            self.0.as_deref().expect("a guard is made of a value")
        }
    }

    impl<T> Slot<T> {
        pub(crate) fn new() -> Self {
            Slot(ManuallyDrop::new(ArcSwapOption::empty()))
        }

        /// The value, if `f` wants it.
        #[inline]
        pub(crate) fn get_if(&self, f: impl FnOnce(&T) -> bool) -> Option<Arc<T>> {
            let guard = self.0.load();
            match &*guard {
                Some(value) if f(value) => ArcSwapGuard::into_inner(guard),
                _ => None,
            }
        }

        /// Guards the value for a short look.
        #[inline]
        pub(crate) fn guard_if(&self, f: impl FnOnce(&T) -> bool) -> Option<SlotGuard<T>> {
            let guard = self.0.load();
            let wanted = guard.as_deref().is_some_and(f);
            wanted.then(|| SlotGuard(guard))
        }

        pub(crate) fn get(&self) -> Option<Arc<T>> {
            self.0.load_full()
        }

        /// Shows the value to `f`.
        pub(crate) fn view<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
            self.0.load().as_deref().map(f)
        }

        /// Puts `value` in; what was there.
        pub(crate) fn set(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
            self.0.swap(value)
        }
    }
}

/// As loom has it.
#[cfg(loom)]
mod model {
    use esker_sync::{Arc, Rank};

    const NO_PANIC: &str = "no model panics while it holds a lock";

    /// Loom's lock with the face of ours.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(_rank: Rank, value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }
        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect(NO_PANIC)
        }
    }

    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Condvar(loom::sync::Condvar::new())
        }
        pub(crate) fn wait<'a, T>(
            &self,
            guard: loom::sync::MutexGuard<'a, T>,
        ) -> loom::sync::MutexGuard<'a, T> {
            self.0.wait(guard).expect(NO_PANIC)
        }
        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    /// A place that is read and replaced at once: what arc-swap promises. Its own protocol is
    /// tested where it is made.
    pub(crate) struct Slot<T>(loom::sync::Mutex<Option<Arc<T>>>);

    pub(crate) struct SlotGuard<T>(Arc<T>);

    impl<T> std::ops::Deref for SlotGuard<T> {
        type Target = T;
        fn deref(&self) -> &T {
            &self.0
        }
    }

    impl<T> Slot<T> {
        pub(crate) fn new() -> Self {
            Slot(loom::sync::Mutex::new(None))
        }
        pub(crate) fn get(&self) -> Option<Arc<T>> {
            self.0.lock().expect(NO_PANIC).clone()
        }
        pub(crate) fn get_if(&self, f: impl FnOnce(&T) -> bool) -> Option<Arc<T>> {
            self.get().filter(|value| f(value))
        }
        pub(crate) fn guard_if(&self, f: impl FnOnce(&T) -> bool) -> Option<SlotGuard<T>> {
            self.get_if(f).map(SlotGuard)
        }
        pub(crate) fn view<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
            self.get().as_deref().map(f)
        }
        pub(crate) fn set(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
            std::mem::replace(&mut *self.0.lock().expect(NO_PANIC), value)
        }
    }
}
