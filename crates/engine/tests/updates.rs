//! Updates read back from the logs, the lists of logs, and the archive.

mod common;
mod rocksdb_tools;

use esker::env::{
    Env, FileSystem, PosixFs, RandomAccessFile, ReadOptions, WritableFile,
    WriteOptions as FileWriteOptions,
};
use esker::{
    Db, ErrorKind, FamilyOptions, Options, Result, TransactionLog, WalKind, WriteBatch,
    WriteOptions,
};
use rocksdb_tools::with_suffix;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

fn small() -> Options {
    Options::new()
        .create_if_missing(true)
        .set_all("write_buffer_size=65536;compression=kNoCompression")
        .expect("these options exist")
}

/// Batches that were written, each with its first sequence.
type Written = Vec<(u64, Vec<u8>)>;

/// Writes `count` batches of one to three records.
fn write(db: &Db, count: u64, written: &mut Written) -> Result<()> {
    for n in 0..count {
        let mut batch = WriteBatch::new();
        for i in 0..n % 3 + 1 {
            let key = format!("key{:05}", (n * 7 + i) % 300);
            match n % 11 {
                4 => batch.delete(key.as_bytes())?,
                5 => batch.delete_range(key.as_bytes(), format!("{key}9").as_bytes())?,
                _ => batch.put(key.as_bytes(), format!("{n}{}", "v".repeat(100)).as_bytes())?,
            }
        }
        db.write(&mut batch)?;
        written.push((batch.seq().0, batch.data().to_vec()));
    }
    Ok(())
}

/// Compares without showing megabytes.
fn assert_same(found: &Written, expected: &[(u64, Vec<u8>)], what: &str) {
    let seqs = |w: &[(u64, Vec<u8>)]| w.iter().map(|b| b.0).collect::<Vec<_>>();
    let at = found.iter().zip(expected).position(|(f, e)| f != e);
    assert_eq!(
        (found.len(), at),
        (expected.len(), None),
        "{what}: found up to {:?}, expected up to {:?}",
        seqs(found).last(),
        seqs(expected).last()
    );
}

fn walk(log: &mut TransactionLog) -> Result<Written> {
    let mut out = Vec::new();
    while log.valid() {
        assert_eq!(log.sequence(), log.batch().seq().0);
        out.push((log.sequence(), log.batch().data().to_vec()));
        log.next();
    }
    log.status()?;
    Ok(out)
}

fn archive(dir: &Path) -> Vec<String> {
    let mut out: Vec<String> = std::fs::read_dir(dir.join("archive"))
        .map(|entries| {
            entries
                .map(|e| {
                    e.expect("an entry")
                        .file_name()
                        .to_string_lossy()
                        .into_owned()
                })
                .collect()
        })
        .unwrap_or_default();
    out.sort();
    out
}

#[test]
fn every_batch_comes_back_from_any_sequence() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = || small().set("WAL_ttl_seconds", "3600").expect("exists");
    let mut written = Written::new();
    let db = Db::open(dir.path(), options())?;
    write(&db, 900, &mut written)?;
    db.flush()?;
    write(&db, 100, &mut written)?;
    db.close()?;
    drop(db);
    // The logs that recovery does not need any more are archived too.
    let db = Db::open(dir.path(), options())?;
    write(&db, 300, &mut written)?;
    db.compact_range(None, None)?;
    write(&db, 20, &mut written)?;
    assert!(archive(dir.path()).len() > 2, "logs were archived");
    let last = db.latest_sequence_number();
    for from in [0, 1, 2, 3, 100, last / 2, last - 1, last] {
        let mut log = db.updates_since(from)?;
        let first = written.partition_point(|(seq, data)| {
            let count = WriteBatch::from_bytes(data.clone()).expect("whole").count();
            seq + u64::from(count) <= from
        });
        let found = match walk(&mut log) {
            Ok(found) => found,
            Err(e) => panic!("from {from}: {e}: {log:?}, {:?}", db.sorted_wal_files()?),
        };
        assert_same(&found, &written[first..], &format!("from {from}"));
    }
    let error = db.updates_since(last + 1).expect_err("not written");
    assert_eq!(
        error.to_string(),
        "NotFound: Requested sequence not yet written in the db"
    );

    // The same walk goes on with what comes later into the same log.
    db.flush()?;
    write(&db, 1, &mut written)?;
    let last = db.latest_sequence_number();
    let mut log = db.updates_since(last)?;
    walk(&mut log)?;
    let before = written.len();
    write(&db, 5, &mut written)?;
    log.next();
    assert_same(&walk(&mut log)?, &written[before..], "later");
    // Until there is a new log, which a new walk must look for.
    db.flush()?;
    write(&db, 1, &mut written)?;
    log.next();
    assert!(!log.valid());
    assert_eq!(
        log.status().expect_err("a new log").kind(),
        ErrorKind::TryAgain
    );
    Ok(())
}

