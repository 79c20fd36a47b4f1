//! The flush job: from full memtables to one level-0 table.
//!
//! It takes every immutable memtable of a family at once, merges them as a compaction would, and installs
//! the table together with the log number from which on the family still needs the log. The memtables
//! leave the view in the same moment as the table enters it.

use super::Step;
use super::announce::flush_reason;
use super::count::{self, CpuTime, Running};
use super::cutter::Cutter;
use super::output::{OutputSpec, Outputs, codec_for, discard_uncommitted};
use super::part::Part;
use crate::core::Core;
use crate::family::{Family, View, Work};
use crate::memtable::{MemCursor, MemTable};
use crate::observe::{FlushReason, TableFileReason};
use crate::tree::Change;
use esker_format::{FileNo, Level};
use esker_lsm::compaction_filter::{CompactionFilter, FilterContext};
use esker_lsm::compaction_stream::{CompactionStream, StreamOptions};
use esker_lsm::edit::TreeEdit;
use esker_lsm::file::FileMeta;
use esker_lsm::merging::MergingCursor;
use esker_lsm::tombstone::{ClippedTombstones, CompactionTombstones};
use esker_status::{Error, Result};
use esker_sync::Arc;

/// One flush.
pub(crate) struct FlushJob {
    core: Arc<Core>,
    family: Arc<Family>,
    /// Newest first.
    mems: Vec<Arc<MemTable>>,
    /// `None` when there is nothing to flush, and after the last step.
    part: Option<Part<MergingCursor<MemCursor>>>,
    started_us: u64,
    cpu: CpuTime,
    _running: Running,
    job: u64,
}

/// Flushes what waits in `family`, at once.
pub(crate) fn run(core: &Arc<Core>, family: &Arc<Family>) -> Result<()> {
    let mut job = FlushJob::new(core, family)?;
    while job.step()? == Step::More {}
    Ok(())
}

impl FlushJob {
    /// A flush of what waits in `family` now.
    pub(crate) fn new(core: &Arc<Core>, family: &Arc<Family>) -> Result<Self> {
        let running = Running::flush(core);
        let mems = family.view().immutable.clone();
        let job = core.next_job();
        if !mems.is_empty() {
            core.flush_begins(family, job, &mems);
        }
        let part = if mems.is_empty() {
            None
        } else {
            Some(part(core, family, &mems, job)?)
        };
        Ok(FlushJob {
            core: Arc::clone(core),
            family: Arc::clone(family),
            mems,
            part,
            started_us: core.env.clock.now_us(),
            cpu: CpuTime::new(Arc::clone(&core.env.clock)),
            _running: running,
            job,
        })
    }

    /// Writes a little more; the last step installs the table.
    pub(crate) fn step(&mut self) -> Result<Step> {
        let Some(part) = &mut self.part else {
            return Ok(Step::Done);
        };
        let start = self.cpu.start();
        let done = part.step();
        self.cpu.stop(start);
        if matches!(done, Ok(Step::More)) {
            return Ok(Step::More);
        }
        let Some(part) = self.part.take() else {
            return Ok(Step::Done);
        };
        let expected: u64 = self.mems.iter().map(|m| m.points()).sum();
        let counted = part.counters().num_itered;
        if let Err(e) = done.and_then(|_| check_count(&self.core, counted, expected)) {
            part.abandon();
            return Err(e);
        }
        self.commit(part.finish()?.files)?;
        Ok(Step::Done)
    }

    fn commit(&self, files: Vec<Arc<FileMeta>>) -> Result<()> {
        let (core, family) = (&self.core, &self.family);
        let bytes: u64 = files.iter().map(|f| f.size).sum();
        let raw = files.iter().map(|f| f.raw_bytes()).sum();
        let (count, took_us) = (files.len(), core.env.clock.now_us() - self.started_us);
        let installed = files.clone();
        let numbers: Vec<_> = files.iter().map(|f| f.number).collect();
        install(core, family, &self.mems, files)
            .inspect_err(|e| discard_uncommitted(core, e, &numbers))?;
        core.info_log.info(format_args!(
            "[{}] flushed {} memtables to {count} files, {bytes} bytes, in {took_us} us",
            family.name,
            self.mems.len(),
        ));
        let work = Work {
            bytes_written: bytes,
            bytes_written_raw: raw,
            micros: took_us,
            cpu_micros: self.cpu.us(),
            jobs: 1,
            ..Work::default()
        };
        count::flushed(core, family, &self.mems, &work);
        core.writes.buffers.freed();
        core.admission.reassess();
        core.flush_ended(family, self.job, &self.mems, &installed, took_us);
        release_logs(core);
        core.purge();
        Ok(())
    }
}

