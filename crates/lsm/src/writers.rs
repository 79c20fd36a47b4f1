//! What the writers of a tree do: the one definition that pickers share with what slows writers
//! down, and the triggers that both go by.
//!
//! Writers are *throttled* while their gate stops them, or its pace held one of them back a moment
//! ago ([`WriterState`]). Two figures of a tree hold writers back ([`StallTriggers`]): the tables
//! of level 0 ([`level0_tables`]) and the bytes that compactions owe. A tree is near its slowdown
//! from [`NEAR`] of the trigger on: needs count from there, writers are paced then, and level 0 no
//! longer waits for more tables. It is near its stop from [`StallTrigger::near_stop`] on: level 0
//! merges in itself first, and writers go only as fast as what comes fits until a merge ends.

use crate::policy::{CompactionStyle, Policy};
use crate::version::Version;
use esker_format::{Level, Seq};

/// The part of a slowdown trigger from which on a tree is near it.
pub const NEAR: f64 = 0.75;

/// The part of a slowdown trigger in tenths from which on level 0 merges in itself rather than
/// waiting for the merge of it that runs.
const INTRA_L0_TENTHS: usize = 9;

/// Fewer files of level 0 are not merged among themselves.
pub const MIN_FILES_FOR_INTRA_L0: usize = 4;

/// Microseconds without a flush after which writers rest.
pub const REST_US: u64 = 2_000_000;

/// Microseconds after a wait for which writers count as throttled: a caller that asks once a second
/// sees it.
pub const THROTTLED_US: u64 = 1_000_000;

/// Where a figure of a tree slows its writers down, and where it stops them; infinite where it
/// never does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallTrigger {
    /// Writers are slowed down from here on.
    pub slowdown: f64,
    /// Writers are stopped from here on.
    pub stop: f64,
}

impl StallTrigger {
    /// Of a figure that holds no writer back.
    pub const NEVER: StallTrigger = StallTrigger {
        slowdown: f64::INFINITY,
        stop: f64::INFINITY,
    };

    /// The figure from which on what comes during a merge of seconds may not fit: halfway from the
    /// slowdown to the stop.
    #[must_use]
    pub fn near_stop(self) -> f64 {
        self.slowdown.midpoint(self.stop).floor()
    }

    /// Whether `value` is near the slowdown.
    fn is_near(self, value: f64) -> bool {
        value >= self.slowdown * NEAR
    }

    /// Slowdown and stop where writers go the slower the nearer they are to the stop. Where there
    /// is none, or none this far from the slowdown, it is `least` away.
    #[must_use]
    pub fn range(self, least: f64) -> (f64, f64) {
        let stop = if self.stop.is_finite() {
            self.stop
        } else {
            0.0
        };
        (self.slowdown, stop.max(self.slowdown + least))
    }

    /// How near `value` is to where writers are slowed down, and past it to where they are stopped:
    /// from 2 over 3 to 4, or 0 while it is far from there.
    pub(crate) fn need(self, value: f64) -> f64 {
        let StallTrigger { slowdown, stop } = self;
        if slowdown <= 0.0 || !self.is_near(value) {
            0.0
        } else if value < slowdown {
            2.0 + (value / slowdown - NEAR) / (1.0 - NEAR)
        } else if stop > slowdown && stop.is_finite() {
            3.0 + ((value - slowdown) / (stop - slowdown)).min(1.0)
        } else {
            4.0
        }
    }
}

/// What holds the writers of a tree back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallTriggers {
    /// Tables of level 0, as [`level0_tables`] counts them.
    pub level0: StallTrigger,
    /// Bytes that compactions owe.
    pub debt: StallTrigger,
}

impl StallTriggers {
    /// Of a tree that is not compacted: compactions would bring no relief.
    pub const NEVER: StallTriggers = StallTriggers {
        level0: StallTrigger::NEVER,
        debt: StallTrigger::NEVER,
    };

    /// Of slowdown and stop in tables of level 0, and of those in bytes. RocksDB's values for
    /// "never": a slowdown below 0 tables, a stop at 0 or below, and 0 bytes.
    pub fn new(level0: (i64, i64), debt: (u64, u64)) -> Self {
        let never = f64::INFINITY;
        let at = |is_reached: bool, value: f64| if is_reached { value } else { never };
        StallTriggers {
            level0: StallTrigger {
                slowdown: at(level0.0 >= 0, level0.0 as f64),
                stop: at(level0.1 > 0, level0.1 as f64),
            },
            debt: StallTrigger {
                slowdown: at(debt.0 > 0, debt.0 as f64),
                stop: at(debt.1 > 0, debt.1 as f64),
            },
        }
    }
}

impl Policy {
    /// What holds writers back.
    pub fn stall_triggers(&self) -> StallTriggers {
        if self.disable_auto_compactions {
            return StallTriggers::NEVER;
        }
        StallTriggers::new(
            (
                i64::from(self.level0_slowdown_writes_trigger),
                i64::from(self.level0_stop_writes_trigger),
            ),
            (
                self.soft_pending_compaction_bytes_limit,
                self.hard_pending_compaction_bytes_limit,
            ),
        )
    }
}

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

/// Whether level 0 is near its stop.
pub(crate) fn l0_near_stop_trigger(version: &Version, policy: &Policy) -> bool {
    version.level(Level::L0).len() as f64 >= policy.stall_triggers().level0.near_stop()
}

/// Files of level 0 that are about to slow writers down.
pub(crate) fn intra_l0_files(policy: &Policy) -> usize {
    policy.level0_slowdown_writes_trigger as usize * INTRA_L0_TENTHS / 10
}

/// Whether more tables of level 0 should go down together: they come, and are not about to slow
/// writers down.
pub(crate) fn gathers_level0(version: &Version, policy: &Policy, moment: PickContext) -> bool {
    let tables = version.level(Level::L0).len() as f64;
    !policy.stall_triggers().level0.is_near(tables) && moment.expects_flushes()
}
