//! The key-value block: sorted entries with delta-encoded keys, restart points and a footer word.
//!
//! One shape serves data, index, metaindex, properties and range-deletion blocks. [`Block`] owns
//! the bytes and knows where the parts are; [`BlockCursor`] walks entries both ways; [`IndexBlock`]
//! is an index block decoded once into flat arrays; [`BlockBuilder`] writes.
//!
//! Layout: `entries | restart offsets | [hash index] | footer word`, or with separated keys and
//! values `keys | values | restart offsets | [hash index] | value-section offset | footer word`.
//!
//! Invariants: after [`Block::parse`] the entry area, the restart array and the hash index are
//! disjoint ranges inside the bytes; single entries are checked when they are decoded. Nothing here
//! panics on hostile bytes. Thread-safety: a `Block` is immutable and shared; a cursor belongs to
//! one thread.

mod ahead;
mod builder;
mod cursor;
mod entry;
mod entry_table;
mod hash_index;
mod index;
mod key_buffer;
mod places;
#[cfg(test)]
mod tests;

pub use crate::footer::BlockHandle;
pub use builder::BlockBuilder;
pub use cursor::{BlockCursor, BlockSource};
pub use hash_index::{HASH_INDEX_MAX_BLOCK, HashIndexBuilder};
pub use index::{IndexBlock, IndexBlockBuilder, IndexForm};

use entry_table::EntryTable;
use esker_codec::prefetch;
use esker_status::{Error, Result};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

const RESTARTS_MASK: u32 = (1 << 28) - 1;
const SEPARATED_BIT: u32 = 1 << 28;
const UNIFORM_BIT: u32 = 1 << 29;
const RESERVED_BIT: u32 = 1 << 30;
const HASH_INDEX_BIT: u32 = 1 << 31;

/// Where the hash index of a data block stands.
#[derive(Clone, Copy, Debug)]
struct HashIndexPlace {
    buckets: u32,
    num: u16,
}

/// A block's keys written out are no longer than this many times the block. Each restart point has
/// a whole key, so what a writer makes stays below its restart interval.
const WRITTEN_OUT_RATIO: usize = 64;
/// Fewest bytes, for blocks that are small.
const WRITTEN_OUT_MIN: usize = 32 << 20;

/// Counts what the keys of a block come to when each is kept whole: entries of a few bytes can
/// share a key of any length, so a small block may stand for very much.
#[derive(Debug)]
pub struct WrittenOut {
    left: usize,
}

impl WrittenOut {
    /// Counts a key of `len` bytes; `Corruption` when it is too much.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<()> {
        match self.left.checked_sub(len) {
            Some(left) => self.left = left,
            None => {
                return Err(Error::corruption(
                    "the keys of a block share more than a writer would let them",
                ));
            }
        }
        Ok(())
    }
}

/// An uncompressed block and the places of its parts.
#[derive(Debug)]
pub struct Block {
    data: Vec<u8>,
    /// Where entries (or, separated, keys) end.
    entries_end: u32,
    /// Where values end; with separated values that is the restart array, else `entries_end`.
    values_end: u32,
    restarts: u32,
    num_restarts: u32,
    hash: Option<HashIndexPlace>,
    separated: bool,
    uniform: bool,
    /// True if a cursor sought in it: the next one to do so builds the table of entries.
    sought: AtomicBool,
    /// `None` inside where the block is not fit for one.
    table: OnceLock<Option<EntryTable>>,
}

impl Block {
    /// A block without entries, for cursors that stand in none.
    pub const fn empty() -> Block {
        Block {
            data: Vec::new(),
            entries_end: 0,
            values_end: 0,
            restarts: 0,
            num_restarts: 0,
            hash: None,
            separated: false,
            uniform: false,
            sought: AtomicBool::new(true),
            table: OnceLock::new(),
        }
    }

    /// Takes over the uncompressed bytes of a block and finds its parts.
    pub fn parse(data: Vec<u8>) -> Result<Block> {
        let bad =
            |why: &str| Error::corruption(format!("bad block of {} bytes: {why}", data.len()));
        if data.len() > u32::MAX as usize {
            return Err(bad("longer than 4 GiB"));
        }
        let word = match data.last_chunk::<4>() {
            Some(w) => u32::from_le_bytes(*w),
            None => return Err(bad("no room for the footer word")),
        };
        if word & RESERVED_BIT != 0 {
            return Err(Error::not_supported(
                "block footer has bit 30 set: a feature newer than this reader",
            ));
        }
        let mut end = data.len() - 4;
        let separated = word & SEPARATED_BIT != 0;
        let mut values_start = 0u32;
        if separated {
            let Some(v) = data[..end].last_chunk::<4>() else {
                return Err(bad("no room for the value-section offset"));
            };
            values_start = u32::from_le_bytes(*v);
            end -= 4;
        }
        let mut hash = None;
        if word & HASH_INDEX_BIT != 0 {
            let Some(n) = data[..end].last_chunk::<2>() else {
                return Err(bad("no room for the hash index"));
            };
            let num = u16::from_le_bytes(*n);
            end -= 2;
            if num == 0 || usize::from(num) > end {
                return Err(bad("hash index larger than the block"));
            }
            end -= usize::from(num);
            hash = Some(HashIndexPlace {
                buckets: end as u32,
                num,
            });
        }
        let num_restarts = word & RESTARTS_MASK;
        let restarts = match (num_restarts as usize)
            .checked_mul(4)
            .and_then(|n| end.checked_sub(n))
        {
            Some(at) => at as u32,
            None => return Err(bad("more restarts than fit")),
        };
        // A writer begins with a restart point, in blocks that stay empty as well.
        if num_restarts == 0 {
            return Err(bad("no restart point"));
        }
        let entries_end = if separated { values_start } else { restarts };
        if entries_end > restarts {
            return Err(bad("value section outside the block"));
        }
        if entries_end == 0 && (restarts > 0 || num_restarts > 1) {
            return Err(bad("restart points or values without entries"));
        }
        let first = data[restarts as usize..end].first_chunk::<4>();
        // Walking back goes from restart point to restart point until the first.
        if first.is_some_and(|at| *at != [0; 4]) {
            return Err(bad("the first restart point is not at the first entry"));
        }
        Ok(Block {
            entries_end,
            values_end: restarts,
            restarts,
            num_restarts,
            hash,
            separated,
            uniform: word & UNIFORM_BIT != 0,
            data,
            sought: AtomicBool::new(false),
            table: OnceLock::new(),
        })
    }

