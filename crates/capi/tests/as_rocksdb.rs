//! Answers, texts and files that programs written for RocksDB rely on, through the C functions.

use rocksdb::*;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

fn path(path: &Path) -> CString {
    CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
}

/// Text from `malloc`, which is freed.
fn taken(text: *mut c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the text ends with NUL.
    let out = unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned();
    rocksdb_free(text.cast());
    out
}

fn fine<R>(call: impl FnOnce(*mut *mut c_char) -> R) -> R {
    let mut error = null_mut();
    let out = call(&mut error);
    assert!(error.is_null(), "{}", taken(error));
    out
}

fn failed<R>(call: impl FnOnce(*mut *mut c_char) -> R) -> String {
    let mut error = null_mut();
    call(&mut error);
    taken(error)
}

fn options() -> *mut rocksdb_options_t {
    let options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    options
}

fn put(db: *mut rocksdb_t, key: &str, value: &str) {
    let write = rocksdb_writeoptions_create();
    let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
    fine(|e| rocksdb_put(db, write, k, key.len(), v, value.len(), e));
    rocksdb_writeoptions_destroy(write);
}

fn get(db: *mut rocksdb_t, key: &str) -> Option<Vec<u8>> {
    let read = rocksdb_readoptions_create();
    let mut length = 0;
    let k = key.as_ptr().cast();
    let value = fine(|e| rocksdb_get(db, read, k, key.len(), &mut length, e));
    rocksdb_readoptions_destroy(read);
    if value.is_null() {
        return None;
    }
    // SAFETY: the library says how long it is.
    let out = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length) }.to_vec();
    rocksdb_free(value.cast());
    Some(out)
}

fn flush(db: *mut rocksdb_t) {
    let how = rocksdb_flushoptions_create();
    fine(|e| rocksdb_flush(db, how, e));
    rocksdb_flushoptions_destroy(how);
}

/// The names of the files in `dir` that begin with `begin`, in order.
fn files(dir: &Path, begin: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a directory");
    let mut out: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    out.retain(|p| {
        p.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with(begin))
    });
    out.sort();
    out
}

fn newest_options(dir: &Path) -> String {
    let newest = files(dir, "OPTIONS-").pop().expect("an OPTIONS file");
    fs::read_to_string(newest).expect("its text")
}

#[test]
fn other_table_formats_are_written_as_blocks_and_the_log_says_so() {
    type Given = fn(*mut rocksdb_options_t);
    let given: [(&str, Given); 2] = [
        ("PlainTable", |o| {
            rocksdb_options_set_plain_table_factory(o, 0, 10, 0.75, 16, 0, 0, 0, 0)
        }),
        ("CuckooTable", |o| {
            let cuckoo = rocksdb_cuckoo_options_create();
            rocksdb_options_set_cuckoo_table_factory(o, cuckoo);
            rocksdb_cuckoo_options_destroy(cuckoo);
        }),
    ];
    for (name, give) in given {
        let dir = tempfile::tempdir().expect("a directory");
        let options = options();
        give(options);
        let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
        put(db, "a", "1");
        flush(db);
        assert_eq!(get(db, "a").as_deref(), Some(&b"1"[..]));
        let family = fine(|e| rocksdb_create_column_family(db, options, c"second".as_ptr(), e));
        rocksdb_column_family_handle_destroy(family);
        rocksdb_close(db);
        rocksdb_options_destroy(options);

        let log = fs::read_to_string(dir.path().join("LOG")).expect("the LOG");
        let warned = |family: &str| {
            log.lines()
                .filter(|l| {
                    l.contains("[WARN]") && l.contains(&format!("[{family}] table_factory"))
                })
                .filter(|l| l.contains(name) && l.contains("BlockBasedTable"))
                .count()
        };
        assert_eq!((warned("default"), warned("second")), (1, 1), "{log}");
        let text = newest_options(dir.path());
        assert_eq!(
            text.matches("table_factory=BlockBasedTable").count(),
            2,
            "{text}"
        );
        assert!(!text.contains(name), "{text}");
    }
}

