//! Comparisons of a record in words: which engine is better in what, by how much, in absolutes.

use crate::compare::{ENOUGH_RATIOS, Ratio};
use crate::experiment::ratio::{self, BLUE, Verdict, YELLOW, verdict};
use crate::experiment::record::{Aim, Record};
use crate::experiment::validity::REACHED;

use super::html::with_unit;

/// Figures beside the one of a step that may be worse: name, what it is called, and the value from
/// which on it is worth a word.
pub(super) const COSTS: [(&str, &str, f64); 6] = [
    ("cpu_us_op", "processor time of an operation", 0.0),
    ("p99", "p99", 20.0),
    ("p99.9", "p99.9", 100.0),
    ("w_amp", "write amplification", 0.0),
    ("peak_sz", "most bytes of the directory", 0.0),
    ("rss", "resident memory", 0.0),
];

/// How sure a comparison is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    /// The whole interval lies beyond 3 %.
    Sure,
    /// There are too few pairs for an interval, and all of them lie beyond 3 %.
    Seen,
    /// Pairs lie on both sides.
    Noise,
}

/// The sort of a figure that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FigureKind {
    /// The figure of a step.
    Step,
    /// A further figure that the experiment asks for.
    Ask,
    /// One of [`COSTS`].
    Cost,
}

/// A figure of a step in which an engine is better or worse than another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub(super) step: usize,
    pub(super) other: usize,
    pub(super) kind: FigureKind,
    /// The name of a cost or a further figure; nothing for the figure of the step.
    pub(super) what: String,
    aim: Aim,
    unit: String,
    /// Medians of the engine and of the other.
    pub(super) ours: f64,
    pub(super) theirs: f64,
    /// More than 1 is better, infinite and 0 where one of them has nothing.
    pub(super) ratio: f64,
    pub(super) interval: String,
    pub(super) doubt: Certainty,
}

/// On which side of 1 a ratio lies, and how sure that is; `None` within 3 %, or within 5 % where
/// the pairs lie on both sides.
pub(super) fn side(found: &Ratio) -> Option<(bool, Certainty)> {
    let is_better = found.median > 1.0;
    let beyond = |low: f64, high: f64| low > ratio::BEYOND || high < 1.0 / ratio::BEYOND;
    match verdict(found) {
        Verdict::Win | Verdict::Loss => Some((is_better, Certainty::Sure)),
        Verdict::Open if beyond(found.min, found.max) => Some((is_better, Certainty::Seen)),
        _ if !(YELLOW..=BLUE).contains(&found.median) => Some((is_better, Certainty::Noise)),
        _ => None,
    }
}

/// The interval of a ratio, or the range of what was seen.
pub(super) fn interval(found: &Ratio) -> String {
    if found.has_interval() {
        format!("{:.2}..{:.2}", found.low, found.high)
    } else {
        format!("{:.2}..{:.2} seen", found.min, found.max)
    }
}

/// Tells whether the paced writer beside a step missed its rate, on one of two engines.
pub(super) fn missed(record: &Record, step: usize, engines: [usize; 2]) -> bool {
    let mut targets = engines.iter().flat_map(|e| record.runs(step, *e));
    targets.any(|run| {
        let target = run.target.unwrap_or_default();
        target.asked > 0.0 && target.reached < REACHED * target.asked
    })
}

/// Steps that are compared on two engines: all that have an aim and the same work on both.
pub(super) fn compared(record: &Record, engines: [usize; 2]) -> Vec<usize> {
    let steps = record.steps.iter().enumerate();
    let steps = steps
        .filter(|(at, step)| step.aim != Aim::Neither && !ratio::unequal(record, *at, engines));
    steps.map(|(at, _)| at).collect()
}

/// The steps of the mean: a step whose paced writer missed its rate is not judged.
pub(super) fn counted(record: &Record, engines: [usize; 2]) -> Vec<usize> {
    let mut out = compared(record, engines);
    out.retain(|step| record.steps[*step].counts && !missed(record, *step, engines));
    out
}

