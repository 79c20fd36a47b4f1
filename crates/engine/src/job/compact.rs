//! The compaction job: from the tables of a plan to the tables that replace them.
//!
//! A plan that only moves or drops files changes the MANIFEST alone. Otherwise the inputs are
//! merged, the stream drops what no snapshot needs, and the outputs take the inputs' place in one
//! edit. A large plan is cut into key ranges that run side by side. Every input is read to its end
//! and its status looked at; the number of entries read is compared with what the files' properties
//! say before anything is installed.

use super::blobs::BlobGroupNumber;
use super::clip::ClippedCursor;
use super::events::{CompactionResult, figures};
use super::merge_yield::{MergeYield, may_yield};
use super::output::{Placement, codec_for, discard, discard_uncommitted, paths_of};
pub(crate) use super::rewrite::CompactionOverrides;
use super::rewrite::{Rewrite, discard_parts, partitions, side_by_side};
use super::room::{delete_after, note_obsolete};
use super::statistics::{self, CpuTime, JobGuard};
use super::subcompaction::{Part, PartOutput};
use super::{Step, blobs};
use crate::core::{Core, Trees};
use crate::family::backpressure::drain::{InputsOnDisk, Progress};
use crate::family::{CompactionStats, Family};
use crate::observe::{CompactionInfo, HistogramId, Ticker};
use crate::options::{CompactionStyle, CompressionType};
use crate::read::source::Source;
use crate::store::{Change, is_overtaken};
use esker_codec::compress::{Codec, codecs_of_property};
use esker_files::table::StageTimes;
use esker_format::Level;
use esker_format::blob_refs::BlobRefs;
use esker_lsm::compaction_stream::StreamCounters;
use esker_lsm::edit::TreeEdit;
use esker_lsm::merging::MergingCursor;
use esker_lsm::pick::manual::forbid_move;
use esker_lsm::plan::{Plan, PlanKind, Ticket};
use esker_status::seeded::{Bug, seeded};
use esker_status::{ErrorKind, Result};
use esker_sync::Arc;
use std::collections::VecDeque;

/// A plan that was registered as running.
#[derive(Debug)]
pub(crate) struct CompactionTask {
    pub(crate) family: Arc<Family>,
    pub(crate) plan: Plan,
    pub(crate) ticket: Ticket,
}

/// A compaction as a machine of steps.
pub(crate) struct CompactionJob {
    rewrite: Arc<Rewrite>,
    /// Ranges that are still to be written, in key order; steps go to the first.
    parts: VecDeque<Part<ClippedCursor<MergingCursor<Source>>>>,
    /// Outputs of finished ranges, in key order.
    written: Vec<PartOutput>,
    /// Ranges that were told to begin.
    begun: usize,
    started_us: u64,
    cpu: CpuTime,
    /// It gives its slot away between steps.
    yields: Option<MergeYield>,
    /// Result, set by the last step.
    did: CompactionResult,
    _running: JobGuard,
}

/// Carries out a plan that has a slot, which is registered as running, and installs its result.
pub(crate) fn run_plan(core: &Arc<Core>, family: &Arc<Family>, plan: Plan) -> Result<()> {
    let overrides = CompactionOverrides {
        has_slot: true,
        ..CompactionOverrides::default()
    };
    run_tuned(core, family, plan, overrides).map(drop)
}

/// Carries out a plan, and deletes what it has read where the family has a bound on its space:
/// until then the next plan has to count what this one wrote.
pub(crate) fn run_tuned(
    core: &Arc<Core>,
    family: &Arc<Family>,
    plan: Plan,
    overrides: CompactionOverrides,
) -> Result<CompactionInfo> {
    let reader = core.trees.obsolete_files.job_begins([family.id]);
    let is_bounded = family.is_space_bounded();
    let on_disk = is_bounded.then(|| InputsOnDisk::of(&family.drain));
    let done = run_as_told(core, family, &plan, overrides);
    // The plan holds the tables.
    drop(plan);
    if family.is_space_bounded() {
        delete_after(core, std::slice::from_ref(family), (reader, on_disk));
    }
    done
}

