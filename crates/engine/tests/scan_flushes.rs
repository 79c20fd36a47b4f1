//! `memtable_op_scan_flush_trigger` and `memtable_avg_op_scan_flush_trigger`: a memtable whose
//! hidden entries iterators pass over is flushed.

mod common;

use common::Rng;
use common::numbered::{delete, forward, key, put};
use esker::observe::{EventListener, FlushInfo, FlushReason, Statistics, Ticker};
use esker::{Db, DbIterator, FlushOptions, IngestOptions, Options, ReadOptions, SstFileWriter};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Nothing else has a memtable flushed, or a table merged.
const ALONE: &str = "compaction_for_reads=false;disable_auto_compactions=true";

fn options(changes: &str) -> Options {
    let options = Options::new().create_if_missing(true).set_all(ALONE);
    let options = options.and_then(|o| o.set_all(changes));
    options.expect("these options exist")
}

fn open(changes: &str) -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path().join("db"), options(changes)).expect("opens");
    (dir, db)
}

fn number(db: &Db, name: &str) -> u64 {
    let text = db.property(name);
    text.and_then(|n| n.parse().ok()).expect("a number")
}

/// Entries of the memtable that takes writes, and tables of level 0, once nothing is to be done.
fn shape(db: &Db) -> (u64, u64) {
    db.wait_for_compaction().expect("waited");
    let entries = number(db, "rocksdb.num-entries-active-mem-table");
    (entries, number(db, "rocksdb.num-files-at-level0"))
}

/// Returns whether the memtable was flushed.
fn is_flushed(db: &Db) -> bool {
    shape(db).0 == 0
}

fn read_with(db: &Db, options: ReadOptions) -> DbIterator {
    db.iter_opt(&db.default_family_handle(), options, None)
}

/// Ten hidden entries in a row: deletions of keys in a table, or of values beside them.
fn ten_hidden(db: &Db, only_deletions: bool) {
    let keys = if only_deletions { 1..11 } else { 1..6 };
    put(db, keys.clone());
    if only_deletions {
        db.flush().expect("flushed");
    }
    put(db, [0]);
    delete(db, keys);
    put(db, [20, 30]);
}

#[test]
fn a_seek_over_the_limit_has_the_memtable_flushed() {
    for only_deletions in [false, true] {
        for (trigger, flushes) in [(10, true), (11, false), (0, false)] {
            let (_dir, db) = open(&format!("memtable_op_scan_flush_trigger={trigger}"));
            ten_hidden(&db, only_deletions);
            let mut it = db.iter();
            it.seek(key(0));
            assert_eq!(it.key(), key(0));
            assert!(!is_flushed(&db), "nothing was passed over");
            it.seek(key(1));
            assert_eq!(it.key(), key(20));
            assert_eq!(is_flushed(&db), flushes, "{trigger} {only_deletions}");
            // It goes on over what it sees.
            it.next();
            assert_eq!(it.key(), key(30));
            assert_eq!(forward(db.iter()), [key(0), key(20), key(30)]);
        }
    }
}

#[test]
fn steps_count_by_themselves() {
    for only_deletions in [false, true] {
        for (trigger, flushes) in [(10, true), (11, false)] {
            let (_dir, db) = open(&format!("memtable_op_scan_flush_trigger={trigger}"));
            ten_hidden(&db, only_deletions);
            delete(&db, [25]);
            assert_eq!(forward(db.iter()), [key(0), key(20), key(30)]);
            assert_eq!(is_flushed(&db), flushes, "{trigger} {only_deletions}");
        }
    }
    // Each use of cursors that iterators take over from each other counts anew.
    let (_dir, db) = open("memtable_op_scan_flush_trigger=11");
    ten_hidden(&db, false);
    for _ in 0..10 {
        let mut it = db.iter();
        it.seek(key(1));
        assert_eq!(it.key(), key(20));
    }
    assert!(!is_flushed(&db));
    // All ways to go on count.
    for batch in [false, true] {
        let (_dir, db) = open("memtable_op_scan_flush_trigger=10");
        ten_hidden(&db, false);
        let mut it = db.iter();
        it.seek(key(0));
        if batch {
            it.next_batch(5, |_, _| ());
        } else {
            it.next_showing(|_, _| ());
        }
        assert_eq!(it.key(), key(20));
        assert!(is_flushed(&db), "{batch}");
    }
}

