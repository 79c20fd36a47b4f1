//! The rest of the world that a simulated database runs in: seeded randomness, and threads that are
//! kept for the next.
//!
//! A crash state is opened and closed in half a millisecond; starting and ending the engine's
//! background threads would be a good part of that, so bodies are handed to threads that wait. In a
//! world of real threads time is the machine's. In a controlled world one thread runs at a time, on
//! a clock of its own, and a seed decides which: a run is the same run every time.
//!
//! Thread-safety: everything is shared by all.

use crate::disk::SimFs;
use crate::rng::mix;
use esker::Env;
use esker_env::{Clock, Entropy, Executor, JoinHandle, SystemClock};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::{MemberHandle, Running, Schedule};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Numbers that follow from a seed, in the order in which they are asked for.
#[derive(Debug)]
struct SeededEntropy(AtomicU64);

impl Entropy for SeededEntropy {
    fn next_u64(&self) -> u64 {
        mix(self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
    }
}

/// Threads that the machine schedules.
#[derive(Clone, Copy, Debug, Default)]
struct FreeThreads;

struct Handle(Running);

impl JoinHandle for Handle {
    fn join(self: Box<Self>) {
        assert!(self.0.join().is_ok(), "a background thread panicked");
    }
}

impl Executor for FreeThreads {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        let started = esker_sync::start(body).map_err(|e| not_started(name, &e))?;
        Ok(Box::new(Handle(started)))
    }

    fn parallelism(&self) -> usize {
        2
    }
}

fn not_started(name: &str, why: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("start thread {name}: {why}"))
}

/// The time of a controlled run.
#[derive(Debug)]
struct Ticks(Schedule);

/// Where the calendar of controlled runs begins: 2024-01-01, seconds since the Unix epoch.
const CALENDAR: u64 = 1_704_067_200;

impl Clock for Ticks {
    fn now_us(&self) -> u64 {
        self.now_ns() / 1_000
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
    fn unix_us(&self) -> u64 {
        CALENDAR * 1_000_000 + self.now_us()
    }
    fn sleep(&self, duration: Duration) {
        esker_sync::sleep(duration);
    }
}

/// Threads that take turns.
#[derive(Debug)]
struct ScheduledThreads(Schedule);

struct ScheduledThread(MemberHandle);

impl JoinHandle for ScheduledThread {
    fn join(self: Box<Self>) {
        self.0.join();
    }
}

impl Executor for ScheduledThreads {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        let started = self.0.spawn(name, body);
        let started = started.map_err(|e| not_started(name, &e))?;
        Ok(Box::new(ScheduledThread(started)))
    }

    fn parallelism(&self) -> usize {
        2
    }
}

#[derive(Clone, Debug)]
enum Threads {
    /// The machine's, as it schedules them.
    Real,
    /// Each part of a run gets a schedule.
    Controlled,
    /// The part of a run that has this one.
    Scheduled(Schedule),
}

/// State that the databases of one run share.
#[derive(Clone, Debug)]
pub struct SimEnv {
    threads: Threads,
}

impl Default for SimEnv {
    fn default() -> Self {
        SimEnv {
            threads: Threads::Real,
        }
    }
}

impl SimEnv {
    /// A world in which seeds decide which thread runs and what time it is.
    pub fn controlled() -> SimEnv {
        SimEnv {
            threads: Threads::Controlled,
        }
    }

    /// The world of a schedule that the caller runs.
    pub fn in_schedule(schedule: &Schedule) -> SimEnv {
        SimEnv {
            threads: Threads::Scheduled(schedule.clone()),
        }
    }

    /// Runs one part of a run, all of whose threads end with it.
    pub fn play<R>(&self, seed: u64, part: impl FnOnce(&SimEnv) -> R) -> R {
        match &self.threads {
            Threads::Controlled => {
                let schedule = Schedule::new(seed);
                let inside = SimEnv {
                    threads: Threads::Scheduled(schedule.clone()),
                };
                schedule.run(|| part(&inside))
            }
            _ => part(self),
        }
    }

    /// An environment around `disk` whose randomness follows from `seed`.
    ///
    /// # Panics
    /// In a controlled world, outside [`SimEnv::play`].
    pub fn env(&self, disk: &SimFs, seed: u64) -> Env {
        let (clock, executor): (Arc<dyn Clock>, Arc<dyn Executor>) = match &self.threads {
            Threads::Real => (Arc::new(SystemClock::new()), Arc::new(FreeThreads)),
            Threads::Scheduled(s) => (
                Arc::new(Ticks(s.clone())),
                Arc::new(ScheduledThreads(s.clone())),
            ),
            Threads::Controlled => panic!("threads of a controlled world are for SimEnv::play"),
        };
        Env {
            fs: Arc::new(disk.clone()),
            clock,
            entropy: Arc::new(SeededEntropy(AtomicU64::new(seed))),
            executor,
        }
    }
}
