//! Complaints of users about key-value separation, and what becomes of them here.
//!
//! | complaint | there | the test of ours |
//! |---|---|---|
//! | rocksdb #9235: cold tables are never picked, so files stay with one live value | 2 and more times the space | [`a_file_goes_whose_last_values_are_cold`] |
//! | #10296: statistics say 1.1 where the space is 2.2 times what lives | garbage is known after compactions alone | [`what_newer_runs_may_hide_is_told_before_a_compaction_finds_it`] |
//! | #11603: forced collection comes after all other compactions and starves | it waits for the levels to be in shape | [`collection_goes_on_while_writers_never_rest`], and `space_bound` |
//! | #10399: no limit of all the space | a request that is open | `space_bound` |
//! | #10657: more and more files of less than 100 KB | a file ends with its flush or compaction | [`small_files_do_not_pile_up_under_a_bound`] |
//! | #11570: with collection on, pure inserts rewrite values | they do | `space_bound::pure_inserts_move_no_value` |
//! | #13554, #13069: scans read every value | `allow_unprepared_value` from 9.8 on | `blob_reads::iterators_leave_values_until_they_are_asked_for` |
//! | #12503: a read-only instance does not read values of blob files | it fails | [`copies_for_reading_read_values_of_blob_files`] |
//! | #14897: a compaction fails that writes blobs and no table | fixed after 11.1 | [`a_compaction_that_leaves_nothing_ends_well`] |
//! | #13916: no blob files with remote compaction | they exclude each other | none: there is no remote compaction here, and COMPAT.md lists its functions as missing |

mod common;

use common::blobs::{key, opened, options, value};
use common::{Rng, until};
use esker::options::{BlobGarbageCollectionPolicy, BottommostLevelCompaction};
use esker::{
    CompactRangeOptions, CompactionFilter, Db, Decision, FamilyHandle, FilterValue, Options, Result,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn put(db: &Db, keys: impl IntoIterator<Item = u32>, len: usize) -> Result<()> {
    keys.into_iter()
        .try_for_each(|n| db.put(key(n), value(n, len)))?;
    db.flush()
}

/// Numbers of the blob files, with their values that are no garbage.
fn files(db: &Db, family: &FamilyHandle) -> Vec<(u64, u64)> {
    let blobs = db.family_metadata(family).blob_files;
    let live = |total, garbage| total - garbage;
    let counts = blobs.iter();
    counts
        .map(|b| (b.number, live(b.total_count, b.garbage_count)))
        .collect()
}

fn forced() -> CompactRangeOptions {
    let mut how = CompactRangeOptions::default();
    how.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
    how
}

/// Bytes of tables and blob files.
fn on_disk(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten();
    let kinds = entries.filter(|e| {
        let name = e.file_name().to_string_lossy().into_owned();
        name.ends_with(".sst") || name.ends_with(".blob")
    });
    kinds
        .filter_map(|e| e.metadata().ok())
        .map(|m| m.len())
        .sum()
}

/// Small files, a bound, and compactions by themselves.
fn bounded() -> Options {
    options(
        "disable_auto_compactions=false;write_buffer_size=64k;target_file_size_base=64k;\
         max_bytes_for_level_base=256k;level0_file_num_compaction_trigger=2;\
         compression=kNoCompression;max_space_amplification_percent=130",
    )
}

#[test]
fn a_file_goes_whose_last_values_are_cold() -> Result<()> {
    let (_dir, db, family) = opened(bounded().set("target_file_size_base", "8k")?);
    // Each file has three cold values, whose tables nobody writes to again.
    for file in 0..30 {
        let hot = file * 97..(file + 1) * 97;
        let cold = 10_000 + file * 3..10_000 + (file + 1) * 3;
        put(&db, hot.chain(cold), 500)?;
    }
    db.compact_range_opt(&family, None, None, &forced())?;
    let old = files(&db, &family);
    let mut rng = Rng::new(1);
    for _ in 0..20_000 {
        let n = rng.below(30 * 97) as u32;
        db.put(key(n), value(n, 500))?;
    }
    db.flush()?;
    db.wait_for_compaction()?;
    let left = files(&db, &family);
    let is_old = |f: &&(u64, u64)| old.iter().any(|(n, _)| *n == f.0);
    // As many as the bound leaves room for.
    let stay = left.iter().filter(is_old).count();
    assert!(stay <= 8, "{stay} of {}: {left:?}", old.len());
    for n in 10_000..10_090 {
        assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, 500)[..]));
    }
    Ok(())
}

#[test]
fn what_newer_runs_may_hide_is_told_before_a_compaction_finds_it() -> Result<()> {
    let list = "write_buffer_size=64k;level0_file_num_compaction_trigger=1;\
                max_space_amplification_percent=1000";
    let (dir, db, family) = opened(options(list));
    put(&db, 0..500, 1_000)?;
    db.compact_range_opt(&family, None, None, &forced())?;
    let live = on_disk(dir.path());
    put(&db, 0..500, 1_000)?;
    // No compaction has seen the garbage.
    let blobs = db.family_metadata(&family).blob_files;
    assert!(blobs.iter().all(|b| b.garbage_count == 0), "{blobs:?}");
    let text = db.property("rocksdb.esker.levels").expect("a text");
    let line = text.lines().find(|l| l.starts_with("space: "));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|n| n.parse().ok())
        .collect();
    let (taken, alive) = (numbers[0], numbers[1]);
    assert!(taken * 10 > alive * 19, "{line}");
    assert!(taken <= on_disk(dir.path()), "{line}");
    assert!(
        alive * 10 > live * 9 && alive <= live * 11 / 10,
        "{line}, live {live}"
    );
    Ok(())
}

