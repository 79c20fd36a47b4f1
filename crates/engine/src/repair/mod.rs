//! Repair: from whatever is left of a database to one that opens.
//!
//! The order is: lock, look at everything, and only then change. When a MANIFEST can be read, trees keep their levels;
//! otherwise every table that can be read goes to level 0 of the family that its properties name, newest sequence
//! first. A new MANIFEST is written, and the database is opened by the ordinary code, which replays the logs, taking what
//! can be read of damaged ones, and writes what they held to tables. Nothing is deleted: files that cannot be read
//! or that the MANIFEST does not list, replaced MANIFESTs and replayed logs are in the directory `lost`.

mod scan;

use crate::db::{FamilyDescriptor, Options, aside_name, link_or_copy, set_aside};
use crate::recover::fold::{Folded, FoldedFamily, fold};
use crate::recover::{replay, sweep};
use crate::{Db, FamilyOptions};
use esker_env::{Env, WriteOptions as FileWriteOptions};
use esker_files::manifest::ManifestWriter;
use esker_files::{current, identity};
use esker_format::edit::VersionEdit;
use esker_format::file_name::{self, FileKind, LOCK, parse_file_name};
use esker_format::{FamilyId, FileNo, KeyOrder, Seq};
use esker_lsm::edit::TreeEdit;
use esker_status::{Error, Result};
use scan::Inventory;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a repair found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The MANIFEST that the trees were taken from; `None` when none could be read and every table went to level 0.
    pub manifest: Option<String>,
    /// The families of the repaired database.
    pub families: Vec<String>,
    /// Tables that are part of it, those made from logs not counted.
    pub tables: usize,
    /// Logs whose records were taken.
    pub logs: usize,
    /// Files that were set aside: where each is now, and why.
    pub set_aside: Vec<(PathBuf, String)>,
    /// Tables that the MANIFEST lists and that are not there.
    pub missing: Vec<String>,
    /// What could not be kept, one line each.
    pub losses: Vec<String>,
}

/// A family as the repaired database will have it.
struct Plan {
    name: String,
    order: KeyOrder,
    log_number: FileNo,
    tree: TreeEdit,
    /// Tables of it overlap in keys and in sequences, so that only merging them puts versions in order.
    must_merge: bool,
}

impl Db {
    /// Makes the database at `path` one that opens again, from what can be read of it. Deletes nothing: what is not
    /// part of the result is in the directory `lost`.
    ///
    /// `options` give the comparator, when it is not a built-in one. `Io` when the database is open somewhere;
    /// `InvalidArgument`, with nothing changed, when there is nothing to repair or a comparator is not known.
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
        Repair::new(path.as_ref(), options).run()
    }
}

struct Repair<'a> {
    env: Env,
    dir: PathBuf,
    wal_dir: PathBuf,
    options: &'a Options,
    report: RepairReport,
}

impl<'a> Repair<'a> {
    fn new(dir: &Path, options: &'a Options) -> Self {
        let wal_dir = match options.db.wal_dir.as_str() {
            "" => dir.to_path_buf(),
            given => PathBuf::from(given),
        };
        Repair {
            env: options.env.clone().unwrap_or_else(Env::posix),
            dir: dir.to_path_buf(),
            wal_dir,
            options,
            report: RepairReport::default(),
        }
    }

    fn run(mut self) -> Result<RepairReport> {
        self.check_is_database()?;
        let lock = self.env.fs.lock(&self.dir.join(LOCK))?;
        let folded = self.fold_any()?;
        let found = scan::inspect(&self.env, &self.dir, self.options, folded.as_ref())?;
        let plans = self.plan(folded.as_ref(), &found)?;
        // Everything was looked at; from here on the directory changes.
        let logs = self.keep_logs()?;
        self.set_files_aside(&found)?;
        self.write_manifest(folded.as_ref(), &found, &plans)?;
        drop(lock);
        self.finish(&plans, &logs)?;
        Ok(self.report)
    }

