//! Esker's additions to the C interface: what each does, and that NULL is an error.

mod common;
#[path = "common/place.rs"]
mod place;

use common::{fine, told};
use place::Place;
use rocksdb::*;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// Runs `call`, which must report an invalid argument.
fn invalid<R>(call: impl FnOnce(*mut *mut c_char) -> R) {
    let mut error = null_mut();
    call(&mut error);
    let text = told(error).expect("an error");
    assert!(text.starts_with("Invalid argument: "), "{text}");
    assert_eq!(esker_last_error_code(), 4);
}

fn at(s: &str) -> *const c_char {
    s.as_ptr().cast()
}

fn c(s: &str) -> CString {
    CString::new(s).expect("no NUL")
}

fn option(options: *const rocksdb_options_t, part: c_int, name: &str) -> String {
    let value = fine(|e| esker_options_get(options, part, c(name).as_ptr(), e));
    // SAFETY: it is text.
    let text = unsafe { CStr::from_ptr(value) }
        .to_str()
        .expect("UTF-8")
        .to_owned();
    rocksdb_free(value.cast());
    text
}

fn set(options: *mut rocksdb_options_t, part: c_int, name: &str, value: &str) {
    fine(|e| esker_options_set(options, part, c(name).as_ptr(), c(value).as_ptr(), e));
}

const DB: c_int = esker_options_of_database;
const FAMILY: c_int = esker_options_of_family;
const TABLE: c_int = esker_options_of_table;

#[test]
fn null_is_an_invalid_argument() {
    let name = c"write_buffer_size".as_ptr();
    invalid(|e| esker_options_set(null_mut(), FAMILY, name, name, e));
    invalid(|e| esker_options_get(null(), FAMILY, name, e));
    invalid(|e| esker_current_options(null_mut(), null(), e));
    invalid(|e| esker_compact_range_cf(null_mut(), null(), null(), null(), 0, null(), 0, e));
    invalid(|e| esker_map_property_cf(null_mut(), null(), name, null_mut(), None, e));
    invalid(|e| esker_resume(null_mut(), e));
    invalid(|e| esker_backup_engine_delete_backup(null_mut(), 1, e));
    invalid(|e| esker_transaction_single_delete_cf(null_mut(), null(), name, 1, e));
    invalid(|e| esker_transaction_undo_get_for_update_cf(null_mut(), null(), name, 1, e));
    invalid(|e| esker_transaction_pop_savepoint(null_mut(), e));
    invalid(|e| esker_transaction_set_snapshot(null_mut(), e));
    invalid(|e| esker_transaction_set_snapshot_on_next_operation(null_mut(), e));
    invalid(|e| esker_transaction_clear_snapshot(null_mut(), e));
    invalid(|e| esker_transaction_set_lock_timeout(null_mut(), 1, e));
    invalid(|e| esker_transactiondb_single_delete_cf(null_mut(), null(), null(), name, 1, e));
    esker_options_share_statistics(null_mut(), null());
    esker_options_reset_statistics(null_mut());
    assert_eq!(esker_options_take_ticker(null_mut(), 0), 0);
    let none = null_mut();
    invalid(|e| {
        let state = null_mut();
        esker_transactiondb_options_set_lock_waits(none, state, None, None, None, None, None, e);
    });
    invalid(|e| esker_transactiondb_each_lock(null(), null_mut(), None, e));
    invalid(|e| esker_transactiondb_each_deadlock(null(), null_mut(), None, e));
    invalid(|e| esker_transactiondb_waiting_for(null(), 1, null_mut(), None, e));
    invalid(|e| esker_transactiondb_set_max_deadlocks(null(), 1, e));
    invalid(|e| esker_transaction_get_for_update_cf(null_mut(), null(), null(), name, 1, 1, 1, e));
    assert!(esker_transaction_commit_time_batch(null_mut()).is_null());
    assert_eq!(esker_transaction_id(null()), 0);
    assert_eq!(esker_transaction_state(null()), -1);
    assert_eq!(esker_transaction_num_keys(null()), 0);
    assert_eq!(esker_transaction_has_snapshot(null()), 0);
    assert_eq!(esker_sst_file_metadata_being_compacted(null()), 0);
    assert_eq!(
        esker_compactionfiltercontext_column_family_id(null()),
        u32::MAX
    );
    invalid(|e| esker_writebatch_assign(null_mut(), null(), e));
    invalid(|e| esker_reset_stats(null_mut(), e));
    invalid(|e| esker_sstfilewriter_set_family(null_mut(), null(), e));
    invalid(|e| esker_writebatch_wi_pop_save_point(null_mut(), e));
    invalid(|e| {
        let (n, out) = (null(), null_mut());
        esker_approximate_memtable_stats_cf(null_mut(), null(), n, 0, n, 0, out, out, e);
    });
    esker_ratelimiter_set_bytes_per_second(null_mut(), 1);
    invalid(|e| esker_each_table_cf(null_mut(), null(), null_mut(), None, e));
    invalid(|e| {
        esker_ingest_external_files(null_mut(), null(), null(), null(), 0, null(), e);
    });
    let none = null_mut();
    invalid(|e| esker_collector_factory_create(none, None, None, None, None, None, None, None, e));
    invalid(|e| esker_transaction_change_cf(null_mut(), null(), 0, 0, name, 1, name, 1, e));
    esker_cache_set_strict_capacity_limit(null_mut(), 1);
    assert_eq!(esker_interface_version(), ESKER_INTERFACE_VERSION as u32);
}

