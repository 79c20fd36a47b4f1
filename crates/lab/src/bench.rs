//! The front door: `esker bench`.
//!
//! Without arguments it shows a newcomer around on a temporary database. With flags it is
//! `db_bench`. With `compare` as the first word it runs paired comparisons, see [`crate::compare`];
//! with `universal` ten configurations of universal compaction, see [`crate::universal`].

use std::io::IsTerminal as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::directory::with_directory;
use crate::dlopen::LibStore;
use crate::experiment::validity::OTHERS;
use crate::flags::{self, Flags, InfoRequest};
use crate::interrupt;
use crate::process::{self, Busy};
use crate::report::{self, Row};
use crate::runner::{self, Print, Runner};
use crate::say::{complain, say};
use crate::store_esker::EskerStore;
use crate::store_null::NullStore;
use crate::{Failure, Result, compare, identity, universal};

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

/// The legend of the tour's columns.
const COLUMNS: &str = "\
ops/sec    operations a second, of all threads together
MB/sec     bytes of keys and values that were read or written, in units of 2^20 a second
us/op      microseconds of one thread for one operation
p50 us     half of the operations took at most this long; p99 us: 99 of 100; max us: the longest
net max us the longest, less the time in which a thread that only sleeps was not woken either
cpu us/op  processor time for one operation, with that of the jobs behind it
write-amp  bytes written to logs and tables for each byte that was written to the database
space-amp  bytes of the directory for each byte of live keys and values
stall %    part of the time in which writers were stopped or delayed, as rocksdb.stall.micros has it
stopped %  part of the writers' time in which they stood still; delayed %: in which a call was held
           back for 1 ms or more; paced %: for less
1 ms+ %    part of the clients' time in calls of 1 ms or more, whatever they waited for: other
           programs on the processors as well
-          was not measured in that benchmark
readwhilewriting reads beside a paced writer: one more thread that writes at most so many bytes a
second (here 2 MiB), and whose operations are not counted.
";

/// Runs `esker bench` with these arguments (without the words `esker bench`).
///
/// # Errors
/// Wrong flags, or the first failure of the run.
pub fn esker_bench(args: &[String]) -> Result<()> {
    interrupt::watch()?;
    match args.first().map(String::as_str) {
        Some("compare") => compare::main(&args[1..]),
        Some("universal") => universal::main(&args[1..]),
        _ => run(&ESKER_BENCH, args),
    }
}

/// Runs `esker bench` as a program of its own.
pub fn main(args: &[String]) -> ExitCode {
    exit_code(&ESKER_BENCH, esker_bench(args))
}

/// Runs `db_bench` with these arguments (without the program's name): every run needs flags, and
/// the database is where RocksDB's program has it.
pub fn db_bench(args: &[String]) -> ExitCode {
    let outcome = interrupt::watch().and_then(|()| run(&DB_BENCH, args));
    exit_code(&DB_BENCH, outcome)
}

/// How a program is called, and what it does without being told.
struct Program {
    name: &'static str,
    /// Its name for `--version` and `--build_info`.
    called: &'static str,
    /// A run without flags is a tour on a temporary database.
    has_tour: bool,
}

const ESKER_BENCH: Program = Program {
    name: "esker bench",
    called: "esker-bench",
    has_tour: true,
};

const DB_BENCH: Program = Program {
    name: "db_bench",
    called: "db_bench",
    has_tour: false,
};

