//! Admission: which writers may go, how fast, and how long each waited for what.
//!
//! Each family has a load ([`super::load`]): whether its writers have to stop, and what listeners
//! are told.
//! Between full speed and standing still there is a pace ([`esker_lsm::pace`]). Both set the
//! family's gate ([`super::write_controller`]), and the gates of the families that a batch touches
//! ([`super::batch_families`]) are what its writer passes, one after the other. So where one family
//! is behind, only what is written to it waits, alone or in one batch with others.
//!
//! A writer is admitted before it has or waits for the log lock: no writer's wait holds up a flush
//! that gives a log back, nor the writers of other families. A gate that closes between admission
//! and the log is seen by the leader ([`Admission::stops`]): then the batch steps aside, out of the
//! queue, and is admitted anew. No writer is asked twice for the pace. When no gate has anything to
//! say, which one load tells, all this is skipped.
//!
//! Conditions that concern all writers belong to no family's gate, and the leader checks them:
//! memory of memtables that families share, administration, a background error, and logs above
//! `max_total_wal_size` that a stopped family keeps ([`crate::write::path`]). Under `atomic_flush`
//! memtables are switched and flushed together, so there every batch passes every gate. Writers of
//! low priority give way to every family. RocksDB holds all writers back for any family, and does
//! not promise to: there is no option to get that back. To keep a family from getting ahead of
//! another one, write to both in one batch.
//!
//! Every wait goes through [`StallTracker`] to the stall ledger, by cause and the family that is
//! behind.

use super::batch_families::{BatchFamilies, FamilyBytes, bit};
use super::load::{FreeJobs, load, stall_cause};
use super::stall_tracker::{StallGuard, StallReason, StallTracker};
use super::write_controller::{ControllerLock, ControllerState, PAUSE_US};
use crate::family::{Family, FamilySet, View};
use crate::health::Health;
use crate::observe::{
    Pending, PendingEvent, StallCause, StallCondition, StallInfo, StallKind, StallLedger,
    Statistics,
};
use crate::options::WriteOptions;
use crate::runtime::callback::{self, Callback, CallbackEvent};
use esker_env::Clock;
use esker_format::FamilyId;
use esker_format::batch::WriteBatch;
use esker_lsm::assessment::Assessment;
use esker_lsm::load::{Load, LoadCause, Zone};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use esker_sync::{Arc, Mutex, OnceLock, Rank, Weak};
use std::time::Duration;

/// How many families there are of each bit whose gates are not free, and whose gates are closed.
#[derive(Debug)]
struct GateCounters {
    held: [usize; 64],
    stopped: [usize; 64],
}

impl Default for GateCounters {
    fn default() -> Self {
        GateCounters {
            held: [0; 64],
            stopped: [0; 64],
        }
    }
}

/// Counts one more or one less at `at`.
fn recount(counts: &mut [usize; 64], at: usize, before: bool, after: bool) {
    counts[at] = match (before, after) {
        (false, true) => counts[at] + 1,
        (true, false) => counts[at].saturating_sub(1),
        _ => counts[at],
    };
}

/// The gates in front of the log.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The bits of the families whose gates are not free.
    held: AtomicU64,
    /// The bits of those whose gates are closed.
    stopped: AtomicU64,
    /// Counts by bit, from which both words are computed.
    counters: Mutex<GateCounters>,
    /// Every batch passes every gate.
    is_together: bool,
    delayed_write_rate: AtomicU64,
    /// Set while another flush, and another compaction, may begin.
    is_flush_free: AtomicBool,
    is_compaction_free: AtomicBool,
    closing: AtomicBool,
    clock: Arc<dyn Clock>,
    pub(crate) stall_tracker: StallTracker,
    families: OnceLock<Arc<FamilySet>>,
    pending: OnceLock<Arc<Pending>>,
}

/// A batch at the gates.
#[derive(Debug)]
pub(crate) struct AdmissionRequest<'a> {
    pub(crate) batch: &'a WriteBatch,
    pub(crate) touched: BatchFamilies,
    pub(crate) options: &'a WriteOptions,
    /// True if it goes on the accounts: not when it is there already, nor when it does not go into
    /// memtables.
    pub(crate) is_charged: bool,
}

#[cold]
pub(crate) fn would_wait() -> Error {
    Error::new(ErrorKind::Incomplete, "the write would have to wait")
        .with_hint("try again later, or write without no_slowdown")
}

