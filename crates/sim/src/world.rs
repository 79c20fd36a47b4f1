//! The rest of the world that a simulated database runs in: seeded randomness, and threads that are kept for the next.
//!
//! A crash state is opened and closed in about a millisecond; starting and ending the engine's background threads
//! would be a good part of that, so [`Pool`] hands bodies to threads that wait, and time is the machine's. In a
//! controlled world one thread runs at a time, on a clock of its own, and a seed decides which: a run is the same run
//! every time.
//!
//! Thread-safety: everything is shared by all.

use crate::disk::SimFs;
use crate::rng::mix;
use esker::Env;
use esker_env::{Clock, Entropy, Executor, JoinHandle, SystemClock, ThreadExecutor};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::{Joining, Mutex, Rank, Schedule};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Numbers that follow from a seed, in the order in which they are asked for.
#[derive(Debug)]
struct Seeded(AtomicU64);

impl Entropy for Seeded {
    fn next_u64(&self) -> u64 {
        mix(self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
    }
}

struct Job {
    body: Box<dyn FnOnce() + Send>,
    /// Dropped without a word when the body panics.
    done: Sender<()>,
}

type Idle = Arc<Mutex<Vec<Sender<Job>>>>;

/// Threads that wait for the next body.
#[derive(Clone, Debug)]
pub struct Pool {
    idle: Idle,
}

impl Default for Pool {
    fn default() -> Self {
        Pool {
            idle: Arc::new(Mutex::new(
                Rank::new(u16::MAX - 1, "simulation's idle threads"),
                Vec::new(),
            )),
        }
    }
}

struct Handle(Receiver<()>);

impl JoinHandle for Handle {
    fn join(self: Box<Self>) {
        assert!(self.0.recv().is_ok(), "a background thread panicked");
    }
}

impl Executor for Pool {
    fn spawn(&self, _name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        let (done, wait) = channel();
        let mut job = Job { body, done };
        let waiting = self.idle.lock().pop();
        if let Some(thread) = waiting {
            match thread.send(job) {
                Ok(()) => return Ok(Box::new(Handle(wait))),
                Err(back) => job = back.0,
            }
        }
        let idle = Arc::clone(&self.idle);
        let work = move || {
            let mut next = Some(job);
            while let Some(job) = next.take() {
                (job.body)();
                let (give, take) = channel();
                idle.lock().push(give);
                // Nobody waits for a database that was forgotten.
                let _ = job.done.send(());
                next = take.recv().ok();
            }
        };
        // The thread outlives the database: it ends with the pool, whose senders it waits for.
        drop(ThreadExecutor::new().spawn("esker-sim", Box::new(work))?);
        Ok(Box::new(Handle(wait)))
    }

    fn parallelism(&self) -> usize {
        2
    }
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
struct Turns(Schedule);

struct Turn(Joining);

impl JoinHandle for Turn {
    fn join(self: Box<Self>) {
        self.0.join();
    }
}

impl Executor for Turns {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        let started = self.0.spawn(name, body);
        let started =
            started.map_err(|e| Error::new(ErrorKind::Io, format!("start thread {name}: {e}")))?;
        Ok(Box::new(Turn(started)))
    }

    fn parallelism(&self) -> usize {
        2
    }
}

#[derive(Clone, Debug)]
enum Threads {
    /// The machine's, as it schedules them.
    Real(Pool),
    /// Each part of a run gets a schedule.
    Controlled,
    /// The part of a run that has this one.
    Scheduled(Schedule),
}

/// What databases of one run share.
#[derive(Clone, Debug)]
pub struct World {
    threads: Threads,
}

impl Default for World {
    fn default() -> Self {
        World {
            threads: Threads::Real(Pool::default()),
        }
    }
}

impl World {
    /// A world in which seeds decide which thread runs and what time it is.
    pub fn controlled() -> World {
        World {
            threads: Threads::Controlled,
        }
    }

    /// The world of a schedule that the caller runs.
    pub fn in_schedule(schedule: &Schedule) -> World {
        World {
            threads: Threads::Scheduled(schedule.clone()),
        }
    }

    /// Runs one part of a run, all of whose threads end with it.
    pub fn play<R>(&self, seed: u64, part: impl FnOnce(&World) -> R) -> R {
        match &self.threads {
            Threads::Controlled => {
                let schedule = Schedule::new(seed);
                let inside = World {
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
    /// In a controlled world, outside [`World::play`].
    pub fn env(&self, disk: &SimFs, seed: u64) -> Env {
        let (clock, executor): (Arc<dyn Clock>, Arc<dyn Executor>) = match &self.threads {
            Threads::Real(pool) => (Arc::new(SystemClock::new()), Arc::new(pool.clone())),
            Threads::Scheduled(s) => (Arc::new(Ticks(s.clone())), Arc::new(Turns(s.clone()))),
            Threads::Controlled => panic!("threads of a controlled world are for World::play"),
        };
        Env {
            fs: Arc::new(disk.clone()),
            clock,
            entropy: Arc::new(Seeded(AtomicU64::new(seed))),
            executor,
        }
    }
}
