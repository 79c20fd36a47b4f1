//! Memtables that hide too much: iterators passed over many hidden entries of theirs
//! (`memtable_op_scan_flush_trigger`, `memtable_avg_op_scan_flush_trigger`).
//!
//! An iterator only asks. A thread that looks for work switches the memtable, whether or not there
//! are writers; it is flushed as one that is full.
//!
//! Thread-safety: any thread asks, about the memtable of the view that it reads.

use super::{Family, View};
use crate::runtime::work_signal as signal;
use esker_sync::atomic::{AtomicU64, Ordering};

/// The newest memtable that is to be flushed: its number and one. They rise, so one who still reads
/// an older memtable does not undo what was asked of a newer one.
#[derive(Debug, Default)]
pub(super) struct ScanFlush(AtomicU64);

impl Family {
    /// Asks for a flush of the memtable of `view`. True when background work is to look at the
    /// family: the memtable still takes writes, and nobody has asked before.
    pub(crate) fn ask_for_flush(&self, view: &View) -> bool {
        let asked = view.mem.id() + 1;
        let is_first = view.mem.sealed_for().is_none()
            && self.hiding.0.fetch_max(asked, Ordering::AcqRel) < asked;
        if is_first {
            self.signal.mark(signal::MEMTABLES);
        }
        is_first
    }

    /// Returns whether the memtable that takes writes is to be flushed for iterators. Not while
    /// that would stop writers: each change of the memtables has it looked at again.
    pub(crate) fn wants_flush_for_scans(&self) -> bool {
        let view = self.view_guard();
        if self.hiding.0.load(Ordering::Acquire) != view.mem.id() + 1 {
            return false;
        }
        let most = usize::try_from(self.options.load().max_write_buffer_number).unwrap_or(0);
        let waiting = view.immutable.len();
        waiting == 0 || waiting + 1 < most
    }
}
