//! The database handle: opening, closing, destroying, repairing, and what belongs to the whole
//! database.
//!
//! A handle that was closed stays known for a while (the last [`CLOSED_KEPT`] of them), so that a
//! call on it is an error and not undefined.

use crate::boundary::{
    attempt, call, give, malloc_bytes, malloc_text, many, owned, path, put, put_at, quiet, shared,
    text,
};
use crate::*;
use esker::options::InfoLogLevel;
use esker::{Db, Error, FamilyDescriptor, FamilyHandle, Options, Result};
use esker_process::OpenDatabase;
use esker_sync::{Mutex, Rank};
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr;

/// An open database, or one that was closed.
pub struct rocksdb_t {
    open: Option<Open>,
}

struct Open {
    db: Db,
    default: FamilyHandle,
    /// With this handle the database closes, whatever else refers to it.
    is_owner: bool,
    /// Its place on the list of those whose statistics are served.
    listed: OpenDatabase,
}

/// A closed handle, kept so that it does not dangle.
struct ClosedHandle(#[allow(dead_code, reason = "it is kept, not read")] Box<rocksdb_t>);

/// How many closed handles are kept.
const CLOSED_KEPT: usize = 1024;
static CLOSED: Mutex<VecDeque<ClosedHandle>> = Mutex::new(Rank::LEAF, VecDeque::new());

impl rocksdb_t {
    /// The beginning of another handle, which is closed with it.
    pub(crate) fn part_of(db: Db) -> Self {
        let listed = esker_process::opened(&db);
        Self::of(db, true, listed)
    }

    /// A second handle on `db`, good until the database closes.
    pub(crate) fn base_of(db: Db) -> Self {
        Self::of(db, false, OpenDatabase::unlisted())
    }

    fn of(db: Db, is_owner: bool, listed: OpenDatabase) -> Self {
        let default = db.default_family_handle();
        rocksdb_t {
            open: Some(Open {
                db,
                default,
                is_owner,
                listed,
            }),
        }
    }

    /// A handle on `db`.
    pub(crate) fn new(db: Db) -> Self {
        for name in crate::refusal::refused() {
            crate::open_dbs::note_refused(&db, name);
        }
        crate::open_dbs::OPEN.lock().push(db.clone());
        Self::part_of(db)
    }

    /// Takes the database off the list of those whose statistics are served, before it closes.
    pub(crate) fn unlist(&self) {
        if let Some(open) = &self.open {
            open.listed.unlist();
        }
    }

    /// A handle for the duration of a callback.
    pub(crate) fn lent(db: Db) -> Self {
        Self::of(db, true, OpenDatabase::unlisted())
    }

    #[inline]
    fn opened(&self) -> Result<&Open> {
        let open = self
            .open
            .as_ref()
            .filter(|o| o.is_owner || !o.db.is_closed());
        open.ok_or_else(closed)
    }

    /// The database.
    #[inline]
    pub(crate) fn db(&self) -> Result<&Db> {
        Ok(&self.opened()?.db)
    }

    /// The database and its default family.
    #[inline]
    pub(crate) fn with_default(&self) -> Result<(&Db, &FamilyHandle)> {
        let open = self.opened()?;
        Ok((&open.db, &open.default))
    }
}

#[cold]
fn closed() -> Error {
    Error::invalid_argument("the database is closed")
}

/// The database behind a handle.
#[inline]
pub(crate) fn database<'a>(handle: *const rocksdb_t) -> Result<&'a Db> {
    shared(handle)?.db()
}

/// The database behind a handle, and its default family.
#[inline]
pub(crate) fn with_default<'a>(handle: *const rocksdb_t) -> Result<(&'a Db, &'a FamilyHandle)> {
    shared(handle)?.with_default()
}

/// The database and the family behind two handles, which must belong together.
#[inline]
pub(crate) fn with_family<'a>(
    handle: *const rocksdb_t,
    family: *const rocksdb_column_family_handle_t,
) -> Result<(&'a Db, &'a FamilyHandle)> {
    let db = database(handle)?;
    let family = &shared(family)?.family;
    if !db.owns(family) {
        return Err(Error::invalid_argument(format!(
            "column family {} belongs to another database",
            family.name()
        )));
    }
    Ok((db, family))
}

