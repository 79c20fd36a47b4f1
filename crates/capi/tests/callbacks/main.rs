//! Callbacks through the C functions: orders, merges, filters, prefixes, loggers, listeners, and
//! the lives of their states.

#[path = "../common/mod.rs"]
mod common;
mod listeners;
mod log_filter;
mod values;

use common::{fine, told};
use rocksdb::*;
use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use values::{first_two, full_merge, long_enough, merge_name, no_filter, prefix_name};

/// Counters of a callback object.
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