/// The merged memtables (newest first) on their way into one table; none when nothing is left to store.
fn part(
    core: &Arc<Core>,
    family: &Arc<Family>,
    mems: &[Arc<MemTable>],
    job: u64,
) -> Result<Part<MergingCursor<MemCursor>>> {
    let options = family.options.load();
    let snapshots = core.snapshots.sequences();
    let cursors: Vec<MemCursor> = mems.iter().map(|m| m.cursor()).collect();
    let mut deletions = Vec::new();
    for mem in mems {
        deletions.extend(mem.tombstones()?.map(ClippedTombstones::whole));
    }
    let tombstones = CompactionTombstones::new(&deletions, &family.order, &snapshots)?;
    let mut stream_options = StreamOptions::new(family.order.clone());
    stream_options.snapshots = snapshots;
    stream_options.merge_operator = options.merge_operator.clone();
    stream_options.resolver = core.blobs.resolver(family.id);
    stream_options.enforce_single_del_contracts = core.options.load().enforce_single_del_contracts;
    stream_options.filter = flush_filter(family);
    let input = MergingCursor::new(cursors, family.order.clone());
    let mut stream = CompactionStream::new(input, tombstones, stream_options)?;
    stream.seek_to_first();
    let (codec, codec_options) = codec_for(&options, Level::L0, Level::L0, false);
    let spec = OutputSpec {
        level: Level::L0,
        codec,
        codec_options,
        oldest_ancestor_time: 0,
        epoch: 0,
        target_file_size: 0,
        paranoid: options.checks_new_tables(),
        skip_filter: false,
        job,
        reason: match flush_reason(mems) {
            FlushReason::Recovery => TableFileReason::Recovery,
            _ => TableFileReason::Flush,
        },
    };
    let cutter = Cutter::never(family.order.clone());
    let outputs = Outputs::new(Arc::clone(core), Arc::clone(family), spec, cutter);
    Ok(Part::new(Arc::clone(core), stream, outputs))
}

fn check_count(core: &Core, counted: u64, expected: u64) -> Result<()> {
    if counted != expected && core.options.load().flush_verify_memtable_count {
        return Err(Error::corruption(format!(
            "a flush read {counted} entries of memtables that hold {expected}"
        )));
    }
    Ok(())
}

fn flush_filter(family: &Family) -> Option<Arc<dyn CompactionFilter>> {
    let options = family.options.load();
    let factory = options
        .compaction_filter_factory
        .as_ref()
        .filter(|f| f.should_filter_flush())?;
    factory.create(&FilterContext {
        family: family.id.0,
        is_flush: true,
        ..FilterContext::default()
    })
}

/// Commits the table and takes the memtables out of the view.
fn install(
    core: &Core,
    family: &Arc<Family>,
    mems: &[Arc<MemTable>],
    files: Vec<Arc<FileMeta>>,
) -> Result<()> {
    let kept = |view: &View| -> Vec<Arc<MemTable>> {
        view.immutable
            .iter()
            .filter(|m| !mems.iter().any(|f| Arc::ptr_eq(f, m)))
            .cloned()
            .collect()
    };
    let log_number = next_log(core, family, mems);
    let tree = TreeEdit {
        added: files.into_iter().map(|f| (Level::L0, f)).collect(),
        ..TreeEdit::default()
    };
    let change = Change {
        tree,
        log_number: Some(log_number),
    };
    let limit = family.history_limit();
    core.store
        .install(&core.families, family, change, |view, version| {
            let immutable = kept(view);
            // What recovery filled says nothing about when it begins, so no check could use it.
            let flushed = mems.iter().chain(&view.history).cloned();
            let flushed = flushed.take_while(|m| m.begins_after().is_some()).collect();
            View {
                mem: Arc::clone(&view.mem),
                history: View::trimmed_history(&view.mem, &immutable, flushed, limit),
                immutable,
                version,
                limit: view.limit,
                number: 0,
            }
        })
}

/// The log from which on the family needs the log, once `flushed` is in tables.
fn next_log(_core: &Core, family: &Family, flushed: &[Arc<MemTable>]) -> FileNo {
    let view = family.view_guard();
    view.immutable
        .iter()
        .rev()
        .find(|m| !flushed.iter().any(|f| Arc::ptr_eq(f, m)))
        .unwrap_or(&view.mem)
        .log_number()
}

/// Gives logs that no family needs any more to the garbage.
pub(crate) fn release_logs(core: &Core) {
    let mut log = core.writes.lock();
    let needed = core
        .families
        .all()
        .iter()
        .filter_map(|f| f.view_guard().oldest_log())
        .min();
    let keep = needed.unwrap_or_else(|| log.number());
    let released = log.release_before(keep);
    let dir = log.dir().to_path_buf();
    drop(log);
    for old in released {
        core.garbage
            .retire_file(dir.join(esker_format::file_name::log_name(old.number)));
    }
}