/// The options of a database that is about to be opened, which shares the memory of the process.
fn to_open(options: *const rocksdb_options_t) -> Result<Options> {
    let mut options = shared(options)?.options.clone();
    esker_process::share_memory(&mut options.db, || 0)?;
    Ok(options)
}

/// The families that a call to open names.
pub(crate) struct OpenRequest {
    pub(crate) options: Options,
    pub(crate) families: Vec<FamilyDescriptor>,
}

impl OpenRequest {
    /// The default family alone.
    pub(crate) fn default_only(options: *const rocksdb_options_t) -> Result<OpenRequest> {
        let options = to_open(options)?;
        let families = vec![FamilyDescriptor::new("default", options.family.clone())];
        Ok(OpenRequest { options, families })
    }

    /// The families listed.
    pub(crate) fn listed(
        options: *const rocksdb_options_t,
        count: c_int,
        names: *const *const c_char,
        family_options: *const *const rocksdb_options_t,
    ) -> Result<OpenRequest> {
        let count = usize::try_from(count).unwrap_or(0);
        let mut families = Vec::with_capacity(count);
        for (name, options) in many(names, count).iter().zip(many(family_options, count)) {
            let options = shared(*options)?.options.family.clone();
            families.push(FamilyDescriptor::new(text(*name)?, options));
        }
        let options = to_open(options)?;
        Ok(OpenRequest { options, families })
    }
}

