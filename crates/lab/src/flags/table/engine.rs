//! Flags that become engine options by more than their name: choices by number, nested options,
//! caches.
//!
//! A row: kind, name, default, fate, one line for `--help`. [`crate::options`] has the rules.

use super::{Fate, Flag, flags};

pub(super) const FLAGS: &[Flag] = flags! {
    Int "subcompactions" = "1", Fate::Run, "threads of one compaction";
    Int "cache_size" = "33554432", Fate::Run,
        "bytes of the block cache; 0 for none, negative for the engine's default";
    Text "cache_type" = "lru_cache", Fate::Run, "lru_cache or hyper_clock_cache";
    Bool "use_compressed_secondary_cache" = "false", Fate::Run,
        "a second tier of the block cache: evicted data blocks, compressed, in memory";
    Int "compressed_secondary_cache_size" = "33554432", Fate::Run, "bytes of the second tier";
    Int "compressed_secondary_cache_numshardbits" = "6", Fate::Run,
        "log2 of the second tier's shards";
    Text "compressed_secondary_cache_compression_type" = "lz4", Fate::Run,
        "codec of the second tier";
    Int "compressed_secondary_cache_compression_level" = "32767", Fate::Run,
        "level of that codec; 32767 for the codec's default";
    Int "cache_numshardbits" = "-1", Fate::Run,
        "log2 of the block cache's shards; -1 for the engine's choice";
    Number "cache_high_pri_pool_ratio" = "0.0", Fate::Run,
        "part of the block cache kept for index and filter blocks";
    Int "compaction_style" = "0", Fate::Run, "0 leveled, 1 universal, 2 FIFO, 3 none";
    Int "compaction_pri" = "3", Fate::Run,
        "which file to compact first: 0 by size, 1 oldest largest, 2 oldest smallest, 3 \
         least overlap, 4 round robin";
    Text "compression_type" = "snappy", Fate::Run, "none, snappy, zlib, bzip2, lz4, lz4hc or zstd";
    Text "bottommost_compression" = "", Fate::Run,
        "compression of the last level, when it is to differ";
    Int "compression_level" = "32767", Fate::Run, "level of the compressor; 32767 for its default";
    Int "compression_max_dict_bytes" = "0", Fate::Run, "bytes of a compression dictionary";
    Int "compression_zstd_max_train_bytes" = "0", Fate::Run,
        "bytes of samples to train a dictionary on";
    Int "min_level_to_compress" = "-1", Fate::Run, "first level that is compressed; -1 means all";
    Int "bloom_bits" = "-1", Fate::Run, "bits per key of the filter; negative for none";
    Bool "use_ribbon_filter" = "false", Fate::Run, "ribbon instead of Bloom filter";
    Bool "partition_index_and_filters" = "false", Fate::Run, "two-level index and filters";
    Int "checksum_type" = "4", Fate::Run,
        "block checksum: 0 none, 1 CRC32c, 2 xxHash, 3 xxHash64, 4 XXH3";
    Int "prefix_size" = "0", Fate::Run, "bytes of the prefix extractor; 0 for none";
    Text "memtablerep" = "skip_list", Fate::Run, "kind of memtable";
    Int "universal_size_ratio" = "0", Fate::Run,
        "universal compaction: percent of slack when comparing sizes; 0 for the default";
    Int "universal_min_merge_width" = "0", Fate::Run,
        "universal compaction: least runs to merge; 0 for the default";
    Int "universal_max_merge_width" = "0", Fate::Run,
        "universal compaction: most runs to merge; 0 for the default";
    Int "universal_max_size_amplification_percent" = "0", Fate::Run,
        "universal compaction: space to waste before a full compaction; 0 for the default";
    Int "universal_compression_size_percent" = "-1", Fate::Run,
        "universal compaction: part of the data to keep compressed";
    Bool "universal_allow_trivial_move" = "false", Fate::Run,
        "universal compaction: move files that overlap nothing";
    Int "universal_max_read_amp" = "-1", Fate::Run, "universal compaction: limit of sorted runs";
    Text "blob_compression_type" = "none", Fate::Run, "compression of blob files";
    Int "prepopulate_block_cache" = "0", Fate::Run,
        "put flushed blocks into the cache: 0 no, 1 yes";
    Bool "partition_index" = "false", Fate::Run, "two-level index";
    Bool "index_with_first_key" = "false", Fate::Run,
        "keep the first key of each block in the index";
    Int "index_shortening_mode" = "2", Fate::Run,
        "index keys: 0 whole, 1 shortened between blocks, 2 also behind the last block";
    Bool "use_hash_search" = "false", Fate::Run, "hash index by prefix";
    Bool "use_data_block_hash_index" = "false", Fate::Run, "hash table in data blocks";
    Bool "memtable_use_huge_page" = "false", Fate::Run, "take memtables from huge pages";
    Text "wal_compression" = "none", Fate::Run, "codec of the log: none or zstd";
    Text "max_bytes_for_level_multiplier_additional" = "", Fate::Run,
        "growth of each level, as a list with commas";
    Int "fifo_compaction_max_table_files_size_mb" = "0", Fate::Run,
        "FIFO compaction: megabytes of tables, above which the oldest go";
    Bool "fifo_compaction_allow_compaction" = "true", Fate::Run,
        "FIFO compaction: merge small tables";
    Int "fifo_compaction_ttl" = "0", Fate::Run, "FIFO compaction: seconds after which tables go";
    Int "fifo_age_for_warm" = "0", Fate::Run,
        "FIFO compaction: seconds after which tables count as warm";
    Int "fifo_compaction_max_data_files_size_mb" = "0", Fate::Run,
        "FIFO compaction: megabytes of tables and blobs";
    Bool "fifo_compaction_use_kv_ratio_compaction" = "false", Fate::Run,
        "FIFO compaction: merge tier by tier";
    Bool "file_checksum" = "false", Fate::Run, "write checksums of whole tables into the MANIFEST";
    Int "compression_parallel_threads" = "1", Fate::Run, "threads that compress one table";
    Int "compression_max_dict_buffer_bytes" = "0", Fate::Run,
        "most bytes held back while a dictionary is sampled";
    Bool "compression_use_zstd_dict_trainer" = "true", Fate::Run,
        "let zstd's trainer make the dictionary";
    Int "memtable_insert_with_hint_prefix_size" = "0", Fate::Run,
        "bytes of the prefix by which memtables are entered with a hint";
    Number "cache_low_pri_pool_ratio" = "0.0", Fate::Run,
        "part of the block cache kept for blocks of low priority";
    Bool "universal_incremental" = "false", Fate::Run, "universal compaction: merge in slices";
    Int "universal_stop_style" = "1", Fate::Run,
        "universal compaction: what ends the search for runs: 0 similar size, 1 total size";
    Bool "universal_reduce_file_locking" = "true", Fate::Run,
        "universal compaction: lock tables late";
};
