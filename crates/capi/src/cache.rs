//! Block caches.
//!
//! There is one kind: a sharded LRU. A "hyper clock" cache is one too; what it is told of the size
//! of its entries is not needed.

use crate::boundary::{attempt, destroy, exclusive, give, quiet, shared};
use crate::*;
use esker::{BlockCache, CacheOptions};
use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

/// A block cache that families and databases may share.
pub struct rocksdb_cache_t {
    pub(crate) cache: Arc<BlockCache>,
}

/// A cache.
pub(crate) fn lru(options: CacheOptions) -> Arc<BlockCache> {
    Arc::new(BlockCache::new(options))
}

/// What a cache is made of.
#[derive(Default)]
pub struct rocksdb_lru_cache_options_t {
    pub(crate) cache: CacheOptions,
}

/// What a cache with a clock would be made of.
pub struct rocksdb_hyper_clock_cache_options_t {
    pub(crate) cache: CacheOptions,
    pub(crate) estimated_entry_charge: usize,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru(capacity: usize) -> *mut rocksdb_cache_t {
    quiet(ptr::null_mut(), || {
        let cache = lru(CacheOptions::with_capacity(capacity));
        give(rocksdb_cache_t { cache })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru_with_strict_capacity_limit(
    capacity: usize,
) -> *mut rocksdb_cache_t {
    quiet(ptr::null_mut(), || {
        let cache = lru(CacheOptions {
            strict_capacity_limit: true,
            ..CacheOptions::with_capacity(capacity)
        });
        give(rocksdb_cache_t { cache })
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
    attempt(0, || Ok(entries(&shared(cache)?.cache)))
}

/// The number of places for entries that are in use or ready for use.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_get_table_address_count(cache: *const rocksdb_cache_t) -> usize {
    attempt(0, || {
        let cache = &shared(cache)?.cache;
        // RocksDB's smallest table has sixteen places in each shard, and grows by doubling.
        let fewest = cache.num_shards() * 16;
        Ok(entries(cache).next_power_of_two().max(fewest))
    })
}

fn entries(cache: &BlockCache) -> usize {
    let mut count = 0;
    cache.for_each(|_| count += 1);
    count
}

/// A cache is freed with its last user; there is no hurry that would make a program leave it
/// behind.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_disown_data(_cache: *mut rocksdb_cache_t) {}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_lru_cache_options_create() -> *mut rocksdb_lru_cache_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_lru_cache_options_t::default())
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
        let cache = lru(shared(lru_cache_options)?.cache);
        Ok(give(rocksdb_cache_t { cache }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_hyper_clock_cache_options_create(
    capacity: usize,
    estimated_entry_charge: usize,
) -> *mut rocksdb_hyper_clock_cache_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_hyper_clock_cache_options_t {
            cache: CacheOptions::with_capacity(capacity),
            estimated_entry_charge,
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
        exclusive(hyper_clock_cache_options)?.estimated_entry_charge = value;
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
    _estimated_entry_charge: usize,
) -> *mut rocksdb_cache_t {
    rocksdb_cache_create_lru(capacity)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_hyper_clock_opts(
    hyper_clock_cache_options: *const rocksdb_hyper_clock_cache_options_t,
) -> *mut rocksdb_cache_t {
    attempt(ptr::null_mut(), || {
        let cache = lru(shared(hyper_clock_cache_options)?.cache);
        Ok(give(rocksdb_cache_t { cache }))
    })
}
