//! Esker and a RocksDB library take turns on one database: `ESKER_REF_LIB` names the library.
//!
//! This is how later versions than the packaged tools are covered: any `librocksdb.so` with the C
//! API will do (see `docs/testing.md`). Options are drawn from those that RocksDB 11 reads, so also
//! format versions 6 and 7. Without the variable the test says that it skips.

mod rocksdb_tools;

use esker::{CompactRangeOptions, Db, WriteBatch};
use rocksdb_tools::library::{Library, Theirs};
use rocksdb_tools::settings::Settings;
use rocksdb_tools::workload::{self, Steps};
use rocksdb_tools::{Contents, Copy, Tally};
use rocksdb_tools::{compare_ours, latest_options, read_all, same, say, seeds, with_suffix};

const KEYS: u64 = 2_000;

fn compare_theirs(db: &Theirs<'_>, model: &Contents, what: &str, tally: &mut Tally) {
    let found = db.read_all();
    let names: Vec<_> = found.keys().collect();
    assert_eq!(names, model.keys().collect::<Vec<_>>(), "{what}");
    for (family, content) in model {
        same(
            &format!("{what}, RocksDB reads {family}"),
            &found[family],
            content,
        );
        tally.entries += content.len();
    }
    tally.databases += 1;
}

#[test]
fn both_take_turns_on_one_database() {
    let Ok(path) = std::env::var("ESKER_REF_LIB") else {
        say(format_args!(
            "compat: skipped, ESKER_REF_LIB names no librocksdb.so"
        ));
        return;
    };
    let library = Library::load(&path);
    let mut tally = Tally::default();
    for seed in seeds(20) {
        turns(&library, seed, &mut tally);
    }
    say(format_args!("{tally}"));
}

fn turns(library: &Library, seed: u64, tally: &mut Tally) {
    let settings = Settings::random(seed, 7);
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("db");
    let what = format!("seed {seed}");
    println!("{what}: {settings:?}");
    let db = settings
        .open(&dir)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let ids = workload::ids(&db);
    let mut steps = Steps::new(seed, KEYS);
    let mut model = workload::empty();
    let mut next = |model: &mut Contents| {
        let ops = steps.next_batch();
        workload::apply(model, &ops);
        let mut batch = WriteBatch::new();
        workload::fill(&mut batch, &ids, &ops).expect("a batch");
        batch
    };

    for n in 0..500 {
        db.write(&mut next(&mut model)).expect("a write");
        if n % 120 == 7 {
            db.flush().expect("a flush");
        }
    }
    compare_ours(&db, &model, &what);
    db.close().expect("a clean end");
    drop(db);
    {
        let copy = Copy::of(&dir);
        let theirs = library.open(&copy.path, &what);
        compare_theirs(&theirs, &model, &what, tally);
        theirs.settle(true);
        compare_theirs(
            &theirs,
            &model,
            &format!("{what}, compacted by RocksDB"),
            tally,
        );
    }

    let theirs = library.open(&dir, &what);
    for n in 0..500 {
        theirs.write(next(&mut model).data());
        if n % 120 == 7 {
            theirs.settle(n == 127);
        }
    }
    compare_theirs(
        &theirs,
        &model,
        &format!("{what}, extended by RocksDB"),
        tally,
    );
    // While it is open: what a killed process would leave.
    theirs.hold_still();
    let wreck = Copy::of(&dir);
    drop(theirs);
    for (place, state) in [(&wreck.path, "as of a kill"), (&dir, "closed")] {
        let what = format!("{what}, extended by RocksDB, {state}");
        let (options, families) = latest_options(place);
        let db = Db::open_families(place, options, families);
        let db = db.unwrap_or_else(|e| panic!("{what}: {e}"));
        // With manual_wal_flush a kill loses what was in the buffer: the end of the last batches.
        let kept = workload::steps_in(&read_all(&db));
        let lossy = state != "closed" && settings.db.contains("manual_wal_flush=true");
        assert!(
            kept == 1000 || (lossy && kept > 485),
            "{what}: {kept} batches are left"
        );
        let model = workload::replay(seed, KEYS, kept);
        compare_ours(&db, &model, &what);
        for family in db.families() {
            let how = CompactRangeOptions::default();
            db.compact_range_opt(&family, None, None, &how)
                .expect("a compaction");
        }
        compare_ours(&db, &model, &format!("{what}, compacted"));
        db.close().expect("a clean end");
        drop(db);
        tally.files += with_suffix(place, ".sst").len();
        let theirs = library.open(place, &what);
        compare_theirs(
            &theirs,
            &model,
            &format!("{what}, compacted by Esker"),
            tally,
        );
    }
}

