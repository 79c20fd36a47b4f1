//! The lock of a database: an `fcntl` write lock, and a table of the locks of this process.
//!
//! `fcntl` locks belong to the process: a second open in the same process would get the lock again, and
//! *closing* that second descriptor would drop the first one's lock. So the table is asked first, by device and
//! inode as well as by path, and the descriptor of a taker that lost is never closed while the lock is held:
//! it is found out by `stat`, before any descriptor is opened.
//!
//! Invariant: `HELD` has exactly one record for each live [`PosixLock`].

use super::{call, open};
use crate::FileLock;
use esker_status::{Error, ErrorKind, Result};
use esker_sync::{Mutex, Rank};
use rustix::fs::{self, FlockOperation, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The files this process has locked: device and inode.
static HELD: Mutex<Vec<(u64, u64)>> =
    Mutex::new(Rank::new(u16::MAX - 2, "file lock table"), Vec::new());

/// How often the lock file may vanish under a taker before it gives up.
const ATTEMPTS: usize = 8;

/// A lock on a path, until dropped.
#[derive(Debug)]
pub(super) struct PosixLock {
    fd: Option<OwnedFd>,
    id: (u64, u64),
}

impl FileLock for PosixLock {}

fn taken(path: &Path, e: Errno) -> Error {
    // EACCES and EAGAIN both mean that somebody has it; callers know one text.
    let e = if e == Errno::ACCESS { Errno::AGAIN } else { e };
    let text = if e == Errno::AGAIN {
        "Resource temporarily unavailable".to_owned()
    } else {
        std::io::Error::from(e).to_string()
    };
    Error::new(ErrorKind::Io, format!("lock {}: {text}", path.display()))
}

impl PosixLock {
    pub(super) fn take(path: &Path) -> Result<PosixLock> {
        // Held throughout: two threads that lock the same path must not both pass the question.
        let mut held = HELD.lock();
        match retry_on_intr(|| fs::stat(path)) {
            Ok(s) if held.contains(&(s.st_dev, s.st_ino)) => return Err(taken(path, Errno::AGAIN)),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(e) => return Err(Error::io("stat", path, &e.into())),
        }
        for _ in 0..ATTEMPTS {
            let fd = open(
                "open lock file",
                path,
                OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW,
            )?;
            retry_on_intr(|| fs::fcntl_lock(&fd, FlockOperation::NonBlockingLockExclusive))
                .map_err(|e| taken(path, e))?;
            let s = call("stat", path, || fs::fstat(&fd))?;
            let id = (s.st_dev, s.st_ino);
            // Whoever held it may have removed the file before it let go; a lock on a file without a name
            // would keep nobody out.
            let named = retry_on_intr(|| fs::stat(path));
            if named.is_ok_and(|n| (n.st_dev, n.st_ino) == id) {
                held.push(id);
                return Ok(PosixLock { fd: Some(fd), id });
            }
        }
        Err(taken(path, Errno::AGAIN))
    }
}

impl Drop for PosixLock {
    fn drop(&mut self) {
        let mut held = HELD.lock();
        // Closing releases the lock; inside the table's lock, so that the next taker sees both or neither.
        drop(self.fd.take());
        held.retain(|id| *id != self.id);
    }
}
