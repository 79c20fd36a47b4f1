//! Adding entries.
//!
//! A [`Writer`] is the right to add, taken once per batch: alone (plain stores) or beside others (compare and
//! exchange per level). An [`Entry`] is a node laid out in the arena but not linked: the caller writes key and
//! value straight into it, and [`Writer::insert`] links it.
//!
//! A *splice* remembers, for every level, the nodes around the last insertion. A key that falls between the two of
//! level 0 falls between those of every level above, so keys in order are linked with two comparisons; any other key
//! searches from the head. Other writers may have come in between: each level is walked forward before it is used.

use crate::arena::Arena;
use crate::index::{ALONE, Resident, SkipIndex};
use crate::node::{self, HEIGHT_MAX, Node, NodePtr};
use crate::order::IndexOrder;
use crate::sync::{self, Ordering as Memory};
use std::cmp::Ordering;
use std::ptr::null_mut;

/// The nodes around a place, level by level.
#[derive(Clone, Copy)]
pub(crate) struct Splice {
    prev: [NodePtr; HEIGHT_MAX],
    next: [Option<NodePtr>; HEIGHT_MAX],
    /// Levels that are filled in; 0: nothing remembered.
    height: usize,
}

impl Splice {
    pub(crate) fn new(head: NodePtr) -> Self {
        Splice {
            prev: [head; HEIGHT_MAX],
            next: [None; HEIGHT_MAX],
            height: 0,
        }
    }
}

/// Room for one entry, to be filled and then given to [`Writer::insert`] of the index it is from.
///
/// Dropping it leaves its bytes unused until the arena goes. Key and value are zero until written.
#[derive(Debug)]
pub struct Entry<'a> {
    node: NodePtr,
    height: usize,
    arena: &'a Arena,
}

// SAFETY: an entry that is not linked belongs to its holder alone.
unsafe impl Send for Entry<'_> {}

impl Entry<'_> {
    /// The room for the key and for the value.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [u8], &mut [u8]) {
        // SAFETY: the node is laid out and lives as long as the index.
        let (start, key_len, value_len) = unsafe { node::parts(self.node) };
        // SAFETY: the bytes are initialised (zeroed in `reserve`), and the node is not linked: they are ours alone.
        let key = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), key_len) };
        // SAFETY: as above; the value follows the key and does not overlap it.
        let value =
            unsafe { std::slice::from_raw_parts_mut(start.as_ptr().add(key_len), value_len) };
        (key, value)
    }

    /// The key as written so far.
    #[inline]
    pub fn key(&self) -> &[u8] {
        // SAFETY: initialised, and written only through `&mut self`.
        unsafe { node::key(self.node) }
    }
}

/// The right to add entries to an index; see the head of this file. One per thread and batch.
pub struct Writer<'a, O> {
    index: &'a SkipIndex<O>,
    alone: bool,
    added: usize,
    state: Resident,
}

impl<O> std::fmt::Debug for Writer<'_, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("alone", &self.alone)
            .field("added", &self.added)
            .finish_non_exhaustive()
    }
}

impl<'a, O: IndexOrder> Writer<'a, O> {
    pub(crate) fn alone(index: &'a SkipIndex<O>) -> Option<Self> {
        index
            .writers
            .compare_exchange(0, ALONE, Memory::Acquire, Memory::Relaxed)
            .ok()?;
        // SAFETY: `writers` is `ALONE` by our exchange: nobody else touches `resident` until we drop.
        let state = unsafe { index.resident.get() };
        Some(Writer {
            index,
            alone: true,
            added: 0,
            state,
        })
    }

    pub(crate) fn shared(index: &'a SkipIndex<O>) -> Self {
        let enter = |n: usize| (n != ALONE).then(|| n + 1);
        while index
            .writers
            .fetch_update(Memory::Acquire, Memory::Relaxed, enter)
            .is_err()
        {
            sync::spin_loop();
            sync::yield_now();
        }
        let state = Resident {
            splice: Splice::new(index.head),
            random: sync::writer_seed(),
        };
        Writer {
            index,
            alone: false,
            added: 0,
            state,
        }
    }

