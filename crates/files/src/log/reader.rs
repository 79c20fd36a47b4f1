//! Reading a log: physical records, fragments, compression, and an exact account of damage.
//!
//! [`LogReader::next`] says what comes next and never decides what to do about damage; it can
//! always be called again after `Damaged` and continues behind the dropped bytes. Every call
//! consumes at least one byte or ends, so reading terminates on any input. One thread at a time.

use esker_codec::checksum::{crc32c, unmask};
use esker_codec::compress::{Codec, StreamDecoder};
use esker_env::RandomAccessFile;
use esker_format::log::{
    BLOCK_SIZE, HEADER_LEN, IGNORABLE_MASK, Predecessor, RECYCLABLE_HEADER_LEN, RecordType,
    decode_timestamp_sizes,
};
use esker_format::{FamilyId, FileNo};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

pub(super) mod recycled_tail;
mod window;

use recycled_tail::{Leftover, is_ours};
use window::LogWindow;

/// How a log is read.
#[derive(Clone, Copy, Debug)]
pub struct LogReaderOptions {
    /// The number in the file's name; 0 for a MANIFEST.
    pub log_number: FileNo,
    /// A decompressed record may have this many bytes at most.
    pub max_record_len: usize,
}

impl LogReaderOptions {
    /// For the log with this number.
    pub fn new(log_number: FileNo) -> Self {
        LogReaderOptions {
            log_number,
            max_record_len: u32::MAX as usize,
        }
    }
}

/// A place where a log is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where in the file the damaged or unfinished record starts.
    pub offset: u64,
    /// The fault, in words.
    pub reason: String,
    /// Bytes given up.
    pub bytes_dropped: u64,
}

impl Damage {
    /// As an error about `path`.
    pub fn to_error(&self, path: &std::path::Path) -> Error {
        Error::corruption(format!(
            "{} ({} bytes dropped)",
            self.reason, self.bytes_dropped
        ))
        .with_file(path)
        .with_offset(self.offset)
    }
}

/// The next item of a log.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadOutcome<'a> {
    /// A whole record.
    Record {
        /// Its bytes, decompressed.
        bytes: &'a [u8],
        /// Where its first fragment starts.
        offset: u64,
    },
    /// Sizes of user-defined timestamps, by family, for the batches that follow.
    TimestampSizes(Vec<(FamilyId, u16)>),
    /// The expected content of the log before this one.
    Predecessor(Predecessor),
    /// The end of the file, between records.
    End,
    /// A record that an earlier life of a reused file left: normally the end.
    OldRecord {
        /// Where it starts.
        offset: u64,
    },
    /// The file ends inside a record.
    TornTail(Damage),
    /// Bytes that are no record, or fragments that are no whole one. Reading can go on.
    Damaged(Damage),
}

/// The next item of a log, without borrowed bytes.
#[derive(Debug)]
pub(super) enum Step {
    Record {
        place: RecordPlace,
        offset: u64,
        /// Of more than one fragment.
        is_pieced: bool,
    },
    TimestampSizes(Vec<(FamilyId, u16)>),
    Predecessor(Predecessor),
    End,
    OldRecord {
        offset: u64,
    },
    /// Bytes that are most likely of such records.
    RecycledTail(Damage),
    TornTail(Damage),
    Damaged(Damage),
}

/// Where the bytes of a record are.
#[derive(Debug)]
pub(super) enum RecordPlace {
    Chunk(Range<usize>),
    Scratch,
}

/// A checked physical record that is not consumed yet.
struct Physical {
    kind: u8,
    payload: Range<usize>,
    end: usize,
    offset: u64,
}

enum ParsedRecord {
    Record(Physical),
    Step(Step),
    Again,
}

/// Reads a log from front to back.
#[derive(Debug)]
pub struct LogReader {
    window: LogWindow,
    options: LogReaderOptions,
    /// Start of the record whose fragments are being collected.
    fragments: Option<u64>,
    scratch: Vec<u8>,
    fragment_bytes: u64,
    decoder: Option<StreamDecoder>,
    frame_complete: bool,
    compression_seen: bool,
    data_seen: bool,
    recycled: bool,
    timestamped: Vec<FamilyId>,
    /// Where blocks begin to hold nothing but zeros.
    zeros: Option<u64>,
    valid_end: u64,
    /// Where what was given out so far ends: whole records and what describes them.
    position: u64,
}

