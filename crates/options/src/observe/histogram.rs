//! A histogram with RocksDB's buckets: each limit about one and a half times the one before.
//!
//! Thread-safety: any number of threads add, any number read; readers see a recent state, and each
//! figure by itself is exact.

use esker_sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::fmt::Write as _;

/// How many buckets cover all of `u64`.
pub const BUCKETS: usize = 109;

/// Upper limits, themselves included: 1, 2, 3, 4, 6, ... with two digits that count.
static LIMITS: [u64; BUCKETS] = limits();

const fn limits() -> [u64; BUCKETS] {
    let mut out = [0u64; BUCKETS];
    out[0] = 1;
    out[1] = 2;
    let mut exact = 2.0f64;
    let mut at = 2;
    while at < BUCKETS {
        exact *= 1.5;
        let mut limit = exact as u64;
        let mut scale = 1u64;
        while limit / 10 > 10 {
            limit /= 10;
            scale *= 10;
        }
        out[at] = limit * scale;
        at += 1;
    }
    out
}

/// The upper limit of the bucket `at`, itself included.
pub(super) fn limit(at: usize) -> u64 {
    LIMITS[at]
}

/// The bucket of `value`.
#[inline]
fn bucket_of(value: u64) -> usize {
    LIMITS
        .partition_point(|&limit| limit < value)
        .min(BUCKETS - 1)
}

/// Counts of values by size.
///
/// ```
/// use esker::observe::Histogram;
///
/// let sizes = Histogram::new();
/// for size in [10, 20, 30] {
///     sizes.add(size);
/// }
/// let summary = sizes.summary();
/// assert_eq!((summary.count, summary.min, summary.max), (3, 10, 30));
/// ```
pub struct Histogram {
    count: AtomicU64,
    sum: AtomicU64,
    sum_squares: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.summary().fmt(f)
    }
}

impl Histogram {
    /// Nothing counted yet.
    pub const fn new() -> Self {
        Histogram {
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            sum_squares: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }

    /// Counts `value`.
    #[inline]
    pub fn add(&self, value: u64) {
        self.buckets[bucket_of(value)].fetch_add(1, Relaxed);
        self.count.fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
        self.sum_squares
            .fetch_add(value.wrapping_mul(value), Relaxed);
        if value < self.min.load(Relaxed) {
            self.min.fetch_min(value, Relaxed);
        }
        if value > self.max.load(Relaxed) {
            self.max.fetch_max(value, Relaxed);
        }
    }

    /// Adds what `other` counted.
    pub fn merge(&self, other: &Histogram) {
        for (mine, theirs) in self.buckets.iter().zip(&other.buckets) {
            mine.fetch_add(theirs.load(Relaxed), Relaxed);
        }
        self.count.fetch_add(other.count.load(Relaxed), Relaxed);
        self.sum.fetch_add(other.sum.load(Relaxed), Relaxed);
        self.sum_squares
            .fetch_add(other.sum_squares.load(Relaxed), Relaxed);
        self.min.fetch_min(other.min.load(Relaxed), Relaxed);
        self.max.fetch_max(other.max.load(Relaxed), Relaxed);
    }

    /// The counts by bucket, and the sum of all values.
    pub(super) fn buckets(&self) -> ([u64; BUCKETS], u64) {
        let counts = std::array::from_fn(|at| self.buckets[at].load(Relaxed));
        (counts, self.sum.load(Relaxed))
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Relaxed);
        }
        self.count.store(0, Relaxed);
        self.sum.store(0, Relaxed);
        self.sum_squares.store(0, Relaxed);
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }

    /// The value below which `percent` of the values lie, interpolated within its bucket.
    pub fn percentile(&self, percent: f64) -> f64 {
        let count = self.count.load(Relaxed);
        if count == 0 {
            return 0.0;
        }
        let (min, max) = (self.min.load(Relaxed) as f64, self.max.load(Relaxed) as f64);
        let threshold = count as f64 * (percent / 100.0);
        let mut below = 0u64;
        for (at, bucket) in self.buckets.iter().enumerate() {
            let here = bucket.load(Relaxed);
            if here > 0 && (below + here) as f64 >= threshold {
                let left = if at == 0 { 0 } else { LIMITS[at - 1] } as f64;
                let share = ((threshold - below as f64) / here as f64).max(0.0);
                return (left + (LIMITS[at] as f64 - left) * share).clamp(min.min(max), max);
            }
            below += here;
        }
        max
    }

    /// The whole histogram as RocksDB prints it.
    pub fn text(&self) -> String {
        let s = self.summary();
        let mut out = format!(
            "Count: {} Average: {:.4}  StdDev: {:.2}\nMin: {}  Median: {:.4}  Max: {}\n\
             Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}\n{}\n",
            s.count,
            s.average,
            s.standard_deviation,
            s.min,
            s.median,
            s.max,
            s.median,
            self.percentile(75.0),
            s.percentile99,
            self.percentile(99.9),
            self.percentile(99.99),
            "-".repeat(54),
        );
        let mut below = 0;
        for (at, bucket) in self.buckets.iter().enumerate() {
            let here = bucket.load(Relaxed);
            if here == 0 {
                continue;
            }
            below += here;
            let share = |n: u64| 100.0 * n as f64 / s.count.max(1) as f64;
            let (open, left) = if at == 0 {
                ('[', 0)
            } else {
                ('(', LIMITS[at - 1])
            };
            let marks = (share(here) / 5.0 + 0.5) as usize;
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "{open} {left:>7}, {:>7} ] {here:>8} {:>7.3}% {:>7.3}% {}",
                LIMITS[at],
                share(here),
                share(below),
                "#".repeat(marks.min(20)),
            );
        }
        out
    }

    /// The figures that are usually wanted.
    pub fn summary(&self) -> HistogramSummary {
        let (count, sum) = (self.count.load(Relaxed), self.sum.load(Relaxed));
        let average = if count == 0 {
            0.0
        } else {
            sum as f64 / count as f64
        };
        let squares = self.sum_squares.load(Relaxed) as f64;
        let variance = if count == 0 {
            0.0
        } else {
            squares / count as f64 - average * average
        };
        HistogramSummary {
            count,
            sum,
            min: if count == 0 {
                0
            } else {
                self.min.load(Relaxed)
            },
            max: self.max.load(Relaxed),
            average,
            standard_deviation: variance.max(0.0).sqrt(),
            median: self.percentile(50.0),
            percentile95: self.percentile(95.0),
            percentile99: self.percentile(99.0),
        }
    }
}

/// A histogram in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HistogramSummary {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Their mean.
    pub average: f64,
    /// How far they spread around it.
    pub standard_deviation: f64,
    /// Half of them are below.
    pub median: f64,
    /// 95 in a hundred are below.
    pub percentile95: f64,
    /// 99 in a hundred are below.
    pub percentile99: f64,
}
