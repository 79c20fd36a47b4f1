//! The process that runs into limits: it writes, is refused, reads on, and must be let in again.
//!
//! One thread writes batches that put the same number under one key of each family; another reads
//! all the time. A number must never be older than the one that was acknowledged when the read
//! began, nor newer than the newest that was tried. Every acknowledged write is told to the parent,
//! which opens the database when the process is gone and compares.

use crate::pressure::{Limit, Pressure, Usage, cap_memory};
use crate::recipe::{FAMILIES, Recipe};
use crate::rng::Rng;
use esker::{Db, FamilyHandle, FamilyId, HealthState, WriteBatch, WriteOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Keys of a trial.
pub(crate) const KEYS: u64 = 1500;
/// Writes resume so soon after space came back, and no write is blocked for longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Memory that the process may map beyond what it had before it opened the database.
const MEMORY: u64 = 700 << 20;
/// The budget of a recipe's memtables and its block cache of 32 MiB, a tenth more, and 64 MiB, in
/// KiB.
const RSS_KIB: u64 = (40 * 11 / 10 + 64) << 10;

/// Options that the parent passes.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[arg(long)]
    dir: std::path::PathBuf,
    #[arg(long, value_parser = crate::recipe::named)]
    recipe: Recipe,
    #[arg(long, value_delimiter = ',')]
    limit: Vec<Limit>,
    #[arg(long)]
    seconds: u64,
    #[arg(long)]
    seed: u64,
}

/// The key of number `n`.
pub(crate) fn key(n: u64) -> Vec<u8> {
    format!("key{n:06}").into_bytes()
}

/// The value of generation `generation` of key `n`.
pub(crate) fn value(n: u64, generation: u64) -> Vec<u8> {
    let mut value = generation.to_le_bytes().to_vec();
    let len = 60 + (n * 131 + generation * 17) % 500;
    value.extend((0..len).map(|i| (n + generation + i) as u8));
    value
}

/// The generation of a value of key `n`, when it is one.
pub(crate) fn generation(n: u64, found: &[u8]) -> Option<u64> {
    let generation = u64::from_le_bytes(*found.first_chunk::<8>()?);
    (found == value(n, generation)).then_some(generation)
}

struct LimitedDatabase {
    db: Db,
    families: Vec<FamilyHandle>,
    acknowledged: Vec<AtomicU64>,
    /// The newest generation that was tried.
    tried: AtomicU64,
    done: AtomicBool,
    /// True if reads may be refused: no file can be opened.
    unreadable: AtomicBool,
    sync_one_in: u64,
}

type Outcome<T> = Result<T, String>;

fn told<T, E: std::fmt::Display>(what: &str, done: Result<T, E>) -> Outcome<T> {
    done.map_err(|e| format!("{what}: {e}"))
}

/// Calls until it succeeds: a job that met the limit may report it after the limit was lifted.
fn patiently(what: &str, call: impl Fn() -> esker::Result<()>) -> Outcome<()> {
    let begin = Instant::now();
    loop {
        match call() {
            Err(_) if begin.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return told(what, done),
        }
    }
}

/// Runs until the time is over; prints what went wrong, or figures.
pub(crate) fn run(args: &Args) -> ! {
    match trial(args) {
        Ok(figures) => say(&format!("fine {figures}")),
        Err(e) => say(&format!("broken {e}")),
    }
    // The database is not closed: what is on disk is what a process leaves that dies.
    std::process::exit(0)
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let said = out.write_all(format!("{line}\n").as_bytes());
    if said.and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

fn trial(args: &Args) -> Outcome<String> {
    told("RLIMIT_AS", cap_memory(MEMORY))?;
    let dir = args.dir.join("db");
    let (options, families) = told("options", args.recipe.options())?;
    let db = told("open", Db::open_families(&dir, options, families))?;
    let starved = LimitedDatabase {
        families: FAMILIES
            .iter()
            .filter_map(|n| db.family(n))
            .map(Into::into)
            .collect(),
        db,
        acknowledged: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
        tried: AtomicU64::new(0),
        done: AtomicBool::new(false),
        unreadable: AtomicBool::new(false),
        sync_one_in: args.recipe.sync_one_in,
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| starved.read(Rng::new(args.seed + 1)));
        let written = starved.rounds(args, &dir);
        starved.done.store(true, Ordering::SeqCst);
        let reads = reader
            .join()
            .map_err(|_| "the reader panicked".to_owned())??;
        Ok(format!("{}, reads: {reads}", written?))
    })
}

