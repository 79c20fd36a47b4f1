//! Folding a MANIFEST: from its edits to the families and their trees.

use esker_env::FileSystem;
use esker_files::manifest::ManifestReader;
use esker_format::edit::{NewFile, VersionEdit};
use esker_format::{FamilyId, FileNo, KeyOrder, Seq, file_name};
use esker_lsm::edit::{TreeEdit, apply, recover_epochs};
use esker_lsm::version::Version;
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What the MANIFEST says.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub(crate) manifest: FileNo,
    pub(crate) families: BTreeMap<FamilyId, FoldedFamily>,
    pub(crate) db_id: Option<String>,
    pub(crate) next_file: FileNo,
    pub(crate) last_sequence: Seq,
    pub(crate) min_log: FileNo,
    pub(crate) max_family: FamilyId,
    /// The logs that were alive and how much of each was synced, when the writer tracked them.
    pub(crate) tracked_logs: BTreeMap<FileNo, Option<u64>>,
    /// The file ended inside a record: an edit that was never acknowledged.
    pub(crate) torn_tail: bool,
    /// Where the last edit that took effect ends.
    pub(crate) valid_end: u64,
}

/// One family in the MANIFEST.
#[derive(Debug)]
pub(crate) struct FoldedFamily {
    pub(crate) name: String,
    pub(crate) comparator: Option<String>,
    pub(crate) timestamps_persisted: bool,
    pub(crate) log_number: FileNo,
    edits: Vec<VersionEdit>,
}

impl FoldedFamily {
    fn new(name: &str) -> Self {
        FoldedFamily {
            name: name.to_owned(),
            comparator: None,
            timestamps_persisted: true,
            log_number: FileNo(0),
            edits: Vec::new(),
        }
    }

    /// The order of its keys: `given` when it is the one that the MANIFEST names or that names none, or a built-in
    /// one.
    pub(crate) fn order(&self, given: &KeyOrder) -> Option<KeyOrder> {
        known_order(self.comparator.as_deref(), given)
    }

    /// The tables that the edits leave in the tree.
    pub(crate) fn live_files(&self) -> Vec<&NewFile> {
        let mut live = BTreeMap::new();
        for edit in &self.edits {
            for (_, number) in &edit.deleted_files {
                live.remove(number);
            }
            live.extend(edit.new_files.iter().map(|(_, f)| (f.number, f)));
        }
        live.into_values().collect()
    }

    /// The family's tree in `order`.
    pub(crate) fn version(&self, order: &KeyOrder, num_levels: usize) -> Result<Version> {
        self.version_over(&Version::empty(order.clone(), num_levels), None)
    }

    /// Forgets the edits: they are in a tree that somebody keeps.
    pub(crate) fn drop_edits(&mut self) {
        self.edits.clear();
    }

    /// Whether there are edits that were not forgotten.
    pub(crate) fn has_edits(&self) -> bool {
        !self.edits.is_empty()
    }

    /// The tree that the edits make of `base`. Tables that `known` has too keep their metadata, and with it their
    /// open readers.
    pub(crate) fn version_over(&self, base: &Version, known: Option<&Version>) -> Result<Version> {
        let num_levels = base.num_levels();
        if let Some(too_deep) = self
            .edits
            .iter()
            .flat_map(|e| &e.new_files)
            .find(|(level, _)| level.index() >= num_levels)
        {
            return Err(Error::invalid_argument(format!(
                "column family {} has a file at level {}, beyond num_levels {num_levels}",
                self.name, too_deep.0
            ))
            .with_hint("raise num_levels"));
        }
        let mut edits: Vec<TreeEdit> = self.edits.iter().map(TreeEdit::from).collect();
        if let Some(known) = known {
            for (_, file) in edits.iter_mut().flat_map(|e| &mut e.added) {
                if let Some((_, old)) = known.find_file(file.number)
                    && old.same_file(file)
                {
                    *file = Arc::clone(old);
                }
            }
        }
        let version = apply(base, &edits)?;
        esker_lsm::check::verify(&version)?;
        Ok(recover_epochs(&version).0)
    }
}

/// The order that `stored` names, when it is `given` or built in; `given` when nothing is stored.
pub(crate) fn known_order(stored: Option<&str>, given: &KeyOrder) -> Option<KeyOrder> {
    match stored {
        Some(name) if name != given.name() => KeyOrder::builtin(name),
        _ => Some(given.clone()),
    }
}

#[derive(Default)]
struct Seen {
    log_number: bool,
    next_file: bool,
    last_sequence: bool,
}

/// A MANIFEST being folded; it can be gone on with when its writer has added to it.
pub(crate) struct Fold {
    reader: ManifestReader,
    folded: Folded,
    seen: Seen,
}

impl std::fmt::Debug for Fold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fold")
            .field("manifest", &self.folded.manifest)
            .finish_non_exhaustive()
    }
}

impl Fold {
    /// Reads the MANIFEST `number` of the database in `dir` to its present end.
    pub(crate) fn open(fs: &dyn FileSystem, dir: &Path, number: FileNo) -> Result<Fold> {
        let path = dir.join(file_name::manifest_name(number));
        let mut folded = Folded {
            manifest: number,
            ..Folded::default()
        };
        folded
            .families
            .insert(FamilyId::DEFAULT, FoldedFamily::new("default"));
        let mut fold = Fold {
            reader: ManifestReader::open(fs, &path)?,
            folded,
            seen: Seen::default(),
        };
        fold.take_groups()?;
        fold.check_complete()?;
        Ok(fold)
    }

