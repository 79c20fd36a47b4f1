//! A log that is being replayed: opened, read a part at a time, gone on with later.

use esker_env::{Env, RandomAccessFile, ReadOptions as FileReadOptions};
use esker_files::log::{LogReader, LogReaderOptions, ReadOutcome};
use esker_format::file_name::log_name;
use esker_format::{FamilyId, FileNo};
use esker_status::Result;
use esker_sync::Arc;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A log that is being replayed.
pub(crate) struct OpenLog {
    pub(super) number: FileNo,
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn RandomAccessFile>,
    pub(super) reader: LogReader,
    /// Where the last batch that was inserted ends.
    pub(super) done: u64,
    /// Bytes of the timestamp that keys have in this log, for families where they have one.
    pub(super) timestamp_sizes: BTreeMap<FamilyId, usize>,
}

impl std::fmt::Debug for OpenLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenLog")
            .field("number", &self.number)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl OpenLog {
    /// Opens the log `number` in `dir`.
    pub(crate) fn open(env: &Env, dir: &Path, number: FileNo) -> Result<OpenLog> {
        let path = dir.join(log_name(number));
        let file = env.fs.open_read(&path, FileReadOptions::default())?;
        Ok(OpenLog {
            number,
            path,
            reader: LogReader::new(Arc::clone(&file), LogReaderOptions::new(number)),
            file,
            done: 0,
            timestamp_sizes: BTreeMap::new(),
        })
    }

    /// Where it ends, and whether that is inside a record; `None` when a batch is in it.
    pub(crate) fn end_without_batches(&self) -> Result<Option<(u64, bool)>> {
        let mut reader = LogReader::new(Arc::clone(&self.file), LogReaderOptions::new(self.number));
        loop {
            match reader.next()? {
                ReadOutcome::TimestampSizes(_) | ReadOutcome::Predecessor(_) => {}
                // The replay of the log reports damage.
                ReadOutcome::Record { .. } | ReadOutcome::Damaged(_) => return Ok(None),
                ReadOutcome::End | ReadOutcome::OldRecord { .. } => {
                    return Ok(Some((reader.valid_end(), false)));
                }
                ReadOutcome::TornTail(_) => return Ok(Some((reader.valid_end(), true))),
            }
        }
    }
}
