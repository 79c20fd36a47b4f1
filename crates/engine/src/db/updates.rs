//! The updates of a database from a sequence number on, read back from its logs.
//!
//! Replicas and caches follow a database with [`Db::updates_since`]: the batches that were written,
//! whole and in order, each with its sequence. They come from the logs, also from those in the
//! archive that `WAL_ttl_seconds` and `WAL_size_limit_MB` keep; what was written past the log is
//! not among them and shows as a gap.

use super::Db;
use crate::core::{Core, Trees};
use crate::observe::Ticker;
use crate::recover::replay;
use crate::store::continuity::LinkRecord;
use esker_env::{Env, RandomAccessFile, ReadOptions as FileReadOptions};
use esker_files::log::{LogReader, LogReaderOptions, ReadOutcome};
use esker_format::FileNo;
use esker_format::batch::{BatchReader, Record, WriteBatch};
use esker_format::file_name::{ARCHIVE_DIR, log_name};
use esker_status::{Error, ErrorKind, Result, Subcode};
use esker_sync::Arc;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalKind {
    /// In the archive: all of its data is in tables.
    Archived,
    /// Among those that recovery would read.
    Alive,
}

/// A log of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalFile {
    /// The number in its name.
    pub number: u64,
    /// Where it is.
    pub kind: WalKind,
    /// The sequence number of its first batch; 0 for [`Db::current_wal_file`], which does not look.
    pub start_sequence: u64,
    /// Its bytes.
    pub bytes: u64,
}

impl WalFile {
    /// Its path below the directory of the logs, with a slash in front, as RocksDB gives it.
    pub fn path_name(&self) -> String {
        let name = log_name(FileNo(self.number));
        match self.kind {
            WalKind::Archived => format!("/{ARCHIVE_DIR}/{name}"),
            WalKind::Alive => format!("/{name}"),
        }
    }
}

/// Deletes and moves no file while it lives.
struct WalFilesGuard<'a>(&'a Trees);

impl<'a> WalFilesGuard<'a> {
    fn new(trees: &'a Trees) -> Self {
        trees.obsolete_files.disable();
        WalFilesGuard(trees)
    }
}

impl Drop for WalFilesGuard<'_> {
    fn drop(&mut self) {
        if self.0.obsolete_files.enable(false) {
            self.0.delete_obsolete_files();
        }
    }
}

impl Db {
    /// The logs that hold anything, oldest first: those in the archive, then those that recovery
    /// would read.
    pub fn sorted_wal_files(&self) -> Result<Vec<WalFile>> {
        let core = self.core();
        let _keep = WalFilesGuard::new(&core.trees);
        list(&core.services.env, &wal_dir(core))
    }

    /// The log that takes writes now.
    pub fn current_wal_file(&self) -> Result<WalFile> {
        let core = self.core();
        let (number, bytes) = {
            let log = core.writes.lock();
            (log.number(), log.written())
        };
        if number == FileNo(0) {
            return Err(Error::new(ErrorKind::Io, "log file not available")
                .with_subcode(Subcode::PathNotFound));
        }
        Ok(WalFile {
            number: number.0,
            kind: WalKind::Alive,
            start_sequence: 0,
            bytes,
        })
    }

    /// The batches that were written from `sequence` on, as far as the logs still hold them.
    ///
    /// `NotFound` when that sequence was not written yet. When it is not in the logs any more, what
    /// comes first is the oldest batch that is: its [`TransactionLog::sequence`] tells. Checksums
    /// are always checked.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut log = db.updates_since(2)?;
    /// assert!(log.valid());
    /// assert_eq!((log.sequence(), log.batch().count()), (2, 1));
    /// log.next();
    /// assert!(!log.valid());
    /// log.status()?;
    ///
    /// db.put("c", "3")?;
    /// log.next();
    /// assert_eq!(log.sequence(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn updates_since(&self, sequence: u64) -> Result<TransactionLog> {
        let core = self.core();
        if let Some(s) = &core.services.statistics {
            s.add(Ticker::GetUpdatesSinceCalls, 1);
        }
        if sequence > core.reads.sequence.published().0 {
            return Err(Error::not_found(
                "Requested sequence not yet written in the db",
            ));
        }
        let mut files = self.sorted_wal_files()?;
        // The last log that begins at or before the sequence, and all that come after it.
        let after = files.partition_point(|f| f.start_sequence <= sequence);
        files.drain(..after.saturating_sub(1));
        let mut log = TransactionLog {
            core: Arc::clone(core),
            files,
            at: 0,
            reader: None,
            is_at_end: false,
            wanted: sequence,
            has_started: false,
            is_valid: false,
            status: Ok(()),
            sequence: 0,
            last: 0,
            batch: WriteBatch::new(),
        };
        log.seek(0, false);
        log.status()?;
        Ok(log)
    }
}

/// The directory of the logs.
fn wal_dir(core: &Core) -> PathBuf {
    core.writes.lock().dir().to_path_buf()
}

