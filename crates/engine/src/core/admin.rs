//! State of the facade alone: the lock of administration, and figures for properties.

use crate::ranks;
use crate::write::log::WriteCountersSnapshot;
use esker_sync::{Mutex, MutexGuard, Rank};

/// The state of administration.
#[derive(Debug)]
pub(crate) struct Admin {
    /// Serialises administration.
    turn: Mutex<()>,
    /// True if the database was opened for reading only.
    pub(crate) read_only: bool,
    /// When it was opened, by the clock.
    pub(crate) opened_us: u64,
    /// Losses that recovery found in the logs when the database was opened, one line each.
    pub(crate) recovery_losses: Mutex<Vec<String>>,
    /// The figures that `rocksdb.dbstats` showed last.
    pub(crate) shown: Mutex<DbStats>,
}

/// The figures of `rocksdb.dbstats` at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DbStats {
    pub(crate) at_us: u64,
    pub(crate) counters: WriteCountersSnapshot,
    pub(crate) stall_us: u64,
}

impl Admin {
    pub(crate) fn new(read_only: bool, opened_us: u64) -> Self {
        Admin {
            turn: Mutex::new(ranks::ADMIN, ()),
            read_only,
            opened_us,
            recovery_losses: Mutex::new(Rank::LEAF, Vec::new()),
            shown: Mutex::new(Rank::LEAF, DbStats::default()),
        }
    }

    /// Waits until no other call administers the database.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Takes the lock for a background thread, which does not wait: `None` while another call
    /// administers.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, ()>> {
        self.turn.try_lock()
    }
}
