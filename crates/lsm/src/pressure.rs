//! How near a tree is to slowing its writers down: how full its stack of runs is, and what the
//! tables of level 0 and the bytes owed ask for.
//!
//! Pure functions of a version, its targets and the options. Pickers order plans by it
//! ([`crate::pick::urgency`]), and writers are slowed down by [`StackFill`].

use crate::policy::Policy;
use crate::score::{Targets, targets};
use crate::stall_triggers::StallTrigger;
use crate::version::Version;
use crate::writers::level0_tables;

/// A batch is so large a part of the last level.
const RUN_PART: f64 = 0.15;
/// It is no larger than this many memtables: merged in itself, a dozen or more at a time, those are
/// some ten tables of level 0.
const RUN_MEMTABLES: f64 = 80.0;
/// The part of what level 0 and all levels of runs can take that is as much as there should ever
/// be: slices begin where the most lies, so half of it is usual.
const FULL: f64 = 1.0;

/// Where a stack slows writers down, in parts of its room, and where it would be full twice.
const OF_STACK: StallTrigger = StallTrigger {
    slowdown: 1.0,
    stop: 2.0,
};

/// How much a stack holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFill {
    /// Bytes above the last level.
    pub above: u64,
    /// The most bytes that there should ever be.
    pub room: u64,
}

impl StackFill {
    /// The part of the room that is taken, from 0 on.
    #[must_use]
    pub fn part(self) -> f64 {
        self.above as f64 / self.room.max(1) as f64
    }
}

/// How much the stack of a tree holds; none where no runs lie above the base.
pub fn fill(version: &Version, policy: &Policy) -> Option<StackFill> {
    fill_against(version, policy, &targets(version, policy))
}

/// The same of a tree with these targets.
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
        room: (above.len() as f64 * run * FULL) as u64,
    })
}

/// How large a batch is over a last level of `last` bytes.
pub(crate) fn bytes_of_run(policy: &Policy, last: u64) -> f64 {
    let most = policy.write_buffer_size as f64 * RUN_MEMTABLES;
    (last as f64 * RUN_PART).min(most)
}

/// What a tree needs lest it slows its writers down, each from 2 to 4, or 0 while it is far from
/// there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Fewer tables in level 0; under universal compaction, fewer runs.
    pub level0: f64,
    /// Columns: the runs above the base are many.
    pub stack: f64,
    /// There are runs above the base.
    pub has_tiered_runs: bool,
    /// Merges of any level: `soft_pending_compaction_bytes_limit` is near.
    pub debt: f64,
}

impl Needs {
    pub(crate) fn of(
        version: &Version,
        policy: &Policy,
        fill: Option<StackFill>,
        debt: u64,
    ) -> Self {
        let triggers = policy.stall_triggers;
        Needs {
            level0: (triggers.level0).need(level0_tables(version, policy.compaction_style) as f64),
            stack: fill.map_or(0.0, |fill| OF_STACK.need(fill.part())),
            has_tiered_runs: fill.is_some(),
            debt: triggers.debt.need(debt as f64),
        }
    }
}
