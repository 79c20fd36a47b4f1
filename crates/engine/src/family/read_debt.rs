//! The time that reads of a family spend because its data stands in several runs; see
//! [`esker_lsm::read_demand`].
//!
//! One read in [`super::SAMPLE`] of each thread and kind is timed and stands for all of them, so
//! that only that one writes to a line that threads share.
//!
//! Thread-safety: sums that every reader adds to. The scheduler alone takes from them, under the
//! lock of the jobs.

use super::{Family, View};
use crate::runtime::work_signal as signal;
use esker_lsm::file::FileMeta;
use esker_lsm::read_demand::{
    LEAST_DEBT_NS, ReadDemand, SampledReads, extra_ns, haste, is_flush_paid, walked_runs,
};
use esker_sync::atomic::{AtomicU64, Ordering};

/// Reads of weeks: sums stay far from an overflow.
const MOST_DEBT_NS: u64 = 1 << 50;

/// Account of the extra time that reads spend because there are several runs.
#[derive(Debug)]
pub(crate) struct ReadDebt {
    ns: AtomicU64,
    /// The scheduler looks at the family when the debt is as much.
    due_ns: AtomicU64,
    /// The memtable that took writes at the last look, and its entries.
    seen: [AtomicU64; 2],
}

impl Default for ReadDebt {
    fn default() -> Self {
        ReadDebt {
            ns: AtomicU64::new(0),
            due_ns: AtomicU64::new(LEAST_DEBT_NS),
            seen: [const { AtomicU64::new(0) }; 2],
        }
    }
}

impl View {
    /// Memtables that a read searches.
    fn memtables(&self) -> usize {
        usize::from(!self.mem.is_empty()) + self.immutable.len()
    }

    /// How many times sooner reads have it merged because of deletions.
    pub(crate) fn haste(&self) -> f64 {
        let deletions = self.unflushed().map(|mem| mem.deletions()).sum();
        haste(&self.version, deletions)
    }
}

impl Family {
    /// Counts seeks that are to come. True when background work is to look at the family.
    pub(crate) fn expect_seeks(&self, seeks: u64) -> bool {
        self.pay_for(&self.view(), SampledReads::Seek { took_ns: 0 }, seeks)
    }

    /// Counts `times` as many reads of `view` as were sampled. True when background work is to
    /// look at the family.
    pub(crate) fn pay_for(&self, view: &View, reads: SampledReads, times: u64) -> bool {
        let debt = &self.read_debt;
        let each = extra_ns(&view.version, view.memtables(), reads);
        if each == 0 {
            if walked_runs(&view.version, view.memtables()) <= 1 {
                // Nothing is left to pay for.
                debt.ns.store(0, Ordering::Relaxed);
                debt.due_ns.store(LEAST_DEBT_NS, Ordering::Relaxed);
            }
            return false;
        }
        let haste = match reads {
            SampledReads::Seek { .. } => view.haste(),
            SampledReads::Gets { .. } => 1.0,
        };
        let paid = (each.saturating_mul(times) as f64 * haste) as u64;
        let paid = paid.min(MOST_DEBT_NS);
        let ns = debt.ns.fetch_add(paid, Ordering::Relaxed).min(MOST_DEBT_NS) + paid;
        let due = debt.due_ns.load(Ordering::Relaxed);
        if ns < due || !self.options.load().compaction_for_reads {
            return false;
        }
        let next = ns + (ns / 2).max(LEAST_DEBT_NS);
        let order = Ordering::Relaxed;
        let is_first = debt
            .due_ns
            .compare_exchange(due, next, order, order)
            .is_ok();
        if is_first {
            self.signal.mark(signal::TREE);
        }
        is_first
    }

    /// Counts reads that searched `file` without a value from it. True when background work is to
    /// look at the family, since the file has come to `read_triggered_compaction_threshold`.
    pub(crate) fn count_collapsible(&self, file: &FileMeta, reads: u64) -> bool {
        let before = file.collapsible_reads.fetch_add(reads, Ordering::Relaxed);
        let threshold = self.options.load().read_triggered_compaction_threshold;
        let most = threshold * file.size as f64;
        let comes_to_it = before as f64 <= most && before.saturating_add(reads) as f64 > most;
        let is_due = threshold > 0.0 && comes_to_it;
        if is_due {
            self.signal.mark(signal::TREE);
        }
        is_due
    }

    /// Returns the demand of reads for compaction.
    pub(crate) fn read_demand(&self) -> ReadDemand {
        ReadDemand {
            debt_ns: self.read_debt.ns.load(Ordering::Relaxed),
            merge_pace: self.compaction_stats.merge_pace(),
            writers_rest: false,
        }
    }

    /// A job that reads `bytes` was started for reads.
    pub(crate) fn spend_read_debt(&self, bytes: u64) {
        let debt = &self.read_debt;
        let demand = self.read_demand();
        let left = demand.debt_ns.saturating_sub(demand.merge_ns(bytes));
        debt.ns.store(left, Ordering::Relaxed);
        debt.due_ns.store(left + LEAST_DEBT_NS, Ordering::Relaxed);
    }

    /// Returns whether reads have paid for a flush of the memtable that takes writes, and nothing
    /// came to it between two looks.
    pub(crate) fn wants_flush_for_reads(&self, view: &View) -> bool {
        let demand = self.read_demand();
        if demand.debt_ns < LEAST_DEBT_NS || view.mem.is_empty() {
            return false;
        }
        let entries = view.mem.entries();
        let was = [view.mem.id(), entries];
        let seen = |i: usize| self.read_debt.seen[i].swap(was[i], Ordering::Relaxed) == was[i];
        let rests = seen(0) & seen(1);
        let bytes = view.mem.data_bytes();
        rests
            && view.immutable.is_empty()
            && is_flush_paid(&view.version, view.memtables(), &demand, bytes)
    }
}
