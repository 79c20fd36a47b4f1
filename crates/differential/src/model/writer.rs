//! The model's thread: it alone changes contents, so every read of its has one right answer.
#![allow(unsafe_code)]

use std::ptr;

use super::held::{Cursor, Snapshot};
use super::program::{Call, Mode, Setting};
use super::table::{Edit, Table, changes, key, value};
use super::tree::{self, required};
use super::world::{Family, ModelState, SecondView, at};
use crate::api::{H, c};
use crate::{Failure, Result};

/// A transaction that is prepared.
pub(super) struct PreparedTransaction {
    pub(super) handle: H,
    pub(super) edits: Vec<(String, Edit)>,
}

/// A second view of the database that follows it.
pub(super) struct Follower {
    pub(super) side: SecondView,
    pub(super) names: Vec<String>,
}

/// The model, and what its thread holds.
pub(super) struct Writer<'a> {
    pub(super) world: &'a ModelState,
    pub(super) setting: &'a Setting,
    /// By the place of the family in the world.
    pub(super) tables: Vec<Table>,
    pub(super) snapshots: [Option<Snapshot>; 4],
    pub(super) cursors: [Option<Cursor>; 6],
    pub(super) tail: Option<(H, H, String)>,
    pub(super) prepared: Option<PreparedTransaction>,
    pub(super) follower: Option<Follower>,
    /// Families made so far, for names that are new.
    pub(super) made: usize,
}

/// The names of the families of a new database.
pub(super) fn first_names(families: usize) -> Vec<String> {
    let own = (1..families).map(|number| format!("f{number}"));
    std::iter::once("default".to_owned()).chain(own).collect()
}

/// A receiver of changes: a batch, a file, a transaction.
pub(super) trait Sink {
    fn put(&mut self, family: H, key: &[u8], value: &[u8]) -> Result<()>;
    fn merge(&mut self, family: H, key: &[u8], value: &[u8]) -> Result<()>;
    fn delete(&mut self, family: H, key: &[u8]) -> Result<()>;
    fn delete_range(&mut self, family: H, from: &[u8], to: &[u8]) -> Result<()>;
}

/// Hands a change to a sink.
pub(super) fn hand(sink: &mut dyn Sink, family: H, edit: &Edit, keys: usize) -> Result<()> {
    match edit {
        Edit::Put(at, value) => sink.put(family, &key(*at, keys), value),
        Edit::Merge(at, value) => sink.merge(family, &key(*at, keys), value),
        Edit::Delete(at) => sink.delete(family, &key(*at, keys)),
        Edit::Range(from, to) => sink.delete_range(family, &key(*from, keys), &key(*to, keys)),
    }
}

pub(super) struct Batch<'a>(pub(super) &'a ModelState, pub(super) H);

impl Sink for Batch<'_> {
    fn put(&mut self, family: H, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v) = (at(key), at(value));
        c!(
            self.0,
            writebatch_put_cf,
            self.1,
            family,
            k,
            key.len(),
            v,
            value.len()
        );
        Ok(())
    }

    fn merge(&mut self, family: H, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v) = (at(key), at(value));
        c!(
            self.0,
            writebatch_merge_cf,
            self.1,
            family,
            k,
            key.len(),
            v,
            value.len()
        );
        Ok(())
    }

    fn delete(&mut self, family: H, key: &[u8]) -> Result<()> {
        c!(
            self.0,
            writebatch_delete_cf,
            self.1,
            family,
            at(key),
            key.len()
        );
        Ok(())
    }

    fn delete_range(&mut self, family: H, from: &[u8], to: &[u8]) -> Result<()> {
        let (f, t) = (at(from), at(to));
        c!(
            self.0,
            writebatch_delete_range_cf,
            self.1,
            family,
            f,
            from.len(),
            t,
            to.len()
        );
        Ok(())
    }
}

