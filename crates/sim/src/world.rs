//! The rest of the world that a simulated database runs in: seeded randomness, and threads that are kept for the next.
//!
//! A crash state is opened and closed in about a millisecond; starting and ending the engine's background threads
//! would be a good part of that, so [`Pool`] hands bodies to threads that wait. Time is the machine's for now.
//!
//! Thread-safety: everything is shared by all.

use crate::disk::SimFs;
use crate::rng::mix;
use esker::Env;
use esker_env::{Entropy, Executor, JoinHandle, SystemClock, ThreadExecutor};
use esker_status::Result;
use esker_sync::{Mutex, Rank};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

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

/// What databases of one run share.
#[derive(Clone, Debug, Default)]
pub struct World {
    pool: Pool,
}

impl World {
    /// An environment around `disk` whose randomness follows from `seed`.
    pub fn env(&self, disk: &SimFs, seed: u64) -> Env {
        Env {
            fs: Arc::new(disk.clone()),
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(Seeded(AtomicU64::new(seed))),
            executor: Arc::new(self.pool.clone()),
        }
    }
}
