//! Power cuts at random moments of random workloads, failing calls, and racing threads: nothing
//! acknowledged as synced is missing, and what is there is a prefix.
//!
//! `ESKER_SIM_SEED` starts at another seed, `ESKER_SIM_STATES`, `ESKER_SIM_FAULTS`,
//! `ESKER_SIM_LOOKS`, `ESKER_SIM_COPIES` and `ESKER_SIM_SCHEDULES` give other numbers, as CI does;
//! by the million use the binary `esker-sim`.

use esker_sim::run::Failure;
use esker_sim::seed_sweep::{CaseCounts, SweepPlan, SweepReport, sweep};
use esker_sim::sim_env::SimEnv;

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Runs until there are this many cases; there is no violation.
fn clean(wanted: CaseCounts) -> SweepReport {
    let plan = SweepPlan {
        seed: number("ESKER_SIM_SEED", 1),
        wanted,
        limit: None,
        jobs: 0,
        first: true,
    };
    println!("from seed {}", plan.seed);
    let found = sweep(&SimEnv::controlled(), &plan);
    println!("{found}");
    let shown: Vec<String> = found.failures.iter().map(Failure::to_string).collect();
    assert!(found.violations() == 0, "{}", shown.join("\n"));
    assert!(
        found.counts.refused * 1000 <= found.counts.states,
        "too many are refused"
    );
    found
}

#[test]
fn power_cuts_leave_a_prefix_with_everything_that_was_synced() {
    let found = clean(CaseCounts {
        states: number("ESKER_SIM_STATES", 10_000),
        looks: number("ESKER_SIM_LOOKS", 1_000),
        ..CaseCounts::default()
    });
    assert!(
        found.counts.nested * 5 > found.counts.states,
        "recoveries are crashed too"
    );
    println!("{} tables written over others", found.counts.written_over);
    assert!(
        found.counts.written_over > 0,
        "no table was written over another one"
    );
    println!("{} logs begun in older ones", found.counts.begun_over);
    assert!(found.counts.begun_over > 0, "no log began in an older one");
}

#[test]
fn failed_calls_lose_nothing_that_was_acknowledged() {
    clean(CaseCounts {
        failed_calls: number("ESKER_SIM_FAULTS", 700),
        ..CaseCounts::default()
    });
}

#[test]
fn copies_hold_what_the_database_held() {
    let found = clean(CaseCounts {
        copies: number("ESKER_SIM_COPIES", 600),
        ..CaseCounts::default()
    });
    assert!(found.counts.restores * 5 > found.counts.checkpoints);
}

#[test]
fn threads_in_any_order_keep_what_is_promised() {
    clean(CaseCounts {
        schedules: number("ESKER_SIM_SCHEDULES", 3_000),
        ..CaseCounts::default()
    });
}
