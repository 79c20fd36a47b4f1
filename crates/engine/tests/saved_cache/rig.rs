//! A database whose disk can be told to hold its reads, or to let them fail.

use crate::common::{self, PATIENCE, until};
use esker::env::{
    Env, FileSystem, RandomAccessFile, ReadOptions, WritableFile, WriteOptions as FileWriteOptions,
};
use esker::observe::{Logger, Statistics, Ticker};
use esker::options::{BlockCacheSource, InfoLogLevel};
use esker::{BlockCache, CacheKind, CacheOptions, CompactRangeOptions, Db, Error, Options, Result};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

pub(crate) const DIR: &str = "/db";
/// The name of the file.
pub(crate) const SAVED: &str = "ESKER_CACHE";
pub(crate) const KEYS: u64 = 5_000;

/// Reads of more bytes than this are those of the loading: others are of single blocks.
const LARGE: usize = 20_000;

#[derive(Debug, Default)]
struct Orders {
    holds: AtomicBool,
    fails: AtomicBool,
    reads: AtomicU64,
    /// True while a read is held.
    held: (Mutex<bool>, Condvar),
}

/// A disk in memory that takes orders.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    below: Arc<dyn FileSystem>,
    orders: Arc<Orders>,
}

impl Disk {
    /// Reads of tables until now.
    pub(crate) fn reads(&self) -> u64 {
        self.orders.reads.load(Ordering::SeqCst)
    }

    /// The next large read waits until it is released.
    pub(crate) fn hold(&self) {
        self.orders.holds.store(true, Ordering::SeqCst);
    }

    pub(crate) fn wait_for_held(&self) {
        let what = "a read is held";
        until(what, || *self.orders.held.0.lock().expect("nobody panics"));
    }

    pub(crate) fn release(&self) {
        *self.orders.held.0.lock().expect("nobody panics") = false;
        self.orders.held.1.notify_all();
    }

    /// Large reads fail, or no longer.
    pub(crate) fn fail(&self, fails: bool) {
        self.orders.fails.store(fails, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct File {
    file: Arc<dyn RandomAccessFile>,
    orders: Arc<Orders>,
}

impl RandomAccessFile for File {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let is_table = self.file.path().extension().is_some_and(|e| e == "sst");
        self.orders
            .reads
            .fetch_add(u64::from(is_table), Ordering::SeqCst);
        if is_table && buf.len() > LARGE {
            if self.orders.holds.swap(false, Ordering::SeqCst) {
                let (held, changed) = &self.orders.held;
                let mut held = held.lock().expect("nobody panics");
                *held = true;
                let waited = changed.wait_timeout_while(held, PATIENCE, |h| *h);
                assert!(!waited.expect("nobody panics").1.timed_out(), "forgotten");
            }
            if self.orders.fails.load(Ordering::SeqCst) {
                let e = std::io::Error::from_raw_os_error(5);
                return Err(Error::io("read", self.file.path(), &e));
            }
        }
        self.file.read_at(offset, buf)
    }
    fn len(&self) -> u64 {
        self.file.len()
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
}

impl FileSystem for Disk {
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.below.open_read(path, options)?;
        let orders = Arc::clone(&self.orders);
        Ok(Arc::new(File { file, orders }))
    }
    fn create(&self, path: &Path, options: FileWriteOptions) -> Result<Box<dyn WritableFile>> {
        self.below.create(path, options)
    }
    common::pass_on!(below);
}

/// Lines of the LOG.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Logger for Lines {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Info
    }
    fn log(&self, _level: InfoLogLevel, line: &str) {
        let mut lines = self.0.lock().expect("nobody panics");
        lines.push(line.to_owned());
    }
}

/// A database's environment and options, with new statistics and a new cache for each opening.
pub(crate) struct Rig {
    pub(crate) env: Env,
    pub(crate) disk: Disk,
    changes: Mutex<Vec<(String, String)>>,
    cache: CacheOptions,
    statistics: Mutex<Arc<Statistics>>,
    lines: Arc<Lines>,
}

