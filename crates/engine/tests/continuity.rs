//! Logs and the MANIFEST name each other: what is missed when it is gone, and what may go.
//!
//! Power cuts, kills and damage are in `esker-sim`; here is what people do to a directory.

mod common;

use common::copy_dir;
use esker::{
    CheckpointOptions, Db, Error, FamilyDescriptor, FamilyOptions, FlushOptions, LockHolder,
    Options, Result, Subcode,
};
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
    let mut found: Vec<PathBuf> = paths.filter(is_it).collect();
    found.sort();
    found
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

/// Where the last record of a short MANIFEST begins.
fn last_record(bytes: &[u8]) -> usize {
    let (mut at, mut last) = (0, 0);
    while let Some(header) = bytes.get(at..at + 7) {
        last = at;
        at += 7 + usize::from(u16::from_le_bytes([header[4], header[5]]));
    }
    last
}

/// It is not synced: a power cut after the close may take it, or its end.
#[test]
fn the_edit_that_closing_writes_may_be_missing() -> Result<()> {
    for in_log in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        closed(dir.path(), in_log)?;
        let is_manifest = |p: &PathBuf| p.to_string_lossy().contains("MANIFEST-");
        let manifest = files(dir.path(), "").into_iter().rfind(is_manifest);
        let manifest = manifest.expect("a MANIFEST");
        let bytes = fs::read(&manifest).expect("a file");
        let begin = last_record(&bytes);
        for end in [begin, begin + 3, begin + 8, bytes.len() - 1] {
            let copy = tempfile::tempdir().expect("a directory");
            copy_dir(&Env::posix(), dir.path(), copy.path());
            let cut = copy.path().join(manifest.file_name().expect("a name"));
            fs::write(cut, &bytes[..end]).expect("it is cut");
            let b = in_log.then(|| b"2".to_vec());
            assert_eq!(read(copy.path(), options())?, [Some(b"1".to_vec()), b]);
        }
    }
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

#[test]
fn a_checkpoint_has_a_log_only_when_it_needs_one() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path().join("db"), options())?;
    db.put("a", "1")?;
    for (name, log_size_for_flush, keep_empty_log, has_log) in [
        ("flushed", 0, false, false),
        ("flushed-kept", 0, true, true),
        ("logged", u64::MAX, false, true),
    ] {
        let copy = dir.path().join(name);
        let mut how = CheckpointOptions::default();
        how.log_size_for_flush = log_size_for_flush;
        how.keep_empty_log = keep_empty_log;
        db.checkpoint_opt(&copy, &how)?;
        let names = fs::read_dir(&copy).expect("a directory");
        let mut names = names.map(|entry| entry.expect("an entry").file_name());
        let found = names.any(|name| name.to_string_lossy().ends_with(".log"));
        assert_eq!(found, has_log, "{name}");
        assert_eq!(read(&copy, options())?[0], Some(b"1".to_vec()));
        db.put("b", "2")?;
    }
    db.close()
}

/// RocksDB 11 may go on in a MANIFEST that it finds (`reuse_manifest_on_open`) and says nothing of
/// logs: what was said before is of no more use.
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

/// Returns a copy of the files that a process that dies now leaves behind.
fn killed(dir: &Path) -> tempfile::TempDir {
    let left = tempfile::tempdir().expect("a directory");
    copy_dir(&Env::posix(), dir, left.path());
    left
}

/// A log that a power cut left as zeros stays beside the next one, which does not name it: nothing
/// was in it. The tables of a family may be ahead of both.
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

/// Memtables that fill up have the next two logs made ahead: they are taken by the next switches,
/// and go when the database closes.
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

/// How a directory is opened.
type Mode = (&'static str, fn(&Path, &Path, Options) -> Result<Db>);

/// Every mode of opening but those for writing; the second path is for a LOG.
const READERS: [Mode; 4] = [
    ("read-only", |dir, _, options| {
        Db::open_read_only(dir, options)
    }),
    ("read-only with times to live", |dir, _, options| {
        Db::open_read_only_with_ttl(dir, options)
    }),
    ("read-only, families", |dir, _, options| {
        let default = FamilyDescriptor::new("default", FamilyOptions::default());
        Db::open_families_read_only(dir, options, vec![default])
    }),
    ("secondary", |dir, second, options| {
        Db::open_secondary(dir, second, options)
    }),
];

/// Each reader refuses the directory with what opening for writing says, in `text`, and changes
/// nothing; nor is it copied.
fn refused_by_all(dir: &Path, text: &str) -> Result<()> {
    let (before, second) = (contents(dir), tempfile::tempdir().expect("a directory"));
    let same = |doing: &str, e: Error| {
        assert!(
            e.is_corruption() && e.to_string().contains(text),
            "{doing}: {e}"
        );
        assert!(contents(dir) == before, "{doing} changed something");
    };
    same("writing", Db::open(dir, options()).expect_err("refused"));
    same(
        "ttl",
        Db::open_with_ttl(dir, options(), 0).expect_err("refused"),
    );
    for (name, open) in READERS {
        same(
            name,
            open(dir, &second.path().join("second"), options()).expect_err(name),
        );
    }
    same(
        "verify",
        Db::verify_logs(dir, &options()).expect_err("refused"),
    );
    same(
        "keep closed",
        Db::keep_closed(dir, &options()).expect_err("refused"),
    );
    let copy = second.path().join("copy");
    same(
        "checkpoint",
        Db::checkpoint_closed(dir, &copy, &options()).expect_err("refused"),
    );
    assert_eq!(
        fs::read_dir(second.path()).expect("there").count(),
        0,
        "nothing was made"
    );
    Ok(())
}

#[test]
fn each_mode_of_opening_misses_a_log_that_is_gone() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    closed(dir.path(), true)?;
    remove_logs(dir.path());
    refused_by_all(dir.path(), "the log is missing: the MANIFEST names it")
}

