//! Time, randomness and threads, as traits.

use esker_status::Result;
use esker_sync::{Condvar, Mutex, Rank};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Microseconds on a clock that never goes back.
    fn now_us(&self) -> u64;
    /// Nanoseconds on the same clock.
    fn now_ns(&self) -> u64;
    /// Microseconds since the Unix epoch.
    fn unix_us(&self) -> u64;
    /// Sleeps.
    fn sleep(&self, duration: Duration);
    /// Nanoseconds of processor time that the calling thread took; 0 where that is not known.
    fn thread_cpu_ns(&self) -> u64 {
        0
    }
    /// Nanoseconds of processor time that all threads of the process took; 0 where that is not
    /// known.
    fn process_cpu_ns(&self) -> u64 {
        0
    }
    /// The cheapest counter there is that ticks evenly, for the time between two readings:
    /// nanoseconds where a machine has nothing better. It may be a little behind another thread's
    /// reading.
    fn ticks(&self) -> u64 {
        self.now_ns()
    }
    /// Returns whether [`time_stamp`](crate::time_stamp) ticks as [`Clock::ticks`] does.
    fn ticks_are_stamps(&self) -> bool {
        false
    }
    /// About as many ticks as take so long.
    fn ticks_of(&self, duration: Duration) -> u64 {
        u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Randomness that need not be secret.
pub trait Entropy: Send + Sync + fmt::Debug {
    /// Sixty-four random bits.
    fn next_u64(&self) -> u64;
}

/// Waits for a body started by an [`Executor`].
pub trait JoinHandle: Send {
    /// Waits until the body has ended. Its thread may live on, for another one.
    fn join(self: Box<Self>);
}

/// A body that runs in a slot ([`Executor::spawn_in_slot`]).
pub type SlotBody = Box<dyn FnOnce(ThreadSlot) + Send>;

/// The slot of a body, which is free again with its end, or before.
#[derive(Default)]
pub struct ThreadSlot(Option<Box<dyn FnOnce() + Send>>);

impl ThreadSlot {
    /// A slot; `end` is called where it is given back before the body ends.
    pub fn new(end: impl FnOnce() + Send + 'static) -> Self {
        ThreadSlot(Some(Box::new(end)))
    }

    /// Gives it back: the next body begins, and this one goes on.
    pub fn release(self) {
        if let Some(end) = self.0 {
            end();
        }
    }
}

impl fmt::Debug for ThreadSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadSlot")
            .field(&self.0.is_some())
            .finish()
    }
}

/// Something to do again and again. It returns soon and does not panic.
pub type Tick = Arc<dyn Fn() + Send + Sync>;

/// Keeps a [`Tick`] going until it is dropped, which waits for nothing: a tick may still run.
pub trait Ticking: Send {}

/// How often an [`Executor`] ticks.
pub const TICK: Duration = Duration::from_secs(1);

/// How long a thread of an [`Executor`] works before it lets others go on that wait for a
/// processor, where these are of the same process.
pub const SCHED_SLICE: Duration = Duration::from_micros(150);

/// Where threads come from.
pub trait Executor: Send + Sync + fmt::Debug {
    /// Runs `body` beside the caller, on a thread with this name. The thread works for others, so
    /// where processors are short, threads of the process that wake up go before it, and none is
    /// interrupted when it wakes up. It may have run other bodies before.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>>;
    /// Runs it on a thread of low priority, which gives way to all others where processors are
    /// short: for work that can wait. Where threads have no such thing it is a thread like any
    /// other.
    fn spawn_patient(
        &self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn JoinHandle>> {
        self.spawn(name, body)
    }
    /// Runs it in one of a few slots, perhaps after others: a process with thousands of databases
    /// does not have thousands of threads. A body gives its slot back before long work.
    fn spawn_in_slot(&self, name: &str, body: SlotBody) -> Result<()> {
        self.spawn(name, Box::new(move || body(ThreadSlot::default())))
            .map(drop)
    }
    /// Calls `tick` about once a [`TICK`], on a thread that may tick for others too.
    fn tick(&self, tick: Tick) -> Result<Box<dyn Ticking>> {
        let ticker = Arc::new(Ticker::default());
        let theirs = Arc::clone(&ticker);
        self.spawn("esker-timer", Box::new(move || theirs.run(&tick)))?;
        Ok(Box::new(ThreadTicker(ticker)))
    }
    /// Lets threads go on that wait for the caller's processor. Long work calls it at the end of
    /// each [`Executor::time_slice`].
    fn give_way(&self) {}
    /// How long work goes on before it gives way: longer than [`SCHED_SLICE`] where other programs
    /// keep the processor.
    fn time_slice(&self) -> Duration {
        SCHED_SLICE
    }
    /// How many threads can run at once.
    fn parallelism(&self) -> usize;
}

/// A thread that ticks for one alone.
#[derive(Debug)]
struct Ticker {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Default for Ticker {
    fn default() -> Self {
        Ticker {
            is_over: Mutex::new(Rank::LEAF, false),
            changed: Condvar::new(),
        }
    }
}

impl Ticker {
    /// The life of the thread.
    fn run(&self, tick: &Tick) {
        let mut is_over = self.is_over.lock();
        while !*is_over {
            let is_due = self.changed.wait_for(&mut is_over, TICK);
            if is_due && !*is_over {
                drop(is_over);
                tick();
                is_over = self.is_over.lock();
            }
        }
    }
}

struct ThreadTicker(Arc<Ticker>);

impl Ticking for ThreadTicker {}

impl Drop for ThreadTicker {
    fn drop(&mut self) {
        *self.0.is_over.lock() = true;
        self.0.changed.notify_all();
    }
}
