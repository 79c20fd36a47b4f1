//! Objects that are alive when their database is closed: closing closes it all the same, the
//! directory can be opened again in the process, and what is left fails or answers, and is freed.
//!
//! `docs/lifetimes.md` lists these objects; each has its row here.

mod common;
#[path = "common/place.rs"]
mod place;

use common::{fine, told};
use place::Place;
use rocksdb::*;
use std::ffi::c_char;
use std::ptr::{null, null_mut};

const KEY: *const c_char = c"k".as_ptr();

/// The error that `call` reports, if any.
fn error<R>(call: impl FnOnce(*mut *mut c_char) -> R) -> Option<String> {
    let mut error = null_mut();
    call(&mut error);
    told(error)
}

fn refused<R>(call: impl FnOnce(*mut *mut c_char) -> R) {
    let text = error(call).expect("the database is closed");
    assert!(
        text.contains("the database is closed") || text.starts_with("Shutdown in progress"),
        "{text}"
    );
}

impl Place {
    /// The database, with one row in a table and one in the log.
    fn open(&self) -> *mut rocksdb_t {
        let db = fine(|e| rocksdb_open(self.options, self.path("db").as_ptr(), e));
        fine(|e| rocksdb_put(db, self.write, KEY, 1, c"in a table".as_ptr(), 10, e));
        let how = rocksdb_flushoptions_create();
        fine(|e| rocksdb_flush(db, how, e));
        rocksdb_flushoptions_destroy(how);
        fine(|e| rocksdb_put(db, self.write, c"l".as_ptr(), 1, c"in a log".as_ptr(), 8, e));
        db
    }

    /// The directory is free, and everything is there.
    fn check(&self) {
        let db = fine(|e| rocksdb_open(self.options, self.path("db").as_ptr(), e));
        let mut len = 0;
        let value = fine(|e| rocksdb_get(db, self.read, KEY, 1, &mut len, e));
        assert_eq!(len, 10);
        rocksdb_free(value.cast());
        rocksdb_close(db);
    }
}

#[test]
fn a_database_closes_while_a_checkpoint_object_is_alive() {
    let place = Place::new();
    let db = place.open();
    let checkpoint = fine(|e| rocksdb_checkpoint_object_create(db, e));
    let family = rocksdb_get_default_column_family_handle(db);
    rocksdb_close(db);
    place.check();
    let to = place.path("copy");
    for log_size_for_flush in [0, u64::MAX] {
        refused(|e| rocksdb_checkpoint_create(checkpoint, to.as_ptr(), log_size_for_flush, e));
    }
    refused(|e| rocksdb_checkpoint_export_column_family(checkpoint, family, to.as_ptr(), e));
    assert!(!place.dir.path().join("copy").exists());
    rocksdb_column_family_handle_destroy(family);
    rocksdb_checkpoint_object_destroy(checkpoint);
}

#[test]
fn a_database_closes_while_readers_of_it_are_alive() {
    let place = Place::new();
    let db = place.open();
    let iterator = rocksdb_create_iterator(db, place.read);
    rocksdb_iter_seek_to_first(iterator);
    let snapshot = rocksdb_create_snapshot(db);
    let pinned = fine(|e| rocksdb_get_pinned(db, place.read, KEY, 1, e));
    let updates = fine(|e| rocksdb_get_updates_since(db, 1, null(), e));
    let files = rocksdb_livefiles(db);
    let family = rocksdb_get_default_column_family_handle(db);
    let metadata = rocksdb_get_column_family_metadata(db);
    let consumers = rocksdb_memory_consumers_create();
    rocksdb_memory_consumers_add_db(consumers, db);
    rocksdb_close(db);
    place.check();

    let mut seen = 0;
    while rocksdb_iter_valid(iterator) != 0 {
        seen += 1;
        rocksdb_iter_next(iterator);
    }
    assert!(seen == 2 || error(|e| rocksdb_iter_get_error(iterator, e)).is_some());
    rocksdb_iter_destroy(iterator);
    assert!(rocksdb_snapshot_get_sequence_number(snapshot) > 0);
    rocksdb_release_snapshot(db, snapshot);
    let mut len = 0;
    rocksdb_pinnableslice_value(pinned, &mut len);
    assert_eq!(len, 10);
    rocksdb_pinnableslice_destroy(pinned);
    while rocksdb_wal_iter_valid(updates) != 0 {
        rocksdb_wal_iter_next(updates);
    }
    let _end_or_closed = error(|e| rocksdb_wal_iter_status(updates, e));
    rocksdb_wal_iter_destroy(updates);
    assert_eq!(rocksdb_livefiles_count(files), 1);
    rocksdb_livefiles_destroy(files);
    assert_eq!(rocksdb_column_family_handle_get_id(family), 0);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_column_family_metadata_destroy(metadata);
    let usage = fine(|e| rocksdb_approximate_memory_usage_create(consumers, e));
    assert_eq!(
        rocksdb_approximate_memory_usage_get_mem_table_total(usage),
        0,
        "what is closed uses no memory"
    );
    rocksdb_approximate_memory_usage_destroy(usage);
    rocksdb_memory_consumers_destroy(consumers);
}

