//! The leader's work: one group from the queue to the log, then everybody's own batch to the memtables.
//!
//! The file is long because a write is one story, from the queue to visibility, with every reason to wait on its way.

use super::admission::{Admission, Entrant, check_callback, would_wait};
use super::apply::{self, Memtables};
use super::holdup::{Held, Reason};
use super::log_state::LogState;
use super::prepared::{self, Prepared};
use super::queue::{Slot, SlotJob, WriteQueue, wait_or_lead};
use super::sequence::Sequence;
use super::stages;
use super::tally::Tally;
use super::touched::Touched;
use crate::family::{Family, FamilySet, View};
use crate::health::{ErrorSource, Health};
use crate::job::Wake;
use crate::job::callback::{self, Callback};
use crate::memory::{Member, Relief};
use crate::memtable::MemTable;
use crate::observe::{
    FlushReason, HistogramId, MemtableInfo, PendingEvent, PerfMetric, PerfTimer, StallCause,
    Statistics, Ticker,
};
use crate::options::WriteOptions;
use crate::ranks;
use crate::timestamp;
use crate::tree::FileNumbers;
use arc_swap::Guard;
use esker_format::batch::{Record, Records, WriteBatch, encode_header};
use esker_format::{FamilyId, FileNo, Seq};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use esker_sync::{Arc, Condvar, Mutex, MutexGuard, Rank};
use std::time::Duration;

/// The options that the path goes by.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Bytes of live logs above which families are flushed to release the oldest; 0 for no limit.
    pub(crate) max_total_wal_size: AtomicU64,
    /// The memtables of all families are switched together.
    pub(crate) atomic_flush: bool,
    /// Most bytes that a leader takes from the queue in one group.
    pub(crate) group_bytes_max: usize,
}

/// What writers have to wait for who are at the log already.
#[derive(Debug)]
enum Obstacle {
    /// Administration, or memory of memtables: nobody may go on.
    Everybody,
    /// A family lets nobody in.
    Family(Arc<Family>),
}

/// What became of a leader's turn.
#[derive(Debug)]
enum Turn {
    /// Its group is logged; its own batch begins at this sequence.
    Done(Seq),
    /// Nothing was done.
    Wait(Obstacle),
}

/// Everything a write touches.
#[derive(Debug)]
pub(crate) struct WritePath {
    pub(crate) families: Arc<FamilySet>,
    pub(crate) sequence: Arc<Sequence>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) health: Arc<Health>,
    pub(crate) numbers: Arc<FileNumbers>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) statistics: Option<Arc<Statistics>>,
    /// What went through, for the database's own figures.
    pub(crate) tally: Tally,
    log: Mutex<LogState>,
    queue: WriteQueue,
    /// Transactions that are prepared.
    pub(crate) prepared: Prepared,
    /// Some family's memtable is full; the next leader switches it.
    switch_wanted: AtomicBool,
    /// Memtables fill up: the next flush is to make the log of the next switch.
    pub(crate) spare_wanted: AtomicBool,
    pub(crate) limits: Limits,
    /// The limit on the memory of memtables, perhaps shared with other databases.
    pub(crate) buffers: Member,
    /// Bytes written since the memory of all memtables was added up.
    unmeasured: AtomicU64,
    /// Some write went past the log since the database was opened.
    unlogged: AtomicBool,
    /// Leaders wait while it is above 0.
    stops: AtomicUsize,
    /// Those among the stops that callers asked for.
    holds: AtomicUsize,
    stops_changed: (Mutex<()>, Condvar),
}

/// No write begins while this lives; the log lock is free.
#[derive(Debug)]
pub(crate) struct StopWriters<'a>(&'a WritePath);

impl Drop for StopWriters<'_> {
    fn drop(&mut self) {
        self.0.stops.fetch_sub(1, Ordering::AcqRel);
        drop(self.0.stops_changed.0.lock());
        self.0.stops_changed.1.notify_all();
    }
}

/// The log lock. Releasing it wakes the writer at the front of the queue.
#[derive(Debug)]
pub(crate) struct LogGuard<'a> {
    path: &'a WritePath,
    state: Option<MutexGuard<'a, LogState>>,
}

impl std::ops::Deref for LogGuard<'_> {
    type Target = LogState;
    fn deref(&self) -> &LogState {
        self.state.as_ref().expect("present until drop")
    }
}

impl std::ops::DerefMut for LogGuard<'_> {
    fn deref_mut(&mut self) -> &mut LogState {
        self.state.as_mut().expect("present until drop")
    }
}

impl Drop for LogGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.state = None;
        self.path.queue.wake_front();
    }
}

