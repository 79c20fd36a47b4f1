//! The threads that do background work.
//!
//! A process may have hundreds of databases, most of them idle, so a database has no thread of its
//! own. A change, or a tick of the clock, starts one that looks for work
//! ([`crate::runtime::BackgroundCv`]): it hands out the jobs that may start, keeps one for itself,
//! and ends. Where threads come from, and that they are used again, is the executor's business.
//! Closing waits for the threads at work, and an idle database has none.
//!
//! Flushes and merges of level 0 have threads of one class, other compactions and the deletion of
//! files those of a patient one ([`super::thread_class`]). A job gets its thread when it is handed
//! out. The thread of a compaction takes the next one itself, if that is of its class.
//!
//! Twice as many flushes may run as may write at once: a flush whose tables are written waits for
//! the disk, and the next one begins ([`super::flush_ticket`]). While compactions leave theirs
//! unused, twice as many may write, too, unless `max_background_flushes` says how many: writers
//! stand still for a memtable, and no compaction could begin.
//!
//! The thread that fills the block cache after an opening is patient, too ([`super::saved_cache`]).
//!
//! A caller that waits for a flush looks for work itself and carries the flush out
//! ([`super::flush_request`]).
//!
//! A look calls no listener and waits for no job, so the next one can begin. What may wait
//! ([`upkeep`]) comes after it.
//!
//! Rejected: *threads of each database that wait for its changes*. Each costs 0.1 ms to start and
//! up to 4 ms to end, and wakes up once a second. *Any thread takes any job*: then a flush has the
//! same share as each compaction, and writers stand still for memtables while there is room at
//! level 0.

use super::flush_ticket::FlushTask;
use super::resume;
use super::room::use_room_of_all;
use super::saved_cache;
use super::scheduler::{
    Job, JobKind, flush_for_reads, next_job, relieve, run, spare_bytes, switch_for_scans,
};
use super::table_opening;
use super::thread_class::ThreadClass;
use crate::core::Core;
use crate::health::{ErrorSource, HealthState};
use crate::observe::{PerfApart, PerfLevel, set_perf_level};
use crate::runtime::AtWork;
use esker_env::{ThreadSlot, Ticking};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::Ordering;
use esker_sync::{Arc, Mutex, Rank, Weak};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Most threads that do the upkeep of a database: a listener may make one wait for another.
const UPKEEP_MAX: usize = 4;

// What the thread that deletes files does.
const IDLE: u8 = 0;
const DELETES: u8 = 1;
/// There was more to delete after it began.
const DELETES_AGAIN: u8 = 2;

/// Has changes and the clock start threads that look for work, until what is returned is dropped.
pub(crate) fn begin(core: &Arc<Core>) -> Result<Box<dyn Ticking>> {
    let executor = Arc::clone(&core.services.env.executor);
    // Threads at work end a moment after closing has seen their work end: nothing of the
    // application is theirs by then.
    let services = Arc::downgrade(&core.services);
    let own = Arc::downgrade(core);
    core.background.cv.start_with(move |look| {
        let own = Weak::clone(&own);
        let body = move |slot: ThreadSlot| {
            with_core(&own, look, |core, at_work| {
                look_and_work(core, at_work, slot)
            });
        };
        if let Err(e) = executor.spawn_in_slot("esker-flush", Box::new(body))
            && let Some(services) = services.upgrade()
        {
            // The next tick looks without one.
            services
                .info_log
                .warn(format_args!("background work waits: {e}"));
        }
    });
    let (cv, own) = (Arc::clone(&core.background.cv), Arc::downgrade(core));
    core.services.env.executor.tick(Arc::new(move || {
        if let Some(look) = cv.try_look() {
            with_core(&own, look, look_at_tick);
        }
    }))
}

/// Runs `body` with the database, which is there: closing it waits for `at_work`, which is dropped
/// last.
fn with_core(own: &Weak<Core>, mut at_work: AtWork, body: impl FnOnce(&Arc<Core>, &mut AtWork)) {
    if let Some(core) = own.upgrade() {
        // A listener of another database may have changed it on this thread.
        set_perf_level(PerfLevel::EnableCount);
        guarded(&core, "thread", || body(&core, &mut at_work));
    }
}

/// A panic in `body` stops writes and is told, and the thread lives on.
fn guarded(core: &Core, what: &str, body: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(body)).is_err() {
        let error = Error::new(ErrorKind::Aborted, format!("a background {what} panicked"));
        super::failed(&core.background, ErrorSource::Compaction, &error);
    }
}

