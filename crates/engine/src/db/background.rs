//! Ending compactions for a while, compactions for reads that will come, holding writers, and
//! several families at once.

use super::Db;
use crate::core::Background;
use crate::family::{Family, FamilyHandle};
use crate::job::flush_ticket::FlushCaller;
use crate::observe::FlushReason;
use crate::options::FlushOptions;
use esker_status::{Error, Result};
use esker_sync::Arc;
use std::time::Duration;

/// Longest wait before the state is looked at again.
const PATIENCE: Duration = Duration::from_millis(200);

impl Background {
    /// Waits until no compaction runs, in the background or on a caller's thread.
    fn wait_for_compactions(&self) {
        loop {
            let seen = self.cv.changes();
            let is_over = {
                let jobs = self.jobs.lock();
                jobs.compactions == 0 && jobs.manual == 0
            };
            if is_over || !self.cv.wait_past(seen, PATIENCE) {
                return;
            }
        }
    }
}

impl Db {
    /// Tells that `seeks` seeks in the family will follow, for instance after a bulk load: runs are
    /// merged as if they had taken place, unless `compaction_for_reads` is off.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.expect_seeks(&db.default_family_handle(), 10_000_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn expect_seeks(&self, family: &FamilyHandle, seeks: u64) {
        let family = &family.0;
        if family.expect_seeks(seeks) {
            self.core().background.cv.notify();
        }
    }

    /// Ends the compactions that run, without a result, and lets none begin until
    /// [`Db::resume_all_compactions`] was called as often. Returns when none runs. Callers that
    /// compact get `Incomplete`.
    pub fn abort_all_compactions(&self) {
        let core = self.core();
        core.background.compaction_abort.abort();
        core.background.jobs.lock().compactions_paused += 1;
        core.background.cv.notify();
        core.background.wait_for_compactions();
    }

    /// Takes one [`Db::abort_all_compactions`] back.
    pub fn resume_all_compactions(&self) {
        let core = self.core();
        if core.background.compaction_abort.resume() {
            let mut jobs = core.background.jobs.lock();
            jobs.compactions_paused = jobs.compactions_paused.saturating_sub(1);
            drop(jobs);
            core.background.cv.notify();
        }
    }

    /// Lets no write begin until [`Db::unlock_wal`] was called as often, and hands what was written
    /// to the operating system: the contents stay as they are, and so do the logs. Writes wait;
    /// those with `no_slowdown` fail.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// use esker::{WriteBatch, WriteOptions};
    ///
    /// let at_once = WriteOptions::new().no_slowdown(true);
    /// let mut batch = WriteBatch::new();
    /// batch.put("key", "value")?;
    /// db.lock_wal()?;
    /// assert!(db.write_opt(&mut batch, &at_once).is_err(), "the files stay as they are");
    /// db.unlock_wal()?;
    /// db.write_opt(batch, &at_once)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock_wal(&self) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        core.writes.hold_writers()
    }

    /// Takes one [`Db::lock_wal`] back; `Aborted` when there is none.
    pub fn unlock_wal(&self) -> Result<()> {
        if self.core().writes.release_writers() {
            Ok(())
        } else {
            Err(Error::aborted("No LockWAL() in effect"))
        }
    }

    /// Puts what several families have in memory into tables: what was written before the call, of
    /// each. With the option `atomic_flush` their tables become part of the database together.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// db.flush_families(&[&users, &db.default_family_handle()], &Default::default())?;
    /// assert_eq!(db.family_metadata(&users).file_count, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn flush_families(&self, families: &[&FamilyHandle], options: &FlushOptions) -> Result<()> {
        let families: Vec<Arc<Family>> = families.iter().map(|f| Arc::clone(&f.0)).collect();
        let core = self.core();
        core.check_background()?;
        if !options.allow_write_stall {
            families.iter().try_for_each(|f| core.wait_for_room(f))?;
        }
        core.flush(
            &families,
            FlushCaller::of(options),
            FlushReason::ManualFlush,
        )
    }

    /// Drops several column families, one after the other; stops at the first that cannot be
    /// dropped.
    pub fn drop_families(&self, families: &[&FamilyHandle]) -> Result<()> {
        families.iter().try_for_each(|f| self.drop_family(f))
    }

    /// The id of this opening of the database; it is in the tables that are written.
    pub fn session_id(&self) -> &str {
        &self.core().services.identity.session_id
    }

    /// Sets the figures of flushes, compactions and reads that properties show back to 0.
    pub fn reset_stats(&self) {
        for family in self.core().trees.families.all() {
            family.compaction_stats.reset();
            family.read_totals.reset();
        }
    }
}
