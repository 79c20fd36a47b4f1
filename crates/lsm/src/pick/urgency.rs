//! How urgent a plan is: the one scale by which the plans of all families are compared.
//!
//! | urgency | plans |
//! |---|---|
//! | below 1 | nothing is too large: files are marked, expired or old (see `by_age`) |
//! | 1 to 2 | something is larger than its target: `2 - 1 / score` |
//! | 2 to 3 | the tree is beyond three quarters of where its writers are slowed down |
//! | 3 to 4 | it is between there and where its writers are stopped |
//!
//! What slows writers down is the number of tables in level 0, how full a stack of runs is, or the
//! bytes that compactions owe ([`Needs`]). A plan has the urgency of a need only if it helps to meet
//! it: a merge of level 0 does not pay the debt of a deeper level. Columns, moves into empty ranges
//! and intra-L0 merges have no score, and stand here by the need that they meet, at 1 at least.
//!
//! Urgency alone would let an overloaded family take every job. That is the scheduler's matter: it
//! starts some jobs by how long their families have waited.

use super::stack::Fill;
use super::{CompactionStyle, Policy};
use crate::plan::{CompactionReason, Plan};
use crate::score::Targets;
use crate::version::Version;
use esker_format::Level;

/// The part of the way to the slowdown from which on a need counts.
const NEAR: f64 = 0.75;

/// What a tree needs lest it slows its writers down, each from 2 to 4, or 0 while it is far from there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Fewer tables in level 0; under universal compaction, fewer runs.
    pub level0: f64,
    /// Columns: the runs above the base are many.
    pub stack: f64,
    /// There are runs above the base.
    pub has_stack: bool,
    /// Merges of any level: `soft_pending_compaction_bytes_limit` is near.
    pub debt: f64,
}

/// How near `value` is to where writers are slowed down, and past it to where they are stopped.
fn need(value: f64, slowdown: f64, stop: f64) -> f64 {
    if slowdown <= 0.0 {
        return 0.0;
    }
    let part = value / slowdown;
    if part < NEAR {
        0.0
    } else if part < 1.0 {
        2.0 + (part - NEAR) / (1.0 - NEAR)
    } else if stop > slowdown {
        3.0 + ((value - slowdown) / (stop - slowdown)).min(1.0)
    } else {
        4.0
    }
}

impl Needs {
    pub(crate) fn of(version: &Version, policy: &Policy, fill: Option<Fill>, debt: u64) -> Self {
        let mut runs = version.level(Level::L0).len();
        if policy.compaction_style == CompactionStyle::Universal {
            let below = version.levels().iter().skip(1);
            runs += below.filter(|l| !l.is_empty()).count();
        }
        Needs {
            level0: need(
                runs as f64,
                f64::from(policy.level0_slowdown_writes_trigger),
                f64::from(policy.level0_stop_writes_trigger),
            ),
            stack: fill.map_or(0.0, |fill| need(fill.part(), 1.0, 2.0)),
            has_stack: fill.is_some(),
            debt: need(
                debt as f64,
                policy.soft_pending_compaction_bytes_limit as f64,
                policy.hard_pending_compaction_bytes_limit as f64,
            ),
        }
    }

    /// The greatest need that `plan` helps to meet.
    fn met_by(&self, plan: &Plan, policy: &Policy, targets: &Targets) -> f64 {
        if policy.compaction_style != CompactionStyle::Level {
            return self.level0;
        }
        let start = plan.start_level();
        // The base makes room for level 0; in a stack all plans do.
        let level0 = if start <= targets.base_level || self.has_stack {
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

/// The urgency of what is done only because files are marked, expired or old, in the order in which one picker
/// looks for it. Dropping whole files costs nothing.
fn by_age(reason: CompactionReason) -> Option<f64> {
    Some(match reason {
        CompactionReason::FifoTtl => 0.9,
        CompactionReason::FilesMarkedForCompaction => 0.8,
        CompactionReason::BottommostFiles => 0.6,
        CompactionReason::Ttl | CompactionReason::RoundRobinTtl => 0.5,
        CompactionReason::PeriodicCompaction => 0.4,
        CompactionReason::ChangeTemperature => 0.2,
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
