//! The lock of a database: an `fcntl` lock, and a table of the locks of this process.
//!
//! `fcntl` locks belong to the process: a second open in the same process would get the lock again,
//! and *closing* that second descriptor would drop the first one's lock. So the table is asked
//! first, by device and inode as well as by path, and the descriptor of a taker that lost is never
//! closed while the lock is held: it is found out by `stat`, before any descriptor is opened.
//!
//! A lock keeps all others out, or, shared, those who want it alone: that one needs no permission
//! to write.
//!
//! Invariant: `LOCKED_FILES` has exactly one record for each file of a live [`PosixLock`].

use super::{call, open};
use crate::sys::calls;
use crate::{FileLock, lock_held_here};
use esker_status::{Error, LockHolder, Result};
use esker_sync::{Mutex, Rank};
use rustix::fs::{self, FlockOperation, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Flock, FlockType, fcntl_getlk};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Device and inode.
type FileId = (fs::Dev, u64);

/// A file that this process has locked.
#[derive(Debug)]
struct LockedFile {
    id: FileId,
    /// Closing it releases the lock.
    _fd: OwnedFd,
    /// How many share the lock; `None` when one has it alone.
    sharers: Option<usize>,
    /// When it was taken, in Unix seconds, and by which thread.
    since: (u64, u64),
}

/// The files this process has locked.
static LOCKED_FILES: Mutex<Vec<LockedFile>> =
    Mutex::new(Rank::new(u16::MAX - 2, "file lock table"), Vec::new());

/// How often the lock file may vanish under a taker before it gives up.
const ATTEMPTS: usize = 8;

/// Who is kept out by a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockMode {
    /// Everybody. Makes the file when it is absent.
    All,
    /// Exclusively. The file must exist.
    Owners,
}

/// A lock on a path, until dropped.
#[derive(Debug)]
pub(super) struct PosixLock {
    id: FileId,
}

impl FileLock for PosixLock {}

/// The file that cannot be locked, and why.
fn refused(path: &Path, fd: &OwnedFd, e: Errno, wanted: FlockType) -> Error {
    // EACCES and EAGAIN both mean that somebody has it; callers know one text.
    if !matches!(e, Errno::ACCESS | Errno::AGAIN) {
        return Error::lock("While lock file", path, &e.into());
    }
    let found = fcntl_getlk(fd, &Flock::from(wanted));
    let pid = found.ok().flatten().and_then(|lock| lock.pid);
    let pid = pid.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok());
    let holder = match pid {
        None => LockHolder::Unseen,
        Some(pid) => {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            let name = name.ok().map(|n| n.trim_end().to_owned());
            LockHolder::Process { pid, name }
        }
    };
    Error::lock("While lock file", path, &Errno::AGAIN.into()).with_lock_holder(holder)
}

fn open_lock(path: &Path, mode: LockMode) -> Result<OwnedFd> {
    let flags = match mode {
        LockMode::All => OFlags::RDWR | OFlags::CREATE,
        LockMode::Owners => OFlags::RDONLY,
    };
    open("open lock file", path, flags | OFlags::NOFOLLOW).map_err(|e| {
        let Some(errno) = e.os_error() else {
            return e;
        };
        let source = std::io::Error::from_raw_os_error(errno);
        let e = Error::lock("while open a file for lock", path, &source);
        if e.is_unwritable() {
            return e.with_hint(format!("no permission to write {}", path.display()));
        }
        e
    })
}

impl PosixLock {
    pub(super) fn take(path: &Path, mode: LockMode) -> Result<PosixLock> {
        // Held throughout: two threads that lock the same path must not both pass the question.
        let mut held = LOCKED_FILES.lock();
        match retry_on_intr(|| fs::stat(path)) {
            Ok(s) => {
                let id = (s.st_dev, s.st_ino);
                if let Some(mine) = held.iter_mut().find(|h| h.id == id) {
                    return match &mut mine.sharers {
                        Some(sharers) if mode == LockMode::Owners => {
                            *sharers += 1;
                            Ok(PosixLock { id })
                        }
                        _ => Err(lock_held_here(path, mine.since)),
                    };
                }
            }
            Err(Errno::NOENT) => {}
            Err(e) => return Err(Error::io("stat", path, &e.into())),
        }
        let (operation, wanted) = match mode {
            LockMode::All => (
                FlockOperation::NonBlockingLockExclusive,
                FlockType::WriteLock,
            ),
            LockMode::Owners => (FlockOperation::NonBlockingLockShared, FlockType::ReadLock),
        };
        for _ in 0..ATTEMPTS {
            let fd = open_lock(path, mode)?;
            retry_on_intr(|| fs::fcntl_lock(&fd, operation))
                .map_err(|e| refused(path, &fd, e, wanted))?;
            let s = call("stat", path, || fs::fstat(&fd))?;
            let id = (s.st_dev, s.st_ino);
            // Whoever held it may have removed the file before it let go; a lock on a file without
            // a name would keep no process out.
            let named = retry_on_intr(|| fs::stat(path));
            if named.is_ok_and(|n| (n.st_dev, n.st_ino) == id) {
                held.push(LockedFile {
                    id,
                    _fd: fd,
                    sharers: (mode == LockMode::Owners).then_some(1),
                    since: now(),
                });
                return Ok(PosixLock { id });
            }
        }
        let again = Error::lock("While lock file", path, &Errno::AGAIN.into());
        Err(again.with_lock_holder(LockHolder::Unseen))
    }
}

/// The Unix second and the thread.
fn now() -> (u64, u64) {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let second = u64::try_from(clock.tv_sec).unwrap_or(0);
    (second, calls::thread_number())
}

impl Drop for PosixLock {
    fn drop(&mut self) {
        let mut held = LOCKED_FILES.lock();
        // Closing releases the lock; inside the table's lock, so that the next taker sees both or
        // neither.
        held.retain_mut(|h| {
            if h.id != self.id {
                return true;
            }
            let left = h.sharers.map_or(0, |n| n - 1);
            h.sharers = Some(left);
            left > 0
        });
    }
}
