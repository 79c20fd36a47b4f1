//! The pace of writers: a fluid model of what they bring and of what flushes and compactions take
//! away.
//!
//! Tanks stand between a writer and the disk: memtables, and level 0. Each has a drain that is
//! measured while it runs, and a brim at which writers have to stop. Instead of going at full speed
//! up to the brim and standing still there, writers go as fast as the drain allows, a little faster
//! while there is room and a little slower when it gets scarce:
//!
//! - *Memtables.* Flushes that write for another `left / drain` seconds should be done when the
//!   memtable that takes writes is full, so writers get `drain * room / left`. While another flush
//!   may begin they do not go by that: the sooner the memtable is full, the sooner it is flushed
//!   beside the others, and standing still until one of them ends costs less than one flush after
//!   the other. Once all of them wait, a sixteenth of the next is kept for crawling: it is given
//!   away ever more slowly, so that a flush which takes a while for once makes a hundred writers
//!   wait for milliseconds, and not one for all of it. When that is used up they stand.
//! - *Level 0*, counted in tables; one that holds more than its share of the tree counts for
//!   several. Under universal compaction it is the runs of the tree, each one however large, and
//!   its drain what writers may bring in place of the runs that merge. Writers get the drain times
//!   a factor that falls smoothly, from many times at three quarters of
//!   `level0_slowdown_writes_trigger` over [`FREEST`] at the trigger to a fraction where writers
//!   would stop; it is 1 a third of the way there, and level around that, which is where the tree
//!   settles under steady pressure: with RocksDB's triggers of 20 and 36 near 25. Below that, level
//!   0 gathers what goes down together, and shortly before the trigger it merges within itself,
//!   which is what a tree that cannot keep up does best. What compactions have merged of level 0 so
//!   far counts as gone. Compactions of level 0 and of the levels below take turns of seconds, so
//!   level 0 rises and falls; writers go by an estimate of its height ([`l0_estimator`]), which is
//!   steady. What counts as gone is a table until its merge ends, and tables stop writers: so what
//!   comes until then has to fit below where they would stop. As long as there are tables that
//!   no job merges yet, the next relief is never far: those are merged within level 0 first of all.
//! - *A stack of runs*, in a leveled tree that cannot keep up (`esker_lsm::pick::tiered`): a third
//!   tank behind level 0, which only gathers what becomes a run. Its drain is what compactions
//!   bring to the last level, and what merges within it drop; until that was seen it is taken for
//!   level 0's. It comes and goes with batches and columns, so writers go by a mean over a part of
//!   the time in which the drain would empty it. While it fills up they get the drain and what is
//!   free as if that were to last for a minute: the rate falls evenly to the drain and not below
//!   it. Level 0 counts from the trigger on, as it is and not by its estimate.
//! - *Space.* Where that of a universal tree is bounded the same factor applies to what is taken
//!   beyond the bound, for as long as it is.
//! - *Debt.* From three quarters of the soft limit of pending compaction bytes to the hard limit
//!   the same factor applies.
//!
//! The drain is measured over time in which level 0 asks for compactions and some run: what they
//! take while there is nothing to do says nothing, nor do tables that only move. All of it is
//! arithmetic over [`Reading`]s; clocks, sleeping and the ledger are [`super::admission`]'s.
//!
//! Sources: Luo and Carey, "On Performance Stability in LSM-based Storage Systems", VLDB 2019, for
//! processing at the measured rate instead of bursts; Balmau and others, "SILK", ATC 2019, for
//! flushes before compactions. Rejected: a rate that is fixed by an option, or multiplied up and
//! down at every event (RocksDB's): it is right for one machine and one tree, and swings around the
//! rate that the drain allows.

mod l0_estimator;

use crate::observe::StallCause;
use crate::options::FamilyOptions;
use esker_lsm::load::{StackFill, StallTrigger, StallTriggers, Zone, stack_load};
use esker_lsm::writers::MIN_FILES_FOR_INTRA_L0;
use l0_estimator::L0Estimator;

