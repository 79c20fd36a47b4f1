//! Merges, compaction filters and prefixes of the application.

use crate::{
    State, all_keys, at, compact, copied, destructor, flush, get, merge, open, options, put, set,
    slice, state, try_get,
};
use rocksdb::*;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::SeqCst;

pub(crate) unsafe extern "C" fn merge_name(_: *mut c_void) -> *const c_char {
    c"test.Join".as_ptr()
}

pub(crate) fn operands<'a>(
    list: *const *const c_char,
    sizes: *const usize,
    n: c_int,
) -> Vec<&'a [u8]> {
    (0..n as usize)
        // SAFETY: the library passes that many.
        .map(|i| unsafe { slice(*list.add(i), *sizes.add(i)) })
        .collect()
}

/// Joins with a comma; fails on an operand `bad`.
pub(crate) unsafe extern "C" fn full_merge(
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

pub(crate) unsafe extern "C" fn partial_merge(
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

pub(crate) unsafe extern "C" fn delete_value(
    pointer: *mut c_void,
    value: *const c_char,
    _len: usize,
) {
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

pub(crate) unsafe extern "C" fn filter_name(_: *mut c_void) -> *const c_char {
    c"test.Filter".as_ptr()
}

/// Drops `drop`, changes `change`.
pub(crate) unsafe extern "C" fn filter(
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

pub(crate) fn filtered(db: *mut rocksdb_t) {
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

pub(crate) unsafe extern "C" fn make_filter(
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

pub(crate) unsafe extern "C" fn no_filter(
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

pub(crate) unsafe extern "C" fn first_two(
    _: *mut c_void,
    key: *const c_char,
    _len: usize,
    prefix_len: *mut usize,
) -> *mut c_char {
    set(prefix_len, 2);
    key.cast_mut()
}

pub(crate) unsafe extern "C" fn long_enough(
    _: *mut c_void,
    _key: *const c_char,
    len: usize,
) -> c_uchar {
    c_uchar::from(len >= 2)
}

pub(crate) unsafe extern "C" fn prefix_name(_: *mut c_void) -> *const c_char {
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
