//! System calls that no safe wrapper offers. The only unsafe code of this crate.

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

/// Connections and the listener: descriptors that a child of this process gives up.
const DESCRIPTORS: usize = 16;

static SERVED: [AtomicI32; DESCRIPTORS] = [const { AtomicI32::new(-1) }; DESCRIPTORS];

unsafe extern "C" {
    /// `stdlib.h`'s of GNU and musl; the crate `libc` does not declare it.
    fn secure_getenv(name: *const c_char) -> *mut c_char;
}

/// An environment variable; `None` too in a process with more rights than its caller
/// (`secure_getenv(3)`).
pub(crate) fn secure_variable(name: &str) -> Option<OsString> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with NUL. The text is copied at once; that no thread changes the
    // environment meanwhile is what every caller of getenv(3) relies on.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        if value.is_null() {
            return None;
        }
        let bytes = CStr::from_ptr(value).to_bytes().to_vec();
        Some(OsString::from_vec(bytes))
    }
}

/// Runs `body` while the calling thread takes no signal: threads that it starts never take one.
pub(crate) fn without_signals<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: a set of signals is plain memory, which sigfillset(3) fills before it is read, and
    // pthread_sigmask(3) changes the mask of this thread alone.
    let before = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        (libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) == 0)
            .then_some(before)
    };
    let out = body();
    if let Some(before) = before {
        // SAFETY: the mask is the one that this thread had.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
    }
    out
}

/// Notes a descriptor that children are to close.
pub(crate) fn note_descriptor(fd: i32) {
    for place in &SERVED {
        let taken = place.compare_exchange(-1, fd, Ordering::Relaxed, Ordering::Relaxed);
        if taken.is_ok() {
            return;
        }
    }
}

/// Forgets a descriptor, before it is closed.
pub(crate) fn forget_descriptor(fd: i32) {
    for place in &SERVED {
        let gone = place.compare_exchange(fd, -1, Ordering::Relaxed, Ordering::Relaxed);
        if gone.is_ok() {
            return;
        }
    }
}

/// Runs in a child of `fork`, which has no thread that serves: it holds neither the address nor the
/// connections of its parent.
extern "C" fn give_up_descriptors() {
    for place in &SERVED {
        let fd = place.swap(-1, Ordering::Relaxed);
        if fd >= 0 {
            // SAFETY: close(2) may be called after a fork; the descriptor is the child's copy of
            // one that no thread of the child uses.
            unsafe { libc::close(fd) };
        }
    }
}

/// From now on children close the descriptors that were noted.
pub(crate) fn children_give_up_descriptors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler touches atomics and calls close(2), which is all that may be done
        // there.
        unsafe { libc::pthread_atfork(None, None, Some(give_up_descriptors)) };
    });
}

/// A function of a library that is loaded; null where none has it.
fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with NUL, and the handle stands for all libraries that are loaded.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// `mallctl(3)` of jemalloc: name, old value and its length, new value and its length.
type Control = extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

/// The control of jemalloc, where the program brings it.
fn jemalloc() -> Option<Control> {
    let control = symbol(c"mallctl");
    // SAFETY: the function of this name is jemalloc's, which documents its signature.
    (!control.is_null()).then(|| unsafe { std::mem::transmute(control) })
}

/// Has the allocator of this process give free pages back: jemalloc, where the program brings it,
/// else that of glibc. Others are left alone.
pub(crate) fn give_back_free_pages() {
    type Trim = extern "C" fn(usize) -> c_int;
    if let Some(control) = jemalloc() {
        // 4096 stands for all arenas.
        let none = std::ptr::null_mut();
        control(c"arena.4096.decay".as_ptr(), none, none.cast(), none, 0);
        return;
    }
    let trim = symbol(c"malloc_trim");
    if !trim.is_null() {
        // SAFETY: the function of this name is of glibc, which documents its signature.
        let trim: Trim = unsafe { std::mem::transmute(trim) };
        trim(0);
    }
}

/// Has the allocator of this process keep little of what is freed: glibc's gives pieces of 64 KB
/// and more back at once and has few arenas; jemalloc's purges after a second. Others are left
/// alone.
pub(crate) fn keep_few_free_pages() {
    const PURGE_MS: isize = 1000;
    if let Some(control) = jemalloc() {
        for name in [c"arenas.dirty_decay_ms", c"arena.0.dirty_decay_ms"] {
            let mut ms = PURGE_MS;
            let (none, new) = (std::ptr::null_mut(), (&raw mut ms).cast());
            control(name.as_ptr(), none, none.cast(), new, size_of::<isize>());
        }
        return;
    }
    #[cfg(target_env = "gnu")]
    for (limit, value) in [(libc::M_MMAP_THRESHOLD, 64 << 10), (libc::M_ARENA_MAX, 4)] {
        // SAFETY: mallopt(3) changes limits of the allocator, at any time.
        unsafe { libc::mallopt(limit, value) };
    }
}
