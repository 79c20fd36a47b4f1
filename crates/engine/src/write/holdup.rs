//! Who is held back now, and the way of that time into the ledger.
//!
//! Every wait of a writer goes through [`Held::during`]. Under one lock it is known who waits for what; whenever
//! that changes, the time since the last change is charged to the gravest reason. So a moment is entered once, and a wait
//! whose reason changes under way is entered in parts, each under the reason of its time. `observe/stall` says what
//! counts as held back. Only writers that wait anyway come here: it costs the others nothing.
//!
//! A stall is over when no writer is held back and nothing presses on writers. One that was long gets a line in the LOG.

use crate::family::Family;
use crate::observe::{
    HistogramId, InfoLog, PerfMetric, StallCause, StallKind, StallLedger, Statistics, Ticker,
    perf_count,
};
use esker_env::Clock;
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::{Arc, Mutex, OnceLock, Rank, Weak};
use std::fmt::Write as _;

/// A stall of so much stalled time is told when it ends.
const LONG_US: u64 = 1_000_000;

/// Why a writer waits.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    cause: StallCause,
    kind: StallKind,
    /// The family that caused it; dangling when it was none.
    family: Weak<Family>,
}

impl Reason {
    pub(crate) fn of_family(cause: StallCause, kind: StallKind, family: Weak<Family>) -> Self {
        Reason {
            cause,
            kind,
            family,
        }
    }

    /// A reason that no family alone has caused.
    pub(crate) fn of_database(cause: StallCause) -> Self {
        Self::of_family(cause, StallKind::Stop, Weak::new())
    }

    fn is_same(&self, other: &Reason) -> bool {
        (self.cause, self.kind) == (other.cause, other.kind)
            && Weak::ptr_eq(&self.family, &other.family)
    }

    fn weight(&self) -> (u8, bool) {
        (self.kind as u8, self.cause != StallCause::LowPriority)
    }
}

/// The writers that are held back.
#[derive(Debug, Default)]
struct Now {
    waiting: Vec<Reason>,
    /// Up to when the time is charged.
    charged_us: u64,
    /// Writers whose wait is not over, those between two looks included.
    open: usize,
    stall: Stall,
}

/// What has been charged since writers last went freely.
#[derive(Debug, Default)]
struct Stall {
    began_us: u64,
    stalled_us: u64,
    by_reason: Vec<(StallCause, StallKind, u64)>,
}

impl Stall {
    fn add(&mut self, from_us: u64, reason: &Reason, stall_us: u64) {
        if self.stalled_us == 0 {
            self.began_us = from_us;
        }
        self.stalled_us += stall_us;
        let mut known = self.by_reason.iter_mut();
        match known.find(|(c, k, _)| (*c, *k) == (reason.cause, reason.kind)) {
            Some((_, _, us)) => *us += stall_us,
            None => self.by_reason.push((reason.cause, reason.kind, stall_us)),
        }
    }
}

impl Now {
    /// Charges the time up to `now_us`: the reason, and how much.
    fn charge(&mut self, now_us: u64) -> Option<(Reason, u64)> {
        let from_us = std::mem::replace(&mut self.charged_us, now_us);
        let gravest = self.waiting.iter().rev().max_by_key(|r| r.weight())?;
        let stall_us = now_us.saturating_sub(from_us);
        if stall_us == 0 {
            return None;
        }
        self.stall.add(from_us, gravest, stall_us);
        Some((gravest.clone(), stall_us))
    }
}

/// Keeps the account.
#[derive(Debug)]
pub(crate) struct Holdups {
    clock: Arc<dyn Clock>,
    ledger: Arc<StallLedger>,
    statistics: Option<Arc<Statistics>>,
    info_log: OnceLock<Arc<InfoLog>>,
    /// Some family presses on its writers.
    pressed: AtomicBool,
    now: Mutex<Now>,
}

