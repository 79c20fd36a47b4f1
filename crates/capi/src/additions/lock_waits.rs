//! Waits for row locks: carried out by the application, and listed for it.

use crate::boundary::lock_waits::{
    Begin, CallbackLockWaits, EachDeadlock, EachLock, OfWait, Sleep, WaitFunctions, tell_deadlock,
    tell_lock,
};
use crate::boundary::{call, exclusive, shared};
use crate::*;
use esker::Error;
use std::ffi::{c_char, c_uchar, c_void};

/// Has the application carry out the waits for row locks, so that it can end one. A thread that is
/// to wait calls `begin` with the state, and then `sleep` with what that returned and the longest
/// sleep in microseconds (negative for ever), until it has the lock or gives up: at its time limit,
/// or when `sleep` returns something else than 0. The operation fails then as at its time limit.
/// `wake` ends a sleep, or the next one at once; other threads call it, also after the last sleep.
/// `end` takes what `begin` returned back. No lock of the library is held meanwhile. The destructor
/// is called when neither the options nor a database need the state any more. Without functions
/// waits are the library's again.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transactiondb_options_set_lock_waits(
    options: *mut rocksdb_transactiondb_options_t,
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    begin: Option<Begin>,
    sleep: Option<Sleep>,
    wake: Option<OfWait>,
    end: Option<OfWait>,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let options = &mut exclusive(options)?.options;
        options.lock_waits = match (begin, sleep, wake, end) {
            (None, None, None, None) => None,
            (Some(begin), Some(sleep), Some(wake), Some(end)) => {
                let functions = WaitFunctions {
                    begin,
                    sleep,
                    wake,
                    end,
                };
                let waits = CallbackLockWaits::new(state, destructor, functions);
                Some(std::sync::Arc::new(waits))
            }
            _ => {
                return Err(Error::invalid_argument(
                    "lock waits need all of begin, sleep, wake and end",
                ));
            }
        };
        Ok(())
    });
}

/// Passes each row lock that is held to `each`, by family and key.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transactiondb_each_lock(
    db: *const rocksdb_transactiondb_t,
    state: *mut c_void,
    each: Option<EachLock>,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let locks = shared(db)?.db.lock_status();
        if let Some(each) = each {
            for lock in &locks {
                let at = (lock.family, lock.key.as_slice());
                tell_lock(each, state, at, &lock.holders, lock.exclusive);
            }
        }
        Ok(())
    });
}

/// Passes the key that a transaction waits for to `each`, with those who hold it; 0 if it waits for
/// none. Any thread may ask.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transactiondb_waiting_for(
    db: *const rocksdb_transactiondb_t,
    transaction_id: u64,
    state: *mut c_void,
    each: Option<EachLock>,
    errptr: *mut *mut c_char,
) -> c_uchar {
    call(errptr, 0, || {
        let Some(lock) = shared(db)?.db.waiting_for(transaction_id) else {
            return Ok(0);
        };
        if let Some(each) = each {
            let at = (lock.family, lock.key.as_slice());
            tell_lock(each, state, at, &lock.holders, lock.exclusive);
        }
        Ok(1)
    })
}

/// Passes the members of the deadlocks that were found last to `each`, the latest deadlock first.
/// One that was assumed because the search went too deep has one member, of number 0.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transactiondb_each_deadlock(
    db: *const rocksdb_transactiondb_t,
    state: *mut c_void,
    each: Option<EachDeadlock>,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let found = shared(db)?.db.deadlocks();
        let Some(each) = each else { return Ok(()) };
        for (ring, path) in found.iter().enumerate() {
            let about = (ring, path.deadlock_time, path.limit_exceeded);
            if path.path.is_empty() {
                tell_deadlock(each, state, about, (0, 0, false), b"");
            }
            for member in &path.path {
                let who = (member.transaction, member.family, member.exclusive);
                tell_deadlock(each, state, about, who, &member.waiting_key);
            }
        }
        Ok(())
    });
}

/// Remembers this many deadlocks from now on.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transactiondb_set_max_deadlocks(
    db: *const rocksdb_transactiondb_t,
    count: u32,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        shared(db)?.db.set_max_num_deadlocks(count);
        Ok(())
    });
}