const TIERS: &str = "enable_blob_files=true;min_medium_blob_size=100;min_large_blob_size=2000;\
     disable_auto_compactions=true;level_compaction_dynamic_level_bytes=false";

fn open_with_tiers(dir: &std::path::Path) -> Db {
    let options = esker::Options::new().create_if_missing(true);
    let options = options.set_all(TIERS).expect("these options exist");
    Db::open(dir, options).expect("it opens")
}

/// Number, group and level of each blob file.
fn groups(db: &Db) -> Vec<(u64, Option<u64>, Option<u8>)> {
    let blobs = db
        .family_metadata(&db.default_family_handle())
        .blob_files
        .into_iter();
    blobs.map(|b| (b.number, b.group, b.group_level)).collect()
}

/// A database with medium and large values in two levels.
fn make_tiers(dir: &std::path::Path) -> Contents {
    let db = open_with_tiers(dir);
    let mut content = std::collections::BTreeMap::new();
    for round in 0..2u32 {
        for n in 0..200u32 {
            let len = if n % 20 == 0 { 3_000 } else { 300 };
            let key = format!("key{:05}", n * (round + 1)).into_bytes();
            let value = vec![b'a' + (n % 20) as u8; len];
            db.put(&key, &value).expect("a write");
            content.insert(key, value);
        }
        db.flush().expect("a flush");
        if round == 0 {
            let family = db.default_family_handle();
            let how = CompactRangeOptions::default();
            db.compact_range_opt(&family, None, None, &how)
                .expect("a compaction");
        }
    }
    db.close().expect("a clean end");
    Contents::from([("default".to_owned(), content)])
}

#[test]
fn groups_of_blob_files_outlive_what_rocksdb_writes() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("db");
    let mut model = make_tiers(&dir);
    let db = open_with_tiers(&dir);
    let before = groups(&db);
    assert!(before.iter().any(|(_, group, _)| group.is_some()));
    assert!(before.iter().any(|(_, group, _)| group.is_none()));
    db.close().expect("a clean end");
    let mut tally = Tally::default();
    if let Some(tools) = rocksdb_tools::Tools::find() {
        let (k, v) = (rocksdb_tools::hex(b"kx"), rocksdb_tools::hex(b"1"));
        tools.ldb(&dir, &["put", "--hex", &k, &v]);
        let content = model.get_mut("default").expect("a family");
        content.insert(b"kx".to_vec(), b"1".to_vec());
        let db = open_with_tiers(&dir);
        assert_eq!(groups(&db), before, "after RocksDB 7.8");
        compare_ours(&db, &model, "after RocksDB 7.8");
        db.close().expect("a clean end");
        tools.compare(&dir, &model, "tiers", &mut tally);
    }
    let Ok(path) = std::env::var("ESKER_REF_LIB") else {
        return;
    };
    let library = Library::load(&path);
    let theirs = library.open(&dir, "tiers");
    compare_theirs(&theirs, &model, "tiers", &mut tally);
    drop(theirs);
    let db = open_with_tiers(&dir);
    assert_eq!(groups(&db), before, "after the library");
    db.close().expect("a clean end");
    // What RocksDB writes names no groups: values stay where they are.
    let theirs = library.open(&dir, "tiers");
    theirs.settle(true);
    drop(theirs);
    let db = open_with_tiers(&dir);
    let left = groups(&db);
    assert!(left.iter().all(|(_, group, _)| group.is_none()), "{left:?}");
    compare_ours(&db, &model, "after a compaction by the library");
    let family = db.default_family_handle();
    let how = CompactRangeOptions::default();
    db.compact_range_opt(&family, None, None, &how)
        .expect("a compaction");
    compare_ours(&db, &model, "compacted");
    say(format_args!("{tally}"));
}
