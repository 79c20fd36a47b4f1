//! `esker check` counts references to blob files and their garbage again, and finds a MANIFEST that
//! has other counts.

mod common;

use common::esker_on;
use esker::options::BottommostLevelCompaction;
use esker::{CompactRangeOptions, Db, Env, Options, Result};
use esker_env::WriteOptions;
use esker_files::current;
use esker_files::manifest::{ManifestReader, ManifestWriter};
use esker_format::blob_groups::BlobTier;
use esker_format::edit::{BlobGarbage, VersionEdit};
use esker_format::file_name::manifest_name;
use esker_format::{FileNo, Level};
use std::path::Path;

/// A database with two blob files: of 20 values, 5 of them garbage, and of 5.
fn make(dir: &Path) -> Result<()> {
    let options = Options::new()
        .create_if_missing(true)
        .set_all("enable_blob_files=true;min_blob_size=100;disable_auto_compactions=true")?;
    let db = Db::open(dir, options)?;
    for count in [20, 5] {
        for n in 0..count {
            db.put(format!("key{n:05}"), [b'v'; 500])?;
        }
        db.flush()?;
    }
    let mut forced = CompactRangeOptions::default();
    forced.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
    let family = db.default_family_handle();
    db.compact_range_opt(&family, None, None, &forced)?;
    let blobs = db.family_metadata(&family).blob_files;
    let counts: Vec<_> = blobs
        .iter()
        .map(|b| (b.total_count, b.garbage_count))
        .collect();
    assert_eq!(counts, [(20, 5), (5, 0)]);
    drop(family);
    db.close()
}

/// Writes the MANIFEST again, with each edit as `change` leaves it.
fn relisted(dir: &Path, change: impl Fn(&mut VersionEdit)) -> Result<()> {
    let fs = Env::posix().fs;
    let number = current::read(&*fs, dir)?;
    let mut reader = ManifestReader::open(&*fs, &dir.join(manifest_name(number)))?;
    let mut edits = Vec::new();
    while let Some(group) = reader.next_group()? {
        edits.extend(group.edits);
    }
    edits.iter_mut().for_each(change);
    let number = FileNo(1500);
    let mut writer = ManifestWriter::create(&*fs, dir, number, WriteOptions::default(), &edits)?;
    writer.sync()?;
    writer.close()?;
    current::install(&*fs, dir, number)
}

/// The messages of `esker check` about a database that was made and `change`d, by severity.
fn problems(change: impl Fn(&mut VersionEdit), code: i32) -> Result<Vec<(String, String)>> {
    problems_of(make, change, code)
}

fn problems_of(
    make: fn(&Path) -> Result<()>,
    change: impl Fn(&mut VersionEdit),
    code: i32,
) -> Result<Vec<(String, String)>> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    make(&db)?;
    relisted(&db, change)?;
    let lines = esker_on(&["check", "--json"], &db).expect(code).json();
    let text = |v: &serde_json::Value, name: &str| v[name].as_str().unwrap_or_default().to_owned();
    let problems = lines.iter().filter(|v| v["severity"].is_string());
    Ok(problems
        .map(|v| (text(v, "severity"), v.to_string()))
        .collect())
}

/// Changes the garbage that edits add: 5 values of 540 bytes.
fn garbage(change: impl Fn(&mut BlobGarbage)) -> impl Fn(&mut VersionEdit) {
    move |edit| edit.blob_garbage.iter_mut().for_each(&change)
}

#[test]
fn counts_that_agree_are_no_problem() -> Result<()> {
    let found = problems(|_| {}, 0)?;
    assert!(
        found
            .iter()
            .all(|(_, text)| !text.contains("tables refer to")),
        "{found:?}"
    );
    Ok(())
}

