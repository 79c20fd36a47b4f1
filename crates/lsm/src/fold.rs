//! Folding a MANIFEST: from its edits, one after the other, to the families and their trees.
//!
//! Pure: the reader of the file hands over the edits, and decides what becomes of those that
//! contradict the others. The engine ends at the first, since it must not open what it cannot
//! trust; the checker takes note of each and goes on with what can be taken of it. Edits that
//! change a tree are kept and applied together, by
//! [`FoldedFamily::version`]: that needs an order of keys, which a MANIFEST only names.
//!
//! One thread at a time.

use crate::check;
use crate::edit::{TreeEdit, apply, recover_epochs};
use crate::version::Version;
use esker_format::edit::{KnownLogs, NewFile, VersionEdit};
use esker_format::{FamilyId, FileNo, KeyOrder, Level, Seq};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sum of the edits.
#[derive(Debug)]
pub struct FoldedEdits {
    /// The families that exist.
    pub families: BTreeMap<FamilyId, FoldedFamily>,
    /// The database's id.
    pub db_id: Option<String>,
    /// Above every number in use.
    pub next_file_number: Option<FileNo>,
    /// The largest sequence given.
    pub last_sequence: Option<Seq>,
    /// Logs below are not needed.
    pub min_log_number_to_keep: Option<FileNo>,
    /// The largest family id given, as edits say.
    pub max_column_family: Option<FamilyId>,
    /// The largest id that any family had.
    pub max_added: FamilyId,
    /// The logs that were alive and how much of each was synced, when the writer tracked them.
    pub tracked_logs: BTreeMap<FileNo, Option<u64>>,
    /// The logs that the last edit that speaks of logs knew.
    pub known_logs: Option<KnownLogs>,
    /// How many edits were folded.
    pub edits: u64,
}

impl Default for FoldedEdits {
    /// No edit yet: the default family exists, and nothing is known.
    fn default() -> Self {
        FoldedEdits {
            families: BTreeMap::from([(FamilyId::DEFAULT, FoldedFamily::new("default"))]),
            db_id: None,
            next_file_number: None,
            last_sequence: None,
            min_log_number_to_keep: None,
            max_column_family: None,
            max_added: FamilyId::DEFAULT,
            tracked_logs: BTreeMap::new(),
            known_logs: None,
            edits: 0,
        }
    }
}

/// One family.
#[derive(Debug)]
pub struct FoldedFamily {
    /// Its name.
    pub name: String,
    /// The comparator that is named; `None` when none is.
    pub comparator: Option<String>,
    /// True if timestamps are stored with its keys, when these have any.
    pub timestamps_persisted: bool,
    /// Versions of keys below this timestamp may be gone; as the last edit that says so has it.
    pub full_history_ts_low: Option<Vec<u8>>,
    /// Data of logs below this number is in tables; 0 when nothing is said.
    pub log_number: FileNo,
    /// True if [`FoldedFamily::log_number`] was said.
    pub has_log_number: bool,
    edits: Vec<VersionEdit>,
}

/// Takes the error of an edit that contradicts the others: the error ends the fold when it comes
/// back, and otherwise as much as possible is taken of the edit.
pub type OnProblem<'a> = &'a mut dyn FnMut(Error) -> Result<()>;

impl FoldedEdits {
    /// Takes the next edit in.
    pub fn add(&mut self, edit: VersionEdit, on_problem: OnProblem<'_>) -> Result<()> {
        self.edits += 1;
        if edit.db_id.is_some() {
            self.db_id.clone_from(&edit.db_id);
        }
        self.next_file_number = self.next_file_number.max(edit.next_file_number);
        if let Some(s) = edit.last_sequence {
            let before = self.last_sequence.unwrap_or_default();
            if s < before {
                on_problem(Error::corruption(format!(
                    "last sequence goes back from {before} to {s}"
                )))?;
            }
            self.last_sequence = Some(s.max(before));
        }
        self.min_log_number_to_keep = self.min_log_number_to_keep.max(edit.min_log_number_to_keep);
        self.max_column_family = self.max_column_family.max(edit.max_column_family);
        if edit.known_logs.is_some() || edit.next_file_number.is_some() {
            // A program that appends to this MANIFEST without naming logs also deletes them without
            // naming them.
            self.known_logs = edit.known_logs;
        }
        for log in &edit.wal_additions {
            let size = self.tracked_logs.entry(log.number).or_default();
            *size = (*size).max(log.synced_size);
        }
        if let Some(below) = edit.wal_deletion {
            self.tracked_logs = self.tracked_logs.split_off(&below);
        }
        if edit.is_wal_manipulation() {
            return Ok(());
        }
        self.add_to_family(edit, on_problem)
    }

