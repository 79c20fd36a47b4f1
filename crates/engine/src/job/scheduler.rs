//! The choice of the next job.
//!
//! [`super::workers`] asks [`next_job`] for the most urgent job of a kind: the flush of the family
//! with the most to flush, the compaction of the family that needs it most. What runs is registered
//! in [`Jobs`] under its lock, so no table is picked twice and no memtable is flushed twice; the
//! flushes of a family stand in [`crate::registry`].
//!
//! Only families that changed are looked at ([`crate::runtime::work_signal`]), and what was found
//! is kept in [`crate::registry`]: nothing here goes through all families, except for flushes that
//! take all of them.

use super::compact::{self, CompactionTask};
use super::flush;
use super::flush_ticket::{FlushCaller, FlushInput, FlushTask, FlushTicket};
use super::merge_yield::may_yield;
use super::room::{delete_after, note_obsolete};
use super::thread_class::{ThreadClass, takes_level0_down};
use crate::core::Core;
use crate::family::Family;
use crate::family::backpressure::load::beside_tables;
use crate::health::HealthState;
use crate::memtable::MemTable;
use crate::observe::FlushReason;
use crate::options::JobLimits;
use crate::registry::{Jobs, QueuedPlan};
use crate::runtime::work_signal as signal;
use crate::store::is_overtaken;
use esker_format::{FamilyId, Seq};
use esker_lsm::check::overtaking;
use esker_lsm::load::Zone;
use esker_lsm::off_peak::OffPeak;
use esker_lsm::pick::urgency::{is_by_age, relieves_load};
use esker_lsm::pick::{PickContext, Policy, Recheck, WriterState, pick_assessed, recheck};
use esker_lsm::plan::{CompactionReason, Plan, PlanKind, Ticket};
use esker_lsm::read_demand::ReadDemand;
use esker_lsm::space::PendingSpace;
use esker_status::seeded::{Bug, seeded};
use esker_status::{ErrorKind, Result};
use esker_sync::Arc;
use esker_sync::atomic::Ordering::Relaxed;
use std::borrow::Cow;

/// How long compactions wait when there is no room for one, or a plan was refused.
const COMPACTION_RETRY_US: u64 = 1_000_000;

/// A job that was registered as running.
#[derive(Debug)]
pub(crate) enum Job {
    Flush(FlushTask),
    Compact(CompactionTask),
}

impl Job {
    /// The class for the job, and the name of its thread.
    pub(super) fn thread(&self) -> (ThreadClass, &'static str) {
        match self {
            Job::Flush(_) => (ThreadClass::High, "esker-flush"),
            Job::Compact(task) => match ThreadClass::of_plan(&task.family, &task.plan) {
                ThreadClass::High => (ThreadClass::High, "esker-comp-l0"),
                ThreadClass::Low => (ThreadClass::Low, "esker-comp"),
            },
        }
    }
}

/// A kind of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    Flush,
    Compact,
}

/// The most urgent job that may start now, registered as running.
pub(crate) fn next_job(core: &Arc<Core>, kind: JobKind) -> Option<Job> {
    if core.background.cv.is_closing() {
        return None;
    }
    let limits = core.services.options.load().job_limits();
    let mut jobs = core.background.jobs.lock();
    // Under the lock: a resume after an error counts the flushes under it, and flushes the same
    // memtables itself.
    if jobs.paused > 0 || core.services.health.state() != HealthState::Running {
        return None;
    }
    let job = match kind {
        JobKind::Flush if jobs.may_flush(&limits) && jobs.flushes < 2 * limits.flushes => {
            flush_to_run(core, &mut jobs).map(Job::Flush)
        }
        JobKind::Compact if jobs.may_relieve(&limits) && jobs.compactions_paused == 0 => {
            let task = compaction_to_run(core, &mut jobs, &limits);
            core.background.update_free_jobs(&jobs);
            task.map(Job::Compact)
        }
        _ => None,
    };
    // The next call tells what waits behind a job that starts.
    let wanted = match job {
        Some(_) => 0.0,
        None => slot_wanted(core, &mut jobs, &limits),
    };
    core.background.slot_wanted.store(wanted.to_bits(), Relaxed);
    job
}

