//! Paired ratios of a step, with intervals: what the heat table and the verdict show.
//!
//! The runs of A B B A are paired in the order in which they were made: the first of each engine in
//! a pair with the first of the other, and so with the second. The interval is that of
//! [`crate::compare::Ratio`]. A ratio is turned so that more than 1 is better, whatever the figure.

use super::record::{Aim, Outcome, Record};
use crate::compare::Ratio;

/// What a ratio says.
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

/// A ratio beyond which a cell is coloured.
pub const BLUE: f64 = 1.05;
/// A ratio below which a cell is coloured.
pub const YELLOW: f64 = 0.95;

/// The ratios of an engine to the base in one step: more than 1 is better for the engine. `None`
/// where one of them has no such figure.
pub fn of(record: &Record, step: usize, engine: usize) -> Option<Ratio> {
    let info = record.steps.get(step)?;
    of_figure(record, step, engine, &info.figure, info.aim)
}

/// The same for any figure.
pub fn of_figure(
    record: &Record,
    step: usize,
    engine: usize,
    figure: &str,
    aim: Aim,
) -> Option<Ratio> {
    let place = |run: &Outcome| (run.pair, run.turn);
    let base: Vec<&Outcome> = record.runs(step, record.base).collect();
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
    Ratio::of(&ratios)
}

/// What a ratio says.
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
