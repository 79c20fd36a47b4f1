//! Databases whose transactions lock their keys.
//!
//! The handle begins with a `rocksdb_t`: what such a database does as any database is done by the
//! function for that, through the same pointer.

use crate::access::CValue;
use crate::boundary::{
    attempt, bytes, call, destroy, exclusive, give, malloc_array, many, owned, path, put, put_at,
    quiet, shared, text,
};
use crate::call_options::lifecycle;
use crate::db::{OpenRequest, close_now};
use crate::pinned::pinned;
use crate::read::{copied, for_all, keys, store_all};
use crate::snapshot::release;
use crate::*;
use esker::{Db, Error, FamilyDescriptor, FamilyHandle, Result, WriteOptions};
use esker_txn::{TransactionDb, TransactionDbOptions, WritePolicy};
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;

/// A database whose transactions lock the keys they touch. Programs pass it where a `rocksdb_t` is
/// wanted, to drop a column family for instance; so it begins with one.
#[repr(C)]
pub struct rocksdb_transactiondb_t {
    base: rocksdb_t,
    pub(crate) db: TransactionDb,
    default: FamilyHandle,
}

/// How a [`rocksdb_transactiondb_t`] works.
#[derive(Default)]
pub struct rocksdb_transactiondb_options_t {
    pub(crate) options: TransactionDbOptions,
}

impl CValue<WritePolicy> for c_int {
    fn to_field(self) -> Option<WritePolicy> {
        [
            WritePolicy::Committed,
            WritePolicy::Prepared,
            WritePolicy::Unprepared,
        ]
        .into_iter()
        .find(|p| *p as c_int == self)
    }
    fn from_field(field: &WritePolicy) -> c_int {
        *field as c_int
    }
}

impl rocksdb_transactiondb_t {
    fn new(db: TransactionDb) -> Self {
        let default = db.base().default_family_handle();
        let base = rocksdb_t::part_of(db.base().clone());
        rocksdb_transactiondb_t { base, db, default }
    }

    /// The family behind a handle, which must belong to the database; the default family for NULL.
    fn family(&self, family: *const rocksdb_column_family_handle_t) -> Result<&FamilyHandle> {
        if family.is_null() {
            return Ok(&self.default);
        }
        let family = &shared(family)?.family;
        if !self.db.base().owns(family) {
            return Err(Error::invalid_argument(format!(
                "column family {} belongs to another database",
                family.name()
            )));
        }
        Ok(family)
    }
}

/// Stores handles on the families `named` from `out` on.
pub(crate) fn hand_out(
    db: &Db,
    named: &[FamilyDescriptor],
    out: *mut *mut rocksdb_column_family_handle_t,
) -> Result<()> {
    let mut handles = Vec::with_capacity(named.len());
    for wanted in named {
        handles.push(db.family(&wanted.name).ok_or_else(|| {
            Error::invalid_argument(format!("Column family not found: {}", wanted.name))
        })?);
    }
    for (i, family) in handles.into_iter().enumerate() {
        put_at(
            out,
            i,
            give(rocksdb_column_family_handle_t::new(family.into())),
        );
    }
    Ok(())
}

/// A write past the transactions, to one family; NULL is the default family.
pub(crate) fn write_to(
    db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    family: *const rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
    body: impl FnOnce(&TransactionDb, &FamilyHandle, &WriteOptions) -> Result<()>,
) {
    call(errptr, (), || {
        let db = shared(db)?;
        body(&db.db, db.family(family)?, &shared(options)?.write)
    });
}

