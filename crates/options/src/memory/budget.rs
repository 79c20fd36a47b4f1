//! One number for the memory of databases: block cache, memtables, and what else is counted.
//!
//! ```text
//! total = block caches + memtables' share + others
//! ```
//!
//! Others are what open tables hold, and the tables of the caches themselves. The block caches have
//! what the rest leaves: that of the budget, for families without one of their own, and those that
//! the application made. Each has an equal part, one of the application's at most its capacity,
//! which it goes on to report; what one leaves goes to the others. A cache with a strict limit
//! fails reads where it is full, so it keeps its capacity and counts among the others. Memtables
//! that take more than their share for a moment, because flushes are behind, take it from the
//! caches as well, so the sum stays within the number. Where the caches have nothing left, writers
//! of a process's budget wait for flushes. Blocks that readers hold may exceed it.
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
use esker_env::FILE_BUFFERS;
use esker_files::table::{BlockCache, TABLE_BUILDERS};
use esker_format::batch::large_batch_bytes;
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
/// Between two reads of the source of the total.
const SOURCE_INTERVAL_US: u64 = 60_000_000;
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
    /// It is the budget of all databases of the process: what only the process counts is part of
    /// it, such as buffers of files, tables that are being written, and large batches.
    pub is_of_process: bool,
    /// The number that `total` follows, which is read again once a minute.
    pub source: Option<Arc<dyn BudgetSource>>,
}

/// A number outside of the program, such as a part of what its container may use.
pub trait BudgetSource: std::fmt::Debug + Send + Sync {
    /// Reads the number, in bytes; `None` where it cannot be read, and the last one stays.
    fn total(&self) -> Option<usize>;
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
            is_of_process: false,
            source: None,
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
    /// Most bytes of the block caches together.
    pub cache: usize,
    /// Of that, what the caches of the application may have.
    pub given: usize,
    /// The share of the memtables.
    pub memtables: usize,
    /// Memory of memtables at the last measurement.
    pub memtables_used: usize,
    /// Memory of everything else at the last look.
    pub others: usize,
    /// Of that, what open tables hold.
    pub readers: usize,
    /// Bytes that the block caches had above theirs at the last look: blocks that readers hold.
    pub exceeded: usize,
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
    /// The caches of the application that are bounded.
    given: Vec<Weak<BlockCache>>,
    /// A family uses the budget's own cache.
    is_own_used: bool,
}

impl SharedState {
    /// Returns the number of caches that share.
    fn sharers(&self) -> usize {
        (self.given.len() + usize::from(self.is_own_used)).max(1)
    }

    /// Prices `bytes` of the caches together.
    fn price_of_caches(&self, bytes: usize) -> BudgetSlopes {
        // A megabyte more is one part of it for each cache, and curves were added up.
        let sharers = self.sharers();
        let mut worth = self.load.of_cache(bytes / sharers);
        worth.gain /= sharers as f64;
        worth.loss /= sharers as f64;
        worth
    }
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
    total: AtomicUsize,
    /// When the source is read next.
    source_due_us: AtomicU64,
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
            self.fit(&mut self.state.lock());
        }
    }
}

