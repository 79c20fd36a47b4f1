//! The top of a report: verdict, losses, flags, the machine, options, and the table of ratios.

use std::fmt::Write as _;

use crate::experiment::ratio;
use crate::experiment::record::{Aim, Record};

use super::finding::{Certainty, Finding, counted, interval, missed, side};
use super::forest::{Mark, ratio_chart};
use super::html::{Cell, Table, details, escape, maybe, text, with_unit};
use super::verdict::{compared, headlines, losses, losses_to_others, rest};

/// Losses shown before the rest is folded away.
const LOSSES: usize = 8;
/// Options shown before the rest is folded away.
const OPTIONS: usize = 10;

/// Verdict and losses.
pub(super) fn verdict(record: &Record) -> String {
    let mut out = String::from("<div class=\"top\"><div class=\"verdict\">");
    for sentence in headlines(record) {
        let _ = write!(out, "<p class=\"headline\">{}</p>", escape(&sentence));
    }
    for sentence in rest(record) {
        let _ = write!(out, "<p>{}</p>", escape(&sentence));
    }
    let _ = write!(out, "{}</div>\n<div>", flags(record));
    let base = record.engines.get(record.base);
    for (at, engine) in compared(record).into_iter().enumerate() {
        let name = &record.engines[engine].name;
        let title = format!(
            "Where {name} is worse than {}",
            base.map_or("", |b| &b.name)
        );
        let mut boxes = loss_list(record, &title, &losses(record, engine));
        let others = losses_to_others(record, engine);
        if !others.is_empty() {
            let title = format!("Where {name} is worse than the best of the others");
            boxes.push_str(&loss_list(record, &title, &others));
        }
        // The first is what the page is about.
        out.push_str(&match at {
            0 => boxes,
            _ => details(&format!("Where {name} is worse"), &boxes),
        });
    }
    out.push_str("</div></div>\n");
    out
}

fn loss_list(record: &Record, title: &str, all: &[Finding]) -> String {
    if all.is_empty() {
        return format!(
            "<div class=\"losses none\"><h3>{}</h3><p>In no step and no cost by more than 3 \
             %.</p></div>",
            escape(title)
        );
    }
    let item = |loss: &Finding| {
        let other = &record.engines[loss.other].name;
        let text = format!("{}: {}", loss.place(record), loss.words(record));
        let doubt = match loss.doubt {
            Certainty::Noise => ", not beyond the noise",
            _ => "",
        };
        format!(
            "<li>{} <small>({}, ratio {}{doubt})</small></li>",
            escape(&text),
            escape(other),
            escape(&loss.interval),
        )
    };
    let items: Vec<String> = all.iter().map(item).collect();
    let (first, rest) = items.split_at(items.len().min(LOSSES));
    let mut out = format!(
        "<div class=\"losses\"><h3>{}</h3><ul>{}</ul>",
        escape(title),
        first.join("")
    );
    if !rest.is_empty() {
        let inner = format!("<ul>{}</ul>", rest.join(""));
        out.push_str(&details(&format!("{} more", rest.len()), &inner));
    }
    out + "<p class=\"note\">In brackets the engine of comparison and the interval of 95 % of the \
           ratio, or the range that was seen; below 1 is worse.</p></div>\n"
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

/// A row of the table of ratios: a step, or a further figure that the experiment asks for.
struct Line<'a> {
    step: usize,
    name: String,
    help: &'a str,
    figure: &'a str,
    aim: Aim,
}

/// The rows: steps that have an aim and ran, each with what else is asked of it.
fn lines(record: &Record) -> Vec<Line<'_>> {
    let mut out = Vec::new();
    for (step, info) in record.steps.iter().enumerate() {
        if record.results.iter().all(|run| run.step != step) {
            continue;
        }
        if info.aim != Aim::Neither {
            out.push(Line {
                step,
                name: info.name.clone(),
                help: &info.help,
                figure: &info.figure,
                aim: info.aim,
            });
        }
        for ask in &info.asks {
            out.push(Line {
                step,
                name: format!("{}, {}", info.name, ask.what),
                help: "",
                figure: &ask.figure,
                aim: ask.aim,
            });
        }
    }
    out
}

