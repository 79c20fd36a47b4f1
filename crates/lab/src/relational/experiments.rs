//! The relational workloads as experiments of `esker lab`.
//!
//! A [`Relational`] is what differs: settings, steps, tables, and what is run. Opening engines,
//! durability, facts and the translation of figures are the same for all.

mod hot_row;
mod insert;
mod linkbench;
mod myrocks;
mod outcome;
mod sysbench;
mod tsbs;
mod versus;

use super::catalogue;
use super::engine::{Durability, Engine, EnginePlan};
use super::row::Schema;
use crate::experiment::host::hash_of;
use crate::experiment::plan::{Chain, EngineSpec, Plan as Steps, Request, Setting, setting};
use crate::experiment::record::{self, Aim, Outcome, Record};
use crate::experiment::{Experiment, Run};
use crate::{Failure, Result, interrupt};

pub use hot_row::HOT_ROW;
pub use insert::INSERT;
pub use linkbench::LINKBENCH;
pub use myrocks::MYROCKS;
pub use sysbench::SYSBENCH;
pub use tsbs::TSBS;
pub use versus::BTREE_VS_LSM;

/// An experiment of this module.
pub struct Relational {
    name: &'static str,
    title: &'static str,
    help: &'static str,
    about: &'static str,
    settings: &'static [Setting],
    engines: &'static [&'static str],
    schema: fn() -> Schema,
    steps: fn(&Request) -> Result<Vec<record::Step>>,
    run: fn(&Request, &dyn Engine, &mut StepWriter<'_, '_>) -> Result<()>,
    finish: fn(&Request, &mut Record),
    /// Seconds that one engine takes about, and bytes at most.
    size: fn(&Request) -> Result<(u64, u64)>,
}

/// Every relational experiment, in the order of the help.
pub fn all() -> [&'static dyn Experiment; 7] {
    [
        &LINKBENCH,
        &INSERT,
        &SYSBENCH,
        &TSBS,
        &BTREE_VS_LSM,
        &HOT_ROW,
        &MYROCKS,
    ]
}

// Settings that all of them have.
const THREADS: Setting = setting(
    "threads",
    "2",
    "16",
    "clients, each with a session of its own",
);
const SECONDS: Setting = setting("seconds", "10", "1800", "seconds of each timed step");
const DURABILITY: Setting = setting(
    "durability",
    "process",
    "sync",
    "the same on all engines: sync syncs each commit, process writes it to the system",
);
const CACHE: Setting = setting("cache_mb", "32", "4096", "megabytes of each engine's cache");
const MEMTABLE: Setting = setting(
    "memtable_mb",
    "4",
    "64",
    "megabytes of a memtable; the log between checkpoints of a B-tree has 8 times as many",
);

/// A step of a plan.
fn step(name: &str, help: &str, figure: &str, aim: Aim, counts: bool) -> record::Step {
    record::Step {
        name: name.into(),
        help: help.into(),
        figure: figure.into(),
        aim,
        counts,
        ..record::Step::default()
    }
}

fn durability(request: &Request) -> Result<Durability> {
    match request.text("durability") {
        "sync" => Ok(Durability::Sync),
        "process" => Ok(Durability::Process),
        other => Err(Failure::new(format!(
            "--durability={other}: sync or process"
        ))),
    }
}

fn seconds(request: &Request, name: &str) -> Result<f64> {
    let text = request.text(name);
    let number = text
        .parse()
        .ok()
        .filter(|s: &f64| *s > 0.0 && s.is_finite());
    number.ok_or_else(|| Failure::new(format!("--{name}={text}: seconds are wanted")))
}

fn threads(request: &Request) -> Result<usize> {
    let count = request.count("threads")?.max(1);
    usize::try_from(count).map_err(|_| Failure::new("--threads is too large"))
}

/// The most sessions that a run has at a time: those of its clients, and in a sweep of clients
/// those of the most.
fn sessions(request: &Request) -> Result<usize> {
    let sweep = request.counts("sweep").unwrap_or_default();
    let most = sweep.into_iter().max().unwrap_or(0);
    Ok(threads(request)?.max(usize::try_from(most).unwrap_or(usize::MAX)))
}

/// Keeps the steps of a run in their order.
pub(crate) struct StepWriter<'a, 'b> {
    run: &'a mut Run<'b>,
    at: usize,
}

impl StepWriter<'_, '_> {
    /// Keeps the outcome of the next step; `false` when the run is to stop.
    fn keep(&mut self, outcome: Outcome) -> Result<bool> {
        if interrupt::stopped() {
            return Ok(false);
        }
        self.run.keep(self.at, outcome)?;
        self.at += 1;
        Ok(true)
    }

    /// Keeps the outcome of the check at the end.
    ///
    /// # Errors
    /// Something is wrong: the figures of an engine that lost data are none.
    fn check(&mut self, mismatches: u64, wrong: &[String], live: u64, disk: u64) -> Result<()> {
        self.keep(outcome::checked(mismatches, wrong, live, disk))?;
        if mismatches == 0 {
            return Ok(());
        }
        let first: Vec<&str> = wrong.iter().take(3).map(String::as_str).collect();
        Err(Failure::new(format!(
            "the check at the end found {mismatches} mismatches, so its figures do not count: {}",
            first.join("; ")
        )))
    }

