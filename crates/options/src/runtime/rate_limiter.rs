//! A limit on the bytes a second that background jobs read and write, which several databases may
//! share.
//!
//! Each request is put on an account that is paid at the rate; it waits until its own bytes are
//! paid for, except for those of one refill period, which may go at once. There are two lines:
//! urgent requests (flushes) wait for urgent ones alone, all others for everybody, so flushes
//! overtake compactions; every `fairness`-th urgent request stands in the common line, so that
//! compactions get on. Both lines together never exceed the rate by more than one period.
//!
//! With `auto_tuned` the rate moves between a twentieth of the given one and the given one, with
//! how many of the last hundred periods were used up. Thread-safety: any thread; a request holds a
//! lock for a few instructions and sleeps without it.

use esker_env::{Clock, Env};
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, Mutex, Rank};
use std::time::Duration;

/// Longest sleep before the caller's patience is asked again, in microseconds.
const NAP_US: u64 = 50_000;
/// Refill periods between two looks at the rate.
const TUNE_PERIODS: u64 = 100;
/// How far below the given rate tuning goes.
const TUNE_RANGE: u64 = 20;

/// Kinds of I/O that a [`RateLimiter`] limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimiterMode {
    /// Reads of compactions.
    ReadsOnly,
    /// Writes of flushes and compactions.
    #[default]
    WritesOnly,
    /// Both together.
    AllIo,
}

impl RateLimiterMode {
    /// The mode with RocksDB's number.
    pub fn from_number(number: i32) -> Option<Self> {
        match number {
            0 => Some(RateLimiterMode::ReadsOnly),
            1 => Some(RateLimiterMode::WritesOnly),
            2 => Some(RateLimiterMode::AllIo),
            _ => None,
        }
    }
}

/// How urgent a request to a [`RateLimiter`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoPriority {
    /// Compactions.
    Low,
    /// Between the two.
    Mid,
    /// Flushes.
    High,
    /// Callers.
    User,
}

/// How to make a [`RateLimiter`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RateLimiterOptions {
    /// Bytes a second; 0 for no limit.
    pub bytes_per_second: u64,
    /// Microseconds whose bytes may be used at once.
    pub refill_period_us: u64,
    /// One in this many urgent requests waits with the others.
    pub fairness: u32,
    /// The kinds of I/O that are limited.
    pub mode: RateLimiterMode,
    /// Lowers the rate while less is used.
    pub auto_tuned: bool,
    /// Time; `None` for the operating system's.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Default for RateLimiterOptions {
    fn default() -> Self {
        RateLimiterOptions {
            bytes_per_second: 0,
            refill_period_us: 100_000,
            fairness: 10,
            mode: RateLimiterMode::default(),
            auto_tuned: false,
            clock: None,
        }
    }
}

/// The accounts.
#[derive(Debug, Default)]
struct Accounts {
    /// Until when urgent requests are paid for.
    urgent_until_us: u64,
    /// Until when all requests are paid for.
    all_until_us: u64,
    urgent_requests: u64,
    /// When the rate was looked at last.
    tuned_us: u64,
    /// Periods since then in which a request waited.
    drained_periods: u64,
    last_drained_period: u64,
}

/// A limit that several databases may share: see [`crate::options::DbOptions::rate_limiter`].
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Db, Options, RateLimiter};
///
/// let limiter = RateLimiter::new(64 << 20);
/// let mut options = Options::new().create_if_missing(true);
/// options.db.rate_limiter = Some(limiter.clone());
/// let db = Db::open(dir.path(), options)?;
/// db.put("key", "value")?;
/// db.flush()?;
/// assert!(limiter.total_bytes(None) > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    mode: RateLimiterMode,
    fairness: u64,
    refill_period_us: u64,
    auto_tuned: bool,
    /// The rate that was given, and the one in force; 0 is no limit.
    bytes_per_second_max: AtomicU64,
    bytes_per_second: AtomicU64,
    accounts: Mutex<Accounts>,
    bytes: [AtomicU64; 4],
    requests: [AtomicU64; 4],
}

impl RateLimiter {
    /// A limit on writes of `bytes_per_second`.
    pub fn new(bytes_per_second: u64) -> Arc<Self> {
        Self::with_options(RateLimiterOptions {
            bytes_per_second,
            ..RateLimiterOptions::default()
        })
    }

    /// A limit as `options` say.
    pub fn with_options(options: RateLimiterOptions) -> Arc<Self> {
        let clock = options.clock.unwrap_or_else(|| Env::posix().clock);
        let accounts = Accounts {
            tuned_us: clock.now_us(),
            ..Accounts::default()
        };
        let max = options.bytes_per_second;
        // As in RocksDB, tuning begins in the middle.
        let rate = if options.auto_tuned { max / 2 } else { max };
        Arc::new(RateLimiter {
            clock,
            mode: options.mode,
            fairness: u64::from(options.fairness.clamp(1, 100)),
            refill_period_us: options.refill_period_us.max(1_000),
            auto_tuned: options.auto_tuned,
            bytes_per_second_max: AtomicU64::new(max),
            bytes_per_second: AtomicU64::new(if max > 0 { rate.max(1) } else { 0 }),
            accounts: Mutex::new(Rank::LEAF, accounts),
            bytes: Default::default(),
            requests: Default::default(),
        })
    }

