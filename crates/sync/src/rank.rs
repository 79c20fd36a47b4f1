//! Ranked locks: `parking_lot` locks that check, in debug builds, that they are taken in rank
//! order, and that nothing is done under them that takes long.
//!
//! Invariants: the ranks a thread holds are strictly increasing in the order taken. Under some
//! locks there is no I/O and no wait but for their own condition, under some no work that grows
//! with a tree: a rank says so. The checks look at a thread-local stack of ranks and
//! cost nothing in release builds.

use crate::control::{self, LockRelease};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// The place of a lock in the global order: a lower rank is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Position in the order.
    pub order: u16,
    /// The name of what the lock protects, for messages.
    pub name: &'static str,
    may_block: bool,
    may_take_long: bool,
}

impl Rank {
    /// A rank at `order`, called `name`.
    pub const fn new(order: u16, name: &'static str) -> Self {
        Rank {
            order,
            name,
            may_block: true,
            may_take_long: true,
        }
    }
    /// This rank, for locks under which there is neither I/O nor a wait.
    #[must_use]
    pub const fn without_waits(self) -> Self {
        Rank {
            may_block: false,
            ..self
        }
    }
    /// This rank, for locks under which nothing is done that grows with a tree.
    #[must_use]
    pub const fn without_long_work(self) -> Self {
        Rank {
            may_take_long: false,
            ..self
        }
    }
    /// This rank, for locks that are held for a moment: without waits and without long work.
    #[must_use]
    pub const fn brief(self) -> Self {
        self.without_waits().without_long_work()
    }
    /// For leaf locks: nothing else is taken while one is held.
    pub const LEAF: Rank = Rank::new(u16::MAX, "leaf");
}

#[cfg(debug_assertions)]
mod held {
    use super::Rank;
    use std::cell::RefCell;
    thread_local! { static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) }; }

    pub(super) fn acquire(rank: Rank) {
        HELD.with(|h| {
            let mut h = h.borrow_mut();
            if let Some(top) = h.iter().max_by_key(|r| r.order)
                && top.order >= rank.order
            {
                let top = *top;
                drop(h);
                panic!(
                    "lock order: {:?} ({}) taken while holding {:?} ({})",
                    rank.name, rank.order, top.name, top.order
                );
            }
            h.push(rank);
        });
    }

    /// Panics if the thread holds a lock under which nobody does this.
    pub(super) fn check(doing: &str, is_allowed: impl Fn(&Rank) -> bool) {
        // A thread that ends has no stack any more, and holds nothing.
        let forbids = HELD.try_with(|h| h.borrow().iter().find(|r| !is_allowed(r)).copied());
        if let Ok(Some(rank)) = forbids
            && !std::thread::panicking()
        {
            panic!("{doing} under the lock {:?} ({})", rank.name, rank.order);
        }
    }

    pub(super) fn release(rank: Rank) {
        HELD.with(|h| {
            let mut h = h.borrow_mut();
            if let Some(at) = h.iter().rposition(|r| *r == rank) {
                h.remove(at);
            }
        });
    }
}

#[cfg(not(debug_assertions))]
mod held {
    use super::Rank;
    #[inline(always)]
    pub(super) fn acquire(_: Rank) {}
    #[inline(always)]
    pub(super) fn check(_: &str, _: impl Fn(&Rank) -> bool) {}
    #[inline(always)]
    pub(super) fn release(_: Rank) {}
}

/// To be called before I/O and waits: panics, in debug builds, under a lock without them.
#[inline(always)]
pub fn check_may_block(doing: &str) {
    held::check(doing, |rank| rank.may_block);
}

/// To be called before work that grows with a tree: panics, in debug builds, under a
/// lock without it.
#[inline(always)]
pub fn check_may_take_long(doing: &str) {
    held::check(doing, |rank| rank.may_take_long);
}

/// A mutual-exclusion lock with a rank.
#[derive(Debug)]
pub struct Mutex<T: ?Sized> {
    rank: Rank,
    inner: parking_lot::Mutex<T>,
}

/// Shows that a [`Mutex`] is held.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized> {
    rank: Rank,
    inner: parking_lot::MutexGuard<'a, T>,
    _after: LockRelease<'a, parking_lot::Mutex<T>>,
}

impl<T> Mutex<T> {
    /// A lock of `rank` around `value`.
    pub const fn new(rank: Rank, value: T) -> Self {
        Mutex {
            rank,
            inner: parking_lot::Mutex::new(value),
        }
    }
    /// The value, consuming the lock.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        held::acquire(self.rank);
        let taken = control::acquire(&self.inner, || self.inner.try_lock());
        MutexGuard {
            rank: self.rank,
            inner: taken.unwrap_or_else(|| self.inner.lock()),
            _after: LockRelease::new(&self.inner),
        }
    }
    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = self.inner.try_lock()?;
        held::acquire(self.rank);
        Some(MutexGuard {
            rank: self.rank,
            inner,
            _after: LockRelease::new(&self.inner),
        })
    }
    /// The value, without locking: the exclusive borrow is proof enough.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}
impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        held::release(self.rank);
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Runs `f` with the lock released, then takes it again.
    pub fn unlocked<R>(guard: &mut MutexGuard<'a, T>, f: impl FnOnce() -> R) -> R {
        held::release(guard.rank);
        let lock = parking_lot::MutexGuard::mutex(&guard.inner);
        let out = parking_lot::MutexGuard::unlocked(&mut guard.inner, || {
            control::released(lock);
            let out = f();
            control::until(lock, || lock.try_lock().is_some());
            out
        });
        held::acquire(guard.rank);
        out
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// A condition without waiters.
    pub const fn new() -> Self {
        Condvar(parking_lot::Condvar::new())
    }
    /// Releases the lock, waits for a notification, takes the lock again.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        held::check("a wait", |rank| rank.may_block || *rank == guard.rank);
        if self.controlled_wait(guard, None).is_none() {
            self.0.wait(&mut guard.inner);
        }
    }
    /// As [`Condvar::wait`], for at most `timeout`; true when it timed out.
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> bool {
        held::check("a wait", |rank| rank.may_block || *rank == guard.rank);
        match self.controlled_wait(guard, Some(timeout)) {
            Some(timed_out) => timed_out,
            None => self.0.wait_for(&mut guard.inner, timeout).timed_out(),
        }
    }
    #[inline(always)]
    fn controlled_wait<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        limit: Option<Duration>,
    ) -> Option<bool> {
        let lock = parking_lot::MutexGuard::mutex(&guard.inner);
        control::wait(&self.0, limit, |sleep| {
            parking_lot::MutexGuard::unlocked(&mut guard.inner, || {
                control::released(lock);
                sleep();
                control::until(lock, || lock.try_lock().is_some());
            });
        })
    }
    /// Wakes one waiter.
    pub fn notify_one(&self) {
        if !control::notify(&self.0, false) {
            self.0.notify_one();
        }
    }
    /// Wakes every waiter.
    pub fn notify_all(&self) {
        if !control::notify(&self.0, true) {
            self.0.notify_all();
        }
    }
}

/// A reader-writer lock with a rank.
#[derive(Debug)]
pub struct RwLock<T: ?Sized> {
    rank: Rank,
    inner: parking_lot::RwLock<T>,
}

/// Shows that an [`RwLock`] is held for reading.
#[derive(Debug)]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    rank: Rank,
    inner: parking_lot::RwLockReadGuard<'a, T>,
    _after: LockRelease<'a, parking_lot::RwLock<T>>,
}

/// Shows that an [`RwLock`] is held for writing.
#[derive(Debug)]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    rank: Rank,
    inner: parking_lot::RwLockWriteGuard<'a, T>,
    _after: LockRelease<'a, parking_lot::RwLock<T>>,
}

impl<T> RwLock<T> {
    /// A lock of `rank` around `value`.
    pub const fn new(rank: Rank, value: T) -> Self {
        RwLock {
            rank,
            inner: parking_lot::RwLock::new(value),
        }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for shared access.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        held::acquire(self.rank);
        let taken = control::acquire(&self.inner, || self.inner.try_read());
        RwLockReadGuard {
            rank: self.rank,
            inner: taken.unwrap_or_else(|| self.inner.read()),
            _after: LockRelease::new(&self.inner),
        }
    }
    /// Waits for exclusive access.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        held::acquire(self.rank);
        let taken = control::acquire(&self.inner, || self.inner.try_write());
        RwLockWriteGuard {
            rank: self.rank,
            inner: taken.unwrap_or_else(|| self.inner.write()),
            _after: LockRelease::new(&self.inner),
        }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}
impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        held::release(self.rank);
    }
}
impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}
impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        held::release(self.rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "lock order")]
    fn taking_a_lower_rank_panics() {
        let a = Mutex::new(Rank::new(1, "a"), ());
        let b = Mutex::new(Rank::new(2, "b"), ());
        let _b = b.lock();
        let _a = a.lock();
    }

    #[test]
    #[cfg(debug_assertions)]
    fn what_takes_long_is_not_done_under_every_lock() {
        let caught = |f: fn()| std::panic::catch_unwind(f).is_err();
        let (long, brief) = (Rank::new(1, "long"), Rank::new(3, "brief").brief());
        let writers = Mutex::new(Rank::new(2, "writers").without_long_work(), ());
        let (long, brief) = (Mutex::new(long, ()), Mutex::new(brief, ()));
        {
            let _held = long.lock();
            check_may_block("a write");
            check_may_take_long("a walk");
            let _held = writers.lock();
            check_may_block("a write");
            assert!(caught(|| check_may_take_long("a walk")));
        }
        {
            let _held = brief.lock();
            assert!(caught(|| check_may_block("a write")));
            assert!(caught(|| check_may_take_long("a walk")));
        }
        // A condition releases its own lock, and no other.
        let changed = Condvar::new();
        let mut waiting = brief.lock();
        changed.wait_for(&mut waiting, Duration::ZERO);
        let leaf = Mutex::new(Rank::LEAF, ());
        let mut inner = leaf.lock();
        let wait = std::panic::AssertUnwindSafe(|| changed.wait_for(&mut inner, Duration::ZERO));
        assert!(std::panic::catch_unwind(wait).is_err());
    }

    #[test]
    fn rising_ranks_and_reacquisition_are_fine() {
        let a = Mutex::new(Rank::new(1, "a"), 1);
        let b = RwLock::new(Rank::new(2, "b"), 2);
        for _ in 0..2 {
            let x = a.lock();
            let y = b.read();
            assert_eq!(*x + *y, 3);
        }
    }
}
