//! Getting rid of files by ranges, suggesting and naming files to compact, promoting level 0,
//! sizes; and the options of flushes and manual compactions about stalls and parts.

use esker::observe::{HistogramId, Statistics};
use esker::options::{CompressionType, Temperature};
use esker::{
    CompactFilesOptions, CompactRangeOptions, CompactionFilter, Db, Decision, ErrorKind,
    FamilyHandle, FamilyMetaOptions, FilterValue, FlushOptions, Options, SizeOptions, Subcode,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn options(more: &str) -> Options {
    Options::new()
        .create_if_missing(true)
        .set_all(
            "compression=kNoCompression;disable_auto_compactions=true;target_file_size_base=20000",
        )
        .expect("these options exist")
        .set_all(more)
        .expect("these options exist")
}

fn open(options: Options) -> (tempfile::TempDir, Db, FamilyHandle) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options).expect("opens");
    let family = db.default_family_handle();
    (dir, db, family)
}

fn key(n: u32) -> String {
    format!("key{n:05}")
}

fn put(db: &Db, range: std::ops::Range<u32>) {
    for n in range {
        db.put(key(n), vec![b'v'; 100]).expect("writes");
    }
}

fn count(db: &Db) -> usize {
    let mut it = db.iter();
    let mut n = 0;
    it.seek_to_first();
    while it.valid() {
        n += 1;
        it.next();
    }
    it.status().expect("reads");
    n
}

fn files_at(db: &Db, level: u8) -> usize {
    let files = db.live_files_metadata();
    files.iter().filter(|f| f.level == level).count()
}

#[test]
fn files_inside_a_range_go_and_others_stay() {
    let (dir, db, family) = open(options(""));
    // Written twice: a single table would only be moved.
    put(&db, 0..2_000);
    db.flush().expect("flushes");
    put(&db, 0..2_000);
    db.compact_range(None, None).expect("compacts");
    let files = db.live_files_metadata();
    assert!(files.len() > 5);
    put(&db, 0..3);
    db.flush().expect("flushes");
    // From the middle of the second file to the last key of the fourth.
    let (begin, end) = (files[1].largest_key.clone(), files[3].largest_key.clone());
    let range = [(Some(begin.clone()), Some(end.clone()))];
    db.delete_files_in_ranges(&family, &range, false)
        .expect("deletes");
    let rest: Vec<u64> = db.live_files_metadata().iter().map(|f| f.number).collect();
    assert!(!rest.contains(&files[2].number));
    assert!(rest.contains(&files[1].number) && rest.contains(&files[3].number));
    db.delete_files_in_ranges(&family, &range, true)
        .expect("deletes");
    let rest: Vec<u64> = db.live_files_metadata().iter().map(|f| f.number).collect();
    assert!(!rest.contains(&files[3].number));
    let gone = files[2].num_entries + files[3].num_entries;
    assert_eq!(count(&db) as u64, 2_000 - gone);
    assert!(!files[2].path().exists(), "the space is given back");
    // Level 0 stays.
    db.delete_files_in_ranges::<&str>(&family, &[(None, None)], true)
        .expect("deletes");
    assert_eq!(count(&db), 3);
    assert_eq!(db.live_files_metadata().len(), 1);
    db.close().expect("closes");
    let db = Db::open(dir.path(), options("")).expect("opens");
    assert_eq!(count(&db), 3);
}

#[test]
fn suggested_files_are_compacted() {
    let (_dir, db, family) = open(options("disable_auto_compactions=false"));
    put(&db, 0..500);
    db.compact_range(None, None).expect("compacts");
    put(&db, 100..200);
    db.flush().expect("flushes");
    db.wait_for_compaction().expect("waits");
    assert_eq!(files_at(&db, 0), 1);
    db.suggest_compact_range(&family, Some(b"x"), None)
        .expect("is suggested");
    db.wait_for_compaction().expect("waits");
    assert_eq!(files_at(&db, 0), 1, "nothing of the range is there");
    db.suggest_compact_range(&family, Some(key(150).as_bytes()), None)
        .expect("is suggested");
    db.wait_for_compaction().expect("waits");
    assert_eq!(files_at(&db, 0), 0);
    assert_eq!(count(&db), 500);
}

#[test]
fn named_files_are_compacted_with_what_goes_with_them() {
    let (_dir, db, family) = open(options(""));
    put(&db, 0..1_000);
    db.compact_range(None, None).expect("compacts");
    for n in 0..3 {
        put(&db, n * 100..n * 100 + 150);
        db.flush().expect("flushes");
    }
    let level0: Vec<_> = db
        .live_files_metadata()
        .into_iter()
        .filter(|f| f.level == 0)
        .collect();
    assert_eq!(level0.len(), 3);
    let newest = &level0[0];
    let made = db
        .compact_files(&family, &[&newest.name], 6)
        .expect("compacts");
    assert!(made.iter().all(|p| p.exists()) && !made.is_empty());
    // The older ones overlap it.
    assert_eq!(files_at(&db, 0), 0);
    assert_eq!(count(&db), 1_000);
    for (names, level, kind) in [
        (vec![newest.name.clone()], 6, ErrorKind::InvalidArgument),
        (vec!["CURRENT".into()], 6, ErrorKind::InvalidArgument),
        (vec![], 6, ErrorKind::InvalidArgument),
        (
            vec![made[0].display().to_string()],
            3,
            ErrorKind::InvalidArgument,
        ),
        (
            vec![made[0].display().to_string()],
            99,
            ErrorKind::InvalidArgument,
        ),
    ] {
        let e = db
            .compact_files(&family, &names, level)
            .expect_err("cannot be");
        assert_eq!(e.kind(), kind, "{e}");
    }
}

