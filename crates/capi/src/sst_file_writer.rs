//! Making table files for ingestion.
//!
//! Options that no database opens with are told when a file is opened: creating a writer has no way
//! to.

use crate::boundary::{attempt, bytes, call, destroy, exclusive, give, path, put, shared};
use crate::*;
use esker::env::WriteOptions as FileWriteOptions;
use esker::{Error, Result, SstFileWriter};
use std::ffi::c_char;
use std::ptr;

/// A writer of table files, or why there is none.
pub struct rocksdb_sstfilewriter_t {
    writer: Result<SstFileWriter>,
}

fn with_writer(
    writer: *mut rocksdb_sstfilewriter_t,
    errptr: *mut *mut c_char,
    body: impl FnOnce(&mut SstFileWriter) -> Result<()>,
) {
    call(errptr, (), || match &mut exclusive(writer)?.writer {
        Ok(writer) => body(writer),
        Err(e) => Err(Error::clone(e)),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_create(
    env: *const rocksdb_envoptions_t,
    io_options: *const rocksdb_options_t,
) -> *mut rocksdb_sstfilewriter_t {
    attempt(ptr::null_mut(), || {
        let made = || -> Result<SstFileWriter> {
            let writer = SstFileWriter::new(&shared(io_options)?.options)?;
            let Ok(env) = shared(env) else {
                return Ok(writer);
            };
            Ok(writer.with_file_options(FileWriteOptions {
                direct: env.use_direct_writes,
                bytes_per_sync: env.bytes_per_sync,
                buffer_size: env.writable_file_max_buffer_size,
                ..FileWriteOptions::default()
            }))
        };
        Ok(give(rocksdb_sstfilewriter_t { writer: made() }))
    })
}

/// The comparator is that of the options, as in RocksDB.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_create_with_comparator(
    env: *const rocksdb_envoptions_t,
    io_options: *const rocksdb_options_t,
    _comparator: *const rocksdb_comparator_t,
) -> *mut rocksdb_sstfilewriter_t {
    rocksdb_sstfilewriter_create(env, io_options)
}

/// Makes the writer write files that are to go into `column_family` and into no other: collectors
/// of table properties learn its number. Before a file is opened.
#[unsafe(no_mangle)]
pub extern "C" fn esker_sstfilewriter_set_family(
    writer: *mut rocksdb_sstfilewriter_t,
    column_family: *const rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let family = &shared(column_family)?.family;
        let holder = exclusive(writer)?;
        let taken = Err(Error::invalid_argument("the writer is taken apart"));
        let before = std::mem::replace(&mut holder.writer, taken);
        holder.writer = before.map(|w| w.for_family(family));
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_open(
    writer: *mut rocksdb_sstfilewriter_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    with_writer(writer, errptr, |w| w.open(path(name)?));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_add(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    rocksdb_sstfilewriter_put(writer, key, keylen, val, vallen, errptr);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_put(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    with_writer(writer, errptr, |w| {
        w.put(bytes(key, keylen), bytes(val, vallen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_put_with_ts(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: usize,
    ts: *const c_char,
    tslen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    with_writer(writer, errptr, |w| {
        w.put_with_timestamp(bytes(key, keylen), bytes(ts, tslen), bytes(val, vallen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_merge(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    with_writer(writer, errptr, |w| {
        w.merge(bytes(key, keylen), bytes(val, vallen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_delete(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    with_writer(writer, errptr, |w| w.delete(bytes(key, keylen)));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_delete_with_ts(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: usize,
    ts: *const c_char,
    tslen: usize,
    errptr: *mut *mut c_char,
) {
    with_writer(writer, errptr, |w| {
        w.delete_with_timestamp(bytes(key, keylen), bytes(ts, tslen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_delete_range(
    writer: *mut rocksdb_sstfilewriter_t,
    begin_key: *const c_char,
    begin_keylen: usize,
    end_key: *const c_char,
    end_keylen: usize,
    errptr: *mut *mut c_char,
) {
    with_writer(writer, errptr, |w| {
        w.delete_range(bytes(begin_key, begin_keylen), bytes(end_key, end_keylen))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_finish(
    writer: *mut rocksdb_sstfilewriter_t,
    errptr: *mut *mut c_char,
) {
    with_writer(writer, errptr, |w| w.finish().map(drop));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_file_size(
    writer: *mut rocksdb_sstfilewriter_t,
    file_size: *mut u64,
) {
    attempt((), || {
        let writer = &shared(writer.cast_const())?.writer;
        put(
            file_size,
            writer.as_ref().map_or(0, SstFileWriter::file_size),
        );
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_destroy(writer: *mut rocksdb_sstfilewriter_t) {
    destroy(writer);
}
