//! The boundary with C: everything that trusts a pointer.
//!
//! The functions here are safe to call with what a C caller passes, under the interface's own
//! contract, which nothing can check: a pointer that is not NULL points to what its type says,
//! alive, and not used by another thread at once where the interface forbids that; a length is that
//! of the buffer before it; text ends with NUL. NULL, odd lengths and text that is not UTF-8 are
//! errors or empty, never undefined.
//!
//! No panic gets past [`call`] and [`quiet`].

pub(crate) mod callbacks;
pub(crate) mod collectors;
pub(crate) mod lock_waits;

use esker_status::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Moves a value to C, which gives it back with [`owned`].
pub(crate) fn give<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// As [`give`], for the hottest calls: the place comes first, so that the parts go from registers
/// into it and not through the stack, from where wider loads would have to wait for narrower
/// stores.
#[inline(always)]
pub(crate) fn give_in_place<T>(make: impl FnOnce() -> T) -> *mut T {
    let place = Box::<T>::new_uninit();
    Box::into_raw(Box::write(place, make()))
}

/// Takes back what [`give`] gave; `None` for NULL.
pub(crate) fn owned<T>(handle: *mut T) -> Option<Box<T>> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: by the module's contract the handle came from `give` and is destroyed once.
    Some(unsafe { Box::from_raw(handle) })
}

/// Destroys what [`give`] gave; nothing for NULL. A destructor that panics ends here.
pub(crate) fn destroy<T>(handle: *mut T) {
    quiet((), || drop(owned(handle)));
}

#[cold]
fn null<T>() -> Error {
    let name = std::any::type_name::<T>();
    let name = name.rsplit("::").next().unwrap_or(name);
    Error::invalid_argument(format!("NULL instead of {name}"))
}

/// The object that a handle points to; `None` for NULL.
#[inline]
pub(crate) fn given<'a, T>(handle: *const T) -> Option<&'a T> {
    // SAFETY: by the module's contract a pointer that is not NULL points to a live T.
    unsafe { handle.as_ref() }
}

/// The object that a handle points to; an error for NULL.
#[inline]
pub(crate) fn shared<'a, T>(handle: *const T) -> Result<&'a T> {
    given(handle).ok_or_else(null::<T>)
}

/// The object that a handle points to, for changing.
#[inline]
pub(crate) fn exclusive<'a, T>(handle: *mut T) -> Result<&'a mut T> {
    // SAFETY: by the module's contract a pointer that is not NULL points to a live T that no other
    // thread uses.
    unsafe { handle.as_mut() }.ok_or_else(null::<T>)
}

/// `count` values from `first` on; empty for NULL.
#[inline]
pub(crate) fn many<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if first.is_null() || count == 0 || count > isize::MAX as usize / size_of::<T>().max(1) {
        return &[];
    }
    // SAFETY: by the module's contract `count` values are there, and the size was checked.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// `length` bytes; empty for NULL.
#[inline]
pub(crate) fn bytes<'a>(first: *const c_char, length: usize) -> &'a [u8] {
    many(first.cast(), length)
}

/// `length` bytes of a key or a value; an error for more than any record can hold, before a byte is
/// looked at.
#[inline]
pub(crate) fn sized<'a>(first: *const c_char, length: usize) -> Result<&'a [u8]> {
    if length > u32::MAX as usize {
        return Err(Error::invalid_argument("a key or a value is too large"));
    }
    Ok(bytes(first, length))
}

/// The bytes of text that ends with NUL; an error for NULL.
pub(crate) fn text_bytes<'a>(text: *const c_char) -> Result<&'a [u8]> {
    if text.is_null() {
        return Err(Error::invalid_argument("NULL instead of text"));
    }
    // SAFETY: by the module's contract the text ends with NUL.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Text that ends with NUL.
pub(crate) fn text<'a>(given: *const c_char) -> Result<&'a str> {
    std::str::from_utf8(text_bytes(given)?)
        .map_err(|_| Error::invalid_argument("a name or an option is not UTF-8"))
}

/// A path that ends with NUL.
pub(crate) fn path<'a>(given: *const c_char) -> Result<&'a Path> {
    Ok(Path::new(OsStr::from_bytes(text_bytes(given)?)))
}

/// Stores `value` where `out` points, unless that is NULL.
#[inline]
pub(crate) fn put<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: by the module's contract there is room for a T.
        unsafe { out.write(value) }
    }
}

