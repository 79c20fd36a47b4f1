//! Options as chains of typed calls: for what programs set, by RocksDB's names.
//!
//! A call of [`Options`] sets a field of the database, of its default family or of that family's
//! tables; [`FamilyOptions`] has those of families. Values that RocksDB gives in seconds are
//! [`Duration`]s. What is not here is a field, or goes by [`Options::set`].

use super::{
    BlockCacheSource, CompactionStyle, CompressionType, FamilyOptions, InfoLogLevel, Options,
    PrefixExtractor, WalRecoveryMode,
};
use crate::memory::{MemoryBudget, SstFileManager, WriteBufferManager};
use crate::observe::{EventListener, Logger, Statistics};
use crate::runtime::RateLimiter;
use esker_files::table::BlockCache;
use esker_format::KeyOrder;
use esker_format::filter::FilterPolicy;
use esker_lsm::compaction_filter::{CompactionFilter, CompactionFilterFactory};
use esker_lsm::merge_operator::MergeOperator;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Declares calls that set a field of the same name in a part of the options.
macro_rules! setters {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident[$alias:literal] : $type:ty = $example:literal in $($part:ident).*;
    )*) => {
        impl Options {$(
            $(#[doc = $doc])+
            ///
            /// ```
            #[doc = concat!("let options = esker::Options::new().", stringify!($name), "(", $example, ");")]
            /// # let _given = options;
            /// ```
            #[doc(alias = $alias)]
            #[must_use]
            pub fn $name(mut self, value: $type) -> Self {
                self.$($part).*.$name = value;
                self
            }
        )*}
    };
}