impl LogReader {
    /// Reads `file` from its start.
    pub fn new(file: Arc<dyn RandomAccessFile>, options: LogReaderOptions) -> LogReader {
        LogReader {
            window: LogWindow::new(file),
            options,
            fragments: None,
            scratch: Vec::new(),
            fragment_bytes: 0,
            decoder: None,
            frame_complete: true,
            compression_seen: false,
            data_seen: false,
            recycled: false,
            timestamped: Vec::new(),
            zeros: None,
            valid_end: 0,
            position: 0,
        }
    }

    /// The next record, or why there is none. `Err` only for failed reads and unknown codecs.
    #[allow(clippy::should_implement_trait)] // Lends its bytes, which an iterator cannot.
    pub fn next(&mut self) -> Result<ReadOutcome<'_>> {
        Ok(match self.step()? {
            Step::Record { place, offset, .. } => ReadOutcome::Record {
                bytes: self.bytes(&place),
                offset,
            },
            Step::TimestampSizes(sizes) => ReadOutcome::TimestampSizes(sizes),
            Step::Predecessor(p) => ReadOutcome::Predecessor(p),
            Step::End => ReadOutcome::End,
            Step::OldRecord { offset } | Step::RecycledTail(Damage { offset, .. }) => {
                ReadOutcome::OldRecord { offset }
            }
            Step::TornTail(d) => ReadOutcome::TornTail(d),
            Step::Damaged(d) => ReadOutcome::Damaged(d),
        })
    }

    /// Returns whether a recyclable header was seen: damage may then be the remains of an older
    /// log.
    pub fn is_recycled(&self) -> bool {
        self.recycled
    }

    /// Where the last whole record ends.
    pub fn valid_end(&self) -> u64 {
        self.valid_end
    }

    /// Where what was given out so far ends; to be given to [`LogReader::resume`].
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes back to a [`LogReader::position`] of this reader: what comes next is read from the file
    /// again. For a file that somebody still writes, after its end or an unfinished record was met.
    pub fn resume(&mut self, position: u64) {
        self.window.move_to(position);
        self.position = position;
        self.fragments = None;
        self.zeros = None;
        self.fragment_bytes = 0;
        self.frame_complete = true;
        self.scratch.clear();
        // What stands at the beginning is read again as well.
        if position == 0 {
            self.decoder = None;
            self.compression_seen = false;
            self.data_seen = false;
            self.recycled = false;
            self.timestamped.clear();
        }
    }

    /// The file being read.
    pub fn file(&self) -> &dyn RandomAccessFile {
        &*self.window.file
    }

    pub(super) fn bytes(&self, place: &RecordPlace) -> &[u8] {
        match place {
            RecordPlace::Chunk(range) => &self.window.chunk[range.clone()],
            RecordPlace::Scratch => &self.scratch,
        }
    }

    pub(super) fn step(&mut self) -> Result<Step> {
        loop {
            let record = match self.parse()? {
                ParsedRecord::Record(record) => record,
                ParsedRecord::Step(step) => return Ok(step),
                ParsedRecord::Again => continue,
            };
            if let Some(step) = self.take(record)? {
                return Ok(step);
            }
        }
    }

    /// Finds and verifies the next physical record.
    fn parse(&mut self) -> Result<ParsedRecord> {
        if self.window.pos == self.window.chunk.len() {
            if !self.window.eof {
                self.window.read_more()?;
                return Ok(ParsedRecord::Again);
            }
            return Ok(ParsedRecord::Step(match self.zeros.take() {
                Some(from) => self.zeros_from(from, Step::TornTail, "the log ends in zeros"),
                None => self.finish_at_eof(0, "the log ends inside a record"),
            }));
        }
        let (end, offset) = (self.window.block_end(), self.window.offset());
        let short_block =
            self.window.eof && end == self.window.chunk.len() && end % BLOCK_SIZE != 0;
        let block = &self.window.chunk[self.window.pos..end];
        if let Some(from) = self.zeros
            && block.iter().any(|b| *b != 0)
        {
            self.zeros = None;
            if !is_padding(offset - from, block) {
                let why = "zeros in the place of records";
                return self.give_up(|r| r.zeros_from(from, Step::Damaged, why));
            }
        }
        let header_len = match block.get(HEADER_LEN - 1) {
            Some(&kind) if is_recyclable(kind) => RECYCLABLE_HEADER_LEN,
            _ => HEADER_LEN,
        };
        if block.len() < header_len {
            let left = block.len();
            if short_block {
                return self.give_up(|r| {
                    r.window.pos = end;
                    r.finish_at_eof(left, "truncated header")
                });
            }
            if block.iter().any(|b| *b != 0) {
                return self.give_up(|r| r.drop_block("bytes in the trailer of a block"));
            }
            self.window.pos = end;
            return Ok(ParsedRecord::Again);
        }
        let kind = block[HEADER_LEN - 1];
        let len = usize::from(u16::from_le_bytes([block[4], block[5]]));
        // Only its number or its checksum tells a record of a reused file from one whose type is
        // damaged.
        let is_old =
            header_len == RECYCLABLE_HEADER_LEN && !is_ours(self.options.log_number, block);
        let is_known_recyclable =
            header_len == RECYCLABLE_HEADER_LEN && RecordType::from_u8(kind).is_some();
        if is_known_recyclable {
            if self.data_seen && !self.recycled {
                let why = "a recyclable record in a legacy log";
                return self.give_up(|r| r.drop_block(why));
            }
            self.recycled |= !is_old;
        }
        if header_len + len > block.len() {
            let left = block.len();
            return self.give_up(|r| {
                if short_block {
                    r.window.pos = end;
                    r.torn(offset, left, "truncated record body")
                } else {
                    r.drop_block("bad record length")
                }
            });
        }
        if kind == RecordType::Zero as u8 && len == 0 {
            if block.iter().any(|b| *b != 0) {
                return self.give_up(|r| r.drop_block("a hole in the log"));
            }
            self.window.pos = end;
            return Ok(match self.lose_fragments("error in middle of record") {
                Some(step) => ParsedRecord::Step(step),
                None => {
                    self.zeros.get_or_insert(offset);
                    ParsedRecord::Again
                }
            });
        }
        let stored = unmask(u32::from_le_bytes([block[0], block[1], block[2], block[3]]));
        if crc32c(&block[6..header_len + len]) != stored && !seeded(Bug::WalChecksumUnread) {
            return self.give_up(|r| r.drop_block("checksum mismatch"));
        }
        let is_legacy = header_len == HEADER_LEN && RecordType::from_u8(kind).is_some();
        if self.recycled && is_legacy {
            return self.give_up(|r| r.drop_block("a legacy record in a recyclable log"));
        }
        if is_old {
            self.recycled |= is_known_recyclable;
            self.window.pos += header_len + len;
            return Ok(ParsedRecord::Step(self.old_record(offset)));
        }
        let payload = self.window.pos + header_len..self.window.pos + header_len + len;
        Ok(ParsedRecord::Record(Physical {
            kind,
            end: payload.end,
            payload,
            offset,
        }))
    }

    /// Consumes a verified physical record; `None` when the logical one is not complete.
    fn take(&mut self, r: Physical) -> Result<Option<Step>> {
        let kind = RecordType::from_u8(r.kind);
        let continues = matches!(
            kind,
            Some(
                RecordType::Middle
                    | RecordType::Last
                    | RecordType::RecyclableMiddle
                    | RecordType::RecyclableLast
            )
        );
        // What starts anew ends an unfinished record: report that first, and come back to `r`.
        if !continues && self.fragments.is_some() {
            let lost = self.lose_fragments("partial record without end");
            if lost.is_some() {
                return Ok(lost);
            }
        }
        self.window.pos = r.end;
        match kind {
            Some(RecordType::Full | RecordType::RecyclableFull) => self.take_full(r).map(Some),
            Some(RecordType::First | RecordType::RecyclableFirst) => {
                self.scratch.clear();
                self.fragments = Some(r.offset);
                self.fragment_bytes = 0;
                if let Some(decoder) = &mut self.decoder {
                    decoder.reset()?;
                }
                Ok(self.add_fragment(&r))
            }
            Some(RecordType::Middle | RecordType::RecyclableMiddle) => match self.fragments {
                Some(_) => Ok(self.add_fragment(&r)),
                None => Ok(Some(orphan(&r))),
            },
            Some(RecordType::Last | RecordType::RecyclableLast) => Ok(Some(self.take_last(&r))),
            Some(RecordType::SetCompression) => {
                let step = self.set_compression(&r)?;
                self.position = self.window.offset();
                Ok(step)
            }
            Some(RecordType::TimestampSizes | RecordType::RecyclableTimestampSizes) => {
                self.position = self.window.offset();
                Ok(Some(self.timestamp_sizes(&r)))
            }
            Some(RecordType::Predecessor | RecordType::RecyclablePredecessor) => {
                self.position = self.window.offset();
                Ok(Some(
                    match Predecessor::decode(&self.window.chunk[r.payload.clone()]) {
                        Ok(p) => Step::Predecessor(p),
                        Err(e) => bad(&r, e.message()),
                    },
                ))
            }
            Some(RecordType::Zero) => Ok(Some(bad(&r, "unknown record type 0"))),
            None if r.kind & IGNORABLE_MASK != 0 => Ok(None),
            None => Ok(Some(bad(&r, &format!("unknown record type {}", r.kind)))),
        }
    }

    fn take_full(&mut self, r: Physical) -> Result<Step> {
        let place = match &mut self.decoder {
            None => RecordPlace::Chunk(r.payload.clone()),
            Some(decoder) => {
                decoder.reset()?;
                self.scratch.clear();
                let fragment = &self.window.chunk[r.payload.clone()];
                match decoder.decode(fragment, self.options.max_record_len, &mut self.scratch) {
                    Ok(true) => RecordPlace::Scratch,
                    Ok(false) => return Ok(bad(&r, "a compressed record is not complete")),
                    Err(e) => return Ok(bad(&r, e.message())),
                }
            }
        };
        self.data_seen = true;
        self.valid_end = self.window.offset();
        self.position = self.valid_end;
        Ok(Step::Record {
            place,
            offset: r.offset,
            is_pieced: false,
        })
    }

    fn take_last(&mut self, r: &Physical) -> Step {
        let Some(offset) = self.fragments else {
            return orphan(r);
        };
        if let Some(damage) = self.add_fragment(r) {
            return damage;
        }
        if !self.frame_complete {
            let bytes_dropped = self.fragment_bytes;
            self.fragments = None;
            let reason = "a compressed record is not complete".to_owned();
            return Step::Damaged(Damage {
                offset,
                reason,
                bytes_dropped,
            });
        }
        self.fragments = None;
        self.data_seen = true;
        self.valid_end = self.window.offset();
        self.position = self.valid_end;
        Step::Record {
            place: RecordPlace::Scratch,
            offset,
            is_pieced: true,
        }
    }

    /// Adds a fragment's bytes to the record being collected.
    fn add_fragment(&mut self, r: &Physical) -> Option<Step> {
        let fragment = &self.window.chunk[r.payload.clone()];
        self.fragment_bytes += fragment.len() as u64;
        let Some(decoder) = &mut self.decoder else {
            self.scratch.extend_from_slice(fragment);
            return None;
        };
        match decoder.decode(fragment, self.options.max_record_len, &mut self.scratch) {
            Ok(complete) => {
                self.frame_complete = complete;
                None
            }
            Err(e) => {
                let offset = self.fragments.take().unwrap_or(r.offset);
                let (reason, bytes_dropped) = (e.message().to_owned(), self.fragment_bytes);
                Some(Step::Damaged(Damage {
                    offset,
                    reason,
                    bytes_dropped,
                }))
            }
        }
    }

    fn set_compression(&mut self, r: &Physical) -> Result<Option<Step>> {
        if self.compression_seen || self.data_seen {
            return Ok(Some(bad(
                r,
                "a compression record that is not the first record",
            )));
        }
        let &[a, b, c, d] = &self.window.chunk[r.payload.clone()] else {
            return Ok(Some(bad(r, "could not decode the compression record")));
        };
        self.compression_seen = true;
        let number = u32::from_le_bytes([a, b, c, d]);
        match u8::try_from(number).ok().and_then(Codec::from_u8) {
            Some(Codec::None) => {}
            Some(Codec::Zstd) => {
                let made = StreamDecoder::new();
                let placed = |e: Error| e.with_file(self.window.file.path()).with_offset(r.offset);
                self.decoder = Some(made.map_err(placed)?);
            }
            _ => {
                return Err(
                    Error::not_supported(format!("log compression type {number}"))
                        .with_file(self.window.file.path())
                        .with_offset(r.offset),
                );
            }
        }
        Ok(None)
    }

    fn timestamp_sizes(&mut self, r: &Physical) -> Step {
        let sizes = match decode_timestamp_sizes(&self.window.chunk[r.payload.clone()]) {
            Ok(sizes) => sizes,
            Err(e) => return bad(r, e.message()),
        };
        for (family, _) in &sizes {
            if self.timestamped.contains(family) {
                return bad(r, "a family's timestamp size is recorded twice");
            }
            self.timestamped.push(*family);
        }
        Step::TimestampSizes(sizes)
    }

    /// Bytes that are no record of this log where one should be: they end it, or they are damage,
    /// which `report` gives up.
    fn give_up(&mut self, report: impl FnOnce(&mut Self) -> Step) -> Result<ParsedRecord> {
        let leftover = if self.recycled {
            Leftover::of(&mut self.window, self.options.log_number)?
        } else {
            Leftover::Damage
        };
        Ok(match leftover {
            Leftover::Damage => ParsedRecord::Step(report(self)),
            Leftover::Changed => ParsedRecord::Again,
            Leftover::OlderLog => ParsedRecord::Step(self.recycled_tail()),
        })
    }

    /// The rest of the file is what an older log left.
    fn recycled_tail(&mut self) -> Step {
        let offset = self.window.offset();
        let left = self.window.skip_rest();
        match self.old_record(offset) {
            Step::OldRecord { offset } => {
                Step::RecycledTail(recycled_tail::of_older(offset, left as u64))
            }
            torn => torn,
        }
    }

    /// Gives up the rest of the block, and the record being collected with it.
    fn drop_block(&mut self, reason: &str) -> Step {
        let end = self.window.block_end();
        let (mut offset, mut bytes_dropped) =
            (self.window.offset(), (end - self.window.pos) as u64);
        self.window.pos = end;
        if let Some(start) = self.fragments.take() {
            offset = start;
            bytes_dropped += self.fragment_bytes;
        }
        Step::Damaged(Damage {
            offset,
            reason: reason.to_owned(),
            bytes_dropped,
        })
    }

    /// Gives up the record being collected. A start without payload is a legal leftover, not
    /// damage.
    fn lose_fragments(&mut self, reason: &str) -> Option<Step> {
        let offset = self.fragments.take()?;
        if self.fragment_bytes == 0 {
            return None;
        }
        let bytes_dropped = self.fragment_bytes;
        Some(Step::Damaged(Damage {
            offset,
            reason: reason.to_owned(),
            bytes_dropped,
        }))
    }

    fn finish_at_eof(&mut self, left: usize, reason: &str) -> Step {
        if left == 0 && self.fragments.is_none() {
            return Step::End;
        }
        let offset = self.window.offset() - left as u64;
        self.torn(offset, left, reason)
    }

    /// Zeros from `offset` to where the reader is. They are no bytes of records that anybody could
    /// want.
    fn zeros_from(&self, offset: u64, step: fn(Damage) -> Step, reason: &str) -> Step {
        step(Damage {
            offset,
            reason: reason.to_owned(),
            bytes_dropped: 0,
        })
    }

    fn torn(&mut self, at: u64, left: usize, reason: &str) -> Step {
        let mut bytes_dropped = left as u64;
        let offset = match self.fragments.take() {
            Some(start) => {
                bytes_dropped += self.fragment_bytes;
                start
            }
            None => at,
        };
        Step::TornTail(Damage {
            offset,
            reason: reason.to_owned(),
            bytes_dropped,
        })
    }

    fn old_record(&mut self, offset: u64) -> Step {
        match self.fragments {
            None => Step::OldRecord { offset },
            Some(_) => self.torn(offset, 0, "a record is cut off by an older one"),
        }
    }
}

