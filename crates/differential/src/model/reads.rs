//! Reads of the model's thread, each with the one answer that is right.
#![allow(unsafe_code)]

use std::ptr;

use super::held::{Cursor, Snapshot};
use super::table::{Table, key};
use super::world::{ModelState, at};
use super::writer::Writer;
use crate::answer::show;
use crate::api::{H, T, c};
use crate::callbacks::bytes;
use crate::{Failure, Result};

/// Where an iterator stands on, or none.
fn standing<'a>(world: &ModelState, iterator: H) -> Result<Option<(&'a [u8], &'a [u8])>> {
    if c!(world, iter_valid, iterator) == 0 {
        let mut e = ptr::null_mut();
        c!(world, iter_get_error, iterator, &mut e);
        return world.done(e).map(|()| None);
    }
    let (mut k, mut v) = (0, 0);
    let (key, value) = (
        c!(world, iter_key, iterator, &mut k),
        c!(world, iter_value, iterator, &mut v),
    );
    // SAFETY: both stay until the iterator moves.
    Ok(Some(unsafe { (bytes(key, k), bytes(value, v)) }))
}

/// Fails unless an iterator stands on the key `place` of the table, or nowhere.
pub(super) fn check_standing(
    world: &ModelState,
    iterator: H,
    table: &Table,
    place: Option<usize>,
    keys: usize,
) -> Result<()> {
    let wanted = place.map(|number| key(number, keys));
    match (standing(world, iterator)?, wanted) {
        (None, None) => Ok(()),
        (Some((found, value)), Some(wanted)) if found == wanted => {
            table.check(place.unwrap_or(0), Some(value), keys)
        }
        (found, wanted) => {
            let text = |key: Option<&[u8]>| key.map_or("the end".to_owned(), show);
            Err(Failure::new(format!(
                "the iterator is at {}, should be at {}",
                text(found.map(|(key, _)| key)),
                text(wanted.as_ref().map(<[u8; 4]>::as_slice))
            )))
        }
    }
}

/// Reads all keys of a family, by key and in order.
pub(super) fn verify_family(
    world: &ModelState,
    (db, read, family): (H, H, H),
    table: &Table,
    keys: usize,
    backward: bool,
) -> Result<()> {
    for number in 0..table.entries.len() {
        let (name, mut size, mut e) = (key(number, keys), 0, ptr::null_mut());
        let got = c!(
            world,
            get_cf,
            db,
            read,
            family,
            at(&name),
            4,
            &mut size,
            &mut e
        );
        world.done(e)?;
        let got = world.taken(got, size);
        let checked = table.check(number, got.as_deref(), keys);
        checked.map_err(|failure| failure.context("get"))?;
    }
    let iterator = c!(world, create_iterator_cf, db, read, family);
    let scanned = scan(world, iterator, table, keys, backward);
    c!(world, iter_destroy, iterator);
    scanned.map_err(|failure| failure.context(if backward { "scan back" } else { "scan" }))
}

fn scan(world: &ModelState, iterator: H, table: &Table, keys: usize, backward: bool) -> Result<()> {
    let full = |number: &usize| table.entries[*number].is_some();
    let mut numbers: Vec<usize> = (0..table.entries.len()).filter(full).collect();
    if backward {
        numbers.reverse();
        c!(world, iter_seek_to_last, iterator);
    } else {
        c!(world, iter_seek_to_first, iterator);
    }
    for number in numbers {
        check_standing(world, iterator, table, Some(number), keys)?;
        if backward {
            c!(world, iter_prev, iterator);
        } else {
            c!(world, iter_next, iterator);
        }
    }
    check_standing(world, iterator, table, None, keys)
}

