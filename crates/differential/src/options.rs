//! Options that a run draws, so that many shapes of databases are compared.
//!
//! Each choice is tried on both libraries by itself; what one of them does not take is left out.

use super::draw::RandomStream;

/// How the databases of a run are made.
#[derive(Clone, Debug, Default)]
pub(super) struct Setting {
    /// Options of the database and of every family.
    pub(super) base: String,
    /// True if ranges are deleted in families with an order of their own. Then backups are not
    /// made: RocksDB's backup engine dies of such range tombstones.
    pub(super) own_order_ranges: bool,
    /// Bytes of a cache of values in blob files; 0 for none.
    pub(super) blob_cache: usize,
}

/// Small buffers and files, so that everything happens within few calls.
const ALWAYS: &str = "max_background_jobs=2;WAL_ttl_seconds=36000;stats_dump_period_sec=0;\
    stats_persist_period_sec=0;";

/// The options of a run without drawn ones.
const PLAIN: &str = "write_buffer_size=131072;target_file_size_base=65536;\
    max_bytes_for_level_base=262144;level0_file_num_compaction_trigger=4;\
    compression=kSnappyCompression;prefix_extractor=fixed:3;";

const PLAIN_TABLE: &str = "block_size=2048;filter_policy=bloomfilter:10:false;format_version=5;";

const CHOICES: &[(&str, &[&str])] = &[
    ("write_buffer_size", &["65536", "131072", "524288"]),
    ("target_file_size_base", &["32768", "65536", "262144"]),
    ("max_bytes_for_level_base", &["131072", "262144", "1048576"]),
    ("level0_file_num_compaction_trigger", &["2", "4", "8"]),
    ("compaction_style", &["kCompactionStyleUniversal"]),
    ("level_compaction_dynamic_level_bytes", &["true", "false"]),
    ("num_levels", &["3", "5"]),
    ("max_write_buffer_number", &["3", "6"]),
    ("min_write_buffer_number_to_merge", &["2"]),
    (
        "compression",
        &[
            "kNoCompression",
            "kSnappyCompression",
            "kZlibCompression",
            "kLZ4Compression",
            "kLZ4HCCompression",
            "kBZip2Compression",
            "kZSTD",
        ],
    ),
    (
        "compression_opts",
        &[
            "{level=1}",
            "{level=12;strategy=1;window_bits=-9}",
            "{max_dict_bytes=1024;zstd_max_train_bytes=8192}",
            "{max_dict_bytes=4096;parallel_threads=3}",
            "{max_compressed_bytes_per_kb=1024}",
        ],
    ),
    (
        "bottommost_compression",
        &["kZSTD", "kZlibCompression", "kNoCompression"],
    ),
    ("prefix_extractor", &["fixed:3", "capped:4", "nullptr"]),
    ("memtable_prefix_bloom_size_ratio", &["0.1"]),
    ("memtable_whole_key_filtering", &["true"]),
    ("max_successive_merges", &["3"]),
    ("max_sequential_skip_in_iterations", &["1", "4"]),
    ("optimize_filters_for_hits", &["true"]),
    ("paranoid_file_checks", &["true"]),
    ("memtable_protection_bytes_per_key", &["8"]),
    ("max_subcompactions", &["3"]),
    ("max_background_jobs", &["1", "4"]),
    ("enable_pipelined_write", &["true"]),
    ("allow_concurrent_memtable_write", &["false"]),
    ("atomic_flush", &["true"]),
    ("wal_compression", &["kZSTD"]),
    ("recycle_log_file_num", &["3"]),
    ("max_open_files", &["-1", "40"]),
    ("avoid_flush_during_recovery", &["true"]),
    ("track_and_verify_wals_in_manifest", &["true"]),
    ("write_dbid_to_manifest", &["false"]),
    ("allow_mmap_reads", &["true"]),
    ("enable_blob_files", &["true"]),
    ("min_blob_size", &["0", "60", "400"]),
    ("blob_file_size", &["4096", "65536"]),
    (
        "blob_compression_type",
        &["kSnappyCompression", "kLZ4Compression", "kZSTD"],
    ),
    ("enable_blob_garbage_collection", &["true"]),
    ("blob_garbage_collection_age_cutoff", &["0.1", "0.5", "1.0"]),
    (
        "blob_garbage_collection_force_threshold",
        &["0.1", "0.5", "0.9"],
    ),
    ("blob_compaction_readahead_size", &["4096", "1048576"]),
    ("blob_file_starting_level", &["1", "2"]),
    ("prepopulate_blob_cache", &["kFlushOnly"]),
];

