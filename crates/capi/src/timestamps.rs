//! User-defined timestamps: writes and reads of one key at a time, batches, and the history that
//! compactions keep.

use crate::batch::add;
use crate::boundary::callbacks::{self, TimestampSize};
use crate::boundary::{
    attempt, bytes, call, exclusive, malloc_bytes, many, put, put_at, report, shared, sized,
};
use crate::db::{with_default, with_family};
use crate::read::keys;
use crate::write::write_to;
use crate::*;
use esker::{Db, Error, FamilyHandle, FamilyId, Result, Timestamped};
use std::ffi::{c_char, c_void};
use std::ptr;

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_put_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    ts: *const c_char,
    tslen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(db, options, None, errptr, |db, family, options| {
        let (key, value) = (sized(key, keylen)?, sized(val, vallen)?);
        db.put_with_timestamp(family, key, sized(ts, tslen)?, value, options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_put_cf_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    ts: *const c_char,
    tslen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    let family = Some(column_family);
    write_to(db, options, family, errptr, |db, family, options| {
        let (key, value) = (sized(key, keylen)?, sized(val, vallen)?);
        db.put_with_timestamp(family, key, sized(ts, tslen)?, value, options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_delete_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    ts: *const c_char,
    tslen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(db, options, None, errptr, |db, family, options| {
        db.delete_with_timestamp(family, sized(key, keylen)?, sized(ts, tslen)?, options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_delete_cf_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    ts: *const c_char,
    tslen: usize,
    errptr: *mut *mut c_char,
) {
    let family = Some(column_family);
    write_to(db, options, family, errptr, |db, family, options| {
        db.delete_with_timestamp(family, sized(key, keylen)?, sized(ts, tslen)?, options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_singledelete_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    ts: *const c_char,
    tslen: usize,
    errptr: *mut *mut c_char,
) {
    write_to(db, options, None, errptr, |db, family, options| {
        db.single_delete_with_timestamp(family, sized(key, keylen)?, sized(ts, tslen)?, options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_singledelete_cf_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    ts: *const c_char,
    tslen: usize,
    errptr: *mut *mut c_char,
) {
    let family = Some(column_family);
    write_to(db, options, family, errptr, |db, family, options| {
        db.single_delete_with_timestamp(family, sized(key, keylen)?, sized(ts, tslen)?, options)
    });
}

/// Copies of a value and its timestamp; NULL and 0 twice for nothing.
fn copied(
    found: Option<Timestamped>,
    (vallen, ts, tslen): (*mut usize, *mut *mut c_char, *mut usize),
) -> *mut c_char {
    let Some((value, at)) = found else {
        put(vallen, 0);
        put(tslen, 0);
        return ptr::null_mut();
    };
    put(vallen, value.len());
    put(tslen, at.len());
    put(ts, malloc_bytes(&at));
    malloc_bytes(&value)
}

fn get<'a>(
    target: impl FnOnce() -> Result<(&'a Db, &'a FamilyHandle)>,
    options: *const rocksdb_readoptions_t,
    (key, keylen): (*const c_char, usize),
    out: (*mut usize, *mut *mut c_char, *mut usize),
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        copied(None, out);
        let ((db, family), options) = (target()?, shared(options)?);
        let (key, snapshot) = (sized(key, keylen)?, options.snapshot.as_ref());
        let found = db.get_with_timestamp(family, key, &options.read, snapshot)?;
        Ok(copied(found, out))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    ts: *mut *mut c_char,
    tslen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    let (key, out) = ((key, keylen), (vallen, ts, tslen));
    get(|| with_default(db), options, key, out, errptr)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_cf_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    ts: *mut *mut c_char,
    tslen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    let (key, out) = ((key, keylen), (vallen, ts, tslen));
    let target = || with_family(db, column_family);
    get(target, options, key, out, errptr)
}

/// Where the answers of a read of many keys go.
struct Places {
    values: (*mut *mut c_char, *mut usize),
    timestamps: (*mut *mut c_char, *mut usize),
    errs: *mut *mut c_char,
}

impl Places {
    /// Stores each answer, or its error, in its place.
    fn store(&self, i: usize, answer: Result<Option<Timestamped>>) {
        let (mut error, mut value, mut timestamp) = (ptr::null_mut(), None, None);
        match answer {
            Ok(found) => (value, timestamp) = found.unzip(),
            Err(e) => report(&raw mut error, &e),
        }
        let store = |(list, sizes): (*mut *mut c_char, *mut usize), bytes: Option<&[u8]>| {
            put_at(list, i, bytes.map_or(ptr::null_mut(), malloc_bytes));
            put_at(sizes, i, bytes.map_or(0, <[u8]>::len));
        };
        store(self.values, value.as_deref());
        store(self.timestamps, timestamp.as_deref());
        put_at(self.errs, i, error);
    }
}

/// Reads `count` keys; when the call itself fails, every key gets its error.
fn multi_get<'a>(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    keys: Vec<&[u8]>,
    places: &Places,
    family_of: impl Fn(usize) -> Result<&'a FamilyHandle>,
) {
    let read = || {
        let ((db, _), options) = (with_default(db)?, shared(options)?);
        let wanted = keys.iter().enumerate();
        let wanted: Result<Vec<_>> = wanted.map(|(i, k)| Ok((family_of(i)?, *k))).collect();
        Ok(db.multi_get_with_timestamps(&wanted?, &options.read, options.snapshot.as_ref()))
    };
    attempt((), || {
        match read() {
            Ok(answers) => answers
                .into_iter()
                .enumerate()
                .for_each(|(i, answer)| places.store(i, answer)),
            Err(e) => (0..keys.len()).for_each(|i| places.store(i, Err(Error::clone(&e)))),
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_multi_get_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    timestamp_list: *mut *mut c_char,
    timestamp_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    let keys = keys(keys_list, keys_list_sizes, num_keys);
    let places = Places {
        values: (values_list, values_list_sizes),
        timestamps: (timestamp_list, timestamp_list_sizes),
        errs,
    };
    multi_get(db, options, keys, &places, |_| Ok(with_default(db)?.1));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_multi_get_cf_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_families: *const *const rocksdb_column_family_handle_t,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    timestamps_list: *mut *mut c_char,
    timestamps_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    let keys = keys(keys_list, keys_list_sizes, num_keys);
    let places = Places {
        values: (values_list, values_list_sizes),
        timestamps: (timestamps_list, timestamps_list_sizes),
        errs,
    };
    let families = many(column_families, num_keys);
    multi_get(db, options, keys, &places, |i| {
        Ok(with_family(db, families.get(i).copied().unwrap_or(ptr::null()))?.1)
    });
}

/// The family's number, when its keys have timestamps of this length.
fn place(family: *const rocksdb_column_family_handle_t, timestamp: &[u8]) -> Result<FamilyId> {
    let family = &shared(family)?.family;
    match family.order().timestamp_size() {
        0 => Err(Error::invalid_argument("timestamp disabled")),
        size if size != timestamp.len() => Err(Error::invalid_argument("timestamp size mismatch")),
        _ => Ok(FamilyId::from(family)),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_put_cf_with_ts(
    writebatch: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    ts: *const c_char,
    tslen: usize,
    val: *const c_char,
    vlen: usize,
) {
    let (ts, value) = (bytes(ts, tslen), bytes(val, vlen));
    add(writebatch, |b| {
        b.put_with_timestamp(place(column_family, ts)?, bytes(key, klen), ts, value)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_delete_cf_with_ts(
    writebatch: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    ts: *const c_char,
    tslen: usize,
) {
    let ts = bytes(ts, tslen);
    add(writebatch, |b| {
        b.delete_with_timestamp(place(column_family, ts)?, bytes(key, klen), ts)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_singledelete_cf_with_ts(
    b: *mut rocksdb_writebatch_t,
    column_family: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    klen: usize,
    ts: *const c_char,
    tslen: usize,
) {
    let ts = bytes(ts, tslen);
    add(b, |b| {
        b.single_delete_with_timestamp(place(column_family, ts)?, bytes(key, klen), ts)
    });
}

/// Returns a function that asks the application for the timestamp size of a family: the greatest
/// number there is means that it does not know the family.
pub(crate) fn asking(
    state: *mut c_void,
    get_ts_size: Option<TimestampSize>,
) -> impl FnMut(FamilyId) -> Option<usize> {
    move |family| {
        let size = callbacks::timestamp_size(get_ts_size?, state, family.0);
        (size != usize::MAX).then_some(size)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_update_timestamps(
    wb: *mut rocksdb_writebatch_t,
    ts: *const c_char,
    tslen: usize,
    state: *mut c_void,
    get_ts_size: Option<TimestampSize>,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (batch, ts) = (&mut exclusive(wb)?.batch, sized(ts, tslen)?);
        batch.update_timestamps(ts, asking(state, get_ts_size))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_increase_full_history_ts_low(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    ts_low: *const c_char,
    ts_lowlen: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_family(db, column_family)?;
        db.increase_full_history_ts_low(family, sized(ts_low, ts_lowlen)?)
    });
}

/// The bytes are copied; NULL takes them away.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactoptions_set_full_history_ts_low(
    compactoptions: *mut rocksdb_compactoptions_t,
    ts: *mut c_char,
    tslen: usize,
) {
    attempt((), || {
        let low = (!ts.is_null()).then(|| bytes(ts, tslen).to_vec());
        exclusive(compactoptions)?.compact.full_history_ts_low = low;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_full_history_ts_low(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    ts_len: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        put(ts_len, 0);
        let (db, family) = with_family(db, column_family)?;
        let low = db.full_history_ts_low(family)?;
        put(ts_len, low.len());
        Ok(malloc_bytes(&low))
    })
}
