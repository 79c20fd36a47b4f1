//! Block caches.
//!
//! There are two kinds, as in RocksDB: a sharded LRU, and a clock that takes no lock on a hit. The
//! clock's table grows unless the charge of an entry was estimated.

use crate::boundary::{attempt, destroy, exclusive, give, learn_allocator, quiet, shared};
use crate::*;
use esker::{BlockCache, CacheKind, CacheOptions};
use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

/// A block cache that families and databases may share.
pub struct rocksdb_cache_t {
    pub(crate) cache: Arc<BlockCache>,
}

/// An LRU cache.
pub(crate) fn lru(capacity: usize) -> Arc<BlockCache> {
    learn_allocator();
    Arc::new(BlockCache::new(CacheOptions::lru(capacity)))
}

fn made(options: CacheOptions) -> *mut rocksdb_cache_t {
    learn_allocator();
    let cache = Arc::new(BlockCache::new(options));
    give(rocksdb_cache_t { cache })
}

/// Options of an LRU cache.
pub struct rocksdb_lru_cache_options_t {
    pub(crate) cache: CacheOptions,
}

/// Options of a cache with a clock.
pub struct rocksdb_hyper_clock_cache_options_t {
    pub(crate) cache: CacheOptions,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru(capacity: usize) -> *mut rocksdb_cache_t {
    quiet(ptr::null_mut(), || made(CacheOptions::lru(capacity)))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru_with_strict_capacity_limit(
    capacity: usize,
) -> *mut rocksdb_cache_t {
    quiet(ptr::null_mut(), || {
        made(CacheOptions {
            strict_capacity_limit: true,
            ..CacheOptions::lru(capacity)
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_destroy(cache: *mut rocksdb_cache_t) {
    destroy(cache);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_set_capacity(cache: *mut rocksdb_cache_t, capacity: usize) {
    attempt((), || {
        shared(cache)?.cache.set_capacity(capacity);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_get_capacity(cache: *const rocksdb_cache_t) -> usize {
    attempt(0, || Ok(shared(cache)?.cache.capacity()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_get_usage(cache: *const rocksdb_cache_t) -> usize {
    attempt(0, || Ok(shared(cache)?.cache.usage()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_get_pinned_usage(cache: *const rocksdb_cache_t) -> usize {
    attempt(0, || Ok(shared(cache)?.cache.pinned_usage()))
}

/// The number of entries.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_get_occupancy_count(cache: *const rocksdb_cache_t) -> usize {
    attempt(0, || Ok(shared(cache)?.cache.stats().entries()))
}

/// The number of places for entries that are in use or ready for use.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_get_table_address_count(cache: *const rocksdb_cache_t) -> usize {
    attempt(0, || Ok(shared(cache)?.cache.table_slots()))
}

/// A cache is freed with its last user; there is no hurry that would make a program leave it
/// behind.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_disown_data(_cache: *mut rocksdb_cache_t) {}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_lru_cache_options_create() -> *mut rocksdb_lru_cache_options_t {
    quiet(ptr::null_mut(), || {
        // RocksDB's constructor leaves the capacity at 0.
        let cache = CacheOptions::lru(0);
        give(rocksdb_lru_cache_options_t { cache })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_lru_cache_options_destroy(
    lru_cache_options: *mut rocksdb_lru_cache_options_t,
) {
    destroy(lru_cache_options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_lru_cache_options_set_capacity(
    lru_cache_options: *mut rocksdb_lru_cache_options_t,
    value: usize,
) {
    attempt((), || {
        exclusive(lru_cache_options)?.cache.capacity = value;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_lru_cache_options_set_num_shard_bits(
    lru_cache_options: *mut rocksdb_lru_cache_options_t,
    value: c_int,
) {
    attempt((), || {
        exclusive(lru_cache_options)?.cache.num_shard_bits = value;
        Ok(())
    });
}

/// No function makes an allocator yet: there is none to set.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_lru_cache_options_set_memory_allocator(
    _lru_cache_options: *mut rocksdb_lru_cache_options_t,
    _memory_allocator: *mut rocksdb_memory_allocator_t,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru_opts(
    lru_cache_options: *const rocksdb_lru_cache_options_t,
) -> *mut rocksdb_cache_t {
    attempt(ptr::null_mut(), || {
        Ok(made(shared(lru_cache_options)?.cache))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_hyper_clock_cache_options_create(
    capacity: usize,
    estimated_entry_charge: usize,
) -> *mut rocksdb_hyper_clock_cache_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_hyper_clock_cache_options_t {
            cache: CacheOptions::hyper_clock(capacity, estimated_entry_charge),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_hyper_clock_cache_options_destroy(
    hyper_clock_cache_options: *mut rocksdb_hyper_clock_cache_options_t,
) {
    destroy(hyper_clock_cache_options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_hyper_clock_cache_options_set_capacity(
    hyper_clock_cache_options: *mut rocksdb_hyper_clock_cache_options_t,
    value: usize,
) {
    attempt((), || {
        exclusive(hyper_clock_cache_options)?.cache.capacity = value;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(
    hyper_clock_cache_options: *mut rocksdb_hyper_clock_cache_options_t,
    value: usize,
) {
    attempt((), || {
        exclusive(hyper_clock_cache_options)?.cache.kind = CacheKind::HyperClock {
            estimated_entry_charge: value,
        };
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_hyper_clock_cache_options_set_num_shard_bits(
    hyper_clock_cache_options: *mut rocksdb_hyper_clock_cache_options_t,
    value: c_int,
) {
    attempt((), || {
        exclusive(hyper_clock_cache_options)?.cache.num_shard_bits = value;
        Ok(())
    });
}

/// As for [`rocksdb_lru_cache_options_set_memory_allocator`].
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_hyper_clock_cache_options_set_memory_allocator(
    _hyper_clock_cache_options: *mut rocksdb_hyper_clock_cache_options_t,
    _memory_allocator: *mut rocksdb_memory_allocator_t,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_hyper_clock(
    capacity: usize,
    estimated_entry_charge: usize,
) -> *mut rocksdb_cache_t {
    quiet(ptr::null_mut(), || {
        made(CacheOptions::hyper_clock(capacity, estimated_entry_charge))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_hyper_clock_opts(
    hyper_clock_cache_options: *const rocksdb_hyper_clock_cache_options_t,
) -> *mut rocksdb_cache_t {
    attempt(ptr::null_mut(), || {
        Ok(made(shared(hyper_clock_cache_options)?.cache))
    })
}
