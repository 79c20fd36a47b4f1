//! A MANIFEST folded to the state it describes, also when that state is wrong.
//!
//! The fold is the engine's, [`esker_lsm::fold`], told to go on after what the engine would refuse;
//! so there are lists of files to show and to check also where they make no tree. Why they make
//! none is kept as the family's
//! [`Family::version`].

use crate::directory::Directory;
use esker_files::current;
use esker_files::manifest::{ManifestReader, check_newest};
use esker_format::edit::NewFile;
use esker_format::file_name::{FileKind, manifest_name};
use esker_format::{BYTEWISE_NAME, FamilyId, FileNo, KeyOrder, Level, Seq};
use esker_lsm::fold::{FoldedEdits, FoldedFamily};
use esker_lsm::version::Version;
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
}

impl Family {
    /// Makes the family of a fold, with `configured` levels or as many as it needs.
    fn new(id: FamilyId, folded: &FoldedFamily, configured: usize) -> Family {
        let comparator = folded.comparator.as_deref().unwrap_or(BYTEWISE_NAME);
        let files = folded.files().into_iter();
        Family {
            id,
            name: folded.name.clone(),
            comparator: comparator.to_owned(),
            log_number: folded.has_log_number.then_some(folded.log_number),
            files: files.map(|(n, (l, f))| (n, (l, f.clone()))).collect(),
            version: version(comparator, folded, configured),
        }
    }

    /// The order of its keys, when it is built in.
    pub(crate) fn order(&self) -> Option<KeyOrder> {
        KeyOrder::builtin(&self.comparator)
    }
}

fn version(comparator: &str, folded: &FoldedFamily, configured: usize) -> Result<Version> {
    let order = KeyOrder::builtin(comparator).ok_or_else(|| {
        Error::not_supported(format!("comparator {comparator:?} is not built in"))
    })?;
    // Their boundaries are not in the order of the keys that they stand for.
    if folded
        .files()
        .values()
        .any(|(_, f)| !f.timestamps_persisted)
    {
        return Err(Error::not_supported("tables without their timestamps"));
    }
    let deepest = folded.deepest_level().map_or(0, |l| l.index() + 1);
    folded.version(&order, deepest.max(configured).max(7))
}

/// Contents of a whole MANIFEST.
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
    min_log: FileNo,
    /// Logs that must be there, with the size that was synced.
    pub(crate) tracked_logs: BTreeMap<FileNo, Option<u64>>,
    /// The families.
    pub(crate) families: BTreeMap<FamilyId, Family>,
    /// Edits read.
    pub(crate) edits: u64,
    /// True if an unfinished tail was ignored.
    pub(crate) torn: bool,
    /// Where the last edit that took effect ends.
    pub(crate) valid_end: u64,
    /// True if it was read to its end: else edits are missing, and it is not known what they said.
    pub(crate) is_read_to_end: bool,
    /// Problems, in the order met.
    pub(crate) problems: Vec<Error>,
}

/// Advice about a MANIFEST that cannot be used.
const HINT: &str = "restore the file, or run `esker repair` on a copy of the directory";

/// Adds advice to an error that is damage.
pub(crate) fn hinted(e: Error) -> Error {
    if e.is_corruption() {
        e.with_hint(HINT)
    } else {
        e
    }
}

/// The number of the MANIFEST that CURRENT names.
pub(crate) fn live_number(dir: &Directory) -> Result<FileNo> {
    match current::read(&dir.fs, &dir.path) {
        Err(e) if e.is_not_found() && dir.files.is_empty() => {
            let e = Error::not_found("no database here: CURRENT is missing");
            Err(e.with_file(&dir.path))
        }
        Err(e) if e.is_not_found() => {
            let what = "CURRENT is missing, but the directory holds files of a database";
            Err(hinted(Error::corruption(what).with_file(&dir.path)))
        }
        read => read.map_err(hinted),
    }
}

impl Fold {
    /// The live MANIFEST of a directory.
    pub(crate) fn live(dir: &Directory) -> Result<Fold> {
        let number = live_number(dir)?;
        let path = dir.path.join(manifest_name(number));
        if dir.find(FileKind::Manifest, number).is_none() {
            return Err(
                Error::corruption("CURRENT names a MANIFEST that is missing")
                    .with_file(path)
                    .with_hint(HINT),
            );
        }
        let mut fold = Self::read(dir, &path, number);
        fold.problems
            .extend(check_newest(&dir.fs, &dir.path, number).err());
        Ok(fold)
    }

    /// The MANIFEST at `path`; problems are inside.
    pub(crate) fn read(dir: &Directory, path: &Path, number: FileNo) -> Fold {
        let mut fold = Fold {
            path: path.to_owned(),
            number,
            ..Fold::default()
        };
        let mut folded = FoldedEdits::default();
        match fold.read_edits(dir, &mut folded) {
            Ok(()) => fold.is_read_to_end = true,
            Err(e) => fold.problems.push(hinted(e.with_file(path))),
        }
        // A MANIFEST that could not be read to its end lacks them for that reason.
        if fold.problems.is_empty() {
            let missing = folded.missing().into_iter();
            let problems = missing.map(|what| {
                let what = format!("no {what} entry in the MANIFEST");
                hinted(Error::corruption(what).with_file(path))
            });
            fold.problems.extend(problems);
        }
        fold.min_log = folded.oldest_needed_log();
        for (id, family) in &folded.families {
            let configured = family_options(dir, &family.name).map_or(7, |o| o.num_levels);
            let configured = usize::try_from(configured).unwrap_or(7).min(64);
            fold.families
                .insert(*id, Family::new(*id, family, configured));
        }
        fold.db_id = folded.db_id;
        fold.next_file_number = folded.next_file_number;
        fold.last_sequence = folded.last_sequence;
        fold.max_column_family = folded.max_column_family;
        fold.min_log_number_to_keep = folded.min_log_number_to_keep;
        fold.tracked_logs = folded.tracked_logs;
        fold.edits = folded.edits;
        fold
    }

    fn read_edits(&mut self, dir: &Directory, folded: &mut FoldedEdits) -> Result<()> {
        let mut reader = ManifestReader::open(&dir.fs, &self.path)?;
        while let Some(group) = reader.next_group()? {
            for edit in group.edits {
                folded.add(edit, &mut |e| {
                    let e = e.with_file(&self.path).with_offset(group.offset);
                    self.problems.push(e);
                    Ok(())
                })?;
            }
        }
        self.torn = reader.has_torn_tail();
        self.valid_end = reader.valid_end();
        Ok(())
    }

    /// Returns whether what it does not list is surely not needed.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_read_to_end && !self.torn && self.problems.is_empty()
    }

    /// Logs below this number hold nothing that is not in tables.
    pub(crate) fn min_log(&self) -> FileNo {
        self.min_log
    }
}

/// Returns the options of a family in the OPTIONS file.
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
