//! An open table: the facts of the file, and the ways from a key to a block.
//!
//! Index and filter are held by the reader, or stand in the block cache when
//! `cache_index_and_filter_blocks` says so. Partitions that the reader holds are loaded when first
//! needed. Thread-safety: everything is immutable after opening, except slots that are filled once.

use super::cached::{BlockCache, CachedBlock, HeldBlock, TableCacheId};
use super::context::{FoundEntry, LookupKey, ReadContext, ReadCounters, bump};
use super::cursor::TableCursor;
use super::fetch::{Fetcher, TRAILER};
use super::filter::{FilterBlock, TableFilter};
use super::observer::{BlockRole, FilterOutcome};
use super::options::{IndexType, TableOptions, TableReaderOptions};
use super::prefetch::Prefetch;
use esker_cache::Priority;
use esker_codec::compress::{Codec, Dictionary};
use esker_env::RandomAccessFile;
use esker_format::block::{Block, BlockCursor, IndexBlock, IndexForm};
use esker_format::footer::{BlockHandle, Footer};
use esker_format::key::user_key;
use esker_format::properties::TableProperties;
use esker_format::{KeyOrder, RawTombstone, Seq};
use esker_status::{Error, ErrorKind, Result, Subcode};
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// What a handle leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Data,
    Index(IndexForm),
    Filter,
}

impl Kind {
    fn role(self) -> BlockRole {
        match self {
            Kind::Data => BlockRole::Data,
            Kind::Index(_) => BlockRole::Index,
            Kind::Filter => BlockRole::Filter,
        }
    }
    fn fits(self, block: &CachedBlock) -> bool {
        matches!(
            (self, block),
            (Kind::Data, CachedBlock::Data(_))
                | (Kind::Index(_), CachedBlock::Index(_))
                | (Kind::Filter, CachedBlock::Filter(_))
        )
    }
}

/// Partitions that the reader holds, each loaded when first needed.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    slots: Vec<OnceLock<Arc<CachedBlock>>>,
    memory: AtomicUsize,
}

impl Partitions {
    pub(super) fn new(n: usize) -> Self {
        let mut slots = Vec::new();
        slots.resize_with(n, OnceLock::new);
        Partitions {
            slots,
            memory: AtomicUsize::new(0),
        }
    }
    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<&Arc<CachedBlock>> {
        self.slots.get(i)?.get()
    }
    fn set(&self, i: usize, block: &Arc<CachedBlock>) {
        if let Some(slot) = self.slots.get(i)
            && slot.set(block.clone()).is_ok()
        {
            self.memory.fetch_add(block.memory(), Ordering::Relaxed);
        }
    }
}

/// A meta block and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Its name in the metaindex.
    pub name: String,
    /// Its place.
    pub handle: BlockHandle,
}

/// A block that is held here or elsewhere.
pub(super) enum Held<'a> {
    Here(&'a CachedBlock),
    There(Arc<CachedBlock>),
}

impl Deref for Held<'_> {
    type Target = CachedBlock;
    #[inline]
    fn deref(&self) -> &CachedBlock {
        match self {
            Held::Here(b) => b,
            Held::There(b) => b,
        }
    }
}

/// An open table. Made by [`TableReader::open`], shared by all readers.
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
    pub(super) index_slot: Option<Arc<CachedBlock>>,
    pub(super) partitions: Partitions,
    pub(super) filter: Option<TableFilter>,
    pub(super) dict: Option<Dictionary>,
    pub(super) tombstones: Arc<[RawTombstone]>,
    pub(super) global_seq: Option<Seq>,
    pub(super) cache: Option<Arc<BlockCache>>,
    pub(super) cache_id: TableCacheId,
}

thread_local! {
    /// The block cursor of point lookups, with its key buffer.
    static POINT: RefCell<Option<BlockCursor<HeldBlock>>> = const { RefCell::new(None) };
}

