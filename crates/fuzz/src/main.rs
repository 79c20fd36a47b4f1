//! `esker-fuzz`: hostile bytes for every decoder, anywhere, without coverage.
//!
//! Each target runs in a process of its own, which writes down every input before it runs it: an
//! input that ends the process or never ends is known afterwards, and is shrunk with processes for
//! as long as it does the same.

use clap::Parser;
use esker_fuzz::drive::{self, Plan, TIME_MAX};
use esker_fuzz::memory::Counting;
use esker_fuzz::targets::{self, Target};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: Counting = Counting;

/// Exit code of a process whose input did not end.
const NO_END: i32 = 3;
/// Time on the clock after which an input is given up: far more than a loaded machine needs.
const WALL_MAX: Duration = Duration::from_secs(120);

/// Feeds damaged and hostile bytes to every decoder, and whole directories of them to a database.
///
/// Each target first runs its corpus, then inputs made of it: bits, numbers, varints and lengths
/// changed, pieces moved or taken from other inputs, checksums and counts repaired so that the
/// damage is believed. An input must give an answer or an error: no panic, at most 5 s of processor
/// time and 256 MiB (32 MiB for small decoders), and what was decoded must encode to something that
/// decodes to the same.
///
/// An input that fails is shrunk and written to a file, and the command that runs it again is
/// printed.
#[derive(Parser, Debug)]
#[command(
    version,
    after_help = "Examples:
  cargo xtask fuzz                            every target for 10 s
  cargo xtask fuzz --iterations 0             the corpus alone
  cargo xtask fuzz manifest --seconds 3600    one target for an hour
  cargo xtask fuzz block --replay FILE        run what was found again
  cargo xtask fuzz block --coverage           inputs chosen by coverage, until it is stopped

After mending what was found, keep the input: crates/fuzz/corpus/TARGET/found-WHAT."
)]
struct Args {
    /// Targets to run; all when none is named
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 10, value_name = "S")]
    seconds: u64,
    /// Inputs to make for each target, instead of a time
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Seed of the inputs that are made
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Run this input alone
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// List the targets
    #[arg(long)]
    list: bool,
    /// Write the seeds of our own writers into the corpus; what was found before stays
    #[arg(long)]
    write_corpus: bool,
    /// The corpus
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Where inputs that fail are written
    #[arg(long, default_value = "target/fuzz", value_name = "DIR")]
    out: PathBuf,
    /// Run the one target in this process
    #[arg(long, hide = true)]
    inside: bool,
}

impl Args {
    fn corpus(&self) -> PathBuf {
        self.corpus.clone().unwrap_or_else(drive::corpus_dir)
    }

