//! The small typed set: about sixty choices in ten groups, from which the flat options follow.
//!
//! [`Settings`] is what a Rust program may fill in where RocksDB's names are too many;
//! [`crate::options::Options`] follows from it.
//! Choices that exclude each other are variants of an enum, so that wrong pairs cannot be written.
//! Every RocksDB name can still be set by string; those settings are applied last, over what the
//! groups say.

use super::{
    BlockCacheSource, CompactionStyle, CompressionType, DbOptions, FamilyOptions, IndexType,
    InfoLogLevel, OptionSet, Options, WalRecoveryMode,
};
use crate::observe::{EventListener, Statistics};
use esker_format::filter::FilterPolicy;
use esker_format::{KeyOrder, PrefixExtractor};
use esker_lsm::compaction_filter::CompactionFilterFactory;
use esker_lsm::merge_operator::MergeOperator;
use esker_status::Result;
use std::path::PathBuf;
use std::sync::Arc;

/// Declares a group: its fields with their defaults.
macro_rules! group {
    ($(#[$meta:meta])* $name:ident { $( $(#[doc = $doc:literal])+ $field:ident : $ty:ty = $default:expr, )* }) => {
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $ty, )*
        }
        impl Default for $name {
            fn default() -> Self {
                $name { $( $field: $default, )* }
            }
        }
    };
}

group! {
    /// How much memory is used.
    #[derive(Debug)]
    Memory {
        /// Block cache, in bytes.
        block_cache_bytes: usize = 32 << 20,
        /// One memtable, in bytes.
        memtable_bytes: usize = 64 << 20,
        /// Memtables per family before writers stop.
        memtables_max: i32 = 2,
        /// Full memtables that are flushed together.
        memtables_per_flush: i32 = 1,
        /// All memtables of the database together, in bytes; 0 for no limit.
        memtables_total_bytes: usize = 0,
        /// Puts index and filter blocks under the block cache's limit.
        cache_index_and_filters: bool = false,
    }
}

group! {
    /// The write-ahead log.
    #[derive(Debug)]
    Wal {
        /// Where it lives; `None` beside the data.
        directory: Option<PathBuf> = None,
        /// Bytes of log before the oldest data is flushed; 0 for four times all memtables.
        total_bytes_max: u64 = 0,
        /// Compresses it with zstd.
        compress: bool = false,
        /// Leaves records in memory until `flush_wal`.
        manual_flush: bool = false,
        /// Starts write-back after each of this many bytes; 0 leaves it to the kernel.
        write_back_bytes: u64 = 0,
        /// Most bytes in one group of writers.
        group_bytes_max: u64 = 1 << 20,
    }
}

group! {
    /// Table files.
    #[derive(Debug)]
    Table {
        /// A data block before compression, in bytes.
        block_bytes: u64 = 4096,
        /// Entries between restart points.
        restart_interval: i32 = 16,
        /// The filter; `None` for none.
        filter: Option<FilterPolicy> = None,
        /// Filters by whole keys.
        filter_whole_keys: bool = true,
        /// Filters by prefixes as well.
        prefix: Option<PrefixExtractor> = None,
        /// Leaves the last level without filters.
        skip_last_level_filter: bool = false,
        /// Splits index and filter into partitions.
        partitioned: bool = false,
        /// Version of the format.
        format_version: u32 = 5,
    }
}

group! {
    /// Compression.
    #[derive(Debug)]
    Compression {
        /// Codec of the tree.
        codec: CompressionType = CompressionType::usual(),
        /// Codec of the last level; `None` for the same.
        last_level: Option<CompressionType> = None,
        /// Codec level by level; empty for the same on all.
        per_level: Vec<CompressionType> = Vec::new(),
        /// The codec's level; `None` for its own default.
        level: Option<i32> = None,
        /// Largest dictionary of a file, in bytes; 0 for none.
        dictionary_bytes: u32 = 0,
    }
}

group! {
    /// Leveled compaction.
    #[derive(Debug)]
    Leveled {
        /// Files of level 0 that start a compaction.
        level0_files: i32 = 4,
        /// Level 1, in bytes.
        level1_bytes: u64 = 256 << 20,
        /// Growth from level to level.
        growth: f64 = 10.0,
        /// Sizes levels from the last one up.
        dynamic: bool = true,
        /// Levels.
        levels: i32 = 7,
        /// A table file, in bytes.
        file_bytes: u64 = 64 << 20,
    }
}

