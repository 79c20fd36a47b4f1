//! Waiting for background work, ending it, holding writers, and flushing families together.

mod common;

use common::{copy_dir, until};
use esker::{
    CheckpointOptions, CompactRangeOptions, Db, Env, ErrorKind, FamilyOptions, FlushOptions,
    Options, Result, Subcode, WaitForCompactOptions, WriteBatch, WriteOptions,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn small() -> Options {
    Options::new()
        .create_if_missing(true)
        .env(Env::in_memory())
        .set_all("write_buffer_size=65536;target_file_size_base=65536;level0_file_num_compaction_trigger=4;compression=kNoCompression")
        .expect("these options exist")
}

fn tables_at(db: &Db, level: u32) -> u64 {
    db.property(&format!("rocksdb.num-files-at-level{level}"))
        .expect("a property")
        .parse()
        .expect("a number")
}

#[test]
fn waiting_ends_with_nothing_to_do_or_says_why_not() -> Result<()> {
    let db = Db::open("/db", small())?;
    for n in 0..3000u32 {
        db.put(format!("{:04}", n % 500), vec![b'x'; 200])?;
    }
    let mut how = WaitForCompactOptions::default();
    how.flush = true;
    how.timeout = Some(Duration::from_secs(300));
    db.wait_for_compact(&how)?;
    assert!(tables_at(&db, 0) < 4);
    assert_eq!(
        db.property("rocksdb.num-entries-active-mem-table")
            .as_deref(),
        Some("0")
    );

    db.pause_background_work()?;
    let mut abort = WaitForCompactOptions::default();
    abort.abort_on_pause = true;
    assert_eq!(
        db.wait_for_compact(&abort).expect_err("paused").kind(),
        ErrorKind::Aborted
    );
    // Something to do that nobody does.
    for n in 0..2000u32 {
        let unlogged = WriteOptions::unlogged();
        let mut now = unlogged;
        now.no_slowdown = true;
        let family = db.default_family_handle();
        if db
            .put_opt(&family, format!("{n}"), vec![b'y'; 200], &now)
            .is_err()
        {
            break;
        }
    }
    let mut brief = WaitForCompactOptions::default();
    brief.timeout = Some(Duration::from_millis(20));
    assert_eq!(
        db.wait_for_compact(&brief).expect_err("too long").kind(),
        ErrorKind::TimedOut
    );
    db.continue_background_work();
    db.wait_for_compact(&how)?;
    db.close()?;
    assert_eq!(
        db.put("a", "b").expect_err("closed").kind(),
        ErrorKind::ShutdownInProgress
    );
    let error = db.wait_for_compact(&abort).expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::ShutdownInProgress);
    Ok(())
}

#[test]
fn a_level_that_a_compaction_overfilled_is_moved_down_when_it_returns() -> Result<()> {
    let options = small()
        .set_all("level_compaction_dynamic_level_bytes=false;max_bytes_for_level_base=16384")?;
    for round in 0..20 {
        let db = Db::open(format!("/db{round}"), options.clone())?;
        for n in 0..200u32 {
            db.put(format!("{n:04}"), [b'v'; 100])?;
        }
        db.compact_range(None, None)?;
        assert_eq!((tables_at(&db, 1), tables_at(&db, 2)), (0, 1));
        db.close()?;
    }
    // Not where the caller says which level it should be.
    let db = Db::open("/chosen", options)?;
    for n in 0..200u32 {
        db.put(format!("{n:04}"), [b'v'; 100])?;
    }
    let mut how = CompactRangeOptions::default();
    (how.change_level, how.target_level) = (true, 1);
    db.compact_range_opt(&db.default_family_handle(), None, None, &how)?;
    until("the scheduler moves it", || tables_at(&db, 2) == 1);
    db.close()
}

#[test]
fn cancelled_work_never_comes_back() -> Result<()> {
    let db = Db::open("/db", small())?;
    let family = db.default_family_handle();
    db.put_opt(&family, "unlogged", "kept", &WriteOptions::unlogged())?;
    db.cancel_background_work(true)?;
    assert_eq!(
        tables_at(&db, 0),
        1,
        "what is not in the log was flushed before"
    );
    assert_eq!(db.get("unlogged")?.as_deref(), Some(&b"kept"[..]));
    let files = db.live_files()?;
    let table = files.iter().find(|f| f.kind == esker::FileKind::Table);
    let table = [&table.expect("one").path];
    let mut without_waiting = FlushOptions::default();
    (without_waiting.wait, without_waiting.allow_write_stall) = (false, true);
    for error in [
        db.flush().expect_err("cancelled"),
        db.flush_cf(&family, &without_waiting)
            .expect_err("cancelled"),
        db.flush_families(&[&family], &FlushOptions::default())
            .expect_err("cancelled"),
        db.compact_range(None, None).expect_err("cancelled"),
        db.compact_files(&family, &table, 1).expect_err("cancelled"),
        db.checkpoint("/copy").expect_err("cancelled"),
        db.export_family(&family, "/export").expect_err("cancelled"),
        db.wait_for_compact(&WaitForCompactOptions::default())
            .expect_err("cancelled"),
    ] {
        assert_eq!(error.kind(), ErrorKind::ShutdownInProgress);
    }
    db.cancel_background_work(true)?;
    db.close()
}

