//! The processor's time stamps as a counter for short times.
//!
//! One costs a third of what the monotonic clock does, and a job that says where its time goes
//! reads some for every block. They count where the kernel itself goes by them: it does so only
//! while they tick evenly and alike on all processors, and watches that they do. Rejected: the
//! monotonic clock itself, which took 12 % of the processor time of merges of uncompressed blocks
//! of 4 KB; looking at every fourth block only, which says little of what is rare, and nothing of a
//! wait that it misses.

use crate::sys::time_stamp;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Where the kernel says what its clock goes by.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Time stamps since a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct TscClock {
    begin: u64,
    at: Instant,
}

impl TscClock {
    /// From now on; none where time stamps cannot be trusted.
    pub(super) fn new() -> Option<TscClock> {
        static TRUSTED: OnceLock<bool> = OnceLock::new();
        let is_trusted = || std::fs::read_to_string(SOURCE).is_ok_and(|s| s.trim() == "tsc");
        TRUSTED.get_or_init(is_trusted).then_some(())?;
        let at = Instant::now();
        time_stamp().map(|begin| TscClock { begin, at })
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        time_stamp()
            .unwrap_or(self.begin)
            .saturating_sub(self.begin)
    }

    /// How many a `duration` has, by those since the beginning.
    pub(super) fn of(&self, duration: Duration) -> u64 {
        let (ticks, took) = (self.now(), self.at.elapsed());
        let ticks = u128::from(ticks) * duration.as_nanos() / took.as_nanos().max(1);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_tick_as_time_goes_by() {
        let Some(tsc) = TscClock::new() else {
            return;
        };
        std::thread::sleep(Duration::from_millis(5));
        let (before, since) = (tsc.now(), Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let (after, took) = (tsc.now(), since.elapsed());
        let want = tsc.of(took) as f64;
        let got = (after - before) as f64;
        assert!((0.9..1.1).contains(&(got / want)), "{got} of {want}");
    }
}
