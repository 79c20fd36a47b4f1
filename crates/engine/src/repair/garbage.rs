//! Garbage in the blob files of a repaired tree, counted anew from the tables, since those that are
//! lost took their references with them.

use super::found::Inventory;
use super::{FamilyRepair, Repair, SetAside};
use crate::runtime::whole_files::aside_name;
use esker_format::blob_refs::BlobRefs;
use esker_format::{FamilyId, FileNo, file_name};
use esker_lsm::edit::TreeEdit;
use esker_status::Result;
use std::collections::BTreeMap;

impl Repair<'_> {
    /// Counts what the tables of `tree` refer to, and takes the blob files out that none refers to.
    /// Returns these.
    ///
    /// A repair without MANIFEST may find both the inputs and the outputs of a compaction, which
    /// name a value twice. Each reference that goes later counts as garbage: so a file has as many
    /// records as there are references at least.
    pub(super) fn recount_garbage(
        &mut self,
        tree: &mut TreeEdit,
        found: &Inventory,
    ) -> Vec<FileNo> {
        let mut refs = BlobRefs::default();
        for (_, file) in &tree.added {
            let salvaged = found.salvaged.values().map(|s| &s.found);
            let mut salvaged = salvaged.filter(|t| t.meta.number == file.number);
            if let Some(table) = found.tables.get(&file.number).or(salvaged.next()) {
                refs.add_all(&table.refs);
            }
        }
        let mut unreferenced = Vec::new();
        tree.garbage.clear();
        tree.blobs.retain_mut(|blob| {
            let live = refs.of(blob.number);
            if live.count == 0 {
                unreferenced.push(blob.number);
                return false;
            }
            if live.count > blob.total_count {
                self.report.notes.push(format!(
                    "tables name some values of blob file {} twice: {} references to {} records",
                    blob.number, live.count, blob.total_count
                ));
            }
            blob.total_count = blob.total_count.max(live.count);
            blob.total_bytes = blob.total_bytes.max(live.bytes);
            let garbage = (
                blob.number,
                blob.total_count - live.count,
                blob.total_bytes - live.bytes,
            );
            if garbage.1 > 0 || garbage.2 > 0 {
                tree.garbage.push(garbage);
            }
            true
        });
        unreferenced
    }

    /// Takes the blob files out of merged trees that are older than all that their tables name, and
    /// has them set aside: opening the tree would delete them, and the tables that name their
    /// values are set aside, too.
    pub(super) fn set_unnamed_blobs_aside(
        &mut self,
        plans: &mut BTreeMap<FamilyId, FamilyRepair>,
        found: &Inventory,
    ) -> Result<()> {
        for plan in plans.values_mut().filter(|plan| plan.must_merge) {
            let named = plan.tree.added.iter();
            let oldest = named.filter_map(|(_, file)| file.oldest_blob_file).min();
            let stays = |blob: FileNo| oldest.is_some_and(|oldest| oldest <= blob);
            let blobs = std::mem::take(&mut plan.tree.blobs).into_iter();
            let (named, unnamed): (Vec<_>, Vec<_>) = blobs.partition(|blob| stays(blob.number));
            plan.tree.blobs = named;
            plan.tree.garbage.retain(|(blob, ..)| stays(*blob));
            for blob in unnamed.iter().filter(|blob| found.has_blob(blob.number)) {
                let path = match found.blobs.get(&blob.number) {
                    Some((path, ..)) => path.clone(),
                    None => {
                        let paths = self.paths_of(&plan.name);
                        paths.first().join(file_name::blob_name(blob.number))
                    }
                };
                self.report.set_aside.push(SetAside {
                    now: aside_name(&self.env, &path)?,
                    path,
                    reason: "a blob file: merged tables name none of its values".to_owned(),
                });
            }
        }
        Ok(())
    }
}
