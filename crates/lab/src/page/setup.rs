//! The top of a report: verdict, losses, flags, the machine, options, and the table of ratios.

use std::fmt::Write as _;

use crate::experiment::ratio::{self, BLUE, YELLOW};
use crate::experiment::record::{Aim, Record};

use super::html::{Cell, Table, details, escape, maybe, text, with_unit};
use super::verdict::{compared, judged, losses, missed, sentences};

/// Losses shown before the rest is folded away.
const LOSSES: usize = 8;
/// Options shown before the rest is folded away.
const OPTIONS: usize = 10;

/// Verdict and losses.
pub(super) fn verdict(record: &Record) -> String {
    let mut out = String::from("<div class=\"top\"><div class=\"verdict\">");
    for sentence in sentences(record) {
        let _ = write!(out, "<p>{}</p>", escape(&sentence));
    }
    let _ = write!(out, "{}</div>\n<div>", flags(record));
    for engine in compared(record) {
        loss_list(record, engine, &mut out);
    }
    out.push_str("</div></div>\n");
    out
}

fn loss_list(record: &Record, engine: usize, out: &mut String) {
    let (name, base) = (
        &record.engines[engine].name,
        &record.engines[record.base].name,
    );
    let all = losses(record, engine);
    if all.is_empty() {
        let _ = write!(
            out,
            "<div class=\"losses none\"><h3>Where {0} is worse than {1}</h3><p>In no rate and no \
             cost by more than 5 %.</p></div>",
            escape(name),
            escape(base)
        );
        return;
    }
    let item = |loss: &super::verdict::Loss| {
        format!(
            "<li>{}, {}: {:.2} ({}){}</li>",
            escape(&record.steps[loss.step].name),
            loss.what,
            loss.ratio,
            escape(&loss.interval),
            if loss.is_sure {
                ""
            } else {
                ", not beyond the noise"
            }
        )
    };
    let items: Vec<String> = all.iter().map(item).collect();
    let (first, rest) = items.split_at(items.len().min(LOSSES));
    let _ = write!(
        out,
        "<div class=\"losses\"><h3>Where {} is worse than {}</h3><ul>{}</ul>",
        escape(name),
        escape(base),
        first.join("")
    );
    if !rest.is_empty() {
        let inner = format!("<ul>{}</ul>", rest.join(""));
        out.push_str(&details(&format!("{} more", rest.len()), &inner));
    }
    out.push_str(
        "<p class=\"note\">Below 1 is worse: of a rate this engine's part of the other's, of a \
         cost the other's part of this engine's. In brackets the interval of 95 %.</p></div>\n",
    );
}

fn flags(record: &Record) -> String {
    if record.flags.is_empty() {
        return String::new();
    }
    let mut list = String::from("<ul class=\"flags\">");
    for flag in &record.flags {
        let _ = write!(
            list,
            "<li>{}: {}</li>",
            escape(&flag.kind),
            escape(&flag.text)
        );
    }
    list.push_str("</ul>");
    details(&format!("Validity flags: {}", record.flags.len()), &list)
}

