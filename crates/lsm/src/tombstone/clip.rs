//! The ranges that a file's tombstones may delete: the stored ranges, limited to the file's
//! boundaries.
//!
//! A table stores its tombstones whole; beyond the file's boundaries they no longer speak for the
//! data, which other files of the level hold and may have rewritten since. Left the limit is the
//! smallest user key. Right it is the largest user key: exclusive when the boundary is a range-end
//! sentinel or has sequence zero, inclusive otherwise (then versions of that key may continue in
//! the next file, which has the same tombstones). With timestamps the limits are bare keys: a file
//! speaks for all versions of its first and last keys, as its neighbours do.

use super::FragmentedTombstones;
use esker_format::{InternalKey, KeyOrder, Seq, timestamp};
use std::cmp::Ordering;
use std::sync::Arc;

/// The user keys that a file's tombstones may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clip {
    /// The first user key.
    pub low: Vec<u8>,
    /// The last user key.
    pub high: Vec<u8>,
    /// True if `high` itself belongs to the range.
    pub high_inclusive: bool,
}

impl Clip {
    /// The limits that these boundaries of a file set.
    pub fn from_boundaries(
        smallest: &InternalKey,
        largest: &InternalKey,
        order: &KeyOrder,
    ) -> Self {
        let size = order.timestamp_size();
        let is_past_the_end = largest.is_range_end_sentinel();
        if size > 0 {
            let last = if is_past_the_end {
                timestamp::GREATEST
            } else {
                timestamp::SMALLEST
            };
            return Clip {
                low: padded(smallest.user(), size, timestamp::GREATEST),
                high: padded(largest.user(), size, last),
                high_inclusive: !is_past_the_end,
            };
        }
        Clip {
            low: smallest.user().to_vec(),
            high: largest.user().to_vec(),
            high_inclusive: !is_past_the_end && largest.seq() != Seq::ZERO,
        }
    }

    /// Returns whether `user` is inside.
    pub fn contains(&self, order: &KeyOrder, user: &[u8]) -> bool {
        order.compare(user, &self.low).is_ge() && !self.is_past(order, user)
    }

    /// Returns whether `user` is beyond the right limit.
    pub fn is_past(&self, order: &KeyOrder, user: &[u8]) -> bool {
        match order.compare(user, &self.high) {
            Ordering::Less => false,
            Ordering::Equal => !self.high_inclusive,
            Ordering::Greater => true,
        }
    }
}

/// `user` with a timestamp that is all `byte`.
fn padded(user: &[u8], size: usize, byte: u8) -> Vec<u8> {
    let mut padded = timestamp::bare(user, size).to_vec();
    padded.resize(padded.len() + size, byte);
    padded
}

/// A source's tombstones with the limits of its file; memtables have none.
#[derive(Clone, Debug)]
pub struct ClippedTombstones {
    tombstones: Arc<FragmentedTombstones>,
    clip: Option<Arc<Clip>>,
}

impl ClippedTombstones {
    /// All of `tombstones`: for memtables.
    pub fn whole(tombstones: Arc<FragmentedTombstones>) -> Self {
        ClippedTombstones {
            tombstones,
            clip: None,
        }
    }

    /// Limited to a file's boundaries.
    pub fn of_file(
        tombstones: Arc<FragmentedTombstones>,
        smallest: &InternalKey,
        largest: &InternalKey,
    ) -> Self {
        let clip = Clip::from_boundaries(smallest, largest, tombstones.order());
        ClippedTombstones {
            clip: Some(Arc::new(clip)),
            tombstones,
        }
    }

    /// The fragments, not limited.
    pub fn fragments(&self) -> &Arc<FragmentedTombstones> {
        &self.tombstones
    }

    /// The limits.
    pub fn clip(&self) -> Option<&Clip> {
        self.clip.as_deref()
    }

    /// Returns whether there is nothing to delete.
    pub fn is_empty(&self) -> bool {
        self.tombstones.is_empty()
    }

    /// The newest deletion of `user` that a reader at `snapshot` and the timestamp of `user` sees;
    /// zero for none.
    pub fn max_covering_seq(&self, user: &[u8], snapshot: Seq) -> Seq {
        if self.is_empty()
            || self
                .clip()
                .is_some_and(|c| !c.contains(self.tombstones.order(), user))
        {
            return Seq::ZERO;
        }
        self.tombstones.max_covering_seq(user, snapshot)
    }
}
