//! Seven ways in which the best-known engine hangs, aborts, or loses data without a word, and what
//! Esker answers.
//!
//! Each test is one case on a simulated disk. What was refused must be byte for byte as it was.

mod common;

use common::{DB, Lines, disk, file, open, options, overwrite, refused, switching, synced, value};
use esker::{Db, HealthState};
use esker_env::FileSystem;
use esker_files::manifest::{ManifestReader, ManifestWriter};
use esker_format::edit::VersionEdit;
use esker_format::{FileNo, Level};
use esker_sim::corruption::{Change, Damage, Outcome, Subject};
use esker_sim::crash::{Point, Variant};
use esker_sim::disk::SimFs;
use esker_sim::sim_env::SimEnv;
use std::path::Path;
use std::sync::Arc;

/// Where the type byte of each record of a log or MANIFEST is, for those in its first block.
fn type_bytes(bytes: &[u8]) -> Vec<usize> {
    let mut at = 0;
    std::iter::from_fn(|| {
        let header = bytes.get(at..at + 7)?;
        let kind = at + 6;
        at += 7 + usize::from(u16::from_le_bytes([header[4], header[5]]));
        Some(kind)
    })
    .collect()
}

/// A database in whose MANIFEST and log there are several records, closed.
fn closed() -> Subject {
    Subject::simulated(2).expect("the workload runs")
}

#[test]
fn case_1_a_flipped_bit_in_the_type_of_a_record_ends_opening_at_once() {
    let (subject, world) = (closed(), SimEnv::default());
    let mut cases = 0;
    for (path, bytes) in subject.files() {
        if !path.contains("/MANIFEST-") && !path.ends_with(".log") {
            continue;
        }
        for at in type_bytes(&bytes) {
            for bit in 0..8 {
                let change = Change::Flip(at, bit);
                let path = path.clone();
                let damage = Damage {
                    path,
                    change,
                    mode: 0,
                };
                subject
                    .suffer(&world, &damage)
                    .unwrap_or_else(|e| panic!("{damage}: {e}"));
                cases += 1;
            }
        }
    }
    assert!(cases > 50, "{cases} bits");
}

#[test]
fn case_2_every_bit_of_a_manifest_is_missed_and_no_table_goes() {
    let (subject, world) = (closed(), SimEnv::default());
    let (mut cases, mut refused) = (0, 0);
    for damage in Damage::every(&subject.files()) {
        let is_flip = matches!(damage.change, Change::Flip(..));
        if !damage.path.contains("/MANIFEST-") || !is_flip {
            continue;
        }
        match subject.suffer(&world, &damage) {
            Ok(Outcome::Refused) => refused += 1,
            Ok(Outcome::Same | Outcome::Unreadable) => {}
            other => panic!("{damage}: {other:?}"),
        }
        cases += 1;
    }
    println!("flips in a MANIFEST: {cases}, refused: {refused}, silent losses: 0");
    assert!(
        cases > 1000 && refused * 10 > cases * 9,
        "{refused} of {cases}"
    );
}

#[test]
fn case_3_a_missing_current_is_not_taken_for_a_new_database() {
    let disk = disk();
    let db = open(&disk);
    db.put("key", "value").expect("writes");
    db.flush().expect("flushes");
    db.close().expect("closes");
    disk.remove_file(Path::new("/db/CURRENT")).expect("removes");
    refused(&disk, "CURRENT is missing");
}

#[test]
fn case_4_a_damaged_byte_in_a_synced_log_is_reported_and_the_log_is_kept() {
    let disk = disk();
    let db = open(&disk);
    let family = db.default_family_handle();
    for key in ["first", "second", "third"] {
        db.put_opt(&family, key, "value", &synced())
            .expect("writes");
    }
    db.close().expect("closes");
    let (path, mut bytes) = file(&disk, ".log");
    let at = bytes
        .windows(6)
        .position(|w| w == b"second")
        .expect("its key");
    bytes[at] ^= 1;
    overwrite(&disk, &path, &bytes);
    let lines = Arc::new(Lines::default());
    let mut heard = options(&disk);
    heard.db.info_log = Some(lines.clone());
    let db = Db::open(DB, heard).expect("opens");
    assert!(value(&db, "first").is_some(), "it is before the damage");
    assert_eq!(
        [value(&db, "second"), value(&db, "third")],
        [None, None],
        "a prefix"
    );
    assert!(lines.have("checksum mismatch"), "the log says so");
    assert_eq!(
        file(&disk, ".damaged").1,
        bytes,
        "what is left of it is kept"
    );
}

