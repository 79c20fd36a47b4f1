//! Running a seeded workload on the engine, and writing down what was acknowledged when.
//!
//! A [`Session`] is a database on a simulated disk with the model beside it. Each step is a call
//! that an application could make; a batch becomes an [`Event`] with the positions of the disk's
//! log before and after it. From these a
//! [`History`] says, for a cut at any operation, which states are allowed: no fewer events than
//! were promised, no more than had begun.
//!
//! One thread writes, so the order of events is the order of calls. The engine's background threads
//! do as they like; that is why the log is kept with the history and replayed from, and not made
//! again from the seed.

use super::area::{self, Area};
use super::settings::{DIR, Settings};
use super::state::{Backup, Batch, Change, Record, State};
use crate::disk::{DiskLog, SimFs};
use crate::rng::Rng;
use crate::sim_env::SimEnv;
use esker::{
    CompactRangeOptions, Db, FamilyHandle, FamilyId, FlushOptions, WriteBatch, WriteOptions,
};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The default family's name.
pub const DEFAULT: &str = "default";

/// Transactions that are prepared, by name.
pub type PreparedBatches = BTreeMap<Arc<str>, WriteBatch>;

/// A call that changed the database.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its change.
    pub change: Change,
    /// The length of the disk's log before the call.
    pub begun: usize,
    /// True if the call returned without an error. When it did not, the change may be there or not.
    pub acknowledged: bool,
}

/// When a family came and went, as positions in the disk's log.
#[derive(Clone, Debug)]
pub struct Life {
    /// Its name; names are not used again.
    pub name: Arc<str>,
    /// Before the call that makes it.
    pub begun: usize,
    /// After it.
    pub created: Option<usize>,
    /// Before the call that drops it.
    pub drop_begun: Option<usize>,
    /// After it.
    pub dropped: Option<usize>,
}

impl Life {
    /// Returns whether the family must be there when the power goes after operation `at`, and
    /// whether it may.
    pub fn at(&self, at: usize) -> (bool, bool) {
        let before = |p: Option<usize>| p.is_some_and(|p| p <= at);
        let begun = self.drop_begun.is_some_and(|p| p < at);
        (
            before(self.created) && !begun && !before(self.dropped),
            self.begun < at.max(1) && !before(self.dropped),
        )
    }
}

/// A call that set [`DIAL`] of a family: making it, changing its options, or opening the database.
#[derive(Clone, Debug)]
pub struct OptionChange {
    /// The family.
    pub family: Arc<str>,
    /// The new value.
    pub value: u64,
    /// The length of the disk's log before the call.
    pub begun: usize,
    /// After it.
    pub ended: usize,
    /// True if it returned without an error.
    pub is_done: bool,
}

/// The option that tells what OPTIONS holds: it may change at any time, and makes no difference
/// here.
pub const DIAL: &str = "max_sequential_skip_in_iterations";
/// Its value after opening.
const DIAL_AT_OPEN: u64 = 8;

/// The history of a run.
#[derive(Clone, Debug)]
pub struct History {
    /// The database's options.
    pub settings: Settings,
    /// The log of the disk.
    pub log: DiskLog,
    /// The events, in order.
    pub events: Vec<Event>,
    /// The state after so many events, without those that failed; one more than events.
    pub states: Vec<State>,
    /// From this position of the log on, this many events survive a power cut.
    pub sure: Vec<(usize, usize)>,
    /// From this position of the log on, this many events survive the death of the process.
    pub kept: Vec<(usize, usize)>,
    /// Where the database was opened, or went on writing after calls had failed.
    pub went_on: Vec<usize>,
    /// The families.
    pub lives: Vec<Life>,
    /// The settings, in order.
    pub dials: Vec<OptionChange>,
    /// The backups that were made.
    pub backups: Vec<Backup>,
    /// When the first open returned.
    pub opened: usize,
}

impl History {
    /// How many events must be there, and how many may, after operation `at`.
    ///
    /// A failed fsync that took pages away is a power cut for what was not synced then: no later
    /// process can read it. What survives the death of the process is promised anew once the
    /// database goes on: until whoever asked for the fsync has heard of it, other threads may be
    /// told that they wrote, into a log behind the pages that are gone.
    pub fn range(&self, at: usize, process_only: bool) -> (usize, usize) {
        let kept: &[_] = if process_only { &self.kept } else { &[] };
        let since = match self.log.pages_lost(at) {
            lost if process_only && lost > 0 => {
                let anew = self.went_on.iter().copied().find(|p| *p >= lost);
                anew.unwrap_or(usize::MAX)
            }
            _ => 0,
        };
        let kept = kept.iter().filter(|(p, _)| *p >= since);
        let promises = self.sure.iter().chain(kept).filter(|(p, _)| *p <= at);
        let least = promises.map(|(_, n)| *n).max().unwrap_or(0);
        let most = self.events.iter().take_while(|e| e.begun < at).count();
        (least, most.max(least))
    }
}

