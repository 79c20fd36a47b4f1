//! Threads under control: the seam at which a simulation decides which thread runs.
//!
//! The threads of a simulation belong to a `Schedule`. The locks, conditions, parking and yielding
//! of this crate ask it at every place where another thread could run or has to, instead of the
//! operating system. It lets one of its threads run at a time, so a run is decided by its choices
//! alone and can be repeated.
//!
//! Invariants: a controlled thread never waits inside a lock of the operating system, because the
//! holder could not run; and no other thread runs between a look at a lock and the wait for it, so
//! no wake-up is lost. Threads of the same process that belong to no schedule are not touched.
//! Without the feature `controlled` all this is nothing at all.
//!
//! Rejected: a checker that replaces the primitives when the crate is compiled
//! (shuttle, loom) has no time, so a wait with a limit never ends; one thread that runs steps of
//! jobs by hand covers the background work and not the writers and readers that race with it.

#[cfg(feature = "controlled")]
mod pool;
#[cfg(feature = "controlled")]
mod schedule;
#[cfg(all(test, feature = "controlled"))]
mod tests;

#[cfg(feature = "controlled")]
pub use active::sleep;
#[cfg(feature = "controlled")]
use active::{enter, mine};
#[cfg(feature = "controlled")]
pub use pool::{Running, start};
#[cfg(feature = "controlled")]
use schedule::Wake;
#[cfg(feature = "controlled")]
pub use schedule::{MemberHandle, Schedule, on_stuck};

#[cfg(feature = "controlled")]
mod active {
    use super::schedule::Member;
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::time::Duration;

    thread_local! {
        static MINE: RefCell<Option<Arc<Member>>> = const { RefCell::new(None) };
    }

    /// Puts the calling thread under control until the guard goes.
    pub(super) fn enter(member: Arc<Member>) -> ControlGuard {
        ControlGuard(MINE.with(|m| m.replace(Some(member))))
    }

    /// Keeps a thread under control; dropping it gives back what was there before.
    pub(super) struct ControlGuard(Option<Arc<Member>>);

    impl Drop for ControlGuard {
        fn drop(&mut self) {
            let before = self.0.take();
            MINE.with(|m| *m.borrow_mut() = before);
        }
    }

    pub(super) fn mine() -> Option<Arc<Member>> {
        MINE.try_with(|m| m.borrow().clone()).ok().flatten()
    }

    /// Lets `duration` of the run's time pass; false when the thread is not under control.
    pub fn sleep(duration: Duration) -> bool {
        mine().map(|me| me.sleep(duration)).is_some()
    }
}

/// The address that stands for a lock or a condition.
#[cfg(feature = "controlled")]
fn place<T: ?Sized>(of: &T) -> usize {
    std::ptr::from_ref(of).cast::<u8>() as usize
}

/// Takes a lock with `take`, waiting at `of` while it is held; `None` when the thread is not under
/// control.
#[inline(always)]
pub(crate) fn acquire<L: ?Sized, G>(of: &L, take: impl Fn() -> Option<G>) -> Option<G> {
    #[cfg(feature = "controlled")]
    if let Some(me) = mine() {
        me.switch();
        loop {
            if let Some(guard) = take() {
                return Some(guard);
            }
            me.wait(place(of), None);
        }
    }
    let _ = (of, take);
    None
}

/// Says that the lock at `of` is free. Dropped after the lock's own guard.
#[derive(Debug)]
pub(crate) struct LockRelease<'a, L: ?Sized> {
    #[cfg(feature = "controlled")]
    of: &'a L,
    #[cfg(not(feature = "controlled"))]
    of: std::marker::PhantomData<&'a L>,
}

impl<'a, L: ?Sized> LockRelease<'a, L> {
    #[inline(always)]
    pub(crate) fn new(of: &'a L) -> Self {
        #[cfg(not(feature = "controlled"))]
        let of = {
            let _ = of;
            std::marker::PhantomData
        };
        LockRelease { of }
    }
}

#[cfg(feature = "controlled")]
impl<L: ?Sized> Drop for LockRelease<'_, L> {
    fn drop(&mut self) {
        released(self.of);
    }
}

/// Waits at the condition `of`; `None` when the thread is not under control, else whether time was
/// up. `unlocked` runs what it is given without the lock.
#[inline(always)]
pub(crate) fn wait<C: ?Sized>(
    of: &C,
    limit: Option<std::time::Duration>,
    unlocked: impl FnOnce(&mut dyn FnMut()),
) -> Option<bool> {
    #[cfg(feature = "controlled")]
    if let Some(me) = mine() {
        let mut timed_out = false;
        unlocked(&mut || timed_out = me.wait(place(of), limit));
        return Some(timed_out);
    }
    let _ = (of, limit, unlocked);
    None
}

