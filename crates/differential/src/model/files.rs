//! Table files that come in, files that go, and families that are made and dropped.
#![allow(unsafe_code)]

use std::ptr;

use super::reads::verify_family;
use super::table::{Edit, Table, key, value};
use super::tree::{self, required};
use super::world::{ModelState, at, c_path, c_text, lock};
use super::writer::{Sink, Writer, hand};
use crate::api::{H, c};
use crate::{Failure, Result};

struct Tables<'a>(&'a ModelState, H);

impl Sink for Tables<'_> {
    fn put(&mut self, _: H, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v, mut e) = (at(key), at(value), ptr::null_mut());
        c!(
            self.0,
            sstfilewriter_put,
            self.1,
            k,
            key.len(),
            v,
            value.len(),
            &mut e
        );
        self.0.done(e)
    }

    fn merge(&mut self, _: H, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v, mut e) = (at(key), at(value), ptr::null_mut());
        c!(
            self.0,
            sstfilewriter_merge,
            self.1,
            k,
            key.len(),
            v,
            value.len(),
            &mut e
        );
        self.0.done(e)
    }

    fn delete(&mut self, _: H, key: &[u8]) -> Result<()> {
        let mut e = ptr::null_mut();
        c!(
            self.0,
            sstfilewriter_delete,
            self.1,
            at(key),
            key.len(),
            &mut e
        );
        self.0.done(e)
    }

    fn delete_range(&mut self, _: H, from: &[u8], to: &[u8]) -> Result<()> {
        let (f, t, mut e) = (at(from), at(to), ptr::null_mut());
        c!(
            self.0,
            sstfilewriter_delete_range,
            self.1,
            f,
            from.len(),
            t,
            to.len(),
            &mut e
        );
        self.0.done(e)
    }
}