impl WritePath {
    #[allow(
        clippy::too_many_arguments,
        reason = "the parts that a write touches, named at the one call"
    )]
    pub(crate) fn new(
        families: Arc<FamilySet>,
        sequence: Arc<Sequence>,
        admission: Arc<Admission>,
        health: Arc<Health>,
        numbers: Arc<FileNumbers>,
        wake: Arc<Wake>,
        statistics: Option<Arc<Statistics>>,
        log: LogState,
        limits: Limits,
        buffers: Member,
    ) -> Self {
        WritePath {
            families,
            sequence,
            admission,
            health,
            numbers,
            wake,
            statistics,
            tally: Tally::default(),
            log: Mutex::new(ranks::LOG, log),
            queue: WriteQueue::new(),
            prepared: Prepared::new(),
            switch_wanted: AtomicBool::new(false),
            spare_wanted: AtomicBool::new(false),
            limits,
            buffers,
            unmeasured: AtomicU64::new(0),
            unlogged: AtomicBool::new(false),
            stops: AtomicUsize::new(0),
            holds: AtomicUsize::new(0),
            stops_changed: (Mutex::new(Rank::LEAF, ()), Condvar::new()),
        }
    }

    /// Lets no write begin until what is returned is dropped. Writes that hold the log lock go on: once the lock
    /// was taken and in-flight writes have ended ([`Sequence::quiesce`]), memtables stay as they are.
    pub(crate) fn stop_writers(&self) -> StopWriters<'_> {
        self.stops.fetch_add(1, Ordering::AcqRel);
        StopWriters(self)
    }

    /// Lets no write begin until [`WritePath::release_writers`]; what was written is handed to the operating system.
    pub(crate) fn hold_writers(&self) -> Result<()> {
        self.stops.fetch_add(1, Ordering::AcqRel);
        let flushed = {
            let mut log = self.lock();
            self.sequence.quiesce();
            self.save(&mut log, false)
        };
        match flushed {
            Ok(()) => {
                self.holds.fetch_add(1, Ordering::AcqRel);
                Ok(())
            }
            Err(e) => {
                drop(StopWriters(self));
                Err(e)
            }
        }
    }

    /// Takes one [`WritePath::hold_writers`] back; false when there is none.
    pub(crate) fn release_writers(&self) -> bool {
        let held = self
            .holds
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1))
            .is_ok();
        if held {
            drop(StopWriters(self));
        }
        held
    }

    /// Waits until writers may go on, at most a tenth of a second. The log lock must not be held.
    #[cold]
    fn wait_to_go_on(&self, obstacle: &Obstacle, held: &mut Held<'_>) {
        if self.is_stopped() {
            held.during(Reason::of_database(StallCause::Administration), || {
                self.wait_for_administration();
            });
        } else if self.buffers.must_stall() {
            let reason = Reason::of_database(StallCause::WriteBufferManagerLimit);
            held.during(reason, || self.buffers.wait());
        } else if let Obstacle::Family(family) = obstacle {
            self.admission.wait_stopped(family, held);
        }
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.stops.load(Ordering::Acquire) > 0
    }

    fn wait_for_administration(&self) {
        let (lock, changed) = &self.stops_changed;
        let mut waiting = lock.lock();
        if self.is_stopped() {
            changed.wait_for(&mut waiting, Duration::from_millis(100));
        }
    }

    /// Waits until administration is done, away from the log lock, for which it stands in line itself. For writers whose batch
    /// nobody else knows of.
    #[cold]
    fn stay_away(&self, held: &mut Held<'_>) {
        held.during(Reason::of_database(StallCause::Administration), || {
            while self.is_stopped() && !self.wake.is_closing() {
                self.wait_for_administration();
            }
        });
    }

    /// As [`wait_or_lead`]. While administration stops writers it may have the log lock: that too is being held back.
    fn wait_in_queue(&self, slot: &Slot, held: &mut Held<'_>) -> Option<LogGuard<'_>> {
        if self.is_stopped() {
            let reason = Reason::of_database(StallCause::Administration);
            return held.during(reason, || wait_or_lead(slot, || self.try_lock()));
        }
        let _timed = stages::part(PerfMetric::WriteThreadWaitNanos, self.admission.clock());
        wait_or_lead(slot, || self.try_lock())
    }

    /// Takes the log lock for a write past the queue, when nothing stands in the way of `batch`.
    fn lock_to_write(
        &self,
        options: &WriteOptions,
        batch: &WriteBatch,
        touched: Touched,
        is_charged: bool,
    ) -> Result<LogGuard<'_>> {
        let mut held = self.not_held();
        if self.is_stopped() && !options.no_slowdown {
            self.check_callback()?;
            self.stay_away(&mut held);
        }
        self.admit(batch, touched, options, is_charged, &mut held)?;
        let mut log = self.lock();
        let bytes = batch.data_size();
        while let Some(obstacle) = self.prepare(&mut log, options, bytes, Some((batch, touched)))? {
            self.stand_still(&mut log, &obstacle, &mut held);
        }
        Ok(log)
    }

    /// A writer's wait, which has not begun.
    #[inline]
    fn not_held(&self) -> Held<'_> {
        Held::new(&self.admission.holdups)
    }

    /// Takes the log lock: for administration that must not run beside a leader.
    pub(crate) fn lock(&self) -> LogGuard<'_> {
        LogGuard {
            path: self,
            state: Some(self.log.lock()),
        }
    }

    /// Whether a write went past the log since the database was opened.
    pub(crate) fn has_unlogged(&self) -> bool {
        self.unlogged.load(Ordering::Acquire)
    }

    fn try_lock(&self) -> Option<LogGuard<'_>> {
        Some(LogGuard {
            path: self,
            state: Some(self.log.try_lock()?),
        })
    }

    /// Writes a batch: all of it or nothing, durable as `options` say, visible on return.
    #[inline]
    pub(crate) fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        let statistics = self.statistics.as_deref().filter(|s| s.wants_times());
        match statistics.is_some() || stages::are_timed() {
            false => self.write_batch(options, batch),
            true => self.write_timed(statistics, options, batch),
        }
    }

    #[inline(never)]
    fn write_timed(
        &self,
        statistics: Option<&Statistics>,
        options: &WriteOptions,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let clock = self.admission.clock();
        let parts_before_ns = stages::are_timed().then(stages::parts_ns);
        let start_ns = clock.now_ns();
        let done = self.write_batch(options, batch);
        let took_ns = clock.now_ns().saturating_sub(start_ns);
        if let Some(before_ns) = parts_before_ns {
            stages::add_rest(took_ns, before_ns);
        }
        if let Some(s) = statistics {
            s.record(HistogramId::DbWrite, took_ns / 1_000);
        }
        done
    }

    fn write_batch(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        self.health.check_writable()?;
        check_options(options)?;
        let touched = self.check_families(batch, options.ignore_missing_column_families)?;
        if options.no_slowdown && self.admission.would_wait(touched, batch) {
            return Err(would_wait());
        }
        if options.low_pri {
            self.admission.give_way();
        }
        let mut held = self.not_held();
        if self.is_stopped() && !options.no_slowdown {
            self.check_callback()?;
            self.stay_away(&mut held);
        }
        let mut is_charged = true;
        loop {
            self.admit(batch, touched, options, is_charged, &mut held)?;
            if let Some(log) = self.try_lock() {
                return self.lead(log, options, batch, touched, held);
            }
            let slot = self.queue.enqueue(std::mem::take(batch), touched, *options);
            self.wait_for_turn(&slot, options, &mut held);
            if !slot.is_aside() {
                drop(held);
                let done = self.follow(&slot);
                slot.with_job(|job| *batch = std::mem::take(&mut job.batch));
                return done;
            }
            slot.with_job(|job| *batch = std::mem::take(&mut job.batch));
            is_charged = false;
        }
    }

    /// An error when this thread is in the callback of a job that is not done, for which whoever stops
    /// all writers may wait.
    #[cold]
    fn check_callback(&self) -> Result<()> {
        match Callback::is_inside() {
            true => Err(callback::would_wait()),
            false => Ok(()),
        }
    }

    /// Waits until the families of a batch let it in.
    #[inline]
    fn admit(
        &self,
        batch: &WriteBatch,
        touched: Touched,
        options: &WriteOptions,
        is_charged: bool,
        held: &mut Held<'_>,
    ) -> Result<()> {
        let entrant = Entrant {
            batch,
            touched,
            options,
            is_charged,
        };
        self.admission.admit(&entrant, &self.health, held)
    }

    /// Waits until a leader, this writer perhaps, has dealt with the slot.
    fn wait_for_turn(&self, slot: &Arc<Slot>, options: &WriteOptions, held: &mut Held<'_>) {
        while let Some(mut log) = self.wait_in_queue(slot, held) {
            // A failure is told to the slots of the group, this one among them when it was in it. That
            // this writer does not want to wait is nobody else's failure.
            let told = self.run_group(&mut log, options, None);
            if let Ok(Turn::Wait(obstacle)) = &told {
                // Another leader may take the slot meanwhile. Then its batch is to be inserted at once, so this
                // thread must not stand in line for the lock.
                drop(log);
                self.wait_to_go_on(obstacle, held);
                continue;
            }
            if let Err(e) = told
                && slot.is_waiting()
                && e.kind() == ErrorKind::Incomplete
            {
                self.queue.remove(slot);
                slot.fail(e);
            }
        }
    }

    /// Writes `batch` if `check` says yes at a moment when every earlier write is in the memtables and none is
    /// in flight. Other writers wait meanwhile, so `check` must not do I/O, and must not write.
    pub(crate) fn write_if(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.health.check_writable()?;
        check_options(options)?;
        let touched = self.check_families(batch, options.ignore_missing_column_families)?;
        let mut log = self.lock_to_write(options, batch, touched, true)?;
        self.sequence.quiesce();
        check()?;
        let first = self.run_prepared(&mut log, options, Some(batch))?;
        drop(log);
        self.apply(batch.body(), batch.count(), first)
    }

    /// The lock was free: the leader's batch stays where it is.
    fn lead(
        &self,
        mut log: LogGuard<'_>,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        touched: Touched,
        mut held: Held<'_>,
    ) -> Result<()> {
        loop {
            match self.run_group(&mut log, options, Some((&mut *batch, touched)))? {
                Turn::Done(first) => {
                    drop(log);
                    drop(held);
                    return self.apply(batch.body(), batch.count(), first);
                }
                Turn::Wait(obstacle) => self.stand_still(&mut log, &obstacle, &mut held),
            }
        }
    }

    /// Waits without the log lock until writers may go on, and takes it again. For leaders whose batch nobody else
    /// knows of: their standing in line for the lock holds nobody up.
    #[cold]
    fn stand_still(&self, log: &mut LogGuard<'_>, obstacle: &Obstacle, held: &mut Held<'_>) {
        let state = log.state.as_mut().expect("held by the leader");
        MutexGuard::unlocked(state, || {
            // Others may have nothing to wait for.
            self.queue.wake_front();
            if self.is_stopped() {
                self.stay_away(held);
            } else {
                self.wait_to_go_on(obstacle, held);
            }
        });
    }

    /// The outcome of a slot that a leader has dealt with.
    fn follow(&self, slot: &Slot) -> Result<()> {
        let (mut batch, first, error) =
            slot.with_job(|j| (std::mem::take(&mut j.batch), j.first, j.error.take()));
        let done = match error {
            Some(e) => Err(e),
            None => {
                batch.set_seq(first);
                self.apply(batch.body(), batch.count(), first)
            }
        };
        slot.with_job(|j| j.batch = batch);
        done
    }

    /// Logs one group: the leader's batch (when it is not in the queue) and the slots that fit beside it.
    /// Slots are assigned or failed before it returns, or stepped aside.
    fn run_group(
        &self,
        log: &mut LogGuard<'_>,
        options: &WriteOptions,
        own: Option<(&mut WriteBatch, Touched)>,
    ) -> Result<Turn> {
        let own_bytes = own.as_ref().map_or(0, |(b, _)| b.data_size());
        let looked_at = own.as_ref().map(|(b, touched)| (&**b, *touched));
        match self.prepare(log, options, own_bytes, looked_at) {
            Ok(None) => {}
            Ok(Some(obstacle)) => return Ok(Turn::Wait(obstacle)),
            Err(e) if e.kind() == ErrorKind::Incomplete => return Err(e),
            Err(e) => {
                let disable_wal = own.as_ref().map(|_| options.disable_wal);
                let (slots, _) = self.take_group(disable_wal, own_bytes);
                slots.iter().for_each(|s| s.fail(e.clone()));
                return Err(e);
            }
        }
        let own = own.map(|(batch, _)| batch);
        self.run_prepared(log, options, own).map(Turn::Done)
    }

    /// As [`WritePath::run_group`], when nothing stands in the way of writing.
    fn run_prepared(
        &self,
        log: &mut LogGuard<'_>,
        options: &WriteOptions,
        own: Option<&mut WriteBatch>,
    ) -> Result<Seq> {
        let own_bytes = own.as_ref().map_or(0, |b| b.data_size());
        let (slots, disable_wal) =
            self.take_group(own.as_ref().map(|_| options.disable_wal), own_bytes);
        if own.is_none() && slots.is_empty() {
            // All have stepped aside, the leader among them.
            return Ok(self.sequence.allocated().next());
        }
        let count = own.as_ref().map_or(0, |b| u64::from(b.count()));
        let first = self.sequence.allocate(count);
        let logged = match own {
            Some(batch) if slots.is_empty() => {
                batch.set_seq(first);
                self.log_group(log, disable_wal, &[batch.data()], options.sync)
            }
            mut own => {
                if let Some(batch) = &mut own {
                    batch.set_seq(first);
                }
                self.log_many(log, disable_wal, options.sync, own, &slots, first)
            }
        };
        if let Err(e) = logged {
            self.health.report(ErrorSource::Wal, &e);
            self.abandon(first, count, &slots, &e);
            self.wake.notify();
            return Err(e);
        }
        self.count_group(own_bytes, count, &slots, disable_wal);
        for slot in &slots {
            slot.assign();
        }
        Ok(first)
    }

    /// The waiting slots that go with a leader's batch of `own_bytes`, and whether the group skips the log.
    /// Without a leader's batch (`None`) the front of the queue decides.
    fn take_group(&self, disable_wal: Option<bool>, own_bytes: usize) -> (Vec<Arc<Slot>>, bool) {
        if self.admission.is_stopped() {
            let stops = |job: &SlotJob| self.admission.stops(job.touched, &job.batch).is_some();
            self.queue.let_aside(stops);
        }
        // A small leader's batch is not held up by a large group.
        let most = self.limits.group_bytes_max;
        let limit = if own_bytes <= most / 8 {
            own_bytes + most / 8
        } else {
            most
        };
        let mut bytes = own_bytes;
        let mut group = disable_wal;
        let slots = self.queue.drain(|job: &SlotJob| {
            bytes += job.batch.data_size();
            let skips = *group.get_or_insert(job.options.disable_wal);
            (bytes <= limit || bytes == job.batch.data_size()) && job.options.disable_wal == skips
        });
        (slots, group.unwrap_or(false))
    }

    /// Gives the slots their sequences and appends one record that holds every batch of the group.
    fn log_many(
        &self,
        log: &mut LogGuard<'_>,
        disable_wal: bool,
        mut sync: bool,
        own: Option<&mut WriteBatch>,
        slots: &[Arc<Slot>],
        first: Seq,
    ) -> Result<()> {
        let mut total = own.as_ref().map_or(0, |b| b.count());
        let batches: Vec<WriteBatch> = slots
            .iter()
            .map(|slot| {
                slot.with_job(|job| {
                    let n = job.batch.count();
                    job.first = self.sequence.allocate(u64::from(n));
                    total += n;
                    sync |= job.options.sync;
                    std::mem::take(&mut job.batch)
                })
            })
            .collect();
        let header = encode_header(first, total);
        let mut parts: Vec<&[u8]> = Vec::with_capacity(batches.len() + 2);
        parts.push(&header);
        parts.extend(own.as_deref().map(WriteBatch::body));
        parts.extend(batches.iter().map(WriteBatch::body));
        let done = self.log_group(log, disable_wal, &parts, sync);
        for (slot, batch) in slots.iter().zip(batches) {
            slot.with_job(|job| job.batch = batch);
        }
        done
    }

    fn log_group(
        &self,
        log: &mut LogGuard<'_>,
        disable_wal: bool,
        parts: &[&[u8]],
        sync: bool,
    ) -> Result<()> {
        if disable_wal {
            if !self.unlogged.load(Ordering::Relaxed) {
                self.unlogged.store(true, Ordering::Release);
            }
            return Ok(());
        }
        let _timed = stages::part(PerfMetric::WriteWalTime, self.admission.clock());
        log.append(parts)?;
        let bytes = parts.iter().map(|p| p.len() as u64).sum();
        self.tally.wal_bytes(bytes);
        if let Some(s) = &self.statistics {
            s.add(Ticker::WalFileBytes, bytes);
        }
        if !sync {
            return Ok(());
        }
        self.timed_sync(log)
    }

    /// Hands what is in the log to the operating system, with `sync` to the device. When that fails, what was acknowledged
    /// may be in memtables alone: writing ends until they are in tables.
    pub(crate) fn save(&self, log: &mut LogState, sync: bool) -> Result<()> {
        let done = if sync {
            self.timed_sync(log)
        } else {
            log.flush()
        };
        done.inspect_err(|e| self.report_log(e))
    }

    /// The log failed outside of a write, which would report it.
    #[cold]
    fn report_log(&self, error: &Error) {
        if self.health.check_writable().is_ok() {
            self.health.report(ErrorSource::Wal, error);
            self.wake.notify();
        }
    }

    /// Syncs the log, and counts and times that.
    pub(crate) fn timed_sync(&self, log: &mut LogState) -> Result<()> {
        let timed = self
            .statistics
            .as_deref()
            .filter(|s| s.wants_times())
            .map(|s| (s, self.admission.now_us()));
        log.sync()?;
        self.tally.wal_synced();
        if let Some(s) = &self.statistics {
            s.add(Ticker::WalFileSynced, 1);
        }
        if let Some((s, start)) = timed {
            s.record(
                HistogramId::WalFileSyncMicros,
                self.admission.now_us() - start,
            );
        }
        Ok(())
    }

    /// The group is not in the log: its sequence numbers pass unused, so that nobody waits for them.
    #[cold]
    fn abandon(&self, first: Seq, count: u64, slots: &[Arc<Slot>], error: &Error) {
        self.sequence.publish(first, count);
        for slot in slots {
            let (at, n) = slot.with_job(|j| (j.first, u64::from(j.batch.count())));
            if at > Seq::ZERO {
                self.sequence.publish(at, n);
            }
            slot.fail(error.clone());
        }
    }

    /// Before a group: switches memtables that are full, and says what has to be waited for first, of all writers or of the leader's `own`
    /// batch. The log lock is not to be held meanwhile. Those in the queue who have to wait for a family step aside.
    fn prepare(
        &self,
        log: &mut LogGuard<'_>,
        options: &WriteOptions,
        bytes: usize,
        own: Option<(&WriteBatch, Touched)>,
    ) -> Result<Option<Obstacle>> {
        if self.switch_wanted.load(Ordering::Acquire) {
            self.switch_full(log)?;
        }
        let most = self.limits.max_total_wal_size.load(Ordering::Relaxed);
        let mut stops = None;
        if most > 0 && log.alive_bytes() > most {
            stops = self.switch_oldest_log(log)?;
        }
        if self.buffers.is_watched() {
            self.keep_within_memory(log, bytes as u64)?;
            if self.buffers.must_stall() {
                self.make_room(log, options)?;
                if self.buffers.must_stall() {
                    self.check_callback()?;
                    return Ok(Some(Obstacle::Everybody));
                }
            }
        }
        if let Some(family) = own.and_then(|(b, touched)| self.admission.stops(touched, b)) {
            stops = Some(family);
        }
        if let Some(family) = stops {
            check_callback(&family)?;
            self.admission.check_wait(&self.health, options)?;
            return Ok(Some(Obstacle::Family(family)));
        }
        if self.is_stopped() {
            if options.no_slowdown {
                return Err(would_wait());
            }
            if self.wake.is_closing() {
                return Err(Error::shutdown());
            }
            self.check_callback()?;
            return Ok(Some(Obstacle::Everybody));
        }
        self.health.check_writable()?;
        Ok(None)
    }

    /// Times a switch of memtables that a writer makes.
    fn time_switch(&self) -> PerfTimer<'_> {
        let metric = PerfMetric::WriteSchedulingFlushesCompactionsTime;
        stages::part(metric, self.admission.clock())
    }

    fn switch_full(&self, log: &mut LogGuard<'_>) -> Result<()> {
        let _timed = self.time_switch();
        self.switch_wanted.store(false, Ordering::Release);
        let full: Vec<_> = self
            .families
            .all()
            .into_iter()
            .filter(|f| f.switch_wanted.load(Ordering::Acquire))
            .collect();
        let deletions = full
            .iter()
            .any(|f| f.view_guard().mem.has_too_many_range_deletions());
        let reason = if deletions {
            FlushReason::TooManyRangeDeletions
        } else {
            FlushReason::WriteBufferFull
        };
        self.switch_memtables(log, &full, reason)
    }

    /// Flushes the largest memtable when all of them together take too much memory. Looked at now and then: adding
    /// up is not free.
    fn keep_within_memory(&self, log: &mut LogGuard<'_>, bytes: u64) -> Result<()> {
        let unmeasured = self.unmeasured.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if unmeasured < self.buffers.interval() {
            return Ok(());
        }
        self.unmeasured.store(0, Ordering::Relaxed);
        match self.buffers.look() {
            Relief::None => Ok(()),
            Relief::Own => self.switch_largest(log),
        }
    }

    /// Switches the largest memtable, to give its memory back.
    pub(crate) fn switch_largest(&self, log: &mut LogGuard<'_>) -> Result<()> {
        let _timed = self.time_switch();
        let used = |f: &Arc<Family>| f.view_guard().mem.data_bytes();
        match self.families.all().into_iter().max_by_key(used) {
            Some(largest) => {
                self.switch_memtables(log, &[largest], FlushReason::WriteBufferManager)
            }
            None => Ok(()),
        }
    }

    /// Memtables take too much memory: sees to it that flushes give some back.
    #[cold]
    fn make_room(&self, log: &mut LogGuard<'_>, options: &WriteOptions) -> Result<()> {
        self.health.check_writable()?;
        if self.wake.is_closing() {
            return Err(Error::shutdown());
        }
        if self.buffers.look() == Relief::Own {
            self.switch_largest(log)?;
        }
        if options.no_slowdown && self.buffers.must_stall() {
            return Err(would_wait());
        }
        Ok(())
    }

    /// The logs grew past their limit: the families that keep the oldest one alive are switched. When all of them wait to be flushed
    /// already and one of them stops its own writers, that one is returned: all writers wait for it, or the logs would grow without end.
    fn switch_oldest_log(&self, log: &mut LogGuard<'_>) -> Result<Option<Arc<Family>>> {
        let _timed = self.time_switch();
        let Some(oldest) = log.alive().next() else {
            return Ok(None);
        };
        let holding: Vec<_> = self
            .families
            .all()
            .into_iter()
            .filter(|f| {
                let v = f.view_guard();
                v.immutable.is_empty() && !v.mem.is_empty() && v.mem.log_number() <= oldest.number
            })
            .collect();
        if !holding.is_empty() {
            self.switch_memtables(log, &holding, FlushReason::WalFull)?;
            return Ok(None);
        }
        if !self.admission.is_stopped() {
            return Ok(None);
        }
        let keeps = |f: &Arc<Family>| {
            let first = f.view_guard().oldest_log();
            f.gate.is_stopped() && first.is_some_and(|n| n <= oldest.number)
        };
        Ok(self.families.all().into_iter().find(keeps))
    }

    /// Switches the memtables of `families` (those that hold anything) to a new log.
    pub(crate) fn switch_memtables(
        &self,
        log: &mut LogGuard<'_>,
        families: &[Arc<Family>],
        reason: FlushReason,
    ) -> Result<()> {
        if !seeded(Bug::SwitchBesideWriters) {
            self.sequence.quiesce();
        }
        let all;
        let families = if self.limits.atomic_flush {
            all = self.families.all();
            all.as_slice()
        } else {
            families
        };
        let full: Vec<_> = families
            .iter()
            .filter(|f| !f.view_guard().mem.is_empty())
            .collect();
        if full.is_empty() {
            return Ok(());
        }
        if !log.is_empty() || log.is_broken() {
            let number = log.spare_number().unwrap_or_else(|| self.numbers.next());
            self.spare_wanted
                .store(reason == FlushReason::WriteBufferFull, Ordering::Release);
            self.start_log(log, number).inspect_err(|e| {
                self.health.report(ErrorSource::Wal, e);
            })?;
        }
        let number = log.number();
        for family in self.families.all() {
            let view = family.view_guard();
            if view.mem.is_empty() {
                view.mem.set_log_number(number);
            }
        }
        for family in full {
            self.tell_sealed(family, reason);
            family.switch_memtable(number, Some(self.sequence.published()));
            self.admission.refresh(family);
        }
        self.wake.notify();
        Ok(())
    }

    /// Starts log `number`, with what is prepared at its beginning.
    pub(crate) fn start_log(&self, log: &mut LogState, number: FileNo) -> Result<()> {
        let next = self.sequence.allocated().next();
        log.rotate(number, next)?;
        if let Some(e) = log.unsaved() {
            self.report_log(e);
        }
        self.prepared.write_into(log, next)
    }

    /// Writes `batch` into the log as a prepared transaction; nothing of it is seen before it is committed.
    pub(crate) fn write_prepared(
        &self,
        options: &WriteOptions,
        name: &[u8],
        batch: &WriteBatch,
    ) -> Result<()> {
        self.health.check_writable()?;
        let touched = self.check_families(batch, false)?;
        let mut record = prepared::record_of(name, batch)?;
        let mut log = self.lock_to_write(options, &record, touched, false)?;
        record.set_seq(self.sequence.allocated().next());
        self.log_marker(&mut log, options, &record)?;
        self.prepared.add(name, record);
        Ok(())
    }

    /// Writes `batch` and undoes the section of the prepared transaction `name`, in one record of the log.
    pub(crate) fn write_committed(
        &self,
        options: &WriteOptions,
        name: &[u8],
        batch: &WriteBatch,
    ) -> Result<()> {
        self.health.check_writable()?;
        let touched = self.check_families(batch, options.ignore_missing_column_families)?;
        let mut whole = WriteBatch::with_capacity(batch.data_size() + name.len() + 8);
        whole.append(batch, false)?;
        whole.mark_rollback(name)?;
        // The section is in the log, so its end has to be there too.
        let options = &WriteOptions {
            disable_wal: false,
            ..*options
        };
        let batch = &mut whole;
        let mut log = self.lock_to_write(options, batch, touched, true)?;
        let first = self.run_prepared(&mut log, options, Some(batch))?;
        self.prepared.remove(name);
        drop(log);
        self.apply(batch.body(), batch.count(), first)
    }

    /// Undoes the section of the prepared transaction `name`.
    pub(crate) fn write_undone(&self, options: &WriteOptions, name: &[u8]) -> Result<()> {
        self.health.check_writable()?;
        let mut record = WriteBatch::new();
        record.mark_rollback(name)?;
        let mut log = self.lock_to_write(options, &record, Touched::NONE, false)?;
        record.set_seq(self.sequence.allocated().next());
        self.log_marker(&mut log, options, &record)?;
        self.prepared.remove(name);
        Ok(())
    }

    /// Appends a record that changes no memtable.
    fn log_marker(
        &self,
        log: &mut LogGuard<'_>,
        options: &WriteOptions,
        record: &WriteBatch,
    ) -> Result<()> {
        self.log_group(log, false, &[record.data()], options.sync)
            .inspect_err(|e| {
                self.health.report(ErrorSource::Wal, e);
                self.wake.notify();
            })
    }

    /// The family's memtable takes no more writes.
    fn tell_sealed(&self, family: &Family, reason: FlushReason) {
        let view = family.view_guard();
        view.mem.seal(reason);
        let pending = &self.health.pending;
        if pending.is_listened() {
            let first_seq = view.mem.first_seq().unwrap_or(Seq::ZERO);
            pending.add(PendingEvent::Sealed(MemtableInfo {
                family: family.name.clone(),
                earliest_seq: first_seq,
                first_seq,
                entries: view.mem.entries(),
                deletes: view.mem.deletions(),
                bytes: view.mem.memory_usage() as u64,
            }));
        }
    }

    /// Inserts a logged batch into the memtables and makes it visible.
    #[inline]
    fn apply(&self, body: &[u8], count: u32, first: Seq) -> Result<()> {
        let _timed = stages::part(PerfMetric::WriteMemtableTime, self.admission.clock());
        let mut to = LiveMemtables {
            path: self,
            last: None,
        };
        if seeded(Bug::PublishBeforeInsert) {
            self.sequence.publish(first, u64::from(count));
        }
        let done = apply::insert(Records::over_body(body), first, &mut to);
        if !seeded(Bug::PublishBeforeInsert) {
            self.sequence.publish(first, u64::from(count));
        }
        if let Err(e) = done {
            // The log holds the batch and the memtable only part of it: recovery will see all of it.
            self.health.report(ErrorSource::Wal, &e);
            self.wake.notify();
            return Err(e);
        }
        to.notice_full();
        Ok(())
    }

    /// A batch may name only families that exist, operands need an operator, and a range must not end before
    /// it begins: once the batch is in the log it is too late to refuse it. Returns the families.
    fn check_families(&self, batch: &WriteBatch, ignore_missing: bool) -> Result<Touched> {
        if batch.has_begin_prepare() || batch.has_end_prepare() || batch.has_commit() {
            return Err(Error::not_supported(
                "records of two-phase commit in a batch to be written",
            ));
        }
        if self.families.may_have_timestamps() || batch.has_timestamps() {
            self.check_timestamps(batch)?;
        } else if batch.count() == 1 && matches!(batch.body().first(), Some(0x00 | 0x01 | 0x07)) {
            return Ok(Touched::one(FamilyId::DEFAULT));
        }
        let mut touched = Touched::NONE;
        for record in batch.records() {
            let record = record?;
            let Some(id) = record.family() else { continue };
            if id != FamilyId::DEFAULT && !self.families.contains(id) {
                if ignore_missing {
                    continue;
                }
                return Err(Error::invalid_argument(format!(
                    "the batch names column family {id}, which does not exist"
                )));
            }
            touched.add(id);
            if matches!(record, Record::Merge { .. }) {
                self.check_merge(id)?;
            }
            if let Record::DeleteRange { begin, end, .. } = record
                && let Some(family) = self.families.get(id)
            {
                timestamp::refuse_range_deletion(&family)?;
                if family.order.compare(begin, end).is_gt() {
                    return Err(Error::invalid_argument(
                        "a range deletion ends before it begins",
                    ));
                }
            }
        }
        Ok(touched)
    }

    /// Keys have timestamps where their families want them, and nowhere else.
    #[cold]
    fn check_timestamps(&self, batch: &WriteBatch) -> Result<()> {
        let size = |id| {
            let family = self.families.get(id);
            family.map_or(0, |f| f.order.timestamp_size())
        };
        batch.check_timestamps(size, |id| match self.families.get(id) {
            Some(family) => timestamp::needed(&family),
            None => Error::invalid_argument("a key without a timestamp"),
        })
    }

    fn check_merge(&self, id: FamilyId) -> Result<()> {
        match self.families.get(id) {
            Some(f) if f.merge_operator.is_none() => Err(Error::not_supported(format!(
                "merge in column family {} without a merge operator",
                f.name
            ))
            .with_hint("set merge_operator in the family's options")),
            _ => Ok(()),
        }
    }

    /// Counts a group that is in the log. The log lock is held.
    #[inline]
    fn count_group(&self, own_bytes: usize, own_keys: u64, slots: &[Arc<Slot>], disable_wal: bool) {
        let (mut writes, mut bytes, mut keys) =
            (u64::from(own_bytes > 0), own_bytes as u64, own_keys);
        for slot in slots {
            let (b, n) = slot.with_job(|j| (j.batch.data_size(), j.batch.count()));
            writes += 1;
            bytes += b as u64;
            keys += u64::from(n);
        }
        self.tally.group(writes, keys, bytes, !disable_wal);
        let Some(s) = &self.statistics else { return };
        s.add(Ticker::WriteDoneBySelf, 1);
        s.add(Ticker::WriteDoneByOther, writes.saturating_sub(1));
        s.add(Ticker::NumberKeysWritten, keys);
        s.add(Ticker::BytesWritten, bytes);
        s.record(HistogramId::BytesPerWrite, bytes);
        if !disable_wal {
            s.add(Ticker::WriteWithWal, writes);
        }
    }
}

