//! The table of row locks: for each family, stripes of keys, each with a lock and a condition of
//! its own.
//!
//! A lock is held by one transaction exclusively or by several together. Those who wait for it
//! queue up by key: when the last holder goes the lock is reserved for the first in the queue, so
//! that a transaction that comes again and again cannot starve another. A lock held only by
//! transactions that have expired may be taken from them.
//!
//! A wait ends with the lock, with the time limit, or with a ring of waits being found before it
//! begins.

use super::Ticket;
use super::waits::{DeadlockInfo, Waits};
use crate::errors;
use crate::ranks;
use crate::state::TransactionState;
use crate::tracked::Tracked;
use esker::codec::hash::hash64;
use esker::env::Clock;
use esker::{Error, Result};
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicI64, AtomicU8, Ordering};
use esker_sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// What a lock request says of its transaction.
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

#[derive(Debug)]
struct Lock {
    holders: Vec<u64>,
    exclusive: bool,
    /// When all holders have expired; 0 for never.
    expires_us: u64,
    /// Those who wait for exclusive use or were there first, in the order they came.
    queue: VecDeque<u64>,
}

#[derive(Debug)]
struct Stripe {
    locks: Mutex<HashMap<Vec<u8>, Lock>>,
    changed: Condvar,
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
    /// Whether it is held exclusively.
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
enum Refused {
    /// These hold it, or come first; with the time when it may be taken from them (0 for never).
    By(Vec<u64>, u64),
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
            changed: Condvar::new(),
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
            Err(Refused::Limit) if request.timeout_us == 0 => return Err(errors::lock_limit()),
            Err(_) if request.timeout_us == 0 => return Err(errors::lock_timeout()),
            Err(refused) => refused,
        };
        let end_us = u64::try_from(request.timeout_us)
            .ok()
            .map(|t| self.clock.now_us().saturating_add(t));
        loop {
            let (wait_ids, steal_us) = match &refused {
                Refused::By(ids, steal_us) => (ids.as_slice(), *steal_us),
                Refused::Limit => (&[][..], 0),
            };
            if !self.may_wait(request, family, key, exclusive, wait_ids) {
                self.leave_queue(&map, stripe, locks, request.transaction, key);
                return Err(errors::deadlock());
            }
            if let Some(lock) = locks.get_mut(key)
                && !lock.queue.contains(&request.transaction)
            {
                lock.queue.push_back(request.transaction);
            }
            let timed_out = self.wait(stripe, &mut locks, end_us, steal_us);
            if request.detect_depth.is_some() {
                self.waits.end(request.transaction);
            }
            match self.grant(&map, &mut locks, request, key, exclusive) {
                Ok(()) => {
                    if !exclusive {
                        // Others who want it shared were behind this one.
                        drop(locks);
                        stripe.changed.notify_all();
                    }
                    return Ok(());
                }
                Err(r) => refused = r,
            }
            if timed_out {
                self.leave_queue(&map, stripe, locks, request.transaction, key);
                return Err(match refused {
                    Refused::Limit => errors::lock_limit(),
                    Refused::By(..) => errors::lock_timeout(),
                });
            }
        }
    }

    /// Whether waiting for these closes no ring.
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

    /// Waits for a change of the stripe; true when the time limit is reached.
    fn wait(
        &self,
        stripe: &Stripe,
        locks: &mut MutexGuard<'_, HashMap<Vec<u8>, Lock>>,
        end_us: Option<u64>,
        steal_us: u64,
    ) -> bool {
        let until = match (end_us, steal_us) {
            (None, 0) => {
                stripe.changed.wait(locks);
                return false;
            }
            (Some(end), 0) => end,
            (Some(end), steal) => end.min(steal),
            (None, steal) => steal,
        };
        let left = until.saturating_sub(self.clock.now_us());
        // An expired lock that could not be taken is looked at again soon.
        let left = if Some(until) == end_us {
            left
        } else {
            left.max(1000)
        };
        if left > 0 {
            stripe.changed.wait_for(locks, Duration::from_micros(left));
        }
        end_us.is_some_and(|end| self.clock.now_us() >= end)
    }

    /// Gives the lock if nothing stands against it.
    fn grant(
        &self,
        map: &LockMap,
        locks: &mut HashMap<Vec<u8>, Lock>,
        request: &Request,
        key: &[u8],
        exclusive: bool,
    ) -> std::result::Result<(), Refused> {
        let me = request.transaction;
        let Some(lock) = locks.get_mut(key) else {
            if self.locks_max > 0 && map.count.load(Ordering::Relaxed) >= self.locks_max {
                return Err(Refused::Limit);
            }
            map.count.fetch_add(1, Ordering::Relaxed);
            locks.insert(
                key.to_vec(),
                Lock {
                    holders: vec![me],
                    exclusive,
                    expires_us: request.expires_us,
                    queue: VecDeque::new(),
                },
            );
            return Ok(());
        };
        if lock.holders.is_empty() {
            // It is reserved for the first in the queue.
            if let Some(first) = lock.queue.front().filter(|first| **first != me) {
                return Err(Refused::By(vec![*first], 0));
            }
        } else if lock.holders != [me] {
            if !lock.exclusive && !exclusive {
                if !lock.holders.contains(&me) {
                    lock.holders.push(me);
                }
                lock.expires_us = match (lock.expires_us, request.expires_us) {
                    (0, _) | (_, 0) => 0,
                    (a, b) => a.max(b),
                };
                lock.queue.retain(|id| *id != me);
                return Ok(());
            }
            if !self.steal(lock, me) {
                let others = lock.holders.iter().copied().filter(|id| *id != me);
                return Err(Refused::By(others.collect(), lock.expires_us));
            }
        }
        lock.holders.clear();
        lock.holders.push(me);
        lock.exclusive = exclusive;
        lock.expires_us = request.expires_us;
        lock.queue.retain(|id| *id != me);
        Ok(())
    }

    /// Takes an expired lock from its holders; false when it has not expired or one of them is
    /// committing.
    fn steal(&self, lock: &Lock, me: u64) -> bool {
        if lock.expires_us == 0 || lock.expires_us > self.clock.now_us() {
            return false;
        }
        let expirable = self.expirable.lock();
        lock.holders.iter().filter(|id| **id != me).all(|id| {
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
    fn leave_queue(
        &self,
        map: &LockMap,
        stripe: &Stripe,
        mut locks: MutexGuard<'_, HashMap<Vec<u8>, Lock>>,
        transaction: u64,
        key: &[u8],
    ) {
        if let Some(lock) = locks.get_mut(key) {
            lock.queue.retain(|id| *id != transaction);
            if lock.holders.is_empty() && lock.queue.is_empty() {
                locks.remove(key);
                map.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
        drop(locks);
        stripe.changed.notify_all();
    }

    /// Gives one lock back.
    pub(crate) fn unlock(&self, transaction: u64, family: u32, key: &[u8]) {
        let Some(map) = self.maps.read().get(&family).cloned() else {
            return;
        };
        let stripe = &map.stripes[map.stripe(key)];
        release(&map, &mut stripe.locks.lock(), transaction, key);
        stripe.changed.notify_all();
    }

    /// Gives the locks of these keys back, stripe by stripe.
    pub(crate) fn unlock_all(&self, transaction: u64, tracked: &Tracked) {
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
                    release(&map, &mut locks, transaction, key);
                }
                drop(locks);
                stripe.changed.notify_all();
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
                    holders: lock.holders.clone(),
                    exclusive: lock.exclusive,
                }));
            }
        }
        out.retain(|l| !l.holders.is_empty());
        out.sort_by(|a, b| (a.family, &a.key).cmp(&(b.family, &b.key)));
        out
    }
}

fn release(map: &LockMap, locks: &mut HashMap<Vec<u8>, Lock>, transaction: u64, key: &[u8]) {
    let Some(lock) = locks.get_mut(key) else {
        return;
    };
    lock.holders.retain(|id| *id != transaction);
    if lock.holders.is_empty() && lock.queue.is_empty() {
        locks.remove(key);
        map.count.fetch_sub(1, Ordering::Relaxed);
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
