//! Ingestion, import, lists of files and ranges through the C functions.

mod common;

use common::{fine, told};
use rocksdb::*;
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::{null, null_mut};

fn c(path: &Path) -> CString {
    CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
}

/// Runs `call`, which must report an error that has `what` in it.
fn refused(what: &str, call: impl FnOnce(*mut *mut c_char)) {
    let mut error = null_mut();
    call(&mut error);
    let text = told(error).unwrap_or_else(|| panic!("no error: {what}"));
    assert!(text.contains(what), "{text}");
}

fn at(s: &str) -> *const c_char {
    s.as_ptr().cast()
}

fn string(text: *const c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the text ends with NUL.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

fn string_of(at: *const c_char, len: usize) -> String {
    // SAFETY: that many bytes are there.
    let bytes = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), len) };
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn options() -> *mut rocksdb_options_t {
    let options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, 0);
    options
}

fn write_file(path: &Path, pairs: &[(&str, &str)]) -> u64 {
    let (env, options) = (rocksdb_envoptions_create(), options());
    let writer = rocksdb_sstfilewriter_create(env, options);
    refused("File is not opened", |e| {
        rocksdb_sstfilewriter_put(writer, at("a"), 1, at("b"), 1, e);
    });
    fine(|e| rocksdb_sstfilewriter_open(writer, c(path).as_ptr(), e));
    for (k, v) in pairs {
        fine(|e| rocksdb_sstfilewriter_put(writer, at(k), k.len(), at(v), v.len(), e));
    }
    let (k, v) = pairs[0];
    refused("Keys must be added in strict ascending order.", |e| {
        rocksdb_sstfilewriter_add(writer, at(k), k.len(), at(v), v.len(), e);
    });
    fine(|e| rocksdb_sstfilewriter_finish(writer, e));
    let mut size = 0;
    rocksdb_sstfilewriter_file_size(writer, &mut size);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env);
    rocksdb_options_destroy(options);
    size
}

fn get(db: *mut rocksdb_t, family: *mut rocksdb_column_family_handle_t, key: &str) -> String {
    let read = rocksdb_readoptions_create();
    let mut len = 0;
    let value = fine(|e| rocksdb_get_cf(db, read, family, at(key), key.len(), &mut len, e));
    rocksdb_readoptions_destroy(read);
    if value.is_null() {
        return "(none)".into();
    }
    let text = string_of(value, len);
    rocksdb_free(value.cast());
    text
}

struct Base {
    dir: tempfile::TempDir,
    options: *mut rocksdb_options_t,
    db: *mut rocksdb_t,
    family: *mut rocksdb_column_family_handle_t,
}

fn open() -> Base {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    let path = c(&dir.path().join("db"));
    let db = fine(|e| rocksdb_open(options, path.as_ptr(), e));
    let family = rocksdb_get_default_column_family_handle(db);
    Base {
        dir,
        options,
        db,
        family,
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        rocksdb_column_family_handle_destroy(self.family);
        rocksdb_close(self.db);
        rocksdb_options_destroy(self.options);
    }
}

fn ingest(base: &Base, path: &Path, moving: bool) {
    let opt = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(opt, u8::from(moving));
    let is_moving = rocksdb_ingestexternalfileoptions_get_move_files(opt);
    assert_eq!(is_moving, u8::from(moving));
    let path = c(path);
    let list = [path.as_ptr()];
    fine(|e| rocksdb_ingest_external_file(base.db, list.as_ptr(), 1, opt, e));
    rocksdb_ingestexternalfileoptions_destroy(opt);
}

#[test]
fn a_file_is_written_and_taken_in() {
    let base = open();
    let file = base.dir.path().join("a.sst");
    let size = write_file(&file, &[("a", "1"), ("b", "2")]);
    assert_eq!(size, std::fs::metadata(&file).expect("is there").len());
    ingest(&base, &file, true);
    assert!(!file.exists());
    assert_eq!(get(base.db, base.family, "b"), "2");
    let opt = rocksdb_ingestexternalfileoptions_create();
    let missing = c(&base.dir.path().join("missing.sst"));
    let list = [missing.as_ptr()];
    refused("IO error", |e| {
        rocksdb_ingest_external_file_cf(base.db, base.family, list.as_ptr(), 1, opt, e);
    });
    rocksdb_ingestexternalfileoptions_destroy(opt);
}

