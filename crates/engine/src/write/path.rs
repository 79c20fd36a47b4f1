//! The write path of a database: the queue with the log and the memtables as its environment, and
//! every reason for which a writer waits.
//!
//! Writers pass the gates of their families before they take or wait for the log lock; what
//! concerns all writers is looked at by the leader ([`WriteGate::make_room`]). The waits themselves
//! are accounted for in [`crate::family::backpressure`].
//!
//! Prepared transactions, conditional writes and administration go past the queue: they take the
//! log lock, and their records are in its hands alone.
//!
//! Thread-safety: everything may be called by any thread.

use super::group::WriteJob;
use super::log::Log;
use super::log_state::LogState;
use super::memtables::LiveMemtables;
use super::queue::{LogGuard, WriteQueue};
use super::{GroupRecord, NextGroup, WriteEnv, WriteGate, perf_timing, prepared};
use crate::family::Family;
use crate::family::backpressure::admission::{
    Admission, AdmissionRequest, check_callback, would_wait,
};
use crate::family::backpressure::batch_families::BatchFamilies;
use crate::family::backpressure::stall_tracker::{StallGuard, StallReason};
use crate::family::backpressure::stops::{StopWriters, Stops};
use crate::memory::WriteBufferHandle;
use crate::observe::{HistogramId, StallCause, Statistics};
use crate::options::WriteOptions;
use crate::runtime::callback::{self, Callback};
use esker_format::Seq;
use esker_format::batch::WriteBatch;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::Arc;
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The options that the path goes by.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Bytes of live logs above which families are flushed to release the oldest; 0 for no limit.
    pub(crate) max_total_wal_size: AtomicU64,
    /// The memtables of all families are switched together.
    pub(crate) atomic_flush: bool,
}

/// A reason to wait for writers that are at the log already.
#[derive(Debug)]
pub(crate) enum WaitCause {
    /// Administration, or memory of memtables: no writer may go on.
    Everybody,
    /// A family admits no writers.
    Family(Arc<Family>),
}

/// Everything a write touches.
#[derive(Debug)]
pub(crate) struct WritePath {
    pub(super) queue: WriteQueue<LogState>,
    pub(crate) log: Log,
    pub(super) memtables: LiveMemtables,
    pub(crate) admission: Arc<Admission>,
    /// The limit on the memory of memtables, perhaps shared with other databases.
    pub(crate) buffers: WriteBufferHandle,
    pub(crate) limits: Limits,
    /// Memtables fill up: the next flush is to make the log of the next switch.
    pub(crate) spare_wanted: AtomicBool,
    stops: Stops,
    /// Closing has begun: no write is taken any more.
    closed: AtomicBool,
}

