//! The background jobs that run, and the families that may have work: the scheduler's state.
//!
//! One lock guards all of it ([`crate::ranks`]). What runs is registered here before the lock is
//! released, so no table is picked twice and no memtable is flushed twice.

mod pipeline;
mod queue;

pub(crate) use pipeline::{FlushPipeline, InstallOrder};
pub(crate) use queue::{QueuedPlan, WorkQueue};

use crate::options::JobLimits;
use esker_format::FamilyId;
use esker_lsm::plan::Busy;
use esker_status::{Error, ErrorKind, Result, Subcode};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeSet;

/// Background work that runs, and that may run.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// The flushes that run, by family; none of one that has none.
    pub(crate) pipelines: HashMap<FamilyId, FlushPipeline>,
    pub(crate) flushes: usize,
    /// Those of them whose tables are not written yet.
    pub(crate) flushes_writing: usize,
    pub(crate) compactions: usize,
    /// Those of them that may yield their slots.
    pub(crate) yielders: usize,
    /// Those of these that wait: their slots are free for what is more urgent.
    pub(crate) yielding: usize,
    pub(crate) busy: HashMap<FamilyId, Busy>,
    /// Those that age alone makes due.
    pub(crate) aged: AgedWork,
    /// Families that may have work to do.
    pub(crate) queue: WorkQueue,
    /// Automatic compactions do not start while above 0.
    pub(crate) compactions_paused: usize,
    /// No background work starts while above 0.
    pub(crate) paused: usize,
    /// Families whose immutable memtables are flushed even below
    /// `min_write_buffer_number_to_merge`.
    pub(crate) flush_now: HashSet<FamilyId>,
    /// Families whose memtable is to be switched and flushed for its readers.
    pub(crate) flush_for_reads: BTreeSet<FamilyId>,
    /// Families whose memtable is to be switched: it hides too much from iterators.
    pub(crate) switch_for_scans: BTreeSet<FamilyId>,
    /// Steps of manual compactions that run, on their callers' threads.
    pub(crate) manual: usize,
    /// The callers that compact a range.
    pub(crate) turns: ManualPermits,
    /// Manual compactions give up while above 0. Below 0 when they were allowed before they were
    /// forbidden.
    pub(crate) manual_cancelled: i64,
    /// How many callers wait for trees to be in shape.
    pub(crate) settling: usize,
    /// Automatic compactions do not start before, by the clock: there was no room.
    pub(crate) compactions_after_us: u64,
}

/// Compactions that the age of files alone makes due. They come in crowds, of files that were
/// written at one time, and nobody waits for them: one runs at a time, and after it none for as
/// long as it took.
#[derive(Debug, Default)]
pub(crate) struct AgedWork {
    running: usize,
    /// None starts before, by the clock.
    not_before_us: u64,
}

impl AgedWork {
    /// Tells whether one may start.
    pub(crate) fn may_start(&self, now_us: u64) -> bool {
        self.running == 0 && now_us >= self.not_before_us
    }

    pub(crate) fn started(&mut self) {
        self.running += 1;
    }

    /// Takes note that one ended that began at `began_us`.
    pub(crate) fn ended(&mut self, began_us: u64, now_us: u64) {
        self.running -= 1;
        let took_us = now_us.saturating_sub(began_us);
        self.not_before_us = now_us.saturating_add(took_us);
    }
}

/// The calls that compact a range: many beside each other, or an exclusive one alone.
#[derive(Debug, Default)]
pub(crate) struct ManualPermits {
    /// Calls that run.
    pub(crate) running: usize,
    /// The exclusive ones of them.
    pub(crate) exclusive: usize,
    /// Exclusive calls that wait until they are alone.
    pub(crate) waiting: usize,
}

impl ManualPermits {
    /// Tells whether a call may begin. Nothing new begins before an exclusive one that waits.
    pub(crate) fn is_free_for(&self, exclusive: bool) -> bool {
        if exclusive {
            self.running == 0
        } else {
            self.exclusive == 0 && self.waiting == 0
        }
    }
}

impl Jobs {
    /// The error of a manual compaction while these are forbidden.
    pub(crate) fn check_manual(&self) -> Result<()> {
        if self.manual_cancelled > 0 {
            return Err(
                Error::new(ErrorKind::Incomplete, "manual compaction was cancelled")
                    .with_subcode(Subcode::ManualCompactionPaused),
            );
        }
        Ok(())
    }

    /// Returns whether another flush may write: those that only wait for the disk do not count.
    pub(crate) fn may_flush(&self, limits: &JobLimits) -> bool {
        let more = self.flushes_writing + 1;
        more <= limits.flushes
            || more <= limits.most_flushes
                && self.compactions - self.yielding + more <= limits.compactions + limits.flushes
    }

    /// Returns whether memtables are to be switched for their readers.
    pub(crate) fn has_switches(&self) -> bool {
        !self.flush_for_reads.is_empty() || !self.switch_for_scans.is_empty()
    }

    /// Returns whether another compaction may start.
    pub(crate) fn may_compact(&self, limits: &JobLimits) -> bool {
        self.compactions + self.taken_over(limits) < limits.compactions
    }

    /// Tells whether a compaction may start that merges yield to.
    pub(crate) fn may_relieve(&self, limits: &JobLimits) -> bool {
        self.compactions - self.yielding + self.taken_over(limits) < limits.compactions
    }

    /// Slots of compactions that flushes have.
    fn taken_over(&self, limits: &JobLimits) -> usize {
        self.flushes_writing.saturating_sub(limits.flushes)
    }
}
