//! Options by RocksDB's names, and what is told about a backup.

use esker::{Env, RateLimiter};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// How shared files are named in `shared_checksum/`: a scheme, and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareFilesNaming(pub u32);

impl ShareFilesNaming {
    /// `NUMBER_CRC_SIZE.sst`. The whole file must be read to know its name.
    pub const LEGACY_CRC32C_AND_FILE_SIZE: Self = Self(1);
    /// `NUMBER_sSESSION.sst`, after the session that wrote the table. Blob files, and tables
    /// without a session, are named in the other way.
    pub const USE_DB_SESSION_ID: Self = Self(2);
    /// Puts `_SIZE` before the suffix where it is not part of the name already.
    pub const FLAG_INCLUDE_FILE_SIZE: Self = Self(1 << 31);
    const SCHEME: u32 = 0xffff;

    /// Returns whether sizes are part of names after sessions.
    pub fn includes_file_size(self) -> bool {
        self.0 & Self::FLAG_INCLUDE_FILE_SIZE.0 != 0
    }

    /// Returns whether the scheme is the old one.
    pub fn is_legacy(self) -> bool {
        self.0 & Self::SCHEME == Self::LEGACY_CRC32C_AND_FILE_SIZE.0
    }

    /// Returns whether it is a scheme with flags that exist.
    pub(crate) fn is_known(self) -> bool {
        let scheme = Self(self.0 & Self::SCHEME);
        let flags = self.0 & !Self::SCHEME;
        (scheme == Self::LEGACY_CRC32C_AND_FILE_SIZE || scheme == Self::USE_DB_SESSION_ID)
            && flags & !Self::FLAG_INCLUDE_FILE_SIZE.0 == 0
    }
}

impl Default for ShareFilesNaming {
    fn default() -> Self {
        Self(Self::USE_DB_SESSION_ID.0 | Self::FLAG_INCLUDE_FILE_SIZE.0)
    }
}

/// How a backup directory is used. The names are those of RocksDB's `BackupEngineOptions`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackupEngineOptions {
    /// Where the backups are. It may be the database's own directory, as some bindings have it: no
    /// name of one is a name of the other.
    pub backup_dir: PathBuf,
    /// The world that the backups are in; `None` for the database's.
    pub backup_env: Option<Env>,
    /// Lets backups share tables and blob files; without, each has its own copies.
    pub share_table_files: bool,
    /// Makes backups and restored databases survive power loss.
    pub sync: bool,
    /// Deletes all backups that are there when the directory is opened.
    pub destroy_old_data: bool,
    /// Includes the write-ahead log. Without, a backup holds what was in tables.
    pub backup_log_files: bool,
    /// Most bytes a second that making backups writes; 0 for no limit.
    pub backup_rate_limit: u64,
    /// A limit that others may share, instead of `backup_rate_limit`.
    pub backup_rate_limiter: Option<Arc<RateLimiter>>,
    /// Most bytes a second that restoring writes; 0 for no limit.
    pub restore_rate_limit: u64,
    /// A limit that others may share, instead of `restore_rate_limit`.
    pub restore_rate_limiter: Option<Arc<RateLimiter>>,
    /// Names shared files so that different files are never taken for the same. Without, they have
    /// the names that they have in the database, and a backup of a database with another history
    /// fails.
    pub share_files_with_checksum: bool,
    /// Threads that copy and read files, the caller's included.
    pub max_background_operations: i32,
    /// Bytes copied between two calls of the progress callback.
    pub callback_trigger_interval_size: u64,
    /// Most readable backups that opening for reading looks at, newest first. Opening for writing
    /// looks at all.
    pub max_valid_backups_to_open: i32,
    /// The names of shared files, when `share_files_with_checksum` is on.
    pub share_files_with_checksum_naming: ShareFilesNaming,
    /// The version of the files in `meta/`: 1, or 2, which RocksDB reads since 6.19 and which keeps
    /// temperatures and excluded files.
    pub schema_version: i32,
    /// Trusts the filesystem's word on a file's temperature over the MANIFEST's. An [`Env`] has no
    /// such word, so the MANIFEST's always counts.
    pub current_temperatures_override_manifest: bool,
    /// Bytes read at a time; 0 for a size that suits the rate limit.
    pub io_buffer_size: u64,
}

