//! The interface of a second tier: values that a cache evicts, kept in another form.

use crate::CacheKey;

/// A store for the values that leave a cache for want of room.
///
/// The cache calls it from any thread that inserts or misses, under none of its locks. A tier may
/// forget anything at any time.
pub trait Tier<V>: Send + Sync {
    /// Takes a value that had been used before it left.
    fn offer(&self, key: CacheKey, value: &V);
    /// The value, when it is there; with `take` it leaves the tier.
    fn recall(&self, key: CacheKey, take: bool) -> Option<V>;
    /// Forgets a value.
    fn erase(&self, key: CacheKey);
    /// Forgets all values.
    fn clear(&self);
    /// Values, bytes charged for them, and most bytes charged.
    fn usage(&self) -> TierUsage;
    /// Bytes of memory that it takes.
    fn memory(&self) -> usize;
}

/// Contents of a second tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierUsage {
    /// Values.
    pub entries: u64,
    /// Bytes charged for them.
    pub bytes: u64,
    /// Most bytes charged.
    pub capacity: u64,
}
