//! A database that is not open, read as it lies there: for checkpoints, backups and checks of
//! it.
//!
//! Nothing in its directory changes, so the directory may be one that cannot be written: a snapshot
//! of a volume, a read-only mount, another user's files. Its logs are not replayed: they are part
//! of its contents as they are.
//!
//! Thread-safety: values; the lock on the directory keeps writers out while one lives.

use super::Db;
use super::live_files::{LENIENT, LiveFile, closed_files, without_logs};
use crate::options::Options;
use crate::options::{DbOptions, LoadedOptions};
use crate::recover::evidence;
use crate::recover::load_latest_options;
use crate::recover::replay::ReplayResult;
use esker_env::{Env, FileLock, explain_lock};
use esker_files::current;
use esker_format::file_name::LOCK;
use esker_status::{Error, Result};
use std::fmt;
use std::path::{Path, PathBuf};

/// A database that is kept closed, and its files as they are, while this lives: see
/// [`Db::keep_closed`].
pub struct ClosedDb {
    env: Env,
    dir: PathBuf,
    files: Vec<LiveFile>,
    sequence: u64,
    closed: ClosedGuard,
}

impl fmt::Debug for ClosedDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosedDb")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

/// Losses in the logs of a database: see [`Db::verify_logs`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogReport {
    /// Data that opening the database for writing would go on without, one line each. An unfinished
    /// record at the end of the newest log is not among it: it was never acknowledged as synced.
    pub losses: Vec<String>,
    /// The newest sequence number in the MANIFEST and the logs.
    pub sequence: u64,
}

impl Db {
    /// Keeps the database at `path` closed, and gives the files that its contents need. Nothing in
    /// the directory changes, which may be one that cannot be written.
    ///
    /// Of `options` only `env` and `wal_dir` count. `Io` with [`esker_status::Subcode::Locked`]
    /// when the database is open somewhere; `Corruption` when opening it for writing would refuse
    /// what its MANIFEST and logs say, or when a file is missing.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options, Subcode};
    ///
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let refused = Db::keep_closed(dir.path(), &Options::new()).expect_err("it is open");
    /// assert_eq!(refused.subcode(), Subcode::Locked);
    /// db.close()?;
    ///
    /// let closed = Db::keep_closed(dir.path(), &Options::new())?;
    /// assert_eq!(closed.latest_sequence_number(), 1);
    /// assert!(Db::open(dir.path(), Options::new()).is_err(), "it is kept closed");
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_closed(path: impl AsRef<Path>, options: &Options) -> Result<ClosedDb> {
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let dir = path.as_ref();
        // Before the lock, which would make a file in a directory that is no database.
        current::read(&*env.fs, dir)?;
        let closed = ClosedGuard::keep(&env, dir)?;
        let loaded = load_latest_options(dir, &env, LENIENT).ok();
        let db = db_options(options, loaded.as_ref());
        let wal_dir = wal_dir(dir, options);
        let found = evidence::examine(&env, dir, &wal_dir, &db)?;
        let files = closed_files(&env, dir, options, loaded.as_ref(), &db)?;
        Ok(ClosedDb {
            dir: dir.to_owned(),
            files,
            sequence: found.last.0,
            closed,
            env,
        })
    }

    /// Checks what CURRENT, the MANIFEST and the logs of the database at `path` say of each other,
    /// and every record of the logs, as opening for writing does. Nothing in the directory changes,
    /// and another process may have the database open.
    ///
    /// Of `options` only `env` and `wal_dir` count: how damage is met is what the OPTIONS file of
    /// the database says. The error is what opening would say; what opening would go on without is
    /// in the report.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert!(Db::verify_logs(dir.path(), &Options::new())?.losses.is_empty());
    /// db.close()?;
    ///
    /// for file in std::fs::read_dir(dir.path()).expect("it is there").flatten() {
    ///     if file.path().extension().is_some_and(|e| e == "log") {
    ///         std::fs::remove_file(file.path()).expect("it goes");
    ///     }
    /// }
    /// let refused = Db::verify_logs(dir.path(), &Options::new()).expect_err("a log is missing");
    /// assert!(refused.is_corruption());
    /// # Ok(())
    /// # }
    /// ```
    pub fn verify_logs(path: impl AsRef<Path>, options: &Options) -> Result<LogReport> {
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let (dir, wal_dir) = (path.as_ref(), wal_dir(path.as_ref(), options));
        let loaded = load_latest_options(dir, &env, LENIENT).ok();
        let db = db_options(options, loaded.as_ref());
        let found = evidence::settled(&env, dir, &wal_dir, || {
            evidence::examine(&env, dir, &wal_dir, &db)
        })?;
        Ok(LogReport {
            sequence: found.last.0,
            losses: losses(found),
        })
    }
}

