//! How much memory databases and caches use, by purpose.

use super::Db;
use esker_files::table::BlockCache;
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
    /// The block caches that were named: what is charged to them, and their own tables.
    pub cache_total: u64,
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
        MemoryUsage {
            mem_table_total: sum("rocksdb.size-all-mem-tables"),
            mem_table_unflushed: sum("rocksdb.cur-size-all-mem-tables"),
            mem_table_readers_total: sum("rocksdb.estimate-table-readers-mem"),
            cache_total: counted
                .iter()
                .map(|c| (c.usage() + c.overhead()) as u64)
                .sum(),
        }
    }
}
