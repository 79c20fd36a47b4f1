//! The account of logs that are read: how far, what they and the MANIFEST say of each other, held
//! against what is there, and what is lost.
//!
//! A replay goes on only where nothing is lost in between, unless the recovery mode says otherwise;
//! the errors here are those of a directory that is not whole.

use super::targets::Target;
use crate::recover::fold::ManifestContents;
use crate::store::continuity::{LinkRecord, ManifestEnd, Predecessor};
use crate::write::prepared::NamedBatches;
use esker_files::log::RecoveryMode;
use esker_format::edit::KnownLogs;
use esker_format::file_name::{log_name, manifest_name};
use esker_format::{FamilyId, FileNo, Seq};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Facts of the MANIFEST that logs are checked against: only where there is no writer meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayBounds {
    pub(super) manifest: ManifestEnd,
    /// `None` where the writer of the MANIFEST does not speak of logs.
    pub(super) logs: Option<KnownLogs>,
    /// Logs below may be gone, since tables have what is in them.
    pub(super) oldest: FileNo,
    pub(super) max_family: FamilyId,
}

impl ReplayBounds {
    /// By `folded`, when logs from `oldest` on are read. Nothing of a copy that was made without
    /// logs: those that are there were added by an operator, and fit.
    pub(crate) fn of(folded: &ManifestContents, oldest: FileNo) -> Option<ReplayBounds> {
        let is_alone = folded.known_logs.is_some_and(|l| l.newest == FileNo(0));
        (!is_alone).then(|| ReplayBounds {
            manifest: ManifestEnd {
                number: folded.manifest,
                bytes: folded.valid_end,
            },
            logs: folded.known_logs,
            oldest,
            max_family: folded.max_family,
        })
    }
}

/// The findings of a replay.
#[derive(Debug, Default)]
pub(crate) struct ReplayResult {
    /// The newest sequence that any log held.
    pub(crate) last: Seq,
    /// Logs that were read, oldest first, each with where its last whole record ends.
    pub(crate) logs: Vec<(FileNo, u64)>,
    /// One line for each loss.
    pub(crate) losses: Vec<String>,
    /// Logs that end inside a record, which is what a crash leaves of the newest one.
    pub(crate) torn: Vec<FileNo>,
    /// Logs that hold bytes which were not replayed: they are kept aside and not deleted.
    pub(crate) damaged: Vec<FileNo>,
    /// Replay ended before the end of the logs (point-in-time recovery).
    pub(crate) stopped: bool,
    /// Transactions that were prepared and neither committed nor undone.
    pub(crate) prepared: NamedBatches,
    /// The logs hold sections of prepared transactions, be they over or not.
    pub(crate) has_sections: bool,
    /// A log is missing, and with it perhaps edits of the MANIFEST.
    pub(crate) is_doubtful: bool,
    /// Records of families that do not take part, by family.
    pub(crate) left_out: BTreeMap<FamilyId, u64>,
}

/// How far logs were read, what they and the MANIFEST say of each other, and what is lost.
#[derive(Debug)]
pub(super) struct LogAccount {
    pub(super) dir: PathBuf,
    pub(super) mode: RecoveryMode,
    pub(super) outcome: ReplayResult,
    /// The sequence that the next batch must have for replay to go on after a stop.
    pub(super) expected: Option<Seq>,
    /// The first log whose end may be lost: no later one showed yet that all of it was read.
    pub(super) cut_short: Option<FileNo>,
    /// The log that said last that it ends.
    ended: Option<FileNo>,
    /// Where what was read of each log ends.
    pub(super) ends: BTreeMap<FileNo, u64>,
    /// The sequence behind the batch that was read last.
    pub(super) behind: Seq,
    /// The log that was found to begin as this program begins them.
    pub(super) begun: Option<FileNo>,
    /// The filter wants nothing more.
    pub(super) is_over: bool,
    pub(super) known: Option<ReplayBounds>,
    /// The logs that are there.
    present: Vec<FileNo>,
    /// The first log that speaks of a family that the MANIFEST did not know, and that family.
    pub(super) unknown: Option<(FileNo, FamilyId)>,
}

