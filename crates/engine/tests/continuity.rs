//! Logs and the MANIFEST name each other: what is missed when it is gone, and what may go.
//!
//! Power cuts, kills and damage are in `esker-sim`; here is what people do to a directory.

mod common;

use common::copy_dir;
use esker::{Db, Error, FlushOptions, Options, Result};
use esker_env::{Env, WriteOptions};
use esker_files::manifest::ManifestWriter;
use esker_format::FileNo;
use esker_format::edit::VersionEdit;
use esker_format::file_name::FileKind;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn options() -> Options {
    Options::new().create_if_missing(true)
}

/// A closed database: `a` is in a table, `b` in the log alone when `in_log`.
fn closed(dir: &Path, in_log: bool) -> Result<()> {
    let db = Db::open(dir, options())?;
    db.put("a", "1")?;
    db.flush()?;
    if in_log {
        db.put("b", "2")?;
    }
    db.close()
}

/// The files of a kind, by the end of their names.
fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(dir).expect("a directory");
    let paths = names.map(|e| e.expect("an entry").path());
    let is_it = |p: &PathBuf| p.to_string_lossy().ends_with(end) && p.is_file();
    paths.filter(is_it).collect()
}

fn remove_logs(dir: &Path) {
    let logs = files(dir, ".log");
    assert!(!logs.is_empty(), "there is no log");
    for log in logs {
        fs::remove_file(log).expect("it goes");
    }
}

/// All tables, logs and MANIFESTs with what is in them.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = files(dir, "").into_iter();
    let is_data = |p: &PathBuf| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with("LOG") && !name.starts_with("LOCK")
    };
    all.filter(is_data)
        .map(|p| (p.clone(), fs::read(p).expect("a file")))
        .collect()
}

fn read(dir: &Path, options: Options) -> Result<[Option<Vec<u8>>; 2]> {
    let db = Db::open(dir, options)?;
    let [a, b] = [db.get("a")?, db.get("b")?];
    db.put("c", "3")?;
    db.close()?;
    Ok([a.map(|v| v.to_vec()), b.map(|v| v.to_vec())])
}

fn refused(dir: &Path, options: Options) -> Error {
    Db::open(dir, options).expect_err("it is refused")
}

#[test]
fn a_log_that_was_empty_at_closing_may_go() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    closed(dir.path(), false)?;
    remove_logs(dir.path());
    // Twice: the second opening must not ask for the log that the first one went without.
    assert_eq!(read(dir.path(), options())?, [Some(b"1".to_vec()), None]);
    assert_eq!(read(dir.path(), options())?, [Some(b"1".to_vec()), None]);
    Ok(())
}

#[test]
fn a_log_with_writes_is_missed() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    closed(dir.path(), true)?;
    let log = files(dir.path(), ".log").pop().expect("a log");
    remove_logs(dir.path());
    let before = contents(dir.path());
    let error = refused(dir.path(), options());
    assert!(error.is_corruption(), "{error}");
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    assert!(error.to_string().contains(&*name), "{error}");
    assert!(contents(dir.path()) == before, "something changed");

    let skip = options().set("wal_recovery_mode", "kSkipAnyCorruptedRecords")?;
    assert_eq!(read(dir.path(), skip)?, [Some(b"1".to_vec()), None]);
    let said = fs::read_to_string(dir.path().join("LOG.old")).unwrap_or_default()
        + &fs::read_to_string(dir.path().join("LOG")).expect("a LOG");
    assert!(said.contains("the log is missing"), "{said}");
    // The loss is known now, and no mode asks for it again.
    assert_eq!(read(dir.path(), options())?, [Some(b"1".to_vec()), None]);
    Ok(())
}

#[test]
fn a_copy_without_logs_says_so() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options())?;
    db.put("a", "1")?;
    db.flush()?;
    db.put("b", "2")?;
    db.disable_file_deletions();
    for (is_said, listed) in [
        (true, db.live_files_without_logs()?),
        (false, db.live_files()?),
    ] {
        let copy = tempfile::tempdir().expect("a directory");
        for file in listed.iter().filter(|f| f.kind != FileKind::Wal) {
            let bytes = file.replacement.clone().unwrap_or_else(|| {
                let mut bytes = fs::read(&file.path).expect("a file");
                bytes.truncate(file.bytes as usize);
                bytes
            });
            fs::write(copy.path().join(&file.name), bytes).expect("there is room");
            if file.kind == FileKind::Manifest {
                let current = format!("{}\n", file.name);
                fs::write(copy.path().join("CURRENT"), current).expect("there is room");
            }
        }
        if is_said {
            assert_eq!(read(copy.path(), options())?, [Some(b"1".to_vec()), None]);
        } else {
            let error = refused(copy.path(), options());
            assert!(error.is_corruption(), "{error}");
        }
    }
    db.enable_file_deletions(true);
    db.close()
}

