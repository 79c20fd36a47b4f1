//! Checkpoints of a database, and exports of a family.
//!
//! A checkpoint is a second database with the contents of the first at one moment. Tables and blob
//! files never change, so it shares them through hard links where the filesystem can, and copies
//! them elsewhere; the MANIFEST and the logs grow, so their bytes up to that moment are copied.
//! Nothing is deleted meanwhile. The new directory is made and synced under a name of its own and
//! moved into place when it is whole, so that a target that exists is complete. What an interrupted
//! one left is removed by the next, so two of one name at a time are for the caller to avoid.
//!
//! The database may be open, or closed: then its lock is held, and the MANIFEST alone says what
//! belongs to it.

use super::Db;
use super::live_files::{LiveFile, without_logs};
use crate::family::FamilyHandle;
use crate::metadata::ExportedFiles;
use crate::options::Options;
use crate::options::{DbOptions, FileChecksumGenerator, FlushOptions};
use crate::recover::evidence;
use crate::runtime::whole_files::{copy, link_or_copy, write};
use esker_env::{Env, make_dir};
use esker_files::current;
use esker_format::file_name::{self, FileKind, parse_file_name};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::path::{Path, PathBuf};

/// How to make a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointOptions {
    /// Flushes what is in memory when the logs that are needed have this many bytes together: 0
    /// always, `u64::MAX` never. Without a flush, what was written past the log is not part of the
    /// checkpoint.
    pub log_size_for_flush: u64,
    /// Copies the newest log even if no log has a record, as RocksDB 11 does. Earlier versions and
    /// the default leave it out: what uploads a checkpoint may take an empty file for a missing
    /// one, as Flink does.
    pub keep_empty_log: bool,
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
    /// A sequence number: the checkpoint has all writes up to it, and perhaps some after. 0 for a
    /// checkpoint of a closed database.
    pub sequence: u64,
}

/// Deletes nothing while it lives.
struct DeletionGuard<'a>(&'a Db);

impl Drop for DeletionGuard<'_> {
    fn drop(&mut self) {
        self.0.enable_file_deletions(false);
    }
}