/// The logs that hold anything, oldest first.
fn list(env: &Env, dir: &Path) -> Result<Vec<WalFile>> {
    // The directory first, then the archive: a log that is moved in between is seen twice and not
    // missed.
    let alive = existing(env, dir)?;
    let archived = existing(env, &dir.join(ARCHIVE_DIR))?;
    let mut places: BTreeMap<FileNo, WalKind> =
        alive.into_iter().map(|n| (n, WalKind::Alive)).collect();
    places.extend(archived.into_iter().map(|n| (n, WalKind::Archived)));
    let mut out = Vec::new();
    // The newest first, since logs are made ahead: one that was empty before a later one had
    // anything would be left out.
    for (number, kind) in places.into_iter().rev() {
        match describe(env, dir, number, kind) {
            Ok(file) => out.extend(file),
            // The archive was purged meanwhile.
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e),
        }
    }
    out.reverse();
    Ok(out)
}

fn existing(env: &Env, dir: &Path) -> Result<Vec<FileNo>> {
    if env.fs.exists(dir)? {
        replay::list(env, dir)
    } else {
        Ok(Vec::new())
    }
}

/// Describes a log; `None` when no batch is in it.
fn describe(env: &Env, dir: &Path, number: FileNo, kind: WalKind) -> Result<Option<WalFile>> {
    let (file, kind) = open(env, dir, number, kind)?;
    let path = file.path().to_path_buf();
    let bytes = file.len();
    let mut reader = LogReader::new(file, LogReaderOptions::new(number));
    loop {
        match reader.next()? {
            ReadOutcome::Record { bytes: rep, offset } => {
                let first = BatchReader::parse(rep)
                    .map_err(|e| e.with_file(&path).with_offset(offset))?
                    .seq();
                return Ok(Some(WalFile {
                    number: number.0,
                    kind,
                    start_sequence: first.0,
                    bytes,
                }));
            }
            ReadOutcome::TimestampSizes(_) | ReadOutcome::Predecessor(_) => {}
            ReadOutcome::End | ReadOutcome::OldRecord { .. } | ReadOutcome::TornTail(_) => {
                return Ok(None);
            }
            ReadOutcome::Damaged(damage) => return Err(damage.to_error(&path)),
        }
    }
}

/// Opens a log where it is said to be, or in the archive when it was moved there meanwhile.
fn open(
    env: &Env,
    dir: &Path,
    number: FileNo,
    kind: WalKind,
) -> Result<(Arc<dyn RandomAccessFile>, WalKind)> {
    let options = FileReadOptions::default();
    let name = log_name(number);
    if kind == WalKind::Alive {
        match env.fs.open_read(&dir.join(&name), options) {
            Err(e) if e.is_not_found() => {}
            other => return Ok((other?, WalKind::Alive)),
        }
    }
    let file = env
        .fs
        .open_read(&dir.join(ARCHIVE_DIR).join(&name), options)?;
    Ok((file, WalKind::Archived))
}

/// Walks the batches of a database's logs in the order of their sequence numbers.
///
/// Not valid at the end; [`TransactionLog::status`] tells the end from a failure, and
/// [`TransactionLog::next`] goes on when more was written. `TryAgain` asks for a new walk: the logs
/// that this one knows end, and there are newer ones.
pub struct TransactionLog {
    core: Arc<Core>,
    files: Vec<WalFile>,
    /// Which of them is being read.
    at: usize,
    reader: Option<LogReader>,
    /// The reader may have met the end of its file: what comes next is read anew.
    is_at_end: bool,
    /// The sequence to begin with.
    wanted: u64,
    has_started: bool,
    is_valid: bool,
    status: Result<()>,
    sequence: u64,
    /// The last sequence of the batch.
    last: u64,
    batch: WriteBatch,
}

impl std::fmt::Debug for TransactionLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionLog")
            .field("valid", &self.valid())
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

impl TransactionLog {
    /// Returns whether it stands on a batch.
    pub fn valid(&self) -> bool {
        self.has_started && self.is_valid
    }

    /// `Ok`, or why it is not valid.
    pub fn status(&self) -> Result<()> {
        self.status.clone()
    }

    /// The sequence number of the batch's first record; only while valid.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The batch, all of it, though the sequence that was asked for may lie inside; only while
    /// valid.
    pub fn batch(&self) -> &WriteBatch {
        &self.batch
    }

    /// The batch, to keep. A second call gives an empty one.
    pub fn take_batch(&mut self) -> WriteBatch {
        std::mem::take(&mut self.batch)
    }

    /// To the next batch, if there is one by now.
    pub fn next(&mut self) {
        if self.status.is_ok() {
            self.advance(false);
        }
    }

