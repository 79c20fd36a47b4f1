//! The cursor: what it holds, what it says of its position, and the steps that its moves are made
//! of. The moves are in the parent, [`super::forward`] and [`super::backward`].

use super::deleted::DeletedRange;
use super::deleted_walk::DeletedWalk;
use super::hidden::HiddenCount;
use super::notes::Notes;
use super::options::{VisibleCounters, VisibleOptions, set_bound};
use crate::merge_operator::{self, Base, full_merge};
use crate::point::strip_preferred_seqno;
use crate::tombstone::ReadTombstones;
use esker_format::entry_batch::EntryBatch;
use esker_format::key::{append_internal, user_key};
use esker_format::{Cursor, ParsedKey, Seq, ValueType, timestamp, wide_column};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::cmp::Ordering;

/// Bytes that a buffer keeps while the cursor is not used.
const RESTING_BUFFER: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanDirection {
    /// The child stands on the current entry, or past every entry used for it.
    Forward,
    /// The child stands on the current entry, when that is shown from there, or before every
    /// version of the current key.
    Backward,
}

/// Where the current key and value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
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
    pub(super) child: C,
    pub(super) options: VisibleOptions,
    pub(super) tombstones: ReadTombstones,
    /// Bytes of timestamp at the end of user keys.
    pub(super) ts: usize,
    /// Versions of a key that differ in their timestamps are one entry, not several.
    pub(super) folds: bool,
    pub(super) direction: ScanDirection,
    pub(super) at: At,
    pub(super) error: Option<Error>,
    /// The user key (with timestamp) that is current, or that is being skipped.
    pub(super) saved_key: Vec<u8>,
    pub(super) saved_value: Vec<u8>,
    pub(super) saved_entity: Vec<u8>,
    pub(super) kind: ValueType,
    /// When versions are shown one by one: the internal key of the one that is shown from the
    /// buffers.
    pub(super) saved_internal: Vec<u8>,
    /// The sequence of the version in the buffers, in families with timestamps.
    pub(super) saved_seq: Seq,
    /// Operands in the order met: (start, end) in `operand_bytes`.
    pub(super) operands: Vec<(usize, usize)>,
    pub(super) operand_bytes: Vec<u8>,
    pub(super) target: Vec<u8>,
    pub(super) prefix: Option<Vec<u8>>,
    pub(super) counters: VisibleCounters,
    /// Internal keys skipped since the last call of the user.
    pub(super) skipped: u64,
    /// Entries that were shown at once, for the room that they take.
    pub(super) batch: EntryBatch,
    /// Hidden entries of a key that are stepped over before anything else is done.
    pub(super) plain_steps: u64,
    /// Notes on the way for the cursor's owner; most owners want none.
    pub(super) notes: Option<Box<Notes>>,
    /// The newest version of the key that was looked at last, going backward, is a deletion.
    pub(super) is_deleted: bool,
    /// Ranges that are known to be deleted, and what the present walk adds to them.
    pub(super) known: Option<Box<DeletedWalk>>,
    /// The present walk passed over a deletion or went past a known range.
    pub(super) walks_deleted: bool,
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
            known: DeletedWalk::wanted(&options),
            walks_deleted: false,
            options,
            tombstones,
            ts,
            folds: ts > 0 && oldest.is_none(),
            direction: ScanDirection::Forward,
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

    /// Returns whether the cursor stands on a key.
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

    /// Returns whether the current entry is a deletion; only where versions are shown one by one.
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
    pub(super) fn full_key(&self) -> &[u8] {
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

    /// Counts of what was skipped on the way, since the cursor was made.
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
        epoch: u64,
    ) {
        if !seeded(Bug::ParkedSequenceKept) {
            self.options.snapshot = snapshot;
            self.tombstones.set_snapshot(snapshot);
        }
        self.options.lower = bounds.0.map(<[u8]>::to_vec);
        self.options.upper = bounds.1.map(<[u8]>::to_vec);
        self.options.max_skippable_internal_keys = max_skippable_internal_keys;
        self.counters = VisibleCounters::default();
        if let Some(known) = &mut self.known {
            known.change_reader(epoch);
        }
        self.begin(None);
        self.counters.seeks = 0;
    }

    /// Sets other bounds; not valid until the next seek. Only where keys have no timestamps.
    pub fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        set_bound(&mut self.options.lower, lower);
        set_bound(&mut self.options.upper, upper);
        self.begin(None);
        self.counters.seeks -= 1;
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

    /// Forgets the position; `target` decides the prefix that the walk keeps to.
    pub(super) fn begin(&mut self, target: Option<&[u8]>) {
        self.direction = ScanDirection::Forward;
        self.at = At::Invalid;
        self.error = None;
        self.skipped = 0;
        self.counters.seeks += 1;
        if let Some(notes) = &mut self.notes {
            notes.begin_walk();
        }
        if self.walks_deleted {
            // The walk before did not end.
            self.walks_deleted = false;
            if let Some(known) = &mut self.known {
                known.reset();
            }
        }
        self.prefix = match target {
            Some(target) if self.options.prefix_same_as_start => self.options.prefix_of(target),
            _ => None,
        };
    }

    pub(super) fn adopt_prefix_forward(&mut self) {
        if self.options.prefix_same_as_start && self.child.valid() {
            let first = user_key(self.child.key());
            self.prefix = self
                .options
                .prefix_of(&first[..first.len().saturating_sub(self.ts)]);
        }
    }

    #[inline]
    pub(super) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if !self.folds {
            self.options.order.compare(a, b)
        } else {
            self.options.order.compare_without_timestamp(a, b)
        }
    }

    /// `key` with room for a timestamp behind it.
    pub(super) fn pad(&self, key: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(key);
        out.resize(key.len() + self.ts, timestamp::SMALLEST);
    }

    /// Builds a seek target from a full user key, whose timestamp is replaced.
    pub(super) fn set_target(&mut self, full_user: &[u8], edge: VersionBound) {
        self.target.clear();
        let bare = &full_user[..full_user.len() - self.ts.min(full_user.len())];
        let (seq, kind) = edge.place(self.options.snapshot);
        if self.ts == 0 {
            return append_internal(&mut self.target, bare, seq, kind);
        }
        self.target.extend_from_slice(bare);
        match edge {
            VersionBound::First => self
                .target
                .resize(bare.len() + self.ts, timestamp::GREATEST),
            VersionBound::Visible => {
                self.target
                    .extend_from_slice(self.options.read_timestamp.as_deref().unwrap_or_default());
            }
            VersionBound::Last => self
                .target
                .resize(bare.len() + self.ts, timestamp::SMALLEST),
        }
        append_internal(&mut self.target, &[], seq, kind);
    }

    /// Builds a seek target at the entry that `saved_key` names: a key with all its versions, or
    /// one of these where they are shown one by one.
    pub(super) fn aim_at_saved(&mut self, edge: VersionBound) {
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

    /// Returns whether this reader sees the version.
    #[inline]
    pub(super) fn sees(&self, key: &ParsedKey<'_>) -> bool {
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

    /// Returns whether the walk must stop here, going forward or backward. Most walks have no
    /// limits.
    #[inline(always)]
    pub(super) fn out_of_range(&self, user: &[u8], forward: bool) -> bool {
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
    pub(super) fn fail(&mut self, error: Error) {
        self.error = Some(error);
        self.at = At::Invalid;
    }

    /// The child is at its end: by itself or by a failure.
    #[cold]
    pub(super) fn ended(&mut self) {
        self.at = At::Invalid;
        if let Err(e) = self.child.status() {
            self.fail(e);
        }
    }

    /// Counts a hidden entry; `false` when the reader's limit on them is reached.
    #[inline]
    pub(super) fn count_skip(&mut self) -> bool {
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

    /// As [`Self::settle_saved`], for an entry that is to be shown: where the reader allows it, a
    /// value in a blob file stays unread. Its index waits in `saved_entity`, and `kind` says so.
    pub(super) fn settle_shown(&mut self, kind: ValueType) -> Result<()> {
        if kind != ValueType::BlobIndex || !self.options.unprepared {
            return self.settle_saved(kind);
        }
        self.kind = kind;
        std::mem::swap(&mut self.saved_value, &mut self.saved_entity);
        if !seeded(Bug::UnpreparedValueKept) {
            self.saved_value.clear();
        }
        Ok(())
    }

    /// Returns whether the value of the current entry is in a blob file and was not read.
    pub fn is_unprepared(&self) -> bool {
        self.kind == ValueType::BlobIndex && self.valid()
    }

    /// Reads the value of the current entry where it was left in its blob file. False, and no
    /// longer valid, when that fails; true for other entries.
    pub fn prepare_value(&mut self) -> bool {
        if !self.is_unprepared() {
            return self.valid();
        }
        self.kind = ValueType::Value;
        if seeded(Bug::UnpreparedValueKept) && !self.saved_value.is_empty() {
            return true;
        }
        let bare = &self.saved_key[..self.saved_key.len().saturating_sub(self.ts)];
        let (index, out) = (&self.saved_entity, &mut self.saved_value);
        match self.options.blob(bare, index, out) {
            Ok(()) => true,
            Err(e) => {
                self.fail(e);
                false
            }
        }
    }

    /// Reads values in blob files with each move from now on, and that of the current entry.
    pub fn prepare_values(&mut self) {
        self.options.unprepared = false;
        self.prepare_value();
    }

    /// Turns stored bytes of `kind` in `saved_value` into what the user reads; fills
    /// `saved_entity`.
    pub(super) fn settle_saved(&mut self, kind: ValueType) -> Result<()> {
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

    /// Puts values of `saved_entity` that are in blob files in place, and its default column into
    /// `saved_value`.
    fn settle_entity(&mut self) -> Result<()> {
        let bare = &self.saved_key[..self.saved_key.len().saturating_sub(self.ts)];
        let options = &mut self.options;
        let mut whole = Vec::new();
        if wide_column::join_blobs(&self.saved_entity, &mut whole, |index, out| {
            options.blob(bare, index, out)
        })? {
            self.saved_entity = whole;
        }
        self.saved_value.clear();
        if let Some(column) = wide_column::default_column(&self.saved_entity)? {
            self.saved_value.extend_from_slice(column.value);
        }
        Ok(())
    }

    pub(super) fn push_operand(&mut self) {
        let start = self.operand_bytes.len();
        self.operand_bytes.extend_from_slice(self.child.value());
        self.operands.push((start, self.operand_bytes.len()));
    }

    /// Merges the operands (`newest_first`: in that order) over the base, which is in `saved_value`
    /// when its kind is given; the result replaces it.
    pub(super) fn merge_saved(
        &mut self,
        base: Option<ValueType>,
        newest_first: bool,
    ) -> Result<()> {
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

    /// Makes the content of the buffers the current entry.
    pub(super) fn show_saved(&mut self) {
        self.at = At::Saved;
        if self.ts > 0 && !self.folds {
            self.saved_internal.clear();
            append_internal(
                &mut self.saved_internal,
                &self.saved_key,
                self.saved_seq,
                self.kind,
            );
        }
    }

    /// Returns whether it takes something down: its owner is to ask after each move.
    #[inline]
    pub fn takes_notes(&self) -> bool {
        self.notes.is_some()
    }

    /// The stretch of deleted keys that the last move met, if it was long enough.
    pub fn take_deleted_range(&mut self) -> Option<DeletedRange> {
        self.notes.as_mut()?.deleted.take()
    }

    /// A move is over; `is_step` for one to the next key. True once, when it passed over too many
    /// hidden entries of the newest run ([`VisibleOptions::hidden_limits`]).
    pub fn end_move(&mut self, is_step: bool) -> bool {
        let notes = self.notes.as_mut();
        notes.is_some_and(|notes| notes.hidden.end_move(is_step))
    }

    /// The use of the cursor is over, and another may begin. True when its last walk passed over
    /// too many hidden entries of the newest run.
    pub fn end_use(&mut self) -> bool {
        let Some(notes) = &mut self.notes else {
            return false;
        };
        notes.hidden.end_walk();
        let is_due = notes.hidden.end_move(false);
        notes.hidden = HiddenCount::new(self.options.hidden_limits);
        self.plain_steps = self.options.plain_steps();
        is_due
    }

    /// The deletion that the child stands on hides the older versions of `saved_key`.
    #[cold]
    pub(super) fn note_deletion(&mut self) {
        let is_newest = self.child.current_run() == 0;
        let Some(notes) = &mut self.notes else {
            return;
        };
        if notes.deleted.is_on() {
            notes.deleted.push(&self.saved_key);
        }
        if is_newest {
            notes.hidden.add();
        }
    }

    /// The entry that the child stands on is passed over, going forward.
    #[cold]
    pub(super) fn note_passed(&mut self, is_hidden: bool) {
        let is_seen = ParsedKey::parse(self.child.key()).is_ok_and(|key| self.sees(&key));
        let counts = is_hidden && is_seen && self.child.current_run() == 0;
        let Some(notes) = &mut self.notes else {
            return;
        };
        if counts {
            notes.hidden.add();
        }
        if !notes.hidden.is_on() {
            self.plain_steps = self.options.max_sequential_skip;
        }
    }

    /// A walk forward has ended.
    #[cold]
    pub(super) fn close_run_forward(&mut self) {
        let Some(mut notes) = self.notes.take() else {
            return;
        };
        if self.error.is_some() {
            notes.deleted.abandon();
        } else {
            let shown = self.valid().then(|| self.full_key());
            notes.deleted.close(shown);
        }
        self.notes = Some(notes);
    }

    /// A step backward begins.
    #[cold]
    pub(super) fn begin_prev(&mut self) {
        let Some(mut notes) = self.notes.take() else {
            return;
        };
        if notes.deleted.is_on() {
            notes.deleted.reset();
            notes.deleted.begin_before(self.full_key());
        }
        self.notes = Some(notes);
    }

    /// `saved_key` is deleted, going backward.
    #[cold]
    pub(super) fn note_deletion_before(&mut self) {
        if let Some(notes) = &mut self.notes
            && notes.deleted.is_on()
        {
            notes.deleted.push_before(&self.saved_key);
        }
    }

    /// A walk backward has ended.
    #[cold]
    pub(super) fn close_run_backward(&mut self) {
        let is_failed = self.error.is_some();
        let Some(notes) = &mut self.notes else {
            return;
        };
        if is_failed {
            notes.deleted.abandon();
        } else {
            notes.deleted.close(None);
        }
    }
}

/// Which version of a user key a target stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionBound {
    /// Before all of them.
    First,
    /// At the newest that the reader sees.
    Visible,
    /// At or after all of them.
    Last,
}

impl VersionBound {
    /// The sequence and type that stand there, for a reader at `snapshot`.
    fn place(self, snapshot: Seq) -> (Seq, ValueType) {
        match self {
            VersionBound::First => (Seq::MAX, ValueType::SEEK),
            VersionBound::Visible => (snapshot, ValueType::SEEK),
            VersionBound::Last => (Seq::ZERO, ValueType::SEEK_FOR_PREV),
        }
    }
}

fn is_deletion(kind: ValueType) -> bool {
    matches!(
        kind,
        ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp
    )
}
