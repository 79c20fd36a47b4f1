//! Failures of logs, MANIFESTs and edits that happened once, each as the shortest story that shows
//! it.

mod common;

use common::{DB, disk, file, open, options, overwrite, refused, switching, synced, value};
use esker::{Db, FlushOptions, IngestOptions, SstFileWriter, WriteBatch};
use esker_env::FileSystem;
use esker_files::log::{LogWriter, LogWriterOptions};
use esker_format::Seq;
use esker_sim::disk::SimFs;
use std::path::Path;

/// The paths of the logs, oldest first.
fn logs(disk: &SimFs) -> Vec<String> {
    let files = disk.image().list().into_keys();
    files.filter(|p| p.ends_with(".log")).collect()
}

/// The bytes of `path` are other ones.
fn change(disk: &SimFs, path: &str, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = file(disk, path).1;
    edit(&mut bytes);
    overwrite(disk, path, &bytes);
}

#[test]
fn pages_that_a_failed_sync_took_survive_only_in_tables() {
    let disk = disk();
    let db = open(&disk);
    db.put("first", "1").expect("writes");
    let plan = "sync:wal:1:fsync-reverted:once";
    disk.inject(&plan.parse().expect("a plan"));
    let family = db.default_family_handle();
    assert!(db.put_opt(&family, "failed", "x", &synced()).is_err());
    assert!(value(&db, "first").is_some(), "this process has it");
    let died = open(&SimFs::from_image(disk.image()));
    assert!(value(&died, "first").is_none(), "no other one can read it");
    db.resume().expect("resumes");
    db.put("second", "2").expect("writes");
    let died = open(&SimFs::from_image(disk.image()));
    for key in ["first", "second"] {
        assert!(value(&died, key).is_some(), "{key}: in a table, in a log");
    }
}

#[test]
fn a_sequence_that_does_not_fit_made_a_repaired_database_that_did_not_open() {
    let disk = disk();
    let db = open(&disk);
    db.put("first", "1").expect("writes");
    let left = disk.kill();
    drop(db);
    for sequence in [Seq::MAX.0 - 1, u64::MAX] {
        let mut batch = WriteBatch::new();
        batch.put(b"second", b"2").expect("fits");
        batch.set_seq(Seq(sequence));
        let options_of_file = esker_env::WriteOptions::default();
        let file = left.create(Path::new("/record"), options_of_file);
        let mut record = LogWriter::new(file.expect("makes"), LogWriterOptions::default());
        let record = record.as_mut().expect("begins");
        record.add_record(batch.data()).expect("writes");
        record.close().expect("closes");
        let record = left.read_all(Path::new("/record"), u64::MAX);
        let damaged = SimFs::from_image(left.image());
        let path = logs(&damaged).pop().expect("a log");
        change(&damaged, &path, |bytes| {
            bytes.extend(record.expect("reads"))
        });
        let copy = SimFs::from_image(damaged.image());
        let report = Db::repair(DB, &options(&copy)).expect("repairs");
        assert!(!report.is_sound, "{report:?}");
        for disk in [copy, damaged] {
            let db = open(&disk);
            assert!(value(&db, "first").is_some() && value(&db, "second").is_none());
            db.put("third", "3").expect("writes");
            db.close().expect("closes");
            assert!(value(&open(&disk), "third").is_some());
        }
    }
}

/// A database that was killed with a write in each of four logs, and nothing in tables.
fn four_logs() -> SimFs {
    let disk = disk();
    let (db, no_wait) = switching(&disk);
    let family = db.default_family_handle();
    for n in 0..4 {
        if n > 0 {
            db.flush_cf(&family, &no_wait).expect("switches");
        }
        db.put(format!("key{n}"), "value").expect("writes");
    }
    let left = disk.kill();
    drop(db);
    assert_eq!(logs(&left).len(), 4, "a log for each write");
    left
}

/// Where each record of the first block of a log or MANIFEST ends.
fn record_ends(bytes: &[u8]) -> Vec<usize> {
    let mut at = 0;
    std::iter::from_fn(|| {
        let header = bytes.get(at..at + 7)?;
        at += 7 + usize::from(u16::from_le_bytes([header[4], header[5]]));
        Some(at)
    })
    .collect()
}