#[test]
fn one_way_forward_counts() {
    let (_dir, db) = open("memtable_op_scan_flush_trigger=10");
    ten_hidden(&db, false);
    let mut it = db.iter();
    it.seek_for_prev(key(19));
    assert_eq!(it.key(), key(0));
    it.seek_to_last();
    it.prev();
    it.prev();
    assert_eq!(it.key(), key(0));
    assert!(!is_flushed(&db), "backward");
    let mut options = ReadOptions::default();
    options.tailing = true;
    let mut it = read_with(&db, options);
    it.seek(key(1));
    assert_eq!(it.key(), key(20));
    assert!(!is_flushed(&db), "tailing");
    // What came after the snapshot is not what it hides.
    let (_dir, db) = open("memtable_op_scan_flush_trigger=10");
    put(&db, [0, 20]);
    let snapshot = db.snapshot();
    put(&db, 1..11);
    delete(&db, 1..11);
    let mut it = db.iter_opt(
        &db.default_family_handle(),
        ReadOptions::default(),
        Some(&snapshot),
    );
    it.seek(key(0));
    it.next();
    assert_eq!(it.key(), key(20));
    assert!(!is_flushed(&db), "newer than the snapshot");
}

#[test]
fn entries_of_other_runs_do_not_count() {
    let (dir, db) = open("memtable_op_scan_flush_trigger=10;max_write_buffer_number=4");
    // A table.
    put(&db, 0..100);
    db.flush().expect("flushed");
    delete(&db, 10..50);
    db.flush().expect("flushed");
    delete(&db, [50]);
    assert_eq!(forward(db.iter()).len(), 59);
    assert_eq!(shape(&db), (1, 2), "tables");
    // A file with newer numbers than the memtable.
    let name = dir.path().join("1.sst");
    let mut writer = SstFileWriter::new(&options("")).expect("a writer");
    writer.open(&name).expect("begun");
    (60..80).for_each(|n| writer.delete(key(n)).expect("deleted"));
    writer.finish().expect("finished");
    db.ingest(
        &db.default_family_handle(),
        &[&name],
        &IngestOptions::default(),
    )
    .expect("ingested");
    assert_eq!(forward(db.iter()).len(), 39);
    assert_eq!(shape(&db), (1, 3), "a file that was ingested");
    // A memtable that waits to be flushed.
    delete(&db, 80..99);
    db.pause_background_work().expect("paused");
    let mut later = FlushOptions::default();
    later.wait = false;
    later.allow_write_stall = true;
    db.flush_cf(&db.default_family_handle(), &later)
        .expect("begun");
    assert_eq!(number(&db, "rocksdb.num-immutable-mem-table"), 1);
    put(&db, [200]);
    let old = db.iter();
    assert_eq!(forward(db.iter()).len(), 21);
    db.continue_background_work();
    assert_eq!(shape(&db), (1, 4), "a memtable that was waiting");
    // A memtable that was switched since the iterator was made.
    delete(&db, 0..10);
    let older = db.iter();
    db.flush().expect("flushed");
    put(&db, [300]);
    assert_eq!(forward(older).len(), 11);
    assert_eq!(forward(old).len(), 21);
    assert_eq!(shape(&db), (1, 5), "an older view");
}

/// Every eleventh of a thousand keys is there, in a table, and ten deletions follow each.
fn sparse(changes: &str) -> (tempfile::TempDir, Db) {
    let (dir, db) = open(changes);
    put(&db, 0..1_100);
    db.flush().expect("flushed");
    delete(&db, (0..1_100).filter(|n| n % 11 != 0));
    (dir, db)
}

const ON_AVERAGE: &str = "memtable_op_scan_flush_trigger=500;memtable_avg_op_scan_flush_trigger=9";

