//! Which block cache holds the blocks of a family's tables.

use super::Family;
use crate::memory::MemoryBudget;
use crate::options::{BlockCacheSource, FamilyOptions};
use esker_files::table::BlockCache;
use esker_sync::Arc;

/// The block cache of a new family beside `others`. Families with the same options share one, as
/// they do in RocksDB when they share a table factory. With a budget its cache is that of all
/// families without one that the application shares.
pub(crate) fn choose_block_cache<I: IntoIterator<Item = Arc<Family>>>(
    options: &FamilyOptions,
    budget: Option<&MemoryBudget>,
    others: impl FnOnce() -> I,
) -> Option<Arc<BlockCache>> {
    if options.table.no_block_cache {
        return None;
    }
    let source = &options.table.block_cache;
    if let BlockCacheSource::Shared(given) = source {
        return Some(Arc::clone(given));
    }
    if let Some(budget) = budget {
        return Some(Arc::clone(budget.cache()));
    }
    let same = others().into_iter().find_map(|other| {
        let is_same = (other.options.load().table.block_cache).makes_same(source);
        other.reading.cache().filter(|_| is_same)
    });
    Some(same.unwrap_or_else(|| source.make()))
}
