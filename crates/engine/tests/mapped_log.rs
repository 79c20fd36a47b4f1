//! Logs that are put into a mapping (`allow_mmap_writes`): with zeros behind their records while
//! they are open, for everybody who reads them then, and after a process that ended without closing
//! them.

mod common;
mod rocksdb_tools;

use common::copy_dir;
use esker::env::Env;
use esker::{CheckpointOptions, Db, Options, Result};
use rocksdb_tools::{Content, Contents, Tally, Tools, compare_ours};
use std::path::{Path, PathBuf};

/// A directory on the disk of the build, and not in memory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory")
}

fn options(more: &str) -> Options {
    let mut options = Options::new()
        .create_if_missing(true)
        .set("allow_mmap_writes", "true")
        .expect("an option");
    for (name, value) in more.split(';').filter_map(|pair| pair.split_once('=')) {
        options.set_in_place(name, value).expect("an option");
    }
    options
}

fn put(db: &Db, from: usize, to: usize) -> Result<Content> {
    let mut content = Content::new();
    for i in from..to {
        let (key, value) = (
            format!("key{i:06}"),
            format!("value {i} ").repeat(1 + i % 40),
        );
        db.put(&key, &value)?;
        content.insert(key.into_bytes(), value.into_bytes());
    }
    Ok(content)
}

/// The log with the highest number, and its bytes.
fn newest_log(dir: &Path) -> (PathBuf, Vec<u8>) {
    let mut logs = rocksdb_tools::with_suffix(dir, ".log");
    logs.sort();
    let log = logs.pop().expect("a log");
    let bytes = std::fs::read(&log).expect("it can be read");
    (log, bytes)
}

/// Returns whether the logs of the directory's filesystem are mapped; says so when not.
fn is_mapped(db: &Db, dir: &Path) -> bool {
    let (_, bytes) = newest_log(dir);
    let known = db.current_wal_file().expect("a log").bytes;
    let is_mapped = bytes.len() as u64 > known;
    if is_mapped {
        assert!(bytes[known as usize..].iter().all(|b| *b == 0));
        assert!(bytes[..known as usize].iter().any(|b| *b != 0));
    } else {
        println!("skipped: this filesystem is not mapped");
    }
    is_mapped
}

#[test]
fn what_a_killed_process_leaves_is_all_there_for_esker_and_rocksdb() {
    let dir = directory();
    let db = Db::open(dir.path().join("db"), options("")).expect("open");
    // Some of it in the first window, some in the third.
    let mut content = put(&db, 0, 10).expect("put");
    let place = dir.path().join("db");
    if !is_mapped(&db, &place) {
        return;
    }
    let tools = Tools::find();
    for (round, to) in [100, 9_000].into_iter().enumerate() {
        let from = content.len();
        content.extend(put(&db, from, to).expect("put"));
        let copy = dir.path().join(format!("copy{round}"));
        copy_dir(&Env::posix(), &place, &copy);
        assert!(newest_log(&copy).1.ends_with(&[0; 64]), "zeros at the end");
        let expected = Contents::from([("default".to_owned(), content.clone())]);
        if let Some(tools) = tools {
            let theirs = dir.path().join(format!("theirs{round}"));
            copy_dir(&Env::posix(), &place, &theirs);
            tools.compare(
                &theirs,
                &expected,
                "a log with zeros behind",
                &mut Tally::default(),
            );
        }
        for more in ["", "avoid_flush_during_recovery=true"] {
            let again = Db::open(&copy, options(more)).expect("open the copy");
            compare_ours(&again, &expected, "after a kill");
            again.close().expect("close");
        }
    }
    db.close().expect("close");
    assert!(!newest_log(&place).1.ends_with(&[0; 64]), "cut when closed");
}

#[test]
fn followers_read_along_while_records_are_put() {
    let dir = directory();
    let place = dir.path().join("db");
    let db = Db::open(
        &place,
        options("write_buffer_size=400000;WAL_ttl_seconds=3600"),
    )
    .expect("open");
    let count = 20_000;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| put(&db, 0, count).expect("put"));
        let mut seen = 0;
        while seen < count as u64 {
            let Ok(mut log) = db.updates_since(seen + 1) else {
                assert!(!writer.is_finished() || seen < count as u64);
                continue;
            };
            while log.valid() {
                assert_eq!(log.sequence(), seen + 1);
                seen += u64::from(log.batch().count());
                log.next();
            }
            if let Err(e) = log.status() {
                assert_eq!(e.kind(), esker::ErrorKind::TryAgain, "{e}");
            }
        }
        writer.join().expect("no panic");
    });
}

#[test]
fn a_checkpoint_has_the_records_and_no_zeros() {
    let dir = directory();
    let place = dir.path().join("db");
    let db = Db::open(&place, options("")).expect("open");
    let content = put(&db, 0, 3_000).expect("put");
    let copy = dir.path().join("checkpoint");
    let mut how = CheckpointOptions::default();
    how.log_size_for_flush = u64::MAX;
    db.checkpoint_opt(&copy, &how).expect("a checkpoint");
    let expected = Contents::from([("default".to_owned(), content)]);
    assert_eq!(
        newest_log(&copy).1.len() as u64,
        db.current_wal_file().expect("a log").bytes
    );
    compare_ours(
        &Db::open(&copy, options("")).expect("open"),
        &expected,
        "the checkpoint",
    );
}

#[test]
fn modes_that_refuse_a_torn_record_get_logs_without_zeros() {
    for mode in ["kAbsoluteConsistency", "kTolerateCorruptedTailRecords"] {
        let dir = directory();
        let place = dir.path().join("db");
        let options = options(&format!("wal_recovery_mode={mode}"));
        let db = Db::open(&place, options.clone()).expect("open");
        let content = put(&db, 0, 50).expect("put");
        assert_eq!(
            newest_log(&place).1.len() as u64,
            db.current_wal_file().expect("a log").bytes
        );
        let copy = dir.path().join("copy");
        copy_dir(&Env::posix(), &place, &copy);
        let again = Db::open(&copy, options).expect("open the copy");
        compare_ours(
            &again,
            &Contents::from([("default".to_owned(), content)]),
            mode,
        );
    }
}
