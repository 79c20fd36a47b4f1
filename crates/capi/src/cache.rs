//! Block caches.

use crate::boundary::{attempt, destroy, give, quiet, shared};
use esker::{BlockCache, CacheOptions};
use std::ptr;
use std::sync::Arc;

/// A block cache that families and databases may share.
pub struct rocksdb_cache_t {
    pub(crate) cache: Arc<BlockCache>,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru(capacity: usize) -> *mut rocksdb_cache_t {
    quiet(ptr::null_mut(), || {
        let cache = Arc::new(BlockCache::new(CacheOptions::with_capacity(capacity)));
        give(rocksdb_cache_t { cache })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru_with_strict_capacity_limit(
    capacity: usize,
) -> *mut rocksdb_cache_t {
    quiet(ptr::null_mut(), || {
        let cache = Arc::new(BlockCache::new(CacheOptions::with_capacity(capacity)));
        cache.set_strict_capacity_limit(true);
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
