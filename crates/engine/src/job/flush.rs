//! The flush job: from full memtables to one level-0 table.
//!
//! It takes every immutable memtable of a family that no other flush has taken, merges them as a
//! compaction would, and installs the table together with the log number from which on the family
//! still needs the log. The memtables leave the view in the same moment as the table enters it.
//! Flushes of a family may overlap, and are installed in the order in which they began
//! ([`super::flush_ticket`]).
//!
//! One at a time, with nothing else in flight: with `atomic_flush` a flush of all families, whose
//! memtables were switched together and whose tables enter the MANIFEST in one group; and what
//! recovery and resuming after an error flush.

use super::Step;
use super::blobs::{self, BlobGroupNumber, BlobSpec, BlobWriter};
use super::events::flush_reason;
use super::flush_logs::{release_logs, spare_logs};
use super::flush_ticket::{FlushInput, FlushTask, FlushTicket};
use super::lifetime;
use super::output::{
    OutputSpec, Outputs, Placement, codec_for, compression_for, discard, discard_uncommitted,
    paths_of,
};
use super::statistics::{self, CpuTime, JobGuard};
use super::subcompaction::Part;
use crate::core::{Core, Services, Trees};
use crate::family::backpressure::drain::Progress;
use crate::family::{CompactionStats, Family, View};
use crate::health::ErrorSource;
use crate::memtable::{MemCursor, MemTable};
use crate::observe::{FlushReason, TableFileReason};
use crate::store::Change;
use crate::tree::blobs::BlobReadOptions;
use crate::write::spare_log::SpareLog;
use esker_files::table::{StageClock, StageTimes};
use esker_format::{FamilyId, FileNo, Level};
use esker_lsm::compaction_filter::{CompactionFilter, FilterContext};
use esker_lsm::compaction_stream::{CompactionStream, StreamCounters, StreamOptions};
use esker_lsm::cutter::Cutter;
use esker_lsm::edit::TreeEdit;
use esker_lsm::file::FileMeta;
use esker_lsm::merging::MergingCursor;
use esker_lsm::tombstone::{ClippedTombstones, CompactionTombstones};
use esker_lsm::version::{BlobFile, Version};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::Arc;
use esker_sync::atomic::Ordering;
use std::path::PathBuf;

/// This many tables of a flush of all families are synced while others are written.
const UNSEALED: usize = 16;

/// One flush: of one family, or of several that reach their tables together.
struct FlushJob<'p> {
    core: Arc<Core>,
    flushes: Vec<FamilyFlush>,
    /// Families without memtables to flush that need the log from this number on once the rest is
    /// in tables.
    others: Vec<(Arc<Family>, FileNo)>,
    /// The log that its families need at the latest once this is in tables, though one may turn out
    /// empty and could do with less: logs before it were synced, those behind it were not. With
    /// `atomic_flush` it is the same for all families: none is ahead of what a power cut leaves of
    /// the logs.
    limit: Option<FileNo>,
    /// The log of the next switch.
    spares: Vec<SpareLog>,
    /// Until its tables are listed.
    running: Option<JobGuard>,
    /// Where it stands among the flushes of its families, unless no other can run.
    ticket: Option<&'p mut FlushTicket>,
}

/// One family's part in a flush.
struct FamilyFlush {
    family: Arc<Family>,
    /// Newest first.
    mems: Vec<Arc<MemTable>>,
    /// `None` once its files are complete.
    part: Option<Part<MergingCursor<MemCursor>>>,
    /// All of it is written, and is being synced.
    is_written: bool,
    /// Tables that were written.
    files: Vec<Arc<FileMeta>>,
    /// Blob files that were written.
    blobs: Vec<BlobFile>,
    /// How far it is, until the view shows it.
    progress: Option<Arc<Progress>>,
    counters: StreamCounters,
    stages: StageTimes,
    started_us: u64,
    cpu: CpuTime,
    job: u64,
}

/// Carries out a flush that is registered as running, and takes note of its failure.
pub(crate) fn run_in_line(core: &Arc<Core>, task: FlushTask) -> Result<()> {
    let FlushTask {
        families,
        mut ticket,
    } = task;
    // All families have to be looked at in one moment.
    let families = if core.writes.limits.atomic_flush {
        waiting(core, &[])
    } else {
        families
    };
    let done = FlushJob::new(core, families, Some(&mut ticket)).and_then(FlushJob::run);
    if let Err(e) = &done {
        // Before another flush can begin, which would be of the same memtables.
        super::note_failure(&core.background, ErrorSource::Flush, e);
    }
    done
}

