//! Calls of the application's functions: comparators, merge operators, filters and the rest.
//!
//! The application passes a state, functions that take it, and a destructor, which [`Owner`] calls
//! once, when the last user of the object is gone. The interface says that the functions may be
//! called from any thread, that they live as long as the object, and that what they return is alive
//! until they are called again or given back.

use super::{State, free};
use std::ffi::{c_char, c_int, c_uchar, c_ulonglong, c_void};

/// A function that takes its state alone.
pub(crate) type Plain = Option<unsafe extern "C" fn(*mut c_void)>;
/// A function that names the object.
pub(crate) type Name = Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>;
/// A comparison.
pub(crate) type Compare =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
/// A comparison without timestamps.
pub(crate) type CompareBare = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    c_uchar,
    *const c_char,
    usize,
    c_uchar,
) -> c_int;
/// A full merge.
pub(crate) type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
/// A partial merge.
pub(crate) type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
/// Gives back what a merge returned.
pub(crate) type DeleteValue = unsafe extern "C" fn(*mut c_void, *const c_char, usize);
/// A compaction filter's decision.
pub(crate) type Filter = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;
/// A compaction filter's decision about a value of any kind.
pub(crate) type FilterDecision = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    c_int,
    *const c_char,
    usize,
    *mut *const c_char,
    *mut usize,
) -> c_int;
/// A prefix of a key.
pub(crate) type Transform =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char;
/// Tells whether a key has a prefix.
pub(crate) type InDomain = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar;

/// The application's state and the function that destroys it, once.
#[derive(Debug)]
pub(crate) struct Owner {
    state: State,
    destructor: Plain,
}

impl Owner {
    /// Takes the state over.
    pub(crate) fn new(state: *mut c_void, destructor: Plain) -> Self {
        Owner {
            state: State(state),
            destructor,
        }
    }

    /// The state, to pass back.
    #[inline]
    pub(crate) fn state(&self) -> *mut c_void {
        self.state.0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the application gave the function together with the state, and this is the
            // only call.
            unsafe { destructor(self.state.0) }
        }
    }
}

/// Calls the application with nothing but its state.
pub(crate) fn tell(f: unsafe extern "C" fn(*mut c_void), state: State) {
    // SAFETY: the application gave the function together with the state.
    unsafe { f(state.0) }
}

/// Asks the application about one piece.
pub(crate) fn ask_one(
    f: unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar,
    state: State,
    piece: &[u8],
) -> bool {
    // SAFETY: the application gave the function together with the state; the piece lives through
    // the call.
    unsafe { f(state.0, piece.as_ptr().cast(), piece.len()) != 0 }
}

/// The name that the application gives an object; empty when it gives none.
pub(crate) fn name(owner: &Owner, name: Name) -> String {
    let Some(name) = name else {
        return String::new();
    };
    // SAFETY: the application gave the function together with the state.
    let text = unsafe { name(owner.state()) };
    super::text_bytes(text).map_or_else(
        |_| String::new(),
        |t| String::from_utf8_lossy(t).into_owned(),
    )
}

/// Compares two keys.
#[inline]
pub(crate) fn compare(f: Compare, owner: &Owner, a: &[u8], b: &[u8]) -> c_int {
    // SAFETY: the application gave the function together with the state; the keys live through the
    // call.
    unsafe {
        f(
            owner.state(),
            a.as_ptr().cast(),
            a.len(),
            b.as_ptr().cast(),
            b.len(),
        )
    }
}

/// Asks how long the timestamps of a family's keys are.
pub(crate) type TimestampSize = unsafe extern "C" fn(*mut c_void, u32) -> usize;

/// How long the timestamps of the keys of the family with this number are, as the application says.
pub(crate) fn timestamp_size(f: TimestampSize, state: *mut c_void, family: u32) -> usize {
    // SAFETY: the application gave the function together with the state, for the length of the
    // call.
    unsafe { f(state, family) }
}

/// Compares two keys, which carry timestamps, without them.
pub(crate) fn compare_bare(f: CompareBare, owner: &Owner, a: &[u8], b: &[u8]) -> c_int {
    // SAFETY: as in `compare`.
    unsafe {
        f(
            owner.state(),
            a.as_ptr().cast(),
            a.len(),
            1,
            b.as_ptr().cast(),
            b.len(),
            1,
        )
    }
}

/// The operands of a merge as C takes them.
struct Operands {
    first: Vec<*const c_char>,
    sizes: Vec<usize>,
    count: c_int,
}

