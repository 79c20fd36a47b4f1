//! The conclusions from a record, in sentences: gains and the largest losses first, then means and
//! doubts.
//!
//! The first sentence of an engine is made of all steps, all costs, what the experiment asks for,
//! and all engines: what the page shows anywhere cannot contradict it.

use crate::experiment::ratio::{self, Verdict, geometric_mean, verdict};
use crate::experiment::record::{Aim, Record};
use crate::experiment::validity;

use super::finding::{COSTS, Certainty, FigureKind, Finding, counted};
use super::html::number;

/// Losses in the first sentence by kind: steps, further figures of the experiment, costs.
const NAMED: [(FigureKind, usize); 3] = [
    (FigureKind::Step, 3),
    (FigureKind::Ask, 1),
    (FigureKind::Cost, 2),
];
/// Other engines in the first sentence.
const OTHERS: usize = 2;

/// The engines that are compared with the base.
pub(super) fn compared(record: &Record) -> Vec<usize> {
    let all = record.present().map(|(at, _)| at);
    all.filter(|at| *at != record.base).collect()
}

/// Losses of an engine against the base.
pub(super) fn losses(record: &Record, engine: usize) -> Vec<Finding> {
    let mut out = Finding::all(record, [engine, record.base]);
    out.retain(Finding::is_loss);
    out
}

/// Losses of an engine against the engines that are not the base: of each figure that of the best.
pub(super) fn losses_to_others(record: &Record, engine: usize) -> Vec<Finding> {
    let others = compared(record).into_iter().filter(|at| *at != engine);
    let all = others.flat_map(|other| Finding::all(record, [engine, other]));
    let mut out: Vec<Finding> = Vec::new();
    for found in all.filter(Finding::is_loss) {
        let is_same = |known: &&mut Finding| {
            let of = |f: &Finding| (f.step, f.kind, f.what.clone());
            of(known) == of(&found)
        };
        match out.iter_mut().find(is_same) {
            Some(known) if found.ratio < known.ratio => *known = found,
            Some(_) => {}
            None => out.push(found),
        }
    }
    out.sort_by(|a, b| a.doubt.cmp(&b.doubt).then(a.ratio.total_cmp(&b.ratio)));
    out
}

/// The first sentence of each engine that is compared.
pub(super) fn headlines(record: &Record) -> Vec<String> {
    let all = compared(record).into_iter();
    let out: Vec<String> = all.map(|engine| headline(record, engine)).collect();
    if out.is_empty() {
        return vec![alone(record)];
    }
    out
}

/// The rest: means of costs, what the experiment says, doubts.
pub(super) fn rest(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    for engine in compared(record) {
        out.extend(costs(record, engine));
    }
    out.extend(record.sentences.iter().cloned());
    out.extend(flags(record));
    out
}

