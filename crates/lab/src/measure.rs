//! Meters: what each thread counts, how threads are summed, and the line that is printed.
//!
//! A [`Meter`] belongs to one thread and publishes its count in a [`Slot`] of its own cache line,
//! so that the `Sampler` thread can take operations per second without slowing the loop down. The
//! clock is read per operation only when a histogram is wanted. Latencies are closed-loop: from the
//! end of one operation to the end of the next.

mod intervals;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::pauses::{Pause, outside};
use crate::say::complain;
use crate::slowest::{Slow, SlowOperations, merged};
use crate::{Failure, Result};
use intervals::ThreadCounts;
pub use intervals::{Interval, Intervals};

/// A thread's published operation count, alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Slot(AtomicU64);

impl Slot {
    /// A count of nothing.
    pub const fn new() -> Slot {
        Slot(AtomicU64::new(0))
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Measurements of a thread while it works.
pub struct Meter<'a> {
    slot: &'a Slot,
    histogram: Option<Box<Histogram<u64>>>,
    /// Latencies from the time at which a paced operation should have begun.
    intended: Option<Box<Histogram<u64>>>,
    /// The time of the last operation.
    took: Duration,
    /// Latencies by second.
    seconds: Option<Box<ThreadCounts>>,
    last: Instant,
    start: Instant,
    finish: Instant,
    done: u64,
    bytes: u64,
    message: String,
    background: bool,
    slowest: Option<Box<SlowOperations>>,
    long: Vec<LongOperation>,
    /// Rounds of work that each operation takes on top.
    planted: u64,
}

/// Does a number of rounds of work: the slowdown of `--planted_rounds`. A round is three chains of
/// shifts, so that it takes as many instructions in a cycle as an engine does or more.
#[inline(never)]
pub fn planted_work(rounds: u64) {
    let mut chains = [0x9E37_79B9_7F4A_7C15u64, 0xD1B5_4A32_D192_ED03, rounds | 1];
    for _ in 0..rounds {
        for chain in &mut chains {
            *chain ^= *chain << 13;
            *chain ^= *chain >> 7;
            *chain ^= *chain << 17;
        }
    }
    std::hint::black_box(chains);
}

impl<'a> Meter<'a> {
    /// Starts measuring; a histogram of latencies costs a clock reading per operation.
    pub fn start(slot: &'a Slot, with_histogram: bool) -> Meter<'a> {
        let now = Instant::now();
        Meter {
            slot,
            histogram: with_histogram.then(|| Box::new(new_histogram())),
            intended: None,
            took: Duration::ZERO,
            seconds: with_histogram.then(|| Box::new(ThreadCounts::start(now))),
            last: now,
            start: now,
            finish: now,
            done: 0,
            bytes: 0,
            message: String::new(),
            background: false,
            slowest: None,
            long: Vec::new(),
            planted: 0,
        }
    }

    /// Makes each operation slower by so many rounds of [`planted_work`].
    pub fn plant(&mut self, rounds: u64) {
        self.planted = rounds;
    }

    /// Keeps the slowest operations, where latencies are measured.
    pub fn keep_slowest(&mut self, slowest: SlowOperations) {
        self.slowest = Some(Box::new(slowest));
    }

    /// Counts `n` finished operations as one measured step.
    #[inline]
    pub fn finished(&mut self, n: u64) {
        if self.planted > 0 && !self.background {
            planted_work(self.planted * n);
        }
        self.done += n;
        if !self.background {
            self.slot.0.store(self.done, Ordering::Relaxed);
        }
        if let Some(histogram) = &mut self.histogram {
            let now = Instant::now();
            let took = now - self.last;
            histogram.saturating_record(took.as_nanos() as u64);
            self.took = took;
            if took >= LEAST_LONG {
                self.long.push(LongOperation { until: now, took });
                longest(&mut self.long);
            }
            if let Some(seconds) = &mut self.seconds {
                seconds.note(now, took);
            }
            self.last = now;
            if let Some(slowest) = &mut self.slowest {
                slowest.note(now, took);
                // That is no part of the next operation.
                self.last = Instant::now();
            }
        }
    }

    /// Returns whether latencies are measured.
    #[inline]
    pub fn has_histogram(&self) -> bool {
        self.histogram.is_some()
    }

    /// Notes that the operation that ended now should have begun so long ago: its latency as
    /// a client sees it that sends requests at a steady rate. It is never less than what it took.
    pub fn intended(&mut self, ago: Duration) {
        let took = ago.max(self.took).as_nanos() as u64;
        let histogram = self
            .intended
            .get_or_insert_with(|| Box::new(new_histogram()));
        histogram.saturating_record(took);
    }

    /// Counts bytes moved.
    #[inline]
    pub fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Leaves this thread out of the benchmark's result: it is the background writer or scanner.
    pub fn set_background(&mut self) {
        self.background = true;
    }

    /// Forgets all that was measured: what counts begins now.
    pub fn restart(&mut self) {
        self.start = Instant::now();
        self.last = self.start;
        (self.done, self.bytes) = (0, 0);
        if let Some(histogram) = &mut self.histogram {
            histogram.reset();
            self.long.clear();
            self.intended = None;
            self.seconds = Some(Box::new(ThreadCounts::start(self.start)));
        }
    }

    /// Forgets the time since the last operation, after a deliberate sleep.
    pub fn reset_last(&mut self) {
        if self.histogram.is_some() {
            self.last = Instant::now();
        }
    }

    /// Sets the text to print behind the rate.
    pub fn set_message(&mut self, message: String) {
        self.message = message;
    }

    /// Operations so far.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Ends the measurement.
    pub fn stop(mut self) -> Measurement {
        self.finish = Instant::now();
        Measurement {
            start: self.start,
            finish: self.finish,
            thread_seconds: (self.finish - self.start).as_secs_f64(),
            done: self.done,
            bytes: self.bytes,
            histogram: self.histogram,
            intended: self.intended,
            ran: Duration::ZERO,
            intervals: (self.seconds).map_or_else(Intervals::default, |s| s.finish(self.finish)),
            message: self.message,
            background: self.background,
            slowest: self.slowest.map_or_else(Vec::new, |s| s.into_slow()),
            long: self.long,
        }
    }
}

/// Operations that take at least so long are kept one by one.
pub const LEAST_LONG: Duration = Duration::from_millis(5);
/// The most of them that are kept; twice as many before the shorter half goes.
const MOST_LONG: usize = 10_000;

/// A long operation.
#[derive(Debug, Clone, Copy)]
pub struct LongOperation {
    /// When it ended.
    pub until: Instant,
    /// How long it took.
    pub took: Duration,
}

/// Keeps the longest.
fn longest(long: &mut Vec<LongOperation>) {
    if long.len() > 2 * MOST_LONG {
        long.sort_unstable_by_key(|long| std::cmp::Reverse(long.took));
        long.truncate(MOST_LONG);
    }
}

fn new_histogram() -> Histogram<u64> {
    // One nanosecond to an hour, three significant digits.
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constant bounds are valid")
}

/// Adds the latencies of another thread.
fn add(mine: &mut Option<Box<Histogram<u64>>>, theirs: Option<Box<Histogram<u64>>>) {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => {
            mine.add(*theirs)
                .expect("all histograms have the same bounds");
        }
        (mine @ None, theirs) => *mine = theirs,
        (Some(_), None) => {}
    }
}

/// Measurements of one thread, or of all threads of a benchmark together.
#[derive(Debug)]
pub struct Measurement {
    /// When the first thread started.
    pub start: Instant,
    /// When the last thread finished.
    pub finish: Instant,
    /// Sum of the threads' times.
    pub thread_seconds: f64,
    /// Operations.
    pub done: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies in nanoseconds.
    pub histogram: Option<Box<Histogram<u64>>>,
    /// Latencies in nanoseconds from the intended start, of paced operations.
    pub intended: Option<Box<Histogram<u64>>>,
    /// Processor time of the threads.
    pub ran: Duration,
    /// Latencies by second, where they were measured.
    pub intervals: Intervals,
    /// Printed behind the rate.
    pub message: String,
    /// True if this was a background thread.
    pub background: bool,
    /// The slowest operations, the slowest first, where they were asked for.
    pub slowest: Vec<Slow>,
    /// Operations of [`LEAST_LONG`] or more, where latencies were measured.
    pub long: Vec<LongOperation>,
}

impl Measurement {
    /// Makes the measurement of one thread between two times, without latencies.
    pub fn between(start: Instant, finish: Instant, done: u64) -> Measurement {
        Measurement {
            start,
            finish,
            thread_seconds: (finish - start).as_secs_f64(),
            done,
            bytes: 0,
            histogram: None,
            intended: None,
            ran: Duration::ZERO,
            intervals: Intervals::default(),
            message: String::new(),
            background: false,
            slowest: Vec::new(),
            long: Vec::new(),
        }
    }

