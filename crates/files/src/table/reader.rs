//! An open table: the facts of the file, and its blocks, from the cache or the file.
//!
//! Index and filter are held by the reader, or stand in the block cache when
//! `cache_index_and_filter_blocks` says so. Partitions that the reader holds are loaded when first
//! needed. Thread-safety: everything is immutable after opening, except slots that are filled once.

use super::block_file::TRAILER;
use super::cached::{BlockCache, CachedBlock, SharedBlock, TableCacheId};
use super::context::{ReadContext, ReadCounters, bump};
use super::fetch::Fetcher;
use super::filter::TableFilter;
use super::filter_block::FilterBlock;
use super::options::{IndexType, TableOptions, TableReaderOptions};
use super::partitions::{BlockRef, HandleKind, Partitions};
use super::prefetch::Prefetch;
use super::work::{ReadFigure, add_read_work};
use esker_cache::{CacheFull, CacheKey, Flight, Priority};
use esker_codec::compress::{Codec, Dictionary};
use esker_format::block::{Block, IndexBlock, IndexForm};
use esker_format::footer::{BlockHandle, Footer};
use esker_format::key::user_key;
use esker_format::properties::TableProperties;
use esker_format::{KeyOrder, RawTombstone, Seq};
use esker_status::{Error, ErrorKind, Result, Subcode};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How a block enters the cache: new, or again.
type Insert = fn(
    &BlockCache,
    CacheKey,
    CachedBlock,
    usize,
    Priority,
) -> std::result::Result<SharedBlock, CacheFull>;

/// A meta block and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Its name in the metaindex.
    pub name: String,
    /// Its place.
    pub handle: BlockHandle,
}

/// An open table. Made by [`TableReader::open`], shared by all who read it.
#[derive(Debug)]
pub struct TableReader {
    pub(super) fetcher: Fetcher,
    pub(super) fetcher_file_len: u64,
    pub(super) footer: Footer,
    pub(super) properties: TableProperties,
    pub(super) options: TableReaderOptions,
    pub(super) meta: Vec<Meta>,
    pub(super) index_type: IndexType,
    pub(super) form: IndexForm,
    pub(super) index_handle: BlockHandle,
    pub(super) index_slot: Option<SharedBlock>,
    pub(super) partitions: Partitions,
    pub(super) filter: Option<TableFilter>,
    pub(super) dict: Option<Dictionary>,
    pub(super) tombstones: Arc<[RawTombstone]>,
    pub(super) global_seq: Option<Seq>,
    pub(super) cache: Option<Arc<BlockCache>>,
    pub(super) cache_id: TableCacheId,
}

impl TableReader {
    /// The table's properties.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }
    /// The range tombstones, as stored: not clipped to the file's boundaries, not fragmented.
    pub fn range_tombstones(&self) -> &Arc<[RawTombstone]> {
        &self.tombstones
    }
    /// The footer.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }
    /// The meta blocks by name.
    pub fn meta_blocks(&self) -> &[Meta] {
        &self.meta
    }
    /// The kind of index.
    pub fn index_type(&self) -> IndexType {
        self.index_type
    }
    /// Bytes of the file.
    pub fn file_size(&self) -> u64 {
        self.fetcher_file_len
    }
    /// The sequence that replaces every stored one, in an ingested file.
    pub fn global_seq(&self) -> Option<Seq> {
        self.global_seq
    }
    /// The options it was opened with.
    pub fn options(&self) -> &TableOptions {
        &self.options.table
    }
    /// The order of keys.
    pub fn order(&self) -> &KeyOrder {
        &self.options.order
    }
    pub(super) fn is_partitioned(&self) -> bool {
        self.index_type == IndexType::TwoLevelIndexSearch
    }

