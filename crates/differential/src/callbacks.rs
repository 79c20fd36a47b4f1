//! Callbacks that both libraries get: a merge operator that joins with `+`, and a reversed order.
//!
//! They keep no state, so any thread may call them at any time.
#![allow(unsafe_code)]

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr;
use std::sync::atomic::{self, AtomicU64};
use std::time::Duration;

use super::api::{T, V};

/// The bytes at `data`.
///
/// # Safety
/// `size` bytes are readable at `data` for as long as the result is used, unless `size` is 0.
pub(super) unsafe fn bytes<'a>(data: T, size: usize) -> &'a [u8] {
    if size == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), size) }
}

pub(super) extern "C" fn nothing(_state: *mut c_void) {}

pub(super) extern "C" fn merge_name(_state: *mut c_void) -> T {
    c"esker.diff.Join".as_ptr()
}

pub(super) extern "C" fn order_name(_state: *mut c_void) -> T {
    c"esker.diff.Reverse".as_ptr()
}

/// How the reversed families order their keys.
pub(super) fn reversed(a: &[u8], b: &[u8]) -> Ordering {
    b.cmp(a)
}

pub(super) extern "C" fn compare(
    _state: *mut c_void,
    a: T,
    a_size: usize,
    b: T,
    b_size: usize,
) -> c_int {
    // SAFETY: the library passes two keys with their sizes.
    let (a, b) = unsafe { (bytes(a, a_size), bytes(b, b_size)) };
    reversed(a, b) as c_int
}

/// Hands a value to the library, which gives it back to [`delete_value`].
fn give(value: Vec<u8>, size: *mut usize) -> V {
    // SAFETY: the library passes where it wants the size.
    unsafe { size.write(value.len()) };
    if value.is_empty() {
        return ptr::NonNull::<c_char>::dangling().as_ptr();
    }
    Box::into_raw(value.into_boxed_slice()).cast()
}

pub(super) extern "C" fn delete_value(_state: *mut c_void, value: T, size: usize) {
    if size > 0 && !value.is_null() {
        let slice = ptr::slice_from_raw_parts_mut(value.cast_mut().cast::<u8>(), size);
        // SAFETY: `give` made it from a box of that size, and the library returns it once.
        drop(unsafe { Box::from_raw(slice) });
    }
}

/// The operands of a call, joined.
fn join(first: Option<&[u8]>, operands: *const T, sizes: *const usize, count: c_int) -> Vec<u8> {
    let count = usize::try_from(count).unwrap_or(0);
    let operand = |at| {
        // SAFETY: the library passes that many operands and sizes.
        unsafe { bytes(*operands.add(at), *sizes.add(at)) }
    };
    let operands: Vec<&[u8]> = (0..count).map(operand).collect();
    joined(first, &operands)
}

/// Operands behind a value, with `+` between them.
pub(super) fn joined(first: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
    let mut joined = first.map(<[u8]>::to_vec).unwrap_or_default();
    for (at, operand) in operands.iter().enumerate() {
        if at > 0 || first.is_some() {
            joined.push(b'+');
        }
        joined.extend_from_slice(operand);
        // A chain of merges would grow without end.
        if joined.len() > 2000 {
            joined.drain(..joined.len() - 2000);
        }
    }
    joined
}

/// Sleeps; how many microseconds on average is in the pointer. One entry in 64 takes half of it.
#[allow(clippy::too_many_arguments)]
pub(super) extern "C" fn slow(
    state: *mut c_void,
    _level: c_int,
    _key: T,
    _key_size: usize,
    _value: T,
    _value_size: usize,
    _new_value: *mut V,
    _new_size: *mut usize,
    _changed: *mut c_uchar,
) -> c_uchar {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let micros = state.addr() as u64;
    let before = SEEN.fetch_add(1, atomic::Ordering::Relaxed);
    let long = before.is_multiple_of(64);
    let micros = if long { micros * 32 } else { micros / 2 };
    std::thread::sleep(Duration::from_micros(micros));
    0
}

/// As [`slow`], for the filter that decides by a number: keeps everything.
#[allow(clippy::too_many_arguments)]
pub(super) extern "C" fn slow_decision(
    state: *mut c_void,
    level: c_int,
    key: T,
    key_size: usize,
    _kind: c_int,
    value: T,
    value_size: usize,
    _output: *mut T,
    output_size: *mut usize,
) -> c_int {
    let none: *mut V = std::ptr::null_mut();
    c_int::from(slow(
        state,
        level,
        key,
        key_size,
        value,
        value_size,
        none,
        output_size,
        none.cast(),
    ))
}

/// Begins a wait for a row lock; the state counts the sleeps.
pub(super) extern "C" fn begin_wait(state: *mut c_void) -> *mut c_void {
    state
}

