//! The engine as callers see it: one lock over the state, and every operation in a file of its own.
//!
//! An operation that changes the directory holds the lock alone, and the file `BACKUP_LOCK` in the
//! directory, so that two engines on one directory do not work against each other; what reads it
//! shares the lock.

use crate::copy::stopped;
use crate::create::BackupSource;
use crate::inner::Inner;
use crate::options::{BackupEngineOptions, BackupInfo, CreateBackupOptions, RestoreOptions};
use crate::state::State;
use esker::{ClosedDb, Db, Env, Error, Result};
use esker_sync::atomic::Ordering;
use esker_sync::{Rank, RwLock, RwLockWriteGuard};
use std::fmt;
use std::ops::Deref;
use std::path::Path;

/// Taken before every lock of a database.
const STATE: Rank = Rank::new(4, "backups");

/// Backups, for whoever only reads them: to list, check and restore. Nothing in the directory
/// changes.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open_default(dir.path().join("db"))?;
/// # let at = dir.path().join("backups");
/// use esker_backup::{BackUp, BackupEngineOptions, BackupEngineReadOnly};
///
/// db.backup_to(&at)?;
/// let backups = BackupEngineReadOnly::open(BackupEngineOptions::new(&at), db.env())?;
/// assert_eq!(backups.get_backup_info().len(), 1);
/// # Ok(())
/// # }
/// ```
pub struct BackupEngineReadOnly {
    inner: Inner,
    state: RwLock<State>,
}

impl fmt::Debug for BackupEngineReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupEngineReadOnly")
            .field("dir", &self.inner.dir)
            .finish_non_exhaustive()
    }
}

impl BackupEngineReadOnly {
    /// Opens the directory of `options`, which must have backups in it or have had some. Databases
    /// are restored in `db_env`.
    ///
    /// Backups that cannot be read are no error: see
    /// [`BackupEngineReadOnly::get_corrupted_backups`].
    pub fn open(options: BackupEngineOptions, db_env: &Env) -> Result<Self> {
        if options.destroy_old_data {
            return Err(Error::invalid_argument(
                "Can't destroy old data with ReadOnly BackupEngine",
            ));
        }
        let inner = Inner::new(options, db_env)?;
        let limit = usize::try_from(inner.options.max_valid_backups_to_open).unwrap_or(0);
        let mut state = State::default();
        state.refresh(&inner.env, &inner.dir, limit)?;
        Ok(Self::with(inner, state))
    }

    fn with(inner: Inner, state: State) -> Self {
        BackupEngineReadOnly {
            inner,
            state: RwLock::new(STATE, state),
        }
    }

