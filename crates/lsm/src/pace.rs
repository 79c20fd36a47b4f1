//! Pace of writers: the rate at which they may go, by the load of their tree and by what flushes
//! and compactions take away.
//!
//! Writers that went at full speed until the tree is full would stand still there. They get a part
//! of the *drain* instead, the bytes a second by which compactions relieve sorted runs:
//!
//! ```text
//! d = 1.22 - load
//! rate = drain * 2 ^ (40 * d^3)           from the near zone on; no limit below
//! rate = drain / 2 ^ (6 * d^2)            once d is below 0
//! ```
//!
//! many times the drain in the near zone, the drain a fifth of the way from the slowdown to the
//! stop, a tenth of it at the stop. Under steady overload a tree settles where the rate is the
//! drain, and nobody stands still. The curve is flat there: what comes and goes in turns moves
//! writers less than what goes on.
//!
//! - *Runs.* Compactions of level 0 and of the levels below take turns of seconds, so level 0 rises
//!   and falls. Writers go by the mean of the load, and the drain is averaged over the same window.
//!   A load far above its mean counts at once, and so does the slow zone. Once level 0 asks for no
//!   compaction, the mean begins anew.
//! - *Debt and space* count as they are: they move slowly.
//! - *The next merge.* Tables that a merge of level 0 takes count until it ends. In the critical
//!   zone writers bring no more than fits below the stop until then. Tables that no job has taken
//!   are merged among themselves first of all, so their relief is never far.
//! - *Memtables.* Writers fill the memtable that takes writes just when those before it are
//!   written. While another flush may begin they do not go by that: the sooner the memtable is
//!   full, the sooner it is flushed beside the others. Once all others wait, a part of this one is
//!   given away ever more slowly, so that a flush that takes long for once makes many writers wait
//!   for milliseconds and not one for all of it. Then writers stop.
//!
//! Arithmetic over readings; clocks and sleeping are the caller's. Not thread-safe by itself.
//!
//! Sources: Luo and Carey, "On Performance Stability in LSM-based Storage Systems", VLDB 2019, for
//! processing at the measured rate instead of bursts; Balmau and others, "SILK", ATC 2019, for
//! flushes before compactions. Rejected: a rate that is fixed by an option, or multiplied up and
//! down at every event (RocksDB's): it is right for one machine and one tree, and swings around the
//! rate that the drain allows.

use crate::load::{LoadCause, StallTrigger, StallTriggers, Zone};
use crate::overload::MIN_FILES_FOR_INTRA_L0;
use esker_status::seeded::{Bug, seeded};

/// Bytes a second of writers that nothing holds back.
pub const UNLIMITED: f64 = f64::INFINITY;
/// The load at which writers get the drain. Forecasts with 1.17 bring up to a tenth less, with 1.25
/// they take a tenth more space.
const EVEN_LOAD: f64 = 1.22;
/// The powers of two by which the rate differs from the drain at a load of 1 more, by its square,
/// and of 1 less, by its cube: writers go freely until they near the slowdown.
const STEEPNESS_ABOVE: f64 = 6.0;
const STEEPNESS_BELOW: f64 = 40.0;
/// Seconds over which the load and the drain are averaged.
pub const WINDOW_S: f64 = 45.0;
/// The load by which a tree may be above its mean.
const LEAD: f64 = 0.2;
/// Seconds until tables of level 0 that no job merges are merged among themselves: a job ends, and
/// a few tables are merged.
const SOON_S: f64 = 1.0;
/// A merge may take longer than was foreseen: it never counts as nearer to its end than this.
const LEAST_RELIEF_S: f64 = 0.25;
/// The part of a memtable that writers may take while as many wait to be flushed as may. They begin
/// with a memtable a second, and that falls with the fourth power of what is left: a flush that
/// ends after some hundredths of a second makes no writer wait for long, and the reserve of 16 MB
/// lasts for seconds.
const RESERVE: f64 = 1.0 / 16.0;
/// The least bytes a second: where writers have to stand still, the gate stops them. A smaller
/// reserve is none: it would be gone in no time.
pub const SLOWEST: f64 = 64.0 * 1024.0;

