//! Calls that go on working in this library where RocksDB 11.8.1 fails, or fails for good. Each was
//! found by comparing the two libraries call by call; `spec/differences.md` has the list.

mod common;

use common::{fine, told};
use rocksdb::*;
use std::cmp::Ordering;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// Runs `call`, which must report an error that begins so.
fn refused<R>(kind: &str, call: impl FnOnce(*mut *mut c_char) -> R) {
    let mut error = null_mut();
    call(&mut error);
    let text = told(error).unwrap_or_else(|| panic!("no error: {kind}"));
    assert!(text.starts_with(kind), "{text}");
}

fn at(text: &[u8]) -> *const c_char {
    text.as_ptr().cast()
}

/// A database with default options but for what a test sets.
struct Home {
    dir: tempfile::TempDir,
    options: *mut rocksdb_options_t,
    write: *mut rocksdb_writeoptions_t,
    read: *mut rocksdb_readoptions_t,
    flush: *mut rocksdb_flushoptions_t,
    db: *mut rocksdb_t,
}

impl Home {
    fn new(set: impl FnOnce(*mut rocksdb_options_t)) -> Home {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        rocksdb_options_set_compression(options, 0);
        set(options);
        let mut home = Home {
            dir: tempfile::tempdir().expect("a directory"),
            options,
            write: rocksdb_writeoptions_create(),
            read: rocksdb_readoptions_create(),
            flush: rocksdb_flushoptions_create(),
            db: null_mut(),
        };
        home.db = fine(|e| rocksdb_open(options, home.path("db").as_ptr(), e));
        home
    }

    fn path(&self, name: &str) -> CString {
        let path = self.dir.path().join(name);
        CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        fine(|e| {
            let (k, v) = (at(key), at(value));
            rocksdb_put(self.db, self.write, k, key.len(), v, value.len(), e);
        });
    }

    fn get_from(&self, db: *mut rocksdb_t, key: &[u8]) -> Option<Vec<u8>> {
        let mut len = 0;
        let value = fine(|e| rocksdb_get(db, self.read, at(key), key.len(), &mut len, e));
        if value.is_null() {
            return None;
        }
        // SAFETY: the value has that many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len) }.to_vec();
        rocksdb_free(value.cast());
        Some(bytes)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get_from(self.db, key)
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], error: *mut *mut c_char) {
        let family = rocksdb_get_default_column_family_handle(self.db);
        let (from, to) = (at(begin), at(end));
        let (from_len, to_len) = (begin.len(), end.len());
        rocksdb_delete_range_cf(
            self.db, self.write, family, from, from_len, to, to_len, error,
        );
        rocksdb_column_family_handle_destroy(family);
    }

    fn flush(&self) {
        fine(|e| rocksdb_flush(self.db, self.flush, e));
    }

    fn family(&self, name: &CStr) -> *mut rocksdb_column_family_handle_t {
        fine(|e| rocksdb_create_column_family(self.db, self.options, name.as_ptr(), e))
    }

    fn number(&self, property: &CStr) -> u64 {
        let mut value = 0;
        assert_eq!(
            rocksdb_property_int(self.db, property.as_ptr(), &mut value),
            0
        );
        value
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        rocksdb_close(self.db);
        rocksdb_options_destroy(self.options);
        rocksdb_writeoptions_destroy(self.write);
        rocksdb_readoptions_destroy(self.read);
        rocksdb_flushoptions_destroy(self.flush);
    }
}

#[test]
fn a_range_whose_ends_are_swapped_stops_no_other_write() {
    let home = Home::new(|_| {});
    home.put(b"m", b"1");
    refused("Invalid argument: ", |e| home.delete_range(b"z", b"a", e));
    home.put(b"n", b"2");
    let batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, at(b"o"), 1, at(b"3"), 1);
    rocksdb_writebatch_delete_range(batch, at(b"z"), 1, at(b"a"), 1);
    refused("Invalid argument: ", |e| {
        rocksdb_write(home.db, home.write, batch, e)
    });
    rocksdb_writebatch_destroy(batch);
    assert_eq!(
        home.get(b"o"),
        None,
        "a batch is written whole or not at all"
    );
    home.put(b"p", b"4");
    home.flush();
    for (key, value) in [(b"m", b"1"), (b"n", b"2"), (b"p", b"4")] {
        assert_eq!(home.get(key).as_deref(), Some(&value[..]));
    }
}

