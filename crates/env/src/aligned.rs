//! Memory aligned for `O_DIRECT`, by over-allocation: no unsafe code is needed for it.

/// The alignment that direct I/O uses for addresses, offsets and lengths.
pub(crate) const DIRECT_ALIGN: usize = 4096;

/// A zeroed buffer whose first byte is aligned to 4096.
#[derive(Debug)]
pub struct AlignedBuf {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// A buffer of `len` bytes, rounded up to the alignment.
    pub fn new(len: usize) -> Self {
        let len = len.max(1).next_multiple_of(DIRECT_ALIGN);
        let bytes = vec![0; len + DIRECT_ALIGN];
        let address = bytes.as_ptr().addr();
        AlignedBuf {
            start: address.next_multiple_of(DIRECT_ALIGN) - address,
            bytes,
            len,
        }
    }

    /// Bytes in the buffer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a buffer has at least one unit.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// The bytes, to fill.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// Whether `value` is a multiple of the alignment.
#[inline]
pub(crate) fn is_aligned(value: u64) -> bool {
    value.is_multiple_of(DIRECT_ALIGN as u64)
}
