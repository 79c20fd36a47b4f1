//! Where the slowest operations of a thread spent their time: `--slowest=N`.
//!
//! A percentile says that an operation was slow, and not why. Before each operation the engine's
//! perf context is set to zero, and when one turns out to be among the slowest its times are kept,
//! with what the kernel says: how long the thread ran, how long it was ready to and did not, and
//! how long the host ran something else on this machine's processors. What none of them explains is
//! sleep that the engine did not account for. Both engines tell their times under RocksDB's names,
//! so one can be held against the other.
//!
//! It costs an operation some hundred nanoseconds, so rates with it are no figures to compare.

use std::fmt;
use std::time::{Duration, Instant};

use crate::process::ThreadUsage;

/// How many operations go between two looks at what the kernel says: a slow one has at most theirs
/// in its figures.
const OPERATIONS_BETWEEN_LOOKS: u32 = 1024;

/// An engine's account of what the calling thread spent its time on.
pub trait Account {
    /// Begins a new one.
    fn reset(&mut self);
    /// Returns the entries since the last call: `name = value, name = value`, times in nanoseconds.
    fn report(&mut self) -> String;
}

/// A slow operation.
#[derive(Debug, Clone)]
pub struct Slow {
    /// When it ended, from the begin of the benchmark on.
    at: Duration,
    took: Duration,
    usage: ThreadUsage,
    report: String,
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        write!(
            f,
            "{:.2} ms at second {:.1}: ran {:.2}, waited for a processor {:.2}, the host took {:.0}",
            ms(self.took),
            self.at.as_secs_f64(),
            ms(self.usage.ran),
            ms(self.usage.waited),
            ms(self.usage.stolen)
        )?;
        for (name, time) in times(&self.report) {
            // What takes less than a hundredth of it explains nothing.
            if time * 100 >= self.took {
                write!(f, ", {name} {:.2}", ms(time))?;
            }
        }
        Ok(())
    }
}

/// The figures of a report that are times.
fn times(report: &str) -> impl Iterator<Item = (&str, Duration)> {
    report.split(", ").filter_map(|figure| {
        let (name, value) = figure.split_once(" = ")?;
        let is_time = name.ends_with("_time") || name.ends_with("_nanos");
        let nanos = value.parse().ok()?;
        is_time.then(|| (name, Duration::from_nanos(nanos)))
    })
}

/// The slowest operations of one thread.
pub struct SlowOperations {
    wanted: usize,
    account: Box<dyn Account>,
    began: Instant,
    looked: ThreadUsage,
    since_look: u32,
    /// The slowest first.
    slow: Vec<Slow>,
}

impl SlowOperations {
    /// Keeps this many operations of the calling thread, which begins now.
    pub fn of(wanted: usize, mut account: Box<dyn Account>) -> SlowOperations {
        account.reset();
        SlowOperations {
            wanted,
            account,
            began: Instant::now(),
            looked: ThreadUsage::now(),
            since_look: 0,
            slow: Vec::new(),
        }
    }

    /// An operation ended now that took so long.
    pub fn note(&mut self, now: Instant, took: Duration) {
        self.since_look += 1;
        let fits = self.slow.len() < self.wanted;
        if fits || self.slow.last().is_some_and(|last| took > last.took) {
            self.keep(now, took);
        } else if self.since_look >= OPERATIONS_BETWEEN_LOOKS {
            self.look();
        }
        self.account.reset();
    }

    fn look(&mut self) -> ThreadUsage {
        self.since_look = 0;
        let now = ThreadUsage::now();
        now.since(std::mem::replace(&mut self.looked, now))
    }

    #[cold]
    fn keep(&mut self, now: Instant, took: Duration) {
        let usage = self.look();
        self.slow.push(Slow {
            at: now.saturating_duration_since(self.began),
            took,
            usage,
            report: self.account.report(),
        });
        self.slow = merged(std::mem::take(&mut self.slow), self.wanted);
    }

    /// The slowest first.
    pub fn into_slow(self) -> Vec<Slow> {
        self.slow
    }
}

/// The slowest of these, this many at most, the slowest first.
pub(crate) fn merged(mut all: Vec<Slow>, wanted: usize) -> Vec<Slow> {
    all.sort_by_key(|slow| std::cmp::Reverse(slow.took));
    all.truncate(wanted);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Told(&'static str);

    impl Account for Told {
        fn reset(&mut self) {}
        fn report(&mut self) -> String {
            self.0.to_string()
        }
    }

    #[test]
    fn the_slowest_are_kept_with_the_times_that_explain_them() {
        let report = "block_read_count = 7, write_delay_time = 9000000, write_wal_time = 500, db_mutex_lock_nanos = 1000000, ";
        let mut slowest = SlowOperations::of(2, Box::new(Told(report)));
        let began = slowest.began;
        for ms in [1, 10, 3, 2] {
            slowest.note(began + Duration::from_secs(2), Duration::from_millis(ms));
        }
        let lines: Vec<String> = slowest.into_slow().iter().map(Slow::to_string).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].starts_with("10.00 ms at second 2.0: ran "),
            "{lines:?}"
        );
        assert!(
            lines[0].ends_with(", write_delay_time 9.00, db_mutex_lock_nanos 1.00"),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("3.00 ms "), "{lines:?}");
    }
}