#[test]
fn a_batch_takes_the_records_of_another() {
    let (from, to) = (rocksdb_writebatch_create(), rocksdb_writebatch_create());
    rocksdb_writebatch_put(from, at("a"), 1, at("one"), 3);
    rocksdb_writebatch_delete(from, at("b"), 1);
    rocksdb_writebatch_put(to, at("c"), 1, at("gone"), 4);
    fine(|e| esker_writebatch_assign(to, from, e));
    let data = |batch| {
        let mut size = 0;
        let bytes = rocksdb_writebatch_data(batch, &raw mut size);
        // SAFETY: the batch lends that many bytes until it changes.
        unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size).to_vec() }
    };
    assert_eq!(data(to), data(from));
    // Bytes that are no batch: the records stay, and the error is told.
    let bad = rocksdb_writebatch_create_from(at("short"), 5);
    let mut e = null_mut();
    esker_writebatch_assign(to, bad, &raw mut e);
    assert!(!e.is_null());
    rocksdb_free(e.cast());
    assert_eq!(data(to), data(from));
    rocksdb_writebatch_destroy(bad);
    rocksdb_writebatch_destroy(from);
    rocksdb_writebatch_destroy(to);
}

#[test]
fn options_are_set_and_told_by_name() {
    let options = rocksdb_options_create();
    set(options, DB, "max_background_jobs", "7");
    set(options, FAMILY, "compression_opts.level", "4");
    set(options, TABLE, "block_size", "8192");
    assert_eq!(option(options, DB, "max_background_jobs"), "7");
    assert_eq!(option(options, FAMILY, "compression_opts.level"), "4");
    assert_eq!(option(options, TABLE, "block_size"), "8192");
    let (name, value) = (c"max_background_jobs".as_ptr(), c"many".as_ptr());
    invalid(|e| esker_options_set(options, DB, name, value, e));
    invalid(|e| esker_options_set(options, FAMILY, name, c"1".as_ptr(), e));
    invalid(|e| esker_options_set(options, 9, name, c"1".as_ptr(), e));
    invalid(|e| esker_options_get(options, DB, c"compression_opts.none".as_ptr(), e));
    assert_eq!(option(options, DB, "max_background_jobs"), "7");
    rocksdb_options_destroy(options);
}

