//! Where a tree slows its writers down and stops them: the triggers that pickers and the pace of
//! writers go by.
//!
//! Two figures of a tree hold writers back ([`StallTriggers`]): the tables of level 0 and the bytes
//! that compactions owe. A tree is near its slowdown from [`NEAR`] of the trigger on: needs count
//! from there, writers are paced then, and level 0 no longer waits for more tables. It is near its
//! stop from [`StallTrigger::near_stop`] on: level 0 merges in itself first, and writers go only as
//! fast as what comes fits until a merge ends.

/// The part of a slowdown trigger from which on a tree is near it.
pub const NEAR: f64 = 0.75;

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
    pub(crate) fn is_near(self, value: f64) -> bool {
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

    /// The slowdown of level 0 as a number of tables; the greatest there is where there is none.
    pub(crate) fn slowdown_tables(self) -> usize {
        self.slowdown as usize
    }

    /// The same of the stop.
    pub(crate) fn stop_tables(self) -> usize {
        self.stop as usize
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
    /// Tables of level 0, as [`level0_tables`](crate::writers::level0_tables) counts them.
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
