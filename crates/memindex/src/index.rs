//! The skiplist: searches, and the state that writers share.
//!
//! Invariants: every level is a sorted list, and a sublist of the level below; a node is linked from the bottom
//! up, by a release store or exchange, and readers follow links with acquire loads, so whoever reaches a node
//! sees its key and value. Nodes are never unlinked.
//!
//! Thread-safety: any number of readers at any time, without locks; writers through [`Writer`].

use crate::arena::Arena;
use crate::node::{self, HEIGHT_MAX, NodePtr};
use crate::order::IndexOrder;
use crate::sync::{AtomicUsize, Once, Ordering as Memory};
use crate::writer::{Splice, Writer};
use crate::{IndexCursor, IndexHandle};
use esker_sync::{Arc, CachePadded};
use std::cmp::Ordering;

/// A mark in `SkipIndex::writers` while one writer has the index for itself.
pub(crate) const ALONE: usize = usize::MAX;
const BRANCHING: usize = 4;

/// What a lone writer keeps from one turn to the next.
#[derive(Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) splice: Splice,
    pub(crate) random: u64,
}

/// A concurrent ordered index of byte keys and values; see the head of this file.
pub struct SkipIndex<O> {
    pub(crate) order: O,
    pub(crate) arena: Arc<Arena>,
    /// A node of full height before all others; its key is never looked at.
    pub(crate) head: NodePtr,
    /// Levels in use.
    pub(crate) height: AtomicUsize,
    pub(crate) len: AtomicUsize,
    /// The number of writers, or [`ALONE`].
    pub(crate) writers: CachePadded<AtomicUsize>,
    /// Touched only by the writer that set [`ALONE`].
    pub(crate) resident: Once<Resident>,
}

// SAFETY: the pointers lead into the arena, which the index keeps alive; nodes may be reached from any thread.
unsafe impl<O: Send> Send for SkipIndex<O> {}
// SAFETY: links are atomic, all else in a node is immutable once linked, and `resident` is touched only by the
// one writer that exchanged `writers` to `ALONE`.
unsafe impl<O: Sync> Sync for SkipIndex<O> {}

impl<O> std::fmt::Debug for SkipIndex<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkipIndex")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<O> SkipIndex<O> {
    /// Entries inside. Those of a [`Writer`] count when it is dropped.
    pub fn len(&self) -> usize {
        self.len.load(Memory::Relaxed)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        // SAFETY: the head lives as long as the index.
        unsafe { node::next(self.head, 0) }.is_none()
    }

    /// The memory behind it, which other indexes may share.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The order.
    pub fn order(&self) -> &O {
        &self.order
    }

    /// Bytes that the arena took from the system (all of it, shared or not).
    pub fn memory_usage(&self) -> usize {
        self.arena.memory_usage()
    }
}

impl<O: IndexOrder> SkipIndex<O> {
    /// An empty index in `arena`.
    pub fn new(order: O, arena: Arc<Arena>) -> Self {
        let head = node::allocate(&arena, HEIGHT_MAX, 0, 0);
        let resident = Resident {
            splice: Splice::new(head),
            random: 0x2545_F491_4F6C_DD1D,
        };
        SkipIndex {
            order,
            head,
            height: AtomicUsize::new(1),
            len: AtomicUsize::new(0),
            writers: CachePadded::new(AtomicUsize::new(0)),
            resident: Once::new(resident),
            arena,
        }
    }

