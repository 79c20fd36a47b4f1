//! Iterators one after the other, which share cursors, and seeks between tables: each shows what a
//! new iterator over all entries shows.

mod common;

use common::numbered::{all, forward, key, put};
use esker::options::FamilyOptions;
use esker::{Db, Options, ReadOptions};
use std::collections::BTreeMap;

fn open(options: Options) -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options.create_if_missing(true)).expect("opens");
    (dir, db)
}

fn seen(db: &Db) -> Vec<Vec<u8>> {
    forward(db.iter())
}

fn delete_range(db: &Db, from: u32, to: u32) {
    db.delete_range_cf(&db.default_family_handle(), key(from), key(to))
        .expect("deleted");
}

#[test]
fn an_iterator_sees_what_was_written_since_the_last_one() {
    let (_dir, db) = open(Options::new());
    put(&db, 0..10);
    db.flush().expect("flushed");
    assert_eq!(seen(&db), all(0..10));
    // The memtable was empty before.
    put(&db, 10..20);
    assert_eq!(seen(&db), all(0..20));
    put(&db, 20..30);
    assert_eq!(seen(&db), all(0..30));
    db.delete(key(3)).expect("deleted");
    assert_eq!(seen(&db).len(), 29);
    delete_range(&db, 10, 20);
    assert_eq!(seen(&db).len(), 19);
    db.flush().expect("flushed");
    assert_eq!(seen(&db).len(), 19);
    db.compact_range(None, None).expect("compacted");
    assert_eq!(seen(&db).len(), 19);
}

#[test]
fn an_iterator_at_a_snapshot_does_not_see_what_the_last_one_saw() {
    let (_dir, db) = open(Options::new());
    put(&db, 0..10);
    let snapshot = db.snapshot();
    let family = db.default_family_handle();
    put(&db, 10..20);
    for _ in 0..3 {
        assert_eq!(seen(&db), all(0..20));
        let older = db.iter_opt(&family, ReadOptions::default(), Some(&snapshot));
        assert_eq!(forward(older), all(0..10));
    }
    // A range deletion that only the newer iterators see.
    delete_range(&db, 5, 15);
    for _ in 0..3 {
        let older = db.iter_opt(&family, ReadOptions::default(), Some(&snapshot));
        assert_eq!(forward(older), all(0..10));
        assert_eq!(seen(&db), all((0..5).chain(15..20)));
    }
}

#[test]
fn bounds_and_ways_of_reading_are_those_of_each_iterator() {
    let (_dir, db) = open(Options::new());
    put(&db, 0..100);
    db.flush().expect("flushed");
    put(&db, 100..200);
    let family = db.default_family_handle();
    let within = |low: Option<u32>, high: Option<u32>| {
        let mut options = ReadOptions::default();
        options.iterate_lower_bound = low.map(key);
        options.iterate_upper_bound = high.map(key);
        forward(db.iter_opt(&family, options, None))
    };
    for _ in 0..2 {
        assert_eq!(within(Some(90), Some(110)), all(90..110));
        assert_eq!(within(None, None), all(0..200));
        assert_eq!(within(None, Some(5)), all(0..5));
        assert_eq!(within(Some(195), None), all(195..200));
        let mut without_cache = ReadOptions::default();
        without_cache.fill_cache = false;
        assert_eq!(
            forward(db.iter_opt(&family, without_cache, None)),
            all(0..200)
        );
    }
}

#[test]
fn iterators_that_were_moved_leave_no_trace() {
    let (_dir, db) = open(Options::new());
    put(&db, (0..200).step_by(2));
    db.flush().expect("flushed");
    put(&db, (1..200).step_by(2));
    for round in 0..50u32 {
        let mut it = db.iter();
        assert!(!it.is_placed());
        it.seek_for_prev(key(100 + round));
        assert_eq!(it.key(), key(100 + round));
        it.prev();
        assert_eq!(it.key(), key(99 + round));
        if round % 3 == 0 {
            it.next();
            assert_eq!(it.key(), key(100 + round));
        }
        drop(it);
        let mut it = db.iter();
        it.seek(key(round));
        assert_eq!(
            (it.key(), it.value()),
            (&*key(round), &round.to_le_bytes()[..])
        );
    }
}

#[test]
fn an_iterator_outlives_its_database_and_parks_nothing_there() {
    let (dir, db) = open(Options::new());
    put(&db, 0..10);
    let (first, second) = (db.iter(), db.iter());
    drop(first);
    drop(db);
    assert_eq!(forward(second), all(0..10));
    let db = Db::open(dir.path(), Options::new()).expect("opens: nobody has it");
    assert_eq!(seen(&db), all(0..10));
}