/// Triggers of a family, and the size of its memtables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriterLimits {
    /// Tables at level 0 that ask for a compaction.
    pub compaction: f64,
    /// Values at which writers are slowed down and stopped.
    pub triggers: StallTriggers,
    /// Bytes of a memtable.
    pub memtable: f64,
}

impl WriterLimits {
    /// The trigger of the memtables' worth that a tree takes beyond the bound of its space: writers
    /// are slowest when it is as many as start a merge.
    fn space(&self) -> StallTrigger {
        StallTrigger {
            slowdown: self.compaction.max(1.0) / 4.0,
            stop: self.compaction.max(1.0),
        }
    }
}

/// Figures of a family at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Microseconds of the clock.
    pub now_us: u64,
    /// Bytes in the memtable that takes writes.
    pub filled: u64,
    /// Memtables that wait to be flushed.
    pub waiting: usize,
    /// Their bytes that no flush has written.
    pub left: u64,
    /// Bytes of memtables a second; 0 when unknown.
    pub flush_rate: u64,
    /// Another flush may begin.
    pub is_flush_free: bool,
    /// Tables at level 0 by weight, without what is merged of them.
    pub level0: f64,
    /// The part of the stack's room that is taken, without what is merged of it.
    pub stack: Option<f64>,
    /// Memtables' worth that the tree takes beyond the bound of its space.
    pub beyond: f64,
    /// Tables at level 0, merged or not.
    pub tables: usize,
    /// Those that no merge has taken yet.
    pub idle: usize,
    /// Another compaction may begin.
    pub is_compaction_free: bool,
    /// Microseconds until the next merge ends that takes tables away from level 0; none when that
    /// is not known.
    pub relief_us: Option<u64>,
    /// Bytes of entries by which compactions ever relieved the tree.
    pub drained: u64,
    /// Compactions run.
    pub is_compacting: bool,
    /// Bytes that compactions owe.
    pub debt: u64,
    /// The load of the space that is taken, against a bound in percent of what is alive.
    pub space: f64,
}

/// How fast writers may go, and what for. At 0 bytes a second they may not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The figure that sets it.
    pub cause: LoadCause,
    /// Bytes a second.
    pub bytes_per_s: f64,
}

/// Averages of one family between readings.
#[derive(Debug, Default)]
pub struct Pace {
    before_us: Option<u64>,
    /// Mean load of the sorted runs.
    load: Mean,
    /// Bytes a second by which compactions relieve them.
    drain: Mean,
    drained: u64,
}

/// A mean over [`WINDOW_S`]; over all that was seen as long as that is less, since one turn of
/// level 0 alone says too much.
#[derive(Debug, Default)]
struct Mean {
    value: f64,
    seconds: f64,
}

impl Mean {
    fn take(&mut self, value: f64, seconds: f64) {
        self.seconds += seconds;
        let weight = (1.0 - (-seconds / WINDOW_S).exp()).max(seconds / self.seconds);
        self.value += (value - self.value) * weight;
    }
}

