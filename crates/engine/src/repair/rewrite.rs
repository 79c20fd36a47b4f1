//! Tables that a repair writes, of three kinds: the sound blocks of a damaged table, the entries of
//! logs, and the merge of tables that are not in order.
//!
//! A table is written under a temporary name, synced, renamed and read back before any MANIFEST
//! names it. A property names its source. When a repair was interrupted, the next one ignores a
//! table made of another table that still exists. It keeps a table made of logs: the logs give the
//! same entries again, and merging keeps one of them.

use super::found::{DamagedTable, Inventory, LogContents, MADE_OF, MADE_OF_LOGS};
use super::{FamilyRepair, Repair};
use crate::FamilyOptions;
use crate::job::output::{Placement, codec_for};
use crate::options::CompactionStyle;
use esker_env::{ReadOptions as FileReadOptions, WriteOptions as FileWriteOptions};
use esker_files::identity::new_session_id;
use esker_files::table::{ReadContext, Salvage, TableBuilder, TableBuilderOptions, TableCursor};
use esker_format::edit::NewFile;
use esker_format::file_name::{table_name, temp_name};
use esker_format::key::{ParsedKey, seq_of, user_key};
use esker_format::properties::TableProperties;
use esker_format::{Cursor, FamilyId, FileNo, KeyOrder, Level, RawTombstone, ValueType};
use esker_lsm::file::FileMeta;
use esker_lsm::merging::MergingCursor;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes read ahead by walks from end to end.
pub(super) const READAHEAD: usize = 1 << 20;

/// The new tables of a repair, and the properties that they share.
pub(super) struct NewTables {
    db_id: String,
    session: String,
    next: FileNo,
    /// Temporary and final names of the tables; no MANIFEST names them yet.
    pub(super) written: Vec<PathBuf>,
    /// Finished tables, by number.
    made: BTreeMap<FileNo, PathBuf>,
    /// Finished tables that were merged into others.
    pub(super) passing: Vec<PathBuf>,
}

impl NewTables {
    /// The next free number.
    pub(super) fn take_number(&mut self) -> FileNo {
        let number = self.next;
        self.next = FileNo(number.0 + 1);
        number
    }
}

/// Family, level, options and origin of a new table.
pub(super) struct TableSpec<'a> {
    pub(super) family: FamilyId,
    pub(super) name: &'a str,
    pub(super) order: &'a KeyOrder,
    pub(super) options: &'a FamilyOptions,
    pub(super) level: Level,
    pub(super) dir: &'a Path,
    /// Of the table whose entries it gets.
    pub(super) properties: Option<&'a TableProperties>,
    pub(super) made_of: Option<FileNo>,
    pub(super) made_of_logs: &'a [FileNo],
}

/// A table that is being written, under a temporary name.
pub(super) struct UnfinishedTable {
    pub(super) builder: TableBuilder,
    temp: PathBuf,
    path: PathBuf,
    number: FileNo,
}

