//! Where the time of a write goes, in the perf context of the thread that writes.
//!
//! The figures are RocksDB's: the log with its sync, memtables, being held back, switching
//! memtables, waiting for a leader, and all the rest. A thread below [`LEVEL`] pays one comparison
//! for each of them and looks at no clock.

use crate::observe::{
    PerfContext, PerfLevel, PerfMetric, PerfTimer, perf_count_write, perf_measures, perf_timer,
    perf_wait_timer,
};
use esker_env::Clock;

/// From here on a thread's writes are timed.
const LEVEL: PerfLevel = PerfLevel::EnableTimeExceptForMutex;

/// The parts that are timed by themselves.
const PARTS: [PerfMetric; 5] = [
    PerfMetric::WriteWalTime,
    PerfMetric::WriteMemtableTime,
    PerfMetric::WriteDelayTime,
    PerfMetric::WriteSchedulingFlushesCompactionsTime,
    PerfMetric::WriteThreadWaitNanos,
];

/// Returns whether this thread's writes are timed.
#[inline]
pub(super) fn are_timed() -> bool {
    perf_measures(LEVEL)
}

/// Times a part until the value is dropped.
#[inline]
pub(super) fn part(metric: PerfMetric, clock: &dyn Clock) -> PerfTimer<'_> {
    perf_timer(metric, LEVEL, clock)
}

/// Times a wait until the value is dropped, also while the operations of the database are recorded.
#[inline]
pub(super) fn wait(metric: PerfMetric, clock: &dyn Clock) -> PerfTimer<'_> {
    perf_wait_timer(metric, LEVEL, clock)
}

/// The nanoseconds of all parts so far.
pub(super) fn parts_ns() -> u64 {
    let parts = PARTS.iter().map(|&metric| PerfContext.get(metric));
    parts.fold(0, u64::wrapping_add)
}

/// A write that began when the parts were `before_ns` took this long: what they do not explain is
/// the rest.
pub(super) fn add_rest(took_ns: u64, before_ns: u64) {
    let explained = parts_ns().wrapping_sub(before_ns);
    let rest = took_ns.saturating_sub(explained);
    perf_count_write(PerfMetric::WritePreAndPostProcessTime, rest);
}
