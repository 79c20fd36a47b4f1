//! The linter: options that contradict each other, in one line each, with what to set instead.
//!
//! A finding is advice unless it is an error: errors keep a database from opening. Pure functions
//! over options as they were given, so that values which resolution would quietly correct are
//! named.

use super::{
    ChecksumKind, CompactionStyle, CompressionType, DataBlockIndexType, DbOptions, DbPath,
    FamilyOptions, IndexType, OptionSet, TableFormat, TableSettings,
};
use esker_codec::Codec;
use esker_lsm::off_peak::DailyHours;
use esker_status::{Error, Result};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It works, and probably not as meant.
    Advice,
    /// It cannot work.
    Error,
}

/// Something that does not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The family, or `None` for the database's own options.
    pub family: Option<String>,
    /// The option to change.
    pub option: &'static str,
    /// The problem, in one line.
    pub problem: String,
    /// The setting to use instead.
    pub instead: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = match self.severity {
            Severity::Advice => "advice",
            Severity::Error => "error",
        };
        match &self.family {
            Some(family) => write!(f, "{severity}: [{family}] ")?,
            None => write!(f, "{severity}: ")?,
        }
        write!(f, "{}: {}; {}", self.option, self.problem, self.instead)
    }
}

/// Smaller values are no less to compactions as references.
const LEAST_WORTH_SEPARATING: u64 = 128;

struct Linter<'a> {
    family: Option<&'a str>,
    findings: Vec<Finding>,
}