const TABLE_CHOICES: &[(&str, &[&str])] = &[
    ("block_size", &["512", "2048", "16384"]),
    ("format_version", &["2", "4", "5", "6", "7"]),
    (
        "index_type",
        &[
            "kBinarySearch",
            "kHashSearch",
            "kTwoLevelIndexSearch",
            "kBinarySearchWithFirstKey",
        ],
    ),
    ("partition_filters", &["true"]),
    ("metadata_block_size", &["512"]),
    (
        "filter_policy",
        &["bloomfilter:10:false", "ribbonfilter:12:1", "nullptr"],
    ),
    ("whole_key_filtering", &["false"]),
    ("checksum", &["kCRC32c", "kxxHash", "kxxHash64", "kXXH3"]),
    ("data_block_index_type", &["kDataBlockBinaryAndHash"]),
    ("data_block_hash_table_util_ratio", &["0.5"]),
    ("block_restart_interval", &["1", "4"]),
    ("index_block_restart_interval", &["4"]),
    ("cache_index_and_filter_blocks", &["true"]),
    ("enable_index_compression", &["false"]),
    ("no_block_cache", &["true"]),
    ("index_shortening", &["kNoShortening"]),
];

/// Which options a run adds; half of the names keep what libraries take by themselves.
fn drawn(
    draw: &mut RandomStream,
    choices: &[(&str, &[&str])],
    accepts: impl Fn(&str) -> bool,
) -> String {
    let mut text = String::new();
    for (name, values) in choices {
        let (wanted, at) = (draw.below(10) < 4, draw.below(values.len()));
        let one = format!("{name}={};", values[at]);
        if wanted && accepts(&one) {
            text += &one;
        }
    }
    text
}

impl Setting {
    /// The options that every run had before any were drawn.
    pub(super) fn plain() -> Setting {
        Setting {
            base: format!("{ALWAYS}{PLAIN}block_based_table_factory={{{PLAIN_TABLE}}}"),
            own_order_ranges: false,
            blob_cache: 0,
        }
    }

    /// Draws options; `accepts` says whether both libraries take a text, and `old` whether one of
    /// them is too old to read format versions past 5.
    pub(super) fn draw(seed: u64, old: bool, accepts: impl Fn(&str) -> bool) -> Setting {
        let mut draw = RandomStream::new(seed ^ 0x5e77_1465);
        let own = drawn(&mut draw, CHOICES, &accepts);
        let own = if own.contains("atomic_flush=true") {
            own.replace("enable_pipelined_write=true;", "")
        } else {
            own
        };
        let table = drawn(&mut draw, TABLE_CHOICES, |one| {
            let new = one == "format_version=6;" || one == "format_version=7;";
            !(old && new) && accepts(&format!("block_based_table_factory={{{one}}}"))
        });
        // RocksDB answers reads of its own hashed index with `bad entry in block`. Partitioned
        // filters need a partitioned index.
        let table = table.replace("index_type=kHashSearch;", "");
        let table = if table.contains("kTwoLevelIndexSearch") {
            table
        } else {
            table.replace("partition_filters=true;", "")
        };
        // RocksDB wants a cache for what is to be cached.
        let table = if table.contains("no_block_cache=true") {
            table.replace("cache_index_and_filter_blocks=true;", "")
        } else {
            table
        };
        Setting {
            base: format!("{ALWAYS}{PLAIN}{own}block_based_table_factory={{{PLAIN_TABLE}{table}}}"),
            own_order_ranges: draw.below(2) == 0,
            blob_cache: [0, 64 << 10, 4 << 20][draw.below(3)],
        }
    }
}

/// Returns the other options of families of this name; the same names have the same options in
/// every run.
pub(super) fn extra(family: &str) -> &'static str {
    match family {
        "c1" => "compaction_style=kCompactionStyleUniversal;",
        "c2" => "enable_blob_files=true;min_blob_size=40;",
        "c3" => "compression=kZSTD;level_compaction_dynamic_level_bytes=true;",
        _ => "",
    }
}

/// Returns whether families of this name have the reversed order.
pub(super) fn is_reversed(family: &str) -> bool {
    family.starts_with('r')
}

/// Returns whether families of this name add numbers instead of joining texts.
pub(super) fn adds(family: &str) -> bool {
    family == "c0" || family.starts_with('u')
}