    /// Returns the kinds of I/O that are limited.
    pub fn mode(&self) -> RateLimiterMode {
        self.mode
    }

    /// Bytes a second that are granted now.
    pub fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second.load(Ordering::Relaxed)
    }

    /// Changes the rate; 0 for no limit.
    pub fn set_bytes_per_second(&self, bytes_per_second: u64) {
        self.bytes_per_second_max
            .store(bytes_per_second, Ordering::Relaxed);
        self.bytes_per_second
            .store(bytes_per_second, Ordering::Relaxed);
    }

    /// Bytes that may be used at once.
    pub fn single_burst_bytes(&self) -> u64 {
        self.bytes_per_second()
            .saturating_mul(self.refill_period_us)
            / 1_000_000
    }

    /// Bytes granted so far, of one priority or all.
    pub fn total_bytes(&self, priority: Option<IoPriority>) -> u64 {
        sum(&self.bytes, priority)
    }

    /// Requests granted so far, of one priority or all.
    pub fn total_requests(&self, priority: Option<IoPriority>) -> u64 {
        sum(&self.requests, priority)
    }

    /// Returns whether what jobs write is limited.
    pub fn limits_writes(&self) -> bool {
        self.mode != RateLimiterMode::ReadsOnly
    }

    /// Returns whether what compactions read is limited.
    pub fn limits_reads(&self) -> bool {
        self.mode != RateLimiterMode::WritesOnly
    }

    /// Waits until `bytes` more may be read or written. `ShutdownInProgress` once `is_over` says
    /// so.
    pub fn request(
        &self,
        bytes: u64,
        priority: IoPriority,
        is_over: impl Fn() -> bool,
    ) -> Result<()> {
        self.bytes[priority as usize].fetch_add(bytes, Ordering::Relaxed);
        self.requests[priority as usize].fetch_add(1, Ordering::Relaxed);
        let mut now = self.clock.now_us();
        let due = self.enter(bytes, priority, now);
        loop {
            if is_over() {
                return Err(Error::shutdown());
            }
            if now >= due {
                return Ok(());
            }
            self.clock
                .sleep(Duration::from_micros((due - now).min(NAP_US)));
            now = self.clock.now_us();
        }
    }

    /// Puts a request on its account; when it may go on.
    fn enter(&self, bytes: u64, priority: IoPriority, now: u64) -> u64 {
        let mut accounts = self.accounts.lock();
        if self.auto_tuned {
            self.tune(&mut accounts, now);
        }
        let rate = self.bytes_per_second();
        if rate == 0 {
            return now;
        }
        let cost = u64::try_from(u128::from(bytes) * 1_000_000 / u128::from(rate))
            .unwrap_or(u64::MAX / 4)
            .min(u64::MAX / 4);
        accounts.all_until_us = accounts.all_until_us.max(now).saturating_add(cost);
        let mut until = accounts.all_until_us;
        if matches!(priority, IoPriority::High | IoPriority::User) {
            accounts.urgent_until_us = accounts.urgent_until_us.max(now).saturating_add(cost);
            accounts.urgent_requests += 1;
            if !accounts.urgent_requests.is_multiple_of(self.fairness) {
                until = accounts.urgent_until_us;
            }
        }
        let due = until.saturating_sub(self.refill_period_us);
        if due > now {
            let period = now / self.refill_period_us;
            if accounts.last_drained_period != period {
                accounts.last_drained_period = period;
                accounts.drained_periods += 1;
            }
        }
        due
    }

    /// Moves the rate with how much of the last periods was used up.
    fn tune(&self, accounts: &mut Accounts, now: u64) {
        let periods = now.saturating_sub(accounts.tuned_us) / self.refill_period_us;
        if periods < TUNE_PERIODS {
            return;
        }
        let max = self.bytes_per_second_max.load(Ordering::Relaxed);
        let least = (max / TUNE_RANGE).max(1);
        let rate = self.bytes_per_second();
        let next = match accounts.drained_periods * 100 / periods {
            0 if accounts.drained_periods == 0 => least,
            0..50 => rate.saturating_mul(100) / 105,
            50..=90 => rate,
            _ => rate.saturating_mul(105) / 100,
        };
        if max > 0 {
            self.bytes_per_second
                .store(next.clamp(least, max.max(least)), Ordering::Relaxed);
        }
        accounts.tuned_us = now;
        accounts.drained_periods = 0;
    }
}

fn sum(counters: &[AtomicU64; 4], priority: Option<IoPriority>) -> u64 {
    match priority {
        Some(p) => counters[p as usize].load(Ordering::Relaxed),
        None => counters.iter().map(|c| c.load(Ordering::Relaxed)).sum(),
    }
}