impl Repair<'_> {
    pub(super) fn writing(&self, db_id: &str, next: FileNo) -> NewTables {
        NewTables {
            db_id: db_id.to_owned(),
            session: new_session_id(&*self.env.entropy),
            next,
            written: Vec::new(),
            made: BTreeMap::new(),
            passing: Vec::new(),
        }
    }

    /// Writes the tables that `plans` have that are not written yet, and merges what only merging
    /// puts in order. Nothing of the logs below `log` is needed then.
    pub(super) fn write_tables(
        &self,
        plans: &mut BTreeMap<FamilyId, FamilyRepair>,
        found: &Inventory,
        (from, log): (&LogContents, FileNo),
        w: &mut NewTables,
    ) -> Result<()> {
        for salvaged in found.salvaged.values() {
            let number = salvaged.found.meta.number;
            for (id, plan) in plans.iter_mut() {
                let place = plan.tree.added.iter().position(|(_, f)| f.number == number);
                let Some(at) = place else { continue };
                let spec = TableSpec {
                    family: *id,
                    name: &plan.name,
                    order: &plan.order,
                    options: self.family_options(&plan.name),
                    level: plan.tree.added[at].0,
                    dir: salvaged.found.path.parent().unwrap_or(&self.dir),
                    properties: None,
                    made_of: Some(salvaged.number),
                    made_of_logs: &[],
                };
                let meta = self.write_salvaged(salvaged, spec, w)?;
                let file = &mut plan.tree.added[at].1;
                *file = Arc::new(with_file_of(file, &meta));
            }
        }
        self.write_logs(from, log, plans, w)?;
        for plan in plans.values_mut() {
            if !seeded(Bug::RepairLogsAgain) {
                plan.log_number = log;
            }
        }
        for (id, plan) in plans.iter_mut().filter(|(_, p)| p.must_merge) {
            let before = plan.tree.added.iter();
            let made = before.filter_map(|(_, f)| w.made.get(&f.number));
            let passing: Vec<_> = made.cloned().collect();
            plan.tree.added = self.merge(*id, plan, w)?;
            w.passing.extend(passing);
        }
        Ok(())
    }

    /// Writes what can be read of a damaged table.
    fn write_salvaged(
        &self,
        salvaged: &DamagedTable,
        spec: TableSpec<'_>,
        w: &mut NewTables,
    ) -> Result<FileMeta> {
        let file = self
            .env
            .fs
            .open_read(&salvaged.path, FileReadOptions::default())?;
        let salvage = Salvage::open(file, salvaged.options.clone())?;
        let spec = TableSpec {
            properties: salvage.properties(),
            ..spec
        };
        let mut new_table = self.begin(&spec, salvaged.found.meta.number, w)?;
        salvage.walk(|key, value| new_table.builder.add(key, value))?;
        for tombstone in salvage.range_tombstones() {
            new_table.builder.add_tombstone(tombstone);
        }
        self.seal(new_table, w)
    }

    pub(super) fn begin(
        &self,
        spec: &TableSpec<'_>,
        number: FileNo,
        w: &mut NewTables,
    ) -> Result<UnfinishedTable> {
        let (temp, path) = (temp_name(number), table_name(number));
        let (temp, path) = (spec.dir.join(temp), spec.dir.join(path));
        let options = FileWriteOptions {
            exclusive: true,
            ..FileWriteOptions::default()
        };
        let file = self.env.fs.create(&temp, options)?;
        w.written.push(temp.clone());
        let (compression, compression_opts) = codec_for(
            spec.options,
            Placement {
                level: spec.level,
                base: Level(1),
                bottommost: false,
                uncompressed: false,
            },
        );
        let now = self.env.clock.unix_us() / 1_000_000;
        let p = spec.properties;
        let made_of = spec.made_of.map(|n| (MADE_OF, n.0.to_string()));
        let logs: Vec<_> = spec.made_of_logs.iter().map(|n| n.0.to_string()).collect();
        let logs = (!logs.is_empty()).then(|| (MADE_OF_LOGS, logs.join(",")));
        let sources = made_of.into_iter().chain(logs);
        let sources = sources.map(|(name, value)| (name.to_owned(), value.into_bytes()));
        let options = TableBuilderOptions {
            order: spec.order.clone(),
            table: spec.options.table.to_table_options(),
            compression,
            compression_opts,
            prefix_extractor: spec.options.prefix_extractor.clone(),
            family: spec.family,
            family_name: spec.name.to_owned(),
            merge_operator: (spec.options.merge_operator.as_ref()).map(|m| m.name().to_owned()),
            file_no: number,
            db_id: w.db_id.clone(),
            db_session_id: w.session.clone(),
            level: Some(spec.level),
            creation_time: p.map_or(0, |p| p.creation_time),
            oldest_key_time: p.map_or(0, |p| p.oldest_key_time),
            newest_key_time: p.map_or(now, |p| p.newest_key_time),
            file_creation_time: now,
            user_properties: sources.collect(),
            ..TableBuilderOptions::default()
        };
        let builder = TableBuilder::new(file, options)?;
        Ok(UnfinishedTable {
            builder,
            temp,
            path,
            number,
        })
    }

    /// Makes the table whole and durable, and reads it from end to end.
    pub(super) fn seal(&self, new_table: UnfinishedTable, w: &mut NewTables) -> Result<FileMeta> {
        let fs = &*self.env.fs;
        let (_, mut file) = new_table.builder.finish()?;
        if !seeded(Bug::RepairTableNotSynced) {
            file.sync()?;
        }
        file.close()?;
        w.written.push(new_table.path.clone());
        fs.rename(&new_table.temp, &new_table.path)?;
        if let Some(dir) = new_table.path.parent() {
            fs.sync_dir(dir)?;
        }
        w.made.insert(new_table.number, new_table.path.clone());
        Ok(self.table(&new_table.path, new_table.number, None)?.meta)
    }

    /// Merges the tables of a plan, which overlap in keys and in sequences, into one run of tables
    /// that do not.
    fn merge(
        &self,
        id: FamilyId,
        plan: &FamilyRepair,
        w: &mut NewTables,
    ) -> Result<Vec<(Level, Arc<FileMeta>)>> {
        let options = self.family_options(&plan.name);
        let paths = self.paths_of(&plan.name);
        let mut tombstones: Vec<RawTombstone> = Vec::new();
        let mut cursors: Vec<TableCursor> = Vec::new();
        for (_, file) in plan.tree.added.iter().rev() {
            let seq = Some(file.largest_seq);
            let reader = super::scan::open(&self.env, &paths.of(file), plan.order.clone(), seq)?;
            let within = reader.range_tombstones().iter().cloned();
            tombstones.extend(within.filter_map(|t| clipped(&plan.order, t, file)));
            cursors.push(reader.cursor(&ReadContext::compaction(READAHEAD)));
        }
        let last_level = u8::try_from(options.num_levels.clamp(1, 64) - 1).unwrap_or(0);
        let is_fifo = options.compaction_style == CompactionStyle::Fifo;
        let spec = TableSpec {
            family: id,
            name: &plan.name,
            order: &plan.order,
            options,
            level: if is_fifo {
                Level::L0
            } else {
                Level(last_level)
            },
            dir: paths.first(),
            properties: None,
            made_of: None,
            made_of_logs: &[],
        };
        let mut run = Run {
            repair: self,
            w,
            tombstones,
            // Versions at different times are one key, and deletions of ranges of them are not cut.
            target: match plan.order.timestamp_size() {
                0 => options.target_file_size_base.max(1 << 20),
                _ => u64::MAX,
            },
            new_table: None,
            low: None,
            done: Vec::new(),
        };
        run.write(&spec, MergingCursor::new(cursors, plan.order.clone()))?;
        let numbered = (1..).zip(run.done);
        let listed = |(epoch, meta): (u64, FileMeta)| {
            let file = FileMeta { epoch, ..meta };
            (spec.level, Arc::new(file))
        };
        Ok(numbered.map(listed).collect())
    }

    /// Removes what was written and no MANIFEST can name.
    pub(super) fn discard(&self, w: &NewTables) {
        for path in &w.written {
            // A later repair knows it for what it is.
            let _ = self.env.fs.remove_file(path);
        }
        self.forget_aside();
    }
}