#[test]
fn writes_and_administration_go_on_when_background_work_was_cancelled() -> Result<()> {
    let options = small();
    let db = Db::open("/db", options.clone())?;
    let family = db.default_family_handle();
    db.put("before", "1")?;
    db.cancel_background_work(true)?;
    db.put("after", "1")?;
    db.flush_wal(false)?;
    db.sync_wal()?;
    let made = db.create_family("made", FamilyOptions::default())?;
    db.put_cf(&made, "of made", "1")?;
    let brief = db.create_family("brief", FamilyOptions::default())?;
    db.drop_family(&brief)?;
    db.set_options(&family, &[("level0_file_num_compaction_trigger", "7")])?;
    db.set_db_options(&[("max_background_jobs", "3")])?;
    db.lock_wal()?;
    db.unlock_wal()?;
    db.delete_files_in_ranges::<&str>(&family, &[(None, None)], true)?;
    db.suggest_compact_range(&family, None, None)?;
    db.verify_checksums()?;
    db.pause_background_work()?;
    db.continue_background_work();
    db.abort_all_compactions();
    db.resume_all_compactions();
    let mut as_it_lies = CheckpointOptions::default();
    as_it_lies.log_size_for_flush = u64::MAX;
    db.checkpoint_opt("/copy", &as_it_lies)?;
    assert!(db.updates_since(1)?.valid());
    db.close()?;
    let error = db.put("late", "1").expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::ShutdownInProgress);
    for path in ["/db", "/copy"] {
        let db = Db::open(path, options.clone())?;
        assert_eq!(db.get("before")?.as_deref(), Some(&b"1"[..]), "{path}");
        assert_eq!(db.get("after")?.as_deref(), Some(&b"1"[..]), "{path}");
        let made = db.family("made").expect("it was made");
        assert_eq!(db.get_cf(&made, "of made")?.as_deref(), Some(&b"1"[..]));
        assert!(db.family("brief").is_none());
    }
    Ok(())
}

/// A writer that only a flush could let in would wait for ever.
#[test]
fn writes_without_flushes_end_where_writers_would_be_stopped() -> Result<()> {
    let options = small();
    let db = Db::open("/db", options.clone())?;
    db.cancel_background_work(false)?;
    let mut written = 0u32;
    let error = loop {
        match db.put(format!("{written:06}"), [b'v'; 1000]) {
            Ok(()) => written += 1,
            Err(e) => break e,
        }
        assert!(written < 10_000, "nothing stops the writer");
    };
    assert_eq!(error.kind(), ErrorKind::ShutdownInProgress);
    assert!(written > 60, "a memtable and more: {written}");
    db.close()?;
    let db = Db::open("/db", options)?;
    let mut found = 0;
    let mut iter = db.iter();
    iter.seek_to_first();
    while iter.valid() {
        found += 1;
        iter.next();
    }
    iter.status()?;
    assert_eq!(found, written);
    Ok(())
}

#[test]
fn a_compaction_by_name_is_forbidden_as_one_by_range_is() -> Result<()> {
    let db = Db::open("/db", small())?;
    let family = db.default_family_handle();
    db.put("key", "1")?;
    db.flush()?;
    db.put("key", "2")?;
    let files = db.live_files()?;
    let table = files.iter().find(|f| f.kind == esker::FileKind::Table);
    let table = [&table.expect("one").path];
    db.disable_manual_compaction();
    for error in [
        db.compact_files(&family, &table, 1).expect_err("disabled"),
        db.compact_range(None, None).expect_err("disabled"),
    ] {
        assert_eq!(error.kind(), ErrorKind::Incomplete);
        assert_eq!(error.subcode(), Subcode::ManualCompactionPaused);
    }
    assert_eq!(tables_at(&db, 0), 1, "nothing was flushed for it");
    db.enable_manual_compaction();
    db.compact_files(&family, &table, 1)?;
    db.close()
}

