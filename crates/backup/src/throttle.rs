//! A limit on the bytes a second that are copied.

use esker::env::Clock;
use esker_sync::{Arc, Mutex, Rank};
use std::time::Duration;

/// Sleeps are no longer than this, so that a backup that is stopped ends soon.
const LONGEST_SLEEP_US: u64 = 100_000;

/// Copies wait here until the bytes before theirs are paid for. Shared by the threads of all operations.
#[derive(Debug)]
pub(crate) struct Throttle {
    clock: Arc<dyn Clock>,
    /// 0 is no limit.
    bytes_per_second: u64,
    paid_until_us: Mutex<u64>,
}

impl Throttle {
    pub(crate) fn new(clock: Arc<dyn Clock>, bytes_per_second: u64) -> Self {
        Throttle {
            clock,
            bytes_per_second,
            paid_until_us: Mutex::new(Rank::LEAF, 0),
        }
    }

    /// How many bytes to take at a time: a tenth of a second's, at most `most`.
    pub(crate) fn burst(&self, most: usize) -> usize {
        match self.bytes_per_second {
            0 => most,
            rate => usize::try_from(rate / 10).unwrap_or(most).clamp(1, most),
        }
    }

    /// Waits until `bytes` more may be written, or `stopped`.
    pub(crate) fn request(&self, bytes: u64, stopped: impl Fn() -> bool) {
        if self.bytes_per_second == 0 {
            return;
        }
        let due = {
            let mut paid = self.paid_until_us.lock();
            let cost = bytes.saturating_mul(1_000_000) / self.bytes_per_second;
            *paid = (*paid).max(self.clock.now_us()).saturating_add(cost);
            *paid
        };
        loop {
            let left = due.saturating_sub(self.clock.now_us());
            if left == 0 || stopped() {
                return;
            }
            self.clock
                .sleep(Duration::from_micros(left.min(LONGEST_SLEEP_US)));
        }
    }
}