/// The machine, the engines, and the options that differ.
pub(super) fn card(record: &Record) -> String {
    let mut out = format!("<p>{}</p>\n", escape(&record.about));
    out.push_str("<div class=\"columns\"><div><h3>Machine</h3><dl>");
    for (name, value) in &record.host.facts {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    let loads = &record.host.loads;
    if let (Some(first), Some(most)) = (loads.first(), loads.iter().copied().reduce(f64::max)) {
        let _ = write!(
            out,
            "<dt>load</dt><dd>{first:.2} at first, {most:.2} at most</dd>"
        );
    }
    out.push_str("</dl>");
    for warning in &record.host.warnings {
        let _ = write!(out, "<p class=\"note\">Preflight: {}.</p>", escape(warning));
    }
    out.push_str("</div><div><h3>Settings</h3><dl>");
    for (name, value) in &record.settings {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    let _ = write!(
        out,
        "<dt>pairs</dt><dd>{} (A B B A)</dd></dl></div></div>",
        record.pairs
    );
    out.push_str(&engines(record));
    out.push_str(&options(record));
    out
}

fn engines(record: &Record) -> String {
    let mut table = Table::new("Engines", &["engine", "version", "as named", "binary"]);
    for engine in &record.engines {
        let version = match &engine.missing {
            Some(why) => format!("not run: {why}"),
            None => engine.version.clone(),
        };
        // Only the name of a file belongs on a page.
        let spec = match engine.spec.split_once(':') {
            Some((kind, path)) => {
                let file = path.rsplit('/').next().unwrap_or(path);
                format!("{kind}:{file}")
            }
            None => engine.spec.clone(),
        };
        table.row(vec![
            text(&engine.name),
            text(&version),
            text(&spec),
            text(&engine.hash),
        ]);
    }
    let mut out = table.html();
    for engine in &record.engines {
        for note in &engine.notes {
            let _ = write!(
                out,
                "<p class=\"note\">{}: {}</p>",
                escape(&engine.name),
                escape(note)
            );
        }
    }
    out
}

/// Options whose values differ, and what the linter says of each engine's.
fn options(record: &Record) -> String {
    let with: Vec<usize> = record
        .present()
        .filter(|(_, engine)| !engine.options.is_empty())
        .map(|(at, _)| at)
        .collect();
    let mut out = String::new();
    for at in &with {
        let engine = &record.engines[*at];
        if engine.findings.is_empty() {
            continue;
        }
        let items = engine
            .findings
            .iter()
            .map(|f| format!("<li>{}</li>", escape(f)));
        let list = format!("<ul>{}</ul>", items.collect::<String>());
        let count = engine.findings.len();
        let summary = format!("The linter on the options of {}: {count}", engine.name);
        out.push_str(&details(&summary, &list));
    }
    let [first, others @ ..] = with.as_slice() else {
        return out;
    };
    let names = record.engines[*first].options.keys();
    let value = |at: usize, name: &str| record.engines[at].options.get(name);
    let differs = |name: &&String| {
        let ours = value(*first, name);
        others.iter().any(|at| {
            let theirs = value(*at, name);
            theirs.is_some() && theirs != ours
        })
    };
    let mut head = vec!["option"];
    head.extend(with.iter().map(|at| record.engines[*at].name.as_str()));
    let mut tables = [
        Table::new("Options that differ", &head),
        Table::new("More options that differ", &head),
    ];
    let names: Vec<&String> = names.filter(differs).collect();
    for (at, name) in names.iter().enumerate() {
        let mut cells = vec![text(name)];
        let value = |at: &usize| value(*at, name).map_or("-", String::as_str);
        cells.extend(with.iter().map(|at| text(value(at))));
        tables[usize::from(at >= OPTIONS)].row(cells);
    }
    if names.is_empty() && !others.is_empty() {
        out.push_str("<p class=\"note\">All options that both engines know are alike.</p>");
    }
    let [shown, rest] = tables;
    if !shown.is_empty() {
        out.push_str(&shown.html());
    }
    if !rest.is_empty() {
        let summary = format!("{} more options that differ", names.len() - OPTIONS);
        out.push_str(&details(&summary, &rest.html()));
    }
    out
}

/// A cell of the heat table.
fn heat(record: &Record, step: usize, engine: usize) -> Cell {
    let Some(found) = ratio::of(record, step, engine) else {
        return maybe(None);
    };
    let is_judged = record.steps[step].counts && record.steps[step].aim != Aim::Neither;
    let (class, mark) = match found.median {
        _ if missed(record, step, engine) => ("n grey", " rate missed"),
        _ if !is_judged => ("n", ""),
        median if median < YELLOW => ("n down", " worse"),
        median if median > BLUE => ("n up", " better"),
        _ => ("n", ""),
    };
    let interval = if found.has_interval() {
        format!("{:.2}..{:.2}", found.low, found.high)
    } else {
        format!("{:.2}..{:.2} seen", found.min, found.max)
    };
    Cell {
        html: format!(
            "<strong>{:.2}</strong> <small>{interval}{mark}</small>",
            found.median
        ),
        class,
    }
}

/// The table of steps and engines: medians, and ratios with intervals.
pub(super) fn ratios(record: &Record) -> String {
    let base = record
        .engines
        .get(record.base)
        .map_or("", |engine| &engine.name);
    let others = compared(record);
    let mut head = vec!["step".to_string()];
    for at in &others {
        head.push(format!("{} / {base}", record.engines[*at].name));
    }
    head.extend(record.present().map(|(_, engine)| engine.name.clone()));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new("Ratios, and the medians behind them", &head);
    for (step, info) in record.steps.iter().enumerate() {
        if record.results.iter().all(|run| run.step != step) {
            continue;
        }
        let mut cells = vec![Cell {
            html: format!(
                "{}<br><small>{}</small>",
                escape(&info.name),
                escape(&info.help)
            ),
            class: "",
        }];
        cells.extend(others.iter().map(|engine| heat(record, step, *engine)));
        for (engine, _) in record.present() {
            let figure = record
                .runs(step, engine)
                .find_map(|run| run.figures.get(&info.figure));
            let unit = figure.map_or("", |figure| figure.unit.as_str());
            let value = record.median(step, engine, &info.figure);
            cells.push(Cell {
                html: escape(&value.map_or("-".into(), |value| with_unit(value, unit))),
                class: "n",
            });
        }
        table.row(cells);
    }
    let count = judged(record).count();
    format!(
        "<p class=\"note key\"><span class=\"down\">below 0.95, worse</span><span \
         class=\"up\">above 1.05, better</span><span class=\"grey\">the writer beside missed its \
         rate</span></p>\n{}<p class=\"note\">Each ratio is the median of the paired ratios with \
         its interval of 95 % by bootstrap; of times it is turned so that more than 1 is better. \
         Where there are too few runs for an interval, the smallest and the largest ratio stand \
         there. {count} of the steps are judged; the others are shown.</p>\n",
        table.html()
    )
}
