//! How urgent a plan is: the one scale by which the plans of all families are compared.
//!
//! | urgency | plans |
//! |---|---|
//! | below 1 | nothing is too large: files are marked, expired or old (see `by_age`), or reads have paid |
//! | 1 to 2 | something is larger than its target: `2 - 1 / score` |
//! | 2 to 3 | the tree is beyond three quarters of where its writers are slowed down |
//! | 3 to 4 | it is between there and where its writers are stopped |
//!
//! What slows writers down is the number of tables in level 0, how full a stack of runs is, or the
//! bytes that compactions owe ([`Needs`]). A plan has the urgency of a need only if it helps to
//! meet it: a merge of level 0 does not pay the debt of a deeper level. Columns, moves into empty
//! ranges and intra-L0 merges have no score, and stand here by the need that they meet, at 1 at
//! least.
//!
//! Urgency alone would let an overloaded family take every job. That is the scheduler's matter: it
//! starts some jobs by how long their families have waited.

use super::{CompactionStyle, Policy};
use crate::plan::{CompactionReason, Plan};
use crate::pressure::Needs;
use crate::score::Targets;
use esker_format::Level;

impl Needs {
    /// The greatest need that `plan` helps to meet.
    fn met_by(&self, plan: &Plan, policy: &Policy, targets: &Targets) -> f64 {
        if policy.compaction_style != CompactionStyle::Level {
            return self.level0;
        }
        let start = plan.start_level();
        // The base makes room for level 0; in a stack all plans do.
        let level0 = if start <= targets.base_level || self.has_tiered_runs {
            self.level0
        } else {
            0.0
        };
        let debt = if start == Level::L0 && plan.output_level == Level::L0 {
            0.0
        } else {
            self.debt
        };
        level0.max(self.stack).max(debt)
    }
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

/// The urgency of a plan of a tree with these needs.
pub(super) fn of(plan: &Plan, policy: &Policy, targets: &Targets, needs: &Needs) -> f64 {
    if let Some(urgency) = by_age(plan.reason) {
        return urgency;
    }
    let by_size = 2.0 - 1.0 / plan.score.max(1.0);
    by_size.max(needs.met_by(plan, policy, targets))
}
