//! `esker-sim`: crashes, failing calls and races by the thousand, on a simulated disk.
//!
//! Seeds are handed out to threads one by one; a seed is a workload with its crash states, a disk
//! with its trials, a workload on a disk that is well, or a schedule of each scenario. The exit
//! code is 1 when a promise was not kept.

use clap::Parser;
use esker_sim::corruption::{self, Damage, Extent, Subject};
use esker_sim::fault;
use esker_sim::run::{self, Counts, Failure, USUAL};
use esker_sim::seed_sweep::{CaseCounts, SweepPlan, sweep};
use esker_sim::sim_env::SimEnv;
use esker_sim::trial::{self, Base};
use esker_sim::{forecasts, live_check, schedules, seeded_bugs};
#[cfg(feature = "seeded-bugs")]
use esker_status::seeded;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// A database is opened and dropped thousands of times a second.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Runs Esker on a simulated disk, cuts the power at random moments and fails random calls, and
/// checks what is left.
///
/// Each seed is a small database with random options under a random workload. Every operation on
/// its disk is logged. For many positions of the log, states that a power cut may leave are
/// computed, opened, and compared with what was acknowledged: nothing synced may be missing, the
/// state must be one after a whole number of batches, the same in all column families, and the
/// database must work. A part of the recoveries is crashed again.
///
/// With --faults, single calls or all from one on fail (EIO, ENOSPC, EDQUOT, EINTR, EMFILE, short
/// writes, failed fsyncs); errors must be returned, reads go on, writes resume when the disk is
/// well, and a crash afterwards finds what was acknowledged.
///
/// With --looks, the open database is compared with the model all the time, with --copies its
/// checkpoints and restored backups are. With --schedules, threads race in small scenarios, in
/// another order for each seed.
#[derive(Parser, Debug)]
#[command(
    version,
    after_help = "Examples:
  esker-sim --states 20000                  a minute on one core
  esker-sim --seed 500 --minutes 120        a long run of everything
  esker-sim --states 0 --faults 2000        failing calls alone
  esker-sim --rot 50000                     damage to databases at rest
  esker-sim --rot every --subjects 8        every bit of every byte of every file, and every length
  esker-sim --rot 50000 --golden DIR        the same to databases that RocksDB wrote
  esker-sim --replay 'rot seed-23 kAbsoluteConsistency /db/000055.log:flip@79.6'
  esker-sim --replay 'crash 12 mixed@126#554337922'
  esker-sim --replay 'fault 7 append:wal:3:EIO:once 99'
  esker-sim --replay 'schedule 3 groups'"
)]
struct Args {
    /// The first seed; each run takes the next one
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Crash states to open
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    states: u64,
    /// Calls to fail
    #[arg(long, default_value_t = 0, value_name = "N")]
    faults: u64,
    /// Checks of open databases on working disks
    #[arg(long, default_value_t = 0, value_name = "N")]
    looks: u64,
    /// Checkpoints of open databases to compare, with a backup restored for each three
    #[arg(long, default_value_t = 0, value_name = "N")]
    copies: u64,
    /// Schedules of racing threads
    #[arg(long, default_value_t = 0, value_name = "N")]
    schedules: u64,
    /// Go on for this many minutes with all of these, instead of the numbers above
    #[arg(long, value_name = "M")]
    minutes: Option<u64>,
    /// Seeds at a time; 0 for five for two processors (with --rot: threads; 0 for one per
    /// processor)
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// Stop at the first broken promise
    #[arg(long)]
    first: bool,
    /// Let the machine schedule the engine's threads: the seed does not decide what they do
    #[arg(long)]
    real_threads: bool,
    /// Damage databases at rest instead: this many times, or `every` bit and length
    #[arg(long, value_name = "N|every")]
    rot: Option<String>,
    /// Databases to damage, from --seed on
    #[arg(long, default_value_t = 40, value_name = "N")]
    subjects: u64,
    /// Damage the databases in this directory instead: a directory for each version, with one for
    /// each database
    #[arg(long, value_name = "DIR")]
    golden: Option<PathBuf>,
    /// Run a printed failure again
    #[arg(long, value_name = "TEXT")]
    replay: Option<String>,
    /// Alternate all kinds of tests for this many seconds of processor time and stop at the first
    /// that finds something: for builds with seeded bugs (`cargo xtask seeded-bugs`)
    #[arg(long, value_name = "SECONDS")]
    hunt: Option<u64>,
}

impl Args {
    fn world(&self) -> SimEnv {
        if self.real_threads {
            SimEnv::default()
        } else {
            SimEnv::controlled()
        }
    }

