//! Figures of a cache. Hits and misses are not here: a counter that all readers write would cost
//! more than a hit, and those who look blocks up count anyway.

use crate::CacheKey;
use crate::entry::Priority;

/// Counters of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityStats {
    /// Entries inserted.
    pub inserts: u64,
    /// Entries evicted to make room.
    pub evictions: u64,
    /// Entries inside now.
    pub entries: usize,
    /// Bytes charged now.
    pub usage: usize,
}

/// Counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Inserts refused because the limit is strict.
    pub refused: u64,
    /// Entries displaced by an insert of the same key.
    pub replaced: u64,
    /// By the priority given at insertion; index with `Priority as usize`.
    pub by_priority: [PriorityStats; 3],
}

impl CacheStats {
    /// Entries inside now.
    pub fn entries(&self) -> usize {
        self.by_priority.iter().map(|p| p.entries).sum()
    }

    pub(crate) fn add(&mut self, other: &CacheStats) {
        self.refused += other.refused;
        self.replaced += other.replaced;
        for (a, b) in self.by_priority.iter_mut().zip(&other.by_priority) {
            a.inserts += b.inserts;
            a.evictions += b.evictions;
            a.entries += b.entries;
            a.usage += b.usage;
        }
    }

    pub(crate) fn came(&mut self, priority: Priority, charge: usize) {
        let stats = &mut self.by_priority[priority as usize];
        stats.inserts += 1;
        stats.entries += 1;
        stats.usage += charge;
    }

    pub(crate) fn left(&mut self, priority: Priority, charge: usize) {
        let stats = &mut self.by_priority[priority as usize];
        stats.entries -= 1;
        stats.usage -= charge;
    }

    pub(crate) fn evicted(&mut self, priority: Priority) {
        self.by_priority[priority as usize].evictions += 1;
    }
}

/// One entry, as a dump sees it.
#[derive(Debug)]
pub struct CacheEntry<'a, V> {
    /// Its name.
    pub key: CacheKey,
    /// Its value.
    pub value: &'a V,
    /// The bytes charged for it.
    pub charge: usize,
    /// The priority it was inserted with.
    pub priority: Priority,
    /// True if a lookup found it since it was inserted; a clock forgets that in time.
    pub hit: bool,
    /// True if somebody holds it.
    pub pinned: bool,
}