impl<'a> Writer<'a> {
    pub(super) fn new(world: &'a ModelState, setting: &'a Setting) -> Writer<'a> {
        let tables = vec![Table::new(setting.keys); world.names().len()];
        Writer {
            world,
            setting,
            tables,
            snapshots: [const { None }; 4],
            cursors: [const { None }; 6],
            tail: None,
            prepared: None,
            follower: None,
            made: 0,
        }
    }

    pub(super) fn keys(&self) -> usize {
        self.setting.keys
    }

    /// The place and the family of a number.
    pub(super) fn family(&self, number: u64) -> (usize, Family) {
        let at = number as usize % self.tables.len();
        (at, self.world.family(at as u64))
    }

    /// Makes one call and compares its answer.
    pub(super) fn make(&mut self, call: &Call) -> Result<()> {
        let arg = |index: usize| call.args.get(index).copied().unwrap_or(0);
        let rest = |from: usize| call.args.get(from..).unwrap_or_default();
        match call.kind {
            "put" | "merge" | "delete" | "delete_range" => self.write_one(call),
            "put_once" => self.put_once(arg(0), arg(1), arg(2)),
            "single_delete" => self.single_delete(arg(0), arg(1)),
            "batch" => self.batch(arg(0) == 0, call),
            "get" => self.get(arg(0), arg(1), arg(2)),
            "multi_get" => self.multi_get(arg(0), rest(1)),
            "batched_multi_get" => self.batched_multi_get(arg(0), arg(1), arg(2), rest(3)),
            "verify" => self.verify(arg(0) == 0),
            "snapshot" => self.snapshot(arg(0) as usize),
            "verify_snapshot" => self.verify_snapshot(arg(0) as usize, arg(1) == 0),
            "release" => {
                self.release(arg(0) as usize);
                Ok(())
            }
            "iterator" => self.iterator(&call.args),
            "step" => self.steps(arg(0) as usize, rest(1)),
            "refresh" => self.refresh(arg(0) as usize),
            "prefix" => self.prefix(arg(0), arg(1), arg(2)),
            "tail" => self.tailing(arg(0), arg(1), arg(2), arg(3) == 0),
            _ => return self.make_rare(call),
        }?;
        self.world.count(call.kind);
        Ok(())
    }

    fn make_rare(&mut self, call: &Call) -> Result<()> {
        let arg = |index: usize| call.args.get(index).copied().unwrap_or(0);
        let rest = |from: usize| call.args.get(from..).unwrap_or_default();
        match call.kind {
            "ingest" => self.ingest(&call.args),
            "files_in_range" => self.files_in_range(arg(0), arg(1), arg(2)),
            "import" => self.import(arg(0), arg(1)),
            "make_family" => self.make_family(),
            "drop_family" => self.drop_family(arg(0)),
            "checkpoint" => self.checkpoint(arg(0), arg(1)),
            "backup" => self.backup(arg(0)),
            "read_only" => self.read_only(),
            "secondary" => self.secondary(arg(0)),
            "reopen" => self.reopen(arg(0)),
            "transaction" => self.transaction(arg(0), arg(1), rest(2)),
            "prepare" => self.prepare(arg(0), rest(1)),
            "resolve" => self.resolve(arg(0), rest(1)),
            "additions" => self.additions(arg(0), (arg(1), arg(2)), arg(3)),
            _ => {
                let known = tree::make(self.world, self.keys(), call)?;
                let unknown = || Failure::new(format!("{call} is no call of the model's thread"));
                return if known { Ok(()) } else { Err(unknown()) };
            }
        }?;
        self.world.count(call.kind);
        Ok(())
    }

    /// Changes one key or range, through the function for that.
    fn write_one(&mut self, call: &Call) -> Result<()> {
        let keys = self.keys();
        let changes = changes(self.setting, self.tables.len(), call).unwrap_or_default();
        for (place, edit) in changes {
            let family = self.family(place as u64).1;
            hand(self, family.handle, &edit, keys)?;
            self.tables[place].apply(&edit);
        }
        Ok(())
    }

    fn put_once(&mut self, family: u64, number: u64, id: u64) -> Result<()> {
        let (place, family) = self.family(family);
        let number = self.keys() + number as usize % super::table::ONCE;
        if self.tables[place].entries[number].is_some() {
            return Ok(());
        }
        let edit = Edit::Put(number, value(id, 1));
        let keys = self.keys();
        hand(self, family.handle, &edit, keys)?;
        self.tables[place].apply(&edit);
        Ok(())
    }

    fn single_delete(&mut self, family: u64, number: u64) -> Result<()> {
        let (place, family) = self.family(family);
        let number = self.keys() + number as usize % super::table::ONCE;
        if self.tables[place].entries[number].is_none() {
            return Ok(());
        }
        let (key, mut e) = (key(number, self.keys()), ptr::null_mut());
        let (db, write, handle) = (self.world.db(), self.world.write, family.handle);
        let has_own = self
            .world
            .api
            .esker_transactiondb_single_delete_cf
            .is_some();
        if number % 2 == 1 && has_own && self.is(Mode::Pessimistic) {
            let owner = self.world.hold().owner;
            c!(
                self.world,
                esker_transactiondb_single_delete_cf,
                owner,
                write,
                handle,
                at(&key),
                4,
                &mut e
            );
        } else {
            c!(
                self.world,
                singledelete_cf,
                db,
                write,
                handle,
                at(&key),
                4,
                &mut e
            );
        }
        required(self.world.done(e), "single_delete")?;
        self.tables[place].apply(&Edit::Delete(number));
        Ok(())
    }

    /// The changes that a list of arguments names, with the places of their families.
    pub(super) fn edits(&self, args: &[u64]) -> Vec<(usize, Edit)> {
        let (keys, ranges) = (self.keys(), self.setting.ranges);
        let edit = |one: &[u64]| {
            let place = one[1] as usize % self.tables.len();
            (
                place,
                Edit::of(one[0], one[2], one[3], one[4], keys, ranges),
            )
        };
        args.chunks_exact(5).map(edit).collect()
    }

    pub(super) fn apply(&mut self, edits: &[(usize, Edit)]) {
        for (place, edit) in edits {
            self.tables[*place].apply(edit);
        }
    }

    fn batch(&mut self, nowal: bool, call: &Call) -> Result<()> {
        let (edits, world) = (changes(self.setting, self.tables.len(), call), self.world);
        let edits = edits.unwrap_or_default();
        let batch = c!(world, writebatch_create);
        let mut sink = Batch(world, batch);
        for (place, edit) in &edits {
            hand(
                &mut sink,
                self.family(*place as u64).1.handle,
                edit,
                self.keys(),
            )?;
        }
        let batch = if edits.len() % 2 == 1 {
            self.assigned(batch)?
        } else {
            batch
        };
        let options = if nowal && self.setting.nowal {
            world.nowal
        } else {
            world.write
        };
        let mut e = ptr::null_mut();
        c!(world, write, world.db(), options, batch, &mut e);
        c!(world, writebatch_destroy, batch);
        required(world.done(e), "write")?;
        self.apply(&edits);
        Ok(())
    }

    /// Gives back everything that is held, and closes the database.
    pub(super) fn close(&mut self, cancel: bool) {
        for index in 0..self.cursors.len() {
            self.drop_cursor(index);
        }
        self.drop_tail();
        for index in 0..self.snapshots.len() {
            self.release(index);
        }
        self.drop_follower();
        if let Some(prepared) = &self.prepared {
            c!(self.world, transaction_destroy, prepared.handle);
        }
        self.world.end(self.setting.mode, cancel);
    }

    /// Closes and opens the database; everything is still there.
    fn reopen(&mut self, how: u64) -> Result<()> {
        let names = self.world.names();
        self.close(how == 0);
        self.world.begin(self.setting.mode, &names)?;
        self.find_prepared()?;
        self.verify(how.is_multiple_of(2))
    }

    /// Tells whether the mode has this kind of transactions.
    pub(super) fn is(&self, mode: Mode) -> bool {
        self.setting.mode == mode
    }
}

