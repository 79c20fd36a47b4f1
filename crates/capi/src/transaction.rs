//! Transactions, of both kinds: they have one handle in common.

use crate::boundary::{
    attempt, bytes, call, destroy, exclusive, give, given, malloc_borrowed, malloc_bytes, put,
    quiet, shared,
};
use crate::call_options::lifecycle;
use crate::iterator::Walk;
use crate::pinned::pinned;
use crate::read::{copied, for_all, keys, store_all};
use crate::*;
use esker::{Error, FamilyHandle, ReadOptions, Result};
use esker_txn::{OptimisticTransactionOptions, Transaction, TransactionOptions};
use std::ffi::{c_char, c_uchar};
use std::ptr;

/// A transaction.
pub struct rocksdb_transaction_t {
    pub(crate) txn: Transaction,
    default: FamilyHandle,
    /// The handle on its batch, which is lent.
    batch: rocksdb_writebatch_wi_t,
    /// The handle on its commit-time batch, which is lent; NULL before that.
    at_commit: *mut rocksdb_writebatch_t,
}

impl Drop for rocksdb_transaction_t {
    fn drop(&mut self) {
        destroy(self.at_commit);
    }
}

impl rocksdb_transaction_t {
    pub(crate) fn new(txn: Transaction) -> Self {
        let default = txn.db().default_family_handle();
        let batch = rocksdb_writebatch_wi_t::new(txn.indexed_batch().clone());
        rocksdb_transaction_t {
            txn,
            default,
            batch,
            at_commit: ptr::null_mut(),
        }
    }

    /// Lends the commit-time batch.
    pub(crate) fn commit_time_batch(&mut self) -> *mut rocksdb_writebatch_t {
        if self.at_commit.is_null() {
            self.at_commit = give(rocksdb_writebatch_t::default());
        }
        self.at_commit
    }

    /// Ends the transaction; its commit-time batch is that behind the handle. What ends well
    /// empties it.
    fn end(&mut self, how: impl FnOnce(&mut Transaction) -> Result<()>) -> Result<()> {
        if self.at_commit.is_null() {
            return how(&mut self.txn);
        }
        let lent = exclusive(self.at_commit)?;
        std::mem::swap(&mut lent.batch, self.txn.commit_time_batch());
        let done = how(&mut self.txn);
        std::mem::swap(&mut lent.batch, self.txn.commit_time_batch());
        if done.is_ok() {
            lent.forget_failure();
        }
        done
    }

    /// The first error of a function that added to the commit-time batch.
    fn check_commit_time_batch(&self) -> Result<()> {
        given(self.at_commit).map_or(Ok(()), rocksdb_writebatch_t::check)
    }

    /// The family behind a handle, which must belong to the transaction's database; the default
    /// family for NULL.
    fn family(&self, family: *const rocksdb_column_family_handle_t) -> Result<&FamilyHandle> {
        if family.is_null() {
            return Ok(&self.default);
        }
        let family = &shared(family)?.family;
        if !self.txn.db().owns(family) {
            return Err(Error::invalid_argument(format!(
                "column family {} belongs to another database",
                family.name()
            )));
        }
        Ok(family)
    }
}

/// How a transaction begins in a database that locks.
#[derive(Default)]
pub struct rocksdb_transaction_options_t {
    pub(crate) options: TransactionOptions,
}

/// How a transaction begins in a database that looks for conflicts when it commits.
#[derive(Default)]
pub struct rocksdb_optimistictransaction_options_t {
    pub(crate) options: OptimisticTransactionOptions,
}

/// Changes the transaction in one family; NULL is the default family.
pub(crate) fn change(
    txn: *mut rocksdb_transaction_t,
    family: *const rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
    body: impl FnOnce(&mut Transaction, &FamilyHandle) -> Result<()>,
) {
    call(errptr, (), || {
        let handle = exclusive(txn)?;
        let family = handle.family(family)?.clone();
        body(&mut handle.txn, &family)
    });
}

/// Keys of many families, one for each key; NULL for the default family.
fn in_families<'k>(
    txn: &rocksdb_transaction_t,
    families: *const *const rocksdb_column_family_handle_t,
    keys: &[&'k [u8]],
) -> Result<Vec<(FamilyHandle, &'k [u8])>> {
    let families = crate::boundary::many(families, keys.len());
    keys.iter()
        .enumerate()
        .map(|(i, key)| {
            let family = families.get(i).copied().unwrap_or(ptr::null());
            Ok((txn.family(family)?.clone(), *key))
        })
        .collect()
}

