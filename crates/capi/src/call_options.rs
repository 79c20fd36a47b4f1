//! Options of single calls: reads, writes, flushes, compactions of a range.
//!
//! A hint is kept, told by its getter, and changes nothing.

use crate::boundary::{attempt, bytes, call, destroy, exclusive, give, put, quiet, shared};
use crate::db::database;
use crate::*;
use esker::options::BlobGarbageCollectionPolicy;
use esker::{
    CompactRangeOptions, FlushOptions, ReadOptions, Snapshot, WaitForCompactOptions, WriteOptions,
};
use std::ffi::{c_char, c_int, c_uchar};
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::Arc;

/// How to read.
#[derive(Default)]
pub struct rocksdb_readoptions_t {
    pub(crate) read: CopyOnWrite<ReadOptions>,
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) hints: ReadHints,
}

/// Options that iterators share with the handle they were made with, until the handle is changed.
#[derive(Default)]
pub(crate) struct CopyOnWrite<T>(Arc<T>);

impl<T> CopyOnWrite<T> {
    /// As they are now.
    pub(crate) fn share(&self) -> Arc<T> {
        Arc::clone(&self.0)
    }
}

impl<T> Deref for CopyOnWrite<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for CopyOnWrite<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

/// RocksDB's number for "no priority".
const NO_PRIORITY: c_int = 4;
/// RocksDB's number for "no activity given".
const NO_ACTIVITY: c_int = 255;

/// Hints about reads.
pub(crate) struct ReadHints {
    pub(crate) io_timeout: u64,
    pub(crate) rate_limiter_priority: c_int,
    pub(crate) optimize_multiget_for_io: bool,
    pub(crate) io_activity: c_int,
    merge_operand_count_threshold: Option<usize>,
    request_id: Option<Vec<u8>>,
    pub(crate) table_index_factory: Option<Vec<u8>>,
}

impl Default for ReadHints {
    fn default() -> Self {
        ReadHints {
            io_timeout: 0,
            rate_limiter_priority: NO_PRIORITY,
            optimize_multiget_for_io: true,
            io_activity: NO_ACTIVITY,
            merge_operand_count_threshold: None,
            request_id: None,
            table_index_factory: None,
        }
    }
}

/// How to write.
pub struct rocksdb_writeoptions_t {
    pub(crate) write: WriteOptions,
    pub(crate) rate_limiter_priority: c_int,
    pub(crate) io_activity: c_int,
}

impl Default for rocksdb_writeoptions_t {
    fn default() -> Self {
        rocksdb_writeoptions_t {
            write: WriteOptions::default(),
            rate_limiter_priority: NO_PRIORITY,
            io_activity: NO_ACTIVITY,
        }
    }
}

/// How to flush.
#[derive(Default)]
pub struct rocksdb_flushoptions_t {
    pub(crate) flush: FlushOptions,
    pub(crate) force_atomic_flush: bool,
    pub(crate) listener_wait: bool,
}

/// How to hand the log to the system.
pub struct rocksdb_flushwaloptions_t {
    pub(crate) sync: bool,
    pub(crate) rate_limiter_priority: c_int,
}

impl Default for rocksdb_flushwaloptions_t {
    fn default() -> Self {
        rocksdb_flushwaloptions_t {
            sync: false,
            rate_limiter_priority: NO_PRIORITY,
        }
    }
}

/// How to compact a range.
pub struct rocksdb_compactoptions_t {
    pub(crate) compact: CompactRangeOptions,
    pub(crate) target_path_id: c_int,
    pub(crate) blob_garbage_collection_policy: c_int,
    pub(crate) blob_garbage_collection_age_cutoff: f64,
}

impl Default for rocksdb_compactoptions_t {
    fn default() -> Self {
        rocksdb_compactoptions_t {
            compact: CompactRangeOptions::default(),
            target_path_id: 0,
            // "As the family's options say."
            blob_garbage_collection_policy: 2,
            blob_garbage_collection_age_cutoff: -1.0,
        }
    }
}

impl rocksdb_compactoptions_t {
    pub(crate) fn to_options(&self) -> CompactRangeOptions {
        let mut out = self.compact.clone();
        // A number below 0 is no path, and is refused as one that is too large.
        out.target_path_id = u32::try_from(self.target_path_id).unwrap_or(u32::MAX);
        out.blob_garbage_collection_policy = match self.blob_garbage_collection_policy {
            0 => BlobGarbageCollectionPolicy::Force,
            1 => BlobGarbageCollectionPolicy::Disable,
            _ => BlobGarbageCollectionPolicy::UseDefault,
        };
        out.blob_garbage_collection_age_cutoff = self.blob_garbage_collection_age_cutoff;
        out
    }
}

/// How to wait for background work.
#[derive(Default)]
pub struct rocksdb_wait_for_compact_options_t {
    pub(crate) wait: WaitForCompactOptions,
    pub(crate) close_db: bool,
    pub(crate) wait_for_purge: bool,
}

