//! RAM: a sharded LRU cache of charged values with RocksDB's priority pools.
//!
//! A value is found as a [`Held`], which pins its entry: the entry is not chosen for eviction, and
//! the handle stays good whatever happens to the entry. A key belongs to one shard; each shard is
//! one short lock around a hash table and three recency lists, so that two threads meet only when
//! they touch the same shard at the same moment. Values are always dropped outside the lock.
//!
//! Thread-safety: [`Cache`] is `Send + Sync` for `V: Send + Sync`; every method takes `&self`.
#![warn(clippy::match_bool)]
#![forbid(unsafe_code)]

mod cache;
mod entry;
mod key;
mod lru;
mod shard;
mod stats;
mod sync;

pub use cache::{Cache, CacheFull, CacheOptions, DEFAULT_SHARD_BITS};
pub use entry::{Held, Priority};
pub use key::CacheKey;
pub use stats::{CacheEntry, CacheStats, PriorityStats};

#[cfg(test)]
mod tests;
