//! Compaction of a range on demand, run on the caller's thread.
//!
//! The steps and plans come from the pure [`esker_lsm::pick::manual`]; each plan is registered like
//! an automatic one, so the two never take the same file. A plan in the way is waited for.
//!
//! Files that a compaction leaves in a level which they overfill may only have to move. The caller
//! moves them, or waits for the thread that does: so the tree has its shape when the call returns,
//! even if no other thread gets a processor before the database is closed.

use super::compact::{CompactionOverrides, run_plan, run_tuned};
use super::scheduler::{register, release, take_move};
use crate::core::{Background, Core};
use crate::family::Family;
use crate::observe::CompactionInfo;
use crate::options::{CompactFilesOptions, CompactRangeOptions, Temperature};
use crate::runtime::callback::Callback;
use crate::store::Change;
use esker_codec::compress::Codec;
use esker_format::{FileNo, InternalKey, Level};
use esker_lsm::edit::TreeEdit;
use esker_lsm::pick::manual::{self, ManualRange, ManualStep, Step, plan_step, refit_level, steps};
use esker_lsm::plan::{Busy, Plan, Ticket};
use esker_status::{Error, Result, Subcode};
use esker_sync::Arc;
use std::time::Duration;

/// More moves of files, of which there may be thousands, are left to the scheduler.
const MOVES_MAX: usize = 32;

/// Compacts the user keys of `range` in `family`.
pub(crate) fn compact_range(
    core: &Arc<Core>,
    family: &Arc<Family>,
    range: &ManualRange,
    options: &CompactRangeOptions,
) -> Result<()> {
    check_path(family, options.target_path_id)?;
    let policy = family.options.load().to_policy();
    let has_filter = has_filter(family);
    let pause = options
        .exclusive_manual_compaction
        .then(|| Pause::new(&core.background));
    let version = Arc::clone(&family.view_guard().version);
    let todo = steps(
        &version,
        &policy,
        range,
        options.bottommost_level_compaction,
        has_filter,
        core.trees.numbers.peek(),
    );
    drop(version);
    for step in todo {
        let step = ManualStep {
            output_path: options.target_path_id,
            ..step
        };
        run_step(core, family, &step, range, has_filter, options)?;
    }
    if options.change_level {
        return change_level(core, family, options.target_level);
    }
    drop(pause);
    finish_moves(core, family)
}

/// Carries out what automatic compactions the tree needs as long as they only move files.
fn finish_moves(core: &Arc<Core>, family: &Arc<Family>) -> Result<()> {
    let cv = &core.background.cv;
    if Callback::is_inside() {
        // It may be that of the move which would be waited for.
        return Ok(());
    }
    for _ in 0..MOVES_MAX {
        let seen = cv.changes();
        let (taken, is_moving) = {
            let mut jobs = core.background.jobs.lock();
            let taken = take_move(core, &mut jobs, family);
            jobs.manual += usize::from(taken.is_some());
            let busy = jobs.busy.get(&family.id);
            (taken, busy.is_some_and(Busy::moves_files))
        };
        if let Some((plan, ticket)) = taken {
            run_registered(core, family, &plan, ticket)?;
        } else if !is_moving || !cv.wait_past(seen, Duration::from_millis(200)) {
            break;
        }
    }
    Ok(())
}

/// Carries out a plan that was registered as a step of a manual compaction.
fn run_registered(
    core: &Arc<Core>,
    family: &Arc<Family>,
    plan: &Plan,
    ticket: Ticket,
) -> Result<()> {
    let done = run_plan(core, family, plan);
    {
        let mut jobs = core.background.jobs.lock();
        jobs.manual -= 1;
        release(&mut jobs, family, ticket);
    }
    core.background.cv.notify();
    done
}

/// The family must have the path.
fn check_path(family: &Family, path_id: u32) -> Result<()> {
    if path_id as usize >= family.reading.paths.count() {
        return Err(Error::invalid_argument("Invalid target path ID"));
    }
    Ok(())
}

fn has_filter(family: &Family) -> bool {
    let o = family.options.load();
    o.compaction_filter.is_some() || o.compaction_filter_factory.is_some()
}

fn run_step(
    core: &Arc<Core>,
    family: &Arc<Family>,
    step: &ManualStep,
    range: &ManualRange,
    has_filter: bool,
    options: &CompactRangeOptions,
) -> Result<()> {
    let mut from: Option<InternalKey> = None;
    loop {
        let seen = core.background.cv.changes();
        let next = {
            let mut jobs = core.background.jobs.lock();
            if core.background.cv.is_closing() {
                return Err(Error::shutdown());
            }
            core.background.compaction_abort.check()?;
            if jobs.manual_cancelled > 0 {
                return Err(Error::new(
                    esker_status::ErrorKind::Incomplete,
                    "manual compaction was cancelled",
                )
                .with_subcode(Subcode::ManualCompactionPaused));
            }
            let policy = family.options.load().to_policy();
            let version = Arc::clone(&family.view_guard().version);
            let busy = jobs.busy.entry(family.id).or_default();
            match plan_step(&version, &policy, busy, step, range, from.as_ref()) {
                Step::Done => return Ok(()),
                Step::Conflict => None,
                Step::Run { mut plan, next } => {
                    if has_filter {
                        manual::forbid_move(&mut plan);
                    }
                    plan.max_subcompactions = options.max_subcompactions;
                    let ticket = register(&mut jobs, family, &plan);
                    jobs.manual += 1;
                    Some((plan, next, ticket))
                }
            }
        };
        let Some((plan, next, ticket)) = next else {
            core.services.health.check_writable()?;
            core.background
                .cv
                .wait_past(seen, Duration::from_millis(200));
            continue;
        };
        run_registered(core, family, &plan, ticket)?;
        match next {
            Some(key) => from = Some(key),
            None => return Ok(()),
        }
    }
}

