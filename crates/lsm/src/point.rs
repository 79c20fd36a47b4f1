//! The state machine of a point read, over the versions of one key.
//!
//! The caller walks the sources newest first (memtables, L0 files, levels); for each it first
//! raises the covering tombstone ([`PointResolver::cover`]), then feeds the visible versions of the
//! key, newest first, until told [`PointState::Done`]. The values are the caller's own handles: the
//! common answer returns the very handle that was fed, so a pinned block stays pinned and nothing
//! is copied. Operands are copied only by the merge itself.
//!
//! Callers: Get, MultiGet, GetEntity. One resolver per key; not shared.

use crate::merge_operator::{Base, MergeOperator, Operands, full_merge, missing_operator};
use esker_format::{Seq, ValueType, wide_column};
use esker_status::{Error, Result};
use smallvec::SmallVec;

/// A handle on the bytes of a value.
pub trait Payload: AsRef<[u8]> {
    /// Shortens the value to `len` bytes; not called with more than it has.
    fn truncate(&mut self, len: usize);
}

impl Payload for Vec<u8> {
    fn truncate(&mut self, len: usize) {
        Vec::truncate(self, len);
    }
}

impl Payload for &[u8] {
    fn truncate(&mut self, len: usize) {
        *self = &self[..len];
    }
}

/// The state of a resolver: whether it needs older versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointState {
    /// Go on with the next older version or source.
    NeedMore,
    /// The answer is known: call [`PointResolver::finish`].
    Done,
}

/// The answer of a point read.
#[derive(Debug, PartialEq, Eq)]
pub enum ResolvedPoint<V> {
    /// The key was never written, as far as the sources fed go.
    Missing,
    /// The key is deleted.
    Deleted,
    /// A plain value, as it was fed.
    Value(V),
    /// An encoded wide-column entity, as it was fed.
    Entity(V),
    /// A plain value that a merge made.
    Merged(Vec<u8>),
    /// An encoded wide-column entity that a merge made, or that was put together.
    MergedEntity(Vec<u8>),
    /// The value is in a blob file: read it and call [`PendingBlob::complete`].
    Blob(PendingBlob<V>),
    /// An entity that may have values in blob files: call [`SplitEntity::complete`].
    SplitEntity(SplitEntity<V>),
}

/// An encoded entity, some of whose values may be in blob files, and the operands that wait for
/// it.
#[derive(Debug, PartialEq, Eq)]
pub struct SplitEntity<V> {
    entity: V,
    operands: SmallVec<[V; 4]>,
}

impl<V: Payload> SplitEntity<V> {
    /// The answer; `read` puts the value of an encoded blob index into an empty buffer.
    pub fn complete(
        self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        read: impl FnMut(&[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<ResolvedPoint<V>> {
        let mut whole = Vec::new();
        if !wide_column::join_blobs(self.entity.as_ref(), &mut whole, read)? {
            whole.extend_from_slice(self.entity.as_ref());
        }
        if self.operands.is_empty() {
            return Ok(ResolvedPoint::MergedEntity(whole));
        }
        merge(operator, key, Base::Entity(&whole), &self.operands)
    }
}

/// A blob index, and the operands that wait for the blob.
#[derive(Debug, PartialEq, Eq)]
pub struct PendingBlob<V> {
    /// The encoded blob index.
    pub index: V,
    operands: SmallVec<[V; 4]>,
}

impl<V: Payload> PendingBlob<V> {
    /// Returns whether the blob is the answer, with nothing to merge over it.
    pub fn is_plain(&self) -> bool {
        self.operands.is_empty()
    }

    /// The answer, given the blob's value.
    pub fn complete(
        self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        blob: V,
    ) -> Result<ResolvedPoint<V>> {
        if self.operands.is_empty() {
            return Ok(ResolvedPoint::Value(blob));
        }
        merge(operator, key, Base::Value(blob.as_ref()), &self.operands)
    }
}

/// The plain value inside a value that carries its preferred sequence: all but the last eight
/// bytes.
pub fn strip_preferred_seqno(packed: &[u8]) -> Result<(&[u8], Seq)> {
    match packed.split_last_chunk::<8>() {
        Some((value, seq)) => Ok((value, Seq(u64::from_le_bytes(*seq)))),
        None => Err(Error::corruption(
            "a value with a preferred sequence is shorter than eight bytes",
        )),
    }
}

fn merge<V: Payload>(
    operator: Option<&dyn MergeOperator>,
    key: &[u8],
    base: Base<'_>,
    newest_first: &[V],
) -> Result<ResolvedPoint<V>> {
    let operator = operator.ok_or_else(missing_operator)?;
    let operands: SmallVec<[&[u8]; 8]> = newest_first.iter().rev().map(AsRef::as_ref).collect();
    let mut out = Vec::new();
    match full_merge(operator, key, base, &operands, &mut out)? {
        ValueType::WideColumnEntity => Ok(ResolvedPoint::MergedEntity(out)),
        _ => Ok(ResolvedPoint::Merged(out)),
    }
}

/// An entity with nothing to merge over it.
fn entity<V: Payload>(entity: V) -> ResolvedPoint<V> {
    if !wide_column::may_be_split(entity.as_ref()) {
        return ResolvedPoint::Entity(entity);
    }
    let operands = SmallVec::new();
    ResolvedPoint::SplitEntity(SplitEntity { entity, operands })
}

#[derive(Debug)]
enum BaseValue<V> {
    Nothing,
    Deleted,
    Value(V),
    Entity(V),
    Blob(V),
}

/// Operands as they were fed, newest first.
struct OperandList<'v, V>(&'v [V]);

impl<V: AsRef<[u8]>> Operands for OperandList<'_, V> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> &[u8] {
        self.0[index].as_ref()
    }
}

