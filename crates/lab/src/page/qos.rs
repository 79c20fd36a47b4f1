//! Quality of service: rates by second with the ledger of stalls, percentiles, objectives.

use crate::experiment::record::{Latency, Outcome, Record};

use super::html::{Table, details, escape, maybe, number, text};
use super::svg::{Chart, Ledger, Line};

/// Objectives for the 99th percentile of a second, in microseconds.
const OBJECTIVES: [(f64, &str); 3] = [
    (100.0, "p99 <= 0.1 ms, %"),
    (1000.0, "p99 <= 1 ms, %"),
    (10_000.0, "p99 <= 10 ms, %"),
];

/// The runs to draw of a step.
fn typical(record: &Record, step: usize) -> Vec<(usize, &Outcome)> {
    let engines = record.present();
    let runs = engines.filter_map(|(engine, _)| Some((engine, record.typical(step, engine)?)));
    runs.collect()
}

/// A chart for each step that took two seconds or more.
pub(super) fn charts(record: &Record) -> String {
    let mut out = String::new();
    for step in 0..record.steps.len() {
        let runs: Vec<(usize, &Outcome)> = typical(record, step)
            .into_iter()
            .filter(|(_, run)| run.series.len() > 1)
            .collect();
        if runs.is_empty() {
            continue;
        }
        out.push_str(&figure(record, step, &runs));
    }
    if out.is_empty() {
        return "<p>No step took long enough for a chart.</p>\n".into();
    }
    format!("<div class=\"charts\">{out}</div>\n")
}

fn figure(record: &Record, step: usize, runs: &[(usize, &Outcome)]) -> String {
    let name = |engine: usize| record.engines[engine].name.clone();
    let line = |(engine, run): &(usize, &Outcome)| Line {
        name: name(*engine),
        style: *engine,
        points: (run.series.iter().enumerate())
            .map(|(at, second)| ((at + 1) as f64, second.operations))
            .collect(),
    };
    let ledger = |(engine, run): &(usize, &Outcome)| {
        let seconds = run.series.iter();
        let all = 1e6 * run.writers();
        let seconds = seconds.map(|s| [s.stopped, s.delayed, s.paced].map(|us| us / all));
        let seconds: Vec<[f64; 3]> = seconds.collect();
        let held = seconds.iter().flatten().any(|part| *part > 0.0);
        held.then(|| Ledger {
            name: name(*engine),
            seconds,
        })
    };
    let step_name = &record.steps[step].name;
    let chart = Chart {
        id: format!("{}-rate-{step}", record.experiment),
        title: format!("{step_name}, rate by second"),
        x: "seconds".into(),
        y: "ops/s".into(),
        lines: runs.iter().map(line).collect(),
        ledgers: runs.iter().filter_map(ledger).collect(),
        ..Chart::default()
    };
    format!(
        "<figure><figcaption>{}</figcaption>{}{}</figure>\n",
        escape(step_name),
        chart.html(),
        details("As a table", &series(record, step, runs))
    )
}