    /// Says what is going on.
    fn show(&self, step: &str) {
        self.run.show(step, 0.0);
    }
}

impl Experiment for Relational {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn settings(&self) -> &'static [Setting] {
        self.settings
    }

    fn default_engines(&self) -> &'static [&'static str] {
        self.engines
    }

    fn supports(&self, engine: &EngineSpec) -> Result<()> {
        if !engine.options().is_empty() {
            let text = "options of one engine are not taken by relational workloads";
            return Err(Failure::new(text));
        }
        catalogue::check(engine.kind(), engine.path())
    }

    fn plan(&self, request: &Request) -> Result<Steps> {
        if let Some(flag) = request.flags.first() {
            let text = format!("{flag}: relational workloads take no flags of esker bench");
            return Err(Failure::new(text));
        }
        durability(request)?;
        threads(request)?;
        let (seconds, bytes) = (self.size)(request)?;
        let chain = Chain {
            steps: (self.steps)(request)?,
            ..Chain::default()
        };
        Ok(Steps {
            chains: vec![chain],
            seconds,
            bytes,
        })
    }

    fn describe(&self, request: &Request, engine: &EngineSpec) -> Result<record::Engine> {
        let missing = match (engine.kind(), durability(request)?) {
            ("redb", Durability::Process) => {
                Some("redb syncs a commit or keeps it in memory; ask for --durability=sync".into())
            }
            _ => None,
        };
        // An engine without a file of its own is part of this program; a server is none of both.
        let program = match (engine.path(), catalogue::is_server(engine.kind())) {
            (Some(path), _) => Some(path.into()),
            (None, false) => std::env::current_exe().ok(),
            (None, true) => None,
        };
        Ok(record::Engine {
            name: catalogue::title(engine.kind()).into(),
            hash: program.and_then(|path| hash_of(&path)).unwrap_or_default(),
            missing,
            ..record::Engine::default()
        })
    }

    fn run(&self, request: &Request, run: &mut Run<'_>) -> Result<()> {
        let megabytes = |name| -> Result<u64> { Ok(request.count(name)?.max(1) << 20) };
        let plan = EnginePlan {
            directory: run.directory.to_path_buf(),
            durability: durability(request)?,
            cache: megabytes("cache_mb")?,
            memtable: megabytes("memtable_mb")?,
            sessions: sessions(request)?,
            schema: (self.schema)(),
        };
        std::fs::create_dir_all(&plan.directory)?;
        run.show("open", 0.0);
        let engine = catalogue::open(run.engine.kind(), run.engine.path(), &plan)?;
        let facts = engine.facts();
        run.facts.version.clone_from(&facts.name);
        run.facts.options.clone_from(&facts.options);
        run.facts.notes = vec![
            format!(
                "durability: {} ({})",
                plan.durability.words(),
                facts.durability
            ),
            format!("writes: {}", engine.counts_written()),
        ];
        (self.run)(request, &*engine, &mut StepWriter { run, at: 0 })
    }

    fn finish(&self, request: &Request, record: &mut Record) {
        let says = match durability(request) {
            Ok(durability) => durability.words(),
            Err(_) => return,
        };
        record.sentences.push(format!("On every engine {says}."));
        let missing: Vec<String> = record
            .engines
            .iter()
            .filter_map(|e| Some(format!("{} ({})", e.name, e.missing.as_ref()?)))
            .collect();
        if !missing.is_empty() {
            let text = format!("Could not be run: {}.", missing.join("; "));
            record.sentences.push(text);
        }
        record.sentences.extend(say_servers(record));
        (self.finish)(request, record);
    }
}

/// The difference between servers and libraries, where both ran.
fn say_servers(record: &Record) -> Option<String> {
    let all = record.present();
    let (servers, libraries): (Vec<_>, Vec<_>) =
        all.partition(|(_, engine)| catalogue::is_server(&engine.spec));
    if servers.is_empty() || libraries.is_empty() {
        return None;
    }
    let names = |list: &[(usize, &record::Engine)]| {
        let names: Vec<&str> = list.iter().map(|(_, e)| e.name.as_str()).collect();
        names.join(", ")
    };
    Some(format!(
        "Not alike: {} are servers that are asked in SQL over loopback; {} are in the process of \
         the client.",
        names(&servers),
        names(&libraries)
    ))
}

/// Adds a sentence that says whether the checks at the end were right on each engine.
fn say_checks(record: &mut Record, what: &str) {
    let Some(at) = record.steps.iter().position(|step| step.name == "verify") else {
        return;
    };
    let mut wrong = Vec::new();
    let mut right = Vec::new();
    for (engine, facts) in record.present() {
        let runs: Vec<f64> = record
            .runs(at, engine)
            .filter_map(|run| run.figure("mismatches"))
            .collect();
        if runs.iter().any(|count| *count > 0.0) {
            wrong.push(facts.name.clone());
        } else if !runs.is_empty() {
            right.push(facts.name.clone());
        }
    }
    if !right.is_empty() {
        let text = format!(
            "{what} were checked at the end and are right: {}.",
            right.join(", ")
        );
        record.sentences.push(text);
    }
    if !wrong.is_empty() {
        let text = format!("{what} are WRONG on {}.", wrong.join(", "));
        record.sentences.push(text);
    }
}

#[cfg(test)]
mod tests;