#[test]
fn live_files_are_listed_and_imported() {
    let base = open();
    let sets = [
        ("a.sst", [("a", "1"), ("b", "2")]),
        ("c.sst", [("c", "3"), ("d", "4")]),
    ];
    for (name, pairs) in sets {
        let file = base.dir.path().join(name);
        write_file(&file, &pairs);
        ingest(&base, &file, false);
    }
    let files = rocksdb_livefiles(base.db);
    assert_eq!(rocksdb_livefiles_count(files), 2);
    let family = rocksdb_livefiles_column_family_name(files, 0);
    assert_eq!(string(family), "default");
    let name = string(rocksdb_livefiles_name(files, 0));
    assert!(name.starts_with('/') && name.ends_with(".sst"), "{name}");
    let directory = string(rocksdb_livefiles_directory(files, 0));
    assert_eq!(Path::new(&directory), base.dir.path().join("db"));
    assert_eq!(rocksdb_livefiles_level(files, 0), 6);
    assert_eq!(rocksdb_livefiles_entries(files, 0), 2);
    assert_eq!(rocksdb_livefiles_deletions(files, 0), 0);
    let mut len = 0;
    let key = rocksdb_livefiles_largestkey(files, 1, &mut len);
    assert_eq!((string_of(key, len), len), ("d".to_owned(), 1));
    assert!(rocksdb_livefiles_name(files, 2).is_null());
    assert!(rocksdb_livefiles_name(files, -1).is_null());

    // A list put together by hand, as a program that copied the files would.
    let list = rocksdb_livefiles_create();
    for i in 0..2 {
        let file = rocksdb_livefile_create();
        let family = rocksdb_livefiles_column_family_name(files, i);
        rocksdb_livefile_set_column_family_name(file, family);
        rocksdb_livefile_set_level(file, rocksdb_livefiles_level(files, i));
        rocksdb_livefile_set_name(file, rocksdb_livefiles_name(files, i));
        rocksdb_livefile_set_directory(file, rocksdb_livefiles_directory(files, i));
        rocksdb_livefile_set_size(file, rocksdb_livefiles_size(files, i));
        rocksdb_livefile_set_smallest_seqno(file, rocksdb_livefiles_smallest_seqno(files, i));
        rocksdb_livefile_set_largest_seqno(file, rocksdb_livefiles_largest_seqno(files, i));
        rocksdb_livefiles_add(list, file);
    }
    rocksdb_livefiles_destroy(files);
    let metadata = rocksdb_export_import_files_metadata_create();
    let order = c"leveldb.BytewiseComparator";
    rocksdb_export_import_files_metadata_set_db_comparator_name(metadata, order.as_ptr());
    rocksdb_export_import_files_metadata_set_files(metadata, list);
    let again = rocksdb_export_import_files_metadata_get_files(metadata);
    assert_eq!(rocksdb_livefiles_count(again), 2);
    rocksdb_livefiles_destroy(again);

    let how = rocksdb_import_column_family_options_create();
    let (db, options, name) = (base.db, base.options, c"new".as_ptr());
    let import = |e| rocksdb_create_column_family_with_import(db, options, name, how, metadata, e);
    let family = fine(import);
    assert_eq!(get(base.db, family, "a"), "1");
    assert_eq!(get(base.db, family, "d"), "4");
    rocksdb_column_family_handle_destroy(family);
    refused("already exists", |e| assert!(import(e).is_null()));
    rocksdb_import_column_family_options_destroy(how);
    rocksdb_export_import_files_metadata_destroy(metadata);
}

