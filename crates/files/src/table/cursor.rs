//! Walking a table in key order, both ways.
//!
//! The index position is (partition, entry); the data block under it is held by the block cursor. A
//! step inside a block touches nothing else. Blocks are read ahead of a walk in sequence
//! ([`super::prefetch`]).

use super::cached::{HeldBlock, SharedBlock};
use super::context::{PinnedBlockValue, ReadContext, ReadCounters, bump};
use super::prefetch::Prefetch;
use super::reader::TableReader;
use super::windows::LARGE_BLOCK;
use esker_env::RandomAccessFile;
use esker_format::block::{BlockCursor, BlockHandle, IndexBlock};
use esker_format::entry_batch::{BatchLimits, EntryBatch};
use esker_format::key::trailer;
use esker_format::{Cursor, ValueType};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A cursor over the entries of a table.
#[derive(Debug)]
pub struct TableCursor {
    reader: Arc<TableReader>,
    ctx: ReadContext,
    /// The index block that the footer names.
    top: Option<SharedBlock>,
    /// In a partitioned index: the partition that stands open, and its number in `top`.
    partition: Option<SharedBlock>,
    top_at: usize,
    /// The entry of the open index block.
    at: usize,
    block: BlockCursor<HeldBlock>,
    /// Offset of the block in `block`.
    loaded: Option<u64>,
    valid: bool,
    prefetch: Prefetch,
    /// Where the seek leads that was begun.
    begun: Option<SeekTarget>,
    counters: ReadCounters,
    error: Option<Error>,
}

/// Where the index leads a seek.
#[derive(Clone, Copy, Debug)]
enum SeekTarget {
    /// Every key is below the target.
    Beyond,
    /// Only the next partition has keys that are not.
    NextPartition,
    Block(BlockHandle),
}

/// Seeks, and steps into another block, that one stands for: a prime, so that runs which are sought
/// in turn are all met.
const SAMPLE: u32 = 61;
/// Steps that count as much as a seek.
const STEPS_OF_A_SEEK: u64 = 64;

/// Moves that are counted apart.
#[derive(Clone, Copy)]
enum Move {
    Seek,
    Cross,
}

/// Returns whether this move of the thread is looked at.
#[inline]
fn is_sampled(what: Move) -> bool {
    thread_local! { static MOVES: [Cell<u32>; 2] = const { [const { Cell::new(0) }; 2] }; }
    MOVES.with(|moves| {
        let count = moves[what as usize].get().wrapping_add(1);
        moves[what as usize].set(count);
        count.is_multiple_of(SAMPLE)
    })
}

impl TableReader {
    /// A cursor over the table's entries.
    #[inline]
    pub fn cursor(self: &Arc<Self>, ctx: &ReadContext) -> TableCursor {
        TableCursor::new(self.clone(), ctx.clone(), None)
    }

    /// Makes a cursor for a job with a handle of its own, through which it reads data blocks in the
    /// background.
    pub fn cursor_through(
        self: &Arc<Self>,
        ctx: &ReadContext,
        own: Option<Arc<dyn RandomAccessFile>>,
    ) -> TableCursor {
        TableCursor::new(self.clone(), ctx.clone(), own)
    }
}

impl TableCursor {
    fn new(
        reader: Arc<TableReader>,
        ctx: ReadContext,
        own: Option<Arc<dyn RandomAccessFile>>,
    ) -> Self {
        let prefetch = Prefetch::new(reader.options(), &ctx, own);
        let block = BlockCursor::new(HeldBlock(None), reader.order().clone())
            .with_global_seq(reader.global_seq());
        TableCursor {
            reader,
            ctx,
            top: None,
            partition: None,
            top_at: 0,
            at: 0,
            block,
            loaded: None,
            valid: false,
            prefetch,
            begun: None,
            counters: ReadCounters::default(),
            error: None,
        }
    }

    /// Gives back every block that it holds; not valid until it is placed.
    pub fn rest(&mut self) {
        self.top = None;
        self.partition = None;
        self.block.replace(HeldBlock(None));
        self.loaded = None;
        self.valid = false;
        self.error = None;
        self.begun = None;
        self.prefetch.rest(&self.reader.fetcher.blocks);
    }

    /// The table.
    pub fn reader(&self) -> &Arc<TableReader> {
        &self.reader
    }

