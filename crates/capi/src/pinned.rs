//! Values that stay where they are until they are given back.

use crate::boundary::{call, destroy, give_in_place, put, shared};
use crate::db::{with_default, with_family};
use crate::*;
use esker::PinnedValue;
use std::ffi::c_char;
use std::ptr;

/// A value, pinned.
pub struct rocksdb_pinnableslice_t(PinnedValue);

/// A value, pinned, with accessors that inline.
pub struct rocksdb_pinnable_handle_t(PinnedValue);

/// Tells where the bytes are; NULL and a length of 0 for NULL.
#[inline]
fn tell(value: Option<&PinnedValue>, length: *mut usize) -> *const c_char {
    let Some(value) = value else {
        put(length, 0);
        return ptr::null();
    };
    put(length, value.len());
    value.as_ptr().cast()
}

/// A handle on what was found; NULL for nothing.
#[inline]
pub(crate) fn pinned(found: Option<PinnedValue>) -> *mut rocksdb_pinnableslice_t {
    found.map_or(ptr::null_mut(), |value| {
        give_in_place(|| rocksdb_pinnableslice_t(value))
    })
}

/// As [`pinned`].
#[inline]
fn handle(found: Option<PinnedValue>) -> *mut rocksdb_pinnable_handle_t {
    found.map_or(ptr::null_mut(), |value| {
        give_in_place(|| rocksdb_pinnable_handle_t(value))
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

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_pinnableslice_value(
    t: *const rocksdb_pinnableslice_t,
    vlen: *mut usize,
) -> *const c_char {
    tell(shared(t).ok().map(|slice| &slice.0), vlen)
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
        Ok(handle(found))
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
        Ok(handle(found))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_pinnable_handle_get_value(
    handle: *const rocksdb_pinnable_handle_t,
    vallen: *mut usize,
) -> *const c_char {
    tell(shared(handle).ok().map(|handle| &handle.0), vallen)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_pinnable_handle_destroy(handle: *mut rocksdb_pinnable_handle_t) {
    destroy(handle);
}
