//! The limit on what a database's jobs read and write: its own, or one that it shares with others.
//! Thread-safety: any thread.

use super::{BackgroundCv, IoPriority, RateLimiter, RateLimiterOptions};
use esker_env::Clock;
use esker_status::Result;
use esker_sync::Arc;

/// The limit that the jobs of one database go by.
#[derive(Debug)]
pub struct JobLimiter {
    limiter: Arc<RateLimiter>,
    is_shared: bool,
}

impl JobLimiter {
    /// Takes the limiter that databases share, or makes one of `bytes_per_second`.
    pub fn new(
        clock: Arc<dyn Clock>,
        shared: Option<Arc<RateLimiter>>,
        bytes_per_second: u64,
    ) -> Self {
        let own = || {
            RateLimiter::with_options(RateLimiterOptions {
                bytes_per_second,
                clock: Some(clock),
                ..RateLimiterOptions::default()
            })
        };
        JobLimiter {
            is_shared: shared.is_some(),
            limiter: shared.unwrap_or_else(own),
        }
    }

    /// Changes the database's own limit; a shared one is changed by its owner.
    pub fn set(&self, bytes_per_second: u64) {
        if !self.is_shared {
            self.limiter.set_bytes_per_second(bytes_per_second);
        }
    }

    /// Waits until `bytes` more may be written. `ShutdownInProgress` when the database closes.
    pub fn write(&self, bytes: u64, priority: IoPriority, cv: &BackgroundCv) -> Result<()> {
        if bytes > 0 && self.limiter.limits_writes() {
            self.limiter.request(bytes, priority, || cv.is_closing())?;
        }
        Ok(())
    }

    /// Waits until `bytes` more may be read.
    pub fn read(&self, bytes: u64, priority: IoPriority, cv: &BackgroundCv) -> Result<()> {
        if bytes > 0 && self.limiter.limits_reads() {
            self.limiter.request(bytes, priority, || cv.is_closing())?;
        }
        Ok(())
    }
}