    /// The value, to keep: no copy, the block stays in memory. Only while valid.
    pub fn pin_value(&self) -> Option<PinnedBlockValue> {
        let held = self.block.source().0.clone()?;
        Some(PinnedBlockValue::new(held, self.block.value_range()))
    }

    fn begin(&mut self) {
        self.valid = false;
        self.error = None;
        self.block.reset();
    }

    /// Keeps the index block for what is to come.
    #[inline]
    fn hold_top(&mut self) -> Result<()> {
        if self.top.is_none() {
            self.top = Some(self.reader.index(&self.ctx, &self.counters)?);
        }
        Ok(())
    }

    fn top_len(&self) -> usize {
        self.top
            .as_ref()
            .and_then(|t| t.index())
            .map_or(0, IndexBlock::len)
    }

    /// The open leaf of the index.
    fn leaf(&self) -> Option<&IndexBlock> {
        let held = if self.reader.is_partitioned() {
            &self.partition
        } else {
            &self.top
        };
        held.as_ref().and_then(|t| t.index())
    }

    /// Opens partition `i`; nothing to do in a plain index.
    fn open_partition(&mut self, i: usize) -> Result<()> {
        if !self.reader.is_partitioned() || (self.partition.is_some() && self.top_at == i) {
            return Ok(());
        }
        self.partition = None;
        let top = self.top.as_ref().and_then(|t| t.index());
        if let Some(top) = top.filter(|t| i < t.len()) {
            let part = self
                .reader
                .index_partition(&self.ctx, i, top.handle(i), &self.counters)?;
            self.partition = Some(part);
            self.top_at = i;
        }
        Ok(())
    }

    /// The data block of the index entry.
    fn entry(&self) -> Option<BlockHandle> {
        let leaf = self.leaf().filter(|leaf| self.at < leaf.len())?;
        Some(leaf.handle(self.at))
    }

    /// Loads the data block of the index entry; false when there is none.
    fn load(&mut self) -> Result<bool> {
        match self.entry() {
            Some(handle) => self.load_block(handle).map(|()| true),
            None => Ok(false),
        }
    }

    fn load_block(&mut self, handle: BlockHandle) -> Result<()> {
        if self.loaded != Some(handle.offset) {
            self.loaded = None;
            // Before the next one comes: a block may be as large as a value.
            self.block.replace(HeldBlock(None));
            let block = self.reader.data_block(
                &self.ctx,
                handle,
                Some(&mut self.prefetch),
                &self.counters,
            )?;
            self.block.replace(HeldBlock(Some(block)));
            self.loaded = Some(handle.offset);
        }
        Ok(())
    }

    /// Gives a large block back at the end of the table: a merge holds one cursor for each table
    /// until all of them have ended.
    fn release(&mut self) {
        let held = self.block.source().0.as_ref();
        if held.is_some_and(|block| block.memory() >= LARGE_BLOCK) {
            self.block.replace(HeldBlock(None));
            self.loaded = None;
        }
    }

    /// The end of a seek.
    fn positioned(&mut self, r: Result<()>) {
        bump(&self.counters.tables, 1);
        self.settle(r);
        if is_sampled(Move::Seek) {
            self.count_collapsible(u64::from(SAMPLE));
        }
    }

    /// The end of a step into another block. A step counts for a part of a seek, and this one for
    /// all steps in a block.
    fn crossed(&mut self, r: Result<()>) {
        self.settle(r);
        if is_sampled(Move::Cross) {
            let block = self.block.source().0.as_ref().map_or(0, |b| b.memory());
            let entry = if self.valid {
                self.block.key().len() + self.block.value().len()
            } else {
                0
            };
            let entries = block.checked_div(entry).unwrap_or(0) as u64;
            self.count_collapsible(entries * u64::from(SAMPLE) / STEPS_OF_A_SEEK);
        }
    }

    /// Counts reads that met the current entry, where it is a deletion or a merge operand. Jobs
    /// that read all of the table are no reads of it.
    #[cold]
    fn count_collapsible(&self, reads: u64) {
        use ValueType as T;
        if self.ctx.background || !self.valid {
            return;
        }
        let kind = ValueType::from_u8(trailer(self.block.key()) as u8);
        if let (
            Some(T::Deletion | T::SingleDeletion | T::DeletionWithTimestamp | T::Merge),
            Some(sum),
        ) = (kind, &self.reader.options.collapsible_reads)
        {
            sum.fetch_add(reads, Ordering::Relaxed);
        }
    }

