//! RocksDB's block-based table options, and what a reader and a builder are told beside them.

use super::{
    BlockCache, CompressionThreads, PrepopulateTarget, StageClock, TableObserver, WalkLengths,
};
use esker_codec::checksum::ChecksumType;
use esker_codec::compress::{Codec, CompressionOptions};

use esker_format::filter::FilterPolicy;
use esker_format::{FamilyId, FileNo, KeyOrder, Level, PrefixExtractor, Seq};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// `index_type`: how data blocks are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum IndexType {
    /// One index block.
    #[default]
    BinarySearch = 0,
    /// One index block, and prefixes hashed to ranges of it.
    HashSearch = 1,
    /// Partitions under a top-level block.
    TwoLevelIndexSearch = 2,
    /// One index block that also holds the first key of every data block.
    BinarySearchWithFirstKey = 3,
}

impl IndexType {
    /// The kind with this number.
    pub fn from_u32(v: u32) -> Option<IndexType> {
        Some(match v {
            0 => IndexType::BinarySearch,
            1 => IndexType::HashSearch,
            2 => IndexType::TwoLevelIndexSearch,
            3 => IndexType::BinarySearchWithFirstKey,
            _ => return None,
        })
    }
}

/// `data_block_index_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataBlockIndexType {
    /// Restart points only.
    #[default]
    BinarySearch,
    /// A hash index beside them.
    BinaryAndHash,
}

/// `index_shortening`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexShortening {
    /// Index keys are last keys of blocks.
    NoShortening,
    /// Shortened between blocks, not after the last.
    #[default]
    ShortenSeparators,
    /// Shortened after the last block too.
    ShortenSeparatorsAndSuccessor,
}

/// `BlockBasedTableOptions`, under RocksDB's names and with RocksDB's defaults, except that
/// `format_version` is 5, which releases from 6.6 on read.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// Charge index and filter blocks to the block cache instead of holding them with the reader.
    pub cache_index_and_filter_blocks: bool,
    /// Cached index and filter blocks are of high priority.
    pub cache_index_and_filter_blocks_with_high_priority: bool,
    /// Hold cached index and filter blocks of level-0 files.
    pub pin_l0_filter_and_index_blocks_in_cache: bool,
    /// Hold the top level of cached partitioned indexes and filters.
    pub pin_top_level_index_and_filter: bool,
    /// How data blocks are found.
    pub index_type: IndexType,
    /// The index inside data blocks: binary search or a hash index.
    pub data_block_index_type: DataBlockIndexType,
    /// Keys per bucket of that hash index.
    pub data_block_hash_table_util_ratio: f64,
    /// Checksum of blocks.
    pub checksum: ChecksumType,
    /// Keep nothing in the block cache.
    pub no_block_cache: bool,
    /// Raw bytes of a data block.
    pub block_size: usize,
    /// Percent of `block_size` below which a block is not closed early.
    pub block_size_deviation: u32,
    /// Entries between restart points of data blocks.
    pub block_restart_interval: u32,
    /// Entries between restart points of index blocks.
    pub index_block_restart_interval: u32,
    /// Raw bytes of an index or filter partition.
    pub metadata_block_size: usize,
    /// Partition the filter; needs the two-level index.
    pub partition_filters: bool,
    /// Store the part of a key that differs from the one before it.
    pub use_delta_encoding: bool,
    /// The filter, if any.
    pub filter_policy: Option<FilterPolicy>,
    /// Add whole keys to the filter.
    pub whole_key_filtering: bool,
    /// Compress index blocks.
    pub enable_index_compression: bool,
    /// Pad data blocks so that none crosses a page needlessly; needs no compression.
    pub block_align: bool,
    /// Version of the format to write, 2 to 7.
    pub format_version: u32,
    /// How index keys are shortened.
    pub index_shortening: IndexShortening,
    /// Largest readahead of an iterator that found itself reading in sequence.
    pub max_auto_readahead_size: usize,
    /// First readahead of such an iterator.
    pub initial_auto_readahead_size: usize,
    /// Reads in sequence before that begins.
    pub num_file_reads_for_auto_readahead: u64,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            cache_index_and_filter_blocks: false,
            cache_index_and_filter_blocks_with_high_priority: true,
            pin_l0_filter_and_index_blocks_in_cache: false,
            pin_top_level_index_and_filter: true,
            index_type: IndexType::BinarySearch,
            data_block_index_type: DataBlockIndexType::BinarySearch,
            data_block_hash_table_util_ratio: 0.75,
            checksum: ChecksumType::Xxh3,
            no_block_cache: false,
            block_size: 4096,
            block_size_deviation: 10,
            block_restart_interval: 16,
            index_block_restart_interval: 1,
            metadata_block_size: 4096,
            partition_filters: false,
            use_delta_encoding: true,
            filter_policy: None,
            whole_key_filtering: true,
            enable_index_compression: true,
            block_align: false,
            format_version: 5,
            index_shortening: IndexShortening::ShortenSeparators,
            max_auto_readahead_size: 256 << 10,
            initial_auto_readahead_size: 8 << 10,
            num_file_reads_for_auto_readahead: 2,
        }
    }
}