group! {
    /// Universal compaction.
    #[derive(Debug)]
    Universal {
        /// Runs that start a compaction.
        runs: i32 = 4,
        /// Percent by which the next run may be larger.
        size_ratio: u32 = 1,
        /// Percent of extra space before everything is merged.
        space_percent_max: u32 = 200,
        /// Fewest runs merged at once.
        merge_width_min: u32 = 2,
        /// Levels that results are spread over.
        levels: i32 = 7,
    }
}

/// How the tree is kept in shape.
#[derive(Clone, Debug)]
pub enum Compaction {
    /// Levels.
    Leveled(Leveled),
    /// Runs of similar size.
    Universal(Universal),
    /// The oldest files go.
    Fifo {
        /// All files together, in bytes.
        total_bytes_max: u64,
    },
    /// Nothing but what is asked for.
    Manual,
}

impl Default for Compaction {
    fn default() -> Self {
        Compaction::Leveled(Leveled::default())
    }
}

group! {
    /// When writers are slowed and stopped.
    #[derive(Debug)]
    Admission {
        /// Files of level 0 that slow them.
        level0_files_slow: i32 = 20,
        /// Files of level 0 that stop them.
        level0_files_stop: i32 = 36,
        /// Bytes of compaction owed that slow them; 0 never.
        owed_bytes_slow: u64 = 64 << 30,
        /// Bytes of compaction owed that stop them; 0 never.
        owed_bytes_stop: u64 = 256 << 30,
        /// Bytes a second that slowed writers get; 0 for 16 MiB.
        slowed_bytes_per_second: u64 = 0,
    }
}

group! {
    /// Background work and files.
    #[derive(Debug)]
    Jobs {
        /// Flushes and compactions at once.
        threads: i32 = 2,
        /// Parts that one compaction may be split into.
        subcompactions: u32 = 1,
        /// Open table files; `None` for no limit.
        open_files_max: Option<i32> = None,
        /// Bytes a second that jobs may write; 0 for no limit.
        write_bytes_per_second: u64 = 0,
        /// Readahead of compactions, in bytes.
        readahead_bytes: usize = 2 << 20,
        /// Reads and writes table files past the page cache.
        direct_io: bool = false,
    }
}

group! {
    /// Syncs, recovery and checks.
    #[derive(Debug)]
    Durability {
        /// Treatment of damage in the log by recovery.
        recovery: WalRecoveryMode = WalRecoveryMode::PointInTimeRecovery,
        /// Reads each new table file back.
        verify_new_files: bool = false,
        /// Writes the life of logs into the MANIFEST.
        track_wals: bool = false,
        /// Times that recovery from a passing error is tried.
        resume_tries_max: i32 = i32::MAX,
    }
}

group! {
    /// Logs and statistics.
    #[derive(Debug)]
    Observe {
        /// Counters and histograms.
        statistics: Option<Arc<Statistics>> = None,
        /// The listeners of events.
        listeners: Vec<Arc<dyn EventListener>> = Vec::new(),
        /// Least level of lines that the LOG file keeps.
        log_level: InfoLogLevel = InfoLogLevel::Info,
        /// Where the LOG file lives; `None` beside the data.
        log_directory: Option<PathBuf> = None,
        /// Bytes of a LOG file; 0 for no limit.
        log_file_bytes: usize = 0,
        /// LOG files kept.
        log_files_max: usize = 1000,
        /// Seconds between dumps of statistics; 0 never.
        dump_seconds: u32 = 600,
    }
}

