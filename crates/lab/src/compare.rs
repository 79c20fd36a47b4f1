//! Paired comparison of two engines: `esker bench compare --engine=A --engine=B ...`.
//!
//! Each pair runs A B B A, every run in a fresh process and a fresh directory with the same flags
//! and the same seed, so that drift of the machine falls on both. A row's figure is the median of
//! the paired ratios A/B with a percentile bootstrap interval of 95 %; the run counts as a win or a
//! loss only when the whole interval lies beyond 3 %. Fewer than three pairs give no interval and
//! no verdict. Latencies are measured unless `--nohistogram` says otherwise; `--json` has the rows
//! of every run, with rates and latencies by second, and `--report_file` is one table of all of
//! them.

use serde_json::{Value, json};

use crate::child::Child;
use crate::directory::with_directory;
use crate::flags::Flags;
use crate::generate::Rng;
use crate::report::{self, Row};
use crate::say::{complain, say};
use crate::{Failure, Result};

/// A ratio is a win only when its interval clears this.
pub const THRESHOLD: f64 = 1.03;
const RESAMPLES: usize = 2000;
/// Fewer ratios say nothing about their spread: of six, all lie on one side of the truth by chance
/// in one case of 32.
pub const ENOUGH_RATIOS: usize = 6;
/// A load from here on, before anything of ours ran, is noted: somebody else is at work.
const BUSY: f64 = 0.5;

/// The spread of paired ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// How many ratios these are of.
    pub count: usize,
    /// The median.
    pub median: f64,
    /// Lower end of the bootstrap interval.
    pub low: f64,
    /// Upper end of the bootstrap interval.
    pub high: f64,
    /// The least ratio.
    pub min: f64,
    /// The largest ratio.
    pub max: f64,
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}

impl Ratio {
    /// Of some ratios; `None` when there are none.
    pub fn of(ratios: &[f64]) -> Option<Ratio> {
        if ratios.is_empty() {
            return None;
        }
        let mut rng = Rng::new(1);
        let n = ratios.len();
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let mut draw: Vec<f64> = (0..n)
                    .map(|_| ratios[rng.below(n as u64) as usize])
                    .collect();
                median(&mut draw)
            })
            .collect();
        medians.sort_unstable_by(f64::total_cmp);
        let mut sorted = ratios.to_vec();
        Some(Ratio {
            count: n,
            median: median(&mut sorted),
            low: medians[RESAMPLES * 25 / 1000],
            high: medians[RESAMPLES * 975 / 1000],
            min: sorted[0],
            max: sorted[n - 1],
        })
    }

    /// Returns whether there are enough ratios for an interval.
    pub fn has_interval(&self) -> bool {
        self.count >= ENOUGH_RATIOS
    }

    /// The interval, or why there is none.
    pub fn interval(&self) -> String {
        if self.has_interval() {
            format!("{:.3}..{:.3}", self.low, self.high)
        } else {
            "too few pairs".into()
        }
    }

    /// `win`, `loss` or `even` for the numerator, where more is better; `-` without an interval.
    pub fn verdict(&self) -> &'static str {
        if !self.has_interval() {
            "-"
        } else if self.low > THRESHOLD {
            "win"
        } else if self.high < 1.0 / THRESHOLD {
            "loss"
        } else {
            "even"
        }
    }
}

/// Runs `esker bench compare`.
///
/// # Errors
/// Wrong flags, or a run that failed.
pub fn main(args: &[String]) -> Result<()> {
    let mut engines = Vec::new();
    let mut rest = Vec::new();
    for arg in args {
        match arg.trim_start_matches('-').strip_prefix("engine=") {
            Some(engine) => engines.push(engine.to_string()),
            None => rest.push(arg.clone()),
        }
    }
    let flags = Flags::parse(&rest)?;
    if flags.asked.is_some() {
        say!("{}", crate::flags::help());
        return Ok(());
    }
    let [a, b] = engines.as_slice() else {
        return Err(Failure::usage("compare needs --engine twice"));
    };
    if flags.flag("use_existing_db") {
        return Err(Failure::usage(
            "compare makes a fresh database for every run",
        ));
    }
    let pairs = flags.count("pairs").max(1);
    let load = crate::process::load();
    say!(
        "A = {a}\nB = {b}\nmachine: {}\nload at start: {load:.2}{}",
        crate::process::machine(),
        if load > BUSY {
            ": other work is running, and every figure below has it in it"
        } else {
            ""
        }
    );
    say!("flags: {}\n", rest.join(" "));
    let seed = if flags.is_set("seed") {
        flags.count("seed")
    } else {
        42
    };
    let mut passed = rest.clone();
    if !flags.is_set("histogram") {
        passed.push("--histogram".into());
    }
    let mut runs: [Vec<Vec<Row>>; 2] = [Vec::new(), Vec::new()];
    let mut all = Vec::new();
    'pairs: for pair in 0..pairs {
        for (step, which) in [0, 1, 1, 0].into_iter().enumerate() {
            complain!(
                "pair {} of {pairs}, run {} of 4: {}",
                pair + 1,
                step + 1,
                engines[which]
            );
            let load = crate::process::load();
            let rows = child(&flags, &passed, &engines[which], seed + pair);
            if crate::interrupt::stopped() {
                break 'pairs;
            }
            let rows = rows?;
            all.push(Run {
                engine: ["A", "B"][which],
                pair: pair + 1,
                step: step + 1,
                load,
                rows: rows.clone(),
            });
            runs[which].push(rows);
        }
    }
    let table = Comparison::of(&runs);
    say!("{}", table.text());
    say!("{}", loads(&all));
    if flags.is_set("report_file") {
        write_report(flags.text("report_file"), &all)?;
    }
    report::write(flags.text("json"), || {
        let mut document = report::document_of_engines(&engines, &rest, &table.json());
        document["runs"] = all.iter().map(Run::json).collect();
        document
    })
}

