//! The gate of one family: whether its writers go freely, at a pace, or not at all, and what they
//! owe.
//!
//! Writers that go at a pace have an account of bytes. Each puts its batch there as it comes, and
//! goes on when what was put there before it is paid, but for 150 microseconds' worth: shorter
//! waits cost more than they pace. Time pays at the rate of the pace. So the writers of a family go
//! in the order in which they came, share the rate by their bytes, and one that overslept has taken
//! nothing away from those behind it.
//!
//! Few batches look at the clock: time only pays, so what need not wait by the last look need not
//! wait now. No more than [`UNTIMED_BYTES`] bytes go between two looks, and then the pace may have
//! changed.
//!
//! The state of a gate follows from the family's view; [`super::admission`] computes it, one thread
//! at a time for each family (under the gate's lock), so that the newest view decides. Clocks and
//! sleeping are admission's, too: here time is a number.
//!
//! Rejected: *an account of all families at the slowest one's rate.* What others write would be
//! taken from the family that is behind, and all writers would wait for it. *Asking what is owed
//! and writing first, to be charged afterwards.* Each writer that waited goes on at the same moment
//! as all others that did, and no place is sure.

use super::load::stall_cause;
use crate::observe::StallCause;
use crate::ranks;
use esker_lsm::load::LoadCause;
use esker_lsm::overload::REST_US;
use esker_lsm::pace::{Limit, SLOWEST, UNLIMITED};
use esker_sync::atomic::{AtomicU8, AtomicU64, Ordering};
use esker_sync::{Condvar, Mutex, MutexGuard, Rank};
use std::time::Duration;

/// A writer goes on while no more than this is owed, in microseconds.
const SLACK_US: f64 = 150.0;
/// This many bytes may go between two looks at the clock, which takes as long as a tenth of a small
/// write.
const UNTIMED_BYTES: u64 = 8 << 10;
/// How often the pace is looked at again, and the longest wait before a writer looks at it. A call
/// that is held back for this long in total is delayed; for less, paced.
pub(super) const PAUSE_US: u64 = 1_000;
/// The longest wait of a stopped writer before it looks again.
pub(crate) const STOP_LOOK: Duration = Duration::from_millis(100);
/// A stall of at least this much stalled time is logged when it ends.
pub(super) const LONG_STALL_US: u64 = 1_000_000;

/// How the writers of a family go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ControllerState {
    /// Freely.
    Free = 0,
    /// Freely for now: memtables are being flushed, so the pace is looked at as time goes on.
    Monitored = 1,
    /// At a pace.
    Paced = 2,
    /// Not at all.
    Stopped = 3,
}

const STATES: [ControllerState; 4] = [
    ControllerState::Free,
    ControllerState::Monitored,
    ControllerState::Paced,
    ControllerState::Stopped,
];

/// Account of the bytes that writers at a pace owe.
#[derive(Debug)]
struct TokenBucket {
    /// Bytes that were ever put here.
    charged: f64,
    /// Those of them that time has paid for.
    paid: f64,
    paid_at_us: u64,
    /// Bytes a second.
    rate: f64,
}

impl TokenBucket {
    /// Lets the time until `now_us` pay.
    fn pay(&mut self, now_us: u64) {
        let seconds = now_us.saturating_sub(self.paid_at_us) as f64 / 1e6;
        self.paid_at_us = self.paid_at_us.max(now_us);
        self.paid = if self.rate == UNLIMITED {
            self.charged
        } else {
            (self.paid + seconds * self.rate).min(self.charged)
        };
    }

    /// Time pays at `rate` from now on. What may be owed is a time: when the rate falls, what goes
    /// beyond it is let go, or the next writer would wait for as many times longer as writers go
    /// slower now.
    fn go_at(&mut self, rate: f64) {
        if rate < self.rate {
            let beyond = (self.rate - rate) * SLACK_US / 1e6;
            self.paid = (self.paid + beyond).min(self.charged);
        }
        self.rate = rate;
    }

