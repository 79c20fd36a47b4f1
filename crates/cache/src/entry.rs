//! A cached value with its key, in one allocation, and the handle that holds it.
//!
//! Invariant: key, charge and priority never change, so a handle that was found in a table can be
//! compared with the key that was asked for without a lock.

use crate::CacheKey;
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

/// The order of the fields is that of a hit: the reference count stands before them.
#[repr(C)]
pub(crate) struct Entry<V> {
    pub(crate) key: CacheKey,
    pub(crate) priority: Priority,
    pub(crate) value: V,
    pub(crate) charge: usize,
}

impl<V> Entry<V> {
    pub(crate) fn new(key: CacheKey, value: V, charge: usize, priority: Priority) -> Self {
        Entry {
            key,
            priority,
            value,
            charge,
        }
    }
}

/// A value that stays in memory as long as this lives, whether or not a cache still has it.
///
/// A clone is one increment of a shared counter.
pub struct Held<V>(pub(crate) Arc<Entry<V>>);

impl<V> Held<V> {
    /// Holds a value that is in no cache.
    pub fn outside(value: V) -> Self {
        Held::new(CacheKey::new(0, 0), value, 0, Priority::Bottom)
    }

    pub(crate) fn new(key: CacheKey, value: V, charge: usize, priority: Priority) -> Self {
        Held(Arc::new(Entry::new(key, value, charge, priority)))
    }
}

impl<V> Clone for Held<V> {
    #[inline]
    fn clone(&self) -> Self {
        Held(Arc::clone(&self.0))
    }
}

impl<V> Deref for Held<V> {
    type Target = V;
    #[inline(always)]
    fn deref(&self) -> &V {
        &self.0.value
    }
}

impl<V: fmt::Debug> fmt::Debug for Held<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.0.value).finish()
    }
}

/// Values that left a shard, on their way to be dropped outside its lock. The first few need no
/// allocation.
pub(crate) struct Removed<V> {
    few: [Option<Held<V>>; 4],
    len: usize,
    rest: Vec<Held<V>>,
}

impl<V> Removed<V> {
    pub(crate) fn new() -> Self {
        Removed {
            few: [None, None, None, None],
            len: 0,
            rest: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, value: Held<V>) {
        match self.few.get_mut(self.len) {
            Some(place) => *place = Some(value),
            None => self.rest.push(value),
        }
        self.len += 1;
    }
}