/// One run of one engine.
struct Run {
    engine: &'static str,
    pair: u64,
    /// Which of the four of its pair, from 1.
    step: usize,
    /// The machine's load before it.
    load: f64,
    rows: Vec<Row>,
}

impl Run {
    fn json(&self) -> Value {
        json!({
            "engine": self.engine,
            "pair": self.pair,
            "run": self.step,
            "load_before": self.load,
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
        })
    }
}

/// The load before the runs, of which each leaves some to the next.
fn loads(all: &[Run]) -> String {
    let loads = all.iter().map(|run| run.load);
    let (low, high) = loads.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), load| {
        (low.min(load), high.max(load))
    });
    let end = crate::process::load();
    if all.is_empty() {
        return format!("load at end: {end:.2}");
    }
    format!("load before each run: {low:.2}..{high:.2}, at end: {end:.2}")
}

/// Makes the lines of `--report_file`: a line for each second of each benchmark of each run.
fn report_lines(all: &[Run]) -> String {
    let mut out = String::from(
        "engine,pair,run,test,secs_elapsed,interval_qps,p50_us,p99_us,p99.9_us,max_us\n",
    );
    for run in all {
        for row in &run.rows {
            let json = row.json();
            let rates = json["qps"].as_array().cloned().unwrap_or_default();
            for (at, rate) in rates.iter().enumerate() {
                let (engine, pair, step, test) = (run.engine, run.pair, run.step, &row.test);
                out.push_str(&format!("{engine},{pair},{step},{test},{},{rate}", at + 1));
                for name in ["p50", "p99", "p99.9", "max"] {
                    let value = &json["intervals"][at][name];
                    let text = value.as_f64().map_or(String::new(), |us| format!("{us}"));
                    out.push_str(&format!(",{text}"));
                }
                out.push('\n');
            }
        }
    }
    out
}

fn write_report(path: &str, all: &[Run]) -> Result<()> {
    std::fs::write(path, report_lines(all))
        .map_err(|e| Failure::new(format!("cannot write {path}: {e}")))
}

/// One run in a process of its own, in a directory that goes afterwards.
pub(crate) fn child(flags: &Flags, args: &[String], engine: &str, seed: u64) -> Result<Vec<Row>> {
    with_directory(flags, |path| {
        let is_kept = |arg: &&String| !arg.trim_start_matches('-').starts_with("report_file=");
        let child = Child {
            path: path.to_path_buf(),
            args: args.iter().filter(is_kept).cloned().collect(),
            engine: engine.to_string(),
            seed,
            ..Child::default()
        };
        let rows = child.run(&|| {});
        let _ = std::fs::remove_dir_all(path);
        rows
    })
}

/// Further figures of a row: the column of the results, its head, and digits behind the point.
const FIGURES: [(&str, &str, usize); 11] = [
    ("cpu_us_op", "cpu us/op", 2),
    ("stall%", "stall %", 1),
    ("qps_cv", "cv", 3),
    ("p50", "p50 us", 2),
    ("p99", "p99 us", 1),
    ("p99.9", "p99.9 us", 0),
    ("p99.99", "p99.99 us", 0),
    ("pmax", "worst us", 0),
    // From the intended start, of paced operations.
    ("p99.9_intended", "p99.9 due", 0),
    ("p99.99_intended", "p99.99 due", 0),
    ("pmax_less_pauses", "net worst", 0),
];

struct Line {
    test: String,
    /// The medians of [`FIGURES`], of A and of B; `None` where a row has no such figure.
    figures: [[Option<f64>; FIGURES.len()]; 2],
    ops: [f64; 2],
    ratio: Ratio,
    cpu: Option<Ratio>,
    shapes: [String; 2],
}

struct Comparison {
    lines: Vec<Line>,
}

