//! Replaying the write-ahead logs.
//!
//! Logs are read in number order under the recovery mode. A batch goes through the same code as a
//! live write; records of families whose tables already hold them are skipped but keep their
//! sequence numbers. A memtable that fills up on the way is given to the caller. What a damaged log
//! loses is always reported: in the result, the LOG file and the statistics.
//!
//! `known` accounts for the logs and holds them against the MANIFEST, `targets` has the memtables,
//! `open_log` one log.

mod known;
mod open_log;
mod targets;

pub(crate) use known::{ReplayBounds, ReplayResult};
pub(crate) use open_log::OpenLog;

use super::fold::ManifestContents;
use crate::family::Family;
use crate::options::WalRecoveryMode;
use crate::options::{WalDecision, WalFilter};
use crate::store::continuity::LinkRecord;
use crate::write::apply;
use crate::write::prepared::Sections;
use esker_env::Env;
use esker_files::log::{RecoveryMode, ReplayStep};
use esker_format::batch::{BatchReader, Records, WriteBatch};
use esker_format::file_name::{FileKind, log_name, parse_file_name};
use esker_format::{FamilyId, FileNo, Seq};
use esker_lsm::fold::FoldedFamily;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::Arc;
use known::LogAccount;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use targets::{ReplayTargets, Target};

/// The recovery mode that an option names.
pub(crate) fn mode_of(option: WalRecoveryMode) -> RecoveryMode {
    match option {
        WalRecoveryMode::TolerateCorruptedTailRecords => RecoveryMode::TolerateCorruptedTailRecords,
        WalRecoveryMode::AbsoluteConsistency => RecoveryMode::AbsoluteConsistency,
        WalRecoveryMode::PointInTimeRecovery => RecoveryMode::PointInTimeRecovery,
        WalRecoveryMode::SkipAnyCorruptedRecords => RecoveryMode::SkipAnyCorruptedRecords,
    }
}

/// The oldest log that is read: what no family needs may hold what is prepared.
pub(crate) fn oldest_log(folded: &ManifestContents, allow_2pc: bool) -> FileNo {
    if allow_2pc {
        folded.min_log_number_to_keep.unwrap_or_default()
    } else {
        folded.oldest_needed_log()
    }
}

/// The numbers of the logs in `dir`, ascending.
pub(crate) fn list(env: &Env, dir: &Path) -> Result<Vec<FileNo>> {
    let mut logs: Vec<_> = env
        .fs
        .read_dir(dir)?
        .iter()
        .filter_map(|e| parse_file_name(&e.name))
        .filter(|(kind, _)| *kind == FileKind::Wal)
        .map(|(_, n)| n)
        .collect();
    logs.sort_unstable();
    Ok(logs)
}

/// Callback for a family whose memtable is full.
type OnFull<'a> = Box<dyn FnMut(&Arc<Family>) -> Result<()> + 'a>;

/// Replays logs into the families' memtables.
pub(crate) struct Replay<'a> {
    env: &'a Env,
    families: BTreeMap<FamilyId, Target>,
    /// Called when a family's memtable is full: flushes it and starts another.
    on_full: OnFull<'a>,
    /// How far the logs were read, and what is wrong with them.
    account: LogAccount,
    /// The first sequence of the batch that was read last. A prepared section has that of the batch
    /// behind it.
    seen: Seq,
    /// A batch is being inserted; after a failure memtables may hold a part of it.
    is_inserting: bool,
    /// Decides about each record.
    filter: Option<Arc<dyn WalFilter>>,
    /// The prepared transactions met so far.
    sections: Sections,
    /// A batch that cannot be as it was written is no reason to give up.
    is_salvage: bool,
    /// Operands for families without a merge operator are an error: what was read is to go into
    /// tables.
    needs_operators: bool,
}

/// State of a replay, for one that goes on in the same logs.
#[derive(Debug, Default)]
pub(crate) struct ReplayPosition {
    /// The prepared transactions met so far.
    sections: Sections,
    /// Where what was read of each log ends.
    ends: BTreeMap<FileNo, u64>,
    /// A family that the MANIFEST did not know.
    unknown: Option<(FileNo, FamilyId)>,
    /// The first log whose end may be lost.
    cut_short: Option<FileNo>,
}

