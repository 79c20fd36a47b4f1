//! One number for the memory of databases: block cache, memtables, and what else is counted.
//!
//! ```text
//! total = block cache + memtables' share + others
//! ```
//!
//! Others are what open tables hold, the tables of the cache itself, and caches that families have
//! of their own. The block cache has what the rest leaves. Memtables that take more than their
//! share for a moment, because flushes are behind, take it from the cache as well, so the sum stays
//! within the number and no writer waits for it.
//!
//! At each look ([`MemoryBudget::balance`], which background threads call once a second) the
//! members are measured, and the controller moves a small part of the budget between the cache and
//! the memtables ([`super::controller`]), by what [`super::benefits`] says. A smaller share of the
//! memtables has the largest one flushed early; a smaller cache evicts.
//!
//! Thread-safety: any thread. A member is measured without a lock; one lock orders the changes of
//! the split, and the cache's own locks are taken under it.

use super::benefits::{BudgetSlopes, LARGE_MEMTABLE, RecentLoad, WorkDone};
use super::buffers::{MemtableObserver, WriteBufferManager};
use super::controller::{
    BudgetDecision, BudgetReason, BudgetSide, Controller, ControllerInput, MemoryValues,
};
use esker_cache::CacheOptions;
use esker_env::Clock;
use esker_files::table::BlockCache;
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use esker_sync::{Arc, Mutex, OnceLock, Rank, Weak};
use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

/// Taken before the locks of a cache.
const BUDGET: Rank = Rank::new(u16::MAX - 3, "memory budget").brief();
/// The step in which memtables beyond their share take from the cache.
const STEP: usize = 256 << 10;
/// The least that a side has, unless it is set: this part of the budget.
const MINIMUM_PART: usize = 16;
/// Moves that are remembered.
const MOVES_KEPT: usize = 8;
/// Between two looks.
const INTERVAL_US: u64 = 1_000_000;
/// No family switches memtables below this.
const MEMTABLE_MIN: usize = 64 << 10;

/// How a budget is made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryBudgetOptions {
    /// All memory, in bytes.
    pub total: usize,
    /// The percentage of the block cache at first; memtables have the rest. 0: memtables have as
    /// much as is good for writers of one family, at most half.
    pub cache_percent: u32,
    /// The least of the block cache, in bytes; 0 for a sixteenth of all.
    pub cache_min: usize,
    /// The least of the memtables, in bytes; 0 for a sixteenth of all.
    pub memtables_min: usize,
    /// The split stays as it is at first.
    pub is_fixed: bool,
    /// The kind and the shards of the block cache; its capacity is the budget's to set.
    pub cache: CacheOptions,
}

impl MemoryBudgetOptions {
    /// The defaults, for a budget of `total` bytes.
    pub fn with_total(total: usize) -> Self {
        MemoryBudgetOptions {
            total,
            cache_percent: 0,
            cache_min: 0,
            memtables_min: 0,
            is_fixed: false,
            cache: CacheOptions::with_capacity(total),
        }
    }
}

/// Measurements of one database.
#[derive(Clone, Debug, Default)]
pub struct MemberReading {
    /// Work of its jobs since it was opened.
    pub work: WorkDone,
    /// Bytes of its tables on disk.
    pub table_bytes: u64,
    /// Bytes that open tables hold outside of every cache.
    pub readers: usize,
    /// The caches of its families, each once.
    pub caches: Vec<Arc<BlockCache>>,
}

/// A database that belongs to a budget.
pub trait BudgetMember: std::fmt::Debug + Send + Sync {
    /// Measures now.
    fn measure(&self) -> MemberReading;
}

#[derive(Debug)]
struct BudgetEntry {
    member: Weak<dyn BudgetMember>,
    /// Work of its jobs up to the last look.
    before: Mutex<WorkDone>,
}

/// A budget at one moment.
#[derive(Clone, Debug, Default)]
pub struct BudgetState {
    /// All memory, in bytes.
    pub total: usize,
    /// The capacity of the block cache.
    pub cache: usize,
    /// The share of the memtables.
    pub memtables: usize,
    /// Memory of memtables at the last measurement.
    pub memtables_used: usize,
    /// Memory of everything else at the last look.
    pub others: usize,
    /// Of that, what open tables hold.
    pub readers: usize,
    /// Microseconds a second that a megabyte more or less is worth to the cache.
    pub cache_worth: BudgetSlopes,
    /// Value of a megabyte to the memtables.
    pub memtables_worth: f64,
    /// Microseconds of a missed read.
    pub miss_us: f64,
    /// The share of the entries that are overwritten in memory.
    pub overwritten: f64,
    /// Looks so far.
    pub looks: u64,
    /// The last decision.
    pub last: Option<BudgetDecision>,
    /// The last moves, the newest last, with the time of each by the clock.
    pub moves: VecDeque<(u64, BudgetDecision)>,
}

