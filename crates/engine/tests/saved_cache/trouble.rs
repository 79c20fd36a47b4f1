//! Events beside the loading: a database that closes, compactions, a disk that fails.

use crate::common::until;
use crate::rig::{DIR, KEYS, Rig, SAVED, figure, filled, phase, read, rewrite, wait};
use esker::Result;
use esker::observe::Ticker;
use std::path::Path;

/// A database that was closed with all blocks in its cache; how many there are.
fn warm(rig: &Rig) -> Result<u64> {
    let db = rig.open()?;
    filled(&db)?;
    // One flush makes one table, whatever the size of a table is to be.
    rewrite(&db)?;
    db.close()?;
    let db = rig.open()?;
    read(&db, 0..KEYS)?;
    let named = db.save_block_cache()?;
    db.close()?;
    Ok(named)
}

#[test]
fn opening_does_not_wait_and_closing_ends_the_loading() -> Result<()> {
    // Tables of one batch each.
    let rig = Rig::new(&[("target_file_size_base", "200000")]);
    let named = warm(&rig)?;
    rig.disk.hold();
    let db = rig.open()?;
    rig.disk.wait_for_held();
    assert_eq!(phase(&db), "loads");
    // Others do not wait for it either.
    read(&db, 0..20)?;
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| db.close());
        until("it closes", || db.put("key", "value").is_err());
        assert!(!closing.is_finished(), "a read is under way");
        rig.disk.release();
        closing.join().expect("it does not panic")
    })?;
    assert_eq!(phase(&db), "stopped");
    assert!(figure(&db, "loaded blocks") < named / 2);
    drop(db);
    // Nothing is forgotten.
    let db = rig.open()?;
    wait(&db)?;
    assert_eq!(figure(&db, "loaded blocks"), named);
    read(&db, 0..KEYS)?;
    assert_eq!(rig.count(Ticker::BlockCacheDataMiss), 0);
    Ok(())
}

#[test]
fn databases_that_are_closed_at_once_forget_nothing() -> Result<()> {
    let rig = Rig::new(&[("target_file_size_base", "200000")]);
    let named = warm(&rig)?;
    for _ in 0..50 {
        rig.open()?.close()?;
    }
    let db = rig.open()?;
    wait(&db)?;
    assert_eq!(figure(&db, "loaded blocks"), named);
    Ok(())
}

#[test]
fn a_save_beside_the_loading_has_what_is_left() -> Result<()> {
    let rig = Rig::new(&[("target_file_size_base", "200000")]);
    let named = warm(&rig)?;
    rig.disk.hold();
    let db = rig.open()?;
    rig.disk.wait_for_held();
    assert_eq!(db.save_block_cache()?, named);
    rig.disk.release();
    wait(&db)?;
    assert_eq!(figure(&db, "loaded blocks"), named);
    Ok(())
}

#[test]
fn a_table_that_goes_meanwhile_is_deleted_after_it_was_read() -> Result<()> {
    let rig = Rig::new(&[("recycle_table_files", "false")]);
    warm(&rig)?;
    rig.disk.hold();
    let db = rig.open()?;
    rig.disk.wait_for_held();
    let before: Vec<String> = db
        .live_files_metadata()
        .into_iter()
        .map(|f| f.name)
        .collect();
    // Larger than a block are the reads of the compaction, too.
    rewrite(&db)?;
    read(&db, 0..KEYS)?;
    rig.disk.release();
    wait(&db)?;
    read(&db, 0..KEYS)?;
    let is_there = |name: &String| {
        let path = Path::new(DIR).join(name.trim_start_matches('/'));
        rig.env.fs.exists(&path).expect("the disk is well")
    };
    until("the old tables go", || !before.iter().any(is_there));
    db.close()
}

#[test]
fn failing_reads_are_told_and_nothing_else() -> Result<()> {
    let rig = Rig::new(&[("target_file_size_base", "200000")]);
    warm(&rig)?;
    rig.disk.fail(true);
    let db = rig.open()?;
    wait(&db)?;
    assert_eq!(phase(&db), "loaded");
    assert_eq!(figure(&db, "loaded blocks"), 0);
    assert!(figure(&db, "tables failed") > 3);
    assert!(rig.is_told("tables were left out from a block on"));
    assert_eq!(
        db.property("rocksdb.background-errors").as_deref(),
        Some("0")
    );
    rig.disk.fail(false);
    read(&db, 0..KEYS)?;
    db.put("key", "value")?;
    db.close()
}

#[test]
fn a_place_that_cannot_be_written_keeps_nobody_from_closing() -> Result<()> {
    let rig = Rig::new(&[]);
    warm(&rig)?;
    let saved = Path::new(DIR).join(SAVED);
    rig.env.fs.remove_file(&saved)?;
    // A directory of that name can be neither read nor replaced.
    rig.env.fs.create_dir_all(&saved.join("sub"))?;
    let db = rig.open()?;
    wait(&db)?;
    assert_eq!(phase(&db), "unreadable");
    read(&db, 0..KEYS)?;
    db.save_block_cache()
        .expect_err("it has a name that is taken");
    db.close()?;
    assert!(rig.is_told("its contents are not saved"));
    Ok(())
}

#[test]
fn the_loading_goes_by_the_rate_limiter() -> Result<()> {
    let rig = Rig::new(&[]);
    warm(&rig)?;
    let mut options = rig.options();
    let mut limits = esker::RateLimiterOptions::default();
    limits.bytes_per_second = 1 << 30;
    limits.mode = esker::RateLimiterMode::AllIo;
    let limiter = esker::RateLimiter::with_options(limits);
    options.db.rate_limiter = Some(limiter.clone());
    let db = esker::Db::open(DIR, options)?;
    wait(&db)?;
    let taken = limiter.total_bytes(Some(esker::IoPriority::Low));
    assert!(taken >= figure(&db, "saved blocks") * 3_500, "{taken}");
    Ok(())
}
