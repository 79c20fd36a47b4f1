//! Callbacks through the C functions: orders, merges, filters, prefixes, loggers, listeners, and
//! the lives of their states.
//!
//! The file is long because each kind of object has functions of its own to pass.

mod common;

use common::{fine, told};
use rocksdb::*;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_uint, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// What a callback object counts.
#[derive(Default)]
struct State {
    destroyed: AtomicUsize,
    calls: AtomicUsize,
    deleted_values: AtomicUsize,
    lines: Mutex<Vec<String>>,
}

impl State {
    fn new() -> Arc<State> {
        Arc::default()
    }

    /// The pointer that C passes around: it does not own.
    fn pointer(self: &Arc<Self>) -> *mut c_void {
        Arc::as_ptr(self).cast_mut().cast()
    }

    fn destroyed(&self) -> usize {
        self.destroyed.load(SeqCst)
    }

    fn calls(&self) -> usize {
        self.calls.load(SeqCst)
    }

    fn note(&self, line: String) {
        self.lines
            .lock()
            .expect("no panic under the lock")
            .push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic under the lock").clone()
    }
}

fn state<'a>(pointer: *mut c_void) -> &'a State {
    // SAFETY: every test keeps its states until the end.
    unsafe { &*pointer.cast::<State>() }
}

fn slice<'a>(at: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the library passes what is there.
    unsafe { std::slice::from_raw_parts(at.cast(), len) }
}

/// A copy that the library gives back with `free`, or with the operator's own function.
fn copied(bytes: &[u8]) -> *mut c_char {
    // SAFETY: malloc may be called with any size.
    let to: *mut c_char = unsafe { libc::malloc(bytes.len().max(1)) }.cast();
    // SAFETY: there is room.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
    to
}

fn set<T>(to: *mut T, value: T) {
    // SAFETY: the library passes places for results.
    unsafe { to.write(value) }
}

unsafe extern "C" fn destructor(pointer: *mut c_void) {
    state(pointer).destroyed.fetch_add(1, SeqCst);
}

unsafe extern "C" fn reverse_name(_: *mut c_void) -> *const c_char {
    c"test.Reverse".as_ptr()
}

unsafe extern "C" fn other_name(_: *mut c_void) -> *const c_char {
    c"test.Other".as_ptr()
}

unsafe extern "C" fn reverse(
    pointer: *mut c_void,
    a: *const c_char,
    a_len: usize,
    b: *const c_char,
    b_len: usize,
) -> c_int {
    state(pointer).calls.fetch_add(1, SeqCst);
    slice(b, b_len).cmp(slice(a, a_len)) as c_int
}

fn at(s: &str) -> *const c_char {
    s.as_ptr().cast()
}

fn options() -> *mut rocksdb_options_t {
    let options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, 0);
    options
}

fn open(options: *const rocksdb_options_t, dir: &Path) -> *mut rocksdb_t {
    let path = CString::new(dir.to_str().expect("UTF-8")).expect("no NUL");
    fine(|e| rocksdb_open(options, path.as_ptr(), e))
}

fn put(db: *mut rocksdb_t, key: &str, value: &str) {
    let write = rocksdb_writeoptions_create();
    fine(|e| rocksdb_put(db, write, at(key), key.len(), at(value), value.len(), e));
    rocksdb_writeoptions_destroy(write);
}

fn merge(db: *mut rocksdb_t, key: &str, value: &str) {
    let write = rocksdb_writeoptions_create();
    fine(|e| rocksdb_merge(db, write, at(key), key.len(), at(value), value.len(), e));
    rocksdb_writeoptions_destroy(write);
}

fn delete(db: *mut rocksdb_t, key: &str) {
    let write = rocksdb_writeoptions_create();
    fine(|e| rocksdb_delete(db, write, at(key), key.len(), e));
    rocksdb_writeoptions_destroy(write);
}

fn flush(db: *mut rocksdb_t) {
    let flush = rocksdb_flushoptions_create();
    fine(|e| rocksdb_flush(db, flush, e));
    rocksdb_flushoptions_destroy(flush);
}

fn compact(db: *mut rocksdb_t) {
    rocksdb_compact_range(db, null(), 0, null(), 0);
}