    fn add_to_family(&mut self, edit: VersionEdit, on_problem: OnProblem<'_>) -> Result<()> {
        let id = edit.family;
        if let Some(name) = &edit.family_add {
            if self.families.contains_key(&id) {
                let what = format!("column family {id} is added twice");
                on_problem(Error::corruption(what))?;
            }
            if self.families.values().any(|f| f.name == *name) {
                let what = format!("two column families are called {name}");
                on_problem(Error::corruption(what))?;
            }
            self.families.insert(id, FoldedFamily::new(name));
            self.max_added = self.max_added.max(id);
        }
        if edit.family_drop {
            if id == FamilyId::DEFAULT || self.families.remove(&id).is_none() {
                let what = format!("column family {id} is dropped but cannot be");
                on_problem(Error::corruption(what))?;
            }
            return Ok(());
        }
        let Some(family) = self.families.get_mut(&id) else {
            let what = format!("an edit names column family {id}, which does not exist");
            return on_problem(Error::corruption(what));
        };
        family.add(edit);
        Ok(())
    }

    /// Names of the fields that every MANIFEST has and this one lacks.
    pub fn missing(&self) -> Vec<&'static str> {
        let has_log_number = self.families.values().any(|f| f.has_log_number);
        let known = [
            (self.next_file_number.is_some(), "next_file"),
            (has_log_number, "log_number"),
            (self.last_sequence.is_some(), "last_sequence"),
        ];
        let missing = known.into_iter().filter(|(is_there, _)| !is_there);
        missing.map(|(_, what)| what).collect()
    }

    /// Logs below this number hold nothing that is not in tables. Where the MANIFEST names the
    /// oldest log to keep, that counts: it may be older than what the families need, for
    /// transactions that were prepared there.
    pub fn oldest_needed_log(&self) -> FileNo {
        let numbers = self.families.values().map(|f| f.log_number);
        let least = numbers.min().unwrap_or_default();
        self.min_log_number_to_keep.unwrap_or(least)
    }
}

impl FoldedFamily {
    fn new(name: &str) -> Self {
        FoldedFamily {
            name: name.to_owned(),
            comparator: None,
            timestamps_persisted: true,
            full_history_ts_low: None,
            log_number: FileNo(0),
            has_log_number: false,
            edits: Vec::new(),
        }
    }

    fn add(&mut self, edit: VersionEdit) {
        if edit.comparator.is_some() {
            self.comparator.clone_from(&edit.comparator);
        }
        if let Some(persisted) = edit.persist_user_defined_timestamps {
            self.timestamps_persisted = persisted;
        }
        // The writer only ever raises it.
        if edit.full_history_ts_low.is_some() {
            self.full_history_ts_low
                .clone_from(&edit.full_history_ts_low);
        }
        if let Some(n) = edit.log_number {
            self.log_number = self.log_number.max(n);
            self.has_log_number = true;
        }
        let changes = !edit.new_files.is_empty()
            || !edit.deleted_files.is_empty()
            || !edit.blob_additions.is_empty()
            || !edit.blob_garbage.is_empty()
            || !edit.compact_cursors.is_empty();
        if changes {
            self.edits.push(edit);
        }
    }

    /// The order of its keys: `given` when it is the one that the MANIFEST names or that names
    /// none, or a built-in one.
    pub fn order(&self, given: &KeyOrder) -> Option<KeyOrder> {
        known_order(self.comparator.as_deref(), given)
    }

    /// The tables that the edits leave, with their levels, also where they make no tree.
    pub fn files(&self) -> BTreeMap<FileNo, (Level, &NewFile)> {
        let mut files = BTreeMap::new();
        for edit in &self.edits {
            for (_, number) in &edit.deleted_files {
                files.remove(number);
            }
            files.extend(edit.new_files.iter().map(|(l, f)| (f.number, (*l, f))));
        }
        files
    }

