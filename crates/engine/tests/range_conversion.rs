//! Deletions in a row that iterators write once more as range deletions: later reads skip them,
//! and no reader sees anything else than before.

mod common;

use common::Rng;
use common::numbered::{all, at, backward, delete, forward, key, put};
use esker::observe::{Statistics, Ticker};
use esker::{Db, DbIterator, IngestOptions, Options, ReadOptions, Snapshot, SstFileWriter};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const CONVERTS: &str = "min_tombstones_for_range_conversion=4;compaction_for_reads=false";

fn options(changes: &str) -> (Options, Arc<Statistics>) {
    let statistics = Statistics::new();
    let mut options = Options::new()
        .create_if_missing(true)
        .set_all(changes)
        .expect("these options exist");
    options.db.statistics = Some(Arc::clone(&statistics));
    (options, statistics)
}

fn open(changes: &str) -> (tempfile::TempDir, Db, Arc<Statistics>) {
    let dir = tempfile::tempdir().expect("a directory");
    let (options, statistics) = options(changes);
    let db = Db::open(dir.path().join("db"), options).expect("opens");
    (dir, db, statistics)
}

fn inserted(statistics: &Statistics) -> u64 {
    statistics.ticker(Ticker::ReadPathRangeTombstonesInserted)
}

fn discarded(statistics: &Statistics) -> u64 {
    statistics.ticker(Ticker::ReadPathRangeTombstonesDiscarded)
}

#[test]
fn both_directions_convert_once_and_older_snapshots_see_what_they_saw() {
    for walk in [forward, backward] {
        let (dir, db, statistics) = open(CONVERTS);
        put(&db, 0..100);
        let before = db.snapshot();
        delete(&db, 10..50);
        delete(&db, [60, 61, 62]);
        let left: Vec<_> = all((0..10).chain(50..60).chain(63..100));
        assert_eq!(walk(db.iter()), left);
        assert_eq!(inserted(&statistics), 1, "three in a row are left alone");
        assert_eq!(walk(db.iter()), left);
        assert_eq!((inserted(&statistics), discarded(&statistics)), (1, 0));
        assert_eq!(walk(at(&db, &before)), all(0..100));
        assert_eq!(db.get(key(20)).expect("read"), None);
        // New writes are newer than the range deletion.
        put(&db, [30]);
        assert_eq!(
            db.get(key(30)).expect("read"),
            Some(30_u32.to_le_bytes().to_vec())
        );
        let mut left = left;
        left.insert(10, key(30));
        for step in 0..4 {
            assert_eq!(forward(db.iter()), left, "step {step}");
            assert_eq!(backward(db.iter()), left, "step {step}");
            assert_eq!(forward(at(&db, &before)), all(0..100), "step {step}");
            match step {
                0 => db.flush().expect("flushed"),
                1 => db.compact_range(None, None).expect("compacted"),
                _ => {}
            }
        }
        drop(before);
        db.compact_range(None, None).expect("compacted");
        assert_eq!(forward(db.iter()), left);
        db.close().expect("closed");
        let db = Db::open(dir.path().join("db"), options("").0).expect("opens");
        assert_eq!(forward(db.iter()), left);
    }
}

/// The files that a kill leaves have the point deletions, which are in the log.
#[test]
fn a_log_does_not_have_them() {
    let (dir, db, statistics) = open(CONVERTS);
    put(&db, 0..100);
    delete(&db, 10..50);
    let left = all((0..10).chain(50..100));
    assert_eq!(forward(db.iter()), left);
    assert_eq!(inserted(&statistics), 1);
    let copy = dir.path().join("copy");
    copy_of(&dir.path().join("db"), &copy);
    let copied = Db::open(&copy, options("").0).expect("opens");
    assert_eq!(forward(copied.iter()), left);
    copied.compact_range(None, None).expect("compacted");
    assert_eq!(backward(copied.iter()), left);
}

fn copy_of(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        std::fs::copy(&path, to.join(name)).expect("copied");
    }
}

#[test]
fn a_run_ends_where_the_walk_ends() {
    let (_dir, db, statistics) = open(CONVERTS);
    put(&db, 0..100);
    delete(&db, 10..100);
    // No key follows: the last deletion stays one of a key.
    assert_eq!(forward(db.iter()), all(0..10));
    assert_eq!(inserted(&statistics), 1);
    let mut options = ReadOptions::default();
    options.iterate_upper_bound = Some(key(30));
    let family = db.default_family_handle();
    delete(&db, 0..10);
    assert_eq!(forward(db.iter_opt(&family, options, None)), all([]));
    put(&db, [29, 99]);
    assert_eq!(forward(db.iter()), all([29, 99]));
    assert_eq!(backward(db.iter()), all([29, 99]));
}

/// Entries that came between the snapshot and the memtable would be hidden.
#[test]
fn a_snapshot_from_before_the_memtable_converts_nothing() {
    let (_dir, db, statistics) = open(CONVERTS);
    put(&db, 0..50);
    delete(&db, 10..40);
    let snapshot = db.snapshot();
    put(&db, 20..25);
    db.flush().expect("flushed");
    put(&db, [70]);
    let mut left: Vec<u32> = (0..10).chain(40..50).collect();
    assert_eq!(forward(at(&db, &snapshot)), all(left.clone()));
    assert_eq!((inserted(&statistics), discarded(&statistics)), (0, 1));
    left.extend((20..25).chain([70]));
    left.sort_unstable();
    assert_eq!(forward(db.iter()), all(left));
}