/// Flushes what waits in `families`, which are all there are, and takes note that none of them
/// needs a log before `log_number`: all at once, so that a crash leaves all of it to do again or
/// nothing. There are no writers meanwhile, and no other flush runs.
pub(crate) fn run_all(
    core: &Arc<Core>,
    families: &[Arc<Family>],
    log_number: FileNo,
) -> Result<()> {
    write_all(core, families.to_vec())?.install(log_number)
}

/// Writes tables of what waits in `families`, which are all there are. Nothing names the tables
/// before they are installed.
pub(crate) fn write_all(core: &Arc<Core>, families: Vec<Arc<Family>>) -> Result<RecoveredTables> {
    let job = FlushJob::new(core, waiting(core, &families), None)?;
    let mut recovered = RecoveredTables {
        job,
        families,
        is_over: false,
    };
    recovered.job.write()?;
    Ok(recovered)
}

/// Tables of all that waited in memtables, synced and not installed yet. Without that they are
/// removed.
pub(crate) struct RecoveredTables {
    job: FlushJob<'static>,
    families: Vec<Arc<Family>>,
    /// The MANIFEST may name the tables.
    is_over: bool,
}

impl RecoveredTables {
    /// Makes the tables part of the trees, and takes note that no family needs a log before
    /// `log_number`.
    pub(crate) fn install(mut self, log_number: FileNo) -> Result<()> {
        let job = &self.job;
        let idle = |f: &&Arc<Family>| !job.flushes.iter().any(|j| Arc::ptr_eq(&j.family, f));
        let behind = |f: &&Arc<Family>| f.persisted_log.load(Ordering::Relaxed) < log_number.0;
        let others = self.families.iter().filter(idle).filter(behind);
        self.job.others = others.map(|f| (Arc::clone(f), log_number)).collect();
        self.is_over = true;
        self.job.commit()
    }
}

impl Drop for RecoveredTables {
    fn drop(&mut self) {
        if !self.is_over {
            self.job.abandon();
        }
    }
}

/// The families with the memtables that wait in each. Those of several families are of one moment:
/// memtables that were switched together are all here or none of them. With `atomic_flush` that is
/// every family: one that had nothing when `families` were chosen may have been switched together
/// with one of them since.
fn waiting(core: &Core, families: &[Arc<Family>]) -> Vec<FlushInput> {
    let atomic = core.writes.limits.atomic_flush;
    let _log = (atomic || families.len() > 1).then(|| core.writes.lock());
    let families = if atomic {
        core.trees.families.all()
    } else {
        families.to_vec()
    };
    let waiting = families.into_iter().map(|f| {
        let mems = f.view().immutable.clone();
        (f, mems)
    });
    waiting
        .filter(|(f, mems)| !f.is_dropped() && !mems.is_empty())
        .collect()
}

impl<'p> FlushJob<'p> {
    /// A flush of `families`, each with the memtables that it takes, newest first.
    fn new(
        core: &Arc<Core>,
        families: Vec<FlushInput>,
        ticket: Option<&'p mut FlushTicket>,
    ) -> Result<Self> {
        let running = JobGuard::flush(&core.trees.numbers);
        let way = FlushMode {
            is_waited_for: ticket.as_ref().is_some_and(|t| t.is_callers()),
            has_several: families.len() > 1 || ticket.is_none(),
        };
        let mut flushes = Vec::with_capacity(families.len());
        for (family, mems) in families {
            let job = core.services.next_job();
            core.services.flush_begins(&family, job, &mems);
            let progress = Progress::of_flush(&family);
            flushes.push(FamilyFlush {
                part: Some(part(core, &family, &mems, job, &progress, way)?),
                is_written: false,
                progress: Some(progress),
                family,
                mems,
                files: Vec::new(),
                blobs: Vec::new(),
                counters: StreamCounters::default(),
                stages: StageTimes::default(),
                started_us: core.services.env.clock.now_us(),
                cpu: CpuTime::new(Arc::clone(&core.services.env.clock)),
                job,
            });
        }
        Ok(FlushJob {
            core: Arc::clone(core),
            flushes,
            spares: spare_logs(core),
            others: Vec::new(),
            limit: None,
            running: Some(running),
            ticket,
        })
    }

    fn run(mut self) -> Result<()> {
        while self.step()? == Step::More {}
        Ok(())
    }