#[test]
fn aborted_compactions_leave_everything_as_it_was() -> Result<()> {
    let db = Db::open("/db", small().set("disable_auto_compactions", "true")?)?;
    for turn in 0..20u32 {
        for n in 0..200u32 {
            db.put(format!("{n:04}"), format!("{turn}{}", "z".repeat(300)))?;
        }
        db.flush()?;
    }
    db.abort_all_compactions();
    let error = db.compact_range(None, None).expect_err("aborted");
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    db.resume_all_compactions();
    // Once too often is nothing.
    db.resume_all_compactions();
    // One that runs is ended.
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| db.compact_range(None, None));
        db.abort_all_compactions();
        let done = compaction.join().expect("no panic");
        if let Err(e) = done {
            assert_eq!(e.kind(), ErrorKind::Incomplete);
        }
    });
    db.resume_all_compactions();
    db.verify_checksums()?;
    db.compact_range(None, None)?;
    assert_eq!(tables_at(&db, 0), 0);
    for n in 0..200u32 {
        let value = db.get(format!("{n:04}"))?.expect("was put");
        assert!(value.starts_with(b"19z"));
    }
    assert!(db.background_error().is_none());
    Ok(())
}

#[test]
fn writers_wait_while_the_log_is_locked() -> Result<()> {
    let db = Db::open("/db", small())?;
    assert_eq!(
        db.unlock_wal().expect_err("not locked").kind(),
        ErrorKind::Aborted
    );
    db.put("a", "1")?;
    db.lock_wal()?;
    db.lock_wal()?;
    let sequence = db.latest_sequence_number();
    let family = db.default_family_handle();
    let mut impatient = WriteOptions::default();
    impatient.no_slowdown = true;
    let error = db
        .put_opt(&family, "b", "2", &impatient)
        .expect_err("locked");
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    let is_written = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| {
            let done = db.put("b", "2");
            is_written.store(true, Ordering::SeqCst);
            done
        });
        db.unlock_wal()?;
        db.flush()?;
        std::thread::sleep(Duration::from_millis(50));
        assert!(!is_written.load(Ordering::SeqCst), "locked twice");
        assert_eq!(db.latest_sequence_number(), sequence);
        db.unlock_wal()?;
        writer.join().expect("no panic")
    })?;
    assert_eq!(db.get("b")?.as_deref(), Some(&b"2"[..]));
    assert!(!db.session_id().is_empty());
    Ok(())
}

/// Without a log the families agree after a kill at any moment, since they reach tables together.
#[test]
fn families_flushed_together_agree_after_a_kill() -> Result<()> {
    let env = Env::in_memory();
    let options = || {
        small()
            .env(env.clone())
            .set("atomic_flush", "true")
            .expect("exists")
    };
    let db = Db::open("/db", options())?;
    let names = ["one", "two", "three"];
    let families: Vec<_> = names
        .iter()
        .map(|n| db.create_family(n, FamilyOptions::default()))
        .collect::<Result<_>>()?;
    let mut copies = 0;
    for n in 0..4000u32 {
        let mut batch = WriteBatch::new();
        for (i, family) in families.iter().enumerate() {
            // One family fills its memtable far sooner than the others.
            let filler = "f".repeat(if i == 1 { 300 } else { 3 });
            batch.put_cf(family, b"n", format!("{n:05}{filler}").as_bytes())?;
        }
        db.write_opt(&mut batch, &WriteOptions::unlogged())?;
        if n == 2000 {
            db.flush_families(&[&families[0]], &FlushOptions::default())?;
        }
        if n % 400 == 399 {
            copies += 1;
            db.disable_file_deletions();
            let to = format!("/copy{copies}");
            copy_dir(&env, Path::new("/db"), Path::new(&to));
            db.enable_file_deletions(false);
            let killed = Db::open(&to, options())?;
            let seen: Vec<_> = names
                .iter()
                .map(|name| {
                    let family = killed.family(name).expect("the family exists");
                    killed
                        .get_cf(&family, "n")
                        .map(|v| v.map(|v| v[..5].to_vec()))
                })
                .collect::<Result<_>>()?;
            assert!(seen.iter().all(|v| *v == seen[0]), "{seen:?}");
            if n > 2000 {
                assert!(seen[0].as_deref() >= Some(b"02000"), "{seen:?}");
            }
            killed.close()?;
        }
    }
    assert_eq!(copies, 10);
    for family in &families {
        let flushed: u64 = db
            .property_cf(family, "rocksdb.num-entries-active-mem-table")
            .expect("a property")
            .parse()
            .expect("a number");
        assert!(flushed < 4000);
    }
    Ok(())
}