impl Writer<'_> {
    /// Adds a file: a few keys, or a run of them, perhaps with a deleted range below them.
    pub(super) fn ingest(&mut self, args: &[u64]) -> Result<()> {
        let arg = |index: usize| args.get(index).copied().unwrap_or(0);
        let (keys, world) = (self.keys(), self.world);
        let (place, family) = self.family(arg(0));
        let mut flags = arg(1);
        if self.snapshots.iter().any(Option::is_some) {
            flags &= !6; // an older snapshot would see what the file has
        }
        let first = arg(2) as usize % keys;
        let mut edits: Vec<Edit> = Vec::new();
        let below = self.setting.ranges && arg(4) == 0;
        let run = if arg(4) < 3 {
            super::kinds::LENGTHS[arg(3) as usize % 6]
        } else {
            0
        };
        for (offset, number) in (first..(first + run).min(keys))
            .step_by(1 + arg(5) as usize % 4)
            .enumerate()
        {
            edits.push(Edit::Put(
                number,
                value(arg(5), (offset as u64 + arg(3)) % 4),
            ));
        }
        let own = args.get(6..).unwrap_or_default();
        edits.extend(self.edits(own).into_iter().map(|(_, edit)| edit));
        // Without a range of its own for a deletion, and each key once, in order.
        edits.retain(|edit| !matches!(edit, Edit::Range(..)));
        let of = |edit: &Edit| match edit {
            Edit::Put(at, _) | Edit::Merge(at, _) | Edit::Delete(at) | Edit::Range(at, _) => *at,
        };
        edits.sort_by_key(of);
        edits.dedup_by_key(|edit| of(edit));
        if below {
            edits.insert(0, Edit::range(first, arg(3), keys));
        }
        if edits
            .iter()
            .all(|edit| matches!(edit, Edit::Range(from, to) if from >= to))
        {
            return Ok(());
        }
        let path = tree::table_file(world, |writer| {
            let mut sink = Tables(world, writer);
            edits
                .iter()
                .try_for_each(|edit| hand(&mut sink, family.handle, edit, keys))
        });
        let path = path.map_err(|error| error.context("a table file"))?;
        match tree::add_file(world, world.db(), family.handle, &path, flags) {
            Ok(()) => edits.iter().for_each(|edit| self.tables[place].apply(edit)),
            // A file that may wait for no flush, or has to go to the last level, may be refused.
            Err(error) if flags & 24 == 24 || flags & 32 != 0 => world.refused("ingest", &error)?,
            Err(error) if error.to_string().contains("Try again") => {
                world.refused("ingest", &error)?;
            }
            Err(error) => return Err(error.context("ingest")),
        }
        Ok(())
    }

    /// Deletes the files that lie in a range. There an older version may answer until the range is
    /// deleted; outside nothing changes.
    pub(super) fn files_in_range(&mut self, family: u64, from: u64, size: u64) -> Result<()> {
        if !self.setting.ranges {
            return Ok(());
        }
        let (keys, world) = (self.keys(), self.world);
        let (place, family) = self.family(family);
        let Edit::Range(from, to) = Edit::range(from as usize % keys, size, keys) else {
            return Ok(());
        };
        // What snapshots see there is not known any more.
        (0..4).for_each(|index| self.release(index));
        let (begin, last, mut e) = (key(from, keys), key(to - 1, keys), ptr::null_mut());
        let (db, handle, b, l) = (world.db(), family.handle, at(&begin), at(&last));
        c!(
            world,
            delete_file_in_range_cf,
            db,
            handle,
            b,
            4,
            l,
            4,
            &mut e
        );
        required(world.done(e), "files_in_range")?;
        for number in (0..from).chain(to..self.tables[place].entries.len()) {
            self.get(place as u64, number as u64, 99)?;
        }
        let range = Edit::Range(from, to);
        hand(self, family.handle, &range, keys)?;
        self.tables[place].apply(&range);
        Ok(())
    }

    /// Exports a family, makes one of what came out, and compares both.
    pub(super) fn import(&mut self, family: u64, moves: u64) -> Result<()> {
        let world = self.world;
        if world.names().len() >= 6 {
            return Ok(());
        }
        let (place, family) = self.family(family);
        let directory = world.base.join("export");
        let _ = std::fs::remove_dir_all(&directory); // it may not be there
        let mut e = ptr::null_mut();
        let checkpoint = c!(world, checkpoint_object_create, world.db(), &mut e);
        world.done(e)?;
        let (text, mut e) = (c_path(&directory), ptr::null_mut());
        let (handle, to) = (family.handle, text.as_ptr());
        let metadata = c!(
            world,
            checkpoint_export_column_family,
            checkpoint,
            handle,
            to,
            &mut e
        );
        c!(world, checkpoint_object_destroy, checkpoint);
        required(world.done(e), "export")?;
        let (name, mut e) = (self.new_name(), ptr::null_mut());
        let options = c!(world, import_column_family_options_create);
        c!(
            world,
            import_column_family_options_set_move_files,
            options,
            moves as u8
        );
        let (db, own, text) = (world.db(), world.options, c_text(&name));
        let made = c!(
            world,
            create_column_family_with_import,
            db,
            own,
            text.as_ptr(),
            options,
            metadata,
            &mut e
        );
        c!(world, import_column_family_options_destroy, options);
        c!(world, export_import_files_metadata_destroy, metadata);
        match world.done(e) {
            Ok(()) => {}
            // A family without files cannot be imported.
            Err(error) if error.to_string().contains("empty") => {
                return world.refused("import", &error);
            }
            Err(error) => return Err(error.context("import")),
        }
        let table = self.tables[place].clone();
        let checked = verify_family(world, (db, world.read, made), &table, self.keys(), false);
        self.add_family(name, made, table);
        checked.map_err(|failure| failure.context("imported"))
    }

    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("made{}", self.made)
    }

    fn add_family(&mut self, name: String, handle: H, table: Table) {
        lock(&self.world.families).push(super::world::Family { name, handle });
        self.tables.push(table);
    }

    pub(super) fn make_family(&mut self) -> Result<()> {
        let world = self.world;
        if world.names().len() >= 6 {
            return Ok(());
        }
        let (name, mut e) = (self.new_name(), ptr::null_mut());
        let text = c_text(&name);
        let (db, own, to) = (world.db(), world.options, text.as_ptr());
        let made = c!(world, create_column_family, db, own, to, &mut e);
        required(world.done(e), "make_family")?;
        let table = Table::new(self.keys());
        self.add_family(name, made, table);
        Ok(())
    }

    /// Drops a family. Iterators of it go on.
    pub(super) fn drop_family(&mut self, number: u64) -> Result<()> {
        let world = self.world;
        let place = number as usize % self.tables.len();
        if place == 0 || self.prepared.is_some() {
            return Ok(());
        }
        let family = lock(&world.families).remove(place);
        lock(&world.dropped).push(family.handle);
        self.tables.remove(place);
        let mut e = ptr::null_mut();
        c!(world, drop_column_family, world.db(), family.handle, &mut e);
        required(
            world.done(e).map_err(|e| Failure::new(e.to_string())),
            "drop_family",
        )
    }
}