fn try_get(db: *mut rocksdb_t, key: &str) -> Result<Option<String>, String> {
    let read = rocksdb_readoptions_create();
    let (mut len, mut error) = (0, null_mut());
    let value = rocksdb_get(db, read, at(key), key.len(), &mut len, &mut error);
    rocksdb_readoptions_destroy(read);
    if let Some(e) = told(error) {
        return Err(e);
    }
    if value.is_null() {
        return Ok(None);
    }
    let text = String::from_utf8(slice(value, len).to_vec()).expect("UTF-8");
    rocksdb_free(value.cast());
    Ok(Some(text))
}

fn get(db: *mut rocksdb_t, key: &str) -> Option<String> {
    try_get(db, key).expect("it reads")
}

fn keys(db: *mut rocksdb_t, read: *const rocksdb_readoptions_t) -> Vec<String> {
    let it = rocksdb_create_iterator(db, read);
    rocksdb_iter_seek_to_first(it);
    let mut keys = Vec::new();
    while rocksdb_iter_valid(it) != 0 {
        let mut len = 0;
        let key = rocksdb_iter_key(it, &mut len);
        keys.push(String::from_utf8(slice(key, len).to_vec()).expect("UTF-8"));
        rocksdb_iter_next(it);
    }
    fine(|e| rocksdb_iter_get_error(it, e));
    rocksdb_iter_destroy(it);
    keys
}

fn all_keys(db: *mut rocksdb_t) -> Vec<String> {
    let read = rocksdb_readoptions_create();
    let keys = keys(db, read);
    rocksdb_readoptions_destroy(read);
    keys
}

#[test]
fn an_order_of_the_applications_survives_reopening_and_is_checked() {
    let dir = tempfile::tempdir().expect("a directory");
    let own = State::new();
    let order = rocksdb_comparator_create(
        own.pointer(),
        Some(destructor),
        Some(reverse),
        Some(reverse_name),
    );
    let opts = options();
    rocksdb_options_set_comparator(opts, order);
    for round in 0..2 {
        let db = open(opts, dir.path());
        for key in ["a", "c", "b"] {
            put(db, key, "v");
        }
        if round == 0 {
            flush(db);
        }
        assert_eq!(all_keys(db), ["c", "b", "a"]);
        rocksdb_close(db);
    }
    assert!(own.calls() > 0);

    let other = State::new();
    let wrong = rocksdb_comparator_create(
        other.pointer(),
        Some(destructor),
        Some(reverse),
        Some(other_name),
    );
    let wrong_opts = options();
    rocksdb_options_set_comparator(wrong_opts, wrong);
    let path = CString::new(dir.path().to_str().expect("UTF-8")).expect("no NUL");
    let mut error = null_mut();
    assert!(rocksdb_open(wrong_opts, path.as_ptr(), &mut error).is_null());
    let text = told(error).expect("an error");
    assert!(text.starts_with("Invalid argument: "), "{text}");
    assert!(
        text.contains("test.Reverse") && text.contains("test.Other"),
        "{text}"
    );

    // The handle goes before the options here, and after them there.
    rocksdb_comparator_destroy(order);
    assert_eq!(own.destroyed(), 0);
    rocksdb_options_destroy(opts);
    assert_eq!(own.destroyed(), 1);
    rocksdb_options_destroy(wrong_opts);
    assert_eq!(other.destroyed(), 0);
    rocksdb_comparator_destroy(wrong);
    assert_eq!(other.destroyed(), 1);
    assert!(rocksdb_comparator_create(null_mut(), None, None, None).is_null());
}

unsafe extern "C" fn merge_name(_: *mut c_void) -> *const c_char {
    c"test.Join".as_ptr()
}

fn operands<'a>(list: *const *const c_char, sizes: *const usize, n: c_int) -> Vec<&'a [u8]> {
    (0..n as usize)
        // SAFETY: the library passes that many.
        .map(|i| unsafe { slice(*list.add(i), *sizes.add(i)) })
        .collect()
}

