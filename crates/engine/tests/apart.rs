//! Families whose writers do not wait for each other, on a disk that does not let one of them go
//! on.

mod common;

use common::{PATIENCE, until};
use esker::env::{
    Env, FileSystem, MemFs, RandomAccessFile, ReadOptions, WritableFile,
    WriteOptions as FileWriteOptions,
};
use esker::{Db, FamilyHandle, FlushOptions, Options, Result, WriteBatch, WriteOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A disk in memory on which the next table waits to be created until the test lets it go on.
#[derive(Clone, Debug, Default)]
struct Stuck {
    disk: MemFs,
    /// The next table is the one that waits.
    wanted: Arc<AtomicBool>,
    waits: Arc<(Mutex<bool>, Condvar)>,
}

impl Stuck {
    fn wait(&self) {
        let (waits, changed) = &*self.waits;
        let mut waiting = waits.lock().expect("nobody panics");
        *waiting = true;
        changed.notify_all();
        let waited = changed.wait_timeout_while(waiting, PATIENCE, |w| *w);
        assert!(!waited.expect("nobody panics").1.timed_out(), "forgotten");
    }

    fn is_waiting(&self) -> bool {
        *self.waits.0.lock().expect("nobody panics")
    }

    fn release(&self) {
        *self.waits.0.lock().expect("nobody panics") = false;
        self.waits.1.notify_all();
    }
}

impl FileSystem for Stuck {
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        self.disk.open_read(path, options)
    }
    fn create(&self, path: &Path, options: FileWriteOptions) -> Result<Box<dyn WritableFile>> {
        let is_table = path.extension().is_some_and(|e| e == "sst");
        if is_table && self.wanted.swap(false, Ordering::SeqCst) {
            self.wait();
        }
        self.disk.create(path, options)
    }
    common::pass_on!(disk);
}

/// Two families, of which one is behind for good until the disk lets it go on.
struct Rig {
    disk: Stuck,
    db: Db,
    free: FamilyHandle,
    behind: FamilyHandle,
}

impl Rig {
    fn new() -> Rig {
        let disk = Stuck::default();
        let mut options = Options::new().create_if_missing(true).env(Env {
            fs: Arc::new(disk.clone()),
            ..Env::in_memory()
        });
        for (name, value) in [
            ("write_buffer_size", "1048576"),
            ("max_write_buffer_number", "6"),
            ("level0_slowdown_writes_trigger", "1000"),
            ("level0_stop_writes_trigger", "1000"),
            ("max_background_flushes", "4"),
            ("max_background_compactions", "4"),
            ("max_total_wal_size", "1073741824"),
            ("recycle_table_files", "false"),
        ] {
            options.set_in_place(name, value).expect("an option");
        }
        let mut family = options.family.clone();
        family.max_write_buffer_number = 2;
        let db = Db::open("/db", options).expect("opens");
        let behind = db.create_family("behind", family).expect("created");
        let free = db.default_family_handle();
        Rig {
            disk,
            db,
            free,
            behind,
        }
    }

    fn put(&self, family: &FamilyHandle, n: usize) -> Result<()> {
        self.db.put_cf(family, format!("{n:06}"), [b'x'; 1000])
    }

    fn impatient(&self, families: &[&FamilyHandle]) -> Result<()> {
        let mut how = WriteOptions::default();
        how.no_slowdown = true;
        let mut batch = WriteBatch::new();
        for family in families {
            batch.put_cf(*family, b"key", b"value")?;
        }
        self.db.write_opt(&mut batch, &how)
    }

    fn stalls(&self, of: &str) -> Vec<String> {
        let text = self.db.property("rocksdb.esker.stalls").expect("a text");
        let lines = text.lines().filter(|l| l.ends_with(of));
        lines.map(str::to_owned).collect()
    }