    fn plan(&self) -> SweepPlan {
        SweepPlan {
            seed: self.seed,
            wanted: CaseCounts {
                states: self.states,
                failed_calls: self.faults,
                looks: self.looks,
                copies: self.copies,
                schedules: self.schedules,
            },
            limit: self.minutes.map(|m| Duration::from_secs(m * 60)),
            jobs: self.jobs,
            first: self.first,
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(seconds) = args.hunt {
        return search_bug(&args, seconds);
    }
    if let Some(extent) = &args.rot {
        return rotten(&args, extent).unwrap_or_else(|e| {
            eprintln!("{e}");
            ExitCode::from(2)
        });
    }
    let Some(text) = &args.replay else {
        let found = sweep(&args.world(), &args.plan());
        println!("{found}");
        return ExitCode::from(u8::from(found.violations() > 0));
    };
    if let Some(text) = text.strip_prefix("rot ") {
        return damaged(text).unwrap_or_else(|e| {
            eprintln!("{e}");
            ExitCode::from(2)
        });
    }
    match replay(&args.world(), text) {
        Ok(failures) => {
            failures.iter().for_each(|f| println!("{f}"));
            println!("violations: {}", failures.len());
            ExitCode::from(u8::from(!failures.is_empty()))
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

/// One line for the hunt's end, which `cargo xtask seeded-bugs` reads: what found something, after
/// how many cases.
fn search_bug(args: &Args, seconds: u64) -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    // A schedule that is stuck cannot be left, only told.
    esker_sync::on_stuck(|picture| {
        let what = picture.replace('\n', " |");
        println!("found\tschedules\t{}\t{what}", schedules::begun());
        std::process::exit(1);
    });
    #[cfg(feature = "seeded-bugs")]
    let first = seeded::BUGS
        .iter()
        .find(|entry| Some(entry.bug) == seeded::on())
        .map(|entry| (entry.hunter, entry.area));
    #[cfg(not(feature = "seeded-bugs"))]
    let first = None;
    let limit = Duration::from_secs(seconds);
    let done = seeded_bugs::search(&args.world(), args.seed, limit, first);
    match done.found {
        Some((kind, cases, what)) => {
            println!("found\t{kind}\t{cases}\t{}", what.replace('\n', " |"));
            ExitCode::FAILURE
        }
        None => {
            println!("nothing\t\t{}\t", done.cases);
            ExitCode::SUCCESS
        }
    }
}

/// Damages databases at rest.
fn rotten(args: &Args, extent: &str) -> esker_status::Result<ExitCode> {
    let golden = args.golden.as_deref().map(corruption::golden).transpose()?;
    let subjects = golden.as_ref().map_or(args.subjects, |g| g.len() as u64);
    let extent = match extent {
        "every" => Extent::Every,
        number => match number.parse::<u64>() {
            Ok(n) => Extent::Some(n.div_ceil(subjects.max(1))),
            Err(_) => {
                return Err(esker_status::Error::invalid_argument(format!(
                    "--rot takes a number or `every`, not {number}"
                )));
            }
        },
    };
    let told =
        |subject: &str, damage: &Damage, rule: &str| println!("rot {subject} {damage}: {rule}");
    let counts = match golden {
        Some(golden) => corruption::run_all(args.jobs, extent, corruption::each(golden), told)?,
        None => {
            let own = corruption::simulated(args.seed, args.subjects);
            corruption::run_all(args.jobs, extent, own, told)?
        }
    };
    println!("{counts}");
    Ok(ExitCode::from(u8::from(counts.broken > 0)))
}

/// One damage again, as a run printed it: `seed-N MODE PATH:CHANGE`.
fn damaged(text: &str) -> esker_status::Result<ExitCode> {
    let wrong = || {
        esker_status::Error::invalid_argument(format!(
            "--replay takes `rot seed-N MODE PATH:CHANGE`, not rot {text}"
        ))
    };
    let (name, damage) = text.split_once(' ').ok_or_else(wrong)?;
    let seed = name.strip_prefix("seed-").and_then(|n| n.parse().ok());
    let subject = Subject::simulated(seed.ok_or_else(wrong)?)?;
    let damage: Damage = damage.parse()?;
    if !subject.files().contains_key(&damage.path) {
        return Err(wrong());
    }
    let judged = subject.suffer(&SimEnv::default(), &damage);
    match &judged {
        Ok(outcome) => println!("{text}: {outcome:?}"),
        Err(rule) => println!("{text}: {rule}"),
    }
    Ok(ExitCode::from(u8::from(judged.is_err())))
}

fn replay(world: &SimEnv, text: &str) -> esker_status::Result<Vec<Failure>> {
    let wrong = || {
        esker_status::Error::invalid_argument(format!(
            "--replay takes `crash SEED CUT[+CUT]`, `fault SEED PLAN TRIAL`, `live SEED`, `copies SEED`, `schedule SEED SCENARIO`, `forecast SEED`, `repair SEED` or `rot seed-N MODE PATH:CHANGE`, not {text}"
        ))
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| {
        let word = words.get(at).and_then(|w| w.parse::<u64>().ok());
        word.ok_or_else(wrong)
    };
    let (mut counts, seed) = (Counts::default(), number(1)?);
    Ok(match words.first() {
        // Without a cut it is the workload that failed.
        Some(&"crash") if words.len() == 2 => run::run(world, seed, USUAL).1,
        Some(&"crash") => {
            let cut = words[2].split('+').next().unwrap_or_default().parse()?;
            run::replay(world, seed, cut, &mut counts)?
        }
        Some(&"repair") => corruption::repairs::turn(seed, corruption::repairs::USUAL, &mut counts),
        Some(&"forecast") => forecasts::turn(seed, &mut counts),
        Some(&"copies") => live_check::copies(world, seed, &mut counts)
            .into_iter()
            .collect(),
        Some(&"live") => live_check::run(world, seed, &mut counts)
            .into_iter()
            .collect(),
        Some(&"schedule") if words.len() == 3 => {
            schedules::replay(words[2], seed, &mut counts).ok_or_else(wrong)?
        }
        Some(&"fault") => {
            let plan: fault::FaultSpec = words.get(2).ok_or_else(wrong)?.parse()?;
            let trial = number(3)?;
            let base = world.play(seed, |world| Base::new(world, seed))?;
            let failed = world.play(trial, |w| trial::trial(w, &base, &plan, trial, &mut counts));
            failed.into_iter().collect()
        }
        _ => return Err(wrong()),
    })
}
