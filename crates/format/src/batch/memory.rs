//! The memory of large batches, counted for the process.
//!
//! Thread-safety: each batch counts its own; the sum is for anybody.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Batches from this size on are counted.
const LARGE: usize = 64 << 10;

static LARGE_BATCHES: AtomicUsize = AtomicUsize::new(0);

/// Bytes of all batches of this process that have 64 KB or more.
pub fn large_batch_bytes() -> usize {
    LARGE_BATCHES.load(Relaxed)
}

/// The bytes of one batch, as they are counted.
#[derive(Debug, Default)]
pub(super) struct CountedBatch(usize);

impl CountedBatch {
    /// Counts `capacity` from now on.
    #[inline]
    pub(super) fn follow(&mut self, capacity: usize) {
        if capacity != self.0 {
            self.set(capacity);
        }
    }

    #[cold]
    fn set(&mut self, capacity: usize) {
        let before = std::mem::replace(&mut self.0, capacity);
        let counted = |bytes: usize| if bytes < LARGE { 0 } else { bytes };
        LARGE_BATCHES.fetch_add(counted(capacity), Relaxed);
        LARGE_BATCHES.fetch_sub(counted(before), Relaxed);
    }
}

impl Clone for CountedBatch {
    /// The copy is counted once it changes: its memory is not known yet.
    fn clone(&self) -> Self {
        CountedBatch::default()
    }
}

impl Drop for CountedBatch {
    fn drop(&mut self) {
        if self.0 >= LARGE {
            self.set(0);
        }
    }
}