#[test]
fn a_batch_of_garbage_stops_no_other_write() {
    let home = Home::new(|_| {});
    home.put(b"before", b"1");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for length in 0..64 {
        let garbage: Vec<u8> = (0..length)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state % 7) as u8
            })
            .collect();
        let batch = rocksdb_writebatch_create_from(at(&garbage), garbage.len());
        if batch.is_null() {
            continue;
        }
        let mut error = null_mut();
        rocksdb_write(home.db, home.write, batch, &mut error);
        // Some bytes are a batch: twelve zeroes are an empty one.
        let _ = told(error);
        rocksdb_writebatch_destroy(batch);
        home.put(b"after", &[length as u8]);
        assert_eq!(home.get(b"after"), Some(vec![length as u8]));
    }
    assert_eq!(home.get(b"before").as_deref(), Some(&b"1"[..]));
    home.flush();
}

#[test]
fn a_write_to_a_dropped_family_stops_no_other_write() {
    let home = Home::new(|_| {});
    let family = home.family(c"gone");
    fine(|e| rocksdb_put_cf(home.db, home.write, family, at(b"k"), 1, at(b"v"), 1, e));
    fine(|e| rocksdb_drop_column_family(home.db, family, e));
    refused("Column family dropped: ", |e| {
        rocksdb_flush_cf(home.db, home.flush, family, e);
    });
    refused("Invalid argument: ", |e| {
        rocksdb_put_cf(home.db, home.write, family, at(b"k"), 1, at(b"v"), 1, e);
    });
    home.put(b"k", b"2");
    assert_eq!(home.get(b"k").as_deref(), Some(&b"2"[..]));
    rocksdb_column_family_handle_destroy(family);
}

extern "C" fn nothing(_: *mut c_void) {}

extern "C" fn name(_: *mut c_void) -> *const c_char {
    c"steady.Reverse".as_ptr()
}

extern "C" fn compare(
    _: *mut c_void,
    a: *const c_char,
    a_len: usize,
    b: *const c_char,
    b_len: usize,
) -> c_int {
    let bytes = |data: *const c_char, len: usize| match len {
        0 => &[][..],
        // SAFETY: keys come with their lengths.
        _ => unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) },
    };
    match bytes(b, b_len).cmp(bytes(a, a_len)) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

#[test]
fn ranges_deleted_in_an_own_order_are_backed_up() {
    let order = rocksdb_comparator_create(null_mut(), Some(nothing), Some(compare), Some(name));
    let home = Home::new(|options| rocksdb_options_set_comparator(options, order));
    for key in 0..100u8 {
        home.put(&[key], b"value");
    }
    home.flush();
    fine(|e| home.delete_range(&[60], &[20], e));
    home.flush();
    let place = home.path("backups");
    let engine = fine(|e| rocksdb_backup_engine_open(home.options, place.as_ptr(), e));
    fine(|e| rocksdb_backup_engine_create_new_backup_flush(engine, home.db, 1, e));
    fine(|e| rocksdb_backup_engine_verify_backup(engine, 1, e));
    let (to, how) = (home.path("restored"), rocksdb_restore_options_create());
    fine(|e| {
        let to = to.as_ptr();
        rocksdb_backup_engine_restore_db_from_latest_backup(engine, to, to, how, e);
    });
    rocksdb_restore_options_destroy(how);
    rocksdb_backup_engine_close(engine);
    let restored = fine(|e| rocksdb_open(home.options, to.as_ptr(), e));
    for key in 0..100u8 {
        let is_there = home.get_from(restored, &[key]).is_some();
        assert_eq!(is_there, !(21..=60).contains(&key), "{key}");
    }
    rocksdb_close(restored);
    drop(home);
    rocksdb_comparator_destroy(order);
}

