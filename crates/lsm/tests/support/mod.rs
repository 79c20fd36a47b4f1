//! A cursor over entries in memory, for the stream tests.

use esker_format::key::user_key;
use esker_format::{Cursor, KeyOrder};
use esker_status::Result;
use std::sync::Arc;

/// An internal key and a value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// A run in memory.
#[derive(Clone)]
pub(crate) struct VecCursor {
    order: KeyOrder,
    entries: Arc<Vec<Entry>>,
    at: Option<usize>,
}

impl VecCursor {
    pub(crate) fn new(order: &KeyOrder, entries: Arc<Vec<Entry>>) -> Self {
        VecCursor {
            order: order.clone(),
            entries,
            at: None,
        }
    }
    fn before(&self, target: &[u8]) -> usize {
        self.entries
            .partition_point(|e| self.order.compare_internal(&e.0, target).is_lt())
    }
    /// Whether entries `a` and `b` are of two keys; as a block, it does not know everywhere.
    fn knows_apart(&self, a: usize, b: usize) -> bool {
        let user = |i: usize| self.entries.get(i).map(|e| user_key(&e.0));
        self.order.is_bytewise() && !a.is_multiple_of(3) && user(b).is_some() && user(a) != user(b)
    }
}

impl Cursor for VecCursor {
    fn valid(&self) -> bool {
        self.at.is_some_and(|i| i < self.entries.len())
    }
    fn seek_to_first(&mut self) {
        self.at = Some(0);
    }
    fn seek_to_last(&mut self) {
        self.at = self.entries.len().checked_sub(1);
    }
    fn seek(&mut self, target: &[u8]) {
        self.at = Some(self.before(target));
    }
    fn seek_for_prev(&mut self, target: &[u8]) {
        let n = self
            .entries
            .partition_point(|e| self.order.compare_internal(&e.0, target).is_le());
        self.at = n.checked_sub(1);
    }
    fn next(&mut self) {
        self.at = self.at.map(|i| i + 1);
    }
    fn prev(&mut self) {
        self.at = self.at.and_then(|i| i.checked_sub(1));
    }
    fn key(&self) -> &[u8] {
        &self.entries[self.at.expect("only while valid")].0
    }
    fn value(&self) -> &[u8] {
        &self.entries[self.at.expect("only while valid")].1
    }
    fn next_is_another_key(&self) -> bool {
        self.at.is_some_and(|i| self.knows_apart(i, i + 1))
    }
    fn prev_is_another_key(&self) -> bool {
        let at = self.at.filter(|i| *i > 0);
        at.is_some_and(|i| self.knows_apart(i, i - 1))
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}
