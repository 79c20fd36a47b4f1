//! The options of databases and families. What is a plain field is generated from the catalogue; here is the rest.

use crate::boundary::{attempt, call, destroy, exclusive, give, quiet, shared, text};
use crate::*;
use esker::Options;
use std::ffi::c_char;
use std::ptr;

/// The options of a database and of a family, in one.
#[derive(Clone, Default)]
pub struct rocksdb_options_t {
    pub(crate) options: Options,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_create() -> *mut rocksdb_options_t {
    quiet(ptr::null_mut(), || give(rocksdb_options_t::default()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_create_copy(
    options: *mut rocksdb_options_t,
) -> *mut rocksdb_options_t {
    attempt(ptr::null_mut(), || Ok(give(shared(options)?.clone())))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_destroy(options: *mut rocksdb_options_t) {
    destroy(options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_block_based_table_factory(
    opt: *mut rocksdb_options_t,
    table_options: *mut rocksdb_block_based_table_options_t,
) {
    attempt((), || {
        exclusive(opt)?.options.family.table = shared(table_options)?.table.clone();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_options_from_string(
    base_options: *const rocksdb_options_t,
    opts_str: *const c_char,
    new_options: *mut rocksdb_options_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let made = shared(base_options)?
            .options
            .clone()
            .set_all(text(opts_str)?)?;
        exclusive(new_options)?.options = made;
        Ok(())
    });
}
