//! The options that decisions about a tree need, and what they need besides.
//!
//! Plain values, most under RocksDB's names; the picker, the targets and the sizes of levels read
//! them.

use crate::stall_triggers::StallTriggers;
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

/// Options of universal compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniversalOptions {
    /// Percent by which the next run may be larger than those before it.
    pub size_ratio: u32,
    /// The fewest runs to merge.
    pub min_merge_width: u32,
    /// The most runs to merge.
    pub max_merge_width: u32,
    /// Percent of extra space that starts a full merge.
    pub max_size_amplification_percent: u32,
    /// Runs together below this percent of the data are not compressed; -1 for always compress.
    pub compression_size_percent: i32,
    /// Whether to stop at runs of similar size (`true`) or of total size (`false`).
    pub stop_style_similar_size: bool,
    /// Runs that do not overlap may be moved.
    pub allow_trivial_move: bool,
    /// The most runs that a read may meet: -1 for the trigger, 0 for as many as sizes that grow by
    /// the ratio make.
    pub max_read_amp: i32,
    /// Large merges are cut into slices where that costs little more.
    pub incremental: bool,
    /// Percent above the largest run that tables and what running merges may write take together; 0
    /// for no bound.
    pub max_peak_size_amplification_percent: u32,
}

impl UniversalOptions {
    /// Whether less than whole runs may be merged.
    pub fn takes_slices(&self) -> bool {
        self.incremental || self.max_peak_size_amplification_percent > 0
    }
}

impl Default for UniversalOptions {
    fn default() -> Self {
        UniversalOptions {
            size_ratio: 1,
            min_merge_width: 2,
            max_merge_width: u32::MAX,
            max_size_amplification_percent: 200,
            compression_size_percent: -1,
            stop_style_similar_size: false,
            allow_trivial_move: false,
            max_read_amp: -1,
            incremental: false,
            max_peak_size_amplification_percent: 0,
        }
    }
}

/// From which age on a file has which temperature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemperatureAge {
    /// Seconds since the file's newest write.
    pub age: u64,
    /// The MANIFEST's byte for it.
    pub temperature: u8,
}

/// Options of FIFO compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FifoOptions {
    /// The tables together stay below this.
    pub max_table_files_size: u64,
    /// Tables and blob files together stay below this; 0 for the limit on tables.
    pub max_data_files_size: u64,
    /// Whether small files are merged.
    pub allow_compaction: bool,
    /// Whether they are merged tier by tier up to the size that makes the trigger's number of files
    /// at the limit.
    pub use_kv_ratio_compaction: bool,
    /// Ascending by age.
    pub temperature_ages: Vec<TemperatureAge>,
}

impl Default for FifoOptions {
    fn default() -> Self {
        FifoOptions {
            max_table_files_size: 1 << 30,
            max_data_files_size: 0,
            allow_compaction: false,
            use_kv_ratio_compaction: false,
            temperature_ages: Vec::new(),
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
    /// Whether runs are merged for reads ([`crate::pick::for_reads`]).
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
    pub compaction_options_universal: UniversalOptions,
    /// FIFO's own.
    pub compaction_options_fifo: FifoOptions,
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
            compaction_options_universal: UniversalOptions::default(),
            compaction_options_fifo: FifoOptions::default(),
            path_targets: Vec::new(),
        }
    }
}
