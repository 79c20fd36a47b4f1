//! Flushes that callers ask for, and waits for background work.
//!
//! A caller that waits for a flush carries it out: it would sleep meanwhile, and each hand-over to
//! another thread and back costs a small flush more than its work, several times so where
//! processors are short. The flush is a job like any other, registered with the scheduler, within
//! the limits on jobs and in the pipeline of its family; only its thread is another. Of several
//! families' flushes other threads take what the limits allow. A flush that another thread has
//! taken already is waited for.
//!
//! Not so inside a callback of a job, whose thread must not wait, and not for callers that keep
//! writers or administration out: listeners are told on the thread of the flush.

use super::flush_logs::release_logs;
use super::flush_ticket::{FlushCaller, FlushTask};
use super::workers::look_here;
use crate::core::{Background, Core};
use crate::family::Family;
use crate::family::backpressure::load::flush_would_stall;
use crate::observe::FlushReason;
use crate::runtime::callback::{self, Callback};
use crate::runtime::work_signal as signal;
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;
use std::time::Duration;

/// Longest wait before a caller looks again whether what it waits for is done.
const PATIENCE: Duration = Duration::from_millis(500);

impl Core {
    /// Switches the memtables of `families` and has what they held put into tables.
    pub(crate) fn flush(
        self: &Arc<Self>,
        families: &[Arc<Family>],
        caller: FlushCaller,
        reason: FlushReason,
    ) -> Result<()> {
        self.check_open_for_writes()?;
        self.services.health.check_writable()?;
        let waits = caller != FlushCaller::GoesOn;
        if let ([family], true) = (families, waits) {
            check_flushable(family)?;
        }
        let targets = self.switch_to_flush(families, reason)?;
        if targets.is_empty() {
            if waits {
                self.clean_up();
            }
            return Ok(());
        }
        if caller == FlushCaller::Flushes && !Callback::is_inside() {
            self.background.cv.tell();
            let flushed = self.flush_targets(families, &targets);
            // The last edit of a database that closes makes no compaction due.
            if reason != FlushReason::ShutDown {
                look_here(self, |_| false);
            }
            return flushed;
        }
        self.background.cv.notify();
        if waits {
            self.wait_for_targets(families, &targets, |done| self.background.wait_for(done))?;
        }
        Ok(())
    }

    /// Switches the memtables of `families`; returns those that have something to flush, with the
    /// newest memtable. The scheduler is to be told.
    fn switch_to_flush(
        &self,
        families: &[Arc<Family>],
        reason: FlushReason,
    ) -> Result<Vec<(Arc<Family>, u64)>> {
        let targets: Vec<(Arc<Family>, u64)> = {
            let mut log = self.writes.lock();
            self.writes.switch_untold(&mut log, families, reason)?;
            let newest = |f: &Arc<Family>| f.view_guard().immutable.first().map(|m| m.id());
            families
                .iter()
                .filter_map(|f| newest(f).map(|id| (Arc::clone(f), id)))
                .collect()
        };
        let mut jobs = self.background.jobs.lock();
        for (family, _) in &targets {
            jobs.flush_now.insert(family.id);
            family.signal.mark(signal::MEMTABLES);
        }
        drop(jobs);
        Ok(targets)
    }

    /// Waits until the targets are flushed, and flushes what nobody else does.
    fn flush_targets(
        self: &Arc<Self>,
        families: &[Arc<Family>],
        targets: &[(Arc<Family>, u64)],
    ) -> Result<()> {
        let is_target = |f: &Arc<Family>| targets.iter().any(|(target, _)| Arc::ptr_eq(target, f));
        let wanted = |task: &FlushTask| task.families.iter().any(|(f, _)| is_target(f));
        self.wait_for_targets(families, targets, |done| {
            self.background.wait(done, || look_here(self, wanted))
        })
    }

    /// Waits for each target, by `wait`, and deletes what is not needed any more.
    fn wait_for_targets(
        &self,
        families: &[Arc<Family>],
        targets: &[(Arc<Family>, u64)],
        wait: impl Fn(&dyn Fn() -> bool) -> Result<()>,
    ) -> Result<()> {
        for (family, id) in targets {
            wait(&|| {
                family.is_dropped() || family.view_guard().immutable.iter().all(|m| m.id() > *id)
            })?;
            // Of several families the others are flushed; one by itself is what was asked for.
            if families.len() == 1 {
                check_flushable(family)?;
            }
        }
        self.clean_up();
        Ok(())
    }

    /// Deletes what is not needed any more, logs included, for a caller that has waited for
    /// background work and looks at the directory next.
    pub(crate) fn clean_up(&self) {
        release_logs(self);
        self.trees.delete_obsolete_files();
    }

    /// Waits until a flush of `family` would not make its writers wait, or what it would flush was
    /// flushed by itself.
    pub(crate) fn wait_for_room(&self, family: &Arc<Family>) -> Result<()> {
        self.check_open_for_writes()?;
        let first = family.view_guard().mem.id();
        self.background.wait_for(|| {
            let view = family.view_guard();
            let oldest = view.immutable.last().unwrap_or(&view.mem).id();
            let assessed = family.assessed(&view.version);
            family.is_dropped()
                || oldest > first
                || !flush_would_stall(&view, &family.options.load(), &assessed.tree)
        })
    }
}

impl Background {
    /// Waits until `done`, and fails at a background error or shutdown.
    pub(crate) fn wait_for(&self, done: impl Fn() -> bool) -> Result<()> {
        self.wait(done, || false)
    }

    /// Waits as [`Background::wait_for`] does. Before each wait it calls `work`, which does some of
    /// the work that there is; while that returns true, it does not wait.
    fn wait(&self, done: impl Fn() -> bool, work: impl Fn() -> bool) -> Result<()> {
        loop {
            let seen = self.cv.changes();
            if done() {
                return Ok(());
            }
            if Callback::is_inside() {
                return Err(callback::would_wait());
            }
            self.services.health.check_writable()?;
            if work() {
                continue;
            }
            if !self.cv.wait_past(seen, PATIENCE) {
                return Err(Error::shutdown());
            }
        }
    }
}

/// Fails for a dropped family with data in memory, which never goes into tables.
fn check_flushable(family: &Family) -> Result<()> {
    if !family.is_dropped() {
        return Ok(());
    }
    let view = family.view_guard();
    if view.mem.is_empty() && view.immutable.is_empty() {
        return Ok(());
    }
    let what = format!("column family {}", family.name);
    Err(Error::new(ErrorKind::ColumnFamilyDropped, what))
}
