//! Trials: a database whose calls to the disk fail.
//!
//! A trial starts from a disk that a short workload left, fails calls as a plan says while the
//! database is opened and used, heals the disk, and asks for what is promised: errors are errors
//! and not panics; what was acknowledged is there and is read while calls fail; writing goes on
//! after the disk is well (by itself when it was full, else after `resume` or a new open); and
//! after a crash at the end everything that was acknowledged as synced is found, also when a failed
//! fsync has marked pages clean that were never written.
//!
//! A write that failed may be there later or not, but whole. Used by one thread.

use crate::crash::{Cut, Point, VARIANTS, Variant};
use crate::disk::{Image, Pages, SimFs};
use crate::fault::{CALLS, CLASSES, Call, Class, FAILURES, Failure as How, FaultSpec, Span};
use crate::model::area::{Area, draw_call};
use crate::model::drive::{History, Session};
use crate::model::judge::{self, Depth, MOST_FAILED, Violation, ViolationKind};
use crate::model::settings::Settings;
use crate::model::state::State;
use crate::rng::Rng;
use crate::run::{Counts, Failure, RunPart, empty_disk};
use crate::sim_env::SimEnv;
use esker::HealthState;
use esker_status::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Writes resume so soon after space came back.
const PATIENCE_US: u64 = 10_000_000;
/// The pauses between attempts grow to this: a database that never resumes takes few of them.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Where trials of one seed start: settings, what the disk holds, and the model of that.
#[derive(Debug)]
pub struct Base {
    seed: u64,
    settings: Settings,
    image: Image,
    state: State,
    lives: Vec<crate::model::drive::Life>,
}

impl Base {
    /// Makes the disk of a seed.
    pub fn new(world: &SimEnv, seed: u64) -> Result<Base> {
        let mut settings = Settings::draw(seed);
        // Resuming by itself is tried often, so that trials need not wait for it.
        settings.push("bgerror_resume_retry_interval", "10000");
        // Without a log nothing tells which of several failed calls took effect.
        settings.unlogged = false;
        let disk = empty_disk()?.without_log();
        let mut session = Session::open(world, &settings, &disk, State::default(), seed)?;
        session.begin()?;
        session.run(12)?;
        session.flush()?;
        session.run(6)?;
        session.db()?.flush_wal(true)?;
        let image = session.disk().image();
        let state = session.state().clone();
        let lives = session.history().lives.clone();
        drop(session.finish());
        Ok(Base {
            seed,
            settings,
            image,
            state,
            lives,
        })
    }
}

/// The calls on which most depends.
const TELLING: &[Call] = &[Call::Append, Call::Sync, Call::Read, Call::SyncDir];

/// The plan of a seed, for a workload that may be about a part of the engine.
pub fn draw_plan(rng: &mut Rng, area: Option<Area>) -> FaultSpec {
    let failure = rng.pick(FAILURES).0;
    let call = match failure {
        How::Pages(_) => Some(Call::Sync),
        How::Short(_) => Some(Call::Append),
        _ if rng.one_in(4) => None,
        How::Errno(24) => Some(*rng.pick(&[Call::OpenRead, Call::Create, Call::SyncDir])),
        _ if rng.one_in(2) => Some(*rng.pick(TELLING)),
        _ => Some(rng.pick(CALLS).0),
    };
    let class = match rng.below(4) {
        0 => None,
        1 => Some(rng.pick(CLASSES).0),
        _ => Some(*rng.pick(&[Class::Wal, Class::Table, Class::Manifest])),
    };
    let class = class.filter(|c| !matches!(c, Class::Lock | Class::Blob | Class::InfoLog));
    let (call, class) = match area {
        Some(area) if !rng.one_in(3) => {
            let (own, class) = draw_call(area, rng);
            // Some failures are of one call alone.
            let bound = matches!(failure, How::Pages(_) | How::Short(_));
            (call.filter(|_| bound).or(Some(own)), Some(class))
        }
        _ => (call, class),
    };
    let most = match (call, class) {
        (None, None) => 150,
        (Some(_), Some(_)) => 6,
        _ => 30,
    };
    let span = *rng.pick(&[Span::Once, Span::Once, Span::Until, Span::Forever]);
    FaultSpec {
        call,
        class,
        nth: 1 + rng.below(most),
        failure,
        span,
    }
}

fn violation(kind: ViolationKind, text: String) -> Violation {
    Violation { kind, text }
}

