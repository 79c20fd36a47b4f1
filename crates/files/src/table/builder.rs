//! Writing a table.
//!
//! Keys come in order through [`TableBuilder::add`]. Data blocks go to the file as they fill; the
//! filter, the index, range tombstones and properties follow at [`TableBuilder::finish`]. With a
//! compression dictionary the first blocks are kept raw until there are enough samples to train it.
//!
//! Index keys are collected as internal keys; whether the index can do with user keys is known only
//! at the end, when no user key was found on both sides of a block boundary. One builder belongs to
//! one thread; no allocation for a key.

use super::builder_index::IndexEntries;
use super::filter_builder::TableFilterBuilder;
use super::options::{IndexShortening, IndexType, TableBuilderOptions};
use super::parallel::ParallelCompression;
use super::samples::UnsampledBlocks;
use super::stages::{Stage, lap};
use esker_codec::compress::{Codec, Compressor, Dictionary, property_v7};
use esker_env::WritableFile;
use esker_format::block::{BlockBuilder, HashIndexBuilder, IndexForm};
use esker_format::footer::{BLOCK_TRAILER_LEN, BlockHandle, Footer};
use esker_format::key::{TRAILER_LEN, append_internal, trailer, user_key};
use esker_format::properties::{
    COMPRESSION_DICT_BLOCK, INDEX_BLOCK, PROPERTIES_BLOCK, RANGE_DEL_BLOCK, TableProperties,
};
use esker_format::unique_id::UniqueId;
use esker_format::{InternalKey, RawTombstone, Seq, ValueType, timestamp};
use esker_status::{Error, Result};
use esker_sync::memory::{CountedBytes, Gauge};
use std::collections::BTreeMap;

const PAGE: usize = 4096;
/// A buffer that has grown beyond this for one large value is not kept for the next block.
const BUFFER_KEPT: usize = 4 << 20;
/// Bytes buffered for a dictionary when nothing else limits them.
const DICT_BUFFER_MAX: u64 = 64 << 20;

/// Size and properties of a finished table.
#[derive(Clone, Debug)]
pub struct TableSummary {
    /// Bytes of the file.
    pub file_size: u64,
    /// Bytes after the data blocks.
    pub tail_size: u64,
    /// The contents of the properties block.
    pub properties: TableProperties,
    /// The identity for the MANIFEST.
    pub unique_id: UniqueId,
    /// First and last entry; `None` in a table of range tombstones only.
    pub bounds: Option<(InternalKey, InternalKey)>,
    /// Smallest and largest sequence of entries and tombstones; `None` when there are none.
    pub seqs: Option<(Seq, Seq)>,
}

/// Bytes that the builders of all tables that are being written in this process hold, beside the
/// buffers of their files.
pub static TABLE_BUILDERS: Gauge = Gauge::new();

/// Writes one table.
pub struct TableBuilder {
    file: Box<dyn WritableFile>,
    options: TableBuilderOptions,
    offset: u64,
    base: u32,
    data: BlockBuilder,
    last_key: Vec<u8>,
    first_in_block: Vec<u8>,
    first_key: Vec<u8>,
    separator: Vec<u8>,
    index: IndexEntries,
    /// A user key was found on both sides of a block boundary.
    split_key: bool,
    filter: Option<TableFilterBuilder>,
    tombstones: Vec<RawTombstone>,
    compressor: Compressor,
    index_compressor: Compressor,
    compressed: Vec<u8>,
    used: Vec<Codec>,
    buffered: Option<UnsampledBlocks>,
    /// Blocks that other threads compress.
    parallel: Option<ParallelCompression>,
    /// Bytes of the blocks that were written, before compression.
    raw_written: u64,
    dict: Option<Dictionary>,
    props: TableProperties,
    seqs: Option<(Seq, Seq)>,
    timestamp_size: usize,
    deviation_limit: usize,
    /// The entries that it has, as of the last block.
    counted: CountedBytes,
}

fn invalid(why: impl Into<String>) -> Error {
    Error::invalid_argument(why)
}

