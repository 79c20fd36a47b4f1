//! Objects that stand for features which are not built: they can be made and set, and a database
//! that is opened with them says in its error what it lacks.

use crate::boundary::{attempt, bytes, call, exclusive, put, shared};
use crate::*;
use esker::{Error, Result};
use std::ffi::c_char;
use std::ptr;

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
