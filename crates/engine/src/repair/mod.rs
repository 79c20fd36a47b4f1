//! Repair: makes a database that opens of the files in a damaged directory.
//!
//! A repair takes the lock and examines every file before it changes anything. It does not change a
//! sound database. If a MANIFEST can be read and agrees with the tables, the trees keep their
//! levels. Otherwise each readable table goes to level 0 of the family that its properties name,
//! newest sequence first; deleted entries may then come back, because the tables with the deletions
//! may be lost. The sound blocks of a damaged table are written into a new table.
//!
//! In a tree from a MANIFEST every entry is compared with the other versions of its key. If an
//! older version lies above a newer one, all tables of the family are merged by sequence number.
//! Entries that compactions dropped meanwhile are lost; the report gives the key range.
//!
//! Damaged and missing files count as losses. A file that the system refuses to read may be whole:
//! the repair ends before anything changes, unless the caller gives the file up.
//!
//! Steps: write the new tables; link files that are not kept into the directory `lost`; write a new
//! MANIFEST; switch CURRENT to it; remove the first names of the files in `lost`. After an
//! interruption there is either the old database or the new one, and each can be repaired again.
//! Nothing is deleted. The new tables contain the readable entries of the logs; a new log contains
//! the prepared sections that are still open. At the end the ordinary code opens the database, and
//! replays only these sections.

mod aside;
mod choose;
mod disorder;
mod extent;
mod found;
mod garbage;
mod logs;
mod report;
mod rest;
mod rewrite;
mod salvage;
mod scan;

use crate::db::FamilyDescriptor;
use crate::options as opt;
use crate::options::Options;
use crate::recover::fold::known_order;
use crate::recover::sweep;
use crate::runtime::whole_files::lock_closed;
use crate::tree::{TablePaths, paths};
use crate::{Db, FamilyOptions};
use esker_env::{Env, WriteOptions as FileWriteOptions};
use esker_files::manifest::ManifestWriter;
use esker_files::{current, identity};
use esker_format::edit::{KnownLogs, NewFile, VersionEdit};
use esker_format::file_name::{self, FileKind, parse_file_name};
use esker_format::{FamilyId, FileNo, KeyOrder, Seq};
use esker_lsm::edit::TreeEdit;
use esker_lsm::file::FileMeta;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;
use found::{Inventory, LogContents, ManifestTrees, TableCondition};
pub use report::{LostRange, RepairMode, RepairOptions, RepairReport, SalvagedTable, SetAside};
use salvage::order_by_age;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A family as the repaired database will have it.
struct FamilyRepair {
    name: String,
    order: KeyOrder,
    log_number: FileNo,
    tree: TreeEdit,
    /// Tables of it overlap in keys and in sequences, or lie in the wrong order, so that only
    /// merging them puts versions in order.
    must_merge: bool,
}

impl Db {
    /// Makes the database at `path` one that opens again, from what can be read of it. Deletes
    /// nothing: what is not part of the result is in the directory `lost`.
    ///
    /// A database whose live MANIFEST, listed files and logs can all be read is left as it is:
    /// [`RepairReport::is_sound`]. `options` give `wal_dir`, and comparators and merge operators
    /// when they are not built in. `Io` when the database is open somewhere, and, with nothing
    /// changed, when a file cannot be read, which may be whole; `InvalidArgument`, with nothing
    /// changed, when there are no files of a database or a comparator is not known.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// drop(db);
    /// std::fs::remove_file(dir.path().join("CURRENT")).expect("it is there");
    ///
    /// let report = Db::repair(dir.path(), &Options::new())?;
    /// assert!(report.losses.is_empty());
    /// let db = Db::open(dir.path(), Options::new())?;
    /// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
        Self::repair_families(path, options, &[], RepairMode::Repair)
    }

    /// [`Db::repair`], or what it would do, with options of their own for some families; all others
    /// have those of the default family in `options`.
    pub fn repair_families(
        path: impl AsRef<Path>,
        options: &Options,
        families: &[FamilyDescriptor],
        mode: RepairMode,
    ) -> Result<RepairReport> {
        Self::repair_with(path, options, families, RepairOptions::new().mode(mode))
    }

    /// [`Db::repair_families`] as `asked`: a dry run, or one that gives up what cannot be read.
    ///
    /// The report has the losses, table by table: [`RepairReport::salvaged`] says how many entries
    /// of which family, between which keys.
    pub fn repair_with(
        path: impl AsRef<Path>,
        options: &Options,
        families: &[FamilyDescriptor],
        asked: RepairOptions,
    ) -> Result<RepairReport> {
        Repair::new(path.as_ref(), options, families, asked).run()
    }
}

