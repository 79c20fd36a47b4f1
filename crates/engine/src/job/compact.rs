//! The compaction job: from the tables of a plan to the tables that replace them.
//!
//! A plan that only moves or drops files changes the MANIFEST alone. Otherwise the inputs are merged, the
//! stream drops what no snapshot needs, and the outputs take the inputs' place in one edit. A large plan is
//! cut into key ranges that run side by side. Every input is read to its end and its status looked at; the
//! number of entries read is compared with what the files' properties say before anything is installed.

use super::cutter::Cutter;
use super::output::{OutputSpec, Outputs, codec_for, discard};
use crate::core::Core;
use crate::family::{Family, View};
use crate::observe::Ticker;
use crate::read::source::{LevelCursor, Source};
use crate::tree::Change;
use esker_files::table::ReadContext;
use esker_format::{FileNo, Level, Seq};
use esker_lsm::compaction_filter::{CompactionFilter, FilterContext};
use esker_lsm::compaction_stream::{CompactionStream, StreamCounters, StreamOptions};
use esker_lsm::edit::TreeEdit;
use esker_lsm::file::FileMeta;
use esker_lsm::merging::MergingCursor;
use esker_lsm::plan::{Anchor, BelowOutput, Plan, Ticket, subcompaction_boundaries};
use esker_lsm::score::targets;
use esker_lsm::tombstone::{ClippedTombstones, CompactionTombstones, DropRules};
use esker_lsm::version::{LevelFiles, Version};
use esker_status::{Error, Result};
use esker_sync::{Arc, Mutex, Rank};

/// A plan that was registered as running.
#[derive(Debug)]
pub(crate) struct CompactionTask {
    pub(crate) family: Arc<Family>,
    pub(crate) plan: Plan,
    pub(crate) ticket: Ticket,
}

/// What one key range of a compaction made.
#[derive(Default)]
struct Part {
    files: Vec<Arc<FileMeta>>,
    counters: StreamCounters,
}

/// Carries out a plan and installs its result.
pub(crate) fn run(core: &Arc<Core>, task: &CompactionTask) -> Result<()> {
    run_plan(core, &task.family, &task.plan)
}

/// Carries out a plan and installs its result. The plan is registered as running.
pub(crate) fn run_plan(core: &Arc<Core>, family: &Arc<Family>, plan: &Plan) -> Result<()> {
    let started = core.env.clock.now_us();
    let tree = match plan.edit_without_job() {
        Some(tree) => tree,
        None => rewrite(core, family, plan)?,
    };
    let outputs: Vec<FileNo> = tree.added.iter().map(|(_, f)| f.number).collect();
    let written: u64 = tree.added.iter().map(|(_, f)| f.size).sum();
    let moved = plan.edit_without_job().is_some();
    install(core, family, tree)?;
    let took = core.env.clock.now_us() - started;
    core.info_log.info(format_args!(
        "[{}] compacted {:?} {} files of level {} into {} files of level {}{}, {} -> {written} bytes, in {took} us",
        family.name,
        plan.reason,
        plan.files().count(),
        plan.start_level(),
        outputs.len(),
        plan.output_level,
        if moved { " (moved)" } else { "" },
        plan.input_bytes(),
    ));
    if !moved {
        family
            .traffic
            .compacted(plan.output_level, plan.input_bytes(), written, took);
        if let Some(s) = &core.statistics {
            s.add(Ticker::CompactReadBytes, plan.input_bytes());
            s.add(Ticker::CompactWriteBytes, written);
        }
    }
    core.admission.reassess();
    core.purge();
    Ok(())
}

fn install(core: &Core, family: &Arc<Family>, tree: TreeEdit) -> Result<()> {
    core.store.install(
        &core.families,
        family,
        Change {
            tree,
            log_number: None,
        },
        |view, version| View {
            mem: Arc::clone(&view.mem),
            immutable: view.immutable.clone(),
            version,
            number: 0,
        },
    )
}

