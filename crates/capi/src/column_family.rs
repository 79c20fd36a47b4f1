//! Column families: listing, creating, dropping, and their handles.

use crate::boundary::{
    attempt, call, give, malloc_array, malloc_bytes, malloc_text, many, owned, path, put, quiet,
    shared, text,
};
use crate::db::{database, with_default, with_family};
use crate::*;
use esker::{Db, DbRef, FamilyHandle};
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::OnceLock;

/// A hold on a column family.
pub struct rocksdb_column_family_handle_t {
    pub(crate) family: FamilyHandle,
    /// The database, once it has dropped the family: with the handle the files go.
    dropped_from: OnceLock<DbRef>,
}

impl rocksdb_column_family_handle_t {
    /// A handle on `family`.
    pub(crate) fn new(family: FamilyHandle) -> Self {
        rocksdb_column_family_handle_t {
            family,
            dropped_from: OnceLock::new(),
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_list_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    lencf: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut *mut c_char {
    put(lencf, 0);
    call(errptr, ptr::null_mut(), || {
        let names = Db::list_families(path(name)?, &shared(options)?.options)?;
        put(lencf, names.len());
        let texts: Vec<*mut c_char> = names.iter().map(|n| malloc_text(n)).collect();
        Ok(malloc_array(&texts))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_list_column_families_destroy(list: *mut *mut c_char, len: usize) {
    for name in many(list.cast_const(), len) {
        crate::boundary::free(name.cast());
    }
    crate::boundary::free(list.cast());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_column_family(
    db: *mut rocksdb_t,
    column_family_options: *const rocksdb_options_t,
    column_family_name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_column_family_handle_t {
    call(errptr, ptr::null_mut(), || {
        let options = shared(column_family_options)?.options.family.clone();
        let family = database(db)?.create_family(text(column_family_name)?, options)?;
        Ok(give(rocksdb_column_family_handle_t::new(family)))
    })
}

/// Stops at the first that fails, and reports how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_column_families(
    db: *mut rocksdb_t,
    column_family_options: *const rocksdb_options_t,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    lencfs: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut *mut rocksdb_column_family_handle_t {
    put(lencfs, 0);
    let mut handles = Vec::new();
    call(errptr, (), || {
        let options = &shared(column_family_options)?.options.family;
        let count = usize::try_from(num_column_families).unwrap_or(0);
        for name in many(column_family_names, count) {
            let family = database(db)?.create_family(text(*name)?, options.clone())?;
            handles.push(give(rocksdb_column_family_handle_t::new(family)));
        }
        Ok(())
    });
    put(lencfs, handles.len());
    malloc_array(&handles)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_column_families_destroy(
    list: *mut *mut rocksdb_column_family_handle_t,
) {
    crate::boundary::free(list.cast());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_drop_column_family(
    db: *mut rocksdb_t,
    handle: *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_family(db, handle)?;
        db.drop_family(family)?;
        shared(handle)?.dropped_from.get_or_init(|| db.downgrade());
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_default_column_family_handle(
    db: *mut rocksdb_t,
) -> *mut rocksdb_column_family_handle_t {
    attempt(ptr::null_mut(), || {
        let (_, family) = with_default(db)?;
        Ok(give(rocksdb_column_family_handle_t::new(family.clone())))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_handle_destroy(
    column_family_handle: *mut rocksdb_column_family_handle_t,
) {
    quiet((), || {
        let Some(handle) = owned(column_family_handle) else {
            return;
        };
        let db = handle.dropped_from.get().and_then(Db::of);
        drop(handle);
        // As RocksDB does: who looks into the directory now finds no file that goes under his eyes.
        if let Some(db) = db {
            db.delete_unused_files();
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_handle_get_id(
    handle: *mut rocksdb_column_family_handle_t,
) -> u32 {
    attempt(0, || Ok(shared(handle)?.family.id()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_handle_get_name(
    handle: *mut rocksdb_column_family_handle_t,
    name_len: *mut usize,
) -> *mut c_char {
    quiet(ptr::null_mut(), || {
        let Ok(handle) = shared(handle) else {
            return ptr::null_mut();
        };
        put(name_len, handle.family.name().len());
        malloc_bytes(handle.family.name().as_bytes())
    })
}
