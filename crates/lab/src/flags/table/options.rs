//! Flags that become one option of the engine, or of its tables, each by a name.
//!
//! A row: kind, name, default, fate, one line for `--help`; without one, the engine's catalogue
//! explains the option. Whether the engine uses it is for that catalogue to say, too.

use super::{Fate, Flag, flags};

pub(super) const FLAGS: &[Flag] = flags! {
    Text "wal_dir" = "", Fate::Option("wal_dir"), "directory of the logs";
    Int "write_buffer_size" = "67108864", Fate::Option("write_buffer_size"), "bytes of a memtable";
    Int "max_write_buffer_number" = "2", Fate::Option("max_write_buffer_number"),
        "memtables, active and waiting";
    Int "min_write_buffer_number_to_merge" = "1", Fate::Option("min_write_buffer_number_to_merge"),
        "memtables merged by one flush";
    Bool "allow_concurrent_memtable_write" = "true",
        Fate::Option("allow_concurrent_memtable_write"), "several writers insert at once";
    Bool "enable_write_thread_adaptive_yield" = "true",
        Fate::Option("enable_write_thread_adaptive_yield"),
        "waiting writers spin before they sleep";
    Bool "enable_pipelined_write" = "true", Fate::Option("enable_pipelined_write"),
        "overlap the log write of one group with the memtable write of another";
    Bool "unordered_write" = "false", Fate::Option("unordered_write"),
        "weaker snapshots for faster writes";
    Bool "manual_wal_flush" = "false", Fate::Option("manual_wal_flush"),
        "flush the log only on request";
    Text "merge_operator" = "", Fate::Option("merge_operator"),
        "name of the merge operator, such as uint64add, stringappend or put";
    Int "delayed_write_rate" = "8388608", Fate::Option("delayed_write_rate"),
        "bytes per second when writes are slowed down";
    Int "db_write_buffer_size" = "0", Fate::Option("db_write_buffer_size"),
        "bytes of all memtables together";
    Int "wal_bytes_per_sync" = "0", Fate::Option("wal_bytes_per_sync"),
        "sync the log in the background after this many bytes";
    Int "max_total_wal_size" = "0", Fate::Option("max_total_wal_size"),
        "bytes of logs that force a flush";
    Int "num_levels" = "7", Fate::Option("num_levels"), "levels of the tree";
    Int "target_file_size_base" = "67108864", Fate::Option("target_file_size_base"),
        "bytes of a table file at the first level";
    Int "target_file_size_multiplier" = "1", Fate::Option("target_file_size_multiplier"),
        "growth of the file size per level";
    Int "max_bytes_for_level_base" = "268435456", Fate::Option("max_bytes_for_level_base"),
        "bytes of the first level below level 0";
    Number "max_bytes_for_level_multiplier" = "10", Fate::Option("max_bytes_for_level_multiplier"),
        "growth of the level size";
    Bool "level_compaction_dynamic_level_bytes" = "false",
        Fate::Option("level_compaction_dynamic_level_bytes"),
        "choose level sizes from the last level up";
    Int "level0_file_num_compaction_trigger" = "4",
        Fate::Option("level0_file_num_compaction_trigger"),
        "files in level 0 that start a compaction";
    Int "level0_slowdown_writes_trigger" = "20", Fate::Option("level0_slowdown_writes_trigger"),
        "files in level 0 that slow writes down";
    Int "level0_stop_writes_trigger" = "36", Fate::Option("level0_stop_writes_trigger"),
        "files in level 0 that stop writes";
    Int "soft_pending_compaction_bytes_limit" = "68719476736",
        Fate::Option("soft_pending_compaction_bytes_limit"),
        "bytes due for compaction that slow writes down";
    Int "hard_pending_compaction_bytes_limit" = "137438953472",
        Fate::Option("hard_pending_compaction_bytes_limit"),
        "bytes due for compaction that stop writes";
    Int "max_background_jobs" = "2", Fate::Option("max_background_jobs"),
        "flushes and compactions at a time";
    Int "max_background_flushes" = "-1", Fate::Option("max_background_flushes"),
        "flushes at a time, when set apart";
    Int "max_background_compactions" = "-1", Fate::Option("max_background_compactions"),
        "compactions at a time, when set apart";
    Bool "disable_auto_compactions" = "false", Fate::Option("disable_auto_compactions"),
        "compact only on request";
    Int "max_compaction_bytes" = "0", Fate::Option("max_compaction_bytes"),
        "bytes of one compaction; 0 for the engine's choice";
    Int "compaction_readahead_size" = "2097152", Fate::Option("compaction_readahead_size"),
        "bytes that compactions read ahead";
    Int "periodic_compaction_seconds" = "0", Fate::Option("periodic_compaction_seconds"),
        "rewrite files older than this";
    Int "rate_limiter_bytes_per_sec" = "0", Fate::Option("rate_limiter_bytes_per_sec"),
        "bytes per second of background writes";
    Bool "optimize_filters_for_hits" = "false", Fate::Option("optimize_filters_for_hits"),
        "no filters in the last level";
    Bool "avoid_flush_during_recovery" = "false", Fate::Option("avoid_flush_during_recovery"),
        "keep recovered data in memtables";
    Bool "use_direct_reads" = "false", Fate::Option("use_direct_reads"), "read files with O_DIRECT";
    Bool "use_direct_io_for_flush_and_compaction" = "false",
        Fate::Option("use_direct_io_for_flush_and_compaction"),
        "background reads and writes with O_DIRECT";
    Int "bytes_per_sync" = "0", Fate::Option("bytes_per_sync"),
        "sync table files in the background after this many bytes";
    Bool "enable_blob_files" = "false", Fate::Option("enable_blob_files"),
        "keep large values in blob files";
    Int "min_blob_size" = "0", Fate::Option("min_blob_size"),
        "least size of a value kept in a blob file";
    Int "blob_file_size" = "268435456", Fate::Option("blob_file_size"), "bytes of a blob file";
    Bool "enable_blob_garbage_collection" = "false", Fate::Option("enable_blob_garbage_collection"),
        "move live blobs out of old files";
    Number "blob_garbage_collection_age_cutoff" = "0.25",
        Fate::Option("blob_garbage_collection_age_cutoff"),
        "part of the oldest blob files to clean";
    Number "blob_garbage_collection_force_threshold" = "1.0",
        Fate::Option("blob_garbage_collection_force_threshold"), "garbage that forces a cleaning";
    Int "open_files" = "-1", Fate::Option("max_open_files"), "table files kept open; -1 for all";
    Bool "mmap_read" = "false", Fate::Option("allow_mmap_reads"), "read files through memory maps";
    Bool "mmap_write" = "false", Fate::Option("allow_mmap_writes"),
        "write files through memory maps";
    Number "memtable_bloom_size_ratio" = "0", Fate::Option("memtable_prefix_bloom_size_ratio"),
        "part of the memtable for its Bloom filter";
    Int "block_size" = "4096", Fate::Table("block_size"),
        "bytes of a data block before compression";
    Int "block_restart_interval" = "16", Fate::Table("block_restart_interval"),
        "keys between restart points of data blocks";
    Int "index_block_restart_interval" = "1", Fate::Table("index_block_restart_interval"),
        "keys between restart points of index blocks";
    Int "metadata_block_size" = "4096", Fate::Table("metadata_block_size"),
        "bytes of a partition of index or filter";
    Bool "cache_index_and_filter_blocks" = "false", Fate::Table("cache_index_and_filter_blocks"),
        "keep index and filter blocks in the block cache";
    Bool "pin_l0_filter_and_index_blocks_in_cache" = "false",
        Fate::Table("pin_l0_filter_and_index_blocks_in_cache"),
        "keep those of level 0 there for good";
    Bool "pin_top_level_index_and_filter" = "false", Fate::Table("pin_top_level_index_and_filter"),
        "keep the top level of partitioned ones there for good";
    Bool "whole_key_filtering" = "true", Fate::Table("whole_key_filtering"),
        "add whole keys to filters";
    Int "format_version" = "5", Fate::Table("format_version"), "format version of table files";
    Int "bloom_locality" = "0", Fate::Option("bloom_locality"), "";
    Int "max_manifest_file_size" = "1073741824", Fate::Option("max_manifest_file_size"), "";
    Int "max_manifest_space_amp_pct" = "500", Fate::Option("max_manifest_space_amp_pct"), "";
    Bool "verify_manifest_content_on_close" = "false",
        Fate::Option("verify_manifest_content_on_close"), "";
    Int "arena_block_size" = "0", Fate::Option("arena_block_size"), "";
    Int "max_write_buffer_size_to_maintain" = "0",
        Fate::Option("max_write_buffer_size_to_maintain"), "";
    Int "uncache_aggressiveness" = "0", Fate::Option("uncache_aggressiveness"), "";
    Int "file_opening_threads" = "16", Fate::Option("max_file_opening_threads"), "";
    Int "log_readahead_size" = "0", Fate::Option("log_readahead_size"), "";
    Int "writable_file_max_buffer_size" = "1048576", Fate::Option("writable_file_max_buffer_size"),
        "";
    Bool "memtable_whole_key_filtering" = "false", Fate::Option("memtable_whole_key_filtering"), "";
    Bool "memtable_batch_lookup_optimization" = "false",
        Fate::Option("memtable_batch_lookup_optimization"), "";
    Bool "use_fsync" = "false", Fate::Option("use_fsync"), "";
    Int "ttl_seconds" = "18446744073709551614", Fate::Option("ttl"), "";
    Bool "paranoid_checks" = "true", Fate::Option("paranoid_checks"), "";
    Bool "force_consistency_checks" = "true", Fate::Option("force_consistency_checks"), "";
    Bool "enable_blob_direct_write" = "false", Fate::Option("enable_blob_direct_write"), "";
    Int "blob_direct_write_partitions" = "1", Fate::Option("blob_direct_write_partitions"), "";
    Int "blob_compaction_readahead_size" = "0", Fate::Option("blob_compaction_readahead_size"), "";
    Number "read_triggered_compaction_threshold" = "0",
        Fate::Option("read_triggered_compaction_threshold"), "";
    Int "blob_file_starting_level" = "0", Fate::Option("blob_file_starting_level"), "";
    Bool "report_bg_io_stats" = "false", Fate::Option("report_bg_io_stats"), "";
    Bool "paranoid_memory_checks" = "false", Fate::Option("paranoid_memory_checks"), "";
    Bool "memtable_verify_per_key_checksum_on_seek" = "false",
        Fate::Option("memtable_verify_per_key_checksum_on_seek"), "";
    Int "memtable_op_scan_flush_trigger" = "0", Fate::Option("memtable_op_scan_flush_trigger"), "";
    Int "min_tombstones_for_range_conversion" = "0",
        Fate::Option("min_tombstones_for_range_conversion"), "";
    Int "sample_for_compression" = "0", Fate::Option("sample_for_compression"), "";
    Int "table_cache_numshardbits" = "4", Fate::Option("table_cache_numshardbits"), "";
    Int "preclude_last_level_data_seconds" = "0", Fate::Option("preclude_last_level_data_seconds"),
        "";
    Int "preserve_internal_time_seconds" = "0", Fate::Option("preserve_internal_time_seconds"), "";
    Number "experimental_mempurge_threshold" = "0.0",
        Fate::Option("experimental_mempurge_threshold"), "";
    Bool "inplace_update_support" = "false", Fate::Option("inplace_update_support"), "";
    Int "inplace_update_num_locks" = "10000", Fate::Option("inplace_update_num_locks"), "";
    Int "write_thread_max_yield_usec" = "100", Fate::Option("write_thread_max_yield_usec"), "";
    Int "write_thread_slow_yield_usec" = "3", Fate::Option("write_thread_slow_yield_usec"), "";
    Bool "open_files_async" = "false", Fate::Option("open_files_async"), "";
    Bool "skip_stats_update_on_db_open" = "false", Fate::Option("skip_stats_update_on_db_open"), "";
    Int "wal_ttl_seconds" = "0", Fate::Option("WAL_ttl_seconds"), "";
    Int "wal_size_limit_MB" = "0", Fate::Option("WAL_size_limit_MB"), "";
    Bool "use_direct_io_for_compaction_reads" = "false",
        Fate::Option("use_direct_io_for_compaction_reads"), "";
    Bool "advise_random_on_open" = "true", Fate::Option("advise_random_on_open"), "";
    Bool "use_adaptive_mutex" = "false", Fate::Option("use_adaptive_mutex"), "";
    Int "max_successive_merges" = "0", Fate::Option("max_successive_merges"), "";
    Bool "strict_max_successive_merges" = "false", Fate::Option("strict_max_successive_merges"), "";
    Bool "dump_malloc_stats" = "true", Fate::Option("dump_malloc_stats"), "";
    Int "stats_dump_period_sec" = "600", Fate::Option("stats_dump_period_sec"), "";
    Int "max_compaction_trigger_wakeup_seconds" = "43200",
        Fate::Option("max_compaction_trigger_wakeup_seconds"), "";
    Int "stats_persist_period_sec" = "600", Fate::Option("stats_persist_period_sec"), "";
    Bool "persist_stats_to_disk" = "false", Fate::Option("persist_stats_to_disk"), "";
    Int "stats_history_buffer_size" = "1048576", Fate::Option("stats_history_buffer_size"), "";
    Bool "avoid_flush_during_shutdown" = "false", Fate::Option("avoid_flush_during_shutdown"), "";
    Bool "allow_data_in_errors" = "false", Fate::Option("allow_data_in_errors"), "";
    Int "memtable_protection_bytes_per_key" = "0",
        Fate::Option("memtable_protection_bytes_per_key"), "";
    Int "block_protection_bytes_per_key" = "0", Fate::Option("block_protection_bytes_per_key"), "";
    Bool "track_and_verify_wals_in_manifest" = "false",
        Fate::Option("track_and_verify_wals_in_manifest"), "";
    Bool "track_and_verify_wals" = "false", Fate::Option("track_and_verify_wals"), "";
    Bool "async_wal_precreate" = "false", Fate::Option("async_wal_precreate"), "";
    Bool "decouple_partitioned_filters" = "true", Fate::Table("decouple_partitioned_filters"), "";
    Bool "optimize_filters_for_memory" = "true", Fate::Table("optimize_filters_for_memory"), "";
    Int "read_amp_bytes_per_bit" = "0", Fate::Table("read_amp_bytes_per_bit"), "";
    Bool "enable_index_compression" = "true", Fate::Table("enable_index_compression"), "";
    Bool "block_align" = "false", Fate::Table("block_align"), "";
    Int "super_block_alignment_size" = "0", Fate::Table("super_block_alignment_size"), "";
    Int "super_block_alignment_space_overhead_ratio" = "128",
        Fate::Table("super_block_alignment_space_overhead_ratio"), "";
    Bool "separate_key_value_in_data_block" = "false",
        Fate::Table("separate_key_value_in_data_block"), "";
    Number "data_block_hash_table_util_ratio" = "0.75",
        Fate::Table("data_block_hash_table_util_ratio"), "";
    Number "uniform_cv_threshold" = "-1", Fate::Table("uniform_cv_threshold"), "";
    Int "initial_auto_readahead_size" = "8192", Fate::Table("initial_auto_readahead_size"), "";
    Int "max_auto_readahead_size" = "262144", Fate::Table("max_auto_readahead_size"), "";
    Int "num_file_reads_for_auto_readahead" = "2", Fate::Table("num_file_reads_for_auto_readahead"),
        "";
    Bool "verify_compression" = "false", Fate::Table("verify_compression"), "";
    Text "index_block_search_type" = "binary_search", Fate::Table("index_block_search_type"), "";
};
