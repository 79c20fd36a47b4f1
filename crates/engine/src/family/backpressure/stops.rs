//! Administration that stops all writers: a counter beside the log lock.
//!
//! Leaders look at it and go on when it is 0; the log lock stays free meanwhile, so the thread that
//! stopped them can take it. Thread-safety: everything may be called by any thread.

use super::write_controller::STOP_LOOK;
use esker_sync::atomic::{AtomicUsize, Ordering};
use esker_sync::{Condvar, Mutex, Rank};

/// Counter of the operations that stop all writers.
#[derive(Debug)]
pub(crate) struct Stops {
    /// Leaders wait while it is above 0.
    count: AtomicUsize,
    /// Those among them that callers asked for.
    holds: AtomicUsize,
    changed: (Mutex<()>, Condvar),
}

/// No write begins while this lives; the log lock is free.
#[derive(Debug)]
pub(crate) struct StopWriters<'a>(&'a Stops);

impl Drop for StopWriters<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        drop(self.0.changed.0.lock());
        self.0.changed.1.notify_all();
    }
}

impl StopWriters<'_> {
    /// Writers stay stopped until [`Stops::release`].
    pub(crate) fn hold(self) {
        self.0.holds.fetch_add(1, Ordering::AcqRel);
        std::mem::forget(self);
    }
}

impl Stops {
    pub(crate) fn new() -> Self {
        Stops {
            count: AtomicUsize::new(0),
            holds: AtomicUsize::new(0),
            changed: (Mutex::new(Rank::LEAF, ()), Condvar::new()),
        }
    }

    /// Lets no write begin until what is returned is dropped.
    pub(crate) fn stop(&self) -> StopWriters<'_> {
        self.count.fetch_add(1, Ordering::AcqRel);
        StopWriters(self)
    }

    /// Takes one [`StopWriters::hold`] back; false when there is none.
    pub(crate) fn release(&self) -> bool {
        let held = self
            .holds
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1))
            .is_ok();
        if held {
            drop(StopWriters(self));
        }
        held
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Waits until writers may go on, at most a tenth of a second.
    pub(crate) fn wait(&self) {
        let (lock, changed) = &self.changed;
        let mut waiting = lock.lock();
        if self.is_stopped() {
            changed.wait_for(&mut waiting, STOP_LOOK);
        }
    }
}
