//! Resuming after a background error.
//!
//! After a failed append the log's tail is unknown, and after a failed MANIFEST write so is the
//! MANIFEST's: resuming starts a new log and a new MANIFEST, and flushes every memtable, so that
//! what was acknowledged no longer depends on the broken files. Only when all of that succeeded are
//! writers let in again.

use super::flush;
use crate::core::Core;
use crate::health::HealthState;
use crate::observe::{FlushReason, RecoveryInfo};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::Arc;
use std::path::Path;
use std::time::Duration;

/// Longest wait before the state is looked at again.
const PATIENCE: Duration = Duration::from_millis(200);

/// Resumes by itself from a full disk, now and then, as the options say.
pub(crate) fn try_automatic(core: &Arc<Core>) {
    if core.health.state() != HealthState::Degraded {
        return;
    }
    let options = core.options.load();
    let interval = options.bgerror_resume_retry_interval.max(10_000);
    let most = options.max_bgerror_resume_count;
    if !core
        .resume_backoff
        .may_try(core.env.clock.now_us(), interval, most)
    {
        return;
    }
    match resume(core) {
        Ok(()) => core.info_log.info(format_args!("resumed: space is back")),
        Err(e) => core.info_log.warn(format_args!("still not resumed: {e}")),
    }
}

/// Resumes on demand or automatically.
pub(crate) fn resume(core: &Arc<Core>) -> Result<()> {
    let Some(error) = core.health.error() else {
        return Ok(());
    };
    if core.health.state() == HealthState::Failed {
        return Err(error);
    }
    let attempts = core.resume_backoff.begin();
    let options = core.options.load();
    let tell = |outcome: Option<Error>| RecoveryInfo {
        error: error.clone(),
        attempts,
        outcome,
    };
    for listener in &options.listeners {
        listener.on_error_recovery_begin(&tell(None));
    }
    let done = go_on(core);
    if done.is_ok() {
        core.resume_backoff.succeed();
    }
    core.tell_pending();
    for listener in &options.listeners {
        listener.on_error_recovery_end(&tell(done.clone().err()));
    }
    done
}

/// Leaves everything that the error may have broken behind, and lets writers in.
///
/// Writers stay out until all that was acknowledged is in tables, of all families at once: a log
/// that could not be synced may lose its end, and whatever were acknowledged behind it would be cut
/// off from it by the next recovery.
fn go_on(core: &Arc<Core>) -> Result<()> {
    let _admin = core.admin.lock();
    probe(core)?;
    core.store.start_manifest(&core.families)?;
    // No flush begins in this state; those that run are waited for.
    loop {
        let seen = core.background_cv.changes();
        if core.jobs.lock().flushes == 0 {
            break;
        }
        if !core.background_cv.wait_past(seen, PATIENCE) {
            return Err(Error::shutdown());
        }
    }
    let families = core.families.all();
    let log_number = {
        let mut log = core.writes.lock();
        if log.is_broken() {
            core.sequence.quiesce();
            core.writes.start_log(&mut log, core.numbers.next())?;
        }
        core.writes
            .switch_memtables(&mut log, &families, FlushReason::ErrorRecovery)?;
        let number = log.number();
        // Of the broken log an empty memtable needs nothing: what failed is not in it.
        for view in families.iter().map(|f| f.view_guard()) {
            if view.mem.is_empty() {
                view.mem.set_log_number(number);
            }
        }
        number
    };
    let families = if seeded(Bug::ResumeFlushesOne) {
        vec![Arc::clone(core.families.default_family())]
    } else {
        families
    };
    flush::run_all(core, &families, log_number)?;
    core.writes.lock().note_saved();
    core.health.clear()?;
    core.admission.reassess();
    core.background_cv.notify();
    Ok(())
}

/// Whether the disks take a few blocks again: that of the database and those of its paths.
fn probe(core: &Core) -> Result<()> {
    if let Some(space) = &core.options.load().sst_file_manager {
        core.delete_obsolete_files();
        space.check()?;
    }
    probe_dir(core, &core.dir)?;
    core.table_dirs()
        .iter()
        .try_for_each(|dir| probe_dir(core, dir))
}

/// Writes, syncs and removes a small file.
fn probe_dir(core: &Core, dir: &Path) -> Result<()> {
    let path = dir.join(esker_format::file_name::temp_name(core.numbers.next()));
    let written = (|| -> Result<()> {
        let mut file = core.env.fs.create(
            &path,
            esker_env::WriteOptions {
                exclusive: true,
                ..Default::default()
            },
        )?;
        file.append(&[0; 64 << 10])?;
        file.sync()?;
        file.close()
    })();
    let removed = core.env.fs.remove_file(&path);
    written?;
    match removed {
        Err(e) if !e.is_not_found() => Err(e),
        _ => Ok::<(), Error>(()),
    }
}
