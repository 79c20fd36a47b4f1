//! Helpers that several tests share: seeded numbers, a clock by hand, filesystems in front of
//! others, and directories copied as a kill would leave them.
//!
//! Included by `mod common;` in each test; single-threaded values, nothing global.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod blobs;
pub(crate) mod numbered;

use esker::env::{Clock, Env, WriteOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nothing that a test waits for takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it is so.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

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

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `items`.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

/// A number from the environment, or `default`.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(default)
}

/// The calls of a filesystem that only passes them on to the one in its field `$below`: all but
/// opening for reading and creating, and deleting where the test says so.
#[allow(unused_macros, reason = "each test uses a part of it")]
macro_rules! pass_on {
    ($below:ident) => {
        $crate::common::pass_on!($below, but remove_file);
        fn remove_file(&self, path: &std::path::Path) -> esker::Result<()> {
            self.$below.remove_file(path)
        }
    };
    ($below:ident, but remove_file) => {
        fn open_append(
            &self,
            path: &std::path::Path,
            options: esker::env::WriteOptions,
        ) -> esker::Result<Box<dyn esker::env::WritableFile>> {
            self.$below.open_append(path, options)
        }
        fn read_all(&self, path: &std::path::Path, limit: u64) -> esker::Result<Vec<u8>> {
            self.$below.read_all(path, limit)
        }
        fn read_dir(&self, path: &std::path::Path) -> esker::Result<Vec<esker::env::DirEntry>> {
            self.$below.read_dir(path)
        }
        fn create_dir_all(&self, path: &std::path::Path) -> esker::Result<()> {
            self.$below.create_dir_all(path)
        }
        fn remove_dir(&self, path: &std::path::Path) -> esker::Result<()> {
            self.$below.remove_dir(path)
        }
        fn rename(&self, from: &std::path::Path, to: &std::path::Path) -> esker::Result<()> {
            self.$below.rename(from, to)
        }
        fn hard_link(&self, from: &std::path::Path, to: &std::path::Path) -> esker::Result<()> {
            self.$below.hard_link(from, to)
        }
        fn sync_dir(&self, path: &std::path::Path) -> esker::Result<()> {
            self.$below.sync_dir(path)
        }
        fn metadata(&self, path: &std::path::Path) -> esker::Result<esker::env::Metadata> {
            self.$below.metadata(path)
        }
        fn exists(&self, path: &std::path::Path) -> esker::Result<bool> {
            self.$below.exists(path)
        }
        fn truncate(&self, path: &std::path::Path, len: u64) -> esker::Result<()> {
            self.$below.truncate(path, len)
        }
        fn lock(&self, path: &std::path::Path) -> esker::Result<Box<dyn esker::env::FileLock>> {
            self.$below.lock(path)
        }
        fn free_space(&self, path: &std::path::Path) -> esker::Result<u64> {
            self.$below.free_space(path)
        }
        fn canonical(&self, path: &std::path::Path) -> esker::Result<std::path::PathBuf> {
            self.$below.canonical(path)
        }
    };
}
#[allow(unused_imports, reason = "each test uses a part of it")]
pub(crate) use pass_on;

/// A clock whose seconds the test sets.
#[derive(Debug)]
pub(crate) struct SetClock {
    pub(crate) real: Arc<dyn Clock>,
    pub(crate) unix: AtomicU64,
}

impl Clock for SetClock {
    fn now_us(&self) -> u64 {
        self.real.now_us()
    }
    fn now_ns(&self) -> u64 {
        self.real.now_ns()
    }
    fn unix_us(&self) -> u64 {
        self.unix.load(Ordering::Relaxed) * 1_000_000
    }
    fn sleep(&self, duration: Duration) {
        self.real.sleep(duration);
    }
}

/// A clock that the test moves on.
#[derive(Debug)]
pub(crate) struct Ahead {
    real: Arc<dyn Clock>,
    pub(crate) by_us: AtomicU64,
}

impl Ahead {
    /// A clock that begins with that of `env`.
    pub(crate) fn of(env: &Env) -> Arc<Ahead> {
        Arc::new(Ahead {
            real: Arc::clone(&env.clock),
            by_us: AtomicU64::new(0),
        })
    }
}

impl Clock for Ahead {
    fn now_us(&self) -> u64 {
        self.real.now_us() + self.by_us.load(Ordering::SeqCst)
    }
    fn now_ns(&self) -> u64 {
        self.real.now_ns() + self.by_us.load(Ordering::SeqCst) * 1_000
    }
    fn unix_us(&self) -> u64 {
        self.real.unix_us() + self.by_us.load(Ordering::SeqCst)
    }
    fn sleep(&self, duration: Duration) {
        self.real.sleep(duration);
    }
}

/// Copies the files of `from` to the new directory `to` as a kill at this moment would leave them,
/// LOCK left out.
pub(crate) fn copy_dir(env: &Env, from: &Path, to: &Path) {
    let files = loop {
        let before = manifests(env, from);
        let files = read_files(env, from);
        // Otherwise background work has changed the tree between two files.
        if manifests(env, from) == before {
            break files;
        }
    };
    env.fs.create_dir_all(to).expect("a new directory");
    for (name, bytes) in files {
        let mut copy = env
            .fs
            .create(&to.join(name), WriteOptions::default())
            .expect("the copy is new");
        copy.append(&bytes).expect("there is space");
        copy.sync().expect("there is space");
        copy.close().expect("there is space");
    }
}

/// The names and lengths of the MANIFESTs in a directory.
fn manifests(env: &Env, dir: &Path) -> Vec<(String, Option<u64>)> {
    let entries = env.fs.read_dir(dir).expect("the directory is there");
    let names = entries.into_iter().map(|e| e.name);
    names
        .filter(|name| name.starts_with("MANIFEST-"))
        .map(|name| {
            let len = env.fs.metadata(&dir.join(&name)).ok().map(|m| m.len);
            (name, len)
        })
        .collect()
}

fn read_files(env: &Env, dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in env.fs.read_dir(dir).expect("the directory is there") {
        if !entry.is_file || entry.name == "LOCK" {
            continue;
        }
        match env.fs.read_all(&dir.join(&entry.name), u64::MAX) {
            Ok(bytes) => files.push((entry.name, bytes)),
            // Garbage that was deleted meanwhile is needed by nobody.
            Err(e) if e.is_not_found() => {}
            Err(e) => panic!("copy: {e}"),
        }
    }
    files
}

/// Removes a directory of plain files.
pub(crate) fn remove_dir(env: &Env, dir: &Path) {
    for entry in env.fs.read_dir(dir).unwrap_or_default() {
        env.fs
            .remove_file(&dir.join(&entry.name))
            .expect("the file is ours");
    }
    env.fs.remove_dir(dir).expect("it is empty");
}