    /// Adds another thread's measurement.
    pub fn merge(&mut self, other: Measurement) {
        self.start = self.start.min(other.start);
        self.finish = self.finish.max(other.finish);
        self.thread_seconds += other.thread_seconds;
        self.done += other.done;
        self.bytes += other.bytes;
        self.ran += other.ran;
        add(&mut self.histogram, other.histogram);
        add(&mut self.intended, other.intended);
        self.intervals.merge(other.intervals);
        if self.message.is_empty() {
            self.message = other.message;
        }
        let wanted = self.slowest.len().max(other.slowest.len());
        self.slowest.extend(other.slowest);
        self.slowest = merged(std::mem::take(&mut self.slowest), wanted);
        self.long.extend(other.long);
        longest(&mut self.long);
    }

    /// Seconds from the first start to the last finish.
    pub fn seconds(&self) -> f64 {
        (self.finish - self.start).as_secs_f64().max(1e-9)
    }

    /// Bytes of memory that the measurement itself holds.
    pub fn bytes_held(&self) -> u64 {
        let all = [&self.histogram, &self.intended].into_iter().flatten();
        all.map(|h| h.distinct_values() as u64 * 8).sum()
    }

    /// Operations per second.
    pub fn ops_per_second(&self) -> f64 {
        self.done.max(1) as f64 / self.seconds()
    }

