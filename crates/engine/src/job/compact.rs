//! The compaction job: from the tables of a plan to the tables that replace them.
//!
//! A plan that only moves or drops files changes the MANIFEST alone. Otherwise the inputs are
//! merged, the stream drops what no snapshot needs, and the outputs take the inputs' place in one
//! edit. A large plan is cut into key ranges that run side by side. Every input is read to its end
//! and its status looked at; the number of entries read is compared with what the files' properties
//! say before anything is installed.

use super::Step;
use super::clip::ClippedCursor;
use super::events::{CompactionResult, SubcompactionEvent, figures, output_compression};
use super::lifetime;
use super::merge_yield::{MergeYield, may_yield};
use super::output::{
    OutputSpec, Outputs, Placement, codec_for, compression_for, discard, discard_uncommitted,
    paths_of, temperature_for,
};
use super::read_ahead;
use super::statistics::{self, CpuTime, JobGuard};
use super::subcompaction::{Part, PartOutput};
use super::thread_class::ThreadClass;
use crate::core::{Core, Trees};
use crate::family::backpressure::drain::Progress;
use crate::family::{CompactionStats, Family};
use crate::observe::{CompactionInfo, HistogramId, TableFileReason, Ticker};
use crate::options::partitioner::partitioner;
use crate::options::{CompactionStyle, CompressionType, PartitionContext, SstPartitioner};
use crate::read::source::{LevelCursor, RunFiles, Source};
use crate::store::{Change, is_overtaken};
use esker_codec::compress::{Codec, codecs_of_property};
use esker_files::table::{ReadContext, StageClock, StageTimes};
use esker_format::{Level, Seq};
use esker_lsm::compaction_filter::{CompactionFilter, FilterContext};
use esker_lsm::compaction_stream::{CompactionStream, StreamCounters, StreamOptions};
use esker_lsm::cutter::Cutter;
use esker_lsm::edit::TreeEdit;
use esker_lsm::merging::MergingCursor;
use esker_lsm::pick::manual::forbid_move;
use esker_lsm::plan::{
    Anchor, CompactionReason, LowerLevels, Plan, PlanKind, Ticket, subcompaction_boundaries,
};
use esker_lsm::tombstone::{ClippedTombstones, CompactionTombstones};
use esker_lsm::version::{LevelFiles, Version};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::AtomicBool;
use esker_sync::{Arc, Mutex, Rank};
use std::collections::VecDeque;

/// Most parts of a merge that reads have paid for, unless `max_subcompactions` allows more.
const READ_PARTS_MOST: usize = 4;
/// Least bytes of such a part.
const READ_PART_LEAST: u64 = 2 << 20;

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

/// Settings of one compaction in place of those that the family's options give.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompactionOverrides {
    pub(crate) codec: Option<Codec>,
    pub(crate) temperature: u8,
    /// The epoch number of what it writes, where inputs have none.
    pub(crate) epoch: Option<u64>,
    /// Makes the compaction give up when it is set.
    pub(crate) canceled: Option<Arc<AtomicBool>>,
    /// It has one of the slots of `max_background_jobs`.
    pub(crate) has_slot: bool,
}

/// Carries out a plan that has a slot, which is registered as running, and installs its result.
pub(crate) fn run_plan(core: &Arc<Core>, family: &Arc<Family>, plan: &Plan) -> Result<()> {
    let overrides = CompactionOverrides {
        has_slot: true,
        ..CompactionOverrides::default()
    };
    run_tuned(core, family, plan, overrides).map(drop)
}

