//! Reading values of blob files: open files, the blob cache, several at once, on demand and ahead.

mod common;

use common::blobs::{FRAME, key, opened, options, value};
use esker::merge_operator::StringAppend;
use esker::observe::{
    HistogramId, PerfContext, PerfLevel, PerfMetric, Statistics, Ticker, set_perf_level,
};
use esker::options::{
    BlobCacheSource, BlobGarbageCollectionPolicy, BlockCacheSource, BottommostLevelCompaction,
    ReadTier,
};
use esker::{
    BlockCache, CacheOptions, CompactRangeOptions, Db, Env, ErrorKind, Family, FamilyHandle,
    KeyOrder, ReadOptions, Result, WriteOptions,
};
use std::path::Path;
use std::sync::Arc;

fn put(db: &Db, keys: impl IntoIterator<Item = u32>, len: usize) -> Result<()> {
    keys.into_iter()
        .try_for_each(|n| db.put(key(n), value(n, len)))?;
    db.flush()
}

/// The numbers of the blob files.
fn numbers(db: &Db, family: &FamilyHandle) -> Vec<u64> {
    let blobs = db.family_metadata(family).blob_files;
    blobs.iter().map(|b| b.number).collect()
}

/// Compacts everything, with live values leaving all blob files.
fn collect(db: &Db, family: &FamilyHandle) -> Result<()> {
    let mut how = CompactRangeOptions::default();
    how.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
    how.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::Force;
    how.blob_garbage_collection_age_cutoff = 1.0;
    db.compact_range_opt(family, None, None, &how)
}

/// Values and bytes that `f` read from blob files.
fn reads_of<T>(f: impl FnOnce() -> T) -> (u64, u64, T) {
    set_perf_level(PerfLevel::EnableCount);
    PerfContext.reset();
    let out = f();
    let get = |metric| PerfContext.get(metric);
    let (count, bytes) = (
        get(PerfMetric::BlobReadCount),
        get(PerfMetric::BlobReadByte),
    );
    set_perf_level(PerfLevel::Disable);
    (count, bytes, out)
}

