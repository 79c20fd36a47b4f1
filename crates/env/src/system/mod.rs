//! The machine's own time, threads and randomness.
//!
//! Thread-safety: clock and entropy are stateless or thread-local behind `&self`; threads belong to
//! the process.

mod threads;
#[cfg(target_os = "linux")]
mod timer_slack;
mod tsc;

pub use threads::ThreadExecutor;

use crate::{Clock, Entropy};
use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tsc::TscClock;

/// The machine's clocks (`CLOCK_MONOTONIC`, `CLOCK_REALTIME`, and the processor's time stamps where
/// the kernel trusts them).
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
    stamps: Option<TscClock>,
}

impl SystemClock {
    /// A clock that starts near zero now.
    pub fn new() -> Self {
        SystemClock {
            origin: Instant::now(),
            stamps: TscClock::new(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_us(&self) -> u64 {
        self.now_ns() / 1000
    }
    fn now_ns(&self) -> u64 {
        let d = self.origin.elapsed();
        d.as_secs() * 1_000_000_000 + u64::from(d.subsec_nanos())
    }
    fn unix_us(&self) -> u64 {
        // A machine whose clock is before 1970 is at time zero.
        let d = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        d.as_secs() * 1_000_000 + u64::from(d.subsec_micros())
    }
    fn sleep(&self, duration: Duration) {
        #[cfg(target_os = "linux")]
        let _punctual = (duration < timer_slack::BRIEF).then(timer_slack::TimerSlackGuard::new);
        std::thread::sleep(duration);
    }
    fn thread_cpu_ns(&self) -> u64 {
        thread_cpu_ns()
    }
    fn process_cpu_ns(&self) -> u64 {
        process_cpu_ns()
    }
    fn ticks(&self) -> u64 {
        match &self.stamps {
            Some(stamps) => stamps.now(),
            None => self.now_ns(),
        }
    }
    fn ticks_are_stamps(&self) -> bool {
        self.stamps.is_some()
    }
    fn ticks_of(&self, duration: Duration) -> u64 {
        match &self.stamps {
            Some(stamps) => stamps.of(duration),
            None => u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// The number of the calling thread, by which the system's tools name it.
pub fn thread_id() -> u64 {
    crate::sys::calls::thread_number()
}

/// Nanoseconds of processor time that the calling thread took.
pub(crate) fn thread_cpu_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}

/// Nanoseconds of processor time that all threads of the process took.
pub(crate) fn process_cpu_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}

/// Fast randomness: a thread-local counter generator, seeded from the operating system once a
/// thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl SystemEntropy {
    /// The operating system's randomness.
    pub fn new() -> Self {
        SystemEntropy
    }
}

thread_local! {
    /// State and increment of the thread's splitmix generator; no increment: not yet seeded.
    static STATE: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Fills `bytes` with the system's randomness; `false` where it gives none.
fn fill(bytes: &mut [u8]) -> bool {
    // So few come whole, or not at all.
    #[cfg(target_os = "linux")]
    let given = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty());
    #[cfg(target_os = "linux")]
    let is_filled = given == Ok(bytes.len());
    #[cfg(not(target_os = "linux"))]
    let is_filled = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, bytes))
        .is_ok();
    is_filled
}

#[cold]
fn seed() -> (u64, u64) {
    let mut bytes = [0u8; 16];
    if !fill(&mut bytes) {
        // No system randomness: time and an address still tell threads and processes apart.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let place = (&raw const bytes).addr() as u64;
        bytes[..8].copy_from_slice(
            &(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 40).to_le_bytes(),
        );
        bytes[8..].copy_from_slice(&place.to_le_bytes());
    }
    let n = u128::from_le_bytes(bytes);
    (n as u64, (n >> 64) as u64 | 1)
}

impl Entropy for SystemEntropy {
    fn next_u64(&self) -> u64 {
        STATE.with(|s| {
            let (mut state, mut gamma) = s.get();
            if gamma == 0 {
                (state, gamma) = seed();
            }
            state = state.wrapping_add(gamma);
            s.set((state, gamma));
            let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        })
    }
}