impl Operands {
    fn new(operands: &[&[u8]]) -> Option<Operands> {
        Some(Operands {
            first: operands.iter().map(|o| o.as_ptr().cast()).collect(),
            sizes: operands.iter().map(|o| o.len()).collect(),
            count: c_int::try_from(operands.len()).ok()?,
        })
    }
}

/// Moves what a merge returned into `out`, and gives it back.
fn take_merged(
    owner: &Owner,
    delete: Option<DeleteValue>,
    merged: (*mut c_char, usize, c_uchar),
    out: &mut Vec<u8>,
) -> bool {
    let (value, length, success) = merged;
    let sound = success != 0 && (length == 0 || !value.is_null());
    if sound {
        out.extend_from_slice(super::bytes(value, length));
    }
    match delete {
        // SAFETY: the application gave the function together with the state; the value is what it
        // just returned.
        Some(delete) => unsafe { delete(owner.state(), value, length) },
        None => free(value.cast()),
    }
    sound
}

/// Merges operands with a base value.
pub(crate) fn full_merge(
    f: FullMerge,
    delete: Option<DeleteValue>,
    owner: &Owner,
    (key, base, operands): (&[u8], Option<&[u8]>, &[&[u8]]),
    out: &mut Vec<u8>,
) -> bool {
    let Some(operands) = Operands::new(operands) else {
        return false;
    };
    let (mut success, mut length) = (0, 0);
    // SAFETY: the application gave the function together with the state; the pieces live through
    // the call.
    let value = unsafe {
        f(
            owner.state(),
            key.as_ptr().cast(),
            key.len(),
            base.map_or(std::ptr::null(), |b| b.as_ptr().cast()),
            base.map_or(0, <[u8]>::len),
            operands.first.as_ptr(),
            operands.sizes.as_ptr(),
            operands.count,
            &mut success,
            &mut length,
        )
    };
    take_merged(owner, delete, (value, length, success), out)
}

/// Merges operands with each other.
pub(crate) fn partial_merge(
    f: PartialMerge,
    delete: Option<DeleteValue>,
    owner: &Owner,
    (key, operands): (&[u8], &[&[u8]]),
    out: &mut Vec<u8>,
) -> bool {
    let Some(operands) = Operands::new(operands) else {
        return false;
    };
    let (mut success, mut length) = (0, 0);
    // SAFETY: as in `full_merge`.
    let value = unsafe {
        f(
            owner.state(),
            key.as_ptr().cast(),
            key.len(),
            operands.first.as_ptr(),
            operands.sizes.as_ptr(),
            operands.count,
            &mut success,
            &mut length,
        )
    };
    take_merged(owner, delete, (value, length, success), out)
}

/// The answer of a compaction filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Remove,
    /// The new value is in the buffer.
    Change,
}

/// Asks a compaction filter. The new value stays the filter's own.
pub(crate) fn filter(
    f: Filter,
    owner: &Owner,
    level: c_int,
    (key, value): (&[u8], &[u8]),
    out: &mut Vec<u8>,
) -> Verdict {
    let (mut new, mut length, mut changed) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the application gave the function together with the state; the pieces live through
    // the call.
    let remove = unsafe {
        f(
            owner.state(),
            level,
            key.as_ptr().cast(),
            key.len(),
            value.as_ptr().cast(),
            value.len(),
            &mut new,
            &mut length,
            &mut changed,
        )
    };
    if remove != 0 {
        return Verdict::Remove;
    }
    if changed == 0 || (new.is_null() && length > 0) {
        return Verdict::Keep;
    }
    out.extend_from_slice(super::bytes(new, length));
    Verdict::Change
}

/// Asks a compaction filter about a value of any kind. What it puts out stays its own.
pub(crate) fn decide(
    f: FilterDecision,
    owner: &Owner,
    level: c_int,
    (key, kind, value): (&[u8], c_int, &[u8]),
    out: &mut Vec<u8>,
) -> c_int {
    let (mut output, mut length) = (std::ptr::null(), 0);
    // SAFETY: the application gave the function together with the state; the pieces live through
    // the call.
    let told = unsafe {
        f(
            owner.state(),
            level,
            key.as_ptr().cast(),
            key.len(),
            kind,
            value.as_ptr().cast(),
            value.len(),
            &mut output,
            &mut length,
        )
    };
    out.extend_from_slice(super::bytes(output, length));
    told
}

/// Asks a factory for the filter of a job; NULL for none.
pub(crate) fn make_filter<C, F>(
    f: unsafe extern "C" fn(*mut c_void, *mut C) -> *mut F,
    owner: &Owner,
    context: &mut C,
) -> *mut F {
    // SAFETY: the application gave the function together with the state; the context lives through
    // the call.
    unsafe { f(owner.state(), context) }
}

