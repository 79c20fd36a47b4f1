//! Options that must drive something do; options that do not are refused by name.

use super::events::Recorder;
use esker::observe::FlushReason;
use esker::{Db, FamilyOptions, Options, Result, WriteBatch, WriteOptions};
use std::path::Path;
use std::sync::Arc;

fn new() -> Options {
    Options::new().create_if_missing(true)
}

fn names(dir: &Path, of: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    entries
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|n| of(n))
        .collect()
}

/// Tables of the database in `dir` that this process has open.
fn open_tables(dir: &Path) -> usize {
    list_open_tables(dir).len()
}

fn list_open_tables(dir: &Path) -> Vec<std::path::PathBuf> {
    let fds = std::fs::read_dir("/proc/self/fd").expect("a list of open files");
    let targets = fds.filter_map(|e| std::fs::read_link(e.ok()?.path()).ok());
    targets
        .filter(|t| t.starts_with(dir) && t.to_string_lossy().contains(".sst"))
        .collect()
}

#[test]
fn db_write_buffer_size_flushes_the_largest_memtable() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let recorder = Arc::new(Recorder::default());
    let mut options = new().set_all("db_write_buffer_size=1048576;arena_block_size=4096")?;
    options.db.listeners.push(recorder.clone());
    let db = Db::open(dir.path(), options)?;
    let small = db.create_family("small", FamilyOptions::default())?;
    let mut most = 0;
    for n in 0..20_000u32 {
        db.put(n.to_be_bytes(), [7; 200])?;
        if n % 50 == 0 {
            db.put_cf(&small, n.to_be_bytes(), [7; 200])?;
            let open = db
                .property("rocksdb.cur-size-active-mem-table")
                .expect("a property");
            most = most.max(open.parse::<u64>().expect("a number"));
        }
    }
    assert!(most < 1_200_000, "{most} bytes in the open memtable");
    db.close()?;
    let reasons = recorder.flush_reasons();
    assert!(
        reasons
            .iter()
            .any(|(f, r)| f == "default" && *r == FlushReason::WriteBufferManager),
        "{reasons:?}"
    );
    assert!(
        !reasons
            .iter()
            .any(|(f, r)| f == "small" && *r == FlushReason::WriteBufferManager)
    );
    Ok(())
}

#[test]
fn max_total_wal_size_flushes_what_keeps_old_logs() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let recorder = Arc::new(Recorder::default());
    let mut options = new().set_all("max_total_wal_size=300000;write_buffer_size=65536")?;
    options.db.listeners.push(recorder.clone());
    let db = Db::open(dir.path(), options)?;
    let idle = db.create_family("idle", FamilyOptions::default())?;
    db.put_cf(&idle, "a", "1")?;
    for n in 0..20_000u32 {
        db.put(n.to_be_bytes(), [7; 100])?;
    }
    db.wait_for_compaction()?;
    let reasons = recorder.flush_reasons();
    assert!(
        reasons.contains(&("idle".to_owned(), FlushReason::WalFull)),
        "{reasons:?}"
    );
    let logs = names(dir.path(), |n| n.ends_with(".log"));
    let bytes: u64 = logs
        .iter()
        .map(|n| std::fs::metadata(dir.path().join(n)).expect("a log").len())
        .sum();
    assert!(bytes < 600_000, "{bytes} bytes in {logs:?}");
    db.set_db_options(&[("max_total_wal_size", "1000000")])?;
    assert_eq!(db.get_cf(&idle, "a")?.as_deref(), Some(&b"1"[..]));
    Ok(())
}

