//! Sizes, anchors, verification and listing: what jobs and tools ask of a table.

use super::cached::CachedBlock;
use super::context::{ReadContext, ReadCounters};
use super::open::GLOBAL_SEQNO;
use super::partitions::HandleKind;
use super::reader::TableReader;
use esker_codec::compress::Codec;
use esker_format::Cursor;
use esker_format::block::{Block, BlockCursor, IndexBlock, IndexForm};
use esker_format::footer::BlockHandle;
use esker_format::properties::{
    FULL_FILTER_BLOCK, INDEX_BLOCK, PARTITIONED_FILTER_BLOCK, PROPERTIES_BLOCK,
};
use esker_status::{Error, Result};
use std::sync::Arc;

/// A key at which a table may be split, and the data that ends there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A user key at or after the last key of the range, and not after the first key of the next.
    pub user_key: Vec<u8>,
    /// Stored bytes since the anchor before it.
    pub range_size: u64,
}

/// The purpose of a block of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Entries.
    Data,
    /// A partition of the index.
    IndexPartition,
    /// The index, or its top level.
    Index,
    /// A partition of the filter.
    FilterPartition,
    /// A meta block, by its name.
    Meta(String),
    /// The list of meta blocks.
    Metaindex,
}

/// A block of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Its purpose.
    pub kind: BlockKind,
    /// Where it is.
    pub handle: BlockHandle,
    /// How it is compressed.
    pub codec: Codec,
    /// Its bytes before compression.
    pub raw_len: usize,
}

impl TableReader {
    /// About how many bytes of the file stand before the internal key `key`.
    pub fn approximate_offset_of(&self, ctx: &ReadContext, key: &[u8]) -> Result<u64> {
        let counters = ReadCounters::default();
        let top = self.index(ctx, &counters)?;
        let Some(top) = top.index() else { return Ok(0) };
        let mut i = top.seek(key);
        if i < top.len() && self.is_partitioned() {
            let part = self.index_partition(ctx, i, top.handle(i), &counters)?;
            if let Some(leaf) = part.index() {
                let at = leaf.seek(key);
                if at < leaf.len() {
                    return Ok(leaf.handle(at).offset);
                }
            }
            i += 1;
            return if i < top.len() {
                self.first_offset_of_partition(ctx, top, i, &counters)
            } else {
                Ok(self.data_end())
            };
        }
        Ok(if i < top.len() {
            top.handle(i).offset
        } else {
            self.data_end()
        })
    }

    fn first_offset_of_partition(
        &self,
        ctx: &ReadContext,
        top: &IndexBlock,
        i: usize,
        c: &ReadCounters,
    ) -> Result<u64> {
        let part = self.index_partition(ctx, i, top.handle(i), c)?;
        Ok(part
            .index()
            .filter(|l| !l.is_empty())
            .map_or(self.data_end(), |l| l.handle(0).offset))
    }

    /// About how many bytes of the file hold `start..end` (internal keys).
    pub fn approximate_size(&self, ctx: &ReadContext, start: &[u8], end: &[u8]) -> Result<u64> {
        let from = self.approximate_offset_of(ctx, start)?;
        Ok(self.approximate_offset_of(ctx, end)?.saturating_sub(from))
    }

    /// Where data blocks end, as far as the properties tell; else the first meta block.
    fn data_end(&self) -> u64 {
        let p = &self.properties;
        let said = if p.tail_start_offset > 0 {
            p.tail_start_offset
        } else {
            p.data_size
        };
        let first_meta = self
            .meta
            .iter()
            .map(|m| m.handle.offset)
            .chain([self.index_handle.offset])
            .min()
            .unwrap_or(0);
        if said > 0 {
            said.min(self.file_size())
        } else {
            first_meta
        }
    }