/// Options of a reader that the table itself does not hold.
#[derive(Clone, Debug, Default)]
pub struct TableReaderOptions {
    /// Order of the family's keys.
    pub order: KeyOrder,
    /// Caching, pinning and readahead; what concerns writing is not looked at.
    pub table: TableOptions,
    /// The cache, unless `no_block_cache`.
    pub cache: Option<Arc<BlockCache>>,
    /// The family's prefix extractor.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// The file's number; with `cache_salt` it names the table's blocks in the cache.
    pub file_no: FileNo,
    /// Different for every database that shares the cache; 0 lets the reader take a number of its
    /// own, under which no other reader finds its blocks.
    pub cache_salt: u64,
    /// The level, for pinning.
    pub level: Level,
    /// The largest sequence that the MANIFEST gives the file: the global sequence of an ingested
    /// one.
    pub largest_seq: Option<Seq>,
    /// Bytes from the first block after the data blocks to the end, where the MANIFEST says.
    pub tail_size: Option<u64>,
    /// Largest raw block accepted; 0 means 4 GiB.
    pub max_block_bytes: usize,
    /// Told what reading costs.
    pub observer: Option<Arc<dyn TableObserver>>,
    /// Where cursors count, by samples, that they met a deletion or a merge operand.
    pub collapsible_reads: Option<Arc<AtomicU64>>,
    /// How far the walks of the family go; without it no seek reads further than its block.
    pub walks: Option<Arc<WalkLengths>>,
}

/// Options of a builder besides those of the table.
#[derive(Clone, Debug)]
pub struct TableBuilderOptions {
    /// Order of the family's keys.
    pub order: KeyOrder,
    /// The table's shape.
    pub table: TableOptions,
    /// Codec of blocks.
    pub compression: Codec,
    /// Level, window, dictionary...
    pub compression_opts: CompressionOptions,
    /// The family's prefix extractor.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// The family.
    pub family: FamilyId,
    /// Its name.
    pub family_name: String,
    /// Name of the merge operator, if any.
    pub merge_operator: Option<String>,
    /// The file's number.
    pub file_no: FileNo,
    /// Identity of the database.
    pub db_id: String,
    /// Identity of this opening of it: twenty characters of `[0-9A-Z]`.
    pub db_session_id: String,
    /// Name of the host, for people.
    pub db_host_id: String,
    /// The level the file goes to; `None` when unknown. Ribbon policies look at it.
    pub level: Option<Level>,
    /// Unix seconds at which the data began to be written (`rocksdb.creation.time`).
    pub creation_time: u64,
    /// Unix seconds of the oldest key; 0 unknown.
    pub oldest_key_time: u64,
    /// Unix seconds of the newest key; 0 unknown.
    pub newest_key_time: u64,
    /// Unix seconds of the file's making.
    pub file_creation_time: u64,
    /// Size the file is meant to have: bounds what is buffered for a dictionary. 0 unknown.
    pub target_file_size: u64,
    /// For files made outside of a database (5.12 of the format): external version and a zero
    /// sequence.
    pub external: bool,
    /// Extra properties (user-collected), in any order.
    pub user_properties: Vec<(String, Vec<u8>)>,
    /// Names of the collectors that see the table's entries.
    pub collectors: Vec<String>,
    /// Base of context checksums for format versions 6 and 7; must differ between files. 0: derived
    /// from the file's identity.
    pub checksum_base: u32,
    /// Told what the time goes on.
    pub stages: Option<Arc<StageClock>>,
    /// Threads that compress data blocks.
    pub compressors: Option<CompressionThreads>,
    /// Gets the blocks as they are written.
    pub fresh: Option<PrepopulateTarget>,
}

impl Default for TableBuilderOptions {
    fn default() -> Self {
        TableBuilderOptions {
            order: KeyOrder::Bytewise,
            table: TableOptions::default(),
            compression: Codec::None,
            compression_opts: CompressionOptions::default(),
            prefix_extractor: None,
            family: FamilyId::DEFAULT,
            family_name: "default".to_string(),
            merge_operator: None,
            file_no: FileNo(0),
            db_id: String::new(),
            db_session_id: String::new(),
            db_host_id: String::new(),
            level: None,
            creation_time: 0,
            oldest_key_time: 0,
            newest_key_time: 0,
            file_creation_time: 0,
            target_file_size: 0,
            external: false,
            collectors: Vec::new(),
            user_properties: Vec::new(),
            checksum_base: 0,
            stages: None,
            compressors: None,
            fresh: None,
        }
    }
}
