//! A group into the log, its sync, and the figures of both.

use super::group::Member as GroupMember;
use super::log_state::LogState;
use super::path::{LogGuard, WritePath};
use super::perf_timing;
use crate::health::ErrorSource;
use crate::observe::{HistogramId, PerfMetric, Ticker};
use esker_status::{Error, Result};
use esker_sync::atomic::Ordering;

impl WritePath {
    pub(super) fn log_group(
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
        let _timed = perf_timing::part(PerfMetric::WriteWalTime, self.admission.clock());
        log.append(parts)?;
        let bytes = parts.iter().map(|p| p.len() as u64).sum();
        self.counters.wal_bytes(bytes);
        if let Some(s) = &self.statistics {
            s.add(Ticker::WalFileBytes, bytes);
        }
        if !sync {
            return Ok(());
        }
        self.is_syncing.store(true, Ordering::Relaxed);
        let synced = self.timed_sync(log);
        self.is_syncing.store(false, Ordering::Relaxed);
        synced
    }

    /// Hands what is in the log to the operating system, with `sync` to the device. When that
    /// fails, what was acknowledged may be in memtables alone: writing ends until they are in
    /// tables.
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
    pub(super) fn report_log(&self, error: &Error) {
        if self.health.check_writable().is_ok() {
            self.health.report(ErrorSource::Wal, error);
            self.background_cv.notify();
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

    /// Counts a group that is in the log. The log lock is held.
    #[inline]
    pub(super) fn count_group(
        &self,
        own_bytes: usize,
        own_keys: u64,
        members: &[GroupMember],
        disable_wal: bool,
    ) {
        let (mut writes, mut bytes, mut keys) =
            (u64::from(own_bytes > 0), own_bytes as u64, own_keys);
        for batch in members.iter().filter_map(|m| m.batch.as_ref()) {
            writes += 1;
            bytes += batch.data_size() as u64;
            keys += u64::from(batch.count());
        }
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
