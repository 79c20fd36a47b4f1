//! Contents of the block cache, by the kind of block.

use super::{PropertyMap, human};
use crate::core::{Core, Phase};
use crate::family::Family;
use esker_files::table::{BlockCache, CachedBlock};
use esker_sync::Arc;
use std::fmt::Write as _;

/// RocksDB's roles of cache entries: in texts, and in maps.
const ROLES: [(&str, &str); 14] = [
    ("DataBlock", "data-block"),
    ("FilterBlock", "filter-block"),
    ("FilterMetaBlock", "filter-meta-block"),
    ("DeprecatedFilterBlock", "deprecated-filter-block"),
    ("IndexBlock", "index-block"),
    ("OtherBlock", "other-block"),
    ("WriteBuffer", "write-buffer"),
    (
        "CompressionDictionaryBuildingBuffer",
        "compression-dictionary-building-buffer",
    ),
    ("FilterConstruction", "filter-construction"),
    ("BlockBasedTableReader", "block-based-table-reader"),
    ("FileMetadata", "file-metadata"),
    ("BlobValue", "blob-value"),
    ("BlobCache", "blob-cache"),
    ("Misc", "misc"),
];

fn role(block: &CachedBlock) -> usize {
    match block {
        CachedBlock::Data(_) => 0,
        CachedBlock::Filter(_) => 1,
        CachedBlock::Index(_) => 4,
        CachedBlock::Blob(_) => 11,
    }
}

/// Entries and bytes by role, counted now, and how long that took.
struct CacheUsage {
    cache: Arc<BlockCache>,
    id: String,
    by_role: [(u64, u64); ROLES.len()],
    micros: u64,
}

fn census(core: &Core, family: &Family) -> Option<CacheUsage> {
    let cache = family.reading.cache()?;
    let start = core.services.env.clock.now_us();
    let mut by_role = [(0, 0); ROLES.len()];
    cache.for_each(|entry| {
        let (count, bytes) = &mut by_role[role(entry.value)];
        *count += 1;
        *bytes += entry.charge as u64;
    });
    let id = format!(
        "{}@{:p}#{}",
        cache.options().kind.name(),
        Arc::as_ptr(&cache),
        std::process::id()
    );
    Some(CacheUsage {
        cache,
        id,
        by_role,
        micros: core.services.env.clock.now_us() - start,
    })
}

fn percent(bytes: u64, capacity: usize) -> f64 {
    if capacity == 0 {
        0.0
    } else {
        100.0 * bytes as f64 / capacity as f64
    }
}

pub(super) fn text(core: &Core, family: &Family) -> Option<String> {
    let census = census(core, family)?;
    let cache = &census.cache;
    let entries: u64 = census.by_role.iter().map(|(n, _)| n).sum();
    let mut out = format!(
        "Block cache {} capacity: {} seed: 0 usage: {} table_size: {} occupancy: {entries} \
         collections: 1 last_copies: 0 last_secs: {} secs_since: 0\n\
         Block cache entry stats(count,size,portion):",
        census.id,
        human::bytes(cache.capacity() as u64),
        human::bytes(cache.usage() as u64),
        cache.table_slots(),
        census.micros as f64 / 1e6,
    );
    for ((name, _), (count, bytes)) in ROLES.iter().zip(census.by_role) {
        if count > 0 {
            let portion = percent(bytes, cache.capacity());
            // Writing to a string cannot fail.
            let _ = write!(out, " {name}({count},{},{portion}%)", human::bytes(bytes));
        }
    }
    if let Some(tier) = cache.tier_usage() {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "\nSecond tier of the block cache capacity: {} usage: {} occupancy: {}",
            human::bytes(tier.capacity),
            human::bytes(tier.bytes),
            tier.entries
        );
    }
    out.push('\n');
    Some(out)
}

pub(super) fn map(core: &Core, family: &Family) -> Option<PropertyMap> {
    let census = census(core, family)?;
    let capacity = census.cache.capacity();
    let mut out = PropertyMap::from([
        ("id".to_owned(), census.id),
        ("capacity".to_owned(), capacity.to_string()),
        (
            "secs_for_last_collection".to_owned(),
            format!("{:.6}", census.micros as f64 / 1e6),
        ),
        ("secs_since_last_collection".to_owned(), "0".to_owned()),
    ]);
    for ((_, name), (count, bytes)) in ROLES.iter().zip(census.by_role) {
        out.insert(format!("count.{name}"), count.to_string());
        out.insert(format!("bytes.{name}"), bytes.to_string());
        out.insert(
            format!("percent.{name}"),
            format!("{:.6}", percent(bytes, capacity)),
        );
    }
    Some(out)
}

/// How far the loading of what an earlier opening had in the cache has come.
pub(super) fn load_text(core: &Core) -> String {
    let p = core.background.saved_cache.progress();
    let phase = match p.phase {
        Phase::Nothing => "nothing to load",
        Phase::Waits => "waits",
        Phase::Loads => "loads",
        Phase::Loaded => "loaded",
        Phase::Stopped => "stopped",
        Phase::Unreadable => "unreadable",
    };
    let mut text = format!("phase: {phase}\n");
    for (name, figure) in [
        ("saved blocks", p.named),
        ("loaded blocks", p.loaded.blocks),
        ("loaded bytes", p.loaded.bytes),
        ("left out", p.loaded.left_out),
        ("no blocks", p.loaded.unknown),
        ("tables gone", p.tables_gone),
        ("tables failed", p.tables_failed),
        ("microseconds", p.micros),
    ] {
        let _ = writeln!(text, "{name}: {figure}");
    }
    text
}
