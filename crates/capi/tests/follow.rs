//! Secondary instances, updates, times to live and shared limits through the C functions.

mod common;

use common::{fine, told};
use rocksdb::*;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr::{null, null_mut};

fn c(path: &Path) -> CString {
    CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
}

fn at(s: &str) -> *const c_char {
    s.as_ptr().cast()
}

/// Runs `call`, which must report an error; its text.
fn refused<R>(call: impl FnOnce(*mut *mut c_char) -> R) -> String {
    let mut error = null_mut();
    call(&mut error);
    told(error).expect("an error")
}

struct Home {
    dir: tempfile::TempDir,
    options: *mut rocksdb_options_t,
    write: *mut rocksdb_writeoptions_t,
    read: *mut rocksdb_readoptions_t,
}

impl Home {
    fn new() -> Home {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        rocksdb_options_set_compression(options, 0);
        Home {
            dir: tempfile::tempdir().expect("a directory"),
            options,
            write: rocksdb_writeoptions_create(),
            read: rocksdb_readoptions_create(),
        }
    }

    fn path(&self, name: &str) -> CString {
        c(&self.dir.path().join(name))
    }

    fn put(&self, db: *mut rocksdb_t, key: &str, value: &str) {
        fine(|e| {
            rocksdb_put(
                db,
                self.write,
                at(key),
                key.len(),
                at(value),
                value.len(),
                e,
            )
        });
    }

    fn get(&self, db: *mut rocksdb_t, key: &str) -> Option<String> {
        let mut len = 0;
        let value = fine(|e| rocksdb_get(db, self.read, at(key), key.len(), &mut len, e));
        if value.is_null() {
            return None;
        }
        // SAFETY: the value has that many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len) }.to_vec();
        rocksdb_free(value.cast());
        Some(String::from_utf8(bytes).expect("UTF-8"))
    }

    fn flush(&self, db: *mut rocksdb_t) {
        let how = rocksdb_flushoptions_create();
        rocksdb_flushoptions_set_wait(how, 1);
        fine(|e| rocksdb_flush(db, how, e));
        rocksdb_flushoptions_destroy(how);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        rocksdb_options_destroy(self.options);
        rocksdb_writeoptions_destroy(self.write);
        rocksdb_readoptions_destroy(self.read);
    }
}

#[test]
fn a_secondary_follows_its_primary() {
    let home = Home::new();
    let path = home.path("db");
    let primary = fine(|e| rocksdb_open(home.options, path.as_ptr(), e));
    home.put(primary, "a", "1");
    let second_path = home.path("second");
    let second =
        fine(|e| rocksdb_open_as_secondary(home.options, path.as_ptr(), second_path.as_ptr(), e));
    assert_eq!(home.get(second, "a").as_deref(), Some("1"));
    home.put(primary, "a", "2");
    home.flush(primary);
    home.put(primary, "b", "3");
    assert_eq!(home.get(second, "a").as_deref(), Some("1"));
    fine(|e| rocksdb_try_catch_up_with_primary(second, e));
    assert_eq!(home.get(second, "a").as_deref(), Some("2"));
    assert_eq!(home.get(second, "b").as_deref(), Some("3"));
    let error = refused(|e| rocksdb_put(second, home.write, at("k"), 1, at("v"), 1, e));
    assert_eq!(
        error,
        "Not implemented: Not supported operation in secondary mode."
    );
    let error = refused(|e| rocksdb_try_catch_up_with_primary(primary, e));
    assert_eq!(
        error,
        "Not implemented: Supported only by secondary instance"
    );
    let names = [c"default".as_ptr(), c"absent".as_ptr()];
    let options = [home.options.cast_const(), home.options.cast_const()];
    let mut handles = [null_mut(); 2];
    let error = refused(|e| {
        rocksdb_open_as_secondary_column_families(
            home.options,
            path.as_ptr(),
            second_path.as_ptr(),
            2,
            names.as_ptr(),
            options.as_ptr(),
            handles.as_mut_ptr(),
            e,
        )
    });
    assert!(error.contains("Column family not found"), "{error}");
    assert!(refused(|e| rocksdb_try_catch_up_with_primary(null_mut(), e)).contains("NULL"));
    rocksdb_close(second);
    rocksdb_close(primary);
}

