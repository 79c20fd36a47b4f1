//! Readahead of a cursor, in reads of its own.
//!
//! A cursor that reads blocks in sequence takes them from one buffer. Reads that fill the buffer
//! grow from 8 KiB to 256 KiB by default. An iterator can ask for one fixed size, and a job for
//! windows that threads read in the background ([`super::windows`]). The kernel's `readahead` call
//! is not used, because it is cut to the device's request size.
//!
//! With direct I/O a seek reads as many bytes as walks needed before ([`super::walks`]). The read
//! of a seek ([`Prefetch::begin`]) or of one block ([`Prefetch::of_block`]) can be begun early, so
//! that reads of several tables overlap; the cursor waits when it asks for the block.

use super::block_file::BlockFile;
use super::context::ReadContext;
use super::options::TableOptions;
use super::stages::StageClock;
use super::windows::{LARGE_BLOCK, PendingWindow, StoredBlock, TableWindow, Windows};
use esker_env::{DIRECT_ALIGN, RandomAccessFile};
use esker_format::block::BlockHandle;
use esker_status::Result;
use std::sync::Arc;

/// The buffer, and the access pattern of its reader.
#[derive(Debug)]
pub(super) struct Prefetch {
    buf: Vec<u8>,
    /// File offset of `buf[0]`, and how many bytes are good.
    start: u64,
    len: usize,
    /// Where a read in sequence would start.
    expected: u64,
    in_sequence: u64,
    /// Where the block ends that the walk began with; 0 without one.
    first_end: u64,
    /// Bytes to read beyond what is asked for.
    window: usize,
    fixed: bool,
    initial: usize,
    max: usize,
    threshold: u64,
    /// Of a job that reads in the background.
    windows: Option<Windows>,
    /// A read for a seek.
    begun: Option<PendingWindow>,
    /// The window of the last read.
    arrived: Option<TableWindow>,
}

impl Prefetch {
    /// As many bytes ahead as the context says, or by observation when it says 0. A job can read
    /// through `own`.
    pub(super) fn new(
        options: &TableOptions,
        ctx: &ReadContext,
        own: Option<Arc<dyn RandomAccessFile>>,
    ) -> Self {
        let readahead = ctx.readahead_size;
        let max = options.max_auto_readahead_size;
        let initial = options.initial_auto_readahead_size.min(max);
        Prefetch {
            buf: Vec::new(),
            start: 0,
            len: 0,
            expected: u64::MAX,
            in_sequence: 0,
            first_end: 0,
            window: if readahead > 0 { readahead } else { initial },
            fixed: readahead > 0,
            initial,
            max,
            threshold: options.num_file_reads_for_auto_readahead,
            windows: (ctx.background && readahead > 0).then(|| Windows::new(readahead, own)),
            begun: None,
            arrived: None,
        }
    }

    /// One that has begun to read this block and nothing else, if the block is to be read so.
    pub(super) fn of_block(
        options: &TableOptions,
        ctx: &ReadContext,
        blocks: &BlockFile,
        handle: BlockHandle,
    ) -> Option<Self> {
        let mut one = Prefetch::new(options, ctx, None);
        one.begin(blocks, handle, 0);
        one.begun.is_some().then_some(one)
    }

    /// Forgets what it has read, and the sequence.
    pub(super) fn rest(&mut self, blocks: &BlockFile) {
        self.end_walk(blocks);
        if self.buf.capacity() > 0 {
            self.buf = Vec::new();
        }
        self.len = 0;
        self.expected = u64::MAX;
        self.in_sequence = 0;
        if !self.fixed {
            self.window = self.initial;
        }
        self.begun = None;
        self.arrived = None;
    }

    /// The walk has ended: says how far it went.
    pub(super) fn end_walk(&mut self, blocks: &BlockFile) {
        let first_end = std::mem::take(&mut self.first_end);
        if first_end > 0 {
            blocks.note_walk(self.expected.saturating_sub(first_end));
        }
    }

    /// Begins to read a block that a seek will need, and `ahead` bytes that its walk is likely to
    /// need.
    pub(super) fn begin(&mut self, blocks: &BlockFile, handle: BlockHandle, ahead: usize) {
        self.begun = None;
        let Some(end) = blocks.end_of(handle) else {
            return;
        };
        let len = (end - handle.offset) as usize;
        if len >= LARGE_BLOCK || self.has(handle.offset, len) || self.arrived(handle.offset, len) {
            return;
        }
        let (start, len) = self.span(blocks, handle.offset, len, ahead);
        self.begun = Some(PendingWindow::begin(&blocks.file, start, len));
    }

    /// The units of direct I/O that hold a block and what is read ahead: where they begin, and
    /// their length.
    fn span(&self, blocks: &BlockFile, offset: u64, len: usize, ahead: usize) -> (u64, usize) {
        let ahead = ahead.min(self.max) as u64;
        let end = (offset + len as u64 + ahead).min(blocks.end);
        let start = offset - offset % DIRECT_ALIGN as u64;
        (
            start,
            ((end - start) as usize).next_multiple_of(DIRECT_ALIGN),
        )
    }

