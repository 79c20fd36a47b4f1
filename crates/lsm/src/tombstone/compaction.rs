//! The range deletions of a compaction's inputs: what they drop, and what each output file holds of
//! them.
//!
//! An entry may be dropped when a tombstone above it lies in the same snapshot stripe, that is,
//! when no snapshot sees the entry without the tombstone. The tombstones themselves are written to
//! every output file over the part of the key space that the file answers for: from where the
//! previous file was cut to where this one is. A file's boundaries then cover its points and its
//! share of the tombstones, and the boundary at a cut is the exclusive sentinel of the next file's
//! first user key, so that files of a level never overlap.
//!
//! With timestamps only deletions below `full_history_ts_low` drop anything, and only these go in
//! the end: a read at an older timestamp than a deletion's needs what it covers. Everything
//! here is cut at bare keys.
//!
//! Owned by one sub-compaction; not shared between threads.

use super::{ClippedTombstones, Fragment, FragmentedTombstones};
use esker_format::key::user_key;
use esker_format::{InternalKey, KeyOrder, RawTombstone, Seq, ValueType, timestamp};
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};
use std::sync::Arc;

/// The boundaries of a file's point entries, as internal keys, and their sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePoints {
    /// The first entry's key.
    pub smallest: InternalKey,
    /// The last entry's key.
    pub largest: InternalKey,
    /// The smallest sequence of any entry.
    pub smallest_seq: Seq,
    /// The largest sequence of any entry.
    pub largest_seq: Seq,
}

/// The boundaries of a file with its tombstones, as the MANIFEST holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputBounds {
    /// At or before everything in the file.
    pub smallest: InternalKey,
    /// At or after everything in the file.
    pub largest: InternalKey,
    /// The smallest sequence of any entry or tombstone.
    pub smallest_seq: Seq,
    /// The largest sequence of any entry or tombstone.
    pub largest_seq: Seq,
}

/// Answers a question about the user keys in `[first, second)`.
pub type RangeProbe<'a> = dyn FnMut(&[u8], &[u8]) -> bool + 'a;

/// When a tombstone need not be written any more.
pub struct DropRules<'a> {
    /// True if nothing lies below the output level in the compaction's range.
    pub bottommost: bool,
    /// Tells whether no level below the output holds a key in the range (start, exclusive end).
    pub range_not_exists_beyond: Option<&'a mut RangeProbe<'a>>,
}

/// The tombstones of a compaction, or of a flush.
pub struct CompactionTombstones {
    order: KeyOrder,
    all: Arc<FragmentedTombstones>,
    snapshots: Vec<Seq>,
    /// In orders with timestamps: deletions below it count for every reader.
    history_from: Option<Vec<u8>>,
    at: usize,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    /// The sentinel that ended the previous file, or the limit of the sub-compaction.
    cut: Option<Vec<u8>>,
    /// How many tombstones were dropped as obsolete.
    pub dropped_obsolete: u64,
}

impl CompactionTombstones {
    /// From the inputs' tombstones, each limited to its file, and the snapshots (ascending).
    pub fn new(inputs: &[ClippedTombstones], order: &KeyOrder, snapshots: &[Seq]) -> Result<Self> {
        let mut raw: Vec<RawTombstone> = Vec::new();
        for input in inputs {
            for fragment in input.fragments().iter() {
                push_clipped(&mut raw, input, fragment, order);
            }
        }
        Ok(CompactionTombstones {
            order: order.clone(),
            all: FragmentedTombstones::new(&raw, order)?,
            snapshots: snapshots.to_vec(),
            history_from: None,
            at: 0,
            low: None,
            high: None,
            cut: None,
            dropped_obsolete: 0,
        })
    }

    /// There are no reads at timestamps below `low`.
    #[must_use]
    pub fn with_history_from(mut self, low: Option<&[u8]>) -> Self {
        self.history_from = low.map(<[u8]>::to_vec);
        self
    }

    /// Limits the output to user keys in `[low, high)`: for sub-compactions.
    pub fn restrict(&mut self, low: Option<&[u8]>, high: Option<&[u8]>) {
        self.low = low.map(|user| self.edge(user));
        self.high = high.map(|user| self.edge(user));
        self.cut.clone_from(&self.low);
    }

    /// The place before every version of a key.
    fn edge(&self, user: &[u8]) -> Vec<u8> {
        let size = self.order.timestamp_size();
        let mut edge = user.to_vec();
        edge.truncate(user.len().saturating_sub(size));
        edge.resize(edge.len() + size, timestamp::GREATEST);
        edge
    }

    /// Returns whether every reader is past the timestamp of a deletion.
    fn is_history(&self, at: &[u8]) -> bool {
        let low = self.history_from.as_deref();
        at.is_empty() || low.is_some_and(|low| self.order.compare_timestamp(at, low).is_lt())
    }

    /// Returns whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All fragments of the inputs.
    pub fn fragments(&self) -> &FragmentedTombstones {
        &self.all
    }

