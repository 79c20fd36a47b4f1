//! Internal keys: a user key followed by eight bytes that hold sequence and type.
//!
//! Layout: `user key ++ fixed64(sequence << 8 | type)`. Order: user keys ascending by the
//! comparator, then trailers descending, so that the newest version of a key comes first
//! ([`crate::KeyOrder::compare_internal`]).

use crate::ids::Seq;
use esker_status::{Error, Result};
use std::fmt;

/// Bytes of the trailer.
pub const TRAILER_LEN: usize = 8;

/// The type of an entry. The numbers are those on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ValueType {
    /// The key is gone.
    Deletion = 0x00,
    /// The key has this value.
    Value = 0x01,
    /// An operand for the merge operator.
    Merge = 0x02,
    /// The one value below is gone.
    SingleDeletion = 0x07,
    /// A range is gone; in range-deletion blocks and file boundaries only.
    RangeDeletion = 0x0F,
    /// The value is in a blob file; the entry's value is a blob index.
    BlobIndex = 0x11,
    /// A deletion in a family with user-defined timestamps.
    DeletionWithTimestamp = 0x14,
    /// The value is a wide-column entity.
    WideColumnEntity = 0x16,
    /// A value that carries its preferred sequence number (or write time) as a suffix.
    ValuePreferredSeqno = 0x18,
}

impl ValueType {
    /// The type that sorts before every entry of the same user key and sequence.
    pub const SEEK: ValueType = ValueType::ValuePreferredSeqno;
    /// The type that sorts after every entry of the same user key and sequence.
    pub const SEEK_FOR_PREV: ValueType = ValueType::Deletion;

    /// The type with this number, when it may appear in an internal key.
    #[inline]
    pub fn from_u8(v: u8) -> Option<ValueType> {
        Some(match v {
            0x00 => ValueType::Deletion,
            0x01 => ValueType::Value,
            0x02 => ValueType::Merge,
            0x07 => ValueType::SingleDeletion,
            0x0F => ValueType::RangeDeletion,
            0x11 => ValueType::BlobIndex,
            0x14 => ValueType::DeletionWithTimestamp,
            0x16 => ValueType::WideColumnEntity,
            0x18 => ValueType::ValuePreferredSeqno,
            _ => return None,
        })
    }
}

/// Sequence and type as the eight trailing bytes hold them.
#[inline]
pub fn pack(seq: Seq, kind: ValueType) -> u64 {
    seq.0 << 8 | kind as u64
}

/// The trailer of an internal key of at least [`TRAILER_LEN`] bytes; 0 for a shorter one.
#[inline]
pub fn trailer(internal: &[u8]) -> u64 {
    match internal.last_chunk::<TRAILER_LEN>() {
        Some(t) => u64::from_le_bytes(*t),
        None => 0,
    }
}

/// The user key inside an internal key; empty for one shorter than [`TRAILER_LEN`].
#[inline]
pub fn user_key(internal: &[u8]) -> &[u8] {
    &internal[..internal.len().saturating_sub(TRAILER_LEN)]
}

/// The sequence of an internal key.
#[inline]
pub fn seq_of(internal: &[u8]) -> Seq {
    Seq(trailer(internal) >> 8)
}

/// Writes `user ++ trailer` to the end of `out`.
#[inline]
pub fn append_internal(out: &mut Vec<u8>, user: &[u8], seq: Seq, kind: ValueType) {
    out.reserve(user.len() + TRAILER_LEN);
    out.extend_from_slice(user);
    out.extend_from_slice(&pack(seq, kind).to_le_bytes());
}

/// An internal key taken apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ParsedKey<'a> {
    /// The user's key (with its timestamp, where the family has them).
    pub user: &'a [u8],
    /// The write it belongs to.
    pub seq: Seq,
    /// Its type.
    pub kind: ValueType,
}

impl<'a> ParsedKey<'a> {
    /// Takes an internal key apart; `Corruption` when it is too short or of unknown type.
    #[inline]
    pub fn parse(internal: &'a [u8]) -> Result<ParsedKey<'a>> {
        let t = trailer(internal);
        match (internal.len() >= TRAILER_LEN, ValueType::from_u8(t as u8)) {
            (true, Some(kind)) => Ok(ParsedKey {
                user: user_key(internal),
                seq: Seq(t >> 8),
                kind,
            }),
            _ => Err(malformed(internal)),
        }
    }
}

#[cold]
fn malformed(internal: &[u8]) -> Error {
    if internal.len() < TRAILER_LEN {
        Error::corruption(format!(
            "internal key of {} bytes is shorter than its trailer",
            internal.len()
        ))
    } else {
        Error::corruption(format!(
            "unknown value type {:#04x} in an internal key",
            trailer(internal) as u8
        ))
    }
}

impl fmt::Debug for ParsedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}@{}:{:?}",
            self.user.escape_ascii(),
            self.seq,
            self.kind
        )
    }
}

/// An owned internal key: a file boundary, a seek target, a compaction cursor.
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct InternalKey(Vec<u8>);

impl InternalKey {
    /// `user` at `seq` of `kind`.
    pub fn new(user: &[u8], seq: Seq, kind: ValueType) -> Self {
        let mut v = Vec::with_capacity(user.len() + TRAILER_LEN);
        append_internal(&mut v, user, seq, kind);
        InternalKey(v)
    }
    /// From encoded bytes, which are checked.
    pub fn from_encoded(bytes: &[u8]) -> Result<Self> {
        ParsedKey::parse(bytes)?;
        Ok(InternalKey(bytes.to_vec()))
    }
    /// The exclusive end of a range tombstone as a file's largest key: sorts before every entry of
    /// `user`.
    pub fn range_end_sentinel(user: &[u8]) -> Self {
        Self::new(user, Seq::MAX, ValueType::RangeDeletion)
    }
    /// Returns whether this is a [`InternalKey::range_end_sentinel`].
    pub fn is_range_end_sentinel(&self) -> bool {
        trailer(&self.0) == pack(Seq::MAX, ValueType::RangeDeletion)
    }
    /// The encoded bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// The user key.
    #[inline]
    pub fn user(&self) -> &[u8] {
        user_key(&self.0)
    }
    /// The sequence.
    #[inline]
    pub fn seq(&self) -> Seq {
        seq_of(&self.0)
    }
    /// The type.
    pub fn kind(&self) -> ValueType {
        ValueType::from_u8(trailer(&self.0) as u8).unwrap_or(ValueType::Deletion)
    }
}

impl fmt::Debug for InternalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}@{}:{:?}",
            self.user().escape_ascii(),
            self.seq(),
            self.kind()
        )
    }
}