impl ReplayPosition {
    /// Logs below `oldest` are read no more.
    pub(crate) fn forget_below(&mut self, oldest: FileNo) {
        self.ends.retain(|number, _| *number >= oldest);
        self.cut_short = self.cut_short.filter(|number| *number >= oldest);
    }
}

/// A record after the application's filter.
enum FilteredRecord {
    /// It is replayed as it is.
    Whole,
    /// This batch is replayed in its place.
    Replaced(WriteBatch),
    /// It is passed over.
    Dropped,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(
        env: &'a Env,
        dir: PathBuf,
        mode: RecoveryMode,
        last: Seq,
        families: impl IntoIterator<Item = (Arc<Family>, FileNo)>,
        on_full: impl FnMut(&Arc<Family>) -> Result<()> + 'a,
    ) -> Self {
        let target = |(family, log_number): (Arc<Family>, _)| {
            let target = Target {
                name: family.name.clone(),
                log_number,
                has_tables: family.view_guard().version.files().next().is_some(),
                family: Some(Arc::clone(&family)),
            };
            (family.id, target)
        };
        let families = families.into_iter().map(target).collect();
        let mut replay = Replay::empty(env, dir, mode, families, on_full);
        replay.account.outcome.last = last;
        replay
    }

    /// Reads logs and holds them against `folded` as opening does, and changes nothing.
    pub(crate) fn looking(
        env: &'a Env,
        dir: PathBuf,
        mode: RecoveryMode,
        folded: Option<&ManifestContents>,
        oldest: FileNo,
    ) -> Self {
        let families = folded.into_iter().flat_map(|f| &f.families);
        let target = |(id, family): (&FamilyId, &FoldedFamily)| {
            let target = Target {
                family: None,
                name: family.name.clone(),
                log_number: family.log_number,
                has_tables: !family.files().is_empty(),
            };
            (*id, target)
        };
        let replay = Replay::empty(env, dir, mode, families.map(target).collect(), |_| Ok(()));
        replay.with_known(folded.and_then(|f| ReplayBounds::of(f, oldest)))
    }

    fn empty(
        env: &'a Env,
        dir: PathBuf,
        mode: RecoveryMode,
        families: BTreeMap<FamilyId, Target>,
        on_full: impl FnMut(&Arc<Family>) -> Result<()> + 'a,
    ) -> Self {
        Replay {
            env,
            families,
            on_full: Box::new(on_full),
            account: LogAccount::new(dir, mode),
            seen: Seq::ZERO,
            is_inserting: false,
            filter: None,
            sections: Sections::default(),
            is_salvage: false,
            needs_operators: false,
        }
    }

    /// Compares the logs with the MANIFEST.
    pub(crate) fn with_known(mut self, known: Option<ReplayBounds>) -> Self {
        self.account.known = known;
        self
    }

    /// Takes what can be read where the logs are sound and what is in them is not, as a repair
    /// does.
    pub(crate) fn salvaging(mut self) -> Self {
        self.is_salvage = true;
        self
    }

    /// Refuses operands for families without a merge operator.
    pub(crate) fn for_writing(mut self) -> Self {
        self.needs_operators = true;
        self
    }

    /// Asks `filter` about each record.
    pub(crate) fn filtered(mut self, filter: Option<Arc<dyn WalFilter>>) -> Self {
        if let Some(filter) = &filter {
            let logs = self.families.iter();
            let logs = logs.map(|(id, t)| (id.0, t.log_number.0)).collect();
            let numbers = self.families.iter();
            let numbers = numbers.map(|(id, t)| (t.name.clone(), id.0));
            filter.families(&logs, &numbers.collect());
        }
        self.filter = filter;
        self
    }

