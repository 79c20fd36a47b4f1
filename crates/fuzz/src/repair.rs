//! Checksums and counts made right again, so that damage reaches what stands behind them.
//!
//! Each function takes bytes that were changed anywhere and corrects what it can find; nothing here
//! fails. The places are computed apart from the readers where that is short, and through them
//! where it is not.

use crate::input::{FileOf, Sink};
use esker_codec::checksum::{ChecksumType, crc32c, mask};
use esker_codec::compress::{Codec, decompress};
use esker_files::log::{LogReader, LogReaderOptions, LogWriter, LogWriterOptions, ReadOutcome};
use esker_format::FileNo;
use esker_format::batch::Records;
use esker_format::block::{Block, BlockCursor, BlockHandle, IndexBlock, IndexForm};
use esker_format::footer::{FOOTER_LEN, FORMAT_VERSION_MAX, Footer};
use esker_format::log::{BLOCK_SIZE, HEADER_LEN, RecordType};
use esker_format::{FamilyId, KeyOrder};

/// The checksums of a log's or a MANIFEST's records, from block to block.
pub fn log(file: &mut [u8]) {
    for block in file.chunks_mut(BLOCK_SIZE) {
        let mut at = 0;
        while at + HEADER_LEN <= block.len() {
            let len = usize::from(u16::from_le_bytes([block[at + 4], block[at + 5]]));
            let header =
                RecordType::from_u8(block[at + 6]).map_or(HEADER_LEN, RecordType::header_len);
            let end = (at + header + len).min(block.len());
            let sum = mask(crc32c(&block[at + 6..end]));
            if block[at..at + HEADER_LEN] != [0; HEADER_LEN] {
                block[at..at + 4].copy_from_slice(&sum.to_le_bytes());
            }
            at = end.max(at + 1);
        }
    }
}

/// The records of a log, as far as it can be read.
pub fn records(file: &[u8], number: FileNo) -> Vec<Vec<u8>> {
    let mut options = LogReaderOptions::new(number);
    options.max_record_len = crate::mutate::LONGEST;
    let mut reader = LogReader::new(FileOf::of(file), options);
    let mut out = Vec::new();
    while let Ok(outcome) = reader.next() {
        match outcome {
            ReadOutcome::Record { bytes, .. } => out.push(bytes.to_vec()),
            ReadOutcome::End | ReadOutcome::OldRecord { .. } | ReadOutcome::TornTail(_) => break,
            _ => {}
        }
    }
    out
}

/// A log of these records.
pub fn framed(records: &[Vec<u8>], options: LogWriterOptions) -> Vec<u8> {
    let (sink, file) = Sink::new();
    let written = LogWriter::new(file, options).and_then(|mut log| {
        for record in records {
            log.add_record(record)?;
        }
        log.flush()
    });
    written.expect("a sink takes everything");
    sink.bytes()
}

/// The count of a batch.
pub fn batch(rep: &mut [u8]) {
    let Some((header, body)) = rep.split_at_mut_checked(12) else {
        return;
    };
    let counted = Records::over_body(body).map_while(Result::ok);
    let count = counted.filter(|r| r.is_counted()).count() as u32;
    header[8..].copy_from_slice(&count.to_le_bytes());
}

/// The footer of a table: the checksum that versions from 6 on have.
pub fn footer(file: &mut [u8]) {
    let len = file.len();
    let Some(at) = len.checked_sub(FOOTER_LEN) else {
        return;
    };
    let tail = &file[at..];
    let word = |from: usize| {
        u32::from_le_bytes([tail[from], tail[from + 1], tail[from + 2], tail[from + 3]])
    };
    let (version, base, size) = (word(41), word(9).max(1), u64::from(word(13)));
    let checksum = ChecksumType::from_u8(tail[0]);
    if let (6..=FORMAT_VERSION_MAX, Some(checksum)) = (version, checksum)
        && let Some(offset) = (at as u64).checked_sub(size + 5)
    {
        let footer = Footer {
            version,
            checksum,
            metaindex: BlockHandle { offset, size },
            index: BlockHandle::NULL,
            base_context_checksum: base,
        };
        if let Ok(bytes) = footer.encode(at as u64) {
            file[at..].copy_from_slice(&bytes);
        }
    }
}

/// A table whose blocks are given right checksums one by one.
struct Table<'a> {
    file: &'a mut [u8],
    footer: Footer,
    mended: usize,
}

