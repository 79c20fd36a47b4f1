//! The tree of every family as it changes: the store that commits changes, the open tables, the garbage.
//!
//! Jobs compute; the store commits. [`store::Store::install`] is the only place where a tree changes: it
//! makes the next version with the pure [`esker_lsm::edit::apply`], appends the edit to the MANIFEST and
//! syncs it, and only then publishes the view that shows it.

pub(crate) mod garbage;
pub(crate) mod store;
pub(crate) mod tables;

pub(crate) use garbage::Garbage;
pub(crate) use store::{Change, Store};
pub(crate) use tables::Tables;

use esker_format::FileNo;
use esker_sync::atomic::{AtomicU64, Ordering};

/// The one sequence that tables, logs, MANIFESTs, OPTIONS and blob files take their numbers from.
#[derive(Debug)]
pub(crate) struct FileNumbers(AtomicU64);

impl FileNumbers {
    pub(crate) fn new(next: FileNo) -> Self {
        FileNumbers(AtomicU64::new(next.0))
    }

    /// A number that no file has had.
    pub(crate) fn next(&self) -> FileNo {
        FileNo(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// The number that the next call of [`FileNumbers::next`] gives.
    pub(crate) fn peek(&self) -> FileNo {
        FileNo(self.0.load(Ordering::Relaxed))
    }

    /// Makes sure that `used` is not given out.
    pub(crate) fn mark_used(&self, used: FileNo) {
        self.0.fetch_max(used.0 + 1, Ordering::Relaxed);
    }
}
