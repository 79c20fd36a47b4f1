//! Values that stay where they are until they are given back.

use crate::boundary::{call, destroy, give, put, shared};
use crate::db::{with_default, with_family};
use crate::*;
use esker::PinnedValue;
use std::ffi::c_char;
use std::ptr;

/// A value, pinned.
pub struct rocksdb_pinnableslice_t {
    pub(crate) value: PinnedValue,
}

/// A value, pinned, with accessors that inline.
pub struct rocksdb_pinnable_handle_t {
    value: PinnedValue,
}

/// A handle on what was found; NULL for nothing.
pub(crate) fn pinned(found: Option<PinnedValue>) -> *mut rocksdb_pinnableslice_t {
    found.map_or(ptr::null_mut(), |value| {
        give(rocksdb_pinnableslice_t { value })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_pinned(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        let (db, family) = with_default(db)?;
        let found = shared(options)?.get(db, family, key, keylen)?;
        Ok(pinned(found))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_pinned_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        let (db, family) = with_family(db, column_family)?;
        let found = shared(options)?.get(db, family, key, keylen)?;
        Ok(pinned(found))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_pinnableslice_destroy(v: *mut rocksdb_pinnableslice_t) {
    destroy(v);
}

/// NULL and a length of 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_pinnableslice_value(
    t: *const rocksdb_pinnableslice_t,
    vlen: *mut usize,
) -> *const c_char {
    match shared(t) {
        Ok(pinned) => {
            put(vlen, pinned.value.len());
            pinned.value.as_ptr().cast()
        }
        Err(_) => {
            put(vlen, 0);
            ptr::null()
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_pinned_v2(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnable_handle_t {
    call(errptr, ptr::null_mut(), || {
        let (db, family) = with_default(db)?;
        let found = shared(options)?.get(db, family, key, keylen)?;
        Ok(found.map_or(ptr::null_mut(), |value| {
            give(rocksdb_pinnable_handle_t { value })
        }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_pinned_cf_v2(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnable_handle_t {
    call(errptr, ptr::null_mut(), || {
        let (db, family) = with_family(db, column_family)?;
        let found = shared(options)?.get(db, family, key, keylen)?;
        Ok(found.map_or(ptr::null_mut(), |value| {
            give(rocksdb_pinnable_handle_t { value })
        }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_pinnable_handle_get_value(
    handle: *const rocksdb_pinnable_handle_t,
    vallen: *mut usize,
) -> *const c_char {
    match shared(handle) {
        Ok(pinned) => {
            put(vallen, pinned.value.len());
            pinned.value.as_ptr().cast()
        }
        Err(_) => {
            put(vallen, 0);
            ptr::null()
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_pinnable_handle_destroy(handle: *mut rocksdb_pinnable_handle_t) {
    destroy(handle);
}