impl WritePath {
    pub(crate) fn new(
        queue: WriteQueue<LogState>,
        log: Log,
        memtables: LiveMemtables,
        admission: Arc<Admission>,
        buffers: WriteBufferHandle,
        limits: Limits,
    ) -> Self {
        WritePath {
            queue,
            log,
            memtables,
            admission,
            buffers,
            limits,
            spare_wanted: AtomicBool::new(false),
            stops: Stops::new(),
            closed: AtomicBool::new(false),
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

    /// Takes the log lock: for administration that must not run beside a leader.
    pub(crate) fn lock(&self) -> LogGuard<'_, LogState> {
        self.queue.lock()
    }

    /// Hands what is in the log to the operating system, with `sync` to the device.
    pub(crate) fn save(&self, log: &mut LogState, sync: bool) -> Result<()> {
        self.log.save(log, sync)
    }

    /// Writes a batch: all of it or nothing, durable as `options` say, visible on return.
    #[inline]
    pub(crate) fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        let statistics = self.log.statistics.as_deref().filter(|s| s.wants_times());
        let done = if statistics.is_some() || perf_timing::are_timed() {
            self.write_timed(statistics, options, batch)
        } else {
            self.write_batch(options, batch)
        };
        self.queue.share_processor();
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
        self.log.health.check_writable()?;
        check_options(options)?;
        let ignore_missing = options.ignore_missing_column_families;
        let touched = self.memtables.check_families(batch, ignore_missing)?;
        if options.no_slowdown && self.admission.would_wait(touched, batch) {
            return Err(would_wait());
        }
        if options.low_pri {
            self.admission.yield_low_pri();
        }
        let mut held = self.not_held();
        self.pass_stops(options, &mut held)?;
        let mut is_charged = true;
        loop {
            self.admit(batch, touched, options, is_charged, &mut held)?;
            match self.queue.write(self, options, batch, touched, held)? {
                None => return Ok(()),
                // In the account already.
                Some(aside) => (held, is_charged) = (aside, false),
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
        self.log.health.check_writable()?;
        check_options(options)?;
        let ignore_missing = options.ignore_missing_column_families;
        let touched = self.memtables.check_families(batch, ignore_missing)?;
        let mut log = self.lock_to_write(options, batch, touched, true)?;
        self.queue.sequence.quiesce();
        check()?;
        let group = self
            .queue
            .log_group(self, &mut log, options, Some(&mut *batch))?;
        let duty = log.release(group.is_long());
        self.queue.complete(self, group, Some(batch), duty)
    }

    /// Writes `batch` into the log as a prepared transaction; nothing of it is seen before it is
    /// committed.
    pub(crate) fn write_prepared(
        &self,
        options: &WriteOptions,
        name: &[u8],
        batch: &WriteBatch,
    ) -> Result<()> {
        self.log.health.check_writable()?;
        let touched = self.memtables.check_families(batch, false)?;
        let mut record = prepared::record_of(name, batch)?;
        let mut log = self.lock_to_write(options, &record, touched, false)?;
        self.log_marker(&mut log, options, &mut record)?;
        self.log.prepared.add(name, record);
        Ok(())
    }

    /// Writes `at_commit` and then `batch`, and undoes the section of the prepared transaction
    /// `name`, in one record of the log.
    pub(crate) fn write_committed(
        &self,
        options: &WriteOptions,
        name: &[u8],
        at_commit: Option<&WriteBatch>,
        batch: &WriteBatch,
    ) -> Result<()> {
        self.log.health.check_writable()?;
        let extra = at_commit.map_or(0, WriteBatch::data_size);
        let mut whole = WriteBatch::with_capacity(batch.data_size() + extra + name.len() + 8);
        if let Some(at_commit) = at_commit {
            if seeded(Bug::CommitTimeBatchAlone) {
                self.write_batch(options, &mut at_commit.clone())?;
            } else if !seeded(Bug::CommitTimeBatchLate) {
                whole.append(at_commit, false)?;
            }
        }
        whole.append(batch, false)?;
        let ignore_missing = options.ignore_missing_column_families;
        let touched = self.memtables.check_families(&whole, ignore_missing)?;
        whole.mark_rollback(name)?;
        // The section is in the log, so its end has to be there too.
        let mut options = *options;
        options.disable_wal = false;
        let mut log = self.lock_to_write(&options, &whole, touched, true)?;
        let group = self
            .queue
            .log_group(self, &mut log, &options, Some(&mut whole))?;
        self.log.prepared.remove(name);
        let duty = log.release(group.is_long());
        self.queue.complete(self, group, Some(&whole), duty)?;
        match at_commit {
            Some(late) if seeded(Bug::CommitTimeBatchLate) => {
                self.write_batch(&options, &mut late.clone())
            }
            _ => Ok(()),
        }
    }

    /// Undoes the section of the prepared transaction `name`.
    pub(crate) fn write_undone(&self, options: &WriteOptions, name: &[u8]) -> Result<()> {
        self.log.health.check_writable()?;
        let mut record = WriteBatch::new();
        record.mark_rollback(name)?;
        let mut log = self.lock_to_write(options, &record, BatchFamilies::NONE, false)?;
        self.log_marker(&mut log, options, &mut record)?;
        self.log.prepared.remove(name);
        Ok(())
    }

    /// Appends a record that changes no memtable.
    fn log_marker(
        &self,
        log: &mut LogGuard<'_, LogState>,
        options: &WriteOptions,
        record: &mut WriteBatch,
    ) -> Result<()> {
        record.set_seq(self.queue.sequence.allocated().next());
        self.log.append(log, &[record.data()])?;
        if options.sync {
            self.queue.sync(self, log)?;
        }
        Ok(())
    }

    /// Takes the log lock for a write past the queue, when nothing stands in the way of `batch`.
    fn lock_to_write(
        &self,
        options: &WriteOptions,
        batch: &WriteBatch,
        touched: BatchFamilies,
        is_charged: bool,
    ) -> Result<LogGuard<'_, LogState>> {
        let mut held = self.not_held();
        self.pass_stops(options, &mut held)?;
        self.admit(batch, touched, options, is_charged, &mut held)?;
        self.queue
            .lock_to_write(self, options, batch, touched, &mut held)
    }

    /// A writer's wait, which has not begun.
    #[inline]
    fn not_held(&self) -> StallGuard<'_> {
        StallGuard::new(&self.admission.stall_tracker)
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
        self.admission.admit(&entrant, &self.log.health, held)
    }