/// Gives the compaction up that it filters for.
struct GivesUp(Arc<AtomicBool>);

impl CompactionFilter for GivesUp {
    fn name(&self) -> &str {
        "gives up"
    }

    fn filter(&self, _: u8, _: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        self.0.store(true, Ordering::Release);
        Decision::Keep
    }
}

#[test]
fn a_compaction_of_a_range_can_be_given_up_before_and_while_it_runs() {
    let flag = Arc::new(AtomicBool::new(true));
    let mut options = options("");
    options.family.compaction_filter = Some(Arc::new(GivesUp(Arc::clone(&flag))));
    let (_dir, db, family) = open(options);
    let mut how = CompactRangeOptions::default();
    how.canceled = Some(Arc::clone(&flag));
    let give_up = || {
        let e = db.compact_range_opt(&family, None, None, &how);
        let e = e.expect_err("is canceled");
        assert_eq!(e.kind(), ErrorKind::Incomplete);
        assert_eq!(e.subcode(), Subcode::ManualCompactionPaused);
    };
    put(&db, 0..5_000);
    give_up();
    assert_eq!(db.live_files_metadata().len(), 0);
    flag.store(false, Ordering::Release);
    give_up();
    assert!(flag.load(Ordering::Acquire));
    assert_eq!(files_at(&db, 0), db.live_files_metadata().len());
    assert_eq!(count(&db), 5_000);
    // Without the flag the filter gives up nothing.
    db.compact_range(None, None).expect("compacts");
    assert_eq!(files_at(&db, 0), 0);
}

#[test]
fn named_files_are_compacted_as_asked() {
    let (_dir, db, family) = open(options(""));
    put(&db, 0..1_000);
    db.flush().expect("flushes");
    let name = |db: &Db| db.live_files_metadata()[0].name.clone();
    let before = name(&db);
    let mut how = CompactFilesOptions::default();
    let flag = Arc::new(AtomicBool::new(true));
    how.canceled = Some(Arc::clone(&flag));
    let e = db
        .compact_files_opt(&family, &[&before], 3, &how)
        .expect_err("is canceled");
    assert_eq!(e.kind(), ErrorKind::Incomplete);
    assert_eq!(db.live_files_metadata().len(), 1);
    assert_eq!((name(&db), files_at(&db, 0)), (before.clone(), 1));
    flag.store(false, Ordering::Release);
    how.compression = Some(CompressionType::Zstd);
    how.output_file_size_limit = 1_000;
    how.output_temperature_override = Some(Temperature::Warm);
    let done = db
        .compact_files_opt(&family, &[&before], 3, &how)
        .expect("compacts");
    assert!(done.job > 0 && done.output_files.len() > 2 && done.is_manual);
    assert_eq!(done.output_files.len(), files_at(&db, 3));
    let warm = Temperature::Warm.number();
    assert!(
        db.live_files_metadata()
            .iter()
            .all(|f| f.temperature == warm)
    );
    let tables = db.properties_of_all_tables(&family).expect("properties");
    assert!(tables.values().all(|p| p.compression_name == "ZSTD"));
    // A move leaves the files as they are.
    let mut moving = CompactFilesOptions::default();
    moving.allow_trivial_move = true;
    let names: Vec<String> = db
        .live_files_metadata()
        .into_iter()
        .map(|f| f.name)
        .collect();
    let done = db
        .compact_files_opt(&family, &names, 5, &moving)
        .expect("moves");
    assert!(done.is_trivial_move);
    let now: Vec<String> = db
        .live_files_metadata()
        .into_iter()
        .map(|f| f.name)
        .collect();
    assert_eq!((names, files_at(&db, 5)), (now.clone(), now.len()));
    assert_eq!(count(&db), 1_000);
}

#[test]
fn level0_is_promoted_when_nothing_is_in_the_way() {
    let (dir, db, family) = open(options(""));
    for n in 0..3 {
        put(&db, n * 100..n * 100 + 100);
        db.flush().expect("flushes");
    }
    let refused = |to| {
        let e = db.promote_l0(&family, to).expect_err("cannot be");
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        e.message().to_owned()
    };
    assert_eq!(refused(0), "Invalid target level");
    assert_eq!(refused(99), "Target level does not exist");
    db.promote_l0(&family, 2).expect("is promoted");
    assert_eq!((files_at(&db, 0), files_at(&db, 2)), (0, 3));
    put(&db, 0..1);
    db.flush().expect("flushes");
    assert_eq!(refused(3), "All levels up to target_level must be empty");
    put(&db, 0..1);
    db.flush().expect("flushes");
    assert_eq!(refused(1), "L0 has overlapping files");
    assert_eq!(count(&db), 300);
    db.close().expect("closes");
    let db = Db::open(dir.path(), options("")).expect("opens");
    assert_eq!(count(&db), 300);
}

