//! Looking for the blocks of a table whose index is lost: a block is where a checksum holds.
//!
//! Blocks follow one another, each with five bytes behind it: how it is compressed and its
//! checksum. From the border that is known the length is tried that makes the checksum right;
//! behind a block that is damaged itself every byte is tried as the beginning of the next. How much
//! is hashed for that is bounded.
//!
//! Thread-safety: used by one thread.

use super::block_file::TRAILER;
use super::fetch::Fetcher;
use esker_codec::checksum::{ChecksumType, context_modifier};
use esker_codec::compress::{Codec, Dictionary, decompress};
use esker_format::block::{Block, BlockCursor};
use esker_format::footer::BlockHandle;
use esker_format::{KeyOrder, ParsedKey};
use esker_status::Result;

/// The longest block that is looked for.
const LONGEST: usize = 4 << 20;
/// Bytes of the file in memory.
const WINDOW: usize = 4 * LONGEST;
/// Behind damage, blocks are looked for that are no longer than this, or than four times the
/// longest that was found before.
const LONGEST_AGAIN: usize = 16 << 10;
/// The longest first block of a file without a footer.
const LONGEST_FIRST: usize = 256 << 10;
/// Bytes that are hashed for each byte of the file, and at least: some seconds of work.
const EFFORT: u64 = 256;
const EFFORT_MIN: u64 = 32 << 30;

/// Blocks and gaps that a search found.
#[derive(Debug, Default)]
pub(super) struct SearchResult {
    pub(super) blocks: Vec<BlockHandle>,
    /// Where there is something else: start and end.
    pub(super) gaps: Vec<(u64, u64)>,
}

/// A search through a part of a file.
pub(super) struct Search<'a> {
    fetcher: &'a Fetcher,
    dict: Option<&'a Dictionary>,
    checksum: ChecksumType,
    base: u32,
    at: u64,
    end: u64,
    window: Vec<u8>,
    window_at: u64,
    /// Bytes that may still be hashed.
    left: u64,
    /// How the blocks of the file are compressed, unless they are not; nothing where that is not
    /// known.
    codecs: Vec<Codec>,
}