/// Counts of a trial.
#[derive(Default)]
struct TrialCounts {
    rounds: u64,
    writes: u64,
    refused: u64,
    /// Rounds without a single refusal.
    unfelt: u64,
    slowest: Duration,
    resumed: Duration,
}

impl LimitedDatabase {
    fn rounds(&self, args: &Args, dir: &Path) -> Outcome<String> {
        let mut rng = Rng::new(args.seed);
        let pressure = Pressure::new(&args.dir);
        let mut seen = TrialCounts::default();
        let end = Instant::now() + Duration::from_secs(args.seconds);
        let mut usage = Vec::new();
        while Instant::now() < end || seen.rounds < 2 {
            let limit = args.limit[rng.below(args.limit.len() as u64) as usize];
            for _ in 0..rng.below(1500) {
                told("a write without a limit", self.write(&mut rng, &mut seen))?;
            }
            self.press(&pressure, limit, &mut rng, &mut seen)?;
            patiently("a flush afterwards", || self.db.flush())?;
            patiently("compactions afterwards", || self.db.wait_for_compaction())?;
            seen.rounds += 1;
            usage.push(told("usage", Usage::now(dir))?);
        }
        let flat = flat(&usage)?;
        Ok(format!(
            "rounds: {}, unfelt: {}, writes: {}, refused: {}, slowest write: {} ms, slowest resume: {} ms, {flat}",
            seen.rounds,
            seen.unfelt,
            seen.writes,
            seen.refused,
            seen.slowest.as_millis(),
            seen.resumed.as_millis()
        ))
    }