/// Functions of one kind of transaction database.
struct Kind<T> {
    open: fn(&Place) -> *mut T,
    base: extern "C" fn(*mut T) -> *mut rocksdb_t,
    close_base: extern "C" fn(*mut rocksdb_t),
    close: extern "C" fn(*mut T),
    begin: fn(&Place, *mut T) -> *mut rocksdb_transaction_t,
    checkpoint: extern "C" fn(*mut T, *mut *mut c_char) -> *mut rocksdb_checkpoint_t,
}

fn closes_while_its_objects_are_alive<T>(kind: &Kind<T>) {
    let place = Place::new();
    rocksdb_close(place.open());
    let db = (kind.open)(&place);
    let base = (kind.base)(db);
    // A base handle that is given back closes nothing.
    (kind.close_base)((kind.base)(db));
    let txn = (kind.begin)(&place, db);
    let idle = (kind.begin)(&place, db);
    fine(|e| rocksdb_transaction_put(txn, c"t".as_ptr(), 1, c"v".as_ptr(), 1, e));
    let iterator = rocksdb_transaction_create_iterator(txn, place.read);
    rocksdb_iter_seek_to_first(iterator);
    let checkpoint = fine(|e| (kind.checkpoint)(db, e));
    fine(|e| rocksdb_put(base, place.write, c"b".as_ptr(), 1, c"v".as_ptr(), 1, e));
    (kind.close)(db);
    place.check();

    refused(|e| rocksdb_transaction_commit(txn, e));
    let mut len = 0;
    refused(|e| rocksdb_get(base, place.read, KEY, 1, &mut len, e));
    refused(|e| rocksdb_put(base, place.write, KEY, 1, KEY, 1, e));
    let to = place.path("copy");
    refused(|e| rocksdb_checkpoint_create(checkpoint, to.as_ptr(), 0, e));
    rocksdb_checkpoint_object_destroy(checkpoint);
    rocksdb_iter_destroy(iterator);
    rocksdb_transaction_destroy(txn);
    rocksdb_transaction_destroy(idle);
    (kind.close_base)(base);
    place.check();
}

#[test]
fn a_transaction_database_closes_while_its_objects_are_alive() {
    closes_while_its_objects_are_alive(&Kind {
        open: |place| {
            let how = rocksdb_transactiondb_options_create();
            let path = place.path("db");
            let db = fine(|e| rocksdb_transactiondb_open(place.options, how, path.as_ptr(), e));
            rocksdb_transactiondb_options_destroy(how);
            db
        },
        base: rocksdb_transactiondb_get_base_db,
        close_base: rocksdb_transactiondb_close_base_db,
        close: rocksdb_transactiondb_close,
        begin: |place, db| {
            let how = rocksdb_transaction_options_create();
            let txn = rocksdb_transaction_begin(db, place.write, how, null_mut());
            rocksdb_transaction_options_destroy(how);
            txn
        },
        checkpoint: rocksdb_transactiondb_checkpoint_object_create,
    });
}

#[test]
fn an_optimistic_transaction_database_closes_while_its_objects_are_alive() {
    closes_while_its_objects_are_alive(&Kind {
        open: |place| {
            let path = place.path("db");
            fine(|e| rocksdb_optimistictransactiondb_open(place.options, path.as_ptr(), e))
        },
        base: rocksdb_optimistictransactiondb_get_base_db,
        close_base: rocksdb_optimistictransactiondb_close_base_db,
        close: rocksdb_optimistictransactiondb_close,
        begin: |place, db| {
            let how = rocksdb_optimistictransaction_options_create();
            let txn = rocksdb_optimistictransaction_begin(db, place.write, how, null_mut());
            rocksdb_optimistictransaction_options_destroy(how);
            txn
        },
        checkpoint: rocksdb_optimistictransactiondb_checkpoint_object_create,
    });
}

/// The pattern of a shutdown: background work ends, the log is synced, the database closed.
#[test]
fn what_a_shutdown_does_after_it_cancelled_background_work_succeeds() {
    let place = Place::new();
    let db = place.open();
    rocksdb_cancel_all_background_work(db, 1);
    fine(|e| rocksdb_put(db, place.write, c"m".as_ptr(), 1, c"late".as_ptr(), 4, e));
    fine(|e| rocksdb_flush_wal(db, 0, e));
    fine(|e| rocksdb_flush_wal(db, 1, e));
    let family = fine(|e| rocksdb_create_column_family(db, place.options, c"late".as_ptr(), e));
    rocksdb_column_family_handle_destroy(family);
    let (name, value) = (c"write_buffer_size".as_ptr(), c"1048576".as_ptr());
    fine(|e| rocksdb_set_options(db, 1, [name].as_ptr(), [value].as_ptr(), e));
    let how = rocksdb_flushoptions_create();
    refused(|e| rocksdb_flush(db, how, e));
    rocksdb_flushoptions_destroy(how);
    let checkpoint = fine(|e| rocksdb_checkpoint_object_create(db, e));
    let to = place.path("copy");
    refused(|e| rocksdb_checkpoint_create(checkpoint, to.as_ptr(), 0, e));
    rocksdb_close(db);
    rocksdb_checkpoint_object_destroy(checkpoint);

    let mut count = 0;
    let path = place.path("db");
    let names = fine(|e| rocksdb_list_column_families(place.options, path.as_ptr(), &mut count, e));
    assert_eq!(count, 2);
    rocksdb_list_column_families_destroy(names, count);
}
