//! Calls that change no contents, in a workload: ranges are compacted with every option, files by
//! their names, levels move, options of the shape change. Some are done by other threads while the
//! workload goes on. And copies: checkpoints and backups are made, opened and compared.
//!
//! They are done where the settings have small levels, so that all of these move. A generator of
//! their own decides, so that the steps stay what they were.

use super::backups;
use super::drive::Session;
use super::judge::{self, Violation, ViolationKind, violation};
use super::state::State;
use crate::disk::SimFs;
use crate::rng::Rng;
use esker::options::{BottommostLevelCompaction, CompactFilesOptions};
use esker::{CheckpointOptions, CompactRangeOptions, Db, FamilyHandle, ReadOptions};
use esker_env::FileSystem;
use esker_status::{ErrorKind, Result};
use std::path::{Path, PathBuf};

/// Where checkpoints are made.
const CHECKPOINT: &str = "/checkpoint";

/// A call that may be refused for one of these reasons.
fn may(done: Result<()>, kinds: &[ErrorKind]) -> Result<()> {
    done.or_else(|e| {
        if kinds.contains(&e.kind()) {
            Ok(())
        } else {
            Err(e)
        }
    })
}

/// One call that changes no contents.
pub fn call(db: &Db, family: &FamilyHandle, rng: &mut Rng) -> Result<()> {
    let mut edge = || {
        let key = format!("{:04}", rng.below(150)).into_bytes();
        (!rng.one_in(3)).then_some(key)
    };
    let (mut begin, mut end) = (edge(), edge());
    if begin.is_some() && end.is_some() && begin > end {
        std::mem::swap(&mut begin, &mut end);
    }
    let (begin, end) = (begin.as_deref(), end.as_deref());
    match rng.below(10) {
        0..5 => {
            let mut how = CompactRangeOptions::default();
            how.exclusive_manual_compaction = rng.one_in(4);
            let bottommost = BottommostLevelCompaction::from_number(rng.below(4) as u8);
            how.bottommost_level_compaction = bottommost.unwrap_or_default();
            how.max_subcompactions = rng.below(3) as u32;
            how.change_level = rng.one_in(3);
            how.target_level = rng.below(6) as i32 - 1;
            let refusals: &[ErrorKind] = if how.change_level {
                &[
                    ErrorKind::NotSupported,
                    ErrorKind::Busy,
                    ErrorKind::InvalidArgument,
                ]
            } else {
                &[]
            };
            may(db.compact_range_opt(family, begin, end, &how), refusals)
        }
        5..8 => {
            let files = db.live_files_metadata().into_iter();
            let own = files.filter(|f| f.family == family.name());
            let own: Vec<PathBuf> = own.map(|f| PathBuf::from(f.name)).collect();
            if own.is_empty() {
                return Ok(());
            }
            let chosen: Vec<&PathBuf> = (0..1 + rng.below(3)).map(|_| rng.pick(&own)).collect();
            let mut how = CompactFilesOptions::default();
            how.output_file_size_limit = 600;
            how.allow_trivial_move = rng.one_in(2);
            let done = db.compact_files_opt(family, &chosen, rng.below(7) as u8, &how);
            let refusals = [ErrorKind::Aborted, ErrorKind::InvalidArgument];
            may(done.map(|_| ()), &refusals)
        }
        8 => db.suggest_compact_range(family, begin, end),
        _ => {
            let done = db.promote_l0(family, rng.below(5) as u8);
            may(done, &[ErrorKind::InvalidArgument])
        }
    }
}

/// Options of the shape, and values that they get while the database is open.
const SHAPES: &[(&str, &[&str])] = &[
    ("max_bytes_for_level_base", &["1500", "4000"]),
    ("max_bytes_for_level_multiplier", &["2", "3"]),
    ("target_file_size_base", &["500", "1500"]),
    ("level0_file_num_compaction_trigger", &["1", "2", "4"]),
    ("periodic_compaction_seconds", &["0", "30", "86400"]),
];

impl Session {
    /// Does some upkeep, or mostly nothing.
    pub(super) fn step_upkeep(&mut self) -> Result<()> {
        if !self.history.settings.is_small {
            return Ok(());
        }
        match self.upkeep.below(30) {
            0..3 => {
                let family = self.family_for_upkeep();
                call(&self.db()?.clone(), &family, &mut self.upkeep)
            }
            3 => {
                let family = self.family_for_upkeep();
                let (name, values) = *self.upkeep.pick(SHAPES);
                let value: &str = values[self.upkeep.index(values.len())];
                self.db()?.set_options(&family, &[(name, value)])
            }
            4 => self.storm(),
            5 => {
                let hours = *self.upkeep.pick(&["", "0:00-23:59", "23:30-04:00"]);
                let changes = [("daily_offpeak_time_utc", hours)];
                self.db()?.set_db_options(&changes)
            }
            _ => Ok(()),
        }
    }