impl Db {
    /// Makes a database at `path`, which must not exist, in a directory that does, with what this
    /// one holds now.
    ///
    /// Memtables are flushed first, so that writes without the log are in it too. Table files are
    /// shared by hard links, or copied where the filesystem cannot link.
    ///
    /// A database that was opened for reading, or a secondary instance, is copied with its logs, as
    /// its directory is now: what another process wrote to it meanwhile is in the checkpoint too.
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
        self.checkpoint_opt(path, &CheckpointOptions::default())
    }

    /// As [`Db::checkpoint`], flushing first only when `options` say so.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{CheckpointOptions, Db, Options};
    ///
    /// let db = Db::open(dir.path().join("db"), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let mut options = CheckpointOptions::default();
    /// options.log_size_for_flush = u64::MAX;
    /// let report = db.checkpoint_opt(dir.path().join("copy"), &options)?;
    /// assert_eq!((report.sequence, report.linked), (1, 1), "of its files only OPTIONS is shared");
    /// # Ok(())
    /// # }
    /// ```
    pub fn checkpoint_opt(
        &self,
        path: impl AsRef<Path>,
        options: &CheckpointOptions,
    ) -> Result<CheckpointReport> {
        let (path, core) = (path.as_ref(), self.core());
        let staging = staging_of(&core.services.env, path)?;
        let sequence = self.latest_sequence_number();
        let db = core.services.options.load();
        if core.admin.read_only {
            // Its memory holds nothing that the logs do not, and its files are another's to delete.
            let report = self.settled(|| {
                let files = self.copied_files(options)?;
                put_in_place(&core.services.env, &files, &staging, path, &db, || Ok(()))
            })?;
            return Ok(CheckpointReport { sequence, ..report });
        }
        if options.log_size_for_flush == 0
            || core.writes.lock().alive_bytes() >= options.log_size_for_flush
        {
            self.flush()?;
        }
        self.disable_file_deletions();
        let _keep = DeletionGuard(self);
        let files = self.copied_files(options)?;
        let report = put_in_place(&core.services.env, &files, &staging, path, &db, || Ok(()))?;
        Ok(CheckpointReport { sequence, ..report })
    }

    /// The files of a checkpoint.
    fn copied_files(&self, options: &CheckpointOptions) -> Result<Vec<LiveFile>> {
        let mut files = self.live_files()?;
        if seeded(Bug::CheckpointLacksLog)
            && let Some(last) = files.iter().rposition(|f| f.kind == FileKind::Wal)
        {
            files.remove(last);
        }
        let mut logs = files.iter().filter(|f| f.kind == FileKind::Wal);
        if !options.keep_empty_log && logs.all(|log| log.bytes == 0) {
            return without_logs(&self.core().services.env, files);
        }
        Ok(files)
    }

    /// Puts the tables of `family` into the directory `path`, which must not exist. Returns what
    /// [`Db::import_family`] needs to add them to another database.
    ///
    /// Memtables are flushed first. Tables are shared by hard links, or copied where the filesystem
    /// cannot link. `NotSupported` for a family with values in blob files.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let db = Db::open(dir.path().join("db"), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let exported = db.export_family(&db.default_family_handle(), dir.path().join("export"))?;
    /// assert_eq!(exported.files.len(), 1);
    /// assert!(exported.files[0].path().starts_with(dir.path().join("export")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn export_family(
        &self,
        family: &FamilyHandle,
        path: impl AsRef<Path>,
    ) -> Result<ExportedFiles> {
        let (path, core) = (path.as_ref(), self.core());
        let staging = staging_of(&core.services.env, path)?;
        self.flush_cf(family, &FlushOptions::default())?;
        self.disable_file_deletions();
        let _keep = DeletionGuard(self);
        let meta = self.family_metadata(family);
        if !meta.blob_files.is_empty() {
            return Err(Error::not_supported(format!(
                "export of column family {}, which has blob files",
                meta.name
            )));
        }
        let mut exported = ExportedFiles {
            db_comparator_name: family.0.order.name().to_owned(),
            files: meta.levels.into_iter().flat_map(|l| l.files).collect(),
        };
        let tables: Vec<_> = exported
            .files
            .iter()
            .map(|f| LiveFile::new(&f.directory, f.name.clone(), f.size, true))
            .collect();
        in_place(
            &core.services.env,
            &tables,
            &staging,
            path,
            |env, target| {
                let report = share(env, target, &tables)?;
                env.fs.sync_dir(target)?;
                Ok(report)
            },
        )?;
        for file in &mut exported.files {
            path.clone_into(&mut file.directory);
            // Files on their way belong to no family.
            file.family.clear();
        }
        Ok(exported)
    }

    /// Makes a database at `to`, which must not exist, with what the one at `from` holds, without
    /// opening that one: nothing of it changes, its logs are copied as they are, and no options or
    /// comparators are needed.
    ///
    /// The directory may be one that cannot be written. Of `options` only `env` and `wal_dir`
    /// count. `Io` when the database is open somewhere; `Corruption` when a file is missing, or
    /// when opening it for writing would refuse its MANIFEST or its logs.
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
        let to = to.as_ref();
        let staging = staging_of(&env, to)?;
        let closed = Db::keep_closed(from, options)?;
        let db = closed.db_options(options);
        put_in_place(&env, closed.files(), &staging, to, &db, || closed.check())
    }

    /// Reads every table of the database from the disk: every checksum, the order of keys, filters
    /// and counts.
    ///
    /// The error names the first file that is damaged, and where.
    pub fn verify_checksums(&self) -> Result<()> {
        let core = self.core();
        for family in core.trees.families.all() {
            let version = std::sync::Arc::clone(&family.view_guard().version);
            for (level, file) in version.files() {
                if core.writes.is_closed() {
                    return Err(Error::shutdown());
                }
                core.trees
                    .tables
                    .open(file, level, &family.reading)?
                    .reader
                    .verify()?;
            }
        }
        Ok(())
    }

    /// Compares every live table with the checksum of the whole file that the MANIFEST keeps, where
    /// it keeps one.
    ///
    /// `InvalidArgument` without `file_checksum_gen_factory`, which knows the functions.
    pub fn verify_file_checksums(&self) -> Result<()> {
        let core = self.core();
        let factory = core
            .services
            .options
            .load()
            .file_checksum_gen_factory
            .clone();
        let Some(factory) = factory else {
            return Err(Error::invalid_argument(
                "Cannot verify file checksum if options.file_checksum_gen_factory is null",
            ));
        };
        for family in core.trees.families.all() {
            let version = std::sync::Arc::clone(&family.view_guard().version);
            for (_, file) in version.files() {
                if core.writes.is_closed() {
                    return Err(Error::shutdown());
                }
                let wanted = file.file_checksum_func_name.as_str();
                if file.file_checksum.is_empty() || wanted.is_empty() || wanted == "Unknown" {
                    continue;
                }
                let path = core.trees.tables.path(&family.reading.paths, file)?;
                let Some(mut sum) = factory.create(wanted) else {
                    return Err(Error::invalid_argument(format!(
                        "the file checksum function {wanted} is not known to {}",
                        factory.name()
                    ))
                    .with_file(path));
                };
                sum_up(&core.services.env, &path, file.size, &mut *sum)?;
                if sum.finish() != file.file_checksum {
                    return Err(Error::corruption("the file's checksum does not match")
                        .with_file(path)
                        .with_hint("restore the file from a backup, or repair the database"));
                }
            }
        }
        Ok(())
    }
}