    /// The filter's decision about the batch in `bytes`; `None` where it counts as damaged and the
    /// recovery mode lets the database open.
    fn decide(
        &mut self,
        filter: &dyn WalFilter,
        number: FileNo,
        bytes: &[u8],
    ) -> Result<Option<FilteredRecord>> {
        let batch = WriteBatch::from_bytes(bytes.to_vec())?;
        match filter.record(number.0, &log_name(number), &batch) {
            WalDecision::Continue => Ok(Some(FilteredRecord::Whole)),
            WalDecision::Ignore => Ok(Some(FilteredRecord::Dropped)),
            WalDecision::Stop => {
                self.account.is_over = true;
                Ok(Some(FilteredRecord::Dropped))
            }
            WalDecision::Corrupted => {
                let told = format!("Corruption reported by Wal Filter {}", filter.name());
                let e = Error::corruption(told);
                self.account
                    .damaged(number, e, bytes.len() as u64)
                    .map(|()| None)
            }
            WalDecision::Replace(new) if new.count() > batch.count() => {
                Err(Error::not_supported(format!(
                    "More than original # of records added by Wal Filter {}",
                    filter.name()
                )))
            }
            WalDecision::Replace(mut new) => {
                new.set_seq(BatchReader::parse(bytes)?.seq());
                Ok(Some(FilteredRecord::Replaced(new)))
            }
        }
    }

    /// Replays `logs` (ascending numbers).
    pub(crate) fn run(mut self, logs: &[FileNo]) -> Result<ReplayResult> {
        self.expect(logs.to_vec())?;
        for &number in logs {
            self.replay_log(number)?;
        }
        self.account.check_end_of_newest()?;
        self.account.check_beyond_stop(&self.families)?;
        self.account.outcome.prepared = self.sections.into_prepared();
        Ok(self.account.outcome)
    }

    /// The logs `present` are there; those that the MANIFEST names must be among them.
    pub(crate) fn expect(&mut self, present: Vec<FileNo>) -> Result<()> {
        self.account.expect(present)
    }

    /// Goes on with what an earlier replay of the same logs left in `carried`.
    pub(crate) fn swap(&mut self, carried: &mut ReplayPosition) {
        std::mem::swap(&mut self.sections, &mut carried.sections);
        std::mem::swap(&mut self.account.ends, &mut carried.ends);
        std::mem::swap(&mut self.account.unknown, &mut carried.unknown);
        std::mem::swap(&mut self.account.cut_short, &mut carried.cut_short);
    }

    fn replay_log(&mut self, number: FileNo) -> Result<()> {
        let mut log = OpenLog::open(self.env, &self.account.dir, number)?;
        self.account.outcome.logs.push((number, log.file.len()));
        if log.file.is_empty() || self.account.is_over {
            self.account.ends.insert(number, 0);
            self.account.note_end(number, 0);
            return Ok(());
        }
        self.go_on(&mut log)?;
        self.account.check_families()?;
        self.read_to_end(&log);
        if let Some((_, bytes)) = self.account.outcome.logs.last_mut() {
            *bytes = log.reader.valid_end();
        }
        Ok(())
    }

    /// Takes note of where `log` ends: one that was not replayed has no end that another could
    /// join.
    fn read_to_end(&mut self, log: &OpenLog) {
        let end = log.reader.valid_end().min(log.done);
        self.account.ends.insert(log.number, end);
        self.account.note_end(log.number, end);
    }

    /// Replays what was added to `log` since it was last replayed. What is unfinished at its end is
    /// left for the next time.
    pub(crate) fn follow(&mut self, log: &mut OpenLog) -> Result<()> {
        // What was unfinished may be whole by now.
        self.account.cut_short = self
            .account
            .cut_short
            .filter(|number| *number != log.number);
        log.reader.resume(log.done);
        self.go_on(log)?;
        self.read_to_end(log);
        Ok(())
    }

    /// Takes note of a log that holds no batch and ends at `end`.
    pub(crate) fn note_without_batches(&mut self, number: FileNo, end: u64) {
        self.account.cut_short = self.account.cut_short.filter(|cut| *cut != number);
        self.account.ends.insert(number, end);
        self.account.note_end(number, end);
    }

    /// Checks what must hold once all logs were followed to their present ends.
    pub(crate) fn check_followed(&mut self) -> Result<()> {
        self.account.check_families()?;
        self.account.check_beyond_stop(&self.families)
    }

    /// Returns whether memtables may hold a part of a batch, after a failure.
    pub(crate) fn is_half_done(&self) -> bool {
        self.is_inserting
    }

    /// Returns the findings so far.
    pub(crate) fn outcome(&self) -> &ReplayResult {
        &self.account.outcome
    }

