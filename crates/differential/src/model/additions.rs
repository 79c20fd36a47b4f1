//! Esker's own additions to the C interface, in libraries that have them: options by name, named
//! values of properties, entries of iterators, and all that transactions have beyond RocksDB's C
//! functions.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ops::Range;
use std::ptr;

use super::program::Mode;
use super::reads::check_standing;
use super::table::{Edit, ONCE, Table, key};
use super::tree::required;
use super::txn::number_of;
use super::world::{ModelState, at, c_text};
use super::writer::Writer;
use crate::api::{H, c};
use crate::{Failure, Result, callbacks};

/// The entries of a base within its range, with those of a batch on top within another.
fn joined(base: &Table, of_base: &Range<usize>, over: &Table, of_batch: &Range<usize>) -> Table {
    let entry = |number: usize| {
        let own = over.entries[number].as_ref();
        let below = base.entries[number].as_ref();
        own.filter(|_| of_batch.contains(&number))
            .or_else(|| below.filter(|_| of_base.contains(&number)))
            .cloned()
    };
    Table {
        entries: (0..base.entries.len()).map(entry).collect(),
    }
}

/// Walks a whole iterator, both ways.
fn check_walk(world: &ModelState, iter: H, table: &Table, keys: usize) -> Result<()> {
    let there = |number: &usize| table.entries[*number].is_some();
    let numbers: Vec<_> = (0..table.entries.len()).filter(there).collect();
    c!(world, iter_seek_to_first, iter);
    for number in &numbers {
        check_standing(world, iter, table, Some(*number), keys)?;
        c!(world, iter_next, iter);
    }
    check_standing(world, iter, table, None, keys)?;
    c!(world, iter_seek_to_last, iter);
    for number in numbers.iter().rev() {
        check_standing(world, iter, table, Some(*number), keys)?;
        c!(world, iter_prev, iter);
    }
    check_standing(world, iter, table, None, keys)
}

/// The expectation of a step.
fn holds(yes: bool, what: &str) -> Result<()> {
    if yes { Ok(()) } else { Err(Failure::new(what)) }
}

/// RocksDB's code of an error that is not what it should be.
fn expect_code(world: &ModelState, done: Result<()>, code: u32, what: &str) -> Result<()> {
    let told = c!(world, esker_last_error_code);
    match done {
        Ok(()) => Err(Failure::new(format!("{what} succeeds"))),
        Err(_) if told == code => Ok(()),
        Err(failure) => Err(failure.context(format!("{what}: code {told}"))),
    }
}

