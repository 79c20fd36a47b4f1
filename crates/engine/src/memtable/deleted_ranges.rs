//! Ranges that readers found deleted, kept with the memtable that takes writes so that later
//! readers go past them at once ([`esker_lsm::visible::KnownRanges`]).
//!
//! A range says: a reader of this view, or a later one, as of this sequence number or a later one,
//! sees nothing in it. What could make that untrue:
//!
//! - **A later write.** It goes into this memtable or a later one, and each writer of something
//!   else than a deletion marks the range that holds its key. It adds the entry and then looks
//!   for ranges; a reader publishes the range, not to be used yet, and then looks for such entries.
//!   There is a full fence between both steps of either, so one of them sees the other. The writer
//!   marks before its group is published: who sees the entry sees the mark.
//! - **An older sequence number, or an older view**, which may show what a filter or an old file
//!   had. These readers do not use the range.
//! - **A newer entry that the reader did not see.** One in this memtable is looked for; in a table
//!   it is from a file that was ingested after the reader's snapshot: then nothing is kept.
//! - **Files that come or go by themselves.** Ingestions and deletions of whole files are counted;
//!   a range serves readers of the same count ([`crate::family::Family::view_and_epoch`]).
//!
//! A range that grew has the marks of all that it was made of, since writers may still hold the
//! list with those. The next memtable takes the ranges over while no write is in flight: a switch
//! makes no difference to readers.
//!
//! Thread-safety: any thread does anything. Readers and writers take no lock; of two threads that
//! have a range to keep one gives it up.

use esker_format::KeyOrder;
use esker_lsm::visible::{DeletedRange, FoundRange, KnownRanges, ReaderPlace};
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicBool, Ordering, fence};
use esker_sync::{Arc, ArcSwap, Mutex, Rank};

const MOST_RANGES: usize = 4096;
/// Most ranges of a piece. A new range copies one piece and the pointers to the others.
const PIECE_MOST: usize = 64;
/// A range is made of so many others that writers may mark.
const MOST_MARKS: usize = 4;

/// A range and for whom it is.
#[derive(Debug)]
struct KeptRange {
    range: Arc<DeletedRange>,
    place: ReaderPlace,
    /// No write came beside it.
    is_checked: AtomicBool,
    /// One of them is set: something was written into it.
    marks: Vec<Arc<AtomicBool>>,
}

impl KeptRange {
    fn is_written(&self) -> bool {
        self.marks.iter().any(|mark| mark.load(Ordering::SeqCst))
    }

    fn is_usable(&self) -> bool {
        self.is_checked.load(Ordering::Acquire) && !self.is_written()
    }
}

/// Neighbouring ranges of a list, in order; at least one.
#[derive(Debug)]
struct RangePiece {
    ranges: Vec<Arc<KeptRange>>,
    /// How all ranges begin and end; then the next eight bytes of the end of each, where keys are
    /// in plain byte order.
    prefix: Vec<u8>,
    heads: Vec<u64>,
}

/// The first bytes of a key, in its order.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let n = key.len().min(8);
    bytes[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(bytes)
}

impl RangePiece {
    fn new(ranges: Vec<Arc<KeptRange>>, order: &KeyOrder) -> Self {
        let ends = (ranges.first(), ranges.last());
        let (Some(first), Some(last), true) = (ends.0, ends.1, order.is_bytewise()) else {
            return RangePiece {
                ranges,
                prefix: Vec::new(),
                heads: Vec::new(),
            };
        };
        let pairs = first.range.begin.iter().zip(&last.range.end);
        let same = pairs.take_while(|(a, b)| a == b).count();
        let prefix = first.range.begin[..same].to_vec();
        let heads = ranges.iter().map(|kept| head(&kept.range.end[same..]));
        RangePiece {
            heads: heads.collect(),
            prefix,
            ranges,
        }
    }

    /// The index of the first range that ends after `key`.
    fn first_ending_after(&self, key: &[u8], order: &KeyOrder) -> usize {
        let is_before = |kept: &Arc<KeptRange>| order.compare(&kept.range.end, key).is_le();
        let Some(rest) = key.strip_prefix(self.prefix.as_slice()) else {
            return self.ranges.partition_point(is_before);
        };
        if self.heads.is_empty() {
            return self.ranges.partition_point(is_before);
        }
        let head = head(rest);
        let from = self.heads.partition_point(|end| *end < head);
        let upto = self.heads.partition_point(|end| *end <= head);
        from + self.ranges[from..upto].partition_point(is_before)
    }

    fn begins_before(&self, key: &[u8], order: &KeyOrder) -> bool {
        let first = self.ranges.first();
        first.is_some_and(|kept| order.compare(&kept.range.begin, key).is_lt())
    }

    fn ends_after(&self, key: &[u8], order: &KeyOrder) -> bool {
        let last = self.ranges.last();
        last.is_some_and(|kept| order.compare(&kept.range.end, key).is_gt())
    }
}

/// Ranges in order; none overlaps another.
#[derive(Debug, Default)]
struct RangeList {
    pieces: Vec<Arc<RangePiece>>,
}

