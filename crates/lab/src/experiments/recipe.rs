//! Experiments that are lists of benchmarks of `esker bench`: stages of one process each.
//!
//! A chain is a list of stages on one database. A stage is one process with its flags and its
//! benchmarks; the database is closed and opened between stages, as with RocksDB's own scripts. A
//! benchmark that is a step of the experiment has a name of its own there.

use std::fs;
use std::path::Path;

use crate::bench::{BenchProgress, run_engine};
use crate::child::Child;
use crate::experiment::Run;
use crate::experiment::plan::{Chain, Request};
use crate::experiment::record::{Aim, Step};
use crate::experiment::validity::{CLIENT_PART, DEVICE_OFF, PARTS_OFF};
use crate::flags::Flags;
use crate::report::Row;
use crate::{Failure, Result, interrupt};

use super::engine;
use super::outcome::{is_cut_short, outcome};
use super::settings::tree_and;

/// One benchmark of a stage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BenchmarkPart {
    /// Its name for `--benchmarks`.
    pub(super) benchmark: &'static str,
    /// The step that it is; none for what only prepares.
    pub(super) step: Option<Step>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Stage {
    pub(super) parts: Vec<BenchmarkPart>,
    pub(super) flags: Vec<String>,
}

/// A stage of these benchmarks.
pub(super) fn stage(parts: Vec<BenchmarkPart>, flags: &[&str]) -> Stage {
    Stage {
        parts,
        flags: flags.iter().map(|flag| (*flag).to_string()).collect(),
    }
}

/// A stage of these benchmarks on the tree of the scripts.
pub(super) fn on_tree(parts: Vec<BenchmarkPart>, flags: &[String]) -> Stage {
    Stage {
        parts,
        flags: tree_and(flags),
    }
}

/// A benchmark that prepares.
pub(super) fn prepare(benchmark: &'static str) -> BenchmarkPart {
    BenchmarkPart {
        benchmark,
        step: None,
    }
}

/// A benchmark whose rate is compared.
pub(super) fn rate(benchmark: &'static str, name: &str, help: &str) -> BenchmarkPart {
    BenchmarkPart {
        benchmark,
        step: Some(Step {
            name: name.to_string(),
            help: help.to_string(),
            figure: "ops_sec".into(),
            aim: Aim::More,
            counts: true,
            ..Step::default()
        }),
    }
}

/// A benchmark whose seconds are shown, and not counted for the verdict.
pub(super) fn seconds(benchmark: &'static str, name: &str, help: &str) -> BenchmarkPart {
    BenchmarkPart {
        benchmark,
        step: Some(Step {
            name: name.to_string(),
            help: help.to_string(),
            figure: "seconds".into(),
            aim: Aim::Less,
            counts: false,
            why: "its work is what the step before left".into(),
            ..Step::default()
        }),
    }
}

/// The steps of some stages.
fn steps(stages: &[Stage]) -> Vec<Step> {
    let parts = stages.iter().flat_map(|stage| &stage.parts);
    parts.filter_map(|part| part.step.clone()).collect()
}

/// A chain of stages. The steps get the chain's name in front where it has one.
pub(super) fn chain(name: &str, stages: &[Stage]) -> Chain {
    let mut steps = steps(stages);
    if !name.is_empty() {
        for step in &mut steps {
            step.name = format!("{name} {}", step.name);
        }
    }
    Chain {
        name: name.to_string(),
        steps,
    }
}

/// Checks the flags of all stages before anything runs.
///
/// # Errors
/// Flags that `esker bench` does not take.
pub(super) fn check(request: &Request, stages: &[Stage]) -> Result<()> {
    for stage in stages {
        Flags::parse(&flags_of(request, stage, true))?;
    }
    if let Some(stage) = ageing(request, stages)? {
        Flags::parse(&flags_of(request, &stage, false))?;
    }
    Ok(())
}

/// How often the database is overwritten before the steps behind the load.
fn age(request: &Request) -> Result<u64> {
    match request.text("age") {
        "" => Ok(0),
        _ => request.count("age"),
    }
}

