//! A stand-in for the io_uring on systems that have none: it cannot be made, so none of this is
//! ever reached. Threads of the pool do what a ring would (`pool.rs`).
//!
//! Thread-safety: no value of these types exists.

use super::request::{Completion, Request};
use crate::aligned::AlignedBuf;
use rustix::io::Errno;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;

/// No ring.
#[derive(Debug)]
pub(crate) struct NoRing(Infallible);

impl NoRing {
    /// Fails: there is none.
    pub(crate) fn new() -> io::Result<Arc<NoRing>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn refusal(&self) -> Option<Errno> {
        match self.0 {}
    }

    pub(crate) fn begin(self: &Arc<Self>, _request: Request) -> Result<NoRequest, Request> {
        match self.0 {}
    }
}

/// No request under way.
#[derive(Debug)]
pub(crate) struct NoRequest(Infallible);

impl NoRequest {
    pub(crate) fn wait(self) -> Option<(AlignedBuf, Completion)> {
        match self.0 {}
    }
}
