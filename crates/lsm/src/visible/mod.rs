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
mod deleted;
mod forward;
mod hidden;
mod notes;
mod options;

pub use deleted::DeletedRange;
pub use hidden::HiddenLimits;
pub use options::{NoBlobs, PrefixLength, ValueResolver, VisibleCounters, VisibleOptions};

use crate::merge_operator::{self, Base, full_merge};
use crate::point::strip_preferred_seqno;
use crate::tombstone::ReadTombstones;
use esker_format::entry_batch::{BatchLimits, EntryBatch};
use esker_format::key::{append_internal, seq_of, user_key};
use esker_format::{Cursor, ParsedKey, Seq, ValueType, timestamp, wide_column};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use notes::Notes;
use std::cmp::Ordering;

/// Bytes that a buffer keeps while the cursor is not used.
const RESTING_BUFFER: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// The child stands on the current entry, or past every entry used for it.
    Forward,
    /// The child stands on the current entry, when that is shown from there, or before every
    /// version of the current key.
    Backward,
}

/// Where the current key and value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Nowhere.
    Invalid,
    /// The child stands on them.
    Child,
    /// The child stands on the key, the value is in the buffer (a blob, a default column).
    ChildKey,
    /// Both are in buffers.
    Saved,
}

/// A cursor over the user keys that one reader sees.
pub struct VisibleCursor<C> {
    child: C,
    options: VisibleOptions,
    tombstones: ReadTombstones,
    /// Bytes of timestamp at the end of user keys.
    ts: usize,
    /// Versions of a key that differ in their timestamps are one entry, not several.
    folds: bool,
    direction: Direction,
    at: At,
    error: Option<Error>,
    /// The user key (with timestamp) that is current, or that is being skipped.
    saved_key: Vec<u8>,
    saved_value: Vec<u8>,
    saved_entity: Vec<u8>,
    kind: ValueType,
    /// When versions are shown one by one: the internal key of the one that is shown from the
    /// buffers.
    saved_internal: Vec<u8>,
    /// The sequence of the version in the buffers, in families with timestamps.
    saved_seq: Seq,
    /// Operands in the order met: (start, end) in `operand_bytes`.
    operands: Vec<(usize, usize)>,
    operand_bytes: Vec<u8>,
    target: Vec<u8>,
    prefix: Option<Vec<u8>>,
    counters: VisibleCounters,
    /// Internal keys skipped since the last call of the user.
    skipped: u64,
    /// Entries that were shown at once, for the room that they take.
    batch: EntryBatch,
    /// Hidden entries of a key that are stepped over before anything else is done.
    plain_steps: u64,
    /// What its owner wants to know of the way; most want nothing.
    notes: Option<Box<Notes>>,
    /// The newest version of the key that was looked at last, going backward, is a deletion.
    is_deleted: bool,
}

impl<C: Cursor> VisibleCursor<C> {
    /// Over `child`, with the range deletions of the same view.
    ///
    /// `InvalidArgument` when the order has timestamps and no read timestamp of that size is given,
    /// or the other way round.
    pub fn new(
        child: C,
        mut tombstones: ReadTombstones,
        mut options: VisibleOptions,
    ) -> Result<Self> {
        let ts = options.order.timestamp_size();
        let given = options.read_timestamp.as_ref().map_or(0, Vec::len);
        if given != ts {
            return Err(Error::invalid_argument(format!(
                "the read timestamp has {given} bytes, not {ts}"
            )));
        }
        tombstones.set_timestamp(options.read_timestamp.as_deref().unwrap_or_default());
        let oldest = options.oldest_timestamp.as_ref().map(Vec::len);
        if oldest.is_some_and(|size| size != ts || ts == 0) {
            return Err(Error::invalid_argument(format!(
                "the oldest timestamp of interest must have the {ts} bytes that the keys' have"
            )));
        }
        options.pad_bounds(ts);
        Ok(VisibleCursor {
            child,
            plain_steps: options.plain_steps(),
            notes: Notes::wanted(&options),
            options,
            tombstones,
            ts,
            folds: ts > 0 && oldest.is_none(),
            direction: Direction::Forward,
            at: At::Invalid,
            error: None,
            saved_key: Vec::new(),
            saved_value: Vec::new(),
            saved_entity: Vec::new(),
            kind: ValueType::Value,
            saved_internal: Vec::new(),
            saved_seq: Seq::ZERO,
            operands: Vec::new(),
            operand_bytes: Vec::new(),
            target: Vec::new(),
            prefix: None,
            counters: VisibleCounters::default(),
            skipped: 0,
            batch: EntryBatch::default(),
            is_deleted: false,
        })
    }

