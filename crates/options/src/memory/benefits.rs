//! Value of one megabyte more or less to each side of a memory budget, in microseconds of device
//! and processor time a second. Pure functions over measurements.
//!
//! **The block cache.** A curve says how many hits a second each further piece of capacity brings
//! (`esker_cache`'s ghosts), and sampled reads say what a miss takes. The concave hull of the curve
//! counts, not its slope: a loop over more than the cache holds has no hits until all of it fits,
//! and the hull spreads that gain over the way there.
//!
//! **Memtables.** A compaction rewrites a byte about as often as the logarithm of the tree's size
//! over a memtable's says, so a memtable larger by a small part saves that part of
//! `work / ln(tree / memtable)`. An entry that is overwritten in memory costs no flush and no
//! compaction. If a share `d` of the entries dies so, a memtable larger by a part saves that part
//! of `d` of all work: `d` rises by `d (1 - d)`, of the `1 - d` that are left. Both figures are
//! measured. The time that writers were held back is work that they waited for. A memtable beyond
//! [`LARGE_MEMTABLE`] is slower to search: each entry then costs [`LARGE_ENTRY_US`] times the
//! logarithm of its size more, which is as much as it saves of rewriting or more. It pays only
//! where entries are overwritten.

use esker_cache::GhostCurve;

/// A mebibyte, the unit of all benefits.
const MIB: f64 = 1_048_576.0;
/// Time of a miss before any was timed.
const MISS_US: f64 = 10.0;
/// Bytes up to which the size of a memtable does not matter to its writers.
pub(super) const LARGE_MEMTABLE: usize = 64 << 20;
/// Microseconds that an entry takes longer in a memtable that is e times as large; measured with
/// entries of 420 bytes.
const LARGE_ENTRY_US: f64 = 1.0;

/// Values of one more and of one fewer megabyte of the block cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetSlopes {
    /// Microseconds a second that one more saves.
    pub gain: f64,
    /// Microseconds a second that one fewer costs.
    pub loss: f64,
}

/// Work of flushes and compactions since a database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// Microseconds of flushes.
    pub flush_us: u64,
    /// Microseconds of compactions.
    pub compaction_us: u64,
    /// Microseconds that writers were held back because of either.
    pub stall_us: u64,
    /// Entries that flushes read from memtables.
    pub entries_flushed: u64,
    /// Entries that flushes wrote.
    pub entries_kept: u64,
}

impl std::ops::AddAssign for WorkDone {
    fn add_assign(&mut self, more: WorkDone) {
        self.flush_us += more.flush_us;
        self.compaction_us += more.compaction_us;
        self.stall_us += more.stall_us;
        self.entries_flushed += more.entries_flushed;
        self.entries_kept += more.entries_kept;
    }
}

impl WorkDone {
    fn since(&self, before: &WorkDone) -> WorkDone {
        WorkDone {
            flush_us: self.flush_us.saturating_sub(before.flush_us),
            compaction_us: self.compaction_us.saturating_sub(before.compaction_us),
            stall_us: self.stall_us.saturating_sub(before.stall_us),
            entries_flushed: self.entries_flushed.saturating_sub(before.entries_flushed),
            entries_kept: self.entries_kept.saturating_sub(before.entries_kept),
        }
    }
}

/// The load of the last moments: old figures fade.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentLoad {
    seconds: f64,
    flush_us: f64,
    compaction_us: f64,
    stall_us: f64,
    entries_flushed: f64,
    entries_kept: f64,
    curve: GhostCurve,
    curve_seconds: f64,
    /// Microseconds of a miss.
    miss_us: Option<f64>,
}

/// Returns the part of a figure that is left after this many half-lives.
fn left_after(half_lives: f64) -> f64 {
    0.5f64.powf(half_lives)
}

impl RecentLoad {
    /// Time passes.
    pub(super) fn pass(&mut self, seconds: f64, half_life: f64) {
        // Jobs enter what they did when they end, so their figures take longer to settle.
        let left = left_after(seconds / half_life / 2.0);
        self.seconds = self.seconds * left + seconds;
        for sum in [
            &mut self.flush_us,
            &mut self.compaction_us,
            &mut self.stall_us,
            &mut self.entries_flushed,
            &mut self.entries_kept,
        ] {
            *sum *= left;
        }
        let left = left_after(seconds / half_life);
        self.curve_seconds = self.curve_seconds * left + seconds;
        self.curve.hits.iter_mut().for_each(|hits| *hits *= left);
        self.curve.uses *= left;
    }