/// The blob files of a directory that this process has open, deleted or not.
#[cfg(target_os = "linux")]
fn open_blob_files(dir: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").expect("the open files");
    let targets = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    let is_blob = |path: &Path| {
        let path = path.to_string_lossy();
        path.starts_with(&*dir.to_string_lossy()) && path.contains(".blob")
    };
    targets.filter(|path| is_blob(path)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn files_are_opened_once_and_closed_with_the_last_tree_that_has_them() -> Result<()> {
    let (dir, db, family) = opened(options(""));
    let dir = dir.path().canonicalize().expect("it is there");
    put(&db, 0..10, 500)?;
    put(&db, 10..20, 500)?;
    assert_eq!(open_blob_files(&dir), 0, "nobody has read them");
    db.get(key(0))?;
    db.get(key(15))?;
    assert_eq!(open_blob_files(&dir), 2);
    // Of other trees, too.
    for n in 20..25 {
        db.put(key(n), "small")?;
        db.flush()?;
        db.get(key(0))?;
        db.iter().seek_to_first();
        assert_eq!(open_blob_files(&dir), 2);
    }
    let mut held = db.iter();
    held.seek(key(15));
    collect(&db, &family)?;
    assert_eq!(numbers(&db, &family).len(), 1);
    db.get(key(0))?;
    assert_eq!(open_blob_files(&dir), 3, "an iterator has the old tree");
    assert_eq!(held.value(), value(15, 500));
    drop(held);
    db.put("x", "y")?;
    db.flush()?;
    common::until("old files are closed", || open_blob_files(&dir) == 1);
    Ok(())
}

#[test]
fn values_are_cached_counted_and_charged() -> Result<()> {
    let statistics = Statistics::new();
    let mut with = options("blob_cache=1000000;blob_compression_type=kLZ4Compression");
    with.db.statistics = Some(Arc::clone(&statistics));
    let (_dir, db, family) = opened(with);
    put(&db, 0..10, 1_000)?;
    let tickers = || {
        use Ticker as T;
        [
            T::BlobDbCacheMiss,
            T::BlobDbCacheHit,
            T::BlobDbCacheAdd,
            T::BlobDbCacheBytesRead,
            T::BlobDbCacheBytesWrite,
        ]
        .map(|t| statistics.ticker(t))
    };
    let number = |name| db.int_property(&family, name).expect("a blob cache");
    assert_eq!(number("rocksdb.blob-cache-capacity"), 1_000_000);
    assert_eq!(number("rocksdb.blob-cache-usage"), 0);
    let get = |n: u32, how: &ReadOptions| db.get_opt(&family, key(n), how, None);
    let mut how = ReadOptions::default();
    how.fill_cache = false;
    assert_eq!(get(0, &how)?.as_deref(), Some(&value(0, 1_000)[..]));
    assert_eq!(tickers(), [1, 0, 0, 0, 0]);
    how.fill_cache = true;
    let held = get(0, &how)?.expect("it is there");
    assert_eq!(tickers(), [2, 0, 1, 0, 1_000]);
    assert!(number("rocksdb.blob-cache-usage") >= 1_000);
    assert_eq!(
        number("rocksdb.blob-cache-pinned-usage"),
        number("rocksdb.blob-cache-usage")
    );
    assert_eq!(held, value(0, 1_000));
    drop(held);
    assert_eq!(number("rocksdb.blob-cache-pinned-usage"), 0);
    let (count, _, found) = reads_of(|| get(0, &how));
    assert_eq!((count, found?.as_deref()), (0, Some(&value(0, 1_000)[..])));
    assert_eq!(tickers(), [2, 1, 1, 1_000, 1_000]);
    // The blocks of the table are in memory, and one value.
    how.read_tier = ReadTier::BlockCache;
    assert_eq!(get(0, &how)?.as_deref(), Some(&value(0, 1_000)[..]));
    let kind = |e: esker::Error| e.kind();
    assert_eq!(get(1, &how).map_err(kind), Err(ErrorKind::Incomplete));
    let both = db.multi_get_opt(&family, [key(0), key(1)], &how, None);
    let both: Vec<_> = both.into_iter().map(|r| r.map_err(kind)).collect();
    assert!(both[0].as_ref().is_ok_and(Option::is_some));
    assert_eq!(both[1], Err(ErrorKind::Incomplete));
    let mut it = db.iter_opt(&family, how.clone(), None);
    it.seek(key(0));
    assert_eq!(it.value(), value(0, 1_000));
    it.next();
    assert_eq!(it.status().map_err(kind), Err(ErrorKind::Incomplete));
    // Iterators and several reads at once fill it, too.
    how.read_tier = ReadTier::All;
    let mut it = db.iter_opt(&family, how.clone(), None);
    it.seek(key(8));
    it.next();
    let _filled = db.multi_get_opt(&family, [key(5), key(6)], &how, None);
    let keys = [5, 6, 8, 9].map(key);
    let (count, _, found) = reads_of(|| db.multi_get_opt(&family, &keys, &how, None));
    assert_eq!((count, found.len()), (0, 4));
    Ok(())
}

#[test]
fn the_files_of_a_cached_value_are_told_apart() -> Result<()> {
    let (_dir, db, _) = opened(options("blob_cache=1000000"));
    // The records of both files begin at the same offsets.
    put(&db, 0..10, 300)?;
    put(&db, 10..20, 300)?;
    for n in (0..20).chain(0..20) {
        assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, 300)[..]));
    }
    Ok(())
}

#[test]
fn a_full_cache_with_a_strict_limit_fails_reads_as_that_of_blocks_does() -> Result<()> {
    let statistics = Statistics::new();
    let cache = "blob_cache={capacity=100;num_shard_bits=0;strict_capacity_limit=true}";
    let mut with = options(cache);
    with.db.statistics = Some(Arc::clone(&statistics));
    let (_dir, db, family) = opened(with);
    put(&db, 0..2, 1_000)?;
    let e = db.get(key(0)).expect_err("no room");
    assert_eq!(e.kind(), ErrorKind::Aborted, "{e}");
    assert_eq!(statistics.ticker(Ticker::BlobDbCacheAddFailures), 1);
    let mut how = ReadOptions::default();
    how.fill_cache = false;
    assert!(db.get_opt(&family, key(0), &how, None)?.is_some());
    Ok(())
}

