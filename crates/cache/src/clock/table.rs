//! The clock's table: buckets of one cache line, searched without a lock.
//!
//! A bucket is a word of tags and [`SLOTS`] slots. Eight bits of the hash say which slots to look
//! at; the entry in a slot has its key, which decides. A key may stand in two buckets, and comes
//! into the one with more room.
//!
//! The table doubles by a segment as long as all before it: an entry of bucket `b` stays there or
//! goes to bucket `b + length`, into the slot of the same number, which nothing else can take.
//! Segments are never freed before the table, so a reader needs no more than the mask.
//!
//! Invariants: only the holder of the shard's lock calls what changes the table. A tag is stored
//! after its slot is filled and removed before its slot is emptied. Every key is found by the mask
//! in force; a reader with an older one may miss an entry that moved, and looks again. What a
//! reader finds is an entry with its key that stood in the table during the search, or none.

use crate::CacheKey;
use crate::entry::Entry;
use crate::sync::{AtomicU64, AtomicUsize, Ordering, Slot, SlotGuard};
use esker_status::seeded::{Bug, seeded};
use std::sync::{Arc, OnceLock};

/// Slots of a bucket: with their tags they fill a line.
#[cfg(not(loom))]
pub(crate) const SLOTS: usize = 7;
/// Few, so that models fill a bucket.
#[cfg(loom)]
pub(crate) const SLOTS: usize = 2;

const SEGMENTS: usize = 32;
/// One in each byte that is a tag; the highest byte says which entries are in the main pool.
const ONES: u64 = (1 << (8 * SLOTS)) / 255;
const SEVEN_BITS: u64 = ONES * 0x7f;
const MAIN_SHIFT: u32 = 56;

const EXISTS: &str = "the segments of all buckets below the mask exist";

/// The high bits of the bytes of `word` that are `tag`.
#[inline]
fn equal(word: u64, tag: u8) -> u64 {
    let x = (word ^ (ONES * u64::from(tag))) & (ONES * 255);
    !(((x & SEVEN_BITS) + SEVEN_BITS) | x | SEVEN_BITS) & (ONES << 7)
}

/// The numbers of the slots in an answer of [`equal`].
fn slots_of(mut found: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = (found != 0).then(|| found.trailing_zeros() as usize / 8);
        found &= found.wrapping_sub(1);
        slot
    })
}

/// The tag of a hash; 0 is that of an empty slot.
#[inline]
fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

/// The two buckets of a hash, before the mask: never the same one, unless there is but one.
#[inline]
fn homes(hash: u64) -> (usize, usize) {
    let other = hash.wrapping_mul(0x9FB2_1C65_1E98_DF25) >> 32;
    let first = hash as u32 as usize;
    (first, first ^ (other as usize | 1))
}

/// A line of the table.
#[cfg_attr(not(loom), repr(align(64)))]
pub(crate) struct Bucket<V> {
    word: AtomicU64,
    slots: [Slot<Entry<V>>; SLOTS],
}

impl<V> Bucket<V> {
    fn new() -> Self {
        Bucket {
            word: AtomicU64::new(0),
            slots: std::array::from_fn(|_| Slot::new()),
        }
    }

    /// Gives `take` the slot that holds the key, if one does.
    #[inline]
    fn find<R>(&self, tag: u8, take: impl FnMut(&Slot<Entry<V>>) -> Option<R>) -> Option<R> {
        let word = self.word.load(Ordering::Acquire);
        slots_of(equal(word, tag))
            .map(|slot| &self.slots[slot])
            .find_map(take)
    }

    fn empty(&self) -> u64 {
        equal(self.word.load(Ordering::Relaxed), 0)
    }

    /// The slots in use, in the pool or in both.
    pub(crate) fn used(&self, main: Option<bool>) -> impl Iterator<Item = usize> + use<V> {
        let word = self.word.load(Ordering::Relaxed);
        let used = !equal(word, 0) & (ONES << 7);
        slots_of(used).filter(move |&slot| main.is_none_or(|m| m == is_main(word, slot)))
    }

