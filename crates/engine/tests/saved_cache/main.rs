//! The contents of the block cache over a restart: what was cached is cached again, in the
//! background and as far as there is room, and nothing depends on it.

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod rig;
mod trouble;

use common::copy_dir;
use esker::observe::Ticker;
use esker::{CacheKind, CacheOptions, Db, FlushOptions, Options, Result};
use rig::{KEYS, Rig, SAVED, figure, filled, loaded, phase, read, wait};
use std::path::Path;
use std::sync::Arc;

/// Caches and tables of different kinds.
fn kinds() -> Vec<Vec<(&'static str, &'static str)>> {
    vec![
        vec![],
        vec![("compression", "kLZ4Compression")],
        vec![
            ("index_type", "kTwoLevelIndexSearch"),
            ("cache_index_and_filter_blocks", "true"),
        ],
        vec![("max_open_files", "12"), ("target_file_size_base", "65536")],
        vec![("use_direct_reads", "true")],
    ]
}

#[test]
fn what_was_read_before_a_restart_is_cached_after_it() -> Result<()> {
    for changes in kinds() {
        for kind in [CacheKind::AUTO_CLOCK, CacheKind::Lru] {
            let rig = Rig::new(&changes).cache(kind, 16 << 20);
            filled(&rig.open()?)?;
            let db = rig.open()?;
            read(&db, 0..KEYS / 2)?;
            let misses = rig.count(Ticker::BlockCacheDataMiss);
            assert!(misses > 100, "{changes:?}: {misses}");
            db.close()?;

            let db = rig.open()?;
            wait(&db)?;
            assert_eq!(phase(&db), "loaded", "{changes:?}");
            assert_eq!(figure(&db, "loaded blocks"), misses, "{changes:?}");
            assert_eq!(figure(&db, "no blocks"), 0);
            assert_eq!(rig.count(Ticker::BlockCacheDataMiss), 0);
            assert_eq!(rig.count(Ticker::BlockCacheDataAdd), misses);
            read(&db, 0..KEYS / 2)?;
            assert_eq!(rig.count(Ticker::BlockCacheDataMiss), 0, "{changes:?}");
            // The rest was not read before.
            read(&db, KEYS / 2 + 20..KEYS)?;
            assert!(rig.count(Ticker::BlockCacheDataMiss) > 100, "{changes:?}");
        }
    }
    Ok(())
}

#[test]
fn blocks_that_lie_together_are_read_at_once() -> Result<()> {
    let rig = Rig::new(&[]);
    filled(&rig.open()?)?;
    let db = rig.open()?;
    read(&db, 0..KEYS)?;
    db.close()?;
    let before = rig.disk.reads();
    let db = rig.open()?;
    wait(&db)?;
    let with = rig.disk.reads() - before;
    let blocks = figure(&db, "loaded blocks");
    assert!(blocks > 400, "{blocks}");
    db.close()?;
    rig.set("save_block_cache", "false");
    let before = rig.disk.reads();
    drop(rig.open()?);
    let without = rig.disk.reads() - before;
    // A megabyte each, beside what opening reads in both cases.
    assert!(with < without + 20, "{with} reads, {without} without");
    Ok(())
}

#[test]
fn without_the_option_nothing_is_written_or_read() -> Result<()> {
    let rig = Rig::new(&[("save_block_cache", "false")]);
    let saved = Path::new(rig::DIR).join(SAVED);
    let db = rig.open()?;
    filled(&db)?;
    read(&db, 0..KEYS)?;
    db.close()?;
    assert!(!rig.env.fs.exists(&saved)?);
    let db = rig.open()?;
    assert_eq!(phase(&db), "nothing to load");
    // It may be switched on later, and what is saved by hand is there for the next.
    read(&db, 0..KEYS / 4)?;
    assert!(db.save_block_cache()? > 50);
    db.close()?;
    let db = rig.open()?;
    assert_eq!(phase(&db), "nothing to load");
    db.set_db_options(&[("save_block_cache", "true")])?;
    read(&db, 0..KEYS)?;
    db.close()?;
    let db = rig.open()?;
    rig.set("save_block_cache", "true");
    db.close()?;
    let db = rig.open()?;
    wait(&db)?;
    assert!(figure(&db, "loaded blocks") > 400);
    Ok(())
}

#[test]
fn tables_that_were_compacted_away_are_passed_over() -> Result<()> {
    let rig = Rig::new(&[]);
    filled(&rig.open()?)?;
    let db = rig.open()?;
    read(&db, 0..KEYS)?;
    db.close()?;
    rig.set("save_block_cache", "false");
    let db = rig.open()?;
    rig::rewrite(&db)?;
    db.close()?;
    rig.set("save_block_cache", "true");
    let db = rig.open()?;
    wait(&db)?;
    assert_eq!(figure(&db, "loaded blocks"), 0);
    assert!(figure(&db, "tables gone") > 0);
    read(&db, 0..KEYS)
}

