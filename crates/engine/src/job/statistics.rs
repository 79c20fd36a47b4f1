//! Reports of jobs when they end: to the family's traffic, to the statistics.
//!
//! Also what is known about a job while it runs: which numbers its tables may have, and that level
//! 0 is being compacted. Each is held by the job and ends with it, however it ends.

use crate::core::Services;
use crate::family::{CompactionStats, Family};
use crate::memtable::MemTable;
use crate::observe::{HistogramId, Ticker};
use crate::tree::{FileNumbers, UnlistedTables};
use esker_env::Clock;
use esker_format::Level;
use esker_lsm::compaction_stream::StreamCounters;
use esker_lsm::plan::{CompactionReason, Plan};
use esker_sync::Arc;
use esker_sync::atomic::Ordering;

/// The processor time of a job's steps, on whichever threads they run.
#[derive(Debug)]
pub(super) struct CpuTime {
    clock: Arc<dyn Clock>,
    ns: u64,
}

impl CpuTime {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        CpuTime { clock, ns: 0 }
    }

    /// The thread's own clock, to be given to [`CpuTime::stop`].
    pub(super) fn start(&self) -> u64 {
        self.clock.thread_cpu_ns()
    }

    pub(super) fn stop(&mut self, start: u64) {
        self.ns += self.clock.thread_cpu_ns().saturating_sub(start);
    }

    /// Adds what other threads took.
    pub(super) fn add_ns(&mut self, ns: u64) {
        self.ns += ns;
    }

    pub(super) fn ns(&self) -> u64 {
        self.ns
    }

    pub(super) fn us(&self) -> u64 {
        self.ns / 1_000
    }
}

/// Counts a running compaction of level 0: stalls for level 0 say whether one ran.
#[derive(Debug)]
struct Level0(Arc<Family>);

impl Level0 {
    fn begin(family: &Arc<Family>) -> Self {
        family.level0_compactions.fetch_add(1, Ordering::Relaxed);
        Level0(Arc::clone(family))
    }
}

