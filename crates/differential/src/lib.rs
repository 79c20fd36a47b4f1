//! `esker diff`: one random trace of C calls, two libraries, every result compared.
//!
//! ```text
//! esker diff --left lib:A.so --right lib:B.so --calls 1000000 --seed 7
//! ```
//!
//! Both libraries are loaded at run time and get a database of their own with the same options, a
//! merge operator and a reversed order as callbacks. The options are drawn, too (`options`). Every
//! call's answer is compared: values, positions of iterators, the bytes of batches, the kinds of
//! errors. Now and then both databases are closed and the libraries change places; copies
//! (checkpoints, backups, read-only and secondary openings) are read by the one and by the other.
//! At the end each library reads both directories, and a check of the caller's goes over both.
//!
//! A seed always gives one trace. On a difference the last calls are printed with both
//! answers; with `--shrink` calls are left out as long as the last one still differs, and what
//! remains is printed.
//! [`ALLOWED`] lists what may differ, and why; a run counts how often each rule was needed.
//!
//! That driver runs in one thread. [`model`] runs programs of calls on several, on one library.
//! The crate names no other crate of the project: all that it knows of a library is RocksDB's C
//! API. Unsafe code is confined to the calls of the loaded libraries: `api`, `callbacks`, `subject`
//! and `model`.
#![deny(unsafe_code)]

mod answer;
mod api;
mod call;
mod callbacks;
mod draw;
mod failure;
pub mod model;
mod options;
mod say;
mod shrink;
mod subject;
mod tolerated;

pub use tolerated::ALLOWED;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::say::say;
use answer::CallResult;
use call::{Call, CallKind, KINDS};
use draw::RandomStream;
pub use failure::{Failure, Result};
use options::Setting;
pub use say::{Printers, print_by};
use subject::LibraryState;
use tolerated::Verdict;

/// Libraries to compare, and the length of the run.
#[derive(Clone, Debug)]
pub struct ComparisonPlan {
    /// One library.
    pub left: PathBuf,
    /// The other.
    pub right: PathBuf,
    /// How many calls.
    pub calls: u64,
    /// The seed of the trace.
    pub seed: u64,
    /// Where the databases go; must be empty or absent.
    pub directory: PathBuf,
    /// Kinds of calls that are not drawn.
    pub without: Vec<String>,
    /// How many differences end the run.
    pub differences: u64,
    /// True if all runs have the same options, whatever the seed.
    pub plain: bool,
    /// Prints every call before it is made, for a library that ends the process.
    pub trace: bool,
}

/// Counts and differences of a run.
#[derive(Clone, Debug, Default)]
pub struct ComparisonOutcome {
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
    /// How often a difference was one that [`ALLOWED`] names, by its name.
    pub allowed: BTreeMap<&'static str, u64>,
    /// Time spent in each library, by kind.
    pub times: BTreeMap<&'static str, (Duration, Duration)>,
    /// The options of the databases.
    pub options: String,
    /// The number and the kind of the first call that differed.
    pub first: Option<(u64, &'static str)>,
    /// The directories of both databases.
    pub directories: Vec<PathBuf>,
}

impl ComparisonOutcome {
    /// All differences.
    pub fn count(&self) -> u64 {
        self.differences.values().sum()
    }
}

/// How many of the last calls a report shows.
const SHOWN: usize = 20;

struct Driver {
    left: LibraryState,
    right: LibraryState,
    kinds: Vec<&'static CallKind>,
    total: u32,
    draw: RandomStream,
    once: u64,
    last: VecDeque<(u64, Call, CallResult, Option<CallResult>)>,
    outcome: ComparisonOutcome,
    limit: u64,
    trace: bool,
}

/// Runs a plan.
///
/// # Errors
/// When a library cannot be loaded or the first opening fails; differences are not errors.
pub fn run(plan: &ComparisonPlan, progress: impl Fn(u64, u64)) -> Result<ComparisonOutcome> {
    let mut driver = Driver::start(plan)?;
    for number in 0..plan.calls {
        if driver.outcome.count() >= driver.limit {
            break;
        }
        let (kind, call) = driver.draw();
        driver.one(number, kind, call);
        if number % 10_000 == 0 {
            progress(number, driver.outcome.count());
        }
    }
    driver.finish();
    Ok(driver.outcome)
}

impl Driver {
    /// Loads the libraries and opens new databases.
    fn start(plan: &ComparisonPlan) -> Result<Driver> {
        let mut left = LibraryState::load(&plan.left, &plan.directory.join("a"))?;
        let mut right = LibraryState::load(&plan.right, &plan.directory.join("b"))?;
        left.level(&right);
        right.level(&left);
        let mut outcome = ComparisonOutcome::default();
        let mut kinds = Vec::new();
        for kind in KINDS {
            let unwanted = plan.without.iter().any(|name| name == kind.name);
            let lacks = |name: &&str| left.lacks(name) || right.lacks(name);
            if kind.needs.iter().any(lacks) {
                outcome.lacking.push(kind.name);
            } else if !unwanted {
                kinds.push(kind);
            }
        }
        if std::fs::read_dir(&plan.directory).is_ok_and(|mut entries| entries.next().is_some()) {
            let place = plan.directory.display();
            return Err(Failure::new(format!("{place} is not empty")));
        }
        let setting = if plan.plain {
            Setting::plain()
        } else {
            Setting::draw(plan.seed, left.is_old(), |text| {
                left.accepts(text) && right.accepts(text)
            })
        };
        outcome.options = format!(
            "{}, ranges deleted in every order: {}",
            setting.base, setting.own_order_ranges
        );
        left.begin(&setting).map_err(|e| e.context("left"))?;
        right.begin(&setting).map_err(|e| e.context("right"))?;
        Ok(Driver {
            left,
            right,
            total: kinds.iter().map(|kind| kind.weight).sum(),
            kinds,
            draw: RandomStream::new(plan.seed),
            once: 0,
            last: VecDeque::new(),
            outcome,
            limit: plan.differences.max(1),
            trace: plan.trace,
        })
    }

