//! The write-ahead log as the leader sees it: the file that takes appends and the older ones still
//! needed.
//!
//! Owned by the log lock. A log is *alive* until every family's data in it is in tables that a
//! synced MANIFEST lists; only then may it be deleted. A sync covers every log that still has
//! un-synced bytes, oldest first, so an acknowledged sync never leaves a hole behind it. A flush of
//! one family among several syncs the logs that it was switched away from, without the log lock:
//! its table must not survive what other families wrote before.

use super::spare_log::{SpareCount, SpareLog};
use crate::options::{DbOptions, WalRecoveryMode};
use crate::ranks;
use crate::store::continuity::{LinkRecord, Predecessor, WalManifestLink};
use crate::tree::ObsoleteFiles;
use esker_codec::compress::Codec;
use esker_env::{Env, Lifetime, WritableFile, WriteOptions as FileWriteOptions};
use esker_files::log::{LogWriter, LogWriterOptions};
use esker_format::batch::encode_header;
use esker_format::{FamilyId, FileNo, KeyOrder, Seq, file_name};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::{Arc, Mutex};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// One log file that may still be needed by recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AliveLog {
    pub(crate) number: FileNo,
    pub(crate) bytes: u64,
    /// Its records say which log they are of, so another log may begin in its file.
    pub(crate) recyclable: bool,
}

impl AliveLog {
    /// One that recovery found, of which it is unknown how often its file was begun.
    pub(crate) fn found(number: FileNo, bytes: u64) -> Self {
        AliveLog {
            number,
            bytes,
            recyclable: false,
        }
    }
}

/// A log that was switched away from before its last bytes were synced.
#[derive(Debug)]
pub(crate) struct OldLog {
    number: FileNo,
    state: Mutex<SyncState>,
}

/// State of a log's sync, which tells whether its content survives power loss.
#[derive(Debug)]
enum SyncState {
    NotYet(Box<LogWriter>),
    Yes,
    /// Unknown, and a second sync would not tell.
    Unknown(Error),
}

impl OldLog {
    /// Returns whether another log may begin in its file: nothing failed there, and no thread is at
    /// it. Does not wait.
    fn is_reusable(&self) -> bool {
        let state = self.state.try_lock();
        state.is_some_and(|state| !matches!(*state, SyncState::Unknown(_)))
    }

    /// Makes what it holds survive power loss. Waits for another thread that does so already.
    pub(crate) fn sync(&self) -> Result<()> {
        let mut state = self.state.lock();
        let done = match &mut *state {
            SyncState::NotYet(writer) => writer.sync().and_then(|()| writer.close()),
            SyncState::Yes => return Ok(()),
            SyncState::Unknown(e) => return Err(e.clone()),
        };
        *state = match &done {
            Ok(()) => SyncState::Yes,
            Err(e) => SyncState::Unknown(e.clone()),
        };
        done
    }
}

/// Obsolete logs. Those that are open are closed with it, which takes milliseconds where
/// they are mapped: not under the log lock, which writers need.
#[derive(Debug)]
pub(crate) struct ReleasedLogs {
    pub(crate) logs: Vec<AliveLog>,
    pub(crate) files: Vec<Arc<OldLog>>,
}

#[derive(Debug)]
pub(crate) struct LogState {
    env: Env,
    /// Where files come from that older logs left.
    obsolete_files: Arc<ObsoleteFiles>,
    dir: PathBuf,
    settings: LogSettings,
    writer: Option<LogWriter>,
    /// Logs switched away from before their last bytes were synced, oldest first.
    unsynced: Vec<Arc<OldLog>>,
    /// Those of them from before a log broke: no sync of the log covers them any more, but no table
    /// may be ahead of them.
    left_behind: Vec<Arc<OldLog>>,
    alive: VecDeque<AliveLog>,
    /// Taken by the next switch.
    spares: Vec<SpareLog>,
    spare_count: SpareCount,
    /// How long the timestamps of keys are, for families that have them: each log says so before
    /// its first batch.
    timestamp_sizes: Vec<(FamilyId, u16)>,
    /// Link record that goes in front of the next record.
    to_say: Option<PendingLink>,
    /// Something is in the MANIFEST that no log has, and no log says that the MANIFEST goes so far.
    is_behind_manifest: bool,
    wal_link: Arc<WalManifestLink>,
    /// Set when an append or sync failed: the tail of the file is unknown and nothing more goes
    /// into it.
    broken: Option<Error>,
    /// Error of a broken log, while batches acknowledged from it are in memtables alone: until all
    /// of them are in tables, no flush or sync of a log says that they are safe.
    unsaved: Option<Error>,
}

