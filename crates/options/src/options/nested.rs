//! Options that live inside braces: compression, universal and FIFO compaction, metadata pinning.

use super::catalogue::{option_rows, option_table};
use super::nested_value::nested_option;
use crate::enums::{CompactionStopStyle, PinningTier};
use esker_lsm::policy::{FifoSettings, FileTemperatureAge, UniversalSettings};

option_table! {
    /// How hard a codec tries (`compression_opts` and its siblings).
    pub struct CompressionSettings in Compression;

    /// zlib's window, -9 to -14; any other stands for the nearest of these.
    window_bits: i32 = -14, Live, Compression, Both, AnyTime;
    /// The codec's level, or the nearest that it has; 32767 stands for its own default.
    level: i32 = 32767, Live, Compression, Both, AnyTime;
    /// zlib's strategy.
    strategy: i32 = 0, Accepted("a hint to zlib; any block is read alike"), Compression, Both, AnyTime;
    /// Largest dictionary stored in each file; 0 for none.
    max_dict_bytes: u32 = 0, Live, Compression, Both, AnyTime;
    /// Bytes of samples that zstd's trainer sees; 0 takes samples as the dictionary.
    zstd_max_train_bytes: u32 = 0, Live, Compression, Both, AnyTime;
    /// Threads that compress the blocks of one file.
    parallel_threads: u32 = 1, Live, Compression, Both, AnyTime;
    /// In `bottommost_compression_opts`: whether these settings apply at all.
    enabled: bool = false, Live, Compression, Both, AnyTime;
    /// Most bytes held back while samples for a dictionary are collected; 0 for the file's size.
    max_dict_buffer_bytes: u64 = 0, Live, Compression, Both, AnyTime;
    /// Builds dictionaries by zstd's trainer; false for its plain dictionary maker.
    use_zstd_dict_trainer: bool = true, Live, Compression, Both, AnyTime;
    /// A block is stored raw unless it shrinks to this many bytes per 1024.
    max_compressed_bytes_per_kb: i32 = 896, Live, Compression, New, AnyTime;
    /// Adds zstd's own checksum to each frame.
    checksum: bool = false, Accepted("every block has a checksum already"), Compression, New, AnyTime;
}

option_rows! {
    UniversalSettings in Universal;

    /// Percent by which the next run may be larger than those picked.
    size_ratio: u32, Live, Compaction, Both, AnyTime;
    /// Fewest runs merged at once.
    min_merge_width: u32, Live, Compaction, Both, AnyTime;
    /// Most runs merged at once.
    max_merge_width: u32, Live, Compaction, Both, AnyTime;
    /// Percent of extra space before everything is merged.
    max_size_amplification_percent: u32, Live, Compaction, Both, AnyTime;
    /// Percent of the data, from the oldest on, that is compressed at least; flushes are not. -1
    /// compresses all.
    compression_size_percent: i32, Live, Compaction, Both, AnyTime;
    /// Most runs a read may meet; -1 for `level0_file_num_compaction_trigger`, 0 to compute it from
    /// the sizes.
    max_read_amp: i32, Live, Compaction, New, AnyTime;
    /// When to stop adding runs.
    stop_style: CompactionStopStyle, Live, Compaction, Both, AnyTime;
    /// Merges the oldest two levels in slices of at most `max_compaction_bytes` where that is not
    /// much more expensive.
    incremental: bool, Live, Compaction, Both, AnyTime;
    /// Moves a run that overlaps nothing instead of rewriting it.
    allow_trivial_move: bool, Live, Compaction, Both, AnyTime;
    /// Locks fewer files while a merge waits its turn.
    reduce_file_locking: bool, Accepted("files are locked when a job starts, not while it waits"), Compaction, New, AnyTime;
    /// The largest size of all tables and of the possible output of running merges, as percent
    /// above the largest run. Merges that do not fit are sliced or wait; one at a time runs when
    /// none fits. With 134 and more, everything is merged while that fits, earlier than
    /// `max_size_amplification_percent` asks. 0 for no bound.
    max_peak_size_amplification_percent: u32, Live, Compaction, Own, AnyTime;
}

option_rows! {
    FifoSettings in Fifo;

    /// Total size of table files above which the oldest go.
    max_table_files_size: u64, Live, Compaction, Both, AnyTime;
    /// Age in seconds after which a file counts as warm; 0 never.
    age_for_warm: u64, Accepted("without effect in RocksDB 11, too; use file_temperature_age_thresholds"), Compaction, Both, AnyTime;
    /// Merges small files of level 0.
    allow_compaction: bool, Live, Compaction, Both, AnyTime;
    /// Temperatures by age, as `{{temperature=T;age=SECONDS;}:{...}}`: an older file is rewritten,
    /// and the MANIFEST and listings show it. The temperature does not change a file's path.
    file_temperature_age_thresholds: Vec<FileTemperatureAge>, Live, Compaction, New, AnyTime;
    /// Copies a file when only its temperature changes.
    allow_trivial_copy_when_change_temperature: bool, Accepted("the file is merged by itself, which drops what is deleted and compresses anew"), Compaction, New, AnyTime;
    /// Buffer of such a copy.
    trivial_copy_buffer_size: u64, Accepted("only with allow_trivial_copy_when_change_temperature"), Compaction, New, AnyTime;
    /// Total size of table and blob files above which the oldest go; 0 for no limit.
    max_data_files_size: u64, Live, Compaction, New, AnyTime;
    /// Merges small files tier by tier, up to the size at which
    /// `level0_file_num_compaction_trigger` files reach `max_data_files_size`.
    use_kv_ratio_compaction: bool, Live, Compaction, New, AnyTime;
}

option_table! {
    /// Which index and filter blocks stay in the block cache.
    pub struct MetadataCacheSettings in MetadataCache;

    /// The top of a partitioned index.
    top_level_index_pinning: PinningTier = PinningTier::Fallback, Live, Table, Both, AtOpen;
    /// The partitions of an index or a filter.
    partition_pinning: PinningTier = PinningTier::Fallback, Accepted("partitions are fetched when they are needed, and age out by use"), Table, Both, AtOpen;
    /// An index or filter that is one block.
    unpartitioned_pinning: PinningTier = PinningTier::Fallback, Live, Table, Both, AtOpen;
}

nested_option!(
    CompressionSettings,
    UniversalSettings,
    FifoSettings,
    MetadataCacheSettings
);