#[test]
fn a_secondary_catches_up_with_a_dropped_family() {
    let home = Home::new(|_| {});
    let family = home.family(c"gone");
    fine(|e| rocksdb_put_cf(home.db, home.write, family, at(b"k"), 1, at(b"v"), 1, e));
    home.put(b"a", b"1");
    let names = [c"default".as_ptr(), c"gone".as_ptr()];
    let options = [home.options.cast_const(); 2];
    let mut handles = [null_mut(); 2];
    let (path, side) = (home.path("db"), home.path("side"));
    let second = fine(|e| {
        rocksdb_open_as_secondary_column_families(
            home.options,
            path.as_ptr(),
            side.as_ptr(),
            2,
            names.as_ptr(),
            options.as_ptr(),
            handles.as_mut_ptr(),
            e,
        )
    });
    fine(|e| rocksdb_drop_column_family(home.db, family, e));
    home.put(b"a", b"2");
    home.flush();
    home.put(b"b", b"3");
    fine(|e| rocksdb_try_catch_up_with_primary(second, e));
    assert_eq!(home.get_from(second, b"a").as_deref(), Some(&b"2"[..]));
    assert_eq!(home.get_from(second, b"b").as_deref(), Some(&b"3"[..]));
    for handle in handles {
        rocksdb_column_family_handle_destroy(handle);
    }
    rocksdb_close(second);
    rocksdb_column_family_handle_destroy(family);
}

#[test]
fn a_reader_opens_beside_a_writer() {
    let home = Home::new(|options| rocksdb_options_set_write_buffer_size(options, 64 << 10));
    let path = home.path("db");
    for round in 0..20u32 {
        for key in 0..200u32 {
            let (key, value) = (key.to_be_bytes(), vec![round as u8; 500]);
            home.put(&key, &value);
        }
        rocksdb_compact_range(home.db, null(), 0, null(), 0);
        home.put(b"last", &round.to_be_bytes());
        let reader = fine(|e| rocksdb_open_for_read_only(home.options, path.as_ptr(), 0, e));
        assert_eq!(
            home.get_from(reader, b"last"),
            Some(round.to_be_bytes().to_vec())
        );
        let value = home.get_from(reader, &7u32.to_be_bytes());
        assert_eq!(value, Some(vec![round as u8; 500]));
        refused("Not implemented: ", |e| {
            rocksdb_put(reader, home.write, at(b"k"), 1, at(b"v"), 1, e);
        });
        rocksdb_close(reader);
    }
}

#[test]
fn a_tailing_iterator_goes_over_deleted_ranges() {
    let home = Home::new(|_| {});
    for key in [b"a", b"b", b"c"] {
        home.put(key, b"1");
    }
    home.flush();
    fine(|e| home.delete_range(b"a", b"c", e));
    let read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_tailing(read, 1);
    let iterator = rocksdb_create_iterator(home.db, read);
    rocksdb_iter_seek_to_first(iterator);
    assert_eq!(rocksdb_iter_valid(iterator), 1);
    let mut len = 0;
    let key = rocksdb_iter_key(iterator, &mut len);
    // SAFETY: a valid iterator shows its key until it moves.
    assert_eq!((unsafe { key.cast::<u8>().read() }, len), (b'c', 1));
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(read);
}