#[derive(Debug, Default)]
struct SharedState {
    shown: BudgetState,
    load: RecentLoad,
    controller: Controller,
    /// When the last look was.
    at_us: Option<u64>,
}

/// One budget of memory, which databases may share: see
/// [`crate::options::DbOptions::shared_memory_budget`].
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Db, MemoryBudget, MemoryBudgetOptions, Options};
///
/// let budget = MemoryBudget::new(MemoryBudgetOptions::with_total(64 << 20));
/// let mut options = Options::new().create_if_missing(true);
/// options.db.shared_memory_budget = Some(budget.clone());
/// let db = Db::open(dir.path(), options)?;
/// db.put("key", "value")?;
/// let state = budget.state();
/// assert!(state.cache + state.memtables + state.others <= 64 << 20);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MemoryBudget {
    options: MemoryBudgetOptions,
    cache: Arc<BlockCache>,
    buffers: Arc<WriteBufferManager>,
    members: Mutex<Vec<Arc<BudgetEntry>>>,
    clock: OnceLock<Arc<dyn Clock>>,
    interval_us: AtomicU64,
    due_us: AtomicU64,
    memtables_used: AtomicUsize,
    state: Mutex<SharedState>,
}

impl MemtableObserver for MemoryBudget {
    fn memtables_take(&self, bytes: usize) {
        if self.memtables_used.swap(bytes, Ordering::Relaxed) != bytes {
            self.fit(&mut self.state.lock().shown);
        }
    }
}

impl MemoryBudget {
    /// A budget without members.
    pub fn new(mut options: MemoryBudgetOptions) -> Arc<Self> {
        let total = options.total;
        let most = total / 2;
        let least = |given: usize| match given {
            0 => total / MINIMUM_PART,
            given => given.min(most),
        };
        options.cache_min = least(options.cache_min);
        options.memtables_min = least(options.memtables_min);
        let cache = match options.cache_percent.min(100) {
            0 => total - most.min(2 * LARGE_MEMTABLE),
            percent => usize::try_from(total as u128 * u128::from(percent) / 100).unwrap_or(total),
        };
        let cache = cache
            .max(options.cache_min)
            .min(total - options.memtables_min);
        let shown = BudgetState {
            total,
            cache,
            memtables: total - cache,
            ..BudgetState::default()
        };
        Arc::new_cyclic(|this: &Weak<MemoryBudget>| {
            // The shards are made for all of it: the cache may grow that far.
            let block_cache = Arc::new(BlockCache::new(CacheOptions {
                capacity: total,
                ..options.cache
            }));
            block_cache.set_capacity(cache);
            MemoryBudget {
                cache: block_cache,
                buffers: WriteBufferManager::of_budget(shown.memtables, this.clone() as _),
                members: Mutex::new(Rank::LEAF, Vec::new()),
                clock: OnceLock::new(),
                interval_us: AtomicU64::new(INTERVAL_US),
                due_us: AtomicU64::new(0),
                memtables_used: AtomicUsize::new(0),
                state: Mutex::new(
                    BUDGET,
                    SharedState {
                        shown,
                        ..SharedState::default()
                    },
                ),
                options,
            }
        })
    }

    /// All memory, in bytes.
    pub fn total(&self) -> usize {
        self.options.total
    }

    /// Its block cache, for the families of its members.
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// Its limit on memtables.
    pub fn buffers(&self) -> &Arc<WriteBufferManager> {
        &self.buffers
    }

    /// Bytes at which a family should switch memtables: half of their share, since the memtable
    /// before is being flushed meanwhile.
    pub fn memtable_bytes(&self) -> usize {
        (self.buffers.buffer_size() / 2).max(MEMTABLE_MIN)
    }

    /// Changes the time between two looks, from a millisecond up. The next look is due at once.
    pub fn set_interval(&self, interval: Duration) {
        let us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        self.interval_us.store(us.max(1000), Ordering::Relaxed);
        self.due_us.store(0, Ordering::Relaxed);
    }

