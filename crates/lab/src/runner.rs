//! Runs a list of benchmarks on one engine: opens and empties the database, starts threads, prints
//! lines, and collects rows.
//!
//! `catalogue` says which benchmarks there are and what each is made of, `steps` has those that do
//! no operations of their own.

mod catalogue;
mod repeats;
mod seconds;
mod steps;

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::flags::Flags;
use crate::generate::Rng;
use crate::interrupt;
use crate::limits::{self, Limit, Machine, RowFigures};
use crate::measure::{Measurement, Meter, SamplerPlan, Slot, sample};
use crate::memory::memory;
use crate::options::open_plan;
use crate::pauses::{self, Pause};
use crate::process::{Device, SpaceWatch, ThreadUsage, Usage, directory_bytes};
use crate::read_work::{self, ReadWork, read_work};
use crate::report::{BackgroundFigures, Row, Second, StepContext};
use crate::say::complain;
use crate::shape::{
    Stall, Work, runs, shape_line, stall_table, stalls, stalls_since, stored_bytes,
};
use crate::slowest::SlowOperations;
use crate::store::{Iter, Session, SessionPlan, Store};
use crate::workload::{BenchmarkState, Foreground, Settings, Task, run, run_background};
use crate::{Failure, Result};
use catalogue::{Existing, Job, check_names, job, unit, wanted};
use repeats::Repeats;
use seconds::Seconds;

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
    /// Limits of the machine, where they were asked for.
    machine: Option<Machine>,
    /// The keys of the database, where reads take those.
    existing: Existing,
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
        let space = if flags.flag("watch") {
            SpaceWatch::begin(path)
        } else {
            SpaceWatch::none()
        };
        let path = path.to_path_buf();
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
            existing: None,
            rows: Vec::new(),
        }
    }

    fn reopen(&mut self, empty: bool) -> Result<()> {
        self.store = None;
        if empty && self.path.exists() {
            remove_database(&self.path)?;
            remove_logs(self.flags.text("wal_dir"))?;
        }
        std::fs::create_dir_all(&self.path)?;
        let mut plan = open_plan(self.flags, &self.path)?;
        plan.must_exist = self.flags.flag("use_existing_db");
        let start = std::time::Instant::now();
        self.store = Some((self.open)(&plan)?);
        if self.flags.flag("report_open_timing") {
            let took = start.elapsed().as_secs_f64() * 1e3;
            (self.print)(&format!("OpenDb:     {took:.3} milliseconds"));
        }
        Ok(())
    }

    /// Collects the keys of the database, where benchmarks take those.
    fn collect_keys(&mut self) -> Result<()> {
        if !self.flags.flag("use_existing_keys") {
            return Ok(());
        }
        if !self.flags.flag("use_existing_db") {
            return Err(Failure::new("--use_existing_keys needs --use_existing_db"));
        }
        let store = self.store.as_ref().expect("just opened");
        let mut session = store.session(&SessionPlan::default())?;
        let mut iter = session.iter(None, None)?;
        let (mut keys, mut on) = (Vec::new(), iter.seek_to_first());
        while on {
            keys.push(iter.key().to_vec());
            on = iter.next();
        }
        iter.status()?;
        if keys.is_empty() {
            return Err(Failure::new(
                "--use_existing_keys: the database has no keys",
            ));
        }
        self.existing = Some(std::sync::Arc::new(keys));
        Ok(())
    }

    /// Runs all benchmarks of `--benchmarks` and returns their rows.
    ///
    /// # Errors
    /// An unknown benchmark (before anything runs), or the first failure.
    pub fn run_all(mut self) -> Result<Vec<Row>> {
        check(self.flags)?;
        let list = self.flags.text("benchmarks").to_string();
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
        self.collect_keys()?;
        for name in names(&list) {
            if interrupt::stopped() {
                break;
            }
            match self.benchmark(name) {
                Err(failure) if self.flags.flag("skip_missing") && failure.lack().is_some() => {
                    let why = failure.lack().unwrap_or_default();
                    (self.print)(&format!("{name:<12} : skipped ({why})"));
                    self.rows.push(Row::missing(name, why));
                }
                done => done.map_err(|e| e.context(name))?,
            }
        }
        if let Some(text) = self.store.as_ref().and_then(S::statistics) {
            (self.print)(&format!("STATISTICS:\n{text}"));
        }
        Ok(self.rows)
    }

    fn benchmark(&mut self, name: &str) -> Result<()> {
        let usage = Usage::now();
        if let Some(measured) = crate::codec::run(name, self.flags)? {
            (self.print)(&measured.line(name));
            let around = StepContext {
                usage: Usage::now().since(usage),
                ..StepContext::default()
            };
            self.rows.push(Row::new(name, &measured, &around, false));
            return Ok(());
        }
        let Some(job) = job(name, self.flags, &self.existing)? else {
            return self.step(name);
        };
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
        (self.print)(&format!("DB path: [{}]", self.path.display()));
        let (warm_ups, runs) = job.runs;
        let store = self.store.as_ref().expect("opened by run_all");
        for _ in 0..warm_ups {
            self.threads(store, &job)?;
        }
        let mut repeats = Repeats::default();
        for _ in 0..runs {
            if interrupt::stopped() {
                break;
            }
            self.measured(&job, &mut repeats)?;
            let only_interval = self.flags.flag("confidence_interval_only");
            if let Some(line) = repeats.line(&job.name, only_interval) {
                (self.print)(&line);
            }
        }
        if let Some(lines) = repeats.summary(&job.name) {
            (self.print)(&lines);
        }
        if job.task == Task::Transaction {
            let store = self.store.as_ref().expect("opened by run_all");
            let mut session = store.session(&job.session)?;
            let said = crate::workload::verify_transactions(&mut session, &job.settings)?;
            (self.print)(&said);
        }
        Ok(())
    }

    fn measured(&mut self, job: &Job, repeats: &mut Repeats) -> Result<()> {
        let store = self.store.as_ref().expect("opened by run_all");
        self.sync_device()?;
        let before = Before::of(store, &self.path);
        self.threads_started += 100;
        let Threads {
            measured,
            rates,
            beside,
            seconds: (seconds, rest),
            pauses,
        } = self.threads(store, job)?;
        let stages = store.property("rocksdb.esker.compaction-stages");
        self.sync_device()?;
        let client = measured.bytes_held();
        let mut around = before.around(store, &self.path, &self.space);
        if self.flags.flag("watch") {
            around.memory = memory(store, client);
        }
        (around.rates, around.seconds, around.rest) = (rates, seconds, rest);
        around.pauses = pauses;
        around.background = beside.as_ref().map(|beside| beside.line.clone());
        around.beside = beside;
        self.note_live_bytes(job, &measured);
        around.live_bytes = self.live_bytes;
        (self.print)(&measured.line(&job.name));
        repeats.add(&measured);
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
        if let Some(lines) = read_work::table(&around.reads) {
            (self.print)(&lines);
        }
        let mut row = Row::new(&job.name, &measured, &around, job.task.writes());
        if let Some(limit) = self.limit(job, &measured, &around) {
            (self.print)(&format!("  {}", limit.line(measured.ops_per_second())));
            row.note_limit(&limit);
        }
        self.rows.push(row);
        Ok(())
    }

    /// Writes out what the page cache holds of the filesystem, where that was asked for.
    fn sync_device(&self) -> Result<()> {
        if self.flags.flag("sync_between") {
            let directory = std::fs::File::open(&self.path)?;
            rustix::fs::syncfs(&directory).map_err(std::io::Error::from)?;
        }
        Ok(())
    }

    /// Returns the limit of the machine for the row; `None` when nobody asked, or when there is no
    /// model.
    fn limit(&self, job: &Job, measured: &Measurement, around: &StepContext) -> Option<Limit> {
        let (machine, store) = (self.machine.as_ref()?, self.store.as_ref()?);
        if job.background.is_some() {
            return None;
        }
        let (work, s) = (around.work, &job.settings);
        let exact = |ticker: Option<u64>| ticker.map(|bytes| bytes as f64);
        let written = exact(work.flush_bytes).zip(exact(work.compact_write_bytes));
        let written = written.map(|(flushes, compactions)| flushes + compactions);
        let done = RowFigures {
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
    fn note_live_bytes(&mut self, job: &Job, measured: &Measurement) {
        let s = &job.settings;
        self.live_bytes = match job.task {
            Task::FillSeq => measured.bytes / s.threads as u64,
            Task::FillUnique => measured.bytes / s.threads as u64,
            Task::DeleteRandom | Task::DeleteSeq | Task::Merge => 0,
            Task::FillRandom if job.fresh => 0,
            _ => self.live_bytes,
        };
    }

    fn threads(&self, store: &S, job: &Job) -> Result<Threads> {
        let s = &job.settings;
        let total = s.threads + usize::from(job.background.is_some());
        let slots: Vec<Slot> = (0..total).map(|_| Slot::default()).collect();
        let shared = BenchmarkState::default();
        shared.readers.store(s.threads, Ordering::Relaxed);
        let (barrier, stop) = (Barrier::new(total), AtomicBool::new(false));
        let slowest = self.flags.count("slowest") as usize;
        let planted = self.flags.count("planted_rounds");
        let with_histogram = self.flags.flag("histogram") || slowest > 0;
        let wanted = wanted(job);
        let every = self.flags.count("report_interval_seconds");
        let by_second = Seconds::begin(store, &self.path);
        let plan = SamplerPlan {
            second: &|| by_second.note(),
            report: (every > 0).then(|| (self.flags.text("report_file"), every)),
            stats_seconds: self.flags.count("stats_interval_seconds"),
            stats_operations: self.flags.count("stats_interval"),
            progress: &|done| (self.progress)(&job.name, done, wanted),
            interval: &|| {
                if self.flags.int("stats_per_interval") > 0 {
                    complain!("{}", store.property("rocksdb.stats").unwrap_or_default());
                }
            },
        };
        let (measured, rates, beside, pauses) = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..total)
                .map(|tid| {
                    let (slot, shared, barrier) = (&slots[tid], &shared, &barrier);
                    let seed = s.seed.wrapping_add(self.threads_started + tid as u64);
                    scope.spawn(move || {
                        let _foreground = (tid < s.threads).then(|| Foreground(shared));
                        let session = store.session(&job.session);
                        barrier.wait();
                        let before = ThreadUsage::now();
                        let mut meter = Meter::start(slot, with_histogram);
                        meter.plant(planted);
                        let mut rng = Rng::new(seed);
                        let outcome = session.and_then(|mut session| match job.background {
                            Some(kind) if tid == s.threads => {
                                run_background(kind, &mut session, s, &mut rng, &mut meter, shared)
                            }
                            _ => {
                                if slowest > 0 {
                                    let account = session.account()?;
                                    meter.keep_slowest(SlowOperations::of(slowest, account));
                                }
                                run(job.task, &mut session, s, &mut rng, &mut meter, shared)
                            }
                        });
                        let mut measured = meter.stop();
                        measured.ran = ThreadUsage::now().since(before).ran;
                        outcome.map(|()| measured)
                    })
                })
                .collect();
            let is_watched = self.flags.flag("watch");
            let sampler = is_watched.then(|| scope.spawn(|| sample(&slots, &stop, &plan)));
            let watch =
                (is_watched && with_histogram).then(|| scope.spawn(|| pauses::watch(&stop)));
            let results: Vec<_> = workers
                .into_iter()
                .map(|w| {
                    w.join()
                        .unwrap_or_else(|_| Err(Failure::new("a thread panicked")))
                })
                .collect();
            stop.store(true, Ordering::Release);
            let rates = sampler.map_or(Ok(Vec::new()), |sampler| {
                let panicked = |_| Err(Failure::new("the sampler panicked"));
                sampler.join().unwrap_or_else(panicked)
            })?;
            let pauses = watch
                .map(|watch| {
                    let panicked = |_| Failure::new("the watch of pauses panicked");
                    watch.join().map_err(panicked)
                })
                .transpose()?;
            let (mut merged, mut beside) = (None::<Measurement>, None);
            for result in results {
                let measured = result?;
                if measured.background {
                    beside = Some(beside_of(&measured, s));
                    continue;
                }
                match &mut merged {
                    Some(sum) => sum.merge(measured),
                    None => merged = Some(measured),
                }
            }
            let merged = merged.ok_or_else(|| Failure::new("no foreground thread"))?;
            Ok::<_, Failure>((merged, rates, beside, pauses))
        })?;
        Ok(Threads {
            measured,
            rates,
            beside,
            seconds: by_second.finish(),
            pauses,
        })
    }
}

