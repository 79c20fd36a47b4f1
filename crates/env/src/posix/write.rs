//! Files written from front to back: buffered, passed through, or direct.
//!
//! Direct writes go out in whole aligned units from an aligned buffer; `flush` and `sync` write the
//! last, incomplete unit padded with zeros, keep it in the buffer to be written again when it has
//! grown, and cut the file back to its true length, so that no reader sees the padding.
//!
//! A file that is written over an old one is longer than it should be until a sync, which cuts it
//! first.
//!
//! Invariant: `written` bytes are in the file, `buffer[..filled]` follow them, and `len` is the
//! sum. In direct mode `written` is a multiple of the alignment. After a failed write the file is
//! `broken` and refuses more.

use super::mapped::MappedFile;
use super::{call, open, owner};
use crate::aligned::{AlignedBuf, DIRECT_ALIGN, is_aligned};
use crate::pool::IoQueue;
use crate::sys::calls;
use crate::sys::ring::{Completion, PendingRequest, Request, Ring, Transfer};
use crate::write_behind::BufferedFile;
use crate::{WritableFile, WriteOptions, sys};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::check_may_block;
use rustix::fs::{self, FileType, OFlags};
use rustix::io::{Errno, pwrite, retry_on_intr};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Least buffer of a direct writer.
const DIRECT_BUFFER_MIN: usize = 64 << 10;
/// Write-back is started this far behind the end, so that pages still being filled are left alone.
const WRITEBACK_LAG: u64 = 1 << 20;
/// Bytes that one call copies into the page cache at most: a kernel without preemption lets nobody
/// else go on before it returns.
const PIECE: usize = 64 << 10;

/// Writes under way while the next buffer is filled.
const FLIGHTS: usize = 2;

/// A write that the kernel carries out.
#[derive(Debug)]
struct RingWrite {
    flight: PendingRequest,
    offset: u64,
    len: usize,
}

/// Where whole buffers go.
#[derive(Debug)]
struct RingWriter {
    ring: Arc<Ring>,
    /// Where buffers come from.
    queue: Arc<IoQueue>,
    /// In the order of their offsets.
    pending: VecDeque<RingWrite>,
}

/// A file being written.
#[derive(Debug)]
pub(super) struct PosixWriter {
    fd: Option<Arc<OwnedFd>>,
    path: PathBuf,
    options: WriteOptions,
    /// Collects bytes; `None` when every append is passed through.
    buffer: Option<AlignedBuf>,
    filled: usize,
    written: u64,
    /// Up to where write-back was started.
    writeback: u64,
    /// Up to where space was reserved.
    reserved: u64,
    /// The length that an old file left, until it is cut.
    stale: u64,
    /// Where appends go instead of through calls.
    mapped: Option<MappedFile>,
    /// Where buffers go instead of through calls, in direct mode.
    kernel: Option<RingWriter>,
    broken: bool,
}

impl PosixWriter {
    pub(super) fn create(path: &Path, options: WriteOptions) -> Result<PosixWriter> {
        let once = if options.exclusive {
            OFlags::EXCL
        } else {
            OFlags::TRUNC
        };
        Self::open(path, options, OFlags::CREATE | once, "create")
    }

    pub(super) fn open_append(path: &Path, options: WriteOptions) -> Result<PosixWriter> {
        let mut file = Self::open(path, options, OFlags::empty(), "open for append")?;
        let stat = call("stat", path, || fs::fstat(file.fd()))?;
        file.written = u64::try_from(stat.st_size).unwrap_or(0);
        file.writeback = file.written;
        file.reserved = file.written;
        file.reload_tail()?;
        Ok(file)
    }