/// Joins with a comma; fails on an operand `bad`.
unsafe extern "C" fn full_merge(
    pointer: *mut c_void,
    _key: *const c_char,
    _key_len: usize,
    base: *const c_char,
    base_len: usize,
    list: *const *const c_char,
    sizes: *const usize,
    n: c_int,
    success: *mut c_uchar,
    length: *mut usize,
) -> *mut c_char {
    state(pointer).calls.fetch_add(1, SeqCst);
    let mut parts = Vec::new();
    if !base.is_null() {
        parts.push(slice(base, base_len));
    }
    parts.extend(operands(list, sizes, n));
    if parts.contains(&&b"bad"[..]) {
        set(success, 0);
        return null_mut();
    }
    let joined = parts.join(&b',');
    set(success, 1);
    set(length, joined.len());
    copied(&joined)
}

unsafe extern "C" fn partial_merge(
    pointer: *mut c_void,
    key: *const c_char,
    key_len: usize,
    list: *const *const c_char,
    sizes: *const usize,
    n: c_int,
    success: *mut c_uchar,
    length: *mut usize,
) -> *mut c_char {
    // SAFETY: the same contract.
    unsafe {
        full_merge(
            pointer,
            key,
            key_len,
            null(),
            0,
            list,
            sizes,
            n,
            success,
            length,
        )
    }
}

unsafe extern "C" fn delete_value(pointer: *mut c_void, value: *const c_char, _len: usize) {
    state(pointer).deleted_values.fetch_add(1, SeqCst);
    // SAFETY: it came from `copied`, or is NULL.
    unsafe { libc::free(value.cast_mut().cast()) }
}

#[test]
fn merges_call_the_application_and_give_values_back() {
    for with_partial in [true, false] {
        let dir = tempfile::tempdir().expect("a directory");
        let own = State::new();
        let operator = rocksdb_mergeoperator_create(
            own.pointer(),
            Some(destructor),
            Some(full_merge),
            with_partial.then_some(partial_merge),
            with_partial.then_some(delete_value),
            Some(merge_name),
        );
        let opts = options();
        rocksdb_options_set_merge_operator(opts, operator);
        let db = open(opts, dir.path());
        put(db, "k", "1");
        merge(db, "k", "2");
        merge(db, "k", "3");
        merge(db, "new", "x");
        merge(db, "new", "y");
        assert_eq!(get(db, "k").as_deref(), Some("1,2,3"));
        flush(db);
        merge(db, "k", "4");
        flush(db);
        compact(db);
        assert_eq!(get(db, "k").as_deref(), Some("1,2,3,4"));
        assert_eq!(get(db, "new").as_deref(), Some("x,y"));
        merge(db, "k", "bad");
        let error = try_get(db, "k").expect_err("the merge fails");
        assert!(error.starts_with("Corruption: "), "{error}");
        assert!(own.calls() > 0);
        let deleted = own.deleted_values.load(SeqCst);
        assert_eq!(deleted > 0, with_partial, "{deleted} values given back");
        rocksdb_options_destroy(opts);
        assert_eq!(own.destroyed(), 0);
        rocksdb_close(db);
        assert_eq!(own.destroyed(), 1);
    }
}

#[test]
fn counters_add_up_and_a_missing_merge_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let opts = options();
    rocksdb_options_set_uint64add_merge_operator(opts);
    let db = open(opts, dir.path());
    for _ in 0..3 {
        merge(db, "k", "\u{1}\0\0\0\0\0\0\0");
    }
    assert_eq!(get(db, "k").as_deref(), Some("\u{3}\0\0\0\0\0\0\0"));
    rocksdb_close(db);
    rocksdb_options_destroy(opts);

    let dir = tempfile::tempdir().expect("a directory");
    let own = State::new();
    let operator =
        rocksdb_mergeoperator_create(own.pointer(), Some(destructor), None, None, None, None);
    let opts = options();
    rocksdb_options_set_merge_operator(opts, operator);
    let db = open(opts, dir.path());
    merge(db, "k", "x");
    assert!(try_get(db, "k").is_err());
    rocksdb_close(db);
    rocksdb_options_set_merge_operator(opts, null_mut());
    assert_eq!(own.destroyed(), 1);
    rocksdb_options_destroy(opts);
    assert_eq!(own.destroyed(), 1);
}

unsafe extern "C" fn filter_name(_: *mut c_void) -> *const c_char {
    c"test.Filter".as_ptr()
}

