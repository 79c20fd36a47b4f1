//! Figures of the allocator of a loaded library.
//!
//! The library's memory is not this program's: it calls `malloc`, which is the system's unless the
//! library brings another one along. Jemalloc and glibc tell; others do not.

use std::ffi::c_void;

use super::api::Api;
use crate::allocated::{AllocatorBytes, EngineAllocator};

/// The figures of the allocators that the library may use.
pub(super) fn of(api: &Api) -> EngineAllocator {
    let both = [jemalloc(api), glibc(api)].into_iter().flatten();
    EngineAllocator::Own(both.reduce(AllocatorBytes::with))
}

fn jemalloc(api: &Api) -> Option<AllocatorBytes> {
    let control = api.mallctl?;
    let (mut now, mut size) = (1u64, size_of::<u64>());
    let new = (&raw mut now).cast::<c_void>();
    // SAFETY: the name is zero-terminated, and it takes a number of 64 bits.
    unsafe { control(c"epoch".as_ptr(), new, &mut size, new, size_of::<u64>()) };
    let read = |name: &str| {
        let mut bytes = 0usize;
        let mut size = size_of::<usize>();
        let out = (&raw mut bytes).cast::<c_void>();
        // SAFETY: the name is zero-terminated, and its value is a `size_t`.
        let code = unsafe {
            control(
                name.as_ptr().cast(),
                out,
                &mut size,
                std::ptr::null_mut(),
                0,
            )
        };
        (code == 0).then_some(bytes as u64)
    };
    // One that is loaded and not used has next to nothing.
    AllocatorBytes::read(read).filter(AllocatorBytes::is_used)
}

fn glibc(api: &Api) -> Option<AllocatorBytes> {
    // SAFETY: it takes nothing and returns a struct of numbers.
    let info = unsafe { (api.mallinfo2?)() };
    let system = (info.arena + info.mapped) as u64;
    let given = (info.used + info.mapped) as u64;
    Some(AllocatorBytes::in_heaps(given, system)).filter(AllocatorBytes::is_used)
}
