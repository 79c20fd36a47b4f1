//! `esker-differential model`: random programs of C calls on one library, on real threads and a
//! real filesystem, against a model.
//!
//! ```text
//! esker-differential model --lib librocksdb.so --seed 7 --seconds 3600
//! ```
//!
//! One thread changes contents and knows what they are, so each of its reads has one right answer.
//! Up to three others make the calls that change no contents: compactions of all kinds, flushes,
//! options, pauses. A compaction filter sleeps in jobs, so that calls come between their parts.
//! Trees are small and files are tiny, so that all levels move.
//!
//! A program is text: options, and a list of calls for each thread, with numbers for families, keys
//! and values. The seed decides it; the order of the threads is chance. A program that fails is
//! shortened while it still fails, and printed; `--play FILE` runs it again.
//!
//! A round is a program that ran to its end on a database that opened. What was called, compared
//! and refused is counted by kind.

mod additions;
mod copies;
mod files;
mod held;
mod kill;
mod kinds;
mod program;
mod reads;
mod shrink;
mod table;
mod tree;
mod txn;
mod world;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::api::Api;
use crate::say::say;
use crate::{Failure, Result};
use kinds::{CallKind, KINDS};
use program::{Program, ProgramGenerator};
use shrink::FailedCall;
use world::{Library, ModelState};
use writer::Writer;

/// Settings of a run: its programs and its length.
#[derive(Clone, Debug)]
pub struct ModelPlan {
    /// The library.
    pub library: PathBuf,
    /// The first seed; the next programs have the next ones.
    pub seed: u64,
    /// How long programs are begun.
    pub time: Duration,
    /// How long a failing program is shortened.
    pub shrink: Duration,
    /// Where the databases go.
    pub directory: PathBuf,
    /// Calls of the model's thread in a program.
    pub calls: usize,
    /// Kinds that are not drawn.
    pub without: Vec<String>,
    /// Prints every call before it is made, for a library that ends the process.
    pub trace: bool,
    /// Tells whether programs run in processes that are killed; only for the command.
    pub kill: bool,
}

/// Outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct ModelOutcome {
    /// Programs that ran.
    pub rounds: u64,
    /// Programs whose database did not open.
    pub refused: u64,
    /// Calls and comparisons, by kind.
    pub counts: BTreeMap<String, u64>,
    /// How long it took until the end, or until a program failed.
    pub took: Duration,
    /// The seed that failed, how, and the shortest program that still did.
    pub failure: Option<(u64, String, String)>,
}

impl ModelOutcome {
    /// How often something was done.
    pub fn count(&self, kind: &str) -> u64 {
        self.counts.get(kind).copied().unwrap_or(0)
    }

    /// All calls, refused ones too.
    pub fn calls(&self) -> u64 {
        KINDS.iter().map(|kind| self.count(kind.name)).sum()
    }

    /// All counts in one line.
    pub fn line(&self) -> String {
        let counts: Vec<String> = self
            .counts
            .iter()
            .map(|(k, n)| format!("{k} {n}"))
            .collect();
        format!(
            "{} rounds, {} refused, {} calls: {}",
            self.rounds,
            self.refused,
            self.calls(),
            counts.join(", ")
        )
    }
}

/// How one program ended.
enum ProgramResult {
    Right(BTreeMap<String, u64>),
    Wrong(FailedCall),
    /// Its database did not open.
    Refused(Failure),
}

/// How long a call of the model's thread may take before it counts as hanging.
const HANGS: Duration = Duration::from_secs(60);

/// Runs programs until the time is over or one fails.
///
/// # Errors
/// When the library cannot be loaded, or lacks what every program needs.
pub fn run(plan: &ModelPlan) -> Result<ModelOutcome> {
    let library = load(&plan.library)?;
    let old = library.api.missing.contains("wait_for_compact");
    let wanted = |kind: &CallKind| {
        let lacks = kind
            .needs
            .iter()
            .any(|name| library.api.missing.contains(name));
        // Enabling deletions of files has another signature there.
        let other = old && ["deletions_off", "read_only", "secondary"].contains(&kind.name);
        let known = !plan.kill || kill::knows(kind.name);
        !lacks && !other && known && !plan.without.iter().any(|name| name == kind.name)
    };
    let accepts = |text: &str| library.options(text).is_ok();
    let drawer = ProgramGenerator {
        wanted: &wanted,
        accepts: &accepts,
        calls: plan.calls,
        transactions: !library.api.missing.contains("transactiondb_get_base_db"),
    };
    let (mut outcome, began) = (ModelOutcome::default(), Instant::now());
    let mut seed = plan.seed;
    while began.elapsed() < plan.time {
        let program = drawer.program(seed);
        let ended = if plan.kill {
            kill::play(plan, program.clone(), seed)?
        } else {
            play(plan, &program)?
        };
        match ended {
            ProgramResult::Right(counts) => {
                outcome.rounds += 1;
                for (kind, count) in counts {
                    *outcome.counts.entry(kind).or_default() += count;
                }
            }
            ProgramResult::Refused(_) => outcome.refused += 1,
            ProgramResult::Wrong(found) => {
                let said = found.failure.to_string();
                outcome.took = began.elapsed();
                outcome.failure = Some((seed, said, smaller(plan, program, found)));
                break;
            }
        }
        seed += 1;
        outcome.took = began.elapsed();
    }
    Ok(outcome)
}