/// Tries until a write succeeds again, as promised for this plan; the database may be opened again
/// when it says so.
fn recover(session: &mut Session, plan: &FaultSpec, patient: bool) -> Result<(), Violation> {
    let Ok(clock) = session.db().map(|db| Arc::clone(&db.env().clock)) else {
        return again(session);
    };
    let start = clock.now_us();
    let by_itself = patient && plan.failure.is_no_space() && session.db().is_ok();
    let mut refused = 0;
    let mut pause = Duration::from_millis(2);
    while clock.now_us() - start < PATIENCE_US {
        let Ok(db) = session.db().cloned() else {
            return again(session);
        };
        match db.health() {
            HealthState::Running => match session.write() {
                Ok(()) => {
                    session.goes_on();
                    return Ok(());
                }
                Err(_) if refused < 2 => refused += 1,
                Err(e) => {
                    let text = format!("writes fail after the disk is well: {e}");
                    return Err(violation(ViolationKind::Broken, text));
                }
            },
            HealthState::Failed => {
                drop(db);
                return again(session);
            }
            _ if by_itself => {}
            // What it says shows in the state.
            _ => drop(db.resume()),
        }
        clock.sleep(pause);
        pause = (2 * pause).min(PAUSE_MAX);
    }
    let error = session.db().ok().and_then(esker::Db::background_error);
    let error = error.map_or_else(String::new, |e| e.to_string());
    let text = format!("writes do not resume within 10 s after the disk is well: {error}");
    Err(violation(ViolationKind::Broken, text))
}

/// Waits for the jobs that began while calls failed: what they report is of that time. Time goes on
/// when every thread waits, so a job that has failed and not said so yet says it first.
fn settle(session: &Session) {
    let Ok(db) = session.db() else { return };
    let clock = Arc::clone(&db.env().clock);
    let start = clock.now_us();
    let runs = |what: &str| db.property(what).is_some_and(|n| n != "0");
    loop {
        clock.sleep(Duration::from_millis(1));
        let busy = runs("rocksdb.num-running-flushes") || runs("rocksdb.num-running-compactions");
        if !busy || clock.now_us() - start > PATIENCE_US {
            return;
        }
    }
}

/// Another process opens the database: nothing that was sure may be missing.
fn again(session: &mut Session) -> Result<(), Violation> {
    session.start_again().map_err(|e| {
        violation(
            ViolationKind::Unopenable,
            format!("after the disk is well: {e}"),
        )
    })?;
    let at = session.disk().position();
    let state = judge::find(session, at)?;
    session.set_state(state);
    Ok(())
}

/// A trial before its crashes.
struct TrialRun {
    history: History,
    /// How many calls failed.
    failed: u64,
    /// Where in the log the disk was well again.
    healed: usize,
}

/// The part of a trial before the crash.
fn drive(world: &SimEnv, base: &Base, plan: &FaultSpec, seed: u64) -> Result<TrialRun, Violation> {
    let mut rng = Rng::new(seed);
    let disk = SimFs::from_image(base.image.clone());
    let during_open = rng.one_in(3);
    if during_open {
        disk.inject(plan);
    }
    let open = |disk: &SimFs| Session::open(world, &base.settings, disk, base.state.clone(), seed);
    let mut session = match open(&disk) {
        Ok(session) => session,
        Err(e) if disk.failed_calls() == 0 => {
            return Err(violation(ViolationKind::Unopenable, e.to_string()));
        }
        // The error is the answer that is right; after the disk is well the database opens.
        Err(_) => {
            disk.heal();
            let next = disk.kill();
            open(&next).map_err(|e| {
                violation(
                    ViolationKind::Unopenable,
                    format!("after the disk is well: {e}"),
                )
            })?
        }
    };
    session.keep_lives(&base.lives);
    if !during_open {
        disk.inject(plan);
    }
    // Where a failed fsync takes pages away, what was not synced does not survive the process
    // either.
    let loses_pages = matches!(plan.failure, How::Pages(Pages::Reverted | Pages::Dropped));
    // A process that starts after a failed fsync finds the data in clean pages, and keeping such a
    // log trusts them.
    let keeps_logs = base
        .settings
        .options
        .iter()
        .any(|(name, value)| *name == "avoid_flush_during_recovery" && value == "true");
    let fails_syncs = plan.call.is_none_or(|c| c == Call::Sync);
    let reopening = !(loses_pages || keeps_logs && fails_syncs);
    for _ in 0..7 {
        session.run_failing(2, MOST_FAILED - 2, reopening);
        if session.db().is_err() {
            break;
        }
        judge::compare_or_fail(&session, "calls failed")?;
        let events = &session.history().events;
        if events.iter().filter(|e| !e.acknowledged).count() >= MOST_FAILED - 2 {
            break;
        }
    }
    if plan.call.is_none_or(Call::is_write) && session.db().is_ok() {
        judge::compare(&session, "calls failed, on the open database")?;
    }
    disk.heal();
    let healed = disk.position();
    settle(&session);
    recover(&mut session, plan, rng.one_in(16))?;
    judge::compare(&session, "the disk was well again")?;
    let steps: Result<()> = (|| {
        session.write()?;
        session.write()?;
        session.db()?.flush_wal(true)?;
        session.promise_all();
        session.run(3)
    })();
    steps.map_err(|e| {
        violation(
            ViolationKind::Broken,
            format!("after the disk is well: {e}"),
        )
    })?;
    judge::compare(&session, "writing on")?;
    let failed = disk.failed_calls();
    Ok(TrialRun {
        history: session.finish(),
        failed,
        healed,
    })
}