fn check_options(options: &WriteOptions) -> Result<()> {
    if options.sync && options.disable_wal {
        return Err(Error::invalid_argument("sync writes need the log")
            .with_hint("clear sync or disable_wal"));
    }
    Ok(())
}

/// The memtables that take writes now. Valid while the batch is in flight: nobody switches meanwhile.
struct LiveMemtables<'a> {
    path: &'a WritePath,
    last: Option<(Arc<Family>, Guard<Arc<View>>)>,
}

impl Memtables for LiveMemtables<'_> {
    #[inline]
    fn with(&mut self, family: FamilyId, f: impl FnOnce(&MemTable) -> Result<()>) -> Result<bool> {
        if self.last.as_ref().is_none_or(|(l, _)| l.id != family) {
            self.notice_full();
            let Some(found) = self.path.families.get(family) else {
                return Ok(false);
            };
            let view = found.view_guard();
            self.last = Some((found, view));
        }
        let (_, view) = self.last.as_ref().expect("set just above");
        f(&view.mem).map(|()| true)
    }
}

impl LiveMemtables<'_> {
    /// Asks for a switch when the memtable that was written last is full.
    #[inline]
    fn notice_full(&self) {
        if let Some((family, view)) = &self.last
            && view.mem.is_full()
            && !family.switch_wanted.swap(true, Ordering::AcqRel)
        {
            self.path.switch_wanted.store(true, Ordering::Release);
        }
    }
}
