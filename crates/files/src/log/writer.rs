//! Writing a log: the hottest path of the engine.
//!
//! A record is copied once, into one buffer, behind a header that is patched when its CRC is known;
//! no allocation happens per record. [`LogWriter::add_record`] fills the buffer,
//! [`LogWriter::flush`] hands it to the operating system and [`LogWriter::sync`] to the device, so
//! that the caller decides when. The file below should be opened without a buffer of its own. After
//! an error the tail of the file is unknown and every later call fails. One thread at a time.

use esker_codec::checksum::{crc32c, crc32c_extend, mask};
use esker_codec::compress::{Codec, StreamEncoder};
use esker_env::WritableFile;
use esker_format::log::{
    BLOCK_SIZE, HEADER_LEN, Predecessor, RECYCLABLE_HEADER_LEN, RecordType, encode_timestamp_sizes,
};
use esker_format::{FamilyId, FileNo};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};

/// Buffered bytes beyond which a record is passed to the file at once.
const BUFFER_LIMIT: usize = 1 << 20;
static ZEROS: [u8; BLOCK_SIZE] = [0; BLOCK_SIZE];

/// How a log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogWriterOptions {
    /// The log's own number, for the recyclable header. `None` writes the legacy header.
    pub recycle: Option<FileNo>,
    /// `Codec::None` or `Codec::Zstd`.
    pub compression: Codec,
}

/// Appends records to a log file.
#[derive(Debug)]
pub struct LogWriter {
    file: Box<dyn WritableFile>,
    buffer: Vec<u8>,
    block_offset: usize,
    log_number: Option<u32>,
    /// CRC of the bytes before the payload, by position in the record: full, first, middle, last.
    prefix_crcs: [u32; 4],
    encoder: Option<StreamEncoder>,
    joined: Vec<u8>,
    frame: Vec<u8>,
    timestamped: Vec<FamilyId>,
    failed: Option<Error>,
}

impl LogWriter {
    /// Writes to the end of `file`; a new file gets the compression record where one is needed.
    pub fn new(file: Box<dyn WritableFile>, options: LogWriterOptions) -> Result<LogWriter> {
        let encoder = match options.compression {
            Codec::None => None,
            Codec::Zstd => Some(StreamEncoder::new()?),
            other => {
                let message = format!("logs cannot be compressed with {other:?}");
                return Err(Error::not_supported(message).with_hint("use zstd or no compression"));
            }
        };
        let log_number = options.recycle.map(|n| n.0 as u32);
        let base = if log_number.is_some() {
            RecordType::RecyclableFull
        } else {
            RecordType::Full
        };
        let prefix_crcs = [0, 1, 2, 3].map(|i| prefix_crc(base as u8 + i, log_number));
        let (start, compressed) = (file.len(), encoder.is_some());
        let mut writer = LogWriter {
            file,
            buffer: Vec::new(),
            block_offset: (start % BLOCK_SIZE as u64) as usize,
            log_number,
            prefix_crcs,
            encoder,
            joined: Vec::new(),
            frame: Vec::new(),
            timestamped: Vec::new(),
            failed: None,
        };
        if compressed && start == 0 {
            let body = u32::from(options.compression as u8).to_le_bytes();
            writer.special(RecordType::SetCompression, &body)?;
        }
        Ok(writer)
    }

    /// Adds a record to the buffer.
    #[inline]
    pub fn add_record(&mut self, record: &[u8]) -> Result<()> {
        self.add_record_parts(&[record])
    }

