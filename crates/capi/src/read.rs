//! Point reads.

use crate::boundary::{
    attempt, bytes, call, malloc_bytes, many, put, put_at, report, shared, sized,
};
use crate::db::{with_default, with_family};
use crate::pinned::pinned;
use crate::*;
use esker::{Db, FamilyHandle, PinnedValue, Result};
use std::ffi::{c_char, c_uchar};
use std::ptr;

impl rocksdb_readoptions_t {
    /// Reads `key`.
    #[inline]
    pub(crate) fn get(
        &self,
        db: &Db,
        family: &FamilyHandle,
        key: *const c_char,
        keylen: usize,
    ) -> Result<Option<PinnedValue>> {
        db.get_opt(
            family,
            sized(key, keylen)?,
            &self.read,
            self.snapshot.as_ref(),
        )
    }
}

/// A copy of what was found, and its length; NULL and 0 for nothing.
#[inline]
pub(crate) fn copied(found: Option<PinnedValue>, vallen: *mut usize) -> *mut c_char {
    match found {
        Some(value) => {
            put(vallen, value.len());
            malloc_bytes(&value)
        }
        None => {
            put(vallen, 0);
            ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vallen, 0);
        let (db, family) = with_default(db)?;
        Ok(copied(
            shared(options)?.get(db, family, key, keylen)?,
            vallen,
        ))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vallen, 0);
        let (db, family) = with_family(db, column_family)?;
        Ok(copied(
            shared(options)?.get(db, family, key, keylen)?,
            vallen,
        ))
    })
}