/// A handle on `db`, after handles on the families `named` were stored from `out` on.
pub(crate) fn opened(
    db: Db,
    named: &[FamilyDescriptor],
    out: *mut *mut rocksdb_column_family_handle_t,
) -> Result<*mut rocksdb_t> {
    let mut handles = Vec::with_capacity(named.len());
    for wanted in named {
        let family = db.family(&wanted.name).ok_or_else(|| {
            Error::invalid_argument(format!("Column family not found: {}", wanted.name))
        })?;
        handles.push(family);
    }
    for (i, family) in handles.into_iter().enumerate() {
        put_at(
            out,
            i,
            give(rocksdb_column_family_handle_t::new(family.into())),
        );
    }
    Ok(give(rocksdb_t::new(db)))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_open(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::default_only(options)?;
        let db = Db::open_families(path(name)?, named.options, named.families)?;
        Ok(give(rocksdb_t::new(db)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_open_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    column_family_options: *const *const rocksdb_options_t,
    column_family_handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::listed(
            options,
            num_column_families,
            column_family_names,
            column_family_options,
        )?;
        let db = Db::open_families(path(name)?, named.options, named.families.clone())?;
        opened(db, &named.families, column_family_handles)
    })
}

/// Fails when there is a log, which a database that is opened for reading would have to replay.
fn refuse_logs(options: &Options, name: *const c_char, refuse: c_uchar) -> Result<()> {
    if refuse != 0 && Db::has_logs(path(name)?, options)? {
        return Err(Error::corruption(
            "the database has a write-ahead log, and error_if_wal_file_exists is set",
        ));
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_open_for_read_only(
    options: *const rocksdb_options_t,
    name: *const c_char,
    error_if_wal_file_exists: c_uchar,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::default_only(options)?;
        refuse_logs(&named.options, name, error_if_wal_file_exists)?;
        let db = Db::open_families_read_only(path(name)?, named.options, named.families)?;
        Ok(give(rocksdb_t::new(db)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_open_for_read_only_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    column_family_options: *const *const rocksdb_options_t,
    column_family_handles: *mut *mut rocksdb_column_family_handle_t,
    error_if_wal_file_exists: c_uchar,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    call(errptr, ptr::null_mut(), || {
        let named = OpenRequest::listed(
            options,
            num_column_families,
            column_family_names,
            column_family_options,
        )?;
        refuse_logs(&named.options, name, error_if_wal_file_exists)?;
        let db = Db::open_families_read_only(path(name)?, named.options, named.families.clone())?;
        opened(db, &named.families, column_family_handles)
    })
}

/// Closes a database, though iterators, transactions or checkpoint objects may refer to it.
pub(crate) fn close_now(db: &Db) {
    if let Err(e) = db.close() {
        db.log(InfoLogLevel::Error, &format!("closing: {e}"));
    }
}

/// Closes the database behind an owned handle, which stays known as closed.
pub(crate) fn close(handle: *mut rocksdb_t) {
    let Some(mut handle) = owned(handle) else {
        return;
    };
    if let Some(open) = handle.open.take().filter(|o| o.is_owner) {
        let mut others = crate::open_dbs::OPEN.lock();
        if let Some(at) = others.iter().position(|db| db.is_same(&open.db)) {
            let listed = others.swap_remove(at);
            drop(others);
            drop(listed);
        }
        open.listed.unlist();
        quiet((), || close_now(&open.db));
    }
    let mut closed = CLOSED.lock();
    if closed.len() >= CLOSED_KEPT {
        closed.pop_front();
    }
    closed.push_back(ClosedHandle(handle));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_close(db: *mut rocksdb_t) {
    quiet((), || close(db));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_destroy_db(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        Db::destroy(path(name)?, &shared(options)?.options).map(drop)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_repair_db(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        Db::repair(path(name)?, &shared(options)?.options).map(drop)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_latest_sequence_number(db: *mut rocksdb_t) -> u64 {
    attempt(0, || Ok(database(db)?.latest_sequence_number()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_db_identity(db: *mut rocksdb_t, id_len: *mut usize) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        let id = database(db)?.db_id();
        put(id_len, id.len());
        Ok(malloc_bytes(id.as_bytes()))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_property_value(
    db: *mut rocksdb_t,
    propname: *const c_char,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        let value = database(db)?.property(text(propname)?);
        Ok(value.map_or(ptr::null_mut(), |v| malloc_text(&v)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_property_value_cf(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    propname: *const c_char,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        let (db, family) = with_family(db, column_family)?;
        let value = db.property_cf(family, text(propname)?);
        Ok(value.map_or(ptr::null_mut(), |v| malloc_text(&v)))
    })
}

/// 0 and the value, or -1 when there is none.
fn int_property(
    db: &Db,
    family: &FamilyHandle,
    propname: *const c_char,
    out_val: *mut u64,
) -> Result<c_int> {
    Ok(match db.int_property(family, text(propname)?) {
        Some(value) => {
            put(out_val, value);
            0
        }
        None => -1,
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_property_int(
    db: *mut rocksdb_t,
    propname: *const c_char,
    out_val: *mut u64,
) -> c_int {
    attempt(-1, || {
        let (db, family) = with_default(db)?;
        int_property(db, family, propname, out_val)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_property_int_cf(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    propname: *const c_char,
    out_val: *mut u64,
) -> c_int {
    attempt(-1, || {
        let (db, family) = with_family(db, column_family)?;
        int_property(db, family, propname, out_val)
    })
}

/// A bound of a range: NULL is unbounded.
pub(crate) fn bound<'a>(key: *const c_char, length: usize) -> Option<&'a [u8]> {
    (!key.is_null()).then(|| crate::boundary::bytes(key, length))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_flush(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_default(db)?;
        db.flush_cf(family, &shared(options)?.flush)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_flush_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_family(db, column_family)?;
        db.flush_cf(family, &shared(options)?.flush)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compact_range(
    db: *mut rocksdb_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    attempt((), || {
        let (db, family) = with_default(db)?;
        let (begin, end) = (
            bound(start_key, start_key_len),
            bound(limit_key, limit_key_len),
        );
        db.compact_range_opt(family, begin, end, &Default::default())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compact_range_cf(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    attempt((), || {
        let (db, family) = with_family(db, column_family)?;
        let (begin, end) = (
            bound(start_key, start_key_len),
            bound(limit_key, limit_key_len),
        );
        db.compact_range_opt(family, begin, end, &Default::default())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compact_range_opt(
    db: *mut rocksdb_t,
    opt: *mut rocksdb_compactoptions_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    attempt((), || {
        let (db, family) = with_default(db)?;
        let (begin, end) = (
            bound(start_key, start_key_len),
            bound(limit_key, limit_key_len),
        );
        db.compact_range_opt(family, begin, end, &shared(opt)?.to_options())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compact_range_cf_opt(
    db: *mut rocksdb_t,
    column_family: *mut rocksdb_column_family_handle_t,
    opt: *mut rocksdb_compactoptions_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    attempt((), || {
        let (db, family) = with_family(db, column_family)?;
        let (begin, end) = (
            bound(start_key, start_key_len),
            bound(limit_key, limit_key_len),
        );
        db.compact_range_opt(family, begin, end, &shared(opt)?.to_options())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_free(memory: *mut c_void) {
    crate::boundary::free(memory);
}