/// Lends this thread's cursor; a lookup inside a lookup, by a comparator that reads a database, has
/// one of its own.
#[inline]
fn with_point_cursor<R>(f: impl FnOnce(&mut BlockCursor<HeldBlock>) -> R) -> R {
    let new = || BlockCursor::new(HeldBlock(None), KeyOrder::Bytewise);
    POINT.with(|slot| match slot.try_borrow_mut() {
        Ok(mut cursor) => f(cursor.get_or_insert_with(new)),
        Err(_) => f(&mut new()),
    })
}

impl TableReader {
    /// Opens the table in the first `size` bytes of `file`.
    pub fn open(
        file: Arc<dyn RandomAccessFile>,
        size: u64,
        options: TableReaderOptions,
    ) -> Result<Arc<TableReader>> {
        super::open::open(file, size, options)
    }

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
        let held = |slot: &Option<Arc<CachedBlock>>| slot.as_ref().map_or(0, |b| b.memory());
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

    /// A cursor over the table's entries.
    pub fn cursor(self: &Arc<Self>, ctx: &ReadContext) -> TableCursor {
        TableCursor::new(self.clone(), ctx.clone(), None)
    }

    /// The same for a job with a handle of its own, through which it reads data blocks in the
    /// background.
    pub fn cursor_through(
        self: &Arc<Self>,
        ctx: &ReadContext,
        own: Option<Arc<dyn RandomAccessFile>>,
    ) -> TableCursor {
        TableCursor::new(self.clone(), ctx.clone(), own)
    }

    /// An error met inside the block at `offset`.
    pub(super) fn in_block(&self, e: Error, offset: Option<u64>) -> Error {
        let e = e.with_file(self.fetcher.file.path());
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
        kind: Kind,
        cached: bool,
        prefetch: Option<&mut Prefetch>,
        counters: &ReadCounters,
    ) -> Result<Arc<CachedBlock>> {
        let cache = self.cache.as_deref().filter(|_| cached);
        if let Some(cache) = cache {
            if let Some(found) = cache.lookup(self.cache_id.block(handle.offset))
                && kind.fits(&found)
            {
                bump(&counters.block_cache_hit, 1);
                if let Some(o) = &self.options.observer {
                    o.cache_lookup(kind.role(), Some(found.memory()));
                }
                if let Some(p) = prefetch {
                    p.skipped(handle.offset, handle.size + TRAILER as u64);
                }
                return Ok(found);
            }
            bump(&counters.block_cache_miss, 1);
            if let Some(o) = &self.options.observer {
                o.cache_lookup(kind.role(), None);
            }
        }
        if ctx.cache_only {
            return Err(Error::new(ErrorKind::Incomplete, "no blocking io"));
        }
        let dict = if matches!(kind, Kind::Data) {
            self.dict.as_ref()
        } else {
            None
        };
        // A job's blocks lie in windows that were read before, and what reading takes is in its
        // stages.
        let is_there = prefetch.as_ref().is_some_and(|p| p.is_behind());
        let start = (self.options.observer.as_ref()).map(|o| if is_there { 0 } else { o.now_ns() });
        let raw = self.fetcher.fetch_timed(
            handle,
            ctx.verify_checksums,
            dict,
            prefetch,
            counters,
            ctx.stages.as_deref(),
        )?;
        if let (Some(o), Some(start)) = (&self.options.observer, start) {
            let stored = handle.size as usize + TRAILER;
            o.block_read(self.options.level, kind.role(), stored, start);
            if raw.codec != Codec::None {
                o.decompressed(stored, raw.bytes.len());
            }
        }
        let block = Arc::new(self.decode(handle, raw.bytes, kind)?);
        if let Some(cache) = cache.filter(|_| ctx.fill_cache) {
            let priority = match kind {
                Kind::Data => Priority::Low,
                _ if self
                    .options
                    .table
                    .cache_index_and_filter_blocks_with_high_priority =>
                {
                    Priority::High
                }
                _ => Priority::Low,
            };
            let memory = block.memory();
            let inserted =
                cache.insert(self.cache_id.block(handle.offset), &block, memory, priority);
            if let Some(o) = &self.options.observer {
                o.cache_insert(kind.role(), memory, inserted.is_err());
            }
            inserted.map_err(|full| {
                Error::new(ErrorKind::Aborted, full.to_string()).with_subcode(Subcode::MemoryLimit)
            })?;
        }
        Ok(block)
    }