/// The state of one point read.
#[derive(Debug)]
pub struct PointResolver<V> {
    covering: Seq,
    operands: SmallVec<[V; 4]>,
    found: BaseValue<V>,
    done: bool,
}

impl<V: Payload> Default for PointResolver<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Payload> PointResolver<V> {
    /// Nothing seen yet.
    pub fn new() -> Self {
        PointResolver {
            covering: Seq::ZERO,
            operands: SmallVec::new(),
            found: BaseValue::Nothing,
            done: false,
        }
    }

    /// Raises the newest tombstone known to cover the key: that of the source now begun, zero for
    /// none.
    #[inline]
    pub fn cover(&mut self, seq: Seq) {
        self.covering = self.covering.max(seq);
    }

    /// The newest tombstone known to cover the key.
    pub fn covering(&self) -> Seq {
        self.covering
    }

    /// Returns whether the answer is known.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns whether the answer is known to be a deletion, so far.
    pub fn is_deleted(&self) -> bool {
        self.done && matches!(self.found, BaseValue::Deleted)
    }

    /// The blob index that the answer needs, once it is known that it needs one.
    pub fn blob_index(&self) -> Option<&V> {
        match &self.found {
            BaseValue::Blob(index) if self.done => Some(index),
            _ => None,
        }
    }

    /// How many operands wait for a base.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// Gives up the answer: nothing older than what was fed is of interest. For callers that know
    /// from elsewhere (a tombstone newer than a whole source) that no older version counts.
    pub fn conclude_deleted(&mut self) {
        if !self.done {
            self.found = BaseValue::Deleted;
            self.done = true;
        }
    }

    /// Takes the next older visible version; `value` is called only when the value is needed.
    #[inline]
    pub fn feed(
        &mut self,
        seq: Seq,
        kind: ValueType,
        operator: Option<&dyn MergeOperator>,
        value: impl FnOnce() -> V,
    ) -> Result<PointState> {
        debug_assert!(!self.done, "fed after the answer was known");
        if self.covering > seq {
            self.found = BaseValue::Deleted;
        } else {
            match kind {
                ValueType::Value => self.found = BaseValue::Value(value()),
                ValueType::Deletion
                | ValueType::SingleDeletion
                | ValueType::DeletionWithTimestamp => {
                    self.found = BaseValue::Deleted;
                }
                ValueType::Merge => return self.feed_operand(operator, value()),
                ValueType::BlobIndex => self.found = BaseValue::Blob(value()),
                ValueType::WideColumnEntity => self.found = BaseValue::Entity(value()),
                ValueType::ValuePreferredSeqno => {
                    let mut value = value();
                    let len = strip_preferred_seqno(value.as_ref())?.0.len();
                    value.truncate(len);
                    self.found = BaseValue::Value(value);
                }
                ValueType::RangeDeletion => {
                    return Err(Error::corruption("a range deletion is among point entries"));
                }
            }
        }
        self.done = true;
        Ok(PointState::Done)
    }

