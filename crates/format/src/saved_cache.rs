//! Which blocks of which tables were in the block cache: the file
//! [`super::file_name::SAVED_CACHE`].
//!
//! ```text
//! file     := magic version table* checksum
//! magic    := "eskcache"
//! version  := 1                                (one byte)
//! table    := number count offset*             (varints)
//! checksum := masked CRC-32C of all before it  (four bytes, little endian)
//! ```
//!
//! Tables stand in the order of their numbers, offsets of data blocks in rising order. The first
//! number of the file and the first offset of a table are written as they are, the others as what
//! is added to the one before: at least 1. `count` is at least 1.
//!
//! The file says where blocks are and nothing else: their sizes are in the index of the table, and
//! their contents in its data. RocksDB does not know the name of the file and leaves it alone.

use crate::coding::{Reader, put_fixed32, put_varint64};
use crate::ids::FileNo;
use esker_codec::checksum::{crc32c, mask};
use esker_status::{Error, Result};

const MAGIC: [u8; 8] = *b"eskcache";
const VERSION: u8 = 1;
const HEADER_LEN: usize = MAGIC.len() + 1;
const CHECKSUM_LEN: usize = 4;

/// The names of cached blocks, as they are read: they were checked from the first to the last byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedCache {
    bytes: Vec<u8>,
    blocks: u64,
}

/// The blocks of one table.
#[derive(Clone, Copy, Debug)]
pub struct SavedTable<'a> {
    /// The table.
    pub number: FileNo,
    /// How many blocks there are.
    pub count: u64,
    offsets: &'a [u8],
}

impl SavedCache {
    /// The names in `bytes`, which are all of a file. Nothing is allocated by what they say.
    pub fn decode(bytes: Vec<u8>) -> Result<SavedCache> {
        check_frame(&bytes)?;
        let mut saved = SavedCache { bytes, blocks: 0 };
        let mut reader = Reader::new(saved.body());
        let (mut before, mut blocks) = (None, 0u64);
        while !reader.is_empty() {
            let table = table(&mut reader, before)?;
            before = Some(table.number);
            // Each has taken a byte.
            blocks += table.count;
        }
        saved.blocks = blocks;
        Ok(saved)
    }

    /// How many blocks it names.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The tables, by number.
    pub fn tables(&self) -> impl Iterator<Item = SavedTable<'_>> {
        let mut reader = Reader::new(self.body());
        let mut before = None;
        std::iter::from_fn(move || {
            // The end is an error as well.
            let next = table(&mut reader, before).ok()?;
            before = Some(next.number);
            Some(next)
        })
    }

    fn body(&self) -> &[u8] {
        &self.bytes[HEADER_LEN..self.bytes.len() - CHECKSUM_LEN]
    }
}

impl SavedTable<'_> {
    /// Where its blocks begin, in rising order.
    pub fn offsets(&self) -> impl Iterator<Item = u64> {
        let mut reader = Reader::new(self.offsets);
        let mut before = None;
        std::iter::from_fn(move || {
            before = Some(risen(&mut reader, before).ok()?);
            before
        })
    }
}

fn check_frame(bytes: &[u8]) -> Result<()> {
    let Some(body_len) = bytes
        .len()
        .checked_sub(CHECKSUM_LEN)
        .filter(|n| *n >= HEADER_LEN)
    else {
        return Err(Error::corruption("the list of cached blocks is cut short"));
    };
    let (body, stored) = bytes.split_at(body_len);
    if body[..MAGIC.len()] != MAGIC {
        return Err(Error::corruption("no list of cached blocks"));
    }
    let computed = mask(crc32c(body));
    if stored != computed.to_le_bytes() {
        return Err(Error::corruption(format!(
            "checksum mismatch in the list of cached blocks: computed = {computed}"
        )));
    }
    match body[MAGIC.len()] {
        VERSION => Ok(()),
        other => Err(Error::not_supported(format!(
            "list of cached blocks of version {other}"
        ))),
    }
}

fn table<'a>(reader: &mut Reader<'a>, before: Option<FileNo>) -> Result<SavedTable<'a>> {
    let number = FileNo(risen(reader, before.map(|n| n.0))?);
    if number >= FileNo::LIMIT {
        return Err(Error::corruption(format!(
            "{} is no number of a table",
            number.0
        )));
    }
    let count = reader.varint64()?;
    if count == 0 {
        return Err(Error::corruption("a table without cached blocks is listed"));
    }
    let offsets = reader.rest();
    let mut offset = None;
    for _ in 0..count {
        offset = Some(risen(reader, offset)?);
    }
    let offsets = &offsets[..offsets.len() - reader.remaining()];
    Ok(SavedTable {
        number,
        count,
        offsets,
    })
}

/// The next number: the first one as it is written, the others by what is added.
fn risen(reader: &mut Reader<'_>, before: Option<u64>) -> Result<u64> {
    let by = reader.varint64()?;
    match before {
        None => Ok(by),
        Some(before) if by > 0 => (before.checked_add(by))
            .ok_or_else(|| Error::corruption("a number in the list of cached blocks overflows")),
        Some(_) => Err(Error::corruption("the list of cached blocks does not rise")),
    }
}

/// Writes the names of cached blocks.
#[derive(Debug)]
pub struct SavedCacheWriter {
    bytes: Vec<u8>,
    last: Option<FileNo>,
}

impl Default for SavedCacheWriter {
    fn default() -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        SavedCacheWriter { bytes, last: None }
    }
}

impl SavedCacheWriter {
    /// Bytes of what was added.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Adds the blocks of a table that begin at `offsets`, which rise. Tables come by their
    /// numbers; one without blocks is left out.
    pub fn add(&mut self, number: FileNo, offsets: &[u64]) {
        debug_assert!(self.last.is_none_or(|last| last < number), "tables rise");
        if offsets.is_empty() {
            return;
        }
        put_varint64(&mut self.bytes, number.0 - self.last.map_or(0, |n| n.0));
        put_varint64(&mut self.bytes, offsets.len() as u64);
        let mut before = 0;
        for offset in offsets {
            put_varint64(&mut self.bytes, offset - before);
            before = *offset;
        }
        self.last = Some(number);
    }

    /// The contents of the file.
    pub fn finish(mut self) -> Vec<u8> {
        let sum = mask(crc32c(&self.bytes));
        put_fixed32(&mut self.bytes, sum);
        self.bytes
    }
}

#[cfg(test)]
#[path = "saved_cache_tests.rs"]
mod tests;