/// Bytes a second of writers that nothing holds back.
pub(crate) const UNLIMITED: f64 = f64::INFINITY;
/// What writers get of the drain at the slowdown trigger.
const FREEST: f64 = 2.0;
/// What they get where they would stop.
const SLOWEST_PART: f64 = 0.25;
/// How far on the way from the slowdown to the stop they get as much as the drain, and how steep
/// the factor is there, of as steep as it would be with the same slope all over: what comes and
/// goes in turns moves writers less there than what goes on.
const EVEN: f64 = 1.0 / 3.0;
const EVEN_SLOPE: f64 = 0.3;
/// The load at which a tree with throttled writers settles: writers get a little more than the
/// drain there, which a memtable that is flushed late takes from them again.
const SETTLED: f64 = 1.0 + EVEN / 2.0;
/// The part of the way from the slowdown trigger to the stop by which level 0 may be above its
/// estimate.
const LEAD: f64 = 0.25;
/// Seconds of compacting over which the drain of level 0 is averaged, once that much was seen.
const DRAIN_S: f64 = 45.0;
/// What level 0 drained counts for this many seconds as what its stack of runs will.
const TAKEN_FOR_S: f64 = 10.0;
/// The part of the time in which the drain would empty a stack's room that its height is averaged
/// over. Writers whose factor follows it move it in seven tenths of that time at the quickest, so
/// they do not swing.
const STACK_PART: f64 = 0.25;
/// Seconds in which writers would fill what is free of a stack up to where it settles, if they went
/// on as they began. The less there is the slower they fill it, so they do not find it full with
/// all that they brought still to be merged.
const LANDING_S: f64 = 60.0;
/// The part of its room by which a stack may be fuller than that average.
const STACK_LEAD: f64 = 0.05;
/// Microseconds until tables of level 0 that no job merges are merged among themselves, before
/// anything else begins: a job ends, and a few tables are merged.
const SOON_US: u64 = 1_000_000;
/// A merge may take longer than was foreseen: this many tables fit below where writers stop then,
/// and it never counts as nearer to its end than this many microseconds.
const LATE: f64 = 1.0;
const LATE_US: u64 = 250_000;
/// Readings closer together than this say nothing about speed.
const LEAST_S: f64 = 0.02;
/// The least part of a memtable that counts as room, so that writers crawl and do not stand.
const LEAST_ROOM: f64 = 1.0 / 128.0;
/// The part of a memtable that writers may take while as many wait to be flushed as may.
const RESERVE: f64 = 1.0 / 16.0;
/// Bytes a second of writers that crawl, at the least: where they have to stand still, the gate
/// stops them. A smaller reserve is none: it would be gone in no time.
pub(super) const SLOWEST: f64 = 64.0 * 1024.0;
/// Seconds in which the reserve would be used up at the rate at which it begins. That falls with
/// the fourth power of what is left: a flush that ends after some hundredths of a second makes
/// no writer wait for long, and the reserve of 16 MB lasts for five seconds.
const RESERVE_S: f64 = 1.0 / 12.0;

/// Triggers of a family, and the size of its memtables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WriterLimits {
    /// Tables at level 0 that ask for a compaction.
    compaction: f64,
    triggers: StallTriggers,
    /// Memtables' worth beyond the bound of the tree's space: writers are slowest when it is as
    /// many as start a merge.
    space: StallTrigger,
    /// Bytes of a memtable.
    memtable: f64,
}

impl WriterLimits {
    pub(crate) fn of(options: &FamilyOptions) -> WriterLimits {
        let compaction = f64::from(options.level0_file_num_compaction_trigger);
        WriterLimits {
            compaction,
            triggers: options.stall_triggers(),
            space: StallTrigger {
                slowdown: compaction.max(1.0) / 4.0,
                stop: compaction.max(1.0),
            },
            memtable: options.write_buffer_size as f64,
        }
    }

