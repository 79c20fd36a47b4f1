//! What crashes and failing calls did to the database once, each as the shortest story that shows it.
//! The file is long because there have been as many stories.

mod common;

use common::{DB, disk, env, file, open, options, overwrite, refused, switching, synced, value};
use esker::merge_operator::StringAppend;
use esker::{
    CompactRangeOptions, Db, FlushOptions, HealthState, IngestOptions, Options, ReadOptions,
    SstFileWriter, WriteBatch, WriteOptions,
};
use esker_backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
use esker_env::FileSystem;
use esker_files::log::{LogWriter, LogWriterOptions};
use esker_format::Seq;
use esker_sim::crash::{Point, Variant};
use esker_sim::disk::{Image, Op, SimFs};
use esker_sim::run::Counts;
use esker_sim::trial::{Base, trial};
use esker_sim::world::World;
use std::path::Path;
use std::sync::Arc;

fn cut(disk: &SimFs, variant: Variant) -> SimFs {
    let log = disk.log();
    SimFs::from_image(Point::at(&log, log.ops.len()).state(variant, 7))
}

#[test]
fn a_flush_of_one_family_was_ahead_of_what_others_wrote_before() {
    let disk = disk();
    let db = open(&disk);
    let other = db
        .create_family("other", options(&disk).family)
        .expect("makes");
    db.put("first", "1").expect("writes");
    db.put_cf(&other, "second", "2").expect("writes");
    db.flush_cf(&other, &FlushOptions::default())
        .expect("flushes");
    let left = open(&cut(&disk, Variant::Lost));
    let other = left.family("other").expect("there");
    let second = left.get_cf(&other, "second").expect("reads");
    assert!(second.is_some(), "it was flushed");
    assert!(value(&left, "first").is_some(), "it was written before");
}

#[test]
fn a_sync_did_not_reach_logs_that_recovery_had_kept() {
    let disk = disk();
    let kept = |disk: &SimFs| options(disk).set("avoid_flush_during_recovery", "true");
    let db = Db::open(DB, kept(&disk).expect("an option")).expect("opens");
    db.put("first", "1").expect("writes");
    let next = disk.kill();
    let again = Db::open(DB, kept(&next).expect("an option")).expect("opens");
    let family = again.default_family_handle();
    again
        .put_opt(&family, "second", "2", &synced())
        .expect("writes");
    let left = open(&cut(&next, Variant::Lost));
    assert!(value(&left, "second").is_some(), "it was synced");
    assert!(value(&left, "first").is_some(), "it was written before");
    drop(db);
}

/// Torn, it seemed to have lost batches that an ingested table was ahead of.
#[test]
fn a_log_without_a_batch_that_recovery_had_kept_was_not_synced() {
    let disk = disk();
    let kept = |disk: &SimFs| {
        options(disk)
            .set("avoid_flush_during_recovery", "true")
            .and_then(|o| o.set("wal_compression", "kZSTD"))
            .expect("options")
    };
    let db = Db::open(DB, kept(&disk)).expect("opens");
    db.flush_wal(false).expect("writes");
    let next = disk.kill();
    let db = Db::open(DB, kept(&next)).expect("opens");
    let mut writer = SstFileWriter::new(&kept(&next)).expect("makes");
    writer.open("/db/new").expect("creates");
    writer.put(b"key", b"value").expect("adds");
    writer.finish().expect("ends");
    let family = db.default_family_handle();
    db.ingest(&family, &["/db/new"], &IngestOptions::default())
        .expect("ingests");
    let log = next.log();
    let point = Point::at(&log, log.ops.len());
    for seed in 0..100 {
        let left = SimFs::from_image(point.state(Variant::Mixed, seed));
        let left = Db::open(DB, kept(&left)).unwrap_or_else(|e| panic!("{seed}: {e}"));
        assert!(value(&left, "key").is_some());
    }
}

#[test]
fn the_lost_end_of_an_older_log_was_skipped_over() {
    let disk = disk();
    let db = open(&disk);
    db.pause_background_work().expect("pauses");
    db.put("first", "1").expect("writes");
    let mut no_wait = FlushOptions::default();
    no_wait.wait = false;
    let family = db.default_family_handle();
    db.flush_cf(&family, &no_wait).expect("switches");
    db.put("second", "2").expect("writes");
    let log = disk.log();
    let whole = Point::at(&log, log.ops.len()).state(Variant::Kept, 0);
    // The bytes of the older log were never written back; those of the newer one were.
    let (older, _) = whole
        .list()
        .into_iter()
        .find(|(path, bytes)| path.ends_with(".log") && !bytes.is_empty())
        .expect("a log with a batch");
    for mode in ["kPointInTimeRecovery", "kTolerateCorruptedTailRecords"] {
        let left = SimFs::from_image(whole.clone());
        left.truncate(Path::new(&older), 0).expect("cuts");
        let tolerant = options(&left).set("wal_recovery_mode", mode);
        let left = Db::open(DB, tolerant.expect("an option")).expect("opens");
        assert_eq!(value(&left, "first"), None);
        assert_eq!(value(&left, "second"), None, "it is behind what was lost");
    }
    drop(db);
}

#[test]
fn a_crash_while_it_was_made_left_a_database_that_did_not_open() {
    let disk = disk();
    drop(open(&disk));
    let log = disk.log();
    for at in 0..=log.ops.len() {
        for variant in [
            Variant::Lost,
            Variant::Kept,
            Variant::NamesLost,
            Variant::DataLost,
        ] {
            drop(open(&SimFs::from_image(
                Point::at(&log, at).state(variant, 0),
            )));
        }
    }
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
        // At the borders of records and between them; the rest of the file is zeros or gone. With the last record, which
        // says that the log ends, nothing is lost.
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
