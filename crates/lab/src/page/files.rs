//! Files that go with a page: tables for other programs, and the list of raw files.

use std::fs;
use std::path::Path;

use crate::experiment::ratio;
use crate::experiment::record::Record;

/// A line for each run of each step and each figure, with names.
pub(super) fn runs_tsv(record: &Record) -> String {
    let mut out = String::from("experiment\tstep\tengine\tpair\tturn\tfigure\tvalue\tunit\n");
    for run in &record.results {
        let (Some(step), Some(engine)) =
            (record.steps.get(run.step), record.engines.get(run.engine))
        else {
            continue;
        };
        for (name, figure) in &run.figures {
            let cells = [
                &record.experiment,
                &step.name,
                &engine.name,
                &run.pair.to_string(),
                &run.turn.to_string(),
                name,
                &figure.value.to_string(),
                &figure.unit,
            ];
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('\t', " ")).collect();
            out.push_str(&cells.join("\t"));
            out.push('\n');
        }
    }
    out
}

/// A line for each ratio.
pub(super) fn ratios_tsv(record: &Record) -> String {
    let mut out =
        String::from("experiment\tstep\tengine\tbase\tratio\tlow\thigh\tmin\tmax\tcount\n");
    for (step, info) in record.steps.iter().enumerate() {
        for (engine, of) in record.present().filter(|(at, _)| *at != record.base) {
            let Some(found) = ratio::of(record, step, engine) else {
                continue;
            };
            let (low, high) = if found.has_interval() {
                (format!("{:.4}", found.low), format!("{:.4}", found.high))
            } else {
                (String::new(), String::new())
            };
            out.push_str(&format!(
                "{}\t{}\t{}\t{}\t{:.4}\t{low}\t{high}\t{:.4}\t{:.4}\t{}\n",
                record.experiment,
                info.name,
                of.name,
                record.engines[record.base].name,
                found.median,
                found.min,
                found.max,
                found.count
            ));
        }
    }
    out
}

/// Files below a directory of results, by path; a few of each run stand for all.
pub(super) fn raw(directory: &Path) -> Vec<String> {
    let mut out = Vec::new();
    let mut walk = vec![directory.to_path_buf()];
    while let Some(path) = walk.pop() {
        let Ok(entries) = fs::read_dir(&path) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk.push(path);
            } else if let Ok(path) = path.strip_prefix(directory) {
                out.push(path.to_string_lossy().into_owned());
            }
        }
    }
    out.retain(|path| path != "lock" && path != "report.html");
    out.sort();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::sample;

    #[test]
    fn tables_have_a_line_for_everything() {
        let record = sample::record();
        let runs = runs_tsv(&record);
        let figures: usize = record.results.iter().map(|run| run.figures.len()).sum();
        assert_eq!(runs.lines().count(), 1 + figures);
        assert!(runs.lines().all(|line| line.split('\t').count() == 8));
        let ratios = ratios_tsv(&record);
        assert_eq!(ratios.lines().count(), 1 + record.steps.len());
        assert!(ratios.contains("sample\toverwrite\tEsker\tRocksDB 11.8.1\t0.5000\t0.5000"));
    }
}
