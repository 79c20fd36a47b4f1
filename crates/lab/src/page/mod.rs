//! The report: one HTML file without network, with tables for other programs beside it.
//!
//! A page is made of records alone. It has sentences first, losses on the first screen, then
//! ratios, the machine, amplification, costs, quality of service, trees, the device, all figures,
//! what it means, and the command that repeats it. Charts are SVG and have a table each; there is
//! no script. `cargo xtask page` opens pages in a browser and checks them. [`publish`] says which
//! records may be published.

mod boxes;
mod figures;
mod files;
mod finding;
mod forest;
mod heat;
mod history;
mod html;
pub mod publish;
mod qos;
pub mod sample;
mod setup;
mod svg;
mod verdict;

use std::fmt::Write as _;
use std::path::Path;

use crate::Result;
use crate::experiment::record::{self, Record};
use crate::experiment::state::write_whole;
pub use history::page as history;
pub(crate) use html::number;
use html::{Table, details, escape, slug, text};
use svg::{Chart, Line};
pub use verdict::sentences as verdict;

const STYLE: &str = include_str!("style.css");

/// Writes the page of some records and what belongs to it into a directory: `report.html`,
/// `runs.tsv`, `ratios.tsv`, `report.json`.
///
/// # Errors
/// A file cannot be written.
pub fn write(records: &[&Record], out: &Path) -> Result<()> {
    let tsv = |make: fn(&Record) -> String| {
        let mut all = String::new();
        for record in records {
            let text = make(record);
            let from = if all.is_empty() {
                0
            } else {
                text.find('\n').map_or(0, |at| at + 1)
            };
            all.push_str(&text[from..]);
        }
        all
    };
    write_whole(&out.join("runs.tsv"), tsv(files::runs_tsv).as_bytes())?;
    write_whole(&out.join("ratios.tsv"), tsv(files::ratios_tsv).as_bytes())?;
    let json = serde_json::to_string_pretty(records)
        .map_err(|e| crate::Failure::new(format!("the report as JSON: {e}")))?;
    write_whole(&out.join("report.json"), json.as_bytes())?;
    for record in records {
        if records.len() == 1 {
            write_whole(
                &out.join("command"),
                format!("{}\n", record.command).as_bytes(),
            )?;
        }
    }
    // A page that was made of records of other directories has no raw files beside it.
    let raw = if out.join("runs").is_dir() {
        files::raw(out)
    } else {
        Vec::new()
    };
    write_whole(&out.join("report.html"), page(records, &raw).as_bytes())
}

/// Writes the page of one experiment over time.
///
/// # Errors
/// Records of several experiments, or a file that cannot be written.
pub fn write_history(records: &[&Record], out: &Path) -> Result<()> {
    let html = history(records)?;
    write_whole(&out.join("report.html"), html.as_bytes())
}

/// The page of some records; `raw` names the files that lie beside it.
pub fn page(records: &[&Record], raw: &[String]) -> String {
    let title = match records {
        [one] => one.title.clone(),
        _ => "Reports of the laboratory".to_string(),
    };
    let mut body = String::new();
    for (at, record) in records.iter().enumerate() {
        let id = format!("{}-{at}", slug(&record.experiment));
        body.push_str(&article(record, &id, records.len() == 1, raw));
    }
    let navigation = match records {
        [_] => String::new(),
        _ => {
            let items = records.iter().enumerate().map(|(at, record)| {
                let id = format!("{}-{at}", slug(&record.experiment));
                format!("<li><a href=\"#{id}\">{}</a></li>", escape(&record.title))
            });
            let items: String = items.collect();
            format!("<nav aria-label=\"Reports\"><ul>{items}</ul></nav>")
        }
    };
    let lead = match records {
        [one] => lead(one),
        _ => String::new(),
    };
    document(&title, &format!("{lead}{navigation}"), &body)
}