/// Notes a named value.
extern "C" fn note(
    state: *mut c_void,
    name: *const c_char,
    name_length: usize,
    value: *const c_char,
    value_length: usize,
) {
    let text = |from: *const c_char, length: usize| {
        // SAFETY: that many bytes are there.
        let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) };
        String::from_utf8(bytes.to_vec()).expect("UTF-8")
    };
    // SAFETY: the state is the map that the call was given.
    let values = unsafe { &mut *state.cast::<BTreeMap<String, String>>() };
    values.insert(text(name, name_length), text(value, value_length));
}

#[test]
fn an_open_database_tells_its_options_and_properties() {
    let p = Place::new();
    let counting = rocksdb_options_create();
    rocksdb_options_enable_statistics(counting);
    esker_options_share_statistics(p.options, counting);
    let db = fine(|e| rocksdb_open(p.options, p.path("db").as_ptr(), e));
    let family = rocksdb_get_default_column_family_handle(db);
    fine(|e| rocksdb_put(db, p.write, at("k"), 1, at("v"), 1, e));
    // NUMBER_KEYS_WRITTEN
    let ticker = (0..200).find(|t| esker_options_take_ticker(counting, *t) == 1);
    assert!(ticker.is_some(), "a counter of keys that were written");
    fine(|e| rocksdb_put(db, p.write, at("k"), 1, at("w"), 1, e));
    esker_options_reset_statistics(counting);
    assert_eq!(esker_options_take_ticker(counting, ticker.unwrap_or(0)), 0);

    let (name, value) = (c"write_buffer_size".as_ptr(), c"2097152".as_ptr());
    fine(|e| rocksdb_set_options_cf(db, family, 1, &name, &value, e));
    let now = fine(|e| esker_current_options(db, family, e));
    assert_eq!(option(now, FAMILY, "write_buffer_size"), "2097152");
    rocksdb_options_destroy(now);

    let mut values: BTreeMap<String, String> = BTreeMap::new();
    let state = (&raw mut values).cast();
    let property = c"rocksdb.cfstats".as_ptr();
    let has = fine(|e| esker_map_property_cf(db, family, property, state, Some(note), e));
    assert!(has == 1 && !values.is_empty());
    let none = c"rocksdb.none".as_ptr();
    assert_eq!(
        fine(|e| esker_map_property_cf(db, family, none, state, Some(note), e)),
        0
    );
    let how = rocksdb_compactoptions_create();
    fine(|e| esker_compact_range_cf(db, family, how, null(), 0, null(), 0, e));
    invalid(|e| esker_compact_range_cf(db, null(), how, null(), 0, null(), 0, e));
    fine(|e| esker_resume(db, e));
    rocksdb_compactoptions_destroy(how);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    invalid(|e| esker_resume(db, e));
    rocksdb_options_destroy(counting);
}

#[test]
fn the_entry_of_an_iterator_follows_it() {
    let p = Place::new();
    let db = fine(|e| rocksdb_open(p.options, p.path("db").as_ptr(), e));
    for i in 0..100 {
        let key = format!("key{i:03}");
        fine(|e| rocksdb_put(db, p.write, at(&key), 6, at(&key), i % 7, e));
    }
    let it = rocksdb_create_iterator(db, p.read);
    let entry = esker_iter_entry(it);
    let check = || {
        // SAFETY: the entry is two slices that live as long as the iterator.
        let entry = unsafe { std::slice::from_raw_parts(entry, 2) };
        let (key, value) = (rocksdb_iter_key_slice(it), rocksdb_iter_value_slice(it));
        assert_eq!((entry[0].data, entry[0].size), (key.data, key.size));
        assert_eq!((entry[1].data, entry[1].size), (value.data, value.size));
        assert_eq!(entry[0].data.is_null(), rocksdb_iter_valid(it) == 0);
        !key.data.is_null()
    };
    assert!(!check());
    rocksdb_iter_seek_to_first(it);
    // Long walks show entries ahead; both directions are walked.
    for _ in 0..60 {
        assert!(check());
        rocksdb_iter_next(it);
    }
    for _ in 0..40 {
        assert!(check());
        rocksdb_iter_prev(it);
    }
    rocksdb_iter_seek_to_last(it);
    assert!(check());
    rocksdb_iter_next(it);
    assert!(!check());
    assert_eq!(esker_iter_entry(null()), null());
    esker_iter_set_bounds(null_mut(), null(), 0, null(), 0);
    esker_iter_set_base_bounds(null_mut(), null(), 0, null(), 0);
    esker_iter_set_batch_bounds(null_mut(), null(), 0, null(), 0);
    rocksdb_iter_destroy(it);
    rocksdb_close(db);
}