#[test]
fn a_table_of_another_format_is_named() {
    const PLAIN: u64 = 0x8242_2296_63bf_9564;
    const CUCKOO: u64 = 0x926789d0c5f17873;
    for (magic, what) in [(PLAIN, "plain"), (CUCKOO, "cuckoo")] {
        let dir = tempfile::tempdir().expect("a directory");
        let options = options();
        let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
        put(db, "a", "1");
        flush(db);
        rocksdb_close(db);
        let table = files(dir.path(), "0")
            .into_iter()
            .find(|p| p.extension().is_some_and(|e| e == "sst"))
            .expect("a table");
        let mut bytes = fs::read(&table).expect("its bytes");
        let at = bytes.len() - 8;
        bytes[at..].copy_from_slice(&magic.to_le_bytes());
        fs::write(&table, bytes).expect("written");
        let error = failed(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
        assert!(error.starts_with("Not implemented: "), "{error}");
        assert!(error.contains(what), "{error}");
        let name = table
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(error.contains(&name), "{error}");
        rocksdb_options_destroy(options);
    }
}

extern "C" fn nothing(_: *mut c_void) {}

extern "C" fn foo(_: *mut c_void) -> *const c_char {
    c"foo".as_ptr()
}

extern "C" fn never(
    _: *mut c_void,
    _: *const c_char,
    _: usize,
    _: *const c_char,
    _: usize,
) -> c_int {
    // Unwinding does not cross the interface.
    eprintln!("one key needs no comparing");
    std::process::abort();
}

#[test]
fn one_key_is_written_and_flushed_without_comparing() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    let order = rocksdb_comparator_create(null_mut(), Some(nothing), Some(never), Some(foo));
    rocksdb_options_set_comparator(options, order);
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "k", "v");
    flush(db);
    rocksdb_close(db);
    rocksdb_options_destroy(options);

    let plain = rocksdb_options_create();
    let error = failed(|e| rocksdb_open(plain, path(dir.path()).as_ptr(), e));
    assert_eq!(
        error,
        "Invalid argument: leveldb.BytewiseComparator: does not match existing comparator foo"
    );
    rocksdb_options_destroy(plain);
    rocksdb_comparator_destroy(order);
}

extern "C" fn refuse(
    _: *mut c_void,
    _: *const c_char,
    _: usize,
    _: *const c_char,
    _: usize,
    _: *const *const c_char,
    _: *const usize,
    _: c_int,
    success: *mut c_uchar,
    length: *mut usize,
) -> *mut c_char {
    // SAFETY: the library gives two places.
    unsafe {
        *success = 0;
        *length = 0;
    }
    null_mut()
}

extern "C" fn refuse_partly(
    state: *mut c_void,
    key: *const c_char,
    key_len: usize,
    operands: *const *const c_char,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    length: *mut usize,
) -> *mut c_char {
    refuse(
        state,
        key,
        key_len,
        null(),
        0,
        operands,
        lengths,
        count,
        success,
        length,
    )
}

#[test]
fn a_merge_that_fails_is_told_in_the_words_of_rocksdb() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    let operator = rocksdb_mergeoperator_create(
        null_mut(),
        Some(nothing),
        Some(refuse),
        Some(refuse_partly),
        None,
        Some(foo),
    );
    rocksdb_options_set_merge_operator(options, operator);
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "key", "value");
    let write = rocksdb_writeoptions_create();
    fine(|e| rocksdb_merge(db, write, c"key".as_ptr(), 3, c"new".as_ptr(), 3, e));
    let read = rocksdb_readoptions_create();
    let mut length = 0;
    let error = failed(|e| rocksdb_get(db, read, c"key".as_ptr(), 3, &mut length, e));
    assert!(
        error.starts_with("Corruption: Merge operator failed"),
        "{error}"
    );
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

#[test]
fn the_log_says_what_the_build_has_and_how_tables_are_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(options, 5, 10, 0.5);
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    let log = fs::read_to_string(dir.path().join("LOG")).expect("the LOG");
    for wanted in [
        "Jemalloc supported: 0\n",
        "Fast CRC32 supported: ",
        "data_block_index_type: 0\n",
        "data_block_hash_table_util_ratio: 0.750000\n",
        "cache_index_and_filter_blocks: 0\n",
        "format_version: 5\n",
        "CompactOnDeletionCollector (Sliding window size = 5 Deletion trigger = 10 Deletion ratio = 0.5)",
    ] {
        assert!(log.contains(wanted), "{wanted} in {log}");
    }
}

#[test]
fn the_memory_of_an_empty_cache_is_its_tables() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    let cache = rocksdb_cache_create_lru(1 << 20);
    let table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_options_set_block_based_table_factory(options, table);
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    let consumers = rocksdb_memory_consumers_create();
    rocksdb_memory_consumers_add_db(consumers, db);
    rocksdb_memory_consumers_add_cache(consumers, cache);
    let total = || {
        let usage = fine(|e| rocksdb_approximate_memory_usage_create(consumers, e));
        let total = rocksdb_approximate_memory_usage_get_cache_total(usage);
        rocksdb_approximate_memory_usage_destroy(usage);
        total
    };
    let empty = total();
    assert!(empty > 0);
    assert_eq!(rocksdb_cache_get_usage(cache), 0, "nothing is charged");
    put(db, "a", "1");
    flush(db);
    assert!(get(db, "a").is_some());
    assert!(total() > empty);
    assert!(rocksdb_cache_get_usage(cache) > 0);
    let clock = rocksdb_cache_create_hyper_clock(1 << 20, 0);
    assert!(rocksdb_cache_get_usage(clock) > 0, "its table is charged");
    rocksdb_cache_destroy(clock);
    rocksdb_memory_consumers_destroy(consumers);
    rocksdb_close(db);
    rocksdb_block_based_options_destroy(table);
    rocksdb_cache_destroy(cache);
    rocksdb_options_destroy(options);
}

