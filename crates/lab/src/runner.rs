//! Runs a list of benchmarks on one engine: opens and empties the database, starts threads, prints
//! lines, and collects rows.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::flags::Flags;
use crate::generate::{Rng, ValueSizes};
use crate::limits::{self, Done, Limit, Machine};
use crate::measure::{Measured, Meter, SamplerPlan, Slot, sample};
use crate::options::{open_plan, session_plan};
use crate::process::{Device, SpaceWatch, Usage, directory_bytes};
use crate::report::{Row, Surroundings};
use crate::shape::{
    Stall, Work, runs, shape_line, stall_table, stalls, stalls_since, stored_bytes,
};
use crate::slowest::Slowest;
use crate::store::{Session, SessionPlan, Store};
use crate::workload::{Background, Foreground, Settings, Shared, Task, run, run_background};
use crate::{Failure, Result};

/// The benchmarks and what they do.
pub const BENCHMARKS: &[(&str, &str)] = &[
    ("fillseq", "write num keys in order into an empty database"),
    ("fillrandom", "write num random keys into an empty database"),
    (
        "filluniquerandom",
        "write every key once in random order into an empty database",
    ),
    ("fillbatch", "fillseq with batches of 1000"),
    (
        "fillsync",
        "write num/1000 random keys, syncing each, into an empty database",
    ),
    (
        "fill100K",
        "write num/1000 random values of 100,000 bytes into an empty database",
    ),
    ("overwrite", "write random keys into the existing database"),
    ("updaterandom", "read a random key, then write it"),
    ("readrandom", "read random keys"),
    ("readmissing", "read random keys that do not exist"),
    ("readseq", "iterate forward over the database"),
    ("readreverse", "iterate backward over the database"),
    ("multireadrandom", "read batch_size random keys at once"),
    (
        "seekrandom",
        "seek random keys, then read seek_nexts entries",
    ),
    ("newiterator", "create and destroy iterators"),
    ("readwhilewriting", "readrandom with a background writer"),
    ("readwhilemerging", "readrandom with a background merger"),
    ("readwhilescanning", "readrandom with a background scan"),
    (
        "seekrandomwhilewriting",
        "seekrandom with a background writer",
    ),
    (
        "seekrandomwhilemerging",
        "seekrandom with a background merger",
    ),
    (
        "fwdrangewhilewriting",
        "forward scans of seek_nexts (10) entries with a background writer",
    ),
    (
        "revrangewhilewriting",
        "backward scans of seek_nexts (10) entries with a background writer",
    ),
    (
        "readrandomwriterandom",
        "readwritepercent reads, the rest writes",
    ),
    ("mergerandom", "merge into random keys"),
    ("deleteseq", "delete keys in order"),
    ("deleterandom", "delete random keys"),
    ("compact", "compact everything, rewriting the last level"),
    ("compactall", "compact everything"),
    ("compact0", "compact level 0 into the next level with data"),
    (
        "compact1",
        "compact the first level below 0 into the next level with data",
    ),
    ("flush", "write memtables to tables"),
    (
        "waitforcompaction",
        "wait until nothing is left to flush or compact",
    ),
    (
        "verifychecksum",
        "read all tables and verify their checksums",
    ),
    ("stats", "print rocksdb.stats"),
    ("levelstats", "print rocksdb.levelstats"),
    ("memstats", "print the memory properties"),
    ("resetstats", "set the engine's statistics to zero"),
    ("sstables", "print the list of table files"),
];

/// Benchmarks of `db_bench` that are known and not offered, with the reason.
const NOT_OFFERED: &[(&str, &str)] = &[
    (
        "randomtransaction",
        "transactions are not driven by this program",
    ),
    (
        "timeseries",
        "its expiring compaction filter is not offered",
    ),
    ("mixgraph", "its key-range model is not offered"),
    ("backup", "backups are not driven by this program"),
    ("restore", "backups are not driven by this program"),
];

/// One measured benchmark.
struct Job {
    name: String,
    task: Task,
    background: Option<Background>,
    /// Starts from an empty database.
    fresh: bool,
    settings: Settings,
    session: SessionPlan,
}