/// Drops `drop`, changes `change`.
unsafe extern "C" fn filter(
    pointer: *mut c_void,
    _level: c_int,
    key: *const c_char,
    key_len: usize,
    _value: *const c_char,
    _value_len: usize,
    new: *mut *mut c_char,
    new_len: *mut usize,
    changed: *mut c_uchar,
) -> c_uchar {
    state(pointer).calls.fetch_add(1, SeqCst);
    match slice(key, key_len) {
        b"drop" => 1,
        b"change" => {
            set(new, c"new".as_ptr().cast_mut());
            set(new_len, 3);
            set(changed, 1);
            0
        }
        _ => 0,
    }
}

fn filtered(db: *mut rocksdb_t) {
    for key in ["change", "drop", "keep"] {
        put(db, key, "old");
    }
    flush(db);
    compact(db);
    assert_eq!(all_keys(db), ["change", "keep"]);
    assert_eq!(get(db, "change").as_deref(), Some("new"));
    assert_eq!(get(db, "keep").as_deref(), Some("old"));
}

#[test]
fn a_filter_drops_and_changes() {
    let dir = tempfile::tempdir().expect("a directory");
    let own = State::new();
    let handle = rocksdb_compactionfilter_create(
        own.pointer(),
        Some(destructor),
        Some(filter),
        Some(filter_name),
    );
    rocksdb_compactionfilter_set_ignore_snapshots(handle, 1);
    let opts = options();
    rocksdb_options_set_compaction_filter(opts, handle);
    let db = open(opts, dir.path());
    filtered(db);
    rocksdb_close(db);
    rocksdb_options_destroy(opts);
    assert_eq!(own.destroyed(), 0);
    rocksdb_compactionfilter_destroy(handle);
    assert_eq!(own.destroyed(), 1);
}

unsafe extern "C" fn make_filter(
    pointer: *mut c_void,
    context: *mut rocksdb_compactionfiltercontext_t,
) -> *mut rocksdb_compactionfilter_t {
    state(pointer).note(format!(
        "full {} manual {}",
        rocksdb_compactionfiltercontext_is_full_compaction(context),
        rocksdb_compactionfiltercontext_is_manual_compaction(context)
    ));
    rocksdb_compactionfilter_create(pointer, Some(destructor), Some(filter), Some(filter_name))
}

unsafe extern "C" fn no_filter(
    pointer: *mut c_void,
    _context: *mut rocksdb_compactionfiltercontext_t,
) -> *mut rocksdb_compactionfilter_t {
    state(pointer).calls.fetch_add(1, SeqCst);
    null_mut()
}

#[test]
fn a_factory_makes_a_filter_for_each_job() {
    let dir = tempfile::tempdir().expect("a directory");
    let own = State::new();
    let factory = rocksdb_compactionfilterfactory_create(
        own.pointer(),
        Some(destructor),
        Some(make_filter),
        Some(filter_name),
    );
    let opts = options();
    rocksdb_options_set_compaction_filter_factory(opts, factory);
    let db = open(opts, dir.path());
    filtered(db);
    let made = own.lines();
    assert!(!made.is_empty());
    assert!(made.iter().all(|l| l == "full 1 manual 1"), "{made:?}");
    // Each filter was destroyed with its job; the factory lives on.
    assert_eq!(own.destroyed(), made.len());
    rocksdb_options_destroy(opts);
    rocksdb_close(db);
    assert_eq!(own.destroyed(), made.len() + 1);

    let own = State::new();
    let factory =
        rocksdb_compactionfilterfactory_create(own.pointer(), None, Some(no_filter), None);
    let dir = tempfile::tempdir().expect("a directory");
    let opts = options();
    rocksdb_options_set_compaction_filter_factory(opts, factory);
    let db = open(opts, dir.path());
    put(db, "drop", "v");
    flush(db);
    compact(db);
    assert_eq!(all_keys(db), ["drop"]);
    assert!(own.calls() > 0);
    rocksdb_close(db);
    rocksdb_options_destroy(opts);
}

unsafe extern "C" fn first_two(
    _: *mut c_void,
    key: *const c_char,
    _len: usize,
    prefix_len: *mut usize,
) -> *mut c_char {
    set(prefix_len, 2);
    key.cast_mut()
}

