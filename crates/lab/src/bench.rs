//! The front door: `esker bench`.
//!
//! Without arguments it shows a newcomer around on a temporary database. With flags it is
//! `db_bench`. With `compare` as the first word it runs paired comparisons, see [`crate::compare`]; with `universal` ten
//! configurations of universal compaction, see [`crate::universal`].

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::dlopen::LibStore;
use crate::flags::{self, Flags};
use crate::report::{self, Row};
use crate::runner::{Print, Runner};
use crate::say::say;
use crate::store_esker::EskerStore;
use crate::{Failure, Result, compare, universal};

/// The flags of a run without arguments: about 20 seconds on a small machine.
const TOUR: &[&str] = &[
    "--benchmarks=filluniquerandom,waitforcompaction,readrandom,readseq,seekrandom,overwrite,readwhilewriting",
    "--num=300000",
    "--value_size=400",
    "--key_size=20",
    "--duration=3",
    "--histogram",
    "--statistics",
    "--seek_nexts=10",
    "--bloom_bits=10",
    "--cache_size=268435456",
    "--compression_type=none",
    "--background_write_rate_limit=2097152",
    "--write_buffer_size=16777216",
    "--target_file_size_base=16777216",
    "--max_bytes_for_level_base=67108864",
];

/// Runs `esker bench` with these arguments (without the words `esker bench`).
pub fn main(args: &[String]) -> ExitCode {
    let outcome = match args.first().map(String::as_str) {
        Some("compare") => compare::main(&args[1..]),
        Some("universal") => universal::main(&args[1..]),
        _ => run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("esker bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let given = Flags::parse(args)?;
    if given.help {
        say!("{}", flags::help());
        return Ok(());
    }
    // Naming the engine, or where results go, is still the tour.
    let tour = given
        .given()
        .all(|(flag, _)| matches!(flag.name, "engine" | "json"));
    let flags = if tour {
        with_defaults(TOUR, &given)?
    } else {
        given
    };
    let quiet = |_: &str| {};
    let print: Print<'_> = if tour { &quiet } else { &|text| say!("{text}") };
    if tour {
        say!(
            "A short tour of {} on a temporary database; --help tells what else there is.",
            flags.text("engine")
        );
    }
    let bar = Bar::new(tour);
    let rows = with_directory(&flags, |path| {
        run_engine(&flags, flags.text("engine"), path, print, &bar)
    })?;
    bar.finish();
    if tour {
        tour_end(&rows);
    }
    report::write(flags.text("json"), || {
        report::document(flags.text("engine"), args, &rows)
    })
}

fn with_defaults(defaults: &[&str], given: &Flags) -> Result<Flags> {
    let mut flags = Flags::parse(defaults)?;
    for (flag, value) in given.given() {
        flags.set(flag.name, value)?;
    }
    Ok(flags)
}

fn tour_end(rows: &[Row]) {
    say!("\n{}{}", report::summary(rows), report::stall_summary(rows));
    if let Some(last) = rows.last() {
        say!("The tree at the end: {}", last.text("shape_after"));
    }
    say!("Latencies are closed-loop; the directory has been removed. Machine:");
    say!("{}", crate::process::machine());
}

/// Runs the benchmarks of `flags` on one engine.
///
/// # Errors
/// An unknown engine, or the first failure of the run.
pub fn run_engine(
    flags: &Flags,
    engine: &str,
    path: &Path,
    print: Print<'_>,
    bar: &Bar,
) -> Result<Vec<Row>> {
    let progress = |name: &str, done: u64, wanted: u64| bar.show(name, done, wanted);
    let (engine, own) = engine.split_once('?').unwrap_or((engine, ""));
    let flags = &with_options(flags, own)?;
    if let Some(library) = engine.strip_prefix("lib:") {
        let open = |plan: &crate::store::OpenPlan| LibStore::open(Path::new(library), plan);
        return Runner::new(flags, path, open, print, &progress).run_all();
    }
    if engine == "esker" {
        return Runner::new(flags, path, EskerStore::open, print, &progress).run_all();
    }
    Err(Failure::new(format!(
        "unknown engine `{engine}`; engines are esker and lib:/path/to/librocksdb.so"
    )))
}

/// The flags with options that one engine alone gets, behind those that all get.
fn with_options(flags: &Flags, own: &str) -> Result<Flags> {
    let mut flags = flags.clone();
    if !own.is_empty() {
        let all = format!("{};{own}", flags.text("options"));
        flags.set("options", all.trim_start_matches(';'))?;
    }
    Ok(flags)
}

/// Calls `work` with `--db`, or with a temporary directory that is removed afterwards.
///
/// # Errors
/// As `work`.
pub fn with_directory<T>(flags: &Flags, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    if !flags.text("db").is_empty() {
        return work(Path::new(flags.text("db")));
    }
    let scratch = Scratch::within(&std::env::temp_dir())?;
    work(&scratch.path().join("db"))
}

/// A temporary directory, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new directory in `base`.
    pub(crate) fn within(base: &Path) -> Result<Scratch> {
        for attempt in 0..1000 {
            let path = base.join(format!("esker-bench-{}-{attempt}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Scratch(path)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(Failure::new(format!(
                        "cannot create {}: {e}",
                        path.display()
                    )));
                }
            }
        }
        Err(Failure::new(format!(
            "no free name for a directory in {}",
            base.display()
        )))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Progress: a bar on a terminal, one line per benchmark otherwise, nothing when not wanted.
pub struct Bar {
    state: Option<Mutex<BarState>>,
}

struct BarState {
    bar: Option<ProgressBar>,
    name: String,
    since: Instant,
}

impl Bar {
    /// A bar, or one that shows nothing.
    pub fn new(wanted: bool) -> Bar {
        let state = wanted.then(|| {
            let bar = std::io::stderr().is_terminal().then(|| {
                let style = ProgressStyle::with_template("{msg:24} {bar:40} {pos:>10} operations");
                ProgressBar::new(1)
                    .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            });
            Mutex::new(BarState {
                bar,
                name: String::new(),
                since: Instant::now(),
            })
        });
        Bar { state }
    }

    fn show(&self, name: &str, done: u64, wanted: u64) {
        let Some(state) = &self.state else { return };
        let Ok(mut state) = state.lock() else { return };
        if state.name != name {
            state.name = name.to_string();
            state.since = Instant::now();
            match &state.bar {
                Some(bar) => bar.reset(),
                None => eprintln!("  running {name} ..."),
            }
        }
        let Some(bar) = &state.bar else { return };
        let rate = done as f64 / state.since.elapsed().as_secs_f64().max(1e-3);
        bar.set_length(wanted.max(done));
        bar.set_position(done);
        bar.set_message(format!("{name} {rate:.0}/s"));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        let Some(Ok(state)) = self.state.as_ref().map(Mutex::lock) else {
            return;
        };
        if let Some(bar) = &state.bar {
            bar.finish_and_clear();
        }
    }
}
