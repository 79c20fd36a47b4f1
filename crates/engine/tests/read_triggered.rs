//! `read_triggered_compaction_threshold`: files that reads search in vain are compacted.

use esker::options::CompactionStyle;
use esker::{Db, Options};
use std::path::Path;
use std::time::{Duration, Instant};

const KEYS: u32 = 4_000;
const LONGEST: Duration = Duration::from_secs(60);

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn options(style: CompactionStyle, threshold: f64) -> Options {
    let mut options = Options::new().create_if_missing(true);
    options.family.compaction_style = style;
    options.family.compaction_for_reads = false;
    options.family.read_triggered_compaction_threshold = threshold;
    options.db.max_compaction_trigger_wakeup_seconds = 1;
    options
}

/// Keys at the end that are deleted: too few to ask for a compaction by themselves.
const DELETED: u32 = 16;

/// A run of values at the bottom, and a table of level 0 above it that has newer values of even
/// keys and the deletions of the last ones.
fn database(dir: &Path, style: CompactionStyle, threshold: f64) -> Db {
    let db = Db::open(dir, options(style, threshold)).expect("opened");
    for n in 0..KEYS {
        db.put(key(n), n.to_le_bytes()).expect("written");
    }
    db.flush().expect("flushed");
    db.compact_range(None, None).expect("compacted");
    for n in 0..KEYS {
        if n >= KEYS - DELETED {
            db.delete(key(n)).expect("written");
        } else if n % 2 == 0 {
            db.put(key(n), "newer").expect("written");
        }
    }
    db.flush().expect("flushed");
    assert_eq!(level0(&db), 1);
    db
}

/// Reads a key that the table of level 0 has not.
fn read_in_vain(db: &Db, n: u32) {
    assert!(db.get(key(n | 1)).expect("read").is_some());
}

fn level0(db: &Db) -> u64 {
    let n = db.property("rocksdb.num-files-at-level0");
    n.and_then(|n| n.parse().ok()).expect("a number")
}

/// Reads until level 0 is empty or the time is over; says whether it is.
fn read_until_gone(db: &Db, longest: Duration, mut read: impl FnMut(&Db, u32)) -> bool {
    let begin = Instant::now();
    while level0(db) > 0 && begin.elapsed() < longest {
        (0..1_000).for_each(|n| read(db, n));
    }
    level0(db) == 0
}

#[test]
fn gets_that_find_nothing_in_a_file_have_it_compacted() {
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        let dir = tempfile::tempdir().expect("a directory");
        let db = database(dir.path(), style, 0.01);
        assert!(read_until_gone(&db, LONGEST, read_in_vain), "{style:?}");
    }
}

#[test]
fn seeks_to_deleted_keys_have_their_file_compacted() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path(), CompactionStyle::Level, 0.01);
    let gone = read_until_gone(&db, LONGEST, |db, n| {
        let mut it = db.iter();
        it.seek(key(KEYS - 1 - n % DELETED));
        assert!(!it.valid());
    });
    assert!(gone);
}

#[test]
fn reads_that_find_values_ask_for_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path(), CompactionStyle::Level, 0.01);
    let gone = read_until_gone(&db, Duration::from_secs(3), |db, n| {
        assert_eq!(
            db.get(key(n & !1)).expect("read").as_deref(),
            Some(&b"newer"[..])
        );
    });
    assert!(!gone);
}

#[test]
fn without_a_threshold_nothing_is_compacted_and_it_can_be_set_later() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path(), CompactionStyle::Level, 0.0);
    assert!(!read_until_gone(&db, Duration::from_secs(3), read_in_vain));
    let family = db.default_family_handle();
    let name = "read_triggered_compaction_threshold";
    let set = |value| db.set_options(&family, &[(name, value)]);
    assert!(set("-1").is_err());
    set("0.01").expect("set");
    assert!(read_until_gone(&db, LONGEST, read_in_vain));
}
