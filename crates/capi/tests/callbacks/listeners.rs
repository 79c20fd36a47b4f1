//! Loggers and listeners of the application.

use crate::common::fine;
use crate::{State, compact, destructor, flush, get, open, options, put, slice, state};
use rocksdb::*;
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::ptr::{null, null_mut};

pub(crate) unsafe extern "C" fn log(
    pointer: *mut c_void,
    level: c_uint,
    line: *mut c_char,
    len: usize,
) {
    let text = String::from_utf8_lossy(slice(line, len)).into_owned();
    // SAFETY: a NUL follows.
    assert_eq!(unsafe { CStr::from_ptr(line) }.to_bytes().len(), len);
    state(pointer).note(format!("{level} {text}"));
}

#[test]
fn a_logger_takes_the_place_of_the_log_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let own = State::new();
    let logger = rocksdb_logger_create_callback_logger(1, Some(log), own.pointer());
    let opts = options();
    rocksdb_options_set_info_log(opts, logger);
    rocksdb_logger_destroy(logger);
    let again = rocksdb_options_get_info_log(opts);
    assert!(!again.is_null());
    rocksdb_logger_destroy(again);
    let db = open(opts, dir.path());
    put(db, "k", "v");
    flush(db);
    rocksdb_close(db);
    rocksdb_options_destroy(opts);
    let lines = own.lines();
    assert!(
        lines.iter().any(|l| l.contains("flush_started")),
        "{lines:?}"
    );
    let is_version = |l: &&String| l.contains("RocksDB version:");
    let version = lines.iter().find(is_version).expect("the version");
    assert!(version.starts_with("1 "), "{version}");
    assert!(!lines.iter().any(|l| l.starts_with("5 ")), "{lines:?}");
    assert!(!lines.iter().any(|l| l.starts_with("0 ")), "{lines:?}");
    assert!(!dir.path().join("LOG").exists());
    let stderr = rocksdb_logger_create_stderr_logger(4, c"test".as_ptr());
    rocksdb_logger_destroy(stderr);
    rocksdb_logger_destroy(rocksdb_logger_create_stderr_logger(1, null()));
    rocksdb_logger_destroy(null_mut());
}

pub(crate) fn name_of(
    read: extern "C" fn(*const rocksdb_flushjobinfo_t, *mut usize) -> *const c_char,
    info: *const rocksdb_flushjobinfo_t,
) -> String {
    let mut len = 0;
    let text = read(info, &mut len);
    String::from_utf8_lossy(slice(text, len)).into_owned()
}

pub(crate) unsafe extern "C" fn flush_begin(
    pointer: *mut c_void,
    db: *mut rocksdb_t,
    info: *const rocksdb_flushjobinfo_t,
) {
    assert_eq!(name_of(rocksdb_flushjobinfo_cf_name, info), "default");
    // Asking the database again from its own thread.
    let value = rocksdb_property_value(db, c"rocksdb.num-files-at-level0".as_ptr());
    assert!(!value.is_null());
    rocksdb_free(value.cast());
    state(pointer).note("flush begins".to_owned());
}

pub(crate) unsafe extern "C" fn flush_completed(
    pointer: *mut c_void,
    db: *mut rocksdb_t,
    info: *const rocksdb_flushjobinfo_t,
) {
    let mut keys = 0;
    let name = c"rocksdb.estimate-num-keys";
    assert_eq!(rocksdb_property_int(db, name.as_ptr(), &mut keys), 0);
    assert!(keys > 0);
    assert!(get(db, "k1").is_some());
    let table = rocksdb_flushjobinfo_table_properties(info);
    assert_eq!(rocksdb_table_properties_num_entries(table), 3);
    assert_eq!(rocksdb_flushjobinfo_flush_reason(info), 10);
    assert!(rocksdb_flushjobinfo_smallest_seqno(info) < rocksdb_flushjobinfo_largest_seqno(info));
    let path = name_of(rocksdb_flushjobinfo_file_path, info);
    let number = rocksdb_flushjobinfo_file_number(info);
    assert!(path.ends_with(&format!("{number:06}.sst")), "{path}");
    assert_eq!(rocksdb_flushjobinfo_blob_compression_type(info), 4);
    assert_eq!(rocksdb_flushjobinfo_blob_file_addition_infos_count(info), 1);
    let blobs = rocksdb_flushjobinfo_blob_file_addition_info_at(info, 0);
    assert_eq!(rocksdb_blob_file_addition_info_total_blob_count(blobs), 3);
    let mut len = 0;
    let path = rocksdb_blob_file_addition_info_blob_file_path(blobs, &mut len);
    assert!(slice(path, len).ends_with(b".blob"));
    assert!(rocksdb_flushjobinfo_blob_file_addition_info_at(info, 1).is_null());
    state(pointer).note("flush completed".to_owned());
}

pub(crate) unsafe extern "C" fn compaction_begin(
    pointer: *mut c_void,
    _db: *mut rocksdb_t,
    info: *const rocksdb_compactionjobinfo_t,
) {
    assert_eq!(rocksdb_compactionjobinfo_output_files_count(info), 0);
    state(pointer).note("compaction begins".to_owned());
}

