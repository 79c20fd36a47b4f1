//! A cached value with its key, in one allocation, and the handle that holds it.
//!
//! Invariant: key, charge and priority never change, so a handle that was found in a table can be
//! compared with the key that was asked for without a lock. `uses` is written by every thread that
//! finds the entry, `grace` only under the lock of the entry's shard; both belong to the clock.

use crate::CacheKey;
use crate::sync::{AtomicU8, Ordering, SlotGuard};
use esker_sync::memory::usable_size;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// How much a value deserves to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Priority {
    /// First to go (blob values).
    Bottom = 0,
    /// Ordinary (data blocks).
    Low = 1,
    /// Last to go (index and filter blocks).
    High = 2,
}

/// Most uses that an entry remembers.
pub(crate) const USES_MAX: u8 = 3;
/// Times that the clock's hand passes an entry that nobody has used yet.
pub(crate) const GRACE: u8 = 1;

/// The order of the fields is that of a hit: the reference count stands before them.
#[repr(C)]
pub(crate) struct Entry<V> {
    pub(crate) key: CacheKey,
    /// Lookups that found it, up to [`USES_MAX`]; the clock's hand takes them away.
    uses: AtomicU8,
    grace: AtomicU8,
    pub(crate) priority: Priority,
    pub(crate) value: V,
    pub(crate) charge: usize,
}

impl<V> Entry<V> {
    /// Bytes that the allocation of an entry has beside its value: the counts of references, the
    /// other fields, and what the allocator rounds up.
    pub(crate) fn metadata() -> usize {
        usable_size(2 * size_of::<usize>() + size_of::<Self>()).saturating_sub(size_of::<V>())
    }

    pub(crate) fn new(key: CacheKey, value: V, charge: usize, priority: Priority) -> Self {
        Entry {
            key,
            uses: AtomicU8::new(0),
            grace: AtomicU8::new(0),
            priority,
            value,
            charge,
        }
    }

    pub(crate) fn begin(&self, uses: u8, grace: u8) {
        self.uses.store(uses, Ordering::Relaxed);
        self.grace.store(grace, Ordering::Relaxed);
    }

    /// Notes a use: a write only while fewer than [`USES_MAX`] are known. Two at once may count as
    /// one.
    #[inline]
    pub(crate) fn note_use(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses < USES_MAX {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    pub(crate) fn uses(&self) -> u8 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Takes a use away; false when there is none.
    pub(crate) fn take_use(&self) -> bool {
        take_one(&self.uses)
    }

    /// Takes a pass of the hand away; false when there is none.
    pub(crate) fn take_grace(&self) -> bool {
        take_one(&self.grace)
    }
}

fn take_one(count: &AtomicU8) -> bool {
    let left = count.load(Ordering::Relaxed).checked_sub(1);
    if let Some(left) = left {
        count.store(left, Ordering::Relaxed);
    }
    left.is_some()
}

/// A value that stays in memory as long as this lives, whether or not a cache still has it.
///
/// A clone is one increment of a shared counter.
pub struct Pinned<V>(pub(crate) Arc<Entry<V>>);

impl<V> Pinned<V> {
    /// Holds a value that is in no cache.
    pub fn outside(value: V) -> Self {
        Pinned::new(CacheKey::new(0, 0), value, 0, Priority::Bottom)
    }

    pub(crate) fn new(key: CacheKey, value: V, charge: usize, priority: Priority) -> Self {
        Pinned(Arc::new(Entry::new(key, value, charge, priority)))
    }
}

impl<V> Pinned<V> {
    /// Charge of the cache for it; 0 for a value that is in none.
    #[inline]
    pub fn charge(&self) -> usize {
        self.0.charge
    }
}

impl<V> Clone for Pinned<V> {
    #[inline]
    fn clone(&self) -> Self {
        Pinned(Arc::clone(&self.0))
    }
}

impl<V> Deref for Pinned<V> {
    type Target = V;
    #[inline(always)]
    fn deref(&self) -> &V {
        &self.0.value
    }
}

impl<V: fmt::Debug> fmt::Debug for Pinned<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pinned").field(&self.0.value).finish()
    }
}

/// A value for a short look: in a clock it is found and left without a write to a shared line.
///
/// Keep few of them at a time: each takes one of a handful of places that a thread has for them.
pub struct Glimpse<V>(pub(crate) GlimpseSource<V>);

pub(crate) enum GlimpseSource<V> {
    Pinned(Pinned<V>),
    Guarded(SlotGuard<Entry<V>>),
}

impl<V> Glimpse<V> {
    /// Charge of the cache for it.
    #[inline]
    pub fn charge(&self) -> usize {
        match &self.0 {
            GlimpseSource::Pinned(held) => held.charge(),
            GlimpseSource::Guarded(entry) => entry.charge,
        }
    }
}

impl<V> Deref for Glimpse<V> {
    type Target = V;
    #[inline]
    fn deref(&self) -> &V {
        match &self.0 {
            GlimpseSource::Pinned(held) => held,
            GlimpseSource::Guarded(entry) => &entry.value,
        }
    }
}

/// Values that left a shard, on their way to be dropped outside its lock. The first few need no
/// allocation.
pub(crate) struct RemovedEntries<V> {
    few: [Option<Pinned<V>>; 4],
    len: usize,
    rest: Vec<Pinned<V>>,
    /// Those that had been used and were evicted, where there is a second tier for them.
    used: Option<Vec<Pinned<V>>>,
}

impl<V> RemovedEntries<V> {
    pub(crate) fn new() -> Self {
        RemovedEntries {
            few: [None, None, None, None],
            len: 0,
            rest: Vec::new(),
            used: None,
        }
    }

    /// A list that tells used values apart.
    pub(crate) fn for_tier() -> Self {
        RemovedEntries {
            used: Some(Vec::new()),
            ..RemovedEntries::new()
        }
    }

    pub(crate) fn push(&mut self, value: Pinned<V>) {
        match self.few.get_mut(self.len) {
            Some(place) => *place = Some(value),
            None => self.rest.push(value),
        }
        self.len += 1;
    }

    /// Adds a value that was evicted and had been used, or not.
    pub(crate) fn push_evicted(&mut self, value: Pinned<V>, was_used: bool) {
        match &mut self.used {
            Some(used) if was_used => used.push(value),
            _ => self.push(value),
        }
    }

    /// Those that had been used and were evicted.
    pub(crate) fn used(&self) -> &[Pinned<V>] {
        self.used.as_deref().unwrap_or(&[])
    }
}