/// How urgent the most urgent job is that merges yield to and that has no slot; 0 for none, or
/// where no merge could yield.
fn slot_wanted(core: &Core, jobs: &mut Jobs, limits: &JobLimits) -> f64 {
    if jobs.yielders == 0 || jobs.may_relieve(limits) {
        return 0.0;
    }
    take_changes(core, jobs);
    let flush_waits = !core.writes.limits.atomic_flush
        && !jobs.may_flush(limits)
        && jobs.flushes_writing < limits.most_flushes
        && jobs.flushes < 2 * limits.flushes
        && jobs.queue.next_flush().is_some();
    if flush_waits {
        return f64::INFINITY;
    }
    let now_us = core.services.env.clock.now_us();
    if jobs.compactions_paused > 0 || jobs.compactions_after_us > now_us {
        return 0.0;
    }
    let any = moment(core, jobs.settling > 0);
    while let Some(id) = jobs.queue.next_unlooked() {
        let _entered = look(core, jobs, id, any, now_us);
    }
    jobs.queue.next_level0().map_or(0.0, |(_, urgency)| urgency)
}

fn flush_to_run(core: &Arc<Core>, jobs: &mut Jobs) -> Option<FlushTask> {
    let families = if core.writes.limits.atomic_flush {
        families_to_flush(core, jobs)?
    } else {
        vec![family_to_flush(core, jobs)?]
    };
    let newest = |(f, mems): &FlushInput| {
        let newest = mems.first()?;
        Some((Arc::clone(f), newest.id()))
    };
    let newest = families.iter().filter_map(newest).collect();
    let ticket = FlushTicket::take(&core.background, jobs, newest);
    Some(FlushTask { families, ticket })
}

/// All families with something to flush, which go together, when that is enough for one of them and
/// no flush runs.
fn families_to_flush(core: &Core, jobs: &mut Jobs) -> Option<Vec<FlushInput>> {
    if !jobs.pipelines.is_empty() {
        return None;
    }
    family_to_flush(core, jobs)?;
    let families = core.trees.families.all().into_iter();
    let with_mems = families.filter(|f| !f.is_dropped()).map(|f| {
        let mems = f.view_guard().immutable.clone();
        (f, mems)
    });
    Some(with_mems.filter(|(_, mems)| !mems.is_empty()).collect())
}

/// The family with the most memtables that no flush has taken, with these.
fn family_to_flush(core: &Core, jobs: &mut Jobs) -> Option<FlushInput> {
    take_changes(core, jobs);
    while let Some(id) = jobs.queue.next_flush() {
        match core.trees.families.get(id).filter(|f| !f.is_dropped()) {
            None => jobs.queue.forget(id),
            Some(family) => {
                // The view may be newer than what was entered.
                let mems = jobs.enter_flush(&family);
                if !mems.is_empty() {
                    return Some((family, mems));
                }
            }
        }
    }
    None
}

impl Jobs {
    /// Finds out what a flush of the family would take now, and enters it in the queue.
    pub(crate) fn enter_flush(&mut self, family: &Family) -> Vec<Arc<MemTable>> {
        let view = family.view_guard();
        let free = match self.pipelines.get(&family.id) {
            Some(pipeline) => pipeline.free(&view.immutable),
            None => &view.immutable,
        };
        let least = usize::try_from(family.options.load().min_write_buffer_number_to_merge);
        let n = free.len();
        let is_due =
            n >= least.unwrap_or(1).max(1) || (n > 0 && self.flush_now.contains(&family.id));
        let mems = if is_due { free.to_vec() } else { Vec::new() };
        let has_memtables = !view.immutable.is_empty();
        self.queue.enter_flush(family.id, mems.len(), has_memtables);
        mems
    }
}

/// Takes in what changed since the last time.
fn take_changes(core: &Core, jobs: &mut Jobs) {
    for id in core.trees.families.inbox.take() {
        let Some(family) = core.trees.families.get(id).filter(|f| !f.is_dropped()) else {
            jobs.queue.forget(id);
            continue;
        };
        let marks = family.signal.take();
        if marks & signal::MEMTABLES != 0 {
            jobs.enter_flush(&family);
            if family.wants_flush_for_scans() {
                jobs.switch_for_scans.insert(id);
            }
        }
        if marks & signal::TREE != 0 {
            jobs.queue.look_again(id);
        }
    }
}