#[test]
fn fresh_values_go_into_the_cache_if_that_is_wanted() -> Result<()> {
    for (wanted, cached) in [("kFlushOnly", 10), ("kDisable", 0)] {
        let statistics = Statistics::new();
        let mut with = options("blob_cache=1000000");
        with = with.set("prepopulate_blob_cache", wanted)?;
        with.db.statistics = Some(Arc::clone(&statistics));
        let (_dir, db, family) = opened(with);
        put(&db, 0..10, 1_000)?;
        assert_eq!(statistics.ticker(Ticker::BlobDbCacheAdd), cached);
        let (count, ..) = reads_of(|| (0..10).map(|n| db.get(key(n))).collect::<Vec<_>>());
        assert_eq!(count, 10 - cached, "{wanted}");
        let before = statistics.ticker(Ticker::BlobDbCacheAdd);
        collect(&db, &family)?;
        assert_eq!(statistics.ticker(Ticker::BlobDbCacheAdd), before);
        let opposite = ["kFlushOnly", "kDisable"];
        let opposite = opposite.into_iter().find(|o| *o != wanted);
        let change = [("prepopulate_blob_cache", opposite.expect("the other"))];
        db.set_options(&family, &change)?;
        put(&db, 20..30, 1_000)?;
        let added = statistics.ticker(Ticker::BlobDbCacheAdd) - before;
        assert_eq!(added, 10 - cached);
    }
    Ok(())
}

#[test]
fn one_cache_may_hold_blocks_and_blobs_and_belongs_to_the_budget() -> Result<()> {
    const MB: usize = 1 << 20;
    let shared = Arc::new(BlockCache::new(CacheOptions::lru(8 * MB)));
    let own = Arc::new(BlockCache::new(CacheOptions::lru(64 * MB)));
    let mut with = options("memory_budget=16m");
    with.env = Some(Env::in_memory());
    with.family.table.block_cache = BlockCacheSource::Shared(Arc::clone(&shared));
    with.family.blob_cache = BlobCacheSource::shared_with(Arc::clone(&shared));
    let mut other = with.family.clone();
    other.blob_cache = BlobCacheSource::shared_with(Arc::clone(&own));
    let db = Db::open("/db", with)?;
    let family = db.default_family_handle();
    put(&db, 0..100, 1_000)?;
    for n in 0..100 {
        db.get(key(n))?;
    }
    let stats = db.map_property(&family, "rocksdb.block-cache-entry-stats");
    let stats = stats.expect("it is there");
    assert_eq!(stats["count.blob-value"], "100");
    let number = |name| db.int_property(&family, name);
    assert_eq!(
        number("rocksdb.blob-cache-usage"),
        number("rocksdb.block-cache-usage")
    );
    let beside = db.create_family("beside", other)?;
    for n in 0..100 {
        db.put_cf(&beside, key(n), value(n, 1_000))?;
    }
    let budget = db.memory_budget().expect("it was set");
    budget.balance();
    assert!(own.bound() < 16 * MB, "{}", own.bound());
    assert!(shared.bound() < 16 * MB, "{}", shared.bound());
    let memory = db.map_property(&family, "rocksdb.esker.memory");
    let entries = memory.and_then(|m| m.get("block-cache.entries")?.parse::<u64>().ok());
    assert!(entries.is_some_and(|bytes| bytes > 100_000), "{entries:?}");
    Ok(())
}

