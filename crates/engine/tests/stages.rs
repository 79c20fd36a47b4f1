//! The stages of flushes and compactions: their times add up, their bytes and entries are the
//! tree's own.

use esker::observe::{HistogramId, Statistics};
use esker::{Db, Env, Options};
use esker_files::table::Stage;
use std::collections::BTreeMap;
use std::sync::Arc;

const KEYS: usize = 30_000;
const TABLES: usize = 4;

/// Loads and compacts a database with these options; gives it with what it says of its stages.
fn run(changes: &[(&str, &str)]) -> (Db, BTreeMap<String, u64>) {
    run_counted(Statistics::new(), changes)
}

fn run_counted(
    statistics: Arc<Statistics>,
    changes: &[(&str, &str)],
) -> (Db, BTreeMap<String, u64>) {
    let mut options = Options::new().create_if_missing(true).env(Env::in_memory());
    options.db.statistics = Some(statistics);
    options = options
        .set("level0_file_num_compaction_trigger", "100")
        .expect("an option");
    for (name, value) in changes {
        options = options.set(name, value).expect("an option");
    }
    let db = Db::open("/db", options).expect("opens");
    for table in 0..TABLES {
        for n in 0..KEYS {
            // Half of it can be compressed away.
            let mixed = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (table % 3);
            let value = format!("{mixed:020}{:080}", 0);
            db.put(format!("{n:012}"), value).expect("written");
        }
        db.flush().expect("flushed");
    }
    let before = int(&db, "rocksdb.total-sst-files-size");
    db.compact_range(None, None).expect("compacted");
    let said = figures(&db);
    assert_eq!(said["flush.bytes-out"], before);
    (db, said)
}

fn int(db: &Db, name: &str) -> u64 {
    let n = db.int_property(&db.default_family_handle(), name);
    n.expect("a number")
}

fn figures(db: &Db) -> BTreeMap<String, u64> {
    let family = db.default_family_handle();
    let map = db.map_property(&family, "rocksdb.esker.compaction-stages");
    let map = map.expect("a map");
    let number = |v: &String| v.parse().expect("a number");
    map.iter().map(|(k, v)| (k.clone(), number(v))).collect()
}

/// The row of the compaction, which has one output level.
fn level(said: &BTreeMap<String, u64>) -> String {
    let rows = said.keys().filter_map(|k| k.strip_suffix(".jobs"));
    let mut rows = rows.filter(|r| *r != "flush");
    let row = rows.next().expect("a compaction").to_owned();
    assert_eq!(rows.next(), None, "{said:?}");
    row
}

fn cpu(said: &BTreeMap<String, u64>, row: &str, stage: Stage) -> u64 {
    said[&format!("{row}.{}.cpu-nanos", stage.name())]
}

/// The stages add up to the processor time that the job measured by itself. What each of its
/// `parts` does before its first stage begins and after its last one is nobody's.
fn check_sum(said: &BTreeMap<String, u64>, row: &str, parts: u64) {
    let stages: u64 = Stage::ALL.iter().map(|s| cpu(said, row, *s)).sum();
    let job = said[&format!("{row}.cpu-micros")] * 1_000;
    assert!(job > 1_000_000, "{row}: {job} ns are not worth measuring");
    let off = stages.abs_diff(job);
    assert!(
        off < job / 33 + parts * 200_000,
        "{row}: stages {stages} ns, job {job} ns"
    );
}

fn check_bytes_and_entries(db: &Db, said: &BTreeMap<String, u64>) {
    let row = level(said);
    let entries = (KEYS * TABLES) as u64;
    assert_eq!(said["flush.entries-in"], entries);
    assert_eq!(said["flush.entries-out"], entries);
    assert_eq!(said["flush.jobs"], TABLES as u64);
    assert_eq!(said[&format!("{row}.entries-in")], entries);
    assert_eq!(said[&format!("{row}.entries-out")], KEYS as u64);
    assert_eq!(said[&format!("{row}.bytes-in")], said["flush.bytes-out"]);
    let tree = int(db, "rocksdb.total-sst-files-size");
    assert_eq!(said[&format!("{row}.bytes-out")], tree);
    // Keys with their sequences, and values.
    assert_eq!(said["flush.bytes-in"], entries * (12 + 8 + 100));
}

