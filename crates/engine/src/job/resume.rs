//! Resuming after a background error.
//!
//! After a failed append the log's tail is unknown, and after a failed MANIFEST write so is the
//! MANIFEST's: resuming starts a new log and a new MANIFEST, and flushes every memtable, so that
//! what was acknowledged no longer depends on the broken files. Only when all of that succeeded are
//! writers let in again.

use super::flush;
use crate::core::{Core, Trees};
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
    if core.services.health.state() != HealthState::Degraded {
        return;
    }
    let options = core.services.options.load();
    let interval = options.bgerror_resume_retry_interval.max(10_000);
    let most = options.max_bgerror_resume_count;
    if !core
        .background
        .resume_backoff
        .may_try(core.services.env.clock.now_us(), interval, most)
    {
        return;
    }
    match resume(core) {
        Ok(()) => core
            .services
            .info_log
            .info(format_args!("resumed: space is back")),
        Err(e) => core
            .services
            .info_log
            .warn(format_args!("still not resumed: {e}")),
    }
}

/// Resumes on demand or automatically.
pub(crate) fn resume(core: &Arc<Core>) -> Result<()> {
    let Some(error) = core.services.health.error() else {
        return Ok(());
    };
    if core.services.health.state() == HealthState::Failed {
        return Err(error);
    }
    let attempts = core.background.resume_backoff.begin();
    let options = core.services.options.load();
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
        core.background.resume_backoff.succeed();
    }
    core.services.tell_pending();
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
    probe(&core.trees)?;
    core.trees.store.start_manifest(&core.trees.families)?;
    // No flush begins in this state; those that run are waited for.
    loop {
        let seen = core.background.cv.changes();
        if core.background.jobs.lock().flushes == 0 {
            break;
        }
        if !core.background.cv.wait_past(seen, PATIENCE) {
            return Err(Error::shutdown());
        }
    }
    let families = core.trees.families.all();
    let log_number = {
        let mut log = core.writes.lock();
        if log.is_broken() {
            core.reads.sequence.quiesce();
            core.writes.start_log(&mut log, core.trees.numbers.next())?;
        }
        core.writes
            .switch_memtables(&mut log, &families, FlushReason::ErrorRecovery)?;
        core.trees.families.logs.switched_to(log.number());
        log.number()
    };
    let families = if seeded(Bug::ResumeFlushesOne) {
        vec![Arc::clone(core.trees.families.default_family())]
    } else {
        families
    };
    flush::run_all(core, &families, log_number)?;
    core.writes.lock().note_saved();
    core.services.health.clear()?;
    core.writes.admission.reassess();
    core.background.cv.notify();
    Ok(())
}

/// Returns whether the disks take a few blocks again: that of the database and those of its paths.
fn probe(trees: &Trees) -> Result<()> {
    if let Some(space) = &trees.services.options.load().sst_file_manager {
        trees.delete_obsolete_files();
        space.check()?;
    }
    probe_dir(trees, &trees.services.dir)?;
    trees
        .table_dirs()
        .iter()
        .try_for_each(|dir| probe_dir(trees, dir))
}

/// Writes, syncs and removes a small file.
fn probe_dir(trees: &Trees, dir: &Path) -> Result<()> {
    let path = dir.join(esker_format::file_name::temp_name(trees.numbers.next()));
    let written = (|| -> Result<()> {
        let mut file = trees.services.env.fs.create(
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
    let removed = trees.services.env.fs.remove_file(&path);
    written?;
    match removed {
        Err(e) if !e.is_not_found() => Err(e),
        _ => Ok::<(), Error>(()),
    }
}