/// Carries out a plan as `overrides` says, and installs its result. Returns what the compaction
/// did.
pub(crate) fn run_tuned(
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

/// The application's rule about what shares a table, for what `plan` writes. Level 0 has one table
/// for each merge.
fn partitions(family: &Family, plan: &Plan) -> Option<Box<dyn SstPartitioner>> {
    if plan.output_level == Level::L0 {
        return None;
    }
    let context = PartitionContext {
        is_manual_compaction: plan.manual,
        output_level: plan.output_level.0,
    };
    let options = family.options.load();
    partitioner(options.sst_partitioner_factory.as_ref(), context)
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
                        let done = done?;
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
        let files = self.written.drain(..).flat_map(|w| w.files);
        let files: Vec<_> = files.collect();
        discard(
            &self.rewrite.core.services,
            &paths_of(&self.rewrite.family, &files),
        );
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
        let (tree, moved) = match plan.edit_without_job() {
            Some(tree) => (tree, true),
            None => {
                let mut tree = plan.input_deletions();
                tree.cursors.extend(plan.cursor.clone());
                let files = self.written.drain(..).flat_map(|w| w.files);
                tree.added.extend(files.map(|f| (plan.output_level, f)));
                (tree, false)
            }
        };
        let (count, bytes) = (
            tree.added.len(),
            tree.added.iter().map(|(_, f)| f.size).sum::<u64>(),
        );
        let raw = tree.added.iter().map(|(_, f)| f.raw_bytes()).sum();
        did.output_files = tree.added.iter().map(|(_, f)| Arc::clone(f)).collect();
        let made = did.output_files.clone();
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
                discard_uncommitted(&core.services, e, &paths_of(family, &made));
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
                micros: took_us,
                cpu_micros: self.cpu.us(),
                stages,
                ..CompactionStats::default()
            };
            statistics::compacted(&core.services, family, plan, work, &counters);
        }
        core.writes.admission.refresh(family);
        did.elapsed_us = took_us;
        core.trees
            .compaction_ended(family, self.rewrite.job, plan, &did);
        if family.is_space_bounded() {
            // What waits for its deletion takes space as well.
            core.trees.delete_obsolete_files();
        }
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