/// Stores `value` in the `index`-th place from `out` on, unless that is NULL.
#[inline]
pub(crate) fn put_at<T>(out: *mut T, index: usize, value: T) {
    if !out.is_null() {
        // SAFETY: by the module's contract there is room for more than `index` values.
        unsafe { out.add(index).write(value) }
    }
}

/// Tells the engine, once, whose sizes the allocations of this process have: what the application
/// links or preloads decides.
pub(crate) fn learn_allocator() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the name ends with NUL; only whether there is such a symbol is used.
        let control = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallctl".as_ptr()) };
        if !control.is_null() {
            esker::declare_allocator(esker::Allocator::Jemalloc);
        }
    });
}

/// Room from `malloc` for `length` bytes; NULL when there is none.
fn allocate(length: usize) -> *mut c_char {
    // SAFETY: malloc may be called with any size; 0 is avoided so that NULL means failure.
    unsafe { libc::malloc(length.max(1)) }.cast()
}

/// A copy from `malloc`.
#[inline]
pub(crate) fn malloc_bytes(from: &[u8]) -> *mut c_char {
    if from.len() >= LARGE {
        keep_pages(from.len());
    }
    let to = allocate(from.len());
    if !to.is_null() {
        // SAFETY: `to` has room for that many bytes and is new.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), from.len()) }
    }
    to
}

/// Values from this size on are large to malloc.
const LARGE: usize = 1 << 20;

/// Lets malloc keep the pages of two values of `length` bytes when they are freed, as long as
/// glibc's own limit of 32 MB allows. Else it gives them back to the system, and each read of such
/// a value has them zeroed anew, which takes ten times as long as the copy. What glibc keeps
/// follows the largest piece that was mapped and freed; its pages are not touched.
#[cold]
fn keep_pages(length: usize) {
    const LARGEST: usize = (32 << 20) - (64 << 10);
    static KEPT: AtomicUsize = AtomicUsize::new(0);
    let wanted = length.saturating_mul(2).min(LARGEST);
    if KEPT.fetch_max(wanted, Ordering::Relaxed) < wanted {
        free(std::hint::black_box(allocate(wanted)).cast());
    }
}

/// A copy from `malloc` that ends with NUL.
pub(crate) fn malloc_text(from: &str) -> *mut c_char {
    let mut bytes = Vec::with_capacity(from.len() + 1);
    bytes.extend(from.bytes().filter(|b| *b != 0));
    bytes.push(0);
    malloc_bytes(&bytes)
}

/// An array from `malloc`.
pub(crate) fn malloc_array<T: Copy>(from: &[T]) -> *mut T {
    let to = allocate(size_of_val(from)).cast::<T>();
    if !to.is_null() {
        // SAFETY: malloc aligns for every plain type, and there is room for all values.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) }
    }
    to
}

/// A copy from `malloc` that shares what `value` owns: it is freed and never dropped, and good for
/// as long as the owner of the same things lives.
pub(crate) fn malloc_borrowed<T>(value: &T) -> *mut T {
    let to = allocate(size_of::<T>()).cast::<T>();
    if !to.is_null() {
        // SAFETY: malloc aligns for every plain type, and there is room for a T.
        unsafe { ptr::copy_nonoverlapping(value, to, 1) }
    }
    to
}

/// Gives back what came from `malloc`, here or in the caller's code.
pub(crate) fn free(memory: *mut c_void) {
    // SAFETY: by the module's contract it came from malloc, or is NULL, and is freed once.
    unsafe { libc::free(memory) }
}

