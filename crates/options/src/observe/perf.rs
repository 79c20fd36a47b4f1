//! Counters and times of one thread: RocksDB's perf context.
//!
//! Each thread has its own, so counting takes no lock and no atomic operation; a thread that asks
//! for no times pays one thread-local load and a branch where a time would be taken. Levels are
//! RocksDB's.

use super::catalogue::catalogue_enum;
use esker_env::Clock;
use esker_files::table::{
    ReadFigure, ReadWork, read_work_since_mark, reset_read_work, set_read_work,
    set_read_work_counting,
};
use esker_sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::cell::Cell;
use std::fmt::Write as _;

catalogue_enum! {
    /// A figure of the perf context. The number is its place in RocksDB's struct.
    PerfMetric {
    UserKeyComparisonCount = 0 "user_key_comparison_count",
    BlockCacheHitCount = 1 "block_cache_hit_count",
    BlockReadCount = 2 "block_read_count",
    BlockReadByte = 3 "block_read_byte",
    BlockReadTime = 4 "block_read_time",
    BlockReadCpuTime = 5 "block_read_cpu_time",
    BlockCacheIndexHitCount = 6 "block_cache_index_hit_count",
    BlockCacheStandaloneHandleCount = 7 "block_cache_standalone_handle_count",
    BlockCacheRealHandleCount = 8 "block_cache_real_handle_count",
    IndexBlockReadCount = 9 "index_block_read_count",
    BlockCacheFilterHitCount = 10 "block_cache_filter_hit_count",
    FilterBlockReadCount = 11 "filter_block_read_count",
    CompressionDictBlockReadCount = 12 "compression_dict_block_read_count",
    BlockCacheIndexReadByte = 13 "block_cache_index_read_byte",
    BlockCacheFilterReadByte = 14 "block_cache_filter_read_byte",
    BlockCacheCompressionDictReadByte = 15 "block_cache_compression_dict_read_byte",
    BlockCacheReadByte = 16 "block_cache_read_byte",
    SecondaryCacheHitCount = 17 "secondary_cache_hit_count",
    CompressedSecCacheInsertRealCount = 18 "compressed_sec_cache_insert_real_count",
    CompressedSecCacheInsertDummyCount = 19 "compressed_sec_cache_insert_dummy_count",
    CompressedSecCacheUncompressedBytes = 20 "compressed_sec_cache_uncompressed_bytes",
    CompressedSecCacheCompressedBytes = 21 "compressed_sec_cache_compressed_bytes",
    BlockChecksumTime = 22 "block_checksum_time",
    BlockDecompressTime = 23 "block_decompress_time",
    BlockDecompressCount = 24 "block_decompress_count",
    GetReadBytes = 25 "get_read_bytes",
    MultigetReadBytes = 26 "multiget_read_bytes",
    IterReadBytes = 27 "iter_read_bytes",
    BlobCacheHitCount = 28 "blob_cache_hit_count",
    BlobCacheReadByte = 29 "blob_cache_read_byte",
    BlobReadCount = 30 "blob_read_count",
    BlobReadByte = 31 "blob_read_byte",
    BlobReadTime = 32 "blob_read_time",
    BlobChecksumTime = 33 "blob_checksum_time",
    BlobDecompressTime = 34 "blob_decompress_time",
    InternalKeySkippedCount = 35 "internal_key_skipped_count",
    InternalDeleteSkippedCount = 36 "internal_delete_skipped_count",
    InternalRecentSkippedCount = 37 "internal_recent_skipped_count",
    InternalMergeCount = 38 "internal_merge_count",
    InternalMergePointLookupCount = 39 "internal_merge_point_lookup_count",
    InternalRangeDelReseekCount = 40 "internal_range_del_reseek_count",
    GetSnapshotTime = 41 "get_snapshot_time",
    GetFromMemtableTime = 42 "get_from_memtable_time",
    GetFromMemtableCount = 43 "get_from_memtable_count",
    GetPostProcessTime = 44 "get_post_process_time",
    GetFromOutputFilesTime = 45 "get_from_output_files_time",
    SeekOnMemtableTime = 46 "seek_on_memtable_time",
    SeekOnMemtableCount = 47 "seek_on_memtable_count",
    NextOnMemtableCount = 48 "next_on_memtable_count",
    PrevOnMemtableCount = 49 "prev_on_memtable_count",
    SeekChildSeekTime = 50 "seek_child_seek_time",
    SeekChildSeekCount = 51 "seek_child_seek_count",
    SeekMinHeapTime = 52 "seek_min_heap_time",
    SeekMaxHeapTime = 53 "seek_max_heap_time",
    SeekInternalSeekTime = 54 "seek_internal_seek_time",
    FindNextUserEntryTime = 55 "find_next_user_entry_time",
    WriteWalTime = 56 "write_wal_time",
    WriteMemtableTime = 57 "write_memtable_time",
    WriteDelayTime = 58 "write_delay_time",
    WriteSchedulingFlushesCompactionsTime = 59 "write_scheduling_flushes_compactions_time",
    WritePreAndPostProcessTime = 60 "write_pre_and_post_process_time",
    WriteThreadWaitNanos = 61 "write_thread_wait_nanos",
    DbMutexLockNanos = 62 "db_mutex_lock_nanos",
    DbConditionWaitNanos = 63 "db_condition_wait_nanos",
    MergeOperatorTimeNanos = 64 "merge_operator_time_nanos",
    ReadIndexBlockNanos = 65 "read_index_block_nanos",
    ReadFilterBlockNanos = 66 "read_filter_block_nanos",
    NewTableBlockIterNanos = 67 "new_table_block_iter_nanos",
    NewTableIteratorNanos = 68 "new_table_iterator_nanos",
    BlockSeekNanos = 69 "block_seek_nanos",
    FindTableNanos = 70 "find_table_nanos",
    BloomMemtableHitCount = 71 "bloom_memtable_hit_count",
    BloomMemtableMissCount = 72 "bloom_memtable_miss_count",
    BloomSstHitCount = 73 "bloom_sst_hit_count",
    BloomSstMissCount = 74 "bloom_sst_miss_count",
    KeyLockWaitTime = 75 "key_lock_wait_time",
    KeyLockWaitCount = 76 "key_lock_wait_count",
    EnvNewSequentialFileNanos = 77 "env_new_sequential_file_nanos",
    EnvNewRandomAccessFileNanos = 78 "env_new_random_access_file_nanos",
    EnvNewWritableFileNanos = 79 "env_new_writable_file_nanos",
    EnvReuseWritableFileNanos = 80 "env_reuse_writable_file_nanos",
    EnvNewRandomRwFileNanos = 81 "env_new_random_rw_file_nanos",
    EnvNewDirectoryNanos = 82 "env_new_directory_nanos",
    EnvFileExistsNanos = 83 "env_file_exists_nanos",
    EnvGetChildrenNanos = 84 "env_get_children_nanos",
    EnvGetChildrenFileAttributesNanos = 85 "env_get_children_file_attributes_nanos",
    EnvDeleteFileNanos = 86 "env_delete_file_nanos",
    EnvCreateDirNanos = 87 "env_create_dir_nanos",
    EnvCreateDirIfMissingNanos = 88 "env_create_dir_if_missing_nanos",
    EnvDeleteDirNanos = 89 "env_delete_dir_nanos",
    EnvGetFileSizeNanos = 90 "env_get_file_size_nanos",
    EnvGetFileModificationTimeNanos = 91 "env_get_file_modification_time_nanos",
    EnvRenameFileNanos = 92 "env_rename_file_nanos",
    EnvLinkFileNanos = 93 "env_link_file_nanos",
    EnvLockFileNanos = 94 "env_lock_file_nanos",
    EnvUnlockFileNanos = 95 "env_unlock_file_nanos",
    EnvNewLoggerNanos = 96 "env_new_logger_nanos",
    GetCpuNanos = 97 "get_cpu_nanos",
    IterNextCpuNanos = 98 "iter_next_cpu_nanos",
    IterPrevCpuNanos = 99 "iter_prev_cpu_nanos",
    IterSeekCpuNanos = 100 "iter_seek_cpu_nanos",
    IterNextCount = 101 "iter_next_count",
    IterPrevCount = 102 "iter_prev_count",
    IterSeekCount = 103 "iter_seek_count",
    EncryptDataNanos = 104 "encrypt_data_nanos",
    DecryptDataNanos = 105 "decrypt_data_nanos",
    NumberAsyncSeek = 106 "number_async_seek",
    FileIngestionNanos = 107 "file_ingestion_nanos",
    FileIngestionBlockingLiveWritesNanos = 108 "file_ingestion_blocking_live_writes_nanos",
    DataBlockReadByte = 109 "data_block_read_byte",
    IndexBlockReadByte = 110 "index_block_read_byte",
    FilterBlockReadByte = 111 "filter_block_read_byte",
    CompressionDictBlockReadByte = 112 "compression_dict_block_read_byte",
    MetadataBlockReadByte = 113 "metadata_block_read_byte",
    MultiscanPrepareCount = 114 "multiscan_prepare_count",
    MultiscanBlocksPrefetched = 115 "multiscan_blocks_prefetched",
    MultiscanBlocksFromCache = 116 "multiscan_blocks_from_cache",
    MultiscanPrefetchBytes = 117 "multiscan_prefetch_bytes",
    MultiscanIoRequests = 118 "multiscan_io_requests",
    MultiscanIoCoalescedNonadjacent = 119 "multiscan_io_coalesced_nonadjacent",
    }
}

