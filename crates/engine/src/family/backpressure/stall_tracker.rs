//! Which writers are held back now, and how that time gets into the ledger.
//!
//! Every wait of a writer goes through [`StallGuard::during`]. Under one lock it is known which
//! call waits for what. Two sums are kept of it, by reason:
//!
//! - *Time of the clock.* Whenever it changes which calls wait, the time since the last change is
//!   charged to the gravest reason. So a moment is entered once, however many calls wait.
//! - *Time of writers.* What each call waited, added up over calls.
//!
//! A stop is entered as it goes on. A call that waits for the pace of its family is *delayed* if it
//! is held back for [`PAUSE_US`] or more in total, and *paced* if it goes on sooner, however
//! the wait was divided. So its time is kept with the call until that is known. `observe/stall`
//! says what counts as held back. Only writers that wait anyway come here: it costs the others
//! nothing.
//!
//! A stall is over when no writer is held back and all gates are open. One that was long
//! gets a line in the LOG.

use super::write_controller::{LONG_STALL_US, PAUSE_US};
use crate::family::Family;
use crate::observe::{
    HistogramId, InfoLog, PerfMetric, StallCause, StallKind, StallLedger, StallTime, Statistics,
    Ticker, perf_count_write,
};
use esker_env::Clock;
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::{Arc, Mutex, OnceLock, Rank, Weak};
use smallvec::SmallVec;
use std::fmt::Write as _;

/// Why a writer waits.
#[derive(Clone, Debug)]
pub(crate) struct StallReason {
    cause: StallCause,
    /// A stop or a delay: whether a delay is none but a pace is known later.
    kind: StallKind,
    /// The family that caused it; dangling when it was none.
    family: Weak<Family>,
}

impl StallReason {
    pub(crate) fn of_family(cause: StallCause, kind: StallKind, family: Weak<Family>) -> Self {
        StallReason {
            cause,
            kind,
            family,
        }
    }

    /// A reason that no family alone has caused.
    pub(crate) fn of_database(cause: StallCause) -> Self {
        Self::of_family(cause, StallKind::Stop, Weak::new())
    }

    fn is_same(&self, other: &StallReason) -> bool {
        (self.cause, self.kind) == (other.cause, other.kind)
            && Weak::ptr_eq(&self.family, &other.family)
    }

    fn weight(&self) -> (u8, bool) {
        (self.kind as u8, self.cause != StallCause::LowPriority)
    }
}

/// Time that a call has waited for one reason.
#[derive(Debug)]
struct Wait {
    reason: StallReason,
    /// Time that is not in the ledger yet.
    time: StallTime,
    /// It is in the ledger as one wait.
    is_counted: bool,
    /// Total time that the call waited for the reason.
    waited_us: u64,
}

/// A write that was held back and has not gone on for good.
#[derive(Debug)]
struct Call {
    number: u64,
    /// By reason.
    waits: SmallVec<[Wait; 1]>,
    /// Which of them it waits for now, and up to when that time is in `held_us`.
    now: Option<(usize, u64)>,
    held_us: u64,
}

/// Time that is to be entered into the ledger.
struct LedgerEntry {
    reason: StallReason,
    kind: StallKind,
    time: StallTime,
    is_new: bool,
}

type LedgerEntries = SmallVec<[LedgerEntry; 2]>;

impl Call {
    fn begin(&mut self, reason: &StallReason, now_us: u64) {
        let known = self.waits.iter().position(|w| w.reason.is_same(reason));
        let at = known.unwrap_or(self.waits.len());
        if known.is_none() {
            self.waits.push(Wait {
                reason: reason.clone(),
                time: StallTime::default(),
                is_counted: false,
                waited_us: 0,
            });
        }
        self.now = Some((at, now_us));
    }

    /// Takes in what it has waited up to now.
    fn advance(&mut self, now_us: u64) {
        let Some((at, since_us)) = &mut self.now else {
            return;
        };
        let us = now_us.saturating_sub(std::mem::replace(since_us, now_us));
        self.held_us += us;
        if let Some(wait) = self.waits.get_mut(*at) {
            wait.time.writers_us += us;
            wait.waited_us += us;
        }
    }

    /// Time of the clock that is charged to what it waits for now.
    fn charge(&mut self, us: u64) {
        if let Some(wait) = self.now.and_then(|(at, _)| self.waits.get_mut(at)) {
            wait.time.clock_us += us;
        }
    }

    /// The word for a wait of the call, as far as it is known.
    fn kind_of(&self, wait: &Wait) -> Option<StallKind> {
        match wait.reason.kind {
            StallKind::Stop => Some(StallKind::Stop),
            _ => (self.held_us >= PAUSE_US).then_some(StallKind::Delay),
        }
    }

