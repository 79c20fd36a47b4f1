//! A node of the tree: a leaf, or an inner node with children.
//!
//! A slot has the first bytes of a key as a number, a pointer to the entry with the whole key, and
//! in an inner node the child whose keys begin there. `ranks` says which slots are in use and in
//! which order; a slot is written before `ranks` shows it, so that adding to a node is one store,
//! and no reader waits meanwhile.
//!
//! A node that is full splits: its upper half goes to a new node on its right, which is shown
//! first; then `ranks` gives the half up, and the number of splits in `version` rises. Slots that
//! were given up may be written again, so a reader of slots by a `ranks` compares the number of
//! splits before and after, and reads again when it changed.
//!
//! Invariants: keys rise within a node and from a node to the next on its level; the entry of rank
//! 0 of a node that has a left neighbour lies in slot 0, and is the smallest that the node will
//! ever have (its *low*); what a node loses by a split is found to its right. Rank 0 of the
//! leftmost inner node of a level stands for everything below rank 1.

use crate::entry::{self, Entry, EntryPtr};
use crate::order::IndexOrder;
use crate::ranks::{Ranks, WIDTH};
use crate::sync::{
    AtomicPtr, AtomicU32, AtomicU64, Ordering as Memory, fence, spin_loop, yield_now,
};
use std::cmp::Ordering;
use std::ptr::NonNull;

/// How many steps ahead of a walk entries are asked for. One is not enough where entries lie
/// anywhere in memory, and a walk that does little with each is there before they are.
const AHEAD: usize = 4;

const LOCKED: u32 = 1;
/// One split, as `version` counts.
const SPLIT: u32 = 2;

/// The part that leaves and inner nodes have in common. Aligned to 64.
#[repr(C)]
pub(crate) struct Node {
    ranks: AtomicU64,
    /// Bit 0: a writer has it. Above: how often it was split.
    version: AtomicU32,
    /// 0: a leaf.
    level: u32,
    next: AtomicPtr<Node>,
    /// A node before this one on its level, mostly the one just before: nodes never go away, so it
    /// can be behind the times and not wrong. Only leaves keep it true.
    back: AtomicPtr<Node>,
    prefixes: [AtomicU64; WIDTH],
    entries: [AtomicPtr<Entry>; WIDTH],
}

/// A node with children.
#[repr(C)]
pub(crate) struct Inner {
    node: Node,
    children: [AtomicPtr<Node>; WIDTH],
}

/// A key with its first bytes as a number.
#[derive(Clone, Copy)]
pub(crate) struct SearchKey<'k> {
    pub(crate) prefix: u64,
    pub(crate) key: &'k [u8],
}

/// A node at one moment: the number of its splits, and its slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeView {
    splits: u32,
    pub(crate) ranks: Ranks,
}

/// The content of a slot; `child` is null in leaves, `entry` in the first slot of a level.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) prefix: u64,
    pub(crate) entry: *mut Entry,
    pub(crate) child: *mut Node,
}

impl Node {
    fn new(level: u32) -> Self {
        Node {
            ranks: AtomicU64::new(Ranks::identity(0).0),
            version: AtomicU32::new(0),
            level,
            next: AtomicPtr::default(),
            back: AtomicPtr::default(),
            prefixes: std::array::from_fn(|_| AtomicU64::new(0)),
            entries: std::array::from_fn(|_| AtomicPtr::default()),
        }
    }
}

/// An empty node of `level` in `room`.
///
/// # Safety
/// `room` is the caller's, aligned to 64, with [`bytes`] of the level.
pub(crate) unsafe fn lay_out<'a>(room: NonNull<u8>, level: u32) -> &'a Node {
    // SAFETY: the caller's promise; an inner node begins with a node.
    unsafe {
        if level == 0 {
            room.cast::<Node>().write(Node::new(0));
        } else {
            room.cast::<Inner>().write(Inner {
                node: Node::new(level),
                children: std::array::from_fn(|_| AtomicPtr::default()),
            });
        }
        room.cast::<Node>().as_ref()
    }
}

