//! Deletions that iterators met, written once more as range deletions
//! (`min_tombstones_for_range_conversion`).
//!
//! An iterator saw that a stretch of keys is deleted as of its sequence number. A range deletion
//! with that number says the same: it goes into the memtable that takes writes, past the log, and
//! with it into tables. It says nothing new as long as no entry comes later with an older number.
//! Writes get newer ones. An ingested file may get 0: a conversion counts only if no ingestion
//! into the family ran since the iterator took its view. Files that are deleted whatever they hold
//! count as ingestions: older entries may be visible again.
//!
//! Thread-safety: any thread converts. One that ingests begins under the log lock, and waits for
//! conversions that found none.

use super::{Family, View};
use esker_format::Seq;
use esker_lsm::visible::{DeletedRange, FoundRange};
use esker_status::Result;
use esker_sync::Arc;
use esker_sync::atomic::{AtomicU64, Ordering};

/// Ingestions into a family.
#[derive(Debug, Default)]
pub(super) struct Ingestions {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// One ingestion, until it is dropped.
#[derive(Debug)]
pub(crate) struct IngestionGuard(Arc<Family>);

impl Drop for IngestionGuard {
    fn drop(&mut self) {
        self.0.ingestions.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl Family {
    /// The view, and how many ingestions it shows, for [`Family::convert`] and
    /// [`Family::keep_deleted`]. A number that never is, where one ran meanwhile.
    #[inline]
    pub(crate) fn view_and_epoch(&self) -> (Arc<View>, u64) {
        let now = &self.ingestions;
        let begun = now.begun.load(Ordering::SeqCst);
        let ended = now.ended.load(Ordering::SeqCst);
        let view = self.view();
        let is_same = ended == begun && now.begun.load(Ordering::SeqCst) == begun;
        (view, if is_same { begun } else { u64::MAX })
    }

    /// Files are about to be ingested, or to go whatever they hold: nothing is converted until the
    /// end. The caller holds the
    /// log lock.
    pub(crate) fn begin_ingestion(self: &Arc<Self>) -> IngestionGuard {
        self.ingestions.begun.fetch_add(1, Ordering::SeqCst);
        self.view_guard().mem.wait_for_conversion();
        IngestionGuard(Arc::clone(self))
    }

    /// Keeps a range in which an iterator over `view` saw nothing, so that others need not look at
    /// it. Not where a table has newer entries, which the iterator did not see: an ingested file
    /// may.
    pub(crate) fn keep_deleted(&self, view: &View, found: &FoundRange) {
        let (now, place) = (&self.ingestions, &found.place);
        let is_of_view = place.view == view.number && view.newest_in_tables() <= place.snapshot;
        if now.begun.load(Ordering::SeqCst) == place.epoch && is_of_view {
            view.mem.keep_deleted(found);
        }
    }

    /// Writes `range`, which an iterator over `view` found deleted as of `seq`, as a range
    /// deletion. `begun` are the ingestions that the view shows. False where it may not be,
    /// or is deleted so already.
    pub(crate) fn convert(
        &self,
        view: &View,
        seq: Seq,
        begun: u64,
        range: &DeletedRange,
    ) -> Result<bool> {
        let is_same = || {
            let now = &self.ingestions;
            let (started, ended) = (&now.begun, &now.ended);
            started.load(Ordering::SeqCst) == begun && ended.load(Ordering::SeqCst) == begun
        };
        view.mem.convert(seq, &range.begin, &range.end, is_same)
    }
}
