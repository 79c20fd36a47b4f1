//! The table of row locks: for each family, stripes of keys, each with a lock of its own.
//!
//! [`super::row_lock`] says which waiter comes next. A lock held only by transactions that have
//! expired may be taken from them: the first waiter looks for that, and each request that comes.
//!
//! A wait ends with the lock, with the time limit, or with a ring of waits being found before it
//! begins. The graph of waits follows the holders: whenever they change, those who wait and look
//! for rings wait for the new ones.
//!
//! Thread-safety: all methods may be called by any thread.

use super::Ticket;
use super::row_lock::{GrantedRequests, Request, RowLock, SleepingThread};
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
    ) -> Self {
        LockTable {
            maps: RwLock::new(ranks::LOCK_MAPS, HashMap::new()),
            stripes: stripes.max(1),
            locks_max,
            clock,
            waits: Waits::new(deadlocks_max),
            expirable: Mutex::new(ranks::EXPIRABLE, HashMap::new()),
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
        let stripe = &map.stripes[map.stripe(key)];
        let mut locks = stripe.locks.lock();
        let mut refused = match self.grant(&map, &mut locks, request, key, exclusive) {
            Ok(()) => return Ok(()),
            Err(LockFailure::Limit) if request.timeout_us == 0 => return Err(errors::lock_limit()),
            Err(_) if request.timeout_us == 0 => return Err(errors::lock_timeout()),
            Err(refused) => refused,
        };
        let me = request.transaction;
        let began_us = self.clock.now_us();
        let limit = u64::try_from(request.timeout_us).ok();
        let end_us = limit.map(|us| began_us.saturating_add(us));
        let seat = SleepingThread::new();
        loop {
            let holders = match &refused {
                LockFailure::By(ids) => ids.as_slice(),
                LockFailure::Limit => &[],
            };
            if !self.may_wait(request, family, key, exclusive, holders) {
                self.leave(&map, stripe, &mut locks, me, key);
                return Err(errors::deadlock());
            }
            let lock = locks.get_mut(key);
            if lock.is_some_and(|lock| lock.wait(request, exclusive, &seat, began_us)) {
                drop(locks);
                let is_granted = seat.spin();
                if is_granted {
                    return Ok(());
                }
                locks = stripe.locks.lock();
                if let Some(lock) = locks.get_mut(key) {
                    lock.end_spin(me);
                }
            }
            let timed_out =
                !seat.is_granted() && self.sleep(stripe, &mut locks, &seat, (me, key), end_us);
            if seat.is_granted() {
                return Ok(());
            }
            if request.detect_depth.is_some() {
                self.waits.end(me);
            }
            match self.grant(&map, &mut locks, request, key, exclusive) {
                Ok(()) => return Ok(()),
                Err(r) => refused = r,
            }
            if timed_out {
                self.leave(&map, stripe, &mut locks, me, key);
                return Err(match refused {
                    LockFailure::Limit => errors::lock_limit(),
                    LockFailure::By(..) => errors::lock_timeout(),
                });
            }
        }
    }

    /// Returns whether waiting for these closes no ring.
    fn may_wait(
        &self,
        request: &Request,
        family: u32,
        key: &[u8],
        exclusive: bool,
        wait_ids: &[u64],
    ) -> bool {
        let Some(depth) = request.detect_depth else {
            return true;
        };
        let info = DeadlockInfo {
            transaction: request.transaction,
            family,
            exclusive,
            waiting_key: key.to_vec(),
        };
        let unix_s = self.clock.unix_us() / 1_000_000;
        self.waits.begin(info, wait_ids, depth, unix_s)
    }

    /// Sleeps until there may be news of the lock; true when the time limit is reached.
    fn sleep(
        &self,
        stripe: &Stripe,
        locks: &mut MutexGuard<'_, Locks>,
        seat: &SleepingThread,
        (me, key): (u64, &[u8]),
        end_us: Option<u64>,
    ) -> bool {
        let lock = locks.get(key);
        let news = match lock {
            Some(_) => &seat.changed,
            None => &stripe.freed,
        };
        let steal_us = match lock.filter(|lock| lock.is_first(me)) {
            Some(lock) if lock.expires_us() > 0 => Some(lock.expires_us()),
            _ => None,
        };
        let Some(until) = end_us.into_iter().chain(steal_us).min() else {
            news.wait(locks);
            return false;
        };
        let left = until.saturating_sub(self.clock.now_us());
        // An expired lock that could not be taken is looked at again soon.
        let left = if Some(until) == end_us {
            left
        } else {
            left.max(1000)
        };
        if left > 0 {
            news.wait_for(locks, Duration::from_micros(left));
        }
        end_us.is_some_and(|end| self.clock.now_us() >= end)
    }

    /// Gives the lock if nothing stands against it.
    fn grant(
        &self,
        map: &LockMap,
        locks: &mut Locks,
        request: &Request,
        key: &[u8],
        exclusive: bool,
    ) -> std::result::Result<(), LockFailure> {
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
        lock.share(&mut granted);
        self.follow(lock, &granted);
        Ok(())
    }

    /// The holders of a lock have changed: those who wait for it wait for the new ones.
    fn follow(&self, lock: &RowLock, granted: &GrantedRequests) {
        for request in granted.iter().filter(|r| r.detect_depth.is_some()) {
            self.waits.end(request.transaction);
        }
        if lock.has_waiters() {
            self.waits.point(lock.detecting(), lock.holders());
            lock.tell_expiry();
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
    fn leave(&self, map: &LockMap, stripe: &Stripe, locks: &mut Locks, me: u64, key: &[u8]) {
        let leave = |lock: &mut RowLock| lock.leave(me, || self.clock.now_us());
        self.change(map, stripe, locks, key, leave);
    }

    /// A holder of `key` lets go.
    fn release(&self, map: &LockMap, stripe: &Stripe, locks: &mut Locks, me: u64, key: &[u8]) {
        let release = |lock: &mut RowLock| lock.release(me, || self.clock.now_us());
        self.change(map, stripe, locks, key, release);
    }

    /// Changes a lock, which may hand it to waiters; it goes if nobody wants it.
    fn change(
        &self,
        map: &LockMap,
        stripe: &Stripe,
        locks: &mut Locks,
        key: &[u8],
        change: impl FnOnce(&mut RowLock) -> GrantedRequests,
    ) {
        let Some(lock) = locks.get_mut(key) else {
            return;
        };
        let granted = change(lock);
        if !lock.is_unused() {
            return self.follow(lock, &granted);
        }
        locks.remove(key);
        map.count.fetch_sub(1, Ordering::Relaxed);
        if self.locks_max > 0 {
            stripe.freed.notify_all();
        }
    }

    /// Gives one lock back.
    pub(crate) fn unlock(&self, transaction: u64, family: u32, key: &[u8]) {
        let Some(map) = self.maps.read().get(&family).cloned() else {
            return;
        };
        let stripe = &map.stripes[map.stripe(key)];
        self.release(&map, stripe, &mut stripe.locks.lock(), transaction, key);
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
                let mut locks = stripe.locks.lock();
                for (_, key) in group {
                    self.release(&map, stripe, &mut locks, transaction, key);
                }
            }
        }
    }

    /// Every lock that is held, stripe by stripe: not all as of one moment.
    pub(crate) fn all(&self) -> Vec<KeyLock> {
        let maps: Vec<_> = {
            let maps = self.maps.read();
            maps.iter().map(|(id, m)| (*id, Arc::clone(m))).collect()
        };
        let mut out = Vec::new();
        for (family, map) in maps {
            for stripe in &map.stripes {
                let locks = stripe.locks.lock();
                out.extend(locks.iter().map(|(key, lock)| KeyLock {
                    family,
                    key: key.clone(),
                    holders: lock.holders().to_vec(),
                    exclusive: lock.is_exclusive(),
                }));
            }
        }
        out.retain(|l| !l.holders.is_empty());
        out.sort_by(|a, b| (a.family, &a.key).cmp(&(b.family, &b.key)));
        out
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
