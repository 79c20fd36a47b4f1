//! When a database may try again to resume from a background error by itself, and how often it
//! has. Thread-safety: any thread; of several that ask at once one may try.

use esker_sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The attempts to resume.
#[derive(Debug, Default)]
pub struct ResumeBackoff {
    /// By the clock, in microseconds.
    due_us: AtomicU64,
    /// Attempts since the database last ran.
    attempts: AtomicU32,
}

impl ResumeBackoff {
    /// Returns whether the caller may try now; the next attempt is due `interval_us` later. A
    /// `most` below 0 is no limit on attempts.
    pub fn may_try(&self, now_us: u64, interval_us: u64, most: i32) -> bool {
        if u32::try_from(most).is_ok_and(|most| self.attempts.load(Ordering::Relaxed) >= most) {
            return false;
        }
        let due = self.due_us.load(Ordering::Relaxed);
        now_us >= due
            && self
                .due_us
                .compare_exchange(
                    due,
                    now_us + interval_us,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// Counts an attempt and returns how many there were.
    pub fn begin(&self) -> u32 {
        self.attempts.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The database runs again.
    pub fn succeed(&self) {
        self.attempts.store(0, Ordering::Relaxed);
    }
}
