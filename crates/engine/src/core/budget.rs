//! A database's part in a memory budget: what it measures for the budget, and how its families
//! follow the share of the memtables.
//!
//! The budget itself, its rules and its locks are in `esker_options`. Thread-safety: any thread;
//! options change under the lock of administration, for which no background thread waits.

use super::{Core, Trees};
use crate::family::{Family, FamilySet};
use crate::memory::{BudgetMember, MemberReading, MemoryBudget, WorkDone};
use crate::observe::StallCause;
use crate::options::FamilyOptions;
use crate::tree::Tables;
use esker_env::Clock;
use esker_sync::Arc;
use esker_sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Memtables follow a share that changed by one part in this many.
const CHANGE_PART: usize = 16;
/// The LOG tells of readers that hold this part of the budget beyond it.
const EXCEEDED_PART: usize = 16;
/// Between two such lines.
const TELL_US: u64 = 60_000_000;

/// The share of a budget that a database has.
#[derive(Debug)]
pub(crate) struct BudgetPart {
    pub(crate) budget: Arc<MemoryBudget>,
    /// The budget knows it by a weak reference.
    _measured: Arc<MemberMemory>,
    /// The size of memtables that the families have.
    followed: AtomicUsize,
    /// When the LOG was told that readers hold too much, by the clock; 0 for never.
    told_us: AtomicU64,
}

#[derive(Debug)]
struct MemberMemory {
    families: Arc<FamilySet>,
    tables: Arc<Tables>,
}

impl BudgetPart {
    /// Makes the database a member.
    pub(crate) fn join(
        budget: &Arc<MemoryBudget>,
        trees: &Trees,
        clock: &Arc<dyn Clock>,
    ) -> BudgetPart {
        let measured = Arc::new(MemberMemory {
            families: Arc::clone(&trees.families),
            tables: Arc::clone(&trees.tables),
        });
        budget.join(Arc::downgrade(&measured) as _, clock);
        BudgetPart {
            budget: Arc::clone(budget),
            _measured: measured,
            followed: AtomicUsize::new(0),
            told_us: AtomicU64::new(0),
        }
    }
}

/// Returns the work of a family's jobs and the time that its writers waited for them.
fn work_of(family: &Family) -> WorkDone {
    let totals = family.compaction_stats.totals();
    let is_of_jobs = |cause| !matches!(cause, StallCause::Administration | StallCause::LowPriority);
    let stalls = family.stalls.rows().filter(|row| is_of_jobs(row.cause));
    WorkDone {
        flush_us: totals.flush.micros,
        compaction_us: totals.compaction().micros,
        stall_us: stalls.map(|row| row.writers_us).sum(),
        entries_flushed: totals.flush.entries_in,
        entries_kept: totals.flush.entries_out,
    }
}

impl BudgetMember for MemberMemory {
    fn measure(&self) -> MemberReading {
        let mut sum = MemberReading::default();
        self.families.each(|family| {
            sum.work += work_of(family);
            let view = family.view_guard();
            sum.table_bytes += view.version.bytes();
            let open = view.version.files();
            let open = open.filter_map(|(_, file)| self.tables.opened(file));
            sum.readers += open.map(|table| table.reader.memory_usage()).sum::<usize>();
            for cache in family.reading.caches() {
                if !sum.caches.iter().any(|c| Arc::ptr_eq(c, cache)) {
                    sum.caches.push(Arc::clone(cache));
                }
            }
        });
        sum
    }
}

impl BudgetPart {
    /// The size of memtables to come, where it differs from what the families have.
    fn new_size(&self) -> Option<usize> {
        let bytes = self.budget.memtable_bytes();
        let before = self.followed.load(Ordering::Relaxed);
        (bytes.abs_diff(before) > before / CHANGE_PART).then_some(bytes)
    }
}

impl Core {
    /// Returns whether [`Core::balance_memory`] has something to do.
    pub(crate) fn is_memory_balance_due(&self) -> bool {
        let due = |part: &BudgetPart| part.budget.is_due() || part.new_size().is_some();
        self.budget.as_ref().is_some_and(due)
    }

    /// Has the budget look when it is time to, and follows its split.
    pub(crate) fn balance_memory(&self) {
        let Some(part) = &self.budget else {
            return;
        };
        if let Some(moved) = part.budget.balance_if_due() {
            let state = part.budget.state();
            self.services.info_log.info(format_args!(
                "memory budget: {moved}; block cache {} bytes, memtables {}, others {}; a MB more \
                 saves {:.1} us/s there and {:.1} here",
                state.cache,
                state.memtables,
                state.others,
                state.cache_worth.gain,
                state.memtables_worth,
            ));
        }
        self.tell_exceeded(part);
        self.follow_budget(part);
    }

    /// Tells in the LOG, once a minute at most, that readers hold more blocks than the budget has.
    fn tell_exceeded(&self, part: &BudgetPart) {
        let state = part.budget.state();
        let now_us = self.services.env.clock.now_us();
        let told_us = part.told_us.load(Ordering::Relaxed);
        let is_much = state.exceeded > state.total / EXCEEDED_PART;
        if is_much && (told_us == 0 || now_us.saturating_sub(told_us) >= TELL_US) {
            part.told_us.store(now_us.max(1), Ordering::Relaxed);
            self.services.info_log.warn(format_args!(
                "memory budget: iterators and pinned values hold {} bytes of blocks more than the \
                 {} bytes that the block caches may have",
                state.exceeded, state.cache
            ));
        }
    }

    /// Gives memtables to come the size that the budget allows. Those that take writes are switched
    /// early where the share shrank.
    fn follow_budget(&self, part: &BudgetPart) {
        let Some(bytes) = part.new_size() else {
            return;
        };
        // At the next look, when another call administers now.
        let Some(_turn) = self.admin.try_lock() else {
            return;
        };
        part.followed.store(bytes, Ordering::Relaxed);
        for family in self.trees.families.all() {
            let options = family.options.load_full();
            if options.write_buffer_size != bytes {
                let mut options = FamilyOptions::clone(&options);
                options.write_buffer_size = bytes;
                family.set_options(options);
                self.writes.admission.refresh(&family);
            }
        }
        if self.services.options.load().max_total_wal_size == 0 {
            let logs = self.default_wal_limit();
            let limit = &self.writes.limits.max_total_wal_size;
            limit.store(logs, Ordering::Relaxed);
        }
    }
}