/// A whole document.
fn document(title: &str, head: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\
         </head>\n<body><a class=\"skip\" href=\"#content\">To the content</a>\n<header>\
         <h1>{title}</h1>{head}</header>\n<main id=\"content\">\n{body}</main>\n<footer><p>Written \
         by <code>esker lab</code> {}. This file needs no network.</p></footer></body></html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// The lines below the title: which engines, when, how large.
fn lead(record: &Record) -> String {
    let engines: Vec<String> = record
        .present()
        .map(|(_, e)| with_version(&e.name, &e.version))
        .collect();
    format!(
        "<p class=\"sub\">{}; <code>{}</code> at its {} size, {} of runs, {}</p>",
        escape(&engines.join(" and ")),
        escape(&record.experiment),
        if record.quick { "quick" } else { "full" },
        if record.pairs == 1 {
            "one pair".to_string()
        } else {
            format!("{} pairs", record.pairs)
        },
        date(record.began)
    )
}

/// A name and a version that may hold parts of each other.
fn with_version(name: &str, version: &str) -> String {
    let lower = |text: &str| text.to_lowercase();
    if lower(version).starts_with(&lower(name)) {
        return version.to_string();
    }
    // `lib:./librocksdb.so 11.8.1` has the file as well.
    let version = match version.split_once(' ') {
        Some((spec, rest)) if spec.starts_with("lib:") => rest,
        _ => version,
    };
    if name.contains(version) {
        return name.to_string();
    }
    format!("{name} {version}")
}

/// A time in UTC.
fn date(seconds: u64) -> String {
    let text = crate::identity::ctime(seconds);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [_, month, day, clock, year] => {
            format!("{day} {month} {year}, {} UTC", &clock[..5.min(clock.len())])
        }
        _ => text,
    }
}

/// Name, title and content of a section.
type Section = (&'static str, &'static str, String);

/// The sections of a record, without those that are empty.
fn sections(record: &Record, raw: &[String]) -> Vec<Section> {
    let qos = [
        "<h3>Rate and stalls by second</h3>".to_string(),
        qos::charts(record),
        heat::map(record),
        qos::percentiles(record),
        qos::steadiness(record),
        qos::causes(record),
    ];
    let all = vec![
        ("verdict", "Verdict", setup::verdict(record)),
        ("ratios", "Ratios", setup::ratios(record)),
        ("setup", "Setup", setup::card(record)),
        ("tables", "What this experiment asks", tables(record)),
        (
            "amplification",
            "Amplification",
            figures::amplification(record),
        ),
        ("efficiency", "Efficiency", figures::efficiency(record)),
        ("qos", "Quality of service", qos.concat()),
        ("trees", "Shape of the trees", figures::trees(record)),
        (
            "device",
            "Device and memory",
            figures::iostat(record) + &figures::memory(record) + &figures::sums(record),
        ),
        (
            "figures",
            "All figures by step",
            operations(record) + &figures::everything(record),
        ),
        ("meaning", "What it means", boxes::boxes(record)),
        (
            "repeat",
            "Raw files, and how to repeat it",
            repeat(record, raw),
        ),
    ];
    all.into_iter()
        .filter(|(_, _, html)| !html.is_empty())
        .collect()
}

fn article(record: &Record, id: &str, is_alone: bool, raw: &[String]) -> String {
    let sections = sections(record, raw);
    let items = sections
        .iter()
        .map(|(name, title, _)| format!("<li><a href=\"#{id}-{name}\">{title}</a></li>"));
    let items: String = items.collect();
    let mut out = if is_alone {
        String::new()
    } else {
        format!(
            "<h2 id=\"{id}\">{}</h2>{}",
            escape(&record.title),
            lead(record)
        )
    };
    let navigation = format!(
        "<nav aria-label=\"Sections of {}\"><ul>{items}</ul></nav>\n",
        escape(&record.experiment)
    );
    for (at, (name, title, html)) in sections.iter().enumerate() {
        let _ = write!(
            out,
            "<section id=\"{id}-{name}\" aria-labelledby=\"{id}-{name}-h\"><h2 \
             id=\"{id}-{name}-h\">{title}</h2>\n{html}</section>"
        );
        // Losses come before the list of what else there is.
        if at == 0 {
            out.push_str(&navigation);
        }
    }
    out
}