fn job(name: &str, flags: &Flags) -> Result<Option<Job>> {
    let mut s = Settings::from_flags(flags)?;
    let mut session = session_plan(flags);
    let (mut background, mut fresh) = (None, false);
    let task = match name {
        "fillseq" | "fillbatch" | "filluniquerandom" | "fillrandom" | "fillsync" | "fill100K" => {
            fresh = true;
            match name {
                "fillseq" | "fillbatch" => Task::FillSeq,
                "filluniquerandom" => Task::FillUnique,
                _ => Task::FillRandom,
            }
        }
        "overwrite" => Task::FillRandom,
        "updaterandom" => Task::Update,
        "readrandom" | "readmissing" | "readwhilewriting" | "readwhilemerging"
        | "readwhilescanning" => Task::Read,
        "readseq" => Task::ReadSeq,
        "readreverse" => Task::ReadReverse,
        "multireadrandom" => Task::MultiRead,
        "seekrandom"
        | "seekrandomwhilewriting"
        | "seekrandomwhilemerging"
        | "fwdrangewhilewriting"
        | "revrangewhilewriting" => Task::Seek,
        "newiterator" => Task::NewIterator,
        "readrandomwriterandom" => Task::ReadWrite,
        "mergerandom" => Task::Merge,
        "deleteseq" => Task::DeleteSeq,
        "deleterandom" => Task::DeleteRandom,
        _ => return Ok(None),
    };
    if name.ends_with("whilewriting") {
        background = Some(Background::Write);
    } else if name.ends_with("whilemerging") {
        background = Some(Background::Merge);
    } else if name.ends_with("whilescanning") {
        background = Some(Background::Scan);
    }
    match name {
        "fillbatch" => s.batch = 1000,
        "fillsync" => {
            session.sync = true;
            s.num = (s.num / 1000).max(1);
            s.writes = s.num;
        }
        "fill100K" => {
            s.num = (s.num / 1000).max(1);
            s.writes = s.num;
            s.values = ValueSizes::Fixed(100_000);
        }
        "readmissing" => s.key_size += 1,
        "fwdrangewhilewriting" | "revrangewhilewriting" => {
            s.reverse = name.starts_with("rev");
            if s.seek_nexts == 0 {
                s.seek_nexts = 10;
            }
        }
        _ => {}
    }
    Ok(Some(Job {
        name: name.to_string(),
        task,
        background,
        fresh,
        settings: s,
        session,
    }))
}

/// Where lines go; quiet for child runs that only return rows.
pub type Print<'a> = &'a (dyn Fn(&str) + Sync);

/// A list of benchmarks on one engine and one directory.
pub struct Runner<'a, S: Store, O: Fn(&crate::store::OpenPlan) -> Result<S>> {
    flags: &'a Flags,
    open: O,
    path: PathBuf,
    store: Option<S>,
    print: Print<'a>,
    progress: &'a (dyn Fn(&str, u64, u64) + Sync),
    /// Bytes of distinct pairs known to be in the database, 0 when not known.
    live_bytes: u64,
    threads_started: u64,
    space: SpaceWatch,
    /// What the machine can do, where that was asked for.
    machine: Option<Machine>,
    rows: Vec<Row>,
}

impl<'a, S: Store, O: Fn(&crate::store::OpenPlan) -> Result<S>> Runner<'a, S, O> {
    /// A runner that opens databases at `path` with `open`. `progress` is told the benchmark, the
    /// operations done and the operations wanted.
    pub fn new(
        flags: &'a Flags,
        path: &Path,
        open: O,
        print: Print<'a>,
        progress: &'a (dyn Fn(&str, u64, u64) + Sync),
    ) -> Self {
        let (path, space) = (path.to_path_buf(), SpaceWatch::begin(path));
        Runner {
            flags,
            open,
            path,
            store: None,
            print,
            progress,
            live_bytes: 0,
            threads_started: 0,
            space,
            machine: None,
            rows: Vec::new(),
        }
    }