    pub(crate) fn is_main(&self, slot: usize) -> bool {
        is_main(self.word.load(Ordering::Relaxed), slot)
    }

    /// The entry, with a reference more.
    pub(crate) fn get(&self, slot: usize) -> Option<Arc<Entry<V>>> {
        self.slots[slot].get()
    }

    /// Shows the entry to `f`.
    pub(crate) fn view<R>(&self, slot: usize, f: impl FnOnce(&Entry<V>) -> R) -> Option<R> {
        self.slots[slot].view(f)
    }

    pub(crate) fn set_main(&self, slot: usize) {
        let word = self.word.load(Ordering::Relaxed);
        let word = word | 1 << (MAIN_SHIFT + slot as u32);
        self.word.store(word, Ordering::Release);
    }

    fn put(&self, slot: usize, entry: Arc<Entry<V>>, tag: u8, main: bool) {
        self.slots[slot].set(Some(entry));
        let word = self.word.load(Ordering::Relaxed) | u64::from(tag) << (8 * slot);
        let word = word | u64::from(main) << (MAIN_SHIFT + slot as u32);
        self.word.store(word, Ordering::Release);
    }

    fn take(&self, slot: usize) -> Option<Arc<Entry<V>>> {
        let gone = 0xff << (8 * slot) | 1 << (MAIN_SHIFT + slot as u32);
        let word = self.word.load(Ordering::Relaxed) & !gone;
        self.word.store(word, Ordering::Release);
        self.slots[slot].set(None)
    }
}

/// Nobody changes the bucket any more, so the tags name exactly the slots that are filled.
#[cfg(not(loom))]
impl<V> Drop for Bucket<V> {
    fn drop(&mut self) {
        for slot in self.used(None) {
            self.slots[slot].set(None);
        }
    }
}

fn is_main(word: u64, slot: usize) -> bool {
    word >> (MAIN_SHIFT + slot as u32) & 1 == 1
}

