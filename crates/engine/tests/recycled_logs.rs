//! Logs that begin in the files of older ones (`recycle_log_file_num`): that they do, what a
//! process leaves that ends without closing them, and that nobody who still reads the older ones
//! notices.

mod common;
mod rocksdb_tools;

use common::copy_dir;
use esker::env::Env;
use esker::{Db, Options, Result};
use rocksdb_tools::{Content, Contents, Tally, Tools, compare_ours, with_suffix};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory")
}

/// Memtables of 200 KB, so that logs follow each other fast.
fn options(more: &str) -> Options {
    let mut options = Options::new().create_if_missing(true);
    let all = format!("write_buffer_size=200000;recycle_log_file_num=3;{more}");
    for (name, value) in all.split(';').filter_map(|pair| pair.split_once('=')) {
        options.set_in_place(name, value).expect("an option");
    }
    options
}

/// Writes until `files` logs have begun in the files of others, or many have not: what was written,
/// and how many did.
fn fill(db: &Db, dir: &Path, content: &mut Content, files: usize) -> Result<usize> {
    let mut seen = BTreeMap::<u64, Vec<PathBuf>>::new();
    for i in 0..60_000 {
        let key = format!("key{:06}", i * 7919 % 5000).into_bytes();
        let value = format!("value {i} of {} ", content.len()).repeat(1 + i % 20);
        db.put(&key, &value)?;
        content.insert(key, value.into_bytes());
        if i % 20 != 0 {
            continue;
        }
        for log in with_suffix(dir, ".log") {
            if let Ok(metadata) = log.metadata() {
                let names = seen.entry(metadata.ino()).or_default();
                if !names.contains(&log) {
                    names.push(log);
                }
            }
        }
        // A number of a file may come back after it was deleted, but hardly so often.
        let again = seen.values().map(|names| names.len() - 1).sum();
        if again >= files && i % 1000 == 980 {
            return Ok(again);
        }
    }
    Ok(0)
}

fn expected(content: &Content) -> Contents {
    Contents::from([("default".to_owned(), content.clone())])
}

/// Returns whether the filesystem of `dir` lets files be written over; says so when not.
fn is_recycled(begun: usize) -> bool {
    if begun == 0 {
        println!("skipped: this filesystem does not tell who has a file open");
    }
    begun > 0
}

const WAYS: [&str; 4] = [
    "",
    "allow_mmap_writes=true",
    "wal_compression=kZSTD",
    "manual_wal_flush=true;max_background_jobs=4",
];

#[test]
fn what_a_killed_process_leaves_is_all_there_and_nothing_is_taken_for_damage() {
    let tools = Tools::find();
    for way in WAYS {
        let dir = directory();
        let place = dir.path().join("db");
        let db = Db::open(&place, options(way)).expect("open");
        let mut content = Content::new();
        for round in 0..3 {
            let begun = fill(&db, &place, &mut content, 4).expect("put");
            if !is_recycled(begun) {
                return;
            }
            db.flush_wal(false).expect("handed over");
            let copy = dir.path().join(format!("copy{round}"));
            copy_dir(&Env::posix(), &place, &copy);
            let newest = with_suffix(&copy, ".log").into_iter().max().expect("a log");
            let len = newest.metadata().expect("it is there").len();
            println!(
                "{way}: {begun} logs begun, the newest has {} of {len} bytes",
                db.current_wal_file().expect("a log").bytes
            );
            if let Some(tools) = tools {
                let theirs = dir.path().join(format!("theirs{round}"));
                copy_dir(&Env::posix(), &place, &theirs);
                tools.compare(&theirs, &expected(&content), way, &mut Tally::default());
            }
            for more in ["", "avoid_flush_during_recovery=true"] {
                let again = Db::open(&copy, options(&format!("{way};{more}")));
                let again = again.expect("open the copy");
                compare_ours(&again, &expected(&content), way);
                again.close().expect("close");
                let aside = with_suffix(&copy, ".damaged");
                assert!(aside.is_empty(), "{way} {more}: {aside:?}");
            }
        }
        db.close().expect("close");
        // Closed the newest log ends where its records do, and none is kept that is not needed.
        let again = Db::open(&place, options("wal_recovery_mode=kAbsoluteConsistency"));
        let again = again.expect("open what was closed");
        compare_ours(&again, &expected(&content), way);
    }
}