    /// All readable backups, oldest first.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open_default(dir.path().join("db"))?;
    /// # let at = dir.path().join("backups");
    /// use esker_backup::{BackupEngine, BackupEngineOptions};
    ///
    /// let backups = BackupEngine::open(BackupEngineOptions::new(&at), db.env())?;
    /// backups.create_new_backup(&db)?;
    /// db.put("key", "value")?;
    /// backups.create_new_backup(&db)?;
    /// let ids: Vec<u32> = backups.get_backup_info().iter().map(|one| one.backup_id).collect();
    /// assert_eq!(ids, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_backup_info(&self) -> Vec<BackupInfo> {
        let state = self.state.read();
        let backups = state.backups.iter();
        backups.map(|(id, b)| state.info(*id, b)).collect()
    }

    /// One backup: `NotFound` when there is none with that number, and why when it cannot be read.
    pub fn get_backup_info_of(&self, backup_id: u32) -> Result<BackupInfo> {
        let state = self.state.read();
        Ok(state.info(backup_id, state.backup(backup_id)?))
    }

    /// The newest readable backup; `NotFound` when there is none.
    pub fn get_latest_backup_info(&self) -> Result<BackupInfo> {
        let state = self.state.read();
        let id = latest(&state)?;
        Ok(state.info(id, state.backup(id)?))
    }

    /// The backups that cannot be read, and why.
    pub fn get_corrupted_backups(&self) -> Vec<(u32, Error)> {
        let state = self.state.read();
        let corrupt = state.corrupt.iter();
        corrupt.map(|(id, e)| (*id, e.clone())).collect()
    }

    /// Checks that the files of a backup are there with their sizes; `with_checksum` also reads
    /// them. The error names the file.
    pub fn verify_backup(&self, backup_id: u32, with_checksum: bool) -> Result<()> {
        self.inner
            .verify(&self.state.read(), backup_id, with_checksum)
    }

    /// Makes the database in `db_dir`, its logs in `wal_dir`, what it was when the backup was made.
    ///
    /// The database that is there goes, except for what `options` keep; it must not be open.
    /// Nothing of it goes before all files of the backup were found with their sizes. `db_dir` has
    /// no CURRENT until the rest is complete, so that a restore that fails leaves no database that
    /// can be opened.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open_default(dir.path().join("db"))?;
    /// # let at = dir.path().join("backups");
    /// use esker_backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
    ///
    /// let backups = BackupEngine::open(BackupEngineOptions::new(&at), db.env())?;
    /// db.put("key", "old")?;
    /// let id = backups.create_new_backup(&db)?;
    /// db.put("key", "new")?;
    /// backups.create_new_backup(&db)?;
    ///
    /// let copy = dir.path().join("copy");
    /// backups.restore_db_from_backup(id, &copy, &copy, &RestoreOptions::default())?;
    /// let copy = esker::Db::open_default(&copy)?;
    /// assert_eq!(copy.get("key")?.as_deref(), Some(&b"old"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn restore_db_from_backup(
        &self,
        backup_id: u32,
        db_dir: impl AsRef<Path>,
        wal_dir: impl AsRef<Path>,
        options: &RestoreOptions,
    ) -> Result<()> {
        let state = self.state.read();
        self.inner.restore(
            &state,
            backup_id,
            db_dir.as_ref(),
            wal_dir.as_ref(),
            options,
        )
    }

    /// [`BackupEngineReadOnly::restore_db_from_backup`] with the newest readable backup.
    pub fn restore_db_from_latest_backup(
        &self,
        db_dir: impl AsRef<Path>,
        wal_dir: impl AsRef<Path>,
        options: &RestoreOptions,
    ) -> Result<()> {
        let state = self.state.read();
        let (db_dir, wal_dir) = (db_dir.as_ref(), wal_dir.as_ref());
        self.inner
            .restore(&state, latest(&state)?, db_dir, wal_dir, options)
    }
}

fn latest(state: &State) -> Result<u32> {
    state
        .latest()
        .ok_or_else(|| Error::not_found("Backup not found"))
}

/// Makes, lists, checks, restores and deletes backups.
///
/// Two engines on one directory take turns; each sees what the other did when it changes something
/// itself.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open_default(dir.path().join("db"))?;
/// # let at = dir.path().join("backups");
/// use esker_backup::{BackupEngine, BackupEngineOptions};
///
/// let backups = BackupEngine::open(BackupEngineOptions::new(&at), db.env())?;
/// db.put("key", "value")?;
/// let id = backups.create_new_backup(&db)?;
/// backups.verify_backup(id, true)?;
/// backups.purge_old_backups(7)?;
/// assert_eq!(backups.get_latest_backup_info()?.backup_id, id);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BackupEngine(BackupEngineReadOnly);

impl Deref for BackupEngine {
    type Target = BackupEngineReadOnly;
    fn deref(&self) -> &BackupEngineReadOnly {
        &self.0
    }
}

impl BackupEngine {
    /// Opens the directory of `options`, and makes it when it is not there. Databases are restored
    /// in `db_env`.
    ///
    /// Backups that cannot be read are no error: see
    /// [`BackupEngineReadOnly::get_corrupted_backups`].
    pub fn open(options: BackupEngineOptions, db_env: &Env) -> Result<Self> {
        let inner = Inner::new(options, db_env)?;
        inner.make_dirs()?;
        let mut state = State::default();
        if inner.options.destroy_old_data {
            let _lock = inner.lock()?;
            inner.destroy_all(&mut state)?;
        } else {
            state.refresh(&inner.env, &inner.dir, usize::MAX)?;
            state.may_have_garbage = true;
        }
        Ok(BackupEngine(BackupEngineReadOnly::with(inner, state)))
    }

    fn change<R>(&self, f: impl FnOnce(&Inner, &mut State) -> Result<R>) -> Result<R> {
        let inner = &self.0.inner;
        let mut state: RwLockWriteGuard<'_, State> = self.0.state.write();
        let _lock = inner.lock()?;
        state.refresh(&inner.env, &inner.dir, usize::MAX)?;
        f(inner, &mut state)
    }

