//! What the writers of a tree do: the one definition that pickers share with what slows writers
//! down, and the marks that both go by.
//!
//! Writers are *throttled* while their gate stops them, or its pace held one of them back a moment
//! ago ([`WriterState`]). A tree is near its slowdown from [`NEAR`] of the trigger on: needs count
//! from there, writers are paced from there, and level 0 no longer waits for more tables. It is
//! near its stop from [`near_stop`] on: level 0 merges in itself first, and writers go only as fast
//! as what comes fits until a merge ends.

use crate::policy::Policy;
use crate::version::Version;
use esker_format::{Level, Seq};

/// The part of a slowdown trigger from which on a tree is near it.
pub const NEAR: f64 = 0.75;

/// Fewer files of level 0 are not merged among themselves.
pub const MIN_FILES_FOR_INTRA_L0: usize = 4;

/// Microseconds without a flush after which writers rest.
pub const REST_US: u64 = 2_000_000;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// What reads have paid for the runs of the tree, in nanoseconds.
    pub read_debt_ns: u64,
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

/// The tables of level 0 from which on what comes during a merge of seconds may not fit: halfway
/// from the slowdown to the stop.
pub fn near_stop(slowdown: f64, stop: f64) -> f64 {
    slowdown.midpoint(stop)
}

/// Whether level 0 is near its stop.
pub(crate) fn l0_near_stop_trigger(version: &Version, policy: &Policy) -> bool {
    let slow = f64::from(policy.level0_slowdown_writes_trigger);
    let near = near_stop(slow, f64::from(policy.level0_stop_writes_trigger));
    version.level(Level::L0).len() as f64 >= near.floor()
}

/// Whether more tables of level 0 should go down together: they come, and are not about to slow
/// writers down.
pub(crate) fn gathers_level0(version: &Version, policy: &Policy, moment: PickContext) -> bool {
    let slowdown = f64::from(policy.level0_slowdown_writes_trigger);
    let is_near = slowdown >= 0.0 && version.level(Level::L0).len() as f64 >= slowdown * NEAR;
    !is_near && moment.expects_flushes()
}
