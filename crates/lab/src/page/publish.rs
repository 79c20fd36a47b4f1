//! The gate for published records, and the index that is made of them.
//!
//! A record is published if it would stand before a reader who distrusts it: nine rules, each of
//! which [`refusals`] and [`index_findings`] say in a sentence. `cargo xtask page --publish` runs
//! them over `docs/benchmarks/records` and writes the index.

use std::fmt::Write as _;

use crate::compare::ENOUGH_RATIOS;
use crate::experiment::ratio;
use crate::experiment::record::{Aim, MEANING, Outcome, Record};
use crate::experiment::validity::{FEWEST_PAIRS, OTHERS};

use super::finding::COSTS;
use super::{date, verdict, with_version};

/// A ratio above this is of something that is next to nothing.
const MOST: f64 = 1000.0;
/// A ratio below this is printed as 0.00, and so is a figure that is nearer to 0.
const LEAST: f64 = 0.005;

/// Why a record must not be published; empty if it may.
pub fn refusals(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    if !record.complete {
        out.push("it was stopped before its end".to_string());
    }
    out.extend(pairs(record));
    out.extend(others(record));
    if record.meaning != MEANING {
        out.push(format!(
            "its figures have the meaning of version {}, and this is version {MEANING}",
            record.meaning
        ));
    }
    for step in 0..record.steps.len() {
        for (engine, _) in record.present().filter(|(at, _)| *at != record.base) {
            out.extend(work(record, step, engine));
            out.extend(ratios(record, step, engine));
        }
    }
    out.extend(signs(record));
    out
}

/// Fewer than three pairs, in the plan or in a step of the mean.
fn pairs(record: &Record) -> Option<String> {
    if record.pairs < FEWEST_PAIRS {
        return Some(format!(
            "it has {} pairs: fewer than {FEWEST_PAIRS}",
            record.pairs
        ));
    }
    let steps = record.steps.iter().enumerate();
    let steps = steps.filter(|(_, step)| step.counts && step.aim != Aim::Neither);
    steps.into_iter().find_map(|(at, step)| {
        let (engine, few) = record.present().find_map(|(engine, info)| {
            let count = record.runs(at, engine).count();
            let is_missing = record.missing(at, engine).is_some();
            (count < ENOUGH_RATIOS && !is_missing).then_some((&info.name, count))
        })?;
        Some(format!("{}: {engine} has {few} runs", step.name))
    })
}

/// Other processes on the machine.
fn others(record: &Record) -> Option<String> {
    let silent = record.results.iter().filter(|run| run.others.is_none());
    match record.others() {
        Some(part) if part > OTHERS => Some(format!(
            "other processes took {:.0} % of the processors in a step",
            100.0 * part
        )),
        None => Some("it does not tell what other processes took of the processors".into()),
        Some(_) if silent.clone().count() > 0 => Some(format!(
            "{} runs do not tell what other processes took of the processors",
            silent.count()
        )),
        Some(_) => None,
    }
}

/// Unequal work in a mean.
fn work(record: &Record, step: usize, engine: usize) -> Option<String> {
    let info = &record.steps[step];
    let is_counted = info.counts && info.aim != Aim::Neither;
    let is_unequal = ratio::unequal(record, step, [engine, record.base]);
    (is_counted && is_unequal).then(|| {
        format!(
            "{}: the mean counts it, and {} does other work than {}",
            info.name, record.engines[engine].name, record.engines[record.base].name
        )
    })
}