    /// Lets no write begin until what is returned is dropped. Writes that hold the log lock go on:
    /// once the lock was taken and in-flight writes have ended
    /// ([`quiesce`](super::sequence::Sequence::quiesce)), memtables stay as they are.
    pub(crate) fn stop_writers(&self) -> StopWriters<'_> {
        self.stops.stop()
    }

    /// Lets no write begin until [`WritePath::release_writers`]; what was written is handed to the
    /// operating system.
    pub(crate) fn hold_writers(&self) -> Result<()> {
        let stopped = self.stops.stop();
        let flushed = {
            let mut log = self.lock();
            self.queue.sequence.quiesce();
            self.save(&mut log, false)
        };
        flushed?;
        stopped.hold();
        Ok(())
    }

    /// Takes one [`WritePath::hold_writers`] back; false when there is none.
    pub(crate) fn release_writers(&self) -> bool {
        self.stops.release()
    }

    /// Waits until administration lets writers go on.
    #[inline]
    fn pass_stops(&self, options: &WriteOptions, held: &mut StallGuard<'_>) -> Result<()> {
        if self.stops.is_stopped() && !options.no_slowdown {
            check_any_callback()?;
            self.wait_for_stop_writers(held);
        }
        Ok(())
    }

    /// Waits until administration is done, away from the log lock, for which it stands in line
    /// itself. For writers whose batch is not queued.
    #[cold]
    fn wait_for_stop_writers(&self, held: &mut StallGuard<'_>) {
        held.during(StallReason::of_database(StallCause::Administration), || {
            while self.stops.is_stopped() && !self.is_closed() {
                self.stops.wait();
            }
        });
    }
}

impl WriteEnv for WritePath {
    type Log = LogState;

    #[inline]
    fn write(&self, log: &mut LogState, record: &GroupRecord<'_>) -> Result<()> {
        self.log.write(log, record)
    }

    fn sync(&self, log: &mut LogState) -> Result<()> {
        self.log.sync(log)
    }

    #[inline]
    fn apply(&self, batch: &WriteBatch, first: Seq) -> Result<()> {
        self.memtables.apply(batch, first)
    }
}

impl WriteGate for WritePath {
    type Obstacle = WaitCause;

    /// Switches memtables that are full, and says what has to be waited for first, of all writers
    /// or of the leader's own batch. Queued writers that have to wait for a family step aside.
    #[inline]
    fn make_room(&self, log: &mut LogState, next: &NextGroup<'_>) -> Result<Option<WaitCause>> {
        if self.memtables.is_any_full() {
            self.switch_full(log)?;
        }
        let most = self.limits.max_total_wal_size.load(Ordering::Relaxed);
        let mut stops = None;
        if most > 0 && log.alive_bytes() > most {
            stops = self.switch_oldest_log(log)?;
        }
        if self.buffers.is_watched() {
            let bytes = next.own.map_or(0, |(batch, _)| batch.data_size());
            self.keep_within_memory(log, bytes as u64)?;
            if self.buffers.must_stall() {
                self.free_memory(log, next.options)?;
                if self.buffers.must_stall() {
                    check_any_callback()?;
                    return Ok(Some(WaitCause::Everybody));
                }
            }
        }
        if let Some((batch, touched)) = next.own
            && let Some(family) = self.admission.stops(touched, batch)
        {
            stops = Some(family);
        }
        if let Some(family) = stops {
            check_callback(&family)?;
            self.admission.check_wait(&self.log.health, next.options)?;
            return Ok(Some(WaitCause::Family(family)));
        }
        if self.stops.is_stopped() {
            if next.options.no_slowdown {
                return Err(would_wait());
            }
            if self.is_closed() {
                return Err(Error::shutdown());
            }
            check_any_callback()?;
            return Ok(Some(WaitCause::Everybody));
        }
        self.log.health.check_writable()?;
        Ok(None)
    }

    #[inline]
    fn holds_any(&self) -> bool {
        self.admission.is_stopped()
    }

    fn holds(&self, job: &WriteJob) -> bool {
        let batch = job.batch.as_ref();
        batch.is_some_and(|b| self.admission.stops(job.touched, b).is_some())
    }

    #[inline]
    fn holds_all(&self) -> Option<StallReason> {
        let reason = || StallReason::of_database(StallCause::Administration);
        self.stops.is_stopped().then(reason)
    }

    /// Waits at most a tenth of a second, but for the end of administration where the batch is not
    /// in the queue.
    #[cold]
    fn wait(&self, obstacle: &WaitCause, is_queued: bool, held: &mut StallGuard<'_>) {
        if self.stops.is_stopped() {
            if !is_queued {
                return self.wait_for_stop_writers(held);
            }
            held.during(StallReason::of_database(StallCause::Administration), || {
                self.stops.wait();
            });
        } else if self.buffers.must_stall() {
            let reason = StallReason::of_database(StallCause::WriteBufferManagerLimit);
            held.during(reason, || self.buffers.wait());
        } else if let WaitCause::Family(family) = obstacle {
            self.admission.wait_stopped(family, held);
        }
    }
}

/// An error when this thread is in the callback of a job that is not done, for which the thread
/// that stops all writers may wait.
#[cold]
fn check_any_callback() -> Result<()> {
    if Callback::is_inside() {
        return Err(callback::would_wait());
    }
    Ok(())
}

/// A sync is a sync of the log.
fn check_options(options: &WriteOptions) -> Result<()> {
    if options.sync && options.disable_wal {
        return Err(Error::invalid_argument("sync writes need the log")
            .with_hint("clear sync or disable_wal"));
    }
    Ok(())
}
