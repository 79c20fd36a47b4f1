//! `kill -9` in the middle of a load, repeatedly.
//!
//! Each recipe has a directory of its own, and one directory sees all recipes in turn. Directories
//! are handed out to worker threads; a directory belongs to one worker at a time.

use crate::check::{Violation, ViolationKind, violation};
use crate::load::{Counts, Promise, THREADS};
use crate::process::{Loader, ProcessReport};
use crate::recipe::{Choices, RECIPES, Recipe};
use crate::report::Report;
use crate::rng::Rng;
use crate::rocksdb;
use crate::survivor::{OpenMethod, judge};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Options of the command.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Processes to kill
    #[arg(long, default_value_t = 400, value_name = "N")]
    kills: u64,
    #[command(flatten)]
    choices: Choices,
    /// Processes at a time; 0 for one per processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// Where the databases go; they stay there. Without it they are in the temporary directory and
    /// are removed
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// One state in this many is also read by RocksDB's ldb and sst_dump, where they are installed
    #[arg(long, default_value_t = 10, value_name = "N")]
    rocksdb_one_in: u64,
}

/// A directory with what must be in it.
struct TrialDatabase {
    dir: PathBuf,
    /// The recipe of every round; drawn anew for each without one.
    recipe: Option<Recipe>,
    heard: ProcessReport,
    rng: Rng,
    round: u64,
}

/// Kills as many processes as asked for.
pub(crate) fn run(args: &Args) -> Result<Report, String> {
    let (home, _guard) = crate::report::home(args.dir.as_deref())?;
    let with_rocksdb = rocksdb::is_installed();
    if !with_rocksdb {
        println!("reading by RocksDB: skipped, ldb and sst_dump are not installed");
    }
    let recipes: Vec<Option<Recipe>> = match args.choices.recipe {
        Some(one) => vec![Some(one), Some(one)],
        None => RECIPES.iter().copied().map(Some).chain([None]).collect(),
    };
    let mut seeds = Rng::new(args.choices.seed);
    let places: Vec<TrialDatabase> = recipes
        .into_iter()
        .enumerate()
        .map(|(at, recipe)| TrialDatabase {
            dir: home.join(format!("{at}-{}", recipe.map_or("mixed", |r| r.name))),
            recipe,
            heard: ProcessReport::default(),
            rng: Rng::new(seeds.next_u64()),
            round: 0,
        })
        .collect();
    let places = Mutex::new(std::collections::VecDeque::from(places));
    let left = AtomicU64::new(args.kills);
    let report = Mutex::new(Report::default());
    let rocksdb_one_in = if with_rocksdb { args.rocksdb_one_in } else { 0 };
    std::thread::scope(|scope| {
        for _ in 0..crate::report::jobs(args.jobs) {
            scope.spawn(|| {
                let one_less = |n: u64| n.checked_sub(1);
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
                    .is_ok()
                {
                    let place = crate::report::lock(&places).pop_front();
                    let Some(mut place) = place else { return };
                    let mut counts = Report::default();
                    let done = place.round(&mut counts, rocksdb_one_in);
                    let mut report = crate::report::lock(&report);
                    report.add(&counts);
                    match done {
                        Ok(()) => crate::report::lock(&places).push_back(place),
                        // Nothing more can be said about this directory, which is left as it is.
                        Err(v) => report.violation(&v, &place.what()),
                    }
                }
            });
        }
    });
    let report = report.into_inner().unwrap_or_default();
    if report.violations() > 0 && args.dir.is_none() {
        println!("with --dir DIR the databases stay");
    }
    Ok(report)
}

impl TrialDatabase {
    fn what(&self) -> String {
        format!("{} round {}", self.dir.display(), self.round)
    }

    /// Loads, kills and judges.
    fn round(&mut self, report: &mut Report, rocksdb_one_in: u64) -> Result<(), Violation> {
        self.round += 1;
        let rng = &mut self.rng;
        let recipe = self.recipe.unwrap_or_else(|| {
            // Prepared transactions would be left to a recipe that knows nothing of them.
            let plain: Vec<_> = RECIPES.iter().filter(|r| !r.two_phase).collect();
            *plain[rng.below(plain.len() as u64) as usize]
        });
        let early = load_and_kill(&self.dir, recipe, rng, &mut self.heard)?;
        report.kills += 1;
        report.early += u64::from(early);
        let before = self.heard.sure;
        let complete = before != [0; THREADS];
        if rocksdb_one_in > 0 && complete && rng.one_in(rocksdb_one_in) {
            report.entries += rocksdb::compare(&self.dir, recipe)?;
            report.read_by_rocksdb += 1;
        }
        let how = match rng.below(3) {
            0 => OpenMethod::ReadOnly,
            n => OpenMethod::Writing { commit: n == 1 },
        };
        let found = judge(&self.dir, recipe, &self.heard, how)?;
        report.operations += gained(&mut self.heard, found, how);
        Ok(())
    }
}

/// Takes the operations found as those that must be found the next time, and returns how many are
/// new.
pub(crate) fn gained(heard: &mut ProcessReport, found: Counts, how: OpenMethod) -> u64 {
    let known: u64 = heard.counted.iter().sum();
    heard.counted = found;
    heard.sure = found;
    if how != OpenMethod::ReadOnly {
        heard.held = [0; THREADS];
    }
    found.iter().sum::<u64>().saturating_sub(known)
}

/// Starts a process and kills it; whether that was before it had recovered.
fn load_and_kill(
    dir: &Path,
    recipe: Recipe,
    rng: &mut Rng,
    heard: &mut ProcessReport,
) -> Result<bool, Violation> {
    let loader = Loader::start(dir, recipe, Promise::Process, rng.next_u64())?;
    let early = rng.one_in(6);
    if early {
        std::thread::sleep(Duration::from_millis(rng.below(30)));
    } else {
        loader.wait_ready()?;
        std::thread::sleep(Duration::from_micros(1000 + rng.below(150_000)));
    }
    let (said, alive) = loader.kill();
    let failed = said.failed.clone();
    heard.follow(said);
    if alive {
        return Ok(early);
    }
    let text = format!("{}: the process ended by itself: {failed:?}", recipe.name);
    violation(ViolationKind::Misbehaved, text)
}