/// Merges the inputs into new files; returns the edit that replaces the ones by the others.
fn rewrite(core: &Arc<Core>, family: &Arc<Family>, plan: &Plan) -> Result<TreeEdit> {
    let version = Arc::clone(&family.view_guard().version);
    let job = Arc::new(Rewrite {
        core: Arc::clone(core),
        family: Arc::clone(family),
        plan: plan.clone(),
        version,
    });
    let cuts = job.boundaries()?;
    let parts = if cuts.is_empty() {
        vec![job.part(None, None)]
    } else {
        side_by_side(&job, cuts)
    };
    let mut tree = plan.input_deletions();
    tree.cursors.extend(plan.cursor.clone());
    let mut read = 0;
    let mut failure = None;
    for part in parts {
        match part {
            Ok(p) => {
                read += p.counters.num_itered;
                tree.added
                    .extend(p.files.into_iter().map(|f| (plan.output_level, f)));
            }
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    let checked = failure
        .map_or(Ok(()), Err)
        .and_then(|()| job.check_count(read));
    if let Err(e) = checked {
        let written: Vec<_> = tree.added.iter().map(|(_, f)| f.number).collect();
        discard(core, &written);
        return Err(e);
    }
    Ok(tree)
}

/// Runs the ranges between `cuts` on threads of their own; results in key order.
fn side_by_side(job: &Arc<Rewrite>, cuts: Vec<Vec<u8>>) -> Vec<Result<Part>> {
    let mut edges: Vec<Option<Vec<u8>>> = vec![None];
    edges.extend(cuts.into_iter().map(Some));
    edges.push(None);
    let results: Arc<Mutex<Vec<Option<Result<Part>>>>> = Arc::new(Mutex::new(
        Rank::LEAF,
        (1..edges.len()).map(|_| None).collect(),
    ));
    let mut threads = Vec::new();
    for (i, pair) in edges.windows(2).enumerate().skip(1) {
        let (own, results, low, high) = (
            Arc::clone(job),
            Arc::clone(&results),
            pair[0].clone(),
            pair[1].clone(),
        );
        let body = Box::new(move || {
            let done = own.part(low.as_deref(), high.as_deref());
            results.lock()[i] = Some(done);
        });
        match job.core.env.executor.spawn("esker-subcompact", body) {
            Ok(t) => threads.push(t),
            Err(e) => job
                .core
                .info_log
                .warn(format_args!("a sub-compaction thread could not start: {e}")),
        }
    }
    let first = job.part(None, edges[1].as_deref());
    results.lock()[0] = Some(first);
    threads.into_iter().for_each(|t| t.join());
    let mut results = std::mem::take(&mut *results.lock());
    for (i, pair) in edges.windows(2).enumerate() {
        if results[i].is_none() {
            results[i] = Some(job.part(pair[0].as_deref(), pair[1].as_deref()));
        }
    }
    results.into_iter().flatten().collect()
}

/// Everything a range of the compaction needs.
struct Rewrite {
    core: Arc<Core>,
    family: Arc<Family>,
    plan: Plan,
    version: Arc<Version>,
}

impl Rewrite {
    fn context(&self) -> ReadContext {
        ReadContext::compaction(self.core.options.load().compaction_readahead_size)
    }

    /// Where the plan is cut into parts; empty when it runs as one.
    fn boundaries(&self) -> Result<Vec<Vec<u8>>> {
        let most = self.core.options.load().max_subcompactions as usize;
        let wide = self.plan.start_level() == Level::L0 || self.plan.manual;
        if most < 2 || !wide || self.plan.output_level == Level::L0 {
            return Ok(Vec::new());
        }
        let mut anchors = Vec::new();
        for (level, file) in self.plan.files() {
            let table = self.core.tables.get(file, level, &self.family.reading)?;
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
            self.plan.max_output_file_size,
        ))
    }

    /// The inputs as one merged cursor with their range tombstones.
    fn inputs(&self, snapshots: &[Seq]) -> Result<(MergingCursor<Source>, CompactionTombstones)> {
        let ctx = self.context();
        let mut runs = Vec::new();
        let mut deletions = Vec::new();
        for inputs in &self.plan.inputs {
            for file in &inputs.files {
                let table = self
                    .core
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
                    runs.push(Source::Table(Box::new(table.reader.cursor(&ctx))));
                }
            }
            if inputs.level != Level::L0 {
                let files = LevelFiles::new(&self.family.order, inputs.files.clone());
                runs.push(Source::Level(Box::new(LevelCursor::over(
                    Arc::clone(&self.core),
                    Arc::clone(&self.family),
                    Arc::new(files),
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

    /// Compacts the user keys of `[low, high)`.
    fn part(&self, low: Option<&[u8]>, high: Option<&[u8]>) -> Result<Part> {
        let snapshots = self.core.snapshots.sequences();
        let (input, mut tombstones) = self.inputs(&snapshots)?;
        tombstones.restrict(low, high);
        let mut below_keys = BelowOutput::new(Arc::clone(&self.version), &self.plan);
        let mut below_ranges = BelowOutput::new(Arc::clone(&self.version), &self.plan);
        let mut options = self.stream_options(snapshots);
        options.key_not_exists_beyond = Some(Box::new(move |user| {
            below_keys.key_not_exists_beyond_output_level(user)
        }));
        let core = Arc::clone(&self.core);
        options.cancelled = Some(Box::new(move || core.wake.is_closing()));
        let mut stream = CompactionStream::new(input, tombstones, options)?;
        match low {
            Some(user) => stream.seek(user),
            None => stream.seek_to_first(),
        }
        let mut exists =
            |a: &[u8], b: &[u8]| below_ranges.range_not_exists_beyond_output_level(a, b);
        let mut rules = DropRules {
            bottommost: self.plan.bottommost,
            range_not_exists_beyond: Some(&mut exists),
        };
        let cutter = Cutter::new(
            self.family.order.clone(),
            self.plan.max_output_file_size,
            self.plan.max_compaction_bytes,
            self.plan.grandparents.clone(),
        );
        let mut outputs = Outputs::new(&self.core, &self.family, self.spec(), cutter);
        let core = &self.core;
        let done = outputs.write_all(&mut stream, high, &mut rules, |bytes| {
            core.limiter.request(bytes, &core.wake)
        });
        if let Err(e) = done {
            discard(&self.core, &outputs.abandon());
            return Err(e);
        }
        let counters = *stream.counters();
        Ok(Part {
            files: outputs.finish()?,
            counters,
        })
    }

    fn spec(&self) -> OutputSpec {
        let options = self.family.options.load();
        let base = targets(&self.version, &options.to_policy()).base_level;
        let (codec, codec_options) =
            codec_for(&options, self.plan.output_level, base, self.plan.bottommost);
        OutputSpec {
            level: self.plan.output_level,
            codec,
            codec_options,
            oldest_ancestor_time: self.plan.oldest_ancestor_time(),
            epoch: self.plan.output_epoch(),
            target_file_size: self.plan.max_output_file_size,
            paranoid: options.paranoid_file_checks,
        }
    }

    fn stream_options(&self, snapshots: Vec<Seq>) -> StreamOptions<'static> {
        let family = self.family.options.load();
        let mut options = StreamOptions::new(self.family.order.clone());
        options.snapshots = snapshots;
        options.bottommost = self.plan.bottommost;
        options.level = self.plan.output_level;
        options.merge_operator = family.merge_operator.clone();
        options.resolver = self.core.blobs.resolver(self.family.id);
        options.enforce_single_del_contracts =
            self.core.options.load().enforce_single_del_contracts;
        options.must_count_input_entries = self.core.options.load().compaction_verify_record_count;
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
        if !self.core.options.load().compaction_verify_record_count {
            return Ok(());
        }
        let mut expected = 0;
        for (level, file) in self.plan.files() {
            let table = self.core.tables.get(file, level, &self.family.reading)?;
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
