//! Checks that a directory is a whole database before anything of it is used: one examination for
//! all readers.
//!
//! Opening, in each of its modes, the checker, checkpoints and backups all ask here, so that none
//! of them shows or copies what opening for writing refuses. What CURRENT, the MANIFEST and the
//! logs must say of each other is checked in two steps: [`manifest`] before anything is made of the
//! edits, and [`logs`] with [`super::replay::Replay`] behind it, which reads the logs.
//!
//! A directory that another process writes may change between two steps. No state of it contradicts
//! itself, but what is read of two states may. So a reader without the lock reads in [`settled`]:
//! again, while the directory changes.
//!
//! Thread-safety: functions of what they are given; the directory is only read.

use super::fold::{ManifestContents, fold};
use super::replay::{self, Replay, ReplayResult};
use crate::options::DbOptions;
use esker_env::Env;
use esker_files::current;
use esker_files::log::RecoveryMode;
use esker_files::manifest::check_newest;
use esker_format::FileNo;
use esker_format::file_name::{CURRENT, FileKind, log_name, manifest_name, parse_file_name};
use esker_status::{Error, Result};
use std::path::Path;
use std::time::Duration;

/// How often reading begins anew while the directory changes.
const TRIES: usize = 64;
/// How often it does so when nothing shows that the directory changed: bytes within a file may
/// have.
const BLIND_TRIES: usize = 2;

/// Reads the MANIFEST that CURRENT names, and checks it against the files.
pub(crate) fn manifest(
    env: &Env,
    dir: &Path,
    wal_dir: &Path,
    db: &DbOptions,
) -> Result<ManifestContents> {
    let fs = &*env.fs;
    let number = current::read(fs, dir)?;
    check_newest(fs, dir, number)?;
    let folded = fold(fs, dir, number)?;
    folded.check_end(fs, dir, wal_dir)?;
    let mode = replay::mode_of(db.wal_recovery_mode);
    if folded.torn_tail && mode == RecoveryMode::AbsoluteConsistency {
        return Err(Error::corruption("the MANIFEST ends inside a record")
            .with_file(dir.join(manifest_name(number))));
    }
    Ok(folded)
}

/// The logs that recovery reads, of which none is missing that the MANIFEST tracks.
pub(crate) fn logs(
    env: &Env,
    wal_dir: &Path,
    folded: &ManifestContents,
    db: &DbOptions,
) -> Result<Vec<FileNo>> {
    let oldest = replay::oldest_log(folded, db.allow_2pc);
    let mut logs = Vec::new();
    if env.fs.exists(wal_dir)? {
        logs = replay::list(env, wal_dir)?;
    }
    logs.retain(|n| *n >= oldest);
    if db.track_and_verify_wals_in_manifest {
        check_tracked(env, wal_dir, folded, &logs)?;
    }
    Ok(logs)
}

/// Examines the database in `dir` as opening it for writing does, but for its tables, and changes
/// nothing. The error is what opening would say; what opening would go on without is in the result.
pub(crate) fn examine(
    env: &Env,
    dir: &Path,
    wal_dir: &Path,
    db: &DbOptions,
) -> Result<ReplayResult> {
    let folded = manifest(env, dir, wal_dir, db)?;
    let found = logs(env, wal_dir, &folded, db)?;
    let oldest = replay::oldest_log(&folded, db.allow_2pc);
    let mode = replay::mode_of(db.wal_recovery_mode);
    Replay::looking(env, wal_dir.to_owned(), mode, Some(&folded), oldest).run(&found)
}

/// Every log that the MANIFEST tracks must be there, with at least the bytes that were synced.
fn check_tracked(env: &Env, dir: &Path, folded: &ManifestContents, logs: &[FileNo]) -> Result<()> {
    for (number, synced) in &folded.tracked_logs {
        let path = dir.join(log_name(*number));
        if !logs.contains(number) {
            return Err(
                Error::corruption("a log that the MANIFEST tracks is missing").with_file(path),
            );
        }
        let len = env.fs.metadata(&path)?.len;
        if synced.is_some_and(|s| len < s) {
            return Err(Error::corruption(format!(
                "the log has {len} bytes, fewer than were synced"
            ))
            .with_file(path));
        }
    }
    Ok(())
}

/// Runs `read`, which reads the database in `dir`, which another process may write; again when it
/// fails and the directory changed meanwhile.
pub(crate) fn settled<T>(
    env: &Env,
    dir: &Path,
    wal_dir: &Path,
    mut read: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut blind = 0;
    let mut tries = 1;
    loop {
        let before = DirectoryVersion::at(env, dir, wal_dir);
        let e = match read() {
            Ok(done) => return Ok(done),
            Err(e) => e,
        };
        let is_news = before.ok() != DirectoryVersion::at(env, dir, wal_dir).ok();
        if !may_be_between(&e) || tries == TRIES || (!is_news && blind == BLIND_TRIES) {
            return Err(e);
        }
        tries += 1;
        if !is_news {
            blind += 1;
            env.clock.sleep(Duration::from_millis(1));
        }
    }
}

/// Returns whether what `e` is about may be of two states.
fn may_be_between(e: &Error) -> bool {
    let name = e.file().and_then(|f| f.file_name()?.to_str());
    let kind = name.and_then(parse_file_name).map(|(kind, _)| kind);
    let grows = matches!(kind, Some(FileKind::Manifest | FileKind::Wal));
    e.is_not_found() || (e.is_corruption() && (grows || name == Some(CURRENT)))
}

/// The lengths that tell one state of a directory from another.
#[derive(PartialEq, Eq)]
struct DirectoryVersion {
    manifest: (FileNo, u64),
    logs: Vec<(FileNo, u64)>,
}

impl DirectoryVersion {
    fn at(env: &Env, dir: &Path, wal_dir: &Path) -> Result<DirectoryVersion> {
        let number = current::read(&*env.fs, dir)?;
        let bytes = env.fs.metadata(&dir.join(manifest_name(number)))?.len;
        let mut logs = Vec::new();
        if env.fs.exists(wal_dir)? {
            for number in replay::list(env, wal_dir)? {
                let found = env.fs.metadata(&wal_dir.join(log_name(number)));
                logs.push((number, found.map_or(0, |m| m.len)));
            }
        }
        Ok(DirectoryVersion {
            manifest: (number, bytes),
            logs,
        })
    }
}