impl Pace {
    /// The mean load of the sorted runs.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.load.value
    }

    /// Takes a reading in and says how fast writers may go. `first` is the drain to begin with, in
    /// bytes a second.
    pub fn limit(&mut self, now: &Reading, limits: &WriterLimits, first: f64) -> Limit {
        let level0 = limits.triggers.level0;
        let load = level0.load(limits.triggers.runs(now.level0, now.stack));
        let rests = now.level0 < limits.compaction && now.stack.is_none();
        self.observe(now, load, rests);
        let drain = if self.drain.value > 0.0 {
            self.drain.value
        } else {
            first
        };
        let slow = Zone::Slow.begin();
        let at_once = if load >= slow { slow } else { 0.0 };
        let load = self.load.value.max(load - LEAD).max(at_once);
        let debt = limits.triggers.debt.load(now.debt as f64);
        let space = limits.space().load(now.beyond);
        let rates = [
            (LoadCause::Memtables, memtable_rate(now, limits)),
            (LoadCause::Runs, drain * part_of_drain(load.max(space))),
            (LoadCause::Runs, relief_rate(now, limits)),
            (LoadCause::Debt, drain * part_of_drain(debt)),
            (LoadCause::Space, drain * part_of_drain(now.space)),
        ];
        let slowest = rates
            .into_iter()
            .reduce(|a, b| if b.1 < a.1 { b } else { a });
        let (cause, bytes_per_s) = slowest.unwrap_or((LoadCause::Runs, UNLIMITED));
        Limit { cause, bytes_per_s }
    }

    /// Takes the load of the runs and what left them since the last reading into the means; the
    /// tree `rests` when it asks for no compaction.
    fn observe(&mut self, now: &Reading, load: f64, rests: bool) {
        let Some(before_us) = self.before_us else {
            self.before_us = Some(now.now_us);
            self.drained = now.drained;
            self.load.value = load;
            return;
        };
        let seconds = now.now_us.saturating_sub(before_us) as f64 / 1e6;
        if seconds <= 0.0 {
            return;
        }
        self.before_us = Some(now.now_us);
        if rests {
            self.load.seconds = 0.0;
        }
        self.load.take(load, seconds);
        let mut taken = now.drained.saturating_sub(self.drained) as f64;
        if seeded(Bug::DrainCountedTwice) {
            taken *= 2.0;
        }
        self.drained = now.drained;
        // What compactions take while there is little to do says nothing.
        let asks = now.is_compacting && !rests;
        if taken > 0.0 || asks {
            self.drain.take(taken / seconds, seconds);
        }
    }
}

/// The part of the drain that writers get at a load; without limit below the near zone.
fn part_of_drain(load: f64) -> f64 {
    if load < Zone::Near.begin() {
        UNLIMITED
    } else {
        let below = EVEN_LOAD - load;
        let power = if below > 0.0 {
            STEEPNESS_BELOW * below.powi(3)
        } else {
            -STEEPNESS_ABOVE * below.powi(2)
        };
        power.exp2()
    }
}

/// The rate at which what comes fits below the stop trigger of level 0 until a merge takes tables
/// away.
fn relief_rate(now: &Reading, limits: &WriterLimits) -> f64 {
    let level0 = limits.triggers.level0;
    let tables = (now.tables + now.waiting) as f64;
    let is_critical = Zone::of(level0.load(tables)) >= Zone::Critical;
    let Some(relief_us) = now.relief_us.filter(|_| is_critical) else {
        return UNLIMITED;
    };
    let mut relief_s = relief_us as f64 / 1e6;
    if now.is_compaction_free && now.idle >= MIN_FILES_FOR_INTRA_L0 {
        relief_s = relief_s.min(SOON_S);
    }
    let rate = room(now, limits, level0.stop - 2.0 - tables) / relief_s.max(LEAST_RELIEF_S);
    rate.max(SLOWEST)
}

/// Bytes that fit into so many memtables and what is left of the one that takes writes.
fn room(now: &Reading, limits: &WriterLimits, memtables: f64) -> f64 {
    let left = (limits.memtable - now.filled as f64).max(0.0);
    memtables.max(0.0) * limits.memtable + left
}

/// The rate at which memtables fill up just when those that wait are written; the crawl through
/// the reserve while as many wait as may.
fn memtable_rate(now: &Reading, limits: &WriterLimits) -> f64 {
    let (waiting, stop) = (now.waiting as f64, limits.triggers.memtables.stop);
    if waiting >= stop {
        let reserve = limits.memtable * RESERVE;
        let left = (reserve - now.filled as f64) / reserve;
        if waiting > stop || reserve < SLOWEST || left <= 0.0 {
            return 0.0;
        }
        return (left.powi(4) * limits.memtable).max(SLOWEST);
    }
    if now.waiting == 0 || now.left == 0 || now.flush_rate == 0 || now.is_flush_free {
        return UNLIMITED;
    }
    let rate = now.flush_rate as f64 * room(now, limits, stop - 1.0 - waiting) / now.left as f64;
    rate.max(SLOWEST)
}

#[cfg(test)]
mod tests;
