//! Write batches that can be read.
//!
//! As with plain batches, the functions that add a record cannot report errors: the first one is
//! kept and reported when the batch is written. A range deletion is refused by the batch; RocksDB's
//! functions drop that error, and so do these.

use crate::batch::{BatchCallbacks, pieces, walk};
use crate::boundary::{attempt, bytes, call, destroy, give, owned, put, quiet, shared};
use crate::db::{database, with_default, with_family};
use crate::iterator::Walk;
use crate::pinned::pinned;
use crate::read::copied;
use crate::*;
use esker::{Error, FamilyHandle, KeyOrder, Result};
use esker_sync::{Arc, Mutex, Rank};
use esker_txn::IndexedBatch;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr;

/// Writes that happen together, and that can be read before.
///
/// The handle on a transaction's batch is lent: a copy that is freed and never dropped. So all
/// there is to it stands behind one pointer.
pub struct rocksdb_writebatch_wi_t(pub(crate) Arc<Inner>);

/// The object behind a handle.
pub(crate) struct Inner {
    pub(crate) batch: IndexedBatch,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The first error that could not be reported.
    failed: Option<Error>,
    /// The bytes that [`rocksdb_writebatch_wi_data`] showed last.
    data: Vec<u8>,
}

impl rocksdb_writebatch_wi_t {
    /// A handle on `batch`.
    pub(crate) fn new(batch: IndexedBatch) -> Self {
        rocksdb_writebatch_wi_t(Arc::new(Inner {
            batch,
            kept: Mutex::new(Rank::LEAF, Kept::default()),
        }))
    }

    fn keep(&self, error: Error) {
        self.0.kept.lock().failed.get_or_insert(error);
    }
}

/// The family behind a handle; `None` for NULL, which names the default family.
fn named<'a>(family: *const rocksdb_column_family_handle_t) -> Option<&'a FamilyHandle> {
    shared(family).ok().map(|f| &f.family)
}

/// Adds to a batch, and keeps the error.
fn add(
    batch: *mut rocksdb_writebatch_wi_t,
    family: *const rocksdb_column_family_handle_t,
    record: impl FnOnce(&IndexedBatch, Option<&FamilyHandle>) -> Result<()>,
) {
    attempt((), || {
        let batch = shared(batch)?;
        if let Err(error) = record(&batch.0.batch, named(family)) {
            batch.keep(error);
        }
        Ok(())
    });
}