#[test]
fn the_average_is_that_of_a_seek_and_its_steps() {
    let (_dir, db) = sparse(ON_AVERAGE);
    // Less than the first limit in all.
    let mut it = db.iter();
    it.seek(key(1));
    (0..40).for_each(|_| it.next());
    drop(it);
    assert!(!is_flushed(&db), "410 of 500");
    // Enough, at each way to end a walk.
    for end in ["drop", "seek", "refresh"] {
        let (_dir, db) = sparse(ON_AVERAGE);
        let mut it = db.iter();
        it.seek_to_first();
        while it.valid() {
            it.next();
        }
        assert!(!is_flushed(&db), "the walk goes on");
        match end {
            "drop" => drop(it),
            "seek" => it.seek(key(1_098)),
            _ => it.refresh(None).expect("refreshed"),
        }
        assert!(is_flushed(&db), "{end}");
    }
    // Ten of eleven entries are hidden: eleven in a step are not reached.
    let eleven = "memtable_op_scan_flush_trigger=500;memtable_avg_op_scan_flush_trigger=11";
    for changes in [eleven, "memtable_avg_op_scan_flush_trigger=1"] {
        let (_dir, db) = sparse(changes);
        assert_eq!(forward(db.iter()).len(), 100);
        assert!(!is_flushed(&db), "{changes}");
    }
}

#[test]
fn options_change_for_new_iterators() {
    let (_dir, db) = open("");
    ten_hidden(&db, false);
    let family = db.default_family_handle();
    let mut old = db.iter();
    db.set_options(&family, &[("memtable_op_scan_flush_trigger", "5")])
        .expect("set");
    old.seek(key(1));
    assert!(!is_flushed(&db));
    old.refresh(None).expect("refreshed");
    old.seek(key(1));
    assert!(is_flushed(&db));
    ten_hidden(&db, false);
    db.set_options(&family, &[("memtable_op_scan_flush_trigger", "0")])
        .expect("set");
    assert_eq!(forward(db.iter()).len(), 3);
    assert!(!is_flushed(&db));
}

#[derive(Default)]
struct Reasons(Mutex<Vec<(String, FlushReason)>>);

impl EventListener for Reasons {
    fn on_flush_completed(&self, info: &FlushInfo) {
        let mut heard = self.0.lock().expect("no panic under the lock");
        heard.push((info.family.clone(), info.reason));
    }
}