/// Ratios of next to nothing: of the step, of what is asked, and of costs, in both directions.
fn ratios(record: &Record, step: usize, engine: usize) -> Vec<String> {
    let info = &record.steps[step];
    let own = (info.aim != Aim::Neither).then_some((info.figure.as_str(), info.aim));
    let asks = info.asks.iter().map(|ask| (ask.figure.as_str(), ask.aim));
    let costs = COSTS.iter().map(|(name, _, _)| (*name, Aim::Less));
    let device = [("w_amp_device", Aim::Less)];
    let all = own.into_iter().chain(asks).chain(costs).chain(device);
    let wrong = all.filter_map(|(figure, aim)| {
        let found = ratio::of_figure(record, step, engine, figure, aim)?;
        let turned = 1.0 / found.median;
        let is_wrong = |ratio: f64| !(LEAST..=MOST).contains(&ratio);
        (is_wrong(found.median) || is_wrong(turned)).then(|| {
            format!(
                "{}: {figure} of {} has the ratio {:.2}, turned {turned:.2}",
                info.name, record.engines[engine].name, found.median
            )
        })
    });
    wrong.collect()
}

/// A figure or a cell of a table that is printed as `-0.00`.
fn signs(record: &Record) -> Option<String> {
    let is_minus_zero = |value: f64| value.is_sign_negative() && value > -LEAST;
    let of_run = |run: &Outcome| {
        let mut figures = run.figures.iter();
        let (name, _) = figures.find(|(_, figure)| is_minus_zero(figure.value))?;
        Some(format!(
            "{}: {name} is -0.00",
            record.steps.get(run.step)?.name
        ))
    };
    let in_runs = record.results.iter().find_map(of_run);
    let cells = record.tables.iter().flat_map(|table| {
        let cells = table.rows.iter().flatten();
        cells.map(move |cell| (&table.title, cell))
    });
    let is_text = |cell: &str| {
        let number = cell.split_whitespace().next().unwrap_or_default();
        number.strip_prefix('-').is_some_and(|digits| {
            digits.starts_with('0') && digits.chars().all(|c| c == '0' || c == '.')
        })
    };
    in_runs.or_else(|| {
        let mut wrong = cells.filter(|(_, cell)| is_text(cell));
        wrong
            .next()
            .map(|(title, cell)| format!("{title}: a cell is {cell}"))
    })
}

/// The lines before the rows of the index.
const HEAD: &str = "\
# Published records

Written by `cargo xtask page --publish` from `records`: each row is what its record says. A record
is published if it was not stopped, has three pairs or more, ran while other processes took less
than a quarter of the processors, is of the current meaning of all figures, counts no step with
unequal work in a mean, and has no ratio of next to nothing. `esker lab report records/NAME.json`
draws the page of a record. Each row names the largest losses.
";

/// A table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The row of a record.
fn row(name: &str, record: &Record) -> String {
    let engines = record
        .present()
        .map(|(_, e)| with_version(&e.name, &e.version));
    let size = if record.quick { "quick" } else { "full" };
    format!(
        "| [{name}](records/{name}.json) | {} | {} | {}, {} pairs, {} | `{}` |",
        cell(&engines.collect::<Vec<_>>().join(", ")),
        cell(&verdict::headlines(record).join(" ")),
        size,
        record.pairs,
        date(record.began),
        cell(&record.command)
    )
}

/// The index of some records with their names.
pub fn index(records: &[(String, Record)]) -> String {
    let mut out = String::from(HEAD);
    if records.is_empty() {
        out.push_str("\nThere is none at the moment.\n");
        return out;
    }
    out.push_str("\n| record | engines | verdict | run | command |\n|---|---|---|---|---|\n");
    for (name, record) in records {
        let _ = writeln!(out, "{}", row(name, record));
    }
    out
}

