//! Bytes that flushes and compactions of a family moved: for write amplification and the
//! compaction table.
//!
//! Jobs enter one [`CompactionStats`] each when they end, a few a second, so one lock holds all of
//! it. Readers of single figures and the writers of the table take a copy. Thread-safety: any
//! thread.

use esker_files::table::StageTimes;
use esker_format::Level;
use esker_sync::{Mutex, Rank};

/// Work of one job, or of all jobs of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactionStats {
    /// Bytes read from levels above the output.
    pub(crate) bytes_read_upper: u64,
    /// Bytes read from the output level.
    pub(crate) bytes_read_output: u64,
    /// Bytes of blobs read.
    pub(crate) bytes_read_blob: u64,
    /// Bytes of tables written.
    pub(crate) bytes_written: u64,
    /// Bytes of those before compression.
    pub(crate) bytes_written_raw: u64,
    /// Bytes of the records of blob files written.
    pub(crate) bytes_written_blob: u64,
    /// Bytes of files that changed their level without being rewritten.
    pub(crate) bytes_moved: u64,
    /// Time from start to installation.
    pub(crate) micros: u64,
    /// Processor time of the job's threads.
    pub(crate) cpu_micros: u64,
    /// Jobs.
    pub(crate) jobs: u64,
    /// Entries read.
    pub(crate) input_records: u64,
    /// Entries that were not written again.
    pub(crate) dropped_records: u64,
    /// Bytes of the entries that a flush read from memtables, or of the files that a compaction
    /// read.
    pub(crate) bytes_in: u64,
    /// Entries read, by flushes too.
    pub(crate) entries_in: u64,
    /// Entries written.
    pub(crate) entries_out: u64,
    /// Processor time by stage.
    pub(crate) stages: StageTimes,
}

impl CompactionStats {
    fn combine(&self, other: &CompactionStats, f: impl Fn(u64, u64) -> u64) -> CompactionStats {
        CompactionStats {
            bytes_read_upper: f(self.bytes_read_upper, other.bytes_read_upper),
            bytes_read_output: f(self.bytes_read_output, other.bytes_read_output),
            bytes_read_blob: f(self.bytes_read_blob, other.bytes_read_blob),
            bytes_written: f(self.bytes_written, other.bytes_written),
            bytes_written_raw: f(self.bytes_written_raw, other.bytes_written_raw),
            bytes_written_blob: f(self.bytes_written_blob, other.bytes_written_blob),
            bytes_moved: f(self.bytes_moved, other.bytes_moved),
            micros: f(self.micros, other.micros),
            cpu_micros: f(self.cpu_micros, other.cpu_micros),
            jobs: f(self.jobs, other.jobs),
            input_records: f(self.input_records, other.input_records),
            dropped_records: f(self.dropped_records, other.dropped_records),
            bytes_in: f(self.bytes_in, other.bytes_in),
            entries_in: f(self.entries_in, other.entries_in),
            entries_out: f(self.entries_out, other.entries_out),
            stages: self.stages.combine(&other.stages, &f),
        }
    }

    /// Both together.
    pub(crate) fn plus(&self, other: &CompactionStats) -> CompactionStats {
        self.combine(other, u64::wrapping_add)
    }

    /// The difference to `earlier`.
    pub(crate) fn since(&self, earlier: &CompactionStats) -> CompactionStats {
        self.combine(earlier, u64::wrapping_sub)
    }

    /// Nanoseconds a byte that was read, if any was: of jobs that wait or of those with several
    /// threads, by what takes longer.
    fn pace(&self) -> Option<f64> {
        let micros = self.micros.max(self.cpu_micros);
        (self.bytes_in > 0).then(|| micros as f64 * 1_000.0 / self.bytes_in as f64)
    }

    /// Everything written.
    pub(crate) fn all_written(&self) -> u64 {
        self.bytes_written + self.bytes_written_blob
    }

    /// Everything read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read_upper + self.bytes_read_output + self.bytes_read_blob
    }
}

/// Ingested files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IngestionCounts {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    /// Those among them that went to level 0.
    pub(crate) level0_files: u64,
    pub(crate) keys: u64,
}

/// Which threads did the work; the names are RocksDB's thread pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    /// Compactions.
    Low,
    /// Flushes.
    High,
    /// Compactions that a caller asked for.
    User,
}

impl Pool {
    pub(crate) const ALL: [Pool; 3] = [Pool::Low, Pool::High, Pool::User];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Pool::Low => "Low",
            Pool::High => "High",
            Pool::User => "User",
        }
    }
}

/// All the work since the database was opened.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    /// By output level, up to the deepest that was written; flushes go to level 0.
    levels: Vec<CompactionStats>,
    /// By pool, up to the last that worked.
    pools: Vec<CompactionStats>,
    /// Bytes that all of it wrote.
    bytes_written: u64,
    /// Flushes alone.
    pub(crate) flush: CompactionStats,
    /// Ingestions alone.
    pub(crate) ingested: IngestionCounts,
}

impl Totals {
    /// Work into `level`; zero for a level that does not exist.
    pub(crate) fn level(&self, level: usize) -> CompactionStats {
        self.levels.get(level).copied().unwrap_or_default()
    }

    pub(crate) fn pool(&self, pool: Pool) -> CompactionStats {
        self.pools.get(pool as usize).copied().unwrap_or_default()
    }

