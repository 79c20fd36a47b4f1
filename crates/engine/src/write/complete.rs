//! A write group: the batches that one leader has logged as one record, on their way into the
//! memtables and to visibility.
//!
//! The leader inserts its own batch and the small ones. A large batch is offered to its writer,
//! which inserts it when it has a processor; the leader inserts those that no follower has begun.
//! The last thread to be done publishes the group. A group that is done before the one in front
//! of it is left to that one's publisher ([`Sequence`](super::sequence::Sequence)), so no writer
//! waits for an insert outside its group except to be told that its own write is visible.
//!
//! Invariants: a follower is told after its group was published, once; its batch is back in its job
//! before. A view of memtables that an insert uses stays the newest until the group is published,
//! since memtables are not switched while a group is in flight.

use super::apply::{self, Memtables};
use super::group::{Assembly, Follower, Member, Outcome, Part, WriteGroup, WriteJob};
use super::path::{Duty, WritePath};
use super::perf_timing;
use crate::family::{Family, View};
use crate::health::ErrorSource;
use crate::memtable::MemTable;
use crate::observe::PerfMetric;
use arc_swap::Guard;
use esker_format::batch::{Records, WriteBatch};
use esker_format::{FamilyId, Seq};
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicUsize, Ordering};
use esker_sync::handover::Waiter;
use esker_sync::{Arc, Mutex, Rank, thread};

/// A batch of at least this many records is offered to its writer: inserting them takes longer than
/// waking a thread.
const LARGE_RECORDS: u32 = 32;

/// How often a writer looks whether its group is visible before it sleeps.
const SPINS: u32 = 64;

impl WritePath {
    /// Inserts a logged group with the leader's `own` batch, and makes it visible; the log lock is
    /// free. What a leader owes those that queue is done before it waits for anything.
    #[inline]
    pub(super) fn complete(
        &self,
        group: WriteGroup,
        own: Option<&WriteBatch>,
        duty: Duty<'_>,
    ) -> Result<()> {
        let mut done = Ok(());
        let waits_for = if group.members.is_empty() {
            let early = seeded(Bug::PublishBeforeInsert) && self.is_published(&group);
            if let Some(batch) = own {
                done = self.apply(batch, group.first);
            }
            if early || self.is_published(&group) {
                self.follow_up()
            } else {
                self.leave(group, own.is_some())
            }
        } else {
            self.complete_many(group, own, &mut done)
        };
        self.serve(duty);
        if let Some(leader) = waits_for {
            let clock = self.admission.clock();
            let _timed = perf_timing::part(PerfMetric::WriteThreadWaitNanos, clock);
            leader.wait(SPINS, || None::<()>);
        }
        done
    }

    /// As [`WritePath::complete`] for a group with followers: what its leader has to wait for.
    pub(super) fn complete_many(
        &self,
        mut group: WriteGroup,
        own: Option<&WriteBatch>,
        done: &mut Result<()>,
    ) -> Option<Arc<Follower>> {
        if seeded(Bug::PublishBeforeInsert) && self.is_published(&group) {
            group.count = 0;
        }
        let assembly = self.offer_large(&mut group, own);
        if let Some(batch) = own {
            *done = self.apply(batch, group.first);
        }
        for member in &mut group.members {
            if let Some(batch) = &member.batch
                && member.error.is_none()
            {
                member.error = self.apply(batch, member.first).err();
            }
        }
        match assembly {
            None => self.publish(group, own.is_some()),
            Some(assembly) => self.assemble(group, &assembly, own.is_some()),
        }
    }

    /// Offers the large batches of a group to their writers, all but one: the leader has something
    /// to do as well.
    fn offer_large(
        &self,
        group: &mut WriteGroup,
        own: Option<&WriteBatch>,
    ) -> Option<Arc<Assembly>> {
        let is_large = |batch: &WriteBatch| batch.count() >= LARGE_RECORDS;
        if group.count < 2 * u64::from(LARGE_RECORDS) || thread::parallelism() < 2 {
            return None;
        }
        let large = |m: &&mut Member| m.batch.as_ref().is_some_and(is_large);
        let skipped = usize::from(!own.is_some_and(is_large));
        let offered: Vec<_> = group
            .members
            .iter_mut()
            .filter(large)
            .skip(skipped)
            .collect();
        if offered.is_empty() {
            return None;
        }
        let assembly = Arc::new(Assembly {
            pending: AtomicUsize::new(1 + offered.len()),
            group: Mutex::new(Rank::LEAF, None),
        });
        for member in offered {
            member.follower.with_job(|job| {
                job.batch = member.batch.take();
                job.part = Some(Part {
                    first: member.first,
                    assembly: Arc::clone(&assembly),
                });
            });
            member.follower.offer();
        }
        Some(assembly)
    }

