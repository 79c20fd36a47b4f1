//! Reads the sound blocks of a damaged table.
//!
//! [`Salvage::open`] finds the data blocks: by the index, and where the index or a part of it
//! cannot be read by searching for blocks whose checksums hold ([`super::search`]).
//! [`Salvage::walk`] then gives the entries of the sound blocks in order, and says of each damaged
//! one between which keys it was.
//!
//! A block counts as sound when its checksum holds, it can be expanded and walked to its end, and
//! all of its keys are in order, above those before it, and inside the bounds that the caller
//! knows. Nothing of another block is given. A file that cannot be read at all is an error of
//! another kind than damage, unless the caller insists.
//!
//! Changes nothing. Thread-safety: used by one thread.

use super::block_file::{BlockFile, TRAILER};
use super::fetch::Fetcher;
use super::open::{
    check_features, fetcher_of, global_seq, list_meta, properties_at, read_tombstones,
};
use super::options::IndexType;
use super::search::Search;
use esker_codec::checksum::ChecksumType;
use esker_codec::compress::{Codec, Dictionary, codecs_of_property};
use esker_env::RandomAccessFile;
use esker_format::block::{Block, BlockCursor, IndexBlock, IndexForm};
use esker_format::footer::{BlockHandle, Footer};
use esker_format::key::user_key;
use esker_format::properties::{
    COMPRESSION_DICT_BLOCK, INDEX_BLOCK, PROPERTIES_BLOCK, RANGE_DEL_BLOCK, TableProperties,
};
use esker_format::{InternalKey, KeyOrder, ParsedKey, RawTombstone, Seq, ValueType};
use esker_status::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Facts about a damaged table from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct SalvageOptions {
    /// The order of its keys.
    pub order: KeyOrder,
    /// Smallest and largest key that the MANIFEST gives the table.
    pub bounds: Option<(InternalKey, InternalKey)>,
    /// Smallest and largest sequence that the MANIFEST gives the table.
    pub seqs: Option<(Seq, Seq)>,
    /// The bytes that the MANIFEST gives the table: what the file has behind them is not looked at.
    pub size: Option<u64>,
    /// Blocks that the system refuses to read are as good as damaged.
    pub skip_unreadable: bool,
}

/// A place where nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRange {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes, as far as they are known.
    pub bytes: u64,
    /// The last user key before it; `None` when nothing was read before.
    pub after: Option<Vec<u8>>,
    /// A user key at or behind its end; `None` when nothing was read behind it.
    pub before: Option<Vec<u8>>,
    /// The error.
    pub why: String,
}

/// Entries and damage that [`Salvage::walk`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageCounts {
    /// Entries.
    pub entries: u64,
    /// The blocks that they were in.
    pub blocks: u64,
    /// The places that were left out, in the order of the file.
    pub damages: Vec<DamagedRange>,
    /// The last user key.
    pub last: Option<Vec<u8>>,
}

/// A part of the data of a table.
#[derive(Debug)]
enum TablePart {
    /// A block, with the index's word for a key at or after its last.
    Block(BlockHandle, Option<Vec<u8>>),
    /// Bytes in which no block was found, and why that had to be tried.
    Gap(u64, u64, String),
}

impl TablePart {
    fn offset(&self) -> u64 {
        match self {
            TablePart::Block(handle, _) => handle.offset,
            TablePart::Gap(start, ..) => *start,
        }
    }
}

/// A damaged table.
#[derive(Debug)]
pub struct Salvage {
    fetcher: Fetcher,
    options: SalvageOptions,
    properties: Option<TableProperties>,
    dict: Option<Dictionary>,
    tombstones: Vec<RawTombstone>,
    global_seq: Option<Seq>,
    places: Vec<TablePart>,
    /// Damage of the table outside its data.
    notes: Vec<String>,
    lost_tombstones: bool,
    /// Where the data ends, and whether that is more than a guess.
    end: (u64, bool),
}

/// The parts of a table that lead to its data, as far as they can be read.
struct Parts {
    footer: Option<Footer>,
    meta: Option<BTreeMap<String, BlockHandle>>,
    properties: Option<TableProperties>,
}

/// `None` for damage, which `notes` then says; what the system refused ends the attempt unless it
/// is to be skipped.
fn damaged<T>(
    found: Result<T>,
    what: &str,
    skip: bool,
    notes: &mut Vec<String>,
) -> Result<Option<T>> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.is_corruption() || skip => {
            notes.push(format!("{what}: {}", e.message()));
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// Returns whether a block cannot be believed: an unknown codec is the result of damage.
fn is_damage(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Corruption | ErrorKind::NotSupported)
}