impl LogAccount {
    pub(super) fn new(dir: PathBuf, mode: RecoveryMode) -> Self {
        LogAccount {
            dir,
            mode,
            outcome: ReplayResult::default(),
            expected: None,
            cut_short: None,
            ended: None,
            ends: BTreeMap::new(),
            behind: Seq::ZERO,
            begun: None,
            is_over: false,
            known: None,
            present: Vec::new(),
            unknown: None,
        }
    }

    /// The logs `present` are there; those that the MANIFEST names must be among them.
    pub(super) fn expect(&mut self, present: Vec<FileNo>) -> Result<()> {
        self.present = present;
        if let Some(named) = self.known.and_then(|k| k.logs) {
            let newest = (!named.is_closed_empty()).then_some(named.newest);
            for number in newest.into_iter().chain([named.before]) {
                if self.is_missing(number) {
                    self.miss(number, "the MANIFEST names it")?;
                }
            }
        }
        Ok(())
    }

    /// Takes note of a log that ends at `end`, where the MANIFEST says that it was longer when the
    /// next one was begun.
    pub(super) fn note_end(&mut self, number: FileNo, end: u64) {
        let named = self.known.and_then(|k| k.logs);
        let is_shorter = named.is_some_and(|l| l.before == number && end < l.before_end);
        if is_shorter && !self.is_over {
            self.cut_short.get_or_insert(number);
        }
    }

    /// Ends log `number` where the rest of its file is of an older log, whose file it took over.
    /// Its end record, or the next log, shows whether its own end is lost.
    pub(super) fn end_at_remains(&mut self, number: FileNo, line: String) {
        if self.ended == Some(number) {
            return;
        }
        self.note_loss(number, line, 0);
        if self.mode == RecoveryMode::PointInTimeRecovery {
            self.expect_next();
        } else {
            self.outcome.torn.push(number);
        }
    }

    pub(super) fn note_loss(&mut self, number: FileNo, line: String, bytes: u64) {
        self.outcome.losses.push(format!("{line} ({bytes} bytes)"));
        if bytes > 0 && !self.outcome.damaged.contains(&number) {
            self.outcome.damaged.push(number);
        }
    }

    /// Stops, passes over a damaged record, or fails, as the recovery mode says.
    pub(super) fn damaged(&mut self, number: FileNo, e: Error, bytes: u64) -> Result<()> {
        match self.mode {
            RecoveryMode::PointInTimeRecovery if e.is_corruption() => {
                self.stop(number, e.message(), bytes);
            }
            RecoveryMode::SkipAnyCorruptedRecords if e.is_corruption() => {
                let line = format!("{}: {}", log_name(number), e.message());
                self.note_loss(number, line, bytes);
            }
            _ => return Err(e),
        }
        Ok(())
    }

    /// Ends the replay in log `number`.
    pub(super) fn stop(&mut self, number: FileNo, why: &str, bytes: u64) {
        let line = format!("{}: replay stopped: {why}", log_name(number));
        self.note_loss(number, line, bytes.max(1));
        self.cut_short.get_or_insert(number);
        self.expect_next();
    }

    /// Stops, unless what comes next in a later log joins what was replayed ([`LogAccount::join`]).
    pub(super) fn expect_next(&mut self) {
        self.outcome.stopped = true;
        self.expected = Some(self.outcome.last.next());
    }

    /// Returns whether the MANIFEST says which logs should be there.
    pub(super) fn knows_logs(&self) -> bool {
        self.known.is_some_and(|k| k.logs.is_some())
    }

    /// Returns whether log `number` should be there and is not.
    fn is_missing(&self, number: FileNo) -> bool {
        number > FileNo(0)
            && self.knows_logs()
            && self.known.is_some_and(|k| number >= k.oldest)
            && !self.present.contains(&number)
    }

    /// A log is gone. No power cut does that: its name was synced before anything named it.
    fn miss(&mut self, number: FileNo, why: &str) -> Result<()> {
        let path = self.dir.join(log_name(number));
        if self.mode != RecoveryMode::SkipAnyCorruptedRecords {
            return Err(Error::corruption(format!("the log is missing: {why}"))
                .with_file(path)
                .with_hint(
                    "nothing was changed; restore the file, or open with \
                     wal_recovery_mode=kSkipAnyCorruptedRecords to go on without it",
                ));
        }
        let line = format!("{}: the log is missing: {why}", path.display());
        if !self.outcome.losses.contains(&line) {
            self.outcome.losses.push(line);
        }
        self.outcome.is_doubtful = true;
        Ok(())
    }

