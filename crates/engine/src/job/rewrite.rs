//! The key ranges of a compaction, their inputs and their run: side by side on threads of their
//! own, or one after the other as steps of the job.
//!
//! Read-only once it is made; shared by the threads of a job.

use super::blobs::{BlobGcOverride, BlobGroupNumber, BlobSpec, BlobWriter};
use super::clip::ClippedCursor;
use super::events::{SubcompactionEvent, output_compression};
use super::lifetime;
use super::output::{
    OutputSpec, Outputs, Placement, codec_for, compression_for, discard, temperature_for,
};
use super::read_ahead;
use super::statistics::CpuTime;
use super::subcompaction::{Part, PartOutput};
use super::thread_class::ThreadClass;
use crate::core::Core;
use crate::family::Family;
use crate::family::backpressure::drain::Progress;
use crate::observe::TableFileReason;
use crate::options::partitioner::partitioner;
use crate::options::{CompactionStyle, PartitionContext, SstPartitioner};
use crate::read::source::{LevelCursor, RunFiles, Source};
use crate::tree::blobs::BlobReadOptions;
use esker_codec::compress::Codec;
use esker_env::Lifetime;
use esker_files::table::{ReadContext, StageClock};
use esker_format::{Level, Seq};
use esker_lsm::compaction_filter::{CompactionFilter, FilterContext};
use esker_lsm::compaction_stream::{CompactionStream, StreamOptions};
use esker_lsm::cutter::Cutter;
use esker_lsm::merging::MergingCursor;
use esker_lsm::plan::{Anchor, CompactionReason, LowerLevels, Plan, subcompaction_boundaries};
use esker_lsm::tombstone::{ClippedTombstones, CompactionTombstones};
use esker_lsm::version::{LevelFiles, Version};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::atomic::AtomicBool;
use esker_sync::{Arc, Mutex, Rank};

/// Most parts of a merge that reads have paid for, unless `max_subcompactions` allows more.
const READ_PARTS_MOST: usize = 4;
/// Least bytes of such a part.
const READ_PART_LEAST: u64 = 2 << 20;

/// Settings of one compaction in place of those that the family's options give.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompactionOverrides {
    pub(crate) codec: Option<Codec>,
    pub(crate) temperature: u8,
    /// The epoch number of what it writes, where inputs have none.
    pub(crate) epoch: Option<u64>,
    /// Makes the compaction give up when it is set.
    pub(crate) canceled: Option<Arc<AtomicBool>>,
    /// Collection of old blob files: whether live values move out of them.
    pub(crate) blob_gc: BlobGcOverride,
    /// It has one of the slots of `max_background_jobs`.
    pub(crate) has_slot: bool,
}

/// The application's rule about what shares a table, for what `plan` writes. Level 0 has one table
/// for each merge.
pub(super) fn partitions(family: &Family, plan: &Plan) -> Option<Box<dyn SstPartitioner>> {
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

/// Runs the ranges between `edges` on threads of their own; results in key order. After a failure
/// nothing that the ranges wrote stays.
pub(super) fn side_by_side(
    job: &Arc<Rewrite>,
    edges: &[Option<Vec<u8>>],
) -> Result<Vec<PartOutput>> {
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
            discard_parts(job, &written);
            Err(e)
        }
    }
}

/// Removes what ranges wrote that no MANIFEST can name.
pub(super) fn discard_parts(job: &Rewrite, written: &[PartOutput]) {
    for part in written {
        discard(&job.core.services, &part.paths(&job.family));
    }
}

/// Everything a range of the compaction needs.
pub(super) struct Rewrite {
    pub(super) core: Arc<Core>,
    pub(super) family: Arc<Family>,
    pub(super) plan: Plan,
    pub(super) version: Arc<Version>,
    pub(super) job: u64,
    pub(super) overrides: CompactionOverrides,
    pub(super) progress: Arc<Progress>,
    /// The group of the medium values that it writes.
    pub(super) blob_group: BlobGroupNumber,
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
    pub(super) fn told(&self, part: usize) -> SubcompactionEvent<'_> {
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
    pub(super) fn boundaries(&self) -> Result<Vec<Vec<u8>>> {
        let for_reads = self.plan.reason == CompactionReason::ReadTriggered;
        let most = match self.plan.max_subcompactions {
            0 if for_reads => self.read_parts(),
            0 => self.core.services.options.load().max_subcompactions as usize,
            asked => asked as usize,
        };
        let mut least = self.plan.max_output_file_size;
        if for_reads {
            least = least.min(READ_PART_LEAST);
        }
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
    pub(super) fn part(
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
        .partitioned(partitions(&self.family, &self.plan))
        .separating(self.blob_writer());
        stages.pause();
        let background = Arc::clone(&self.core.background);
        let part = Part::new(background, stream, outputs, Arc::clone(&self.progress));
        let part = part.canceled_by(self.overrides.canceled.clone());
        Ok(part.dropping(self.plan.bottommost, below()))
    }

    /// Takes large values, and looks at those that are in blob files; `None` where there can be
    /// neither.
    fn blob_writer(&self) -> Option<BlobWriter> {
        let options = self.family.options.load();
        if !options.enable_blob_files && !self.counts_blobs() {
            return None;
        }
        let group = Arc::clone(&self.blob_group);
        let spec = BlobSpec::new(&options, self.plan.output_level, group)
            .regrouping(&self.plan.regrouped.files)
            .collecting(
                &options,
                &self.version,
                self.overrides.blob_gc,
                &self.plan.collected,
            )
            .by(self.job, TableFileReason::Compaction, self.lifetime());
        let (trees, family) = (Arc::clone(&self.core.trees), Arc::clone(&self.family));
        Some(BlobWriter::new(trees, family, spec))
    }

    /// Returns whether an input refers to blob files.
    fn counts_blobs(&self) -> bool {
        let mut files = self.plan.files();
        files.any(|(_, f)| f.oldest_blob_file.is_some())
    }

    /// How long its files are expected to stay.
    fn lifetime(&self) -> Lifetime {
        let options = self.family.options.load();
        let placement = Placement::of(&self.plan, &options, &self.version);
        let db = self.core.services.options.load();
        lifetime::expected(&db, options.compaction_style, placement)
    }

    fn spec(&self, stages: &Arc<StageClock>) -> OutputSpec {
        let options = self.family.options.load();
        let placement = Placement::of(&self.plan, &options, &self.version);
        let (codec, codec_options) = codec_for(&options, placement);
        OutputSpec {
            level: self.plan.output_level,
            lifetime: self.lifetime(),
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
        options.resolver = self.core.trees.blobs.resolver(
            self.family.id,
            &self.family.reading,
            &self.version,
            BlobReadOptions::JOB,
            usize::try_from(family.blob_compaction_readahead_size).unwrap_or(usize::MAX),
        );
        options.counts_blobs = self.counts_blobs();
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
    pub(super) fn check_count(&self, read: u64) -> Result<()> {
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
