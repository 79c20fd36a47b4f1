//! Random programs of calls on real threads against a model, short.
//!
//! `ESKER_MODEL_SECONDS` and `ESKER_MODEL_SEED` ask for more. Long runs are
//! `cargo run --release -p esker-differential -- model`; docs/testing.md has them.

#[path = "common/loaded.rs"]
mod loaded;

use esker_differential::model::{ModelPlan, run};
use loaded::{directory, ours};
use std::time::Duration;

fn number(name: &str, otherwise: u64) -> u64 {
    let asked = std::env::var(name).ok();
    asked.map_or(otherwise, |text| text.parse().expect("it is a number"))
}

#[test]
fn every_answer_beside_running_jobs_is_the_models() {
    let place = directory();
    let seconds = number("ESKER_MODEL_SECONDS", 45);
    let plan = ModelPlan {
        library: ours(),
        seed: number("ESKER_MODEL_SEED", 1),
        time: Duration::from_secs(seconds),
        shrink: Duration::from_secs(60),
        directory: place.path().join("model"),
        calls: 600,
        without: Vec::new(),
        trace: false,
        kill: false,
    };
    let outcome = run(&plan).expect("the library is loaded");
    println!(
        "model: {:.1?}, seed {}: {}",
        outcome.took,
        plan.seed,
        outcome.line()
    );
    if let Some((seed, failure, program)) = &outcome.failure {
        panic!("seed {seed}: {failure}\n{program}");
    }
    assert!(outcome.rounds > outcome.refused, "most databases open");
    for kind in [
        "compact_range",
        "refit",
        "ingest",
        "checkpoint",
        "backup",
        "copies compared",
    ] {
        assert!(outcome.count(kind) > 0, "no {kind}: {:?}", outcome.counts);
    }
}