    /// Puts a limit on until writes are refused for a while, lifts it, and waits until they are let
    /// in.
    fn press(
        &self,
        pressure: &Pressure,
        limit: Limit,
        rng: &mut Rng,
        seen: &mut TrialCounts,
    ) -> Outcome<()> {
        self.unreadable
            .store(limit == Limit::Files, Ordering::SeqCst);
        told("a limit", pressure.apply(limit, rng))?;
        let refused = seen.refused;
        let begin = Instant::now();
        while seen.refused == refused && begin.elapsed() < Duration::from_secs(2) {
            // What it says is the point of the exercise.
            let _ = self.write(rng, seen);
        }
        for _ in 0..rng.below(40) {
            let _ = self.write(rng, seen);
            if rng.one_in(8) {
                let _ = self.db.flush();
            }
            std::thread::sleep(Duration::from_millis(rng.below(20)));
        }
        seen.unfelt += u64::from(seen.refused == refused);
        told("lifting a limit", pressure.lift(limit))?;
        let begin = Instant::now();
        while let Err(e) = self.write(rng, seen) {
            if begin.elapsed() > PATIENCE {
                let health = self.db.health();
                return Err(format!(
                    "no write 10 s after {limit:?} was lifted, {health:?}: {e}"
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        seen.resumed = seen.resumed.max(begin.elapsed());
        // A background job may still have met the limit.
        while self.db.health() != HealthState::Running {
            if begin.elapsed() > PATIENCE {
                let error = self.db.background_error();
                return Err(format!(
                    "not running 10 s after {limit:?} was lifted: {error:?}"
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.unreadable.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Writes a new generation of a random key.
    fn write(&self, rng: &mut Rng, seen: &mut TrialCounts) -> esker::Result<()> {
        let n = rng.below(KEYS);
        let generation = self.tried.fetch_add(1, Ordering::SeqCst) + 1;
        let mut batch = WriteBatch::new();
        for family in &self.families {
            batch.put_cf(FamilyId(family.id()), &key(n), &value(n, generation))?;
        }
        let mut options = WriteOptions::default();
        options.sync = self.sync_one_in > 0 && rng.one_in(self.sync_one_in);
        let begin = Instant::now();
        let done = self.db.write_opt(&mut batch, &options);
        seen.slowest = seen.slowest.max(begin.elapsed());
        if begin.elapsed() > PATIENCE {
            let state = self.db.property("rocksdb.is-write-stopped");
            say(&format!(
                "broken a write was blocked for {:?}, stopped: {state:?}",
                begin.elapsed()
            ));
        }
        match &done {
            Ok(()) => {
                self.acknowledged[n as usize].store(generation, Ordering::SeqCst);
                seen.writes += 1;
                say(&format!("ack {n} {generation}"));
            }
            Err(_) => seen.refused += 1,
        }
        done
    }

    /// Reads at random until the writer is done.
    fn read(&self, mut rng: Rng) -> Outcome<u64> {
        let mut reads = 0;
        while !self.done.load(Ordering::SeqCst) {
            let n = rng.below(KEYS);
            let family = &self.families[rng.below(self.families.len() as u64) as usize];
            let least = self.acknowledged[n as usize].load(Ordering::SeqCst);
            let found = if rng.one_in(4) {
                let mut iterator = self.db.iter_cf(family);
                iterator.seek(key(n));
                let entry = iterator.entry().filter(|(k, _)| *k == key(n));
                let found = entry.map(|(_, v)| v.to_vec());
                iterator.status().map(|()| found)
            } else {
                self.db.get_cf(family, key(n))
            };
            reads += 1;
            let found = match found {
                Err(_) if self.unreadable.load(Ordering::SeqCst) => continue,
                Err(e) => return Err(format!("a read under pressure: {e}")),
                Ok(found) => found,
            };
            let most = self.tried.load(Ordering::SeqCst);
            let number = found.as_ref().map_or(Some(0), |v| generation(n, v));
            if !number.is_some_and(|g| (least..=most).contains(&g)) {
                return Err(format!(
                    "key {n} is {number:?}, not within {least}..={most}"
                ));
            }
        }
        Ok(reads)
    }
}

/// Checks that the later rounds use no more than the earlier ones, and all of them little enough.
/// Memory may grow by the 64 MiB that are promised beside the budget: in a short run the first
/// compressed log can come late.
fn flat(usage: &[Usage]) -> Outcome<String> {
    let most = |part: &[Usage]| part.iter().copied().fold(Usage::default(), Usage::max);
    let (before, after) = usage.split_at(usage.len() / 2);
    let (before, after) = (most(before), most(after));
    // Blob files stay open as long as they are there.
    let new_files = after.files.saturating_sub(before.files);
    let grown = [
        ("resident KiB", before.rss_kib, after.rss_kib, 64 << 10),
        ("open files", before.fds, after.fds, 40 + new_files),
        ("threads", before.threads, after.threads, 2),
        ("files", before.files, after.files, 60),
    ];
    for (name, before, after, more) in grown {
        if after > before + before / 4 + more {
            return Err(format!("{name} grew from {before} to {after}"));
        }
    }
    let all = before.max(after);
    if all.rss_kib > RSS_KIB {
        return Err(format!(
            "{} KiB resident, {RSS_KIB} are allowed",
            all.rss_kib
        ));
    }
    Ok(format!(
        "resident: {} MiB, open files: {}, threads: {}, files: {}",
        all.rss_kib >> 10,
        all.fds,
        all.threads,
        all.files
    ))
}