lifecycle!(
    rocksdb_transactiondb_options_t,
    rocksdb_transactiondb_options_create,
    rocksdb_transactiondb_options_destroy
);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_open(
    options: *const rocksdb_options_t,
    txn_db_options: *const rocksdb_transactiondb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_transactiondb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::default_only(options)?;
        let transactions = shared(txn_db_options)?.options.clone();
        let db =
            TransactionDb::open_families(path(name)?, named.options, named.families, transactions)?;
        Ok(give(rocksdb_transactiondb_t::new(db)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_open_column_families(
    options: *const rocksdb_options_t,
    txn_db_options: *const rocksdb_transactiondb_options_t,
    name: *const c_char,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    column_family_options: *const *const rocksdb_options_t,
    column_family_handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_transactiondb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::listed(
            options,
            num_column_families,
            column_family_names,
            column_family_options,
        )?;
        let transactions = shared(txn_db_options)?.options.clone();
        let families = named.families.clone();
        let db = TransactionDb::open_families(path(name)?, named.options, families, transactions)?;
        hand_out(db.base(), &named.families, column_family_handles)?;
        Ok(give(rocksdb_transactiondb_t::new(db)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_create_column_family(
    txn_db: *mut rocksdb_transactiondb_t,
    column_family_options: *const rocksdb_options_t,
    column_family_name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_column_family_handle_t {
    call(errptr, ptr::null_mut(), || {
        let options = shared(column_family_options)?.options.family.clone();
        let family = shared(txn_db)?
            .db
            .create_family(text(column_family_name)?, options)?;
        Ok(give(rocksdb_column_family_handle_t::new(family)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_close(txn_db: *mut rocksdb_transactiondb_t) {
    quiet((), || {
        if let Some(handle) = owned(txn_db) {
            handle.base.unlist();
            close_now(handle.db.base());
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_get_base_db(
    txn_db: *mut rocksdb_transactiondb_t,
) -> *mut rocksdb_t {
    attempt(ptr::null_mut(), || {
        Ok(give(rocksdb_t::base_of(shared(txn_db)?.db.base().clone())))
    })
}

/// Gives the handle back; the database stays open.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_close_base_db(base_db: *mut rocksdb_t) {
    quiet((), || crate::db::close(base_db));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_property_value(
    db: *mut rocksdb_transactiondb_t,
    propname: *const c_char,
) -> *mut c_char {
    rocksdb_property_value(db.cast(), propname)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_property_int(
    db: *mut rocksdb_transactiondb_t,
    propname: *const c_char,
    out_val: *mut u64,
) -> c_int {
    rocksdb_property_int(db.cast(), propname, out_val)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_create_snapshot(
    txn_db: *mut rocksdb_transactiondb_t,
) -> *const rocksdb_snapshot_t {
    rocksdb_create_snapshot(txn_db.cast())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_release_snapshot(
    _txn_db: *mut rocksdb_transactiondb_t,
    snapshot: *const rocksdb_snapshot_t,
) {
    release(snapshot);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_get_prepared_transactions(
    txn_db: *mut rocksdb_transactiondb_t,
    cnt: *mut usize,
) -> *mut *mut rocksdb_transaction_t {
    put(cnt, 0);
    attempt(ptr::null_mut(), || {
        // Each is given out once; RocksDB gives the same pointer each time.
        let found = shared(txn_db)?.db.prepared_transactions()?;
        let handles: Vec<_> = found
            .into_iter()
            .map(|txn| give(rocksdb_transaction_t::new(txn)))
            .collect();
        put(cnt, handles.len());
        Ok(if handles.is_empty() {
            ptr::null_mut()
        } else {
            malloc_array(&handles)
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_get(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    klen: usize,
    vlen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    rocksdb_get(txn_db.cast(), options, key, klen, vlen, errptr)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_get_pinned(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    klen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    rocksdb_get_pinned(txn_db.cast(), options, key, klen, errptr)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_multi_get(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_readoptions_t,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    rocksdb_multi_get(
        txn_db.cast(),
        options,
        num_keys,
        keys_list,
        keys_list_sizes,
        values_list,
        values_list_sizes,
        errs,
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_put(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        txn_db,
        options,
        ptr::null(),
        errptr,
        |db, family, options| db.put_opt(family, bytes(key, klen), bytes(val, vlen), options),
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_merge(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        txn_db,
        options,
        ptr::null(),
        errptr,
        |db, family, options| db.merge_opt(family, bytes(key, klen), bytes(val, vlen), options),
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_delete(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    klen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        txn_db,
        options,
        ptr::null(),
        errptr,
        |db, family, options| db.delete_opt(family, bytes(key, klen), options),
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_flush(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_flushoptions_t,
    errptr: *mut *mut c_char,
) {
    rocksdb_flush(txn_db.cast(), options, errptr);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_create_iterator(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    rocksdb_create_iterator(txn_db.cast(), options)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_get_cf(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    vlen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vlen, 0);
        let (db, options) = (shared(txn_db)?, shared(options)?);
        let found = options.get(db.db.base(), db.family(column_family)?, key, keylen)?;
        Ok(copied(found, vlen))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_get_pinned_cf(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        let (db, options) = (shared(txn_db)?, shared(options)?);
        let found = options.get(db.db.base(), db.family(column_family)?, key, keylen)?;
        Ok(pinned(found))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_multi_get_cf(
    txn_db: *mut rocksdb_transactiondb_t,
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
        let (db, options) = (shared(txn_db)?, shared(options)?);
        let keys = keys(keys_list, keys_list_sizes, num_keys);
        let families = many(column_families, num_keys);
        let mut wanted = Vec::with_capacity(keys.len());
        for (i, key) in keys.iter().enumerate() {
            let family = families.get(i).copied().unwrap_or(ptr::null());
            wanted.push((db.family(family)?, *key));
        }
        let snapshot = options.snapshot.as_ref();
        Ok(db
            .db
            .base()
            .multi_get_families(&wanted, &options.read, snapshot))
    });
    store_all(answers, values_list, values_list_sizes, errs);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_put_cf(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vlen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        txn_db,
        options,
        column_family,
        errptr,
        |db, family, options| db.put_opt(family, bytes(key, keylen), bytes(val, vlen), options),
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_merge_cf(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vlen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        txn_db,
        options,
        column_family,
        errptr,
        |db, family, options| db.merge_opt(family, bytes(key, keylen), bytes(val, vlen), options),
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_delete_cf(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        txn_db,
        options,
        column_family,
        errptr,
        |db, family, options| db.delete_opt(family, bytes(key, keylen), options),
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_flush_cf(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_flushoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let db = shared(txn_db)?;
        db.db
            .base()
            .flush_cf(db.family(column_family)?, &shared(options)?.flush)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_create_iterator_cf(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_iterator_t {
    attempt(ptr::null_mut(), || {
        let db = shared(txn_db)?;
        let family = db.family(column_family)?;
        Ok(give(shared(options)?.iterator(db.db.base(), family)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_flush_cfs(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_flushoptions_t,
    column_families: *mut *mut rocksdb_column_family_handle_t,
    num_column_families: c_int,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, flush) = (shared(txn_db)?, &shared(options)?.flush);
        let count = usize::try_from(num_column_families).unwrap_or(0);
        many(column_families.cast_const(), count)
            .iter()
            .try_for_each(|f| db.db.base().flush_cf(db.family(*f)?, flush))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_flush_wal(
    txn_db: *mut rocksdb_transactiondb_t,
    sync: c_uchar,
    errptr: *mut *mut c_char,
) {
    rocksdb_flush_wal(txn_db.cast(), sync, errptr);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_write(
    db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    batch: *mut rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let batch = exclusive(batch)?;
        batch.check()?;
        shared(db)?
            .db
            .write(&mut batch.batch, &shared(options)?.write)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_flush_wal_with_options(
    txn_db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_flushwaloptions_t,
    errptr: *mut *mut c_char,
) {
    rocksdb_flush_wal_with_options(txn_db.cast(), options, errptr);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transactiondb_checkpoint_object_create(
    txn_db: *mut rocksdb_transactiondb_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_checkpoint_t {
    rocksdb_checkpoint_object_create(txn_db.cast(), errptr)
}
