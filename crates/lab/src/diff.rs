//! `esker diff`: one random trace of C calls, two libraries, every result compared.
//!
//! ```text
//! esker diff --left lib:A.so --right lib:B.so --calls 1000000 --seed 7
//! ```
//!
//! Both libraries are loaded at run time and get a database of their own with the same options, a merge operator
//! and a reversed order as callbacks. Every call's answer is compared: values, positions of iterators, the bytes
//! of batches, the texts of errors. Now and then both databases are closed and the libraries change places; copies
//! (checkpoints, backups, read-only and secondary openings) are read by the one and by the other. At the end each
//! library reads both directories.
//!
//! The same seed replays the same trace. On a difference the last calls are printed with both answers.
//! [`TOLERATED`] lists what may differ, and why.
//!
//! The driver runs in one thread.

mod api;
mod call;
mod callbacks;
mod draw;
mod subject;
mod tolerated;

pub use tolerated::TOLERATED;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{Failure, Result};
use call::{Call, KINDS, Kind};
use draw::Draw;
use subject::{Answer, Subject};

/// What to compare and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One library.
    pub left: PathBuf,
    /// The other.
    pub right: PathBuf,
    /// How many calls.
    pub calls: u64,
    /// What the trace is drawn from.
    pub seed: u64,
    /// Where the databases go; must be empty or absent.
    pub directory: PathBuf,
    /// Kinds of calls that are not drawn.
    pub without: Vec<String>,
    /// How many differences end the run.
    pub differences: u64,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Calls made, by kind.
    pub calls: BTreeMap<&'static str, u64>,
    /// Differences, by kind.
    pub differences: BTreeMap<&'static str, u64>,
    /// The first differences, for a person.
    pub reports: Vec<String>,
    /// How often the libraries changed places.
    pub swaps: u64,
    /// Kinds that were not drawn because a library lacks their functions.
    pub lacking: Vec<&'static str>,
}

impl Outcome {
    /// All differences.
    pub fn count(&self) -> u64 {
        self.differences.values().sum()
    }
}

/// How many of the last calls a report shows.
const SHOWN: usize = 20;

struct Driver {
    left: Subject,
    right: Subject,
    kinds: Vec<&'static Kind>,
    draw: Draw,
    once: u64,
    last: VecDeque<String>,
    outcome: Outcome,
    limit: u64,
}

/// Runs a plan.
///
/// # Errors
/// When a library cannot be loaded or the first opening fails; differences are not errors.
pub fn run(plan: &Plan, progress: impl Fn(u64, u64)) -> Result<Outcome> {
    let mut left = Subject::load(&plan.left, &plan.directory.join("a"))?;
    let mut right = Subject::load(&plan.right, &plan.directory.join("b"))?;
    let mut outcome = Outcome::default();
    let mut kinds = Vec::new();
    for kind in KINDS {
        let unwanted = plan.without.iter().any(|name| name == kind.name);
        let lacks = |name: &&str| left.lacks(name) || right.lacks(name);
        match kind.needs.iter().any(lacks) {
            true => outcome.lacking.push(kind.name),
            false if !unwanted => kinds.push(kind),
            false => {}
        }
    }
    if std::fs::read_dir(&plan.directory).is_ok_and(|mut entries| entries.next().is_some()) {
        let place = plan.directory.display();
        return Err(Failure::new(format!("{place} is not empty")));
    }
    left.begin().map_err(|e| e.context("left"))?;
    right.begin().map_err(|e| e.context("right"))?;
    let mut driver = Driver {
        left,
        right,
        kinds,
        draw: Draw::new(plan.seed),
        once: 0,
        last: VecDeque::new(),
        outcome,
        limit: plan.differences.max(1),
    };
    for number in 0..plan.calls {
        if driver.outcome.count() >= driver.limit {
            break;
        }
        driver.one(number);
        if number % 10_000 == 0 {
            progress(number, driver.outcome.count());
        }
    }
    driver.finish();
    Ok(driver.outcome)
}