/// The tables of a run while it is written.
struct Run<'r, 'o> {
    repair: &'r Repair<'o>,
    w: &'r mut NewTables,
    tombstones: Vec<RawTombstone>,
    target: u64,
    new_table: Option<UnfinishedTable>,
    /// Where the open table begins; `None` at the beginning of the run.
    low: Option<Vec<u8>>,
    done: Vec<FileMeta>,
}

impl Run<'_, '_> {
    fn write(&mut self, spec: &TableSpec<'_>, mut from: MergingCursor<TableCursor>) -> Result<()> {
        let mut last = Vec::new();
        let mut held: Option<TableEntry> = None;
        from.seek_to_first();
        while from.valid() {
            let entry = TableEntry::at(&from);
            match &mut held {
                Some(held) if held.is_same_write(&entry, spec.order) => held.prefer(entry),
                _ => {
                    if let Some(done) = held.replace(entry) {
                        self.add(spec, &done, &mut last)?;
                    }
                }
            }
            from.next();
        }
        from.status()?;
        if let Some(done) = held {
            self.add(spec, &done, &mut last)?;
        }
        if self.new_table.is_some() || !self.tombstones.is_empty() && self.done.is_empty() {
            self.end(spec, None)?;
        }
        Ok(())
    }

    /// Adds an entry, in a new table when the open one is full and `last`, the user key before,
    /// ends.
    fn add(&mut self, spec: &TableSpec<'_>, entry: &TableEntry, last: &mut Vec<u8>) -> Result<()> {
        let user = user_key(&entry.key);
        let is_full =
            (self.new_table.as_ref()).is_some_and(|d| d.builder.file_size() >= self.target);
        if is_full && !spec.order.equal(last, user) {
            self.end(spec, Some(user.to_vec()))?;
        }
        last.clear();
        last.extend_from_slice(user);
        let new_table = self.open(spec)?;
        new_table.builder.add(&entry.key, &entry.value)
    }