    /// The deepest level that any table was ever on.
    pub fn deepest_level(&self) -> Option<Level> {
        let added = self.edits.iter().flat_map(|e| &e.new_files);
        added.map(|(level, _)| *level).max()
    }

    /// Forgets the edits: they are in a tree that somebody keeps.
    pub fn drop_edits(&mut self) {
        self.edits.clear();
    }

    /// Returns whether there are edits that were not forgotten.
    pub fn has_edits(&self) -> bool {
        !self.edits.is_empty()
    }

    /// The family's tree in `order`.
    pub fn version(&self, order: &KeyOrder, num_levels: usize) -> Result<Version> {
        self.version_over(&Version::empty(order.clone(), num_levels), None)
    }

    /// The tree that the edits make of `base`. Tables that `known` has too keep their metadata, and
    /// with it their open readers.
    pub fn version_over(&self, base: &Version, known: Option<&Version>) -> Result<Version> {
        let num_levels = base.num_levels();
        if let Some(too_deep) = self.deepest_level().filter(|l| l.index() >= num_levels) {
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
        check::verify(&version)?;
        Ok(recover_epochs(&version))
    }
}

/// The order that `stored` names, when it is `given` or built in; `given` when nothing is stored.
pub fn known_order(stored: Option<&str>, given: &KeyOrder) -> Option<KeyOrder> {
    match stored {
        Some(name) if name != given.name() => KeyOrder::builtin(name),
        _ => Some(given.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(family: u32) -> VersionEdit {
        VersionEdit {
            family: FamilyId(family),
            ..VersionEdit::default()
        }
    }

    fn added(family: u32, name: &str) -> VersionEdit {
        VersionEdit {
            family_add: Some(name.to_owned()),
            log_number: Some(FileNo(3)),
            ..edit(family)
        }
    }

    /// Edits that contradict those before them, each with a word of what is said about it.
    fn contradictions() -> Vec<(VersionEdit, &'static str)> {
        let sequence = |n| VersionEdit {
            last_sequence: Some(Seq(n)),
            ..edit(0)
        };
        let dropped = |n| VersionEdit {
            family_drop: true,
            ..edit(n)
        };
        vec![
            (sequence(9), ""),
            (sequence(5), "goes back"),
            (added(1, "one"), ""),
            (added(1, "other"), "added twice"),
            (added(2, "other"), "are called other"),
            (edit(7), "does not exist"),
            (dropped(0), "cannot be"),
            (dropped(8), "cannot be"),
            (dropped(2), ""),
        ]
    }

    #[test]
    fn a_strict_fold_ends_at_the_first_contradiction() {
        for (n, (_, word)) in contradictions().iter().enumerate() {
            let mut folded = FoldedEdits::default();
            let mut last = Ok(());
            for (edit, _) in contradictions().into_iter().take(n + 1) {
                last = folded.add(edit, &mut Err);
                if last.is_err() {
                    break;
                }
            }
            let first = contradictions().iter().position(|(_, w)| !w.is_empty());
            if first.is_some_and(|first| n >= first) {
                assert!(last.expect_err("it ends").message().contains("goes back"));
            } else {
                assert!(word.is_empty() && last.is_ok());
            }
        }
    }

    #[test]
    fn a_forgiving_fold_tells_all_and_goes_on() {
        let mut folded = FoldedEdits::default();
        let mut told = Vec::new();
        for (edit, _) in contradictions() {
            let mut note = |e: Error| {
                told.push(e.message().to_owned());
                Ok(())
            };
            folded.add(edit, &mut note).expect("it goes on");
        }
        let words: Vec<_> = contradictions().into_iter().map(|(_, w)| w).collect();
        let words: Vec<_> = words.into_iter().filter(|w| !w.is_empty()).collect();
        assert_eq!(told.len(), words.len(), "{told:?}");
        for (told, word) in told.iter().zip(words) {
            assert!(told.contains(word), "{told}: {word}");
        }
        assert_eq!(folded.last_sequence, Some(Seq(9)));
        let names: Vec<_> = folded.families.values().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["default", "other"]);
        assert_eq!(
            (folded.max_added, folded.max_column_family),
            (FamilyId(2), None)
        );
        assert_eq!(folded.missing(), ["next_file"]);
        assert_eq!(folded.oldest_needed_log(), FileNo(0));
        assert_eq!(folded.edits, 9);
    }
}