    /// The newest sequence that sees no other state than `seq` does: the first snapshot at or after
    /// it.
    fn stripe_end(&self, seq: Seq) -> Seq {
        let i = self.snapshots.partition_point(|s| *s < seq);
        self.snapshots.get(i).copied().unwrap_or(Seq::MAX)
    }

    /// Returns whether version `seq` of `user` is deleted for every snapshot that could see it.
    /// Cheapest when asked in ascending order of keys.
    #[inline]
    pub fn should_drop(&mut self, user: &[u8], seq: Seq) -> bool {
        if self.all.is_empty() {
            false
        } else {
            self.should_drop_slow(user, seq)
        }
    }

    fn should_drop_slow(&mut self, user: &[u8], seq: Seq) -> bool {
        let ends_before = |i: usize| self.order.compare(self.all.get(i).end, user).is_le();
        if self.at > 0 && !ends_before(self.at - 1) {
            self.at = self.all.first_ending_after(user);
        }
        let mut steps = 0;
        while self.at < self.all.len()
            && self.order.compare(self.all.get(self.at).end, user).is_le()
        {
            steps += 1;
            if steps > 8 {
                self.at = self.all.first_ending_after(user);
                break;
            }
            self.at += 1;
        }
        if self.at == self.all.len() {
            return false;
        }
        let fragment = self.all.get(self.at);
        if self.order.compare(fragment.start, user).is_gt() {
            return false;
        }
        // Sequences descend: the oldest deletion above the entry is the last one greater than it.
        let above = match fragment.seqs.partition_point(|s| *s > seq) {
            0 => return seeded(Bug::RangeOverNewer),
            above => above,
        };
        let end = self.stripe_end(seq);
        let mut of_stripe = (0..above).rev().take_while(|i| fragment.seqs[*i] <= end);
        of_stripe.any(|i| self.is_history(fragment.timestamp(i)))
    }

    /// Returns whether a file that ends before `next_key` (`None`: the last one) would hold any
    /// tombstone, points or not.
    pub fn has_pending(&self, next_key: Option<&[u8]>) -> bool {
        let next = next_key.map(|key| self.edge(user_key(key)));
        let end = next.as_deref().or(self.high.as_deref());
        let first = self
            .cut
            .as_deref()
            .map_or(0, |c| self.all.first_ending_after(c));
        first < self.all.len()
            && end.is_none_or(|e| self.order.compare(self.all.get(first).start, e).is_lt())
    }

    /// Ends an output file: hands its tombstones to `add` (sorted by start, then newest first) and
    /// returns its boundaries; `None` when the file holds nothing at all.
    ///
    /// `points` are the boundaries of the file's entries, if it has any; `next_key` is the internal
    /// key of the first entry of the next file, `None` for the last file. Call it once for each
    /// output file, in order.
    pub fn finish_file(
        &mut self,
        points: Option<&FilePoints>,
        next_key: Option<&[u8]>,
        rules: &mut DropRules<'_>,
        mut add: impl FnMut(&[u8], &[u8], Seq) -> Result<()>,
    ) -> Result<Option<OutputBounds>> {
        let mut bounds = points.map(|p| OutputBounds {
            smallest: p.smallest.clone(),
            largest: p.largest.clone(),
            smallest_seq: p.smallest_seq,
            largest_seq: p.largest_seq,
        });
        let all = Arc::clone(&self.all);
        let next_user = next_key.map(user_key);
        // A cut inside the versions of one user key: this file's part ends with its last entry, but
        // the tombstones it stores go past that key.
        let split = match (points, next_user) {
            (Some(p), Some(next)) => self.is_one_key(p.largest.user(), next),
            _ => false,
        };
        let next_edge = next_user.map(|user| self.edge(user));
        let end = next_edge.clone().or_else(|| self.high.clone());
        let first = self.cut.as_deref().map_or(0, |c| all.first_ending_after(c));
        for i in first..all.len() {
            let fragment = all.get(i);
            let start = later(&self.order, fragment.start, self.cut.as_deref());
            let starts = end
                .as_deref()
                .map_or(std::cmp::Ordering::Less, |e| self.order.compare(start, e));
            if starts.is_gt() || (starts.is_eq() && !split) {
                break;
            }
            let stop = match (&end, split) {
                (Some(e), false) => earlier(&self.order, fragment.end, e),
                _ => match &self.high {
                    Some(h) => earlier(&self.order, fragment.end, h),
                    None => fragment.end,
                },
            };
            let mut stripe = None;
            for (seq, at) in fragment.deletions() {
                // Of several deletions in one stripe only the newest can be seen, once it is
                // history.
                let this = self.stripe_end(seq);
                if stripe == Some(this) {
                    continue;
                }
                stripe = self.is_history(at).then_some(this);
                if self.is_obsolete((start, stop), (seq, at), rules) {
                    self.dropped_obsolete += 1;
                    continue;
                }
                let wide = split.then_some(points).flatten().map(|p| &p.largest);
                let (stored_start, stored_stop) = (stamped(start, at), stamped(stop, at));
                let Some((from, to)) = self.span(&stored_start, stop, seq, points, wide) else {
                    continue;
                };
                add(&stored_start, &stored_stop, seq)?;
                widen(&mut bounds, &self.order, from, to, seq);
            }
        }
        if next_edge.is_some() {
            self.cut = next_edge;
        }
        Ok(bounds)
    }