impl Linter<'_> {
    fn add(
        &mut self,
        severity: Severity,
        option: &'static str,
        problem: impl Into<String>,
        instead: impl Into<String>,
    ) {
        self.findings.push(Finding {
            severity,
            family: self.family.map(str::to_owned),
            option,
            problem: problem.into(),
            instead: instead.into(),
        });
    }

    fn error_if(&mut self, wrong: bool, option: &'static str, problem: &str, instead: &str) {
        if wrong {
            self.add(Severity::Error, option, problem, instead);
        }
    }

    fn advise_if(&mut self, odd: bool, option: &'static str, problem: &str, instead: &str) {
        if odd {
            self.add(Severity::Advice, option, problem, instead);
        }
    }

    fn refused<S: OptionSet>(&mut self, options: &S) {
        for entry in S::entries() {
            if let Err(e) = super::catalogue::refuse(entry, options) {
                let hint = e.hint().unwrap_or("leave it at its default").to_owned();
                self.add(Severity::Error, entry.info.name, e.message(), hint);
            }
        }
    }

    fn memory_budget(&mut self, o: &DbOptions) {
        self.error_if(
            (1..1 << 20).contains(&o.memory_budget),
            "memory_budget",
            "less than a megabyte is no room for a cache and memtables",
            "set it to 0, or to 1 MB and more",
        );
        let is_on = o.memory_budget > 0 || o.shared_memory_budget.is_some();
        self.advise_if(
            is_on && o.write_buffer_manager.is_some(),
            "write_buffer_manager",
            "the memory budget limits the memtables, and the manager is not asked",
            "leave one of the two out",
        );
        self.advise_if(
            is_on && o.db_write_buffer_size > 0,
            "db_write_buffer_size",
            "the memory budget limits the memtables, and not this number",
            "leave one of the two out",
        );
    }

    fn database(&mut self, o: &DbOptions) {
        self.error_if(
            o.db_paths.len() > 4,
            "db_paths",
            "More than four DB paths are not supported yet. ",
            "give four at most",
        );
        self.error_if(
            is_unnamed(&o.db_paths),
            "db_paths",
            "a path is empty",
            "name the directory, or leave the path out",
        );
        self.refused(o);
        self.error_if(
            o.allow_mmap_reads && o.use_direct_reads,
            "use_direct_reads",
            "a file is either mapped or read past the page cache",
            "set one of use_direct_reads and allow_mmap_reads to false",
        );
        self.memory_budget(o);
        self.off_peak(o);
        self.error_if(
            o.keep_log_file_num == 0,
            "keep_log_file_num",
            "no LOG file may be kept, not even the present one",
            "set it to 1 or more",
        );
        self.error_if(
            !o.write_dbid_to_manifest && !o.write_identity_file,
            "write_identity_file",
            "the database's id would be stored nowhere",
            "set write_identity_file or write_dbid_to_manifest to true",
        );
        self.write_queue(o);
        self.error_if(
            !matches!(
                o.wal_compression,
                CompressionType::None | CompressionType::Zstd
            ),
            "wal_compression",
            "logs are compressed by zstd or not at all",
            "set it to kZSTD or kNoCompression",
        );
        self.error_if(
            o.max_open_files == 0 || o.max_open_files < -1,
            "max_open_files",
            "no table file could be opened",
            "set it to -1 for no limit, or to 20 and more",
        );
        self.advise_if(
            o.create_if_missing && o.error_if_exists && o.avoid_flush_during_recovery,
            "avoid_flush_during_recovery",
            "a new database has nothing to recover",
            "leave it at false",
        );
        self.advise_if(
            o.recycle_log_file_num > 0 && o.resolve().recycle_log_file_num == 0,
            "recycle_log_file_num",
            "logs are not recycled while they go to an archive, nor under a wal_recovery_mode that cannot tell their old ends from damage",
            "set WAL_ttl_seconds=0, WAL_size_limit_MB=0 and wal_recovery_mode=kPointInTimeRecovery, or recycle_log_file_num=0",
        );
        let limits = o.job_limits();
        self.advise_if(
            o.max_subcompactions as usize > 4 * limits.compactions,
            "max_subcompactions",
            "one compaction may be split into many more parts than there are threads",
            "raise max_background_jobs, or lower it",
        );
        self.advise_if(
            o.wal_bytes_per_sync > 0 && o.manual_wal_flush,
            "wal_bytes_per_sync",
            "with manual_wal_flush the log reaches the file only when asked",
            "set it to 0, or manual_wal_flush=false",
        );
    }

    /// Hours that RocksDB refuses, with its words.
    fn off_peak(&mut self, o: &DbOptions) {
        let text = &o.daily_offpeak_time_utc;
        let hours = DailyHours::parse(text);
        self.error_if(
            !text.is_empty() && hours.is_none(),
            "daily_offpeak_time_utc",
            "daily_offpeak_time_utc should be set in the format HH:mm-HH:mm (e.g. 04:30-07:30)",
            "set it to such a time, or leave it empty",
        );
        self.error_if(
            hours.is_some_and(|hours| hours.is_empty()),
            "daily_offpeak_time_utc",
            "start_time and end_time cannot be the same",
            "set 0:00-23:59 for the whole day, or leave it empty",
        );
    }

    /// Pairs that RocksDB refuses to open with, so that it could not open the directory afterwards.
    fn write_queue(&mut self, o: &DbOptions) {
        self.error_if(
            o.atomic_flush && o.enable_pipelined_write,
            "atomic_flush",
            "atomic flushes and pipelined writes exclude each other",
            "set enable_pipelined_write=false",
        );
        self.error_if(
            o.unordered_write && o.enable_pipelined_write,
            "unordered_write",
            "unordered and pipelined writes exclude each other",
            "set enable_pipelined_write=false",
        );
        self.error_if(
            o.unordered_write && !o.allow_concurrent_memtable_write,
            "unordered_write",
            "unordered writes need concurrent writes to memtables",
            "set allow_concurrent_memtable_write=true",
        );
        self.error_if(
            o.use_direct_io_for_flush_and_compaction && o.writable_file_max_buffer_size == 0,
            "writable_file_max_buffer_size",
            "direct writes need a buffer",
            "set it to 1048576",
        );
    }

    /// Shares are from 0 to 1, as RocksDB has it.
    fn blobs(&mut self, o: &FamilyOptions) {
        let shares = [
            (
                "blob_garbage_collection_age_cutoff",
                o.blob_garbage_collection_age_cutoff,
            ),
            (
                "blob_garbage_collection_force_threshold",
                o.blob_garbage_collection_force_threshold,
            ),
        ];
        let (medium, large) = (o.min_medium_blob_size, o.min_large_blob_size);
        let (option, least) = match medium {
            0 => ("min_blob_size", o.min_blob_size),
            _ => ("min_medium_blob_size", medium),
        };
        self.advise_if(
            o.enable_blob_files && least < LEAST_WORTH_SEPARATING,
            option,
            "a small value takes more space in a blob file than in its table: 32 bytes and its key",
            "set it to 1024 or so; scans get slower with each value that leaves the tables",
        );
        self.error_if(
            medium > 0 && large > 0 && large <= medium,
            "min_large_blob_size",
            "large values are to be larger than medium ones",
            "set it above min_medium_blob_size, or to 0 for no large values",
        );
        let is_collected =
            o.enable_blob_garbage_collection || o.max_space_amplification_percent > 0;
        self.advise_if(
            o.enable_blob_files && !is_collected,
            "enable_blob_garbage_collection",
            "a blob file stays until the last of its values is overwritten or deleted",
            "set it to true, or bound the space by max_space_amplification_percent",
        );
        for (option, share) in shares {
            if o.enable_blob_garbage_collection && !(0.0..=1.0).contains(&share) {
                self.add(
                    Severity::Error,
                    option,
                    format!("it is a share, from 0 to 1, and {share} is none"),
                    "give a number from 0 to 1",
                );
            }
        }
    }

    /// A bound on space has to leave room for a merge, and needs merges.
    fn space(&mut self, o: &FamilyOptions) {
        let option = "max_space_amplification_percent";
        self.error_if(
            (1..110).contains(&o.max_space_amplification_percent),
            option,
            "less than 110 % of what is alive leaves compactions no room",
            "set it to 110 or more, or to 0 for no bound",
        );
        let merges = [CompactionStyle::Level, CompactionStyle::Universal];
        let is_bounded = o.max_space_amplification_percent > 0;
        self.error_if(
            is_bounded && !merges.contains(&o.compaction_style),
            option,
            "only leveled and universal compaction can keep to a bound on space",
            "set it to 0, or choose another compaction_style",
        );
        self.advise_if(
            is_bounded && o.disable_auto_compactions,
            option,
            "without compactions nothing makes room, and writers slow down",
            "set disable_auto_compactions=false",
        );
    }

    fn family(&mut self, db: &DbOptions, o: &FamilyOptions) {
        self.space(o);
        self.paths(db, o);
        self.refused(o);
        self.refused(&o.table);
        self.refused(&o.compaction_options_universal);
        self.refused(&o.compaction_options_fifo);
        self.blobs(o);
        self.admission(o);
        self.shape(o);
        self.memory(db, o);
        self.codecs(o);
        self.table(o, &o.table);
    }

    fn admission(&mut self, o: &FamilyOptions) {
        self.advise_if(
            o.level0_slowdown_writes_trigger < o.level0_file_num_compaction_trigger,
            "level0_slowdown_writes_trigger",
            "writers would be slowed before compaction even begins",
            "set it to at least level0_file_num_compaction_trigger",
        );
        self.advise_if(
            o.level0_stop_writes_trigger < o.level0_slowdown_writes_trigger,
            "level0_stop_writes_trigger",
            "writers would be stopped before they are slowed",
            "set it to at least level0_slowdown_writes_trigger",
        );
        self.advise_if(
            o.hard_pending_compaction_bytes_limit > 0
                && o.soft_pending_compaction_bytes_limit > o.hard_pending_compaction_bytes_limit,
            "soft_pending_compaction_bytes_limit",
            "writers would be stopped before they are slowed",
            "set it to at most hard_pending_compaction_bytes_limit",
        );
        self.advise_if(
            o.disable_auto_compactions && o.level0_stop_writes_trigger < i32::MAX / 2,
            "disable_auto_compactions",
            "level 0 grows without compaction until writers stop",
            "raise level0_slowdown_writes_trigger and level0_stop_writes_trigger, or compact by hand",
        );
    }

    fn shape(&mut self, o: &FamilyOptions) {
        self.error_if(
            !(1..=64).contains(&o.num_levels),
            "num_levels",
            "a tree has 1 to 64 levels",
            "set it to 7",
        );
        self.error_if(
            o.compaction_style == CompactionStyle::Level && o.num_levels < 2,
            "num_levels",
            "leveled compaction needs a level below level 0",
            "set it to 2 or more, or compaction_style=kCompactionStyleUniversal",
        );
        self.advise_if(
            o.max_bytes_for_level_multiplier < 2.0,
            "max_bytes_for_level_multiplier",
            "levels that hardly grow are rewritten over and over",
            "set it to between 4 and 12",
        );
        let reads = o.read_triggered_compaction_threshold;
        self.error_if(
            !reads.is_finite() || reads < 0.0,
            "read_triggered_compaction_threshold",
            "it must be finite and not below 0",
            "set it to 0 for never, or to 0.01 to begin with",
        );
        let level0 = u64::try_from(o.level0_file_num_compaction_trigger).unwrap_or(0)
            * (o.write_buffer_size as u64);
        self.advise_if(
            o.compaction_style == CompactionStyle::Level && level0 > 4 * o.max_bytes_for_level_base,
            "max_bytes_for_level_base",
            "level 0 is far larger than level 1 when its compaction begins",
            "set it near write_buffer_size times level0_file_num_compaction_trigger",
        );
        let universal = &o.compaction_options_universal;
        self.error_if(
            universal.min_merge_width > universal.max_merge_width || universal.min_merge_width < 2,
            "compaction_options_universal",
            "no number of runs lies between min_merge_width and max_merge_width",
            "set min_merge_width=2 and max_merge_width above it",
        );
        let ages = &o.compaction_options_fifo.file_temperature_age_thresholds;
        self.error_if(
            !ages.is_empty() && (o.compaction_style != CompactionStyle::Fifo || o.num_levels > 1),
            "compaction_options_fifo",
            "file_temperature_age_thresholds is for FIFO compaction with one level",
            "set compaction_style=kCompactionStyleFIFO and num_levels=1, or leave it empty",
        );
        self.error_if(
            ages.windows(2).any(|pair| pair[0].age >= pair[1].age),
            "compaction_options_fifo",
            "the ages of file_temperature_age_thresholds do not ascend",
            "give the youngest first",
        );
        let read_amp = universal.max_read_amp;
        self.error_if(
            o.compaction_style == CompactionStyle::Universal
                && (read_amp < -1
                    || (read_amp > 0 && read_amp < o.level0_file_num_compaction_trigger)),
            "compaction_options_universal",
            "max_read_amp allows fewer runs than start a compaction",
            "set it to level0_file_num_compaction_trigger or more, 0 or -1",
        );
    }

    fn memory(&mut self, db: &DbOptions, o: &FamilyOptions) {
        let has_budget = db.memory_budget > 0 || db.shared_memory_budget.is_some();
        self.error_if(
            has_budget && o.table.block_cache.tier().is_some(),
            "block_cache",
            "the cache of a memory budget has no second tier",
            "leave secondary_cache out, or the budget",
        );
        self.error_if(
            db.unordered_write && o.max_successive_merges > 0,
            "max_successive_merges",
            "merging in the memtable and unordered writes exclude each other",
            "set it to 0",
        );
        self.advise_if(
            o.min_write_buffer_number_to_merge >= o.max_write_buffer_number,
            "min_write_buffer_number_to_merge",
            "memtables would wait for more of them than there may be",
            "set it below max_write_buffer_number",
        );
        self.advise_if(
            o.memtable_avg_op_scan_flush_trigger > 0 && o.memtable_op_scan_flush_trigger == 0,
            "memtable_avg_op_scan_flush_trigger",
            "it is the lower limit beside memtable_op_scan_flush_trigger, and has no effect alone",
            "set memtable_op_scan_flush_trigger, too",
        );
        self.advise_if(
            db.db_write_buffer_size > 0 && o.write_buffer_size > db.db_write_buffer_size,
            "write_buffer_size",
            "one memtable may be larger than all of them together (db_write_buffer_size)",
            "lower it, or raise db_write_buffer_size",
        );
        self.advise_if(
            o.memtable_whole_key_filtering && o.memtable_prefix_bloom_size_ratio == 0.0,
            "memtable_whole_key_filtering",
            "the memtable has no filter to put keys into",
            "set memtable_prefix_bloom_size_ratio=0.02",
        );
        self.advise_if(
            o.memtable_prefix_bloom_size_ratio > 0.0
                && !o.memtable_whole_key_filtering
                && o.prefix_extractor.is_none(),
            "memtable_prefix_bloom_size_ratio",
            "without a prefix extractor and whole keys the memtable's filter stays empty",
            "set prefix_extractor or memtable_whole_key_filtering=true",
        );
    }

    fn codecs(&mut self, o: &FamilyOptions) {
        let used = [o.compression, o.bottommost_compression];
        let used = used.iter().chain(&o.compression_per_level);
        for &codec in used {
            if let Some(codec) = codec.codec()
                && !codec.is_supported()
            {
                self.add(
                    Severity::Error,
                    "compression",
                    format!("{} is not built in", codec.option_name()),
                    match codec.feature() {
                        Some(feature) => format!("build esker with its feature `{feature}`"),
                        None => "use kLZ4Compression or kZSTD".to_owned(),
                    },
                );
            }
        }
        self.error_if(
            o.compression == CompressionType::Disable,
            "compression",
            "kDisableCompressionOption names no codec here",
            "use kNoCompression to store blocks uncompressed",
        );
        self.advise_if(
            !o.bottommost_compression_opts.enabled
                && !o
                    .bottommost_compression_opts
                    .changes_from(&Default::default())
                    .is_empty(),
            "bottommost_compression_opts",
            "its settings do not apply unless enabled=true",
            "add enabled=true",
        );
        self.error_if(
            o.compression_opts.zstd_max_train_bytes > 0 && o.compression_opts.max_dict_bytes == 0,
            "compression_opts",
            "a dictionary is trained but may take no bytes",
            "set max_dict_bytes=16384",
        );
    }

    /// Formats of tables that are taken, and not written.
    fn table_format(&mut self, o: &FamilyOptions) {
        let written = "tables are written as BlockBasedTable, which reads in any order";
        let instead = "set table_factory=BlockBasedTable";
        match o.table_factory {
            TableFormat::BlockBased => self.advise_if(
                !o.plain_table_factory.is_empty(),
                "plain_table_factory",
                written,
                instead,
            ),
            other => self.add(
                Severity::Advice,
                "table_factory",
                format!("{} is not written: {written}", other.name()),
                instead,
            ),
        }
    }

    fn paths(&mut self, db: &DbOptions, o: &FamilyOptions) {
        let (option, paths) = match o.cf_paths.as_slice() {
            [] => ("db_paths", &db.db_paths),
            _ => ("cf_paths", &o.cf_paths),
        };
        let styles = [CompactionStyle::Level, CompactionStyle::Universal];
        self.error_if(
            paths.len() > 1 && !styles.contains(&o.compaction_style),
            option,
            "several paths are for leveled and universal compaction",
            "give one path, or another compaction_style",
        );
        self.error_if(
            paths.len() > 256,
            option,
            "a table file stores its path in one byte",
            "give 256 at most",
        );
        self.error_if(
            option == "cf_paths" && is_unnamed(paths),
            option,
            "a path is empty",
            "name the directory, or leave the path out",
        );
        self.advise_if(
            paths.len() > 1
                && o.level_compaction_dynamic_level_bytes
                && o.compaction_style == CompactionStyle::Level,
            "level_compaction_dynamic_level_bytes",
            "levels have fixed sizes where there are several paths, so it does nothing",
            "set it to false",
        );
    }

    fn table(&mut self, o: &FamilyOptions, t: &TableSettings) {
        self.table_format(o);
        self.error_if(
            !(2..=7).contains(&t.format_version),
            "format_version",
            "table files have versions 2 to 7",
            "set it to 5, which RocksDB 6.6 and later read",
        );
        self.error_if(
            t.block_size == 0 || t.block_size > 1 << 32,
            "block_size",
            "a block has 1 byte to 4 GiB",
            "set it to 4096",
        );
        self.error_if(
            t.block_restart_interval < 1 || t.index_block_restart_interval < 1,
            "block_restart_interval",
            "a block needs restart points",
            "set it to 16, and index_block_restart_interval to 1",
        );
        self.error_if(
            t.pin_l0_filter_and_index_blocks_in_cache && t.no_block_cache,
            "pin_l0_filter_and_index_blocks_in_cache",
            "there is no block cache to pin blocks in",
            "set no_block_cache=false, or pin_l0_filter_and_index_blocks_in_cache=false",
        );
        self.error_if(
            t.block_align
                && (o.compression != CompressionType::None || !t.block_size.is_power_of_two()),
            "block_align",
            "only uncompressed blocks of a size that is a power of two can be aligned",
            "set compression=kNoCompression and block_size=4096, or block_align=false",
        );
        self.error_if(
            t.index_type == IndexType::HashSearch && o.prefix_extractor.is_none(),
            "index_type",
            "a hash index is by prefix, and there is no prefix extractor",
            "set prefix_extractor, or index_type=kBinarySearch",
        );
        self.error_if(
            t.data_block_index_type == DataBlockIndexType::BinaryAndHash
                && t.data_block_hash_table_util_ratio <= 0.0,
            "data_block_hash_table_util_ratio",
            "a hash table needs buckets",
            "set it to 0.75",
        );
        self.advise_if(
            t.partition_filters && t.index_type != IndexType::TwoLevelIndexSearch,
            "partition_filters",
            "filters are split only together with the index",
            "set index_type=kTwoLevelIndexSearch",
        );
        self.advise_if(
            t.pin_l0_filter_and_index_blocks_in_cache && !t.cache_index_and_filter_blocks,
            "pin_l0_filter_and_index_blocks_in_cache",
            "index and filter blocks are not in the cache",
            "set cache_index_and_filter_blocks=true, or leave it at false",
        );
        self.error_if(
            t.cache_index_and_filter_blocks && t.no_block_cache,
            "cache_index_and_filter_blocks",
            "there is no block cache to hold them",
            "set no_block_cache=false, or cache_index_and_filter_blocks=false",
        );
        self.advise_if(
            t.filter_policy.is_some() && !t.whole_key_filtering && o.prefix_extractor.is_none(),
            "whole_key_filtering",
            "without whole keys and prefixes the filter stays empty",
            "set it to true, or set prefix_extractor",
        );
        self.advise_if(
            t.checksum == ChecksumKind::None,
            "checksum",
            "damage in table files would go unnoticed",
            "set it to kXXH3",
        );
    }
}