#[test]
fn several_values_are_read_in_the_order_of_their_places() -> Result<()> {
    let statistics = Statistics::new();
    let mut with = options("");
    with.db.statistics = Some(Arc::clone(&statistics));
    with.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    let (dir, db, family) = opened(with);
    put(&db, (0..100).filter(|n| n % 2 == 0), 1_000)?;
    put(&db, (0..100).filter(|n| n % 2 == 1), 1_000)?;
    db.merge(key(7), "more")?;
    db.delete(key(8))?;
    db.put(key(9), value(9, 1_000))?;
    let how = ReadOptions::default();
    let keys: Vec<_> = (0..110).rev().map(key).collect();
    let reads = || statistics.histogram(HistogramId::BlobDbBlobFileReadMicros);
    let before = reads().count;
    let (count, bytes, found) = reads_of(|| db.multi_get_opt(&family, &keys, &how, None));
    assert_eq!(reads().count - before, 2, "one for each file");
    // Gaps between neighbours are read as well.
    assert_eq!(count, 98);
    assert_eq!(bytes, 100 * (1_000 + FRAME));
    for (n, found) in (0..110).rev().zip(found) {
        let expected = match n {
            8 | 100.. => None,
            7 => Some([&value(7, 1_000)[..], b",more"].concat()),
            _ => Some(value(n, 1_000)),
        };
        assert_eq!(found?.as_deref(), expected.as_deref(), "{n}");
    }
    // Large values and far ones are read by themselves, and none beyond the limit.
    for n in 200..210 {
        db.put(key(n), value(n, 100_000))?;
    }
    db.flush()?;
    let large: Vec<_> = (200..210).map(key).collect();
    let (_, bytes, found) = reads_of(|| db.multi_get_opt(&family, &large, &how, None));
    assert_eq!(bytes, 10 * (100_000 + FRAME));
    for (n, found) in (200..210).zip(found) {
        assert_eq!(found?.as_deref(), Some(&value(n, 100_000)[..]));
    }
    let mut limited = ReadOptions::default();
    limited.value_size_soft_limit = 250_000;
    let (count, _, found) = reads_of(|| db.multi_get_opt(&family, &large, &limited, None));
    assert_eq!((count, found.iter().filter(|r| r.is_ok()).count()), (3, 3));
    let far = [key(0), key(40), key(80)];
    let (_, bytes, _) = reads_of(|| db.multi_get_opt(&family, &far, &how, None));
    assert_eq!(bytes, 3 * (1_000 + FRAME));
    // A value that is not sound fails alone.
    let first = db.family_metadata(&family).blob_files[0].name.clone();
    let path = dir.path().join(first);
    let mut all = std::fs::read(&path).expect("reads");
    all[30 + 32 + 8 + 3] ^= 1;
    std::fs::write(&path, all).expect("writes");
    let found = db.multi_get_opt(&family, &keys, &how, None);
    for (n, found) in (0..110).rev().zip(found) {
        assert_eq!(found.is_err(), n == 0, "{n}");
    }
    Ok(())
}

#[test]
fn iterators_leave_values_until_they_are_asked_for() -> Result<()> {
    let with = options("");
    let (dir, db, family) = opened(with);
    put(&db, 0..20, 1_000)?;
    db.put(key(20), "small")?;
    let mut how = ReadOptions::default();
    how.allow_unprepared_value = true;
    let walk = |backward: bool| {
        let mut it = db.iter_opt(&family, how.clone(), None);
        if backward {
            it.seek_to_last();
        } else {
            it.seek_to_first();
        }
        let mut seen = Vec::new();
        while it.valid() {
            seen.push((it.key().to_vec(), it.value().to_vec()));
            if backward {
                it.prev();
            } else {
                it.next();
            }
        }
        it.status().map(|()| seen)
    };
    for backward in [false, true] {
        let (count, bytes, seen) = reads_of(|| walk(backward));
        assert_eq!((count, bytes), (0, 0));
        let mut seen = seen?;
        if backward {
            seen.reverse();
        }
        let keys: Vec<_> = (0..21).map(|n| key(n).into_bytes()).collect();
        assert!(seen.iter().map(|(k, _)| k).eq(&keys));
        assert!(seen[..20].iter().all(|(_, v)| v.is_empty()));
        assert_eq!(seen[20].1, b"small");
    }
    let (count, _, keys) = reads_of(|| db.range(..).keys().count());
    assert_eq!((count, keys), (0, 21));
    let (count, _, keys) = reads_of(|| db.range(..).keys().rev().count());
    assert_eq!((count, keys), (0, 21));
    let (count, _, entries) = reads_of(|| db.range(..).rev().collect::<Result<Vec<_>>>());
    assert_eq!(count, 20);
    let expected = |n: u32| match n {
        20 => (key(n).into_bytes(), b"small".to_vec()),
        _ => (key(n).into_bytes(), value(n, 1_000)),
    };
    assert!(entries?.into_iter().rev().eq((0..21).map(expected)));

    let mut it = db.iter_opt(&family, how.clone(), None);
    let (count, _, there) = reads_of(|| it.prepare_value() && it.prepare_value());
    assert!(there && count == 1, "at its first entry, once");
    assert_eq!(it.value(), value(0, 1_000));
    it.next();
    assert_eq!(it.value(), b"");
    collect(&db, &family)?;
    assert!(it.prepare_value(), "the old file waits for it");
    assert_eq!(it.value(), value(1, 1_000));
    it.seek(key(20));
    assert!(it.prepare_value());
    assert_eq!(it.value(), b"small");
    it.next();
    assert!(!it.prepare_value() && it.status().is_ok());
    // Owners that do not know of it.
    it = db.iter_opt(&family, how.clone(), None);
    it.seek(key(3));
    let mut it = it.with_prepared_values();
    assert_eq!(it.value(), value(3, 1_000));
    it.next();
    assert_eq!(it.value(), value(4, 1_000));
    let all: Vec<_> = db
        .iter_opt(&family, how.clone(), None)
        .into_iter()
        .collect::<Result<_>>()?;
    assert!(all.into_iter().eq((0..21).map(expected)));

    let name = db.family_metadata(&family).blob_files[0].name.clone();
    drop(it);
    db.close()?;
    drop((family, db));
    let path = dir.path().join(name);
    std::fs::remove_file(&path).expect("it goes");
    let db = Db::open(dir.path(), options(""))?;
    let family = db.default_family_handle();
    let mut it = db.iter_opt(&family, how, None);
    it.seek(key(3));
    assert!(it.valid() && !it.prepare_value() && !it.valid());
    let e = it.status().expect_err("the file is gone");
    assert!(e.is_corruption() && e.offset().is_some(), "{e}");
    assert_eq!(e.file(), Some(&*path));
    it.seek(key(19));
    it.next();
    assert_eq!(it.entry(), Some((key(20).as_bytes(), &b"small"[..])));
    Ok(())
}

