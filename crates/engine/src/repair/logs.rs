//! Tables made of the logs. They are written before CURRENT names the new MANIFEST, as all tables
//! of a repair, so that no opening replays these logs again.
//!
//! The logs are replayed twice by the code of recovery. The first time nothing is written: it tells
//! which tables there will be, for a dry run and for the plan of merges. The second time each
//! memtable becomes a table of level 0, entry by entry. Operands stay operands and old versions
//! stay, so that neither merge operators nor compaction filters are needed.
//!
//! A prepared section that is neither committed nor undone goes into a new log, which the new
//! MANIFEST keeps. RocksDB's repairer inserts such sections as if they were committed.

use super::extent::Extent;
use super::found::{LogContents, ManifestTrees};
use super::rewrite::{NewTables, TableSpec, with_file_of};
use super::{FamilyRepair, Repair};
use crate::family::{Family, View};
use crate::memtable::MemTable;
use crate::recover::replay::{Replay, ReplayResult};
use crate::tree::tables::Storage;
use crate::write::prepared::record_of;
use esker_env::WriteOptions as FileWriteOptions;
use esker_files::log::{LogWriter, LogWriterOptions, RecoveryMode};
use esker_format::file_name::{log_name, temp_name};
use esker_format::{Cursor, FamilyId, FileNo, Level, Seq};
use esker_lsm::file::FileMeta;
use esker_lsm::version::Version;
use esker_status::{Error, Result};
use esker_sync::Arc;
use std::collections::BTreeMap;