impl Driver {
    fn one(&mut self, number: u64) {
        let kind = self.pick();
        let call = call::draw_call(kind.name, &mut self.draw, &mut self.once);
        *self.outcome.calls.entry(kind.name).or_default() += 1;
        let (left, right) = match call {
            Call::Swap => self.swap(),
            _ => (self.left.apply(&call), self.right.apply(&call)),
        };
        let agree = tolerated::agree(&left, &right);
        let shown = format!("{number} {call:?}");
        if agree {
            self.remember(format!("{shown}\n    both: {}", left.text));
        } else {
            self.remember(format!(
                "{shown}\n    left:  {left:?}\n    right: {right:?}"
            ));
            self.report(kind.name);
        }
        match call {
            Call::Checkpoint => self.cross("checkpoint"),
            Call::Backup => self.cross("restored"),
            _ => {}
        }
    }

    fn pick(&mut self) -> &'static Kind {
        let total: u32 = self.kinds.iter().map(|kind| kind.weight).sum();
        let mut at = self.draw.below(total as usize) as u32;
        for kind in &self.kinds {
            if at < kind.weight {
                return kind;
            }
            at -= kind.weight;
        }
        &KINDS[0]
    }

    fn remember(&mut self, line: String) {
        if self.last.len() == SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    fn report(&mut self, kind: &'static str) {
        *self.outcome.differences.entry(kind).or_default() += 1;
        if self.outcome.reports.len() < 20 {
            let many = if self.limit == 1 { SHOWN } else { 1 };
            let from = self.last.len().saturating_sub(many);
            let lines: Vec<&str> = self.last.range(from..).map(String::as_str).collect();
            self.outcome.reports.push(lines.join("\n"));
        }
    }

    /// Both libraries read the copies of both.
    fn cross(&mut self, copy: &str) {
        let names = self.left.family_names();
        let (ours, theirs) = (self.left.base.join(copy), self.right.base.join(copy));
        if !ours.exists() || !theirs.exists() {
            return;
        }
        let left = self.left.digest_directory(&theirs, &names);
        let right = self.right.digest_directory(&ours, &names);
        if left != right {
            self.remember(format!(
                "each reads the other's {copy}\n    left:  {left}\n    right: {right}"
            ));
            self.report("Cross");
        }
    }

    /// Closes both databases, and lets each library go on with the other's.
    fn swap(&mut self) -> (Answer, Answer) {
        let (left, right) = (self.left.close_for_swap(), self.right.close_for_swap());
        std::mem::swap(&mut self.left.base, &mut self.right.base);
        self.outcome.swaps += 1;
        let answer = |subject: &mut Subject, names: &[String]| {
            let opened = subject.reopen_with(names);
            let digest = subject.digest();
            let families = subject.apply(&Call::ListFamilies).text;
            Answer::from(format!("{opened}; {families}; {digest}"))
        };
        (
            answer(&mut self.left, &left),
            answer(&mut self.right, &right),
        )
    }

    /// Each library reads both directories once more.
    fn finish(&mut self) {
        let names = self.left.close_for_swap();
        self.right.close_for_swap();
        if names.is_empty() {
            return;
        }
        let read =
            |subject: &Subject, base: &Path| subject.digest_directory(&base.join("db"), &names);
        let (a, b) = (self.left.base.clone(), self.right.base.clone());
        let all = [
            read(&self.left, &a),
            read(&self.left, &b),
            read(&self.right, &a),
            read(&self.right, &b),
        ];
        if all.iter().any(|one| *one != all[0]) {
            self.remember(format!("at the end, each reads both: {all:#?}"));
            self.report("End");
        }
    }
}

const USAGE: &str = "usage: esker diff --left lib:PATH --right lib:PATH [--calls N] [--seed S] \
    [--directory D] [--without KIND,KIND] [--only KIND,KIND] [--differences N] [--list]";