#[test]
fn the_flush_is_one_of_a_full_memtable() {
    for atomic in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = options("memtable_op_scan_flush_trigger=10");
        let (statistics, reasons) = (Statistics::new(), Arc::new(Reasons::default()));
        options.db.atomic_flush = atomic;
        options.db.statistics = Some(Arc::clone(&statistics));
        options.db.listeners.push(reasons.clone());
        let other = options.family.clone();
        let db = Db::open(dir.path(), options).expect("opens");
        let other = db.create_family("other", other).expect("made");
        db.put_cf(&other, "key", "value").expect("written");
        ten_hidden(&db, false);
        assert_eq!(forward(db.iter()).len(), 3);
        assert!(is_flushed(&db));
        let mut heard = reasons.0.lock().expect("no panic under the lock").clone();
        heard.sort_by(|a, b| a.0.cmp(&b.0));
        let families: &[&str] = if atomic {
            &["default", "other"]
        } else {
            &["default"]
        };
        let expected: Vec<_> = families
            .iter()
            .map(|f| ((*f).to_owned(), FlushReason::WriteBufferFull))
            .collect();
        assert_eq!(heard, expected);
        let counted = statistics.ticker(Ticker::FlushReasonWriteBufferFull);
        assert_eq!(counted, families.len() as u64);
        let log = std::fs::read_to_string(dir.path().join("LOG")).expect("a LOG");
        assert!(log.contains(r#""flush_reason": "Write Buffer Full""#));
    }
}

#[test]
fn writers_are_not_stopped_for_it() {
    let (_dir, db) = open("memtable_op_scan_flush_trigger=10;max_write_buffer_number=2");
    put(&db, [100]);
    db.pause_background_work().expect("paused");
    let mut later = FlushOptions::default();
    later.wait = false;
    later.allow_write_stall = true;
    db.flush_cf(&db.default_family_handle(), &later)
        .expect("begun");
    ten_hidden(&db, false);
    assert_eq!(forward(db.iter()).len(), 4);
    // Another memtable in wait would be one too many.
    assert_eq!(number(&db, "rocksdb.num-immutable-mem-table"), 1);
    put(&db, [101]);
    db.continue_background_work();
    assert_eq!(shape(&db), (0, 2));
}

#[test]
fn readers_without_write_access_flush_nothing() {
    let (dir, db) = open("memtable_op_scan_flush_trigger=1;memtable_avg_op_scan_flush_trigger=1");
    let path = dir.path().join("db");
    let family = db.default_family_handle();
    let turn_off = [("memtable_op_scan_flush_trigger", "0")];
    db.set_options(&family, &turn_off).expect("set");
    ten_hidden(&db, false);
    let names = || {
        let names = std::fs::read_dir(&path).expect("it is there");
        let mut names: Vec<_> = names.map(|n| n.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let with = || options("memtable_op_scan_flush_trigger=1;memtable_avg_op_scan_flush_trigger=1");
    let readers = [
        Db::open_read_only(&path, with()),
        Db::open_secondary(&path, dir.path().join("second"), with()),
    ];
    for reader in readers {
        let reader = reader.expect("opens");
        assert_eq!(forward(reader.iter()).len(), 3);
        assert_eq!(forward(reader.iter()).len(), 3);
        let entries = number(&reader, "rocksdb.num-entries-active-mem-table");
        assert_eq!(entries, 13);
        let shown = reader.default_family_handle().options();
        assert_eq!(shown.memtable_op_scan_flush_trigger, 0);
        assert_eq!(shown.memtable_avg_op_scan_flush_trigger, 0);
    }
    assert_eq!(names(), before);
    assert!(!is_flushed(&db));
}

/// An iterator, and the entries that it is to show.
type Expected = (DbIterator, Vec<(Vec<u8>, Vec<u8>)>);

/// Iterators that have memtables flushed all the time show what was there when they were made.
#[test]
fn every_iterator_shows_its_state() {
    let seed = common::number("ESKER_SEED", 1);
    for seed in seed..seed + 4 {
        let (_dir, db) = open(
            "disable_auto_compactions=false;level0_file_num_compaction_trigger=3;\
             memtable_op_scan_flush_trigger=3;memtable_avg_op_scan_flush_trigger=1;\
             max_sequential_skip_in_iterations=2",
        );
        let mut rng = Rng::new(seed);
        let mut model = BTreeMap::new();
        let mut held: Vec<Expected> = Vec::new();
        for op in 0..2_000_u64 {
            let n = rng.below(60) as u32;
            match rng.below(10) {
                0..=3 => {
                    db.put(key(n), op.to_le_bytes()).expect("put");
                    model.insert(key(n), op.to_le_bytes().to_vec());
                }
                4..=6 => {
                    for n in n..n + rng.below(6) as u32 {
                        db.delete(key(n)).expect("deleted");
                        model.remove(&key(n));
                    }
                }
                7 => {
                    let entries = model.iter().map(|(k, v)| (k.clone(), v.clone()));
                    held.push((db.iter(), entries.collect()));
                }
                _ if !held.is_empty() => {
                    let at = rng.below(held.len() as u64) as usize;
                    let (it, entries) = &mut held[at];
                    let from = entries.partition_point(|(k, _)| *k < key(n));
                    it.seek(key(n));
                    for entry in &entries[from..] {
                        let (k, v) = entry;
                        assert_eq!(it.entry(), Some((&k[..], &v[..])), "seed {seed} op {op}");
                        it.next();
                    }
                    assert!(!it.valid(), "seed {seed} op {op}");
                    it.seek_for_prev(key(n));
                    let to = entries.partition_point(|(k, _)| *k <= key(n));
                    for (k, v) in entries[..to].iter().rev() {
                        assert_eq!(it.entry(), Some((&k[..], &v[..])), "seed {seed} op {op}");
                        it.prev();
                    }
                    assert!(!it.valid(), "seed {seed} op {op}");
                    it.status().expect("walks to the end");
                    if rng.one_in(3) {
                        held.swap_remove(at);
                    }
                }
                _ => {}
            }
            if op % 20 == 0 {
                db.wait_for_compaction().expect("waited");
            }
        }
        let views = number(&db, "rocksdb.current-super-version-number");
        assert!(views > 50, "seed {seed}: {views} views");
    }
}