    /// Memory that the reader holds outside of the cache (`estimate-table-readers-mem`).
    pub fn memory_usage(&self) -> usize {
        let held = |slot: &Option<SharedBlock>| slot.as_ref().map_or(0, |b| b.memory());
        let tombstones: usize = self
            .tombstones
            .iter()
            .map(|t| t.start.len() + t.end.len() + 64)
            .sum();
        let filter = self.filter.as_ref().map_or(0, |f| {
            held(&f.slot) + f.partitions.memory.load(Ordering::Relaxed)
        });
        let index = held(&self.index_slot) + self.partitions.memory.load(Ordering::Relaxed);
        size_of::<TableReader>()
            + tombstones
            + filter
            + index
            + self.dict.as_ref().map_or(0, Dictionary::memory_usage)
    }

    /// An error met inside the block at `offset`.
    pub(super) fn in_block(&self, e: Error, offset: Option<u64>) -> Error {
        let e = e.with_file(self.fetcher.blocks.file.path());
        match offset {
            Some(offset) => e.with_offset(offset),
            None => e,
        }
    }

    /// A block through the cache (when `cached` and there is one) or from the file.
    pub(super) fn load(
        &self,
        ctx: &ReadContext,
        handle: BlockHandle,
        kind: HandleKind,
        cached: bool,
        prefetch: Option<&mut Prefetch>,
        counters: &ReadCounters,
    ) -> Result<SharedBlock> {
        let cache = self.cache.as_deref().filter(|_| cached);
        if let Some(cache) = cache {
            if let Some(found) = self.cached(cache, handle, kind) {
                self.count_hit(kind, found.charge(), counters);
                if let Some(p) = prefetch {
                    p.skipped(handle.offset, handle.size + TRAILER as u64);
                }
                return Ok(found);
            }
            if let Some(recalled) = self.recall(cache, ctx, handle, kind) {
                let found = recalled?;
                self.count_hit(kind, found.charge(), counters);
                if let Some(p) = prefetch {
                    p.skipped(handle.offset, handle.size + TRAILER as u64);
                }
                return Ok(found);
            }
            if let Some(o) = &self.options.observer {
                o.cache_lookup(kind.role(), None);
            }
        }
        if ctx.cache_only {
            return Err(Error::new(ErrorKind::Incomplete, "no blocking io"));
        }
        let filled = cache.filter(|_| ctx.fill_cache);
        // Indexes are left out: parsing one may ask the application's comparator.
        let alone = filled.filter(|_| !matches!(kind, HandleKind::Index(_)));
        let _flight = match alone.map(|cache| self.begin_read(cache, handle, kind)) {
            Some(Err(found)) => return Ok(found),
            Some(Ok(flight)) => Some(flight),
            None => None,
        };
        let dict = if matches!(kind, HandleKind::Data) {
            self.dict.as_ref()
        } else {
            None
        };
        // A job's blocks lie in windows that were read before, and what reading takes is in its
        // stages.
        let is_there = prefetch.as_ref().is_some_and(|p| p.is_behind());
        let start = (self.options.observer.as_ref()).map(|o| if is_there { 0 } else { o.now_ns() });
        let raw = self.fetcher.fetch_for(
            handle,
            ctx.verify_checksums,
            dict,
            prefetch,
            Some(kind.role()),
            ctx.stages.as_deref(),
        )?;
        if let (Some(o), Some(start)) = (&self.options.observer, start) {
            let stored = handle.size as usize + TRAILER;
            o.block_read(self.options.level, kind.role(), stored, start);
            if raw.codec != Codec::None {
                o.decompressed(stored, raw.bytes.len());
            }
        }
        let block = self.decode(handle, raw.into_exact(), kind)?;
        match filled {
            Some(cache) => self.keep(cache, handle, kind, block, BlockCache::insert),
            None => Ok(SharedBlock::outside(block)),
        }
    }

    fn count_hit(&self, kind: HandleKind, charge: usize, counters: &ReadCounters) {
        let hits = match kind {
            HandleKind::Data => &counters.data_hits,
            HandleKind::Index(_) => &counters.index_hits,
            HandleKind::Filter => &counters.filter_hits,
        };
        bump(hits, 1);
        if let Some(o) = &self.options.observer {
            o.cache_lookup(kind.role(), Some(charge));
        }
    }

