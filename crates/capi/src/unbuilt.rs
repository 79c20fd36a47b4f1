//! Objects that stand for features which are not built: they can be made and set, and a database that is opened with
//! them says in its error what it lacks.

use crate::boundary::{attempt, bytes, call, destroy, exclusive, give, many, put, shared, text};
use crate::*;
use esker::{Error, Options, Result};
use std::ffi::c_char;
use std::ptr;

/// A directory for table files.
pub struct rocksdb_dbpath_t {
    path: String,
    target_size: u64,
}

/// NULL for a path that is not UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_dbpath_create(
    path: *const c_char,
    target_size: u64,
) -> *mut rocksdb_dbpath_t {
    attempt(ptr::null_mut(), || {
        let path = text(path)?.to_owned();
        Ok(give(rocksdb_dbpath_t { path, target_size }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_dbpath_destroy(dbpath: *mut rocksdb_dbpath_t) {
    destroy(dbpath);
}

/// The paths as OPTIONS text.
fn paths(values: *mut *const rocksdb_dbpath_t, count: usize) -> Result<String> {
    let listed = many(values.cast_const(), count).iter().map(|p| {
        let p = shared(*p)?;
        Ok(format!(
            "{{path={};target_size={};}}",
            p.path, p.target_size
        ))
    });
    let listed = listed.collect::<Result<Vec<_>>>()?;
    Ok(if listed.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", listed.join(":"))
    })
}

fn set_paths(
    options: *mut rocksdb_options_t,
    values: *mut *const rocksdb_dbpath_t,
    count: usize,
    set: impl FnOnce(&mut Options, String),
) {
    attempt((), || {
        let paths = paths(values, count)?;
        set(&mut exclusive(options)?.options, paths);
        Ok(())
    });
}

/// Opening with these options fails: table files live in the directory of the database.
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

/// The name of an index of the application's own; empty for none.
fn index_name(value: *const c_char, length: usize) -> Result<String> {
    String::from_utf8(bytes(value, length).to_vec())
        .map_err(|_| Error::invalid_argument("the name of an index is not UTF-8"))
}

const NO_INDEX: &str = "nullptr";

/// Opening with these options fails; NULL takes the index away.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_set_user_defined_index_factory_from_string(
    options: *mut rocksdb_block_based_table_options_t,
    value: *const c_char,
    value_len: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let name = index_name(value, value_len)?;
        exclusive(options)?.table.user_defined_index_factory = if name.is_empty() {
            NO_INDEX.to_owned()
        } else {
            name
        };
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_clear_user_defined_index_factory(
    options: *mut rocksdb_block_based_table_options_t,
) {
    attempt((), || {
        exclusive(options)?.table.user_defined_index_factory = NO_INDEX.to_owned();
        Ok(())
    });
}

/// The name, which lives until it is changed and does not end with NUL; NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_get_user_defined_index_factory_name(
    options: *const rocksdb_block_based_table_options_t,
    name_len: *mut usize,
) -> *const c_char {
    put(name_len, 0);
    attempt(ptr::null(), || {
        let name = &shared(options)?.table.user_defined_index_factory;
        if name == NO_INDEX {
            return Ok(ptr::null());
        }
        put(name_len, name.len());
        Ok(name.as_ptr().cast())
    })
}

/// The name is kept. Reads go by each table's own index: results are the same.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_table_index_factory_from_string(
    readoptions: *mut rocksdb_readoptions_t,
    value: *const c_char,
    value_len: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let name = (!value.is_null()).then(|| bytes(value, value_len).to_vec());
        exclusive(readoptions)?.hints.table_index_factory = name;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_clear_table_index_factory(
    readoptions: *mut rocksdb_readoptions_t,
) {
    attempt((), || {
        exclusive(readoptions)?.hints.table_index_factory = None;
        Ok(())
    });
}

/// The name, which lives until it is changed and does not end with NUL; NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_get_table_index_factory_name(
    readoptions: *const rocksdb_readoptions_t,
    name_len: *mut usize,
) -> *const c_char {
    put(name_len, 0);
    attempt(ptr::null(), || {
        let Some(name) = &shared(readoptions)?.hints.table_index_factory else {
            return Ok(ptr::null());
        };
        put(name_len, name.len());
        Ok(name.as_ptr().cast())
    })
}
