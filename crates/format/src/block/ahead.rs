//! Decoding several entries of a block in one loop ([`EntryBatch`]).
//!
//! Only what most entries are: keys and values together, a short key, a plain value that the reader
//! sees, and no other version of its key beside it. The loop ends before any other entry, and the
//! cursor stands on the last one that it took.

use super::cursor::{BlockCursor, BlockSource};
use super::entry::quick_header;
use crate::ValueType;
use crate::entry_batch::{BatchLimits, DecodedEntry, Direction, EntryBatch, KEY_MAX};
use crate::ids::Seq;
use crate::key::TRAILER_LEN;
use esker_codec::prefetch;

/// Bytes that are copied at once.
const PIECE: usize = 32;
/// A key that is being made: a piece may reach behind it.
const ROOM: usize = KEY_MAX + PIECE;
/// Entries between the one that is decoded and the one that is asked for.
const AHEAD: usize = 4;

/// Returns whether the trailer at `at` is that of a plain value which the reader sees.
#[inline(always)]
fn is_seen(entries: &[u8], at: usize, snapshot: Seq) -> bool {
    let trailer = entries.get(at..).and_then(<[u8]>::first_chunk);
    trailer.is_some_and(|trailer| {
        let trailer = u64::from_le_bytes(*trailer);
        trailer as u8 == ValueType::Value as u8 && Seq(trailer >> 8) <= snapshot
    })
}

/// Puts `data[at..at + len]`, which is there, behind the first `shared` bytes of `key`.
#[inline(always)]
fn splice(key: &mut [u8; ROOM], shared: usize, data: &[u8], at: usize, len: usize) {
    let piece = data.get(at..).and_then(<[u8]>::first_chunk::<PIECE>);
    let room = key.get_mut(shared..).and_then(<[u8]>::first_chunk_mut);
    match (piece, room) {
        (Some(piece), Some(room)) if len <= PIECE => *room = *piece,
        _ => key[shared..shared + len].copy_from_slice(&data[at..at + len]),
    }
}

/// An entry of the kind that gets into a batch.
struct Plain {
    shared: usize,
    unshared: usize,
    key_at: usize,
    key_len: usize,
    end: usize,
}

impl Plain {
    /// The one at `at`, if it is of that kind.
    #[inline(always)]
    fn at(entries: &[u8], at: usize, snapshot: Seq) -> Option<Plain> {
        let h = quick_header(entries, at)?;
        let (shared, unshared) = (h.shared as usize, h.unshared as usize);
        let (key_len, value_at) = (shared + unshared, h.key_at + unshared);
        let end = value_at + h.value_len as usize;
        let fits = end <= entries.len() && key_len <= KEY_MAX && unshared > TRAILER_LEN;
        (fits && is_seen(entries, value_at - TRAILER_LEN, snapshot)).then_some(Plain {
            shared,
            unshared,
            key_at: h.key_at,
            key_len,
            end,
        })
    }

    #[inline(always)]
    fn value(&self) -> (u32, u32) {
        ((self.key_at + self.unshared) as u32, self.end as u32)
    }

    /// Returns whether its user key is the one that stands in `user`, of which it shares a part.
    #[inline(always)]
    fn repeats(&self, entries: &[u8], user: &[u8]) -> bool {
        // Mostly the first byte tells: a key shares all that it can, but for restart points.
        match user.get(self.shared..) {
            Some(rest @ [first, ..]) if *first == entries[self.key_at] => {
                *rest == entries[self.key_at..self.key_at + self.unshared - TRAILER_LEN]
            }
            _ => false,
        }
    }
}

