//! Answers of functions that are not supported yet: each reports an error where it can, and is
//! remembered by name.

use crate::boundary::report;
use esker_status::Error;
use esker_sync::{Mutex, Rank};
use std::collections::BTreeSet;
use std::ffi::c_char;

static SAID: Mutex<BTreeSet<&'static str>> = Mutex::new(Rank::LEAF, BTreeSet::new());

/// Reports that `function` is not supported.
#[cold]
pub(crate) fn refuse(function: &'static str, errptr: *mut *mut c_char) {
    SAID.lock().insert(function);
    report(errptr, &Error::not_supported(function));
    crate::open_dbs::tell_refused(function);
}

/// Every function that was called in this process and refused.
pub(crate) fn refused() -> Vec<&'static str> {
    SAID.lock().iter().copied().collect()
}