/// Returns the size of a node of `level`.
pub(crate) const fn bytes(level: u32) -> usize {
    let size = if level == 0 {
        size_of::<Node>()
    } else {
        size_of::<Inner>()
    };
    size.next_multiple_of(64)
}

impl Node {
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    pub(crate) fn as_ptr(&self) -> *mut Node {
        std::ptr::from_ref(self).cast_mut()
    }

    /// Asks for all of its lines at once: which of them a search needs is known when the first is
    /// here.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        entry::prefetch_lines::<{ size_of::<Node>().div_ceil(64) }>(self.as_ptr().cast());
    }

    #[inline(always)]
    fn prefix(&self, slot: usize) -> u64 {
        debug_assert!(slot < WIDTH);
        // SAFETY: the numbers in `ranks` are those of slots.
        unsafe { self.prefixes.get_unchecked(slot) }.load(Memory::Relaxed)
    }

    /// The entry in a slot that some `ranks` has shown, whose writer is ordered before.
    #[inline(always)]
    fn entry(&self, slot: usize) -> *mut Entry {
        debug_assert!(slot < WIDTH);
        // SAFETY: as in `prefix`.
        unsafe { self.entries.get_unchecked(slot) }.load(Memory::Acquire)
    }

    #[inline(always)]
    fn child(&self, slot: usize) -> &AtomicPtr<Node> {
        debug_assert!(self.level > 0 && slot < WIDTH);
        let inner = std::ptr::from_ref(self).cast::<Inner>();
        // SAFETY: only an inner node has a level above 0, and this is its first field.
        unsafe { (*inner).children.get_unchecked(slot) }
    }

    fn slot(&self, slot: usize) -> Slot {
        Slot {
            prefix: self.prefix(slot),
            entry: self.entry(slot),
            child: match self.level {
                0 => std::ptr::null_mut(),
                _ => self.child(slot).load(Memory::Acquire),
            },
        }
    }

    /// Release: a reader that sees a slot written again also sees that the node was split since
    /// `ranks` named the slot.
    #[inline]
    fn set_slot(&self, slot: usize, to: Slot) {
        self.prefixes[slot].store(to.prefix, Memory::Release);
        self.entries[slot].store(to.entry, Memory::Release);
        if self.level > 0 {
            self.child(slot).store(to.child, Memory::Release);
        }
    }

    /// Reads splits and slots of the node.
    #[inline(always)]
    pub(crate) fn look(&self) -> NodeView {
        let splits = self.version.load(Memory::Acquire) & !LOCKED;
        let ranks = Ranks(self.ranks.load(Memory::Acquire));
        NodeView { splits, ranks }
    }

    /// Returns whether what was read from slots by `look` was theirs: nothing was given up since.
    #[inline(always)]
    pub(crate) fn holds(&self, look: NodeView) -> bool {
        fence(Memory::Acquire);
        self.version.load(Memory::Relaxed) & !LOCKED == look.splits
    }

    /// The neighbour on the right.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<&Node> {
        // SAFETY: a link leads to a node of the same index, which lives as long.
        unsafe { self.next.load(Memory::Acquire).as_ref() }
    }

    /// A node on the left.
    #[inline(always)]
    pub(crate) fn back(&self) -> Option<&Node> {
        // SAFETY: as in `next`.
        unsafe { self.back.load(Memory::Acquire).as_ref() }
    }

    /// The smallest entry that the node will ever have. It has a left neighbour.
    #[inline(always)]
    pub(crate) fn low(&self) -> (u64, EntryPtr) {
        let entry = NonNull::new(self.entry(0)).expect("a node on the right has a smallest entry");
        (self.prefix(0), entry)
    }

    /// Returns whether `sought` is the node's own or beyond it. It has a left neighbour.
    #[inline(always)]
    pub(crate) fn begins_at_or_before<O: IndexOrder>(
        &self,
        order: &O,
        sought: SearchKey<'_>,
    ) -> bool {
        let (prefix, entry) = self.low();
        if prefix != sought.prefix {
            return prefix < sought.prefix;
        }
        // SAFETY: entries live as long as the index, and this was shown.
        order.compare(unsafe { entry::key(entry) }, sought.key) != Ordering::Greater
    }

    /// The entry of a rank that `look` shows. Null only when the slot was given up, or at the begin
    /// of an inner level.
    #[inline(always)]
    pub(crate) fn entry_at(&self, look: NodeView, rank: usize) -> *mut Entry {
        self.entry(look.ranks.slot(rank))
    }

    /// The first bytes of a rank that `look` shows.
    #[inline(always)]
    pub(crate) fn prefix_at(&self, look: NodeView, rank: usize) -> u64 {
        self.prefix(look.ranks.slot(rank))
    }

    /// The child of a rank that `look` shows.
    #[inline(always)]
    pub(crate) fn child_at(&self, look: NodeView, rank: usize) -> Option<&Node> {
        // SAFETY: as in `next`.
        unsafe {
            self.child(look.ranks.slot(rank))
                .load(Memory::Acquire)
                .as_ref()
        }
    }

    /// A walk to the right has come to `rank`, from an entry like which the next ones may be: asks
    /// for the one that comes some steps later, and in time for the leaf that it is in.
    #[inline(always)]
    pub(crate) fn prefetch_ahead(&self, look: NodeView, rank: usize, like: EntryPtr) {
        if !entry::CAN_PREFETCH {
            return;
        }
        let count = look.ranks.count();
        if rank + AHEAD < count {
            self.prefetch_entry(look, rank + AHEAD, like);
            if rank == 0
                && let Some(next) = self.next()
            {
                next.prefetch();
            }
        } else if let Some(next) = self.next() {
            next.prefetch_entry(next.look(), rank + AHEAD - count, like);
        }
    }

    /// Prefetches for a walk to the left.
    #[inline(always)]
    pub(crate) fn prefetch_behind(&self, look: NodeView, rank: usize, like: EntryPtr) {
        if !entry::CAN_PREFETCH {
            return;
        }
        if rank >= AHEAD {
            self.prefetch_entry(look, rank - AHEAD, like);
            if rank + 1 == look.ranks.count()
                && let Some(back) = self.back()
            {
                back.prefetch();
            }
        } else if let Some(back) = self.back() {
            let look = back.look();
            let at = (look.ranks.count() + rank).saturating_sub(AHEAD);
            back.prefetch_entry(look, at, like);
        }
    }

    /// Asks for an entry, which may be another by now, or none.
    #[inline(always)]
    fn prefetch_entry(&self, look: NodeView, rank: usize, like: EntryPtr) {
        let entry = self.entry_at(look, rank.min(WIDTH - 1));
        // SAFETY: the caller's entry lives as long as the index.
        entry::prefetch(entry, unsafe { entry::size(like) });
    }

    /// The rank of this very entry.
    pub(crate) fn rank_of(&self, look: NodeView, entry: EntryPtr) -> Option<usize> {
        (0..look.ranks.count()).find(|&r| self.entry_at(look, r) == entry.as_ptr())
    }

    /// How many ranks from `least` on, and those before, are below `sought`; with `or_equal` also
    /// the one that is equal.
    ///
    /// The numbers of all slots are compared, in no order and without a branch; keys only where the
    /// numbers are equal. Ranks before `least` are not looked at: they are below.
    #[inline(always)]
    fn count_below<O: IndexOrder>(
        &self,
        order: &O,
        ranks: Ranks,
        sought: SearchKey<'_>,
        least: usize,
        or_equal: bool,
    ) -> usize {
        let count = ranks.count();
        let (mut below, mut equal) = (0, 0);
        for rank in 0..WIDTH {
            let prefix = self.prefix(ranks.slot(rank));
            let used = rank < count;
            below += usize::from(used & (prefix < sought.prefix));
            equal += usize::from(used & (prefix == sought.prefix));
        }
        if equal == 0 {
            return below.max(least);
        }
        let (mut from, mut to) = (below.max(least), (below + equal).max(least));
        while from < to {
            let middle = (from + to) / 2;
            let Some(entry) = NonNull::new(self.entry(ranks.slot(middle))) else {
                // Given up and not written yet: the caller looks again.
                return from;
            };
            // SAFETY: entries live as long as the index, and this was shown to somebody before it
            // came here.
            let have = order.compare(unsafe { entry::key(entry) }, sought.key);
            if have == Ordering::Less || (or_equal && have == Ordering::Equal) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// Entries of a leaf before `sought`.
    #[inline(always)]
    pub(crate) fn before<O: IndexOrder>(
        &self,
        order: &O,
        look: NodeView,
        sought: SearchKey<'_>,
    ) -> usize {
        self.count_below(order, look.ranks, sought, 0, false)
    }

    /// Entries of a leaf at or before `sought`.
    #[inline(always)]
    pub(crate) fn up_to<O: IndexOrder>(
        &self,
        order: &O,
        look: NodeView,
        sought: SearchKey<'_>,
    ) -> usize {
        self.count_below(order, look.ranks, sought, 0, true)
    }

    /// The rank of the child to which `sought` belongs, if it belongs to this inner node.
    #[inline(always)]
    pub(crate) fn child_rank<O: IndexOrder>(
        &self,
        order: &O,
        look: NodeView,
        sought: SearchKey<'_>,
    ) -> usize {
        self.count_below(order, look.ranks, sought, 1, true) - 1
    }
}

/// A node that one writer may change. No other does until it is dropped.
pub(crate) struct NodeGuard<'a> {
    pub(crate) node: &'a Node,
}

