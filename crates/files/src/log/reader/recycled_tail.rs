//! Where a log ends that was begun in the file of an older one.
//!
//! Behind its last record comes what was in the file before. At the begin of a block that is a
//! record of the older log, whose number says so; in the block in which this log ends it is the
//! middle of one, which looks like damage. It is damage when records of this log follow it, or when
//! it says itself that it is one. A last record whose number has changed is therefore not told from
//! its absence; the next log says how long this one was, and the MANIFEST does after a close.
//!
//! Rejected: *zeros behind the end*, which a power cut may leave unwritten while what they should
//! have hidden is there.

use super::window::LogWindow;
use super::{Damage, is_recyclable};
use esker_codec::checksum::{crc32c, unmask};
use esker_format::FileNo;
use esker_format::log::{BLOCK_SIZE, HEADER_LEN, RECYCLABLE_HEADER_LEN};
use esker_status::Result;

/// Bytes in a reused file that are no record of its log where one should be.
pub(super) enum Leftover {
    /// Damage to the log.
    Damage,
    /// The writer of the log has gone on since they were read.
    Changed,
    /// Bytes that an older log left: this one ends here.
    OlderLog,
}

impl Leftover {
    /// Judges the bytes at `window`'s place. They are of an older log where no record of log
    /// `number` follows, unless they say that they are of that log.
    pub(super) fn of(window: &mut LogWindow, number: FileNo) -> Result<Leftover> {
        if is_ours(number, &window.chunk[window.pos..window.block_end()]) {
            return Ok(Leftover::Damage);
        }
        if !own_record_follows(window, number)? {
            return Ok(Leftover::OlderLog);
        }
        // The writer of the log may have gone on since this block was read.
        Ok(if window.reread_block()? {
            Leftover::Changed
        } else {
            Leftover::Damage
        })
    }
}

/// Tells whether `bytes` say, in the place where recyclable records do, that they are of log `log`.
pub(super) fn is_ours(log: FileNo, bytes: &[u8]) -> bool {
    let number = bytes.get(HEADER_LEN..RECYCLABLE_HEADER_LEN);
    number == Some(&(log.0 as u32).to_le_bytes())
}

/// Tells whether a record of log `number` is in the rest of this block, or at the begin of a later
/// one: blocks begin with a record, whichever log left them.
fn own_record_follows(window: &LogWindow, number: FileNo) -> Result<bool> {
    let rest = &window.chunk[window.pos..window.block_end()];
    if (1..rest.len()).any(|at| is_own_record(number, &rest[at..])) {
        return Ok(true);
    }
    let mut block = vec![0; BLOCK_SIZE];
    let mut at = (window.offset() / BLOCK_SIZE as u64 + 1) * BLOCK_SIZE as u64;
    loop {
        let header = &mut block[..RECYCLABLE_HEADER_LEN];
        if window.file.read_at(at, header)? < RECYCLABLE_HEADER_LEN {
            return Ok(false);
        }
        if is_ours(number, header) {
            let n = window.file.read_at(at, &mut block)?;
            if is_own_record(number, &block[..n]) {
                return Ok(true);
            }
        }
        at += BLOCK_SIZE as u64;
    }
}

/// Tells whether `bytes` begin with a whole record of log `number`.
fn is_own_record(number: FileNo, bytes: &[u8]) -> bool {
    if !is_ours(number, bytes) {
        return false;
    }
    let len = usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
    let stored = unmask(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    is_recyclable(bytes[HEADER_LEN - 1])
        && bytes
            .get(6..RECYCLABLE_HEADER_LEN + len)
            .is_some_and(|checked| crc32c(checked) == stored)
}

/// Damage for the bytes from `offset` on that an older log left.
pub(in crate::log) fn of_older(offset: u64, bytes_dropped: u64) -> Damage {
    Damage {
        offset,
        reason: "the rest is of an older log".to_owned(),
        bytes_dropped,
    }
}
