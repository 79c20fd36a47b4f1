//! Index blocks, decoded once into flat arrays.
//!
//! An index is searched for every read, so it is not kept as a block of delta-encoded entries:
//! keys, handles and an eight-byte big-endian piece of each key stand in arrays. The piece is taken
//! after the prefix that all keys share; in byte order the search is then a branch-light binary
//! search over integers, and full keys are compared only among equal pieces.
//!
//! The top level of a partitioned index and of a partitioned filter has the same form.

use super::BlockHandle;
use super::builder::{BlockBuilder, common_prefix};
use super::entry::{header, header_without_length, put_varint, put_varsigned, unzigzag, varint64};
use super::places::{BLOCK_TRAILER_LEN, Places};
use super::{Block, entry};
use crate::comparator::KeyOrder;
use crate::key::{TRAILER_LEN, user_key};
use esker_status::{Error, Result};

/// How the entries of an index block are written; table properties say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexForm {
    /// Keys are user keys, without trailers (`rocksdb.index.key.is.user.key`).
    pub user_keys: bool,
    /// Handles are delta encoded and values have no length
    /// (`rocksdb.index.value.is.delta.encoded`).
    pub delta_values: bool,
    /// Values end with the first internal key of the block (index type 3).
    pub first_keys: bool,
}

/// Byte strings end to end.
#[derive(Debug, Default)]
struct FlatKeys {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl FlatKeys {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
    }
    #[inline]
    fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }
    fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
    fn memory(&self, usable: impl Fn(usize) -> usize) -> usize {
        usable(self.bytes.capacity()) + usable(4 * self.ends.capacity())
    }
}

/// A decoded index block.
#[derive(Debug)]
pub struct IndexBlock {
    keys: FlatKeys,
    places: Places,
    first_keys: Option<FlatKeys>,
    /// Eight bytes of each user key after `common`; empty unless in byte order.
    pieces: Vec<u64>,
    /// How many leading bytes all user keys share.
    common: usize,
    user_keys: bool,
    order: KeyOrder,
    uniform: bool,
}

/// The eight bytes of `user` from `at` as a big-endian number, zeros where it ends.
#[inline]
pub(super) fn piece(user: &[u8], at: usize) -> u64 {
    match user.get(at..) {
        Some(rest) => match rest.first_chunk::<8>() {
            Some(b) => u64::from_be_bytes(*b),
            None => {
                let mut b = [0; 8];
                b[..rest.len()].copy_from_slice(rest);
                u64::from_be_bytes(b)
            }
        },
        None => 0,
    }
}

impl IndexBlock {
    /// Decodes `block`. Every handle must end, with its trailer, at or before `limit`; handles must
    /// be in file order without overlap and keys in `order`: an index that points in circles is
    /// refused here.
    pub fn parse(
        block: &Block,
        form: IndexForm,
        order: &KeyOrder,
        limit: u64,
    ) -> Result<IndexBlock> {
        if block.separated {
            return Err(Error::not_supported(
                "index block with separated keys and values",
            ));
        }
        let mut index = IndexBlock {
            keys: FlatKeys::default(),
            places: Places::default(),
            first_keys: form.first_keys.then(FlatKeys::default),
            pieces: Vec::new(),
            common: 0,
            user_keys: form.user_keys,
            order: order.clone(),
            uniform: block.uniform,
        };
        let entries = &block.data[..block.entries_end as usize];
        let mut key = Vec::new();
        let mut written_out = block.written_out();
        let mut at = 0;
        let mut previous = BlockHandle { offset: 0, size: 0 };
        while at < entries.len() {
            let bad = |why: &str| Error::corruption(format!("bad index entry at byte {at}: {why}"));
            let head = if form.delta_values {
                header_without_length(entries, at)
            } else {
                header(entries, at)
            };
            let h = head.ok_or_else(|| bad("header does not fit"))?;
            let (shared, key_end) = (h.shared as usize, h.key_at + h.unshared as usize);
            if shared > key.len() {
                return Err(bad("shares more than the key before it has"));
            }
            key.truncate(shared);
            key.extend_from_slice(&entries[h.key_at..key_end]);
            if !form.user_keys && key.len() < TRAILER_LEN {
                return Err(bad("key shorter than its trailer"));
            }
            let parsed = parse_value(entries, key_end, &h, form, previous);
            let (handle, first, end) = parsed.ok_or_else(|| bad("handle does not fit"))?;
            index.check(&key, handle, limit).map_err(bad)?;
            written_out.take(key.len())?;
            index.keys.push(&key);
            index.places.push(handle);
            if let Some(all) = &mut index.first_keys {
                all.push(first);
            }
            previous = handle;
            at = end;
        }
        index.build_pieces();
        index.shrink();
        Ok(index)
    }

