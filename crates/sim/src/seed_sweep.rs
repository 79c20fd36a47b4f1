//! Seeds by the thousand: handed out one by one to threads, until there are as many cases of each
//! kind as are wanted.
//!
//! A seed is a workload with its crash states, a disk with its trials, a workload on a disk that is
//! well, or a schedule of each scenario. Each kind counts its own seeds. What a seed finds depends
//! on it alone; which seeds are run depends on the number of threads only at the end. The figures
//! are printed by name.

use crate::live_check;
use crate::run::{self, Counts, Failure, USUAL};
use crate::schedules::{TraceSet, schedules};
use crate::sim_env::SimEnv;
use crate::trial;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Trials of one disk.
const TRIALS: usize = 40;
/// Schedules of each scenario between two looks at the clock.
const SCHEDULES: u64 = 20;

/// How many cases of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaseCounts {
    /// Crash states.
    pub states: u64,
    /// Calls that fail.
    pub failed_calls: u64,
    /// Looks at open databases on disks that are well.
    pub looks: u64,
    /// Copies of open databases that are compared.
    pub copies: u64,
    /// Schedules of racing threads.
    pub schedules: u64,
}

/// How a run goes on.
#[derive(Clone, Copy, Debug)]
pub struct SweepPlan {
    /// The first seed.
    pub seed: u64,
    /// This many cases, or for so long.
    pub wanted: CaseCounts,
    /// All kinds in turns for this time, whatever is wanted.
    pub limit: Option<Duration>,
    /// Seeds at a time; 0 for five for two processors.
    pub jobs: usize,
    /// Ends at the first failure.
    pub first: bool,
}

/// Counts and failures of a sweep.
#[derive(Debug, Default)]
pub struct SweepReport {
    /// Cases.
    pub counts: Counts,
    /// Failures by kind, at most as many as one can read.
    pub failures: Vec<Failure>,
    /// How many there were of each kind, in the order of `CaseKind`.
    pub violations: [u64; 5],
    /// How long it took.
    pub took: Duration,
    shown: Option<Instant>,
}

/// The kinds of cases, in the order of [`KINDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaseKind {
    States,
    Faults,
    Looks,
    Copies,
    Schedules,
}

const KINDS: [CaseKind; 5] = [
    CaseKind::States,
    CaseKind::Faults,
    CaseKind::Looks,
    CaseKind::Copies,
    CaseKind::Schedules,
];
const SHOWN: usize = 20;

impl CaseKind {
    fn name(self) -> &'static str {
        match self {
            CaseKind::States => "crash states",
            CaseKind::Faults => "failed calls",
            CaseKind::Looks => "looks at live databases",
            CaseKind::Copies => "checkpoints compared",
            CaseKind::Schedules => "schedules",
        }
    }

    fn cases(self, counts: &Counts) -> u64 {
        match self {
            CaseKind::States => counts.states,
            CaseKind::Faults => counts.failed_calls,
            CaseKind::Looks => counts.looks,
            // Backups are restored in crash states as well.
            CaseKind::Copies => counts.checkpoints,
            CaseKind::Schedules => counts.schedules,
        }
    }

    fn wanted(self, wanted: &CaseCounts) -> u64 {
        match self {
            CaseKind::States => wanted.states,
            CaseKind::Faults => wanted.failed_calls,
            CaseKind::Looks => wanted.looks,
            CaseKind::Copies => wanted.copies,
            CaseKind::Schedules => wanted.schedules,
        }
    }
}

impl SweepReport {
    /// How many violations there were.
    pub fn violations(&self) -> u64 {
        self.violations.iter().sum()
    }
}

impl fmt::Display for SweepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (c, seconds) = (&self.counts, self.took.as_secs_f64().max(0.001));
        for (kind, violations) in KINDS.iter().zip(self.violations) {
            let cases = kind.cases(c);
            if cases == 0 && violations == 0 {
                continue;
            }
            write!(f, "{}: {cases}, violations: {violations}", kind.name())?;
            match kind {
                CaseKind::States => writeln!(
                    f,
                    " ({} workloads, {} states in recovery, {} refused rightly)",
                    c.runs, c.nested, c.refused
                )?,
                CaseKind::Faults => writeln!(f, " ({} trials with crashes)", c.faults)?,
                CaseKind::Copies => writeln!(f, " ({} backups restored and compared)", c.restores)?,
                _ => writeln!(f)?,
            }
        }
        write!(
            f,
            "in {seconds:.0} s, {:.0} states/s",
            c.states as f64 / seconds
        )
    }
}

struct SweepState<'a> {
    plan: &'a SweepPlan,
    start: Instant,
    /// Cases begun of all kinds.
    turns: AtomicU64,
    /// The next seed of each kind.
    next: [AtomicU64; KINDS.len()],
    over: AtomicBool,
    found: Mutex<SweepReport>,
}

