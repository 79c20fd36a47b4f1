//! Logs around a flush: the next ones, made beside the writers, and those that no family needs
//! once its tables are installed.

use crate::core::Core;
use crate::write::log_state::AliveLog;
use crate::write::spare_log::SpareLog;
use esker_format::file_name::log_name;
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::Ordering;

/// The logs of the next switches, when memtables fill up; none when they cannot be made: then the
/// switch makes its own, and says why not.
pub(super) fn spare_logs(core: &Core) -> Vec<SpareLog> {
    if !core.writes.spare_wanted.swap(false, Ordering::AcqRel) {
        return Vec::new();
    }
    let (count, dir, options) = {
        let log = core.writes.lock();
        (
            log.spare_count(),
            log.dir().to_path_buf(),
            log.file_options(),
        )
    };
    let mut spares = Vec::new();
    while let Some(right) = count.one_more() {
        let number = core.trees.numbers.next();
        match SpareLog::create(
            right,
            &core.services.env,
            &core.trees.obsolete_files,
            &dir,
            number,
            options,
        ) {
            Ok(spare) => spares.push(spare),
            Err(_) => break,
        }
    }
    spares
}

/// Gives logs that no family needs any more to the obsolete files.
pub(super) fn release_logs(core: &Core) {
    let mut log = core.writes.lock();
    // The log that takes appends stays the same while the log lock is held.
    let keep = core.trees.families.logs.oldest();
    // Recovery reads what it finds from there on, and after a power cut that may be some of them
    // and not all.
    let keep = if seeded(Bug::WalGoneTooEarly) {
        keep
    } else {
        keep.min(core.trees.store.oldest_log())
    };
    let released = log.release_before(keep);
    let dir = log.dir().to_path_buf();
    let path = |old: AliveLog| dir.join(log_name(old.number));
    let (reusable, others): (Vec<_>, Vec<_>) =
        released.logs.into_iter().partition(|old| old.recyclable);
    // Under the lock: the next thread that releases logs, and purges, finds these among the
    // obsolete files.
    for old in others {
        core.trees.obsolete_files.retire_file(path(old));
    }
    drop(log);
    // Closed first: no log begins in a file that is open.
    drop(released.files);
    for old in reusable {
        core.trees.obsolete_files.retire_log(path(old));
    }
}
