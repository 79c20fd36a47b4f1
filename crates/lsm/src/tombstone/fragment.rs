//! Overlapping, unsorted tombstones cut into disjoint sorted fragments.
//!
//! Invariants: fragments ascend and do not overlap; each has at least one deletion, newest first,
//! without repeats; neighbours that touch differ in their deletions. Keys live in one buffer.
//!
//! With timestamps a stored range ends each of its two keys with the timestamp of the deletion. The
//! range itself is one of keys without timestamps: all versions of a key are in it or none. So
//! fragments are cut at bare keys, which get the greatest timestamp: that is before every version.
//! Each deletion of a fragment keeps its own timestamp, and a reader sees those that are not above
//! its own.

use esker_format::{KeyOrder, RawTombstone, Seq, timestamp};
use esker_status::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct EncodedFragment {
    start: Range<u32>,
    end: Range<u32>,
    seqs: Range<u32>,
}

/// A range and the writes that deleted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The first user key of the range.
    pub start: &'a [u8],
    /// The first user key after it.
    pub end: &'a [u8],
    /// The deletions, newest first.
    pub seqs: &'a [Seq],
    /// Their timestamps, one after the other.
    timestamps: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The timestamp of deletion `i`; empty in orders without.
    pub fn timestamp(&self, i: usize) -> &'a [u8] {
        let size = self.timestamps.len() / self.seqs.len().max(1);
        &self.timestamps[i * size..(i + 1) * size]
    }

    /// The deletions with their timestamps, newest first.
    pub fn deletions(&self) -> impl Iterator<Item = (Seq, &'a [u8])> + use<'a> {
        let whole = *self;
        let seqs = self.seqs.iter().enumerate();
        seqs.map(move |(i, seq)| (*seq, whole.timestamp(i)))
    }

    /// Which deletion is the newest that a reader at `snapshot` and `timestamp` sees.
    #[inline]
    fn visible(&self, order: &KeyOrder, snapshot: Seq, timestamp: &[u8]) -> Option<usize> {
        let at = match self.seqs.first() {
            Some(newest) if *newest <= snapshot => 0,
            _ => self.seqs.partition_point(|s| *s > snapshot),
        };
        if self.timestamps.is_empty() {
            return (at < self.seqs.len()).then_some(at);
        }
        let is_seen = |i: &usize| {
            order
                .compare_timestamp(self.timestamp(*i), timestamp)
                .is_le()
        };
        (at..self.seqs.len()).find(is_seen)
    }

    /// Its sequence; zero for none.
    #[inline]
    pub fn visible_seq(&self, order: &KeyOrder, snapshot: Seq, timestamp: &[u8]) -> Seq {
        let visible = self.visible(order, snapshot, timestamp);
        visible.map_or(Seq::ZERO, |i| self.seqs[i])
    }
}

/// The range deletions of one source, ready for lookups. Immutable.
#[derive(Debug)]
pub struct FragmentedTombstones {
    order: KeyOrder,
    bytes: Vec<u8>,
    pieces: Vec<EncodedFragment>,
    seqs: Vec<Seq>,
    /// The timestamps of `seqs`, one after the other.
    timestamps: Vec<u8>,
    newest: Seq,
    oldest: Seq,
}

/// A deletion: its sequence and its timestamp.
type Deletion<'a> = (Seq, &'a [u8]);

impl FragmentedTombstones {
    /// Cuts `raw` (in any order, overlapping or not; empty ranges are ignored) into fragments.
    ///
    /// `Corruption` for keys without the timestamps that the order has; `InvalidArgument` when the
    /// keys do not fit 4 GiB.
    pub fn new(raw: &[RawTombstone], order: &KeyOrder) -> Result<Arc<Self>> {
        let ranges = raw
            .iter()
            .map(|t| (t.start.as_slice(), t.end.as_slice(), t.seq));
        Self::from_ranges(ranges, order)
    }