    /// A height of `h` with probability 3/4 * 4^(1-h).
    #[inline]
    fn random_height(&mut self) -> usize {
        let mut x = self.state.random;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.state.random = x;
        // The high half of a product spreads the weak low bits; two bits a level.
        let bits = x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        1 + (bits.trailing_zeros() as usize / 2).min(HEIGHT_MAX - 1)
    }

    /// Lays out an entry in the arena. Panics when key or value is 4 GiB or longer.
    #[inline]
    pub fn reserve(&mut self, key_len: usize, value_len: usize) -> Entry<'a> {
        let entry = self.lay_out(key_len, value_len);
        // SAFETY: the node was just laid out, and lives.
        let (start, _, _) = unsafe { node::parts(entry.node) };
        // SAFETY: key and value lie there, and are ours alone. Safe code must not see uninitialised bytes.
        unsafe { start.write_bytes(0, key_len + value_len) };
        entry
    }

    #[inline]
    fn lay_out(&mut self, key_len: usize, value_len: usize) -> Entry<'a> {
        let height = self.random_height();
        let node = node::allocate(&self.index.arena, height, key_len, value_len);
        Entry {
            node,
            height,
            arena: &self.index.arena,
        }
    }

    /// Adds the entry whose key and value are the concatenations of these parts; false when an equal key is
    /// inside already. The cheapest way in: the bytes are copied once, into the arena.
    #[inline]
    pub fn add_parts(&mut self, key: &[&[u8]], value: &[&[u8]]) -> bool {
        let len = |parts: &[&[u8]]| parts.iter().map(|p| p.len()).sum();
        let (key_len, value_len) = (len(key), len(value));
        let entry = self.lay_out(key_len, value_len);
        // SAFETY: the node was just laid out, and lives.
        let mut to = unsafe { node::parts(entry.node) }.0;
        for part in key.iter().chain(value) {
            // SAFETY: the parts' lengths sum up to the room that was laid out, which is ours alone.
            unsafe {
                to.copy_from_nonoverlapping(std::ptr::NonNull::from_ref(*part).cast(), part.len())
            };
            // SAFETY: as above.
            to = unsafe { to.add(part.len()) };
        }
        self.link_entry(entry)
    }

    /// Adds an entry; false when an equal key is inside already.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.add_parts(&[key], &[value])
    }

    /// Adds an entry under an internal key: `user` and the eight bytes of `trailer`, little-endian.
    #[inline]
    pub fn add_internal(&mut self, user: &[u8], trailer: u64, value: &[u8]) -> bool {
        self.add_parts(&[user, &trailer.to_le_bytes()], &[value])
    }

    /// Links a filled entry; false when an equal key is inside already (the entry's bytes stay unused).
    ///
    /// Panics when the entry is of an index with another arena.
    #[inline]
    pub fn insert(&mut self, entry: Entry<'a>) -> bool {
        // The node would outlive its memory otherwise.
        assert!(
            std::ptr::eq(entry.arena, &raw const *self.index.arena),
            "an entry of another index"
        );
        self.link_entry(entry)
    }

    fn link_entry(&mut self, entry: Entry<'a>) -> bool {
        let (node, height) = (entry.node, entry.height);
        // SAFETY: the entry is filled and not linked: we alone have it.
        let key: &[u8] = unsafe { node::key(node) };
        let prefix = self.index.order.prefix(key);
        // SAFETY: as above.
        unsafe { node::set_prefix(node, prefix) };
        let levels = self.raise(height);
        self.find_place(prefix, key, levels);
        if let Some(n) = self.state.splice.next[0]
            && self.index.compare_node(n, prefix, key) == Ordering::Equal
        {
            return false;
        }
        for level in 0..height {
            if !self.link_level(node, level, prefix, key) {
                return false;
            }
        }
        self.added += 1;
        true
    }

    /// Makes the index at least `height` levels high; the levels it has.
    fn raise(&self, height: usize) -> usize {
        let have = self.index.height.load(Memory::Relaxed);
        if height <= have {
            return have;
        }
        // A reader that sees the new height early finds the head's null links: nothing is lost.
        self.index
            .height
            .fetch_max(height, Memory::Relaxed)
            .max(height)
    }

    /// Fills the splice for `key`: from what is remembered when that fits, else from the head.
    fn find_place(&mut self, prefix: u64, key: &[u8], levels: usize) {
        let index = self.index;
        let splice = &mut self.state.splice;
        if splice.height == levels {
            let after = splice.prev[0] == index.head
                || index.compare_node(splice.prev[0], prefix, key) == Ordering::Less;
            let fits = after
                && splice.next[0]
                    .is_none_or(|n| index.compare_node(n, prefix, key) != Ordering::Less);
            if fits {
                // Others may have linked nodes in here: level 0 decides what is equal, so it is walked now.
                let (prev, next) = walk(index, splice.prev[0], None, 0, prefix, key);
                (splice.prev[0], splice.next[0]) = (prev, next);
                return;
            }
        }
        let mut at = index.head;
        let mut stop = None;
        for level in (0..levels).rev() {
            let (prev, next) = walk(index, at, stop, level, prefix, key);
            (splice.prev[level], splice.next[level]) = (prev, next);
            (at, stop) = (prev, next);
        }
        splice.height = levels;
    }

    /// Links `node` at `level`; false when an equal key was found at level 0.
    #[inline]
    fn link_level(&mut self, node: NodePtr, level: usize, prefix: u64, key: &[u8]) -> bool {
        let splice = &mut self.state.splice;
        loop {
            let (prev, next) = (splice.prev[level], splice.next[level]);
            let next_ptr = next.map_or(null_mut::<Node>(), NodePtr::as_ptr);
            // SAFETY: the node has this level, and its links are ours until the store below shows them.
            unsafe { node::link(node, level) }.store(next_ptr, Memory::Relaxed);
            if level == 0 {
                // SAFETY: the node lives. The hint is set before the node can be reached.
                unsafe { node::back(node) }.store(prev.as_ptr(), Memory::Relaxed);
            }
            // SAFETY: a splice's node was reached at its level, so it has that link.
            let link = unsafe { node::link(prev, level) };
            let linked = if self.alone && link.load(Memory::Relaxed) == next_ptr {
                link.store(node.as_ptr(), Memory::Release);
                true
            } else {
                !self.alone
                    && link
                        .compare_exchange(next_ptr, node.as_ptr(), Memory::Release, Memory::Relaxed)
                        .is_ok()
            };
            if linked {
                if let (0, Some(next)) = (level, next) {
                    // SAFETY: a splice's node lives. Release: who follows the hint sees the node's bytes.
                    unsafe { node::back(next) }.store(node.as_ptr(), Memory::Release);
                }
                splice.prev[level] = node;
                return true;
            }
            // Somebody came in between.
            let (prev, next) = walk(self.index, prev, None, level, prefix, key);
            (splice.prev[level], splice.next[level]) = (prev, next);
            if level == 0
                && next.is_some_and(|n| self.index.compare_node(n, prefix, key) == Ordering::Equal)
            {
                return false;
            }
        }
    }
}