impl Holdups {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        ledger: Arc<StallLedger>,
        statistics: Option<Arc<Statistics>>,
    ) -> Self {
        Holdups {
            clock,
            ledger,
            statistics,
            info_log: OnceLock::new(),
            pressed: AtomicBool::new(false),
            now: Mutex::new(Rank::LEAF, Now::default()),
        }
    }

    /// Where long stalls are told.
    pub(crate) fn tell(&self, info_log: Arc<InfoLog>) {
        let _once = self.info_log.set(info_log);
    }

    /// Charges the time up to now and changes who waits. Returns the time.
    fn change(&self, change: impl FnOnce(&mut Now)) -> u64 {
        let mut now = self.now.lock();
        let now_us = self.clock.now_us();
        let charged = now.charge(now_us);
        change(&mut now);
        drop(now);
        // Without the lock: the family may end with the reference to it.
        if let Some((reason, stall_us)) = charged {
            self.ledger.charge(reason.cause, reason.kind, stall_us);
            if let Some(s) = &self.statistics {
                s.add(Ticker::StallMicros, stall_us);
            }
            if let Some(f) = reason.family.upgrade() {
                f.stalls.charge(reason.cause, reason.kind, stall_us);
            }
        }
        now_us
    }

    /// Charges the time of waits that are under way, for whoever reads the ledger now.
    pub(crate) fn settle(&self) {
        self.change(|_| {});
    }

    fn begin(&self, reason: &Reason) {
        self.ledger.begin(reason.cause, reason.kind);
        let Some(f) = reason.family.upgrade() else {
            return;
        };
        f.stalls.begin(reason.cause, reason.kind);
        if reason.cause == StallCause::L0FileCountLimit
            && f.level0_compactions.load(Ordering::Relaxed) > 0
        {
            f.stalls.add_during_compaction(reason.kind);
        }
    }

    fn end(&self, reason: &Reason, waited_us: u64) {
        self.ledger.end(reason.cause, reason.kind, waited_us);
        if let Some(f) = reason.family.upgrade() {
            f.stalls.end(reason.cause, reason.kind, waited_us);
        }
        if let Some(s) = &self.statistics {
            s.record(HistogramId::WriteStall, waited_us);
        }
        perf_count(PerfMetric::WriteDelayTime, waited_us.saturating_mul(1_000));
    }

    /// Whether some family presses on its writers now.
    pub(crate) fn set_pressed(&self, pressed: bool) {
        self.pressed.store(pressed, Ordering::Release);
    }

    /// Ends the stall when no writer is held back; nothing presses on them.
    pub(crate) fn calm(&self) {
        let mut now = self.now.lock();
        if now.open > 0 || now.stall.stalled_us == 0 {
            return;
        }
        let stall = std::mem::take(&mut now.stall);
        let took_us = now.charged_us.saturating_sub(stall.began_us);
        drop(now);
        if stall.stalled_us < LONG_US {
            return;
        }
        let Some(log) = self.info_log.get() else {
            return;
        };
        let mut parts = String::new();
        for (cause, kind, us) in stall.by_reason {
            // Writing to a string cannot fail.
            let _ = write!(parts, ", {}-{} {us} us", cause.name(), kind.name());
        }
        log.info(format_args!(
            "a stall ended: writers were held back for {} us of {took_us} us{parts}",
            stall.stalled_us
        ));
    }
}

/// One writer's wait, from the first time that it may not go on until it does.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    holdups: &'a Holdups,
    /// What it waited for last; none while it did not wait.
    reason: Option<Reason>,
    waited_us: u64,
}

impl<'a> Held<'a> {
    /// A writer that has not waited yet.
    #[inline]
    pub(crate) fn new(holdups: &'a Holdups) -> Self {
        Held {
            holdups,
            reason: None,
            waited_us: 0,
        }
    }

    /// Waits, for `reason`.
    #[cold]
    pub(crate) fn during<R>(&mut self, reason: Reason, wait: impl FnOnce() -> R) -> R {
        let is_new = self.reason.as_ref().is_none_or(|r| !r.is_same(&reason));
        let is_first = self.reason.is_none();
        if is_new {
            self.end();
        }
        let waiting = reason.clone();
        let start_us = self.holdups.change(|now| {
            now.open += usize::from(is_first);
            now.waiting.push(waiting);
        });
        if is_new {
            self.holdups.begin(&reason);
            self.reason = Some(reason.clone());
        }
        let done = wait();
        let end_us = self.holdups.change(|now| {
            if let Some(at) = now.waiting.iter().position(|r| r.is_same(&reason)) {
                now.waiting.remove(at);
            }
        });
        self.waited_us += end_us.saturating_sub(start_us);
        done
    }

    /// Ends what was waited for so far.
    fn end(&mut self) {
        if let Some(reason) = self.reason.take() {
            self.holdups
                .end(&reason, std::mem::take(&mut self.waited_us));
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.reason.is_some() {
            self.end();
            self.holdups.now.lock().open -= 1;
            if !self.holdups.pressed.load(Ordering::Acquire) {
                self.holdups.calm();
            }
        }
    }
}
