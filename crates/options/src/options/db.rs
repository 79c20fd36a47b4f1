//! The options of a database, by RocksDB's names.

use super::catalogue::option_table;
use super::file_checksum::FileChecksumGenFactory;
use super::paths::DbPath;
use super::wal_filter::WalFilter;
use crate::enums::{
    AccessHint, BackgroundIoKind, CacheTier, CompactionStyle, CompressionType, InfoLogLevel,
    Temperature, WalRecoveryMode,
};
use crate::memory::{MemoryBudget, SstFileManager, WriteBufferManager};
use crate::observe::{EventListener, Logger, Statistics};
use crate::runtime::RateLimiter;
use std::sync::Arc;

option_table! {
    /// Everything that is decided once for a database (`DBOptions`).
    ///
    /// Values are as given; [`DbOptions::resolve`] fills in what 0 and -1 stand for.
    pub struct DbOptions in Db;

    /// Creates the database when there is none.
    create_if_missing: bool = false, Live, Open, Both, AtOpen;
    /// Creates families that the call names and the database lacks.
    create_missing_column_families: bool = false, Live, Open, Both, AtOpen;
    /// Fails when there is a database already.
    error_if_exists: bool = false, Live, Open, Both, AtOpen;
    /// Stops writing when damage is found, and checks more at open.
    paranoid_checks: bool = true, Accepted("damage always stops writing, and tables are always checked when they are opened"), Durability, Both, AtOpen;
    /// Compares the entries that a flush wrote with those the memtable counted.
    flush_verify_memtable_count: bool = true, Live, Durability, Both, AtOpen;
    /// Compares the entries that a compaction read with those the files counted.
    compaction_verify_record_count: bool = true, Live, Durability, New, AtOpen;
    /// Checks at open that the logs which the MANIFEST tracks are there and whole; new logs are not
    /// tracked.
    track_and_verify_wals_in_manifest: bool = false, Live, Durability, Both, AtOpen;
    /// Writes into each log what the one before must have held, and checks it at open.
    track_and_verify_wals: bool = false, Refused("logs that check their predecessor are read, and not written yet"), Durability, New, AtOpen;
    /// Compares each table file's unique id with the MANIFEST's when it is opened.
    verify_sst_unique_id_in_manifest: bool = true, Live, Durability, Both, AtOpen;
    /// Least level of lines that the LOG file keeps.
    info_log_level: InfoLogLevel = InfoLogLevel::Info, Live, Observe, Both, AtOpen;
    /// Most open table files; -1 for no limit.
    max_open_files: i32 = -1, Live, Jobs, Both, AnyTime;
    /// Threads that open table files when a database opens.
    max_file_opening_threads: i32 = 16, Live, Jobs, Both, AtOpen;
    /// Threads that carry out reads which do not block their caller.
    read_io_executor_threads: i32 = 1, Accepted("reads run on the calling thread"), Jobs, New, AtOpen;
    /// Opens table files after the call to open has returned.
    open_files_async: bool = false, Live, Open, New, AtOpen;
    /// Bytes of log above which the family that holds the oldest one is flushed; 0 for four times
    /// all write buffers.
    max_total_wal_size: u64 = 0, Live, Wal, Both, AnyTime;
    /// Uses `fsync` where `fdatasync` would do.
    use_fsync: bool = false, Accepted("`fdatasync` also writes the length; nothing else matters to recovery"), Durability, Both, AtOpen;
    /// Directory of the LOG files; empty for the database's.
    db_log_dir: String = String::new(), Live, Observe, Both, AtOpen;
    /// Directory of the write-ahead log; empty for the database's.
    wal_dir: String = String::new(), Live, Wal, Both, AtOpen;
    /// Directories of table files, as `{{path=P;target_size=BYTES;}:{...}}`, the fastest first;
    /// none for the database's.
    db_paths: Vec<DbPath> = Vec::new(), Live, Open, Unprinted, AtOpen;
    /// Microseconds between full scans for files that nothing refers to.
    delete_obsolete_files_period_micros: u64 = 6 * 60 * 60 * 1_000_000, Accepted("files are deleted when their last reader lets go, and scanned for at open"), Jobs, Both, AnyTime;
    /// Background jobs that may run at once: flushes and compactions; at most 256 do.
    max_background_jobs: i32 = 2, Live, Jobs, Both, AnyTime;
    /// Compactions that may run at once; -1 to divide `max_background_jobs`.
    max_background_compactions: i32 = -1, Live, Jobs, Both, AnyTime;
    /// Flushes that may run at once; -1 to divide `max_background_jobs`.
    max_background_flushes: i32 = -1, Live, Jobs, Both, AtOpen;
    /// Parts that one compaction may be split into.
    max_subcompactions: u32 = 1, Live, Jobs, Both, AnyTime;
    /// Bytes after which a new LOG file begins; 0 never.
    max_log_file_size: usize = 0, Live, Observe, Both, AtOpen;
    /// Seconds after which a new LOG file begins; 0 never.
    log_file_time_to_roll: usize = 0, Live, Observe, Both, AtOpen;
    /// LOG files kept.
    keep_log_file_num: usize = 1000, Live, Observe, Both, AtOpen;
    /// Log files kept for reuse, which saves the filesystem's work for a new one; 0 for none.
    recycle_log_file_num: usize = 0, Live, Wal, Both, AtOpen;
    /// Creates the next log before it is needed.
    async_wal_precreate: bool = false, Accepted("while memtables fill up the next log is always made ahead"), Wal, New, AtOpen;
    /// Bytes after which a new MANIFEST begins.
    max_manifest_file_size: u64 = 1 << 30, Live, Durability, Both, AnyTime;
    /// Percent by which a MANIFEST may exceed a fresh one before a new one begins.
    max_manifest_space_amp_pct: i32 = 500, Accepted("a new MANIFEST begins at max_manifest_file_size, and at each open"), Durability, New, AnyTime;
    /// Reads the MANIFEST back when the database closes.
    verify_manifest_content_on_close: bool = false, Accepted("every record is synced and checksummed when it is written"), Durability, New, AnyTime;
    /// Writes a MANIFEST that recovers faster.
    optimize_manifest_for_recovery: bool = false, Accepted("each open writes a fresh MANIFEST"), Durability, New, AnyTime;
    /// Goes on in the MANIFEST that is there.
    reuse_manifest_on_open: bool = false, Accepted("each open writes a fresh MANIFEST"), Durability, New, AtOpen;
    /// Shards of the table cache, as a power of two.
    table_cache_numshardbits: i32 = 6, Accepted("an open table belongs to its file's metadata and is found without a cache"), Read, Both, AtOpen;
    /// Seconds that a log is kept, in the directory `archive`, after its data reached tables; 0
    /// with the other 0 deletes at once.
    wal_ttl_seconds["WAL_ttl_seconds"]: u64 = 0, Live, Wal, Both, AtOpen;
    /// Megabytes of such logs that are kept.
    wal_size_limit_mb["WAL_size_limit_MB"]: u64 = 0, Live, Wal, Both, AtOpen;
    /// Bytes reserved ahead in the MANIFEST.
    manifest_preallocation_size: usize = 4 << 20, Accepted("every record of the MANIFEST is synced; nothing is reserved ahead"), Durability, Both, AnyTime;
    /// Maps table files into memory.
    allow_mmap_reads: bool = false, Accepted("files are read into the block cache: a failing page of a map would end the process; contents are the same"), Read, Both, AtOpen;
    /// Puts log records into a mapping of the log instead of calling for each, on ext4, XFS and
    /// tmpfs, which saves a microsecond a write. They survive the process as they do otherwise. Not
    /// with a recovery mode that refuses a torn last record. Blocks are there before anything is
    /// put, so a full disk is an error as ever; but a disk that cannot be read at that moment, or
    /// a log that is truncated meanwhile, ends the process. Tables are never mapped for writing.
    allow_mmap_writes: bool = false, Live, Wal, Both, AtOpen;
    /// Reads table files past the page cache.
    use_direct_reads: bool = false, Live, Read, Both, AtOpen;
    /// Reads the inputs of compactions past the page cache.
    use_direct_io_for_compaction_reads: bool = false, Live, Jobs, New, AtOpen;
    /// Writes table files past the page cache.
    use_direct_io_for_flush_and_compaction: bool = false, Live, Jobs, Both, AtOpen;
    /// Reserves space for files ahead of writing them.
    allow_fallocate: bool = true, Live, Jobs, Both, AtOpen;
    /// Closes files in child processes.
    is_fd_close_on_exec: bool = true, Accepted("files are always closed in child processes"), Open, Both, AtOpen;
    /// Seconds between dumps of statistics into the LOG; 0 never.
    stats_dump_period_sec: u32 = 600, Live, Observe, Both, AnyTime;
    /// Seconds between snapshots of statistics; 0 never.
    stats_persist_period_sec: u32 = 600, Accepted("statistics are dumped into the LOG and read through the API; no history is kept"), Observe, Both, AnyTime;
    /// Stores those snapshots in a family of their own.
    persist_stats_to_disk: bool = false, Accepted("no history of statistics is kept"), Observe, Both, AtOpen;
    /// Memory for those snapshots.
    stats_history_buffer_size: usize = 1 << 20, Accepted("no history of statistics is kept"), Observe, Both, AnyTime;
    /// Tells the kernel that table files are read at random.
    advise_random_on_open: bool = true, Live, Read, Both, AtOpen;
    /// Bytes that all memtables together may take; 0 for no limit.
    db_write_buffer_size: usize = 0, Live, Memory, Both, AtOpen;
    /// One number for block cache, memtables and open tables together, in bytes; 0 for separate
    /// limits. Memory moves to where a megabyte saves more time, a little each second. Families use
    /// the budget's cache, unless the application gives them one, which then holds what the budget
    /// leaves it and still reports its own capacity; `write_buffer_size` follows the share of the
    /// memtables.
    memory_budget: usize = 0, Live, Memory, Own, AtOpen;
    /// The percentage of the budget that the block cache has at first. 0: memtables begin with 128
    /// MB, or with half of the budget if that is less.
    memory_budget_cache_percent: u32 = 0, Accepted("the budget finds its split itself; programs set it by `MemoryBudgetOptions`"), Memory, Own, AtOpen;
    /// The least of the block cache, in bytes; 0 for a sixteenth of the budget.
    memory_budget_cache_min: usize = 0, Accepted("the budget finds its split itself; programs set it by `MemoryBudgetOptions`"), Memory, Own, AtOpen;
    /// The least of the memtables, in bytes; 0 for a sixteenth of the budget.
    memory_budget_memtables_min: usize = 0, Accepted("the budget finds its split itself; programs set it by `MemoryBudgetOptions`"), Memory, Own, AtOpen;
    /// Keeps the split as it is at first.
    memory_budget_fixed: bool = false, Accepted("the budget finds its split itself; programs set it by `MemoryBudgetOptions`"), Memory, Own, AtOpen;
    /// Saves at closing which blocks the block cache holds, and loads them in the background after
    /// opening, as far as there is room.
    save_block_cache: bool = false, Live, Read, Own, AnyTime;
    /// Bytes that a compaction reads at once of each input, while it merges the bytes before: at
    /// least 256 KB, less if all inputs together would exceed 8 MB, and 0 for readahead that grows.
    compaction_readahead_size: usize = 2 << 20, Live, Jobs, Both, AnyTime;
    /// Bytes collected before a write call of a table file; at least 256 KB in the background.
    writable_file_max_buffer_size: usize = 1 << 20, Live, Jobs, Both, AnyTime;
    /// Spins before it sleeps on the database's lock.
    use_adaptive_mutex: bool = false, Accepted("locks always spin a little before they sleep"), Jobs, Both, AtOpen;
    /// Starts write-back of table files after each of this many bytes; 0 is a megabyte, since a
    /// table is synced at its end anyway.
    bytes_per_sync: u64 = 0, Live, Jobs, Both, AnyTime;
    /// Bytes of a log after which its write-back is started.
    wal_bytes_per_sync: u64 = 0, Live, Wal, Both, AnyTime;
    /// While jobs run, overwrites obsolete tables with new ones, instead of deleting them and
    /// allocating as much space again. Only where the system can tell that no other process has
    /// such a file open (Linux). The spare files take at most a quarter of the size of the tables,
    /// a quarter of the free space, and 1 GB. Not with an `sst_file_manager`, nor while a family
    /// bounds its space (`max_space_amplification_percent`, `max_peak_size_amplification_percent`).
    recycle_table_files: bool = true, Live, Jobs, Own, AnyTime;
    /// How large reads and writes of flushes and compactions run in the background: `threads`, or
    /// `io_uring` for reads, and for writes past the page cache. `auto` is `io_uring` for files
    /// that are read or written past the page cache, and `threads` for others. Where the system has
    /// no io_uring, or forbids it, it is always threads; the LOG says which.
    background_io: BackgroundIoKind = BackgroundIoKind::Threads, Live, Jobs, Own, AtOpen;
    /// The compaction styles whose tables get a hint of their expected lifetime (`F_SET_RW_HINT`),
    /// by level, for devices that place data by lifetime. Logs are always short-lived.
    calculate_sst_write_lifetime_hint_set: Vec<CompactionStyle> = vec![CompactionStyle::Level], Live, Jobs, Unprinted, AtOpen;
    /// Waits for earlier write-back before it starts more.
    strict_bytes_per_sync: bool = false, Accepted("write-back is started, not waited for; a sync follows at the end of each file"), Jobs, Both, AnyTime;
    /// Shows what each thread is doing.
    enable_thread_tracking: bool = false, Accepted("jobs report through events"), Observe, Both, AtOpen;
    /// Bytes a second that compactions are assumed to drain from level 0 until that is measured; 0
    /// for 16 MiB, or the rate limiter's. Slowed writers follow the measured drain.
    delayed_write_rate: u64 = 0, Live, Admission, Both, AnyTime;
    /// Lets the log be written for one group while another group fills the memtable.
    enable_pipelined_write: bool = false, Accepted("a choice of the write queue; results are the same"), Wal, Both, AtOpen;
    /// Gives up the order among writers that a snapshot sees.
    unordered_write: bool = false, Accepted("writes stay ordered, which is stronger"), Wal, Both, AtOpen;
    /// Lets the writers of a group fill the memtable together.
    allow_concurrent_memtable_write: bool = true, Accepted("a choice of the write queue; results are the same"), Wal, Both, AtOpen;
    /// Spins before it sleeps in the write queue.
    enable_write_thread_adaptive_yield: bool = true, Accepted("a choice of the write queue; results are the same"), Wal, Both, AtOpen;
    /// Most bytes in one group of writers.
    max_write_batch_group_size_bytes: u64 = 1 << 20, Live, Wal, Both, AtOpen;
    /// Microseconds that a writer spins at most.
    write_thread_max_yield_usec: u64 = 100, Accepted("a choice of the write queue; results are the same"), Wal, Both, AtOpen;
    /// Microseconds for a yield after which spinning is judged useless.
    write_thread_slow_yield_usec: u64 = 3, Accepted("a choice of the write queue; results are the same"), Wal, Both, AtOpen;
    /// Opens without reading the properties of files.
    skip_stats_update_on_db_open: bool = false, Accepted("opening reads no file properties in any case"), Open, Both, AtOpen;
    /// Treatment of damage in a log by recovery.
    wal_recovery_mode: WalRecoveryMode = WalRecoveryMode::PointInTimeRecovery, Live, Durability, Both, AtOpen;
    /// Keeps prepared transactions for a transaction layer to finish.
    allow_2pc: bool = false, Live, Durability, Both, AtOpen;
    /// Filters records of the log during recovery.
    wal_filter: Option<Arc<dyn WalFilter>> = None, Live, Wal, Both, AtOpen;
    /// Writes the allocator's statistics with the others.
    dump_malloc_stats: bool = false, Accepted("the allocator is the application's"), Observe, Both, AtOpen;
    /// Keeps recovered data in memtables, and the logs it came from, when it fits.
    avoid_flush_during_recovery: bool = false, Live, Open, Both, AtOpen;
    /// Flushes while recovering when memtables exceed the limit on all of them.
    enforce_write_buffer_manager_during_recovery: bool = true, Accepted("recovery flushes each memtable that is full"), Memory, New, AtOpen;
    /// Does not flush unlogged data when the database closes.
    avoid_flush_during_shutdown: bool = false, Live, Durability, Both, AnyTime;
    /// Keeps a place below everything for files ingested behind.
    allow_ingest_behind: bool = false, Refused("ingestion behind existing data is not built"), Compaction, Both, AtOpen;
    /// Separate queues for logged and unlogged writes.
    two_write_queues: bool = false, Accepted("a choice of the write queue; results are the same"), Wal, Both, AtOpen;
    /// Leaves log records in memory until `flush_wal` is called.
    manual_wal_flush: bool = false, Live, Wal, Both, AtOpen;
    /// Compresses the log.
    wal_compression: CompressionType = CompressionType::None, Live, Wal, Both, AtOpen;
    /// Closes logs that are done in the background.
    background_close_inactive_wals: bool = false, Accepted("a log is closed off the write path in any case"), Wal, New, AtOpen;
    /// Flushes all families together, so that they agree without a log.
    atomic_flush: bool = false, Live, Durability, Both, AtOpen;
    /// Frees memory and deletes files in the background rather than in the caller's thread.
    avoid_unnecessary_blocking_io: bool = false, Accepted("files are deleted by background jobs in any case"), Jobs, Both, AtOpen;
    /// Stores the database's id in the MANIFEST.
    write_dbid_to_manifest: bool = true, Live, Open, Both, AtOpen;
    /// Stores the database's id in the file IDENTITY.
    write_identity_file: bool = true, Live, Open, New, AtOpen;
    /// Iterators use total order unless they ask for prefixes.
    prefix_seek_opt_in_only: bool = false, Accepted("iterators see the total order unless they set prefix_same_as_start"), Read, New, AtOpen;
    /// Readahead when logs are recovered; 0 for the default.
    log_readahead_size: usize = 0, Accepted("logs are read in large pieces"), Open, Both, AtOpen;
    /// Checksums of whole files.
    file_checksum_gen_factory: Option<Arc<dyn FileChecksumGenFactory>> = None, Live, Durability, Both, AtOpen;
    /// Opens what can be opened when files are missing.
    best_efforts_recovery: bool = false, Refused("use repair: a database never opens with silent losses"), Open, Both, AtOpen;
    /// Times that recovery from a passing error is tried.
    max_bgerror_resume_count: i32 = i32::MAX, Live, Durability, Both, AtOpen;
    /// Microseconds between those tries.
    bgerror_resume_retry_interval: u64 = 1_000_000, Live, Durability, Both, AtOpen;
    /// Lets keys and values appear in errors and logs.
    allow_data_in_errors: bool = false, Accepted("messages about damage name the key that was met; values never appear"), Observe, Both, AtOpen;
    /// Host name stored in table files; `__hostname__` for this machine's.
    db_host_id: String = "__hostname__".into(), Live, Open, Both, AtOpen;
    /// Slowest cache tier used.
    lowest_used_cache_tier: CacheTier = CacheTier::NonVolatileBlock, Accepted("there is one tier: memory"), Memory, Both, AtOpen;
    /// Fails when the rules of single deletions are violated.
    enforce_single_del_contracts: bool = true, Live, Durability, Both, AtOpen;
    /// Hours of little load, `HH:MM-HH:MM` UTC: files are rewritten that get old before the next.
    daily_offpeak_time_utc: String = String::new(), Live, Jobs, New, AnyTime;
    /// Longest time in seconds between looks for work that time alone makes due.
    max_compaction_trigger_wakeup_seconds: u64 = 43_200, Live, Jobs, New, AnyTime;
    /// Milliseconds between looks at the primary.
    follower_refresh_catchup_period_ms: u64 = 10_000, Accepted("there are no followers"), Follower, New, AtOpen;
    /// Tries to catch up with the primary.
    follower_catchup_retry_count: u64 = 10, Accepted("there are no followers"), Follower, New, AtOpen;
    /// Milliseconds between those tries.
    follower_catchup_retry_wait_ms: u64 = 100, Accepted("there are no followers"), Follower, New, AtOpen;
    /// Temperature of MANIFEST and OPTIONS files.
    metadata_write_temperature: Temperature = Temperature::Unknown, Accepted("file temperatures are not used"), Jobs, New, AtOpen;
    /// Temperature of logs.
    wal_write_temperature: Temperature = Temperature::Unknown, Accepted("file temperatures are not used"), Jobs, New, AtOpen;
    /// Opens table files with fewer reads.
    fast_sst_open: bool = false, Accepted("the end of a file is fetched in one read in any case"), Read, New, AnyTime;
    /// Bytes read ahead by readers that cannot seek; without effect in RocksDB since 8.
    random_access_max_buffer_size: usize = 1 << 20, Accepted("reads are sized by the block"), Read, Old, AtOpen;
    /// Opens without comparing file sizes; without effect in later RocksDB.
    skip_checking_sst_file_sizes_on_db_open: bool = false, Accepted("sizes are compared when a file is first used"), Open, Old, AtOpen;
    /// Fails when the OPTIONS file cannot be written; later RocksDB always does.
    fail_if_options_file_error: bool = true, Accepted("an OPTIONS file that cannot be written is always an error"), Open, Old, AtOpen;
    /// Advice about the inputs of a compaction; without effect in later RocksDB.
    access_hint_on_compaction_start: AccessHint = AccessHint::Normal, Accepted("compactions read ahead by themselves"), Jobs, Old, AtOpen;
    /// Bytes a second that background jobs may write; 0 for no limit.
    rate_limiter_bytes_per_sec: u64 = 0, Live, Jobs, Unprinted, AnyTime;
    /// Counters and histograms, by name; see the typed field of the same purpose.
    statistics_name["statistics"]: String = "nullptr".into(), Refused("given through the typed interface"), Observe, Unprinted, AtOpen;
    /// The listeners of events, by name; see the typed field.
    listeners_names["listeners"]: String = String::new(), Refused("given through the typed interface"), Observe, Unprinted, AtOpen;
    /// The environment, by name.
    env: String = String::new(), Refused("given through the typed interface"), Open, Unprinted, AtOpen;
    /// A rate limiter, by name; see the typed field of the same purpose.
    rate_limiter_name["rate_limiter"]: String = "nullptr".into(), Refused("given through the typed interface, or by rate_limiter_bytes_per_sec"), Jobs, Unprinted, AtOpen;

    objects {
        /// Counters and histograms; `None` counts nothing.
        statistics: Option<Arc<Statistics>> = None;
        /// A limit on what background jobs read and write, which databases may share; in place of
        /// `rate_limiter_bytes_per_sec`.
        rate_limiter: Option<Arc<RateLimiter>> = None;
        /// A limit on the memory of memtables, which databases may share; in place of
        /// `db_write_buffer_size`.
        write_buffer_manager: Option<Arc<WriteBufferManager>> = None;
        /// One number for the memory of databases that share it; in place of `memory_budget`.
        shared_memory_budget: Option<Arc<MemoryBudget>> = None;
        /// Watches the room that files take and how fast they are deleted, which databases may
        /// share.
        sst_file_manager: Option<Arc<SstFileManager>> = None;
        /// The listeners of flushes, compactions and other events.
        listeners: Vec<Arc<dyn EventListener>> = Vec::new();
        /// Takes the lines of the log instead of the LOG file; `None` writes the file.
        info_log: Option<Arc<dyn Logger>> = None;
    }
}
