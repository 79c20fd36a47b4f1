//! Transactions of the model's thread: what they read is what they wrote over what is there.
#![allow(unsafe_code)]

use std::ptr;

use super::program::Mode;
use super::table::{Edit, Table, key};
use super::tree::required;
use super::world::{ModelState, at};
use super::writer::{Batch, PreparedTransaction, Sink, Writer, hand};
use crate::api::{H, c};
use crate::{Failure, Result};

pub(super) struct Txn<'a>(pub(super) &'a ModelState, pub(super) H);

impl Sink for Txn<'_> {
    fn put(&mut self, family: H, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v, mut e) = (at(key), at(value), ptr::null_mut());
        c!(
            self.0,
            transaction_put_cf,
            self.1,
            family,
            k,
            key.len(),
            v,
            value.len(),
            &mut e
        );
        self.0.done(e)
    }

    fn merge(&mut self, family: H, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v, mut e) = (at(key), at(value), ptr::null_mut());
        c!(
            self.0,
            transaction_merge_cf,
            self.1,
            family,
            k,
            key.len(),
            v,
            value.len(),
            &mut e
        );
        self.0.done(e)
    }

    fn delete(&mut self, family: H, key: &[u8]) -> Result<()> {
        let mut e = ptr::null_mut();
        c!(
            self.0,
            transaction_delete_cf,
            self.1,
            family,
            at(key),
            key.len(),
            &mut e
        );
        self.0.done(e)
    }

    fn delete_range(&mut self, _: H, _: &[u8], _: &[u8]) -> Result<()> {
        Err(Failure::new("transactions delete no ranges"))
    }
}