#[test]
fn max_open_files_bounds_open_tables() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let place = dir.path().canonicalize().expect("a path");
    let options = new().set_all("max_open_files=20;disable_auto_compactions=true;level0_slowdown_writes_trigger=99;level0_stop_writes_trigger=99")?;
    let db = Db::open(&place, options)?;
    for n in 0..50u32 {
        db.put(n.to_be_bytes(), [1; 50])?;
        db.put("zz in every table", [1; 50])?;
        db.flush()?;
    }
    assert_eq!(names(&place, |n| n.ends_with(".sst")).len(), 50);
    for round in 0..3 {
        for n in 0..50u32 {
            assert_eq!(
                db.get(n.to_be_bytes())?.as_deref(),
                Some(&[1; 50][..]),
                "round {round}"
            );
        }
        assert!(
            open_tables(&place) <= 20,
            "{} tables are open",
            open_tables(&place)
        );
    }
    let mut it = db.iter();
    it.seek_to_first();
    let mut seen = 0;
    while it.valid() {
        seen += 1;
        it.next();
    }
    it.status()?;
    assert_eq!(seen, 51);
    // An iterator holds what it reads, whatever the limit is.
    drop(it);
    db.set_db_options(&[("max_open_files", "30")])?;
    db.compact_range(None, None)?;
    // The last reader lets go in its own time.
    for _ in 0..300 {
        if open_tables(&place) <= 1 && names(&place, |n| n.ends_with(".sst")).len() == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(names(&place, |n| n.ends_with(".sst")).len(), 1);
    assert!(
        open_tables(&place) <= 1,
        "readers of deleted tables are closed: {:?}",
        list_open_tables(&place)
    );
    Ok(())
}

#[test]
fn unlogged_data_is_flushed_at_close_unless_told_otherwise() -> Result<()> {
    for (avoid, expected) in [("false", Some(&b"1"[..])), ("true", None)] {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path(), new().set("avoid_flush_during_shutdown", avoid)?)?;
        db.put_opt(
            &db.default_family_handle(),
            "a",
            "1",
            &WriteOptions::unlogged(),
        )?;
        db.close()?;
        drop(db);
        let db = Db::open(dir.path(), Options::new())?;
        assert_eq!(
            db.get("a")?.as_deref(),
            expected,
            "avoid_flush_during_shutdown={avoid}"
        );
    }
    Ok(())
}

#[test]
fn manual_wal_flush_keeps_records_in_memory() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), new().set("manual_wal_flush", "true")?)?;
    db.put("a", "1")?;
    let seen = |key: &str| Db::open_read_only(dir.path(), Options::new())?.get(key);
    assert_eq!(seen("a")?, None);
    db.flush_wal(false)?;
    assert_eq!(seen("a")?.as_deref(), Some(&b"1"[..]));
    Ok(())
}

#[test]
fn wal_compression_makes_small_logs_that_come_back() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), new().set("wal_compression", "kZSTD")?)?;
    for n in 0..2_000u32 {
        db.put(n.to_be_bytes(), [b'x'; 500])?;
    }
    db.close()?;
    drop(db);
    let logs = names(dir.path(), |n| n.ends_with(".log"));
    let bytes: u64 = logs
        .iter()
        .map(|n| std::fs::metadata(dir.path().join(n)).expect("a log").len())
        .sum();
    assert!(bytes < 500_000, "{bytes}");
    let db = Db::open(dir.path(), Options::new())?;
    assert_eq!(
        db.get(1_999u32.to_be_bytes())?.as_deref(),
        Some(&[b'x'; 500][..])
    );
    Ok(())
}

#[test]
fn missing_families_are_ignored_on_request() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), new())?;
    let gone = db.create_family("gone", FamilyOptions::default())?;
    db.drop_family(&gone)?;
    let mut batch = WriteBatch::new();
    batch.put_cf(esker_format::FamilyId(gone.id()), b"a", b"1")?;
    batch.put(b"b", b"2")?;
    db.write(&mut batch).expect_err("the family is gone");
    let options = WriteOptions::default();
    let lenient = with(options, |o| o.ignore_missing_column_families = true);
    db.write_opt(&mut batch, &lenient)?;
    assert_eq!(db.get("b")?.as_deref(), Some(&b"2"[..]));
    drop(db);
    assert_eq!(
        Db::open(dir.path(), Options::new())?.get("b")?.as_deref(),
        Some(&b"2"[..])
    );
    Ok(())
}