    fn go_on(&mut self, log: &mut OpenLog) -> Result<()> {
        let OpenLog {
            number,
            path,
            reader,
            done,
            timestamp_sizes,
            ..
        } = log;
        let number = *number;
        loop {
            match reader.replay(self.account.mode)? {
                ReplayStep::Record {
                    bytes,
                    offset,
                    may_be_stale,
                } => {
                    let go_on = self
                        .replay_record(number, bytes, may_be_stale, timestamp_sizes)
                        .map_err(|e| e.with_file(&*path).with_offset(offset))?;
                    if !go_on {
                        return Ok(());
                    }
                    *done = reader.position();
                }
                ReplayStep::TimestampSizes(sizes) => {
                    timestamp_sizes
                        .extend(sizes.iter().map(|&(family, n)| (family, usize::from(n))));
                    *done = reader.position();
                }
                ReplayStep::Predecessor(_) => *done = reader.position(),
                ReplayStep::Skipped(damage) => {
                    let line = format!("{}: {}", path.display(), damage.reason);
                    self.account.note_loss(number, line, damage.bytes_dropped);
                }
                ReplayStep::End(None) => {
                    *done = reader.position();
                    return Ok(());
                }
                ReplayStep::RecycledTail(rest) => {
                    *done = reader.position();
                    let line = format!(
                        "{}: replay ended at offset {}: {}",
                        path.display(),
                        rest.offset,
                        rest.reason
                    );
                    self.account.end_at_remains(number, line);
                    return Ok(());
                }
                ReplayStep::End(Some(torn)) => {
                    *done = reader.position();
                    let line = format!(
                        "{}: torn tail at offset {}: {}",
                        path.display(),
                        torn.offset,
                        torn.reason
                    );
                    self.account.note_loss(number, line, torn.bytes_dropped);
                    self.account.outcome.torn.push(number);
                    // In a reused file it is what an older log left. It is unknown of zeros what
                    // they were.
                    if !reader.is_recycled() && torn.bytes_dropped > 0 {
                        self.account.cut_short.get_or_insert(number);
                    }
                    return Ok(());
                }
                ReplayStep::Stop(damage) => {
                    let line = format!(
                        "{}: replay stopped at offset {}: {}",
                        path.display(),
                        damage.offset,
                        damage.reason
                    );
                    self.account.note_loss(number, line, damage.bytes_dropped);
                    if damage.bytes_dropped > 0 {
                        self.account.cut_short.get_or_insert(number);
                    }
                    self.account.expect_next();
                    return Ok(());
                }
            }
        }
    }

