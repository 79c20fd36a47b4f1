//! Load of a tree: one scale on which pickers, gates, listeners and the LOG say how near the tree
//! is to where its writers are slowed down and stopped.
//!
//! A load is 0 for an empty tree, 1 where writers are slowed down, and 2 where they stop. Four
//! figures hold writers back, each with a slowdown and a stop of its own ([`StallTrigger`]):
//! memtables that wait to be flushed, sorted runs, bytes that compactions owe, and with a bound on
//! space the space that is taken ([`crate::space`]). The load of the tree is the largest of them
//! ([`Load`]); decisions go by its [`Zone`]:
//!
//! | zone | load from | decisions |
//! |---|---|---|
//! | calm | 0 | level 0 gathers tables while they come; level sizes are chosen for batches as large |
//! | near | 3/4 | plans that relieve it go before others; writers are paced |
//! | slow | 1 | listeners are told; level 0 merges in itself while its way down is taken |
//! | critical | 3/2 | level 0 merges in itself first; writers get what fits until a merge ends |
//! | stop | 2 | writers stop |
//!
//! Sorted runs are counted once: tables of level 0 ([`crate::writers::level0_tables`]: under
//! universal compaction the runs of deeper levels as well), or where that is more, the stack of
//! runs above the base by its bytes ([`crate::stack`]), whose room counts as the tables at which
//! writers stop.
//!
//! Arithmetic over figures: what they are of a tree is measured elsewhere.

use esker_status::seeded::{Bug, seeded};

/// The loads at which two zones begin; the others begin where writers are slowed down and stopped.
const NEAR: f64 = 0.75;
const CRITICAL: f64 = 1.5;

/// A part of the scale of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// Far from any trigger.
    Calm,
    /// Near the slowdown.
    Near,
    /// Writers are slowed down.
    Slow,
    /// Tables that come during a merge of seconds may not fit.
    Critical,
    /// Writers are stopped.
    Stop,
}

impl Zone {
    /// The least load of the zone.
    #[must_use]
    pub const fn begin(self) -> f64 {
        match self {
            Zone::Calm => 0.0,
            Zone::Near => NEAR,
            Zone::Slow => 1.0,
            Zone::Critical => CRITICAL,
            Zone::Stop => 2.0,
        }
    }

    /// The zone of a load.
    #[must_use]
    pub fn of(load: f64) -> Zone {
        let zones = [Zone::Stop, Zone::Critical, Zone::Slow, Zone::Near];
        let reached = zones.into_iter().position(|zone| load >= zone.begin());
        match reached {
            Some(at) if seeded(Bug::ZoneOffByOne) => zones[at.saturating_sub(1)],
            Some(at) => zones[at],
            None => Zone::Calm,
        }
    }
}

/// Values of one figure where writers are slowed down, and where they are stopped; infinite where
/// they never are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallTrigger {
    /// Writers are slowed down from here on.
    pub slowdown: f64,
    /// Writers are stopped from here on.
    pub stop: f64,
}

impl StallTrigger {
    /// The trigger of a figure that holds no writer back.
    pub const NEVER: StallTrigger = StallTrigger {
        slowdown: f64::INFINITY,
        stop: f64::INFINITY,
    };

    /// The distance from the slowdown to the stop; where there is no stop, writers are slowest at
    /// twice the slowdown.
    #[must_use]
    pub fn width(self) -> f64 {
        if self.stop.is_finite() {
            (self.stop - self.slowdown).max(0.0)
        } else {
            self.slowdown.max(1.0)
        }
    }

    /// The load of a figure that has this value. It is 2 where writers stop, and nowhere else.
    #[must_use]
    pub fn load(self, value: f64) -> f64 {
        if value >= self.stop {
            Zone::Stop.begin()
        } else if value < self.slowdown {
            value / self.slowdown
        } else {
            (1.0 + (value - self.slowdown) / self.width()).min(2.0_f64.next_down())
        }
    }

    /// The value that has this load.
    #[must_use]
    pub fn value_of(self, load: f64) -> f64 {
        if load < Zone::Slow.begin() {
            self.slowdown * load
        } else {
            self.slowdown + (load - Zone::Slow.begin()) * self.width()
        }
    }