/// A cell of the heat table. A ratio beyond 3 % is coloured, pale where it has no interval, or the
/// cell says why it is not judged.
fn heat(record: &Record, line: &Line<'_>, engine: usize) -> Cell {
    let engines = [engine, record.base];
    if let Some(why) = engines.iter().find_map(|at| record.missing(line.step, *at)) {
        return Cell {
            html: format!("<small>not run: {}</small>", escape(why)),
            class: "w",
        };
    }
    let Some(found) = ratio::between(record, line.step, engines, line.figure, line.aim) else {
        return maybe(None);
    };
    let info = &record.steps[line.step];
    let (class, mark) = if ratio::unequal(record, line.step, engines) {
        ("n grey", " not judged: unequal work".to_string())
    } else if missed(record, line.step, engines) {
        ("n grey", " not judged: rate missed".into())
    } else {
        let (class, word) = match side(&found) {
            Some((true, Certainty::Sure)) => ("n up", " better"),
            Some((false, Certainty::Sure)) => ("n down", " worse"),
            Some((true, Certainty::Seen)) => ("n up pale", " better"),
            Some((false, Certainty::Seen)) => ("n down pale", " worse"),
            _ => ("n", ""),
        };
        let why = match (info.counts || line.figure != info.figure, info.why.as_str()) {
            (true, _) => String::new(),
            (false, "") => ", not in the mean".into(),
            (false, why) => format!(", not in the mean: {why}"),
        };
        (class, format!("{word}{}", escape(&why)))
    };
    Cell {
        html: format!(
            "<strong>{:.2}</strong> <small>{}{mark}</small>",
            found.median,
            interval(&found)
        ),
        class,
    }
}

/// The chart of all ratios with their intervals.
fn chart(record: &Record, lines: &[Line<'_>]) -> String {
    let others = compared(record);
    let row = |line: &Line<'_>| {
        let marks = others.iter().enumerate().filter_map(|(style, engine)| {
            let engines = [*engine, record.base];
            if ratio::unequal(record, line.step, engines) {
                return None;
            }
            let found = ratio::between(record, line.step, engines, line.figure, line.aim)?;
            let (low, high) = if found.has_interval() {
                (found.low, found.high)
            } else {
                (found.min, found.max)
            };
            Some(Mark {
                style,
                at: found.median,
                low,
                high,
            })
        });
        (line.name.clone(), marks.collect::<Vec<Mark>>())
    };
    let rows: Vec<(String, Vec<Mark>)> = lines.iter().map(row).collect();
    let names: Vec<&str> = others
        .iter()
        .map(|at| record.engines[*at].name.as_str())
        .collect();
    let base = record.engines.get(record.base).map_or("", |e| &e.name);
    let title = format!("Ratios to {base}: right of 1 is better");
    let chart = ratio_chart(
        &format!("{}-ratios", record.experiment),
        &title,
        &names,
        &rows,
    );
    if chart.is_empty() {
        return chart;
    }
    format!(
        "<div class=\"charts\"><figure><figcaption>{}</figcaption>{chart}</figure></div>\n",
        escape(&title)
    )
}

/// The chart and the table of steps and engines: medians, and ratios with intervals.
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
    let lines = lines(record);
    for line in &lines {
        let mut cells = vec![Cell {
            html: format!(
                "{}<br><small>{}</small>",
                escape(&line.name),
                escape(line.help)
            ),
            class: "",
        }];
        cells.extend(others.iter().map(|engine| heat(record, line, *engine)));
        for (engine, _) in record.present() {
            let figure = record
                .runs(line.step, engine)
                .find_map(|run| run.figures.get(line.figure));
            let unit = figure.map_or("", |figure| figure.unit.as_str());
            let value = record.median(line.step, engine, line.figure);
            cells.push(Cell {
                html: escape(&value.map_or("-".into(), |value| with_unit(value, unit))),
                class: "n",
            });
        }
        table.row(cells);
    }
    let first = others.first().copied().unwrap_or(record.base);
    format!(
        "{}<p class=\"note key\"><span class=\"down\">worse by 3 % and more</span><span \
         class=\"up\">better</span><span class=\"down pale\">seen worse</span><span class=\"up \
         pale\">seen better, too few pairs for an interval</span><span class=\"grey\">not \
         judged</span></p>\n{}<p class=\"note\">Each ratio is the median of the paired ratios with \
         its interval of 95 % by bootstrap; of times it is turned so that more than 1 is better. \
         Where there are too few runs for an interval, the smallest and the largest ratio stand \
         there. A cell has a colour if all of that lies beyond 3 %. The mean has {} of the \
         steps.</p>\n",
        chart(record, &lines),
        table.html(),
        counted(record, [first, record.base]).len()
    )
}
