//! The state of a tree's writers: the one definition that pickers share with what slows writers
//! down. The scale that both go by is [`crate::load`].

use crate::load::Zone;
use crate::overload::REST_US;
use crate::policy::{CompactionStyle, Policy};
use crate::read_demand::ReadDemand;
use crate::space::PendingSpace;
use crate::version::Version;
use esker_format::{Level, Seq};

/// The tables of level 0 as triggers count them: under universal compaction each run of a level
/// below is one more, as in RocksDB.
pub fn level0_tables(version: &Version, style: CompactionStyle) -> usize {
    match style {
        CompactionStyle::Universal => version.sorted_runs(),
        _ => version.level(Level::L0).len(),
    }
}

/// The state of a tree's writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriterState {
    /// No flush brought a table a moment ago.
    #[default]
    Resting,
    /// Tables come, or writers are held back that would bring them.
    Writing,
}

impl WriterState {
    /// Of writers that are held back for the tree or not, and whose last flush was so long ago.
    pub fn of(is_held_back: bool, since_flush_us: Option<u64>) -> Self {
        if is_held_back || since_flush_us.is_some_and(|us| us < REST_US) {
            WriterState::Writing
        } else {
            WriterState::Resting
        }
    }
}

/// Inputs of a decision besides the tree and the options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PickContext {
    /// Unix seconds; 0 when unknown, then nothing expires.
    pub now: u64,
    /// The oldest snapshot, or the last sequence when there is none.
    pub oldest_snapshot: Seq,
    /// True if somebody waits for the tree to be in shape: then level 0 does not wait for more
    /// tables.
    pub draining: bool,
    /// The state of the writers.
    pub writers: WriterState,
    /// The zone of the mean load that writers are paced by: from the near zone on merges are for
    /// writing little, not for few runs.
    pub paced: Zone,
    /// The demand of the reads.
    pub reads: ReadDemand,
    /// Bytes that take space, or will, beside the files of the tree.
    pub beside: PendingSpace,
}

impl PickContext {
    /// Tells whether writers have a pace.
    pub(crate) fn is_paced(&self) -> bool {
        self.paced >= Zone::Near
    }

    /// Returns whether the tree is to be shaped for tables that come. Not so while somebody waits
    /// for it to be in shape.
    pub(crate) fn expects_flushes(&self) -> bool {
        !self.draining && self.writers != WriterState::Resting
    }
}

/// The zone of a tree by the number of its tables of level 0, as triggers count them.
pub(crate) fn level0_zone(version: &Version, policy: &Policy) -> Zone {
    let tables = level0_tables(version, policy.compaction_style) as f64;
    Zone::of(policy.stall_triggers.level0.load(tables))
}

/// Returns whether more tables of level 0 should go down together: they come, and are not about to
/// slow writers down.
pub(crate) fn gathers_level0(version: &Version, policy: &Policy, moment: PickContext) -> bool {
    level0_zone(version, policy) == Zone::Calm && moment.expects_flushes()
}
