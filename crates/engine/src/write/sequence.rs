//! Sequence numbers: handed out under the log lock, published in the order they were handed out.
//!
//! `allocated` is the newest number that a write owns; `published` the newest that readers may see.
//! Writers insert into memtables concurrently and publish in order, so a reader that loads `published`
//! sees every write up to it and nothing beyond. While `allocated != published` writes are in flight,
//! and memtables must not be switched ([`Sequence::quiesce`]).

use esker_format::Seq;
use esker_sync::CachePadded;
use esker_sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Sequence {
    allocated: CachePadded<AtomicU64>,
    published: CachePadded<AtomicU64>,
}

impl Sequence {
    pub(crate) fn new(last: Seq) -> Self {
        let s = Sequence::default();
        s.reset(last);
        s
    }

    /// Sets both numbers; only while nothing else runs (recovery, ingestion under the log lock).
    pub(crate) fn reset(&self, last: Seq) {
        self.allocated.store(last.0, Ordering::Relaxed);
        self.published.store(last.0, Ordering::Release);
    }

    /// The newest sequence that readers may see.
    #[inline]
    pub(crate) fn published(&self) -> Seq {
        Seq(self.published.load(Ordering::Acquire))
    }

    /// The newest sequence that a write owns.
    pub(crate) fn allocated(&self) -> Seq {
        Seq(self.allocated.load(Ordering::Relaxed))
    }

    /// Takes `count` numbers and returns the first. The caller holds the log lock.
    #[inline]
    pub(crate) fn allocate(&self, count: u64) -> Seq {
        let last = self.allocated.load(Ordering::Relaxed);
        self.allocated.store(last + count, Ordering::Relaxed);
        Seq(last + 1)
    }

    /// Makes `first..first + count` visible once everything before is.
    #[inline]
    pub(crate) fn publish(&self, first: Seq, count: u64) {
        if count == 0 {
            return;
        }
        wait_until(|| self.published.load(Ordering::Acquire) == first.0 - 1);
        self.published.store(first.0 + count - 1, Ordering::Release);
    }

    /// Waits until no write is in flight. The caller holds the log lock, so none can start.
    pub(crate) fn quiesce(&self) {
        let all = self.allocated.load(Ordering::Relaxed);
        wait_until(|| self.published.load(Ordering::Acquire) >= all);
    }
}

/// Spins, then yields, until `ready`.
///
/// What is waited for is another writer's memtable insert: microseconds of CPU, never I/O.
#[inline]
pub(crate) fn wait_until(ready: impl Fn() -> bool) {
    let mut turns = 0u32;
    while !ready() {
        turns += 1;
        if turns < 64 {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}