/// Compacts the files `chosen` into `output`, with what has to go with them. Returns what it did.
pub(crate) fn compact_files(
    core: &Arc<Core>,
    family: &Arc<Family>,
    chosen: &[FileNo],
    output: Level,
    options: &CompactFilesOptions,
) -> Result<CompactionInfo> {
    check_path(family, options.output_path_id)?;
    let (plan, ticket) = {
        let mut jobs = core.background.jobs.lock();
        if core.background.cv.is_closing() {
            return Err(Error::shutdown());
        }
        core.background.compaction_abort.check()?;
        let policy = family.options.load().to_policy();
        let version = Arc::clone(&family.view_guard().version);
        let busy = jobs.busy.entry(family.id).or_default();
        let mut plan = manual::plan_files(
            &version,
            &policy,
            busy,
            chosen,
            output,
            options.output_path_id,
        )?;
        if !options.allow_trivial_move || has_filter(family) {
            manual::forbid_move(&mut plan);
        }
        plan.max_subcompactions = options.max_subcompactions;
        plan.max_output_file_size = options.output_file_size_limit;
        let ticket = register(&mut jobs, family, &plan);
        jobs.manual += 1;
        (plan, ticket)
    };
    let overrides = CompactionOverrides {
        codec: options
            .compression
            .map(|c| c.codec().unwrap_or(Codec::None)),
        temperature: options
            .output_temperature_override
            .map_or(0, Temperature::number),
        canceled: options.canceled.clone(),
    };
    let done = run_tuned(core, family, &plan, overrides);
    {
        let mut jobs = core.background.jobs.lock();
        jobs.manual -= 1;
        release(&mut jobs, family, ticket);
    }
    core.background.cv.notify();
    done
}

/// Takes tables away that lie wholly inside one of the ranges, without reading them. Those of level
/// 0, and those that a compaction reads, stay.
pub(crate) fn delete_files(
    core: &Arc<Core>,
    family: &Arc<Family>,
    ranges: &[ManualRange],
    include_end: bool,
) -> Result<()> {
    let (tree, ticket) = {
        let mut jobs = core.background.jobs.lock();
        let version = Arc::clone(&family.view_guard().version);
        let busy = jobs.busy.entry(family.id).or_default();
        let mut tree = TreeEdit::default();
        for range in ranges {
            let (begin, end) = (range.begin.as_deref(), range.end.as_deref());
            for level in (1..version.num_levels()).filter_map(|l| u8::try_from(l).ok()) {
                let level = Level(level);
                for file in manual::files_within(&version, level, begin, end, include_end) {
                    let gone = (level, file.number);
                    if !busy.contains(file.number) && !tree.deleted.contains(&gone) {
                        tree.deleted.push(gone);
                    }
                }
            }
        }
        if tree.is_empty() {
            return Ok(());
        }
        let files = tree.deleted.iter().map(|(_, n)| *n).collect();
        (tree, busy.reserve(files, None))
    };
    let change = Change {
        tree,
        log_number: None,
    };
    let done = core
        .trees
        .store
        .install(&core.trees.families, family, change, |v, version| {
            v.with_version(version)
        });
    release(&mut core.background.jobs.lock(), family, ticket);
    core.writes.admission.refresh(family);
    core.trees.delete_obsolete_files();
    core.background.cv.notify();
    done
}

/// Moves all tables of level 0 to `to`, as they are.
pub(crate) fn promote_level0(core: &Arc<Core>, family: &Arc<Family>, to: Level) -> Result<()> {
    let _pause = Pause::new(&core.background);
    let tree = {
        let mut jobs = core.background.jobs.lock();
        let version = Arc::clone(&family.view_guard().version);
        let busy = jobs.busy.entry(family.id).or_default();
        manual::promote_level0(&version, busy, to)?
    };
    let change = Change {
        tree,
        log_number: None,
    };
    core.trees
        .store
        .install(&core.trees.families, family, change, |v, version| {
            v.with_version(version)
        })
}

/// Moves the deepest level's files to `target`, or to the highest empty level for -1.
fn change_level(core: &Arc<Core>, family: &Arc<Family>, target: i32) -> Result<()> {
    let _pause = Pause::new(&core.background);
    let mut jobs = core.background.jobs.lock();
    let version = Arc::clone(&family.view_guard().version);
    let Some(from) = version.deepest_level().filter(|l| *l > Level::L0) else {
        return Ok(());
    };
    let to = match u8::try_from(target) {
        Ok(level) => Level(level),
        Err(_) => {
            let mut to = from;
            while to.0 > 1 && version.level(Level(to.0 - 1)).is_empty() {
                to = Level(to.0 - 1);
            }
            to
        }
    };
    let busy = jobs.busy.entry(family.id).or_default();
    let Some(tree) = refit_level(&version, busy, from, to)? else {
        return Ok(());
    };
    drop(jobs);
    core.trees.store.install(
        &core.trees.families,
        family,
        Change {
            tree,
            log_number: None,
        },
        |view, version| view.with_version(version),
    )
}

/// No automatic compaction starts, and none runs, while this lives.
struct Pause<'a>(&'a Background);

impl<'a> Pause<'a> {
    fn new(background: &'a Background) -> Self {
        background.jobs.lock().compactions_paused += 1;
        loop {
            let seen = background.cv.changes();
            if background.jobs.lock().compactions == 0
                || !background.cv.wait_past(seen, Duration::from_millis(200))
            {
                break;
            }
        }
        Pause(background)
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.jobs.lock().compactions_paused -= 1;
        self.0.cv.notify();
    }
}
