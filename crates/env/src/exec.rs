//! Time, randomness and threads, as traits.

use esker_status::Result;
use std::fmt;
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
    /// The cheapest counter there is that ticks evenly, for the time between two readings:
    /// nanoseconds where a machine has nothing better. It may be a little behind another thread's
    /// reading.
    fn ticks(&self) -> u64 {
        self.now_ns()
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

/// Waits for a thread started by an [`Executor`].
pub trait JoinHandle: Send {
    /// Waits for the thread to end.
    fn join(self: Box<Self>);
}

/// How long a thread of an [`Executor`] works before it lets others go on that wait for a
/// processor.
pub const SCHED_SLICE: Duration = Duration::from_micros(150);

/// Where threads come from.
pub trait Executor: Send + Sync + fmt::Debug {
    /// Starts a named thread. It works for others, so where processors are short, threads of the
    /// process that wake up go before it, and none is interrupted when it wakes up.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>>;
    /// Starts a named thread that gives way to all others where processors are short: for work that
    /// can wait. Where threads have no such thing it is a thread like any other.
    fn spawn_patient(
        &self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn JoinHandle>> {
        self.spawn(name, body)
    }
    /// Lets threads go on that wait for the caller's processor. Long work calls it about once a
    /// [`SCHED_SLICE`].
    fn give_way(&self) {}
    /// How many threads can run at once.
    fn parallelism(&self) -> usize;
}