/// Returns the sentence of a page about an aged database.
pub(super) fn age_sentence(request: &Request) -> Option<String> {
    let times = age(request).ok().filter(|times| *times > 0)?;
    Some(format!(
        "Behind the load, before all other steps, each database was overwritten at random, its \
         number of keys times {times}, and compactions were waited for."
    ))
}

/// The stage that overwrites the database as often as `--age` says, with the tree of the first
/// stage; `None` where it is not to age.
fn ageing(request: &Request, stages: &[Stage]) -> Result<Option<Stage>> {
    let (times, Some(load)) = (age(request)?, stages.first()) else {
        return Ok(None);
    };
    if times == 0 {
        return Ok(None);
    }
    // The load has no log and one thread; an aged database had its log.
    let is_own = |flag: &&String| {
        let name = flag.trim_start_matches('-').split('=').next().unwrap_or("");
        !matches!(
            name,
            "disable_wal" | "statistics" | "threads" | "writes" | "duration"
        )
    };
    let mut flags: Vec<String> = load.flags.iter().filter(is_own).cloned().collect();
    flags.push(format!("--writes={}", request.count("num")? * times));
    Ok(Some(Stage {
        parts: vec![prepare("overwrite"), prepare("waitforcompaction")],
        flags,
    }))
}

/// The flags of a stage: its own, then those of the caller. All but the first use what is there.
fn flags_of(request: &Request, stage: &Stage, is_first: bool) -> Vec<String> {
    let names: Vec<&str> = stage.parts.iter().map(|part| part.benchmark).collect();
    let mut flags = vec![format!("--benchmarks={}", names.join(","))];
    flags.extend_from_slice(&stage.flags);
    flags.extend_from_slice(&request.flags);
    if !is_first {
        flags.push("--use_existing_db=true".into());
    }
    flags
}

/// The number of the ageing stage, for its files.
const AGEING: usize = 80;

/// Runs the stages of a chain and keeps its steps; returns the rows of all benchmarks.
///
/// # Errors
/// A stage that failed.
pub(super) fn run(request: &Request, run: &mut Run<'_>, stages: &[Stage]) -> Result<Vec<Row>> {
    let (mut all, mut at) = (Vec::new(), 0);
    for (number, stage) in stages.iter().enumerate() {
        if interrupt::stopped() {
            break;
        }
        let flags = flags_of(request, stage, number == 0);
        let rows = process(run, number, &flags, &[])?;
        let alone = client_alone(run, &flags)?;
        if number == 0 {
            engine::learn(run.facts, run.directory, run.keep_in)?;
            if let Some(stage) = ageing(request, stages)? {
                let rows = process(run, AGEING, &flags_of(request, &stage, false), &[])?;
                if rows.len() < stage.parts.len() || rows.iter().any(is_cut_short) {
                    return Ok(all);
                }
            }
        }
        let books = books(&rows);
        let mut rows = rows.into_iter();
        for part in &stage.parts {
            let Some(row) = rows.next() else { break };
            if is_cut_short(&row) {
                return Ok(all);
            }
            if row.test != part.benchmark {
                let text = format!("a row of {} where {} ran", row.test, part.benchmark);
                return Err(Failure::new(text));
            }
            if part.step.is_some() {
                let mut outcome = outcome(&row);
                let why = row.text("missing");
                outcome.missing = (!why.is_empty()).then(|| why.to_string());
                if let (Some(books), Some(_)) = (books, row.number("w_amp")) {
                    outcome.put(PARTS_OFF, books.parts_off, "%");
                    outcome.put(DEVICE_OFF, books.device_off, "%");
                }
                let client = alone.iter().find(|(name, _)| *name == row.test);
                if let (Some((_, us)), Some(all)) = (client, row.number("usec_op")) {
                    outcome.put(CLIENT_PART, us / all.max(1e-9), "");
                }
                run.keep(at, outcome)?;
                at += 1;
            }
            all.push(row);
        }
    }
    keep_log(run.directory, run.keep_in);
    Ok(all)
}

/// How far what the engine counts is from what was written.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ByteBalance {
    /// Log, flushes and compactions against what the process wrote, in percent of the latter.
    parts_off: f64,
    /// Bytes that the process wrote, less those that it gave up, against those of the device, in
    /// percent of the latter.
    device_off: f64,
}

