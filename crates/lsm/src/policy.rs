//! The options that decisions about a tree need, and what they need besides.
//!
//! Plain values, most under RocksDB's names; the picker, the targets and the sizes of levels read
//! them. What stands inside braces in OPTIONS texts is declared here whole, for the catalogue too.

use crate::load::StallTriggers;
use esker_format::named_enum;

named_enum! {
    /// How the tree is kept in shape; RocksDB's `CompactionStyle`.
    #[derive(Default)]
    pub enum CompactionStyle {
        /// Levels, each some times larger than the one above.
        #[default]
        Level = 0 "kCompactionStyleLevel",
        /// Sorted runs of similar size are merged.
        Universal = 1 "kCompactionStyleUniversal",
        /// The oldest files are dropped.
        Fifo = 2 "kCompactionStyleFIFO",
        /// Nothing is compacted unless asked for.
        None = 3 "kCompactionStyleNone",
    }
}

named_enum! {
    /// Which file of a level goes first; RocksDB's `CompactionPri`.
    #[derive(Default)]
    pub enum CompactionPri {
        /// The largest, with deletions counted extra.
        ByCompensatedSize = 0 "kByCompensatedSize",
        /// The one whose newest entry is oldest.
        OldestLargestSeqFirst = 1 "kOldestLargestSeqFirst",
        /// The one whose oldest entry is oldest.
        OldestSmallestSeqFirst = 2 "kOldestSmallestSeqFirst",
        /// The one that overlaps least with the next level, relative to its size.
        #[default]
        MinOverlappingRatio = 3 "kMinOverlappingRatio",
        /// Each in turn.
        RoundRobin = 4 "kRoundRobin",
    }
}

named_enum! {
    /// When universal compaction stops adding runs.
    pub enum CompactionStopStyle {
        /// By comparing with the run picked last.
        SimilarSize = 0 "kCompactionStopStyleSimilarSize",
        /// By comparing with everything picked so far.
        TotalSize = 1 "kCompactionStopStyleTotalSize",
    }
}

/// Universal compaction: `compaction_options_universal`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UniversalSettings {
    /// Percent by which the next run may be larger than those picked.
    pub size_ratio: u32,
    /// Fewest runs merged at once.
    pub min_merge_width: u32,
    /// Most runs merged at once.
    pub max_merge_width: u32,
    /// Percent of extra space before everything is merged.
    pub max_size_amplification_percent: u32,
    /// Percent of the data, from the oldest on, that is compressed at least; flushes are not. -1
    /// compresses all.
    pub compression_size_percent: i32,
    /// Most runs a read may meet; -1 for `level0_file_num_compaction_trigger`, 0 to compute it from
    /// the sizes.
    pub max_read_amp: i32,
    /// When to stop adding runs.
    pub stop_style: CompactionStopStyle,
    /// Merges the oldest two levels in slices of at most `max_compaction_bytes` where that is not
    /// much more expensive.
    pub incremental: bool,
    /// Moves a run that overlaps nothing instead of rewriting it.
    pub allow_trivial_move: bool,
    /// No decision needs it: files are locked when a job starts.
    pub reduce_file_locking: bool,
    /// The largest size of all tables and of the possible output of running merges, as percent
    /// above the largest run; 0 for no bound.
    pub max_peak_size_amplification_percent: u32,
}

impl Default for UniversalSettings {
    fn default() -> Self {
        UniversalSettings {
            size_ratio: 1,
            min_merge_width: 2,
            max_merge_width: u32::MAX,
            max_size_amplification_percent: 200,
            compression_size_percent: -1,
            max_read_amp: -1,
            stop_style: CompactionStopStyle::TotalSize,
            incremental: false,
            allow_trivial_move: false,
            reduce_file_locking: true,
            max_peak_size_amplification_percent: 0,
        }
    }
}

named_enum! {
    /// How often a file is expected to be read.
    pub enum Temperature {
        /// Not said.
        Unknown = 0 "kUnknown",
        /// Often.
        Hot = 4 "kHot",
        /// Sometimes.
        Warm = 8 "kWarm",
        /// Less than sometimes.
        Cool = 10 "kCool",
        /// Seldom.
        Cold = 12 "kCold",
        /// Hardly ever.
        Ice = 16 "kIce",
    }
}

/// From which age on a file has which temperature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTemperatureAge {
    /// The temperature.
    pub temperature: Temperature,
    /// Seconds since the file's newest write.
    pub age: u64,
}

