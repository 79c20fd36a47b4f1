//! The two traits through which a workload sees an engine.
//!
//! A [`Store`] is an open database, shared by all threads. Each thread makes one [`Session`], which
//! owns everything the measured loop reuses: read and write options, a write batch, buffers. The
//! workloads are generic over the session, so that the loop compiles for each engine separately and
//! calls it directly; both engines are asked for the same work in the same order.

use std::path::PathBuf;

use crate::Result;
use crate::slowest::Account;

/// What to open and how. The texts are RocksDB option strings (`name=value;...`).
#[derive(Debug, Clone, Default)]
pub struct OpenPlan {
    /// Directory of the database.
    pub path: PathBuf,
    /// Fails when the database is absent instead of creating it.
    pub must_exist: bool,
    /// Database and column family options.
    pub options: Vec<(String, String)>,
    /// Options of the block-based table, without the cache.
    pub table: Vec<(String, String)>,
    /// The block cache.
    pub cache: CachePlan,
    /// Collects tickers and histograms.
    pub statistics: bool,
}

/// The block cache of an [`OpenPlan`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CachePlan {
    /// Capacity in bytes; 0 means no block cache at all, negative means the engine's default.
    pub capacity: i64,
    /// Log2 of the number of shards, or -1 for the engine's choice.
    pub shard_bits: i64,
    /// Part of the capacity kept for index and filter blocks.
    pub high_priority_ratio: f64,
    /// The eviction policy.
    pub policy: CachePolicy,
}

/// Eviction policies of the block cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CachePolicy {
    /// Least recently used, sharded.
    #[default]
    Lru,
    /// RocksDB's lock-free clock cache.
    HyperClock,
}

/// Options of one session.
#[derive(Debug, Clone, Default)]
pub struct SessionPlan {
    /// Syncs the log at every write.
    pub sync: bool,
    /// Writes without the log.
    pub disable_wal: bool,
    /// Verifies checksums of blocks read from files.
    pub verify_checksums: bool,
    /// Bytes that iterators read ahead, 0 for the engine's choice.
    pub readahead_size: usize,
    /// Asks the engine for asynchronous reads.
    pub async_io: bool,
    /// Uses the batched form of multi-get where the engine has a separate one.
    pub batched_multi_get: bool,
}

/// An open database.
pub trait Store: Send + Sync + Sized + 'static {
    /// What a thread works with.
    type Session: Session;

    /// A line that names the engine and its version.
    fn describe(&self) -> String;

    /// Makes a session for the calling thread.
    ///
    /// # Errors
    /// When the engine does not know one of the plan's options.
    fn session(&self, plan: &SessionPlan) -> Result<Self::Session>;

    /// Writes all memtables to tables and waits for that.
    ///
    /// # Errors
    /// As reported by the engine.
    fn flush(&self) -> Result<()>;

    /// Compacts the whole key range; `force_bottommost` rewrites the last level as well.
    ///
    /// # Errors
    /// As reported by the engine.
    fn compact_all(&self, force_bottommost: bool, subcompactions: u32) -> Result<()>;

    /// Compacts all files of level 0, or of the first non-empty level below it when `from` is 1,
    /// into the next level with data. Returns a sentence that says what was done.
    ///
    /// # Errors
    /// As reported by the engine, or when it offers no such call.
    fn compact_level(&self, from: u32) -> Result<String>;

    /// Waits until no flush and no compaction is running or due.
    ///
    /// # Errors
    /// As reported by the engine.
    fn wait_for_compaction(&self) -> Result<()>;

    /// A property by its RocksDB name.
    fn property(&self, name: &str) -> Option<String>;

    /// The text of all statistics, when they are collected.
    fn statistics(&self) -> Option<String>;

    /// Sets all statistics to zero; `false` when the engine offers no such call.
    fn reset_statistics(&self) -> bool;

    /// Reads all tables and verifies their checksums.
    ///
    /// # Errors
    /// The first damage, or that the engine offers no such call.
    fn verify_checksums(&self) -> Result<()>;
}

/// One thread's view of a [`Store`].
pub trait Session {
    /// Makes the engine account for the calling thread's time from now on.
    ///
    /// # Errors
    /// When the engine offers no such call.
    fn account(&self) -> Result<Box<dyn Account>>;

    /// The iterator.
    type Iter<'a>: Iter
    where
        Self: 'a;

    /// Writes one pair.
    ///
    /// # Errors
    /// As reported by the engine.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Adds a merge operand.
    ///
    /// # Errors
    /// As reported by the engine.
    fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()>;

    /// Deletes a key.
    ///
    /// # Errors
    /// As reported by the engine.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Empties the session's batch.
    fn batch_clear(&mut self);

    /// Adds a pair to the session's batch.
    fn batch_put(&mut self, key: &[u8], value: &[u8]);

    /// Adds a deletion to the session's batch.
    fn batch_delete(&mut self, key: &[u8]);

    /// Applies the session's batch atomically.
    ///
    /// # Errors
    /// As reported by the engine.
    fn batch_write(&mut self) -> Result<()>;

    /// Looks a key up and shows the value, pinned where it lies, to `look`.
    ///
    /// # Errors
    /// As reported by the engine.
    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>>;

    /// Looks up `keys`, which holds keys of `key_size` bytes one after the other. Returns how many
    /// were found and the sum of the sizes of their values.
    ///
    /// # Errors
    /// As reported by the engine.
    fn multi_get(&mut self, keys: &[u8], key_size: usize) -> Result<(u64, u64)>;

    /// A new iterator over the current state, between optional bounds (lower inclusive, upper
    /// exclusive).
    ///
    /// # Errors
    /// As reported by the engine.
    fn iter<'a>(&'a mut self, lower: Option<&[u8]>, upper: Option<&[u8]>)
    -> Result<Self::Iter<'a>>;
}

/// An iterator over user keys. Every move says by `true` that it stands on an entry.
pub trait Iter {
    /// Moves to the first entry.
    fn seek_to_first(&mut self) -> bool;
    /// Moves to the last entry.
    fn seek_to_last(&mut self) -> bool;
    /// Moves to the first entry at or after `key`.
    fn seek(&mut self, key: &[u8]) -> bool;
    /// Moves to the last entry at or before `key`.
    fn seek_for_prev(&mut self, key: &[u8]) -> bool;
    /// Moves to the following entry; the iterator must stand on one.
    fn next(&mut self) -> bool;
    /// Moves to the preceding entry; the iterator must stand on one.
    fn prev(&mut self) -> bool;
    /// The key under the iterator; it must stand on an entry.
    fn key(&self) -> &[u8];
    /// The value under the iterator; it must stand on an entry.
    fn value(&self) -> &[u8];
    /// Why the iterator ended, if it was not the end of the data.
    ///
    /// # Errors
    /// As reported by the engine.
    fn status(&self) -> Result<()>;
}