impl Writer<'_> {
    /// One of Esker's own calls.
    pub(super) fn additions(
        &mut self,
        what: u64,
        (family, number): (u64, u64),
        id: u64,
    ) -> Result<()> {
        match what {
            0 => self.named_options(family, id),
            1 => self.named_values(family),
            2 => self.compact_all(family, number),
            3 => self.entries(family, number),
            4 => self.shared_statistics(),
            5 | 6 => self.waits(),
            7 => self.ranges_of_both(family, number),
            _ => self.in_a_transaction(family, number),
        }
    }

    fn named_options(&self, family: u64, id: u64) -> Result<()> {
        let (world, mut e) = (self.world, ptr::null_mut());
        holds(
            c!(world, esker_interface_version) >= 3,
            "the version is old",
        )?;
        let (db, handle) = (world.db(), self.family(family).1.handle);
        let options = c!(world, esker_current_options, db, handle, &mut e);
        required(world.done(e), "current_options")?;
        let (name, value) = (
            c_text("write_buffer_size"),
            (65_536 + id % 4096).to_string(),
        );
        let text = c_text(&value);
        let mut e = ptr::null_mut();
        c!(
            world,
            esker_options_set,
            options,
            1,
            name.as_ptr(),
            text.as_ptr(),
            &mut e
        );
        required(world.done(e), "options_set")?;
        let mut e = ptr::null_mut();
        let got = c!(world, esker_options_get, options, 1, name.as_ptr(), &mut e);
        required(world.done(e), "options_get")?;
        let got = world.taken(got, value.len()).unwrap_or_default();
        let nothing = c_text("no_such_option");
        let mut e = ptr::null_mut();
        let none = c!(
            world,
            esker_options_get,
            options,
            1,
            nothing.as_ptr(),
            &mut e
        );
        let refused = world.done(e);
        c!(world, options_destroy, options);
        holds(
            got == value.as_bytes(),
            "an option is not what it was set to",
        )?;
        holds(
            none.is_null() && refused.is_err(),
            "an unknown option has a value",
        )
    }

    /// A copy of the records in another batch, which held others, in libraries that can assign one.
    pub(super) fn assigned(&self, batch: H) -> Result<H> {
        let (world, mut e) = (self.world, ptr::null_mut());
        if world.api.esker_writebatch_assign.is_none() {
            return Ok(batch);
        }
        let copy = c!(world, writebatch_create);
        let held: &[u8] = b"held before";
        c!(
            world,
            writebatch_put_cf,
            copy,
            ptr::null_mut(),
            at(held),
            held.len(),
            at(held),
            held.len()
        );
        c!(world, esker_writebatch_assign, copy, batch, &mut e);
        c!(world, writebatch_destroy, batch);
        required(world.done(e), "assign")?;
        Ok(copy)
    }

    fn named_values(&self, family: u64) -> Result<()> {
        let (world, handle) = (self.world, self.family(family).1.handle);
        for (name, has) in [("rocksdb.cfstats", true), ("rocksdb.no-such", false)] {
            let (name, mut count, mut e) = (c_text(name), 0_usize, ptr::null_mut());
            let found = c!(
                world,
                esker_map_property_cf,
                world.db(),
                handle,
                name.as_ptr(),
                (&raw mut count).cast(),
                callbacks::count_named,
                &mut e
            );
            required(world.done(e), "map_property")?;
            holds((found != 0) == has, "a property is there or not")?;
            holds((count > 0) == has, "a property has values or not")?;
        }
        let mut e = ptr::null_mut();
        c!(world, esker_resume, world.db(), &mut e);
        required(world.done(e), "resume")
    }

    /// Compacts from a key on, to the end.
    fn compact_all(&self, family: u64, number: u64) -> Result<()> {
        let (world, mut e) = (self.world, ptr::null_mut());
        let options = c!(world, compactoptions_create);
        let from = key(number as usize % self.keys(), self.keys());
        c!(
            world,
            esker_compact_range_cf,
            world.db(),
            self.family(family).1.handle,
            options,
            at(&from),
            from.len(),
            ptr::null(),
            0,
            &mut e
        );
        c!(world, compactoptions_destroy, options);
        match world.done(e) {
            Ok(()) => Ok(()),
            Err(failure) => world.refused("additions", &failure),
        }
    }

    /// The lent entry of an iterator is its key and its value; other bounds act from the next seek.
    fn entries(&self, family: u64, number: u64) -> Result<()> {
        let (world, handle) = (self.world, self.family(family).1.handle);
        let iter = c!(world, create_iterator_cf, world.db(), world.read, handle);
        let from = key(number as usize % self.keys(), self.keys());
        let entry = c!(world, esker_iter_entry, iter);
        c!(world, iter_seek, iter, at(&from), from.len());
        let mut same = !entry.is_null();
        for _ in 0..8 {
            // SAFETY: the entry lives as long as the iterator, which is not used meanwhile.
            let [own_key, own_value] = unsafe { entry.read() };
            if c!(world, iter_valid, iter) == 0 {
                same &= own_key.data.is_null() && own_value.data.is_null();
                break;
            }
            let (mut key_size, mut value_size) = (0, 0);
            let k = c!(world, iter_key, iter, &mut key_size);
            let v = c!(world, iter_value, iter, &mut value_size);
            same &= (own_key.data, own_key.size) == (k, key_size);
            same &= (own_value.data, own_value.size) == (v, value_size);
            c!(world, iter_next, iter);
        }
        let to = key((number + 1) as usize % self.keys(), self.keys());
        let (low, high) = (from.len(), to.len());
        c!(
            world,
            esker_iter_set_bounds,
            iter,
            at(&from),
            low,
            at(&to),
            high
        );
        same &= c!(world, iter_valid, iter) == 0;
        c!(world, iter_seek, iter, at(&from), from.len());
        if c!(world, iter_valid, iter) != 0 {
            let mut size = 0;
            let first = c!(world, iter_key, iter, &mut size);
            // SAFETY: the key lives until the iterator moves.
            let first = unsafe { std::slice::from_raw_parts(first.cast::<u8>(), size) };
            same &= first >= &from[..] && first < &to[..];
        }
        c!(world, iter_destroy, iter);
        holds(
            same,
            "an iterator shows another entry than its own, or none of its bounds",
        )
    }

    /// A batch on top of an iterator, each with a range of its own.
    fn ranges_of_both(&self, family: u64, number: u64) -> Result<()> {
        let world = self.world;
        if world.api.esker_iter_set_base_bounds.is_none() {
            return Ok(());
        }
        let (place, family) = self.family(family);
        let (read, table) = self.view(place, &family.name, u64::MAX);
        let batch = c!(world, writebatch_wi_create, 0, 1);
        let first = number as usize % self.keys();
        let mut over = Table::new(self.keys());
        for number in (first..self.keys()).step_by(2).take(4) {
            let (name, value) = (key(number, self.keys()), b"over");
            let (k, v) = (at(&name), at(value));
            c!(
                world,
                writebatch_wi_put_cf,
                batch,
                family.handle,
                k,
                4,
                v,
                4
            );
            over.entries[number] = Some(value.as_slice().into());
        }
        let base = c!(world, create_iterator_cf, world.db(), read, family.handle);
        let iter = c!(
            world,
            writebatch_wi_create_iterator_with_base_cf,
            batch,
            base,
            family.handle
        );
        let all = 0..table.entries.len();
        let walk = |base: &Range<usize>, own: &Range<usize>| {
            check_walk(world, iter, &joined(&table, base, &over, own), self.keys())
        };
        let mut outcome = walk(&all, &all);
        let (of_base, of_batch) = (first + 1..first + 4, first + 3..first + 6);
        for (is_base, range) in [(true, &of_base), (false, &of_batch)] {
            let (from, to) = (key(range.start, self.keys()), key(range.end, self.keys()));
            let (low, high) = (at(&from), at(&to));
            if is_base {
                c!(world, esker_iter_set_base_bounds, iter, low, 4, high, 4);
            } else {
                c!(world, esker_iter_set_batch_bounds, iter, low, 4, high, 4);
            }
            let own = if is_base { &all } else { &of_batch };
            outcome = outcome.and_then(|()| walk(&of_base, own));
        }
        c!(world, iter_destroy, iter);
        c!(world, writebatch_wi_destroy, batch);
        c!(world, readoptions_destroy, read);
        outcome.map_err(|failure| failure.context("ranges of base and batch"))
    }

    fn shared_statistics(&self) -> Result<()> {
        let world = self.world;
        let (one, two) = (c!(world, options_create), c!(world, options_create));
        c!(world, esker_options_share_statistics, one, two);
        c!(world, esker_options_share_statistics, two, world.options);
        c!(world, esker_options_share_statistics, one, two);
        c!(world, esker_options_take_ticker, one, 1);
        c!(world, esker_options_reset_statistics, one);
        c!(world, options_destroy, one);
        c!(world, options_destroy, two);
        Ok(())
    }

    /// Waits in vain for the locks of a prepared transaction: the driver ends such waits. That
    /// leaves the locks as they were.
    fn waits(&mut self) -> Result<()> {
        let (world, owner) = (self.world, self.world.hold().owner);
        if !self.is(Mode::Pessimistic) {
            return Ok(());
        }
        let before = self.locks(owner)?;
        if self.prepared.is_none() {
            return holds(before == 0, "a lock is held by nobody");
        }
        let Some((place, number)) = self.a_locked_key() else {
            return Ok(());
        };
        let Some(handle) = self.begin() else {
            return Ok(());
        };
        let id = c!(world, esker_transaction_id, handle);
        let mut e = ptr::null_mut();
        c!(
            world,
            esker_transaction_set_lock_timeout,
            handle,
            -1,
            &mut e
        );
        required(world.done(e), "set_lock_timeout")?;
        let (name, mut e) = (key(number, self.keys()), ptr::null_mut());
        let family = self.family(place as u64).1.handle;
        c!(
            world,
            transaction_put_cf,
            handle,
            family,
            at(&name),
            name.len(),
            at(b"never"),
            5,
            &mut e
        );
        let ended = world.done(e);
        let subcode = c!(world, esker_last_error_subcode);
        expect_code(world, ended, 9, "a put of a locked key")?;
        holds(subcode == 2, "an ended wait is no time-out of a lock")?;
        let (mut waits, mut e) = (0_usize, ptr::null_mut());
        let waiting = c!(
            world,
            esker_transactiondb_waiting_for,
            owner,
            id,
            (&raw mut waits).cast(),
            callbacks::count_lock,
            &mut e
        );
        required(world.done(e), "waiting_for")?;
        holds(waiting == 0 && waits == 0, "an ended wait goes on")?;
        c!(world, transaction_destroy, handle);
        let after = self.locks(owner)?;
        holds(before == after && after > 0, "an ended wait changes locks")?;
        self.no_deadlocks(owner)
    }

    /// A key of a family that is there, which the prepared transaction holds.
    fn a_locked_key(&self) -> Option<(usize, usize)> {
        let names = self.world.names();
        let prepared = self.prepared.as_ref()?;
        prepared
            .edits
            .iter()
            .find_map(|(name, edit): &(String, Edit)| {
                let place = names.iter().position(|own| own == name)?;
                Some((place, number_of(edit)))
            })
    }

    fn locks(&self, owner: H) -> Result<usize> {
        let (world, mut count, mut e) = (self.world, 0_usize, ptr::null_mut());
        c!(
            world,
            esker_transactiondb_each_lock,
            owner,
            (&raw mut count).cast(),
            callbacks::count_lock,
            &mut e
        );
        required(world.done(e), "each_lock").map(|()| count)
    }

    fn no_deadlocks(&self, owner: H) -> Result<()> {
        let (world, mut count, mut e) = (self.world, 0_usize, ptr::null_mut());
        c!(
            world,
            esker_transactiondb_set_max_deadlocks,
            owner,
            3,
            &mut e
        );
        required(world.done(e), "set_max_deadlocks")?;
        let mut e = ptr::null_mut();
        c!(
            world,
            esker_transactiondb_each_deadlock,
            owner,
            (&raw mut count).cast(),
            callbacks::count_deadlock,
            &mut e
        );
        required(world.done(e), "each_deadlock")?;
        holds(count == 0, "a deadlock of one transaction")
    }

    /// The calls of a transaction that RocksDB's C interface lacks; it is rolled back.
    fn in_a_transaction(&mut self, family: u64, number: u64) -> Result<()> {
        let Some(handle) = self.begin() else {
            return Ok(());
        };
        let done = self
            .states(handle)
            .and_then(|()| self.touches(handle, family, number))
            .and_then(|()| self.unprepared(handle, family));
        c!(self.world, transaction_destroy, handle);
        done.map_err(|failure| failure.context("a transaction"))
    }

    fn states(&self, handle: H) -> Result<()> {
        let world = self.world;
        let has_id = c!(world, esker_transaction_id, handle) != 0;
        holds(has_id == self.is(Mode::Pessimistic), "the number is odd")?;
        holds(
            c!(world, esker_transaction_state, handle) == 0,
            "not started",
        )?;
        let snapshot = || c!(world, esker_transaction_has_snapshot, handle) != 0;
        holds(!snapshot(), "a snapshot that nobody took")?;
        let mut e = ptr::null_mut();
        c!(world, esker_transaction_set_snapshot, handle, &mut e);
        required(world.done(e), "set_snapshot")?;
        holds(snapshot(), "no snapshot")?;
        let mut e = ptr::null_mut();
        c!(world, esker_transaction_clear_snapshot, handle, &mut e);
        required(world.done(e), "clear_snapshot")?;
        holds(!snapshot(), "a cleared snapshot")?;
        let mut e = ptr::null_mut();
        c!(
            world,
            esker_transaction_set_snapshot_on_next_operation,
            handle,
            &mut e
        );
        required(world.done(e), "set_snapshot_on_next_operation")?;
        holds(!snapshot(), "a snapshot before the operation")
    }

    fn touches(&self, handle: H, family: u64, number: u64) -> Result<()> {
        let (world, keys) = (self.world, || {
            c!(self.world, esker_transaction_num_keys, handle)
        });
        let (place, own) = self.family(family);
        // No prepared transaction has these keys.
        let once = key(self.keys() + number as usize % ONCE, self.keys());
        let mut e = ptr::null_mut();
        c!(
            world,
            esker_transaction_single_delete_cf,
            handle,
            own.handle,
            at(&once),
            once.len(),
            &mut e
        );
        required(world.done(e), "single_delete")?;
        holds(keys() == 1, "not the key that was deleted")?;
        // The key is tracked by now.
        let (kind, assumed) = (2 + number as c_int % 2, 2);
        let mut e = ptr::null_mut();
        c!(
            world,
            esker_transaction_change_cf,
            handle,
            own.handle,
            kind,
            assumed,
            at(&once),
            once.len(),
            ptr::null(),
            0,
            &mut e
        );
        required(world.done(e), "change of a tracked key")?;
        holds(keys() == 1, "a key that is tracked counts again")?;
        let has = c!(world, esker_transaction_has_snapshot, handle);
        holds(has != 0, "no snapshot with the operation")?;
        let number = self.keys() + (number as usize + 1) % ONCE;
        let (read, mut e) = (key(number, self.keys()), ptr::null_mut());
        let found = c!(
            world,
            esker_transaction_get_for_update_cf,
            handle,
            world.read,
            own.handle,
            at(&read),
            read.len(),
            1,
            0,
            &mut e
        );
        required(world.done(e), "get_for_update")?;
        let checked = self.check_pinned(found, place, number);
        // An optimistic transaction has nothing to note where nothing is validated.
        let read_keys = if self.is(Mode::Pessimistic) { 2 } else { 1 };
        holds(keys() == read_keys, "not the key that was read")?;
        let mut e = ptr::null_mut();
        c!(
            world,
            esker_transaction_undo_get_for_update_cf,
            handle,
            own.handle,
            at(&read),
            read.len(),
            &mut e
        );
        required(world.done(e), "undo_get_for_update")?;
        holds(keys() == 1, "a key that was given back")?;
        checked
    }

    fn check_pinned(&self, found: H, place: usize, number: usize) -> Result<()> {
        let (world, table) = (self.world, &self.tables[place]);
        if found.is_null() {
            return table.check(number, None, self.keys());
        }
        let mut size = 0;
        let value = c!(world, pinnableslice_value, found, &mut size);
        // SAFETY: the slice lives until it is destroyed below.
        let value = unsafe { callbacks::bytes(value, size) }.to_vec();
        c!(world, pinnableslice_destroy, found);
        table.check(number, Some(&value), self.keys())
    }

    /// A commit-time batch is refused by a commit that was not prepared.
    fn unprepared(&self, handle: H, family: u64) -> Result<()> {
        let (world, own) = (self.world, self.family(family).1.handle);
        let batch = c!(world, esker_transaction_commit_time_batch, handle);
        let once = key(self.keys(), self.keys());
        let k = at(&once);
        c!(world, writebatch_put_cf, batch, own, k, once.len(), k, 1);
        let mut e = ptr::null_mut();
        c!(world, transaction_commit, handle, &mut e);
        expect_code(world, world.done(e), 4, "a commit with a commit-time batch")?;
        let mut e = ptr::null_mut();
        c!(world, transaction_rollback, handle, &mut e);
        required(world.done(e), "rollback")?;
        let left = c!(world, writebatch_count, batch);
        let mut e = ptr::null_mut();
        c!(world, esker_transaction_pop_savepoint, handle, &mut e);
        expect_code(world, world.done(e), 1, "a save point that was not set")?;
        holds(left == 0, "a commit-time batch outlives its transaction")
    }
}
