//! One run: a workload, and the crash states of its log.
//!
//! A run follows from its seed, except for what background threads did; the history that it made is
//! what its states follow from. Used by one thread; runs share a [`SimEnv`].

use crate::crash::{Cut, Point, VARIANTS, Variant};
use crate::disk::SimFs;
use crate::fault::FaultSpec;
use crate::model::area::telling;
use crate::model::backups;
use crate::model::drive::{History, Session};
use crate::model::judge::{self, Depth, Violation};
use crate::model::settings::{DIR, Settings, WAL_DIR};
use crate::model::state::State;
use crate::rng::Rng;
use crate::sim_env::SimEnv;
use esker_env::FileSystem;
use esker_status::Result;
use std::fmt;
use std::path::Path;

/// How big a run is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Steps of the workload.
    pub steps: usize,
    /// Cuts of its log.
    pub cuts: usize,
}

/// The part of a run in which a failure was found.
#[derive(Clone, Debug)]
pub enum RunPart {
    /// A workload, cut by the power or not.
    Crash,
    /// Calls failed as planned; with the seed of the trial.
    Fault(FaultSpec, u64),
    /// A workload on a disk that is well, looked at all the time.
    Live,
    /// A workload of which copies were made and compared.
    Copies,
    /// Threads raced in the scenario of this name.
    Schedule(&'static str),
    /// Writers in front of a tree of numbers.
    Forecast,
    /// The finished database was damaged.
    Rot(String),
    /// A repair of the damaged database ended early.
    Repair(String),
}

/// A violation, and what replays it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The run's seed.
    pub seed: u64,
    /// The part of a run in which a failure was found.
    pub story: RunPart,
    /// The cut, and the cut of recovery's log.
    pub cuts: Vec<Cut>,
    /// The violation.
    pub violation: Violation,
    /// The state after the last cut.
    pub left: String,
}