impl Writer<'_> {
    /// The options and the table of a read: of a snapshot when one of this number is held.
    pub(super) fn view(&self, place: usize, name: &str, snapshot: u64) -> (H, Table) {
        let read = c!(self.world, readoptions_create);
        c!(self.world, readoptions_set_total_order_seek, read, 1);
        let held = self
            .snapshots
            .get(snapshot as usize)
            .and_then(Option::as_ref);
        let old = |snapshot: &Snapshot| {
            let found = snapshot.tables.iter().find(|(own, _)| own == name)?;
            Some((snapshot.handle, found.1.clone()))
        };
        if let Some((handle, table)) = held.and_then(old) {
            c!(self.world, readoptions_set_snapshot, read, handle);
            return (read, table);
        }
        (read, self.tables[place].clone())
    }

    pub(super) fn get(&self, family: u64, number: u64, snapshot: u64) -> Result<()> {
        let (place, family) = self.family(family);
        let (read, table) = self.view(place, &family.name, snapshot);
        let number = number as usize % table.entries.len();
        let (world, name) = (self.world, key(number, self.keys()));
        let (mut size, mut e) = (0, ptr::null_mut());
        let (db, handle, k) = (world.db(), family.handle, at(&name));
        let got = c!(world, get_cf, db, read, handle, k, 4, &mut size, &mut e);
        c!(world, readoptions_destroy, read);
        world.done(e)?;
        table.check(number, world.taken(got, size).as_deref(), self.keys())
    }

    pub(super) fn multi_get(&self, snapshot: u64, args: &[u64]) -> Result<()> {
        let world = self.world;
        let snapshot = self
            .snapshots
            .get(snapshot as usize)
            .and_then(Option::as_ref);
        let mut asked = Vec::new();
        for one in args.chunks_exact(2) {
            let (place, family) = self.family(one[0]);
            let old = snapshot.map(|s| s.tables.iter().find(|(name, _)| *name == family.name));
            let table = match old {
                None => &self.tables[place],
                Some(Some((_, table))) => table,
                Some(None) => continue,
            };
            let number = one[1] as usize % table.entries.len();
            asked.push((family.handle, number, table, key(number, self.keys())));
        }
        let read = c!(world, readoptions_create);
        if let Some(snapshot) = snapshot {
            c!(world, readoptions_set_snapshot, read, snapshot.handle);
        }
        let families: Vec<H> = asked.iter().map(|one| one.0).collect();
        let keys: Vec<T> = asked.iter().map(|one| at(&one.3)).collect();
        let (many, sizes) = (asked.len(), vec![4_usize; asked.len()]);
        let mut values = vec![ptr::null_mut(); many];
        let (mut lengths, mut errors) = (vec![0_usize; many], vec![ptr::null_mut(); many]);
        c!(
            world,
            multi_get_cf,
            world.db(),
            read,
            families.as_ptr(),
            many,
            keys.as_ptr(),
            sizes.as_ptr(),
            values.as_mut_ptr(),
            lengths.as_mut_ptr(),
            errors.as_mut_ptr()
        );
        c!(world, readoptions_destroy, read);
        let mut outcome = Ok(());
        for (index, (_, number, table, _)) in asked.iter().enumerate() {
            let got = world.taken(values[index], lengths[index]);
            let ended = world.done(errors[index]);
            let checked = ended.and_then(|()| table.check(*number, got.as_deref(), self.keys()));
            outcome = outcome.and(checked);
        }
        outcome
    }

    pub(super) fn batched_multi_get(
        &self,
        family: u64,
        snapshot: u64,
        sorted: u64,
        args: &[u64],
    ) -> Result<()> {
        let (place, family) = self.family(family);
        let (read, table) = self.view(place, &family.name, snapshot);
        let (world, all) = (self.world, table.entries.len());
        let mut numbers: Vec<usize> = args.iter().map(|arg| *arg as usize % all).collect();
        if sorted == 1 {
            numbers.sort_unstable();
        }
        let names: Vec<[u8; 4]> = numbers.iter().map(|n| key(*n, self.keys())).collect();
        let keys: Vec<T> = names.iter().map(|name| at(name)).collect();
        let (many, sizes) = (names.len(), vec![4_usize; names.len()]);
        let (mut values, mut errors) = (vec![ptr::null_mut(); many], vec![ptr::null_mut(); many]);
        c!(
            world,
            batched_multi_get_cf,
            world.db(),
            read,
            family.handle,
            many,
            keys.as_ptr(),
            sizes.as_ptr(),
            values.as_mut_ptr(),
            errors.as_mut_ptr(),
            sorted as u8
        );
        c!(world, readoptions_destroy, read);
        let mut outcome = Ok(());
        for (index, number) in numbers.iter().enumerate() {
            let (ended, mut size) = (world.done(errors[index]), 0);
            let checked = ended.and_then(|()| {
                if values[index].is_null() {
                    return table.check(*number, None, self.keys());
                }
                let value = c!(world, pinnableslice_value, values[index], &mut size);
                // SAFETY: the slice stays until it is destroyed.
                table.check(*number, Some(unsafe { bytes(value, size) }), self.keys())
            });
            if !values[index].is_null() {
                c!(world, pinnableslice_destroy, values[index]);
            }
            outcome = outcome.and(checked);
        }
        outcome
    }

    /// Reads everything.
    pub(super) fn verify(&self, backward: bool) -> Result<()> {
        let world = self.world;
        for (table, family) in self.tables.iter().zip(world.handles()) {
            let of = (world.db(), world.read, family);
            verify_family(world, of, table, self.keys(), backward)?;
        }
        Ok(())
    }

    pub(super) fn snapshot(&mut self, index: usize) -> Result<()> {
        self.release(index);
        let names = self.world.names();
        let tables = names.into_iter().zip(self.tables.iter().cloned()).collect();
        let handle = c!(self.world, create_snapshot, self.world.db());
        self.snapshots[index % 4] = Some(Snapshot { handle, tables });
        Ok(())
    }

    pub(super) fn release(&mut self, index: usize) {
        if let Some(snapshot) = self.snapshots[index % 4].take() {
            c!(
                self.world,
                release_snapshot,
                self.world.db(),
                snapshot.handle
            );
        }
    }

    pub(super) fn verify_snapshot(&self, index: usize, backward: bool) -> Result<()> {
        if self.snapshots[index % 4].is_none() {
            return Ok(());
        }
        for (place, name) in self.world.names().iter().enumerate() {
            let family = self.world.family(place as u64).handle;
            let (read, table) = self.view(place, name, (index % 4) as u64);
            // A family that was made later is read as it is now.
            let of = (self.world.db(), read, family);
            let outcome = verify_family(self.world, of, &table, self.keys(), backward);
            c!(self.world, readoptions_destroy, read);
            outcome.map_err(|failure| failure.context("snapshot"))?;
        }
        Ok(())
    }

    /// Opens an iterator: place, family, snapshot, flags, a key and a length for bounds.
    pub(super) fn iterator(&mut self, args: &[u64]) -> Result<()> {
        let arg = |index: usize| args.get(index).copied().unwrap_or(0);
        let index = arg(0) as usize % 6;
        self.drop_cursor(index);
        let (place, family) = self.family(arg(1));
        let (read, table) = self.view(place, &family.name, arg(2));
        let flags = arg(3);
        let all = table.entries.len();
        let low = arg(4) as usize % all;
        let length = super::kinds::LENGTHS[arg(5) as usize % 6];
        let (from, to) = match flags & 3 {
            0 => (0, all),
            1 => (low, all),
            2 => (0, low),
            _ => (low, (low + length).min(all - 1)),
        };
        let (lower, upper) = (
            Box::new(key(from, self.keys())),
            Box::new(key(to, self.keys())),
        );
        if from > 0 {
            c!(
                self.world,
                readoptions_set_iterate_lower_bound,
                read,
                at(&*lower),
                4
            );
        }
        if to < all {
            c!(
                self.world,
                readoptions_set_iterate_upper_bound,
                read,
                at(&*upper),
                4
            );
        }
        if flags & 4 != 0 {
            c!(self.world, readoptions_set_readahead_size, read, 4096);
        }
        c!(
            self.world,
            readoptions_set_pin_data,
            read,
            u8::from(flags & 8 != 0)
        );
        let handle = c!(
            self.world,
            create_iterator_cf,
            self.world.db(),
            read,
            family.handle
        );
        self.cursors[index] = Some(Cursor {
            handle,
            read,
            table,
            family: family.name,
            from,
            to,
            _lower: lower,
            _upper: upper,
            place: None,
            pinned: (arg(2) as usize) < 4,
            trace: String::new(),
        });
        Ok(())
    }

    pub(super) fn drop_cursor(&mut self, index: usize) {
        if let Some(cursor) = self.cursors[index % 6].take() {
            c!(self.world, iter_destroy, cursor.handle);
            c!(self.world, readoptions_destroy, cursor.read);
        }
    }

    /// Moves an iterator, and looks at each place.
    pub(super) fn steps(&mut self, index: usize, args: &[u64]) -> Result<()> {
        let (world, keys) = (self.world, self.keys());
        let Some(cursor) = &mut self.cursors[index % 6] else {
            return Ok(());
        };
        for step in args.chunks_exact(2) {
            let all = cursor.table.entries.len();
            let number = step[1] as usize % all;
            let (name, iterator) = (key(number, keys), cursor.handle);
            let what = if cursor.place.is_none() {
                step[0] % 4
            } else {
                step[0]
            };
            let (place, text) = match (what, cursor.place) {
                (0, _) => {
                    c!(world, iter_seek_to_first, iterator);
                    (cursor.next_from(0), "first".to_owned())
                }
                (1, _) => {
                    c!(world, iter_seek_to_last, iterator);
                    (cursor.last_before(all), "last".to_owned())
                }
                (2, _) => {
                    c!(world, iter_seek, iterator, at(&name), 4);
                    (cursor.next_from(number), format!("seek {}", show(&name)))
                }
                (4..=6, Some(place)) => {
                    c!(world, iter_next, iterator);
                    (cursor.next_from(place + 1), "next".to_owned())
                }
                (7.., Some(place)) => {
                    c!(world, iter_prev, iterator);
                    (cursor.last_before(place), "prev".to_owned())
                }
                _ => {
                    c!(world, iter_seek_for_prev, iterator, at(&name), 4);
                    (
                        cursor.last_before(number + 1),
                        format!("back from {}", show(&name)),
                    )
                }
            };
            cursor.place = place;
            cursor.trace = format!("{}, {text}", cursor.trace)
                .chars()
                .rev()
                .take(120)
                .collect();
            cursor.trace = cursor.trace.chars().rev().collect();
            let checked = check_standing(world, iterator, &cursor.table, place, keys);
            world.count("steps of iterators");
            checked.map_err(|failure| failure.context(format!("after {}", cursor.trace)))?;
        }
        Ok(())
    }

    /// Renews an iterator; one of a snapshot stays.
    pub(super) fn refresh(&mut self, index: usize) -> Result<()> {
        let names = self.world.names();
        let tables = &self.tables;
        let Some(cursor) = &mut self.cursors[index % 6] else {
            return Ok(());
        };
        let place = names.iter().position(|name| *name == cursor.family);
        let (Some(place), false) = (place, cursor.pinned) else {
            return Ok(());
        };
        let mut e = ptr::null_mut();
        c!(self.world, iter_refresh, cursor.handle, &mut e);
        self.world.done(e)?;
        cursor.table = tables[place].clone();
        (cursor.place, cursor.trace) = (None, "refreshed".to_owned());
        Ok(())
    }

    /// Reads the keys that have the prefix of a key, from it on.
    pub(super) fn prefix(&self, family: u64, number: u64, many: u64) -> Result<()> {
        let length = ["fixed:2", "fixed:3"]
            .iter()
            .position(|text| self.setting.options.contains(text));
        let Some(length) = length.map(|index| index + 2) else {
            return Ok(());
        };
        let (place, family) = self.family(family);
        let (world, table) = (self.world, &self.tables[place]);
        let number = number as usize % self.keys();
        let name = key(number, self.keys());
        let read = c!(world, readoptions_create);
        c!(world, readoptions_set_prefix_same_as_start, read, 1);
        let iterator = c!(world, create_iterator_cf, world.db(), read, family.handle);
        c!(world, iter_seek, iterator, at(&name), 4);
        let same = |n: &usize| key(*n, self.keys())[..length] == name[..length];
        let full = |n: &usize| table.entries[*n].is_some();
        let mut expected = (number..table.entries.len()).take_while(same).filter(full);
        let mut outcome = Ok(());
        for _ in 0..=many {
            let next = expected.next();
            outcome = check_standing(world, iterator, table, next, self.keys());
            if outcome.is_err() || next.is_none() {
                break;
            }
            c!(world, iter_next, iterator);
        }
        c!(world, iter_destroy, iterator);
        c!(world, readoptions_destroy, read);
        outcome
    }

    pub(super) fn drop_tail(&mut self) {
        if let Some((iterator, read, _)) = self.tail.take() {
            c!(self.world, iter_destroy, iterator);
            c!(self.world, readoptions_destroy, read);
        }
    }

    /// Seeks with a tailing iterator that is held for long, and goes on from there.
    pub(super) fn tailing(&mut self, family: u64, number: u64, many: u64, new: bool) -> Result<()> {
        let world = self.world;
        let names = world.names();
        if self.tail.is_none() || new {
            self.drop_tail();
            let (_, family) = self.family(family);
            let read = c!(world, readoptions_create);
            c!(world, readoptions_set_total_order_seek, read, 1);
            c!(world, readoptions_set_tailing, read, 1);
            let iterator = c!(world, create_iterator_cf, world.db(), read, family.handle);
            self.tail = Some((iterator, read, family.name));
        }
        let Some((iterator, _, name)) = &self.tail else {
            return Ok(());
        };
        let Some(place) = names.iter().position(|own| own == name) else {
            self.drop_tail();
            return Ok(());
        };
        let table = &self.tables[place];
        let number = number as usize % table.entries.len();
        let name = key(number, self.keys());
        c!(world, iter_seek, *iterator, at(&name), 4);
        let full = |n: &usize| table.entries[*n].is_some();
        let mut expected = (number..table.entries.len()).filter(full);
        for _ in 0..=many {
            let next = expected.next();
            check_standing(world, *iterator, table, next, self.keys())?;
            if next.is_none() {
                break;
            }
            c!(world, iter_next, *iterator);
        }
        Ok(())
    }
}
