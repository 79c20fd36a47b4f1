//! `esker-sim`: crashes and failing calls by the thousand, on a simulated disk.
//!
//! Seeds are handed out to threads one by one; a seed is a workload with its crash states, or a disk with its trials.
//! The exit code is 1 when a promise was not kept.

use clap::Parser;
use esker_sim::fault::Plan;
use esker_sim::run::{self, Counts, Failure, USUAL};
use esker_sim::trial::{self, Base};
use esker_sim::world::World;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Runs Esker on a simulated disk, cuts the power at random moments and fails random calls, and checks what is left.
///
/// Each seed is a small database with random options under a random workload. Every operation on its disk is logged. For
/// many positions of the log, states that a power cut may leave are computed, opened, and compared with what was
/// acknowledged: nothing synced may be missing, the state must be one after a whole number of batches, the same in all
/// column families, and the database must work. A part of the recoveries is crashed again.
///
/// With --faults, single calls or all from one on fail (EIO, ENOSPC, EDQUOT, EINTR, EMFILE, short writes, failed fsyncs);
/// errors must be returned, reads go on, writes resume when the disk is well, and a crash afterwards finds what was
/// acknowledged.
#[derive(Parser, Debug)]
#[command(
    version,
    after_help = "Examples:
  esker-sim --states 20000                  a few minutes on one core
  esker-sim --seed 500 --minutes 120        a long run
  esker-sim --states 0 --faults 2000        failing calls alone
  esker-sim --replay 'crash 12 mixed@126#554337922'
  esker-sim --replay 'fault 7 append:wal:3:EIO:once 99'"
)]
struct Args {
    /// The first seed; each run takes the next one
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Crash states to open
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    states: u64,
    /// Trials with failing calls
    #[arg(long, default_value_t = 0, value_name = "N")]
    faults: u64,
    /// Go on for so many minutes, whatever the numbers above say; faults are a fifth of the time
    #[arg(long, value_name = "M")]
    minutes: Option<u64>,
    /// Threads; 0 for one per processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// Stop at the first promise that was not kept
    #[arg(long)]
    first: bool,
    /// Let the machine schedule the engine's threads: the seed does not decide what they do
    #[arg(long)]
    real_threads: bool,
    /// Run what a failure printed again
    #[arg(long, value_name = "TEXT")]
    replay: Option<String>,
}

impl Args {
    fn world(&self) -> World {
        match self.real_threads {
            true => World::default(),
            false => World::controlled(),
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let (counts, failures, took) = match &args.replay {
        None => many(&args),
        Some(text) => match replay(&args.world(), text) {
            Ok(done) => done,
            Err(e) => {
                eprintln!("{e}");
                return ExitCode::from(2);
            }
        },
    };
    let seconds = took.as_secs_f64();
    println!(
        "{} states ({} in recovery, {} refused rightly), {} trials with {} failed calls, {} workloads, {} violations in {seconds:.0} s ({:.0} states/s)",
        counts.states,
        counts.nested,
        counts.refused,
        counts.faults,
        counts.failed_calls,
        counts.runs,
        failures,
        counts.states as f64 / seconds.max(0.001),
    );
    ExitCode::from(u8::from(failures > 0))
}

/// What all threads add to.
#[derive(Default)]
struct Total {
    counts: Counts,
    failures: u64,
    shown: Option<Instant>,
}

fn many(args: &Args) -> (Counts, u64, Duration) {
    let start = Instant::now();
    let total = Mutex::new(Total::default());
    let next = AtomicU64::new(args.seed);
    let threads = match args.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| one_after_another(args, &next, &total, start));
        }
    });
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    (total.counts, total.failures, start.elapsed())
}

fn one_after_another(args: &Args, next: &AtomicU64, total: &Mutex<Total>, start: Instant) {
    let world = args.world();
    let limit = args.minutes.map(|m| Duration::from_secs(m * 60));
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let so_far = lock(total).counts;
        let states = so_far.states < args.states;
        let faults = so_far.faults < args.faults;
        let is_trial = match limit {
            Some(limit) if start.elapsed() >= limit => return,
            Some(_) => seed % 5 == 4,
            None if !states && !faults => return,
            None => faults && (!states || seed % 2 == 1),
        };
        let (counts, failures) = if is_trial {
            let mut counts = Counts::default();
            let failures = trial::trials(&world, seed, 40, &mut counts);
            (counts, failures)
        } else {
            run::run(&world, seed, USUAL)
        };
        let stop = args.first && !failures.is_empty();
        add(total, &counts, &failures, start);
        if stop {
            next.store(u64::MAX / 2, Ordering::Relaxed);
            return;
        }
        if next.load(Ordering::Relaxed) >= u64::MAX / 2 {
            return;
        }
    }
}

fn lock(total: &Mutex<Total>) -> std::sync::MutexGuard<'_, Total> {
    total.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(total: &Mutex<Total>, counts: &Counts, failures: &[Failure], start: Instant) {
    let mut total = lock(total);
    total.counts.add(counts);
    for failure in failures.iter().take(3) {
        println!("{failure}");
    }
    if failures.len() > 3 {
        println!("  and {} more of this seed", failures.len() - 3);
    }
    total.failures += failures.len() as u64;
    let due = total
        .shown
        .is_none_or(|t| t.elapsed() > Duration::from_secs(5));
    if due {
        total.shown = Some(Instant::now());
        let (seconds, c) = (start.elapsed().as_secs(), total.counts);
        eprintln!(
            "{seconds} s: {} states, {} trials, {} violations",
            c.states, c.faults, total.failures
        );
    }
}

fn replay(world: &World, text: &str) -> esker_status::Result<(Counts, u64, Duration)> {
    let wrong = || {
        esker_status::Error::invalid_argument(format!(
            "--replay takes `crash SEED CUT[+CUT]` or `fault SEED PLAN TRIAL`, not {text}"
        ))
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| {
        let word = words.get(at).and_then(|w| w.parse::<u64>().ok());
        word.ok_or_else(wrong)
    };
    let (start, mut counts) = (Instant::now(), Counts::default());
    let seed = number(1)?;
    let failures: Vec<Failure> = match words.first() {
        // Without a cut it is the workload that failed.
        Some(&"crash") if words.len() == 2 => {
            let (c, failures) = run::run(world, seed, USUAL);
            counts = c;
            failures
        }
        Some(&"crash") => {
            let cut = words[2].split('+').next().unwrap_or_default().parse()?;
            run::replay(world, seed, cut, &mut counts)?
        }
        Some(&"fault") => {
            let plan: Plan = words.get(2).ok_or_else(wrong)?.parse()?;
            let trial = number(3)?;
            let base = world.play(seed, |world| Base::new(world, seed))?;
            let failed = world.play(trial, |w| trial::trial(w, &base, &plan, trial, &mut counts));
            failed.into_iter().collect()
        }
        _ => return Err(wrong()),
    };
    failures.iter().for_each(|f| println!("{f}"));
    Ok((counts, failures.len() as u64, start.elapsed()))
}
