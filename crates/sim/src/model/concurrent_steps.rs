//! Operations of a workload between its steps, where the settings want them: files are ingested,
//! transactions are prepared and end, several threads write at once, and backups are made.
//!
//! An ingestion survives power loss when it returns, and with it all that was acknowledged before.
//! Transactions name the default family alone. Threads write at the same time; the sequence numbers
//! of their batches tell the order. All of it follows a generator of its own, so that the steps
//! stay what they were.

use super::area;
use super::drive::{DEFAULT, Event, Session};
use super::settings::EXTERNAL;
use super::state::{Batch, Change, Record};
use crate::disk::SimFs;
use esker::{Db, IngestOptions, SstFileWriter, WriteBatch, WriteOptions};
use esker_env::FileSystem;
use esker_status::{Error, Result};
use esker_sync::{Arc, Mutex, Rank};
use std::path::Path;

/// A write of a thread: its place in the model's list, and its result.
struct ThreadWrite {
    change: Change,
    seq: u64,
    begun: usize,
    ended: usize,
    sync: bool,
}

impl Session {
    /// Does something, or mostly nothing.
    pub(super) fn step_beside(&mut self) -> Result<()> {
        let settings = &self.history.settings;
        let (ingests, two_phase, threads, backups) = (
            settings.ingests,
            settings.two_phase,
            settings.threads,
            settings.backups,
        );
        match self.beside.below(area::rarely(settings.area)) {
            0 if ingests => self.ingest(),
            1..7 if two_phase => self.transact(),
            7..9 if threads => self.burst(),
            9..12 if backups => self.back_up(),
            _ => Ok(()),
        }
    }

    fn record_beside(&mut self) -> Record {
        let (key, n) = (self.key_beside(), self.used);
        self.used += 1;
        match self.beside.below(6) {
            0 => Record::Delete(key),
            1 => Record::Merge(key, format!("m{n}").into_bytes()),
            _ => {
                let len = self.beside.index(60);
                let mut value = format!("b{n}:").into_bytes();
                value.resize(value.len() + len, b'.');
                Record::Put(key, value)
            }
        }
    }

    /// Writes a table file elsewhere and takes it in.
    pub(super) fn ingest(&mut self) -> Result<()> {
        let family = self.some_family();
        let name: Arc<str> = Arc::from(family.name());
        self.used += 1;
        let path = Path::new(EXTERNAL).join(format!("{}.sst", self.used));
        let count = 1 + self.beside.index(12);
        let mut entries = std::collections::BTreeMap::new();
        for i in 0..count {
            let value = format!("i{}.{i}", self.used).into_bytes();
            entries.insert(self.key_beside(), value);
        }
        self.disk.create_dir_all(Path::new(EXTERNAL))?;
        let options = self.history.settings.options(&self.world, &self.disk)?;
        let mut writer = SstFileWriter::new(&options)?;
        writer.open(&path)?;
        let mut records: Batch = Vec::new();
        if let Some((begin, end)) = self.range_of_ingestion() {
            writer.delete_range(&begin, &end)?;
            // Entries of the file are not older than its deletions.
            records.push((Arc::clone(&name), Record::DeleteRange(begin, end)));
        }
        for (key, value) in &entries {
            writer.put(key, value)?;
        }
        writer.finish()?;
        let mut how = IngestOptions::default();
        how.move_files = self.beside.one_in(3);
        let puts = entries.into_iter();
        records.extend(puts.map(|(k, v)| (Arc::clone(&name), Record::Put(k, v))));
        let change = Change::Write(records);
        let begun = self.disk.position();
        let done = self.db()?.ingest(&family, &[&path], &how);
        self.note(change, begun, done, true)
    }

    /// The range that an ingested file deletes, in a small tree.
    fn range_of_ingestion(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        if !self.history.settings.is_small || !self.upkeep.one_in(3) {
            return None;
        }
        let first = self.upkeep.below(150);
        let last = first + 1 + self.upkeep.below(20);
        let key = |n: u64| format!("{n:04}").into_bytes();
        Some((key(first), key(last)))
    }

    /// One to `most` changes of the default family; none for 0.
    fn some_records(&mut self, most: u64) -> Batch {
        let count = if most == 0 {
            0
        } else {
            1 + self.beside.below(most)
        };
        let records = (0..count).map(|_| (Arc::from(DEFAULT), self.record_beside()));
        records.collect()
    }

