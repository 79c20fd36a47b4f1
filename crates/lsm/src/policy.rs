//! The options that decisions about a tree need, and what they need besides.
//!
//! Plain values, most under RocksDB's names; the picker, the targets and the sizes of levels read
//! them. What stands inside braces in OPTIONS texts is declared here whole, for the catalogue too.

use crate::load::StallTriggers;
use esker_format::{Level, named_enum};

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

/// From how much garbage on the oldest blob files are left by compactions of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForcedBlobGc {
    /// The share of the blob files that is looked at, oldest first.
    pub age_cutoff: f64,
    /// The share of garbage in their bytes.
    pub threshold: f64,
}

/// Gives the rows of the picker's options to the macro `$then`, before `$rest`.
///
/// A row is an option of a family, as the catalogue of options has it, then the type of its value
/// in [`Policy`] and the function below that converts it. A new option of the picker is a row here
/// and its use.
#[macro_export]
macro_rules! picker_options {
    ($then:ident $($rest:tt)*) => { $then! { {
        /// How the tree is kept in shape.
        compaction_style: CompactionStyle = CompactionStyle::Level, Live, Compaction, Both, AtOpen => CompactionStyle, same;
        /// Which file of a level goes first.
        compaction_pri: CompactionPri = CompactionPri::MinOverlappingRatio, Live, Compaction, Both, AtOpen => CompactionPri, same;
        /// Universal compaction.
        compaction_options_universal: UniversalSettings = UniversalSettings::default(), Live, Compaction, Both, AnyTime => UniversalSettings, same;
        /// FIFO compaction.
        compaction_options_fifo: FifoSettings = FifoSettings::default(), Live, Compaction, Both, AnyTime => FifoSettings, same;
        /// Bytes of entries, as RocksDB's skip list holds them, at which a memtable is flushed.
        write_buffer_size: usize = 64 << 20, Live, Memory, Both, AnyTime => u64, bytes;
        /// Files of level 0 that start a compaction.
        level0_file_num_compaction_trigger: i32 = 4, Live, Compaction, Both, AnyTime => u32, unsigned;
        /// Bytes of a table file on the first level that has a size.
        target_file_size_base: u64 = 64 << 20, Live, Compaction, Both, AnyTime => u64, same;
        /// Growth of that from level to level.
        target_file_size_multiplier: i32 = 1, Live, Compaction, Both, AnyTime => u32, unsigned;
        /// Bytes of level 1.
        max_bytes_for_level_base: u64 = 256 << 20, Live, Compaction, Both, AnyTime => u64, same;
        /// Growth of that from level to level.
        max_bytes_for_level_multiplier: f64 = 10.0, Live, Compaction, Both, AnyTime => f64, same;
        /// More growth, level by level.
        max_bytes_for_level_multiplier_additional: Vec<i32> = vec![1; 7], Live, Compaction, Both, AnyTime => Vec<u32>, all_unsigned;
        /// Sizes levels from the last one up, so that space amplification stays near 1.1.
        level_compaction_dynamic_level_bytes: bool = true, Live, Compaction, Both, AtOpen => bool, same;
        /// With dynamic level sizes, chooses the number of levels and their sizes by cost, and lets
        /// level 0 hold up to four times its trigger while writers are held back; false for
        /// RocksDB's rule.
        level_shape_by_cost: bool = true, Live, Compaction, Own, AnyTime => bool, same;
        /// Merges runs and flushes idle memtables where reads have spent as much time on them as
        /// that takes.
        compaction_for_reads: bool = true, Live, Compaction, Own, AnyTime => bool, same;
        /// The most space that a family's tables and blob files take, in percent of what is alive
        /// in them, at least 110. What jobs are writing and what waits to be deleted counts too,
        /// what readers keep from going does not. Writers are slowed down and stopped before it is
        /// passed; a merge that finds no room anywhere may pass it for a while. Garbage is
        /// collected from blob files as far as the bound needs it, with
        /// `enable_blob_garbage_collection=false` too, and no further. A few memtables beside what
        /// is alive are no garbage to it. Leveled and universal compaction only. 0 for no bound.
        max_space_amplification_percent: u32 = 0, Live, Compaction, Own, AnyTime => u32, same;
        /// Bytes that one compaction may read; 0 for 25 files.
        max_compaction_bytes: u64 = 0, Live, Compaction, Both, AnyTime => u64, same;
        /// Starts no compaction by itself.
        disable_auto_compactions: bool = false, Live, Compaction, Both, AnyTime => bool, same;
        /// Seconds after which data is rewritten; the largest value but one for 30 days.
        ttl: u64 = u64::MAX - 1, Live, Compaction, Both, AnyTime => u64, chosen_seconds;
        /// Seconds after which a file is rewritten in place; the largest value but one lets
        /// compaction filters decide.
        periodic_compaction_seconds: u64 = u64::MAX - 1, Live, Compaction, Both, AnyTime => u64, chosen_seconds;
        /// Reads for each byte of a file that found no value in it, by samples, from which on it is
        /// compacted; 0 never. Beside `compaction_for_reads`, which needs no number.
        read_triggered_compaction_threshold: f64 = 0.0, Live, Compaction, New, AnyTime => f64, same;
    } $($rest)* } };
}