/// Says that the lock at `of` is free.
#[inline(always)]
pub(crate) fn released<L: ?Sized>(of: &L) {
    #[cfg(feature = "controlled")]
    if let Some(me) = mine() {
        me.wake(place(of), Wake::All);
    }
    let _ = of;
}

/// Waits until the lock at `of` can be taken without waiting, as it can then until the thread gives
/// way again.
#[inline(always)]
pub(crate) fn until<L: ?Sized>(of: &L, is_free: impl Fn() -> bool) {
    #[cfg(feature = "controlled")]
    if let Some(me) = mine() {
        while !is_free() {
            me.wait(place(of), None);
        }
    }
    let _ = (of, is_free);
}

/// Wakes the waiter at the condition `of`; false when the thread is not under control.
#[inline(always)]
pub(crate) fn notify<C: ?Sized>(of: &C, all: bool) -> bool {
    #[cfg(feature = "controlled")]
    if let Some(me) = mine() {
        me.wake(place(of), if all { Wake::All } else { Wake::One });
        return true;
    }
    let _ = (of, all);
    false
}

pub mod thread {
    //! Parking and yielding.

    use std::time::Duration;

    /// A thread that can be woken from [`park_timeout`].
    #[derive(Clone, Debug)]
    pub struct Thread {
        real: std::thread::Thread,
        #[cfg(feature = "controlled")]
        token: std::sync::Arc<std::sync::atomic::AtomicBool>,
    }

    #[cfg(feature = "controlled")]
    thread_local! {
        static TOKEN: std::sync::Arc<std::sync::atomic::AtomicBool> = std::sync::Arc::default();
    }

    /// Forgets an [`Thread::unpark`] that the thread's last body did not wait for: what a run does
    /// must follow from its seed alone.
    #[cfg(feature = "controlled")]
    pub(super) fn forget_unpark() {
        TOKEN.with(|token| token.store(false, std::sync::atomic::Ordering::SeqCst));
    }

    /// The calling thread.
    #[inline]
    pub fn current() -> Thread {
        Thread {
            real: std::thread::current(),
            #[cfg(feature = "controlled")]
            token: TOKEN.with(std::sync::Arc::clone),
        }
    }

    impl Thread {
        /// Ends the thread's [`park_timeout`], or makes its next one end at once.
        #[inline]
        pub fn unpark(&self) {
            #[cfg(feature = "controlled")]
            if let Some(me) = super::mine() {
                self.token.store(true, std::sync::atomic::Ordering::SeqCst);
                me.wake(super::place(&*self.token), super::Wake::All);
                return;
            }
            self.real.unpark();
        }
    }

    /// Waits for [`Thread::unpark`], at most `limit`; may return early.
    #[inline]
    pub fn park_timeout(limit: Duration) {
        #[cfg(feature = "controlled")]
        if let Some(me) = super::mine() {
            let token = TOKEN.with(std::sync::Arc::clone);
            if !token.swap(false, std::sync::atomic::Ordering::SeqCst) {
                me.wait(super::place(&*token), Some(limit));
                token.store(false, std::sync::atomic::Ordering::SeqCst);
            }
            return;
        }
        std::thread::park_timeout(limit);
    }

    /// Waits for [`Thread::unpark`], without a limit; may return early.
    #[inline]
    pub fn park() {
        #[cfg(feature = "controlled")]
        if let Some(me) = super::mine() {
            let token = TOKEN.with(std::sync::Arc::clone);
            if !token.swap(false, std::sync::atomic::Ordering::SeqCst) {
                me.wait(super::place(&*token), None);
                token.store(false, std::sync::atomic::Ordering::SeqCst);
            }
            return;
        }
        std::thread::park();
    }

    thread_local! {
        static NUMBER: u64 = {
            static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
            NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        };
    }

    /// The calling thread's number: small, from 1, in the order in which threads ask for one.
    #[inline]
    pub fn number() -> u64 {
        #[cfg(feature = "controlled")]
        if let Some(me) = super::mine() {
            return me.number();
        }
        NUMBER.with(|n| *n)
    }

    /// How many threads run at the same time: the machine's answer, asked for once. Under control
    /// it is two on every machine.
    pub fn parallelism() -> usize {
        #[cfg(feature = "controlled")]
        if super::mine().is_some() {
            return 2;
        }
        static MACHINE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let ask = || std::thread::available_parallelism().map_or(1, usize::from);
        *MACHINE.get_or_init(ask)
    }

    /// Lets other threads run.
    #[inline]
    pub fn yield_now() {
        #[cfg(feature = "controlled")]
        if let Some(me) = super::mine() {
            me.switch();
            return;
        }
        std::thread::yield_now();
    }

    /// Tells the processor that this is a loop that waits for another thread.
    #[inline(always)]
    pub fn spin_loop() {
        #[cfg(feature = "controlled")]
        if let Some(me) = super::mine() {
            me.switch();
            return;
        }
        std::hint::spin_loop();
    }
}
