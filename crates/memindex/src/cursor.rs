//! Walking an index both ways.

use crate::index::SkipIndex;
use crate::node::{self, NodePtr};
use crate::order::IndexOrder;
use crate::sync::Ordering as Memory;
use esker_sync::Arc;
use std::cmp::Ordering;
use std::marker::PhantomData;

/// Something that keeps an index alive and always leads to the same one.
///
/// # Safety
/// `index` must return the same index every time, and that index must live, in place, as long as the handle.
pub unsafe trait IndexHandle<O> {
    /// The index.
    fn index(&self) -> &SkipIndex<O>;
}

// SAFETY: a reference always leads to the same index, which its lifetime keeps alive.
unsafe impl<O> IndexHandle<O> for &SkipIndex<O> {
    #[inline(always)]
    fn index(&self) -> &SkipIndex<O> {
        self
    }
}

// SAFETY: an `Arc` always leads to the same index and keeps it alive, wherever the `Arc` moves.
unsafe impl<O> IndexHandle<O> for Arc<SkipIndex<O>> {
    #[inline(always)]
    fn index(&self) -> &SkipIndex<O> {
        self
    }
}

/// A position in an index. It sees entries added after it was made, if they lie ahead of it.
///
/// Invariant: `at` is a linked node of the handle's index.
pub struct IndexCursor<O, H> {
    handle: H,
    at: Option<NodePtr>,
    _order: PhantomData<fn() -> O>,
}

// SAFETY: the node lives in the index that the handle keeps, and may be read from any thread.
unsafe impl<O: Send + Sync, H: Send> Send for IndexCursor<O, H> {}
// SAFETY: as above; through `&self` nothing is changed.
unsafe impl<O: Send + Sync, H: Sync> Sync for IndexCursor<O, H> {}

impl<O, H: IndexHandle<O>> std::fmt::Debug for IndexCursor<O, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexCursor")
            .field("valid", &self.at.is_some())
            .finish_non_exhaustive()
    }
}

impl<O: IndexOrder, H: IndexHandle<O>> IndexCursor<O, H> {
    /// A cursor on no entry.
    pub fn new(handle: H) -> Self {
        IndexCursor {
            handle,
            at: None,
            _order: PhantomData,
        }
    }

    /// Whether it stands on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.at.is_some()
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.at = self.handle.index().first();
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        self.at = self.handle.index().last();
    }

    /// To the first entry at or after `target`.
    #[inline]
    pub fn seek(&mut self, target: &[u8]) {
        self.at = self.handle.index().find_greater_or_equal(target);
    }

    /// To the last entry at or before `target`.
    #[inline]
    pub fn seek_for_prev(&mut self, target: &[u8]) {
        self.at = self.handle.index().find_less_or_equal(target);
    }

    /// To the first entry at or after `target`, which is not before the present one: a few steps forward before
    /// a search. For walks that mostly move on by little.
    pub fn seek_forward(&mut self, target: &[u8]) {
        const STEPS: usize = 4;
        let prefix = self.handle.index().order.prefix(target);
        for _ in 0..STEPS {
            let Some(n) = self.at else { return };
            if self.handle.index().compare_node(n, prefix, target) != Ordering::Less {
                return;
            }
            self.next();
        }
        self.seek(target);
    }

    /// To the next entry. Does nothing when not valid.
    #[inline]
    pub fn next(&mut self) {
        if let Some(n) = self.at {
            // SAFETY: `at` is a linked node of a living index.
            self.at = unsafe { node::next(n, 0) };
            if let Some(m) = self.at {
                // SAFETY: as above.
                node::prefetch(unsafe { node::link(m, 0) }.load(Memory::Relaxed));
            }
        }
    }

    /// To the previous entry, in constant time. Does nothing when not valid.
    #[inline]
    pub fn prev(&mut self) {
        if let Some(n) = self.at {
            self.at = self.handle.index().before(n);
        }
    }

    /// The key; empty when not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.at {
            Some(n) => self.handle.index().entry(n).0,
            None => &[],
        }
    }

    /// The value; empty when not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.at {
            Some(n) => self.handle.index().entry(n).1,
            None => &[],
        }
    }

    /// What keeps the index alive.
    pub fn handle(&self) -> &H {
        &self.handle
    }
}

impl<'a, O: IndexOrder> IndexCursor<O, &'a SkipIndex<O>> {
    /// Key and value for as long as the index is borrowed, wherever the cursor moves.
    #[inline]
    pub fn entry(&self) -> Option<(&'a [u8], &'a [u8])> {
        self.at.map(|n| self.handle.entry(n))
    }
}
