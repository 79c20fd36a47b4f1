//! System calls that no safe wrapper offers. The only unsafe code of this crate.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Starts write-back of `offset..offset + len` without waiting for it (`sync_file_range`).
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