/// The result of a try to read a block of some length.
enum BlockProbe {
    /// A block of entries.
    Entries(Block, usize),
    /// Something whose checksum holds, and that holds no entries.
    Other(usize),
    Nothing,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        fetcher: &'a Fetcher,
        dict: Option<&'a Dictionary>,
        from: u64,
        end: u64,
    ) -> Self {
        Search {
            fetcher,
            dict,
            checksum: fetcher.checksum,
            base: fetcher.base,
            at: from,
            end,
            window: Vec::new(),
            window_at: 0,
            left: end
                .saturating_sub(from)
                .saturating_mul(EFFORT)
                .max(EFFORT_MIN),
            codecs: Vec::new(),
        }
    }

    /// Sets the codecs that the properties of the file name.
    pub(super) fn compressed(mut self, with: Vec<Codec>) -> Self {
        self.codecs = with;
        self
    }

    /// Finds out with which checksum, and on which base, the blocks of a file without a footer were
    /// written.
    pub(super) fn guess(&mut self) -> Result<Option<(ChecksumType, u32)>> {
        self.fill(LONGEST)?;
        for checksum in [
            ChecksumType::Xxh3,
            ChecksumType::Crc32c,
            ChecksumType::XxHash64,
            ChecksumType::XxHash,
        ] {
            self.checksum = checksum;
            self.base = 0;
            if matches!(self.try_here(LONGEST, false), BlockProbe::Entries(..)) {
                return Ok(Some((checksum, 0)));
            }
            if let Some(base) = self.guess_base() {
                return Ok(Some((checksum, base)));
            }
        }
        Ok(None)
    }

    /// From format version 6 on the checksums are moved by a number that stood in the footer: it is
    /// what makes the first block right, and the second one as well.
    fn guess_base(&mut self) -> Option<u32> {
        let bytes = self.ahead();
        let longest = bytes.len().checked_sub(TRAILER)?.min(LONGEST_FIRST);
        for len in 1..=longest {
            let Some(codec) = self.plausible(len) else {
                continue;
            };
            let (body, rest) = self.ahead().split_at(len);
            let stored = u32::from_le_bytes([rest[1], rest[2], rest[3], rest[4]]);
            let base = stored.wrapping_sub(self.checksum.compute(body, rest[0]));
            let is_first = base != 0 && context_modifier(base, 0) == base;
            if !is_first || self.entries(codec, body).is_none() {
                continue;
            }
            let mut next = Search {
                checksum: self.checksum,
                base,
                ..Search::new(self.fetcher, self.dict, (len + TRAILER) as u64, self.end)
            };
            if next.fill(LONGEST_FIRST).is_ok()
                && !matches!(next.try_here(LONGEST_FIRST, false), BlockProbe::Nothing)
            {
                return Some(base);
            }
        }
        None
    }

    /// Searches to the end. When the end `is_exact` all that is found there is data; else it ends
    /// where what follows data begins.
    pub(super) fn run(mut self, is_exact: bool, skip_unreadable: bool) -> Result<SearchResult> {
        let mut out = SearchResult::default();
        if self.checksum == ChecksumType::None {
            out.gaps.push((self.at, self.end));
            return Ok(out);
        }
        let (mut gap, mut longest) = (None, LONGEST_AGAIN);
        while self.at + TRAILER as u64 <= self.end && self.left > 0 {
            let reach = if gap.is_none() { LONGEST } else { longest };
            match self.fill(reach) {
                Err(e) if !skip_unreadable => return Err(e),
                Err(_) => {
                    gap.get_or_insert(self.at);
                    self.at += 4096 - self.at % 4096;
                    continue;
                }
                Ok(()) => {}
            }
            let mut tried = self.try_here(reach, gap.is_some());
            if matches!(tried, BlockProbe::Nothing) && !is_exact && gap.is_none() {
                tried = self.try_other(reach);
            }
            match tried {
                BlockProbe::Entries(block, _) if !is_exact && is_index(&block, &out.blocks) => {
                    self.end = self.at;
                    break;
                }
                BlockProbe::Entries(_, len) => {
                    if let Some(start) = gap.take() {
                        out.gaps.push((start, self.at));
                    }
                    out.blocks.push(BlockHandle {
                        offset: self.at,
                        size: len as u64,
                    });
                    longest = longest.max(4 * len).min(LONGEST);
                    if let Some(codec) = self.plausible(len).filter(|c| !self.codecs.contains(c)) {
                        self.codecs.push(codec);
                    }
                    self.at += (len + TRAILER) as u64;
                }
                BlockProbe::Other(_) if !is_exact && gap.is_none() => {
                    self.end = self.at;
                    break;
                }
                BlockProbe::Other(len) => {
                    gap.get_or_insert(self.at);
                    self.at += (len + TRAILER) as u64;
                }
                BlockProbe::Nothing => {
                    gap.get_or_insert(self.at);
                    self.at += 1;
                }
            }
        }
        let rest = gap.or((self.at < self.end).then_some(self.at));
        out.gaps.extend(rest.map(|start| (start, self.end)));
        // Between aligned blocks there are zeros.
        out.gaps
            .retain(|(start, end)| !self.is_padding(*start, *end));
        Ok(out)
    }

    fn is_padding(&self, start: u64, end: u64) -> bool {
        let len = usize::try_from(end - start).unwrap_or(usize::MAX);
        if len >= 4096 || !end.is_multiple_of(4096) {
            return false;
        }
        let mut bytes = vec![1; len];
        let got = self.fetcher.blocks.file.read_at(start, &mut bytes);
        got.is_ok_and(|n| n == len) && bytes.iter().all(|b| *b == 0)
    }

    /// Has as much of the file in memory as a block of `longest` bytes from here on may take.
    fn fill(&mut self, longest: usize) -> Result<()> {
        let want = (longest + TRAILER) as u64;
        let want = want.min(self.end.saturating_sub(self.at));
        let have = self.window_at + self.window.len() as u64;
        if self.at >= self.window_at && self.at + want <= have {
            return Ok(());
        }
        let len = self.end.saturating_sub(self.at).min(WINDOW as u64);
        self.window.clear();
        self.window.resize(len as usize, 0);
        self.window_at = self.at;
        let got = self.fetcher.blocks.file.read_at(self.at, &mut self.window);
        self.window.truncate(*got.as_ref().unwrap_or(&0));
        got.map(drop)
    }

    /// The bytes from here on.
    fn ahead(&self) -> &[u8] {
        let from = usize::try_from(self.at - self.window_at).unwrap_or(usize::MAX);
        self.window.get(from..).unwrap_or_default()
    }

    /// Returns the codec of a block that could end after `len` bytes, if one could; cheap.
    fn plausible(&self, len: usize) -> Option<Codec> {
        let bytes = self.ahead();
        let codec = Codec::from_u8(*bytes.get(len)?)?;
        (codec != Codec::None || looks_like_entries(&bytes[..len])).then_some(codec)
    }

    /// Tries to read a block here. Where the place `is_lost`, only blocks like the others are
    /// looked for: there are many bytes at which one could begin.
    fn try_here(&mut self, longest: usize, is_lost: bool) -> BlockProbe {
        let Some(most) = self.ahead().len().checked_sub(TRAILER) else {
            return BlockProbe::Nothing;
        };
        // Looking at the bytes takes time as well.
        self.left = self.left.saturating_sub(most.min(longest) as u64 / 8);
        for len in 1..=most.min(longest) {
            let Some(codec) = self.plausible(len) else {
                continue;
            };
            let is_usual = codec == Codec::None || self.codecs.contains(&codec);
            if is_lost && !self.codecs.is_empty() && !is_usual {
                continue;
            }
            self.left = self.left.saturating_sub(len as u64);
            if self.holds(len) {
                return match self.entries(codec, &self.ahead()[..len]) {
                    Some(block) => BlockProbe::Entries(block, len),
                    None => BlockProbe::Other(len),
                };
            }
            if self.left == 0 {
                break;
            }
        }
        BlockProbe::Nothing
    }

    /// Looks for a block without entries here, as a filter, which is not compressed.
    fn try_other(&mut self, longest: usize) -> BlockProbe {
        let Some(most) = self.ahead().len().checked_sub(TRAILER) else {
            return BlockProbe::Nothing;
        };
        for len in 1..=most.min(longest) {
            if self.ahead()[len] != Codec::None as u8 {
                continue;
            }
            self.left = self.left.saturating_sub(len as u64);
            if self.left == 0 {
                break;
            }
            if self.holds(len) {
                return BlockProbe::Other(len);
            }
        }
        BlockProbe::Nothing
    }

    /// Returns whether the checksum behind `len` bytes is theirs.
    fn holds(&self, len: usize) -> bool {
        let (body, rest) = self.ahead().split_at(len);
        let stored = u32::from_le_bytes([rest[1], rest[2], rest[3], rest[4]]);
        let sum = self
            .checksum
            .compute_with_context(body, rest[0], self.base, self.at);
        sum == stored
    }

    /// The block of entries in `body`, if it is one.
    fn entries(&self, codec: Codec, body: &[u8]) -> Option<Block> {
        let raw = match codec {
            Codec::None => body.to_vec(),
            _ => {
                let mut raw = Vec::new();
                decompress(codec, body, self.dict, self.fetcher.max_block, &mut raw).ok()?;
                raw
            }
        };
        let block = Block::parse(raw).ok()?;
        // Walking needs no order.
        let mut cursor = BlockCursor::new(&block, KeyOrder::Bytewise);
        let mut any = false;
        cursor.seek_to_first();
        while cursor.valid() {
            ParsedKey::parse(cursor.key()).ok()?;
            any = true;
            cursor.next();
        }
        cursor.status().ok()?;
        any.then_some(block)
    }
}