    /// A block that is looked into and left, through the cache or from the file.
    pub(super) fn load_briefly(
        &self,
        ctx: &ReadContext,
        handle: BlockHandle,
        kind: HandleKind,
        counters: &ReadCounters,
    ) -> Result<BlockRef<'_>> {
        if let Some(cache) = &self.cache
            && let Some(found) = cache.glimpse(self.cache_id.block(handle.offset))
            && kind.fits(&found)
        {
            self.count_hit(kind, found.charge(), counters);
            return Ok(BlockRef::Glimpse(found));
        }
        let block = self.load(ctx, handle, kind, true, None, counters)?;
        Ok(BlockRef::Shared(block))
    }

    /// Shows `look` a block that is in the cache.
    #[inline]
    pub(super) fn with_cached(&self, handle: BlockHandle, look: impl FnOnce(&CachedBlock)) {
        let key = self.cache_id.block(handle.offset);
        if let Some(found) = self.cache.as_ref().and_then(|cache| cache.glimpse(key)) {
            look(&found);
        }
    }

    /// Returns whether reads of the table may wait for the device, so that several are better begun
    /// at once. A filesystem without direct I/O reads through the page cache though it was asked
    /// not to.
    pub fn begins_reads(&self, ctx: &ReadContext) -> bool {
        !ctx.cache_only && (ctx.async_io || self.fetcher.blocks.file.is_direct())
    }

    /// Returns whether a data block needs no read: it is in the cache, or the file is mapped.
    pub(super) fn has_at_hand(&self, handle: BlockHandle) -> bool {
        let len = usize::try_from(handle.size).unwrap_or(usize::MAX);
        let cache = self.cache.as_ref();
        cache.is_some_and(|c| c.glimpse(self.cache_id.block(handle.offset)).is_some())
            || self
                .fetcher
                .blocks
                .file
                .mapped(handle.offset, len)
                .is_some()
    }

    #[inline]
    fn cached(
        &self,
        cache: &BlockCache,
        handle: BlockHandle,
        kind: HandleKind,
    ) -> Option<SharedBlock> {
        let found = cache.lookup(self.cache_id.block(handle.offset));
        found.filter(|block| kind.fits(block))
    }

    /// The right to read a block that was missed, or the block after another thread has read it.
    #[cold]
    fn begin_read<'a>(
        &self,
        cache: &'a BlockCache,
        handle: BlockHandle,
        kind: HandleKind,
    ) -> std::result::Result<Flight<'a>, SharedBlock> {
        loop {
            let flight = cache.begin_read(self.cache_id.block(handle.offset));
            if let Some(found) = self.cached(cache, handle, kind) {
                return Err(found);
            }
            if let Some(flight) = flight {
                return Ok(flight);
            }
        }
    }

    /// A block that was missed, from the second tier of the cache.
    #[cold]
    fn recall(
        &self,
        cache: &BlockCache,
        ctx: &ReadContext,
        handle: BlockHandle,
        kind: HandleKind,
    ) -> Option<Result<SharedBlock>> {
        if !matches!(kind, HandleKind::Data) {
            return None;
        }
        let key = self.cache_id.block(handle.offset);
        let block = cache.recall(key, ctx.fill_cache)?;
        add_read_work([(ReadFigure::TierHits, 1)]);
        if let Some(o) = &self.options.observer {
            o.tier_hit(kind.role());
        }
        if !ctx.fill_cache {
            return Some(Ok(SharedBlock::outside(block)));
        }
        Some(self.keep(cache, handle, kind, block, BlockCache::insert_again))
    }

    /// Puts a block into the cache.
    fn keep(
        &self,
        cache: &BlockCache,
        handle: BlockHandle,
        kind: HandleKind,
        block: CachedBlock,
        insert: Insert,
    ) -> Result<SharedBlock> {
        let table = &self.options.table;
        let priority = match kind {
            HandleKind::Data => Priority::Low,
            _ if table.cache_index_and_filter_blocks_with_high_priority => Priority::High,
            _ => Priority::Low,
        };
        let charge = block.charge();
        let key = self.cache_id.block(handle.offset);
        let inserted = insert(cache, key, block, charge, priority);
        if let Some(o) = &self.options.observer {
            o.cache_insert(kind.role(), charge, inserted.is_err());
        }
        inserted.map_err(|full| {
            Error::new(ErrorKind::Aborted, full.to_string()).with_subcode(Subcode::MemoryLimit)
        })
    }

    pub(super) fn decode(
        &self,
        handle: BlockHandle,
        bytes: Vec<u8>,
        kind: HandleKind,
    ) -> Result<CachedBlock> {
        let place = |e| self.fetcher.place(e, handle);
        Ok(match kind {
            HandleKind::Data => CachedBlock::Data(Block::parse_data(bytes).map_err(place)?),
            HandleKind::Filter => CachedBlock::Filter(FilterBlock::new(bytes)),
            HandleKind::Index(form) => {
                let block = Block::parse(bytes).map_err(place)?;
                let index = IndexBlock::parse(&block, form, self.order(), self.fetcher.blocks.end);
                CachedBlock::Index(index.map_err(place)?)
            }
        })
    }

    /// A data block.
    #[inline]
    pub(super) fn data_block(
        &self,
        ctx: &ReadContext,
        handle: BlockHandle,
        prefetch: Option<&mut Prefetch>,
        counters: &ReadCounters,
    ) -> Result<SharedBlock> {
        self.load(ctx, handle, HandleKind::Data, true, prefetch, counters)
    }

    /// The index block that the footer names.
    pub(super) fn index(&self, ctx: &ReadContext, counters: &ReadCounters) -> Result<SharedBlock> {
        match &self.index_slot {
            Some(held) => Ok(held.clone()),
            None => self.load(
                ctx,
                self.index_handle,
                HandleKind::Index(self.form),
                true,
                None,
                counters,
            ),
        }
    }

    #[inline]
    pub(super) fn index_held(
        &self,
        ctx: &ReadContext,
        counters: &ReadCounters,
    ) -> Result<BlockRef<'_>> {
        match &self.index_slot {
            Some(held) => Ok(BlockRef::Borrowed(held)),
            None => self.load_briefly(
                ctx,
                self.index_handle,
                HandleKind::Index(self.form),
                counters,
            ),
        }
    }

    /// Partition `i` of the index.
    pub(super) fn index_partition(
        &self,
        ctx: &ReadContext,
        i: usize,
        handle: BlockHandle,
        counters: &ReadCounters,
    ) -> Result<SharedBlock> {
        let kind = HandleKind::Index(self.form);
        let part = self.partition(&self.partitions, ctx, i, handle, kind, counters)?;
        match part.index() {
            Some(leaf) if leaf.is_empty() => {
                let e = Error::corruption("a partition of the index without entries");
                Err(self.fetcher.place(e, handle))
            }
            _ => Ok(part),
        }
    }

    /// Partition `i` of `held`, or of the cache when the reader holds none.
    pub(super) fn partition(
        &self,
        held: &Partitions,
        ctx: &ReadContext,
        i: usize,
        handle: BlockHandle,
        kind: HandleKind,
        counters: &ReadCounters,
    ) -> Result<SharedBlock> {
        if let Some(block) = held.get(i) {
            return Ok(block.clone());
        }
        let in_cache = held.slots.is_empty();
        let block = self.load(ctx, handle, kind, in_cache, None, counters)?;
        held.set(i, &block);
        Ok(block)
    }

    /// Returns whether the internal key `internal` and the user key `upper` (without timestamp)
    /// have one prefix, by the extractor that the filter was made with.
    pub(super) fn has_prefix_of(&self, internal: &[u8], upper: &[u8]) -> bool {
        let user = user_key(internal);
        let bare = &user[..user.len().saturating_sub(self.order().timestamp_size())];
        self.filter
            .as_ref()
            .is_some_and(|f| f.same_prefix(bare, upper))
    }
}