    /// All compactions, without flushes.
    pub(crate) fn compaction(&self) -> CompactionStats {
        self.all().since(&self.flush)
    }

    /// Compactions and flushes.
    pub(crate) fn all(&self) -> CompactionStats {
        self.levels
            .iter()
            .fold(CompactionStats::default(), |sum, w| sum.plus(w))
    }
}

/// The compaction table as last written into the LOG: intervals count from there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastDump {
    pub(crate) at_us: u64,
    pub(crate) work: CompactionStats,
    pub(crate) flush_bytes: u64,
    pub(crate) stalls: u64,
    pub(crate) ingested: IngestionCounts,
}

/// Counters by output level; all since the database was opened.
#[derive(Debug)]
pub(crate) struct LevelCounters {
    totals: Mutex<Box<Totals>>,
    dumped: Mutex<LastDump>,
}

impl Default for LevelCounters {
    fn default() -> Self {
        let none = Totals {
            levels: Vec::new(),
            pools: Vec::new(),
            bytes_written: 0,
            flush: CompactionStats::default(),
            ingested: IngestionCounts::default(),
        };
        LevelCounters {
            totals: Mutex::new(Rank::LEAF, Box::new(none)),
            dumped: Mutex::new(Rank::LEAF, LastDump::default()),
        }
    }
}

/// Adds to the sum with a number. Sums that nobody added to take no memory: most families never
/// write to most levels.
fn add_at(sums: &mut Vec<CompactionStats>, index: usize, work: &CompactionStats) {
    if sums.len() <= index {
        sums.resize_with(index + 1, CompactionStats::default);
    }
    sums[index] = sums[index].plus(work);
}

impl LevelCounters {
    fn enter(totals: &mut Totals, level: Level, pool: Pool, work: &CompactionStats) {
        add_at(&mut totals.levels, level.index(), work);
        totals.bytes_written += work.bytes_written;
        add_at(&mut totals.pools, pool as usize, work);
    }

    /// Nanoseconds that compactions took a byte, if there were any.
    pub(crate) fn merge_pace(&self) -> Option<f64> {
        let totals = self.totals.lock();
        totals.pool(Pool::Low).plus(&totals.pool(Pool::User)).pace()
    }

    /// A flush ended.
    pub(crate) fn flushed(&self, work: &CompactionStats) {
        let mut totals = self.totals.lock();
        Self::enter(&mut totals, Level::L0, Pool::High, work);
        totals.flush = totals.flush.plus(work);
    }

    /// A compaction into `level` ended.
    pub(crate) fn compacted(&self, level: Level, manual: bool, work: &CompactionStats) {
        let pool = if manual { Pool::User } else { Pool::Low };
        Self::enter(&mut self.totals.lock(), level, pool, work);
    }

    /// A file with `keys` entries was ingested at `level`.
    pub(crate) fn ingested(&self, level: Level, keys: u64, work: &CompactionStats) {
        let mut totals = self.totals.lock();
        Self::enter(&mut totals, level, Pool::User, work);
        let all = &mut totals.ingested;
        all.bytes += work.bytes_written + work.bytes_moved;
        all.files += 1;
        all.level0_files += u64::from(level == Level::L0);
        all.keys += keys;
    }

    /// Sets everything back to 0.
    pub(crate) fn reset(&self) {
        let mut totals = self.totals.lock();
        totals.levels.clear();
        totals.pools.clear();
        totals.bytes_written = 0;
        totals.flush = CompactionStats::default();
        totals.ingested = IngestionCounts::default();
        drop(totals);
        *self.dumped.lock() = LastDump::default();
    }

    /// Bytes that flushes wrote, and those that compactions did.
    pub(crate) fn bytes_written(&self) -> (u64, u64) {
        let totals = self.totals.lock();
        let flush = totals.flush.bytes_written;
        (flush, totals.bytes_written - flush)
    }

    /// A copy of everything.
    pub(crate) fn totals(&self) -> Box<Totals> {
        self.totals.lock().clone()
    }

    /// Returns the figures of the last dump.
    pub(crate) fn dumped(&self) -> LastDump {
        *self.dumped.lock()
    }

    /// Intervals count from `now` on.
    pub(crate) fn set_dumped(&self, now: LastDump) {
        *self.dumped.lock() = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_entered_by_level_and_pool() {
        let traffic = LevelCounters::default();
        let flush = CompactionStats {
            bytes_written: 100,
            jobs: 1,
            ..CompactionStats::default()
        };
        traffic.flushed(&flush);
        let compaction = CompactionStats {
            bytes_read_upper: 60,
            bytes_read_output: 40,
            bytes_written: 90,
            jobs: 1,
            ..CompactionStats::default()
        };
        traffic.compacted(Level(3), true, &compaction);
        let totals = traffic.totals();
        assert_eq!(totals.level(0), flush);
        assert_eq!(totals.level(3), compaction);
        assert_eq!(totals.level(99), CompactionStats::default());
        assert_eq!(totals.pool(Pool::High), flush);
        assert_eq!(totals.pool(Pool::User), compaction);
        assert_eq!(totals.pool(Pool::Low), CompactionStats::default());
        assert_eq!(totals.compaction(), compaction);
        assert_eq!(totals.all().bytes_written, 190);
        assert_eq!(traffic.bytes_written(), (100, 90));
        assert_eq!(totals.all().since(&flush), compaction);
        assert_eq!(compaction.bytes_read(), 100);
    }
}
