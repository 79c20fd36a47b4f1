//! Copies of the database, and other views of it: each is compared entry by entry.
#![allow(unsafe_code)]

use std::path::Path;
use std::ptr;

use super::program::Mode;
use super::reads::verify_family;
use super::table::Table;
use super::tree::{self, required};
use super::world::{OpenMethod, SecondView, c_path};
use super::writer::{Follower, Writer};
use crate::api::c;
use crate::{Failure, Result};

fn remove(path: &Path) {
    // It may not be there.
    let _ = std::fs::remove_dir_all(path);
}

impl Writer<'_> {
    /// Compares an opened copy with tables.
    fn compare(&self, side: &SecondView, tables: &[Table], backward: bool) -> Result<()> {
        for (table, family) in tables.iter().zip(&side.families) {
            let of = (side.db, self.world.read, *family);
            verify_family(self.world, of, table, self.keys(), backward)?;
        }
        Ok(())
    }

    /// Opens a copy, compares it, and closes it. One with a prepared transaction is refused.
    fn compare_at(&self, path: &Path, how: OpenMethod<'_>, backward: bool) -> Result<()> {
        let side = match self.world.open_side(path, &self.world.names(), how) {
            Ok(side) => side,
            Err(failure) if self.prepared.is_some() => {
                return self
                    .world
                    .refused("a copy with a prepared transaction", &failure);
            }
            Err(failure) => return Err(failure),
        };
        let compared = self.compare(&side, &self.tables, backward);
        self.world.close_side(side);
        self.world.count("copies compared");
        compared
    }

    pub(super) fn checkpoint(&self, log: u64, how: u64) -> Result<()> {
        let (world, path) = (self.world, self.world.base.join("checkpoint"));
        remove(&path);
        let mut e = ptr::null_mut();
        let checkpoint = c!(world, checkpoint_object_create, world.db(), &mut e);
        world.done(e)?;
        let size = if self.setting.nowal {
            0
        } else {
            [0, 0, 20_000, 100_000_000][log as usize % 4]
        };
        let (text, mut e) = (c_path(&path), ptr::null_mut());
        c!(
            world,
            checkpoint_create,
            checkpoint,
            text.as_ptr(),
            size,
            &mut e
        );
        c!(world, checkpoint_object_destroy, checkpoint);
        required(world.done(e), "checkpoint")?;
        let opening = if how & 1 == 0 {
            OpenMethod::Read
        } else {
            OpenMethod::Write
        };
        let compared = self.compare_at(&path, opening, how & 2 == 0);
        compared.map_err(|f| f.context(format!("the checkpoint, opened with {opening:?}")))?;
        remove(&path);
        Ok(())
    }

    /// A backup, and perhaps the restored one.
    pub(super) fn backup(&self, how: u64) -> Result<()> {
        let (world, base) = (self.world, &self.world.base);
        let (path, restored) = (c_path(&base.join("backup")), base.join("restored"));
        let mut e = ptr::null_mut();
        let engine = c!(
            world,
            backup_engine_open,
            world.quick,
            path.as_ptr(),
            &mut e
        );
        required(world.done(e), "backup_engine_open")?;
        let mut e = ptr::null_mut();
        let flush = u8::from(how == 0 || self.setting.nowal);
        c!(
            world,
            backup_engine_create_new_backup_flush,
            engine,
            world.db(),
            flush,
            &mut e
        );
        let mut outcome = required(world.done(e), "backup");
        if outcome.is_ok() {
            let mut e = ptr::null_mut();
            c!(world, backup_engine_purge_old_backups, engine, 2, &mut e);
            outcome = required(world.done(e), "purge");
        }
        if outcome.is_ok() && world.api.esker_backup_engine_delete_backup.is_some() {
            let mut e = ptr::null_mut();
            c!(
                world,
                esker_backup_engine_delete_backup,
                engine,
                u32::MAX,
                &mut e
            );
            if world.done(e).is_ok() {
                outcome = Err(Failure::new("a backup is deleted that is not there"));
            }
        }
        if outcome.is_ok() {
            remove(&restored);
            let (to, mut e) = (c_path(&restored), ptr::null_mut());
            let options = c!(world, restore_options_create);
            let to = to.as_ptr();
            c!(
                world,
                backup_engine_restore_db_from_latest_backup,
                engine,
                to,
                to,
                options,
                &mut e
            );
            c!(world, restore_options_destroy, options);
            outcome = required(world.done(e), "restore");
        }
        c!(world, backup_engine_close, engine);
        outcome?;
        let how = if how == 1 {
            OpenMethod::Read
        } else {
            OpenMethod::Write
        };
        let compared = self.compare_at(&restored, how, true);
        compared.map_err(|f| f.context(format!("the restored backup, opened with {how:?}")))?;
        remove(&restored);
        Ok(())
    }

    /// Puts what a view sees into files.
    fn settle_log(&self) -> Result<()> {
        if self.setting.nowal {
            tree::flush_all(self.world, self.world.db())?;
        }
        Ok(())
    }

    /// Opens the database read-only beside this writer.
    pub(super) fn read_only(&self) -> Result<()> {
        self.settle_log()?;
        let world = self.world;
        tree::deletions_off(world, world.db(), || {
            let compared = self.compare_at(&world.base.join("db"), OpenMethod::Read, false);
            compared.map_err(|failure| failure.context("read-only beside the writer"))
        })
    }

    pub(super) fn drop_follower(&mut self) {
        if let Some(follower) = self.follower.take() {
            self.world.close_side(follower.side);
        }
    }

    /// Opens a secondary, or lets the one that is open catch up.
    pub(super) fn secondary(&mut self, how: u64) -> Result<()> {
        self.settle_log()?;
        let (world, names) = (self.world, self.world.names());
        if self.prepared.is_some() {
            self.drop_follower();
            return Ok(());
        }
        let same = self
            .follower
            .as_ref()
            .is_some_and(|follower| follower.names == names);
        if how == 0 || !same {
            self.drop_follower();
        }
        let held = self.follower.take();
        let (side, compared) = tree::deletions_off(world, world.db(), || {
            let side = match held {
                Some(follower) => follower.side,
                None => {
                    let own = world.base.join("secondary");
                    remove(&own);
                    world.open_side(&world.base.join("db"), &names, OpenMethod::Secondary(&own))?
                }
            };
            let mut e = ptr::null_mut();
            c!(world, try_catch_up_with_primary, side.db, &mut e);
            let caught = required(world.done(e), "try_catch_up_with_primary");
            let compared = caught.and_then(|()| self.compare(&side, &self.tables, how == 1));
            Ok((side, compared))
        })?;
        self.follower = Some(Follower { side, names });
        compared.map_err(|failure| failure.context("the secondary"))
    }

    /// Takes up the transaction that was prepared before the database was closed.
    pub(super) fn find_prepared(&mut self) -> Result<()> {
        if !self.is(Mode::Pessimistic) {
            return Ok(());
        }
        let (world, mut many) = (self.world, 0);
        if world.api.transactiondb_get_prepared_transactions.is_none() {
            return Ok(());
        }
        let owner = world.hold().owner;
        let found = c!(
            world,
            transactiondb_get_prepared_transactions,
            owner,
            &mut many
        );
        let expected = usize::from(self.prepared.is_some());
        if many != expected {
            return Err(Failure::new(format!(
                "{many} prepared transactions after opening, should be {expected}"
            )));
        }
        if let (Some(prepared), false) = (&mut self.prepared, found.is_null()) {
            // SAFETY: the library says that so many handles are there.
            prepared.handle = unsafe { found.read() };
        }
        if !found.is_null() {
            c!(world, free, found.cast());
        }
        Ok(())
    }
}
