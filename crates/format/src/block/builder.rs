//! Writes a block: one reusable buffer, no allocation for a key.

use super::HASH_INDEX_BIT;
use super::entry::put_varint;
use super::hash_index::HashIndexBuilder;
use crate::key::user_key;

/// A buffer that has grown beyond this is given back.
const BUFFER_KEPT: usize = 4 << 20;
/// From this size on a value gets exactly the room that it needs.
const LARGE_VALUE: usize = 256 << 10;
/// Room for lengths before a value, and for the count of restart points and a trailer behind it.
const END_ROOM: usize = 64;

/// Builds blocks one after another.
///
/// Keys must be added in order. With `hash` the keys are internal keys.
#[derive(Debug)]
pub struct BlockBuilder {
    buf: Vec<u8>,
    restarts: Vec<u32>,
    interval: u32,
    since_restart: u32,
    last_key: Vec<u8>,
    share: bool,
    hash: Option<HashIndexBuilder>,
    num_entries: u64,
}

impl BlockBuilder {
    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.buf.capacity() + size_of::<u32>() * self.restarts.capacity()
    }

    /// A builder with a restart point every `interval` entries (at least 1).
    pub fn new(interval: u32) -> Self {
        BlockBuilder {
            buf: Vec::new(),
            restarts: vec![0],
            interval: interval.max(1),
            since_restart: 0,
            last_key: Vec::new(),
            share: true,
            hash: None,
            num_entries: 0,
        }
    }

    /// Stores full keys (`use_delta_encoding` = false).
    #[must_use]
    pub fn without_sharing(mut self) -> Self {
        self.share = false;
        self
    }

    /// Adds a hash index where the block's size allows it.
    #[must_use]
    pub fn with_hash_index(mut self, hash: HashIndexBuilder) -> Self {
        self.hash = Some(hash);
        self
    }

    /// Adds an entry.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = self.begin(key);
        let unshared = key.len() - shared;
        if (shared | unshared | value.len()) < 0x80 {
            self.buf
                .extend_from_slice(&[shared as u8, unshared as u8, value.len() as u8]);
        } else {
            put_varint(&mut self.buf, shared as u64);
            put_varint(&mut self.buf, unshared as u64);
            put_varint(&mut self.buf, value.len() as u64);
            if value.len() >= LARGE_VALUE && value.len() >= self.buf.len() {
                // Doubling later would take twice the value for the few bytes behind it.
                let rest = unshared + 4 * self.restarts.len() + END_ROOM;
                self.buf.reserve_exact(value.len() + rest);
            }
        }
        self.buf.extend_from_slice(&key[shared..]);
        self.buf.extend_from_slice(value);
    }

    /// Adds an entry of a delta-value block: `full` is stored when the key shares nothing with the
    /// one before it, `delta` otherwise.
    pub(super) fn add_delta(&mut self, key: &[u8], full: &[u8], delta: &[u8]) {
        let shared = self.begin(key);
        put_varint(&mut self.buf, shared as u64);
        put_varint(&mut self.buf, (key.len() - shared) as u64);
        self.buf.extend_from_slice(&key[shared..]);
        self.buf
            .extend_from_slice(if shared == 0 { full } else { delta });
    }

    /// Bookkeeping of restart points; the bytes that `key` shares with the last one.
    #[inline]
    fn begin(&mut self, key: &[u8]) -> usize {
        let mut shared = 0;
        if self.since_restart >= self.interval {
            self.restarts.push(self.buf.len() as u32);
            self.since_restart = 0;
        } else if self.share && self.since_restart > 0 {
            shared = common_prefix(&self.last_key, key);
        }
        self.since_restart += 1;
        self.num_entries += 1;
        if self.share {
            self.last_key.truncate(shared);
            self.last_key.extend_from_slice(&key[shared..]);
        }
        if let Some(hash) = &mut self.hash {
            hash.add(user_key(key), self.restarts.len() as u32 - 1);
        }
        shared
    }

    /// Bytes of the block if it were finished now, without a hash index.
    #[inline]
    pub fn size_estimate(&self) -> usize {
        self.buf.len() + 4 * self.restarts.len() + 4
    }

    /// The estimate after one more entry.
    pub fn size_estimate_after(&self, key: &[u8], value: &[u8]) -> usize {
        let hash = self.hash.as_ref().map_or(0, HashIndexBuilder::size);
        let restart = if self.since_restart >= self.interval {
            4
        } else {
            0
        };
        self.size_estimate() + hash + key.len() + value.len() + 4 + restart
    }

    /// Returns whether nothing was added.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.num_entries == 0
    }

    /// Entries added since the last reset.
    pub fn num_entries(&self) -> u64 {
        self.num_entries
    }

    /// Writes the tail and shows the whole block. Call [`BlockBuilder::reset`] before the next one.
    pub fn finish(&mut self) -> &[u8] {
        for r in &self.restarts {
            self.buf.extend_from_slice(&r.to_le_bytes());
        }
        let mut word = self.restarts.len() as u32;
        if let Some(hash) = self
            .hash
            .as_ref()
            .filter(|h| self.num_entries > 0 && h.usable(self.buf.len() + 4))
        {
            hash.finish(&mut self.buf);
            word |= HASH_INDEX_BIT;
        }
        self.buf.extend_from_slice(&word.to_le_bytes());
        &self.buf
    }

    /// Empties the builder, keeping its buffers unless a large value made them grow.
    pub fn reset(&mut self) {
        if self.buf.capacity() > BUFFER_KEPT {
            self.buf = Vec::new();
        }
        self.buf.clear();
        self.restarts.clear();
        self.restarts.push(0);
        self.since_restart = 0;
        self.last_key.clear();
        self.num_entries = 0;
        if let Some(hash) = &mut self.hash {
            hash.reset();
        }
    }
}

/// Length of the prefix that two keys have in common, eight bytes at a time.
#[inline]
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut n = 0;
    let (mut x, mut y) = (a.chunks_exact(8), b.chunks_exact(8));
    for (p, q) in (&mut x).zip(&mut y) {
        let p = u64::from_le_bytes(p.try_into().expect("chunks of eight"));
        let q = u64::from_le_bytes(q.try_into().expect("chunks of eight"));
        if p != q {
            return n + ((p ^ q).trailing_zeros() / 8) as usize;
        }
        n += 8;
    }
    n + a[n..]
        .iter()
        .zip(&b[n..])
        .take_while(|(p, q)| p == q)
        .count()
}
