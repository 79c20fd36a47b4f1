//! The parts of an open database, put together once and shared by callers and background threads.
//!
//! A part that needs others is given them; this struct exists so that jobs and the facade can reach
//! all of them through one `Arc`. It has the helpers that several of these share.

use crate::family::{FamilySet, View};
use crate::health::Health;
use crate::observe::{DbRef, InfoLog, Pending, StallLedger, Statistics, TableFileDeletion};
use crate::options::DbOptions;
use crate::registry::Jobs;
use crate::runtime::{BackgroundCv, CompactionAbort, JobLimiter, ResumeBackoff};
use crate::snapshot::{Snapshot, SnapshotList};
use crate::store::Store;
use crate::tree::blobs::Blobs;
use crate::tree::{FileNumbers, ObsoleteFiles, Purged, Tables, paths};
use crate::ttl::Ttls;
use crate::write::admission::Admission;
use crate::write::counters::WriteCountersSnapshot;
use crate::write::path::WritePath;
use crate::write::sequence::Sequence;
use esker_env::{Env, WritableFile, WriteOptions};
use esker_format::{FileNo, Seq};
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, ArcSwap, Mutex, OnceLock, RwLockReadGuard, Weak};
use std::path::{Path, PathBuf};

/// Everything an open database is made of.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) options: ArcSwap<DbOptions>,
    pub(crate) families: Arc<FamilySet>,
    pub(crate) sequence: Arc<Sequence>,
    pub(crate) snapshots: Arc<SnapshotList>,
    pub(crate) health: Arc<Health>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) numbers: Arc<FileNumbers>,
    pub(crate) store: Store,
    pub(crate) tables: Arc<Tables>,
    pub(crate) obsolete_files: Arc<ObsoleteFiles>,
    pub(crate) writes: WritePath,
    pub(crate) background_cv: Arc<BackgroundCv>,
    pub(crate) jobs: Mutex<Jobs>,
    pub(crate) statistics: Option<Arc<Statistics>>,
    pub(crate) info_log: Arc<InfoLog>,
    /// This, for those who are told of events.
    pub(crate) weak_self: OnceLock<Weak<Core>>,
    pub(crate) identity: Identity,
    /// Serialises administration.
    pub(crate) admin: Mutex<()>,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) limiter: JobLimiter,
    pub(crate) resume_backoff: ResumeBackoff,
    /// Time that writers were held back, over all families.
    pub(crate) stalls: Arc<StallLedger>,
    /// What recovery could not take from the logs when the database was opened, one line each.
    pub(crate) recovery_losses: Mutex<Vec<String>>,
    /// When it was opened, by the clock.
    pub(crate) opened_us: u64,
    /// When statistics were last written into the LOG, by the clock.
    pub(crate) dumped_us: AtomicU64,
    /// The figures that `rocksdb.dbstats` showed last.
    pub(crate) shown: Mutex<DbStats>,
    /// The numbers of the OPTIONS files that are there, oldest first.
    pub(crate) options_files: Mutex<Vec<FileNo>>,
    /// Events that wait for a thread without locks.
    pub(crate) pending: Arc<Pending>,
    /// Numbers of jobs, for events.
    pub(crate) last_job: AtomicU64,
    /// Whether the database was opened for reading only.
    pub(crate) read_only: bool,
    /// The primary that this database follows, when it is a secondary instance.
    pub(crate) follower: Option<Box<dyn CatchUp>>,
    /// Whether compactions are to end.
    pub(crate) compaction_abort: CompactionAbort,
    /// The times to live of the families, when values have the time of their writing behind them.
    pub(crate) ttl: Option<Arc<Ttls>>,
}

/// The part of a secondary instance that follows its primary.
pub(crate) trait CatchUp: std::fmt::Debug + Send + Sync {
    /// Shows the newest state of the primary. After a failure the state shown before stays.
    fn catch_up(&self, core: &Core) -> Result<()>;
    /// While this is held, all families show the same state of the primary.
    fn hold_state(&self) -> RwLockReadGuard<'_, ()>;
}

/// The figures of `rocksdb.dbstats` at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DbStats {
    pub(crate) at_us: u64,
    pub(crate) counters: WriteCountersSnapshot,
    pub(crate) stall_us: u64,
}