/// Rows of an index that are not what the records say.
pub fn index_findings(records: &[(String, Record)], index: &str) -> Vec<String> {
    let rows: Vec<&str> = index
        .lines()
        .filter(|line| line.starts_with("| ["))
        .collect();
    let mut out = Vec::new();
    for (name, record) in records {
        if !rows.contains(&row(name, record).as_str()) {
            out.push(format!("the row of {name} is not what its record says"));
        }
    }
    for row in &rows {
        let name = row
            .trim_start_matches("| [")
            .split(']')
            .next()
            .unwrap_or_default();
        if !records.iter().any(|(known, _)| known == name) {
            out.push(format!("there is a row of {name}, and no such record"));
        }
    }
    if out.is_empty() && index != self::index(records) {
        out.push("the text around the rows is not current".into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::sample;

    /// The refusals of the sample after a change.
    fn refused(change: impl Fn(&mut Record)) -> Vec<String> {
        let mut record = sample::record();
        change(&mut record);
        refusals(&record)
    }

    fn each(record: &mut Record, step: usize, engine: usize, name: &str, value: f64) {
        let runs = record.results.iter_mut();
        for run in runs.filter(|run| run.step == step && run.engine == engine) {
            let unit = run
                .figures
                .get(name)
                .map_or(String::new(), |f| f.unit.clone());
            let figure = crate::experiment::record::Figure::new(value, &unit);
            run.figures.insert(name.to_string(), figure);
        }
    }

    #[test]
    fn a_sound_record_is_published() {
        assert_eq!(refused(|_| {}), [""; 0]);
    }

    #[test]
    fn a_planted_record_is_refused_by_each_rule() {
        type Change = fn(&mut Record);
        let planted: [(Change, &str); 8] = [
            (|record| record.complete = false, "stopped before its end"),
            (|record| record.pairs = 2, "fewer than 3"),
            (
                |record| record.results[7].others = Some(0.26),
                "other processes took 26 %",
            ),
            (
                |record| record.meaning = MEANING - 1,
                "the meaning of version",
            ),
            (
                |record| {
                    each(record, 0, 0, "rows_op", 2.6);
                    each(record, 0, 1, "rows_op", 29.0);
                },
                "readrandom: the mean counts it, and Esker does other work",
            ),
            (
                |record| each(record, 1, 0, "ops_sec", 0.004 * 300.0),
                "readwhilewriting: ops_sec of Esker has the ratio 0.00",
            ),
            (
                |record| {
                    each(record, 1, 0, "peak_sz", 1.17e10);
                    each(record, 1, 1, "peak_sz", 1.0e6);
                },
                "readwhilewriting: peak_sz of Esker has the ratio 0.00, turned 11700.00",
            ),
            (
                |record| each(record, 2, 0, "paced%", -0.0),
                "overwrite: paced% is -0.00",
            ),
        ];
        for (change, why) in planted {
            let found = refused(change);
            assert_eq!(found.len(), 1, "{why}: {found:?}");
            assert!(found[0].contains(why), "{why}: {found:?}");
        }
    }

    #[test]
    fn runs_that_are_not_there_or_do_not_tell_are_refused() {
        let few = refused(|record| {
            record.results.retain(|run| run.step != 1 || run.pair == 0);
        });
        assert_eq!(few, ["readwhilewriting: Esker has 2 runs"]);
        let silent = refused(|record| record.results[3].others = None);
        assert!(silent[0].contains("1 runs do not tell"), "{silent:?}");
        let older = refused(|record| {
            record.results.iter_mut().for_each(|run| run.others = None);
        });
        assert!(older[0].contains("does not tell"), "{older:?}");
        let table = refused(|record| record.tables[0].rows[0][1] = "-0.00 us".into());
        assert_eq!(table, ["Threads: a cell is -0.00 us"]);
        // A number below zero is none.
        assert_eq!(
            refused(|record| record.tables[0].rows[0][1] = "-0.10".into()),
            [""; 0]
        );
    }

    #[test]
    fn a_row_that_differs_from_its_record_is_refused() {
        let records = [("sample".to_string(), sample::record())];
        let index = index(&records);
        assert_eq!(index_findings(&records, &index), [""; 0]);
        // The row of hot-row said 1.90 where its page said 1.87.
        let other = index.replace("1.00 times the rate", "1.03 times the rate");
        assert_eq!(
            index_findings(&records, &other),
            ["the row of sample is not what its record says"]
        );
        let more = format!("{index}| [gone](records/gone.json) | | | | |\n");
        let found = index_findings(&records, &more);
        assert_eq!(found, ["there is a row of gone, and no such record"]);
        assert_eq!(index_findings(&[], HEAD).len(), 1);
        assert_eq!(index_findings(&[], &super::index(&[])), [""; 0]);
    }
}
