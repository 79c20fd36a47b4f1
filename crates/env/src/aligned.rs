//! Memory aligned for `O_DIRECT`, by over-allocation: no unsafe code is needed for it.

use esker_sync::memory::{CountedBytes, Gauge, usable_size};
use esker_sync::{Mutex, Rank};
use std::sync::Arc;

/// The alignment that direct I/O uses for addresses, offsets and lengths.
pub const DIRECT_ALIGN: usize = 4096;
/// Most bytes of buffers that are kept for the next user.
const SPARE_BYTES_MAX: usize = 16 << 20;

/// Bytes of all [`AlignedBuf`]s of the process, those that wait for the next user included.
pub static FILE_BUFFERS: Gauge = Gauge::new();

/// A buffer whose first byte is aligned to 4096.
#[derive(Debug)]
pub struct AlignedBuf {
    bytes: Vec<u8>,
    /// `None` when the memory has gone elsewhere.
    counted: Option<CountedBytes>,
    start: usize,
    len: usize,
    /// Takes the memory back when the buffer is dropped.
    home: Option<Arc<Spares>>,
}

impl AlignedBuf {
    /// A zeroed buffer of `len` bytes, rounded up to the alignment.
    pub fn new(len: usize) -> Self {
        let len = len.max(1).next_multiple_of(DIRECT_ALIGN);
        let bytes = vec![0; len + DIRECT_ALIGN];
        let address = bytes.as_ptr().addr();
        AlignedBuf {
            start: address.next_multiple_of(DIRECT_ALIGN) - address,
            counted: Some(CountedBytes::new(
                &FILE_BUFFERS,
                usable_size(bytes.capacity()),
            )),
            bytes,
            len,
            home: None,
        }
    }

    /// Makes the memory go to `home` when it is dropped.
    pub(crate) fn returning_to(mut self, home: &Arc<Spares>) -> Self {
        self.home = Some(Arc::clone(home));
        self
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

/// Buffers that are not in use: making one costs a page fault for every 4 KB.
#[derive(Debug)]
pub(crate) struct Spares(Mutex<SpareList>);

#[derive(Debug)]
struct SpareList {
    buffers: Vec<AlignedBuf>,
    /// Buffers that come back are kept.
    keeps: bool,
}

impl Spares {
    pub(crate) fn new() -> Self {
        let list = SpareList {
            buffers: Vec::new(),
            keeps: true,
        };
        Spares(Mutex::new(Rank::LEAF, list))
    }

    /// One of `len` bytes or not much more.
    pub(crate) fn take(&self, len: usize) -> Option<AlignedBuf> {
        let mut list = self.0.lock();
        let fits = |b: &AlignedBuf| b.len() >= len && b.len() / 2 <= len;
        let at = list.buffers.iter().rposition(fits)?;
        Some(list.buffers.swap_remove(at))
    }

    /// Keeps what comes back from now on.
    pub(crate) fn begin(&self) {
        self.0.lock().keeps = true;
    }

    /// Frees all, and what comes back until [`Spares::begin`].
    pub(crate) fn end(&self) {
        let mut list = self.0.lock();
        list.keeps = false;
        let buffers = std::mem::take(&mut list.buffers);
        drop(list);
        drop(buffers);
    }

    /// Keeps `buffer`, or frees it when there are enough.
    fn put(&self, buffer: AlignedBuf) {
        let mut list = self.0.lock();
        let held: usize = list.buffers.iter().map(AlignedBuf::len).sum();
        if list.keeps && held + buffer.len() <= SPARE_BYTES_MAX {
            list.buffers.push(buffer);
        }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.put(AlignedBuf {
                bytes: std::mem::take(&mut self.bytes),
                counted: self.counted.take(),
                start: self.start,
                len: self.len,
                home: None,
            });
        }
    }
}

/// Returns whether `value` is a multiple of the alignment.
#[inline]
pub(crate) fn is_aligned(value: u64) -> bool {
    value.is_multiple_of(DIRECT_ALIGN as u64)
}