/// Carries out a plan as `overrides` says, and installs its result. Returns what the compaction
/// did.
fn run_as_told(
    core: &Arc<Core>,
    family: &Arc<Family>,
    plan: &Plan,
    overrides: CompactionOverrides,
) -> Result<CompactionInfo> {
    let started_us = core.services.env.clock.now_us();
    let number = core.services.next_job();
    let mut rewritten = None;
    if plan.kind == PlanKind::TrivialMove
        && (crosses_partition(family, plan) || changes_codec(core, family, plan)?)
    {
        forbid_move(rewritten.insert(plan.clone()));
    }
    let plan = rewritten.as_ref().unwrap_or(plan);
    let space = core.services.options.load().sst_file_manager.clone();
    let _room = match &space {
        Some(space) if plan.kind != PlanKind::TrivialMove => {
            Some(space.reserve(plan.input_bytes())?)
        }
        _ => None,
    };
    core.trees.compaction_begins(family, number, plan);
    let run = || -> Result<CompactionInfo> {
        let mut job = CompactionJob::new(core, family, plan, number, overrides)?;
        while job.step()? == Step::More {}
        let done = core.trees.compaction_done(family, number, plan, &job.did);
        super::check_space(&core.background);
        Ok(done)
    };
    run().inspect_err(|e| {
        let did = CompactionResult {
            elapsed_us: core.services.env.clock.now_us() - started_us,
            error: Some(e.clone()),
            ..CompactionResult::default()
        };
        core.trees.compaction_ended(family, number, plan, &did);
    })
}

/// Returns whether the application wants a file that `plan` moves to be cut.
fn crosses_partition(family: &Family, plan: &Plan) -> bool {
    partitions(family, plan).is_some_and(|mut rule| {
        plan.files()
            .any(|(_, f)| !rule.can_move(f.smallest.user(), f.largest.user()))
    })
}

/// Returns whether files that `plan` moves would be compressed otherwise where they go. Universal
/// trees move what overlaps nothing in any case: that is what `allow_trivial_move` asks for.
fn changes_codec(core: &Arc<Core>, family: &Arc<Family>, plan: &Plan) -> Result<bool> {
    let options = family.options.load();
    let one_for_all = options.bottommost_compression == CompressionType::Disable
        && options.compression_per_level.is_empty();
    if one_for_all || options.compaction_style != CompactionStyle::Level {
        return Ok(false);
    }
    let version = Arc::clone(&family.view_guard().version);
    let (codec, _) = codec_for(&options, Placement::of(plan, &options, &version));
    for (level, file) in plan.files() {
        let table = core.trees.tables.get(file, level, &family.reading)?;
        let has = codecs_of_property(&table.reader.properties().compression_name);
        let same = has.is_some_and(|has| match codec {
            // Newer formats name the codecs that were of use.
            Codec::None => has.iter().all(|c| *c == codec),
            _ => has == [codec],
        });
        if !same {
            return Ok(true);
        }
    }
    Ok(false)
}

