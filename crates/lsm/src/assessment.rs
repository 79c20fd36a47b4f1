//! What follows from a tree and its options alone: computed once when a version is installed, and
//! kept beside it for pickers, writers' gates and properties.
//!
//! Scores and plans depend on what runs and on the moment as well; they are measured against the
//! targets in here. A value that never changes; thread-safety: `Send + Sync`.

use crate::load::{Load, StackFill};
use crate::policy::{CompactionStyle, Policy};
use crate::score::{Targets, pending_against, targets};
use crate::stack::fill_against;
use crate::version::Version;
use crate::writers::level0_tables;

/// Targets of the levels, and what they mean for compactions and writers.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// What the levels should weigh.
    pub targets: Targets,
    /// The bytes that compactions must still read and write until no level is over its target.
    pub pending_compaction_bytes: u64,
    /// How much the stack of runs above the base holds, where there is one.
    pub fill: Option<StackFill>,
    /// How near the tree is to slowing its writers down.
    pub load: Load,
}

impl Assessment {
    /// Assesses a tree.
    pub fn of(version: &Version, policy: &Policy) -> Self {
        let targets = targets(version, policy);
        let leveled = policy.compaction_style == CompactionStyle::Level;
        let pending_compaction_bytes = if leveled {
            pending_against(version, policy, &targets)
        } else {
            0
        };
        let fill = fill_against(version, policy, &targets);
        let tables = level0_tables(version, policy.compaction_style);
        Assessment {
            pending_compaction_bytes,
            fill,
            load: policy
                .stall_triggers
                .load(0, tables, fill, pending_compaction_bytes),
            targets,
        }
    }
}
