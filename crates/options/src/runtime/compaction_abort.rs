//! Pausing compactions.
//!
//! Compactions look here between their steps. Nothing that was ended is installed.

use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::{AtomicUsize, Ordering};

/// The request that compactions end.
#[derive(Debug, Default)]
pub struct CompactionAbort {
    /// Compactions end, and none begins, while above 0.
    aborts: AtomicUsize,
}

impl CompactionAbort {
    /// Compactions end until [`CompactionAbort::resume`] was called as often.
    pub fn abort(&self) {
        self.aborts.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes one [`CompactionAbort::abort`] back; false when there is none.
    pub fn resume(&self) -> bool {
        self.aborts
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1))
            .is_ok()
    }

    /// `Incomplete` when compactions are to end.
    pub fn check(&self) -> Result<()> {
        if self.aborts.load(Ordering::Acquire) > 0 {
            return Err(aborted());
        }
        Ok(())
    }
}

#[cold]
fn aborted() -> Error {
    Error::new(ErrorKind::Incomplete, "the compaction was aborted")
}