    fn open(&mut self, spec: &TableSpec<'_>) -> Result<&mut UnfinishedTable> {
        if self.new_table.is_none() {
            let number = self.w.take_number();
            self.new_table = Some(self.repair.begin(spec, number, self.w)?);
        }
        self.new_table
            .as_mut()
            .ok_or_else(|| Error::aborted("no table is open"))
    }

    /// Ends the open table, which has the keys from where it began to `high`, with its part of the
    /// range deletions.
    fn end(&mut self, spec: &TableSpec<'_>, high: Option<Vec<u8>>) -> Result<()> {
        let low = self.low.take();
        let mut part = Vec::new();
        for t in &self.tombstones {
            let mut t = t.clone();
            if let Some(low) = low
                .as_ref()
                .filter(|l| spec.order.compare(&t.start, l).is_lt())
            {
                t.start.clone_from(low);
            }
            if let Some(high) = high
                .as_ref()
                .filter(|h| spec.order.compare(h, &t.end).is_lt())
            {
                t.end.clone_from(high);
            }
            if spec.order.compare(&t.start, &t.end).is_lt() {
                part.push(t);
            }
        }
        let new_table = self.open(spec)?;
        part.iter().for_each(|t| new_table.builder.add_tombstone(t));
        if let Some(new_table) = self.new_table.take() {
            self.done.push(self.repair.seal(new_table, self.w)?);
        }
        self.low = high;
        Ok(())
    }
}

/// An entry of one of the merged tables.
///
/// Tables may hold one write in several forms: when one was made of the other, when a compaction
/// or a flush moved the value into a blob file or applied a merge operand, or when two numbers were
/// set to 0. A tree holds one entry of a key and number, so one form stays.
struct TableEntry {
    key: Vec<u8>,
    value: Vec<u8>,
    /// The position of its table, newest first.
    table: usize,
}

impl TableEntry {
    fn at(cursor: &MergingCursor<TableCursor>) -> TableEntry {
        TableEntry {
            key: cursor.key().to_vec(),
            value: cursor.value().to_vec(),
            table: cursor.current_child(),
        }
    }

    fn is_same_write(&self, other: &TableEntry, order: &KeyOrder) -> bool {
        seq_of(&self.key) == seq_of(&other.key)
            && order.equal(user_key(&self.key), user_key(&other.key))
    }

    /// Keeps the result of a merge rather than its operand, which would be applied twice, and else
    /// what the newest table has.
    fn prefer(&mut self, other: TableEntry) {
        let rank = |e: &TableEntry| {
            (
                ParsedKey::parse(&e.key).is_ok_and(|k| k.kind == ValueType::Merge),
                e.table,
            )
        };
        if rank(&other) < rank(self) {
            *self = other;
        }
    }
}

/// The part of a range deletion that lies within the bounds of its table: what reaches beyond them
/// was dropped from the table that had it, perhaps with the numbers of newer entries.
fn clipped(order: &KeyOrder, mut t: RawTombstone, file: &FileMeta) -> Option<RawTombstone> {
    if order.compare(&t.start, file.smallest.user()).is_lt() {
        t.start = file.smallest.user().to_vec();
    }
    let is_cut = file.largest.is_range_end_sentinel();
    if is_cut && order.compare(&t.end, file.largest.user()).is_gt() {
        t.end = file.largest.user().to_vec();
    }
    order.compare(&t.start, &t.end).is_lt().then_some(t)
}

/// Returns the metadata of a table with those of the file `new` that takes its place.
pub(super) fn with_file_of(old: &FileMeta, new: &FileMeta) -> FileMeta {
    FileMeta {
        number: new.number,
        size: new.size,
        oldest_blob_file: new.oldest_blob_file,
        file_creation_time: new.file_creation_time,
        file_checksum: Vec::new(),
        file_checksum_func_name: String::new(),
        unique_id: new.unique_id,
        tail_size: new.tail_size,
        open_metadata: Vec::new(),
        ..FileMeta::from(NewFile::from(old))
    }
}