/// Returns whether writers of the family have to wait for a job, whatever its pace says.
fn is_full(family: &Family) -> bool {
    let view = family.view_guard();
    let assessed = family.assessed(&view.version);
    let options = family.options.load();
    load(&view, &options, &assessed.tree, &family.drain).zone() == Zone::Stop
}

/// Returns whether this thread is in a job's callback and may go on although the family's gate is
/// closed: its pace closes it before there is no room left.
fn goes_in_callback(family: &Family) -> bool {
    Callback::is_inside() && !is_full(family)
}

/// An error when this thread is in a job's callback and waiting for the family could be waiting for
/// that job.
pub(crate) fn check_callback(family: &Family) -> Result<()> {
    let waits_for_another = match Callback::current() {
        None => true,
        Some(CallbackEvent::Flush(id, oldest)) if id == family.id => {
            let view = family.view_guard();
            view.immutable.last().is_some_and(|m| m.id() < oldest)
        }
        Some(_) => false,
    };
    if waits_for_another || !is_full(family) {
        Ok(())
    } else {
        Err(callback::would_wait())
    }
}

impl Admission {
    /// `is_together` says that the memtables of all families are switched and flushed together.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        ledger: Arc<StallLedger>,
        statistics: Option<Arc<Statistics>>,
        delayed_write_rate: u64,
        is_together: bool,
    ) -> Arc<Self> {
        let rate = if delayed_write_rate == 0 {
            16 << 20
        } else {
            delayed_write_rate
        };
        Arc::new(Admission {
            held: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
            counters: Mutex::new(Rank::LEAF, GateCounters::default()),
            is_together,
            delayed_write_rate: AtomicU64::new(rate),
            is_flush_free: AtomicBool::new(true),
            is_compaction_free: AtomicBool::new(true),
            closing: AtomicBool::new(false),
            stall_tracker: StallTracker::new(Arc::clone(&clock), ledger, statistics),
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

    /// Says which jobs may begin now. The pace takes it in when it is looked at next.
    pub(crate) fn set_free_jobs(&self, free: FreeJobs) {
        self.is_flush_free.store(free.flush, Ordering::Relaxed);
        self.is_compaction_free
            .store(free.compaction, Ordering::Relaxed);
    }

    /// Tells whose loads count; once, when the database opens.
    /// Changes of their conditions go to `pending`.
    pub(crate) fn watch(&self, families: Arc<FamilySet>, pending: Arc<Pending>) {
        let _once = self.pending.set(pending);
        if self.families.set(families).is_ok() {
            self.reassess();
        }
    }

    /// Returns the time of the clock that measures waits.
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Returns the clock that measures waits.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn each(&self, look: impl FnMut(&Arc<Family>)) {
        if let Some(families) = self.families.get() {
            families.each(look);
        }
    }

    /// Returns whether writers of some family are stopped, or were held back by its pace a moment
    /// ago.
    fn is_throttling(&self) -> bool {
        if self.held.load(Ordering::Acquire) == 0 {
            return false;
        }
        let (now_us, mut is_throttling) = (self.clock.now_us(), false);
        self.each(|f| is_throttling |= f.gate.is_throttling(now_us));
        is_throttling
    }

    /// Returns whether the family's writers are slowed, and whether they are stopped.
    pub(crate) fn slowed_and_stopped(&self, family: &Family) -> (bool, bool) {
        let is_stopped = family.gate.is_stopped();
        let slowed = family.gate.is_throttling(self.clock.now_us());
        (slowed && !is_stopped, is_stopped)
    }

    /// Bytes a second that the writers of the slowest family share now; 0 when no pace has held
    /// any writer back in the last second.
    pub(crate) fn actual_delayed_write_rate(&self) -> u64 {
        let now_us = self.clock.now_us();
        let mut slowest = None;
        self.each(|f| {
            let rate = f.gate.delayed_rate(now_us);
            slowest = slowest.into_iter().chain(rate).min();
        });
        slowest.unwrap_or(0)
    }

    /// Returns whether writers of some family are stopped.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire) != 0
    }

    /// Looks at every family's load and sets its gate.
    pub(crate) fn reassess(&self) {
        let Some(families) = self.families.get() else {
            return;
        };
        families.all().iter().for_each(|f| self.refresh(f));
    }

    /// Looks at the family's load and sets its gate.
    pub(crate) fn refresh(&self, family: &Arc<Family>) {
        if self.families.get().is_none() {
            return;
        }
        // Writers take the gate's lock, too: a tree is assessed before.
        let (lock, view, assessed) = loop {
            let _new = family.assessed(&family.view_guard().version);
            let lock = family.gate.lock();
            let view = family.view_guard();
            if let Some(assessed) = family.last_assessed(&view.version) {
                break (lock, view, assessed);
            }
        };
        self.refresh_by(family, lock, &view, &assessed.tree);
    }

    /// Looks at the load of a family whose memtables a writer has switched, and sets its gate. The
    /// caller has the log lock: a tree that nobody has assessed yet counts as the one before, until
    /// the job that made it sets the gate.
    pub(crate) fn note_switch(&self, family: &Arc<Family>) {
        if self.families.get().is_none() {
            return;
        }
        let lock = family.gate.lock();
        let view = family.view_guard();
        // Who makes a family sets its gate first.
        if let Some(assessed) = family.newest_assessment() {
            self.refresh_by(family, lock, &view, &assessed.tree);
        }
    }

    fn refresh_by(
        &self,
        family: &Arc<Family>,
        lock: ControllerLock<'_>,
        view: &View,
        tree: &Assessment,
    ) {
        let load = load(view, &family.options.load(), tree, &family.drain);
        self.note_condition(family, load);
        // With memtables alone the pace says when nothing goes any more.
        let stops = |cause: &LoadCause| load.zone() == Zone::Stop && *cause != LoadCause::Memtables;
        let stop = load.cause().filter(stops).map(stall_cause);
        let is_calm = self.set(family, &lock, view, tree, stop);
        drop(lock);
        self.calm_if(is_calm);
    }

    /// Sets a gate by what flushes and compactions have done so far. `stop` says why no writer may
    /// go, if the pace does not. Returns whether that freed the last gate.
    fn set(
        &self,
        family: &Family,
        lock: &ControllerLock<'_>,
        view: &View,
        tree: &Assessment,
        stop: Option<StallCause>,
    ) -> bool {
        let now_us = self.clock.now_us();
        let first = self.delayed_write_rate.load(Ordering::Relaxed) as f64;
        let free = FreeJobs {
            flush: self.is_flush_free.load(Ordering::Relaxed),
            compaction: self.is_compaction_free.load(Ordering::Relaxed),
        };
        let (limit, waiting) = family.pace(view, tree, now_us, first, free);
        let stop = stop.or((limit.bytes_per_s <= 0.0).then_some(stall_cause(limit.cause)));
        let before = family.gate.state();
        if family.is_dropped() {
            // A job of it may end late: no writer waits for it.
            family.gate.open(lock, now_us)
        } else {
            family.gate.set(lock, now_us, stop, limit, waiting > 0)
        }
        self.note_state(family.id, before, family.gate.state())
    }

    /// Looks at the pace of a family again, unless another thread does so.
    fn update_rate(&self, family: &Family) {
        let _new = family.assessed(&family.view_guard().version);
        let Some(lock) = family.gate.try_lock() else {
            return;
        };
        if family.gate.state() == ControllerState::Stopped {
            return;
        }
        let view = family.view_guard();
        // Who has changed the tree again sets the gate in a moment.
        let Some(assessed) = family.last_assessed(&view.version) else {
            return;
        };
        let is_calm = self.set(family, &lock, &view, &assessed.tree, None);
        drop(lock);
        self.calm_if(is_calm);
    }

    /// A family is no longer among those of the database: writers that wait for it go on.
    pub(crate) fn forget(&self, family: &Family) {
        let lock = family.gate.lock();
        let before = family.gate.state();
        family.gate.open(&lock, self.clock.now_us());
        let is_calm = self.note_state(family.id, before, family.gate.state());
        drop(lock);
        self.calm_if(is_calm);
    }

    /// Takes in that the state of a family's gate has changed, whose turn the caller has: so the
    /// changes of one family are taken in in their order. Returns whether all gates are free now
    /// and were not before.
    fn note_state(
        &self,
        family: FamilyId,
        before: ControllerState,
        after: ControllerState,
    ) -> bool {
        if before == after {
            return false;
        }
        let at = bit(family).trailing_zeros() as usize;
        let mut counters = self.counters.lock();
        let (was_held, is_held) = (
            before != ControllerState::Free,
            after != ControllerState::Free,
        );
        recount(&mut counters.held, at, was_held, is_held);
        let (was, is) = (
            before == ControllerState::Stopped,
            after == ControllerState::Stopped,
        );
        recount(&mut counters.stopped, at, was, is);
        let bits = |counts: &[usize; 64]| {
            let set = counts.iter().enumerate().filter(|(_, n)| **n > 0);
            let bits = set.fold(0u64, |bits, (at, _)| bits | 1 << at);
            if self.is_together && bits != 0 {
                u64::MAX
            } else {
                bits
            }
        };
        let held = bits(&counters.held);
        self.stopped
            .store(bits(&counters.stopped), Ordering::Release);
        let before = self.held.swap(held, Ordering::AcqRel);
        self.stall_tracker.set_gated(held != 0);
        before != 0 && held == 0
    }

    /// Without locks: the stall that ended may get a line in the LOG.
    fn calm_if(&self, is_calm: bool) {
        if is_calm {
            self.stall_tracker.calm();
        }
    }

    /// Tells a change in how a family's writers are held back.
    fn note_condition(&self, family: &Family, load: Load) {
        let now = match load.zone() {
            Zone::Calm | Zone::Near => StallCondition::Normal,
            Zone::Slow | Zone::Critical => StallCondition::Delayed,
            Zone::Stop => StallCondition::Stopped,
        };
        if let Some(cause) = load.cause().map(stall_cause) {
            let kind = match now {
                StallCondition::Stopped => StallKind::Stop,
                _ => StallKind::Delay,
            };
            let is_compacting = family.level0_compactions.load(Ordering::Relaxed) > 0;
            family.stalls.note_condition(cause, kind, is_compacting);
        }
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

    /// The families that hold others back most: one that is stopped, or the one with the slowest
    /// pace.
    fn slowest_family(&self) -> Weak<Family> {
        let now_us = self.clock.now_us();
        let mut slowest_family: Option<(u64, Weak<Family>)> = None;
        self.each(|f| {
            let rate = if f.gate.is_stopped() {
                Some(0)
            } else {
                f.gate.delayed_rate(now_us)
            };
            if let Some(rate) = rate
                && slowest_family.as_ref().is_none_or(|(r, _)| rate < *r)
            {
                slowest_family = Some((rate, Arc::downgrade(f)));
            }
        });
        slowest_family.map_or_else(Weak::new, |(_, family)| family)
    }

    /// Lets a writer of low priority wait while others are held back, at most a tenth of a second.
    #[cold]
    pub(crate) fn yield_low_pri(&self) {
        let must_wait = || self.is_throttling() && !self.closing.load(Ordering::Acquire);
        if !must_wait() {
            return;
        }
        let (cause, kind) = (StallCause::LowPriority, StallKind::Delay);
        let reason = StallReason::of_family(cause, kind, self.slowest_family());
        StallGuard::new(&self.stall_tracker).during(reason, || {
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
        self.each(|f| f.gate.wake());
    }

    /// Fails when a writer must not wait: under `no_slowdown`, while the database is not writable,
    /// or when it closes.
    pub(crate) fn check_wait(&self, health: &Health, options: &WriteOptions) -> Result<()> {
        if options.no_slowdown {
            return Err(would_wait());
        }
        health.check_writable()?;
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::shutdown());
        }
        Ok(())
    }

    /// The families beyond gates that are not free for the batch, with its bytes for each: all of
    /// them where families go together.
    fn shares(&self, touched: BatchFamilies, batch: &WriteBatch) -> FamilyBytes {
        let Some(families) = self.families.get() else {
            return FamilyBytes::new();
        };
        if !self.is_together {
            return touched.shares(batch, families, self.held.load(Ordering::Acquire));
        }
        let (mut shares, bytes) = (FamilyBytes::new(), batch.data_size() as u64);
        families.each(|f| {
            if f.gate.state() != ControllerState::Free {
                shares.push((Arc::clone(f), bytes));
            }
        });
        shares
    }

    /// Returns whether a batch would wait now.
    pub(crate) fn would_wait(&self, touched: BatchFamilies, batch: &WriteBatch) -> bool {
        if !touched.meets(self.held.load(Ordering::Acquire)) {
            return false;
        }
        let shares = self.shares(touched, batch);
        shares.iter().any(|(family, _)| {
            let now_us = self.clock.now_us();
            if family.gate.takes_rate_update(now_us) {
                self.update_rate(family);
            }
            match family.gate.state() {
                ControllerState::Free | ControllerState::Monitored => false,
                ControllerState::Paced => family.gate.is_in_debt(now_us),
                ControllerState::Stopped => true,
            }
        })
    }

    /// A family of the batch whose gate is closed, if there is one.
    #[inline]
    pub(crate) fn stops(&self, touched: BatchFamilies, batch: &WriteBatch) -> Option<Arc<Family>> {
        if touched.meets(self.stopped.load(Ordering::Acquire)) {
            self.find_stopped(touched, batch)
        } else {
            None
        }
    }

    #[cold]
    fn find_stopped(&self, touched: BatchFamilies, batch: &WriteBatch) -> Option<Arc<Family>> {
        let shares = self.shares(touched, batch).into_iter();
        shares
            .map(|(f, _)| f)
            .find(|f| f.gate.is_stopped() && !goes_in_callback(f))
    }

    /// Waits until all families of a batch have let it in. The log lock must not be held.
    #[inline]
    pub(crate) fn admit(
        &self,
        entrant: &AdmissionRequest<'_>,
        health: &Health,
        held: &mut StallGuard<'_>,
    ) -> Result<()> {
        if entrant.touched.meets(self.held.load(Ordering::Relaxed)) {
            self.pass_all(entrant, health, held)
        } else {
            Ok(())
        }
    }

    #[inline(never)]
    fn pass_all(
        &self,
        entrant: &AdmissionRequest<'_>,
        health: &Health,
        held: &mut StallGuard<'_>,
    ) -> Result<()> {
        let charged = u64::from(entrant.is_charged);
        // Most batches are for this family, and most are put while it is flushed: nothing is
        // counted or cloned for them.
        if let Some(families) = self.families.get()
            && !self.is_together
            && entrant.touched == BatchFamilies::one(FamilyId::DEFAULT)
        {
            let bytes = entrant.batch.data_size() as u64 * charged;
            return self.pass(
                families.default_family(),
                bytes,
                entrant.options,
                health,
                held,
            );
        }
        for (family, bytes) in self.shares(entrant.touched, entrant.batch) {
            self.pass(&family, bytes * charged, entrant.options, health, held)?;
        }
        Ok(())
    }

    /// Waits until a family admits `bytes`.
    fn pass(
        &self,
        family: &Arc<Family>,
        bytes: u64,
        options: &WriteOptions,
        health: &Health,
        held: &mut StallGuard<'_>,
    ) -> Result<()> {
        let gate = &family.gate;
        if gate.lets_through(bytes) {
            return Ok(());
        }
        let mut place = None;
        while !family.is_dropped() {
            let now_us = self.clock.now_us();
            gate.note_look();
            if gate.takes_rate_update(now_us) {
                self.update_rate(family);
            }
            let cause = match gate.read() {
                (ControllerState::Free | ControllerState::Monitored, _) => break,
                // The pace is for writers that wait.
                (ControllerState::Paced, _) if Callback::is_inside() => break,
                (ControllerState::Stopped, _) if goes_in_callback(family) => break,
                (ControllerState::Stopped, _) => {
                    check_callback(family)?;
                    self.check_wait(health, options)?;
                    self.wait_stopped(family, held);
                    continue;
                }
                (ControllerState::Paced, cause) => cause,
            };
            let wait_us = match place {
                Some(place) => gate.wait_us(now_us, place),
                None => {
                    let entered = gate.enter(now_us, bytes, !options.no_slowdown);
                    let (given, wait_us) = entered.ok_or_else(would_wait)?;
                    place = Some(given);
                    wait_us
                }
            };
            if wait_us == 0 {
                break;
            }
            self.check_wait(health, options)?;
            let why = StallReason::of_family(cause, StallKind::Delay, Arc::downgrade(family));
            held.during(why, || {
                let us = wait_us.min(PAUSE_US);
                self.clock.sleep(Duration::from_micros(us));
                gate.note_held(self.clock.now_us());
            });
        }
        Ok(())
    }

    /// Waits while a family's gate is closed, at most a tenth of a second. The log lock must not be
    /// held.
    pub(crate) fn wait_stopped(&self, family: &Arc<Family>, held: &mut StallGuard<'_>) {
        let (ControllerState::Stopped, cause) = family.gate.read() else {
            return;
        };
        let why = StallReason::of_family(cause, StallKind::Stop, Arc::downgrade(family));
        held.during(why, || {
            let is_over = || self.closing.load(Ordering::Acquire);
            family.gate.wait_stopped(is_over);
        });
        if family.is_space_bounded() {
            // The end of the last job sets the gate while it still counts: nothing may follow.
            self.refresh(family);
        }
    }
}