/// The most urgent compaction that may start, or one whose family has waited long.
fn most_urgent(core: &Core, jobs: &mut Jobs) -> Option<(Arc<Family>, Plan)> {
    let now_us = core.services.env.clock.now_us();
    if jobs.compactions_after_us > now_us {
        return None;
    }
    let any = moment(core, jobs.settling > 0);
    let aged = any.draining || off_peak(core, any.now).is_now || jobs.aged.may_start(now_us);
    take_changes(core, jobs);
    jobs.queue.pass(any.now, any.oldest_snapshot, now_us);
    // Of those that are looked at now the best plan need not be made again.
    let mut best: Option<(Arc<Family>, Plan)> = None;
    while let Some(id) = jobs.queue.next_unlooked() {
        if let Some((family, plan)) = look(core, jobs, id, any, now_us)
            && best.as_ref().is_none_or(|(_, b)| plan.urgency > b.urgency)
        {
            best = Some((family, plan));
        }
    }
    while let Some(id) = jobs.queue.next_compaction(aged) {
        let made = best.take().filter(|(family, _)| family.id == id);
        if let Some(found) = made.or_else(|| look(core, jobs, id, any, now_us)) {
            return Some(found);
        }
    }
    None
}

/// The most urgent compaction that relieves level 0.
fn most_urgent_for_level0(core: &Core, jobs: &mut Jobs) -> Option<(Arc<Family>, Plan)> {
    let now_us = core.services.env.clock.now_us();
    if jobs.compactions_after_us > now_us {
        return None;
    }
    let any = moment(core, jobs.settling > 0);
    take_changes(core, jobs);
    while let Some(id) = jobs.queue.next_unlooked() {
        let _entered = look(core, jobs, id, any, now_us);
    }
    while let Some((id, _)) = jobs.queue.next_level0() {
        let found = look(core, jobs, id, any, now_us);
        if let Some(found) = found.filter(|(family, plan)| relieves_level0(family, plan)) {
            return Some(found);
        }
    }
    None
}

/// Tells whether merges of deep levels yield to the plan.
fn relieves_level0(family: &Family, plan: &Plan) -> bool {
    relieves_load(plan.urgency) && takes_level0_down(family, plan)
}

/// Where the second `now` of the calendar is between hours of little load.
pub(crate) fn off_peak(core: &Core, now: u64) -> OffPeak {
    let hours = core.services.options.load().off_peak_hours();
    hours.map_or_else(OffPeak::default, |hours| hours.at(now))
}

/// The family's policy as it holds now: in hours of little load files are old sooner.
pub(crate) fn policy_at(policy: &Policy, hours: OffPeak) -> Cow<'_, Policy> {
    let period = policy.periodic_compaction_seconds;
    match hours.period(period) {
        same if same == period => Cow::Borrowed(policy),
        sooner => Cow::Owned(Policy {
            periodic_compaction_seconds: sooner,
            ..policy.clone()
        }),
    }
}

/// Returns the input of compaction picking that is the same for all families; `draining` while
/// somebody waits until nothing is due.
pub(crate) fn moment(core: &Core, draining: bool) -> PickContext {
    PickContext {
        now: core.services.env.clock.unix_us() / 1_000_000,
        oldest_snapshot: core
            .reads
            .snapshots
            .oldest()
            .map_or_else(|| core.reads.sequence.published(), |(s, _)| s),
        draining,
        writers: WriterState::Resting,
        paced: Zone::Calm,
        reads: ReadDemand::default(),
        beside: PendingSpace::default(),
    }
}

/// The family's next automatic compaction, registered as running, if it may start and only moves
/// files out of a sorted level that holds too much.
pub(super) fn take_move(core: &Core, jobs: &mut Jobs, family: &Family) -> Option<(Plan, Ticket)> {
    let background = &core.background;
    let may_start = jobs.paused == 0
        && jobs.compactions_paused == 0
        && jobs.manual_cancelled <= 0
        && !background.cv.is_closing()
        && background.compaction_abort.check().is_ok()
        && core.services.health.state() == HealthState::Running;
    if !may_start {
        return None;
    }
    let any = moment(core, jobs.settling > 0);
    let now_us = core.services.env.clock.now_us();
    let (_, plan) = look(core, jobs, family.id, any, now_us)?;
    let is_move =
        plan.kind == PlanKind::TrivialMove && plan.reason == CompactionReason::LevelMaxLevelSize;
    let ticket = is_move.then(|| register(core, jobs, family, &plan))??;
    Some((plan, ticket))
}

