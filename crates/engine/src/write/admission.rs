//! Admission: how fast writers may go, and who waited for what.
//!
//! Each family has a [`Pressure`] computed by a pure function from its view ([`pressure`]): whether its writers have to
//! stop, and what listeners are told. Between full speed and standing still there is a pace ([`super::pace`]): the
//! slowest family's decides. Writers that go at a pace have an account of bytes: what was written is owed, and time pays at
//! the rate of the pace, which is looked at again every half millisecond. Whoever finds more owed than a tenth of a millisecond pays
//! waits, without the log lock, so that nobody's waiting holds up a flush that gives a log back. Every wait goes through
//! [`Holdups`] to the stall ledger by cause and family.

use super::holdup::{Held, Holdups, Reason};
use crate::family::{Family, FamilySet, View};
use crate::health::Health;
use crate::observe::{
    Pending, PendingEvent, StallCause, StallCondition, StallInfo, StallKind, StallLedger,
    Statistics,
};
use crate::options::{FamilyOptions, WriteOptions};
use crate::ranks;
use crate::write::pace::{Limit, UNLIMITED};
use esker_env::Clock;
use esker_format::Level;
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Weak;
use esker_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use esker_sync::{Arc, Condvar, Mutex, OnceLock, Rank};
use std::time::Duration;

/// How hard one family presses on its writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// Writers go at full speed.
    None,
    /// Writers are past a slowdown trigger: how fast they go says the pace.
    Slow,
    /// Writers wait.
    Stop(StallCause),
}

/// The pressure that follows from a family's view and options.
pub(crate) fn pressure(
    view: &View,
    options: &FamilyOptions,
    pending_compaction_bytes: u64,
) -> Pressure {
    let level0 = view.version.level(Level::L0).len();
    pressure_of(
        view.immutable.len(),
        level0,
        options,
        pending_compaction_bytes,
    )
}

/// Whether one more memtable to flush, and one more table at level 0, would hold writers back. False while there is
/// too little for any background work to begin, which waiting would not change.
pub(crate) fn flush_would_stall(
    view: &View,
    options: &FamilyOptions,
    pending_compaction_bytes: u64,
) -> bool {
    let (waiting, level0) = (view.immutable.len(), view.version.level(Level::L0).len());
    let as_i32 = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    if as_i32(waiting) < options.min_write_buffer_number_to_merge
        && as_i32(level0) < options.level0_file_num_compaction_trigger
    {
        return false;
    }
    let waiting = waiting + usize::from(!view.mem.is_empty());
    pressure_of(waiting, level0 + 1, options, pending_compaction_bytes) != Pressure::None
}

/// The pressure of so many memtables that wait to be flushed, and so many tables at level 0.
fn pressure_of(
    waiting: usize,
    level0: usize,
    options: &FamilyOptions,
    pending_compaction_bytes: u64,
) -> Pressure {
    let stop_at = usize::try_from(options.max_write_buffer_number.max(2)).unwrap_or(2);
    if waiting >= stop_at {
        return Pressure::Stop(StallCause::MemtableLimit);
    }
    if options.disable_auto_compactions {
        return Pressure::None;
    }
    let l0 = level0 as f64;
    let (slow0, stop0) = (
        f64::from(options.level0_slowdown_writes_trigger),
        f64::from(options.level0_stop_writes_trigger),
    );
    if stop0 > 0.0 && l0 >= stop0 {
        return Pressure::Stop(StallCause::L0FileCountLimit);
    }
    let (soft, hard) = (
        options.soft_pending_compaction_bytes_limit,
        options.hard_pending_compaction_bytes_limit,
    );
    if hard > 0 && pending_compaction_bytes >= hard {
        return Pressure::Stop(StallCause::PendingCompactionBytes);
    }
    let is_slow = (stop_at > 3 && waiting + 1 >= stop_at)
        || (slow0 >= 0.0 && l0 >= slow0)
        || (soft > 0 && pending_compaction_bytes >= soft);
    match is_slow {
        true => Pressure::Slow,
        false => Pressure::None,
    }
}

