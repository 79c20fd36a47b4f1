//! The memtables that take writes: which batches they can take, batches into them, and those among
//! them that are full.
//!
//! Invariant: a view of memtables that an insert uses stays the newest until its group is
//! published, since memtables are not switched while a group is in flight. Thread-safety:
//! everything may be called by any thread.

use super::apply::{self, Memtables};
use super::perf_timing;
use crate::family::backpressure::batch_families::BatchFamilies;
use crate::family::{Family, FamilySet, View};
use crate::health::{ErrorSource, Health};
use crate::memtable::MemTable;
use crate::observe::PerfMetric;
use crate::runtime::BackgroundCv;
use crate::timestamp;
use arc_swap::Guard;
use esker_env::Clock;
use esker_format::batch::{Record, Records, WriteBatch};
use esker_format::{FamilyId, Seq};
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use esker_sync::{Arc, Mutex, Rank};

/// The memtables of all families.
#[derive(Debug)]
pub(crate) struct LiveMemtables {
    pub(super) families: Arc<FamilySet>,
    health: Arc<Health>,
    background_cv: Arc<BackgroundCv>,
    clock: Arc<dyn Clock>,
    /// The families with full memtables; the next leader switches these.
    is_any_full: AtomicBool,
    full: Mutex<Vec<FamilyId>>,
    /// Bytes written since the memory of all memtables was added up.
    pub(super) unmeasured: AtomicU64,
}

impl LiveMemtables {
    pub(crate) fn new(
        families: Arc<FamilySet>,
        health: Arc<Health>,
        background_cv: Arc<BackgroundCv>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        LiveMemtables {
            families,
            health,
            background_cv,
            clock,
            is_any_full: AtomicBool::new(false),
            full: Mutex::new(Rank::LEAF, Vec::new()),
            unmeasured: AtomicU64::new(0),
        }
    }

    /// Inserts a logged batch.
    #[inline]
    pub(super) fn apply(&self, batch: &WriteBatch, first: Seq) -> Result<()> {
        let _timed = perf_timing::part(PerfMetric::WriteMemtableTime, &*self.clock);
        let mut to = BatchTarget {
            memtables: self,
            last: None,
        };
        let done = apply::insert(Records::over_body(batch.body()), first, &mut to);
        if let Err(e) = done {
            // The log holds the batch and the memtable only part of it: recovery will see all of
            // it.
            self.health.report(ErrorSource::Wal, &e);
            self.background_cv.notify();
            return Err(e);
        }
        to.notice_full();
        Ok(())
    }

    /// Tells whether a memtable is full, without a lock.
    #[inline]
    pub(super) fn is_any_full(&self) -> bool {
        self.is_any_full.load(Ordering::Acquire)
    }

    /// The family's memtable is full, until it is switched.
    pub(super) fn add_full(&self, family: FamilyId) {
        self.full.lock().push(family);
        self.is_any_full.store(true, Ordering::Release);
    }

    /// Takes the families with full memtables out, each once.
    pub(super) fn take_full(&self) -> Vec<FamilyId> {
        self.is_any_full.store(false, Ordering::Release);
        let mut families = std::mem::take(&mut *self.full.lock());
        families.sort_unstable();
        families.dedup();
        families
    }

    /// The families of a batch. It may name only families that exist, operands need an operator,
    /// and a range must not end before it begins: once the batch is in the log it is too late to
    /// refuse it.
    pub(super) fn check_families(
        &self,
        batch: &WriteBatch,
        ignore_missing: bool,
    ) -> Result<BatchFamilies> {
        if batch.has_begin_prepare() || batch.has_end_prepare() || batch.has_commit() {
            return Err(Error::not_supported(
                "records of two-phase commit in a batch to be written",
            ));
        }
        if self.families.may_have_timestamps() || batch.has_timestamps() {
            self.check_timestamps(batch)?;
        } else if batch.count() == 1 && matches!(batch.body().first(), Some(0x00 | 0x01 | 0x07)) {
            return Ok(BatchFamilies::one(FamilyId::DEFAULT));
        }
        let mut touched = BatchFamilies::NONE;
        for record in batch.records() {
            let record = record?;
            let Some(id) = record.family() else { continue };
            if id != FamilyId::DEFAULT && !self.families.contains(id) {
                if ignore_missing {
                    continue;
                }
                return Err(Error::invalid_argument(format!(
                    "the batch names column family {id}, which does not exist"
                )));
            }
            touched.add(id);
            if matches!(record, Record::Merge { .. }) {
                self.check_merge(id)?;
            }
            if let Record::DeleteRange { begin, end, .. } = record
                && let Some(family) = self.families.get(id)
                && family.order.compare_without_timestamp(begin, end).is_gt()
            {
                return Err(Error::invalid_argument(
                    "a range deletion ends before it begins",
                ));
            }
        }
        Ok(touched)
    }

    /// Keys have timestamps where their families want them, and nowhere else.
    #[cold]
    fn check_timestamps(&self, batch: &WriteBatch) -> Result<()> {
        let size = |id| {
            let family = self.families.get(id);
            family.map_or(0, |f| f.order.timestamp_size())
        };
        batch.check_timestamps(size, |id| match self.families.get(id) {
            Some(family) => timestamp::needed(&family),
            None => Error::invalid_argument("a key without a timestamp"),
        })
    }

    fn check_merge(&self, id: FamilyId) -> Result<()> {
        match self.families.get(id) {
            Some(f) if f.merge_operator.is_none() => Err(Error::not_supported(format!(
                "merge in column family {} without a merge operator",
                f.name
            ))
            .with_hint("set merge_operator in the family's options")),
            _ => Ok(()),
        }
    }
}

/// The memtables that one batch goes into. Valid while the batch is in flight: no switch happens
/// meanwhile.
struct BatchTarget<'a> {
    memtables: &'a LiveMemtables,
    last: Option<(Arc<Family>, Guard<Arc<View>>)>,
}

impl Memtables for BatchTarget<'_> {
    #[inline]
    fn with(&mut self, family: FamilyId, f: impl FnOnce(&MemTable) -> Result<()>) -> Result<bool> {
        if self.last.as_ref().is_none_or(|(l, _)| l.id != family) {
            self.notice_full();
            let Some(found) = self.memtables.families.get(family) else {
                return Ok(false);
            };
            let view = found.view_guard();
            self.last = Some((found, view));
        }
        let (_, view) = self.last.as_ref().expect("set just above");
        f(&view.mem).map(|()| true)
    }
}

impl BatchTarget<'_> {
    /// Asks for a switch when the memtable that was written last is full.
    #[inline]
    fn notice_full(&self) {
        if let Some((family, view)) = &self.last
            && view.mem.is_full()
            && !family.switch_wanted.swap(true, Ordering::AcqRel)
        {
            self.memtables.add_full(family.id);
        }
    }
}
