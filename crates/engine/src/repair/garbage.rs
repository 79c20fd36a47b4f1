//! What of the blob files of a repaired tree is garbage: counted anew from the tables, since those
//! that are lost took their references with them.

use super::Repair;
use super::found::Inventory;
use esker_format::FileNo;
use esker_format::blob_refs::BlobRefs;
use esker_lsm::edit::TreeEdit;

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
}
