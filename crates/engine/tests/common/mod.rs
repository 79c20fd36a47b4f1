//! What several tests share: seeded numbers, and directories copied as a kill would leave them.
//!
//! Included by `mod common;` in each test; single-threaded values, nothing global.
#![allow(dead_code, reason = "each test uses a part of it")]

use esker::env::{Env, ReadOptions, WriteOptions};
use std::path::Path;

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

/// Copies the files of `from` to the new directory `to`, LOCK left out.
pub(crate) fn copy_dir(env: &Env, from: &Path, to: &Path) {
    env.fs.create_dir_all(to).expect("a new directory");
    for entry in env.fs.read_dir(from).expect("the directory is there") {
        if !entry.is_file || entry.name == "LOCK" {
            continue;
        }
        let path = from.join(&entry.name);
        let source = match env.fs.open_read(&path, ReadOptions::default()) {
            Ok(source) => source,
            // Garbage that was deleted meanwhile is needed by nobody.
            Err(e) if e.is_not_found() => continue,
            Err(e) => panic!("copy: {e}"),
        };
        let mut bytes = vec![0; source.len() as usize];
        let n = source.read_at(0, &mut bytes).expect("it can be read");
        bytes.truncate(n);
        let mut copy = env
            .fs
            .create(&to.join(&entry.name), WriteOptions::default())
            .expect("the copy is new");
        copy.append(&bytes).expect("there is space");
        copy.sync().expect("there is space");
        copy.close().expect("there is space");
    }
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