/// Declares calls of both [`Options`] and [`FamilyOptions`].
macro_rules! family_setters {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident[$alias:literal] : $type:ty = $example:literal in family $(. $part:ident)?;
    )*) => {
        setters! {$(
            $(#[doc = $doc])+
            $name[$alias]: $type = $example in family $(. $part)?;
        )*}

        impl FamilyOptions {$(
            $(#[doc = $doc])+
            ///
            /// ```
            #[doc = concat!("let options = esker::FamilyOptions::new().", stringify!($name), "(", $example, ");")]
            /// # let _given = options;
            /// ```
            #[doc(alias = $alias)]
            #[must_use]
            pub fn $name(mut self, value: $type) -> Self {
                self $(.$part)? .$name = value;
                self
            }
        )*}
    };
}

setters! {
    /// Fails when there is a database already.
    error_if_exists["set_error_if_exists"]: bool = "true" in db;
    /// Open table files at most; -1 for no limit.
    max_open_files["set_max_open_files"]: i32 = "1000" in db;
    /// Bytes of log above which the family that holds the oldest one is flushed; 0 for four times
    /// all memtables.
    max_total_wal_size["set_max_total_wal_size"]: u64 = "1 << 30" in db;
    /// Flushes and compactions that may run at once.
    max_background_jobs["set_max_background_jobs"]: i32 = "6" in db;
    /// Parts that one compaction may be split into.
    max_subcompactions["set_max_subcompactions"]: u32 = "4" in db;
    /// Bytes of a table after which write-back begins; 0 leaves it to the kernel.
    bytes_per_sync["set_bytes_per_sync"]: u64 = "1 << 20" in db;
    /// Bytes of a log after which write-back begins; 0 leaves it to the kernel.
    wal_bytes_per_sync["set_wal_bytes_per_sync"]: u64 = "1 << 20" in db;
    /// Reads table files past the page cache.
    use_direct_reads["set_use_direct_reads"]: bool = "true" in db;
    /// Background jobs read and write past the page cache.
    use_direct_io_for_flush_and_compaction["set_use_direct_io_for_flush_and_compaction"]: bool = "true" in db;
    /// Bytes of all memtables of the database together; 0 for no limit.
    db_write_buffer_size["set_db_write_buffer_size"]: usize = "256 << 20" in db;
    /// Bytes for the block cache and the memtables together, which the database divides; 0 for
    /// none.
    memory_budget["MemoryBudget"]: usize = "1 << 30" in db;
    /// LOG files that are kept.
    keep_log_file_num["set_keep_log_file_num"]: usize = "10" in db;
    /// Bytes after which a new LOG file begins; 0 never.
    max_log_file_size["set_max_log_file_size"]: usize = "16 << 20" in db;
    /// Least level of lines that the LOG file keeps.
    info_log_level["set_log_level"]: InfoLogLevel = "esker::options::InfoLogLevel::Warn" in db;
    /// Treatment of damage in the log by recovery.
    wal_recovery_mode["set_wal_recovery_mode"]: WalRecoveryMode = "esker::options::WalRecoveryMode::AbsoluteConsistency" in db;
    /// Codec of the log: none or zstd.
    wal_compression["set_wal_compression_type"]: CompressionType = "esker::options::CompressionType::Zstd" in db;
    /// Leaves log records in memory until `flush_wal`.
    manual_wal_flush["set_manual_wal_flush"]: bool = "true" in db;
    /// Flushes all families together.
    atomic_flush["set_atomic_flush"]: bool = "true" in db;
    /// Bytes a second that slowed writers get; 0 for 16 MiB.
    delayed_write_rate["set_delayed_write_rate"]: u64 = "16 << 20" in db;
    /// Readahead of compactions, in bytes.
    compaction_readahead_size["set_compaction_readahead_size"]: usize = "4 << 20" in db;
    /// Log files kept for reuse; 0 for none.
    recycle_log_file_num["set_recycle_log_file_num"]: usize = "4" in db;
    /// Does not flush at closing what was written past the log.
    avoid_flush_during_shutdown["set_avoid_flush_during_shutdown"]: bool = "true" in db;
    /// Bytes a second that background jobs may write; 0 for no limit.
    rate_limiter_bytes_per_sec["set_ratelimiter"]: u64 = "64 << 20" in db;
}

family_setters! {
    /// Bytes of one memtable.
    write_buffer_size["set_write_buffer_size"]: usize = "64 << 20" in family;
    /// Memtables, the open one included, before writers stop.
    max_write_buffer_number["set_max_write_buffer_number"]: i32 = "4" in family;
    /// Full memtables that are flushed together.
    min_write_buffer_number_to_merge["set_min_write_buffer_number_to_merge"]: i32 = "2" in family;
    /// Codec of table files.
    compression["set_compression_type"]: CompressionType = "esker::options::CompressionType::Zstd" in family;
    /// Codec of the last level; `Disable` for that of the others.
    bottommost_compression["set_bottommost_compression_type"]: CompressionType = "esker::options::CompressionType::Zstd" in family;
    /// Codec by level; overrides `compression` where given.
    compression_per_level["set_compression_per_level"]: Vec<CompressionType> = "vec![esker::options::CompressionType::None]" in family;
    /// Levels of the tree.
    num_levels["set_num_levels"]: i32 = "7" in family;
    /// Files of level 0 that start a compaction.
    level0_file_num_compaction_trigger["set_level_zero_file_num_compaction_trigger"]: i32 = "4" in family;
    /// Files of level 0 that slow writers down.
    level0_slowdown_writes_trigger["set_level_zero_slowdown_writes_trigger"]: i32 = "20" in family;
    /// Files of level 0 that stop writers.
    level0_stop_writes_trigger["set_level_zero_stop_writes_trigger"]: i32 = "36" in family;
    /// Bytes of a table file.
    target_file_size_base["set_target_file_size_base"]: u64 = "64 << 20" in family;
    /// Bytes of level 1.
    max_bytes_for_level_base["set_max_bytes_for_level_base"]: u64 = "256 << 20" in family;
    /// Growth from level to level.
    max_bytes_for_level_multiplier["set_max_bytes_for_level_multiplier"]: f64 = "10.0" in family;
    /// Sizes levels from the last one up.
    level_compaction_dynamic_level_bytes["set_level_compaction_dynamic_level_bytes"]: bool = "true" in family;
    /// How the tree is kept in shape.
    compaction_style["set_compaction_style"]: CompactionStyle = "esker::options::CompactionStyle::Universal" in family;
    /// Compacts only what is asked for.
    disable_auto_compactions["set_disable_auto_compactions"]: bool = "true" in family;
    /// The order of keys.
    comparator["set_comparator"]: KeyOrder = "esker::KeyOrder::ReverseBytewise" in family;
    /// Leaves the last level without filters: for readers that mostly find what they look for.
    optimize_filters_for_hits["set_optimize_filters_for_hits"]: bool = "true" in family;
    /// Bytes of a data block before compression.
    block_size["set_block_size"]: u64 = "16 << 10" in family.table;
    /// Charges index and filter blocks to the block cache, which may then evict them.
    cache_index_and_filter_blocks["set_cache_index_and_filter_blocks"]: bool = "true" in family.table;
    /// Keeps those of level-0 files in the cache while the file is open.
    pin_l0_filter_and_index_blocks_in_cache["set_pin_l0_filter_and_index_blocks_in_cache"]: bool = "true" in family.table;
    /// Puts whole keys into the filter.
    whole_key_filtering["set_whole_key_filtering"]: bool = "false" in family.table;
    /// Version of the format of tables, 2 to 7.
    format_version["set_format_version"]: u32 = "5" in family.table;
}

/// Options that are not a plain field.
impl FamilyOptions {
    /// Every option at its default.
    ///
    /// ```
    /// let options = esker::FamilyOptions::new().write_buffer_size(16 << 20);
    /// assert_eq!(options.write_buffer_size, 16 << 20);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Combines operands of merges with what lies under them.
    ///
    /// ```
    /// let options = esker::FamilyOptions::new().merge_operator(esker::merge_operator::UInt64Add);
    /// # let _given = options;
    /// ```
    #[doc(alias = "set_merge_operator")]
    #[must_use]
    pub fn merge_operator(mut self, operator: impl MergeOperator + 'static) -> Self {
        self.merge_operator = Some(Arc::new(operator));
        self
    }

    /// Drops or changes entries during compactions.
    ///
    /// ```
    /// use esker::{Decision, compaction_filter};
    ///
    /// let filter = compaction_filter::from_fn("drop temporary keys", |_level, key, _value| {
    ///     if key.starts_with(b"tmp:") { Decision::Remove } else { Decision::Keep }
    /// });
    /// let options = esker::FamilyOptions::new().compaction_filter(filter);
    /// # let _given = options;
    /// ```
    #[doc(alias = "set_compaction_filter")]
    #[must_use]
    pub fn compaction_filter(mut self, filter: impl CompactionFilter + 'static) -> Self {
        self.compaction_filter = Some(Arc::new(filter));
        self
    }

    /// Makes such a filter for each compaction.
    ///
    /// ```
    /// use esker::{CompactionFilter, CompactionFilterFactory, Decision, FilterContext};
    /// use std::sync::Arc;
    ///
    /// struct DropEmpty;
    /// impl CompactionFilterFactory for DropEmpty {
    ///     fn name(&self) -> &str {
    ///         "drop empty values"
    ///     }
    ///     fn create(&self, _context: &FilterContext) -> Option<Arc<dyn CompactionFilter>> {
    ///         Some(esker::compaction_filter::from_fn("drop empty values", |_level, _key, value| {
    ///             if value.is_empty() { Decision::Remove } else { Decision::Keep }
    ///         }))
    ///     }
    /// }
    /// let options = esker::FamilyOptions::new().compaction_filter_factory(DropEmpty);
    /// assert!(options.compaction_filter_factory.is_some());
    /// ```
    #[doc(alias = "set_compaction_filter_factory")]
    #[must_use]
    pub fn compaction_filter_factory(
        mut self,
        factory: impl CompactionFilterFactory + 'static,
    ) -> Self {
        self.compaction_filter_factory = Some(Arc::new(factory));
        self
    }

    /// Makes prefixes of the first `bytes` of each key: filters then answer for prefixes as well,
    /// which `Db::prefix` asks them for.
    ///
    /// ```
    /// let options = esker::FamilyOptions::new().prefix_len(4).bloom_filter(10.0);
    /// # let _given = options;
    /// ```
    #[doc(alias = "FixedPrefix")]
    #[must_use]
    pub fn prefix_len(self, bytes: usize) -> Self {
        self.prefix_extractor(PrefixExtractor::Fixed(bytes))
    }

    /// The part of a key that prefix filters and prefix seeks use.
    ///
    /// ```
    /// use esker::options::PrefixExtractor;
    ///
    /// let options = esker::FamilyOptions::new().prefix_extractor(PrefixExtractor::Fixed(4));
    /// # let _given = options;
    /// ```
    #[doc(alias = "set_prefix_extractor")]
    #[must_use]
    pub fn prefix_extractor(mut self, extractor: PrefixExtractor) -> Self {
        self.prefix_extractor = Some(extractor);
        self
    }

    /// The cache of blocks: one that is shared, or the bytes of one of the database's own.
    ///
    /// ```
    /// use esker::{CacheOptions, new_block_cache};
    /// use std::sync::Arc;
    ///
    /// let own = esker::FamilyOptions::new().block_cache(256 << 20);
    /// let cache = Arc::new(new_block_cache(CacheOptions::with_capacity(256 << 20), None));
    /// let shared = esker::FamilyOptions::new().block_cache(Arc::clone(&cache));
    /// # let _given = (own, shared);
    /// ```
    #[doc(alias = "set_block_cache")]
    #[must_use]
    pub fn block_cache(mut self, cache: impl Into<BlockCacheSource>) -> Self {
        self.table.block_cache = cache.into();
        self
    }

    /// Tables get Bloom filters of so many bits per key.
    ///
    /// ```
    /// let options = esker::FamilyOptions::new().bloom_filter(10.0);
    /// # let _given = options;
    /// ```
    #[doc(alias = "set_bloom_filter")]
    #[must_use]
    pub fn bloom_filter(mut self, bits_per_key: f64) -> Self {
        self.table.filter_policy = Some(FilterPolicy::bloom(bits_per_key));
        self
    }

    /// Tables get Ribbon filters, as accurate as Bloom filters of so many bits per key and a third
    /// smaller.
    ///
    /// ```
    /// let options = esker::FamilyOptions::new().ribbon_filter(10.0);
    /// # let _given = options;
    /// ```
    #[doc(alias = "set_ribbon_filter")]
    #[must_use]
    pub fn ribbon_filter(mut self, bits_per_key: f64) -> Self {
        self.table.filter_policy = Some(FilterPolicy::ribbon(bits_per_key, 0));
        self
    }

    /// Time after which a table is rewritten, so that what was deleted goes; RocksDB's option
    /// `ttl`, which deletes nothing by itself except with FIFO compaction. Rounded up to seconds.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let options = esker::FamilyOptions::new().table_ttl(Duration::from_secs(86_400));
    /// assert_eq!(options.ttl, 86_400);
    /// ```
    #[doc(alias = "set_ttl")]
    #[must_use]
    pub fn table_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = seconds(ttl);
        self
    }

    /// Time after which a table is compacted in any case. Rounded up to seconds.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let a_month = Duration::from_secs(30 * 86_400);
    /// let options = esker::FamilyOptions::new().periodic_compaction(a_month);
    /// # let _given = options;
    /// ```
    #[doc(alias = "set_periodic_compaction_seconds")]
    #[must_use]
    pub fn periodic_compaction(mut self, period: Duration) -> Self {
        self.periodic_compaction_seconds = seconds(period);
        self
    }
}

