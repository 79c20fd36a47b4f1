//! Administration of an open database: changing options, background work, file deletions,
//! verification.

use crate::boundary::{attempt, call, many, shared, text};
use crate::db::{database, with_default, with_family};
use crate::*;
use esker::{Error, Result};
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;

/// Names and values of options.
fn pairs<'a>(
    count: c_int,
    keys: *const *const c_char,
    values: *const *const c_char,
) -> Result<Vec<(&'a str, &'a str)>> {
    let count = usize::try_from(count).unwrap_or(0);
    if count == 0 {
        return Err(Error::invalid_argument("empty input"));
    }
    let names = many(keys, count).iter().zip(many(values, count));
    names.map(|(k, v)| Ok((text(*k)?, text(*v)?))).collect()
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_set_options(
    db: *mut rocksdb_t,
    count: c_int,
    keys: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_default(db)?;
        db.set_options(family, &pairs(count, keys, values)?)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_set_options_cf(
    db: *mut rocksdb_t,
    handle: *mut rocksdb_column_family_handle_t,
    count: c_int,
    keys: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_family(db, handle)?;
        db.set_options(family, &pairs(count, keys, values)?)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_set_db_options(
    db: *mut rocksdb_t,
    count: c_int,
    keys: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        database(db)?.set_db_options(&pairs(count, keys, values)?)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_pause_background_work(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    call(errptr, (), || database(db)?.pause_background_work());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_continue_background_work(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    call(errptr, (), || {
        database(db)?.continue_background_work();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_disable_file_deletions(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    call(errptr, (), || {
        database(db)?.disable_file_deletions();
        Ok(())
    });
}

/// Until RocksDB 8 there was a flag, to enable them at once, before `errptr`. A program that was
/// built for that calls with the flag in the place of the pointer.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_enable_file_deletions(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    let flag = u8::try_from(errptr.addr()).ok();
    let errptr = if flag.is_some() {
        ptr::null_mut()
    } else {
        errptr
    };
    call(errptr, (), || {
        database(db)?.enable_file_deletions(flag.is_some_and(|force| force != 0));
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_disable_manual_compaction(db: *mut rocksdb_t) {
    attempt((), || {
        database(db)?.disable_manual_compaction();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_enable_manual_compaction(db: *mut rocksdb_t) {
    attempt((), || {
        database(db)?.enable_manual_compaction();
        Ok(())
    });
}

/// Ends background work for good: writes fail from now on, reads go on.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cancel_all_background_work(db: *mut rocksdb_t, wait: c_uchar) {
    attempt((), || database(db)?.cancel_background_work(wait != 0));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_verify_checksum(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    call(errptr, (), || database(db)?.verify_checksums());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_verify_checksum_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        shared(options)?;
        database(db)?.verify_checksums()
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_verify_file_checksums(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    call(errptr, (), || database(db)?.verify_file_checksums());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_verify_file_checksums_with_options(
    db: *mut rocksdb_t,
    _options: *const rocksdb_readoptions_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || database(db)?.verify_file_checksums());
}