#[test]
fn a_deleted_log_in_the_middle_was_passed_over() {
    for gone in 0..4 {
        let disk = four_logs();
        let path = logs(&disk).swap_remove(gone);
        disk.remove_file(Path::new(&path)).expect("removes");
        refused(&disk, "the log is missing");
    }
}

#[test]
fn a_log_that_was_not_replayed_was_joined_by_a_later_one() {
    let disk = four_logs();
    let oldest = &logs(&disk)[0];
    change(&disk, oldest, |bytes| {
        let at = bytes.windows(4).position(|w| w == b"key0");
        bytes[at.expect("its key")] ^= 1;
    });
    let db = open(&disk);
    let there = (0..4).filter(|n| value(&db, &format!("key{n}")).is_some());
    assert_eq!(there.count(), 0, "what comes behind the damage");
}

#[test]
fn a_manifest_that_ended_between_two_edits_was_taken_for_whole() {
    let disk = disk();
    let db = open(&disk);
    for n in 0..3 {
        db.put(format!("key{n}"), "value").expect("writes");
        db.flush().expect("flushes");
    }
    // An edit of which the files say nothing, only the log behind it.
    let family = db.create_family("late", options(&disk).family);
    db.put("last", "value").expect("writes");
    let left = disk.kill();
    drop((family.expect("makes"), db));
    let (path, bytes) = file(&left, "/MANIFEST-");
    let ends = record_ends(&bytes);
    assert_eq!(ends.last(), Some(&bytes.len()));
    for end in &ends[..ends.len() - 1] {
        overwrite(&left, &path, &bytes[..*end]);
        let before = left.image().digest();
        let error = Db::open(DB, options(&left)).expect_err("it is refused");
        assert!(error.is_corruption(), "{end}: {error}");
        assert_eq!(left.image().digest(), before, "{end}: {error}");
    }
    overwrite(&left, &path, &bytes[..ends[ends.len() - 2]]);
    refused(&left, "edits are lost");
}

#[test]
fn a_family_went_with_the_end_of_the_manifest_when_nothing_was_written() {
    for keeps_logs in ["false", "true"] {
        let disk = disk();
        let opened = || {
            let options = options(&disk).set("avoid_flush_during_recovery", keeps_logs);
            let options = options.and_then(|o| o.set("avoid_flush_during_shutdown", keeps_logs));
            Db::open(DB, options.expect("options")).expect("opens")
        };
        let db = opened();
        db.put("first", "1").expect("writes");
        db.close().expect("closes");
        // The log of this time has no batch.
        let db = opened();
        drop(
            db.create_family("late", options(&disk).family)
                .expect("makes"),
        );
        db.close().expect("closes");
        let (path, bytes) = file(&disk, "/MANIFEST-");
        let ends = record_ends(&bytes);
        let of_family = bytes.windows(4).position(|w| w == b"late");
        let of_family = of_family.expect("its edit");
        let before = ends.iter().rfind(|end| **end < of_family);
        overwrite(&disk, &path, &bytes[..*before.expect("an edit before")]);
        refused(&disk, "edits are lost");
        overwrite(&disk, &path, &bytes);
        assert_eq!(opened().families().len(), 2);
    }
}

#[test]
fn current_named_a_manifest_that_another_had_replaced() {
    let disk = disk();
    let db = open(&disk);
    db.put("first", "1").expect("writes");
    let (old, bytes) = file(&disk, "/MANIFEST-");
    db.close().expect("closes");
    let db = open(&disk);
    db.put("second", "2").expect("writes");
    db.flush().expect("flushes");
    db.close().expect("closes");
    let (new, _) = file(&disk, "/MANIFEST-");
    let name = |path: &str| format!("{}\n", path.rsplit('/').next().unwrap_or(path));
    // What removed the old one had not come to it.
    overwrite(&disk, &old, &bytes);
    let current = format!("{DB}/CURRENT");
    overwrite(&disk, &current, name(&old).as_bytes());
    refused(&disk, "has been current since");
    let report = Db::repair(DB, &options(&disk)).expect("repairs");
    assert!(
        new.ends_with(report.manifest.as_deref().unwrap_or("none")),
        "{report:?}"
    );
    let db = open(&disk);
    assert!(value(&db, "first").is_some() && value(&db, "second").is_some());
}

