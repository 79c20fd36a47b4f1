//! Makes families and trees from the properties of tables, when no MANIFEST can be used.
//!
//! Changes nothing.

use super::found::{Inventory, ReadableTable};
use super::{FamilyRepair, Repair};
use esker_format::edit::NewFile;
use esker_format::{FamilyId, FileNo, KeyOrder, Level, Seq, file_name};
use esker_lsm::edit::TreeEdit;
use esker_lsm::file::FileMeta;
use esker_status::{Error, Result};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a blob file is set aside.
const UNREFERENCED: &str = "a blob file that no table refers to";

impl Repair<'_> {
    /// Every table at level 0 of its family; [`order_by_age`] orders them.
    pub(super) fn plan_by_tables(
        &mut self,
        found: &mut Inventory,
    ) -> Result<BTreeMap<FamilyId, FamilyRepair>> {
        take_salvaged(found);
        drop_unfinished(found);
        self.drop_replaced_families(found);
        self.drop_outlying(found);
        self.drop_hollow(found);
        drop_foreign_blobs(found);
        let mut plans = BTreeMap::new();
        let order = self.family_options("default").comparator.clone();
        plans.insert(FamilyId::DEFAULT, plan_of("default", order));
        let mut unlisted = Vec::new();
        let mut by_family: BTreeMap<FamilyId, Vec<&ReadableTable>> = BTreeMap::new();
        for t in found.tables.values() {
            if t.is_ageless {
                self.report.notes.push(format!(
                    "table {} was ingested: taken for the oldest data, since only the MANIFEST knew its age",
                    t.meta.number
                ));
            }
            by_family.entry(t.family).or_default().push(t);
        }
        for (id, mut tables) in by_family {
            tables.sort_by_key(|t| age_of(&t.meta));
            let name = name_of(id, tables[0]);
            let comparator = &tables[0].comparator;
            if let Some(odd) = tables.iter().find(|t| t.comparator != *comparator) {
                let what = format!("tables of family {name:?} have different comparators");
                return Err(Error::corruption(what).with_file(&odd.path));
            }
            let mut plan = plan_of(&name, self.order_of(&name, Some(comparator))?);
            for t in &tables {
                let file = NewFile::from(&t.meta);
                let meta = FileMeta {
                    path_id: self.path_id(&name, &t.path).unwrap_or(0),
                    ..FileMeta::from(file)
                };
                plan.tree.added.push((Level::L0, Arc::new(meta)));
            }
            let blobs = found.blobs.values().filter(|(_, family, _)| *family == id);
            plan.tree.blobs = blobs.map(|(_, _, blob)| blob.clone()).collect();
            let unreferenced = self.recount_garbage(&mut plan.tree, found);
            let paths = unreferenced.iter().filter_map(|n| found.blobs.get(n));
            let paths = paths.map(|(path, ..)| (path.clone(), UNREFERENCED.to_owned()));
            unlisted.extend(paths);
            plans.insert(id, plan);
        }
        found.unlisted.extend(unlisted);
        Ok(plans)
    }

    /// A table can only be listed in one of the paths of its family.
    fn drop_outlying(&mut self, found: &mut Inventory) {
        let mut outlying = Vec::new();
        found.tables.retain(|_, t| {
            let name = name_of(t.family, t);
            let lies = self.path_id(&name, &t.path).is_some();
            if !lies {
                let why = format!("it lies in none of the paths of family {name:?}");
                self.report
                    .losses
                    .push(format!("{}: {why}", t.path.display()));
                self.report.has_lost_data = true;
                outlying.push((t.path.clone(), why));
            }
            lies
        });
        found.unlisted.extend(outlying);
    }

    /// Drops tables whose values are all in blob files that are not there: those of a family that
    /// was dropped, or that was merged, lie here until they are deleted or written over. Tells of
    /// the values that other tables miss.
    fn drop_hollow(&mut self, found: &mut Inventory) {
        let (mut hollow, mut lost) = (Vec::new(), BTreeMap::new());
        for (number, t) in std::mem::take(&mut found.tables) {
            let is_missing = |blob| !found.has_blob(blob);
            let missing: Vec<_> = t
                .refs
                .iter()
                .filter(|(blob, _)| is_missing(*blob))
                .collect();
            let values: u64 = missing.iter().map(|(_, of)| of.count).sum();
            if values > 0 && values == t.entries {
                hollow.push((
                    t.path,
                    "all its values are in blob files that are not there".into(),
                ));
                continue;
            }
            for (blob, of) in missing {
                *lost.entry(blob).or_insert(0) += of.count;
            }
            found.tables.insert(number, t);
        }
        let has_lost = !hollow.is_empty() || !lost.is_empty();
        self.report.has_lost_data |= has_lost;
        found.unlisted.extend(hollow);
        self.report
            .losses
            .extend(lost.into_iter().map(|(blob, values)| {
                let name = file_name::blob_name(blob);
                format!("{name} is missing: reads of {values} values fail")
            }));
    }

    /// The highest id of a name is the family that lives; tables of a lower one are left from a
    /// family that was dropped.
    fn drop_replaced_families(&mut self, found: &mut Inventory) {
        let mut names: BTreeMap<String, FamilyId> = BTreeMap::new();
        let mut ids: BTreeMap<FamilyId, String> = BTreeMap::new();
        for t in found.tables.values() {
            ids.entry(t.family).or_insert_with(|| name_of(t.family, t));
        }
        let mut replaced: BTreeMap<FamilyId, String> = BTreeMap::new();
        for (id, name) in ids.into_iter().rev() {
            match names.entry(name) {
                Entry::Vacant(free) => {
                    free.insert(id);
                }
                Entry::Occupied(taken) => {
                    let (name, newer) = (taken.key(), taken.get());
                    let why = format!("family {id} {name:?} was dropped: {newer} has its name");
                    replaced.insert(id, why);
                }
            }
        }
        found.tables.retain(|_, t| match replaced.get(&t.family) {
            None => true,
            Some(why) => {
                found.unlisted.push((t.path.clone(), why.clone()));
                false
            }
        });
        self.report.notes.extend(replaced.into_values());
    }
}

