//! Positional reads, buffered or direct.
//!
//! A direct read that is not aligned goes through an aligned bounce buffer that its thread keeps.

use super::{call, open};
use crate::aligned::{AlignedBuf, DIRECT_ALIGN, is_aligned};
use crate::pool::IoQueue;
use crate::sys::calls;
use crate::sys::ring::{PendingRequest, Request, Transfer};
use crate::{BackgroundIo, PendingRead, RandomAccessFile, ReadOptions};
use esker_status::{Error, Result};
use esker_sync::check_may_block;
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, OFlags, fstat};
use rustix::io::{Errno, pread};
use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes read through the bounce buffer at once.
const BOUNCE_MAX: usize = 1 << 20;

thread_local! {
    static BOUNCE: RefCell<Option<AlignedBuf>> = const { RefCell::new(None) };
}

/// A file open for reading.
#[derive(Debug)]
pub(super) struct PosixReader {
    fd: Arc<OwnedFd>,
    len: u64,
    direct: bool,
    path: PathBuf,
    /// The queue and the carrier of background reads.
    io: Option<(Arc<IoQueue>, BackgroundIo)>,
}

impl PosixReader {
    pub(super) fn open(
        path: &Path,
        options: ReadOptions,
        io: Option<(Arc<IoQueue>, BackgroundIo)>,
    ) -> Result<PosixReader> {
        let flags = if options.direct {
            OFlags::RDONLY | calls::DIRECT
        } else {
            OFlags::RDONLY
        };
        let (fd, direct) = match open("open", path, flags) {
            // A filesystem without direct I/O (tmpfs) says so when asked to open.
            Err(e) if options.direct && e.os_error() == Some(Errno::INVAL.raw_os_error()) => {
                (open("open", path, OFlags::RDONLY)?, false)
            }
            other => (other?, options.direct),
        };
        let stat = call("stat", path, || fstat(&fd))?;
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            return Err(Error::io("open", path, &Errno::ISDIR.into()));
        }
        if options.random && !direct {
            // Advice only: a file that cannot take it reads as before.
            calls::advise_random(fd.as_fd());
        }
        Ok(PosixReader {
            fd: Arc::new(fd),
            len: u64::try_from(stat.st_size).unwrap_or(0),
            direct,
            path: path.to_owned(),
            io,
        })
    }

    /// Fills `buf` as far as the file goes.
    fn read_full(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        check_may_block("a read");
        let mut done = 0;
        while done < buf.len() {
            match pread(&*self.fd, &mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => {
                    done += n;
                    // After a short direct read the next offset may be unaligned: that is the end.
                    if self.direct && !is_aligned(done as u64) {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(Error::io("read", &self.path, &e.into()).with_offset(offset)),
            }
        }
        Ok(done)
    }

    /// Has the kernel begin to read, where that is wanted and can be done in one piece.
    fn begin_in_kernel(&self, offset: u64, len: usize) -> Option<PendingRequest> {
        let (queue, wanted) = self.io.as_ref()?;
        let ring = queue.ring(*wanted, self.direct)?;
        let is_whole = is_aligned(offset) && is_aligned(len as u64);
        if (self.direct && !is_whole) || self.check_range(offset, len).is_err() {
            return None;
        }
        let request = Request {
            transfer: Transfer::Read,
            file: Arc::clone(&self.fd),
            offset,
            buffer: queue.buffer(len),
            len,
        };
        ring.begin(request).ok()
    }

    /// Checks that the range can lie in a file.
    fn check_range(&self, offset: u64, len: usize) -> Result<()> {
        let end = offset
            .checked_add(len as u64)
            .and_then(|e| e.checked_add(DIRECT_ALIGN as u64));
        if end.is_some_and(|e| i64::try_from(e).is_ok()) {
            return Ok(());
        }
        let e = Error::invalid_argument("read beyond the largest file offset");
        Err(e.with_file(&self.path).with_offset(offset))
    }

    fn read_bounced(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        BOUNCE.with(|cell| {
            let mut slot = cell.try_borrow_mut().ok();
            let mut own = None;
            let slot = match slot.as_deref_mut() {
                Some(slot) => slot,
                None => &mut own,
            };
            let mut done = 0;
            while done < buf.len() {
                let at = offset + done as u64;
                let skip = (at % DIRECT_ALIGN as u64) as usize;
                let want = (skip + buf.len() - done)
                    .next_multiple_of(DIRECT_ALIGN)
                    .min(BOUNCE_MAX);
                if slot.as_ref().is_none_or(|b| b.len() < want) {
                    *slot = Some(AlignedBuf::new(want.next_power_of_two()));
                }
                let Some(bounce) = slot.as_mut() else { break };
                let got = self.read_full(at - skip as u64, &mut bounce.as_mut_slice()[..want])?;
                let n = got.saturating_sub(skip).min(buf.len() - done);
                buf[done..done + n].copy_from_slice(&bounce.as_slice()[skip..skip + n]);
                done += n;
                if got < want {
                    break;
                }
            }
            Ok(done)
        })
    }
}

impl RandomAccessFile for PosixReader {
    #[inline]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.check_range(offset, buf.len())?;
        let aligned = || {
            is_aligned(offset)
                && is_aligned(buf.len() as u64)
                && is_aligned(buf.as_ptr().addr() as u64)
        };
        if self.direct && !aligned() {
            self.read_bounced(offset, buf)
        } else {
            self.read_full(offset, buf)
        }
    }
    fn read_to_vec(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.check_range(offset, len)?;
        let mut out = Vec::with_capacity(len);
        if self.direct {
            out.resize(len, 0);
            let got = self.read_at(offset, &mut out)?;
            out.truncate(got);
            return Ok(out);
        }
        check_may_block("a read");
        while out.len() < len {
            let at = offset + out.len() as u64;
            match pread(&*self.fd, spare_capacity(&mut out), at) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(Error::io("read", &self.path, &e.into()).with_offset(offset)),
            }
        }
        out.truncate(len);
        Ok(out)
    }
    fn begin_read(self: Arc<Self>, offset: u64, len: usize) -> PendingRead {
        if let Some(flight) = self.begin_in_kernel(offset, len) {
            return PendingRead::flying(self, offset, len, flight);
        }
        match self.io.clone() {
            Some((io, _)) => PendingRead::begin(self, &io, offset, len),
            None => PendingRead::at_once(&*self, AlignedBuf::new(len), offset, len),
        }
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn is_direct(&self) -> bool {
        self.direct
    }
    fn path(&self) -> &Path {
        &self.path
    }
}
