//! Threads, rates, percentiles and the figures of a step.
//!
//! A step gives each thread a session and a [`Worker`], and runs operations until the time or the
//! count is used up. In a closed loop an operation begins when the one before has ended. With a
//! rate, operation i of all threads is due at i / rate; its latency is also taken from when it was
//! due, so that a stall is felt by all who would have come during it.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::engine::{Engine, Session};
use crate::process::Usage;
use crate::{Failure, Result, interrupt};

/// Figures of one operation: its kind, bytes, rows and conflicts.
#[derive(Debug, Clone, Copy, Default)]
pub struct OperationResult {
    /// Which kind it was, of the step's list.
    pub kind: usize,
    /// Bytes of the application that it changed.
    pub wrote: u64,
    /// Bytes of the application that it saw.
    pub read: u64,
    /// Rows that it saw.
    pub rows: u64,
    /// Times that it began again after a conflict.
    pub conflicts: u64,
}

/// The operations of a thread, one after another.
pub trait Worker: Send {
    /// The next operation; `None` when there is no more.
    ///
    /// # Errors
    /// The engine's error.
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>>;
}

/// How long and how fast.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pace {
    /// Threads, each with a session.
    pub threads: usize,
    /// Seconds at most; 0 for no limit.
    pub seconds: f64,
    /// Operations of all threads at most; 0 for no limit.
    pub operations: u64,
    /// Operations a second of all threads; 0 for as many as go.
    pub rate: f64,
}

/// Latencies of one kind of operation, in microseconds.
#[derive(Debug, Clone)]
pub struct Latency {
    /// The kind.
    pub name: &'static str,
    /// From the begin of an operation.
    pub service: Histogram<u64>,
    /// From when it was due; empty in a closed loop.
    pub intended: Histogram<u64>,
}

/// Cumulative figures around a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Of this process.
    pub client: Usage,
    /// Of the server's processes, where there is a server.
    pub server: Option<Usage>,
}

impl Figures {
    /// The figures now.
    pub fn now(engine: &dyn Engine) -> Figures {
        Figures {
            client: Usage::now(),
            server: engine.server_usage(),
        }
    }

    /// Returns the usage since `before`.
    pub fn since(self, before: Figures) -> Figures {
        Figures {
            client: self.client.since(before.client),
            server: self
                .server
                .map(|now| now.since(before.server.unwrap_or_default())),
        }
    }

    /// Of the process that writes the files.
    pub fn engine(&self) -> Usage {
        self.server.unwrap_or(self.client)
    }
}

/// The figures of a step.
#[derive(Debug, Clone)]
pub struct StepFigures {
    /// Its name.
    pub name: String,
    /// The pace that was asked for.
    pub pace: Pace,
    /// How long it took.
    pub seconds: f64,
    /// Operations of all threads.
    pub operations: u64,
    /// Conflicts of all threads.
    pub conflicts: u64,
    /// Bytes of the application that were changed.
    pub wrote: u64,
    /// Bytes of the application that were seen.
    pub read: u64,
    /// Rows that were seen.
    pub rows: u64,
    /// Operations in each second.
    pub by_second: Vec<u64>,
    /// Latencies by kind.
    pub latencies: Vec<Latency>,
    /// Usage while operations ran.
    pub used: Figures,
    /// Usage until the engine had settled, operations included.
    pub settled: Figures,
    /// Bytes that the engine counts as written until it had settled, by part.
    pub parts: Vec<(&'static str, u64)>,
    /// Bytes on disk after it had settled.
    pub disk_bytes: u64,
}

fn histogram() -> Result<Histogram<u64>> {
    // One microsecond to two minutes, three digits.
    Histogram::new_with_bounds(1, 120_000_000, 3)
        .map_err(|e| Failure::new(format!("cannot make a histogram: {e}")))
}

fn latencies(kinds: &[&'static str]) -> Result<Vec<Latency>> {
    kinds
        .iter()
        .map(|name| {
            Ok(Latency {
                name,
                service: histogram()?,
                intended: histogram()?,
            })
        })
        .collect()
}

/// Results of one thread.
struct Tally {
    latencies: Vec<Latency>,
    operations: u64,
    conflicts: u64,
    wrote: u64,
    read: u64,
    rows: u64,
}

/// State that all threads of a step share.
struct StepState<'a> {
    pace: Pace,
    begin: Instant,
    /// The number of the next operation.
    next: &'a AtomicU64,
    seconds: &'a [AtomicU64],
    failed: &'a AtomicU64,
}

impl StepState<'_> {
    /// When the next operation is due, or that there is none.
    fn due(&self) -> Option<Option<Instant>> {
        if interrupt::stopped() || self.failed.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.pace.operations > 0 && number >= self.pace.operations {
            return None;
        }
        let limit = self.pace.seconds;
        if self.pace.rate > 0.0 {
            let offset = number as f64 / self.pace.rate;
            if limit > 0.0 && offset >= limit {
                return None;
            }
            return Some(Some(self.begin + Duration::from_secs_f64(offset)));
        }
        let over = limit > 0.0 && self.begin.elapsed().as_secs_f64() >= limit;
        (!over).then_some(None)
    }
}