    /// Writes all of it and makes it survive power loss, without installing it.
    fn write(&mut self) -> Result<()> {
        let core = Arc::clone(&self.core);
        for at in 0..self.flushes.len() {
            let flush = &mut self.flushes[at];
            while !flush.is_written {
                flush.step(&core)?;
            }
            // There may be a thousand families, and each open table has a file and buffers.
            if let Some(before) = at.checked_sub(UNSEALED) {
                self.flushes[before].seal()?;
            }
        }
        self.complete().map(|_| ())
    }

    /// Writes a little more; the last step installs the tables.
    fn step(&mut self) -> Result<Step> {
        if self.flushes.is_empty() {
            return Ok(Step::Done);
        }
        if let Some(flush) = self.flushes.iter_mut().find(|f| !f.is_written) {
            let stepped = flush.step(&self.core);
            return match stepped {
                Ok(()) => Ok(Step::More),
                Err(e) => {
                    self.abandon();
                    Err(e)
                }
            };
        }
        match self.complete() {
            Ok(true) => self.commit()?,
            Ok(false) => {
                self.abandon();
                self.core.services.info_log.info(format_args!(
                    "a flush is begun anew: the one before it was not installed"
                ));
            }
            Err(e) => {
                self.abandon();
                return Err(e);
            }
        }
        Ok(Step::Done)
    }

    /// Sees to it that the tables survive power loss, and waits until they may be installed; false
    /// when they never may.
    fn complete(&mut self) -> Result<bool> {
        if let Some(ticket) = &mut self.ticket {
            ticket.written();
        }
        self.flushes.iter_mut().try_for_each(FamilyFlush::seal)?;
        self.hand_over_spares();
        self.sync_logs_before()?;
        Ok(self
            .ticket
            .as_ref()
            .is_none_or(|ticket| ticket.wait_for_turn()))
    }

    /// Gives the next logs to the writers, now that their names survive power loss.
    fn hand_over_spares(&mut self) {
        let (core, spares) = (&self.core, std::mem::take(&mut self.spares));
        if spares.is_empty() {
            return;
        }
        let dir = core.writes.lock().dir().to_path_buf();
        let synced = self.flushes.iter().any(|flush| {
            let paths = &flush.family.reading.paths;
            flush.files.iter().any(|f| *paths.dir(f.path_id) == *dir)
        });
        if !synced && let Err(e) = core.services.env.fs.sync_dir(&dir) {
            core.services
                .info_log
                .warn(format_args!("the next log is not made ahead: {e}"));
            return;
        }
        let unused: Vec<_> = {
            let mut log = core.writes.lock();
            let refused = spares.into_iter().map(|spare| log.take_spare(spare));
            refused.collect()
        };
        drop(unused);
    }

    /// Syncs the logs before those that the families will need. When one family of several is
    /// flushed, the others may have written before what it wrote last, and only the log has it:
    /// without this a power cut could leave a state with later writes of the one and without
    /// earlier ones of the others. A flush of all that waits in any of them leaves nothing that
    /// only these logs have: after one of them broke it alone reaches the MANIFEST.
    fn sync_logs_before(&mut self) -> Result<()> {
        let core = &self.core;
        let is_of_all = self.ticket.is_none();
        if is_of_all || core.trees.families.len() < 2 || seeded(Bug::FlushAheadOfLog) {
            return Ok(());
        }
        let next = self.flushes.iter().map(|f| next_log(&f.family, &f.mems));
        if core.writes.limits.atomic_flush {
            // All that was written before is in tables now, of families that wrote nothing too:
            // recovery has no use for the logs before, which may not survive whole. A log that
            // another family needs is needed by all, or a family with tables would seem to be ahead
            // of what is lost with it. That is asked after what these need: meanwhile memtables may
            // be switched.
            if self.others.is_empty() {
                let families = core.trees.families.all();
                let next = next.min();
                self.limit = next.min(self.oldest_log_of_others(&families)).or(next);
                self.others = self.families_without_data(families);
            }
            return Ok(());
        }
        let Some(next) = next.max() else {
            return Ok(());
        };
        self.limit = Some(next);
        let logs = core.writes.lock().unsure_before(next);
        logs.iter().try_for_each(|log| log.sync()).inspect_err(|e| {
            core.writes.lock().fail(e);
            core.services.health.report(ErrorSource::Wal, e);
        })
    }

    /// The oldest log with data of families that this does not flush.
    fn oldest_log_of_others(&self, families: &[Arc<Family>]) -> Option<FileNo> {
        let is_own = |f: &Arc<Family>| self.flushes.iter().any(|own| Arc::ptr_eq(&own.family, f));
        let others = families.iter().filter(|f| !is_own(f));
        others.filter_map(|f| f.view_guard().oldest_log()).min()
    }

