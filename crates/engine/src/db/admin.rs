//! Administration: flushing, compacting, families, options, closing.

use super::{Db, DbRef, Handle};
use crate::core::Core;
use crate::family::{Family, FamilyHandle, FamilySet, choose_block_cache};
use crate::health::HealthState;
use crate::job::flush_ticket::FlushCaller;
use crate::job::scheduler::{is_idle, settling};
use crate::job::{manual, resume, saved_cache};
use crate::observe::{FlushReason, TableWatch};
use crate::options::{
    Change, CompactRangeOptions, DbOptions, FamilyOptions, FlushOptions, OptionSet,
    WaitForCompactOptions, WalRecoveryMode, check as check_options, lint,
};
use crate::runtime::callback::{self, Callback};
use crate::timestamp;
use crate::tree::tables::Storage;
use crate::tree::{TablePaths, paths};
use crate::ttl::TimeToLive;
use esker_format::{FamilyId, FileNo, Seq};
use esker_lsm::pick::manual::ManualRange;
use esker_lsm::version::Version;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;
use esker_sync::atomic::Ordering;
use std::time::Duration;

impl Core {
    /// The error that a write to a database without write access gets.
    #[inline]
    pub(crate) fn check_open_for_writes(&self) -> Result<()> {
        if self.admin.read_only || self.writes.is_closed() {
            return self.refuse_write();
        }
        Ok(())
    }

    #[cold]
    fn refuse_write(&self) -> Result<()> {
        if self.reads.follower.is_some() {
            Err(Error::not_supported(
                "Not supported operation in secondary mode.",
            ))
        } else if self.admin.read_only {
            Err(Error::not_supported(
                "Not supported operation in read only mode.",
            ))
        } else {
            Err(Error::shutdown())
        }
    }

    /// The error of work that nobody does after [`Db::cancel_background_work`].
    pub(super) fn check_background(&self) -> Result<()> {
        if self.background.cv.is_closing() {
            return Err(Error::shutdown());
        }
        Ok(())
    }

    /// The error of a compaction that [`Db::disable_manual_compaction`] forbids, or for which there
    /// are no threads any more.
    pub(crate) fn check_manual_compaction(&self) -> Result<()> {
        self.check_background()?;
        self.background.jobs.lock().check_manual()
    }

    /// A family that is no part of the database yet; its options are checked and completed. Its
    /// directories are not made.
    pub(crate) fn draft_family(
        &self,
        id: FamilyId,
        name: &str,
        options: FamilyOptions,
        log: FileNo,
    ) -> Result<Arc<Family>> {
        self.check_open_for_writes()?;
        check_options(&self.services.options.load(), [(name, &options)])?;
        let db = self.services.options.load();
        let mut options = options.resolve_in(&db);
        if let Some(ttl) = &self.ttl {
            options = ttl.wrap(name, options);
        }
        let levels = usize::try_from(options.num_levels).unwrap_or(7);
        let version = Arc::new(Version::empty(options.comparator.clone(), levels));
        let budget = db.shared_memory_budget.as_deref();
        let cache = choose_block_cache(&options, budget, || self.trees.families.all());
        let watch = self
            .services
            .statistics
            .clone()
            .map(|s| TableWatch::new(s, Arc::clone(&self.services.env.clock), levels));
        let storage = Storage {
            paths: TablePaths::new(&self.services.dir, &options.cf_paths),
            cache,
            watch,
        };
        Ok(Family::new(
            id,
            name.to_owned(),
            options,
            storage,
            version,
            log,
        ))
    }

    fn has_family(&self, name: &str) -> bool {
        self.trees.families.by_name(name).is_some()
    }

