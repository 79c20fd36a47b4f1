//! A limit on the bytes a second that background jobs write: a token bucket.

use super::Wake;
use esker_env::Clock;
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, Mutex, Rank};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Limiter {
    clock: Arc<dyn Clock>,
    /// 0 is no limit.
    bytes_per_second: AtomicU64,
    /// When the bytes granted so far are paid for.
    paid_until_us: Mutex<u64>,
}

impl Limiter {
    pub(crate) fn new(clock: Arc<dyn Clock>, bytes_per_second: u64) -> Self {
        Limiter {
            clock,
            bytes_per_second: AtomicU64::new(bytes_per_second),
            paid_until_us: Mutex::new(Rank::LEAF, 0),
        }
    }

    pub(crate) fn set(&self, bytes_per_second: u64) {
        self.bytes_per_second
            .store(bytes_per_second, Ordering::Relaxed);
    }

    /// Waits until `bytes` more may be written. `ShutdownInProgress` when the database closes.
    pub(crate) fn request(&self, bytes: u64, wake: &Wake) -> Result<()> {
        if wake.is_closing() {
            return Err(Error::shutdown());
        }
        let rate = self.bytes_per_second.load(Ordering::Relaxed);
        if rate == 0 {
            return Ok(());
        }
        let now = self.clock.now_us();
        let due = {
            let mut paid = self.paid_until_us.lock();
            *paid = (*paid).max(now) + bytes.saturating_mul(1_000_000) / rate;
            *paid
        };
        if due > now + 1_000 {
            self.clock
                .sleep(Duration::from_micros((due - now).min(1_000_000)));
        }
        Ok(())
    }
}