    fn chosen(&self) -> Result<Vec<Target>, String> {
        if self.targets.is_empty() {
            return Ok(targets::all());
        }
        let find = |name: &String| {
            let names = || {
                targets::all()
                    .iter()
                    .map(|t| t.name)
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            targets::find(name)
                .ok_or_else(|| format!("there is no target {name}; there are {}", names()))
        };
        self.targets.iter().map(find).collect()
    }

    fn plan(&self) -> Plan {
        match self.iterations {
            Some(n) => Plan {
                seed: self.seed,
                iterations: n,
                time: Duration::MAX,
            },
            None => Plan {
                seed: self.seed,
                iterations: u64::MAX,
                time: Duration::from_secs(self.seconds),
            },
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match start(&args) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("esker-fuzz: {message}");
            ExitCode::from(2)
        }
    }
}

fn start(args: &Args) -> Result<ExitCode, String> {
    let chosen = args.chosen()?;
    let said = |e: io::Error| e.to_string();
    if args.list {
        chosen
            .iter()
            .for_each(|t| println!("{:<14} {}", t.name, t.about));
        return Ok(ExitCode::SUCCESS);
    }
    if args.write_corpus {
        return write_corpus(&args.corpus(), &chosen).map_err(said);
    }
    fs::create_dir_all(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;
    match (&chosen[..], &args.replay) {
        ([target], Some(file)) => replay(args, target, file).map_err(said),
        (_, Some(_)) => Err("--replay needs the one target that the file is for".to_owned()),
        ([target], None) if args.inside => inside(args, target).map_err(said),
        _ => supervise(args, &chosen).map_err(said),
    }
}

/// Writes each target's seeds; what is there under other names stays.
fn write_corpus(dir: &Path, chosen: &[Target]) -> io::Result<ExitCode> {
    let (mut files, mut bytes) = (0, 0);
    for target in chosen {
        let dir = dir.join(target.name);
        fs::create_dir_all(&dir)?;
        let kept = |seed: &Vec<u8>| seed.len() <= drive::KEPT_MAX;
        for (name, seed) in (target.seeds)().into_iter().filter(|(_, s)| kept(s)) {
            fs::write(dir.join(name), &seed)?;
            (files, bytes) = (files + 1, bytes + seed.len());
        }
    }
    println!("{files} files, {bytes} bytes");
    Ok(ExitCode::SUCCESS)
}

// ---- the process that runs a target ----

/// Ends the process when one input takes much too long: nothing else would.
struct Watch {
    /// Processor time at which the present input began, in milliseconds.
    cpu_ms: AtomicU64,
    /// The time on the clock at which it began, in milliseconds.
    wall_ms: AtomicU64,
    start: Instant,
}

impl Watch {
    fn start() -> Arc<Watch> {
        let watch = Arc::new(Watch {
            cpu_ms: AtomicU64::new(ms(drive::cpu_time())),
            wall_ms: AtomicU64::new(0),
            start: Instant::now(),
        });
        let seen = Arc::clone(&watch);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(100));
                let cpu = ms(drive::cpu_time()).saturating_sub(seen.cpu_ms.load(Ordering::Relaxed));
                let wall =
                    ms(seen.start.elapsed()).saturating_sub(seen.wall_ms.load(Ordering::Relaxed));
                if cpu > 2 * ms(TIME_MAX) || wall > ms(WALL_MAX) {
                    std::process::exit(NO_END);
                }
            }
        });
        watch
    }

    fn begin(&self) {
        self.cpu_ms.store(ms(drive::cpu_time()), Ordering::Relaxed);
        self.wall_ms
            .store(ms(self.start.elapsed()), Ordering::Relaxed);
    }
}