/// The verdict: the first sentences of all engines, then the rest.
pub fn sentences(record: &Record) -> Vec<String> {
    let mut out = headlines(record);
    out.extend(rest(record));
    out
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn headline(record: &Record, engine: usize) -> String {
    let mut parts = vec![gains(record, engine)];
    let losses = losses(record, engine);
    let sure: Vec<&Finding> = losses
        .iter()
        .filter(|f| f.doubt < Certainty::Noise)
        .collect();
    let mut named = Vec::new();
    for (kind, most) in NAMED {
        let mut seen: Vec<&str> = Vec::new();
        for found in sure.iter().filter(|found| found.kind == kind) {
            // One cost of each sort says more than the same in two steps.
            let is_new = kind == FigureKind::Step || !seen.contains(&found.what.as_str());
            if seen.len() < most && is_new {
                seen.push(&found.what);
                named.push(format!("{} {}", found.place(record), found.words(record)));
            }
        }
    }
    let left = sure.len() - named.len();
    if left > 0 {
        named.push(format!("{left} more below"));
    }
    parts.push(match named.as_slice() {
        [] => "No step and no cost is worse by more than 3 %.".into(),
        named => format!("Worse: {}.", named.join("; ")),
    });
    parts.extend(unequal(record, engine));
    parts.extend(best_of_others(record, engine));
    let text = parts.join(" ");
    let doubts = validity::doubts(record);
    if doubts.is_empty() {
        return text;
    }
    let doubts = list(&doubts);
    format!("Nothing can be said for certain ({doubts}). What was seen: {text}")
}

/// The mean of the rates, and that of figures of which less is better.
fn gains(record: &Record, engine: usize) -> String {
    let (name, base) = (
        &record.engines[engine].name,
        &record.engines[record.base].name,
    );
    let steps = counted(record, [engine, record.base]);
    let of = |aim: Aim| -> Vec<(usize, f64)> {
        let steps = steps.iter().filter(|step| record.steps[**step].aim == aim);
        let all = steps.filter_map(|step| Some((*step, ratio::of(record, *step, engine)?.median)));
        all.collect()
    };
    let mut parts = Vec::new();
    for (aim, what) in [(Aim::More, "the rate"), (Aim::Less, "as much or as long")] {
        let mut ratios = of(aim);
        if aim == Aim::Less {
            ratios
                .iter_mut()
                .for_each(|(_, ratio)| *ratio = 1.0 / *ratio);
        }
        ratios.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mean = geometric_mean(ratios.iter().map(|(_, ratio)| *ratio));
        if let (Some(mean), [first, .., last]) = (mean, ratios.as_slice()) {
            let place = |(step, ratio): &(usize, f64)| {
                format!("{ratio:.2} in {}", record.steps[*step].name)
            };
            parts.push(format!(
                "{mean:.2} times {what} over {} steps ({} to {})",
                ratios.len(),
                place(first),
                place(last)
            ));
        } else if let (Some(mean), [one]) = (mean, ratios.as_slice()) {
            parts.push(format!(
                "{mean:.2} times {what} in {}",
                record.steps[one.0].name
            ));
        }
    }
    match parts.as_slice() {
        [] => format!("{name} and {base} have no step in common."),
        parts => format!("{name} beside {base}: {}.", parts.join(", ")),
    }
}

/// The steps that are left out since the engines did not do the same work in them.
fn unequal(record: &Record, engine: usize) -> Option<String> {
    let other = &record.engines[record.base].name;
    let steps = (0..record.steps.len())
        .filter(|step| {
            let info = &record.steps[*step];
            info.aim != Aim::Neither || !info.asks.is_empty()
        })
        .filter(|step| ratio::unequal(record, *step, [engine, record.base]));
    let named = steps.map(|step| {
        let rows = |engine| record.median(step, engine, ratio::ROWS).unwrap_or(0.0);
        let (name, ours, theirs) = (
            &record.steps[step].name,
            number(rows(engine)),
            number(rows(record.base)),
        );
        format!("{name} ({ours} rows an operation, {theirs} on {other})")
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| format!("Not judged, since work is unequal: {}.", list(&named)))
}

/// Which of the other engines is better than this one, and where most.
fn best_of_others(record: &Record, engine: usize) -> Option<String> {
    let all = losses_to_others(record, engine);
    let all = all.iter().filter(|found| found.doubt < Certainty::Noise);
    let all: Vec<&Finding> = all.collect();
    let mut named: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    let main = all.iter().filter(|found| found.kind != FigureKind::Cost);
    for found in main.chain(all.iter().filter(|found| found.kind == FigureKind::Cost)) {
        if seen.len() < OTHERS && !seen.contains(&found.other) {
            seen.push(found.other);
            let count = all.iter().filter(|f| f.other == found.other).count();
            let figures = if count == 1 { "figure" } else { "figures" };
            named.push(format!(
                "{} is better in {count} {figures}, most in {} ({})",
                record.engines[found.other].name,
                found.place(record),
                found.words(record)
            ));
        }
    }
    (!named.is_empty()).then(|| format!("Of the others {}.", list(&named)))
}

/// Means of what it costs, each as a part of what the base needs.
fn costs(record: &Record, engine: usize) -> Option<String> {
    let (name, base) = (
        &record.engines[engine].name,
        &record.engines[record.base].name,
    );
    let steps = counted(record, [engine, record.base]);
    let mut parts = Vec::new();
    for (figure, what, _) in COSTS {
        let ratios = steps.iter().filter_map(|step| {
            let found = ratio::of_figure(record, *step, engine, figure, Aim::Less)?;
            Some(1.0 / found.median)
        });
        if let Some(mean) = geometric_mean(ratios) {
            parts.push(format!("{mean:.2} of the {what}"));
        }
    }
    let ratios = steps
        .iter()
        .filter_map(|step| ratio::of(record, *step, engine));
    let sure = ratios.filter(|r| verdict(r) == Verdict::Win).count();
    if parts.is_empty() {
        return None;
    }
    let text = list(&parts);
    Some(format!(
        "{name} is better beyond the noise in {sure} of {} steps. It needs {text}, each in the \
         geometric mean, where {base} needs 1.",
        steps.len()
    ))
}

/// Without a second engine there is nothing to divide by.
fn alone(record: &Record) -> String {
    let Some((at, engine)) = record.present().next() else {
        return "No engine ran.".into();
    };
    let steps = counted(record, [at, at]).into_iter().filter_map(|step| {
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
fn flags(record: &Record) -> Option<String> {
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
mod tests;