fn micros(of: Duration) -> u64 {
    u64::try_from(of.as_micros())
        .unwrap_or(u64::MAX)
        .clamp(1, 120_000_000)
}

/// Sleeps until `due` in pieces, so that a run that is to stop does not wait for a slow rate. Says
/// whether it slept.
fn wait(due: Instant) -> bool {
    let mut slept = false;
    while let Some(left) = due.checked_duration_since(Instant::now()) {
        if left.is_zero() || interrupt::stopped() {
            break;
        }
        std::thread::sleep(left.min(Duration::from_millis(200)));
        slept = true;
    }
    slept
}

fn run(
    worker: &mut dyn Worker,
    session: &mut dyn Session,
    course: &StepState<'_>,
    kinds: &[&'static str],
) -> Result<Tally> {
    let mut tally = Tally {
        latencies: latencies(kinds)?,
        operations: 0,
        conflicts: 0,
        wrote: 0,
        read: 0,
        rows: 0,
    };
    while let Some(due) = course.due() {
        let slept = due.is_some_and(wait);
        let begin = Instant::now();
        let Some(did) = worker.operation(session)? else {
            break;
        };
        let end = Instant::now();
        let latency = &mut tally.latencies[did.kind];
        latency.service.saturating_record(micros(end - begin));
        if let Some(due) = due {
            // A timer that wakes the client late says nothing of the engine.
            let from = if slept { begin } else { due };
            let late = end.saturating_duration_since(from);
            latency.intended.saturating_record(micros(late));
        }
        let second = (end - course.begin).as_secs() as usize;
        if let Some(count) = course.seconds.get(second) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        tally.operations += 1;
        tally.conflicts += did.conflicts;
        tally.wrote += did.wrote;
        tally.read += did.read;
        tally.rows += did.rows;
    }
    Ok(tally)
}

fn merge(into: &mut Tally, from: &Tally) -> Result<()> {
    for (a, b) in into.latencies.iter_mut().zip(&from.latencies) {
        let grown = a
            .service
            .add(&b.service)
            .and_then(|()| a.intended.add(&b.intended));
        grown.map_err(|e| Failure::new(format!("cannot add histograms: {e}")))?;
    }
    into.operations += from.operations;
    into.conflicts += from.conflicts;
    into.wrote += from.wrote;
    into.read += from.read;
    into.rows += from.rows;
    Ok(())
}

/// Makes the worker of a thread.
pub type MakeWorker<'a> = dyn Fn(usize) -> Box<dyn Worker> + Sync + 'a;

/// The longest step whose rate by second is kept.
const MOST_SECONDS: usize = 24 * 3600;

/// Runs a step and lets the engine settle.
///
/// # Errors
/// The first failure of a thread; the others stop then.
pub fn drive(
    engine: &dyn Engine,
    name: &str,
    pace: Pace,
    kinds: &[&'static str],
    make: &MakeWorker<'_>,
) -> Result<StepFigures> {
    let seconds = match pace.seconds {
        0.0 => MOST_SECONDS,
        limit => (limit.ceil() as usize + 60).min(MOST_SECONDS),
    };
    let seconds: Vec<AtomicU64> = (0..seconds).map(|_| AtomicU64::new(0)).collect();
    let mut sessions = Vec::new();
    for _ in 0..pace.threads.max(1) {
        sessions.push(engine.session()?);
    }
    let counted = engine.written()?;
    let before = Figures::now(engine);
    let (took, tallies) = together(sessions, pace, kinds, &seconds, make);
    let used = Figures::now(engine).since(before);
    let mut all: Option<Tally> = None;
    for tally in tallies {
        let tally = tally.map_err(|failure| failure.context(format!("step {name}")))?;
        match &mut all {
            None => all = Some(tally),
            Some(all) => merge(all, &tally)?,
        }
    }
    let all = all.ok_or_else(|| Failure::new("a step without threads"))?;
    engine.settle()?;
    let settled = Figures::now(engine).since(before);
    let parts = engine.written()?.into_iter().map(|(name, now)| {
        let then = counted.iter().find(|(known, _)| *known == name);
        (
            name,
            now.saturating_sub(then.map_or(0, |(_, bytes)| *bytes)),
        )
    });
    let whole = (took as usize).min(seconds.len());
    let by_second = seconds[..whole].iter();
    Ok(StepFigures {
        name: name.into(),
        pace,
        seconds: took,
        operations: all.operations,
        conflicts: all.conflicts,
        wrote: all.wrote,
        read: all.read,
        rows: all.rows,
        by_second: by_second
            .map(|count| count.load(Ordering::Relaxed))
            .collect(),
        latencies: all.latencies,
        used,
        settled,
        parts: parts.collect(),
        disk_bytes: engine.disk_bytes(),
    })
}

/// Runs the threads of a step, and says how long they took.
fn together(
    sessions: Vec<Box<dyn Session>>,
    pace: Pace,
    kinds: &[&'static str],
    seconds: &[AtomicU64],
    make: &MakeWorker<'_>,
) -> (f64, Vec<Result<Tally>>) {
    let (next, failed) = (&AtomicU64::new(0), &AtomicU64::new(0));
    let ready = &Barrier::new(sessions.len() + 1);
    std::thread::scope(|scope| {
        let running: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(number, mut session)| {
                scope.spawn(move || {
                    let mut worker = make(number);
                    ready.wait();
                    let begin = Instant::now();
                    let course = StepState {
                        pace,
                        begin,
                        next,
                        seconds,
                        failed,
                    };
                    let done = run(&mut *worker, &mut *session, &course, kinds);
                    if done.is_err() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    done
                })
            })
            .collect();
        ready.wait();
        let begin = Instant::now();
        let joined = |thread: std::thread::ScopedJoinHandle<'_, Result<Tally>>| {
            let done = thread.join();
            done.unwrap_or_else(|_| Err(Failure::new("a thread of the step panicked")))
        };
        let tallies = running.into_iter().map(joined).collect();
        (begin.elapsed().as_secs_f64(), tallies)
    })
}

impl StepFigures {
    /// Operations a second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }

    /// Returns whether a rate that was asked for was missed by more than 2 %.
    pub fn missed(&self) -> bool {
        self.pace.rate > 0.0 && self.rate() < 0.98 * self.pace.rate
    }

    /// All kinds together, from the intended start where there was one.
    pub fn overall(&self) -> Option<Histogram<u64>> {
        let mut sum = histogram().ok()?;
        for latency in &self.latencies {
            let from = if self.pace.rate > 0.0 {
                &latency.intended
            } else {
                &latency.service
            };
            sum.add(from).ok()?;
        }
        Some(sum)
    }

    /// Standard deviation of the rates by second over their mean.
    pub fn variation(&self) -> Option<f64> {
        let n = self.by_second.len() as f64;
        if n < 2.0 {
            return None;
        }
        let mean = self.by_second.iter().sum::<u64>() as f64 / n;
        let squares = self.by_second.iter().map(|&x| (x as f64 - mean).powi(2));
        (mean > 0.0).then(|| (squares.sum::<f64>() / n).sqrt() / mean)
    }

    /// Bytes written to storage for a byte changed, with what background work wrote.
    pub fn write_amp(&self) -> Option<f64> {
        (self.wrote > 0).then(|| self.written() as f64 / self.wrote as f64)
    }

    /// Bytes written to storage until the engine had settled: as the engine counts them by part,
    /// or as the kernel counts them for its processes. The kernel counts all of a folio of the page
    /// cache for a commit that changes 4 KB of it.
    pub fn written(&self) -> u64 {
        match self.parts.as_slice() {
            [] => self.settled.engine().device_write_bytes,
            parts => parts.iter().map(|(_, bytes)| bytes).sum(),
        }
    }

    /// Bytes read from storage for a byte seen.
    pub fn read_amp(&self) -> Option<f64> {
        let read = self.used.engine().device_read_bytes;
        (self.read > 0).then(|| read as f64 / self.read as f64)
    }
}