impl RangeList {
    fn new(ranges: &[Arc<KeptRange>], order: &KeyOrder) -> Self {
        let pieces = ranges.chunks(PIECE_MOST);
        let pieces = pieces.map(|part| Arc::new(RangePiece::new(part.to_vec(), order)));
        RangeList {
            pieces: pieces.collect(),
        }
    }

    fn ranges(&self) -> impl Iterator<Item = &Arc<KeptRange>> {
        self.pieces.iter().flat_map(|piece| &piece.ranges)
    }

    /// The index of the first piece that ends after `key`.
    fn first_piece(&self, key: &[u8], order: &KeyOrder) -> usize {
        self.pieces
            .partition_point(|piece| !piece.ends_after(key, order))
    }

    fn holding(&self, key: &[u8], order: &KeyOrder) -> Option<&Arc<KeptRange>> {
        let piece = self.pieces.get(self.first_piece(key, order))?;
        let kept = piece.ranges.get(piece.first_ending_after(key, order))?;
        let begins = order.compare(&kept.range.begin, key).is_le();
        begins.then_some(kept)
    }

    /// The pieces that a range overlaps, or the one that a range between pieces goes into.
    fn touched(&self, range: &DeletedRange, order: &KeyOrder) -> std::ops::Range<usize> {
        let first = self.first_piece(&range.begin, order);
        let overlapped = self.pieces[first..]
            .iter()
            .take_while(|piece| piece.begins_before(&range.end, order));
        match overlapped.count() {
            0 => {
                let first = first.min(self.pieces.len().saturating_sub(1));
                first..self.pieces.len().min(first + 1)
            }
            count => first..first + count,
        }
    }

    /// The list with the ranges of the pieces `at` replaced.
    fn replaced(
        &self,
        at: std::ops::Range<usize>,
        ranges: &[Arc<KeptRange>],
        order: &KeyOrder,
    ) -> Self {
        let parts = ranges.len().div_ceil(PIECE_MOST).max(1);
        let new = ranges.chunks(ranges.len().div_ceil(parts).max(1));
        let new = new.map(|part| Arc::new(RangePiece::new(part.to_vec(), order)));
        let mut pieces = Vec::with_capacity(self.pieces.len() + 1);
        pieces.extend_from_slice(&self.pieces[..at.start]);
        pieces.extend(new);
        pieces.extend_from_slice(&self.pieces[at.end..]);
        RangeList { pieces }
    }
}

/// The ranges of one memtable.
#[derive(Debug)]
pub(super) struct DeletedRanges {
    order: KeyOrder,
    /// Set before the first range is there.
    is_any: AtomicBool,
    list: ArcSwap<RangeList>,
    changing: Mutex<()>,
}

impl DeletedRanges {
    pub(super) fn new(order: &KeyOrder) -> Self {
        DeletedRanges {
            order: order.clone(),
            is_any: AtomicBool::new(false),
            list: ArcSwap::from_pointee(RangeList::default()),
            changing: Mutex::new(Rank::LEAF, ()),
        }
    }

    /// An entry of `key` that is no deletion was added, and is not published yet.
    #[inline]
    pub(super) fn note_write(&self, key: &[u8]) {
        if self.is_any.load(Ordering::SeqCst) {
            self.mark(key);
        }
    }

    #[inline(never)]
    fn mark(&self, key: &[u8]) {
        fence(Ordering::SeqCst);
        if seeded(Bug::DeletedRangeKept) {
            return;
        }
        let list = self.list.load();
        if let Some(mark) = list
            .holding(key, &self.order)
            .and_then(|kept| kept.marks.first())
        {
            mark.store(true, Ordering::SeqCst);
        }
    }

    /// Keeps a range in which a reader saw nothing. `is_clean` says whether nothing else
    /// than deletions was written after that between two keys.
    pub(super) fn keep(&self, found: &FoundRange, is_clean: impl Fn(&[u8], &[u8]) -> bool) {
        let place = &found.place;
        let Some(_changing) = self.changing.try_lock() else {
            return;
        };
        let old = self.list.load_full();
        let Some(kept) = self.joined(&old, place, found) else {
            return;
        };
        let kept = Arc::new(kept);
        self.publish(&old, place, &found.range, Some(&kept));
        fence(Ordering::SeqCst);
        if self
            .unknown_parts(found)
            .all(|(begin, end)| is_clean(begin, end))
        {
            kept.is_checked.store(true, Ordering::Release);
        } else {
            // Without those that it was made of, too: their marks may be at it.
            self.publish(&old, place, &found.range, None);
        }
    }