/// `NotSupported` when blocks may be of a codec that this build was made without: they would pass
/// for damage.
fn check_codecs(properties: Option<&TableProperties>) -> Result<()> {
    let named = properties.and_then(|p| codecs_of_property(&p.compression_name));
    let may_be = named.unwrap_or_else(|| Codec::ALL.to_vec());
    let optional = may_be.into_iter().filter(|codec| codec.feature().is_some());
    optional.into_iter().try_for_each(Codec::check_supported)
}

impl Parts {
    fn read(
        file: &Arc<dyn RandomAccessFile>,
        options: &SalvageOptions,
        notes: &mut Vec<String>,
    ) -> Result<(Fetcher, Parts)> {
        let skip = options.skip_unreadable;
        let size = options.size.map_or(file.len(), |said| said.min(file.len()));
        let Some((footer, fetcher)) =
            damaged(fetcher_of(file, size, None, 0), "footer", skip, notes)?
        else {
            let fetcher = Fetcher {
                blocks: BlockFile {
                    file: file.clone(),
                    end: size,
                    walks: None,
                },
                checksum: ChecksumType::None,
                base: 0,
                max_block: u32::MAX as usize,
            };
            let parts = Parts {
                footer: None,
                meta: None,
                properties: None,
            };
            return Ok((fetcher, parts));
        };
        let meta = fetcher
            .fetch(footer.metaindex, true, None)
            .and_then(|raw| list_meta(&Block::parse(raw.bytes)?, fetcher.blocks.end));
        let meta = damaged(meta, "metaindex block", skip, notes)?;
        let handle = meta.as_ref().and_then(|m| m.get(PROPERTIES_BLOCK).copied());
        let properties = match handle {
            None => None,
            Some(handle) => {
                let read = properties_at(&fetcher, handle);
                damaged(read, "properties block", skip, notes)?
            }
        };
        if let Some(p) = &properties {
            check_features(p, &footer, true, &options.order)?;
        }
        let parts = Parts {
            footer: Some(footer),
            meta,
            properties,
        };
        Ok((fetcher, parts))
    }

    fn handle(&self, name: &str) -> Option<BlockHandle> {
        self.meta.as_ref()?.get(name).copied()
    }

    /// Where the data ends; an upper bound when neither the properties nor the metaindex can be
    /// read.
    fn data_end(&self, blocks_end: u64) -> u64 {
        let mut end = blocks_end;
        let own = self.footer.iter().flat_map(|f| [f.metaindex, f.index]);
        let listed = self.meta.iter().flat_map(BTreeMap::values).copied();
        for handle in own.chain(listed).filter(|h| !h.is_null()) {
            end = end.min(handle.offset);
        }
        let said = self.properties.as_ref().map(|p| match p.tail_start_offset {
            0 => p.data_size,
            start => start,
        });
        said.filter(|n| *n > 0).map_or(end, |n| end.min(n))
    }
}

impl Salvage {
    /// Finds what there is of the table in `file`. `Corruption` when not even the borders of its
    /// blocks can be found; other errors when the file cannot be read, or is of a kind that this
    /// build does not read.
    pub fn open(file: Arc<dyn RandomAccessFile>, options: SalvageOptions) -> Result<Salvage> {
        let path = file.path().to_path_buf();
        Self::open_inner(&file, options).map_err(|e| e.with_file(path))
    }

    fn open_inner(file: &Arc<dyn RandomAccessFile>, options: SalvageOptions) -> Result<Salvage> {
        let (skip, mut notes) = (options.skip_unreadable, Vec::new());
        let (fetcher, parts) = Parts::read(file, &options, &mut notes)?;
        check_codecs(parts.properties.as_ref())?;
        let dict = match parts.handle(COMPRESSION_DICT_BLOCK) {
            None => None,
            Some(h) => {
                let read = fetcher.fetch(h, true, None);
                let read = read.and_then(|raw| Dictionary::new(raw.bytes));
                damaged(read, "compression dictionary", skip, &mut notes)?
            }
        };
        let largest = options.seqs.map(|(_, largest)| largest);
        let global_seq = match &parts.properties {
            Some(p) => global_seq(p, largest)?,
            // Ingested tables hold sequence 0 and get one for all of their entries.
            None => options
                .seqs
                .filter(|(low, high)| low == high && *high > Seq::ZERO)
                .map(|(_, high)| high),
        };
        let said = parts.properties.as_ref().map(|p| p.num_range_deletions);
        let (tombstones, lost_tombstones) = match parts.handle(RANGE_DEL_BLOCK) {
            Some(h) => {
                let read = read_tombstones(&fetcher, h, global_seq, &options.order);
                let read = damaged(read, "block of range deletions", skip, &mut notes)?;
                (read.clone().unwrap_or_default(), read.is_none())
            }
            None => (Vec::new(), said.map_or(parts.meta.is_none(), |n| n > 0)),
        };
        let mut salvage = Salvage {
            fetcher,
            properties: None,
            dict,
            tombstones,
            global_seq,
            places: Vec::new(),
            notes,
            lost_tombstones,
            end: (0, parts.properties.is_some() || parts.meta.is_some()),
            options,
        };
        salvage.find_places(&parts)?;
        salvage.properties = parts.properties;
        Ok(salvage)
    }