    /// Gives what may be entered to `entries`; `is_over` says that the rest was paced.
    fn give(&mut self, is_over: bool, entries: &mut LedgerEntries) {
        for at in 0..self.waits.len() {
            let kind = self.kind_of(&self.waits[at]);
            let Some(kind) = kind.or(is_over.then_some(StallKind::Pace)) else {
                continue;
            };
            let wait = &mut self.waits[at];
            let time = std::mem::take(&mut wait.time);
            let is_new = !std::mem::replace(&mut wait.is_counted, true);
            if is_new || time != StallTime::default() {
                entries.push(LedgerEntry {
                    reason: wait.reason.clone(),
                    kind,
                    time,
                    is_new,
                });
            }
        }
    }
}

/// The calls that are held back.
#[derive(Debug, Default)]
struct Waiters {
    /// Those whose waits are not over, between two looks as well.
    calls: Vec<Call>,
    last_number: u64,
    /// Up to when the time is charged.
    charged_us: u64,
    stall: Stall,
}

/// Time that has been entered since writers last went freely.
#[derive(Debug, Default)]
struct Stall {
    /// When the first writer was held back.
    began_us: Option<u64>,
    by_reason: Vec<(StallCause, StallKind, StallTime)>,
}

impl Stall {
    fn add(&mut self, entry: &LedgerEntry) {
        let (cause, kind) = (entry.reason.cause, entry.kind);
        let mut known = self.by_reason.iter_mut();
        match known.find(|(c, k, _)| (*c, *k) == (cause, kind)) {
            Some((_, _, time)) => *time += entry.time,
            None => self.by_reason.push((cause, kind, entry.time)),
        }
    }

    fn clock_us(&self) -> u64 {
        self.by_reason.iter().map(|(_, _, t)| t.clock_us).sum()
    }

    fn writers_us(&self, kind: StallKind) -> u64 {
        let of_kind = self.by_reason.iter().filter(|(_, k, _)| *k == kind);
        of_kind.map(|(_, _, t)| t.writers_us).sum()
    }
}

impl Waiters {
    /// Charges the time of the clock up to `now_us` to the call with the gravest reason.
    fn charge(&mut self, now_us: u64, entries: &mut LedgerEntries) {
        let from_us = std::mem::replace(&mut self.charged_us, now_us);
        let waiting = self.calls.iter_mut().rev().filter_map(|c| {
            let (at, _) = c.now?;
            let weight = c.waits.get(at)?.reason.weight();
            Some((weight, c))
        });
        let Some((_, heaviest)) = waiting.max_by_key(|(weight, _)| *weight) else {
            return;
        };
        let us = now_us.saturating_sub(from_us);
        if us > 0 {
            heaviest.charge(us);
            heaviest.give(false, entries);
            self.stall.began_us.get_or_insert(from_us);
        }
    }

    fn call(&mut self, number: u64) -> Option<&mut Call> {
        self.calls.iter_mut().find(|c| c.number == number)
    }
}

/// Keeps the account.
#[derive(Debug)]
pub(crate) struct StallTracker {
    clock: Arc<dyn Clock>,
    ledger: Arc<StallLedger>,
    statistics: Option<Arc<Statistics>>,
    info_log: OnceLock<Arc<InfoLog>>,
    /// Some family's gate has a pace, or is closed.
    is_gated: AtomicBool,
    now: Mutex<Waiters>,
}

