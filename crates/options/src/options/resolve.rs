//! Turns values as given into values to run with: what 0 and -1 stand for, and RocksDB's limits.
//!
//! Pure functions; called once at open and again when an option changes.

use super::{CompactionStyle, DbOptions, FamilyOptions, TableFormat};
use crate::memory::{MemoryBudget, MemoryBudgetOptions};
use esker_cache::CacheOptions;
use esker_lsm::off_peak::DailyHours;

/// Thirty days, in seconds: what RocksDB's "choose for me" means for `ttl`.
const THIRTY_DAYS: u64 = 30 * 24 * 60 * 60;
/// RocksDB's "choose for me" in `ttl` and `periodic_compaction_seconds`.
const CHOOSE: u64 = esker_lsm::policy::CHOOSE_SECONDS;
/// The rate of slowed writers when none is given.
const DEFAULT_DELAYED_WRITE_RATE: u64 = 16 << 20;

/// Most jobs of a kind: each has a thread, and a number out of range must not exhaust the machine.
const MOST_JOBS: i32 = 256;

/// Background jobs by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Flushes at once.
    pub flushes: usize,
    /// Flushes at once while as many compactions fewer run than may.
    pub most_flushes: usize,
    /// Compactions at once.
    pub compactions: usize,
}

impl DbOptions {
    /// The values to run with.
    #[must_use]
    pub fn resolve(&self) -> DbOptions {
        let mut o = self.clone();
        if o.delayed_write_rate == 0 {
            let limiter = o.rate_limiter.as_ref();
            o.delayed_write_rate =
                match limiter.map_or(o.rate_limiter_bytes_per_sec, |l| l.bytes_per_second()) {
                    0 => DEFAULT_DELAYED_WRITE_RATE,
                    rate => rate,
                };
        }
        o.max_background_jobs = o.max_background_jobs.max(1);
        o.max_subcompactions = o.max_subcompactions.max(1);
        o.keep_log_file_num = o.keep_log_file_num.max(1);
        if o.max_open_files != -1 {
            o.max_open_files = o.max_open_files.max(20);
        }
        let direct = o.use_direct_reads || o.use_direct_io_for_compaction_reads;
        if direct && o.compaction_readahead_size == 0 {
            o.compaction_readahead_size = 2 << 20;
        }
        if o.bytes_per_sync == 0 && (o.rate_limiter.is_some() || o.rate_limiter_bytes_per_sec > 0) {
            o.bytes_per_sync = 1 << 20;
        }
        // A recycled log may end in another log's records, which these modes could not tell apart.
        // One in the archive stays.
        use super::WalRecoveryMode as Mode;
        let is_archived = o.wal_ttl_seconds > 0 || o.wal_size_limit_mb > 0;
        if is_archived
            || matches!(
                o.wal_recovery_mode,
                Mode::TolerateCorruptedTailRecords | Mode::AbsoluteConsistency
            )
        {
            o.recycle_log_file_num = 0;
        }
        o
    }

    /// Makes the budget that `memory_budget` asks for, with a block cache of the kind of `cache`,
    /// unless one that is shared was given.
    pub fn make_memory_budget(&mut self, cache: CacheOptions) {
        if self.shared_memory_budget.is_none() && self.memory_budget > 0 {
            let mut options = MemoryBudgetOptions::with_total(self.memory_budget);
            options.cache = cache;
            self.shared_memory_budget = Some(MemoryBudget::new(options));
        }
    }

    /// The hours of little load; `None` where there are none.
    pub fn off_peak_hours(&self) -> Option<DailyHours> {
        DailyHours::parse(&self.daily_offpeak_time_utc).filter(|hours| !hours.is_empty())
    }

    /// How many jobs of each kind may run at once: RocksDB's split of `max_background_jobs`, but
    /// that flushes take over what compactions leave unused of it.
    pub fn job_limits(&self) -> JobLimits {
        let count = |n: i32| usize::try_from(n.clamp(1, MOST_JOBS)).unwrap_or(1);
        if self.max_background_flushes == -1 && self.max_background_compactions == -1 {
            let jobs = count(self.max_background_jobs);
            let flushes = (jobs / 4).max(1);
            let compactions = jobs.saturating_sub(flushes).max(1);
            return JobLimits {
                flushes,
                most_flushes: (2 * flushes).min(flushes + compactions),
                compactions,
            };
        }
        let flushes = count(self.max_background_flushes);
        JobLimits {
            flushes,
            most_flushes: flushes,
            compactions: count(self.max_background_compactions),
        }
    }
}

impl FamilyOptions {
    /// Returns whether tables are read back from end to end once they are written.
    pub fn checks_new_tables(&self) -> bool {
        self.paranoid_file_checks
            || self.table.verify_compression
            || self.table.detect_filter_construct_corruption
    }