    /// The tables by which level 0 may be above its estimate.
    fn lead(&self) -> f64 {
        let level0 = self.triggers.level0;
        if level0.slowdown.is_infinite() {
            0.0
        } else {
            level0.width() * LEAD
        }
    }
}

/// What is known of a family at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) now_us: u64,
    /// Bytes in the memtable that takes writes.
    pub(crate) filled: u64,
    /// Memtables that wait to be flushed, and their bytes that no flush has written.
    pub(crate) waiting: usize,
    pub(crate) left: u64,
    /// Bytes of memtables a second; 0 when unknown.
    pub(crate) flush_rate: u64,
    /// Another flush may begin.
    pub(crate) is_flush_free: bool,
    /// Tables at level 0 without what is merged of them.
    pub(crate) level0: f64,
    /// The stack of runs without what is merged of it; none where there is none.
    pub(crate) stack: Option<StackFill>,
    /// What the tree takes beyond the bound of its space, in memtables.
    pub(crate) beyond: f64,
    /// Tables at level 0, merged or not.
    pub(crate) tables: usize,
    /// Those that no merge has taken yet.
    pub(crate) idle: usize,
    /// Microseconds until the next merge ends that takes tables away from level 0; none when that
    /// is not known.
    pub(crate) relief_us: Option<u64>,
    /// Bytes of entries that ever left level 0, and stacks of runs.
    pub(crate) drained: u64,
    pub(crate) stack_drained: u64,
    pub(crate) is_compacting: bool,
    /// Bytes that compactions owe.
    pub(crate) debt: u64,
}

/// How fast writers may go, and what for. At 0 bytes a second they may not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) cause: StallCause,
    pub(crate) bytes_per_s: f64,
}

impl Limit {
    fn tighter(self, other: Limit) -> Limit {
        if other.bytes_per_s < self.bytes_per_s {
            other
        } else {
            self
        }
    }
}

/// The model of one family: what it remembers between readings.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    before_us: Option<u64>,
    level0: Drain,
    level0_estimate: L0Estimator,
    stack: Option<RunStack>,
}

/// A stack of runs while there is one.
#[derive(Debug)]
struct RunStack {
    /// How full it is, of 1, on average.
    height: f64,
    drain: Drain,
}

impl Pace {
    /// Takes a reading in and says how fast writers may go. `first` is the drain to begin with, in
    /// bytes a second.
    pub(crate) fn update_rate(
        &mut self,
        now: &Reading,
        limits: &WriterLimits,
        first: f64,
    ) -> Limit {
        self.observe(now, limits);
        let drain = self.level0.or(first);
        let level0 = limits.triggers.level0;
        let by_level0 = Limit {
            cause: StallCause::L0FileCountLimit,
            bytes_per_s: match self.stack.as_ref().zip(now.stack) {
                None => drain * by_figure(level0, self.level0_estimate.height()),
                Some((stack, fill)) => {
                    let below = stack.pace(drain, fill.room as f64, level0);
                    below.min(drain * by_figure(level0, now.level0))
                }
            },
        };
        let by_space = Limit {
            cause: StallCause::L0FileCountLimit,
            bytes_per_s: drain * by_figure(limits.space, now.beyond),
        };
        let by_debt = Limit {
            cause: StallCause::PendingCompactionBytes,
            bytes_per_s: drain * by_figure(limits.triggers.debt, now.debt as f64),
        };
        let by_memtables = Limit {
            cause: StallCause::MemtableLimit,
            bytes_per_s: flush_pace(now, limits),
        };
        let by_tables = Limit {
            cause: StallCause::L0FileCountLimit,
            bytes_per_s: relief_pace(now, limits),
        };
        by_level0
            .tighter(by_space)
            .tighter(by_tables)
            .tighter(by_debt)
            .tighter(by_memtables)
    }