/// A database whose process died with three logs, all of them needed.
fn three_logs(dir: &Path) -> Result<()> {
    let home = tempfile::tempdir().expect("a directory");
    let at = home.path().join("db");
    let keep = options().set("avoid_flush_during_recovery", "true")?;
    let db = Db::open(&at, keep)?;
    let other = db.create_family("other", FamilyOptions::default())?;
    db.put_cf(&other, "x", "1")?;
    for n in 0..2 {
        db.put("a", n.to_string())?;
        db.flush_cf(&db.default_family_handle(), &FlushOptions::default())?;
    }
    db.put("a", "last")?;
    copy_dir(&Env::posix(), &at, dir);
    let is_used = |log: &&PathBuf| fs::metadata(log).is_ok_and(|m| m.len() > 0);
    assert_eq!(files(dir, ".log").iter().filter(is_used).count(), 3);
    Ok(())
}

#[test]
fn each_mode_of_opening_misses_the_first_of_three_logs() -> Result<()> {
    for which in 0..3 {
        let dir = tempfile::tempdir().expect("a directory");
        three_logs(dir.path())?;
        let mut logs = files(dir.path(), ".log");
        logs.sort();
        fs::remove_file(&logs[which]).expect("it goes");
        refused_by_all(dir.path(), "the log is missing: ")?;
    }
    Ok(())
}

#[test]
fn each_mode_of_opening_misses_the_end_of_a_log_that_tables_are_beyond() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    three_logs(dir.path())?;
    let mut logs = files(dir.path(), ".log");
    logs.sort();
    let bytes = fs::read(&logs[0]).expect("a log");
    // What it says at its end, and the last batch.
    fs::write(&logs[0], &bytes[..bytes.len() - 100]).expect("written");
    refused_by_all(dir.path(), "with data beyond the damage in log ")
}

#[test]
fn a_reader_beside_a_writer_who_deletes_logs_is_never_refused() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let small = || {
        let wanted = "write_buffer_size=65536;max_manifest_file_size=4096";
        options().set_all(wanted).expect("these options exist")
    };
    let db = Db::open(dir.path(), small())?;
    db.put("first", "1")?;
    let done = std::sync::atomic::AtomicBool::new(false);
    let second = tempfile::tempdir().expect("a directory");
    std::thread::scope(|scope| {
        let reader = |open: fn(&Path, &Path, Options) -> Result<Db>, log: &'static str| {
            let (done, at, second) = (&done, dir.path(), second.path());
            scope.spawn(move || {
                loop {
                    let db = open(at, &second.join(log), small()).expect(log);
                    assert!(db.get("first").expect(log).is_some());
                    if done.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                }
            })
        };
        let readers = [
            reader(READERS[0].1, "read-only"),
            reader(READERS[3].1, "secondary"),
        ];
        let checker = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                Db::verify_logs(dir.path(), &small()).expect("sound");
            }
        });
        for n in 0..6000_u32 {
            db.put(n.to_be_bytes(), [7_u8; 100])?;
            if n % 500 == 0 {
                db.flush()?;
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        checker.join().expect("no panic");
        for reader in readers {
            reader.join().expect("no panic");
        }
        Ok(())
    })
}

#[test]
fn a_checkpoint_of_an_open_database_whose_log_was_deleted_is_not_made() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (at, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let db = Db::open(&at, options())?;
    db.put("a", "1")?;
    remove_logs(&at);
    let mut without_flush = CheckpointOptions::default();
    without_flush.log_size_for_flush = u64::MAX;
    db.checkpoint_opt(&copy, &without_flush)
        .expect_err("the log is gone");
    let names = fs::read_dir(dir.path()).expect("there");
    assert_eq!(names.count(), 1, "nothing is left of the copy");
    Ok(())
}

#[test]
fn a_database_that_was_renamed_while_open_is_not_opened_twice() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    let db = Db::open(&old, options())?;
    db.put("a", "1")?;
    fs::rename(&old, &new).expect("renamed");
    let error = Db::open(&new, options()).expect_err("it is open under its old name");
    assert_eq!(error.subcode(), Subcode::Locked, "{error}");
    assert_eq!(error.lock_holder(), Some(&LockHolder::ThisProcess));
    // What its old name is free for now has a lock of its own.
    Db::open(&old, options())?.close()?;
    fs::remove_dir_all(&old).expect("it goes");
    // It may be read meanwhile, and opened once it is closed.
    let read = Db::open_read_only(&new, Options::new())?;
    assert_eq!(read.get("a")?.as_deref(), Some(&b"1"[..]));
    drop(read);
    let _closing = db.close();
    let again = Db::open(&new, options())?;
    assert_eq!(again.get("a")?.as_deref(), Some(&b"1"[..]));
    Ok(())
}
