//! Write batches.
//!
//! The functions that add a record cannot report errors; the first one (a key that is too long, a
//! batch that exceeds its limit) is kept and reported when the batch is written.

use crate::boundary::{attempt, bytes, call, destroy, exclusive, give, many, put, quiet, shared};
use crate::*;
use esker::{Error, FamilyId, Result, WriteBatch};
use esker_format::batch::Record;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// Writes that happen together.
#[derive(Default)]
pub struct rocksdb_writebatch_t {
    pub(crate) batch: WriteBatch,
    failed: Option<Error>,
    /// How long the timestamps of keys are that are added without a family.
    default_timestamp: usize,
}

impl rocksdb_writebatch_t {
    /// A handle on `batch`.
    pub(crate) fn new(batch: WriteBatch) -> Self {
        rocksdb_writebatch_t {
            batch,
            failed: None,
            default_timestamp: 0,
        }
    }

    /// The first error of a function that could not report it.
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Has these records instead of its own.
    pub(crate) fn replace(&mut self, records: WriteBatch) {
        self.batch = records;
        self.failed = None;
    }

    /// Forgets it.
    pub(crate) fn forget_failure(&mut self) {
        self.failed = None;
    }
}

/// The number of a family, or of the default family for NULL.
pub(crate) fn family_id(family: *const rocksdb_column_family_handle_t) -> FamilyId {
    shared(family).map_or(FamilyId::DEFAULT, |f| FamilyId::from(&f.family))
}

/// Adds to a batch, and keeps the error.
#[inline]
pub(crate) fn add(
    batch: *mut rocksdb_writebatch_t,
    record: impl FnOnce(&mut WriteBatch) -> Result<()>,
) {
    attempt((), || {
        let batch = exclusive(batch)?;
        if let Err(error) = record(&mut batch.batch) {
            batch.failed.get_or_insert(error);
        }
        Ok(())
    });
}

/// Adds the record that `of` makes for `family` (NULL: the default family), and keeps the error.
/// Where keys have timestamps, it comes with room for one.
#[inline]
fn add_record<'k>(
    batch: *mut rocksdb_writebatch_t,
    family: *const rocksdb_column_family_handle_t,
    of: impl FnOnce(FamilyId) -> Record<'k>,
) {
    attempt((), || {
        let batch = exclusive(batch)?;
        let (family, timestamp) = if family.is_null() {
            (FamilyId::DEFAULT, batch.default_timestamp)
        } else {
            let family = &shared(family)?.family;
            (FamilyId::from(family), family.order().timestamp_size())
        };
        let record = of(family);
        let done = match timestamp {
            0 => add_plain(&mut batch.batch, &record),
            size => batch.batch.add_without_timestamp(&record, size),
        };
        if let Err(error) = done {
            batch.failed.get_or_insert(error);
        }
        Ok(())
    });
}

/// Inlined, it is the one call for the kind of record at hand.
#[inline(always)]
fn add_plain(batch: &mut WriteBatch, record: &Record<'_>) -> Result<()> {
    match *record {
        Record::Put { family, key, value } => batch.put_cf(family, key, value),
        Record::Delete { family, key } => batch.delete_cf(family, key),
        Record::SingleDelete { family, key } => batch.single_delete_cf(family, key),
        Record::Merge {
            family,
            key,
            operand,
        } => batch.merge_cf(family, key, operand),
        Record::DeleteRange { family, begin, end } => batch.delete_range_cf(family, begin, end),
        _ => Err(Error::not_supported("a record of this kind")),
    }
}

/// The pieces of a key or a value.
pub(crate) fn pieces<'a>(
    list: *const *const c_char,
    sizes: *const usize,
    count: c_int,
) -> Vec<&'a [u8]> {
    let count = usize::try_from(count).unwrap_or(0);
    let sizes = many(sizes, count);
    many(list, count)
        .iter()
        .zip(sizes)
        .map(|(piece, size)| bytes(*piece, *size))
        .collect()
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_create() -> *mut rocksdb_writebatch_t {
    quiet(ptr::null_mut(), || give(rocksdb_writebatch_t::default()))
}