/// Looks what a family's tree needs, and enters it in the queue.
fn look(
    core: &Core,
    jobs: &mut Jobs,
    id: FamilyId,
    any: PickContext,
    now_us: u64,
) -> Option<(Arc<Family>, Plan)> {
    let Some(family) = core.trees.families.get(id).filter(|f| !f.is_dropped()) else {
        jobs.queue.forget(id);
        return None;
    };
    if family.options.load().disable_auto_compactions {
        jobs.queue
            .enter_compaction(id, None, Recheck::default(), now_us);
        return None;
    }
    let view = family.view();
    if family.wants_flush_for_reads(&view) {
        jobs.flush_for_reads.insert(id);
    }
    let version = Arc::clone(&view.version);
    let assessed = family.assessed(&version);
    let (writers, paced) = family.writer_state(now_us);
    if assessed.tree.space.is_some() {
        note_obsolete(core, &family);
    }
    let moment = PickContext {
        reads: ReadDemand {
            writers_rest: family.rests_for_reads(&view, now_us),
            ..family.read_demand()
        },
        writers,
        paced,
        beside: beside_tables(&view, &family.drain),
        ..any
    };
    let busy = jobs.busy.entry(id).or_default();
    let hours = off_peak(core, moment.now);
    let policy = policy_at(&assessed.policy, hours);
    let plan = pick_assessed(&version, &policy, &assessed.tree, busy, moment);
    let mut again = recheck(&version, &assessed.policy, moment);
    let mut look_in = |seconds: u64| {
        let at = moment.now + seconds;
        again.at = Some(again.at.map_or(at, |other| other.min(at)));
    };
    let has_period = assessed.policy.periodic_compaction_seconds > 0;
    if let Some(begins_in) = hours.begins_in.filter(|_| has_period) {
        look_in(begins_in);
    }
    if assessed.policy.read_triggered_compaction_threshold > 0.0 {
        // Iterators count reads of files and wake nobody.
        look_in(wakeup_seconds(core));
    }
    if plan.is_none() && moment.beside.leaving > 0 {
        // Whoever deletes has it looked at again, but for some rare callers.
        look_in(1);
    }
    let found = plan.as_ref().map(|plan| QueuedPlan {
        urgency: plan.urgency,
        relieves_level0: relieves_level0(&family, plan),
        is_aged: is_by_age(plan.reason),
    });
    jobs.queue.enter_compaction(id, found, again, now_us);
    Some((family, plan?))
}

/// Seconds between looks at trees that reads may have made due: as RocksDB, at least as often as it
/// has other things to do.
fn wakeup_seconds(core: &Core) -> u64 {
    let options = core.services.options.load();
    let others = [
        options.stats_dump_period_sec,
        options.stats_persist_period_sec,
    ];
    let others = others.into_iter().filter(|s| *s > 0).map(u64::from);
    let own = options.max_compaction_trigger_wakeup_seconds;
    others.chain([own]).min().unwrap_or(own).max(1)
}

/// The next compaction, registered as running. Where all slots that are free are those of merges
/// that yield, one that relieves level 0.
fn compaction_to_run(core: &Core, jobs: &mut Jobs, limits: &JobLimits) -> Option<CompactionTask> {
    let (family, plan) = if jobs.may_compact(limits) {
        most_urgent(core, jobs)?
    } else {
        most_urgent_for_level0(core, jobs)?
    };
    let Some(ticket) = register(core, jobs, &family, &plan) else {
        retry_later(core, jobs);
        return None;
    };
    jobs.queue.started(family.id);
    if plan.reason == CompactionReason::ReadTriggered {
        family.spend_read_debt(plan.input_bytes().saturating_add(plan.regrouped.bytes));
        // A file that only moves keeps its figures otherwise, and would move on at once.
        for (_, file) in plan.files() {
            file.collapsible_reads.store(0, Relaxed);
        }
    }
    jobs.compactions += 1;
    jobs.yielders += usize::from(may_yield(&plan));
    if is_by_age(plan.reason) {
        jobs.aged.started();
    }
    Some(CompactionTask {
        family,
        plan,
        ticket,
    })
}