/// Returns whether the system refused to read a file, or this build cannot: the file may be whole.
fn is_refused(e: &Error) -> bool {
    !e.is_not_found() && matches!(e.kind(), ErrorKind::Io | ErrorKind::NotSupported)
}

struct Repair<'a> {
    env: Env,
    dir: PathBuf,
    wal_dir: PathBuf,
    options: &'a Options,
    families: &'a [FamilyDescriptor],
    asked: RepairOptions,
    report: RepairReport,
    /// Files that are given up though they may be whole.
    unreadable: RefCell<BTreeSet<PathBuf>>,
    /// Logs among them, and why.
    given_up_logs: Vec<(PathBuf, String)>,
}

impl<'a> Repair<'a> {
    fn new(
        dir: &Path,
        options: &'a Options,
        families: &'a [FamilyDescriptor],
        asked: RepairOptions,
    ) -> Self {
        let wal_dir = match options.db.wal_dir.as_str() {
            "" => dir.to_path_buf(),
            given => PathBuf::from(given),
        };
        Repair {
            env: options.env.clone().unwrap_or_else(Env::posix),
            dir: dir.to_path_buf(),
            wal_dir,
            options,
            families,
            asked,
            report: RepairReport::default(),
            unreadable: RefCell::default(),
            given_up_logs: Vec::new(),
        }
    }

    /// Returns whether `e` says that something is lost; else it may be whole, and is not touched.
    fn is_lost(&self, e: &Error) -> bool {
        let gives_up = self.asked.give_up_unreadable || seeded(Bug::RepairReadFailureIsDamage);
        e.is_corruption() || e.is_not_found() || gives_up && is_refused(e)
    }

    /// Returns whether `e` ends the repair, where what merely contradicts itself counts as damage.
    fn must_stop(&self, e: &Error) -> bool {
        is_refused(e) && !self.is_lost(e)
    }

    /// Keeps in mind that a file is given up which may be whole.
    fn note_unreadable(&self, e: &Error, path: &Path) {
        if is_refused(e) {
            self.unreadable.borrow_mut().insert(path.to_owned());
        }
    }

    /// The error that ends a repair before anything has changed.
    fn stop(&self, e: Error) -> Error {
        if !is_refused(&e) {
            return e;
        }
        e.with_hint(
            "nothing was changed: the file may be whole; make it readable (permissions, disk, limit \
             of open files) and repair again, or give it up with `esker repair --give-up-unreadable`",
        )
    }

