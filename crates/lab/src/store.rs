//! The two traits through which a workload sees an engine.
//!
//! A [`Store`] is an open database, shared by all threads. Each thread makes one [`Session`], which
//! owns everything the measured loop reuses: read and write options, a write batch, buffers. The
//! workloads are generic over the session, so that the loop compiles for each engine separately and
//! calls it directly; both engines are asked for the same work in the same order.

use std::path::{Path, PathBuf};

use crate::allocated::EngineAllocator;
use crate::slowest::Account;
use crate::{Failure, Result};

/// The database to open, and its options. The texts are RocksDB option strings (`name=value;...`).
#[derive(Debug, Clone, Default)]
pub struct OpenPlan {
    /// Directory of the database.
    pub path: PathBuf,
    /// Fails when the database is absent instead of creating it.
    pub must_exist: bool,
    /// Opens for reading only.
    pub read_only: bool,
    /// An OPTIONS file whose options replace `options` and `table`; empty for none.
    pub options_file: PathBuf,
    /// Databases; more than one are in directories below `path`.
    pub databases: usize,
    /// True if databases are in directories below `path`, named 0, 1 and so on.
    pub in_directories: bool,
    /// Column families of each database.
    pub families: usize,
    /// Of 100 operations the sums that go to each family; empty for all alike.
    pub shares: Vec<u64>,
    /// The kind of transactions.
    pub transactions: Transactions,
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
    /// Part of the capacity kept for blocks of low priority.
    pub low_priority_ratio: f64,
    /// The eviction policy.
    pub policy: CachePolicy,
    /// The second tier.
    pub tier: Option<TierPlan>,
}

/// The compressed second tier of a block cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierPlan {
    /// Capacity in bytes.
    pub capacity: u64,
    /// Log2 of the number of shards, or -1 for the engine's choice.
    pub shard_bits: i64,
    /// The codec, as an option has it.
    pub codec: &'static str,
    /// The level of the codec.
    pub level: i64,
}

/// The kind of transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transactions {
    /// There are none: a write batch takes their place.
    #[default]
    None,
    /// Keys are locked when they are touched.
    Pessimistic,
    /// Conflicts are looked for at the commit.
    Optimistic,
}

impl OpenPlan {
    /// Returns the first setting of the plan that only the embedded engine has.
    pub fn beyond_one_family(&self) -> Option<&'static str> {
        let asked = [
            (self.databases > 1, "num_multi_db"),
            (self.families > 1, "num_column_families"),
            (self.read_only, "readonly"),
            (self.cache.tier.is_some(), "use_compressed_secondary_cache"),
            (!self.options_file.as_os_str().is_empty(), "options_file"),
            (
                self.transactions != Transactions::None,
                "transaction_db and --optimistic_transaction_db",
            ),
        ];
        asked.iter().find(|(is, _)| *is).map(|(_, flag)| *flag)
    }
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
    /// Carries the readahead of iterators from table to table.
    pub adaptive_readahead: bool,
    /// Sizes the readahead of iterators by their bound.
    pub auto_readahead_size: bool,
    /// Iterators ignore the prefix.
    pub total_order_seek: bool,
    /// Iterators end with the prefix they were sent to.
    pub prefix_same_as_start: bool,
    /// Iterators use the prefix's filter where their bound allows it.
    pub auto_prefix_mode: bool,
    /// Iterators are tailing.
    pub tailing: bool,
    /// Iterators at a snapshot go on to newer views.
    pub auto_refresh: bool,
    /// Iterators have a snapshot of their own.
    pub explicit_snapshot: bool,
    /// Milliseconds that a pessimistic transaction waits for a lock.
    pub lock_timeout_ms: i64,
    /// Transactions begin with a snapshot.
    pub set_snapshot: bool,
}

impl SessionPlan {
    /// A flag that only the embedded engine is driven with, if the plan has one.
    pub fn beyond_plain_reads(&self) -> Option<&'static str> {
        let asked = [
            (self.auto_prefix_mode, "auto_prefix_mode"),
            (self.explicit_snapshot, "explicit_snapshot"),
        ];
        asked.iter().find(|(is, _)| *is).map(|(_, flag)| *flag)
    }
}

/// Says that an engine is not driven in some way.
pub(crate) fn not_driven(what: &str) -> Failure {
    Failure::new(format!(
        "{what}: this engine is not driven so; --engine=esker is"
    ))
}