impl Rig {
    pub(crate) fn new(changes: &[(&str, &str)]) -> Rig {
        let memory = Env::in_memory();
        let disk = Disk {
            below: Arc::clone(&memory.fs),
            orders: Arc::default(),
        };
        let rig = Rig {
            env: Env {
                fs: Arc::new(disk.clone()),
                ..memory
            },
            disk,
            changes: Mutex::default(),
            cache: CacheOptions::with_capacity(16 << 20),
            statistics: Mutex::new(Statistics::new()),
            lines: Arc::default(),
        };
        for (name, value) in [
            ("save_block_cache", "true"),
            ("compression", "kNoCompression"),
        ] {
            rig.set(name, value);
        }
        changes
            .iter()
            .for_each(|(name, value)| rig.set(name, value));
        rig
    }

    pub(crate) fn cache(self, kind: CacheKind, capacity: usize) -> Rig {
        let cache = CacheOptions {
            kind,
            ..CacheOptions::with_capacity(capacity)
        };
        Rig { cache, ..self }
    }

    /// Sets an option of the openings to come.
    pub(crate) fn set(&self, name: &str, value: &str) {
        let mut changes = self.changes.lock().expect("nobody panics");
        changes.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new().create_if_missing(true).env(self.env.clone());
        for (name, value) in &*self.changes.lock().expect("nobody panics") {
            options.set_in_place(name, value).expect("an option");
        }
        options.family.table.block_cache = BlockCacheSource::Own(self.cache);
        let statistics = Statistics::new();
        *self.statistics.lock().expect("nobody panics") = Arc::clone(&statistics);
        options.db.statistics = Some(statistics);
        options.db.info_log = Some(Arc::clone(&self.lines) as Arc<dyn Logger>);
        options
    }

    pub(crate) fn open(&self) -> Result<Db> {
        Db::open(DIR, self.options())
    }

    pub(crate) fn open_with(&self, cache: &Arc<BlockCache>) -> Result<Db> {
        let mut options = self.options();
        options.family.table.block_cache = BlockCacheSource::Shared(Arc::clone(cache));
        Db::open(DIR, options)
    }

    /// Returns the count since the last opening.
    pub(crate) fn count(&self, ticker: Ticker) -> u64 {
        let statistics = self.statistics.lock().expect("nobody panics");
        statistics.ticker(ticker)
    }

    /// Returns whether the LOG has a line with these words.
    pub(crate) fn is_told(&self, words: &str) -> bool {
        let lines = self.lines.0.lock().expect("nobody panics");
        lines.iter().any(|line| line.contains(words))
    }
}

pub(crate) fn key(n: u64) -> String {
    format!("key{n:08}")
}

/// Half of it can be compressed.
pub(crate) fn value(n: u64) -> Vec<u8> {
    let mut rng = common::Rng::new(n);
    let mut value: Vec<u8> = (0..25).flat_map(|_| rng.next().to_le_bytes()).collect();
    value.resize(400, b'v');
    value
}

/// Writes all keys into compacted tables.
pub(crate) fn filled(db: &Db) -> Result<()> {
    for n in 0..KEYS {
        db.put(key(n), value(n))?;
    }
    db.compact_range(None, None)
}

/// Puts all entries into new tables.
pub(crate) fn rewrite(db: &Db) -> Result<()> {
    let mut options = CompactRangeOptions::default();
    options.bottommost_level_compaction = esker::options::BottommostLevelCompaction::Force;
    let family = db.default_family_handle();
    db.compact_range_opt(&family, None, None, &options)
}

/// Reads the keys and compares their values.
pub(crate) fn read(db: &Db, range: Range<u64>) -> Result<()> {
    for n in range {
        let found = db.get(key(n))?;
        assert_eq!(found.as_deref(), Some(&value(n)[..]), "{}", key(n));
    }
    Ok(())
}

fn line(db: &Db, name: &str) -> String {
    let text = db.property("rocksdb.esker.cache-load").expect("a property");
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("{name} in {text}"))
        .to_owned()
}

/// How far the loading is.
pub(crate) fn phase(db: &Db) -> String {
    line(db, "phase")
}

pub(crate) fn figure(db: &Db, name: &str) -> u64 {
    line(db, name).parse().expect("a number")
}

pub(crate) fn loaded(db: &Db) -> u64 {
    figure(db, "loaded blocks")
}

/// Waits for the end of the loading.
pub(crate) fn wait(db: &Db) -> Result<()> {
    until("all is loaded", || {
        !["waits", "loads"].contains(&&*phase(db))
    });
    Ok(())
}
