//! How urgent a plan is: the one scale by which the plans of all families are compared.
//!
//! | urgency | plans |
//! |---|---|
//! | below 1 | nothing is too large: files are marked, expired or old (see `by_age`), or reads have paid |
//! | 1 to 2 | something is larger than its target: `2 - 1 / score` |
//! | 2.75 to 4 | 2 more than the load that the plan relieves, from the near zone on ([`crate::load`]) |
//!
//! A plan has the urgency of a load only if it relieves it: a merge of level 0 does not pay the
//! debt of a deeper level. Slices of a stack, moves into empty ranges and intra-L0 merges have no
//! score, and stand here by the load that they relieve, at 1 at least.
//!
//! Urgency alone would let an overloaded family take every job. That is the scheduler's matter: it
//! starts some jobs by how long their families have waited.

use super::{CompactionStyle, Policy};
use crate::assessment::Assessment;
use crate::load::Zone;
use crate::plan::{CompactionReason, Plan};
use esker_format::Level;

/// The largest load that `plan` relieves.
fn relieved_by(plan: &Plan, policy: &Policy, tree: &Assessment) -> f64 {
    let load = &tree.load;
    let is_for_space =
        plan.reason == CompactionReason::ForcedBlobGarbageCollection || plan.bottommost;
    let space = if is_for_space { load.space } else { 0.0 };
    if policy.compaction_style != CompactionStyle::Level {
        return load.runs.max(space);
    }
    let start = plan.start_level();
    // The base makes room for level 0; in a stack all plans do.
    let runs = if start <= tree.targets.base_level || tree.stack.is_some() {
        load.runs
    } else {
        0.0
    };
    let debt = if start == Level::L0 && plan.output_level == Level::L0 {
        0.0
    } else {
        load.debt
    };
    runs.max(debt).max(space)
}

/// Urgency of a plan that relieves a load, beyond that load: more than any size alone.
const BY_LOAD: f64 = 2.0;

/// Tells whether a plan of this urgency relieves a load that holds writers back, or is about to.
pub fn relieves_load(urgency: f64) -> bool {
    urgency > BY_LOAD
}

/// The urgency of what is done only because files are marked, expired or old, in the order in which
/// one picker looks for it. Dropping whole files costs nothing.
fn by_age(reason: CompactionReason) -> Option<f64> {
    Some(match reason {
        CompactionReason::FifoTtl => 0.9,
        CompactionReason::FilesMarkedForCompaction => 0.8,
        CompactionReason::BottommostFiles => 0.6,
        CompactionReason::Ttl | CompactionReason::RoundRobinTtl => 0.5,
        CompactionReason::PeriodicCompaction => 0.4,
        CompactionReason::ChangeTemperature => 0.2,
        CompactionReason::ReadTriggered => 0.1,
        _ => return None,
    })
}

/// Tells whether the age of files alone makes plans for this reason due. Of files that were written
/// at one time many come due at once.
pub fn is_by_age(reason: CompactionReason) -> bool {
    matches!(
        reason,
        CompactionReason::BottommostFiles
            | CompactionReason::Ttl
            | CompactionReason::RoundRobinTtl
            | CompactionReason::PeriodicCompaction
            | CompactionReason::ChangeTemperature
    )
}

/// The urgency of a plan of this tree.
pub(super) fn of(plan: &Plan, policy: &Policy, tree: &Assessment) -> f64 {
    if let Some(urgency) = by_age(plan.reason) {
        return urgency;
    }
    let by_size = 2.0 - 1.0 / plan.score.max(1.0);
    let relieved = relieved_by(plan, policy, tree);
    if Zone::of(relieved) == Zone::Calm {
        by_size
    } else {
        BY_LOAD + relieved
    }
}
