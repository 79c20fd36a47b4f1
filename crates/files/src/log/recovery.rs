//! Actions on damage, by recovery mode.
//!
//! | mode | torn tail | anything else |
//! |---|---|---|
//! | tolerate corrupted tail records | ends this log | fails |
//! | absolute consistency | fails | fails |
//! | point in time | stops the replay | stops the replay |
//! | skip any corrupted records | ends this log | is skipped |
//!
//! An old record of a reused file is not damage ([`ReplayStep::RecycledTail`]), nor are bytes in it
//! that are no record when none of its own follows and they do not say that they are one. They end
//! the log where tails are tolerated and when skipping, which reads over old records to the end. In
//! point-in-time recovery they stop the replay, since only the next log's first sequence shows that
//! nothing is missing. For absolute consistency an old record is an end, and other bytes fail,
//! since it cannot be ruled out. Damage in such a file ends the log where tails are tolerated.

use super::reader::recycled_tail::of_older;
use super::reader::{Damage, LogReader, Step};
use esker_format::FamilyId;
use esker_format::log::{Predecessor, RecoveryMode};
use esker_status::Result;

/// Bytes that a disk writes at once.
const SECTOR: u64 = 512;

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read on behind the damage.
    Continue,
    /// This log ends here; go on with the next one.
    EndLog,
    /// Nothing from here on is replayed, later logs included.
    StopReplay,
    /// The open fails.
    Fail,
}

/// The action for damage in a log, by mode.
pub fn action_on_damage(mode: RecoveryMode, torn_tail: bool, recycled: bool) -> Action {
    match (mode, torn_tail) {
        (RecoveryMode::AbsoluteConsistency, _) => Action::Fail,
        (RecoveryMode::PointInTimeRecovery, _) => Action::StopReplay,
        (RecoveryMode::TolerateCorruptedTailRecords, true) => Action::EndLog,
        (RecoveryMode::TolerateCorruptedTailRecords, false) if recycled => Action::EndLog,
        (RecoveryMode::TolerateCorruptedTailRecords, false) => Action::Fail,
        (RecoveryMode::SkipAnyCorruptedRecords, true) => Action::EndLog,
        (RecoveryMode::SkipAnyCorruptedRecords, false) => Action::Continue,
    }
}

/// The next item of a log, under a recovery mode.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayStep<'a> {
    /// A whole record.
    Record {
        /// Its bytes, decompressed.
        bytes: &'a [u8],
        /// Where it starts.
        offset: u64,
        /// It does not say which log it is of, and it is of several fragments or begins with a
        /// sector: after a power cut it may be what an older file left in sectors that were not
        /// written.
        may_be_stale: bool,
    },
    /// Sizes of user-defined timestamps, by family.
    TimestampSizes(Vec<(FamilyId, u16)>),
    /// The expected content of the log before this one.
    Predecessor(Predecessor),
    /// Bytes were skipped; call again.
    Skipped(Damage),
    /// The rest of a reused file is no record of this log: most likely what an older one left. As
    /// the end in the mode that tolerates tails and in the one that skips, as a stop in
    /// point-in-time recovery.
    RecycledTail(Damage),
    /// The log is done; the next one may follow. The damage is the torn tail that was ignored, if
    /// any.
    End(Option<Damage>),
    /// The replay ends here unless a later log starts at exactly the expected sequence.
    Stop(Damage),
}

impl LogReader {
    /// Like [`LogReader::next`], with the mode applied: damage that the mode does not allow is an
    /// error naming file and offset.
    pub fn replay(&mut self, mode: RecoveryMode) -> Result<ReplayStep<'_>> {
        let step = loop {
            match self.step()? {
                Step::OldRecord { .. } if mode == RecoveryMode::SkipAnyCorruptedRecords => {}
                other => break other,
            }
        };
        let (damage, torn_tail) = match step {
            Step::Record {
                place,
                offset,
                is_pieced,
            } => {
                return Ok(ReplayStep::Record {
                    bytes: self.bytes(&place),
                    offset,
                    may_be_stale: !self.is_recycled()
                        && (is_pieced || offset.is_multiple_of(SECTOR)),
                });
            }
            Step::TimestampSizes(sizes) => return Ok(ReplayStep::TimestampSizes(sizes)),
            Step::Predecessor(p) => return Ok(ReplayStep::Predecessor(p)),
            Step::OldRecord { .. } if mode == RecoveryMode::AbsoluteConsistency => {
                return Ok(ReplayStep::End(None));
            }
            Step::OldRecord { offset } => return Ok(ReplayStep::RecycledTail(of_older(offset, 0))),
            Step::RecycledTail(damage) if mode == RecoveryMode::AbsoluteConsistency => {
                (damage, false)
            }
            Step::RecycledTail(damage) => return Ok(ReplayStep::RecycledTail(damage)),
            Step::End => return Ok(ReplayStep::End(None)),
            Step::TornTail(damage) => (damage, true),
            Step::Damaged(damage) => (damage, false),
        };
        match action_on_damage(mode, torn_tail, self.is_recycled()) {
            Action::Continue => Ok(ReplayStep::Skipped(damage)),
            Action::EndLog => Ok(ReplayStep::End(Some(damage))),
            Action::StopReplay => Ok(ReplayStep::Stop(damage)),
            Action::Fail => Err(damage.to_error(self.file().path())),
        }
    }
}
