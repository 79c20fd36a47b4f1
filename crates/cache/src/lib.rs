//! RAM: caches of charged values with RocksDB's limits and priorities, of two kinds.
//!
//! A value is found as a [`Pinned`], which pins its entry: the entry is not chosen for eviction,
//! and the handle stays good whatever happens to the entry. A key belongs to one shard. Values are
//! always dropped outside the locks.
//!
//! - [`CacheKind::HyperClock`] finds entries without a lock and evicts with the hands of a clock;
//!   the header of `clock` describes it and counts the writes of a hit.
//! - [`CacheKind::Lru`] has one short lock for each shard around a hash table and three recency
//!   lists, with RocksDB's priority pools.
//!
//! A cache may have a second tier ([`Tier`]), which is offered what leaves after it was used, and
//! asked for what is missed.
//!
//! [`Cache::watch`] counts, on a sample of the keys, what caches of other capacities would hit
//! (`ghost`).
//!
//! Thread-safety: [`Cache`] is `Send + Sync` for `V: Send + Sync`; every method takes `&self`.
#![forbid(unsafe_code)]

mod cache;
mod clock;
mod entry;
mod flights;
mod ghost;
mod key;
mod lru;
mod options;
mod shard;
mod stats;
mod sync;
mod tier;

pub use cache::Cache;
pub use entry::{Glimpse, Pinned, Priority};
pub use flights::Flight;
pub use ghost::GhostCurve;
pub use key::CacheKey;
pub use options::{CacheFull, CacheKind, CacheOptions, DEFAULT_SHARD_BITS};
pub use stats::{CacheEntry, CacheStats, PriorityStats};
pub use tier::{Tier, TierUsage};

#[cfg(test)]
mod tests;
