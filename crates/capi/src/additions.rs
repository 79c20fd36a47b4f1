//! Esker's own additions to the interface, for bindings to languages that need more than RocksDB's
//! C interface has. `spec/esker.api` declares them and `rocksdb/esker.h` is made from it.
//!
//! Functions are only ever added here. Each addition raises `ESKER_INTERFACE_VERSION`.

mod collectors;
mod figures;
mod filter;
mod ingest;
mod lock_waits;
mod options;
mod transaction;

pub use collectors::*;
pub use figures::*;
pub use filter::*;
pub use ingest::*;
pub use lock_waits::*;
pub use options::*;
pub use transaction::*;

use crate::boundary::{attempt, call, exclusive, given, last_error, quiet, shared};
use crate::boundary::{tell_pair, text};
use crate::db::{bound, database, with_family};
use crate::*;
use std::ffi::{c_char, c_uchar, c_void};

/// Counts the additions: a program compares it with `ESKER_INTERFACE_VERSION` of its header.
#[unsafe(no_mangle)]
pub extern "C" fn esker_interface_version() -> u32 {
    ESKER_INTERFACE_VERSION as u32
}

/// RocksDB's status code of the last error in this thread: 1 not found, 2 corruption, 3 not
/// supported, 4 invalid argument, 5 I/O error, and so on; 0 before the first.
#[unsafe(no_mangle)]
pub extern "C" fn esker_last_error_code() -> u32 {
    last_error().0
}

/// RocksDB's subcode of the last error in this thread; 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn esker_last_error_subcode() -> u32 {
    last_error().1
}

/// A compaction of a range that reports errors; NULL keys are the ends of the family.
#[unsafe(no_mangle)]
pub extern "C" fn esker_compact_range_cf(
    db: *mut rocksdb_t,
    column_family: *const rocksdb_column_family_handle_t,
    options: *const rocksdb_compactoptions_t,
    start_key: *const c_char,
    start_key_length: usize,
    limit_key: *const c_char,
    limit_key_length: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_family(db, column_family)?;
        let begin = bound(start_key, start_key_length);
        let end = bound(limit_key, limit_key_length);
        db.compact_range_opt(family, begin, end, &shared(options)?.to_options())
    });
}

/// Goes on after a background error whose cause is gone.
#[unsafe(no_mangle)]
pub extern "C" fn esker_resume(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    call(errptr, (), || database(db)?.resume());
}

/// Deletes one backup.
#[unsafe(no_mangle)]
pub extern "C" fn esker_backup_engine_delete_backup(
    engine: *mut rocksdb_backup_engine_t,
    backup_id: u32,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        shared(engine)?.backups.delete_backup(backup_id)
    });
}

/// 1 for a table that a compaction read when the metadata was taken.
#[unsafe(no_mangle)]
pub extern "C" fn esker_sst_file_metadata_being_compacted(
    file: *const rocksdb_sst_file_metadata_t,
) -> c_uchar {
    figure(0, || Some(c_uchar::from(given(file)?.meta.being_compacted)))
}

/// Gives `batch` the records of `from`, and takes away what it had.
#[unsafe(no_mangle)]
pub extern "C" fn esker_writebatch_assign(
    batch: *mut rocksdb_writebatch_t,
    from: *const rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let from = shared(from)?;
        from.check()?;
        let records = from.batch.clone();
        exclusive(batch)?.replace(records);
        Ok(())
    });
}

/// Takes back the newest save point of `batch` and keeps the changes since.
#[unsafe(no_mangle)]
pub extern "C" fn esker_writebatch_wi_pop_save_point(
    batch: *mut rocksdb_writebatch_wi_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || shared(batch)?.0.batch.pop_save_point());
}

/// Has inserts fail when the cache is full, or lets it grow beyond its capacity then.
#[unsafe(no_mangle)]
pub extern "C" fn esker_cache_set_strict_capacity_limit(
    cache: *mut rocksdb_cache_t,
    strict: c_uchar,
) {
    attempt((), || {
        shared(cache)?.cache.set_strict_capacity_limit(strict != 0);
        Ok(())
    });
}

/// Passes each named value of a property to `each`; 0 for a property that has none.
#[unsafe(no_mangle)]
pub extern "C" fn esker_map_property_cf(
    db: *mut rocksdb_t,
    column_family: *const rocksdb_column_family_handle_t,
    name: *const c_char,
    state: *mut c_void,
    each: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>,
    errptr: *mut *mut c_char,
) -> c_uchar {
    call(errptr, 0, || {
        let (db, family) = with_family(db, column_family)?;
        let Some(values) = db.map_property(family, text(name)?) else {
            return Ok(0);
        };
        if let Some(each) = each {
            for (name, value) in &values {
                tell_pair(each, state, name.as_bytes(), value.as_bytes());
            }
        }
        Ok(1)
    })
}

/// Keeps a panic of a plain getter inside.
fn figure<R>(nothing: R, body: impl FnOnce() -> Option<R>) -> R {
    quiet(None, body).unwrap_or(nothing)
}
