//! Memory by owner: what this database holds, and the buffers of the process.
//!
//! Each figure is counted where the memory is taken; none is what is left of a sum.

use super::{PropertyMap, tables};
use crate::core::Core;
use esker_env::FILE_BUFFERS;
use esker_files::table::{BlockCache, CachedBlock, TABLE_BUILDERS};
use esker_sync::Arc;

/// Owners and their bytes.
fn owners(core: &Core) -> [(&'static str, u64); 7] {
    let families = core.trees.families.all();
    let (mut memtables, mut readers) = (0, 0);
    let mut caches: Vec<Arc<BlockCache>> = Vec::new();
    for family in &families {
        let view = family.view();
        memtables += (view.memtable_bytes() + view.history_bytes()) as u64;
        readers += tables::reader_memory(core, &view.version);
        for cache in family.reading.caches() {
            if !caches.iter().any(|known| Arc::ptr_eq(known, cache)) {
                caches.push(Arc::clone(cache));
            }
        }
    }
    let blocks = caches.iter().map(|cache| cache.memory(CachedBlock::memory));
    let blocks: usize = blocks.sum();
    let tables: usize = caches.iter().map(|cache| cache.overhead()).sum();
    let statistics = core.services.statistics.as_ref();
    [
        ("block-cache.entries", (blocks - tables.min(blocks)) as u64),
        ("block-cache.tables", tables as u64),
        ("memtables", memtables),
        ("table-readers", readers),
        ("table-builders", TABLE_BUILDERS.get() as u64),
        ("file-buffers", FILE_BUFFERS.get() as u64),
        ("statistics", statistics.map_or(0, |s| s.memory() as u64)),
    ]
}

/// A line for each owner: name and bytes.
pub(super) fn text(core: &Core) -> String {
    let lines = owners(core);
    let lines = lines.map(|(owner, bytes)| format!("{owner:<24} {bytes:>14}\n"));
    lines.concat()
}

pub(super) fn map(core: &Core) -> PropertyMap {
    let all = owners(core).into_iter();
    all.map(|(owner, bytes)| (owner.to_owned(), bytes.to_string()))
        .collect()
}