lifecycle!(
    rocksdb_transaction_options_t,
    rocksdb_transaction_options_create,
    rocksdb_transaction_options_destroy
);

lifecycle!(
    rocksdb_optimistictransaction_options_t,
    rocksdb_optimistictransaction_options_create,
    rocksdb_optimistictransaction_options_destroy
);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_begin(
    txn_db: *mut rocksdb_transactiondb_t,
    write_options: *const rocksdb_writeoptions_t,
    txn_options: *const rocksdb_transaction_options_t,
    old_txn: *mut rocksdb_transaction_t,
) -> *mut rocksdb_transaction_t {
    attempt(ptr::null_mut(), || {
        let db = &shared(txn_db)?.db;
        let (write, options) = (shared(write_options)?.write, &shared(txn_options)?.options);
        if old_txn.is_null() {
            return Ok(give(rocksdb_transaction_t::new(
                db.begin_opt(write, options),
            )));
        }
        let old = exclusive(old_txn)?;
        old.end(|txn| {
            db.begin_again(txn, write, options);
            Ok(())
        })?;
        old.default = old.txn.db().default_family_handle();
        Ok(old_txn)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransaction_begin(
    otxn_db: *mut rocksdb_optimistictransactiondb_t,
    write_options: *const rocksdb_writeoptions_t,
    otxn_options: *const rocksdb_optimistictransaction_options_t,
    old_txn: *mut rocksdb_transaction_t,
) -> *mut rocksdb_transaction_t {
    attempt(ptr::null_mut(), || {
        let db = &shared(otxn_db)?.db;
        let (write, options) = (shared(write_options)?.write, shared(otxn_options)?.options);
        if old_txn.is_null() {
            return Ok(give(rocksdb_transaction_t::new(
                db.begin_opt(write, options),
            )));
        }
        let old = exclusive(old_txn)?;
        old.end(|txn| {
            db.begin_again(txn, write, options);
            Ok(())
        })?;
        old.default = old.txn.db().default_family_handle();
        Ok(old_txn)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_destroy(txn: *mut rocksdb_transaction_t) {
    destroy(txn);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_set_name(
    txn: *mut rocksdb_transaction_t,
    name: *const c_char,
    name_len: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        exclusive(txn)?.txn.set_name(bytes(name, name_len))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_name(
    txn: *mut rocksdb_transaction_t,
    name_len: *mut usize,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        let name = shared(txn)?.txn.name();
        put(name_len, name.len());
        Ok(malloc_bytes(name))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_prepare(
    txn: *mut rocksdb_transaction_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || exclusive(txn)?.txn.prepare());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_commit(
    txn: *mut rocksdb_transaction_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let handle = exclusive(txn)?;
        handle.check_commit_time_batch()?;
        handle.end(Transaction::commit)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_rollback(
    txn: *mut rocksdb_transaction_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || exclusive(txn)?.end(Transaction::rollback));
}

/// RocksDB's function tells no error, and neither does this: the commit will.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_set_commit_timestamp(
    txn: *mut rocksdb_transaction_t,
    commit_timestamp: u64,
) {
    attempt((), || {
        exclusive(txn)?.txn.set_commit_timestamp(commit_timestamp)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_set_read_timestamp_for_validation(
    txn: *mut rocksdb_transaction_t,
    read_timestamp: u64,
) {
    attempt((), || {
        exclusive(txn)?
            .txn
            .set_read_timestamp_for_validation(read_timestamp)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_set_savepoint(txn: *mut rocksdb_transaction_t) {
    attempt((), || {
        exclusive(txn)?.txn.set_save_point();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_rollback_to_savepoint(
    txn: *mut rocksdb_transaction_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || exclusive(txn)?.txn.rollback_to_save_point());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_put(
    txn: *mut rocksdb_transaction_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
    errptr: *mut *mut c_char,
) {
    change(txn, ptr::null(), errptr, |txn, family| {
        txn.put_cf(family, bytes(key, klen), bytes(val, vlen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_put_cf(
    txn: *mut rocksdb_transaction_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
    errptr: *mut *mut c_char,
) {
    change(txn, column_family, errptr, |txn, family| {
        txn.put_cf(family, bytes(key, klen), bytes(val, vlen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_merge(
    txn: *mut rocksdb_transaction_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
    errptr: *mut *mut c_char,
) {
    change(txn, ptr::null(), errptr, |txn, family| {
        txn.merge_cf(family, bytes(key, klen), bytes(val, vlen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_merge_cf(
    txn: *mut rocksdb_transaction_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
    errptr: *mut *mut c_char,
) {
    change(txn, column_family, errptr, |txn, family| {
        txn.merge_cf(family, bytes(key, klen), bytes(val, vlen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_delete(
    txn: *mut rocksdb_transaction_t,
    key: *const c_char,
    klen: usize,
    errptr: *mut *mut c_char,
) {
    change(txn, ptr::null(), errptr, |txn, family| {
        txn.delete_cf(family, bytes(key, klen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_delete_cf(
    txn: *mut rocksdb_transaction_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    errptr: *mut *mut c_char,
) {
    change(txn, column_family, errptr, |txn, family| {
        txn.delete_cf(family, bytes(key, klen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_put_log_data(
    txn: *mut rocksdb_transaction_t,
    blob: *const c_char,
    len: usize,
) {
    attempt((), || exclusive(txn)?.txn.log_data(bytes(blob, len)));
}

/// A handle on the transaction's own batch, to be given back to `free`, and good for as long as the
/// transaction is.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_writebatch_wi(
    txn: *mut rocksdb_transaction_t,
) -> *mut rocksdb_writebatch_wi_t {
    attempt(ptr::null_mut(), || Ok(malloc_borrowed(&shared(txn)?.batch)))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_rebuild_from_writebatch(
    txn: *mut rocksdb_transaction_t,
    writebatch: *mut rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let batch = shared(writebatch)?;
        batch.check()?;
        exclusive(txn)?.txn.rebuild_from_batch(&batch.batch)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_rebuild_from_writebatch_wi(
    txn: *mut rocksdb_transaction_t,
    wi: *mut rocksdb_writebatch_wi_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let batch = shared(wi)?.0.batch.to_batch();
        exclusive(txn)?.txn.rebuild_from_batch(&batch)
    });
}

/// A handle to be given back to `free`, which is good for as long as the transaction has its
/// snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_snapshot(
    txn: *mut rocksdb_transaction_t,
) -> *const rocksdb_snapshot_t {
    attempt(ptr::null(), || {
        let snapshot = shared(txn)?.txn.snapshot().cloned();
        let handle = rocksdb_snapshot_t { snapshot };
        Ok(malloc_borrowed(&handle).cast_const())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    klen: usize,
    vlen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vlen, 0);
        let (txn, options) = (shared(txn)?, shared(options)?);
        let family = txn.family(ptr::null())?;
        let (key, snapshot) = (bytes(key, klen), options.snapshot.as_ref());
        Ok(copied(
            txn.txn.get_opt(family, key, &options.read, snapshot)?,
            vlen,
        ))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_pinned(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    klen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        let (txn, options) = (shared(txn)?, shared(options)?);
        let family = txn.family(ptr::null())?;
        let (key, snapshot) = (bytes(key, klen), options.snapshot.as_ref());
        Ok(pinned(txn.txn.get_opt(
            family,
            key,
            &options.read,
            snapshot,
        )?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_for_update(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    klen: usize,
    vlen: *mut usize,
    exclusive_lock: c_uchar,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vlen, 0);
        let how = (exclusive_lock != 0, true);
        let found = for_update(txn, options, ptr::null(), bytes(key, klen), how)?;
        Ok(copied(found, vlen))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_pinned_for_update(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    klen: usize,
    exclusive_lock: c_uchar,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        Ok(pinned(for_update(
            txn,
            options,
            ptr::null(),
            bytes(key, klen),
            (exclusive_lock != 0, true),
        )?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_multi_get(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    let answers = for_all(num_keys, || {
        let (txn, options) = (shared(txn)?, shared(options)?);
        let keys = keys(keys_list, keys_list_sizes, num_keys);
        let wanted = in_families(txn, ptr::null(), &keys)?;
        let wanted: Vec<_> = wanted.iter().map(|(f, k)| (f, *k)).collect();
        let snapshot = options.snapshot.as_ref();
        Ok(txn.txn.multi_get_opt(&wanted, &options.read, snapshot))
    });
    store_all(answers, values_list, values_list_sizes, errs);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_multi_get_for_update(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    let answers = for_all(num_keys, || {
        let (txn, options) = (exclusive(txn)?, shared(options)?);
        let keys = keys(keys_list, keys_list_sizes, num_keys);
        let wanted = in_families(txn, ptr::null(), &keys)?;
        let wanted: Vec<_> = wanted.iter().map(|(f, k)| (f, *k)).collect();
        let snapshot = options.snapshot.as_ref();
        let txn = &mut txn.txn;
        Ok(txn.multi_get_for_update_opt(&wanted, &options.read, snapshot))
    });
    store_all(answers, values_list, values_list_sizes, errs);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_create_iterator(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    attempt(ptr::null_mut(), || {
        let (txn, options) = (shared(txn)?, shared(options)?);
        let family = txn.family(ptr::null())?;
        let read: ReadOptions = options.read.clone();
        let merged = txn.txn.iter_opt(family, read, options.snapshot.as_ref());
        let iterator = Walk::Merged(Box::new(merged));
        Ok(give(rocksdb_iterator_t::from(iterator)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_cf(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    vlen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vlen, 0);
        let (txn, options) = (shared(txn)?, shared(options)?);
        let family = txn.family(column_family)?;
        let (key, snapshot) = (bytes(key, klen), options.snapshot.as_ref());
        Ok(copied(
            txn.txn.get_opt(family, key, &options.read, snapshot)?,
            vlen,
        ))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_pinned_cf(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        let (txn, options) = (shared(txn)?, shared(options)?);
        let family = txn.family(column_family)?;
        let (key, snapshot) = (bytes(key, klen), options.snapshot.as_ref());
        Ok(pinned(txn.txn.get_opt(
            family,
            key,
            &options.read,
            snapshot,
        )?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_for_update_cf(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    vlen: *mut usize,
    exclusive_lock: c_uchar,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(vlen, 0);
        let found = for_update(
            txn,
            options,
            column_family,
            bytes(key, klen),
            (exclusive_lock != 0, true),
        )?;
        Ok(copied(found, vlen))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_get_pinned_for_update_cf(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    exclusive_lock: c_uchar,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        Ok(pinned(for_update(
            txn,
            options,
            column_family,
            bytes(key, klen),
            (exclusive_lock != 0, true),
        )?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_multi_get_cf(
    txn: *mut rocksdb_transaction_t,
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
        let (txn, options) = (shared(txn)?, shared(options)?);
        let keys = keys(keys_list, keys_list_sizes, num_keys);
        let wanted = in_families(txn, column_families, &keys)?;
        let wanted: Vec<_> = wanted.iter().map(|(f, k)| (f, *k)).collect();
        let snapshot = options.snapshot.as_ref();
        Ok(txn.txn.multi_get_opt(&wanted, &options.read, snapshot))
    });
    store_all(answers, values_list, values_list_sizes, errs);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_multi_get_for_update_cf(
    txn: *mut rocksdb_transaction_t,
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
        let (txn, options) = (exclusive(txn)?, shared(options)?);
        let keys = keys(keys_list, keys_list_sizes, num_keys);
        let wanted = in_families(txn, column_families, &keys)?;
        let wanted: Vec<_> = wanted.iter().map(|(f, k)| (f, *k)).collect();
        let snapshot = options.snapshot.as_ref();
        let txn = &mut txn.txn;
        Ok(txn.multi_get_for_update_opt(&wanted, &options.read, snapshot))
    });
    store_all(answers, values_list, values_list_sizes, errs);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_transaction_create_iterator_cf(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_iterator_t {
    attempt(ptr::null_mut(), || {
        let (txn, options) = (shared(txn)?, shared(options)?);
        let family = txn.family(column_family)?;
        let read: ReadOptions = options.read.clone();
        let merged = txn.txn.iter_opt(family, read, options.snapshot.as_ref());
        let iterator = Walk::Merged(Box::new(merged));
        Ok(give(rocksdb_iterator_t::from(iterator)))
    })
}

/// Locks or tracks a key, and reads it; with an exclusive lock or not, and validating or not.
pub(crate) fn for_update(
    txn: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    family: *const rocksdb_column_family_handle_t,
    key: &[u8],
    (is_exclusive, validate): (bool, bool),
) -> Result<Option<esker::PinnedValue>> {
    let (handle, options) = (exclusive(txn)?, shared(options)?);
    let family = handle.family(family)?.clone();
    let (read, snapshot) = (&options.read, options.snapshot.as_ref());
    handle
        .txn
        .get_for_update_opt(&family, key, read, snapshot, is_exclusive, validate)
}
