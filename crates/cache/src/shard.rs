//! One shard of the LRU cache: a hash table over a slab of entries, and three recency lists, the
//! pools.
//!
//! The pools follow RocksDB: an entry goes to the high pool when that pool exists and the entry is
//! of high priority or has been hit; else to the low pool when that exists and the entry is not of
//! bottom priority (or has been hit); else to the bottom pool. A pool over its share passes its
//! oldest entries to the recent end of the pool below. Eviction takes the oldest of the lowest pool
//! that is not pinned.
//!
//! Invariant: `usage` is the sum of the charges of all entries, which is the sum over the three
//! lists. Nothing here locks or drops values: what leaves is handed to the caller in a
//! [`RemovedEntries`].

use crate::CacheKey;
use crate::entry::{Pinned, Priority, RemovedEntries};
use crate::lru::{Links, List, NIL, Slots};
use crate::stats::{CacheEntry, CacheStats};
use hashbrown::HashTable;
use std::sync::Arc;

/// The table says a slot is taken, so it holds a value.
const TAKEN: &str = "a slot named by the table or a list is taken";

struct LruSlot<V> {
    key: CacheKey,
    value: Option<Pinned<V>>,
    charge: usize,
    links: Links,
    /// The shard's tick when it last came to the recent end of its list.
    tick: u64,
    priority: Priority,
    pool: u8,
    hit: bool,
}

struct Slab<V>(Vec<LruSlot<V>>);

impl<V> Slots for Slab<V> {
    #[inline]
    fn links(&mut self, slot: u32) -> &mut Links {
        &mut self.0[slot as usize].links
    }
}

pub(crate) struct Shard<V> {
    table: HashTable<u32>,
    slab: Slab<V>,
    free: Vec<u32>,
    pools: [List; 3],
    /// Most bytes of the low and high pools; `None` when the pool does not exist.
    pool_limit: [Option<usize>; 3],
    usage: usize,
    capacity: usize,
    strict: bool,
    tick: u64,
    stats: CacheStats,
}

impl<V> Shard<V> {
    pub(crate) fn new() -> Self {
        Shard {
            table: HashTable::new(),
            slab: Slab(Vec::new()),
            free: Vec::new(),
            pools: [List::default(); 3],
            pool_limit: [None; 3],
            usage: 0,
            capacity: 0,
            strict: false,
            tick: 0,
            stats: CacheStats::default(),
        }
    }

    /// Bytes of the table and the slab for an entry, were both full.
    pub(crate) const fn bytes_per_entry() -> usize {
        size_of::<LruSlot<V>>() + size_of::<u32>()
    }

    /// Bytes of the table and the slab.
    pub(crate) fn overhead(&self) -> usize {
        self.table.allocation_size()
            + self.slab.0.capacity() * size_of::<LruSlot<V>>()
            + self.free.capacity() * size_of::<u32>()
    }

    /// Takes new limits; what no longer fits leaves.
    pub(crate) fn configure(
        &mut self,
        capacity: usize,
        strict: bool,
        low: f64,
        high: f64,
        out: &mut RemovedEntries<V>,
    ) {
        let share = |ratio: f64| (ratio > 0.0).then_some((capacity as f64 * ratio) as usize);
        self.capacity = capacity;
        self.strict = strict;
        self.pool_limit = [None, share(low), share(high)];
        self.overflow(2);
        self.overflow(1);
        self.evict(0, usize::MAX, out);
    }

    #[inline]
    fn find(&self, key: CacheKey, hash: u64) -> Option<u32> {
        self.table
            .find(hash, |&s| self.slab.0[s as usize].key == key)
            .copied()
    }

    #[inline]
    pub(crate) fn lookup(&mut self, key: CacheKey, hash: u64) -> Option<Pinned<V>> {
        let slot = self.find(key, hash)?;
        let entry = &mut self.slab.0[slot as usize];
        let value = entry.value.as_ref().expect(TAKEN).clone();
        entry.hit = true;
        let (tick, pool, priority) = (entry.tick, entry.pool, entry.priority);
        // An entry still in the newest quarter of its list gains nothing from a move.
        let list_len = self.pools[pool as usize].len as u64;
        if self.target_pool(priority, true) != pool || self.tick - tick > list_len / 4 {
            self.touch(slot);
        }
        Some(value)
    }