/// An open database.
pub trait Store: Send + Sync + Sized + 'static {
    /// The session of a thread.
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
    fn compact_level(&self, _from: u32) -> Result<String> {
        Err(not_driven("compactions of single levels"))
    }

    /// Waits until no flush and no compaction is running or due.
    ///
    /// # Errors
    /// As reported by the engine.
    fn wait_for_compaction(&self) -> Result<()>;

    /// A property by its RocksDB name.
    fn property(&self, _name: &str) -> Option<String> {
        None
    }

    /// Where the engine's memory comes from.
    fn allocator(&self) -> EngineAllocator {
        EngineAllocator::Program
    }

    /// The text of all statistics, when they are collected.
    fn statistics(&self) -> Option<String> {
        None
    }

    /// Sets all statistics to zero; `false` when the engine offers no such call.
    fn reset_statistics(&self) -> bool {
        false
    }

    /// Reads all tables and verifies their checksums.
    ///
    /// # Errors
    /// The first damage, or that the engine offers no such call.
    fn verify_checksums(&self) -> Result<()> {
        Err(not_driven("verifychecksum"))
    }

    /// Reads all files whose checksum is in the MANIFEST and compares it.
    ///
    /// # Errors
    /// The first difference, or that the engine offers no such call.
    fn verify_file_checksums(&self) -> Result<()> {
        Err(not_driven("verifyfilechecksums"))
    }

    /// Makes the only backup in `directory` of what is in the database, at that many bytes a second
    /// at most (0 for no limit).
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn backup(&self, _directory: &Path, _rate: u64) -> Result<()> {
        Err(not_driven("backup"))
    }

    /// Restores the newest backup in `backups` into `target`.
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn restore(&self, _backups: &Path, _target: &Path, _rate: u64) -> Result<()> {
        Err(not_driven("restore"))
    }

    /// Makes a table of pairs in order at `file`, to be ingested.
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn make_table(&self, _file: &Path, _pairs: &mut PairSource<'_>) -> Result<()> {
        Err(not_driven("ingestexternalfile"))
    }

    /// Takes tables into the database; they lose their names.
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn ingest(&self, _files: &[PathBuf], _fill_cache: bool) -> Result<()> {
        Err(not_driven("ingestexternalfile"))
    }
}

/// Gives pairs in order to a closure, until there are no more.
pub type PairSource<'a> = dyn FnMut(&mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> + 'a;

/// Carries out [`Session::add`] without transactions.
pub(crate) fn add_in_batch<S: Session + ?Sized>(
    session: &mut S,
    keys: &[Vec<u8>],
    amount: u64,
    between: &mut dyn FnMut(),
) -> Result<bool> {
    session.batch_clear();
    for key in keys {
        let now = session.get(key, number)?.unwrap_or(Ok(0))?;
        between();
        session.batch_put(key, now.wrapping_add(amount).to_string().as_bytes());
    }
    session.batch_write()?;
    Ok(true)
}

/// The number that a value of [`Session::add`] is.
pub(crate) fn number(value: &[u8]) -> Result<u64> {
    let text = std::str::from_utf8(value).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| Failure::new("a value of randomtransaction is not a number"))
}

/// One thread's view of a [`Store`].
pub trait Session {
    /// Makes the engine account for the calling thread's time from now on.
    ///
    /// # Errors
    /// When the engine offers no such call.
    fn account(&self) -> Result<Box<dyn Account>> {
        Err(not_driven("--slowest"))
    }

    /// The iterator.
    type Iter<'a>: Iter
    where
        Self: 'a;

    /// The next calls are about the key of this number: with several families or databases, it says
    /// which. Within a batch the database stays that of its first key.
    #[inline]
    fn choose(&mut self, _number: u64) {}

    /// Deletes a key that was put once.
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn single_delete(&mut self, _key: &[u8]) -> Result<()> {
        Err(not_driven("single deletes"))
    }

    /// Deletes the keys from `from` on, before `to`.
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn delete_range(&mut self, _from: &[u8], _to: &[u8]) -> Result<()> {
        Err(not_driven("range deletions"))
    }

    /// How many operands of a merge lie at a key, the value under them included, and their bytes.
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn merge_operands(&mut self, _key: &[u8]) -> Result<(u64, u64)> {
        Err(not_driven("merge operands"))
    }

    /// About how many bytes of tables lie between two keys.
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn approximate_size(&mut self, _from: &[u8], _to: &[u8]) -> Result<u64> {
        Err(not_driven("approximate sizes"))
    }

    /// About how many entries of memtables lie between two keys.
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn memtable_entries(&mut self, _from: &[u8], _to: &[u8]) -> Result<u64> {
        Err(not_driven("statistics of memtables"))
    }

    /// Reads the number at each key and adds `amount` to it, all or nothing: a transaction where
    /// the store has them, else a write batch. `between` is called after each read. Says whether it
    /// was committed, and not given up for a conflict.
    ///
    /// # Errors
    /// As reported by the engine.
    fn add(&mut self, keys: &[Vec<u8>], amount: u64, between: &mut dyn FnMut()) -> Result<bool> {
        add_in_batch(self, keys, amount, between)
    }

    /// Writes one pair.
    ///
    /// # Errors
    /// As reported by the engine.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Adds a merge operand.
    ///
    /// # Errors
    /// As reported by the engine, or that it offers no such call.
    fn merge(&mut self, _key: &[u8], _operand: &[u8]) -> Result<()> {
        Err(not_driven("merges"))
    }

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
