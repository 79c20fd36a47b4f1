//! The creation of a database: what it syncs, and what a power cut in the middle of it leaves.

mod common;

use common::{DB, disk, env, options, refused, value};
use esker::{Db, FamilyDescriptor, FamilyOptions, Options};
use esker_env::FileSystem;
use esker_sim::crash::{Point, VARIANTS};
use esker_sim::disk::{Ino, Op, SimFs};
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn each_file_of_a_new_database_is_synced_once() {
    let disk = disk();
    let before = disk.log().ops.len();
    let db = Db::open(DB, options(&disk)).expect("opens");
    let mut files: BTreeMap<Ino, usize> = BTreeMap::new();
    let mut directories = 0;
    for op in &disk.log().ops[before..] {
        match op {
            Op::Sync { file } => *files.entry(*file).or_default() += 1,
            Op::SyncDir { .. } => directories += 1,
            _ => {}
        }
    }
    // OPTIONS, IDENTITY, the MANIFEST and CURRENT.
    assert_eq!(files.values().copied().collect::<Vec<_>>(), [1; 4]);
    assert_eq!(directories, 2, "before CURRENT has its name and after");
    db.close().expect("closes");
}

/// Families, one with timestamps, so that the log does not begin empty, and logs elsewhere.
fn create(disk: &SimFs, text: &str) -> esker::Result<Db> {
    let mut options = Options::new().create_if_missing(true).env(env(disk));
    options = options.set_all(text)?;
    options.db.create_missing_column_families = true;
    let mut stamped = FamilyOptions::default();
    stamped.comparator = esker::KeyOrder::BytewiseU64Ts;
    let families = vec![
        FamilyDescriptor::new("default", options.family.clone()),
        FamilyDescriptor::new("stamped", stamped),
    ];
    Db::open_families("/some/where", options, families)
}

#[test]
fn a_creation_that_was_cut_short_is_begun_anew() {
    let texts = [
        "",
        "wal_dir=/logs/here",
        "wal_compression=kZSTD;wal_dir=/logs/here",
        "write_dbid_to_manifest=false;avoid_flush_during_recovery=true",
    ];
    for text in texts {
        let disk = SimFs::new();
        create(&disk, text)
            .expect("opens")
            .put("key", "value")
            .expect("writes");
        let log = disk.log();
        let mut opened = 0;
        for at in 0..=log.ops.len() {
            let point = Point::at(&log, at);
            for (variant, name) in VARIANTS {
                for seed in 0..if variant.is_random() { 3 } else { 1 } {
                    let left = SimFs::from_image(point.state(*variant, seed));
                    let db = create(&left, text)
                        .unwrap_or_else(|e| panic!("{text}, {name}@{at}#{seed}: {e}"));
                    db.put("more", "value").expect("writes");
                    db.close().expect("closes");
                    let again = create(&left, text).expect("opens again");
                    assert!(
                        value(&again, "more").is_some(),
                        "{text}, {name}@{at}#{seed}"
                    );
                    opened += 1;
                }
            }
        }
        assert!(opened > 500, "{opened}");
    }
}

fn without_current(disk: &SimFs) {
    disk.remove_file(Path::new("/db/CURRENT")).expect("removes");
    refused(disk, "CURRENT is missing");
}

#[test]
fn a_database_that_lost_current_is_not_begun_anew() {
    let with_batch = disk();
    let db = Db::open(DB, options(&with_batch)).expect("opens");
    db.put("key", "value").expect("writes");
    without_current(&with_batch.kill());
    drop(db);

    let with_family = disk();
    let db = Db::open(DB, options(&with_family)).expect("opens");
    db.create_family("more", options(&with_family).family)
        .expect("makes");
    without_current(&with_family.kill());
    drop(db);
}