/// Whole seconds that are not shorter.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Options of the default family that are not a plain field.
macro_rules! of_family {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident[$alias:literal]($value:ident : $type:ty);
    )*) => {
        impl Options {$(
            $(#[doc = $doc])+
            #[doc(alias = $alias)]
            #[must_use]
            pub fn $name(mut self, $value: $type) -> Self {
                self.family = self.family.$name($value);
                self
            }
        )*}
    };
}

of_family! {
    /// Combines operands of merges with what lies under them.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::merge_operator::UInt64Add;
    ///
    /// let options = esker::Options::new().create_if_missing(true).merge_operator(UInt64Add);
    /// let db = esker::Db::open(dir.path(), options)?;
    /// db.merge("visits", 1_u64.to_le_bytes())?;
    /// db.merge("visits", 2_u64.to_le_bytes())?;
    /// assert_eq!(db.get("visits")?.as_deref(), Some(&3_u64.to_le_bytes()[..]));
    /// # Ok(())
    /// # }
    /// ```
    merge_operator["set_merge_operator"](operator: impl MergeOperator + 'static);
    /// Drops or changes entries during compactions: see [`FamilyOptions::compaction_filter`].
    compaction_filter["set_compaction_filter"](filter: impl CompactionFilter + 'static);
    /// Makes such a filter for each compaction.
    compaction_filter_factory["set_compaction_filter_factory"](factory: impl CompactionFilterFactory + 'static);
    /// Makes prefixes of the first bytes of each key: see [`FamilyOptions::prefix_len`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let options = esker::Options::new().create_if_missing(true);
    /// let db = esker::Db::open(dir.path(), options.prefix_len(3).bloom_filter(10.0))?;
    /// db.put("abc1", "value")?;
    /// assert_eq!(db.prefix("abc").count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    prefix_len["FixedPrefix"](bytes: usize);
    /// The part of a key that prefix filters and prefix seeks use.
    prefix_extractor["set_prefix_extractor"](extractor: PrefixExtractor);
    /// The cache of blocks: one that is shared, or the bytes of one of the database's own. See
    /// [`FamilyOptions::block_cache`].
    ///
    /// ```
    /// let options = esker::Options::new().block_cache(256 << 20);
    /// # let _given = options;
    /// ```
    block_cache["set_block_cache"](cache: impl Into<BlockCacheSource>);
    /// Tables get Bloom filters of so many bits per key.
    ///
    /// ```
    /// let options = esker::Options::new().bloom_filter(10.0);
    /// # let _given = options;
    /// ```
    bloom_filter["set_bloom_filter"](bits_per_key: f64);
    /// Tables get Ribbon filters: see [`FamilyOptions::ribbon_filter`].
    ribbon_filter["set_ribbon_filter"](bits_per_key: f64);
    /// Time after which a table is rewritten: see [`FamilyOptions::table_ttl`].
    table_ttl["set_ttl"](ttl: Duration);
    /// Time after which a table is compacted in any case.
    periodic_compaction["set_periodic_compaction_seconds"](period: Duration);
}

/// Options of the database that are not a plain field.
impl Options {
    /// The directory of the write-ahead log.
    ///
    /// ```
    /// let options = esker::Options::new().wal_dir("/fast/logs");
    /// assert_eq!(options.db.wal_dir, "/fast/logs");
    /// ```
    #[doc(alias = "set_wal_dir")]
    #[must_use]
    pub fn wal_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.db.wal_dir = dir.as_ref().to_string_lossy().into_owned();
        self
    }

    /// The directory of the LOG files.
    ///
    /// ```
    /// let options = esker::Options::new().db_log_dir("/var/log/shop");
    /// assert_eq!(options.db.db_log_dir, "/var/log/shop");
    /// ```
    #[doc(alias = "set_db_log_dir")]
    #[must_use]
    pub fn db_log_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.db.db_log_dir = dir.as_ref().to_string_lossy().into_owned();
        self
    }

    /// Counters and histograms.
    ///
    /// ```
    /// use esker::observe::Statistics;
    /// use std::sync::Arc;
    ///
    /// let statistics = Statistics::new();
    /// let options = esker::Options::new().statistics(Arc::clone(&statistics));
    /// # let _given = options;
    /// ```
    #[doc(alias = "enable_statistics")]
    #[must_use]
    pub fn statistics(mut self, statistics: Arc<Statistics>) -> Self {
        self.db.statistics = Some(statistics);
        self
    }

    /// Adds a listener of flushes, compactions and other events.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::observe::{EventListener, FlushInfo};
    ///
    /// struct Flushes;
    /// impl EventListener for Flushes {
    ///     fn on_flush_completed(&self, info: &FlushInfo) {
    ///         println!("{} bytes of {}", info.file_bytes, info.family);
    ///     }
    /// }
    /// let options = esker::Options::new().create_if_missing(true).listener(Flushes);
    /// let db = esker::Db::open(dir.path(), options)?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "add_event_listener")]
    #[must_use]
    pub fn listener(mut self, listener: impl EventListener + 'static) -> Self {
        self.db.listeners.push(Arc::new(listener));
        self
    }

    /// Takes the lines of the log instead of the LOG file.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::observe::StderrLogger;
    /// use esker::options::InfoLogLevel;
    ///
    /// let logger = StderrLogger::new(InfoLogLevel::Warn, "shop:");
    /// let options = esker::Options::new().create_if_missing(true).info_log(logger);
    /// drop(esker::Db::open(dir.path(), options)?);
    /// assert!(!dir.path().join("LOG").exists());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn info_log(mut self, logger: impl Logger + 'static) -> Self {
        self.db.info_log = Some(Arc::new(logger));
        self
    }

    /// A limit on what background jobs read and write, which databases may share.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let limiter = esker::RateLimiter::new(64 << 20);
    /// let first = esker::Options::new().rate_limiter(Arc::clone(&limiter));
    /// let second = esker::Options::new().rate_limiter(limiter);
    /// assert!(first.db.rate_limiter.is_some() && second.db.rate_limiter.is_some());
    /// ```
    #[doc(alias = "set_ratelimiter")]
    #[must_use]
    pub fn rate_limiter(mut self, limiter: Arc<RateLimiter>) -> Self {
        self.db.rate_limiter = Some(limiter);
        self
    }

    /// A limit on the memory of memtables, which databases may share.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let buffers = esker::WriteBufferManager::new(256 << 20, false);
    /// let options = esker::Options::new().write_buffer_manager(buffers.clone());
    /// let db = esker::Db::open(dir.path(), options.create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert!(buffers.memory_usage() > 0);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "set_write_buffer_manager")]
    #[must_use]
    pub fn write_buffer_manager(mut self, manager: Arc<WriteBufferManager>) -> Self {
        self.db.write_buffer_manager = Some(manager);
        self
    }

    /// One number for the memory of databases that share it.
    #[must_use]
    pub fn shared_memory_budget(mut self, budget: Arc<MemoryBudget>) -> Self {
        self.db.shared_memory_budget = Some(budget);
        self
    }

    /// Watches the room that files take and how fast they are deleted.
    #[doc(alias = "set_sst_file_manager")]
    #[must_use]
    pub fn sst_file_manager(mut self, manager: Arc<SstFileManager>) -> Self {
        self.db.sst_file_manager = Some(manager);
        self
    }

    /// Time between dumps of statistics into the LOG, in whole seconds; zero never.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let options = esker::Options::new().stats_dump_period(Duration::from_secs(60));
    /// assert_eq!(options.db.stats_dump_period_sec, 60);
    /// ```
    #[doc(alias = "set_stats_dump_period_sec")]
    #[must_use]
    pub fn stats_dump_period(mut self, period: Duration) -> Self {
        self.db.stats_dump_period_sec = u32::try_from(seconds(period)).unwrap_or(u32::MAX);
        self
    }
}

impl From<usize> for BlockCacheSource {
    /// A cache of the database's own with so many bytes.
    fn from(bytes: usize) -> Self {
        BlockCacheSource::with_capacity(bytes)
    }
}

impl From<Arc<BlockCache>> for BlockCacheSource {
    fn from(cache: Arc<BlockCache>) -> Self {
        BlockCacheSource::Shared(cache)
    }
}
