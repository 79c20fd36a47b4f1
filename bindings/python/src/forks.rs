//! Children of a fork.
//!
//! A child has none of its parent's threads, and locks that one of them held stay taken. So a child
//! of a process that used the engine raises `ForkedError` for each handle and each opening, and
//! leaves what it inherited alone: it frees and closes nothing.

use crate::errors::ForkedError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

/// The process opened a database.
static IS_USED: AtomicBool = AtomicBool::new(false);
/// The process is a child of one that did.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Runs in each child, before other Python code.
#[pyfunction]
fn note_fork() {
    if IS_USED.load(Ordering::Relaxed) {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
}

/// Asks Python to tell of forks.
pub(crate) fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let arguments = PyDict::new(py);
    arguments.set_item("after_in_child", wrap_pyfunction!(note_fork, module)?)?;
    let register = py.import("os")?.getattr("register_at_fork")?;
    register.call((), Some(&arguments)).map(drop)
}

/// Returns whether the engine must be left alone here.
#[inline]
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// An exception in a child.
#[inline]
pub(crate) fn check() -> PyResult<()> {
    if is_child() { Err(refused()) } else { Ok(()) }
}

/// As [`check`], before the first use of the engine.
pub(crate) fn begin() -> PyResult<()> {
    check()?;
    IS_USED.store(true, Ordering::Relaxed);
    Ok(())
}

#[cold]
fn refused() -> PyErr {
    ForkedError::new_err(
        "this process is a child of one that had opened databases: neither these nor others can \
         be used here; open databases after the fork only, or start processes without one \
         (multiprocessing: the methods \"spawn\" and \"forkserver\")",
    )
}

/// A part of the engine, which a child of a fork does not free.
#[derive(Debug)]
pub(crate) struct HeldValue<T>(Option<T>);

impl<T> HeldValue<T> {
    pub(crate) fn new(value: T) -> Self {
        HeldValue(Some(value))
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("taken only when it is dropped")
    }
}

impl<T> Deref for HeldValue<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_ref().expect("taken only when it is dropped")
    }
}

impl<T> Drop for HeldValue<T> {
    fn drop(&mut self) {
        if is_child() {
            std::mem::forget(self.0.take());
        }
    }
}