group! {
    /// A small set of choices for a database and its families: what most programs ever set,
    /// grouped, with units in the names, and with wrong pairs made impossible.
    /// [`crate::options::Options`], which every way to open a database takes, follows from it by
    /// `try_into`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::options::{Compaction, Settings, Universal};
    /// use esker::Db;
    ///
    /// let mut settings = Settings { create_if_missing: true, ..Settings::default() };
    /// settings.memory.block_cache_bytes = 1 << 30;
    /// settings.compaction = Compaction::Universal(Universal::default());
    /// // Whatever is not in the set goes by RocksDB's names.
    /// let settings = settings.set("max_background_jobs", "6")?;
    /// let settings = settings.set_list("bytes_per_sync=1m;ttl=0")?;
    ///
    /// let options: esker::Options = settings.try_into()?;
    /// assert_eq!(options.db.max_background_jobs, 6);
    /// assert_eq!(options.family.table.block_cache.limits().capacity, 1 << 30);
    /// let db = Db::open(dir.path(), options)?;
    /// # drop(db);
    /// # Ok(())
    /// # }
    /// ```
    Settings {
        /// Creates the database when there is none.
        create_if_missing: bool = false,
        /// Creates families that the call names and the database lacks.
        create_missing_families: bool = false,
        /// Fails when there is a database already.
        error_if_exists: bool = false,
        /// The order of keys.
        comparator: KeyOrder = KeyOrder::Bytewise,
        /// Combines operands of merges.
        merge_operator: Option<Arc<dyn MergeOperator>> = None,
        /// Makes a filter for each compaction.
        compaction_filter_factory: Option<Arc<dyn CompactionFilterFactory>> = None,
        /// How much memory is used.
        memory: Memory = Memory::default(),
        /// The write-ahead log.
        wal: Wal = Wal::default(),
        /// Table files.
        table: Table = Table::default(),
        /// Compression.
        compression: Compression = Compression::default(),
        /// How the tree is kept in shape.
        compaction: Compaction = Compaction::default(),
        /// When writers are slowed and stopped.
        admission: Admission = Admission::default(),
        /// Background work.
        jobs: Jobs = Jobs::default(),
        /// Syncs, recovery and checks.
        durability: Durability = Durability::default(),
        /// Logs and statistics.
        observe: Observe = Observe::default(),
        /// Settings by RocksDB's names, applied last.
        by_name: Vec<(String, String)> = Vec::new(),
    }
}

impl std::fmt::Debug for Settings {
    /// Prints the options that are not at their defaults.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("database", &self.database())
            .field("family", &self.family())
            .finish_non_exhaustive()
    }
}

impl TryFrom<Settings> for Options {
    type Error = esker_status::Error;

    fn try_from(settings: Settings) -> Result<Self> {
        Options::try_from(&settings)
    }
}

impl TryFrom<&Settings> for Options {
    type Error = esker_status::Error;

    fn try_from(settings: &Settings) -> Result<Self> {
        let mut options = Options::new();
        options.db = settings.database()?;
        options.family = settings.family()?;
        Ok(options)
    }
}

