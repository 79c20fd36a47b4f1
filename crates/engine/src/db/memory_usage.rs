//! How much memory databases and caches use, by purpose.

use super::Db;
use crate::observe::Statistics;
use esker_env::FILE_BUFFERS;
use esker_files::table::{BlockCache, CachedBlock, TABLE_BUILDERS};
use esker_sync::Arc;

/// Bytes of memory by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUsage {
    /// All memtables.
    pub mem_table_total: u64,
    /// Memtables whose data is in no table yet.
    pub mem_table_unflushed: u64,
    /// Indexes and filters that open tables hold outside of the block cache.
    pub mem_table_readers_total: u64,
    /// The block caches that were named: their blocks as the allocator has them, their own tables,
    /// and what is reserved in them.
    pub cache_total: u64,
    /// Statistics of the databases.
    pub statistics: u64,
    /// Tables that any database of the process is writing: indexes, filters, contexts of
    /// compressors. The buffers of their files are in [`MemoryUsage::file_buffers`].
    pub table_builders: u64,
    /// Buffers of files that any database of the process reads ahead or writes, those that wait
    /// for the next user included.
    pub file_buffers: u64,
}

impl MemoryUsage {
    /// The memory of these databases together, and of these caches, each counted once.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let usage = esker::MemoryUsage::of(&[&db], &[]);
    /// assert!(usage.mem_table_total >= usage.mem_table_unflushed);
    /// assert!(usage.mem_table_unflushed > 0);
    /// assert_eq!(usage.cache_total, 0, "no cache was named");
    /// # Ok(())
    /// # }
    /// ```
    pub fn of(databases: &[&Db], caches: &[&Arc<BlockCache>]) -> MemoryUsage {
        let sum = |name: &str| {
            let of_one = |db: &Db| db.aggregated_int_property(name).unwrap_or(0);
            databases.iter().map(|db| of_one(db)).sum()
        };
        let mut counted: Vec<&Arc<BlockCache>> = Vec::new();
        for cache in caches {
            if !counted.iter().any(|c| Arc::ptr_eq(c, cache)) {
                counted.push(cache);
            }
        }
        let mut statistics: Vec<&Arc<Statistics>> = Vec::new();
        for db in databases {
            if let Some(own) = &db.core().services.statistics
                && !statistics.iter().any(|s| Arc::ptr_eq(s, own))
            {
                statistics.push(own);
            }
        }
        MemoryUsage {
            mem_table_total: sum("rocksdb.size-all-mem-tables"),
            mem_table_unflushed: sum("rocksdb.cur-size-all-mem-tables"),
            mem_table_readers_total: sum("rocksdb.estimate-table-readers-mem"),
            cache_total: counted
                .iter()
                .map(|c| (c.memory(CachedBlock::memory) + c.reserved()) as u64)
                .sum(),
            statistics: statistics.iter().map(|s| s.memory() as u64).sum(),
            table_builders: TABLE_BUILDERS.get() as u64,
            file_buffers: FILE_BUFFERS.get() as u64,
        }
    }
}
