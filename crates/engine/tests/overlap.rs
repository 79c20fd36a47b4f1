//! Flushes of one family that run beside each other: the sync of a table waits until the test lets
//! it go on, or fails.

mod common;

use common::{PATIENCE, until};
use esker::env::{
    Env, FileSystem, MemFs, RandomAccessFile, ReadOptions, WritableFile, WriteOptions,
};
use esker::{Db, Error, ErrorKind, FamilyHandle, FlushOptions, Options, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// One flush may write at a time.
const LIMITS: &str = "max_background_flushes=1;max_background_compactions=1;max_write_buffer_number=6;\
    level0_file_num_compaction_trigger=100";

/// Rule for the sync of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    Waits,
    Fails,
}

#[derive(Debug, Default)]
struct Tables {
    /// Tables that were created.
    created: usize,
    /// Those that were synced, in that order.
    synced: Vec<usize>,
    /// Rules for tables by the order of their creation; others are synced at once.
    rules: BTreeMap<usize, Sync>,
}

/// A disk in memory whose tables are synced when the test says so.
#[derive(Clone, Debug, Default)]
struct Gate {
    disk: MemFs,
    tables: Arc<(Mutex<Tables>, Condvar)>,
}

impl Gate {
    fn change<R>(&self, change: impl FnOnce(&mut Tables) -> R) -> R {
        let changed = change(&mut self.tables.0.lock().expect("nobody panics"));
        self.tables.1.notify_all();
        changed
    }

    /// A gate that holds the first table.
    fn closed() -> Gate {
        let gate = Gate::default();
        gate.change(|t| t.rules.insert(0, Sync::Waits));
        gate
    }

    /// Lets table `n` be synced.
    fn open(&self, n: usize) {
        self.change(|t| t.rules.remove(&n));
    }

    fn is_synced(&self, n: usize) -> bool {
        self.change(|t| t.synced.contains(&n))
    }

    fn env(&self) -> Env {
        Env {
            fs: Arc::new(self.clone()),
            ..Env::in_memory()
        }
    }

    fn database(&self) -> Result<Db> {
        let options = Options::new().create_if_missing(true).env(self.env());
        Db::open("/db", options.set_all(LIMITS)?)
    }

    /// The names of tables on the disk.
    fn tables_on_disk(&self) -> Vec<String> {
        let entries = self.disk.read_dir(Path::new("/db")).expect("a directory");
        let names = entries.into_iter().map(|e| e.name);
        let names = names.filter(|n| n.ends_with(".sst"));
        names.collect()
    }

    /// Returns a disk as a process that is killed now leaves it.
    fn killed(&self) -> Gate {
        let left = Gate::default();
        left.disk
            .create_dir_all(Path::new("/db"))
            .expect("a directory");
        for entry in self.disk.read_dir(Path::new("/db")).expect("a directory") {
            let path = Path::new("/db").join(&entry.name);
            let bytes = self.disk.read_all(&path, u64::MAX).expect("a file");
            let options = WriteOptions::default();
            let mut file = left.disk.create(&path, options).expect("created");
            file.append(&bytes).expect("written");
            file.sync().expect("synced");
            file.close().expect("closed");
        }
        left
    }
}

#[derive(Debug)]
struct GatedFile {
    file: Box<dyn WritableFile>,
    number: usize,
    tables: Arc<(Mutex<Tables>, Condvar)>,
}

impl WritableFile for GatedFile {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.file.append(data)
    }
    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
    fn sync(&mut self) -> Result<()> {
        let (tables, changed) = &*self.tables;
        let waits = |t: &mut Tables| t.rules.get(&self.number) == Some(&Sync::Waits);
        let tables = tables.lock().expect("nobody panics");
        let waited = changed.wait_timeout_while(tables, PATIENCE, waits);
        let (mut tables, late) = waited.expect("nobody panics");
        assert!(!late.timed_out(), "table {} was forgotten", self.number);
        if tables.rules.remove(&self.number) == Some(Sync::Fails) {
            return Err(Error::new(ErrorKind::Io, "this sync is to fail"));
        }
        self.file.sync()?;
        tables.synced.push(self.number);
        changed.notify_all();
        Ok(())
    }
    fn len(&self) -> u64 {
        self.file.len()
    }
    fn close(&mut self) -> Result<()> {
        self.file.close()
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
}

impl FileSystem for Gate {
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        self.disk.open_read(path, options)
    }
    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        let file = self.disk.create(path, options)?;
        if path.extension().is_none_or(|e| e != "sst") {
            return Ok(file);
        }
        let number = self.change(|t| {
            t.created += 1;
            t.created - 1
        });
        Ok(Box::new(GatedFile {
            file,
            number,
            tables: Arc::clone(&self.tables),
        }))
    }
    common::pass_on!(disk);
}

/// Begins to flush what `family` has in memory.
fn begin_flush(db: &Db, family: &FamilyHandle) -> Result<()> {
    let mut how = FlushOptions::default();
    how.wait = false;
    how.allow_write_stall = true;
    db.flush_cf(family, &how)
}

fn number(db: &Db, property: &str) -> u64 {
    let value = db.property(property).expect("a property");
    value.parse().expect("a number")
}

fn level0(db: &Db) -> u64 {
    number(db, "rocksdb.num-files-at-level0")
}

