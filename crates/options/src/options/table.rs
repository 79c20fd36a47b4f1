//! The options of block-based table files, by RocksDB's names.

use super::block_cache::BlockCacheSource;
use super::catalogue::option_table;
use super::nested::MetadataCacheSettings;
use super::nested_value::nested_option;
use crate::enums::{
    BlockSearchType, ChecksumKind, DataBlockIndexType, IndexShortening, IndexType,
    PrepopulateBlockCache,
};
use esker_format::filter::FilterPolicy;

option_table! {
    /// How table files are written and read (`BlockBasedTableOptions`).
    pub struct TableSettings in Table;

    /// The rule that ends a block.
    flush_block_policy_factory: String = "FlushBlockBySizePolicyFactory".into(), Refused("blocks end by size"), Table, Both, AtOpen;
    /// Charges index and filter blocks to the block cache, which may then evict them.
    cache_index_and_filter_blocks: bool = false, Live, Table, Both, AtOpen;
    /// Gives those blocks high priority there.
    cache_index_and_filter_blocks_with_high_priority: bool = true, Live, Table, Both, AtOpen;
    /// Keeps those of level-0 files in the cache while the file is open.
    pin_l0_filter_and_index_blocks_in_cache: bool = false, Live, Table, Both, AtOpen;
    /// Keeps the tops of partitioned indexes and filters in the cache.
    pin_top_level_index_and_filter: bool = true, Live, Table, Both, AtOpen;
    /// These choices, one by one.
    metadata_cache_options: MetadataCacheSettings = MetadataCacheSettings::default(), Live, Table, Both, AtOpen;
    /// How a block is found.
    index_type: IndexType = IndexType::BinarySearch, Live, Table, Both, AtOpen;
    /// How an index block is searched.
    index_block_search_type: BlockSearchType = BlockSearchType::Binary, Accepted("a search strategy of the reader; results are the same"), Table, New, AtOpen;
    /// How a data block finds a key.
    data_block_index_type: DataBlockIndexType = DataBlockIndexType::BinarySearch, Live, Table, Both, AtOpen;
    /// Entries per bucket of the hash table in data blocks.
    data_block_hash_table_util_ratio: f64 = 0.75, Live, Table, Both, AtOpen;
    /// The checksum of each block.
    checksum: ChecksumKind = ChecksumKind::Xxh3, Live, Table, Both, AtOpen;
    /// Reads every block from the file, every time.
    no_block_cache: bool = false, Live, Table, Both, AtOpen;
    /// Target size of a data block before compression, in bytes.
    block_size: u64 = 4096, Live, Table, Both, AnyTime;
    /// A block is closed early when it is this many percent below the target and the next entry
    /// would overshoot.
    block_size_deviation: i32 = 10, Live, Table, Both, AnyTime;
    /// Entries between restart points of a data block.
    block_restart_interval: i32 = 16, Live, Table, Both, AnyTime;
    /// Entries between restart points of an index block.
    index_block_restart_interval: i32 = 1, Live, Table, Both, AtOpen;
    /// Target size of a partition of an index or a filter.
    metadata_block_size: u64 = 4096, Live, Table, Both, AtOpen;
    /// Splits the filter into partitions; needs `kTwoLevelIndexSearch`.
    partition_filters: bool = false, Live, Table, Both, AtOpen;
    /// Lets filter partitions end elsewhere than index partitions.
    decouple_partitioned_filters: bool = true, Accepted("a choice of the writer; every reader reads both"), Table, New, AtOpen;
    /// Rounds filter sizes to what the allocator gives.
    optimize_filters_for_memory: bool = true, Accepted("filters are sized exactly; the allocator's slack is not used"), Table, Both, AtOpen;
    /// Stores only the part of a key that differs from the one before.
    use_delta_encoding: bool = true, Live, Table, New, AtOpen;
    /// The filter: `bloomfilter:BITS:false`, `ribbonfilter:BITS:LEVEL`, `nullptr`.
    filter_policy: Option<FilterPolicy> = None, Live, Table, Both, AtOpen;
    /// An index of the application's own.
    user_defined_index_factory: String = "nullptr".into(), Refused("user-defined indexes are not built"), Table, New, AtOpen;
    /// Refuses to open a file that lacks such an index.
    fail_if_no_udi_on_open: bool = false, Refused("user-defined indexes are not built"), Table, New, AtOpen;
    /// Reads through such an index by default.
    use_udi_as_primary_index: bool = false, Refused("user-defined indexes are not built"), Table, New, AtOpen;
    /// Puts whole keys into the filter.
    whole_key_filtering: bool = true, Live, Table, Both, AtOpen;
    /// Reads each new table back and checks its filter against its keys.
    detect_filter_construct_corruption: bool = false, Live, Table, Both, AtOpen;
    /// Reads each new table back and decompresses every block.
    verify_compression: bool = false, Live, Table, Both, AtOpen;
    /// Sampling of read amplification, bytes per bit; 0 for none.
    read_amp_bytes_per_bit: u32 = 0, Accepted("read amplification is counted by the statistics"), Table, Both, AtOpen;
    /// Version of the file format, 2 to 7. Version 5 is what 7.8 and 11.x both read.
    format_version: u32 = 5, Live, Table, Both, AtOpen;
    /// Keeps a block's keys and values apart; needs format version 7 and RocksDB 11 to read.
    separate_key_value_in_data_block: bool = false, Accepted("a layout of blocks; such blocks are read, and written with keys and values side by side"), Table, New, AtOpen;
    /// Spread of keys below which an index block is marked uniform; negative never.
    uniform_cv_threshold: f64 = -1.0, Accepted("a mark for interpolation search; readers ignore it"), Table, New, AtOpen;
    /// Compresses index blocks.
    enable_index_compression: bool = true, Live, Table, Both, AtOpen;
    /// Pads data blocks to the block size; needs no compression.
    block_align: bool = false, Live, Table, Both, AtOpen;
    /// Keeps blocks from crossing multiples of this size; 0 never pads.
    super_block_alignment_size: usize = 0, Accepted("a layout of files; nothing is padded"), Table, New, AtOpen;
    /// Share of space such padding may cost.
    super_block_alignment_space_overhead_ratio: usize = 128, Accepted("only with super_block_alignment_size"), Table, New, AtOpen;
    /// How much index keys are shortened.
    index_shortening: IndexShortening = IndexShortening::ShortenSeparators, Live, Table, Both, AtOpen;
    /// Largest readahead that sequential reads grow to, in bytes.
    max_auto_readahead_size: usize = 256 << 10, Live, Read, Both, AtOpen;
    /// Fresh blocks that go into the block cache.
    prepopulate_block_cache: PrepopulateBlockCache = PrepopulateBlockCache::Disable, Live, Table, Both, AnyTime;
    /// Readahead when sequential reading is noticed, in bytes.
    initial_auto_readahead_size: usize = 8 << 10, Live, Read, Both, AtOpen;
    /// Sequential reads of a file before readahead begins.
    num_file_reads_for_auto_readahead: u64 = 2, Live, Read, Both, AtOpen;
    /// The cache of blocks, which families with the same value share: a size in bytes for an LRU
    /// cache, or `{capacity=...;...}`; with `id=AutoHyperClockCache` a clock.
    block_cache: BlockCacheSource = BlockCacheSource::default(), Live, Memory, Unprinted, AtOpen;
    /// A cache on a device.
    persistent_cache: String = "nullptr".into(), Refused("there is no cache on a device"), Memory, Unprinted, AtOpen;
}

nested_option!(TableSettings);
