//! Repair of logs when no MANIFEST can be used: it writes tables that fit those that are there, and
//! a log of what is prepared.

mod common;

use common::copy_dir;
use esker::options::{FamilyOptions, ReadOptions};
use esker::{Db, FlushOptions, KeyOrder, Options, RepairReport, Result, WriteBatch, WriteOptions};
use esker_env::Env;
use std::collections::BTreeMap;
use std::path::Path;

fn options() -> Options {
    Options::new()
        .create_if_missing(true)
        .set_all("allow_2pc=true;merge_operator=stringappend;disable_auto_compactions=true")
        .expect("these options exist")
}

/// Leaves the database as a killed process would, without CURRENT and MANIFEST.
fn kill(db: Db, dir: &Path, copy: &Path) {
    copy_dir(&Env::posix(), dir, copy);
    drop(db);
    for entry in std::fs::read_dir(copy).expect("a directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "CURRENT" || name.starts_with("MANIFEST") {
            std::fs::remove_file(entry.path()).expect("it goes");
        }
    }
}

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns the entries that an iterator shows, and checks that a Get finds them as well.
fn contents(db: &Db) -> Result<Entries> {
    let mut out = Entries::new();
    let mut it = db.iter();
    it.seek_to_first();
    while let Some((key, value)) = it.entry() {
        assert_eq!(db.get(key)?.as_deref(), Some(value), "{key:?}");
        out.insert(key.to_vec(), value.to_vec());
        it.next();
    }
    it.status()?;
    Ok(out)
}

fn is_in_lost(report: &RepairReport, end: &str) -> bool {
    let mut all = report.set_aside.iter();
    all.any(|f| f.path.to_string_lossy().ends_with(end) && f.now.exists() && !f.path.exists())
}

#[test]
fn records_that_tables_have_too_count_once() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (dir.path().join("1"), dir.path().join("2"));
    let db = Db::open(&first, options())?;
    let other = db.create_family("other", FamilyOptions::default())?;
    db.put_cf(&other, "a", "0")?;
    db.flush_cf(&other, &FlushOptions::default())?;
    db.put_cf(&other, "a", "1")?;
    // Logs stay whose records are in tables.
    db.disable_file_deletions();
    // The flush applies these operands to their base.
    db.put("total", "0")?;
    for n in 0..100u32 {
        db.put(format!("k{n:03}"), "old")?;
        db.merge("sum", "x")?;
        db.merge("total", "x")?;
    }
    db.delete_range_cf(&db.default_family_handle(), "k010", "k020")?;
    db.flush()?;
    for n in 50..150u32 {
        db.put(format!("k{n:03}"), "new")?;
        db.merge("sum", "y")?;
    }
    db.delete("k000")?;
    db.delete_range_cf(&db.default_family_handle(), "k120", "k130")?;
    db.put_entity(
        &db.default_family_handle(),
        "wide",
        &[("c1", "v1"), ("", "v0")],
    )?;
    let (before, newest) = (contents(&db)?, db.latest_sequence_number());
    let columns = db.get_entity_columns(&db.default_family_handle(), "wide")?;
    drop(other);
    kill(db, &first, &second);

    // Without the merge operator: nothing is merged by a repair.
    let report = Db::repair(&second, &Options::new())?;
    assert!(report.manifest.is_none() && report.logs > 1, "{report:?}");
    assert!(
        !report.has_lost_data && report.losses.is_empty(),
        "{report:?}"
    );
    assert!(is_in_lost(&report, ".log"), "{report:?}");
    let db = Db::open(&second, options())?;
    assert_eq!(contents(&db)?, before);
    assert_eq!(
        db.get_entity_columns(&db.default_family_handle(), "wide")?,
        columns
    );
    let other = db.family("other").expect("a family");
    assert_eq!(db.get_cf(&other, "a")?.as_deref(), Some(&b"1"[..]));
    db.put("later", "1")?;
    assert!(db.latest_sequence_number() > newest);
    db.close()
}