/// How much a thread measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PerfLevel {
    /// Nothing.
    Disable = 1,
    /// Counts. What a thread begins with.
    EnableCount = 2,
    /// And times of waiting.
    EnableWait = 3,
    /// And times of everything but locks.
    EnableTimeExceptForMutex = 4,
    /// And processor time.
    EnableTimeAndCpuTimeExceptForMutex = 5,
    /// Everything.
    EnableTime = 6,
}

impl PerfLevel {
    /// The level with RocksDB's number.
    pub fn from_number(number: u8) -> Option<PerfLevel> {
        Some(match number {
            1 => PerfLevel::Disable,
            2 => PerfLevel::EnableCount,
            3 => PerfLevel::EnableWait,
            4 => PerfLevel::EnableTimeExceptForMutex,
            5 => PerfLevel::EnableTimeAndCpuTimeExceptForMutex,
            6 => PerfLevel::EnableTime,
            _ => return None,
        })
    }
}

/// The figures of the thread's reads that make a figure of the perf context; none for those that
/// are kept here.
fn of_reads(metric: PerfMetric) -> &'static [ReadFigure] {
    use {PerfMetric as M, ReadFigure as F};
    match metric {
        M::UserKeyComparisonCount => &[F::KeysCompared],
        M::BlockCacheHitCount => &[F::DataHits, F::IndexHits, F::FilterHits],
        M::BlockCacheIndexHitCount => &[F::IndexHits],
        M::SecondaryCacheHitCount => &[F::TierHits],
        M::BlockCacheFilterHitCount => &[F::FilterHits],
        M::BlockReadCount => &[
            F::DataBlocksRead,
            F::IndexBlocksRead,
            F::FilterBlocksRead,
            F::MetaBlocksRead,
        ],
        M::IndexBlockReadCount => &[F::IndexBlocksRead],
        M::FilterBlockReadCount => &[F::FilterBlocksRead],
        M::BlockReadByte => &[
            F::DataBytesRead,
            F::IndexBytesRead,
            F::FilterBytesRead,
            F::MetaBytesRead,
        ],
        M::DataBlockReadByte => &[F::DataBytesRead],
        M::IndexBlockReadByte => &[F::IndexBytesRead],
        M::FilterBlockReadByte => &[F::FilterBytesRead],
        M::MetadataBlockReadByte => &[F::MetaBytesRead],
        M::BloomSstHitCount => &[F::FiltersPassed],
        M::BloomSstMissCount => &[F::FiltersUseful],
        M::GetFromMemtableCount => &[F::MemtablesSearched],
        M::InternalKeySkippedCount => &[F::KeysSkipped],
        M::InternalDeleteSkippedCount => &[F::DeletionsSkipped],
        M::InternalRecentSkippedCount => &[F::RecentSkipped],
        _ => &[],
    }
}

