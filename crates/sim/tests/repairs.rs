//! Repairs that end early lose nothing that a repair in one go keeps.
//!
//! `ESKER_SIM_SEED` starts at another seed, `ESKER_SIM_REPAIRS` gives another number of
//! interruptions.

use esker_sim::corruption::repairs;
use esker_sim::run::Counts;

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn repairs_that_end_early_can_be_done_again() {
    let wanted = number("ESKER_SIM_REPAIRS", 1_500);
    let (mut seed, mut counts) = (number("ESKER_SIM_SEED", 1), Counts::default());
    println!("from seed {seed}");
    while counts.repairs < wanted {
        let failures = repairs::turn(seed, repairs::USUAL, &mut counts);
        let shown: Vec<String> = failures.iter().take(3).map(ToString::to_string).collect();
        assert!(failures.is_empty(), "{}", shown.join("\n"));
        seed += 1;
    }
    println!(
        "repairs that ended early: {}, violations: 0, to seed {seed}",
        counts.repairs
    );
}