impl CompactionJob {
    /// Cuts the plan into ranges. Several ranges run side by side, here and now, where there is
    /// more than one processor; otherwise they are steps like any other.
    pub(crate) fn new(
        core: &Arc<Core>,
        family: &Arc<Family>,
        plan: &Plan,
        number: u64,
        overrides: CompactionOverrides,
    ) -> Result<Self> {
        let version = Arc::clone(&family.view_guard().version);
        let rewrite = Arc::new(Rewrite {
            core: Arc::clone(core),
            family: Arc::clone(family),
            plan: plan.clone(),
            version,
            job: number,
            overrides,
            progress: Progress::of_compaction(family, plan, core.services.env.clock.now_us()),
            blob_group: BlobGroupNumber::default(),
        });
        let mut job = CompactionJob {
            rewrite: Arc::clone(&rewrite),
            parts: VecDeque::new(),
            written: Vec::new(),
            begun: 0,
            started_us: core.services.env.clock.now_us(),
            cpu: CpuTime::new(Arc::clone(&core.services.env.clock)),
            yields: (rewrite.overrides.has_slot && may_yield(plan)).then(|| MergeYield::of(plan)),
            did: CompactionResult::default(),
            _running: JobGuard::compaction(&core.trees.numbers, family, plan),
        };
        if plan.edit_without_job().is_some() {
            return Ok(job);
        }
        let mut edges: Vec<Option<Vec<u8>>> = vec![None];
        edges.extend(rewrite.boundaries()?.into_iter().map(Some));
        edges.push(None);
        if let Some(s) = &core.services.statistics {
            let parts = edges.len() as u64 - 1;
            s.record(HistogramId::NumSubcompactionsScheduled, parts);
        }
        if edges.len() > 2 && core.services.env.executor.parallelism() > 1 {
            job.written = side_by_side(&rewrite, &edges)?;
            let threads = job.written.iter().map(|w| w.cpu_ns).sum();
            job.cpu.add_ns(threads);
        } else {
            let start = job.cpu.start();
            for pair in edges.windows(2) {
                job.parts
                    .push_back(rewrite.part(pair[0].as_deref(), pair[1].as_deref())?);
            }
            job.cpu.stop(start);
        }
        Ok(job)
    }

    /// Writes a little more; the last step installs the result.
    pub(crate) fn step(&mut self) -> Result<Step> {
        if let Some(part) = self.parts.front_mut() {
            let index = self.written.len();
            if self.begun == index {
                self.begun += 1;
                self.rewrite
                    .core
                    .services
                    .part_begins(&self.rewrite.told(index));
            }
            if let Some(yields) = &mut self.yields {
                yields.yield_slot(&self.rewrite.core.background);
            }
            let start = self.cpu.start();
            let stepped = part.step();
            self.cpu.stop(start);
            match stepped {
                Ok(Step::More) => return Ok(Step::More),
                Ok(Step::Done) => {
                    if let Some(done) = self.parts.pop_front() {
                        let told = self.rewrite.told(index);
                        let done = done.finish();
                        let counted = done.as_ref().map(|w| &w.counters);
                        self.rewrite.core.services.part_ended(&told, counted);
                        let done = done.inspect_err(|_| self.abandon())?;
                        self.cpu.add_ns(done.cpu_ns);
                        self.written.push(done);
                    }
                }
                Err(e) => {
                    let told = self.rewrite.told(index);
                    self.rewrite.core.services.part_ended(&told, Err(&e));
                    if let Some(s) = &self.rewrite.core.services.statistics
                        && e.kind() == ErrorKind::ShutdownInProgress
                    {
                        s.add(Ticker::CompactionCancelled, 1);
                    }
                    self.abandon();
                    return Err(e);
                }
            }
            if !self.parts.is_empty() {
                return Ok(Step::More);
            }
        }
        let read = self.written.iter().map(|w| w.counters.num_itered).sum();
        if !self.written.is_empty()
            && let Err(e) = self.rewrite.check_count(read)
        {
            self.abandon();
            return Err(e);
        }
        self.commit()?;
        Ok(Step::Done)
    }

    fn abandon(&mut self) {
        self.parts.drain(..).for_each(Part::abandon);
        discard_parts(&self.rewrite, &self.written);
        self.written.clear();
    }