/// FIFO compaction: `compaction_options_fifo`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FifoSettings {
    /// Total size of table files above which the oldest go.
    pub max_table_files_size: u64,
    /// No decision needs it: temperatures follow `file_temperature_age_thresholds`.
    pub age_for_warm: u64,
    /// Merges small files of level 0.
    pub allow_compaction: bool,
    /// Temperatures by age, ascending: an older file is rewritten.
    pub file_temperature_age_thresholds: Vec<FileTemperatureAge>,
    /// No decision needs it: a file whose temperature changes is merged by itself.
    pub allow_trivial_copy_when_change_temperature: bool,
    /// The buffer of such a copy.
    pub trivial_copy_buffer_size: u64,
    /// Total size of table and blob files above which the oldest go; 0 for no limit.
    pub max_data_files_size: u64,
    /// Merges small files tier by tier, up to the size at which
    /// `level0_file_num_compaction_trigger` files reach `max_data_files_size`.
    pub use_kv_ratio_compaction: bool,
}

impl Default for FifoSettings {
    fn default() -> Self {
        FifoSettings {
            max_table_files_size: 1 << 30,
            age_for_warm: 0,
            allow_compaction: false,
            file_temperature_age_thresholds: Vec::new(),
            allow_trivial_copy_when_change_temperature: false,
            trivial_copy_buffer_size: 4096,
            max_data_files_size: 0,
            use_kv_ratio_compaction: false,
        }
    }
}

/// The options that decisions need, most under RocksDB's names.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// See [`CompactionStyle`].
    pub compaction_style: CompactionStyle,
    /// See [`CompactionPri`].
    pub compaction_pri: CompactionPri,
    /// Whether automatic compactions are off.
    pub disable_auto_compactions: bool,
    /// Files at level 0 (or runs) that start a compaction.
    pub level0_file_num_compaction_trigger: u32,
    /// Size of level 1, in bytes.
    pub max_bytes_for_level_base: u64,
    /// Factor from level to level.
    pub max_bytes_for_level_multiplier: f64,
    /// Extra factors by level.
    pub max_bytes_for_level_multiplier_additional: Vec<u32>,
    /// Whether targets follow from the size of the last level.
    pub level_compaction_dynamic_level_bytes: bool,
    /// Whether that rule is [`crate::level_sizes`]; else it is RocksDB's.
    pub level_shape_by_cost: bool,
    /// Whether runs are merged for reads ([`crate::read_demand`]).
    pub compaction_for_reads: bool,
    /// Reads for each byte of a file without a value from it that make it worth compacting; 0 for
    /// never.
    pub read_triggered_compaction_threshold: f64,
    /// Where writers are slowed down and stopped, while compactions run.
    pub stall_triggers: StallTriggers,
    /// Size of output files at level 1.
    pub target_file_size_base: u64,
    /// Factor of it from level to level.
    pub target_file_size_multiplier: u32,
    /// The most bytes in one compaction; 0 means 25 times the target file size.
    pub max_compaction_bytes: u64,
    /// Size of a memtable.
    pub write_buffer_size: u64,
    /// Files whose data is older (seconds) go down; 0 for never.
    pub ttl: u64,
    /// Files older than this (seconds) are rewritten; 0 for never.
    pub periodic_compaction_seconds: u64,
    /// Whether a file may move to the next level unread (same compression and path).
    pub allow_trivial_move: bool,
    /// Universal's own.
    pub compaction_options_universal: UniversalSettings,
    /// FIFO's own.
    pub compaction_options_fifo: FifoSettings,
    /// Bytes aimed at for each path of the family's tables; empty where there is one.
    pub path_targets: Vec<u64>,
}

impl Policy {
    /// Whether the levels of a tree are sized by what they cost.
    pub(crate) fn is_shaped_by_cost(&self) -> bool {
        self.compaction_style == CompactionStyle::Level
            && self.level_compaction_dynamic_level_bytes
            && self.level_shape_by_cost
    }

    /// Whether universal compaction may merge less than whole runs.
    pub fn takes_slices(&self) -> bool {
        let universal = &self.compaction_options_universal;
        universal.incremental || universal.max_peak_size_amplification_percent > 0
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            compaction_style: CompactionStyle::Level,
            compaction_pri: CompactionPri::MinOverlappingRatio,
            disable_auto_compactions: false,
            level0_file_num_compaction_trigger: 4,
            max_bytes_for_level_base: 256 << 20,
            max_bytes_for_level_multiplier: 10.0,
            max_bytes_for_level_multiplier_additional: vec![1; 7],
            level_compaction_dynamic_level_bytes: true,
            level_shape_by_cost: true,
            compaction_for_reads: true,
            read_triggered_compaction_threshold: 0.0,
            stall_triggers: StallTriggers::new((20, 36), (64 << 30, 256 << 30)),
            target_file_size_base: 64 << 20,
            target_file_size_multiplier: 1,
            max_compaction_bytes: 0,
            write_buffer_size: 64 << 20,
            ttl: 0,
            periodic_compaction_seconds: 0,
            allow_trivial_move: true,
            compaction_options_universal: UniversalSettings::default(),
            compaction_options_fifo: FifoSettings::default(),
            path_targets: Vec::new(),
        }
    }
}