/// Link record that a log still has to write: with the MANIFEST as it is when a record comes.
#[derive(Clone, Copy, Debug)]
enum PendingLink {
    Begin { own: FileNo, before: Predecessor },
    Mark,
}

/// The options that shape a log.
#[derive(Clone, Debug)]
pub(crate) struct LogSettings {
    pub(crate) file: FileWriteOptions,
    pub(crate) compression: Codec,
    pub(crate) manual_flush: bool,
}

impl LogSettings {
    pub(crate) fn of(options: &DbOptions, write_buffer_size: usize) -> Self {
        let preallocate = (write_buffer_size as u64).saturating_add(write_buffer_size as u64 / 10);
        LogSettings {
            file: FileWriteOptions {
                lifetime: Lifetime::Short,
                direct: false,
                bytes_per_sync: options.wal_bytes_per_sync,
                buffer_size: 0,
                preallocate: if options.allow_fallocate {
                    preallocate
                } else {
                    0
                },
                exclusive: true,
                background: false,
                mapped: options.allow_mmap_writes && bears_holes(options.wal_recovery_mode),
                reusable: options.recycle_log_file_num > 0,
            },
            compression: options.wal_compression.codec().unwrap_or(Codec::None),
            manual_flush: options.manual_wal_flush,
        }
    }
}

/// Returns whether a recovery in this mode goes on when the last record of a log has a hole, as a
/// process leaves it that ends while it copies into a mapping.
fn bears_holes(mode: WalRecoveryMode) -> bool {
    match mode {
        WalRecoveryMode::PointInTimeRecovery | WalRecoveryMode::SkipAnyCorruptedRecords => true,
        WalRecoveryMode::TolerateCorruptedTailRecords | WalRecoveryMode::AbsoluteConsistency => {
            false
        }
    }
}

impl LogState {
    pub(crate) fn new(
        env: Env,
        obsolete_files: Arc<ObsoleteFiles>,
        dir: PathBuf,
        settings: LogSettings,
        wal_link: Arc<WalManifestLink>,
    ) -> Self {
        LogState {
            env,
            obsolete_files,
            dir,
            settings,
            writer: None,
            unsynced: Vec::new(),
            left_behind: Vec::new(),
            alive: VecDeque::new(),
            spares: Vec::new(),
            spare_count: SpareCount::default(),
            timestamp_sizes: Vec::new(),
            to_say: None,
            is_behind_manifest: false,
            wal_link,
            broken: None,
            unsaved: None,
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Write-back of logs to come is started after each of this many bytes.
    pub(crate) fn set_bytes_per_sync(&mut self, bytes: u64) {
        self.settings.file.bytes_per_sync = bytes;
    }

    /// The number of the log that takes appends; 0 before the first.
    pub(crate) fn number(&self) -> FileNo {
        self.alive.back().map_or(FileNo(0), |l| l.number)
    }

    /// Bytes that the log which takes appends has in its file.
    pub(crate) fn written(&self) -> u64 {
        let writer = self.writer.as_ref();
        writer.map_or(0, |w| w.len() - w.buffered() as u64)
    }

    /// Bytes of all logs that may still be needed.
    pub(crate) fn alive_bytes(&self) -> u64 {
        self.alive.iter().map(|l| l.bytes).sum()
    }

    /// The logs that may still be needed, oldest first.
    pub(crate) fn alive(&self) -> impl Iterator<Item = AliveLog> + '_ {
        self.alive.iter().copied()
    }

    /// Returns whether the log that takes appends holds no record yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.alive.back().is_none_or(|l| l.bytes == 0)
    }

    /// Returns whether an append or sync failed since the last [`LogState::rotate`].
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Takes note of logs that recovery read and that are needed until their data is in tables.
    pub(crate) fn adopt(&mut self, logs: impl IntoIterator<Item = AliveLog>) {
        self.alive.extend(logs);
    }

