//! The weight of a table where compactions are chosen: its bytes, and what its deletions free
//! further down.
//!
//! A table of deletions is small and hides much: until it meets what it deletes, that takes space
//! and every scan steps over it. So levels are measured, and tables compared, by their bytes and
//! * for each point deletion beyond half of a table's entries, twice what an entry of the tree
//!   takes on average: half is what a tree that stays as large as it is has, and must not change
//!   its shape;
//! * for its range deletions, the bytes of the tables below that they cover, as its writer found
//!   them ([`FileMeta::compensated_range_deletion_size`]).
//!
//! The average is the tree's and not the table's: a table may hold deletions alone. RocksDB counts
//! values only, which gives deletions of entries without values no weight.

use crate::file::{FileMeta, FileStats};
use crate::version::Version;
use std::sync::Arc;

/// How much a point deletion weighs, in average entries.
const DELETION_WEIGHT: u64 = 2;

/// Weighs the tables of one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weights {
    /// Bytes that an entry with a value takes in a table, on average.
    entry_bytes: u64,
}

/// Sums over tables whose counts are known.
#[derive(Default)]
struct StatSums {
    bytes: f64,
    entries: f64,
    deletions: f64,
    keys: f64,
    values: f64,
}

impl StatSums {
    fn add(mut self, f: &FileMeta, s: &FileStats) -> Self {
        let (points, deletions) = s.points();
        self.bytes += f.size as f64;
        self.entries += points as f64;
        self.deletions += deletions as f64;
        self.keys += s.raw_key_size as f64;
        self.values += s.raw_value_size as f64;
        self
    }

    fn entry_bytes(&self) -> f64 {
        let values = self.entries - self.deletions;
        if values < 1.0 {
            return 0.0;
        }
        if self.keys < 1.0 {
            // Older writers do not tell sizes.
            return self.bytes / values;
        }
        let raw = self.keys / self.entries + self.values / values;
        raw * self.bytes / (self.keys + self.values)
    }
}

impl Weights {
    /// Those of a tree, as far as its tables were opened.
    pub fn of(version: &Version) -> Self {
        let known = version
            .files()
            .filter_map(|(_, f)| Some((f, f.stats.get()?)));
        let known = known.fold(StatSums::default(), |sum, (f, s)| sum.add(f, s));
        Weights {
            entry_bytes: known.entry_bytes() as u64,
        }
    }

    /// Bytes of the table and of what it frees.
    pub fn table(&self, f: &FileMeta) -> u64 {
        let whole = f.size.saturating_add(f.compensated_range_deletion_size);
        let Some(stats) = f.stats.get() else {
            return whole;
        };
        let (entries, deletions) = stats.points();
        let surplus = deletions.saturating_mul(2).saturating_sub(entries);
        let freed = surplus.saturating_mul(self.entry_bytes);
        whole.saturating_add(freed.saturating_mul(DELETION_WEIGHT))
    }

    /// The sum over some tables.
    pub fn tables<'f>(&self, files: impl IntoIterator<Item = &'f Arc<FileMeta>>) -> u64 {
        let each = files.into_iter().map(|f| self.table(f));
        each.fold(0, u64::saturating_add)
    }
}