/// Takes note that `plan` runs: its inputs and its output range belong to no other plan until it is
/// released. Nothing is registered of a plan that would take data past other data in the tree as it
/// is at this moment: a plan that was made on another version may.
pub(crate) fn register(
    core: &Core,
    jobs: &mut Jobs,
    family: &Family,
    plan: &Plan,
) -> Option<Ticket> {
    if plan.kind != PlanKind::Delete
        && let Some(passed) = overtaking(
            &family.view_guard().version,
            plan.files(),
            plan.output_level,
        )
    {
        core.services.note_overtaken(&family.name, &passed);
        return None;
    }
    jobs.queue.look_again(family.id);
    let busy = jobs.busy.entry(family.id).or_default();
    Some(busy.register(&family.order, plan))
}

/// Lets no automatic compaction begin for a while: the next look would find the same at once.
fn retry_later(core: &Core, jobs: &mut Jobs) {
    jobs.compactions_after_us = core.services.env.clock.now_us() + COMPACTION_RETRY_US;
}

/// Gives back what a plan that was registered, or a reservation, has taken.
pub(crate) fn release(jobs: &mut Jobs, family: &Family, ticket: Ticket) {
    if let Some(busy) = jobs.busy.get_mut(&family.id) {
        busy.release(ticket);
    }
    jobs.queue.look_again(family.id);
}

/// Carries a job out and takes it off the registry.
pub(crate) fn run(core: &Arc<Core>, job: Job) {
    match job {
        Job::Flush(task) => {
            let families = task.families.iter().map(|(family, _)| family);
            let bounded = families.clone().filter(|f| f.is_space_bounded());
            let bounded: Vec<_> = bounded.cloned().collect();
            let families = families.map(|family| family.id);
            let reader = core.trees.obsolete_files.job_begins(families);
            // Who waits for it was told when it was dropped.
            if flush::run_in_line(core, task).is_err() {
                super::tell_failure(&core.background);
                core.background.cv.notify();
            }
            delete_after(core, &bounded, reader);
        }
        Job::Compact(task) => {
            let CompactionTask {
                family,
                plan,
                ticket,
            } = task;
            let began_us = core.services.env.clock.now_us();
            if seeded(Bug::MergeToldEarly)
                && ThreadClass::of_plan(&family, &plan) == ThreadClass::High
            {
                finish_compaction(
                    core,
                    &family,
                    EndedPlan::of(&plan, ticket, began_us),
                    Ok(()),
                );
                let _unnoticed = compact::run_plan(core, &family, plan);
                return;
            }
            let ended = EndedPlan::of(&plan, ticket, began_us);
            let done = compact::run_plan(core, &family, plan);
            finish_compaction(core, &family, ended, done);
        }
    }
}

/// A plan that ended, for the registry.
struct EndedPlan {
    ticket: Ticket,
    yields: bool,
    /// When it began, where it was due by age alone.
    aged_since_us: Option<u64>,
}

impl EndedPlan {
    fn of(plan: &Plan, ticket: Ticket, began_us: u64) -> Self {
        EndedPlan {
            ticket,
            yields: may_yield(plan),
            aged_since_us: is_by_age(plan.reason).then_some(began_us),
        }
    }
}

fn finish_compaction(core: &Core, family: &Family, ended: EndedPlan, done: Result<()>) {
    {
        let mut jobs = core.background.jobs.lock();
        jobs.compactions -= 1;
        jobs.yielders -= usize::from(ended.yields);
        if let Some(began_us) = ended.aged_since_us {
            let now_us = core.services.env.clock.now_us();
            jobs.aged.ended(began_us, now_us);
        }
        release(&mut jobs, family, ended.ticket);
        core.background.update_free_jobs(&jobs);
    }
    match done {
        Ok(()) => {}
        // There is no room.
        Err(e) if e.kind() == ErrorKind::CompactionTooLarge => {
            core.services
                .info_log
                .warn(format_args!("a compaction waits: {e}"));
            retry_later(core, &mut core.background.jobs.lock());
        }
        Err(e) if is_overtaken(&e) => retry_later(core, &mut core.background.jobs.lock()),
        Err(e) => super::failed(&core.background, crate::health::ErrorSource::Compaction, &e),
    }
    core.background.cv.notify();
}