impl Failure {
    /// The text that `esker-sim --replay` takes.
    pub fn replay(&self) -> String {
        let cuts: Vec<String> = self.cuts.iter().map(Cut::to_string).collect();
        let (seed, cuts) = (self.seed, cuts.join("+"));
        match &self.story {
            RunPart::Crash => format!("crash {seed} {cuts}"),
            RunPart::Fault(plan, trial) => format!("fault {seed} {plan} {trial} {cuts}"),
            RunPart::Live => format!("live {seed}"),
            RunPart::Copies => format!("copies {seed}"),
            RunPart::Schedule(scenario) => format!("schedule {seed} {scenario}"),
            RunPart::Forecast => format!("forecast {seed}"),
            RunPart::Rot(damage) => format!("rot seed-{seed} {damage}"),
            RunPart::Repair(what) => format!("repair {seed} ({what})"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n  replay: {}",
            self.violation,
            self.replay().trim_end()
        )?;
        self.left
            .lines()
            .try_for_each(|l| write!(f, "\n  left: {l}"))
    }
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Workloads.
    pub runs: u64,
    /// Crash states that were opened.
    pub states: u64,
    /// Of these, crashes inside recovery from another one.
    pub nested: u64,
    /// Operations in the workloads' logs.
    pub operations: u64,
    /// Tables that the workloads wrote over older ones.
    pub written_over: u64,
    /// Logs that the workloads began in the files of older ones.
    pub begun_over: u64,
    /// Batches that were written by the workloads.
    pub batches: u64,
    /// States that were refused with a clear error, as is right for a MANIFEST with foreign bytes
    /// in it.
    pub refused: u64,
    /// Runs in which calls failed.
    pub faults: u64,
    /// Calls that failed.
    pub failed_calls: u64,
    /// Looks at open databases on disks that are well.
    pub looks: u64,
    /// Checkpoints that were opened and compared, entry by entry.
    pub checkpoints: u64,
    /// Backups that were restored and compared.
    pub restores: u64,
    /// Schedules of racing threads.
    pub schedules: u64,
    /// Seconds of forecasts of paced writers.
    pub forecast_seconds: u64,
    /// Damages to databases at rest.
    pub damages: u64,
    /// Repairs that ended early.
    pub repairs: u64,
}

impl Counts {
    /// Adds up.
    pub fn add(&mut self, other: &Counts) {
        self.runs += other.runs;
        self.states += other.states;
        self.nested += other.nested;
        self.operations += other.operations;
        self.written_over += other.written_over;
        self.begun_over += other.begun_over;
        self.batches += other.batches;
        self.refused += other.refused;
        self.faults += other.faults;
        self.failed_calls += other.failed_calls;
        self.looks += other.looks;
        self.checkpoints += other.checkpoints;
        self.restores += other.restores;
        self.schedules += other.schedules;
        self.forecast_seconds += other.forecast_seconds;
        self.damages += other.damages;
        self.repairs += other.repairs;
    }
}

/// An empty disk with the directories of a database.
pub fn empty_disk() -> Result<SimFs> {
    let disk = SimFs::new();
    disk.create_dir_all(Path::new(DIR))?;
    disk.create_dir_all(Path::new(WAL_DIR))?;
    disk.sync_dir(Path::new("/"))?;
    Ok(disk)
}

/// Runs the workload of `seed`; its history.
pub fn workload(world: &SimEnv, seed: u64, steps: usize) -> Result<History> {
    let settings = Settings::draw(seed);
    let disk = empty_disk()?;
    world.play(seed, |world| {
        let mut session = Session::open(world, &settings, &disk, State::default(), seed)?;
        session.begin()?;
        session.run(steps)?;
        Ok(session.finish())
    })
}

/// A block of a MANIFEST that was never written whole and reads as foreign bytes cannot be told
/// from one that was damaged later: the database is refused with a clear error, and nothing
/// changes.
pub(crate) fn may_refuse(variant: Variant, violation: &Violation) -> bool {
    variant == Variant::Mixed
        && violation.kind == judge::ViolationKind::Unopenable
        && violation.text.starts_with("Corruption")
        && violation.text.contains("/MANIFEST-")
}

/// How many names that end in `before` became such that end in `after`: so do files in the place of
/// older ones.
fn renamed(history: &History, before: &str, after: &str) -> u64 {
    use crate::disk::Op;
    let ops = history.log.ops.iter();
    let renamed = ops.filter(|op| match op {
        Op::Rename { from, to, .. } => from.1.ends_with(before) && to.1.ends_with(after),
        _ => false,
    });
    renamed.count() as u64
}

/// Returns whether cutting after operation `at` can show anything new: the operation did something
/// to the database.
fn is_cut(history: &History, at: usize) -> bool {
    use crate::disk::Op;
    at == 0 || !matches!(history.log.ops[at - 1], Op::Close { .. } | Op::Lock { .. })
}

/// Opens the state of `cuts` and judges it; with a seed for how deep.
pub fn judge_state(
    world: &SimEnv,
    history: &History,
    point: &Point,
    cut: Cut,
    counts: &mut Counts,
    failures: &mut Vec<Failure>,
    seed: u64,
) {
    let mut rng = Rng::new(cut.seed ^ 0x6465_6570);
    let depth = match rng.below(12) {
        0 => Depth::Whole,
        1..4 => Depth::Write,
        _ => Depth::Read,
    };
    let nested = rng.one_in(4);
    let image = point.state(cut.variant, cut.seed);
    let disk = SimFs::from_image(image.clone());
    let disk = if nested { disk } else { disk.without_log() };
    counts.states += 1;
    let mut fail = |cuts: Vec<Cut>, violation, left| {
        failures.push(Failure {
            seed,
            story: RunPart::Crash,
            cuts,
            violation,
            left,
        });
    };
    let process_only = cut.variant == Variant::Kept;
    let looked_at = SimFs::from_image(image.clone()).without_log();
    if let Err(v) = judge::check_options(world, history, cut.at, &looked_at) {
        return fail(vec![cut], v, point.describe(&image));
    }
    let survivor = judge::open(world, history, cut.at, process_only, &disk, cut.seed);
    let mut session = match survivor {
        Ok(s) => s.session,
        Err(v) if may_refuse(cut.variant, &v) && disk.image().digest() == image.digest() => {
            counts.refused += 1;
            return;
        }
        Err(v) => return fail(vec![cut], v, point.describe(&image)),
    };
    if let Err(v) = judge::exercise(&mut session, depth) {
        return fail(vec![cut], v, point.describe(&image));
    }
    if !history.backups.is_empty() && rng.one_in(4) {
        let disk = SimFs::from_image(image.clone()).without_log();
        match backups::check(world, history, cut.at, &disk, &mut rng.fork()) {
            Ok(restored) => counts.restores += u64::from(restored),
            Err(v) => return fail(vec![cut], v, point.describe(&image)),
        }
    }
    let child = session.finish();
    if !nested {
        return;
    }
    for _ in 0..3 {
        let at = 1 + rng.index(child.log.ops.len().max(1));
        let inner = Cut {
            at: at.min(child.log.ops.len()),
            variant: rng.pick(VARIANTS).0,
            seed: rng.next_u64() >> 32,
        };
        counts.states += 1;
        counts.nested += 1;
        let point = Point::at(&child.log, inner.at);
        let image = point.state(inner.variant, inner.seed);
        let disk = SimFs::from_image(image.clone()).without_log();
        let inner_process = inner.variant == Variant::Kept;
        let found = if inner.at < child.opened {
            judge::open(world, history, cut.at, process_only, &disk, inner.seed)
        } else {
            judge::check_options(world, &child, inner.at, &disk).and_then(|()| {
                judge::open(world, &child, inner.at, inner_process, &disk, inner.seed)
            })
        };
        let judged = found.and_then(|mut s| judge::exercise(&mut s.session, Depth::Write));
        if let Err(v) = judged {
            if may_refuse(inner.variant, &v) && disk.image().digest() == image.digest() {
                counts.refused += 1;
                continue;
            }
            return fail(vec![cut, inner], v, point.describe(&image));
        }
    }
}

/// Cuts the log of `history` in many places, and judges many states of each.
pub fn crashes(
    world: &SimEnv,
    history: &History,
    seed: u64,
    cuts: usize,
    counts: &mut Counts,
    failures: &mut Vec<Failure>,
) {
    let mut rng = Rng::new(seed ^ 0x6375_7473);
    let ops = history.log.ops.len();
    let mut places: Vec<usize> = if ops <= cuts {
        (1..=ops).collect()
    } else {
        let area = history.settings.area;
        let telling = area.map_or_else(Vec::new, |a| telling(a, &history.log));
        let place = |i| match i % 2 {
            1 if !telling.is_empty() => *rng.pick(&telling),
            _ => 1 + rng.index(ops),
        };
        (0..cuts).map(place).collect()
    };
    places.retain(|at| is_cut(history, *at));
    places.sort_unstable();
    places.dedup();
    let mut point = Point::start(&history.log);
    for at in places {
        point.advance(&history.log, at);
        for (variant, _) in VARIANTS {
            let times = if variant.is_random() { 2 } else { 1 };
            if !point.has_unsure() && *variant != Variant::Kept {
                continue;
            }
            for _ in 0..times {
                let cut = Cut {
                    at,
                    variant: *variant,
                    seed: rng.next_u64() >> 32,
                };
                world.play(cut.seed, |world| {
                    judge_state(world, history, &point, cut, counts, failures, seed);
                });
            }
        }
    }
}

/// Judges one state of the workload of `seed` again, with the crashes inside its recovery.
pub fn replay(world: &SimEnv, seed: u64, cut: Cut, counts: &mut Counts) -> Result<Vec<Failure>> {
    let history = workload(world, seed, USUAL.steps)?;
    let point = Point::at(&history.log, cut.at);
    let mut failures = Vec::new();
    world.play(cut.seed, |world| {
        judge_state(world, &history, &point, cut, counts, &mut failures, seed);
    });
    Ok(failures)
}

/// The size of a run from which `--replay` and the tests start.
pub const USUAL: Size = Size {
    steps: 60,
    cuts: 40,
};

/// A whole run.
pub fn run(world: &SimEnv, seed: u64, size: Size) -> (Counts, Vec<Failure>) {
    let mut counts = Counts {
        runs: 1,
        ..Counts::default()
    };
    let mut failures = Vec::new();
    match workload(world, seed, size.steps) {
        Ok(history) => {
            counts.operations = history.log.ops.len() as u64;
            counts.written_over = renamed(&history, ".dbtmp", ".sst");
            counts.begun_over = renamed(&history, ".dbtmp", ".log");
            counts.batches = history.events.len() as u64;
            crashes(world, &history, seed, size.cuts, &mut counts, &mut failures);
        }
        Err(e) => failures.push(Failure {
            seed,
            story: RunPart::Crash,
            cuts: Vec::new(),
            violation: Violation {
                kind: judge::ViolationKind::Broken,
                text: format!("the workload: {e}"),
            },
            left: String::new(),
        }),
    }
    (counts, failures)
}