fn validate(o: &TableBuilderOptions) -> Result<()> {
    let t = &o.table;
    if !(2..=7).contains(&t.format_version) {
        return Err(invalid(format!(
            "format_version {} is not written: use 2 to 7",
            t.format_version
        )));
    }
    if t.partition_filters && t.index_type != IndexType::TwoLevelIndexSearch {
        return Err(invalid(
            "partition_filters needs index_type kTwoLevelIndexSearch",
        ));
    }
    if t.index_type == IndexType::HashSearch && o.prefix_extractor.is_none() {
        return Err(invalid("index_type kHashSearch needs a prefix_extractor"));
    }
    if t.block_align && (o.compression != Codec::None || !t.block_size.is_power_of_two()) {
        return Err(invalid(
            "block_align needs kNoCompression and a block_size that is a power of two",
        ));
    }
    if t.block_size == 0 || t.block_size > u32::MAX as usize / 2 {
        return Err(invalid("block_size must be between 1 byte and 2 GiB"));
    }
    Ok(())
}

impl TableBuilder {
    /// Begins a table in `file`, which must be empty.
    pub fn new(file: Box<dyn WritableFile>, options: TableBuilderOptions) -> Result<TableBuilder> {
        validate(&options)?;
        let t = &options.table;
        let mut data = BlockBuilder::new(t.block_restart_interval);
        if !t.use_delta_encoding {
            data = data.without_sharing();
        }
        let hashed = t.data_block_index_type == super::DataBlockIndexType::BinaryAndHash;
        if hashed && !options.order.can_keys_with_different_bytes_be_equal() {
            data = data.with_hash_index(HashIndexBuilder::new(t.data_block_hash_table_util_ratio));
        }
        let with_dict =
            options.compression.uses_dictionary() && options.compression_opts.max_dict_bytes > 0;
        let buffered = with_dict.then(|| {
            let asked = options.compression_opts.max_dict_buffer_bytes;
            let limits = [asked, options.target_file_size]
                .into_iter()
                .filter(|n| *n > 0);
            UnsampledBlocks {
                limit: limits.min().unwrap_or(DICT_BUFFER_MAX),
                ..UnsampledBlocks::default()
            }
        });
        let base = match (t.format_version, options.checksum_base) {
            (..6, _) => 0,
            (_, 0) => derived_base(&options),
            (_, given) => given,
        };
        let new_compressor =
            || Compressor::new(options.compression, options.compression_opts.clone(), None);
        Ok(TableBuilder {
            file,
            offset: 0,
            base,
            data,
            last_key: Vec::new(),
            first_in_block: Vec::new(),
            first_key: Vec::new(),
            separator: Vec::new(),
            index: IndexEntries::new(t.index_type == IndexType::BinarySearchWithFirstKey),
            split_key: false,
            filter: TableFilterBuilder::new(&options),
            tombstones: Vec::new(),
            compressor: new_compressor()?,
            index_compressor: new_compressor()?,
            compressed: Vec::new(),
            used: Vec::new(),
            buffered,
            parallel: None,
            raw_written: 0,
            dict: None,
            props: TableProperties::default(),
            seqs: None,
            timestamp_size: options.order.timestamp_size(),
            counted: CountedBytes::new(&TABLE_BUILDERS, 0),
            deviation_limit: (t.block_size * (100 - t.block_size_deviation.min(100) as usize))
                .div_ceil(100),
            options,
        })
    }

    /// Adds an entry; its internal key must be above every key before it.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let packed = trailer(key);
        let kind = ValueType::from_u8(packed as u8)
            .filter(|k| key.len() >= TRAILER_LEN && *k != ValueType::RangeDeletion);
        let Some(kind) = kind else {
            return Err(self.refuse(key, "not the key of a point entry"));
        };
        if self.first_key.is_empty() {
            self.first_key.extend_from_slice(key);
        } else if self
            .options
            .order
            .compare_internal(&self.last_key, key)
            .is_ge()
        {
            return Err(self.refuse(key, "out of order"));
        }
        if self.should_cut(key, value) {
            self.cut_block(Some(key))?;
        }
        if self.data.is_empty() && self.index.wants_first_keys() {
            self.first_in_block.clear();
            self.first_in_block.extend_from_slice(key);
        }
        let user = user_key(key);
        if let Some(filter) = &mut self.filter {
            let bare = &user[..user.len().saturating_sub(self.timestamp_size)];
            filter.add(bare, key);
        }
        self.data.add(key, value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.count(key.len(), value.len(), Seq(packed >> 8));
        match kind {
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp => {
                self.props.num_deletions += 1;
            }
            ValueType::Merge => self.props.num_merge_operands += 1,
            _ => {}
        }
        if self.timestamp_size > 0 {
            self.note_timestamp(timestamp::of(user_key(key), self.timestamp_size));
        }
        Ok(())
    }