/// Results of the threads of a benchmark.
struct Threads {
    measured: Measurement,
    /// Operations of each second.
    rates: Vec<u64>,
    /// Figures of the background thread.
    beside: Option<BackgroundFigures>,
    /// Figures of each second, and of the time behind the last whole one.
    seconds: (Vec<Second>, Second),
    /// Pauses of the machine, where latencies are measured.
    pauses: Option<Vec<Pause>>,
}

/// Counters before a step.
struct Before {
    shape: String,
    usage: Usage,
    work: Work,
    stalls: Vec<Stall>,
    reads: Vec<ReadWork>,
    device: Option<Device>,
}

impl Before {
    fn of<S: Store>(store: &S, path: &Path) -> Before {
        Before {
            shape: shape_line(store),
            usage: Usage::now(),
            work: Work::now(store),
            stalls: stalls(store),
            reads: read_work(store),
            device: Device::below(path),
        }
    }

    /// Returns the figures of a step that has ended.
    fn around<S: Store>(self, store: &S, path: &Path, space: &SpaceWatch) -> StepContext {
        let bytes = directory_bytes(path);
        StepContext {
            usage: Usage::now().since(self.usage),
            device: (self.device).and_then(|before| Some(Device::below(path)?.since(before))),
            work: Work::now(store).since(self.work),
            stalls: stalls_since(stalls(store), &self.stalls),
            reads: read_work::since(read_work(store), &self.reads),
            keeps_ledger: store.property("rocksdb.esker.stalls").is_some(),
            directory_bytes: bytes,
            peak_bytes: space.most(bytes),
            shape_before: self.shape,
            shape_after: shape_line(store),
            ..StepContext::default()
        }
    }
}