    fn decode(&self, handle: BlockHandle, bytes: Vec<u8>, kind: Kind) -> Result<CachedBlock> {
        let place = |e| self.fetcher.place(e, handle);
        Ok(match kind {
            Kind::Data => CachedBlock::Data(Block::parse_data(bytes).map_err(place)?),
            Kind::Filter => CachedBlock::Filter(FilterBlock::new(bytes)),
            Kind::Index(form) => {
                let block = Block::parse(bytes).map_err(place)?;
                let index = IndexBlock::parse(&block, form, self.order(), self.fetcher.blocks_end);
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
    ) -> Result<Arc<CachedBlock>> {
        self.load(ctx, handle, Kind::Data, true, prefetch, counters)
    }

    /// The index block that the footer names.
    pub(super) fn index(
        &self,
        ctx: &ReadContext,
        counters: &ReadCounters,
    ) -> Result<Arc<CachedBlock>> {
        match &self.index_slot {
            Some(held) => Ok(held.clone()),
            None => self.load(
                ctx,
                self.index_handle,
                Kind::Index(self.form),
                true,
                None,
                counters,
            ),
        }
    }

    fn index_held(&self, ctx: &ReadContext, counters: &ReadCounters) -> Result<Held<'_>> {
        match &self.index_slot {
            Some(held) => Ok(Held::Here(held)),
            None => self.index(ctx, counters).map(Held::There),
        }
    }

    /// Partition `i` of the index.
    pub(super) fn index_partition(
        &self,
        ctx: &ReadContext,
        i: usize,
        handle: BlockHandle,
        prefetch: Option<&mut Prefetch>,
        counters: &ReadCounters,
    ) -> Result<Arc<CachedBlock>> {
        let kind = Kind::Index(self.form);
        let part = self.partition(&self.partitions, ctx, i, handle, kind, prefetch, counters)?;
        match part.index() {
            Some(leaf) if leaf.is_empty() => {
                let e = Error::corruption("a partition of the index without entries");
                Err(self.fetcher.place(e, handle))
            }
            _ => Ok(part),
        }
    }

    /// Partition `i` of `held`, or of the cache when the reader holds none.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn partition(
        &self,
        held: &Partitions,
        ctx: &ReadContext,
        i: usize,
        handle: BlockHandle,
        kind: Kind,
        prefetch: Option<&mut Prefetch>,
        counters: &ReadCounters,
    ) -> Result<Arc<CachedBlock>> {
        if let Some(block) = held.get(i) {
            return Ok(block.clone());
        }
        let in_cache = held.slots.is_empty();
        let block = self.load(ctx, handle, kind, in_cache, prefetch, counters)?;
        held.set(i, &block);
        Ok(block)
    }

    /// Whether `a` and `b` are versions of one key.
    #[inline]
    fn same_key(&self, a: &[u8], b: &[u8]) -> bool {
        self.order().same_without_timestamp(a, b)
    }

    /// Shows `visit` the entries of the key's user key, newest first from the key's sequence on,
    /// until it says `false`. Does not look at the table's range tombstones. No allocation when
    /// blocks are cached.
    pub fn get(
        &self,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        mut visit: impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<()> {
        if !self.may_contain(ctx, key)? {
            return Ok(());
        }
        let mut seen = false;
        let visit = |entry: FoundEntry<'_>| {
            seen = true;
            visit(entry)
        };
        let found = with_point_cursor(|cursor| {
            cursor.configure(self.order(), self.global_seq);
            let found = self.get_with(cursor, ctx, key, visit);
            cursor.replace(HeldBlock(None));
            found
        });
        if let Some(o) = self.options.observer.as_ref().filter(|_| seen)
            && let Some(filter) = &self.filter
        {
            o.filter(if filter.asks_whole_keys() {
                FilterOutcome::TruePositive
            } else {
                FilterOutcome::PrefixTruePositive
            });
        }
        found
    }

    fn get_with(
        &self,
        cursor: &mut BlockCursor<HeldBlock>,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        mut visit: impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<()> {
        let target = key.internal();
        let top = self.index_held(ctx, &key.counters)?;
        let Some(top) = top.index() else {
            return Ok(());
        };
        if !self.is_partitioned() {
            self.get_in_leaf(cursor, ctx, key, top, top.seek(target), &mut visit)?;
            return Ok(());
        }
        for i in top.seek(target)..top.len() {
            let part = self.index_partition(ctx, i, top.handle(i), None, &key.counters)?;
            let Some(leaf) = part.index() else {
                return Ok(());
            };
            let done = self.get_in_leaf(cursor, ctx, key, leaf, leaf.seek(target), &mut visit)?;
            if done || !self.same_key(top.user(i), key.user()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Looks into the blocks of `leaf` from `at` on; true when the search is over.
    fn get_in_leaf(
        &self,
        cursor: &mut BlockCursor<HeldBlock>,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        leaf: &IndexBlock,
        at: usize,
        visit: &mut impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<bool> {
        let user = key.user();
        for i in at..leaf.len() {
            if let Some(first) = leaf.first_key(i)
                && self.order().compare_internal(first, key.internal()).is_gt()
                && !self.same_key(user_key(first), user)
            {
                return Ok(true);
            }
            let handle = leaf.handle(i);
            let block = self.data_block(ctx, handle, None, &key.counters)?;
            cursor.replace(HeldBlock(Some(block)));
            if i == at {
                cursor.seek_point(key.internal())
            } else {
                cursor.seek_to_first()
            }
            while cursor.valid() {
                if !self.same_key(user_key(cursor.key()), user) {
                    return Ok(true);
                }
                let Some(block) = &cursor.source().0 else {
                    return Ok(true);
                };
                if !visit(FoundEntry {
                    key: cursor.key(),
                    block,
                    range: cursor.value_range(),
                }) {
                    return Ok(true);
                }
                cursor.next();
            }
            cursor
                .status()
                .map_err(|e| self.in_block(e, Some(handle.offset)))?;
            // A separator of the same user key means that its versions may go on, where separators
            // differ by sequence or by timestamp.
            let apart = leaf.has_user_keys() && self.order().timestamp_size() == 0;
            if apart || !self.same_key(leaf.user(i), user) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the filter lets the key through; true without a filter.
    pub fn may_contain(&self, ctx: &ReadContext, key: &LookupKey<'_>) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.key_may_match(self, ctx, key),
            None => Ok(true),
        }
    }

    /// Whether the internal key `internal` and the user key `upper` (without timestamp) have one
    /// prefix, by the extractor that the filter was made with.
    pub(super) fn has_prefix_of(&self, internal: &[u8], upper: &[u8]) -> bool {
        let user = user_key(internal);
        let bare = &user[..user.len().saturating_sub(self.order().timestamp_size())];
        self.filter
            .as_ref()
            .is_some_and(|f| f.same_prefix(bare, upper))
    }

    /// Whether the filter lets the prefix of an internal key through; true without a filter of
    /// prefixes by the family's extractor.
    pub fn prefix_may_match(
        &self,
        ctx: &ReadContext,
        internal: &[u8],
        counters: &ReadCounters,
    ) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.prefix_may_match(self, ctx, internal, counters),
            None => Ok(true),
        }
    }
}
