//! Blocks that enter the block cache as they are written (`prepopulate_block_cache`).
//!
//! Blocks of a file that is never finished may stay behind in the cache: nobody looks for them, as
//! the number of a file is given once.
//!
//! Thread-safety: each builder has its own.

use super::cached::{BlockCache, CachedBlock, TableCacheId};
use super::filter_block::FilterBlock;
use super::observer::{BlockRole, TableObserver};
use esker_cache::Priority;
use esker_format::FileNo;
use esker_format::block::{Block, BlockHandle};
use std::sync::Arc;

/// The cache that gets the blocks of a new table.
#[derive(Clone, Debug)]
pub struct PrepopulateTarget {
    /// The cache.
    pub cache: Arc<BlockCache>,
    /// As in [`super::TableReaderOptions::cache_salt`].
    pub salt: u64,
    /// How long data blocks stay there.
    pub priority: Priority,
    /// The priority of filters; none where readers hold theirs outside of the cache.
    pub filters: Option<Priority>,
    /// Told of each block.
    pub observer: Option<Arc<dyn TableObserver>>,
}

impl PrepopulateTarget {
    /// Puts a data block into the cache. One that cannot be parsed is left to readers.
    pub(super) fn keep_data(&self, file: FileNo, handle: BlockHandle, raw: &[u8]) {
        if let Ok(block) = Block::parse_data(raw.to_vec()) {
            let block = CachedBlock::Data(block);
            self.keep(file, handle, BlockRole::Data, block, self.priority);
        }
    }

    /// Puts a filter, or a partition of one, into the cache.
    pub(super) fn keep_filter(&self, file: FileNo, handle: BlockHandle, raw: &[u8]) {
        if let Some(priority) = self.filters {
            let block = CachedBlock::Filter(FilterBlock::new(raw.to_vec()));
            self.keep(file, handle, BlockRole::Filter, block, priority);
        }
    }

    fn keep(
        &self,
        file: FileNo,
        handle: BlockHandle,
        role: BlockRole,
        block: CachedBlock,
        priority: Priority,
    ) {
        let charge = block.charge();
        let key = TableCacheId::new(self.salt, file.0).block(handle.offset);
        let refused = self.cache.insert(key, block, charge, priority).is_err();
        if let Some(o) = &self.observer {
            o.cache_insert(role, charge, refused);
        }
    }
}
