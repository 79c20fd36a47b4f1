//! Writers in front of trees of numbers: the real load, pace and pickers on a machine that is too
//! slow, or fast enough, in counted time.
//!
//! Beside them, writers of a tree whose space is bounded, and plans of such trees (`space_plans`).
//!
//! Rules, whatever the options: nobody stands still; the zone that is told is that of RocksDB's
//! triggers; the tree settles between the slowdown and the stop, with room on both sides; writers
//! that compactions keep up with have no pace; a tree takes no more than its bound. Deterministic
//! by its seed.

use crate::model::judge::{Violation, ViolationKind};
use crate::rng::Rng;
use crate::run::{Counts, Failure, RunPart};
use crate::space_plans;
use esker_lsm::forecast::paced::{Machine, PacedForecast, Second};
use esker_lsm::load::{StallTriggers, Zone};
use esker_lsm::pick::{CompactionStyle, Policy};
use esker_status::Result;

/// Trees of a seed whose space is bounded.
const TREES: u64 = 50;
/// Seconds of a forecast, and how many of them it takes until the tree has settled.
const SECONDS: usize = 200;
const SETTLED_FROM: usize = 100;
/// The loads between which overloaded trees settle on average: a little above the slowdown.
const SETTLED: std::ops::Range<f64> = 0.8..1.42;

/// The draws of one seed.
#[derive(Clone, Copy, Debug)]
struct Shape {
    memtable: u64,
    slowdown: u64,
    stop: u64,
    machine: Machine,
    is_overloaded: bool,
}

impl Shape {
    fn of(seed: u64) -> Shape {
        let mut rng = Rng::new(seed);
        let memtable = (4 << 20) << rng.below(3);
        let slowdown = 12 + rng.below(13);
        let jobs = 1 + rng.index(2);
        let is_overloaded = !rng.one_in(4);
        let compaction = (60 + rng.below(140)) as f64 * 1e6;
        let offered = if is_overloaded {
            400e6
        } else {
            compaction * jobs as f64 / 12.0
        };
        Shape {
            memtable,
            slowdown,
            stop: slowdown + 10 + rng.below(13),
            machine: Machine {
                offered,
                compaction,
                flush: 250e6,
                jobs,
            },
            is_overloaded,
        }
    }

    fn run(&self) -> Result<Vec<Second>> {
        let policy = Policy {
            write_buffer_size: self.memtable,
            target_file_size_base: self.memtable,
            max_bytes_for_level_base: 4 * self.memtable,
            stall_triggers: StallTriggers::new((self.slowdown as i64, self.stop as i64), (0, 0)),
            ..Policy::default()
        };
        PacedForecast::new(policy, 1_000_000, self.machine)?.run(SECONDS)
    }

    /// The first rule that one second breaks.
    fn judge_second(&self, second: &Second) -> Option<String> {
        let tables = second.tables as u64;
        // A stack of runs and debts count as well: they add to the load, and take nothing away.
        let least = if tables >= self.stop {
            Zone::Stop
        } else if tables >= self.slowdown {
            Zone::Slow
        } else {
            Zone::Calm
        };
        let zone = second.load.zone();
        if zone < least {
            return Some(format!("{tables} tables are told as {zone:?}"));
        }
        let is_told_slow = zone >= Zone::Slow;
        if is_told_slow && tables < self.slowdown && second.load.level() < 1.0 {
            return Some(format!(
                "{tables} tables and a load of {:.2} are told as {zone:?}",
                second.load.level()
            ));
        }
        (second.stopped > 0.05).then(|| format!("writers stand still for {:.2} s", second.stopped))
    }

