//! Failures that crashes and failing calls brought about in the database once, each as the shortest
//! story that shows it.

mod common;

use common::{DB, disk, env, open, options, synced, value};
use esker::merge_operator::StringAppend;
use esker::{
    CompactRangeOptions, Db, FlushOptions, HealthState, IngestOptions, Options, ReadOptions,
    SstFileWriter, WriteBatch, WriteOptions,
};
use esker_backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
use esker_env::FileSystem;
use esker_sim::crash::{Point, Variant};
use esker_sim::disk::{Image, Op, SimFs};
use esker_sim::run::Counts;
use esker_sim::sim_env::SimEnv;
use esker_sim::trial::{Base, trial};
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
fn current_named_a_manifest_whose_name_was_lost() {
    let disk = disk();
    drop(open(&disk));
    drop(open(&disk));
    let log = disk.log();
    let renames = log
        .ops
        .iter()
        .enumerate()
        .filter(|(_, op)| matches!(op, Op::Rename { .. }));
    for (at, _) in renames {
        let point = Point::at(&log, at + 1);
        for seed in 0..20 {
            drop(open(&SimFs::from_image(
                point.state(Variant::OneName, seed),
            )));
        }
    }
}

#[test]
fn a_new_directory_was_not_synced_into_its_parent() {
    let disk = SimFs::new();
    let db = open(&disk);
    let family = db.default_family_handle();
    db.put_opt(&family, "first", "1", &synced())
        .expect("writes");
    let left = open(&cut(&disk, Variant::Lost));
    assert!(value(&left, "first").is_some(), "it was synced");
}

#[test]
fn a_flush_of_all_families_left_out_one_that_was_switched_with_them() {
    for seed in 112..115 {
        let world = SimEnv::controlled();
        let (counts, failures) = esker_sim::run::run(&world, seed, esker_sim::run::USUAL);
        assert!(
            counts.states > 100 && failures.is_empty(),
            "{}",
            failures[0]
        );
    }
}

#[test]
fn writes_after_a_failed_sync_were_cut_off_from_what_it_lost() {
    for what in ["fsync-kept", "fsync-reverted", "fsync-dropped"] {
        let disk = disk();
        let db = open(&disk);
        let other = db
            .create_family("other", options(&disk).family)
            .expect("makes");
        db.put("first", "1").expect("writes");
        disk.inject(&format!("sync:wal:1:{what}:once").parse().expect("a plan"));
        let family = db.default_family_handle();
        assert!(db.put_opt(&family, "failed", "x", &synced()).is_err());
        assert_ne!(db.health(), HealthState::Running);
        assert!(value(&db, "first").is_some(), "reads go on");
        db.resume().expect("resumes");
        db.put_opt(&other, "second", "2", &synced())
            .expect("writes");
        for variant in [Variant::Lost, Variant::DataLost, Variant::Ext4Lost] {
            let left = open(&cut(&disk, variant));
            assert!(
                value(&left, "first").is_some(),
                "{what}, {variant}: acknowledged before"
            );
            let other = left.family("other").expect("there");
            let second = left.get_cf(&other, "second").expect("reads");
            assert!(second.is_some(), "{what}, {variant}: synced");
        }
    }
}