/// The tables of the experiment, each with its chart.
fn tables(record: &Record) -> String {
    let mut out = String::new();
    for (at, info) in record.tables.iter().enumerate() {
        let _ = write!(
            out,
            "<h3>{}</h3><p>{}</p>",
            escape(&info.title),
            escape(&info.about)
        );
        if let Some(chart) = &info.chart {
            let id = format!("{}-table-{at}", record.experiment);
            out.push_str("<div class=\"charts\"><figure>");
            let _ = write!(
                out,
                "<figcaption>{}</figcaption>{}",
                escape(&info.title),
                lines(chart, &id, &info.title).html()
            );
            out.push_str("</figure></div>\n");
        }
        let head: Vec<&str> = info.columns.iter().map(String::as_str).collect();
        let mut table = Table::new(&info.title, &head);
        for row in &info.rows {
            let mut cells: Vec<html::Cell> = row.iter().map(|cell| text(cell)).collect();
            for cell in cells.iter_mut().skip(1) {
                let starts = cell
                    .html
                    .starts_with(|c: char| c.is_ascii_digit() || c == '-');
                cell.class = if starts { "n" } else { "" };
            }
            table.row(cells);
        }
        out.push_str(&table.html());
    }
    out
}

fn lines(chart: &record::Chart, id: &str, title: &str) -> Chart {
    let lines = chart.lines.iter().enumerate();
    let lines = lines.map(|(style, (name, points))| Line {
        name: name.clone(),
        style,
        points: points.clone(),
    });
    Chart {
        id: id.to_string(),
        title: title.to_string(),
        x: chart.x.clone(),
        y: chart.y.clone(),
        log_x: chart.log_x,
        lines: lines.collect(),
        ..Chart::default()
    }
}

/// Latencies by kind of operation, where an experiment has several.
fn operations(record: &Record) -> String {
    let mut table = Table::new(
        "Kinds of operations, of the run in the middle; microseconds",
        &[
            "step",
            "engine",
            "operation",
            "count",
            "p50",
            "p99",
            "p99.9",
            "longest",
        ],
    );
    for (step, info) in record.steps.iter().enumerate() {
        for (engine, of) in record.present() {
            let Some(run) = record.typical(step, engine) else {
                continue;
            };
            for operation in &run.operations {
                let mut row = vec![text(&info.name), text(&of.name), text(&operation.name)];
                row.push(html::maybe(Some(operation.count as f64)));
                let at = |p: f64| html::maybe(operation.latency.at(p));
                row.extend([at(50.0), at(99.0), at(99.9), at(100.0)]);
                table.row(row);
            }
        }
    }
    if table.is_empty() {
        String::new()
    } else {
        table.html()
    }
}

/// Raw files and the command.
fn repeat(record: &Record, raw: &[String]) -> String {
    let mut out = format!("<pre>{}</pre>\n", escape(&record.command));
    if raw.is_empty() {
        out.push_str(
            "<p>The raw files (runs, logs, OPTIONS files, tables) are in the directory of the \
             run.</p>",
        );
        return out;
    }
    let item = |path: &String| {
        let path = escape(path);
        format!("<li><a href=\"{path}\">{path}</a></li>")
    };
    let (runs, tables): (Vec<&String>, Vec<&String>) =
        raw.iter().partition(|path| path.starts_with("runs/"));
    let list = |paths: &[&String]| paths.iter().map(|path| item(path)).collect::<String>();
    let _ = write!(out, "<ul>{}</ul>", list(&tables));
    let summary = format!("{} files of single runs: steps, logs, OPTIONS", runs.len());
    if !runs.is_empty() {
        out.push_str(&details(&summary, &format!("<ul>{}</ul>", list(&runs))));
    }
    out
}

#[cfg(test)]
mod tests;
