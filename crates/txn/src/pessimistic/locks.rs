//! The table of row locks: for each family, stripes of keys, each with a lock of its own.
//!
//! [`super::row_lock`] says which waiter comes next. A lock held only by transactions that have
//! expired may be taken from them: the first waiter looks for that, and each request that comes.
//!
//! A wait ends with the lock, with the time limit, or with a ring of waits being found before it
//! begins. The graph of waits follows the holders: whenever they change, those who wait and look
//! for rings wait for the new ones.
//!
//! With a hook of the application ([`super::lock_wait`]) a waiter sleeps in an object of the
//! application, without the lock of its stripe; a wait that the application ends is one whose time
//! has passed.
//!
//! Thread-safety: all methods may be called by any thread.

use super::Ticket;
use super::lock_wait::{LockWaitEnd, LockWaitHook};
use super::row_lock::{GrantedRequests, Request, RowLock, SleepingThread, Wakes};
use super::waits::{DeadlockInfo, Waits};
use crate::errors;
use crate::ranks;
use crate::state::TransactionState;
use crate::tracked::TrackedKeys;
use esker::codec::hash::hash64;
use esker::env::Clock;
use esker::{Error, Result};
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicI64, AtomicU8, Ordering};
use esker_sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::collections::HashMap;
use std::time::Duration;

type Locks = HashMap<Vec<u8>, RowLock>;

#[derive(Debug)]
struct Stripe {
    locks: Mutex<Locks>,
    /// A lock went, where their number is limited.
    freed: Condvar,
    /// Those who wait for that in waits of the application.
    at_limit: Mutex<Vec<Arc<SleepingThread>>>,
}

impl Stripe {
    fn lock(&self) -> StripeGuard<'_> {
        StripeGuard {
            locks: self.locks.lock(),
            wakes: Wakes::default(),
        }
    }
}

/// The locks of a stripe while it is locked, and those who are woken once it is not: fields are
/// dropped in this order.
struct StripeGuard<'a> {
    locks: MutexGuard<'a, Locks>,
    wakes: Wakes,
}

/// A request for the lock of a key in its stripe.
#[derive(Clone, Copy)]
struct LockRequest<'a> {
    request: &'a Request,
    map: &'a LockMap,
    stripe: &'a Stripe,
    family: u32,
    key: &'a [u8],
    exclusive: bool,
}

/// The locks of one family.
#[derive(Debug)]
struct LockMap {
    stripes: Vec<Stripe>,
    /// Keys that are locked.
    count: AtomicI64,
}

impl LockMap {
    fn stripe(&self, key: &[u8]) -> usize {
        ((u128::from(hash64(key)) * self.stripes.len() as u128) >> 64) as usize
    }
}

/// A key that is locked, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLock {
    /// The number of the key's family.
    pub family: u32,
    /// The key.
    pub key: Vec<u8>,
    /// The transactions that hold it.
    pub holders: Vec<u64>,
    /// True if it is held exclusively.
    pub exclusive: bool,
}

/// All row locks of a database.
pub(crate) struct LockTable {
    maps: RwLock<HashMap<u32, Arc<LockMap>>>,
    stripes: usize,
    locks_max: i64,
    clock: Arc<dyn Clock>,
    pub(crate) waits: Waits,
    /// The state of transactions that may expire.
    expirable: Mutex<HashMap<u64, Arc<AtomicU8>>>,
    hook: Option<std::sync::Arc<dyn LockWaitHook>>,
}

impl std::fmt::Debug for LockTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockTable")
            .field("stripes", &self.stripes)
            .field("locks_max", &self.locks_max)
            .finish_non_exhaustive()
    }
}

/// Why a lock was not granted.
enum LockFailure {
    /// These hold it.
    By(Vec<u64>),
    Limit,
}

impl LockTable {
    pub(crate) fn new(
        stripes: usize,
        locks_max: i64,
        deadlocks_max: usize,
        clock: Arc<dyn Clock>,
        hook: Option<std::sync::Arc<dyn LockWaitHook>>,
    ) -> Self {
        LockTable {
            maps: RwLock::new(ranks::LOCK_MAPS, HashMap::new()),
            stripes: stripes.max(1),
            locks_max,
            clock,
            waits: Waits::new(deadlocks_max),
            expirable: Mutex::new(ranks::EXPIRABLE, HashMap::new()),
            hook,
        }
    }