#[test]
fn writes_resume_after_a_quota_without_reopening() {
    for errno in ["ENOSPC", "EDQUOT"] {
        let disk = disk();
        let retry = options(&disk).set("bgerror_resume_retry_interval", "10000");
        let db = Db::open(DB, retry.expect("an option")).expect("opens");
        db.put("first", "1").expect("writes");
        disk.inject(
            &format!("append:any:1:{errno}:until")
                .parse()
                .expect("a plan"),
        );
        assert!(db.put("refused", "x").is_err());
        assert!(value(&db, "first").is_some(), "reads go on");
        disk.heal();
        let clock = &db.env().clock;
        let start = clock.now_us();
        while let Err(e) = db.put("second", "2") {
            assert!(clock.now_us() - start < 30_000_000, "{errno}: {e}");
            clock.sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn an_empty_family_seemed_to_be_ahead_of_a_torn_log() {
    let mut opened = 0;
    for seed in 0..8 {
        let disk = disk();
        SimEnv::controlled().play(seed, |world| {
            let atomic = Options::new()
                .create_if_missing(true)
                .env(world.env(&disk, 1))
                .set("atomic_flush", "true")
                .expect("an option");
            let family = atomic.family.clone();
            let db = Db::open(DB, atomic).expect("opens");
            let other = db.create_family("other", family).expect("makes");
            db.put("first", "1").expect("writes");
            let mut no_wait = FlushOptions::default();
            no_wait.wait = false;
            for _ in 0..3 {
                // More than a sector: a cut may leave a part of it.
                db.put_cf(&other, "second", [b'2'; 700]).expect("writes");
                db.flush_cf(&other, &no_wait).expect("switches");
            }
            db.wait_for_compaction().expect("flushes");
        });
        let log = disk.log();
        for at in 0..=log.ops.len() {
            for cut in 0..3 {
                let left = SimFs::from_image(Point::at(&log, at).state(Variant::Torn, cut));
                drop(open(&left));
                opened += 1;
            }
        }
    }
    println!("{opened} states opened");
}

#[test]
fn a_flush_of_one_family_covered_up_that_the_log_had_failed() {
    for how in ["short-ENOSPC", "EIO"] {
        let disk = disk();
        let manual = options(&disk).set("manual_wal_flush", "true");
        let db = Db::open(DB, manual.expect("an option")).expect("opens");
        let other = db
            .create_family("other", options(&disk).family)
            .expect("makes");
        db.put("first", "1").expect("writes");
        db.put_cf(&other, "second", "2").expect("writes");
        let plan = format!("append:wal:1:{how}:once");
        disk.inject(&plan.parse().expect("a plan"));
        assert!(db.flush_wal(true).is_err(), "{how}: it is not all there");
        // It starts a new log when it is let, and that one is whole.
        let flushed = db.flush_cf(&other, &FlushOptions::default());
        if flushed.and_then(|()| db.flush_wal(true)).is_err() {
            db.resume().expect("resumes");
            db.flush_wal(true).expect("all is in tables");
        }
        for variant in [Variant::Kept, Variant::Lost] {
            let left = open(&cut(&disk, variant));
            let first = value(&left, "first");
            assert!(first.is_some(), "{how}, {variant}: it was said to be sure");
        }
    }
}

fn two_phase(disk: &SimFs) -> Options {
    let options = options(disk).set("allow_2pc", "true");
    options.expect("an option")
}

#[test]
fn what_was_prepared_outlived_what_was_written_before() {
    let disk = disk();
    let db = Db::open(DB, two_phase(&disk)).expect("opens");
    db.put("written", "1").expect("writes");
    let mut batch = WriteBatch::new();
    batch.put(b"prepared", b"2").expect("fits");
    db.prepare_transaction(b"t", &batch, &WriteOptions::default())
        .expect("prepares");
    // The process dies before either was synced; the power goes while the next one recovers.
    let next = disk.kill();
    let before = next.log().ops.len();
    drop(Db::open(DB, two_phase(&next)).expect("opens"));
    let log = next.log();
    let mut prepared = 0;
    for at in before..=log.ops.len() {
        let left = SimFs::from_image(Point::at(&log, at).state(Variant::Lost, 0));
        let left = Db::open(DB, two_phase(&left)).expect("opens");
        if !left.take_prepared_transactions().is_empty() {
            prepared += 1;
            let written = value(&left, "written");
            assert!(written.is_some(), "operation {at}: it was written before");
        }
    }
    assert!(prepared > 0, "in the end it is prepared");
}

#[test]
fn a_log_came_back_without_those_behind_it() {
    let disk = disk();
    let db = Db::open(DB, two_phase(&disk)).expect("opens");
    // It has nothing, and is not flushed.
    let family = options(&disk).family;
    let _idle = db.create_family("idle", family).expect("makes");
    let mut batch = WriteBatch::new();
    batch.put(b"prepared", b"1").expect("fits");
    db.prepare_transaction(b"t", &batch, &synced())
        .expect("prepares");
    db.put("first", "1").expect("writes");
    db.flush().expect("flushes");
    db.undo_transaction(b"t", &synced()).expect("undoes");
    let undone = disk.log().ops.len();
    for key in ["second", "third"] {
        db.put(key, "1").expect("writes");
        db.flush().expect("flushes");
    }
    let log = disk.log();
    let is_log = |op: &Op| matches!(op, Op::Remove { at, .. } if at.1.ends_with(".log"));
    assert!(log.ops.iter().any(is_log), "logs that nothing needs go");
    for at in undone..=log.ops.len() {
        for cut in 0..12 {
            let left = SimFs::from_image(Point::at(&log, at).state(Variant::OneName, cut));
            let left = Db::open(DB, two_phase(&left)).expect("opens");
            let prepared = left.take_prepared_transactions();
            assert!(prepared.is_empty(), "operation {at}, {cut}: it was undone");
        }
    }
}

#[test]
fn a_change_that_failed_moved_the_oldest_log_on() {
    for what in ["fsync-kept", "fsync-reverted", "fsync-dropped"] {
        let disk = disk();
        let db = Db::open(DB, two_phase(&disk)).expect("opens");
        let family = db.default_family_handle();
        db.put_opt(&family, "first", "1", &synced())
            .expect("writes");
        let plan = format!("sync:manifest:1:{what}:once");
        disk.inject(&plan.parse().expect("a plan"));
        assert!(db.flush().is_err(), "{what}: the MANIFEST fails");
        let before = disk.log().ops.len();
        db.resume().expect("resumes");
        let log = disk.log();
        for at in before..=log.ops.len() {
            let left = SimFs::from_image(Point::at(&log, at).state(Variant::Lost, 0));
            let left = Db::open(DB, two_phase(&left)).expect("opens");
            let first = value(&left, "first");
            assert!(first.is_some(), "{what}, operation {at}: it was synced");
        }
    }
}

#[test]
fn an_ingested_file_outlived_what_was_written_before() {
    for manual in ["true", "false"] {
        let disk = disk();
        let options = || {
            let options = options(&disk).set("manual_wal_flush", manual);
            options.expect("an option")
        };
        let db = Db::open(DB, options()).expect("opens");
        db.put("written", "1").expect("writes");
        let mut writer = SstFileWriter::new(&options()).expect("a writer");
        writer.open("/file.sst").expect("makes");
        writer.put("ingested", "2").expect("fits");
        writer.finish().expect("ends");
        db.ingest(
            &db.default_family_handle(),
            &["/file.sst"],
            &IngestOptions::default(),
        )
        .expect("ingests");
        for variant in [Variant::Lost, Variant::Kept] {
            let left = open(&cut(&disk, variant));
            assert!(value(&left, "ingested").is_some(), "{variant}: it was sure");
            assert!(
                value(&left, "written").is_some(),
                "{variant}: it was before"
            );
        }
    }
}

#[test]
fn a_snapshot_of_nothing_but_an_ingested_file_was_forgotten_by_compactions() {
    let disk = disk();
    let mut options = options(&disk);
    options.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    let mut writer = SstFileWriter::new(&options).expect("a writer");
    let db = Db::open(DB, options).expect("opens");
    writer.open("/file.sst").expect("makes");
    for key in ["deleted", "merged"] {
        writer.put(key, "ingested").expect("fits");
    }
    writer.finish().expect("ends");
    let family = db.default_family_handle();
    db.ingest(&family, &["/file.sst"], &IngestOptions::default())
        .expect("ingests");
    // Its entries have sequence 0, and so has the snapshot that sees them.
    let snapshot = db.snapshot();
    db.delete("deleted").expect("deletes");
    db.merge("merged", "more").expect("merges");
    db.flush().expect("flushes");
    let how = CompactRangeOptions::default();
    db.compact_range_opt(&family, None, None, &how)
        .expect("compacts");
    for key in ["deleted", "merged"] {
        let found = db.get_opt(&family, key, &ReadOptions::default(), Some(&snapshot));
        let found = found.expect("reads");
        assert_eq!(found.as_deref(), Some(&b"ingested"[..]), "{key}");
    }
    assert_eq!(value(&db, "deleted"), None);
    assert_eq!(value(&db, "merged"), Some(b"ingested,more".to_vec()));
}

/// Runs the trial that `esker-sim --replay 'fault BASE PLAN SEED'` runs; how many calls failed.
fn replayed(base: u64, plan: &str, seed: u64) -> u64 {
    let (world, plan) = (SimEnv::controlled(), plan.parse().expect("a plan"));
    let base = world.play(base, |world| Base::new(world, base));
    let base = base.expect("the workload runs");
    let mut counts = Counts::default();
    let failure = world.play(seed, |w| trial(w, &base, &plan, seed, &mut counts));
    assert!(failure.is_none(), "{}", failure.expect("a failure"));
    counts.failed_calls
}

/// One order of the threads shows it.
#[test]
fn a_flush_that_began_beside_the_one_of_resume_put_a_memtable_into_two_tables() {
    let plan = "append:any:8:short-ENOSPC:once";
    assert_eq!(replayed(196, plan, 9_325_836_560_638_074_246), 1);
}

/// With atomic flushes no log is synced before one. A family that had written nothing since went on
/// to the newest log while others had something in the log before, which a power cut took: tables
/// seemed to be ahead of it.
#[test]
fn a_family_without_data_went_on_to_a_log_behind_one_that_others_needed() {
    let plan = "append:manifest:5:short-ENOSPC:forever";
    let failed = replayed(1_000_094, plan, 9_808_172_696_310_145_022);
    assert!(failed > 0, "calls failed");
}

/// Found by `esker-sim --replay 'fault 207 append:any:27:short-EIO:once 15736469089722897889'`.
#[test]
fn edits_seemed_to_be_lost_once_the_family_with_the_newest_log_was_dropped() {
    let disk = disk();
    let db = open(&disk);
    let family = options(&disk).family;
    let other = db.create_family("other", family).expect("makes");
    db.put("first", "1").expect("writes");
    db.flush().expect("flushes");
    db.put_cf(&other, "second", "2").expect("writes");
    db.flush().expect("flushes");
    db.drop_family(&other).expect("drops");
    drop((other, db));
    let mut failed = 0;
    for nth in 1..6 {
        let disk = SimFs::from_image(disk.image());
        let plan = format!("append:manifest:{nth}:short-EIO:once");
        disk.inject(&plan.parse().expect("a plan"));
        failed += usize::from(Db::open(DB, options(&disk)).is_err());
        disk.heal();
        let first = value(&open(&disk.kill()), "first");
        assert!(first.is_some(), "{plan}: it was in a table");
    }
    assert!(failed > 1, "the snapshot and what comes behind it");
}

#[test]
fn a_backup_went_with_the_name_of_its_new_directory() {
    let disk = disk();
    let db = open(&disk);
    db.put("first", "1").expect("writes");
    let place = "/far/backups";
    let backups = |disk: &SimFs| BackupEngine::open(BackupEngineOptions::new(place), &env(disk));
    let engine = backups(&disk).expect("opens");
    let id = engine.create_new_backup(&db).expect("backs up");
    let home = "/restored/db";
    engine
        .restore_db_from_backup(id, home, home, &RestoreOptions::default())
        .expect("restores");
    let kept = env(&disk).fs;
    kept.create_dir_all(Path::new("/kept")).expect("makes");
    kept.sync_dir(Path::new("/")).expect("syncs");
    db.checkpoint("/kept/checkpoint").expect("makes");
    let left = cut(&disk, Variant::Lost);
    let engine = backups(&left).expect("opens");
    engine.verify_backup(id, true).expect("it was made");
    for place in [home, "/kept/checkpoint"] {
        let there = Db::open(place, Options::new().env(env(&left)));
        let first = value(&there.expect("it was made"), "first");
        assert!(first.is_some(), "{place}: it is whole");
    }
}

#[test]
fn a_checkpoint_that_a_crash_interrupted_was_in_the_way_of_the_next() {
    let disk = disk();
    let db = open(&disk);
    db.put("first", "1").expect("writes");
    db.flush().expect("flushes");
    let before = disk.log().ops.len();
    db.checkpoint("/copy").expect("makes");
    let log = disk.log();
    let (mut replaced, mut whole) = (0, 0);
    for at in before..=log.ops.len() {
        for variant in [Variant::Kept, Variant::Lost, Variant::Mixed] {
            let left = SimFs::from_image(Point::at(&log, at).state(variant, at as u64));
            let has = |path: &str| left.exists(Path::new(path)).expect("looks");
            let (is_left, may_be_whole) = (has("/copy.tmp"), has("/copy.tmp/CURRENT"));
            if !has("/copy") {
                match open(&left).checkpoint("/copy") {
                    Ok(_) => replaced += u32::from(is_left && !may_be_whole),
                    Err(e) => assert!(may_be_whole, "{at} {variant:?}: {e}"),
                }
                whole += u32::from(may_be_whole);
            }
            if has("/copy") {
                let copy = Db::open("/copy", options(&left)).expect("it is whole");
                assert!(value(&copy, "first").is_some(), "{at} {variant:?}");
            }
        }
    }
    assert!(replaced > 3 && whole > 0, "{replaced} {whole}");
}

#[test]
fn an_image_lists_what_names_lead_to() {
    let empty = Image::default();
    assert!(empty.list().is_empty());
    let disk = disk();
    drop(open(&disk));
    assert!(disk.image().list().contains_key("/db/CURRENT"));
}