    /// The batch in `bytes` and its records; `None` when it is passed over or replay ends before
    /// it.
    ///
    /// The log's checksums held, so a batch that does not fit itself was written like that: it is
    /// refused in every mode. Only after a power cut it may be none that was written
    /// ([`ReplayStep::Record`]), in a log that this program wrote. That, and what has no room for a
    /// batch, is damage as a wrong checksum is.
    fn sound<'b>(
        &mut self,
        number: FileNo,
        bytes: &'b [u8],
        may_be_stale: bool,
    ) -> Result<Option<(BatchReader<'b>, Records<'b>)>> {
        let len = bytes.len() as u64;
        let batch = match BatchReader::parse(bytes).and_then(|b| has_room(&b).map(|()| b)) {
            Ok(batch) => batch,
            Err(e) => return self.account.damaged(number, e, len).map(|()| None),
        };
        if let Err(e) = batch.verify() {
            let e = e.with_hint(
                "the record's checksum holds: it was written like this; `esker repair` takes what \
                 can be read",
            );
            let is_own = self.account.begun == Some(number) || self.account.knows_logs();
            if may_be_stale && is_own {
                return self.account.damaged(number, e, len).map(|()| None);
            }
            if self.is_salvage {
                return Ok(self.salvage(number, batch, &e));
            }
            return Err(e);
        }
        if self.account.mode == RecoveryMode::PointInTimeRecovery && batch.seq() < self.seen {
            self.account
                .stop(number, "a batch older than the one before it", len);
            return Ok(None);
        }
        Ok(Some((batch, batch.records())))
    }

    /// All records of a batch of which only the count is wrong; nothing of one that cannot be read
    /// to its end.
    fn salvage<'b>(
        &mut self,
        number: FileNo,
        batch: BatchReader<'b>,
        wrong: &Error,
    ) -> Option<(BatchReader<'b>, Records<'b>)> {
        let records = Records::over_body(batch.body());
        let is_whole = records.clone().all(|r| r.is_ok());
        let taken = if is_whole {
            "its records are taken"
        } else {
            "it is left out"
        };
        let line = format!("{}: {}; {taken}", log_name(number), wrong.message());
        self.account
            .note_loss(number, line, batch.as_bytes().len() as u64);
        is_whole.then_some((batch, records))
    }

    fn replay_record(
        &mut self,
        number: FileNo,
        bytes: &[u8],
        may_be_stale: bool,
        timestamp_sizes: &BTreeMap<FamilyId, usize>,
    ) -> Result<bool> {
        let Some((batch, records)) = self.sound(number, bytes, may_be_stale)? else {
            return Ok(self.account.mode == RecoveryMode::SkipAnyCorruptedRecords);
        };
        if let Some(tie) = LinkRecord::of(&batch) {
            return self.account.check_tie(number, tie, batch.seq());
        }
        if let Some(expected) = self.account.expected {
            if batch.seq() != expected {
                let line = format!(
                    "{}: not replayed, since an earlier log is damaged",
                    log_name(number)
                );
                self.account.note_loss(number, line, bytes.len() as u64);
                return Ok(false);
            }
            self.account.join();
        } else if batch.seq() == self.account.behind {
            self.account.cut_short = None;
        }
        let decision = match self.filter.clone() {
            None => Some(FilteredRecord::Whole),
            Some(filter) => self.decide(&*filter, number, bytes)?,
        };
        let Some(decision) = decision else {
            return Ok(self.account.mode == RecoveryMode::SkipAnyCorruptedRecords);
        };
        self.seen = batch.seq();
        self.account.behind = Seq(batch.seq().0 + u64::from(batch.count()));
        let replaced;
        let (batch, records) = match decision {
            FilteredRecord::Whole => (batch, records),
            FilteredRecord::Dropped => {
                let count = u64::from(batch.count());
                let last = Seq((batch.seq().0 + count).saturating_sub(1));
                self.account.outcome.last = self.account.outcome.last.max(last);
                return Ok(!self.account.is_over);
            }
            FilteredRecord::Replaced(by) => {
                replaced = by;
                (replaced.reader(), replaced.reader().records())
            }
        };
        let mut to = ReplayTargets {
            families: &self.families,
            timestamp_sizes,
            needs_operators: self.needs_operators,
            keeps_timestamps: self.is_salvage,
            log: number,
            full: Vec::new(),
            sections: &mut self.sections,
            left_out: &mut self.account.outcome.left_out,
            max_family: self
                .account
                .known
                .filter(|k| k.logs.is_some())
                .map(|k| k.max_family),
            unknown: None,
        };
        self.is_inserting = true;
        let inserted = apply::insert(records, batch.seq(), &mut to);
        let (full, unknown) = (to.full, to.unknown);
        let taken = match inserted {
            Err(e) if self.is_salvage && e.is_corruption() => {
                // Its first records may be in memory.
                self.sections.give_up();
                let line = format!("{}: {}", log_name(number), e.message());
                self.account.note_loss(number, line, bytes.len() as u64);
                u64::from(batch.count())
            }
            inserted => inserted?,
        };
        self.is_inserting = false;
        if let Some(family) = unknown {
            self.account.unknown.get_or_insert((number, family));
        }
        self.account.outcome.has_sections |= self.sections.were_met();
        if taken > 0 && !seeded(Bug::ReplaySequenceStands) {
            self.account.outcome.last = self
                .account
                .outcome
                .last
                .max(Seq(batch.seq().0 + taken - 1));
        }
        for family in full {
            (self.on_full)(&family)?;
        }
        Ok(true)
    }
}

/// Sequences have 56 bits. What a commit brings in is not in its batch's count, and more is written
/// later.
fn has_room(batch: &BatchReader<'_>) -> Result<()> {
    let after = u64::from(batch.count()) + u64::from(u32::MAX);
    if batch.seq().0 > Seq::MAX.0 - after {
        Err(Error::corruption(
            "a batch whose sequence does not fit 56 bits",
        ))
    } else {
        Ok(())
    }
}
