//! A flush that runs, registered until it is dropped.
//!
//! A flush works with a processor while it writes its table, and then waits for the disk: for the
//! table's sync, the directory's, the MANIFEST's. Meanwhile the next one begins, with the memtables
//! that no other has taken, and writes. So a [`FlushTicket`] counts against the limit on flushes
//! only until its tables are written. [`crate::registry::FlushPipeline`] has the order in which
//! flushes are installed. With `atomic_flush`, a flush stands in the pipelines of all its families,
//! and another begins when there is none.
//!
//! Thread-safety: a ticket belongs to the flush that holds it.

use crate::core::Background;
use crate::family::Family;
use crate::memtable::MemTable;
use crate::options::FlushOptions;
use crate::registry::{InstallOrder, Jobs};
use esker_sync::Arc;
use std::time::Duration;

/// Longest wait before a flush looks again whether it is its turn.
const PATIENCE: Duration = Duration::from_secs(1);

/// A family with the memtables of it that a flush takes, newest first.
pub(crate) type FlushInput = (Arc<Family>, Vec<Arc<MemTable>>);

/// Role of the caller of a flush until the flush has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushCaller {
    /// It does not wait.
    GoesOn,
    /// It waits for threads of the background.
    Waits,
    /// It carries the flush out. It holds no lock, and nobody waits for it to go on.
    Flushes,
}

impl FlushCaller {
    /// Returns the role of an application's caller.
    pub(crate) fn of(options: &FlushOptions) -> Self {
        if options.wait {
            FlushCaller::Flushes
        } else {
            FlushCaller::GoesOn
        }
    }
}

/// A flush that was registered as running.
#[derive(Debug)]
pub(crate) struct FlushTask {
    pub(crate) families: Vec<FlushInput>,
    pub(crate) ticket: FlushTicket,
}

/// A flush's place in the pipelines of its families, until it is dropped: with it the flush ends.
#[derive(Debug)]
pub(crate) struct FlushTicket {
    background: Arc<Background>,
    /// The families with the newest memtable that is taken of each.
    families: Vec<(Arc<Family>, u64)>,
    is_writing: bool,
    is_installed: bool,
    is_callers: bool,
}

impl FlushTicket {
    /// Registers a flush that begins. `jobs` are those of `background`.
    pub(crate) fn take(
        background: &Arc<Background>,
        jobs: &mut Jobs,
        families: Vec<(Arc<Family>, u64)>,
    ) -> Self {
        jobs.flushes += 1;
        jobs.flushes_writing += 1;
        for (family, newest) in &families {
            jobs.pipelines.entry(family.id).or_default().join(*newest);
            jobs.enter_flush(family);
        }
        background.update_free_jobs(jobs);
        FlushTicket {
            background: Arc::clone(background),
            families,
            is_writing: true,
            is_installed: false,
            is_callers: false,
        }
    }

    /// The flush is carried out by a caller that waits for it, and looks for work when it ends.
    pub(crate) fn taken_by_caller(&mut self) {
        self.is_callers = true;
    }

    pub(crate) fn is_callers(&self) -> bool {
        self.is_callers
    }

    /// The tables are written, and another flush may begin: this one only waits for the disk.
    pub(crate) fn written(&mut self) {
        if std::mem::take(&mut self.is_writing) {
            let mut jobs = self.background.jobs.lock();
            jobs.flushes_writing -= 1;
            self.background.update_free_jobs(&jobs);
            let has_work = jobs.queue.has_work();
            drop(jobs);
            if has_work {
                self.background.cv.notify();
            }
        }
    }

    /// Waits until all that began before are installed. False when that will not be: one of them
    /// gave up, or the database closes meanwhile.
    pub(crate) fn wait_for_turn(&self) -> bool {
        loop {
            let seen = self.background.cv.changes();
            match self.order() {
                InstallOrder::Install => return true,
                InstallOrder::GiveUp => return false,
                InstallOrder::Wait => {}
            }
            if !self.background.cv.wait_past(seen, PATIENCE) {
                return self.order() == InstallOrder::Install;
            }
        }
    }

    fn order(&self) -> InstallOrder {
        let jobs = self.background.jobs.lock();
        let order = |(family, newest): &(Arc<Family>, u64)| match jobs.pipelines.get(&family.id) {
            Some(pipeline) => pipeline.order(*newest),
            None => InstallOrder::GiveUp,
        };
        let mut orders = self.families.iter().map(order);
        orders
            .find(|o| *o != InstallOrder::Install)
            .unwrap_or(InstallOrder::Install)
    }

    /// The tables are in the tree: the next flush may be installed.
    pub(crate) fn installed(&mut self) {
        self.is_installed = true;
        let mut jobs = self.background.jobs.lock();
        self.leave(&mut jobs);
        // The tree changed, too, which is the caller's to look at where it has one.
        let has_work = !self.is_callers || jobs.queue.has_work();
        drop(jobs);
        self.tell(has_work);
    }

    /// Those who wait look again, and a thread looks for work where there may be some.
    fn tell(&self, has_work: bool) {
        if has_work {
            self.background.cv.notify();
        } else {
            self.background.cv.tell();
        }
    }

    fn leave(&self, jobs: &mut Jobs) {
        for (family, newest) in &self.families {
            if let Some(pipeline) = jobs.pipelines.get_mut(&family.id) {
                pipeline.leave(*newest, self.is_installed);
                if pipeline.is_empty() {
                    jobs.pipelines.remove(&family.id);
                }
            }
            jobs.enter_flush(family);
        }
    }
}

impl Drop for FlushTicket {
    fn drop(&mut self) {
        let mut jobs = self.background.jobs.lock();
        jobs.flushes -= 1;
        jobs.flushes_writing -= usize::from(self.is_writing);
        self.background.update_free_jobs(&jobs);
        self.leave(&mut jobs);
        for (family, _) in &self.families {
            if family.view_guard().immutable.is_empty() {
                jobs.flush_now.remove(&family.id);
            }
        }
        let has_work = jobs.queue.has_work();
        drop(jobs);
        self.tell(has_work);
    }
}
