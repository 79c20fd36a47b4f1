//! State of every operation on a backup directory.

use crate::copy::CopyTasks;
use crate::names::{LOCK, META, PRIVATE, SHARED, SHARED_CHECKSUM};
use crate::options::{BackupEngineOptions, Progress};
use esker::env::{FileLock, FileSystem, make_dir};
use esker::{Env, Error, RateLimiter, RateLimiterOptions, Result};
use esker_sync::Arc;
use esker_sync::atomic::AtomicBool;
use std::path::{Path, PathBuf};

/// State of the operations.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: BackupEngineOptions,
    pub(crate) dir: PathBuf,
    /// The world that the backups are in.
    pub(crate) env: Env,
    /// The world that databases are restored to.
    pub(crate) db_env: Env,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) backup_limiter: Arc<RateLimiter>,
    pub(crate) restore_limiter: Arc<RateLimiter>,
}

impl Inner {
    pub(crate) fn new(options: BackupEngineOptions, db_env: &Env) -> Result<Self> {
        if options.share_files_with_checksum && !options.share_files_with_checksum_naming.is_known()
        {
            return Err(Error::invalid_argument(format!(
                "share_files_with_checksum_naming {:#x} is no naming",
                options.share_files_with_checksum_naming.0
            )));
        }
        if options.backup_dir.as_os_str().is_empty() {
            return Err(Error::invalid_argument("backup_dir is empty"));
        }
        let env = options.backup_env.clone().unwrap_or_else(|| db_env.clone());
        let limiter = |given: &Option<Arc<RateLimiter>>, rate| {
            given.clone().unwrap_or_else(|| {
                let mut own = RateLimiterOptions::default();
                own.bytes_per_second = rate;
                own.clock = Some(Arc::clone(&db_env.clock));
                RateLimiter::with_options(own)
            })
        };
        Ok(Inner {
            dir: options.backup_dir.clone(),
            env,
            db_env: db_env.clone(),
            stop: Arc::new(AtomicBool::new(false)),
            backup_limiter: limiter(&options.backup_rate_limiter, options.backup_rate_limit),
            restore_limiter: limiter(&options.restore_rate_limiter, options.restore_rate_limit),
            options,
        })
    }

    /// Who copies, within the backup directory's world; the caller changes that.
    pub(crate) fn crew(&self, limiter: &Arc<RateLimiter>, progress: Option<Progress>) -> CopyTasks {
        CopyTasks {
            from: self.env.clone(),
            to: self.env.clone(),
            threads: usize::try_from(self.options.max_background_operations).unwrap_or(1),
            sync: self.options.sync,
            io_buffer_size: self.options.io_buffer_size,
            limiter: Arc::clone(limiter),
            stop: Arc::new(AtomicBool::new(false)),
            progress,
            progress_interval: self.options.callback_trigger_interval_size,
        }
    }

    /// Syncs the directory `name` in the backup directory, when options say so.
    pub(crate) fn sync_dir(&self, name: impl AsRef<Path>) -> Result<()> {
        if self.options.sync {
            self.env.fs.sync_dir(&self.dir.join(name))?;
        }
        Ok(())
    }

    pub(crate) fn lock(&self) -> Result<Box<dyn FileLock>> {
        self.env
            .fs
            .lock(&self.dir.join(LOCK))
            .map_err(|e| match e.lock_holder() {
                Some(holder) => {
                    let hint = format!("a backup engine in {holder} works on this directory");
                    e.with_hint(hint)
                }
                None => e,
            })
    }

    /// Makes the directory `dir`, which survives power loss when options say so.
    pub(crate) fn make_dir(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        if self.options.sync {
            make_dir(fs, dir)
        } else {
            fs.create_dir_all(dir)
        }
    }

    /// Makes the directories that are missing.
    pub(crate) fn make_dirs(&self) -> Result<()> {
        self.make_dir(&*self.env.fs, &self.dir)?;
        let shared = if self.options.share_files_with_checksum {
            SHARED_CHECKSUM
        } else {
            SHARED
        };
        let shared = self.options.share_table_files.then_some(shared);
        for name in shared.into_iter().chain([PRIVATE, META]) {
            self.env.fs.create_dir_all(&self.dir.join(name))?;
        }
        self.sync_dir("")
    }
}