    /// Takes note of a family before the first batch for it is appended.
    pub(crate) fn note_family(&mut self, family: FamilyId, order: &KeyOrder) -> Result<()> {
        let size = u16::try_from(order.timestamp_size())
            .map_err(|_| Error::invalid_argument("a timestamp has at most 65535 bytes"))?;
        if size == 0 || self.timestamp_sizes.contains(&(family, size)) {
            return Ok(());
        }
        self.timestamp_sizes.push((family, size));
        match &mut self.writer {
            Some(writer) => writer
                .add_timestamp_sizes(&[(family, size)])
                .inspect_err(|e| self.broken = Some(e.clone())),
            None => Ok(()),
        }
    }

    /// How the files of logs are made.
    pub(crate) fn file_options(&self) -> FileWriteOptions {
        self.settings.file
    }

    /// The number of the log that is there for the next switch.
    pub(crate) fn spare_number(&self) -> Option<FileNo> {
        self.spares.first().map(SpareLog::number)
    }

    /// Counts the logs that are ready for the next switches, and those that are being made.
    pub(crate) fn spare_count(&self) -> SpareCount {
        self.spare_count.clone()
    }

    /// Takes a log for one of the next switches, with a name that survives power loss. Returns it
    /// when it is of no use: the logs have gone on to a higher number.
    pub(crate) fn take_spare(&mut self, spare: SpareLog) -> Option<SpareLog> {
        if self.writer.is_none() || spare.number() <= self.number() {
            return Some(spare);
        }
        let at = self.spares.partition_point(|s| s.number() < spare.number());
        self.spares.insert(at, spare);
        None
    }

    /// Takes the first log of a new database: its name is made sure before CURRENT names the
    /// MANIFEST that names the log.
    pub(crate) fn place_first(&mut self, first: SpareLog) {
        self.spares.push(first);
    }

    /// The file of log `number`, whose name survives power loss.
    fn create(&mut self, number: FileNo) -> Result<Box<dyn WritableFile>> {
        let own = self.spares.iter().position(|s| s.number() == number);
        let spare = own.map(|at| self.spares.remove(at));
        if let Some(file) = spare.and_then(SpareLog::into_file) {
            return Ok(file);
        }
        let path = self.dir.join(file_name::log_name(number));
        let file = self.obsolete_files.create_log(&path, self.settings.file)?;
        if !seeded(Bug::WalDirNotSynced) {
            self.env.fs.sync_dir(&self.dir)?;
        }
        Ok(file)
    }

    /// Starts log `number`; appends go there from now on, with sequences from `next`. Spare logs of
    /// lower numbers are removed.
    ///
    /// The directory is synced before the first record can be acknowledged, and before the old log
    /// names the new one.
    pub(crate) fn rotate(&mut self, number: FileNo, next: Seq) -> Result<()> {
        if self.broken.is_none()
            && let Some(old) = &mut self.writer
            && let Err(e) = old.flush()
        {
            // What was acknowledged and still buffered is in the memtables alone now.
            self.broken = Some(e.clone());
            return Err(e);
        }
        let file = self.create(number)?;
        self.spares.retain(|spare| spare.number() > number);
        let recyclable = self.settings.file.reusable;
        let options = LogWriterOptions {
            recycle: (recyclable && !seeded(Bug::WalReusedUnmarked)).then_some(number),
            compression: self.settings.compression,
        };
        let mut writer = LogWriter::new(file, options)?;
        writer.add_timestamp_sizes(&self.timestamp_sizes)?;
        let before = self.alive.iter().rfind(|log| log.bytes > 0).copied();
        self.end(number, next)?;
        let number_before = self.number();
        let broken = self.broken.take();
        if let Some(old) = self.writer.replace(writer) {
            let sure = match &broken {
                Some(e) => SyncState::Unknown(e.clone()),
                None => SyncState::NotYet(Box::new(old)),
            };
            self.unsynced.push(Arc::new(OldLog {
                number: number_before,
                state: Mutex::new(ranks::OLD_LOG, sure),
            }));
        }
        if let Some(e) = broken {
            self.left_behind.append(&mut self.unsynced);
            self.unsaved = Some(e);
        }
        // The length of a broken log is where its last whole record ends.
        let before = before.map_or(Predecessor::default(), |old| Predecessor {
            number: old.number,
            bytes: old.bytes,
        });
        let own = number;
        self.to_say =
            (!seeded(Bug::WalPredecessorUnsaid)).then_some(PendingLink::Begin { own, before });
        self.alive.push_back(AliveLog {
            number,
            bytes: 0,
            recyclable,
        });
        self.wal_link.log_begun(number, before);
        Ok(())
    }