    /// A family with a name that no other has, and with its directories. It gets its number when it
    /// is committed.
    pub(crate) fn prepare_family(&self, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        self.check_open_for_writes()?;
        if self.has_family(name) {
            return Err(Error::invalid_argument(format!(
                "Column family already exists: {name}"
            )));
        }
        let findings = lint(&self.services.options.load(), [(name, &options)]);
        let draft = self.draft_family(FamilyId::DEFAULT, name, options, FileNo(0))?;
        for finding in findings.iter().filter(|f| f.family.is_some()) {
            self.services
                .info_log
                .warn(format_args!("options: {finding}"));
        }
        let own = &*draft.reading.paths;
        paths::make(
            &self.services.env,
            &paths::beside(&self.services.env, &self.services.dir, [own]),
        )?;
        Ok(draft)
    }

    /// Creates a family; its options are checked and completed.
    pub(crate) fn create_family(&self, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        let draft = self.prepare_family(name, options)?;
        self.trees.name_in_options(&draft)?;
        let mut log = self.writes.lock();
        let number = log.number();
        let made = self.trees.store.add_family(&self.trees.families, |id| {
            log.note_family(id, &draft.order)?;
            let family = draft.with_tree(id, Arc::clone(&draft.view_guard().version), number);
            // It is empty, so nothing that was ever written to it is missing in its memtable.
            family.begin_after(Seq::ZERO);
            Ok(family)
        })?;
        log.mention_manifest();
        drop(log);
        self.family_created(&made)?;
        Ok(made)
    }

    /// Tells of a family that is part of the database now.
    pub(crate) fn family_created(&self, family: &Arc<Family>) -> Result<()> {
        self.writes.admission.refresh(family);
        if let (Some(part), Some(cache)) = (&self.budget, family.reading.cache()) {
            part.budget.admit(cache);
        }
        self.log_family(family, self.trees.families.len() - 1);
        if seeded(Bug::FamilyBeforeOptions) {
            self.trees
                .write_options_file(self.trees.numbers.next(), None)
        } else {
            Ok(())
        }
    }

    /// The limit on the logs together when none is given: four times all memtables.
    pub(crate) fn default_wal_limit(&self) -> u64 {
        default_wal_limit(&self.trees.families)
    }
}

/// Four times what the memtables of all families may take.
pub(super) fn default_wal_limit(families: &FamilySet) -> u64 {
    let buffers = |f: &Arc<Family>| {
        let o = f.options.load();
        o.write_buffer_size as u64 * u64::try_from(o.max_write_buffer_number).unwrap_or(2)
    };
    families.all().iter().map(buffers).sum::<u64>() * 4
}