    pub(crate) fn peek(&self, key: CacheKey, hash: u64) -> Option<Pinned<V>> {
        self.find(key, hash)
            .and_then(|s| self.slab.0[s as usize].value.clone())
    }

    /// The pool that an entry belongs in: 2 high, 1 low, 0 bottom.
    #[inline]
    fn target_pool(&self, priority: Priority, hit: bool) -> u8 {
        if self.pool_limit[2].is_some() && (hit || priority == Priority::High) {
            2
        } else if self.pool_limit[1].is_some() && (hit || priority != Priority::Bottom) {
            1
        } else {
            0
        }
    }

    /// Moves an entry to the recent end of the pool it belongs in.
    fn touch(&mut self, slot: u32) {
        self.unlink(slot);
        let entry = &self.slab.0[slot as usize];
        let pool = self.target_pool(entry.priority, entry.hit);
        self.link(slot, pool);
        self.overflow(2);
        self.overflow(1);
    }

    fn unlink(&mut self, slot: u32) {
        let entry = &self.slab.0[slot as usize];
        let (pool, charge) = (entry.pool as usize, entry.charge);
        self.pools[pool].remove(&mut self.slab, slot, charge);
    }

    fn link(&mut self, slot: u32, pool: u8) {
        self.tick += 1;
        let entry = &mut self.slab.0[slot as usize];
        entry.pool = pool;
        entry.tick = self.tick;
        let charge = entry.charge;
        self.pools[pool as usize].push(&mut self.slab, slot, charge);
    }

    /// Passes the oldest entries of `pool` down while it is over its share.
    fn overflow(&mut self, pool: usize) {
        let limit = self.pool_limit[pool].unwrap_or(0);
        while self.pools[pool].charge > limit
            || (self.pool_limit[pool].is_none() && self.pools[pool].len > 0)
        {
            let slot = self.pools[pool].tail;
            if slot == NIL {
                break;
            }
            self.unlink(slot);
            self.link(slot, pool as u8 - 1);
        }
    }

    /// Makes room for `incoming` bytes; looks past at most `patience` pinned entries.
    fn evict(&mut self, incoming: usize, mut patience: usize, out: &mut RemovedEntries<V>) {
        for pool in 0..3 {
            // Each entry of the pool is looked at once: pinned ones go round to the recent end.
            let mut left = self.pools[pool].len;
            while left > 0 && self.usage.saturating_add(incoming) > self.capacity {
                left -= 1;
                let slot = self.pools[pool].tail;
                if self.is_pinned(slot) {
                    self.unlink(slot);
                    self.link(slot, pool as u8);
                    patience -= 1;
                    if patience == 0 {
                        return;
                    }
                    continue;
                }
                let entry = &self.slab.0[slot as usize];
                let was_hit = entry.hit;
                self.stats.evicted(entry.priority);
                let value = self.take(slot);
                out.push_evicted(value, was_hit);
            }
        }
    }

    fn is_pinned(&self, slot: u32) -> bool {
        Arc::strong_count(&self.slab.0[slot as usize].value.as_ref().expect(TAKEN).0) > 1
    }

    fn remove_slot(&mut self, slot: u32, out: &mut RemovedEntries<V>) {
        let value = self.take(slot);
        out.push(value);
    }

    fn take(&mut self, slot: u32) -> Pinned<V> {
        self.unlink(slot);
        let entry = &mut self.slab.0[slot as usize];
        self.stats.left(entry.priority, entry.charge);
        self.usage -= entry.charge;
        let value = entry.value.take().expect(TAKEN);
        if let Ok(found) = self.table.find_entry(entry.key.hash(), |&s| s == slot) {
            found.remove();
        }
        self.free.push(slot);
        value
    }

