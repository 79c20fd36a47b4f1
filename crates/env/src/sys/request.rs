//! A request to an io_uring and its end, on every system.
//!
//! Thread-safety: plain values.

use crate::aligned::AlignedBuf;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    Read,
    Write,
}

/// A read into, or a write from, the first bytes of a buffer.
#[derive(Debug)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "no ring reads it")
)]
pub(crate) struct Request {
    pub(crate) transfer: Transfer,
    pub(crate) file: Arc<OwnedFd>,
    pub(crate) offset: u64,
    pub(crate) buffer: AlignedBuf,
    /// At most the length of the buffer.
    pub(crate) len: usize,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "no ring makes it")
)]
pub(crate) enum Completion {
    /// This many bytes went over: perhaps fewer than asked for.
    Moved(usize),
    /// None went over, for a reason that says nothing about the file.
    Undone,
    Failed(Errno),
}