/// How often the pace is looked at again, in microseconds.
const STEER_US: u64 = 500;
/// Waits shorter than this cost more than they pace; what is owed stays on the account.
const SLACK_US: f64 = 100.0;
/// The longest wait before a writer that goes at a pace looks again.
const PAUSE_US: u64 = 1_000;
/// For how long after a wait the database counts as one whose writers are slowed: whoever asks once a second sees it.
const HELD_US: u64 = 1_000_000;
/// Writers crawl at this rate at least: where they have to stand still, the gate says so.
const LEAST_RATE: f64 = 64.0 * 1024.0;

const FREE: u8 = 0;
const SLOW: u8 = 1;
const STOP: u8 = 2;

/// The family that holds writers back most, how, and why.
#[derive(Clone, Debug, Default)]
struct Worst {
    by: Option<(StallKind, StallCause)>,
    family: Weak<Family>,
}

/// What writers that go at a pace owe.
#[derive(Debug)]
struct Account {
    /// Bytes that no time has paid for.
    owed: f64,
    paid_at_us: u64,
    /// Bytes a second.
    rate: f64,
}

impl Account {
    /// Lets the time until `now_us` pay; microseconds that it still takes.
    fn pay(&mut self, now_us: u64) -> f64 {
        let seconds = now_us.saturating_sub(self.paid_at_us) as f64 / 1e6;
        self.paid_at_us = now_us;
        if self.rate == UNLIMITED {
            self.owed = 0.0;
            return 0.0;
        }
        self.owed = (self.owed - seconds * self.rate).max(0.0);
        self.owed / self.rate * 1e6
    }
}

/// The gate in front of the log.
#[derive(Debug)]
pub(crate) struct Admission {
    gate: AtomicU8,
    delayed_write_rate: AtomicU64,
    /// Whether another flush may begin.
    is_flush_free: AtomicBool,
    /// When the pace is to be looked at again, in microseconds of the clock.
    steer_at_us: AtomicU64,
    /// Until when the last wait for the pace counts.
    held_until_us: AtomicU64,
    account: Mutex<Account>,
    worst: Mutex<Worst>,
    changed: Condvar,
    closing: AtomicBool,
    clock: Arc<dyn Clock>,
    pub(crate) holdups: Holdups,
    families: OnceLock<Arc<FamilySet>>,
    pending: OnceLock<Arc<Pending>>,
}

fn would_wait() -> Error {
    Error::new(ErrorKind::Incomplete, "the write would have to wait")
}