    /// Megabytes (2^20) per second, when bytes were counted.
    pub fn mb_per_second(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.bytes as f64 / 1_048_576.0 / self.seconds())
    }

    /// A latency percentile in microseconds.
    pub fn percentile_us(&self, percentile: f64) -> Option<f64> {
        let histogram = self.histogram.as_ref()?;
        Some(histogram.value_at_percentile(percentile) as f64 / 1000.0)
    }

    /// The longest operation in microseconds, less the pauses of the machine while it ran.
    pub fn longest_outside_us(&self, pauses: &[Pause]) -> Option<f64> {
        let longest = self.percentile_us(100.0)?;
        let all = self.long.iter();
        let net = all.map(|long| outside(pauses, long.until - long.took, long.until));
        let net = net.max().map(|net| net.as_nanos() as f64 / 1000.0);
        let short = LEAST_LONG.as_nanos() as f64 / 1000.0;
        // What is shorter was not kept.
        Some(net.map_or(longest, |net| net.max(short.min(longest))))
    }

    /// Returns the latency of paced operations from the intended start.
    pub fn intended_us(&self, percentile: f64) -> Option<f64> {
        let histogram = self.intended.as_ref()?;
        Some(histogram.value_at_percentile(percentile) as f64 / 1000.0)
    }

    /// The share of the threads' time in calls of a millisecond or more, in percent, where
    /// latencies were measured.
    pub fn slow_calls_percent(&self) -> Option<f64> {
        const FROM_NS: u64 = 1_000_000;
        let histogram = self.histogram.as_ref()?;
        let slow = histogram.iter_recorded().map(|at| {
            let value = at.value_iterated_to();
            (value, at.count_since_last_iteration())
        });
        let slow = slow.filter(|(value, _)| *value >= FROM_NS);
        let seconds: f64 = slow.map(|(value, n)| value as f64 / 1e9 * n as f64).sum();
        Some(100.0 * seconds / self.thread_seconds.max(1e-9))
    }

    /// The result line in `db_bench`'s form.
    pub fn line(&self, name: &str) -> String {
        let done = self.done.max(1);
        let mut line = format!(
            "{name:<12} : {:11.3} micros/op {} ops/sec {:.3} seconds {done} operations;",
            self.thread_seconds * 1e6 / done as f64,
            self.ops_per_second() as u64,
            self.seconds(),
        );
        if let Some(rate) = self.mb_per_second() {
            let _ = write!(line, " {rate:6.1} MB/s");
        }
        if !self.message.is_empty() {
            let _ = write!(line, " {}", self.message);
        }
        line
    }

    /// The histogram's text in `db_bench`'s form, without the bars.
    pub fn percentiles(&self) -> Option<String> {
        let histogram = self.histogram.as_ref()?;
        let micros = |nanos: f64| nanos / 1000.0;
        let at = |p: f64| micros(histogram.value_at_percentile(p) as f64);
        Some(format!(
            "Count: {} Average: {:.4}  StdDev: {:.2}\nMin: {:.3}  Median: {:.4}  Max: {:.3}\n\
             Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}\n",
            histogram.len(),
            micros(histogram.mean()),
            micros(histogram.stdev()),
            micros(histogram.min() as f64),
            at(50.0),
            micros(histogram.max() as f64),
            at(50.0),
            at(75.0),
            at(99.0),
            at(99.9),
            at(99.99),
        ))
    }
}

