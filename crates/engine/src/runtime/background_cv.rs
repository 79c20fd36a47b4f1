//! The condition variable on which background threads, and callers that wait for them, wait for
//! changes. Thread-safety: any thread.

use crate::ranks;
use esker_sync::{Condvar, Mutex};
use std::time::Duration;

/// A counter of changes that threads can wait on.
#[derive(Debug)]
pub(crate) struct BackgroundCv {
    state: Mutex<CvState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CvState {
    changes: u64,
    closing: bool,
}

impl BackgroundCv {
    pub(crate) fn new() -> Self {
        BackgroundCv {
            state: Mutex::new(ranks::BACKGROUND_CV, CvState::default()),
            changed: Condvar::new(),
        }
    }

    /// Something changed: whoever waits looks again.
    pub(crate) fn notify(&self) {
        self.state.lock().changes += 1;
        self.changed.notify_all();
    }

    /// No more work is to be started.
    pub(crate) fn close(&self) {
        self.state.lock().closing = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.state.lock().closing
    }

    /// How many changes there were; to be given to [`BackgroundCv::wait_past`].
    pub(crate) fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// Waits until there are more changes than `seen`, at most `limit`; false when the database
    /// closes.
    pub(crate) fn wait_past(&self, seen: u64, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if state.changes == seen && !state.closing {
            self.changed.wait_for(&mut state, limit);
        }
        !state.closing
    }
}
