//! Opening a table: footer, metaindex, properties, dictionary, range tombstones, index, filter.

use super::block_file::BlockFile;
use super::cached::{CachedBlock, TableCacheId};
use super::context::ReadCounters;
use super::fetch::Fetcher;
use super::filter::TableFilter;
use super::options::{IndexType, TableReaderOptions};
use super::partitions::{HandleKind, Partitions};
use super::reader::{Meta, TableReader};
use esker_codec::compress::{Codec, Dictionary, codecs_of_property};
use esker_env::RandomAccessFile;
use esker_format::block::{Block, BlockCursor, IndexForm};
use esker_format::footer::{BlockHandle, FOOTER_LEN, Footer};
use esker_format::key::ParsedKey;
use esker_format::properties::{
    COMPRESSION_DICT_BLOCK, INDEX_BLOCK, PROPERTIES_BLOCK, PropertiesDecoder, RANGE_DEL_BLOCK,
    TableProperties,
};
use esker_format::{KeyOrder, Level, RawTombstone, Seq, ValueType};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the eight bytes of the global sequence stand in the raw properties block, when they do.
pub(super) const GLOBAL_SEQNO: &str = "rocksdb.external_sst_file.global_seqno";
const TAIL_READ_MAX: u64 = 512 << 10;
const TAIL_READ_DEFAULT: u64 = 16 << 10;

/// The end of the file, read once at open, in front of the file itself.
#[derive(Debug)]
struct TailFile {
    inner: Arc<dyn RandomAccessFile>,
    start: u64,
    bytes: Vec<u8>,
    path: PathBuf,
    len: u64,
}

impl RandomAccessFile for TailFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if let Some(at) = offset.checked_sub(self.start)
            && let Some(from) = self.bytes.get(at as usize..)
            && from.len() >= buf.len()
        {
            buf.copy_from_slice(&from[..buf.len()]);
            return Ok(buf.len());
        }
        self.inner.read_at(offset, buf)
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn path(&self) -> &Path {
        &self.path
    }
}

fn read_tail(file: &Arc<dyn RandomAccessFile>, size: u64, hint: Option<u64>) -> Result<TailFile> {
    let want = hint
        .unwrap_or(TAIL_READ_DEFAULT)
        .clamp(FOOTER_LEN as u64, TAIL_READ_MAX)
        .min(size);
    let mut bytes = vec![0; want as usize];
    let start = size - want;
    let got = file.read_at(start, &mut bytes)?;
    if got < bytes.len() {
        let e =
            Error::corruption(format!("file is shorter than {size} bytes")).with_file(file.path());
        return Err(e);
    }
    Ok(TailFile {
        inner: file.clone(),
        start,
        bytes,
        path: file.path().to_path_buf(),
        len: size,
    })
}

impl TableReader {
    /// Opens the table in the first `size` bytes of `file`.
    pub fn open(
        file: Arc<dyn RandomAccessFile>,
        size: u64,
        options: TableReaderOptions,
    ) -> Result<Arc<TableReader>> {
        let path = file.path().to_path_buf();
        open_inner(file, size, options).map_err(|e| e.with_file(path))
    }
}

/// The properties of the table that is all of `file`; those of RocksDB's defaults when it has none.
///
/// Nothing else of the file is looked at, and no order of keys is needed.
pub fn read_properties(file: Arc<dyn RandomAccessFile>) -> Result<TableProperties> {
    let (path, size) = (file.path().to_path_buf(), file.len());
    let read = || -> Result<TableProperties> {
        let (footer, fetcher) = fetcher_of(&file, size, None, 0)?;
        let meta = read_metaindex(&fetcher, footer.metaindex)?;
        match meta.get(PROPERTIES_BLOCK) {
            Some(handle) => properties_at(&fetcher, *handle),
            None => Ok(TableProperties::default()),
        }
    };
    read().map_err(|e| e.with_file(path))
}

