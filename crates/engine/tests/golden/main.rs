//! Databases that real RocksDB made, one for each feature of the format: every one must read the
//! same as RocksDB reads it, before and after a full compaction, and RocksDB must accept what the
//! compaction left.
//!
//! `ESKER_GOLDEN` names a directory with `expected.tsv` (version, database, entries, md5 of a full
//! scan) and, for each version, a directory or an archive `rocksdb-VERSION.tar.xz` of databases.
//! Without it the tests skip. `ESKER_REF_LIB` names a newer `librocksdb.so` that checks the results
//! too; so do Debian's `ldb` and `sst_dump` where they are installed.

mod catop;
mod library;
mod myrocks;
mod others;
mod scan;
mod set;
mod tools;

use esker::options::BottommostLevelCompaction;
use esker::{CompactRangeOptions, Db, Result};
use scan::digest_of;
use set::{Expected, GoldenSet, copy_of};
use std::path::Path;

/// Findings in one database, step by step: `None` for a step that could not be taken here.
#[derive(Default)]
struct Row {
    read_only: bool,
    compacted: bool,
    tools: Option<bool>,
    library: Option<bool>,
    complaints: Vec<String>,
}

impl Row {
    /// Notes how a step ended; true when well.
    fn step(&mut self, what: &str, outcome: std::result::Result<(), String>) -> bool {
        if let Err(e) = &outcome {
            self.complaints.push(format!("{what}: {e}"));
        }
        outcome.is_ok()
    }
}

/// Opens `dir`, compares everything that reads with `expected`.
fn compare(db: &Db, expected: &Expected) -> std::result::Result<(), String> {
    let found = digest_of(db).map_err(|e| format!("{e:?}"))?;
    if found.entries != expected.entries || found.md5 != expected.md5 {
        return Err(format!(
            "{} entries with digest {}, expected {} with {}",
            found.entries, found.md5, expected.entries, expected.md5
        ));
    }
    Ok(())
}

fn read_only(dir: &Path, expected: &Expected) -> std::result::Result<(), String> {
    let before = set::contents(dir);
    let db = myrocks::open_read_only(dir, &expected.version).map_err(|e| format!("{e:?}"))?;
    compare(&db, expected)?;
    drop(db);
    if set::contents(dir) != before {
        return Err("reading changed the directory".to_owned());
    }
    Ok(())
}

/// Rewrites every entry of every family.
fn compact(db: &Db) -> Result<()> {
    let mut options = CompactRangeOptions::default();
    options.bottommost_level_compaction = BottommostLevelCompaction::Force;
    for family in db.families() {
        db.compact_range_opt(&family, None, None, &options)?;
    }
    Ok(())
}

fn compacted(dir: &Path, expected: &Expected) -> std::result::Result<(), String> {
    let text = |e: esker::Error| format!("{e:?}");
    let before = set::tables(dir);
    let db = myrocks::open(dir, &expected.version).map_err(text)?;
    compare(&db, expected).map_err(|e| format!("after recovery: {e}"))?;
    compact(&db).map_err(|e| format!("compaction: {e:?}"))?;
    compare(&db, expected).map_err(|e| format!("after compaction: {e}"))?;
    db.close().map_err(text)?;
    drop(db);
    let kept: Vec<_> = set::tables(dir)
        .into_iter()
        .filter(|t| before.contains(t))
        .collect();
    if !kept.is_empty() {
        return Err(format!("not rewritten: {kept:?}"));
    }
    let db = myrocks::open(dir, &expected.version).map_err(text)?;
    compare(&db, expected).map_err(|e| format!("after reopening: {e}"))?;
    db.close().map_err(text)
}