/// The text of the shortest program that was found to fail, and how it failed.
fn smaller(plan: &ModelPlan, program: Program, found: FailedCall) -> String {
    if plan.kill {
        // Its failure is a matter of the moment.
        return format!("# {}\n{program}", found.failure);
    }
    let again = |program: &Program| match play(plan, program) {
        Ok(ProgramResult::Wrong(found)) => Some(found),
        _ => None,
    };
    let (program, found) = shrink::shrink(program, found, plan.shrink, &again);
    format!("# {}\n{program}", found.failure)
}

fn load(path: &Path) -> Result<Library> {
    let api = Api::load(path)?;
    let needed = [
        "open_column_families",
        "close",
        "free",
        "options_create",
        "livefiles",
    ];
    match needed.iter().find(|name| api.missing.contains(*name)) {
        None => Ok(Library { api }),
        Some(name) => {
            let place = path.display();
            Err(Failure::new(format!("{place} has no rocksdb_{name}")))
        }
    }
}

/// Runs one program in a new directory.
fn play(plan: &ModelPlan, program: &Program) -> Result<ProgramResult> {
    let directory = &plan.directory;
    // A failed removal shows as a database that is not new.
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory)?;
    // For a library that ends the process.
    std::fs::write(directory.join("program.txt"), program.to_string())?;
    play_in(plan, program)
}

/// Runs one program in a directory that has no database yet.
fn play_in(plan: &ModelPlan, program: &Program) -> Result<ProgramResult> {
    let directory = &plan.directory;
    let mut world = match ModelState::new(load(&plan.library)?, directory, &program.setting) {
        Ok(world) => world,
        Err(failure) => return Ok(ProgramResult::Refused(failure)),
    };
    world.trace = plan.trace;
    if plan.kill {
        world.done = Some(kill::done_file(directory)?);
    }
    let (mode, names) = (
        program.setting.mode,
        writer::first_names(program.setting.families),
    );
    if let Err(failure) = world.begin(mode, &names) {
        world.free();
        return Ok(ProgramResult::Refused(failure));
    }
    let found = std::thread::scope(|scope| {
        let (done, watched) = mpsc::channel::<()>();
        let (world, text) = (&world, program.to_string());
        scope.spawn(move || watch(world, &watched, &text));
        let found = play_threads(world, program);
        drop(done);
        found
    });
    let counts = world.counts();
    world.free();
    Ok(found.map_or(ProgramResult::Right(counts), ProgramResult::Wrong))
}

/// Ends the process when the model's thread stays in one call for too long.
fn watch(world: &ModelState, done: &mpsc::Receiver<()>, text: &str) {
    let (mut seen, mut since) = (world.begun(), Instant::now());
    while done.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        if world.begun() != seen {
            (seen, since) = (world.begun(), Instant::now());
        } else if since.elapsed() > HANGS {
            say!("a program hangs in {}:\n{text}", world.doing());
            std::process::exit(9);
        }
    }
}

/// Runs the threads of a program on an open database, and closes it.
fn play_threads(world: &ModelState, program: &Program) -> Option<FailedCall> {
    let keys = program.setting.keys;
    let mut writer = Writer::new(world, &program.setting);
    let mut found = None;
    std::thread::scope(|scope| {
        for (thread, calls) in program.threads.iter().enumerate().skip(1) {
            scope.spawn(move || tree::neutral(world, keys, thread, calls));
        }
        for (number, call) in program.threads[0].iter().enumerate() {
            if world.stopped() {
                break;
            }
            world.does(0, call);
            if let Err(failure) = writer.make(call) {
                found = Some(FailedCall {
                    call: Some(number),
                    failure: failure.context(format!("call {number}, {call}")),
                });
                break;
            }
            if let Some(Err(failure)) = world
                .done
                .as_ref()
                .map(|f| kill::note(f, number as u64 + 1))
            {
                found = Some(FailedCall {
                    call: None,
                    failure,
                });
                break;
            }
        }
        world.stop.store(true, Ordering::Relaxed);
    });
    let whole = |failure| FailedCall {
        call: None,
        failure,
    };
    let at_end = |w: &Writer<'_>| {
        w.verify(false)
            .map_err(|failure| failure.context("at the end"))
    };
    if found.is_none() {
        found = world.seen().map(whole);
    }
    if found.is_none() {
        found = at_end(&writer).err().map(whole);
    }
    writer.close(false);
    found
}

