//! The pipeline of a write: to the queue or the log lock, a group into the log, the group into the
//! memtables, visibility.
//!
//! The holder of the log lock is the leader. It takes the queued batches, logs them with its own
//! as one record, and releases the lock before it inserts them ([`super::group`]), so the next
//! leader logs meanwhile. The other files of this folder have switching memtables
//! ([`super::switch`]) and two-phase commit ([`super::two_phase`]). The reasons to wait on the way
//! stand in [`crate::family::backpressure`].
//!
//! Thread-safety: everything may be called by any thread; what takes a [`LogGuard`] is for the
//! leader.

use super::counters::WriteCounters;
use super::crowd::Crowd;
use super::full_families::FullFamilies;
use super::group::{Follower, Member as GroupMember, Outcome, WriteGroup, WriteJob, WriteQueue};
use super::log_state::LogState;
use super::perf_timing;
use super::prepared::Prepared;
use super::sequence::Sequence;
use crate::family::backpressure::admission::{
    Admission, AdmissionRequest, check_callback, would_wait,
};
use crate::family::backpressure::batch_families::BatchFamilies;
use crate::family::backpressure::stall_tracker::{StallGuard, StallReason};
use crate::family::backpressure::stops::Stops;
use crate::family::{Family, FamilySet};
use crate::health::{ErrorSource, Health};
use crate::memory::WriteBufferHandle;
use crate::observe::{HistogramId, PerfMetric, StallCause, Statistics};
use crate::options::WriteOptions;
use crate::ranks;
use crate::runtime::BackgroundCv;
use crate::runtime::callback::{self, Callback};
use crate::tree::FileNumbers;
use esker_format::batch::{WriteBatch, encode_header};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use esker_sync::handover;
use esker_sync::{Arc, Mutex, MutexGuard, thread};

/// How often a writer in the queue looks for its turn before it sleeps, when there is another
/// processor: about as long as a small group takes.
const SPINS: u32 = 100;

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

/// What writers that are at the log already have to wait for.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// Administration, or memory of memtables: no writer may go on.
    Everybody,
    /// A family admits no writers.
    Family(Arc<Family>),
}

/// What became of a leader's turn.
#[derive(Debug)]
pub(super) enum LeaderOutcome {
    /// Its group is logged, its own batch first.
    Done(WriteGroup),
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
    pub(crate) background_cv: Arc<BackgroundCv>,
    pub(crate) statistics: Option<Arc<Statistics>>,
    /// What went through, for the database's own figures.
    pub(crate) counters: WriteCounters,
    log: Mutex<LogState>,
    pub(super) queue: WriteQueue,
    /// Transactions that are prepared.
    pub(crate) prepared: Prepared,
    /// The families with full memtables; the next leader switches these.
    pub(super) full: FullFamilies,
    /// Memtables fill up: the next flush is to make the log of the next switch.
    pub(crate) spare_wanted: AtomicBool,
    pub(crate) limits: Limits,
    /// The limit on the memory of memtables, perhaps shared with other databases.
    pub(crate) buffers: WriteBufferHandle,
    /// Bytes written since the memory of all memtables was added up.
    pub(super) unmeasured: AtomicU64,
    /// Some write went past the log since the database was opened.
    pub(super) unlogged: Arc<AtomicBool>,
    /// The log is being synced: a writer that queues may sleep at once.
    pub(super) is_syncing: AtomicBool,
    pub(super) stops: Stops,
    /// Closing has begun: no write is taken any more.
    closed: AtomicBool,
    crowd: Crowd,
}

/// The log lock. Dropping it calls the writer at the front of the queue.
#[derive(Debug)]
pub(crate) struct LogGuard<'a> {
    path: &'a WritePath,
    pub(super) state: Option<MutexGuard<'a, LogState>>,
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
        if let Some(state) = self.state.take() {
            drop(state);
            self.path.queue.call_front(!seeded(Bug::QueueLeftAlone));
        }
    }
}

