//! The logs that the next switches of memtables take: made beside the writers, by the flush that
//! the last switch was for.
//!
//! A log must have a name that survives power loss before it takes appends: then the thread that
//! names it may rely on it. Making the file, its blocks and its name sure takes milliseconds, tens
//! of them on a busy disk, in which a writer that made it would hold the log lock. A flush syncs
//! the directory for its table anyway, so the name of the next log costs it nothing.
//!
//! There are [`SPARES`], since a memtable may be full before the flush of the last one is safe on
//! the disk.
//!
//! A log that was never used is an empty file: closing removes it, and recovery takes it for what
//! it is. Only memtables that filled up ask for one, so a caller that flushes now and then has no
//! more files than before.
//!
//! Rejected: *syncing the name after the switch, with the flush.* Until then nothing may name the
//! log, so for a while its deletion would not be detected.

use crate::tree::ObsoleteFiles;
use esker_env::{Env, WritableFile, WriteOptions};
use esker_format::{FileNo, file_name};
use esker_status::Result;
use esker_sync::Arc;
use esker_sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::path::{Path, PathBuf};

/// How many there are, those that are being made included.
const SPARES: usize = 2;

/// Counts the spare logs of a database.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpareCount(Arc<AtomicUsize>);

impl SpareCount {
    /// The right to one more; none when there are enough.
    pub(crate) fn one_more(&self) -> Option<SpareRight> {
        let more = |n: usize| (n < SPARES).then_some(n + 1);
        let is_one = self.0.fetch_update(Relaxed, Relaxed, more).is_ok();
        is_one.then(|| SpareRight(Arc::clone(&self.0)))
    }
}

/// The right to be one of [`SPARES`].
#[derive(Debug)]
pub(crate) struct SpareRight(Arc<AtomicUsize>);

impl Drop for SpareRight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// An empty log. Unless it is used, its file goes with it.
#[derive(Debug)]
pub(crate) struct SpareLog {
    _right: SpareRight,
    number: FileNo,
    file: Option<Box<dyn WritableFile>>,
    path: PathBuf,
    env: Env,
}

impl SpareLog {
    /// Makes the file, of an obsolete log where there is one. Its name is not synced yet.
    pub(crate) fn create(
        right: SpareRight,
        env: &Env,
        obsolete_files: &ObsoleteFiles,
        dir: &Path,
        number: FileNo,
        options: WriteOptions,
    ) -> Result<Self> {
        let path = dir.join(file_name::log_name(number));
        let file = obsolete_files.create_log(&path, options)?;
        Ok(SpareLog {
            _right: right,
            number,
            file: Some(file),
            path,
            env: env.clone(),
        })
    }

    pub(crate) fn number(&self) -> FileNo {
        self.number
    }

    /// The file, which stays now.
    pub(crate) fn into_file(mut self) -> Option<Box<dyn WritableFile>> {
        self.file.take()
    }
}

impl Drop for SpareLog {
    fn drop(&mut self) {
        if let Some(mut file) = self.file.take() {
            // Recovery removes what stays.
            let _closed = file.close();
            let _removed = self.env.fs.remove_file(&self.path);
        }
    }
}
