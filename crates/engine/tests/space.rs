//! The room that files take: sizes, the limit, and deletions in line.

use esker::{Db, ErrorKind, FlushOptions, HealthState, Options, Result, SstFileManager, Subcode};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn open(at: &Path, space: &Arc<SstFileManager>) -> Result<Db> {
    let mut options = Options::new()
        .create_if_missing(true)
        .set("compression", "kNoCompression")?
        .set("disable_auto_compactions", "true")?;
    options.db.sst_file_manager = Some(Arc::clone(space));
    Db::open(at, options)
}

/// A flushed table of about 100 KB over the same keys.
fn fill(db: &Db, round: u8) -> Result<()> {
    for n in 0..100u32 {
        db.put(n.to_be_bytes(), [round; 1000])?;
    }
    db.flush()
}

fn tables(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let names = entries.map(|e| e.expect("an entry").file_name());
    names
        .filter(|n| n.to_string_lossy().ends_with(".sst"))
        .count()
}

fn within_seconds(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn sizes_are_those_of_all_databases() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let space = SstFileManager::new();
    assert_eq!((space.total_size(), space.total_trash_size()), (0, 0));
    let one = open(&dir.path().join("1"), &space)?;
    let two = open(&dir.path().join("2"), &space)?;
    fill(&one, 1)?;
    let first = space.total_size();
    assert!(first > 100_000, "{first}");
    fill(&two, 1)?;
    assert!(space.total_size() >= first + 100_000);
    drop(two);
    assert_eq!(space.total_size(), first);
    Ok(())
}

#[test]
fn too_much_stops_writes_until_there_is_room() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let space = SstFileManager::new();
    let db = open(dir.path(), &space)?;
    space.set_max_allowed_space_usage(250_000);
    fill(&db, 1)?;
    fill(&db, 2)?;
    assert!(!space.is_max_allowed_space_reached());
    // A compaction of both would not fit.
    let error = db.compact_range(None, None).expect_err("no room for it");
    assert_eq!(error.kind(), ErrorKind::CompactionTooLarge, "{error}");
    assert_eq!(db.health(), HealthState::Running);
    db.put("more", [0; 60_000])?;
    let _told_later = db.flush();
    within_seconds("the limit is noticed", || {
        db.health() == HealthState::Degraded
    });
    assert!(space.is_max_allowed_space_reached());
    let error = db.put("k", "v").expect_err("there is no room");
    assert_eq!(error.subcode(), Subcode::SpaceLimit, "{error}");
    assert!(db.resume().is_err(), "nothing has changed");
    space.set_max_allowed_space_usage(0);
    db.resume()?;
    db.put("k", "v")?;
    db.flush_cf(&db.default_family_handle(), &FlushOptions::default())?;
    db.compact_range(None, None)
}

#[test]
fn deletions_wait_in_line() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let space = SstFileManager::new();
    space.set_delete_rate_bytes_per_second(1);
    space.set_max_trash_db_ratio(100.0);
    let db = open(dir.path(), &space)?;
    for round in 0..4 {
        fill(&db, round)?;
    }
    db.compact_range(None, None)?;
    // One of the four goes at once; the others would take days.
    within_seconds("one goes", || tables(dir.path()) == 4);
    assert!(space.total_trash_size() > 300_000);
    assert!(space.total_size() > 400_000);
    // What waits is deleted when the database is opened next.
    drop(db);
    let db = open(dir.path(), &space)?;
    within_seconds("what waited goes", || tables(dir.path()) == 1);
    assert_eq!(space.total_trash_size(), 0);
    // Too much trash does not wait.
    space.set_max_trash_db_ratio(0.0);
    for round in 0..3 {
        fill(&db, round)?;
        db.compact_range(None, None)?;
    }
    within_seconds("all but the first go at once", || tables(dir.path()) <= 2);
    space.set_delete_rate_bytes_per_second(0);
    within_seconds("nothing waits without a rate", || {
        tables(dir.path()) == 1 && space.total_trash_size() == 0
    });
    Ok(())
}
