//! The cache itself: shards of either kind, limits and the sums over them.

use crate::CacheKey;
use crate::clock::ClockShard;
use crate::entry::{Entry, Glimpse, GlimpseSource, Pinned, Priority, RemovedEntries};
use crate::flights::{Flight, PendingReads};
use crate::ghost::{Ghost, GhostCurve};
use crate::options::{CacheFull, CacheKind, CacheOptions};
use crate::shard::Shard;
use crate::stats::{CacheEntry, CacheStats};
use crate::sync::{AtomicUsize, Mutex, Ordering};
use crate::tier::{Tier, TierUsage};
use esker_sync::{CachePadded, Rank};
use std::fmt;

type LockedShard<V> = CachePadded<Mutex<Shard<V>>>;

enum Shards<V> {
    Lru(Box<[LockedShard<V>]>),
    Clock(Box<[ClockShard<V>]>),
}

/// Evaluates `$body` for each shard, locked or not as its kind has it.
macro_rules! for_each_shard {
    ($cache:expr, $shard:ident, $body:expr) => {
        match &$cache.shards {
            Shards::Lru(shards) => {
                for shard in shards {
                    let mut locked = shard.lock();
                    let $shard = &mut *locked;
                    $body;
                }
            }
            Shards::Clock(shards) => {
                for $shard in shards {
                    $body;
                }
            }
        }
    };
}

/// A sharded cache. See the crate's head for the idea.
pub struct Cache<V> {
    shards: Shards<V>,
    /// The limits in force; held while they are handed to the shards, so that two changes do not
    /// mix.
    options: Mutex<CacheOptions>,
    /// Bytes of the capacity that are used for something else.
    reserved: AtomicUsize,
    /// Most bytes that entries may take, below the capacity.
    bound: AtomicUsize,
    /// Charge of an entry beside its value.
    metadata: usize,
    flights: PendingReads,
    ghost: Ghost,
    tier: Option<Box<dyn Tier<V>>>,
}

impl<V> fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("kind", &self.options().kind.name())
            .field("capacity", &self.options().capacity)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

/// Buckets of a growing table, at first.
const BUCKETS: usize = if cfg!(loom) { 1 } else { 8 };
/// A charge below this is not believed: the table would be larger than what it is for.
const ESTIMATED_CHARGE_MIN: usize = 64;

impl<V> Shards<V> {
    fn new(options: &CacheOptions) -> Self {
        let number = 1usize << options.shard_bits();
        let charges = options.charge_metadata;
        let charge = match options.kind {
            CacheKind::Lru => {
                let shard = || CachePadded::new(Mutex::new(Rank::LEAF, Shard::new()));
                return Shards::Lru((0..number).map(|_| shard()).collect());
            }
            CacheKind::HyperClock {
                estimated_entry_charge,
            } => estimated_entry_charge,
        };
        let (buckets, grows) = match charge {
            0 => (BUCKETS, true),
            n => {
                let entries = options.capacity / n.max(ESTIMATED_CHARGE_MIN) / number;
                // Seven slots each, of which five are used.
                (entries / 5 + 1, false)
            }
        };
        let shard = || ClockShard::new(buckets, grows, charges);
        Shards::Clock((0..number).map(|_| shard()).collect())
    }

    /// Memory that a shard of this kind takes for an entry, in its allocation and, where that does
    /// not depend on the table, beside it.
    fn metadata(&self) -> usize {
        match self {
            Shards::Lru(_) => Entry::<V>::metadata() + Shard::<V>::bytes_per_entry(),
            Shards::Clock(_) => Entry::<V>::metadata(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Shards::Lru(shards) => shards.len(),
            Shards::Clock(shards) => shards.len(),
        }
    }
}

/// The shard of a hash: tables use its lowest and highest bits, shards some from the middle.
#[inline]
fn of_hash<S>(shards: &[S], hash: u64) -> &S {
    &shards[(hash >> 32) as usize & (shards.len() - 1)]
}

impl<V> Cache<V> {
    const OPTIONS_RANK: Rank = Rank::new(u16::MAX - 1, "cache options");

    /// An empty cache.
    pub fn new(options: CacheOptions) -> Self {
        Self::build(options, None)
    }

    /// An empty cache before a second tier.
    pub fn with_tier(options: CacheOptions, tier: Box<dyn Tier<V>>) -> Self {
        Self::build(options, Some(tier))
    }

