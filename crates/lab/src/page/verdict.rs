//! What a record says, in sentences: losses first, then means, costs and doubts.

use crate::compare::Ratio;
use crate::experiment::ratio::{self, BLUE, Verdict, YELLOW, geometric_mean, verdict};
use crate::experiment::record::{Aim, Record};
use crate::experiment::validity::REACHED;

use super::html::number;

/// Figures beside the rate that may be worse: name, what it is called, and the value from which on
/// it is worth a word.
pub(super) const COSTS: [(&str, &str, f64); 6] = [
    ("cpu_us_op", "processor time of an operation", 0.0),
    ("p99", "p99", 20.0),
    ("p99.9", "p99.9", 100.0),
    ("w_amp", "write amplification", 0.0),
    ("peak_sz", "most bytes of the directory", 0.0),
    ("rss", "resident memory", 0.0),
];

/// A step or a cost in which an engine is worse than the base.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Loss {
    pub(super) step: usize,
    pub(super) engine: usize,
    /// What is worse: the rate, or a cost.
    pub(super) what: &'static str,
    /// Below 1, turned so that less is worse.
    pub(super) ratio: f64,
    pub(super) interval: String,
    /// Whether the whole interval says so.
    pub(super) is_sure: bool,
}

/// Whether the paced writer beside a step missed its rate, on an engine or on the base.
pub(super) fn missed(record: &Record, step: usize, engine: usize) -> bool {
    let runs = [engine, record.base];
    let mut targets = runs.iter().flat_map(|e| record.runs(step, *e));
    targets.any(|run| {
        let target = run.target.unwrap_or_default();
        target.asked > 0.0 && target.reached < REACHED * target.asked
    })
}

/// The steps that are judged.
pub(super) fn judged(record: &Record) -> impl Iterator<Item = usize> {
    let steps = record.steps.iter().enumerate();
    steps
        .filter(|(_, step)| step.counts && step.aim != Aim::Neither)
        .map(|(at, _)| at)
}

/// Everything in which an engine is worse than the base, the worst first, rates before costs.
pub(super) fn losses(record: &Record, engine: usize) -> Vec<Loss> {
    let mut out = Vec::new();
    for step in judged(record) {
        if let Some(found) = ratio::of(record, step, engine) {
            out.extend(loss(step, engine, "rate", &found));
        }
    }
    out.sort_by(|a: &Loss, b| a.ratio.total_cmp(&b.ratio));
    let mut costs = Vec::new();
    for step in judged(record) {
        for (figure, name, least) in COSTS {
            let ours = record.median(step, engine, figure).unwrap_or(0.0);
            if ours < least || figure == record.steps[step].figure {
                continue;
            }
            if let Some(found) = ratio::of_figure(record, step, engine, figure, Aim::Less) {
                costs.extend(loss(step, engine, name, &found));
            }
        }
    }
    costs.sort_by(|a: &Loss, b| a.ratio.total_cmp(&b.ratio));
    out.extend(costs);
    out
}

fn loss(step: usize, engine: usize, what: &'static str, found: &Ratio) -> Option<Loss> {
    (found.median < YELLOW).then(|| Loss {
        step,
        engine,
        what,
        ratio: found.median,
        interval: if found.has_interval() {
            format!("{:.2}..{:.2}", found.low, found.high)
        } else {
            "too few pairs".into()
        },
        is_sure: verdict(found) == Verdict::Loss,
    })
}

/// The engines that are compared with the base.
pub(super) fn compared(record: &Record) -> Vec<usize> {
    let all = record.present().map(|(at, _)| at);
    all.filter(|at| *at != record.base).collect()
}

/// The verdict: three to five sentences for each engine that is compared.
pub fn sentences(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    for engine in compared(record) {
        out.extend(of_engine(record, engine));
    }
    if out.is_empty() {
        out.push(alone(record));
    }
    out.extend(record.sentences.iter().cloned());
    out.extend(doubts(record));
    out
}

/// `a`, `a and b`, `a, b and c`.
fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn of_engine(record: &Record, engine: usize) -> Vec<String> {
    let (name, base) = (
        &record.engines[engine].name,
        &record.engines[record.base].name,
    );
    let ratios: Vec<(usize, Ratio)> = judged(record)
        .filter_map(|step| Some((step, ratio::of(record, step, engine)?)))
        .collect();
    if ratios.is_empty() {
        return vec![format!("{name} and {base} have no step in common.")];
    }
    let slower = losses(record, engine);
    let rates = slower.iter().filter(|loss| loss.what == "rate");
    let rates: Vec<String> = rates
        .map(|loss| {
            let doubt = if loss.is_sure {
                ""
            } else {
                ", within the noise"
            };
            let step = &record.steps[loss.step].name;
            format!("{step} ({:.2}{doubt})", loss.ratio)
        })
        .collect();
    let mut out = vec![match rates.len() {
        0 => format!("No rate of {name} is more than 5 % below that of {base}."),
        _ => format!("{name} is slower than {base} in {}.", list(&rates)),
    }];
    let mean = geometric_mean(ratios.iter().map(|(_, r)| r.median)).unwrap_or(1.0);
    let least = ratios
        .iter()
        .min_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let most = ratios
        .iter()
        .max_by(|a, b| a.1.median.total_cmp(&b.1.median));
    if let (Some(least), Some(most)) = (least, most) {
        let wins = ratios.iter().filter(|(_, r)| r.median > BLUE).count();
        let sure = ratios
            .iter()
            .filter(|(_, r)| verdict(r) == Verdict::Win)
            .count();
        out.push(format!(
            "Over {} steps the geometric mean of {name}'s rates is {mean:.2} times that of {base}, \
             from {:.2} ({}) to {:.2} ({}); {wins} are faster by more \
             than 5 %, {sure} of them beyond the noise.",
            ratios.len(),
            least.1.median,
            record.steps[least.0].name,
            most.1.median,
            record.steps[most.0].name,
        ));
    }
    out.extend(costs(record, engine));
    out
}