impl History {
    /// Returns the values that [`DIAL`] of a family may have in OPTIONS after operation `at`: the
    /// last one that was set, and the one that was being set.
    pub fn dial_of(&self, family: &str, at: usize) -> Vec<u64> {
        let own = self.dials.iter().filter(|d| &*d.family == family);
        let own: Vec<_> = own.filter(|d| d.begun < at.max(1)).collect();
        let is_sure = |d: &&OptionChange| d.is_done && d.ended <= at;
        let last = own.iter().rposition(is_sure).unwrap_or(0);
        let mut values: Vec<u64> = own[last..].iter().map(|d| d.value).collect();
        // A family that could not be made, and may be there nevertheless, has lost its options.
        if own.first().is_some_and(|d| !d.is_done && d.ended <= at) {
            values.push(DIAL_AT_OPEN);
        }
        values
    }
}

/// A database that is being driven.
pub struct Session {
    pub(super) world: SimEnv,
    pub(super) disk: SimFs,
    pub(super) rng: Rng,
    /// Decides about what is done between the steps.
    pub(super) beside: Rng,
    /// Decides about options that are changed.
    dials: Rng,
    /// Decides about what changes no contents.
    pub(super) upkeep: Rng,
    db: Option<Db>,
    pub(super) handles: BTreeMap<Arc<str>, FamilyHandle>,
    pub(super) history: History,
    /// Transactions that were prepared when the database was last opened.
    recovered: PreparedBatches,
    /// Names and files that were used.
    pub(super) used: usize,
    /// How often the database was opened.
    pub(super) opens: usize,
    next_family: usize,
    keys: u64,
    /// Share of writes that are synced: one in this many.
    sync_one_in: u64,
}

impl Session {
    /// Opens the database on `disk`, whose state is `state`.
    pub fn open(
        world: &SimEnv,
        settings: &Settings,
        disk: &SimFs,
        state: State,
        seed: u64,
    ) -> Result<Session> {
        let mut rng = Rng::new(seed);
        let mut session = Session {
            world: world.clone(),
            disk: disk.clone(),
            beside: Rng::new(seed ^ 0x6265_7369),
            dials: Rng::new(seed ^ 0x6469_616c),
            upkeep: Rng::new(seed ^ 0x7570_6b65),
            db: None,
            handles: BTreeMap::new(),
            recovered: PreparedBatches::new(),
            used: 0,
            opens: 0,
            history: History {
                settings: settings.clone(),
                log: DiskLog::default(),
                events: Vec::new(),
                states: vec![state],
                sure: Vec::new(),
                kept: Vec::new(),
                went_on: Vec::new(),
                lives: Vec::new(),
                dials: Vec::new(),
                backups: Vec::new(),
                opened: 0,
            },
            next_family: 0,
            keys: *rng.pick(&[12, 40, 150]),
            sync_one_in: *rng.pick(&[2, 5, 12]),
            rng,
        };
        session.reopen()?;
        let opened = session.disk.position();
        session.history.opened = opened;
        for name in session.handles.keys() {
            session.history.lives.push(Life {
                name: Arc::clone(name),
                begun: 0,
                created: Some(opened),
                drop_begun: None,
                dropped: None,
            });
        }
        Ok(session)
    }

    fn reopen(&mut self) -> Result<()> {
        let options = self.history.settings.options(&self.world, &self.disk)?;
        let begun = self.disk.position();
        let opened = Db::open(DIR, options);
        let names = opened.as_ref().map_or_else(
            |_| {
                self.history
                    .lives
                    .iter()
                    .map(|l| Arc::clone(&l.name))
                    .collect()
            },
            |db| {
                db.families()
                    .iter()
                    .map(|f| Arc::from(f.name()))
                    .collect::<Vec<_>>()
            },
        );
        for name in names {
            self.note_dial(name, DIAL_AT_OPEN, begun, opened.is_ok());
        }
        let db = opened?;
        self.handles = db
            .families()
            .into_iter()
            .map(|f| (Arc::from(f.name()), f))
            .collect();
        let found = db.take_prepared_transactions().into_iter();
        self.recovered = found
            .map(|(name, batch)| (Arc::from(String::from_utf8_lossy(&name)), batch))
            .collect();
        self.db = Some(db);
        self.opens += 1;
        self.goes_on();
        Ok(())
    }