    /// The range as it is to be kept; none where another one says as much, or is in the way.
    fn joined(
        &self,
        list: &RangeList,
        place: &ReaderPlace,
        found: &FoundRange,
    ) -> Option<KeptRange> {
        let range = &found.range;
        let mut marks: Vec<Arc<AtomicBool>> = Vec::new();
        for known in &found.known {
            let kept = list.holding(&known.begin, &self.order);
            let kept = kept.filter(|kept| Arc::ptr_eq(&kept.range, known) && kept.is_usable())?;
            let new = kept.marks.iter().filter(|m| {
                let is_same = |mark: &Arc<AtomicBool>| Arc::ptr_eq(mark, m);
                !marks.iter().any(is_same)
            });
            let new: Vec<_> = new.cloned().collect();
            marks.extend(new);
        }
        if marks.is_empty() {
            marks.push(Arc::new(AtomicBool::new(false)));
        }
        let touched = &list.pieces[list.touched(range, &self.order)];
        let touched = touched.iter().flat_map(|piece| &piece.ranges);
        let mut overlapped = touched
            .clone()
            .filter(|kept| self.is_overlapping(&kept.range, range));
        let gives_way = |kept: &Arc<KeptRange>| {
            let is_inside = self.order.compare(&kept.range.begin, &range.begin).is_ge()
                && self.order.compare(&kept.range.end, &range.end).is_le();
            !kept.is_usable()
                || kept.place.epoch != place.epoch
                || (is_inside && kept.place.snapshot <= place.snapshot)
        };
        let is_free = overlapped.clone().all(gives_way);
        let count: usize = list.pieces.iter().map(|piece| piece.ranges.len()).sum();
        let is_room = count < MOST_RANGES
            || overlapped.next().is_some()
            || touched.clone().any(|kept| !self.is_of_use(kept, place));
        (is_free && is_room && marks.len() <= MOST_MARKS).then(|| KeptRange {
            range: Arc::new(range.clone()),
            place: *place,
            is_checked: AtomicBool::new(false),
            marks,
        })
    }

    fn is_overlapping(&self, a: &DeletedRange, b: &DeletedRange) -> bool {
        self.order.compare(&a.begin, &b.end).is_lt() && self.order.compare(&b.begin, &a.end).is_lt()
    }

    /// Returns whether later readers can use a range.
    fn is_of_use(&self, kept: &KeptRange, place: &ReaderPlace) -> bool {
        kept.is_usable() && kept.place.epoch == place.epoch
    }

    /// Publishes the ranges of `old` that are not in `range`, with `kept`. Those beside it that are
    /// of no use are left out; others stay until a range comes to their piece.
    fn publish(
        &self,
        old: &RangeList,
        place: &ReaderPlace,
        range: &DeletedRange,
        kept: Option<&Arc<KeptRange>>,
    ) {
        let at = old.touched(range, &self.order);
        let touched = old.pieces[at.clone()]
            .iter()
            .flat_map(|piece| &piece.ranges);
        let stays = |other: &&Arc<KeptRange>| {
            !self.is_overlapping(&other.range, range) && self.is_of_use(other, place)
        };
        let mut ranges: Vec<_> = touched.filter(stays).cloned().collect();
        if let Some(kept) = kept {
            let is_before = |other: &Arc<KeptRange>| {
                let end = &other.range.end;
                self.order.compare(end, &range.begin).is_le()
            };
            ranges.insert(ranges.partition_point(is_before), Arc::clone(kept));
        }
        let list = old.replaced(at, &ranges, &self.order);
        self.is_any.store(true, Ordering::SeqCst);
        self.list.store(Arc::new(list));
    }

    /// The parts of a range that no known one has.
    fn unknown_parts<'a>(
        &self,
        found: &'a FoundRange,
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut known: Vec<&DeletedRange> = found.known.iter().map(|known| &**known).collect();
        known.sort_by(|a, b| self.order.compare(&a.begin, &b.begin));
        let mut parts = Vec::with_capacity(known.len() + 1);
        let mut begin = found.range.begin.as_slice();
        for range in known {
            if self.order.compare(begin, &range.begin).is_lt() {
                parts.push((begin, range.begin.as_slice()));
            }
            begin = range.end.as_slice();
        }
        if self.order.compare(begin, &found.range.end).is_lt() {
            parts.push((begin, found.range.end.as_slice()));
        }
        parts.into_iter()
    }

    /// Takes over the ranges of the memtable before, which takes no writes any more.
    pub(super) fn take_over(&self, before: &DeletedRanges) {
        if !before.is_any.load(Ordering::SeqCst) {
            return;
        }
        let list = before.list.load();
        let usable = list.ranges().filter(|kept| kept.is_usable());
        let usable: Vec<_> = usable.cloned().collect();
        let list = RangeList::new(&usable, &self.order);
        self.is_any.store(true, Ordering::SeqCst);
        self.list.store(Arc::new(list));
    }
}

impl KnownRanges for DeletedRanges {
    #[inline]
    fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    fn covering(&self, key: &[u8], reader: &ReaderPlace) -> Option<Arc<DeletedRange>> {
        let list = self.list.load();
        let kept = list.holding(key, &self.order)?;
        let place = &kept.place;
        let is_later = place.snapshot <= reader.snapshot;
        let serves = is_later && place.view <= reader.view && place.epoch == reader.epoch;
        (serves && kept.is_usable()).then(|| Arc::clone(&kept.range))
    }
}

#[cfg(test)]
mod tests;