/// Returns whether this many zeros up to the end of a block are what a writer puts before `next`,
/// the begin of the next block: there was no room for a header, or for all of a record that is
/// never split.
fn is_padding(zeros: u64, next: &[u8]) -> bool {
    let Some(&[_, _, _, _, low, high, kind]) = next.first_chunk::<HEADER_LEN>() else {
        return false;
    };
    let Some(known) = RecordType::from_u8(kind) else {
        return false;
    };
    let is_whole = matches!(
        known,
        RecordType::TimestampSizes
            | RecordType::RecyclableTimestampSizes
            | RecordType::Predecessor
            | RecordType::RecyclablePredecessor
    );
    let body = if is_whole {
        u64::from(u16::from_le_bytes([low, high]))
    } else {
        0
    };
    zeros < known.header_len() as u64 + body
}

/// Returns whether a record of this type has the longer header.
fn is_recyclable(kind: u8) -> bool {
    match RecordType::from_u8(kind) {
        Some(known) => known.is_recyclable(),
        None => kind >= 10 && kind & 1 == 1,
    }
}

fn bad(r: &Physical, reason: &str) -> Step {
    Step::Damaged(Damage {
        offset: r.offset,
        reason: reason.to_owned(),
        bytes_dropped: r.payload.len() as u64,
    })
}

fn orphan(r: &Physical) -> Step {
    bad(r, "missing start of fragmented record")
}
