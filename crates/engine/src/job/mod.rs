//! Background work: what there is to do, who does it, and how each job is done.

mod clip;
pub(crate) mod compact;
mod count;
mod cutter;
pub(crate) mod flush;
pub(crate) mod limiter;
pub(crate) mod manual;
pub(crate) mod output;
mod part;
pub(crate) mod resume;
pub(crate) mod scheduler;
mod wake;

pub(crate) use scheduler::Jobs;
pub(crate) use wake::Wake;

use crate::core::Core;
use crate::health::{ErrorSource, HealthState};
use crate::observe::{BackgroundErrorInfo, BackgroundErrorReason};
use esker_status::{Error, ErrorKind};

/// What a step of a job left to do.
///
/// Background work is cut into steps of about a millisecond: in production a thread runs them one after
/// the other, in a simulation one thread runs those of all jobs in the order that a seed gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Call again.
    More,
    /// The job is done and its result installed.
    Done,
}

/// Takes note of a job's failure: health, LOG, listeners.
pub(crate) fn failed(core: &Core, source: ErrorSource, error: &Error) {
    if matches!(
        error.kind(),
        ErrorKind::ShutdownInProgress | ErrorKind::ColumnFamilyDropped
    ) {
        return;
    }
    let state = core.health.report(source, error);
    core.info_log.error(format_args!(
        "background error ({source:?}): {error}; the database is now {state:?}"
    ));
    for listener in &core.options.load().listeners {
        listener.on_background_error(&BackgroundErrorInfo {
            reason: reason(source),
            error: error.clone(),
            auto_recovery: state == HealthState::Degraded,
        });
    }
    if state != HealthState::Running {
        core.admission.release_all(false);
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
