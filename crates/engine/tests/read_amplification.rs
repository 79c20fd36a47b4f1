//! The perf context and the read amplification against counts that are known: three runs, a filter
//! for each, the cache cold and warm.

use esker::observe::{PerfContext, PerfLevel, PerfMetric, set_perf_level};
use esker::{Db, Options, PropertyMap, ReadOptions};
use std::path::Path;

/// Keys of each run.
const KEYS: u32 = 3_000;
const RUNS: u32 = 3;
/// Reads that one stands for.
const SAMPLE: u64 = 61;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn with_table(table: &str) -> Options {
    let mut options = Options::new()
        .create_if_missing(true)
        .set("compression", "kNoCompression")
        .and_then(|o| o.set("block_based_table_factory", table))
        .expect("options");
    options.family.disable_auto_compactions = true;
    options
}

fn options() -> Options {
    with_table("{filter_policy=bloomfilter:10:false;cache_index_and_filter_blocks=true;}")
}

/// Three tables of level 0 over one range, whose keys take turns: of each key one run has it.
fn filled(dir: &Path) -> Db {
    let db = Db::open(dir, options()).expect("opened");
    for run in 0..RUNS {
        for n in (0..KEYS).map(|i| i * RUNS + run) {
            db.put(key(n), [n as u8; 40]).expect("written");
        }
        db.flush().expect("flushed");
    }
    db
}

/// Returns what one call adds to figures of the perf context.
fn taken<const N: usize>(metrics: [PerfMetric; N], call: impl FnOnce()) -> [u64; N] {
    PerfContext.reset();
    call();
    metrics.map(|m| PerfContext.get(m))
}

const IO: [PerfMetric; 4] = [
    PerfMetric::BlockReadCount,
    PerfMetric::IndexBlockReadCount,
    PerfMetric::FilterBlockReadCount,
    PerfMetric::MetadataBlockReadByte,
];
const CPU: [PerfMetric; 5] = [
    PerfMetric::BlockCacheHitCount,
    PerfMetric::BlockCacheIndexHitCount,
    PerfMetric::BlockCacheFilterHitCount,
    PerfMetric::BloomSstMissCount,
    PerfMetric::BloomSstHitCount,
];

/// A key of the oldest run that the filters of the other two exclude.
fn excluded_key(db: &Db) -> u32 {
    let mut keys = (0..KEYS).map(|i| i * RUNS);
    let found = keys.find(|n| {
        let asked = taken(CPU, || assert!(db.get(key(*n)).expect("read").is_some()));
        asked[3..] == [2, 1]
    });
    found.expect("most keys are so")
}

#[test]
fn a_get_is_counted_as_rocksdb_counts_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let n = {
        let db = filled(dir.path());
        excluded_key(&db)
    };
    let db = Db::open(dir.path(), options()).expect("opened");
    let get = || assert!(db.get(key(n)).expect("read").is_some());
    // Opening has put the indexes into the cache.
    let cold = taken(IO, get);
    assert_eq!(cold, [4, 0, 3, 0], "three filters and a block of entries");
    let warm = taken(IO, get);
    assert_eq!(warm, [0; 4]);
    let warm = taken(CPU, get);
    assert_eq!(warm, [5, 1, 3, 2, 1], "three filters, an index, a block");
    // About 40 blocks in the index and 75 entries in the block.
    let [compared] = taken([PerfMetric::UserKeyComparisonCount], get);
    assert!((10..=40).contains(&compared), "{compared}");

    let [bytes, data, filter] = taken(
        [
            PerfMetric::BlockReadByte,
            PerfMetric::DataBlockReadByte,
            PerfMetric::FilterBlockReadByte,
        ],
        || {
            let far = key((n / RUNS + KEYS / 2) % KEYS * RUNS);
            assert!(db.get(far).expect("read").is_some());
        },
    );
    assert_eq!((bytes, filter), (data, 0));
    assert!((2_000..5_000).contains(&data), "{data}");

    set_perf_level(PerfLevel::Disable);
    assert_eq!(taken(CPU, get), [0; 5]);
    set_perf_level(PerfLevel::EnableCount);

    db.put(key(n), "newer").expect("written");
    let [memtables] = taken([PerfMetric::GetFromMemtableCount], get);
    assert_eq!(memtables, 1);
}

fn amplification(db: &Db) -> PropertyMap {
    let family = db.default_family_handle();
    let map = db.map_property(&family, "rocksdb.esker.read-amplification");
    map.expect("a map")
}

fn value(map: &PropertyMap, name: &str) -> f64 {
    let text = map.get(name).unwrap_or_else(|| panic!("{name} is there"));
    text.parse().expect("a number")
}

