//! Reading ahead with our own large reads.
//!
//! A cursor that reads blocks one after another gets them out of one buffer that is filled by reads
//! of growing size: 8 KiB, doubling to 256 KiB by default. An iterator can ask for one fixed size
//! from the start, and a job for windows that are read in the background ([`super::windows`]). The
//! kernel's readahead call is not used: it is cut to the device's request size.

use super::context::ReadContext;
use super::options::TableOptions;
use super::stages::StageClock;
use super::windows::{LARGE_BLOCK, Stored, Windows};
use esker_env::RandomAccessFile;
use esker_status::Result;
use std::sync::Arc;

/// The buffer and what it has learned of the reader's habits.
#[derive(Debug)]
pub(super) struct Prefetch {
    buf: Vec<u8>,
    /// File offset of `buf[0]`, and how many bytes are good.
    start: u64,
    len: usize,
    /// Where a read in sequence would start.
    expected: u64,
    in_sequence: u64,
    /// Bytes to read beyond what is asked for.
    window: usize,
    fixed: bool,
    initial: usize,
    max: usize,
    threshold: u64,
    /// Of a job that reads in the background.
    windows: Option<Windows>,
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
            window: if readahead > 0 { readahead } else { initial },
            fixed: readahead > 0,
            initial,
            max,
            threshold: options.num_file_reads_for_auto_readahead,
            windows: (ctx.background && readahead > 0).then(|| Windows::new(readahead, own)),
        }
    }

    /// Forgets what it has read, and the sequence.
    pub(super) fn rest(&mut self) {
        if self.buf.capacity() > 0 {
            self.buf = Vec::new();
        }
        self.len = 0;
        self.expected = u64::MAX;
        self.in_sequence = 0;
        if !self.fixed {
            self.window = self.initial;
        }
    }

    /// Whether others read for it, ahead of the reader.
    pub(super) fn is_behind(&self) -> bool {
        self.windows.is_some()
    }

    /// What is to read blocks of the index: they lie elsewhere, and would have the windows begin
    /// anew.
    pub(super) fn of_index(&mut self) -> Option<&mut Self> {
        self.windows.is_none().then_some(self)
    }

    /// Tells of a block that was found elsewhere, so that the sequence is not taken for broken.
    #[inline]
    pub(super) fn skipped(&mut self, offset: u64, len: u64) {
        if offset == self.expected {
            self.expected = offset + len;
        }
    }

    /// The bytes `offset..offset + len`, or `None` when reading ahead does not pay: read them
    /// yourself. Never uses what is at or beyond `file_end`.
    pub(super) fn read(
        &mut self,
        file: &Arc<dyn RandomAccessFile>,
        file_end: u64,
        offset: u64,
        len: usize,
        stages: Option<&StageClock>,
    ) -> Result<Option<Stored<'_>>> {
        match self.windows {
            Some(ref mut windows) => {
                let bytes = windows.read(file, file_end, offset, len, stages)?;
                Ok(Some(bytes).filter(|b| b.as_slice().len() == len))
            }
            None => {
                let bytes = self.read_here(&**file, file_end, offset, len)?;
                Ok(bytes.map(Stored::Lent))
            }
        }
    }

    /// The same out of the one buffer.
    fn read_here(
        &mut self,
        file: &dyn RandomAccessFile,
        file_end: u64,
        offset: u64,
        len: usize,
    ) -> Result<Option<&[u8]>> {
        let sequential = offset == self.expected;
        self.expected = offset + len as u64;
        if !self.has(offset, len) {
            if !self.fixed {
                self.in_sequence = if sequential { self.in_sequence + 1 } else { 0 };
                if !sequential {
                    self.window = self.initial;
                }
                if self.in_sequence < self.threshold.max(1) || self.window == 0 {
                    return Ok(None);
                }
            }
            // There is nothing to gain ahead of a block that is a large read by itself.
            if len >= self.window.max(LARGE_BLOCK) {
                return Ok(None);
            }
            self.fill(file, file_end, offset, len)?;
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
