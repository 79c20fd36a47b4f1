//! `hot-row`: commits on one row.

use super::outcome::outcome;
use super::{
    CACHE, DURABILITY, MEMTABLE, Relational, StepWriter, say_checks, seconds, setting, step,
    threads,
};
use crate::experiment::plan::{Request, Setting};
use crate::experiment::record::{self, Aim, Ask, Chart, Outcome, Record, Table};
use crate::model::scalability::fit;
use crate::relational::drive::Pace;
use crate::relational::engine::Engine;
use crate::relational::hot_row::{curve, load, rate_at, rate_within, run as add, schema, value};
use crate::{Result, interrupt};

const SETTINGS: [Setting; 9] = [
    setting(
        "threads",
        "2",
        "16",
        "clients of the search for the highest rate",
    ),
    setting(
        "sweep",
        "1,2,4,8,16",
        "1,2,4,8,16,32,64,128",
        "clients of the closed loops",
    ),
    setting("seconds", "3", "60", "seconds of each timed step"),
    setting(
        "objective_us",
        "5000",
        "5000",
        "microseconds within which 99 of 100 commits end",
    ),
    setting("tries", "5", "8", "rates that are tried"),
    setting(
        "bounds_us",
        "100,200,500,1000,2000,5000,10000,50000",
        "100,200,500,1000,2000,5000,10000,50000",
        "bounds of the 99th percentile for the curve of rates, in microseconds",
    ),
    DURABILITY,
    CACHE,
    MEMTABLE,
];

/// `hot-row`.
pub static HOT_ROW: Relational = Relational {
    name: "hot-row",
    title: "Commits on one row",
    help: "every transaction adds to the same row: the rate by clients, and within an objective",
    about: "Every transaction adds 1 to one row, so that all of them wait for each other. Closed \
            loops show the rate by the number of clients, to which the universal scalability law \
            is fitted; then the highest rate is searched at which 99 of 100 commits end within the \
            objective, from their intended start. Rising rates give the throughput at each bound \
            of latency. At the end the row has the sum of all commits.",
    settings: &SETTINGS,
    engines: &["esker"],
    schema,
    steps,
    run,
    finish,
    size: |request| {
        let steps = request.counts("sweep")?.len() as u64 + request.count("tries")? + 8;
        Ok((
            (steps as f64 * seconds(request, "seconds")?) as u64 + 2,
            1 << 30,
        ))
    },
};

fn steps(request: &Request) -> Result<Vec<record::Step>> {
    let mut steps = Vec::new();
    for count in request.counts("sweep")? {
        let clients = if count == 1 { "client" } else { "clients" };
        let help = format!("{count} {clients} in a closed loop");
        steps.push(step(
            &format!("clients-{count}"),
            &help,
            "ops_sec",
            Aim::More,
            true,
        ));
    }
    let objective = request.count("objective_us")?;
    let help = format!("the highest rate with a p99 within {objective} us");
    steps.push(step(
        "objective",
        &help,
        "rate_at_objective",
        Aim::More,
        true,
    ));
    let help = "latencies at rising rates: throughput at each bound";
    let mut curve = step("curve", help, "rates", Aim::Neither, false);
    curve.asks = (request.counts("bounds_us")?.iter())
        .map(|us| Ask {
            figure: bound_figure(*us),
            what: format!("commits within {us} us"),
            aim: Aim::More,
        })
        .collect();
    steps.push(curve);
    let help = "the row is the sum of all commits";
    steps.push(step("verify", help, "mismatches", Aim::Neither, false));
    Ok(steps)
}

fn run(request: &Request, engine: &dyn Engine, keep: &mut StepWriter<'_, '_>) -> Result<()> {
    load(engine)?;
    let seconds = seconds(request, "seconds")?;
    let (mut sum, mut most) = (0, 0.0f64);
    for count in request.counts("sweep")? {
        let name = format!("clients-{count}");
        keep.show(&name);
        let pace = Pace {
            threads: usize::try_from(count).unwrap_or(1),
            seconds,
            ..Pace::default()
        };
        let step = add(engine, &name, pace)?;
        sum += step.operations;
        most = most.max(step.rate());
        if !keep.keep(outcome(&step, None))? {
            return Ok(());
        }
    }
    keep.show("objective");
    let pace = Pace {
        threads: threads(request)?,
        seconds,
        ..Pace::default()
    };
    let tries = u32::try_from(request.count("tries")?).unwrap_or(5);
    let objective = request.count("objective_us")?;
    let (best, done) = rate_within(engine, pace, most, objective, tries)?;
    sum += done;
    let mut out = match &best {
        Some(step) => outcome(step, None),
        None => Outcome::default(),
    };
    let rate = best.as_ref().map_or(0.0, |step| step.rate());
    out.put("rate_at_objective", rate, "ops/s");
    if !keep.keep(out)? {
        return Ok(());
    }
    keep.show("curve");
    let (found, done) = curve(engine, pace, most)?;
    sum += done;
    if interrupt::stopped() || !keep.keep(bounds(request, &found)?)? {
        return Ok(());
    }
    let found = value(engine)?;
    if interrupt::stopped() {
        return Ok(());
    }
    let wrong: Vec<String> = (found != sum as i64)
        .then(|| format!("the row is {found} after {sum} commits"))
        .into_iter()
        .collect();
    keep.check(wrong.len() as u64, &wrong, 0, engine.disk_bytes())
}