    /// Adds the work of one database since the last call.
    pub(super) fn add_work(&mut self, now: &WorkDone, before: &WorkDone) {
        let done = now.since(before);
        self.flush_us += done.flush_us as f64;
        self.compaction_us += done.compaction_us as f64;
        self.stall_us += done.stall_us as f64;
        self.entries_flushed += done.entries_flushed as f64;
        self.entries_kept += done.entries_kept as f64;
    }

    /// Adds the counts of the cache's ghosts since the last call.
    pub(super) fn add_curve(&mut self, new: &GhostCurve) {
        if self.curve.step_bytes != new.step_bytes || self.curve.hits.len() != new.hits.len() {
            self.curve = new.clone();
        } else {
            let sums = self.curve.hits.iter_mut().zip(&new.hits);
            sums.for_each(|(sum, hits)| *sum += hits);
            self.curve.uses += new.uses;
        }
        if new.reads > 0 {
            let us = new.read_ns as f64 / 1000.0 / new.reads as f64;
            self.miss_us = Some(self.miss_us.map_or(us, |before| (before + us) / 2.0));
        }
    }

    /// Microseconds of a missed read.
    pub(super) fn miss_us(&self) -> f64 {
        self.miss_us.unwrap_or(MISS_US)
    }

    /// The share of the entries that are overwritten in memory.
    pub(super) fn overwritten(&self) -> f64 {
        if self.entries_flushed < 1.0 {
            return 0.0;
        }
        (1.0 - self.entries_kept / self.entries_flushed).clamp(0.0, 1.0)
    }

    /// Returns the value of a megabyte to memtables that take `share` bytes together, each switched
    /// at `memtable` bytes, over trees of `tables` bytes.
    pub(super) fn of_memtables(&self, tables: u64, memtable: usize, share: usize) -> f64 {
        if self.seconds <= 0.0 {
            return 0.0;
        }
        let depth = (tables as f64 / memtable.max(1) as f64).max(1.0).ln();
        let rewriting = (self.compaction_us + self.stall_us) / depth.max(1.0);
        let overwritten = (self.flush_us + self.compaction_us) * self.overwritten();
        let saved = if memtable > LARGE_MEMTABLE {
            overwritten - self.entries_flushed * LARGE_ENTRY_US
        } else {
            rewriting + overwritten
        };
        saved / self.seconds / (share.max(1) as f64 / MIB)
    }

    /// Returns the value of a megabyte to a cache of this capacity.
    pub(super) fn of_cache(&self, capacity: usize) -> BudgetSlopes {
        if self.curve_seconds <= 0.0 {
            return BudgetSlopes::default();
        }
        let hits = hull_slopes(&self.curve.hits, capacity, self.curve.step_bytes);
        let step = self.curve.step_bytes.max(1) as f64 / MIB;
        let worth = self.miss_us() / self.curve_seconds / step;
        BudgetSlopes {
            gain: hits.gain * worth,
            loss: hits.loss * worth,
        }
    }
}

