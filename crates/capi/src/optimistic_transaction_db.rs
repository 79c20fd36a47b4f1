//! Databases whose transactions look for conflicts when they commit.
//!
//! The handle begins with a `rocksdb_t`, as that of [`crate::transaction_db`] does.

use crate::access::CValue;
use crate::boundary::{attempt, call, destroy, exclusive, give, owned, path, quiet, shared};
use crate::call_options::lifecycle;
use crate::db::{OpenRequest, close_now};
use crate::transaction_db::hand_out;
use crate::*;
use esker::Result;
use esker_txn::{
    LockBuckets, OptimisticTransactionDb, OptimisticTransactionDbOptions, ValidatePolicy,
};
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;

/// A database whose transactions look for conflicts when they commit. It begins with a
/// `rocksdb_t`.
#[repr(C)]
pub struct rocksdb_optimistictransactiondb_t {
    base: rocksdb_t,
    pub(crate) db: OptimisticTransactionDb,
}

/// How a [`rocksdb_optimistictransactiondb_t`] works.
#[derive(Default)]
pub struct rocksdb_optimistictransactiondb_options_t {
    pub(crate) options: OptimisticTransactionDbOptions,
}

/// Locks that commits of several databases may share.
pub struct rocksdb_optimistictransactiondb_lock_buckets_t {
    buckets: LockBuckets,
}

impl CValue<ValidatePolicy> for c_int {
    fn to_field(self) -> Option<ValidatePolicy> {
        [ValidatePolicy::Serial, ValidatePolicy::Parallel]
            .into_iter()
            .find(|p| *p as c_int == self)
    }
    fn from_field(field: &ValidatePolicy) -> c_int {
        *field as c_int
    }
}

lifecycle!(
    rocksdb_optimistictransactiondb_options_t,
    rocksdb_optimistictransactiondb_options_create,
    rocksdb_optimistictransactiondb_options_destroy
);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_lock_buckets_create(
    bucket_count: usize,
    cache_aligned: c_uchar,
) -> *mut rocksdb_optimistictransactiondb_lock_buckets_t {
    quiet(ptr::null_mut(), || {
        let buckets = LockBuckets::new(bucket_count.min(1 << 28), cache_aligned != 0);
        give(rocksdb_optimistictransactiondb_lock_buckets_t { buckets })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(
    lock_buckets: *mut rocksdb_optimistictransactiondb_lock_buckets_t,
) -> usize {
    attempt(0, || {
        Ok(shared(lock_buckets)?.buckets.approximate_memory_usage())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_lock_buckets_destroy(
    lock_buckets: *mut rocksdb_optimistictransactiondb_lock_buckets_t,
) {
    destroy(lock_buckets);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(
    opt: *mut rocksdb_optimistictransactiondb_options_t,
    lock_buckets: *mut rocksdb_optimistictransactiondb_lock_buckets_t,
) {
    attempt((), || {
        let buckets = shared(lock_buckets).ok().map(|b| b.buckets.clone());
        exclusive(opt)?.options.shared_lock_buckets = buckets;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_close(
    otxn_db: *mut rocksdb_optimistictransactiondb_t,
) {
    quiet((), || {
        if let Some(handle) = owned(otxn_db) {
            handle.base.unlist();
            close_now(handle.db.base());
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_get_base_db(
    otxn_db: *mut rocksdb_optimistictransactiondb_t,
) -> *mut rocksdb_t {
    attempt(ptr::null_mut(), || {
        Ok(give(rocksdb_t::base_of(shared(otxn_db)?.db.base().clone())))
    })
}

/// Gives the handle back; the database stays open.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_close_base_db(base_db: *mut rocksdb_t) {
    quiet((), || crate::db::close(base_db));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_property_value(
    db: *mut rocksdb_optimistictransactiondb_t,
    propname: *const c_char,
) -> *mut c_char {
    rocksdb_property_value(db.cast(), propname)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_property_int(
    db: *mut rocksdb_optimistictransactiondb_t,
    propname: *const c_char,
    out_val: *mut u64,
) -> c_int {
    rocksdb_property_int(db.cast(), propname, out_val)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_write(
    otxn_db: *mut rocksdb_optimistictransactiondb_t,
    options: *const rocksdb_writeoptions_t,
    batch: *mut rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let batch = exclusive(batch)?;
        batch.check()?;
        shared(otxn_db)?
            .db
            .write(&mut batch.batch, &shared(options)?.write)
    });
}

/// How transactions work; the defaults for NULL.
fn optimistic(
    options: *const rocksdb_optimistictransactiondb_options_t,
) -> OptimisticTransactionDbOptions {
    shared(options).map_or_else(|_| Default::default(), |o| o.options.clone())
}

/// Opens the families `named` for optimistic transactions.
fn open_optimistic(
    named: OpenRequest,
    name: *const c_char,
    options: *const rocksdb_optimistictransactiondb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
) -> Result<*mut rocksdb_optimistictransactiondb_t> {
    let families = named.families.clone();
    let transactions = optimistic(options);
    let db = OptimisticTransactionDb::open_families(
        path(name)?,
        named.options,
        families,
        &transactions,
    )?;
    if !handles.is_null() {
        hand_out(db.base(), &named.families, handles)?;
    }
    let base = rocksdb_t::part_of(db.base().clone());
    Ok(give(rocksdb_optimistictransactiondb_t { base, db }))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_open(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_optimistictransactiondb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::default_only(options)?;
        open_optimistic(named, name, ptr::null(), ptr::null_mut())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_open_with_otxn_db_options(
    options: *const rocksdb_options_t,
    otxn_db_options: *const rocksdb_optimistictransactiondb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_optimistictransactiondb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::default_only(options)?;
        open_optimistic(named, name, otxn_db_options, ptr::null_mut())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_open_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    column_family_options: *const *const rocksdb_options_t,
    column_family_handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_optimistictransactiondb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::listed(
            options,
            num_column_families,
            column_family_names,
            column_family_options,
        )?;
        open_optimistic(named, name, ptr::null(), column_family_handles)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
    options: *const rocksdb_options_t,
    otxn_db_options: *const rocksdb_optimistictransactiondb_options_t,
    name: *const c_char,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    column_family_options: *const *const rocksdb_options_t,
    column_family_handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_optimistictransactiondb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::listed(
            options,
            num_column_families,
            column_family_names,
            column_family_options,
        )?;
        open_optimistic(named, name, otxn_db_options, column_family_handles)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_checkpoint_object_create(
    otxn_db: *mut rocksdb_optimistictransactiondb_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_checkpoint_t {
    rocksdb_checkpoint_object_create(otxn_db.cast(), errptr)
}
