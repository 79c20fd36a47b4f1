//! The condition variable on which background threads, and callers that wait for them, wait for
//! changes. Thread-safety: any thread.

use esker_sync::{Condvar, Mutex, Rank};
use std::time::Duration;

const RANK: Rank = Rank::new(55, "background work");

/// A counter of changes that threads can wait on.
#[derive(Debug)]
pub struct BackgroundCv {
    state: Mutex<CvState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CvState {
    changes: u64,
    closing: bool,
}

impl Default for BackgroundCv {
    /// Without a change yet.
    fn default() -> Self {
        BackgroundCv {
            state: Mutex::new(RANK, CvState::default()),
            changed: Condvar::new(),
        }
    }
}

impl BackgroundCv {
    /// Something changed: threads that wait look again.
    pub fn notify(&self) {
        self.state.lock().changes += 1;
        self.changed.notify_all();
    }

    /// No more work is to be started.
    pub fn close(&self) {
        self.state.lock().closing = true;
        self.changed.notify_all();
    }

    /// Whether [`BackgroundCv::close`] was called.
    pub fn is_closing(&self) -> bool {
        self.state.lock().closing
    }

    /// How many changes there were; to be given to [`BackgroundCv::wait_past`].
    pub fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// Waits until there are more changes than `seen`, at most `limit`; false when the database
    /// closes.
    pub fn wait_past(&self, seen: u64, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if state.changes == seen && !state.closing {
            self.changed.wait_for(&mut state, limit);
        }
        !state.closing
    }
}