impl Db {
    /// Puts what is in memory into tables, for every family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// assert_eq!(db.property("rocksdb.num-files-at-level0").as_deref(), Some("1"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn flush(&self) -> Result<()> {
        self.core().check_background()?;
        let families = self.core().trees.families.all();
        for family in &families {
            self.core().wait_for_room(family)?;
        }
        let reason = FlushReason::ManualFlush;
        self.core().flush(&families, FlushCaller::Flushes, reason)
    }

    /// Puts what `family` has in memory into tables.
    pub fn flush_cf(&self, family: &FamilyHandle, options: &FlushOptions) -> Result<()> {
        self.core().check_background()?;
        if !options.allow_write_stall {
            self.core().wait_for_room(&family.0)?;
        }
        self.core().flush(
            &[Arc::clone(&family.0)],
            FlushCaller::of(options),
            FlushReason::ManualFlush,
        )
    }

    /// Compacts the keys of `[begin, end]` of the default family; `None` is unbounded.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// db.compact_range(Some(b"a"), Some(b"z"))?;
    /// assert_eq!(db.property("rocksdb.num-files-at-level0").as_deref(), Some("0"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn compact_range(&self, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.compact_range_opt(
            &self.default_family_handle(),
            begin,
            end,
            &CompactRangeOptions::default(),
        )
    }

    /// Compacts the keys of `[begin, end]` of `family`, as `options` say. What is in memory is
    /// flushed first.
    pub fn compact_range_opt(
        &self,
        family: &FamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        self.core().check_manual_compaction()?;
        manual::check_canceled(options.canceled.as_ref())?;
        if let Some(low) = options
            .full_history_ts_low
            .as_ref()
            .filter(|l| !l.is_empty())
        {
            if begin.is_some() || end.is_some() {
                return Err(Error::invalid_argument(
                    "Cannot specify compaction range with full_history_ts_low",
                ));
            }
            self.increase_full_history_ts_low(family, low)?;
        }
        if !options.allow_write_stall {
            self.core().wait_for_room(&family.0)?;
        }
        let reason = FlushReason::ManualCompaction;
        let families = [Arc::clone(&family.0)];
        self.core().flush(&families, FlushCaller::Flushes, reason)?;
        let range = ManualRange {
            begin: begin.map(|key| timestamp::first(&family.0.order, key).into_owned()),
            end: end.map(|key| timestamp::last(&family.0.order, key).into_owned()),
        };
        manual::compact_range(self.core(), &family.0, &range, options)
    }

    /// Makes running and later calls of [`Db::compact_range`] give up until
    /// [`Db::enable_manual_compaction`], which takes one such call back; the order of the two does
    /// not count.
    pub fn disable_manual_compaction(&self) {
        self.core().background.jobs.lock().manual_cancelled += 1;
    }

    /// Takes one [`Db::disable_manual_compaction`] back, be it one to come.
    pub fn enable_manual_compaction(&self) {
        self.core().background.jobs.lock().manual_cancelled -= 1;
    }

    /// Starts no background work, and waits until none runs, until
    /// [`Db::continue_background_work`].
    pub fn pause_background_work(&self) -> Result<()> {
        let core = self.core();
        if Callback::is_inside() {
            return Err(callback::would_wait());
        }
        core.background.jobs.lock().paused += 1;
        core.background.wait_for(|| {
            let jobs = core.background.jobs.lock();
            jobs.flushes == 0 && jobs.compactions == 0
        })
    }

    /// Takes one [`Db::pause_background_work`] back.
    pub fn continue_background_work(&self) {
        let core = self.core();
        let mut jobs = core.background.jobs.lock();
        jobs.paused = jobs.paused.saturating_sub(1);
        drop(jobs);
        core.background.cv.notify();
    }

    /// Waits until there is nothing to flush and nothing to compact.
    pub fn wait_for_compaction(&self) -> Result<()> {
        let core = self.core();
        settling(core, || core.background.wait_for(|| is_idle(core)))?;
        core.clean_up();
        Ok(())
    }

    /// Waits until there is nothing to flush and nothing to compact, as `options` say.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # use esker::{Db, ErrorKind, Options, WaitForCompactOptions};
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let mut how = WaitForCompactOptions::default();
    /// how.flush = true;
    /// db.wait_for_compact(&how)?;
    /// how.abort_on_pause = true;
    /// db.pause_background_work()?;
    /// how.flush = false;
    /// let error = db.wait_for_compact(&how).expect_err("work is paused");
    /// assert_eq!(error.kind(), ErrorKind::Aborted);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<()> {
        let core = self.core();
        core.check_background()?;
        if options.flush {
            self.flush()?;
        }
        let clock = &core.services.env.clock;
        let begun = clock.now_us();
        let limit = options.timeout.map_or(u64::MAX, |t| {
            u64::try_from(t.as_micros()).unwrap_or(u64::MAX)
        });
        let gave_up = std::cell::Cell::new(None);
        let done = || {
            if options.abort_on_pause && core.background.jobs.lock().paused > 0 {
                gave_up.set(Some(Error::new(
                    ErrorKind::Aborted,
                    "background work is paused",
                )));
                return true;
            }
            let is_idle = is_idle(core);
            if !is_idle && clock.now_us().saturating_sub(begun) >= limit {
                gave_up.set(Some(Error::new(
                    ErrorKind::TimedOut,
                    "compactions still run, or wait",
                )));
                return true;
            }
            is_idle
        };
        settling(core, || core.background.wait_for(done))?;
        core.clean_up();
        gave_up.take().map_or(Ok(()), Err)
    }

    /// Ends background work for good, after what was written past the log was flushed (unless
    /// `avoid_flush_during_shutdown` is set). Reads, writes and administration go on; flushes,
    /// compactions and writers that would wait for one fail with `ShutdownInProgress` from now on.
    /// With `wait` it returns when no background thread is left. What is written past the log
    /// afterwards is lost when the database closes.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # use esker::{Db, ErrorKind, Options};
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.cancel_background_work(true)?;
    /// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
    /// db.put("key", "other")?;
    /// db.sync_wal()?;
    /// let error = db.flush().expect_err("nobody flushes");
    /// assert_eq!(error.kind(), ErrorKind::ShutdownInProgress);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel_background_work(&self, wait: bool) -> Result<()> {
        let flushed = self.0.stop();
        if wait {
            self.0.join();
        }
        flushed
    }

    /// Creates a column family. In a database with times to live it keeps everything.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let options = esker::FamilyOptions::new().bloom_filter(10.0);
    /// let users = db.create_family("users", options)?;
    /// db.put_cf(&users, "ann", "1")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_family(&self, name: &str, options: FamilyOptions) -> Result<FamilyHandle> {
        let core = self.core();
        let admin = core.admin.lock();
        if let Some(ttl) = core.ttl.as_ref().filter(|_| !core.has_family(name)) {
            ttl.register(name, 0);
        }
        let made = core.create_family(name, options);
        drop(admin);
        core.trees.delete_obsolete_files();
        made.map(FamilyHandle)
    }

    /// Creates a column family whose values live so long. `InvalidArgument` unless the
    /// database was opened with times to live.
    pub fn create_family_with_ttl(
        &self,
        name: &str,
        options: FamilyOptions,
        ttl: impl Into<TimeToLive>,
    ) -> Result<FamilyHandle> {
        let time = ttl.into();
        let core = self.core();
        let admin = core.admin.lock();
        let ttl = core.ttl.as_ref().ok_or_else(no_ttl)?;
        if !core.has_family(name) {
            ttl.register(name, time.seconds());
        }
        let made = core.create_family(name, options);
        drop(admin);
        core.trees.delete_obsolete_files();
        made.map(FamilyHandle)
    }

    /// The seconds that a family's values live (0 and less: for ever); `None` unless the database
    /// was opened with times to live.
    pub fn ttl(&self, family: &FamilyHandle) -> Option<i32> {
        self.core().ttl.as_ref()?.seconds(family.name())
    }

    /// Changes how long a family's values live, for compactions to come.
    pub fn set_ttl(&self, family: &FamilyHandle, time: impl Into<TimeToLive>) -> Result<()> {
        let ttl = self.core().ttl.as_ref().ok_or_else(no_ttl)?;
        if ttl.set_seconds(family.name(), time.into().seconds()) {
            Ok(())
        } else {
            Err(Error::invalid_argument("the column family is not open"))
        }
    }

    /// Drops a column family. Readers that hold it go on; its files go with the last of them.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.drop_family(&users)?;
    /// assert!(db.family("users").is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn drop_family(&self, family: &FamilyHandle) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        if family.0.id == FamilyId::DEFAULT {
            return Err(Error::invalid_argument("Can't drop default column family"));
        }
        let admin = core.admin.lock();
        {
            let mut log = core.writes.lock();
            core.reads.sequence.quiesce();
            core.trees
                .store
                .drop_family(&core.trees.families, &family.0)?;
            log.mention_manifest();
        }
        core.writes.admission.forget(&family.0);
        core.trees
            .write_options_file(core.trees.numbers.next(), None)?;
        drop(admin);
        core.trees.delete_obsolete_files();
        Ok(())
    }

    /// Deletes files without readers at once, and not with the next job. RocksDB does so
    /// whenever a handle on a dropped family goes. Nothing happens once closing has begun.
    pub fn delete_unused_files(&self) {
        let core = self.core();
        if !core.writes.is_closed() {
            core.trees.delete_obsolete_files();
        }
    }

    /// A hold on the database that does not keep it open.
    pub fn downgrade(&self) -> DbRef {
        self.core().services.lent()
    }

    /// Changes mutable options of a family: `(name, value)` pairs, all or none.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// db.set_options(&family, &[("write_buffer_size", "8388608")])?;
    /// let refused = db.set_options(&family, &[("num_levels", "3")]);
    /// assert_eq!(refused.expect_err("at open only").kind(), esker::ErrorKind::InvalidArgument);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_options(&self, family: &FamilyHandle, changes: &[(&str, &str)]) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        if changes.is_empty() {
            return Err(Error::invalid_argument("empty input"));
        }
        let admin = core.admin.lock();
        let mut options = (**family.0.options.load()).clone();
        for (name, value) in changes {
            let head = name.split('.').next().unwrap_or(name);
            let change = FamilyOptions::entry(head).map(|e| e.info.change);
            if change == Some(Change::AtOpen) {
                return Err(Error::invalid_argument(format!(
                    "Option not changeable: {name}"
                )));
            }
            options.set(name, value)?;
        }
        check_options(&core.services.options.load(), [(family.name(), &options)])?;
        family.0.set_options(options.resolve());
        core.writes.admission.refresh(&family.0);
        core.trees
            .write_options_file(core.trees.numbers.next(), None)?;
        drop(admin);
        core.trees.delete_obsolete_files();
        core.background.cv.notify();
        Ok(())
    }

    /// Changes mutable options of the database.
    pub fn set_db_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        if changes.is_empty() {
            return Err(Error::invalid_argument("empty input"));
        }
        let admin = core.admin.lock();
        let mut options = (**core.services.options.load()).clone();
        for (name, value) in changes {
            // Of the database's options only those that may change have names here.
            if DbOptions::entry(name).is_none_or(|e| e.info.change == Change::AtOpen) {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("Unrecognized option: {name}"),
                ));
            }
            options.set(name, value)?;
        }
        check_options(&options, [])?;
        let options = options.resolve();
        core.trees.tables.set_limit(options.max_open_files)?;
        core.background
            .limiter
            .set(options.rate_limiter_bytes_per_sec);
        let logs = match options.max_total_wal_size {
            0 => core.default_wal_limit(),
            given => given,
        };
        core.writes
            .limits
            .max_total_wal_size
            .store(logs, Ordering::Relaxed);
        core.writes
            .lock()
            .set_bytes_per_sync(options.wal_bytes_per_sync);
        core.trees
            .store
            .set_max_manifest_file_size(options.max_manifest_file_size);
        core.writes
            .admission
            .set_delayed_write_rate(options.delayed_write_rate);
        let hours = options.daily_offpeak_time_utc.clone();
        let before = core.services.options.swap(Arc::new(options));
        if before.daily_offpeak_time_utc != hours {
            // Other files may be old now.
            let mut jobs = core.background.jobs.lock();
            let families = core.trees.families.all();
            families.iter().for_each(|f| jobs.queue.look_again(f.id));
        }
        core.trees
            .write_options_file(core.trees.numbers.next(), None)?;
        drop(admin);
        core.trees.delete_obsolete_files();
        core.background.cv.notify();
        Ok(())
    }

    /// Tells whether the database was opened for reading, or follows another one.
    pub fn is_read_only(&self) -> bool {
        self.core().admin.read_only
    }

    /// Tells whether [`Db::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.core().writes.is_closed()
    }

    /// How well the database is.
    pub fn health(&self) -> HealthState {
        self.core().services.health.state()
    }

    /// The error that the database's health comes from.
    pub fn background_error(&self) -> Option<Error> {
        self.core().services.health.error()
    }

    /// Goes on after a background error whose cause is gone.
    pub fn resume(&self) -> Result<()> {
        resume::resume(self.core())
    }

    /// Deletes no files until [`Db::enable_file_deletions`] was called as often.
    pub fn disable_file_deletions(&self) {
        self.core().trees.obsolete_files.disable();
    }

    /// Takes one [`Db::disable_file_deletions`] back, or all of them with `force`.
    pub fn enable_file_deletions(&self, force: bool) {
        if self.core().trees.obsolete_files.enable(force) {
            self.core().trees.delete_obsolete_files();
        }
    }

    /// Closes the database: flushes what was written past the log (unless
    /// `avoid_flush_during_shutdown` is set), waits for background jobs and running compactions,
    /// and gives the lock back. Calls that come later, or still wait, fail with
    /// `ShutdownInProgress`; open iterators go on reading.
    ///
    /// Dropping the last clone does the same, without telling what went wrong.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.close()?;
    /// let error = db.put("key", "other").expect_err("it is closed");
    /// assert_eq!(error.kind(), esker::ErrorKind::ShutdownInProgress);
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(&self) -> Result<()> {
        self.0.close()
    }
}