    /// Puts a batch here that need not wait by what is known to be paid; says whether it did.
    fn charge(&mut self, bytes: u64) -> bool {
        let goes_on = self.wait_us(Position(self.charged)) == 0;
        if goes_on {
            self.charged += bytes as f64;
        }
        goes_on
    }

    /// Microseconds until all is paid that a writer found here before it; 0 when little is missing.
    fn wait_us(&self, place: Position) -> u64 {
        let us = (place.0 - self.paid) / self.rate * 1e6;
        // Without a limit nothing is unpaid.
        if us > SLACK_US { us as u64 } else { 0 }
    }
}

/// A writer's place in the account: what was put there before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Position(f64);

/// The gate of a family.
#[derive(Debug)]
pub(crate) struct WriteController {
    /// The state, and above it the cause.
    state: AtomicU8,
    /// When the pace is to be looked at again, in microseconds of the clock.
    update_at_us: AtomicU64,
    /// Until when the last wait for the pace counts.
    held_until_us: AtomicU64,
    /// Bytes admitted since the clock was read.
    bytes_since_clock_read: AtomicU64,
    bucket: Mutex<TokenBucket>,
    /// Held by the thread that computes the state.
    lock: Mutex<()>,
    changed: Condvar,
}

/// The right to set a gate.
pub(crate) type ControllerLock<'a> = MutexGuard<'a, ()>;

impl WriteController {
    pub(crate) fn new() -> Self {
        WriteController {
            state: AtomicU8::new(ControllerState::Free as u8),
            update_at_us: AtomicU64::new(0),
            held_until_us: AtomicU64::new(0),
            bytes_since_clock_read: AtomicU64::new(0),
            bucket: Mutex::new(
                Rank::LEAF,
                TokenBucket {
                    charged: 0.0,
                    paid: 0.0,
                    paid_at_us: 0,
                    rate: UNLIMITED,
                },
            ),
            lock: Mutex::new(ranks::GATE, ()),
            changed: Condvar::new(),
        }
    }

    /// The state, and what it is for, which says nothing of a free gate.
    #[inline]
    pub(crate) fn read(&self) -> (ControllerState, StallCause) {
        let word = self.state.load(Ordering::Acquire);
        (
            STATES[usize::from(word & 3)],
            StallCause::ALL[usize::from(word >> 2).min(StallCause::ALL.len() - 1)],
        )
    }

    #[inline]
    pub(crate) fn state(&self) -> ControllerState {
        self.read().0
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.state() == ControllerState::Stopped
    }

