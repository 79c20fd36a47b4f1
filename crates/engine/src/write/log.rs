//! Groups into the log, its sync, and the figures of both.
//!
//! Thread-safety: everything may be called by any thread; what takes a [`LogState`] is for the
//! holder of the log lock.

use super::GroupRecord;
use super::log_state::LogState;
use super::perf_timing;
use super::prepared::PreparedTransactions;
use crate::family::backpressure::admission::Admission;
use crate::health::{ErrorSource, Health};
use crate::observe::{HistogramId, PerfMetric, Statistics, Ticker};
use crate::runtime::BackgroundCv;
use crate::tree::FileNumbers;
use esker_format::FileNo;
use esker_status::{Error, Result};
use esker_sync::Arc;
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The log of a database as writers see it, beside its state.
#[derive(Debug)]
pub(crate) struct Log {
    pub(super) health: Arc<Health>,
    pub(super) background_cv: Arc<BackgroundCv>,
    pub(super) statistics: Option<Arc<Statistics>>,
    admission: Arc<Admission>,
    numbers: Arc<FileNumbers>,
    /// Figures of what went through.
    pub(crate) counters: WriteCounters,
    /// Transactions that are prepared.
    pub(crate) prepared: PreparedTransactions,
    /// Some write went past the log since the database was opened.
    unlogged: Arc<AtomicBool>,
}

impl Log {
    pub(crate) fn new(
        health: Arc<Health>,
        background_cv: Arc<BackgroundCv>,
        statistics: Option<Arc<Statistics>>,
        admission: Arc<Admission>,
        numbers: Arc<FileNumbers>,
    ) -> Self {
        Log {
            health,
            background_cv,
            statistics,
            admission,
            numbers,
            counters: WriteCounters::default(),
            prepared: PreparedTransactions::new(),
            unlogged: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Set when a write goes past the log.
    pub(crate) fn unlogged(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unlogged)
    }

    /// Appends a group, unless it skips the log, and counts it.
    #[inline]
    pub(super) fn write(&self, log: &mut LogState, record: &GroupRecord<'_>) -> Result<()> {
        if !record.disable_wal {
            self.append(log, record.parts)?;
        } else if !self.unlogged.load(Ordering::Relaxed) {
            self.unlogged.store(true, Ordering::Release);
        }
        self.count(record);
        Ok(())
    }

    /// Appends one record made of `parts`.
    #[inline]
    pub(super) fn append(&self, log: &mut LogState, parts: &[&[u8]]) -> Result<()> {
        let _timed = perf_timing::part(PerfMetric::WriteWalTime, self.admission.clock());
        log.append(parts).inspect_err(|e| self.fail(e))?;
        let bytes = parts.iter().map(|p| p.len() as u64).sum();
        self.counters.wal_bytes(bytes);
        if let Some(s) = &self.statistics {
            s.add(Ticker::WalFileBytes, bytes);
        }
        Ok(())
    }

    /// Syncs what writers appended.
    pub(super) fn sync(&self, log: &mut LogState) -> Result<()> {
        let _timed = perf_timing::wait(PerfMetric::WriteWalTime, self.admission.clock());
        self.timed_sync(log).inspect_err(|e| self.fail(e))
    }

    /// Hands what is in the log to the operating system, with `sync` to the device. When that
    /// fails, what was acknowledged may be in memtables alone: writing ends until they are in
    /// tables.
    pub(super) fn save(&self, log: &mut LogState, sync: bool) -> Result<()> {
        let done = if sync {
            self.timed_sync(log)
        } else {
            log.flush()
        };
        done.inspect_err(|e| self.report(e))
    }

    /// The number of the log to come.
    pub(super) fn next_number(&self, log: &LogState) -> FileNo {
        log.spare_number().unwrap_or_else(|| self.numbers.next())
    }

    /// A write failed at the log.
    #[cold]
    fn fail(&self, error: &Error) {
        self.health.report(ErrorSource::Wal, error);
        self.background_cv.notify();
    }

    /// The log failed outside of a write.
    #[cold]
    pub(super) fn report(&self, error: &Error) {
        if self.health.check_writable().is_ok() {
            self.fail(error);
        }
    }

    /// Syncs the log, and counts and times that.
    fn timed_sync(&self, log: &mut LogState) -> Result<()> {
        let timed = self
            .statistics
            .as_deref()
            .filter(|s| s.wants_times())
            .map(|s| (s, self.admission.now_us()));
        log.sync()?;
        self.counters.wal_synced();
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

    /// Counts a group that is in the log.
    #[inline]
    fn count(&self, record: &GroupRecord<'_>) {
        let GroupRecord {
            writes,
            keys,
            bytes,
            disable_wal,
            ..
        } = *record;
        self.counters.group(writes, keys, bytes, !disable_wal);
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

/// Counters of what went through since the database was opened: the figures of `rocksdb.dbstats`.
/// Kept whether or not the database has statistics. Only the holder of the log lock adds, so adding
/// is a load and a store; any thread may read, and sees each figure whole.
#[derive(Debug, Default)]
pub(crate) struct WriteCounters {
    groups: AtomicU64,
    writes: AtomicU64,
    keys: AtomicU64,
    bytes: AtomicU64,
    wal_writes: AtomicU64,
    wal_bytes: AtomicU64,
    wal_syncs: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteCountersSnapshot {
    /// Groups, each led by one of its writers.
    pub(crate) groups: u64,
    /// Writes.
    pub(crate) writes: u64,
    /// Records with a sequence number.
    pub(crate) keys: u64,
    /// Bytes of their batches.
    pub(crate) bytes: u64,
    /// Writes that went to the log.
    pub(crate) wal_writes: u64,
    /// Bytes of log records.
    pub(crate) wal_bytes: u64,
    /// Syncs of the log.
    pub(crate) wal_syncs: u64,
}

#[inline]
fn add(to: &AtomicU64, n: u64) {
    to.store(
        to.load(Ordering::Relaxed).wrapping_add(n),
        Ordering::Relaxed,
    );
}

impl WriteCounters {
    /// A group was logged. The log lock is held.
    #[inline]
    fn group(&self, writes: u64, keys: u64, bytes: u64, logged: bool) {
        add(&self.groups, 1);
        add(&self.writes, writes);
        add(&self.keys, keys);
        add(&self.bytes, bytes);
        if logged {
            add(&self.wal_writes, writes);
        }
    }

    /// Bytes were appended. The log lock is held.
    #[inline]
    fn wal_bytes(&self, bytes: u64) {
        add(&self.wal_bytes, bytes);
    }

    /// The log was synced. The log lock is held.
    fn wal_synced(&self) {
        add(&self.wal_syncs, 1);
    }

    /// The counters now.
    pub(crate) fn read(&self) -> WriteCountersSnapshot {
        WriteCountersSnapshot {
            groups: self.groups.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            keys: self.keys.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            wal_writes: self.wal_writes.load(Ordering::Relaxed),
            wal_bytes: self.wal_bytes.load(Ordering::Relaxed),
            wal_syncs: self.wal_syncs.load(Ordering::Relaxed),
        }
    }
}