    /// The locks of `family`, made when they are needed first.
    fn map(&self, family: u32) -> Arc<LockMap> {
        if let Some(map) = self.maps.read().get(&family) {
            return Arc::clone(map);
        }
        let stripes = || Stripe {
            locks: Mutex::new(ranks::STRIPE, HashMap::new()),
            freed: Condvar::new(),
            at_limit: Mutex::new(ranks::AT_LIMIT, Vec::new()),
        };
        let mut maps = self.maps.write();
        let map = maps.entry(family).or_insert_with(|| {
            Arc::new(LockMap {
                stripes: (0..self.stripes).map(|_| stripes()).collect(),
                count: AtomicI64::new(0),
            })
        });
        Arc::clone(map)
    }

    /// Forgets the locks of a family that was dropped.
    pub(crate) fn forget_family(&self, family: u32) {
        self.maps.write().remove(&family);
    }

    /// From now on the locks of `transaction` may be taken from it once it has expired.
    pub(crate) fn add_expirable(&self, transaction: u64, state: &Arc<AtomicU8>) {
        self.expirable.lock().insert(transaction, Arc::clone(state));
    }

    pub(crate) fn remove_expirable(&self, transaction: u64) {
        self.expirable.lock().remove(&transaction);
    }

    /// Locks `key` for a transaction, which may hold it already in another way.
    pub(crate) fn lock(
        &self,
        request: &Request,
        family: u32,
        key: &[u8],
        exclusive: bool,
    ) -> Result<()> {
        if seeded(Bug::RowLockForgotten) {
            return Ok(());
        }
        let map = self.map(family);
        let wanted = LockRequest {
            request,
            stripe: &map.stripes[map.stripe(key)],
            map: &map,
            family,
            key,
            exclusive,
        };
        let mut guard = wanted.stripe.lock();
        let refused = match self.grant(&mut guard, wanted) {
            Ok(()) => return Ok(()),
            Err(LockFailure::Limit) if request.timeout_us == 0 => return Err(errors::lock_limit()),
            Err(_) if request.timeout_us == 0 => return Err(errors::lock_timeout()),
            Err(refused) => refused,
        };
        let Some(hook) = &self.hook else {
            return self.wait(guard, wanted, &SleepingThread::new(None), refused);
        };
        drop(guard);
        let seat = SleepingThread::new(Some(&**hook));
        // The stripe is released before the seat goes, which is the application's.
        let mut guard = wanted.stripe.lock();
        match self.grant(&mut guard, wanted) {
            Ok(()) => Ok(()),
            Err(refused) => self.wait(guard, wanted, &seat, refused),
        }
    }