    /// Adds a record given in pieces to the buffer.
    pub fn add_record_parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        self.check()?;
        match &mut self.encoder {
            None => self.emit(parts),
            Some(encoder) => {
                let mut frame = std::mem::take(&mut self.frame);
                let encoded = match parts {
                    [one] => encoder.encode(one, &mut frame),
                    _ => {
                        self.joined.clear();
                        parts.iter().for_each(|p| self.joined.extend_from_slice(p));
                        encoder.encode(&self.joined, &mut frame)
                    }
                };
                if encoded.is_ok() {
                    self.emit(&[&frame]);
                }
                self.frame = frame;
                encoded?;
            }
        }
        self.spill()
    }

    /// Records the timestamp sizes of families that this log does not have yet; sizes of 0 are left
    /// out.
    pub fn add_timestamp_sizes(&mut self, sizes: &[(FamilyId, u16)]) -> Result<()> {
        let new: Vec<(FamilyId, u16)> = sizes
            .iter()
            .filter(|(family, size)| *size != 0 && !self.timestamped.contains(family))
            .copied()
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut body = Vec::with_capacity(new.len() * 6);
        encode_timestamp_sizes(&new, &mut body);
        let kind = match self.log_number {
            Some(_) => RecordType::RecyclableTimestampSizes,
            None => RecordType::TimestampSizes,
        };
        self.special(kind, &body)?;
        self.timestamped
            .extend(new.iter().map(|(family, _)| *family));
        Ok(())
    }

    /// Records what the log before this one holds.
    pub fn add_predecessor(&mut self, predecessor: &Predecessor) -> Result<()> {
        let mut body = Vec::with_capacity(24);
        predecessor.encode(&mut body);
        let kind = match self.log_number {
            Some(_) => RecordType::RecyclablePredecessor,
            None => RecordType::Predecessor,
        };
        self.special(kind, &body)
    }

    /// Hands everything added to the operating system.
    #[inline]
    pub fn flush(&mut self) -> Result<()> {
        self.pass_on()?;
        let flushed = self.file.flush();
        self.note(flushed)
    }

    /// Hands everything added to the operating system, and begins what [`LogWriter::sync`] waits
    /// for.
    pub fn begin_sync(&mut self) -> Result<()> {
        self.pass_on()?;
        let begun = self.file.flush().and_then(|()| self.file.begin_sync());
        self.note(begun)
    }

    /// Makes everything added survive power loss.
    pub fn sync(&mut self) -> Result<()> {
        self.pass_on()?;
        let synced = self.file.flush().and_then(|()| self.file.sync());
        self.note(synced)
    }

    /// Flushes and closes the file; does not sync.
    pub fn close(&mut self) -> Result<()> {
        self.pass_on()?;
        let closed = self.file.close();
        self.note(closed)
    }

    /// Bytes of the log, those in the buffer included.
    #[inline]
    pub fn len(&self) -> u64 {
        self.file.len() + self.buffer.len() as u64
    }

    /// Returns whether the log has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are not handed to the operating system yet.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The file below, for its path.
    pub fn file(&self) -> &dyn WritableFile {
        &*self.file
    }

    /// Cuts a record into fragments.
    fn emit(&mut self, parts: &[&[u8]]) {
        let header_len = match self.log_number {
            Some(_) => RECYCLABLE_HEADER_LEN,
            None => HEADER_LEN,
        };
        let mut left: usize = parts.iter().map(|p| p.len()).sum();
        // One growth check: the payload, a header per block, and padding.
        self.buffer
            .reserve(left + (left / (BLOCK_SIZE - RECYCLABLE_HEADER_LEN) + 2) * 2 * header_len);
        let mut cursor = PartsCursor { parts, offset: 0 };
        let mut first = true;
        loop {
            if BLOCK_SIZE - self.block_offset < header_len {
                self.pad_block();
            }
            let take = left.min(BLOCK_SIZE - self.block_offset - header_len);
            let last = take == left;
            let position = match (first, last) {
                (true, true) => 0,
                (true, false) => 1,
                (false, false) => 2,
                (false, true) => 3,
            };
            self.fragment(position, take, header_len, &mut cursor);
            left -= take;
            first = false;
            if last {
                return;
            }
        }
    }

    #[inline]
    fn fragment(
        &mut self,
        position: u8,
        take: usize,
        header_len: usize,
        parts: &mut PartsCursor<'_>,
    ) {
        let start = self.buffer.len();
        let mut header = [0u8; RECYCLABLE_HEADER_LEN];
        header[4..6].copy_from_slice(&(take as u16).to_le_bytes());
        match self.log_number {
            Some(n) => {
                header[6] = RecordType::RecyclableFull as u8 + position;
                header[7..].copy_from_slice(&n.to_le_bytes());
            }
            None => header[6] = RecordType::Full as u8 + position,
        }
        self.buffer.extend_from_slice(&header[..header_len]);
        parts.copy_to(&mut self.buffer, take);
        let prefix = self.prefix_crcs[usize::from(position)];
        let crc = mask(crc32c_extend(prefix, &self.buffer[start + header_len..]));
        self.buffer[start..start + 4].copy_from_slice(&crc.to_le_bytes());
        self.block_offset += header_len + take;
    }

    /// Adds a record that is never split nor compressed.
    fn special(&mut self, kind: RecordType, body: &[u8]) -> Result<()> {
        self.check()?;
        let total = kind.header_len() + body.len();
        if total > BLOCK_SIZE {
            return Err(Error::invalid_argument(format!(
                "a log record of {} bytes that may not be split does not fit a block",
                body.len()
            )));
        }
        if BLOCK_SIZE - self.block_offset < total {
            self.pad_block();
        }
        let log_number = self.log_number.filter(|_| kind.is_recyclable());
        let crc = mask(crc32c_extend(prefix_crc(kind as u8, log_number), body));
        self.buffer.extend_from_slice(&crc.to_le_bytes());
        self.buffer
            .extend_from_slice(&(body.len() as u16).to_le_bytes());
        self.buffer.push(kind as u8);
        if let Some(n) = log_number {
            self.buffer.extend_from_slice(&n.to_le_bytes());
        }
        self.buffer.extend_from_slice(body);
        self.block_offset += total;
        self.spill()
    }

    fn pad_block(&mut self) {
        self.buffer.extend_from_slice(&ZEROS[self.block_offset..]);
        self.block_offset = 0;
    }

    fn spill(&mut self) -> Result<()> {
        if self.buffer.len() < BUFFER_LIMIT {
            Ok(())
        } else {
            self.pass_on()
        }
    }

    fn pass_on(&mut self) -> Result<()> {
        self.check()?;
        if self.buffer.is_empty() {
            return Ok(());
        }
        let appended = self.file.append(&self.buffer);
        self.buffer.clear();
        if self.buffer.capacity() > 4 * BUFFER_LIMIT {
            self.buffer.shrink_to(BUFFER_LIMIT);
        }
        self.note(appended)
    }

    #[inline]
    fn check(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(e) => Err(e.clone()),
        }
    }

    /// Remembers a failure: the tail of the file is unknown from then on.
    fn note(&mut self, result: Result<()>) -> Result<()> {
        let goes_on = seeded(Bug::WalFsyncRetried)
            || seeded(Bug::WalAppendAfterFailure)
            || seeded(Bug::ManifestAfterFailure);
        if let Err(e) = &result
            && !goes_on
        {
            self.failed = Some(e.clone());
        }
        result
    }
}

/// CRC of what stands between the length and the payload.
fn prefix_crc(kind: u8, log_number: Option<u32>) -> u32 {
    let crc = crc32c(&[kind]);
    log_number.map_or(crc, |n| crc32c_extend(crc, &n.to_le_bytes()))
}

/// A position in a record that is given in pieces.
struct PartsCursor<'a> {
    parts: &'a [&'a [u8]],
    offset: usize,
}

impl PartsCursor<'_> {
    #[inline]
    fn copy_to(&mut self, out: &mut Vec<u8>, mut n: usize) {
        while let Some((part, rest)) = self.parts.split_first() {
            let left = &part[self.offset..];
            if left.len() > n {
                out.extend_from_slice(&left[..n]);
                self.offset += n;
                return;
            }
            out.extend_from_slice(left);
            n -= left.len();
            self.parts = rest;
            self.offset = 0;
        }
    }
}