    fn build(options: CacheOptions, tier: Option<Box<dyn Tier<V>>>) -> Self {
        let shards = Shards::new(&options);
        let metadata = if options.charge_metadata {
            shards.metadata()
        } else {
            0
        };
        let cache = Cache {
            shards,
            metadata,
            options: Mutex::new(Self::OPTIONS_RANK, options),
            reserved: AtomicUsize::new(0),
            bound: AtomicUsize::new(usize::MAX),
            flights: PendingReads::new(),
            ghost: Ghost::new(),
            tier,
        };
        cache.reconfigure(|_| {});
        cache
    }

    /// The value, which becomes recent; `None` when absent. In a clock this takes no lock, and
    /// another thread that adds or removes entries may let it miss one that is there.
    #[inline]
    pub fn lookup(&self, key: CacheKey) -> Option<Pinned<V>> {
        let hash = key.hash();
        let found = match &self.shards {
            Shards::Lru(shards) => of_hash(shards, hash).lock().lookup(key, hash),
            Shards::Clock(shards) => of_hash(shards, hash).lookup(key, hash),
        };
        if self.ghost.has(hash)
            && let Some(held) = &found
        {
            self.ghost.used(hash, held.0.charge);
        }
        found
    }

    /// As [`Cache::lookup`], for a look within one read: a clock then writes to no line that
    /// threads share.
    #[inline]
    pub fn glimpse(&self, key: CacheKey) -> Option<Glimpse<V>> {
        let hash = key.hash();
        let found = match &self.shards {
            Shards::Lru(shards) => (of_hash(shards, hash).lock().lookup(key, hash))
                .map(|held| Glimpse(GlimpseSource::Pinned(held))),
            Shards::Clock(shards) => of_hash(shards, hash).glimpse(key, hash),
        };
        if self.ghost.has(hash)
            && let Some(seen) = &found
        {
            self.ghost.used(hash, seen.charge());
        }
        found
    }

    /// The value without counting as a use.
    pub fn peek(&self, key: CacheKey) -> Option<Pinned<V>> {
        let hash = key.hash();
        match &self.shards {
            Shards::Lru(shards) => of_hash(shards, hash).lock().peek(key, hash),
            Shards::Clock(shards) => of_hash(shards, hash).peek(key, hash),
        }
    }

    /// For a thread that missed `key`: the right to read its value and to insert it, or `None`
    /// after waiting for another thread that had it. Then look again; that thread may have failed.
    pub fn begin_read(&self, key: CacheKey) -> Option<Flight<'_>> {
        let hash = key.hash();
        let flight = self.flights.begin(key, hash)?;
        Some(flight.timed(&self.ghost, self.ghost.begin_read(hash)))
    }

    /// Adds `value`, displacing an entry of the same key and evicting what has to go. `charge` is
    /// the memory of the value, its own size included; what the cache takes beside it is added
    /// where [`CacheOptions::charge_metadata`] says so.
    ///
    /// A value larger than its shard is not kept, which is no error unless the limit is strict.
    pub fn insert(
        &self,
        key: CacheKey,
        value: V,
        charge: usize,
        priority: Priority,
    ) -> Result<Pinned<V>, CacheFull> {
        let hash = key.hash();
        let charge = charge + self.metadata;
        let held = Pinned::new(key, value, charge, priority);
        if self.ghost.has(hash) {
            self.ghost.used(hash, charge);
        }
        let mut removed = match self.tier {
            Some(_) => RemovedEntries::for_tier(),
            None => RemovedEntries::new(),
        };
        let kept = match &self.shards {
            Shards::Lru(shards) => (of_hash(shards, hash).lock()).insert(&held, hash, &mut removed),
            Shards::Clock(shards) => of_hash(shards, hash).insert(&held, hash, &mut removed),
        };
        if let Some(tier) = &self.tier {
            for left in removed.used() {
                tier.offer(left.0.key, left);
            }
        }
        if kept { Ok(held) } else { Err(CacheFull) }
    }

    /// The value from the second tier, for a thread that missed it; with `take` it leaves the
    /// tier, and [`Cache::insert_again`] brings it back.
    pub fn recall(&self, key: CacheKey, take: bool) -> Option<V> {
        self.tier.as_ref()?.recall(key, take)
    }