    /// Waits until the lock is granted.
    fn wait<'a>(
        &self,
        mut guard: StripeGuard<'a>,
        wanted: LockRequest<'a>,
        seat: &Arc<SleepingThread>,
        mut refused: LockFailure,
    ) -> Result<()> {
        let (request, key) = (wanted.request, wanted.key);
        let me = request.transaction;
        let began_us = self.clock.now_us();
        let limit = u64::try_from(request.timeout_us).ok();
        let end_us = limit.map(|us| began_us.saturating_add(us));
        loop {
            let holders = match &refused {
                LockFailure::By(ids) => ids.as_slice(),
                LockFailure::Limit => &[],
            };
            if !self.may_wait(wanted, holders) {
                self.leave(&mut guard, wanted);
                return Err(errors::deadlock());
            }
            let lock = guard.locks.get_mut(key);
            if lock.is_some_and(|lock| lock.wait(request, wanted.exclusive, seat, began_us)) {
                drop(guard);
                let is_granted = seat.spin();
                if is_granted {
                    return Ok(());
                }
                guard = wanted.stripe.lock();
                if let Some(lock) = guard.locks.get_mut(key) {
                    lock.end_spin(me);
                }
            }
            let mut timed_out = false;
            if !seat.is_granted() {
                (guard, timed_out) = self.sleep(guard, wanted, seat, end_us);
            }
            if seat.is_granted() {
                return Ok(());
            }
            if request.detect_depth.is_some() {
                self.waits.end(me);
            }
            match self.grant(&mut guard, wanted) {
                Ok(()) => return Ok(()),
                Err(r) => refused = r,
            }
            if timed_out {
                self.leave(&mut guard, wanted);
                return Err(match refused {
                    LockFailure::Limit => errors::lock_limit(),
                    LockFailure::By(..) => errors::lock_timeout(),
                });
            }
        }
    }

    /// Returns whether waiting for these closes no ring.
    fn may_wait(&self, wanted: LockRequest<'_>, wait_ids: &[u64]) -> bool {
        let Some(depth) = wanted.request.detect_depth else {
            return true;
        };
        let info = DeadlockInfo {
            transaction: wanted.request.transaction,
            family: wanted.family,
            exclusive: wanted.exclusive,
            waiting_key: wanted.key.to_vec(),
        };
        let unix_s = self.clock.unix_us() / 1_000_000;
        self.waits.begin(info, wait_ids, depth, unix_s)
    }

    /// Sleeps until there may be news of the lock; true when the time limit is reached, or the
    /// application ends the wait.
    fn sleep<'a>(
        &self,
        mut guard: StripeGuard<'a>,
        wanted: LockRequest<'a>,
        seat: &Arc<SleepingThread>,
        end_us: Option<u64>,
    ) -> (StripeGuard<'a>, bool) {
        let stripe = wanted.stripe;
        let lock = guard.locks.get(wanted.key);
        let is_queued = lock.is_some();
        let steal_us = match lock.filter(|lock| lock.is_first(wanted.request.transaction)) {
            Some(lock) if lock.expires_us() > 0 => Some(lock.expires_us()),
            _ => None,
        };
        let until = end_us.into_iter().chain(steal_us).min();
        let left = until.map(|until| {
            let left = until.saturating_sub(self.clock.now_us());
            // An expired lock that could not be taken is looked at again soon.
            if Some(until) == end_us {
                left
            } else {
                left.max(1000)
            }
        });
        let left = left.map(Duration::from_micros);
        let mut is_ended = false;
        match (&seat.own, left) {
            (_, Some(Duration::ZERO)) => {}
            (Some(own), _) => {
                if !is_queued {
                    stripe.at_limit.lock().push(Arc::clone(seat));
                }
                drop(guard);
                is_ended = own.sleep(left) == LockWaitEnd::Ended;
                guard = stripe.lock();
                if !is_queued {
                    let mut at_limit = stripe.at_limit.lock();
                    at_limit.retain(|other| !Arc::ptr_eq(other, seat));
                }
            }
            (None, left) => {
                let news = if is_queued {
                    &seat.changed
                } else {
                    &stripe.freed
                };
                match left {
                    None => news.wait(&mut guard.locks),
                    Some(left) => _ = news.wait_for(&mut guard.locks, left),
                }
            }
        }
        let is_late = end_us.is_some_and(|end| self.clock.now_us() >= end);
        (guard, is_late || is_ended)
    }

    /// Gives the lock if nothing stands against it.
    fn grant(
        &self,
        guard: &mut StripeGuard<'_>,
        wanted: LockRequest<'_>,
    ) -> std::result::Result<(), LockFailure> {
        let LockRequest {
            request,
            map,
            key,
            exclusive,
            ..
        } = wanted;
        let StripeGuard { locks, wakes } = guard;
        let me = request.transaction;
        let Some(lock) = locks.get_mut(key) else {
            if self.locks_max > 0 && map.count.load(Ordering::Relaxed) >= self.locks_max {
                return Err(LockFailure::Limit);
            }
            map.count.fetch_add(1, Ordering::Relaxed);
            locks.insert(key.to_vec(), RowLock::held_by(request, exclusive));
            return Ok(());
        };
        if !lock.is_open_to(me, exclusive) && !self.steal(lock, me) {
            let others = lock.holders().iter().copied().filter(|id| *id != me);
            return Err(LockFailure::By(others.collect()));
        }
        lock.give(request, exclusive);
        let mut granted = GrantedRequests::new();
        lock.share(&mut granted, wakes);
        self.follow(lock, &granted, wakes);
        Ok(())
    }

    /// The holders of a lock have changed: those who wait for it wait for the new ones.
    fn follow(&self, lock: &RowLock, granted: &GrantedRequests, wakes: &mut Wakes) {
        for request in granted.iter().filter(|r| r.detect_depth.is_some()) {
            self.waits.end(request.transaction);
        }
        if lock.has_waiters() {
            self.waits.point(lock.detecting(), lock.holders());
            lock.tell_expiry(wakes);
        }
    }

    /// Takes an expired lock from its holders; false when it has not expired or one of them is
    /// committing.
    fn steal(&self, lock: &RowLock, me: u64) -> bool {
        if lock.expires_us() == 0 || lock.expires_us() > self.clock.now_us() {
            return false;
        }
        let expirable = self.expirable.lock();
        lock.holders().iter().filter(|id| **id != me).all(|id| {
            expirable.get(id).is_none_or(|state| {
                let (from, to) = (TransactionState::Started, TransactionState::LocksStolen);
                let order = Ordering::AcqRel;
                match state.compare_exchange(from as u8, to as u8, order, Ordering::Acquire) {
                    Ok(_) => true,
                    Err(now) => now == to as u8,
                }
            })
        })
    }

    /// A transaction gives up waiting.
    fn leave(&self, guard: &mut StripeGuard<'_>, wanted: LockRequest<'_>) {
        if seeded(Bug::RowWaiterQueued) && self.hook.is_some() {
            return;
        }
        let me = wanted.request.transaction;
        let leave =
            |lock: &mut RowLock, wakes: &mut Wakes| lock.leave(me, wakes, || self.clock.now_us());
        self.change(wanted.map, wanted.stripe, guard, wanted.key, leave);
    }

    /// A holder of `key` lets go.
    fn release(
        &self,
        map: &LockMap,
        stripe: &Stripe,
        guard: &mut StripeGuard<'_>,
        me: u64,
        key: &[u8],
    ) {
        let release =
            |lock: &mut RowLock, wakes: &mut Wakes| lock.release(me, wakes, || self.clock.now_us());
        self.change(map, stripe, guard, key, release);
    }

    /// Changes a lock, which may hand it to waiters; it goes if nobody wants it.
    fn change(
        &self,
        map: &LockMap,
        stripe: &Stripe,
        guard: &mut StripeGuard<'_>,
        key: &[u8],
        change: impl FnOnce(&mut RowLock, &mut Wakes) -> GrantedRequests,
    ) {
        let StripeGuard { locks, wakes } = guard;
        let Some(lock) = locks.get_mut(key) else {
            return;
        };
        let granted = change(lock, wakes);
        if !lock.is_unused() {
            return self.follow(lock, &granted, wakes);
        }
        locks.remove(key);
        map.count.fetch_sub(1, Ordering::Relaxed);
        if self.locks_max > 0 {
            stripe.freed.notify_all();
            wakes.extend(stripe.at_limit.lock().drain(..));
        }
    }

    /// Gives one lock back.
    pub(crate) fn unlock(&self, transaction: u64, family: u32, key: &[u8]) {
        let Some(map) = self.maps.read().get(&family).cloned() else {
            return;
        };
        let stripe = &map.stripes[map.stripe(key)];
        self.release(&map, stripe, &mut stripe.lock(), transaction, key);
    }

    /// Gives the locks of these keys back, stripe by stripe.
    pub(crate) fn unlock_all(&self, transaction: u64, tracked: &TrackedKeys) {
        for family in tracked.families() {
            let id = family.family.id();
            let Some(map) = self.maps.read().get(&id).cloned() else {
                continue;
            };
            let mut keys: Vec<_> = family.keys.keys().map(|k| (map.stripe(k), k)).collect();
            keys.sort_unstable_by_key(|(stripe, _)| *stripe);
            for group in keys.chunk_by(|a, b| a.0 == b.0) {
                let stripe = &map.stripes[group[0].0];
                let mut guard = stripe.lock();
                for (_, key) in group {
                    self.release(&map, stripe, &mut guard, transaction, key);
                }
            }
        }
    }

    /// Every lock that is held, stripe by stripe: not all as of one moment.
    pub(crate) fn all(&self) -> Vec<KeyLock> {
        let mut out = Vec::new();
        for (family, map) in self.maps_by_family() {
            for stripe in &map.stripes {
                let locks = stripe.locks.lock();
                out.extend(locks.iter().map(|(key, lock)| key_lock(family, key, lock)));
            }
        }
        out.retain(|l| !l.holders.is_empty());
        out.sort_by(|a, b| (a.family, &a.key).cmp(&(b.family, &b.key)));
        out
    }

    /// The lock that `transaction` waits for, with the others that hold it.
    pub(crate) fn waited_for_by(&self, transaction: u64) -> Option<KeyLock> {
        for (family, map) in self.maps_by_family() {
            for stripe in &map.stripes {
                let locks = stripe.locks.lock();
                let mut all = locks.iter();
                if let Some((key, lock)) = all.find(|(_, lock)| lock.is_awaited_by(transaction)) {
                    let mut found = key_lock(family, key, lock);
                    found.holders.retain(|holder| *holder != transaction);
                    return Some(found);
                }
            }
        }
        None
    }

    fn maps_by_family(&self) -> Vec<(u32, Arc<LockMap>)> {
        let maps = self.maps.read();
        maps.iter().map(|(id, m)| (*id, Arc::clone(m))).collect()
    }
}

fn key_lock(family: u32, key: &[u8], lock: &RowLock) -> KeyLock {
    KeyLock {
        family,
        key: key.to_vec(),
        holders: lock.holders().to_vec(),
        exclusive: lock.is_exclusive(),
    }
}

impl Ticket {
    /// Fails when the transaction's time is over.
    pub(crate) fn check_not_expired(&self, clock: &dyn Clock) -> Result<(), Error> {
        if self.expires_us > 0 && clock.now_us() >= self.expires_us {
            return Err(errors::expired());
        }
        Ok(())
    }
}