fn examine(dir: &Path, expected: &Expected, library: Option<&library::Library>) -> Row {
    let mut row = Row::default();
    row.read_only = row.step("read-only", read_only(dir, expected));
    let copy = copy_of(dir);
    let at = copy.path();
    row.compacted = row.step("compacted", compacted(at, expected));
    if expected.version.starts_with("7.") && tools::installed() {
        let outcome = tools::verify(at, expected);
        row.tools = Some(row.step("RocksDB's tools", outcome));
    }
    // It does not know the orders of MyRocks; `tests/myrocks --moves` has RocksDB take the results.
    if let Some(library) = library.filter(|_| expected.version != "6.29") {
        let outcome = library.verify(at, expected);
        row.library = Some(row.step("RocksDB's library", outcome));
    }
    row
}

fn word(outcome: Option<bool>) -> &'static str {
    match outcome {
        Some(true) => "ok",
        Some(false) => "FAILED",
        None => "-",
    }
}

#[test]
fn every_golden_database_reads_the_same_before_and_after_compaction() {
    let Some(golden) = GoldenSet::find() else {
        return;
    };
    let only = std::env::var("ESKER_GOLDEN_ONLY").ok();
    let library = library::Library::find();
    let expected: Vec<_> = golden
        .expected()
        .into_iter()
        .filter(|e| only.as_ref().is_none_or(|o| *o == e.database))
        .collect();
    assert!(!expected.is_empty(), "expected.tsv names no database");
    println!("version  database    read-only compacted tools  library");
    let rows: Vec<Row> = expected
        .iter()
        .map(|e| {
            let row = examine(
                &golden.database(&e.version, &e.database),
                e,
                library.as_ref(),
            );
            println!(
                "{:<8} {:<11} {:<9} {:<9} {:<6} {}",
                e.version,
                e.database,
                word(Some(row.read_only)),
                word(Some(row.compacted)),
                word(row.tools),
                word(row.library)
            );
            row.complaints.iter().for_each(|c| println!("    {c}"));
            row
        })
        .collect();
    let all = rows.len();
    let count = |f: fn(&Row) -> Option<bool>| {
        let taken = rows.iter().filter_map(f);
        let (good, of) = taken.fold((0, 0), |(g, n), ok| (g + usize::from(ok), n + 1));
        format!("{good} of {of}")
    };
    println!(
        "golden: {} digests read-only, {} after compaction, {} accepted by RocksDB's tools, {} by its library",
        count(|r| Some(r.read_only)),
        count(|r| Some(r.compacted)),
        count(|r| r.tools),
        count(|r| r.library)
    );
    let failed: Vec<_> = rows
        .iter()
        .zip(&expected)
        .filter(|(row, _)| !row.complaints.is_empty())
        .map(|(row, e)| {
            format!(
                "{}/{}: {}",
                e.version,
                e.database,
                row.complaints.join("; ")
            )
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {all} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// RocksDB 11 puts large columns of entities into blob files.
#[test]
fn columns_in_blob_files_are_read_and_outlive_compactions() -> Result<()> {
    let Some(golden) = GoldenSet::find() else {
        return Ok(());
    };
    for expected in golden.expected() {
        if !expected.database.starts_with("wide") {
            continue;
        }
        let copy = copy_of(&golden.database(&expected.version, &expected.database));
        let columns = |db: &Db| -> Result<Vec<_>> {
            let family = db.default_family_handle();
            let mut keys = Vec::new();
            let mut it = db.iter();
            it.seek_to_first();
            while it.valid() {
                keys.push(it.key().to_vec());
                it.next();
            }
            it.status()?;
            keys.iter()
                .map(|key| db.get_entity_columns(&family, key))
                .collect()
        };
        for options in ["enable_blob_files=true", ""] {
            let db = Db::open(copy.path(), esker::Options::new().set_all(options)?)?;
            let before = columns(&db)?;
            compact(&db)?;
            let after = columns(&db)?;
            assert_eq!(before, after, "{}, {options}", expected.database);
            let largest = before.iter().flatten().flatten().map(|c| c.1.len()).max();
            let is_split = expected.database == "wide2";
            assert!(!is_split || largest >= Some(100), "{largest:?}");
            db.close()?;
        }
    }
    Ok(())
}