impl<B: BlockSource> BlockCursor<B> {
    /// Takes the current entry into `batch`, which is empty, and those that follow it as far as
    /// `limits` allow; the cursor ends on the last of them. Takes none where single steps are
    /// needed. Only while valid, on a plain value.
    pub fn next_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        let mut key = [0; ROOM];
        if !self.begin_batch(limits, batch, &mut key) {
            return;
        }
        let bound = limits.bounds.into_iter().flatten().min();
        let block = self.source().block();
        let entries = &block.data[..block.entries_end as usize];
        let mut len = self.key().len();
        let (mut at, mut here) = (self.next_place(), self.place());
        while batch.len() < limits.most
            && let Some(entry) = Plain::at(entries, at, limits.snapshot)
        {
            prefetch(entries, entry.end + (AHEAD - 1) * (entry.end - at));
            if entry.shared > len || entry.repeats(entries, &key[..len - TRAILER_LEN]) {
                break;
            }
            splice(
                &mut key,
                entry.shared,
                entries,
                entry.key_at,
                entry.unshared,
            );
            len = entry.key_len;
            if bound.is_some_and(|bound| key[..len - TRAILER_LEN] >= *bound) {
                break;
            }
            batch.push(&key, len, entry.value());
            (here, at) = (at, entry.end);
        }
        self.end_batch(batch, here, at, Direction::Forward);
    }

    /// Collects the entries that come before. Only in a block with a table of entries.
    pub fn prev_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        let Some(number) = self.known_number() else {
            return;
        };
        let mut key = [0; ROOM];
        if !self.prev_is_another_key() || !self.begin_batch(limits, batch, &mut key) {
            return;
        }
        let block = self.source().block();
        let entries = &block.data[..block.entries_end as usize];
        let Some(table) = block.entry_table_built() else {
            return batch.clear();
        };
        let bound = limits.bounds.into_iter().flatten().max();
        let (mut here, mut after) = (self.place(), self.next_place());
        for n in (1..number).rev() {
            if batch.len() >= limits.most || !table.differs_from_previous(n) {
                break;
            }
            let at = table.place(n) as usize;
            prefetch(entries, table.place(n.saturating_sub(AHEAD)) as usize);
            let Some(entry) = Plain::at(entries, at, limits.snapshot) else {
                break;
            };
            let known = table.begin_key(n, &mut key);
            if entry.shared > known.min(entry.key_len - TRAILER_LEN) {
                break;
            }
            splice(
                &mut key,
                entry.shared,
                entries,
                entry.key_at,
                entry.unshared,
            );
            let user = &key[..entry.key_len - TRAILER_LEN];
            if bound.is_some_and(|bound| user <= bound) {
                break;
            }
            batch.push(&key, entry.key_len, entry.value());
            (here, after) = (at, entry.end);
        }
        self.end_batch(batch, here, after, Direction::Backward);
    }
}

impl EntryBatch {
    #[inline(always)]
    fn push(&mut self, key: &[u8; ROOM], len: usize, value: (u32, u32)) {
        let slot = self.entries.len();
        if let (Some(slot), Some(key)) = (self.keys.get_mut(slot), key.first_chunk::<KEY_MAX>()) {
            *slot = *key;
            self.entries.push(DecodedEntry {
                key_len: len as u32,
                value,
            });
        }
    }
}

impl<B: BlockSource> BlockCursor<B> {
    /// Takes the current entry; false where no batch is to be had here.
    #[inline(always)]
    fn begin_batch(
        &self,
        limits: &BatchLimits<'_>,
        batch: &mut EntryBatch,
        key: &mut [u8; ROOM],
    ) -> bool {
        let len = self.key().len();
        if !self.is_plain() || !(TRAILER_LEN..=KEY_MAX).contains(&len) {
            return false;
        }
        batch.reserve(limits.most);
        key[..len].copy_from_slice(self.key());
        let value = self.value_range();
        batch.push(key, len, (value.start, value.end));
        true
    }

    /// Stands on the last entry of `batch`, which starts at `place`; the next one starts at `next`.
    #[inline(always)]
    fn end_batch(&mut self, batch: &EntryBatch, place: usize, next: usize, direction: Direction) {
        let steps = batch.len() - 1;
        if let (Some(last), Some(key)) = (batch.entries.last(), batch.keys.get(steps)) {
            let key = &key[..last.key_len as usize];
            self.stand_at(
                key,
                last.value,
                (place as u32, next as u32),
                (direction, steps as u32),
            );
        }
    }
}