/// Who the database is: stored in its tables, so that their unique ids can be computed.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The id in the file IDENTITY.
    pub(crate) db_id: String,
    /// The id of this opening.
    pub(crate) session_id: String,
    /// This machine's name, as the options say.
    pub(crate) host_id: String,
}

impl Core {
    /// This database, for listeners.
    pub(crate) fn lent(&self) -> DbRef {
        DbRef::new(self.weak_self.get().cloned().map(|core| core as _))
    }

    /// The sequence that a read of `view` sees: that of `snapshot`, or the newest. The view is
    /// taken before.
    #[inline]
    pub(crate) fn read_seq(&self, view: &View, snapshot: Option<&Snapshot>) -> Result<Seq> {
        match snapshot {
            None => Ok(self.sequence.published().min(view.limit)),
            // A view that was taken before keeps what the snapshot showed; this one may be newer.
            Some(held) if held.is_released() => Err(Error::invalid_argument(
                "the snapshot to read at was released",
            )),
            Some(held) if self.follower.is_none() => Ok(held.seq()),
            // The primary does not know of it, and drops what it would need.
            Some(_) => Err(Error::not_supported(
                "snapshot not supported in secondary mode",
            )),
        }
    }

    /// The directories outside of the database's in which its families have tables.
    pub(crate) fn table_dirs(&self) -> Vec<PathBuf> {
        let found = self.families.table_dirs(|families| {
            let paths = families.iter().map(|f| &*f.reading.paths);
            paths::beside(&self.env, &self.dir, paths)
        });
        found.to_vec()
    }

    /// A number for a job that begins.
    pub(crate) fn next_job(&self) -> u64 {
        self.last_job.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Deletes archived logs that are too old, now and then.
    pub(crate) fn purge_archive_if_due(&self) {
        self.tell_failed(&self.obsolete_files.purge_archive_if_due());
    }

    fn tell_failed(&self, purged: &Purged) {
        for (path, error) in &purged.failed {
            self.info_log.warn(format_args!(
                "{} could not be deleted: {error}",
                path.display()
            ));
        }
    }

    /// Deletes what nobody reads any more, and says so.
    pub(crate) fn delete_obsolete_files(&self) {
        self.delete_obsolete_files_keeping(0);
    }

    /// The same, but keeps up to `spare` bytes of tables to be written over.
    pub(crate) fn delete_obsolete_files_keeping(&self, spare: u64) {
        if !self.obsolete_files.is_any() {
            return;
        }
        self.retain_blobs();
        let purged = self
            .obsolete_files
            .purge(spare, |number| self.tables.forget(number));
        for (number, _) in &purged.tables {
            self.tables.forget(*number);
        }
        self.tell_deleted(&purged);
    }

    /// Closes blob files that no version lists. Holds the versions no longer than that: another
    /// thread may delete what they list.
    fn retain_blobs(&self) {
        if self.blobs.is_empty() {
            return;
        }
        let families = self.families.all();
        let versions: Vec<_> = families
            .iter()
            .map(|f| Arc::clone(&f.view_guard().version))
            .collect();
        self.blobs
            .retain(|n| versions.iter().any(|v| v.blob_files().contains_key(&n)));
    }

    /// Creates the file of a table of about `bytes`, over one that nobody reads any more where
    /// there is one.
    pub(crate) fn create_table(
        &self,
        path: &Path,
        bytes: u64,
        options: WriteOptions,
    ) -> Result<Box<dyn WritableFile>> {
        let over = if self.options.load().recycle_table_files {
            self.obsolete_files.create_over(path, bytes, options)
        } else {
            None
        };
        let Some((made, gone)) = over else {
            return self.env.fs.create(path, options);
        };
        self.tell_deleted(&gone);
        made
    }

    fn tell_deleted(&self, purged: &Purged) {
        for (number, _) in &purged.tables {
            self.table_deleted(*number);
        }
        self.tell_failed(purged);
        if purged.tables.is_empty() {
            return;
        }
        for listener in &self.options.load().listeners {
            for (number, path) in &purged.tables {
                listener.on_table_file_deleted(&TableFileDeletion {
                    job: 0,
                    file: path.clone(),
                    file_no: *number,
                    error: purged.error_of(path),
                });
            }
        }
    }
}