/// A batch for `overwrite`, which takes its keys' order without a family from `order`.
fn made(order: KeyOrder, reserved: usize, overwrite: c_uchar) -> rocksdb_writebatch_wi_t {
    let reserved = reserved.min(1 << 30);
    rocksdb_writebatch_wi_t::new(IndexedBatch::with_order(overwrite != 0, order, reserved))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create(
    reserved_bytes: usize,
    overwrite_keys: c_uchar,
) -> *mut rocksdb_writebatch_wi_t {
    quiet(ptr::null_mut(), || {
        give(made(KeyOrder::Bytewise, reserved_bytes, overwrite_keys))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create_with_params(
    backup_index_comparator: *mut rocksdb_comparator_t,
    reserved_bytes: usize,
    overwrite_key: c_uchar,
    max_bytes: usize,
    _protection_bytes_per_key: usize,
) -> *mut rocksdb_writebatch_wi_t {
    quiet(ptr::null_mut(), || {
        let order = shared(backup_index_comparator).map_or(KeyOrder::Bytewise, |c| c.order.clone());
        let batch = made(order, reserved_bytes, overwrite_key);
        batch.0.batch.set_max_bytes(max_bytes);
        give(batch)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_destroy(b: *mut rocksdb_writebatch_wi_t) {
    destroy(b);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_clear(b: *mut rocksdb_writebatch_wi_t) {
    attempt((), || {
        let batch = shared(b)?;
        batch.0.batch.clear();
        batch.0.kept.lock().failed = None;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_count(b: *mut rocksdb_writebatch_wi_t) -> c_int {
    attempt(0, || {
        Ok(c_int::try_from(shared(b)?.0.batch.count()).unwrap_or(c_int::MAX))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_put(
    b: *mut rocksdb_writebatch_wi_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    add(b, ptr::null(), |b, f| {
        b.put_parts(f, &[bytes(key, klen)], &[bytes(val, vlen)])
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_put_cf(
    b: *mut rocksdb_writebatch_wi_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    add(b, column_family, |b, f| {
        b.put_parts(f, &[bytes(key, klen)], &[bytes(val, vlen)])
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_putv(
    b: *mut rocksdb_writebatch_wi_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    num_values: c_int,
    values_list: *const *const c_char,
    values_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    let value = pieces(values_list, values_list_sizes, num_values);
    add(b, ptr::null(), |b, f| b.put_parts(f, &key, &value));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_putv_cf(
    b: *mut rocksdb_writebatch_wi_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    num_values: c_int,
    values_list: *const *const c_char,
    values_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    let value = pieces(values_list, values_list_sizes, num_values);
    add(b, column_family, |b, f| b.put_parts(f, &key, &value));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_merge(
    b: *mut rocksdb_writebatch_wi_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    add(b, ptr::null(), |b, f| {
        b.merge_parts(f, &[bytes(key, klen)], &[bytes(val, vlen)])
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_merge_cf(
    b: *mut rocksdb_writebatch_wi_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    add(b, column_family, |b, f| {
        b.merge_parts(f, &[bytes(key, klen)], &[bytes(val, vlen)])
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_mergev(
    b: *mut rocksdb_writebatch_wi_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    num_values: c_int,
    values_list: *const *const c_char,
    values_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    let value = pieces(values_list, values_list_sizes, num_values);
    add(b, ptr::null(), |b, f| b.merge_parts(f, &key, &value));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_mergev_cf(
    b: *mut rocksdb_writebatch_wi_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    num_values: c_int,
    values_list: *const *const c_char,
    values_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    let value = pieces(values_list, values_list_sizes, num_values);
    add(b, column_family, |b, f| b.merge_parts(f, &key, &value));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_delete(
    b: *mut rocksdb_writebatch_wi_t,
    key: *const c_char,
    klen: usize,
) {
    add(b, ptr::null(), |b, f| {
        b.delete_parts(f, &[bytes(key, klen)])
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_delete_cf(
    b: *mut rocksdb_writebatch_wi_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
) {
    add(b, column_family, |b, f| {
        b.delete_parts(f, &[bytes(key, klen)])
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_deletev(
    b: *mut rocksdb_writebatch_wi_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    add(b, ptr::null(), |b, f| b.delete_parts(f, &key));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_deletev_cf(
    b: *mut rocksdb_writebatch_wi_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    add(b, column_family, |b, f| b.delete_parts(f, &key));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_singledelete(
    b: *mut rocksdb_writebatch_wi_t,
    key: *const c_char,
    klen: usize,
) {
    add(b, ptr::null(), |b, f| {
        b.single_delete_parts(f, &[bytes(key, klen)])
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_singledelete_cf(
    b: *mut rocksdb_writebatch_wi_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
) {
    add(b, column_family, |b, f| {
        b.single_delete_parts(f, &[bytes(key, klen)])
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_delete_range(
    _b: *mut rocksdb_writebatch_wi_t,
    _start_key: *const c_char,
    _start_key_len: usize,
    _end_key: *const c_char,
    _end_key_len: usize,
) {
    // Refused by the batch; the interface has no place for the error.
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_delete_range_cf(
    _b: *mut rocksdb_writebatch_wi_t,
    _column_family: *mut rocksdb_column_family_handle_t,
    _start_key: *const c_char,
    _start_key_len: usize,
    _end_key: *const c_char,
    _end_key_len: usize,
) {
    // Refused by the batch; the interface has no place for the error.
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_delete_rangev(
    _b: *mut rocksdb_writebatch_wi_t,
    _num_keys: c_int,
    _start_keys_list: *const *const c_char,
    _start_keys_list_sizes: *const usize,
    _end_keys_list: *const *const c_char,
    _end_keys_list_sizes: *const usize,
) {
    // Refused by the batch; the interface has no place for the error.
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_delete_rangev_cf(
    _b: *mut rocksdb_writebatch_wi_t,
    _column_family: *mut rocksdb_column_family_handle_t,
    _num_keys: c_int,
    _start_keys_list: *const *const c_char,
    _start_keys_list_sizes: *const usize,
    _end_keys_list: *const *const c_char,
    _end_keys_list_sizes: *const usize,
) {
    // Refused by the batch; the interface has no place for the error.
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_put_log_data(
    b: *mut rocksdb_writebatch_wi_t,
    blob: *const c_char,
    len: usize,
) {
    add(b, ptr::null(), |b, _| b.log_data(bytes(blob, len)));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_iterate(
    b: *mut rocksdb_writebatch_wi_t,
    state: *mut c_void,
    put: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>,
    deleted: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
) {
    attempt((), || {
        let batch = shared(b)?.0.batch.to_batch();
        walk(&batch, state, BatchCallbacks::of_default(put, deleted));
        Ok(())
    });
}

/// A copy, which lives until the next call for the batch.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_data(
    b: *mut rocksdb_writebatch_wi_t,
    size: *mut usize,
) -> *const c_char {
    attempt(ptr::null(), || {
        let batch = shared(b)?;
        let data = batch.0.batch.with_batch(|b| b.data().to_vec());
        let mut kept = batch.0.kept.lock();
        kept.data = data;
        put(size, kept.data.len());
        Ok(kept.data.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_set_save_point(b: *mut rocksdb_writebatch_wi_t) {
    attempt((), || {
        shared(b)?.0.batch.set_save_point();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_rollback_to_save_point(
    b: *mut rocksdb_writebatch_wi_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || shared(b)?.0.batch.rollback_to_save_point());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_get_from_batch(
    wbwi: *mut rocksdb_writebatch_wi_t,
    _options: *const rocksdb_options_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vallen, 0);
        let found = shared(wbwi)?.0.batch.get(bytes(key, keylen))?;
        Ok(copied(found.map(Into::into), vallen))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_get_from_batch_cf(
    wbwi: *mut rocksdb_writebatch_wi_t,
    _options: *const rocksdb_options_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vallen, 0);
        let family = &shared(column_family)?.family;
        let found = shared(wbwi)?.0.batch.get_cf(family, bytes(key, keylen))?;
        Ok(copied(found.map(Into::into), vallen))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_get_from_batch_and_db(
    wbwi: *mut rocksdb_writebatch_wi_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vallen, 0);
        let ((db, family), options) = (with_default(db)?, shared(options)?);
        let (key, snapshot) = (bytes(key, keylen), options.snapshot.as_ref());
        let batch = &shared(wbwi)?.0.batch;
        Ok(copied(
            batch.get_over(db, family, key, &options.read, snapshot)?,
            vallen,
        ))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db(
    wbwi: *mut rocksdb_writebatch_wi_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        let ((db, family), options) = (with_default(db)?, shared(options)?);
        let (key, snapshot) = (bytes(key, keylen), options.snapshot.as_ref());
        let batch = &shared(wbwi)?.0.batch;
        let found = batch.get_over(db, family, key, &options.read, snapshot)?;
        Ok(pinned(found))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_get_from_batch_and_db_cf(
    wbwi: *mut rocksdb_writebatch_wi_t,
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
        let ((db, family), options) = (with_family(db, column_family)?, shared(options)?);
        let (key, snapshot) = (bytes(key, keylen), options.snapshot.as_ref());
        let batch = &shared(wbwi)?.0.batch;
        Ok(copied(
            batch.get_over(db, family, key, &options.read, snapshot)?,
            vallen,
        ))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
    wbwi: *mut rocksdb_writebatch_wi_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        let ((db, family), options) = (with_family(db, column_family)?, shared(options)?);
        let (key, snapshot) = (bytes(key, keylen), options.snapshot.as_ref());
        let batch = &shared(wbwi)?.0.batch;
        let found = batch.get_over(db, family, key, &options.read, snapshot)?;
        Ok(pinned(found))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_writebatch_wi(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    wbwi: *mut rocksdb_writebatch_wi_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let batch = shared(wbwi)?;
        batch.0.kept.lock().failed.clone().map_or(Ok(()), Err)?;
        batch.0.batch.write(database(db)?, &shared(options)?.write)
    });
}

/// Puts the batch on top of an iterator, which it takes over.
fn over(
    wbwi: *mut rocksdb_writebatch_wi_t,
    base: *mut rocksdb_iterator_t,
    family: *const rocksdb_column_family_handle_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    attempt(ptr::null_mut(), || {
        let batch = &shared(wbwi)?.0.batch;
        let base =
            owned(base).ok_or_else(|| Error::invalid_argument("NULL instead of an iterator"))?;
        let options = shared(options).ok().map(|o| &*o.read);
        let iterator = match base.into_walk() {
            Walk::Base(base) => {
                Walk::Merged(Box::new(batch.iter_over(base, named(family), options)))
            }
            _ => Walk::Failed(Error::not_supported("a batch on top of a batch")),
        };
        Ok(give(rocksdb_iterator_t::from(iterator)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base(
    wbwi: *mut rocksdb_writebatch_wi_t,
    base_iterator: *mut rocksdb_iterator_t,
) -> *mut rocksdb_iterator_t {
    over(wbwi, base_iterator, ptr::null(), ptr::null())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base_readopts(
    wbwi: *mut rocksdb_writebatch_wi_t,
    base_iterator: *mut rocksdb_iterator_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    over(wbwi, base_iterator, ptr::null(), options)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base_cf(
    wbwi: *mut rocksdb_writebatch_wi_t,
    base_iterator: *mut rocksdb_iterator_t,
    cf: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_iterator_t {
    over(wbwi, base_iterator, cf, ptr::null())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
    wbwi: *mut rocksdb_writebatch_wi_t,
    base_iterator: *mut rocksdb_iterator_t,
    cf: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    over(wbwi, base_iterator, cf, options)
}
