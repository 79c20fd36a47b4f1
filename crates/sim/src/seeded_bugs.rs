//! Running every kind of test in turns until one finds something, or time is up: for the bugs that
//! are built in on purpose.
//!
//! A hunter is told the kind of test that should find the bug and the part of the engine that it is
//! in: that kind comes first, with seeds whose workloads are about that part. Time is the
//! processor's, so that what is found does not depend on what else the machine does. One thread;
//! each kind has its own counts, so that a report says after how many cases the bug was found.

use crate::corruption;
use crate::forecasts;
use crate::live_check;
use crate::model::area::{Area, seed_about};
use crate::run::{self, Counts, Failure, USUAL};
use crate::schedules::{TraceSet, schedules};
use crate::sim_env::SimEnv;
use crate::trial;
use esker_status::seeded::Hunter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Result of a search.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// Which kind found it, after how many cases, and what.
    pub found: Option<(&'static str, u64, String)>,
    /// Cases of all kinds.
    pub cases: u64,
    /// Of which.
    pub counts: Counts,
}

/// A kind of test, with its name.
const KINDS: &[(Hunter, &str)] = &[
    (Hunter::Crashes, "crash states"),
    (Hunter::Model, "the model"),
    (Hunter::Faults, "failed calls"),
    (Hunter::Schedules, "schedules"),
    (Hunter::Forecasts, "forecasts of paced writers"),
    (Hunter::Rot, "damages at rest"),
    (Hunter::Repairs, "repairs that end early"),
];

/// One turn of a kind; what it found.
fn turn(
    kind: Hunter,
    world: &SimEnv,
    seed: u64,
    about: Option<Area>,
    seen: &mut TraceSet,
    counts: &mut Counts,
) -> Vec<Failure> {
    match kind {
        Hunter::Schedules => (seed * 40..seed * 40 + 40)
            // Every scenario may show what is wrong in a part.
            .map(|seed| schedules(seed, about.filter(|_| seed % 2 == 0), seen, counts))
            .find(|failures| !failures.is_empty())
            .unwrap_or_default(),
        Hunter::Model => {
            // Every fourth workload is copied.
            let copies = if seed % 16 < 4 {
                live_check::copies(world, seed, counts)
            } else {
                None
            };
            let live = live_check::run(world, seed, counts);
            live.into_iter().chain(copies).collect()
        }
        Hunter::Faults => trial::trials(world, seed, 12, counts),
        Hunter::Forecasts => forecasts::turn(seed, counts),
        Hunter::Rot => corruption::turn(seed, 400, counts),
        Hunter::Repairs => corruption::repairs::turn(seed, corruption::repairs::USUAL, counts),
        Hunter::Crashes => {
            let (c, failures) = run::run(world, seed, USUAL);
            counts.add(&c);
            failures
        }
    }
}

fn cases(kind: Hunter, counts: &Counts) -> u64 {
    match kind {
        Hunter::Model => counts.looks + counts.checkpoints,
        Hunter::Faults => counts.failed_calls,
        Hunter::Schedules => counts.schedules,
        Hunter::Forecasts => counts.forecast_seconds,
        Hunter::Rot => counts.damages,
        Hunter::Repairs => counts.repairs,
        Hunter::Crashes => counts.states,
    }
}

/// The processor time that this process has used; where the system does not tell, the time since
/// `start`.
fn spent(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/self/stat").ok();
    let ticks = told.and_then(|text| {
        // Behind the name, the twelfth and the next: hundredths of a second as a user and in the
        // system.
        let fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
        fields.take(2).map(|t| t.parse::<u64>().ok()).sum()
    });
    ticks.map_or_else(|| start.elapsed(), |t: u64| Duration::from_millis(t * 10))
}

/// Hunts for `limit` of processor time, from `seed` on, with the kind of `first` before the others
/// and with workloads about its part.
pub fn search(
    world: &SimEnv,
    seed: u64,
    limit: Duration,
    first: Option<(Hunter, Area)>,
) -> SearchResult {
    let start = Instant::now();
    let mut order: Vec<_> = KINDS.to_vec();
    order.sort_by_key(|(kind, _)| Some(*kind) != first.map(|f| f.0));
    let (mut search, mut seen) = (SearchResult::default(), TraceSet::default());
    for round in 0.. {
        for (at, &(kind, name)) in order.iter().enumerate() {
            // The first kind has the first half of the time for itself.
            if at > 0 && spent(start) < limit / 2 {
                continue;
            }
            if spent(start) >= limit {
                return search;
            }
            // Half of the others' seeds are about everything.
            let about = first.map(|f| f.1).filter(|_| at == 0 || round % 2 == 0);
            let seed = about.map_or(seed + round, |area| seed_about(area, seed + round));
            let before = cases(kind, &search.counts);
            let done = catch_unwind(AssertUnwindSafe(|| {
                turn(kind, world, seed, about, &mut seen, &mut search.counts)
            }));
            search.cases += cases(kind, &search.counts) - before;
            let what = match done {
                Ok(failures) => failures.first().map(Failure::to_string),
                Err(_) => Some(format!("a panic at seed {seed}")),
            };
            if let Some(what) = what {
                search.found = Some((name, cases(kind, &search.counts).max(1), what));
                return search;
            }
        }
    }
    search
}