    fn feed_operand(
        &mut self,
        operator: Option<&dyn MergeOperator>,
        value: V,
    ) -> Result<PointState> {
        let operator = operator.ok_or_else(missing_operator)?;
        self.operands.push(value);
        if operator.should_merge(&OperandList(&self.operands[..])) {
            self.found = BaseValue::Nothing;
            self.done = true;
            return Ok(PointState::Done);
        }
        Ok(PointState::NeedMore)
    }

    /// The operands seen, oldest first: for `GetMergeOperands`.
    pub fn operands(&self) -> impl Iterator<Item = &[u8]> + '_ {
        self.operands.iter().rev().map(AsRef::as_ref)
    }

    /// The answer without the operands that lie above it: for `GetMergeOperands`.
    pub fn into_base(mut self) -> ResolvedPoint<V> {
        self.operands.clear();
        match self.found {
            BaseValue::Nothing => ResolvedPoint::Missing,
            BaseValue::Deleted => ResolvedPoint::Deleted,
            BaseValue::Value(v) => ResolvedPoint::Value(v),
            BaseValue::Entity(v) => entity(v),
            BaseValue::Blob(index) => ResolvedPoint::Blob(PendingBlob {
                index,
                operands: SmallVec::new(),
            }),
        }
    }

    /// The answer, when every source was fed or the resolver said [`PointState::Done`]. Merges if
    /// it must.
    #[inline]
    pub fn finish(
        self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
    ) -> Result<ResolvedPoint<V>> {
        if !self.operands.is_empty() {
            return self.finish_merge(operator, key);
        }
        Ok(match self.found {
            BaseValue::Nothing if self.covering > Seq::ZERO => ResolvedPoint::Deleted,
            BaseValue::Nothing => ResolvedPoint::Missing,
            BaseValue::Deleted => ResolvedPoint::Deleted,
            BaseValue::Value(v) => ResolvedPoint::Value(v),
            BaseValue::Entity(v) => entity(v),
            BaseValue::Blob(index) => ResolvedPoint::Blob(PendingBlob {
                index,
                operands: SmallVec::new(),
            }),
        })
    }

    fn finish_merge(
        self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
    ) -> Result<ResolvedPoint<V>> {
        let base = match &self.found {
            BaseValue::Nothing | BaseValue::Deleted => Base::None,
            BaseValue::Value(v) => Base::Value(v.as_ref()),
            BaseValue::Entity(v) if !wide_column::may_be_split(v.as_ref()) => {
                Base::Entity(v.as_ref())
            }
            BaseValue::Entity(_) | BaseValue::Blob(_) => return Ok(self.wait_for_blobs()),
        };
        merge(operator, key, base, &self.operands)
    }

    /// The answer whose operands wait for what is in blob files.
    fn wait_for_blobs(self) -> ResolvedPoint<V> {
        let operands = self.operands;
        match self.found {
            BaseValue::Entity(entity) => {
                ResolvedPoint::SplitEntity(SplitEntity { entity, operands })
            }
            BaseValue::Blob(index) => ResolvedPoint::Blob(PendingBlob { index, operands }),
            _ => ResolvedPoint::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_operator::UInt64Add;
    use std::cell::Cell;

    thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    /// A value that counts how often its bytes are asked for.
    struct Counted([u8; 8]);

    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            LOOKS.set(LOOKS.get() + 1);
            &self.0
        }
    }

    impl Payload for Counted {
        fn truncate(&mut self, _: usize) {}
    }

    #[test]
    fn many_operands_are_looked_at_once_each() {
        let count = 10_000;
        let mut resolver = PointResolver::new();
        for seq in (1..=count as u64).rev() {
            let operand = || Counted(1u64.to_le_bytes());
            let fed = resolver.feed(Seq(seq), ValueType::Merge, Some(&UInt64Add), operand);
            assert_eq!(fed, Ok(PointState::NeedMore));
        }
        let Ok(ResolvedPoint::Merged(sum)) = resolver.finish(Some(&UInt64Add), b"k") else {
            panic!("operands without a base give a value")
        };
        assert_eq!(sum, (count as u64).to_le_bytes());
        assert!(LOOKS.get() <= 2 * count, "{} looks", LOOKS.get());
    }
}