/// Most blocks that are looked at: a hostile index may name very many.
const BLOCKS_MAX: usize = 2000;

impl Table<'_> {
    /// Corrects the trailer of a block; its raw bytes when they can be had.
    fn mend(&mut self, handle: BlockHandle) -> Option<Vec<u8>> {
        handle.check_within(self.file.len() as u64).ok()?;
        self.mended += 1;
        if self.mended > BLOCKS_MAX {
            return None;
        }
        let (from, to) = (
            handle.offset as usize,
            (handle.offset + handle.size) as usize,
        );
        let kind = self.file[to];
        let sum = self
            .footer
            .block_checksum(&self.file[from..to], kind, handle.offset);
        self.file[to + 1..to + 5].copy_from_slice(&sum.to_le_bytes());
        let mut raw = Vec::new();
        let stored = &self.file[from..to];
        decompress(Codec::from_u8(kind)?, stored, None, 1 << 20, &mut raw).ok()?;
        Some(raw)
    }

    /// Corrects the trailers of an index and of all blocks that it leads to.
    fn mend_index(&mut self, handle: BlockHandle, depth: u8) {
        let Some(block) = self.mend(handle).and_then(|raw| Block::parse(raw).ok()) else {
            return;
        };
        let limit = self.file.len() as u64;
        let index = (0..8u8).find_map(|bits| {
            let form = IndexForm {
                user_keys: bits & 1 != 0,
                delta_values: bits & 2 != 0,
                first_keys: bits & 4 != 0,
            };
            let index = IndexBlock::parse(&block, form, &KeyOrder::Bytewise, limit).ok()?;
            (!index.is_empty()).then_some(index)
        });
        let Some(index) = index else { return };
        for i in 0..index.len().min(BLOCKS_MAX) {
            match depth {
                0 => drop(self.mend(index.handle(i))),
                _ => self.mend_index(index.handle(i), depth - 1),
            }
        }
    }
}

/// The footer and the trailers of all blocks of a table that can be found from it.
pub fn table(file: &mut [u8]) {
    footer(file);
    let len = file.len();
    let Ok(footer) = Footer::decode(&file[len.saturating_sub(FOOTER_LEN)..], len as u64) else {
        return;
    };
    let mut table = Table {
        file,
        footer,
        mended: 0,
    };
    let Some(meta) = table
        .mend(footer.metaindex)
        .and_then(|raw| Block::parse(raw).ok())
    else {
        return;
    };
    let mut index = footer.index;
    let mut cursor = BlockCursor::over_names(&meta);
    cursor.seek_to_first();
    while cursor.valid() && table.mended < BLOCKS_MAX {
        if let Ok(handle) = BlockHandle::decode(cursor.value()) {
            match cursor.key() {
                b"rocksdb.index" => index = handle,
                name if name.starts_with(b"partitionedfilter.") => table.mend_index(handle, 0),
                _ => drop(table.mend(handle)),
            }
        }
        cursor.next();
    }
    table.mend_index(index, 1);
}

/// The checksums of a blob file's header, footer and records.
pub fn blob(file: &mut [u8]) {
    fn sum(file: &mut [u8], from: usize, at: usize) {
        let sum = mask(crc32c(&file[from..at]));
        file[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }
    const HEADER: usize = esker_format::blob::HEADER_LEN;
    const FOOTER: usize = esker_format::blob::FOOTER_LEN;
    const RECORD: usize = esker_format::blob::RECORD_HEADER_LEN;
    if file.len() < HEADER + FOOTER {
        return;
    }
    sum(file, 0, HEADER - 4);
    let end = file.len() - FOOTER;
    let last = file.len() - 4;
    sum(file, end, last);
    let mut at = HEADER;
    while at + RECORD <= end {
        let word = |from: usize| u64::from_le_bytes(std::array::from_fn(|i| file[from + i]));
        let body = word(at).saturating_add(word(at + 8));
        sum(file, at, at + 24);
        let Some(next) = usize::try_from(body)
            .ok()
            .and_then(|n| n.checked_add(at + RECORD))
        else {
            return;
        };
        if next > end {
            return;
        }
        let of_body = mask(crc32c(&file[at + RECORD..next]));
        file[at + 28..at + 32].copy_from_slice(&of_body.to_le_bytes());
        at = next;
    }
}

/// The family that seeds use beside the default one.
pub const OTHER: FamilyId = FamilyId(3);