impl SweepState<'_> {
    fn found(&self) -> MutexGuard<'_, SweepReport> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the kind of case that is furthest behind, for the thread that asks. `None` when all
    /// is done.
    fn next_kind(&self) -> Option<CaseKind> {
        if self.over.load(Ordering::Relaxed) {
            return None;
        }
        if let Some(limit) = self.plan.limit {
            let turn = match self.turns.fetch_add(1, Ordering::Relaxed) % 20 {
                3 | 8 | 13 => CaseKind::Faults,
                18 => CaseKind::Looks,
                19 => CaseKind::Schedules,
                17 => CaseKind::Copies,
                _ => CaseKind::States,
            };
            return (self.start.elapsed() < limit).then_some(turn);
        }
        let counts = self.found().counts;
        let done = |kind: &CaseKind| {
            let wanted = kind.wanted(&self.plan.wanted).max(1);
            kind.cases(&counts) as f64 / wanted as f64
        };
        let open = |kind: &CaseKind| kind.cases(&counts) < kind.wanted(&self.plan.wanted);
        let open = KINDS.into_iter().filter(open);
        open.min_by(|a, b| done(a).total_cmp(&done(b)))
    }

    fn add(&self, kind: CaseKind, counts: &Counts, failures: Vec<Failure>) {
        let mut found = self.found();
        found.counts.add(counts);
        found.violations[kind as usize] += failures.len() as u64;
        let room = SHOWN.saturating_sub(found.failures.len());
        // Of one seed the first few are enough: they are much the same.
        for failure in failures.into_iter().take(3.min(room)) {
            println!("{failure}");
            found.failures.push(failure);
        }
        if self.plan.first && found.violations() > 0 {
            self.over.store(true, Ordering::Relaxed);
        }
        // Ever more seldom, so that a run of hours is a page.
        let apart = (self.start.elapsed() / 20).max(Duration::from_secs(10));
        if found.shown.is_none_or(|t| t.elapsed() > apart) {
            found.shown = Some(Instant::now());
            let c = found.counts;
            eprintln!(
                "{} s: {} crash states, {} failed calls, {} looks, {} schedules, {} violations",
                self.start.elapsed().as_secs(),
                c.states,
                c.failed_calls,
                c.looks,
                c.schedules,
                found.violations()
            );
        }
    }

    fn work(&self, world: &SimEnv) {
        let mut seen = TraceSet::default();
        loop {
            let Some(kind) = self.next_kind() else {
                return;
            };
            let seed = self.next[kind as usize].fetch_add(1, Ordering::Relaxed);
            let mut counts = Counts::default();
            let failures = match kind {
                CaseKind::States => {
                    let (c, failures) = run::run(world, seed, USUAL);
                    counts = c;
                    failures
                }
                CaseKind::Faults => trial::trials(world, seed, TRIALS, &mut counts),
                CaseKind::Looks => live_check::run(world, seed, &mut counts)
                    .into_iter()
                    .collect(),
                CaseKind::Copies => live_check::copies(world, seed, &mut counts)
                    .into_iter()
                    .collect(),
                CaseKind::Schedules => {
                    let seeds = seed * SCHEDULES..(seed + 1) * SCHEDULES;
                    seeds
                        .flat_map(|s| schedules(s, None, &mut seen, &mut counts))
                        .collect()
                }
            };
            self.add(kind, &counts, failures);
        }
    }
}

/// This many threads, or for 0 one per processor.
pub fn threads(jobs: usize) -> usize {
    match jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
}

/// This many seeds at a time, or for 0 more than there are processors: the threads of a seed hand
/// over to each other, and meanwhile a processor would be idle.
fn seeds_at_a_time(jobs: usize) -> usize {
    match jobs {
        0 => (threads(0) * 5).div_ceil(2),
        n => n,
    }
}

/// Runs what is planned; failures are printed as they come.
pub fn sweep(world: &SimEnv, plan: &SweepPlan) -> SweepReport {
    let shared = SweepState {
        plan,
        start: Instant::now(),
        turns: AtomicU64::new(0),
        next: std::array::from_fn(|_| AtomicU64::new(plan.seed)),
        over: AtomicBool::new(false),
        found: Mutex::new(SweepReport::default()),
    };
    std::thread::scope(|scope| {
        for _ in 0..seeds_at_a_time(plan.jobs) {
            scope.spawn(|| shared.work(world));
        }
    });
    let took = shared.start.elapsed();
    let found = shared.found.into_inner();
    SweepReport {
        took,
        ..found.unwrap_or_else(PoisonError::into_inner)
    }
}
