//! Backups of a database in RocksDB's layout: incremental, verified, restored to any of them.
//!
//! A backup directory holds many backups, numbered from 1. Tables and blob files never change, so
//! backups share them; each has its own copy of the rest. A backup exists when its file in `meta/`
//! does, which is written last: whatever fails or dies in the middle, the backups that were there
//! stay whole. RocksDB restores what is made here, and what RocksDB made is restored here.
//!
//! ```text
//! meta/N                       what backup N consists of, with the CRC-32C of every file
//! private/N/                   its MANIFEST, CURRENT, OPTIONS and logs
//! shared_checksum/             tables and blob files: NUMBER_sSESSION_SIZE.sst,
//!                              NUMBER_CRC_SIZE.blob
//! shared/                      the same under their plain names, when share_files_with_checksum
//!                              is off
//! ```
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().expect("a directory");
//! use esker::{Db, Env, Options};
//! use esker_backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
//!
//! let (home, restored) = (dir.path().join("db"), dir.path().join("restored"));
//! let db = Db::open(&home, Options::new().create_if_missing(true))?;
//! let options = BackupEngineOptions::new(dir.path().join("backups"));
//! let backups = BackupEngine::open(options, &Env::posix())?;
//! db.put("key", "first")?;
//! let first = backups.create_new_backup(&db)?;
//! db.put("key", "second")?;
//! backups.create_new_backup(&db)?;
//!
//! backups.verify_backup(first, true)?;
//! backups.restore_db_from_backup(first, &restored, &restored, &RestoreOptions::default())?;
//! let db = Db::open(&restored, Options::new())?;
//! assert_eq!(db.get("key")?.as_deref(), Some(&b"first"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is deleted on doubt: while a backup is there that cannot be read, no file that it may
//! need goes.
//!
//! Thread-safety: everything may be called from anywhere; what changes the directory runs alone,
//! what reads it runs together, and [`BackupEngine::stop_backup`] never waits.
#![forbid(unsafe_code)]

mod collect;
mod copy;
mod create;
mod engine;
mod inner;
mod meta;
mod names;
mod options;
mod restore;
mod short_forms;
mod state;
mod verify;

pub use engine::{BackupEngine, BackupEngineReadOnly};
pub use options::{
    BackupEngineOptions, BackupFileInfo, BackupInfo, CreateBackupOptions, ExcludeFiles, Progress,
    RestoreMode, RestoreOptions, ShareFilesNaming,
};
pub use short_forms::{BackUp, restore_latest};
