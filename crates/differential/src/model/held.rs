//! Snapshots and iterators that the model's thread holds for long, with what they may see.

use super::table::Table;
use crate::api::H;

/// A snapshot, and what the families held.
pub(super) struct Snapshot {
    pub(super) handle: H,
    /// With the names of the families: a family that was made later has no snapshot.
    pub(super) tables: Vec<(String, Table)>,
}

/// An open iterator, and what it may see.
pub(super) struct Cursor {
    pub(super) handle: H,
    pub(super) read: H,
    pub(super) table: Table,
    /// The name of the family.
    pub(super) family: String,
    /// Bounds, as numbers of keys, and their bytes, which the iterator points into.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) _lower: Box<[u8; 4]>,
    pub(super) _upper: Box<[u8; 4]>,
    /// Where it stands.
    pub(super) place: Option<usize>,
    pub(super) pinned: bool,
    /// The last steps, for a person.
    pub(super) trace: String,
}

impl Cursor {
    /// The first key of its own from a number on.
    pub(super) fn next_from(&self, from: usize) -> Option<usize> {
        (from.max(self.from)..self.to).find(|number| self.table.entries[*number].is_some())
    }

    /// The last key of its own before a number.
    pub(super) fn last_before(&self, end: usize) -> Option<usize> {
        let range = self.from..end.min(self.to).max(self.from);
        range
            .rev()
            .find(|number| self.table.entries[*number].is_some())
    }
}
