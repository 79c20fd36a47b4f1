//! Latencies second by second, in little room: what a figure over a whole run hides.
//!
//! A thread counts in buckets that are 3 % wide and keeps, for each second, those that are not
//! empty. The seconds of threads are added up afterwards.

use std::time::{Duration, Instant};

/// Buckets for each power of two.
const PARTS: usize = 32;
const BITS: u32 = PARTS.trailing_zeros();
/// Up to 2^40 nanoseconds, a quarter of an hour; what is longer counts there.
const BUCKETS: usize = (40 - BITS as usize + 1) * PARTS;

fn bucket(nanos: u64) -> usize {
    if nanos < PARTS as u64 {
        return nanos as usize;
    }
    let power = nanos.ilog2() - BITS;
    let at = (power as usize * PARTS) + (nanos >> power) as usize;
    at.min(BUCKETS - 1)
}

/// The middle of a bucket, in nanoseconds.
fn middle(bucket: usize) -> f64 {
    if bucket < 2 * PARTS {
        return bucket as f64;
    }
    let power = bucket / PARTS - 1;
    let low = (PARTS + bucket % PARTS) as u64;
    (((low << power) + ((low + 1) << power)) / 2) as f64
}

/// The counts of one second: bucket and number, by bucket.
type Sparse = Vec<(u16, u32)>;

/// Counts of one thread.
#[derive(Debug)]
pub(super) struct ThreadCounts {
    start: Instant,
    until: Instant,
    counts: Vec<u32>,
    longest: u64,
    done: Vec<(Sparse, u64)>,
}

const SECOND: Duration = Duration::from_secs(1);

impl ThreadCounts {
    pub(super) fn start(now: Instant) -> ThreadCounts {
        ThreadCounts {
            start: now,
            until: now + SECOND,
            counts: vec![0; BUCKETS],
            longest: 0,
            done: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn note(&mut self, now: Instant, took: Duration) {
        if now >= self.until {
            self.rotate(now);
        }
        let nanos = took.as_nanos() as u64;
        self.counts[bucket(nanos)] += 1;
        self.longest = self.longest.max(nanos);
    }

    #[cold]
    fn rotate(&mut self, now: Instant) {
        while now >= self.until {
            let counts = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
            let sparse = counts.map(|(at, n)| (at as u16, *n)).collect();
            self.done.push((sparse, self.longest));
            self.counts.fill(0);
            self.longest = 0;
            self.until = self.start + SECOND * (self.done.len() as u32 + 1);
        }
    }

    /// The whole seconds.
    pub(super) fn finish(mut self, now: Instant) -> Intervals {
        self.rotate(now);
        Intervals(self.done)
    }
}

/// The seconds of one thread, or of all together.
#[derive(Debug, Clone, Default)]
pub struct Intervals(Vec<(Sparse, u64)>);

/// The latencies of one second, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Operations, or steps of several.
    pub count: u64,
    /// Half took at most this long.
    pub p50: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Intervals {
    /// Adds the seconds of another thread.
    pub fn merge(&mut self, other: Intervals) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), (Vec::new(), 0));
        }
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            mine.0.extend(theirs.0);
            mine.0.sort_unstable();
            mine.1 = mine.1.max(theirs.1);
        }
    }

    /// The latencies of each second.
    pub fn rows(&self) -> Vec<Interval> {
        self.0.iter().map(Interval::of).collect()
    }
}

impl Interval {
    fn of((counts, longest): &(Sparse, u64)) -> Interval {
        let count: u64 = counts.iter().map(|(_, n)| u64::from(*n)).sum();
        let at = |part: f64| {
            let wanted = (count as f64 * part).ceil() as u64;
            let mut seen = 0;
            let found = counts.iter().find(|(_, n)| {
                seen += u64::from(*n);
                seen >= wanted
            });
            found.map_or(0.0, |(bucket, _)| middle(usize::from(*bucket)) / 1000.0)
        };
        Interval {
            count,
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: *longest as f64 / 1000.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for nanos in (0..200u64).chain((8..39).map(|bit| (1u64 << bit) + 12_345)) {
            let at = bucket(nanos);
            assert!(at >= last, "{nanos}");
            last = at;
            let off = (middle(at) - nanos as f64).abs();
            assert!(
                off <= nanos as f64 / 32.0,
                "{nanos} is taken for {}",
                middle(at)
            );
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn seconds_of_threads_are_added_up() {
        let start = Instant::now();
        let thread = |millis: u64| {
            let mut counting = ThreadCounts::start(start);
            for i in 1..=100u64 {
                counting.note(
                    start + Duration::from_millis(i * 25),
                    Duration::from_millis(millis),
                );
            }
            counting.finish(start + Duration::from_millis(2600))
        };
        let mut all = thread(1);
        all.merge(thread(9));
        let rows = all.rows();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[0].count, 78,
            "39 of each thread end in the first second"
        );
        assert!((rows[0].p50 / 1000.0 - 1.0).abs() < 0.04, "{rows:?}");
        assert!((rows[1].p99 / 9000.0 - 1.0).abs() < 0.04, "{rows:?}");
        assert_eq!(rows[1].max, 9000.0);
    }
}