/// Bytes below which files that are no tables and no logs weigh too much.
const LEAST_WRITTEN: f64 = 32.0 * 1_048_576.0;

/// The books of a process: all its benchmarks together, since a compaction that begins in one may
/// end in the next. `None` where work was left at the end, or too little was written.
fn books(rows: &[Row]) -> Option<ByteBalance> {
    let is_quiet = rows.last()?.test == "waitforcompaction";
    let sum = |name: &str| rows.iter().map(|row| row.number(name)).sum::<Option<f64>>();
    let (parts, kept) = (sum("written_bytes")?, sum("device_write_bytes")?);
    let written = kept + sum("given_up_bytes")?;
    let off = |a: f64, b: f64| 100.0 * (a - b).abs() / b;
    // A filesystem in memory, or one without a device, has nothing to compare with.
    if !is_quiet || written < LEAST_WRITTEN {
        return None;
    }
    let device = sum("device_written_bytes").filter(|bytes| *bytes > 0.0);
    Some(ByteBalance {
        parts_off: off(parts, written),
        device_off: device.map_or(f64::NAN, |device| off(kept, device)),
    })
}

/// Measures the time of the client alone for an operation of each benchmark, in microseconds;
/// measured once for each engine, in a tenth of the operations.
fn client_alone(run: &Run<'_>, flags: &[String]) -> Result<Vec<(String, f64)>> {
    if run.pair > 0 || run.turn > 0 || interrupt::stopped() {
        return Ok(Vec::new());
    }
    let mut flags = Flags::parse(flags)?;
    let tenth = |flags: &Flags, name: &str| (flags.count(name) / 10).max(1).to_string();
    if flags.count("duration") > 0 {
        flags.set("duration", "1")?;
    }
    for name in ["reads", "writes"] {
        if flags.is_set(name) {
            let count = tenth(&flags, name);
            flags.set(name, &count)?;
        }
    }
    flags.set("seed", &run.seed.to_string())?;
    // What reads a whole database would not come to an end here.
    flags.set("use_existing_db", "false")?;
    let path = run.directory.with_file_name("null");
    let rows = run_engine(&flags, "null", &path, &|_| {}, &BenchProgress::new(false))?;
    let _ = fs::remove_dir_all(&path);
    let each = |row: Row| Some((row.test.clone(), row.number("usec_op")?));
    Ok(rows.into_iter().filter_map(each).collect())
}

/// One process of the engine of a run, with words in front of it.
pub(super) fn process(
    run: &Run<'_>,
    number: usize,
    flags: &[String],
    wrapper: &[String],
) -> Result<Vec<Row>> {
    let (program, name) = engine::program(run.engine);
    let rates = run.keep_in.join("rates.csv");
    let flags = [flags, &engine::own_flags(run.engine)].concat();
    let mut args = flags.clone();
    args.push("--sync_between=true".into());
    // The other steps of the process do not depend on a call that the library does not have.
    args.push("--skip_missing=true".into());
    if wrapper.is_empty() {
        args.push(format!("--report_file={}", rates.display()));
        args.push("--report_interval_seconds=1".into());
    } else {
        // What works by the clock would be counted with the operations.
        args.push("--watch=false".into());
    }
    if program.is_some() {
        // Older builds do not have them.
        args.push("--undefok=sync_between,watch,repeat_walks,skip_missing".into());
    }
    let log = run.keep_in.join(format!("stage{number:02}.log"));
    let command = format!(
        "esker bench {} --engine={}\n",
        flags.join(" "),
        match &program {
            Some(_) => &run.engine.text,
            None => &name,
        }
    );
    fs::write(
        run.keep_in.join(format!("stage{number:02}.command")),
        command,
    )?;
    let child = Child {
        path: run.directory.to_path_buf(),
        args,
        engine: name,
        seed: run.seed,
        program,
        wrapper: wrapper.to_vec(),
        log: log.clone(),
    };
    let progress = run.progress();
    let rows = child.run(&|| progress(&step_of(&log), rate_of(&rates)));
    let _ = fs::remove_file(&rates);
    rows
}

