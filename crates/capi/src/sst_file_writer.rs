//! Making table files for ingestion, and the options of files that they are written with.
//!
//! Options that no database opens with are told when a file is opened: creating a writer has no way to.

use crate::boundary::{attempt, bytes, call, destroy, exclusive, give, path, put, quiet, shared};
use crate::*;
use esker::env::WriteOptions as FileWriteOptions;
use esker::{Error, Result, SstFileWriter};
use std::ffi::c_char;
use std::ptr;

/// How files are written. What it says about reading has no effect on a writer, and is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvOptions {
    pub(crate) use_mmap_reads: bool,
    pub(crate) use_mmap_writes: bool,
    pub(crate) use_direct_reads: bool,
    pub(crate) use_direct_writes: bool,
    pub(crate) allow_fallocate: bool,
    pub(crate) fd_cloexec: bool,
    pub(crate) bytes_per_sync: u64,
    pub(crate) strict_bytes_per_sync: bool,
    pub(crate) fallocate_with_keep_size: bool,
    pub(crate) compaction_readahead_size: usize,
    pub(crate) writable_file_max_buffer_size: usize,
}

impl Default for EnvOptions {
    fn default() -> Self {
        EnvOptions {
            use_mmap_reads: false,
            use_mmap_writes: true,
            use_direct_reads: false,
            use_direct_writes: false,
            allow_fallocate: true,
            fd_cloexec: true,
            bytes_per_sync: 0,
            strict_bytes_per_sync: false,
            fallocate_with_keep_size: true,
            compaction_readahead_size: 0,
            writable_file_max_buffer_size: 1 << 20,
        }
    }
}

/// How files are written.
#[derive(Default)]
pub struct rocksdb_envoptions_t {
    pub(crate) env: EnvOptions,
}

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
pub extern "C" fn rocksdb_envoptions_create() -> *mut rocksdb_envoptions_t {
    quiet(ptr::null_mut(), || give(rocksdb_envoptions_t::default()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_envoptions_destroy(opt: *mut rocksdb_envoptions_t) {
    destroy(opt);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sstfilewriter_create(
    env: *const rocksdb_envoptions_t,
    io_options: *const rocksdb_options_t,
) -> *mut rocksdb_sstfilewriter_t {
    attempt(ptr::null_mut(), || {
        let made = || -> Result<SstFileWriter> {
            let writer = SstFileWriter::new(&shared(io_options)?.options)?;
            let env = shared(env).map(|e| e.env).unwrap_or_default();
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
