//! Counting and timing what an iterator does: statistics, and the record of slow operations.

use super::DbIterator;
use crate::observe::{HistogramId, OperationKind, OperationStart, Ticker};

impl DbIterator {
    /// A seek begins. Whether it and the steps after it are recorded is decided here.
    #[inline]
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
    #[inline]
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

    pub(super) fn count_seek(&mut self, start: Option<u64>) {
        self.check_time();
        let Some(s) = &self.core.statistics else {
            return;
        };
        if let Some(start) = start {
            s.record(HistogramId::DbSeek, self.core.env.clock.now_us() - start);
        }
        let reseeks = self.inner().map_or(0, |c| c.counters().reseeks);
        if reseeks > self.reported_reseeks {
            s.add(
                Ticker::NumberOfReseeksInIteration,
                reseeks - self.reported_reseeks,
            );
            self.reported_reseeks = reseeks;
        }
    }

    /// The end of an iterator that was watched: all are with statistics.
    pub(super) fn end_watched(&mut self) {
        self.end_notes();
        if let Some(s) = &self.core.statistics {
            s.add(Ticker::NoIteratorDeleted, 1);
        }
    }

    pub(super) fn count(&mut self, tried: Ticker, found: Ticker) {
        let Some(s) = &self.core.statistics else {
            return;
        };
        s.add(tried, 1);
        let Some(inner) = self.inner() else {
            return;
        };
        if inner.valid() {
            s.add(found, 1);
            s.add(
                Ticker::IterBytesRead,
                (inner.key().len() + inner.value().len()) as u64,
            );
        }
        let skipped = inner.counters().internal_keys_skipped;
        if skipped > self.reported_skips {
            s.add(Ticker::NumberIterSkip, skipped - self.reported_skips);
            self.reported_skips = skipped;
        }
    }
}
