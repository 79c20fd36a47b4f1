//! Directories for table files: `db_paths` and `cf_paths`.

use crate::boundary::{attempt, destroy, exclusive, give, many, path, shared};
use crate::*;
use esker::{DbPath, Options, Result};
use std::ffi::c_char;
use std::ptr;

/// A directory for table files.
pub struct rocksdb_dbpath_t {
    path: DbPath,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_dbpath_create(
    path: *const c_char,
    target_size: u64,
) -> *mut rocksdb_dbpath_t {
    attempt(ptr::null_mut(), || {
        let path = DbPath::new(self::path(path)?, target_size);
        Ok(give(rocksdb_dbpath_t { path }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_dbpath_destroy(dbpath: *mut rocksdb_dbpath_t) {
    destroy(dbpath);
}

fn set_paths(
    options: *mut rocksdb_options_t,
    values: *mut *const rocksdb_dbpath_t,
    count: usize,
    set: impl FnOnce(&mut Options, Vec<DbPath>),
) {
    attempt((), || {
        let given = many(values.cast_const(), count).iter();
        let paths = given.map(|p| Ok(shared(*p)?.path.clone()));
        set(
            &mut exclusive(options)?.options,
            paths.collect::<Result<_>>()?,
        );
        Ok(())
    });
}

/// The paths are copied.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_db_paths(
    options: *mut rocksdb_options_t,
    path_values: *mut *const rocksdb_dbpath_t,
    num_paths: usize,
) {
    set_paths(options, path_values, num_paths, |o, paths| {
        o.db.db_paths = paths;
    });
}

/// As [`rocksdb_options_set_db_paths`], for one family.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_cf_paths(
    options: *mut rocksdb_options_t,
    path_values: *mut *const rocksdb_dbpath_t,
    num_paths: usize,
) {
    set_paths(options, path_values, num_paths, |o, paths| {
        o.family.cf_paths = paths;
    });
}
