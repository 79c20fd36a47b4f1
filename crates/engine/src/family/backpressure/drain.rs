//! Progress of flushes and compactions: what the pace of writers follows between installs.
//!
//! A job says every thousand entries how far it is, so what waits is known in fractions of a
//! memtable and of a table of level 0. What a job has counted is taken back when it ends: then the
//! view says it. Thread-safety: atomics; figures read together may be a moment apart.

use crate::family::Family;
use esker_lsm::plan::Plan;
use esker_lsm::relief::Relief;
use esker_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use esker_sync::{Arc, Mutex, Rank, Weak};

/// One table of level 0, and the whole room of a stack, in the counters of what is done.
const UNIT: f64 = (1u64 << 20) as f64;

/// Running compactions that end with fewer tables at level 0.
#[derive(Debug)]
struct Merges(Mutex<Vec<Weak<Progress>>>);

impl Default for Merges {
    fn default() -> Self {
        Merges(Mutex::new(Rank::LEAF, Vec::new()))
    }
}

/// The counters of one family.
#[derive(Debug, Default)]
pub(crate) struct DrainStats {
    /// Bytes of entries that running flushes took out of memtables.
    flushed: AtomicU64,
    /// Bytes of memtables a second of the last flush while it wrote; 0 before the first. What it
    /// waited for the disk is not in it: meanwhile the next one writes.
    flush_rate: AtomicU64,
    /// Flushes that write.
    flushes: AtomicUsize,
    /// Tables of level 0 that running compactions have merged, by weight, and the part of the
    /// stack's room that they have freed.
    level0_done: AtomicU64,
    stack_done: AtomicU64,
    /// Tables of level 0 that running compactions have taken.
    level0_taken: AtomicUsize,
    /// Bytes of entries by which compactions ever relieved the tree.
    drained: AtomicU64,
    /// Compactions that merge, and the bytes that they may take beside their inputs.
    compactions: AtomicUsize,
    projected_output: AtomicU64,
    /// Bytes of obsolete files that nobody but jobs reads, when somebody looked last.
    obsolete: AtomicU64,
    /// Those of them that go as soon as jobs have ended, or are being deleted.
    leaving: AtomicU64,
    /// Compactions that take tables from level 0.
    merges: Merges,
}

impl DrainStats {
    /// Bytes of `waiting` (of all memtables that wait) that no flush has written yet.
    pub(crate) fn left_to_flush(&self, waiting: u64) -> u64 {
        waiting.saturating_sub(self.flushed.load(Relaxed))
    }

    /// Bytes of memtables that a second of flushing takes, by as many flushes as write now; 0 when
    /// none has shown it.
    pub(crate) fn flush_rate(&self) -> u64 {
        let flushes = self.flushes.load(Relaxed).max(1) as u64;
        self.flush_rate.load(Relaxed).saturating_mul(flushes)
    }

    /// Tables of level 0, by weight, that running compactions have merged and the version still
    /// has.
    pub(crate) fn level0_done(&self) -> f64 {
        self.level0_done.load(Relaxed) as f64 / UNIT
    }

    /// The part of the stack's room that running compactions have freed.
    pub(crate) fn stack_done(&self) -> f64 {
        self.stack_done.load(Relaxed) as f64 / UNIT
    }

    /// Tables of level 0 that running compactions have taken.
    pub(crate) fn level0_taken(&self) -> usize {
        self.level0_taken.load(Relaxed)
    }

    /// Bytes of entries by which compactions relieved the tree since the database was opened.
    pub(crate) fn drained(&self) -> u64 {
        self.drained.load(Relaxed)
    }

    /// Microseconds until the first of the compactions that take tables from level 0 ends, if all
    /// goes on as it did; none when none has begun.
    pub(crate) fn level0_relief_us(&self, now_us: u64) -> Option<u64> {
        let merges = self.merges.0.lock();
        let running = merges.iter().filter_map(Weak::upgrade);
        running.filter_map(|merge| merge.left_us(now_us)).min()
    }

    /// Bytes that running compactions may write beside what they read.
    pub(crate) fn projected_output(&self) -> u64 {
        self.projected_output.load(Relaxed)
    }

    /// Bytes of obsolete files that are not deleted yet, and those of them that are leaving.
    pub(crate) fn obsolete(&self) -> (u64, u64) {
        (self.obsolete.load(Relaxed), self.leaving.load(Relaxed))
    }

    /// Sets these bytes.
    pub(crate) fn set_obsolete(&self, (bytes, leaving): (u64, u64)) {
        self.obsolete.store(bytes, Relaxed);
        self.leaving.store(leaving, Relaxed);
    }

    /// Returns whether a compaction of the family runs.
    pub(crate) fn is_compacting(&self) -> bool {
        self.compactions.load(Relaxed) > 0
    }
}

/// A compaction as writers under a bound on space see it: it runs until its inputs are deleted.
#[derive(Debug)]
pub(crate) struct InputsOnDisk<'a>(&'a DrainStats);

impl<'a> InputsOnDisk<'a> {
    pub(crate) fn of(drain: &'a DrainStats) -> Self {
        drain.compactions.fetch_add(1, Relaxed);
        InputsOnDisk(drain)
    }
}

impl Drop for InputsOnDisk<'_> {
    fn drop(&mut self) {
        self.0.compactions.fetch_sub(1, Relaxed);
    }
}

/// A kind of job.
#[derive(Clone, Copy, Debug)]
enum Work {
    Flush,
    Merge(Merge),
    /// Files change their level unread: that says nothing about how fast merging is.
    Move,
}