impl MemoryBudget {
    /// A budget without members.
    pub fn new(options: MemoryBudgetOptions) -> Arc<Self> {
        let total = options.total;
        let cache = match options.cache_percent.min(100) {
            0 => total - (total / 2).min(2 * LARGE_MEMTABLE),
            percent => usize::try_from(total as u128 * u128::from(percent) / 100).unwrap_or(total),
        };
        let (cache_min, memtables_min) = options.minimums(total);
        let cache = cache.max(cache_min).min(total - memtables_min);
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
                buffers: WriteBufferManager::of_budget(
                    shown.memtables,
                    this.clone() as _,
                    options.is_of_process,
                ),
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
                total: AtomicUsize::new(total),
                source_due_us: AtomicU64::new(0),
                options,
            }
        })
    }

    /// All memory, in bytes.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Changes the number. Both sides keep their parts of it.
    pub fn set_total(&self, total: usize) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let before = state.shown.total;
        if before == total {
            return;
        }
        self.total.store(total, Ordering::Relaxed);
        state.shown.total = total;
        let share = state.shown.memtables as f64 * (total as f64 / before.max(1) as f64);
        let (cache_min, memtables_min) = self.options.minimums(total);
        state.shown.memtables = (share as usize).clamp(memtables_min, total - cache_min);
        self.buffers.set_limit(state.shown.memtables);
        self.fit(state);
        self.watch(&self.cache);
        for cache in state.given.iter().filter_map(Weak::upgrade) {
            self.watch(&cache);
        }
        drop(guard);
        self.buffers.relieve();
        self.buffers.notify_members();
    }

    /// Begins to count what `cache` would hit with other capacities.
    fn watch(&self, cache: &BlockCache) {
        if let Some(clock) = self.clock.get() {
            let clock = Arc::clone(clock);
            cache.watch(self.total(), move || clock.now_ns());
        }
    }

    /// Reads the source of the total, when it is time to.
    fn follow_source(&self, now_us: u64) {
        let Some(source) = &self.options.source else {
            return;
        };
        if now_us < self.source_due_us.load(Ordering::Relaxed) {
            return;
        }
        let next = now_us + SOURCE_INTERVAL_US;
        self.source_due_us.store(next, Ordering::Relaxed);
        if let Some(total) = source.total() {
            self.set_total(total);
        }
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
        if self.clock.set(Arc::clone(clock)).is_ok() {
            self.watch(&self.cache);
            let next = clock.now_us() + SOURCE_INTERVAL_US;
            self.source_due_us.store(next, Ordering::Relaxed);
        }
        let reading = member.upgrade().map(|m| m.measure());
        let reading = reading.unwrap_or_default();
        self.admit_caches(&reading);
        let joined = BudgetEntry {
            member,
            before: Mutex::new(Rank::LEAF, reading.work),
        };
        let mut members = self.members.lock();
        members.retain(|m| m.member.strong_count() > 0);
        members.push(Arc::new(joined));
    }

    /// Bounds the cache of a new family of a member.
    pub fn admit(&self, cache: Arc<BlockCache>) {
        self.admit_caches(&MemberReading {
            caches: vec![cache],
            ..MemberReading::default()
        });
    }

    /// Bounds caches before they are used: they could outgrow the total before the next look.
    fn admit_caches(&self, reading: &MemberReading) {
        let mut sums = Sums::default();
        sums.add(reading, &self.cache);
        let mut guard = self.state.lock();
        let state = &mut *guard;
        self.add_given(state, &sums);
        state.is_own_used |= sums.is_own_used;
        self.fit(state);
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
        self.follow_source(now);
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
        let mut sums = Sums::default();
        for (_, reading) in &readings {
            sums.add(reading, &self.cache);
        }
        let caches = || sums.given.iter().chain([&self.cache]);
        let curves: Vec<_> = caches().filter_map(|c| c.take_ghost_curve()).collect();
        let overhead: usize = caches().map(|c| c.overhead()).sum();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let seconds = match state.at_us.replace(now) {
            Some(before) => now.saturating_sub(before) as f64 / 1e6,
            None => 0.0,
        };
        let half_life = self.interval_us.load(Ordering::Relaxed) as f64 * 2.0 / 1e6;
        state.load.pass(seconds, half_life);
        for curve in curves.iter().filter(|_| seconds > 0.0) {
            state.load.add_curve(curve);
        }
        for (joined, reading) in &readings {
            let before = std::mem::replace(&mut *joined.before.lock(), reading.work);
            state.load.add_work(&reading.work, &before);
        }
        self.note_caches(state, &sums);
        state.shown.readers = sums.readers;
        state.shown.others = overhead + sums.strict;
        if self.options.is_of_process {
            let buffers = FILE_BUFFERS.get() + TABLE_BUILDERS.get();
            state.shown.others += buffers + large_batch_bytes();
        }
        let in_caches: usize = caches().map(|c| c.usage()).sum();
        state.shown.exceeded = in_caches.saturating_sub(state.shown.cache);
        if !seeded(Bug::BudgetForgetsReaders) {
            state.shown.others += sums.readers;
        }
        if seeded(Bug::BudgetCountsTwice) {
            state.shown.others += sums.readers;
        }
        // What others took is gone from the cache before the split is looked at.
        self.fit(state);
        let decision = self.decide(state, sums.table_bytes);
        self.carry_out(state, now, &decision);
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
        state.shown.looks += 1;
        let (total, share) = (state.shown.total, state.shown.memtables);
        // What memtables have beyond their share for a moment is no part of the split.
        let cache = total.saturating_sub(state.shown.others + share);
        state.shown.cache_worth = state.price_of_caches(cache);
        state.shown.memtables_worth = (state.load).of_memtables(table_bytes, share / 2, share);
        state.shown.miss_us = state.load.miss_us();
        state.shown.overwritten = state.load.overwritten();
        if self.options.is_fixed {
            return BudgetDecision::stays(None, BudgetReason::Fixed);
        }
        let (cache_min, memtables_min) = self.options.minimums(total);
        let now = ControllerInput {
            total,
            cache,
            memtables: share,
            cache_min,
            memtables_min,
            cache_worth: state.shown.cache_worth,
            memtables_worth: state.shown.memtables_worth,
        };
        let mut controller = std::mem::take(&mut state.controller);
        let prices = MemoryValues {
            cache: &|bytes| state.price_of_caches(bytes),
            memtables: &|share| state.load.of_memtables(table_bytes, share / 2, share),
        };
        let decision = controller.decide(&now, &prices);
        state.controller = controller;
        decision
    }

    /// Adds the caches of the application that are new.
    fn add_given(&self, state: &mut SharedState, sums: &Sums) {
        for cache in &sums.given {
            let is_same = |known: &Weak<BlockCache>| known.as_ptr() == Arc::as_ptr(cache);
            if !state.given.iter().any(is_same) {
                self.watch(cache);
                state.given.push(Arc::downgrade(cache));
            }
        }
    }

    /// Takes over which caches of the application share, and lets those go that no family uses.
    fn note_caches(&self, state: &mut SharedState, sums: &Sums) {
        for cache in state.given.iter().filter_map(Weak::upgrade) {
            if !sums.given.iter().any(|c| Arc::ptr_eq(c, &cache)) {
                cache.set_bound(usize::MAX);
            }
        }
        self.add_given(state, sums);
        state.given = sums.given.iter().map(Arc::downgrade).collect();
        state.is_own_used = sums.is_own_used;
    }

    fn carry_out(&self, state: &mut SharedState, now_us: u64, decision: &BudgetDecision) {
        let shown = &mut state.shown;
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
        self.fit(state);
    }

    /// Gives the block caches what the rest leaves.
    fn fit(&self, state: &mut SharedState) {
        let shown = &mut state.shown;
        let used = self.memtables_used.load(Ordering::Relaxed);
        let memtables = if used > shown.memtables {
            used.div_ceil(STEP) * STEP
        } else {
            shown.memtables
        };
        let rest = shown.others + memtables;
        // Where the caches have nothing left, writers wait for flushes.
        let (cache_min, memtables_min) = self.options.minimums(shown.total);
        let most = shown.total.saturating_sub(shown.others + cache_min);
        self.buffers.set_stall_size(most.max(memtables_min));
        shown.cache = shown.total.saturating_sub(rest);
        let given: Vec<_> = state.given.iter().filter_map(Weak::upgrade).collect();
        let own = share_out(shown.cache, given, state.is_own_used);
        shown.given = shown.cache - own;
        if self.cache.capacity() != own {
            self.cache.set_capacity(own);
        }
    }

    /// The budget as text: shares, benefits, the last decision and the last moves.
    pub fn describe(&self) -> String {
        self.state().to_string()
    }
}