impl<'a> LogGuard<'a> {
    /// Lets the next leader have the log: one that is awake, or one that sleeps when this one will
    /// be busy for long.
    #[inline]
    pub(super) fn release(mut self, for_long: bool) -> Duty<'a> {
        drop(self.state.take());
        self.path.queue.call_front(for_long);
        Duty::of(self.path)
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
        background_cv: Arc<BackgroundCv>,
        statistics: Option<Arc<Statistics>>,
        log: LogState,
        limits: Limits,
        buffers: WriteBufferHandle,
    ) -> Self {
        WritePath {
            families,
            sequence,
            admission,
            health,
            numbers,
            background_cv,
            statistics,
            counters: WriteCounters::default(),
            log: Mutex::new(ranks::LOG, log),
            queue: WriteQueue::new(ranks::WRITE_QUEUE),
            prepared: Prepared::new(),
            full: FullFamilies::new(),
            spare_wanted: AtomicBool::new(false),
            limits,
            buffers,
            unmeasured: AtomicU64::new(0),
            unlogged: Arc::new(AtomicBool::new(false)),
            is_syncing: AtomicBool::new(false),
            stops: Stops::new(),
            closed: AtomicBool::new(false),
            crowd: Crowd::new(),
        }
    }

    /// Takes no more writes. Whether that is new.
    pub(crate) fn begin_closing(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Tells whether closing has begun.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Waits for its turn. While administration stops writers it may have the log lock: that too is
    /// being held back.
    fn wait_in_queue(
        &self,
        follower: &Follower,
        held: &mut StallGuard<'_>,
    ) -> handover::WaitOutcome<LogGuard<'_>> {
        let wait = || {
            let is_alone = thread::parallelism() < 2 || self.is_syncing.load(Ordering::Relaxed);
            follower.wait(if is_alone { 0 } else { SPINS }, || self.try_lock())
        };
        if self.is_stopped() {
            let reason = StallReason::of_database(StallCause::Administration);
            return held.during(reason, wait);
        }
        let _timed = perf_timing::part(PerfMetric::WriteThreadWaitNanos, self.admission.clock());
        wait()
    }

    /// Takes the log lock for a write past the queue, when nothing stands in the way of `batch`.
    pub(super) fn lock_to_write(
        &self,
        options: &WriteOptions,
        batch: &WriteBatch,
        touched: BatchFamilies,
        is_charged: bool,
    ) -> Result<LogGuard<'_>> {
        let mut held = self.not_held();
        if self.is_stopped() && !options.no_slowdown {
            self.check_callback()?;
            self.wait_for_stop_writers(&mut held);
        }
        self.admit(batch, touched, options, is_charged, &mut held)?;
        let mut log = self.lock();
        let bytes = batch.data_size();
        while let Some(obstacle) = self.prepare(&mut log, options, bytes, Some((batch, touched)))? {
            self.release_log_and_wait(&mut log, &obstacle, &mut held);
        }
        Ok(log)
    }

    /// A writer's wait, which has not begun.
    #[inline]
    pub(super) fn not_held(&self) -> StallGuard<'_> {
        StallGuard::new(&self.admission.stall_tracker)
    }

    /// Takes the log lock: for administration that must not run beside a leader.
    pub(crate) fn lock(&self) -> LogGuard<'_> {
        LogGuard {
            path: self,
            state: Some(self.log.lock()),
        }
    }

    /// Set when a write goes past the log.
    pub(crate) fn unlogged(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unlogged)
    }

    #[inline]
    pub(super) fn try_lock(&self) -> Option<LogGuard<'_>> {
        Some(LogGuard {
            path: self,
            state: Some(self.log.try_lock()?),
        })
    }

    /// Writes a batch: all of it or nothing, durable as `options` say, visible on return.
    #[inline]
    pub(crate) fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        let statistics = self.statistics.as_deref().filter(|s| s.wants_times());
        let done = if statistics.is_some() || perf_timing::are_timed() {
            self.write_timed(statistics, options, batch)
        } else {
            self.write_batch(options, batch)
        };
        self.crowd.share_processor(self.admission.clock());
        done
    }

    #[inline(never)]
    fn write_timed(
        &self,
        statistics: Option<&Statistics>,
        options: &WriteOptions,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let clock = self.admission.clock();
        let parts_before_ns = perf_timing::are_timed().then(perf_timing::parts_ns);
        let start_ns = clock.now_ns();
        let done = self.write_batch(options, batch);
        let took_ns = clock.now_ns().saturating_sub(start_ns);
        if let Some(before_ns) = parts_before_ns {
            perf_timing::add_rest(took_ns, before_ns);
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
            self.admission.yield_low_pri();
        }
        let mut held = self.not_held();
        if self.is_stopped() && !options.no_slowdown {
            self.check_callback()?;
            self.wait_for_stop_writers(&mut held);
        }
        let mut is_charged = true;
        loop {
            self.admit(batch, touched, options, is_charged, &mut held)?;
            if let Some(log) = self.try_lock() {
                return self.lead(log, options, batch, touched, held);
            }
            self.crowd.note_wait(self.admission.clock().now_ns());
            let follower = self.queue.push(WriteJob {
                batch: Some(std::mem::take(batch)),
                touched,
                options: *options,
                ..WriteJob::default()
            });
            self.wait_for_turn(&follower, options, &mut held);
            let (own, outcome) =
                follower.with_job(|job| (job.batch.take(), std::mem::take(&mut job.outcome)));
            if let Some(own) = own {
                *batch = own;
            }
            match outcome {
                Outcome::Aside => is_charged = false,
                Outcome::Failed(e) => return Err(e),
                Outcome::Written | Outcome::Pending => return Ok(()),
            }
        }
    }

    /// An error when this thread is in the callback of a job that is not done, for which the thread
    /// that stops all writers may wait.
    #[cold]
    fn check_callback(&self) -> Result<()> {
        if Callback::is_inside() {
            return Err(callback::would_wait());
        }
        Ok(())
    }

    /// Waits until the families of a batch let it in.
    #[inline]
    fn admit(
        &self,
        batch: &WriteBatch,
        touched: BatchFamilies,
        options: &WriteOptions,
        is_charged: bool,
        held: &mut StallGuard<'_>,
    ) -> Result<()> {
        let entrant = AdmissionRequest {
            batch,
            touched,
            options,
            is_charged,
        };
        self.admission.admit(&entrant, &self.health, held)
    }

    /// Waits until the batch in the queue is dealt with, by this writer perhaps.
    fn wait_for_turn(
        &self,
        follower: &Arc<Follower>,
        options: &WriteOptions,
        held: &mut StallGuard<'_>,
    ) {
        loop {
            let mut log = match self.wait_in_queue(follower, held) {
                handover::WaitOutcome::Done => return,
                handover::WaitOutcome::Work => {
                    self.work(follower);
                    continue;
                }
                handover::WaitOutcome::Lead(log) => log,
            };
            // A failure is told to the followers of the group, this one among them when it was in
            // it. That this writer does not want to wait is no failure of the others.
            match self.run_group(&mut log, options, None) {
                Ok(LeaderOutcome::Done(group)) => {
                    let duty = log.release(group.is_long());
                    // What failed is told to the followers, this one among them.
                    let _told = self.complete(group, None, duty);
                }
                Ok(LeaderOutcome::Wait(obstacle)) => {
                    // Another leader may take the batch meanwhile, so this thread must not stand in
                    // line for the lock.
                    drop(log);
                    self.wait_for_obstacle(&obstacle, held);
                }
                Err(e) if e.kind() == ErrorKind::Incomplete && self.queue.remove(follower) => {
                    follower.with_job(|job| job.outcome = Outcome::Failed(e));
                    follower.finish();
                }
                Err(_) => {}
            }
        }
    }

    /// Writes `batch` if `check` says yes at a moment when every earlier write is in the memtables
    /// and none is in flight. Other writers wait meanwhile, so `check` must not do I/O, and must
    /// not write.
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
        let group = self.log_prepared(&mut log, options, Some(&mut *batch))?;
        let duty = log.release(group.is_long());
        self.complete(group, Some(batch), duty)
    }

    /// The lock was free: the leader's batch stays where it is.
    fn lead(
        &self,
        mut log: LogGuard<'_>,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        touched: BatchFamilies,
        mut held: StallGuard<'_>,
    ) -> Result<()> {
        loop {
            match self.run_group(&mut log, options, Some((&mut *batch, touched)))? {
                LeaderOutcome::Done(group) => {
                    let duty = log.release(group.is_long());
                    drop(held);
                    return self.complete(group, Some(batch), duty);
                }
                LeaderOutcome::Wait(obstacle) => {
                    self.release_log_and_wait(&mut log, &obstacle, &mut held)
                }
            }
        }
    }

    /// Logs one group: the leader's batch (when it is not in the queue) and the batches that fit
    /// beside it. When it fails the followers of the group are told.
    pub(super) fn run_group(
        &self,
        log: &mut LogGuard<'_>,
        options: &WriteOptions,
        own: Option<(&mut WriteBatch, BatchFamilies)>,
    ) -> Result<LeaderOutcome> {
        let own_bytes = own.as_ref().map_or(0, |(b, _)| b.data_size());
        let looked_at = own.as_ref().map(|(b, touched)| (&**b, *touched));
        match self.prepare(log, options, own_bytes, looked_at) {
            Ok(None) => {}
            Ok(Some(obstacle)) => {
                if own.is_none() {
                    self.turn_away();
                }
                return Ok(LeaderOutcome::Wait(obstacle));
            }
            Err(e) if e.kind() == ErrorKind::Incomplete => return Err(e),
            Err(e) => {
                let disable_wal = own.as_ref().map(|_| options.disable_wal);
                let (followers, _) = self.take_group(disable_wal, own_bytes);
                for follower in followers {
                    follower.with_job(|job| job.outcome = Outcome::Failed(e.clone()));
                    follower.finish();
                }
                return Err(e);
            }
        }
        let own = own.map(|(batch, _)| batch);
        self.log_prepared(log, options, own)
            .map(LeaderOutcome::Done)
    }

    /// All writers have to wait: those in the queue that do not want to are told. They would sleep
    /// behind a leader that waits.
    #[cold]
    fn turn_away(&self) {
        for follower in self.queue.retain(|job| !job.options.no_slowdown) {
            follower.with_job(|job| job.outcome = Outcome::Failed(would_wait()));
            follower.finish();
        }
    }

    /// As [`WritePath::run_group`], when nothing stands in the way of writing.
    pub(super) fn log_prepared(
        &self,
        log: &mut LogGuard<'_>,
        options: &WriteOptions,
        own: Option<&mut WriteBatch>,
    ) -> Result<WriteGroup> {
        let own_bytes = own.as_ref().map_or(0, |b| b.data_size());
        let own_wish = own.as_ref().map(|_| options.disable_wal);
        let (followers, disable_wal) = self.take_group(own_wish, own_bytes);
        let own_count = own.as_ref().map_or(0, |b| u64::from(b.count()));
        let first = self.sequence.allocate(own_count);
        let mut group = WriteGroup::new(first, own_count, Vec::new());
        let logged = match own {
            Some(batch) if followers.is_empty() => {
                batch.set_seq(first);
                group.is_synced = options.sync;
                self.log_group(log, disable_wal, &[batch.data()], options.sync)
            }
            // All have stepped aside, the leader among them.
            None if followers.is_empty() => return Ok(group),
            own => {
                let sync = own.is_some() && options.sync;
                group.is_synced = self.gather(&mut group, followers) || sync;
                self.log_many(log, disable_wal, own, &group)
            }
        };
        if let Err(e) = logged {
            self.health.report(ErrorSource::Wal, &e);
            // Its sequence numbers pass unused, so that no writer waits for them.
            for member in &mut group.members {
                member.error = Some(e.clone());
            }
            self.publish(group, false);
            self.background_cv.notify();
            return Err(e);
        }
        self.count_group(own_bytes, own_count, &group.members, disable_wal);
        Ok(group)
    }

    /// The queued batches that go with a leader's batch of `own_bytes`, and whether the group skips
    /// the log. Without a leader's batch (`None`) the front of the queue decides.
    fn take_group(
        &self,
        disable_wal: Option<bool>,
        own_bytes: usize,
    ) -> (Vec<Arc<Follower>>, bool) {
        if self.queue.is_empty() {
            return (Vec::new(), disable_wal.unwrap_or(false));
        }
        if self.admission.is_stopped() {
            let passes = |job: &WriteJob| {
                let batch = job.batch.as_ref();
                batch.is_none_or(|b| self.admission.stops(job.touched, b).is_none())
            };
            for follower in self.queue.retain(passes) {
                follower.with_job(|job| job.outcome = Outcome::Aside);
                follower.finish();
            }
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
        let followers = self.queue.take_while(|job| {
            bytes += job.bytes();
            let skips = *group.get_or_insert(job.options.disable_wal);
            (bytes <= limit || bytes == job.bytes()) && job.options.disable_wal == skips
        });
        (followers, group.unwrap_or(false))
    }

    /// Makes followers members of a group, each with its sequence numbers. Whether one of them
    /// wants a sync.
    fn gather(&self, group: &mut WriteGroup, followers: Vec<Arc<Follower>>) -> bool {
        let mut sync = false;
        group.members.reserve_exact(followers.len());
        for follower in followers {
            let mut batch = follower.with_job(|job| {
                sync |= job.options.sync;
                job.batch.take()
            });
            let count = batch.as_ref().map_or(0, |b| u64::from(b.count()));
            let first = self.sequence.allocate(count);
            if let Some(batch) = &mut batch {
                batch.set_seq(first);
            }
            group.count += count;
            group.members.push(GroupMember {
                follower,
                batch,
                first,
                error: None,
            });
        }
        sync
    }

    /// Appends one record that holds every batch of the group.
    fn log_many(
        &self,
        log: &mut LogGuard<'_>,
        disable_wal: bool,
        own: Option<&mut WriteBatch>,
        group: &WriteGroup,
    ) -> Result<()> {
        let own = own.map(|batch| {
            batch.set_seq(group.first);
            batch.body()
        });
        // A batch counts its records in 32 bits, and so does a group: its bytes are limited.
        let header = encode_header(group.first, u32::try_from(group.count).unwrap_or(u32::MAX));
        let mut parts: Vec<&[u8]> = Vec::with_capacity(group.members.len() + 2);
        parts.push(&header);
        parts.extend(own);
        let batches = group.members.iter().filter_map(|m| m.batch.as_ref());
        parts.extend(batches.map(WriteBatch::body));
        self.log_group(log, disable_wal, &parts, group.is_synced)
    }

    /// Before a group: switches memtables that are full, and says what has to be waited for first,
    /// of all writers or of the leader's `own` batch. The log lock is not to be held meanwhile.
    /// Queued writers that have to wait for a family step aside.
    fn prepare(
        &self,
        log: &mut LogGuard<'_>,
        options: &WriteOptions,
        bytes: usize,
        own: Option<(&WriteBatch, BatchFamilies)>,
    ) -> Result<Option<Obstacle>> {
        if self.full.is_any() {
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
            if self.is_closed() {
                return Err(Error::shutdown());
            }
            self.check_callback()?;
            return Ok(Some(Obstacle::Everybody));
        }
        self.health.check_writable()?;
        Ok(None)
    }
}

/// What a leader that has released the log lock owes: those that queue get a leader.
#[derive(Debug)]
pub(super) struct Duty<'a>(Option<&'a WritePath>);

impl<'a> Duty<'a> {
    pub(super) fn of(path: &'a WritePath) -> Self {
        Duty(Some(path))
    }

    pub(super) fn fulfil(mut self) {
        self.0 = None;
    }
}

impl Drop for Duty<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(path) = self.0
            && !seeded(Bug::QueueLeftAlone)
        {
            path.queue.call_front(true);
        }
    }
}

/// A sync is a sync of the log.
fn check_options(options: &WriteOptions) -> Result<()> {
    if options.sync && options.disable_wal {
        return Err(Error::invalid_argument("sync writes need the log")
            .with_hint("clear sync or disable_wal"));
    }
    Ok(())
}