    /// [`Block::parse`] for a data block. No writer makes one without entries: its keys would be
    /// missing without an error.
    pub fn parse_data(data: Vec<u8>) -> Result<Block> {
        let block = Block::parse(data)?;
        if block.is_empty() {
            return Err(Error::corruption("a data block without entries"));
        }
        Ok(block)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }
    /// The bytes of a value whose range a cursor gave.
    #[inline]
    pub fn slice(&self, range: Range<u32>) -> &[u8] {
        self.data
            .get(range.start as usize..range.end as usize)
            .unwrap_or(&[])
    }
    /// The budget of a reader that keeps every key of this block.
    pub fn written_out(&self) -> WrittenOut {
        let left = self.data.len().saturating_mul(WRITTEN_OUT_RATIO);
        WrittenOut {
            left: left.max(WRITTEN_OUT_MIN),
        }
    }
    /// Memory behind it, for the cache's charge: with the table of entries, which it may get
    /// later. `usable` says what an allocation of a number of bytes takes.
    pub fn memory_expected(&self, usable: impl Fn(usize) -> usize) -> usize {
        usable(self.data.capacity()) + usable(self.table_estimate())
    }

    /// Memory behind it now.
    pub fn memory(&self, usable: impl Fn(usize) -> usize) -> usize {
        let table = self.entry_table_built().map_or(0, EntryTable::memory);
        usable(self.data.capacity()) + usable(table)
    }

    /// Bytes of the table of entries, were all entries as long as the first.
    fn table_estimate(&self) -> usize {
        let entries = &self.data[..self.entries_end as usize];
        let Some(h) = entry::header(entries, 0).filter(|_| !self.separated) else {
            return 0;
        };
        let first = h.key_at + h.unshared as usize + h.value_len as usize;
        entries.len() / first.max(1) * entry_table::BYTES_PER_ENTRY
    }

    /// The table of entries, from the second time on that it is asked for: a block that is read
    /// once does not pay for it.
    #[inline]
    fn entry_table(&self) -> Option<&EntryTable> {
        match self.table.get() {
            Some(table) => table.as_ref(),
            None => self.consider_table(),
        }
    }

    #[cold]
    fn consider_table(&self) -> Option<&EntryTable> {
        if !self.sought.load(Ordering::Relaxed) {
            self.sought.store(true, Ordering::Relaxed);
            return None;
        }
        self.entry_table_now()
    }

    /// The table of entries, where it was built.
    #[inline]
    fn entry_table_built(&self) -> Option<&EntryTable> {
        self.table.get()?.as_ref()
    }

    /// Starts loading what a search reads first.
    pub fn prefetch_search(&self) {
        match self.entry_table_built() {
            Some(table) => table.prefetch(),
            None => prefetch(&self.data, self.entries_end as usize),
        }
    }

    /// The table of entries, built if it has to be.
    #[inline]
    fn entry_table_now(&self) -> Option<&EntryTable> {
        self.table.get_or_init(|| EntryTable::build(self)).as_ref()
    }
    /// Returns whether the block has no entries: an index without blocks, or meta data of nothing.
    pub fn is_empty(&self) -> bool {
        self.entries_end == 0
    }
    /// Number of restart points: at least one in a block that was parsed.
    pub fn num_restarts(&self) -> u32 {
        self.num_restarts
    }
    /// Returns whether keys and values stand in separate sections.
    pub fn is_separated(&self) -> bool {
        self.separated
    }
    /// Returns whether the writer says that keys are uniformly spaced (index blocks).
    pub fn is_uniform(&self) -> bool {
        self.uniform
    }
    /// Returns whether the block has a hash index.
    pub fn has_hash_index(&self) -> bool {
        self.hash.is_some()
    }

    /// Offset of restart point `i`; [`u32::MAX`] when there is none.
    #[inline]
    fn restart(&self, i: u32) -> u32 {
        let at = self.restarts as usize + i as usize * 4;
        match self.data.get(at..at + 4) {
            Some(b) if i < self.num_restarts => u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            _ => u32::MAX,
        }
    }

    /// The last restart point that starts below entry offset `at` (or 0).
    fn restart_below(&self, at: u32) -> u32 {
        let (mut lo, mut hi) = (0, self.num_restarts.saturating_sub(1));
        while lo < hi {
            let mid = lo + (hi - lo).div_ceil(2);
            if self.restart(mid) < at {
                lo = mid;
            } else {
                hi = mid - 1;
            }
        }
        lo
    }
}
