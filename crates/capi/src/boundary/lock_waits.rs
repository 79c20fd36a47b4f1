//! Waits for row locks that the application carries out, and lists of such locks for it.
//!
//! The application's functions are called by threads that wait and by those that wake them, with no
//! lock of the library held. What `begin` returned is passed back until `end` takes it.

use super::State;
use super::callbacks::{Owner, Plain, tell};
use esker_sync::Arc;
use esker_txn::{LockWait, LockWaitEnd, LockWaitHook};
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::time::Duration;

/// Begins a wait.
pub(crate) type Begin = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
/// Sleeps; not 0 to end the wait.
pub(crate) type Sleep = unsafe extern "C" fn(*mut c_void, i64) -> c_int;
/// Wakes the sleeper, or ends the wait.
pub(crate) type OfWait = unsafe extern "C" fn(*mut c_void);
/// Takes a lock and its holders.
pub(crate) type EachLock =
    unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const u64, usize, c_uchar);
/// Takes a member of a ring of waits.
pub(crate) type EachDeadlock =
    unsafe extern "C" fn(*mut c_void, usize, u64, c_uchar, u64, u32, c_uchar, *const c_char, usize);

/// The application's functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitFunctions {
    pub(crate) begin: Begin,
    pub(crate) sleep: Sleep,
    pub(crate) wake: OfWait,
    pub(crate) end: OfWait,
}

/// The application's state and functions.
#[derive(Clone, Debug)]
pub(crate) struct CallbackLockWaits {
    owner: Arc<Owner>,
    functions: WaitFunctions,
}

impl CallbackLockWaits {
    pub(crate) fn new(state: *mut c_void, destructor: Plain, functions: WaitFunctions) -> Self {
        CallbackLockWaits {
            owner: Arc::new(Owner::new(state, destructor)),
            functions,
        }
    }
}

impl LockWaitHook for CallbackLockWaits {
    fn begin(&self) -> Box<dyn LockWait> {
        // SAFETY: the application gave the function together with the state.
        let wait = unsafe { (self.functions.begin)(self.owner.state()) };
        Box::new(CallbackLockWait {
            hook: self.clone(),
            wait: State(wait),
        })
    }
}

/// A wait of the application.
struct CallbackLockWait {
    hook: CallbackLockWaits,
    wait: State,
}

impl LockWait for CallbackLockWait {
    fn sleep(&self, timeout: Option<Duration>) -> LockWaitEnd {
        let micros = timeout.map_or(-1, |t| i64::try_from(t.as_micros()).unwrap_or(i64::MAX));
        // SAFETY: the application gave the function together with what it made of the wait, which
        // has not ended.
        match unsafe { (self.hook.functions.sleep)(self.wait.0, micros) } {
            0 => LockWaitEnd::Woken,
            _ => LockWaitEnd::Ended,
        }
    }

    fn wake(&self) {
        tell(self.hook.functions.wake, self.wait);
    }
}

impl Drop for CallbackLockWait {
    fn drop(&mut self) {
        tell(self.hook.functions.end, self.wait);
    }
}

/// Shows a lock and its holders.
pub(crate) fn tell_lock(
    f: EachLock,
    state: *mut c_void,
    (family, key): (u32, &[u8]),
    holders: &[u64],
    exclusive: bool,
) {
    // SAFETY: the application gave the function together with the state; key and holders live
    // through the call.
    unsafe {
        f(
            state,
            family,
            key.as_ptr().cast(),
            key.len(),
            holders.as_ptr(),
            holders.len(),
            c_uchar::from(exclusive),
        );
    }
}

/// Shows a member of ring number `ring`.
pub(crate) fn tell_deadlock(
    f: EachDeadlock,
    state: *mut c_void,
    (ring, time, limit_exceeded): (usize, u64, bool),
    (transaction, family, exclusive): (u64, u32, bool),
    key: &[u8],
) {
    // SAFETY: the application gave the function together with the state; the key lives through the
    // call.
    unsafe {
        f(
            state,
            ring,
            time,
            c_uchar::from(limit_exceeded),
            transaction,
            family,
            c_uchar::from(exclusive),
            key.as_ptr().cast(),
            key.len(),
        );
    }
}
