//! Trees in which older versions lie above newer ones.
//!
//! Sequence numbers still tell which version is newer, unless a compaction took the newest for the
//! last one and set its number to 0. So all tables of such a family are merged. Changes nothing
//! itself.

use super::found::{Inventory, TableCondition};
use super::rewrite::READAHEAD;
use super::{FamilyRepair, Repair};
use esker_files::table::ReadContext;
use esker_format::{FamilyId, KeyOrder};
use esker_lsm::disorder::{OpenTable, find};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::version::Version;
use esker_status::Result;
use std::collections::BTreeMap;

impl Repair<'_> {
    /// Looks for families whose tables lie in the wrong order, tells them and has them merged; for
    /// trees of a MANIFEST. Tables that are to be made of damaged ones are left out: they are not
    /// there yet.
    pub(super) fn find_disorder(
        &mut self,
        plans: &mut BTreeMap<FamilyId, FamilyRepair>,
        found: &Inventory,
    ) -> Result<()> {
        for plan in plans.values_mut().filter(|plan| !plan.must_merge) {
            let Some(version) = tree_of(&plan.order, &plan.tree, found) else {
                continue;
            };
            let paths = self.paths_of(&plan.name);
            let disorder = find(&version, |_, file| {
                let (path, seq) = (paths.of(file), Some(file.largest_seq));
                let table = super::scan::open(&self.env, &path, plan.order.clone(), seq)?;
                Ok(OpenTable {
                    tombstones: table.range_tombstones().iter().cloned().collect(),
                    cursor: table.cursor(&ReadContext::compaction(READAHEAD)),
                })
            })
            .map_err(|e| self.stop(e))?;
            for wrong in &disorder {
                self.report.has_lost_data = true;
                self.report.losses.push(format!(
                    "family {}: {wrong}: deletions and newer versions that compactions dropped \
                     there may be gone",
                    plan.name
                ));
            }
            plan.must_merge = !disorder.is_empty();
        }
        Ok(())
    }
}

/// The tree of the tables that can be read; `None` where they make none.
fn tree_of(order: &KeyOrder, tree: &TreeEdit, found: &Inventory) -> Option<Version> {
    let added = tree.added.iter();
    let readable = added.filter(|(_, f)| found.state_of(f.number) == TableCondition::Readable);
    let readable = TreeEdit {
        added: readable.cloned().collect(),
        ..TreeEdit::default()
    };
    let deepest = readable
        .added
        .iter()
        .map(|(level, _)| level.index())
        .max()?;
    let levels = Version::empty(order.clone(), deepest + 1);
    apply(&levels, &[readable]).ok()
}
