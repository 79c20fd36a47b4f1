//! Numbers that are handed out in ranges and published in the order of the ranges, by threads that
//! do not wait for each other.
//!
//! A thread whose range is next publishes it. One that is too early leaves its range, with what is
//! to be done when it is visible, and the publisher of the range before it publishes that one too.
//! A thread waits for an earlier one only if it has to see its own range published; then it is
//! told.
//!
//! Invariant: `published` grows range by range. Between a publication and the look at what was left
//! stands a full fence, and one between leaving a range and the look at `published`: one of both
//! sees the other. Thread-safety: everything may be called by any thread.

use super::facade::{
    AtomicU64, AtomicUsize, Mutex, Ordering, Thread, current, fence, park, spin_loop,
};
use crate::{CachePadded, Rank};

/// A range that came before its turn.
#[derive(Debug)]
struct PendingRange<G> {
    first: u64,
    last: u64,
    group: G,
}

/// Ranges and threads that wait for `published`.
#[derive(Debug)]
struct Waiters<G> {
    early: Vec<PendingRange<G>>,
    sleepers: Vec<(u64, Thread)>,
}

/// The newest published number, and what waits for it. `G` is what belongs to a range that was
/// left.
#[derive(Debug)]
pub struct InOrder<G> {
    published: CachePadded<AtomicU64>,
    /// How many wait: ranges and sleepers.
    attention: CachePadded<AtomicUsize>,
    left: Mutex<Waiters<G>>,
}

impl<G> InOrder<G> {
    /// With everything up to `last` published.
    pub fn new(last: u64) -> Self {
        let left = Waiters {
            early: Vec::new(),
            sleepers: Vec::new(),
        };
        InOrder {
            published: CachePadded::new(AtomicU64::new(last)),
            attention: CachePadded::new(AtomicUsize::new(0)),
            left: Mutex::new(Rank::LEAF, left),
        }
    }

    /// Sets the newest number; only while nothing is in flight.
    pub fn reset(&self, last: u64) {
        self.published.store(last, Ordering::Release);
    }

    /// The newest published number.
    #[inline]
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Publishes `first..=last` if it is next; false, and nothing done, when it is not.
    /// [`InOrder::take_ready`] is to follow.
    #[inline]
    pub fn try_publish(&self, first: u64, last: u64) -> bool {
        if self.published.load(Ordering::Acquire) != first - 1 {
            return false;
        }
        self.published.store(last, Ordering::Release);
        fence(Ordering::SeqCst);
        true
    }

    /// Publishes the ranges that were left for this moment, and returns what belongs to them.
    #[inline]
    pub fn take_ready(&self) -> Vec<G> {
        match self.attention.load(Ordering::Relaxed) {
            0 => Vec::new(),
            _ => self.drain(None),
        }
    }

    /// Leaves `first..=last` to the publisher of the range before. Returns what is published by
    /// now, this range's own perhaps.
    #[cold]
    pub fn leave(&self, first: u64, last: u64, group: G) -> Vec<G> {
        self.drain(Some(PendingRange { first, last, group }))
    }

    #[cold]
    fn drain(&self, own: Option<PendingRange<G>>) -> Vec<G> {
        let (mut ready, mut awake) = (Vec::new(), Vec::new());
        let mut left = self.left.lock();
        if let Some(own) = own {
            left.early.push(own);
            self.attention.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
        loop {
            let published = self.published.load(Ordering::Acquire);
            let Some(at) = left.early.iter().position(|e| e.first == published + 1) else {
                break;
            };
            let next = left.early.swap_remove(at);
            self.attention.fetch_sub(1, Ordering::SeqCst);
            self.published.store(next.last, Ordering::Release);
            // The thread of the following range may have come just before.
            fence(Ordering::SeqCst);
            ready.push(next.group);
        }
        let published = self.published.load(Ordering::Acquire);
        let is_due = |sleeper: &mut (u64, Thread)| sleeper.0 <= published;
        for (_, thread) in left.sleepers.extract_if(.., is_due) {
            self.attention.fetch_sub(1, Ordering::SeqCst);
            awake.push(thread);
        }
        drop(left);
        awake.iter().for_each(Thread::unpark);
        ready
    }

    /// Waits until `last` is published: looks `spins` times, then sleeps.
    pub fn wait_for(&self, last: u64, spins: u32) {
        for _ in 0..spins {
            if self.published() >= last {
                return;
            }
            spin_loop();
        }
        if self.published() >= last {
            return;
        }
        let mut left = self.left.lock();
        left.sleepers.push((last, current()));
        self.attention.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_late = self.published() >= last;
        if is_late {
            // Published meanwhile, perhaps by a thread that saw no sleeper.
            left.sleepers.pop();
            self.attention.fetch_sub(1, Ordering::SeqCst);
        }
        drop(left);
        while self.published() < last {
            park();
        }
    }
}
