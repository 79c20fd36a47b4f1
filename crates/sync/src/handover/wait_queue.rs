//! A queue of threads that want something done under a lock, each with a job; the holder of the
//! lock does what it finds there.
//!
//! The lock is its user's. Rules for its holder: after releasing it, [`WaitQueue::call_front`], or
//! the front of the queue may sleep for ever. A thread that leaves a job looks at the lock once
//! more ([`Waiter::wait`] does): it was released before, or its holder sees the job. Any thread
//! that is awake may take the lock; no waiter has to be woken to go on, and a thread that was
//! called finds the lock taken at worst by one that takes its job too.
//!
//! The state of a waiter is one word, with a bit for "sleeps". Each change of the state by another
//! thread says whether it has to be woken, so a waiter is woken once for its outcome and no wake-up
//! is lost. Thread-safety: [`WaitQueue::take_while`], [`WaitQueue::retain`] and
//! [`WaitQueue::remove`] are for the holder of the lock, [`Waiter`]'s methods for the owner of its
//! job.

use super::facade::{
    Arc, AtomicU8, AtomicUsize, Mutex, Ordering, Thread, current, fence, park, spin_loop,
};
use crate::Rank;

/// In the queue.
const WAITING: u8 = 0;
/// In the queue, and to try for the lock.
const CALLED: u8 = 1;
/// Out of the queue: somebody works on the job.
const TAKEN: u8 = 2;
/// Out of the queue: its owner or the holder of the group works on the job, the first to come.
const OFFERED: u8 = 3;
/// The outcome is in the job.
const DONE: u8 = 4;
/// Added to a state: its owner sleeps, or is about to.
const SLEEPS: u8 = 0x80;

/// One waiting thread and its job.
#[derive(Debug)]
pub struct Waiter<T> {
    state: AtomicU8,
    thread: Thread,
    job: Mutex<T>,
}

/// Why a waiter goes on.
#[derive(Debug)]
pub enum WaitOutcome<L> {
    /// It has the lock, and its job is in the queue.
    Lead(L),
    /// It is to work on its own job, and to wait again.
    Work,
    /// The outcome is in its job.
    Done,
}

impl<T> Waiter<T> {
    /// The calling thread, in no queue, with a job that somebody works on.
    pub fn taken(job: T) -> Arc<Self> {
        Self::new(TAKEN, job)
    }

    fn new(state: u8, job: T) -> Arc<Self> {
        Arc::new(Waiter {
            state: AtomicU8::new(state),
            thread: current(),
            job: Mutex::new(Rank::LEAF, job),
        })
    }

    /// Returns whether its job is in the queue still.
    pub fn is_queued(&self) -> bool {
        let state = self.state.load(Ordering::Acquire) & !SLEEPS;
        state == WAITING || state == CALLED
    }

    /// Runs `f` on the job.
    pub fn with_job<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.job.lock())
    }

    /// Out of the queue: its owner leads no more for its own sake.
    fn take(&self) {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let taken = TAKEN | (state & SLEEPS);
            match self.swap_if(state, taken) {
                Ok(()) => return,
                Err(now) => state = now,
            }
        }
    }

    /// Lets its owner work on a job that was taken, unless [`Waiter::claim`] comes first.
    pub fn offer(&self) {
        self.change(OFFERED);
    }

    /// Takes the job back; false when its owner works on it.
    pub fn claim(&self) -> bool {
        self.swap_if(OFFERED, TAKEN).is_ok()
    }

    /// The outcome is in the job.
    pub fn finish(&self) {
        self.change(DONE);
    }

    /// Sets the state and wakes the owner if it sleeps.
    fn change(&self, state: u8) {
        if self.state.swap(state, Ordering::AcqRel) & SLEEPS != 0 {
            self.thread.unpark();
        }
    }

    fn swap_if(&self, from: u8, to: u8) -> Result<(), u8> {
        let done = self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        done.map(|_| ())
    }

    /// Calls it, one that sleeps when `wake` says so. Returns whether it has to be woken. The
    /// queue's lock is held.
    fn call(&self, wake: bool) -> bool {
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            if state & !SLEEPS != WAITING || (state & SLEEPS != 0 && !wake) {
                return false;
            }
            match self.swap_if(state, CALLED) {
                Ok(()) => return state & SLEEPS != 0,
                Err(now) => state = now,
            }
        }
    }

    /// Waits until somebody has dealt with the job or `lead` gives something (the lock was free):
    /// looks `spins` times, then sleeps. To be called by its owner.
    pub fn wait<L>(&self, mut spins: u32, mut lead: impl FnMut() -> Option<L>) -> WaitOutcome<L> {
        let mut is_called = true;
        loop {
            let state = self.state.load(Ordering::Acquire);
            match state {
                DONE => return WaitOutcome::Done,
                OFFERED => match self.swap_if(OFFERED, TAKEN) {
                    Ok(()) => return WaitOutcome::Work,
                    Err(_) => continue,
                },
                CALLED => {
                    // Before the look at the lock: a holder that releases it later calls again.
                    is_called |= self.swap_if(CALLED, WAITING).is_ok();
                    continue;
                }
                WAITING if is_called => {
                    is_called = false;
                    fence(Ordering::SeqCst);
                    if let Some(lock) = lead()
                        && self.is_queued()
                    {
                        return WaitOutcome::Lead(lock);
                    }
                    continue;
                }
                _ => {}
            }
            if spins > 0 {
                spins -= 1;
                spin_loop();
            } else if self.swap_if(state, state | SLEEPS).is_ok() {
                park();
                self.state.fetch_and(!SLEEPS, Ordering::AcqRel);
            }
        }
    }
}