/// The footer, and what reads blocks as it says.
pub(super) fn fetcher_of(
    file: &Arc<dyn RandomAccessFile>,
    size: u64,
    tail_size: Option<u64>,
    max_block_bytes: usize,
) -> Result<(Footer, Fetcher)> {
    let tail = read_tail(file, size, tail_size)?;
    let footer = Footer::decode(&tail.bytes, size)?;
    if footer.version < 2 {
        return Err(Error::not_supported(format!("table format version {}", footer.version))
            .with_hint("let RocksDB 7 rewrite the file: compact the database with format_version 2 or newer"));
    }
    let max_block = match max_block_bytes {
        0 => u32::MAX as usize,
        given => given,
    };
    let fetcher = Fetcher {
        blocks: BlockFile {
            file: Arc::new(tail),
            end: size - FOOTER_LEN as u64,
            walks: None,
        },
        checksum: footer.checksum,
        base: footer.base_context_checksum,
        max_block,
    };
    Ok((footer, fetcher))
}

fn open_inner(
    file: Arc<dyn RandomAccessFile>,
    size: u64,
    options: TableReaderOptions,
) -> Result<Arc<TableReader>> {
    let (footer, mut fetcher) =
        fetcher_of(&file, size, options.tail_size, options.max_block_bytes)?;
    fetcher.blocks.walks = options.walks.clone().map(|walks| (walks, options.level));
    let meta = read_metaindex(&fetcher, footer.metaindex)?;
    let (properties, properties_known) = match meta.get(PROPERTIES_BLOCK) {
        Some(handle) => (properties_at(&fetcher, *handle)?, true),
        None => (TableProperties::default(), false),
    };
    check_features(&properties, &footer, properties_known, &options.order)?;
    let dict = match meta.get(COMPRESSION_DICT_BLOCK) {
        Some(h) => Some(Dictionary::new(fetcher.fetch(*h, true, None)?.bytes)?),
        None => None,
    };
    let global_seq = global_seq(&properties, options.largest_seq)?;
    let tombstones = match meta.get(RANGE_DEL_BLOCK) {
        Some(h) => read_tombstones(&fetcher, *h, global_seq, &options.order)?,
        None => Vec::new(),
    };
    if tombstones.is_empty() && properties.num_range_deletions > 0 {
        let why = format!(
            "no range deletions, and the properties tell of {}",
            properties.num_range_deletions
        );
        let at = *meta.get(RANGE_DEL_BLOCK).unwrap_or(&footer.metaindex);
        return Err(fetcher.place(Error::corruption(why), at));
    }
    let index_handle = match footer.version {
        ..6 => footer.index,
        _ => *meta
            .get(INDEX_BLOCK)
            .ok_or_else(|| Error::corruption("no index block in the metaindex"))?,
    };
    let index_type = properties.index_type.unwrap_or(0);
    let index_type = IndexType::from_u32(index_type)
        .ok_or_else(|| Error::not_supported(format!("table index type {index_type}")))?;
    let form = IndexForm {
        user_keys: properties.index_key_is_user_key,
        delta_values: properties.index_value_is_delta_encoded,
        first_keys: index_type == IndexType::BinarySearchWithFirstKey,
    };
    let cache = if options.table.no_block_cache {
        None
    } else {
        options.cache.clone()
    };
    let filter = TableFilter::find(&meta, &properties, &options);
    let mut reader = TableReader {
        fetcher_file_len: size,
        footer,
        form,
        index_type,
        index_handle,
        index_slot: None,
        partitions: Partitions::default(),
        filter,
        dict,
        tombstones: tombstones.into(),
        global_seq,
        cache_id: TableCacheId::new(options.cache_salt, options.file_no.0),
        cache,
        meta: meta
            .into_iter()
            .map(|(name, handle)| Meta { name, handle })
            .collect(),
        properties,
        options,
        fetcher,
    };
    preload(&mut reader)?;
    reader.fetcher.blocks.file = file;
    Ok(Arc::new(reader))
}