    fn run(mut self) -> Result<RepairReport> {
        self.check_is_database()?;
        // What the open at the end would refuse must be refused before anything changes.
        let named = self.families.iter().map(|f| (f.name.as_str(), &f.options));
        let given = [("default", &self.options.family)];
        opt::check(&self.options.db, given.into_iter().chain(named))?;
        self.check_paths()?;
        let is_dry = self.asked.mode == RepairMode::DryRun;
        let lock = if is_dry {
            None
        } else {
            Some(lock_closed(&self.env, &self.dir)?)
        };
        let followed = self.choose()?;
        let mut found = self.inspect(followed.as_ref())?;
        let db_id = self.db_id(followed.as_ref())?;
        let next = self.number_new_tables(followed.as_ref(), &mut found)?;
        let mut plans = self.plan(followed.as_ref(), &mut found)?;
        if followed.is_some() {
            self.find_disorder(&mut plans, &found)?;
        }
        let logs = self.inspect_logs(followed.as_ref())?;
        self.report.is_sound = followed.as_ref().is_some_and(|f| f.is_live)
            && self.report.losses.is_empty()
            && self.report.notes.is_empty()
            && found.unusable.is_empty();
        if self.report.is_sound {
            return Ok(self.report);
        }
        let mut w = self.writing(&db_id, next);
        let from = self.plan_logs(logs.needed, followed.as_ref(), &mut plans, &mut w)?;
        if followed.is_none() {
            plans.values_mut().for_each(order_by_age);
        }
        self.report.logs = logs.all.len() - self.given_up_logs.len();
        self.plan_set_aside(&found, &plans, &logs.all)?;
        let log = w.take_number();
        self.report_prepared(&from, log);
        if is_dry {
            return Ok(self.report);
        }
        // Everything was looked at; from here on the directory changes.
        let made = self.write_tables(&mut plans, &found, (&from, log), &mut w);
        let made = made.and_then(|()| self.set_unnamed_blobs_aside(&mut plans, &found));
        let made = made.and_then(|()| self.keep_aside());
        if let Err(e) = made {
            self.discard(&w);
            return Err(e);
        }
        let last = found.largest_seq().max(from.last);
        let manifest = (db_id, w.take_number());
        self.write_manifest(followed.as_ref(), last, &plans, manifest)?;
        let passing = || {
            w.passing
                .iter()
                .try_for_each(|p| self.env.fs.remove_file(p))
        };
        let tidied = self.drop_from_place().and_then(|()| passing());
        drop(lock);
        let opened = tidied.and_then(|()| self.finish(&plans, !from.prepared.is_empty()));
        opened.map_err(|e| {
            e.with_hint(
                "the database is repaired: CURRENT names its new MANIFEST, and files that were \
                 set aside are in lost/; mend the cause of this error and open the database",
            )
        })?;
        Ok(self.report)
    }

    /// Which transactions are prepared and not over.
    fn report_prepared(&mut self, from: &LogContents, log: FileNo) {
        if from.prepared.is_empty() {
            return;
        }
        let names = from.prepared.keys().map(|n| n.escape_ascii().to_string());
        let names = names.collect::<Vec<_>>().join(", ");
        self.report.notes.push(format!(
            "transactions are prepared and neither committed nor undone: {names}; {} has them, and \
             a transaction database gives them back",
            file_name::log_name(log)
        ));
    }

    fn check_is_database(&self) -> Result<()> {
        let mut names = Vec::new();
        for dir in self.dirs()?.iter().chain([&self.wal_dir]) {
            if self.env.fs.exists(dir)? {
                names.extend(self.env.fs.read_dir(dir)?);
            }
        }
        let kinds = [
            FileKind::Manifest,
            FileKind::Table,
            FileKind::Wal,
            FileKind::Blob,
        ];
        let any = names
            .iter()
            .filter_map(|e| parse_file_name(&e.name))
            .any(|(k, _)| kinds.contains(&k));
        if any {
            return Ok(());
        }
        Err(
            Error::invalid_argument("there are no files of a database to repair")
                .with_file(&self.dir),
        )
    }

