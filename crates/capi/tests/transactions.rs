//! Indexed batches and transactions through the C functions.

mod common;
#[path = "common/place.rs"]
mod place;

use common::{fine, told};
use place::Place;
use rocksdb::*;
use std::ffi::c_char;
use std::ptr::{null, null_mut};

/// Runs `call`, which must report this error.
fn refused<R>(what: &str, call: impl FnOnce(*mut *mut c_char) -> R) {
    let mut error = null_mut();
    call(&mut error);
    assert_eq!(told(error).as_deref(), Some(what));
}

fn at(s: &str) -> *const c_char {
    s.as_ptr().cast()
}

/// A value from `malloc`, which is freed.
fn value(from: *mut c_char, len: usize) -> Option<String> {
    if from.is_null() {
        return None;
    }
    let text = string(from, len);
    rocksdb_free(from.cast());
    Some(text)
}

fn string(from: *const c_char, len: usize) -> String {
    // SAFETY: that many bytes are there.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), len) };
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn put(txn: *mut rocksdb_transaction_t, k: &str, v: &str) {
    fine(|e| rocksdb_transaction_put(txn, at(k), k.len(), at(v), v.len(), e));
}

fn get(place: &Place, txn: *mut rocksdb_transaction_t, k: &str) -> Option<String> {
    let mut len = 0;
    let found = fine(|e| rocksdb_transaction_get(txn, place.read, at(k), k.len(), &mut len, e));
    value(found, len)
}

#[test]
fn an_indexed_batch_over_a_database() {
    let p = Place::new();
    let db = fine(|e| rocksdb_open(p.options, p.path("db").as_ptr(), e));
    fine(|e| rocksdb_put(db, p.write, at("b"), 1, at("base"), 4, e));
    let batch = rocksdb_writebatch_wi_create(0, 1);
    rocksdb_writebatch_wi_put(batch, at("a"), 1, at("1"), 1);
    rocksdb_writebatch_wi_set_save_point(batch);
    rocksdb_writebatch_wi_delete(batch, at("b"), 1);
    assert_eq!(rocksdb_writebatch_wi_count(batch), 2);
    let over = |k: &str| {
        let mut len = 0;
        let found = fine(|e| {
            rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, p.read, at(k), 1, &mut len, e)
        });
        value(found, len)
    };
    assert_eq!((over("a"), over("b")), (Some("1".to_owned()), None));
    fine(|e| rocksdb_writebatch_wi_rollback_to_save_point(batch, e));
    refused("NotFound: ", |e| {
        rocksdb_writebatch_wi_rollback_to_save_point(batch, e)
    });
    assert_eq!(over("b").as_deref(), Some("base"));
    let base = rocksdb_create_iterator(db, p.read);
    let it = rocksdb_writebatch_wi_create_iterator_with_base(batch, base);
    rocksdb_iter_seek_to_last(it);
    let mut len = 0;
    let key = rocksdb_iter_key(it, &mut len);
    assert_eq!(string(key, len), "b");
    rocksdb_iter_prev(it);
    let shown = rocksdb_iter_value(it, &mut len);
    assert_eq!(string(shown, len), "1");
    refused("Not implemented: Refresh() is not supported", |e| {
        rocksdb_iter_refresh(it, e)
    });
    rocksdb_iter_destroy(it);
    let mut size = 0;
    assert!(!rocksdb_writebatch_wi_data(batch, &mut size).is_null());
    assert_eq!(size, 12 + 5);
    fine(|e| rocksdb_write_writebatch_wi(db, p.write, batch, e));
    rocksdb_writebatch_wi_destroy(batch);
    rocksdb_close(db);
}

#[test]
fn optimistic_transactions() {
    let p = Place::new();
    let db = fine(|e| rocksdb_optimistictransactiondb_open(p.options, p.path("db").as_ptr(), e));
    let base = rocksdb_optimistictransactiondb_get_base_db(db);
    let options = rocksdb_optimistictransaction_options_create();
    let begin = |old| rocksdb_optimistictransaction_begin(db, p.write, options, old);
    let txn = begin(null_mut());
    put(txn, "k", "mine");
    assert_eq!(get(&p, txn, "k").as_deref(), Some("mine"));
    fine(|e| rocksdb_put(base, p.write, at("k"), 1, at("theirs"), 6, e));
    refused("Resource busy: ", |e| rocksdb_transaction_commit(txn, e));
    fine(|e| rocksdb_transaction_rollback(txn, e));
    assert_eq!(get(&p, txn, "k").as_deref(), Some("theirs"));
    rocksdb_optimistictransaction_options_set_set_snapshot(options, 1);
    assert_eq!(begin(txn), txn);
    let snapshot = rocksdb_transaction_get_snapshot(txn);
    let seen = rocksdb_snapshot_get_sequence_number(snapshot);
    assert_eq!(seen, rocksdb_get_latest_sequence_number(base));
    fine(|e| rocksdb_put(base, p.write, at("k"), 1, at("later"), 5, e));
    rocksdb_readoptions_set_snapshot(p.read, snapshot);
    rocksdb_free(snapshot.cast_mut().cast());
    assert_eq!(get(&p, txn, "k").as_deref(), Some("theirs"));
    rocksdb_readoptions_set_snapshot(p.read, null());
    let mut len = 0;
    let found =
        fine(|e| rocksdb_transaction_get_for_update(txn, p.read, at("k"), 1, &mut len, 1, e));
    assert_eq!(value(found, len).as_deref(), Some("later"));
    refused("Resource busy: ", |e| rocksdb_transaction_commit(txn, e));
    refused(
        "Invalid argument: Two phase commit not supported for optimistic transactions.",
        |e| rocksdb_transaction_prepare(txn, e),
    );
    rocksdb_transaction_destroy(txn);
    // The snapshot went with the transaction.
    let mut held = 0;
    rocksdb_property_int(base, c"rocksdb.num-snapshots".as_ptr(), &mut held);
    assert_eq!(held, 0);
    rocksdb_optimistictransaction_options_destroy(options);
    rocksdb_optimistictransactiondb_close_base_db(base);
    rocksdb_optimistictransactiondb_close(db);
    fine(|e| rocksdb_destroy_db(p.options, p.path("db").as_ptr(), e));
}