    fn observe(&mut self, now: &Reading, limits: &WriterLimits) {
        let Some(before_us) = self.before_us else {
            self.before_us = Some(now.now_us);
            self.level0.drained = now.drained;
            self.level0_estimate = L0Estimator::at(now.level0);
            self.look_at_stack(now, 0.0, limits);
            return;
        };
        let lead = limits.lead();
        let seconds = now.now_us.saturating_sub(before_us) as f64 / 1e6;
        if seconds < LEAST_S {
            self.level0_estimate.rise(now.level0, lead);
            return;
        }
        self.before_us = Some(now.now_us);
        // Compactions below an empty level 0 say nothing about it.
        let rests = now.level0 < limits.compaction;
        self.level0_estimate.turn(seconds, now.level0, lead, rests);
        let asks = now.is_compacting && !rests;
        self.level0.observe(now.drained, seconds, asks);
        self.look_at_stack(now, seconds, limits);
    }

    fn look_at_stack(&mut self, now: &Reading, seconds: f64, limits: &WriterLimits) {
        let Some(fill) = now.stack else {
            self.stack = None;
            return;
        };
        let stack = self.stack.get_or_insert_with(|| RunStack {
            height: fill.part(),
            drain: Drain {
                drained: now.stack_drained,
                bytes_per_s: self.level0.bytes_per_s,
                seen: Seen(TAKEN_FOR_S.min(self.level0.seen.0)),
            },
        });
        // Columns wait until there is enough for them.
        let asks = now.is_compacting && stack.part_of_drain(limits.triggers.level0) < UNLIMITED;
        stack.drain.observe(now.stack_drained, seconds, asks);
        stack.turn(fill, seconds);
    }
}

impl RunStack {
    /// A third of it is full where level 0 would slow writers down, with RocksDB's triggers more
    /// than half, and all where that would stop them.
    fn part_of_drain(&self, level0: StallTrigger) -> f64 {
        part_of_drain(stack_load(self.height, level0))
    }

    /// Bytes a second that writers may bring to a stack of this room; `first` is the drain as
    /// long as nothing was seen of it.
    fn pace(&self, first: f64, room: f64, level0: StallTrigger) -> f64 {
        let by_height = self.drain.or(first) * self.part_of_drain(level0);
        if self.drain.bytes_per_s <= 0.0 || level0.slowdown.is_infinite() {
            return by_height;
        }
        let settled = level0.value_of(SETTLED) / level0.value_at(Zone::Stop);
        let free = (settled - self.height).max(0.0) * room;
        let when_settled = self.drain.bytes_per_s * part_of_drain(SETTLED);
        by_height.min(when_settled + free / LANDING_S)
    }

    /// Takes in how full it is after `seconds`.
    fn turn(&mut self, now: StackFill, seconds: f64) {
        let over = STACK_PART * now.room as f64 / self.drain.bytes_per_s;
        let weight = if over.is_finite() {
            1.0 - (-seconds / over).exp()
        } else {
            1.0
        };
        let mean = self.height + (now.part() - self.height) * weight;
        self.height = mean.max(now.part() - STACK_LEAD);
    }
}

/// What compactions take from a tank.
#[derive(Debug, Default)]
struct Drain {
    /// All that they ever took, when that was last looked at.
    drained: u64,
    /// Bytes a second; 0 when unknown.
    bytes_per_s: f64,
    /// The time of compacting that it was seen for.
    seen: Seen,
}

impl Drain {
    /// Takes in the total after `seconds` more. Nothing says nothing unless the tank
    /// `asks` for compactions that run.
    fn observe(&mut self, drained: u64, seconds: f64, asks: bool) {
        let taken = drained.saturating_sub(self.drained) as f64;
        self.drained = drained;
        if seconds > 0.0 && (taken > 0.0 || asks) {
            let weight = self.seen.weight(seconds, DRAIN_S);
            self.bytes_per_s += (taken / seconds - self.bytes_per_s) * weight;
        }
    }