impl Comparison {
    /// Pairs the runs in the order they were made: A B and B A of each pair.
    fn of(runs: &[Vec<Vec<Row>>; 2]) -> Comparison {
        let rows = runs[0].first().map_or(0, Vec::len);
        let lines = (0..rows).filter_map(|row| Line::of(runs, row)).collect();
        Comparison { lines }
    }

    fn text(&self) -> String {
        let mut out = format!(
            "{:<24} {:>12} {:>12} {:>7} {:>17} {:>13} {:>6} {:>9}\n",
            "benchmark",
            "A ops/sec",
            "B ops/sec",
            "A/B",
            "95 % interval",
            "min..max",
            "",
            "cpu A/B"
        );
        for line in &self.lines {
            let r = line.ratio;
            let cpu = line.cpu.map_or("-".into(), |c| format!("{:.2}", c.median));
            out.push_str(&format!(
                "{:<24} {:>12.0} {:>12.0} {:>7.3} {:>17} {:>6.2}..{:<5.2} {:>6} {cpu:>9}\n",
                line.test,
                line.ops[0],
                line.ops[1],
                r.median,
                r.interval(),
                r.min,
                r.max,
                r.verdict()
            ));
        }
        self.figures(&mut out);
        out.push_str("\nTrees after each step of the first run:\n");
        for line in &self.lines {
            out.push_str(&format!(
                "{:<24} A {}\n{:<24} B {}\n",
                line.test, line.shapes[0], "", line.shapes[1]
            ));
        }
        out
    }

    /// A line for each engine: what an operation costs, how long it takes, and how steady the rate
    /// of each second is.
    fn figures(&self, out: &mut String) {
        out.push_str(&format!("\n{:<24}  ", "medians"));
        let has = |line: &Line, at: usize| line.figures.iter().any(|f| f[at].is_some());
        let known: Vec<usize> = (0..FIGURES.len())
            .filter(|at| self.lines.iter().any(|line| has(line, *at)))
            .collect();
        for at in &known {
            out.push_str(&format!(" {:>11}", FIGURES[*at].1));
        }
        out.push('\n');
        for line in &self.lines {
            for (which, name) in ["A", "B"].into_iter().enumerate() {
                let test = if which == 0 { line.test.as_str() } else { "" };
                out.push_str(&format!("{test:<24} {name}"));
                for at in &known {
                    let (figure, digits) = (line.figures[which][*at], FIGURES[*at].2);
                    let text = figure.map_or("-".into(), |x| format!("{x:.digits$}"));
                    out.push_str(&format!(" {text:>11}"));
                }
                out.push('\n');
            }
        }
    }

    /// The rows of `--json`.
    fn json(&self) -> Vec<Value> {
        let ratio = |r: &Ratio| {
            let end = |x: f64| r.has_interval().then_some(x);
            json!({
                "median": r.median, "low": end(r.low), "high": end(r.high), "min": r.min,
                "max": r.max, "count": r.count
            })
        };
        let row = |line: &Line| {
            json!({
                "test": line.test,
                "ops_sec": line.ops,
                "ratio": ratio(&line.ratio),
                "cpu_ratio": line.cpu.as_ref().map(ratio),
                "verdict": line.ratio.verdict(),
                "shapes": line.shapes,
                "figures": figures(line),
            })
        };
        self.lines.iter().map(row).collect()
    }
}

/// The figures of A and of B by their names.
fn figures(line: &Line) -> Value {
    let named = FIGURES.iter().enumerate();
    let named = named.map(|(i, (name, ..))| {
        let both = [line.figures[0][i], line.figures[1][i]];
        ((*name).to_owned(), json!(both))
    });
    Value::Object(named.collect())
}

impl Line {
    fn of(runs: &[Vec<Vec<Row>>; 2], row: usize) -> Option<Line> {
        let column = |which: usize, name: &str| -> Vec<f64> {
            runs[which]
                .iter()
                .filter_map(|rows| rows.get(row)?.number(name))
                .collect()
        };
        let ratios = |name: &str| -> Vec<f64> {
            let (a, b) = (column(0, name), column(1, name));
            a.iter()
                .zip(&b)
                .filter(|(_, b)| **b > 0.0)
                .map(|(a, b)| a / b)
                .collect()
        };
        // A step without operations has no rate.
        let ratio = Ratio::of(&ratios("ops_sec"))?;
        let first = runs[0].first()?.get(row)?;
        let other = runs[1].first()?.get(row)?;
        let figures = [0, 1].map(|which| {
            FIGURES.map(|(name, ..)| {
                let mut of = column(which, name);
                (!of.is_empty()).then(|| median(&mut of))
            })
        });
        Some(Line {
            test: first.test.clone(),
            figures,
            ops: [
                median(&mut column(0, "ops_sec")),
                median(&mut column(1, "ops_sec")),
            ],
            ratio,
            cpu: Ratio::of(&ratios("cpu_us_op")),
            shapes: [
                first.text("shape_after").to_string(),
                other.text("shape_after").to_string(),
            ],
        })
    }
}

#[cfg(test)]
mod tests;