#[test]
fn pessimistic_transactions() {
    let p = Place::new();
    let db_options = rocksdb_transactiondb_options_create();
    rocksdb_transactiondb_options_set_transaction_lock_timeout(db_options, 0);
    rocksdb_transactiondb_options_set_default_lock_timeout(db_options, 0);
    rocksdb_transactiondb_options_set_write_policy(db_options, 1);
    assert_eq!(
        rocksdb_transactiondb_options_get_write_policy(db_options),
        1
    );
    let db = fine(|e| rocksdb_transactiondb_open(p.options, db_options, p.path("db").as_ptr(), e));
    let options = rocksdb_transaction_options_create();
    let begin = |old| rocksdb_transaction_begin(db, p.write, options, old);
    let (a, b) = (begin(null_mut()), begin(null_mut()));
    put(a, "k", "1");
    let timeout = "Operation timed out: Timeout waiting to lock key";
    refused(timeout, |e| {
        rocksdb_transaction_put(b, at("k"), 1, at("2"), 1, e)
    });
    refused(timeout, |e| {
        rocksdb_transactiondb_put(db, p.write, at("k"), 1, at("3"), 1, e)
    });
    rocksdb_transaction_set_savepoint(a);
    put(a, "k2", "1");
    fine(|e| rocksdb_transaction_rollback_to_savepoint(a, e));
    put(b, "k2", "2");
    let it = rocksdb_transaction_create_iterator(b, p.read);
    rocksdb_iter_seek_to_first(it);
    let mut len = 0;
    let key = rocksdb_iter_key(it, &mut len);
    assert_eq!(string(key, len), "k2");
    rocksdb_iter_destroy(it);
    let own = rocksdb_transaction_get_writebatch_wi(b);
    assert_eq!(rocksdb_writebatch_wi_count(own), 1);
    rocksdb_writebatch_wi_put(own, at("x"), 1, at("y"), 1);
    assert_eq!(get(&p, b, "x").as_deref(), Some("y"));
    rocksdb_free(own.cast());
    fine(|e| rocksdb_transaction_set_name(a, at("name"), 4, e));
    refused("Invalid argument: Duplicate txn name name", |e| {
        rocksdb_transaction_set_name(b, at("name"), 4, e)
    });
    fine(|e| rocksdb_transaction_commit(a, e));
    fine(|e| rocksdb_transaction_commit(b, e));
    assert_eq!(begin(a), a);
    let name = rocksdb_transaction_get_name(a, &mut len);
    assert_eq!(value(name, len).as_deref(), Some(""));
    for (k, v) in [("k", Some("1")), ("k2", Some("2")), ("no", None)] {
        let found = fine(|e| rocksdb_transactiondb_get(db, p.read, at(k), k.len(), &mut len, e));
        assert_eq!(value(found, len).as_deref(), v);
    }
    let family =
        fine(|e| rocksdb_transactiondb_create_column_family(db, p.options, c"other".as_ptr(), e));
    fine(|e| rocksdb_transaction_put_cf(a, family, at("k"), 1, at("v"), 1, e));
    fine(|e| rocksdb_transaction_commit(a, e));
    let found = fine(|e| rocksdb_transactiondb_get_pinned_cf(db, p.read, family, at("k"), 1, e));
    let pinned = rocksdb_pinnableslice_value(found, &mut len);
    assert_eq!(string(pinned, len), "v");
    rocksdb_pinnableslice_destroy(found);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_transaction_destroy(a);
    rocksdb_transaction_destroy(b);
    rocksdb_transaction_options_destroy(options);
    rocksdb_transactiondb_options_destroy(db_options);
    rocksdb_transactiondb_close(db);
    fine(|e| rocksdb_destroy_db(p.options, p.path("db").as_ptr(), e));
}

#[test]
fn null_handles_are_errors() {
    let p = Place::new();
    refused(
        "Invalid argument: NULL instead of rocksdb_transaction_t",
        |e| rocksdb_transaction_commit(null_mut(), e),
    );
    rocksdb_writebatch_wi_put(null_mut(), at("k"), 1, at("v"), 1);
    assert!(rocksdb_transaction_begin(null_mut(), p.write, null(), null_mut()).is_null());
    assert!(rocksdb_transaction_create_iterator(null_mut(), p.read).is_null());
    rocksdb_transaction_destroy(null_mut());
    rocksdb_transactiondb_close(null_mut());
}