/// The chart in numbers.
fn series(record: &Record, step: usize, runs: &[(usize, &Outcome)]) -> String {
    let mut head = vec!["second".to_string()];
    for (engine, _) in runs {
        let name = &record.engines[*engine].name;
        head.extend([format!("{name}, ops/s"), format!("{name}, held back, %")]);
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let title = format!(
        "{}: operations and stalls by second",
        record.steps[step].name
    );
    let mut table = Table::new(&title, &head);
    let seconds = runs
        .iter()
        .map(|(_, run)| run.series.len())
        .max()
        .unwrap_or(0);
    // A long series is thinned out.
    let every = seconds.div_ceil(60).max(1);
    for at in (0..seconds).step_by(every) {
        let mut row = vec![text(&(at + 1).to_string())];
        for (_, run) in runs {
            let second = run.series.get(at);
            let all = 1e4 * run.writers();
            let held = second.map(|s| (s.stopped + s.delayed + s.paced) / all);
            row.extend([second.map(|s| s.operations), held].map(maybe));
        }
        table.row(row);
    }
    table.html()
}

/// One of the latencies of an outcome.
type Kept = fn(&Outcome) -> &Latency;

/// Percentiles of each step, closed loop and from the intended start.
pub(super) fn percentiles(record: &Record) -> String {
    let mut table = Table::new(
        "Latencies in microseconds, medians of the runs",
        &[
            "step",
            "engine",
            "measured from",
            "p50",
            "p99",
            "p99.9",
            "p99.99",
            "longest",
        ],
    );
    let of = |step: usize, engine: usize, get: Kept| {
        [50.0, 99.0, 99.9, 99.99, 100.0].map(|p| {
            let runs = record.runs(step, engine).filter_map(|run| get(run).at(p));
            crate::experiment::record::median(&mut runs.collect::<Vec<f64>>())
        })
    };
    for step in 0..record.steps.len() {
        for (engine, info) in record.present() {
            let kinds: [(&str, Kept); 2] = [
                ("the last operation's end", |run| &run.latency),
                ("the intended start", |run| &run.intended),
            ];
            for (name, get) in kinds {
                let values = of(step, engine, get);
                if values.iter().all(Option::is_none) {
                    continue;
                }
                let mut row = vec![text(&record.steps[step].name), text(&info.name), text(name)];
                row.extend(values.map(maybe));
                table.row(row);
            }
            beside(record, step, engine, &mut table);
        }
    }
    if table.is_empty() {
        return String::new();
    }
    table.html()
        + "<p class=\"note\">A closed loop starts an operation when the last has ended, so a stall \
           delays one operation. From the intended start it delays all that should have begun \
           meanwhile; only paced operations have such a time. What the client's own timer was \
           late is left out.</p>\n"
}

/// The latencies of the paced writer beside a step.
fn beside(record: &Record, step: usize, engine: usize, table: &mut Table) {
    for (name, end) in [
        ("writer beside", ""),
        ("writer beside, intended start", "_intended"),
    ] {
        let value = |p: &str| {
            let name = format!("beside_{p}{end}");
            record.median(step, engine, &name)
        };
        let values = [
            value("p50"),
            value("p99"),
            value("p99.9"),
            None,
            value("pmax"),
        ];
        if values.iter().any(Option::is_some) {
            let engine = &record.engines[engine].name;
            let mut row = vec![text(&record.steps[step].name), text(engine), text(name)];
            row.extend(values.map(maybe));
            table.row(row);
        }
    }
}

/// How steady the rate was, how writers were held back, and how often an objective was met.
pub(super) fn steadiness(record: &Record) -> String {
    let mut head = vec![
        "step",
        "engine",
        "variation",
        "slowest second, ops/s",
        "seconds below half",
        "stopped, %",
        "delayed, %",
        "paced, %",
        "calls >= 1 ms, %",
    ];
    head.extend(OBJECTIVES.iter().map(|(_, name)| *name));
    let mut table = Table::new("Steadiness, stalls, and seconds within an objective", &head);
    for step in 0..record.steps.len() {
        for (engine, info) in record.present() {
            let figure = |name: &str| record.median(step, engine, name);
            if figure("qps_cv").is_none() {
                continue;
            }
            let mut row = vec![text(&record.steps[step].name), text(&info.name)];
            row.extend(
                [
                    "qps_cv",
                    "qps_min",
                    "seconds_below_half_median",
                    "stopped%",
                    "delayed%",
                    "paced%",
                    "calls_1ms%",
                ]
                .map(|name| maybe(figure(name))),
            );
            row.extend(OBJECTIVES.map(|(us, _)| maybe(within(record, step, engine, us))));
            table.row(row);
        }
    }
    if table.is_empty() {
        return String::new();
    }
    table.html()
        + "<p class=\"note\">Variation is the standard deviation of the rates of seconds over their \
           mean. A writer is stopped, delayed (1 ms or more) or paced (less); engines without a \
           ledger have dashes. Calls of 1 ms or more are counted for every engine.</p>\n"
}

/// The part of the seconds whose 99th percentile is within an objective, in percent.
fn within(record: &Record, step: usize, engine: usize, us: f64) -> Option<f64> {
    let runs = record.runs(step, engine).flat_map(|run| &run.series);
    let measured: Vec<f64> = runs
        .map(|second| second.p99)
        .filter(|p99| *p99 > 0.0)
        .collect();
    if measured.is_empty() {
        return None;
    }
    let good = measured.iter().filter(|p99| **p99 <= us).count();
    Some(100.0 * good as f64 / measured.len() as f64)
}

/// Prints the causes of stalls, for each step with stalls.
pub(super) fn causes(record: &Record) -> String {
    let mut table = Table::new(
        "What writers waited for, in the run in the middle",
        &[
            "step",
            "engine",
            "cause",
            "kind",
            "times",
            "seconds",
            "seconds of all writers",
        ],
    );
    for step in 0..record.steps.len() {
        for (engine, run) in typical(record, step) {
            for stall in &run.stalls {
                let seconds = |us: u64| maybe(Some(us as f64 / 1e6));
                table.row(vec![
                    text(&record.steps[step].name),
                    text(&record.engines[engine].name),
                    text(&stall.cause),
                    text(&stall.kind),
                    text(&number(stall.times as f64)),
                    seconds(stall.micros),
                    seconds(stall.writers_micros),
                ]);
            }
        }
    }
    if table.is_empty() {
        return String::new();
    }
    details("The ledger of stalls by cause", &table.html())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::{Engine, Second, Step};

    #[test]
    fn a_second_shows_the_share_of_all_writers() {
        let second = Second {
            stopped: 2e6,
            delayed: 1e6,
            ..Second::default()
        };
        let run = Outcome {
            seconds: 10.0,
            thread_seconds: 80.0,
            series: vec![second],
            ..Outcome::default()
        };
        let record = Record {
            engines: vec![Engine::default()],
            steps: vec![Step::default()],
            ..Record::default()
        };
        let runs = [(0, &run)];
        let table = series(&record, 0, &runs);
        assert!(table.contains(">37.5<"), "{table}");
        let chart = figure(&record, 0, &runs);
        assert!(chart.contains("writers held back 38 %"), "{chart}");
    }
}
