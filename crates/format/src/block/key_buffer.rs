//! The key of a block cursor, rebuilt at every step from the one before.
//!
//! Most steps replace a few bytes at the end. The buffer is longer than the key, so they are copied
//! as one piece of fixed size, without a call.
//!
//! Invariant: `len` is at most the length of `bytes`; what is behind it has no meaning.

/// Bytes copied at once.
const PIECE: usize = 32;

/// Bytes of a head: see [`KeyBuffer::begin_with`].
pub(super) const HEAD: usize = 48;

/// A key with room behind it.
#[derive(Debug, Default)]
pub(super) struct KeyBuffer {
    bytes: Vec<u8>,
    len: usize,
}

impl KeyBuffer {
    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// The last `N` bytes of the key, if it has as many.
    #[inline]
    pub(super) fn last_chunk_mut<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        self.bytes[..self.len].last_chunk_mut()
    }

    /// Keeps the first `shared` bytes, which the key must have, and adds `from[at..at + len]`,
    /// which must be there.
    #[inline(always)]
    pub(super) fn splice(&mut self, shared: usize, from: &[u8], at: usize, len: usize) {
        debug_assert!(shared <= self.len, "keeps more than there is");
        if len <= PIECE
            && let Some(new) = from.get(at..).and_then(<[u8]>::first_chunk::<PIECE>)
            && let Some(old) = self
                .bytes
                .get_mut(shared..)
                .and_then(<[u8]>::first_chunk_mut)
        {
            *old = *new;
            self.len = shared + len;
            return;
        }
        self.splice_long(shared, &from[at..at + len]);
    }

    #[inline(never)]
    fn splice_long(&mut self, shared: usize, rest: &[u8]) {
        let len = shared + rest.len();
        if self.bytes.len() < len {
            self.bytes.resize(len + 2 * PIECE, 0);
        }
        self.bytes[shared..len].copy_from_slice(rest);
        self.len = len;
    }

    /// Makes the key `key`.
    #[inline]
    pub(super) fn set(&mut self, key: &[u8]) {
        match self.bytes.get_mut(..key.len()) {
            Some(old) => {
                old.copy_from_slice(key);
                self.len = key.len();
            }
            None => self.splice_long(0, key),
        }
    }

    /// Makes the key the first `len` bytes of `head`.
    #[inline(always)]
    pub(super) fn begin_with(&mut self, head: &[u8; HEAD], len: usize) {
        debug_assert!(len <= HEAD, "more than there is");
        match self.bytes.first_chunk_mut() {
            Some(old) => *old = *head,
            None => self.splice_long(0, head),
        }
        self.len = len;
    }
}
