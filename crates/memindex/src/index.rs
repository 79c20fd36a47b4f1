//! The tree: searches.
//!
//! A B-link tree (Lehman and Yao, 1981) in memory. A search goes down by the children and, where a
//! node was split since its parent was told, on to the right: a key that is beyond all that a node
//! has is compared with the low of the next. Readers never wait and never write; where slots
//! were given up meanwhile, a node is read again. `node.rs` has the invariants.
//!
//! Why not a skiplist: it was one. A search of a skiplist follows pointers to entries that lie
//! anywhere in the arena, each a line that is not in the cache; here the first bytes of fourteen
//! keys lie side by side, and only the leaf is likely to be missed. Entries are touched where eight
//! bytes do not decide.
//!
//! Thread-safety: any number of readers and writers at any time.

use crate::arena::{Arena, ArenaOptions};
use crate::entry::{self, EntryPtr};
use crate::node::{self, Node, NodeGuard, NodeView, SearchKey, Slot};
use crate::order::IndexOrder;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering as Memory};
use esker_sync::CachePadded;
use std::cmp::Ordering;
use std::ptr::NonNull;

/// The part of a block of entries that a block of nodes takes.
const NODE_SHARE: usize = 16;
const NODE_BLOCK_MIN: usize = 8 << 10;
const NODE_BLOCK_MAX: usize = 128 << 10;

/// A concurrent ordered index of byte keys and values; see the head of this file.
pub struct TreeIndex<O> {
    pub(crate) order: O,
    entries: Arena,
    /// Apart from the entries, so that they lie close together.
    nodes: Arena,
    /// The leftmost node of the highest level.
    root: AtomicPtr<Node>,
    /// The last leaf, or one that was: keys that come in order go there without a search.
    last_leaf: AtomicPtr<Node>,
    len: CachePadded<AtomicUsize>,
}

// SAFETY: the pointers lead into the arenas, which the index keeps alive; nodes and entries may be
// reached from any thread.
unsafe impl<O: Send> Send for TreeIndex<O> {}
// SAFETY: what changes in nodes is atomic, and entries do not change once they can be reached.
unsafe impl<O: Sync> Sync for TreeIndex<O> {}

impl<O> std::fmt::Debug for TreeIndex<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeIndex")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Where an entry is: its leaf, and its rank by a look at it.
#[derive(Clone, Copy)]
pub(crate) struct EntryPosition<'a> {
    pub(crate) leaf: &'a Node,
    pub(crate) look: NodeView,
    pub(crate) rank: usize,
    pub(crate) entry: EntryPtr,
}

impl<O> TreeIndex<O> {
    /// Entries inside.
    pub fn len(&self) -> usize {
        self.len.load(Memory::Relaxed)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The order.
    pub fn order(&self) -> &O {
        &self.order
    }

    /// Bytes taken from the system.
    #[inline]
    pub fn memory_usage(&self) -> usize {
        self.entries.memory_usage() + self.nodes.memory_usage()
    }

    /// Bytes of entries, or lost at the ends of their blocks, without the nodes of the tree.
    #[inline]
    pub fn entry_bytes(&self) -> usize {
        self.entries.used()
    }

    fn node_at(&self, at: &AtomicPtr<Node>) -> &Node {
        // SAFETY: the index points to nodes of its own from the beginning.
        unsafe { at.load(Memory::Acquire).as_ref() }.expect("an index has a root")
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<EntryPosition<'_>> {
        let mut node = self.node_at(&self.root);
        while node.level() > 0 {
            // Slot and rank 0 of the leftmost node of a level stay what they are.
            node = node
                .child_at(node.look(), 0)
                .expect("an inner node has a child");
        }
        loop {
            let look = node.look();
            if look.ranks.count() == 0 {
                return None;
            }
            let entry = node.entry_at(look, 0);
            if node.holds(look) {
                return place(node, look, 0, entry);
            }
        }
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<EntryPosition<'_>> {
        let mut node = self.node_at(&self.root);
        loop {
            let look = node.look();
            let (next, last) = (node.next(), look.ranks.count().checked_sub(1));
            match (next, last, node.level()) {
                (Some(next), ..) => node = next,
                (None, None, _) => return None,
                (None, Some(rank), 0) => {
                    let entry = node.entry_at(look, rank);
                    if node.holds(look) {
                        return place(node, look, rank, entry);
                    }
                }
                (None, Some(rank), _) => {
                    let child = node.child_at(look, rank);
                    if node.holds(look) {
                        node = child.expect("a slot of an inner node has a child");
                    }
                }
            }
        }
    }

    /// Key and value of an entry that was shown.
    #[inline(always)]
    pub(crate) fn entry(&self, entry: EntryPtr) -> (&[u8], &[u8]) {
        // SAFETY: an entry that was shown is no longer written, and lives as long as the index.
        unsafe { entry::parts(entry) }
    }
}

#[inline(always)]
fn place(
    leaf: &Node,
    look: NodeView,
    rank: usize,
    entry: *mut entry::Entry,
) -> Option<EntryPosition<'_>> {
    let entry = NonNull::new(entry)?;
    Some(EntryPosition {
        leaf,
        look,
        rank,
        entry,
    })
}