/// Before which log, and who.
type At = (PathBuf, Weak<Db>);

/// The disk, with a database that goes on to later logs right before one of its logs is opened for
/// reading.
#[derive(Clone, Debug, Default)]
struct Busy {
    disk: PosixFs,
    at: Arc<Mutex<Option<At>>>,
}

impl FileSystem for Busy {
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        let now = self
            .at
            .lock()
            .expect("nobody panics")
            .take_if(|(which, _)| which == path);
        if let Some((_, db)) = now {
            let db = db.upgrade().expect("it is open");
            while number(&db) < number_of(path) {
                write(&db, 10, &mut Written::new())?;
            }
        }
        self.disk.open_read(path, options)
    }
    fn create(&self, path: &Path, options: FileWriteOptions) -> Result<Box<dyn WritableFile>> {
        self.disk.create(path, options)
    }
    common::pass_on!(disk);
}

fn number_of(log: &Path) -> u64 {
    let stem = log.file_stem().and_then(|stem| stem.to_str());
    stem.and_then(|stem| stem.parse().ok()).expect("a log")
}

/// Of the log that takes writes.
fn number(db: &Db) -> u64 {
    db.current_wal_file().expect("a log").number
}

#[test]
fn a_log_that_gets_its_first_batch_while_logs_are_listed_is_not_left_out() -> Result<()> {
    let (dir, busy) = (tempfile::tempdir().expect("a directory"), Busy::default());
    let env = Env {
        fs: Arc::new(busy.clone()),
        ..Env::posix()
    };
    let db = Arc::new(Db::open(
        dir.path(),
        small().env(env).set("WAL_ttl_seconds", "3600")?,
    )?);
    let logs = || with_suffix(dir.path(), ".log");
    common::until("two are made ahead", || {
        write(&db, 10, &mut Written::new()).expect("writes");
        let ahead = |log: &&PathBuf| number_of(log) > number(&db);
        logs().iter().filter(ahead).count() >= 2
    });
    // What is in the directory is handed over a moment later.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let last = logs().pop().expect("a log");
    *busy.at.lock().expect("nobody panics") = Some((last, Arc::downgrade(&db)));
    let mut log = db.updates_since(1)?;
    assert!(busy.at.lock().expect("nobody panics").is_none());
    let mut next = 1;
    while log.valid() {
        assert_eq!(log.sequence(), next);
        next += u64::from(log.batch().count());
        log.next();
    }
    if let Err(e) = log.status() {
        assert_eq!(e.kind(), ErrorKind::TryAgain, "{e}");
    }
    Ok(())
}

#[test]
fn what_is_gone_is_skipped_and_what_was_not_logged_is_a_gap() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), small())?;
    db.put("a", "1")?;
    db.put("b", "2")?;
    db.flush()?;
    db.put("c", "3")?;
    assert!(archive(dir.path()).is_empty(), "no archive was asked for");
    let log = db.updates_since(1)?;
    assert!(log.valid());
    assert_eq!(log.sequence(), 3, "the first that is left");

    let family = db.default_family_handle();
    db.put_opt(&family, "d", "4", &WriteOptions::unlogged())?;
    db.put("e", "5")?;
    let mut log = db.updates_since(3)?;
    assert_eq!(log.sequence(), 3);
    log.next();
    assert!(!log.valid());
    let error = log.status().expect_err("a gap");
    assert!(
        error.is_not_found() && error.message().contains("Gap in sequence number"),
        "{error}"
    );
    let log = db.updates_since(5)?;
    assert_eq!((log.valid(), log.sequence()), (true, 5));
    Ok(())
}

