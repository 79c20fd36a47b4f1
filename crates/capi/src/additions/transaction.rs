//! Calls of transactions that RocksDB's C interface lacks.

use super::figure;
use crate::boundary::{attempt, bytes, call, exclusive, given};
use crate::pinned::pinned;
use crate::transaction::{change, for_update};
use crate::transaction_db::write_to;
use crate::*;
use esker::Error;
use esker_txn::Transaction;
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;

/// Changes a transaction in a way that cannot fail.
fn set(
    transaction: *mut rocksdb_transaction_t,
    errptr: *mut *mut c_char,
    change: impl FnOnce(&mut Transaction),
) {
    call(errptr, (), || {
        change(&mut exclusive(transaction)?.txn);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_single_delete_cf(
    transaction: *mut rocksdb_transaction_t,
    column_family: *const rocksdb_column_family_handle_t,
    key: *const c_char,
    key_length: usize,
    errptr: *mut *mut c_char,
) {
    change(transaction, column_family, errptr, |txn, family| {
        txn.single_delete_cf(family, bytes(key, key_length))
    });
}

const PUT: c_int = esker_change_put;
const MERGE: c_int = esker_change_merge;
const DELETE: c_int = esker_change_delete;
const SINGLE_DELETE: c_int = esker_change_single_delete;
const TRACKED: c_int = esker_key_tracked;
const UNTRACKED: c_int = esker_key_untracked;
const ASSUMED: c_int = esker_key_assumed;

/// A change of one key by its kind (`esker_change_*`): with a look for conflicts, without one, or
/// of a key that has to be locked already (`esker_key_*`). Deletions have no value.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_change_cf(
    transaction: *mut rocksdb_transaction_t,
    column_family: *const rocksdb_column_family_handle_t,
    kind: c_int,
    tracking: c_int,
    key: *const c_char,
    key_length: usize,
    value: *const c_char,
    value_length: usize,
    errptr: *mut *mut c_char,
) {
    change(transaction, column_family, errptr, |txn, family| {
        let (k, v) = (bytes(key, key_length), bytes(value, value_length));
        match (kind, tracking) {
            (PUT, TRACKED) => txn.put_cf(family, k, v),
            (PUT, UNTRACKED) => txn.put_untracked(family, k, v),
            (PUT, ASSUMED) => txn.put_assume_tracked(family, k, v),
            (MERGE, TRACKED) => txn.merge_cf(family, k, v),
            (MERGE, UNTRACKED) => txn.merge_untracked(family, k, v),
            (MERGE, ASSUMED) => txn.merge_assume_tracked(family, k, v),
            (DELETE, TRACKED) => txn.delete_cf(family, k),
            (DELETE, UNTRACKED) => txn.delete_untracked(family, k),
            (DELETE, ASSUMED) => txn.delete_assume_tracked(family, k),
            (SINGLE_DELETE, TRACKED) => txn.single_delete_cf(family, k),
            (SINGLE_DELETE, UNTRACKED) => txn.single_delete_untracked(family, k),
            (SINGLE_DELETE, ASSUMED) => txn.single_delete_assume_tracked(family, k),
            _ => Err(Error::invalid_argument(format!(
                "no change of kind {kind} with tracking {tracking}"
            ))),
        }
    });
}

/// Gives up one read for update: the key may change again unless something else touched it.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_undo_get_for_update_cf(
    transaction: *mut rocksdb_transaction_t,
    column_family: *const rocksdb_column_family_handle_t,
    key: *const c_char,
    key_length: usize,
    errptr: *mut *mut c_char,
) {
    change(transaction, column_family, errptr, |txn, family| {
        txn.undo_get_for_update(family, bytes(key, key_length));
        Ok(())
    });
}

/// Forgets the last save point and keeps what was done since.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_pop_savepoint(
    transaction: *mut rocksdb_transaction_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || exclusive(transaction)?.txn.pop_save_point());
}

/// Takes a new snapshot: keys that change from now on conflict.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_set_snapshot(
    transaction: *mut rocksdb_transaction_t,
    errptr: *mut *mut c_char,
) {
    set(transaction, errptr, |txn| txn.set_snapshot());
}

/// Takes a snapshot with the next write, or the next read for update.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_set_snapshot_on_next_operation(
    transaction: *mut rocksdb_transaction_t,
    errptr: *mut *mut c_char,
) {
    set(transaction, errptr, |txn| {
        txn.set_snapshot_on_next_operation()
    });
}

/// Gives the snapshot back.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_clear_snapshot(
    transaction: *mut rocksdb_transaction_t,
    errptr: *mut *mut c_char,
) {
    set(transaction, errptr, |txn| txn.clear_snapshot());
}

/// The longest wait for a lock; negative for ever.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_set_lock_timeout(
    transaction: *mut rocksdb_transaction_t,
    milliseconds: i64,
    errptr: *mut *mut c_char,
) {
    set(transaction, errptr, |txn| {
        txn.set_lock_timeout(milliseconds)
    });
}

/// A number that no other locking transaction of the process has; 0 for an optimistic one.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_id(transaction: *const rocksdb_transaction_t) -> u64 {
    figure(0, || Some(given(transaction)?.txn.id()))
}

/// RocksDB's number of the state: 0 started, 1 awaiting prepare, 2 prepared, 3 awaiting commit,
/// 4 committed, 5 awaiting rollback, 6 rolled back, 7 locks stolen; -1 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_state(transaction: *const rocksdb_transaction_t) -> c_int {
    figure(-1, || Some(given(transaction)?.txn.state() as c_int))
}

/// 1 if it has a snapshot: `rocksdb_transaction_get_snapshot` returns an object in any case.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_has_snapshot(
    transaction: *const rocksdb_transaction_t,
) -> c_uchar {
    figure(0, || {
        Some(c_uchar::from(given(transaction)?.txn.snapshot().is_some()))
    })
}

/// Its commit-time batch: the commit of a prepared transaction writes it with the transaction, in
/// one record of the log. The batch belongs to the transaction and is not destroyed; the end of the
/// transaction empties it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_commit_time_batch(
    transaction: *mut rocksdb_transaction_t,
) -> *mut rocksdb_writebatch_t {
    attempt(ptr::null_mut(), || {
        Ok(exclusive(transaction)?.commit_time_batch())
    })
}

/// As `rocksdb_transaction_get_pinned_for_update_cf`; without `validate` it is not looked at
/// whether others wrote the key since the transaction's snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_get_for_update_cf(
    transaction: *mut rocksdb_transaction_t,
    options: *const rocksdb_readoptions_t,
    column_family: *const rocksdb_column_family_handle_t,
    key: *const c_char,
    key_length: usize,
    exclusive: c_uchar,
    validate: c_uchar,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    call(errptr, ptr::null_mut(), || {
        Ok(pinned(for_update(
            transaction,
            options,
            column_family,
            bytes(key, key_length),
            (exclusive != 0, validate != 0),
        )?))
    })
}

/// Keys that it has locked or tracks.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_num_keys(transaction: *const rocksdb_transaction_t) -> u64 {
    figure(0, || Some(given(transaction)?.txn.num_keys()))
}

#[unsafe(no_mangle)]
pub extern "C" fn esker_transactiondb_single_delete_cf(
    db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *const rocksdb_column_family_handle_t,
    key: *const c_char,
    key_length: usize,
    errptr: *mut *mut c_char,
) {
    write_to(db, options, column_family, errptr, |db, family, options| {
        db.single_delete_opt(family, bytes(key, key_length), options)
    });
}
