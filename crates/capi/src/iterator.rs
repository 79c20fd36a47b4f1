//! Iterators.
//!
//! A step of a C program is four calls: a move, and questions after validity, key and value. The
//! move leaves the answers in the handle, so that the questions read three words each and know
//! nothing of what is walked.

mod ahead;

use crate::boundary::{
    attempt, bytes, call, destroy, exclusive, give, given, many, put, put_at, shared,
};
use crate::db::{database, with_default, with_family};
use crate::*;
use ahead::{Direction, MOST, ReadAhead};
use esker::{DbIterator, Error, Result};
use esker_txn::MergedIterator;
use std::ffi::{c_char, c_uchar};
use std::ptr;

/// A place in the order of keys.
pub struct rocksdb_iterator_t {
    here: CurrentEntry,
    walked: ReadAhead,
    iterator: Walk,
}

/// Where key and value of the current entry are: good until the iterator moves or goes.
/// [`esker_iter_entry`] lends it: its layout is that of two slices in C.
#[derive(Clone, Copy)]
#[repr(C)]
struct CurrentEntry {
    key: RawSlice,
    value: RawSlice,
}

/// Bytes that the iterator keeps; NULL and 0 where there are none, as C is told.
#[derive(Clone, Copy)]
#[repr(C)]
struct RawSlice(*const u8, usize);

impl RawSlice {
    const NOWHERE: RawSlice = RawSlice(ptr::null(), 0);

    #[inline(always)]
    fn of(bytes: &[u8]) -> RawSlice {
        RawSlice(bytes.as_ptr(), bytes.len())
    }
}

impl CurrentEntry {
    /// At no entry.
    const NOWHERE: CurrentEntry = CurrentEntry {
        key: RawSlice::NOWHERE,
        value: RawSlice::NOWHERE,
    };

    /// Part by part: a whole `CurrentEntry` would go through the stack.
    #[inline(always)]
    fn is_at(&mut self, key: &[u8], value: &[u8]) {
        self.key = RawSlice::of(key);
        self.value = RawSlice::of(value);
    }

    fn of(entry: Option<(&[u8], &[u8])>) -> CurrentEntry {
        entry.map_or(CurrentEntry::NOWHERE, |(key, value)| CurrentEntry {
            key: RawSlice::of(key),
            value: RawSlice::of(value),
        })
    }
}

/// The data that an iterator walks.
#[allow(
    clippy::large_enum_variant,
    reason = "the plain iterator is the common case and stays in place"
)]
pub(crate) enum Walk {
    /// A database.
    Base(DbIterator),
    /// A database with a batch on top.
    Merged(Box<MergedIterator>),
    /// The versions of a database's keys, one by one: keys are shown in their internal form.
    Versions(Box<DbIterator>),
    /// Nothing: it could not be made.
    Failed(Error),
}

impl From<Walk> for rocksdb_iterator_t {
    fn from(iterator: Walk) -> Self {
        rocksdb_iterator_t {
            here: CurrentEntry::NOWHERE,
            walked: ReadAhead::default(),
            iterator,
        }
    }
}

impl rocksdb_iterator_t {
    /// Gives back the data that it walks.
    pub(crate) fn into_walk(self) -> Walk {
        self.iterator
    }
}

impl Walk {
    /// The data that an iterator over a database walks.
    pub(crate) fn of(iterator: DbIterator) -> Walk {
        // RocksDB's C interface has no call that reads a value which was left.
        let iterator = iterator.with_prepared_values();
        if iterator.shows_versions() {
            Walk::Versions(Box::new(iterator))
        } else {
            Walk::Base(iterator)
        }
    }

    fn timestamp(&self) -> &[u8] {
        match self {
            Walk::Base(it) => it.timestamp(),
            Walk::Merged(it) => it.timestamp(),
            Walk::Versions(it) => it.timestamp(),
            Walk::Failed(_) => &[],
        }
    }

    /// Moves an iterator that is not a plain one, and tells where that led.
    #[inline(never)]
    fn move_otherwise(
        &mut self,
        alone: impl FnOnce(&mut DbIterator, &mut CurrentEntry),
        merged: impl FnOnce(&mut MergedIterator),
    ) -> CurrentEntry {
        // Asked for again below: it may be of another kind.
        let mut shown = CurrentEntry::NOWHERE;
        match self {
            Walk::Base(it) => alone(it, &mut shown),
            Walk::Merged(it) => merged(it),
            Walk::Versions(it) => alone(it, &mut shown),
            Walk::Failed(_) => {}
        }
        self.here()
    }