    /// Waits for the right to set it.
    pub(crate) fn lock(&self) -> ControllerLock<'_> {
        self.lock.lock()
    }

    /// Takes the right to set it, if that is free.
    pub(crate) fn try_lock(&self) -> Option<ControllerLock<'_>> {
        self.lock.try_lock()
    }

    /// Sets it to the pace of `limit`, or closes it when `stop` has a cause. Wakes the writers that
    /// wait while it is closed.
    pub(crate) fn set(
        &self,
        _lock: &ControllerLock<'_>,
        now_us: u64,
        stop: Option<StallCause>,
        limit: Limit,
        is_flushing: bool,
    ) {
        self.update_at_us
            .store(now_us + PAUSE_US, Ordering::Relaxed);
        let mut bucket = self.bucket.lock();
        bucket.pay(now_us);
        bucket.go_at(limit.bytes_per_s.max(SLOWEST));
        drop(bucket);
        let (state, cause) = match stop {
            Some(cause) => (ControllerState::Stopped, cause),
            None if limit.bytes_per_s < UNLIMITED => {
                (ControllerState::Paced, stall_cause(limit.cause))
            }
            None if is_flushing => (ControllerState::Monitored, stall_cause(limit.cause)),
            None => (ControllerState::Free, stall_cause(limit.cause)),
        };
        let word = state as u8 | (cause as u8) << 2;
        self.state.store(word, Ordering::Release);
        // Stopped writers set it when they look again: they would wake one another.
        if state != ControllerState::Stopped {
            self.changed.notify_all();
        }
    }

    /// Opens it for good: the family is gone.
    pub(crate) fn open(&self, lock: &ControllerLock<'_>, now_us: u64) {
        let free = Limit {
            cause: LoadCause::Memtables,
            bytes_per_s: UNLIMITED,
        };
        self.set(lock, now_us, None, free, false);
    }

    /// Returns whether the caller is the one to look at the pace again.
    pub(crate) fn takes_rate_update(&self, now_us: u64) -> bool {
        let at = self.update_at_us.load(Ordering::Relaxed);
        let order = Ordering::Relaxed;
        now_us >= at
            && (self.update_at_us)
                .compare_exchange(at, now_us + PAUSE_US, order, order)
                .is_ok()
    }

    /// Lets a batch through, on the account where it has one, if it need not wait and a thread has
    /// looked at the clock a moment ago.
    #[inline]
    pub(crate) fn lets_through(&self, bytes: u64) -> bool {
        let state = self.state();
        // Writers side by side may count one batch for two: then the clock is read a little later.
        let bytes_since_clock_read = self.bytes_since_clock_read.load(Ordering::Relaxed) + bytes;
        if state == ControllerState::Stopped || bytes_since_clock_read > UNTIMED_BYTES {
            return false;
        }
        self.bytes_since_clock_read
            .store(bytes_since_clock_read, Ordering::Relaxed);
        state != ControllerState::Paced || self.bucket.lock().charge(bytes)
    }

    /// The clock was read.
    #[inline]
    pub(crate) fn note_look(&self) {
        self.bytes_since_clock_read.store(0, Ordering::Relaxed);
    }

    /// Puts a batch on the account: its place, and the microseconds until it may go on. None when
    /// it would have to wait and may not: then it is not on the account.
    pub(crate) fn enter(&self, now_us: u64, bytes: u64, may_wait: bool) -> Option<(Position, u64)> {
        let mut bucket = self.bucket.lock();
        bucket.pay(now_us);
        let place = Position(bucket.charged);
        let wait_us = bucket.wait_us(place);
        if wait_us > 0 && !may_wait {
            return None;
        }
        bucket.charged += bytes as f64;
        if bucket.rate == UNLIMITED {
            bucket.paid = bucket.charged;
        }
        Some((place, wait_us))
    }

    /// Microseconds until the batch with this place may go on.
    pub(crate) fn wait_us(&self, now_us: u64, place: Position) -> u64 {
        let mut bucket = self.bucket.lock();
        bucket.pay(now_us);
        bucket.wait_us(place)
    }

    /// Returns whether a batch that comes now would have to wait for the pace.
    pub(crate) fn is_in_debt(&self, now_us: u64) -> bool {
        let mut bucket = self.bucket.lock();
        bucket.pay(now_us);
        bucket.wait_us(Position(bucket.charged)) > 0
    }

    /// Waits while it is closed, a tenth of a second at most, unless `is_over`.
    pub(crate) fn wait_stopped(&self, is_over: impl FnOnce() -> bool) {
        let mut lock = self.lock.lock();
        if self.is_stopped() && !is_over() {
            self.changed.wait_for(&mut lock, STOP_LOOK);
        }
    }

    /// Makes waiting writers look again.
    pub(crate) fn wake(&self) {
        let _order = self.lock.lock();
        self.changed.notify_all();
    }

    /// The pace held a writer back until `now_us`.
    pub(crate) fn note_held(&self, now_us: u64) {
        self.held_until_us
            .store(now_us + REST_US, Ordering::Relaxed);
    }

    /// Bytes a second that its writers share, when that has held one of them back a
    /// moment ago.
    pub(crate) fn delayed_rate(&self, now_us: u64) -> Option<u64> {
        if self.state() != ControllerState::Paced
            || now_us >= self.held_until_us.load(Ordering::Relaxed)
        {
            return None;
        }
        match self.bucket.lock().rate {
            UNLIMITED => None,
            rate => Some(rate as u64),
        }
    }

    /// Returns whether it stops writers, or its pace held one back a moment ago.
    pub(crate) fn is_throttling(&self, now_us: u64) -> bool {
        self.is_stopped() || self.delayed_rate(now_us).is_some()
    }
}

#[cfg(test)]
mod tests;