struct Context {
    level: Cell<u8>,
    /// The number of the recorded write under way, and of the one that `marked` belongs to.
    write: Cell<u64>,
    marked_write: Cell<u64>,
    marked: Cell<[u64; OF_WRITES.len()]>,
    figures: [Cell<u64>; PerfMetric::COUNT],
}

thread_local! {
    static CONTEXT: Context = const {
        Context {
            level: Cell::new(PerfLevel::EnableCount as u8),
            write: Cell::new(0),
            marked_write: Cell::new(0),
            marked: Cell::new([0; OF_WRITES.len()]),
            figures: [const { Cell::new(0) }; PerfMetric::COUNT],
        }
    };
}

/// Returns the level at which this thread measures.
pub fn perf_level() -> PerfLevel {
    CONTEXT.with(|c| PerfLevel::from_number(c.level.get()).unwrap_or(PerfLevel::Disable))
}

/// Makes this thread measure as much as `level` says.
///
/// ```
/// use esker::observe::{PerfLevel, perf_level, set_perf_level};
///
/// set_perf_level(PerfLevel::EnableTime);
/// assert_eq!(perf_level(), PerfLevel::EnableTime);
/// set_perf_level(PerfLevel::EnableCount);
/// ```
pub fn set_perf_level(level: PerfLevel) {
    CONTEXT.with(|c| c.level.set(level as u8));
    set_read_work_counting(level >= PerfLevel::EnableCount);
}

