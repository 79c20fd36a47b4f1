//! The user's iterator: what one snapshot sees of a sequence of internal entries.
//!
//! [`VisibleCursor`] walks any [`Cursor`] of internal keys (memtables and tables merged) and shows
//! each live user key once, with its value, within bounds, in both directions. Going forward over
//! plain values it copies no value: `key` and `value` are slices of the child's. Going backward,
//! and for merged values, it keeps them in buffers that it reuses.
//!
//! With timestamps, a key is shown as of the read timestamp. With `oldest_timestamp` its versions
//! are entries of their own, one for each timestamp down to that one, deletions among them.
//!
//! Callers: the engine's iterators. One owner; not shared between threads.

mod backward;
mod cursor;
mod deleted;
mod deleted_walk;
mod forward;
mod hidden;
mod known;
mod notes;
mod options;
mod past_deleted;

pub use cursor::VisibleCursor;
pub use deleted::DeletedRange;
pub use hidden::HiddenLimits;
pub use known::{FoundRange, KnownDeletions, KnownRanges, ReaderPlace};
pub use options::{
    NoBlobs, PrefixLength, ValueResolver, VisibleCounters, VisibleOptions, set_bound,
};

use cursor::{At, ScanDirection, VersionBound};
use esker_format::entry_batch::{BatchLimits, EntryBatch};
use esker_format::key::{seq_of, user_key};
use esker_format::{Cursor, Seq};

impl<C: Cursor> VisibleCursor<C> {
    /// To the first key.
    pub fn seek_to_first(&mut self) {
        if let Some(lower) = self.options.lower.take() {
            self.begin(None);
            self.set_target(&lower, VersionBound::First);
            self.options.lower = Some(lower);
            self.child.seek(&self.target);
        } else {
            self.begin(None);
            self.child.seek_to_first();
        }
        self.adopt_prefix_forward();
        self.find_forward(false);
    }

    /// To the last key.
    pub fn seek_to_last(&mut self) {
        self.begin(None);
        if let Some(upper) = self.options.upper.take() {
            self.set_target(&upper, VersionBound::First);
            self.options.upper = Some(upper);
            self.child.seek_for_prev(&self.target);
        } else {
            self.child.seek_to_last();
        }
        self.direction = ScanDirection::Backward;
        if self.options.prefix_same_as_start && self.child.valid() {
            let last = user_key(self.child.key());
            self.prefix = self
                .options
                .prefix_of(&last[..last.len().saturating_sub(self.ts)]);
        }
        self.find_backward();
    }

    /// To the first key at or after `target` (without timestamp).
    pub fn seek(&mut self, target: &[u8]) {
        self.begin(Some(target));
        if self.ts == 0 && self.options.lower.is_none() {
            let known = self.known_at(target);
            let target = known.as_ref().map_or(target, |range| &range.end);
            self.set_target(target, VersionBound::Visible);
            self.child.seek(&self.target);
            // Most seeks end on a plain value.
            if self.walks_deleted || !self.show_plain(&mut forward::unseen) {
                self.find_forward(false);
            }
            return;
        }
        let mut padded = std::mem::take(&mut self.saved_value);
        self.pad(target, &mut padded);
        let below = self
            .options
            .lower
            .as_ref()
            .is_some_and(|lower| self.compare(&padded, lower).is_lt());
        if below {
            let lower = self.options.lower.take();
            self.set_target(lower.as_deref().unwrap_or_default(), VersionBound::Visible);
            self.options.lower = lower;
        } else {
            self.set_target(&padded, VersionBound::Visible);
        }
        self.saved_value = padded;
        self.child.seek(&self.target);
        self.find_forward(false);
    }

    /// To the last key at or before `target` (without timestamp).
    pub fn seek_for_prev(&mut self, target: &[u8]) {
        self.begin(Some(target));
        if self.ts == 0 && self.options.upper.is_none() {
            match self.known_at(target) {
                Some(range) => self.set_target(&range.begin, VersionBound::First),
                None => self.set_target(target, VersionBound::Last),
            }
            self.child.seek_for_prev(&self.target);
            self.direction = ScanDirection::Backward;
            self.find_backward();
            return;
        }
        let mut padded = std::mem::take(&mut self.saved_value);
        self.pad(target, &mut padded);
        let above = self
            .options
            .upper
            .as_ref()
            .is_some_and(|upper| self.compare(&padded, upper).is_ge());
        if above {
            let upper = self.options.upper.take();
            self.set_target(upper.as_deref().unwrap_or_default(), VersionBound::First);
            self.options.upper = upper;
        } else {
            self.set_target(&padded, VersionBound::Last);
        }
        self.saved_value = padded;
        self.child.seek_for_prev(&self.target);
        self.direction = ScanDirection::Backward;
        self.find_backward();
    }

    /// To the next key; only while valid.
    #[inline]
    pub fn next(&mut self) {
        self.move_on(&mut forward::unseen);
    }

    /// To the next key, which `show` sees with its value, if there is one: quicker than to ask for
    /// them afterwards. Only while valid.
    #[inline(always)]
    pub fn next_showing(&mut self, mut show: impl FnMut(&[u8], &[u8])) {
        if !self.move_on(&mut show)
            && let Some((key, value)) = self.entry()
        {
            show(key, value);
        }
    }