    fn note_dial(&mut self, family: Arc<str>, value: u64, begun: usize, is_done: bool) {
        let ended = self.disk.position();
        self.history.dials.push(OptionChange {
            family,
            value,
            begun,
            ended,
            is_done,
        });
    }

    /// Sets an option of a family, now and then.
    fn turn_dial(&mut self) -> Result<()> {
        let often = self.history.settings.area == Some(Area::Manifest);
        if !self.dials.one_in(if often { 5 } else { 30 }) {
            return Ok(());
        }
        let handles: Vec<_> = self.handles.values().cloned().collect();
        let family = self.dials.pick(&handles).clone();
        let value = 1000 + self.history.dials.len() as u64;
        let begun = self.disk.position();
        let done = self
            .db()?
            .set_options(&family, &[(DIAL, &value.to_string())]);
        self.note_dial(Arc::from(family.name()), value, begun, done.is_ok());
        done
    }

    /// Transactions that were prepared when the database was last opened.
    pub fn recovered(&self) -> &PreparedBatches {
        &self.recovered
    }

    /// The database.
    pub fn db(&self) -> Result<&Db> {
        self.db
            .as_ref()
            .ok_or_else(|| Error::aborted("the database is closed"))
    }

    /// The families that are there.
    pub fn handles(&self) -> &BTreeMap<Arc<str>, FamilyHandle> {
        &self.handles
    }

    /// Returns the history so far, without the log.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The state that the model says the database has.
    pub fn state(&self) -> &State {
        &self.history.states[self.history.states.len() - 1]
    }

    /// The state at the start was another of those that are allowed.
    pub fn set_start(&mut self, state: State) {
        self.history.states[0] = state;
    }

    /// Ends the run without closing the database, as a crash would, and gives the history.
    pub fn finish(mut self) -> History {
        let log = self.disk.log();
        // What closing does comes after the end.
        let _ghost = self.disk.kill();
        self.handles.clear();
        self.db = None;
        self.history.log = log;
        self.history
    }

    /// Makes a few families, so that what goes between families is there from the start.
    pub fn begin(&mut self) -> Result<()> {
        let least = area::families(self.history.settings.area);
        (0..self.beside.below(3).max(least)).try_for_each(|_| self.create_family())
    }

    /// Closes the database. What no log has is in tables then.
    pub fn close(&mut self) -> Result<()> {
        if self.history.settings.unlogged {
            self.flush()?;
        }
        self.handles.clear();
        self.db.take().map_or(Ok(()), |db| db.close())
    }

    /// Carries out `steps` random steps.
    pub fn run(&mut self, steps: usize) -> Result<()> {
        (0..steps).try_for_each(|_| self.step())
    }

    /// Carries out `steps` random steps of which some may fail; gives up writing after a few
    /// failures. How many failed. Without `reopening`, the database is not opened again meanwhile.
    pub fn run_failing(&mut self, steps: usize, most: usize, reopening: bool) -> usize {
        let mut failed = 0;
        for _ in 0..steps {
            let kind = self.rng.below(if reopening { 100 } else { 92 });
            if self.step_of(kind).is_err() {
                failed += 1;
            }
            let unknown = self
                .history
                .events
                .iter()
                .filter(|e| !e.acknowledged)
                .count();
            if unknown >= most || self.db.is_none() {
                break;
            }
        }
        failed
    }

    /// The database has `state`, which its history allows: a failed fsync may have taken what was
    /// not synced.
    pub fn set_state(&mut self, state: State) {
        if let Some(last) = self.history.states.last_mut() {
            *last = state;
        }
    }

    /// Opens the database again, whatever state it is in: as another process would after this one
    /// died.
    pub fn start_again(&mut self) -> Result<()> {
        self.disk = self.disk.kill();
        self.handles.clear();
        self.db = None;
        self.reopen()
    }

    /// Families that came and went before this history began: their names are known and not used
    /// again.
    pub fn keep_lives(&mut self, before: &[Life]) {
        self.next_family = before.len() + self.history.lives.len();
        for life in before {
            if !self.history.lives.iter().any(|l| l.name == life.name) {
                self.history.lives.push(Life {
                    begun: 0,
                    created: None,
                    drop_begun: Some(0),
                    dropped: Some(0),
                    ..life.clone()
                });
            }
        }
    }

