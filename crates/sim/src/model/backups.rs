//! Backups in a workload: made and deleted between the steps, and after a power cut looked for,
//! verified and restored.
//!
//! A backup that was made is there from then on until its deletion begins, whole, and a database
//! restored from it shows the state of the moment in which it was made. Every other backup that is
//! listed is whole as well, and none is damaged: one that was being made, or deleted, is there or
//! not.
//!
//! Used by one thread.

use super::drive::{History, PreparedBatches, Session};
use super::judge::{self, Violation, ViolationKind, violation};
use super::readers;
use super::settings::Settings;
use super::state::Backup;
use crate::disk::SimFs;
use crate::rng::Rng;
use crate::sim_env::SimEnv;
use esker::Db;
use esker_backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions, RestoreOptions};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where backups are.
const BACKUPS: &str = "/backups";
/// Where they are restored to.
const RESTORED: &str = "/restored";

fn engine(world: &SimEnv, settings: &Settings, disk: &SimFs) -> Result<BackupEngine> {
    let mut options = BackupEngineOptions::new(BACKUPS);
    options.share_files_with_checksum = settings.seed.is_multiple_of(2);
    BackupEngine::open(options, &world.env(disk, settings.seed))
}

impl Session {
    /// Makes a backup, or deletes one.
    pub(super) fn back_up(&mut self) -> Result<()> {
        let engine = engine(&self.world, &self.history.settings, &self.disk)?;
        let mut there = (0..self.history.backups.len())
            .filter(|i| self.history.backups[*i].deleted.is_none())
            .collect::<Vec<_>>();
        if there.len() > 2 || !there.is_empty() && self.beside.one_in(3) {
            let at = there.swap_remove(self.beside.index(there.len()));
            let backup = &mut self.history.backups[at];
            backup.deleted = Some(self.disk.position());
            return engine.delete_backup(backup.id);
        }
        let mut how = CreateBackupOptions::default();
        // What is in no log is in no backup without a flush.
        how.flush_before_backup = self.beside.one_in(2) || self.history.settings.unlogged;
        let id = engine.create_new_backup_opt(self.db()?, &how, b"")?;
        self.history.backups.push(Backup {
            id,
            state: self.state().clone(),
            families: self.handles.keys().cloned().collect(),
            made: self.disk.position(),
            deleted: None,
        });
        Ok(())
    }
}

/// Checks that `disk`, cut after operation `at`, holds the backups that it should. One of them is
/// restored and compared; whether there was one.
pub fn check(
    world: &SimEnv,
    history: &History,
    at: usize,
    disk: &SimFs,
    rng: &mut Rng,
) -> Result<bool, Violation> {
    if history.backups.is_empty() {
        return Ok(false);
    }
    let broken =
        |what: &str, e: &Error| violation(ViolationKind::Broken, format!("backup: {what}: {e}"));
    let engine = engine(world, &history.settings, disk).map_err(|e| broken("open", &e))?;
    if let Some((id, e)) = engine.get_corrupted_backups().first() {
        return Err(broken(&format!("{id} is damaged"), e));
    }
    let listed: Vec<u32> = engine
        .get_backup_info()
        .iter()
        .map(|b| b.backup_id)
        .collect();
    for id in &listed {
        let whole = engine.verify_backup(*id, true);
        whole.map_err(|e| broken(&format!("verify {id}"), &e))?;
    }
    let is_sure = |b: &&Backup| b.made <= at && b.deleted.is_none_or(|p| p >= at);
    let sure: Vec<&Backup> = history.backups.iter().filter(is_sure).collect();
    if let Some(gone) = sure.iter().find(|b| !listed.contains(&b.id)) {
        return Err(violation(
            ViolationKind::Lost,
            format!("backup {} is gone", gone.id),
        ));
    }
    if sure.is_empty() {
        return Ok(false);
    }
    let backup = *rng.pick(&sure);
    let how = RestoreOptions::default();
    engine
        .restore_db_from_backup(backup.id, RESTORED, RESTORED, &how)
        .map_err(|e| broken("restore", &e))?;
    let found = open_copy(world, &history.settings, disk, RESTORED)
        .and_then(|db| look(&db))
        .map_err(|e| broken("open what is restored", &e))?;
    let families: Vec<_> = found.prints.keys().cloned().collect();
    if families == backup.families && judge::fits(&backup.state, &found) {
        Ok(true)
    } else {
        let text = format!(
            "backup {} shows another state than it was made of",
            backup.id
        );
        Err(violation(ViolationKind::Broken, text))
    }
}

/// Makes a backup, restores it and deletes it again; where it was restored to.
pub(super) fn restore_new(session: &mut Session) -> Result<&'static str> {
    let engine = engine(&session.world, &session.history.settings, &session.disk)?;
    let mut how = CreateBackupOptions::default();
    how.flush_before_backup = session.upkeep.one_in(2) || session.history.settings.unlogged;
    let id = engine.create_new_backup_opt(session.db()?, &how, b"")?;
    engine.restore_db_from_backup(id, RESTORED, RESTORED, &RestoreOptions::default())?;
    engine.delete_backup(id)?;
    Ok(RESTORED)
}

/// Opens a copy of a database, all of whose files are in `dir`.
pub(super) fn open_copy(
    world: &SimEnv,
    settings: &Settings,
    disk: &SimFs,
    dir: &str,
) -> Result<Db> {
    let mut options = settings.options(world, disk)?;
    options.db.wal_dir.clear();
    options.db.db_paths.clear();
    options.family.cf_paths.clear();
    Db::open(dir, options)
}

/// Reads all that a copy shows.
pub(super) fn look(db: &Db) -> Result<judge::DatabaseContents> {
    let handles: BTreeMap<_, _> = db
        .families()
        .into_iter()
        .map(|f| (Arc::from(f.name()), f))
        .collect();
    let prepared: PreparedBatches = db
        .take_prepared_transactions()
        .into_iter()
        .map(|(name, batch)| (Arc::from(String::from_utf8_lossy(&name)), batch))
        .collect();
    Ok(judge::DatabaseContents {
        prints: readers::prints(db, &handles)?,
        prepared: Some(prepared),
    })
}
