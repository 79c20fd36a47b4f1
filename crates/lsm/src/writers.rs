//! What the writers of a tree do: the one definition that pickers share with what slows writers
//! down. The scale that both go by is [`crate::load`].
//!
//! Writers are *throttled* while their gate stops them, or its pace held one of them back a moment
//! ago ([`WriterState`]).

use crate::load::Zone;
use crate::policy::{CompactionStyle, Policy};
use crate::read_demand::ReadDemand;
use crate::version::Version;
use esker_format::{Level, Seq};

/// Fewer files of level 0 are not merged among themselves.
pub const MIN_FILES_FOR_INTRA_L0: usize = 4;

/// Microseconds without a flush after which writers rest.
pub const REST_US: u64 = 2_000_000;

/// Microseconds after a wait for which writers count as throttled: a caller that asks once a second
/// sees it.
pub const THROTTLED_US: u64 = 1_000_000;

/// The tables of level 0 as triggers count them: under universal compaction each run of a level
/// below is one more, as in RocksDB.
pub fn level0_tables(version: &Version, style: CompactionStyle) -> usize {
    match style {
        CompactionStyle::Universal => version.sorted_runs(),
        _ => version.level(Level::L0).len(),
    }
}

/// What the writers of a tree do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriterState {
    /// No flush brought a table a moment ago.
    #[default]
    Resting,
    /// Tables come.
    Writing,
    /// They are held back for the tree.
    Throttled,
}

impl WriterState {
    /// Of writers that are throttled or not, and whose last flush was so long ago.
    pub fn of(is_throttled: bool, since_flush_us: Option<u64>) -> Self {
        if is_throttled {
            WriterState::Throttled
        } else if since_flush_us.is_some_and(|us| us < REST_US) {
            WriterState::Writing
        } else {
            WriterState::Resting
        }
    }
}

/// What a decision needs besides the tree and the options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PickContext {
    /// Unix seconds; 0 when unknown, then nothing expires.
    pub now: u64,
    /// The oldest snapshot, or the last sequence when there is none.
    pub oldest_snapshot: Seq,
    /// Whether somebody waits for the tree to be in shape: then level 0 does not wait for more
    /// tables.
    pub draining: bool,
    /// What writers do: while they are throttled, merges are for writing little, not for few runs.
    pub writers: WriterState,
    /// What reads ask for.
    pub reads: ReadDemand,
}

impl PickContext {
    /// Whether writers are held back for the tree.
    pub(crate) fn is_throttled(&self) -> bool {
        self.writers == WriterState::Throttled
    }

    /// Whether the tree is to be shaped for tables that come. Not so while somebody waits for it to
    /// be in shape.
    pub(crate) fn expects_flushes(&self) -> bool {
        !self.draining && self.writers != WriterState::Resting
    }
}

/// The zone of level 0 by the number of its tables.
pub(crate) fn level0_zone(version: &Version, policy: &Policy) -> Zone {
    let tables = version.level(Level::L0).len() as f64;
    Zone::of(policy.stall_triggers.level0.load(tables))
}

/// Whether more tables of level 0 should go down together: they come, and are not about to slow
/// writers down.
pub(crate) fn gathers_level0(version: &Version, policy: &Policy, moment: PickContext) -> bool {
    level0_zone(version, policy) == Zone::Calm && moment.expects_flushes()
}