    /// The budget now.
    pub fn state(&self) -> BudgetState {
        let mut shown = self.state.lock().shown.clone();
        shown.memtables_used = self.memtables_used.load(Ordering::Relaxed);
        shown
    }

    /// Makes a database a member. Time goes by the clock of the first.
    pub fn join(&self, member: Weak<dyn BudgetMember>, clock: &Arc<dyn Clock>) {
        let is_first = self.clock.set(Arc::clone(clock)).is_ok();
        if is_first {
            let clock = Arc::clone(clock);
            self.cache.watch(self.options.total, move || clock.now_ns());
        }
        let before = member.upgrade().map(|m| m.measure().work);
        let joined = BudgetEntry {
            member,
            before: Mutex::new(Rank::LEAF, before.unwrap_or_default()),
        };
        let mut members = self.members.lock();
        members.retain(|m| m.member.strong_count() > 0);
        members.push(Arc::new(joined));
    }

    /// Returns whether it is time to look.
    pub fn is_due(&self) -> bool {
        let now = self.clock.get().map(|clock| clock.now_us());
        now.is_some_and(|now| now >= self.due_us.load(Ordering::Relaxed))
    }

    /// Looks, if it is time to; the move that was made.
    pub fn balance_if_due(&self) -> Option<BudgetDecision> {
        let now = self.clock.get()?.now_us();
        let due = self.due_us.load(Ordering::Relaxed);
        // Threads that wake once in an interval wake a little early at times.
        let next = now + self.interval_us.load(Ordering::Relaxed) / 8 * 7;
        let order = Ordering::Relaxed;
        // One of the threads that notice does it.
        if now < due || (self.due_us.compare_exchange(due, next, order, order)).is_err() {
            return None;
        }
        self.balance()
    }

    /// Measures all members, and moves memory where it saves more time; the move that was made.
    pub fn balance(&self) -> Option<BudgetDecision> {
        let now = self.clock.get()?.now_us();
        let members = self.members.lock().clone();
        let present = members
            .iter()
            .filter_map(|joined| Some((joined, joined.member.upgrade()?.measure())));
        let readings: Vec<_> = present.collect();
        let curve = self.cache.take_ghost_curve();
        let overhead = self.cache.overhead();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let seconds = match state.at_us.replace(now) {
            Some(before) => now.saturating_sub(before) as f64 / 1e6,
            None => 0.0,
        };
        let half_life = self.interval_us.load(Ordering::Relaxed) as f64 * 2.0 / 1e6;
        state.load.pass(seconds, half_life);
        if let Some(curve) = curve.filter(|_| seconds > 0.0) {
            state.load.add_curve(&curve);
        }
        let mut sums = Sums::default();
        for (joined, reading) in &readings {
            let before = std::mem::replace(&mut *joined.before.lock(), reading.work);
            state.load.add_work(&reading.work, &before);
            sums.add(reading, &self.cache);
        }
        state.shown.readers = sums.readers;
        state.shown.others = overhead + sums.caches;
        if !seeded(Bug::BudgetForgetsReaders) {
            state.shown.others += sums.readers;
        }
        // What others took is gone from the cache before the split is looked at.
        self.fit(&mut state.shown);
        let decision = self.decide(state, sums.table_bytes);
        self.carry_out(&mut state.shown, now, &decision);
        drop(guard);
        // A memtable that is larger than the new share allows is flushed now; its database learns
        // of the share.
        self.buffers.relieve();
        if decision.bytes == 0 {
            return None;
        }
        self.buffers.notify_members();
        Some(decision)
    }

    /// Prices the split and decides.
    fn decide(&self, state: &mut SharedState, table_bytes: u64) -> BudgetDecision {
        let shown = &mut state.shown;
        shown.looks += 1;
        let share = shown.memtables;
        // What memtables have beyond their share for a moment is no part of the split.
        let cache = shown.total.saturating_sub(shown.others + share);
        shown.cache_worth = state.load.of_cache(cache);
        shown.memtables_worth = (state.load).of_memtables(table_bytes, share / 2, share);
        shown.miss_us = state.load.miss_us();
        shown.overwritten = state.load.overwritten();
        if self.options.is_fixed {
            return BudgetDecision::stays(None, BudgetReason::Fixed);
        }
        let now = ControllerInput {
            total: shown.total,
            cache,
            memtables: share,
            cache_min: self.options.cache_min,
            memtables_min: self.options.memtables_min,
            cache_worth: shown.cache_worth,
            memtables_worth: shown.memtables_worth,
        };
        let load = &state.load;
        let prices = MemoryValues {
            cache: &|bytes| load.of_cache(bytes),
            memtables: &|share| load.of_memtables(table_bytes, share / 2, share),
        };
        state.controller.decide(&now, &prices)
    }