unsafe extern "C" fn long_enough(_: *mut c_void, _key: *const c_char, len: usize) -> c_uchar {
    c_uchar::from(len >= 2)
}

unsafe extern "C" fn prefix_name(_: *mut c_void) -> *const c_char {
    c"test.FirstTwo".as_ptr()
}

#[test]
fn prefixes_come_from_the_application() {
    let own = State::new();
    let dir = tempfile::tempdir().expect("a directory");
    let transform = rocksdb_slicetransform_create(
        own.pointer(),
        Some(destructor),
        Some(first_two),
        Some(long_enough),
        Some(prefix_name),
    );
    let opts = options();
    rocksdb_options_set_prefix_extractor(opts, transform);
    let table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10.0));
    rocksdb_options_set_block_based_table_factory(opts, table);
    let db = open(opts, dir.path());
    for key in ["aa1", "aa2", "ab1", "b"] {
        put(db, key, "v");
    }
    flush(db);
    let read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_prefix_same_as_start(read, 1);
    let it = rocksdb_create_iterator(db, read);
    rocksdb_iter_seek(it, at("aa"), 2);
    let mut seen = 0;
    while rocksdb_iter_valid(it) != 0 {
        seen += 1;
        rocksdb_iter_next(it);
    }
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(read);
    assert_eq!(seen, 2);
    rocksdb_close(db);
    rocksdb_options_destroy(opts);
    rocksdb_block_based_options_destroy(table);
    assert_eq!(own.destroyed(), 1);

    let unused = rocksdb_slicetransform_create(own.pointer(), Some(destructor), None, None, None);
    rocksdb_slicetransform_destroy(unused);
    assert_eq!(own.destroyed(), 2);
    rocksdb_slicetransform_destroy(rocksdb_slicetransform_create_fixed_prefix(3));
    rocksdb_slicetransform_destroy(rocksdb_slicetransform_create_noop());
}

unsafe extern "C" fn log(pointer: *mut c_void, level: c_uint, line: *mut c_char, len: usize) {
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
    assert!(lines.iter().any(|l| l.starts_with("5 ")), "{lines:?}");
    assert!(!lines.iter().any(|l| l.starts_with("0 ")), "{lines:?}");
    assert!(!dir.path().join("LOG").exists());
    let stderr = rocksdb_logger_create_stderr_logger(4, c"test".as_ptr());
    rocksdb_logger_destroy(stderr);
    rocksdb_logger_destroy(rocksdb_logger_create_stderr_logger(1, null()));
    rocksdb_logger_destroy(null_mut());
}

fn name_of(
    read: extern "C" fn(*const rocksdb_flushjobinfo_t, *mut usize) -> *const c_char,
    info: *const rocksdb_flushjobinfo_t,
) -> String {
    let mut len = 0;
    let text = read(info, &mut len);
    String::from_utf8_lossy(slice(text, len)).into_owned()
}

