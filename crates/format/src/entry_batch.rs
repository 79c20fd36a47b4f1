//! Entries of a block that a walk decodes together, a few at a time.
//!
//! A walk that goes entry by entry through merged runs asks several layers for each of them. Most
//! of the time the next entries of one run are plain values, one version of each key, with no other
//! run's entry between them: they are decoded in one loop, and shown from here.

use crate::ids::Seq;

/// A longer internal key is left to single steps.
pub(crate) const KEY_MAX: usize = 64;

/// Conditions on an entry of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits<'a> {
    /// Entries in the batch.
    pub most: usize,
    /// The newest write that the reader sees.
    pub snapshot: Seq,
    /// Going forward, user keys are below each of these; going backward, above.
    pub bounds: [Option<&'a [u8]>; 2],
}

/// Which way a batch went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// An entry of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecodedEntry {
    pub(crate) key_len: u32,
    /// Where its value stands in the block.
    pub(crate) value: (u32, u32),
}

/// Entries in the order of a walk. Their keys are here, their values in the block that the cursor
/// stands in.
#[derive(Debug, Default)]
pub struct EntryBatch {
    pub(crate) keys: Vec<[u8; KEY_MAX]>,
    pub(crate) entries: Vec<DecodedEntry>,
}

impl EntryBatch {
    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets all entries.
    #[inline]
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Each entry: its internal key, and its value in `block`, the bytes of the block.
    #[inline]
    pub fn iter<'a>(&'a self, block: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.keys.iter().zip(&self.entries).map(|(key, entry)| {
            let (from, to) = entry.value;
            (
                &key[..entry.key_len as usize],
                &block[from as usize..to as usize],
            )
        })
    }

    /// Entry number `n`, as [`EntryBatch::iter`] gives it.
    #[inline]
    pub fn get<'a>(&'a self, n: usize, block: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let entry = self.entries.get(n)?;
        let (from, to) = entry.value;
        let key = self.keys.get(n)?.get(..entry.key_len as usize)?;
        Some((key, block.get(from as usize..to as usize)?))
    }

    /// Room for `most` keys.
    #[inline]
    pub(crate) fn reserve(&mut self, most: usize) {
        if self.keys.len() < most {
            self.keys.resize(most, [0; KEY_MAX]);
        }
    }
}
