//! Values that Java changes by setters and natives read: options above all.
//!
//! A change makes a new value, so a call goes on with the one that it began with, and no call waits
//! for a lock.

use crate::boundary::{Outcome, handles, stale};
use esker_sync::{Arc, ArcSwap, Mutex, MutexGuard, Rank};
use jni_sys::jlong;
use std::any::Any;

/// The lock of an object that only one call at a time may use. It comes before every lock of the
/// engine.
pub(crate) const OBJECT: Rank = Rank::new(1, "java object");

/// A value behind a handle.
pub(crate) struct SharedValue<T>(ArcSwap<T>);

impl<T: Clone> SharedValue<T> {
    pub(crate) fn new(value: T) -> Self {
        SharedValue(ArcSwap::from_pointee(value))
    }

    /// The value as it is now.
    #[inline]
    pub(crate) fn get(&self) -> arc_swap::Guard<Arc<T>> {
        self.0.load()
    }

    /// Changes it for calls that begin later.
    pub(crate) fn change(&self, how: impl FnOnce(&mut T)) {
        let mut next = T::clone(&self.0.load());
        how(&mut next);
        self.0.store(Arc::new(next));
    }
}

/// An object that only one call at a time may use: an iterator, a batch.
pub(crate) struct ExclusiveValue<T>(Mutex<T>);

impl<T> ExclusiveValue<T> {
    pub(crate) fn new(value: T) -> Self {
        ExclusiveValue(Mutex::new(OBJECT, value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}

/// Gives Java a value.
pub(crate) fn give<T: Clone + Send + Sync + 'static>(value: T) -> jlong {
    handles::give(SharedValue::new(value))
}

/// As [`give`], for a value that goes with a database.
pub(crate) fn give_owned<T: Clone + Send + Sync + 'static>(value: T, owner: jlong) -> jlong {
    handles::give_owned(SharedValue::new(value), owner)
}

/// The value behind a handle as it is now.
#[inline]
pub(crate) fn value<T: Clone + Send + Sync + 'static>(
    handle: jlong,
) -> Outcome<arc_swap::Guard<Arc<T>>> {
    Ok(handles::hold::<SharedValue<T>>(handle)?.get())
}

/// Changes the value behind a handle.
pub(crate) fn change<T: Clone + Send + Sync + 'static>(
    handle: jlong,
    how: impl FnOnce(&mut T),
) -> Outcome<()> {
    handles::hold::<SharedValue<T>>(handle)?.change(how);
    Ok(())
}

/// Closes a handle, unless it was closed before, perhaps with its database; an exception if it
/// names an object of another kind, or none that ever was.
pub(crate) fn dispose<T: Any>(handle: jlong) -> Outcome<()> {
    if handles::close::<T>(handle) || handles::is_past(handle) {
        return Ok(());
    }
    Err(stale(handle, std::any::type_name::<T>()))
}
