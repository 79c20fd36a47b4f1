//! An allocator that counts, so that the memory which an input takes is a figure.
//!
//! Counts are process-wide: one input runs at a time. A request that no machine should see
//! ([`REFUSED`]) is written down and answered with null, which ends the process unless the caller
//! can do without.
//!
//! Thread-safety: everything is atomic, and exact enough for a limit.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A larger total is refused.
pub const REFUSED: usize = 3 << 30;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The allocator; a binary makes it its global one.
#[derive(Debug)]
pub struct Counting;

/// Counts `bytes` more; false when that would be too many.
fn take(bytes: usize) -> bool {
    let now = NOW.fetch_add(bytes, Relaxed).saturating_add(bytes);
    PEAK.fetch_max(now, Relaxed);
    if now <= REFUSED {
        return true;
    }
    give(bytes);
    false
}

fn give(bytes: usize) {
    NOW.fetch_sub(bytes, Relaxed);
}

// SAFETY: every call goes to the system's allocator with the same arguments, or is refused with
// null as the contract allows; counting touches nothing else.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the contract is the trait's.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the contract is the trait's.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    // SAFETY: the contract is the trait's.
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }

    // SAFETY: the contract is the trait's.
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Both may exist for a moment.
        if !take(new_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        let new = unsafe { System.realloc(ptr, layout, new_size) };
        give(if new.is_null() {
            new_size
        } else {
            layout.size()
        });
        new
    }
}

/// Starts to measure: returns what is in use now.
pub fn begin() -> usize {
    let now = NOW.load(Relaxed);
    PEAK.store(now, Relaxed);
    now
}

/// The most that was in use since [`begin`] returned `base`, beyond it. 0 when the allocator is not
/// in place.
pub fn most_since(base: usize) -> usize {
    PEAK.load(Relaxed).saturating_sub(base)
}
