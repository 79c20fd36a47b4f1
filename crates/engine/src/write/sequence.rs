//! Sequence numbers: handed out under the log lock, published in the order they were handed out.
//!
//! `allocated` is the newest number that a write owns; `published` the newest that readers may see.
//! Writers insert into memtables concurrently and publish in order, so a reader that loads `published`
//! sees every write up to it and nothing beyond. While `allocated != published` writes are in flight,
//! and memtables must not be switched ([`Sequence::quiesce`]).
//!
//! What a writer waits for is another writer's memtable insert, which takes microseconds unless that writer
//! lost its processor. So waiting is spin, then yield, then sleep: a sleeper leaves its processor to the
//! writer that it waits for, where yielding for ever would keep it.

use esker_format::Seq;
use esker_sync::CachePadded;
use esker_sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use esker_sync::thread;
use esker_sync::{Condvar, Mutex, Rank};
use std::time::Duration;

const SPINS: u32 = 64;
const YIELDS: u32 = 32;
/// A sleeper looks again after this long even when nobody wakes it.
const SLEEP: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct Sequence {
    allocated: CachePadded<AtomicU64>,
    published: CachePadded<AtomicU64>,
    /// Writers that sleep until `published` changes.
    sleepers: AtomicUsize,
    bed: Mutex<()>,
    changed: Condvar,
}

impl Sequence {
    pub(crate) fn new(last: Seq) -> Self {
        Sequence {
            allocated: CachePadded::new(AtomicU64::new(last.0)),
            published: CachePadded::new(AtomicU64::new(last.0)),
            sleepers: AtomicUsize::new(0),
            bed: Mutex::new(Rank::LEAF, ()),
            changed: Condvar::new(),
        }
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
        self.wait_until(|published| published == first.0 - 1);
        self.published.store(first.0 + count - 1, Ordering::Release);
        // The store comes before the look at who sleeps.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            drop(self.bed.lock());
            self.changed.notify_all();
        }
    }

    /// Waits until no write is in flight. The caller holds the log lock, so none can start.
    pub(crate) fn quiesce(&self) {
        let all = self.allocated.load(Ordering::Relaxed);
        self.wait_until(|published| published >= all);
    }

    #[inline]
    fn wait_until(&self, ready: impl Fn(u64) -> bool) {
        if !ready(self.published.load(Ordering::Acquire)) {
            self.wait_long(ready);
        }
    }

    fn wait_long(&self, ready: impl Fn(u64) -> bool) {
        let is_ready = || ready(self.published.load(Ordering::Acquire));
        for turn in 0..SPINS + YIELDS {
            if is_ready() {
                return;
            }
            if turn < SPINS {
                thread::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        let mut bed = self.bed.lock();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        while !is_ready() {
            self.changed.wait_for(&mut bed, SLEEP);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