    /// To the next key and on, up to `most` keys, each of which `show` sees with its value, and
    /// stands on the last of them. Returns their number: fewer say nothing, none that there is no
    /// next key. Keys and values stay where they are until the cursor moves. Only while valid.
    pub fn next_batch(&mut self, most: usize, show: impl FnMut(&[u8], &[u8])) -> usize {
        self.next();
        self.show_batch(most, C::next_batch, show)
    }

    /// Moves as [`Self::next_batch`] does, backward.
    pub fn prev_batch(&mut self, most: usize, show: impl FnMut(&[u8], &[u8])) -> usize {
        self.prev();
        self.show_batch(most, C::prev_batch, show)
    }

    /// Moves as [`Self::next_batch`] does; [`Self::taken`] shows the entries until the cursor
    /// moves.
    pub fn take_next(&mut self, most: usize) -> usize {
        self.next();
        self.take_batch(most, C::next_batch)
    }

    /// Entry number `n` of those that [`Self::take_next`] took.
    #[inline]
    pub fn taken(&self, n: usize) -> Option<(&[u8], &[u8])> {
        if self.batch.is_empty() {
            return self.entry().filter(|_| n == 0);
        }
        let (key, value) = self.batch.get(n, self.child.block_bytes())?;
        Some((user_key(key), value))
    }

    /// Shows the current entry and those that `take` takes after it.
    #[inline]
    fn show_batch(
        &mut self,
        most: usize,
        take: fn(&mut C, &BatchLimits<'_>, &mut EntryBatch),
        mut show: impl FnMut(&[u8], &[u8]),
    ) -> usize {
        let taken = self.take_batch(most, take);
        if self.batch.is_empty() {
            self.entry().inspect(|(key, value)| show(key, value));
            return taken;
        }
        for (key, value) in self.batch.iter(self.child.block_bytes()) {
            show(user_key(key), value);
        }
        taken
    }

    /// Takes the current entry and those that `take` takes after it, and returns their number.
    #[inline]
    fn take_batch(
        &mut self,
        most: usize,
        take: fn(&mut C, &BatchLimits<'_>, &mut EntryBatch),
    ) -> usize {
        let asks = self.ts > 0 || self.prefix.is_some() || self.notes.is_some();
        self.batch.clear();
        if most > 1 && self.at == At::Child && !asks && self.tombstones.is_empty() {
            let bound = match self.direction {
                ScanDirection::Forward => &self.options.upper,
                ScanDirection::Backward => &self.options.lower,
            };
            let limits = BatchLimits {
                most,
                snapshot: self.options.snapshot,
                bounds: [bound.as_deref(), None],
            };
            take(&mut self.child, &limits, &mut self.batch);
        }
        if self.batch.is_empty() {
            return usize::from(self.valid());
        }
        self.batch.len()
    }

    /// To the next key; says whether `show` has seen it.
    #[inline(always)]
    fn move_on(&mut self, show: &mut impl FnMut(&[u8], &[u8])) -> bool {
        debug_assert!(self.valid(), "next on a cursor that is not valid");
        self.skipped = 0;
        match (self.direction, self.at) {
            (ScanDirection::Forward, At::Child | At::ChildKey) => {
                // Sequence zero is the oldest version of its key.
                let key = self.child.key();
                let is_last = seq_of(key) == Seq::ZERO || self.child.next_is_another_key();
                let skipping = !is_last || self.ts > 0;
                if skipping {
                    self.saved_key.clear();
                    self.saved_key.extend_from_slice(user_key(key));
                }
                self.child.next();
                (!skipping && self.show_plain(show)) || self.find_forward_showing(skipping, show)
            }
            (ScanDirection::Forward, _) => self.find_forward_showing(true, show),
            (ScanDirection::Backward, At::Child) => {
                self.direction = ScanDirection::Forward;
                self.saved_key.clear();
                self.saved_key.extend_from_slice(user_key(self.child.key()));
                self.child.next();
                self.find_forward_showing(true, show)
            }
            (ScanDirection::Backward, _) => {
                self.direction = ScanDirection::Forward;
                self.aim_at_saved(VersionBound::Last);
                self.child.seek(&self.target);
                self.find_forward_showing(true, show)
            }
        }
    }

    /// To the previous key; only while valid.
    #[inline]
    pub fn prev(&mut self) {
        debug_assert!(self.valid(), "prev on a cursor that is not valid");
        self.skipped = 0;
        if self.notes.is_some() {
            self.begin_prev();
        }
        if self.direction == ScanDirection::Forward {
            if matches!(self.at, At::Child | At::ChildKey) {
                self.saved_key.clear();
                self.saved_key.extend_from_slice(user_key(self.child.key()));
            }
            self.aim_at_saved(VersionBound::First);
            self.child.seek_for_prev(&self.target);
            self.direction = ScanDirection::Backward;
        } else if self.at == At::Child {
            // Alone of its key: see `find_backward`.
            self.child.prev();
        }
        self.find_backward();
    }
}