/// A compaction that merges.
#[derive(Clone, Copy, Debug)]
struct Merge {
    relief: Relief,
    began_us: u64,
    /// Bytes of tables that it may take beside its inputs.
    projected_output: u64,
    /// Bytes of entries that go through it.
    bytes: u64,
}

impl Merge {
    /// The part of `whole` that is done once so many bytes went through.
    fn part(&self, whole: f64, done: u64) -> u64 {
        let done = done.min(self.bytes) as f64 / self.bytes.max(1) as f64;
        (whole * done) as u64
    }

    /// Units of level 0 and of the stack, and bytes, that are done then.
    fn done(&self, done: u64) -> (u64, u64, u64) {
        let Relief {
            level0,
            stack,
            bytes,
            ..
        } = self.relief;
        (
            self.part(level0 * UNIT, done),
            self.part(stack * UNIT, done),
            self.part(bytes as f64, done),
        )
    }
}

/// How far one job is.
#[derive(Debug)]
pub(crate) struct Progress {
    family: Arc<Family>,
    work: Work,
    /// Bytes of entries that went through the job.
    done: AtomicU64,
    /// It is a flush that has written everything, or a job that has ended.
    is_written: AtomicBool,
}

impl Progress {
    pub(crate) fn of_flush(family: &Arc<Family>) -> Arc<Progress> {
        family.drain.flushes.fetch_add(1, Relaxed);
        Self::of(family, Work::Flush)
    }

    /// Of a compaction that begins at `now_us` of the clock.
    pub(crate) fn of_compaction(family: &Arc<Family>, plan: &Plan, now_us: u64) -> Arc<Progress> {
        let view = family.view_guard();
        let assessed = family.assessed(&view.version);
        let room = assessed.tree.stack_room;
        let Some(relief) = Relief::of(plan, &view.version, &assessed.policy, room) else {
            return Self::of(family, Work::Move);
        };
        let merge = Merge {
            relief,
            began_us: now_us,
            projected_output: plan.room_needed(),
            bytes: plan.files().map(|(_, f)| f.raw_bytes()).sum(),
        };
        let drain = &family.drain;
        drain.compactions.fetch_add(1, Relaxed);
        drain
            .projected_output
            .fetch_add(merge.projected_output, Relaxed);
        drain.level0_taken.fetch_add(relief.tables, Relaxed);
        let progress = Self::of(family, Work::Merge(merge));
        if relief.level0 > 0.0 {
            let mut merges = drain.merges.0.lock();
            merges.retain(|merge| merge.strong_count() > 0);
            merges.push(Arc::downgrade(&progress));
        }
        progress
    }

    fn of(family: &Arc<Family>, work: Work) -> Arc<Progress> {
        Arc::new(Progress {
            family: Arc::clone(family),
            work,
            done: AtomicU64::new(0),
            is_written: AtomicBool::new(false),
        })
    }

    /// How much longer a merge will take.
    fn left_us(&self, now_us: u64) -> Option<u64> {
        let Work::Merge(merge) = self.work else {
            return None;
        };
        let done = self.done.load(Relaxed).min(merge.bytes);
        let took_us = u128::from(now_us.saturating_sub(merge.began_us));
        let left = took_us * u128::from(merge.bytes - done);
        u64::try_from(left.checked_div(u128::from(done))?).ok()
    }

    /// The flush wrote `bytes` of memtables in `took_us`, which is all of it.
    pub(crate) fn written(&self, bytes: u64, took_us: u64) {
        let rate = bytes.saturating_mul(1_000_000) / took_us.max(1);
        self.family.drain.flush_rate.store(rate.max(1), Relaxed);
        self.ends_writing();
    }

    /// All that the job writes is written, and the family's version says how much.
    pub(crate) fn ends_writing(&self) {
        if self.is_written.swap(true, Relaxed) {
            return;
        }
        let drain = &self.family.drain;
        match &self.work {
            Work::Flush => {
                drain.flushes.fetch_sub(1, Relaxed);
            }
            Work::Merge(merge) => {
                let output = merge.projected_output;
                drain.projected_output.fetch_sub(output, Relaxed);
            }
            Work::Move => {}
        }
    }

    /// This many bytes of entries more went through.
    pub(crate) fn advance(&self, bytes: u64) {
        let before = self.done.fetch_add(bytes, Relaxed);
        let drain = &self.family.drain;
        match &self.work {
            Work::Flush => {
                drain.flushed.fetch_add(bytes, Relaxed);
            }
            Work::Merge(merge) => {
                let (was, is) = (merge.done(before), merge.done(before + bytes));
                drain.level0_done.fetch_add(is.0 - was.0, Relaxed);
                drain.stack_done.fetch_add(is.1 - was.1, Relaxed);
                drain.drained.fetch_add(is.2 - was.2, Relaxed);
            }
            Work::Move => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let done = self.done.load(Relaxed);
        let drain = &self.family.drain;
        match &self.work {
            Work::Flush => {
                drain.flushed.fetch_sub(done, Relaxed);
                self.ends_writing();
            }
            Work::Merge(merge) => {
                let (level0, stack, bytes) = merge.done(done);
                drain.level0_done.fetch_sub(level0, Relaxed);
                drain.stack_done.fetch_sub(stack, Relaxed);
                // One that failed early has taken nothing away.
                if done >= merge.bytes / 2 {
                    drain.drained.fetch_add(merge.relief.bytes - bytes, Relaxed);
                }
                drain.level0_taken.fetch_sub(merge.relief.tables, Relaxed);
                self.ends_writing();
                drain.compactions.fetch_sub(1, Relaxed);
            }
            Work::Move => {}
        }
    }
}