/// Runs the ranges between `edges` on threads of their own; results in key order. After a failure
/// nothing that the ranges wrote stays.
fn side_by_side(job: &Arc<Rewrite>, edges: &[Option<Vec<u8>>]) -> Result<Vec<PartOutput>> {
    let ranges = edges.len() - 1;
    let results: Arc<Mutex<Vec<Option<Result<PartOutput>>>>> =
        Arc::new(Mutex::new(Rank::LEAF, (0..ranges).map(|_| None).collect()));
    let class = ThreadClass::of_plan(&job.family, &job.plan);
    let mut threads = Vec::new();
    for (i, pair) in edges.windows(2).enumerate().skip(1) {
        let (own, results) = (Arc::clone(job), Arc::clone(&results));
        let (low, high) = (pair[0].clone(), pair[1].clone());
        let body = Box::new(move || {
            let done = own.run_part(i, low.as_deref(), high.as_deref());
            results.lock()[i] = Some(done);
        });
        match class.spawn(&*job.core.services.env.executor, "esker-subcompact", body) {
            Ok(t) => threads.push(t),
            Err(e) => job
                .core
                .services
                .info_log
                .warn(format_args!("a sub-compaction thread could not start: {e}")),
        }
    }
    let first = job.run_part(0, None, edges[1].as_deref());
    results.lock()[0] = Some(first);
    threads.into_iter().for_each(|t| t.join());
    let mut results = std::mem::take(&mut *results.lock());
    let mut written = Vec::with_capacity(ranges);
    let mut failure = None;
    for (i, (pair, result)) in edges.windows(2).zip(&mut results).enumerate() {
        // A range whose thread did not start, or died, is written here.
        let done = match result.take() {
            Some(done) => done,
            None => job.run_part(i, pair[0].as_deref(), pair[1].as_deref()),
        };
        match done {
            Ok(w) => written.push(w),
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    match failure {
        None => Ok(written),
        Some(e) => {
            let files: Vec<_> = written.into_iter().flat_map(|w| w.files).collect();
            discard(&job.core.services, &paths_of(&job.family, &files));
            Err(e)
        }
    }
}

/// Everything a range of the compaction needs.
struct Rewrite {
    core: Arc<Core>,
    family: Arc<Family>,
    plan: Plan,
    version: Arc<Version>,
    job: u64,
    overrides: CompactionOverrides,
    progress: Arc<Progress>,
}

impl Rewrite {
    fn context(&self, stages: &Arc<StageClock>) -> ReadContext {
        let options = self.core.services.options.load();
        let budget = self.core.budget.as_ref().map(|part| part.budget.total());
        let size = read_ahead::size(&options, budget, self.plan.runs());
        ReadContext {
            stages: Some(Arc::clone(stages)),
            ..ReadContext::compaction(size)
        }
    }

    /// A range for listeners.
    fn told(&self, part: usize) -> SubcompactionEvent<'_> {
        SubcompactionEvent {
            family: &self.family,
            plan: &self.plan,
            job: self.job,
            part,
            compression: output_compression(&self.family, &self.plan),
        }
    }

    /// Writes a range from beginning to end.
    fn run_part(
        &self,
        index: usize,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<PartOutput> {
        let told = self.told(index);
        self.core.services.part_begins(&told);
        let mut cpu = CpuTime::new(Arc::clone(&self.core.services.env.clock));
        let start = cpu.start();
        let mut done = self.part(low, high).and_then(Part::run);
        cpu.stop(start);
        if let Ok(written) = &mut done {
            written.cpu_ns += cpu.ns();
        }
        self.core
            .services
            .part_ended(&told, done.as_ref().map(|w| &w.counters));
        done
    }

    /// Most parts of a merge that reads have paid for. They pay until it ends, and one thread among
    /// many readers has a small share of the processors.
    fn read_parts(&self) -> usize {
        let asked = self.core.services.options.load().max_subcompactions as usize;
        let processors = self.core.services.env.executor.parallelism();
        asked.max(processors.min(READ_PARTS_MOST))
    }

    /// Where the plan is cut into parts; empty when it runs as one.
    fn boundaries(&self) -> Result<Vec<Vec<u8>>> {
        let for_reads = self.plan.reason == CompactionReason::ReadTriggered;
        let most = match self.plan.max_subcompactions {
            0 if for_reads => self.read_parts(),
            0 => self.core.services.options.load().max_subcompactions as usize,
            asked => asked as usize,
        };
        let least = match for_reads {
            true => self.plan.max_output_file_size.min(READ_PART_LEAST),
            false => self.plan.max_output_file_size,
        };
        let style = self.family.options.load().compaction_style;
        let wide = self.plan.start_level() == Level::L0
            || self.plan.manual
            || for_reads
            || style == CompactionStyle::Universal;
        if most < 2 || !wide || self.plan.output_level == Level::L0 {
            return Ok(Vec::new());
        }
        let mut anchors = Vec::new();
        for (level, file) in self.plan.files() {
            let table = self
                .core
                .trees
                .tables
                .get(file, level, &self.family.reading)?;
            for a in table.reader.anchors(&ReadContext::default(), 128)? {
                anchors.push(Anchor {
                    user_key: a.user_key,
                    bytes: a.range_size,
                });
            }
        }
        Ok(subcompaction_boundaries(
            &self.family.order,
            anchors,
            most,
            least,
        ))
    }

    /// The inputs as one merged cursor with their range tombstones.
    fn inputs(
        &self,
        snapshots: &[Seq],
        stages: &Arc<StageClock>,
    ) -> Result<(MergingCursor<Source>, CompactionTombstones)> {
        let ctx = self.context(stages);
        let mut runs = Vec::new();
        let mut deletions = Vec::new();
        for inputs in &self.plan.inputs {
            for file in &inputs.files {
                let table = self
                    .core
                    .trees
                    .tables
                    .get(file, inputs.level, &self.family.reading)?;
                if let Some(t) = table.tombstones()? {
                    deletions.push(ClippedTombstones::of_file(
                        Arc::clone(t),
                        &file.smallest,
                        &file.largest,
                    ));
                }
                if inputs.level == Level::L0 {
                    let reading = &self.family.reading;
                    let cursor = self
                        .core
                        .trees
                        .tables
                        .job_cursor(&table, &ctx, file, reading)?;
                    runs.push(Source::Table(Box::new(cursor)));
                }
            }
            if inputs.level != Level::L0 {
                let files = LevelFiles::new(&self.family.order, inputs.files.clone());
                let access = self.family.table_access(&self.core.trees.tables);
                runs.push(Source::Level(Box::new(LevelCursor::over(
                    Arc::clone(access),
                    RunFiles::Level(Arc::new(files)),
                    inputs.level,
                    ctx.clone(),
                ))));
            }
        }
        let tombstones = CompactionTombstones::new(&deletions, &self.family.order, snapshots)?;
        Ok((
            MergingCursor::new(runs, self.family.order.clone()),
            tombstones,
        ))
    }

    /// The part that writes the user keys of `[low, high)`.
    fn part(
        &self,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<Part<ClippedCursor<MergingCursor<Source>>>> {
        let env = &self.core.services.env;
        // Reads have paid for the merge: giving way to them would only have them pay for longer.
        let stages = if self.plan.reason == CompactionReason::ReadTriggered {
            StageClock::without_turns(env)
        } else {
            StageClock::new(env)
        };
        stages.resume();
        let mut snapshots = self.core.reads.snapshots.sequences();
        if seeded(Bug::NewestSnapshotForgotten) {
            snapshots.pop();
        }
        let (input, mut tombstones) = self.inputs(&snapshots, &stages)?;
        let input = ClippedCursor::new(input, self.family.order.clone(), high);
        tombstones.restrict(low, high);
        let below = || LowerLevels::new(Arc::clone(&self.version), &self.plan);
        let mut keys_below = below();
        let mut options = self.stream_options(snapshots);
        options.key_not_exists_beyond = Some(Box::new(move |user| {
            keys_below.key_not_exists_beyond_output_level(user)
        }));
        let mut stream = CompactionStream::new(input, tombstones, options)?;
        match low {
            Some(user) => stream.seek(user),
            None => stream.seek_to_first(),
        }
        let cutter = Cutter::of(self.family.order.clone(), &self.plan);
        let outputs = Outputs::new(
            Arc::clone(&self.core.trees),
            Arc::clone(&self.family),
            self.spec(&stages),
            cutter,
        )
        .partitioned(partitions(&self.family, &self.plan));
        stages.pause();
        let background = Arc::clone(&self.core.background);
        let part = Part::new(background, stream, outputs, Arc::clone(&self.progress));
        let part = part.canceled_by(self.overrides.canceled.clone());
        Ok(part.dropping(self.plan.bottommost, below()))
    }

    fn spec(&self, stages: &Arc<StageClock>) -> OutputSpec {
        let options = self.family.options.load();
        let placement = Placement::of(&self.plan, &options, &self.version);
        let (codec, codec_options) = codec_for(&options, placement);
        OutputSpec {
            level: self.plan.output_level,
            lifetime: lifetime::expected(
                &self.core.services.options.load(),
                options.compaction_style,
                placement,
            ),
            path_id: self.plan.output_path,
            codec: self.overrides.codec.unwrap_or(codec),
            codec_options,
            compression_threads: compression_for(&options, placement).1.parallel_threads,
            temperature: match self.overrides.temperature {
                0 => temperature_for(&self.plan, &options),
                asked => asked,
            },
            oldest_ancestor_time: self.plan.oldest_ancestor_time(),
            newest_key_time: self.plan.newest_time(),
            epoch: self.overrides.epoch.unwrap_or(self.plan.output_epoch()),
            target_file_size: self.plan.max_output_file_size,
            paranoid: options.checks_new_tables(),
            skip_filter: self.plan.bottommost && options.optimize_filters_for_hits,
            syncs_last_ahead: false,
            job: self.job,
            reason: TableFileReason::Compaction,
            stages: Arc::clone(stages),
        }
    }

    fn stream_options(&self, snapshots: Vec<Seq>) -> StreamOptions<'static> {
        let family = self.family.options.load();
        let mut options = StreamOptions::new(self.family.order.clone());
        options.snapshots = snapshots;
        options.full_history_ts_low = self.family.full_history_ts_low();
        options.bottommost = self.plan.bottommost;
        options.level = self.plan.output_level;
        options.merge_operator = family.merge_operator.clone();
        options.resolver =
            (self.core.trees.blobs).resolver(self.family.id, &self.family.reading.paths);
        options.enforce_single_del_contracts = self
            .core
            .services
            .options
            .load()
            .enforce_single_del_contracts;
        options.must_count_input_entries = self
            .core
            .services
            .options
            .load()
            .compaction_verify_record_count;
        options.filter = self.filter();
        options
    }

    fn filter(&self) -> Option<Arc<dyn CompactionFilter>> {
        let options = self.family.options.load();
        if let Some(f) = &options.compaction_filter {
            return Some(Arc::clone(f));
        }
        let all = self.plan.files().count() == self.version.files().count();
        options
            .compaction_filter_factory
            .as_ref()?
            .create(&FilterContext {
                family: self.family.id.0,
                is_full_compaction: all,
                is_manual_compaction: self.plan.manual,
                is_flush: false,
                output_level: self.plan.output_level.0,
            })
    }

    /// A file that gave fewer or more entries than it counts is damaged: nothing is installed then.
    fn check_count(&self, read: u64) -> Result<()> {
        if !self
            .core
            .services
            .options
            .load()
            .compaction_verify_record_count
        {
            return Ok(());
        }
        let mut expected = 0;
        for (level, file) in self.plan.files() {
            let table = self
                .core
                .trees
                .tables
                .get(file, level, &self.family.reading)?;
            let p = table.reader.properties();
            // Older writers leave the count out or count otherwise.
            if p.num_entries == 0 || p.format_version < 5 {
                return Ok(());
            }
            expected += p.num_entries - p.num_range_deletions;
        }
        if read == expected {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "a compaction read {read} entries of files that hold {expected}"
        ))
        .with_hint("run `esker check` on the database; its files were left as they are"))
    }
}
