//! Checkpoints, and the list of files that a backup needs.
//!
//! A checkpoint is a second database with the contents of the first at one moment. Tables and blob files never
//! change, so it shares them through hard links where the filesystem can, and copies them elsewhere; the MANIFEST
//! and the logs grow, so their bytes up to that moment are copied. Nothing is deleted meanwhile. The new
//! directory is made and synced under a name of its own and moved into place when it is whole, so that a
//! target that exists is complete.
//!
//! The database may be open, or closed: then its lock is held, and the MANIFEST alone says what belongs to it.

use super::files::{copy, link_or_copy, lock_closed};
use super::{Db, Options};
use crate::recover::fold::{Folded, fold};
use crate::recover::{replay, sweep};
use esker_env::Env;
use esker_files::current;
use esker_format::FileNo;
use esker_format::file_name::{self, FileKind, IDENTITY, parse_file_name};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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

/// How a checkpoint was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointReport {
    /// Files that both databases share.
    pub linked: u64,
    /// Files that were copied.
    pub copied: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
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
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<CheckpointReport> {
        let (path, core) = (path.as_ref(), self.core());
        let staging = staging_of(&core.env, path)?;
        self.flush()?;
        self.disable_file_deletions();
        let _keep = KeepFiles(self);
        let mut files = self.live_files()?;
        files.extend(identity_file(&core.env, &core.dir)?);
        put_in_place(&core.env, &files, &staging, path)
    }

    /// Makes a database at `to`, which must not exist, with what the one at `from` holds, without opening that one:
    /// nothing of it changes, its logs are copied as they are, and no options or comparators are needed.
    ///
    /// Of `options` only `env` and `wal_dir` count. `Io` when the database is open somewhere; `Corruption` when a
    /// file is missing or the MANIFEST cannot be trusted to its end.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let db = Db::open(dir.path().join("db"), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.close()?;
    /// Db::checkpoint_closed(dir.path().join("db"), dir.path().join("copy"), &Options::new())?;
    ///
    /// let copy = Db::open(dir.path().join("copy"), Options::new())?;
    /// assert_eq!(copy.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn checkpoint_closed(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        options: &Options,
    ) -> Result<CheckpointReport> {
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let (from, to) = (from.as_ref(), to.as_ref());
        let staging = staging_of(&env, to)?;
        // Before the lock, which would make a file in a directory that is no database.
        current::read(&*env.fs, from)?;
        let _lock = lock_closed(&env, from)?;
        let files = closed_files(&env, from, options)?;
        put_in_place(&env, &files, &staging, to)
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

/// The name that the checkpoint at `path` has while it is not whole, when both are free.
fn staging_of(env: &Env, path: &Path) -> Result<PathBuf> {
    if env.fs.exists(path)? {
        return Err(
            Error::invalid_argument("a checkpoint is made where nothing is").with_file(path),
        );
    }
    let Some(name) = path.file_name() else {
        return Err(
            Error::invalid_argument("the path of a checkpoint names no directory").with_file(path),
        );
    };
    let mut name = name.to_os_string();
    name.push(".tmp");
    let staging = path.with_file_name(name);
    if env.fs.exists(&staging)? {
        return Err(
            Error::invalid_argument("left over from a checkpoint that was interrupted")
                .with_file(staging)
                .with_hint("remove the directory and try again"),
        );
    }
    Ok(staging)
}

/// The file IDENTITY, where there is one.
fn identity_file(env: &Env, dir: &Path) -> Result<Option<LiveFile>> {
    let path = dir.join(IDENTITY);
    if !env.fs.exists(&path)? {
        return Ok(None);
    }
    Ok(Some(LiveFile {
        name: IDENTITY.to_owned(),
        bytes: env.fs.metadata(&path)?.len,
        path,
        is_immutable: false,
    }))
}

/// What the contents of a database that nobody has open need.
fn closed_files(env: &Env, dir: &Path, options: &Options) -> Result<Vec<LiveFile>> {
    let number = current::read(&*env.fs, dir)?;
    let folded = fold(&*env.fs, dir, number)?;
    let mut here = BTreeMap::new();
    for entry in env.fs.read_dir(dir)?.into_iter().filter(|e| e.is_file) {
        if let Some(named) = parse_file_name(&entry.name) {
            here.insert(named, entry.name);
        }
    }
    let mut out = Vec::new();
    let mut add = |dir: &Path, name: String, is_immutable: bool| -> Result<()> {
        let path = dir.join(&name);
        let bytes = env.fs.metadata(&path)?.len;
        out.push(LiveFile {
            name,
            path,
            bytes,
            is_immutable,
        });
        Ok(())
    };
    for (kind, number) in placed_files(&folded, options, here.keys().copied())? {
        let name = here.get(&(kind, number)).ok_or_else(|| {
            let what = match kind {
                FileKind::Blob => "blob file",
                _ => "table",
            };
            Error::corruption(format!("{what} {number} is missing")).with_file(dir)
        })?;
        add(dir, name.clone(), true)?;
    }
    let wal_dir = match options.db.wal_dir.as_str() {
        "" => dir,
        given => Path::new(given),
    };
    for number in replay::list(env, wal_dir)? {
        if number >= folded.oldest_needed_log() {
            add(wal_dir, file_name::log_name(number), false)?;
        }
    }
    let newest = sweep::newest_options(env, dir, FileNo(0))?;
    if let Some(number) = newest.last().filter(|n| n.0 > 0) {
        add(dir, file_name::options_name(*number), true)?;
    }
    out.extend(identity_file(env, dir)?);
    let name = file_name::manifest_name(number);
    out.push(LiveFile {
        path: dir.join(&name),
        name,
        bytes: folded.valid_end,
        is_immutable: false,
    });
    Ok(out)
}

/// The tables and blob files that the trees of `folded` list. Without a family's order there is no tree: then
/// all the blob files that are there count as listed.
fn placed_files(
    folded: &Folded,
    options: &Options,
    here: impl Iterator<Item = (FileKind, FileNo)>,
) -> Result<Vec<(FileKind, FileNo)>> {
    let mut out = Vec::new();
    let mut is_without_order = false;
    for family in folded.families.values() {
        for file in family.live_files() {
            if file.path_id != 0 {
                let what = format!("table {} lies in another of several db_paths", file.number);
                return Err(Error::not_supported(what));
            }
            out.push((FileKind::Table, file.number));
        }
        match family.order(&options.family.comparator) {
            Some(order) => {
                let version = family.version(&order, 64)?;
                out.extend(version.blob_files().keys().map(|n| (FileKind::Blob, *n)));
            }
            None => is_without_order = true,
        }
    }
    if is_without_order {
        out.extend(here.filter(|(kind, _)| *kind == FileKind::Blob));
        out.sort_unstable();
        out.dedup();
    }
    Ok(out)
}

/// Makes the checkpoint under the name `staging` and renames it to `path`.
fn put_in_place(
    env: &Env,
    files: &[LiveFile],
    staging: &Path,
    path: &Path,
) -> Result<CheckpointReport> {
    env.fs.create_dir_all(staging)?;
    let made = fill(env, staging, files).and_then(|report| {
        env.fs.rename(staging, path)?;
        Ok(report)
    });
    let report = match made {
        Ok(report) => report,
        Err(e) => {
            discard(env, staging, files);
            return Err(e);
        }
    };
    match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(parent) => env.fs.sync_dir(parent)?,
        None => env.fs.sync_dir(Path::new("."))?,
    }
    Ok(report)
}

fn fill(env: &Env, target: &Path, files: &[LiveFile]) -> Result<CheckpointReport> {
    let mut manifest = None;
    let mut report = CheckpointReport::default();
    for file in files {
        let to = target.join(&file.name);
        let copied = if file.is_immutable {
            link_or_copy(env, &file.path, &to)?
        } else {
            copy(env, &file.path, &to, file.bytes)?;
            Some(file.bytes)
        };
        match copied {
            None => report.linked += 1,
            Some(bytes) => {
                report.copied += 1;
                report.copied_bytes += bytes;
            }
        }
        if let Some((FileKind::Manifest, number)) = parse_file_name(&file.name) {
            manifest = Some(number);
        }
    }
    let manifest = manifest.ok_or_else(|| Error::corruption("the database has no MANIFEST"))?;
    current::install(&*env.fs, target, manifest)?;
    env.fs.sync_dir(target)?;
    Ok(report)
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
