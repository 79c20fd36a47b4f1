//! An entry, as it lies in the arena.
//!
//! ```text
//!   key_len value_len | key | value
//! ```
//! Invariant: it is written before it is shown to anybody, never again, and never moves: a pointer
//! to it is good for as long as the arena lives.

use crate::arena::Arena;
use crate::sync::Once;
use std::ptr::NonNull;

/// The fixed part. Never made or moved as a value once it lies in the arena: it is only pointed to.
#[repr(C)]
pub(crate) struct Entry {
    lengths: Once<(u32, u32)>,
}

/// A pointer to an entry whose arena is alive. Copying it is free; using it is what the `unsafe`
/// fns promise.
pub(crate) type EntryPtr = NonNull<Entry>;

const HEAD: usize = size_of::<Entry>();

/// Writes the entry whose key and value are the concatenations of these parts: the only copy of the
/// bytes.
///
/// Panics when key or value is 4 GiB or longer.
#[inline]
pub(crate) fn write(arena: &Arena, key: &[&[u8]], value: &[&[u8]]) -> EntryPtr {
    let len = |parts: &[&[u8]]| parts.iter().map(|p| p.len()).sum::<usize>();
    let (key_len, value_len) = (len(key), len(value));
    let lengths = (
        u32::try_from(key_len).expect("keys are shorter than 4 GiB"),
        u32::try_from(value_len).expect("values are shorter than 4 GiB"),
    );
    let piece = arena.allocate(HEAD + key_len + value_len);
    let entry = piece.cast::<Entry>();
    // SAFETY: the piece is ours, large enough, and aligned to 8.
    unsafe {
        entry.write(Entry {
            lengths: Once::new(lengths),
        })
    };
    // SAFETY: key and value follow the head in the same piece.
    let mut to = unsafe { piece.add(HEAD) };
    for part in key.iter().chain(value) {
        // SAFETY: the parts' lengths sum up to the room that was taken, which is ours alone.
        unsafe { to.copy_from_nonoverlapping(NonNull::from_ref(*part).cast(), part.len()) };
        // SAFETY: as above.
        to = unsafe { to.add(part.len()) };
    }
    entry
}

/// Key and value.
///
/// # Safety
/// `entry` lives for `'a`, and whoever wrote it is ordered before this.
#[inline(always)]
pub(crate) unsafe fn parts<'a>(entry: EntryPtr) -> (&'a [u8], &'a [u8]) {
    // SAFETY: the caller's promise: the lengths are not written any more.
    let (key_len, value_len) = unsafe { (*entry.as_ptr()).lengths.get() };
    // SAFETY: key and value follow the head in the same piece, initialised and no longer written.
    unsafe {
        let key = entry.cast::<u8>().add(HEAD).as_ptr();
        (
            std::slice::from_raw_parts(key, key_len as usize),
            std::slice::from_raw_parts(key.add(key_len as usize), value_len as usize),
        )
    }
}

/// Its key.
///
/// # Safety
/// As [`parts`].
#[inline(always)]
pub(crate) unsafe fn key<'a>(entry: EntryPtr) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { parts(entry).0 }
}

/// How many bytes it takes.
///
/// # Safety
/// As [`parts`].
#[inline(always)]
pub(crate) unsafe fn size(entry: EntryPtr) -> usize {
    // SAFETY: the caller's promise.
    let (key, value) = unsafe { parts(entry) };
    HEAD + key.len() + value.len()
}

/// True where this processor can fetch cache lines ahead.
pub(crate) const CAN_PREFETCH: bool = cfg!(all(target_arch = "x86_64", not(miri), not(loom)));

/// Asks for the cache lines of an entry, or of nothing, that may have this many bytes. What is
/// longer is a stream, which the processor sees by itself.
#[inline(always)]
pub(crate) fn prefetch(entry: *const Entry, bytes: usize) {
    const LINES: usize = 8;
    for line in 0..(bytes / 64 + 1).min(LINES) {
        prefetch_lines::<1>(entry.cast::<u8>().wrapping_add(64 * line));
    }
}

/// Asks for `N` cache lines, wherever that is.
#[inline(always)]
pub(crate) fn prefetch_lines<const N: usize>(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in 0..N {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that a program could see, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(64 * line).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}