    fn reopen(&mut self, empty: bool) -> Result<()> {
        self.store = None;
        if empty && self.path.exists() {
            remove_database(&self.path)?;
        }
        std::fs::create_dir_all(&self.path)?;
        let mut plan = open_plan(self.flags, &self.path)?;
        plan.must_exist = self.flags.flag("use_existing_db");
        self.store = Some((self.open)(&plan)?);
        Ok(())
    }

    /// Runs all benchmarks of `--benchmarks` and returns their rows.
    ///
    /// # Errors
    /// An unknown benchmark (before anything runs), or the first failure.
    pub fn run_all(mut self) -> Result<Vec<Row>> {
        let list = self.flags.text("benchmarks").to_string();
        let names: Vec<&str> = list
            .split(',')
            .map(str::trim)
            .filter(|n| !n.is_empty())
            .collect();
        check_names(&names)?;
        let existing = self.flags.flag("use_existing_db");
        if self.flags.flag("limits") {
            std::fs::create_dir_all(&self.path)?;
            self.machine = Some(Machine::measure(&self.path, self.flags)?);
            let _files_of_its_own = self.space.most(0);
        }
        self.reopen(!existing)?;
        let store = self.store.as_ref().expect("just opened");
        (self.print)(&header(self.flags, &store.describe())?);
        if let Some(machine) = &self.machine {
            (self.print)(&machine.line());
        }
        for name in names {
            let usage = Usage::now();
            if let Some(measured) =
                crate::codec::run(name, self.flags).map_err(|e| e.context(name))?
            {
                (self.print)(&measured.line(name));
                let around = Surroundings {
                    usage: Usage::now().since(usage),
                    ..Surroundings::default()
                };
                self.rows.push(Row::new(name, &measured, &around, false));
                continue;
            }
            match job(name, self.flags)? {
                Some(job) => self.measured(&job).map_err(|e| e.context(name))?,
                None => self.step(name).map_err(|e| e.context(name))?,
            }
        }
        if let Some(text) = self.store.as_ref().and_then(S::statistics) {
            (self.print)(&format!("STATISTICS:\n{text}"));
        }
        Ok(self.rows)
    }

    fn measured(&mut self, job: &Job) -> Result<()> {
        if job.fresh {
            if self.flags.flag("use_existing_db") {
                (self.print)(&format!(
                    "{:<12} : skipped (--use_existing_db is true)",
                    job.name
                ));
                return Ok(());
            }
            self.reopen(true)?;
        }
        let store = self.store.as_ref().expect("opened by run_all");
        let before = Before::of(store, &self.path);
        self.threads_started += 100;
        let (measured, rates, background) = self.threads(store, job)?;
        let stages = store.property("rocksdb.esker.compaction-stages");
        let mut around = before.around(store, &self.path, &self.space);
        (around.rates, around.background) = (rates, background);
        self.note_live_bytes(job, &measured);
        around.live_bytes = self.live_bytes;
        (self.print)(&measured.line(&job.name));
        if let Some(text) = measured.percentiles() {
            (self.print)(&format!("Microseconds per {}:\n{text}", unit(job.task)));
        }
        for slow in &measured.slowest {
            (self.print)(&format!("  slow: {slow}"));
        }
        if let Some(text) = &around.background {
            (self.print)(&format!("  {text}"));
        }
        (self.print)(&format!(
            "  before {}\n  after  {}",
            around.shape_before, around.shape_after
        ));
        let writes = job.task.writes();
        if let Some(device) = around.device {
            (self.print)(&format!("  {}", device.line()));
        }
        if let Some(table) = stages.filter(|_| writes) {
            (self.print)(table.trim());
        }
        if let Some(table) = stall_table(&around.stalls, measured.seconds()) {
            (self.print)(&table);
        }
        let mut row = Row::new(&job.name, &measured, &around, job.task.writes());
        if let Some(limit) = self.limit(job, &measured, &around) {
            (self.print)(&format!("  {}", limit.line(measured.ops_per_second())));
            row.note_limit(&limit);
        }
        self.rows.push(row);
        Ok(())
    }

