//! RAM: a sharded LRU cache of charged values with RocksDB's priority pools.
//!
//! A value is an `Arc<V>`; holding a clone of it pins the entry (it is not chosen for eviction, and
//! the caller's clone stays good whatever happens to the entry). A key belongs to one shard; each
//! shard is one short lock around a hash table and three recency lists, so that two threads meet
//! only when they touch the same shard at the same moment. Values are always dropped outside the
//! lock.
//!
//! Thread-safety: [`Cache`] is `Send + Sync` for `V: Send + Sync`; every method takes `&self`.
#![forbid(unsafe_code)]

mod cache;
mod key;
mod lru;
mod shard;

pub use cache::{Cache, CacheFull, CacheOptions, DEFAULT_SHARD_BITS};
pub use key::CacheKey;
pub use shard::{CacheEntry, CacheStats, Priority, PriorityStats};

#[cfg(test)]
mod tests;
