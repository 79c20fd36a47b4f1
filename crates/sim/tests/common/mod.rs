//! A database on a simulated disk, for tests that tell a story.
#![allow(dead_code, reason = "each suite uses a part")]

use esker::observe::Logger;
use esker::options::InfoLogLevel;
use esker::{Db, Env, FlushOptions, Options, WriteOptions};
use esker_env::FileSystem;
use esker_sim::disk::SimFs;
use esker_sim::sim_env::SimEnv;
use std::path::Path;
use std::sync::Mutex;

pub(crate) const DB: &str = "/db";

/// A disk with an empty directory for the database.
pub(crate) fn disk() -> SimFs {
    let disk = SimFs::new();
    disk.create_dir_all(Path::new(DB)).expect("makes");
    disk.sync_dir(Path::new("/")).expect("syncs");
    disk
}

pub(crate) fn env(disk: &SimFs) -> Env {
    SimEnv::default().env(disk, 1)
}

pub(crate) fn options(disk: &SimFs) -> Options {
    Options::new().create_if_missing(true).env(env(disk))
}

pub(crate) fn open(disk: &SimFs) -> Db {
    Db::open(DB, options(disk)).unwrap_or_else(|e| panic!("open: {e}"))
}

/// A database that writes no table, with the options of flushes that switch the memtable alone.
pub(crate) fn switching(disk: &SimFs) -> (Db, FlushOptions) {
    let buffers = options(disk).set("max_write_buffer_number", "10");
    let db = Db::open(DB, buffers.expect("an option")).expect("opens");
    db.pause_background_work().expect("pauses");
    let mut no_wait = FlushOptions::default();
    no_wait.wait = false;
    (db, no_wait)
}

pub(crate) fn synced() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.sync = true;
    options
}

pub(crate) fn value(db: &Db, key: &str) -> Option<Vec<u8>> {
    db.get(key).unwrap_or_else(|e| panic!("get: {e}"))
}

/// Collects what the database logs.
#[derive(Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl Logger for Lines {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Warn
    }
    fn log(&self, _level: InfoLogLevel, line: &str) {
        self.0.lock().expect("nobody panics").push(line.to_owned());
    }
}

impl Lines {
    pub(crate) fn have(&self, word: &str) -> bool {
        let lines = self.0.lock().expect("nobody panics");
        lines.iter().any(|l| l.contains(word))
    }
}

/// The one file of the database whose name has `part`, with its bytes; the newest of several.
pub(crate) fn file(disk: &SimFs, part: &str) -> (String, Vec<u8>) {
    let files = disk.image().list().into_iter();
    let (path, bytes) = files
        .filter(|(p, b)| p.contains(part) && !b.is_empty())
        .max_by(|a, b| a.0.cmp(&b.0))
        .unwrap_or_else(|| panic!("a file with {part} in its name"));
    (path, bytes.to_vec())
}

pub(crate) fn overwrite(disk: &SimFs, path: &str, bytes: &[u8]) {
    let options = esker_env::WriteOptions::default();
    let mut file = disk.create(Path::new(path), options).expect("makes");
    file.append(bytes).expect("writes");
    file.close().expect("closes");
}

/// Opening is refused with an error that has `word` in it, and nothing has changed.
pub(crate) fn refused(disk: &SimFs, word: &str) {
    let before = disk.image().digest();
    let error = Db::open(DB, options(disk)).expect_err("it is refused");
    assert!(
        error.is_corruption() && error.to_string().contains(word),
        "{error}"
    );
    assert_eq!(disk.image().digest(), before, "{error}");
}
