//! Experiments that are lists of benchmarks of `esker bench`: stages of one process each.
//!
//! A chain is a list of stages on one database. A stage is one process with its flags and its
//! benchmarks; the database is closed and opened between stages, as with RocksDB's own scripts. A
//! benchmark that is a step of the experiment has a name of its own there.

use std::fs;
use std::path::Path;

use crate::bench::{Bar, run_engine};
use crate::child::Child;
use crate::experiment::Run;
use crate::experiment::plan::{Chain, Request};
use crate::experiment::record::{Aim, Step};
use crate::experiment::validity::CLIENT_PART;
use crate::flags::Flags;
use crate::report::Row;
use crate::{Failure, Result, interrupt};

use super::engine;
use super::outcome::{is_cut_short, outcome};

/// One benchmark of a stage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Its name for `--benchmarks`.
    pub(super) benchmark: &'static str,
    /// The step that it is; none for what only prepares.
    pub(super) step: Option<Step>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Stage {
    pub(super) parts: Vec<Part>,
    pub(super) flags: Vec<String>,
}

/// A stage of these benchmarks.
pub(super) fn stage(parts: Vec<Part>, flags: &[&str]) -> Stage {
    Stage {
        parts,
        flags: flags.iter().map(|flag| (*flag).to_string()).collect(),
    }
}

/// A benchmark that prepares.
pub(super) fn prepare(benchmark: &'static str) -> Part {
    Part {
        benchmark,
        step: None,
    }
}

/// A benchmark whose rate is compared.
pub(super) fn rate(benchmark: &'static str, name: &str, help: &str) -> Part {
    Part {
        benchmark,
        step: Some(Step {
            name: name.to_string(),
            help: help.to_string(),
            figure: "ops_sec".into(),
            aim: Aim::More,
            counts: true,
            chain: String::new(),
        }),
    }
}

/// A benchmark whose seconds are shown, and not counted for the verdict.
pub(super) fn seconds(benchmark: &'static str, name: &str, help: &str) -> Part {
    Part {
        benchmark,
        step: Some(Step {
            name: name.to_string(),
            help: help.to_string(),
            figure: "seconds".into(),
            aim: Aim::Less,
            counts: false,
            chain: String::new(),
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
        flags: Vec::new(),
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
    Ok(())
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
        }
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

/// What an operation of each benchmark takes of the client alone, in microseconds; measured once
/// for each engine, in a tenth of the operations.
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
    let rows = run_engine(&flags, "null", &path, &|_| {}, &Bar::new(false))?;
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
    args.push(format!("--report_file={}", rates.display()));
    args.push("--report_interval_seconds=1".into());
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
    fn the_rate_is_that_of_the_last_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("rates.csv");
        assert_eq!(rate_of(&path), 0.0);
        fs::write(&path, "secs_elapsed,interval_qps\n1,500\n2,700\n").expect("writes");
        assert_eq!(rate_of(&path), 700.0);
    }
}