/// The name that the checkpoint at `path` has while it is not whole, when both are free.
fn staging_of(env: &Env, path: &Path) -> Result<PathBuf> {
    if env.fs.exists(path)? {
        return Err(Error::invalid_argument("Directory exists").with_file(path));
    }
    let Some(name) = path.file_name() else {
        return Err(
            Error::invalid_argument("the path of a checkpoint names no directory").with_file(path),
        );
    };
    let mut name = name.to_os_string();
    name.push(".tmp");
    let staging = path.with_file_name(name);
    if !env.fs.exists(parent_of(path))? {
        // As RocksDB: a wrong path makes no directories.
        let missing = std::io::Error::from_raw_os_error(2);
        return Err(Error::io("While mkdir", &staging, &missing)
            .with_hint("create the directory that is to hold the checkpoint"));
    }
    if env.fs.exists(&staging)? {
        clear_unfinished(env, &staging)?;
    }
    Ok(staging)
}

/// Removes what an interrupted checkpoint or export left. CURRENT comes last, so a directory that
/// has one may be whole; it stays, and so does one with anything that no checkpoint writes.
fn clear_unfinished(env: &Env, staging: &Path) -> Result<()> {
    let entries = env.fs.read_dir(staging)?;
    let is_part = |name: &str| {
        use FileKind::{Blob, Manifest, Options, Table, Temp, Wal};
        let kind = parse_file_name(name).map(|(kind, _)| kind);
        matches!(kind, Some(Blob | Manifest | Options | Table | Temp | Wal))
    };
    if let Some(other) = entries.iter().find(|e| !is_part(&e.name)) {
        let cause = format!("`{}` is no part of an unfinished checkpoint", other.name);
        return Err(Error::invalid_argument(cause)
            .with_file(staging)
            .with_hint("remove the directory and try again"));
    }
    for entry in &entries {
        env.fs.remove_file(&staging.join(&entry.name))?;
    }
    env.fs.remove_dir(staging)
}

/// Makes the checkpoint under the name `staging` and renames it to `path`, when it can be opened
/// and `check` agrees.
fn put_in_place(
    env: &Env,
    files: &[LiveFile],
    staging: &Path,
    path: &Path,
    db: &DbOptions,
    check: impl FnOnce() -> Result<()>,
) -> Result<CheckpointReport> {
    in_place(env, files, staging, path, |env, target| {
        let report = share(env, target, files)?;
        let manifest = files.iter().find_map(|f| match parse_file_name(&f.name) {
            Some((FileKind::Manifest, number)) => Some(number),
            _ => None,
        });
        let manifest = manifest.ok_or_else(|| Error::corruption("the database has no MANIFEST"))?;
        current::install(&*env.fs, target, manifest)?;
        env.fs.sync_dir(target)?;
        evidence::examine(env, target, target, db)?;
        check()?;
        Ok(report)
    })
}

/// Makes a directory under the name `staging`, lets `fill` put `files` and what belongs to them
/// there, and renames it to `path`.
fn in_place<R>(
    env: &Env,
    files: &[LiveFile],
    staging: &Path,
    path: &Path,
    fill: impl FnOnce(&Env, &Path) -> Result<R>,
) -> Result<R> {
    make_dir(&*env.fs, staging)?;
    let made = fill(env, staging).and_then(|made| {
        env.fs.rename(staging, path)?;
        Ok(made)
    });
    let made = match made {
        Ok(made) => made,
        Err(e) => {
            discard(env, staging, files);
            return Err(e);
        }
    };
    env.fs.sync_dir(parent_of(path))?;
    Ok(made)
}

/// The directory that holds `path`.
fn parent_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Links what never changes, and copies the rest, into `target`.
fn share(env: &Env, target: &Path, files: &[LiveFile]) -> Result<CheckpointReport> {
    let mut report = CheckpointReport::default();
    for file in files {
        let to = target.join(&file.name);
        let copied = if let Some(contents) = &file.replacement {
            write(env, &to, contents)?;
            Some(file.bytes)
        } else if file.is_immutable {
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
    }
    Ok(report)
}

/// Removes what was made before it failed; what cannot be removed stays under the staging name.
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

/// Feeds a file to a checksum generator.
fn sum_up(env: &Env, path: &Path, size: u64, sum: &mut dyn FileChecksumGenerator) -> Result<()> {
    const PIECE: u64 = 1 << 20;
    let file = env.fs.open_read(path, Default::default())?;
    let size = file.len().max(size);
    let mut buffer = vec![0; size.min(PIECE) as usize];
    let mut at = 0;
    while at < size {
        let wanted = (size - at).min(PIECE) as usize;
        let read = file.read_at(at, &mut buffer[..wanted])?;
        if read < wanted {
            return Err(Error::corruption("the file is shorter than it should be")
                .with_file(path)
                .with_offset(at + read as u64));
        }
        sum.update(&buffer[..wanted]);
        at += wanted as u64;
    }
    Ok(())
}