    /// The value at which this zone begins.
    #[must_use]
    pub fn value_at(self, zone: Zone) -> f64 {
        self.value_of(zone.begin())
    }

    /// The slowdown as a count; the greatest there is where there is none.
    pub(crate) fn slowdown_count(self) -> usize {
        self.slowdown as usize
    }

    /// The stop as a count.
    pub(crate) fn stop_count(self) -> usize {
        self.stop as usize
    }
}

/// Triggers of the figures that hold the writers of a tree back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallTriggers {
    /// Memtables that wait to be flushed.
    pub memtables: StallTrigger,
    /// Tables of level 0, as [`level0_tables`](crate::writers::level0_tables) counts them.
    pub level0: StallTrigger,
    /// Bytes that compactions owe.
    pub debt: StallTrigger,
}

impl StallTriggers {
    /// Triggers of level 0 in tables, and of the debt in bytes, each as slowdown and stop.
    /// RocksDB's values for "never": a slowdown below 0 tables, a stop at 0 or below, and 0 bytes.
    pub fn new(level0: (i64, i64), debt: (u64, u64)) -> Self {
        let never = f64::INFINITY;
        let at = |is_reached: bool, value: f64| if is_reached { value } else { never };
        StallTriggers {
            memtables: StallTrigger::NEVER,
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

    /// These triggers with those of memtables: writers stop while `most` wait, and are slowed
    /// down one before where there are more than three and more than `merged`, which one flush
    /// takes together, wait (as in RocksDB).
    #[must_use]
    pub fn with_memtables(self, most: usize, merged: usize) -> Self {
        let slowdown = (most - usize::from(most > 0)).max(merged + 1);
        StallTriggers {
            memtables: StallTrigger {
                slowdown: if most >= 4 {
                    slowdown as f64
                } else {
                    f64::INFINITY
                },
                stop: most as f64,
            },
            ..self
        }
    }

    /// The load of a tree with so many memtables that wait and so many sorted runs
    /// ([`StallTriggers::runs`]), whose compactions owe `debt` bytes.
    #[must_use]
    pub fn load(&self, waiting: usize, runs: f64, debt: u64) -> Load {
        Load {
            memtables: self.memtables.load(waiting as f64),
            runs: self.level0.load(runs),
            debt: self.debt.load(debt as f64),
            space: 0.0,
        }
    }

    /// Sorted runs as tables of level 0: those that there are, or where that is more, the part of
    /// the stack's room that is taken, of the tables at which writers stop. A stack does not stop
    /// them.
    #[must_use]
    pub fn runs(&self, level0: f64, stack: Option<f64>) -> f64 {
        let Some(part) = stack.filter(|_| self.level0.slowdown.is_finite()) else {
            return level0;
        };
        let full = self.level0.value_at(Zone::Stop);
        level0.max((part * full).min(full.next_down()))
    }

    /// The triggers of a tree that is not compacted: compactions would bring no relief.
    #[must_use]
    pub fn without_compactions(self) -> Self {
        StallTriggers {
            level0: StallTrigger::NEVER,
            debt: StallTrigger::NEVER,
            ..self
        }
    }
}

/// Figures that hold writers back, in the order in which one is named where several do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadCause {
    /// Memtables that wait to be flushed.
    Memtables,
    /// Sorted runs.
    Runs,
    /// Bytes that compactions owe.
    Debt,
    /// Space that is taken, against a bound.
    Space,
}

/// Loads of the figures that hold the writers of a tree back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// By memtables that wait to be flushed; 0 where only the tree is known.
    pub memtables: f64,
    /// By sorted runs.
    pub runs: f64,
    /// By bytes that compactions owe.
    pub debt: f64,
    /// By space that is taken; 0 without a bound.
    pub space: f64,
}