#[test]
fn what_is_prepared_stays_prepared() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (dir.path().join("1"), dir.path().join("2"));
    let write = WriteOptions::default();
    let db = Db::open(&first, options())?;
    let batch = |key: &str| {
        let mut batch = WriteBatch::new();
        batch.put(key.as_bytes(), b"x").map(|()| batch)
    };
    for name in ["committed", "undone", "left", "other"] {
        db.prepare_transaction(name.as_bytes(), &batch(name)?, &write)?;
    }
    db.commit_transaction(b"committed", &batch("committed")?, &write)?;
    db.undo_transaction(b"undone", &write)?;
    db.put("k", "v")?;
    let before = contents(&db)?;
    kill(db, &first, &second);

    let report = Db::repair(&second, &Options::new())?;
    assert!(!report.has_lost_data, "{report:?}");
    let told = report.notes.iter().any(|n| n.contains("left, other"));
    assert!(told, "{report:?}");
    // Another repair has nothing to do, and takes nothing away.
    let two_phase = options().create_if_missing(false);
    assert!(Db::repair(&second, &two_phase)?.is_sound);
    let db = Db::open(&second, two_phase)?;
    assert_eq!(contents(&db)?, before);
    let found = db.take_prepared_transactions();
    let names: Vec<_> = found.iter().map(|(name, _)| name.as_slice()).collect();
    assert_eq!(names, [&b"left"[..], b"other"]);
    for (name, batch) in &found {
        db.commit_transaction(name, batch, &write)?;
    }
    assert_eq!(db.get("left")?.as_deref(), Some(&b"x"[..]));
    db.close()
}

#[test]
fn records_of_a_family_without_a_name_are_told() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (dir.path().join("1"), dir.path().join("2"));
    let db = Db::open(&first, options())?;
    let other = db.create_family("other", FamilyOptions::default())?;
    for n in 0..3u8 {
        db.put_cf(&other, [n], "v")?;
    }
    db.put("k", "v")?;
    drop(other);
    kill(db, &first, &second);
    let would = Db::repair_families(&second, &options(), &[], esker::RepairMode::DryRun)?;
    let report = Db::repair(&second, &options())?;
    assert_eq!(report, would);
    assert!(report.has_lost_data, "{report:?}");
    let told = report.losses.iter().any(|l| l.starts_with("3 records"));
    assert!(told, "{report:?}");
    assert!(is_in_lost(&report, ".log"), "{report:?}");
    let db = Db::open(&second, options())?;
    assert_eq!(db.get("k")?.as_deref(), Some(&b"v"[..]));
    db.close()
}

#[test]
fn timestamps_of_keys_in_logs_stay() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (dir.path().join("1"), dir.path().join("2"));
    let write = WriteOptions::default();
    let with_times = || {
        let mut options = Options::new().create_if_missing(true);
        let order = KeyOrder::builtin("leveldb.BytewiseComparator.u64ts");
        options.family.comparator = order.expect("a built-in order");
        options
    };
    let db = Db::open(&first, with_times())?;
    let family = db.default_family_handle();
    for at in 1..=3u64 {
        let value = format!("v{at}");
        db.put_with_timestamp(&family, "k", at.to_le_bytes(), value, &write)?;
    }
    drop(family);
    kill(db, &first, &second);
    // In another order the keys would be others.
    let e = Db::repair(&second, &Options::new()).expect_err("keys have timestamps");
    assert!(e.message().contains("timestamps"), "{e}");
    assert!(!second.join("lost").exists() && !second.join("CURRENT").exists());
    let report = Db::repair(&second, &with_times())?;
    assert!(!report.has_lost_data, "{report:?}");
    let db = Db::open(&second, with_times())?;
    let family = db.default_family_handle();
    for at in 1..=3u64 {
        let mut read = ReadOptions::default();
        read.timestamp = Some(at.to_le_bytes().to_vec());
        let found = db.get_opt(&family, "k", &read, None)?;
        assert_eq!(found.as_deref(), Some(format!("v{at}").as_bytes()));
    }
    db.close()
}
