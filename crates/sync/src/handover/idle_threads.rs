//! Threads that wait for their next body, so that a body does not wait for a thread to start.
//!
//! A thread without work puts a seat on the list and sleeps. A caller with a body takes the newest
//! seat off the list, puts the body there and wakes its thread. A thread whose time is up ends only
//! if its seat is still on the list: otherwise a caller has taken the seat, and the body comes.
//!
//! Invariant: a seat leaves the list once, either with a body or with its thread's end. So each
//! body that [`IdleThreads::offer`] takes is returned by one [`IdleThreads::wait`].
//! Thread-safety: any thread.

use super::facade::{Arc, Mutex, Thread, current, park, park_timeout};
use crate::Rank;
use std::time::Duration;

/// A thread that waits.
#[derive(Debug)]
struct IdleThread<B> {
    body: Mutex<Option<B>>,
    thread: Thread,
}

/// Threads that wait for a `B`.
#[derive(Debug)]
pub struct IdleThreads<B> {
    /// The last one has waited for the shortest time.
    waiting: Mutex<Vec<Arc<IdleThread<B>>>>,
    most: usize,
}

impl<B> IdleThreads<B> {
    /// None waits yet, and never more than `most`.
    pub fn new(most: usize) -> Self {
        IdleThreads {
            waiting: Mutex::new(Rank::LEAF, Vec::new()),
            most,
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Returns whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands `body` to the thread that has waited for the shortest time; gives it back when none
    /// waits.
    pub fn offer(&self, body: B) -> Result<(), B> {
        let newest = self.waiting.lock().pop();
        let Some(seat) = newest else {
            return Err(body);
        };
        *seat.body.lock() = Some(body);
        seat.thread.unpark();
        Ok(())
    }

    /// Waits for a body. `None` when none came until `is_over`, which is asked every `limit`, or
    /// when enough threads wait: the thread is to end.
    pub fn wait(&self, limit: Duration, is_over: impl Fn() -> bool) -> Option<B> {
        let seat = Arc::new(IdleThread {
            body: Mutex::new(Rank::LEAF, None),
            thread: current(),
        });
        {
            let mut waiting = self.waiting.lock();
            if waiting.len() >= self.most {
                return None;
            }
            waiting.push(Arc::clone(&seat));
        }
        let mut is_taken = false;
        loop {
            let body = seat.body.lock().take();
            if body.is_some() {
                return body;
            }
            if is_taken {
                park();
            } else if !is_over() {
                park_timeout(limit);
            } else if self.withdraw(&seat) {
                return None;
            } else {
                is_taken = true;
            }
        }
    }

    /// Takes the seat off the list; false when a caller has done so.
    fn withdraw(&self, seat: &Arc<IdleThread<B>>) -> bool {
        let mut waiting = self.waiting.lock();
        let at = waiting.iter().position(|other| Arc::ptr_eq(other, seat));
        at.map(|at| waiting.remove(at)).is_some()
    }
}
