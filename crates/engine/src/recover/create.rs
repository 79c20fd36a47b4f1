//! How a new database begins, and refusing to make one where one may have been.

use super::fold::ManifestContents;
use super::replay::Replay;
use esker_env::Env;
use esker_files::log::RecoveryMode;
use esker_files::manifest::was_current;
use esker_format::edit::VersionEdit;
use esker_format::file_name::{FileKind, log_name, manifest_name, parse_file_name};
use esker_format::{FileNo, Seq};
use esker_status::{Error, Result};
use std::path::{Path, PathBuf};

/// The MANIFEST that a creation writes.
pub(crate) const FIRST_MANIFEST: FileNo = FileNo(1);

/// Refuses to make a database in a directory that holds files of one: its CURRENT was lost, and a
/// new one would hide the data and let it be deleted. A crash leaves of a creation the first
/// MANIFEST, without edits, and logs without a batch. Those go: there never was any data.
pub(crate) fn check_empty(
    env: &Env,
    dir: &Path,
    wal_dir: &Path,
    table_dirs: &[PathBuf],
) -> Result<()> {
    for place in table_dirs {
        if !env.fs.exists(place)? {
            continue;
        }
        for entry in env.fs.read_dir(place)? {
            if let Some((FileKind::Table | FileKind::Blob, _)) = parse_file_name(&entry.name) {
                return Err(Error::invalid_argument(
                    "a new database would take the file of another for its own",
                )
                .with_file(place.join(&entry.name))
                .with_hint(
                    "nothing was changed; give the database paths of its own in db_paths and cf_paths, or open the \
                     one that the file belongs to",
                ));
            }
        }
    }
    for place in [dir, wal_dir] {
        if !env.fs.exists(place)? {
            continue;
        }
        for entry in env.fs.read_dir(place)? {
            let Some(found) = parse_file_name(&entry.name) else {
                continue;
            };
            if !may_be_of_creation(env, place, found)? {
                return Err(Error::corruption(format!(
                    "CURRENT is missing, but the directory holds files of a database ({})",
                    entry.name
                ))
                .with_file(dir.join("CURRENT"))
                .with_hint(
                    "nothing was changed; write the name of the newest MANIFEST and a line end into CURRENT, \
                     or run `esker repair`",
                ));
            }
        }
    }
    Ok(())
}

/// Returns whether a creation that was cut short may have left the file, or it is none of a
/// database's data.
fn may_be_of_creation(env: &Env, dir: &Path, (kind, number): (FileKind, FileNo)) -> Result<bool> {
    Ok(match kind {
        FileKind::Table | FileKind::Blob => false,
        FileKind::Manifest if number == FIRST_MANIFEST => {
            !was_current(&*env.fs, &dir.join(manifest_name(number)))
        }
        FileKind::Manifest => false,
        FileKind::Wal => is_without_batch(env, dir, number)?,
        _ => true,
    })
}

/// Returns whether nothing was ever written to the log, as far as it can be read.
fn is_without_batch(env: &Env, dir: &Path, log: FileNo) -> Result<bool> {
    if env.fs.metadata(&dir.join(log_name(log)))?.len == 0 {
        return Ok(true);
    }
    let mode = RecoveryMode::PointInTimeRecovery;
    let looking = Replay::looking(env, dir.to_owned(), mode, None, log);
    let found = looking.run(&[log]);
    Ok(found.is_ok_and(|f| f.last == Seq::ZERO && f.damaged.is_empty() && !f.has_sections))
}

/// The one edit in the MANIFEST of a new database.
fn first_edit(comparator: &str, db_id: Option<&str>) -> VersionEdit {
    VersionEdit {
        db_id: db_id.map(str::to_owned),
        comparator: Some(comparator.to_owned()),
        log_number: Some(FileNo(0)),
        next_file_number: Some(FileNo(2)),
        last_sequence: Some(Seq::ZERO),
        ..VersionEdit::default()
    }
}

/// The state that a new database begins with.
pub(crate) fn first_state(comparator: &str, db_id: &str) -> Result<ManifestContents> {
    ManifestContents::beginning(FIRST_MANIFEST, first_edit(comparator, Some(db_id)))
}
