//! The middle of a report: amplification, efficiency, tree shapes, the device, memory, all figures.

use std::fmt::Write as _;

use crate::experiment::record::{Outcome, Record, Shape, median};
use crate::experiment::validity::{DEVICE_OFF, PARTS_OFF};
use crate::read_work;

use super::html::{Table, details, escape, maybe, number, text};
use super::svg;

/// Steps that have results, with the engines that were run.
fn lines(record: &Record) -> impl Iterator<Item = (usize, usize)> {
    let steps = 0..record.steps.len();
    steps.flat_map(|step| {
        let engines = record.present().map(move |(engine, _)| (step, engine));
        engines.filter(|(step, engine)| record.runs(*step, *engine).next().is_some())
    })
}

/// The head of a row: the step at its first engine only, then the engine.
fn heads(record: &Record, step: usize, engine: usize) -> Vec<super::html::Cell> {
    vec![
        text(&record.steps[step].name),
        text(&record.engines[engine].name),
    ]
}

/// The median over runs of anything.
fn over(
    record: &Record,
    step: usize,
    engine: usize,
    of: impl Fn(&Outcome) -> Option<f64>,
) -> Option<f64> {
    let mut all: Vec<f64> = record.runs(step, engine).filter_map(of).collect();
    median(&mut all)
}

/// A table of medians: a row for each step and engine of which `figures` has any. `None` without
/// rows.
fn medians<const N: usize>(
    record: &Record,
    title: &str,
    columns: [&str; N],
    figures: impl Fn(usize, usize) -> Option<[Option<f64>; N]>,
) -> Option<String> {
    let head: Vec<&str> = ["step", "engine"].into_iter().chain(columns).collect();
    let mut table = Table::new(title, &head);
    for (step, engine) in lines(record) {
        if let Some(figures) = figures(step, engine) {
            let mut row = heads(record, step, engine);
            row.extend(figures.map(maybe));
            table.row(row);
        }
    }
    (!table.is_empty()).then(|| table.html())
}

/// The part of write amplification that is no part of the engine's own sum.
const DEVICE: &str = "device";

/// The parts of write amplification that some engine has, in the order in which they are met:
/// B-trees have others than log-structured trees.
fn written_parts(record: &Record) -> Vec<&str> {
    let mut out = vec!["log", "flush", "compaction"];
    for (name, _) in record.results.iter().flat_map(|run| &run.write_amp) {
        if name != DEVICE && !out.contains(&name.as_str()) {
            out.push(name);
        }
    }
    out
}

/// Write and space amplification.
pub(super) fn amplification(record: &Record) -> String {
    let shown = written_parts(record);
    let mut head = vec!["step", "engine"];
    head.extend(&shown);
    head.extend(["sum", DEVICE, "space-amp", "size, MB", "most, MB"]);
    let title = "Bytes written for each byte of the user, by part, and space";
    let mut table = Table::new(title, &head);
    for (step, engine) in lines(record) {
        let part = |name: &str| {
            over(record, step, engine, |run| {
                let found = run.write_amp.iter().find(|(part, _)| part == name);
                found.map(|(_, amp)| *amp)
            })
        };
        let figure = |name: &str| record.median(step, engine, name);
        let mb = |name: &str| figure(name).map(|bytes| bytes / 1_048_576.0);
        let parts: Vec<Option<f64>> = shown.iter().map(|name| part(name)).collect();
        if part(DEVICE).is_none() && parts.iter().all(Option::is_none) {
            continue;
        }
        let mut row = heads(record, step, engine);
        let sum = figure("w_amp").or_else(|| parts.iter().flatten().copied().reduce(|a, b| a + b));
        row.extend(parts.into_iter().map(maybe));
        row.extend([sum, part(DEVICE), figure("space_amp")].map(maybe));
        row.extend([mb("lsm_sz"), mb("peak_sz")].map(maybe));
        table.row(row);
    }
    if table.is_empty() {
        return "<p>No step wrote enough to tell.</p>\n".into();
    }
    table.html()
        + "<p class=\"note\">Log, flush and compaction are what the engine counts; device is what \
           reached the block device in the step, with the delay of the page cache. Engines without \
           statistics have the device's figure alone; servers and B-trees have parts of their \
           own.</p>\n"
}