/// Means of what it costs, each as a part of what the base needs.
fn costs(record: &Record, engine: usize) -> Option<String> {
    let (name, base) = (
        &record.engines[engine].name,
        &record.engines[record.base].name,
    );
    let mut parts = Vec::new();
    for (figure, what, _) in COSTS {
        let ratios = judged(record).filter_map(|step| {
            let found = ratio::of_figure(record, step, engine, figure, Aim::Less)?;
            Some(1.0 / found.median)
        });
        if let Some(mean) = geometric_mean(ratios) {
            parts.push(format!("{mean:.2} of the {what}"));
        }
    }
    if parts.is_empty() {
        return None;
    }
    let text = list(&parts);
    Some(format!(
        "{name} needs {text}, each in the geometric mean, where {base} needs 1."
    ))
}

/// Without a second engine there is nothing to divide by.
fn alone(record: &Record) -> String {
    let Some((at, engine)) = record.present().next() else {
        return "No engine ran.".into();
    };
    let steps = judged(record).filter_map(|step| {
        let info = &record.steps[step];
        let unit = record
            .runs(step, at)
            .find_map(|run| run.figures.get(&info.figure));
        let value = record.median(step, at, &info.figure)?;
        let unit = unit.map_or("", |figure| figure.unit.as_str());
        Some(format!("{} {} {unit}", info.name, number(value)))
    });
    let steps: Vec<String> = steps.collect();
    format!("{} ran alone: {}.", engine.name, list(&steps))
}

/// How much the figures may be trusted.
fn doubts(record: &Record) -> Option<String> {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for flag in &record.flags {
        match kinds.iter_mut().find(|(kind, _)| *kind == flag.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((&flag.kind, 1)),
        }
    }
    let mut out = if record.complete {
        String::new()
    } else {
        "The run was stopped before its end. ".to_string()
    };
    if kinds.is_empty() {
        return Some(out + "No validity flag was raised.");
    }
    let words = kinds.iter().map(|(kind, count)| match count {
        1 => (*kind).to_string(),
        count => format!("{kind} ({count} times)"),
    });
    out.push_str(&format!(
        "Validity flags were raised: {}.",
        list(&words.collect::<Vec<_>>())
    ));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::sample;

    #[test]
    fn losses_come_first_and_the_mean_is_there() {
        let record = sample::record();
        let said = sentences(&record);
        assert!(
            said[0].contains("Esker is slower than RocksDB 11.8.1 in overwrite (0.50)"),
            "{said:?}"
        );
        // 2.0, 3.0 and 0.5.
        assert!(
            said[1].contains("the geometric mean of Esker's rates is 1.44"),
            "{said:?}"
        );
        assert!(
            said[2].contains("of the processor time of an operation"),
            "{said:?}"
        );
        let last = said.last().expect("a sentence");
        assert!(last.contains("missed-rate"), "{said:?}");
    }

    #[test]
    fn costs_that_are_worse_follow_the_rates() {
        let record = sample::record();
        let all = losses(&record, 0);
        assert_eq!((all[0].what, all[0].step), ("rate", 2));
        assert!(all[0].is_sure);
        assert!(
            all[1..].iter().any(|loss| loss.what == "resident memory"),
            "{all:?}"
        );
    }

    #[test]
    fn one_engine_alone_has_its_figures() {
        let mut record = sample::record();
        record.engines[1].missing = Some("is not there".into());
        record.base = 0;
        let said = sentences(&record);
        assert!(
            said[0].starts_with("Esker ran alone: readrandom 2,000 ops/s"),
            "{said:?}"
        );
        record.complete = false;
        assert!(
            sentences(&record)
                .iter()
                .any(|s| s.contains("stopped before its end"))
        );
    }

    #[test]
    fn words_are_listed_as_in_a_sentence() {
        let words = |n: usize| {
            ["a", "b", "c"][..n]
                .iter()
                .map(|w| (*w).into())
                .collect::<Vec<_>>()
        };
        assert_eq!(list(&words(1)), "a");
        assert_eq!(list(&words(3)), "a, b and c");
    }
}
