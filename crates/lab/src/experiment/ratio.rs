//! Paired ratios of a step, with intervals: what the heat table and the verdict show.
//!
//! The runs of A B B A are paired in the order in which they were made: the first of each engine in
//! a pair with the first of the other, and so with the second. The interval is that of
//! [`crate::compare::Ratio`]. A ratio is turned so that more than 1 is better, whatever the figure.

use super::record::{Aim, Outcome, Record};
use crate::compare::Ratio;

/// The meaning of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is beyond the threshold, to the good.
    Win,
    /// The whole interval is beyond the threshold, to the bad.
    Loss,
    /// The interval reaches into the band around 1.
    Even,
    /// There are too few runs for an interval.
    Open,
}

/// The factor beyond which the whole interval of a win or a loss lies.
pub use crate::compare::THRESHOLD as BEYOND;
/// A ratio beyond which a difference is worth a word although its interval reaches over 1.
pub const BLUE: f64 = 1.05;
/// A ratio below which it is.
pub const YELLOW: f64 = 0.95;

/// The ratios of an engine to the base in one step: more than 1 is better for the engine. `None`
/// where one of them has no such figure.
pub fn of(record: &Record, step: usize, engine: usize) -> Option<Ratio> {
    let info = record.steps.get(step)?;
    of_figure(record, step, engine, &info.figure, info.aim)
}

/// Returns the ratio of any figure.
pub fn of_figure(
    record: &Record,
    step: usize,
    engine: usize,
    figure: &str,
    aim: Aim,
) -> Option<Ratio> {
    between(record, step, [engine, record.base], figure, aim)
}

/// The ratios of the first engine to the second, in any figure.
pub fn between(
    record: &Record,
    step: usize,
    engines: [usize; 2],
    figure: &str,
    aim: Aim,
) -> Option<Ratio> {
    Ratio::of(&paired(record, step, engines, figure, aim))
}

/// All paired ratios of a figure, in the order of running.
fn paired(
    record: &Record,
    step: usize,
    [engine, other]: [usize; 2],
    figure: &str,
    aim: Aim,
) -> Vec<f64> {
    let place = |run: &Outcome| (run.pair, run.turn);
    let base: Vec<&Outcome> = record.runs(step, other).collect();
    let mut ratios = Vec::new();
    for run in record.runs(step, engine) {
        let Some(other) = base.iter().find(|other| place(other) == place(run)) else {
            continue;
        };
        let (Some(ours), Some(theirs)) = (run.figure(figure), other.figure(figure)) else {
            continue;
        };
        let (above, below) = match aim {
            Aim::Less => (theirs, ours),
            _ => (ours, theirs),
        };
        if above > 0.0 && below > 0.0 {
            ratios.push(above / below);
        }
    }
    ratios
}

/// The figure that says how many rows an operation reads.
pub const ROWS: &str = "rows_op";
/// By what part the rows of an operation may differ between engines.
const OTHER_ROWS: f64 = 0.1;

/// Tells whether an operation reads other numbers of rows on two engines, which then did not do the
/// same work: timed writes before a step leave other rows on a faster engine.
pub fn unequal(record: &Record, step: usize, [engine, other]: [usize; 2]) -> bool {
    let rows = |engine| record.median(step, engine, ROWS);
    let (Some(own), Some(base)) = (rows(engine), rows(other)) else {
        return false;
    };
    (own - base).abs() > OTHER_ROWS * own.max(base)
}

/// The chance that identical engines are told apart in any step of a run.
pub const WRONG: f64 = 0.05;

/// The chance that so uneven a split of ratios above and below 1 comes about when each side is as
/// likely as the other; ratios of exactly 1 are left out.
fn sign_test(ratios: &[f64]) -> f64 {
    let above = ratios.iter().filter(|ratio| **ratio > 1.0).count();
    let below = ratios.iter().filter(|ratio| **ratio < 1.0).count();
    let (n, most) = (above + below, above.max(below));
    // Binomial coefficients from the right: C(n, n), C(n, n - 1) and so on.
    let (mut term, mut tail) = (1.0, 0.0);
    for k in (most..=n).rev() {
        tail += term;
        term *= k as f64 / (n - k + 1) as f64;
    }
    (2.0 * tail * 0.5f64.powi(n as i32)).min(1.0)
}

/// Returns whether `pairs` can tell anything apart in `steps` steps at all.
pub fn can_tell_apart(pairs: usize, steps: usize) -> bool {
    sign_test(&vec![2.0; 2 * pairs]) * steps as f64 <= WRONG
}