#[test]
fn collection_goes_on_while_writers_never_rest() -> Result<()> {
    let (_dir, db, family) = opened(bounded());
    put(&db, 0..2_000, 500)?;
    db.compact_range_opt(&family, None, None, &forced())?;
    let first = files(&db, &family);
    let ends = AtomicBool::new(false);
    std::thread::scope(|threads| -> Result<()> {
        let writer = threads.spawn(|| -> Result<()> {
            let mut rng = Rng::new(3);
            while !ends.load(Ordering::Relaxed) {
                let n = rng.below(2_000) as u32;
                db.put(key(n), value(n, 500))?;
            }
            Ok(())
        });
        let is_there = |n: u64| files(&db, &family).iter().any(|(number, _)| *number == n);
        let end = Instant::now() + Duration::from_secs(60);
        let all_gone = || !first.iter().any(|(n, _)| is_there(*n));
        while !all_gone() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        let done = all_gone();
        ends.store(true, Ordering::Relaxed);
        writer.join().expect("no panic")?;
        assert!(done, "{first:?} are among {:?}", files(&db, &family));
        Ok(())
    })
}

#[test]
fn small_files_do_not_pile_up_under_a_bound() -> Result<()> {
    let (_dir, db, family) = opened(bounded());
    let mut rng = Rng::new(5);
    let mut most = 0;
    for _ in 0..300 {
        // Twenty kilobytes a flush.
        let keys: Vec<u32> = (0..20).map(|_| rng.below(400) as u32).collect();
        put(&db, keys, 1_000)?;
        most = most.max(files(&db, &family).len());
    }
    db.wait_for_compaction()?;
    let left = files(&db, &family).len();
    // What lives is 400 KB, and what the bound leaves as much again.
    assert!(
        most <= 80 && left <= 60,
        "{most} files at most, {left} at the end"
    );
    Ok(())
}

#[test]
fn copies_for_reading_read_values_of_blob_files() -> Result<()> {
    let (dir, db, family) = opened(options(""));
    put(&db, 0..20, 500)?;
    let side = tempfile::tempdir().expect("a directory");
    let secondary = Db::open_secondary(dir.path(), side.path(), options(""))?;
    let reader = Db::open_read_only(dir.path(), options(""))?;
    // The primary's collection deletes the file that they read.
    put(&db, 0..5, 500)?;
    let mut how = forced();
    how.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::Force;
    how.blob_garbage_collection_age_cutoff = 1.0;
    let check = |db: &Db| -> Result<()> {
        let mut it = db.iter();
        it.seek_to_first();
        for n in 0..20 {
            assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, 500)[..]));
            assert_eq!(it.value(), value(n, 500));
            it.next();
        }
        assert!(!it.valid());
        it.status()
    };
    check(&reader)?;
    check(&secondary)?;
    db.compact_range_opt(&family, None, None, &how)?;
    secondary.try_catch_up_with_primary()?;
    check(&secondary)?;
    check(&Db::open_read_only(dir.path(), options(""))?)
}

/// A filter that removes everything once it is told to.
#[derive(Debug, Default)]
struct RemovesAll(AtomicBool);

impl CompactionFilter for RemovesAll {
    fn name(&self) -> &str {
        "removes-all"
    }
    fn filter(&self, _: u8, _: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        if self.0.load(Ordering::Relaxed) {
            Decision::Remove
        } else {
            Decision::Keep
        }
    }
}

#[test]
fn a_compaction_that_leaves_nothing_ends_well() -> Result<()> {
    for by_filter in [false, true] {
        let filter = Arc::new(RemovesAll::default());
        let mut with = options("enable_blob_garbage_collection=true");
        with.family.compaction_filter = Some(Arc::clone(&filter) as _);
        with.family.blob_garbage_collection_age_cutoff = 1.0;
        let (dir, db, family) = opened(with);
        put(&db, 0..20, 500)?;
        db.compact_range_opt(&family, None, None, &forced())?;
        if by_filter {
            filter.0.store(true, Ordering::Relaxed);
        } else {
            db.delete_range(key(0), key(20))?;
            db.flush()?;
        }
        db.compact_range_opt(&family, None, None, &forced())?;
        assert_eq!(files(&db, &family), [], "by a filter: {by_filter}");
        assert!(db.is_empty()?);
        until("the files go", || on_disk(dir.path()) == 0);
        filter.0.store(false, Ordering::Relaxed);
        put(&db, 0..5, 500)?;
        assert_eq!(db.get(key(4))?.as_deref(), Some(&value(4, 500)[..]));
    }
    Ok(())
}
