//! Helpers that several tests share: seeded numbers, databases with known content, directories
//! copied whole.
//!
//! Included by `mod common;` in each test; values, nothing global.
#![allow(dead_code, reason = "each test uses a part of it")]

use esker::{Db, Env, Options};
use esker_backup::{BackupEngine, BackupEngineOptions};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The entries that a database should hold.
pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A small generator of numbers that follow from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Numbers of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// The seeds of a test: `ESKER_SEED` alone, or `default` ones from 1 on.
pub(crate) fn seeds(default: u64) -> Vec<u64> {
    match std::env::var("ESKER_SEED") {
        Ok(seed) => vec![seed.parse().expect("ESKER_SEED is a number")],
        Err(_) => (1..=default).collect(),
    }
}

/// Small tables, so that there are many.
pub(crate) fn options() -> Options {
    Options::new()
        .create_if_missing(true)
        .set_all("write_buffer_size=65536;target_file_size_base=32768;compression=kNoCompression")
        .expect("options")
}

pub(crate) fn open_db(dir: &Path) -> Db {
    Db::open(dir, options()).unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
}

pub(crate) fn engine(dir: &Path) -> BackupEngine {
    engine_with(BackupEngineOptions::new(dir))
}

pub(crate) fn engine_with(options: BackupEngineOptions) -> BackupEngine {
    BackupEngine::open(options, &Env::posix()).expect("a backup directory")
}

/// Writes and deletes `n` times, in `db` and in `model`.
pub(crate) fn change(db: &Db, model: &mut Model, rng: &mut Rng, n: u64) {
    for _ in 0..n {
        let key = format!("key{:05}", rng.below(2_000)).into_bytes();
        if rng.below(5) == 0 {
            db.delete(&key).expect("deleted");
            model.remove(&key);
        } else {
            let value = vec![rng.next() as u8; 20 + rng.below(300) as usize];
            db.put(&key, &value).expect("written");
            model.insert(key, value);
        }
    }
}

/// The entries that a database holds.
pub(crate) fn contents(db: &Db) -> Model {
    let mut out = Model::new();
    let mut iter = db.iter();
    iter.seek_to_first();
    while iter.valid() {
        out.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status().expect("the whole database can be read");
    out
}

/// That the database in `dir` holds `model`.
pub(crate) fn expect_contents(dir: &Path, model: &Model, what: &str) {
    let db = open_db(dir);
    let found = contents(&db);
    assert!(
        found == *model,
        "{what}: {} entries instead of {}",
        found.len(),
        model.len()
    );
    db.verify_checksums()
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    db.close().unwrap_or_else(|e| panic!("{what}: {e}"));
}

/// Every file below `dir`, by its name from there, in order.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(&at).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                todo.push(path);
            } else {
                out.push(path.strip_prefix(dir).expect("below").to_owned());
            }
        }
    }
    out.sort();
    out
}

/// Makes `to` what `from` is.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_tree(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}