#[test]
fn two_databases_share_a_cache() -> Result<()> {
    let rigs = [Rig::new(&[]), Rig::new(&[])];
    let open = || -> Result<Vec<Db>> {
        let cache = Arc::new(esker::BlockCache::new(CacheOptions::with_capacity(
            16 << 20,
        )));
        rigs.iter().map(|r| r.open_with(&cache)).collect()
    };
    for db in open()? {
        filled(&db)?;
    }
    let dbs = open()?;
    read(&dbs[0], 0..KEYS / 2)?;
    read(&dbs[1], KEYS / 2 + 20..KEYS)?;
    drop(dbs);
    let dbs = open()?;
    for db in &dbs {
        wait(db)?;
        assert_eq!(figure(db, "left out"), 0);
    }
    read(&dbs[0], 0..KEYS / 2)?;
    read(&dbs[1], KEYS / 2 + 20..KEYS)?;
    for rig in &rigs {
        assert_eq!(rig.count(Ticker::BlockCacheDataMiss), 0);
    }
    Ok(())
}

#[test]
fn nothing_leaves_a_cache_that_is_too_small() -> Result<()> {
    for kind in [CacheKind::AUTO_CLOCK, CacheKind::Lru] {
        let rig = Rig::new(&[]).cache(kind, 16 << 20);
        filled(&rig.open()?)?;
        let db = rig.open()?;
        read(&db, 0..KEYS)?;
        db.close()?;
        let small = CacheOptions {
            kind,
            ..CacheOptions::with_capacity(512 << 10)
        };
        let cache = Arc::new(esker::BlockCache::new(small));
        let db = rig.open_with(&cache)?;
        wait(&db)?;
        let evicted = || -> u64 { cache.stats().by_priority.iter().map(|p| p.evictions).sum() };
        assert_eq!(evicted(), 0);
        assert!(cache.usage() <= 512 << 10);
        let charged = cache.usage();
        assert!(charged > 480 << 10, "{charged} of half a megabyte");
        assert!(figure(&db, "left out") > 300);
        // Nothing is read for which there is no room, but for the last batch.
        let read_blocks = rig.count(Ticker::BlockCacheDataAdd);
        assert_eq!(figure(&db, "loaded blocks"), read_blocks);
        read(&db, 0..KEYS)?;
        db.close()?;
        // What is saved is what the small cache held.
        let db = rig.open_with(&Arc::new(esker::BlockCache::new(small)))?;
        wait(&db)?;
        assert!(figure(&db, "saved blocks") < 130);
    }
    Ok(())
}

#[test]
fn what_is_saved_by_hand_survives_a_kill() -> Result<()> {
    let rig = Rig::new(&[]);
    let db = rig.open()?;
    filled(&db)?;
    read(&db, 0..KEYS / 2)?;
    let named = db.save_block_cache()?;
    assert!(named > 200, "{named}");
    let copy = Path::new("/copy");
    copy_dir(&rig.env, Path::new(rig::DIR), copy);
    let db = Db::open(copy, rig.options())?;
    wait(&db)?;
    assert_eq!(figure(&db, "saved blocks"), named);
    assert_eq!(figure(&db, "loaded blocks"), named);
    read(&db, 0..KEYS)
}

#[test]
fn a_closed_or_read_only_database_saves_nothing() -> Result<()> {
    let rig = Rig::new(&[]);
    filled(&rig.open()?)?;
    let saved = Path::new(rig::DIR).join(SAVED);
    let before = rig.env.fs.read_all(&saved, 1 << 20)?;
    let db = Db::open_read_only(rig::DIR, rig.options())?;
    assert_eq!(phase(&db), "nothing to load");
    read(&db, 0..KEYS)?;
    db.save_block_cache().expect_err("it may not write");
    db.close()?;
    assert_eq!(rig.env.fs.read_all(&saved, 1 << 20)?, before);
    let db = rig.open()?;
    db.close()?;
    db.save_block_cache().expect_err("it is closed");
    Ok(())
}

#[test]
fn copies_leave_it_out_and_destruction_takes_it_along() -> Result<()> {
    let rig = Rig::new(&[]);
    let db = rig.open()?;
    filled(&db)?;
    read(&db, 0..KEYS)?;
    db.save_block_cache()?;
    db.checkpoint("/checkpoint")?;
    let has = |dir: &str| rig.env.fs.exists(&Path::new(dir).join(SAVED));
    assert!(has(rig::DIR)? && !has("/checkpoint")?);
    let named = db.live_files()?;
    assert!(named.iter().all(|f| !f.name.contains(SAVED)));
    db.close()?;
    Db::repair(rig::DIR, &rig.options())?;
    let db = rig.open()?;
    wait(&db)?;
    read(&db, 0..KEYS)?;
    db.close()?;
    let report = Db::destroy(rig::DIR, &Options::new().env(rig.env.clone()))?;
    assert!(report.directory_removed, "{report:?}");
    Ok(())
}

#[test]
fn families_with_caches_of_their_own_are_saved_together() -> Result<()> {
    let rig = Rig::new(&[]);
    let db = rig.open()?;
    let options = rig.options().family;
    let other = db.create_family("other", options)?;
    for n in 0..KEYS {
        db.put_cf(&other, rig::key(n), rig::value(n))?;
    }
    filled(&db)?;
    db.flush_cf(&other, &FlushOptions::default())?;
    for n in 0..KEYS {
        assert!(db.get_cf(&other, rig::key(n))?.is_some());
    }
    read(&db, 0..KEYS)?;
    db.close()?;
    let db = rig.open()?;
    wait(&db)?;
    assert!(loaded(&db) > 900, "{}", loaded(&db));
    let other = db.family("other").expect("it is there");
    for n in 0..KEYS {
        assert!(db.get_cf(&other, rig::key(n))?.is_some());
    }
    assert_eq!(rig.count(Ticker::BlockCacheDataMiss), 0);
    Ok(())
}
