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
    /// Some seeks defer reading what they found, and tell no more than their target.
    defers: bool,
    bound: Option<Vec<u8>>,
}

impl VecCursor {
    pub(crate) fn new(order: &KeyOrder, entries: Arc<Vec<Entry>>) -> Self {
        VecCursor {
            order: order.clone(),
            entries,
            at: None,
            defers: false,
            bound: None,
        }
    }
    /// One whose seeks may defer.
    #[allow(dead_code, reason = "one of two callers")]
    pub(crate) fn deferring(order: &KeyOrder, entries: Arc<Vec<Entry>>) -> Self {
        VecCursor {
            defers: true,
            ..Self::new(order, entries)
        }
    }
    fn defer(&mut self, target: &[u8]) {
        let found = self.at.and_then(|i| self.entries.get(i));
        let is_there = found.is_some_and(|e| self.order.compare_internal(&e.0, target).is_eq());
        let defers = target.iter().map(|b| usize::from(*b)).sum::<usize>() % 3 > 0;
        self.bound = (self.defers && defers && !is_there).then(|| target.to_vec());
    }
    fn before(&self, target: &[u8]) -> usize {
        self.entries
            .partition_point(|e| self.order.compare_internal(&e.0, target).is_lt())
    }
    /// Returns whether entries `a` and `b` are of two keys; as a block, it does not know
    /// everywhere.
    fn knows_apart(&self, a: usize, b: usize) -> bool {
        let user = |i: usize| self.entries.get(i).map(|e| user_key(&e.0));
        self.order.is_bytewise() && !a.is_multiple_of(3) && user(b).is_some() && user(a) != user(b)
    }
}

impl Cursor for VecCursor {
    fn valid(&self) -> bool {
        self.bound.is_some() || self.at.is_some_and(|i| i < self.entries.len())
    }
    fn is_deferred(&self) -> bool {
        self.bound.is_some()
    }
    fn read_deferred(&mut self) {
        self.bound = None;
    }
    fn seek_to_first(&mut self) {
        self.bound = None;
        self.at = Some(0);
    }
    fn seek_to_last(&mut self) {
        self.bound = None;
        self.at = self.entries.len().checked_sub(1);
    }
    fn seek(&mut self, target: &[u8]) {
        self.at = Some(self.before(target));
        self.defer(target);
    }
    fn seek_for_prev(&mut self, target: &[u8]) {
        let n = self
            .entries
            .partition_point(|e| self.order.compare_internal(&e.0, target).is_le());
        self.at = n.checked_sub(1);
        self.defer(target);
    }
    fn next(&mut self) {
        assert!(!self.is_deferred(), "a bound is no entry");
        self.at = self.at.map(|i| i + 1);
    }
    fn prev(&mut self) {
        assert!(!self.is_deferred(), "a bound is no entry");
        self.at = self.at.and_then(|i| i.checked_sub(1));
    }
    fn key(&self) -> &[u8] {
        match &self.bound {
            Some(bound) => bound,
            None => &self.entries[self.at.expect("only while valid")].0,
        }
    }
    fn value(&self) -> &[u8] {
        assert!(!self.is_deferred(), "a bound is no entry");
        &self.entries[self.at.expect("only while valid")].1
    }
    fn next_is_another_key(&self) -> bool {
        !self.is_deferred() && self.at.is_some_and(|i| self.knows_apart(i, i + 1))
    }
    fn prev_is_another_key(&self) -> bool {
        let at = self.at.filter(|i| *i > 0 && !self.is_deferred());
        at.is_some_and(|i| self.knows_apart(i, i - 1))
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}
