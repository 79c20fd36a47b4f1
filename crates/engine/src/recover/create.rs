//! Making a new database, and refusing to where one may have been.

use super::fold::Folded;
use esker_env::{Env, WriteOptions as FileWriteOptions};
use esker_files::manifest::ManifestWriter;
use esker_files::{current, identity};
use esker_format::edit::VersionEdit;
use esker_format::file_name::{FileKind, parse_file_name};
use esker_format::{FileNo, Seq};
use esker_status::{Error, Result};
use std::path::{Path, PathBuf};

/// The MANIFEST that a creation writes.
pub(crate) const FIRST_MANIFEST: FileNo = FileNo(1);

/// Refuses to make a database in a directory that holds files of one: its CURRENT was lost, and a new one
/// would hide the data and let it be deleted. The first MANIFEST alone is what a crash leaves of a creation: opening
/// replaces it before the first log is made, so there never was any data.
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
            let Some((kind, number)) = parse_file_name(&entry.name) else {
                continue;
            };
            if (kind, number) == (FileKind::Manifest, FIRST_MANIFEST) {
                continue;
            }
            if matches!(
                kind,
                FileKind::Table | FileKind::Wal | FileKind::Manifest | FileKind::Blob
            ) {
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

/// The state that [`create`] will write down.
pub(crate) fn first_state(comparator: &str, db_id: &str) -> Result<Folded> {
    Folded::beginning(FIRST_MANIFEST, first_edit(comparator, Some(db_id)))
}

/// Writes the files of an empty database: IDENTITY, MANIFEST-000001, CURRENT.
pub(crate) fn create(
    env: &Env,
    dir: &Path,
    comparator: &str,
    db_id: &str,
    write_identity: bool,
    db_id_in_manifest: bool,
) -> Result<()> {
    if write_identity {
        identity::write(&*env.fs, dir, db_id)?;
    }
    let edit = first_edit(comparator, db_id_in_manifest.then_some(db_id));
    let number = FIRST_MANIFEST;
    let mut writer =
        ManifestWriter::create(&*env.fs, dir, number, FileWriteOptions::default(), &[edit])?;
    writer.sync()?;
    writer.close()?;
    current::install(&*env.fs, dir, number)
}
