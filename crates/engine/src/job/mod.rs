//! Background work: the scheduler, its threads, and how each job is done.

pub(crate) mod blobs;
mod clip;
pub(crate) mod compact;
mod events;
pub(crate) mod flush;
mod flush_logs;
mod flush_request;
pub(crate) mod flush_ticket;
pub(crate) mod import;
pub(crate) mod ingest;
mod lifetime;
pub(crate) mod manual;
mod merge_yield;
pub(crate) mod output;
mod read_ahead;
pub(crate) mod resume;
mod rewrite;
mod room;
pub(crate) mod saved_cache;
pub(crate) mod scheduler;
mod statistics;
mod subcompaction;
pub(crate) mod table_opening;
mod thread_class;
pub(crate) mod workers;

use crate::core::Background;
use crate::health::{ErrorSource, HealthState};
use esker_status::{Error, ErrorKind};

/// State of a job after a step.
///
/// Background work is cut into steps of about a millisecond: in production a thread runs them one
/// after the other, in a simulation one thread runs those of all jobs in the order that a seed
/// gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Call again.
    More,
    /// The job is done and its result installed.
    Done,
}

/// Takes note of a job's failure: health, LOG, listeners.
pub(crate) fn failed(background: &Background, source: ErrorSource, error: &Error) {
    note_failure(background, source, error);
    tell_failure(background);
}

/// The first half: from now on the database is not in health. Listeners are not told yet.
fn note_failure(background: &Background, source: ErrorSource, error: &Error) {
    if matches!(
        error.kind(),
        ErrorKind::ShutdownInProgress
            | ErrorKind::ColumnFamilyDropped
            // The compaction was aborted.
            | ErrorKind::Incomplete
    ) {
        return;
    }
    background.services.health.report(source, error);
}

/// The second half: notifies waiters and listeners.
fn tell_failure(background: &Background) {
    background.services.tell_pending();
    if background.services.health.state() != HealthState::Running {
        background.admission.release_all(false);
    }
}

/// Stops writes once files take more than they may.
pub(crate) fn check_space(background: &Background) {
    if let Some(space) = &background.services.options.load().sst_file_manager
        && let Err(e) = space.check()
    {
        failed(background, ErrorSource::Flush, &e);
    }
}