/// Prints the cost of an operation.
pub(super) fn efficiency(record: &Record) -> String {
    const COLUMNS: [&str; 7] = [
        "cpu_us_op",
        "cpu_client_us_op",
        "cs_op",
        "r_op",
        "rkb_op",
        "wkb_op",
        "client_part",
    ];
    let columns = [
        "cpu/o, us",
        "own thread, us",
        "jobs, us",
        "cs/o",
        "r/o",
        "rKB/o",
        "wKB/o",
        "client's part",
    ];
    let table = medians(record, "Costs of one operation", columns, |step, engine| {
        let figures = COLUMNS.map(|name| record.median(step, engine, name));
        let [cpu, client, switches, reads, read_kb, written_kb, part] = figures;
        let jobs = cpu.zip(client).map(|(cpu, client)| (cpu - client).max(0.0));
        let figures = [
            cpu, client, jobs, switches, reads, read_kb, written_kb, part,
        ];
        cpu.is_some().then_some(figures)
    });
    let Some(table) = table else {
        return String::new();
    };
    table
        + "<p class=\"note\">cpu/o is the processor time of the process for an operation: of the \
           threads that call the engine, and of its jobs. cs/o are context switches of the whole \
           machine; r/o reads, rKB/o and wKB/o kilobytes of the device. The client's part is what \
           the loop takes of an operation without an engine, where that was measured.</p>\n"
        + &read_amplification(record)
}

/// Prints the work of a read, for I/O and for the processor; nothing where no engine tells.
fn read_amplification(record: &Record) -> String {
    let columns = [
        "I/O: blocks",
        "bytes",
        "CPU: cached blocks",
        "filters",
        "useful",
        "keys compared",
        "runs",
        "skipped",
    ];
    let title = "Read amplification of one read";
    let table = medians(record, title, columns, |step, engine| {
        let found = read_work::COLUMNS.map(|(name, _)| record.median(step, engine, name));
        found.iter().any(Option::is_some).then_some(found)
    });
    let Some(table) = table else {
        return String::new();
    };
    table
        + "<p class=\"note\">Of gets, or of seeks in steps of ranges: blocks and bytes read from \
           files, then blocks found in the cache, filters asked and those that excluded the key, \
           comparisons of keys, sorted runs searched, and entries skipped. Averages of samples \
           that Esker takes; other engines do not tell.</p>\n"
}

/// Trees before and after each step.
pub(super) fn trees(record: &Record) -> String {
    let bytes = |shape: &Shape| shape.parts.iter().map(|(_, _, bytes)| bytes).sum::<f64>();
    let typical: Vec<(usize, usize, &Outcome)> = lines(record)
        .filter_map(|(step, engine)| Some((step, engine, record.typical(step, engine)?)))
        .filter(|(_, _, run)| !run.shape_after.parts.is_empty())
        .collect();
    let most = typical
        .iter()
        .map(|(_, _, run)| bytes(&run.shape_after))
        .fold(0.0, f64::max);
    if most <= 0.0 {
        return "<p>No engine told the shape of its tree.</p>\n".into();
    }
    let mut out = String::from("<div class=\"strip\">");
    let mut table = Table::new("The same in words", &["step", "engine", "before", "after"]);
    let mut last = None;
    for (step, engine, run) in typical {
        if last != Some(step) {
            let _ = write!(out, "<h3>{}</h3>", escape(&record.steps[step].name));
            last = Some(step);
        }
        let name = &record.engines[engine].name;
        let part = |(name, files, bytes): &(String, u64, f64)| {
            let mb = number(bytes / 1_048_576.0);
            (format!("{name}: {files} files, {mb} MB"), *bytes)
        };
        let parts: Vec<(String, f64)> = run.shape_after.parts.iter().map(part).collect();
        let runs = run.shape_after.parts.iter();
        let runs = runs.map(|(name, files, _)| if name == "L0" { *files } else { 1 });
        let _ = write!(
            out,
            "<span>{}</span>{}<span class=\"n\">{}, {} MB</span>",
            escape(name),
            svg::bar(
                &format!("{}-tree-{step}-{engine}", record.experiment),
                &format!("{name} after {}", record.steps[step].name),
                &parts,
                most
            ),
            match runs.sum::<u64>() {
                1 => "1 run".to_string(),
                count => format!("{count} runs"),
            },
            number(bytes(&run.shape_after) / 1_048_576.0)
        );
        table.row(vec![
            text(&record.steps[step].name),
            text(name),
            text(run.shape_before.text.trim_start_matches("lsm: ")),
            text(run.shape_after.text.trim_start_matches("lsm: ")),
        ]);
    }
    out.push_str("</div>\n<p class=\"note\">Each bar is a tree after the step: memtable first, then \
                  levels from the top; all bars have one scale. Runs are the places that a read may \
                  have to look into.</p>\n");
    out + &details(
        "The trees before and after each step, in words",
        &table.html(),
    )
}

