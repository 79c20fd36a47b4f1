//! Counters and histograms of a database, by RocksDB's names and numbers.
//!
//! Counters are split over shards that threads take turns in, so that counting does not move cache
//! lines between cores; reading adds the shards up. A database without statistics holds `None` and
//! pays one branch. Thread-safety: everything may be called from anywhere.

use super::histogram::{BUCKETS, Histogram, HistogramSummary};
use super::names::{HistogramId, Ticker};
use esker_sync::Arc;
use esker_sync::CachePadded;
use esker_sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::fmt;

/// How much is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum StatsLevel {
    /// Nothing.
    DisableAll = 0,
    /// Counters only.
    ExceptHistogramOrTimers = 1,
    /// Counters, and histograms of sizes.
    ExceptTimers = 2,
    /// Everything but times of locks and of compression.
    #[default]
    ExceptDetailedTimers = 3,
    /// Everything but times of locks.
    ExceptTimeForMutex = 4,
    /// Everything.
    All = 5,
}

impl StatsLevel {
    const ALL_LEVELS: [StatsLevel; 6] = [
        StatsLevel::DisableAll,
        StatsLevel::ExceptHistogramOrTimers,
        StatsLevel::ExceptTimers,
        StatsLevel::ExceptDetailedTimers,
        StatsLevel::ExceptTimeForMutex,
        StatsLevel::All,
    ];
}

/// Shards: a power of two.
const SHARDS: usize = 8;

struct Shard {
    tickers: [AtomicU64; Ticker::COUNT],
    histograms: [Histogram; HistogramId::COUNT],
}

impl Shard {
    fn boxed() -> Box<CachePadded<Shard>> {
        Box::new(CachePadded::new(Shard {
            tickers: [const { AtomicU64::new(0) }; Ticker::COUNT],
            histograms: [const { Histogram::new() }; HistogramId::COUNT],
        }))
    }
}

/// The statistics of a database, or of several that share them.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::observe::{Statistics, Ticker};
///
/// let statistics = Statistics::new();
/// let options = esker::Options::new().create_if_missing(true).statistics(statistics.clone());
/// let db = esker::Db::open(dir.path(), options)?;
/// db.put("key", "value")?;
/// assert_eq!(statistics.ticker(Ticker::NumberKeysWritten), 1);
/// println!("{statistics}");
/// # Ok(())
/// # }
/// ```
pub struct Statistics {
    level: AtomicU8,
    shards: [Box<CachePadded<Shard>>; SHARDS],
}

thread_local! {
    static SHARD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Relaxed) % SHARDS
    };
}

impl Statistics {
    /// Nothing counted yet, at the default level.
    pub fn new() -> Arc<Statistics> {
        Arc::new(Statistics {
            level: AtomicU8::new(StatsLevel::default() as u8),
            shards: std::array::from_fn(|_| Shard::boxed()),
        })
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        size_of::<Statistics>() + SHARDS * size_of::<CachePadded<Shard>>()
    }

    #[inline]
    fn shard(&self) -> &Shard {
        &self.shards[SHARD.with(|s| *s)]
    }

    /// How much is counted.
    pub fn level(&self) -> StatsLevel {
        StatsLevel::ALL_LEVELS[usize::from(self.level.load(Relaxed)).min(5)]
    }

    /// Counts as much as `level` says from now on.
    pub fn set_level(&self, level: StatsLevel) {
        self.level.store(level as u8, Relaxed);
    }

    /// Returns whether times are worth taking.
    #[inline]
    pub fn wants_times(&self) -> bool {
        self.level.load(Relaxed) >= StatsLevel::ExceptDetailedTimers as u8
    }

    /// Adds `count` to a counter.
    #[inline]
    pub fn add(&self, ticker: Ticker, count: u64) {
        if self.level.load(Relaxed) != StatsLevel::DisableAll as u8 {
            self.shard().tickers[ticker as usize].fetch_add(count, Relaxed);
        }
    }

    /// Adds one to a counter.
    #[inline]
    pub fn count(&self, ticker: Ticker) {
        self.add(ticker, 1);
    }

    /// Adds a value to a histogram.
    #[inline]
    pub fn record(&self, histogram: HistogramId, value: u64) {
        if self.level.load(Relaxed) > StatsLevel::ExceptHistogramOrTimers as u8 {
            self.shard().histograms[histogram as usize].add(value);
        }
    }