    /// The next call of the trace.
    fn draw(&mut self) -> (&'static str, Call) {
        let kind = self.pick();
        let call = call::draw_call(kind.name, &mut self.draw, &mut self.once);
        (kind.name, call)
    }

    /// Makes one call in both libraries and compares the answers.
    fn one(&mut self, number: u64, kind: &'static str, call: Call) {
        if self.trace {
            say::note(&format!("{number} {call:?}"));
        }
        *self.outcome.calls.entry(kind).or_default() += 1;
        let began = Instant::now();
        let (left, right, between) = match call {
            Call::Swap => {
                let (left, right) = self.swap();
                (left, right, Instant::now())
            }
            _ => {
                let left = self.left.apply(&call);
                let between = Instant::now();
                (left, self.right.apply(&call), between)
            }
        };
        let times = self.outcome.times.entry(kind).or_default();
        times.0 += between - began;
        times.1 += between.elapsed();
        let copy = match call {
            Call::Checkpoint => Some("checkpoint"),
            Call::Backup => Some("restored"),
            _ => None,
        };
        match tolerated::compare(&call, &self.outcome.options, &left, &right) {
            Verdict::Same => self.remember(number, call, left, None),
            Verdict::Allowed(rule) => {
                *self.outcome.allowed.entry(rule).or_default() += 1;
                self.remember(number, call, left, Some(right));
            }
            Verdict::Differs => {
                self.remember(number, call, left, Some(right));
                self.outcome.first.get_or_insert((number, kind));
                self.report(kind);
            }
        }
        if let Some(copy) = copy {
            self.cross(number, copy);
        }
    }

    fn pick(&mut self) -> &'static CallKind {
        let mut at = self.draw.below(self.total as usize) as u32;
        for kind in &self.kinds {
            if at < kind.weight {
                return kind;
            }
            at -= kind.weight;
        }
        &KINDS[0]
    }

    fn remember(&mut self, number: u64, call: Call, left: CallResult, right: Option<CallResult>) {
        if self.last.len() == SHOWN {
            self.last.pop_front();
        }
        self.last.push_back((number, call, left, right));
    }

    fn report(&mut self, kind: &'static str) {
        *self.outcome.differences.entry(kind).or_default() += 1;
        if self.outcome.reports.len() < 40 {
            let many = if self.limit == 1 { SHOWN } else { 1 };
            let from = self.last.len().saturating_sub(many);
            let line =
                |(number, call, left, right): &(u64, Call, CallResult, Option<CallResult>)| {
                    match right {
                        None => format!("{number} {call:?}\n    both:  {left}"),
                        Some(right) => {
                            format!("{number} {call:?}\n    left:  {left}\n    right: {right}")
                        }
                    }
                };
            let lines: Vec<String> = self.last.range(from..).map(line).collect();
            self.outcome.reports.push(lines.join("\n"));
        }
    }

    /// Reports something that is not the answer to one call.
    fn report_between(&mut self, number: u64, kind: &'static str, text: String) {
        self.outcome.first.get_or_insert((number, kind));
        *self.outcome.differences.entry(kind).or_default() += 1;
        self.outcome.reports.push(text);
    }

    /// Both libraries read the copies of both.
    fn cross(&mut self, number: u64, copy: &str) {
        let names = self.left.family_names();
        let (ours, theirs) = (self.left.base.join(copy), self.right.base.join(copy));
        if !ours.exists() || !theirs.exists() {
            return;
        }
        let left = self.left.digest_directory(&theirs, &names);
        let right = self.right.digest_directory(&ours, &names);
        if left != right {
            let text =
                format!("each reads the other's {copy}\n    left:  {left}\n    right: {right}");
            self.report_between(number, "Cross", text);
        }
    }

