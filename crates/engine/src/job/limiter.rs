//! The limit on what a database's jobs read and write: its own, or one that it shares with others.

use super::Wake;
use crate::memory::{IoPriority, RateLimiter, RateLimiterOptions};
use crate::options::DbOptions;
use esker_env::Clock;
use esker_status::Result;
use esker_sync::Arc;

#[derive(Debug)]
pub(crate) struct Limiter {
    limiter: Arc<RateLimiter>,
    is_shared: bool,
}

impl Limiter {
    pub(crate) fn new(clock: Arc<dyn Clock>, options: &DbOptions) -> Self {
        let own = || {
            RateLimiter::with_options(RateLimiterOptions {
                bytes_per_second: options.rate_limiter_bytes_per_sec,
                clock: Some(clock),
                ..RateLimiterOptions::default()
            })
        };
        Limiter {
            is_shared: options.rate_limiter.is_some(),
            limiter: options.rate_limiter.clone().unwrap_or_else(own),
        }
    }

    /// Changes the database's own limit; a shared one is changed by its owner.
    pub(crate) fn set(&self, bytes_per_second: u64) {
        if !self.is_shared {
            self.limiter.set_bytes_per_second(bytes_per_second);
        }
    }

    /// Waits until `bytes` more may be written. `ShutdownInProgress` when the database closes.
    pub(crate) fn write(&self, bytes: u64, priority: IoPriority, wake: &Wake) -> Result<()> {
        if bytes > 0 && self.limiter.limits_writes() {
            self.limiter
                .request(bytes, priority, || wake.is_closing())?;
        }
        Ok(())
    }

    /// Waits until `bytes` more may be read.
    pub(crate) fn read(&self, bytes: u64, priority: IoPriority, wake: &Wake) -> Result<()> {
        if bytes > 0 && self.limiter.limits_reads() {
            self.limiter
                .request(bytes, priority, || wake.is_closing())?;
        }
        Ok(())
    }
}
