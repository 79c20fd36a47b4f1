//! The limits of a cache, under RocksDB's names, and which of the two kinds it is.

use std::fmt;

/// For [`CacheOptions::num_shard_bits`]: chosen from the capacity.
pub const DEFAULT_SHARD_BITS: i32 = -1;

const DEFAULT_SHARD_BITS_MAX: u32 = 6;
const SHARD_BITS_MAX: u32 = 19;

/// How a cache finds its entries and chooses those that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// Hash tables and recency lists under locks: RocksDB's `LRUCache`.
    Lru,
    /// Found without a lock, and evicted by a clock: RocksDB's `HyperClockCache`.
    HyperClock {
        /// The average charge of an entry, from which the size of the table follows; 0 lets the
        /// table grow.
        estimated_entry_charge: usize,
    },
}

impl CacheKind {
    /// A clock whose table grows: RocksDB's default since 10.7.
    pub const AUTO_CLOCK: CacheKind = CacheKind::HyperClock {
        estimated_entry_charge: 0,
    };

    /// RocksDB's name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            CacheKind::Lru => "LRUCache",
            CacheKind::AUTO_CLOCK => "AutoHyperClockCache",
            CacheKind::HyperClock { .. } => "FixedHyperClockCache",
        }
    }
}

/// The limits of a [`crate::Cache`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheOptions {
    /// The kind of cache.
    pub kind: CacheKind,
    /// Most bytes charged, over all shards.
    pub capacity: usize,
    /// Two to this power shards; negative: one per 512 KB of capacity (2 MB for a clock), at most
    /// 64.
    pub num_shard_bits: i32,
    /// Charge what the cache itself takes for an entry as well: RocksDB's
    /// `kFullChargeCacheMetadata`, its default.
    pub charge_metadata: bool,
    /// Refuse an insert that does not fit, instead of going over the capacity while entries are
    /// pinned.
    pub strict_capacity_limit: bool,
    /// In an LRU cache, the share of the capacity kept for entries of high priority or with a hit;
    /// 0 switches the pool off.
    pub high_pri_pool_ratio: f64,
    /// In an LRU cache, the share of the capacity kept for entries of low priority over those of
    /// bottom priority.
    pub low_pri_pool_ratio: f64,
}

impl Default for CacheOptions {
    fn default() -> Self {
        CacheOptions {
            kind: CacheKind::AUTO_CLOCK,
            capacity: 32 << 20,
            num_shard_bits: DEFAULT_SHARD_BITS,
            charge_metadata: true,
            strict_capacity_limit: false,
            high_pri_pool_ratio: 0.5,
            low_pri_pool_ratio: 0.0,
        }
    }
}

impl CacheOptions {
    /// The defaults with this capacity.
    pub fn with_capacity(capacity: usize) -> Self {
        CacheOptions {
            capacity,
            ..Self::default()
        }
    }

    /// An LRU cache of this capacity.
    pub fn lru(capacity: usize) -> Self {
        CacheOptions {
            kind: CacheKind::Lru,
            ..Self::with_capacity(capacity)
        }
    }

    /// A clock of this capacity.
    pub fn hyper_clock(capacity: usize, estimated_entry_charge: usize) -> Self {
        CacheOptions {
            kind: CacheKind::HyperClock {
                estimated_entry_charge,
            },
            ..Self::with_capacity(capacity)
        }
    }

    /// A shard is not made smaller than this when the number of shards is ours to choose.
    fn shard_bytes_min(&self) -> usize {
        match self.kind {
            CacheKind::Lru => 512 << 10,
            // Only insertions lock a clock's shard, and large shards fill more evenly.
            CacheKind::HyperClock { .. } => 2 << 20,
        }
    }

    /// The number of shards that these options make, as a power of two.
    pub fn shard_bits(&self) -> u32 {
        match u32::try_from(self.num_shard_bits) {
            Ok(bits) => bits.min(SHARD_BITS_MAX),
            Err(_) => (self.capacity / self.shard_bytes_min())
                .checked_ilog2()
                .unwrap_or(0)
                .min(DEFAULT_SHARD_BITS_MAX),
        }
    }
}

/// An insert did not fit and the limit is strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheFull;

impl fmt::Display for CacheFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("insert failed because the cache is full (strict_capacity_limit)")
    }
}

impl std::error::Error for CacheFull {}