/// RocksDB 11 may go on in a MANIFEST that it finds (`reuse_manifest_on_open`) and says nothing of logs: what was said
/// before is of no more use.
#[test]
fn logs_are_not_held_against_what_others_went_on_with() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    closed(dir.path(), true)?;
    let path = fs::read_to_string(dir.path().join("CURRENT")).expect("a CURRENT");
    let path = dir.path().join(path.trim());
    let found = fs::read(&path).expect("a MANIFEST");
    fs::remove_file(&path).expect("it goes");
    let mut file = Env::posix().fs.create(&path, WriteOptions::default())?;
    file.append(&found)?;
    let mut manifest = ManifestWriter::over(file, FileNo(0))?;
    manifest.append(&[VersionEdit {
        next_file_number: Some(FileNo(1_000)),
        ..VersionEdit::default()
    }])?;
    manifest.close()?;
    remove_logs(dir.path());
    assert_eq!(read(dir.path(), options())?, [Some(b"1".to_vec()), None]);
    Ok(())
}

/// What a process that dies now leaves behind.
fn killed(dir: &Path) -> tempfile::TempDir {
    let left = tempfile::tempdir().expect("a directory");
    copy_dir(&Env::posix(), dir, left.path());
    left
}

/// A log that a power cut left as zeros stays beside the next one, which does not name it: nothing was in it. The
/// tables of a family may be ahead of both.
#[test]
fn a_log_of_zeros_that_was_kept_is_not_missed() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options())?;
    let other = db.create_family("other", options().family)?;
    db.put("a", "1")?;
    // Keeps the log before.
    db.put_cf(&other, "a", "1")?;
    db.flush_cf(&db.default_family_handle(), &FlushOptions::default())?;
    db.put("lost", "never synced")?;
    let left = killed(dir.path());
    let log = files(left.path(), ".log").into_iter().max().expect("a log");
    let bytes = fs::read(&log).expect("a log").len();
    fs::write(&log, vec![0; bytes]).expect("it is written");

    let kept = options().set("avoid_flush_during_recovery", "true")?;
    let db = Db::open(left.path(), kept.clone())?;
    let other = db.family("other").expect("a family");
    assert_eq!(db.get("lost")?, None);
    db.put("b", "2")?;
    db.put_cf(&other, "b", "3")?;
    db.flush_cf(&other, &FlushOptions::default())?;

    let left = killed(left.path());
    let db = Db::open(left.path(), kept)?;
    let other = db.family("other").expect("a family");
    assert_eq!(db.get("a")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(db.get("b")?.as_deref(), Some(&b"2"[..]));
    assert_eq!(db.get_cf(&other, "b")?.as_deref(), Some(&b"3"[..]));
    Ok(())
}

/// Memtables that fill up have the next two logs made ahead: they are taken by the next switches, and go when the database closes.
#[test]
fn the_next_logs_are_made_ahead_and_do_not_stay() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let small = || options().set("write_buffer_size", "65536");
    let db = Db::open(dir.path(), small()?)?;
    let fill = |from: usize| -> Result<()> {
        for n in from..from + 100 {
            db.put(format!("{n:08}"), vec![b'x'; 1000])?;
        }
        db.wait_for_compaction()
    };
    fill(0)?;
    let logs = files(dir.path(), ".log");
    assert_eq!(logs.len(), 3, "{logs:?}");
    let spare = logs[1].clone();
    for unused in &logs[1..] {
        assert_eq!(fs::metadata(unused).expect("a log").len(), 0);
    }
    assert_eq!(db.sorted_wal_files()?.len(), 1, "an unused log is none");
    fill(100)?;
    assert!(
        !spare.exists() || fs::metadata(&spare).expect("a log").len() > 0,
        "it was not taken"
    );
    // A kill leaves it, and recovery does not mind.
    let left = killed(dir.path());
    assert_eq!(files(left.path(), ".log").len(), 3);
    let again = Db::open(left.path(), small()?)?;
    assert!(again.get("00000199")?.is_some());
    again.close()?;
    db.close()?;
    for dir in [dir.path(), left.path()] {
        assert_eq!(files(dir, ".log").len(), 1, "{dir:?}");
    }
    Ok(())
}
