//! All entries of a family, every version of every key, in internal order: those of its tables and
//! those that only its logs have.
//!
//! Reads the files as they are; the database is not opened. One thread uses it.

use crate::directory::{Directory, FileAt};
use crate::failure::Outcome;
use crate::fold::{Family, Fold};
use crate::manifest::by_level;
use crate::sst::reader;
use esker_env::{FileSystem, ReadOptions};
use esker_files::log::{LogReader, LogReaderOptions, RecoveryMode, ReplayStep};
use esker_files::table::{ReadContext, TableCursor};
use esker_format::batch::{BatchReader, Record};
use esker_format::edit::NewFile;
use esker_format::file_name::{FileKind, table_name};
use esker_format::key::{append_internal, user_key};
use esker_format::{Cursor, FileNo, InternalKey, KeyOrder, Level, RawTombstone, Seq, ValueType};
use esker_status::{Error, Result};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Bytes that a cursor reads ahead.
const READAHEAD: usize = 1 << 20;

/// Entries and range deletions of a family.
pub(crate) struct InternalEntries {
    order: KeyOrder,
    runs: Vec<Run>,
    heads: BinaryHeap<Head>,
    /// The range deletions, in the order in which they were met.
    pub(crate) tombstones: Vec<RawTombstone>,
}

/// Entries in order.
enum Run {
    Logged(VecDeque<(Vec<u8>, Vec<u8>)>),
    /// Disjoint tables, the first of which is open.
    Tables(VecDeque<FileAt>, VecDeque<Seq>, Option<Box<TableCursor>>),
}

