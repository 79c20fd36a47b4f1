//! Sleeps that end when they should.
//!
//! Linux lets a thread's sleep end up to 50 microseconds late, to wake up several at once
//! (`PR_SET_TIMERSLACK`). Of a writer that waits for 150 it is a third. The slack is the thread's
//! own, and threads that write are the application's: it is put back after each sleep.

use rustix::thread::{current_timer_slack, set_current_timer_slack};
use std::num::NonZeroU64;
use std::time::Duration;

/// Of longer sleeps the slack is a small part.
pub(super) const BRIEF: Duration = Duration::from_millis(2);
/// Nanoseconds by which a punctual sleep may be late.
const LEAST: u64 = 1_000;

/// While it lives, sleeps of the calling thread end on time.
pub(super) struct TimerSlackGuard {
    /// The slack before; none where it stays.
    before: Option<NonZeroU64>,
}

impl TimerSlackGuard {
    pub(super) fn new() -> Self {
        // Without an answer sleeps are late, as before.
        let slack = current_timer_slack().unwrap_or(0);
        let before = NonZeroU64::new(slack).filter(|before| before.get() > LEAST);
        let is_set = before.is_some() && set_current_timer_slack(NonZeroU64::new(LEAST)).is_ok();
        TimerSlackGuard {
            before: before.filter(|_| is_set),
        }
    }
}

impl Drop for TimerSlackGuard {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // It was set a moment ago, so it can be set.
            let _set = set_current_timer_slack(Some(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use crate::system::SystemClock;

    #[test]
    fn the_slack_of_a_thread_is_its_own_again() {
        std::thread::spawn(|| {
            set_current_timer_slack(NonZeroU64::new(70_000)).unwrap();
            {
                let _punctual = TimerSlackGuard::new();
                assert_eq!(current_timer_slack().unwrap(), LEAST);
            }
            assert_eq!(current_timer_slack().unwrap(), 70_000);
            SystemClock::new().sleep(Duration::from_micros(10));
            assert_eq!(current_timer_slack().unwrap(), 70_000);
            // A thread that asked for less has it.
            set_current_timer_slack(NonZeroU64::new(500)).unwrap();
            let _punctual = TimerSlackGuard::new();
            assert_eq!(current_timer_slack().unwrap(), 500);
        })
        .join()
        .unwrap();
    }
}
