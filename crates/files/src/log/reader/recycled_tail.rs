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

use super::{Damage, LogReader, Parsed, Step, is_recyclable};
use esker_codec::checksum::{crc32c, unmask};
use esker_format::log::{BLOCK_SIZE, HEADER_LEN, RECYCLABLE_HEADER_LEN};
use esker_status::Result;

impl LogReader {
    /// Whether what begins `bytes` says, in the place where recyclable records do, that it is of
    /// this log.
    pub(super) fn is_ours(&self, bytes: &[u8]) -> bool {
        let number = bytes.get(HEADER_LEN..RECYCLABLE_HEADER_LEN);
        number == Some(&(self.options.log_number.0 as u32).to_le_bytes())
    }

    /// Bytes that are no record of this log where one should be. In a reused file in which none
    /// follows they are what an older log left, unless they say that they are ours: this one ends
    /// here. Else they are damage, and `say` gives up what it must.
    pub(super) fn give_up(&mut self, say: impl FnOnce(&mut Self) -> Step) -> Result<Parsed> {
        if !self.recycled || self.is_ours(&self.chunk[self.pos..self.block_end()]) {
            return Ok(Parsed::Step(say(self)));
        }
        if !self.own_record_follows()? {
            return Ok(Parsed::Step(self.recycled_tail()));
        }
        // The writer of the log may have gone on since this block was read.
        if self.reread_block()? {
            Ok(Parsed::Again)
        } else {
            Ok(Parsed::Step(say(self)))
        }
    }

    /// Whether a record of this log is in the rest of this block, or at the begin of a later one:
    /// blocks begin with a record, whichever log left them.
    fn own_record_follows(&self) -> Result<bool> {
        let rest = &self.chunk[self.pos..self.block_end()];
        if (1..rest.len()).any(|at| self.is_own_record(&rest[at..])) {
            return Ok(true);
        }
        let mut block = vec![0; BLOCK_SIZE];
        let mut at = (self.offset() / BLOCK_SIZE as u64 + 1) * BLOCK_SIZE as u64;
        loop {
            let header = &mut block[..RECYCLABLE_HEADER_LEN];
            if self.file.read_at(at, header)? < RECYCLABLE_HEADER_LEN {
                return Ok(false);
            }
            if self.is_ours(header) {
                let n = self.file.read_at(at, &mut block)?;
                if self.is_own_record(&block[..n]) {
                    return Ok(true);
                }
            }
            at += BLOCK_SIZE as u64;
        }
    }

    /// Whether `bytes` begin with a whole record of this log.
    fn is_own_record(&self, bytes: &[u8]) -> bool {
        if !self.is_ours(bytes) {
            return false;
        }
        let len = usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
        let stored = unmask(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        is_recyclable(bytes[HEADER_LEN - 1])
            && bytes
                .get(6..RECYCLABLE_HEADER_LEN + len)
                .is_some_and(|checked| crc32c(checked) == stored)
    }

    /// Reads the block around `pos` again; whether anything changed.
    fn reread_block(&mut self) -> Result<bool> {
        let (start, end) = (self.pos / BLOCK_SIZE * BLOCK_SIZE, self.block_end());
        let mut now = vec![0; end - start];
        let got = self
            .file
            .read_at(self.chunk_offset + start as u64, &mut now)?;
        let is_changed = now[..got] != self.chunk[start..start + got];
        self.chunk[start..start + got].copy_from_slice(&now[..got]);
        Ok(is_changed)
    }

    /// The rest of the file is what an older log left.
    fn recycled_tail(&mut self) -> Step {
        let (offset, left) = (self.offset(), self.chunk.len() - self.pos);
        self.pos = self.chunk.len();
        self.eof = true;
        match self.old_record(offset) {
            Step::OldRecord { offset } => Step::RecycledTail(of_older(offset, left as u64)),
            torn => torn,
        }
    }
}

/// What an older log left from `offset` on.
pub(in crate::log) fn of_older(offset: u64, bytes_dropped: u64) -> Damage {
    Damage {
        offset,
        reason: "the rest is of an older log".to_owned(),
        bytes_dropped,
    }
}