/// Steadiness of the operations per second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RateStability {
    /// Whole seconds sampled.
    pub seconds: usize,
    /// Standard deviation over mean.
    pub cv: f64,
    /// The slowest second.
    pub min: u64,
    /// The first percentile.
    pub p1: u64,
    /// Seconds below half of the median.
    pub below_half_median: usize,
}

impl RateStability {
    /// Of operations per second, one number per second; `None` for fewer than two.
    pub fn of(rates: &[u64]) -> Option<RateStability> {
        if rates.len() < 2 {
            return None;
        }
        let n = rates.len() as f64;
        let mean = rates.iter().sum::<u64>() as f64 / n;
        let variance = rates
            .iter()
            .map(|&r| (r as f64 - mean).powi(2))
            .sum::<f64>()
            / (n - 1.0);
        let mut sorted = rates.to_vec();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        Some(RateStability {
            seconds: rates.len(),
            cv: if mean > 0.0 {
                variance.sqrt() / mean
            } else {
                0.0
            },
            min: sorted[0],
            p1: sorted[sorted.len() / 100],
            below_half_median: rates.iter().filter(|&&r| r < median / 2).count(),
        })
    }
}

/// Other work of the `Sampler` besides taking rates.
pub struct SamplerPlan<'a> {
    /// File and interval of `secs_elapsed,interval_qps`.
    pub report: Option<(&'a str, u64)>,
    /// Seconds between progress lines, 0 for none.
    pub stats_seconds: u64,
    /// Operations between progress lines where no seconds are given, 0 for none.
    pub stats_operations: u64,
    /// Called with total operations about ten times a second.
    pub progress: &'a (dyn Fn(u64) + Sync),
    /// Called after each progress line.
    pub interval: &'a (dyn Fn() + Sync),
    /// Called at the end of each second.
    pub second: &'a (dyn Fn() + Sync),
}

/// The last progress line.
struct ProgressLine {
    start: Instant,
    at: Instant,
    operations: u64,
}

impl ProgressLine {
    fn new(start: Instant) -> ProgressLine {
        ProgressLine {
            start,
            at: start,
            operations: 0,
        }
    }

    /// Prints the operations since the last line, and since the start.
    fn tell(&mut self, now: u64) {
        let since = now.saturating_sub(self.operations);
        let (last, all) = (self.at.elapsed(), self.start.elapsed());
        let (last, all) = (last.as_secs_f64().max(1e-9), all.as_secs_f64().max(1e-9));
        complain!(
            "... ({since},{now}) ops and ({:.1},{:.1}) ops/second in ({last:.6},{all:.6}) seconds",
            since as f64 / last,
            now as f64 / all,
        );
        (self.at, self.operations) = (Instant::now(), now);
    }
}

/// Sums the slots once a second until told to stop; returns operations per second.
///
/// # Errors
/// When the report file cannot be written.
pub fn sample(slots: &[Slot], stop: &AtomicBool, plan: &SamplerPlan<'_>) -> Result<Vec<u64>> {
    let mut report = match plan.report {
        Some((path, _)) => {
            let mut file = File::create(path)
                .map_err(|e| Failure::new(format!("cannot write {path}: {e}")))?;
            writeln!(file, "secs_elapsed,interval_qps")?;
            Some(file)
        }
        None => None,
    };
    let total = || slots.iter().map(Slot::get).sum::<u64>();
    let start = Instant::now();
    let (mut rates, mut last, mut last_report) = (Vec::new(), 0, 0);
    let mut told = ProgressLine::new(start);
    for second in 1u64.. {
        while start.elapsed() < Duration::from_secs(second) {
            if stop.load(Ordering::Acquire) {
                return Ok(rates);
            }
            std::thread::sleep(Duration::from_millis(if rates.is_empty() {
                20
            } else {
                50
            }));
            let now = total();
            (plan.progress)(now);
            let every = plan.stats_operations;
            if plan.stats_seconds == 0 && every > 0 && now / every > told.operations / every {
                told.tell(now);
                (plan.interval)();
            }
        }
        let now = total();
        // A benchmark that begins to count anew has less than before.
        rates.push(now.saturating_sub(last));
        last = now;
        (plan.second)();
        if let (Some(file), Some((_, every))) = (&mut report, plan.report)
            && second % every == 0
        {
            writeln!(file, "{second},{}", now.saturating_sub(last_report))?;
            last_report = now;
        }
        if plan.stats_seconds > 0 && second % plan.stats_seconds == 0 {
            told.tell(now);
            (plan.interval)();
        }
    }
    Ok(rates)
}

#[cfg(test)]
mod tests;