/// Reads what the reader holds itself, or pins of what the cache holds.
fn preload(reader: &mut TableReader) -> Result<()> {
    let ctx = super::ReadContext::default();
    let counters = &ReadCounters::default();
    let table = &reader.options.table;
    let in_cache = table.cache_index_and_filter_blocks && reader.cache.is_some();
    let l0 = reader.options.level == Level::L0 && table.pin_l0_filter_and_index_blocks_in_cache;
    let partitioned = reader.is_partitioned();
    let pin_index = !in_cache || l0 || (partitioned && table.pin_top_level_index_and_filter);
    let index = reader.load(
        &ctx,
        reader.index_handle,
        HandleKind::Index(reader.form),
        in_cache,
        None,
        counters,
    )?;
    let blocks = reader.properties.num_data_blocks;
    if blocks > 0 && index.index().is_some_and(|i| i.is_empty()) {
        let why = format!("an index without entries, and the properties tell of {blocks} blocks");
        return Err(reader
            .fetcher
            .place(Error::corruption(why), reader.index_handle));
    }
    if let (true, CachedBlock::Index(top)) = (partitioned && !in_cache, &*index) {
        reader.partitions = Partitions::new(top.len());
    }
    if pin_index {
        reader.index_slot = Some(index);
    }
    let Some(mut filter) = reader.filter.take() else {
        return Ok(());
    };
    let top_only = filter.partitioned && table.pin_top_level_index_and_filter;
    let pin_filter = !in_cache || l0 || top_only;
    if pin_filter || filter.partitioned {
        let kind = filter.kind(reader.form);
        let block = reader.load(&ctx, filter.handle, kind, in_cache, None, counters)?;
        if let (true, CachedBlock::Index(top)) = (!in_cache, &*block) {
            filter.partitions = Partitions::new(top.len());
        }
        if pin_filter {
            filter.slot = Some(block);
        }
    }
    reader.filter = Some(filter);
    counters.hand_over();
    Ok(())
}

fn read_metaindex(fetcher: &Fetcher, at: BlockHandle) -> Result<BTreeMap<String, BlockHandle>> {
    let block = fetcher.meta_block(at)?;
    list_meta(&block, fetcher.blocks.end).map_err(|e| fetcher.place(e, at))
}

pub(super) fn list_meta(block: &Block, limit: u64) -> Result<BTreeMap<String, BlockHandle>> {
    let mut out = BTreeMap::new();
    let mut cursor = BlockCursor::over_names(block);
    let mut written_out = block.written_out();
    cursor.seek_to_first();
    while cursor.valid() {
        written_out.take(cursor.key().len())?;
        let name = String::from_utf8_lossy(cursor.key()).into_owned();
        let handle = BlockHandle::decode(cursor.value())?;
        // Names that nothing here knows may hold anything.
        if handle.check_within(limit).is_ok() {
            out.insert(name, handle);
        } else if name.starts_with("rocksdb.") || name.contains("filter.") {
            return Err(Error::corruption(format!(
                "meta block {name} lies outside the file"
            )));
        }
        cursor.next();
    }
    cursor.status()?;
    Ok(out)
}

/// Reads the properties block. When its checksum fails the block may be one whose global sequence
/// number was patched in place after writing: then the checksum holds with those eight bytes zero.
pub(super) fn properties_at(fetcher: &Fetcher, handle: BlockHandle) -> Result<TableProperties> {
    let decode = |bytes: Vec<u8>| -> Result<(TableProperties, Option<u32>)> {
        let block = Block::parse(bytes)?;
        if block.is_empty() {
            return Err(Error::corruption("a properties block without entries"));
        }
        let mut cursor = BlockCursor::over_names(&block);
        let mut decoder = PropertiesDecoder::new();
        let mut written_out = block.written_out();
        let mut seqno_at = None;
        cursor.seek_to_first();
        while cursor.valid() {
            written_out.take(cursor.key().len())?;
            decoder.add(cursor.key(), cursor.value())?;
            if cursor.key() == GLOBAL_SEQNO.as_bytes() && cursor.value().len() == 8 {
                seqno_at = Some(cursor.value_range().start);
            }
            cursor.next();
        }
        cursor.status()?;
        Ok((decoder.finish(), seqno_at))
    };
    match fetcher.fetch(handle, true, None) {
        Ok(raw) => match decode(raw.bytes) {
            Ok((properties, _)) => Ok(properties),
            Err(e) => Err(fetcher.place(e, handle)),
        },
        Err(damage) => {
            let raw = fetcher.fetch(handle, false, None)?;
            let Ok((properties, Some(at))) = decode(raw.bytes.clone()) else {
                return Err(damage);
            };
            let mut zeroed = raw.bytes;
            zeroed[at as usize..at as usize + 8].fill(0);
            if fetcher.checksum_holds(handle, &zeroed)? {
                Ok(properties)
            } else {
                Err(damage)
            }
        }
    }
}

