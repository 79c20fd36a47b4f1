//! The second tier of the block cache: data blocks, compressed, in memory.
//!
//! A block enters when it leaves the cache after it had been used, and leaves when the cache wants
//! it back: it is in one of the two. Indexes and filters are left out: the cache has them decoded,
//! or in bytes that hardly compress. A block that a codec makes no smaller is kept as it is.
//!
//! Blocks were verified when they were read; what does not decode here counts as not there, and is
//! read from its table.
//!
//! Thread-safety: any thread; a compressor is used by one thread at a time.

use super::cached::{BlockCache, CachedBlock};
use esker_cache::{Cache, CacheKey, CacheOptions, Priority, Tier, TierUsage};
use esker_codec::compress::{
    Codec, CompressionOptions, Compressor, DEFAULT_LEVEL, decompress, uncompressed_len,
};
use esker_format::block::Block;
use esker_status::seeded::{Bug, seeded};
use esker_sync::memory::usable_size;
use esker_sync::{Mutex, Rank};

/// The limits of a compressed second tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedTierOptions {
    /// Most bytes charged: compressed blocks, and what the tier takes beside them.
    pub capacity: usize,
    /// Two to this power shards; negative: chosen from the capacity.
    pub num_shard_bits: i32,
    /// How blocks are compressed.
    pub codec: Codec,
    /// The level of the codec.
    pub level: i32,
}

impl Default for CompressedTierOptions {
    /// RocksDB's; blocks stay as they are in a build without LZ4.
    fn default() -> Self {
        CompressedTierOptions {
            capacity: 0,
            num_shard_bits: -1,
            codec: if Codec::Lz4.is_supported() {
                Codec::Lz4
            } else {
                Codec::None
            },
            level: DEFAULT_LEVEL,
        }
    }
}

/// A block cache, with a second tier if `tier` says so.
pub fn new_block_cache(limits: CacheOptions, tier: Option<CompressedTierOptions>) -> BlockCache {
    match tier {
        Some(tier) => BlockCache::with_tier(limits, Box::new(CompressedTier::new(tier))),
        None => BlockCache::new(limits),
    }
}

/// A block as the tier keeps it.
#[derive(Debug)]
struct CompressedBlock {
    codec: Codec,
    bytes: Box<[u8]>,
}

impl CompressedBlock {
    fn memory(&self) -> usize {
        size_of::<CompressedBlock>() + usable_size(self.bytes.len())
    }

    fn decode(&self) -> Option<CachedBlock> {
        let len = uncompressed_len(self.codec, &self.bytes).ok()?;
        let mut raw = Vec::with_capacity(len);
        decompress(self.codec, &self.bytes, None, len, &mut raw).ok()?;
        raw.shrink_to_fit();
        Block::parse_data(raw).ok().map(CachedBlock::Data)
    }
}

struct CompressedTier {
    blocks: Cache<CompressedBlock>,
    codec: Codec,
    level: i32,
    /// Compressors that no thread uses.
    idle: Mutex<Vec<Compressor>>,
}

impl CompressedTier {
    fn new(options: CompressedTierOptions) -> Self {
        CompressedTier {
            blocks: Cache::new(CacheOptions {
                num_shard_bits: options.num_shard_bits,
                high_pri_pool_ratio: 0.0,
                ..CacheOptions::lru(options.capacity)
            }),
            codec: options.codec,
            level: options.level,
            idle: Mutex::new(Rank::LEAF, Vec::new()),
        }
    }

    fn compressor(&self) -> Option<Compressor> {
        let idle = self.idle.lock().pop();
        idle.or_else(|| {
            let options = CompressionOptions::at_level(self.level);
            Compressor::new(self.codec, options, None).ok()
        })
    }

    fn compress(&self, raw: &[u8]) -> CompressedBlock {
        let mut out = Vec::new();
        let mut codec = Codec::None;
        if self.codec != Codec::None
            && let Some(mut compressor) = self.compressor()
        {
            if let Ok(true) = compressor.compress(raw, &mut out) {
                codec = self.codec;
            }
            self.idle.lock().push(compressor);
        }
        let bytes = match codec {
            Codec::None => raw.into(),
            _ => out.into_boxed_slice(),
        };
        CompressedBlock { codec, bytes }
    }

    /// The name of a block in the tier.
    fn name(key: CacheKey) -> CacheKey {
        if seeded(Bug::TierNamesCollide) {
            return CacheKey::new(0, key.lo);
        }
        key
    }
}

impl Tier<CachedBlock> for CompressedTier {
    fn offer(&self, key: CacheKey, value: &CachedBlock) {
        let CachedBlock::Data(block) = value else {
            return;
        };
        let stored = self.compress(block.bytes());
        let charge = stored.memory();
        // A block that is larger than a shard is not kept: no loss, it is in its table.
        let _ = (self.blocks).insert(Self::name(key), stored, charge, Priority::Low);
    }

    fn recall(&self, key: CacheKey, take: bool) -> Option<CachedBlock> {
        let key = Self::name(key);
        let found = self.blocks.lookup(key)?;
        if take {
            self.blocks.erase(key);
        }
        found.decode()
    }

    fn erase(&self, key: CacheKey) {
        self.blocks.erase(Self::name(key));
    }

    fn clear(&self) {
        self.blocks.erase_unpinned();
    }

    fn usage(&self) -> TierUsage {
        let stats = self.blocks.stats();
        TierUsage {
            entries: stats.entries() as u64,
            bytes: self.blocks.usage() as u64,
            capacity: self.blocks.capacity() as u64,
        }
    }

    fn memory(&self) -> usize {
        let compressors: usize = self.idle.lock().iter().map(Compressor::memory).sum();
        self.blocks.memory(CompressedBlock::memory) + compressors
    }
}

#[cfg(test)]
mod tests;