    fn commit(&mut self) -> Result<()> {
        let Rewrite {
            core, family, plan, ..
        } = &*self.rewrite;
        let mut counters = StreamCounters::default();
        let mut stages = StageTimes::default();
        for part in &self.written {
            statistics::add(&mut counters, &part.counters);
            stages = stages.combine(&part.stages, u64::wrapping_add);
        }
        let mut did = CompactionResult {
            input_entries: counters.num_itered,
            output_entries: counters.num_output_records,
            parts: self.written.len(),
            figures: figures(&counters, self.cpu.us()),
            ..CompactionResult::default()
        };
        let mut garbage = BlobRefs::default();
        let (mut tree, moved) = match plan.edit_without_job() {
            Some(tree) => (tree, true),
            None => {
                let mut tree = plan.input_deletions();
                tree.cursors.extend(plan.cursor.clone());
                for part in self.written.drain(..) {
                    garbage.add_all(&part.garbage);
                    tree.blobs.extend(part.blobs);
                    let files = part.files.into_iter();
                    tree.added.extend(files.map(|f| (plan.output_level, f)));
                }
                (tree, false)
            }
        };
        if plan.kind == PlanKind::Delete {
            garbage = blobs::refs_of(&core.trees, family, plan.files());
        }
        blobs::add_garbage(&mut tree, &garbage);
        if seeded(Bug::BlobGarbageTwice) {
            blobs::add_garbage(&mut tree, &garbage);
        }
        let (count, bytes) = (
            tree.added.len(),
            tree.added.iter().map(|(_, f)| f.size).sum::<u64>(),
        );
        let raw = tree.added.iter().map(|(_, f)| f.raw_bytes()).sum();
        did.output_files = tree.added.iter().map(|(_, f)| Arc::clone(f)).collect();
        did.blob_files = tree.blobs.clone();
        let mut made = paths_of(family, &did.output_files);
        made.extend(blobs::paths_of(family, &tree.blobs));
        did.blob_garbage = garbage;
        if seeded(Bug::InputsGoneFirst) && !moved {
            let inputs: Vec<_> = plan.files().map(|(_, f)| Arc::clone(f)).collect();
            discard(&core.services, &paths_of(family, &inputs));
        }
        did.output_bytes = bytes;
        let to = (plan.kind != PlanKind::Delete).then_some(plan.output_level);
        install(&core.trees, family, tree, to).inspect_err(|e| {
            if is_overtaken(e) {
                core.services.note_overtaken(&family.name, e);
            }
            // What only moved is an input.
            if !moved {
                discard_uncommitted(&core.services, e, &made);
            }
        })?;
        let took_us = core.services.env.clock.now_us() - self.started_us;
        core.services.info_log.info(format_args!(
            "[{}] compacted {:?} {} files of level {} into {count} files of level {}{}, {} -> {bytes} bytes, in {took_us} us",
            family.name,
            plan.reason,
            plan.files().count(),
            plan.start_level(),
            plan.output_level,
            if moved { " (moved)" } else { "" },
            plan.input_bytes(),
        ));
        if let Some(yields) = self.yields.as_ref().filter(|y| y.count > 0) {
            core.services.info_log.info(format_args!(
                "[{}] of that it gave its slot away {} times, for {} us",
                family.name, yields.count, yields.us,
            ));
        }
        if moved {
            statistics::moved(family, plan, bytes);
        } else {
            let work = CompactionStats {
                bytes_written: bytes,
                bytes_written_raw: raw,
                bytes_written_blob: did.blob_bytes(),
                micros: took_us,
                cpu_micros: self.cpu.us(),
                stages,
                ..CompactionStats::default()
            };
            statistics::compacted(&core.services, family, plan, work, &counters);
        }
        if family.is_space_bounded() {
            // The inputs take space until they are deleted: from now on as obsolete files, and no
            // longer as what the job may write.
            note_obsolete(core, family);
            self.rewrite.progress.ends_writing();
        }
        core.writes.admission.refresh(family);
        did.elapsed_us = took_us;
        core.trees
            .compaction_ended(family, self.rewrite.job, plan, &did);
        self.did = did;
        Ok(())
    }
}

/// Commits a change of a tree. Tables that leave their level go to `to`; `None` when they go
/// nowhere.
pub(super) fn install(
    trees: &Trees,
    family: &Arc<Family>,
    tree: TreeEdit,
    to: Option<Level>,
) -> Result<()> {
    let change = Change {
        tree,
        to,
        log_number: None,
    };
    trees
        .store
        .install(&trees.families, family, change, |view, version| {
            view.with_version(version)
        })
}
