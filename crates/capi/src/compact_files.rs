//! Compacting table files that are given by name.

use crate::boundary::{attempt, exclusive, shared, text};
use crate::boundary::{call, destroy, free, give, malloc_array, malloc_text, many, put, quiet};
use crate::db::{with_default, with_family};
use crate::*;
use esker::options::{CompressionType, Temperature};
use esker::{Db, Error, ErrorKind, FamilyHandle, Result};
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};

/// How to compact files. Sizes and codecs of what is made follow the family's options; what is set here is told by its
/// getters, and only the flag counts.
pub struct rocksdb_compaction_options_t {
    pub(crate) compression: CompressionType,
    pub(crate) output_file_size_limit: u64,
    pub(crate) max_subcompactions: u32,
    pub(crate) output_temperature_override: Temperature,
    pub(crate) allow_trivial_move: bool,
    canceled: *mut c_uchar,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_create() -> *mut rocksdb_compaction_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_compaction_options_t {
            compression: CompressionType::Disable,
            output_file_size_limit: u64::MAX,
            max_subcompactions: 0,
            output_temperature_override: Temperature::Unknown,
            allow_trivial_move: false,
            canceled: ptr::null_mut(),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_destroy(
    compaction_options: *mut rocksdb_compaction_options_t,
) {
    destroy(compaction_options);
}

/// A flag that any thread may set.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_canceled_create() -> *mut c_uchar {
    quiet(ptr::null_mut(), || give(AtomicU8::new(0)).cast())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_canceled_destroy(canceled: *mut c_uchar) {
    destroy(canceled.cast::<AtomicU8>());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_canceled_set(canceled: *mut c_uchar, value: c_uchar) {
    attempt((), || {
        let flag = shared(canceled.cast_const().cast::<AtomicU8>())?;
        flag.store(value, Ordering::Release);
        Ok(())
    });
}

/// The flag stays the caller's. It is looked at when a compaction begins.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_set_canceled(
    options: *mut rocksdb_compaction_options_t,
    canceled: *mut c_uchar,
) {
    attempt((), || {
        exclusive(options)?.canceled = canceled;
        Ok(())
    });
}

/// Where the names of the files made go.
struct Made {
    names: *mut *mut *mut c_char,
    count: *mut usize,
}

fn compact(
    db: &Db,
    family: &FamilyHandle,
    options: *const rocksdb_compaction_options_t,
    inputs: &[*const c_char],
    output_level: c_int,
    made: &Made,
) -> Result<()> {
    let flag = shared(options).map_or(ptr::null_mut(), |o| o.canceled);
    let is_set = |flag: &AtomicU8| flag.load(Ordering::Acquire) != 0;
    if shared(flag.cast_const().cast::<AtomicU8>()).is_ok_and(is_set) {
        let said = "Manual compaction was canceled";
        return Err(Error::new(ErrorKind::Incomplete, said));
    }
    let level = u8::try_from(output_level)
        .map_err(|_| Error::invalid_argument("Output level does not exist."))?;
    let inputs: Vec<&str> = inputs.iter().map(|n| text(*n)).collect::<Result<_>>()?;
    // RocksDB's metadata names files with a slash before them.
    let inputs: Vec<&str> = inputs.iter().map(|n| n.trim_start_matches('/')).collect();
    let files = db.compact_files(family, &inputs, level)?;
    put(made.count, files.len());
    if !made.names.is_null() {
        let names: Vec<_> = files
            .iter()
            .map(|f| malloc_text(&f.to_string_lossy()))
            .collect();
        put(made.names, malloc_array(&names));
    }
    Ok(())
}

/// `compaction_job_info` stays as it is, and there is one path.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compact_files(
    db: *mut rocksdb_t,
    options: *const rocksdb_compaction_options_t,
    input_file_names: *const *const c_char,
    num_input_file_names: usize,
    output_level: c_int,
    _output_path_id: c_int,
    output_file_names: *mut *mut *mut c_char,
    num_output_file_names: *mut usize,
    _compaction_job_info: *mut rocksdb_compactionjobinfo_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_default(db)?;
        let inputs = many(input_file_names, num_input_file_names);
        let made = Made {
            names: output_file_names,
            count: num_output_file_names,
        };
        compact(db, family, options, inputs, output_level, &made)
    });
}

/// As [`rocksdb_compact_files`]; NULL is the default family.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compact_files_cf(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_compaction_options_t,
    input_file_names: *const *const c_char,
    num_input_file_names: usize,
    output_level: c_int,
    _output_path_id: c_int,
    output_file_names: *mut *mut *mut c_char,
    num_output_file_names: *mut usize,
    _compaction_job_info: *mut rocksdb_compactionjobinfo_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = if column_family.is_null() {
            with_default(db)?
        } else {
            with_family(db, column_family)?
        };
        let inputs = many(input_file_names, num_input_file_names);
        let made = Made {
            names: output_file_names,
            count: num_output_file_names,
        };
        compact(db, family, options, inputs, output_level, &made)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compact_files_output_file_names_destroy(
    output_file_names: *mut *mut c_char,
    num_output_file_names: usize,
) {
    for name in many(output_file_names.cast_const(), num_output_file_names) {
        free(name.cast());
    }
    free(output_file_names.cast());
}