fn with(mut options: WriteOptions, change: impl FnOnce(&mut WriteOptions)) -> WriteOptions {
    change(&mut options);
    options
}

#[test]
fn low_priority_writers_give_way_but_finish() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), new().set_all("level0_file_num_compaction_trigger=2;level0_slowdown_writes_trigger=2;level0_stop_writes_trigger=99")?)?;
    let low = with(WriteOptions::default(), |o| o.low_pri = true);
    for n in 0..20u32 {
        db.put_opt(&db.default_family_handle(), n.to_be_bytes(), "x", &low)?;
        db.flush()?;
    }
    db.wait_for_compaction()
}

#[test]
fn filters_of_the_last_level_are_left_out_on_request() -> Result<()> {
    for (skip, expected) in [("true", false), ("false", true)] {
        let dir = tempfile::tempdir().expect("a directory");
        let options = new()
            .set("optimize_filters_for_hits", skip)?
            .set("filter_policy", "bloomfilter:10:false")?;
        let db = Db::open(dir.path(), options)?;
        for round in 0..2 {
            for n in 0..1_000u32 {
                db.put(n.to_be_bytes(), [round; 20])?;
            }
            db.flush()?;
        }
        db.compact_range(None, None)?;
        let table = db
            .live_files()?
            .into_iter()
            .find(|f| f.name.ends_with(".sst"))
            .expect("a table");
        let env = esker::Env::posix();
        let file = env
            .fs
            .open_read(&table.path, esker::env::ReadOptions::default())?;
        let reader = esker_files::table::TableReader::open(file, table.bytes, Default::default())?;
        assert_eq!(
            reader.has_filter(),
            expected,
            "optimize_filters_for_hits={skip}"
        );
        assert_eq!(db.get(5u32.to_be_bytes())?.as_deref(), Some(&[1; 20][..]));
    }
    Ok(())
}

#[test]
fn more_jobs_are_run_when_the_limit_is_raised() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), new())?;
    db.set_db_options(&[("max_background_jobs", "6")])?;
    for n in 0..100u32 {
        db.put(n.to_be_bytes(), "x")?;
    }
    db.flush()?;
    db.close()
}

#[test]
fn old_log_files_are_deleted() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    for _ in 0..6 {
        Db::open(dir.path(), new().set("keep_log_file_num", "3")?)?.close()?;
    }
    assert_eq!(names(dir.path(), |n| n.starts_with("LOG")).len(), 3);
    Ok(())
}

#[test]
fn new_tables_are_read_back_on_request() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(
        dir.path(),
        new()
            .set_all("paranoid_file_checks=true")?
            .set("verify_compression", "true")?,
    )?;
    for n in 0..1_000u32 {
        db.put(n.to_be_bytes(), [1; 20])?;
    }
    db.flush()?;
    db.verify_checksums()
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    for (name, value) in [
        ("best_efforts_recovery", "true"),
        ("disallow_memtable_writes", "true"),
        ("format_version", "9"),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let opened = new().set(name, value).and_then(|o| Db::open(dir.path(), o));
        let error = opened.expect_err(name);
        assert!(error.to_string().contains(name), "{error}");
        assert!(
            names(dir.path(), |_| true).is_empty(),
            "{name}: a refused open leaves nothing behind"
        );
    }
}

#[test]
fn contradictions_among_options_are_in_the_log() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = new().set_all("db_write_buffer_size=1000000;write_buffer_size=8000000")?;
    Db::open(dir.path(), options)?.close()?;
    let log = std::fs::read_to_string(dir.path().join("LOG")).expect("a LOG");
    assert!(
        log.lines()
            .any(|l| l.contains("options:") && l.contains("write_buffer_size")),
        "{log}"
    );
    Ok(())
}
