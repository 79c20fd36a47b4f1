//! The record of an experiment: all that was measured, with names and units, as one JSON document.
//!
//! The page, the tables and the history are made of records alone, so that a record that was kept
//! can be drawn again. Fields are only added: every one that is missing has its default, and those
//! that are unknown are skipped. Figures have names and no positions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of this layout.
pub const FORMAT: u32 = 1;

/// The version of the figures' meaning. It is raised with every change of how a figure is measured
/// or computed; records of another version are not published. `tests/meaning.rs` notices a change.
pub const MEANING: u32 = 1;

/// An experiment that ran, as a whole or in part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// [`MEANING`] of the program that wrote it; 0 in records from before it was counted.
    pub meaning: u32,
    /// The name on the command line.
    pub experiment: String,
    /// The question, as a headline.
    pub title: String,
    /// Description of the steps, in a few sentences.
    pub about: String,
    /// True if the quick size was taken.
    pub quick: bool,
    /// How often the order A B B A was run.
    pub pairs: usize,
    /// The command that runs it again.
    pub command: String,
    /// The settings, with their values.
    pub settings: Vec<(String, String)>,
    /// Seconds since 1970 when it began.
    pub began: u64,
    /// Seconds since 1970 when the last step ended.
    pub ended: u64,
    /// True if every planned step was run.
    pub complete: bool,
    /// The machine.
    pub host: Host,
    /// The engines, in the order of the command line.
    pub engines: Vec<Engine>,
    /// The engine that the others are divided by: a place in `engines`.
    pub base: usize,
    /// The steps in their order.
    pub steps: Vec<Step>,
    /// Results of each step on each engine, in the order of running.
    pub results: Vec<Outcome>,
    /// Tables that the experiment adds.
    pub tables: Vec<Table>,
    /// Sentences that the experiment adds to the verdict.
    pub sentences: Vec<String>,
    /// Reasons that weaken or invalidate figures.
    pub flags: Vec<Flag>,
}

/// The machine that an experiment ran on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// How many processors there are; 0 where that was not recorded.
    pub processors: usize,
    /// Name and value of each fact, in order: processors, memory, kernel, filesystem and so on.
    pub facts: Vec<(String, String)>,
    /// Warnings of the preflight.
    pub warnings: Vec<String>,
    /// The load average before each run.
    pub loads: Vec<f64>,
}

/// One of the engines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Engine {
    /// As on the command line: `esker`, `lib:PATH`, `lmdb` and so on.
    pub spec: String,
    /// A short name for tables and legends, unlike that of all others.
    pub name: String,
    /// The version that it says it is.
    pub version: String,
    /// The hash of the binary, with the name of the hash function in front.
    pub hash: String,
    /// The options that it ran with, by name, as it wrote them down itself.
    pub options: BTreeMap<String, String>,
    /// Findings of the linter about them.
    pub findings: Vec<String>,
    /// Why it was not run, if it could not be.
    pub missing: Option<String>,
    /// Other notes: durability, how it was tuned.
    pub notes: Vec<String>,
}

/// A step of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Its name, unlike that of all others.
    pub name: String,
    /// The chain that it belongs to: steps of one chain work on one database in order.
    pub chain: String,
    /// Its description, in one line.
    pub help: String,
    /// The figure that is compared, which is one of those of its results.
    pub figure: String,
    /// Which way that figure is better.
    pub aim: Aim,
    /// Tells whether the mean counts it.
    pub counts: bool,
    /// Why the mean does not count it.
    pub why: String,
    /// Further figures of its results that the experiment asks for.
    pub asks: Vec<Ask>,
}

/// A figure that an experiment asks for beside the one that a step compares.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ask {
    /// One of the figures of the step's results. 0 means that nothing reached what is asked.
    pub figure: String,
    /// Its name, as it stands behind that of the step.
    pub what: String,
    /// Which way it is better.
    pub aim: Aim,
}

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aim {
    /// More is better.
    #[default]
    More,
    /// Less is better.
    Less,
    /// Neither: it is shown, and not judged.
    Neither,
}

/// Figures of one run of a step on one engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// Place in [`Record::steps`].
    pub step: usize,
    /// Place in [`Record::engines`].
    pub engine: usize,
    /// The pair that the run belongs to, from 0.
    pub pair: usize,
    /// Which run of this engine within the pair, 0 or 1: A B B A has two of each.
    pub turn: usize,
    /// Seconds of the clock.
    pub seconds: f64,
    /// Seconds of all threads together; 0 where that was not recorded.
    pub thread_seconds: f64,
    /// The figures by name.
    pub figures: BTreeMap<String, Figure>,
    /// Figures of each second.
    pub series: Vec<Second>,
    /// How writers were held back, by cause and kind.
    pub stalls: Vec<Stall>,
    /// Latencies in microseconds, from the end of one operation to the end of the next.
    pub latency: Latency,
    /// Latencies from the time at which a paced operation should have begun.
    pub intended: Latency,
    /// Latencies by kind of operation, where an experiment has several.
    pub operations: Vec<Operation>,
    /// The tree before the step.
    pub shape_before: Shape,
    /// The tree after the step.
    pub shape_after: Shape,
    /// Figures of the block device.
    pub device: Device,
    /// Resident memory by owner, in bytes.
    pub memory: Vec<(String, f64)>,
    /// Bytes written for each byte of the user, by part.
    pub write_amp: Vec<(String, f64)>,
    /// The rate that was asked for and the one that was reached, of a paced writer beside the step.
    pub target: Option<Target>,
    /// Reasons that invalidate this run, in words.
    pub flags: Vec<String>,
    /// The part of all processors that other processes took meanwhile; none where that was not
    /// recorded.
    pub others: Option<f64>,
    /// Why there are no figures, where the engine could not run the step.
    pub missing: Option<String>,
}

