//! System calls that no safe wrapper offers. The only unsafe code of this crate.

pub(crate) mod calls;
pub(crate) mod lifetime;
#[cfg(not(target_os = "linux"))]
mod no_ring;
mod request;
#[cfg(target_os = "linux")]
pub(crate) mod ring;
#[cfg(target_os = "linux")]
pub(crate) mod sched;

/// Names as on Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) mod ring {
    pub(crate) use super::no_ring::{NoRequest as PendingRequest, NoRing as Ring};
    pub(crate) use super::request::{Completion, Request, Transfer};
}

use rustix::mm;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};

/// Starts write-back of `offset..offset + len` without waiting for it (`sync_file_range`).
#[cfg(target_os = "linux")]
pub(crate) fn start_writeback(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let to_off =
        |v: u64| libc::off64_t::try_from(v).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
    let (offset, len) = (to_off(offset)?, to_off(len)?);
    // SAFETY: the call takes no pointer, and `fd` is open for as long as it is borrowed.
    let rc =
        unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Not to be had on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn start_writeback(_fd: BorrowedFd<'_>, _offset: u64, _len: u64) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

/// Asks the kernel to back these bytes with huge pages, as far as they are whole ones. A kernel
/// without huge pages leaves everything as it is.
#[cfg(target_os = "linux")]
pub fn advise_huge_pages(start: NonNull<u8>, len: usize) {
    // SAFETY: this advice changes no contents, and the kernel refuses a range that is not mapped.
    let _refused = unsafe { mm::madvise(start.as_ptr().cast(), len, mm::Advice::LinuxHugepage) };
}

/// Does nothing: there is no such advice.
#[cfg(not(target_os = "linux"))]
pub fn advise_huge_pages(_start: NonNull<u8>, _len: usize) {}

/// The processor's counter of time stamps; none where it has no such counter that any program may
/// read.
#[inline]
pub fn time_stamp() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, and it touches no memory.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    return None;
}

/// Returns whether no other process has the file open that `fd` has open for writing, in this
/// process or another: then the kernel grants a write lease (`fcntl(2)`), which is given back at
/// once. `false` also where leases are not to be had.
#[cfg(target_os = "linux")]
pub(crate) fn is_only_opener(fd: BorrowedFd<'_>) -> bool {
    /// `fcntl.h`'s number on every architecture.
    const F_SETSIG: libc::c_int = 10;
    let raw = fd.as_raw_fd();
    // SAFETY: none of these calls takes a pointer, and `fd` is open for as long as it is borrowed.
    // A process that opens the file meanwhile makes the kernel send a signal; SIGURG ends no
    // process.
    unsafe {
        libc::fcntl(raw, F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(raw, libc::F_SETLEASE, libc::F_WRLCK) == 0
            && libc::fcntl(raw, libc::F_SETLEASE, libc::F_UNLCK) == 0
    }
}

/// Not known on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_only_opener(_fd: BorrowedFd<'_>) -> bool {
    false
}

/// A part of a file in memory, written to by one and read by everybody who reads the file.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process and not to a thread, and writing takes `&mut`.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` bytes from `offset` on, which the file must have, with all pages there and ready
    /// to be written: what could fail for want of space or memory fails here, and not when bytes
    /// are put.
    pub(crate) fn new(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Mapping> {
        let both = mm::ProtFlags::READ | mm::ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free address, so no memory that anybody uses is replaced.
        let start =
            unsafe { mm::mmap(ptr::null_mut(), len, both, mm::MapFlags::SHARED, fd, offset)? };
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        };
        let mapping = Mapping { start, len };
        // SAFETY: the range is the one just mapped.
        #[cfg(target_os = "linux")]
        unsafe {
            mm::madvise(start.as_ptr().cast(), len, mm::Advice::LinuxPopulateWrite)?
        };
        Ok(mapping)
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts bytes at `at`, as many as fit, the first eight last: a reader beside it sees zeros
    /// there until all is in place.
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.len.saturating_sub(at))];
        let (head, rest) = bytes.split_at(bytes.len().min(8));
        let to = self.start.as_ptr();
        // SAFETY: `at + bytes.len()` is at most `len`, all of which is mapped and written through
        // this value alone.
        unsafe { ptr::copy_nonoverlapping(rest.as_ptr(), to.add(at + head.len()), rest.len()) };
        fence(Ordering::Release);
        // SAFETY: as before.
        unsafe { ptr::copy_nonoverlapping(head.as_ptr(), to.add(at), head.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no pointer into it is left.
        let _gone = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::is_only_opener;
    use std::fs::File;
    use std::os::fd::{AsFd, AsRawFd};

    #[test]
    fn a_file_that_is_mapped_has_another_opener() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let path = dir.path().join("mapped");
        std::fs::write(&path, b"mapped").expect("written");
        let alone = File::options().read(true).write(true).open(&path);
        if !is_only_opener(alone.expect("opens").as_fd()) {
            // No leases on this filesystem: never known to be the only one.
            return;
        }
        let reader = File::open(&path).expect("opens");
        // SAFETY: a new mapping of an open file, at an address of the kernel's choice.
        let map = unsafe {
            let (at, read, shared) = (std::ptr::null_mut(), libc::PROT_READ, libc::MAP_SHARED);
            libc::mmap(at, 6, read, shared, reader.as_raw_fd(), 0)
        };
        assert_ne!(map, libc::MAP_FAILED);
        drop(reader);
        let writer = File::options().read(true).write(true).open(&path);
        let writer = writer.expect("opens");
        assert!(!is_only_opener(writer.as_fd()));
        // SAFETY: the mapping from above, which is not accessed.
        assert_eq!(unsafe { libc::munmap(map, 6) }, 0);
        assert!(is_only_opener(writer.as_fd()));
        // What the lease would have kept from opening it may.
        let second = File::open(&path).expect("opens");
        assert!(!is_only_opener(writer.as_fd()));
        drop(second);
        assert!(is_only_opener(writer.as_fd()));
    }
}
