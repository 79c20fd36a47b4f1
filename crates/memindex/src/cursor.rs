//! Walking an index both ways.

use crate::entry::EntryPtr;
use crate::index::{EntryPosition, TreeIndex};
use crate::node::{Node, NodeView};
use crate::order::IndexOrder;
use esker_sync::Arc;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Something that keeps an index alive and always leads to the same one.
///
/// # Safety
/// `index` must return the same index every time, and that index must live, in place, as long as
/// the handle.
pub unsafe trait IndexHandle<O> {
    /// The index.
    fn index(&self) -> &TreeIndex<O>;
}

// SAFETY: a reference always leads to the same index, which its lifetime keeps alive.
unsafe impl<O> IndexHandle<O> for &TreeIndex<O> {
    #[inline(always)]
    fn index(&self) -> &TreeIndex<O> {
        self
    }
}

// SAFETY: an `Arc` always leads to the same index and keeps it alive, wherever the `Arc` moves.
unsafe impl<O> IndexHandle<O> for Arc<TreeIndex<O>> {
    #[inline(always)]
    fn index(&self) -> &TreeIndex<O> {
        self
    }
}

/// A position in an index. It sees entries added after it was made, if they lie ahead of it.
///
/// Invariant: `at` is a place in the handle's index.
pub struct IndexCursor<O, H> {
    handle: H,
    at: Option<At>,
    _order: PhantomData<fn() -> O>,
}

impl<O: IndexOrder> TreeIndex<O> {
    /// A cursor that borrows the index.
    pub fn cursor(&self) -> IndexCursor<O, &Self> {
        IndexCursor::new(self)
    }
}

/// A [`EntryPosition`] that borrows nothing.
#[derive(Clone, Copy)]
struct At {
    leaf: NonNull<Node>,
    look: NodeView,
    rank: usize,
    entry: EntryPtr,
}

impl At {
    #[inline(always)]
    fn new(place: EntryPosition<'_>) -> Self {
        At {
            leaf: NonNull::from_ref(place.leaf),
            look: place.look,
            rank: place.rank,
            entry: place.entry,
        }
    }

    /// # Safety
    /// The index in which this place is lives for `'a`.
    #[inline(always)]
    unsafe fn place<'a>(self) -> EntryPosition<'a> {
        EntryPosition {
            // SAFETY: nodes live as long as their index.
            leaf: unsafe { self.leaf.as_ref() },
            look: self.look,
            rank: self.rank,
            entry: self.entry,
        }
    }
}

// SAFETY: node and entry live in the index that the handle keeps, and may be read from any thread.
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

    /// Returns whether it stands on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.at.is_some()
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.at = self.handle.index().first().map(At::new);
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        self.at = self.handle.index().last().map(At::new);
    }

    /// To the first entry at or after `target`.
    #[inline]
    pub fn seek(&mut self, target: &[u8]) {
        self.at = self.handle.index().at_or_after(target).map(At::new);
    }

    /// To the last entry at or before `target`.
    #[inline]
    pub fn seek_for_prev(&mut self, target: &[u8]) {
        self.at = self.handle.index().at_or_before(target).map(At::new);
    }

    /// To the first entry at or after `target`, which is not before the present one: a few steps
    /// forward before a search. For walks that mostly move on by little.
    pub fn seek_forward(&mut self, target: &[u8]) {
        const STEPS: usize = 4;
        for _ in 0..STEPS {
            if !self.valid()
                || self.handle.index().order.compare(self.key(), target) != Ordering::Less
            {
                return;
            }
            self.next();
        }
        self.seek(target);
    }

    /// To the next entry. Does nothing when not valid.
    #[inline]
    pub fn next(&mut self) {
        if let Some(at) = self.at {
            // SAFETY: the handle keeps the index.
            let place = unsafe { at.place() };
            self.at = self.handle.index().after(place).map(At::new);
        }
    }

    /// To the previous entry. Does nothing when not valid.
    #[inline]
    pub fn prev(&mut self) {
        if let Some(at) = self.at {
            // SAFETY: the handle keeps the index.
            let place = unsafe { at.place() };
            self.at = self.handle.index().before(place).map(At::new);
        }
    }

    /// The key; empty when not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.at {
            Some(at) => self.handle.index().entry(at.entry).0,
            None => &[],
        }
    }

    /// The value; empty when not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.at {
            Some(at) => self.handle.index().entry(at.entry).1,
            None => &[],
        }
    }

    /// Returns the handle that keeps the index alive.
    pub fn handle(&self) -> &H {
        &self.handle
    }
}

impl<'a, O: IndexOrder> IndexCursor<O, &'a TreeIndex<O>> {
    /// Key and value for as long as the index is borrowed, wherever the cursor moves.
    #[inline]
    pub fn entry(&self) -> Option<(&'a [u8], &'a [u8])> {
        self.at.map(|at| self.handle.entry(at.entry))
    }
}

const _: fn() = || {
    fn handle<H: IndexHandle<crate::BytewisePlain>>() {}
    handle::<&TreeIndex<crate::BytewisePlain>>();
};