impl Repair<'_> {
    /// Adds the tables that the logs will become to the trees of `plans`.
    pub(super) fn plan_logs(
        &mut self,
        mut logs: Vec<FileNo>,
        followed: Option<&ManifestTrees>,
        plans: &mut BTreeMap<FamilyId, FamilyRepair>,
        w: &mut NewTables,
    ) -> Result<LogContents> {
        let (mut outcome, tables) = loop {
            let mut tables = Vec::new();
            let done = self.replay_logs(&logs, plans, |family, mem| {
                tables.push((family.id, extent_of(family, mem)?));
                Ok(())
            });
            match done {
                Ok(outcome) => break (outcome, tables),
                Err(e) if self.give_up_log(&e, &mut logs)? => {}
                Err(e) => return Err(e),
            }
        };
        let mut from = LogContents {
            last: outcome.last,
            prepared: std::mem::take(&mut outcome.prepared),
            ..LogContents::default()
        };
        self.report_logs(&logs, outcome, followed);
        from.logs = logs;
        for (id, meta) in tables {
            let Some(plan) = plans.get_mut(&id) else {
                continue;
            };
            let number = w.take_number();
            let newest = plan.tree.added.iter().map(|(_, f)| f.epoch).max();
            let file = FileMeta {
                number,
                epoch: newest.unwrap_or(0) + 1,
                ..meta
            };
            plan.tree.added.push((Level::L0, Arc::new(file)));
            from.tables.push((id, number));
        }
        Ok(from)
    }

    /// Reports the losses in the logs.
    fn report_logs(
        &mut self,
        logs: &[FileNo],
        outcome: ReplayResult,
        followed: Option<&ManifestTrees>,
    ) {
        let newest = logs.last().map_or(&[][..], std::slice::from_ref);
        // A torn record at the end of the newest log was never acknowledged as synced.
        let is_whole = outcome.losses.len() == newest.len() && outcome.torn == newest;
        if !is_whole {
            self.report.has_lost_data |= !outcome.losses.is_empty();
            self.report.losses.extend(outcome.losses);
        }
        for (family, records) in outcome.left_out {
            // The MANIFEST knows which families were dropped.
            if followed.is_some_and(|f| family <= f.folded.max_family) {
                continue;
            }
            self.report.has_lost_data = true;
            self.report.losses.push(format!(
                "{records} records in the logs are of column family {family}, of which nothing \
                 tells the name: they are left out"
            ));
        }
    }

    /// Replays `logs` from where each family needs them, and gives every memtable to `take`.
    fn replay_logs(
        &self,
        logs: &[FileNo],
        plans: &BTreeMap<FamilyId, FamilyRepair>,
        mut take: impl FnMut(&Family, &MemTable) -> Result<()>,
    ) -> Result<ReplayResult> {
        let families = plans.iter();
        let families = families.map(|(id, plan)| (self.family(*id, plan), plan.log_number));
        let families: Vec<_> = families.collect();
        let replay = Replay::new(
            &self.env,
            self.wal_dir.clone(),
            RecoveryMode::SkipAnyCorruptedRecords,
            Seq::ZERO,
            families.iter().cloned(),
            |family| {
                take(family, &family.view_guard().mem)?;
                family.change_view(|v| View {
                    mem: family.new_memtable(FileNo(0)),
                    ..v.with_version(Arc::clone(&v.version))
                });
                Ok(())
            },
        );
        let outcome = replay.salvaging().run(logs)?;
        for (family, _) in &families {
            let view = family.view_guard();
            if !view.mem.is_empty() {
                take(family, &view.mem)?;
            }
        }
        Ok(outcome)
    }

    /// A family that has memtables and nothing else.
    fn family(&self, id: FamilyId, plan: &FamilyRepair) -> Arc<Family> {
        let mut options = self.family_options(&plan.name).resolve_in(&self.options.db);
        options.comparator = plan.order.clone();
        let storage = Storage {
            paths: self.paths_of(&plan.name),
            cache: None,
            watch: None,
        };
        let version = Arc::new(Version::empty(plan.order.clone(), 1));
        Family::new(
            id,
            plan.name.clone(),
            options,
            storage,
            version,
            plan.log_number,
        )
    }

    /// Writes the tables and the log that were planned. The families need the logs from `log` on.
    pub(super) fn write_logs(
        &self,
        from: &LogContents,
        log: FileNo,
        plans: &mut BTreeMap<FamilyId, FamilyRepair>,
        w: &mut NewTables,
    ) -> Result<()> {
        let changed = || Error::aborted("the logs changed while they were read");
        let mut made = Vec::new();
        let mut planned = from.tables.iter();
        self.replay_logs(&from.logs, plans, |family, mem| {
            let next = planned.next().filter(|(id, _)| *id == family.id);
            let (id, number) = *next.ok_or_else(changed)?;
            made.push((id, self.write_memtable(family, mem, number, &from.logs, w)?));
            Ok(())
        })?;
        if planned.next().is_some() {
            return Err(changed());
        }
        for (id, meta) in made {
            let files = plans.get_mut(&id).map(|p| p.tree.added.iter_mut());
            let file = files.and_then(|mut all| all.find(|(_, f)| f.number == meta.number));
            let (_, file) = file.ok_or_else(changed)?;
            if (&file.smallest, &file.largest) != (&meta.smallest, &meta.largest) {
                return Err(changed());
            }
            *file = Arc::new(with_file_of(file, &meta));
        }
        self.write_prepared(from, log, plans, w)
    }

    fn write_memtable(
        &self,
        family: &Family,
        mem: &MemTable,
        number: FileNo,
        logs: &[FileNo],
        w: &mut NewTables,
    ) -> Result<FileMeta> {
        let spec = TableSpec {
            family: family.id,
            name: &family.name,
            order: &family.order,
            options: self.family_options(&family.name),
            level: Level::L0,
            dir: family.reading.paths.first(),
            properties: None,
            made_of: None,
            made_of_logs: logs,
        };
        let mut new_table = self.begin(&spec, number, w)?;
        let mut cursor = mem.cursor();
        cursor.seek_to_first();
        while cursor.valid() {
            new_table.builder.add(cursor.key(), cursor.value())?;
            cursor.next();
        }
        for tombstone in mem.raw_tombstones() {
            new_table.builder.add_tombstone(&tombstone);
        }
        self.seal(new_table, w)
    }

    /// Writes what is prepared into log `number`.
    fn write_prepared(
        &self,
        from: &LogContents,
        number: FileNo,
        plans: &BTreeMap<FamilyId, FamilyRepair>,
        w: &mut NewTables,
    ) -> Result<()> {
        if from.prepared.is_empty() {
            return Ok(());
        }
        let fs = &*self.env.fs;
        let temp = self.wal_dir.join(temp_name(number));
        let path = self.wal_dir.join(log_name(number));
        let options = FileWriteOptions {
            exclusive: true,
            ..FileWriteOptions::default()
        };
        let file = fs.create(&temp, options)?;
        w.written.push(temp.clone());
        let mut log = LogWriter::new(file, LogWriterOptions::default())?;
        let sizes = plans.iter().map(|(id, p)| (*id, p.order.timestamp_size()));
        let sizes = sizes.filter(|(_, size)| *size > 0);
        let sizes = sizes.filter_map(|(id, size)| Some((id, u16::try_from(size).ok()?)));
        log.add_timestamp_sizes(&sizes.collect::<Vec<_>>())?;
        for (name, batch) in &from.prepared {
            let mut record = record_of(name, batch)?;
            record.set_seq(from.last.next());
            log.add_record(record.data())?;
        }
        log.sync()?;
        log.close()?;
        w.written.push(path.clone());
        fs.rename(&temp, &path)?;
        fs.sync_dir(&self.wal_dir)
    }
}

/// The bounds of the table that the memtable will be.
fn extent_of(family: &Family, mem: &MemTable) -> Result<FileMeta> {
    let mut extent = Extent::default();
    let mut cursor = mem.cursor();
    cursor.seek_to_first();
    while cursor.valid() {
        extent.add(cursor.key(), cursor.value())?;
        cursor.next();
    }
    let (meta, _) = extent.meta(&mem.raw_tombstones(), &family.order)?;
    Ok(meta)
}