/// Gives the memory of the largest memtable back when a database that shares its limit needs it.
pub(super) fn relieve(core: &Core) {
    if core.writes.buffers.take_flush_request() {
        let mut log = core.writes.lock();
        if let Err(e) = core.writes.switch_largest(&mut log) {
            core.services
                .info_log
                .warn(format_args!("a memtable could not be switched: {e}"));
        }
    }
}

/// Flushes memtables that take no writes, where reads have paid for it.
pub(super) fn flush_for_reads(core: &Arc<Core>) {
    let wanted = std::mem::take(&mut core.background.jobs.lock().flush_for_reads);
    let families = core.trees.families.among(wanted.into_iter().collect());
    if families.is_empty() {
        return;
    }
    for family in &families {
        family.spend_read_debt(family.view_guard().mem.data_bytes());
    }
    if let Err(e) = core.flush(&families, FlushCaller::GoesOn, FlushReason::AutoCompaction) {
        core.services
            .info_log
            .warn(format_args!("idle memtables could not be flushed: {e}"));
    }
}

/// Switches memtables that hide too much from iterators.
pub(super) fn switch_for_scans(core: &Core) {
    let wanted = core.background.jobs.lock().switch_for_scans.clone();
    if wanted.is_empty() {
        return;
    }
    // One that was dropped is not among them, and is wanted no longer.
    let families = core.trees.families.among(wanted.iter().copied().collect());
    let switched = core.writes.switch_hiding(&families);
    if let Err(e) = &switched {
        core.services
            .info_log
            .warn(format_args!("a memtable could not be switched: {e}"));
    }
    // Until now the database was not idle. What was asked for meanwhile stays.
    let is_wanted = |id: &FamilyId| {
        families
            .iter()
            .any(|f| f.id == *id && f.wants_flush_for_scans())
    };
    let mut jobs = core.background.jobs.lock();
    jobs.switch_for_scans
        .retain(|id| !wanted.contains(id) || (switched.is_ok() && is_wanted(id)));
}

/// Carries out `wait`, during which trees get into shape even while writers write.
pub(crate) fn settling<T>(core: &Core, wait: impl FnOnce() -> T) -> T {
    {
        let mut jobs = core.background.jobs.lock();
        jobs.settling += 1;
        // Trees that would wait for their writers to rest are in shape later than that otherwise.
        jobs.queue.pass(0, Seq::ZERO, u64::MAX);
    }
    core.background.cv.notify();
    let out = wait();
    core.background.jobs.lock().settling -= 1;
    out
}

/// The most bytes of tables that are kept to be written over.
const SPARE_MAX: u64 = 1 << 30;

/// How many bytes of tables without readers the running jobs may write over: a quarter of
/// the tables at most and a quarter of what is free beside them, and nothing once all have ended,
/// or while a caller waits for that.
pub(super) fn spare_bytes(core: &Core) -> u64 {
    let options = core.services.options.load();
    if !options.recycle_table_files
        || options.sst_file_manager.is_some()
        || !core.trees.obsolete_files.is_any()
    {
        return 0;
    }
    let jobs = core.background.jobs.lock();
    if jobs.flushes + jobs.compactions == 0 || jobs.settling > 0 {
        return 0;
    }
    drop(jobs);
    let inbox = &core.trees.families.inbox;
    if inbox.is_space_bounded() {
        return 0;
    }
    let live = inbox.table_bytes();
    (live.min(free_space(core)) / 4).min(SPARE_MAX)
}

/// The least that is free where the tables are.
fn free_space(core: &Core) -> u64 {
    let fs = &core.services.env.fs;
    let beside = core.trees.table_dirs();
    let dirs = std::iter::once(&core.services.dir).chain(&beside);
    let free = dirs.map(|dir| fs.free_space(dir).unwrap_or(0));
    free.min().unwrap_or(0)
}

/// Returns whether nothing waits to be flushed, nothing runs and nothing should be compacted.
pub(crate) fn is_idle(core: &Core) -> bool {
    let mut jobs = core.background.jobs.lock();
    if jobs.flushes > 0 || jobs.compactions > 0 {
        return false;
    }
    take_changes(core, &mut jobs);
    !jobs.queue.has_memtables()
        && jobs.switch_for_scans.is_empty()
        && most_urgent(core, &mut jobs).is_none()
}

#[cfg(test)]
mod tests;
