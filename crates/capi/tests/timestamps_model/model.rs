//! Keys with timestamps in memory, and the random numbers that the steps follow.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The state of a key from a timestamp on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Value(Vec<u8>),
    Deleted,
    SingleDeleted,
}

impl Version {
    pub(super) fn shown(&self) -> (u8, Vec<u8>) {
        match self {
            Version::Value(v) => (1, v.clone()),
            Version::Deleted => (0x14, Vec::new()),
            Version::SingleDeleted => (0x07, Vec::new()),
        }
    }
}

/// All versions, in the order of the database, and the timestamp below which they may be gone.
#[derive(Default)]
pub(super) struct Model {
    pub(super) versions: BTreeMap<(Vec<u8>, Reverse<u64>), Version>,
    /// Ranges of keys, each with the timestamp at which it was deleted.
    pub(super) ranges: Vec<(Vec<u8>, Vec<u8>, u64)>,
    pub(super) low: u64,
    pub(super) now: u64,
}

pub(super) type Shown = (Vec<u8>, u64, Vec<u8>);

impl Model {
    /// Returns the entries that a reader at `ts` sees; a timestamp below the history that is kept
    /// counts as 0.
    pub(super) fn scan(&self, ts: u64) -> Vec<Shown> {
        let mut out: Vec<Shown> = Vec::new();
        let mut last: Option<&[u8]> = None;
        for ((key, Reverse(at)), version) in &self.versions {
            if *at > ts || last == Some(key) {
                continue;
            }
            last = Some(key);
            if self.is_range_deleted(key, *at, ts) {
                continue;
            }
            if let Version::Value(value) = version {
                out.push((key.clone(), self.seen(*at), value.clone()));
            }
        }
        out
    }

    /// Returns whether a reader at `ts` finds the version at `at` in a range that was deleted
    /// later.
    pub(super) fn is_range_deleted(&self, key: &[u8], at: u64, ts: u64) -> bool {
        self.ranges.iter().any(|(begin, end, deleted)| {
            at < *deleted && *deleted <= ts && **begin <= *key && *key < **end
        })
    }

    pub(super) fn seen(&self, at: u64) -> u64 {
        if at < self.low { 0 } else { at }
    }

    pub(super) fn history(&self, since: u64, ts: u64) -> Vec<(Vec<u8>, u64, u8, Vec<u8>)> {
        let range = self.versions.iter();
        let range = range.filter(|((_, Reverse(at)), _)| (since..=ts).contains(at));
        let range = range.filter(|((key, Reverse(at)), _)| !self.is_range_deleted(key, *at, ts));
        range
            .map(|((key, Reverse(at)), version)| {
                let (kind, value) = version.shown();
                (key.clone(), *at, kind, value)
            })
            .collect()
    }
}

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    pub(super) fn key(&mut self) -> Vec<u8> {
        let n = self.below(12);
        format!("k{:0width$}", n, width = 1 + n as usize % 3).into_bytes()
    }
}
