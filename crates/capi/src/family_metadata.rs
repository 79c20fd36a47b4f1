//! The parts of a family: its levels and their files.
//!
//! Levels and files are handles of their own that hold a copy; RocksDB's rule to destroy them first
//! is not needed.

use crate::boundary::{
    attempt, bytes, destroy, exclusive, give, malloc_bytes, malloc_text, put, quiet, shared,
};
use crate::db::{with_default, with_family};
use crate::*;
use esker::{FamilyMeta, FamilyMetaOptions, LevelMeta, LiveFileMeta};
use std::ffi::{c_char, c_int};
use std::ptr;

/// A family's levels.
pub struct rocksdb_column_family_metadata_t {
    meta: FamilyMeta,
}

/// A level's files.
pub struct rocksdb_level_metadata_t {
    meta: LevelMeta,
}

/// A table file.
pub struct rocksdb_sst_file_metadata_t {
    pub(crate) meta: LiveFileMeta,
}

/// Which files are of interest.
#[derive(Default)]
pub struct rocksdb_column_family_metadata_options_t {
    options: FamilyMetaOptions,
}

fn all(handle: *const rocksdb_column_family_metadata_options_t) -> FamilyMetaOptions {
    shared(handle)
        .map(|o| o.options.clone())
        .unwrap_or_default()
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_column_family_metadata(
    db: *mut rocksdb_t,
) -> *mut rocksdb_column_family_metadata_t {
    rocksdb_get_column_family_metadata_with_options(db, ptr::null())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_column_family_metadata_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_column_family_metadata_options_t,
) -> *mut rocksdb_column_family_metadata_t {
    attempt(ptr::null_mut(), || {
        let (db, family) = with_default(db)?;
        let meta = db.family_metadata_opt(family, &all(options));
        Ok(give(rocksdb_column_family_metadata_t { meta }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_column_family_metadata_cf(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_column_family_metadata_t {
    rocksdb_get_column_family_metadata_cf_with_options(db, column_family, ptr::null())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_column_family_metadata_cf_with_options(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_column_family_metadata_options_t,
) -> *mut rocksdb_column_family_metadata_t {
    attempt(ptr::null_mut(), || {
        let (db, family) = with_family(db, column_family)?;
        let meta = db.family_metadata_opt(family, &all(options));
        Ok(give(rocksdb_column_family_metadata_t { meta }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_options_create()
-> *mut rocksdb_column_family_metadata_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_column_family_metadata_options_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_options_destroy(
    options: *mut rocksdb_column_family_metadata_options_t,
) {
    destroy(options);
}

/// A key is copied; NULL takes it away.
fn copied(key: *const c_char, len: usize) -> Option<Vec<u8>> {
    (!key.is_null()).then(|| bytes(key, len).to_vec())
}

fn shown(key: Option<&Vec<u8>>, len: *mut usize) -> *const c_char {
    put(len, key.map_or(0, Vec::len));
    key.map_or(ptr::null(), |k| k.as_ptr().cast())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_options_set_start_key(
    options: *mut rocksdb_column_family_metadata_options_t,
    key: *const c_char,
    key_len: usize,
) {
    attempt((), || {
        exclusive(options)?.options.start = copied(key, key_len);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_options_get_start_key(
    options: *const rocksdb_column_family_metadata_options_t,
    key_len: *mut usize,
) -> *const c_char {
    attempt(ptr::null(), || {
        Ok(shown(shared(options)?.options.start.as_ref(), key_len))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_options_set_end_key(
    options: *mut rocksdb_column_family_metadata_options_t,
    key: *const c_char,
    key_len: usize,
) {
    attempt((), || {
        exclusive(options)?.options.end = copied(key, key_len);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_options_get_end_key(
    options: *const rocksdb_column_family_metadata_options_t,
    key_len: *mut usize,
) -> *const c_char {
    attempt(ptr::null(), || {
        Ok(shown(shared(options)?.options.end.as_ref(), key_len))
    })
}

/// A negative level stands for all.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_options_set_level(
    opt: *mut rocksdb_column_family_metadata_options_t,
    v: c_int,
) {
    attempt((), || {
        exclusive(opt)?.options.level = (v >= 0).then(|| u8::try_from(v).unwrap_or(u8::MAX));
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_options_get_level(
    opt: *mut rocksdb_column_family_metadata_options_t,
) -> c_int {
    attempt(-1, || {
        Ok(shared(opt)?.options.level.map_or(-1, c_int::from))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_destroy(
    cf_meta: *mut rocksdb_column_family_metadata_t,
) {
    destroy(cf_meta);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_get_size(
    cf_meta: *mut rocksdb_column_family_metadata_t,
) -> u64 {
    attempt(0, || Ok(shared(cf_meta)?.meta.size))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_get_file_count(
    cf_meta: *mut rocksdb_column_family_metadata_t,
) -> usize {
    attempt(0, || Ok(shared(cf_meta)?.meta.file_count))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_get_name(
    cf_meta: *mut rocksdb_column_family_metadata_t,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        Ok(malloc_text(&shared(cf_meta)?.meta.name))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_get_level_count(
    cf_meta: *mut rocksdb_column_family_metadata_t,
) -> usize {
    attempt(0, || Ok(shared(cf_meta)?.meta.levels.len()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_get_level_metadata(
    cf_meta: *mut rocksdb_column_family_metadata_t,
    i: usize,
) -> *mut rocksdb_level_metadata_t {
    attempt(ptr::null_mut(), || {
        let level = shared(cf_meta)?.meta.levels.get(i).cloned();
        Ok(level.map_or(ptr::null_mut(), |meta| {
            give(rocksdb_level_metadata_t { meta })
        }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_level_metadata_destroy(level_meta: *mut rocksdb_level_metadata_t) {
    destroy(level_meta);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_level_metadata_get_level(
    level_meta: *mut rocksdb_level_metadata_t,
) -> c_int {
    attempt(0, || Ok(c_int::from(shared(level_meta)?.meta.level)))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_level_metadata_get_size(
    level_meta: *mut rocksdb_level_metadata_t,
) -> u64 {
    attempt(0, || Ok(shared(level_meta)?.meta.size))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_level_metadata_get_file_count(
    level_meta: *mut rocksdb_level_metadata_t,
) -> usize {
    attempt(0, || Ok(shared(level_meta)?.meta.files.len()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_level_metadata_get_sst_file_metadata(
    level_meta: *mut rocksdb_level_metadata_t,
    i: usize,
) -> *mut rocksdb_sst_file_metadata_t {
    attempt(ptr::null_mut(), || {
        let file = shared(level_meta)?.meta.files.get(i).cloned();
        Ok(file.map_or(ptr::null_mut(), |meta| {
            give(rocksdb_sst_file_metadata_t { meta })
        }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_metadata_destroy(file_meta: *mut rocksdb_sst_file_metadata_t) {
    destroy(file_meta);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_metadata_get_relative_filename(
    file_meta: *mut rocksdb_sst_file_metadata_t,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        Ok(malloc_text(&shared(file_meta)?.meta.name))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_metadata_get_directory(
    file_meta: *mut rocksdb_sst_file_metadata_t,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        let directory = &shared(file_meta)?.meta.directory;
        Ok(malloc_text(&directory.to_string_lossy()))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_metadata_get_size(
    file_meta: *mut rocksdb_sst_file_metadata_t,
) -> u64 {
    attempt(0, || Ok(shared(file_meta)?.meta.size))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_metadata_get_smallestkey(
    file_meta: *mut rocksdb_sst_file_metadata_t,
    len: *mut usize,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        let key = &shared(file_meta)?.meta.smallest_key;
        put(len, key.len());
        Ok(malloc_bytes(key))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_metadata_get_largestkey(
    file_meta: *mut rocksdb_sst_file_metadata_t,
    len: *mut usize,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        let key = &shared(file_meta)?.meta.largest_key;
        put(len, key.len());
        Ok(malloc_bytes(key))
    })
}