#[test]
fn what_gets_took_is_told_apart_for_io_and_processor() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = filled(dir.path());
    let n = excluded_key(&db);
    db.reset_stats();
    let rounds = 100;
    for _ in 0..rounds * SAMPLE {
        assert!(db.get(key(n)).expect("read").is_some());
    }
    let map = amplification(&db);
    let of = |name: &str| value(&map, name);
    assert_eq!(of("get.looked-at"), rounds as f64);
    assert_eq!(of("get.count"), (rounds * SAMPLE) as f64);
    assert_eq!((of("get.io.blocks"), of("get.io.bytes")), (0.0, 0.0));
    let each = [
        ("data-hits", 1.0),
        ("index-hits", 1.0),
        ("filter-hits", 3.0),
        ("filters", 3.0),
        ("filters-useful", 2.0),
        ("tables", 3.0),
        ("memtables", 0.0),
    ];
    for (name, expected) in each {
        assert_eq!(of(&format!("get.cpu.{name}.each")), expected, "{name}");
    }
    assert_eq!(of("get.cpu.data-hits"), (rounds * SAMPLE) as f64);
    assert!(of("get.cpu.compared.each") >= 10.0);

    let text = db.property("rocksdb.esker.read-amplification");
    let text = text.expect("a text");
    let lines = text.lines().filter(|l| l.starts_with("get ")).count();
    assert_eq!(lines, 1, "{text}");
    assert!(!text.contains("multiget "), "nobody asked: {text}");

    db.reset_stats();
    assert_eq!(value(&amplification(&db), "get.count"), 0.0);
}

#[test]
fn reads_of_many_keys_count_by_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = filled(dir.path());
    let n = excluded_key(&db);
    db.reset_stats();
    let family = db.default_family_handle();
    let keys = [key(n); 4];
    for _ in 0..10 * SAMPLE {
        let found = db.multi_get_opt(&family, keys, &ReadOptions::default(), None);
        assert!(found.iter().all(|v| matches!(v, Ok(Some(_)))));
    }
    let map = amplification(&db);
    assert_eq!(value(&map, "multiget.looked-at"), 40.0);
    assert_eq!(value(&map, "multiget.cpu.filters.each"), 3.0);
    assert_eq!(value(&map, "multiget.cpu.tables.each"), 3.0);
    assert_eq!(value(&map, "get.count"), 0.0);
}

#[test]
fn blocks_that_were_not_cached_are_the_io_part() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = filled(dir.path());
    drop(db);
    let uncached = with_table("{filter_policy=bloomfilter:10:false;no_block_cache=true;}");
    let db = Db::open(dir.path(), uncached).expect("opened");
    let n = excluded_key(&db);
    db.reset_stats();
    for _ in 0..2 * SAMPLE {
        assert!(db.get(key(n)).expect("read").is_some());
    }
    let map = amplification(&db);
    let of = |name: &str| value(&map, name);
    assert_eq!(of("get.io.blocks.each"), 1.0);
    assert_eq!(of("get.io.data-blocks.each"), 1.0);
    assert_eq!(of("get.io.index-blocks.each"), 0.0);
    assert!((2_000.0..5_000.0).contains(&of("get.io.bytes.each")));
    assert_eq!(of("get.cpu.data-hits.each"), 0.0);
    assert_eq!(of("get.cpu.filters-useful.each"), 2.0);
}

#[test]
fn seeks_and_steps_are_counted_apart() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = filled(dir.path());
    let walk = |it: &mut esker::DbIterator| {
        it.seek(key(KEYS));
        (0..10).for_each(|_| it.next());
        assert!(it.valid());
    };
    // Fills the cache and sees both kinds of searches in blocks.
    let mut it = db.iter();
    (0..10).for_each(|_| walk(&mut it));
    db.reset_stats();
    for _ in 0..5 * SAMPLE {
        walk(&mut it);
    }
    let map = amplification(&db);
    let of = |name: &str| value(&map, name);
    assert_eq!(of("seek.looked-at"), 5.0);
    assert_eq!(of("next.looked-at"), 50.0, "the steps behind those seeks");
    assert_eq!(of("next.count"), 50.0 * SAMPLE as f64);
    assert_eq!(of("seek.io.blocks"), 0.0);
    assert_eq!(of("seek.cpu.skipped"), 0.0);
    assert_eq!(of("next.cpu.tables"), 0.0, "no run is positioned again");
    assert_eq!(of("get.count"), 0.0);
}

#[test]
fn entries_passed_over_are_counted_as_rocksdb_counts_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options()).expect("opened");
    for round in 0..3u8 {
        for n in 0..10 {
            db.put(key(n), [round]).expect("written");
        }
    }
    for n in 3..6 {
        db.delete(key(n)).expect("written");
    }
    let mut it = db.iter();
    for n in 10..12 {
        db.put(key(n), "later").expect("written");
    }
    let skipped = [
        PerfMetric::InternalKeySkippedCount,
        PerfMetric::InternalDeleteSkippedCount,
        PerfMetric::InternalRecentSkippedCount,
    ];
    let counted = taken(skipped, || {
        it.seek_to_first();
        while it.valid() {
            it.next();
        }
    });
    // Two older versions of each of ten keys, and the newest of those that are deleted; the three
    // deletions; what was written after the iterator was made.
    assert_eq!(counted, [23, 3, 2]);
}