    /// Returns whether the last read for a seek brought these bytes.
    fn arrived(&self, offset: u64, len: usize) -> bool {
        (self.arrived.as_ref()).is_some_and(|window| window.get(offset, len).is_some())
    }

    /// Reads for a seek: what was begun for it, or else what pays to be read at once. Whether the
    /// bytes have arrived. A block `in_sequence` is read at once elsewhere.
    fn arrive(
        &mut self,
        blocks: &BlockFile,
        offset: u64,
        len: usize,
        in_sequence: bool,
    ) -> Result<bool> {
        if self.arrived(offset, len) {
            return Ok(true);
        }
        if let Some(begun) = self.begun.take().filter(|begun| begun.has(offset)) {
            self.arrived = None;
            self.arrived = Some(begun.wait()?);
        } else if !in_sequence
            && !self.fixed
            && len < LARGE_BLOCK
            && blocks.read_ahead().min(self.max) > 0
        {
            self.arrived = None;
            let (start, len) = self.span(blocks, offset, len, blocks.read_ahead());
            self.arrived = Some(TableWindow::read(&*blocks.file, start, len)?);
        }
        Ok(self.arrived(offset, len))
    }

    /// Returns whether threads of the pool read ahead of the reader.
    pub(super) fn is_behind(&self) -> bool {
        self.windows.is_some()
    }

    /// Tells of a block that was found elsewhere, so that the sequence is not taken for broken.
    #[inline]
    pub(super) fn skipped(&mut self, offset: u64, len: u64) {
        if offset == self.expected {
            self.expected = offset + len;
        }
    }

    /// The bytes `offset..offset + len`, or `None` when reading ahead does not pay: read them
    /// yourself. Never uses what is at or beyond the end of the blocks.
    pub(super) fn read(
        &mut self,
        blocks: &BlockFile,
        offset: u64,
        len: usize,
        stages: Option<&StageClock>,
    ) -> Result<Option<StoredBlock<'_>>> {
        let (file, end) = (&blocks.file, blocks.end);
        match self.windows {
            Some(ref mut windows) => {
                let bytes = windows.read(file, end, offset, len, stages)?;
                Ok(Some(bytes).filter(|b| b.as_slice().len() == len))
            }
            None => {
                let bytes = self.read_here(blocks, offset, len)?;
                Ok(bytes.map(StoredBlock::Lent))
            }
        }
    }

    /// Reads from the one buffer, or from the bytes that a seek has read.
    fn read_here(&mut self, blocks: &BlockFile, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        let sequential = offset == self.expected;
        if !sequential {
            self.end_walk(blocks);
            self.first_end = offset + len as u64;
        }
        self.expected = offset + len as u64;
        if !self.has(offset, len) {
            let arrived = self.arrive(blocks, offset, len, sequential)?;
            if !self.fixed {
                self.in_sequence = if sequential { self.in_sequence + 1 } else { 0 };
                if !sequential {
                    self.window = self.initial;
                }
            }
            if arrived {
                return Ok(self
                    .arrived
                    .as_ref()
                    .and_then(|window| window.get(offset, len)));
            }
            if !self.fixed && (self.in_sequence < self.threshold.max(1) || self.window == 0) {
                return Ok(None);
            }
            // There is nothing to gain ahead of a block that is a large read by itself.
            if len >= self.window.max(LARGE_BLOCK) {
                return Ok(None);
            }
            self.fill(&*blocks.file, blocks.end, offset, len)?;
            if !self.fixed {
                self.window = (self.window * 2).min(self.max);
            }
            if !self.has(offset, len) {
                return Ok(None);
            }
        }
        let at = (offset - self.start) as usize;
        Ok(Some(&self.buf[at..at + len]))
    }

    fn has(&self, offset: u64, len: usize) -> bool {
        offset >= self.start && offset - self.start + len as u64 <= self.len as u64
    }

    fn fill(
        &mut self,
        file: &dyn RandomAccessFile,
        file_end: u64,
        offset: u64,
        len: usize,
    ) -> Result<()> {
        let mut kept = 0;
        if offset >= self.start && offset < self.start + self.len as u64 {
            let from = (offset - self.start) as usize;
            kept = self.len - from;
            self.buf.copy_within(from..self.len, 0);
        }
        let left = file_end.saturating_sub(offset);
        let want = (len.saturating_add(self.window) as u64).min(left) as usize;
        self.len = kept;
        self.start = offset;
        if self.buf.len() < want {
            self.buf.resize(want, 0);
        }
        if want > kept {
            self.len += file.read_at(offset + kept as u64, &mut self.buf[kept..want])?;
        }
        Ok(())
    }
}
