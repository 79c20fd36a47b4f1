//! Names that RocksDB's library exports without declaring them, or exported until version 7.8, so
//! that programs which were linked with them load. The removed ones do nothing, as their options do
//! today.

use crate::boundary::quiet;
use crate::refusal::refuse;
use crate::*;
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_bloom_format(
    bits_per_key: f64,
    _original_format: bool,
) -> *mut rocksdb_filterpolicy_t {
    rocksdb_filterpolicy_create_bloom_full(bits_per_key)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_ribbon_format(
    bloom_equivalent_bits_per_key: f64,
    bloom_before_level: c_int,
) -> *mut rocksdb_filterpolicy_t {
    rocksdb_filterpolicy_create_ribbon_hybrid(bloom_equivalent_bits_per_key, bloom_before_level)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_set_block_cache_compressed(
    _options: *mut rocksdb_block_based_table_options_t,
    _cache: *mut rocksdb_cache_t,
) {
}

/// Deleting one live file behind the tree's back loses data; ranges are deleted with
/// `rocksdb_delete_file_in_range`.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_delete_file(_db: *mut rocksdb_t, _name: *const c_char) {
    refuse("rocksdb_delete_file", ptr::null_mut());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_access_hint_on_compaction_start(
    _options: *mut rocksdb_options_t,
    _hint: c_int,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_get_access_hint_on_compaction_start(
    _options: *mut rocksdb_options_t,
) -> c_int {
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_max_write_buffer_number_to_maintain(
    _options: *mut rocksdb_options_t,
    _number: c_int,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_get_max_write_buffer_number_to_maintain(
    _options: *mut rocksdb_options_t,
) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(
    _options: *mut rocksdb_options_t,
    _skip: c_uchar,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_get_skip_checking_sst_file_sizes_on_db_open(
    _options: *mut rocksdb_options_t,
) -> c_uchar {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_managed(
    _options: *mut rocksdb_readoptions_t,
    _managed: c_uchar,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create_from(
    _rep: *const c_char,
    _size: usize,
) -> *mut rocksdb_writebatch_wi_t {
    quiet((), || {
        refuse("rocksdb_writebatch_wi_create_from", ptr::null_mut())
    });
    ptr::null_mut()
}
