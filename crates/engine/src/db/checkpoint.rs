//! Checkpoints, and the list of files that a backup needs.
//!
//! A checkpoint is a second database with the contents of the first at one moment. Tables and blob files never
//! change, so it shares them through hard links where the filesystem can, and copies them elsewhere; the MANIFEST
//! and the logs grow, so their bytes up to that moment are copied. Nothing is deleted meanwhile. The new
//! directory is made under a name of its own and moved into place when it is whole.

use super::Db;
use crate::recover::sweep;
use esker_env::{Env, ReadOptions as FileReadOptions, WriteOptions as FileWriteOptions};
use esker_files::current;
use esker_format::file_name::{self, FileKind, parse_file_name};
use esker_format::{FileNo, file_name::LOST_DIR};
use esker_status::{Error, Result, Subcode};
use std::path::{Path, PathBuf};

/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;

/// A file that the present contents of a database need.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveFile {
    /// Its name in the database's directory.
    pub name: String,
    /// Where it is: logs may lie in `wal_dir`.
    pub path: PathBuf,
    /// Its bytes that count. A MANIFEST or a log may grow meanwhile: what comes after is not part of the contents.
    pub bytes: u64,
    /// Whether its bytes never change, so that a link is as good as a copy.
    pub is_immutable: bool,
}

/// Deletes nothing while it lives.
struct KeepFiles<'a>(&'a Db);

impl Drop for KeepFiles<'_> {
    fn drop(&mut self) {
        self.0.enable_file_deletions(false);
    }
}

impl Db {
    /// The files that the contents of the database need now: tables, blob files, the MANIFEST, logs and the newest
    /// OPTIONS. With [`Db::disable_file_deletions`] called before, they stay until
    /// [`Db::enable_file_deletions`]. Not for databases opened for reading only.
    pub fn live_files(&self) -> Result<Vec<LiveFile>> {
        let core = self.core();
        core.check_open_for_writes()?;
        let mut files = Vec::new();
        // Both locks: no write and no change of a tree comes between what is listed here.
        let mut log = core.writes.lock();
        core.sequence.quiesce();
        log.flush()?;
        core.store.while_still(|manifest, bytes| -> Result<()> {
            let mut add = |name: String, dir: &Path, bytes: u64, is_immutable: bool| {
                let path = dir.join(&name);
                files.push(LiveFile {
                    name,
                    path,
                    bytes,
                    is_immutable,
                });
            };
            for family in core.families.all() {
                let version = &family.view_guard().version;
                for (_, file) in version.files() {
                    let path = core.tables.path(file.number)?;
                    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
                    add(name.unwrap_or_default(), &core.dir, file.size, true);
                }
                for number in version.blob_files().keys() {
                    let name = file_name::blob_name(*number);
                    let bytes = core.env.fs.metadata(&core.dir.join(&name))?.len;
                    add(name, &core.dir, bytes, true);
                }
            }
            add(file_name::manifest_name(manifest), &core.dir, bytes, false);
            for live in log.alive() {
                add(
                    file_name::log_name(live.number),
                    log.dir(),
                    live.bytes,
                    false,
                );
            }
            let newest = sweep::newest_options(&core.env, &core.dir, FileNo(0))?;
            if let Some(number) = newest.last().filter(|n| n.0 > 0) {
                let name = file_name::options_name(*number);
                let bytes = core.env.fs.metadata(&core.dir.join(&name))?.len;
                add(name, &core.dir, bytes, true);
            }
            Ok(())
        })?;
        Ok(files)
    }

    /// Makes a database at `path`, which must not exist, with what this one holds now.
    ///
    /// What is in memory is flushed first, so that writes without the log are in it too. Table files are shared
    /// by hard links, or copied where the filesystem cannot link.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let db = Db::open(dir.path().join("db"), Options::new().create_if_missing(true))?;
    /// db.put("key", "before")?;
    /// db.checkpoint(dir.path().join("copy"))?;
    /// db.put("key", "after")?;
    ///
    /// let copy = Db::open(dir.path().join("copy"), Options::new())?;
    /// assert_eq!(copy.get("key")?.as_deref(), Some(&b"before"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, env) = (path.as_ref(), &self.core().env);
        if env.fs.exists(path)? {
            return Err(
                Error::invalid_argument("a checkpoint is made where nothing is").with_file(path),
            );
        }
        let staging = staging_of(path)?;
        if env.fs.exists(&staging)? {
            return Err(Error::invalid_argument(
                "left over from a checkpoint that was interrupted",
            )
            .with_file(staging)
            .with_hint("remove the directory and try again"));
        }
        self.flush()?;
        self.disable_file_deletions();
        let _keep = KeepFiles(self);
        let files = self.live_files()?;
        env.fs.create_dir_all(&staging)?;
        let made = fill(env, &staging, &files).and_then(|()| env.fs.rename(&staging, path));
        if made.is_err() {
            discard(env, &staging, &files);
        }
        made?;
        match path.parent().filter(|p| !p.as_os_str().is_empty()) {
            Some(parent) => env.fs.sync_dir(parent),
            None => env.fs.sync_dir(Path::new(".")),
        }
    }

    /// Reads every table of the database from the disk: every checksum, the order of keys, filters and counts.
    ///
    /// The error names the first file that is damaged, and where.
    pub fn verify_checksums(&self) -> Result<()> {
        let core = self.core();
        for family in core.families.all() {
            let version = std::sync::Arc::clone(&family.view_guard().version);
            for (level, file) in version.files() {
                if core.wake.is_closing() {
                    return Err(Error::shutdown());
                }
                core.tables
                    .open(file, level, &family.reading)?
                    .reader
                    .verify()?;
            }
        }
        Ok(())
    }
}