/// An ingested file may have entries of sequence number 0.
#[test]
fn a_file_that_was_ingested_meanwhile_stays_visible() {
    let (dir, db, statistics) = open(CONVERTS);
    put(&db, [0, 90]);
    db.flush().expect("flushed");
    // The deletions are alone in their table: the file goes below it or beside it.
    put(&db, [1]);
    delete(&db, 10..20);
    delete(&db, 30..40);
    let mut it = db.iter();
    it.seek(key(1));
    let mut writer = SstFileWriter::new(&options("").0).expect("a writer");
    writer.open(dir.path().join("1.sst")).expect("begun");
    writer.put(key(25), "ingested").expect("put");
    let file = writer.finish().expect("finished").file_path;
    let family = db.default_family_handle();
    db.ingest(&family, &[&file], &IngestOptions::default())
        .expect("ingested");
    while it.valid() {
        it.next();
    }
    assert_eq!(inserted(&statistics), 0);
    assert!(discarded(&statistics) > 0);
    assert_eq!(
        db.get(key(25)).expect("read").as_deref(),
        Some(&b"ingested"[..])
    );
    assert_eq!(forward(db.iter()), all([0, 1, 25, 90]));
}

/// Random operations against every state that a snapshot holds.
#[test]
fn every_snapshot_shows_its_state() {
    let seed = common::number("ESKER_SEED", 1);
    for seed in seed..seed + 6 {
        let (dir, db, statistics) = open(
            "min_tombstones_for_range_conversion=2;compaction_for_reads=false;\
             write_buffer_size=65536;level0_file_num_compaction_trigger=3",
        );
        let mut rng = Rng::new(seed);
        let mut model = BTreeMap::new();
        let mut held: Vec<(Snapshot, BTreeMap<Vec<u8>, u64>)> = Vec::new();
        let mut walking: Option<(DbIterator, Vec<Vec<u8>>)> = None;
        let family = db.default_family_handle();
        for op in 0..3_000_u64 {
            let n = rng.below(200) as u32;
            match rng.below(40) {
                0..=9 => {
                    db.put(key(n), op.to_le_bytes()).expect("put");
                    model.insert(key(n), op);
                }
                10..=19 => {
                    for n in n..n + rng.below(12) as u32 {
                        db.delete(key(n)).expect("deleted");
                        model.remove(&key(n));
                    }
                }
                20 => held.push((db.snapshot(), model.clone())),
                21 if held.len() > 3 => drop(held.swap_remove(rng.below(4) as usize)),
                22 => db.flush().expect("flushed"),
                23 if rng.one_in(4) => db.compact_range(None, None).expect("compacted"),
                24 if rng.one_in(3) => {
                    let name = dir.path().join(format!("{op}.sst"));
                    let mut writer = SstFileWriter::new(&options("").0).expect("a writer");
                    writer.open(&name).expect("begun");
                    for n in n..n + 3 {
                        writer.put(key(n), op.to_le_bytes()).expect("put");
                        model.insert(key(n), op);
                    }
                    writer.finish().expect("finished");
                    db.ingest(&family, &[&name], &IngestOptions::default())
                        .expect("ingested");
                }
                25 => {
                    let keys = model.keys().cloned().collect();
                    let mut it = db.iter();
                    it.seek_to_first();
                    walking = Some((it, keys));
                }
                26 | 27 => {
                    if let Some((mut it, keys)) = walking.take() {
                        let first = it.valid().then(|| it.key().to_vec());
                        assert_eq!(first.as_ref(), keys.first(), "seed {seed} op {op}");
                        let rest = std::iter::from_fn(|| {
                            it.next();
                            it.valid().then(|| it.key().to_vec())
                        });
                        let rest: Vec<_> = rest.collect();
                        assert_eq!(
                            rest,
                            keys.get(1..).unwrap_or_default(),
                            "seed {seed} op {op}"
                        );
                    }
                }
                28..=33 => {
                    let walk = *rng.pick(&[forward, backward]);
                    let keys: Vec<_> = model.keys().cloned().collect();
                    assert_eq!(walk(db.iter()), keys, "seed {seed} op {op}");
                }
                _ if !held.is_empty() => {
                    let (snapshot, then) = &held[rng.below(held.len() as u64) as usize];
                    let walk = *rng.pick(&[forward, backward]);
                    let keys: Vec<_> = then.keys().cloned().collect();
                    assert_eq!(walk(at(&db, snapshot)), keys, "seed {seed} op {op}");
                }
                _ => {
                    let value = model.get(&key(n)).map(|op| op.to_le_bytes().to_vec());
                    assert_eq!(db.get(key(n)).expect("read"), value, "seed {seed} op {op}");
                }
            }
        }
        assert!(inserted(&statistics) > 20, "seed {seed}");
    }
}
