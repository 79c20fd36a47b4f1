//! Memory by owner: every counter rises with what it counts, and falls with it. A single test,
//! since some counters are those of the process.

use esker::observe::Statistics;
use esker::{BlockCache, CacheOptions, CachedBlock, Db, MemoryUsage, Options, Result};
use esker::{SstFileWriter, options::BlockCacheSource};
use std::sync::Arc;

const VALUE: usize = 4_000;
const KEYS: u32 = 500;

fn owner(db: &Db, name: &str) -> u64 {
    let family = db.default_family_handle();
    let map = db.map_property(&family, "rocksdb.esker.memory");
    let map = map.expect("the property has a map");
    let value = map.get(name).unwrap_or_else(|| panic!("{name} in {map:?}"));
    value.parse().expect("a number")
}

#[test]
fn counters_rise_and_fall_with_what_they_count() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let cache = Arc::new(BlockCache::new(CacheOptions::with_capacity(64 << 20)));
    let mut options = Options::new()
        .create_if_missing(true)
        .set("compression", "kNoCompression")?;
    options.db.statistics = Some(Statistics::new());
    options.family.table.block_cache = BlockCacheSource::Shared(Arc::clone(&cache));
    let db = Db::open(dir.path().join("db"), options)?;
    let value = |n: u32| vec![n as u8; VALUE];
    for n in 0..KEYS {
        db.put(format!("key{n:06}"), value(n))?;
    }
    let written = u64::from(KEYS) * VALUE as u64;
    assert!(owner(&db, "memtables") >= written);
    assert!(owner(&db, "statistics") > 100_000);
    assert!(owner(&db, "block-cache.entries") < 10_000);
    db.flush()?;
    assert!(owner(&db, "memtables") < written);
    for n in 0..KEYS {
        assert_eq!(db.get(format!("key{n:06}"))?, Some(value(n)));
    }
    // Whole blocks, and no more than allocators round up and entries take.
    let entries = owner(&db, "block-cache.entries");
    assert!(entries >= written, "{entries} for {written}");
    assert!(entries < written * 3 / 2, "{entries} for {written}");
    let tables = owner(&db, "block-cache.tables");
    assert_eq!(tables, cache.overhead() as u64);
    assert!(cache.usage() as u64 >= entries, "metadata are charged");
    assert!(owner(&db, "table-readers") > 0);

    let usage = MemoryUsage::of(&[&db, &db], &[&cache]);
    assert_eq!(usage.cache_total, entries + tables);
    assert_eq!(usage.cache_total, cache.memory(CachedBlock::memory) as u64);
    assert_eq!(usage.statistics, owner(&db, "statistics"));

    // A table under way: the builder has its index, the file its buffers.
    let idle = without_file_buffers();
    assert_eq!((idle.table_builders, idle.file_buffers), (0, 0));
    let mut writer = SstFileWriter::new(&Options::new())?;
    writer.open(dir.path().join("table.sst"))?;
    for n in 0..KEYS {
        writer.put(format!("key{n:06}"), value(n))?;
    }
    let busy = MemoryUsage::of(&[], &[]);
    assert!(busy.table_builders > 4_096, "{busy:?}");
    assert!(busy.file_buffers > 0, "{busy:?}");
    assert_eq!(busy.table_builders, owner(&db, "table-builders"));
    assert_eq!(busy.file_buffers, owner(&db, "file-buffers"));
    writer.finish()?;
    drop(writer);
    drop(db);
    let after = without_file_buffers();
    assert_eq!((after.table_builders, after.file_buffers), (0, 0));
    Ok(())
}

/// The memory of no database, once background I/O has given its buffers back: a moment after the
/// last task.
fn without_file_buffers() -> MemoryUsage {
    let begin = std::time::Instant::now();
    let mut usage = MemoryUsage::of(&[], &[]);
    while usage.file_buffers > 0 && begin.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(5));
        usage = MemoryUsage::of(&[], &[]);
    }
    usage
}