    /// To the batch with the wanted sequence, from file `from` on; with `is_strict` it must begin
    /// there.
    fn seek(&mut self, from: usize, is_strict: bool) {
        self.has_started = false;
        self.is_valid = false;
        if from >= self.files.len() {
            return;
        }
        if let Err(e) = self.open(from) {
            self.status = Err(e);
            return;
        }
        let gap = || Error::new(ErrorKind::NotFound, "Gap in sequence numbers");
        while let Some(batch) = self.read() {
            self.set(batch);
            if self.last < self.wanted {
                self.is_valid = false;
                continue;
            }
            if is_strict && self.sequence != self.wanted {
                self.is_valid = false;
                self.status = Err(gap());
                return;
            }
            self.has_started = true;
            return;
        }
        if self.status.is_err() {
            return;
        }
        if is_strict {
            self.status = Err(gap());
        } else if self.files.len() > 1 {
            // The sequence is not in the log where it should be: what comes next is taken.
            self.advance(true);
        }
    }

    fn advance(&mut self, is_seeking: bool) {
        self.is_valid = false;
        if !is_seeking && !self.has_started {
            // Each time until the first batch is found; that one is the next.
            self.seek(0, false);
            return;
        }
        loop {
            if let Some(batch) = self.read() {
                if self.has_started && batch.seq().0 != self.last + 1 {
                    self.seek_again();
                } else {
                    self.set(batch);
                    self.has_started = true;
                }
                return;
            }
            if self.status.is_err() {
                return;
            }
            if self.at + 1 < self.files.len() {
                if let Err(e) = self.open(self.at + 1) {
                    self.status = Err(e);
                    return;
                }
                continue;
            }
            if self.last < self.published() {
                self.status = Err(Error::new(
                    ErrorKind::TryAgain,
                    "Create a new iterator to fetch the new tail.",
                ));
            }
            return;
        }
    }

    /// The batch that was read does not follow on the one before: looks for the one that does.
    fn seek_again(&mut self) {
        self.wanted = self.last + 1;
        let earlier = self.wanted < self.files[self.at].start_sequence;
        let from = self.at - usize::from(earlier && self.at > 0);
        self.seek(from, true);
    }

    fn set(&mut self, batch: WriteBatch) {
        self.sequence = batch.seq().0;
        self.last = end_of(&batch);
        self.batch = batch;
        self.is_valid = true;
    }

    fn published(&self) -> u64 {
        self.core.reads.sequence.published().0
    }

    fn open(&mut self, at: usize) -> Result<()> {
        self.at = at;
        self.reader = None;
        self.is_at_end = false;
        let number = FileNo(self.files[at].number);
        let dir = wal_dir(&self.core);
        let (file, _) = open(&self.core.services.env, &dir, number, self.files[at].kind)?;
        self.reader = Some(LogReader::new(file, LogReaderOptions::new(number)));
        Ok(())
    }

    /// The next batch of the file, if readers may see it; what is damaged goes into the status.
    fn read(&mut self) -> Option<WriteBatch> {
        let published = self.published();
        if self.has_started && self.last >= published {
            self.is_at_end = true;
            return None;
        }
        let reader = self.reader.as_mut()?;
        if std::mem::take(&mut self.is_at_end) {
            let position = reader.position();
            reader.resume(position);
        }
        let before = reader.position();
        let mut batch = next_batch(reader);
        if batch.is_err() {
            // What was read of the log before may have been in the making then.
            reader.resume(before);
            batch = next_batch(reader);
        }
        match batch {
            Ok(Some(batch)) if end_of(&batch) <= published => Some(batch),
            // What is not published yet is in the making.
            Ok(unpublished) => {
                if unpublished.is_some() {
                    reader.resume(before);
                }
                self.is_at_end = true;
                None
            }
            Err(e) => {
                self.status = Err(e);
                None
            }
        }
    }
}

/// The last sequence of a batch.
fn end_of(batch: &WriteBatch) -> u64 {
    (batch.seq().0 + u64::from(batch.count())).saturating_sub(1)
}

/// Returns whether all that the batch changes is only prepared: it has no sequence numbers yet, and
/// its commit will show it.
fn is_only_prepared(batch: &WriteBatch) -> bool {
    let mut is_inside = false;
    batch.has_begin_prepare()
        && batch.records().flatten().all(|record| {
            match record {
                Record::BeginPrepare(_) => is_inside = true,
                Record::EndPrepare { .. } => is_inside = false,
                _ => {}
            }
            is_inside || !record.is_counted()
        })
}

fn next_batch(reader: &mut LogReader) -> Result<Option<WriteBatch>> {
    let path = reader.file().path().to_path_buf();
    loop {
        match reader.next()? {
            ReadOutcome::Record { bytes, offset } => {
                let batch = WriteBatch::from_bytes(bytes.to_vec())
                    .map_err(|e| e.with_file(&path).with_offset(offset))?;
                if !is_only_prepared(&batch) && LinkRecord::of(&batch.reader()).is_none() {
                    return Ok(Some(batch));
                }
            }
            ReadOutcome::TimestampSizes(_) | ReadOutcome::Predecessor(_) => {}
            ReadOutcome::End | ReadOutcome::OldRecord { .. } | ReadOutcome::TornTail(_) => {
                return Ok(None);
            }
            ReadOutcome::Damaged(damage) => return Err(damage.to_error(&path)),
        }
    }
}
