//! `cargo xtask seeded-bugs`: runs the simulator once with each bug of `esker_status::seeded` and
//! counts those that it finds. A run without any bug has to find nothing.
//!
//! The simulator is built with the dev profile, whose debug assertions let the bugs in. Bugs are
//! hunted side by side, one process each: a hang, a panic and an abort are finds like any other.

use crate::Findings;
use esker_status::seeded::BUGS;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// This many have to be found: 95 of a hundred.
const LEAST: usize = (BUGS.len() * 19).div_ceil(20);
/// A hunt hangs when it takes this many times its processor time. The machine may be busy; a
/// schedule that makes no progress ends by itself.
const SLOWEST: u32 = 12;

struct Arguments {
    /// Seconds of processor time for a bug.
    seconds: u64,
    /// Seconds for the run without bugs.
    clean: u64,
    only: Option<String>,
    least: usize,
}

impl Arguments {
    fn parse(args: &[&str]) -> io::Result<Arguments> {
        let mut out = Arguments {
            seconds: 48,
            clean: 48,
            only: None,
            least: LEAST,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--quick" => (out.seconds, out.clean) = (30, 30),
                "--long" => (out.seconds, out.clean, out.least) = (300, 600, BUGS.len()),
                "--only" => {
                    let name = args.next().map(|n| (*n).to_owned());
                    out.only = Some(name.ok_or_else(|| io::Error::other("--only takes a name"))?);
                }
                other => return Err(io::Error::other(format!("{other} is no option"))),
            }
        }
        Ok(out)
    }
}

/// The result of one hunt.
struct Outcome {
    /// The kind of test that found the bug, and the number of cases until then.
    found: Option<(String, String)>,
    /// The finding as text; the number of cases where nothing was found.
    what: String,
    took: Duration,
}

/// Builds the simulator.
fn build(root: &Path) -> io::Result<PathBuf> {
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => root.join("target"),
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--bin", "esker-sim", "--locked"])
        .args(["--features", "esker-sim/seeded-bugs"])
        .current_dir(root)
        .status()?;
    if !status.success() {
        return Err(io::Error::other("the simulator does not build"));
    }
    Ok(target.join("debug/esker-sim"))
}

/// Runs the simulator with `bug`, or with none.
fn run_search(program: &Path, bug: Option<&str>, seconds: u64) -> io::Result<Outcome> {
    let mut command = Command::new(program);
    command.args(["--hunt", &seconds.to_string()]);
    command.env_remove("ESKER_SEEDED_BUG");
    if let Some(bug) = bug {
        command.env("ESKER_SEEDED_BUG", bug);
    }
    let start = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let limit = SLOWEST * Duration::from_secs(seconds);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut text = String::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_string(&mut text)?;
    }
    let words: Vec<&str> = text
        .lines()
        .last()
        .unwrap_or_default()
        .split('\t')
        .collect();
    let (found, what) = match (words.as_slice(), status) {
        (["found", kind, cases, what], _) => {
            (Some(((*kind).to_owned(), (*cases).to_owned())), *what)
        }
        (["nothing", _, cases, _], _) => (None, *cases),
        (_, None) => (Some(("a hang".to_owned(), "1".to_owned())), ""),
        (_, Some(_)) => (Some(("an abort".to_owned(), "1".to_owned())), ""),
    };
    Ok(Outcome {
        found,
        what: what.to_owned(),
        took: start.elapsed(),
    })
}

/// The task.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let args = Arguments::parse(args)?;
    let begin = Instant::now();
    let program = build(root)?;
    println!("built in {} s", begin.elapsed().as_secs());
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| name == only);
    let names: Vec<&str> = BUGS.iter().map(|entry| entry.name).collect();
    let names: Vec<&str> = names.into_iter().filter(|n| wanted(n)).collect();
    if names.is_empty() {
        return Err(io::Error::other("there is no such bug"));
    }
    // The first hunt is without a bug.
    let searches: Vec<Option<&str>> = std::iter::once(None)
        .chain(names.iter().copied().map(Some))
        .collect();
    let (next, findings) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&bug) = searches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match one(&program, bug, &args) {
                        Ok(()) => {}
                        Err(text) => findings.lock().expect("nobody panics").push((bug, text)),
                    }
                }
            });
        }
    });
    let findings = findings.into_inner().expect("nobody panics");
    let survivors: Vec<&str> = findings.iter().filter_map(|(bug, _)| *bug).collect();
    let (killed, all) = (names.len() - survivors.len(), names.len());
    println!(
        "seeded bugs: {killed} of {all} killed in {} s; survivors: {}",
        begin.elapsed().as_secs(),
        match survivors.as_slice() {
            [] => "none".to_owned(),
            some => some.join(", "),
        }
    );
    // Survivors that are few enough are told above and are no finding.
    let counts = |bug: Option<&str>| bug.is_none() || killed < args.least.min(all);
    let findings = findings.into_iter().filter(|(bug, _)| counts(*bug));
    Ok(findings.map(|(_, text)| text).collect())
}

/// One hunt, told in a line; an error when it did not end as it should.
fn one(program: &Path, bug: Option<&str>, args: &Arguments) -> Result<(), String> {
    let seconds = if bug.is_some() {
        args.seconds
    } else {
        args.clean
    };
    let name = bug.unwrap_or("no bug");
    let done = run_search(program, bug, seconds).map_err(|e| format!("{name}: {e}"))?;
    let took = done.took.as_secs_f64();
    match (&done.found, bug) {
        (Some((kind, cases)), Some(_)) => {
            println!("{name}: killed by {kind} after {cases} cases, {took:.1} s");
            Ok(())
        }
        (Some((kind, cases)), None) => {
            let text = format!("{name}: {kind} found after {cases} cases: {}", done.what);
            println!("{text}");
            Err(text)
        }
        (None, Some(_)) => {
            println!("{name}: SURVIVED {} cases, {took:.1} s", done.what);
            Err(format!("{name} survived {} cases", done.what))
        }
        (None, None) => {
            println!("{name}: {} cases, violations: 0", done.what);
            Ok(())
        }
    }
}
