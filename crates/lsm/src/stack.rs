//! The stack of runs above the base of an overloaded leveled tree: how much it holds, and how much
//! it should hold at the most.
//!
//! Pure functions of a version, its targets and the options. What follows for writers and pickers
//! is the load of the tree ([`crate::load`]).

use crate::load::StackFill;
use crate::policy::Policy;
use crate::score::{Targets, targets};
use crate::version::Version;

/// Target size of a level-0 batch, as a part of the last level.
const RUN_PART: f64 = 0.15;
/// It is no larger than this many memtables: merged in itself, a dozen or more at a time, those are
/// some ten tables of level 0.
const RUN_MEMTABLES: f64 = 80.0;

/// How much the stack of a tree holds; none where no runs lie above the base.
pub fn fill(version: &Version, policy: &Policy) -> Option<StackFill> {
    fill_against(version, policy, &targets(version, policy))
}

/// How much the stack of a tree with these targets holds.
pub(crate) fn fill_against(
    version: &Version,
    policy: &Policy,
    targets: &Targets,
) -> Option<StackFill> {
    if !policy.is_shaped_by_cost() {
        return None;
    }
    let lowest = targets.lowest_unnecessary_level?.index();
    let (last, above) = version.levels().split_last()?;
    let runs = above.get(1..=lowest)?;
    if runs.iter().all(|l| l.is_empty()) {
        return None;
    }
    let run = bytes_of_run(policy, last.bytes());
    Some(StackFill {
        above: above.iter().map(|l| l.bytes()).sum(),
        room: (above.len() as f64 * run) as u64,
    })
}

/// How large a batch is over a last level of `last` bytes.
pub(crate) fn bytes_of_run(policy: &Policy, last: u64) -> f64 {
    let most = policy.write_buffer_size as f64 * RUN_MEMTABLES;
    (last as f64 * RUN_PART).min(most)
}
