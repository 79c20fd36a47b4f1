//! The steps, the search, and the rule that tells builds apart, on noise of several kinds.

use super::*;
use crate::experiment::record::{Outcome, Step};
use crate::generate::Rng;

fn request(settings: &[(&str, &str)]) -> Request {
    Request {
        pairs: 5,
        ..Request::of("regress", &SETTINGS, true, &["esker"], settings)
    }
}

#[test]
fn there_are_sixteen_steps_and_they_run_in_order() {
    let steps = recipe::chain("", &stages(&request(&[])).expect("stages")).steps;
    assert_eq!(steps.len(), 16);
    assert!(steps.iter().all(|step| step.counts));
    let wrong = request(&[("bisect", "nonsense")]);
    let said = bisect(&wrong, Path::new("."), "").expect_err("no such step");
    let said = said.to_string();
    assert!(said.contains("the steps are fillseq"), "{said}");
}

#[test]
fn single_steps_run_behind_the_load() {
    let names = |only: &str| -> Vec<String> {
        let stages = chosen(&request(&[("only", only)])).expect("stages");
        let parts = stages.iter().flat_map(|stage| &stage.parts);
        parts.map(|part| part.benchmark.to_string()).collect()
    };
    assert_eq!(
        names("readrandom"),
        ["fillseq", "waitforcompaction", "readrandom"]
    );
    assert_eq!(names("fillseq"), ["fillseq", "waitforcompaction"]);
    assert!(names("instructions of readrandom").is_empty());
    assert_eq!(names("").len(), 19);
    let both = request(&[("only", "readrandom,instructions of readrandom")]);
    let are_counted = instructions::are_counted(&both).expect("a number");
    assert_eq!(
        counted(&both).expect("counts").count(),
        usize::from(are_counted)
    );
    assert_eq!(
        counted(&request(&[("instructions", "0")]))
            .expect("none")
            .count(),
        0
    );
    let wrong = chosen(&request(&[("only", "nonsense")])).expect_err("no such step");
    assert!(
        wrong.to_string().contains("instructions of seekrandom"),
        "{wrong}"
    );
}

#[test]
fn the_first_bad_one_is_found_with_few_comparisons() {
    for count in 2..40 {
        for bad in 1..=count {
            let mut asked = 0;
            let found = first_bad(count, |at| {
                asked += 1;
                Ok(at >= bad)
            });
            assert_eq!(found, Ok((bad < count).then_some(bad)));
            assert!(asked <= 2 + count.ilog2() + 1, "{asked} of {count}");
        }
    }
}

/// How runs of one build differ from each other.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// A normal distribution with this deviation.
    Normal(f64),
    /// One per cent, and 30 % off in one run of ten.
    Outliers,
    /// One of two speeds, 12 % apart, by chance.
    TwoSpeeds,
    /// A machine that grows slower and faster over hours.
    Drift,
}

/// Names of the judged steps of a run at the quick size.
const STEPS: usize = 19;

/// A run of five pairs, in which the second build is slower by a part in the first step.
fn simulated(noise: Noise, slower: f64, seed: u64) -> Record {
    let mut rng = Rng::new(seed + 1);
    let mut record = Record {
        pairs: 5,
        engines: ["old", "new"]
            .map(|name| Engine {
                name: name.into(),
                ..Engine::default()
            })
            .into(),
        ..Record::default()
    };
    let mut drift = [0.0; STEPS];
    for pair in 0..5 {
        for (turn, order) in [[0, 1], [1, 0]].into_iter().enumerate() {
            for engine in order {
                for (step, drift) in drift.iter_mut().enumerate() {
                    let mut normal = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                    let factor = match noise {
                        Noise::Normal(deviation) => 1.0 + deviation * normal(),
                        Noise::Outliers => {
                            let off = if rng.below(10) == 0 { 0.7 } else { 1.0 };
                            off * (1.0 + 0.02 * (rng.unit() - 0.5))
                        }
                        Noise::TwoSpeeds => 1.0 + 0.12 * rng.below(2) as f64,
                        Noise::Drift => {
                            *drift += 0.02 * normal();
                            f64::exp(*drift)
                        }
                    };
                    let is_slow = engine == 1 && step == 0;
                    let rate = 1000.0 * factor * if is_slow { 1.0 - slower } else { 1.0 };
                    let mut out = Outcome {
                        step,
                        engine,
                        pair,
                        turn,
                        ..Outcome::default()
                    };
                    out.put("ops_sec", rate.max(1.0), "ops/s");
                    record.results.push(out);
                }
            }
        }
    }
    for step in 0..STEPS {
        record.steps.push(Step {
            name: format!("step {step}"),
            figure: "ops_sec".into(),
            counts: true,
            ..Step::default()
        });
    }
    record
}

#[test]
fn identical_builds_are_told_apart_in_one_run_of_twenty_at_most() {
    const RUNS: u64 = 400;
    for noise in [
        Noise::Normal(0.01),
        Noise::Normal(0.05),
        Noise::Normal(0.15),
        Noise::Outliers,
        Noise::TwoSpeeds,
        Noise::Drift,
    ] {
        let runs = (0..RUNS).filter(|seed| {
            let record = simulated(noise, 0.0, *seed);
            !ratio::told_apart(&record, 1).is_empty()
        });
        let count = runs.count() as u64;
        println!("{noise:?}: {count} of {RUNS}");
        assert!(count * 20 <= RUNS, "{noise:?}: {count} of {RUNS}");
    }
}

#[test]
fn a_slowdown_of_five_percent_is_found_with_five_pairs() {
    const RUNS: u64 = 200;
    let found = |noise| {
        let runs = (0..RUNS).filter(|seed| {
            let found = ratio::told_apart(&simulated(noise, 0.05, *seed), 1);
            found
                .iter()
                .any(|(step, ratio)| *step == 0 && ratio.median < 1.0)
        });
        runs.count() as u64
    };
    // Instructions vary by a thousandth, rates of an idle machine by one per cent or less.
    for (deviation, least) in [(0.001, 100), (0.005, 99), (0.01, 90)] {
        let count = found(Noise::Normal(deviation));
        println!("noise of {deviation}: {count} of {RUNS}");
        assert!(
            count * 100 >= least * RUNS,
            "{deviation}: {count} of {RUNS}"
        );
    }
}

#[test]
fn the_page_says_what_was_told_apart() {
    let said = told_apart(&simulated(Noise::Normal(0.005), 0.05, 1));
    assert!(
        said[0].starts_with("new differs from old in step 0 (0.9"),
        "{said:?}"
    );
    let said = told_apart(&simulated(Noise::Normal(0.005), 0.0, 1));
    assert_eq!(said, ["new and old are not told apart in any of 19 steps."]);
    let few = Record {
        pairs: 3,
        ..simulated(Noise::Normal(0.005), 0.0, 1)
    };
    assert!(told_apart(&few)[0].contains("more are needed"));
    let mut busy = simulated(Noise::Normal(0.005), 0.05, 1);
    busy.results[0].others = Some(0.7);
    assert_eq!(
        told_apart(&busy),
        ["new and old are not told apart: others took 70 % of the processors."]
    );
}