/// The value itself.
pub fn same<T: Clone>(value: &T) -> T {
    value.clone()
}

/// A number that counts something; 0 for a negative one.
pub fn unsigned(value: &i32) -> u32 {
    u32::try_from(*value).unwrap_or(0)
}

/// Each number of a list as [`unsigned`] has it.
pub fn all_unsigned(values: &[i32]) -> Vec<u32> {
    values.iter().map(unsigned).collect()
}

/// A size of memory.
pub fn bytes(value: &usize) -> u64 {
    *value as u64
}

/// Seconds; none where the engine was to choose and chose none.
pub fn chosen_seconds(value: &u64) -> u64 {
    match *value {
        CHOOSE_SECONDS => 0,
        seconds => seconds,
    }
}

/// The value of an option in seconds that leaves the choice to the engine.
pub const CHOOSE_SECONDS: u64 = u64::MAX - 1;

/// Declares the policy from the rows.
macro_rules! declare_policy {
    ({ $(
        $(#[doc = $doc:literal])+
        $field:ident : $ty:ty = $default:expr,
        $fate:ident, $group:ident, $known:ident, $change:ident => $picked:ty, $convert:ident;
    )* }) => {
        /// The options that decisions about a tree need, most under RocksDB's names.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Policy {
            $( $(#[doc = $doc])+ pub $field: $picked, )*
            /// The numbers at which writers are slowed down and stopped, while compactions run.
            pub stall_triggers: StallTriggers,
            /// Lets a file move to the next level unread (same compression and path).
            pub allow_trivial_move: bool,
            /// Bytes aimed at for each path of the family's tables; empty where there is one.
            pub path_targets: Vec<u64>,
            /// When garbage in blob files starts compactions; `None` for never.
            pub forced_blob_gc: Option<ForcedBlobGc>,
            /// The first level to which medium values move with their keys; `None` where they are
            /// not kept in groups.
            pub blob_groups_from: Option<Level>,
        }

        impl Default for Policy {
            fn default() -> Self {
                Policy {
                    $( $field: $convert(&$default), )*
                    stall_triggers: StallTriggers::new((20, 36), (64 << 30, 256 << 30)),
                    allow_trivial_move: true,
                    path_targets: Vec::new(),
                    forced_blob_gc: None,
                    blob_groups_from: None,
                }
            }
        }
    };
}

picker_options!(declare_policy);

impl Policy {
    /// Returns whether the levels of a tree are sized by what they cost. Such a tree may become a
    /// stack of runs, which a bound on space does not allow.
    pub(crate) fn is_shaped_by_cost(&self) -> bool {
        self.compaction_style == CompactionStyle::Level
            && self.level_compaction_dynamic_level_bytes
            && self.level_shape_by_cost
            && self.max_space_amplification_percent == 0
    }

    /// Returns whether universal compaction may merge less than whole runs.
    pub fn takes_slices(&self) -> bool {
        let universal = &self.compaction_options_universal;
        universal.incremental
            || universal.max_peak_size_amplification_percent > 0
            || self.max_space_amplification_percent > 0
    }
}