    /// The MANIFEST must be at least what it was when log `number` said so.
    fn check_manifest(&self, number: FileNo, said: ManifestEnd) -> Result<()> {
        let Some(found) = self.known.map(|k| k.manifest) else {
            return Ok(());
        };
        let is_older = found.number < said.number;
        if !is_older && (found.number > said.number || found.bytes >= said.bytes) {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "the last whole edit ends at {}, and {} ended at {} when {} was written: edits are \
             lost",
            found.bytes,
            manifest_name(said.number),
            said.bytes,
            log_name(number)
        ))
        .with_file(self.dir.join(manifest_name(found.number)))
        .with_hint(
            "nothing was changed; restore the MANIFEST, or run `esker repair` on a copy of the \
             directory",
        ))
    }

    /// The newest log must end where the MANIFEST says that it ended when the database was closed.
    pub(super) fn check_end_of_newest(&mut self) -> Result<()> {
        let Some(logs) = self.known.and_then(|k| k.logs) else {
            return Ok(());
        };
        let found = self.ends.get(&logs.newest).copied();
        let (Some(end), Some(found)) = (logs.end, found) else {
            return Ok(());
        };
        if found >= end || self.outcome.damaged.contains(&logs.newest) || self.is_over {
            return Ok(());
        }
        let path = self.dir.join(log_name(logs.newest));
        let why = format!("the log ends at {found}, and it ended at {end} when it was closed");
        if self.mode == RecoveryMode::AbsoluteConsistency {
            return Err(Error::corruption(why).with_file(path));
        }
        self.outcome
            .losses
            .push(format!("{}: {why}", path.display()));
        Ok(())
    }

    /// Logs must speak only of families that the MANIFEST knows, or knew.
    pub(super) fn check_families(&mut self) -> Result<()> {
        let max = self.known.map(|k| k.max_family);
        match self.unknown.take() {
            Some((number, family)) if max.is_some_and(|max| family > max) => {
                self.miss_family(number, family)
            }
            _ => Ok(()),
        }
    }

    /// A log speaks of a family that the MANIFEST does not know, and that is newer than those it
    /// knows.
    fn miss_family(&mut self, number: FileNo, family: FamilyId) -> Result<()> {
        let why = format!(
            "{} writes to column family {family}, which the MANIFEST does not know: edits are lost",
            log_name(number)
        );
        if self.mode != RecoveryMode::SkipAnyCorruptedRecords {
            let manifest = self.known.map(|k| manifest_name(k.manifest.number));
            return Err(
                Error::corruption(why).with_file(self.dir.join(manifest.unwrap_or_default()))
            );
        }
        if !self.outcome.losses.contains(&why) {
            self.outcome.losses.push(why);
        }
        self.outcome.is_doubtful = true;
        Ok(())
    }

    /// Checks what a log records of other files; false when replay ends here.
    pub(super) fn check_tie(&mut self, number: FileNo, tie: LinkRecord, next: Seq) -> Result<bool> {
        match tie {
            LinkRecord::Begin {
                own,
                before,
                manifest,
            } => {
                if own == number {
                    self.begun = Some(number);
                } else {
                    let why = format!("it begins as log {own}");
                    return self.break_off(number, number, &why, 0);
                }
                self.check_manifest(number, manifest)?;
                self.check_predecessor(number, before, next)
            }
            LinkRecord::Mark(manifest) => self.check_manifest(number, manifest).map(|()| true),
            LinkRecord::End { next, manifest } => {
                self.ended = Some(number);
                self.check_manifest(number, manifest)?;
                if next > FileNo(0) && self.is_missing(next) {
                    self.miss(next, &format!("{} names it", log_name(number)))?;
                }
                Ok(true)
            }
        }
    }

    /// Handles a gap: the rest of log `number` does not join what was replayed, since log `damaged`
    /// is not whole. False when replay ends here.
    fn break_off(
        &mut self,
        number: FileNo,
        damaged: FileNo,
        why: &str,
        bytes: u64,
    ) -> Result<bool> {
        match self.mode {
            RecoveryMode::AbsoluteConsistency => Err(Error::corruption(why)),
            RecoveryMode::SkipAnyCorruptedRecords => {
                let line = format!("{}: {why}", log_name(number));
                self.outcome.losses.push(line);
                Ok(true)
            }
            _ => {
                if damaged != number && !self.outcome.damaged.contains(&damaged) {
                    self.outcome.damaged.push(damaged);
                }
                self.cut_short.get_or_insert(damaged);
                self.stop(number, why, bytes);
                Ok(false)
            }
        }
    }

    /// Notes that what comes next joins what was read so far: nothing is lost in between.
    pub(super) fn join(&mut self) {
        self.cut_short = None;
        self.expected = None;
        self.outcome.stopped = false;
    }

    /// The log before `number` must have been read as far as it was written when `number` was
    /// begun; false when replay ends here since it was not. When it was, a damaged end of that log
    /// is not missed, and replay goes on.
    fn check_predecessor(
        &mut self,
        number: FileNo,
        before: Predecessor,
        next: Seq,
    ) -> Result<bool> {
        let end = match self.ends.get(&before.number) {
            Some(&end) => end,
            None if before.bytes > 0 && self.is_missing(before.number) => {
                self.miss(before.number, &format!("{} names it", log_name(number)))?;
                before.bytes
            }
            // Whether it is missing cannot be known, only whether something is. With logs of which
            // nothing could be read nothing is: the log would name one that held anything.
            None if before.bytes > 0
                && !self.knows_logs()
                && self.behind > Seq::ZERO
                && self.expected.is_some_and(|e| e != next) =>
            {
                self.note_loss(number, format!("{}: not replayed", log_name(number)), 1);
                return Ok(false);
            }
            None => before.bytes,
        };
        if end >= before.bytes {
            self.join();
            return Ok(true);
        }
        if self.expected.is_some() {
            self.cut_short.get_or_insert(before.number);
            self.note_loss(number, format!("{}: not replayed", log_name(number)), 1);
            return Ok(false);
        }
        let why = format!(
            "log {} before it ends at {end}, and {} bytes were written to it",
            before.number, before.bytes
        );
        self.break_off(number, before.number, &why, before.bytes - end)
    }

    /// The log whose end is lost, and which tables are ahead of it.
    fn behind_tables(&self, families: &BTreeMap<FamilyId, Target>) -> Option<(FileNo, String)> {
        if let Some(cut) = self.cut_short {
            let is_ahead = |t: &&Target| t.log_number > cut && t.has_tables;
            if let Some(ahead) = families.values().find(is_ahead) {
                let what = format!("column family {} has tables", ahead.name);
                return Some((cut, what));
            }
        }
        let (number, bytes) = self.known?.logs?.synced?;
        let ends_at = match self.cut_short {
            Some(log) if log < number => log,
            _ if *self.ends.get(&number)? < bytes => number,
            _ => return None,
        };
        (!self.is_over).then(|| (ends_at, "tables were ingested".to_owned()))
    }

    /// A table must not hold newer data than a log whose end is lost. No power cut does that: logs
    /// are synced before a table of what comes behind them is named.
    pub(super) fn check_beyond_stop(
        &mut self,
        families: &BTreeMap<FamilyId, Target>,
    ) -> Result<()> {
        let Some((ends_at, ahead)) = self.behind_tables(families) else {
            return Ok(());
        };
        let why = format!("{ahead} with data beyond the damage in log {ends_at}");
        let path = self.dir.join(log_name(ends_at));
        if self.mode == RecoveryMode::SkipAnyCorruptedRecords {
            let line = format!("{}: {why}", path.display());
            self.outcome.losses.push(line);
            return Ok(());
        }
        Err(Error::corruption(why).with_file(path).with_hint(
            "open with wal_recovery_mode=kSkipAnyCorruptedRecords to take what can be read",
        ))
    }
}
