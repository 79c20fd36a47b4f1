//! Databases whose values expire.

use crate::boundary::{call, give, many, path, shared, text};
use crate::db::{OpenRequest, database, opened};
use crate::*;
use esker::Db;
use std::ffi::{c_char, c_int};
use std::ptr;

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_open_with_ttl(
    options: *const rocksdb_options_t,
    name: *const c_char,
    ttl: c_int,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    call(errptr, ptr::null_mut(), || {
        let OpenRequest { options, families } = OpenRequest::default_only(options)?;
        let families = families.into_iter().map(|f| (f, ttl)).collect();
        let db = Db::open_families_with_ttl(path(name)?, options, families)?;
        Ok(give(rocksdb_t::new(db)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_open_column_families_with_ttl(
    options: *const rocksdb_options_t,
    name: *const c_char,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    column_family_options: *const *const rocksdb_options_t,
    column_family_handles: *mut *mut rocksdb_column_family_handle_t,
    ttls: *const c_int,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    call(errptr, ptr::null_mut(), || {
        let OpenRequest { options, families } = OpenRequest::listed(
            options,
            num_column_families,
            column_family_names,
            column_family_options,
        )?;
        let ttls = many(ttls, families.len());
        if ttls.len() != families.len() {
            return Err(esker::Error::invalid_argument(
                "ttls size has to be the same as number of column families",
            ));
        }
        let with_ttls = families.iter().cloned().zip(ttls.iter().copied());
        let db = Db::open_families_with_ttl(path(name)?, options, with_ttls.collect())?;
        opened(db, &families, column_family_handles)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_column_family_with_ttl(
    db: *mut rocksdb_t,
    column_family_options: *const rocksdb_options_t,
    column_family_name: *const c_char,
    ttl: c_int,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_column_family_handle_t {
    call(errptr, ptr::null_mut(), || {
        let options = shared(column_family_options)?.options.family.clone();
        let name = text(column_family_name)?;
        let family = database(db)?.create_family_with_ttl(name, options, ttl)?;
        Ok(give(rocksdb_column_family_handle_t::new(family)))
    })
}
