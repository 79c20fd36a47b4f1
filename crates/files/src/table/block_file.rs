//! The file of a table, as far as reads of its blocks go.

use super::walks::WalkLengths;
use esker_env::RandomAccessFile;
use esker_format::Level;
use esker_format::block::BlockHandle;
use std::sync::Arc;

/// Type byte and checksum.
pub(super) const TRAILER: usize = 5;

/// A file with blocks.
#[derive(Debug)]
pub(super) struct BlockFile {
    pub(super) file: Arc<dyn RandomAccessFile>,
    /// No block ends beyond this.
    pub(super) end: u64,
    /// How far the walks of cursors go, and the level of the table.
    pub(super) walks: Option<(Arc<WalkLengths>, Level)>,
}

impl BlockFile {
    /// Where a block and its trailer end; `None` when that is outside the file.
    pub(super) fn end_of(&self, handle: BlockHandle) -> Option<u64> {
        let end = handle.offset.checked_add(handle.size)?;
        let end = end.checked_add(TRAILER as u64)?;
        (end <= self.end).then_some(end)
    }

    /// A walk of a cursor ended that read `bytes` beyond its first block.
    pub(super) fn note_walk(&self, bytes: u64) {
        if let Some((walks, level)) = &self.walks {
            walks.note(*level, bytes);
        }
    }

    /// Bytes that a seek should read beyond its block: something where each read waits for the
    /// device.
    pub(super) fn read_ahead(&self) -> usize {
        let walks = self.walks.as_ref().filter(|_| self.file.is_direct());
        walks.map_or(0, |(walks, level)| walks.ahead(*level))
    }
}