    /// Calls `visit` for every leaf of the index, in order.
    pub fn for_each_leaf(
        &self,
        ctx: &ReadContext,
        mut visit: impl FnMut(&IndexBlock) -> Result<()>,
    ) -> Result<()> {
        let counters = ReadCounters::default();
        let top = self.index(ctx, &counters)?;
        let Some(top) = top.index() else {
            return Ok(());
        };
        if !self.is_partitioned() {
            return visit(top);
        }
        for i in 0..top.len() {
            let part = self.index_partition(ctx, i, top.handle(i), &counters)?;
            if let Some(leaf) = part.index() {
                visit(leaf)?;
            }
        }
        Ok(())
    }

    /// Tells whether its blocks are compressed with a dictionary.
    pub fn has_dictionary(&self) -> bool {
        self.dict.is_some()
    }

    /// At most `count` keys that cut the table into ranges of about equal size, ascending.
    pub fn anchors(&self, ctx: &ReadContext, count: usize) -> Result<Vec<Anchor>> {
        // RocksDB 11 does not count all blocks of a table with a dictionary.
        let per_anchor = self.properties.data_size.div_ceil(count.max(1) as u64);
        let (mut out, mut size): (Vec<Anchor>, u64) = (Vec::new(), 0);
        let mut last = None;
        self.for_each_leaf(ctx, |leaf| {
            for i in 0..leaf.len() {
                size += leaf.handle(i).size;
                last = Some(leaf.user(i).to_vec());
                if size >= per_anchor {
                    out.extend(last.take().map(|user_key| Anchor {
                        user_key,
                        range_size: size,
                    }));
                    size = 0;
                }
            }
            Ok(())
        })?;
        out.extend(last.map(|user_key| Anchor {
            user_key,
            range_size: size,
        }));
        Ok(out)
    }