#[test]
fn iterators_read_ahead_in_blob_files() -> Result<()> {
    let (_dir, db, family) = opened(options("blob_file_size=100000"));
    put(&db, (0..200).filter(|n| n % 3 > 0), 1_000)?;
    put(&db, (0..200).filter(|n| n % 3 == 0), 1_000)?;
    let record = 1_000 + FRAME;
    let walk = |readahead: usize, values: usize| {
        let mut how = ReadOptions::default();
        how.readahead_size = readahead;
        let mut it = db.iter_opt(&family, how, None);
        it.seek_to_first();
        for n in 0..values as u32 {
            assert_eq!(
                it.entry(),
                Some((key(n).as_bytes(), &value(n, 1_000)[..])),
                "{n}"
            );
            it.next();
        }
        it.status().expect("sound");
    };
    // The entry after the last one is read as well.
    let (_, bytes, ()) = reads_of(|| walk(0, 1));
    assert_eq!(bytes, 2 * record, "a walk has to begin");
    let (_, bytes, ()) = reads_of(|| walk(20_000, 1));
    assert_eq!(bytes, 40_000, "a window in each file");
    let (_, bytes, ()) = reads_of(|| walk(0, 20));
    assert!(bytes > 30 * record, "{bytes}");
    // A value across the end of a window is read again.
    let (count, bytes, ()) = reads_of(|| walk(0, 200));
    assert_eq!(count, 200);
    assert!(bytes >= 200 * record && bytes < 220 * record, "{bytes}");
    let (_, bytes, ()) = reads_of(|| walk(10_000, 200));
    assert!(bytes >= 200 * record && bytes < 250 * record, "{bytes}");
    // Backward and at random, values are read by themselves.
    let (_, bytes, ()) = reads_of(|| {
        let mut it = db.iter();
        for n in (0..200).rev() {
            it.seek(key(n));
            assert_eq!(it.value(), value(n, 1_000));
        }
    });
    assert_eq!(bytes, 200 * record);
    Ok(())
}