/// Returns whether `bytes` end as an uncompressed block does.
fn looks_like_entries(bytes: &[u8]) -> bool {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    let found = || {
        let mut end = bytes.len().checked_sub(4)?;
        let footer = word(end)?;
        if footer & 1 << 28 != 0 {
            end = end.checked_sub(4)?;
        }
        if footer & 1 << 31 != 0 {
            end = end.checked_sub(2)?;
            let buckets = u16::from_le_bytes([*bytes.get(end)?, *bytes.get(end + 1)?]);
            end = end.checked_sub(usize::from(buckets))?;
        }
        let restarts = (footer & ((1 << 28) - 1)) as usize;
        let first = end.checked_sub(restarts.checked_mul(4)?)?;
        Some(restarts > 0 && footer & 1 << 30 == 0 && word(first)? == 0)
    };
    bytes.first() == Some(&0) && found().unwrap_or(false)
}

/// Returns whether a value in `block` is the place of a block that was found: then this is an
/// index.
fn is_index(block: &Block, found: &[BlockHandle]) -> bool {
    let mut cursor = BlockCursor::new(block, KeyOrder::Bytewise);
    cursor.seek_to_first();
    while cursor.valid() {
        if let Ok(handle) = BlockHandle::decode(cursor.value())
            && found.binary_search(&handle).is_ok()
        {
            return true;
        }
        cursor.next();
    }
    false
}
