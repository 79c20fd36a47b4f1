//! Folding a MANIFEST: its edits, read from the file, go through [`esker_lsm::fold`], and whatever
//! contradicts the rest is an error.

use esker_env::FileSystem;
use esker_files::current;
use esker_files::manifest::ManifestReader;
use esker_format::edit::VersionEdit;
use esker_format::{FamilyId, FileNo, Seq, file_name};
pub(crate) use esker_lsm::fold::known_order;
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// Advice about a damaged MANIFEST.
const HINT: &str = "restore the file, or run `esker repair` on a copy of the directory";

/// Contents of a MANIFEST.
#[derive(Debug, Default)]
pub(crate) struct ManifestContents {
    pub(crate) manifest: FileNo,
    pub(crate) next_file: FileNo,
    pub(crate) last_sequence: Seq,
    pub(crate) max_family: FamilyId,
    /// The file ended inside a record: an edit that was never acknowledged.
    pub(crate) torn_tail: bool,
    /// Where the last edit that took effect ends.
    pub(crate) valid_end: u64,
    said: esker_lsm::fold::FoldedEdits,
}

impl Deref for ManifestContents {
    type Target = esker_lsm::fold::FoldedEdits;
    fn deref(&self) -> &Self::Target {
        &self.said
    }
}

impl DerefMut for ManifestContents {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.said
    }
}

impl ManifestContents {
    /// Returns the contents of a MANIFEST `number` that has `edit` alone.
    pub(crate) fn beginning(number: FileNo, edit: VersionEdit) -> Result<ManifestContents> {
        let mut folded = ManifestContents {
            manifest: number,
            ..ManifestContents::default()
        };
        folded.said.add(edit, &mut Err)?;
        folded.settle();
        Ok(folded)
    }

    /// Takes the figures over that the edits so far lead to.
    fn settle(&mut self) {
        self.next_file = self.said.next_file_number.unwrap_or_default();
        self.last_sequence = self.said.last_sequence.unwrap_or_default();
        let given = self.said.max_column_family.unwrap_or_default();
        self.max_family = self.said.max_added.max(given);
    }

    /// A database that is to be written needs file numbers and sequence numbers that are not given
    /// yet. A MANIFEST that leaves none is refused before anything is named by them.
    pub(crate) fn check_room(&self, dir: &Path) -> Result<()> {
        let left = [
            ("file", FileNo::LIMIT.0.saturating_sub(self.next_file.0)),
            ("sequence", Seq::MAX.0.saturating_sub(self.last_sequence.0)),
        ];
        match left.into_iter().find(|(_, left)| *left < LEAST_LEFT) {
            None => Ok(()),
            Some((kind, _)) => Err(Error::corruption(format!(
                "the MANIFEST leaves no {kind} numbers: next file {}, last sequence {}",
                self.next_file, self.last_sequence
            ))
            .with_file(dir.join(file_name::manifest_name(self.manifest)))
            .with_hint(
                "nothing was changed; restore the MANIFEST, or set it aside and run `esker repair`",
            )),
        }
    }

    /// A MANIFEST that ends inside a record is what a crash leaves, or one that was cut. In a cut
    /// one newer flushes are missing, and they let the log go that the last whole edit still
    /// needed. A family that had gone on to a newer log may be dropped by then: the oldest log to
    /// keep says so.
    pub(crate) fn check_end(&self, fs: &dyn FileSystem, dir: &Path, wal_dir: &Path) -> Result<()> {
        let newest = self.families.values().map(|f| f.log_number).max();
        let newest = newest.max(self.min_log_number_to_keep);
        let Some(log) = newest.filter(|n| self.torn_tail && *n > FileNo(0)) else {
            return Ok(());
        };
        if fs.exists(&wal_dir.join(file_name::log_name(log)))? {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "the MANIFEST ends inside a record, and {}, which its last whole edit needs, is gone: edits are lost",
            file_name::log_name(log)
        ))
        .with_file(dir.join(file_name::manifest_name(self.manifest)))
        .with_hint("restore the MANIFEST, or run `esker repair` on a copy of the directory"))
    }
}

/// Numbers that an opening for writing must find free at least.
const LEAST_LEFT: u64 = 1 << 32;

/// A MANIFEST being folded; it can be gone on with when its writer has added to it.
pub(crate) struct Fold {
    reader: ManifestReader,
    folded: ManifestContents,
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
        let mut fold = Fold {
            reader: ManifestReader::open(fs, &path)?,
            folded: ManifestContents {
                manifest: number,
                ..ManifestContents::default()
            },
        };
        fold.take_groups().map_err(|e| {
            if e.is_corruption() {
                e.with_hint(HINT)
            } else {
                e
            }
        })?;
        fold.check_complete()?;
        Ok(fold)
    }

    /// Takes in what was added since; true when any of it took effect. After an error the fold is
    /// of no use.
    pub(crate) fn read_on(&mut self) -> Result<bool> {
        self.reader.resume();
        self.take_groups()
    }

    pub(crate) fn folded(&self) -> &ManifestContents {
        &self.folded
    }

    pub(crate) fn folded_mut(&mut self) -> &mut ManifestContents {
        &mut self.folded
    }

    fn take_groups(&mut self) -> Result<bool> {
        let mut any = false;
        while let Some(group) = self.reader.next_group()? {
            any = true;
            for edit in group.edits {
                self.folded
                    .said
                    .add(edit, &mut Err)
                    .map_err(|e| e.with_file(self.reader.path()).with_offset(group.offset))?;
            }
        }
        let folded = &mut self.folded;
        folded.settle();
        folded.torn_tail = self.reader.has_torn_tail();
        folded.valid_end = self.reader.valid_end();
        Ok(any)
    }

    fn check_complete(&self) -> Result<()> {
        match self.folded.missing().first() {
            Some(what) => Err(
                Error::corruption(format!("no {what} entry in the MANIFEST"))
                    .with_file(self.reader.path())
                    .with_hint(HINT),
            ),
            None => Ok(()),
        }
    }
}

/// Reads the MANIFEST `number` of the database in `dir`.
pub(crate) fn fold(fs: &dyn FileSystem, dir: &Path, number: FileNo) -> Result<ManifestContents> {
    Ok(Fold::open(fs, dir, number)?.folded)
}

/// The families of the database in `dir`, by number, each with the name of its comparator: what the
/// MANIFEST says of them alone. Its writer may be at work.
pub(crate) fn family_names(
    fs: &dyn FileSystem,
    dir: &Path,
) -> Result<Vec<(String, Option<String>)>> {
    let mut number = current::read(fs, dir)?;
    loop {
        let failed = match names_in(fs, &dir.join(file_name::manifest_name(number))) {
            Ok(names) => return Ok(names),
            Err(e) => e,
        };
        let newer = current::read(fs, dir)?;
        if newer == number || !failed.is_not_found() {
            return Err(failed);
        }
        number = newer;
    }
}

fn names_in(fs: &dyn FileSystem, path: &Path) -> Result<Vec<(String, Option<String>)>> {
    let mut reader = ManifestReader::open(fs, path)?;
    let mut families = BTreeMap::from([(FamilyId::DEFAULT, ("default".to_owned(), None))]);
    while let Some(group) = reader.next_group()? {
        for edit in group.edits {
            if let Some(name) = edit.family_add {
                families.insert(edit.family, (name, None));
            }
            if let (Some(name), Some((_, order))) =
                (edit.comparator, families.get_mut(&edit.family))
            {
                *order = Some(name);
            }
            if edit.family_drop {
                families.remove(&edit.family);
            }
        }
    }
    Ok(families.into_values().collect())
}
