//! Compaction of a range on demand, run on the caller's thread.
//!
//! The steps and plans come from the pure [`esker_lsm::pick::manual`]; each plan is registered like
//! an automatic one, so the two never take the same file. A plan in the way is waited for, and the
//! step is planned anew after the wait. Moves of whole levels reserve the files, and the range on
//! all levels that these pass, until they are installed.
//!
//! An exclusive compaction of a range runs alone: other callers wait, in the order of their coming
//! as RocksDB has it, and automatic compactions pause.
//!
//! Files that a compaction leaves in a level which they overfill may only have to move. The caller
//! moves them, or waits for the thread that does: so the tree has its shape when the call returns,
//! even if no other thread gets a processor before the database is closed.

use super::blobs::{self, BlobGcOverride};
use super::compact::{CompactionOverrides, install, run_tuned};
use super::scheduler::{register, release, take_move};
pub(crate) use super::subcompaction::check_canceled;
use crate::core::{Background, Core};
use crate::family::Family;
use crate::observe::CompactionInfo;
use crate::options::{CompactFilesOptions, CompactRangeOptions, Temperature};
use crate::registry::Jobs;
use crate::runtime::callback::Callback;
use crate::store::is_overtaken;
use esker_codec::compress::Codec;
use esker_format::{FileNo, InternalKey, Level};
use esker_lsm::edit::TreeEdit;
use esker_lsm::pick::manual::{
    self, ManualRange, ManualStep, Move, Step, plan_step, refit_level, steps,
};
use esker_lsm::plan::{Busy, Plan, Ticket};
use esker_lsm::version::Version;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::Arc;
use std::time::Duration;

/// How often a plan is made anew that the store refuses. What runs is registered, so that the store
/// should never have to.
const REPLANS_MAX: usize = 8;

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
    let must_rewrite = must_rewrite(family);
    let exclusive = options.exclusive_manual_compaction;
    let _turn = ManualPermit::wait(core, exclusive)?;
    let pause = exclusive.then(|| Pause::new(&core.background));
    let version = Arc::clone(&family.view_guard().version);
    let todo = steps(
        &version,
        &policy,
        range,
        options.bottommost_level_compaction,
        must_rewrite,
        core.trees.numbers.peek(),
    );
    drop(version);
    for step in todo {
        let step = ManualStep {
            output_path: options.target_path_id,
            ..step
        };
        run_step(core, family, &step, range, must_rewrite, options)?;
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
            match run_registered(core, family, plan, ticket, CompactionOverrides::default()) {
                Err(e) if is_overtaken(&e) => break,
                done => done?,
            }
        } else if !is_moving || !cv.wait_past(seen, Duration::from_millis(200)) {
            break;
        }
    }
    Ok(())
}

/// The error of a manual compaction that may not begin, or not go on to its next plan.
fn check_may_run(core: &Core, jobs: &Jobs) -> Result<()> {
    if core.background.cv.is_closing() {
        return Err(Error::shutdown());
    }
    core.background.compaction_abort.check()?;
    jobs.check_manual()
}

/// Carries out a plan that was registered as a step of a manual compaction.
fn run_registered(
    core: &Arc<Core>,
    family: &Arc<Family>,
    plan: Plan,
    ticket: Ticket,
    overrides: CompactionOverrides,
) -> Result<()> {
    let done = run_tuned(core, family, plan, overrides);
    finish_manual(core, family, ticket);
    done.map(drop)
}

/// The family must have the path.
fn check_path(family: &Family, path_id: u32) -> Result<()> {
    if path_id as usize >= family.reading.paths.count() {
        return Err(Error::invalid_argument("Invalid target path ID"));
    }
    Ok(())
}

/// Returns whether tables that could be moved, or left alone, are to be written anew: there is a
/// filter to ask, or values come back from blob files.
fn must_rewrite(family: &Family) -> bool {
    let o = family.options.load();
    o.compaction_filter.is_some()
        || o.compaction_filter_factory.is_some()
        || blobs::brings_inline(&o, &family.view_guard().version)
}

