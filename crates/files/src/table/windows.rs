//! Reading ahead in the background, for jobs that read a table from front to back.
//!
//! Blocks come out of one window of the file while the next one is being read. Windows begin and
//! end at multiples of what direct I/O wants, so their bytes are not copied on the way. The first
//! window is small, since its reader waits for it; the second is under way by then. Behind the
//! window in use at most one more is read, so a job that stops in the middle of a table has read
//! one window too much.
//!
//! A block at the end of a window is put together with its rest from the next one.
//!
//! Invariant: `next`, where there is one, begins where `current` ends. One reader at a time.

use super::stages::{Stage, StageClock};
use esker_env::{AlignedBuf, DIRECT_ALIGN, PendingRead, RandomAccessFile, ReadBuffer};
use esker_status::Result;
use std::sync::Arc;

/// Least bytes of a request, but where the table ends.
const REQUEST_MIN: u64 = 256 << 10;
/// Least bytes of a window, where little memory is there for it.
const WINDOW_MIN: u64 = 64 << 10;
/// A block of this size has memory of its own from the start: it is not copied once more, and
/// nothing of its size is kept for the next one.
pub(super) const LARGE_BLOCK: usize = 256 << 10;
const ALIGN: u64 = DIRECT_ALIGN as u64;

/// A block as it is stored.
#[derive(Debug)]
pub(super) enum StoredBlock<'a> {
    /// In a buffer that serves for other blocks as well.
    Lent(&'a [u8]),
    /// In memory of its own.
    Own(Vec<u8>),
}

impl StoredBlock<'_> {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            StoredBlock::Lent(bytes) => bytes,
            StoredBlock::Own(bytes) => bytes,
        }
    }
}

/// A part of the file in memory.
#[derive(Debug)]
pub(super) struct TableWindow {
    start: u64,
    bytes: ReadBuffer,
}

impl TableWindow {
    /// Reads `len` bytes from `start`; both are multiples of what direct I/O wants.
    pub(super) fn read(file: &dyn RandomAccessFile, start: u64, len: usize) -> Result<Self> {
        let mut buffer = AlignedBuf::new(len);
        let got = file.read_at(start, &mut buffer.as_mut_slice()[..len]);
        let bytes = PendingRead::done(buffer, got).wait()?;
        Ok(TableWindow { start, bytes })
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.as_slice().len() as u64
    }

    /// The bytes from `offset` on.
    fn from(&self, offset: u64) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.as_slice().get(at..)
    }

    pub(super) fn get(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.from(offset)?.get(..len)
    }
}

/// A part that is under way.
#[derive(Debug)]
pub(super) struct PendingWindow {
    start: u64,
    len: usize,
    read: PendingRead,
}

impl PendingWindow {
    /// Begins to read `len` bytes from `start`, as [`TableWindow::read`] takes them.
    pub(super) fn begin(file: &Arc<dyn RandomAccessFile>, start: u64, len: usize) -> Self {
        PendingWindow {
            start,
            len,
            read: Arc::clone(file).begin_read(start, len),
        }
    }

    /// Returns whether `offset` lies in it.
    pub(super) fn has(&self, offset: u64) -> bool {
        offset >= self.start && offset - self.start < self.len as u64
    }

    /// Waits until it is there.
    pub(super) fn wait(self) -> Result<TableWindow> {
        Ok(TableWindow {
            start: self.start,
            bytes: self.read.wait()?,
        })
    }
}

/// The file that is read, where its blocks end, and the clock that takes its time.
#[derive(Clone, Copy, Debug)]
struct Source<'a> {
    file: &'a Arc<dyn RandomAccessFile>,
    end: u64,
    stages: Option<&'a StageClock>,
}

/// The window in use and the one after it.
#[derive(Debug)]
pub(super) struct Windows {
    /// A handle of its own, where the job does not read through the table's.
    own: Option<Arc<dyn RandomAccessFile>>,
    size: u64,
    current: Option<TableWindow>,
    next: Option<PendingWindow>,
    /// A block out of two windows, unless it is large.
    joined: Vec<u8>,
}

impl Windows {
    /// Windows of `size` bytes, of `own` where that is given.
    pub(super) fn new(size: usize, own: Option<Arc<dyn RandomAccessFile>>) -> Self {
        Windows {
            own,
            size: (size as u64).max(WINDOW_MIN).next_multiple_of(ALIGN),
            current: None,
            next: None,
            joined: Vec::new(),
        }
    }