thread_local! {
    /// Kind and subcode of the error that this thread was told last.
    static LAST_ERROR: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// RocksDB's numbers of the last error's code and subcode in this thread.
pub(crate) fn last_error() -> (u32, u32) {
    LAST_ERROR.get()
}

/// Puts the error's text where the caller looks for it, and frees what was there.
#[cold]
pub(crate) fn report(errptr: *mut *mut c_char, error: &Error) {
    LAST_ERROR.set((error.kind() as u32, u32::from(error.subcode().number())));
    if errptr.is_null() {
        return;
    }
    // SAFETY: by the interface's contract `*errptr` is NULL or text from malloc.
    let before = unsafe { errptr.replace(malloc_text(&error.to_string())) };
    free(before.cast());
}

#[cold]
fn panicked(what: &(dyn std::any::Any + Send)) -> Error {
    let said = what
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| what.downcast_ref::<String>().map(String::as_str));
    Error::new(
        ErrorKind::Aborted,
        format!("a defect of the library: {}", said.unwrap_or("no message")),
    )
}

/// Runs the body of a function that reports errors; `nothing` is its answer after one.
#[inline(always)]
pub(crate) fn call<R>(errptr: *mut *mut c_char, nothing: R, body: impl FnOnce() -> Result<R>) -> R {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            report(errptr, &error);
            nothing
        }
        Err(panic) => {
            report(errptr, &panicked(&*panic));
            nothing
        }
    }
}

/// Runs the body of a function that cannot report errors.
#[inline(always)]
pub(crate) fn quiet<R>(nothing: R, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(nothing)
}

/// Runs the body of a function that cannot report errors and whose arguments may be NULL.
#[inline(always)]
pub(crate) fn attempt<R>(nothing: R, body: impl FnOnce() -> Result<R>) -> R {
    call(ptr::null_mut(), nothing, body)
}

/// A pointer of the application's that any thread may pass back to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State(pub(crate) *mut c_void);

// SAFETY: the library never looks behind the pointer; the interface says that callbacks come from
// any thread.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

/// Copies `from` to `to` if it fits into `room` bytes; says whether it did.
pub(crate) fn fill(to: *mut c_char, room: usize, from: &[u8]) -> bool {
    if from.len() > room || (to.is_null() && !from.is_empty()) {
        return false;
    }
    if !from.is_empty() {
        // SAFETY: by the module's contract there is room for that many bytes, and they are the
        // caller's.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), from.len()) }
    }
    true
}

/// Calls the application with a state and one piece.
pub(crate) fn tell_one(
    f: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
    state: *mut c_void,
    piece: &[u8],
) {
    // SAFETY: the application gave the function together with the state; the piece lives through
    // the call.
    unsafe { f(state, piece.as_ptr().cast(), piece.len()) }
}

/// Calls the application with a state and two pieces.
pub(crate) fn tell_pair(
    f: unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize),
    state: *mut c_void,
    a: &[u8],
    b: &[u8],
) {
    // SAFETY: as in `tell_one`.
    unsafe {
        f(
            state,
            a.as_ptr().cast(),
            a.len(),
            b.as_ptr().cast(),
            b.len(),
        )
    }
}

/// Calls the application with a state, a family's number and one piece.
pub(crate) fn tell_family_one(
    f: unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize),
    state: *mut c_void,
    family: u32,
    piece: &[u8],
) {
    // SAFETY: as in `tell_one`.
    unsafe { f(state, family, piece.as_ptr().cast(), piece.len()) }
}

/// Calls the application with a state, a family's number and two pieces.
pub(crate) fn tell_family_pair(
    f: unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize),
    state: *mut c_void,
    family: u32,
    a: &[u8],
    b: &[u8],
) {
    // SAFETY: as in `tell_one`.
    unsafe {
        f(
            state,
            family,
            a.as_ptr().cast(),
            a.len(),
            b.as_ptr().cast(),
            b.len(),
        )
    }
}