    fn settle(&mut self, r: Result<()>) {
        bump(&self.counters.compared, self.block.take_compared());
        self.counters.hand_over();
        let failed = match r {
            Err(e) => Some(e),
            Ok(()) => self
                .block
                .status()
                .err()
                .map(|e| self.reader.in_block(e, self.loaded)),
        };
        if let Some(e) = failed {
            self.error = Some(e);
            self.valid = false;
            return;
        }
        self.valid = self.block.valid();
    }

    /// To the first entry of the blocks after the current one.
    fn forward(&mut self) -> Result<()> {
        self.hold_top()?;
        while self.block.status().is_ok() {
            if self.at + 1 < self.leaf().map_or(0, IndexBlock::len) {
                self.at += 1;
            } else if self.reader.is_partitioned() && self.top_at + 1 < self.top_len() {
                self.open_partition(self.top_at + 1)?;
                self.at = 0;
            } else {
                self.release();
                break;
            }
            if self.load()? {
                self.block.seek_to_first();
                if self.block.valid() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// To the last entry of the blocks before the current one.
    fn backward(&mut self) -> Result<()> {
        self.hold_top()?;
        while self.block.status().is_ok() {
            if self.at > 0 {
                self.at -= 1;
            } else if self.reader.is_partitioned() && self.top_at > 0 {
                self.open_partition(self.top_at - 1)?;
                match self.leaf().map_or(0, IndexBlock::len) {
                    0 => continue,
                    n => self.at = n - 1,
                }
            } else {
                self.release();
                break;
            }
            if self.load()? {
                self.block.seek_to_last();
                if self.block.valid() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn try_first(&mut self) -> Result<()> {
        self.begun = None;
        self.begin();
        self.hold_top()?;
        self.open_partition(0)?;
        self.at = 0;
        if self.load()? {
            self.block.seek_to_first();
        }
        if self.block.valid() {
            Ok(())
        } else {
            self.forward()
        }
    }

    fn try_last(&mut self) -> Result<()> {
        self.begun = None;
        self.begin();
        self.hold_top()?;
        self.open_partition(self.top_len().saturating_sub(1))?;
        self.at = self.leaf().map_or(0, IndexBlock::len).saturating_sub(1);
        if self.load()? {
            self.block.seek_to_last();
        }
        if self.block.valid() {
            Ok(())
        } else {
            self.backward()
        }
    }

    /// Stands on the index entry for `target` and loads its block. None when every key is below it;
    /// false when only the next partition has it.
    fn load_for(&mut self, target: &[u8]) -> Result<Option<bool>> {
        let begun = if seeded(Bug::BegunSeekKept) {
            self.begun
        } else {
            self.begun.take()
        };
        let place = match begun {
            Some(place) => place,
            None => self.locate(target)?,
        };
        match place {
            SeekTarget::Beyond => Ok(None),
            SeekTarget::NextPartition => Ok(Some(false)),
            SeekTarget::Block(handle) => self.load_block(handle).map(|()| Some(true)),
        }
    }

    /// Stands on the index entry for `target`. A whole index is looked into and left: most seeks
    /// end in one block, and a reference to it is counted where all threads count.
    fn locate(&mut self, target: &[u8]) -> Result<SeekTarget> {
        if self.top.is_some() || self.reader.is_partitioned() {
            self.hold_top()?;
            if !self.find(target)? {
                return Ok(SeekTarget::Beyond);
            }
            return Ok(self
                .entry()
                .map_or(SeekTarget::NextPartition, SeekTarget::Block));
        }
        let index = self.reader.index_held(&self.ctx, &self.counters)?;
        let Some(leaf) = index.index() else {
            return Ok(SeekTarget::Beyond);
        };
        bump(&self.counters.compared, leaf.search_depth());
        let at = leaf.seek(target);
        if at >= leaf.len() {
            return Ok(SeekTarget::Beyond);
        }
        let handle = leaf.handle(at);
        drop(index);
        self.at = at;
        Ok(SeekTarget::Block(handle))
    }

    /// Returns whether a filter of prefixes may say that a seek to `target` finds nothing.
    fn is_filtered(&self, target: &[u8]) -> bool {
        let upper = self.ctx.prefix_upper.as_deref();
        (self.ctx.prefix_same_as_start
            || upper.is_some_and(|upper| self.reader.has_prefix_of(target, upper)))
            && !self.ctx.total_order_seek
    }

    /// Stands on the index entry for `target`; false when every key is below it.
    fn find(&mut self, target: &[u8]) -> Result<bool> {
        if self.reader.is_partitioned() {
            let i = self.top.as_ref().and_then(|t| t.index()).map_or(0, |t| {
                bump(&self.counters.compared, t.search_depth());
                t.seek(target)
            });
            if i >= self.top_len() {
                return Ok(false);
            }
            self.open_partition(i)?;
        }
        let Some(leaf) = self.leaf() else {
            return Ok(false);
        };
        bump(&self.counters.compared, leaf.search_depth());
        let at = leaf.seek(target);
        // A partition's last key is at or after the target: a miss inside means the next partition.
        if at >= leaf.len() && !(self.reader.is_partitioned() && self.top_at + 1 < self.top_len()) {
            return Ok(false);
        }
        self.at = at;
        Ok(true)
    }

    fn try_seek(&mut self, target: &[u8]) -> Result<()> {
        self.begin();
        if self.is_filtered(target)
            && !self
                .reader
                .prefix_may_match(&self.ctx, target, &self.counters)?
        {
            return Ok(());
        }
        match self.load_for(target)? {
            Some(true) => self.block.seek(target),
            Some(false) => {}
            None => return Ok(()),
        }
        if self.block.valid() {
            Ok(())
        } else {
            self.forward()
        }
    }

    fn try_seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.begin();
        match self.load_for(target)? {
            Some(true) => self.block.seek_for_prev(target),
            Some(false) => {}
            None => return self.try_last(),
        }
        if self.block.valid() {
            Ok(())
        } else {
            self.backward()
        }
    }
}

impl Drop for TableCursor {
    fn drop(&mut self) {
        self.prefetch.end_walk(&self.reader.fetcher.blocks);
    }
}

impl Cursor for TableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }
    fn seek_to_first(&mut self) {
        let r = self.try_first();
        self.positioned(r);
    }
    fn seek_to_last(&mut self) {
        let r = self.try_last();
        self.positioned(r);
    }
    fn seek(&mut self, target: &[u8]) {
        let r = self.try_seek(target);
        self.positioned(r);
    }
    fn seek_for_prev(&mut self, target: &[u8]) {
        let r = self.try_seek_for_prev(target);
        self.positioned(r);
    }
    fn begin_seek(&mut self, target: &[u8]) {
        self.begun = None;
        let begins = self.reader.begins_reads(&self.ctx) && !self.prefetch.is_behind();
        if !begins || self.is_filtered(target) {
            return;
        }
        // What fails here fails again in the seek, which says so.
        self.begun = self.locate(target).ok();
        if let Some(SeekTarget::Block(handle)) = self.begun
            && self.loaded != Some(handle.offset)
            && !self.reader.has_at_hand(handle)
        {
            let blocks = &self.reader.fetcher.blocks;
            self.prefetch.begin(blocks, handle, blocks.read_ahead());
        }
    }
    #[inline]
    fn next(&mut self) {
        self.block.next();
        if !self.block.valid() {
            let r = self.forward();
            self.crossed(r);
        }
    }
    #[inline]
    fn prev(&mut self) {
        self.block.prev();
        if !self.block.valid() {
            let r = self.backward();
            self.crossed(r);
        }
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.block.key()
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.block.value()
    }
    #[inline]
    fn next_is_another_key(&self) -> bool {
        self.block.next_is_another_key()
    }
    #[inline]
    fn prev_is_another_key(&self) -> bool {
        self.block.prev_is_another_key()
    }
    #[inline]
    fn next_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        self.block.next_batch(limits, batch);
    }
    #[inline]
    fn prev_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        self.block.prev_batch(limits, batch);
    }
    #[inline]
    fn block_bytes(&self) -> &[u8] {
        self.block.bytes()
    }
    fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
}