/// Returns whether the entry is the one that was asked for: a tag is eight bits of a hash.
#[inline]
fn is_named<V>(entry: &Entry<V>, key: CacheKey) -> bool {
    entry.key == key || seeded(Bug::CacheTagAlone)
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotIndex {
    pub(crate) bucket: usize,
    pub(crate) slot: usize,
}

pub(crate) struct Table<V> {
    /// Buckets of the first segment are two to this power.
    first_bits: u32,
    grows: bool,
    mask: AtomicUsize,
    segments: [OnceLock<Box<[Bucket<V>]>>; SEGMENTS],
}

fn segment<V>(buckets: usize) -> Box<[Bucket<V>]> {
    (0..buckets).map(|_| Bucket::new()).collect()
}

impl<V> Table<V> {
    /// A table of two to the power of `first_bits` buckets.
    pub(crate) fn new(first_bits: u32, grows: bool) -> Self {
        let segments = std::array::from_fn(|_| OnceLock::new());
        let _ = segments[0].set(segment(1 << first_bits));
        Table {
            first_bits,
            grows,
            mask: AtomicUsize::new((1 << first_bits) - 1),
            segments,
        }
    }

    /// The number of buckets.
    pub(crate) fn len(&self) -> usize {
        self.mask.load(Ordering::Relaxed) + 1
    }

    /// Bytes of all segments.
    pub(crate) fn memory(&self) -> usize {
        self.len() * size_of::<Bucket<V>>()
    }

    #[inline]
    pub(crate) fn bucket(&self, i: usize) -> &Bucket<V> {
        let (number, at) = match (i >> self.first_bits).checked_ilog2() {
            None => (0, i),
            Some(n) => (n as usize + 1, i - (1 << (self.first_bits + n))),
        };
        &self.segments[number].get().expect(EXISTS)[at]
    }

    /// The entry of `key`. Takes no lock.
    #[inline]
    pub(crate) fn find(&self, key: CacheKey, hash: u64) -> Option<Arc<Entry<V>>> {
        self.search(hash, |slot| slot.get_if(|e| is_named(e, key)))
    }

    /// Finds the entry for a short look.
    #[inline]
    pub(crate) fn glimpse(&self, key: CacheKey, hash: u64) -> Option<SlotGuard<Entry<V>>> {
        self.search(hash, |slot| slot.guard_if(|e| is_named(e, key)))
    }

    #[inline(always)]
    fn search<R>(
        &self,
        hash: u64,
        mut take: impl FnMut(&Slot<Entry<V>>) -> Option<R>,
    ) -> Option<R> {
        let (a, b) = homes(hash);
        let tag = tag(hash);
        let mut mask = self.mask.load(Ordering::Acquire);
        loop {
            let found = self.bucket(a & mask).find(tag, &mut take);
            let found = found.or_else(|| self.bucket(b & mask).find(tag, &mut take));
            if found.is_some() {
                return found;
            }
            // The table may have grown meanwhile.
            let now = self.mask.load(Ordering::Acquire);
            if now == mask {
                return None;
            }
            mask = now;
        }
    }

    /// Where `key` stands.
    pub(crate) fn locate(&self, key: CacheKey, hash: u64) -> Option<SlotIndex> {
        self.buckets_of(hash).into_iter().find_map(|bucket| {
            let b = self.bucket(bucket);
            let slot = slots_of(equal(b.word.load(Ordering::Relaxed), tag(hash)))
                .find(|&slot| b.view(slot, |e| e.key == key) == Some(true))?;
            Some(SlotIndex { bucket, slot })
        })
    }

    /// The buckets in which an entry of this hash may stand.
    pub(crate) fn buckets_of(&self, hash: u64) -> [usize; 2] {
        let mask = self.mask.load(Ordering::Relaxed);
        let (a, b) = homes(hash);
        [a & mask, b & mask]
    }

    /// Puts an entry into one of its buckets; false when both are full.
    pub(crate) fn put(&self, entry: &Arc<Entry<V>>, hash: u64, main: bool) -> bool {
        let [a, b] = self.buckets_of(hash).map(|i| self.bucket(i));
        let (in_a, in_b) = (a.empty(), b.empty());
        let (bucket, empty) = if in_a.count_ones() >= in_b.count_ones() {
            (a, in_a)
        } else {
            (b, in_b)
        };
        let Some(slot) = slots_of(empty).next() else {
            return false;
        };
        bucket.put(slot, Arc::clone(entry), tag(hash), main);
        true
    }

    /// Takes the entry out.
    pub(crate) fn take(&self, place: SlotIndex) -> Option<Arc<Entry<V>>> {
        self.bucket(place.bucket).take(place.slot)
    }

    /// Doubles the table, while hits go on; false where it may not grow.
    pub(crate) fn grow(&self) -> bool {
        let len = self.len();
        let number = (len >> self.first_bits).ilog2() as usize + 1;
        let Some(place) = self.segments.get(number).filter(|_| self.grows) else {
            return false;
        };
        let fresh = segment(len);
        let mut moved = Vec::new();
        for (i, to) in fresh.iter().enumerate() {
            let from = self.bucket(i);
            for slot in from.used(None) {
                let Some(entry) = from.get(slot) else {
                    continue;
                };
                let hash = entry.key.hash();
                let (a, b) = homes(hash);
                let home = if a & (len - 1) == i { a } else { b };
                if home & len != 0 {
                    to.put(slot, entry, tag(hash), from.is_main(slot));
                    moved.push(SlotIndex { bucket: i, slot });
                }
            }
        }
        if place.set(fresh).is_err() {
            return false;
        }
        self.mask.store(2 * len - 1, Ordering::Release);
        // Each is in both places until here, so that readers with either mask find it.
        for place in moved {
            self.take(place);
        }
        true
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket<u64>>() == 64);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_exactly() {
        let word = 0x7f_01_00_80_ff_01_00_02;
        let of = |tag| slots_of(equal(word, tag)).collect::<Vec<_>>();
        assert_eq!(of(0), [1, 5]);
        assert_eq!(of(1), [2, 6]);
        assert_eq!([of(2), of(0x80), of(0xff)], [[0], [4], [3]]);
        assert_eq!(of(0x7f), Vec::<usize>::new());
    }
}