impl Settings {
    /// Sets an option of the database or of families by RocksDB's name. Checked at once.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// use esker::options::Settings;
    ///
    /// let settings = Settings::default().set("max_background_jobs", "6")?;
    /// assert_eq!(settings.database()?.max_background_jobs, 6);
    /// assert!(Settings::default().set("max_background_jobs", "many").is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        self.by_name.push((name.to_owned(), value.to_owned()));
        self.database()?;
        self.family()?;
        Ok(self)
    }

    /// Sets a list `a=1;b={c=2}` by RocksDB's names. Checked at once.
    pub fn set_list(mut self, list: &str) -> Result<Self> {
        self.by_name
            .extend(esker_format::options_text::parse_pairs(list)?);
        self.database()?;
        self.family()?;
        Ok(self)
    }

    /// The flat options of the database.
    pub fn database(&self) -> Result<DbOptions> {
        let path = |p: &Option<PathBuf>| {
            p.as_ref()
                .map_or_else(String::new, |p| p.to_string_lossy().into_owned())
        };
        let mut o = DbOptions {
            create_if_missing: self.create_if_missing,
            create_missing_column_families: self.create_missing_families,
            error_if_exists: self.error_if_exists,
            db_write_buffer_size: self.memory.memtables_total_bytes,
            wal_dir: path(&self.wal.directory),
            max_total_wal_size: self.wal.total_bytes_max,
            manual_wal_flush: self.wal.manual_flush,
            wal_bytes_per_sync: self.wal.write_back_bytes,
            max_write_batch_group_size_bytes: self.wal.group_bytes_max,
            delayed_write_rate: self.admission.slowed_bytes_per_second,
            max_background_jobs: self.jobs.threads,
            max_subcompactions: self.jobs.subcompactions,
            max_open_files: self.jobs.open_files_max.unwrap_or(-1),
            rate_limiter_bytes_per_sec: self.jobs.write_bytes_per_second,
            compaction_readahead_size: self.jobs.readahead_bytes,
            use_direct_reads: self.jobs.direct_io,
            use_direct_io_for_flush_and_compaction: self.jobs.direct_io,
            wal_recovery_mode: self.durability.recovery,
            track_and_verify_wals_in_manifest: self.durability.track_wals,
            max_bgerror_resume_count: self.durability.resume_tries_max,
            statistics: self.observe.statistics.clone(),
            listeners: self.observe.listeners.clone(),
            info_log_level: self.observe.log_level,
            db_log_dir: path(&self.observe.log_directory),
            max_log_file_size: self.observe.log_file_bytes,
            keep_log_file_num: self.observe.log_files_max,
            stats_dump_period_sec: self.observe.dump_seconds,
            ..DbOptions::default()
        };
        if self.wal.compress {
            o.wal_compression = CompressionType::Zstd;
        }
        self.apply_names(&mut o, is_family_name)?;
        Ok(o)
    }

    /// The flat options of a family.
    pub fn family(&self) -> Result<FamilyOptions> {
        let (memory, table, codec, gate) = (
            &self.memory,
            &self.table,
            &self.compression,
            &self.admission,
        );
        let mut o = FamilyOptions {
            comparator: self.comparator.clone(),
            merge_operator: self.merge_operator.clone(),
            compaction_filter_factory: self.compaction_filter_factory.clone(),
            write_buffer_size: memory.memtable_bytes,
            max_write_buffer_number: memory.memtables_max,
            min_write_buffer_number_to_merge: memory.memtables_per_flush,
            prefix_extractor: table.prefix.clone(),
            optimize_filters_for_hits: table.skip_last_level_filter,
            compression: codec.codec,
            bottommost_compression: codec.last_level.unwrap_or(CompressionType::Disable),
            compression_per_level: codec.per_level.clone(),
            level0_slowdown_writes_trigger: gate.level0_files_slow,
            level0_stop_writes_trigger: gate.level0_files_stop,
            soft_pending_compaction_bytes_limit: gate.owed_bytes_slow,
            hard_pending_compaction_bytes_limit: gate.owed_bytes_stop,
            paranoid_file_checks: self.durability.verify_new_files,
            ..FamilyOptions::default()
        };
        if let Some(level) = codec.level {
            o.compression_opts.level = level;
        }
        o.compression_opts.max_dict_bytes = codec.dictionary_bytes;
        o.table.block_cache = BlockCacheSource::with_capacity(memory.block_cache_bytes);
        o.table.cache_index_and_filter_blocks = memory.cache_index_and_filters;
        o.table.block_size = table.block_bytes;
        o.table.block_restart_interval = table.restart_interval;
        o.table.filter_policy = table.filter;
        o.table.whole_key_filtering = table.filter_whole_keys;
        o.table.format_version = table.format_version;
        if table.partitioned {
            o.table.index_type = IndexType::TwoLevelIndexSearch;
            o.table.partition_filters = table.filter.is_some();
        }
        self.compaction.apply(&mut o);
        self.apply_names(&mut o, is_database_name)?;
        Ok(o)
    }

    /// Applies the settings by name to `options`, but for those that are the other side's alone.
    fn apply_names<S: OptionSet>(&self, options: &mut S, is_other: fn(&str) -> bool) -> Result<()> {
        for (name, value) in &self.by_name {
            let head = name.split('.').next().unwrap_or(name);
            let is_mine =
                S::entry(head).is_some() || super::retired::find(S::SECTION, name).is_some();
            if is_mine || !is_other(head) {
                options.set(name, value)?;
            }
        }
        Ok(())
    }
}

fn knows<S: OptionSet>(name: &str) -> bool {
    S::entry(name).is_some() || super::retired::find(S::SECTION, name).is_some()
}

fn is_family_name(name: &str) -> bool {
    knows::<FamilyOptions>(name)
}

fn is_database_name(name: &str) -> bool {
    knows::<DbOptions>(name)
}

impl Compaction {
    fn apply(&self, o: &mut FamilyOptions) {
        match self {
            Compaction::Leveled(l) => {
                o.compaction_style = CompactionStyle::Level;
                o.level0_file_num_compaction_trigger = l.level0_files;
                o.max_bytes_for_level_base = l.level1_bytes;
                o.max_bytes_for_level_multiplier = l.growth;
                o.level_compaction_dynamic_level_bytes = l.dynamic;
                o.num_levels = l.levels;
                o.target_file_size_base = l.file_bytes;
            }
            Compaction::Universal(u) => {
                o.compaction_style = CompactionStyle::Universal;
                o.level0_file_num_compaction_trigger = u.runs;
                o.num_levels = u.levels;
                let settings = &mut o.compaction_options_universal;
                settings.size_ratio = u.size_ratio;
                settings.max_size_amplification_percent = u.space_percent_max;
                settings.min_merge_width = u.merge_width_min;
            }
            Compaction::Fifo { total_bytes_max } => {
                o.compaction_style = CompactionStyle::Fifo;
                o.compaction_options_fifo.max_table_files_size = *total_bytes_max;
            }
            Compaction::Manual => {
                o.compaction_style = CompactionStyle::None;
                o.disable_auto_compactions = true;
            }
        }
    }
}