    /// The log's last record, when there are others: `following` takes appends from now on. Where
    /// the log ends then.
    fn end(&mut self, following: FileNo, next: Seq) -> Result<Option<u64>> {
        let is_empty = self.is_empty();
        let Some(writer) = self.writer.as_mut().filter(|_| self.broken.is_none()) else {
            return Ok(None);
        };
        if is_empty {
            return Ok(Some(0));
        }
        let said = LinkRecord::End {
            next: following,
            manifest: self.wal_link.manifest(),
        };
        let done = writer
            .add_record(&said.encode(next))
            .and_then(|()| writer.flush());
        match done {
            Ok(()) => {
                self.is_behind_manifest = false;
                let bytes = writer.len();
                if let Some(log) = self.alive.back_mut() {
                    log.bytes = bytes;
                }
                Ok(Some(bytes))
            }
            Err(e) => {
                self.broken = Some(e.clone());
                Err(e)
            }
        }
    }

    /// The next record comes behind a word on the MANIFEST: something is in there that no log has.
    pub(crate) fn mention_manifest(&mut self) {
        self.to_say.get_or_insert(PendingLink::Mark);
        self.is_behind_manifest = true;
    }

    /// Appends one record made of `parts`, and hands it to the operating system.
    #[inline]
    pub(crate) fn append(&mut self, parts: &[&[u8]]) -> Result<()> {
        if let Some(e) = &self.broken {
            return Err(e.clone());
        }
        let Some(writer) = &mut self.writer else {
            return Err(Error::shutdown());
        };
        let flush = !self.settings.manual_flush && !seeded(Bug::WalKeptInBuffer);
        let said = match self.to_say.take() {
            None => Ok(()),
            Some(what) => {
                self.is_behind_manifest = false;
                say(writer, what, &self.wal_link, parts)
            }
        };
        let done = said
            .and_then(|()| writer.add_record_parts(parts))
            .and_then(|()| if flush { writer.flush() } else { Ok(()) });
        match done {
            Ok(()) => {
                if let Some(log) = self.alive.back_mut() {
                    log.bytes = writer.len();
                }
                Ok(())
            }
            Err(e) => {
                if !seeded(Bug::WalAppendAfterFailure) {
                    self.broken = Some(e.clone());
                }
                Err(e)
            }
        }
    }

    /// Why something acknowledged is in memtables alone, when it is.
    pub(crate) fn unsaved(&self) -> Option<&Error> {
        self.unsaved.as_ref()
    }

    /// All that was acknowledged from logs that broke is in tables.
    pub(crate) fn note_saved(&mut self) {
        self.unsaved = None;
    }

    /// An error while something acknowledged is not in the logs as it should be.
    fn check_whole(&self) -> Result<()> {
        match self.broken.as_ref().or(self.unsaved.as_ref()) {
            Some(e) => Err(e.clone()),
            None => Ok(()),
        }
    }

    /// Writes at once what would precede the next record, whose sequence will be `next`: only this
    /// log names the logs before it. The log still counts as empty.
    pub(crate) fn say_now(&mut self, next: Seq) -> Result<()> {
        let (Some(writer), Some(what)) = (&mut self.writer, self.to_say.take()) else {
            return Ok(());
        };
        self.is_behind_manifest = false;
        let done = say(writer, what, &self.wal_link, &[&encode_header(next, 0)]);
        done.and_then(|()| writer.flush())
            .inspect_err(|e| self.broken = Some(e.clone()))
    }