    /// The log was synced, beside the steps.
    pub fn promise_all(&mut self) {
        self.promise(true);
    }

    /// The disk, as the process that runs now sees it.
    pub fn disk(&self) -> &SimFs {
        &self.disk
    }

    fn step(&mut self) -> Result<()> {
        let kind = self.rng.below(100);
        self.step_of(kind)?;
        self.turn_dial()?;
        self.step_beside()?;
        self.step_upkeep()
    }

    fn step_of(&mut self, kind: u64) -> Result<()> {
        match area::turned(self.history.settings.area, kind) {
            0..70 => self.write().map(|_| ()),
            70..76 => self.flush(),
            76..79 => self.flush_one(),
            79..83 => self.sync(),
            83..87 => self.compact(),
            87..90 => self.create_family(),
            90..92 => self.drop_family(),
            92..95 => self.close_and_reopen(),
            95..97 => self.die_and_reopen(),
            97..99 => self.db()?.wait_for_compaction(),
            _ => self.compact_for_reads(),
        }
    }

    /// Takes note that the database goes on from here, whatever failed before.
    pub fn goes_on(&mut self) {
        self.history.went_on.push(self.disk.position());
    }

    pub(super) fn promise(&mut self, power: bool) {
        let at = (self.disk.position(), self.history.events.len());
        self.history.kept.push(at);
        if power {
            self.history.sure.push(at);
        }
    }

    fn key(&mut self) -> Vec<u8> {
        format!("{:04}", self.rng.below(self.keys)).into_bytes()
    }

    /// A key, for what is done between the steps.
    pub(super) fn key_beside(&mut self) -> Vec<u8> {
        format!("{:04}", self.beside.below(self.keys)).into_bytes()
    }

    fn random_batch(&mut self) -> Batch {
        let names: Vec<Arc<str>> = self.handles.keys().cloned().collect();
        let count = 1 + self.rng.below(*Rng::new(self.keys).pick(&[3, 6]));
        let event = self.history.events.len();
        (0..count)
            .map(|i| {
                let family = Arc::clone(self.rng.pick(&names));
                let key = self.key();
                let record = match self.rng.below(20) {
                    0..3 => Record::Delete(key),
                    3..6 => Record::Merge(key, format!("{event}.{i}").into_bytes()),
                    6 => {
                        let other = self.key();
                        let (begin, end) = if key <= other {
                            (key, other)
                        } else {
                            (other, key)
                        };
                        Record::DeleteRange(begin, end)
                    }
                    _ => {
                        let long = if self.rng.one_in(12) { 2000 } else { 120 };
                        let len = self.rng.index(long);
                        let mut value = format!("{event}.{i}:").into_bytes();
                        let mut noise = self.rng.fork();
                        value.extend((0..len).map(|_| b'a' + noise.below(26) as u8));
                        Record::Put(key, value)
                    }
                };
                (family, record)
            })
            .collect()
    }

    /// Writes a random batch; whether it was acknowledged.
    pub fn write(&mut self) -> Result<()> {
        let sync = self.rng.one_in(self.sync_one_in);
        let batch = self.random_batch();
        self.write_batch(batch, sync)
    }

    /// Writes a batch, synced or not.
    pub fn write_batch(&mut self, batch: Batch, sync: bool) -> Result<()> {
        let encoded = self.encode(&batch)?;
        let options = self.write_options(sync);
        let begun = self.disk.position();
        let done = self.db()?.write_opt(&mut { encoded }, &options);
        self.note(Change::Write(batch), begun, done, options.sync)
    }

    /// How this database is written.
    pub(super) fn write_options(&self, sync: bool) -> WriteOptions {
        let mut options = WriteOptions::default();
        options.disable_wal = self.history.settings.unlogged;
        options.sync = sync && !options.disable_wal;
        options
    }

    /// Takes note of a call that writes to the log; `sync` when it promises more than to be there.
    pub(super) fn note(
        &mut self,
        change: Change,
        begun: usize,
        done: Result<()>,
        sync: bool,
    ) -> Result<()> {
        let next = match &done {
            Ok(()) => self.state().after(&change),
            Err(_) => self.state().clone(),
        };
        self.history.events.push(Event {
            change,
            begun,
            acknowledged: done.is_ok(),
        });
        self.history.states.push(next);
        let Settings {
            manual_wal_flush,
            unlogged,
            ..
        } = self.history.settings;
        if done.is_ok() && !unlogged && (sync || !manual_wal_flush) {
            self.promise(sync);
        }
        done
    }