    /// Closes both databases, and lets each library go on with the other's.
    fn swap(&mut self) -> (CallResult, CallResult) {
        let (left, right) = (self.left.close_for_swap(), self.right.close_for_swap());
        std::mem::swap(&mut self.left.base, &mut self.right.base);
        self.outcome.swaps += 1;
        let answer = |subject: &mut LibraryState, names: &[String]| {
            let opened = subject.reopen_with(names);
            let digest = subject.digest();
            let families = subject.apply(&Call::ListFamilies).text;
            CallResult::from(format!("{opened}; {families}; {digest}"))
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
        let bases = [&self.left.base, &self.right.base];
        self.outcome.directories = bases.map(|base| base.join("db")).to_vec();
        if names.is_empty() {
            return;
        }
        let read = |subject: &LibraryState, base: &Path| {
            subject.digest_directory(&base.join("db"), &names)
        };
        let (a, b) = (self.left.base.clone(), self.right.base.clone());
        let all = [
            read(&self.left, &a),
            read(&self.left, &b),
            read(&self.right, &a),
            read(&self.right, &b),
        ];
        if all.iter().any(|one| *one != all[0]) {
            let text = format!("at the end, each reads both: {all:#?}");
            self.report_between(u64::MAX, "End", text);
        }
    }
}

const USAGE: &str = "usage: esker diff --left lib:PATH --right lib:PATH [--calls N] [--seed S | --seeds A..B] \
    [--dir D] [--without KIND,KIND] [--only KIND,KIND] [--differences N] [--plain] [--shrink] [--times] \
    [--trace] [--list]";

/// Arguments of the command line.
struct Command {
    plan: ComparisonPlan,
    seeds: std::ops::Range<u64>,
    /// True if the databases stay.
    keep: bool,
    shrink: bool,
    times: bool,
}

fn library(text: &str) -> Result<PathBuf> {
    let path = text.strip_prefix("lib:").unwrap_or(text);
    Path::new(path)
        .canonicalize()
        .map_err(|e| Failure::from(e).context(path))
}

fn number(flag: &str, value: &str) -> Result<u64> {
    let parsed = value.replace('_', "").parse::<u64>();
    parsed.map_err(|_| Failure::new(format!("{flag} {value}: not a number")))
}

fn parse(args: &[String]) -> Result<Option<Command>> {
    let (mut left, mut right, mut directory, mut only) = (None, None, None, Vec::new());
    let mut command = Command {
        plan: ComparisonPlan {
            left: PathBuf::new(),
            right: PathBuf::new(),
            calls: 100_000,
            seed: 1,
            directory: PathBuf::new(),
            without: Vec::new(),
            differences: 1,
            plain: false,
            trace: false,
        },
        seeds: 1..2,
        keep: false,
        shrink: false,
        times: false,
    };
    let plan = &mut command.plan;
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--list" => return Ok(None),
            "--plain" => plan.plain = true,
            "--trace" => plan.trace = true,
            "--shrink" => command.shrink = true,
            "--times" => command.times = true,
            _ => {
                let value = args.next().ok_or_else(|| Failure::new(USAGE))?;
                let names = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
                match flag.as_str() {
                    "--left" => left = Some(library(value)?),
                    "--right" => right = Some(library(value)?),
                    "--calls" => plan.calls = number(flag, value)?,
                    "--seed" => {
                        let seed = number(flag, value)?;
                        command.seeds = seed..seed.saturating_add(1);
                    }
                    "--seeds" => {
                        let (from, to) = value.split_once("..").unwrap_or((value, value));
                        command.seeds = number(flag, from)?..number(flag, to)?;
                    }
                    "--differences" => plan.differences = number(flag, value)?,
                    "--dir" | "--directory" => directory = Some(PathBuf::from(value)),
                    "--without" => plan.without = names(),
                    "--only" => only = names(),
                    _ => return Err(Failure::new(USAGE)),
                }
            }
        }
    }
    let (Some(left), Some(right)) = (left, right) else {
        return Err(Failure::new(USAGE));
    };
    (plan.left, plan.right) = (left, right);
    let known = |name: &&String| !KINDS.iter().any(|kind| kind.name == name.as_str());
    if let Some(name) = plan.without.iter().chain(&only).find(known) {
        return Err(Failure::new(format!("no kind of calls is called {name}")));
    }
    if !only.is_empty() {
        let others = KINDS
            .iter()
            .filter(|kind| !only.iter().any(|name| name == kind.name));
        plan.without = others.map(|kind| kind.name.to_owned()).collect();
    }
    command.keep = directory.is_some();
    let own = || std::env::temp_dir().join(format!("esker-diff-{}", std::process::id()));
    plan.directory = directory.unwrap_or_else(own);
    Ok(Some(command))
}