    /// Shows every block of the file to `visit`: data blocks in order, then index, filter and meta
    /// blocks.
    pub fn for_each_block(
        &self,
        verify: bool,
        mut visit: impl FnMut(&BlockInfo, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for (kind, handle) in self.block_handles()? {
            let (info, bytes) = self.read_block(kind, handle, verify)?;
            visit(&info, &bytes)?;
        }
        Ok(())
    }

    /// Where every block of the file is: data blocks in order, then index, filter and meta blocks.
    pub fn block_handles(&self) -> Result<Vec<(BlockKind, BlockHandle)>> {
        let ctx = ReadContext {
            fill_cache: false,
            ..ReadContext::default()
        };
        let mut out = Vec::new();
        self.for_each_leaf(&ctx, |leaf| {
            out.extend((0..leaf.len()).map(|i| (BlockKind::Data, leaf.handle(i))));
            Ok(())
        })?;
        if self.is_partitioned() {
            let partitions = self.top_handles(self.index_handle, self.form)?;
            out.extend(
                partitions
                    .into_iter()
                    .map(|h| (BlockKind::IndexPartition, h)),
            );
        }
        out.push((BlockKind::Index, self.index_handle));
        for meta in &self.meta {
            if meta.name == PARTITIONED_FILTER_BLOCK {
                let form = IndexForm {
                    first_keys: false,
                    ..self.form
                };
                let partitions = self.top_handles(meta.handle, form)?;
                out.extend(
                    partitions
                        .into_iter()
                        .map(|h| (BlockKind::FilterPartition, h)),
                );
            }
            if meta.name != INDEX_BLOCK {
                out.push((BlockKind::Meta(meta.name.clone()), meta.handle));
            }
        }
        out.push((BlockKind::Metaindex, self.footer.metaindex));
        Ok(out)
    }

    /// Reads the block at `handle`, which [`TableReader::block_handles`] gave: what it is, and its
    /// raw bytes.
    pub fn read_block(
        &self,
        kind: BlockKind,
        handle: BlockHandle,
        verify: bool,
    ) -> Result<(BlockInfo, Vec<u8>)> {
        let dict = if kind == BlockKind::Data {
            self.dict.as_ref()
        } else {
            None
        };
        // A patched global sequence number breaks the checksum as stored; opening has checked it.
        let verify = verify && kind != BlockKind::Meta(PROPERTIES_BLOCK.to_string());
        let raw = self.fetcher.fetch(handle, verify, dict)?;
        let info = BlockInfo {
            kind,
            handle,
            codec: raw.codec,
            raw_len: raw.bytes.len(),
        };
        Ok((info, raw.bytes))
    }

    fn top_handles(&self, handle: BlockHandle, form: IndexForm) -> Result<Vec<BlockHandle>> {
        let ctx = ReadContext {
            fill_cache: false,
            ..ReadContext::default()
        };
        let block = self.load(
            &ctx,
            handle,
            HandleKind::Index(form),
            false,
            None,
            &ReadCounters::default(),
        )?;
        Ok(match &*block {
            CachedBlock::Index(top) => (0..top.len()).map(|i| top.handle(i)).collect(),
            _ => Vec::new(),
        })
    }

    /// Reads the whole table: every checksum, the order of keys, every key against the filter, and
    /// the counts of the properties where the writer vouches for them.
    pub fn verify(self: &Arc<Self>) -> Result<()> {
        self.verify_with(0)
    }

    /// Verifies the table, reading `readahead` bytes ahead; 0 for a good size.
    pub fn verify_with(self: &Arc<Self>, readahead: usize) -> Result<()> {
        self.for_each_block(true, |_, _| Ok(()))?;
        let ctx = ReadContext {
            fill_cache: false,
            readahead_size: if readahead == 0 { 1 << 20 } else { readahead },
            background: true,
            ..ReadContext::default()
        };
        let mut cursor = self.cursor(&ctx);
        let mut last: Vec<u8> = Vec::new();
        let mut entries = 0u64;
        let place = |e: Error| e.with_file(self.fetcher.blocks.file.path());
        cursor.seek_to_first();
        while cursor.valid() {
            let key = cursor.key();
            esker_format::ParsedKey::parse(key).map_err(place)?;
            if !last.is_empty() && self.order().compare_internal(&last, key).is_ge() {
                return Err(place(Error::corruption(format!(
                    "key {} is out of order",
                    key.escape_ascii()
                ))));
            }
            let lookup = super::LookupKey::new(key, self.order().timestamp_size());
            if !self.may_contain(&ctx, &lookup)? {
                return Err(place(Error::corruption(format!(
                    "the filter denies key {}",
                    key.escape_ascii()
                ))));
            }
            last.clear();
            last.extend_from_slice(key);
            entries += 1;
            cursor.next();
        }
        cursor.status()?;
        let p = &self.properties;
        let listed = p.num_entries.saturating_sub(p.num_range_deletions);
        if p.format_version >= 5 && p.num_entries > 0 && listed != entries {
            let why = format!("table holds {entries} entries, its properties say {listed}");
            return Err(place(Error::corruption(why)));
        }
        Ok(())
    }

    /// Where in the file the eight bytes of the global sequence number stand; `None` in a file that
    /// has none.
    pub fn global_seqno_offset(&self) -> Result<Option<u64>> {
        let Some(meta) = self.meta.iter().find(|m| m.name == PROPERTIES_BLOCK) else {
            return Ok(None);
        };
        let kind = BlockKind::Meta(meta.name.clone());
        let (info, bytes) = self.read_block(kind, meta.handle, false)?;
        if info.codec != Codec::None {
            return Ok(None);
        }
        let block = Block::parse(bytes)?;
        let mut cursor = BlockCursor::over_names(&block);
        cursor.seek_to_first();
        while cursor.valid() {
            if cursor.key() == GLOBAL_SEQNO.as_bytes() && cursor.value().len() == 8 {
                return Ok(Some(
                    meta.handle.offset + u64::from(cursor.value_range().start),
                ));
            }
            cursor.next();
        }
        cursor.status()?;
        Ok(None)
    }

    /// Returns whether the table has a filter.
    pub fn has_filter(&self) -> bool {
        self.meta
            .iter()
            .any(|m| m.name == FULL_FILTER_BLOCK || m.name == PARTITIONED_FILTER_BLOCK)
    }
}
