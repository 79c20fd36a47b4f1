//! Short forms of what most programs do: a backup of an open database, and the newest one back.

use crate::engine::{BackupEngine, BackupEngineReadOnly};
use crate::options::{BackupEngineOptions, RestoreOptions};
use esker::{Db, Env, Result};
use std::path::Path;

/// Backups as a call of the database.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let (home, backups) = (dir.path().join("db"), dir.path().join("backups"));
/// use esker_backup::BackUp;
///
/// let db = esker::Db::open_default(&home)?;
/// db.put("key", "value")?;
/// assert_eq!(db.backup_to(&backups)?, 1);
/// db.close()?;
///
/// db.put("key", "lost").expect_err("it is closed");
/// esker_backup::restore_latest(&backups, &home)?;
/// let db = esker::Db::open_default(&home)?;
/// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
/// # Ok(())
/// # }
/// ```
pub trait BackUp {
    /// Adds a backup of the database as it is now to the directory `dir`, which is made when it is
    /// not there, and returns the backup's number. Only what no backup there has yet is copied:
    /// see [`BackupEngine::create_new_backup`].
    fn backup_to(&self, dir: impl AsRef<Path>) -> Result<u32>;
}

impl BackUp for Db {
    fn backup_to(&self, dir: impl AsRef<Path>) -> Result<u32> {
        let options = BackupEngineOptions::new(dir.as_ref());
        BackupEngine::open(options, self.env())?.create_new_backup(self)
    }
}

/// Makes the database in `db_dir` what it was at the newest backup in `backup_dir`: see
/// [`BackupEngineReadOnly::restore_db_from_backup`]. It must not be open.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open_default(dir.path().join("db"))?;
/// # let at = dir.path().join("backups");
/// use esker_backup::{BackUp, restore_latest};
///
/// db.put("key", "value")?;
/// db.backup_to(&at)?;
/// restore_latest(&at, dir.path().join("copy"))?;
/// let copy = esker::Db::open_default(dir.path().join("copy"))?;
/// assert!(copy.contains_key("key")?);
/// # Ok(())
/// # }
/// ```
pub fn restore_latest(backup_dir: impl AsRef<Path>, db_dir: impl AsRef<Path>) -> Result<()> {
    let options = BackupEngineOptions::new(backup_dir.as_ref());
    let backups = BackupEngineReadOnly::open(options, &Env::posix())?;
    let (dir, how) = (db_dir.as_ref(), RestoreOptions::default());
    backups.restore_db_from_latest_backup(dir, dir, &how)
}