impl Load {
    /// The largest of them.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.memtables.max(self.runs).max(self.debt).max(self.space)
    }

    /// The zone of the tree.
    #[must_use]
    pub fn zone(&self) -> Zone {
        Zone::of(self.level())
    }

    /// The first figure that stops writers, else the first that slows them down.
    #[must_use]
    pub fn cause(&self) -> Option<LoadCause> {
        let figures = [
            (LoadCause::Memtables, self.memtables),
            (LoadCause::Runs, self.runs),
            (LoadCause::Debt, self.debt),
            (LoadCause::Space, self.space),
        ];
        [Zone::Stop, Zone::Slow].into_iter().find_map(|zone| {
            let reached = figures.iter().find(|(_, load)| *load >= zone.begin());
            reached.map(|(cause, _)| *cause)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVEL0: StallTrigger = StallTrigger {
        slowdown: 20.0,
        stop: 36.0,
    };

    #[test]
    fn each_zone_begins_at_its_number() {
        let zones = [10.0, 15.0, 19.0, 20.0, 27.0, 28.0, 35.9, 36.0, 80.0];
        let zones = zones.map(|tables| Zone::of(LEVEL0.load(tables)));
        let (calm, near, slow) = (Zone::Calm, Zone::Near, Zone::Slow);
        let (critical, stop) = (Zone::Critical, Zone::Stop);
        let expected = [calm, near, near, slow, slow, critical, critical, stop, stop];
        assert_eq!(zones, expected);
    }

    #[test]
    fn only_a_stop_has_a_load_of_2() {
        let endless = StallTrigger {
            stop: f64::INFINITY,
            ..LEVEL0
        };
        assert!(endless.load(1e9) < 2.0 && endless.load(20.0) == 1.0);
        assert_eq!(StallTrigger::NEVER.load(1e9), 0.0);
        let at_once = StallTrigger {
            slowdown: 20.0,
            stop: 20.0,
        };
        assert_eq!((at_once.load(19.0), at_once.load(20.0)), (0.95, 2.0));
        assert_eq!(
            [8.0, 31.0].map(|n| LEVEL0.value_of(LEVEL0.load(n))),
            [8.0, 31.0]
        );
    }

    #[test]
    fn a_stack_counts_as_runs_and_stops_nobody() {
        let triggers = StallTriggers::new((20, 36), (0, 0));
        let load = |tables, stack| triggers.load(0, triggers.runs(tables, stack), 0);
        assert_eq!(load(5.0, None).runs, 0.25);
        assert_eq!(load(5.0, Some(5.0 / 9.0)).runs, 1.0);
        assert_eq!(load(28.0, Some(0.2)).runs, 1.5);
        assert_eq!(load(5.0, Some(3.0)).zone(), Zone::Critical);
        assert_eq!(load(36.0, Some(0.0)).zone(), Zone::Stop);
        let never = StallTriggers::new((-1, 0), (0, 0));
        assert_eq!(never.runs(5.0, Some(3.0)), 5.0);
    }

    #[test]
    fn memtables_slow_writers_down_as_in_rocksdb() {
        let none = StallTriggers::new((20, 36), (0, 0));
        let zones = |most, merged| {
            let trigger = none.with_memtables(most, merged).memtables;
            (0..=most).map(move |waiting| Zone::of(trigger.load(waiting as f64)) >= Zone::Slow)
        };
        // Two memtables stop writers, and never slow them down before.
        assert!(zones(2, 1).eq([false, false, true]));
        assert!(zones(4, 1).eq([false, false, false, true, true]));
        assert!(zones(4, 3).eq([false, false, false, false, true]));
    }

    #[test]
    fn what_stops_writers_is_named_before_what_slows_them_down() {
        let mut load = Load {
            memtables: 1.0,
            runs: 2.0,
            debt: 1.9,
            space: 0.0,
        };
        assert_eq!(
            (load.zone(), load.cause()),
            (Zone::Stop, Some(LoadCause::Runs))
        );
        load.runs = 1.2;
        assert_eq!(load.cause(), Some(LoadCause::Memtables));
        load.memtables = 0.9;
        load.runs = 0.0;
        assert_eq!(load.cause(), Some(LoadCause::Debt));
        load.debt = 0.0;
        assert_eq!((load.zone(), load.cause()), (Zone::Near, None));
        load.space = 1.1;
        assert_eq!(load.cause(), Some(LoadCause::Space));
    }
}
