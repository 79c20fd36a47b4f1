//! Filters of the log: what recovery tells them, and what they answer.

use crate::common::told;
use crate::values::filter_name;
use crate::{State, all_keys, at, destructor, get, open, options, put, set, slice, state};
use rocksdb::*;
use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::SeqCst;

pub(crate) unsafe extern "C" fn told_families(
    pointer: *mut c_void,
    _ids: *const u32,
    _logs: *const u64,
    count: usize,
    names: *const *const c_char,
    lengths: *const usize,
    _name_ids: *const u32,
    name_count: usize,
) {
    assert_eq!((count, name_count), (1, 1));
    // SAFETY: one of each is there.
    let name = unsafe { slice(*names, *lengths) };
    state(pointer).note(String::from_utf8_lossy(name).into_owned());
}

/// The first record is ignored, the second replaced, the fourth ends replay.
pub(crate) unsafe extern "C" fn told_record(
    pointer: *mut c_void,
    _number: std::ffi::c_ulonglong,
    file: *const c_char,
    file_len: usize,
    batch: *const rocksdb_writebatch_t,
    new: *mut rocksdb_writebatch_t,
    changed: *mut c_uchar,
) -> c_int {
    assert!(slice(file, file_len).ends_with(b".log"));
    assert_eq!(rocksdb_writebatch_count(batch.cast_mut()), 1);
    match state(pointer).calls.fetch_add(1, SeqCst) {
        0 => rocksdb_wal_filter_ignore_current_record as c_int,
        1 => {
            rocksdb_writebatch_put(new, at("k2"), 2, at("other"), 5);
            set(changed, 1);
            rocksdb_wal_filter_continue_processing as c_int
        }
        2 => rocksdb_wal_filter_continue_processing as c_int,
        _ => rocksdb_wal_filter_stop_replay as c_int,
    }
}

pub(crate) unsafe extern "C" fn damaged_record(
    _: *mut c_void,
    _number: std::ffi::c_ulonglong,
    _file: *const c_char,
    _file_len: usize,
    _batch: *const rocksdb_writebatch_t,
    _new: *mut rocksdb_writebatch_t,
    _changed: *mut c_uchar,
) -> c_int {
    rocksdb_wal_filter_corrupted_record as c_int
}

#[test]
fn a_filter_of_the_log_ignores_replaces_and_stops() {
    let dir = tempfile::tempdir().expect("a directory");
    let opts = options();
    // What the filter is asked about must still be in the log.
    rocksdb_options_set_avoid_flush_during_shutdown(opts, 1);
    let db = open(opts, dir.path());
    for key in ["k1", "k2", "k3", "k4", "k5"] {
        put(db, key, key);
    }
    rocksdb_close(db);
    let own = State::new();

    // Point-in-time recovery, the default, would open with what lies before the record.
    rocksdb_options_set_wal_recovery_mode(opts, rocksdb_absolute_consistency_recovery);
    let damaged = rocksdb_walfilter_create(own.pointer(), None, None, Some(damaged_record), None);
    rocksdb_options_set_wal_filter(opts, damaged);
    let path = CString::new(dir.path().to_str().expect("UTF-8")).expect("no NUL");
    let mut error = null_mut();
    assert!(rocksdb_open(opts, path.as_ptr(), &mut error).is_null());
    let text = told(error).expect("an error");
    assert!(text.starts_with("Corruption: "), "{text}");
    rocksdb_walfilter_destroy(damaged);

    let filter = rocksdb_walfilter_create(
        own.pointer(),
        Some(destructor),
        Some(told_families),
        Some(told_record),
        Some(filter_name),
    );
    rocksdb_options_set_wal_filter(opts, filter);
    let db = open(opts, dir.path());
    assert_eq!(own.lines(), ["default"]);
    assert_eq!(own.calls(), 4);
    assert_eq!(get(db, "k1"), None);
    assert_eq!(get(db, "k2").as_deref(), Some("other"));
    assert_eq!(get(db, "k3").as_deref(), Some("k3"));
    assert_eq!((get(db, "k4"), get(db, "k5")), (None, None));
    put(db, "k6", "v");
    rocksdb_close(db);
    rocksdb_options_clear_wal_filter(opts);
    rocksdb_walfilter_destroy(filter);
    assert_eq!(own.destroyed(), 1);
    let db = open(opts, dir.path());
    assert_eq!(all_keys(db), ["k2", "k3", "k6"]);
    rocksdb_close(db);
    rocksdb_options_destroy(opts);
}
