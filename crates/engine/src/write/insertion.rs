//! The insertion of a logged group with followers into the memtables, by several threads.
//!
//! The leader inserts its own batch and the small ones. A large batch is offered to its writer,
//! which inserts it when it has a processor; the leader inserts those that no follower has begun.
//! The last thread to be done publishes the group, so no writer waits for an insert outside its
//! group except to be told that its own write is visible.
//!
//! Invariants: a follower is told after its group was published, once; its batch is back in its job
//! before. Thread-safety: everything may be called by any thread.

use super::WriteEnv;
use super::group::{Follower, InsertGroup, Member, OfferedBatch, Outcome, WriteGroup, WriteJob};
use super::sequence::Sequence;
use esker_format::batch::WriteBatch;
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicUsize, Ordering};
use esker_sync::handover::Waiter;
use esker_sync::{Arc, Mutex, Rank, thread};

/// A batch of at least this many records is offered to its writer: inserting them takes longer than
/// waking a thread.
const LARGE_RECORDS: u32 = 32;

/// The environment that inserts, and the order in which groups become visible.
#[derive(Debug)]
pub(super) struct Insertion<'a, E> {
    pub(super) env: &'a E,
    pub(super) sequence: &'a Sequence,
}

impl<E: WriteEnv> Insertion<'_, E> {
    /// Inserts a group and makes it visible. Returns what its leader has to wait for.
    pub(super) fn run(
        &self,
        mut group: WriteGroup,
        own: Option<&WriteBatch>,
        done: &mut Result<()>,
    ) -> Option<Arc<Follower>> {
        if seeded(Bug::PublishBeforeInsert) && self.sequence.try_publish_group(&group) {
            group.count = 0;
        }
        let assembly = self.offer_large(&mut group, own);
        if let Some(batch) = own {
            *done = self.env.apply(batch, group.first);
        }
        for member in &mut group.members {
            if let Some(batch) = &member.batch
                && member.error.is_none()
            {
                member.error = self.env.apply(batch, member.first).err();
            }
        }
        match assembly {
            None => self.sequence.publish_group(group, own.is_some()),
            Some(assembly) => self.assemble(group, &assembly, own.is_some()),
        }
    }

    /// Offers the large batches of a group to their writers, all but one: the leader has something
    /// to do as well.
    fn offer_large(
        &self,
        group: &mut WriteGroup,
        own: Option<&WriteBatch>,
    ) -> Option<Arc<InsertGroup>> {
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
        let assembly = Arc::new(InsertGroup {
            pending: AtomicUsize::new(1 + offered.len()),
            group: Mutex::new(Rank::LEAF, None),
        });
        for member in offered {
            member.follower.with_job(|job| {
                job.batch = member.batch.take();
                job.part = Some(OfferedBatch {
                    first: member.first,
                    assembly: Arc::clone(&assembly),
                });
            });
            member.follower.offer();
        }
        Some(assembly)
    }

    /// Inserts the batches that were offered and not taken, and publishes the group unless a
    /// follower is at its batch still, which does it then. Returns what the leader has to wait for.
    fn assemble(
        &self,
        mut group: WriteGroup,
        assembly: &Arc<InsertGroup>,
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
    fn insert_offered(&self, follower: &Follower) -> Option<OfferedBatch> {
        let (batch, part) = follower.with_job(|job| (job.batch.take(), job.part.take()));
        let (Some(batch), Some(part)) = (batch, part) else {
            return None;
        };
        let done = self.env.apply(&batch, part.first);
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

    fn finish_parts(&self, assembly: &InsertGroup, n: usize) {
        let is_last = assembly.pending.fetch_sub(n, Ordering::AcqRel) == n;
        if is_last || seeded(Bug::PublishBesideFollower) {
            let group = assembly.group.lock().take();
            if let Some(group) = group {
                self.sequence.publish_group(group, false);
            }
        }
    }
}
