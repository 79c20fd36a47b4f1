//! Trials of processes that run into limits, and the judgement of what they leave.
//!
//! Each trial has a small filesystem of its own where mounting is permitted; the process limits
//! itself. A part of the processes is killed while the limit bites. Used by one thread per trial.

use crate::check::{Violation, ViolationKind, violation};
use crate::limited_process::{KEYS, generation, key};
use crate::mounts::{Image, Mount};
use crate::pressure::{EVERYWHERE, LIMITS, Limit};
use crate::quota;
use crate::recipe::{Choices, FAMILIES, RECIPES, Recipe};
use crate::report::{Report, home, jobs, lock};
use crate::rng::Rng;
use esker::Db;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes of a trial's filesystem.
const SPACE: u64 = 32 << 20;
/// Bytes of one with a quota: btrfs takes no less.
const QUOTA_SPACE: u64 = 256 << 20;

/// Options of the command.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Trials; each has a limit and a recipe
    #[arg(long, default_value_t = 24, value_name = "N")]
    trials: usize,
    /// Seconds of each trial; the limit comes and goes in it
    #[arg(long, default_value_t = 5, value_name = "S")]
    seconds: u64,
    /// One limit alone
    #[arg(long, value_name = "NAME")]
    limit: Option<Limit>,
    #[command(flatten)]
    choices: Choices,
    /// Trials at a time; 0 for one per processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
}

/// How long one database is loaded under limits that come and go.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SoakArgs {
    /// Seconds
    #[arg(long, default_value_t = 120, value_name = "S")]
    seconds: u64,
    #[command(flatten)]
    choices: Choices,
}

/// A trial.
struct Trial {
    limits: Vec<Limit>,
    recipe: Recipe,
    seconds: u64,
    seed: u64,
    /// The process is killed after so long.
    kill: Option<Duration>,
}

/// Recipes whose acknowledged writes survive the process, in plain batches.
fn recipes(one: Option<Recipe>) -> Vec<Recipe> {
    let fit = |r: &&Recipe| !r.two_phase && !r.manual_wal_flush;
    match one {
        Some(one) => vec![one],
        None => RECIPES.iter().filter(fit).copied().collect(),
    }
}

/// Runs trials.
pub(crate) fn run(args: &Args) -> Result<Report, String> {
    let mut rng = Rng::new(args.choices.seed);
    let recipes = recipes(args.choices.recipe);
    let trials: Vec<Trial> = (0..args.trials)
        .map(|at| Trial {
            limits: vec![args.limit.unwrap_or(LIMITS[at % LIMITS.len()])],
            recipe: recipes[at % recipes.len()],
            seconds: args.seconds,
            seed: rng.next_u64() >> 1,
            kill: rng
                .one_in(3)
                .then(|| Duration::from_millis(300 + rng.below(args.seconds * 900))),
        })
        .collect();
    all(&trials, jobs(args.jobs))
}

/// Loads one database for a long time.
pub(crate) fn soak(args: &SoakArgs) -> Result<Report, String> {
    let recipe = args.choices.recipe.unwrap_or(RECIPES[1]);
    let trial = Trial {
        limits: EVERYWHERE.to_vec(),
        recipe,
        seconds: args.seconds,
        seed: args.choices.seed,
        kill: None,
    };
    all(&[trial], 1)
}

fn all(trials: &[Trial], jobs: usize) -> Result<Report, String> {
    let (home, _guard) = home(None)?;
    let places = Places::at(&home);
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::default());
    let trouble = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(trial) = trials.get(at) else { return };
                    if !trial.limits.iter().all(|l| places.allow(*l)) {
                        continue;
                    }
                    let point = home.join(at.to_string());
                    if let Err(e) = trial.on(point, &places, &report) {
                        *lock(&trouble) = Some(e);
                        return;
                    }
                }
            });
        }
    });
    match trouble.into_inner().unwrap_or_default() {
        Some(e) => Err(e),
        None => Ok(report.into_inner().unwrap_or_default()),
    }
}

/// Which filesystems can be had.
struct Places {
    tmpfs: bool,
    quota: bool,
}

impl Places {
    /// Tries each; says what is skipped, and why.
    fn at(home: &Path) -> Places {
        let can = |what: &str, mount: Result<Mount, String>| match mount.and_then(Mount::unmount) {
            Ok(()) => true,
            Err(reason) => {
                println!("{what}: skipped, {reason}");
                false
            }
        };
        Places {
            tmpfs: can("a full disk", Mount::tmpfs(home.join("try"), SPACE)),
            quota: can("a quota", with_quota(home.join("try-quota"))),
        }
    }

    fn allow(&self, limit: Limit) -> bool {
        match limit {
            Limit::Space => self.tmpfs,
            Limit::Quota => self.quota,
            Limit::FileSize | Limit::Files => true,
        }
    }

    /// The filesystem for a trial of `limits`, if it has one of its own.
    fn mount(&self, limits: &[Limit], point: PathBuf) -> Result<Option<Mount>, String> {
        match limits {
            [Limit::Quota] => with_quota(point).map(Some),
            _ if self.tmpfs => Mount::tmpfs(point, SPACE).map(Some),
            _ => Ok(None),
        }
    }
}

/// A filesystem with a quota at `point`.
fn with_quota(point: PathBuf) -> Result<Mount, String> {
    let mount = Image::btrfs(point, QUOTA_SPACE)?.mount()?;
    quota::enable(&mount.point)?;
    Ok(mount)
}

