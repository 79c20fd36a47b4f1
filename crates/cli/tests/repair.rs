//! Repair: what is lost is lost and said, everything else is there again, and RocksDB opens it.

mod common;

use common::{Ran, contents, db_bench, esker, esker_on, tool};
use std::path::{Path, PathBuf};

fn repair(db: &Path, more: &[&str]) -> Ran {
    let flag = format!("--db={}", db.display());
    let mut args = vec!["repair", &flag];
    args.extend_from_slice(more);
    esker(&args)
}

fn dump(db: &Path) -> String {
    let flag = format!("--db={}", db.display());
    esker(&["dump", &flag, "--hex"]).expect(0).out
}

fn of(db: &Path, part: &str) -> Vec<PathBuf> {
    let mut all: Vec<_> = std::fs::read_dir(db)
        .expect("a directory")
        .map(|e| e.expect("an entry").path())
        .filter(|p| {
            p.file_name()
                .is_some_and(|n| n.to_string_lossy().contains(part))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_sound_database_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    if db_bench(&db, &[]).is_none() {
        return;
    }
    let before = contents(&db);
    let ran = repair(&db, &[]).expect(0);
    assert!(ran.out.contains("nothing to repair"), "{}", ran.out);
    assert_eq!(contents(&db), before);
}

#[test]
fn without_a_manifest_every_entry_comes_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    if db_bench(&db, &["--compression_type=lz4"]).is_none() {
        return;
    }
    let whole = dump(&db);
    for manifest in of(&db, "MANIFEST") {
        std::fs::remove_file(manifest).expect("removed");
    }
    std::fs::remove_file(db.join("CURRENT")).expect("removed");
    esker_on(&["check"], &db).expect(1);
    let before = contents(&db);
    let ran = repair(&db, &["--dry-run"]).expect(0);
    assert!(ran.out.contains("would be repaired"), "{}", ran.out);
    assert_eq!(contents(&db), before);
    let ran = repair(&db, &["--json"]).expect(0);
    assert_eq!(ran.json().last().expect("a summary")["state"], "repaired");
    esker_on(&["check"], &db).expect(0);
    assert_eq!(dump(&db), whole);
    let rocksdb = tool(
        "ldb",
        &[
            format!("--db={}", db.display()),
            "dump".into(),
            "--hex".into(),
        ],
    );
    assert_eq!(rocksdb.expect("ldb"), whole);
    esker_on(&["check"], &db).expect(0);
}

#[test]
fn a_damaged_table_moves_away_and_the_rest_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    if db_bench(&db, &["--compression_type=none"]).is_none() {
        return;
    }
    let whole = dump(&db);
    let tables = of(&db, ".sst");
    let mut bytes = std::fs::read(&tables[0]).expect("a table");
    bytes[1000] ^= 1;
    std::fs::write(&tables[0], &bytes).expect("written");
    let ran = repair(&db, &[]).expect(3);
    assert!(ran.out.contains("to lost/"), "{}", ran.out);
    assert_eq!(of(&db.join("lost"), ".sst").len(), 1);
    assert_eq!(
        std::fs::read(&of(&db.join("lost"), ".sst")[0]).expect("kept"),
        bytes
    );
    esker_on(&["check"], &db).expect(0);
    let left = dump(&db);
    assert!(left.lines().count() > 100);
    let every: std::collections::BTreeSet<&str> =
        whole.lines().filter_map(|l| l.split(' ').next()).collect();
    assert!(
        left.lines()
            .filter(|l| l.starts_with("0x"))
            .all(|l| every.contains(l.split(' ').next().unwrap_or("")))
    );
    let ran = repair(&db, &[]).expect(0);
    assert!(ran.out.contains("nothing to repair"), "{}", ran.out);
}

#[test]
fn families_are_found_in_their_tables() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    let flag = format!("--db={}", db.display());
    for (family, key) in [("default", "a"), ("one", "b"), ("two", "c")] {
        let family = format!("--column-family={family}");
        esker(&["put", &flag, "--create-if-missing", &family, key, "value"]).expect(0);
        esker(&["compact", &flag, &family]).expect(0);
    }
    std::fs::write(db.join("CURRENT"), b"MANIFEST-").expect("written");
    for manifest in of(&db, "MANIFEST") {
        std::fs::write(manifest, b"this is no manifest at all").expect("written");
    }
    repair(&db, &[]).expect(0);
    esker_on(&["check"], &db).expect(0);
    for (family, key) in [("default", "a"), ("one", "b"), ("two", "c")] {
        let family = format!("--column-family={family}");
        assert_eq!(
            esker(&["get", &flag, &family, key]).expect(0).out,
            "value\n"
        );
    }
}

#[test]
fn a_directory_without_a_database_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("notes.txt"), b"mine").expect("written");
    repair(dir.path(), &[]).expect(1);
    assert_eq!(contents(dir.path()).len(), 1);
}