#[test]
fn parked_cursors_keep_no_table_of_an_older_tree() {
    let (dir, db) = open(Options::new());
    let tables = || {
        let entries = std::fs::read_dir(dir.path()).expect("a directory");
        let names = entries.map(|e| e.expect("an entry").file_name());
        let is_table = |n: &std::ffi::OsString| n.to_string_lossy().ends_with(".sst");
        names.filter(is_table).count()
    };
    for n in 0..4 {
        put(&db, (n..100).step_by(4));
        db.flush().expect("flushed");
        assert!(!seen(&db).is_empty());
    }
    db.compact_range(None, None).expect("compacted");
    let begin = std::time::Instant::now();
    while tables() > 1 && begin.elapsed() < std::time::Duration::from_secs(20) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(tables(), 1);
}

#[test]
fn an_option_that_changed_holds_for_the_next_iterator() {
    let (_dir, db) = open(Options::new());
    let family = db.default_family_handle();
    put(&db, 0..10);
    assert_eq!(seen(&db), all(0..10));
    db.set_options(&family, &[("max_sequential_skip_in_iterations", "1")])
        .expect("set");
    for _ in 0..20 {
        put(&db, 3..4);
    }
    assert_eq!(seen(&db), all(0..10));
}

/// Tables with gaps between them at several levels, and a model of them.
fn gaps(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut model = BTreeMap::new();
    // Each flush is a table of its own; old ones lie deep after the compaction.
    for (round, first) in [0u32, 4_000, 8_000, 2_000, 6_000, 1_000, 5_000]
        .into_iter()
        .enumerate()
    {
        for n in first..first + 300 {
            let value = vec![round as u8; 40];
            db.put(key(n), &value).expect("written");
            model.insert(key(n), value);
        }
        db.flush().expect("flushed");
        if round == 2 {
            db.compact_range(None, None).expect("compacted");
        }
    }
    model
}

fn small_tables() -> Options {
    let mut family = FamilyOptions::default();
    family.disable_auto_compactions = true;
    family.target_file_size_base = 16 << 10;
    let mut options = Options::new();
    options.family = family;
    options
}

#[test]
fn seeks_into_gaps_find_the_next_entry_in_both_directions() {
    let (_dir, db) = open(small_tables());
    let model = gaps(&db);
    let mut once = db.iter();
    for n in (0..9_000).step_by(37) {
        let target = key(n);
        for again in [true, false] {
            let mut new = db.iter();
            let it = if again { &mut once } else { &mut new };
            it.seek(&target);
            let after = model.range(target.clone()..).next();
            assert_eq!(
                it.valid().then(|| (it.key().to_vec(), it.value().to_vec())),
                after.map(own)
            );
            if it.valid() {
                it.next();
                let after = model.range(target.clone()..).nth(1);
                assert_eq!(
                    it.valid().then(|| it.key().to_vec()),
                    after.map(|e| e.0.clone())
                );
            }
            it.seek_for_prev(&target);
            let before = model.range(..=target.clone()).next_back();
            assert_eq!(
                it.valid().then(|| (it.key().to_vec(), it.value().to_vec())),
                before.map(own)
            );
            if it.valid() {
                it.next();
                let after = model
                    .range((
                        std::ops::Bound::Excluded(before.expect("one").0.clone()),
                        std::ops::Bound::Unbounded,
                    ))
                    .next();
                assert_eq!(
                    it.valid().then(|| it.key().to_vec()),
                    after.map(|e| e.0.clone())
                );
            }
            it.status().expect("no error");
        }
    }
}

fn own(entry: (&Vec<u8>, &Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    (entry.0.clone(), entry.1.clone())
}

#[test]
fn a_seek_into_a_gap_reads_the_table_of_the_next_entry_alone() {
    use esker::observe::{Statistics, Ticker};
    let statistics = Statistics::new();
    let mut options = small_tables();
    options.db.statistics = Some(std::sync::Arc::clone(&statistics));
    let (_dir, db) = open(options);
    gaps(&db);
    let blocks =
        || statistics.ticker(Ticker::BlockCacheHit) + statistics.ticker(Ticker::BlockCacheMiss);
    let mut it = db.iter();
    // Everything is before it but the tables from 8,000 on, which only the deepest level has.
    let before = blocks();
    it.seek(key(7_000));
    assert_eq!(it.key(), key(8_000));
    let looked_at = blocks() - before;
    assert!(
        (1..=2).contains(&looked_at),
        "an index and a data block: {looked_at}"
    );
}
