//! Helpers that the tests of C functions share: places for errors.

use rocksdb::rocksdb_free;
use std::ffi::{CStr, c_char};
use std::ptr::null_mut;

/// The text of an error that was reported, which is freed.
pub(crate) fn told(error: *mut c_char) -> Option<String> {
    if error.is_null() {
        return None;
    }
    // SAFETY: the text ends with NUL.
    let text = unsafe { CStr::from_ptr(error) };
    let text = text.to_string_lossy().into_owned();
    rocksdb_free(error.cast());
    Some(text)
}

/// Runs `call` with a place for an error; there must be none.
pub(crate) fn fine<R>(call: impl FnOnce(*mut *mut c_char) -> R) -> R {
    let mut error = null_mut();
    let out = call(&mut error);
    assert_eq!(told(error), None);
    out
}