    /// The bytes `offset..offset + len` of `file`, whose blocks end at `end`; fewer when the file
    /// is shorter.
    pub(super) fn read(
        &mut self,
        file: &Arc<dyn RandomAccessFile>,
        end: u64,
        offset: u64,
        len: usize,
        stages: Option<&StageClock>,
    ) -> Result<StoredBlock<'_>> {
        let here = self.current.as_ref();
        if here.is_none_or(|w| w.get(offset, len).is_none()) {
            let file = &self.own.clone().unwrap_or_else(|| Arc::clone(file));
            let of = Source { file, end, stages };
            if !self.move_to(of, offset, len)? {
                return self.join(of, offset, len);
            }
        }
        let here = self.current.as_ref();
        let bytes = here.and_then(|w| w.get(offset, len)).unwrap_or(&[]);
        Ok(StoredBlock::Lent(bytes))
    }

    /// Makes the window that has `offset` the current one; false when the block does not end in it.
    fn move_to(&mut self, of: Source<'_>, offset: u64, len: usize) -> Result<bool> {
        let has = |w: &TableWindow| offset >= w.start && offset < w.end();
        if !self.current.as_ref().is_some_and(has) {
            if self.next.as_ref().is_some_and(|next| next.has(offset)) {
                self.step(of)?;
            } else {
                self.start_at(of, offset, len)?;
            }
        }
        let here = self.current.as_ref();
        Ok(here.is_some_and(|w| w.get(offset, len).is_some()))
    }

    /// Begins anew with a window that has the block, or as much of it as a window holds, and with
    /// the one behind it.
    fn start_at(&mut self, of: Source<'_>, offset: u64, len: usize) -> Result<()> {
        self.current = None;
        self.next = None;
        let start = offset - offset % ALIGN;
        let least = (offset - start + len as u64).clamp(REQUEST_MIN.min(self.size), self.size);
        let window = span(start, least, of.end);
        self.begin(of, start + window as u64);
        let read = TableWindow::read(&**of.file, start, window)?;
        if read.bytes.as_slice().len() < window {
            self.next = None;
        }
        self.current = Some(read);
        Ok(())
    }

    /// Begins to read the window at `start`, unless the blocks end there.
    fn begin(&mut self, of: Source<'_>, start: u64) {
        let len = span(start, self.size, of.end);
        self.next = (len > 0).then(|| PendingWindow::begin(of.file, start, len));
    }

    /// Waits for the next window, makes it the current one and begins to read the one behind it;
    /// false at the end.
    fn step(&mut self, of: Source<'_>) -> Result<bool> {
        // Its memory can serve for the window that begins now.
        self.current = None;
        let Some(coming) = self.next.take() else {
            return Ok(false);
        };
        self.begin(of, coming.start + coming.len as u64);
        let len = coming.len;
        let window = coming.wait()?;
        if let Some(stages) = of.stages {
            stages.charge(Stage::Read, window.bytes.background_cpu_ns());
        }
        let is_short = window.bytes.as_slice().len() < len;
        self.current = Some(window);
        if is_short {
            self.next = None;
        }
        Ok(true)
    }

    /// A block that begins in the current window and ends in another.
    fn join(&mut self, of: Source<'_>, offset: u64, len: usize) -> Result<StoredBlock<'_>> {
        let mut joined = if len >= LARGE_BLOCK {
            Vec::with_capacity(len)
        } else {
            std::mem::take(&mut self.joined)
        };
        joined.clear();
        if let Some(rest) = self.current.as_ref().and_then(|w| w.from(offset)) {
            joined.extend_from_slice(&rest[..rest.len().min(len)]);
        }
        while joined.len() < len && self.step(of)? {
            let more = self
                .current
                .as_ref()
                .map_or(&[][..], |w| w.bytes.as_slice());
            let n = more.len().min(len - joined.len());
            if n == 0 {
                break;
            }
            joined.extend_from_slice(&more[..n]);
        }
        if len >= LARGE_BLOCK {
            return Ok(StoredBlock::Own(joined));
        }
        self.joined = joined;
        Ok(StoredBlock::Lent(&self.joined))
    }
}

/// Bytes of a window of `size` that begins at `start`: whole units, with what would be left over
/// after it.
fn span(start: u64, size: u64, end: u64) -> usize {
    let left = end.saturating_sub(start);
    let size = if left < size + REQUEST_MIN.min(size) {
        left
    } else {
        size
    };
    usize::try_from(size.next_multiple_of(ALIGN)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
