//! The families that may have work, in the order in which they get it.
//!
//! For each family that changed the scheduler finds out once what there is to do, and enters it
//! here: how many memtables a flush would take, and how urgent its next compaction is. A family
//! stays as it was entered until it changes again, so a job start costs the same with any number of
//! families.
//!
//! **Flushes** go to the family with the most memtables to flush; of those with equally many to the
//! one that has waited longest.
//!
//! **Compactions** go by urgency ([`esker_lsm::pick::urgency`]). One in [`TURNS`] goes to the
//! family that has waited longest instead, whatever the urgencies: an overloaded family always has
//! a more urgent plan than one whose level 0 fills up slowly, and the latter would get its turn
//! only when its own writers are slowed down.
//!
//! Plans that are due by the age of files alone wait while [`super::AgedWork`] says so.
//!
//! Plans that relieve level 0 stand in a list of their own, too: merges yield to them.
//!
//! **Time and snapshots** change what there is to do without an event. A family names the next
//! second of the calendar, the next moment of the clock, and the sequence number at which it is
//! worth another look; one ordered set of each keeps them.
//!
//! Thread-safety: part of [`super::Jobs`], under its lock.

use esker_format::{FamilyId, Seq};
use esker_lsm::pick::Recheck;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

/// One compaction of this many is started by how long its family has waited.
const TURNS: u64 = 4;

/// A family's next compaction, as far as the queue has to know it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueuedPlan {
    pub(crate) urgency: f64,
    /// It takes level 0 down, whose load holds writers back or is about to.
    pub(crate) relieves_level0: bool,
    /// The age of files alone makes it due.
    pub(crate) is_aged: bool,
}

/// The bits of an urgency: those of floats that are not negative order as they do.
fn bits(urgency: f64) -> u64 {
    urgency.max(0.0).to_bits()
}

/// State of a family in the queue.
#[derive(Debug, Default)]
struct FamilyEntry {
    /// Its place among those to flush: the memtables, and since when it has any.
    flush: Option<(usize, Reverse<u64>)>,
    /// Some memtable waits, whether a flush has taken it or not.
    has_memtables: bool,
    /// It stands in `unlooked`.
    is_unlooked: bool,
    /// Its place among those to compact: the bits of the urgency, which order as it does, and since
    /// when it has had a plan.
    compaction: Option<(u64, Reverse<u64>)>,
    /// It stands in `level0` with this urgency.
    level0: Option<u64>,
    /// It stands in `aged`, not in `compactions`.
    is_aged: bool,
    recheck: Recheck,
    /// When writers rest, by the clock.
    due_us: Option<u64>,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    entries: HashMap<FamilyId, FamilyEntry>,
    flushes: BTreeSet<(usize, Reverse<u64>, FamilyId)>,
    /// Families whose trees changed since their plans were entered.
    unlooked: VecDeque<FamilyId>,
    compactions: BTreeSet<(u64, Reverse<u64>, FamilyId)>,
    /// Those whose plans are due by age alone.
    aged: BTreeSet<(u64, Reverse<u64>, FamilyId)>,
    /// Those of them that relieve level 0.
    level0: BTreeSet<(u64, FamilyId)>,
    /// All by how long they have waited.
    waiting: BTreeSet<(u64, FamilyId)>,
    times: BTreeSet<(u64, FamilyId)>,
    due: BTreeSet<(u64, FamilyId)>,
    snapshots: BTreeSet<(Seq, FamilyId)>,
    with_memtables: usize,
    /// Counts entries: which came first.
    arrivals: u64,
    /// Compactions that were started.
    starts: u64,
    /// Looks at trees.
    looks: u64,
}

impl WorkQueue {
    fn next_arrival(&mut self) -> Reverse<u64> {
        self.arrivals += 1;
        Reverse(self.arrivals)
    }

    /// Enters how many memtables a flush of the family would take now, 0 for none, and whether it
    /// has any.
    pub(crate) fn enter_flush(&mut self, family: FamilyId, count: usize, has_memtables: bool) {
        let arrival = self.next_arrival();
        let entry = self.entries.entry(family).or_default();
        if entry.has_memtables != has_memtables {
            entry.has_memtables = has_memtables;
            self.with_memtables = if has_memtables {
                self.with_memtables + 1
            } else {
                self.with_memtables - 1
            };
        }
        let since = entry.flush.map_or(arrival, |(_, since)| since);
        let place = (count > 0).then_some((count, since));
        let before = std::mem::replace(&mut entry.flush, place);
        if let Some((count, since)) = before {
            self.flushes.remove(&(count, since, family));
        }
        if let Some((count, since)) = place {
            self.flushes.insert((count, since, family));
        }
    }

    /// The family that is to be flushed next.
    pub(crate) fn next_flush(&self) -> Option<FamilyId> {
        self.flushes.last().map(|(_, _, family)| *family)
    }

    /// Returns whether a job may wait for another to end.
    pub(crate) fn has_work(&self) -> bool {
        !(self.flushes.is_empty()
            && self.compactions.is_empty()
            && self.aged.is_empty()
            && self.unlooked.is_empty())
    }

    /// Returns whether a memtable of any family waits.
    pub(crate) fn has_memtables(&self) -> bool {
        self.with_memtables > 0
    }