impl Admission {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        ledger: Arc<StallLedger>,
        statistics: Option<Arc<Statistics>>,
        delayed_write_rate: u64,
    ) -> Arc<Self> {
        let rate = if delayed_write_rate == 0 {
            16 << 20
        } else {
            delayed_write_rate
        };
        Arc::new(Admission {
            gate: AtomicU8::new(FREE),
            delayed_write_rate: AtomicU64::new(rate),
            is_flush_free: AtomicBool::new(true),
            steer_at_us: AtomicU64::new(0),
            held_until_us: AtomicU64::new(0),
            account: Mutex::new(
                Rank::LEAF,
                Account {
                    owed: 0.0,
                    paid_at_us: 0,
                    rate: UNLIMITED,
                },
            ),
            worst: Mutex::new(ranks::HEALTH, Worst::default()),
            changed: Condvar::new(),
            closing: AtomicBool::new(false),
            holdups: Holdups::new(Arc::clone(&clock), ledger, statistics),
            clock,
            families: OnceLock::new(),
            pending: OnceLock::new(),
        })
    }

    pub(crate) fn set_delayed_write_rate(&self, bytes_per_second: u64) {
        self.delayed_write_rate
            .store(bytes_per_second.max(1 << 10), Ordering::Relaxed);
        self.reassess();
    }

    /// Says whether another flush may begin now. The pace takes it in when it is looked at next.
    pub(crate) fn set_flush_free(&self, is_free: bool) {
        self.is_flush_free.store(is_free, Ordering::Relaxed);
    }

    /// Tells the gate whose pressures count; once, when the database opens.
    /// Changes of their conditions go to `pending`.
    pub(crate) fn watch(&self, families: Arc<FamilySet>, pending: Arc<Pending>) {
        let _once = self.pending.set(pending);
        if self.families.set(families).is_ok() {
            self.reassess();
        }
    }

    /// The clock that waits are measured by.
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Whether a writer would wait now.
    pub(crate) fn would_wait(&self) -> bool {
        match self.gate.load(Ordering::Acquire) {
            FREE => false,
            STOP => true,
            _ => self.is_in_debt(),
        }
    }

    #[inline]
    pub(crate) fn must_wait(&self) -> bool {
        self.gate.load(Ordering::Relaxed) != FREE
    }

    /// Whether writers are stopped, or were held back by the pace a moment ago.
    pub(crate) fn presses(&self) -> bool {
        self.is_stopped() || self.actual_delayed_write_rate() > 0
    }

    /// Bytes a second that slowed writers share now; 0 when the pace has held nobody back in the last second.
    pub(crate) fn actual_delayed_write_rate(&self) -> u64 {
        if self.gate.load(Ordering::Acquire) != SLOW
            || self.clock.now_us() >= self.held_until_us.load(Ordering::Relaxed)
        {
            return 0;
        }
        match self.account.lock().rate {
            UNLIMITED => 0,
            rate => rate as u64,
        }
    }

    /// Whether writers are stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.gate.load(Ordering::Acquire) == STOP
    }

    /// Looks at the pressures again after `_family` changed.
    pub(crate) fn refresh(&self, _family: &Family) {
        self.reassess();
    }

    /// Looks at every family's pressure and sets the gate.
    pub(crate) fn reassess(&self) {
        let Some(families) = self.families.get() else {
            return;
        };
        let families = families.all();
        let mut stopped = None;
        for family in &families {
            let view = family.view_guard();
            let debt = family.pending_compaction_bytes(&view);
            family.flow.set_debt(debt);
            let p = pressure(&view, &family.options.load(), debt);
            self.note_condition(family, p);
            if let Pressure::Stop(cause) = p {
                stopped.get_or_insert_with(|| Worst {
                    by: Some((StallKind::Stop, cause)),
                    family: Arc::downgrade(family),
                });
            }
        }
        self.steer(&families, stopped);
        self.changed.notify_all();
    }

    /// Sets the gate and the pace by what flushes and compactions have done so far. `stopped` says who stops writers.
    fn steer(&self, families: &[Arc<Family>], stopped: Option<Worst>) {
        let mut worst = self.worst.lock();
        let now_us = self.clock.now_us();
        self.steer_at_us.store(now_us + STEER_US, Ordering::Relaxed);
        let first = self.delayed_write_rate.load(Ordering::Relaxed) as f64;
        let mut pace: Option<(Limit, &Arc<Family>)> = None;
        let is_flush_free = self.is_flush_free.load(Ordering::Relaxed);
        let mut is_flushing = false;
        for family in families {
            let (limit, waiting) = family.pace(now_us, first, is_flush_free);
            is_flushing |= waiting > 0;
            if pace.is_none_or(|(p, _)| limit.bytes_per_s < p.bytes_per_s) {
                pace = Some((limit, family));
            }
        }
        let rate = pace.map_or(UNLIMITED, |(limit, _)| limit.bytes_per_s);
        let gate = match stopped {
            Some(who) => {
                *worst = who;
                STOP
            }
            None if rate == UNLIMITED && !is_flushing => {
                *worst = Worst::default();
                FREE
            }
            None => {
                if let Some((limit, family)) = pace {
                    *worst = Worst {
                        by: Some((StallKind::Delay, limit.cause)),
                        family: Arc::downgrade(family),
                    };
                }
                SLOW
            }
        };
        let mut account = self.account.lock();
        account.pay(now_us);
        account.rate = rate.max(LEAST_RATE);
        drop(account);
        self.gate.store(gate, Ordering::Release);
        drop(worst);
        self.holdups.set_pressed(gate != FREE);
    }

    /// Whether more is owed than a writer goes on with. Looks at the pace again when that is due.
    fn is_in_debt(&self) -> bool {
        let now_us = self.clock.now_us();
        if now_us >= self.steer_at_us.load(Ordering::Relaxed)
            && let Some(families) = self.families.get()
            && self.gate.load(Ordering::Acquire) == SLOW
        {
            self.steer(&families.all(), None);
        }
        self.account.lock().pay(now_us) > SLACK_US
    }

    /// Bytes that were written while writers go at a pace.
    #[inline]
    pub(crate) fn charge(&self, bytes: u64) {
        if self.must_wait() {
            let mut account = self.account.lock();
            if account.rate != UNLIMITED {
                account.owed += bytes as f64;
            }
        }
    }

    /// Tells a change in how a family's writers are held back.
    fn note_condition(&self, family: &Family, pressure: Pressure) {
        let now = match pressure {
            Pressure::None => StallCondition::Normal,
            Pressure::Slow => StallCondition::Delayed,
            Pressure::Stop(_) => StallCondition::Stopped,
        };
        let before = family.stall_condition.swap(now as u8, Ordering::Relaxed);
        if before == now as u8 {
            return;
        }
        if let Some(pending) = self.pending.get() {
            let all = [
                StallCondition::Normal,
                StallCondition::Delayed,
                StallCondition::Stopped,
            ];
            pending.add(PendingEvent::Stall(StallInfo {
                family: family.name.clone(),
                current: now,
                previous: all[usize::from(before).min(2)],
            }));
        }
    }

    /// Lets a writer of low priority wait while others are held back, at most a tenth of a second.
    #[cold]
    pub(crate) fn give_way(&self) {
        let must_wait = || self.presses() && !self.closing.load(Ordering::Acquire);
        if !must_wait() {
            return;
        }
        let family = self.worst.lock().family.clone();
        let reason = Reason::of_family(StallCause::LowPriority, StallKind::Delay, family);
        Held::new(&self.holdups).during(reason, || {
            for _ in 0..100 {
                self.clock.sleep(Duration::from_millis(1));
                if !must_wait() {
                    return;
                }
            }
        });
    }

    /// No writer waits any more: the database closes, or its health changed.
    pub(crate) fn release_all(&self, closing: bool) {
        if closing {
            self.closing.store(true, Ordering::Release);
        }
        let _order = self.worst.lock();
        self.changed.notify_all();
    }

    /// What a writer is told that finds writers stopped; `Ok` when it waits.
    pub(crate) fn check_stopped(&self, health: &Health, options: &WriteOptions) -> Result<()> {
        if options.no_slowdown {
            return Err(would_wait());
        }
        health.check_writable()?;
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::shutdown());
        }
        Ok(())
    }

    /// Whether a writer has to wait for its turn, with [`Admission::wait`].
    pub(crate) fn must_pause(&self, options: &WriteOptions) -> Result<bool> {
        if self.gate.load(Ordering::Acquire) != SLOW || !self.is_in_debt() {
            return Ok(false);
        }
        match options.no_slowdown {
            true => Err(would_wait()),
            false => Ok(true),
        }
    }

    /// Waits while writers are stopped, at most a tenth of a second, or until what is owed is paid, at most a
    /// millisecond. The log lock must not be held: flushes need it to give logs back.
    pub(crate) fn wait(&self, held: &mut Held<'_>) {
        let who = self.worst.lock().clone();
        let Some((kind, cause)) = who.by else {
            return;
        };
        held.during(Reason::of_family(cause, kind, who.family), || match kind {
            StallKind::Stop => self.wait_while_stopped(),
            StallKind::Delay => {
                let us = self.account.lock().pay(self.clock.now_us());
                self.clock
                    .sleep(Duration::from_micros((us as u64).min(PAUSE_US)));
                self.held_until_us
                    .store(self.clock.now_us() + HELD_US, Ordering::Relaxed);
            }
        });
    }

    fn wait_while_stopped(&self) {
        let mut worst = self.worst.lock();
        if self.is_stopped() {
            self.changed
                .wait_for(&mut worst, Duration::from_millis(100));
        }
    }
}
