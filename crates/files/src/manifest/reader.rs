//! Reading a MANIFEST: edits in the groups in which they take effect.
//!
//! An unfinished record or atomic group at the end never took effect and is ignored; everything
//! else that is wrong is fatal. Unfinished is what ends with the file, and what a power cut in the
//! middle of the last write leaves: a damaged record of which a sector reads as zeros, with nothing
//! behind it but the rest of its group. One thread at a time.

use crate::log::{LogReader, LogReaderOptions, ReadOutcome};
use esker_codec::checksum::{crc32c, crc32c_extend, mask};
use esker_env::{FileSystem, RandomAccessFile, ReadOptions};
use esker_format::FileNo;
use esker_format::edit::VersionEdit;
use esker_status::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Edits that take effect together: a single one, or an atomic group.
#[derive(Clone, Debug, PartialEq)]
pub struct EditGroup {
    /// The edits, in order; never empty.
    pub edits: Vec<VersionEdit>,
    /// Where the first one starts, for messages.
    pub offset: u64,
}

/// The unit that a disk writes whole.
const SECTOR: u64 = 512;
/// Bytes of a checksum. This many zeros do not stand in a row at the begin of a record.
const CHECKSUM: usize = 4;
/// No write is longer; what is damaged further from the end was written before others.
const LONGEST_WRITE: u64 = 1 << 20;
/// Bytes that the search for another edit may sum up: it must end soon whatever a file holds.
const SUMMED_MAX: usize = 64 << 20;
/// The header of a record in a log: checksum, length, type.
const HEADER: usize = 7;
const FULL: u8 = 1;

/// Returns whether a sector of `tail`, which stands at `offset`, or the part of one that is in it,
/// reads as zeros. Of the last sector it may be a few bytes; of the first one it may be a part of
/// the checksum, when the rest of that fits.
fn has_zero_sector(tail: &[u8], offset: u64) -> bool {
    let first = (SECTOR - offset % SECTOR) as usize;
    let (head, rest) = tail.split_at(first.min(tail.len()));
    let is_zero = |part: &[u8]| part.iter().all(|b| *b == 0);
    is_zero(head) && (head.len() >= CHECKSUM || has_rest_of_checksum(tail, head.len()))
        || rest.chunks(SECTOR as usize).any(is_zero)
}

/// Returns whether the record at the begin of `tail` is whole but for the first `missing` bytes of
/// its checksum.
fn has_rest_of_checksum(tail: &[u8], missing: usize) -> bool {
    let Some((header, rest)) = tail.split_first_chunk::<HEADER>() else {
        return false;
    };
    let [_, _, _, _, low, high, kind] = *header;
    let payload = rest.get(..usize::from(u16::from_le_bytes([low, high])));
    payload.is_some_and(|payload| {
        let sum = mask(crc32c_extend(crc32c(&[kind]), payload)).to_le_bytes();
        sum[missing..] == header[missing..CHECKSUM]
    })
}

/// Returns whether an edit that is no part of a group stands whole somewhere in `tail`, wherever a
/// record may begin: a damaged record does not tell where the next one is. In doubt, when the
/// search becomes too long, yes.
fn has_edit(tail: &[u8]) -> bool {
    let mut left = SUMMED_MAX;
    (0..tail.len()).any(|at| {
        let Some((header, rest)) = tail[at..].split_first_chunk::<HEADER>() else {
            return false;
        };
        let [a, b, c, d, low, high, kind] = *header;
        let Some(payload) = rest.get(..usize::from(u16::from_le_bytes([low, high]))) else {
            return false;
        };
        if kind != FULL || payload.is_empty() {
            return false;
        }
        match left.checked_sub(payload.len()) {
            Some(less) => left = less,
            None => return true,
        }
        let sum = crc32c_extend(crc32c(&[FULL]), payload);
        mask(sum) == u32::from_le_bytes([a, b, c, d])
            && VersionEdit::decode(payload).is_ok_and(|edit| edit.remaining_in_group.is_none())
    })
}