#[test]
fn updates_and_logs_are_listed() {
    let home = Home::new();
    rocksdb_options_set_WAL_ttl_seconds(home.options, 3600);
    let path = home.path("db");
    let db = fine(|e| rocksdb_open(home.options, path.as_ptr(), e));
    for n in 0..5 {
        home.put(db, &format!("{n}"), "value");
    }
    home.flush(db);
    home.put(db, "last", "value");
    let how = rocksdb_wal_readoptions_create();
    assert_eq!(rocksdb_wal_readoptions_get_verify_checksums(how), 1);
    let walk = fine(|e| rocksdb_get_updates_since(db, 2, how, e));
    let mut seen = Vec::new();
    while rocksdb_wal_iter_valid(walk) == 1 {
        let mut seq = 0;
        let batch = rocksdb_wal_iter_get_batch(walk, &mut seq);
        assert_eq!(rocksdb_writebatch_count(batch), 1);
        rocksdb_writebatch_destroy(batch);
        seen.push(seq);
        rocksdb_wal_iter_next(walk);
    }
    fine(|e| rocksdb_wal_iter_status(walk, e));
    assert_eq!(seen, [2, 3, 4, 5, 6]);
    rocksdb_wal_iter_destroy(walk);
    let error = refused(|e| rocksdb_get_updates_since(db, 7, how, e));
    assert_eq!(
        error,
        "NotFound: Requested sequence not yet written in the db"
    );
    rocksdb_wal_readoptions_destroy(how);

    let files = fine(|e| rocksdb_get_sorted_wal_files(db, e));
    assert_eq!(rocksdb_wal_files_count(files), 2);
    let text = |file| {
        // SAFETY: the text ends with NUL and lives as long as the file's handle.
        unsafe { CStr::from_ptr(rocksdb_wal_file_path_name(file)) }
            .to_string_lossy()
            .into_owned()
    };
    let (first, second) = (
        rocksdb_wal_files_get_wal_file(files, 0),
        rocksdb_wal_files_get_wal_file(files, 1),
    );
    assert!(rocksdb_wal_files_get_wal_file(files, 2).is_null());
    assert_eq!(
        (rocksdb_wal_file_type(first), rocksdb_wal_file_type(second)),
        (0, 1)
    );
    assert!(text(first).starts_with("/archive/") && text(second).ends_with(".log"));
    assert_eq!(rocksdb_wal_file_start_sequence(second), 6);
    assert!(rocksdb_wal_file_size_file_bytes(first) > 0);
    let current = fine(|e| rocksdb_get_current_wal_file(db, e));
    assert_eq!(
        rocksdb_wal_file_log_number(current),
        rocksdb_wal_file_log_number(second)
    );
    rocksdb_wal_file_destroy(current);
    rocksdb_wal_files_destroy(files);
    rocksdb_close(db);
}

#[test]
fn values_expire_by_family() {
    let home = Home::new();
    rocksdb_options_set_create_missing_column_families(home.options, 1);
    let path = home.path("db");
    let names = [c"default".as_ptr(), c"other".as_ptr()];
    let options = [home.options.cast_const(), home.options.cast_const()];
    let ttls: [c_int; 2] = [0, 1];
    let mut handles = [null_mut(); 2];
    let db = fine(|e| {
        rocksdb_open_column_families_with_ttl(
            home.options,
            path.as_ptr(),
            2,
            names.as_ptr(),
            options.as_ptr(),
            handles.as_mut_ptr(),
            ttls.as_ptr(),
            e,
        )
    });
    home.put(db, "kept", "1");
    fine(|e| rocksdb_put_cf(db, home.write, handles[1], at("gone"), 4, at("1"), 1, e));
    let more =
        fine(|e| rocksdb_create_column_family_with_ttl(db, home.options, c"more".as_ptr(), 5, e));
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let all = [handles[0], handles[1], more];
    let how = rocksdb_flushoptions_create();
    fine(|e| rocksdb_flush_cfs(db, how, all.as_ptr().cast_mut(), 3, e));
    rocksdb_flushoptions_destroy(how);
    let compact = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(compact, 2);
    for family in all {
        rocksdb_compact_range_cf_opt(db, family, compact, null(), 0, null(), 0);
    }
    rocksdb_compactoptions_destroy(compact);
    assert_eq!(home.get(db, "kept").as_deref(), Some("1"));
    let mut len = 0;
    let gone = fine(|e| rocksdb_get_cf(db, home.read, handles[1], at("gone"), 4, &mut len, e));
    assert!(gone.is_null());
    for family in all {
        rocksdb_column_family_handle_destroy(family);
    }
    rocksdb_close(db);
    // Without the mode the four bytes show; with it they do not.
    let path = home.path("plain");
    let db = fine(|e| rocksdb_open_with_ttl(home.options, path.as_ptr(), 100, e));
    home.put(db, "k", "value");
    assert_eq!(home.get(db, "k").as_deref(), Some("value"));
    rocksdb_close(db);
    let db = fine(|e| rocksdb_open(home.options, path.as_ptr(), e));
    fine(|e| rocksdb_get(db, home.read, at("k"), 1, &mut len, e));
    assert_eq!(len, 9);
    let error =
        refused(|e| rocksdb_create_column_family_with_ttl(db, home.options, c"x".as_ptr(), 1, e));
    assert!(error.starts_with("Invalid argument: "), "{error}");
    rocksdb_close(db);
}