/// The first entry of a leaf that has a left neighbour.
#[inline(always)]
fn lowest(leaf: &Node) -> EntryPosition<'_> {
    EntryPosition {
        leaf,
        look: leaf.look(),
        rank: 0,
        entry: leaf.low().1,
    }
}

impl<O: IndexOrder> TreeIndex<O> {
    /// An empty index, whose memory is taken as `options` say.
    pub fn new(order: O, options: ArenaOptions) -> Self {
        let nodes = Arena::new(ArenaOptions {
            block_size: (options.block_size / NODE_SHARE).clamp(NODE_BLOCK_MIN, NODE_BLOCK_MAX),
            huge_pages: None,
        });
        let root = new_node(&nodes, 0).as_ptr();
        TreeIndex {
            order,
            entries: Arena::new(options),
            root: AtomicPtr::new(root),
            last_leaf: AtomicPtr::new(root),
            nodes,
            len: CachePadded::new(AtomicUsize::new(0)),
        }
    }

    /// The first entry at or after `key`.
    #[inline]
    pub fn first_at_or_after(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        self.at_or_after(key).map(|p| self.entry(p.entry))
    }

    /// Returns whether `key` is inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.first_at_or_after(key)
            .is_some_and(|(k, _)| self.order.compare(k, key) == Ordering::Equal)
    }

    #[inline(always)]
    pub(crate) fn sought<'k>(&self, key: &'k [u8]) -> SearchKey<'k> {
        SearchKey {
            prefix: self.order.prefix(key),
            key,
        }
    }

    /// Returns the node to the right if `sought`, which is beyond all that a node has, belongs to
    /// the nodes on its right: the next of them.
    #[inline(always)]
    fn beyond<'n>(&self, node: &'n Node, sought: SearchKey<'_>) -> Option<&'n Node> {
        node.next()
            .filter(|next| next.begins_at_or_before(&self.order, sought))
    }

    /// The node of `level` to which `sought` belongs, or one on its left.
    #[inline(always)]
    fn descend(&self, level: u32, sought: SearchKey<'_>) -> &Node {
        let mut node = self.node_at(&self.root);
        while node.level() > level {
            let look = node.look();
            let rank = node.child_rank(&self.order, look, sought);
            if rank + 1 == look.ranks.count()
                && let Some(next) = self.beyond(node, sought)
            {
                node = next;
                continue;
            }
            let child = node.child_at(look, rank);
            if node.holds(look) {
                node = child.expect("a slot of an inner node has a child");
                node.prefetch();
            }
        }
        node
    }

    /// The first entry at or after `key`.
    #[inline]
    pub(crate) fn at_or_after(&self, key: &[u8]) -> Option<EntryPosition<'_>> {
        let sought = self.sought(key);
        let mut leaf = self.descend(0, sought);
        loop {
            let look = leaf.look();
            let rank = leaf.before(&self.order, look, sought);
            if rank < look.ranks.count() {
                let entry = leaf.entry_at(look, rank);
                if leaf.holds(look) {
                    return place(leaf, look, rank, entry);
                }
                continue;
            }
            let next = leaf.next();
            if !leaf.holds(look) {
                continue;
            }
            let next = next?;
            if next.begins_at_or_before(&self.order, sought) {
                leaf = next;
                continue;
            }
            return Some(lowest(next));
        }
    }

    /// The last entry at or before `key`.
    #[inline]
    pub(crate) fn at_or_before(&self, key: &[u8]) -> Option<EntryPosition<'_>> {
        let sought = self.sought(key);
        let mut leaf = self.descend(0, sought);
        loop {
            let look = leaf.look();
            let rank = leaf.up_to(&self.order, look, sought);
            if rank == look.ranks.count()
                && let Some(next) = self.beyond(leaf, sought)
            {
                leaf = next;
                continue;
            }
            // Nothing at or before it in a leaf to which it belongs: that is the first leaf.
            let found = rank.checked_sub(1).map(|r| (r, leaf.entry_at(look, r)));
            if leaf.holds(look) {
                let (rank, entry) = found?;
                return place(leaf, look, rank, entry);
            }
        }
    }

    /// Where an entry is now. It may have moved to the right since `place` was found.
    #[inline(always)]
    fn again<'n>(&'n self, place: EntryPosition<'n>) -> EntryPosition<'n> {
        let mut leaf = place.leaf;
        loop {
            let look = leaf.look();
            if look == place.look && std::ptr::eq(leaf, place.leaf) {
                return place;
            }
            let rank = leaf.rank_of(look, place.entry);
            if !leaf.holds(look) {
                continue;
            }
            if let Some(rank) = rank {
                return EntryPosition {
                    leaf,
                    look,
                    rank,
                    ..place
                };
            }
            leaf = leaf.next().expect("an entry goes to the right only");
        }
    }

    /// The entry after another.
    #[inline]
    pub(crate) fn after<'n>(&'n self, at: EntryPosition<'n>) -> Option<EntryPosition<'n>> {
        let mut at = at;
        loop {
            at = self.again(at);
            let rank = at.rank + 1;
            if rank < at.look.ranks.count() {
                let entry = at.leaf.entry_at(at.look, rank);
                at.leaf.prefetch_ahead(at.look, rank, at.entry);
                if at.leaf.holds(at.look) {
                    return place(at.leaf, at.look, rank, entry);
                }
                continue;
            }
            let next = at.leaf.next();
            if !at.leaf.holds(at.look) {
                continue;
            }
            let next = next?;
            let key = self.entry(at.entry).0;
            if !next.begins_at_or_before(&self.order, self.sought(key)) {
                let lowest = lowest(next);
                next.prefetch_ahead(lowest.look, 0, at.entry);
                return Some(lowest);
            }
            // The leaf is being split: the entry has a place there, and is about to lose this one.
            at.leaf = next;
        }
    }

    /// The entry before another.
    #[inline]
    pub(crate) fn before<'n>(&'n self, at: EntryPosition<'n>) -> Option<EntryPosition<'n>> {
        loop {
            let at = self.again(at);
            if let Some(rank) = at.rank.checked_sub(1) {
                let entry = at.leaf.entry_at(at.look, rank);
                at.leaf.prefetch_behind(at.look, rank, at.entry);
                if at.leaf.holds(at.look) {
                    return place(at.leaf, at.look, rank, entry);
                }
                continue;
            }
            let mut left = at.leaf.back()?;
            let sought = self.sought(self.entry(at.entry).0);
            loop {
                let look = left.look();
                let next = left
                    .next()
                    .expect("a leaf on the left leads to those on its right");
                if !std::ptr::eq(next, at.leaf) {
                    left = next;
                    continue;
                }
                // Not the last of its ranks: while it is being split it shows what it is about to
                // lose, too.
                let rank = left.before(&self.order, look, sought);
                let before = rank.checked_sub(1).map(|r| (r, left.entry_at(look, r)));
                if left.holds(look) {
                    let (rank, entry) = before?;
                    left.prefetch_behind(look, rank, at.entry);
                    return place(left, look, rank, entry);
                }
            }
        }
    }

    /// About how many entries come before `key`, as far as the numbers of children tell.
    pub fn approximate_rank(&self, key: &[u8]) -> usize {
        let sought = self.sought(key);
        let (mut before, mut share) = (0.0, 1.0);
        let mut node = self.node_at(&self.root);
        loop {
            let look = node.look();
            let count = look.ranks.count();
            if node.level() == 0 {
                let rank = node.before(&self.order, look, sought);
                before += share * rank as f64 / count.max(1) as f64;
                return (before * self.len() as f64) as usize;
            }
            let rank = node.child_rank(&self.order, look, sought);
            let weights: Vec<f64> = (0..count)
                .map(|r| {
                    let child = node.child_at(look, r);
                    child.map_or(0.0, |c| c.look().ranks.count() as f64)
                })
                .collect();
            let sum = weights.iter().sum::<f64>().max(1.0);
            let child = node.child_at(look, rank);
            if !node.holds(look) {
                continue;
            }
            before += share * weights[..rank].iter().sum::<f64>() / sum;
            share *= weights[rank] / sum;
            node = child.expect("a slot of an inner node has a child");
        }
    }
}

