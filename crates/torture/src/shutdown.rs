//! The call that takes a mounted filesystem away from its device, as a power cut would. The only
//! unsafe code of this crate.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `EXT4_IOC_SHUTDOWN`: `_IOR('X', 125, __u32)`.
const SHUTDOWN: libc::c_ulong = 0x8004_587d;

/// Fate of the data that the filesystem holds in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageCacheFate {
    /// Everything is written first.
    Flush = 0,
    /// The journal is written, data is not.
    Journal = 1,
    /// Nothing is written any more: what a power cut does.
    Nothing = 2,
}

/// Shuts down the filesystem that is mounted at `mount`.
pub(crate) fn shut_down(mount: &Path, cut: PageCacheFate) -> io::Result<()> {
    let root = File::open(mount)?;
    let flags = cut as u32;
    // SAFETY: the call reads four bytes at the pointer, which live through it, and the file is
    // open.
    let done = unsafe { libc::ioctl(root.as_raw_fd(), SHUTDOWN, &raw const flags) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