impl Finding {
    /// Everything in which an engine is better or worse than another, the surest and the largest
    /// first.
    pub(super) fn all(record: &Record, engines: [usize; 2]) -> Vec<Finding> {
        let mut out = Vec::new();
        for step in compared(record, engines) {
            let info = &record.steps[step];
            if !missed(record, step, engines) {
                let figure = (info.figure.as_str(), info.aim);
                out.extend(Finding::of(
                    record,
                    step,
                    engines,
                    FigureKind::Step,
                    "",
                    figure,
                ));
            }
            for (name, what, least) in COSTS {
                let ours = record.median(step, engines[0], name).unwrap_or(0.0);
                if ours >= least && name != info.figure {
                    let figure = (name, Aim::Less);
                    out.extend(Finding::of(
                        record,
                        step,
                        engines,
                        FigureKind::Cost,
                        what,
                        figure,
                    ));
                }
            }
        }
        for (step, info) in record.steps.iter().enumerate() {
            let asks = info.asks.iter();
            for ask in asks.filter(|_| !ratio::unequal(record, step, engines)) {
                let figure = (ask.figure.as_str(), ask.aim);
                out.extend(Finding::of(
                    record,
                    step,
                    engines,
                    FigureKind::Ask,
                    &ask.what,
                    figure,
                ));
            }
        }
        let size = |found: &Finding| found.ratio.min(1.0 / found.ratio);
        // Of figures that one engine does not have at all the largest of the other says most.
        let most = |found: &Finding| found.ours.max(found.theirs);
        out.sort_by(|a, b| {
            let by_size = size(a).total_cmp(&size(b));
            let by_most = most(b).total_cmp(&most(a));
            a.doubt.cmp(&b.doubt).then(by_size).then(by_most)
        });
        out
    }

    fn of(
        record: &Record,
        step: usize,
        engines: [usize; 2],
        kind: FigureKind,
        what: &str,
        (figure, aim): (&str, Aim),
    ) -> Option<Finding> {
        let [ours, theirs] = engines.map(|engine| record.median(step, engine, figure));
        let (ours, theirs) = (ours?, theirs?);
        let mut runs = record.runs(step, engines[0]);
        let unit = runs.find_map(|run| Some(run.figures.get(figure)?.unit.clone()));
        let none = kind == FigureKind::Ask && (ours == 0.0) != (theirs == 0.0);
        let (ratio, interval, is_better, doubt) = if none {
            let is_better = (ours > 0.0) == (aim == Aim::More);
            let runs = record.runs(step, engines[0]).count();
            let doubt = if runs < ENOUGH_RATIOS {
                Certainty::Seen
            } else {
                Certainty::Sure
            };
            let ratio = if is_better { f64::INFINITY } else { 0.0 };
            (ratio, format!("{runs} runs"), is_better, doubt)
        } else {
            let found = ratio::between(record, step, engines, figure, aim)?;
            let (is_better, doubt) = side(&found)?;
            (found.median, interval(&found), is_better, doubt)
        };
        debug_assert_eq!(is_better, ratio > 1.0);
        Some(Finding {
            step,
            other: engines[1],
            kind,
            what: what.to_string(),
            aim,
            unit: unit.unwrap_or_default(),
            ours,
            theirs,
            ratio,
            interval,
            doubt,
        })
    }

    pub(super) fn is_loss(&self) -> bool {
        self.ratio < 1.0
    }

    /// Tells whether more of it is better.
    pub(super) fn is_rate(&self) -> bool {
        self.aim == Aim::More
    }

    /// The step, and what is compared in it.
    pub(super) fn place(&self, record: &Record) -> String {
        let step = &record.steps[self.step].name;
        match self.what.as_str() {
            "" => step.clone(),
            what => format!("{step}, {what}"),
        }
    }

    /// `1.9 times as long, 302 us against 157 us`.
    pub(super) fn words(&self, record: &Record) -> String {
        let other = &record.engines[self.other].name;
        let (ours, theirs) = (
            with_unit(self.ours, &self.unit),
            with_unit(self.theirs, &self.unit),
        );
        if self.ours == 0.0 {
            return format!("none, where {other} has {theirs}");
        }
        if self.theirs == 0.0 {
            return format!("{ours}, where {other} has none");
        }
        let (times, how) = match (self.aim, self.unit.as_str()) {
            (Aim::More, _) => (self.ratio, "the rate"),
            (_, "us" | "s" | "ms") => (1.0 / self.ratio, "as long"),
            _ => (1.0 / self.ratio, "as much"),
        };
        format!("{} times {how}, {ours} against {theirs}", times_of(times))
    }
}

/// A factor with the digits that mean something.
fn times_of(times: f64) -> String {
    match times {
        _ if times >= 100.0 => format!("{times:.0}"),
        _ if times >= 10.0 => format!("{times:.1}"),
        _ => format!("{times:.2}"),
    }
}