/// Returns whether one of the paths names no directory.
fn is_unnamed(paths: &[DbPath]) -> bool {
    paths.iter().any(|p| p.path.as_os_str().is_empty())
}

/// Finds options that do not fit together, the database's first.
pub fn lint<'a>(
    db: &DbOptions,
    families: impl IntoIterator<Item = (&'a str, &'a FamilyOptions)>,
) -> Vec<Finding> {
    let mut linter = Linter {
        family: None,
        findings: Vec::new(),
    };
    linter.database(db);
    for (name, options) in families {
        linter.family = Some(name);
        linter.family(db, options);
    }
    linter.findings
}

/// `NotSupported` for a codec that options ask for and this build was made without.
fn check_codecs(db: &DbOptions, families: &[(&str, &FamilyOptions)]) -> Result<()> {
    let is_there = |codec: Option<Codec>, option: &str| {
        let given = codec.filter(|codec| codec.feature().is_some());
        given.map_or(Ok(()), Codec::check_supported).map_err(|e| {
            let hint = e.hint().unwrap_or_default().to_owned();
            Error::not_supported(format!("option {option}: {}", e.message())).with_hint(hint)
        })
    };
    is_there(db.wal_compression.codec(), "wal_compression")?;
    for (name, o) in families {
        let of = |option: &str| format!("{option} of family {name:?}");
        is_there(o.compression.codec(), &of("compression"))?;
        is_there(
            o.bottommost_compression.codec(),
            &of("bottommost_compression"),
        )?;
        is_there(
            o.blob_compression_type.codec(),
            &of("blob_compression_type"),
        )?;
        for codec in &o.compression_per_level {
            is_there(codec.codec(), &of("compression_per_level"))?;
        }
        let tier = o.table.block_cache.tier().map(|tier| tier.codec);
        is_there(tier, &of("block_cache"))?;
    }
    Ok(())
}

/// The first finding that keeps a database from opening, as an error.
pub fn check<'a>(
    db: &DbOptions,
    families: impl IntoIterator<Item = (&'a str, &'a FamilyOptions)>,
) -> Result<()> {
    let families: Vec<_> = families.into_iter().collect();
    check_codecs(db, &families)?;
    match lint(db, families)
        .into_iter()
        .find(|f| f.severity == Severity::Error)
    {
        None => Ok(()),
        Some(finding) => {
            let place = finding
                .family
                .map(|f| format!(" of family {f:?}"))
                .unwrap_or_default();
            Err(Error::invalid_argument(format!(
                "option {}{place}: {}",
                finding.option, finding.problem
            ))
            .with_hint(finding.instead))
        }
    }
}