    fn check(&self, key: &[u8], handle: BlockHandle, limit: u64) -> Result<(), &'static str> {
        let end = handle
            .offset
            .checked_add(handle.size)
            .and_then(|e| e.checked_add(BLOCK_TRAILER_LEN));
        if handle.size > u64::from(u32::MAX) || end.is_none_or(|e| e > limit) {
            return Err("handle outside the file");
        }
        let Some(last) = self.len().checked_sub(1) else {
            return Ok(());
        };
        let before = self.handle(last);
        if handle.offset < before.offset + before.size + BLOCK_TRAILER_LEN {
            return Err("blocks overlap or are out of order");
        }
        let ordered = if self.user_keys {
            self.order.compare(self.keys.get(last), key)
        } else {
            self.order.compare_internal(self.keys.get(last), key)
        };
        if ordered.is_gt() {
            return Err("keys out of order");
        }
        Ok(())
    }

    fn build_pieces(&mut self) {
        if !self.order.is_bytewise() || self.is_empty() {
            return;
        }
        let last = self.len() - 1;
        self.common = common_prefix(self.user(0), self.user(last));
        self.pieces = (0..self.len())
            .map(|i| piece(self.user(i), self.common))
            .collect();
    }

    /// Gives back what the arrays have grown beyond their need: an index stays as long as its table
    /// is open.
    fn shrink(&mut self) {
        self.keys.shrink();
        self.places.shrink();
        if let Some(first) = &mut self.first_keys {
            first.shrink();
        }
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len()
    }
    /// Returns whether the index is empty: the table has no data blocks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Key of entry `i`: a user key or an internal key, as [`IndexBlock::has_user_keys`] says.
    pub fn key(&self, i: usize) -> &[u8] {
        self.keys.get(i)
    }
    /// The user key in entry `i`.
    #[inline]
    pub fn user(&self, i: usize) -> &[u8] {
        let key = self.keys.get(i);
        if self.user_keys { key } else { user_key(key) }
    }
    /// Handle of entry `i`.
    #[inline]
    pub fn handle(&self, i: usize) -> BlockHandle {
        self.places.get(i)
    }
    /// First internal key of block `i`, in an index that holds them.
    #[inline]
    pub fn first_key(&self, i: usize) -> Option<&[u8]> {
        self.first_keys.as_ref().map(|k| k.get(i))
    }
    /// Returns whether keys are user keys.
    pub fn has_user_keys(&self) -> bool {
        self.user_keys
    }
    /// Returns whether the writer says that keys are uniformly spaced.
    pub fn is_uniform(&self) -> bool {
        self.uniform
    }
    /// Memory behind it; `usable` says what an allocation of a number of bytes takes.
    pub fn memory(&self, usable: impl Fn(usize) -> usize + Copy) -> usize {
        let first = self.first_keys.as_ref();
        let first = first.map_or(0, |keys| keys.memory(usable));
        let pieces = usable(8 * self.pieces.capacity());
        self.keys.memory(usable) + first + usable(self.places.memory()) + pieces
    }

    /// How often a search compares keys, or pieces of them, about.
    #[inline]
    pub fn search_depth(&self) -> u32 {
        usize::BITS - self.len().leading_zeros()
    }

    /// The first entry whose key is at or after the internal key `target`; `len()` when there is
    /// none.
    #[inline]
    pub fn seek(&self, target: &[u8]) -> usize {
        let wanted = user_key(target);
        let (lo, hi) = if self.pieces.is_empty() {
            (0, self.len())
        } else {
            self.narrow(wanted)
        };
        self.seek_within(lo, hi, target, wanted)
    }

    /// The range of entries that only a full comparison can order against `wanted`.
    #[inline]
    fn narrow(&self, wanted: &[u8]) -> (usize, usize) {
        let shared = &self.user(0)[..self.common];
        let head = &wanted[..wanted.len().min(self.common)];
        match head.cmp(shared) {
            std::cmp::Ordering::Less => return (0, 0),
            std::cmp::Ordering::Greater => return (self.len(), self.len()),
            std::cmp::Ordering::Equal => {}
        }
        let p = piece(wanted, self.common);
        let lo = lower_bound(&self.pieces, p);
        let mut hi = lo;
        // Equal pieces are rare: step over a few, then search for their end.
        while hi < self.pieces.len() && self.pieces[hi] == p {
            hi += 1;
            if hi - lo == 4 {
                hi += self.pieces[hi..].partition_point(|x| *x == p);
                break;
            }
        }
        (lo, hi)
    }

    fn seek_within(&self, mut lo: usize, mut hi: usize, target: &[u8], wanted: &[u8]) -> usize {
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            let below = if self.user_keys {
                self.order.compare(self.keys.get(mid), wanted).is_lt()
            } else {
                self.order
                    .compare_internal(self.keys.get(mid), target)
                    .is_lt()
            };
            if below {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        lo
    }
}