fn beside_of(measured: &Measurement, s: &Settings) -> BackgroundFigures {
    BackgroundFigures {
        line: background_line(measured, s),
        asked: s.background_rate as f64,
        reached: measured.bytes as f64 / measured.seconds(),
        latency: [50.0, 99.0, 99.9, 100.0].map(|p| measured.percentile_us(p)),
        intended: [50.0, 99.0, 99.9, 100.0].map(|p| measured.intended_us(p)),
    }
}

fn background_line(measured: &Measurement, s: &Settings) -> String {
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

/// The benchmarks of a list.
fn names(list: &str) -> impl Iterator<Item = &str> {
    let names = list.split(',').map(str::trim);
    names.filter(|name| !name.is_empty())
}

/// Checks all that can be before anything runs.
///
/// # Errors
/// An unknown benchmark, or flags that contradict each other.
pub(crate) fn check(flags: &Flags) -> Result<()> {
    check_names(&names(flags.text("benchmarks")).collect::<Vec<&str>>())?;
    check_watch(flags)
}

/// Refuses flags whose work `--watch=false` switches off.
fn check_watch(flags: &Flags) -> Result<()> {
    let intervals = [
        "report_interval_seconds",
        "stats_interval_seconds",
        "stats_interval",
    ];
    let asked = intervals.iter().find(|name| flags.count(name) > 0);
    match asked.filter(|_| !flags.flag("watch")) {
        Some(name) => Err(Failure::usage(format!("--{name} needs --watch=true"))),
        None => Ok(()),
    }
}

/// Removes a database's files, and refuses a directory that holds something else.
fn remove_database(path: &Path) -> Result<()> {
    let empty = std::fs::read_dir(path)?.next().is_none();
    // Several databases are in directories of their own.
    let marks = ["CURRENT", "lmdb/data.mdb", "fjall"];
    let is_database = |path: &Path| marks.iter().any(|mark| path.join(mark).exists());
    if !empty && !is_database(path) && !is_database(&path.join("0")) {
        let text = format!(
            "{} is neither empty nor a database; not removing it",
            path.display()
        );
        return Err(Failure::new(text));
    }
    std::fs::remove_dir_all(path)?;
    Ok(())
}

/// Removes the logs of a database that is gone from the directory that it had them in.
fn remove_logs(directory: &str) -> Result<()> {
    if directory.is_empty() || !Path::new(directory).exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_number = stem.is_some_and(|s| s.bytes().all(|b| b.is_ascii_digit()));
        if is_number && path.extension().is_some_and(|end| end == "log") {
            std::fs::remove_file(path)?;
        }
    }
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