/// Returns whether a key has a prefix.
pub(crate) fn in_domain(f: InDomain, owner: &Owner, key: &[u8]) -> bool {
    // SAFETY: the application gave the function together with the state; the key lives through the
    // call.
    unsafe { f(owner.state(), key.as_ptr().cast(), key.len()) != 0 }
}

/// The length of the prefix of a key; `None` when what the application returns is no prefix of the
/// key.
pub(crate) fn prefix_length(f: Transform, owner: &Owner, key: &[u8]) -> Option<usize> {
    let mut length = 0;
    // SAFETY: as in `in_domain`.
    let prefix = unsafe { f(owner.state(), key.as_ptr().cast(), key.len(), &mut length) };
    let same = prefix.cast_const().cast() == key.as_ptr()
        || key.get(..length) == Some(super::bytes(prefix, length));
    (same && length <= key.len()).then_some(length)
}

/// A line of a log goes to the application, with a NUL after it.
pub(crate) fn log_line(
    f: unsafe extern "C" fn(*mut c_void, u32, *mut c_char, usize),
    state: State,
    level: u32,
    line: &str,
) {
    let mut text = Vec::with_capacity(line.len() + 1);
    text.extend_from_slice(line.as_bytes());
    text.push(0);
    // SAFETY: the application gave the function together with the state; the text lives through the
    // call.
    unsafe { f(state.0, level, text.as_mut_ptr().cast(), line.len()) }
}

/// An event goes to the application, with the database that it is about.
pub(crate) fn tell_event<D, I>(
    f: unsafe extern "C" fn(*mut c_void, *mut D, *const I),
    owner: &Owner,
    database: &mut D,
    info: &I,
) {
    // SAFETY: the application gave the function together with the state; both objects live through
    // the call.
    unsafe { f(owner.state(), database, info) }
}

/// An event goes to the application.
pub(crate) fn tell_info<I>(
    f: unsafe extern "C" fn(*mut c_void, *const I),
    owner: &Owner,
    info: &I,
) {
    // SAFETY: as in `tell_event`.
    unsafe { f(owner.state(), info) }
}

/// An error goes to the application.
pub(crate) fn tell_error<S>(
    f: unsafe extern "C" fn(*mut c_void, u32, *mut S),
    owner: &Owner,
    reason: u32,
    status: &mut S,
) {
    // SAFETY: as in `tell_event`.
    unsafe { f(owner.state(), reason, status) }
}

/// Asks the application about one object.
pub(crate) fn ask<I>(
    f: unsafe extern "C" fn(*mut c_void, *const I) -> c_uchar,
    owner: &Owner,
    about: &I,
) -> bool {
    // SAFETY: as in `tell_event`.
    unsafe { f(owner.state(), about) != 0 }
}

/// The number of the calling thread.
pub(crate) fn thread_id() -> u64 {
    // SAFETY: the function has no conditions.
    unsafe { libc::pthread_self() as u64 }
}

/// Tells a filter of the log which families there are.
pub(crate) fn tell_families(
    f: unsafe extern "C" fn(
        *mut c_void,
        *const u32,
        *const u64,
        usize,
        *const *const c_char,
        *const usize,
        *const u32,
        usize,
    ),
    owner: &Owner,
    (ids, logs): (&[u32], &[u64]),
    (names, lengths, name_ids): (&[*const c_char], &[usize], &[u32]),
) {
    // SAFETY: the application gave the function together with the state; the lists live through the
    // call and are as long as it is told.
    unsafe {
        f(
            owner.state(),
            ids.as_ptr(),
            logs.as_ptr(),
            ids.len().min(logs.len()),
            names.as_ptr(),
            lengths.as_ptr(),
            name_ids.as_ptr(),
            names.len().min(lengths.len()).min(name_ids.len()),
        )
    }
}

/// Asks a filter of the log about a record: its choice, and whether the new batch takes the old
/// one's place.
pub(crate) fn ask_record<B>(
    f: unsafe extern "C" fn(
        *mut c_void,
        c_ulonglong,
        *const c_char,
        usize,
        *const B,
        *mut B,
        *mut c_uchar,
    ) -> c_int,
    owner: &Owner,
    (number, file): (u64, &str),
    batch: &B,
    new: &mut B,
) -> (c_int, bool) {
    let mut changed = 0;
    // SAFETY: the application gave the function together with the state; the batches live through
    // the call.
    let option = unsafe {
        f(
            owner.state(),
            number,
            file.as_ptr().cast(),
            file.len(),
            batch,
            new,
            &mut changed,
        )
    };
    (option, changed != 0)
}
