//! Health of the database, which decides whether it may be written: one state, one transition
//! function.
//!
//! ```text
//!       full disk, limit              other I/O error, corruption
//! Running ------------> Degraded        any state ---------------> ReadOnly
//!    ^                     |                                          |
//!    +----- resume --------+<------------- resume (asked) ------------+   (not from corruption)
//! any state -- MANIFEST state unknown --> Failed (reopen needed)
//! ```
//!
//! Reads go on in every state. Degraded and ReadOnly refuse writes with the error that caused them.
//! Checked on every write with one atomic load.

use crate::observe::{BackgroundErrorInfo, BackgroundErrorReason, Pending, PendingEvent};
use crate::ranks;
use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::{AtomicU8, AtomicU64, Ordering};
use esker_sync::{Arc, Mutex};

/// How well the database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum HealthState {
    /// Reads and writes are served.
    Running = 0,
    /// Space ran out, or the process met a limit of its own (the size of files, open files): writes
    /// are refused until there is room again, which is tried automatically.
    Degraded = 1,
    /// A background error: writes are refused until `resume` succeeds.
    ReadOnly = 2,
    /// The database must be reopened.
    Failed = 3,
}

/// Where an error was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorSource {
    /// Writing a table from a memtable.
    Flush,
    /// Writing tables from tables.
    Compaction,
    /// Appending to or syncing the write-ahead log.
    Wal,
    /// Appending to or syncing the MANIFEST.
    Manifest,
}

#[derive(Debug)]
pub(crate) struct Health {
    state: AtomicU8,
    errors: AtomicU64,
    detail: Mutex<Option<(ErrorSource, Error)>>,
    /// Where errors are left for listeners and the LOG.
    pub(crate) pending: Arc<Pending>,
}

impl Health {
    pub(crate) fn new(pending: Arc<Pending>) -> Self {
        Health {
            pending,
            state: AtomicU8::new(0),
            errors: AtomicU64::new(0),
            detail: Mutex::new(ranks::HEALTH, None),
        }
    }

    pub(crate) fn state(&self) -> HealthState {
        match self.state.load(Ordering::Acquire) {
            0 => HealthState::Running,
            1 => HealthState::Degraded,
            2 => HealthState::ReadOnly,
            _ => HealthState::Failed,
        }
    }

    /// The error a write must return now.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.state.load(Ordering::Acquire) == HealthState::Running as u8 {
            return Ok(());
        }
        self.refusal()
    }

    #[cold]
    fn refusal(&self) -> Result<()> {
        match &*self.detail.lock() {
            Some((_, e)) => Err(e.clone()),
            None => Ok(()),
        }
    }

    /// Background errors since the database was opened.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// The error that the state comes from.
    pub(crate) fn error(&self) -> Option<Error> {
        self.detail.lock().as_ref().map(|(_, e)| e.clone())
    }

    /// Takes note of a background error; returns the state that follows from it.
    pub(crate) fn report(&self, source: ErrorSource, error: &Error) -> HealthState {
        if error.kind() == ErrorKind::ShutdownInProgress
            || error.kind() == ErrorKind::ColumnFamilyDropped
        {
            return self.state();
        }
        self.errors.fetch_add(1, Ordering::Relaxed);
        let next = transition(source, error);
        let mut detail = self.detail.lock();
        if next > self.state() {
            *detail = Some((source, error.clone()));
            self.state.store(next as u8, Ordering::Release);
        }
        drop(detail);
        let state = self.state();
        self.pending.add(PendingEvent::Error(BackgroundErrorInfo {
            reason: reason(source),
            error: error.clone(),
            auto_recovery: state == HealthState::Degraded,
        }));
        state
    }

    /// Back to Running after the cause is gone. Not from [`HealthState::Failed`].
    pub(crate) fn clear(&self) -> Result<()> {
        let mut detail = self.detail.lock();
        if self.state() == HealthState::Failed {
            return match &*detail {
                Some((_, e)) => Err(e.clone()),
                None => Err(Error::aborted("the database must be reopened")),
            };
        }
        *detail = None;
        self.state
            .store(HealthState::Running as u8, Ordering::Release);
        Ok(())
    }
}

fn reason(source: ErrorSource) -> BackgroundErrorReason {
    match source {
        ErrorSource::Flush => BackgroundErrorReason::Flush,
        ErrorSource::Compaction => BackgroundErrorReason::Compaction,
        ErrorSource::Wal => BackgroundErrorReason::Write,
        ErrorSource::Manifest => BackgroundErrorReason::ManifestWrite,
    }
}

/// The one place that decides how bad an error is.
fn transition(source: ErrorSource, error: &Error) -> HealthState {
    if error.is_corruption() {
        return HealthState::Failed;
    }
    match source {
        _ if error.is_limit() => HealthState::Degraded,
        ErrorSource::Compaction | ErrorSource::Flush | ErrorSource::Wal | ErrorSource::Manifest => {
            HealthState::ReadOnly
        }
    }
}