    /// What the machine allows the row at most; `None` when nobody asked, or when there is no model.
    fn limit(&self, job: &Job, measured: &Measured, around: &Surroundings) -> Option<Limit> {
        let (machine, store) = (self.machine.as_ref()?, self.store.as_ref()?);
        if job.background.is_some() {
            return None;
        }
        let (work, s) = (around.work, &job.settings);
        let exact = |ticker: Option<u64>| ticker.map(|bytes| bytes as f64);
        let written = exact(work.flush_bytes).zip(exact(work.compact_write_bytes));
        let written = written.map(|(flushes, compactions)| flushes + compactions);
        let done = Done {
            operations: measured.done,
            threads: s.threads,
            entry_bytes: match measured.bytes {
                0 => (s.key_size as u64 + self.flags.count("value_size")) as f64,
                bytes => bytes as f64 / measured.done.max(1) as f64,
            },
            stored_bytes: stored_bytes(store),
            tables_read: exact(work.compact_read_bytes).or(work.tables_read)?,
            tables_written: written.or(work.tables_written)?,
            device_read: around.usage.device_read_bytes as f64,
            is_logged: !self.flags.flag("disable_wal"),
            is_synced: self.flags.flag("sync"),
            is_direct: self.flags.flag("use_direct_io_for_flush_and_compaction"),
            runs: runs(store),
            nexts: s.seek_nexts,
        };
        limits::limit(machine, job.task, &done)
    }

    /// Keeps track of the bytes of distinct pairs where the workload fixes them.
    fn note_live_bytes(&mut self, job: &Job, measured: &Measured) {
        let s = &job.settings;
        self.live_bytes = match job.task {
            Task::FillSeq => measured.bytes / s.threads as u64,
            Task::FillUnique => measured.bytes / s.threads as u64,
            Task::DeleteRandom | Task::DeleteSeq | Task::Merge => 0,
            Task::FillRandom if job.fresh => 0,
            _ => self.live_bytes,
        };
    }