/// The judged steps in which an engine differs from the base, with each ratio.
///
/// The verdict of one step has a doubt of its own, and a run has many steps. Here a step differs if
/// its interval lies beyond the threshold, and if a sign test says so after Holm's correction for
/// the number of steps: identical engines are told apart in one run of 20 at most, however the
/// noise is distributed.
pub fn told_apart(record: &Record, engine: usize) -> Vec<(usize, Ratio)> {
    let judged = |step: &usize| {
        let info = &record.steps[*step];
        let is_equal = !unequal(record, *step, [engine, record.base]);
        info.counts && info.aim != Aim::Neither && is_equal
    };
    let steps = (0..record.steps.len()).filter(judged);
    let mut found: Vec<(f64, usize, Vec<f64>)> = steps
        .filter_map(|step| {
            let info = &record.steps[step];
            let engines = [engine, record.base];
            let ratios = paired(record, step, engines, &info.figure, info.aim);
            (!ratios.is_empty()).then(|| (sign_test(&ratios), step, ratios))
        })
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count = found.len();
    let sure = found.into_iter().enumerate();
    let sure = sure.take_while(|(at, (chance, _, _))| chance * (count - at) as f64 <= WRONG);
    let mut out: Vec<(usize, Ratio)> = sure
        .filter_map(|(_, (_, step, ratios))| Some((step, Ratio::of(&ratios)?)))
        .filter(|(_, ratio)| matches!(verdict(ratio), Verdict::Win | Verdict::Loss))
        .collect();
    out.sort_by_key(|(step, _)| *step);
    out
}

/// The meaning of a ratio.
pub fn verdict(ratio: &Ratio) -> Verdict {
    match ratio.verdict() {
        "win" => Verdict::Win,
        "loss" => Verdict::Loss,
        "even" => Verdict::Even,
        _ => Verdict::Open,
    }
}

/// The geometric mean of some numbers; `None` for none.
pub fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, n), value| (sum + value.ln(), n + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::Step;

    fn record(aim: Aim, pairs: &[(f64, f64)]) -> Record {
        let mut results = Vec::new();
        for (at, (ours, theirs)) in pairs.iter().enumerate() {
            for (engine, value) in [(0, ours), (1, theirs)] {
                let mut run = Outcome {
                    engine,
                    pair: at / 2,
                    turn: at % 2,
                    ..Outcome::default()
                };
                run.put("f", *value, "");
                results.push(run);
            }
        }
        Record {
            base: 1,
            steps: vec![Step {
                figure: "f".into(),
                aim,
                counts: true,
                ..Step::default()
            }],
            results,
            ..Record::default()
        }
    }

    #[test]
    fn runs_are_paired_in_order_and_turned_to_the_good() {
        let pairs = [(20.0, 10.0), (60.0, 20.0)];
        let more = of(&record(Aim::More, &pairs), 0, 0).expect("a ratio");
        assert_eq!((more.min, more.max, more.median), (2.0, 3.0, 2.5));
        assert_eq!(verdict(&more), Verdict::Open);
        let less = of(&record(Aim::Less, &pairs), 0, 0).expect("a ratio");
        assert_eq!((less.min, less.max), (1.0 / 3.0, 0.5));
        let alone = Record {
            results: Vec::new(),
            ..record(Aim::More, &pairs)
        };
        assert!(of(&alone, 0, 0).is_none() && of(&alone, 7, 0).is_none());
    }

    #[test]
    fn a_sign_test_counts_sides() {
        assert_eq!(sign_test(&[2.0; 10]), 2.0 / 1024.0);
        assert_eq!(sign_test(&[0.5; 6]), 2.0 / 64.0);
        let nine = [&[0.5][..], &[2.0; 9]].concat();
        assert!((sign_test(&nine) - 22.0 / 1024.0).abs() < 1e-12);
        assert_eq!(sign_test(&[2.0, 0.5]), 1.0);
        assert_eq!(sign_test(&[1.0, 1.0]), 1.0);
        assert!(can_tell_apart(5, 19) && !can_tell_apart(3, 19) && can_tell_apart(3, 1));
    }

    #[test]
    fn a_step_that_differs_is_told_apart_and_one_with_a_doubt_is_not() {
        let sure = record(Aim::More, &[(5.0, 10.0); 10]);
        let found = told_apart(&sure, 0);
        assert_eq!((found.len(), found[0].0, found[0].1.median), (1, 0, 0.5));
        // A difference below the threshold, and one with ratios on both sides.
        assert!(told_apart(&record(Aim::More, &[(10.1, 10.0); 10]), 0).is_empty());
        let mut mixed = [(5.0, 10.0); 10];
        (mixed[3], mixed[6]) = ((11.0, 10.0), (12.0, 10.0));
        assert!(told_apart(&record(Aim::More, &mixed), 0).is_empty());
    }

    #[test]
    fn three_pairs_give_a_verdict() {
        let of = |ours: f64| of(&record(Aim::More, &[(ours, 10.0); 6]), 0, 0).expect("a ratio");
        assert_eq!(verdict(&of(20.0)), Verdict::Win);
        assert_eq!(verdict(&of(5.0)), Verdict::Loss);
        assert_eq!(verdict(&of(10.1)), Verdict::Even);
        let mean = geometric_mean([2.0, 8.0].into_iter()).expect("a mean");
        assert!((mean - 4.0).abs() < 1e-9, "{mean}");
        assert_eq!(geometric_mean(std::iter::empty()), None);
    }
}