/// Two flushes of `family`: the first waits for its sync, the second has done all but to be
/// installed.
fn two_flushes(gate: &Gate, db: &Db, family: &FamilyHandle) -> Result<()> {
    db.put_cf(family, "k", "1")?;
    db.put_cf(family, "first", "1")?;
    begin_flush(db, family)?;
    until("the first is written", || gate.change(|t| t.created) == 1);
    db.put_cf(family, "k", "2")?;
    db.put_cf(family, "second", "2")?;
    begin_flush(db, family)?;
    until("the second is synced", || gate.is_synced(1));
    // Were it not to wait, it would be installed now.
    std::thread::sleep(Duration::from_millis(30));
    Ok(())
}

fn check(db: &Db, family: &FamilyHandle) -> Result<()> {
    for (key, value) in [("k", "2"), ("first", "1"), ("second", "2")] {
        let found = db.get_cf(family, key)?;
        assert_eq!(found.as_deref(), Some(value.as_bytes()), "{key}");
    }
    Ok(())
}

#[test]
fn a_flush_that_is_done_sooner_waits_for_the_older_one() -> Result<()> {
    let gate = Gate::closed();
    let db = gate.database()?;
    let family = db.default_family_handle();
    two_flushes(&gate, &db, &family)?;
    assert_eq!(level0(&db), 0);
    assert_eq!(number(&db, "rocksdb.num-immutable-mem-table"), 2);
    check(&db, &family)?;
    // A process that dies now has the log.
    let left = gate.killed();
    let other = left.database()?;
    check(&other, &other.default_family_handle())?;
    other.close()?;

    gate.open(0);
    until("both are installed", || level0(&db) == 2);
    check(&db, &family)?;
    db.close()?;
    let db = gate.database()?;
    check(&db, &db.default_family_handle())?;
    db.compact_range(None, None)?;
    check(&db, &db.default_family_handle())
}

#[test]
fn what_a_younger_flush_wrote_goes_when_the_older_one_fails() -> Result<()> {
    let gate = Gate::closed();
    let db = gate.database()?;
    let family = db.default_family_handle();
    two_flushes(&gate, &db, &family)?;
    assert_eq!(gate.tables_on_disk().len(), 2);
    gate.change(|t| t.rules.insert(0, Sync::Fails));
    until("the error is told", || db.background_error().is_some());
    until("both gave up", || gate.tables_on_disk().is_empty());
    check(&db, &family)?;
    let left = gate.killed();
    let other = left.database()?;
    check(&other, &other.default_family_handle())?;
    other.close()?;

    db.resume()?;
    check(&db, &family)?;
    assert_eq!(gate.tables_on_disk().len(), 1, "one flush took all");
    assert_eq!(level0(&db), 1);
    db.put("after", "3")?;
    db.flush()?;
    db.close()?;
    let db = gate.database()?;
    check(&db, &db.default_family_handle())?;
    assert_eq!(db.get("after")?.as_deref(), Some(&b"3"[..]));
    Ok(())
}

#[test]
fn a_younger_flush_that_fails_leaves_the_older_one_alone() -> Result<()> {
    let gate = Gate::closed();
    gate.change(|t| t.rules.insert(1, Sync::Fails));
    let db = gate.database()?;
    let family = db.default_family_handle();
    db.put("k", "1")?;
    db.put("first", "1")?;
    begin_flush(&db, &family)?;
    until("the first is written", || gate.change(|t| t.created) == 1);
    db.put("k", "2")?;
    db.put("second", "2")?;
    begin_flush(&db, &family)?;
    until("the error is told", || db.background_error().is_some());
    gate.open(0);
    until("the older one is installed", || level0(&db) == 1);
    check(&db, &family)?;
    db.resume()?;
    check(&db, &family)?;
    assert_eq!(level0(&db), 2);
    assert_eq!(gate.tables_on_disk().len(), 2);
    db.close()?;
    let db = gate.database()?;
    check(&db, &db.default_family_handle())
}

#[test]
fn a_family_is_dropped_under_two_flushes() -> Result<()> {
    let gate = Gate::closed();
    let db = gate.database()?;
    let family = db.create_family("gone", Options::new().family)?;
    two_flushes(&gate, &db, &family)?;
    db.drop_family(&family)?;
    gate.open(0);
    until("both gave up", || gate.tables_on_disk().is_empty());
    check(&db, &family)?;
    drop(family);
    assert!(db.background_error().is_none());
    db.put("kept", "1")?;
    db.flush()?;
    assert_eq!(level0(&db), 1);
    db.close()?;
    let db = gate.database()?;
    assert!(db.family("gone").is_none());
    assert_eq!(db.get("kept")?.as_deref(), Some(&b"1"[..]));
    Ok(())
}

#[test]
fn a_database_closes_under_two_flushes() -> Result<()> {
    let gate = Gate::closed();
    let db = gate.database()?;
    let family = db.default_family_handle();
    two_flushes(&gate, &db, &family)?;
    let closing = {
        let db = db.clone();
        std::thread::spawn(move || db.close())
    };
    std::thread::sleep(Duration::from_millis(30));
    gate.open(0);
    closing.join().expect("no panic")?;
    drop((family, db));
    let db = gate.database()?;
    check(&db, &db.default_family_handle())?;
    let live = level0(&db) + number(&db, "rocksdb.num-files-at-level6");
    assert_eq!(gate.tables_on_disk().len() as u64, live);
    Ok(())
}
