//! The table of targets.
//!
//! A target's function is called with any bytes at all; it panics when a promise is broken. It
//! keeps no state between inputs, so the same input always does the same.

mod backups;
mod blobs;
mod blocks;
mod codecs;
mod database;
mod formats;
mod logs;
mod tables;
mod texts;

use crate::mutate::Source;
use esker_status::Result;

/// A named input.
pub type Seed = (&'static str, Vec<u8>);

/// A decoder under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: also the name of the directory in the corpus.
    pub name: &'static str,
    /// The description of what it tries.
    pub about: &'static str,
    /// Runs one input.
    pub run: fn(&[u8]),
    /// Inputs made by our own writers, and others to begin with.
    pub seeds: fn() -> Vec<Seed>,
    /// Changes an input in the way of its format.
    pub change: fn(&mut Vec<u8>, &mut Source<'_>),
    /// MiB that an input may take.
    pub memory: usize,
}

/// MiB for decoders of small things.
const SMALL: usize = 32;
/// MiB for files and directories: the promise of `docs/reliability.md`.
const LARGE: usize = 256;

/// All targets.
pub fn all() -> Vec<Target> {
    [
        formats::TARGETS,
        blocks::TARGETS,
        codecs::TARGETS,
        logs::TARGETS,
        tables::TARGETS,
        blobs::TARGETS,
        texts::TARGETS,
        backups::TARGETS,
        database::TARGETS,
    ]
    .concat()
}

/// The target with this name.
pub fn find(name: &str) -> Option<Target> {
    all().into_iter().find(|t| t.name == name)
}

/// Checks that a value which was decoded, encoded and decoded again is what it was.
fn same_again<T: PartialEq + std::fmt::Debug>(first: &T, again: Result<T>) {
    match again {
        Ok(again) => assert!(
            *first == again,
            "decoded again it is something else:\n{first:?}\n{again:?}"
        ),
        Err(e) => panic!("what was encoded cannot be decoded: {e}"),
    }
}

/// A walk that ends: panics at more steps than `most`.
struct Steps {
    left: usize,
}

impl Steps {
    fn at_most(most: usize) -> Steps {
        Steps { left: most }
    }

    fn step(&mut self) {
        self.left = self.left.checked_sub(1).expect("the walk does not end");
    }
}