/// Reads edits from front to back.
#[derive(Debug)]
pub struct ManifestReader {
    log: LogReader,
    path: PathBuf,
    valid_end: u64,
    torn: bool,
}

impl ManifestReader {
    /// Opens the MANIFEST at `path`.
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<ManifestReader> {
        Ok(Self::over(fs.open_read(path, ReadOptions::default())?))
    }

    /// Reads from an open file.
    pub fn over(file: Arc<dyn RandomAccessFile>) -> ManifestReader {
        let path = file.path().to_owned();
        let log = LogReader::new(file, LogReaderOptions::new(FileNo(0)));
        ManifestReader {
            log,
            path,
            valid_end: 0,
            torn: false,
        }
    }

    /// The next edit or atomic group; `None` at the end.
    pub fn next_group(&mut self) -> Result<Option<EditGroup>> {
        let Some((first, offset)) = self.next_edit()? else {
            return Ok(None);
        };
        let mut expected = first.remaining_in_group.unwrap_or(0);
        let in_group = first.remaining_in_group.is_some();
        let mut edits = vec![first];
        while expected > 0 {
            let Some((edit, at)) = self.next_edit()? else {
                // The group was not finished, so none of it happened.
                self.torn = true;
                return Ok(None);
            };
            expected -= 1;
            if edit.remaining_in_group != Some(expected) {
                let found = edit.remaining_in_group;
                let message =
                    format!("corrupted atomic group: expected {expected}, found {found:?}");
                return Err(self.error(Error::corruption(message), at));
            }
            edits.push(edit);
        }
        if in_group && edits.iter().any(VersionEdit::is_family_manipulation) {
            let message = "corrupted atomic group: it adds or drops a column family";
            return Err(self.error(Error::corruption(message), offset));
        }
        self.valid_end = self.log.valid_end();
        Ok(Some(EditGroup { edits, offset }))
    }

    /// Goes on where the last edit that took effect ends, for a file that somebody still writes:
    /// what was the end or an unfinished tail is read again.
    pub fn resume(&mut self) {
        self.log.resume(self.valid_end);
        self.torn = false;
    }

    /// Where the last edit that took effect ends.
    pub fn valid_end(&self) -> u64 {
        self.valid_end
    }

    /// Returns whether an unfinished tail was ignored: such a file must not be appended to.
    pub fn has_torn_tail(&self) -> bool {
        self.torn
    }

    /// The path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn next_edit(&mut self) -> Result<Option<(VersionEdit, u64)>> {
        let (edit, offset) = match self.log.next()? {
            ReadOutcome::Record { bytes, offset } => (VersionEdit::decode(bytes), offset),
            ReadOutcome::End => return Ok(None),
            ReadOutcome::TornTail(_) => {
                self.torn = true;
                return Ok(None);
            }
            ReadOutcome::Damaged(damage) => {
                if self.is_unfinished_write(damage.offset)? {
                    self.torn = true;
                    return Ok(None);
                }
                return Err(damage.to_error(&self.path));
            }
            ReadOutcome::OldRecord { offset } => {
                return Err(self.error(Error::corruption("a record of another log"), offset));
            }
            ReadOutcome::TimestampSizes(_) | ReadOutcome::Predecessor(_) => {
                let message = "a write-ahead log's record in a MANIFEST";
                return Err(Error::corruption(message).with_file(&self.path));
            }
        };
        match edit {
            Ok(edit) => Ok(Some((edit, offset))),
            Err(e) => Err(self.error(e, offset)),
        }
    }

    /// Returns whether the damage at `offset` is what is left of a write that power loss cut short.
    fn is_unfinished_write(&self, offset: u64) -> Result<bool> {
        let file = self.log.file();
        let len = file.len().saturating_sub(offset);
        if len > LONGEST_WRITE {
            return Ok(false);
        }
        let mut tail = vec![0; len as usize];
        let n = file.read_at(offset, &mut tail)?;
        tail.truncate(n);
        Ok(has_zero_sector(&tail, offset) && !has_edit(&tail))
    }

    fn error(&self, e: Error, offset: u64) -> Error {
        e.with_file(&self.path).with_offset(offset)
    }
}
