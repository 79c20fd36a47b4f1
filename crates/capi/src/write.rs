//! Writes of one key, and of batches.

use crate::boundary::{call, exclusive, shared, sized};
use crate::db::{database, with_default, with_family};
use crate::*;
use esker::{Db, FamilyHandle, Result, WriteOptions};
use std::ffi::{c_char, c_uchar};

/// Where a write goes: `family`, or the default family for NULL.
#[inline]
pub(crate) fn write_to(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    family: Option<*mut rocksdb_column_family_handle_t>,
    errptr: *mut *mut c_char,
    body: impl FnOnce(&Db, &FamilyHandle, &WriteOptions) -> Result<()>,
) {
    call(errptr, (), || {
        let (db, family) = match family {
            None => with_default(db)?,
            Some(family) => with_family(db, family)?,
        };
        body(db, family, &shared(options)?.write)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_put(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(db, options, None, errptr, |db, family, options| {
        db.put_opt(family, sized(key, keylen)?, sized(val, vallen)?, options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_put_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        db,
        options,
        Some(column_family),
        errptr,
        |db, family, options| db.put_opt(family, sized(key, keylen)?, sized(val, vallen)?, options),
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_delete(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(db, options, None, errptr, |db, family, options| {
        db.delete_opt(family, sized(key, keylen)?, options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_delete_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        db,
        options,
        Some(column_family),
        errptr,
        |db, family, options| db.delete_opt(family, sized(key, keylen)?, options),
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_singledelete(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(db, options, None, errptr, |db, family, options| {
        db.single_delete_opt(family, sized(key, keylen)?, options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_singledelete_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        db,
        options,
        Some(column_family),
        errptr,
        |db, family, options| db.single_delete_opt(family, sized(key, keylen)?, options),
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_merge(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(db, options, None, errptr, |db, family, options| {
        db.merge_opt(family, sized(key, keylen)?, sized(val, vallen)?, options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_merge_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        db,
        options,
        Some(column_family),
        errptr,
        |db, family, options| {
            db.merge_opt(family, sized(key, keylen)?, sized(val, vallen)?, options)
        },
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_delete_range_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    start_key: *const c_char,
    start_key_len: usize,
    end_key: *const c_char,
    end_key_len: usize,
    errptr: *mut *mut c_char,
) {
    write_to(
        db,
        options,
        Some(column_family),
        errptr,
        |db, family, options| {
            let (begin, end) = (
                sized(start_key, start_key_len)?,
                sized(end_key, end_key_len)?,
            );
            db.delete_range_opt(family, begin, end, options)
        },
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    batch: *mut rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let batch = exclusive(batch)?;
        batch.check()?;
        database(db)?.write_opt(&mut batch.batch, &shared(options)?.write)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_flush_wal(db: *mut rocksdb_t, sync: c_uchar, errptr: *mut *mut c_char) {
    call(errptr, (), || database(db)?.flush_wal(sync != 0));
}