    /// Fragments borrowed ranges (start, end, sequence); fails as [`Self::new`] does.
    pub fn from_ranges<'a>(
        ranges: impl IntoIterator<Item = (&'a [u8], &'a [u8], Seq)>,
        order: &KeyOrder,
    ) -> Result<Arc<Self>> {
        let size = order.timestamp_size();
        let mut bare = Vec::new();
        for (start, end, seq) in ranges {
            if start.len() < size || end.len() < size {
                return Err(Error::corruption(
                    "a range deletion is shorter than its timestamp",
                ));
            }
            let deletion = (seq, timestamp::of(start, size));
            let (start, end) = (timestamp::bare(start, size), timestamp::bare(end, size));
            if order.compare_bare(start, end).is_lt() {
                bare.push((start, end, deletion));
            }
        }
        let seqs = || bare.iter().map(|(.., (seq, _))| *seq);
        let mut out = FragmentedTombstones {
            order: order.clone(),
            bytes: Vec::new(),
            pieces: Vec::new(),
            seqs: Vec::new(),
            timestamps: Vec::new(),
            newest: seqs().max().unwrap_or(Seq::ZERO),
            oldest: seqs().min().unwrap_or(Seq::ZERO),
        };
        out.sweep(&bare)?;
        Ok(Arc::new(out))
    }

    /// Walks all boundaries in order and cuts a fragment between each two.
    fn sweep(&mut self, ranges: &[(&[u8], &[u8], Deletion<'_>)]) -> Result<()> {
        let mut edges: Vec<(&[u8], bool, Deletion<'_>)> = Vec::with_capacity(ranges.len() * 2);
        for &(start, end, deletion) in ranges {
            edges.push((start, true, deletion));
            edges.push((end, false, deletion));
        }
        let order = self.order.clone();
        edges.sort_by(|a, b| order.compare_bare(a.0, b.0));
        let comes_before = |a: &Deletion<'_>, b: &Deletion<'_>| {
            a.0 > b.0 || (a.0 == b.0 && order.compare_timestamp(a.1, b.1).is_gt())
        };
        let mut active: Vec<Deletion<'_>> = Vec::new(); // Newest first, repeats kept.
        let mut i = 0;
        while i < edges.len() {
            let from = edges[i].0;
            while i < edges.len() && order.compare_bare(edges[i].0, from).is_eq() {
                let (_, opens, deletion) = edges[i];
                let at = active.partition_point(|d| comes_before(d, &deletion));
                if opens {
                    active.insert(at, deletion);
                } else {
                    // An end can come before the start of an equal sequence at the same key only
                    // when both are of different ranges, so the one that ends is there.
                    match active.get(at) {
                        Some(d) if !comes_before(&deletion, d) => {
                            active.remove(at);
                        }
                        _ => {
                            return Err(Error::corruption(
                                "a range tombstone ends before it starts",
                            ));
                        }
                    }
                }
                i += 1;
            }
            if let (false, Some(next)) = (active.is_empty(), edges.get(i)) {
                self.push(from, next.0, &active)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, start: &[u8], end: &[u8], active: &[Deletion<'_>]) -> Result<()> {
        let (first, size) = (self.seqs.len(), self.order.timestamp_size());
        let mut last: Option<&Deletion<'_>> = None;
        for deletion in active {
            if last != Some(deletion) {
                self.seqs.push(deletion.0);
                self.timestamps.extend_from_slice(deletion.1);
            }
            last = Some(deletion);
        }
        let touches = self.pieces.last().is_some_and(|last| {
            let end = timestamp::bare(self.slice(&last.end), size);
            self.order.compare_bare(end, start).is_eq()
                && self.seqs_of(last) == &self.seqs[first..]
                && self.timestamps_of(last) == &self.timestamps[first * size..]
        });
        if touches {
            self.seqs.truncate(first);
            self.timestamps.truncate(first * size);
            let end = self.store(end)?;
            if let Some(last) = self.pieces.last_mut() {
                last.end = end;
            }
            return Ok(());
        }
        let seqs = index(first)?..index(self.seqs.len())?;
        let (start, end) = (self.store(start)?, self.store(end)?);
        self.pieces.push(EncodedFragment { start, end, seqs });
        Ok(())
    }

    /// Keeps the place before every version of a bare key.
    fn store(&mut self, key: &[u8]) -> Result<Range<u32>> {
        let from = index(self.bytes.len())?;
        self.bytes.extend_from_slice(key);
        let padded = self.bytes.len() + self.order.timestamp_size();
        self.bytes.resize(padded, timestamp::GREATEST);
        Ok(from..index(self.bytes.len())?)
    }

    #[inline]
    fn slice(&self, r: &Range<u32>) -> &[u8] {
        &self.bytes[r.start as usize..r.end as usize]
    }

    #[inline]
    fn seqs_of(&self, p: &EncodedFragment) -> &[Seq] {
        &self.seqs[p.seqs.start as usize..p.seqs.end as usize]
    }

    #[inline]
    fn timestamps_of(&self, p: &EncodedFragment) -> &[u8] {
        let size = self.order.timestamp_size();
        &self.timestamps[p.seqs.start as usize * size..p.seqs.end as usize * size]
    }

    /// Returns whether there is nothing to delete.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How many fragments there are.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The fragment with this index; panics past [`FragmentedTombstones::len`].
    #[inline]
    pub fn get(&self, i: usize) -> Fragment<'_> {
        let p = &self.pieces[i];
        Fragment {
            start: self.slice(&p.start),
            end: self.slice(&p.end),
            seqs: self.seqs_of(p),
            timestamps: self.timestamps_of(p),
        }
    }

    /// The fragments in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Fragment<'_>> + '_ {
        (0..self.pieces.len()).map(|i| self.get(i))
    }

    /// The index of the first fragment that ends after `user`.
    #[inline]
    pub fn first_ending_after(&self, user: &[u8]) -> usize {
        self.pieces
            .partition_point(|p| self.order.compare(self.slice(&p.end), user).is_le())
    }

    /// The fragment that covers `user`.
    #[inline]
    pub fn covering(&self, user: &[u8]) -> Option<Fragment<'_>> {
        let i = self.first_ending_after(user);
        let p = self.pieces.get(i)?;
        self.order
            .compare(self.slice(&p.start), user)
            .is_le()
            .then(|| self.get(i))
    }

    /// The newest deletion of `user` that a reader at `snapshot` sees; zero for none.
    ///
    /// An entry with a smaller sequence is deleted; one with the same sequence is not. The
    /// timestamp of `user` is the one that is read at.
    #[inline]
    pub fn max_covering_seq(&self, user: &[u8], snapshot: Seq) -> Seq {
        let newest = self.newest_covering(user, snapshot);
        newest.map_or(Seq::ZERO, |(seq, _)| seq)
    }

    /// The newest deletion of `user` that a reader at `snapshot` sees, with its timestamp.
    #[inline]
    pub fn newest_covering(&self, user: &[u8], snapshot: Seq) -> Option<(Seq, &[u8])> {
        if self.pieces.is_empty() || self.oldest > snapshot {
            return None;
        }
        let fragment = self.covering(user)?;
        let at = timestamp::of(user, self.order.timestamp_size());
        let newest = fragment.visible(&self.order, snapshot, at)?;
        Some((fragment.seqs[newest], fragment.timestamp(newest)))
    }

    /// The order of the keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// The newest deletion; zero when empty.
    pub fn newest_seq(&self) -> Seq {
        self.newest
    }

    /// The oldest deletion; zero when empty.
    pub fn oldest_seq(&self) -> Seq {
        self.oldest
    }

    /// Bytes of memory held, for charging a cache.
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>()
            + self.bytes.capacity()
            + self.pieces.capacity() * size_of::<EncodedFragment>()
            + self.seqs.capacity() * size_of::<Seq>()
            + self.timestamps.capacity()
    }
}

fn index(n: usize) -> Result<u32> {
    u32::try_from(n)
        .map_err(|_| Error::invalid_argument("range tombstones of one source exceed 4 GiB"))
}
