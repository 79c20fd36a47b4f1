//! The counter beside the log lock that stops writers. [`super::stop_writers`] has the rules.

use esker_sync::atomic::AtomicUsize;
use esker_sync::{Condvar, Mutex, Rank};

/// What stops writers.
#[derive(Debug)]
pub(super) struct Stops {
    /// Leaders wait while it is above 0.
    pub(super) count: AtomicUsize,
    /// Those among them that callers asked for.
    pub(super) holds: AtomicUsize,
    pub(super) changed: (Mutex<()>, Condvar),
}

impl Stops {
    pub(super) fn new() -> Self {
        Stops {
            count: AtomicUsize::new(0),
            holds: AtomicUsize::new(0),
            changed: (Mutex::new(Rank::LEAF, ()), Condvar::new()),
        }
    }
}
