//! The options of block-based tables. What is a plain field is generated from the catalogue; here
//! is the rest.

use crate::boundary::{attempt, destroy, exclusive, give, owned, quiet, shared};
use crate::*;
use esker::options::{BlockCacheSource, TableSettings};
use esker_format::filter::FilterPolicy;
use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

/// How table files are written and read.
#[derive(Clone, Default)]
pub struct rocksdb_block_based_table_options_t {
    pub(crate) table: TableSettings,
}

/// A filter policy, until table options take it over.
pub struct rocksdb_filterpolicy_t {
    policy: FilterPolicy,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_create() -> *mut rocksdb_block_based_table_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_block_based_table_options_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_destroy(
    options: *mut rocksdb_block_based_table_options_t,
) {
    destroy(options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_set_block_cache(
    options: *mut rocksdb_block_based_table_options_t,
    block_cache: *mut rocksdb_cache_t,
) {
    attempt((), || {
        exclusive(options)?.table.block_cache = match shared(block_cache) {
            Ok(given) => BlockCacheSource::Shared(Arc::clone(&given.cache)),
            Err(_) => BlockCacheSource::default(),
        };
        Ok(())
    });
}

fn policy(text: &str) -> *mut rocksdb_filterpolicy_t {
    quiet(ptr::null_mut(), || {
        FilterPolicy::parse(text).map_or(ptr::null_mut(), |policy| {
            give(rocksdb_filterpolicy_t { policy })
        })
    })
}

/// RocksDB's block-based filter is gone since version 7: this is the full one.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_bloom(
    bits_per_key: f64,
) -> *mut rocksdb_filterpolicy_t {
    policy(&format!("bloomfilter:{bits_per_key}:false"))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_bloom_full(
    bits_per_key: f64,
) -> *mut rocksdb_filterpolicy_t {
    policy(&format!("bloomfilter:{bits_per_key}:false"))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_ribbon(
    bloom_equivalent_bits_per_key: f64,
) -> *mut rocksdb_filterpolicy_t {
    policy(&format!("ribbonfilter:{bloom_equivalent_bits_per_key}:-1"))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_ribbon_hybrid(
    bloom_equivalent_bits_per_key: f64,
    bloom_before_level: c_int,
) -> *mut rocksdb_filterpolicy_t {
    policy(&format!(
        "ribbonfilter:{bloom_equivalent_bits_per_key}:{bloom_before_level}"
    ))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_destroy(filterpolicy: *mut rocksdb_filterpolicy_t) {
    destroy(filterpolicy);
}

/// The options own the policy from now on.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_set_filter_policy(
    options: *mut rocksdb_block_based_table_options_t,
    filter_policy: *mut rocksdb_filterpolicy_t,
) {
    attempt((), || {
        exclusive(options)?.table.filter_policy = owned(filter_policy).map(|p| p.policy);
        Ok(())
    });
}
