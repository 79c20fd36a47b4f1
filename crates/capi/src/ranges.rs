//! Ranges of keys: how large they are, and what is to become of their files.

use crate::boundary::{bytes, call, destroy, give, many, put_at, quiet, shared};
use crate::db::{with_default, with_family};
use crate::*;
use esker::{Db, FamilyHandle, Result, SizeOptions};
use std::ffi::{c_char, c_int};
use std::ptr;

/// The parts that count for the size of a range.
#[derive(Default)]
pub struct rocksdb_size_approximation_options_t {
    pub(crate) size: SizeOptions,
}

/// Bits of `include_flags`.
const MEMTABLES: u8 = 1;
const FILES: u8 = 2;
const BLOB_FILES: u8 = 4;

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_size_approximation_options_create()
-> *mut rocksdb_size_approximation_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_size_approximation_options_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_size_approximation_options_destroy(
    options: *mut rocksdb_size_approximation_options_t,
) {
    destroy(options);
}

/// The ranges that four arrays say.
#[derive(Clone, Copy)]
struct Ranges {
    count: c_int,
    starts: *const *const c_char,
    start_lengths: *const usize,
    limits: *const *const c_char,
    limit_lengths: *const usize,
}

impl Ranges {
    fn list<'a>(self) -> Vec<(&'a [u8], &'a [u8])> {
        let count = usize::try_from(self.count).unwrap_or(0);
        let keys = |keys: *const *const c_char, lengths: *const usize| {
            let keys = many(keys, count).iter().zip(many(lengths, count));
            keys.map(|(k, n)| bytes(*k, *n)).collect::<Vec<_>>()
        };
        let starts = keys(self.starts, self.start_lengths);
        let limits = keys(self.limits, self.limit_lengths);
        starts.into_iter().zip(limits).collect()
    }
}

fn sizes_of(
    (db, family): (&Db, &FamilyHandle),
    ranges: Ranges,
    options: &SizeOptions,
    sizes: *mut u64,
) -> Result<()> {
    let found = db.approximate_sizes_opt(family, &ranges.list(), options)?;
    for (i, bytes) in found.into_iter().enumerate() {
        put_at(sizes, i, bytes);
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_sizes(
    db: *mut rocksdb_t,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
    errptr: *mut *mut c_char,
) {
    rocksdb_approximate_sizes_with_options(
        db,
        ptr::null(),
        num_ranges,
        range_start_key,
        range_start_key_len,
        range_limit_key,
        range_limit_key_len,
        sizes,
        errptr,
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_sizes_cf(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
    errptr: *mut *mut c_char,
) {
    rocksdb_approximate_sizes_cf_with_options(
        db,
        column_family,
        ptr::null(),
        num_ranges,
        range_start_key,
        range_start_key_len,
        range_limit_key,
        range_limit_key_len,
        sizes,
        errptr,
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_sizes_cf_with_flags(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    include_flags: u8,
    sizes: *mut u64,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let ranges = Ranges {
            count: num_ranges,
            starts: range_start_key,
            start_lengths: range_start_key_len,
            limits: range_limit_key,
            limit_lengths: range_limit_key_len,
        };
        let mut options = SizeOptions::default();
        options.include_memtables = include_flags & MEMTABLES != 0;
        options.include_files = include_flags & FILES != 0;
        options.include_blob_files = include_flags & BLOB_FILES != 0;
        sizes_of(with_family(db, column_family)?, ranges, &options, sizes)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_sizes_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_size_approximation_options_t,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let ranges = Ranges {
            count: num_ranges,
            starts: range_start_key,
            start_lengths: range_start_key_len,
            limits: range_limit_key,
            limit_lengths: range_limit_key_len,
        };
        let options = shared(options).map(|o| o.size).unwrap_or_default();
        sizes_of(with_default(db)?, ranges, &options, sizes)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_approximate_sizes_cf_with_options(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_size_approximation_options_t,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let ranges = Ranges {
            count: num_ranges,
            starts: range_start_key,
            start_lengths: range_start_key_len,
            limits: range_limit_key,
            limit_lengths: range_limit_key_len,
        };
        let options = shared(options).map(|o| o.size).unwrap_or_default();
        sizes_of(with_family(db, column_family)?, ranges, &options, sizes)
    });
}

/// A bound; NULL stands for none.
fn bound<'a>(key: *const c_char, len: usize) -> Option<&'a [u8]> {
    (!key.is_null()).then(|| bytes(key, len))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_suggest_compact_range(
    db: *mut rocksdb_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_default(db)?;
        db.suggest_compact_range(
            family,
            bound(start_key, start_key_len),
            bound(limit_key, limit_key_len),
        )
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_suggest_compact_range_cf(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_family(db, column_family)?;
        db.suggest_compact_range(
            family,
            bound(start_key, start_key_len),
            bound(limit_key, limit_key_len),
        )
    });
}

/// Both ends belong to the range, as in RocksDB.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_delete_file_in_range(
    db: *mut rocksdb_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_default(db)?;
        let range = (
            bound(start_key, start_key_len),
            bound(limit_key, limit_key_len),
        );
        db.delete_files_in_ranges(family, &[range], true)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_delete_file_in_range_cf(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_family(db, column_family)?;
        let range = (
            bound(start_key, start_key_len),
            bound(limit_key, limit_key_len),
        );
        db.delete_files_in_ranges(family, &[range], true)
    });
}