/// Features that this reader would misread.
pub(super) fn check_features(
    p: &TableProperties,
    footer: &Footer,
    known: bool,
    order: &KeyOrder,
) -> Result<()> {
    if !known && footer.version >= 6 {
        return Err(Error::corruption("no properties block"));
    }
    if p.embedded_blob_stats.is_some() {
        return Err(Error::not_supported("table with embedded blobs"));
    }
    if p.udi_is_primary_index != 0 {
        return Err(Error::not_supported(
            "table whose primary index is user-defined",
        ));
    }
    // In an order without timestamps the keys are whole.
    if !p.user_defined_timestamps_persisted && order.timestamp_size() > 0 {
        return Err(Error::not_supported(
            "table whose keys lost their timestamps (persist_user_defined_timestamps)",
        )
        .with_hint("open the column family with the same comparator without timestamps"));
    }
    let Some(codecs) = codecs_of_property(&p.compression_name) else {
        return Err(Error::not_supported(format!(
            "table compressed with {:?}",
            p.compression_name
        )));
    };
    // A table that does not say how its blocks are compressed fails when one cannot be read.
    if p.compression_name.is_empty() {
        return Ok(());
    }
    codecs.into_iter().try_for_each(Codec::check_supported)
}

/// The sequence number that replaces every stored one (5.12 of the format notes).
pub(super) fn global_seq(p: &TableProperties, largest: Option<Seq>) -> Result<Option<Seq>> {
    let stored = p.external_sst_file_global_seqno;
    match p.external_sst_file_version {
        None if stored.is_some() => Err(Error::corruption(
            "global sequence number without an external file version",
        )),
        None => Ok(None),
        Some(v) if v < 2 => match stored {
            Some(_) => Err(Error::corruption(
                "external file of version 1 with a global sequence number",
            )),
            None => Ok(None),
        },
        Some(_) => {
            let stored = stored.unwrap_or(0);
            let listed = largest.map_or(0, |s| s.0);
            if stored != 0 && largest.is_some() && stored != listed {
                return Err(Error::corruption(format!(
                    "global sequence number is {stored} in the file and {listed} in the MANIFEST"
                )));
            }
            let seq = if stored != 0 { stored } else { listed };
            if seq > Seq::MAX.0 {
                return Err(Error::corruption(format!(
                    "global sequence number {seq} is too large"
                )));
            }
            Ok(Some(Seq(seq)))
        }
    }
}

pub(super) fn read_tombstones(
    fetcher: &Fetcher,
    handle: BlockHandle,
    global: Option<Seq>,
    order: &KeyOrder,
) -> Result<Vec<RawTombstone>> {
    let block = fetcher.meta_block(handle)?;
    let mut cursor = BlockCursor::new(&block, order.clone()).with_global_seq(global);
    let mut out = Vec::new();
    let mut written_out = block.written_out();
    cursor.seek_to_first();
    while cursor.valid() {
        let counted = written_out.take(cursor.key().len());
        counted.map_err(|e| fetcher.place(e, handle))?;
        let key = ParsedKey::parse(cursor.key()).map_err(|e| fetcher.place(e, handle))?;
        if key.kind != ValueType::RangeDeletion {
            let why = format!("entry of type {:?} among range deletions", key.kind);
            return Err(fetcher.place(Error::corruption(why), handle));
        }
        out.push(RawTombstone {
            start: key.user.to_vec(),
            end: cursor.value().to_vec(),
            seq: key.seq,
        });
        cursor.next();
    }
    cursor.status().map_err(|e| fetcher.place(e, handle))?;
    Ok(out)
}
