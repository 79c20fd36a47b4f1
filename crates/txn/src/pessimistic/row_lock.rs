//! The lock of one row: its holders, its waiters, and which of them comes next.
//!
//! It is held by one transaction exclusively or by several together. Waiters stand in a queue. To
//! wake a thread takes as long as several commits, so a lock is not reserved for one that sleeps:
//!
//! - A release hands the lock to the first waiter that is *ready*: it spins, or it was woken once
//!   and came too late.
//! - If no waiter is ready, the release wakes the first and leaves the lock free. A transaction
//!   that comes meanwhile may take it. The woken waiter is ready from then on, so the next release
//!   hands the lock to it.
//! - The first waiter is woken as well once it has been overtaken for [`OVERTAKEN_US`].
//!
//! No waiter starves: the first is woken, and is overtaken at most until it is awake.
//!
//! Thread-safety: values; the lock of their stripe guards them. Only [`SleepingThread::is_granted`]
//! is read without it. Waits of the application are woken when [`Wakes`] is dropped, after that
//! lock.

use super::lock_wait::{LockWait, LockWaitHook};
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::{Arc, Condvar, thread};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// For how long others may go before the first waiter while it sleeps, in microseconds.
const OVERTAKEN_US: u64 = 100;
/// How often a waiter looks before it sleeps: about as long as a few commits take.
const SPINS: u32 = 256;

/// A request for a lock: the part that describes its transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) transaction: u64,
    /// When the transaction expires, by the clock; 0 for never.
    pub(crate) expires_us: u64,
    /// How long to wait at most; negative for ever.
    pub(crate) timeout_us: i64,
    /// How deep to look for rings of waits, if at all.
    pub(crate) detect_depth: Option<usize>,
}

/// Where the thread of a waiting transaction sleeps.
pub(super) struct SleepingThread {
    granted: AtomicBool,
    /// With the lock of the stripe, where there is no `own`.
    pub(super) changed: Condvar,
    /// The application's.
    pub(super) own: Option<Box<dyn LockWait>>,
}

impl std::fmt::Debug for SleepingThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SleepingThread")
            .field("granted", &self.granted)
            .field("is_own", &self.own.is_some())
            .finish_non_exhaustive()
    }
}

/// Threads that sleep in waits of the application and are to be woken: when this is dropped, which
/// is after the lock of the stripe.
#[derive(Debug, Default)]
pub(super) struct Wakes(Vec<Arc<SleepingThread>>);

impl Wakes {
    pub(super) fn extend(&mut self, seats: impl IntoIterator<Item = Arc<SleepingThread>>) {
        self.0.extend(seats);
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        for seat in self.0.drain(..) {
            if let Some(own) = &seat.own {
                own.wake();
            }
        }
    }
}

impl SleepingThread {
    pub(super) fn new(hook: Option<&dyn LockWaitHook>) -> Arc<SleepingThread> {
        Arc::new(SleepingThread {
            granted: AtomicBool::new(false),
            changed: Condvar::new(),
            own: hook.map(LockWaitHook::begin),
        })
    }

    fn notify(self: &Arc<Self>, wakes: &mut Wakes) {
        match &self.own {
            None => self.changed.notify_one(),
            Some(own) if seeded(Bug::LockWaitUnderStripe) => own.wake(),
            Some(_) => wakes.0.push(Arc::clone(self)),
        }
    }

    /// Returns whether the lock was handed over: its transaction is a holder.
    pub(super) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }

    /// Looks for a while whether the lock is handed over.
    pub(super) fn spin(&self) -> bool {
        (0..SPINS).any(|_| {
            thread::spin_loop();
            self.is_granted()
        })
    }
}

/// A transaction that waits.
#[derive(Debug)]
struct Waiter {
    request: Request,
    exclusive: bool,
    since_us: u64,
    is_spinning: bool,
    /// It was woken and has not looked yet.
    is_called: bool,
    /// It was woken and came too late.
    is_late: bool,
    seat: Arc<SleepingThread>,
}

impl Waiter {
    fn id(&self) -> u64 {
        self.request.transaction
    }

    fn is_ready(&self) -> bool {
        self.is_spinning || self.is_late
    }

    fn call(&mut self, wakes: &mut Wakes) {
        if !self.is_ready() && !self.is_called && !seeded(Bug::RowWaiterLeft) {
            self.is_called = true;
            self.seat.notify(wakes);
        }
    }
}

/// Transactions that were given a lock for which they waited.
pub(super) type GrantedRequests = SmallVec<[Request; 2]>;

#[derive(Debug)]
pub(super) struct RowLock {
    holders: SmallVec<[u64; 2]>,
    exclusive: bool,
    /// When all holders have expired; 0 for never.
    expires_us: u64,
    queue: VecDeque<Waiter>,
}