impl Writer<'_> {
    pub(super) fn begin(&self) -> Option<H> {
        let (world, owner) = (self.world, self.world.hold().owner);
        let none = ptr::null_mut();
        match self.setting.mode {
            Mode::Plain => None,
            Mode::Optimistic => {
                let options = c!(world, optimistictransaction_options_create);
                let begun = c!(
                    world,
                    optimistictransaction_begin,
                    owner,
                    world.write,
                    options,
                    none
                );
                c!(world, optimistictransaction_options_destroy, options);
                Some(begun)
            }
            Mode::Pessimistic => {
                let options = c!(world, transaction_options_create);
                let begun = c!(world, transaction_begin, owner, world.write, options, none);
                c!(world, transaction_options_destroy, options);
                Some(begun)
            }
        }
    }

    /// The changes of a transaction: without ranges, and none that a prepared one has locked.
    pub(super) fn own_edits(&self, args: &[u64]) -> Vec<(usize, Edit)> {
        let names = self.world.names();
        let locked = |place: usize, at: usize| {
            self.prepared.as_ref().is_some_and(|prepared| {
                let taken = prepared.edits.iter();
                taken
                    .into_iter()
                    .any(|(name, edit)| *name == names[place] && touches(edit, at))
            })
        };
        let mut edits = self.edits(args);
        for (_, edit) in &mut edits {
            if let Edit::Range(from, _) = edit {
                *edit = Edit::Delete(*from);
            }
        }
        edits.retain(|(place, edit)| !locked(*place, number_of(edit)));
        edits
    }

    /// One transaction with a save point in its middle; `how` says how it ends.
    pub(super) fn transaction(&mut self, how: u64, save: u64, args: &[u64]) -> Result<()> {
        let Some(handle) = self.begin() else {
            return Ok(());
        };
        let (edits, world) = (self.own_edits(args), self.world);
        let outcome = self.transact(handle, how, save, &edits);
        c!(world, transaction_destroy, handle);
        match outcome {
            Ok(tables) => self.tables = tables,
            // What it read may be too old to be checked for conflicts.
            Err(failure)
                if self.is(Mode::Optimistic) && failure.to_string().contains("Try again") =>
            {
                world.refused("transaction", &failure)?;
            }
            Err(failure) => return Err(failure.context("transaction")),
        }
        Ok(())
    }

    /// The tables that the transaction leaves.
    fn transact(
        &self,
        handle: H,
        how: u64,
        save: u64,
        edits: &[(usize, Edit)],
    ) -> Result<Vec<Table>> {
        let (world, mut tables) = (self.world, self.tables.clone());
        let (first, second) = edits.split_at(edits.len() / 2);
        self.change(handle, first, &mut tables)?;
        let saved = tables.clone();
        c!(world, transaction_set_savepoint, handle);
        self.change(handle, second, &mut tables)?;
        if save == 0 {
            let mut e = ptr::null_mut();
            c!(world, transaction_rollback_to_savepoint, handle, &mut e);
            world.done(e)?;
            tables = saved;
        } else if world.api.esker_transaction_pop_savepoint.is_some() {
            let mut e = ptr::null_mut();
            c!(world, esker_transaction_pop_savepoint, handle, &mut e);
            world.done(e)?;
        }
        for (place, edit) in edits {
            self.read_in(handle, *place, number_of(edit), &tables[*place])?;
        }
        let mut e = ptr::null_mut();
        if how == 0 {
            c!(world, transaction_rollback, handle, &mut e);
            world.done(e)?;
            return Ok(self.tables.clone());
        }
        c!(world, transaction_commit, handle, &mut e);
        world.done(e)?;
        Ok(tables)
    }

    fn change(&self, handle: H, edits: &[(usize, Edit)], tables: &mut [Table]) -> Result<()> {
        let mut sink = Txn(self.world, handle);
        for (place, edit) in edits {
            hand(
                &mut sink,
                self.family(*place as u64).1.handle,
                edit,
                self.keys(),
            )?;
            tables[*place].apply(edit);
        }
        Ok(())
    }

    pub(super) fn read_in(
        &self,
        handle: H,
        place: usize,
        number: usize,
        table: &Table,
    ) -> Result<()> {
        let (world, name) = (self.world, key(number, self.keys()));
        let (mut size, mut e) = (0, ptr::null_mut());
        let (read, family, k) = (world.read, self.family(place as u64).1.handle, at(&name));
        let got = c!(
            world,
            transaction_get_cf,
            handle,
            read,
            family,
            k,
            4,
            &mut size,
            &mut e
        );
        world.done(e)?;
        table.check(number, world.taken(got, size).as_deref(), self.keys())
    }

    /// Prepares a transaction, which stays until it is resolved.
    pub(super) fn prepare(&mut self, id: u64, args: &[u64]) -> Result<()> {
        if !self.is(Mode::Pessimistic) || self.prepared.is_some() {
            return Ok(());
        }
        let (edits, world) = (self.own_edits(args), self.world);
        let (Some(handle), false) = (self.begin(), edits.is_empty()) else {
            return Ok(());
        };
        let (name, mut e) = (format!("txn{id}"), ptr::null_mut());
        c!(
            world,
            transaction_set_name,
            handle,
            at(name.as_bytes()),
            name.len(),
            &mut e
        );
        required(world.done(e), "set_name")?;
        self.change(handle, &edits, &mut self.tables.clone())?;
        let mut e = ptr::null_mut();
        c!(world, transaction_prepare, handle, &mut e);
        required(world.done(e), "prepare")?;
        let names = world.names();
        let named = |(place, edit): (usize, Edit)| (names[place].clone(), edit);
        let edits = edits.into_iter().map(named).collect();
        self.prepared = Some(PreparedTransaction { handle, edits });
        Ok(())
    }

    /// Commits the prepared transaction, perhaps with changes that were not prepared, or rolls it
    /// back.
    pub(super) fn resolve(&mut self, how: u64, args: &[u64]) -> Result<()> {
        let Some(PreparedTransaction { handle, edits }) = self.prepared.take() else {
            return Ok(());
        };
        let (world, names, mut e) = (self.world, self.world.names(), ptr::null_mut());
        let extra = if world.api.esker_transaction_commit_time_batch.is_some() {
            self.edits(args)
        } else {
            Vec::new()
        };
        if how < 2 && !extra.is_empty() {
            let lent = c!(world, esker_transaction_commit_time_batch, handle);
            let mut batch = Batch(world, lent);
            for (place, edit) in &extra {
                let family = self.family(*place as u64).1.handle;
                hand(&mut batch, family, edit, self.keys())?;
            }
        }
        if how == 0 {
            c!(world, transaction_rollback, handle, &mut e);
        } else {
            c!(world, transaction_commit, handle, &mut e);
            if how == 1 {
                for (place, edit) in &extra {
                    self.tables[*place].apply(edit);
                }
            }
            for (name, edit) in &edits {
                if let Some(place) = names.iter().position(|own| own == name) {
                    self.tables[place].apply(edit);
                }
            }
        }
        c!(world, transaction_destroy, handle);
        required(world.done(e), "the end of a prepared transaction")
    }
}

/// The key of a change of one.
pub(super) fn number_of(edit: &Edit) -> usize {
    match edit {
        Edit::Put(at, _) | Edit::Merge(at, _) | Edit::Delete(at) | Edit::Range(at, _) => *at,
    }
}

fn touches(edit: &Edit, at: usize) -> bool {
    number_of(edit) == at
}