/// A number and its unit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// Its unit, as it is printed behind the number; empty for a plain count.
    pub unit: String,
}

/// One second of a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// Operations.
    pub operations: f64,
    /// Microseconds that writers were stopped, all writers together.
    pub stopped: f64,
    /// Microseconds that they were delayed: a millisecond or more each.
    pub delayed: f64,
    /// Microseconds that they were paced: less than a millisecond each.
    pub paced: f64,
    /// The 99th percentile of latencies in microseconds, 0 where it was not measured.
    pub p99: f64,
    /// The longest operation in microseconds, 0 where it was not measured.
    pub worst: f64,
    /// Seconds of processor time of the process.
    pub cpu: f64,
    /// Resident bytes.
    pub resident: f64,
    /// Bytes that the device read.
    pub read_bytes: f64,
    /// Bytes that the device wrote.
    pub write_bytes: f64,
}

/// One way in which writers were held back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stall {
    /// The cause of their wait.
    pub cause: String,
    /// `stopped`, `delayed` or `paced`.
    pub kind: String,
    /// Calls.
    pub times: u64,
    /// Microseconds of the clock.
    pub micros: u64,
    /// Microseconds of all writers together.
    pub writers_micros: u64,
}

/// Percentiles of latencies in microseconds; empty where none were measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Latency {
    /// Percentile and latency, ascending: 50, 99, 99.9, 99.99, 100.
    pub percentiles: Vec<(f64, f64)>,
}

/// One kind of operation of a mixed step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// How many were done.
    pub count: u64,
    /// How long they took.
    pub latency: Latency,
    /// How long they took from the intended start.
    pub intended: Latency,
}

/// The shape of a tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shape {
    /// As one line of text.
    pub text: String,
    /// Parts in reading order: name (`mem`, `L0`, `L6`), files, bytes.
    pub parts: Vec<(String, u64, f64)>,
}

/// Figures of the block device in a step, in the words of `iostat -x`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Reads a second.
    pub rps: f64,
    /// Megabytes (2^20) read a second.
    pub r_mb: f64,
    /// Milliseconds of a read.
    pub r_await: f64,
    /// Kilobytes of a read.
    pub rareq_kb: f64,
    /// Writes a second.
    pub wps: f64,
    /// Megabytes (2^20) written a second.
    pub w_mb: f64,
    /// Milliseconds of a write.
    pub w_await: f64,
    /// Kilobytes of a write.
    pub wareq_kb: f64,
}

/// The target of a paced writer, and the rate that it reached, in bytes a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Target {
    /// Asked for.
    pub asked: f64,
    /// Reached.
    pub reached: f64,
}

/// A table that an experiment adds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Table {
    /// Its caption.
    pub title: String,
    /// Its meaning, in a sentence.
    pub about: String,
    /// Heads of columns; the first column names the row.
    pub columns: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
    /// A chart of the same, with one line for each column behind the first.
    pub chart: Option<Chart>,
}

/// A chart of lines over a common axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chart {
    /// The horizontal figure, with its unit.
    pub x: String,
    /// The vertical figure, with its unit.
    pub y: String,
    /// Name and points of each line.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
    /// True if the axis to the right is logarithmic.
    pub log_x: bool,
}

/// Something that weakens or invalidates figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flag {
    /// A word for it: `client-bound`, `missed-rate`, `too-short`, `few-repeats`, `noise`.
    pub kind: String,
    /// The step, or none for all of them.
    pub step: Option<usize>,
    /// The engine, or none for all of them.
    pub engine: Option<usize>,
    /// A sentence.
    pub text: String,
}

impl Figure {
    /// A number with its unit.
    pub fn new(value: f64, unit: &str) -> Figure {
        Figure {
            value,
            unit: unit.to_string(),
        }
    }
}

impl Latency {
    /// The latency at a percentile that was kept.
    pub fn at(&self, percentile: f64) -> Option<f64> {
        let mut all = self.percentiles.iter();
        let found = all.find(|(p, _)| (p - percentile).abs() < 1e-9);
        found.map(|(_, us)| *us)
    }
}

impl Outcome {
    /// How many threads there were, on average: shares of the writers' time are divided by it.
    pub fn writers(&self) -> f64 {
        (self.thread_seconds / self.seconds.max(1e-9)).max(1.0)
    }

