//! A position in a data block (or any block with ordinary entries), moving both ways.
//!
//! The current key is rebuilt in a buffer that is reused; the value is a range of the block. Going
//! back decodes a restart interval once and then steps through what was decoded. A damaged entry
//! ends the walk: the cursor becomes invalid and [`BlockCursor::status`] says why.

use super::Block;
use super::entry::{header, quick_header, varint32};
use super::entry_table::EntryTable;
use super::hash_index::Bucket;
use super::key_buffer::KeyBuffer;
use crate::comparator::KeyOrder;
use crate::entry_batch::Direction;
use crate::ids::Seq;
use crate::key::{TRAILER_LEN, trailer, user_key};
use esker_codec::prefetch;
use esker_status::{Error, Result};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Something that holds a block: a reference, an `Arc`, a cache handle.
pub trait BlockSource {
    /// The block.
    fn block(&self) -> &Block;
}

impl BlockSource for &Block {
    fn block(&self) -> &Block {
        self
    }
}

impl BlockSource for Arc<Block> {
    #[inline]
    fn block(&self) -> &Block {
        self
    }
}

/// An entry decoded on the way back, and how its key follows from the one after it: this many bytes
/// of that, and the bytes from `rest` on in `seen_keys`. Whole keys could come to far more than the
/// block.
#[derive(Clone, Copy, Debug)]
struct BackwardEntry {
    at: u32,
    next_at: u32,
    shared: u32,
    rest: u32,
    value: (u32, u32),
}

/// See [`BlockCursor::number`].
const UNNUMBERED: u32 = u32::MAX;
/// More entries than this with equal pieces of keys are searched by restart points.
const EQUAL_MAX: usize = 16;
/// A walk asks for the entry that many entries ahead: they lie on different cache lines.
const AHEAD: u32 = 3;

/// A cursor over the entries of one block.
///
/// Not the [`crate::Cursor`] trait itself only because a block has no end-of-data failure of its
/// own; the moves and their meaning are the same.
#[derive(Debug)]
pub struct BlockCursor<B> {
    source: B,
    order: KeyOrder,
    key: KeyBuffer,
    value: (u32, u32),
    at: u32,
    next_at: u32,
    /// The number of the entry, where the block's table of entries said it; else [`UNNUMBERED`].
    number: u32,
    valid: bool,
    /// The shortest key that is not damage: 8 for internal keys, 0 for plain names.
    min_key: usize,
    /// Replaces every sequence, for ingested files.
    global_seq: Option<Seq>,
    /// The trailer as stored, while `key` shows the replaced one.
    stored_trailer: Option<[u8; TRAILER_LEN]>,
    seen: Vec<BackwardEntry>,
    seen_keys: Vec<u8>,
    error: Option<Error>,
    /// Comparisons of keys by seeks.
    compared: u32,
}

impl<B: BlockSource> BlockCursor<B> {
    /// A cursor over internal keys in `order`; not valid until moved.
    pub fn new(source: B, order: KeyOrder) -> Self {
        BlockCursor {
            source,
            order,
            key: KeyBuffer::default(),
            value: (0, 0),
            at: 0,
            next_at: 0,
            number: UNNUMBERED,
            valid: false,
            min_key: TRAILER_LEN,
            global_seq: None,
            stored_trailer: None,
            seen: Vec::new(),
            seen_keys: Vec::new(),
            error: None,
            compared: 0,
        }
    }

    /// A cursor over a block whose keys are plain names (metaindex, properties): walk it, do not
    /// seek.
    pub fn over_names(source: B) -> Self {
        let mut c = Self::new(source, KeyOrder::Bytewise);
        c.min_key = 0;
        c
    }

    /// Shows every key with this sequence instead of the stored one.
    #[must_use]
    pub fn with_global_seq(mut self, seq: Option<Seq>) -> Self {
        self.global_seq = seq;
        self
    }

    /// Makes the cursor fit another table: its order and its global sequence. It must get a block
    /// of that table next.
    #[inline]
    pub fn configure(&mut self, order: &KeyOrder, seq: Option<Seq>) {
        if !(order.is_bytewise() && self.order.is_bytewise()) {
            self.order = order.clone();
        }
        self.global_seq = seq;
    }

    /// Moves to another block, keeping the buffers; not valid until moved. Returns the old source.
    pub fn replace(&mut self, source: B) -> B {
        self.reset();
        std::mem::replace(&mut self.source, source)
    }

