//! Where the entries of a data block are, and a piece of each key.
//!
//! A block stores keys as differences, so a search has to decode entries from a restart point on,
//! each on another cache line. A block that is sought again gets this table: eight bytes of each
//! user key after the prefix that all of them share, and the offset of each entry. A search is then
//! a binary search over integers that ends at the entry, and the entry before is found without
//! decoding an interval. It is kept beside the block in memory and is never written.
//!
//! Invariants: built only where keys are in byte order and each restart point is an entry. Offsets
//! are inside the entries, but an entry is checked again when it is decoded. Thread-safety:
//! immutable.

use super::Block;
use super::builder::common_prefix;
use super::entry::header;
use super::index::{lower_bound, piece};
use super::key_buffer::HEAD;
use crate::key::{TRAILER_LEN, user_key};
use esker_codec::prefetch;
use esker_status::seeded::{Bug, seeded};
use std::ops::Range;

/// Bytes of a common prefix that are kept; pieces begin there at the latest.
const PREFIX_MAX: usize = HEAD - 8;
/// Fewer entries are as quickly decoded.
const ENTRIES_MIN: usize = 4;
/// Keys that come to more than this in a block are left alone: building needs all of them at once.
const KEYS_MAX: usize = 1 << 20;
/// Bytes of the table for each entry.
pub(super) const BYTES_PER_ENTRY: usize = 12;

/// The entries of one block.
#[derive(Debug)]
pub(super) struct EntryTable {
    /// The pieces, then the offsets, two to a word: one allocation.
    words: Box<[u64]>,
    len: u32,
    prefix_len: u8,
    prefix: [u8; PREFIX_MAX],
}

/// The first bytes of a key, as far as the table knows them.
pub(super) struct Head {
    pub(super) bytes: [u8; HEAD],
    pub(super) len: usize,
}

impl EntryTable {
    /// The table of `block`; `None` where there is none to be had: too few entries, keys out of
    /// order, damage.
    pub(super) fn build(block: &Block) -> Option<EntryTable> {
        if block.separated {
            return None;
        }
        let (places, keys) = decode(block)?;
        if places.len() < ENTRIES_MIN || !restarts_are_entries(block, &places) {
            return None;
        }
        let user = |i: usize| user_key(&keys.bytes[keys.range(i)]);
        let first = user(0);
        let common = (1..places.len()).fold(first.len(), |common, i| {
            common_prefix(&first[..common], user(i))
        });
        let common = common.min(PREFIX_MAX);
        let mut words = Vec::with_capacity(places.len() + places.len().div_ceil(2));
        words.extend((0..places.len()).map(|i| piece(user(i), common)));
        if !words.is_sorted() {
            return None;
        }
        words.extend(places.chunks(2).map(|pair| {
            let high = pair.get(1).map_or(0, |at| u64::from(*at));
            high << 32 | u64::from(pair[0])
        }));
        let mut prefix = [0; PREFIX_MAX];
        prefix[..common].copy_from_slice(&first[..common]);
        Some(EntryTable {
            words: words.into_boxed_slice(),
            len: places.len() as u32,
            prefix_len: common as u8,
            prefix,
        })
    }

    /// Bytes of its allocation.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// Number of entries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Starts loading the middle of the table, where a search begins.
    pub(super) fn prefetch(&self) {
        prefetch(&self.words, self.len() / 2);
    }

    /// How often a search compares pieces of keys.
    #[inline]
    pub(super) fn search_depth(&self) -> u32 {
        u32::BITS - self.len.leading_zeros()
    }

    /// Where entry `i` starts.
    #[inline]
    pub(super) fn place(&self, i: usize) -> u32 {
        let word = self.words[self.len() + i / 2];
        (word >> (32 * (i & 1))) as u32
    }