/// Takes the readable parts of damaged tables as tables, under their new numbers.
fn take_salvaged(found: &mut Inventory) {
    for salvaged in found.salvaged.values() {
        let new = &salvaged.found;
        let table = ReadableTable {
            path: new.path.clone(),
            family_name: new.family_name.clone(),
            comparator: new.comparator.clone(),
            meta: FileMeta::from(NewFile::from(&new.meta)),
            refs: new.refs.clone(),
            ..*new
        };
        found.tables.insert(new.meta.number, table);
    }
}

/// Drops the tables that an interrupted repair made of others that are still there.
fn drop_unfinished(found: &mut Inventory) {
    let new: BTreeSet<_> = found
        .salvaged
        .values()
        .map(|s| s.found.meta.number)
        .collect();
    let is_left = |n: &FileNo, t: &ReadableTable| {
        let of = t.made_of.filter(|_| !new.contains(n));
        of.is_some_and(|of| found.tables.contains_key(&of) || found.salvaged.contains_key(&of))
    };
    let left: Vec<FileNo> = found
        .tables
        .iter()
        .filter(|(n, t)| is_left(n, t))
        .map(|(n, _)| *n)
        .collect();
    for number in left {
        if let Some(table) = found.tables.remove(&number) {
            let why = "left of a repair that was interrupted".to_owned();
            found.unlisted.push((table.path, why));
        }
    }
}

fn name_of(id: FamilyId, table: &ReadableTable) -> String {
    match id {
        FamilyId::DEFAULT => "default".to_owned(),
        _ if table.family_name.is_empty() => format!("family-{id}"),
        _ => table.family_name.clone(),
    }
}

/// A tree may only list blob files from the oldest that a table names on.
fn drop_foreign_blobs(found: &mut Inventory) {
    let tables = &found.tables;
    found.blobs.retain(|number, (path, family, _)| {
        let is_named = tables
            .values()
            .any(|t| t.family == *family && t.meta.oldest_blob_file.is_some_and(|o| o <= *number));
        if !is_named {
            found.unlisted.push((path.clone(), UNREFERENCED.to_owned()));
        }
        is_named
    });
}

fn plan_of(name: &str, order: KeyOrder) -> FamilyRepair {
    FamilyRepair {
        name: name.to_owned(),
        order,
        log_number: FileNo(0),
        tree: TreeEdit::default(),
        must_merge: false,
    }
}

/// Returns the order of tables by age, oldest first, when nothing else decides.
fn age_of(table: &FileMeta) -> (Seq, Seq, FileNo) {
    (table.largest_seq, table.smallest_seq, table.number)
}

/// Orders the tables of a plan, all of level 0, by their sequences.
pub(super) fn order_by_age(plan: &mut FamilyRepair) {
    let files = &mut plan.tree.added;
    files.sort_by_key(|(_, f)| age_of(f));
    for (epoch, (_, file)) in (1..).zip(files) {
        *file = Arc::new(FileMeta {
            epoch,
            ..FileMeta::from(NewFile::from(&**file))
        });
    }
    plan.must_merge = must_merge(&plan.order, &plan.tree.added);
}

/// Returns whether two tables overlap in user keys and in sequences: level 0 alone would not put
/// their entries in order.
fn must_merge(order: &KeyOrder, tables: &[(Level, Arc<FileMeta>)]) -> bool {
    tables.iter().enumerate().any(|(i, (_, a))| {
        tables[i + 1..].iter().any(|(_, b)| {
            let seqs = a.smallest_seq <= b.largest_seq && b.smallest_seq <= a.largest_seq;
            seqs && a.overlaps(order, Some(b.smallest.user()), Some(b.largest.user()))
        })
    })
}
