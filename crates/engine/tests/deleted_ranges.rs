//! Ranges that an iterator found deleted: later ones go past them, and see what they would see
//! otherwise.

mod common;

use common::Rng;
use common::numbered::{all, at, backward, delete, forward, key, put};
use esker::observe::{PerfContext, PerfLevel, PerfMetric, set_perf_level};
use esker::{Db, DbIterator, IngestOptions, Options, Snapshot, SstFileWriter};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Trees stay as they are, but for what the test does.
const RESTS: &str = "compaction_for_reads=false";

fn options(changes: &str) -> Options {
    let options = Options::new().create_if_missing(true).set_all(changes);
    options.expect("these options exist")
}

fn open(changes: &str) -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path().join("db"), options(changes)).expect("opens");
    (dir, db)
}

/// Keys in their order, by a walk of an iterator.
type Walk = fn(DbIterator) -> Vec<Vec<u8>>;

/// Deletions that `read` passes over.
fn passed<T>(read: impl FnOnce() -> T) -> (T, u64) {
    set_perf_level(PerfLevel::EnableCount);
    let count = || PerfContext.get(PerfMetric::InternalDeleteSkippedCount);
    let before = count();
    let done = read();
    (done, count() - before)
}

#[test]
fn later_walks_go_past_them_in_both_directions() {
    for first_is_forward in [true, false] {
        let mut walks: [Walk; 2] = [forward, backward];
        if !first_is_forward {
            walks.reverse();
        }
        let [first, second] = walks;
        let (_dir, db) = open(RESTS);
        put(&db, 0..1000);
        db.flush().expect("flushed");
        let before = db.snapshot();
        delete(&db, 100..900);
        let left = all((0..100).chain(900..1000));
        let (keys, deletions) = passed(|| first(db.iter()));
        assert_eq!(keys, left);
        // Those that a walk backward passes over are not counted.
        assert_eq!(deletions >= 700, first_is_forward, "{deletions}");
        for walk in [first, second, second] {
            let (keys, deletions) = passed(|| walk(db.iter()));
            assert_eq!((keys, deletions < 4), (left.clone(), true), "{deletions}");
        }
        for n in [100, 101, 500, 899] {
            let mut it = db.iter();
            it.seek(key(n));
            assert_eq!(it.key(), key(900));
            it.seek_for_prev(key(n));
            assert_eq!(it.key(), key(99));
            it.next();
            assert_eq!(it.key(), key(900));
        }
        assert_eq!(forward(at(&db, &before)), all(0..1000));
        assert_eq!(backward(at(&db, &before)), all(0..1000));
        // The next memtable has them, too.
        db.flush().expect("flushed");
        put(&db, [2000]);
        let (_, deletions) = passed(|| second(db.iter()));
        assert!(deletions < 4, "{deletions}");
    }
}

#[test]
fn a_range_grows_with_what_is_deleted_beside_it() {
    let (_dir, db) = open(RESTS);
    put(&db, 0..2000);
    for n in 0..1900 {
        delete(&db, [n]);
        let (first, deletions) = passed(|| {
            let mut it = db.iter();
            it.seek_to_first();
            it.key().to_vec()
        });
        assert_eq!(first, key(n + 1));
        assert!(deletions < 20, "{n}: {deletions}");
    }
}

#[test]
fn writes_into_them_are_seen() {
    let (_dir, db) = open(RESTS);
    put(&db, 0..1000);
    delete(&db, 100..900);
    assert_eq!(forward(db.iter()), all((0..100).chain(900..1000)));
    let snapshot = db.snapshot();
    put(&db, [100]);
    assert_eq!(forward(db.iter()), all((0..101).chain(900..1000)));
    put(&db, [899]);
    assert_eq!(backward(db.iter()), all((0..101).chain(899..1000)));
    db.flush().expect("flushed");
    put(&db, [500]);
    let now = all((0..101).chain([500]).chain(899..1000));
    assert_eq!(forward(db.iter()), now);
    assert_eq!(backward(db.iter()), now);
    let then = all((0..100).chain(900..1000));
    assert_eq!(forward(at(&db, &snapshot)), then);
    assert_eq!(backward(at(&db, &snapshot)), then);
}