    fn open(
        path: &Path,
        mut options: WriteOptions,
        how: OFlags,
        doing: &str,
    ) -> Result<PosixWriter> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | how;
        let fd = match open(
            doing,
            path,
            if options.direct {
                flags | calls::DIRECT
            } else {
                flags
            },
        ) {
            // A filesystem without direct I/O says so when asked to open, but may have made the
            // file.
            Err(e) if options.direct && e.os_error() == Some(Errno::INVAL.raw_os_error()) => {
                options.direct = false;
                open(doing, path, flags.difference(OFlags::EXCL))?
            }
            other => other?,
        };
        let size = if options.direct {
            options.buffer_size.max(DIRECT_BUFFER_MIN)
        } else {
            options.buffer_size
        };
        let buffer = (size > 0).then(|| AlignedBuf::new(size));
        // The inode of a file that is written over keeps what it was told. Advice: where nobody
        // takes it, nothing is lost.
        let _advised = sys::lifetime::expect(fd.as_fd(), options.lifetime);
        Ok(PosixWriter {
            fd: Some(Arc::new(fd)),
            path: path.to_owned(),
            options,
            buffer,
            filled: 0,
            written: 0,
            writeback: 0,
            reserved: 0,
            stale: 0,
            mapped: None,
            kernel: None,
            broken: false,
        })
    }

    /// Writes through a mapping where that is available.
    pub(super) fn through_mapping(mut self, queue: &Arc<IoQueue>) -> PosixWriter {
        self.reserve(1);
        // More is reserved than files usually need.
        let usual_end = self.options.preallocate / 8 * 7;
        self.mapped = MappedFile::new(self.arc(), queue, usual_end);
        self
    }

    /// Lets the kernel write whole buffers while the next ones are filled, unless direct I/O was
    /// not to be had.
    pub(super) fn through_ring(mut self, ring: &Arc<Ring>, queue: &Arc<IoQueue>) -> PosixWriter {
        self.kernel = self.options.direct.then(|| RingWriter {
            ring: Arc::clone(ring),
            queue: Arc::clone(queue),
            pending: VecDeque::new(),
        });
        self
    }

    /// A writer over the file at `path`, whose content is lost; `None`, and nothing done to it,
    /// when anybody could notice or when a new file would be somebody else's.
    pub(super) fn open_over(path: &Path, options: WriteOptions) -> Result<Option<PosixWriter>> {
        let mut file = Self::open(path, options, OFlags::empty(), "open for writing over")?;
        let stat = call("stat", path, || fs::fstat(file.fd()))?;
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let is_ours = is_plain && stat.st_nlink == 1 && owner::is_as_new(path, &stat)?;
        if !is_ours || !sys::is_only_opener(file.fd().as_fd()) {
            return Ok(None);
        }
        file.stale = u64::try_from(stat.st_size).unwrap_or(0);
        file.reserved = file.stale;
        Ok(Some(file))
    }

    /// Takes the name `path`; bytes of the old file that are not written over stay.
    pub(super) fn begun_as(mut self, path: &Path) -> PosixWriter {
        self.stale = 0;
        self.path = path.to_owned();
        self
    }

    /// In direct mode: takes the file's incomplete last unit back into the buffer.
    fn reload_tail(&mut self) -> Result<()> {
        let tail = (self.written % DIRECT_ALIGN as u64) as usize;
        let (true, Some(buffer), Some(fd)) =
            (self.options.direct && tail > 0, &mut self.buffer, &self.fd)
        else {
            return Ok(());
        };
        let start = self.written - tail as u64;
        let unit = &mut buffer.as_mut_slice()[..DIRECT_ALIGN];
        let got = call("read", &self.path, || {
            rustix::io::pread(fd, &mut *unit, start)
        })?;
        if got < tail {
            return Err(
                Error::new(ErrorKind::Io, "read: the file became shorter").with_file(&self.path)
            );
        }
        self.filled = tail;
        self.written = start;
        Ok(())
    }

    fn arc(&self) -> &Arc<OwnedFd> {
        self.fd
            .as_ref()
            .expect("every method checks that the file is usable first")
    }

    fn fd(&self) -> &OwnedFd {
        self.arc()
    }

    fn check_usable(&self) -> Result<()> {
        let why = match (&self.fd, self.broken) {
            (None, _) => "the file is closed",
            (_, true) => "an earlier write failed, the tail is unknown",
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::Io, why).with_file(&self.path))
    }

    /// Reserves space ahead of `end`. A filesystem that cannot is left alone from then on.
    fn reserve(&mut self, end: u64) {
        let step = self.options.preallocate;
        if step == 0 || end <= self.reserved {
            return;
        }
        let to = end.div_ceil(step).saturating_mul(step);
        let from = self.reserved;
        match retry_on_intr(|| calls::reserve(self.fd().as_fd(), from, to - from)) {
            Ok(()) => self.reserved = to,
            Err(_) => self.options.preallocate = 0,
        }
    }

    /// Writes all of `data` at `offset`.
    fn write_all(&mut self, data: &[u8], offset: u64) -> Result<()> {
        // A file that begins with a short piece may end with it, and giving space back takes longer
        // than writing the piece. The next one reserves.
        if offset > 0 || data.len() >= PIECE {
            self.reserve(offset + data.len() as u64);
        }
        self.write_rest(data, 0, offset)
    }

    /// Writes what follows the first `done` bytes of `data`, all of which belong at `offset`.
    fn write_rest(&mut self, data: &[u8], mut done: usize, offset: u64) -> Result<()> {
        check_may_block("a write");
        while done < data.len() {
            let piece = if self.options.direct {
                data.len() - done
            } else {
                PIECE.min(data.len() - done)
            };
            match pwrite(self.fd(), &data[done..done + piece], offset + done as u64) {
                Ok(0) => return Err(self.failed("append", Errno::IO, offset)),
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(e) => return Err(self.failed("append", e, offset)),
            }
        }
        Ok(())
    }

    /// Has the kernel write the whole units of a buffer, and keeps the rest.
    fn begin_write(&mut self, buffer: AlignedBuf, len: usize) -> Result<AlignedBuf> {
        let (offset, whole) = (self.written, len - len % DIRECT_ALIGN);
        self.reserve(offset + whole as u64);
        if let Some(own) = &mut self.buffer {
            own.as_mut_slice()[..len - whole].copy_from_slice(&buffer.as_slice()[whole..len]);
        }
        let size = buffer.len();
        let request = Request {
            transfer: Transfer::Write,
            file: Arc::clone(self.arc()),
            offset,
            buffer,
            len: whole,
        };
        let begun = match &self.kernel {
            Some(kernel) => kernel.ring.begin(request),
            None => Err(request),
        };
        let next = match (begun, &mut self.kernel) {
            (Ok(flight), Some(kernel)) => {
                let len = whole;
                kernel.pending.push_back(RingWrite {
                    flight,
                    offset,
                    len,
                });
                if kernel.pending.len() > FLIGHTS {
                    self.land_oldest()?
                } else {
                    Some(kernel.queue.buffer(size))
                }
            }
            // Full, or it takes no more: here, then. What fails first is told first.
            (Err(request), _) => {
                self.land_all()?;
                self.write_rest(&request.buffer.as_slice()[..whole], 0, offset)?;
                Some(request.buffer)
            }
            (Ok(_), None) => None,
        };
        self.written += whole as u64;
        self.filled = len - whole;
        Ok(next.unwrap_or_else(|| AlignedBuf::new(size)))
    }

    /// Waits for the write that was begun first; its buffer, if one was under way.
    fn land_oldest(&mut self) -> Result<Option<AlignedBuf>> {
        let oldest = self.kernel.as_mut().and_then(|k| k.pending.pop_front());
        let Some(RingWrite {
            flight,
            offset,
            len,
        }) = oldest
        else {
            return Ok(None);
        };
        let Some((buffer, landed)) = flight.wait() else {
            return Err(self.failed("append", Errno::IO, offset));
        };
        let done = match landed {
            Completion::Moved(done) => done,
            Completion::Undone => 0,
            Completion::Failed(e) => return Err(self.failed("append", e, offset)),
        };
        self.write_rest(&buffer.as_slice()[..len], done, offset)?;
        Ok(Some(buffer))
    }

    /// Waits for all that was begun, after a failure as well: the file is not written from here on.
    fn land_all(&mut self) -> Result<()> {
        loop {
            match self.land_oldest() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(e) => {
                    // What is under way still waits for the kernel when it is dropped.
                    if let Some(kernel) = &mut self.kernel {
                        kernel.pending.clear();
                    }
                    return Err(e);
                }
            }
        }
    }

    /// Cuts the file at `len`, which also gives back what was reserved behind it.
    fn cut(&mut self, len: u64) -> Result<()> {
        if let Err(e) = retry_on_intr(|| fs::ftruncate(self.fd(), len)) {
            return Err(self.failed("truncate", e, len));
        }
        self.reserved = self.reserved.min(len);
        self.stale = 0;
        Ok(())
    }

    #[cold]
    fn failed(&mut self, doing: &str, e: Errno, offset: u64) -> Error {
        self.broken = true;
        Error::io(doing, &self.path, &e.into()).with_offset(offset)
    }

    /// Writes the buffer out; in direct mode only whole units, unless `all`.
    fn drain(&mut self, all: bool) -> Result<()> {
        let Some(mut buffer) = self.buffer.take() else {
            return Ok(());
        };
        let result = self.drain_buffer(&mut buffer, all);
        self.buffer = Some(buffer);
        result
    }

    fn drain_buffer(&mut self, buffer: &mut AlignedBuf, all: bool) -> Result<()> {
        if !self.options.direct {
            self.write_all(&buffer.as_slice()[..self.filled], self.written)?;
            self.written += self.filled as u64;
            self.filled = 0;
            return self.start_writeback();
        }
        let whole = self.filled - self.filled % DIRECT_ALIGN;
        let tail = self.filled - whole;
        let padded = if all {
            self.filled.next_multiple_of(DIRECT_ALIGN)
        } else {
            whole
        };
        buffer.as_mut_slice()[self.filled..padded.max(self.filled)].fill(0);
        self.write_all(&buffer.as_slice()[..padded], self.written)?;
        if padded > self.filled {
            self.cut(self.written + self.filled as u64)?;
        }
        buffer.as_mut_slice().copy_within(whole..whole + tail, 0);
        self.written += whole as u64;
        self.filled = tail;
        Ok(())
    }

    /// Asks for write-back of what lies far enough behind the end, once enough has gathered.
    fn start_writeback(&mut self) -> Result<()> {
        let step = self.options.bytes_per_sync;
        if step == 0 || self.options.direct {
            return Ok(());
        }
        let to = self.written.saturating_sub(WRITEBACK_LAG) & !(DIRECT_ALIGN as u64 - 1);
        if to <= self.writeback || to - self.writeback < step {
            return Ok(());
        }
        if !self.write_back_to(to)? {
            self.options.bytes_per_sync = 0;
        }
        Ok(())
    }

    /// Asks for write-back up to `to`; false where the filesystem cannot be asked.
    fn write_back_to(&mut self, to: u64) -> Result<bool> {
        let (from, fd) = (self.writeback, self.fd().as_fd());
        match sys::start_writeback(fd, from, to - from) {
            Ok(()) => self.writeback = to,
            Err(e)
                if matches!(
                    e.raw_os_error(),
                    Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE)
                ) =>
            {
                return Ok(false);
            }
            Err(e) => {
                self.broken = true;
                return Err(Error::io("sync_file_range", &self.path, &e).with_offset(from));
            }
        }
        Ok(true)
    }

    fn append_buffered(&mut self, mut data: &[u8]) -> Result<()> {
        let size = self.buffer.as_ref().map_or(0, AlignedBuf::len);
        // A piece larger than the buffer passes it by, after what came before.
        if !self.options.direct && data.len() >= size {
            self.drain(false)?;
            return self.append_through(data);
        }
        if self.options.direct && self.filled == 0 && data.len() >= size {
            data = self.append_aligned(data)?;
        }
        while !data.is_empty() {
            if self.filled == size {
                self.drain(false)?;
            }
            let n = data.len().min(size - self.filled);
            if let Some(buffer) = &mut self.buffer {
                buffer.as_mut_slice()[self.filled..self.filled + n].copy_from_slice(&data[..n]);
            }
            self.filled += n;
            data = &data[n..];
        }
        Ok(())
    }

    /// Writes the whole units of `data` without copying them, where its memory is aligned; what is
    /// left.
    fn append_aligned<'d>(&mut self, data: &'d [u8]) -> Result<&'d [u8]> {
        if !is_aligned(data.as_ptr().addr() as u64) {
            return Ok(data);
        }
        let (whole, rest) = data.split_at(data.len() - data.len() % DIRECT_ALIGN);
        self.write_all(whole, self.written)?;
        self.written += whole.len() as u64;
        Ok(rest)
    }

    fn append_through(&mut self, mut data: &[u8]) -> Result<()> {
        if let Some(mapped) = &mut self.mapped {
            let put = mapped.append(self.written, data);
            self.written += put as u64;
            data = &data[put..];
            if !data.is_empty() {
                self.unmap();
            }
        }
        if !data.is_empty() {
            self.write_all(data, self.written)?;
            self.written += data.len() as u64;
        }
        self.start_writeback()
    }

    /// Goes on by calls. What the file was made longer for the mapping is cut when it is closed.
    #[cold]
    fn unmap(&mut self) {
        if let Some(mapped) = self.mapped.take() {
            self.reserved = self.reserved.max(mapped.end());
        }
    }
}