/// Exports the creation and the destruction of an options object.
macro_rules! lifecycle {
    ($type:ident, $create:ident, $destroy:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $create() -> *mut $type {
            quiet(ptr::null_mut(), || give($type::default()))
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $destroy(handle: *mut $type) {
            destroy(handle);
        }
    };
}
pub(crate) use lifecycle;

lifecycle!(
    rocksdb_readoptions_t,
    rocksdb_readoptions_create,
    rocksdb_readoptions_destroy
);
lifecycle!(
    rocksdb_writeoptions_t,
    rocksdb_writeoptions_create,
    rocksdb_writeoptions_destroy
);
lifecycle!(
    rocksdb_flushoptions_t,
    rocksdb_flushoptions_create,
    rocksdb_flushoptions_destroy
);
lifecycle!(
    rocksdb_compactoptions_t,
    rocksdb_compactoptions_create,
    rocksdb_compactoptions_destroy
);

lifecycle!(
    rocksdb_flushwaloptions_t,
    rocksdb_flushwaloptions_create,
    rocksdb_flushwaloptions_destroy
);
lifecycle!(
    rocksdb_wait_for_compact_options_t,
    rocksdb_wait_for_compact_options_create,
    rocksdb_wait_for_compact_options_destroy
);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_flush_wal_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushwaloptions_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        database(db)?.flush_wal(shared(options)?.sync)
    });
}

/// Waits until there is nothing to compact; closes the database then, if that is asked for. The
/// handle stays the caller's to close.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wait_for_compact(
    db: *mut rocksdb_t,
    options: *mut rocksdb_wait_for_compact_options_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, options) = (database(db)?, shared(options)?);
        db.wait_for_compact(&options.wait)?;
        if options.close_db { db.close() } else { Ok(()) }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_merge_operand_count_threshold(
    readoptions: *mut rocksdb_readoptions_t,
    threshold: usize,
) {
    attempt((), || {
        exclusive(readoptions)?.hints.merge_operand_count_threshold = Some(threshold);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_clear_merge_operand_count_threshold(
    readoptions: *mut rocksdb_readoptions_t,
) {
    attempt((), || {
        exclusive(readoptions)?.hints.merge_operand_count_threshold = None;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_has_merge_operand_count_threshold(
    readoptions: *mut rocksdb_readoptions_t,
) -> c_uchar {
    attempt(0, || {
        let threshold = shared(readoptions)?.hints.merge_operand_count_threshold;
        Ok(c_uchar::from(threshold.is_some()))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_get_merge_operand_count_threshold(
    readoptions: *mut rocksdb_readoptions_t,
) -> usize {
    attempt(0, || {
        let threshold = shared(readoptions)?.hints.merge_operand_count_threshold;
        Ok(threshold.unwrap_or(0))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_request_id(
    readoptions: *mut rocksdb_readoptions_t,
    request_id: *const c_char,
    request_id_len: usize,
) {
    attempt((), || {
        exclusive(readoptions)?.hints.request_id = bound(request_id, request_id_len);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_clear_request_id(readoptions: *mut rocksdb_readoptions_t) {
    attempt((), || {
        exclusive(readoptions)?.hints.request_id = None;
        Ok(())
    });
}

/// The bytes, which live until they are set again; NULL when there are none.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_get_request_id(
    readoptions: *mut rocksdb_readoptions_t,
    request_id_len: *mut usize,
) -> *const c_char {
    put(request_id_len, 0);
    attempt(ptr::null(), || {
        let Some(id) = &shared(readoptions)?.hints.request_id else {
            return Ok(ptr::null());
        };
        put(request_id_len, id.len());
        Ok(id.as_ptr().cast())
    })
}

/// Reads of families with timestamps see versions up to this one. The bytes are copied; NULL takes
/// them away.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_timestamp(
    readoptions: *mut rocksdb_readoptions_t,
    ts: *const c_char,
    tslen: usize,
) {
    attempt((), || {
        exclusive(readoptions)?.read.timestamp = bound(ts, tslen);
        Ok(())
    });
}

/// Iterators show every version down to this timestamp. The bytes are copied; NULL takes them away.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_iter_start_ts(
    readoptions: *mut rocksdb_readoptions_t,
    ts: *const c_char,
    tslen: usize,
) {
    attempt((), || {
        exclusive(readoptions)?.read.iter_start_ts = bound(ts, tslen);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_snapshot(
    readoptions: *mut rocksdb_readoptions_t,
    snapshot: *const rocksdb_snapshot_t,
) {
    attempt((), || {
        exclusive(readoptions)?.snapshot = shared(snapshot).ok().and_then(|s| s.snapshot.clone());
        Ok(())
    });
}

/// A bound is copied; NULL takes it away.
fn bound(key: *const c_char, keylen: usize) -> Option<Vec<u8>> {
    (!key.is_null()).then(|| bytes(key, keylen).to_vec())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_iterate_upper_bound(
    readoptions: *mut rocksdb_readoptions_t,
    key: *const c_char,
    keylen: usize,
) {
    attempt((), || {
        exclusive(readoptions)?.read.iterate_upper_bound = bound(key, keylen);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_iterate_lower_bound(
    readoptions: *mut rocksdb_readoptions_t,
    key: *const c_char,
    keylen: usize,
) {
    attempt((), || {
        exclusive(readoptions)?.read.iterate_lower_bound = bound(key, keylen);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writeoptions_disable_WAL(opt: *mut rocksdb_writeoptions_t, v: c_int) {
    attempt((), || {
        exclusive(opt)?.write.disable_wal = v != 0;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writeoptions_get_disable_WAL(
    opt: *mut rocksdb_writeoptions_t,
) -> c_uchar {
    attempt(0, || Ok(c_uchar::from(shared(opt)?.write.disable_wal)))
}
