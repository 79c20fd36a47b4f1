//! The end of a log, written through a mapping.
//!
//! A call to append a few hundred bytes costs a microsecond, of which the bytes are a tenth. Put
//! into a shared mapping they are in the page cache just as well: they survive the process, and a
//! sync of the file makes them survive power loss.
//!
//! The file is mapped in windows, each prepared by another thread while those before it fill up:
//! its blocks are allocated, so that nothing can be wanting when bytes are put, and its pages are
//! there. That takes less than a millisecond as a rule and twenty on a busy disk, in which a fast
//! writer fills several. What cannot be prepared is written by calls, which say why. Only
//! filesystems are mapped that keep allocated blocks for the next writer of them (ext4, XFS,
//! tmpfs): on one that copies on write a full disk would end the process.
//!
//! Until it is closed the file is longer than what was appended, with zeros at its end.

use crate::pool::IoQueue;
use crate::promise::Promise;
use crate::sys::{Mapping, calls};
use rustix::io::{pwrite, retry_on_intr};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Written before it is mapped, a page is found and not made when it is first touched; and in
/// pieces of this size, since a fault in ext4 takes as long as its piece of the page cache is
/// large.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

const FIRST_WINDOW: usize = 64 << 10;
const WINDOW: usize = 1 << 20;
/// Windows that are prepared ahead of a log that has filled some, up to where it usually ends.
/// Further on it is one.
const AHEAD: usize = 4;

const EXT4: u64 = 0xEF53;
const XFS: u64 = 0x5846_5342;
const TMPFS: u64 = 0x0102_1994;

/// The windows of a file.
#[derive(Debug)]
pub(super) struct MappedFile {
    fd: Arc<OwnedFd>,
    queue: Arc<IoQueue>,
    here: Mapping,
    /// Where `here` begins in the file.
    start: u64,
    /// The windows that follow, in order.
    ahead: VecDeque<Arc<Promise<io::Result<Mapping>>>>,
    /// Up to where the file was made longer, and is being made longer.
    end: u64,
    /// Where such files usually end; 0 where that is not known.
    usual_end: u64,
    /// The window before this one, while it is given back.
    full: Option<Arc<Promise<()>>>,
}

impl MappedFile {
    /// Maps the begin of a file of which nothing is wanted yet; `None` where that is not to be had.
    pub(super) fn new(
        fd: &Arc<OwnedFd>,
        queue: &Arc<IoQueue>,
        usual_end: u64,
    ) -> Option<MappedFile> {
        let kind = calls::filesystem(fd.as_fd())?;
        if ![EXT4, XFS, TMPFS].contains(&kind) {
            return None;
        }
        let here = prepare(fd, 0, FIRST_WINDOW).ok()?;
        let mut mapped = MappedFile {
            fd: Arc::clone(fd),
            queue: Arc::clone(queue),
            here,
            start: 0,
            ahead: VecDeque::new(),
            end: FIRST_WINDOW as u64,
            usual_end,
            full: None,
        };
        mapped.begin_next();
        Some(mapped)
    }

    /// Up to where the file was made longer, and is being made longer.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Puts bytes at `offset`, where the last ones ended. How many: fewer when no further window
    /// can be had.
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
            if done == data.len() || !self.step() {
                return done;
            }
            at = 0;
        }
    }

    /// Goes to the next window; false when it cannot be had, and then there is none any more.
    fn step(&mut self) -> bool {
        let made = self.ahead.pop_front().and_then(|next| next.wait());
        let Some((Ok(next), _)) = made else {
            return false;
        };
        self.start += self.here.len() as u64;
        let full = std::mem::replace(&mut self.here, next);
        // The thread that has filled a window fills the next: one more than was taken, until there
        // are enough.
        for _ in 0..2 {
            if self.ahead.is_empty() || (self.ahead.len() < AHEAD && self.end < self.usual_end) {
                self.begin_next();
            }
        }
        // Behind them: to give one back can take as long as to make one.
        self.full = Some(Promise::begin(&self.queue, move || drop(full)));
        true
    }

    fn begin_next(&mut self) {
        let (fd, from) = (Arc::clone(&self.fd), self.end);
        let next = Promise::begin(&self.queue, move || prepare(&fd, from, WINDOW));
        self.ahead.push_back(next);
        self.end += WINDOW as u64;
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // The file must not become longer once its owner cuts it.
        self.ahead.iter().for_each(|next| next.end());
        if let Some(full) = &self.full {
            full.end();
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
