//! Counts and findings, and small things that all commands share.

use crate::check::{Violation, ViolationKind};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Figures of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) kills: u64,
    /// Of these, before the process had opened its database.
    pub(crate) early: u64,
    /// Power cuts.
    pub(crate) cuts: u64,
    /// Trials under a limit.
    pub(crate) trials: u64,
    /// Operations that were found again.
    pub(crate) operations: u64,
    /// States that RocksDB's tools read.
    pub(crate) read_by_rocksdb: u64,
    /// Entries that they and Esker agreed on.
    pub(crate) entries: u64,
    lost: u64,
    holes: u64,
    wrong: u64,
    unopenable: u64,
    misbehaved: u64,
}

impl Report {
    /// Adds up.
    pub(crate) fn add(&mut self, other: &Report) {
        self.kills += other.kills;
        self.early += other.early;
        self.cuts += other.cuts;
        self.trials += other.trials;
        self.operations += other.operations;
        self.read_by_rocksdb += other.read_by_rocksdb;
        self.entries += other.entries;
        self.lost += other.lost;
        self.holes += other.holes;
        self.wrong += other.wrong;
        self.unopenable += other.unopenable;
        self.misbehaved += other.misbehaved;
    }

    /// Prints and counts a promise that was not kept.
    pub(crate) fn violation(&mut self, v: &Violation, what: &str) {
        println!("{what}: {v}");
        match v.kind {
            ViolationKind::Lost => self.lost += 1,
            ViolationKind::Hole => self.holes += 1,
            ViolationKind::Wrong => self.wrong += 1,
            ViolationKind::Unopenable => self.unopenable += 1,
            ViolationKind::Misbehaved => self.misbehaved += 1,
        }
    }

    /// How many promises were not kept.
    pub(crate) fn violations(&self) -> u64 {
        self.lost + self.holes + self.wrong + self.unopenable + self.misbehaved
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = [
            ("kills", self.kills),
            ("in recovery", self.early),
            ("power cuts", self.cuts),
            ("trials", self.trials),
            ("operations", self.operations),
            ("states read by RocksDB", self.read_by_rocksdb),
            ("entries compared", self.entries),
        ];
        for (name, figure) in figures.into_iter().filter(|(_, n)| *n > 0) {
            write!(f, "{name}: {figure}, ")?;
        }
        write!(
            f,
            "lost: {}, holes: {}, unopenable: {}, wrong: {}, misbehaved: {}",
            self.lost, self.holes, self.unopenable, self.wrong, self.misbehaved
        )
    }
}

/// The directory that was asked for, or one that goes away with the guard.
pub(crate) fn home(dir: Option<&Path>) -> Result<(PathBuf, Option<tempfile::TempDir>), String> {
    match dir {
        Some(dir) => match std::fs::create_dir_all(dir) {
            Ok(()) => Ok((dir.to_owned(), None)),
            Err(e) => Err(format!("{}: {e}", dir.display())),
        },
        None => match tempfile::tempdir() {
            Ok(home) => Ok((home.path().to_owned(), Some(home))),
            Err(e) => Err(format!("no temporary directory: {e}")),
        },
    }
}

/// How many workers were asked for; 0 is one per processor.
pub(crate) fn jobs(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
}

/// Locks, also after another worker panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
