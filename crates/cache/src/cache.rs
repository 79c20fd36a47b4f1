//! The cache itself: shards, limits and the sums over them.

use crate::CacheKey;
use crate::shard::{CacheEntry, CacheStats, Priority, Removed, Shard};
use esker_sync::atomic::{AtomicUsize, Ordering};
use esker_sync::{Arc, CachePadded, Mutex, Rank};
use std::fmt;

/// For [`CacheOptions::num_shard_bits`]: chosen from the capacity.
pub const DEFAULT_SHARD_BITS: i32 = -1;

/// A shard is not made smaller than this when the number of shards is ours to choose.
const SHARD_BYTES_MIN: usize = 512 << 10;
const DEFAULT_SHARD_BITS_MAX: u32 = 6;
const SHARD_BITS_MAX: u32 = 19;

/// The limits of a [`Cache`], under RocksDB's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheOptions {
    /// Most bytes charged, over all shards.
    pub capacity: usize,
    /// Two to this power shards; negative: one per 512 KB of capacity, at most 64.
    pub num_shard_bits: i32,
    /// Refuse an insert that does not fit, instead of going over the capacity while entries are
    /// pinned.
    pub strict_capacity_limit: bool,
    /// Share of the capacity kept for entries of high priority or with a hit; 0 switches the pool
    /// off.
    pub high_pri_pool_ratio: f64,
    /// Share of the capacity kept for entries of low priority over those of bottom priority.
    pub low_pri_pool_ratio: f64,
}

impl Default for CacheOptions {
    fn default() -> Self {
        CacheOptions {
            capacity: 32 << 20,
            num_shard_bits: DEFAULT_SHARD_BITS,
            strict_capacity_limit: false,
            high_pri_pool_ratio: 0.5,
            low_pri_pool_ratio: 0.0,
        }
    }
}

impl CacheOptions {
    /// The defaults with this capacity.
    pub fn with_capacity(capacity: usize) -> Self {
        CacheOptions {
            capacity,
            ..Self::default()
        }
    }

    fn shard_bits(&self) -> u32 {
        match u32::try_from(self.num_shard_bits) {
            Ok(bits) => bits.min(SHARD_BITS_MAX),
            Err(_) => (self.capacity / SHARD_BYTES_MIN)
                .checked_ilog2()
                .unwrap_or(0)
                .min(DEFAULT_SHARD_BITS_MAX),
        }
    }
}

/// An insert did not fit and the limit is strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheFull;

impl fmt::Display for CacheFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("insert failed because the cache is full (strict_capacity_limit)")
    }
}

impl std::error::Error for CacheFull {}

/// A sharded LRU cache. See the crate's head for the idea.
pub struct Cache<V> {
    shards: Box<[CachePadded<Mutex<Shard<V>>>]>,
    /// The limits in force; held while they are handed to the shards, so that two changes do not
    /// mix.
    options: Mutex<CacheOptions>,
    /// Bytes of the capacity that are used for something else.
    reserved: AtomicUsize,
}

impl<V> fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("options", &self.options())
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

impl<V> Cache<V> {
    const OPTIONS_RANK: Rank = Rank::new(u16::MAX - 1, "cache options");

    /// An empty cache.
    pub fn new(options: CacheOptions) -> Self {
        let shards = (0..1usize << options.shard_bits())
            .map(|_| CachePadded::new(Mutex::new(Rank::LEAF, Shard::new())))
            .collect();
        let cache = Cache {
            shards,
            options: Mutex::new(Self::OPTIONS_RANK, options),
            reserved: AtomicUsize::new(0),
        };
        cache.reconfigure(|_| {});
        cache
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Mutex<Shard<V>> {
        // The table uses the lowest and highest bits: the shard takes some from the middle.
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)]
    }

    /// The value, which becomes recent; `None` when absent.
    #[inline]
    pub fn lookup(&self, key: CacheKey) -> Option<Arc<V>> {
        let hash = key.hash();
        self.shard(hash).lock().lookup(key, hash)
    }

    /// The value without counting as a use.
    pub fn peek(&self, key: CacheKey) -> Option<Arc<V>> {
        let hash = key.hash();
        self.shard(hash).lock().peek(key, hash)
    }

    /// Adds `value`, displacing an entry of the same key and evicting what has to go.
    ///
    /// A value larger than its shard is not kept, which is no error unless the limit is strict.
    pub fn insert(
        &self,
        key: CacheKey,
        value: &Arc<V>,
        charge: usize,
        priority: Priority,
    ) -> Result<(), CacheFull> {
        let hash = key.hash();
        let mut removed = Removed::new();
        let kept = self
            .shard(hash)
            .lock()
            .insert(key, hash, value, charge, priority, &mut removed);
        if kept { Ok(()) } else { Err(CacheFull) }
    }

    /// Removes an entry; whether there was one.
    pub fn erase(&self, key: CacheKey) -> bool {
        let hash = key.hash();
        let mut removed = Removed::new();
        self.shard(hash).lock().erase(key, hash, &mut removed)
    }

    /// Removes the entries for which `keep` is false, shard by shard.
    pub fn retain(&self, mut keep: impl FnMut(CacheEntry<'_, V>) -> bool) {
        for shard in &self.shards {
            let mut removed = Removed::new();
            shard.lock().retain(&mut keep, &mut removed);
        }
    }

    /// Removes every entry that is not held.
    pub fn erase_unpinned(&self) {
        self.retain(|e| e.pinned);
    }

    /// Shows every entry to `visit`, shard by shard, each under its shard's lock: keep it short,
    /// and do not call the cache from it.
    pub fn for_each(&self, mut visit: impl FnMut(CacheEntry<'_, V>)) {
        for shard in &self.shards {
            shard.lock().for_each(&mut visit);
        }
    }

    /// Changes the limits (the number of shards stays); entries that no longer fit leave.
    fn reconfigure(&self, change: impl FnOnce(&mut CacheOptions)) {
        let mut options = self.options.lock();
        change(&mut options);
        let left = options
            .capacity
            .saturating_sub(self.reserved.load(Ordering::Relaxed));
        let per_shard = left.div_ceil(self.shards.len());
        let (low, high) = (options.low_pri_pool_ratio, options.high_pri_pool_ratio);
        for shard in &self.shards {
            let mut removed = Removed::new();
            shard.lock().configure(
                per_shard,
                options.strict_capacity_limit,
                low,
                high,
                &mut removed,
            );
        }
    }

    /// Sets [`CacheOptions::capacity`].
    pub fn set_capacity(&self, capacity: usize) {
        self.reconfigure(|o| o.capacity = capacity);
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

    /// Bytes charged now.
    pub fn usage(&self) -> usize {
        let entries: usize = self.shards.iter().map(|s| s.lock().usage()).sum();
        entries + self.reserved.load(Ordering::Relaxed)
    }

    /// Bytes that the cache itself takes: its shards and their tables, whatever they hold.
    pub fn overhead(&self) -> usize {
        let fixed = size_of_val(&*self.shards);
        let tables: usize = self.shards.iter().map(|s| s.lock().overhead()).sum();
        fixed + tables
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

    /// Counters, summed over the shards.
    pub fn stats(&self) -> CacheStats {
        let mut sum = CacheStats::default();
        for shard in &self.shards {
            sum.add(&shard.lock().stats());
        }
        sum
    }
}