/// Returns whether this thread measures at `level` or above.
#[inline]
pub fn perf_measures(level: PerfLevel) -> bool {
    CONTEXT.with(|c| c.level.get()) >= level as u8
}

/// Adds to a figure of this thread, if it counts at all.
#[inline]
pub fn perf_count(metric: PerfMetric, amount: u64) {
    CONTEXT.with(|c| {
        if c.level.get() >= PerfLevel::EnableCount as u8 {
            let figure = &c.figures[metric as usize];
            figure.set(figure.get().wrapping_add(amount));
        }
    });
}

/// Times what happens until the value is dropped, when this thread measures at `level` or above.
#[inline]
pub fn perf_timer<'a>(metric: PerfMetric, level: PerfLevel, clock: &'a dyn Clock) -> PerfTimer<'a> {
    PerfTimer {
        metric,
        running: perf_measures(level).then(|| (clock, clock.now_ns())),
    }
}

/// Times a wait, which costs more than the clock, until the value is dropped: when this thread
/// measures at `level` or above, or while operations are recorded.
#[inline]
pub fn perf_wait_timer<'a>(
    metric: PerfMetric,
    level: PerfLevel,
    clock: &'a dyn Clock,
) -> PerfTimer<'a> {
    let is_timed = perf_measures(level) || WAITS_ASKED.load(Relaxed) > 0;
    PerfTimer {
        metric,
        running: is_timed.then(|| (clock, clock.now_ns())),
    }
}

/// A time being taken; see [`perf_timer`].
#[must_use = "the time ends when this is dropped"]
#[derive(Debug)]
pub struct PerfTimer<'a> {
    metric: PerfMetric,
    running: Option<(&'a dyn Clock, u64)>,
}

impl Drop for PerfTimer<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((clock, start)) = self.running.take() {
            perf_count_write(self.metric, clock.now_ns().saturating_sub(start));
        }
    }
}

/// While it lives, the calling thread works for others: its figures and its level are as before
/// when this is dropped.
#[derive(Debug)]
pub struct PerfApart {
    level: PerfLevel,
    figures: [u64; PerfMetric::COUNT],
    reads: ReadWork,
}

impl PerfApart {
    /// The thread counts from here on as a thread of the background does.
    #[expect(clippy::new_without_default, reason = "it begins something")]
    pub fn new() -> PerfApart {
        let before = PerfApart {
            level: perf_level(),
            figures: CONTEXT.with(|c| std::array::from_fn(|at| c.figures[at].get())),
            reads: ReadWork::of_thread(),
        };
        set_perf_level(PerfLevel::EnableCount);
        before
    }
}

