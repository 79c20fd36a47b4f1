//! The archive: logs whose data is in tables, kept for readers of updates.
//!
//! With `WAL_ttl_seconds` or `WAL_size_limit_MB` a log that nothing needs is moved into `archive/`
//! beside the logs instead of being deleted, and deleted there once it is too old or the archive
//! too large. A log keeps its name and its time. Called when obsolete files are deleted; only the
//! size and the age of files are kept on the disk, so nothing is to be recovered. Thread-safety:
//! any thread; two that purge at once delete the same files.

use crate::options::DbOptions;
use esker_env::Env;
use esker_format::FileNo;
use esker_format::file_name::{ARCHIVE_DIR, FileKind, parse_file_name};
use esker_status::Result;
use esker_sync::atomic::{AtomicU64, Ordering};
use std::path::{Path, PathBuf};

/// Longest time in seconds between two looks at the archive.
const INTERVAL_SECONDS_MAX: u64 = 600;

/// The archive of a database that has one.
#[derive(Debug)]
pub(crate) struct Archive {
    env: Env,
    dir: PathBuf,
    /// Seconds after its last change that a log is kept; 0 for no limit.
    ttl_seconds: u64,
    /// Bytes that are kept; 0 for no limit.
    bytes_max: u64,
    /// When the archive was looked at last, in seconds of the Unix epoch.
    looked: AtomicU64,
}

/// A log in the archive.
struct ArchivedLog {
    number: FileNo,
    path: PathBuf,
    bytes: u64,
    modified_unix: u64,
}

impl Archive {
    /// The archive beside the logs in `wal_dir`, if the options ask for one.
    pub(crate) fn of(env: &Env, wal_dir: &Path, options: &DbOptions) -> Option<Self> {
        let (ttl, megabytes) = (options.wal_ttl_seconds, options.wal_size_limit_mb);
        (ttl > 0 || megabytes > 0).then(|| Archive {
            env: env.clone(),
            dir: wal_dir.join(ARCHIVE_DIR),
            ttl_seconds: ttl,
            bytes_max: megabytes.saturating_mul(1 << 20),
            looked: AtomicU64::new(0),
        })
    }

    /// Moves the log at `path` here.
    pub(crate) fn take(&self, path: &Path) -> Result<()> {
        let Some(name) = path.file_name() else {
            return Ok(());
        };
        self.env.fs.create_dir_all(&self.dir)?;
        self.env.fs.rename(path, &self.dir.join(name))
    }

    /// Returns whether some time has passed since the archive was looked at.
    pub(crate) fn is_due(&self) -> bool {
        let interval = match self.ttl_seconds {
            0 => INTERVAL_SECONDS_MAX,
            ttl => (ttl / 2).clamp(1, INTERVAL_SECONDS_MAX),
        };
        let looked = self.looked.load(Ordering::Relaxed);
        looked.saturating_add(interval) <= self.now()
    }

    /// Begins a look at the archive when it is due: true for one caller each time.
    pub(crate) fn begin_if_due(&self) -> bool {
        let looked = self.looked.load(Ordering::Relaxed);
        self.is_due()
            && self
                .looked
                .compare_exchange(looked, self.now(), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Deletes what is too old, then the oldest of what is too much. Returns what could not be
    /// deleted.
    pub(crate) fn purge(&self) -> Result<Vec<(PathBuf, esker_status::Error)>> {
        let now = self.now();
        let (old, mut kept): (Vec<_>, Vec<_>) = self.list()?.into_iter().partition(|f| {
            f.bytes == 0
                || (self.ttl_seconds > 0 && now.saturating_sub(f.modified_unix) > self.ttl_seconds)
        });
        kept.sort_by_key(|f| f.number);
        let mut total: u64 = kept.iter().map(|f| f.bytes).sum();
        let mut gone = old;
        if self.bytes_max > 0 {
            let mut rest = kept.into_iter();
            while total > self.bytes_max
                && let Some(oldest) = rest.next()
            {
                total -= oldest.bytes;
                gone.push(oldest);
            }
        }
        let mut failed = Vec::new();
        for file in gone {
            if let Err(e) = self.env.fs.remove_file(&file.path)
                && !e.is_not_found()
            {
                failed.push((file.path, e));
            }
        }
        Ok(failed)
    }

    fn list(&self) -> Result<Vec<ArchivedLog>> {
        let fs = &*self.env.fs;
        let mut out = Vec::new();
        if !fs.exists(&self.dir)? {
            return Ok(out);
        }
        for entry in fs.read_dir(&self.dir)? {
            let Some((FileKind::Wal, number)) = parse_file_name(&entry.name) else {
                continue;
            };
            let path = self.dir.join(&entry.name);
            match fs.metadata(&path) {
                Ok(m) => out.push(ArchivedLog {
                    number,
                    path,
                    bytes: m.len,
                    modified_unix: m.modified_unix,
                }),
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
        Ok(out)
    }

    fn now(&self) -> u64 {
        self.env.clock.unix_us() / 1_000_000
    }
}