#[test]
fn metadata_sizes_and_ranges() {
    let base = open();
    let file = base.dir.path().join("a.sst");
    write_file(&file, &[("a", "1"), ("b", "2")]);
    ingest(&base, &file, false);
    let meta = rocksdb_get_column_family_metadata(base.db);
    assert_eq!(rocksdb_column_family_metadata_get_file_count(meta), 1);
    assert_eq!(rocksdb_column_family_metadata_get_level_count(meta), 7);
    let level = rocksdb_column_family_metadata_get_level_metadata(meta, 6);
    assert_eq!(rocksdb_level_metadata_get_level(level), 6);
    assert!(rocksdb_column_family_metadata_get_level_metadata(meta, 7).is_null());
    let file = rocksdb_level_metadata_get_sst_file_metadata(level, 0);
    let mut len = 0;
    let key = rocksdb_sst_file_metadata_get_smallestkey(file, &mut len);
    assert_eq!(string_of(key, len), "a");
    rocksdb_free(key.cast());
    let name = rocksdb_sst_file_metadata_get_relative_filename(file);
    assert!(string(name).ends_with(".sst"));
    rocksdb_free(name.cast());
    rocksdb_sst_file_metadata_destroy(file);
    rocksdb_level_metadata_destroy(level);
    rocksdb_column_family_metadata_destroy(meta);
    let only = rocksdb_column_family_metadata_options_create();
    assert_eq!(rocksdb_column_family_metadata_options_get_level(only), -1);
    rocksdb_column_family_metadata_options_set_start_key(only, at("x"), 1);
    let meta = rocksdb_get_column_family_metadata_cf_with_options(base.db, base.family, only);
    assert_eq!(rocksdb_column_family_metadata_get_file_count(meta), 0);
    rocksdb_column_family_metadata_destroy(meta);
    rocksdb_column_family_metadata_options_destroy(only);

    let (starts, limits, lens) = ([at("a"), at("x")], [at("z"), at("z")], [1usize, 1]);
    let mut sizes = [7u64; 2];
    let (s, l, n) = (starts.as_ptr(), limits.as_ptr(), lens.as_ptr());
    fine(|e| rocksdb_approximate_sizes(base.db, 2, s, n, l, n, sizes.as_mut_ptr(), e));
    assert!(sizes[0] > 0 && sizes[1] == 0, "{sizes:?}");
    refused("Invalid options", |e| {
        let out = sizes.as_mut_ptr();
        rocksdb_approximate_sizes_cf_with_flags(base.db, base.family, 2, s, n, l, n, 0, out, e);
    });
    fine(|e| rocksdb_suggest_compact_range(base.db, null(), 0, null(), 0, e));
    fine(|e| rocksdb_delete_file_in_range(base.db, at("a"), 1, at("b"), 1, e));
    assert_eq!(get(base.db, base.family, "a"), "(none)");
}

#[test]
fn named_files_are_compacted() {
    let base = open();
    let file = base.dir.path().join("a.sst");
    write_file(&file, &[("a", "1"), ("b", "2")]);
    ingest(&base, &file, false);
    let files = rocksdb_livefiles(base.db);
    let list = [rocksdb_livefiles_name(files, 0)];
    let options = rocksdb_compaction_options_create();
    rocksdb_compaction_options_set_output_file_size_limit(options, 1 << 20);
    let canceled = rocksdb_compaction_options_canceled_create();
    rocksdb_compaction_options_canceled_set(canceled, 1);
    rocksdb_compaction_options_set_canceled(options, canceled);
    let info = rocksdb_compactionjobinfo_create();
    let (mut names, mut count) = (null_mut(), 0);
    let mut compact = |e| {
        let (n, c) = (&mut names, &mut count);
        rocksdb_compact_files(base.db, options, list.as_ptr(), 1, 6, -1, n, c, info, e);
    };
    refused("canceled", &mut compact);
    rocksdb_compaction_options_canceled_set(canceled, 0);
    fine(&mut compact);
    assert_eq!(count, 1);
    assert!(rocksdb_compactionjobinfo_job_id(info) > 0);
    assert_eq!(rocksdb_compactionjobinfo_output_level(info), 6);
    // SAFETY: one name was returned.
    let name = string(unsafe { *names });
    assert!(Path::new(&name).exists(), "{name}");
    rocksdb_compact_files_output_file_names_destroy(names, count);
    // The options may outlive the flag's owner.
    rocksdb_compaction_options_canceled_destroy(canceled);
    rocksdb_compaction_options_destroy(options);
    rocksdb_compactionjobinfo_destroy(info);
    rocksdb_livefiles_destroy(files);
    assert_eq!(get(base.db, base.family, "b"), "2");
}

#[test]
fn null_is_an_error_and_nothing_worse() {
    refused("NULL", |e| {
        rocksdb_ingest_external_file(null_mut(), null(), 0, null(), e);
    });
    refused("NULL", |e| rocksdb_sstfilewriter_finish(null_mut(), e));
    refused("NULL", |e| {
        rocksdb_create_column_family_with_import(
            null_mut(),
            null_mut(),
            null(),
            null_mut(),
            null_mut(),
            e,
        );
    });
    assert!(rocksdb_livefiles(null_mut()).is_null());
    assert_eq!(rocksdb_livefiles_count(null()), 0);
    rocksdb_livefiles_add(null_mut(), null_mut());
    assert!(rocksdb_get_column_family_metadata(null_mut()).is_null());
    let writer = rocksdb_sstfilewriter_create(null(), null());
    refused("NULL", |e| {
        rocksdb_sstfilewriter_open(writer, c"x".as_ptr(), e);
    });
    rocksdb_sstfilewriter_destroy(writer);
}