#[test]
fn case_4_a_deleted_log_is_missed() {
    let disk = disk();
    let db = open(&disk);
    db.put("first", "1").expect("writes");
    db.flush().expect("flushes");
    db.put("second", "2").expect("writes");
    db.close().expect("closes");
    let (path, bytes) = file(&disk, ".log");
    disk.remove_file(Path::new(&path)).expect("removes");
    refused(&disk, "the log is missing");
    // The same while it was open: the process was killed.
    overwrite(&disk, &path, &bytes);
    let db = open(&disk);
    db.put("third", "3").expect("writes");
    let next = disk.kill();
    drop(db);
    let (path, _) = file(&next, ".log");
    next.remove_file(Path::new(&path)).expect("removes");
    refused(&next, "the log is missing");
    let skipping = options(&next).set("wal_recovery_mode", "kSkipAnyCorruptedRecords");
    let db = Db::open(DB, skipping.expect("an option")).expect("opens without it");
    assert_eq!(value(&db, "second").as_deref(), Some(&b"2"[..]));
    assert_eq!(value(&db, "third"), None);
}

#[test]
fn case_5_an_older_log_that_is_lost_leaves_no_hole() {
    let disk = disk();
    let (db, no_wait) = switching(&disk);
    let family = db.default_family_handle();
    for n in 0..4 {
        db.put(format!("key{n}"), "value").expect("writes");
        db.flush_cf(&family, &no_wait).expect("switches");
    }
    let log = disk.log();
    let point = Point::at(&log, log.ops.len());
    let mut prefixes = [0; 5];
    for seed in 0..200 {
        let variant = [Variant::DataLost, Variant::Mixed][seed % 2];
        let left = open(&SimFs::from_image(point.state(variant, seed as u64)));
        let there = |n: &usize| value(&left, &format!("key{n}")).is_some();
        let count = (0..4).filter(there).count();
        assert!((0..count).all(|n| there(&n)), "state {seed} has a hole");
        prefixes[count] += 1;
    }
    println!("crash states: 200, holes: 0, by writes that survived: {prefixes:?}");
    assert!(
        prefixes[0] + prefixes[4] < 200,
        "some logs survive without others"
    );
    drop(db);
}

#[test]
fn case_6_a_full_quota_latches_nothing_and_a_failing_disk_aborts_nothing() {
    for (failure, by_itself) in [("EDQUOT", true), ("ENOSPC", true), ("EIO", false)] {
        let disk = disk();
        let retry = options(&disk).set("bgerror_resume_retry_interval", "10000");
        let db = Db::open(DB, retry.expect("an option")).expect("opens");
        db.put("first", "1").expect("writes");
        let plan = format!("append:any:1:{failure}:until");
        disk.inject(&plan.parse().expect("a plan"));
        assert!(
            db.put("refused", "x").is_err(),
            "{failure}: an error, no abort"
        );
        assert!(value(&db, "first").is_some(), "{failure}: reads go on");
        disk.heal();
        if !by_itself && db.health() != HealthState::Running {
            db.resume().expect("resumes");
        }
        let clock = &db.env().clock;
        let start = clock.now_us();
        while let Err(e) = db.put("second", "2") {
            let waited = clock.now_us() - start;
            assert!(waited < 30_000_000, "{failure}: {e}");
            clock.sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn case_7_overlapping_tables_in_a_manifest_are_refused_and_stay() {
    let disk = disk();
    let db = open(&disk);
    for _ in 0..2 {
        db.put("a", "1").expect("writes");
        db.put("z", "2").expect("writes");
        db.flush().expect("flushes");
    }
    db.close().expect("closes");
    let (path, bytes) = file(&disk, "/MANIFEST-");
    let mut reader = ManifestReader::open(&disk, Path::new(&path)).expect("opens");
    let mut edit = VersionEdit::default();
    while let Some(group) = reader.next_group().expect("reads") {
        for (level, file) in group.edits.into_iter().flat_map(|e| e.new_files) {
            edit.delete_file(level, file.number);
            edit.add_file(Level(1), file);
        }
    }
    assert_eq!(edit.new_files.len(), 2, "both tables");
    let append = disk
        .open_append(Path::new(&path), esker_env::WriteOptions::default())
        .expect("opens");
    let mut writer = ManifestWriter::over(append, FileNo(0)).expect("goes on");
    writer.append(&[edit]).expect("appends");
    writer.sync().expect("syncs");
    writer.close().expect("closes");
    assert!(file(&disk, "/MANIFEST-").1.len() > bytes.len());
    refused(&disk, "at or after");
}