/// Entries of an ingested file may have sequence number 0.
#[test]
fn an_ingested_file_is_seen() {
    let (dir, db) = open(RESTS);
    for n in (0..200).step_by(2) {
        put(&db, [n]);
    }
    delete(&db, (20..180).step_by(2));
    db.flush().expect("flushed");
    let old = db.iter();
    let left = all((0..20).step_by(2).chain((180..200).step_by(2)));
    assert_eq!(forward(db.iter()), left);
    ingest(&db, dir.path(), &[55]);
    let mut now = left.clone();
    now.insert(10, key(55));
    assert_eq!(forward(db.iter()), now);
    assert_eq!(forward(old), left);
    assert_eq!(backward(db.iter()), now);
}

/// A reader of an older snapshot walks over what an ingested file has, without seeing it.
#[test]
fn what_an_older_reader_does_not_see_others_do() {
    for walk in [forward, backward] {
        let (dir, db) = open(RESTS);
        put(&db, 0..100);
        delete(&db, 10..90);
        let snapshot = db.snapshot();
        let numbers = [10, 50, 89];
        ingest(&db, dir.path(), &numbers);
        let then = all((0..10).chain(90..100));
        let now = all((0..10).chain(numbers).chain(90..100));
        for _ in 0..3 {
            assert_eq!(walk(at(&db, &snapshot)), then);
            assert_eq!(forward(db.iter()), now);
            assert_eq!(backward(db.iter()), now);
        }
        let mut it = db.iter();
        it.seek(key(10));
        assert_eq!(it.key(), key(10));
    }
}

/// Takes in a file with these numbers, which rise.
fn ingest(db: &Db, dir: &std::path::Path, numbers: &[u32]) {
    let mut writer = SstFileWriter::new(&options("")).expect("a writer");
    writer.open(dir.join("ingested.sst")).expect("begun");
    for n in numbers {
        writer.put(key(*n), "ingested").expect("put");
    }
    let file = writer.finish().expect("finished").file_path;
    let family = db.default_family_handle();
    db.ingest(&family, &[&file], &IngestOptions::default())
        .expect("ingested");
    std::fs::remove_file(file).expect("removed");
}

/// The deletions go with their file, and what they deleted is there again.
#[test]
fn files_that_are_deleted_bring_older_entries_back() {
    let (_dir, db) = open("disable_auto_compactions=true");
    put(&db, 0..300);
    db.compact_range(None, None).expect("compacted");
    delete(&db, 100..200);
    db.flush().expect("flushed");
    let left = all((0..100).chain(200..300));
    let family = db.default_family_handle();
    let files = db.live_files_metadata();
    let name = files.iter().find(|f| f.level == 0).map(|f| f.name.clone());
    db.compact_files(&family, &[name.expect("a table of level 0")], 3)
        .expect("moved");
    assert_eq!(forward(db.iter()), left);
    assert_eq!(backward(db.iter()), left);
    let old = db.iter();
    db.delete_files_in_ranges(&family, &[(Some(key(100)), Some(key(199)))], true)
        .expect("deleted");
    assert!(db.get(key(150)).expect("read").is_some());
    assert_eq!(forward(db.iter()), all(0..300));
    assert_eq!(forward(old), left);
}