/// The block device, as `iostat -x` has it.
pub(super) fn iostat(record: &Record) -> String {
    let columns = [
        "rps", "rMBps", "rawait", "rareqsz", "wps", "wMBps", "wawait", "wareqsz",
    ];
    let title = "The block device in each step";
    let table = medians(record, title, columns, |step, engine| {
        let d = record.typical(step, engine)?.device;
        let figures = [
            d.rps, d.r_mb, d.r_await, d.rareq_kb, d.wps, d.w_mb, d.w_await, d.wareq_kb,
        ];
        figures.iter().any(|x| *x != 0.0).then(|| figures.map(Some))
    });
    let Some(table) = table else {
        return "<p>There is no single block device below the directory, or it had no request.</p>\n"
            .into();
    };
    table
        + "<p class=\"note\">Of the run in the middle. Requests and megabytes a second; milliseconds \
           and kilobytes of a request. Whatever else used the device is in it.</p>\n"
}

/// Resident memory by owner.
pub(super) fn memory(record: &Record) -> String {
    let mut owners: Vec<&str> = Vec::new();
    for run in &record.results {
        for (name, _) in &run.memory {
            if !owners.contains(&name.as_str()) {
                owners.push(name);
            }
        }
    }
    if owners.is_empty() {
        return String::new();
    }
    let mut head = vec!["step", "engine"];
    head.extend(&owners);
    head.push("sum");
    let mut table = Table::new("Resident memory after each step by owner, MB", &head);
    for (step, engine) in lines(record) {
        let Some(run) = record
            .typical(step, engine)
            .filter(|run| !run.memory.is_empty())
        else {
            continue;
        };
        let of = |owner: &str| {
            let found = run.memory.iter().find(|(name, _)| name == owner);
            found.map(|(_, bytes)| bytes / 1_048_576.0)
        };
        let mut row = heads(record, step, engine);
        row.extend(owners.iter().map(|owner| maybe(of(owner))));
        row.push(maybe(owners.iter().map(|owner| of(owner)).sum()));
        table.row(row);
    }
    details("Resident memory by owner", &table.html())
}

/// Compares sums with their parts: the ledger of stalls, memory by owner, writes by part.
pub(super) fn sums(record: &Record) -> String {
    const COLUMNS: [&str; 6] = [
        "ledger_sec",
        "ledger_by_second_sec",
        "ledger_off%",
        "memory_named%",
        PARTS_OFF,
        DEVICE_OFF,
    ];
    let columns = [
        "stalls by cause, s",
        "by second, s",
        "off, % (1)",
        "memory with an owner, % (95)",
        "parts of writes off, % (5)",
        "device off, % (5)",
    ];
    let title = "What has to add up, medians of the runs";
    let table = medians(record, title, columns, |step, engine| {
        let found = COLUMNS.map(|name| record.median(step, engine, name));
        found.iter().any(Option::is_some).then_some(found)
    });
    let Some(table) = table else {
        return String::new();
    };
    let note = "<p class=\"note\">Bounds are in brackets; a figure beyond its bound is a validity \
                flag. Parts of writes are log, flushes and compactions against what the process \
                wrote; the device is compared with that, less pages that were given up before \
                they were written out.</p>";
    details("Sums: stalls, memory, writes", &(table + note))
}

/// All figures of all steps.
pub(super) fn everything(record: &Record) -> String {
    let mut out = String::new();
    for step in 0..record.steps.len() {
        let mut names: Vec<(&str, &str)> = Vec::new();
        let of_step = record.results.iter().filter(|run| run.step == step);
        for (name, figure) in of_step.flat_map(|run| &run.figures) {
            if !names.iter().any(|(known, _)| known == name) {
                names.push((name, &figure.unit));
            }
        }
        let engines: Vec<usize> = record.present().map(|(at, _)| at).collect();
        let mut head = vec!["figure"];
        head.extend(engines.iter().map(|at| record.engines[*at].name.as_str()));
        let step_name = &record.steps[step].name;
        let mut table = Table::new(&format!("{step_name}: medians"), &head);
        for (name, unit) in names {
            let label = match unit {
                "" => name.to_string(),
                unit => format!("{name}, {unit}"),
            };
            let mut row = vec![text(&label)];
            row.extend(
                engines
                    .iter()
                    .map(|at| maybe(record.median(step, *at, name))),
            );
            table.row(row);
        }
        if !table.is_empty() {
            out.push_str(&details(step_name, &table.html()));
        }
    }
    out
}