    pub(super) fn encode(&self, batch: &Batch) -> Result<WriteBatch> {
        let mut out = WriteBatch::new();
        for (family, record) in batch {
            let handle = self.handles.get(family);
            let id = FamilyId(handle.map_or(0, FamilyHandle::id));
            add(&mut out, id, record)?;
        }
        Ok(out)
    }

    /// Puts everything into tables.
    pub fn flush(&mut self) -> Result<()> {
        self.db()?.flush()?;
        // What is prepared is in the log alone.
        if !self.history.settings.two_phase {
            self.promise(true);
        }
        Ok(())
    }

    pub(super) fn some_family(&mut self) -> FamilyHandle {
        let handles: Vec<_> = self.handles.values().cloned().collect();
        self.rng.pick(&handles).clone()
    }

    fn flush_one(&mut self) -> Result<()> {
        let family = self.some_family();
        self.db()?.flush_cf(&family, &FlushOptions::default())
    }

    fn sync(&mut self) -> Result<()> {
        let power = !self.rng.one_in(3);
        self.db()?.flush_wal(power)?;
        if !self.history.settings.unlogged {
            self.promise(power);
        }
        Ok(())
    }

    /// Compacts one family.
    pub fn compact(&mut self) -> Result<()> {
        let family = self.some_family();
        let options = CompactRangeOptions::default();
        self.db()?.compact_range_opt(&family, None, None, &options)
    }

    /// Has the runs of all families merged as if they had been read for days.
    fn compact_for_reads(&mut self) -> Result<()> {
        const SEEKS: u64 = 1 << 40;
        let db = self.db()?;
        for family in self.handles.values() {
            db.expect_seeks(family, SEEKS);
        }
        db.wait_for_compaction()
    }

    fn create_family(&mut self) -> Result<()> {
        if self.handles.len() >= 4 {
            return Ok(());
        }
        let name: Arc<str> = Arc::from(format!("f{}", self.next_family));
        self.next_family += 1;
        let mut options = self.history.settings.options(&self.world, &self.disk)?;
        let value = 100 + self.next_family as u64;
        options.family.max_sequential_skip_in_iterations = value;
        let begun = self.disk.position();
        let made = self.db()?.create_family(&name, options.family);
        self.note_dial(Arc::clone(&name), value, begun, made.is_ok());
        let mut life = Life {
            name: Arc::clone(&name),
            begun,
            created: None,
            drop_begun: None,
            dropped: None,
        };
        if made.is_ok() {
            life.created = Some(self.disk.position());
        }
        self.history.lives.push(life);
        self.handles.insert(name, made?);
        Ok(())
    }

    fn drop_family(&mut self) -> Result<()> {
        let names: Vec<_> = self
            .handles
            .keys()
            .filter(|n| &***n != DEFAULT)
            .cloned()
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let name = Arc::clone(self.rng.pick(&names));
        let Some(handle) = self.handles.remove(&name) else {
            return Ok(());
        };
        let begun = self.disk.position();
        let lives = &mut self.history.lives;
        let Some(life) = lives.iter().position(|l| l.name == name) else {
            return Ok(());
        };
        lives[life].drop_begun = Some(begun);
        self.db()?.drop_family(&handle)?;
        self.history.lives[life].dropped = Some(self.disk.position());
        Ok(())
    }

    fn close_and_reopen(&mut self) -> Result<()> {
        self.close()?;
        self.promise(false);
        self.reopen()
    }

    /// The process dies and another one opens the database; the machine goes on.
    fn die_and_reopen(&mut self) -> Result<()> {
        if self.history.settings.unlogged {
            self.flush()?;
        }
        if self.history.settings.manual_wal_flush {
            // What it had not handed over would be lost, and the model goes on from what is there.
            self.db()?.flush_wal(false)?;
        }
        self.promise(false);
        self.disk = self.disk.kill();
        self.handles.clear();
        self.db = None;
        self.reopen()
    }
}

/// A batch that names the default family alone, for the engine.
pub fn default_batch(batch: &Batch) -> Result<WriteBatch> {
    let mut out = WriteBatch::new();
    for (_, record) in batch {
        add(&mut out, FamilyId(0), record)?;
    }
    Ok(out)
}

fn add(out: &mut WriteBatch, id: FamilyId, record: &Record) -> Result<()> {
    match record {
        Record::Put(k, v) => out.put_cf(id, k, v),
        Record::Delete(k) => out.delete_cf(id, k),
        Record::Merge(k, v) => out.merge_cf(id, k, v),
        Record::DeleteRange(b, e) => out.delete_range_cf(id, b, e),
    }
}