fn no_ttl() -> Error {
    Error::invalid_argument("the database was opened without times to live")
        .with_hint("open it with open_with_ttl")
}

impl Handle {
    /// Starts no more work, after what was written past the log was flushed.
    fn stop(&self) -> Result<()> {
        let core = &self.core;
        if self.is_borrowed {
            return Err(Error::invalid_argument(
                "a listener cannot close the database that it hears of",
            ));
        }
        if core.background.cv.is_closing() {
            return Ok(());
        }
        // A pause that is not taken back must not keep the flush from running.
        core.background.jobs.lock().paused = 0;
        let keep = core.services.options.load().avoid_flush_during_shutdown;
        let flushed = if core.reads.has_unlogged() && !keep && !core.admin.read_only {
            let families = core.trees.families.all();
            core.flush(&families, FlushCaller::Flushes, FlushReason::ShutDown)
        } else {
            Ok(())
        };
        core.background.cv.close();
        core.writes.admission.release_all(true);
        flushed
    }

    /// Waits for the threads that work for the database. No more work is started.
    fn join(&self) {
        let ticking = self.ticking.lock().take();
        drop(ticking);
        self.core.background.cv.wait_for_work();
    }

    /// The log and the MANIFEST name each other's end, so that a later opening detects that one of
    /// them is shorter. Nothing is lost when that cannot be written.
    fn note_end(&self) {
        let core = &self.core;
        let next = core.reads.sequence.allocated().next();
        // A power cut may leave part of an edit that is not synced, and this mode refuses that.
        let mode = core.services.options.load().wal_recovery_mode;
        let synced = mode == WalRecoveryMode::AbsoluteConsistency;
        let finished = core.writes.lock().finish(next);
        let mut noted = finished.and_then(|end| match end {
            None => Ok(()),
            Some(end) => core.trees.store.note_end(end, synced),
        });
        if seeded(Bug::ClosingEditPromised) {
            noted = core.writes.lock().finish(next).map(|_| ());
        }
        if let Err(e) = noted {
            core.services.info_log.warn(format_args!("closing: {e}"));
        }
    }

    fn close(&self) -> Result<()> {
        if self.is_borrowed {
            return Err(Error::invalid_argument(
                "a listener cannot close the database that it hears of",
            ));
        }
        let core = &self.core;
        let flushed = self.stop();
        if !core.writes.begin_closing() {
            return Ok(());
        }
        self.join();
        // A compaction on a caller's thread notices soon; its files must not appear after the lock
        // is gone.
        while core.background.jobs.lock().manual > 0 {
            core.services.env.clock.sleep(Duration::from_millis(1));
        }
        if !core.admin.read_only {
            saved_cache::save_at_close(core);
            self.note_end();
        }
        core.trees.store.close();
        let closed = if core.admin.read_only {
            Ok(())
        } else {
            core.writes.lock().close(false)
        };
        core.services.tell_pending();
        core.trees.obsolete_files.keep_no_logs();
        core.trees.delete_obsolete_files();
        core.services.info_log.info(format_args!("closed"));
        *self.lock.lock() = None;
        flushed.and(closed)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.is_borrowed {
            return;
        }
        if let Err(e) = self.close() {
            self.core
                .services
                .info_log
                .error(format_args!("closing: {e}"));
        }
    }
}