impl Drop for Level0 {
    fn drop(&mut self) {
        self.0.level0_compactions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Marks of a running job: the numbers that its tables may have, and its compaction of level 0.
#[derive(Debug)]
pub(super) struct JobGuard {
    _writing: UnlistedTables,
    _level0: Option<Level0>,
}

impl JobGuard {
    pub(super) fn flush(numbers: &Arc<FileNumbers>) -> Self {
        JobGuard {
            _writing: FileNumbers::protect(numbers),
            _level0: None,
        }
    }

    pub(super) fn compaction(
        numbers: &Arc<FileNumbers>,
        family: &Arc<Family>,
        plan: &Plan,
    ) -> Self {
        let level0 = plan.start_level() == Level::L0;
        JobGuard {
            _writing: FileNumbers::protect(numbers),
            _level0: level0.then(|| Level0::begin(family)),
        }
    }
}

/// A flush ended.
pub(super) fn flushed(
    services: &Services,
    family: &Family,
    mems: &[Arc<MemTable>],
    work: &CompactionStats,
) {
    family.compaction_stats.flushed(work);
    let Some(s) = &services.statistics else {
        return;
    };
    let memory: usize = mems.iter().map(|m| m.memory_usage()).sum();
    let data: u64 = mems.iter().map(|m| m.data_bytes()).sum();
    let garbage = data.saturating_sub(work.bytes_written_raw);
    s.add(Ticker::FlushWriteBytes, work.all_written());
    s.add(Ticker::MemtablePayloadBytesAtFlush, data);
    s.add(Ticker::MemtableGarbageBytesAtFlush, garbage);
    s.record(HistogramId::FlushMemtableMemoryBytes, memory as u64);
    s.record(HistogramId::FlushMemtableTotalDataSize, data);
    if s.wants_times() {
        s.record(HistogramId::FlushTime, work.micros);
    }
}

/// A compaction that only moved its files ended.
pub(super) fn moved(family: &Family, plan: &Plan, bytes: u64) {
    let work = CompactionStats {
        bytes_moved: bytes,
        ..CompactionStats::default()
    };
    family
        .compaction_stats
        .compacted(plan.output_level, plan.manual, &work);
}

/// A compaction that read and wrote ended; `work` says what it wrote and how long it took.
pub(super) fn compacted(
    services: &Services,
    family: &Family,
    plan: &Plan,
    mut work: CompactionStats,
    counters: &StreamCounters,
) {
    let at_output = plan.files().filter(|(l, _)| *l == plan.output_level);
    work.bytes_read_output = at_output.map(|(_, f)| f.size).sum();
    work.bytes_read_upper = plan.input_bytes() - work.bytes_read_output;
    work.bytes_read_blob = counters.total_blob_bytes_read;
    work.bytes_in = plan.input_bytes();
    work.entries_in = counters.num_itered;
    work.entries_out = counters.num_output_records;
    work.input_records = counters.num_input_records;
    work.dropped_records = counters
        .num_input_records
        .saturating_sub(counters.num_output_records);
    work.jobs = 1;
    family
        .compaction_stats
        .compacted(plan.output_level, plan.manual, &work);
    let Some(s) = &services.statistics else {
        return;
    };
    let (read, written) = (work.bytes_read(), work.all_written());
    s.add(Ticker::CompactReadBytes, read);
    s.add(Ticker::CompactWriteBytes, written);
    if let Some((r, w)) = by_reason(plan.reason) {
        s.add(r, read);
        s.add(w, written);
    }
    use Ticker as T;
    let c = counters;
    for (ticker, n) in [
        (T::CompactionKeyDropNewerEntry, c.num_record_drop_hidden),
        (T::CompactionKeyDropObsolete, c.num_record_drop_obsolete),
        (T::CompactionKeyDropRangeDel, c.num_record_drop_range_del),
        (T::CompactionKeyDropUser, c.num_record_drop_user),
        (
            T::CompactionOptimizedDelDropObsolete,
            c.num_optimized_del_drop_obsolete,
        ),
        (T::CompactionCpuTotalTime, work.cpu_micros),
        (T::BlobDbGcNumKeysRelocated, c.num_blobs_relocated),
        (T::BlobDbGcBytesRelocated, c.total_blob_bytes_relocated),
    ] {
        s.add(ticker, n);
    }
    let files = plan.files().count() as u64;
    s.record(HistogramId::NumFilesInSingleCompaction, files);
    if s.wants_times() {
        s.record(HistogramId::CompactionTime, work.micros);
        s.record(HistogramId::CompactionCpuTime, work.cpu_micros);
    }
}

/// The counters of a reason that has its own.
fn by_reason(reason: CompactionReason) -> Option<(Ticker, Ticker)> {
    Some(match reason {
        CompactionReason::FilesMarkedForCompaction => (
            Ticker::CompactReadBytesMarked,
            Ticker::CompactWriteBytesMarked,
        ),
        CompactionReason::PeriodicCompaction => (
            Ticker::CompactReadBytesPeriodic,
            Ticker::CompactWriteBytesPeriodic,
        ),
        CompactionReason::Ttl => (Ticker::CompactReadBytesTtl, Ticker::CompactWriteBytesTtl),
        _ => return None,
    })
}

/// Adds the figures of a part that are counted.
pub(super) fn add(all: &mut StreamCounters, part: &StreamCounters) {
    all.num_itered += part.num_itered;
    all.num_input_records += part.num_input_records;
    all.num_output_records += part.num_output_records;
    all.num_record_drop_user += part.num_record_drop_user;
    all.num_record_drop_hidden += part.num_record_drop_hidden;
    all.num_record_drop_obsolete += part.num_record_drop_obsolete;
    all.num_record_drop_range_del += part.num_record_drop_range_del;
    all.num_optimized_del_drop_obsolete += part.num_optimized_del_drop_obsolete;
    all.num_input_deletion_records += part.num_input_deletion_records;
    all.total_input_raw_key_bytes += part.total_input_raw_key_bytes;
    all.total_input_raw_value_bytes += part.total_input_raw_value_bytes;
    all.num_single_del_fallthru += part.num_single_del_fallthru;
    all.num_single_del_mismatch += part.num_single_del_mismatch;
    all.num_blobs_read += part.num_blobs_read;
    all.total_blob_bytes_read += part.total_blob_bytes_read;
    all.num_blobs_relocated += part.num_blobs_relocated;
    all.total_blob_bytes_relocated += part.total_blob_bytes_relocated;
    all.num_input_corrupt_records += part.num_input_corrupt_records;
}