    fn threads(&self, store: &S, job: &Job) -> Result<(Measured, Vec<u64>, Option<String>)> {
        let s = &job.settings;
        let total = s.threads + usize::from(job.background.is_some());
        let slots: Vec<Slot> = (0..total).map(|_| Slot::default()).collect();
        let shared = Shared::default();
        shared.readers.store(s.threads, Ordering::Relaxed);
        let (barrier, stop) = (Barrier::new(total), AtomicBool::new(false));
        let slowest = self.flags.count("slowest") as usize;
        let with_histogram = self.flags.flag("histogram") || slowest > 0;
        let wanted = wanted(job);
        let every = self.flags.count("report_interval_seconds");
        let plan = SamplerPlan {
            report: (every > 0).then(|| (self.flags.text("report_file"), every)),
            stats_seconds: self.flags.count("stats_interval_seconds"),
            progress: &|done| (self.progress)(&job.name, done, wanted),
            interval: &|| {
                if self.flags.int("stats_per_interval") > 0 {
                    eprintln!("{}", store.property("rocksdb.stats").unwrap_or_default());
                }
            },
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..total)
                .map(|tid| {
                    let (slot, shared, barrier) = (&slots[tid], &shared, &barrier);
                    let seed = s.seed.wrapping_add(self.threads_started + tid as u64);
                    scope.spawn(move || {
                        let _foreground = (tid < s.threads).then(|| Foreground(shared));
                        let session = store.session(&job.session);
                        barrier.wait();
                        let mut meter = Meter::start(slot, with_histogram);
                        let mut rng = Rng::new(seed);
                        let outcome = session.and_then(|mut session| match job.background {
                            Some(kind) if tid == s.threads => {
                                run_background(kind, &mut session, s, &mut rng, &mut meter, shared)
                            }
                            _ => {
                                if slowest > 0 {
                                    let account = session.account()?;
                                    meter.keep_slowest(Slowest::of(slowest, account));
                                }
                                run(job.task, &mut session, s, &mut rng, &mut meter)
                            }
                        });
                        let measured = meter.stop();
                        outcome.map(|()| measured)
                    })
                })
                .collect();
            let sampler = scope.spawn(|| sample(&slots, &stop, &plan));
            let results: Vec<_> = workers
                .into_iter()
                .map(|w| {
                    w.join()
                        .unwrap_or_else(|_| Err(Failure::new("a thread panicked")))
                })
                .collect();
            stop.store(true, Ordering::Release);
            let rates = sampler
                .join()
                .unwrap_or_else(|_| Err(Failure::new("the sampler panicked")))?;
            let (mut merged, mut background) = (None::<Measured>, None);
            for result in results {
                let measured = result?;
                if measured.background {
                    background = Some(background_line(&measured, s));
                    continue;
                }
                match &mut merged {
                    Some(sum) => sum.merge(measured),
                    None => merged = Some(measured),
                }
            }
            let merged = merged.ok_or_else(|| Failure::new("no foreground thread"))?;
            Ok((merged, rates, background))
        })
    }

    /// A step that does no operations of its own, with a row where jobs work for it.
    fn step(&mut self, name: &str) -> Result<()> {
        let store = self.store.as_ref().expect("opened by run_all");
        let before = Before::of(store, &self.path);
        let start = std::time::Instant::now();
        let Some(said) = self.work(store, name)? else {
            return self.admin(store, name);
        };
        let seconds = start.elapsed().as_secs_f64();
        self.print_timed(store, name, seconds, &said);
        let around = before.around(store, &self.path, &self.space);
        self.rows.push(Row::of_step(name, seconds, &around));
        Ok(())
    }

    /// Lets jobs work, if `name` is a step that does; what there is to say about it.
    fn work(&self, store: &S, name: &str) -> Result<Option<String>> {
        let mut said = String::new();
        match name {
            "compact" | "compactall" => {
                let subcompactions = self.flags.count("subcompactions") as u32;
                store.compact_all(name == "compact", subcompactions)?;
            }
            "compact0" | "compact1" => {
                said = format!(" ({})", store.compact_level(u32::from(name == "compact1"))?);
            }
            "flush" => store.flush()?,
            "waitforcompaction" => store.wait_for_compaction()?,
            _ => return Ok(None),
        }
        Ok(Some(said))
    }

    fn print_timed(&self, store: &S, name: &str, seconds: f64, said: &str) {
        (self.print)(&format!(
            "{name:<12} : finished in {seconds:.3} seconds{said}\n  after  {}",
            shape_line(store)
        ));
    }

    fn admin(&self, store: &S, name: &str) -> Result<()> {
        let print = self.print;
        let property = |name: &str| {
            store
                .property(name)
                .unwrap_or_else(|| format!("{name}: not available"))
        };
        match name {
            "verifychecksum" => {
                let start = std::time::Instant::now();
                store.verify_checksums()?;
                self.print_timed(store, name, start.elapsed().as_secs_f64(), "");
            }
            "stats" => print(&property("rocksdb.stats")),
            "levelstats" => print(&property("rocksdb.levelstats")),
            "sstables" => print(&property("rocksdb.sstables")),
            "memstats" => {
                for name in [
                    "rocksdb.cur-size-all-mem-tables",
                    "rocksdb.size-all-mem-tables",
                    "rocksdb.estimate-table-readers-mem",
                    "rocksdb.block-cache-usage",
                    "rocksdb.block-cache-pinned-usage",
                ] {
                    print(&format!("{name}: {}", property(name)));
                }
            }
            "resetstats" => {
                if !store.reset_statistics() {
                    print("resetstats   : skipped (this engine offers no such call)");
                }
            }
            _ => return Err(Failure::new("unknown benchmark")),
        }
        Ok(())
    }
}

/// What counters said before a step.
struct Before {
    shape: String,
    usage: Usage,
    work: Work,
    stalls: Vec<Stall>,
    device: Option<Device>,
}

impl Before {
    fn of<S: Store>(store: &S, path: &Path) -> Before {
        Before {
            shape: shape_line(store),
            usage: Usage::now(),
            work: Work::now(store),
            stalls: stalls(store),
            device: Device::below(path),
        }
    }

