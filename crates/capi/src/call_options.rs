//! Options of single calls: reads, writes, flushes, compactions of a range.

use crate::boundary::{attempt, bytes, destroy, exclusive, give, quiet, shared};
use crate::*;
use esker::{CompactRangeOptions, FlushOptions, ReadOptions, Snapshot, WriteOptions};
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;

/// How to read.
#[derive(Default)]
pub struct rocksdb_readoptions_t {
    pub(crate) read: ReadOptions,
    pub(crate) snapshot: Option<Snapshot>,
}

/// How to write.
#[derive(Default)]
pub struct rocksdb_writeoptions_t {
    pub(crate) write: WriteOptions,
}

/// How to flush.
#[derive(Default)]
pub struct rocksdb_flushoptions_t {
    pub(crate) flush: FlushOptions,
}

/// How to compact a range.
#[derive(Default)]
pub struct rocksdb_compactoptions_t {
    pub(crate) compact: CompactRangeOptions,
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

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_snapshot(
    readoptions: *mut rocksdb_readoptions_t,
    snapshot: *const rocksdb_snapshot_t,
) {
    attempt((), || {
        exclusive(readoptions)?.snapshot = shared(snapshot).ok().map(|s| s.snapshot.clone());
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