    fn check_is_database(&self) -> Result<()> {
        let mut names = Vec::new();
        for dir in [&self.dir, &self.wal_dir] {
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

    /// The MANIFEST that CURRENT names, or else the newest that can be read to its end.
    fn fold_any(&mut self) -> Result<Option<Folded>> {
        let fs = &*self.env.fs;
        let mut candidates: Vec<FileNo> = fs
            .read_dir(&self.dir)?
            .iter()
            .filter_map(|e| parse_file_name(&e.name))
            .filter_map(|(kind, n)| (kind == FileKind::Manifest).then_some(n))
            .collect();
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        if let Ok(named) = current::read(fs, &self.dir) {
            candidates.retain(|n| *n != named);
            candidates.insert(0, named);
        }
        for number in candidates {
            let name = file_name::manifest_name(number);
            match fold(fs, &self.dir, number) {
                Ok(folded) => {
                    self.report.manifest = Some(name);
                    return Ok(Some(folded));
                }
                Err(e) => self.report.losses.push(format!("{name}: {e}")),
            }
        }
        Ok(None)
    }

    /// The families and their trees.
    fn plan(
        &mut self,
        folded: Option<&Folded>,
        found: &Inventory,
    ) -> Result<BTreeMap<FamilyId, Plan>> {
        let plans = match folded {
            Some(folded) => self.plan_by_manifest(folded, found)?,
            None => found.plan_by_tables(self.options)?,
        };
        self.report.families = plans.values().map(|p| p.name.clone()).collect();
        self.report.tables = plans.values().map(|p| p.tree.added.len()).sum();
        Ok(plans)
    }

    fn plan_by_manifest(
        &mut self,
        folded: &Folded,
        found: &Inventory,
    ) -> Result<BTreeMap<FamilyId, Plan>> {
        let mut plans = BTreeMap::new();
        for (id, family) in &folded.families {
            let order = order_of(self.options, &family.name, family.comparator.as_deref())?;
            let mut tree = TreeEdit::snapshot(&version_of(family, &order)?);
            tree.added
                .retain(|(level, file)| match found.state_of(file.number) {
                    scan::State::Readable => true,
                    scan::State::Unreadable => false,
                    scan::State::Absent => {
                        let name = file_name::table_name(file.number);
                        self.report.losses.push(format!(
                            "{name} (family {}, level {level}) is missing",
                            family.name
                        ));
                        self.report.missing.push(name);
                        false
                    }
                });
            let plan = Plan {
                name: family.name.clone(),
                order,
                log_number: family.log_number,
                tree,
                must_merge: false,
            };
            plans.insert(*id, plan);
        }
        Ok(plans)
    }

    /// Gives every log a second name in `lost`: replaying deletes the first one. Returns the logs.
    fn keep_logs(&mut self) -> Result<Vec<FileNo>> {
        if !self.env.fs.exists(&self.wal_dir)? {
            return Ok(Vec::new());
        }
        let logs = replay::list(&self.env, &self.wal_dir)?;
        for number in &logs {
            let path = self.wal_dir.join(file_name::log_name(*number));
            let to = aside_name(&self.env, &path)?;
            link_or_copy(&self.env, &path, &to)?;
            self.report
                .set_aside
                .push((to, "a log: its records were taken".to_owned()));
        }
        Ok(logs)
    }

    fn set_files_aside(&mut self, found: &Inventory) -> Result<()> {
        for (path, why) in found.unusable() {
            let to = set_aside(&self.env, path)?;
            self.report
                .losses
                .push(format!("{}: {why}", path.display()));
            self.report.set_aside.push((to, why.clone()));
        }
        for (path, why) in found.unlisted() {
            let to = set_aside(&self.env, path)?;
            self.report.set_aside.push((to, why.clone()));
        }
        Ok(())
    }

    /// Writes the new MANIFEST, sets the old ones aside and points CURRENT at it.
    fn write_manifest(
        &mut self,
        folded: Option<&Folded>,
        found: &Inventory,
        plans: &BTreeMap<FamilyId, Plan>,
    ) -> Result<()> {
        let fs = &*self.env.fs;
        let mut largest = sweep::largest_number(&self.env, &self.dir)?.max(found.largest_number());
        if self.wal_dir != self.dir && fs.exists(&self.wal_dir)? {
            largest = largest.max(sweep::largest_number(&self.env, &self.wal_dir)?);
        }
        let number = FileNo(largest.0.max(folded.map_or(0, |f| f.next_file.0)) + 1);
        let old: Vec<PathBuf> = fs
            .read_dir(&self.dir)?
            .iter()
            .filter(|e| matches!(parse_file_name(&e.name), Some((FileKind::Manifest, _))))
            .map(|e| self.dir.join(&e.name))
            .collect();
        let db_id = match (
            folded.and_then(|f| f.db_id.clone()),
            identity::read(fs, &self.dir),
        ) {
            (Some(id), _) | (None, Ok(id)) if !id.is_empty() => id,
            _ => identity::new_db_id(&*self.env.entropy),
        };
        identity::write(fs, &self.dir, &db_id)?;
        let edits = edits(folded, found, plans, db_id, FileNo(number.0 + 1));
        let options = FileWriteOptions {
            exclusive: true,
            ..FileWriteOptions::default()
        };
        let mut writer = ManifestWriter::create(fs, &self.dir, number, options, &edits)?;
        writer.sync()?;
        writer.close()?;
        current::install(fs, &self.dir, number)?;
        for path in old {
            let to = set_aside(&self.env, &path)?;
            self.report
                .set_aside
                .push((to, "a replaced MANIFEST".to_owned()));
        }
        self.env.fs.sync_dir(&self.dir)
    }

    /// Opens the repaired database once: replays its logs, and merges what only merging puts in order.
    fn finish(&mut self, plans: &BTreeMap<FamilyId, Plan>, logs: &[FileNo]) -> Result<()> {
        let mut options = self.options.clone();
        options.db.wal_recovery_mode = crate::options::WalRecoveryMode::SkipAnyCorruptedRecords;
        options.db.track_and_verify_wals_in_manifest = false;
        options.db.avoid_flush_during_recovery = false;
        options.db.error_if_exists = false;
        let families = plans.values().map(|p| {
            let mut own = FamilyOptions {
                comparator: p.order.clone(),
                ..options.family.clone()
            };
            own.num_levels = own.num_levels.max(7);
            FamilyDescriptor::new(&p.name, own)
        });
        let families = families.collect();
        let db = Db::open_families(&self.dir, options, families)?;
        self.report.logs = logs.len();
        self.report
            .losses
            .extend(db.core().recovery_losses.lock().drain(..));
        for plan in plans.values().filter(|p| p.must_merge) {
            if let Some(family) = db.family(&plan.name) {
                db.compact_range_opt(&family, None, None, &crate::CompactRangeOptions::default())?;
            }
        }
        db.close()
    }
}

/// A family's tree as the MANIFEST has it, with as many levels as that needs.
fn version_of(family: &FoldedFamily, order: &KeyOrder) -> Result<esker_lsm::version::Version> {
    family.version(order, 64)
}

/// The order of a family: the one that `stored` names, built in or given by the options.
fn order_of(options: &Options, family: &str, stored: Option<&str>) -> Result<KeyOrder> {
    let given = &options.family.comparator;
    let Some(stored) = stored else {
        return Ok(given.clone());
    };
    if stored == given.name() {
        return Ok(given.clone());
    }
    KeyOrder::builtin(stored).ok_or_else(|| {
        Error::invalid_argument(format!(
            "column family {family} was written with comparator {stored}"
        ))
        .with_hint("give that comparator in the options")
    })
}

/// The edits of a MANIFEST that holds `plans` and nothing else.
fn edits(
    folded: Option<&Folded>,
    found: &Inventory,
    plans: &BTreeMap<FamilyId, Plan>,
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
    let last = folded
        .map_or(Seq::ZERO, |f| f.last_sequence)
        .max(found.largest_seq());
    out.push(VersionEdit {
        max_column_family: plans
            .keys()
            .max()
            .copied()
            .max(folded.map(|f| f.max_family)),
        prev_log_number: Some(FileNo(0)),
        next_file_number: Some(next_file),
        last_sequence: Some(last),
        ..VersionEdit::default()
    });
    out
}