/// Removes operands that begin with `x`, changes values to `new`.
extern "C" fn decide(
    _state: *mut c_void,
    _level: c_int,
    _key: *const c_char,
    _key_length: usize,
    kind: c_int,
    value: *const c_char,
    value_length: usize,
    output: *mut *const c_char,
    output_length: *mut usize,
) -> c_int {
    // SAFETY: that many bytes are there.
    let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), value_length) };
    if kind == esker_filter_merge_operand {
        return if value.starts_with(b"x") {
            esker_filter_remove
        } else {
            esker_filter_keep
        };
    }
    // SAFETY: there is room for a pointer and a length.
    unsafe {
        output.write(c"new".as_ptr());
        output_length.write(3);
    }
    esker_filter_change
}

extern "C" fn name(_state: *mut c_void) -> *const c_char {
    c"decides".as_ptr()
}

#[test]
fn a_filter_decides_about_operands_and_values() {
    let p = Place::new();
    rocksdb_options_set_uint64add_merge_operator(p.options);
    let filter = esker_compactionfilter_create(null_mut(), None, Some(decide), Some(name));
    rocksdb_options_set_compaction_filter(p.options, filter);
    rocksdb_compactionfilter_destroy(filter);
    let db = fine(|e| rocksdb_open(p.options, p.path("db").as_ptr(), e));
    let family = rocksdb_get_default_column_family_handle(db);
    fine(|e| rocksdb_put(db, p.write, at("v"), 1, at("old"), 3, e));
    fine(|e| rocksdb_merge(db, p.write, at("m"), 1, at("x1234567"), 8, e));
    let how = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(how, 2);
    fine(|e| esker_compact_range_cf(db, family, how, null(), 0, null(), 0, e));
    let get = |key: &str| {
        let mut length = 0;
        let found = fine(|e| rocksdb_get(db, p.read, at(key), key.len(), &mut length, e));
        let is_there = !found.is_null();
        rocksdb_free(found.cast());
        is_there.then_some(length)
    };
    assert_eq!((get("v"), get("m")), (Some(3), None));
    rocksdb_compactoptions_destroy(how);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
}

#[test]
fn transactions_take_snapshots_and_give_locks_back() {
    let p = Place::new();
    let how = rocksdb_transactiondb_options_create();
    let path = p.path("db");
    let db = fine(|e| rocksdb_transactiondb_open(p.options, how, path.as_ptr(), e));
    let options = rocksdb_transaction_options_create();
    let begin = || rocksdb_transaction_begin(db, p.write, options, null_mut());
    let (one, two) = (begin(), begin());
    fine(|e| esker_transaction_set_lock_timeout(two, 1, e));
    assert_ne!(esker_transaction_id(one), esker_transaction_id(two));
    assert_eq!(
        (
            esker_transaction_state(one),
            esker_transaction_has_snapshot(one)
        ),
        (0, 0)
    );
    fine(|e| esker_transaction_set_snapshot(one, e));
    assert_eq!(esker_transaction_has_snapshot(one), 1);
    fine(|e| esker_transaction_clear_snapshot(one, e));
    fine(|e| esker_transaction_set_snapshot_on_next_operation(one, e));
    assert_eq!(esker_transaction_has_snapshot(one), 0);
    fine(|e| esker_transaction_single_delete_cf(one, null(), at("k"), 1, e));
    assert_eq!(
        (
            esker_transaction_has_snapshot(one),
            esker_transaction_num_keys(one)
        ),
        (1, 1)
    );
    let mut length = 0;
    let mut lock = |txn: *mut rocksdb_transaction_t, e: *mut *mut c_char| {
        rocksdb_transaction_get_for_update(txn, p.read, at("r"), 1, &raw mut length, 1, e)
    };
    fine(|e| lock(one, e));
    let mut error = null_mut();
    esker_transaction_single_delete_cf(two, null(), at("r"), 1, &mut error);
    assert!(told(error).is_some_and(|t| t.starts_with("Operation timed out: ")));
    assert_eq!(
        (esker_last_error_code(), esker_last_error_subcode()),
        (9, 2)
    );
    fine(|e| esker_transaction_undo_get_for_update_cf(one, null(), at("r"), 1, e));
    fine(|e| esker_transaction_single_delete_cf(two, null(), at("r"), 1, e));
    rocksdb_transaction_set_savepoint(one);
    fine(|e| esker_transaction_pop_savepoint(one, e));
    let mut error = null_mut();
    esker_transaction_pop_savepoint(one, &mut error);
    assert!(told(error).is_some_and(|t| t.starts_with("NotFound: ")));
    fine(|e| rocksdb_transaction_commit(two, e));
    assert_eq!(esker_transaction_state(two), 4);
    fine(|e| esker_transactiondb_single_delete_cf(db, p.write, null(), at("r"), 1, e));
    rocksdb_transaction_destroy(one);
    rocksdb_transaction_destroy(two);
    rocksdb_transaction_options_destroy(options);
    rocksdb_transactiondb_close(db);
    rocksdb_transactiondb_options_destroy(how);
}