/// The figure that has the rate within a bound.
fn bound_figure(us: u64) -> String {
    format!("rate_p99_{us}us")
}

/// The curve as an outcome: the rate within each bound; 0 where none kept it, so that the median of
/// several runs is of all of them.
fn bounds(request: &Request, curve: &[(f64, u64)]) -> Result<Outcome> {
    let mut out = Outcome::default();
    out.put("rates", curve.len() as f64, "");
    for us in request.counts("bounds_us")? {
        let rate = rate_at(curve, us).unwrap_or(0.0);
        out.put(&bound_figure(us), rate, "ops/s");
    }
    Ok(out)
}

/// Throughput by the bound of the 99th percentile.
fn bounds_table(request: &Request, record: &Record) -> Option<Table> {
    let at = record.steps.iter().position(|step| step.name == "curve")?;
    let bounds = request.counts("bounds_us").ok()?;
    let mut chart = Chart {
        x: "us, bound of the p99".into(),
        y: "commits a second".into(),
        log_x: true,
        ..Chart::default()
    };
    let mut columns = vec!["bound of the p99, us".to_string()];
    let mut rows: Vec<Vec<String>> = bounds.iter().map(|us| vec![us.to_string()]).collect();
    for (engine, facts) in record.present() {
        columns.push(facts.name.clone());
        let mut points = Vec::new();
        for (row, us) in rows.iter_mut().zip(&bounds) {
            let rate = record.median(at, engine, &bound_figure(*us));
            points.extend(rate.map(|rate| (*us as f64, rate)));
            row.push(rate.map_or("-".into(), |rate| format!("{rate:.0}")));
        }
        chart.lines.push((facts.name.clone(), points));
    }
    chart
        .lines
        .iter()
        .any(|(_, points)| !points.is_empty())
        .then(|| Table {
            title: "Throughput at a bound of latency".into(),
            about:
                "The highest rate at which 99 of 100 commits ended within the bound, from their \
                intended start; 0 where none did."
                    .into(),
            columns,
            rows,
            chart: Some(chart),
        })
}

/// The rates by clients, with the law that is fitted to them.
fn finish(request: &Request, record: &mut Record) {
    say_checks(record, "The sums of all commits");
    let Ok(sweep) = request.counts("sweep") else {
        return;
    };
    let columns = [
        "engine",
        "alpha",
        "beta",
        "gamma",
        "peak at clients",
        "points",
    ];
    let mut table = Table {
        title: "The universal scalability law".into(),
        about:
            "X(N) = gamma N / (1 + alpha (N-1) + beta N (N-1)), by least squares, with half the \
                width of the 95 % interval."
                .into(),
        columns: columns.map(String::from).to_vec(),
        ..Table::default()
    };
    let mut chart = Chart {
        x: "clients".into(),
        y: "commits a second".into(),
        log_x: true,
        ..Chart::default()
    };
    for (at, engine) in record.present() {
        let points: Vec<(f64, f64)> = sweep
            .iter()
            .enumerate()
            .filter_map(|(step, n)| Some((*n as f64, record.median(step, at, "ops_sec")?)))
            .collect();
        let mut row = vec![engine.name.clone()];
        match fit(&points, None) {
            Ok(law) => {
                for i in 0..3 {
                    row.push(format!("{:.4} ± {:.4}", law.estimate[i], law.half_width[i]));
                }
                row.push(
                    law.peak()
                        .map_or("none".into(), |peak| format!("{peak:.1}")),
                );
            }
            Err(why) => row.extend([why.to_string(), String::new(), String::new(), String::new()]),
        }
        row.push(points.len().to_string());
        table.rows.push(row);
        chart.lines.push((engine.name.clone(), points));
    }
    table.chart = Some(chart);
    record.tables.push(table);
    let bounds = bounds_table(request, record);
    record.tables.extend(bounds);
}
