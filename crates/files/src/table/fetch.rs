//! Fetching one block from the file: read, verify, decompress.
//!
//! Order matters: the handle is compared with the file's length before anything is allocated, the
//! checksum is verified before the bytes are believed, and the raw size is compared with a limit
//! before decompressing.

use super::block_file::{BlockFile, TRAILER};
use super::observer::BlockRole;
use super::prefetch::Prefetch;
use super::stages::{Stage, StageClock, lap};
use super::windows::{LARGE_BLOCK, StoredBlock};
use super::work::count_block_read;
use esker_codec::checksum::ChecksumType;
use esker_codec::compress::{Codec, Dictionary, decompress};
use esker_format::block::{Block, BlockHandle};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::cell::RefCell;

thread_local! {
    /// Stored bytes on their way to the decompressor.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The memory of a raw block whose bytes were copied.
    static RECYCLED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Takes back the memory of a raw block for the next one that this thread reads.
fn recycle(bytes: Vec<u8>) {
    if bytes.capacity() < LARGE_BLOCK {
        RECYCLED.with(|kept| *kept.borrow_mut() = bytes);
    }
}

fn recycled() -> Vec<u8> {
    RECYCLED.with(|kept| std::mem::take(&mut *kept.borrow_mut()))
}

/// Reads blocks of one file.
#[derive(Debug)]
pub(super) struct Fetcher {
    pub(super) blocks: BlockFile,
    pub(super) checksum: ChecksumType,
    pub(super) base: u32,
    pub(super) max_block: usize,
}

/// A raw block and how it was stored.
#[derive(Debug)]
pub(super) struct RawBlock {
    pub(super) bytes: Vec<u8>,
    pub(super) codec: Codec,
}

impl RawBlock {
    /// The bytes without spare capacity, for a block that stays. The memory that they were read
    /// into is used again.
    pub(super) fn into_exact(self) -> Vec<u8> {
        if self.bytes.len() == self.bytes.capacity() || self.bytes.len() >= LARGE_BLOCK {
            return self.bytes;
        }
        let exact = self.bytes.as_slice().to_vec();
        recycle(self.bytes);
        exact
    }
}

impl Fetcher {
    /// An error with this file's name and the block's place.
    pub(super) fn place(&self, e: Error, handle: BlockHandle) -> Error {
        e.with_file(self.blocks.file.path())
            .with_offset(handle.offset)
    }

    fn corrupt(&self, handle: BlockHandle, why: &str) -> Error {
        self.place(Error::corruption(why.to_string()), handle)
    }

    /// Reads a meta block of entries, which is verified and never cached.
    pub(super) fn meta_block(&self, handle: BlockHandle) -> Result<Block> {
        let raw = self.fetch(handle, true, None)?;
        Block::parse(raw.bytes).map_err(|e| self.place(e, handle))
    }

    /// Reads a block outside of a lookup and gives its raw bytes.
    pub(super) fn fetch(
        &self,
        handle: BlockHandle,
        verify: bool,
        dict: Option<&Dictionary>,
    ) -> Result<RawBlock> {
        self.fetch_for(handle, verify, dict, None, None, None)
    }

    /// Fetches a block of this role through the bytes read ahead, for a job that measures its
    /// stages.
    pub(super) fn fetch_for(
        &self,
        handle: BlockHandle,
        verify: bool,
        dict: Option<&Dictionary>,
        prefetch: Option<&mut Prefetch>,
        role: Option<BlockRole>,
        stages: Option<&StageClock>,
    ) -> Result<RawBlock> {
        if self.blocks.end_of(handle).is_none() {
            return Err(self.corrupt(handle, "block handle points outside the file"));
        }
        let stored_len = handle.size as usize + TRAILER;
        count_block_read(role, stored_len);
        lap(stages, Stage::Merge);
        if let Some(prefetch) = prefetch
            && let Some(stored) = prefetch.read(&self.blocks, handle.offset, stored_len, stages)?
        {
            lap(stages, Stage::Read);
            let stored = match stored {
                StoredBlock::Lent(bytes) => bytes,
                StoredBlock::Own(bytes) => return self.take(handle, bytes, verify, dict, stages),
            };
            return self.copy(handle, stored, verify, dict, stages);
        }
        if stored_len >= LARGE_BLOCK {
            let stored = self.blocks.file.read_to_vec(handle.offset, stored_len)?;
            lap(stages, Stage::Read);
            return self.take(handle, stored, verify, dict, stages);
        }
        // A buffer of an earlier read need not be zeroed.
        let mut stored = SCRATCH.with(|s| std::mem::take(&mut *s.borrow_mut()));
        if stored.capacity() < stored_len {
            stored = recycled();
        }
        stored.resize(stored_len, 0);
        let got = self.blocks.file.read_at(handle.offset, &mut stored)?;
        lap(stages, Stage::Read);
        self.check_len(handle, got)?;
        let codec = self.check(handle, &stored, verify)?;
        lap(stages, Stage::Checksum);
        if codec == Codec::None {
            stored.truncate(handle.size as usize);
            return Ok(RawBlock {
                bytes: stored,
                codec,
            });
        }
        let raw = self.expand(handle, codec, &stored[..handle.size as usize], dict, stages);
        SCRATCH.with(|s| *s.borrow_mut() = stored);
        raw
    }

    /// The block in `stored`, which others have read.
    pub(super) fn copy(
        &self,
        handle: BlockHandle,
        stored: &[u8],
        verify: bool,
        dict: Option<&Dictionary>,
        stages: Option<&StageClock>,
    ) -> Result<RawBlock> {
        self.check_len(handle, stored.len())?;
        let codec = self.check(handle, stored, verify)?;
        lap(stages, Stage::Checksum);
        let body = &stored[..handle.size as usize];
        match codec {
            Codec::None => Ok(RawBlock {
                bytes: body.to_vec(),
                codec,
            }),
            _ => self.expand(handle, codec, body, dict, stages),
        }
    }

    /// The block in `stored`, which becomes the raw one when it is not compressed.
    fn take(
        &self,
        handle: BlockHandle,
        mut stored: Vec<u8>,
        verify: bool,
        dict: Option<&Dictionary>,
        stages: Option<&StageClock>,
    ) -> Result<RawBlock> {
        self.check_len(handle, stored.len())?;
        let codec = self.check(handle, &stored, verify)?;
        lap(stages, Stage::Checksum);
        stored.truncate(handle.size as usize);
        if codec == Codec::None {
            return Ok(RawBlock {
                bytes: stored,
                codec,
            });
        }
        self.expand(handle, codec, &stored, dict, stages)
    }

    fn check_len(&self, handle: BlockHandle, got: usize) -> Result<()> {
        let want = handle.size as usize + TRAILER;
        if got < want {
            let why = format!("block cut short: {got} of {want} bytes");
            return Err(self.corrupt(handle, &why));
        }
        Ok(())
    }

    /// Checks the trailer; the codec it names.
    fn check(&self, handle: BlockHandle, stored: &[u8], verify: bool) -> Result<Codec> {
        let (body, trailer) = stored.split_at(stored.len() - TRAILER);
        let sum = u32::from_le_bytes([trailer[1], trailer[2], trailer[3], trailer[4]]);
        let verify = verify && !seeded(Bug::BlockChecksumUnread);
        if verify && self.checksum != ChecksumType::None {
            let want =
                self.checksum
                    .compute_with_context(body, trailer[0], self.base, handle.offset);
            if want != sum {
                return Err(self.mismatch(handle, sum, want));
            }
        }
        match Codec::from_u8(trailer[0]) {
            Some(codec) => Ok(codec),
            None => Err(self.place(
                Error::not_supported(format!(
                    "block compressed with unknown codec {:#04x}",
                    trailer[0]
                )),
                handle,
            )),
        }
    }

    /// Returns whether `body`, instead of what is stored at `handle`, fits the checksum stored
    /// there.
    pub(super) fn checksum_holds(&self, handle: BlockHandle, body: &[u8]) -> Result<bool> {
        let mut trailer = [0; TRAILER];
        if self
            .blocks
            .file
            .read_at(handle.offset + handle.size, &mut trailer)?
            < TRAILER
        {
            return Ok(false);
        }
        let stored = u32::from_le_bytes([trailer[1], trailer[2], trailer[3], trailer[4]]);
        Ok(self
            .checksum
            .compute_with_context(body, trailer[0], self.base, handle.offset)
            == stored)
    }

    #[cold]
    fn mismatch(&self, handle: BlockHandle, stored: u32, computed: u32) -> Error {
        let why = format!(
            "block checksum mismatch: stored = {stored}, computed = {computed}, type = {}, size = {}",
            self.checksum as u8, handle.size
        );
        self.corrupt(handle, &why)
    }

    fn expand(
        &self,
        handle: BlockHandle,
        codec: Codec,
        body: &[u8],
        dict: Option<&Dictionary>,
        stages: Option<&StageClock>,
    ) -> Result<RawBlock> {
        let mut bytes = recycled();
        decompress(codec, body, dict, self.max_block, &mut bytes)
            .map_err(|e| self.place(e, handle))?;
        lap(stages, Stage::Decompress);
        Ok(RawBlock { bytes, codec })
    }
}