impl StallTracker {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        ledger: Arc<StallLedger>,
        statistics: Option<Arc<Statistics>>,
    ) -> Self {
        StallTracker {
            clock,
            ledger,
            statistics,
            info_log: OnceLock::new(),
            is_gated: AtomicBool::new(false),
            now: Mutex::new(Rank::LEAF, Waiters::default()),
        }
    }

    /// Where long stalls are told.
    pub(crate) fn tell(&self, info_log: Arc<InfoLog>) {
        let _once = self.info_log.set(info_log);
    }

    /// Charges the time up to now, changes which calls wait, and enters what is known then.
    fn change<R>(&self, change: impl FnOnce(&mut Waiters, u64, &mut LedgerEntries) -> R) -> R {
        let mut entries = LedgerEntries::new();
        let mut now = self.now.lock();
        let now_us = self.clock.now_us();
        now.charge(now_us, &mut entries);
        let out = change(&mut now, now_us, &mut entries);
        entries.iter().for_each(|e| now.stall.add(e));
        drop(now);
        // Without the lock: the family may end with the reference to it.
        entries.into_iter().for_each(|e| self.enter(&e));
        out
    }

    fn enter(&self, entry: &LedgerEntry) {
        let (cause, kind) = (entry.reason.cause, entry.kind);
        self.ledger.enter(cause, kind, entry.time, entry.is_new);
        if let Some(s) = &self.statistics
            && kind.is_stall_of(cause)
        {
            s.add(Ticker::StallMicros, entry.time.clock_us);
        }
        if let Some(f) = entry.reason.family.upgrade() {
            f.stalls.enter(cause, kind, entry.time, entry.is_new);
        }
    }

    /// Enters the time of waits that are under way, for the reader of the ledger.
    pub(crate) fn settle(&self) {
        self.change(|now, now_us, entries| {
            for call in &mut now.calls {
                call.advance(now_us);
                call.give(false, entries);
            }
        });
    }

    /// A call goes on: enters what is left of it.
    fn end(&self, number: u64) {
        let ended = self.change(|now, _, entries| {
            let at = now.calls.iter().position(|c| c.number == number)?;
            let mut call = now.calls.swap_remove(at);
            call.give(true, entries);
            Some(call)
        });
        let Some(call) = ended else {
            return;
        };
        let mut stalled_us = 0;
        for wait in &call.waits {
            let (cause, us) = (wait.reason.cause, wait.waited_us);
            let kind = call.kind_of(wait).unwrap_or(StallKind::Pace);
            self.ledger.longest(cause, kind, us);
            if let Some(f) = wait.reason.family.upgrade() {
                f.stalls.longest(cause, kind, us);
            }
            stalled_us += us * u64::from(kind.is_stall_of(cause));
        }
        if let Some(s) = &self.statistics
            && stalled_us > 0
        {
            s.record(HistogramId::WriteStall, stalled_us);
        }
        perf_count_write(
            PerfMetric::WriteDelayTime,
            call.held_us.saturating_mul(1_000),
        );
    }

    /// Returns whether some family's gate has a pace now, or is closed.
    pub(crate) fn set_gated(&self, is_gated: bool) {
        self.is_gated.store(is_gated, Ordering::Release);
    }

    /// Ends the stall when no writer is held back; all gates are open.
    pub(crate) fn calm(&self) {
        let mut now = self.now.lock();
        let Some(began_us) = now.stall.began_us else {
            return;
        };
        if !now.calls.is_empty() {
            return;
        }
        let stall = std::mem::take(&mut now.stall);
        let took_us = now.charged_us.saturating_sub(began_us);
        drop(now);
        if stall.clock_us() < LONG_STALL_US {
            return;
        }
        let Some(log) = self.info_log.get() else {
            return;
        };
        let mut parts = String::new();
        for (cause, kind, time) in &stall.by_reason {
            // Writing to a string cannot fail.
            let _ = write!(
                parts,
                ", {}-{} {} us",
                cause.name(),
                kind.name(),
                time.clock_us
            );
        }
        for kind in StallKind::ALL.into_iter().rev() {
            let _ = write!(parts, ", {} {} us", kind.word(), stall.writers_us(kind));
        }
        log.info(format_args!(
            "a stall ended: writers were held back for {} us of {took_us} us{parts} of writers' time",
            stall.clock_us()
        ));
    }
}

/// One call's waits, from the first time that it may not go on until it does.
#[derive(Debug)]
pub(crate) struct StallGuard<'a> {
    tracker: &'a StallTracker,
    /// The call's number; none while it has not waited.
    call: Option<u64>,
}

impl<'a> StallGuard<'a> {
    /// A call that has not waited yet.
    #[inline]
    pub(crate) fn new(tracker: &'a StallTracker) -> Self {
        StallGuard {
            tracker,
            call: None,
        }
    }

    /// Waits, for `reason`.
    #[cold]
    pub(crate) fn during<R>(&mut self, reason: StallReason, wait: impl FnOnce() -> R) -> R {
        let known = self.call;
        let number = self.tracker.change(|now, now_us, entries| {
            let number = known.unwrap_or_else(|| {
                now.last_number += 1;
                now.calls.push(Call {
                    number: now.last_number,
                    waits: SmallVec::new(),
                    now: None,
                    held_us: 0,
                });
                now.last_number
            });
            if let Some(call) = now.call(number) {
                call.begin(&reason, now_us);
                call.give(false, entries);
            }
            number
        });
        self.call = Some(number);
        let done = wait();
        self.tracker.change(|now, now_us, entries| {
            if let Some(call) = now.call(number) {
                call.advance(now_us);
                call.now = None;
                call.give(false, entries);
            }
        });
        done
    }
}

impl Drop for StallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(number) = self.call {
            self.tracker.end(number);
            if !self.tracker.is_gated.load(Ordering::Acquire) {
                self.tracker.calm();
            }
        }
    }
}