    fn family_for_upkeep(&mut self) -> FamilyHandle {
        let handles: Vec<_> = self.handles.values().cloned().collect();
        self.upkeep.pick(&handles).clone()
    }

    /// Two threads call while the workload writes, flushes and ingests.
    fn storm(&mut self) -> Result<()> {
        let db = self.db()?.clone();
        let mut threads = Vec::new();
        let said = esker_sync::Arc::new(esker_sync::Mutex::new(esker_sync::Rank::LEAF, Vec::new()));
        for _ in 0..2 {
            let (family, mut rng) = (self.family_for_upkeep(), self.upkeep.fork());
            let (db2, said) = (db.clone(), esker_sync::Arc::clone(&said));
            let body = Box::new(move || {
                let done = (0..4).try_for_each(|_| call(&db2, &family, &mut rng));
                said.lock().extend(done.err());
            });
            threads.push(db.env().executor.spawn("upkeep", body)?);
        }
        let done = (0..6).try_for_each(|_| match self.upkeep.below(8) {
            0..2 => self.flush_for_upkeep(),
            2 if self.history.settings.ingests => self.ingest(),
            _ => self.write(),
        });
        threads.into_iter().for_each(|t| t.join());
        drop(db);
        done?;
        let said = said.lock().pop();
        said.map_or(Ok(()), Err)
    }

    fn flush_for_upkeep(&mut self) -> Result<()> {
        let family = self.family_for_upkeep();
        self.db()?
            .flush_cf(&family, &esker::FlushOptions::default())
    }

    /// Makes a checkpoint, opens it, and compares it entry by entry.
    pub fn check_checkpoint(&mut self) -> Result<(), Violation> {
        let broken = |e: esker::Error| violation(ViolationKind::Broken, format!("checkpoint: {e}"));
        let mut how = CheckpointOptions::default();
        // What is in no log is in no copy without a flush.
        if !self.history.settings.unlogged {
            how.log_size_for_flush = *self.upkeep.pick(&[0, 500, u64::MAX]);
        }
        let made = self.db().and_then(|db| db.checkpoint_opt(CHECKPOINT, &how));
        made.map_err(broken)?;
        let disk = self.disk.clone();
        self.compare_copy(CHECKPOINT, "a checkpoint")?;
        remove_all(&disk, CHECKPOINT).map_err(broken)
    }

    /// Makes a backup, restores it, and compares it entry by entry.
    pub fn check_backup(&mut self) -> Result<(), Violation> {
        let broken = |e: esker::Error| violation(ViolationKind::Broken, format!("backup: {e}"));
        let restored = backups::restore_new(self).map_err(broken)?;
        let disk = self.disk.clone();
        self.compare_copy(restored, "a restored backup")?;
        remove_all(&disk, restored).map_err(broken)
    }

    fn compare_copy(&self, dir: &str, what: &str) -> Result<(), Violation> {
        let broken = |e: esker::Error| violation(ViolationKind::Broken, format!("{what}: {e}"));
        let db = backups::open_copy(&self.world, &self.history.settings, &self.disk, dir);
        let db = db.map_err(broken)?;
        let found = backups::look(&db).map_err(broken)?;
        let families: Vec<_> = found.prints.keys().collect();
        let wanted: Vec<_> = self.handles.keys().collect();
        if families != wanted || !judge::fits(self.state(), &found) {
            let text = format!("{what} shows another state than it was made of");
            return Err(violation(ViolationKind::Broken, text));
        }
        gets(&db, self.state())
            .map_err(broken)?
            .map_or(Ok(()), |text| {
                Err(violation(ViolationKind::Broken, format!("{what}: {text}")))
            })?;
        db.close().map_err(broken)
    }
}

/// Reads every key; what is wrong with the first that is.
fn gets(db: &Db, state: &State) -> Result<Option<String>> {
    for family in db.families() {
        for (key, value) in state.entries(family.name()) {
            let found = db.get_opt(&family, key, &ReadOptions::default(), None)?;
            if found.as_deref() != Some(value) {
                let key = key.escape_ascii();
                return Ok(Some(format!("get of {key} in {} is wrong", family.name())));
            }
        }
    }
    Ok(None)
}

/// Removes the files of a directory, and it.
fn remove_all(disk: &SimFs, dir: &str) -> Result<()> {
    let dir = Path::new(dir);
    for entry in disk.read_dir(dir)? {
        disk.remove_file(&dir.join(entry.name))?;
    }
    disk.remove_dir(dir)
}