/// The entry at which a run stands.
struct Head {
    order: KeyOrder,
    key: Vec<u8>,
    value: Vec<u8>,
    run: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        // The heap has its largest on top.
        let by_key = self.order.compare_internal(&other.key, &self.key);
        by_key.then(other.run.cmp(&self.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl InternalEntries {
    /// The entries of `family` from the user key `from` on.
    pub(crate) fn new(
        dir: &Directory,
        fold: &Fold,
        family: &Family,
        from: Option<&[u8]>,
    ) -> Result<InternalEntries> {
        let order = family.order().ok_or_else(|| {
            Error::not_supported(format!(
                "comparator {:?} is not built in",
                family.comparator
            ))
        })?;
        let mut all = InternalEntries {
            order,
            runs: Vec::new(),
            heads: BinaryHeap::new(),
            tombstones: Vec::new(),
        };
        all.add_logs(dir, fold, family)?;
        all.add_tables(dir, family)?;
        let from = from.map(|from| InternalKey::new(from, Seq::MAX, ValueType::SEEK));
        for run in 0..all.runs.len() {
            all.start(run, from.as_ref())?;
        }
        Ok(all)
    }

    /// The order of its keys.
    pub(crate) fn order(&self) -> &KeyOrder {
        &self.order
    }

    fn add_tables(&mut self, dir: &Directory, family: &Family) -> Result<()> {
        let mut last: Option<Level> = None;
        for (level, file) in by_level(family) {
            let at = located(dir, file)?;
            let table = reader(&at.path, at.number, Some(file.largest_seq))?;
            self.tombstones
                .extend(table.range_tombstones().iter().cloned());
            let is_same_run = level != Level::L0 && last == Some(level);
            match self.runs.last_mut().filter(|_| is_same_run) {
                Some(Run::Tables(files, seqs, _)) => {
                    files.push_back(at);
                    seqs.push_back(file.largest_seq);
                }
                _ => self.runs.push(Run::Tables(
                    VecDeque::from([at]),
                    VecDeque::from([file.largest_seq]),
                    None,
                )),
            }
            last = Some(level);
        }
        Ok(())
    }

    fn add_logs(&mut self, dir: &Directory, fold: &Fold, family: &Family) -> Result<()> {
        let needed = family.log_number.unwrap_or_default().max(fold.min_log());
        let mut entries = Vec::new();
        for log in dir.of(FileKind::Wal).filter(|f| f.number >= needed) {
            let file = dir.fs.open_read(&log.path, ReadOptions::default())?;
            let mut reader = LogReader::new(file, LogReaderOptions::new(log.number));
            loop {
                match reader.replay(RecoveryMode::PointInTimeRecovery)? {
                    ReplayStep::Record { bytes, .. } => {
                        self.take_batch(bytes, family, &mut entries)
                            .map_err(|e| e.with_file(&log.path))?;
                    }
                    ReplayStep::End(_) | ReplayStep::RecycledTail(_) => break,
                    ReplayStep::Stop(damage) => return Err(damage.to_error(&log.path)),
                    _ => {}
                }
            }
        }
        entries.sort_by(|a, b| self.order.compare_internal(&a.0, &b.0));
        self.runs.push(Run::Logged(entries.into()));
        Ok(())
    }

    fn take_batch(
        &mut self,
        bytes: &[u8],
        family: &Family,
        entries: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<()> {
        let batch = BatchReader::parse(bytes)?;
        let mut seq = batch.seq();
        // What is prepared is no data before it is committed.
        let mut is_prepared = false;
        for record in batch.records() {
            let record = record?;
            match record {
                Record::BeginPrepare(_) => is_prepared = true,
                Record::EndPrepare { .. } => is_prepared = false,
                _ => {}
            }
            if record.family() == Some(family.id) && !is_prepared {
                if let Record::DeleteRange { begin, end, .. } = record {
                    self.tombstones.push(RawTombstone {
                        start: begin.to_vec(),
                        end: end.to_vec(),
                        seq,
                    });
                } else if let Some((user, kind, value)) = entry_of(&record) {
                    let mut key = Vec::new();
                    append_internal(&mut key, user, seq, kind);
                    entries.push((key, value.to_vec()));
                }
            }
            if record.is_counted() {
                seq = Seq(seq.0 + 1);
            }
        }
        Ok(())
    }

    /// Moves a run to `from`, or to its begin.
    fn start(&mut self, run: usize, from: Option<&InternalKey>) -> Result<()> {
        let order = self.order.clone();
        if let (Run::Logged(entries), Some(from)) = (&mut self.runs[run], from) {
            let is_before = |key: &[u8]| order.compare_internal(key, from.as_bytes()).is_lt();
            let at = entries.partition_point(|(key, _)| is_before(key));
            entries.drain(..at);
        }
        self.refill(run, from)
    }

    /// Puts the next entry of a run on the heap.
    fn refill(&mut self, at: usize, from: Option<&InternalKey>) -> Result<()> {
        let next = match &mut self.runs[at] {
            Run::Logged(entries) => entries.pop_front(),
            Run::Tables(files, seqs, cursor) => loop {
                if let Some(open) = cursor {
                    if open.valid() {
                        let entry = (open.key().to_vec(), open.value().to_vec());
                        open.next();
                        break Some(entry);
                    }
                    open.status()?;
                    *cursor = None;
                }
                let (Some(file), Some(seq)) = (files.pop_front(), seqs.pop_front()) else {
                    break None;
                };
                let table = reader(&file.path, file.number, Some(seq))?;
                let context = ReadContext {
                    readahead_size: READAHEAD,
                    ..ReadContext::compaction(READAHEAD)
                };
                let mut opened = Box::new(table.cursor(&context));
                match from {
                    Some(from) => opened.seek(from.as_bytes()),
                    None => opened.seek_to_first(),
                }
                *cursor = Some(opened);
            },
        };
        if let Some((key, value)) = next {
            self.heads.push(Head {
                order: self.order.clone(),
                key,
                value,
                run: at,
            });
        }
        Ok(())
    }

    /// Gives `visit` each entry, up to the user key `to`, until it returns false.
    pub(crate) fn walk(
        &mut self,
        to: Option<&[u8]>,
        mut visit: impl FnMut(&[u8], &[u8]) -> Outcome<bool>,
    ) -> Outcome {
        while let Some(head) = self.heads.pop() {
            if to.is_some_and(|to| self.order.compare(user_key(&head.key), to).is_ge()) {
                break;
            }
            if !visit(&head.key, &head.value)? {
                break;
            }
            self.refill(head.run, None)?;
        }
        Ok(())
    }
}

/// User key, kind and value of a record that is an entry.
fn entry_of<'r>(record: &Record<'r>) -> Option<(&'r [u8], ValueType, &'r [u8])> {
    Some(match *record {
        Record::Put { key, value, .. } => (key, ValueType::Value, value),
        Record::Delete { key, .. } => (key, ValueType::Deletion, &[]),
        Record::SingleDelete { key, .. } => (key, ValueType::SingleDeletion, &[]),
        Record::Merge { key, operand, .. } => (key, ValueType::Merge, operand),
        Record::BlobIndex { key, index, .. } => (key, ValueType::BlobIndex, index),
        Record::PutEntity { key, entity, .. } => (key, ValueType::WideColumnEntity, entity),
        Record::TimedPut { key, packed, .. } => (key, ValueType::ValuePreferredSeqno, packed),
        _ => return None,
    })
}

/// The file of a table that the MANIFEST names.
fn located(dir: &Directory, file: &NewFile) -> Result<FileAt> {
    let number: FileNo = file.number;
    let missing = || {
        let path = dir.path.join(table_name(number));
        Error::not_found("the table is missing").with_file(path)
    };
    dir.find(FileKind::Table, number)
        .cloned()
        .ok_or_else(missing)
}
