//! A MANIFEST folded to the state it describes, also when that state is wrong.
//!
//! Two folds run side by side: a forgiving one that keeps lists of files, so that there is something to
//! show and to check, and the strict one of the engine, [`esker_lsm::edit::apply_records`], whose refusal is
//! kept as the family's [`Family::version`].

use crate::directory::Directory;
use esker_files::current;
use esker_files::manifest::ManifestReader;
use esker_format::edit::{NewFile, VersionEdit};
use esker_format::file_name::{FileKind, manifest_name};
use esker_format::{BYTEWISE_NAME, FamilyId, FileNo, KeyOrder, Level, Seq};
use esker_lsm::version::Version;
use esker_lsm::{check, edit};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A family's state.
#[derive(Debug)]
pub(crate) struct Family {
    /// Its number.
    pub(crate) id: FamilyId,
    /// Its name.
    pub(crate) name: String,
    /// The comparator that the MANIFEST names; the byte-wise one when it names none.
    pub(crate) comparator: String,
    /// Data of logs below this number is in tables.
    pub(crate) log_number: Option<FileNo>,
    /// Its tables.
    pub(crate) files: BTreeMap<FileNo, (Level, NewFile)>,
    /// Its tree, or why it is none. Not known when the comparator is not built in.
    pub(crate) version: Result<Version>,
    records: Vec<VersionEdit>,
    edits: u64,
}

impl Family {
    fn new(id: FamilyId, name: String) -> Family {
        Family {
            id,
            name,
            comparator: BYTEWISE_NAME.to_owned(),
            log_number: None,
            files: BTreeMap::new(),
            version: Err(Error::corruption("not folded")),
            records: Vec::new(),
            edits: 0,
        }
    }

    /// The order of its keys, when it is built in.
    pub(crate) fn order(&self) -> Option<KeyOrder> {
        KeyOrder::builtin(&self.comparator)
    }

    /// The deepest level that any table was ever on, and at least 7 levels.
    fn num_levels(&self, configured: usize) -> usize {
        let added = self.records.iter().flat_map(|r| &r.new_files);
        let deepest = added.map(|(level, _)| level.index() + 1).max().unwrap_or(0);
        deepest.max(configured).max(7)
    }

    fn finish(&mut self, configured: usize) {
        let Some(order) = self.order() else {
            let why = format!("comparator {:?} is not built in", self.comparator);
            self.version = Err(Error::not_supported(why));
            return;
        };
        // Their boundaries are not in the order of the keys that they stand for.
        if self.files.values().any(|(_, f)| !f.timestamps_persisted) {
            self.version = Err(Error::not_supported("tables without their timestamps"));
            return;
        }
        let empty = Version::empty(order, self.num_levels(configured));
        self.version = edit::apply_records(&empty, &self.records).and_then(|v| {
            check::verify(&v)?;
            Ok(v)
        });
        self.records = Vec::new();
    }
}

/// What a whole MANIFEST says.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its number.
    pub(crate) number: FileNo,
    /// The database's id.
    pub(crate) db_id: Option<String>,
    /// Above every number in use.
    pub(crate) next_file_number: Option<FileNo>,
    /// The largest sequence given.
    pub(crate) last_sequence: Option<Seq>,
    /// The largest family id given.
    pub(crate) max_column_family: Option<FamilyId>,
    /// Logs below are not needed.
    pub(crate) min_log_number_to_keep: Option<FileNo>,
    /// Logs that must be there, with the size that was synced.
    pub(crate) tracked_logs: BTreeMap<FileNo, Option<u64>>,
    /// The families.
    pub(crate) families: BTreeMap<FamilyId, Family>,
    /// Edits read.
    pub(crate) edits: u64,
    /// Whether an unfinished tail was ignored.
    pub(crate) torn: bool,
    /// Where the last edit that took effect ends.
    pub(crate) valid_end: u64,
    /// What went wrong, in the order met.
    pub(crate) problems: Vec<Error>,
}

impl Fold {
    /// The live MANIFEST of a directory.
    pub(crate) fn live(dir: &Directory) -> Result<Fold> {
        let number = current::read(&dir.fs, &dir.path)?;
        let path = dir.path.join(manifest_name(number));
        if dir.find(FileKind::Manifest, number).is_none() {
            return Err(
                Error::corruption("CURRENT names a MANIFEST that is missing")
                    .with_file(path)
                    .with_hint("restore the file, or run `esker repair`"),
            );
        }
        Ok(Self::read(dir, &path, number))
    }