    /// As [`Cache::insert`], for a value that has been used before.
    pub fn insert_again(
        &self,
        key: CacheKey,
        value: V,
        charge: usize,
        priority: Priority,
    ) -> Result<Pinned<V>, CacheFull> {
        let held = self.insert(key, value, charge, priority)?;
        match &self.shards {
            Shards::Lru(shards) => {
                let hash = key.hash();
                drop(of_hash(shards, hash).lock().lookup(key, hash));
            }
            Shards::Clock(_) => held.0.note_use(),
        }
        Ok(held)
    }

    /// Usage of the second tier; `None` without one.
    pub fn tier_usage(&self) -> Option<TierUsage> {
        self.tier.as_ref().map(|tier| tier.usage())
    }

    /// Returns whether [`Cache::insert_if_room`] would take a value of this charge.
    pub fn has_room(&self, key: CacheKey, charge: usize) -> bool {
        let hash = key.hash();
        let charge = charge + self.metadata;
        match &self.shards {
            Shards::Lru(shards) => of_hash(shards, hash).lock().has_room(key, hash, charge),
            Shards::Clock(shards) => of_hash(shards, hash).has_room(key, hash, charge),
        }
    }

    /// Adds `value` as [`Cache::insert`] does, unless an entry would have to leave for it or one of
    /// its key is there; whether it was added. It does not count as a use.
    pub fn insert_if_room(
        &self,
        key: CacheKey,
        value: V,
        charge: usize,
        priority: Priority,
    ) -> bool {
        let hash = key.hash();
        let held = Pinned::new(key, value, charge + self.metadata, priority);
        match &self.shards {
            Shards::Lru(shards) => (of_hash(shards, hash).lock()).insert_if_room(&held, hash),
            Shards::Clock(shards) => of_hash(shards, hash).insert_if_room(&held, hash),
        }
    }

    /// Removes an entry, and what the second tier has of it; whether there was one.
    pub fn erase(&self, key: CacheKey) -> bool {
        if let Some(tier) = &self.tier {
            tier.erase(key);
        }
        let hash = key.hash();
        let mut removed = RemovedEntries::new();
        match &self.shards {
            Shards::Lru(shards) => of_hash(shards, hash).lock().erase(key, hash, &mut removed),
            Shards::Clock(shards) => of_hash(shards, hash).erase(key, hash, &mut removed),
        }
    }