impl RowLock {
    pub(super) fn held_by(request: &Request, exclusive: bool) -> Self {
        RowLock {
            holders: SmallVec::from_slice(&[request.transaction]),
            exclusive,
            expires_us: request.expires_us,
            queue: VecDeque::new(),
        }
    }

    pub(super) fn holders(&self) -> &[u64] {
        &self.holders
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    pub(super) fn expires_us(&self) -> u64 {
        self.expires_us
    }

    /// Returns whether nobody holds it or waits for it.
    pub(super) fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    pub(super) fn has_waiters(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Those who wait and look for rings of waits.
    pub(super) fn detecting(&self) -> impl Iterator<Item = u64> {
        let detecting = |w: &&Waiter| w.request.detect_depth.is_some();
        self.queue.iter().filter(detecting).map(Waiter::id)
    }

    /// Returns whether nothing stands against `id`.
    pub(super) fn is_open_to(&self, id: u64, exclusive: bool) -> bool {
        *self.holders == [id] || self.holders.is_empty() || !(self.exclusive || exclusive)
    }

    /// Makes the transaction a holder: beside the others where all share it, else in their place.
    pub(super) fn give(&mut self, request: &Request, exclusive: bool) {
        let me = request.transaction;
        self.queue.retain(|w| w.id() != me);
        let shares = !self.exclusive && !exclusive && self.holders.iter().any(|id| *id != me);
        if !shares {
            self.holders.clear();
            self.holders.push(me);
            self.exclusive = exclusive;
            self.expires_us = request.expires_us;
            return;
        }
        if !self.holders.contains(&me) {
            self.holders.push(me);
        }
        self.expires_us = match (self.expires_us, request.expires_us) {
            (0, _) | (_, 0) => 0,
            (a, b) => a.max(b),
        };
    }

    /// A holder lets go. Says which waiters hold it now.
    pub(super) fn release(
        &mut self,
        id: u64,
        wakes: &mut Wakes,
        now_us: impl FnOnce() -> u64,
    ) -> GrantedRequests {
        self.holders.retain(|holder| *holder != id);
        self.pass_on(wakes, now_us)
    }

    /// A waiter gives up. Says which other waiters hold it now.
    pub(super) fn leave(
        &mut self,
        id: u64,
        wakes: &mut Wakes,
        now_us: impl FnOnce() -> u64,
    ) -> GrantedRequests {
        self.queue.retain(|w| w.id() != id);
        self.pass_on(wakes, now_us)
    }

    /// Hands it to waiters that are ready, or wakes one.
    fn pass_on(&mut self, wakes: &mut Wakes, now_us: impl FnOnce() -> u64) -> GrantedRequests {
        let mut granted = GrantedRequests::new();
        if self.queue.is_empty() {
            return granted;
        }
        let is_open = |w: &Waiter| self.is_open_to(w.id(), w.exclusive);
        let Some(first) = self.queue.iter().position(is_open) else {
            return granted;
        };
        let ready = |w: &Waiter| w.is_ready() && is_open(w);
        let Some(at) = self.queue.iter().position(ready) else {
            self.queue[first].call(wakes);
            return granted;
        };
        self.hand_over(at, &mut granted, wakes);
        self.share(&mut granted, wakes);
        if let Some(first) = self.queue.front_mut()
            && !first.is_ready()
            && now_us().saturating_sub(first.since_us) >= OVERTAKEN_US
        {
            first.call(wakes);
        }
        granted
    }

    /// Gives it to all waiters that may share it with its holders.
    pub(super) fn share(&mut self, granted: &mut GrantedRequests, wakes: &mut Wakes) {
        while !self.exclusive
            && !self.holders.is_empty()
            && let Some(at) = self.queue.iter().position(|w| !w.exclusive)
        {
            self.hand_over(at, granted, wakes);
        }
    }

    fn hand_over(&mut self, at: usize, granted: &mut GrantedRequests, wakes: &mut Wakes) {
        let Some(waiter) = self.queue.remove(at) else {
            return;
        };
        self.give(&waiter.request, waiter.exclusive);
        granted.push(waiter.request);
        waiter.seat.granted.store(true, Ordering::Release);
        waiter.seat.notify(wakes);
    }

    /// The transaction stands in the queue from now on, if it does not yet. True when it is to spin
    /// before it sleeps; then [`RowLock::end_spin`] ends that.
    pub(super) fn wait(
        &mut self,
        request: &Request,
        exclusive: bool,
        seat: &Arc<SleepingThread>,
        now_us: u64,
    ) -> bool {
        let is_spinning = thread::parallelism() > 1 && !self.queue.iter().any(|w| w.is_spinning);
        if let Some(known) = self.waiter(request.transaction) {
            // Where it was called, it came too late.
            known.is_late |= std::mem::take(&mut known.is_called);
            known.is_spinning = is_spinning;
        } else {
            self.queue.push_back(Waiter {
                request: *request,
                exclusive,
                since_us: now_us,
                is_spinning,
                is_called: false,
                is_late: false,
                seat: Arc::clone(seat),
            });
        }
        is_spinning
    }

    pub(super) fn end_spin(&mut self, id: u64) {
        if let Some(waiter) = self.waiter(id) {
            waiter.is_spinning = false;
        }
    }

    /// Returns whether the transaction waits.
    pub(super) fn is_awaited_by(&self, id: u64) -> bool {
        self.queue.iter().any(|w| w.id() == id)
    }

    /// Returns whether the transaction is the first that waits: it takes the lock from holders that
    /// expire.
    pub(super) fn is_first(&self, id: u64) -> bool {
        self.queue.front().is_some_and(|w| w.id() == id)
    }

    /// Has the first waiter look when its holders expire.
    pub(super) fn tell_expiry(&self, wakes: &mut Wakes) {
        if self.expires_us > 0
            && let Some(first) = self.queue.front()
        {
            first.seat.notify(wakes);
        }
    }

    fn waiter(&mut self, id: u64) -> Option<&mut Waiter> {
        self.queue.iter_mut().find(|w| w.id() == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(transaction: u64) -> Request {
        Request {
            transaction,
            expires_us: 0,
            timeout_us: -1,
            detect_depth: None,
        }
    }

    /// Queues up, and spins only if it is told to.
    fn queue(lock: &mut RowLock, id: u64, exclusive: bool, spins: bool) -> Arc<SleepingThread> {
        let seat = SleepingThread::new(None);
        lock.wait(&request(id), exclusive, &seat, 0);
        if !spins {
            lock.end_spin(id);
        }
        seat
    }

    fn ids(granted: &GrantedRequests) -> Vec<u64> {
        granted.iter().map(|r| r.transaction).collect()
    }

    #[test]
    fn a_sleeper_is_woken_and_gets_it_from_the_next_release() {
        let mut lock = RowLock::held_by(&request(1), true);
        let seat = queue(&mut lock, 2, true, false);
        assert!(
            lock.release(1, &mut Wakes::default(), || 0).is_empty(),
            "it sleeps"
        );
        assert!(lock.is_open_to(3, true), "one that comes may take it");
        lock.give(&request(3), true);
        // The sleeper has come too late, and sleeps again.
        lock.wait(&request(2), true, &seat, 0);
        lock.end_spin(2);
        queue(&mut lock, 4, true, false);
        assert_eq!(ids(&lock.release(3, &mut Wakes::default(), || 0)), [2]);
        assert!(seat.is_granted());
        assert_eq!(lock.holders(), [2]);
    }

    #[test]
    fn a_spinner_goes_first_and_the_first_sleeper_is_woken_in_time() {
        let mut lock = RowLock::held_by(&request(1), true);
        let sleeper = queue(&mut lock, 2, true, false);
        queue(&mut lock, 3, true, true);
        if thread::parallelism() == 1 {
            return;
        }
        assert_eq!(
            ids(&lock.release(1, &mut Wakes::default(), || OVERTAKEN_US - 1)),
            [3]
        );
        queue(&mut lock, 4, true, true);
        assert_eq!(
            ids(&lock.release(3, &mut Wakes::default(), || OVERTAKEN_US)),
            [4]
        );
        // It was woken just now.
        lock.wait(&request(2), true, &sleeper, OVERTAKEN_US);
        lock.end_spin(2);
        queue(&mut lock, 5, true, true);
        assert_eq!(
            ids(&lock.release(4, &mut Wakes::default(), || OVERTAKEN_US)),
            [2]
        );
    }

    #[test]
    fn sharers_get_it_together_and_an_upgrade_waits_for_the_others() {
        let mut lock = RowLock::held_by(&request(1), true);
        for id in [2, 3] {
            let seat = queue(&mut lock, id, false, false);
            lock.waiter(id).expect("it waits").is_called = true;
            lock.wait(&request(id), false, &seat, 0);
            lock.end_spin(id);
        }
        queue(&mut lock, 4, false, false);
        assert_eq!(
            ids(&lock.release(1, &mut Wakes::default(), || 0)),
            [2, 3, 4]
        );
        // 2 wants it alone.
        let seat = queue(&mut lock, 2, true, false);
        assert!(!lock.is_open_to(2, true));
        assert!(lock.release(3, &mut Wakes::default(), || 0).is_empty());
        assert!(
            lock.release(4, &mut Wakes::default(), || 0).is_empty(),
            "2 sleeps"
        );
        assert!(lock.is_open_to(2, true) && !lock.is_open_to(5, true));
        lock.wait(&request(2), true, &seat, 0);
        lock.give(&request(2), true);
        assert!(lock.release(2, &mut Wakes::default(), || 0).is_empty());
        assert!(lock.is_unused());
    }
}