#[test]
fn a_commit_time_batch_comes_with_its_commit() {
    let p = Place::new();
    let how = rocksdb_transactiondb_options_create();
    let path = p.path("db");
    let db = fine(|e| rocksdb_transactiondb_open(p.options, how, path.as_ptr(), e));
    let options = rocksdb_transaction_options_create();
    let txn = rocksdb_transaction_begin(db, p.write, options, null_mut());
    let put = |batch, value: &str| {
        rocksdb_writebatch_put(batch, at("position"), 8, at(value), value.len());
    };
    let read = || {
        let mut length = 0;
        let key = at("position");
        let found = fine(|e| rocksdb_transactiondb_get(db, p.read, key, 8, &raw mut length, e));
        rocksdb_free(found.cast());
        (!found.is_null()).then_some(length)
    };
    fine(|e| rocksdb_transaction_set_name(txn, at("one"), 3, e));
    fine(|e| rocksdb_transaction_put(txn, at("row"), 3, at("1"), 1, e));
    let batch = esker_transaction_commit_time_batch(txn);
    assert_eq!(
        batch,
        esker_transaction_commit_time_batch(txn),
        "it is lent"
    );
    put(batch, "42");
    invalid(|e| rocksdb_transaction_commit(txn, e));
    assert_eq!((read(), rocksdb_writebatch_count(batch)), (None, 1));
    fine(|e| rocksdb_transaction_prepare(txn, e));
    fine(|e| rocksdb_transaction_commit(txn, e));
    assert_eq!((read(), rocksdb_writebatch_count(batch)), (Some(2), 0));
    // One that begins in the memory of another has an empty one.
    put(batch, "lost");
    let again = rocksdb_transaction_begin(db, p.write, options, txn);
    assert_eq!(again, txn);
    assert_eq!(rocksdb_writebatch_count(batch), 0);
    put(batch, "lost");
    fine(|e| rocksdb_transaction_rollback(txn, e));
    assert_eq!((read(), rocksdb_writebatch_count(batch)), (Some(2), 0));
    rocksdb_transaction_destroy(txn);
    rocksdb_transaction_options_destroy(options);
    rocksdb_transactiondb_close(db);
    rocksdb_transactiondb_options_destroy(how);
}

/// Calls of the hook of lock waits: waits that began, sleeps, ends, destructors.
#[derive(Default)]
struct Called([std::sync::atomic::AtomicUsize; 4]);