    /// One step of an iterator that is not a plain one.
    fn step(
        &mut self,
        alone: fn(&mut DbIterator),
        merged: fn(&mut MergedIterator),
    ) -> CurrentEntry {
        self.move_otherwise(|it, _| alone(it), merged)
    }

    /// Key and value of the current entry.
    fn here(&self) -> CurrentEntry {
        CurrentEntry::of(match self {
            Walk::Base(it) => it.entry(),
            Walk::Merged(it) => it.valid().then(|| (it.key(), it.value())),
            Walk::Versions(it) => it.valid().then(|| (it.internal_key(), it.value())),
            Walk::Failed(_) => None,
        })
    }

    fn status(&self) -> Result<()> {
        match self {
            Walk::Base(it) => it.status(),
            Walk::Merged(it) => it.status(),
            Walk::Versions(it) => it.status(),
            Walk::Failed(e) => Err(e.clone()),
        }
    }

    fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        match self {
            Walk::Base(it) => it.set_bounds(lower, upper),
            Walk::Versions(it) => it.set_bounds(lower, upper),
            Walk::Merged(it) => it.set_bounds(lower, upper),
            Walk::Failed(_) => {}
        }
    }

    /// An iterator without a batch is its own base.
    fn set_base_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        match self {
            Walk::Merged(it) => it.set_base_bounds(lower, upper),
            alone => alone.set_bounds(lower, upper),
        }
    }

    fn set_batch_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        if let Walk::Merged(it) = self {
            it.set_batch_bounds(lower, upper);
        }
    }

    fn refresh(&mut self) -> Result<()> {
        match self {
            Walk::Base(it) => it.refresh(None),
            Walk::Versions(it) => it.refresh(None),
            Walk::Merged(_) => Err(Error::not_supported("Refresh() is not supported")),
            Walk::Failed(e) => Err(e.clone()),
        }
    }
}

/// Where the iterator stands.
#[inline(always)]
fn here(iterator: *const rocksdb_iterator_t) -> CurrentEntry {
    match given(iterator) {
        Some(at) => at.here,
        None => nowhere(),
    }
}

/// A NULL iterator stands nowhere. Apart, so that the common case is two loads.
#[cold]
fn nowhere() -> CurrentEntry {
    CurrentEntry::NOWHERE
}

/// The timestamp of the current entry, which few ask for: it is not kept.
fn timestamp(iterator: *const rocksdb_iterator_t) -> RawSlice {
    match given(iterator) {
        Some(at) if !at.here.key.0.is_null() => RawSlice::of(at.iterator.timestamp()),
        _ => RawSlice::NOWHERE,
    }
}

/// Tells bytes by value.
#[inline(always)]
fn slice(RawSlice(data, size): RawSlice) -> rocksdb_slice_t {
    rocksdb_slice_t {
        data: data.cast(),
        size,
    }
}

/// Tells bytes by pointer and length.
#[inline(always)]
fn tell(RawSlice(data, size): RawSlice, length: *mut usize) -> *const c_char {
    put(length, size);
    data.cast()
}

/// Moves the iterator: one over a database alone, or one with a batch on top. The plain one is told
/// apart once.
#[inline(always)]
fn go(
    iterator: *mut rocksdb_iterator_t,
    alone: impl FnOnce(&mut DbIterator),
    merged: impl FnOnce(&mut MergedIterator),
) {
    if let Ok(at) = exclusive(iterator) {
        at.walked.end();
    }
    go_showing(
        iterator,
        |it, here| {
            alone(it);
            if let Some((key, value)) = it.entry() {
                here.is_at(key, value);
            }
        },
        merged,
    );
}

