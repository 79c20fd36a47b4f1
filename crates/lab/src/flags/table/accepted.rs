//! Flags that are known and need nothing here, with the reason.
//!
//! A row: kind, name, default, fate, one line for `--help`, which the reason may stand for.

use super::{Fate, Flag, flags};

pub(super) const FLAGS: &[Flag] = flags! {
    Int "perf_level" = "1", Fate::Accepted("nothing printed here depends on it"),
        "detail of per-thread counters";
    Bool "progress_reports" = "true", Fate::Accepted("progress is drawn on terminals only"),
        "print progress";
    Int "thread_status_per_interval" = "0",
        Fate::Accepted("jobs report through events and the LOG"), "";
    Int "num_bottom_pri_threads" = "0", Fate::Accepted("threads are sized by max_background_jobs"),
        "";
    Int "num_high_pri_threads" = "0", Fate::Accepted("threads are sized by max_background_jobs"),
        "";
    Int "num_low_pri_threads" = "0", Fate::Accepted("threads are sized by max_background_jobs"), "";
    Bool "use_cache_jemalloc_no_dump_allocator" = "false",
        Fate::Accepted("it changes core dumps only"), "";
    Int "delete_obsolete_files_period_micros" = "0", Fate::Accepted("RocksDB 11 ignores it, too"),
        "";
    Int "disable_seek_compaction" = "0", Fate::Accepted("RocksDB 11 ignores it, too"), "";
    Bool "use_blob_cache" = "false", Fate::Accepted("the option blob_cache takes a size, and prepopulate_blob_cache its name"),
        "";
    Bool "use_shared_block_and_blob_cache" = "true",
        Fate::Accepted("the option blob_cache takes a size, and prepopulate_blob_cache its name"), "";
    Int "blob_cache_size" = "8388608",
        Fate::Accepted("the option blob_cache takes a size, and prepopulate_blob_cache its name"), "";
    Int "blob_cache_numshardbits" = "6",
        Fate::Accepted("the option blob_cache takes a size, and prepopulate_blob_cache its name"), "";
    Int "prepopulate_blob_cache" = "0",
        Fate::Accepted("the option blob_cache takes a size, and prepopulate_blob_cache its name"), "";
    Bool "charge_blob_cache" = "false",
        Fate::Accepted("the option blob_cache takes a size, and prepopulate_blob_cache its name"), "";
    Bool "io_uring_enabled" = "true",
        Fate::Accepted("the option background_io selects how large reads and writes are carried out"), "";
    Bool "optimize_multiget_for_io" = "true",
        Fate::Accepted("a batch is always sorted and read block by block"), "";
    Bool "show_table_properties" = "false", Fate::Accepted("`esker sst DB` prints them"), "";
    Int "stats_level" = "1", Fate::Accepted("statistics are collected whole"), "";
    Int "slow_usecs" = "1000000",
        Fate::Accepted("--slowest prints slow operations, and where their time went"), "";
    Number "compressed_secondary_cache_high_pri_pool_ratio" = "0.0",
        Fate::Accepted("the second tier has data blocks alone, and no pools"), "";
    Number "compressed_secondary_cache_low_pri_pool_ratio" = "0.0",
        Fate::Accepted("the second tier has data blocks alone, and no pools"), "";
    Text "tiered_adm_policy" = "auto", Fate::Accepted("only with a flag that is refused"), "";
    Int "read_cache_size" = "4294967296", Fate::Accepted("only with a flag that is refused"), "";
    Bool "read_cache_direct_write" = "true", Fate::Accepted("only with a flag that is refused"), "";
    Bool "read_cache_direct_read" = "true", Fate::Accepted("only with a flag that is refused"), "";
    Bool "blob_db_enable_gc" = "false", Fate::Accepted("only with a flag that is refused"), "";
    Int "blob_db_max_db_size" = "0", Fate::Accepted("only with a flag that is refused"), "";
    Int "blob_db_max_ttl_range" = "0", Fate::Accepted("only with a flag that is refused"), "";
    Int "blob_db_ttl_range_secs" = "3600", Fate::Accepted("only with a flag that is refused"), "";
    Int "blob_db_file_size" = "268435456", Fate::Accepted("only with a flag that is refused"), "";
    Text "secondary_path" = "", Fate::Accepted("only with a flag that is refused"), "";
    Int "secondary_update_interval" = "5", Fate::Accepted("only with a flag that is refused"), "";
    Text "leader_path" = "", Fate::Accepted("only with a flag that is refused"), "";
    Number "trace_replay_fast_forward" = "1.0", Fate::Accepted("only with a flag that is refused"),
        "";
    Int "trace_replay_threads" = "1", Fate::Accepted("only with a flag that is refused"), "";
    Int "block_cache_trace_sampling_frequency" = "1",
        Fate::Accepted("only with a flag that is refused"), "";
    Int "block_cache_trace_max_trace_file_size_in_bytes" = "68719476736",
        Fate::Accepted("only with a flag that is refused"), "";
    Int "simulate_hybrid_hdd_multipliers" = "1", Fate::Accepted("only with a flag that is refused"),
        "";
    Number "cuckoo_hash_ratio" = "0.9", Fate::Accepted("only with a flag that is refused"), "";
    Bool "identity_as_first_hash" = "false", Fate::Accepted("only with a flag that is refused"), "";
    Bool "read_with_latest_user_timestamp" = "true",
        Fate::Accepted("only with a flag that is refused"), "";
    Int "rate_limiter_refill_period_us" = "100000",
        Fate::Accepted("only with a flag that is refused"), "";
    Int "rate_limiter_single_burst_bytes" = "0", Fate::Accepted("only with a flag that is refused"),
        "";
    Int "disposable_entries_delete_delay" = "0",
        Fate::Accepted("only fillanddeleteuniquerandom uses it, which is not offered"), "";
    Int "disposable_entries_batch_size" = "0",
        Fate::Accepted("only fillanddeleteuniquerandom uses it, which is not offered"), "";
    Int "disposable_entries_value_size" = "64",
        Fate::Accepted("only fillanddeleteuniquerandom uses it, which is not offered"), "";
    Int "persistent_entries_batch_size" = "0",
        Fate::Accepted("only fillanddeleteuniquerandom uses it, which is not offered"), "";
    Int "persistent_entries_value_size" = "64",
        Fate::Accepted("only fillanddeleteuniquerandom uses it, which is not offered"), "";
    Int "embedded_blob_min_size" = "2048",
        Fate::Accepted("only benchmarks of embedded blobs use it, which are not offered"), "";
    Int "num_wide_columns" = "4",
        Fate::Accepted("only benchmarks of embedded blobs use it, which are not offered"), "";
    Int "num_short_wide_columns" = "1",
        Fate::Accepted("only benchmarks of embedded blobs use it, which are not offered"), "";
    Bool "openandcompact_allow_resumption" = "false",
        Fate::Accepted("only openandcompact uses it, which is not offered"), "";
    Bool "openandcompact_test_cancel_on_odd" = "false",
        Fate::Accepted("only openandcompact uses it, which is not offered"), "";
    Int "openandcompact_cancel_after_millseconds" = "1",
        Fate::Accepted("only openandcompact uses it, which is not offered"), "";
    Int "coro_jobs_per_thread" = "1",
        Fate::Accepted("only benchmarks of coroutines use it, which are not offered"), "";
    Int "hash_bucket_count" = "1048576",
        Fate::Accepted("there is one memtable index: ordered, and fit for concurrent writers"), "";
    Int "skip_list_lookahead" = "0",
        Fate::Accepted("there is one memtable index: ordered, and fit for concurrent writers"), "";
    Int "multiscan_coalesce_threshold" = "16384",
        Fate::Accepted("the ranges of a multiscan are read one after the other"), "";
    Bool "multiscan_use_async_io" = "false",
        Fate::Accepted("the ranges of a multiscan are read one after the other"), "";
    Int "io_dispatcher_max_prefetch_memory_bytes" = "0",
        Fate::Accepted("the ranges of a multiscan are read one after the other"), "";
    Int "multiscan_max_prefetch_size" = "0",
        Fate::Accepted("the ranges of a multiscan are read one after the other"), "";
    Bool "use_multiscan" = "true",
        Fate::Accepted("the ranges of a multiscan are read one after the other"), "";
    Int "fatal_shutdown_watchdog_seconds" = "180", Fate::Accepted("an error ends the run at once"),
        "";
    Int "ingest_external_file_file_opening_threads" = "1",
        Fate::Accepted("the thread that ingests opens the files, and reads their ends"),
        "";
    Bool "ingest_external_file_use_file_info" = "false",
        Fate::Accepted("the thread that ingests opens the files, and reads their ends"),
        "";
    Bool "ingest_external_file_prefetch_lmax_index_and_filter_blocks" = "true",
        Fate::Accepted("the thread that ingests opens the files, and reads their ends"),
        "";
    Bool "print_malloc_stats" = "false",
        Fate::Accepted("esker does not collect statistics of the allocator"), "";
    Int "overwrite_window_size" = "1",
        Fate::Accepted("only with overwrite_probability, which is refused"), "";
    Bool "compaction_measure_io_stats" = "false",
        Fate::Accepted("I/O of jobs is always measured; RocksDB 11 has given it up"), "";
};