#[test]
fn logs_are_listed_with_their_place_and_first_sequence() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), small().set("WAL_size_limit_MB", "100")?)?;
    assert!(
        db.sorted_wal_files()?.is_empty(),
        "an empty log is not listed"
    );
    let first = db.current_wal_file()?;
    assert_eq!(first.kind, WalKind::Alive);
    db.put("a", "1")?;
    db.put("b", "2")?;
    db.flush()?;
    db.put("c", "3")?;
    let listed = db.sorted_wal_files()?;
    assert_eq!(listed.len(), 2);
    assert_eq!(
        (listed[0].kind, listed[0].start_sequence),
        (WalKind::Archived, 1)
    );
    assert_eq!(
        (listed[1].kind, listed[1].start_sequence),
        (WalKind::Alive, 3)
    );
    assert_eq!(listed[0].number, first.number);
    assert_eq!(
        listed[0].path_name(),
        format!("/archive/{:06}.log", first.number)
    );
    assert_eq!(
        listed[1].path_name(),
        format!("/{:06}.log", listed[1].number)
    );
    assert_eq!(listed[1].number, db.current_wal_file()?.number);
    assert!(listed.iter().all(|f| f.bytes > 0));
    // What deletions being off keeps is not archived yet.
    db.disable_file_deletions();
    db.flush()?;
    assert_eq!(archive(dir.path()).len(), 1);
    db.enable_file_deletions(false);
    assert_eq!(archive(dir.path()).len(), 2);
    db.close()?;
    drop(db);
    let report = Db::destroy(dir.path(), &Options::new())?;
    assert!(
        report.directory_removed,
        "the archive goes with the database"
    );
    Ok(())
}

#[test]
fn the_archive_keeps_to_its_limits() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let logs = dir.path().join("logs");
    let options = |name: &str, value: &str| -> Result<Options> {
        let mut options = small().set(name, value)?;
        options.db.wal_dir = logs.to_string_lossy().into_owned();
        Ok(options)
    };
    let at = dir.path().join("db");
    let db = Db::open(&at, options("WAL_size_limit_MB", "1")?)?;
    let other = db.create_family("other", FamilyOptions::default())?;
    for n in 0..40u32 {
        db.put_cf(&other, format!("{n}"), vec![b'x'; 100_000])?;
        db.flush()?;
    }
    let bytes = |dir: &Path| -> u64 {
        let files = std::fs::read_dir(dir.join("archive")).expect("there is an archive");
        files
            .map(|f| f.expect("a file").metadata().expect("it is there").len())
            .sum()
    };
    let kept = archive(&logs);
    assert!(bytes(&logs) <= 1 << 20 && kept.len() >= 8, "{kept:?}");
    assert!(db.updates_since(40)?.valid());
    assert!(db.updates_since(1)?.sequence() > 20, "the oldest are gone");
    db.close()?;
    drop(db);
    // By age: a time long past makes them old.
    for name in &kept {
        let file = std::fs::File::options()
            .write(true)
            .open(logs.join("archive").join(name))
            .expect("opens");
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(10);
        file.set_modified(long_ago).expect("set");
    }
    let db = Db::open(&at, options("WAL_ttl_seconds", "1000")?)?;
    db.put("a", "1")?;
    db.flush()?;
    let now = archive(&logs);
    assert!(
        !now.is_empty() && now.iter().all(|n| !kept.contains(n)),
        "{now:?}"
    );
    Ok(())
}

#[test]
fn readers_and_secondaries_see_updates_too() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let primary = Db::open(&at, small().set("WAL_ttl_seconds", "3600")?)?;
    let mut written = Written::new();
    write(&primary, 50, &mut written)?;
    let second = Db::open_secondary(&at, dir.path().join("second"), small())?;
    assert_same(&walk(&mut second.updates_since(0)?)?, &written, "secondary");
    primary.flush()?;
    write(&primary, 50, &mut written)?;
    second.try_catch_up_with_primary()?;
    assert_same(&walk(&mut second.updates_since(0)?)?, &written, "secondary");
    let reader = Db::open_read_only(&at, small())?;
    assert_same(&walk(&mut reader.updates_since(0)?)?, &written, "reader");
    let error = second.current_wal_file().expect_err("it writes none");
    assert_eq!(error.kind(), ErrorKind::Io);
    Ok(())
}
