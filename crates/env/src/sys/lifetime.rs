//! Hints to the kernel about how long the bytes of a file will stay (`F_SET_RW_HINT`, `fcntl(2)`).
//!
//! The kernel keeps the hint with the inode and passes it on to devices that separate what they
//! write by it.

use crate::Lifetime;
use std::io;
use std::os::fd::BorrowedFd;

/// Tells the kernel.
#[cfg(target_os = "linux")]
pub(crate) fn expect(fd: BorrowedFd<'_>, lifetime: Lifetime) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    /// `linux/fcntl.h`'s number on every architecture.
    const F_SET_RW_HINT: libc::c_int = 1036;
    let hint: u64 = hint_of(lifetime);
    // SAFETY: the kernel reads eight bytes at the pointer, which lead to `hint` for the whole call.
    let rc = unsafe { libc::fcntl(fd.as_raw_fd(), F_SET_RW_HINT, &raw const hint) };
    match rc {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Other systems ignore it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn expect(_fd: BorrowedFd<'_>, _lifetime: Lifetime) -> io::Result<()> {
    Ok(())
}

/// `RWH_WRITE_LIFE_*` of `linux/fcntl.h`.
#[cfg(target_os = "linux")]
fn hint_of(lifetime: Lifetime) -> u64 {
    match lifetime {
        Lifetime::Unknown => 0,
        Lifetime::Short => 2,
        Lifetime::Medium => 3,
        Lifetime::Long => 4,
        Lifetime::Extreme => 5,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::hint_of;
    use crate::{FileSystem, Lifetime, PosixFs, WriteOptions};
    use std::os::fd::AsRawFd;
    use std::path::Path;

    /// Returns the hint that the kernel has for the file.
    fn told(path: &Path) -> u64 {
        const F_GET_RW_HINT: libc::c_int = 1035;
        let file = std::fs::File::open(path).expect("opens");
        let mut hint = u64::MAX;
        // SAFETY: the kernel writes eight bytes at the pointer, which lead to `hint` for the whole
        // call.
        let rc = unsafe { libc::fcntl(file.as_raw_fd(), F_GET_RW_HINT, &raw mut hint) };
        assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
        hint
    }

    fn staying(lifetime: Lifetime) -> WriteOptions {
        WriteOptions {
            lifetime,
            ..WriteOptions::default()
        }
    }

    #[test]
    fn the_kernel_knows_what_is_expected_of_a_new_file_and_of_one_written_over() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let (fs, path) = (PosixFs::new(), dir.path().join("000001.sst"));
        use Lifetime::{Extreme, Long, Medium, Short, Unknown};
        for (lifetime, hint) in [
            (Short, 2),
            (Medium, 3),
            (Long, 4),
            (Extreme, 5),
            (Unknown, 0),
        ] {
            fs.create(&path, staying(lifetime))
                .expect("create")
                .close()
                .expect("close");
            assert_eq!(
                (told(&path), hint_of(lifetime)),
                (hint, hint),
                "{lifetime:?}"
            );
        }
        fs.create(&path, staying(Extreme))
            .expect("create")
            .close()
            .expect("close");
        let new = dir.path().join("000002.sst");
        let mut over = fs
            .create_over(&path, &new, staying(Medium))
            .expect("create");
        over.close().expect("close");
        assert_eq!(told(&new), hint_of(Medium));
    }
}