/// The name that a checkpoint has while it is not whole.
fn staging_of(path: &Path) -> Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(
            Error::invalid_argument("the path of a checkpoint names no directory").with_file(path),
        );
    };
    let mut name = name.to_os_string();
    name.push(".tmp");
    Ok(path.with_file_name(name))
}

fn fill(env: &Env, target: &Path, files: &[LiveFile]) -> Result<()> {
    let mut manifest = None;
    for file in files {
        let to = target.join(&file.name);
        if file.is_immutable {
            link_or_copy(env, &file.path, &to)?;
        } else {
            copy(env, &file.path, &to, file.bytes)?;
        }
        if let Some((FileKind::Manifest, number)) = parse_file_name(&file.name) {
            manifest = Some(number);
        }
    }
    let manifest = manifest.ok_or_else(|| Error::corruption("the database has no MANIFEST"))?;
    current::install(&*env.fs, target, manifest)?;
    env.fs.sync_dir(target)
}

/// Removes what [`fill`] made; what cannot be removed stays under the staging name.
fn discard(env: &Env, target: &Path, files: &[LiveFile]) {
    for name in files
        .iter()
        .map(|f| f.name.as_str())
        .chain([file_name::CURRENT])
    {
        let _ = env.fs.remove_file(&target.join(name));
    }
    let _ = env.fs.remove_dir(target);
}

/// Gives the file at `from` a second name, or makes a copy of it where that cannot be.
pub(crate) fn link_or_copy(env: &Env, from: &Path, to: &Path) -> Result<()> {
    match env.fs.hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(e) if e.is_no_space() || e.is_not_found() => Err(e),
        Err(_) => {
            let bytes = env.fs.metadata(from)?.len;
            copy(env, from, to, bytes)
        }
    }
}

/// Copies the first `bytes` of a file, and syncs the copy.
pub(crate) fn copy(env: &Env, from: &Path, to: &Path, bytes: u64) -> Result<()> {
    let source = env.fs.open_read(from, FileReadOptions::default())?;
    let options = FileWriteOptions {
        exclusive: true,
        ..FileWriteOptions::default()
    };
    let mut target = env.fs.create(to, options)?;
    let mut buf = vec![0; CHUNK];
    let mut at = 0;
    while at < bytes {
        let want = usize::try_from(bytes - at).unwrap_or(CHUNK).min(CHUNK);
        let got = source.read_at(at, &mut buf[..want])?;
        if got == 0 {
            return Err(Error::corruption(format!(
                "the file ends at {at} and should have {bytes} bytes"
            ))
            .with_file(from));
        }
        target.append(&buf[..got])?;
        at += got as u64;
    }
    target.sync()?;
    target.close()
}

/// Moves `path` into the directory `lost` beside it, under a name that is free there; returns where it went.
pub(crate) fn set_aside(env: &Env, path: &Path) -> Result<PathBuf> {
    let to = aside_name(env, path)?;
    env.fs.rename(path, &to)?;
    Ok(to)
}

/// A free name for `path` in the directory `lost` beside it, which is made when it is not there.
pub(crate) fn aside_name(env: &Env, path: &Path) -> Result<PathBuf> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::invalid_argument("no file")
            .with_file(path)
            .with_subcode(Subcode::PathNotFound));
    };
    let lost = dir.join(LOST_DIR);
    env.fs.create_dir_all(&lost)?;
    let plain = lost.join(name);
    let mut to = plain.clone();
    let mut turn = 0;
    while env.fs.exists(&to)? {
        turn += 1;
        let mut next = plain.clone().into_os_string();
        next.push(format!(".{turn}"));
        to = PathBuf::from(next);
    }
    Ok(to)
}