/// As [`go`], with a move that says itself where it led, if anywhere.
#[inline(always)]
fn go_showing(
    iterator: *mut rocksdb_iterator_t,
    alone: impl FnOnce(&mut DbIterator, &mut CurrentEntry),
    merged: impl FnOnce(&mut MergedIterator),
) {
    attempt((), || {
        let at = exclusive(iterator)?;
        // Nothing is current while it moves, and after a move that panicked.
        at.here = CurrentEntry::NOWHERE;
        match &mut at.iterator {
            Walk::Base(it) => alone(it, &mut at.here),
            other => at.here = other.move_otherwise(alone, merged),
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_iterator(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    attempt(ptr::null_mut(), || {
        let (db, family) = with_default(db)?;
        Ok(give(shared(options)?.iterator(db, family)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_iterator_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    column_family: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_iterator_t {
    attempt(ptr::null_mut(), || {
        let (db, family) = with_family(db, column_family)?;
        Ok(give(shared(options)?.iterator(db, family)))
    })
}

impl rocksdb_readoptions_t {
    /// An iterator over `family`.
    pub(crate) fn iterator(
        &self,
        db: &esker::Db,
        family: &esker::FamilyHandle,
    ) -> rocksdb_iterator_t {
        Walk::of(db.iter_opt(family, self.read.share(), self.snapshot.as_ref())).into()
    }
}

/// All of one moment: a snapshot is held while they are made.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_iterators(
    db: *mut rocksdb_t,
    opts: *mut rocksdb_readoptions_t,
    column_families: *mut *mut rocksdb_column_family_handle_t,
    iterators: *mut *mut rocksdb_iterator_t,
    size: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let options = shared(opts)?;
        let moment = match &options.snapshot {
            Some(given) => given.clone(),
            None => database(db)?.snapshot(),
        };
        let mut made = Vec::with_capacity(size);
        for family in many(column_families.cast_const(), size) {
            let (db, family) = with_family(db, *family)?;
            made.push(db.iter_opt(family, options.read.share(), Some(&moment)));
        }
        for (i, iterator) in made.into_iter().enumerate() {
            put_at(
                iterators,
                i,
                give(rocksdb_iterator_t::from(Walk::of(iterator))),
            );
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_destroy(iterator: *mut rocksdb_iterator_t) {
    destroy(iterator);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_valid(iterator: *const rocksdb_iterator_t) -> c_uchar {
    c_uchar::from(!here(iterator).key.0.is_null())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_seek_to_first(iterator: *mut rocksdb_iterator_t) {
    go(
        iterator,
        DbIterator::seek_to_first,
        MergedIterator::seek_to_first,
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_seek_to_last(iterator: *mut rocksdb_iterator_t) {
    go(
        iterator,
        DbIterator::seek_to_last,
        MergedIterator::seek_to_last,
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_seek(
    iterator: *mut rocksdb_iterator_t,
    k: *const c_char,
    klen: usize,
) {
    let target = bytes(k, klen);
    go(iterator, |it| it.seek(target), |it| it.seek(target));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_seek_for_prev(
    iterator: *mut rocksdb_iterator_t,
    k: *const c_char,
    klen: usize,
) {
    let target = bytes(k, klen);
    go(
        iterator,
        |it| it.seek_for_prev(target),
        |it| it.seek_for_prev(target),
    );
}

/// Returns whether the step is one of a long walk.
#[inline(always)]
fn is_far(iterator: *mut rocksdb_iterator_t, toward: Direction) -> bool {
    exclusive(iterator).is_ok_and(|at| at.walked.is_long(toward))
}

/// A step of a long walk. Apart, so that the first steps stay small.
#[inline(never)]
fn step_far(iterator: *mut rocksdb_iterator_t, toward: Direction) {
    if let Ok(at) = exclusive(iterator)
        && at.walked.toward() == toward
        && let Some(here) = at.walked.ahead().step()
    {
        at.here = here;
    } else {
        walk_on(iterator, toward);
    }
}

/// Has the iterator show the next entries, or takes one step in the other direction.
#[inline(never)]
fn walk_on(iterator: *mut rocksdb_iterator_t, toward: Direction) {
    attempt((), || {
        let at = exclusive(iterator)?;
        at.here = CurrentEntry::NOWHERE;
        let is_turned = at.walked.toward() != toward;
        let ahead = at.walked.ahead();
        let passed = ahead.passed();
        ahead.reset();
        let Walk::Base(it) = &mut at.iterator else {
            at.here = match toward {
                Direction::Next => at.iterator.step(DbIterator::next, MergedIterator::next),
                Direction::Previous => at.iterator.step(DbIterator::prev, MergedIterator::prev),
            };
            return Ok(());
        };
        if let Some(here) = passed {
            // The engine stands further on.
            let key = many(here.key.0, here.key.1).to_vec();
            it.seek(key);
        }
        let most = if is_turned { 1 } else { MOST };
        match toward {
            Direction::Next => it.next_batch(most, |key, value| ahead.push(key, value)),
            Direction::Previous => it.prev_batch(most, |key, value| ahead.push(key, value)),
        };
        at.here = ahead.end();
        if is_turned {
            at.walked.end();
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_next(iterator: *mut rocksdb_iterator_t) {
    if is_far(iterator, Direction::Next) {
        return step_far(iterator, Direction::Next);
    }
    go_showing(
        iterator,
        |it, here| it.next_showing(|key, value| here.is_at(key, value)),
        MergedIterator::next,
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_prev(iterator: *mut rocksdb_iterator_t) {
    if is_far(iterator, Direction::Previous) {
        return step_far(iterator, Direction::Previous);
    }
    go_showing(
        iterator,
        |it, here| {
            it.prev();
            if let Some((key, value)) = it.entry() {
                here.is_at(key, value);
            }
        },
        MergedIterator::prev,
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_key(
    iterator: *const rocksdb_iterator_t,
    klen: *mut usize,
) -> *const c_char {
    tell(here(iterator).key, klen)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_value(
    iterator: *const rocksdb_iterator_t,
    vlen: *mut usize,
) -> *const c_char {
    tell(here(iterator).value, vlen)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_timestamp(
    iterator: *const rocksdb_iterator_t,
    tslen: *mut usize,
) -> *const c_char {
    tell(timestamp(iterator), tslen)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_key_slice(iter: *const rocksdb_iterator_t) -> rocksdb_slice_t {
    slice(here(iter).key)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_value_slice(iter: *const rocksdb_iterator_t) -> rocksdb_slice_t {
    slice(here(iter).value)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_timestamp_slice(iter: *const rocksdb_iterator_t) -> rocksdb_slice_t {
    slice(timestamp(iter))
}

/// Key and value of the current entry, one after the other. They stay at this address and are kept
/// up to date as long as the iterator lives; the data of both is NULL where there is no entry.
#[unsafe(no_mangle)]
pub extern "C" fn esker_iter_entry(iterator: *const rocksdb_iterator_t) -> *const rocksdb_slice_t {
    const { assert!(size_of::<CurrentEntry>() == 2 * size_of::<rocksdb_slice_t>()) };
    given(iterator).map_or(ptr::null(), |it| (&raw const it.here).cast())
}

/// A bound by pointer and length; NULL is none.
fn bound<'a>(key: *const c_char, length: usize) -> Option<&'a [u8]> {
    (!key.is_null()).then(|| bytes(key, length))
}

/// Has the iterator walk another range. It reads what it was made over, and has to be placed again.
fn within(iterator: *mut rocksdb_iterator_t, set: impl FnOnce(&mut Walk)) {
    attempt((), || {
        let at = exclusive(iterator)?;
        at.walked.end();
        at.here = CurrentEntry::NOWHERE;
        set(&mut at.iterator);
        Ok(())
    });
}

/// Sets the range that the iterator walks, from `lower` on and before `upper`; NULL is no bound. It
/// reads what it was made over, and has to be placed again.
#[unsafe(no_mangle)]
pub extern "C" fn esker_iter_set_bounds(
    iterator: *mut rocksdb_iterator_t,
    lower: *const c_char,
    lower_length: usize,
    upper: *const c_char,
    upper_length: usize,
) {
    within(iterator, |walk| {
        walk.set_bounds(bound(lower, lower_length), bound(upper, upper_length));
    });
}

/// As [`esker_iter_set_bounds`], for the base of an iterator with a batch on top: the batch's keys
/// keep their range. Other iterators are their own base.
#[unsafe(no_mangle)]
pub extern "C" fn esker_iter_set_base_bounds(
    iterator: *mut rocksdb_iterator_t,
    lower: *const c_char,
    lower_length: usize,
    upper: *const c_char,
    upper_length: usize,
) {
    within(iterator, |walk| {
        walk.set_base_bounds(bound(lower, lower_length), bound(upper, upper_length));
    });
}

/// As [`esker_iter_set_bounds`], for the batch on top of another iterator: that one keeps its
/// range.
#[unsafe(no_mangle)]
pub extern "C" fn esker_iter_set_batch_bounds(
    iterator: *mut rocksdb_iterator_t,
    lower: *const c_char,
    lower_length: usize,
    upper: *const c_char,
    upper_length: usize,
) {
    within(iterator, |walk| {
        walk.set_batch_bounds(bound(lower, lower_length), bound(upper, upper_length));
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_get_error(
    iterator: *const rocksdb_iterator_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || shared(iterator)?.iterator.status());
}

/// The interface says `const`, and means that the caller may keep its pointer.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_iter_refresh(iter: *const rocksdb_iterator_t, errptr: *mut *mut c_char) {
    call(errptr, (), || -> Result<()> {
        let at = exclusive(iter.cast_mut())?;
        let outcome = at.iterator.refresh();
        at.walked.end();
        // It has to be placed again.
        at.here = CurrentEntry::NOWHERE;
        outcome
    });
}
