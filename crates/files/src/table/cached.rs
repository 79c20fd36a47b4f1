//! Values of the block cache, and their keys. Values of blob files may be among them.

use super::filter_block::FilterBlock;
use esker_cache::{Cache, CacheKey, Pinned};
use esker_format::FileNo;
use esker_format::block::{Block, BlockSource, IndexBlock};
use esker_status::seeded::{Bug, seeded};
use esker_sync::memory::usable_size;
use std::sync::atomic::{AtomicU64, Ordering};

/// The block cache: uncompressed and, for indexes, decoded blocks.
pub type BlockCache = Cache<CachedBlock>;

/// A block that stays in memory as long as this lives, in the cache or not.
pub(super) type SharedBlock = Pinned<CachedBlock>;

/// A block, or a value of a blob file, in the form in which it is used.
#[derive(Debug)]
pub enum CachedBlock {
    /// A data block.
    Data(Block),
    /// An index block, a partition of one, or the top level of a partitioned index or filter.
    Index(IndexBlock),
    /// The bytes of a filter or of a partition of one.
    Filter(FilterBlock),
    /// A value of a blob file.
    Blob(Vec<u8>),
}

static NO_BLOCK: Block = Block::empty();

impl CachedBlock {
    /// The data block; an empty one when this is something else.
    #[inline]
    pub fn data(&self) -> &Block {
        match self {
            CachedBlock::Data(block) => block,
            _ => &NO_BLOCK,
        }
    }
    /// The index block.
    pub fn index(&self) -> Option<&IndexBlock> {
        match self {
            CachedBlock::Index(index) => Some(index),
            _ => None,
        }
    }
    /// The value of a blob file.
    #[inline]
    pub fn blob(&self) -> Option<&[u8]> {
        match self {
            CachedBlock::Blob(value) => Some(value),
            _ => None,
        }
    }
    /// Charge of the cache: the memory that is held, or will be once the block is in use.
    pub fn charge(&self) -> usize {
        match self {
            CachedBlock::Data(block) => {
                size_of::<CachedBlock>() + block.memory_expected(usable_size)
            }
            _ => self.memory(),
        }
    }
    /// Memory held now, as the allocator has it.
    pub fn memory(&self) -> usize {
        let behind = match self {
            CachedBlock::Data(block) => block.memory(usable_size),
            CachedBlock::Index(index) => index.memory(usable_size),
            CachedBlock::Filter(filter) => usable_size(filter.bytes.capacity()),
            CachedBlock::Blob(value) => usable_size(value.capacity()),
        };
        size_of::<CachedBlock>() + behind
    }
}

/// A data block held by a cursor.
#[derive(Clone, Debug)]
pub(super) struct HeldBlock(pub(super) Option<SharedBlock>);

impl BlockSource for HeldBlock {
    #[inline(always)]
    fn block(&self) -> &Block {
        match &self.0 {
            Some(cached) => cached.data(),
            None => &NO_BLOCK,
        }
    }
}

/// The name of a table in the cache; blocks add their offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableCacheId(u64);

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The first half of the names that the blocks of file `file_no` have in the cache, in the database
/// that `salt` stands for; the second half is where a block begins.
pub fn cache_name(salt: u64, file_no: FileNo) -> u64 {
    TableCacheId::new(salt, file_no.0).0
}

impl TableCacheId {
    /// The name of file `file_no` of the database that `salt` stands for. Without a salt the name
    /// is new: readers of one process never share it.
    pub(super) fn new(salt: u64, file_no: u64) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if salt == 0 {
            return TableCacheId(mix(NEXT.fetch_add(1, Ordering::Relaxed)) ^ 0x6573_6b65_7221_0001);
        }
        let file_no = if seeded(Bug::CacheKeysCollide) {
            file_no / 8
        } else {
            file_no
        };
        TableCacheId(mix(salt ^ mix(file_no.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    #[inline]
    pub(super) fn block(self, offset: u64) -> CacheKey {
        CacheKey::new(self.0, offset)
    }
}