#[test]
fn compactions_read_ahead_as_they_are_told() -> Result<()> {
    let read = |size: &str| -> Result<u64> {
        let statistics = Statistics::new();
        let mut with = options("");
        with = with.set("blob_compaction_readahead_size", size)?;
        with.db.statistics = Some(Arc::clone(&statistics));
        let (_dir, db, family) = opened(with);
        put(&db, 0..100, 1_000)?;
        for n in (0..100).filter(|n| n % 50 > 0) {
            db.put(key(n), "small")?;
        }
        db.flush()?;
        collect(&db, &family)?;
        Ok(statistics.ticker(Ticker::BlobDbBlobFileBytesRead))
    };
    assert_eq!(read("0")?, 2 * (1_000 + FRAME));
    assert_eq!(read("20000")?, 40_000);
    assert_eq!(read("1000000")?, 100 * (1_000 + FRAME));
    Ok(())
}

#[test]
fn values_of_families_with_timestamps_are_read() -> Result<()> {
    let bytes = |ts: u64| ts.to_le_bytes();
    let mut with = options("");
    with.family.comparator =
        KeyOrder::builtin("leveldb.BytewiseComparator.u64ts").expect("a built-in order");
    with.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    let (_dir, db, family) = opened(with);
    let write = WriteOptions::default();
    for ts in [10, 20] {
        for n in 0..5 {
            let value = value(n + ts as u32, 300);
            db.put_with_timestamp(&family, key(n), &bytes(ts), &value, &write)?;
        }
        db.flush()?;
    }
    db.merge_with_timestamp(&family, key(2), &bytes(25), "more", &write)?;
    let check = |db: &Db, newest_alone: bool| -> Result<()> {
        for ts in [15, 30] {
            if ts == 15 && newest_alone {
                continue;
            }
            let mut how = ReadOptions::default();
            how.timestamp = Some(bytes(ts).to_vec());
            let expected = |n: u32| {
                let plain = value(n + if ts == 15 { 10 } else { 20 }, 300);
                match (n, ts) {
                    (2, 30) => [&plain[..], b",more"].concat(),
                    _ => plain,
                }
            };
            let keys: Vec<_> = (0..5).map(key).collect();
            let many = db.multi_get_opt(&family, &keys, &how, None);
            let mut it = db.iter_opt(&family, how.clone(), None);
            it.seek_to_first();
            for (n, found) in (0..5).zip(many) {
                let one = db.get_opt(&family, key(n), &how, None)?;
                assert_eq!(one.as_deref(), Some(&expected(n)[..]), "{n} at {ts}");
                assert_eq!(found?.as_deref(), Some(&expected(n)[..]), "{n} at {ts}");
                assert_eq!(it.entry(), Some((key(n).as_bytes(), &expected(n)[..])));
                it.next();
            }
            it.status()?;
        }
        Ok(())
    };
    check(&db, false)?;
    db.flush()?;
    collect(&db, &family)?;
    check(&db, false)?;
    db.increase_full_history_ts_low(&family, &bytes(22))?;
    collect(&db, &family)?;
    check(&db, true)
}

#[test]
fn existence_is_told_without_reading_values() -> Result<()> {
    let mut with = options("blob_cache=1M");
    with.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    let (_dir, db, family) = opened(with);
    put(&db, 0..10, 500)?;
    db.merge(key(3), "more")?;
    db.put(key(20), "small")?;
    db.delete(key(4))?;
    db.flush()?;
    let bound = Family::new(&db, &family);
    for n in [0, 9, 20] {
        let (count, bytes, found) = reads_of(|| {
            let all = [
                db.contains_key(key(n)),
                db.contains_key_cf(&family, key(n)),
                bound.contains_key(key(n)),
            ];
            all.into_iter().collect::<Result<Vec<_>>>()
        });
        assert_eq!((count, bytes), (0, 0), "{n}");
        assert_eq!(found?, [true; 3], "{n}");
        assert!(db.key_may_exist(&family, key(n)), "{n}");
    }
    for n in [4, 10] {
        assert!(!db.contains_key(key(n))? && !bound.contains_key(key(n))?);
    }
    // Whether a merge has a result is known when it was made.
    let (count, _, found) = reads_of(|| db.contains_key(key(3)));
    assert_eq!((count, found?), (1, true));
    let (count, _, read) = reads_of(|| db.get(key(0)));
    assert_eq!((count, read?), (1, Some(value(0, 500))));
    Ok(())
}