fn new_node(nodes: &Arena, level: u32) -> &Node {
    let room = nodes.allocate(node::bytes(level));
    // SAFETY: the room is ours alone, of that size; pieces of this arena are multiples of 64, and
    // so are their places.
    unsafe { node::lay_out(room, level) }
}

/// Adding.
impl<O: IndexOrder> TreeIndex<O> {
    /// Adds an entry; false when an equal key is inside already (the bytes it took stay unused).
    #[inline]
    pub fn add(&self, key: &[u8], value: &[u8]) -> bool {
        self.add_parts(&[key], &[value])
    }

    /// Adds an entry under an internal key: `user` and the eight bytes of `trailer`, little-endian.
    #[inline]
    pub fn add_internal(&self, user: &[u8], trailer: u64, value: &[u8]) -> bool {
        self.add_parts(&[user, &trailer.to_le_bytes()], &[value])
    }

    /// Adds the entry whose key and value are the concatenations of these parts, which are copied
    /// once.
    #[inline]
    pub fn add_parts(&self, key: &[&[u8]], value: &[&[u8]]) -> bool {
        let entry = entry::write(&self.entries, key, value);
        // SAFETY: the entry was just written, and lives as long as the index.
        let sought = self.sought(unsafe { entry::key(entry) });
        let slot = Slot {
            prefix: sought.prefix,
            entry: entry.as_ptr(),
            child: std::ptr::null_mut(),
        };
        let added = self.insert(self.leaf_for(sought), sought, slot);
        if added {
            // In one order with what callers read afterwards: a thread that counts and then
            // searches finds the entry, or the caller finds what that thread wrote before.
            self.len.fetch_add(1, Memory::SeqCst);
        }
        added
    }