/// Looks for work on a thread that a change has started, and does its part.
fn look_and_work(core: &Arc<Core>, at_work: &mut AtWork, slot: ThreadSlot) {
    let mut own = look(core, at_work, |_| true);
    if !own.is_empty() {
        slot.release();
    }
    if needs_upkeep(core) {
        let handed_over = |job| hand_over(core, at_work, job);
        own = own.into_iter().filter_map(handed_over).collect();
        upkeep(core);
    }
    own.into_iter().for_each(|job| run_guarded(core, job));
}

/// Looks for work on the thread that ticks for all databases. It does work only where no other
/// thread can be had.
fn look_at_tick(core: &Arc<Core>, at_work: &mut AtWork) {
    core.reads.operations.tick();
    for job in look(core, at_work, |_| false) {
        run_guarded(core, job);
    }
    if !hand_over_upkeep(core, at_work) {
        upkeep(core);
    }
}

/// Has the calling thread look for work, unless another does. It hands out what it finds, and
/// carries out one of the flushes that it waits for, which are `wanted`; true when there was one.
/// The caller holds no lock.
pub(crate) fn look_here(core: &Arc<Core>, wanted: impl Fn(&FlushTask) -> bool) -> bool {
    let Some(mut at_work) = core.background.cv.try_look() else {
        return false;
    };
    let own = look(core, &mut at_work, wanted);
    let is_kept_up = hand_over_upkeep(core, &at_work);
    let has_run = !own.is_empty();
    for mut job in own {
        if let Job::Flush(task) = &mut job {
            task.ticket.taken_by_caller();
        }
        let _apart = PerfApart::new();
        run_guarded(core, job);
    }
    // Not before: it may wait until no flush runs.
    if !is_kept_up {
        upkeep(core);
    }
    has_run
}

/// Has another thread do the upkeep, if any is due; false when there is none for it.
fn hand_over_upkeep(core: &Arc<Core>, at_work: &AtWork) -> bool {
    if !needs_upkeep(core) {
        return true;
    }
    let (own, another) = (Arc::downgrade(core), at_work.another());
    let body = move |_slot| with_core(&own, another, |core, _| upkeep(core));
    let executor = &core.services.env.executor;
    executor
        .spawn_in_slot("esker-upkeep", Box::new(body))
        .is_ok()
}

/// Hands out the jobs that may start, until nothing changed meanwhile. Returns a flush for the
/// caller, one of those that are `wanted`, and jobs for which no thread could be started.
fn look(core: &Arc<Core>, at_work: &mut AtWork, wanted: impl Fn(&FlushTask) -> bool) -> Vec<Job> {
    let mut own = Vec::new();
    loop {
        let seen = core.background.cv.changes();
        while let Some(job) = next_job(core, JobKind::Flush) {
            if own.is_empty() && matches!(&job, Job::Flush(task) if wanted(task)) {
                own.push(job);
            } else {
                own.extend(hand_over(core, at_work, job));
            }
        }
        while let Some(job) = next_job(core, JobKind::Compact) {
            own.extend(hand_over(core, at_work, job));
        }
        if core.trees.obsolete_files.is_any() || core.trees.obsolete_files.is_archive_due() {
            delete_files(core, at_work);
        }
        if core.background.saved_cache.take_due() {
            load_saved_cache(core, at_work);
        }
        let opens_tables = &core.background.opens_tables;
        if opens_tables.load(Ordering::Relaxed) && opens_tables.swap(false, Ordering::AcqRel) {
            open_tables(core, at_work);
        }
        if at_work.end_look(seen) {
            return own;
        }
    }
}

/// Has another thread carry the job out; gives it back where there is none.
fn hand_over(core: &Arc<Core>, at_work: &AtWork, job: Job) -> Option<Job> {
    let (class, name) = job.thread();
    let job = Arc::new(Mutex::new(Rank::LEAF, Some(job)));
    let (own, another, theirs) = (Arc::downgrade(core), at_work.another(), Arc::clone(&job));
    let body = Box::new(move || {
        with_core(&own, another, |core, at_work| {
            let mut next = theirs.lock().take();
            while let Some(job) = next {
                let is_compaction = matches!(job, Job::Compact(_));
                run_guarded(core, job);
                next = is_compaction
                    .then(|| next_compaction(core, at_work, class))
                    .flatten();
            }
        });
    });
    let started = class.spawn(&*core.services.env.executor, name, body);
    started.err().and_then(|e| {
        core.services
            .info_log
            .warn(format_args!("a job has no thread of its own: {e}"));
        job.lock().take()
    })
}

