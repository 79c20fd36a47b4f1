//! Notes that a cursor takes on its way, for its owner: stretches of deleted keys, and how much of
//! the newest run is hidden.
//!
//! Most cursors take nothing down; they have no notes, and their walks do nothing for them.

use super::deleted::DeletedRun;
use super::hidden::HiddenCount;
use super::options::VisibleOptions;

/// The notes of one cursor.
#[derive(Debug)]
pub(super) struct Notes {
    pub(super) deleted: DeletedRun,
    pub(super) hidden: HiddenCount,
}

impl Notes {
    /// None where none are wanted.
    pub(super) fn wanted(options: &VisibleOptions) -> Option<Box<Self>> {
        let limits = options.hidden_limits;
        if options.min_deleted_run == 0 && !limits.is_any() {
            return None;
        }
        let least = match options.order.timestamp_size() {
            0 => options.min_deleted_run,
            _ => 0,
        };
        let notes = || Notes {
            deleted: DeletedRun::new(least),
            hidden: HiddenCount::new(limits),
        };
        (least > 0 || limits.is_any()).then(|| Box::new(notes()))
    }

    /// Returns whether a stretch of deleted keys has begun.
    #[inline]
    pub(super) fn has_open_run(&self) -> bool {
        self.deleted.is_open()
    }

    /// A seek begins.
    #[cold]
    pub(super) fn begin_walk(&mut self) {
        self.deleted.reset();
        self.hidden.end_walk();
    }
}