const FILTERED: (&str, &str) = (
    "block_based_table_factory",
    "{filter_policy=bloomfilter:10:false;}",
);

#[test]
fn every_stage_has_its_share() {
    let (db, said) = run(&[("compression", "kLZ4Compression"), FILTERED]);
    let row = level(&said);
    check_bytes_and_entries(&db, &said);
    check_sum(&said, "flush", 1);
    check_sum(&said, &row, 1);
    for stage in Stage::ALL {
        let reads = matches!(stage, Stage::Read | Stage::Decompress);
        assert_eq!(cpu(&said, "flush", stage) == 0, reads, "flush {stage:?}");
        let (cpu, all) = (cpu(&said, &row, stage), said[&format!("{row}.cpu-micros")]);
        assert!(cpu > 0, "{stage:?}");
        assert!(cpu < all * 950, "{stage:?} is nearly all: {cpu} ns");
    }
    let text = db.property("rocksdb.esker.compaction-stages");
    let text = text.expect("a text");
    let line = |begin: &str| text.lines().find(|l| l.starts_with(begin));
    let flushed: Vec<&str> = line("flush").expect("flushes").split_whitespace().collect();
    assert_eq!(flushed[1], TABLES.to_string());
    let shares = flushed[3..10].iter().map(|s| s.parse::<f64>());
    let shares: f64 = shares.map(|s| s.expect("a number")).sum();
    assert!((99.0..101.0).contains(&shares), "{text}");
    let last = text.lines().last().expect("a line");
    assert!(last.starts_with("Write-amp: WAL 1."), "{last}");
    // What each component adds, out of the figures.
    let flushed = said["flush.bytes-in"] as f64;
    for (name, bytes) in [
        ("flush", "flush.bytes-out"),
        (&*row, &*format!("{row}.bytes-out")),
    ] {
        let part = format!(" + {name} {:.2}", said[bytes] as f64 / flushed);
        assert!(last.contains(&part), "{part} in {last}");
    }
    db.reset_stats();
    assert!(figures(&db).is_empty());
}

#[test]
fn stages_that_are_not_needed_take_no_time() {
    let (db, said) = run(&[
        ("compression", "kNoCompression"),
        ("block_based_table_factory", "{checksum=kNoChecksum;}"),
    ]);
    let row = level(&said);
    check_bytes_and_entries(&db, &said);
    check_sum(&said, &row, 1);
    for stage in [Stage::Decompress, Stage::Compress, Stage::Filter] {
        assert_eq!(cpu(&said, &row, stage), 0, "{stage:?}");
        assert_eq!(cpu(&said, "flush", stage), 0, "{stage:?}");
    }
    assert!(cpu(&said, &row, Stage::Read) > 0 && cpu(&said, &row, Stage::Write) > 0);
}

#[test]
fn costly_stages_show_their_cost() {
    // The same entries with a costly codec: what comes on top is in two stages.
    let (_, cheap) = run(&[("compression", "kNoCompression")]);
    let (_, dear) = run(&[("compression", "kZlibCompression")]);
    let row = level(&dear);
    let all: u64 = Stage::ALL.iter().map(|s| cpu(&dear, &row, *s)).sum();
    let codec = cpu(&dear, &row, Stage::Compress) + cpu(&dear, &row, Stage::Decompress);
    let rest = all - codec;
    let bare: u64 = Stage::ALL
        .iter()
        .map(|s| cpu(&cheap, &level(&cheap), *s))
        .sum();
    assert!(codec > all / 3, "the codec took {codec} of {all} ns");
    assert!(
        rest < bare * 3,
        "without the codec {rest} ns, and {bare} ns"
    );
}

#[test]
fn parts_side_by_side_add_up() {
    let statistics = Statistics::new();
    let changes = [
        ("compression", "kLZ4Compression"),
        ("max_subcompactions", "4"),
        ("target_file_size_base", "500000"),
        FILTERED,
    ];
    let (db, said) = run_counted(Arc::clone(&statistics), &changes);
    let parts = statistics.histogram(HistogramId::NumSubcompactionsScheduled);
    assert!(parts.max > 1, "{parts:?}");
    check_bytes_and_entries(&db, &said);
    let row = level(&said);
    check_sum(&said, &row, parts.max);
    assert!(Stage::ALL.iter().all(|s| cpu(&said, &row, *s) > 0));
}
