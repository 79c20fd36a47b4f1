//! Switching memtables: when one is full, when all of them take too much memory, when the logs grow
//! too long.
//!
//! Invariant: memtables and log are switched by the holder of the log lock while no group is in
//! flight, so a memtable is whole when it is sealed and everything in it is in its logs.

use super::log_state::LogState;
use super::path::WritePath;
use super::perf_timing;
use crate::family::Family;
use crate::family::backpressure::admission::would_wait;
use crate::health::ErrorSource;
use crate::memory::FlushDecision;
use crate::observe::{FlushReason, MemtableInfo, PendingEvent, PerfMetric, PerfTimer};
use crate::options::WriteOptions;
use esker_format::{FileNo, Seq};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::Arc;
use esker_sync::atomic::Ordering;

impl WritePath {
    /// Times a switch of memtables that a writer makes.
    fn time_switch(&self) -> PerfTimer<'_> {
        let metric = PerfMetric::WriteSchedulingFlushesCompactionsTime;
        perf_timing::wait(metric, self.admission.clock())
    }

    /// Switches the memtables that are full.
    #[cold]
    pub(super) fn switch_full(&self, log: &mut LogState) -> Result<()> {
        let _timed = self.time_switch();
        let full = self.memtables.families.among(self.memtables.take_full());
        // Another switch may have come first.
        let is_full = |f: &Arc<Family>| f.switch_wanted.load(Ordering::Acquire);
        let full: Vec<_> = full.into_iter().filter(is_full).collect();
        let deletions = full
            .iter()
            .any(|f| f.view_guard().mem.has_too_many_range_deletions());
        let reason = if deletions {
            FlushReason::TooManyRangeDeletions
        } else {
            FlushReason::WriteBufferFull
        };
        let switched = self.switch_memtables(log, &full, reason);
        if switched.is_err() {
            full.iter()
                .for_each(|family| self.memtables.add_full(family.id));
        }
        switched
    }

    /// Flushes the largest memtable when all of them together take too much memory. Looked at now
    /// and then: adding up is not free.
    pub(super) fn keep_within_memory(&self, log: &mut LogState, bytes: u64) -> Result<()> {
        let unmeasured = self
            .memtables
            .unmeasured
            .fetch_add(bytes, Ordering::Relaxed)
            + bytes;
        if unmeasured < self.buffers.interval() {
            return Ok(());
        }
        self.memtables.unmeasured.store(0, Ordering::Relaxed);
        match self.buffers.look() {
            FlushDecision::None => Ok(()),
            FlushDecision::Own => self.switch_largest(log),
        }
    }

    /// Switches the largest memtable, to give its memory back.
    pub(crate) fn switch_largest(&self, log: &mut LogState) -> Result<()> {
        let _timed = self.time_switch();
        let used = |f: &Arc<Family>| f.view_guard().mem.data_bytes();
        let open = self
            .memtables
            .families
            .among(self.memtables.families.logs.with_data());
        match open.into_iter().max_by_key(used) {
            Some(largest) => {
                self.switch_memtables(log, &[largest], FlushReason::WriteBufferManager)
            }
            None => Ok(()),
        }
    }

    /// Switches those memtables of `families` that hide too much from iterators.
    pub(crate) fn switch_hiding(&self, families: &[Arc<Family>]) -> Result<()> {
        let mut log = self.queue.lock();
        // Another switch may have come first.
        let wants = |f: &&Arc<Family>| f.wants_flush_for_scans();
        let hiding: Vec<_> = families.iter().filter(wants).cloned().collect();
        if hiding.is_empty() {
            return Ok(());
        }
        self.switch_memtables(&mut log, &hiding, FlushReason::WriteBufferFull)
    }

    /// Memtables take too much memory: sees to it that flushes give some back.
    #[cold]
    pub(super) fn free_memory(&self, log: &mut LogState, options: &WriteOptions) -> Result<()> {
        self.log.health.check_writable()?;
        if self.log.background_cv.is_closing() {
            return Err(Error::shutdown());
        }
        if self.buffers.look() == FlushDecision::Own {
            self.switch_largest(log)?;
        }
        if options.no_slowdown && self.buffers.must_stall() {
            return Err(would_wait());
        }
        Ok(())
    }

    /// The logs grew past their limit: the families that keep the oldest one alive are switched.
    /// When all of them wait to be flushed already and one of them stops its own writers, that one
    /// is returned: all writers wait for it, or the logs would grow without end.
    pub(super) fn switch_oldest_log(&self, log: &mut LogState) -> Result<Option<Arc<Family>>> {
        let _timed = self.time_switch();
        let Some(oldest) = log.alive().next() else {
            return Ok(None);
        };
        let keeping = self
            .memtables
            .families
            .among(self.memtables.families.logs.holders(oldest.number));
        let is_open = |f: &&Arc<Family>| {
            let v = f.view_guard();
            v.immutable.is_empty() && !v.mem.is_empty()
        };
        let holding: Vec<_> = keeping.iter().filter(is_open).cloned().collect();
        if !holding.is_empty() {
            self.switch_memtables(log, &holding, FlushReason::WalFull)?;
            return Ok(None);
        }
        if !self.admission.is_stopped() {
            return Ok(None);
        }
        Ok(keeping.into_iter().find(|f| f.gate.is_stopped()))
    }

    /// Switches the memtables of `families` (those that hold anything) to a new log, and has them
    /// flushed.
    pub(crate) fn switch_memtables(
        &self,
        log: &mut LogState,
        families: &[Arc<Family>],
        reason: FlushReason,
    ) -> Result<()> {
        if self.switch_untold(log, families, reason)? {
            self.log.background_cv.notify();
        }
        Ok(())
    }

    /// Switches memtables as [`WritePath::switch_memtables`] does, but wakes no thread that looks
    /// for work: the caller sees to that. False when there was nothing to switch.
    pub(crate) fn switch_untold(
        &self,
        log: &mut LogState,
        families: &[Arc<Family>],
        reason: FlushReason,
    ) -> Result<bool> {
        if !seeded(Bug::SwitchBesideWriters) {
            self.queue.sequence.quiesce();
        }
        let all;
        let families = if self.limits.atomic_flush {
            all = self.memtables.families.all();
            all.as_slice()
        } else {
            families
        };
        let full: Vec<_> = families
            .iter()
            .filter(|f| !f.view_guard().mem.is_empty())
            .collect();
        if full.is_empty() {
            return Ok(false);
        }
        if !log.is_empty() || log.is_broken() {
            let number = self.log.next_number(log);
            self.spare_wanted
                .store(reason == FlushReason::WriteBufferFull, Ordering::Release);
            self.start_log(log, number).inspect_err(|e| {
                self.log.health.report(ErrorSource::Wal, e);
            })?;
        }
        let number = log.number();
        self.memtables.families.logs.switched_to(number);
        for family in full {
            self.tell_sealed(family, reason);
            family.switch_memtable(number, Some(self.queue.sequence.published()));
            self.admission.note_switch(family);
        }
        Ok(true)
    }

    /// Starts log `number`, with what is prepared at its beginning.
    pub(crate) fn start_log(&self, log: &mut LogState, number: FileNo) -> Result<()> {
        let next = self.queue.sequence.allocated().next();
        log.rotate(number, next)?;
        self.memtables.families.logs.begun(number);
        if let Some(e) = log.unsaved() {
            self.log.report(e);
        }
        self.log.prepared.write_into(log, next)
    }

    /// The family's memtable takes no more writes.
    fn tell_sealed(&self, family: &Family, reason: FlushReason) {
        let view = family.view_guard();
        view.mem.seal(reason);
        let pending = &self.log.health.pending;
        if pending.is_listened() {
            let first_seq = view.mem.first_seq().unwrap_or(Seq::ZERO);
            pending.add(PendingEvent::Sealed(MemtableInfo {
                family: family.name.clone(),
                earliest_seq: first_seq,
                first_seq,
                entries: view.mem.entries(),
                deletes: view.mem.deletions(),
                bytes: view.mem.memory_usage() as u64,
            }));
        }
    }
}