/// A batch as a caller may write it: markers of two-phase commit would stop the database that logs
/// them.
fn without_markers(batch: WriteBatch) -> Result<WriteBatch> {
    for record in batch.records() {
        match record? {
            Record::Put { .. }
            | Record::Delete { .. }
            | Record::SingleDelete { .. }
            | Record::Merge { .. }
            | Record::DeleteRange { .. }
            | Record::PutEntity { .. }
            | Record::LogData(_)
            | Record::Noop => {}
            _ => {
                return Err(Error::not_supported(
                    "a batch with markers of two-phase commit, or with records that only RocksDB makes",
                ));
            }
        }
    }
    Ok(batch)
}

/// Bytes that are no batch give an empty one, whose writing reports the error.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_create_from(
    rep: *const c_char,
    size: usize,
) -> *mut rocksdb_writebatch_t {
    quiet(ptr::null_mut(), || {
        let batch = WriteBatch::from_bytes(bytes(rep, size).to_vec());
        give(match batch.and_then(without_markers) {
            Ok(batch) => rocksdb_writebatch_t::new(batch),
            Err(error) => rocksdb_writebatch_t {
                failed: Some(error),
                ..rocksdb_writebatch_t::default()
            },
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_create_with_params(
    reserved_bytes: usize,
    max_bytes: usize,
    _protection_bytes_per_key: usize,
    default_cf_ts_sz: usize,
) -> *mut rocksdb_writebatch_t {
    quiet(ptr::null_mut(), || {
        let mut made =
            rocksdb_writebatch_t::new(WriteBatch::with_capacity(reserved_bytes.min(1 << 30)));
        made.batch.set_max_bytes(max_bytes);
        made.default_timestamp = default_cf_ts_sz.min(usize::from(u16::MAX));
        give(made)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_destroy(writebatch: *mut rocksdb_writebatch_t) {
    destroy(writebatch);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_clear(b: *mut rocksdb_writebatch_t) {
    attempt((), || {
        let batch = exclusive(b)?;
        batch.batch.clear();
        batch.failed = None;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_count(writebatch: *mut rocksdb_writebatch_t) -> c_int {
    attempt(0, || {
        Ok(c_int::try_from(shared(writebatch)?.batch.count()).unwrap_or(c_int::MAX))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_data(
    writebatch: *mut rocksdb_writebatch_t,
    size: *mut usize,
) -> *const c_char {
    attempt(ptr::null(), || {
        let data = shared(writebatch)?.batch.data();
        put(size, data.len());
        Ok(data.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_put(
    b: *mut rocksdb_writebatch_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    add_record(b, ptr::null(), |family| Record::Put {
        family,
        key: bytes(key, klen),
        value: bytes(val, vlen),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_put_cf(
    b: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    add_record(b, column_family, |family| Record::Put {
        family,
        key: bytes(key, klen),
        value: bytes(val, vlen),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_putv(
    b: *mut rocksdb_writebatch_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    num_values: c_int,
    values_list: *const *const c_char,
    values_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    let value = pieces(values_list, values_list_sizes, num_values);
    add(b, |b| b.put_parts(FamilyId::DEFAULT, &key, &value));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_putv_cf(
    b: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    num_values: c_int,
    values_list: *const *const c_char,
    values_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    let value = pieces(values_list, values_list_sizes, num_values);
    add(b, |b| b.put_parts(family_id(column_family), &key, &value));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_merge(
    writebatch: *mut rocksdb_writebatch_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    add_record(writebatch, ptr::null(), |family| Record::Merge {
        family,
        key: bytes(key, klen),
        operand: bytes(val, vlen),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_merge_cf(
    writebatch: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    add_record(writebatch, column_family, |family| Record::Merge {
        family,
        key: bytes(key, klen),
        operand: bytes(val, vlen),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_mergev(
    b: *mut rocksdb_writebatch_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    num_values: c_int,
    values_list: *const *const c_char,
    values_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    let value = pieces(values_list, values_list_sizes, num_values);
    add(b, |b| b.merge_parts(FamilyId::DEFAULT, &key, &value));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_mergev_cf(
    b: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    num_values: c_int,
    values_list: *const *const c_char,
    values_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    let value = pieces(values_list, values_list_sizes, num_values);
    add(b, |b| b.merge_parts(family_id(column_family), &key, &value));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_delete(
    b: *mut rocksdb_writebatch_t,
    key: *const c_char,
    klen: usize,
) {
    add_record(b, ptr::null(), |family| Record::Delete {
        family,
        key: bytes(key, klen),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_delete_cf(
    writebatch: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
) {
    add_record(writebatch, column_family, |family| Record::Delete {
        family,
        key: bytes(key, klen),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_singledelete(
    b: *mut rocksdb_writebatch_t,
    key: *const c_char,
    klen: usize,
) {
    add_record(b, ptr::null(), |family| Record::SingleDelete {
        family,
        key: bytes(key, klen),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_singledelete_cf(
    b: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
) {
    add_record(b, column_family, |family| Record::SingleDelete {
        family,
        key: bytes(key, klen),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_deletev(
    b: *mut rocksdb_writebatch_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    add(b, |b| b.delete_parts(FamilyId::DEFAULT, &key));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_deletev_cf(
    b: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_keys: c_int,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
) {
    let key = pieces(keys_list, keys_list_sizes, num_keys);
    add(b, |b| b.delete_parts(family_id(column_family), &key));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_delete_range(
    b: *mut rocksdb_writebatch_t,
    start_key: *const c_char,
    start_key_len: usize,
    end_key: *const c_char,
    end_key_len: usize,
) {
    add_record(b, ptr::null(), |family| Record::DeleteRange {
        family,
        begin: bytes(start_key, start_key_len),
        end: bytes(end_key, end_key_len),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_delete_range_cf(
    b: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    start_key: *const c_char,
    start_key_len: usize,
    end_key: *const c_char,
    end_key_len: usize,
) {
    add_record(b, column_family, |family| Record::DeleteRange {
        family,
        begin: bytes(start_key, start_key_len),
        end: bytes(end_key, end_key_len),
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_delete_rangev(
    b: *mut rocksdb_writebatch_t,
    num_keys: c_int,
    start_keys_list: *const *const c_char,
    start_keys_list_sizes: *const usize,
    end_keys_list: *const *const c_char,
    end_keys_list_sizes: *const usize,
) {
    let begin = pieces(start_keys_list, start_keys_list_sizes, num_keys);
    let end = pieces(end_keys_list, end_keys_list_sizes, num_keys);
    add(b, |b| b.delete_range_parts(FamilyId::DEFAULT, &begin, &end));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_delete_rangev_cf(
    b: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    num_keys: c_int,
    start_keys_list: *const *const c_char,
    start_keys_list_sizes: *const usize,
    end_keys_list: *const *const c_char,
    end_keys_list_sizes: *const usize,
) {
    let begin = pieces(start_keys_list, start_keys_list_sizes, num_keys);
    let end = pieces(end_keys_list, end_keys_list_sizes, num_keys);
    add(b, |b| {
        b.delete_range_parts(family_id(column_family), &begin, &end)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_put_log_data(
    b: *mut rocksdb_writebatch_t,
    blob: *const c_char,
    len: usize,
) {
    add(b, |b| b.log_data(bytes(blob, len)));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_set_save_point(b: *mut rocksdb_writebatch_t) {
    add(b, |b| {
        b.set_save_point();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_rollback_to_save_point(
    b: *mut rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || exclusive(b)?.batch.rollback_to_save_point());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_pop_save_point(
    b: *mut rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || exclusive(b)?.batch.pop_save_point());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_verify_checksum(
    b: *mut rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || shared(b)?.batch.reader().verify());
}

pub(crate) type PutFn =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
pub(crate) type DeleteFn = unsafe extern "C" fn(*mut c_void, *const c_char, usize);
type FamilyPutFn =
    unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize);
type FamilyDeleteFn = unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize);

/// The C functions that a walk over a batch calls, one for each kind of record.
#[derive(Clone, Copy, Default)]
pub(crate) struct BatchCallbacks {
    put: Option<PutFn>,
    delete: Option<DeleteFn>,
    family_put: Option<FamilyPutFn>,
    family_delete: Option<FamilyDeleteFn>,
    family_merge: Option<FamilyPutFn>,
    log_data: Option<DeleteFn>,
}

/// Calls the application for each record; the first record without a function for it ends the walk,
/// as in RocksDB.
pub(crate) fn walk(batch: &WriteBatch, state: *mut c_void, told: BatchCallbacks) {
    for record in batch.records() {
        let Ok(record) = record else { return };
        let is_known = match record {
            Record::Put { family, key, value } => {
                told.pair(state, family, key, value, told.family_put)
            }
            Record::Merge {
                family,
                key,
                operand,
            } => {
                told.family_merge.is_some()
                    && told.pair(state, family, key, operand, told.family_merge)
            }
            Record::Delete { family, key } => told.one(state, family, key),
            Record::LogData(blob) => {
                if let Some(f) = told.log_data {
                    crate::boundary::tell_one(f, state, blob);
                }
                true
            }
            _ => false,
        };
        if !is_known {
            return;
        }
    }
}

impl BatchCallbacks {
    /// Functions for puts and deletions in the default family.
    pub(crate) fn of_default(put: Option<PutFn>, delete: Option<DeleteFn>) -> BatchCallbacks {
        BatchCallbacks {
            put,
            delete,
            ..BatchCallbacks::default()
        }
    }

    fn pair(
        self,
        state: *mut c_void,
        family: FamilyId,
        key: &[u8],
        value: &[u8],
        f: Option<FamilyPutFn>,
    ) -> bool {
        if let Some(f) = f {
            crate::boundary::tell_family_pair(f, state, family.0, key, value);
            return true;
        }
        match self.put {
            Some(f) if family == FamilyId::DEFAULT => {
                crate::boundary::tell_pair(f, state, key, value)
            }
            _ => return false,
        }
        true
    }

    fn one(self, state: *mut c_void, family: FamilyId, key: &[u8]) -> bool {
        if let Some(f) = self.family_delete {
            crate::boundary::tell_family_one(f, state, family.0, key);
            return true;
        }
        match self.delete {
            Some(f) if family == FamilyId::DEFAULT => crate::boundary::tell_one(f, state, key),
            _ => return false,
        }
        true
    }
}

fn iterate(batch: *mut rocksdb_writebatch_t, state: *mut c_void, told: BatchCallbacks) {
    attempt((), || {
        walk(&shared(batch)?.batch, state, told);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_iterate(
    writebatch: *mut rocksdb_writebatch_t,
    state: *mut c_void,
    put: Option<PutFn>,
    deleted: Option<DeleteFn>,
) {
    iterate(
        writebatch,
        state,
        BatchCallbacks {
            put,
            delete: deleted,
            ..BatchCallbacks::default()
        },
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_iterate_ld(
    writebatch: *mut rocksdb_writebatch_t,
    state: *mut c_void,
    put: Option<PutFn>,
    deleted: Option<DeleteFn>,
    log_data: Option<DeleteFn>,
) {
    iterate(
        writebatch,
        state,
        BatchCallbacks {
            put,
            delete: deleted,
            log_data,
            ..BatchCallbacks::default()
        },
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_iterate_cf(
    writebatch: *mut rocksdb_writebatch_t,
    state: *mut c_void,
    put_cf: Option<FamilyPutFn>,
    deleted_cf: Option<FamilyDeleteFn>,
    merge_cf: Option<FamilyPutFn>,
) {
    let told = BatchCallbacks {
        family_put: put_cf,
        family_delete: deleted_cf,
        family_merge: merge_cf,
        ..BatchCallbacks::default()
    };
    iterate(writebatch, state, told);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_iterate_cf_ld(
    writebatch: *mut rocksdb_writebatch_t,
    state: *mut c_void,
    put_cf: Option<FamilyPutFn>,
    deleted_cf: Option<FamilyDeleteFn>,
    merge_cf: Option<FamilyPutFn>,
    log_data: Option<DeleteFn>,
) {
    let told = BatchCallbacks {
        family_put: put_cf,
        family_delete: deleted_cf,
        family_merge: merge_cf,
        log_data,
        ..BatchCallbacks::default()
    };
    iterate(writebatch, state, told);
}