    /// Adds an entry, displacing one of the same key. False: refused by a strict limit.
    pub(crate) fn insert(
        &mut self,
        value: &Pinned<V>,
        hash: u64,
        out: &mut RemovedEntries<V>,
    ) -> bool {
        let (key, charge, priority) = (value.0.key, value.0.charge, value.0.priority);
        if let Some(old) = self.find(key, hash) {
            self.stats.replaced += 1;
            self.remove_slot(old, out);
        }
        let patience = if self.strict { usize::MAX } else { 64 };
        self.evict(charge, patience, out);
        if self.usage.saturating_add(charge) > self.capacity {
            if self.strict {
                self.stats.refused += 1;
                return false;
            }
            if charge > self.capacity {
                // It would be the next to go anyway: the caller's own reference is all it needs.
                return true;
            }
        }
        self.usage += charge;
        self.stats.came(priority, charge);
        let slot = self.take_slot(LruSlot {
            key,
            value: Some(value.clone()),
            charge,
            links: Links::default(),
            tick: 0,
            priority,
            pool: 0,
            hit: false,
        });
        let slab = &self.slab;
        self.table
            .insert_unique(hash, slot, |&s| slab.0[s as usize].key.hash());
        self.link(slot, self.target_pool(priority, false));
        self.overflow(2);
        self.overflow(1);
        true
    }

    /// Returns whether an entry of this charge can be added without another's leaving, and is not
    /// there.
    pub(crate) fn has_room(&self, key: CacheKey, hash: u64, charge: usize) -> bool {
        self.usage.saturating_add(charge) <= self.capacity && self.find(key, hash).is_none()
    }

    /// Adds an entry where [`Shard::has_room`] says so.
    pub(crate) fn insert_if_room(&mut self, value: &Pinned<V>, hash: u64) -> bool {
        if !self.has_room(value.0.key, hash, value.0.charge) {
            return false;
        }
        let mut nothing = RemovedEntries::new();
        self.insert(value, hash, &mut nothing)
    }

    fn take_slot(&mut self, entry: LruSlot<V>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slab.0[slot as usize] = entry;
            return slot;
        }
        let slot = u32::try_from(self.slab.0.len()).expect("a shard holds fewer than 2^32 entries");
        self.slab.0.push(entry);
        slot
    }

    pub(crate) fn erase(&mut self, key: CacheKey, hash: u64, out: &mut RemovedEntries<V>) -> bool {
        let found = self.find(key, hash);
        if let Some(slot) = found {
            self.remove_slot(slot, out);
        }
        found.is_some()
    }

    /// Removes every entry that `keep` does not want.
    pub(crate) fn retain(
        &mut self,
        mut keep: impl FnMut(CacheEntry<'_, V>) -> bool,
        out: &mut RemovedEntries<V>,
    ) {
        for slot in 0..self.slab.0.len() as u32 {
            if let Some(entry) = self.entry(slot)
                && !keep(entry)
            {
                self.remove_slot(slot, out);
            }
        }
    }

    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(CacheEntry<'_, V>)) {
        for slot in 0..self.slab.0.len() as u32 {
            if let Some(entry) = self.entry(slot) {
                visit(entry);
            }
        }
    }

    fn entry(&self, slot: u32) -> Option<CacheEntry<'_, V>> {
        let s = &self.slab.0[slot as usize];
        let value = s.value.as_ref()?;
        let pinned = Arc::strong_count(&value.0) > 1;
        Some(CacheEntry {
            key: s.key,
            value,
            charge: s.charge,
            priority: s.priority,
            hit: s.hit,
            pinned,
        })
    }

    /// Places of the slab and of the table, which doubles.
    pub(crate) fn slots(&self) -> usize {
        self.table.len().next_power_of_two().max(16)
    }

    pub(crate) fn usage(&self) -> usize {
        self.usage
    }

    pub(crate) fn stats(&self) -> CacheStats {
        self.stats
    }
}