    /// Bytes a second, or what is taken for them as long as nothing was seen.
    fn or(&self, first: f64) -> f64 {
        if self.bytes_per_s > 0.0 {
            self.bytes_per_s
        } else {
            first
        }
    }
}

/// Seconds that went into an average.
#[derive(Debug, Default)]
struct Seen(f64);

impl Seen {
    /// What a reading after `seconds` more weighs in an average over about `over` seconds: in the
    /// mean of all that was seen, as long as that is little, since one turn of level 0 alone says
    /// too much.
    fn weight(&mut self, seconds: f64, over: f64) -> f64 {
        self.0 += seconds;
        (1.0 - (-seconds / over).exp()).max(seconds / self.0)
    }
}

/// The part of the drain that writers get where a figure has this value; no limit where the figure
/// only stops them.
fn by_figure(trigger: StallTrigger, value: f64) -> f64 {
    if trigger.slowdown.is_infinite() {
        UNLIMITED
    } else {
        part_of_drain(trigger.load(value))
    }
}

/// The part of the drain that writers get at a load; without limit below the near zone.
fn part_of_drain(load: f64) -> f64 {
    if load < Zone::Near.begin() {
        return UNLIMITED;
    }
    let way = load - Zone::Slow.begin();
    let (part, whole) = if way < EVEN {
        ((EVEN - way) / EVEN, FREEST.log2())
    } else {
        ((way - EVEN) / (1.0 - EVEN), SLOWEST_PART.log2())
    };
    let slope = EVEN_SLOPE * part + (1.0 - EVEN_SLOPE) * part.powi(3);
    (whole * slope).exp2()
}

/// The rate at which what comes fits below the stop trigger of level 0 until a merge takes tables
/// away.
fn relief_pace(now: &Reading, limits: &WriterLimits) -> f64 {
    let level0 = limits.triggers.level0;
    let projected_output = (now.tables + now.waiting) as f64;
    let is_critical = Zone::of(level0.load(projected_output)) >= Zone::Critical;
    let Some(mut relief_us) = now.relief_us.filter(|_| is_critical) else {
        return UNLIMITED;
    };
    if now.idle >= MIN_FILES_FOR_INTRA_L0 {
        relief_us = relief_us.min(SOON_US);
    }
    let spare = (level0.stop - 1.0 - LATE - projected_output).max(0.0);
    let open = (1.0 - now.filled as f64 / limits.memtable).max(LEAST_ROOM);
    let rate = (spare + open) * limits.memtable * 1e6 / relief_us.max(LATE_US) as f64;
    rate.max(SLOWEST)
}

/// The rate at which memtables fill up just when those that wait are written.
fn flush_pace(now: &Reading, limits: &WriterLimits) -> f64 {
    if now.waiting as f64 >= limits.triggers.memtables.stop {
        return crawl(now, limits);
    }
    if now.waiting == 0 || now.left == 0 || now.flush_rate == 0 || now.is_flush_free {
        return UNLIMITED;
    }
    let spare = (limits.triggers.memtables.stop - 1.0 - now.waiting as f64).max(0.0);
    let open = (1.0 - now.filled as f64 / limits.memtable).max(LEAST_ROOM);
    let room = (spare + open) * limits.memtable;
    now.flush_rate as f64 * room / now.left as f64
}

/// The rate while as many memtables wait as may: what is left of the reserve lasts longer the less
/// it is.
fn crawl(now: &Reading, limits: &WriterLimits) -> f64 {
    let reserve = limits.memtable * RESERVE;
    let left = reserve - now.filled as f64;
    if now.waiting as f64 > limits.triggers.memtables.stop || reserve < SLOWEST || left <= 0.0 {
        return 0.0;
    }
    ((left / reserve).powi(4) * reserve / RESERVE_S).max(SLOWEST)
}

#[cfg(test)]
mod tests;
