//! What went through the write path since the database was opened: the figures of
//! `rocksdb.dbstats`.
//!
//! Kept whether or not the database has statistics. Only the holder of the log lock adds, so adding
//! is a load and a store; any thread may read, and sees each figure whole.

use esker_sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of the write path.
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
    to.store(to.load(Relaxed).wrapping_add(n), Relaxed);
}

impl WriteCounters {
    /// A group was logged. The log lock is held.
    #[inline]
    pub(crate) fn group(&self, writes: u64, keys: u64, bytes: u64, logged: bool) {
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
    pub(crate) fn wal_bytes(&self, bytes: u64) {
        add(&self.wal_bytes, bytes);
    }

    /// The log was synced. The log lock is held.
    pub(crate) fn wal_synced(&self) {
        add(&self.wal_syncs, 1);
    }

    /// The counters now.
    pub(crate) fn read(&self) -> WriteCountersSnapshot {
        WriteCountersSnapshot {
            groups: self.groups.load(Relaxed),
            writes: self.writes.load(Relaxed),
            keys: self.keys.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            wal_writes: self.wal_writes.load(Relaxed),
            wal_bytes: self.wal_bytes.load(Relaxed),
            wal_syncs: self.wal_syncs.load(Relaxed),
        }
    }
}