/// Copies the value into the caller's room; `found` says whether there is one. 0 when the room is
/// too small.
fn into_buffer(
    value: Option<PinnedValue>,
    buffer: *mut c_char,
    buffer_size: usize,
    vallen: *mut usize,
    found: *mut c_uchar,
) -> c_uchar {
    let Some(value) = value else {
        put(vallen, 0);
        put(found, 0);
        return 0;
    };
    put(vallen, value.len());
    put(found, 1);
    c_uchar::from(crate::boundary::fill(buffer, buffer_size, &value))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_into_buffer(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    buffer: *mut c_char,
    buffer_size: usize,
    vallen: *mut usize,
    found: *mut c_uchar,
    errptr: *mut *mut c_char,
) -> c_uchar {
    put(found, 0);
    call(errptr, 0, || {
        let (db, family) = with_default(db)?;
        let value = shared(options)?.get(db, family, key, keylen)?;
        Ok(into_buffer(value, buffer, buffer_size, vallen, found))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_into_buffer_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    buffer: *mut c_char,
    buffer_size: usize,
    vallen: *mut usize,
    found: *mut c_uchar,
    errptr: *mut *mut c_char,
) -> c_uchar {
    put(found, 0);
    call(errptr, 0, || {
        let (db, family) = with_family(db, column_family)?;
        let value = shared(options)?.get(db, family, key, keylen)?;
        Ok(into_buffer(value, buffer, buffer_size, vallen, found))
    })
}

/// Stores each answer, or its error, in its place.
pub(crate) fn store_all(
    answers: Vec<Result<Option<PinnedValue>>>,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    for (i, answer) in answers.into_iter().enumerate() {
        let mut error = ptr::null_mut();
        let (value, size) = match answer {
            Ok(Some(value)) => (malloc_bytes(&value), value.len()),
            Ok(None) => (ptr::null_mut(), 0),
            Err(e) => {
                report(&raw mut error, &e);
                (ptr::null_mut(), 0)
            }
        };
        put_at(values_list, i, value);
        put_at(values_list_sizes, i, size);
        put_at(errs, i, error);
    }
}

pub(crate) fn keys<'a>(
    list: *const *const c_char,
    sizes: *const usize,
    count: usize,
) -> Vec<&'a [u8]> {
    many(list, count)
        .iter()
        .zip(many(sizes, count))
        .map(|(key, size)| bytes(*key, *size))
        .collect()
}

/// When the call itself fails, every key gets its error.
pub(crate) fn for_all(
    count: usize,
    body: impl FnOnce() -> Result<Vec<Result<Option<PinnedValue>>>>,
) -> Vec<Result<Option<PinnedValue>>> {
    let mut answers = Vec::new();
    let mut error = ptr::null_mut();
    call(&raw mut error, (), || {
        answers = match body() {
            Ok(answers) => answers,
            Err(e) => (0..count).map(|_| Err(e.clone())).collect(),
        };
        Ok(())
    });
    crate::boundary::free(error.cast());
    answers
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_multi_get(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    let answers = for_all(num_keys, || {
        let (db, family) = with_default(db)?;
        let options = shared(options)?;
        let keys = keys(keys_list, keys_list_sizes, num_keys);
        Ok(db.multi_get_opt(family, keys, &options.read, options.snapshot.as_ref()))
    });
    store_all(answers, values_list, values_list_sizes, errs);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_multi_get_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_families: *const *const rocksdb_column_family_handle_t,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    let answers = for_all(num_keys, || {
        let (handle, options) = (db, shared(options)?);
        let mut wanted = Vec::with_capacity(num_keys);
        let keys = keys(keys_list, keys_list_sizes, num_keys);
        for (family, key) in many(column_families, num_keys).iter().zip(keys) {
            wanted.push((with_family(handle, *family)?.1, key));
        }
        let (db, _) = with_default(handle)?;
        Ok(db.multi_get_families(&wanted, &options.read, options.snapshot.as_ref()))
    });
    store_all(answers, values_list, values_list_sizes, errs);
}

/// Stores each pinned answer, or its error, in its place.
fn store_pinned(
    answers: Vec<Result<Option<PinnedValue>>>,
    values: *mut *mut rocksdb_pinnableslice_t,
    errs: *mut *mut c_char,
) {
    for (i, answer) in answers.into_iter().enumerate() {
        let mut error = ptr::null_mut();
        let value = match answer {
            Ok(found) => pinned(found),
            Err(e) => {
                report(&raw mut error, &e);
                ptr::null_mut()
            }
        };
        put_at(values, i, value);
        put_at(errs, i, error);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_batched_multi_get_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values: *mut *mut rocksdb_pinnableslice_t,
    errs: *mut *mut c_char,
    _sorted_input: bool,
) {
    let answers = for_all(num_keys, || {
        let (db, family) = with_family(db, column_family)?;
        let options = shared(options)?;
        let keys = keys(keys_list, keys_list_sizes, num_keys);
        Ok(db.multi_get_opt(family, keys, &options.read, options.snapshot.as_ref()))
    });
    store_pinned(answers, values, errs);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_batched_multi_get_cf_slice(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_keys: usize,
    keys_list: *const rocksdb_slice_t,
    values: *mut *mut rocksdb_pinnableslice_t,
    errs: *mut *mut c_char,
    _sorted_input: bool,
) {
    let answers = for_all(num_keys, || {
        let (db, family) = with_family(db, column_family)?;
        let options = shared(options)?;
        let keys = many(keys_list, num_keys)
            .iter()
            .map(|k| bytes(k.data, k.size));
        Ok(db.multi_get_opt(family, keys, &options.read, options.snapshot.as_ref()))
    });
    store_pinned(answers, values, errs);
}

/// 1 unless the key is surely absent. A value that is at hand is handed over too.
fn may_exist(
    db: &Db,
    family: &FamilyHandle,
    options: &rocksdb_readoptions_t,
    key: &[u8],
    value: *mut *mut c_char,
    val_len: *mut usize,
    value_found: *mut c_uchar,
) -> c_uchar {
    put(value_found, 0);
    if !value_found.is_null() {
        put(value, ptr::null_mut());
    }
    let mut read = options.read.clone();
    read.read_tier = esker::options::ReadTier::BlockCache;
    match db.get_opt(family, key, &read, options.snapshot.as_ref()) {
        // RocksDB says that it "found" the empty value of a key that is surely not there; bindings
        // free it.
        Ok(None) => {
            if !value_found.is_null() {
                put(value_found, 1);
                put(val_len, 0);
                put(value, malloc_bytes(&[]));
            }
            0
        }
        Ok(Some(found)) => {
            if !value_found.is_null() {
                put(value_found, 1);
                put(val_len, found.len());
                put(value, malloc_bytes(&found));
            }
            1
        }
        Err(_) => 1,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_key_may_exist(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_len: usize,
    value: *mut *mut c_char,
    val_len: *mut usize,
    _timestamp: *const c_char,
    _timestamp_len: usize,
    value_found: *mut c_uchar,
) -> c_uchar {
    attempt(1, || {
        let (db, family) = with_default(db)?;
        let key = sized(key, key_len)?;
        Ok(may_exist(
            db,
            family,
            shared(options)?,
            key,
            value,
            val_len,
            value_found,
        ))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_key_may_exist_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    key_len: usize,
    value: *mut *mut c_char,
    val_len: *mut usize,
    _timestamp: *const c_char,
    _timestamp_len: usize,
    value_found: *mut c_uchar,
) -> c_uchar {
    attempt(1, || {
        let (db, family) = with_family(db, column_family)?;
        let key = sized(key, key_len)?;
        Ok(may_exist(
            db,
            family,
            shared(options)?,
            key,
            value,
            val_len,
            value_found,
        ))
    })
}