impl<'a> NodeGuard<'a> {
    /// Waits for other writers; readers neither wait nor make wait.
    #[inline]
    pub(crate) fn new(node: &'a Node) -> Self {
        loop {
            let version = node.version.load(Memory::Relaxed);
            let free = version & LOCKED == 0;
            if free
                && node
                    .version
                    .compare_exchange_weak(
                        version,
                        version | LOCKED,
                        Memory::Acquire,
                        Memory::Relaxed,
                    )
                    .is_ok()
            {
                return NodeGuard { node };
            }
            spin_loop();
            yield_now();
        }
    }

    /// Reads splits and slots of the node.
    #[inline(always)]
    pub(crate) fn look(&self) -> NodeView {
        NodeView {
            splits: self.node.version.load(Memory::Relaxed) & !LOCKED,
            ranks: Ranks(self.node.ranks.load(Memory::Relaxed)),
        }
    }

    /// Returns whether there is no room.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.look().ranks.count() == WIDTH
    }

    /// Adds a slot at `rank`, and shows it.
    #[inline(always)]
    pub(crate) fn insert(&self, rank: usize, slot: Slot) {
        let (ranks, free) = self.look().ranks.insert(rank);
        self.node.set_slot(free, slot);
        self.node.ranks.store(ranks.0, Memory::Release);
    }

    /// Gives the ranks from `keep` on, and then `slot`, to `right`, which is empty and which nobody
    /// knows, and shows it.
    pub(crate) fn split(&self, keep: usize, slot: Option<Slot>, right: &Node) {
        let node = self.node;
        let ranks = self.look().ranks;
        let given = (keep..ranks.count()).map(|r| node.slot(ranks.slot(r)));
        let mut count = 0;
        for s in given.chain(slot) {
            right.set_slot(count, s);
            count += 1;
        }
        right.ranks.store(Ranks::identity(count).0, Memory::Relaxed);
        right.back.store(node.as_ptr(), Memory::Relaxed);
        let next = node.next();
        let next_ptr = next.map_or(std::ptr::null_mut(), Node::as_ptr);
        right.next.store(next_ptr, Memory::Relaxed);
        node.next.store(right.as_ptr(), Memory::Release);
        if let Some(next) = next {
            next.back.store(right.as_ptr(), Memory::Release);
        }
        if keep == ranks.count() {
            return;
        }
        // First the half is given up, then that is counted: a reader that sees the count sees no
        // slot that was given up.
        node.ranks.store(ranks.truncate(keep).0, Memory::Release);
        let version = node.version.load(Memory::Relaxed);
        node.version
            .store(version.wrapping_add(SPLIT), Memory::Release);
    }
}

impl Drop for NodeGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let version = self.node.version.load(Memory::Relaxed);
        self.node.version.store(version & !LOCKED, Memory::Release);
    }
}