/// Single changes go through the functions for them.
impl Sink for Writer<'_> {
    fn put(&mut self, family: H, key: &[u8], value: &[u8]) -> Result<()> {
        let (world, k, v) = (self.world, at(key), at(value));
        let (db, write, mut e) = (world.db(), world.write, ptr::null_mut());
        c!(
            world,
            put_cf,
            db,
            write,
            family,
            k,
            key.len(),
            v,
            value.len(),
            &mut e
        );
        required(world.done(e), "put")
    }

    fn merge(&mut self, family: H, key: &[u8], value: &[u8]) -> Result<()> {
        let (world, k, v) = (self.world, at(key), at(value));
        let (db, write, mut e) = (world.db(), world.write, ptr::null_mut());
        c!(
            world,
            merge_cf,
            db,
            write,
            family,
            k,
            key.len(),
            v,
            value.len(),
            &mut e
        );
        required(world.done(e), "merge")
    }

    fn delete(&mut self, family: H, key: &[u8]) -> Result<()> {
        let (world, mut e) = (self.world, ptr::null_mut());
        c!(
            world,
            delete_cf,
            world.db(),
            world.write,
            family,
            at(key),
            key.len(),
            &mut e
        );
        required(world.done(e), "delete")
    }

    fn delete_range(&mut self, family: H, from: &[u8], to: &[u8]) -> Result<()> {
        let (world, f, t) = (self.world, at(from), at(to));
        let (db, write, mut e) = (world.db(), world.write, ptr::null_mut());
        c!(
            world,
            delete_range_cf,
            db,
            write,
            family,
            f,
            from.len(),
            t,
            to.len(),
            &mut e
        );
        required(world.done(e), "delete_range")
    }
}
