//! Following a database: secondary instances, and the updates since a sequence number with the logs
//! they are in.

use crate::boundary::{attempt, call, destroy, exclusive, give, path, put, quiet, shared};
use crate::db::{OpenRequest, database, opened};
use crate::*;
use esker::{Db, TransactionLog, WalFile, WalKind};
use std::ffi::{CString, c_char, c_int, c_uchar};
use std::ptr;

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_open_as_secondary(
    options: *const rocksdb_options_t,
    name: *const c_char,
    secondary_path: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    call(errptr, ptr::null_mut(), || {
        let OpenRequest { options, families } = OpenRequest::default_only(options)?;
        let db =
            Db::open_families_secondary(path(name)?, path(secondary_path)?, options, families)?;
        Ok(give(rocksdb_t::new(db)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_open_as_secondary_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    secondary_path: *const c_char,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    column_family_options: *const *const rocksdb_options_t,
    column_family_handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    call(errptr, ptr::null_mut(), || {
        let OpenRequest { options, families } = OpenRequest::listed(
            options,
            num_column_families,
            column_family_names,
            column_family_options,
        )?;
        let db = Db::open_families_secondary(
            path(name)?,
            path(secondary_path)?,
            options,
            families.clone(),
        )?;
        opened(db, &families, column_family_handles)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_try_catch_up_with_primary(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    call(errptr, (), || database(db)?.try_catch_up_with_primary());
}

/// A walk over the batches of a database's logs.
pub struct rocksdb_wal_iterator_t {
    log: TransactionLog,
}

/// How to walk. Checksums are checked in any case.
pub struct rocksdb_wal_readoptions_t {
    verify_checksums: bool,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_updates_since(
    db: *mut rocksdb_t,
    seq_number: u64,
    _options: *const rocksdb_wal_readoptions_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_wal_iterator_t {
    call(errptr, ptr::null_mut(), || {
        let log = database(db)?.updates_since(seq_number)?;
        Ok(give(rocksdb_wal_iterator_t { log }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_iter_next(iter: *mut rocksdb_wal_iterator_t) {
    attempt((), || {
        exclusive(iter)?.log.next();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_iter_valid(wal_iterator: *const rocksdb_wal_iterator_t) -> c_uchar {
    attempt(0, || Ok(c_uchar::from(shared(wal_iterator)?.log.valid())))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_iter_status(
    iter: *const rocksdb_wal_iterator_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || shared(iter)?.log.status());
}

/// The batch is the caller's; an empty one where the iterator is not valid.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_iter_get_batch(
    iter: *const rocksdb_wal_iterator_t,
    seq: *mut u64,
) -> *mut rocksdb_writebatch_t {
    attempt(ptr::null_mut(), || {
        let log = &shared(iter)?.log;
        if !log.valid() {
            return Ok(give(rocksdb_writebatch_t::default()));
        }
        put(seq, log.sequence());
        Ok(give(rocksdb_writebatch_t::new(log.batch().clone())))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_iter_destroy(iter: *const rocksdb_wal_iterator_t) {
    destroy(iter.cast_mut());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_readoptions_create() -> *mut rocksdb_wal_readoptions_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_wal_readoptions_t {
            verify_checksums: true,
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_readoptions_destroy(options: *mut rocksdb_wal_readoptions_t) {
    destroy(options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_readoptions_set_verify_checksums(
    options: *mut rocksdb_wal_readoptions_t,
    verify_checksums: c_uchar,
) {
    attempt((), || {
        exclusive(options)?.verify_checksums = verify_checksums != 0;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_readoptions_get_verify_checksums(
    options: *mut rocksdb_wal_readoptions_t,
) -> c_uchar {
    attempt(0, || Ok(c_uchar::from(shared(options)?.verify_checksums)))
}

/// A log; its path is kept as text that C reads in place.
pub struct rocksdb_wal_file_t {
    file: WalFile,
    path_name: CString,
}

impl rocksdb_wal_file_t {
    fn new(file: WalFile) -> Self {
        rocksdb_wal_file_t {
            path_name: CString::new(file.path_name()).unwrap_or_default(),
            file,
        }
    }
}

/// The logs of a database.
pub struct rocksdb_wal_files_t {
    files: Vec<rocksdb_wal_file_t>,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_sorted_wal_files(
    db: *mut rocksdb_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_wal_files_t {
    call(errptr, ptr::null_mut(), || {
        let files = database(db)?.sorted_wal_files()?;
        let files = files.into_iter().map(rocksdb_wal_file_t::new).collect();
        Ok(give(rocksdb_wal_files_t { files }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_current_wal_file(
    db: *mut rocksdb_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_wal_file_t {
    call(errptr, ptr::null_mut(), || {
        let file = database(db)?.current_wal_file()?;
        Ok(give(rocksdb_wal_file_t::new(file)))
    })
}

/// The text lives as long as the file's handle.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_file_path_name(file: *const rocksdb_wal_file_t) -> *const c_char {
    attempt(ptr::null(), || Ok(shared(file)?.path_name.as_ptr()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_file_log_number(file: *const rocksdb_wal_file_t) -> u64 {
    attempt(0, || Ok(shared(file)?.file.number))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_file_type(file: *const rocksdb_wal_file_t) -> c_int {
    attempt(0, || {
        Ok(match shared(file)?.file.kind {
            WalKind::Archived => 0,
            WalKind::Alive => 1,
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_file_start_sequence(file: *const rocksdb_wal_file_t) -> u64 {
    attempt(0, || Ok(shared(file)?.file.start_sequence))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_file_size_file_bytes(file: *const rocksdb_wal_file_t) -> u64 {
    attempt(0, || Ok(shared(file)?.file.bytes))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_file_destroy(file: *mut rocksdb_wal_file_t) {
    destroy(file);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_files_count(files: *const rocksdb_wal_files_t) -> usize {
    attempt(0, || Ok(shared(files)?.files.len()))
}

/// The file belongs to the list; NULL beyond its end.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_files_get_wal_file(
    files: *const rocksdb_wal_files_t,
    index: usize,
) -> *const rocksdb_wal_file_t {
    attempt(ptr::null(), || {
        let file = shared(files)?.files.get(index);
        Ok(file.map_or(ptr::null(), ptr::from_ref))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_files_destroy(files: *mut rocksdb_wal_files_t) {
    destroy(files);
}