/// The slopes of the concave hull of a curve on both sides of `capacity`, in hits a step.
fn hull_slopes(hits: &[f64], capacity: usize, step_bytes: usize) -> BudgetSlopes {
    // Corners of the hull so far, each with the slope from the one before.
    let mut corners: Vec<(usize, f64, f64)> = vec![(0, 0.0, f64::INFINITY)];
    let mut sum = 0.0;
    for (i, more) in hits.iter().enumerate() {
        sum += more;
        let slope_to = |corner: &(usize, f64, f64)| (sum - corner.1) / (i + 1 - corner.0) as f64;
        while let [.., _, last] = &corners[..]
            && slope_to(last) >= last.2
        {
            corners.pop();
        }
        let slope = corners.last().map_or(0.0, slope_to);
        corners.push((i + 1, sum, slope));
    }
    let at = capacity as f64 / step_bytes.max(1) as f64;
    let gain = corners.iter().find(|c| c.0 as f64 > at);
    // What ends at the capacity is still inside of it.
    let loss = corners.iter().skip(1).find(|c| c.0 as f64 >= at);
    BudgetSlopes {
        gain: gain.filter(|c| c.0 > 0).map_or(0.0, |c| c.2),
        loss: loss.map_or(0.0, |c| c.2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slopes(hits: &[f64], steps: usize) -> (f64, f64) {
        let slopes = hull_slopes(hits, steps * 10, 10);
        (slopes.gain, slopes.loss)
    }

    #[test]
    fn a_concave_curve_is_its_own_hull() {
        let hits = [8.0, 4.0, 2.0, 0.0];
        assert_eq!(slopes(&hits, 0), (8.0, 8.0));
        assert_eq!(slopes(&hits, 1), (4.0, 8.0));
        assert_eq!(slopes(&hits, 2), (2.0, 4.0));
        assert_eq!(slopes(&hits, 4), (0.0, 0.0));
        assert_eq!(slopes(&hits, 9), (0.0, 0.0));
        assert_eq!(slopes(&[], 1), (0.0, 0.0));
    }

    #[test]
    fn a_cliff_is_worth_the_way_to_it() {
        // Ten hits for all of five steps; nothing before.
        let hits = [0.0, 0.0, 0.0, 0.0, 10.0, 0.0];
        for steps in 1..5 {
            assert_eq!(slopes(&hits, steps), (2.0, 2.0), "{steps}");
        }
        assert_eq!(slopes(&hits, 5), (0.0, 2.0));
    }

    /// Two seconds of a load of writes.
    fn writes(flushed: u64, kept: u64) -> RecentLoad {
        let mut load = RecentLoad::default();
        load.pass(2.0, 1.0);
        let work = WorkDone {
            flush_us: 200_000,
            compaction_us: 1_000_000,
            stall_us: 600_000,
            entries_flushed: flushed,
            entries_kept: kept,
        };
        load.add_work(&work, &WorkDone::default());
        load
    }

    #[test]
    fn memtables_save_rewriting_by_the_logarithm_and_all_work_on_what_dies_in_memory() {
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.01, "{a} and {b}");
        let mib = 1 << 20;
        // ln(1024) = 6.93; 1.6 s of work and waiting in 2 s, over 64 MB.
        let load = writes(1000, 1000);
        near(
            load.of_memtables(1 << 30, mib, 64 * mib),
            1_600_000.0 / 6.93 / 2.0 / 64.0,
        );
        // A quarter dies: a quarter of the work comes on top.
        let load = writes(1000, 750);
        near(
            load.of_memtables(1 << 30, mib, 64 * mib),
            (1_600_000.0 / 6.93 + 300_000.0) / 2.0 / 64.0,
        );
        // A tree that is smaller than a memtable has one level.
        let small = load.of_memtables(0, mib, mib);
        near(small, 1_900_000.0 / 2.0);
        assert_eq!(RecentLoad::default().of_memtables(0, mib, mib), 0.0);
    }

    #[test]
    fn a_large_memtable_is_worth_something_only_where_entries_are_overwritten() {
        let worth = |kept, memtable| writes(1_000_000, kept).of_memtables(1 << 30, memtable, 1);
        let large = LARGE_MEMTABLE + 1;
        assert!(worth(1_000_000, LARGE_MEMTABLE) > 0.0);
        assert!(worth(1_000_000, large) < 0.0);
        assert!(worth(100_000, large) > 0.0, "nine of ten");
    }

    #[test]
    fn hits_are_worth_what_misses_take() {
        let mut load = RecentLoad::default();
        load.pass(1.0, 1.0);
        load.add_curve(&GhostCurve {
            step_bytes: 2 << 20,
            hits: vec![100.0, 60.0],
            uses: 200.0,
            read_ns: 500_000,
            reads: 10,
        });
        // 50 us a miss; 60 hits a second for two megabytes.
        let slopes = load.of_cache(2 << 20);
        assert_eq!((slopes.gain, slopes.loss), (1500.0, 2500.0));
        // It fades when nothing comes.
        load.pass(10.0, 1.0);
        assert!(load.of_cache(2 << 20).loss < 1.0);
        assert_eq!(RecentLoad::default().of_cache(0), BudgetSlopes::default());
    }
}