    /// Adds a range tombstone, in any order relative to entries and other tombstones.
    pub fn add_tombstone(&mut self, tombstone: &RawTombstone) {
        self.count(
            tombstone.start.len() + TRAILER_LEN,
            tombstone.end.len(),
            tombstone.seq,
        );
        self.props.num_deletions += 1;
        self.props.num_range_deletions += 1;
        if self.timestamp_size > 0 {
            let at = timestamp::of(&tombstone.start, self.timestamp_size);
            self.note_timestamp(at);
        }
        self.tombstones.push(tombstone.clone());
    }

    /// Stores a property of a collector's, by name, when the table is finished.
    pub fn add_user_property(&mut self, name: String, value: Vec<u8>) {
        self.options.user_properties.push((name, value));
    }

    /// The time since the last lap was that of `stage`, for a job that wants to know.
    #[inline]
    fn lap(&self, stage: Stage) {
        lap(self.options.stages.as_deref(), stage);
    }

    #[cold]
    fn refuse(&self, key: &[u8], why: &str) -> Error {
        Error::corruption(format!(
            "key {} cannot be added to the table: {why}",
            key.escape_ascii()
        ))
        .with_file(self.file.path())
    }

    #[inline]
    fn count(&mut self, key_len: usize, value_len: usize, seq: Seq) {
        self.props.num_entries += 1;
        self.props.raw_key_size += key_len as u64;
        self.props.raw_value_size += value_len as u64;
        self.seqs = Some(match self.seqs {
            None => (seq, seq),
            Some((lo, hi)) => (lo.min(seq), hi.max(seq)),
        });
    }

    /// Keeps the smallest and largest timestamp.
    fn note_timestamp(&mut self, at: &[u8]) {
        let (order, props) = (&self.options.order, &mut self.props);
        let replace = |kept: &mut Vec<u8>| {
            kept.clear();
            kept.extend_from_slice(at);
        };
        if props.timestamp_max.is_empty() {
            replace(&mut props.timestamp_min);
            replace(&mut props.timestamp_max);
        } else if order.compare_timestamp(at, &props.timestamp_min).is_lt() {
            replace(&mut props.timestamp_min);
        } else if order.compare_timestamp(at, &props.timestamp_max).is_gt() {
            replace(&mut props.timestamp_max);
        }
    }

    #[inline]
    fn should_cut(&self, key: &[u8], value: &[u8]) -> bool {
        if self.data.is_empty() {
            return false;
        }
        let size = self.data.size_estimate();
        let limit = self.options.table.block_size;
        if size >= limit {
            return true;
        }
        let after = self.data.size_estimate_after(key, value);
        if self.options.table.block_align {
            after + BLOCK_TRAILER_LEN > limit
        } else {
            after > limit && size > self.deviation_limit
        }
    }