    /// The values to run with.
    #[must_use]
    pub fn resolve(&self) -> FamilyOptions {
        let mut o = self.clone();
        // What tables are really written as: that is what OPTIONS files have to say.
        o.table_factory = TableFormat::BlockBased;
        o.plain_table_factory.clear();
        o.write_buffer_size = o.write_buffer_size.max(64 << 10);
        if o.arena_block_size == 0 {
            // Rounded up to whole pages, as RocksDB does.
            o.arena_block_size = (o.write_buffer_size / 8)
                .min(1 << 20)
                .next_multiple_of(4096);
        }
        o.max_write_buffer_number = o.max_write_buffer_number.max(2);
        o.min_write_buffer_number_to_merge = o
            .min_write_buffer_number_to_merge
            .clamp(1, o.max_write_buffer_number - 1);
        o.num_levels = match o.compaction_style {
            CompactionStyle::Level => o.num_levels.max(2),
            _ => o.num_levels.max(1),
        };
        o.level0_file_num_compaction_trigger = o.level0_file_num_compaction_trigger.max(1);
        o.level0_slowdown_writes_trigger = o
            .level0_slowdown_writes_trigger
            .max(o.level0_file_num_compaction_trigger);
        o.level0_stop_writes_trigger = o
            .level0_stop_writes_trigger
            .max(o.level0_slowdown_writes_trigger);
        if o.compaction_style == CompactionStyle::Fifo {
            // All tables are at level 0, and go when they are too many: that is no reason to hold
            // writers back.
            o.level0_slowdown_writes_trigger = i32::MAX;
            o.level0_stop_writes_trigger = i32::MAX;
        }
        if o.soft_pending_compaction_bytes_limit == 0 {
            o.soft_pending_compaction_bytes_limit = o.hard_pending_compaction_bytes_limit;
        } else if o.hard_pending_compaction_bytes_limit > 0 {
            o.soft_pending_compaction_bytes_limit = o
                .soft_pending_compaction_bytes_limit
                .min(o.hard_pending_compaction_bytes_limit);
        }
        o.target_file_size_base = o.target_file_size_base.max(1);
        // Tiers of a FIFO tree are computed, unless a size is given.
        let has_tiers = o.compaction_style == CompactionStyle::Fifo
            && o.compaction_options_fifo.use_kv_ratio_compaction;
        if o.max_compaction_bytes == 0 && !has_tiers {
            o.max_compaction_bytes = o.target_file_size_base.saturating_mul(25);
        }
        o.max_bytes_for_level_base = o.max_bytes_for_level_base.max(1);
        if o.max_bytes_for_level_multiplier <= 0.0 {
            o.max_bytes_for_level_multiplier = 1.0;
        }
        o.memtable_prefix_bloom_size_ratio = o.memtable_prefix_bloom_size_ratio.clamp(0.0, 0.25);
        // Which path a level goes to follows from the levels' sizes, which must then be known
        // beforehand.
        if o.compaction_style != CompactionStyle::Level || o.cf_paths.len() > 1 {
            o.level_compaction_dynamic_level_bytes = false;
        }
        o.resolve_ages();
        o
    }

    fn resolve_ages(&mut self) {
        if self.ttl == CHOOSE {
            self.ttl = THIRTY_DAYS;
        }
        let filtered = self.compaction_filter.is_some() || self.compaction_filter_factory.is_some();
        if self.periodic_compaction_seconds == CHOOSE {
            self.periodic_compaction_seconds = match self.compaction_style {
                CompactionStyle::Universal => THIRTY_DAYS,
                CompactionStyle::Level if filtered => THIRTY_DAYS,
                _ => 0,
            };
        }
        // A universal tree rewrites everything for either: the stricter one counts.
        if self.compaction_style == CompactionStyle::Universal {
            self.periodic_compaction_seconds = match (self.periodic_compaction_seconds, self.ttl) {
                (0, ttl) => ttl,
                (period, 0) => period,
                (period, ttl) => period.min(ttl),
            };
        }
        if self.compaction_style == CompactionStyle::None {
            self.ttl = 0;
        }
    }
}

impl FamilyOptions {
    /// The values to run with in a database with these options: its paths where the family has none
    /// of its own, and memtables of the size that its memory budget gives.
    #[must_use]
    pub fn resolve_in(&self, db: &DbOptions) -> FamilyOptions {
        let mut o = self.clone();
        if o.cf_paths.is_empty() {
            o.cf_paths.clone_from(&db.db_paths);
        }
        if let Some(budget) = &db.shared_memory_budget {
            o.write_buffer_size = budget.memtable_bytes();
        }
        o.resolve()
    }
}