    /// Backs up `db` as it is now, and returns the backup's number.
    ///
    /// Writes go on meanwhile. Only what no backup has yet is copied. What is in memory comes along
    /// as part of the log; what was written past the log does not: see
    /// [`CreateBackupOptions::flush_before_backup`].
    pub fn create_new_backup(&self, db: &Db) -> Result<u32> {
        self.create_new_backup_opt(db, &CreateBackupOptions::default(), b"")
    }

    /// Backs up `db` as `options` say, and stores `app_metadata`, at most 1 MiB, with the backup.
    ///
    /// When it fails, no backup was made, and the others are as they were. `Incomplete` after
    /// [`BackupEngine::stop_backup`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open_default(dir.path().join("db"))?;
    /// # let at = dir.path().join("backups");
    /// use esker_backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
    ///
    /// let backups = BackupEngine::open(BackupEngineOptions::new(&at), db.env())?;
    /// let mut options = CreateBackupOptions::default();
    /// options.flush_before_backup = true;
    /// let id = backups.create_new_backup_opt(&db, &options, b"before the upgrade")?;
    /// assert_eq!(backups.get_backup_info_of(id)?.app_metadata, b"before the upgrade");
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_new_backup_opt(
        &self,
        db: &Db,
        options: &CreateBackupOptions,
        app_metadata: &[u8],
    ) -> Result<u32> {
        self.make(BackupSource::Open(db), options, app_metadata)
    }

    /// Backs up a database that nobody has open, as its files are: nothing of it changes, and its
    /// directory may be one that cannot be written. Its logs are not replayed: they are part of the
    /// backup.
    ///
    /// `InvalidArgument` with [`CreateBackupOptions::flush_before_backup`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Env, Options};
    /// use esker_backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
    ///
    /// let home = dir.path().join("db");
    /// let db = Db::open(&home, Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.close()?;
    ///
    /// let options = BackupEngineOptions::new(dir.path().join("backups"));
    /// let backups = BackupEngine::open(options, &Env::posix())?;
    /// let closed = Db::keep_closed(&home, &Options::new())?;
    /// let how = CreateBackupOptions::default();
    /// let id = backups.create_new_backup_of_closed(&closed, &how, b"")?;
    /// backups.verify_backup(id, true)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_new_backup_of_closed(
        &self,
        db: &ClosedDb,
        options: &CreateBackupOptions,
        app_metadata: &[u8],
    ) -> Result<u32> {
        self.make(BackupSource::Closed(db), options, app_metadata)
    }

    fn make(
        &self,
        db: BackupSource<'_>,
        options: &CreateBackupOptions,
        app_metadata: &[u8],
    ) -> Result<u32> {
        if self.0.inner.stop.load(Ordering::Acquire) {
            return Err(stopped());
        }
        self.0.inner.check(options, app_metadata)?;
        self.change(|inner, state| inner.create(state, db, options, app_metadata))
    }

    /// Deletes a backup, readable or not, and the files that no other backup has.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open_default(dir.path().join("db"))?;
    /// # let at = dir.path().join("backups");
    /// use esker_backup::{BackupEngine, BackupEngineOptions};
    ///
    /// let backups = BackupEngine::open(BackupEngineOptions::new(&at), db.env())?;
    /// let id = backups.create_new_backup(&db)?;
    /// backups.delete_backup(id)?;
    /// assert!(backups.get_backup_info().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_backup(&self, backup_id: u32) -> Result<()> {
        self.change(|inner, state| {
            let deleted = inner.delete(state, backup_id);
            if state.may_have_garbage {
                let collected = inner.collect(state);
                return deleted.and(collected);
            }
            deleted
        })
    }

    /// Deletes all readable backups but the newest `num_backups_to_keep`.
    pub fn purge_old_backups(&self, num_backups_to_keep: u32) -> Result<()> {
        let keep = usize::try_from(num_backups_to_keep).unwrap_or(usize::MAX);
        self.change(|inner, state| inner.purge(state, keep))
    }

    /// Deletes what operations that were interrupted left behind. Creating and deleting do so by
    /// themselves.
    pub fn garbage_collect(&self) -> Result<()> {
        self.change(Inner::collect)
    }

    /// Makes the backup that is being made, and all later ones, fail with `Incomplete`. Does not
    /// wait.
    pub fn stop_backup(&self) {
        self.0.inner.stop.store(true, Ordering::Release);
    }
}