fn run_step(
    core: &Arc<Core>,
    family: &Arc<Family>,
    step: &ManualStep,
    range: &ManualRange,
    must_rewrite: bool,
    options: &CompactRangeOptions,
) -> Result<()> {
    let mut from: Option<InternalKey> = None;
    let mut overtaken = 0;
    loop {
        let seen = core.background.cv.changes();
        let next = {
            let mut jobs = core.background.jobs.lock();
            check_may_run(core, &jobs)?;
            check_canceled(options.canceled.as_ref())?;
            let policy = family.options.load().to_policy();
            let version = Arc::clone(&family.view_guard().version);
            let busy = jobs.busy.entry(family.id).or_default();
            match plan_step(&version, &policy, busy, step, range, from.as_ref()) {
                Step::Done => return Ok(()),
                Step::Conflict => None,
                Step::Run { mut plan, next } => {
                    if must_rewrite {
                        manual::forbid_move(&mut plan);
                    }
                    plan.max_subcompactions = options.max_subcompactions;
                    let ticket = register(core, &mut jobs, family, &plan);
                    jobs.manual += usize::from(ticket.is_some());
                    ticket.map(|ticket| (plan, next, ticket))
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
        let overrides = CompactionOverrides {
            canceled: options.canceled.clone(),
            blob_gc: BlobGcOverride::of(options),
            ..CompactionOverrides::default()
        };
        match run_registered(core, family, *plan, ticket, overrides) {
            Err(e) if is_overtaken(&e) && overtaken < REPLANS_MAX => {
                overtaken += 1;
                continue;
            }
            done => done?,
        }
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
    for _ in 0..REPLANS_MAX {
        match compact_files_once(core, family, chosen, output, options) {
            Err(e) if is_overtaken(&e) => {}
            done => return done,
        }
    }
    compact_files_once(core, family, chosen, output, options)
}

fn compact_files_once(
    core: &Arc<Core>,
    family: &Arc<Family>,
    chosen: &[FileNo],
    output: Level,
    options: &CompactFilesOptions,
) -> Result<CompactionInfo> {
    let (plan, ticket) = {
        let mut jobs = core.background.jobs.lock();
        if core.background.cv.is_closing() {
            return Err(Error::shutdown());
        }
        core.background.compaction_abort.check()?;
        let policy = family.options.load().to_policy();
        let version = Arc::clone(&family.view_guard().version);
        let busy = jobs.busy.entry(family.id).or_default();
        let path = options.output_path_id;
        let mut plan = manual::plan_files(&version, &policy, busy, chosen, output, path)?;
        if !options.allow_trivial_move || must_rewrite(family) {
            manual::forbid_move(&mut plan);
        }
        plan.max_subcompactions = options.max_subcompactions;
        if output > Level::L0 {
            plan.max_output_file_size = options.output_file_size_limit;
        }
        let ticket = register(core, &mut jobs, family, &plan).ok_or_else(|| {
            Error::aborted("The input files would pass files that are not compacted with them")
        })?;
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
        ..CompactionOverrides::default()
    };
    let done = run_tuned(core, family, plan, overrides);
    finish_manual(core, family, ticket);
    done
}

/// Takes a step of a manual compaction off the registry.
fn finish_manual(core: &Core, family: &Family, ticket: Ticket) {
    {
        let mut jobs = core.background.jobs.lock();
        jobs.manual -= 1;
        release(&mut jobs, family, ticket);
    }
    core.background.cv.notify();
}

/// Merges all of a level 0 whose tables have no order: they have no epoch numbers, and sequence
/// numbers do not tell which of two is newer. To be called before anything else writes or reads.
pub(crate) fn order_level0(core: &Arc<Core>, family: &Arc<Family>) -> Result<()> {
    let version = Arc::clone(&family.view_guard().version);
    if !version.lacks_epochs() {
        return Ok(());
    }
    core.services.info_log.warn(format_args!(
        "[{}] the {} tables of level 0 have no epoch numbers and interleaved sequence numbers: they are merged",
        family.name,
        version.level(Level::L0).len(),
    ));
    let policy = family.options.load().to_policy();
    let (plan, ticket) = {
        let mut jobs = core.background.jobs.lock();
        let busy = jobs.busy.entry(family.id).or_default();
        let plan = manual::plan_level0(&version, &policy, busy)?;
        let ticket = register(core, &mut jobs, family, &plan)
            .ok_or_else(|| Error::aborted("level 0 is not taken as a whole"))?;
        jobs.manual += 1;
        (plan, ticket)
    };
    let deeper = version.files().filter(|(level, _)| *level > Level::L0);
    let overrides = CompactionOverrides {
        epoch: Some(deeper.map(|(_, f)| f.epoch).max().unwrap_or(0) + 1),
        ..CompactionOverrides::default()
    };
    let done = run_tuned(core, family, plan, overrides);
    finish_manual(core, family, ticket);
    done.map(drop)
}

/// Takes tables away that lie wholly inside one of the ranges, without reading them. Those of level
/// 0, and those that a compaction reads, stay.
pub(crate) fn delete_files(
    core: &Arc<Core>,
    family: &Arc<Family>,
    ranges: &[ManualRange],
    include_end: bool,
) -> Result<()> {
    let (mut tree, gone, ticket) = {
        let mut jobs = core.background.jobs.lock();
        let version = Arc::clone(&family.view_guard().version);
        let busy = jobs.busy.entry(family.id).or_default();
        let mut all = Vec::new();
        let mut tree = TreeEdit::default();
        for range in ranges {
            let (begin, end) = (range.begin.as_deref(), range.end.as_deref());
            for level in (1..version.num_levels()).filter_map(|l| u8::try_from(l).ok()) {
                let level = Level(level);
                for file in manual::files_within(&version, level, begin, end, include_end) {
                    let gone = (level, file.number);
                    if !busy.contains(file.number) && !tree.deleted.contains(&gone) {
                        tree.deleted.push(gone);
                        all.push((level, file));
                    }
                }
            }
        }
        if tree.is_empty() {
            return Ok(());
        }
        let files = tree.deleted.iter().map(|(_, n)| *n).collect();
        (tree, all, busy.reserve(files, None))
    };
    let refs = blobs::refs_of(&core.trees, family, gone.iter().map(|(l, f)| (*l, f)));
    blobs::add_garbage(&mut tree, &refs);
    let changing = {
        let _log = core.writes.lock();
        family.begin_ingestion()
    };
    let done = install(&core.trees, family, tree, None);
    drop(changing);
    release(&mut core.background.jobs.lock(), family, ticket);
    core.writes.admission.refresh(family);
    core.trees.delete_obsolete_files();
    core.background.cv.notify();
    done
}

/// Moves all tables of level 0 to `to`, as they are.
pub(crate) fn promote_level0(core: &Arc<Core>, family: &Arc<Family>, to: Level) -> Result<()> {
    carry_out(core, family, |version, busy| {
        manual::promote_level0(version, busy, to)
    })
}

/// Moves the deepest level's files to `target`, or to the highest empty level for -1.
fn change_level(core: &Arc<Core>, family: &Arc<Family>, target: i32) -> Result<()> {
    carry_out(core, family, |version, busy| {
        let Some(from) = version.deepest_level().filter(|l| *l > Level::L0) else {
            return Ok(None);
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
        refit_level(version, busy, from, to)
    })
}

/// Carries out the move that `decide` finds, beside no automatic compaction. What it takes is
/// reserved before the lock is given back. Ingestions and deletions of files, which are short, are
/// waited for.
fn carry_out(
    core: &Arc<Core>,
    family: &Arc<Family>,
    decide: impl Fn(&Version, &Busy) -> Result<Option<Move>>,
) -> Result<()> {
    let _pause = Pause::new(&core.background);
    let (moved, ticket) = loop {
        let seen = core.background.cv.changes();
        {
            let mut jobs = core.background.jobs.lock();
            let version = Arc::clone(&family.view_guard().version);
            let busy = jobs.busy.entry(family.id).or_default();
            match decide(&version, busy) {
                Ok(None) => return Ok(()),
                Ok(Some(moved)) => {
                    let ticket = if seeded(Bug::MoveUnreserved) {
                        busy.reserve(Vec::new(), None)
                    } else {
                        moved.reserve(busy)
                    };
                    break (moved, ticket);
                }
                Err(e) if !busy.has_reservations() => return Err(e),
                Err(_) => {}
            }
        }
        if !core
            .background
            .cv
            .wait_past(seen, Duration::from_millis(200))
        {
            return Err(Error::shutdown());
        }
    };
    let done = install(&core.trees, family, moved.edit, Some(moved.to));
    release(&mut core.background.jobs.lock(), family, ticket);
    core.background.cv.notify();
    done.inspect_err(|e| {
        if is_overtaken(e) {
            core.services.note_overtaken(&family.name, e);
        }
    })
}

/// The right of a caller to compact a range: one of many, or the only one. Callers from inside a
/// callback do not wait, since it may be the callback of what would be waited for.
struct ManualPermit<'a> {
    background: &'a Background,
    exclusive: bool,
}

impl<'a> ManualPermit<'a> {
    fn wait(core: &'a Core, exclusive: bool) -> Result<Self> {
        let background = &*core.background;
        let is_inside = Callback::is_inside();
        let mut is_queued = false;
        loop {
            let seen = background.cv.changes();
            {
                let mut jobs = background.jobs.lock();
                let turns = &mut jobs.turns;
                let is_free =
                    is_inside || turns.is_free_for(exclusive) || seeded(Bug::ExclusiveTogether);
                turns.waiting -= usize::from(is_queued);
                if is_free {
                    turns.running += 1;
                    turns.exclusive += usize::from(exclusive);
                    return Ok(ManualPermit {
                        background,
                        exclusive,
                    });
                }
                check_may_run(core, &jobs)?;
                is_queued = exclusive;
                jobs.turns.waiting += usize::from(exclusive);
            }
            background.cv.wait_past(seen, Duration::from_millis(200));
        }
    }
}

impl Drop for ManualPermit<'_> {
    fn drop(&mut self) {
        {
            let turns = &mut self.background.jobs.lock().turns;
            turns.running -= 1;
            turns.exclusive -= usize::from(self.exclusive);
        }
        self.background.cv.notify();
    }
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