    /// A figure by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.value)
    }

    /// Adds a figure, unless it is not a number. A zero has no sign.
    pub fn put(&mut self, name: &str, value: f64, unit: &str) {
        if value.is_finite() {
            let value = if value == 0.0 { 0.0 } else { value };
            self.figures
                .insert(name.to_string(), Figure::new(value, unit));
        }
    }
}

impl Record {
    /// The runs of a step on an engine, in the order of running.
    pub fn runs(&self, step: usize, engine: usize) -> impl Iterator<Item = &Outcome> {
        self.results
            .iter()
            .filter(move |run| run.step == step && run.engine == engine)
    }

    /// The median of a figure over the runs of a step on an engine.
    pub fn median(&self, step: usize, engine: usize, figure: &str) -> Option<f64> {
        let runs = self.runs(step, engine);
        let mut all: Vec<f64> = runs.filter_map(|run| run.figure(figure)).collect();
        median(&mut all)
    }

    /// Why an engine could not run a step, if it could not.
    pub fn missing(&self, step: usize, engine: usize) -> Option<&str> {
        self.runs(step, engine)
            .find_map(|run| run.missing.as_deref())
    }

    /// The largest part of all processors that other processes took in a step; none where no step
    /// tells.
    pub fn others(&self) -> Option<f64> {
        let all = self.results.iter().filter_map(|run| run.others);
        all.reduce(f64::max)
    }

    /// The run whose compared figure is the median, or the lower of the two in the middle: the one
    /// to draw.
    pub fn typical(&self, step: usize, engine: usize) -> Option<&Outcome> {
        let figure = &self.steps.get(step)?.figure;
        let mut all: Vec<&Outcome> = self.runs(step, engine).collect();
        all.sort_by(|a, b| {
            let value = |run: &Outcome| run.figure(figure).unwrap_or(f64::INFINITY);
            value(a).total_cmp(&value(b))
        });
        all.get(all.len().saturating_sub(1) / 2).copied()
    }

    /// The engines that were run, with their places.
    pub fn present(&self) -> impl Iterator<Item = (usize, &Engine)> {
        let all = self.engines.iter().enumerate();
        all.filter(|(_, engine)| engine.missing.is_none())
    }
}

#[cfg(test)]
impl Record {
    /// One run of Esker alone, in which each step has the rate that is given, and 100 MB.
    pub(crate) fn of_rates(rates: &[(String, f64)]) -> Record {
        let step = |(name, _): &(String, f64)| Step {
            name: name.clone(),
            ..Step::default()
        };
        let run = |(step, (_, rate)): (usize, &(String, f64))| {
            let mut run = Outcome {
                step,
                ..Outcome::default()
            };
            run.put("ops_sec", *rate, "ops/s");
            run.put("rss", 100.0 * 1_048_576.0, "B");
            run
        };
        Record {
            complete: true,
            pairs: 3,
            engines: vec![Engine {
                name: "Esker".into(),
                ..Engine::default()
            }],
            steps: rates.iter().map(step).collect(),
            results: rates.iter().enumerate().map(run).collect(),
            ..Record::default()
        }
    }
}

/// The median of some numbers; `None` for none.
pub fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = ((values.len() - 1) / 2, values.len() / 2);
    Some((values[low] + values[high]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_json_and_tolerates_what_it_does_not_know() {
        let mut outcome = Outcome {
            seconds: 2.5,
            latency: Latency {
                percentiles: vec![(50.0, 1.5), (99.9, 20.0)],
            },
            ..Outcome::default()
        };
        outcome.put("ops_sec", 10.0, "ops/s");
        outcome.put("nothing", f64::NAN, "");
        let record = Record {
            experiment: "byrx".into(),
            results: vec![outcome],
            ..Record::default()
        };
        let text = serde_json::to_string(&record).expect("a document");
        assert_eq!(serde_json::from_str::<Record>(&text).ok(), Some(record));
        let older = r#"{"experiment": "x", "of_tomorrow": 1, "steps": [{"name": "a"}]}"#;
        let older: Record = serde_json::from_str(older).expect("a record");
        assert_eq!((older.steps[0].aim, older.pairs), (Aim::More, 0));
    }

    #[test]
    fn the_run_to_draw_is_the_one_in_the_middle() {
        let run = |engine, value| {
            let mut run = Outcome {
                engine,
                ..Outcome::default()
            };
            run.put("ops_sec", value, "ops/s");
            run
        };
        let record = Record {
            steps: vec![Step {
                figure: "ops_sec".into(),
                ..Step::default()
            }],
            results: vec![
                run(0, 9.0),
                run(1, 1.0),
                run(0, 5.0),
                run(0, 7.0),
                run(0, 6.0),
            ],
            ..Record::default()
        };
        let of = |engine| record.typical(0, engine).and_then(|r| r.figure("ops_sec"));
        assert_eq!((of(0), of(1), of(2)), (Some(6.0), Some(1.0), None));
        assert_eq!(record.median(0, 0, "ops_sec"), Some(6.5));
        assert_eq!(record.median(0, 0, "p99"), None);
    }
}