    /// Inserts the batches that were offered and not taken, and publishes the group unless a
    /// follower is at its batch still, which does it then. What the leader has to wait for.
    fn assemble(
        &self,
        mut group: WriteGroup,
        assembly: &Arc<Assembly>,
        waits: bool,
    ) -> Option<Arc<Follower>> {
        let mut finished = 1;
        for member in &mut group.members {
            if member.batch.is_none() && member.follower.claim() {
                let follower = Arc::clone(&member.follower);
                self.insert_offered(&follower);
                finished += 1;
            }
        }
        let me = waits.then(|| Waiter::taken(WriteJob::default()));
        group.leader.clone_from(&me);
        *assembly.group.lock() = Some(group);
        self.finish_parts(assembly, finished);
        me
    }

    /// Inserts the batch that was offered to `follower`, by the leader or by its writer.
    fn insert_offered(&self, follower: &Follower) -> Option<Part> {
        let (batch, part) = follower.with_job(|job| (job.batch.take(), job.part.take()));
        let (Some(batch), Some(part)) = (batch, part) else {
            return None;
        };
        let done = self.apply(&batch, part.first);
        follower.with_job(|job| {
            job.batch = Some(batch);
            if let Err(e) = done {
                job.outcome = Outcome::Failed(e);
            }
        });
        Some(part)
    }

    /// A follower inserts its own batch; the last of the group publishes it.
    #[cold]
    pub(super) fn work(&self, follower: &Follower) {
        if let Some(part) = self.insert_offered(follower) {
            self.finish_parts(&part.assembly, 1);
        }
    }

    fn finish_parts(&self, assembly: &Assembly, n: usize) {
        let is_last = assembly.pending.fetch_sub(n, Ordering::AcqRel) == n;
        if is_last || seeded(Bug::PublishBesideFollower) {
            let group = assembly.group.lock().take();
            if let Some(group) = group {
                self.publish(group, false);
            }
        }
    }

    #[inline]
    fn is_published(&self, group: &WriteGroup) -> bool {
        group.count == 0 || self.sequence.try_publish(group.first, group.count)
    }

    /// Publishes a group whose batches are all in the memtables, or leaves that to the group
    /// before. What its leader has to wait for when it `waits` to be told.
    pub(super) fn publish(&self, group: WriteGroup, waits: bool) -> Option<Arc<Follower>> {
        if !self.is_published(&group) {
            return self.leave(group, waits);
        }
        let waits = self.follow_up();
        group.tell();
        waits
    }

    /// Something was published: publishes what was left for this moment. None: there is nothing to
    /// wait for.
    #[inline]
    fn follow_up(&self) -> Option<Arc<Follower>> {
        self.sequence
            .take_ready()
            .into_iter()
            .for_each(WriteGroup::tell);
        None
    }

    /// Leaves a group to the publisher of the one before.
    #[cold]
    fn leave(&self, mut group: WriteGroup, waits: bool) -> Option<Arc<Follower>> {
        if seeded(Bug::FollowerToldEarly) {
            let (first, count) = (group.first, group.count);
            group.tell();
            group = WriteGroup::new(first, count, Vec::new());
        }
        // One that several threads inserted may know its leader already.
        let me = waits.then(|| Waiter::taken(WriteJob::default()));
        if me.is_some() {
            group.leader.clone_from(&me);
        }
        for ready in self.sequence.leave(group) {
            ready.tell();
        }
        me
    }

    /// Inserts a logged batch into the memtables.
    #[inline]
    fn apply(&self, batch: &WriteBatch, first: Seq) -> Result<()> {
        let _timed = perf_timing::part(PerfMetric::WriteMemtableTime, self.admission.clock());
        let mut to = LiveMemtables {
            path: self,
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
}

/// The memtables that take writes now. Valid while the batch is in flight: no switch happens
/// meanwhile.
struct LiveMemtables<'a> {
    path: &'a WritePath,
    last: Option<(Arc<Family>, Guard<Arc<View>>)>,
}

impl Memtables for LiveMemtables<'_> {
    #[inline]
    fn with(&mut self, family: FamilyId, f: impl FnOnce(&MemTable) -> Result<()>) -> Result<bool> {
        if self.last.as_ref().is_none_or(|(l, _)| l.id != family) {
            self.notice_full();
            let Some(found) = self.path.families.get(family) else {
                return Ok(false);
            };
            let view = found.view_guard();
            self.last = Some((found, view));
        }
        let (_, view) = self.last.as_ref().expect("set just above");
        f(&view.mem).map(|()| true)
    }
}

impl LiveMemtables<'_> {
    /// Asks for a switch when the memtable that was written last is full.
    #[inline]
    fn notice_full(&self) {
        if let Some((family, view)) = &self.last
            && view.mem.is_full()
            && !family.switch_wanted.swap(true, Ordering::AcqRel)
        {
            self.path.full.add(family.id);
        }
    }
}