    fn carry_out(&self, shown: &mut BudgetState, now_us: u64, decision: &BudgetDecision) {
        shown.last = Some(*decision);
        let Some(to) = decision.to.filter(|_| decision.bytes > 0) else {
            return;
        };
        match to {
            BudgetSide::BlockCache => shown.memtables -= decision.bytes,
            BudgetSide::Memtables => shown.memtables += decision.bytes,
        }
        shown.moves.push_back((now_us, *decision));
        if shown.moves.len() > MOVES_KEPT {
            shown.moves.pop_front();
        }
        self.buffers.set_limit(shown.memtables);
        self.fit(shown);
    }

    /// Gives the block cache what the rest leaves.
    fn fit(&self, shown: &mut BudgetState) {
        let used = self.memtables_used.load(Ordering::Relaxed);
        let used = used.div_ceil(STEP) * STEP;
        let rest = shown.others + used.max(shown.memtables);
        shown.cache = shown.total.saturating_sub(rest);
        if self.cache.capacity() != shown.cache {
            self.cache.set_capacity(shown.cache);
        }
    }

    /// The budget as text: shares, benefits, the last decision and the last moves.
    pub fn describe(&self) -> String {
        self.state().to_string()
    }
}

/// Memory of all members together.
#[derive(Default)]
struct Sums {
    table_bytes: u64,
    readers: usize,
    /// Bytes of caches beside the budget's.
    caches: usize,
    counted: Vec<Arc<BlockCache>>,
}

impl Sums {
    fn add(&mut self, reading: &MemberReading, own: &Arc<BlockCache>) {
        self.table_bytes += reading.table_bytes;
        self.readers += reading.readers;
        for cache in &reading.caches {
            if Arc::ptr_eq(cache, own) || self.counted.iter().any(|c| Arc::ptr_eq(c, cache)) {
                continue;
            }
            self.caches += cache.usage() + cache.overhead();
            self.counted.push(Arc::clone(cache));
        }
    }
}

/// Bytes as megabytes with one digit.
fn mb(bytes: usize) -> String {
    format!("{:.1} MB", bytes as f64 / 1_048_576.0)
}

impl std::fmt::Display for BudgetState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let worth = &self.cache_worth;
        writeln!(f, "total: {}", mb(self.total))?;
        writeln!(
            f,
            "block cache: {}; a MB more saves {:.1} us/s, a MB less costs {:.1}",
            mb(self.cache),
            worth.gain,
            worth.loss
        )?;
        writeln!(
            f,
            "memtables: {}, in use {}; a MB more saves {:.1} us/s",
            mb(self.memtables),
            mb(self.memtables_used),
            self.memtables_worth
        )?;
        writeln!(
            f,
            "others: {}, of that open tables {}",
            mb(self.others),
            mb(self.readers)
        )?;
        writeln!(
            f,
            "a miss takes {:.1} us; {:.1} % of the entries are overwritten in memory",
            self.miss_us,
            100.0 * self.overwritten
        )?;
        let mut last = String::from("nothing was decided yet");
        if let Some(decision) = &self.last {
            last = decision.to_string();
        }
        writeln!(f, "looks: {}; the last: {last}", self.looks)?;
        let mut lines = String::new();
        for (at_us, decision) in &self.moves {
            // Writing to a string cannot fail.
            let (seconds, ms) = (at_us / 1_000_000, at_us / 1000 % 1000);
            let _ = writeln!(lines, "moved at {seconds}.{ms:03} s: {decision}");
        }
        f.write_str(&lines)
    }
}

impl std::fmt::Display for BudgetDecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to.filter(|_| self.bytes > 0) {
            Some(to) => write!(f, "{} to the {to}: {}", mb(self.bytes), self.reason),
            None => write!(f, "all stays: {}", self.reason),
        }
    }
}

#[cfg(test)]
mod tests;