#[test]
fn limits_are_shared_and_memory_is_told() {
    let home = Home::new();
    let cache = rocksdb_cache_create_lru(8 << 20);
    let buffers = rocksdb_write_buffer_manager_create_with_cache(4 << 20, cache, false);
    assert!(rocksdb_write_buffer_manager_enabled(buffers));
    assert!(rocksdb_write_buffer_manager_cost_to_cache(buffers));
    assert_eq!(rocksdb_write_buffer_manager_buffer_size(buffers), 4 << 20);
    let limiter = rocksdb_ratelimiter_create(100 << 20, 100_000, 10);
    rocksdb_options_set_write_buffer_manager(home.options, buffers);
    rocksdb_options_set_ratelimiter(home.options, limiter);
    rocksdb_ratelimiter_destroy(limiter);
    let (one, two) = (home.path("one"), home.path("two"));
    let one = fine(|e| rocksdb_open(home.options, one.as_ptr(), e));
    let two = fine(|e| rocksdb_open(home.options, two.as_ptr(), e));
    let value = "x".repeat(1000);
    for n in 0..1500 {
        home.put(one, &format!("{n}"), &value);
        home.put(two, &format!("{n}"), &value);
    }
    let usage = rocksdb_write_buffer_manager_memory_usage(buffers);
    assert!(usage >= 1 << 20, "{usage}");
    assert!(rocksdb_write_buffer_manager_mutable_memtable_memory_usage(buffers) <= usage);
    assert!(rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(buffers) > 0);
    assert!(rocksdb_cache_get_pinned_usage(cache) > 0);

    let consumers = rocksdb_memory_consumers_create();
    rocksdb_memory_consumers_add_db(consumers, one);
    rocksdb_memory_consumers_add_db(consumers, two);
    rocksdb_memory_consumers_add_cache(consumers, cache);
    let memory = fine(|e| rocksdb_approximate_memory_usage_create(consumers, e));
    assert!(rocksdb_approximate_memory_usage_get_mem_table_total(memory) > 0);
    assert!(rocksdb_approximate_memory_usage_get_mem_table_unflushed(memory) > 0);
    // What is charged, and the cache's own tables.
    assert!(
        rocksdb_approximate_memory_usage_get_cache_total(memory)
            > rocksdb_cache_get_usage(cache) as u64
    );
    let _readers = rocksdb_approximate_memory_usage_get_mem_table_readers_total(memory);
    rocksdb_approximate_memory_usage_destroy(memory);
    rocksdb_memory_consumers_destroy(consumers);

    rocksdb_abort_all_compactions(one);
    rocksdb_resume_all_compactions(one);
    rocksdb_write_buffer_manager_set_buffer_size(buffers, 300);
    assert_eq!(rocksdb_write_buffer_manager_buffer_size(buffers), 300);
    rocksdb_write_buffer_manager_set_allow_stall(buffers, true);
    rocksdb_write_buffer_manager_set_allow_stall(buffers, false);
    rocksdb_close(one);
    rocksdb_close(two);
    // The options hold the manager as well.
    rocksdb_options_set_write_buffer_manager(home.options, null_mut());
    assert_eq!(rocksdb_write_buffer_manager_memory_usage(buffers), 0);
    rocksdb_write_buffer_manager_destroy(buffers);
    rocksdb_cache_destroy(cache);
    for made in [
        rocksdb_ratelimiter_create_auto_tuned(1 << 20, 100_000, 10),
        rocksdb_ratelimiter_create_with_mode(1 << 20, 100_000, 10, 2, true),
    ] {
        assert!(!made.is_null());
        rocksdb_ratelimiter_destroy(made);
    }
}