/// First position whose number is not below `p`, without a branch that data decides.
#[inline]
pub(super) fn lower_bound(pieces: &[u64], p: u64) -> usize {
    let mut base = 0;
    let mut size = pieces.len();
    while size > 1 {
        let half = size / 2;
        base = if pieces[base + half - 1] < p {
            base + half
        } else {
            base
        };
        size -= half;
    }
    base + usize::from(size == 1 && pieces[base] < p)
}

/// Handle, first key and end of the value that starts at `at`.
fn parse_value<'a>(
    entries: &'a [u8],
    at: usize,
    h: &entry::Header,
    form: IndexForm,
    previous: BlockHandle,
) -> Option<(BlockHandle, &'a [u8], usize)> {
    let (handle, mut end) = if form.delta_values && h.shared > 0 {
        let (v, end) = varint64(entries, at)?;
        let size = previous.size.checked_add_signed(unzigzag(v))?;
        let offset = previous
            .offset
            .checked_add(previous.size)?
            .checked_add(BLOCK_TRAILER_LEN)?;
        (BlockHandle { offset, size }, end)
    } else {
        let (offset, end) = varint64(entries, at)?;
        let (size, end) = varint64(entries, end)?;
        (BlockHandle { offset, size }, end)
    };
    let mut first: &[u8] = &[];
    if form.first_keys {
        let (len, start) = entry::varint32(entries, end)?;
        end = start.checked_add(len as usize)?;
        first = entries.get(start..end)?;
    }
    if !form.delta_values {
        // The length in front of the value rules, so that a longer value of the future can be
        // skipped.
        let says = at.checked_add(h.value_len as usize)?;
        if says < end || says > entries.len() {
            return None;
        }
        end = says;
    }
    Some((handle, first, end))
}

/// Writes index blocks.
#[derive(Debug)]
pub struct IndexBlockBuilder {
    block: BlockBuilder,
    form: IndexForm,
    previous: BlockHandle,
    full: Vec<u8>,
    delta: Vec<u8>,
}

impl IndexBlockBuilder {
    /// A builder for `form` with a restart point every `interval` entries.
    pub fn new(form: IndexForm, interval: u32) -> Self {
        IndexBlockBuilder {
            block: BlockBuilder::new(interval),
            form,
            previous: BlockHandle { offset: 0, size: 0 },
            full: Vec::new(),
            delta: Vec::new(),
        }
    }

    /// Adds an entry: `separator` is an internal key, of which the form may keep only the user key.
    /// With delta values, blocks must be adjacent in the file.
    pub fn add(&mut self, separator: &[u8], handle: BlockHandle, first_key: &[u8]) {
        self.full.clear();
        put_varint(&mut self.full, handle.offset);
        put_varint(&mut self.full, handle.size);
        self.delta.clear();
        put_varsigned(
            &mut self.delta,
            handle.size.wrapping_sub(self.previous.size) as i64,
        );
        if self.form.first_keys {
            for value in [&mut self.full, &mut self.delta] {
                put_varint(value, first_key.len() as u64);
                value.extend_from_slice(first_key);
            }
        }
        let key = if self.form.user_keys {
            user_key(separator)
        } else {
            separator
        };
        if self.form.delta_values {
            self.block.add_delta(key, &self.full, &self.delta);
        } else {
            self.block.add(key, &self.full);
        }
        self.previous = handle;
    }

    /// Bytes of the block if it were finished now.
    pub fn size_estimate(&self) -> usize {
        self.block.size_estimate()
    }
    /// Returns whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }
    /// Writes the tail and shows the block.
    pub fn finish(&mut self) -> &[u8] {
        self.block.finish()
    }
    /// Empties the builder.
    pub fn reset(&mut self) {
        self.block.reset();
    }
}