    /// Takes in what was added since; true when any of it took effect. After an error the fold is of no use.
    pub(crate) fn read_on(&mut self) -> Result<bool> {
        self.reader.resume();
        self.take_groups()
    }

    pub(crate) fn folded(&self) -> &Folded {
        &self.folded
    }

    pub(crate) fn folded_mut(&mut self) -> &mut Folded {
        &mut self.folded
    }

    fn take_groups(&mut self) -> Result<bool> {
        let mut any = false;
        while let Some(group) = self.reader.next_group()? {
            any = true;
            for edit in group.edits {
                self.folded
                    .add(edit, &mut self.seen)
                    .map_err(|e| e.with_file(self.reader.path()).with_offset(group.offset))?;
            }
        }
        self.folded.torn_tail = self.reader.has_torn_tail();
        self.folded.valid_end = self.reader.valid_end();
        Ok(any)
    }

    fn check_complete(&self) -> Result<()> {
        for (there, what) in [
            (self.seen.next_file, "next_file"),
            (self.seen.log_number, "log_number"),
            (self.seen.last_sequence, "last_sequence"),
        ] {
            if !there {
                return Err(
                    Error::corruption(format!("no {what} entry in the MANIFEST"))
                        .with_file(self.reader.path())
                        .with_hint(
                            "restore the file, or run `esker repair` on a copy of the directory",
                        ),
                );
            }
        }
        Ok(())
    }
}

/// Reads the MANIFEST `number` of the database in `dir`.
pub(crate) fn fold(fs: &dyn FileSystem, dir: &Path, number: FileNo) -> Result<Folded> {
    Ok(Fold::open(fs, dir, number)?.folded)
}

impl Folded {
    fn add(&mut self, edit: VersionEdit, seen: &mut Seen) -> Result<()> {
        if let Some(id) = &edit.db_id {
            self.db_id = Some(id.clone());
        }
        if let Some(n) = edit.next_file_number {
            self.next_file = self.next_file.max(n);
            seen.next_file = true;
        }
        if let Some(s) = edit.last_sequence {
            if s < self.last_sequence {
                return Err(Error::corruption(format!(
                    "last sequence goes back from {} to {s}",
                    self.last_sequence
                )));
            }
            self.last_sequence = s;
            seen.last_sequence = true;
        }
        if let Some(n) = edit.min_log_number_to_keep {
            self.min_log = self.min_log.max(n);
        }
        if let Some(f) = edit.max_column_family {
            self.max_family = self.max_family.max(f);
        }
        self.add_logs(&edit);
        if edit.is_wal_manipulation() {
            return Ok(());
        }
        self.add_to_family(edit, seen)
    }

    fn add_logs(&mut self, edit: &VersionEdit) {
        for log in &edit.wal_additions {
            let size = self.tracked_logs.entry(log.number).or_default();
            *size = (*size).max(log.synced_size);
        }
        if let Some(below) = edit.wal_deletion {
            self.tracked_logs = self.tracked_logs.split_off(&below);
        }
    }

    fn add_to_family(&mut self, edit: VersionEdit, seen: &mut Seen) -> Result<()> {
        let id = edit.family;
        if let Some(name) = &edit.family_add {
            if self.families.contains_key(&id) {
                return Err(Error::corruption(format!(
                    "column family {id} is added twice"
                )));
            }
            if self.families.values().any(|f| f.name == *name) {
                return Err(Error::corruption(format!(
                    "two column families are called {name}"
                )));
            }
            self.families.insert(id, FoldedFamily::new(name));
            self.max_family = self.max_family.max(id);
        }
        if edit.family_drop {
            return match self.families.remove(&id) {
                Some(_) if id != FamilyId::DEFAULT => Ok(()),
                _ => Err(Error::corruption(format!(
                    "column family {id} is dropped but cannot be"
                ))),
            };
        }
        let Some(family) = self.families.get_mut(&id) else {
            return Err(Error::corruption(format!(
                "an edit names column family {id}, which does not exist"
            )));
        };
        if let Some(name) = &edit.comparator {
            family.comparator = Some(name.clone());
        }
        if let Some(persisted) = edit.persist_user_defined_timestamps {
            family.timestamps_persisted = persisted;
        }
        if let Some(n) = edit.log_number {
            family.log_number = family.log_number.max(n);
            seen.log_number = true;
        }
        let changes = !edit.new_files.is_empty()
            || !edit.deleted_files.is_empty()
            || !edit.blob_additions.is_empty()
            || !edit.blob_garbage.is_empty()
            || !edit.compact_cursors.is_empty();
        if changes {
            family.edits.push(edit);
        }
        Ok(())
    }

    /// Logs below this number hold nothing that is not in tables.
    pub(crate) fn oldest_needed_log(&self) -> FileNo {
        let least = self
            .families
            .values()
            .map(|f| f.log_number)
            .min()
            .unwrap_or_default();
        self.min_log.max(least)
    }
}
