//! Compacting table files that are given by name.

use crate::boundary::{attempt, exclusive, shared, text};
use crate::boundary::{call, destroy, free, give, malloc_array, malloc_text, many, put, quiet};
use crate::db::{with_default, with_family};
use crate::*;
use esker::options::{CompressionType, Temperature};
use esker::{CompactFilesOptions, Db, Error, FamilyHandle, Result};
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How to compact files.
pub struct rocksdb_compaction_options_t {
    pub(crate) compression: CompressionType,
    pub(crate) output_file_size_limit: u64,
    pub(crate) max_subcompactions: u32,
    /// A number as it was given: what is no temperature stands for none.
    pub(crate) output_temperature_override: i32,
    pub(crate) allow_trivial_move: bool,
    canceled: Option<Flag>,
}

/// A flag that any thread may set. The caller and every holder share it.
type Flag = Arc<AtomicBool>;

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_create() -> *mut rocksdb_compaction_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_compaction_options_t {
            compression: CompressionType::Disable,
            output_file_size_limit: u64::MAX,
            max_subcompactions: 0,
            output_temperature_override: i32::from(Temperature::Unknown.number()),
            allow_trivial_move: false,
            canceled: None,
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_destroy(
    compaction_options: *mut rocksdb_compaction_options_t,
) {
    destroy(compaction_options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_canceled_create() -> *mut c_uchar {
    quiet(ptr::null_mut(), || give(Flag::default()).cast())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_canceled_destroy(canceled: *mut c_uchar) {
    destroy(canceled.cast::<Flag>());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_canceled_set(canceled: *mut c_uchar, value: c_uchar) {
    attempt((), || {
        let flag = shared(canceled.cast_const().cast::<Flag>())?;
        flag.store(value != 0, Ordering::Release);
        Ok(())
    });
}

/// NULL takes the flag away.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_set_canceled(
    options: *mut rocksdb_compaction_options_t,
    canceled: *mut c_uchar,
) {
    attempt((), || {
        let flag = shared(canceled.cast_const().cast::<Flag>());
        exclusive(options)?.canceled = flag.ok().cloned();
        Ok(())
    });
}

impl rocksdb_compaction_options_t {
    fn to_options(&self) -> CompactFilesOptions {
        let mut out = CompactFilesOptions::default();
        out.compression = Some(self.compression).filter(|c| *c != CompressionType::Disable);
        out.output_file_size_limit = self.output_file_size_limit;
        out.max_subcompactions = self.max_subcompactions;
        out.canceled.clone_from(&self.canceled);
        out.output_temperature_override = u8::try_from(self.output_temperature_override)
            .ok()
            .and_then(Temperature::from_number)
            .filter(|t| *t != Temperature::Unknown);
        out.allow_trivial_move = self.allow_trivial_move;
        out
    }
}

/// Where the names of the files made go, and what was done.
struct OutputNames {
    names: *mut *mut *mut c_char,
    count: *mut usize,
    info: *mut rocksdb_compactionjobinfo_t,
}

fn compact(
    db: &Db,
    family: &FamilyHandle,
    options: *const rocksdb_compaction_options_t,
    inputs: &[*const c_char],
    output_level: c_int,
    output_path: c_int,
    made: &OutputNames,
) -> Result<()> {
    let level = u8::try_from(output_level)
        .map_err(|_| Error::invalid_argument("Output level does not exist."))?;
    let inputs: Vec<&str> = inputs.iter().map(|n| text(*n)).collect::<Result<_>>()?;
    // RocksDB's metadata names files with a slash before them.
    let inputs: Vec<&str> = inputs.iter().map(|n| n.trim_start_matches('/')).collect();
    let mut options = match shared(options) {
        Ok(given) => given.to_options(),
        Err(_) => CompactFilesOptions::default(),
    };
    options.output_path_id = match u32::try_from(output_path) {
        Ok(id) => id,
        Err(_) if db.table_paths(family).len() == 1 => 0,
        Err(_) => {
            return Err(Error::not_supported(
                "Automatic output path selection is not yet supported in CompactFiles()",
            ));
        }
    };
    let done = db.compact_files_opt(family, &inputs, level, &options)?;
    put(made.count, done.output_files.len());
    if let Ok(info) = exclusive(made.info) {
        *info = rocksdb_compactionjobinfo_t::new(&done);
    }
    if !made.names.is_null() {
        let paths = done.output_files.iter().filter_map(|n| done.paths.get(n));
        let names: Vec<_> = paths.map(|p| malloc_text(&p.to_string_lossy())).collect();
        put(made.names, malloc_array(&names));
    }
    Ok(())
}

/// A path below 0 stands for the only one.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compact_files(
    db: *mut rocksdb_t,
    options: *const rocksdb_compaction_options_t,
    input_file_names: *const *const c_char,
    num_input_file_names: usize,
    output_level: c_int,
    output_path_id: c_int,
    output_file_names: *mut *mut *mut c_char,
    num_output_file_names: *mut usize,
    compaction_job_info: *mut rocksdb_compactionjobinfo_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_default(db)?;
        let inputs = many(input_file_names, num_input_file_names);
        let made = OutputNames {
            names: output_file_names,
            count: num_output_file_names,
            info: compaction_job_info,
        };
        compact(
            db,
            family,
            options,
            inputs,
            output_level,
            output_path_id,
            &made,
        )
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
    output_path_id: c_int,
    output_file_names: *mut *mut *mut c_char,
    num_output_file_names: *mut usize,
    compaction_job_info: *mut rocksdb_compactionjobinfo_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = if column_family.is_null() {
            with_default(db)?
        } else {
            with_family(db, column_family)?
        };
        let inputs = many(input_file_names, num_input_file_names);
        let made = OutputNames {
            names: output_file_names,
            count: num_output_file_names,
            info: compaction_job_info,
        };
        compact(
            db,
            family,
            options,
            inputs,
            output_level,
            output_path_id,
            &made,
        )
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