unsafe extern "C" fn flush_begin(
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

unsafe extern "C" fn flush_completed(
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
    assert!(rocksdb_flushjobinfo_blob_file_addition_info_at(info, 0).is_null());
    state(pointer).note("flush completed".to_owned());
}

unsafe extern "C" fn compaction_begin(
    pointer: *mut c_void,
    _db: *mut rocksdb_t,
    info: *const rocksdb_compactionjobinfo_t,
) {
    assert_eq!(rocksdb_compactionjobinfo_output_files_count(info), 0);
    state(pointer).note("compaction begins".to_owned());
}

unsafe extern "C" fn compaction_completed(
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
    assert!(get(db, "k2").is_some());
    state(pointer).note("compaction completed".to_owned());
}

unsafe extern "C" fn part_begin(
    pointer: *mut c_void,
    _info: *const rocksdb_subcompactionjobinfo_t,
) {
    state(pointer).note("part begins".to_owned());
}

unsafe extern "C" fn part_completed(
    pointer: *mut c_void,
    info: *const rocksdb_subcompactionjobinfo_t,
) {
    fine(|e| rocksdb_subcompactionjobinfo_status(info, e));
    assert_eq!(rocksdb_subcompactionjobinfo_subcompaction_job_id(info), 0);
    state(pointer).note("part completed".to_owned());
}

unsafe extern "C" fn sealed(pointer: *mut c_void, info: *const rocksdb_memtableinfo_t) {
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

#[test]
fn states_are_destroyed_once_in_every_order() {
    // 0: the handle alone; then who goes first of options (o), their copy (c) and the database (d).
    let own = State::new();
    let unused =
        rocksdb_mergeoperator_create(own.pointer(), Some(destructor), None, None, None, None);
    rocksdb_mergeoperator_destroy(unused);
    rocksdb_mergeoperator_destroy(null_mut());
    assert_eq!(own.destroyed(), 1);
    for order in ["ocd", "odc", "cod", "cdo", "doc", "dco"] {
        let dir = tempfile::tempdir().expect("a directory");
        let (merge, listener, factory, prefix, compare) = (
            State::new(),
            State::new(),
            State::new(),
            State::new(),
            State::new(),
        );
        let opts = options();
        rocksdb_options_set_merge_operator(
            opts,
            rocksdb_mergeoperator_create(
                merge.pointer(),
                Some(destructor),
                Some(full_merge),
                None,
                None,
                Some(merge_name),
            ),
        );
        rocksdb_options_set_compaction_filter_factory(
            opts,
            rocksdb_compactionfilterfactory_create(
                factory.pointer(),
                Some(destructor),
                Some(no_filter),
                None,
            ),
        );
        rocksdb_options_set_prefix_extractor(
            opts,
            rocksdb_slicetransform_create(
                prefix.pointer(),
                Some(destructor),
                Some(first_two),
                Some(long_enough),
                Some(prefix_name),
            ),
        );
        let comparator = rocksdb_comparator_create(
            compare.pointer(),
            Some(destructor),
            Some(reverse),
            Some(reverse_name),
        );
        rocksdb_options_set_comparator(opts, comparator);
        rocksdb_comparator_destroy(comparator);
        rocksdb_options_add_eventlistener(
            opts,
            rocksdb_eventlistener_create(
                listener.pointer(),
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
            ),
        );
        let copy = rocksdb_options_create_copy(opts);
        let db = open(opts, dir.path());
        put(db, "key", "v");
        flush(db);
        let all = [&merge, &listener, &factory, &prefix, &compare];
        for (i, who) in order.chars().enumerate() {
            for s in all {
                assert_eq!(s.destroyed(), 0, "{order} before {i}");
            }
            match who {
                'o' => rocksdb_options_destroy(opts),
                'c' => rocksdb_options_destroy(copy),
                _ => rocksdb_close(db),
            }
        }
        for (i, s) in all.into_iter().enumerate() {
            assert_eq!(s.destroyed(), 1, "{order}: object {i}");
        }
    }
}

#[test]
fn an_iterator_keeps_its_order_after_everything_else_is_gone() {
    let dir = tempfile::tempdir().expect("a directory");
    let own = State::new();
    let order = rocksdb_comparator_create(
        own.pointer(),
        Some(destructor),
        Some(reverse),
        Some(reverse_name),
    );
    let opts = options();
    rocksdb_options_set_comparator(opts, order);
    let db = open(opts, dir.path());
    put(db, "a", "v");
    put(db, "b", "v");
    let read = rocksdb_readoptions_create();
    let it = rocksdb_create_iterator(db, read);
    rocksdb_readoptions_destroy(read);
    rocksdb_comparator_destroy(order);
    rocksdb_options_destroy(opts);
    rocksdb_close(db);
    assert_eq!(own.destroyed(), 0);
    rocksdb_iter_destroy(it);
    assert_eq!(own.destroyed(), 1);
}

unsafe extern "C" fn wants_large(
    pointer: *mut c_void,
    table: *const rocksdb_table_properties_t,
) -> c_uchar {
    state(pointer).calls.fetch_add(1, SeqCst);
    c_uchar::from(rocksdb_table_properties_num_entries(table) > 1)
}

#[test]
fn a_table_filter_chooses_what_iterators_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let opts = options();
    rocksdb_options_set_disable_auto_compactions(opts, 1);
    let db = open(opts, dir.path());
    put(db, "small", "v");
    flush(db);
    put(db, "large1", "v");
    put(db, "large2", "v");
    flush(db);
    let own = State::new();
    let read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_table_filter(read, own.pointer(), Some(destructor), Some(wants_large));
    assert_eq!(rocksdb_readoptions_has_table_filter(read), 1);
    assert_eq!(keys(db, read), ["large1", "large2"]);
    assert_eq!(own.calls(), 2);
    assert_eq!(get(db, "small").as_deref(), Some("v"));
    rocksdb_readoptions_clear_table_filter(read);
    assert_eq!(rocksdb_readoptions_has_table_filter(read), 0);
    assert_eq!(own.destroyed(), 1);
    assert_eq!(keys(db, read).len(), 3);
    rocksdb_readoptions_destroy(read);
    assert_eq!(own.destroyed(), 1);
    rocksdb_close(db);
    rocksdb_options_destroy(opts);
}

#[test]
fn tables_full_of_deletions_are_compacted_by_themselves() {
    let dir = tempfile::tempdir().expect("a directory");
    let opts = options();
    rocksdb_options_add_compact_on_deletion_collector_factory(opts, 10, 5);
    let db = open(opts, dir.path());
    for i in 0..20 {
        put(db, &format!("{i:02}"), "v");
    }
    flush(db);
    compact(db);
    for i in 0..10 {
        delete(db, &format!("{i:02}"));
    }
    flush(db);
    let wait = rocksdb_wait_for_compact_options_create();
    fine(|e| rocksdb_wait_for_compact(db, wait, e));
    rocksdb_wait_for_compact_options_destroy(wait);
    let left = rocksdb_property_value(db, c"rocksdb.num-files-at-level0".as_ptr());
    // The table of deletions was compacted.
    assert_eq!(told(left).as_deref(), Some("0"));
    assert_eq!(all_keys(db).len(), 10);
    rocksdb_close(db);
    rocksdb_options_destroy(opts);
}

unsafe extern "C" fn told_families(
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
unsafe extern "C" fn told_record(
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

unsafe extern "C" fn damaged_record(
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

fn tables(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).expect("it lists");
    let paths = entries.map(|e| e.expect("it lists").path());
    paths
        .filter(|p| p.extension().is_some_and(|e| e == "sst"))
        .collect()
}

#[test]
fn checksums_of_whole_files_are_made_and_compared() {
    let dir = tempfile::tempdir().expect("a directory");
    let opts = options();
    let factory = rocksdb_file_checksum_gen_crc32c_factory_create();
    rocksdb_options_set_file_checksum_gen_factory(opts, factory);
    rocksdb_file_checksum_gen_factory_destroy(factory);
    let db = open(opts, dir.path());
    put(db, "k", "v");
    flush(db);
    fine(|e| rocksdb_verify_file_checksums(db, e));
    rocksdb_close(db);
    // The checksums are in the MANIFEST.
    let db = open(opts, dir.path());
    fine(|e| rocksdb_verify_file_checksums(db, e));
    let table = tables(dir.path()).pop().expect("a table");
    let mut bytes = std::fs::read(&table).expect("it reads");
    bytes[3] ^= 1;
    std::fs::write(&table, bytes).expect("it writes");
    let mut error = null_mut();
    rocksdb_verify_file_checksums(db, &mut error);
    let text = told(error).expect("an error");
    assert!(text.starts_with("Corruption: "), "{text}");
    rocksdb_close(db);
    rocksdb_options_destroy(opts);
}

#[test]
fn partitions_keep_prefixes_apart() {
    let dir = tempfile::tempdir().expect("a directory");
    let opts = options();
    let factory = rocksdb_sst_partitioner_fixed_prefix_factory_create(1);
    rocksdb_options_set_sst_partitioner_factory(opts, factory);
    rocksdb_sst_partitioner_factory_destroy(factory);
    let db = open(opts, dir.path());
    for key in ["a1", "a2", "b1", "c1", "c2"] {
        put(db, key, "v");
    }
    flush(db);
    assert_eq!(tables(dir.path()).len(), 1);
    // One file that could be moved is written again, in three.
    compact(db);
    assert_eq!(all_keys(db).len(), 5);
    rocksdb_close(db);
    assert_eq!(tables(dir.path()).len(), 3);
    // By OPTIONS files it is known again.
    let db = open(opts, dir.path());
    rocksdb_close(db);
    rocksdb_options_destroy(opts);
}