/// One trial with its crashes.
pub fn trial(
    world: &SimEnv,
    base: &Base,
    plan: &FaultSpec,
    seed: u64,
    counts: &mut Counts,
) -> Option<Failure> {
    let fail = |cuts, violation, left| {
        Some(Failure {
            seed: base.seed,
            story: RunPart::Fault(plan.clone(), seed),
            cuts,
            violation,
            left,
        })
    };
    let driven = catch_unwind(AssertUnwindSafe(|| drive(world, base, plan, seed)));
    let TrialRun {
        history,
        failed,
        healed,
    } = match driven {
        Ok(Ok(done)) => done,
        Ok(Err(v)) => {
            counts.faults += 1;
            return fail(Vec::new(), v, String::new());
        }
        Err(_) => {
            let text = "a panic".to_owned();
            return fail(
                Vec::new(),
                violation(ViolationKind::Broken, text),
                String::new(),
            );
        }
    };
    counts.failed_calls += failed;
    if failed == 0 {
        return None;
    }
    counts.faults += 1;
    let mut rng = Rng::new(seed ^ 0x7472_6961);
    let end = history.log.ops.len();
    for i in 0..4 {
        let (at, variant) = match i {
            0 => (end, Variant::Lost),
            1 => (end, rng.pick(VARIANTS).0),
            // While calls fail the process dies, or the machine.
            2 if rng.one_in(2) => (healed, Variant::Kept),
            2 => (healed, rng.pick(VARIANTS).0),
            _ => (
                history.opened + rng.index(end.saturating_sub(history.opened) + 1),
                rng.pick(VARIANTS).0,
            ),
        };
        let cut = Cut {
            at,
            variant,
            seed: rng.next_u64() >> 32,
        };
        counts.states += 1;
        let point = Point::at(&history.log, at);
        let image = point.state(variant, cut.seed);
        let disk = SimFs::from_image(image.clone()).without_log();
        let process_only = variant == Variant::Kept;
        let judged = judge::check_options(world, &history, at, &disk)
            .and_then(|()| judge::open(world, &history, at, process_only, &disk, cut.seed))
            .and_then(|mut s| judge::exercise(&mut s.session, Depth::Write));
        if let Err(v) = judged {
            if crate::run::may_refuse(variant, &v) && disk.image().digest() == image.digest() {
                counts.refused += 1;
                continue;
            }
            return fail(vec![cut], v, point.describe(&image));
        }
    }
    None
}

/// `trials` trials from the disk of `seed`.
pub fn trials(world: &SimEnv, seed: u64, trials: usize, counts: &mut Counts) -> Vec<Failure> {
    let mut rng = Rng::new(seed ^ 0x0074_7269_616c);
    let base = match world.play(seed, |world| Base::new(world, seed)) {
        Ok(base) => base,
        Err(e) => {
            return vec![Failure {
                seed,
                story: RunPart::Crash,
                cuts: Vec::new(),
                violation: violation(ViolationKind::Broken, format!("the workload: {e}")),
                left: String::new(),
            }];
        }
    };
    counts.runs += 1;
    (0..trials)
        .filter_map(|_| {
            let plan = draw_plan(&mut rng, base.settings.area);
            let seed = rng.next_u64();
            world.play(seed, |world| trial(world, &base, &plan, seed, counts))
        })
        .collect()
}