    /// Without the paths that the database was last opened with its tables would be taken for lost.
    fn check_paths(&self) -> Result<()> {
        let given = self.families.iter().map(|f| &f.options);
        let mut given = given.chain([&self.options.family]);
        let has_own = |family: &FamilyOptions| !family.cf_paths.is_empty();
        if !self.options.db.db_paths.is_empty() || given.any(has_own) {
            return Ok(());
        }
        let rules = opt::LoadRules {
            ignore_unknown: true,
            strict: false,
        };
        let last = match crate::recover::load_latest_options(&self.dir, &self.env, rules) {
            Ok(last) => last,
            Err(e) if e.kind() == ErrorKind::Io && self.must_stop(&e) => return Err(self.stop(e)),
            Err(_) => return Ok(()),
        };
        if last.db.db_paths.is_empty() && !last.families.iter().any(|(_, f)| has_own(f)) {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "the database was last opened with paths for its tables (db_paths={})",
            opt::OptionValue::print(&last.db.db_paths)
        ))
        .with_file(&self.dir)
        .with_hint("give the same db_paths and cf_paths in the options; nothing was changed"))
    }

    /// Where the tables of the family called `name` are.
    fn paths_of(&self, name: &str) -> Arc<TablePaths> {
        match self.family_options(name).cf_paths.as_slice() {
            [] => TablePaths::new(&self.dir, &self.options.db.db_paths),
            own => TablePaths::new(&self.dir, own),
        }
    }

    /// The path of the family called `name` in which the file is; `None` when it is in none of
    /// them.
    fn path_id(&self, name: &str, file: &Path) -> Option<u32> {
        let paths = self.paths_of(name);
        let found = paths.all().position(|dir| file.parent() == Some(dir));
        found.and_then(|n| u32::try_from(n).ok())
    }

    /// The database's directory and those of its tables, as far as they are there.
    fn dirs(&self) -> Result<Vec<PathBuf>> {
        let families = self.families.iter().map(|f| &f.options);
        let all = families.chain([&self.options.family]);
        let mut out = vec![self.dir.clone()];
        for dir in paths::of_options(&self.env, &self.dir, &self.options.db, all) {
            if self.env.fs.exists(&dir)? {
                out.push(dir);
            }
        }
        Ok(out)
    }

    /// The options of the family called `name`.
    fn family_options(&self, name: &str) -> &FamilyOptions {
        let own = self.families.iter().find(|f| f.name == name);
        own.map_or(&self.options.family, |f| &f.options)
    }

    /// The order of a family: the one that `stored` names, built in or given by the options.
    fn order_of(&self, family: &str, stored: Option<&str>) -> Result<KeyOrder> {
        known_order(stored, &self.family_options(family).comparator).ok_or_else(|| {
            Error::invalid_argument(format!(
                "column family {family} was written with comparator {}",
                stored.unwrap_or_default()
            ))
            .with_hint("give that comparator in the options")
        })
    }

    /// The families and their trees.
    fn plan(
        &mut self,
        followed: Option<&ManifestTrees>,
        found: &mut Inventory,
    ) -> Result<BTreeMap<FamilyId, FamilyRepair>> {
        let plans = match followed {
            Some(followed) => self.plan_by_manifest(followed, found)?,
            None => self.plan_by_tables(found)?,
        };
        for (path, why) in &found.unusable {
            self.report
                .losses
                .push(format!("{}: {why}", path.display()));
            self.report.has_lost_data = true;
        }
        for salvaged in found.salvaged.values() {
            let told = salvaged.told.clone();
            let lines = if told.has_losses() {
                &mut self.report.losses
            } else {
                &mut self.report.notes
            };
            lines.push(told.to_string());
            self.report.has_lost_data |= told.has_losses();
            self.report.salvaged.push(told);
        }
        self.report.families = plans.values().map(|p| p.name.clone()).collect();
        self.report.tables = plans.values().map(|p| p.tree.added.len()).sum();
        Ok(plans)
    }

    fn plan_by_manifest(
        &mut self,
        followed: &ManifestTrees,
        found: &mut Inventory,
    ) -> Result<BTreeMap<FamilyId, FamilyRepair>> {
        let mut plans = BTreeMap::new();
        for (id, family) in &followed.folded.families {
            let Some(version) = followed.versions.get(id) else {
                continue;
            };
            let mut tree = TreeEdit::snapshot(version);
            self.follow_moved(&family.name, &mut tree, found)?;
            tree.added
                .retain(|(level, file)| match found.state_of(file.number) {
                    TableCondition::Readable => true,
                    TableCondition::Salvaged => true,
                    TableCondition::Unreadable => false,
                    TableCondition::Absent => {
                        let name = file_name::table_name(file.number);
                        self.report.losses.push(format!(
                            "{name} (family {}, level {level}) is missing",
                            family.name
                        ));
                        self.report.missing.push(name);
                        self.report.has_lost_data = true;
                        false
                    }
                });
            for (_, file) in &mut tree.added {
                // What can be read of a damaged table takes its place.
                if let Some(salvaged) = found.salvaged.get(&file.number) {
                    *file = Arc::new(FileMeta {
                        number: salvaged.found.meta.number,
                        oldest_blob_file: salvaged.found.meta.oldest_blob_file,
                        ..FileMeta::from(NewFile::from(&**file))
                    });
                }
            }
            for number in version.blob_files().keys() {
                if let Some(why) = found.trouble_with_blob(*number) {
                    let name = file_name::blob_name(*number);
                    self.report.losses.push(format!(
                        "{name} (family {}) {why}: reads of its values fail",
                        family.name
                    ));
                    self.report.has_lost_data = true;
                }
            }
            let mut blobs = self.recount_garbage(&mut tree, found);
            blobs.retain(|n| found.has_blob(*n));
            let dir = self.paths_of(&family.name).first().to_path_buf();
            found.unlisted.extend(blobs.into_iter().map(|n| {
                let why = "a blob file that no table refers to any more".to_owned();
                (dir.join(file_name::blob_name(n)), why)
            }));
            let plan = FamilyRepair {
                name: family.name.clone(),
                order: version.order().clone(),
                log_number: family.log_number,
                tree,
                must_merge: false,
            };
            plans.insert(*id, plan);
        }
        Ok(plans)
    }

    /// Gives tables that were found in another path than the MANIFEST says the path where they are.
    /// Refuses when a table is missing whose path is not among the options'.
    fn follow_moved(&mut self, family: &str, tree: &mut TreeEdit, found: &Inventory) -> Result<()> {
        let paths = self.paths_of(family);
        for (_, file) in &mut tree.added {
            let Some(table) = found.tables.get(&file.number) else {
                if file.path_id as usize >= paths.count()
                    && found.state_of(file.number) == TableCondition::Absent
                {
                    let e = Error::invalid_argument("a table of the database is missing");
                    let e = e.with_file(paths.of(file)).with_hint(format!(
                        "the MANIFEST puts it into path {}, counted from 0: give all db_paths and cf_paths; nothing \
                         was changed",
                        file.path_id
                    ));
                    return Err(e);
                }
                continue;
            };
            let is_there = table.path.parent() == Some(paths.dir(file.path_id));
            if let Some(path_id) = self.path_id(family, &table.path).filter(|_| !is_there) {
                let moved = FileMeta {
                    path_id,
                    ..FileMeta::from(NewFile::from(&**file))
                };
                *file = Arc::new(moved);
                let note = format!("table {} was moved to path {path_id}", table.meta.number);
                self.report.notes.push(note);
            }
        }
        Ok(())
    }

    /// The id that the MANIFEST names, or IDENTITY, or a new one.
    fn db_id(&self, followed: Option<&ManifestTrees>) -> Result<String> {
        let named = followed.and_then(|f| f.folded.db_id.clone());
        let stored = match identity::read(&*self.env.fs, &self.dir) {
            Err(e) if self.must_stop(&e) => return Err(self.stop(e)),
            stored => stored.ok(),
        };
        let known = named.or(stored).filter(|id| !id.is_empty());
        Ok(known.unwrap_or_else(|| identity::new_db_id(&*self.env.entropy)))
    }

    /// Gives the tables that are to be made of damaged ones their numbers; the next free one.
    fn number_new_tables(
        &self,
        followed: Option<&ManifestTrees>,
        found: &mut Inventory,
    ) -> Result<FileNo> {
        let mut largest = found
            .largest
            .max(followed.map_or(FileNo(0), |f| f.folded.next_file));
        for dir in self.dirs()?.iter().chain([&self.wal_dir]) {
            if self.env.fs.exists(dir)? {
                largest = largest.max(sweep::largest_number(&self.env, dir)?);
            }
        }
        let mut next = largest.0 + 1;
        for salvaged in found.salvaged.values_mut() {
            let name = file_name::table_name(FileNo(next));
            salvaged.found.meta.number = FileNo(next);
            salvaged.found.path = salvaged.path.with_file_name(&name);
            salvaged.told.table = Some(name);
            next += 1;
        }
        Ok(FileNo(next))
    }

    /// Writes the new MANIFEST and points CURRENT at it.
    fn write_manifest(
        &self,
        followed: Option<&ManifestTrees>,
        last: Seq,
        plans: &BTreeMap<FamilyId, FamilyRepair>,
        (db_id, number): (String, FileNo),
    ) -> Result<()> {
        let fs = &*self.env.fs;
        let folded = followed.map(|f| &f.folded);
        identity::write(fs, &self.dir, &db_id)?;
        let edits = edits(folded, last, plans, db_id, FileNo(number.0 + 1));
        let options = FileWriteOptions {
            exclusive: true,
            ..FileWriteOptions::default()
        };
        let mut writer = ManifestWriter::create(fs, &self.dir, number, options, &edits)?;
        writer.sync()?;
        writer.close()?;
        current::install(fs, &self.dir, number)
    }

    /// Opens the repaired database once, which writes its OPTIONS. Its tables stay as they are.
    fn finish(&self, plans: &BTreeMap<FamilyId, FamilyRepair>, has_prepared: bool) -> Result<()> {
        let mut options = self.options.clone();
        options.db.error_if_exists = false;
        options.db.wal_filter = None;
        options.db.allow_2pc |= has_prepared;
        let families = plans.values().map(|p| {
            let mut own = self.family_options(&p.name).clone();
            own.comparator = p.order.clone();
            own.num_levels = own.num_levels.max(7);
            FamilyDescriptor::new(&p.name, own)
        });
        Db::open_uncompacted(&self.dir, options, families.collect())?.close()
    }
}