#[test]
fn keys_that_come_while_others_read_are_seen() {
    let (_dir, db) = open(RESTS);
    put(&db, 0..400);
    delete(&db, 10..390);
    let written = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    // The newest key that was written and may be deleted only after the next one.
                    let before = written.load(Ordering::Acquire);
                    let mut it = db.iter();
                    it.seek(key(10));
                    let first = it.key().to_vec();
                    it.seek_for_prev(key(389));
                    let last = it.key().to_vec();
                    let after = written.load(Ordering::Acquire);
                    if before > 0 && before == after {
                        let here = key(10 + (before % 380) as u32);
                        assert!(
                            first <= here && last >= here,
                            "{before}: {first:?} {last:?}"
                        );
                    }
                }
            });
        }
        let mut rng = Rng::new(5);
        for n in 1..30_000_u64 {
            let at = |n: u64| key(10 + (n % 380) as u32);
            db.put(at(n), n.to_le_bytes()).expect("written");
            written.store(n, Ordering::Release);
            if rng.one_in(3) {
                std::thread::yield_now();
            }
            // Only the key before goes, once a later one is there.
            if n > 1 {
                db.delete(at(n - 1)).expect("deleted");
            }
        }
        is_over.store(true, Ordering::Release);
    });
}

/// Random operations against every state that a snapshot holds.
#[test]
fn every_snapshot_shows_its_state() {
    let seed = common::number("ESKER_SEED", 1);
    for seed in seed..seed + 6 {
        let (dir, db) = open(
            "write_buffer_size=65536;level0_file_num_compaction_trigger=3;\
             max_write_buffer_number=3",
        );
        let mut rng = Rng::new(seed);
        let mut model = BTreeMap::new();
        let mut held: Vec<(Snapshot, BTreeMap<Vec<u8>, u64>)> = Vec::new();
        for op in 0..4_000_u64 {
            let n = rng.below(200) as u32;
            let context = format!("seed {seed} op {op}");
            match rng.below(40) {
                0..=7 => {
                    db.put(key(n), op.to_le_bytes()).expect("put");
                    model.insert(key(n), op);
                }
                8..=17 => {
                    for n in n..n + rng.below(30) as u32 {
                        db.delete(key(n)).expect("deleted");
                        model.remove(&key(n));
                    }
                }
                18 => {
                    let family = db.default_family_handle();
                    db.delete_range_cf(&family, key(n), key(n + 5))
                        .expect("deleted");
                    for n in n..n + 5 {
                        model.remove(&key(n));
                    }
                }
                19 if rng.one_in(3) => {
                    let numbers: Vec<_> = (n..n + 40).step_by(1 + n as usize % 13).collect();
                    ingest(&db, dir.path(), &numbers);
                    model.extend(numbers.iter().map(|n| (key(*n), op)));
                }
                20 => held.push((db.snapshot(), model.clone())),
                21 if held.len() > 3 => drop(held.swap_remove(rng.below(4) as usize)),
                22 => db.flush().expect("flushed"),
                23 if rng.one_in(4) => db.compact_range(None, None).expect("compacted"),
                24..=33 => {
                    let is_old = !held.is_empty() && rng.one_in(3);
                    let (it, then) = if is_old {
                        let (snapshot, then) = &held[rng.below(held.len() as u64) as usize];
                        (at(&db, snapshot), then)
                    } else {
                        (db.iter(), &model)
                    };
                    check_moves(it, then, &mut rng, &context);
                }
                _ => {
                    let walk = *rng.pick(&[forward, backward]);
                    let keys: Vec<_> = model.keys().cloned().collect();
                    assert_eq!(walk(db.iter()), keys, "{context}");
                }
            }
        }
    }
}

/// Seeks and steps in both directions.
fn check_moves(mut it: DbIterator, then: &BTreeMap<Vec<u8>, u64>, rng: &mut Rng, context: &str) {
    let keys: Vec<_> = then.keys().cloned().collect();
    let sought = key(rng.below(210) as u32);
    let mut at = if rng.one_in(2) {
        it.seek(&sought);
        keys.iter().position(|k| *k >= sought)
    } else {
        it.seek_for_prev(&sought);
        keys.iter().rposition(|k| *k <= sought)
    };
    for _ in 0..rng.below(12) {
        let here = at.map(|i| keys[i].as_slice());
        assert_eq!(it.valid().then(|| it.key()), here, "{context}");
        let Some(i) = at else { return };
        if rng.one_in(2) {
            it.next();
            at = (i + 1 < keys.len()).then_some(i + 1);
        } else {
            it.prev();
            at = i.checked_sub(1);
        }
    }
}
