//! Promises: results that are computed while the waiting thread does something else.
//!
//! A thread that waits for one that has not begun yet makes it itself; one that is taken back
//! before it was begun is never made.
//!
//! Thread-safety: one waits; the job is shared with the thread that does it.

use crate::pool::{IoQueue, Task};
use crate::system::thread_cpu_ns;
use esker_sync::{Condvar, Mutex, MutexGuard, Rank};
use std::fmt;
use std::sync::Arc;

type Job<T> = Box<dyn FnOnce() -> T + Send>;

enum PromiseState<T> {
    Queued(Job<T>),
    Running,
    /// With the processor time that another thread spent on it, in nanoseconds.
    Done(T, u64),
    Gone,
}

/// A result that is being made.
pub(crate) struct Promise<T> {
    state: Mutex<PromiseState<T>>,
    changed: Condvar,
}

impl<T> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promise").finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Promise<T> {
    /// Asks the threads of `queue` for what `job` makes; without threads it is made when it is
    /// waited for.
    pub(crate) fn begin(
        queue: &Arc<IoQueue>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Arc<Self> {
        let promise = Arc::new(Promise {
            state: Mutex::new(Rank::LEAF, PromiseState::Queued(Box::new(job))),
            changed: Condvar::new(),
        });
        let _accepted = queue.offer(Arc::clone(&promise) as Arc<dyn Task>);
        promise
    }

    /// Makes it, unless that has begun.
    fn make(state: &mut MutexGuard<'_, PromiseState<T>>, is_elsewhere: bool) {
        if !matches!(**state, PromiseState::Queued(_)) {
            return;
        }
        if let PromiseState::Queued(job) = std::mem::replace(&mut **state, PromiseState::Running) {
            let start = if is_elsewhere { thread_cpu_ns() } else { 0 };
            let made = MutexGuard::unlocked(state, job);
            let spent = if is_elsewhere {
                thread_cpu_ns().saturating_sub(start)
            } else {
                0
            };
            **state = PromiseState::Done(made, spent);
        }
    }

    /// Waits for it, with the processor time that another thread spent on it; `None` when it was
    /// taken already.
    pub(crate) fn wait(&self) -> Option<(T, u64)> {
        let mut state = self.state.lock();
        Self::make(&mut state, false);
        loop {
            match std::mem::replace(&mut *state, PromiseState::Gone) {
                PromiseState::Done(made, spent) => return Some((made, spent)),
                PromiseState::Running => {
                    *state = PromiseState::Running;
                    self.changed.wait(&mut state);
                }
                PromiseState::Queued(_) | PromiseState::Gone => return None,
            }
        }
    }

    /// It is not wanted any more. One that is under way ends by itself.
    pub(crate) fn take_back(&self) {
        let mut state = self.state.lock();
        if !matches!(*state, PromiseState::Running) {
            let unmade = std::mem::replace(&mut *state, PromiseState::Gone);
            drop(state);
            drop(unmade);
        }
    }

    /// Gives the promise up; nothing is under way afterwards.
    pub(crate) fn end(&self) {
        self.take_back();
        drop(self.wait());
    }
}

impl<T: Send + 'static> Task for Promise<T> {
    fn run(&self) {
        let mut state = self.state.lock();
        Self::make(&mut state, true);
        drop(state);
        self.changed.notify_all();
    }
}