/// The waiters whose job was not taken, in order of arrival.
#[derive(Debug)]
pub struct WaitQueue<T> {
    waiting: Mutex<Vec<Arc<Waiter<T>>>>,
    len: AtomicUsize,
}

impl<T> WaitQueue<T> {
    /// An empty queue, whose own lock has `rank`.
    pub fn new(rank: Rank) -> Self {
        WaitQueue {
            waiting: Mutex::new(rank, Vec::new()),
            len: AtomicUsize::new(0),
        }
    }

    /// Leaves a job. [`Waiter::wait`] is to follow.
    pub fn push(&self, job: T) -> Arc<Waiter<T>> {
        let waiter = Waiter::new(WAITING, job);
        self.waiting.lock().push(Arc::clone(&waiter));
        self.len.fetch_add(1, Ordering::SeqCst);
        waiter
    }

    /// Returns whether no job waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::SeqCst) == 0
    }

    /// How many jobs wait.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    /// Takes jobs from the front for as long as `wants` says yes.
    pub fn take_while(&self, mut wants: impl FnMut(&T) -> bool) -> Vec<Arc<Waiter<T>>> {
        if self.is_empty() {
            return Vec::new();
        }
        // Those who arrive must not wait while each job is looked at.
        let mut taken = std::mem::take(&mut *self.waiting.lock());
        let n = taken
            .iter()
            .take_while(|w| w.with_job(|job| wants(job)))
            .count();
        let rest = taken.split_off(n);
        if !rest.is_empty() {
            self.put_back(rest);
        }
        taken.iter().for_each(|w| w.take());
        self.len.fetch_sub(n, Ordering::SeqCst);
        taken
    }

    fn put_back(&self, rest: Vec<Arc<Waiter<T>>>) {
        let mut waiting = self.waiting.lock();
        let newer = std::mem::replace(&mut *waiting, rest);
        waiting.extend(newer);
    }

    /// Takes out those whose job `keep` says no to, and returns them.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) -> Vec<Arc<Waiter<T>>> {
        if self.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut *self.waiting.lock());
        let (rest, out): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|w| w.with_job(|job| keep(job)));
        self.put_back(rest);
        out.iter().for_each(|w| w.take());
        self.len.fetch_sub(out.len(), Ordering::SeqCst);
        out
    }

    /// Takes out one that gives up; false when it is not in the queue.
    pub fn remove(&self, waiter: &Arc<Waiter<T>>) -> bool {
        let mut waiting = self.waiting.lock();
        let Some(at) = waiting.iter().position(|w| Arc::ptr_eq(w, waiter)) else {
            return false;
        };
        waiting.remove(at);
        waiter.take();
        self.len.fetch_sub(1, Ordering::SeqCst);
        true
    }

    /// Runs `look` on the job at the front.
    pub fn front<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let front = self.waiting.lock().first().cloned();
        front.map(|w| w.with_job(|job| look(job)))
    }

    /// Calls the thread at the front to take the lock, which was just released. One that sleeps is
    /// called when `wake` says so; the caller has to come back otherwise.
    #[inline]
    pub fn call_front(&self, wake: bool) {
        // The release of the lock comes before the look at the waiters.
        fence(Ordering::SeqCst);
        if !self.is_empty() {
            self.call(wake);
        }
    }

    #[cold]
    fn call(&self, wake: bool) {
        let waiting = self.waiting.lock();
        let sleeper = waiting.first().filter(|w| w.call(wake)).cloned();
        drop(waiting);
        if let Some(sleeper) = sleeper {
            sleeper.thread.unpark();
        }
    }
}
