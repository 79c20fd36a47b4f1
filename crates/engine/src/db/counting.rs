//! Counting what callers do: statistics when the database has them, the thread's own figures
//! always.
//!
//! Without statistics an operation pays two branches here and a few thread-local additions.

use crate::core::ReadCore;
use crate::family::Family;
use crate::observe::{
    HistogramId, OperationKind, OperationStart, PerfMetric, Statistics, Ticker, perf_count,
};

/// An operation whose time goes into a histogram.
pub(crate) struct OperationTimer<'a> {
    reads: &'a ReadCore,
    running: Option<(&'a Statistics, u64)>,
    histogram: HistogramId,
}

impl Drop for OperationTimer<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((s, start)) = self.running {
            let us = self.reads.env.clock.now_us().saturating_sub(start);
            s.record(self.histogram, us);
        }
    }
}

/// A read whose time goes into a histogram, and into the record of slow operations.
pub(crate) struct ReadTimer<'a> {
    timed: OperationTimer<'a>,
    kind: OperationKind,
    /// None if it reads several.
    family: Option<&'a Family>,
    recorded: Option<OperationStart>,
}

impl Drop for ReadTimer<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(start) = self.recorded {
            self.timed.reads.end_read(self.kind, start, self.family);
        }
    }
}

impl ReadCore {
    /// Times a Get of `family` until the value is dropped, if anybody wants to know.
    #[inline]
    pub(crate) fn timed_get<'a>(&'a self, family: &'a Family) -> ReadTimer<'a> {
        ReadTimer {
            timed: self.timed(HistogramId::DbGet),
            kind: OperationKind::Get,
            family: Some(family),
            recorded: self.operations.begin_read(),
        }
    }

    /// Times a read of many keys, of one family or of several.
    #[inline]
    pub(crate) fn timed_multi_get<'a>(&'a self, family: Option<&'a Family>) -> ReadTimer<'a> {
        ReadTimer {
            timed: self.timed(HistogramId::DbMultiget),
            kind: OperationKind::MultiGet,
            family,
            recorded: self.operations.begin_reads(),
        }
    }

    /// A read that is recorded is over.
    #[inline]
    pub(crate) fn end_read(
        &self,
        kind: OperationKind,
        start: OperationStart,
        family: Option<&Family>,
    ) {
        let family = || family.map(|f| f.name.clone());
        self.operations.end(kind, start, family);
    }

    /// Times an operation until the value is dropped, if the statistics want times.
    #[inline]
    pub(crate) fn timed(&self, histogram: HistogramId) -> OperationTimer<'_> {
        let running = match self.statistics.as_deref() {
            Some(s) if s.wants_times() => Some((s, self.env.clock.now_us())),
            _ => None,
        };
        OperationTimer {
            reads: self,
            running,
            histogram,
        }
    }

    /// Counts one point read that found `len` bytes, or nothing.
    #[inline]
    pub(crate) fn count_get(&self, len: Option<usize>) {
        let bytes = len.unwrap_or(0) as u64;
        perf_count(PerfMetric::GetReadBytes, bytes);
        if let Some(s) = &self.statistics {
            s.add(Ticker::NumberKeysRead, 1);
            s.add(Ticker::BytesRead, bytes);
            s.record(HistogramId::BytesPerRead, bytes);
        }
    }

    /// Counts one read of many keys; each family counts as a call.
    pub(crate) fn count_multi_get(&self, families: usize, keys: usize, found: usize, bytes: u64) {
        perf_count(PerfMetric::MultigetReadBytes, bytes);
        if keys == 0 {
            return;
        }
        if let Some(s) = &self.statistics {
            s.add(Ticker::NumberMultigetCalls, families as u64);
            s.add(Ticker::NumberMultigetKeysRead, keys as u64);
            s.add(Ticker::NumberMultigetKeysFound, found as u64);
            s.add(Ticker::NumberMultigetBytesRead, bytes);
            s.record(HistogramId::BytesPerMultiget, bytes);
        }
    }
}