    /// A leaf to which `sought` belongs, or one on its left: the last one for keys that come in
    /// order.
    #[inline(always)]
    fn leaf_for(&self, sought: SearchKey<'_>) -> &Node {
        let last = self.node_at(&self.last_leaf);
        let look = last.look();
        if let Some(rank) = look.ranks.count().checked_sub(1)
            && last.prefix_at(look, rank) < sought.prefix
            && last.holds(look)
        {
            return last;
        }
        self.descend(0, sought)
    }

    /// Adds a slot to `node`, to which it belongs, or to one on its right; false when an equal key
    /// is inside.
    #[inline(always)]
    fn insert(&self, node: &Node, sought: SearchKey<'_>, slot: Slot) -> bool {
        let mut locked = NodeGuard::new(node);
        let rank = loop {
            let look = locked.look();
            let rank = match locked.node.level() {
                0 => locked.node.before(&self.order, look, sought),
                _ => locked.node.child_rank(&self.order, look, sought) + 1,
            };
            if rank < look.ranks.count() {
                break rank;
            }
            let Some(next) = self.beyond(locked.node, sought) else {
                break rank;
            };
            drop(locked);
            locked = NodeGuard::new(next);
        };
        if locked.node.level() == 0 && self.has_equal(&locked, rank, sought) {
            return false;
        }
        if !locked.is_full() {
            locked.insert(rank, slot);
            return true;
        }
        self.split(locked, rank, slot);
        true
    }

