//! The observers of what reading a table costs: the block cache by kind of block, filters, reads of
//! the file.
//!
//! A reader without an observer pays one branch where it looks a block up. Calls come from any
//! thread that reads and must be cheap; they cannot fail and change nothing for the reader.

use esker_format::Level;
use std::fmt;

/// The purpose of a block, as the block cache counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockRole {
    /// Entries.
    Data,
    /// An index, a partition of one, or the top level of a partitioned index or filter.
    Index,
    /// A filter or a partition of one.
    Filter,
}

/// Answers of a filter, and their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilterOutcome {
    /// The key is not in the table.
    Useful,
    /// The key may be in the table.
    Positive,
    /// The key was in the table after a [`FilterOutcome::Positive`].
    TruePositive,
    /// No key with the prefix is in the table.
    PrefixUseful,
    /// Keys with the prefix may be in the table.
    PrefixPositive,
    /// The key was in the table after a [`FilterOutcome::PrefixPositive`].
    PrefixTruePositive,
}

/// Told what the readers of a database's tables do.
pub trait TableObserver: Send + Sync + fmt::Debug {
    /// A block was looked up in the cache: found with that many bytes, or not found.
    fn cache_lookup(&self, role: BlockRole, found: Option<usize>);
    /// A block of that many bytes was put into the cache, or refused by it.
    fn cache_insert(&self, role: BlockRole, bytes: usize, refused: bool);
    /// A block that the cache lacked was in its second tier; it counts as found.
    fn tier_hit(&self, role: BlockRole);
    /// A filter was asked.
    fn filter(&self, outcome: FilterOutcome);
    /// The time in nanoseconds, or 0 when times are not wanted.
    fn now_ns(&self) -> u64;
    /// A block of a table at `level` was read from the file, `stored` bytes, beginning at
    /// `start_ns`; 0 when times are not wanted, or the file was read ahead of whoever asked.
    fn block_read(&self, level: Level, role: BlockRole, stored: usize, start_ns: u64);
    /// A block was decompressed.
    fn decompressed(&self, stored: usize, raw: usize);
}