/// The next compaction for a thread of `class`. Those of the other class before it are handed over,
/// unless there is no thread for them.
fn next_compaction(core: &Arc<Core>, at_work: &AtWork, class: ThreadClass) -> Option<Job> {
    while let Some(job) = next_job(core, JobKind::Compact) {
        if job.thread().0 == class {
            return Some(job);
        }
        if let Some(own) = hand_over(core, at_work, job) {
            return Some(own);
        }
    }
    None
}

/// Carries a job out.
fn run_guarded(core: &Arc<Core>, job: Job) {
    let kind = match &job {
        Job::Flush(_) => "flush",
        Job::Compact(_) => "compaction",
    };
    guarded(core, kind, || run(core, job));
}

/// Has one thread delete files. It takes no job meanwhile: a filesystem may take tens of
/// milliseconds for each file, which is what a memtable takes to fill up.
fn delete_files(core: &Arc<Core>, at_work: &AtWork) {
    let raise = |state: u8| Some((state + 1).min(DELETES_AGAIN));
    let deletion = &core.background.deletion;
    let before = deletion.fetch_update(Ordering::AcqRel, Ordering::Acquire, raise);
    if before != Ok(IDLE) {
        return;
    }
    let (own, another) = (Arc::downgrade(core), at_work.another());
    let body = move || with_core(&own, another, |core, _| delete_until_done(core));
    let executor = &core.services.env.executor;
    if executor
        .spawn_patient("esker-delete", Box::new(body))
        .is_err()
    {
        // Closing the database deletes them.
        deletion.store(IDLE, Ordering::Release);
    }
}

/// Has one thread load what an earlier opening had in the block cache.
fn load_saved_cache(core: &Arc<Core>, at_work: &AtWork) {
    let (own, another) = (Arc::downgrade(core), at_work.another());
    let body = move || {
        with_core(&own, another, |core, _| {
            guarded(core, "loading of the block cache", || {
                saved_cache::load(core)
            });
        });
    };
    let executor = &core.services.env.executor;
    if executor
        .spawn_patient("esker-cache", Box::new(body))
        .is_err()
    {
        // The next look tries again.
        core.background.saved_cache.put_off();
    }
}

/// Has one thread open the tables.
fn open_tables(core: &Arc<Core>, at_work: &AtWork) {
    let (own, another) = (Arc::downgrade(core), at_work.another());
    let body = move || {
        with_core(&own, another, |core, _| {
            guarded(core, "opening of tables", || {
                table_opening::open_later(core)
            });
        });
    };
    // Without a thread, readers open what they need.
    let executor = &core.services.env.executor;
    let _left_to_readers = executor.spawn_patient("esker-open", Box::new(body));
}

fn delete_until_done(core: &Core) {
    let deletion = &core.background.deletion;
    loop {
        guarded(core, "deletion", || {
            core.trees.delete_obsolete_files_keeping(spare_bytes(core));
            use_room_of_all(core);
            core.trees.purge_archive_if_due();
        });
        let done = deletion.compare_exchange(DELETES, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if done.is_ok() {
            return;
        }
        deletion.store(DELETES, Ordering::Release);
    }
}

/// Returns whether [`upkeep`] has something to do.
fn needs_upkeep(core: &Core) -> bool {
    core.services.pending.is_any()
        || core.services.health.state() == HealthState::Degraded
        || core.writes.buffers.is_flush_requested()
        || core.is_statistics_dump_due()
        || core.is_memory_balance_due()
        || core.is_long_reader_look_due()
        || core.background.jobs.lock().has_switches()
}

/// Does the work that may take long, call listeners, or wait for the log.
fn upkeep(core: &Arc<Core>) {
    let running = &core.background.upkeep;
    if running.fetch_add(1, Ordering::AcqRel) < UPKEEP_MAX {
        guarded(core, "upkeep", || {
            core.services.tell_pending();
            core.dump_statistics_if_due();
            core.balance_memory();
            core.tell_long_readers();
            relieve(core);
            flush_for_reads(core);
            switch_for_scans(core);
            resume::try_automatic(core);
        });
    }
    running.fetch_sub(1, Ordering::AcqRel);
}

#[cfg(test)]
mod tests;
