//! The index of one family's records in a batch: a skip list of keys, each with its updates newest
//! first.
//!
//! Nodes are numbers, not pointers, and keys are read where they stand in the batch's bytes: an
//! insertion copies nothing. A node never moves and never goes before the index is cleared, so a
//! cursor that remembers a node and the index's generation needs no search to go on. Not shared:
//! the batch's lock guards it.
//!
//! In a family with timestamps the keys of records have room for one, which the index does not know
//! of: it holds, and is asked for, keys without timestamps.

use esker::{Error, KeyOrder, Result};

/// No node, or no update.
pub(super) const NONE: u32 = u32::MAX;
const HEIGHT_MAX: usize = 12;
/// One node in this many reaches the next level.
const BRANCHING: u64 = 4;

#[derive(Clone, Copy, Debug)]
struct Node {
    key_at: usize,
    key_len: usize,
    /// Where its links begin, one a level.
    tower: usize,
    newest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Update {
    /// Where the record begins in the batch's bytes.
    at: usize,
    older: u32,
}

/// Keys in order, each with the places of its records.
#[derive(Debug)]
pub(super) struct KeyIndex {
    pub(super) order: KeyOrder,
    nodes: Vec<Node>,
    /// The towers one after the other; the head's comes first.
    links: Vec<u32>,
    updates: Vec<Update>,
    height: usize,
    seed: u64,
}

impl KeyIndex {
    pub(super) fn new(order: KeyOrder) -> Self {
        KeyIndex {
            order,
            nodes: Vec::new(),
            links: vec![NONE; HEIGHT_MAX],
            updates: Vec::new(),
            height: 1,
            seed: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Forgets every key; memory is kept.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.links.clear();
        self.links.resize(HEIGHT_MAX, NONE);
        self.updates.clear();
        self.height = 1;
    }

    /// The key of a node.
    pub(super) fn key<'r>(&self, rep: &'r [u8], node: u32) -> &'r [u8] {
        let n = self.nodes[node as usize];
        &rep[n.key_at..n.key_at + n.key_len]
    }

    fn link(&self, node: u32, level: usize) -> u32 {
        let tower = match node {
            NONE => 0,
            n => self.nodes[n as usize].tower,
        };
        self.links[tower + level]
    }

    /// The first node.
    pub(super) fn first(&self) -> u32 {
        self.link(NONE, 0)
    }

    /// The node after `node`.
    pub(super) fn next(&self, node: u32) -> u32 {
        self.link(node, 0)
    }

    /// The last node whose key `goes_before` accepts; the nodes it passes on each level go to
    /// `path`.
    fn descend(
        &self,
        mut path: Option<&mut [u32; HEIGHT_MAX]>,
        goes_before: impl Fn(u32) -> bool,
    ) -> u32 {
        let mut at = NONE;
        for level in (0..self.height).rev() {
            loop {
                let next = self.link(at, level);
                if next == NONE || !goes_before(next) {
                    break;
                }
                at = next;
            }
            if let Some(path) = &mut path {
                path[level] = at;
            }
        }
        at
    }

    /// The last node.
    pub(super) fn last(&self) -> u32 {
        self.descend(None, |_| true)
    }

    /// The last node below `key`.
    pub(super) fn before(&self, rep: &[u8], key: &[u8]) -> u32 {
        self.descend(None, |n| {
            self.order.compare_bare(self.key(rep, n), key).is_lt()
        })
    }

    /// The last node at or below `key`.
    pub(super) fn at_or_before(&self, rep: &[u8], key: &[u8]) -> u32 {
        self.descend(None, |n| {
            self.order.compare_bare(self.key(rep, n), key).is_le()
        })
    }

    /// The first node at or above `key`.
    pub(super) fn at_or_after(&self, rep: &[u8], key: &[u8]) -> u32 {
        self.link(self.before(rep, key), 0)
    }

    /// The first node above `key`.
    pub(super) fn after(&self, rep: &[u8], key: &[u8]) -> u32 {
        self.link(self.at_or_before(rep, key), 0)
    }

    /// The node of `key`.
    pub(super) fn find(&self, rep: &[u8], key: &[u8]) -> u32 {
        match self.at_or_after(rep, key) {
            n if n != NONE && self.order.compare_bare(self.key(rep, n), key).is_eq() => n,
            _ => NONE,
        }
    }

    /// Where the records of a node's key begin, newest first.
    pub(super) fn updates(&self, node: u32) -> impl Iterator<Item = usize> + '_ {
        let mut at = self.nodes[node as usize].newest;
        std::iter::from_fn(move || {
            let update = self.updates.get(at as usize)?;
            at = update.older;
            Some(update.at)
        })
    }

    /// Adds the record at `at`, whose key is `rep[key_at..key_at + key_len]`. With `replaces` it
    /// takes the place of the key's newest record instead of coming before it.
    pub(super) fn add(
        &mut self,
        rep: &[u8],
        key_at: usize,
        key_len: usize,
        at: usize,
        replaces: bool,
    ) -> Result<()> {
        let mut path = [NONE; HEIGHT_MAX];
        let key = &rep[key_at..key_at + key_len];
        let below = self.descend(Some(&mut path), |n| {
            self.order.compare_bare(self.key(rep, n), key).is_lt()
        });
        let found = self.link(below, 0);
        if found != NONE && self.order.compare_bare(self.key(rep, found), key).is_eq() {
            let newest = self.nodes[found as usize].newest;
            if replaces {
                self.updates[newest as usize].at = at;
            } else {
                self.nodes[found as usize].newest = self.add_update(at, newest)?;
            }
            return Ok(());
        }
        let newest = self.add_update(at, NONE)?;
        self.insert(&path, key_at, key_len, newest)
    }

    fn add_update(&mut self, at: usize, older: u32) -> Result<u32> {
        let number = numbered(self.updates.len())?;
        self.updates.push(Update { at, older });
        Ok(number)
    }

    fn insert(
        &mut self,
        path: &[u32; HEIGHT_MAX],
        key_at: usize,
        key_len: usize,
        newest: u32,
    ) -> Result<()> {
        let node = numbered(self.nodes.len())?;
        let height = self.random_height();
        self.height = self.height.max(height);
        let tower = self.links.len();
        for (level, &before) in path.iter().enumerate().take(height) {
            let next = self.link(before, level);
            self.links.push(next);
        }
        self.nodes.push(Node {
            key_at,
            key_len,
            tower,
            newest,
        });
        for (level, &before) in path.iter().enumerate().take(height) {
            let of = match before {
                NONE => 0,
                n => self.nodes[n as usize].tower,
            };
            self.links[of + level] = node;
        }
        Ok(())
    }

    fn random_height(&mut self) -> usize {
        let mut height = 1;
        while height < HEIGHT_MAX {
            self.seed ^= self.seed << 13;
            self.seed ^= self.seed >> 7;
            self.seed ^= self.seed << 17;
            if !self.seed.is_multiple_of(BRANCHING) {
                break;
            }
            height += 1;
        }
        height
    }
}

fn numbered(n: usize) -> Result<u32> {
    u32::try_from(n)
        .ok()
        .filter(|n| *n != NONE)
        .ok_or_else(|| Error::invalid_argument("an indexed batch holds at most 2^32 - 2 records"))
}