    fn judge(&self, seconds: &[Second]) -> Option<String> {
        if let Some(broken) = seconds.iter().find_map(|s| self.judge_second(s)) {
            return Some(broken);
        }
        let settled = &seconds[SETTLED_FROM..];
        let mean = settled.iter().map(|s| s.mean_load).sum::<f64>() / settled.len() as f64;
        let paced = settled.iter().map(|s| s.paced).sum::<f64>();
        if self.is_overloaded {
            let what = format!("an overloaded tree settles at a load of {mean:.2}");
            (!SETTLED.contains(&mean)).then_some(what)
        } else {
            (paced > 5.0).then(|| format!("writers below the drain have a pace for {paced:.1} s"))
        }
    }
}

/// Bytes of an entry of a forecast, at least.
const ENTRY: u64 = 400;
/// Seconds of the forecast of a bounded tree.
const BOUNDED_SECONDS: usize = 60;

/// Bytes of a tree that is overwritten under a bound on its space; the rule that it breaks.
fn broken_bound(seed: u64) -> Result<Option<String>> {
    let mut rng = Rng::new(seed);
    let memtable = (4 << 20) << rng.below(3);
    let percent = 115 + rng.below(60) as u32;
    let trigger = 4;
    let policy = Policy {
        compaction_style: if rng.one_in(2) {
            CompactionStyle::Level
        } else {
            CompactionStyle::Universal
        },
        write_buffer_size: memtable,
        target_file_size_base: memtable,
        max_bytes_for_level_base: trigger * memtable,
        level0_file_num_compaction_trigger: trigger as u32,
        max_space_amplification_percent: percent,
        ..Policy::default()
    };
    let machine = Machine {
        offered: 400e6,
        compaction: (30 + rng.below(300)) as f64 * 1e6,
        flush: 250e6,
        jobs: 2 + rng.index(3),
    };
    // A smaller tree may pass its bound for a moment: one merge takes the room of it.
    let least = 3 * trigger * memtable * 100 / u64::from(percent - 100) / ENTRY;
    let keys = least + rng.below(4_000_000);
    let mut store = PacedForecast::new(policy.clone(), keys, machine)?;
    let alive = store.tree().version().bytes();
    let room = alive * u64::from(percent - 100) / 100;
    let seconds = store.run(BOUNDED_SECONDS)?;
    let most = seconds.iter().map(|s| s.taken).fold(0.0, f64::max);
    let told = || {
        format!(
            "{:.1} % of {} MB, {percent} % allowed, memtables of {} MB, {:?}, {machine:?}",
            most * 100.0 / alive as f64,
            alive >> 20,
            memtable >> 20,
            policy.compaction_style
        )
    };
    Ok((most > (alive + room) as f64).then(told))
}

/// One forecast; the rule that it breaks.
pub fn turn(seed: u64, counts: &mut Counts) -> Vec<Failure> {
    counts.forecast_seconds += SECONDS as u64;
    let shape = Shape::of(seed);
    let broken = match shape.run() {
        Ok(seconds) => shape.judge(&seconds),
        Err(e) => Some(e.to_string()),
    };
    let text = broken.map(|what| format!("{what}: {shape:?}"));
    let text = text.or_else(|| broken_bound(seed).unwrap_or_else(|e| Some(e.to_string())));
    let trees = seed.wrapping_mul(TREES)..=seed.wrapping_mul(TREES).saturating_add(TREES - 1);
    let text = text.or_else(|| {
        trees
            .into_iter()
            .find_map(|tree| match space_plans::broken(tree) {
                Ok(broken) => broken.map(|what| format!("tree {tree}: {what}")),
                Err(e) => Some(format!("tree {tree}: {e}")),
            })
    });
    text.map(|text| Failure {
        seed,
        story: RunPart::Forecast,
        cuts: Vec::new(),
        violation: Violation {
            kind: ViolationKind::Broken,
            text,
        },
        left: String::new(),
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_keep_the_rules() {
        let mut counts = Counts::default();
        for seed in 0..12 {
            let failures = turn(seed, &mut counts);
            assert!(failures.is_empty(), "{}", failures[0]);
        }
    }
}
