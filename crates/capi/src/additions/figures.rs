//! Figures of databases, and limits that change.

use crate::boundary::{attempt, bytes, call, exclusive, shared};
use crate::db::{database, with_family};
use crate::*;
use std::ffi::c_char;

/// Tells about how many entries of memtables lie in a range, and how many bytes they take.
#[unsafe(no_mangle)]
pub extern "C" fn esker_approximate_memtable_stats_cf(
    db: *mut rocksdb_t,
    column_family: *const rocksdb_column_family_handle_t,
    start_key: *const c_char,
    start_key_length: usize,
    limit_key: *const c_char,
    limit_key_length: usize,
    count: *mut u64,
    size: *mut u64,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_family(db, column_family)?;
        let start = bytes(start_key, start_key_length);
        let limit = bytes(limit_key, limit_key_length);
        let (entries, taken) = db.approximate_memtable_stats(family, start, limit);
        *exclusive(count)? = entries;
        *exclusive(size)? = taken;
        Ok(())
    });
}

/// Sets the figures of flushes, compactions and reads that properties show back to 0.
#[unsafe(no_mangle)]
pub extern "C" fn esker_reset_stats(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    call(errptr, (), || {
        database(db)?.reset_stats();
        Ok(())
    });
}

/// Changes the rate of a limiter; 0 or less for no limit.
#[unsafe(no_mangle)]
pub extern "C" fn esker_ratelimiter_set_bytes_per_second(
    limiter: *mut rocksdb_ratelimiter_t,
    bytes_per_second: i64,
) {
    attempt((), || {
        let rate = u64::try_from(bytes_per_second).unwrap_or(0);
        shared(limiter)?.limiter.set_bytes_per_second(rate);
        Ok(())
    });
}