    /// The right to write alone: no exchange per link, and a hint for keys in order that outlives the writer.
    /// `None` while there is another writer.
    pub fn writer_alone(&self) -> Option<Writer<'_, O>> {
        Writer::alone(self)
    }

    /// The right to write beside others of its kind. Waits (spinning) for a lone writer to finish.
    pub fn writer_shared(&self) -> Writer<'_, O> {
        Writer::shared(self)
    }

    /// A cursor that borrows the index.
    pub fn cursor(&self) -> IndexCursor<O, &Self> {
        IndexCursor::new(self)
    }

    /// The first entry at or after `key`.
    #[inline]
    pub fn first_at_or_after(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        self.find_greater_or_equal(key).map(|n| self.entry(n))
    }

    /// Whether `key` is inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.first_at_or_after(key)
            .is_some_and(|(k, _)| self.order.compare(k, key) == Ordering::Equal)
    }

    /// About how many entries come before `key`, within a quarter or so: counted at a level where some tens of
    /// nodes are left, and scaled up on the way down.
    pub fn approximate_rank(&self, key: &[u8]) -> usize {
        const NODES_AT_TOP: usize = 16;
        let prefix = self.order.prefix(key);
        let mut count = 0usize;
        let mut at = self.head;
        // Higher levels hold too few nodes to be scaled up from.
        let enough = (self.len() / NODES_AT_TOP)
            .checked_ilog(BRANCHING)
            .unwrap_or(0) as usize;
        let mut level = enough.min(self.height.load(Memory::Relaxed) - 1);
        loop {
            // SAFETY: `at` was reached at `level` or above.
            match unsafe { node::next(at, level) } {
                Some(n) if self.compare_node(n, prefix, key) == Ordering::Less => {
                    at = n;
                    count += 1;
                }
                _ if level == 0 => return count,
                _ => {
                    count = count.saturating_mul(BRANCHING);
                    level -= 1;
                }
            }
        }
    }

    /// Key and value of a linked node.
    #[inline]
    pub(crate) fn entry(&self, n: NodePtr) -> (&[u8], &[u8]) {
        // SAFETY: a linked node is no longer written, and lives as long as the index.
        unsafe { (node::key(n), node::value(n)) }
    }

    /// The order of a linked node and `key`, whose prefix is `prefix`.
    #[inline(always)]
    pub(crate) fn compare_node(&self, n: NodePtr, prefix: u64, key: &[u8]) -> Ordering {
        // SAFETY: a linked node lives and is no longer written.
        let have = unsafe { node::prefix(n) };
        if have != prefix {
            return have.cmp(&prefix);
        }
        // SAFETY: as above.
        self.order.compare(unsafe { node::key(n) }, key)
    }

    /// Walks down to level 0; `past(order of node and key)` says whether to step over a node.
    ///
    /// Returns the last node stepped on (perhaps the head) and its successor. While a node's line is on its way, the
    /// one that would be needed after a step down is asked for too: the two misses overlap.
    #[inline(always)]
    fn descend(&self, key: &[u8], past: impl Fn(Ordering) -> bool) -> (NodePtr, Option<NodePtr>) {
        let prefix = self.order.prefix(key);
        let mut at = self.head;
        let mut level = self.height.load(Memory::Relaxed) - 1;
        let mut stop: Option<NodePtr> = None;
        loop {
            // SAFETY: `at` was reached at `level` or above.
            let n = unsafe { node::next(at, level) };
            if level > 0 {
                // SAFETY: `at` was reached at `level`, so it has the level below.
                node::prefetch(unsafe { node::link(at, level - 1) }.load(Memory::Relaxed));
            }
            // The node that stopped the level above stops this one too: no need to compare it again.
            if let Some(n) = n.filter(|_| n != stop)
                && past(self.compare_node(n, prefix, key))
            {
                at = n;
                continue;
            }
            if level == 0 {
                return (at, n);
            }
            stop = n;
            level -= 1;
        }
    }

    /// The first node at or after `key`.
    #[inline]
    pub(crate) fn find_greater_or_equal(&self, key: &[u8]) -> Option<NodePtr> {
        self.descend(key, |o| o == Ordering::Less).1
    }

    /// The last node at or before `key`.
    #[inline]
    pub(crate) fn find_less_or_equal(&self, key: &[u8]) -> Option<NodePtr> {
        let at = self.descend(key, |o| o != Ordering::Greater).0;
        (at != self.head).then_some(at)
    }

    /// The first node.
    pub(crate) fn first(&self) -> Option<NodePtr> {
        // SAFETY: the head lives as long as the index.
        unsafe { node::next(self.head, 0) }
    }

    /// The last node.
    pub(crate) fn last(&self) -> Option<NodePtr> {
        let mut at = self.head;
        for level in (0..self.height.load(Memory::Relaxed)).rev() {
            // SAFETY: `at` was reached at this level or above.
            while let Some(n) = unsafe { node::next(at, level) } {
                at = n;
            }
        }
        (at != self.head).then_some(at)
    }

    /// The node just before `n`: from its hint, forward over what came in between.
    #[inline]
    pub(crate) fn before(&self, n: NodePtr) -> Option<NodePtr> {
        // SAFETY: a linked node lives; its hint was set before it was linked.
        let hint = unsafe { node::back(n) }.load(Memory::Acquire);
        let mut at = NodePtr::new(hint).unwrap_or(self.head);
        // SAFETY: a hint is the head or a linked node.
        while let Some(m) = unsafe { node::next(at, 0) } {
            if m == n {
                break;
            }
            at = m;
        }
        (at != self.head).then_some(at)
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<SkipIndex<crate::BytewisePlain>>();
    fn handle<H: IndexHandle<crate::BytewisePlain>>() {}
    handle::<&SkipIndex<crate::BytewisePlain>>();
};