    /// The family's tree, or what runs on it, changed: what is known of its plan is void.
    pub(crate) fn look_again(&mut self, family: FamilyId) {
        let entry = self.entries.entry(family).or_default();
        if !std::mem::replace(&mut entry.is_unlooked, true) {
            self.unlooked.push_back(family);
        }
    }

    /// Has families looked at again whose time has come, in unix seconds and by the clock, or whose
    /// snapshots are gone.
    pub(crate) fn pass(&mut self, now: u64, oldest_snapshot: Seq, now_us: u64) {
        while let Some(&(at, family)) = self.times.first().filter(|(at, _)| *at <= now) {
            self.times.remove(&(at, family));
            self.look_again(family);
        }
        while let Some(&(at, family)) = self.due.first().filter(|(at, _)| *at <= now_us) {
            self.due.remove(&(at, family));
            self.look_again(family);
        }
        while let Some(&(seq, family)) =
            self.snapshots.first().filter(|(s, _)| *s < oldest_snapshot)
        {
            self.snapshots.remove(&(seq, family));
            self.look_again(family);
        }
    }

    /// A family to look at.
    pub(crate) fn next_unlooked(&mut self) -> Option<FamilyId> {
        let family = self.unlooked.pop_front()?;
        if let Some(entry) = self.entries.get_mut(&family) {
            entry.is_unlooked = false;
        }
        Some(family)
    }

    /// Enters what a look at the family's tree found: its plan, if it has one, and when to look
    /// again.
    pub(crate) fn enter_compaction(
        &mut self,
        family: FamilyId,
        plan: Option<QueuedPlan>,
        recheck: Recheck,
        now_us: u64,
    ) {
        self.looks += 1;
        let arrival = self.next_arrival();
        let entry = self.entries.entry(family).or_default();
        let since = entry.compaction.map_or(arrival, |(_, since)| since);
        let place = plan.map(|p| (bits(p.urgency), since));
        let level0 = plan.filter(|p| p.relieves_level0);
        let level0 = level0.map(|p| bits(p.urgency));
        let was_level0 = std::mem::replace(&mut entry.level0, level0);
        let before = std::mem::replace(&mut entry.compaction, place);
        let is_aged = plan.is_some_and(|p| p.is_aged);
        let was_aged = std::mem::replace(&mut entry.is_aged, is_aged);
        let rechecked = std::mem::replace(&mut entry.recheck, recheck);
        let due_us = recheck.in_us.map(|us| now_us.saturating_add(us));
        let was_due_us = std::mem::replace(&mut entry.due_us, due_us);
        if let Some((urgency, since)) = before {
            self.by_urgency(was_aged).remove(&(urgency, since, family));
            self.waiting.remove(&(since.0, family));
        }
        if let Some((urgency, since)) = place {
            self.by_urgency(is_aged).insert((urgency, since, family));
            self.waiting.insert((since.0, family));
        }
        was_level0.map(|urgency| self.level0.remove(&(urgency, family)));
        level0.map(|urgency| self.level0.insert((urgency, family)));
        rechecked.at.map(|at| self.times.remove(&(at, family)));
        recheck.at.map(|at| self.times.insert((at, family)));
        was_due_us.map(|at| self.due.remove(&(at, family)));
        due_us.map(|at| self.due.insert((at, family)));
        rechecked.above.map(|s| self.snapshots.remove(&(s, family)));
        recheck.above.map(|s| self.snapshots.insert((s, family)));
    }

    fn by_urgency(&mut self, is_aged: bool) -> &mut BTreeSet<(u64, Reverse<u64>, FamilyId)> {
        if is_aged {
            &mut self.aged
        } else {
            &mut self.compactions
        }
    }

    /// The family that is to be compacted next; `aged` says whether by age alone is enough.
    pub(crate) fn next_compaction(&self, aged: bool) -> Option<FamilyId> {
        if self.starts % TURNS == TURNS - 1
            && let Some((_, family)) = self.waiting.first()
            && (aged || self.entries.get(family).is_some_and(|e| !e.is_aged))
        {
            return Some(*family);
        }
        let by_age = self.aged.last().filter(|_| aged);
        let next = self.compactions.last().max(by_age)?;
        Some(next.2)
    }

    /// The family whose level 0 is to be relieved next, and how urgent that is.
    pub(crate) fn next_level0(&self) -> Option<(FamilyId, f64)> {
        let (urgency, family) = self.level0.last()?;
        Some((*family, f64::from_bits(*urgency)))
    }

    /// A compaction of the family starts: it waits no longer, and may have more to do beside it.
    pub(crate) fn started(&mut self, family: FamilyId) {
        self.starts += 1;
        self.enter_compaction(family, None, Recheck::default(), 0);
        self.looks -= 1;
        self.look_again(family);
    }

    /// The family is gone.
    pub(crate) fn forget(&mut self, family: FamilyId) {
        self.enter_flush(family, 0, false);
        self.enter_compaction(family, None, Recheck::default(), 0);
        self.looks -= 1;
        self.unlooked.retain(|f| *f != family);
        self.entries.remove(&family);
    }

    /// How often trees were looked at.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }
}

#[cfg(test)]
mod tests;
