//! The hash index at the end of a data block: one byte for each bucket, naming a restart interval.

use super::Block;
use esker_codec::hash::hash32;

/// Blocks longer than this get no hash index.
pub const HASH_INDEX_MAX_BLOCK: usize = 1 << 16;
const SEED: u32 = 397;
const EMPTY: u8 = 255;
const COLLISION: u8 = 254;
const MAX_RESTART: u32 = 253;

/// Answer of the hash index about a user key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bucket {
    /// The key is not in this block.
    Empty,
    /// Unknown: search the block.
    Collision,
    /// If the key is in this block, then in the interval that starts at this restart point.
    Restart(u32),
}

impl Block {
    /// Looks a user key up in the hash index; `None` without one.
    #[inline]
    pub(super) fn bucket(&self, user_key: &[u8]) -> Option<Bucket> {
        let place = self.hash?;
        let slot = hash32(user_key, SEED) % u32::from(place.num);
        Some(match *self.data.get((place.buckets + slot) as usize)? {
            EMPTY => Bucket::Empty,
            COLLISION => Bucket::Collision,
            r if u32::from(r) < self.num_restarts => Bucket::Restart(u32::from(r)),
            _ => Bucket::Collision,
        })
    }
}

/// Collects the hashes of a block's user keys.
#[derive(Debug)]
pub struct HashIndexBuilder {
    entries: Vec<(u32, u8)>,
    util_ratio: f64,
    usable: bool,
}

impl HashIndexBuilder {
    /// `util_ratio` is keys per bucket (`data_block_hash_table_util_ratio`); 0 or less means 0.75.
    pub fn new(util_ratio: f64) -> Self {
        let util_ratio = if util_ratio > 0.0 { util_ratio } else { 0.75 };
        HashIndexBuilder {
            entries: Vec::new(),
            util_ratio,
            usable: true,
        }
    }

    /// Notes that `user_key` has an entry in the interval of `restart`.
    pub(super) fn add(&mut self, user_key: &[u8], restart: u32) {
        if restart > MAX_RESTART {
            self.usable = false;
            return;
        }
        self.entries.push((hash32(user_key, SEED), restart as u8));
    }

    fn num_buckets(&self) -> usize {
        let n = (self.entries.len() as f64 / self.util_ratio) as usize;
        n.max(1) | 1
    }

    /// Bytes the index would take.
    pub(super) fn size(&self) -> usize {
        self.num_buckets() + 2
    }

    /// Returns whether the block, `block_len` bytes long so far, may carry the index.
    pub(super) fn usable(&self, block_len: usize) -> bool {
        let n = self.num_buckets();
        self.usable && n <= usize::from(u16::MAX) && block_len + n + 2 <= HASH_INDEX_MAX_BLOCK
    }

    /// Appends buckets and their number.
    pub(super) fn finish(&self, out: &mut Vec<u8>) {
        let n = self.num_buckets();
        let base = out.len();
        out.resize(base + n, EMPTY);
        for &(hash, restart) in &self.entries {
            let slot = &mut out[base + hash as usize % n];
            if *slot == EMPTY {
                *slot = restart;
            } else if *slot != restart {
                *slot = COLLISION;
            }
        }
        out.extend_from_slice(&(n as u16).to_le_bytes());
    }

    /// Empties the collection.
    pub(super) fn reset(&mut self) {
        self.entries.clear();
        self.usable = true;
    }
}