    /// The properties, when they can be read.
    pub fn properties(&self) -> Option<&TableProperties> {
        self.properties.as_ref()
    }

    /// The range deletions that can be read, as stored.
    pub fn range_tombstones(&self) -> &[RawTombstone] {
        &self.tombstones
    }

    /// Returns whether range deletions are lost, or may be: what would say so is damaged too.
    pub fn has_lost_tombstones(&self) -> bool {
        self.lost_tombstones
    }

    /// Where the data ends, as far as that is known.
    pub fn data_end(&self) -> u64 {
        self.end.0
    }

    /// Returns whether it is known where the data ends.
    pub fn is_end_known(&self) -> bool {
        self.end.1
    }

    /// Returns the damage outside data, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The places of data blocks: by the index, or by searching where there is none.
    fn find_places(&mut self, parts: &Parts) -> Result<()> {
        let end = parts.data_end(self.fetcher.blocks.end);
        self.end.0 = end;
        let index = match self.index(parts) {
            Ok(index) => index,
            Err(e) if e.is_corruption() || self.options.skip_unreadable => {
                self.notes.push(format!("index block: {}", e.message()));
                None
            }
            Err(e) => return Err(e),
        };
        let Some((index, form, is_top)) = index else {
            return self.search(parts, 0, end, "the index cannot be read");
        };
        if !is_top {
            for i in 0..index.len() {
                let upper = Some(index.user(i).to_vec());
                self.places.push(TablePart::Block(index.handle(i), upper));
            }
            return Ok(());
        }
        // Data of partitions that cannot be read lies between that of their neighbours.
        let mut at = 0;
        let mut is_known = true;
        for i in 0..index.len() {
            let part = self.index_block(index.handle(i), form);
            match part {
                Ok(part) if !part.is_empty() => {
                    if !is_known {
                        let from = part.handle(0).offset;
                        self.search(parts, at, from, "a part of the index cannot be read")?;
                    }
                    for i in 0..part.len() {
                        let upper = Some(part.user(i).to_vec());
                        at = part.handle(i).end().unwrap_or(end);
                        self.places.push(TablePart::Block(part.handle(i), upper));
                    }
                    is_known = true;
                }
                Ok(_) => {}
                Err(e) if e.is_corruption() || self.options.skip_unreadable => {
                    self.notes
                        .push(format!("partition of the index: {}", e.message()));
                    is_known = false;
                }
                Err(e) => return Err(e),
            }
        }
        if is_known {
            Ok(())
        } else {
            self.search(parts, at, end, "a part of the index cannot be read")
        }
    }

    /// The index, or its top level; `None` when its form cannot be known, since the properties
    /// cannot be read.
    fn index(&self, parts: &Parts) -> Result<Option<(IndexBlock, IndexForm, bool)>> {
        let (Some(footer), Some(p)) = (&parts.footer, &parts.properties) else {
            return Ok(None);
        };
        let handle = match footer.version {
            ..6 => Some(footer.index),
            _ => parts.handle(INDEX_BLOCK),
        };
        let kind = p.index_type.unwrap_or(0);
        let kind = IndexType::from_u32(kind)
            .ok_or_else(|| Error::not_supported(format!("table index type {kind}")))?;
        let form = IndexForm {
            user_keys: p.index_key_is_user_key,
            delta_values: p.index_value_is_delta_encoded,
            first_keys: kind == IndexType::BinarySearchWithFirstKey,
        };
        let handle = handle.ok_or_else(|| Error::corruption("the metaindex names none"))?;
        let index = self.index_block(handle, form)?;
        Ok(Some((index, form, kind == IndexType::TwoLevelIndexSearch)))
    }

    fn index_block(&self, handle: BlockHandle, form: IndexForm) -> Result<IndexBlock> {
        let raw = self.fetcher.fetch(handle, true, None)?;
        let block = Block::parse(raw.bytes)?;
        IndexBlock::parse(&block, form, &self.options.order, self.fetcher.blocks.end)
    }

