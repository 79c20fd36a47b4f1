//! Files that are read at any offset, and reads of them that go on in the background.
//!
//! A thread that waits for a read that has not begun yet does it itself; one that is dropped
//! before it began is never done. One that the kernel carries out (`sys/ring.rs`) is waited for
//! when it is dropped; what it did not bring is read by a call.

use crate::aligned::{AlignedBuf, is_aligned};
use crate::pool::IoQueue;
use crate::promise::Promise;
use crate::sys::ring::{Completion, PendingRequest};
use esker_status::{Error, Result};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A file open for reading at any offset, from any thread.
pub trait RandomAccessFile: Send + Sync + fmt::Debug {
    /// Fills `buf` from `offset`; fewer bytes than asked for mean end of file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;
    /// The `len` bytes from `offset` in memory of their own, which is not filled before; fewer
    /// bytes mean end of file.
    fn read_to_vec(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut out = vec![0; len];
        let got = self.read_at(offset, &mut out)?;
        out.truncate(got);
        Ok(out)
    }
    /// The length when it was opened.
    fn len(&self) -> u64;
    /// Returns whether the file was empty when it was opened.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns whether reads bypass the page cache.
    fn is_direct(&self) -> bool {
        false
    }
    /// Begins to read `len` bytes from `offset` into memory that is aligned for direct I/O; the
    /// offset and the length should be aligned too. Without another thread for it, it is done at
    /// once.
    fn begin_read(self: Arc<Self>, offset: u64, len: usize) -> PendingRead {
        let mut buffer = AlignedBuf::new(len);
        let got = self.read_at(offset, &mut buffer.as_mut_slice()[..len]);
        PendingRead::done(buffer, got)
    }
    /// A memory-mapped view of `offset..offset + len`, when the file has one.
    fn mapped(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }
    /// The path it was opened by, for messages.
    fn path(&self) -> &Path;
}

/// The buffer that a read filled.
#[derive(Debug)]
pub struct ReadBuffer {
    buffer: AlignedBuf,
    len: usize,
    cpu_ns: u64,
}

impl ReadBuffer {
    /// The bytes; fewer than asked for at the end of the file.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer.as_slice()[..self.len]
    }
    /// Processor time that another thread spent on it, in nanoseconds.
    pub fn background_cpu_ns(&self) -> u64 {
        self.cpu_ns
    }
}

fn fill(
    file: &dyn RandomAccessFile,
    mut buffer: AlignedBuf,
    offset: u64,
    len: usize,
) -> Result<ReadBuffer> {
    let len = file.read_at(offset, &mut buffer.as_mut_slice()[..len])?;
    Ok(ReadBuffer {
        buffer,
        len,
        cpu_ns: 0,
    })
}

/// A read that the kernel carries out.
struct RingRead {
    file: Arc<dyn RandomAccessFile>,
    offset: u64,
    len: usize,
    flight: PendingRequest,
}

impl RingRead {
    fn wait(self) -> Result<ReadBuffer> {
        let RingRead {
            file,
            offset,
            len,
            flight,
        } = self;
        let Some((mut buffer, landed)) = flight.wait() else {
            return fill(&*file, AlignedBuf::new(len), offset, len);
        };
        let mut got = match landed {
            Completion::Moved(n) => n,
            Completion::Undone => 0,
            Completion::Failed(e) => {
                return Err(Error::io("read", file.path(), &e.into()).with_offset(offset));
            }
        };
        // After a short direct read the next offset may be unaligned: that is the end.
        let is_over = got == len || file.is_direct() && !is_aligned(got as u64);
        if !is_over {
            got += file.read_at(offset + got as u64, &mut buffer.as_mut_slice()[got..len])?;
        }
        Ok(ReadBuffer {
            buffer,
            len: got,
            cpu_ns: 0,
        })
    }
}

enum Inner {
    Done(Result<ReadBuffer>),
    OnThread(Arc<Promise<Result<ReadBuffer>>>),
    OnRing(RingRead),
    Waited,
}

/// A read that was begun.
pub struct PendingRead(Inner);

impl fmt::Debug for PendingRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRead").finish_non_exhaustive()
    }
}

#[cold]
fn taken_back() -> Error {
    Error::aborted("a read was taken back")
}

impl Drop for PendingRead {
    fn drop(&mut self) {
        // One that is under way owns all that it needs.
        if let Inner::OnThread(promise) = &self.0 {
            promise.take_back();
        }
    }
}

impl PendingRead {
    /// One that brought what `got` says.
    pub fn done(buffer: AlignedBuf, got: Result<usize>) -> Self {
        PendingRead(Inner::Done(got.map(|len| ReadBuffer {
            len: len.min(buffer.len()),
            buffer,
            cpu_ns: 0,
        })))
    }

    /// Reads now.
    pub(crate) fn at_once(
        file: &dyn RandomAccessFile,
        buffer: AlignedBuf,
        offset: u64,
        len: usize,
    ) -> Self {
        PendingRead(Inner::Done(fill(file, buffer, offset, len)))
    }

    /// Reads that the kernel carries out: `flight` is one of `len` bytes of `file` from `offset`
    /// on.
    pub(crate) fn flying(
        file: Arc<dyn RandomAccessFile>,
        offset: u64,
        len: usize,
        flight: PendingRequest,
    ) -> Self {
        PendingRead(Inner::OnRing(RingRead {
            file,
            offset,
            len,
            flight,
        }))
    }

    /// Asks the threads of `queue` to read.
    pub(crate) fn begin(
        file: Arc<dyn RandomAccessFile>,
        queue: &Arc<IoQueue>,
        offset: u64,
        len: usize,
    ) -> Self {
        let buffer = queue.buffer(len);
        let read = move || fill(&*file, buffer, offset, len);
        PendingRead(Inner::OnThread(Promise::begin(queue, read)))
    }

    /// Waits for it, or reads now what no thread has begun to read.
    pub fn wait(mut self) -> Result<ReadBuffer> {
        match std::mem::replace(&mut self.0, Inner::Waited) {
            Inner::Done(filled) => filled,
            Inner::OnThread(promise) => {
                let (filled, cpu_ns) = promise.wait().ok_or_else(taken_back)?;
                filled.map(|filled| ReadBuffer { cpu_ns, ..filled })
            }
            Inner::OnRing(flying) => flying.wait(),
            Inner::Waited => Err(taken_back()),
        }
    }
}