fn library(text: &str) -> Result<PathBuf> {
    let path = text.strip_prefix("lib:").unwrap_or(text);
    Path::new(path)
        .canonicalize()
        .map_err(|e| Failure::from(e).context(path))
}

fn parse(args: &[String]) -> Result<Option<(Plan, bool)>> {
    let (mut left, mut right, mut directory, mut only) = (None, None, None, Vec::new());
    let mut plan = Plan {
        left: PathBuf::new(),
        right: PathBuf::new(),
        calls: 100_000,
        seed: 1,
        directory: PathBuf::new(),
        without: Vec::new(),
        differences: 1,
    };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        if flag == "--list" {
            return Ok(None);
        }
        let Some(value) = args.next() else {
            return Err(Failure::new(USAGE));
        };
        let number = || value.replace('_', "").parse::<u64>();
        let number = || number().map_err(|_| Failure::new(format!("{flag} {value}: not a number")));
        let names = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
        match flag.as_str() {
            "--left" => left = Some(library(value)?),
            "--right" => right = Some(library(value)?),
            "--calls" => plan.calls = number()?,
            "--seed" => plan.seed = number()?,
            "--differences" => plan.differences = number()?,
            "--directory" => directory = Some(PathBuf::from(value)),
            "--without" => plan.without = names(),
            "--only" => only = names(),
            _ => return Err(Failure::new(USAGE)),
        }
    }
    let (Some(left), Some(right)) = (left, right) else {
        return Err(Failure::new(USAGE));
    };
    (plan.left, plan.right) = (left, right);
    if !only.is_empty() {
        let others = KINDS
            .iter()
            .filter(|kind| !only.iter().any(|name| name == kind.name));
        plan.without = others.map(|kind| kind.name.to_owned()).collect();
    }
    let given = directory.is_some();
    let own = || std::env::temp_dir().join(format!("esker-diff-{}", std::process::id()));
    plan.directory = directory.unwrap_or_else(own);
    Ok(Some((plan, given)))
}

/// The body of `esker diff`.
pub fn main(args: &[String]) -> ExitCode {
    let (plan, keep) = match parse(args) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => {
            list();
            return ExitCode::SUCCESS;
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            return ExitCode::from(2);
        }
    };
    println!(
        "left {}, right {}",
        plan.left.display(),
        plan.right.display()
    );
    println!(
        "seed {}, {} calls, in {}",
        plan.seed,
        plan.calls,
        plan.directory.display()
    );
    let outcome = run(&plan, |number, differences| {
        eprintln!("{number} calls, {differences} differences");
    });
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(failure) => {
            eprintln!("error: {failure}");
            return ExitCode::FAILURE;
        }
    };
    print(&outcome);
    if outcome.count() > 0 {
        println!("the databases stay in {}", plan.directory.display());
        return ExitCode::FAILURE;
    }
    if !keep {
        // Nobody needs them; that they cannot be removed is no difference.
        let _ = std::fs::remove_dir_all(&plan.directory);
    }
    ExitCode::SUCCESS
}

fn list() {
    println!("kinds of calls: ");
    for kind in KINDS {
        println!("    {}", kind.name);
    }
    println!("what may differ:");
    for (what, why) in TOLERATED {
        println!("    {what}: {why}");
    }
}

fn print(outcome: &Outcome) {
    for report in &outcome.reports {
        println!("{report}\n");
    }
    if !outcome.lacking.is_empty() {
        println!(
            "not drawn, a library lacks them: {}",
            outcome.lacking.join(", ")
        );
    }
    for (kind, count) in &outcome.differences {
        println!("{kind}: {count} differences");
    }
    let calls: u64 = outcome.calls.values().sum();
    println!(
        "{calls} calls of {} kinds, {} swaps of directories: {} differences",
        outcome.calls.len(),
        outcome.swaps,
        outcome.count()
    );
}