    /// The value of a counter.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::observe::{Statistics, Ticker};
    ///
    /// let statistics = Statistics::new();
    /// let options = esker::Options::new().create_if_missing(true).statistics(statistics.clone());
    /// let db = esker::Db::open(dir.path(), options)?;
    /// assert_eq!(db.get("key")?, None);
    /// assert_eq!(statistics.ticker(Ticker::NumberKeysRead), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ticker(&self, ticker: Ticker) -> u64 {
        self.shards
            .iter()
            .map(|s| s.tickers[ticker as usize].load(Relaxed))
            .fold(0, u64::wrapping_add)
    }

    /// Sets a counter.
    pub fn set_ticker(&self, ticker: Ticker, value: u64) {
        for (at, shard) in self.shards.iter().enumerate() {
            shard.tickers[ticker as usize].store(if at == 0 { value } else { 0 }, Relaxed);
        }
    }

    /// The value of a counter, which becomes 0; what is counted meanwhile is not lost.
    ///
    /// ```
    /// use esker::observe::{Statistics, Ticker};
    ///
    /// let statistics = Statistics::new();
    /// statistics.add(Ticker::NumberKeysRead, 3);
    /// assert_eq!(statistics.take_ticker(Ticker::NumberKeysRead), 3);
    /// assert_eq!(statistics.ticker(Ticker::NumberKeysRead), 0);
    /// ```
    pub fn take_ticker(&self, ticker: Ticker) -> u64 {
        self.shards
            .iter()
            .map(|s| s.tickers[ticker as usize].swap(0, Relaxed))
            .fold(0, u64::wrapping_add)
    }

    /// A histogram in figures.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::observe::{HistogramId, Statistics};
    ///
    /// let statistics = Statistics::new();
    /// let options = esker::Options::new().create_if_missing(true).statistics(statistics.clone());
    /// let db = esker::Db::open(dir.path(), options)?;
    /// db.get("key")?;
    /// let times = statistics.histogram(HistogramId::DbGet);
    /// assert_eq!(times.count, 1);
    /// println!("99 of 100 reads took less than {} microseconds", times.percentile99);
    /// # Ok(())
    /// # }
    /// ```
    pub fn histogram(&self, histogram: HistogramId) -> HistogramSummary {
        self.merged(histogram).summary()
    }

    /// A histogram's value at `percent`.
    pub fn percentile(&self, histogram: HistogramId, percent: f64) -> f64 {
        self.merged(histogram).percentile(percent)
    }

    /// A histogram's counts by bucket, and the sum of its values.
    pub(super) fn buckets(&self, histogram: HistogramId) -> ([u64; BUCKETS], u64) {
        self.merged(histogram).buckets()
    }

    fn merged(&self, histogram: HistogramId) -> Histogram {
        let all = Histogram::new();
        for shard in &self.shards {
            all.merge(&shard.histograms[histogram as usize]);
        }
        all
    }

    /// Forgets everything.
    pub fn reset(&self) {
        for shard in &self.shards {
            for ticker in &shard.tickers {
                ticker.store(0, Relaxed);
            }
            for histogram in &shard.histograms {
                histogram.clear();
            }
        }
    }
}

impl fmt::Display for Statistics {
    /// One line per statistic, in RocksDB's form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &ticker in Ticker::ALL {
            writeln!(f, "{} COUNT : {}", ticker.name(), self.ticker(ticker))?;
        }
        for &id in HistogramId::ALL {
            let h = self.histogram(id);
            writeln!(
                f,
                "{} P50 : {:.6} P95 : {:.6} P99 : {:.6} P100 : {:.6} COUNT : {} SUM : {}",
                id.name(),
                h.median,
                h.percentile95,
                h.percentile99,
                h.max as f64,
                h.count,
                h.sum
            )?;
        }
        Ok(())
    }
}

impl fmt::Debug for Statistics {
    /// Only the counters that moved.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moved = Ticker::ALL
            .iter()
            .map(|t| (t.name(), self.ticker(*t)))
            .filter(|(_, n)| *n > 0);
        f.debug_map().entries(moved).finish()
    }
}
