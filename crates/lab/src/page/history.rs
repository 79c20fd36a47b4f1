//! One experiment over time: how the figures of each engine went from run to run.

use std::collections::BTreeMap;

use crate::experiment::record::Record;
use crate::{Failure, Result};

use super::html::{Table, escape, maybe, text};
use super::svg::{Chart, Line};
use super::{date, document};

/// An engine's name without its version, which changes over time.
fn family(record: &Record, engine: usize) -> String {
    let info = &record.engines[engine];
    let name = info.name.replace(&info.version, "");
    name.trim().to_string()
}

/// The page of one experiment over time; records may come in any order.
///
/// # Errors
/// There is none, or they are of several experiments.
pub fn page(records: &[&Record]) -> Result<String> {
    let mut records = records.to_vec();
    records.sort_by_key(|record| record.began);
    let first = records
        .first()
        .ok_or_else(|| Failure::new("there is no record"))?;
    if let Some(other) = records.iter().find(|r| r.experiment != first.experiment) {
        return Err(Failure::new(format!(
            "a history is of one experiment, and there are {} and {}",
            first.experiment, other.experiment
        )));
    }
    let label = |record: &Record| {
        let versions = record.present().map(|(at, engine)| {
            format!("{} {}", family(record, at), engine.version)
                .trim()
                .to_string()
        });
        versions.collect::<Vec<_>>().join(", ")
    };
    let ticks: Vec<String> = records.iter().map(|record| date(record.began)).collect();
    let mut out = String::from("<section><h2>Runs</h2>");
    let mut table = Table::new(
        "Runs, the oldest first",
        &["run", "began", "engines", "size"],
    );
    for (at, record) in records.iter().enumerate() {
        let size = if record.quick { "quick" } else { "full" };
        let cells = [
            (at + 1).to_string(),
            ticks[at].clone(),
            label(record),
            size.to_string(),
        ];
        table.row(cells.iter().map(|cell| text(cell)).collect());
    }
    out.push_str(&table.html());
    out.push_str("</section><section><h2>Steps over time</h2><div class=\"charts\">");
    for step in first.steps.iter().filter(|step| step.counts) {
        out.push_str(&figure(&records, &step.name, &ticks));
    }
    out.push_str("</div></section>");
    let head = format!(
        "<p class=\"sub\">{} runs of <code>{}</code></p>",
        records.len(),
        escape(&first.experiment)
    );
    Ok(document(&format!("{}: history", first.title), &head, &out))
}

/// The chart of one step, with its table.
fn figure(records: &[&Record], step: &str, ticks: &[String]) -> String {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut unit = String::new();
    for (at, record) in records.iter().enumerate() {
        let Some(place) = record.steps.iter().position(|s| s.name == step) else {
            continue;
        };
        let figure = &record.steps[place].figure;
        for (engine, _) in record.present() {
            let Some(value) = record.median(place, engine, figure) else {
                continue;
            };
            let of = record
                .runs(place, engine)
                .find_map(|run| run.figures.get(figure));
            unit = of.map_or(unit, |figure| figure.unit.clone());
            lines
                .entry(family(record, engine))
                .or_default()
                .push(((at + 1) as f64, value));
        }
    }
    let mut head = vec!["run"];
    head.extend(lines.keys().map(String::as_str));
    let mut table = Table::new(&format!("{step}, {unit}"), &head);
    for at in 1..=records.len() {
        let mut row = vec![text(&at.to_string())];
        for points in lines.values() {
            let value = points.iter().find(|(x, _)| *x == at as f64);
            row.push(maybe(value.map(|(_, y)| *y)));
        }
        table.row(row);
    }
    let chart = Chart {
        id: format!("history-{}", super::slug(step)),
        title: format!("{step} over time"),
        x: "runs".into(),
        y: unit,
        ticks: ticks
            .iter()
            .map(|tick| tick.split(',').next().unwrap_or("").into())
            .collect(),
        lines: (lines.iter().enumerate())
            .map(|(style, (name, points))| Line {
                name: name.clone(),
                style,
                points: points.clone(),
            })
            .collect(),
        ..Chart::default()
    };
    format!(
        "<figure><figcaption>{}</figcaption>{}{}</figure>\n",
        escape(step),
        chart.html(),
        super::details("As a table", &table.html())
    )
}