    /// What the step did that is over now.
    fn around<S: Store>(self, store: &S, path: &Path, space: &SpaceWatch) -> Surroundings {
        let bytes = directory_bytes(path);
        Surroundings {
            usage: Usage::now().since(self.usage),
            device: (self.device).and_then(|before| Some(Device::below(path)?.since(before))),
            work: Work::now(store).since(self.work),
            stalls: stalls_since(stalls(store), &self.stalls),
            keeps_ledger: store.property("rocksdb.esker.stalls").is_some(),
            directory_bytes: bytes,
            peak_bytes: space.most(bytes),
            shape_before: self.shape,
            shape_after: shape_line(store),
            ..Surroundings::default()
        }
    }
}

fn wanted(job: &Job) -> u64 {
    let s = &job.settings;
    let per_thread = match job.task {
        Task::FillSeq | Task::FillRandom | Task::FillUnique => s.writes,
        Task::Update | Task::ReadWrite | Task::Merge => s.read_writes,
        Task::DeleteSeq | Task::DeleteRandom => s.deletes,
        _ => s.reads,
    };
    per_thread * s.threads as u64
}

fn background_line(measured: &Measured, s: &Settings) -> String {
    let goal = match s.background_rate {
        0 => String::new(),
        rate => format!(" of {:.1} asked", rate as f64 / 1_048_576.0),
    };
    format!(
        "background: {} operations, {:.0} ops/sec, {:.1} MB/s{goal}",
        measured.done,
        measured.done as f64 / measured.seconds(),
        measured.mb_per_second().unwrap_or(0.0)
    )
}

fn unit(task: Task) -> &'static str {
    match task {
        Task::FillSeq | Task::FillRandom | Task::FillUnique => "write",
        Task::Update => "update",
        Task::Read | Task::MultiRead | Task::ReadSeq | Task::ReadReverse => "read",
        Task::Seek | Task::NewIterator => "seek",
        Task::ReadWrite => "op",
        Task::Merge => "merge",
        Task::DeleteSeq | Task::DeleteRandom => "delete",
    }
}

/// Refuses names that are not benchmarks, before anything has run.
fn check_names(names: &[&str]) -> Result<()> {
    for name in names {
        if let Some((_, why)) = NOT_OFFERED.iter().find(|(n, _)| n == name) {
            return Err(Failure::new(format!(
                "benchmark `{name}` is not offered: {why}"
            )));
        }
        let mut known = BENCHMARKS.iter().chain(crate::codec::BENCHMARKS);
        if !known.any(|(n, _)| n == name) {
            return Err(Failure::new(format!(
                "unknown benchmark `{name}` (--help lists all)"
            )));
        }
    }
    Ok(())
}

/// Removes a database's files, and refuses a directory that holds something else.
fn remove_database(path: &Path) -> Result<()> {
    let empty = std::fs::read_dir(path)?.next().is_none();
    if !empty && !path.join("CURRENT").exists() {
        let text = format!(
            "{} is neither empty nor a database; not removing it",
            path.display()
        );
        return Err(Failure::new(text));
    }
    std::fs::remove_dir_all(path)?;
    Ok(())
}

fn header(flags: &Flags, engine: &str) -> Result<String> {
    let s = Settings::from_flags(flags)?;
    let (size, plan) = (
        flags.count("value_size") as f64,
        open_plan(flags, Path::new(""))?,
    );
    let ratio = s.compression_ratio;
    let total = |value: f64| (s.key_size as f64 + value) * s.num as f64 / 1_048_576.0;
    Ok(format!(
        "Engine:     {engine}\nMachine:    {}\nKeys:       {} bytes each\n\
         Values:     {size} bytes each ({} bytes after compression)\nEntries:    {}\n\
         RawSize:    {:.1} MB (estimated)\nFileSize:   {:.1} MB (estimated)\n\
         Write rate: {} bytes/second\nRead rate: {} ops/second\nOptions:    {}\nTable:      {}\n\
         ------------------------------------------------",
        crate::process::machine(),
        s.key_size,
        (size * ratio + 0.5) as u64,
        s.num,
        total(size),
        total(size * ratio),
        s.write_rate,
        s.read_rate,
        crate::options::render(&plan.options),
        crate::options::render(&plan.table),
    ))
}
