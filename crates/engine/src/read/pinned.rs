//! Values as reads return them: without a copy where the bytes can be kept in place.

use esker_files::table::PinnedBlockValue;
use esker_lsm::point::Payload;
use std::fmt;
use std::ops::Deref;

/// A value that a read found. It dereferences to its bytes; a value inside a cached block keeps the block
/// in memory for as long as it lives.
#[derive(Clone)]
pub struct PinnedValue(pub(crate) Held);

#[derive(Clone)]
pub(crate) enum Held {
    Owned(Vec<u8>),
    Block(PinnedBlockValue),
}

impl PinnedValue {
    pub(crate) fn owned(bytes: Vec<u8>) -> Self {
        PinnedValue(Held::Owned(bytes))
    }

    /// The bytes, copied only when they are inside a block.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Held::Owned(v) => v,
            Held::Block(b) => b.as_slice().to_vec(),
        }
    }
}

impl Deref for PinnedValue {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Owned(v) => v,
            Held::Block(b) => b.as_slice(),
        }
    }
}

impl AsRef<[u8]> for PinnedValue {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Payload for PinnedValue {
    fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            Held::Owned(v) => v.truncate(len),
            Held::Block(b) => b.truncate(u32::try_from(len).unwrap_or(u32::MAX)),
        }
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for PinnedValue {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl From<Vec<u8>> for PinnedValue {
    fn from(v: Vec<u8>) -> PinnedValue {
        PinnedValue::owned(v)
    }
}

impl From<PinnedValue> for Vec<u8> {
    fn from(v: PinnedValue) -> Vec<u8> {
        v.into_vec()
    }
}