    /// Prepares a transaction, or ends one.
    fn transact(&mut self) -> Result<()> {
        let names: Vec<Arc<str>> = self.state().prepared.keys().cloned().collect();
        let sync = self.beside.one_in(2);
        let options = self.write_options(sync);
        if names.len() < 3 && (names.is_empty() || self.beside.one_in(2)) {
            self.used += 1;
            let name: Arc<str> = Arc::from(format!("t{}", self.used));
            let batch = self.some_records(3);
            let encoded = self.encode(&batch)?;
            let begun = self.disk.position();
            let done = self
                .db()?
                .prepare_transaction(name.as_bytes(), &encoded, &options);
            return self.note(Change::Prepare(name, batch), begun, done, sync);
        }
        let name = Arc::clone(self.beside.pick(&names));
        let undo = self.beside.one_in(4);
        let encoded = self.encode(&self.state().prepared[&name].clone())?;
        // Every other commit comes with writes that were not prepared.
        let most = if self.beside.one_in(2) { 3 } else { 0 };
        let at_commit = self.some_records(most);
        let extra = self.encode(&at_commit)?;
        let begun = self.disk.position();
        let db = self.db()?;
        let (change, done) = if undo {
            let done = db.undo_transaction(name.as_bytes(), &options);
            (Change::Undo(name), done)
        } else if at_commit.is_empty() {
            let done = db.commit_transaction(name.as_bytes(), &encoded, &options);
            (Change::Commit(name, at_commit), done)
        } else {
            let done = db.commit_transaction_with(name.as_bytes(), &extra, &encoded, &options);
            (Change::Commit(name, at_commit), done)
        };
        self.note(change, begun, done, sync)
    }

    /// Lets a few threads write at the same time, and one of them flush.
    fn burst(&mut self) -> Result<()> {
        let names: Vec<Arc<str>> = self.handles.keys().cloned().collect();
        let sync_one_in = 1 + self.beside.below(6);
        let wrote = Arc::new(Mutex::new(Rank::LEAF, Vec::new()));
        let db = self.db()?.clone();
        let mut threads = Vec::new();
        for _ in 0..2 + self.beside.below(2) {
            let mut work = Vec::new();
            for _ in 0..1 + self.beside.below(4) {
                // Large ones of a group are inserted by several threads.
                let records = if self.beside.one_in(10) {
                    40
                } else {
                    1 + self.beside.below(4)
                };
                let batch: Batch = (0..records)
                    .map(|_| {
                        let family = Arc::clone(self.beside.pick(&names));
                        (family, self.record_beside())
                    })
                    .collect();
                let options = self.write_options(self.beside.clone().one_in(sync_one_in));
                self.beside.next_u64();
                work.push((self.encode(&batch)?, batch, options));
            }
            let (db, disk, wrote) = (db.clone(), self.disk.clone(), Arc::clone(&wrote));
            let body = Box::new(move || write_all(&db, &disk, work, &wrote));
            threads.push(db_spawn(self.db()?, body)?);
        }
        let flushed = if self.beside.one_in(2) {
            db.flush()
        } else {
            Ok(())
        };
        threads.into_iter().for_each(|t| t.join());
        drop(db);
        let done = std::mem::take(&mut *wrote.lock());
        let wrote: Vec<ThreadWrite> = done.into_iter().collect::<Result<_>>()?;
        self.note_burst(wrote);
        flushed
    }

    /// Takes note of what threads wrote, in the order in which it took effect.
    fn note_burst(&mut self, mut wrote: Vec<ThreadWrite>) {
        wrote.sort_by_key(|w| w.seq);
        let manual = self.history.settings.manual_wal_flush;
        for w in wrote {
            let next = self.state().after(&w.change);
            self.history.events.push(Event {
                change: w.change,
                begun: w.begun,
                acknowledged: true,
            });
            self.history.states.push(next);
            let promise = (w.ended, self.history.events.len());
            if w.sync || !manual {
                self.history.kept.push(promise);
            }
            if w.sync {
                self.history.sure.push(promise);
            }
        }
    }
}

fn db_spawn(db: &Db, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn esker_env::JoinHandle>> {
    db.env().executor.spawn("writer", body)
}

fn write_all(
    db: &Db,
    disk: &SimFs,
    work: Vec<(WriteBatch, Batch, WriteOptions)>,
    wrote: &Mutex<Vec<Result<ThreadWrite, Error>>>,
) {
    for (mut encoded, batch, options) in work {
        let begun = disk.position();
        let done = db.write_opt(&mut encoded, &options);
        let one = done.map(|()| ThreadWrite {
            change: Change::Write(batch),
            seq: encoded.seq().0,
            begun,
            ended: disk.position(),
            sync: options.sync,
        });
        wrote.lock().push(one);
    }
}