    /// The internal keys that a tombstone adds to the file's boundaries; `None` when it has no part
    /// in the file.
    fn span(
        &self,
        start: &[u8],
        stop: &[u8],
        seq: Seq,
        points: Option<&FilePoints>,
        split_at: Option<&InternalKey>,
    ) -> Option<(InternalKey, InternalKey)> {
        let mut from = InternalKey::new(start, seq, ValueType::RangeDeletion);
        // The previous file ended inside this user key: everything before this file's first entry
        // is its.
        if let (Some(p), Some(cut)) = (points, self.cut.as_deref()) {
            let continues = self.is_one_key(cut, p.smallest.user()) && self.is_one_key(start, cut);
            if continues
                && self
                    .order
                    .compare_internal(from.as_bytes(), p.smallest.as_bytes())
                    .is_lt()
            {
                from = p.smallest.clone();
            }
        }
        let mut to = InternalKey::range_end_sentinel(stop);
        if let Some(largest) = split_at {
            if self
                .order
                .compare_internal(from.as_bytes(), largest.as_bytes())
                .is_gt()
            {
                return None;
            }
            if self
                .order
                .compare_internal(to.as_bytes(), largest.as_bytes())
                .is_gt()
            {
                to = largest.clone();
            }
        }
        Some((from, to))
    }

    /// Returns whether two user keys differ in their timestamps at most.
    fn is_one_key(&self, a: &[u8], b: &[u8]) -> bool {
        self.order.compare_without_timestamp(a, b).is_eq()
    }

    fn is_obsolete(
        &self,
        (start, stop): (&[u8], &[u8]),
        (seq, at): (Seq, &[u8]),
        rules: &mut DropRules<'_>,
    ) -> bool {
        let is_seen = |earliest: &Seq| seq > *earliest;
        if self.snapshots.first().is_some_and(is_seen) || !self.is_history(at) {
            return false;
        }
        rules.bottommost
            || rules
                .range_not_exists_beyond
                .as_mut()
                .is_some_and(|gone| gone(start, stop))
    }
}

/// A place between keys as a deletion at timestamp `at` stores it.
fn stamped(edge: &[u8], at: &[u8]) -> Vec<u8> {
    let mut key = edge.to_vec();
    key.truncate(edge.len().saturating_sub(at.len()));
    key.extend_from_slice(at);
    key
}

/// Adds a fragment's deletions, limited to the file that they come from.
fn push_clipped(
    raw: &mut Vec<RawTombstone>,
    input: &ClippedTombstones,
    fragment: Fragment<'_>,
    order: &KeyOrder,
) {
    let mut start = fragment.start.to_vec();
    let mut end = fragment.end.to_vec();
    if let Some(clip) = input.clip() {
        if order.compare(&start, &clip.low).is_lt() {
            start.clone_from(&clip.low);
        }
        if order.compare(&clip.high, &end).is_lt() {
            end.clone_from(&clip.high);
            // The last key itself is covered too. Where the order has no next key to name, the file
            // that continues the key is among the inputs and covers it.
            if clip.high_inclusive && order.is_bytewise_without_timestamp() {
                end.insert(end.len() - order.timestamp_size(), 0);
            }
        }
    }
    if order.compare(&start, &end).is_lt() {
        raw.extend(fragment.deletions().map(|(seq, at)| RawTombstone {
            start: stamped(&start, at),
            end: stamped(&end, at),
            seq,
        }));
    }
}

fn later<'a>(order: &KeyOrder, a: &'a [u8], b: Option<&'a [u8]>) -> &'a [u8] {
    match b {
        Some(b) if order.compare(b, a).is_gt() => b,
        _ => a,
    }
}

fn earlier<'a>(order: &KeyOrder, a: &'a [u8], b: &'a [u8]) -> &'a [u8] {
    if order.compare(b, a).is_lt() { b } else { a }
}

fn widen(
    bounds: &mut Option<OutputBounds>,
    order: &KeyOrder,
    from: InternalKey,
    to: InternalKey,
    seq: Seq,
) {
    match bounds {
        None => {
            *bounds = Some(OutputBounds {
                smallest: from,
                largest: to,
                smallest_seq: seq,
                largest_seq: seq,
            });
        }
        Some(b) => {
            if order
                .compare_internal(from.as_bytes(), b.smallest.as_bytes())
                .is_lt()
            {
                b.smallest = from;
            }
            if order
                .compare_internal(to.as_bytes(), b.largest.as_bytes())
                .is_gt()
            {
                b.largest = to;
            }
            b.smallest_seq = b.smallest_seq.min(seq);
            b.largest_seq = b.largest_seq.max(seq);
        }
    }
}