/// Sleeps a little; the application has enough of every third sleep.
pub(super) extern "C" fn sleep_in_wait(wait: *mut c_void, micros: i64) -> c_int {
    static SLEEPS: AtomicU64 = AtomicU64::new(0);
    if wait.is_null()
        || SLEEPS
            .fetch_add(1, atomic::Ordering::Relaxed)
            .is_multiple_of(3)
    {
        return 1;
    }
    let micros = u64::try_from(micros).unwrap_or(u64::MAX).min(200);
    std::thread::sleep(Duration::from_micros(micros));
    0
}

/// Wakes nobody: each sleep is short.
pub(super) extern "C" fn of_wait(_wait: *mut c_void) {}

/// Counts what is passed, in the state.
pub(super) extern "C" fn count_named(
    state: *mut c_void,
    _name: T,
    _name_size: usize,
    _value: T,
    _value_size: usize,
) {
    count(state);
}

/// Counts locks that exactly one transaction holds.
pub(super) extern "C" fn count_lock(
    state: *mut c_void,
    _family: u32,
    _key: T,
    _key_size: usize,
    _holders: *const u64,
    holders_count: usize,
    exclusive: c_uchar,
) {
    if holders_count == 1 && exclusive != 0 {
        count(state);
    }
}

/// Counts members of deadlocks.
#[allow(clippy::too_many_arguments)]
pub(super) extern "C" fn count_deadlock(
    state: *mut c_void,
    _number: usize,
    _time: u64,
    _limit_exceeded: c_uchar,
    _transaction: u64,
    _family: u32,
    _exclusive: c_uchar,
    _key: T,
    _key_size: usize,
) {
    count(state);
}

fn count(state: *mut c_void) {
    // SAFETY: the caller passed a number of this type, which outlives the call.
    unsafe { *state.cast::<usize>() += 1 };
}

pub(super) extern "C" fn full_merge(
    _state: *mut c_void,
    _key: T,
    _key_size: usize,
    existing: T,
    existing_size: usize,
    operands: *const T,
    sizes: *const usize,
    count: c_int,
    success: *mut c_uchar,
    size: *mut usize,
) -> V {
    // SAFETY: the library passes the value that exists, or null.
    let first = (!existing.is_null()).then(|| unsafe { bytes(existing, existing_size) });
    // SAFETY: the library passes where it wants the outcome.
    unsafe { success.write(1) };
    give(join(first, operands, sizes, count), size)
}

pub(super) extern "C" fn partial_merge(
    _state: *mut c_void,
    _key: T,
    _key_size: usize,
    operands: *const T,
    sizes: *const usize,
    count: c_int,
    success: *mut c_uchar,
    size: *mut usize,
) -> V {
    // SAFETY: the library passes where it wants the outcome.
    unsafe { success.write(1) };
    give(join(None, operands, sizes, count), size)
}

/// Writes down what the iteration of a batch tells.
fn tell(state: *mut c_void, what: &str, family: u32, key: &[u8], value: Option<&[u8]>) {
    // SAFETY: the state is the text of the caller, who waits.
    let told = unsafe { &mut *state.cast::<String>() };
    told.push_str(&format!("{what} {family} {}", super::answer::show(key)));
    if let Some(value) = value {
        told.push_str(&format!("={}", super::answer::show(value)));
    }
    told.push(' ');
}

pub(super) extern "C" fn seen(
    state: *mut c_void,
    family: u32,
    key: T,
    key_size: usize,
    value: T,
    value_size: usize,
) {
    // SAFETY: the library passes a key and a value with their sizes.
    let (key, value) = unsafe { (bytes(key, key_size), bytes(value, value_size)) };
    tell(state, "put", family, key, Some(value));
}

pub(super) extern "C" fn merged(
    state: *mut c_void,
    family: u32,
    key: T,
    key_size: usize,
    value: T,
    value_size: usize,
) {
    // SAFETY: the library passes a key and a value with their sizes.
    let (key, value) = unsafe { (bytes(key, key_size), bytes(value, value_size)) };
    tell(state, "merge", family, key, Some(value));
}

pub(super) extern "C" fn gone(state: *mut c_void, family: u32, key: T, key_size: usize) {
    // SAFETY: the library passes a key with its size.
    tell(
        state,
        "delete",
        family,
        unsafe { bytes(key, key_size) },
        None,
    );
}

pub(super) extern "C" fn filter_name(_state: *mut c_void) -> T {
    c"esker.diff.Filter".as_ptr()
}

/// Drops keys that end in 7, and changes the values of those that end in 3.
#[allow(clippy::too_many_arguments)]
pub(super) extern "C" fn filter(
    _state: *mut c_void,
    _level: c_int,
    key: T,
    key_size: usize,
    _value: T,
    _value_size: usize,
    new_value: *mut V,
    new_size: *mut usize,
    changed: *mut c_uchar,
) -> c_uchar {
    // SAFETY: the library passes a key with its size.
    let last = unsafe { bytes(key, key_size) }.last().copied();
    if last == Some(b'3') {
        // SAFETY: the library passes where it wants the outcome, and copies the value at once.
        unsafe {
            new_value.write(c"filtered".as_ptr().cast_mut());
            new_size.write(8);
            changed.write(1);
        }
    }
    c_uchar::from(last == Some(b'7'))
}