/// The rate of the last second in a file of `secs_elapsed,interval_qps`.
fn rate_of(path: &Path) -> f64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let last = text.lines().last().and_then(|line| line.split_once(','));
    last.and_then(|(_, rate)| rate.parse().ok()).unwrap_or(0.0)
}

/// The benchmark whose result was printed last.
fn step_of(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut names = text.lines().rev().filter_map(|line| line.split_once(" : "));
    names
        .next()
        .map_or_else(String::new, |(name, _)| format!("after {}", name.trim()))
}

/// The end of the engine's own log.
fn keep_log(database: &Path, keep_in: &Path) {
    const MOST: usize = 64 << 10;
    let bytes = fs::read(database.join("LOG")).unwrap_or_default();
    if !bytes.is_empty() {
        let end = &bytes[bytes.len().saturating_sub(MOST)..];
        let _best_effort = fs::write(keep_in.join("LOG"), end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_the_steps_of_its_stages() {
        let stages = [
            stage(
                vec![rate("fillseq", "load", ""), prepare("flush")],
                &["--num=5"],
            ),
            stage(vec![seconds("waitforcompaction", "wait", "")], &[]),
        ];
        let one = chain("lz4", &stages);
        let names: Vec<&str> = one.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["lz4 load", "lz4 wait"]);
        assert!(one.steps[0].counts && !one.steps[1].counts);
        assert_eq!(chain("", &stages).steps[0].name, "load");
    }

    #[test]
    fn an_aged_database_was_overwritten_with_the_tree_of_its_load() {
        let request = |age: &str| Request {
            settings: vec![("num".into(), "1000".into()), ("age".into(), age.into())],
            ..Request::default()
        };
        let load = [
            "--num=1000",
            "--bloom_bits=10",
            "--disable_wal=true",
            "--statistics",
        ];
        let stages = [stage(vec![prepare("fillseq")], &load)];
        assert_eq!(ageing(&request("0"), &stages), Ok(None));
        let aged = ageing(&request("3"), &stages)
            .expect("a stage")
            .expect("it ages");
        assert_eq!(
            aged.flags,
            ["--num=1000", "--bloom_bits=10", "--writes=3000"]
        );
        let flags = flags_of(&request("3"), &aged, false);
        assert_eq!(flags[0], "--benchmarks=overwrite,waitforcompaction");
        assert!(flags.contains(&"--use_existing_db=true".to_string()));
        assert!(age_sentence(&request("3")).is_some_and(|s| s.contains("keys times 3")));
        assert!(age_sentence(&request("0")).is_none() && age(&request("x")).is_err());
    }

    #[test]
    fn books_are_kept_over_all_benchmarks_of_a_process() {
        let row = |test: &str, parts: f64, kept: f64, given_up: f64, device: f64| {
            Row::from_json(&serde_json::json!({
                "test": test, "written_bytes": parts * 1e6, "device_write_bytes": kept * 1e6,
                "given_up_bytes": given_up * 1e6, "device_written_bytes": device * 1e6,
            }))
            .expect("a row")
        };
        // A compaction that begins in one benchmark is counted in the next, when it ends.
        let rows = [
            row("overwrite", 60.0, 80.0, 20.0, 78.0),
            row("waitforcompaction", 38.0, 0.0, 0.0, 2.0),
        ];
        let found = books(&rows).expect("books");
        assert!((found.parts_off - 2.0).abs() < 1e-9, "{found:?}");
        assert!(found.device_off.abs() < 1e-9, "{found:?}");
        assert_eq!(books(&rows[..1]), None, "work is left");
        assert_eq!(
            books(&[row("waitforcompaction", 1.0, 1.0, 0.0, 1.0)]),
            None,
            "too little"
        );
    }

    #[test]
    fn the_rate_is_that_of_the_last_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("rates.csv");
        assert_eq!(rate_of(&path), 0.0);
        fs::write(&path, "secs_elapsed,interval_qps\n1,500\n2,700\n").expect("writes");
        assert_eq!(rate_of(&path), 700.0);
    }
}
