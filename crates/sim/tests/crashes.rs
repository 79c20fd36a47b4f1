//! Power cuts at random moments of random workloads: nothing acknowledged as synced is missing, and what is there is a prefix.
//!
//! `ESKER_SIM_SEED` starts at another seed, `ESKER_SIM_STATES` and `ESKER_SIM_FAULTS` give other numbers; by the million use
//! the binary `esker-sim`.

use esker_sim::run::{Counts, Failure, USUAL, run};
use esker_sim::trial::trials;
use esker_sim::world::World;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn check(what: &str, counts: &Counts, failures: &[Failure]) {
    println!(
        "{what}: {} states ({} in recovery, {} refused rightly), {} trials, {} failed calls, {} workloads, {} violations",
        counts.states,
        counts.nested,
        counts.refused,
        counts.faults,
        counts.failed_calls,
        counts.runs,
        failures.len()
    );
    let shown: Vec<String> = failures.iter().take(5).map(Failure::to_string).collect();
    assert!(failures.is_empty(), "{}", shown.join("\n"));
    assert!(
        counts.refused * 1000 <= counts.states,
        "too many are refused"
    );
}

#[test]
fn power_cuts_leave_a_prefix_with_everything_that_was_synced() {
    let (world, mut counts, mut failures) = (World::controlled(), Counts::default(), Vec::new());
    let mut seed = number("ESKER_SIM_SEED", 1);
    let wanted = number("ESKER_SIM_STATES", 20_000);
    println!("from seed {seed}");
    while counts.states < wanted && failures.is_empty() {
        let (c, f) = run(&world, seed, USUAL);
        counts.add(&c);
        failures.extend(f);
        seed += 1;
    }
    check("power cuts", &counts, &failures);
    assert!(
        counts.nested * 5 > counts.states,
        "recoveries are crashed too"
    );
}

#[test]
fn failed_calls_lose_nothing_that_was_acknowledged() {
    let (world, mut counts, mut failures) = (World::controlled(), Counts::default(), Vec::new());
    let mut seed = number("ESKER_SIM_SEED", 1);
    let wanted = number("ESKER_SIM_FAULTS", 700);
    println!("from seed {seed}");
    while counts.failed_calls < wanted && failures.is_empty() {
        failures.extend(trials(&world, seed, 40, &mut counts));
        seed += 1;
    }
    check("failed calls", &counts, &failures);
}
