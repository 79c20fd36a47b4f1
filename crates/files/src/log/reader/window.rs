//! The part of a log's file that its reader has in memory, and the place where it reads.

use esker_env::RandomAccessFile;
use esker_format::log::BLOCK_SIZE;
use esker_status::Result;
use std::sync::Arc;

/// Blocks read from the file at once, at most.
const READ_BLOCKS: usize = 8;

/// Blocks of a file that are read one after the other.
#[derive(Debug)]
pub(super) struct LogWindow {
    pub(super) file: Arc<dyn RandomAccessFile>,
    pub(super) chunk: Vec<u8>,
    /// File offset of `chunk[0]`, a multiple of the block size.
    pub(super) chunk_offset: u64,
    /// The next byte in `chunk`.
    pub(super) pos: usize,
    /// Bytes of the next chunk that were read before.
    skip: usize,
    /// The whole file is in `chunk` or behind it.
    pub(super) eof: bool,
}

impl LogWindow {
    /// At the start of `file`.
    pub(super) fn new(file: Arc<dyn RandomAccessFile>) -> LogWindow {
        LogWindow {
            file,
            chunk: Vec::new(),
            chunk_offset: 0,
            pos: 0,
            skip: 0,
            eof: false,
        }
    }

    /// Goes to `position`, and forgets what was read.
    pub(super) fn move_to(&mut self, position: u64) {
        let block = BLOCK_SIZE as u64;
        self.chunk.clear();
        self.pos = 0;
        self.chunk_offset = position / block * block;
        self.skip = (position % block) as usize;
        self.eof = false;
    }

    /// The offset of the next byte in the file.
    pub(super) fn offset(&self) -> u64 {
        self.chunk_offset + self.pos as u64
    }

    /// Where the block around `pos` ends in `chunk`.
    pub(super) fn block_end(&self) -> usize {
        ((self.pos / BLOCK_SIZE + 1) * BLOCK_SIZE).min(self.chunk.len())
    }

    /// Reads the next blocks.
    pub(super) fn read_more(&mut self) -> Result<()> {
        self.chunk_offset += self.chunk.len() as u64;
        self.pos = 0;
        // One block more than there was when it was opened: its end shows, and so does what was
        // appended since.
        let left = self.file.len().saturating_sub(self.chunk_offset);
        let blocks = usize::try_from(left / BLOCK_SIZE as u64).unwrap_or(READ_BLOCKS);
        self.chunk
            .resize((blocks + 1).min(READ_BLOCKS) * BLOCK_SIZE, 0);
        let n = self.file.read_at(self.chunk_offset, &mut self.chunk)?;
        self.eof = n < self.chunk.len();
        self.chunk.truncate(n);
        self.pos = std::mem::take(&mut self.skip).min(n);
        Ok(())
    }

    /// Reads the block around `pos` again; tells whether anything changed.
    pub(super) fn reread_block(&mut self) -> Result<bool> {
        let (start, end) = (self.pos / BLOCK_SIZE * BLOCK_SIZE, self.block_end());
        let mut now = vec![0; end - start];
        let got = self
            .file
            .read_at(self.chunk_offset + start as u64, &mut now)?;
        let is_changed = now[..got] != self.chunk[start..start + got];
        self.chunk[start..start + got].copy_from_slice(&now[..got]);
        Ok(is_changed)
    }

    /// Goes to the end of the file. Returns how much of what was read is left out.
    pub(super) fn skip_rest(&mut self) -> usize {
        let left = self.chunk.len() - self.pos;
        self.pos = self.chunk.len();
        self.eof = true;
        left
    }
}
