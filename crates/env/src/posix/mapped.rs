//! The end of a log, written through a mapping.
//!
//! A call to append a few hundred bytes costs a microsecond, of which the bytes are a tenth. Put into a shared mapping
//! they are in the page cache just as well: they survive the process, and a sync of the file makes them survive power loss.
//!
//! The file is mapped in windows, each prepared by another thread while the one before fills up: its blocks are
//! allocated, so that nothing can be wanting when bytes are put, and its pages are there. What cannot be prepared is
//! written by calls, which say why. Only filesystems are mapped that keep allocated blocks for whoever writes to them again
//! (ext4, XFS, tmpfs): on one that copies on write a full disk would end the process.
//!
//! Until it is closed the file is longer than what was appended, with zeros at its end.

use crate::later::Later;
use crate::pool::IoQueue;
use crate::sys::Mapping;
use rustix::fs::fstatfs;
use rustix::io::{pwrite, retry_on_intr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Written before it is mapped, a page is found and not made when it is first touched; and in pieces of this size, since
/// a fault in ext4 takes as long as its piece of the page cache is large.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

const FIRST_WINDOW: usize = 64 << 10;
const WINDOW: usize = 1 << 20;

const EXT4: u64 = 0xEF53;
const XFS: u64 = 0x5846_5342;
const TMPFS: u64 = 0x0102_1994;

/// The windows of a file.
#[derive(Debug)]
pub(super) struct Mapped {
    fd: Arc<OwnedFd>,
    queue: Arc<IoQueue>,
    here: Mapping,
    /// Where `here` begins in the file.
    start: u64,
    next: Option<Arc<Later<io::Result<Mapping>>>>,
}

impl Mapped {
    /// Maps the begin of an empty file; `None` where that is not to be had.
    pub(super) fn new(fd: &Arc<OwnedFd>, queue: &Arc<IoQueue>) -> Option<Mapped> {
        let kind = fstatfs(fd).ok()?.f_type;
        if ![EXT4, XFS, TMPFS].contains(&u64::try_from(kind).ok()?) {
            return None;
        }
        let here = prepare(fd, 0, FIRST_WINDOW).ok()?;
        Some(Mapped {
            fd: Arc::clone(fd),
            queue: Arc::clone(queue),
            here,
            start: 0,
            next: None,
        })
    }

    /// Up to where the file was made longer, and is being made longer.
    pub(super) fn end(&self) -> u64 {
        let next = if self.next.is_some() { WINDOW } else { 0 };
        self.start + (self.here.len() + next) as u64
    }

    /// Puts bytes at `offset`, where the last ones ended. How many: fewer when no further window can be had.
    #[inline]
    pub(super) fn append(&mut self, offset: u64, data: &[u8]) -> usize {
        let at = (offset - self.start) as usize;
        if data.len() <= self.here.len() - at {
            self.here.put(at, data);
            return data.len();
        }
        self.append_across(at, data)
    }

    #[cold]
    fn append_across(&mut self, mut at: usize, data: &[u8]) -> usize {
        let mut done = 0;
        loop {
            let rest = &data[done..];
            let n = rest.len().min(self.here.len() - at);
            self.here.put(at, &rest[..n]);
            done += n;
            if done == data.len() {
                return done;
            }
            let end = self.start + self.here.len() as u64;
            let Some(next) = self.take_next(end) else {
                return done;
            };
            let full = std::mem::replace(&mut self.here, next);
            self.start = end;
            at = 0;
            let (fd, from) = (Arc::clone(&self.fd), end + self.here.len() as u64);
            self.next = Some(Later::begin(&self.queue, move || {
                drop(full);
                prepare(&fd, from, WINDOW)
            }));
        }
    }

    fn take_next(&mut self, end: u64) -> Option<Mapping> {
        match self.next.take() {
            Some(next) => next.wait()?.0.ok(),
            None => prepare(&self.fd, end, WINDOW).ok(),
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // The file must not become longer once its owner cuts it.
        if let Some(next) = &self.next {
            next.end();
        }
    }
}

/// A window with blocks and pages.
fn prepare(fd: &Arc<OwnedFd>, start: u64, len: usize) -> io::Result<Mapping> {
    let end = start + len as u64;
    let mut at = start;
    while at < end {
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        let zeros = &ZEROS[..left.min(ZEROS.len())];
        match retry_on_intr(|| pwrite(fd, zeros, at))? {
            0 => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            n => at += n as u64,
        }
    }
    Mapping::new(fd.as_fd(), start, len)
}
