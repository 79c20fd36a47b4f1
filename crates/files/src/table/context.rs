//! Input and counters of a read.

use super::cached::SharedBlock;
use super::stages::StageClock;
use super::work::{ReadFigure, add_read_work};
use esker_codec::hash::{hash32, hash64};
use esker_format::key::user_key;
use std::cell::{Cell, OnceCell};
use std::ops::Range;
use std::sync::Arc;

/// How a table is read. Plain values; one per operation.
#[derive(Clone, Debug)]
pub struct ReadContext {
    /// Put blocks that were read into the block cache.
    pub fill_cache: bool,
    /// Check the checksum of every block read.
    pub verify_checksums: bool,
    /// Bytes to read ahead; 0 finds sequences by itself.
    pub readahead_size: usize,
    /// Read this many bytes at once, and the next ones in the background: for jobs that read from
    /// front to back.
    pub background: bool,
    /// Do no I/O (`kBlockCacheTier`): what is not cached gives `Incomplete`.
    pub cache_only: bool,
    /// Seeks may be begun ahead where files are read through the page cache, too.
    pub async_io: bool,
    /// Walk all keys in order even where a prefix filter could end the walk early.
    pub total_order_seek: bool,
    /// Only keys with the prefix of the seek key are wanted.
    pub prefix_same_as_start: bool,
    /// Only keys below this are wanted: a seek to a key of the same prefix may use the prefix
    /// filter (`auto_prefix_mode`).
    pub prefix_upper: Option<Arc<[u8]>>,
    /// Told what the time goes on; for jobs.
    pub stages: Option<Arc<StageClock>>,
}

impl Default for ReadContext {
    fn default() -> Self {
        ReadContext {
            fill_cache: true,
            verify_checksums: true,
            readahead_size: 0,
            background: false,
            cache_only: false,
            async_io: false,
            total_order_seek: false,
            prefix_same_as_start: false,
            prefix_upper: None,
            stages: None,
        }
    }
}

impl ReadContext {
    /// For compactions: large reads in sequence that leave the cache alone.
    pub fn compaction(readahead_size: usize) -> Self {
        ReadContext {
            fill_cache: false,
            readahead_size,
            background: true,
            total_order_seek: true,
            ..Self::default()
        }
    }
}

/// Counters of one read, for the figures of its thread.
#[derive(Debug, Default)]
pub struct ReadCounters {
    /// Blocks found in the cache, by what they are for.
    pub(super) data_hits: Cell<u32>,
    pub(super) index_hits: Cell<u32>,
    pub(super) filter_hits: Cell<u32>,
    /// Filters asked, and those that said no.
    pub(super) filters_asked: Cell<u32>,
    pub(super) filters_useful: Cell<u32>,
    /// Comparisons of keys in indexes and blocks.
    pub(super) compared: Cell<u32>,
    /// Tables searched.
    pub(super) tables: Cell<u32>,
}

impl ReadCounters {
    /// Adds what was counted to the figures of the thread, and begins anew.
    #[inline]
    pub fn hand_over(&self) {
        use ReadFigure as F;
        let take = |counter: &Cell<u32>| u64::from(counter.take());
        let useful = take(&self.filters_useful);
        add_read_work([
            (F::DataHits, take(&self.data_hits)),
            (F::IndexHits, take(&self.index_hits)),
            (F::FilterHits, take(&self.filter_hits)),
            (F::FiltersUseful, useful),
            (
                F::FiltersPassed,
                take(&self.filters_asked).wrapping_sub(useful),
            ),
            (F::KeysCompared, take(&self.compared)),
            (F::TablesSearched, take(&self.tables)),
        ]);
    }
}

/// Adds to a counter.
#[inline]
pub(super) fn bump(c: &Cell<u32>, by: u32) {
    c.set(c.get().wrapping_add(by));
}

/// The key of a point lookup with its hashes, computed at most once for all the tables asked.
#[derive(Debug)]
pub struct LookupKey<'a> {
    internal: &'a [u8],
    timestamp_size: usize,
    hash64: OnceCell<u64>,
    hash32: OnceCell<u32>,
    /// The counters of the read.
    pub counters: ReadCounters,
}

/// Seed of the legacy Bloom filter.
const LEGACY_SEED: u32 = 0xbc9f_1d34;

impl<'a> LookupKey<'a> {
    /// A lookup of the newest entry at or before the internal key `internal`, whose user key ends
    /// with `timestamp_size` bytes of timestamp.
    pub fn new(internal: &'a [u8], timestamp_size: usize) -> Self {
        LookupKey {
            internal,
            timestamp_size,
            hash64: OnceCell::new(),
            hash32: OnceCell::new(),
            counters: ReadCounters::default(),
        }
    }
    /// The internal key.
    #[inline]
    pub fn internal(&self) -> &'a [u8] {
        self.internal
    }
    /// The user key.
    #[inline]
    pub fn user(&self) -> &'a [u8] {
        user_key(self.internal)
    }
    /// The user key without its timestamp.
    #[inline]
    pub fn bare(&self) -> &'a [u8] {
        let user = self.user();
        &user[..user.len().saturating_sub(self.timestamp_size)]
    }
    /// Hash of the bare key for the new filters.
    #[inline]
    pub fn hash64(&self) -> u64 {
        *self.hash64.get_or_init(|| hash64(self.bare()))
    }
    /// Hash of the bare key for the legacy Bloom filter.
    #[inline]
    pub fn hash32(&self) -> u32 {
        *self.hash32.get_or_init(|| hash32(self.bare(), LEGACY_SEED))
    }
}

/// A value inside a block that stays in memory as long as this lives.
#[derive(Clone, Debug)]
pub struct PinnedBlockValue {
    block: SharedBlock,
    range: Range<u32>,
}

impl PinnedBlockValue {
    pub(super) fn new(block: SharedBlock, range: Range<u32>) -> Self {
        PinnedBlockValue { block, range }
    }
    /// The value.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.block.data().slice(self.range.clone())
    }
    /// Keeps the first `n` bytes.
    pub fn truncate(&mut self, n: u32) {
        self.range.end = self.range.start.saturating_add(n).min(self.range.end);
    }
    /// Leaves the first `n` bytes out.
    pub fn skip(&mut self, n: u32) {
        self.range.start = self.range.start.saturating_add(n).min(self.range.end);
    }
}

impl AsRef<[u8]> for PinnedBlockValue {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

/// An entry that [`super::TableReader::get`] shows.
#[derive(Debug)]
pub struct FoundEntry<'a> {
    pub(super) key: &'a [u8],
    pub(super) block: &'a SharedBlock,
    pub(super) range: Range<u32>,
}

impl FoundEntry<'_> {
    /// The internal key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.key
    }
    /// The value, for the time of the visit.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.block.data().slice(self.range.clone())
    }
    /// The value, to keep: no copy, the block stays in memory.
    #[inline]
    pub fn pin(&self) -> PinnedBlockValue {
        PinnedBlockValue::new(self.block.clone(), self.range.clone())
    }
}