    /// The families that this does not flush and that have nothing to flush, with the log that they
    /// need from now on.
    fn families_without_data(&self, mut families: Vec<Arc<Family>>) -> Vec<(Arc<Family>, FileNo)> {
        families.retain(|f| {
            !f.is_dropped() && !self.flushes.iter().any(|own| Arc::ptr_eq(&own.family, f))
        });
        let with_log = families.into_iter().filter_map(|f| {
            let view = f.view_guard();
            let is_clean = view.immutable.is_empty();
            let log = is_clean.then(|| f.first_log(&view.mem))?;
            drop(view);
            let log = self.limit.map_or(log, |all| log.min(all));
            (f.persisted_log.load(Ordering::Relaxed) < log.0).then_some((f, log))
        });
        with_log.collect()
    }

    /// Removes what was written; no MANIFEST can name it.
    fn abandon(&mut self) {
        for flush in &mut self.flushes {
            if let Some(part) = flush.part.take() {
                part.abandon();
            }
            discard(&self.core.services, &flush.written());
        }
    }

    fn commit(&mut self) -> Result<()> {
        let core = &self.core;
        let now_us = core.services.env.clock.now_us();
        // What was flushed for reads or a merge says nothing about writers.
        let is_by_writers = |f: &&FamilyFlush| {
            let by_others = [FlushReason::AutoCompaction, FlushReason::ManualCompaction];
            let reasons = f.mems.iter().map(|m| m.sealed_for());
            reasons
                .into_iter()
                .any(|r| r.is_none_or(|r| !by_others.contains(&r)))
        };
        let by_writers = self.flushes.iter().filter(is_by_writers);
        by_writers.for_each(|f| f.family.note_flush(now_us));
        match self.flushes.as_mut_slice() {
            [] if self.others.is_empty() => return Ok(()),
            [one] if self.others.is_empty() => {
                install(&core.trees, one, self.limit)
                    .inspect_err(|e| discard_uncommitted(&core.services, e, &one.written()))?;
                one.announce(core);
            }
            several => {
                let live = install_together(&core.trees, several, &self.others, self.limit)?;
                for flush in several.iter_mut().filter(|f| live.contains(&f.family.id)) {
                    flush.announce(core);
                }
            }
        }
        release_logs(core);
        // A thread that waited for this flush alone goes on now.
        self.running = None;
        if let Some(ticket) = &mut self.ticket {
            ticket.installed();
        }
        super::check_space(&core.background);
        Ok(())
    }
}

impl FamilyFlush {
    /// Where its files are.
    fn written(&self) -> Vec<PathBuf> {
        let mut paths = paths_of(&self.family, &self.files);
        paths.extend(blobs::paths_of(&self.family, &self.blobs));
        paths
    }

    /// Writes a little more.
    fn step(&mut self, core: &Core) -> Result<()> {
        let Some(part) = &mut self.part else {
            return Ok(());
        };
        let start = self.cpu.start();
        let done = part.write_step();
        self.cpu.stop(start);
        if done? == Step::Done {
            let expected: u64 = self.mems.iter().map(|m| m.points()).sum();
            check_count(&core.services, part.counters().num_itered, expected)?;
            self.is_written = true;
            if let Some(progress) = &self.progress {
                let taken = self.mems.iter().map(|m| m.data_bytes()).sum();
                progress.written(taken, core.services.env.clock.now_us() - self.started_us);
            }
        }
        Ok(())
    }

    /// Waits until what was written survives power loss.
    fn seal(&mut self) -> Result<()> {
        let Some(mut part) = self.part.take() else {
            return Ok(());
        };
        let start = self.cpu.start();
        let sealed = part.seal();
        self.cpu.stop(start);
        if let Err(e) = sealed {
            part.abandon();
            return Err(e);
        }
        let written = part.finish()?;
        (self.files, self.blobs) = (written.files, written.blobs);
        self.counters = written.counters;
        self.stages = written.stages;
        self.cpu.add_ns(written.cpu_ns);
        Ok(())
    }