#[test]
fn whoever_reads_an_older_log_reads_on_in_peace() {
    let dir = directory();
    let place = dir.path().join("db");
    let db = Db::open(&place, options("")).expect("open");
    let mut content = Content::new();
    fill(&db, &place, &mut content, 4).expect("put");
    db.set_options(
        &db.default_family_handle(),
        &[("write_buffer_size", "4000000")],
    )
    .expect("an option");
    db.flush().expect("flush");
    let from = db.latest_sequence_number() + 1;
    let count = 1400;
    for i in 0..count {
        let (key, value) = (format!("key{i:06}"), "value".repeat(200));
        db.put(&key, &value).expect("put");
        content.insert(key.into_bytes(), value.into_bytes());
    }
    let mut log = db.updates_since(from).expect("it is in the log");
    db.set_options(
        &db.default_family_handle(),
        &[("write_buffer_size", "200000")],
    )
    .expect("an option");
    db.flush().expect("flush");
    fill(&db, &place, &mut content, 8).expect("put");
    // All of that log is there, whatever became of its name.
    for n in 0..count {
        assert!(log.valid(), "{n}: {:?}", log.status());
        assert_eq!(log.sequence(), from + n);
        log.next();
    }
    compare_ours(&db, &expected(&content), "afterwards");
}

#[test]
fn checkpoints_and_held_back_deletions_keep_their_logs() {
    let dir = directory();
    let place = dir.path().join("db");
    let db = Db::open(&place, options("")).expect("open");
    let mut content = Content::new();
    if !is_recycled(fill(&db, &place, &mut content, 4).expect("put")) {
        return;
    }
    db.disable_file_deletions();
    let logs = db.sorted_wal_files().expect("listed").into_iter();
    let logs: Vec<_> = logs
        .map(|log| place.join(log.path_name().trim_start_matches('/')))
        .collect();
    assert!(!logs.is_empty());
    let held: Vec<_> = logs
        .iter()
        .map(|l| l.metadata().expect("there").ino())
        .collect();
    for i in 0..20_000 {
        db.put(format!("more{i}"), "value".repeat(20)).expect("put");
        content.insert(
            format!("more{i}").into_bytes(),
            "value".repeat(20).into_bytes(),
        );
    }
    for (log, inode) in logs.iter().zip(held) {
        assert_eq!(log.metadata().expect("still there").ino(), inode);
    }
    db.enable_file_deletions(false);
    let copies: Vec<_> = (0..3)
        .map(|n| {
            let copy = dir.path().join(format!("checkpoint{n}"));
            db.checkpoint(&copy).expect("a checkpoint");
            let then = content.clone();
            fill(&db, &place, &mut content, 3).expect("put");
            (copy, then)
        })
        .collect();
    for (copy, then) in copies {
        let again = Db::open(&copy, options("")).expect("open");
        compare_ours(&again, &expected(&then), "a checkpoint");
    }
}

#[test]
fn logs_that_go_to_an_archive_or_must_end_exactly_are_not_recycled() {
    for more in [
        "WAL_ttl_seconds=3600",
        "WAL_size_limit_MB=100",
        "wal_recovery_mode=kAbsoluteConsistency",
        "wal_recovery_mode=kTolerateCorruptedTailRecords",
    ] {
        let dir = directory();
        let place = dir.path().join("db");
        let db = Db::open(&place, options(more)).expect("open");
        let mut content = Content::new();
        for i in 0..20_000 {
            let (key, value) = (format!("key{i}"), "value".repeat(20));
            db.put(&key, &value).expect("put");
            content.insert(key.into_bytes(), value.into_bytes());
        }
        let (number, bytes) = {
            let log = db.current_wal_file().expect("a log");
            (log.number, log.bytes)
        };
        let log = place.join(format!("{number:06}.log"));
        assert_eq!(log.metadata().expect("there").len(), bytes, "{more}");
        // The type of the first record: a legacy one.
        assert!(
            bytes == 0 || std::fs::read(&log).expect("read")[6] < 5,
            "{more}"
        );
        compare_ours(&db, &expected(&content), more);
    }
}