fn exit_code(program: &Program, outcome: Result<()>) -> ExitCode {
    if let Err(failure) = outcome {
        complain!("{}: {failure}", program.name);
        return interrupt::exit_code().map_or(ExitCode::FAILURE, ExitCode::from);
    }
    interrupt::exit_code().map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Prints what was asked for instead of a run; `false` when a run was.
fn answered(program: &Program, flags: &Flags) -> bool {
    match flags.asked {
        Some(InfoRequest::Help) => say!("{}", flags::help()),
        None if matches!(flags.text("benchmarks"), "help" | "list") => {
            say!("{}", flags::benchmarks());
        }
        Some(InfoRequest::Version) => say!("{}", identity::version(program.called)),
        None if flags.flag("build_info") => say!("{}", identity::build_info(program.called)),
        None => return false,
    }
    true
}

fn run(program: &Program, args: &[String]) -> Result<()> {
    let mut given = Flags::parse(args)?;
    if answered(program, &given) {
        return Ok(());
    }
    // Naming the engine, or where results go, is still the tour.
    let tour = program.has_tour
        && given
            .given()
            .all(|(flag, _)| matches!(flag.name, "engine" | "json"));
    if !program.has_tour && given.text("db").is_empty() {
        given.set("db", &default_directory().to_string_lossy())?;
    }
    let flags = if tour {
        with_defaults(TOUR, &given)?
    } else {
        given
    };
    runner::check(&flags)?;
    // A document on standard output stands there alone.
    let out = |text: &str| match flags.text("json") {
        "-" => complain!("{text}"),
        _ => say!("{text}"),
    };
    let quiet = |_: &str| {};
    let print: Print<'_> = if tour { &quiet } else { &out };
    let (start, before) = (Instant::now(), Busy::now());
    if tour {
        out(&format!(
            "A short tour of {} on a temporary database; see --help for more.",
            flags.text("engine")
        ));
    } else {
        complain!("{}", identity::environment());
    }
    let bar = BenchProgress::new(tour);
    let rows = with_directory(&flags, |path| {
        run_engine(&flags, flags.text("engine"), path, print, &bar)
    })?;
    bar.finish();
    if tour {
        let processors = process::processors();
        let others = Busy::now().others_since(before, start.elapsed(), processors);
        out(&tour_end(&rows, others));
    }
    if interrupt::stopped() {
        complain!("stopped: what is above is the part that was done");
    }
    report::write(flags.text("json"), || {
        report::document(flags.text("engine"), args, &rows)
    })
}

/// Where RocksDB's `db_bench` has its database unless `--db` says otherwise.
fn default_directory() -> PathBuf {
    let base = std::env::var_os("TEST_TMPDIR").map(PathBuf::from);
    let user = || std::fs::metadata("/proc/self").map_or(0, |process| process.uid());
    let own = || std::env::temp_dir().join(format!("rocksdbtest-{}", user()));
    base.unwrap_or_else(own).join("dbbench")
}

fn with_defaults(defaults: &[&str], given: &Flags) -> Result<Flags> {
    let mut flags = Flags::parse(defaults)?;
    for (flag, value) in given.given() {
        flags.set(flag.name, value)?;
    }
    Ok(flags)
}

/// The text below a tour.
fn tour_end(rows: &[Row], others: f64) -> String {
    let mut out = format!(
        "\n{}{}\n{COLUMNS}\n",
        report::summary(rows),
        report::stall_summary(rows)
    );
    if let Some(last) = rows.last() {
        out += &format!("The tree at the end: {}\n", last.text("shape_after"));
    }
    out += "Latencies are closed-loop; the directory has been removed. Machine:\n";
    out += &process::machine();
    if others > OTHERS {
        let percent = 100.0 * others;
        out += &format!(
            "\nOther programs took {percent:.0} % of the processors: their work is in these figures."
        );
    }
    out
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
    bar: &BenchProgress,
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
    if engine == "null" {
        let size = flags.count("value_size") as usize;
        let open = |_: &crate::store::OpenPlan| Ok(NullStore::new(size));
        return Runner::new(flags, path, open, print, &progress).run_all();
    }
    if let Some(peer) = crate::peers::peer(engine) {
        peer.check(own)?;
    }
    match engine {
        #[cfg(feature = "peer-lmdb")]
        "lmdb" => {
            let open = crate::peers::LmdbStore::open;
            Runner::new(flags, path, open, print, &progress).run_all()
        }
        #[cfg(feature = "peer-fjall")]
        "fjall" => {
            let open = crate::peers::FjallStore::open;
            Runner::new(flags, path, open, print, &progress).run_all()
        }
        _ => Err(Failure::new(format!(
            "unknown engine `{engine}`; engines are esker, lib:/path/to/librocksdb.so, lmdb, \
             fjall and null"
        ))),
    }
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

/// Progress: a bar on a terminal, one line per benchmark otherwise, nothing when not wanted.
pub struct BenchProgress {
    state: Option<Mutex<ProgressState>>,
}

struct ProgressState {
    bar: Option<ProgressBar>,
    name: String,
    since: Instant,
}

impl BenchProgress {
    /// A bar, or one that shows nothing.
    pub fn new(wanted: bool) -> BenchProgress {
        let state = wanted.then(|| {
            let bar = std::io::stderr().is_terminal().then(|| {
                let style = ProgressStyle::with_template("{msg:24} {bar:40} {pos:>10} operations");
                ProgressBar::new(1)
                    .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            });
            Mutex::new(ProgressState {
                bar,
                name: String::new(),
                since: Instant::now(),
            })
        });
        BenchProgress { state }
    }

    fn show(&self, name: &str, done: u64, wanted: u64) {
        let Some(state) = &self.state else { return };
        let Ok(mut state) = state.lock() else { return };
        if state.name != name {
            state.name = name.to_string();
            state.since = Instant::now();
            match &state.bar {
                Some(bar) => bar.reset(),
                None => complain!("  running {name} ..."),
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
