//! The jobs under way, and the levels of a family with their scores. Both name no key, so that they
//! may be shown where data may not.

use crate::core::Core;
use crate::family::Family;
use esker_lsm::plan::Busy;
use esker_lsm::shape;
use std::fmt::Write as _;

/// How many jobs run, and a line for each family with flushes and for each compaction.
pub(super) fn text(core: &Core) -> String {
    let families = core.trees.families.all();
    let jobs = core.background.jobs.lock();
    let mut out = format!(
        "flushes {}, compactions {} (of callers {}), compactions that yield {}\n",
        jobs.flushes, jobs.compactions, jobs.manual, jobs.yielding
    );
    for family in &families {
        let flushes = jobs.pipelines.get(&family.id).map_or(0, |p| p.len());
        // Writing to a string cannot fail.
        if flushes > 0 {
            let _ = writeln!(out, "[{}] {flushes} flushes into L0", family.name);
        }
        for plan in jobs
            .busy
            .get(&family.id)
            .into_iter()
            .flat_map(Busy::running)
        {
            let (first, last) = (plan.outputs.start(), plan.outputs.end());
            let _ = write!(
                out,
                "[{}] compaction of {} tables, L{} to L{first}",
                family.name, plan.files, plan.from
            );
            if first != last {
                let _ = write!(out, "..L{last}");
            }
            let _ = writeln!(out, ", up to {} bytes", plan.output_bytes);
        }
    }
    out
}

/// Files, bytes, target and score of each level, what is owed, and what blob files hold.
pub(super) fn levels(core: &Core, family: &Family) -> String {
    let view = family.view();
    let busy = core.background.jobs.lock().busy.get(&family.id).cloned();
    let policy = &family.assessed(&view.version).policy;
    let busy = busy.unwrap_or_default();
    let levels = shape::summary(&view.version, policy, &busy);
    levels + &shape::blob_summary(&view.version, &busy)
}