    /// Returns whether the entry at `rank` of a leaf is `sought`'s equal. Behind the last rank
    /// there is none: the low of the next leaf was found to be above.
    #[inline(always)]
    fn has_equal(&self, leaf: &NodeGuard<'_>, rank: usize, sought: SearchKey<'_>) -> bool {
        let (look, node) = (leaf.look(), leaf.node);
        if rank == look.ranks.count() || node.prefix_at(look, rank) != sought.prefix {
            return false;
        }
        let entry = NonNull::new(node.entry_at(look, rank));
        entry.is_some_and(|e| self.order.compare(self.entry(e).0, sought.key) == Ordering::Equal)
    }

    /// Splits a full node and adds the slot to one of the halves.
    #[cold]
    fn split(&self, locked: NodeGuard<'_>, rank: usize, slot: Slot) {
        let level = locked.node.level();
        let right = new_node(&self.nodes, level);
        let is_last = locked.node.next().is_none();
        let count = locked.look().ranks.count();
        if rank == count && is_last {
            // Keys in order: the left one stays full.
            locked.split(count, Some(slot), right);
        } else {
            let keep = count.div_ceil(2);
            if rank <= keep {
                // At `keep`, too: what is split off begins with an entry that was here before.
                locked.split(keep, None, right);
                locked.insert(rank, slot);
            } else {
                let right_first = NodeGuard::new(right);
                locked.split(keep, None, right);
                right_first.insert(rank - keep, slot);
            }
        }
        if is_last && level == 0 {
            self.last_leaf.store(right.as_ptr(), Memory::Release);
        }
        drop(locked);
        self.tell_parent(level + 1, right);
    }

    /// Makes `child`, which was split off on the level below, known on `level`. Until then it is
    /// found through its neighbour.
    fn tell_parent(&self, level: u32, child: &Node) {
        let (prefix, entry) = child.low();
        let slot = Slot {
            prefix,
            entry: entry.as_ptr(),
            child: child.as_ptr(),
        };
        let sought = SearchKey {
            prefix,
            key: self.entry(entry).0,
        };
        loop {
            let root = self.node_at(&self.root);
            if root.level() >= level {
                self.insert(self.descend(level, sought), sought, slot);
                return;
            }
            let above = new_node(&self.nodes, level);
            let locked = NodeGuard::new(above);
            locked.insert(
                0,
                Slot {
                    prefix: 0,
                    entry: std::ptr::null_mut(),
                    child: root.as_ptr(),
                },
            );
            locked.insert(1, slot);
            drop(locked);
            let grown = self.root.compare_exchange(
                root.as_ptr(),
                above.as_ptr(),
                Memory::AcqRel,
                Memory::Acquire,
            );
            if grown.is_ok() {
                return;
            }
        }
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<TreeIndex<crate::BytewisePlain>>();
};