impl BackupEngineOptions {
    /// Backups in `backup_dir`, everything else at its default.
    pub fn new(backup_dir: impl Into<PathBuf>) -> Self {
        BackupEngineOptions {
            backup_dir: backup_dir.into(),
            backup_env: None,
            share_table_files: true,
            sync: true,
            destroy_old_data: false,
            backup_log_files: true,
            backup_rate_limit: 0,
            backup_rate_limiter: None,
            restore_rate_limit: 0,
            restore_rate_limiter: None,
            share_files_with_checksum: true,
            max_background_operations: 1,
            callback_trigger_interval_size: 4 << 20,
            max_valid_backups_to_open: i32::MAX,
            share_files_with_checksum_naming: ShareFilesNaming::default(),
            schema_version: 1,
            current_temperatures_override_manifest: false,
            io_buffer_size: 0,
        }
    }
}

/// Called while a backup is made, from the threads that copy, never twice at once. It may stop the
/// backup; other calls on the same engine would wait for themselves.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn() + Send + Sync>);

impl Progress {
    /// Calls `f`.
    pub fn new(f: impl Fn() + Send + Sync + 'static) -> Self {
        Progress(Arc::new(f))
    }

    pub(crate) fn call(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

/// Says which shared files a backup leaves out, by their names in the backup directory.
#[derive(Clone)]
pub struct ExcludeFiles(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl ExcludeFiles {
    /// Leaves out what `f` says.
    pub fn new(f: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        ExcludeFiles(Arc::new(f))
    }

    pub(crate) fn call(&self, name: &str) -> bool {
        (self.0)(name)
    }
}

impl fmt::Debug for ExcludeFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExcludeFiles")
    }
}

/// How to make one backup. The names are those of RocksDB's `CreateBackupOptions`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CreateBackupOptions {
    /// Flushes what is in memory first. Without, what was written past the log is not part of the
    /// backup.
    pub flush_before_backup: bool,
    /// Told about progress.
    pub progress_callback: Option<Progress>,
    /// Asked about each table that would be copied into `shared_checksum/`. Needs `schema_version`
    /// 2. Such a backup is restored over a database that still has the files, with
    ///    [`RestoreMode::KeepLatestDbSessionIdFiles`].
    pub exclude_files_callback: Option<ExcludeFiles>,
    /// Flushes all families as one, which matters when the log is not part of the backup: then it
    /// is `NotSupported`. With the log, families agree in any case.
    pub atomic_flush: bool,
}

/// How much of the database that is there a restore keeps. The names are those of RocksDB's
/// `RestoreOptions::Mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestoreMode {
    /// Keeps tables that have the number, the session and the size of the backup's. They are not
    /// read.
    KeepLatestDbSessionIdFiles,
    /// Reads tables and blob files, and keeps those with the checksum of the backup's.
    VerifyChecksum,
    /// Keeps none.
    #[default]
    PurgeAllFiles,
}

/// How to restore a backup. The names are those of RocksDB's `RestoreOptions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// Keeps the logs that are there, those in `archive` included, instead of the backup's.
    pub keep_log_files: bool,
    /// How much else is kept.
    pub mode: RestoreMode,
}

impl RestoreOptions {
    /// Keeps as much as `mode` says, and the logs when `keep_log_files`.
    pub fn new(keep_log_files: bool, mode: RestoreMode) -> Self {
        RestoreOptions {
            keep_log_files,
            mode,
        }
    }
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupFileInfo {
    /// Its name in the backup directory.
    pub relative_filename: String,
    /// Its bytes.
    pub size: u64,
    /// Its CRC-32C, where the backup has it.
    pub crc32c: Option<u32>,
}

/// Description of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Its number.
    pub backup_id: u32,
    /// When it was made, in Unix seconds.
    pub timestamp: u64,
    /// Bytes of its files, shared ones included.
    pub size: u64,
    /// How many files it has.
    pub number_files: u32,
    /// Metadata that the application stored with it.
    pub app_metadata: Vec<u8>,
    /// The database had this sequence number, or a later one.
    pub sequence_number: u64,
    /// Its files.
    pub file_details: Vec<BackupFileInfo>,
    /// Shared files that were left out of it.
    pub excluded_files: Vec<String>,
}
