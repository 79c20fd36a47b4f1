//! The options of a column family, by RocksDB's names.

use super::block_cache::BlobCacheSource;
use super::catalogue::option_table;
use super::collector::TablePropertiesCollectorFactory;
use super::nested::CompressionSettings;
use super::partitioner::SstPartitionerFactory;
use super::paths::DbPath;
use super::table::TableSettings;
use crate::enums::{
    CompactionPri, CompactionStyle, CompressionType, MemtableKind, PrepopulateBlobCache,
    TableFormat, Temperature,
};
use esker_format::KeyOrder;
use esker_format::prefix::PrefixExtractor;
use esker_lsm::compaction_filter::{CompactionFilter, CompactionFilterFactory};
use esker_lsm::merge_operator::MergeOperator;
use esker_lsm::policy::{FifoSettings, UniversalSettings};
use std::sync::Arc;

// The options of the picker come from `esker_lsm::policy`; they are fields as the others.
esker_lsm::picker_options! { option_table
    /// Everything that is decided for one column family (`ColumnFamilyOptions`).
    ///
    /// Values are as given; [`FamilyOptions::resolve`] fills in what 0 stands for.
    pub struct FamilyOptions in Family;

    /// The order of keys: a built-in name, or the application's own through the typed interface.
    comparator: KeyOrder = KeyOrder::Bytewise, Live, Open, Both, AtOpen;
    /// Combines operands of merges with what lies under them.
    merge_operator: Option<Arc<dyn MergeOperator>> = None, Live, Open, Both, AtOpen;
    /// Drops or changes entries during compactions.
    compaction_filter: Option<Arc<dyn CompactionFilter>> = None, Live, Compaction, Both, AtOpen;
    /// Makes such a filter for each compaction.
    compaction_filter_factory: Option<Arc<dyn CompactionFilterFactory>> = None, Live, Compaction, Both, AtOpen;
    /// The part of a key that prefix filters and prefix seeks use.
    prefix_extractor: Option<PrefixExtractor> = None, Live, Read, Both, AnyTime;
    /// Memtables, the open one included, before writers stop.
    max_write_buffer_number: i32 = 2, Live, Memory, Both, AnyTime;
    /// Full memtables that wait for each other before they are flushed together.
    min_write_buffer_number_to_merge: i32 = 1, Live, Memory, Both, AtOpen;
    /// Bytes of memtables up to which flushed ones stay for conflict checks of transactions; -1 for
    /// as many as writers may fill.
    max_write_buffer_size_to_maintain: i64 = 0, Live, Memory, Both, AtOpen;
    /// Memtables that stay for conflict checks; without effect in later RocksDB.
    max_write_buffer_number_to_maintain: i32 = 0, Accepted("use max_write_buffer_size_to_maintain"), Memory, Old, AtOpen;
    /// The index of the memtable.
    memtable_factory: MemtableKind = MemtableKind::SkipList, Accepted("there is one memtable index: ordered, and fit for concurrent writers; results are the same"), Memory, Both, AtOpen;
    /// Bytes that a memtable allocates at a time; 0 for a share of `write_buffer_size`.
    arena_block_size: usize = 0, Live, Memory, Both, AnyTime;
    /// Size of huge pages for memtables; 0 for none.
    memtable_huge_page_size: usize = 0, Live, Memory, Both, AnyTime;
    /// Share of `write_buffer_size` for a filter over the memtable's prefixes; 0 for none.
    memtable_prefix_bloom_size_ratio: f64 = 0.0, Accepted("the memtable has no filter: its index is searched"), Memory, Both, AnyTime;
    /// Puts whole keys into that filter too.
    memtable_whole_key_filtering: bool = false, Accepted("the memtable has no filter: its index is searched"), Memory, Both, AnyTime;
    /// Groups equal prefixes that are written in a row.
    memtable_insert_with_hint_prefix_extractor: Option<PrefixExtractor> = None, Accepted("the memtable notices sequential writes by itself"), Memory, Both, AtOpen;
    /// Packing of filter probes in memory; without effect on results.
    bloom_locality: u32 = 0, Accepted("filters are always packed by cache line"), Memory, Both, AtOpen;
    /// Overwrites values in the memtable.
    inplace_update_support: bool = false, Accepted("values in the memtable are never overwritten, so that snapshots stay true"), Memory, Both, AtOpen;
    /// Locks for that.
    inplace_update_num_locks: usize = 10_000, Accepted("only with inplace_update_support"), Memory, Both, AnyTime;
    /// Merge operands that a write folds at once; 0 for none.
    max_successive_merges: usize = 0, Accepted("operands are folded by reads, flushes and compactions; the result is the same"), Memory, Both, AnyTime;
    /// Folds them even when that needs a read from disk.
    strict_max_successive_merges: bool = false, Accepted("operands are folded by reads, flushes and compactions; the result is the same"), Memory, New, AnyTime;
    /// Fraction of garbage at which a memtable is rewritten in memory; 0 never.
    experimental_mempurge_threshold: f64 = 0.0, Accepted("memtables are flushed"), Memory, Both, AnyTime;
    /// Range deletions after which a memtable is flushed; 0 for no limit.
    memtable_max_range_deletions: u32 = 0, Live, Memory, New, AnyTime;
    /// Hidden entries of a memtable that an iterator passes in one seek or step forward, after
    /// which the memtable is flushed; 0 for no limit.
    memtable_op_scan_flush_trigger: u32 = 0, Live, Memory, New, AnyTime;
    /// Hidden entries that an iterator passes on average over a seek and the steps after it, where
    /// that limit is reached in all of them together.
    memtable_avg_op_scan_flush_trigger: u32 = 0, Live, Memory, New, AnyTime;
    /// Point deletions in a row that become a range deletion; 0 never.
    min_tombstones_for_range_conversion: u32 = 0, Live, Memory, New, AnyTime;
    /// Looks up several keys of a memtable together.
    memtable_batch_lookup_optimization: bool = false, Accepted("a choice of the reader; results are the same"), Read, New, AtOpen;
    /// Bytes of checksum per entry in memory.
    memtable_protection_bytes_per_key: u32 = 0, Accepted("entries are checked by the log's and the tables' checksums"), Durability, Both, AnyTime;
    /// Checks the order of entries whenever the memtable is read.
    paranoid_memory_checks: bool = false, Accepted("order is checked when a memtable is flushed"), Durability, New, AnyTime;
    /// Checks those checksums on each seek.
    memtable_verify_per_key_checksum_on_seek: bool = false, Accepted("only with memtable_protection_bytes_per_key"), Durability, New, AnyTime;
    /// Refuses writes to this family.
    disallow_memtable_writes: bool = false, Refused("every family takes writes"), Memory, New, AtOpen;

    /// Codec of table files.
    compression: CompressionType = CompressionType::usual(), Live, Compression, Both, AnyTime;
    /// Codec of the last level; `kDisableCompressionOption` for the same as above.
    bottommost_compression: CompressionType = CompressionType::Disable, Live, Compression, Both, AnyTime;
    /// Settings of the codec of the last level.
    bottommost_compression_opts: CompressionSettings = CompressionSettings::default(), Live, Compression, Both, AnyTime;
    /// Settings of the codec.
    compression_opts: CompressionSettings = CompressionSettings::default(), Live, Compression, Both, AnyTime;
    /// Codec by level; overrides `compression` where given.
    compression_per_level: Vec<CompressionType> = Vec::new(), Live, Compression, Both, AnyTime;
    /// Codecs of the application's own.
    compression_manager: String = "nullptr".into(), Refused("codecs of the application's own are not built"), Compression, New, AnyTime;
    /// Compresses one block in this many both ways, to report what that would save; 0 never.
    sample_for_compression: u64 = 0, Accepted("a statistic only"), Compression, Both, AnyTime;

    /// Levels of the tree.
    num_levels: i32 = 7, Live, Compaction, Both, AtOpen;
    /// Files of level 0 that slow writers down.
    level0_slowdown_writes_trigger: i32 = 20, Live, Admission, Both, AnyTime;
    /// Files of level 0 that stop writers.
    level0_stop_writes_trigger: i32 = 36, Live, Admission, Both, AnyTime;
    /// Bytes of compaction owed that slow writers down; 0 never.
    soft_pending_compaction_bytes_limit: u64 = 64 << 30, Live, Admission, Both, AnyTime;
    /// Bytes of compaction owed that stop writers; 0 never.
    hard_pending_compaction_bytes_limit: u64 = 256 << 30, Live, Admission, Both, AnyTime;
    /// Cuts files before they reach that size rather than after.
    target_file_size_is_upper_bound: bool = false, Accepted("the size is a target; files end at the boundary nearest to it"), Compaction, New, AnyTime;
    /// Cuts files where those of the next level end; later RocksDB always does.
    level_compaction_dynamic_file_size: bool = true, Accepted("files are always cut where those of the next level end"), Compaction, Old, AtOpen;
    /// Lets inputs exceed that; later RocksDB always does.
    ignore_max_compaction_bytes_for_input: bool = true, Accepted("the limit bounds the overlap with the level after next"), Compaction, Old, AnyTime;
    /// Seconds that a file of the last level is left alone before its garbage is collected.
    bottommost_file_compaction_delay: u32 = 0, Accepted("a file is looked at once no snapshot needs its garbage"), Compaction, New, AnyTime;
    /// Keeps recent data off the last level, in seconds; 0 for none.
    preclude_last_level_data_seconds: u64 = 0, Accepted("data is placed by shape, not by age"), Compaction, Both, AnyTime;
    /// Keeps the times of writes, in seconds of history; 0 for none.
    preserve_internal_time_seconds: u64 = 0, Accepted("times found in files are kept, and no new ones are recorded"), Compaction, Both, AnyTime;
    /// Cuts files by rules of the application's own.
    sst_partitioner_factory: Option<Arc<dyn SstPartitionerFactory>> = None, Live, Compaction, Both, AtOpen;
    /// Temperature of the last level's files, as the MANIFEST and listings give it; it does not
    /// change their path.
    last_level_temperature: Temperature = Temperature::Unknown, Live, Compaction, Both, AnyTime;
    /// Temperature of new files to which no other option gives one.
    default_write_temperature: Temperature = Temperature::Unknown, Live, Compaction, New, AnyTime;
    /// Temperature of files that name none.
    default_temperature: Temperature = Temperature::Unknown, Accepted("advice for a filesystem that keeps files by temperature; here paths do"), Compaction, New, AtOpen;
    /// Keeps a place below everything in this family for files ingested behind.
    cf_allow_ingest_behind: bool = false, Refused("ingestion behind existing data is not built"), Compaction, New, AtOpen;

    /// Directories of the family's table files, as `{{path=P;target_size=BYTES;}:{...}}`; none for
    /// `db_paths`.
    cf_paths: Vec<DbPath> = Vec::new(), Live, Open, Unprinted, AtOpen;
    /// The format of table files.
    table_factory: TableFormat = TableFormat::BlockBased, Accepted("tables are always written block-based, and the LOG reports it; files of the other formats are refused"), Table, Both, AtOpen;
    /// Leaves the last level without filters: for readers that mostly find what they look for.
    optimize_filters_for_hits: bool = false, Live, Table, Both, AtOpen;
    /// Reads each new file back and checks it.
    paranoid_file_checks: bool = false, Live, Durability, Both, AnyTime;
    /// Checks of new files, as bits.
    verify_output_flags: u32 = 0, Accepted("use paranoid_file_checks"), Durability, New, AnyTime;
    /// Checks the order of entries in flushes and compactions; later RocksDB always does.
    check_flush_compaction_key_order: bool = true, Accepted("order is always checked"), Durability, Old, AnyTime;
    /// Checks the tree after every change.
    force_consistency_checks: bool = true, Accepted("trees are always checked"), Durability, Both, AtOpen;
    /// Bytes of checksum per key in cached blocks.
    block_protection_bytes_per_key: u8 = 0, Accepted("blocks are checked when they are read"), Durability, New, AnyTime;
    /// How eagerly blocks of deleted files leave the cache.
    uncache_aggressiveness: u32 = 0, Accepted("blocks of deleted files age out"), Memory, New, AnyTime;
    /// Hidden entries that an iterator steps over before it seeks.
    max_sequential_skip_in_iterations: u64 = 8, Live, Read, Both, AnyTime;
    /// Times I/O of background jobs.
    report_bg_io_stats: bool = false, Accepted("background I/O is always counted"), Observe, Both, AnyTime;
    /// Stores user timestamps in files; false keeps them in memory only.
    persist_user_defined_timestamps: bool = true, Refused("user-defined timestamps are always stored"), Table, New, AtOpen;

    /// Stores large values in blob files. Without it every compaction brings the values that it
    /// meets back into tables.
    enable_blob_files: bool = false, Live, Blobs, Both, AnyTime;
    /// Smallest such value, in bytes.
    min_blob_size: u64 = 0, Live, Blobs, Both, AnyTime;
    /// From this size on, in place of `min_blob_size`, values leave the tables for sorted groups of
    /// blob files: those of one flush or one compaction, in the order of their keys. They move only
    /// with a key that comes to one of the last two levels, so that scans read neighbours together.
    /// Counts with `enable_blob_files` and from `blob_file_starting_level` on. 0 for no groups.
    min_medium_blob_size: u64 = 0, Live, Blobs, Own, AnyTime;
    /// From this size on, where there are groups, values have blob files of their own, in which
    /// they stay until these are collected. More than `min_medium_blob_size`; 0 for none.
    min_large_blob_size: u64 = 0, Live, Blobs, Own, AnyTime;
    /// Bytes of a blob file.
    blob_file_size: u64 = 1 << 28, Live, Blobs, Both, AnyTime;
    /// Codec of blobs.
    blob_compression_type: CompressionType = CompressionType::None, Live, Blobs, Both, AnyTime;
    /// Settings of that codec.
    blob_compression_opts: CompressionSettings = CompressionSettings::default(), Live, Blobs, New, AnyTime;
    /// Moves live blobs out of old files during compactions.
    enable_blob_garbage_collection: bool = false, Live, Blobs, Both, AnyTime;
    /// Share of the oldest blob files that this looks at.
    blob_garbage_collection_age_cutoff: f64 = 0.25, Live, Blobs, Both, AnyTime;
    /// Share of garbage in them that starts a compaction.
    blob_garbage_collection_force_threshold: f64 = 1.0, Live, Blobs, Both, AnyTime;
    /// Readahead in blob files during compactions; 0 for one that follows their reads.
    blob_compaction_readahead_size: u64 = 0, Live, Blobs, Both, AnyTime;
    /// First level whose values go into blob files.
    blob_file_starting_level: i32 = 0, Live, Blobs, Both, AnyTime;
    /// Fresh blobs that go into the blob cache.
    prepopulate_blob_cache: PrepopulateBlobCache = PrepopulateBlobCache::Disable, Live, Blobs, Both, AnyTime;
    /// Writes large values to blob files before the flush.
    enable_blob_direct_write: bool = false, Refused("only flushes and compactions write blob files"), Blobs, New, AtOpen;
    /// Blob files that are written side by side.
    blob_direct_write_partitions: u32 = 1, Accepted("only with enable_blob_direct_write"), Blobs, New, AtOpen;
    /// How values are spread over those files.
    blob_direct_write_partition_strategy: String = "nullptr".into(), Refused("only flushes and compactions write blob files"), Blobs, Unprinted, AtOpen;
    /// A cache for blobs: a size, limits in braces, or an object that the program shares, which may
    /// be its block cache; its entries are the first to go there.
    blob_cache: BlobCacheSource = BlobCacheSource::default(), Live, Blobs, Unprinted, AtOpen;
    /// Settings of plain tables.
    plain_table_factory: String = String::new(), Accepted("as table_factory=PlainTable"), Table, Unprinted, AtOpen;
    /// Collectors of properties of the application's own.
    table_properties_collectors: String = String::new(), Refused("given through the typed interface"), Table, Unprinted, AtOpen;

    /// The family's table options, in braces; OPTIONS files hold them in a section of their own.
    table: TableSettings = TableSettings::default(), Live, Table, Unprinted, AnyTime;

    objects {
        /// The collectors that see the entries of new tables.
        table_properties_collector_factories: Vec<Arc<dyn TablePropertiesCollectorFactory>> = Vec::new();
    }
}