/// Forward from `at`, which is before `key`, at `level`: the last node before `key`, and its successor. `stop` is
/// known not to be before `key`.
#[inline(always)]
fn walk<O: IndexOrder>(
    index: &SkipIndex<O>,
    mut at: NodePtr,
    stop: Option<NodePtr>,
    level: usize,
    prefix: u64,
    key: &[u8],
) -> (NodePtr, Option<NodePtr>) {
    loop {
        // SAFETY: `at` is the head, or was reached at `level` or above.
        let n = unsafe { node::next(at, level) };
        if level > 0 {
            // SAFETY: as above, and there is a level below.
            node::prefetch(unsafe { node::link(at, level - 1) }.load(Memory::Relaxed));
        }
        match n {
            Some(m) if n != stop && index.compare_node(m, prefix, key) == Ordering::Less => at = m,
            _ => return (at, n),
        }
    }
}

impl<O> Drop for Writer<'_, O> {
    fn drop(&mut self) {
        self.index.len.fetch_add(self.added, Memory::Relaxed);
        if self.alone {
            // SAFETY: `writers` is still `ALONE` by our exchange.
            unsafe { self.index.resident.set(self.state) };
            self.index.writers.store(0, Memory::Release);
        } else {
            self.index.writers.fetch_sub(1, Memory::Release);
        }
    }
}