    /// Closes the data block; `next` is the key that will begin the next one.
    fn cut_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        if self.data.is_empty() {
            return Ok(());
        }
        self.counted.set(self.memory());
        self.separate(next);
        self.index.push(&self.separator, &self.first_in_block);
        self.props.num_data_blocks += 1;
        if let Some(buffered) = &mut self.buffered {
            buffered.bytes.extend_from_slice(self.data.finish());
            buffered.ends.push(buffered.bytes.len());
            self.data.reset();
            if buffered.bytes.len() as u64 >= buffered.limit {
                self.unbuffer()?;
            }
            return Ok(());
        }
        let mut data = std::mem::replace(&mut self.data, BlockBuilder::new(1));
        let written = self.write_data(data.finish());
        data.reset();
        self.data = data;
        written
    }

    /// Bytes of memory held, without the file's buffers.
    fn memory(&self) -> usize {
        let buffered = self.buffered.as_ref().map_or(0, |b| b.bytes.capacity());
        let parallel = self
            .parallel
            .as_ref()
            .map_or(0, ParallelCompression::pending);
        let filter = self.filter.as_ref().map_or(0, TableFilterBuilder::memory);
        let compressors = self.compressor.memory() + self.index_compressor.memory();
        self.data.memory()
            + self.index.memory()
            + self.compressed.capacity()
            + buffered
            + parallel
            + filter
            + compressors
    }

    /// Puts the index key of the closing block into `separator`, as an internal key.
    fn separate(&mut self, next: Option<&[u8]>) {
        let order = &self.options.order;
        let (last, out) = (user_key(&self.last_key), &mut self.separator);
        out.clear();
        out.extend_from_slice(last);
        let shortening = self.options.table.index_shortening;
        match next {
            Some(next) => {
                if self.timestamp_size == 0 && order.equal(last, user_key(next))
                    || self.timestamp_size > 0
                        && order
                            .compare_without_timestamp(last, user_key(next))
                            .is_eq()
                {
                    self.split_key = true;
                } else if shortening != IndexShortening::NoShortening {
                    order.find_shortest_separator(out, user_key(next));
                }
            }
            None if shortening == IndexShortening::ShortenSeparatorsAndSuccessor => {
                order.find_short_successor(out);
            }
            None => {}
        }
        if out.len() <= last.len() && *out != last && order.compare(last, out).is_lt() {
            // Between two user keys any trailer will do; this type is the newest that RocksDB 7
            // knows.
            append_internal(out, &[], Seq::MAX, ValueType::WideColumnEntity);
        } else {
            out.clear();
            out.extend_from_slice(&self.last_key);
        }
    }

    /// Compresses a data block and writes it, or has other threads compress it first.
    fn write_data(&mut self, raw: &[u8]) -> Result<()> {
        if self.options.compression == Codec::None {
            return self.write_block(raw, None);
        }
        if let Some(how) = &self.options.compressors {
            let (codec, options) = (self.options.compression, &self.options.compression_opts);
            let dict = self.dict.as_ref();
            let parallel = match &mut self.parallel {
                Some(started) => started,
                none => none.insert(ParallelCompression::start(how, || {
                    Compressor::new(codec, options.clone(), dict)
                })?),
            };
            if parallel.push(raw) {
                self.write_group()?;
            }
            return Ok(());
        }
        let mut compressed = std::mem::take(&mut self.compressed);
        self.lap(Stage::Merge);
        let is_smaller = self.compressor.compress(raw, &mut compressed)?;
        self.lap(Stage::Compress);
        self.write_block(raw, is_smaller.then_some(&compressed))?;
        if compressed.capacity() <= BUFFER_KEPT {
            self.compressed = compressed;
        }
        Ok(())
    }

    /// Writes the oldest blocks that other threads compress; false when there are none.
    fn write_group(&mut self) -> Result<bool> {
        if self.parallel.is_none() {
            return Ok(false);
        }
        self.lap(Stage::Merge);
        let parallel = self.parallel.as_mut();
        let group = parallel.and_then(|p| p.take(&mut self.compressor));
        self.lap(Stage::Compress);
        let Some(group) = group.transpose()? else {
            return Ok(false);
        };
        for (raw, shrunk) in group.blocks() {
            self.write_block(raw, shrunk)?;
        }
        Ok(true)
    }

    /// Writes all blocks that other threads compress, and ends the threads.
    fn end_parallel(&mut self) -> Result<()> {
        if let Some(parallel) = &mut self.parallel {
            parallel.offer_rest();
        }
        while self.write_group()? {}
        if let Some(parallel) = self.parallel.take() {
            let cpu_ns = parallel.end();
            if let Some(stages) = &self.options.stages {
                stages.charge(Stage::Compress, cpu_ns);
            }
        }
        Ok(())
    }

    /// Writes a data block, as it is where it did not shrink.
    fn write_block(&mut self, raw: &[u8], shrunk: Option<&[u8]>) -> Result<()> {
        let (stored, codec) = match shrunk {
            Some(shrunk) => (shrunk, self.options.compression),
            None => (raw, Codec::None),
        };
        if codec != self.options.compression {
            self.props.num_data_blocks_compression_rejected += 1;
        }
        let handle = self.write_stored(stored, codec)?;
        if let Some(fresh) = &self.options.fresh {
            fresh.keep_data(self.options.file_no, handle, raw);
        }
        self.raw_written += raw.len() as u64;
        self.index.push_handle(handle);
        if self.options.table.block_align {
            let align = PAGE.min(self.options.table.block_size) as u64;
            let pad = (align - self.offset % align) % align;
            self.append(&vec![0; pad as usize])?;
            self.lap(Stage::Write);
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes a block and its trailer.
    fn write_stored(&mut self, stored: &[u8], codec: Codec) -> Result<BlockHandle> {
        let handle = BlockHandle {
            offset: self.offset,
            size: stored.len() as u64,
        };
        let type_byte = codec as u8;
        self.lap(Stage::Merge);
        let sum = self.options.table.checksum.compute_with_context(
            stored,
            type_byte,
            self.base,
            self.offset,
        );
        let mut trailer = [type_byte, 0, 0, 0, 0];
        trailer[1..].copy_from_slice(&sum.to_le_bytes());
        self.lap(Stage::Checksum);
        if codec != Codec::None && !self.used.contains(&codec) {
            self.used.push(codec);
        }
        self.append(stored)?;
        self.append(&trailer)?;
        self.lap(Stage::Write);
        Ok(handle)
    }

    /// Writes an index block, compressed where that is wanted and pays.
    fn write_index(&mut self, raw: &[u8]) -> Result<BlockHandle> {
        if self.options.compression != Codec::None && self.options.table.enable_index_compression {
            let mut compressed = std::mem::take(&mut self.compressed);
            self.lap(Stage::Merge);
            let smaller = self.index_compressor.compress(raw, &mut compressed)?;
            self.lap(Stage::Compress);
            let handle = if smaller {
                self.write_stored(&compressed, self.options.compression)
            } else {
                self.write_stored(raw, Codec::None)
            };
            self.compressed = compressed;
            return handle;
        }
        self.write_stored(raw, Codec::None)
    }

    /// Makes the dictionary from the buffered blocks, and writes them.
    fn unbuffer(&mut self) -> Result<()> {
        let Some(buffered) = self.buffered.take() else {
            return Ok(());
        };
        self.lap(Stage::Merge);
        if let Some(bytes) = buffered.dictionary(&self.options)? {
            let dict = Dictionary::new(bytes)?;
            let options = self.options.compression_opts.clone();
            self.compressor = Compressor::new(self.options.compression, options, Some(&dict))?;
            self.dict = Some(dict);
        }
        self.lap(Stage::Compress);
        let mut start = 0;
        for end in buffered.ends {
            self.write_data(&buffered.bytes[start..end])?;
            start = end;
        }
        Ok(())
    }

    /// Bytes written and buffered so far: what the file will have, without its tail.
    pub fn file_size(&self) -> u64 {
        let buffered = self.buffered.as_ref().map_or(0, |b| b.bytes.len());
        self.offset
            + buffered as u64
            + self.parallel_size()
            + if self.data.is_empty() {
                0
            } else {
                self.data.size_estimate() as u64
            }
    }
    /// Bytes that the blocks which other threads compress are likely to take.
    fn parallel_size(&self) -> u64 {
        let pending = self
            .parallel
            .as_ref()
            .map_or(0, ParallelCompression::pending) as u64;
        if self.raw_written == 0 {
            return pending;
        }
        (pending as f64 * self.offset as f64 / self.raw_written as f64) as u64
    }
    /// The size that the file is likely to have when finished now, tail included.
    pub fn estimated_file_size(&self) -> u64 {
        let filter = self
            .filter
            .as_ref()
            .map_or(0, TableFilterBuilder::size_estimate);
        self.file_size() + (self.index.size_estimate() + filter) as u64 + 1024
    }
    /// Entries and tombstones added.
    pub fn num_entries(&self) -> u64 {
        self.props.num_entries
    }
    /// Returns whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.props.num_entries == 0
    }
    /// The properties so far.
    pub fn properties(&self) -> &TableProperties {
        &self.props
    }

    /// Writes the rest of the table and gives back the file, flushed but neither synced nor closed.
    pub fn finish(mut self) -> Result<(TableSummary, Box<dyn WritableFile>)> {
        self.cut_block(None)?;
        self.unbuffer()?;
        self.end_parallel()?;
        let tail_start = self.offset;
        self.props.tail_start_offset = tail_start;
        self.props.data_size = tail_start;
        let t = self.options.table.clone();
        let form = IndexForm {
            user_keys: t.format_version >= 3 && !self.split_key,
            delta_values: t.format_version >= 4 && !t.block_align,
            first_keys: t.index_type == IndexType::BinarySearchWithFirstKey,
        };
        let mut meta: BTreeMap<&'static str, BlockHandle> = BTreeMap::new();
        if let Some((name, handle)) = self.write_filter(form)? {
            meta.insert(name, handle);
        }
        let index = self.write_index_blocks(form)?;
        if let Some(dict) = self.dict.take() {
            meta.insert(
                COMPRESSION_DICT_BLOCK,
                self.write_stored(dict.as_bytes(), Codec::None)?,
            );
        }
        if let Some(handle) = self.write_tombstones()? {
            meta.insert(RANGE_DEL_BLOCK, handle);
        }
        self.fill_properties(form);
        meta.insert(PROPERTIES_BLOCK, self.write_properties()?);
        if t.format_version >= 6 {
            meta.insert(INDEX_BLOCK, index);
        }
        let mut block = BlockBuilder::new(1);
        for (name, handle) in &meta {
            block.add(name.as_bytes(), &handle.encode());
        }
        let metaindex = self.write_stored(block.finish(), Codec::None)?;
        let footer = Footer {
            version: t.format_version,
            checksum: t.checksum,
            metaindex,
            index,
            base_context_checksum: self.base,
        };
        let bytes = footer.encode(self.offset)?;
        self.lap(Stage::Merge);
        self.append(&bytes)?;
        self.file.flush()?;
        self.lap(Stage::Write);
        let bounds = if self.first_key.is_empty() {
            None
        } else {
            Some((
                InternalKey::from_encoded(&self.first_key)?,
                InternalKey::from_encoded(&self.last_key)?,
            ))
        };
        let summary = TableSummary {
            file_size: self.offset,
            tail_size: self.offset - tail_start,
            unique_id: self.props.unique_id().unwrap_or(UniqueId::NONE),
            properties: self.props,
            bounds,
            seqs: self.seqs,
        };
        Ok((summary, self.file))
    }

    fn write_filter(&mut self, form: IndexForm) -> Result<Option<(&'static str, BlockHandle)>> {
        let Some(filter) = self.filter.take() else {
            return Ok(None);
        };
        self.props.num_filter_entries = filter.entries();
        let before = self.offset;
        let interval = self.options.table.index_block_restart_interval;
        let last_key = std::mem::take(&mut self.last_key);
        self.lap(Stage::Merge);
        let written = filter.write(&last_key, form, interval, |block, is_filter| {
            self.lap(Stage::Filter);
            let handle = self.write_stored(block, Codec::None)?;
            if let (Some(fresh), true) = (&self.options.fresh, is_filter) {
                fresh.keep_filter(self.options.file_no, handle, block);
            }
            Ok(handle)
        })?;
        self.lap(Stage::Filter);
        self.last_key = last_key;
        self.props.filter_size = self.offset - before;
        Ok(written)
    }

    fn write_index_blocks(&mut self, form: IndexForm) -> Result<BlockHandle> {
        let before = self.offset;
        let entries = std::mem::replace(&mut self.index, IndexEntries::new(false));
        let t = &self.options.table;
        let interval = t.index_block_restart_interval;
        let partition =
            (t.index_type == IndexType::TwoLevelIndexSearch).then_some(t.metadata_block_size);
        let written = entries.write(form, interval, partition, |block| self.write_index(block))?;
        self.props.index_size = self.offset - before;
        self.props.index_partitions = written.partitions;
        if partition.is_some() {
            self.props.top_level_index_size = written.top.size + BLOCK_TRAILER_LEN as u64;
        }
        Ok(written.top)
    }

    fn write_tombstones(&mut self) -> Result<Option<BlockHandle>> {
        if self.tombstones.is_empty() {
            return Ok(None);
        }
        let mut keyed: Vec<(InternalKey, Vec<u8>)> = std::mem::take(&mut self.tombstones)
            .into_iter()
            .map(|t| {
                (
                    InternalKey::new(&t.start, t.seq, ValueType::RangeDeletion),
                    t.end,
                )
            })
            .collect();
        let order = &self.options.order;
        keyed.sort_by(|a, b| order.compare_internal(a.0.as_bytes(), b.0.as_bytes()));
        let mut block = BlockBuilder::new(1);
        for (key, end) in &keyed {
            block.add(key.as_bytes(), end);
        }
        self.write_stored(block.finish(), Codec::None).map(Some)
    }

    fn write_properties(&mut self) -> Result<BlockHandle> {
        let mut block = BlockBuilder::new(u32::MAX);
        for (name, value) in self.props.encode() {
            block.add(&name, &value);
        }
        self.write_stored(block.finish(), Codec::None)
    }

    fn fill_properties(&mut self, form: IndexForm) {
        let (o, t, p) = (&self.options, &self.options.table, &mut self.props);
        let or_null = |name: Option<String>| name.unwrap_or_else(|| "nullptr".to_string());
        p.index_type = Some(t.index_type as u32);
        p.index_key_is_user_key = form.user_keys;
        p.index_value_is_delta_encoded = form.delta_values;
        p.format_version = u64::from(t.format_version);
        p.data_block_restart_interval = u64::from(t.block_restart_interval.max(1));
        p.index_block_restart_interval = u64::from(t.index_block_restart_interval.max(1));
        p.column_family_id = u64::from(o.family.0);
        p.column_family_name = o.family_name.clone();
        p.comparator_name = o.order.name().to_string();
        p.merge_operator_name = or_null(o.merge_operator.clone());
        p.prefix_extractor_name = or_null(o.prefix_extractor.as_ref().map(|e| e.name()));
        p.filter_policy_name = t
            .filter_policy
            .map_or_else(String::new, |f| f.property_name().to_string());
        p.property_collectors_names = format!("[{}]", o.collectors.join(","));
        p.compression_name = match t.format_version {
            7.. => property_v7(self.used.iter().copied()),
            _ => o.compression.property_name().to_string(),
        };
        p.compression_options = o.compression_opts.to_string();
        p.whole_key_filtering = Some(t.whole_key_filtering);
        p.prefix_filtering = Some(t.filter_policy.is_some() && o.prefix_extractor.is_some());
        p.decoupled_partitioned_filters = Some(true);
        p.creation_time = o.creation_time;
        p.oldest_key_time = o.oldest_key_time;
        p.newest_key_time = o.newest_key_time;
        p.file_creation_time = o.file_creation_time;
        p.db_id = o.db_id.clone();
        p.db_session_id = o.db_session_id.clone();
        p.db_host_id = o.db_host_id.clone();
        p.orig_file_number = o.file_no.0;
        p.key_smallest_seqno = self.seqs.map(|s| s.0.0);
        p.key_largest_seqno = self.seqs.map(|s| s.1.0);
        if o.external {
            p.external_sst_file_version = Some(2);
            p.external_sst_file_global_seqno = Some(0);
        }
        for (name, value) in &o.user_properties {
            p.user_collected
                .insert(name.as_bytes().to_vec(), value.clone());
        }
    }
}

/// A base for context checksums out of what tells this file from others; never 0.
fn derived_base(o: &TableBuilderOptions) -> u32 {
    let id = UniqueId::from_identity_forced(&o.db_id, &o.db_session_id, o.file_no.0).0;
    let mixed = (id[0] ^ id[1].rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as u32).max(1)
}