#[test]
fn a_family_with_blobs_is_exported_once_they_are_back_in_tables() {
    let home = Home::new(|options| rocksdb_options_set_enable_blob_files(options, 1));
    let family = home.family(c"blobs");
    for key in 0..50u8 {
        let (key, value) = ([key], vec![key; 300]);
        fine(|e| {
            rocksdb_put_cf(home.db, home.write, family, at(&key), 1, at(&value), 300, e);
        });
    }
    fine(|e| rocksdb_flush_cf(home.db, home.flush, family, e));
    let checkpoint = fine(|e| rocksdb_checkpoint_object_create(home.db, e));
    let place = home.path("export");
    // Its tables name values in files that an export has not.
    let mut error = null_mut();
    let to = place.as_ptr();
    let none = rocksdb_checkpoint_export_column_family(checkpoint, family, to, &mut error);
    assert!(none.is_null() && !error.is_null());
    rocksdb_free(error.cast());
    let (keys, values) = ([c"enable_blob_files".as_ptr()], [c"false".as_ptr()]);
    fine(|e| rocksdb_set_options_cf(home.db, family, 1, keys.as_ptr(), values.as_ptr(), e));
    rocksdb_compact_range_cf(home.db, family, null(), 0, null(), 0);
    let files =
        fine(|e| rocksdb_checkpoint_export_column_family(checkpoint, family, place.as_ptr(), e));
    let how = rocksdb_import_column_family_options_create();
    let (options, name) = (home.options, c"copy".as_ptr());
    let copy =
        fine(|e| rocksdb_create_column_family_with_import(home.db, options, name, how, files, e));
    for key in 0..50u8 {
        let mut len = 0;
        let k = [key];
        let value = fine(|e| rocksdb_get_cf(home.db, home.read, copy, at(&k), 1, &mut len, e));
        assert_eq!(len, 300);
        // SAFETY: the value has that many bytes.
        assert_eq!(unsafe { value.cast::<u8>().read() }, key);
        rocksdb_free(value.cast());
    }
    rocksdb_import_column_family_options_destroy(how);
    rocksdb_export_import_files_metadata_destroy(files);
    rocksdb_checkpoint_object_destroy(checkpoint);
    rocksdb_column_family_handle_destroy(copy);
    rocksdb_column_family_handle_destroy(family);
}

#[test]
fn what_may_exist_has_no_value_that_is_not_there() {
    let home = Home::new(|options| rocksdb_options_set_max_open_files(options, 20));
    for key in 0..100u8 {
        home.put(&[key], &[key; 20]);
    }
    home.flush();
    for key in 0..200u8 {
        let (mut value, mut len, mut found) = (null_mut(), 0, 0);
        let k = [key];
        let (to, size) = (&mut value, &mut len);
        let read = home.read;
        let may = rocksdb_key_may_exist(home.db, read, at(&k), 1, to, size, null(), 0, &mut found);
        assert!(may == 1 || key >= 100, "{key} is there");
        if found == 1 && may == 1 {
            assert_eq!(len, 20, "{key}");
        }
        rocksdb_free(value.cast());
    }
}

#[test]
fn a_released_snapshot_is_gone_also_where_read_options_name_it() {
    let home = Home::new(|_| {});
    home.put(b"k", b"1");
    let snapshot = rocksdb_create_snapshot(home.db);
    let read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(read, snapshot);
    let iterator = rocksdb_create_iterator(home.db, read);
    home.put(b"k", b"2");
    assert_eq!(home.number(c"rocksdb.num-snapshots"), 1);
    assert_eq!(home.number(c"rocksdb.oldest-snapshot-sequence"), 1);
    rocksdb_release_snapshot(home.db, snapshot);
    assert_eq!(home.number(c"rocksdb.num-snapshots"), 0);
    assert_eq!(home.number(c"rocksdb.oldest-snapshot-sequence"), 0);
    let mut len = 0;
    refused("Invalid argument: ", |e| {
        rocksdb_get(home.db, read, at(b"k"), 1, &mut len, e)
    });
    // What was made of it before goes on.
    rocksdb_compact_range(home.db, null(), 0, null(), 0);
    rocksdb_iter_seek_to_first(iterator);
    let value = rocksdb_iter_value(iterator, &mut len);
    // SAFETY: a valid iterator shows its value until it moves.
    assert_eq!((unsafe { value.cast::<u8>().read() }, len), (b'1', 1));
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(read);
}