    /// Returns the change that adds the tables to the family's tree. The family then needs the logs
    /// from `limit` on at the latest, unless it needed fewer before.
    fn change(&self, limit: Option<FileNo>) -> Change {
        let files = self.files.iter().cloned();
        let next = next_log(&self.family, &self.mems);
        let before = FileNo(self.family.persisted_log.load(Ordering::Relaxed));
        let next = limit.map_or(next, |limit| next.min(limit.max(before)));
        Change {
            to: None,
            tree: TreeEdit {
                added: files.map(|f| (Level::L0, f)).collect(),
                blobs: self.blobs.clone(),
                ..TreeEdit::default()
            },
            log_number: Some(if seeded(Bug::EditLogNumber) {
                FileNo(next.0 + 1)
            } else {
                next
            }),
        }
    }

    /// The view without the memtables that are in tables now, but for those that stay as history.
    fn flushed_view(&self, view: &View, version: Arc<Version>) -> View {
        let immutable: Vec<Arc<MemTable>> = view
            .immutable
            .iter()
            .filter(|m| !self.mems.iter().any(|f| Arc::ptr_eq(f, m)))
            .cloned()
            .collect();
        // What recovery filled says nothing about when it begins, so no check could use it.
        let flushed = self.mems.iter().chain(&view.history).cloned();
        let flushed = flushed.take_while(|m| m.begins_after().is_some()).collect();
        let limit = self.family.history_limit();
        View {
            mem: Arc::clone(&view.mem),
            history: View::trimmed_history(&view.mem, &immutable, flushed, limit),
            immutable,
            version,
            limit: view.limit,
            history_from: None,
            number: 0,
            id: Default::default(),
            newest_in_tables: Default::default(),
            parked: Default::default(),
        }
    }

    /// Reports and counts that it is done. First to the writers that wait for it.
    fn announce(&mut self, core: &Core) {
        // The view says now what it took away.
        self.progress = None;
        let family = &self.family;
        core.writes.buffers.freed();
        core.writes.admission.refresh(family);
        let bytes: u64 = self.files.iter().map(|f| f.size).sum();
        let (count, took_us) = (
            self.files.len(),
            core.services.env.clock.now_us() - self.started_us,
        );
        core.services.info_log.info(format_args!(
            "[{}] flushed {} memtables to {count} files, {bytes} bytes, in {took_us} us",
            family.name,
            self.mems.len(),
        ));
        let work = CompactionStats {
            bytes_written: bytes,
            bytes_written_blob: self.blobs.iter().map(|b| b.total_bytes).sum(),
            bytes_written_raw: self.files.iter().map(|f| f.raw_bytes()).sum(),
            micros: took_us,
            cpu_micros: self.cpu.us(),
            jobs: 1,
            bytes_in: self.counters.total_input_raw_key_bytes
                + self.counters.total_input_raw_value_bytes,
            entries_in: self.counters.num_itered,
            entries_out: self.counters.num_output_records,
            stages: self.stages,
            ..CompactionStats::default()
        };
        statistics::flushed(&core.services, family, &self.mems, &work);
        core.trees.flush_ended(
            &core.writes.admission,
            family,
            self.job,
            &self.mems,
            (&self.files[..], &self.blobs[..]),
            took_us,
        );
    }
}

/// How a flush is carried out.
#[derive(Clone, Copy)]
struct FlushMode {
    /// By the caller, who waits for it.
    is_waited_for: bool,
    /// Other families may be written while a table is synced.
    has_several: bool,
}

