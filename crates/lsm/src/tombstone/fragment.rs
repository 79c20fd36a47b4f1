//! Overlapping, unsorted tombstones cut into disjoint sorted fragments.
//!
//! Invariants: fragments ascend and do not overlap; each has at least one sequence, newest first, without
//! repeats; neighbours that touch differ in their sequences. Keys live in one buffer.

use esker_format::{KeyOrder, RawTombstone, Seq};
use esker_status::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Piece {
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
}

impl Fragment<'_> {
    /// The newest deletion that a reader at `snapshot` sees; zero for none.
    #[inline]
    pub fn visible_seq(&self, snapshot: Seq) -> Seq {
        if self.seqs.first().is_some_and(|s| *s <= snapshot) {
            return self.seqs[0];
        }
        let at = self.seqs.partition_point(|s| *s > snapshot);
        self.seqs.get(at).copied().unwrap_or(Seq::ZERO)
    }
}

/// The range deletions of one source, ready for lookups. Immutable.
#[derive(Debug)]
pub struct FragmentedTombstones {
    order: KeyOrder,
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    seqs: Vec<Seq>,
    newest: Seq,
    oldest: Seq,
}

impl FragmentedTombstones {
    /// Cuts `raw` (in any order, overlapping or not; empty ranges are ignored) into fragments.
    ///
    /// `NotSupported` for orders with timestamps; `InvalidArgument` when the keys do not fit 4 GiB.
    pub fn new(raw: &[RawTombstone], order: &KeyOrder) -> Result<Arc<Self>> {
        let ranges = raw
            .iter()
            .map(|t| (t.start.as_slice(), t.end.as_slice(), t.seq));
        Self::from_ranges(ranges, order)
    }

    /// The same from borrowed (start, end, sequence).
    pub fn from_ranges<'a>(
        ranges: impl IntoIterator<Item = (&'a [u8], &'a [u8], Seq)>,
        order: &KeyOrder,
    ) -> Result<Arc<Self>> {
        let ranges: Vec<_> = ranges
            .into_iter()
            .filter(|(s, e, _)| order.compare(s, e).is_lt())
            .collect();
        if !ranges.is_empty() && order.timestamp_size() > 0 {
            return Err(Error::not_supported(
                "range deletions with user-defined timestamps",
            ));
        }
        let mut out = FragmentedTombstones {
            order: order.clone(),
            bytes: Vec::new(),
            pieces: Vec::new(),
            seqs: Vec::new(),
            newest: ranges.iter().map(|r| r.2).max().unwrap_or(Seq::ZERO),
            oldest: ranges.iter().map(|r| r.2).min().unwrap_or(Seq::ZERO),
        };
        out.sweep(&ranges)?;
        Ok(Arc::new(out))
    }

    /// Walks all boundaries in order and cuts a fragment between each two.
    fn sweep(&mut self, ranges: &[(&[u8], &[u8], Seq)]) -> Result<()> {
        let mut edges: Vec<(&[u8], bool, Seq)> = Vec::with_capacity(ranges.len() * 2);
        for &(start, end, seq) in ranges {
            edges.push((start, true, seq));
            edges.push((end, false, seq));
        }
        let order = self.order.clone();
        edges.sort_by(|a, b| order.compare(a.0, b.0));
        let mut active: Vec<Seq> = Vec::new(); // Newest first, repeats kept.
        let mut i = 0;
        while i < edges.len() {
            let from = edges[i].0;
            while i < edges.len() && order.equal(edges[i].0, from) {
                let (_, opens, seq) = edges[i];
                let at = active.partition_point(|s| *s > seq);
                if opens {
                    active.insert(at, seq);
                } else {
                    // An end can come before the start of an equal sequence at the same key only when both
                    // are of different ranges, so the one that ends is there.
                    match active.get(at) {
                        Some(s) if *s == seq => {
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

    fn push(&mut self, start: &[u8], end: &[u8], active: &[Seq]) -> Result<()> {
        let first = self.seqs.len();
        for &seq in active {
            if self.seqs.len() == first || self.seqs.last() != Some(&seq) {
                self.seqs.push(seq);
            }
        }
        let touches = self.pieces.last().is_some_and(|last| {
            self.order.equal(self.slice(&last.end), start)
                && self.seqs_of(last) == &self.seqs[first..]
        });
        if touches {
            self.seqs.truncate(first);
            let end = self.store(end)?;
            if let Some(last) = self.pieces.last_mut() {
                last.end = end;
            }
            return Ok(());
        }
        let seqs = index(first)?..index(self.seqs.len())?;
        let (start, end) = (self.store(start)?, self.store(end)?);
        self.pieces.push(Piece { start, end, seqs });
        Ok(())
    }

    fn store(&mut self, key: &[u8]) -> Result<Range<u32>> {
        let from = index(self.bytes.len())?;
        self.bytes.extend_from_slice(key);
        Ok(from..index(self.bytes.len())?)
    }

    #[inline]
    fn slice(&self, r: &Range<u32>) -> &[u8] {
        &self.bytes[r.start as usize..r.end as usize]
    }

    #[inline]
    fn seqs_of(&self, p: &Piece) -> &[Seq] {
        &self.seqs[p.seqs.start as usize..p.seqs.end as usize]
    }

    /// Whether there is nothing to delete.
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
    /// An entry with a smaller sequence is deleted; one with the same sequence is not.
    #[inline]
    pub fn max_covering_seq(&self, user: &[u8], snapshot: Seq) -> Seq {
        if self.pieces.is_empty() || self.oldest > snapshot {
            return Seq::ZERO;
        }
        self.covering(user)
            .map_or(Seq::ZERO, |f| f.visible_seq(snapshot))
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
            + self.pieces.capacity() * size_of::<Piece>()
            + self.seqs.capacity() * size_of::<Seq>()
    }
}

fn index(n: usize) -> Result<u32> {
    u32::try_from(n)
        .map_err(|_| Error::invalid_argument("range tombstones of one source exceed 4 GiB"))
}
