//! Loading data blocks that are named by their places, into a block cache that has room for them.
//!
//! A place that is none of a block in the table's index is not read. Blocks that lie near each
//! other are read at once. What is read is verified and decoded as in any read; it does not count
//! as looked up in the cache, since nobody has asked for it.

use super::block_file::TRAILER;
use super::cached::BlockCache;
use super::context::ReadContext;
use super::observer::BlockRole;
use super::partitions::HandleKind;
use super::reader::TableReader;
use esker_cache::Priority;
use esker_codec::compress::Codec;
use esker_format::block::BlockHandle;
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};
use std::iter::Peekable;

/// Most bytes of a read, unless a block is larger.
const READ_MAX: u64 = 1 << 20;
/// Bytes between two blocks that are read with them: a read of its own takes longer.
const GAP_MAX: u64 = 16 << 10;

/// Asked before each read, with its bytes; an error ends the loading.
pub type LoadThrottle<'a> = &'a mut dyn FnMut(u64) -> Result<()>;

/// Counts of the blocks that were loaded, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadedBlocks {
    /// Blocks that were loaded.
    pub blocks: u64,
    /// Charge of the cache for them, without its own memory.
    pub bytes: u64,
    /// Blocks that were there, or for which there was no room.
    pub left_out: u64,
    /// Places without a block.
    pub unknown: u64,
}

/// Blocks that are read at once.
#[derive(Debug, Default)]
struct Batch {
    handles: Vec<BlockHandle>,
    end: u64,
}

impl Batch {
    fn start(&self) -> u64 {
        self.handles.first().map_or(0, |h| h.offset)
    }

    /// Returns whether the block can be read with those that are there.
    fn takes(&self, block: BlockHandle) -> bool {
        self.handles.is_empty()
            || (block.offset >= self.end
                && block.offset - self.end <= GAP_MAX
                && end_of(block) - self.start() <= READ_MAX)
    }

    fn push(&mut self, block: BlockHandle) {
        self.handles.push(block);
        self.end = end_of(block);
    }
}

fn end_of(block: BlockHandle) -> u64 {
    (block.offset.saturating_add(block.size)).saturating_add(TRAILER as u64)
}

impl TableReader {
    /// Loads the data blocks that begin at `offsets`, which rise, into the block cache, as far as
    /// none has to leave for them; adds to `loaded`, whatever the outcome.
    pub fn load_blocks(
        &self,
        offsets: impl Iterator<Item = u64>,
        patience: LoadThrottle<'_>,
        loaded: &mut LoadedBlocks,
    ) -> Result<()> {
        let Some(cache) = self.cache.as_deref() else {
            return Ok(());
        };
        let ctx = ReadContext {
            fill_cache: false,
            ..ReadContext::default()
        };
        let mut offsets = offsets.peekable();
        let mut batch = Batch::default();
        self.for_each_leaf(&ctx, |leaf| {
            patience(0)?;
            for i in 0..leaf.len() {
                let block = leaf.handle(i);
                if !is_next(&mut offsets, block, loaded) {
                    continue;
                }
                let size = usize::try_from(block.size).unwrap_or(usize::MAX);
                if !cache.has_room(self.cache_id.block(block.offset), size) {
                    loaded.left_out += 1;
                    continue;
                }
                if !batch.takes(block) {
                    self.load_batch(cache, &mut batch, patience, loaded)?;
                }
                batch.push(block);
            }
            Ok(())
        })?;
        loaded.unknown += offsets.count() as u64;
        self.load_batch(cache, &mut batch, patience, loaded)
    }

    fn load_batch(
        &self,
        cache: &BlockCache,
        batch: &mut Batch,
        patience: LoadThrottle<'_>,
        loaded: &mut LoadedBlocks,
    ) -> Result<()> {
        let (start, end) = (batch.start(), batch.end);
        let handles = std::mem::take(&mut batch.handles);
        if handles.is_empty() {
            return Ok(());
        }
        patience(end - start)?;
        let len = usize::try_from(end - start).unwrap_or(usize::MAX);
        let bytes = self.fetcher.blocks.file.read_to_vec(start, len)?;
        let mut before = None;
        for block in handles {
            let from = bytes.get((block.offset - start) as usize..).unwrap_or(&[]);
            let stored = &from[..from.len().min(block.size as usize + TRAILER)];
            let name = match before {
                Some(other) if seeded(Bug::SavedBlockShifted) => other,
                _ => block,
            };
            self.load_block(cache, block, name, stored, loaded)?;
            before = Some(block);
        }
        Ok(())
    }

    fn load_block(
        &self,
        cache: &BlockCache,
        block: BlockHandle,
        name: BlockHandle,
        stored: &[u8],
        loaded: &mut LoadedBlocks,
    ) -> Result<()> {
        let raw = (self.fetcher).copy(block, stored, true, self.dict.as_ref(), None)?;
        if let Some(o) = &self.options.observer {
            o.block_read(self.options.level, BlockRole::Data, stored.len(), 0);
            if raw.codec != Codec::None {
                o.decompressed(stored.len(), raw.bytes.len());
            }
        }
        let decoded = self.decode(block, raw.into_exact(), HandleKind::Data)?;
        let charge = decoded.charge();
        let key = self.cache_id.block(name.offset);
        if !cache.insert_if_room(key, decoded, charge, Priority::Low) {
            loaded.left_out += 1;
            return Ok(());
        }
        loaded.blocks += 1;
        loaded.bytes += charge as u64;
        if let Some(o) = &self.options.observer {
            o.cache_insert(BlockRole::Data, charge, false);
        }
        Ok(())
    }
}

/// Returns whether the next place that is wanted is that of `block`. Places before it are of no
/// block.
fn is_next(
    offsets: &mut Peekable<impl Iterator<Item = u64>>,
    block: BlockHandle,
    loaded: &mut LoadedBlocks,
) -> bool {
    while offsets.next_if(|at| *at < block.offset).is_some() {
        loaded.unknown += 1;
    }
    offsets.next_if_eq(&block.offset).is_some()
}