#[test]
fn a_failed_edit_left_no_list_of_live_files() {
    let disk = disk();
    let db = open(&disk);
    db.put("first", "1").expect("writes");
    db.flush().expect("flushes");
    db.put("second", "2").expect("writes");
    disk.inject(&"sync:manifest:1:EIO:once".parse().expect("a plan"));
    assert!(db.flush().is_err());
    let copy = common::disk();
    for live in db.live_files().expect("a list") {
        let bytes = disk.read_all(&live.path, u64::MAX).expect("reads");
        let bytes = &bytes[..usize::try_from(live.bytes).expect("small")];
        overwrite(&copy, &format!("{DB}/{}", live.name), bytes);
        if live.kind == esker::FileKind::Manifest {
            let line = format!("{}\n", live.name);
            overwrite(&copy, &format!("{DB}/CURRENT"), line.as_bytes());
        }
    }
    let copy = open(&copy);
    assert_eq!(value(&copy, "first").as_deref(), Some(&b"1"[..]));
    assert_eq!(value(&copy, "second").as_deref(), Some(&b"2"[..]));
}

#[test]
fn one_family_was_ahead_of_another_whose_log_had_lost_its_end() {
    let modes = ["kPointInTimeRecovery", "kTolerateCorruptedTailRecords"];
    for mode in modes {
        let disk = disk();
        let db = open(&disk);
        let other = db
            .create_family("other", options(&disk).family)
            .expect("makes");
        db.put("first", "1").expect("writes");
        db.put_cf(&other, "second", "2").expect("writes");
        db.put("third", "3").expect("writes");
        db.flush_cf(&db.default_family_handle(), &FlushOptions::default())
            .expect("flushes");
        let left = disk.kill();
        drop((other, db));
        let (path, bytes) = file(&left, ".log");
        let ends = record_ends(&bytes);
        let is_end = |at: &usize| ends.contains(at);
        // At the borders of records and between them; the rest of the file is zeros or gone. With
        // the last record, which says that the log ends, nothing is lost.
        let (mut cases, batches) = (0, ends[ends.len() - 2]);
        for at in (0..batches).filter(|at| is_end(at) || at % 7 == 0) {
            for zeros in [false, true] {
                let mut short = bytes[..at].to_vec();
                short.resize(if zeros { bytes.len() } else { at }, 0);
                overwrite(&left, &path, &short);
                let tolerant = options(&left).set("wal_recovery_mode", mode);
                let error = Db::open(DB, tolerant.expect("an option")).err();
                let error = error.unwrap_or_else(|| panic!("{mode}: opens, cut at {at}"));
                assert!(error.is_corruption(), "{mode}, {at}: {error}");
                cases += 1;
            }
        }
        assert!(cases > 30, "{cases} lengths");
        overwrite(&left, &path, &bytes);
        let db = open(&left);
        assert!(value(&db, "third").is_some(), "nothing is lost");
    }
}

#[test]
fn an_ingested_file_was_ahead_of_a_log_that_was_damaged_later() {
    let disk = disk();
    let db = open(&disk);
    db.put("first", "1").expect("writes");
    db.put("second", "2").expect("writes");
    let mut writer = SstFileWriter::new(&options(&disk)).expect("a writer");
    writer.open("/file.sst").expect("makes");
    writer.put("third", "3").expect("fits");
    writer.finish().expect("ends");
    let family = db.default_family_handle();
    db.ingest(&family, &["/file.sst"], &IngestOptions::default())
        .expect("ingests");
    db.put("fourth", "4").expect("writes");
    let left = disk.kill();
    drop((family, db));
    let (path, bytes) = file(&left, ".log");
    let behind = bytes.windows(6).position(|w| w == b"fourth");
    let ends = record_ends(&bytes);
    // The last two records are the MANIFEST's length and what was written behind the file.
    let synced = ends[ends.len() - 3];
    assert!(behind.expect("its key") > synced);
    for end in (0..synced).filter(|at| ends.contains(at) || at % 5 == 0) {
        overwrite(&left, &path, &bytes[..end]);
        refused(&left, "tables were ingested");
    }
    overwrite(&left, &path, &bytes[..synced]);
    let db = open(&left);
    assert!(value(&db, "second").is_some() && value(&db, "third").is_some());
    assert!(
        value(&db, "fourth").is_none(),
        "nothing says how long it was"
    );
}