#[test]
fn a_temperature_is_told_as_it_was_given() {
    let options = rocksdb_compaction_options_create();
    for number in [1, 0, 8, -1] {
        rocksdb_compaction_options_set_output_temperature_override(options, number);
        let told = rocksdb_compaction_options_get_output_temperature_override(options);
        assert_eq!(told, number);
    }
    rocksdb_compaction_options_destroy(options);
}

#[test]
fn a_manager_of_table_files_counts_and_limits() {
    let dir = tempfile::tempdir().expect("a directory");
    let env = rocksdb_create_default_env();
    let manager = rocksdb_sst_file_manager_create(env);
    rocksdb_sst_file_manager_set_compaction_buffer_size(manager, 1000);
    rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(manager, 123);
    rocksdb_sst_file_manager_set_max_trash_db_ratio(manager, 12.5);
    let rate = rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager);
    assert_eq!(rate, 123);
    assert!(rocksdb_sst_file_manager_get_max_trash_db_ratio(manager) == 12.5);
    let options = options();
    rocksdb_options_set_sst_file_manager(options, manager);
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "a", "1");
    flush(db);
    let size = rocksdb_sst_file_manager_get_total_size(manager);
    assert!(size > 0);
    assert_eq!(rocksdb_sst_file_manager_get_total_trash_size(manager), 0);
    assert!(!rocksdb_sst_file_manager_is_max_allowed_space_reached(
        manager
    ));
    rocksdb_sst_file_manager_set_max_allowed_space_usage(manager, size);
    assert!(rocksdb_sst_file_manager_is_max_allowed_space_reached(
        manager
    ));
    assert!(rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(manager));
    rocksdb_sst_file_manager_destroy(manager);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_env_destroy(env);
}

#[test]
fn the_files_of_a_dropped_family_go_with_its_handle() {
    let dir = tempfile::tempdir().expect("a directory");
    let (options, at) = (options(), path(dir.path()));
    let db = fine(|e| rocksdb_open(options, at.as_ptr(), e));
    let tables = || {
        let names = fs::read_dir(dir.path()).expect("a directory");
        let names = names.map(|n| n.expect("an entry").file_name().into_string());
        names
            .filter(|n| n.as_ref().is_ok_and(|n| n.ends_with(".sst")))
            .count()
    };
    let write = rocksdb_writeoptions_create();
    let flush = rocksdb_flushoptions_create();
    for _ in 0..3 {
        let family = fine(|e| rocksdb_create_column_family(db, options, c"more".as_ptr(), e));
        let k = c"key".as_ptr();
        fine(|e| rocksdb_put_cf(db, write, family, k, 3, k, 3, e));
        fine(|e| rocksdb_flush_cf(db, flush, family, e));
        fine(|e| rocksdb_drop_column_family(db, family, e));
        assert_eq!(tables(), 1, "the handle reads it still");
        rocksdb_column_family_handle_destroy(family);
        // A job that ends at this moment may be about to delete it.
        let begun = Instant::now();
        while tables() > 0 {
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(30), "nobody reads it");
            std::thread::yield_now();
        }
    }
    // A handle that outlives the database is of no harm.
    let family = fine(|e| rocksdb_create_column_family(db, options, c"more".as_ptr(), e));
    fine(|e| rocksdb_drop_column_family(db, family, e));
    rocksdb_close(db);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(options);
}

#[test]
fn the_blob_cache_is_the_one_that_is_given() {
    for is_given in [true, false] {
        let dir = tempfile::tempdir().expect("a directory");
        let options = options();
        rocksdb_options_set_enable_blob_files(options, 1);
        let cache = rocksdb_cache_create_lru(1 << 20);
        rocksdb_options_set_blob_cache(options, cache);
        if !is_given {
            rocksdb_options_set_blob_cache(options, null_mut());
        }
        let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
        put(db, "a", "value in a blob file");
        flush(db);
        let before = rocksdb_cache_get_usage(cache);
        assert_eq!(get(db, "a").as_deref(), Some(&b"value in a blob file"[..]));
        let grew = rocksdb_cache_get_usage(cache) > before;
        assert_eq!(grew, is_given);
        rocksdb_close(db);
        rocksdb_cache_destroy(cache);
        rocksdb_options_destroy(options);
    }
}