impl Drop for PerfApart {
    fn drop(&mut self) {
        set_perf_level(self.level);
        CONTEXT.with(|c| {
            c.figures
                .iter()
                .zip(self.figures)
                .for_each(|(f, n)| f.set(n))
        });
        set_read_work(&self.reads);
    }
}

/// The figures of a write.
const OF_WRITES: [PerfMetric; 6] = [
    PerfMetric::WriteWalTime,
    PerfMetric::WriteMemtableTime,
    PerfMetric::WriteDelayTime,
    PerfMetric::WriteSchedulingFlushesCompactionsTime,
    PerfMetric::WritePreAndPostProcessTime,
    PerfMetric::WriteThreadWaitNanos,
];

/// How many ask for the waits of writes, on any thread.
static WAITS_ASKED: AtomicUsize = AtomicUsize::new(0);

/// Has the waits of all writes timed, until [`forget_waits`].
pub(super) fn time_waits() {
    WAITS_ASKED.fetch_add(1, Relaxed);
}

/// Takes one [`time_waits`] back.
pub(super) fn forget_waits() {
    WAITS_ASKED.fetch_sub(1, Relaxed);
}

/// A write that is recorded begins on this thread.
#[inline]
pub(super) fn begin_write() {
    CONTEXT.with(|c| c.write.set(c.write.get() + 1));
}

/// Counts a time of a write. What was counted before the first one of a write is marked.
pub fn perf_count_write(metric: PerfMetric, ns: u64) {
    CONTEXT.with(|c| {
        if c.marked_write.get() != c.write.get() {
            c.marked_write.set(c.write.get());
            let figures = OF_WRITES.map(|m| c.figures[m as usize].get());
            c.marked.set(figures);
        }
    });
    perf_count(metric, ns);
}

/// Figures that the thread's read has counted since it began, without zeros.
pub(super) fn added_by_read() -> Vec<(PerfMetric, u64)> {
    let work = read_work_since_mark();
    // A read from caches alone.
    if work == ReadWork::default() {
        return Vec::new();
    }
    let figure = |metric: &PerfMetric| (*metric, work.sum(of_reads(*metric)));
    let all = PerfMetric::ALL.iter().map(figure);
    all.filter(|(_, value)| *value > 0).collect()
}

/// Figures that the thread's write has counted since it began, without zeros.
pub(super) fn added_by_write() -> Vec<(PerfMetric, u64)> {
    let marked = CONTEXT.with(|c| (c.marked_write.get() == c.write.get()).then(|| c.marked.get()));
    let before = OF_WRITES.iter().zip(marked.into_iter().flatten());
    let figure = |(m, n): (&PerfMetric, u64)| (*m, PerfContext.get(*m).wrapping_sub(n));
    before.map(figure).filter(|(_, n)| *n > 0).collect()
}

/// The perf context of the calling thread.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// use esker::observe::{PerfContext, PerfMetric};
///
/// db.put("key", "value")?;
/// PerfContext.reset();
/// db.get("key")?;
/// assert_eq!(PerfContext.get(PerfMetric::GetFromMemtableCount), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PerfContext;

impl PerfContext {
    /// A figure of this thread.
    pub fn get(self, metric: PerfMetric) -> u64 {
        match of_reads(metric) {
            [] => CONTEXT.with(|c| c.figures[metric as usize].get()),
            parts => ReadWork::of_thread().sum(parts),
        }
    }

    /// Sets every figure of this thread to 0.
    pub fn reset(self) {
        CONTEXT.with(|c| c.figures.iter().for_each(|f| f.set(0)));
        reset_read_work();
    }

    /// The figures in RocksDB's form: `name = value, name = value`.
    pub fn report(self, exclude_zero: bool) -> String {
        let mut out = String::new();
        for &metric in PerfMetric::ALL {
            let value = self.get(metric);
            if value > 0 || !exclude_zero {
                // Writing to a string cannot fail.
                let comma = if out.is_empty() { "" } else { ", " };
                let _ = write!(out, "{comma}{} = {value}", metric.name());
            }
        }
        out
    }
}