    /// The entry that starts at `at`.
    pub(super) fn at(&self, at: u32) -> Option<usize> {
        let (mut lo, mut hi) = (0, self.len());
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            if self.place(mid) < at {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        (lo < self.len() && self.place(lo) == at).then_some(lo)
    }

    /// Returns whether entry `i` and the one before it are there and have user keys that differ in
    /// their pieces.
    #[inline]
    pub(super) fn differs_from_previous(&self, i: usize) -> bool {
        let pieces = &self.words[..self.len()];
        let is_inside = i > 0 && i < pieces.len();
        is_inside && (pieces[i] != pieces[i - 1] || seeded(Bug::VersionTakenForKey))
    }

    #[inline]
    fn prefix(&self) -> &[u8] {
        &self.prefix[..usize::from(self.prefix_len)]
    }

    /// The entries that only a full comparison can order against the user key `wanted`: those
    /// before are smaller, those behind are larger.
    #[inline]
    pub(super) fn narrow(&self, wanted: &[u8]) -> Range<usize> {
        let prefix = self.prefix();
        let head = &wanted[..wanted.len().min(prefix.len())];
        match head.cmp(prefix) {
            std::cmp::Ordering::Less => return 0..0,
            std::cmp::Ordering::Greater => return self.len()..self.len(),
            std::cmp::Ordering::Equal => {}
        }
        let wanted = piece(wanted, prefix.len());
        let pieces = &self.words[..self.len()];
        let lo = lower_bound(pieces, wanted);
        let mut hi = lo;
        while hi < pieces.len() && pieces[hi] == wanted {
            hi += 1;
        }
        if seeded(Bug::EntryTableSkips) {
            return hi..hi;
        }
        lo..hi
    }

    /// Puts the first bytes of the user key of entry `i` into `key`, and returns how many are
    /// known, if the key is so long.
    #[inline(always)]
    pub(super) fn begin_key(&self, i: usize, key: &mut [u8]) -> usize {
        let prefix = usize::from(self.prefix_len);
        if let Some(head) = key.first_chunk_mut() {
            *head = self.prefix;
        }
        if let Some(piece) = key.get_mut(prefix..).and_then(<[u8]>::first_chunk_mut) {
            *piece = self.words[i].to_be_bytes();
        }
        prefix + 8
    }

    /// The first bytes of the key of entry `i`, if they are known as far as the entry shares them
    /// with the key before it.
    #[inline]
    pub(super) fn head(&self, entries: &[u8], i: usize) -> Option<Head> {
        let h = header(entries, self.place(i) as usize)?;
        let user_len = (h.shared as usize + h.unshared as usize).checked_sub(TRAILER_LEN)?;
        let prefix = usize::from(self.prefix_len);
        if h.shared as usize > user_len.min(prefix + 8) {
            return None;
        }
        let mut bytes = [0; HEAD];
        let len = self.begin_key(i, &mut bytes);
        Some(Head { bytes, len })
    }
}

/// The keys of a block, end to end.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn range(&self, i: usize) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        start..self.ends[i]
    }
}

/// The offsets and the internal keys of all entries.
fn decode(block: &Block) -> Option<(Vec<u32>, Keys)> {
    let entries = &block.data[..block.entries_end as usize];
    let guess = entries.len() / 64;
    let (mut places, mut keys) = (Vec::with_capacity(guess), Keys::default());
    let (mut at, mut previous) = (0, 0..0);
    while at < entries.len() {
        let h = header(entries, at)?;
        let key_end = h.key_at + h.unshared as usize;
        let end = key_end.checked_add(h.value_len as usize)?;
        let shared = h.shared as usize;
        if end > entries.len() || shared > previous.len() || keys.bytes.len() > KEYS_MAX {
            return None;
        }
        let start = keys.bytes.len();
        keys.bytes
            .extend_from_within(previous.start..previous.start + shared);
        keys.bytes.extend_from_slice(&entries[h.key_at..key_end]);
        previous = start..keys.bytes.len();
        if previous.len() < TRAILER_LEN {
            return None;
        }
        keys.ends.push(previous.end);
        places.push(at as u32);
        at = end;
    }
    Some((places, keys))
}

/// Returns whether every restart point is the start of an entry.
fn restarts_are_entries(block: &Block, places: &[u32]) -> bool {
    (0..block.num_restarts).all(|i| places.binary_search(&block.restart(i)).is_ok())
}