    /// Hands buffered records to the operating system (for `manual_wal_flush`).
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.check_whole()?;
        match &mut self.writer {
            Some(w) => w.flush().inspect_err(|e| self.broken = Some(e.clone())),
            None => Ok(()),
        }
    }

    /// The logs below `number` that are not known to survive power loss, oldest first.
    pub(crate) fn unsure_before(&self, number: FileNo) -> Vec<Arc<OldLog>> {
        let unsure = self.left_behind.iter().chain(&self.unsynced);
        let before = unsure.filter(|old| old.number < number);
        before.cloned().collect()
    }

    /// A log could not be synced: what was acknowledged from it must reach tables, and nothing more
    /// goes into logs until a new one was started.
    pub(crate) fn fail(&mut self, error: &Error) {
        self.broken.get_or_insert_with(|| error.clone());
    }

    /// Makes everything appended so far survive power loss.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.check_whole()?;
        self.sync_written()
    }

    /// Makes what was appended since the logs were last whole survive power loss.
    pub(crate) fn sync_written(&mut self) -> Result<()> {
        if let Some(e) = &self.broken {
            return Err(e.clone());
        }
        let done = self.sync_all();
        if seeded(Bug::WalFsyncRetried) {
            return done;
        }
        done.inspect_err(|e| self.broken = Some(e.clone()))
    }

    /// Makes all that was written sure, before tables are added that are in no log.
    pub(crate) fn sync_before_tables(&mut self) -> Result<()> {
        self.sync()?;
        if let Some(log) = self.alive.back() {
            self.wal_link.synced_before_tables(log.number, log.bytes);
        }
        Ok(())
    }

    fn sync_all(&mut self) -> Result<()> {
        if !seeded(Bug::WalOldLogsNotSynced) {
            for old in &self.unsynced {
                old.sync()?;
            }
            self.unsynced.clear();
        }
        match &mut self.writer {
            Some(w) if seeded(Bug::WalAckBeforeSync) => w.flush(),
            Some(w) => w.sync(),
            None => Ok(()),
        }
    }

    /// Forgets the logs below `number`, which no recovery needs any more, and returns them for
    /// deletion.
    pub(crate) fn release_before(&mut self, number: FileNo) -> ReleasedLogs {
        let keep = self.alive.back().map_or(number, |l| l.number.min(number));
        let mut logs = Vec::new();
        while let Some(log) = self.alive.front().copied() {
            if log.number >= keep {
                break;
            }
            logs.push(log);
            self.alive.pop_front();
        }
        // What released logs hold is in synced tables now.
        let is_released = |old: &mut Arc<OldLog>| old.number < keep;
        let mut files: Vec<_> = self.left_behind.extract_if(.., is_released).collect();
        files.extend(self.unsynced.extract_if(.., is_released));
        for log in &mut logs {
            let own = files.iter().find(|old| old.number == log.number);
            log.recyclable &= own.is_none_or(|old| old.is_reusable());
        }
        ReleasedLogs { logs, files }
    }

    /// The database closes, with `next` as the sequence that would come: the log's last record.
    /// Where the log ends, when that is sure. A log without a record gets one when no log says how
    /// far the MANIFEST went.
    pub(crate) fn finish(&mut self, next: Seq) -> Result<Option<u64>> {
        let is_open = self.writer.is_some() && self.broken.is_none();
        if is_open && self.is_empty() && self.is_behind_manifest {
            self.append(&[&encode_header(next, 0)])?;
        }
        self.end(FileNo(0), next)
    }

    /// Flushes, optionally syncs, and closes: appends fail from now on.
    pub(crate) fn close(&mut self, sync: bool) -> Result<()> {
        let is_whole = self.check_whole().is_ok();
        let done = if sync && is_whole {
            self.sync_all()
        } else if is_whole || self.settings.manual_flush {
            self.flush()
        } else {
            Ok(())
        };
        self.spares.clear();
        let closed = match self.writer.take() {
            Some(mut w) if self.broken.is_none() => w.close().and_then(|()| self.cut(w.len())),
            _ => Ok(()),
        };
        done.and(closed)
    }

    /// Ends the file of the last log where the log ends, when an older one may have left something
    /// behind it.
    fn cut(&self, len: u64) -> Result<()> {
        if self.settings.file.reusable {
            let path = self.dir.join(file_name::log_name(self.number()));
            self.env.fs.truncate(&path, len)
        } else {
            Ok(())
        }
    }
}

/// Writes what a log says in front of a batch.
#[cold]
fn say(
    writer: &mut LogWriter,
    what: PendingLink,
    wal_link: &WalManifestLink,
    batch: &[&[u8]],
) -> Result<()> {
    let seq = batch.first().and_then(|header| header.first_chunk::<8>());
    let seq = seq.map_or(Seq::ZERO, |bytes| Seq(u64::from_le_bytes(*bytes)));
    let manifest = wal_link.manifest();
    let tie = match what {
        PendingLink::Begin { own, before } => LinkRecord::Begin {
            own,
            before,
            manifest,
        },
        PendingLink::Mark => LinkRecord::Mark(manifest),
    };
    writer.add_record(&tie.encode(seq))
}

#[cfg(test)]
mod tests;