impl MemoryBudgetOptions {
    /// Returns the least of the block caches and of the memtables, where all is `total`.
    fn minimums(&self, total: usize) -> (usize, usize) {
        let least = |given: usize| match given {
            0 => total / MINIMUM_PART,
            given => given.min(total / 2),
        };
        (least(self.cache_min), least(self.memtables_min))
    }
}

impl Drop for MemoryBudget {
    fn drop(&mut self) {
        for cache in self.state.lock().given.iter().filter_map(Weak::upgrade) {
            cache.set_bound(usize::MAX);
        }
    }
}

/// Bounds each of the `given` caches by an equal part of `bytes`, at most its capacity, and returns
/// what is left for the budget's own, which has a part where it is used.
fn share_out(bytes: usize, mut given: Vec<Arc<BlockCache>>, is_own_used: bool) -> usize {
    given.sort_by_cached_key(|cache| cache.capacity());
    let mut left = bytes;
    let mut sharers = given.len() + usize::from(is_own_used);
    for cache in given {
        let part = (left / sharers).min(cache.capacity());
        cache.set_bound(part);
        left -= part;
        sharers -= 1;
    }
    left
}

/// Memory of all members together.
#[derive(Default)]
struct Sums {
    table_bytes: u64,
    readers: usize,
    /// A family uses the budget's cache.
    is_own_used: bool,
    /// The caches of the application that can be bounded.
    given: Vec<Arc<BlockCache>>,
    /// Bytes of its other caches.
    strict: usize,
    counted: Vec<Arc<BlockCache>>,
}

impl Sums {
    fn add(&mut self, reading: &MemberReading, own: &Arc<BlockCache>) {
        self.table_bytes += reading.table_bytes;
        self.readers += reading.readers;
        for cache in &reading.caches {
            if Arc::ptr_eq(cache, own) {
                self.is_own_used = true;
                continue;
            }
            if self.counted.iter().any(|c| Arc::ptr_eq(c, cache)) {
                continue;
            }
            if cache.options().strict_capacity_limit {
                self.strict += cache.usage() + cache.overhead();
            } else {
                self.given.push(Arc::clone(cache));
            }
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
            "block caches: {}, of that the application's {}; a MB more saves {:.1} us/s, a MB less costs {:.1}",
            mb(self.cache),
            mb(self.given),
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
            "others: {}, of that open tables {}; blocks that readers hold exceed it by {}",
            mb(self.others),
            mb(self.readers),
            mb(self.exceeded)
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