impl ClosedDb {
    /// The files that its contents need: tables, blob files, the MANIFEST, logs and the newest
    /// OPTIONS.
    pub fn files(&self) -> &[LiveFile] {
        &self.files
    }

    /// The files that it needs without its logs. The MANIFEST then says that there are none.
    pub fn files_without_logs(&self) -> Result<Vec<LiveFile>> {
        without_logs(&self.env, self.files.clone())
    }

    /// The newest sequence number in its MANIFEST and its logs.
    pub fn latest_sequence_number(&self) -> u64 {
        self.sequence
    }

    /// Its environment.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Refuses when the database was opened in spite of this: where the directory cannot be written
    /// and has no lock file, only this tells. To be asked when the files were read.
    pub fn check(&self) -> Result<()> {
        self.closed.check(&self.env, &self.dir)
    }

    /// How logs of a copy are to be read.
    pub(super) fn db_options(&self, options: &Options) -> DbOptions {
        let loaded = load_latest_options(&self.dir, &self.env, LENIENT).ok();
        db_options(options, loaded.as_ref())
    }
}

/// Lists the data that opening would go on without, except the unfinished end of the newest log.
fn losses(found: ReplayResult) -> Vec<String> {
    let newest = found.logs.last().map(|(number, _)| *number);
    match (&found.torn[..], &found.losses[..]) {
        ([torn], [_]) if newest == Some(*torn) => Vec::new(),
        _ => found.losses,
    }
}

/// The options by which logs are read.
fn db_options(given: &Options, loaded: Option<&LoadedOptions>) -> DbOptions {
    loaded.map_or_else(|| given.db.clone(), |l| l.db.clone())
}

fn wal_dir(dir: &Path, options: &Options) -> PathBuf {
    match options.db.wal_dir.as_str() {
        "" => dir.to_owned(),
        given => PathBuf::from(given),
    }
}

/// Keeps a database closed without writing into its directory.
#[derive(Debug)]
struct ClosedGuard {
    /// `None` where the lock file is missing and cannot be made.
    lock: Option<Box<dyn FileLock>>,
    /// The lock file, when there was none before.
    made: Option<(Env, PathBuf)>,
}

impl ClosedGuard {
    /// Refuses when the database is open somewhere.
    fn keep(env: &Env, dir: &Path) -> Result<ClosedGuard> {
        let path = dir.join(LOCK);
        let (lock, is_made) = match env.fs.lock_shared(&path) {
            Ok(lock) => (Some(lock), false),
            Err(e) if e.is_not_found() => match env.fs.lock(&path) {
                Ok(lock) => (Some(lock), true),
                Err(e) if e.is_unwritable() => (None, false),
                Err(e) => return Err(explain_lock(e, dir)),
            },
            Err(e) => return Err(explain_lock(e, dir)),
        };
        Ok(ClosedGuard {
            lock,
            made: is_made.then(|| (env.clone(), path)),
        })
    }

    /// A program that opens the database makes the lock file that was missing.
    fn check(&self, env: &Env, dir: &Path) -> Result<()> {
        if self.lock.is_some() || !env.fs.exists(&dir.join(LOCK))? {
            return Ok(());
        }
        Err(Error::busy("the database was opened while it was read").with_file(dir))
    }
}

impl Drop for ClosedGuard {
    fn drop(&mut self) {
        if let Some((env, path)) = self.made.take() {
            // Still locked: no process has opened the database. A lock file that stays does no
            // harm.
            let _gone = env.fs.remove_file(&path);
        }
    }
}