const USAGE: &str = "usage: esker-differential model --lib PATH [--seed N] [--seconds S] [--calls N] \
    [--shrink SECONDS] [--dir D] [--without KIND,KIND] [--only KIND,KIND] | --lib PATH --play FILE [--tries N] \
    | --list; --trace prints all calls; --kill runs programs in processes that are killed";

/// Arguments of the command line.
struct Command {
    plan: ModelPlan,
    play: Option<PathBuf>,
    /// Tells whether this is the process of a program that is killed.
    child: bool,
    tries: u64,
}

fn parse(args: &[String]) -> Result<Command> {
    let own = std::env::temp_dir().join(format!("esker-model-{}", std::process::id()));
    let mut command = Command {
        plan: ModelPlan {
            library: PathBuf::new(),
            seed: 1,
            time: Duration::from_secs(60),
            shrink: Duration::from_secs(120),
            directory: own,
            calls: 600,
            without: Vec::new(),
            trace: false,
            kill: false,
        },
        play: None,
        child: false,
        tries: 10,
    };
    let plan = &mut command.plan;
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--trace" => plan.trace = true,
            "--kill" => plan.kill = true,
            "--child" => (plan.kill, command.child) = (true, true),
            _ => {}
        }
        if ["--trace", "--kill", "--child"].contains(&flag.as_str()) {
            continue;
        }
        let value = args.next().ok_or_else(|| Failure::new(USAGE))?;
        let number = || crate::number(flag, value);
        match flag.as_str() {
            "--lib" => plan.library = crate::library(value)?,
            "--seed" => plan.seed = number()?,
            "--seconds" => plan.time = Duration::from_secs(number()?),
            "--shrink" => plan.shrink = Duration::from_secs(number()?),
            "--calls" => plan.calls = number()? as usize,
            "--dir" => plan.directory = PathBuf::from(value),
            "--tries" => command.tries = number()?,
            "--play" => command.play = Some(PathBuf::from(value)),
            "--without" => plan.without.extend(value.split(',').map(str::to_owned)),
            "--only" => {
                let named: Vec<&str> = value.split(',').collect();
                let others = KINDS.iter().filter(|kind| !named.contains(&kind.name));
                plan.without.extend(others.map(|kind| kind.name.to_owned()));
            }
            _ => return Err(Failure::new(USAGE)),
        }
    }
    if plan.library.as_os_str().is_empty() {
        return Err(Failure::new(USAGE));
    }
    Ok(command)
}

/// The body of `esker-differential model`.
pub fn main(args: &[String]) -> ExitCode {
    if args == ["--list"] {
        KINDS.iter().for_each(|kind| say!("{}", kind.name));
        return ExitCode::SUCCESS;
    }
    let outcome = parse(args).and_then(|command| match &command.play {
        Some(file) => play_file(&command, file),
        None if command.child => kill::child(&command.plan).map(|ended| match ended {
            ProgramResult::Right(_) => true,
            ProgramResult::Refused(failure) | ProgramResult::Wrong(FailedCall { failure, .. }) => {
                say!("{failure}");
                false
            }
        }),
        None => run(&command.plan).map(|outcome| report(&command.plan, &outcome)),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            crate::say::error(&failure.to_string());
            ExitCode::from(2)
        }
    }
}

fn report(plan: &ModelPlan, outcome: &ModelOutcome) -> bool {
    say!("{:.1?}: {}", outcome.took, outcome.line());
    let Some((seed, failure, program)) = &outcome.failure else {
        let _ = std::fs::remove_dir_all(&plan.directory); // only scratch is left
        return true;
    };
    say!("seed {seed} failed: {failure}\n{program}");
    say!("the last database stays in {}", plan.directory.display());
    false
}

/// Runs a program of a file so many times, or until it fails.
fn play_file(command: &Command, file: &Path) -> Result<bool> {
    let program = Program::parse(&std::fs::read_to_string(file)?)?;
    for number in 1..=command.tries {
        match play(&command.plan, &program)? {
            ProgramResult::Right(_) => {}
            ProgramResult::Refused(failure) => {
                return Err(failure.context("the database did not open"));
            }
            ProgramResult::Wrong(found) => {
                say!("try {number}: {}", found.failure);
                return Ok(false);
            }
        }
    }
    say!("{} tries: right", command.tries);
    Ok(true)
}
