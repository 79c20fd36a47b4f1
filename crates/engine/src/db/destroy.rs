//! Removing a database.
//!
//! Only files whose names belong to the format go, and only those that lie directly in the
//! database's own directories; what an application put beside them stays, and so does what repair
//! set aside. `CURRENT` goes first and MANIFESTs last: after an interruption the directory is no
//! database, and is still recognised as the rest of one.

use super::{Db, FamilyDescriptor};
use crate::options::Options;
use crate::runtime::whole_files::lock_closed;
use crate::tree::paths;
use esker_env::Env;
use esker_format::file_name::{ARCHIVE_DIR, CURRENT, FileKind, LOCK, parse_file_name};
use esker_status::{Error, Result};
use std::path::{Path, PathBuf};

impl Db {
    /// Removes the database at `path`: the files that belong to one, in its directory, in the
    /// `wal_dir` and `db_log_dir` of `options`, and all tables and blob files in the `db_paths` and
    /// `cf_paths`. Nothing there is fine.
    ///
    /// Repeating it after an interruption removes what is left. `Io` when the database is open
    /// somewhere; `InvalidArgument` when the directory holds tables or logs but neither CURRENT nor
    /// a MANIFEST, which [`Db::repair`] can make a database of again.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let path = dir.path().join("db");
    /// use esker::{Db, Options};
    ///
    /// drop(Db::open(&path, Options::new().create_if_missing(true))?);
    /// Db::destroy(&path, &Options::new())?;
    /// assert!(!path.exists());
    /// # Ok(())
    /// # }
    /// ```
    pub fn destroy(path: impl AsRef<Path>, options: &Options) -> Result<DestroyReport> {
        Self::destroy_families(path, options, &[])
    }

    /// [`Db::destroy`] for a database whose families have `cf_paths` of their own.
    pub fn destroy_families(
        path: impl AsRef<Path>,
        options: &Options,
        families: &[FamilyDescriptor],
    ) -> Result<DestroyReport> {
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let dir = path.as_ref();
        let table_dirs = table_dirs(&env, dir, options, families)?;
        if victims(&env, dir, options, &table_dirs)?.is_empty() {
            return Ok(DestroyReport::default());
        }
        let lock = lock_closed(&env, dir)?;
        let files = victims(&env, dir, options, &table_dirs)?;
        let mut report = count(&files);
        for file in files.iter().filter(|f| f.kind != FileKind::Lock) {
            match env.fs.remove_file(&file.path) {
                Err(e) if !e.is_not_found() => return Err(e),
                _ => {}
            }
        }
        env.fs.remove_file(&dir.join(LOCK))?;
        drop(lock);
        // Directories that hold something else stay.
        for other in archives(dir, options).iter().chain(&table_dirs) {
            let _ = env.fs.remove_dir(other);
        }
        report.directory_removed = env.fs.remove_dir(dir).is_ok();
        Ok(report)
    }

    /// Lists the files that [`Db::destroy`] would remove; changes nothing, and does not ask whether
    /// the database is open.
    pub fn destroy_dry_run(path: impl AsRef<Path>, options: &Options) -> Result<DestroyReport> {
        Self::destroy_families_dry_run(path, options, &[])
    }

    /// Lists the files that [`Db::destroy_families`] would remove.
    pub fn destroy_families_dry_run(
        path: impl AsRef<Path>,
        options: &Options,
        families: &[FamilyDescriptor],
    ) -> Result<DestroyReport> {
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let dir = path.as_ref();
        let table_dirs = table_dirs(&env, dir, options, families)?;
        Ok(count(&victims(&env, dir, options, &table_dirs)?))
    }
}

/// Files that a destruction removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestroyReport {
    /// Files that belonged to the database.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// True if the directory is gone too, since nothing else was in it.
    pub directory_removed: bool,
}

/// A file that belongs to the database.
struct Victim {
    kind: FileKind,
    path: PathBuf,
    bytes: u64,
}

fn count(files: &[Victim]) -> DestroyReport {
    DestroyReport {
        files: files.len() as u64,
        bytes: files.iter().map(|f| f.bytes).fold(0, u64::saturating_add),
        directory_removed: false,
    }
}

/// Lists the files to remove, in order.
fn victims(
    env: &Env,
    dir: &Path,
    options: &Options,
    table_dirs: &[PathBuf],
) -> Result<Vec<Victim>> {
    if !env.fs.exists(dir)? {
        return Ok(Vec::new());
    }
    let seen = list(env, dir, |_| true)?;
    let has = |kinds: &[FileKind]| seen.iter().any(|f| kinds.contains(&f.kind));
    if !has(&[FileKind::Current, FileKind::Manifest]) {
        if has(&[FileKind::Table, FileKind::Wal, FileKind::Blob]) {
            return Err(Error::invalid_argument(
                "the directory holds tables or logs, but neither CURRENT nor a MANIFEST",
            )
            .with_file(dir)
            .with_hint("nothing was removed; repair it first, or remove the files by hand"));
        }
        return Ok(Vec::new());
    }
    let mut files = seen;
    let elsewhere = [&options.db.wal_dir, &options.db.db_log_dir];
    for other in elsewhere.into_iter().filter(|d| !d.is_empty()) {
        let other = Path::new(other);
        if other != dir && env.fs.exists(other)? {
            files.extend(list(env, other, |k| k == FileKind::Wal)?);
        }
    }
    for path in table_dirs {
        files.extend(list(env, path, |k| {
            matches!(k, FileKind::Table | FileKind::Blob)
        })?);
    }
    for archive in archives(dir, options) {
        if env.fs.exists(&archive)? {
            files.extend(list(env, &archive, |k| k == FileKind::Wal)?);
        }
    }
    files.sort_by_key(|f| (f.kind == FileKind::Manifest, f.kind != FileKind::Current));
    Ok(files)
}

/// The directories of tables outside of the database's own. That of another database is left alone:
/// the owner of a table is unknown there.
fn table_dirs(
    env: &Env,
    dir: &Path,
    options: &Options,
    families: &[FamilyDescriptor],
) -> Result<Vec<PathBuf>> {
    let families = families.iter().map(|f| &f.options);
    let all = families.chain([&options.family]);
    let mut out = Vec::new();
    for path in paths::of_options(env, dir, &options.db, all) {
        if env.fs.exists(&path)? && !env.fs.exists(&path.join(CURRENT))? {
            out.push(path);
        }
    }
    Ok(out)
}

/// Where logs are archived.
fn archives(dir: &Path, options: &Options) -> Vec<PathBuf> {
    let wal_dir = Path::new(&options.db.wal_dir);
    let elsewhere = !options.db.wal_dir.is_empty() && wal_dir != dir;
    let mut out = vec![dir.join(ARCHIVE_DIR)];
    out.extend(elsewhere.then(|| wal_dir.join(ARCHIVE_DIR)));
    out
}

/// The files of `dir` that belong to a database and are of a `wanted` kind.
fn list(env: &Env, dir: &Path, wanted: impl Fn(FileKind) -> bool) -> Result<Vec<Victim>> {
    let mut out = Vec::new();
    for entry in env.fs.read_dir(dir)? {
        if let Some((kind, _)) = parse_file_name(&entry.name)
            && entry.is_file
            && wanted(kind)
        {
            let path = dir.join(&entry.name);
            // It may be deleted meanwhile, as a LOG is.
            let bytes = env.fs.metadata(&path).map_or(0, |m| m.len);
            out.push(Victim { kind, path, bytes });
        }
    }
    Ok(out)
}
