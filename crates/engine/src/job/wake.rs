//! The signal that wakes background threads when something changed.

use crate::ranks;
use esker_sync::{Condvar, Mutex};
use std::time::Duration;

/// A counter of changes that threads can wait on.
#[derive(Debug)]
pub(crate) struct Wake {
    state: Mutex<WakeState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WakeState {
    changes: u64,
    closing: bool,
}

impl Wake {
    pub(crate) fn new() -> Self {
        Wake {
            state: Mutex::new(ranks::WAKE, WakeState::default()),
            changed: Condvar::new(),
        }
    }

    /// Something changed: waiting threads look again.
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

    /// How many changes there were; to be given to [`Wake::wait_past`].
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
