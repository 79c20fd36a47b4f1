//! Limits that databases share, the memory of memtables and the bytes a second of background jobs;
//! and how much memory is used for what.

use crate::boundary::{attempt, call, destroy, exclusive, give, quiet, shared};
use crate::db::database;
use crate::*;
use esker::{
    BlockCache, Db, MemoryUsage, RateLimiter, RateLimiterMode, RateLimiterOptions,
    WriteBufferManager,
};
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::Arc;

/// A limit on the memory of memtables.
pub struct rocksdb_write_buffer_manager_t {
    pub(crate) manager: Arc<WriteBufferManager>,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_create(
    buffer_size: usize,
    allow_stall: bool,
) -> *mut rocksdb_write_buffer_manager_t {
    quiet(ptr::null_mut(), || {
        let manager = WriteBufferManager::new(buffer_size, allow_stall);
        give(rocksdb_write_buffer_manager_t { manager })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_create_with_cache(
    buffer_size: usize,
    cache: *const rocksdb_cache_t,
    allow_stall: bool,
) -> *mut rocksdb_write_buffer_manager_t {
    attempt(ptr::null_mut(), || {
        let cache = Arc::clone(&shared(cache)?.cache);
        let manager = WriteBufferManager::with_cache(buffer_size, cache, allow_stall);
        Ok(give(rocksdb_write_buffer_manager_t { manager }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_destroy(wbm: *mut rocksdb_write_buffer_manager_t) {
    destroy(wbm);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_enabled(
    wbm: *mut rocksdb_write_buffer_manager_t,
) -> bool {
    attempt(false, || Ok(shared(wbm)?.manager.is_enabled()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_cost_to_cache(
    wbm: *mut rocksdb_write_buffer_manager_t,
) -> bool {
    attempt(false, || Ok(shared(wbm)?.manager.cost_to_cache()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_memory_usage(
    wbm: *mut rocksdb_write_buffer_manager_t,
) -> usize {
    attempt(0, || Ok(shared(wbm)?.manager.memory_usage()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_mutable_memtable_memory_usage(
    wbm: *mut rocksdb_write_buffer_manager_t,
) -> usize {
    attempt(0, || {
        Ok(shared(wbm)?.manager.mutable_memtable_memory_usage())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(
    wbm: *mut rocksdb_write_buffer_manager_t,
) -> usize {
    attempt(0, || {
        Ok(shared(wbm)?.manager.dummy_entries_in_cache_usage())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_buffer_size(
    wbm: *mut rocksdb_write_buffer_manager_t,
) -> usize {
    attempt(0, || Ok(shared(wbm)?.manager.buffer_size()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_set_buffer_size(
    wbm: *mut rocksdb_write_buffer_manager_t,
    new_size: usize,
) {
    attempt((), || {
        shared(wbm)?.manager.set_buffer_size(new_size);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_set_allow_stall(
    wbm: *mut rocksdb_write_buffer_manager_t,
    new_allow_stall: bool,
) {
    attempt((), || {
        shared(wbm)?.manager.set_allow_stall(new_allow_stall);
        Ok(())
    });
}

/// NULL takes the manager away.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_write_buffer_manager(
    opt: *mut rocksdb_options_t,
    wbm: *mut rocksdb_write_buffer_manager_t,
) {
    attempt((), || {
        let manager = shared(wbm).ok().map(|w| Arc::clone(&w.manager));
        exclusive(opt)?.options.db.write_buffer_manager = manager;
        Ok(())
    });
}

/// A limit on the bytes a second of background jobs.
pub struct rocksdb_ratelimiter_t {
    pub(crate) limiter: Arc<RateLimiter>,
}

fn limiter(
    rate_bytes_per_sec: i64,
    refill_period_us: i64,
    fairness: i32,
    mode: RateLimiterMode,
    auto_tuned: bool,
) -> *mut rocksdb_ratelimiter_t {
    quiet(ptr::null_mut(), || {
        let mut options = RateLimiterOptions::default();
        options.bytes_per_second = u64::try_from(rate_bytes_per_sec).unwrap_or(0);
        options.refill_period_us = u64::try_from(refill_period_us).unwrap_or(0);
        options.fairness = u32::try_from(fairness).unwrap_or(1);
        options.mode = mode;
        options.auto_tuned = auto_tuned;
        let limiter = RateLimiter::with_options(options);
        give(rocksdb_ratelimiter_t { limiter })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create(
    rate_bytes_per_sec: i64,
    refill_period_us: i64,
    fairness: i32,
) -> *mut rocksdb_ratelimiter_t {
    let mode = RateLimiterMode::WritesOnly;
    limiter(rate_bytes_per_sec, refill_period_us, fairness, mode, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create_auto_tuned(
    rate_bytes_per_sec: i64,
    refill_period_us: i64,
    fairness: i32,
) -> *mut rocksdb_ratelimiter_t {
    let mode = RateLimiterMode::WritesOnly;
    limiter(rate_bytes_per_sec, refill_period_us, fairness, mode, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create_with_mode(
    rate_bytes_per_sec: i64,
    refill_period_us: i64,
    fairness: i32,
    mode: c_int,
    auto_tuned: bool,
) -> *mut rocksdb_ratelimiter_t {
    let mode = RateLimiterMode::from_number(mode).unwrap_or_default();
    limiter(
        rate_bytes_per_sec,
        refill_period_us,
        fairness,
        mode,
        auto_tuned,
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_destroy(ratelimiter: *mut rocksdb_ratelimiter_t) {
    destroy(ratelimiter);
}

/// NULL takes the limiter away.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_ratelimiter(
    opt: *mut rocksdb_options_t,
    limiter: *mut rocksdb_ratelimiter_t,
) {
    attempt((), || {
        let limiter = shared(limiter).ok().map(|l| Arc::clone(&l.limiter));
        exclusive(opt)?.options.db.rate_limiter = limiter;
        Ok(())
    });
}

/// Databases and caches whose memory is asked for.
#[derive(Default)]
pub struct rocksdb_memory_consumers_t {
    databases: Vec<Db>,
    caches: Vec<Arc<BlockCache>>,
}

/// How much memory was used.
pub struct rocksdb_memory_usage_t {
    usage: MemoryUsage,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_memory_consumers_create() -> *mut rocksdb_memory_consumers_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_memory_consumers_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_memory_consumers_add_db(
    consumers: *mut rocksdb_memory_consumers_t,
    db: *mut rocksdb_t,
) {
    attempt((), || {
        exclusive(consumers)?.databases.push(database(db)?.clone());
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_memory_consumers_add_cache(
    consumers: *mut rocksdb_memory_consumers_t,
    cache: *mut rocksdb_cache_t,
) {
    attempt((), || {
        let cache = Arc::clone(&shared(cache)?.cache);
        exclusive(consumers)?.caches.push(cache);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_memory_consumers_destroy(consumers: *mut rocksdb_memory_consumers_t) {
    destroy(consumers);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_memory_usage_create(
    consumers: *mut rocksdb_memory_consumers_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_memory_usage_t {
    call(errptr, ptr::null_mut(), || {
        let consumers = shared(consumers)?;
        let databases = consumers.databases.iter().filter(|db| !db.is_closed());
        let databases: Vec<&Db> = databases.collect();
        let caches: Vec<&Arc<BlockCache>> = consumers.caches.iter().collect();
        let usage = MemoryUsage::of(&databases, &caches);
        Ok(give(rocksdb_memory_usage_t { usage }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_memory_usage_destroy(usage: *mut rocksdb_memory_usage_t) {
    destroy(usage);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_memory_usage_get_mem_table_total(
    memory_usage: *mut rocksdb_memory_usage_t,
) -> u64 {
    attempt(0, || Ok(shared(memory_usage)?.usage.mem_table_total))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_memory_usage_get_mem_table_unflushed(
    memory_usage: *mut rocksdb_memory_usage_t,
) -> u64 {
    attempt(0, || Ok(shared(memory_usage)?.usage.mem_table_unflushed))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_memory_usage_get_mem_table_readers_total(
    memory_usage: *mut rocksdb_memory_usage_t,
) -> u64 {
    attempt(0, || {
        Ok(shared(memory_usage)?.usage.mem_table_readers_total)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_memory_usage_get_cache_total(
    memory_usage: *mut rocksdb_memory_usage_t,
) -> u64 {
    attempt(0, || Ok(shared(memory_usage)?.usage.cache_total))
}