#[test]
fn sizes_count_what_is_asked_for() {
    let (_dir, db, family) = open(options(""));
    put(&db, 0..1_000);
    db.flush().expect("flushes");
    put(&db, 1_000..1_500);
    let of = |f: fn(&mut SizeOptions), from: u32, to: u32| {
        let mut o = SizeOptions::default();
        f(&mut o);
        let sizes = db
            .approximate_sizes_opt(&family, &[(key(from), key(to))], &o)
            .expect("sizes");
        sizes[0]
    };
    let files = of(|_| {}, 0, 5_000);
    assert!((100_000..140_000).contains(&files), "{files}");
    let memory = of(
        |o| (o.include_files, o.include_memtables) = (false, true),
        0,
        5_000,
    );
    assert!((50_000..100_000).contains(&memory), "{memory}");
    assert_eq!(of(|o| o.include_memtables = true, 0, 5_000), files + memory);
    let half = of(|_| {}, 0, 500);
    assert!((files / 3..files * 2 / 3).contains(&half), "{half}");
    let rough = of(|o| o.files_size_error_margin = 0.5, 0, 5_000);
    assert_eq!(rough, files);
    let none = SizeOptions::default();
    let none = {
        let mut o = none;
        o.include_files = false;
        o
    };
    let e = db
        .approximate_sizes_opt(&family, &[("a", "z")], &none)
        .expect_err("nothing to count");
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn metadata_goes_by_level_and_range() {
    let (_dir, db, family) = open(options(""));
    put(&db, 0..1_000);
    db.compact_range(None, None).expect("compacts");
    put(&db, 0..10);
    db.flush().expect("flushes");
    let all = db.family_metadata(&family);
    assert_eq!(all.levels.len(), 7);
    assert_eq!(all.file_count, db.live_files_metadata().len());
    let sum: u64 = all.levels.iter().map(|l| l.size).sum();
    assert_eq!(all.size, sum);
    assert_eq!(all.levels[0].files.len(), 1);
    let some = db.family_metadata_opt(
        &family,
        &FamilyMetaOptions {
            start: Some(key(990).into_bytes()),
            end: None,
            level: Some(6),
        },
    );
    assert_eq!((some.levels.len(), some.file_count), (1, 1));
    assert_eq!(some.levels[0].files[0].largest_key, key(999).into_bytes());
}

#[test]
fn a_manual_compaction_is_cut_into_as_many_parts_as_it_may() {
    let statistics = Statistics::new();
    let mut o = options("max_subcompactions=1");
    o.db.statistics = Some(Arc::clone(&statistics));
    let (_dir, db, family) = open(o);
    let parts = |n: u32| {
        put(&db, 0..3_000);
        db.flush().expect("flushes");
        put(&db, 0..3_000);
        let before = statistics.histogram(HistogramId::NumSubcompactionsScheduled);
        let mut how = CompactRangeOptions::default();
        how.max_subcompactions = n;
        db.compact_range_opt(&family, None, None, &how)
            .expect("compacts");
        let after = statistics.histogram(HistogramId::NumSubcompactionsScheduled);
        assert_eq!(count(&db), 3_000);
        (after.sum - before.sum, after.count - before.count)
    };
    let (sum, times) = parts(0);
    assert_eq!(sum, times, "one part each");
    let (sum, times) = parts(4);
    assert!(sum > times, "{sum} parts in {times} compactions");
}

#[test]
fn a_flush_waits_until_it_stalls_nobody() {
    // With two tables at level 0 writers are slowed; one more flush makes the second.
    let slow = "level0_file_num_compaction_trigger=1;level0_slowdown_writes_trigger=2;\
                level0_stop_writes_trigger=50;disable_auto_compactions=false";
    let (_dir, db, family) = open(options(slow));
    put(&db, 0..10);
    db.flush().expect("flushes");
    db.wait_for_compaction().expect("waits");
    db.pause_background_work().expect("pauses");
    put(&db, 0..10);
    let mut at_once = FlushOptions::default();
    (at_once.wait, at_once.allow_write_stall) = (false, true);
    db.flush_cf(&family, &at_once).expect("begins at once");
    put(&db, 0..10);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (db, family, done) = (&db, &family, &done);
        scope.spawn(move || {
            let mut patient = FlushOptions::default();
            patient.wait = false;
            db.flush_cf(family, &patient).expect("begins");
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(
            !done.load(std::sync::atomic::Ordering::SeqCst),
            "a second memtable would stop writers"
        );
        db.continue_background_work();
    });
    assert!(done.load(std::sync::atomic::Ordering::SeqCst));
    db.flush().expect("flushes");
    assert_eq!(count(&db), 10);
}