impl Called {
    fn count(state: *mut c_void, what: usize) {
        // SAFETY: the state is a `Called` that outlives the database.
        let called = unsafe { &*state.cast::<Called>() };
        called.0[what].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    fn counts(&self) -> [usize; 4] {
        [0, 1, 2, 3].map(|i| self.0[i].load(std::sync::atomic::Ordering::Relaxed))
    }
}

extern "C" fn begin_wait(state: *mut c_void) -> *mut c_void {
    Called::count(state, 0);
    state
}

extern "C" fn end_at_once(wait: *mut c_void, microseconds: i64) -> c_int {
    assert!(microseconds < 0, "it has no time limit");
    Called::count(wait, 1);
    1
}

extern "C" fn wake(_wait: *mut c_void) {}

extern "C" fn end_wait(wait: *mut c_void) {
    Called::count(wait, 2);
}

extern "C" fn destroyed(state: *mut c_void) {
    Called::count(state, 3);
}

extern "C" fn note_lock(
    state: *mut c_void,
    family: u32,
    key: *const c_char,
    key_length: usize,
    holders: *const u64,
    num_holders: usize,
    exclusive: std::ffi::c_uchar,
) {
    // SAFETY: the state is a list, and key and holders are as long as that.
    let (list, key, holders) = unsafe {
        (
            &mut *state.cast::<Vec<(String, Vec<u64>)>>(),
            std::slice::from_raw_parts(key.cast::<u8>(), key_length),
            std::slice::from_raw_parts(holders, num_holders),
        )
    };
    assert_eq!((family, exclusive), (0, 1));
    let key = String::from_utf8(key.to_vec()).expect("UTF-8");
    list.push((key, holders.to_vec()));
}

#[test]
fn the_application_carries_out_lock_waits_and_ends_them() {
    let p = Place::new();
    let called = Called::default();
    let how = rocksdb_transactiondb_options_create();
    let state = (&raw const called).cast_mut().cast();
    invalid(|e| {
        let some = Some(wake as unsafe extern "C" fn(*mut c_void));
        esker_transactiondb_options_set_lock_waits(how, state, None, None, None, some, None, e);
    });
    fine(|e| {
        esker_transactiondb_options_set_lock_waits(
            how,
            state,
            Some(destroyed),
            Some(begin_wait),
            Some(end_at_once),
            Some(wake),
            Some(end_wait),
            e,
        );
    });
    rocksdb_transactiondb_options_set_transaction_lock_timeout(how, -1);
    let path = p.path("db");
    let db = fine(|e| rocksdb_transactiondb_open(p.options, how, path.as_ptr(), e));
    rocksdb_transactiondb_options_destroy(how);
    let options = rocksdb_transaction_options_create();
    let begin = || rocksdb_transaction_begin(db, p.write, options, null_mut());
    let (one, two) = (begin(), begin());
    fine(|e| rocksdb_transaction_put(one, at("k"), 1, at("1"), 1, e));
    let mut error = null_mut();
    rocksdb_transaction_put(two, at("k"), 1, at("2"), 1, &mut error);
    assert!(told(error).is_some_and(|t| t.contains("Timeout waiting to lock key")));
    assert_eq!(
        (esker_last_error_code(), esker_last_error_subcode()),
        (9, 2)
    );
    assert_eq!(called.counts(), [1, 1, 1, 0]);
    let mut locks: Vec<(String, Vec<u64>)> = Vec::new();
    let list = (&raw mut locks).cast();
    fine(|e| esker_transactiondb_each_lock(db, list, Some(note_lock), e));
    assert_eq!(locks, [("k".to_owned(), vec![esker_transaction_id(one)])]);
    let id = esker_transaction_id(two);
    let waits = fine(|e| esker_transactiondb_waiting_for(db, id, null_mut(), None, e));
    assert_eq!(waits, 0);
    rocksdb_transaction_destroy(one);
    fine(|e| rocksdb_transaction_put(two, at("k"), 1, at("2"), 1, e));
    rocksdb_transaction_destroy(two);
    rocksdb_transaction_options_destroy(options);
    rocksdb_transactiondb_close(db);
    assert_eq!(called.counts(), [1, 1, 1, 1]);
}
