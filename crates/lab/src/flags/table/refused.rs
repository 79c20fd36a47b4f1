//! Flags that are an error unless they are at their default, with the reason.
//!
//! A row: kind, name, default, fate, one line for `--help`, which the reason may stand for.

use super::{Fate, Flag, flags};

pub(super) const FLAGS: &[Flag] = flags! {
    Bool "cost_write_buffer_to_cache" = "false",
        Fate::Refused("this memory is not charged to the block cache"), "";
    Bool "enable_numa" = "false", Fate::Refused("there is no NUMA binding: use numactl"), "";
    Bool "use_uint64_comparator" = "false",
        Fate::Refused("the only order of this program is that of bytes"), "";
    Int "user_timestamp_size" = "0", Fate::Refused("keys of this program have no timestamp"), "";
    Number "overwrite_probability" = "0.0", Fate::Refused("filluniquerandom writes each key once"),
        "";
    Int "num_hot_column_families" = "0",
        Fate::Refused("families are not dropped and made anew while the run goes on"), "";
    Bool "use_tiered_cache" = "false",
        Fate::Refused("each tier has its own limit: --use_compressed_secondary_cache"), "";
    Text "secondary_cache_uri" = "",
        Fate::Refused("the one built in is --use_compressed_secondary_cache"), "";
    Text "read_cache_path" = "", Fate::Refused("blocks are cached in memory alone"), "";
    Int "compressed_cache_size" = "-1",
        Fate::Refused("compressed blocks are in the second tier alone"), "";
    Text "compression_manager" = "none", Fate::Refused("codecs are chosen by compression_type"), "";
    Int "simcache_size" = "-1", Fate::Refused("caches are not simulated"), "";
    Bool "use_cache_memkind_kmem_allocator" = "false",
        Fate::Refused("memory comes from the allocator"), "";
    Bool "use_trie_index" = "false", Fate::Refused("user-defined indexes are not built"), "";
    Int "row_cache_size" = "0", Fate::Refused("there is no cache of rows"), "";
    Bool "use_keep_filter" = "false", Fate::Refused("compaction filters are not offered here"), "";
    Text "statistics_string" = "", Fate::Refused("--statistics turns them on"), "";
    Bool "use_blob_db" = "false",
        Fate::Refused("this is the stacked BlobDB, which RocksDB has given up"), "";
    Bool "use_secondary_db" = "false", Fate::Refused("the benchmarks run on a primary"), "";
    Bool "open_as_follower" = "false", Fate::Refused("the benchmarks run on a primary"), "";
    Bool "use_stderr_info_logger" = "false", Fate::Refused("the LOG is a file"), "";
    Text "trace_file" = "", Fate::Refused("traces are neither written nor replayed"), "";
    Text "block_cache_trace_file" = "", Fate::Refused("traces are neither written nor replayed"),
        "";
    Bool "rate_limit_user_ops" = "false", Fate::Refused("the rate limiter is for what jobs write"),
        "";
    Bool "rate_limit_auto_wal_flush" = "false",
        Fate::Refused("the rate limiter is for what jobs write"), "";
    Bool "rate_limit_bg_reads" = "false", Fate::Refused("the rate limiter is for what jobs write"),
        "";
    Bool "rate_limiter_auto_tuned" = "false",
        Fate::Refused("the rate limiter is for what jobs write"), "";
    Bool "charge_compression_dictionary_building_buffer" = "false",
        Fate::Refused("this memory is not charged to the block cache"), "";
    Bool "charge_filter_construction" = "false",
        Fate::Refused("this memory is not charged to the block cache"), "";
    Bool "charge_table_reader" = "false",
        Fate::Refused("this memory is not charged to the block cache"), "";
    Bool "charge_file_metadata" = "false",
        Fate::Refused("this memory is not charged to the block cache"), "";
    Bool "tolerate_io_errors_for_remote_dbs" = "false", Fate::Refused("an error ends the run"), "";
    Text "env_uri" = "", Fate::Refused("files are those of the system: nothing is simulated"), "";
    Text "fs_uri" = "", Fate::Refused("files are those of the system: nothing is simulated"), "";
    Text "simulate_hybrid_fs_file" = "",
        Fate::Refused("files are those of the system: nothing is simulated"), "";
    Bool "simulate_hdd" = "false",
        Fate::Refused("files are those of the system: nothing is simulated"), "";
    Int "fault_injection_read_after_reads" = "0",
        Fate::Refused("files are those of the system: nothing is simulated"), "";
    Bool "seek_missing_prefix" = "false", Fate::Refused("there is no such pattern of keys"), "";
    Bool "enable_io_prio" = "false", Fate::Refused("threads keep the priority of the process"), "";
    Bool "enable_cpu_prio" = "false", Fate::Refused("threads keep the priority of the process"), "";
    Bool "use_plain_table" = "false", Fate::Refused("tables are written block-based"), "";
    Bool "use_cuckoo_table" = "false", Fate::Refused("tables are written block-based"), "";
    Bool "report_file_operations" = "false", Fate::Refused("--json has the device's requests"), "";
    Text "cache_uri" = "", Fate::Refused("caches are made by size"), "";
    Int "write_batch_protection_bytes_per_key" = "0",
        Fate::Refused("batches carry no checksum for each key in memory"), "";
};
