//! Calls into the engine: without Python's lock, and without a panic that leaves them.

use crate::errors::Failure;
use crate::forks;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

/// Calls `work` while other threads run Python.
#[inline]
pub(crate) fn released<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R, Failure> + Send,
) -> PyResult<R> {
    forks::check()?;
    py.detach(|| caught(work))
        .map_err(|failure| failure.raise(py))
}

/// Calls `work`, which waits for nothing.
#[inline]
pub(crate) fn at_once<R>(py: Python<'_>, work: impl FnOnce() -> Result<R, Failure>) -> PyResult<R> {
    forks::check()?;
    caught(work).map_err(|failure| failure.raise(py))
}

#[inline]
fn caught<R>(work: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(panic) => Err(Failure::Panic(message(&*panic))),
    }
}

/// The words of a panic.
#[cold]
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Takes a lock. After a panic under it, what it guards is over.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Failure> {
    mutex
        .lock()
        .map_err(|_| Failure::Closed("a defect inside the engine ended this object"))
}

/// Takes a lock that is free; `None` where a thread holds it.
#[inline]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock().ok()
}