    /// Whether the cursor stands on a key.
    #[inline]
    pub fn valid(&self) -> bool {
        self.at != At::Invalid
    }

    /// The user key, without its timestamp; only while valid. Small, and read once for each entry:
    /// always inlined.
    #[inline(always)]
    pub fn key(&self) -> &[u8] {
        let full = self.full_key();
        &full[..full.len().saturating_sub(self.ts)]
    }

    /// Key and value, while valid.
    #[inline(always)]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self.at {
            At::Invalid => None,
            At::Child => {
                let (key, value) = self.child.entry();
                let full = user_key(key);
                Some((&full[..full.len().saturating_sub(self.ts)], value))
            }
            At::ChildKey | At::Saved => Some((self.key(), self.value())),
        }
    }

    /// The timestamp of the current version; empty in families without.
    pub fn timestamp(&self) -> &[u8] {
        let full = self.full_key();
        &full[full.len().saturating_sub(self.ts)..]
    }

    /// Whether the current entry is a deletion; only where versions are shown one by one.
    pub fn is_deletion(&self) -> bool {
        let kind = match self.at {
            At::Invalid => return false,
            At::Child => ParsedKey::parse(self.child.key()).map_or(self.kind, |key| key.kind),
            At::ChildKey | At::Saved => self.kind,
        };
        is_deletion(kind)
    }

    /// The internal key of the current entry; only while valid, and where versions are shown one by
    /// one.
    pub fn internal_key(&self) -> &[u8] {
        match self.at {
            At::Child | At::ChildKey => self.child.key(),
            At::Saved | At::Invalid => &self.saved_internal,
        }
    }

    #[inline(always)]
    fn full_key(&self) -> &[u8] {
        match self.at {
            At::Child | At::ChildKey => user_key(self.child.key()),
            At::Saved | At::Invalid => &self.saved_key,
        }
    }

    /// The value (of an entity: its default column); only while valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.at {
            At::Child => self.child.value(),
            _ => &self.saved_value,
        }
    }

    /// The encoded wide-column entity, when the current entry is one.
    pub fn entity(&self) -> Option<&[u8]> {
        match self.at {
            At::Invalid => None,
            _ => (self.kind == ValueType::WideColumnEntity).then_some(self.saved_entity.as_slice()),
        }
    }

    /// `Ok`, or why the cursor is not valid.
    pub fn status(&self) -> Result<()> {
        self.error.as_ref().map_or(Ok(()), |e| Err(e.clone()))
    }

    /// What was skipped on the way, since the cursor was made.
    pub fn counters(&self) -> &VisibleCounters {
        &self.counters
    }

    /// The child.
    pub fn child(&self) -> &C {
        &self.child
    }

    /// The child back.
    pub fn into_child(self) -> C {
        self.child
    }

    /// Makes a cursor that is used again read as of `snapshot`, within other bounds; not valid
    /// until the next seek. Only where keys have no timestamps.
    pub fn restart(
        &mut self,
        snapshot: Seq,
        bounds: (Option<&[u8]>, Option<&[u8]>),
        max_skippable_internal_keys: u64,
    ) {
        if !seeded(Bug::ParkedSequenceKept) {
            self.options.snapshot = snapshot;
            self.tombstones.set_snapshot(snapshot);
        }
        self.options.lower = bounds.0.map(<[u8]>::to_vec);
        self.options.upper = bounds.1.map(<[u8]>::to_vec);
        self.options.max_skippable_internal_keys = max_skippable_internal_keys;
        self.counters = VisibleCounters::default();
        self.begin(None);
        self.counters.seeks = 0;
    }

    /// Forgets the position and large buffers; the child is to be put to rest by the caller.
    pub fn rest(&mut self) -> &mut C {
        self.at = At::Invalid;
        self.error = None;
        for buffer in [
            &mut self.saved_key,
            &mut self.saved_value,
            &mut self.saved_entity,
            &mut self.saved_internal,
            &mut self.operand_bytes,
            &mut self.target,
        ] {
            buffer.clear();
            buffer.shrink_to(RESTING_BUFFER);
        }
        self.operands.clear();
        &mut self.child
    }

    /// To the first key.
    pub fn seek_to_first(&mut self) {
        if let Some(lower) = self.options.lower.take() {
            self.begin(None);
            self.set_target(&lower, Edge::First);
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
            self.set_target(&upper, Edge::First);
            self.options.upper = Some(upper);
            self.child.seek_for_prev(&self.target);
        } else {
            self.child.seek_to_last();
        }
        self.direction = Direction::Backward;
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
            self.set_target(target, Edge::Visible);
            self.child.seek(&self.target);
            self.find_forward(false);
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
            self.set_target(lower.as_deref().unwrap_or_default(), Edge::Visible);
            self.options.lower = lower;
        } else {
            self.set_target(&padded, Edge::Visible);
        }
        self.saved_value = padded;
        self.child.seek(&self.target);
        self.find_forward(false);
    }

    /// To the last key at or before `target` (without timestamp).
    pub fn seek_for_prev(&mut self, target: &[u8]) {
        self.begin(Some(target));
        if self.ts == 0 && self.options.upper.is_none() {
            self.set_target(target, Edge::Last);
            self.child.seek_for_prev(&self.target);
            self.direction = Direction::Backward;
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
            self.set_target(upper.as_deref().unwrap_or_default(), Edge::First);
            self.options.upper = upper;
        } else {
            self.set_target(&padded, Edge::Last);
        }
        self.saved_value = padded;
        self.child.seek_for_prev(&self.target);
        self.direction = Direction::Backward;
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

    /// The same going backward.
    pub fn prev_batch(&mut self, most: usize, show: impl FnMut(&[u8], &[u8])) -> usize {
        self.prev();
        self.show_batch(most, C::prev_batch, show)
    }

    /// Shows the current entry and those that `take` takes after it.
    #[inline]
    fn show_batch(
        &mut self,
        most: usize,
        take: fn(&mut C, &BatchLimits<'_>, &mut EntryBatch),
        mut show: impl FnMut(&[u8], &[u8]),
    ) -> usize {
        let asks = self.ts > 0 || self.prefix.is_some() || self.notes.is_some();
        self.batch.clear();
        if most > 1 && self.at == At::Child && !asks && self.tombstones.is_empty() {
            let bound = match self.direction {
                Direction::Forward => &self.options.upper,
                Direction::Backward => &self.options.lower,
            };
            let limits = BatchLimits {
                most,
                snapshot: self.options.snapshot,
                bounds: [bound.as_deref(), None],
            };
            take(&mut self.child, &limits, &mut self.batch);
        }
        if self.batch.is_empty() {
            let entry = self.entry();
            entry.inspect(|(key, value)| show(key, value));
            return usize::from(entry.is_some());
        }
        for (key, value) in self.batch.iter(self.child.block_bytes()) {
            show(user_key(key), value);
        }
        self.batch.len()
    }

    /// To the next key; says whether `show` has seen it.
    #[inline(always)]
    fn move_on(&mut self, show: &mut impl FnMut(&[u8], &[u8])) -> bool {
        debug_assert!(self.valid(), "next on a cursor that is not valid");
        self.skipped = 0;
        match (self.direction, self.at) {
            (Direction::Forward, At::Child | At::ChildKey) => {
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
            (Direction::Forward, _) => self.find_forward_showing(true, show),
            (Direction::Backward, At::Child) => {
                self.direction = Direction::Forward;
                self.saved_key.clear();
                self.saved_key.extend_from_slice(user_key(self.child.key()));
                self.child.next();
                self.find_forward_showing(true, show)
            }
            (Direction::Backward, _) => {
                self.direction = Direction::Forward;
                self.aim_at_saved(Edge::Last);
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
        if self.direction == Direction::Forward {
            if matches!(self.at, At::Child | At::ChildKey) {
                self.saved_key.clear();
                self.saved_key.extend_from_slice(user_key(self.child.key()));
            }
            self.aim_at_saved(Edge::First);
            self.child.seek_for_prev(&self.target);
            self.direction = Direction::Backward;
        } else if self.at == At::Child {
            // Alone of its key: see `find_backward`.
            self.child.prev();
        }
        self.find_backward();
    }

    /// Forgets the position; `target` decides the prefix that the walk keeps to.
    fn begin(&mut self, target: Option<&[u8]>) {
        self.direction = Direction::Forward;
        self.at = At::Invalid;
        self.error = None;
        self.skipped = 0;
        self.counters.seeks += 1;
        if let Some(notes) = &mut self.notes {
            notes.begin_walk();
        }
        self.prefix = match target {
            Some(target) if self.options.prefix_same_as_start => self.options.prefix_of(target),
            _ => None,
        };
    }

    fn adopt_prefix_forward(&mut self) {
        if self.options.prefix_same_as_start && self.child.valid() {
            let first = user_key(self.child.key());
            self.prefix = self
                .options
                .prefix_of(&first[..first.len().saturating_sub(self.ts)]);
        }
    }

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if !self.folds {
            self.options.order.compare(a, b)
        } else {
            self.options.order.compare_without_timestamp(a, b)
        }
    }

    /// `key` with room for a timestamp behind it.
    fn pad(&self, key: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(key);
        out.resize(key.len() + self.ts, timestamp::SMALLEST);
    }

    /// Builds a seek target from a full user key, whose timestamp is replaced.
    fn set_target(&mut self, full_user: &[u8], edge: Edge) {
        self.target.clear();
        let bare = &full_user[..full_user.len() - self.ts.min(full_user.len())];
        let (seq, kind) = edge.place(self.options.snapshot);
        if self.ts == 0 {
            return append_internal(&mut self.target, bare, seq, kind);
        }
        self.target.extend_from_slice(bare);
        match edge {
            Edge::First => self
                .target
                .resize(bare.len() + self.ts, timestamp::GREATEST),
            Edge::Visible => {
                self.target
                    .extend_from_slice(self.options.read_timestamp.as_deref().unwrap_or_default());
            }
            Edge::Last => self
                .target
                .resize(bare.len() + self.ts, timestamp::SMALLEST),
        }
        append_internal(&mut self.target, &[], seq, kind);
    }

    /// Builds a seek target at the entry that `saved_key` names: a key with all its versions, or
    /// one of these where they are shown one by one.
    fn aim_at_saved(&mut self, edge: Edge) {
        let key = std::mem::take(&mut self.saved_key);
        if self.folds || self.ts == 0 {
            self.set_target(&key, edge);
        } else {
            let (seq, kind) = edge.place(self.options.snapshot);
            self.target.clear();
            append_internal(&mut self.target, &key, seq, kind);
        }
        self.saved_key = key;
    }

    /// Whether this reader sees the version.
    #[inline]
    fn sees(&self, key: &ParsedKey<'_>) -> bool {
        key.seq <= self.options.snapshot && (self.ts == 0 || self.sees_timestamp(key.user))
    }

    fn sees_timestamp(&self, user: &[u8]) -> bool {
        if user.len() < self.ts {
            return false;
        }
        let at = timestamp::of(user, self.ts);
        let compare = |limit: &Option<Vec<u8>>| {
            let limit = limit.as_deref();
            limit.map(|limit| self.options.order.compare_timestamp(at, limit))
        };
        compare(&self.options.read_timestamp).is_none_or(Ordering::is_le)
            && compare(&self.options.oldest_timestamp).is_none_or(Ordering::is_ge)
    }

    /// Whether the walk must stop here, going forward or backward. Most walks have no limits.
    #[inline(always)]
    fn out_of_range(&self, user: &[u8], forward: bool) -> bool {
        let bound = if forward {
            &self.options.upper
        } else {
            &self.options.lower
        };
        (bound.is_some() || self.prefix.is_some())
            && self.is_beyond(user, bound.as_deref(), forward)
    }

    #[inline(never)]
    fn is_beyond(&self, user: &[u8], bound: Option<&[u8]>, forward: bool) -> bool {
        if let Some(bound) = bound {
            let order = self.compare(user, bound);
            if if forward {
                order.is_ge()
            } else {
                order.is_lt()
            } {
                return true;
            }
        }
        match &self.prefix {
            Some(prefix) => {
                let bare = &user[..user.len().saturating_sub(self.ts)];
                self.options
                    .prefix_length(bare)
                    .is_none_or(|n| bare.get(..n) != Some(prefix.as_slice()))
            }
            None => false,
        }
    }

    #[cold]
    fn fail(&mut self, error: Error) {
        self.error = Some(error);
        self.at = At::Invalid;
    }

    /// The child is at its end: by itself or by a failure.
    #[cold]
    fn ended(&mut self) {
        self.at = At::Invalid;
        if let Err(e) = self.child.status() {
            self.fail(e);
        }
    }

    /// Counts a hidden entry; `false` when the reader's limit on them is reached.
    #[inline]
    fn count_skip(&mut self) -> bool {
        self.counters.internal_keys_skipped += 1;
        self.skipped += 1;
        let limit = self.options.max_skippable_internal_keys;
        if limit > 0 && self.skipped > limit {
            self.fail(Error::new(
                esker_status::ErrorKind::Incomplete,
                "too many internal keys skipped",
            ));
            return false;
        }
        true
    }

    /// Turns stored bytes of `kind` in `saved_value` into what the user reads; fills
    /// `saved_entity`.
    fn settle_saved(&mut self, kind: ValueType) -> Result<()> {
        self.kind = kind;
        match kind {
            ValueType::BlobIndex => {
                let index = std::mem::take(&mut self.saved_value);
                let bare = &self.saved_key[..self.saved_key.len().saturating_sub(self.ts)];
                self.options.blob(bare, &index, &mut self.saved_value)?;
                self.kind = ValueType::Value;
            }
            ValueType::WideColumnEntity => {
                std::mem::swap(&mut self.saved_value, &mut self.saved_entity);
                self.saved_value.clear();
                self.settle_entity()?;
            }
            ValueType::ValuePreferredSeqno => {
                let len = strip_preferred_seqno(&self.saved_value)?.0.len();
                self.saved_value.truncate(len);
                self.kind = ValueType::Value;
            }
            _ => {}
        }
        Ok(())
    }

    /// The default column of `saved_entity` into `saved_value`.
    fn settle_entity(&mut self) -> Result<()> {
        self.saved_value.clear();
        if let Some(column) = wide_column::default_column(&self.saved_entity)? {
            if column.in_blob {
                let bare = &self.saved_key[..self.saved_key.len().saturating_sub(self.ts)];
                self.options
                    .blob(bare, column.value, &mut self.saved_value)?;
            } else {
                self.saved_value.extend_from_slice(column.value);
            }
        }
        Ok(())
    }

    fn push_operand(&mut self) {
        let start = self.operand_bytes.len();
        self.operand_bytes.extend_from_slice(self.child.value());
        self.operands.push((start, self.operand_bytes.len()));
    }

    /// Merges the operands (`newest_first`: in that order) over the base, which is in `saved_value`
    /// when its kind is given; the result replaces it.
    fn merge_saved(&mut self, base: Option<ValueType>, newest_first: bool) -> Result<()> {
        let operator = self
            .options
            .merge_operator
            .clone()
            .ok_or_else(merge_operator::missing_operator)?;
        if let Some(kind) = base {
            self.settle_saved(kind)?;
        }
        let slice = |&(a, b): &(usize, usize)| &self.operand_bytes[a..b];
        let operands: smallvec::SmallVec<[&[u8]; 8]> = if newest_first {
            self.operands.iter().rev().map(slice).collect()
        } else {
            self.operands.iter().map(slice).collect()
        };
        let base = match base {
            None => Base::None,
            Some(kind) if is_deletion(kind) => Base::None,
            Some(_) if self.kind == ValueType::WideColumnEntity => Base::Entity(&self.saved_entity),
            Some(_) => Base::Value(&self.saved_value),
        };
        let bare = &self.saved_key[..self.saved_key.len().saturating_sub(self.ts)];
        let mut out = std::mem::take(&mut self.target);
        let kind = full_merge(operator.as_ref(), bare, base, &operands, &mut out);
        drop(operands);
        self.operands.clear();
        self.operand_bytes.clear();
        self.counters.merges += 1;
        self.kind = kind?;
        if self.kind == ValueType::WideColumnEntity {
            self.saved_entity.clear();
            self.saved_entity.extend_from_slice(&out);
            self.settle_entity()?;
        } else {
            std::mem::swap(&mut self.saved_value, &mut out);
        }
        self.target = out;
        Ok(())
    }
}

/// Which version of a user key a target stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    /// Before all of them.
    First,
    /// At the newest that the reader sees.
    Visible,
    /// At or after all of them.
    Last,
}

impl Edge {
    /// The sequence and type that stand there, for a reader at `snapshot`.
    fn place(self, snapshot: Seq) -> (Seq, ValueType) {
        match self {
            Edge::First => (Seq::MAX, ValueType::SEEK),
            Edge::Visible => (snapshot, ValueType::SEEK),
            Edge::Last => (Seq::ZERO, ValueType::SEEK_FOR_PREV),
        }
    }
}

fn is_deletion(kind: ValueType) -> bool {
    matches!(
        kind,
        ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp
    )
}