/// The merged memtables (newest first) on their way into one table; none when nothing is left to
/// store.
fn part(
    core: &Arc<Core>,
    family: &Arc<Family>,
    mems: &[Arc<MemTable>],
    job: u64,
    progress: &Arc<Progress>,
    way: FlushMode,
) -> Result<Part<MergingCursor<MemCursor>>> {
    let options = family.options.load();
    let snapshots = core.reads.snapshots.sequences();
    let cursors: Vec<MemCursor> = mems.iter().map(|m| m.cursor()).collect();
    let mut deletions = Vec::new();
    for mem in mems {
        deletions.extend(mem.tombstones()?.map(ClippedTombstones::whole));
    }
    let tombstones = CompactionTombstones::new(&deletions, &family.order, &snapshots)?;
    let mut stream_options = StreamOptions::new(family.order.clone());
    stream_options.snapshots = snapshots;
    stream_options.full_history_ts_low = family.full_history_ts_low();
    stream_options.merge_operator = options.merge_operator.clone();
    let version = Arc::clone(&family.view_guard().version);
    let (blobs, how) = (&core.trees.blobs, BlobReadOptions::JOB);
    stream_options.resolver = blobs.resolver(family.id, &family.reading, &version, how, 0);
    stream_options.enforce_single_del_contracts =
        core.services.options.load().enforce_single_del_contracts;
    stream_options.filter = flush_filter(family);
    let input = MergingCursor::new(cursors, family.order.clone());
    let mut stream = CompactionStream::new(input, tombstones, stream_options)?;
    stream.seek_to_first();
    let placement = Placement::flush(&options);
    let (codec, codec_options) = codec_for(&options, placement);
    let spec = OutputSpec {
        level: Level::L0,
        lifetime: lifetime::expected(
            &core.services.options.load(),
            options.compaction_style,
            placement,
        ),
        path_id: 0,
        codec,
        codec_options,
        compression_threads: compression_for(&options, placement).1.parallel_threads,
        oldest_ancestor_time: 0,
        newest_key_time: 0,
        temperature: options.default_write_temperature.number(),
        epoch: 0,
        target_file_size: 0,
        paranoid: options.checks_new_tables(),
        skip_filter: false,
        job,
        stages: if way.is_waited_for {
            StageClock::without_turns(&core.services.env)
        } else {
            StageClock::new(&core.services.env)
        },
        syncs_last_ahead: way.has_several,
        reason: match flush_reason(mems) {
            FlushReason::Recovery => TableFileReason::Recovery,
            _ => TableFileReason::Flush,
        },
    };
    let cutter = Cutter::never(family.order.clone());
    let blobs = options.enable_blob_files.then(|| {
        let blobs = BlobSpec::new(&options, Level::L0, BlobGroupNumber::default());
        let blobs = blobs.by(job, spec.reason, spec.lifetime);
        BlobWriter::new(Arc::clone(&core.trees), Arc::clone(family), blobs)
    });
    let outputs =
        Outputs::new(Arc::clone(&core.trees), Arc::clone(family), spec, cutter).separating(blobs);
    Ok(Part::new(
        Arc::clone(&core.background),
        stream,
        outputs,
        Arc::clone(progress),
    ))
}

fn check_count(services: &Services, counted: u64, expected: u64) -> Result<()> {
    if counted != expected && services.options.load().flush_verify_memtable_count {
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
fn install(trees: &Trees, flush: &FamilyFlush, limit: Option<FileNo>) -> Result<()> {
    trees.store.install(
        &trees.families,
        &flush.family,
        flush.change(limit),
        |view, version| flush.flushed_view(view, version),
    )
}

/// Commits the tables of several families in one group of the MANIFEST; returns whose were
/// committed. Families that were dropped meanwhile are left out.
fn install_together(
    trees: &Trees,
    flushes: &[FamilyFlush],
    others: &[(Arc<Family>, FileNo)],
    limit: Option<FileNo>,
) -> Result<Vec<FamilyId>> {
    let mut live = Vec::new();
    let installed = trees.store.install_together(
        &trees.families,
        || {
            live.extend(flushes.iter().filter(|f| !f.family.is_dropped()));
            let changes = live.iter();
            let changes = changes.map(|f| (Arc::clone(&f.family), f.change(limit)));
            let others = others.iter().filter(|(f, _)| !f.is_dropped());
            let others = others.map(|(family, log)| {
                let change = Change {
                    log_number: Some(*log),
                    ..Change::default()
                };
                (Arc::clone(family), change)
            });
            Ok(changes.chain(others).collect())
        },
        |family, view, version| match flushes.iter().find(|f| Arc::ptr_eq(&f.family, family)) {
            Some(flush) => flush.flushed_view(view, version),
            None => view.with_version(version),
        },
    );
    let discarded: Vec<&FamilyFlush> = match &installed {
        Err(not) if not.is_certain => flushes.iter().collect(),
        Err(_) => Vec::new(),
        Ok(()) => {
            let is_live = |f: &FamilyFlush| live.iter().any(|l| Arc::ptr_eq(&l.family, &f.family));
            flushes.iter().filter(|f| !is_live(f)).collect()
        }
    };
    for flush in discarded {
        discard(&trees.services, &flush.written());
    }
    installed?;
    Ok(live.iter().map(|f| f.family.id).collect())
}

/// The log from which on the family needs the log, once `flushed`, newest first, and all before it
/// is in tables.
fn next_log(family: &Family, flushed: &[Arc<MemTable>]) -> FileNo {
    let newest = flushed.first().map_or(0, |m| m.id());
    let view = family.view_guard();
    view.immutable
        .iter()
        .rev()
        .find(|m| m.id() > newest)
        .map_or_else(|| family.first_log(&view.mem), |m| m.log_number())
}