    /// The MANIFEST at `path`; problems are inside.
    pub(crate) fn read(dir: &Directory, path: &Path, number: FileNo) -> Fold {
        let mut fold = Fold {
            path: path.to_owned(),
            number,
            ..Fold::default()
        };
        let default = Family::new(FamilyId::DEFAULT, "default".to_owned());
        fold.families.insert(FamilyId::DEFAULT, default);
        if let Err(e) = fold.read_edits(dir) {
            fold.problems.push(e.with_file(path));
        }
        fold.finish(dir);
        fold
    }

    fn read_edits(&mut self, dir: &Directory) -> Result<()> {
        let mut reader = ManifestReader::open(&dir.fs, &self.path)?;
        while let Some(group) = reader.next_group()? {
            for edit in group.edits {
                self.edits += 1;
                self.add(edit, group.offset);
            }
        }
        self.torn = reader.has_torn_tail();
        self.valid_end = reader.valid_end();
        Ok(())
    }

    fn problem(&mut self, offset: u64, what: String) {
        let e = Error::corruption(what)
            .with_file(&self.path)
            .with_offset(offset);
        self.problems.push(e);
    }

    fn add(&mut self, mut edit: VersionEdit, offset: u64) {
        self.facts(&edit);
        if let Some(name) = edit.family_add.take() {
            if self.families.contains_key(&edit.family) {
                self.problem(
                    offset,
                    format!("column family {} is added twice", edit.family),
                );
            }
            self.families
                .insert(edit.family, Family::new(edit.family, name));
        }
        let Some(family) = self.families.get_mut(&edit.family) else {
            if edit.is_wal_manipulation() {
                return;
            }
            let what = format!(
                "an edit of column family {}, which does not exist",
                edit.family
            );
            return self.problem(offset, what);
        };
        if edit.family_drop {
            self.families.remove(&edit.family);
            return;
        }
        if let Some(name) = &edit.comparator {
            family.comparator.clone_from(name);
        }
        if edit.log_number.is_some() {
            family.log_number = family.log_number.max(edit.log_number);
        }
        family.edits += 1;
        for (_, number) in &edit.deleted_files {
            family.files.remove(number);
        }
        for (level, file) in &edit.new_files {
            family.files.insert(file.number, (*level, file.clone()));
        }
        family.records.push(edit);
    }

    fn facts(&mut self, edit: &VersionEdit) {
        if edit.db_id.is_some() {
            self.db_id.clone_from(&edit.db_id);
        }
        self.next_file_number = edit.next_file_number.or(self.next_file_number);
        self.last_sequence = edit.last_sequence.or(self.last_sequence);
        self.max_column_family = edit.max_column_family.max(self.max_column_family);
        self.min_log_number_to_keep = edit.min_log_number_to_keep.max(self.min_log_number_to_keep);
        for wal in &edit.wal_additions {
            self.tracked_logs.insert(wal.number, wal.synced_size);
        }
        if let Some(below) = edit.wal_deletion {
            self.tracked_logs.retain(|number, _| *number >= below);
        }
    }

    fn finish(&mut self, dir: &Directory) {
        for (missing, what) in [
            (self.next_file_number.is_none(), "next file number"),
            (self.last_sequence.is_none(), "last sequence"),
            (
                self.families.values().all(|f| f.log_number.is_none()),
                "log number",
            ),
        ] {
            // A MANIFEST that could not be read to its end lacks them for that reason.
            if missing && self.problems.is_empty() {
                self.problem(0, format!("no {what} entry in MANIFEST"));
            }
        }
        for family in self.families.values_mut() {
            let configured = family_options(dir, &family.name).map_or(7, |o| o.num_levels);
            family.finish(usize::try_from(configured).unwrap_or(7).min(64));
        }
    }

    /// Logs below this number hold nothing that is not in tables.
    pub(crate) fn min_log(&self) -> FileNo {
        let lowest = self
            .families
            .values()
            .map(|f| f.log_number.unwrap_or_default())
            .min();
        let kept = self.min_log_number_to_keep.unwrap_or_default();
        kept.max(lowest.unwrap_or_default())
    }
}

/// What the OPTIONS file says about a family.
pub(crate) fn family_options<'d>(
    dir: &'d Directory,
    name: &str,
) -> Option<&'d esker::options::FamilyOptions> {
    let (_, Ok(loaded)) = dir.options.as_ref()? else {
        return None;
    };
    loaded
        .families
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, o)| o)
}