    /// The source.
    #[inline]
    pub fn source(&self) -> &B {
        &self.source
    }
    /// Returns whether the cursor stands on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }
    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.key.as_slice()
    }
    /// The value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.source.block().slice(self.value.0..self.value.1)
    }
    /// Where the value stands in the block.
    #[inline]
    pub fn value_range(&self) -> Range<u32> {
        self.value.0..self.value.1
    }
    /// The bytes of the block, which values stand in.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.source.block().data
    }
    /// Returns whether keys and values stand together and as they are shown, in byte order.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.valid
            && self.min_key > 0
            && self.global_seq.is_none()
            && self.order.is_bytewise()
            && !self.source.block().separated
    }
    /// Where the entry starts.
    #[inline(always)]
    pub(super) fn place(&self) -> usize {
        self.at as usize
    }
    /// Where the one after it starts.
    #[inline(always)]
    pub(super) fn next_place(&self) -> usize {
        self.next_at as usize
    }
    /// The number of the entry, where it is known, in a block with a table of entries.
    #[inline]
    pub(super) fn known_number(&self) -> Option<usize> {
        (self.number != UNNUMBERED).then_some(self.number as usize)
    }
    /// Stands on an entry that was decoded from here, so many steps away: its key, its value, where
    /// it starts and where the one behind it does.
    #[inline(always)]
    pub(super) fn stand_at(
        &mut self,
        key: &[u8],
        value: (u32, u32),
        places: (u32, u32),
        (direction, steps): (Direction, u32),
    ) {
        if steps == 0 {
            return;
        }
        self.seen.clear();
        self.seen_keys.clear();
        self.key.set(key);
        self.value = value;
        (self.at, self.next_at) = places;
        if self.number != UNNUMBERED {
            self.number = match direction {
                Direction::Forward => self.number + steps,
                Direction::Backward => self.number - steps,
            };
        }
    }
    /// `Ok`, or what was found damaged.
    pub fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// How often seeks compared keys, or pieces of them, since this was last asked.
    #[inline]
    pub fn take_compared(&mut self) -> u32 {
        std::mem::take(&mut self.compared)
    }

    /// Makes the cursor invalid and forgets a failure.
    pub fn reset(&mut self) {
        self.invalidate();
        self.error = None;
    }

    fn invalidate(&mut self) {
        self.valid = false;
        self.number = UNNUMBERED;
        self.stored_trailer = None;
        self.key.clear();
        self.seen.clear();
        self.seen_keys.clear();
    }

    #[cold]
    fn corrupt(&mut self, why: &str) {
        let at = self.next_at;
        self.invalidate();
        self.error = Some(Error::corruption(format!(
            "bad entry in block at byte {at}: {why}"
        )));
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.stand_before(0);
        self.step();
        if self.valid && self.table().is_some() {
            self.number = 0;
        }
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        if let Some(table) = self.table_now() {
            let last = table.len() - 1;
            return self.stand_on(last);
        }
        let block = self.source.block();
        let end = block.entries_end;
        let restart = block.num_restarts.saturating_sub(1);
        self.stand_before(restart);
        if end == 0 {
            return;
        }
        self.step_until_before(end);
    }

    /// To the next entry; only while valid.
    #[inline]
    pub fn next(&mut self) {
        if !self.seen.is_empty() {
            self.seen.clear();
            self.seen_keys.clear();
        }
        let ahead = (self.next_at - self.at).saturating_mul(AHEAD);
        prefetch(
            &self.source.block().data,
            self.next_at.saturating_add(ahead) as usize,
        );
        if self.number != UNNUMBERED {
            self.number += 1;
        }
        self.step();
    }

    /// To the previous entry; only while valid.
    pub fn prev(&mut self) {
        if let Some(s) = self.seen.pop() {
            self.show(s);
            return;
        }
        if let Some(number) = self.numbered() {
            return match number.checked_sub(1) {
                Some(before) => self.stand_on(before),
                None => self.invalidate(),
            };
        }
        let current = self.at;
        if current == 0 {
            self.invalidate();
            return;
        }
        let restart = self.source.block().restart_below(current);
        self.stand_before(restart);
        self.step_until_before(current);
    }

    /// Returns whether the entry after this one is known to have another user key. False says
    /// nothing.
    #[inline]
    pub fn next_is_another_key(&self) -> bool {
        self.number != UNNUMBERED && self.differs(self.number as usize + 1)
    }

    /// Returns whether the entry before this one is known to have another user key. False says
    /// nothing.
    #[inline]
    pub fn prev_is_another_key(&self) -> bool {
        self.number != UNNUMBERED && self.differs(self.number as usize)
    }

    /// Returns whether the pieces of the keys of entry `number` and of the one before it differ.
    #[inline]
    fn differs(&self, number: usize) -> bool {
        let table = self.source.block().entry_table_built();
        table.is_some_and(|table| table.differs_from_previous(number))
    }

    /// To the first entry at or after the internal key `target`.
    pub fn seek(&mut self, target: &[u8]) {
        if let Some(table) = self.table() {
            let equal = table.narrow(user_key(target));
            let depth = table.search_depth();
            if equal.len() <= EQUAL_MAX {
                self.compared = self.compared.wrapping_add(depth);
                self.stand_on(equal.start);
                while self.valid
                    && (self.number as usize) < equal.end
                    && self.compare_counted(target).is_lt()
                {
                    self.next();
                }
                return;
            }
        }
        let Some(restart) = self.restart_for(target) else {
            return;
        };
        self.scan_from(restart, target);
    }

    /// As [`BlockCursor::seek`], for a point lookup: may use the hash index, in which case the
    /// cursor can stand after `target` on a key that is not the first one there, but never misses
    /// an entry of the target's own user key.
    pub fn seek_point(&mut self, target: &[u8]) {
        let block = self.source.block();
        if !block.has_hash_index() || self.table().is_some() {
            return self.seek(target);
        }
        match block.bucket(user_key(target)) {
            None | Some(Bucket::Collision) => self.seek(target),
            // Not here; the last interval tells whether the next block could hold it.
            Some(Bucket::Empty) => {
                let last = block.num_restarts.saturating_sub(1);
                self.scan_from(last, target);
            }
            Some(Bucket::Restart(r)) => self.scan_from(r, target),
        }
    }

    /// To the last entry at or before the internal key `target`.
    pub fn seek_for_prev(&mut self, target: &[u8]) {
        self.seek(target);
        if self.error.is_some() {
            return;
        }
        if !self.valid {
            self.seek_to_last();
        } else if self.compare(self.key.as_slice(), target).is_gt() {
            self.prev();
        }
    }

    /// The block's table of entries, where it has one and keys are in its order.
    #[inline]
    fn table(&self) -> Option<&EntryTable> {
        if !self.order.is_bytewise() {
            return None;
        }
        self.source.block().entry_table()
    }

    /// Returns the table for a walk back, which needs it at once.
    fn table_now(&self) -> Option<&EntryTable> {
        if !self.order.is_bytewise() || self.min_key == 0 {
            return None;
        }
        self.source.block().entry_table_now()
    }

    /// The number of the current entry, by the table of entries.
    #[inline]
    fn numbered(&self) -> Option<usize> {
        if self.number != UNNUMBERED {
            return Some(self.number as usize);
        }
        self.table_now()?.at(self.at)
    }

    /// Stands on the entry of this number, in a block with a table of entries; behind the last one
    /// it is not valid.
    fn stand_on(&mut self, number: usize) {
        self.reset();
        let block = self.source.block();
        let entries = &block.data[..block.entries_end as usize];
        let Some(table) = block.entry_table_now().filter(|t| number < t.len()) else {
            self.next_at = block.entries_end;
            return;
        };
        let at = table.place(number);
        if let Some(before) = number.checked_sub(AHEAD as usize) {
            prefetch(entries, table.place(before) as usize);
        }
        match table.head(entries, number) {
            Some(head) => {
                self.key.begin_with(&head.bytes, head.len);
                self.next_at = at;
                self.step();
            }
            // More of the key before is needed than the table has of it.
            None => {
                self.stand_before(block.restart_below(at.saturating_add(1)));
                self.step();
                while self.valid && self.at < at {
                    self.step();
                }
            }
        }
        self.number = number as u32;
    }

    #[inline]
    fn compare(&self, key: &[u8], target: &[u8]) -> Ordering {
        self.order.compare_internal(key, target)
    }

    /// Compares the current key.
    #[inline]
    fn compare_counted(&mut self, target: &[u8]) -> Ordering {
        self.compared = self.compared.wrapping_add(1);
        self.compare(self.key.as_slice(), target)
    }

    /// Compares a stored (not yet shown) key.
    #[inline]
    fn compare_stored(&self, stored: &[u8], target: &[u8]) -> Ordering {
        match self.global_seq {
            None => self.order.compare_internal(stored, target),
            Some(seq) => self
                .order
                .compare(user_key(stored), user_key(target))
                .then_with(|| {
                    let shown = seq.0 << 8 | trailer(stored) & 0xff;
                    trailer(target).cmp(&shown)
                }),
        }
    }

    /// The last restart point whose key is below `target` (or 0). `None` after reporting damage.
    fn restart_for(&mut self, target: &[u8]) -> Option<u32> {
        let block = self.source.block();
        let entries = &block.data[..block.entries_end as usize];
        let (mut lo, mut hi) = (0u32, block.num_restarts.saturating_sub(1));
        let depth = u32::BITS - hi.leading_zeros();
        while lo < hi {
            let mid = lo + (hi - lo).div_ceil(2);
            let at = block.restart(mid);
            let key = match header(entries, at as usize) {
                Some(h) if h.shared == 0 => {
                    let mut key_at = h.key_at;
                    if block.separated {
                        key_at = varint32(entries, key_at).map_or(usize::MAX, |(_, end)| end);
                    }
                    key_at
                        .checked_add(h.unshared as usize)
                        .and_then(|end| entries.get(key_at..end))
                }
                _ => None,
            };
            let Some(key) = key.filter(|k| k.len() >= self.min_key) else {
                self.next_at = at;
                self.corrupt("restart point without a full key");
                return None;
            };
            if self.compare_stored(key, target).is_lt() {
                lo = mid;
            } else {
                hi = mid - 1;
            }
        }
        self.compared = self.compared.wrapping_add(depth);
        Some(lo)
    }

    /// Steps from `restart` to the first entry at or after `target`.
    fn scan_from(&mut self, restart: u32, target: &[u8]) {
        self.stand_before(restart);
        self.step();
        if !self.order.is_bytewise() || self.global_seq.is_some() {
            while self.valid && self.compare_counted(target).is_lt() {
                self.step();
            }
            return;
        }
        // Byte order: the length of the prefix that the current key has in common with the target
        // decides most comparisons from `shared` alone.
        let wanted = user_key(target);
        let mut common = 0;
        while self.valid {
            self.compared = self.compared.wrapping_add(1);
            let user = user_key(self.key.as_slice());
            let most = user.len().min(wanted.len());
            common = common.min(most);
            while common < most && user[common] == wanted[common] {
                common += 1;
            }
            let below = match (user.get(common), wanted.get(common)) {
                (Some(a), Some(b)) => a < b,
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (None, None) => trailer(self.key.as_slice()) > trailer(target),
            };
            if !below {
                return;
            }
            let differs = common < user.len();
            loop {
                let shared = self.step_shared();
                if !self.valid {
                    return;
                }
                // The new key keeps the byte that made the old one smaller.
                if differs && shared > common {
                    continue;
                }
                common = common.min(shared);
                break;
            }
        }
    }

    /// Stands before restart point `i`.
    fn stand_before(&mut self, i: u32) {
        self.reset();
        let block = self.source.block();
        let (at, end) = (block.restart(i), block.entries_end);
        self.next_at = match at {
            u32::MAX => 0,
            at => at,
        };
        // Without this it would look like the end of the block.
        if self.next_at >= end && end > 0 {
            self.corrupt("restart point outside the entries");
        }
    }

    /// Decodes entries until the next one would start at `end`; remembers those on the way.
    fn step_until_before(&mut self, end: u32) {
        self.step();
        while self.valid && self.next_at < end {
            restore_trailer(&mut self.key, &mut self.stored_trailer);
            let block = self.source.block();
            let entries = &block.data[..block.entries_end as usize];
            let next = header(entries, self.next_at as usize);
            let shared = next.map_or(0, |h| h.shared).min(self.key.len() as u32);
            self.seen.push(BackwardEntry {
                at: self.at,
                next_at: self.next_at,
                shared,
                rest: self.seen_keys.len() as u32,
                value: self.value,
            });
            self.seen_keys
                .extend_from_slice(&self.key.as_slice()[shared as usize..]);
            self.step();
        }
    }

    /// Stands on an entry that was decoded before.
    fn show(&mut self, s: BackwardEntry) {
        restore_trailer(&mut self.key, &mut self.stored_trailer);
        let rest = self.seen_keys.len() - s.rest as usize;
        self.key
            .splice(s.shared as usize, &self.seen_keys, s.rest as usize, rest);
        self.seen_keys.truncate(s.rest as usize);
        self.at = s.at;
        self.next_at = s.next_at;
        self.value = s.value;
        self.replace_seq();
    }

    #[inline(always)]
    fn step(&mut self) {
        if !self.step_quickly() {
            self.step_shared();
        }
    }

    /// A step to an entry of the common kind: short, keys and values together, sequences as stored.
    /// False where it is another one, and nothing has moved.
    #[inline(always)]
    fn step_quickly(&mut self) -> bool {
        let block = self.source.block();
        let (at, end) = (self.next_at as usize, block.entries_end as usize);
        if block.separated || self.global_seq.is_some() || at >= end {
            return false;
        }
        let Some(h) = quick_header(&block.data, at) else {
            return false;
        };
        let (shared, unshared) = (h.shared as usize, h.unshared as usize);
        let value_at = h.key_at + unshared;
        let next_at = value_at + h.value_len as usize;
        if next_at > end || shared > self.key.len() || shared + unshared < self.min_key {
            return false;
        }
        self.key.splice(shared, &block.data, h.key_at, unshared);
        self.value = (value_at as u32, next_at as u32);
        self.at = at as u32;
        self.next_at = next_at as u32;
        self.valid = true;
        true
    }

    /// Decodes the entry at `next_at`; returns the bytes its key shares with the one before.
    #[inline]
    fn step_shared(&mut self) -> usize {
        let block = self.source.block();
        let at = self.next_at;
        if at >= block.entries_end {
            self.valid = false;
            return 0;
        }
        let entries = &block.data[..block.entries_end as usize];
        let Some(h) = header(entries, at as usize) else {
            self.corrupt("header does not fit");
            return 0;
        };
        if block.separated {
            return self.step_separated(h);
        }
        let key_end = h.key_at + h.unshared as usize;
        if h.value_len as usize > entries.len() - key_end {
            self.corrupt("value does not fit");
            return 0;
        }
        restore_trailer(&mut self.key, &mut self.stored_trailer);
        let shared = h.shared as usize;
        if shared > self.key.len() || shared + (h.unshared as usize) < self.min_key {
            self.corrupt("key shorter than it says");
            return 0;
        }
        self.key
            .splice(shared, entries, h.key_at, h.unshared as usize);
        self.value = (key_end as u32, key_end as u32 + h.value_len);
        self.at = at;
        self.next_at = self.value.1;
        self.valid = true;
        if self.global_seq.is_some() {
            self.replace_seq();
        }
        shared
    }

    /// Steps in a block with separated values: a restart entry names its value's offset, the others
    /// follow the previous value.
    #[inline(never)]
    fn step_separated(&mut self, h: super::entry::Header) -> usize {
        let block = self.source.block();
        let at = self.next_at;
        let entries = &block.data[..block.entries_end as usize];
        let restart = block.restart_below(at.saturating_add(1));
        let mut key_at = h.key_at;
        let mut value_at = self.value.1;
        if block.restart(restart) == at {
            let Some((offset, end)) = varint32(entries, key_at) else {
                return self.fail("value offset does not fit");
            };
            key_at = end;
            value_at = match block.entries_end.checked_add(offset) {
                Some(v) => v,
                None => return self.fail("value offset outside the block"),
            };
        }
        let key_end = key_at + h.unshared as usize;
        let value_end = value_at
            .checked_add(h.value_len)
            .filter(|end| *end <= block.values_end);
        let (Some(bytes), Some(value_end)) = (entries.get(key_at..key_end), value_end) else {
            return self.fail("key or value does not fit");
        };
        restore_trailer(&mut self.key, &mut self.stored_trailer);
        let shared = h.shared as usize;
        if shared > self.key.len() || shared + bytes.len() < self.min_key {
            return self.fail("key shorter than it says");
        }
        self.key.splice(shared, bytes, 0, bytes.len());
        self.value = (value_at, value_end);
        self.at = at;
        self.next_at = key_end as u32;
        self.valid = true;
        self.replace_seq();
        shared
    }

    #[cold]
    fn fail(&mut self, why: &str) -> usize {
        self.corrupt(why);
        0
    }

    fn replace_seq(&mut self) {
        let Some(seq) = self.global_seq else { return };
        if let Some(t) = self.key.last_chunk_mut::<TRAILER_LEN>() {
            self.stored_trailer = Some(*t);
            *t = (seq.0 << 8 | u64::from(t[0])).to_le_bytes();
        }
    }
}

/// Puts the stored trailer back in place of the one that is shown: the next key may share it.
#[inline(always)]
fn restore_trailer(key: &mut KeyBuffer, stored: &mut Option<[u8; TRAILER_LEN]>) {
    if let Some(t) = stored.take()
        && let Some(shown) = key.last_chunk_mut()
    {
        *shown = t;
    }
}
