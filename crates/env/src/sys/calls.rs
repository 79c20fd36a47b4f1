//! Calls that differ between systems: each function once for Linux and once for every other Unix,
//! where it does without or says that it cannot.
//!
//! Thread-safety: none of them has state.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

#[cfg(target_os = "linux")]
mod system {
    use super::{BorrowedFd, Errno, OFlags};
    use rustix::fs::{self, Advice, FallocateFlags};

    /// Reads and writes past the page cache.
    pub(crate) const DIRECT: OFlags = OFlags::DIRECT;

    /// Tells the kernel that reads come in no order.
    pub(crate) fn advise_random(fd: BorrowedFd<'_>) {
        let _unadvised = fs::fadvise(fd, 0, None, Advice::Random);
    }

    /// Reserves space behind the end of a file, which stays as long as it is.
    pub(crate) fn reserve(fd: BorrowedFd<'_>, from: u64, len: u64) -> Result<(), Errno> {
        fs::fallocate(fd, FallocateFlags::KEEP_SIZE, from, len)
    }

    /// Brings the contents of a file to the device, with its length.
    pub(crate) fn sync_data(fd: BorrowedFd<'_>) -> Result<(), Errno> {
        fs::fdatasync(fd)
    }

    /// The kind of the filesystem, as in `magic.h`.
    pub(crate) fn filesystem(fd: BorrowedFd<'_>) -> Option<u64> {
        u64::try_from(fs::fstatfs(fd).ok()?.f_type).ok()
    }

    /// The number of the calling thread.
    pub(crate) fn thread_number() -> u64 {
        u64::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap_or(0)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{BorrowedFd, Errno, OFlags};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// There is no such flag.
    pub(crate) const DIRECT: OFlags = OFlags::empty();

    /// No advice.
    pub(crate) fn advise_random(_fd: BorrowedFd<'_>) {}

    /// Space is taken as it is written.
    pub(crate) fn reserve(_fd: BorrowedFd<'_>, _from: u64, _len: u64) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// Brings the file to the device, through the device's own cache.
    #[cfg(target_vendor = "apple")]
    pub(crate) fn sync_data(fd: BorrowedFd<'_>) -> Result<(), Errno> {
        rustix::fs::fcntl_fullfsync(fd).or_else(|_| rustix::fs::fsync(fd))
    }

    /// Brings the file to the device.
    #[cfg(not(target_vendor = "apple"))]
    pub(crate) fn sync_data(fd: BorrowedFd<'_>) -> Result<(), Errno> {
        rustix::fs::fsync(fd)
    }

    /// Not known.
    pub(crate) fn filesystem(_fd: BorrowedFd<'_>) -> Option<u64> {
        None
    }

    /// The number of the calling thread: in the order in which threads asked.
    pub(crate) fn thread_number() -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        thread_local! {
            static NUMBER: u64 = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        }
        NUMBER.with(|n| *n)
    }
}

pub(crate) use system::{DIRECT, advise_random, filesystem, reserve, sync_data, thread_number};
