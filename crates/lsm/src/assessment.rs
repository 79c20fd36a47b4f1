//! Figures that follow from a tree and its options alone: computed once when a version is
//! installed, and kept beside it for pickers, writers' gates and properties.
//!
//! Scores and plans depend on what runs and on the moment as well; they are measured against the
//! targets in here. A value that never changes; thread-safety: `Send + Sync`.

use crate::load::Load;
use crate::policy::{CompactionStyle, Policy};
use crate::relief::level0_weight;
use crate::score::{Targets, pending_against, targets};
use crate::space::{PendingSpace, SpaceUse};
use crate::stack;
use crate::version::Version;
use crate::writers::level0_tables;

/// Targets of the levels, and what they mean for compactions and writers.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// Target sizes of the levels.
    pub targets: Targets,
    /// The bytes that compactions must still read and write until no level is over its target.
    pub pending_compaction_bytes: u64,
    /// Tables of level 0, as triggers count them.
    pub tables: usize,
    /// Tables of level 0 by their bytes ([`level0_weight`]).
    pub level0: f64,
    /// The most bytes that the stack of runs above the base should hold, where there is one.
    pub stack_room: Option<u64>,
    /// The part of that room that it takes.
    pub stack: Option<f64>,
    /// Space of the tree against its bound, where there is one.
    pub space: Option<SpaceUse>,
    /// How near the tree is to slowing its writers down, without its memtables.
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
        let stack_room = stack::room(version, policy, &targets);
        let stack = stack_room.map(|room| stack::part(version, room));
        let tables = level0_tables(version, policy.compaction_style);
        let triggers = policy.stall_triggers;
        let runs = triggers.runs(tables as f64, stack);
        let space = SpaceUse::of(version, policy, targets.base_level);
        let mut load = triggers.load(0, runs, pending_compaction_bytes);
        load.space = space.map_or(0.0, |space| space.load(PendingSpace::default(), 0));
        Assessment {
            load,
            space,
            level0: level0_weight(version, policy),
            targets,
            pending_compaction_bytes,
            tables,
            stack_room,
            stack,
        }
    }
}