#[test]
fn too_much_garbage_is_an_error_and_too_little_a_warning() -> Result<()> {
    let one = 32 + 8 + 500;
    let more = garbage(|g| (g.count, g.bytes) = (g.count + 1, g.bytes + one));
    let found = problems(more, 1)?;
    let told = "tables refer to 15 values of 8100 bytes, but 14 of 7560 bytes are no garbage";
    let is_told = |(severity, text): &(String, String)| severity == "error" && text.contains(told);
    assert!(found.iter().any(is_told), "{found:?}");

    let less = garbage(|g| (g.count, g.bytes) = (g.count - 1, g.bytes - one));
    let found = problems(less, 0)?;
    let told = "tables refer to 15 values of 8100 bytes, but 16 of 8640 bytes are no garbage";
    let is_told =
        |(severity, text): &(String, String)| severity == "warning" && text.contains(told);
    assert!(found.iter().any(is_told), "{found:?}");

    // The bytes alone are wrong.
    let found = problems(garbage(|g| g.bytes += 1), 1)?;
    assert!(
        found
            .iter()
            .any(|(_, text)| text.contains("but 15 of 8099 bytes")),
        "{found:?}"
    );
    Ok(())
}

#[test]
fn wrong_references_of_files_are_errors() -> Result<()> {
    // The file is said to hold more values than it has.
    let more = |edit: &mut VersionEdit| {
        edit.blob_additions
            .iter_mut()
            .for_each(|b| b.total_count += 1);
    };
    let found = problems(more, 1)?;
    let told = "records, the MANIFEST says 21";
    assert!(
        found.iter().any(|(_, text)| text.contains(told)),
        "{found:?}"
    );

    // The table is said to refer to the newer file alone.
    let other = |edit: &mut VersionEdit| {
        for (level, file) in &mut edit.new_files {
            if level.0 > 0 {
                file.oldest_blob_file = file.oldest_blob_file.map(|n| FileNo(n.0 + 2));
            }
        }
    };
    let found = problems(other, 1)?;
    assert!(
        found
            .iter()
            .any(|(_, text)| text.contains("oldest blob file")),
        "{found:?}"
    );
    Ok(())
}

/// A database with two groups of medium values, of one file each and of level 0, and a file of
/// large ones.
fn make_tiers(dir: &Path) -> Result<()> {
    let options = Options::new().create_if_missing(true).set_all(
        "enable_blob_files=true;min_medium_blob_size=100;min_large_blob_size=1000;\
         disable_auto_compactions=true",
    )?;
    let db = Db::open(dir, options)?;
    for count in [20, 5] {
        for n in 0..count {
            db.put(format!("key{n:05}"), [b'v'; 500])?;
        }
        db.put("large", [b'v'; 1_000])?;
        db.flush()?;
    }
    db.close()
}

#[test]
fn groups_are_told_and_those_that_overlap_are_warned_of() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    make_tiers(&db)?;
    let text = esker_on(&["shape"], &db).expect(0).out;
    let line = "    level 0: 2 groups of medium values, 2 files,";
    assert!(text.lines().any(|l| l.starts_with(line)), "{text}");
    let lines = esker_on(&["shape", "--json"], &db).expect(0).json();
    let family = lines.iter().find(|v| v["type"] == "family");
    let groups = &family.expect("a family")["blob_groups"];
    assert_eq!(groups[0]["bytes"], 25 * 540, "{groups}");

    let warned = |(severity, text): &(String, String), told: &str| {
        severity == "warning" && text.contains(told)
    };
    let found = problems_of(make_tiers, |_| {}, 0)?;
    assert!(!found.iter().any(|f| f.1.contains("group")), "{found:?}");
    // Both groups are said to be one.
    let one = |edit: &mut VersionEdit| {
        for blob in &mut edit.blob_additions {
            if let BlobTier::Medium(group) = &mut blob.tier {
                group.number = FileNo(1);
            }
        }
    };
    let found = problems_of(make_tiers, one, 0)?;
    let told = "of its group 1";
    assert!(found.iter().any(|f| warned(f, told)), "{found:?}");
    let deep = |edit: &mut VersionEdit| {
        for blob in &mut edit.blob_additions {
            if let BlobTier::Medium(group) = &mut blob.tier {
                group.level = Level(9);
            }
        }
    };
    let found = problems_of(make_tiers, deep, 0)?;
    let told = "its group is of level 9";
    assert_eq!(found.iter().filter(|f| warned(f, told)).count(), 2);
    Ok(())
}
