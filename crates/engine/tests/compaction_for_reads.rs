//! Reads that search several runs have them merged; see `esker_lsm::read_demand`.

use esker::options::{CompactionStyle, CompressionType};
use esker::{Db, Options};
use std::time::{Duration, Instant};

const KEYS: u32 = 2_000;
/// Trees rest for two seconds after a flush before reads change them.
const LONGEST: Duration = Duration::from_secs(60);

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Three tables of the same range and a memtable.
fn database(dir: &std::path::Path, style: CompactionStyle, for_reads: bool) -> Db {
    let mut options = Options::new().create_if_missing(true);
    options.family.compaction_style = style;
    options.family.compaction_for_reads = for_reads;
    let db = Db::open(dir, options).expect("opened");
    for round in 0..4u32 {
        for n in (round..KEYS).step_by(4) {
            db.put(key(n), n.to_le_bytes()).expect("written");
        }
        if round < 3 {
            db.flush().expect("flushed");
        }
    }
    db
}

fn number(db: &Db, name: &str) -> u64 {
    let text = db.property(name);
    text.and_then(|n| n.parse().ok()).expect("a number")
}

/// Tables of level 0 and entries of the memtable.
fn shape(db: &Db) -> (u64, u64) {
    let level0 = number(db, "rocksdb.num-files-at-level0");
    (level0, number(db, "rocksdb.num-entries-active-mem-table"))
}

/// Seeks from many places until `done`; how many there were.
fn seek_until(db: &Db, done: impl Fn() -> bool) -> u32 {
    let begin = Instant::now();
    let mut seeks = 0u32;
    let mut it = db.iter();
    while !done() && begin.elapsed() < LONGEST {
        it = db.iter();
        for _ in 0..1_000 {
            let n = seeks.wrapping_mul(2_654_435_761) % KEYS;
            it.seek(key(n));
            assert_eq!(it.value(), n.to_le_bytes());
            seeks += 1;
        }
    }
    drop(it);
    seeks
}

#[test]
fn seeks_have_the_runs_of_a_leveled_tree_merged() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path(), CompactionStyle::Level, true);
    assert_eq!(shape(&db), (3, 500));
    let seeks = seek_until(&db, || shape(&db) == (0, 0));
    assert_eq!(shape(&db), (0, 0), "after {seeks} seeks");
    assert!(seeks > 20_000, "reads paid for little: {seeks}");
    assert_eq!(number(&db, "rocksdb.num-files-at-level6"), 1);
}

#[test]
fn a_merge_for_reads_has_a_part_for_each_processor() {
    const VALUE: usize = 4 << 10;
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new().create_if_missing(true);
    options.family.compression = CompressionType::None;
    let db = Db::open(dir.path(), options).expect("opened");
    for round in 0..2 {
        for n in (round..KEYS).step_by(2) {
            db.put(key(n), [n as u8; VALUE]).expect("written");
        }
        db.flush().expect("flushed");
    }
    let begin = Instant::now();
    while shape(&db).0 > 0 && begin.elapsed() < LONGEST {
        let mut it = db.iter();
        for n in 0..1_000 {
            it.seek(key(n));
            assert!(it.valid());
        }
    }
    let files = number(&db, "rocksdb.num-files-at-level6");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!(files, processors.clamp(1, 4) as u64);
}

#[test]
fn seeks_have_the_runs_of_a_universal_tree_merged() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path(), CompactionStyle::Universal, true);
    let seeks = seek_until(&db, || shape(&db) == (0, 0));
    assert_eq!(shape(&db), (0, 0), "after {seeks} seeks");
}

#[test]
fn the_option_keeps_the_shape() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path(), CompactionStyle::Level, false);
    let until = Instant::now() + Duration::from_secs(4);
    let seeks = seek_until(&db, || Instant::now() > until);
    assert_eq!(shape(&db), (3, 500), "after {seeks} seeks");
}

#[test]
fn a_memtable_that_takes_writes_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path(), CompactionStyle::Level, true);
    let writes = std::cell::Cell::new(0u32);
    let until = Instant::now() + Duration::from_secs(4);
    seek_until(&db, || {
        writes.set(writes.get() + 1);
        db.put([255, 255, 255, 255, 255], writes.get().to_le_bytes())
            .expect("written");
        Instant::now() > until
    });
    let (level0, entries) = shape(&db);
    assert!(
        entries > u64::from(writes.get()),
        "flushed while it was written to"
    );
    assert!(level0 <= 3);
}
