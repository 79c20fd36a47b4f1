//! The split of a memory budget: which side gives a little to the other, at each look.
//!
//! The block cache and the memtables have what is left of the budget when everything else is
//! counted. At each look the side where a megabyte saves less time gives a small part of the budget
//! to the other. The rules against unrest:
//! - the gain must exceed the loss by [`HYSTERESIS`], and be worth something at all;
//! - a part is a fiftieth of the budget, and at most an eighth of the smaller side; while the gain
//!   is twice the loss, twice as much at each further look, up to a third of the budget;
//! - no part takes the split past where the two sides are worth the same;
//! - a change of the direction must be wanted at [`RESTS`] looks in a row.
//!
//! Pure. The idea is that of DB2's self-tuning memory manager (Storm and others, *Adaptive
//! Self-Tuning Memory in DB2*, VLDB 2006).

use super::benefits::BudgetSlopes;
use std::fmt;

/// By what factor a gain exceeds the loss.
const HYSTERESIS: f64 = 1.25;
/// A gain of this many times the loss is clear.
const CLEAR: f64 = 2.0;
/// Looks at which a change of the direction is wanted before it takes place.
const RESTS: u32 = 3;
/// How often a clear part doubles.
const DOUBLINGS: u32 = 4;
/// Microseconds a second that a move has to save.
const WORTH_US: f64 = 50.0;
/// A part of the budget that moves at once.
const PART: usize = 50;
const MIB: f64 = 1_048_576.0;

/// One of the two sides between which memory moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetSide {
    /// The block cache.
    BlockCache,
    /// The memtables.
    Memtables,
}

impl fmt::Display for BudgetSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BudgetSide::BlockCache => "block cache",
            BudgetSide::Memtables => "memtables",
        })
    }
}

/// Why memory moved or stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetReason {
    /// The split is fixed.
    Fixed,
    /// No move would save anything to speak of.
    Idle,
    /// A megabyte is worth about the same on both sides.
    Balanced,
    /// A move in the other direction was only just made.
    Resting,
    /// The side that would give has its minimum.
    AtMinimum,
    /// A side was below its minimum.
    BelowMinimum,
    /// A megabyte saves more time where it went.
    Benefit,
}

impl fmt::Display for BudgetReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BudgetReason::Fixed => "the split is fixed",
            BudgetReason::Idle => "a move would save nothing to speak of",
            BudgetReason::Balanced => "both sides gain about the same",
            BudgetReason::Resting => "a move the other way was just made",
            BudgetReason::AtMinimum => "the other side has its minimum",
            BudgetReason::BelowMinimum => "a side was below its minimum",
            BudgetReason::Benefit => "it saves more time there",
        })
    }
}

/// Input of the controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControllerInput {
    /// All of the budget.
    pub(super) total: usize,
    /// The sides as they are.
    pub(super) cache: usize,
    pub(super) memtables: usize,
    pub(super) cache_min: usize,
    pub(super) memtables_min: usize,
    /// Microseconds a second and megabyte.
    pub(super) cache_worth: BudgetSlopes,
    pub(super) memtables_worth: f64,
}

/// Decision of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetDecision {
    /// Bytes that move; 0 when all stays.
    pub bytes: usize,
    /// Where they go; where they would have gone.
    pub to: Option<BudgetSide>,
    /// Why.
    pub reason: BudgetReason,
}

impl BudgetDecision {
    pub(super) fn stays(to: Option<BudgetSide>, reason: BudgetReason) -> Self {
        BudgetDecision {
            bytes: 0,
            to,
            reason,
        }
    }
}

/// State of the controller between looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Controller {
    last: Option<BudgetSide>,
    /// Moves in the last direction in a row.
    streak: u32,
    /// Looks at which the other direction was wanted.
    rested: u32,
}