impl WritableFile for PosixWriter {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.check_usable()?;
        if self.buffer.is_some() {
            self.append_buffered(data)
        } else {
            self.append_through(data)
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.check_usable()?;
        self.land_all()?;
        if self.filled > 0 {
            self.drain(true)
        } else {
            Ok(())
        }
    }

    fn begin_sync(&mut self) -> Result<()> {
        self.flush()?;
        // Bytes in a mapping change under the kernel, and direct writes leave none behind.
        if self.mapped.is_none() && !self.options.direct && self.written > self.writeback {
            let _asked = self.write_back_to(self.written)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        if self.stale > self.len() {
            self.cut(self.len())?;
        }
        check_may_block("a sync");
        match retry_on_intr(|| calls::sync_data(self.fd().as_fd())) {
            Ok(()) => Ok(()),
            // The kernel may have dropped the dirty pages: what is on disk is unknown from here on.
            Err(e) => Err(self.failed("sync", e, self.written)),
        }
    }

    fn len(&self) -> u64 {
        self.written + self.filled as u64
    }

    fn close(&mut self) -> Result<()> {
        if self.fd.is_none() {
            return Ok(());
        }
        let landed = self.land_all();
        let flushed = landed.and_then(|()| self.flush());
        self.unmap();
        let len = self.len();
        let done = if self.reserved > len && !self.options.reusable {
            flushed.and_then(|()| self.cut(len))
        } else {
            flushed
        };
        self.fd = None;
        done
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl BufferedFile for PosixWriter {
    fn append_buffer(&mut self, buffer: AlignedBuf, len: usize) -> Result<AlignedBuf> {
        self.check_usable()?;
        if self.kernel.is_none() || self.filled > 0 || len < DIRECT_ALIGN {
            self.append(&buffer.as_slice()[..len])?;
            return Ok(buffer);
        }
        self.begin_write(buffer, len)
    }
}

impl Drop for PosixWriter {
    fn drop(&mut self) {
        if !self.broken {
            // Dropped without close: an error can no longer be returned.
            let _ = self.close();
            return;
        }
        // Nothing may come after the cut.
        self.kernel = None;
        self.unmap();
        if let Some(fd) = &self.fd
            && self.reserved > self.written
            && let Ok(stat) = fs::fstat(fd)
        {
            let _ = fs::ftruncate(fd, u64::try_from(stat.st_size).unwrap_or(0));
        }
    }
}
