//! The writers that wait for the log lock.
//!
//! A writer that finds the lock taken leaves its batch in a [`Slot`] and waits. Whoever holds the lock
//! next takes all waiting slots as one group. A slot's state moves Waiting -> Assigned (in the log: insert
//! your batch at this sequence), Waiting -> Failed, or Waiting -> Aside (one of its families lets nobody in: come again when
//! it does, so that those behind you need not wait); only the holder of the log lock moves it.
//! Waiting is spin, then yield, then park: a group takes microseconds without sync and milliseconds with.

use super::touched::Touched;
use crate::options::WriteOptions;
use crate::ranks;
use esker_format::Seq;
use esker_format::batch::WriteBatch;
use esker_status::Error;
use esker_sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use esker_sync::thread::{self, Thread};
use esker_sync::{Arc, Mutex, Rank};
use std::time::Duration;

const WAITING: u8 = 0;
const ASSIGNED: u8 = 1;
const FAILED: u8 = 2;
const ASIDE: u8 = 3;

const SPINS: u32 = 256;
const YIELDS: u32 = 64;
/// A parked writer looks again after this long even when nobody wakes it.
const PARK: Duration = Duration::from_millis(5);

/// One waiting writer.
#[derive(Debug)]
pub(crate) struct Slot {
    state: AtomicU8,
    parked: AtomicBool,
    thread: Thread,
    job: Mutex<SlotJob>,
}

/// What a waiting writer wants, and what became of it.
#[derive(Debug, Default)]
pub(crate) struct SlotJob {
    pub(crate) batch: WriteBatch,
    pub(crate) touched: Touched,
    pub(crate) options: WriteOptions,
    pub(crate) first: Seq,
    pub(crate) error: Option<Error>,
}

impl Slot {
    fn new(batch: WriteBatch, touched: Touched, options: WriteOptions) -> Arc<Self> {
        Arc::new(Slot {
            state: AtomicU8::new(WAITING),
            parked: AtomicBool::new(false),
            thread: thread::current(),
            job: Mutex::new(
                Rank::LEAF,
                SlotJob {
                    batch,
                    touched,
                    options,
                    first: Seq::ZERO,
                    error: None,
                },
            ),
        })
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.state.load(Ordering::Acquire) == WAITING
    }

    /// Whether it stepped aside.
    pub(crate) fn is_aside(&self) -> bool {
        self.state.load(Ordering::Acquire) == ASIDE
    }

    /// Runs `f` on the job; the holder of the log lock while Waiting, the owner afterwards.
    pub(crate) fn with_job<R>(&self, f: impl FnOnce(&mut SlotJob) -> R) -> R {
        f(&mut self.job.lock())
    }

    /// In the log: the owner is to insert its batch at the sequence that was put into the job.
    pub(crate) fn assign(&self) {
        self.finish(ASSIGNED);
    }

    /// Not written, and why.
    pub(crate) fn fail(&self, error: Error) {
        self.job.lock().error = Some(error);
        self.finish(FAILED);
    }

    fn finish(&self, state: u8) {
        self.state.store(state, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if self.parked.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}

/// The queue of waiting slots, in arrival order.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    waiting: Mutex<Vec<Arc<Slot>>>,
    len: AtomicUsize,
}

impl WriteQueue {
    pub(crate) fn new() -> Self {
        WriteQueue {
            waiting: Mutex::new(ranks::WRITE_QUEUE, Vec::new()),
            len: AtomicUsize::new(0),
        }
    }

    /// Leaves a batch in the queue.
    pub(crate) fn enqueue(
        &self,
        batch: WriteBatch,
        touched: Touched,
        options: WriteOptions,
    ) -> Arc<Slot> {
        let slot = Slot::new(batch, touched, options);
        self.waiting.lock().push(Arc::clone(&slot));
        self.len.fetch_add(1, Ordering::SeqCst);
        slot
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::SeqCst) == 0
    }

    /// Takes the waiting slots from the front for as long as `take` says yes. The caller holds the log lock.
    pub(crate) fn drain(&self, mut take: impl FnMut(&SlotJob) -> bool) -> Vec<Arc<Slot>> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut waiting = self.waiting.lock();
        let n = waiting
            .iter()
            .take_while(|s| s.with_job(|j| take(j)))
            .count();
        let taken: Vec<_> = waiting.drain(..n).collect();
        self.len.fetch_sub(n, Ordering::SeqCst);
        taken
    }

    /// Lets those step aside that `is_stopped` says yes to. The caller holds the log lock.
    pub(crate) fn let_aside(&self, is_stopped: impl Fn(&SlotJob) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        waiting.retain(|slot| {
            let steps = slot.with_job(|job| is_stopped(job));
            if steps {
                slot.finish(ASIDE);
            }
            !steps
        });
        self.len.fetch_sub(before - waiting.len(), Ordering::SeqCst);
    }

    /// Takes out a slot that gives up. The caller holds the log lock.
    pub(crate) fn remove(&self, slot: &Arc<Slot>) {
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        waiting.retain(|s| !Arc::ptr_eq(s, slot));
        self.len.fetch_sub(before - waiting.len(), Ordering::SeqCst);
    }

    /// Wakes the writer at the front, so that it takes the log lock that was just released.
    #[inline]
    pub(crate) fn wake_front(&self) {
        // The release of the lock comes before the look at who is parked.
        fence(Ordering::SeqCst);
        if !self.is_empty()
            && let Some(front) = self.waiting.lock().first()
        {
            front.wake();
        }
    }
}

/// Waits until `slot` is no longer Waiting or `lead` gives something (the log lock was free). What it gives
/// is returned only while the slot is Waiting still: the holder of the log lock is the one who changes that.
pub(crate) fn wait_or_lead<T>(slot: &Slot, mut lead: impl FnMut() -> Option<T>) -> Option<T> {
    let mut turns = 0u32;
    loop {
        if !slot.is_waiting() {
            return None;
        }
        if let Some(lock) = lead() {
            // A leader may have dealt with the slot just before it let go of the lock. To lead now would be
            // to wait for one's own batch, which nobody else inserts.
            if slot.is_waiting() {
                return Some(lock);
            }
            return None;
        }
        turns += 1;
        if turns < SPINS {
            thread::spin_loop();
        } else if turns < SPINS + YIELDS {
            thread::yield_now();
        } else {
            slot.parked.store(true, Ordering::SeqCst);
            // The lock may have been released before `parked` could be seen: nobody would wake this one.
            let lock = lead();
            if lock.is_none() && slot.is_waiting() {
                thread::park_timeout(PARK);
            }
            slot.parked.store(false, Ordering::SeqCst);
            if lock.is_some() {
                return lock.filter(|_| slot.is_waiting());
            }
        }
    }
}