impl Controller {
    /// Decides; `prices` are those of any split.
    pub(super) fn decide(
        &mut self,
        now: &ControllerInput,
        prices: &MemoryValues<'_>,
    ) -> BudgetDecision {
        if let Some(forced) = below_minimum(now) {
            return forced;
        }
        let (to, gain, loss) = wanted(now);
        let Some(to) = to else {
            self.settle();
            let reason = if gain <= 0.0 {
                BudgetReason::Idle
            } else {
                BudgetReason::Balanced
            };
            return BudgetDecision::stays(None, reason);
        };
        let bytes = if gain > CLEAR * loss {
            self.clear_part(now, to, prices)
        } else {
            usual_part(now).min(now.cache.min(now.memtables) / 8)
        };
        let bytes = bytes.min(room(now, to));
        if prices.is_too_far(now, to, bytes) {
            self.settle();
            return BudgetDecision::stays(Some(to), BudgetReason::Balanced);
        }
        if (gain - loss) * bytes as f64 / MIB < WORTH_US {
            self.settle();
            let room = room(now, to);
            let reason = match room {
                0 => BudgetReason::AtMinimum,
                _ => BudgetReason::Idle,
            };
            return BudgetDecision::stays(Some(to), reason);
        }
        if self.last.is_some_and(|last| last != to) {
            self.rested += 1;
            if self.rested < RESTS {
                return BudgetDecision::stays(Some(to), BudgetReason::Resting);
            }
            self.streak = 0;
        }
        self.rested = 0;
        self.streak += 1;
        self.last = Some(to);
        BudgetDecision {
            bytes,
            to: Some(to),
            reason: BudgetReason::Benefit,
        }
    }

    /// Nothing is wanted.
    fn settle(&mut self) {
        self.streak = 0;
        self.rested = 0;
    }

    /// How much moves to that side where the gain is clear.
    fn clear_part(
        &self,
        now: &ControllerInput,
        to: BudgetSide,
        prices: &MemoryValues<'_>,
    ) -> usize {
        let same_way = self.last == Some(to);
        let most = if same_way {
            self.streak.min(DOUBLINGS)
        } else {
            0
        };
        let parts = (1..=most).rev().map(|n| usual_part(now) << n);
        let mut parts = parts.map(|part| part.min(room(now, to)));
        let first = parts.find(|part| !prices.is_too_far(now, to, *part));
        first.unwrap_or(usual_part(now))
    }
}

fn usual_part(now: &ControllerInput) -> usize {
    (now.total / PART).max(1)
}

/// Values of a megabyte at any split.
pub(super) struct MemoryValues<'a> {
    /// To a cache of a size in bytes.
    pub(super) cache: &'a dyn Fn(usize) -> BudgetSlopes,
    /// To memtables with so large a share.
    pub(super) memtables: &'a dyn Fn(usize) -> f64,
}

impl MemoryValues<'_> {
    /// Returns whether the other side is worth more once it has given `part`.
    fn is_too_far(&self, now: &ControllerInput, to: BudgetSide, part: usize) -> bool {
        match to {
            BudgetSide::BlockCache => {
                let left = (self.memtables)(now.memtables.saturating_sub(part));
                (self.cache)(now.cache + part).gain < left
            }
            BudgetSide::Memtables => {
                let left = (self.cache)(now.cache.saturating_sub(part)).loss;
                (self.memtables)(now.memtables + part) < left
            }
        }
    }
}

/// Returns the memory that the other side can give.
fn room(now: &ControllerInput, to: BudgetSide) -> usize {
    match to {
        BudgetSide::BlockCache => now.memtables.saturating_sub(now.memtables_min),
        BudgetSide::Memtables => now.cache.saturating_sub(now.cache_min),
    }
}

/// Where memory should go, with the gain there and the loss on the other side.
fn wanted(now: &ControllerInput) -> (Option<BudgetSide>, f64, f64) {
    let (cache, memtables) = (now.cache_worth, now.memtables_worth);
    if cache.gain > memtables * HYSTERESIS {
        return (Some(BudgetSide::BlockCache), cache.gain, memtables);
    }
    if memtables > cache.loss * HYSTERESIS {
        return (Some(BudgetSide::Memtables), memtables, cache.loss);
    }
    (None, cache.gain.max(memtables), 0.0)
}

/// A side below its minimum takes what it lacks, as far as the other has it.
fn below_minimum(now: &ControllerInput) -> Option<BudgetDecision> {
    let lacks = |has: usize, min: usize| min.saturating_sub(has);
    let to_memtables = lacks(now.memtables, now.memtables_min);
    let to_cache = lacks(now.cache, now.cache_min);
    let (bytes, to) = if to_memtables > 0 {
        // Memtables come first: without them nothing can be written.
        (to_memtables.min(now.cache), BudgetSide::Memtables)
    } else {
        let bytes = to_cache.min(room(now, BudgetSide::BlockCache));
        (bytes, BudgetSide::BlockCache)
    };
    (bytes > 0).then_some(BudgetDecision {
        bytes,
        to: Some(to),
        reason: BudgetReason::BelowMinimum,
    })
}

#[cfg(test)]
mod tests;