    /// Two writers to the family that is not behind, for some memtables: how long each of their
    /// puts took, sorted.
    fn write_freely(&self) -> Vec<Duration> {
        const PUTS: usize = 10_000;
        let (next, took) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut own = Vec::new();
                    loop {
                        let n = next.fetch_add(1, Ordering::SeqCst);
                        if n >= PUTS {
                            break;
                        }
                        let start = Instant::now();
                        self.put(&self.free, n).expect("written");
                        own.push(start.elapsed());
                    }
                    took.lock().expect("nobody panics").extend(own);
                });
            }
        });
        let mut took = took.into_inner().expect("nobody panics");
        assert_eq!(took.len(), PUTS);
        took.sort();
        took
    }

    /// Checks what holds while the family is stopped, and after the disk lets it go on.
    fn check(self, cause: &str) {
        // A caller that waits for a flush may go on before its thread has set the gate.
        until("it is stopped", || self.impatient(&[&self.behind]).is_err());
        std::thread::scope(|scope| {
            let both = scope.spawn(|| {
                let mut batch = WriteBatch::new();
                batch.put_cf(&self.free, b"both", b"1")?;
                batch.put_cf(&self.behind, b"both", b"1")?;
                self.db.write(&mut batch)
            });
            let alone = scope.spawn(|| self.put(&self.behind, 0));
            let line = |l: &String| {
                let fields: Vec<&str> = l.split_whitespace().collect();
                fields[..3] == [cause, "stops", "2"]
            };
            until("both wait", || self.stalls(" behind").iter().any(line));
            let took = self.write_freely();
            let p99 = took[took.len() / 100 * 99];
            assert!(p99 < Duration::from_millis(20), "{p99:?}");
            let both_or_one = self.impatient(&[&self.free, &self.behind]);
            assert!(both_or_one.is_err(), "a batch for both waits");
            assert!(!both.is_finished() && !alone.is_finished());
            assert_eq!(self.db.get("both").expect("read"), None);
            self.disk.release();
            both.join().expect("no panic").expect("written");
            alone.join().expect("no panic").expect("written");
        });
        for family in [&self.free, &self.behind] {
            let found = self.db.get_cf(family, "both").expect("read");
            assert_eq!(found.as_deref(), Some(&b"1"[..]));
            self.db
                .flush_cf(family, &FlushOptions::default())
                .expect("flushed");
        }
        until("it is caught up", || {
            self.impatient(&[&self.behind]).is_ok()
        });
    }
}

#[test]
fn a_stuck_flush_stops_its_own_family_alone() {
    let rig = Rig::new();
    rig.disk.wanted.store(true, Ordering::SeqCst);
    let mut how = FlushOptions::default();
    how.wait = false;
    how.allow_write_stall = true;
    rig.put(&rig.behind, 0).expect("written");
    rig.db.flush_cf(&rig.behind, &how).expect("begun");
    until("its flush is stuck", || rig.disk.is_waiting());
    let stopped = |rig: &Rig| {
        let number = rig.db.int_property(&rig.free, "rocksdb.is-write-stopped");
        number == Some(1)
    };
    let mut n = 0;
    while !stopped(&rig) {
        n += 1;
        assert!(n < 10, "never stopped");
        rig.put(&rig.behind, n).expect("written");
        // It may be flushed beside the other, and is not installed before it.
        rig.db.flush_cf(&rig.behind, &how).expect("begun");
    }
    rig.check("memtable-limit");
}

#[test]
fn a_stuck_compaction_stops_its_own_family_alone() {
    let rig = Rig::new();
    for (name, value) in [
        ("level0_file_num_compaction_trigger", "4"),
        ("level0_slowdown_writes_trigger", "6"),
        ("level0_stop_writes_trigger", "6"),
    ] {
        let set = rig.db.set_options(&rig.behind, &[(name, value)]);
        set.expect("set");
    }
    let flush = || {
        rig.put(&rig.behind, 0).expect("written");
        let mut how = FlushOptions::default();
        how.allow_write_stall = true;
        rig.db.flush_cf(&rig.behind, &how).expect("flushed");
    };
    rig.db.abort_all_compactions();
    (0..4).for_each(|_| flush());
    rig.disk.wanted.store(true, Ordering::SeqCst);
    rig.db.resume_all_compactions();
    until("its compaction is stuck", || rig.disk.is_waiting());
    (0..2).for_each(|_| flush());
    rig.check("l0-file-count-limit");
}