/// The edits of a MANIFEST that holds `plans` and nothing else.
fn edits(
    folded: Option<&crate::recover::fold::ManifestContents>,
    last: Seq,
    plans: &BTreeMap<FamilyId, FamilyRepair>,
    db_id: String,
    next_file: FileNo,
) -> Vec<VersionEdit> {
    let mut out = vec![VersionEdit {
        db_id: Some(db_id),
        ..VersionEdit::default()
    }];
    for (id, plan) in plans {
        let mut head = VersionEdit::for_family(*id);
        head.family_add = (*id != FamilyId::DEFAULT).then(|| plan.name.clone());
        head.comparator = Some(plan.order.name().to_owned());
        let timestamps = folded
            .and_then(|f| f.families.get(id))
            .is_none_or(|f| f.timestamps_persisted);
        head.persist_user_defined_timestamps = (!timestamps).then_some(false);
        out.push(head);
        let mut body = VersionEdit::for_family(*id);
        plan.tree.write_to(&mut body);
        body.log_number = Some(plan.log_number);
        out.push(body);
    }
    let last = folded.map_or(last, |f| f.last_sequence.max(last));
    out.push(VersionEdit {
        max_column_family: plans
            .keys()
            .max()
            .copied()
            .max(folded.map(|f| f.max_family)),
        prev_log_number: Some(FileNo(0)),
        next_file_number: Some(next_file),
        last_sequence: Some(last),
        // A transaction database reads older ones where nothing says that it need not.
        min_log_number_to_keep: plans.values().map(|p| p.log_number).min(),
        // The logs that are there speak of the MANIFEST before.
        known_logs: Some(KnownLogs::default()),
        ..VersionEdit::default()
    });
    out
}