    /// Removes the entries for which `keep` is false, shard by shard.
    pub fn retain(&self, mut keep: impl FnMut(CacheEntry<'_, V>) -> bool) {
        // Those of all shards are dropped at the end, under no lock.
        let mut removed = RemovedEntries::new();
        for_each_shard!(self, shard, shard.retain(&mut keep, &mut removed));
    }

    /// Removes every entry that is not held, and all of the second tier.
    pub fn erase_unpinned(&self) {
        if let Some(tier) = &self.tier {
            tier.clear();
        }
        self.retain(|e| e.pinned);
    }

    /// Shows every entry to `visit`, shard by shard, each under its shard's lock: keep it short,
    /// and do not call the cache from it.
    pub fn for_each(&self, mut visit: impl FnMut(CacheEntry<'_, V>)) {
        for_each_shard!(self, shard, shard.for_each(&mut visit));
    }

    /// Changes the limits (the number of shards stays); entries that no longer fit leave.
    fn reconfigure(&self, change: impl FnOnce(&mut CacheOptions)) {
        let mut removed = RemovedEntries::new();
        let mut options = self.options.lock();
        change(&mut options);
        let left = options
            .capacity
            .min(self.bound())
            .saturating_sub(self.reserved.load(Ordering::Relaxed));
        let per_shard = left.div_ceil(self.shards.len());
        let strict = options.strict_capacity_limit;
        let (low, high) = (options.low_pri_pool_ratio, options.high_pri_pool_ratio);
        match &self.shards {
            Shards::Lru(shards) => {
                for shard in shards {
                    (shard.lock()).configure(per_shard, strict, low, high, &mut removed);
                }
            }
            Shards::Clock(shards) => {
                for shard in shards {
                    shard.configure(per_shard, strict, &mut removed);
                }
            }
        }
        drop(options);
    }

    /// Sets [`CacheOptions::capacity`].
    pub fn set_capacity(&self, capacity: usize) {
        self.reconfigure(|o| o.capacity = capacity);
    }

    /// Has the cache hold `bytes` at most, however large its capacity is, which stays as it is;
    /// `usize::MAX` for no bound. Entries that no longer fit leave.
    pub fn set_bound(&self, bytes: usize) {
        if self.bound.swap(bytes, Ordering::Relaxed) != bytes {
            self.reconfigure(|_| {});
        }
    }

    /// The bound of [`Cache::set_bound`].
    pub fn bound(&self) -> usize {
        self.bound.load(Ordering::Relaxed)
    }

    /// Takes `bytes` of the capacity for something else, in place of the `before` that the caller
    /// took earlier; entries that no longer fit leave. What is taken counts as used and held.
    pub fn reserve(&self, bytes: usize, before: usize) {
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        self.reserved.fetch_sub(before, Ordering::Relaxed);
        self.reconfigure(|_| {});
    }

    /// Sets [`CacheOptions::strict_capacity_limit`].
    pub fn set_strict_capacity_limit(&self, strict: bool) {
        self.reconfigure(|o| o.strict_capacity_limit = strict);
    }

    /// Sets [`CacheOptions::high_pri_pool_ratio`].
    pub fn set_high_pri_pool_ratio(&self, ratio: f64) {
        self.reconfigure(|o| o.high_pri_pool_ratio = ratio);
    }

    /// The limits in force.
    pub fn options(&self) -> CacheOptions {
        *self.options.lock()
    }

    /// Most bytes charged.
    pub fn capacity(&self) -> usize {
        self.options().capacity
    }

    /// Bytes charged now: for values, for what is reserved and, where metadata are charged, for
    /// what the cache takes beside the values.
    pub fn usage(&self) -> usize {
        let mut sum = self.reserved.load(Ordering::Relaxed);
        for_each_shard!(self, shard, sum += shard.usage());
        sum
    }

    /// Bytes that the cache itself takes: its shards and their tables, whatever they hold.
    pub fn overhead(&self) -> usize {
        let mut sum = self.ghost.memory();
        sum += match &self.shards {
            Shards::Lru(shards) => size_of_val(&**shards),
            Shards::Clock(shards) => size_of_val(&**shards),
        };
        for_each_shard!(self, shard, sum += shard.overhead());
        sum
    }

    /// Bytes that are taken for something else.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Bytes that the cache, all entries and the second tier take now, whatever is charged;
    /// `memory_of` says what a value takes, its own size included. Walks all entries: for reports.
    pub fn memory(&self, memory_of: impl Fn(&V) -> usize) -> usize {
        let mut sum = self.overhead();
        sum += self.tier.as_ref().map_or(0, |tier| tier.memory());
        let metadata = Entry::<V>::metadata();
        self.for_each(|e| sum += memory_of(e.value) + metadata);
        sum
    }

    /// Begins to count what caches of other capacities, up to `most` bytes, would hit; a second
    /// call begins anew. `now_ns` is a clock in nanoseconds; the first one stays.
    pub fn watch(&self, most: usize, now_ns: impl Fn() -> u64 + Send + Sync + 'static) {
        self.ghost.watch(most, Box::new(now_ns));
    }

    /// Returns whether the uses of this key are counted, which stand for those of many others.
    pub fn is_watched(&self, key: CacheKey) -> bool {
        self.ghost.has(key.hash())
    }

    /// Takes the curve counted since the last call; `None` before [`Cache::watch`].
    pub fn take_ghost_curve(&self) -> Option<GhostCurve> {
        self.ghost.take_curve()
    }

    /// Bytes charged for entries that somebody holds. Walks all entries: for reports.
    pub fn pinned_usage(&self) -> usize {
        let mut sum = self.reserved.load(Ordering::Relaxed);
        self.for_each(|e| sum += if e.pinned { e.charge } else { 0 });
        sum
    }

    /// The number of shards.
    pub fn num_shards(&self) -> usize {
        self.shards.len()
    }

    /// Places for entries in the tables.
    pub fn table_slots(&self) -> usize {
        let mut sum = 0;
        for_each_shard!(self, shard, sum += shard.slots());
        sum
    }

    /// Counters, summed over the shards.
    pub fn stats(&self) -> CacheStats {
        let mut sum = CacheStats::default();
        for_each_shard!(self, shard, sum.add(&shard.stats()));
        sum
    }
}