/// The body of `esker diff`: tells whether the libraries agree. `check` says whether a database's
/// directory is whole, and prints why not.
///
/// # Errors
/// The arguments are wrong.
pub fn main(args: &[String], check: &dyn Fn(&Path) -> bool) -> Result<bool> {
    let Some(command) = parse(args)? else {
        list();
        return Ok(true);
    };
    let plan = &command.plan;
    say!(
        "left {}, right {}",
        plan.left.display(),
        plan.right.display()
    );
    let all = plan.directory.clone();
    let mut sum = ComparisonOutcome::default();
    let mut failed = false;
    for seed in command.seeds.clone() {
        let mut plan = plan.clone();
        (plan.seed, plan.directory) = (seed, all.join(format!("seed-{seed}")));
        match one_seed(&plan, &command, check) {
            Ok(outcome) => {
                failed |= outcome.count() > 0;
                sum.add(&outcome);
            }
            Err(failure) => {
                say::error(&format!("seed {seed}: {failure}"));
                failed = true;
            }
        }
    }
    if command.seeds.end - command.seeds.start > 1 {
        say!("all seeds, {:?}: {}", command.seeds, sum.line());
    }
    Ok(!failed)
}

/// One run with its report.
fn one_seed(
    plan: &ComparisonPlan,
    command: &Command,
    check: &dyn Fn(&Path) -> bool,
) -> Result<ComparisonOutcome> {
    let place = plan.directory.display();
    say!("seed {}, {} calls, in {place}", plan.seed, plan.calls);
    let began = Instant::now();
    let mut outcome = run(plan, |number, differences| {
        say::note(&format!("{number} calls, {differences} differences"));
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let broken: Vec<&PathBuf> = outcome.directories.iter().filter(|d| !check(d)).collect();
    let broken: Vec<String> = broken.iter().map(|d| d.display().to_string()).collect();
    for directory in broken {
        *outcome.differences.entry("Check").or_default() += 1;
        outcome.reports.push(format!("{directory} is not whole"));
    }
    print(&outcome, command.times);
    let calls: u64 = outcome.calls.values().sum();
    say!(
        "seed {}: {} ({:.0} calls a second)",
        plan.seed,
        outcome.line(),
        calls as f64 / seconds.max(0.001)
    );
    if outcome.count() > 0 {
        say!("the databases stay in {place}");
        if let (true, Some((last, kind))) = (command.shrink, outcome.first) {
            shrink::shrink(plan, last, kind)?;
        }
    } else if !command.keep {
        // Nobody needs them; that they cannot be removed is no difference.
        let _ = std::fs::remove_dir_all(&plan.directory);
    }
    Ok(outcome)
}

fn list() {
    say!("{} kinds of calls: ", KINDS.len());
    for kind in KINDS {
        say!("    {}", kind.name);
    }
    say!("what may differ:");
    for (name, what, why) in ALLOWED {
        say!("    {name}: {what}: {why}");
    }
}

impl ComparisonOutcome {
    fn add(&mut self, other: &ComparisonOutcome) {
        for (kind, count) in &other.calls {
            *self.calls.entry(kind).or_default() += count;
        }
        for (kind, count) in &other.differences {
            *self.differences.entry(kind).or_default() += count;
        }
        self.swaps += other.swaps;
    }

    /// The counts in one line.
    pub fn line(&self) -> String {
        let calls: u64 = self.calls.values().sum();
        format!(
            "{calls} calls of {} kinds, {} swaps of directories: {} differences",
            self.calls.len(),
            self.swaps,
            self.count()
        )
    }
}

fn print(outcome: &ComparisonOutcome, times: bool) {
    say!("options: {}", outcome.options);
    for report in &outcome.reports {
        say!("{report}\n");
    }
    if !outcome.lacking.is_empty() {
        say!(
            "not drawn, a library lacks them: {}",
            outcome.lacking.join(", ")
        );
    }
    if times {
        let mut times: Vec<_> = outcome.times.iter().collect();
        times.sort_by_key(|(_, (left, right))| std::cmp::Reverse(*left + *right));
        for (kind, (left, right)) in times.iter().take(20) {
            let calls = outcome.calls.get(*kind).copied().unwrap_or(0);
            say!("{kind}: {calls} calls, left {left:.2?}, right {right:.2?}");
        }
    }
    for (rule, count) in &outcome.allowed {
        let why = ALLOWED.iter().find(|(name, ..)| name == rule);
        say!("allowed {count} times: {rule}: {}", why.map_or("", |w| w.1));
    }
    for (kind, count) in &outcome.differences {
        say!("{kind}: {count} differences");
    }
}