impl Trial {
    fn on(&self, point: PathBuf, places: &Places, report: &Mutex<Report>) -> Result<(), String> {
        let mount = places.mount(&self.limits, point.clone())?;
        std::fs::create_dir_all(&point).map_err(|e| e.to_string())?;
        let mut counts = Report::default();
        counts.trials += 1;
        let done = self.run(&point, &mut counts);
        let what = format!("{:?} {} seed {}", self.limits, self.recipe.name, self.seed);
        let mut report = lock(report);
        report.add(&counts);
        if let Err(v) = done {
            report.violation(&v, &what);
        }
        mount.map_or(Ok(()), Mount::unmount)
    }

    fn run(&self, point: &Path, report: &mut Report) -> Result<(), Violation> {
        let mut acknowledged = vec![0; KEYS as usize];
        let said = self.run_out(point, &mut acknowledged)?;
        match (said.split_once(' '), self.kill) {
            (Some(("fine", figures)), _) => {
                println!("{:?} {}: {figures}", self.limits, self.recipe.name);
            }
            (Some(("broken", why)), _) => return violation(ViolationKind::Misbehaved, why),
            (_, Some(_)) => report.kills += 1,
            _ => {
                return violation(
                    ViolationKind::Misbehaved,
                    format!("the process died: {said}"),
                );
            }
        }
        // What is left of the ballast belongs to nobody now, nor does a quota.
        let _ = std::fs::remove_file(point.join("ballast"));
        if self.limits.contains(&Limit::Quota) {
            quota::lift(point).or_else(|e| violation(ViolationKind::Misbehaved, e))?;
        }
        report.operations += acknowledged.iter().filter(|g| **g > 0).count() as u64;
        self.judge(point, &acknowledged)
    }

    /// Runs the process to its end; its last word. Fills in what it acknowledged.
    fn run_out(&self, point: &Path, acknowledged: &mut [u64]) -> Result<String, Violation> {
        let limits: Vec<String> = self
            .limits
            .iter()
            .map(|l| match l {
                Limit::Space => "space".to_owned(),
                Limit::FileSize => "file-size".to_owned(),
                Limit::Files => "files".to_owned(),
                Limit::Quota => "quota".to_owned(),
            })
            .collect();
        let program = std::env::current_exe();
        let program = program.or_else(|e| violation(ViolationKind::Misbehaved, e.to_string()))?;
        // A shell ignores SIGXFSZ on behalf of the process: a file that grows too large is an error
        // and not its death.
        let started = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
            .arg(program)
            .args(["starved", "--recipe", self.recipe.name])
            .args(["--limit", &limits.join(",")])
            .args(["--seconds", &self.seconds.to_string()])
            .args(["--seed", &self.seed.to_string(), "--dir"])
            .arg(point)
            .stdout(Stdio::piped())
            .spawn();
        let mut child = started.or_else(|e| violation(ViolationKind::Misbehaved, e.to_string()))?;
        let Some(out) = child.stdout.take() else {
            return violation(ViolationKind::Misbehaved, "the process has no pipe");
        };
        let mut last = String::new();
        std::thread::scope(|scope| {
            let last = &mut last;
            let reader = scope.spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    let words: Vec<&str> = line.split(' ').collect();
                    match words[..] {
                        ["ack", n, generation] => {
                            let n = n.parse::<usize>().unwrap_or(usize::MAX);
                            if let (Some(known), Ok(g)) =
                                (acknowledged.get_mut(n), generation.parse())
                            {
                                *known = g;
                            }
                        }
                        _ if last.starts_with("broken") => {}
                        _ => line.clone_into(last),
                    }
                }
            });
            if let Some(after) = self.kill {
                std::thread::sleep(after);
                // It may have ended by itself.
                let _ = child.kill();
            }
            let _ = reader.join();
        });
        let status = child.wait();
        let status = status.or_else(|e| violation(ViolationKind::Misbehaved, e.to_string()))?;
        Ok(if last.is_empty() {
            status.to_string()
        } else {
            last
        })
    }

    /// Opens what the process left: every key is at least as new as acknowledged, the same in all
    /// families.
    fn judge(&self, point: &Path, acknowledged: &[u64]) -> Result<(), Violation> {
        let dir = point.join("db");
        if !dir.join("CURRENT").exists() && acknowledged.iter().all(|g| *g == 0) {
            return Ok(());
        }
        let opened = self.recipe.options();
        let opened =
            opened.and_then(|(options, families)| Db::open_families(dir, options, families));
        let db = opened.or_else(|e| violation(ViolationKind::Unopenable, e.to_string()))?;
        for (n, least) in (0..).zip(acknowledged) {
            let mut generations = Vec::new();
            for name in FAMILIES {
                let Some(family) = db.family(name) else {
                    return violation(ViolationKind::Lost, format!("family {name} is missing"));
                };
                let found = db.get_cf(&family, key(n));
                let found = found.or_else(|e| violation(ViolationKind::Wrong, e.to_string()))?;
                let number = found.as_ref().map_or(Some(0), |v| generation(n, v));
                let Some(number) = number else {
                    return violation(
                        ViolationKind::Wrong,
                        format!("key {n} of {name} has a foreign value"),
                    );
                };
                generations.push(number);
            }
            if generations.iter().any(|g| g < least) {
                let text = format!("key {n} is {generations:?}, {least} was acknowledged");
                return violation(ViolationKind::Lost, text);
            }
            if generations.iter().any(|g| *g != generations[0]) {
                return violation(ViolationKind::Wrong, format!("key {n} is {generations:?}"));
            }
        }
        let closed = db.close();
        closed.or_else(|e| violation(ViolationKind::Wrong, format!("close: {e}")))
    }
}