    /// Looks for blocks in `from..end`.
    fn search(&mut self, parts: &Parts, from: u64, end: u64, why: &str) -> Result<()> {
        // Else the data may end earlier, and index blocks follow.
        let is_exact = self.end.1;
        let named = parts.properties.as_ref();
        let named = named.and_then(|p| codecs_of_property(&p.compression_name));
        let mut search = Search::new(&self.fetcher, self.dict.as_ref(), from, end)
            .compressed(named.unwrap_or_default());
        if parts.footer.is_none() {
            // What the blocks are checked with stood in the footer.
            let Some((checksum, base)) = search.guess()? else {
                let what = "its footer is gone, and without it no border of a block can be found";
                return Err(Error::corruption(what));
            };
            self.fetcher.checksum = checksum;
            self.fetcher.base = base;
            search = Search::new(&self.fetcher, self.dict.as_ref(), from, end);
        }
        let found = search.run(is_exact, self.options.skip_unreadable)?;
        for handle in found.blocks {
            self.places.push(TablePart::Block(handle, None));
        }
        for (start, stop) in found.gaps {
            let gap = format!("{why}, and no block was found here");
            self.places.push(TablePart::Gap(start, stop, gap));
        }
        self.places.sort_by_key(TablePart::offset);
        Ok(())
    }

    /// Gives `visit` every entry of the sound blocks in order. The error of `visit` ends the walk.
    pub fn walk(&self, mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<SalvageCounts> {
        let mut out = SalvageCounts::default();
        let mut last: Vec<u8> = Vec::new();
        // Damages whose end is not known yet.
        let mut open: Vec<DamagedRange> = Vec::new();
        for place in &self.places {
            let damage = |why: String, bytes, before| DamagedRange {
                offset: place.offset(),
                bytes,
                after: (!last.is_empty()).then(|| user_key(&last).to_vec()),
                before,
                why,
            };
            let (handle, upper) = match place {
                TablePart::Block(handle, upper) => (*handle, upper),
                TablePart::Gap(start, stop, why) => {
                    open.push(damage(why.clone(), stop - start, None));
                    continue;
                }
            };
            let block = match self.sound(handle, &last) {
                Ok(block) => block,
                Err(e) if is_damage(&e) || self.options.skip_unreadable => {
                    let bytes = handle.size + TRAILER as u64;
                    let lost = damage(e.message().to_owned(), bytes, upper.clone());
                    open.push(lost);
                    continue;
                }
                Err(e) => return Err(e.with_file(self.fetcher.blocks.file.path())),
            };
            let mut cursor = self.cursor(&block);
            cursor.seek_to_first();
            for lost in &mut open {
                lost.before
                    .get_or_insert_with(|| user_key(cursor.key()).to_vec());
            }
            out.damages.append(&mut open);
            out.blocks += 1;
            while cursor.valid() {
                visit(cursor.key(), cursor.value())?;
                out.entries += 1;
                last.clear();
                last.extend_from_slice(cursor.key());
                cursor.next();
            }
        }
        out.damages.append(&mut open);
        out.last = (!last.is_empty()).then(|| user_key(&last).to_vec());
        Ok(out)
    }

    fn cursor<'b>(&self, block: &'b Block) -> BlockCursor<&'b Block> {
        BlockCursor::new(block, self.options.order.clone()).with_global_seq(self.global_seq)
    }

    /// The block at `handle`, all of whose entries can be believed and are above `last`.
    fn sound(&self, handle: BlockHandle, last: &[u8]) -> Result<Block> {
        let raw = self.fetcher.fetch(handle, true, self.dict.as_ref())?;
        let block = Block::parse(raw.bytes)?;
        let order = &self.options.order;
        let mut cursor = self.cursor(&block);
        let (mut before, mut any) = (last.to_vec(), false);
        cursor.seek_to_first();
        while cursor.valid() {
            let (key, any_before) = (cursor.key(), !before.is_empty());
            let parsed = ParsedKey::parse(key)?;
            if parsed.kind == ValueType::RangeDeletion {
                return Err(Error::corruption("a range deletion among data"));
            }
            if any_before && order.compare_internal(&before, key).is_ge() {
                return Err(Error::corruption("its keys are out of order"));
            }
            self.check_bounds(key, parsed.seq)?;
            before.clear();
            before.extend_from_slice(key);
            any = true;
            cursor.next();
        }
        cursor.status()?;
        if any {
            Ok(block)
        } else {
            Err(Error::corruption("it holds no entry"))
        }
    }

    fn check_bounds(&self, key: &[u8], seq: Seq) -> Result<()> {
        let order = &self.options.order;
        let outside = self.options.bounds.as_ref().is_some_and(|(low, high)| {
            order.compare_internal(key, low.as_bytes()).is_lt()
                || order.compare_internal(key, high.as_bytes()).is_gt()
        });
        let seqs = self.options.seqs;
        if outside || seqs.is_some_and(|(low, high)| seq < low || seq > high) {
            Err(Error::corruption(
                "its entries are not those of the table that the MANIFEST means",
            ))
        } else {
            Ok(())
        }
    }
}