pub(crate) unsafe extern "C" fn compaction_completed(
    pointer: *mut c_void,
    db: *mut rocksdb_t,
    info: *const rocksdb_compactionjobinfo_t,
) {
    fine(|e| rocksdb_compactionjobinfo_status(info, e));
    assert_eq!(rocksdb_compactionjobinfo_input_files_count(info), 2);
    assert_eq!(rocksdb_compactionjobinfo_output_files_count(info), 1);
    assert_eq!(rocksdb_compactionjobinfo_compaction_reason(info), 9);
    assert_eq!(rocksdb_compactionjobinfo_table_properties_count(info), 3);
    let stats = rocksdb_compactionjobinfo_stats(info);
    assert_eq!(rocksdb_compaction_job_stats_num_input_records(stats), 6);
    assert_eq!(rocksdb_compaction_job_stats_num_output_records(stats), 3);
    assert_eq!(rocksdb_compaction_job_stats_is_full_compaction(stats), 1);
    let mut len = 0;
    let path = rocksdb_compactionjobinfo_output_file_at(info, 0, &mut len);
    let table = rocksdb_compactionjobinfo_table_properties_for_file(info, path, len);
    assert_eq!(rocksdb_table_properties_num_entries(table), 3);
    assert!(rocksdb_compactionjobinfo_output_file_at(info, 1, &mut len).is_null());
    let output = rocksdb_compactionjobinfo_output_file_info_at(info, 0);
    let level = rocksdb_compactionjobinfo_output_level(info);
    assert_eq!(rocksdb_compaction_file_info_level(output), level);
    assert_eq!(rocksdb_compaction_job_stats_num_output_files_blob(stats), 0);
    assert_eq!(
        rocksdb_compactionjobinfo_blob_file_addition_infos_count(info),
        0
    );
    assert_eq!(
        rocksdb_compactionjobinfo_blob_file_garbage_infos_count(info),
        1
    );
    let garbage = rocksdb_compactionjobinfo_blob_file_garbage_info_at(info, 0);
    assert_eq!(
        rocksdb_blob_file_garbage_info_garbage_blob_count(garbage),
        3
    );
    assert!(rocksdb_blob_file_garbage_info_garbage_blob_bytes(garbage) > 3 * 34);
    assert!(get(db, "k2").is_some());
    state(pointer).note("compaction completed".to_owned());
}

pub(crate) unsafe extern "C" fn part_begin(
    pointer: *mut c_void,
    _info: *const rocksdb_subcompactionjobinfo_t,
) {
    state(pointer).note("part begins".to_owned());
}

pub(crate) unsafe extern "C" fn part_completed(
    pointer: *mut c_void,
    info: *const rocksdb_subcompactionjobinfo_t,
) {
    fine(|e| rocksdb_subcompactionjobinfo_status(info, e));
    assert_eq!(rocksdb_subcompactionjobinfo_subcompaction_job_id(info), 0);
    state(pointer).note("part completed".to_owned());
}

pub(crate) unsafe extern "C" fn sealed(pointer: *mut c_void, info: *const rocksdb_memtableinfo_t) {
    assert_eq!(rocksdb_memtableinfo_num_entries(info), 3);
    state(pointer).note("sealed".to_owned());
}

#[test]
fn listeners_hear_of_each_job_and_may_ask_the_database() {
    let dir = tempfile::tempdir().expect("a directory");
    let own = State::new();
    let silent = State::new();
    let opts = options();
    rocksdb_options_set_disable_auto_compactions(opts, 1);
    rocksdb_options_set_enable_blob_files(opts, 1);
    rocksdb_options_set_blob_compression_type(opts, 4);
    let listener = rocksdb_eventlistener_create(
        own.pointer(),
        Some(destructor),
        Some(flush_begin),
        Some(flush_completed),
        Some(compaction_begin),
        Some(compaction_completed),
        Some(part_begin),
        Some(part_completed),
        None,
        None,
        None,
        Some(sealed),
    );
    rocksdb_options_add_eventlistener(opts, listener);
    let nothing = rocksdb_eventlistener_create(
        silent.pointer(),
        Some(destructor),
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
    );
    rocksdb_options_add_eventlistener(opts, nothing);
    let copy = rocksdb_options_create_copy(opts);
    let db = open(opts, dir.path());
    for _ in 0..2 {
        for key in ["k1", "k2", "k3"] {
            put(db, key, "v");
        }
        flush(db);
    }
    compact(db);
    rocksdb_close(db);
    let lines = own.lines();
    let count = |what: &str| lines.iter().filter(|l| *l == what).count();
    for (what, times) in [
        ("sealed", 2),
        ("flush begins", 2),
        ("flush completed", 2),
        ("compaction begins", 1),
        ("compaction completed", 1),
        ("part begins", 1),
        ("part completed", 1),
    ] {
        assert_eq!(count(what), times, "{what} in {lines:?}");
    }
    rocksdb_options_destroy(opts);
    assert_eq!((own.destroyed(), silent.destroyed()), (0, 0));
    rocksdb_options_destroy(copy);
    assert_eq!((own.destroyed(), silent.destroyed()), (1, 1));
}
