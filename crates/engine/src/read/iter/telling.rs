//! Reports of an iterator's moves to others: the record of slow operations, stretches of
//! deletions that later reads go past, and a memtable that hides too much.

use super::DbIterator;
use crate::observe::{OperationKind, OperationStart, Ticker};
use esker_lsm::visible::DeletedRange;

impl DbIterator {
    /// A seek begins. Whether it and the steps after it are recorded is decided here.
    #[inline(always)]
    pub(super) fn begin_recorded_seek(&mut self) -> Option<OperationStart> {
        let recorded = self.core.operations.begin_read();
        self.is_recorded = recorded.is_some();
        recorded
    }

    /// A step begins.
    #[inline]
    pub(super) fn begin_recorded(&self) -> Option<OperationStart> {
        if self.is_recorded {
            return self.core.operations.begin_reads();
        }
        None
    }

    /// A move is over.
    #[inline(always)]
    pub(super) fn end_recorded(&self, kind: OperationKind, recorded: Option<OperationStart>) {
        if let Some(start) = recorded {
            let family = || Some(self.family.name.clone());
            self.core.operations.end(kind, start, family);
        }
    }

    #[inline]
    pub(super) fn seek_timer(&self) -> Option<u64> {
        let statistics = self.core.statistics.as_deref()?;
        statistics
            .wants_times()
            .then(|| self.core.env.clock.now_us())
    }

    /// Writes the stretch of deletions that the last move met as a range deletion, for later reads.
    pub(super) fn convert_deletions(&mut self, range: &DeletedRange) {
        let converted = self.family.convert(&self.view, self.seq, self.epoch, range);
        let ticker = match converted {
            Ok(true) => Ticker::ReadPathRangeTombstonesInserted,
            // It only saves work.
            Ok(false) | Err(_) => Ticker::ReadPathRangeTombstonesDiscarded,
        };
        if let Some(s) = &self.core.statistics {
            s.add(ticker, 1);
        }
    }

    /// Has the memtable flushed: it hides too much.
    #[cold]
    pub(super) fn ask_for_flush(&self) {
        if self.family.ask_for_flush(&self.view) {
            self.core.background_cv.notify();
        }
    }
}