fn ms(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

fn current_path(args: &Args, target: &Target) -> PathBuf {
    args.out.join(format!("{}.current", target.name))
}

/// Runs one target; the answer is one line on standard output.
fn inside(args: &Args, target: &Target) -> io::Result<ExitCode> {
    drive::catch_panics();
    let watch = Watch::start();
    let corpus = drive::corpus(&args.corpus(), target)
        .map_err(|e| io::Error::new(e.kind(), format!("corpus of {}: {e}", target.name)))?;
    let current = File::create(current_path(args, target))?;
    let (mut count, mut shown) = (0u64, Instant::now());
    let outcome = drive::run(target, &corpus, args.plan(), |input| {
        let mut record = (input.len() as u64).to_le_bytes().to_vec();
        record.extend_from_slice(input);
        // Best effort: it is only read when this process dies.
        let _ = current.write_all_at(&record, 0);
        count += 1;
        if shown.elapsed() > Duration::from_secs(10) {
            shown = Instant::now();
            eprintln!("{}: {count} inputs", target.name);
        }
        watch.begin();
    });
    let most = outcome.most;
    println!("{} {} {}", outcome.inputs, ms(most.time), most.memory >> 20);
    let Some((input, why)) = outcome.failure else {
        return Ok(ExitCode::SUCCESS);
    };
    let place = |why: &str| why.lines().next().unwrap_or_default().to_owned();
    let first = place(&why);
    let small = drive::shrink(&input, Duration::from_secs(20), |less| {
        watch.begin();
        drive::run_one(target, less).is_err_and(|again| same_kind(&first, &place(&again)))
    });
    report(args, target, &small, &why)?;
    Ok(ExitCode::FAILURE)
}

/// Returns whether two messages are of one failure: the same place in the source, or the same words
/// but for numbers.
fn same_kind(a: &str, b: &str) -> bool {
    let words = |s: &str| {
        s.chars()
            .filter(|c| !c.is_ascii_digit())
            .collect::<String>()
    };
    match (a.starts_with("panicked at"), b.starts_with("panicked at")) {
        (true, true) => a == b,
        _ => words(a) == words(b),
    }
}

/// Writes an input that fails, and says how to run it again.
fn report(args: &Args, target: &Target, input: &[u8], why: &str) -> io::Result<()> {
    let sum = input.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = args.out.join(format!("{}-{:08x}", target.name, sum as u32));
    fs::write(&path, input)?;
    eprintln!(
        "FAILED {}: {why}\n  {} bytes in {}\n  again: cargo xtask fuzz {} --replay {}",
        target.name,
        input.len(),
        path.display(),
        target.name,
        path.display()
    );
    io::stderr().flush()
}

fn replay(args: &Args, target: &Target, file: &Path) -> io::Result<ExitCode> {
    let input = fs::read(file)?;
    if !args.inside {
        // With the message and a backtrace where they belong.
        eprintln!("{}: {} bytes", target.name, input.len());
    } else {
        drive::catch_panics();
    }
    let watch = Watch::start();
    watch.begin();
    match drive::run_one(target, &input) {
        Ok(cost) => {
            println!("ok: {} ms, {} MiB", ms(cost.time), cost.memory >> 20);
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            println!("failed: {why}");
            Ok(ExitCode::FAILURE)
        }
    }
}

// ---- the process around it ----

fn supervise(args: &Args, chosen: &[Target]) -> io::Result<ExitCode> {
    let (start, mut inputs, mut failures) = (Instant::now(), 0u64, 0);
    println!(
        "{:<14} {:>10} {:>8} {:>9} {:>9}",
        "target", "inputs", "seconds", "slowest", "most"
    );
    for target in chosen {
        let began = Instant::now();
        let mut command = Command::new(std::env::current_exe()?);
        command.args([target.name, "--inside", "--seed", &args.seed.to_string()]);
        command.args(["--seconds", &args.seconds.to_string()]);
        command.arg("--corpus").arg(args.corpus());
        command.arg("--out").arg(&args.out);
        if let Some(n) = args.iterations {
            command.args(["--iterations", &n.to_string()]);
        }
        let done = command.stdout(Stdio::piped()).spawn()?.wait_with_output()?;
        let text = String::from_utf8_lossy(&done.stdout);
        let numbers: Vec<u64> = text
            .split_whitespace()
            .map_while(|w| w.parse().ok())
            .collect();
        if let [n, slowest, most] = numbers[..] {
            inputs += n;
            let seconds = began.elapsed().as_secs_f64();
            println!(
                "{:<14} {n:>10} {seconds:>8.1} {slowest:>6} ms {most:>5} MiB",
                target.name
            );
        } else {
            died(args, target, done.status)?;
        }
        failures += u32::from(!done.status.success());
        if done.status.success() {
            let _ = fs::remove_file(current_path(args, target));
        }
    }
    println!(
        "fuzz targets: {}, inputs: {inputs}, failures: {failures} (seed {}, {:.0} s)",
        chosen.len(),
        args.seed,
        start.elapsed().as_secs_f64()
    );
    Ok(ExitCode::from(u8::from(failures > 0)))
}

fn why_it_died(status: ExitStatus) -> String {
    match status.code() {
        Some(NO_END) => format!("no answer within {} s", 2 * TIME_MAX.as_secs()),
        _ => format!("the process died ({status}): memory beyond all limits, stack, or worse"),
    }
}

/// A target's process did not live to tell: shrinks what it ran last.
fn died(args: &Args, target: &Target, status: ExitStatus) -> io::Result<()> {
    let record = fs::read(current_path(args, target)).unwrap_or_default();
    let Some((len, rest)) = record.split_first_chunk::<8>() else {
        eprintln!(
            "FAILED {}: {} before the first input",
            target.name,
            why_it_died(status)
        );
        return Ok(());
    };
    let input = &rest[..rest.len().min(u64::from_le_bytes(*len) as usize)];
    let exe = std::env::current_exe()?;
    let file = args.out.join(format!("{}.shrinking", target.name));
    let fails = |less: &[u8]| {
        let once = || -> io::Result<bool> {
            fs::write(&file, less)?;
            let mut command = Command::new(&exe);
            command
                .args([target.name, "--inside", "--replay"])
                .arg(&file);
            command.arg("--out").arg(&args.out);
            let again = command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            Ok(again == status)
        };
        once().unwrap_or(false)
    };
    let small = drive::shrink(input, Duration::from_secs(60), fails);
    let _ = fs::remove_file(&file);
    report(args, target, &small, &why_it_died(status))
}
