//! Sequence numbers: handed out under the log lock, published in the order they were handed out.
//!
//! `allocated` is the newest number that a write owns; the published one is the newest that readers
//! may see. Groups insert into memtables beside each other and are published in order, so a reader
//! that loads the published number sees every write up to it and nothing beyond. A group that is
//! done too early is left to the publisher of the one before it. While the two numbers differ
//! writes are in flight, and memtables must not be switched ([`Sequence::quiesce`]).

use super::group::{Follower, WriteGroup, WriteJob};
use crate::store::SequenceSource;
use esker_format::Seq;
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::handover::{InOrder, Waiter};
use esker_sync::{Arc, CachePadded};

/// How often the holder of the log lock looks whether writes are in flight before it sleeps.
const SPINS: u32 = 256;

#[derive(Debug)]
pub(crate) struct Sequence {
    allocated: CachePadded<AtomicU64>,
    groups: InOrder<WriteGroup>,
}

impl Sequence {
    pub(crate) fn new(last: Seq) -> Self {
        Sequence {
            allocated: CachePadded::new(AtomicU64::new(last.0)),
            groups: InOrder::new(last.0),
        }
    }

    /// Sets both numbers; only while nothing else runs (recovery, ingestion under the log lock).
    pub(crate) fn reset(&self, last: Seq) {
        self.allocated.store(last.0, Ordering::Relaxed);
        self.groups.reset(last.0);
    }

    /// The newest sequence that readers may see.
    #[inline]
    pub(crate) fn published(&self) -> Seq {
        Seq(self.groups.published())
    }

    /// The newest sequence that a write owns.
    pub(crate) fn allocated(&self) -> Seq {
        Seq(self.allocated.load(Ordering::Relaxed))
    }

    /// Takes `count` numbers and returns the first. The caller holds the log lock.
    #[inline]
    pub(crate) fn allocate(&self, count: u64) -> Seq {
        let last = self.allocated.load(Ordering::Relaxed);
        self.allocated.store(last + count, Ordering::Relaxed);
        Seq(last + 1)
    }

    /// Makes `first..first + count` visible, where nothing before is in flight: under the log lock,
    /// after [`Sequence::quiesce`].
    pub(crate) fn publish(&self, first: Seq, count: u64) {
        if count > 0 {
            let is_next = self.try_publish(first, count);
            debug_assert!(is_next, "writes are in flight");
        }
    }

    /// Makes a group visible if everything before is. [`Sequence::tell_ready`] is to follow.
    #[inline]
    pub(super) fn try_publish_group(&self, group: &WriteGroup) -> bool {
        group.count == 0 || self.try_publish(group.first, group.count)
    }

    #[inline]
    fn try_publish(&self, first: Seq, count: u64) -> bool {
        let last = first.0 + count - 1;
        if seeded(Bug::GroupsOutOfOrder) {
            self.groups.reset(last.max(self.groups.published()));
            return true;
        }
        self.groups.try_publish(first.0, last)
    }

    /// Tells the groups that were left, and are visible by now.
    #[inline]
    pub(super) fn tell_ready(&self) {
        let ready = self.groups.take_ready();
        ready.into_iter().for_each(WriteGroup::tell);
    }

    /// Publishes a group whose batches are all in the memtables, or leaves that to the group
    /// before. Returns what its leader has to wait for when it `waits` to be told.
    pub(super) fn publish_group(&self, group: WriteGroup, waits: bool) -> Option<Arc<Follower>> {
        if !self.try_publish_group(&group) {
            return self.leave_group(group, waits);
        }
        self.tell_ready();
        group.tell();
        None
    }

    /// Leaves a group to the publisher of the one before.
    #[cold]
    pub(super) fn leave_group(&self, mut group: WriteGroup, waits: bool) -> Option<Arc<Follower>> {
        let (first, count) = (group.first, group.count);
        if seeded(Bug::FollowerToldEarly) {
            group.tell();
            group = WriteGroup::new(first, count, Vec::new());
        }
        // One that several threads inserted may know its leader already.
        let me = waits.then(|| Waiter::taken(WriteJob::default()));
        if me.is_some() {
            group.leader.clone_from(&me);
        }
        let last = first.0 + count - 1;
        let ready = self.groups.leave(first.0, last, group);
        ready.into_iter().for_each(WriteGroup::tell);
        me
    }

    /// Waits until no write is in flight. The caller holds the log lock, so none can start.
    pub(crate) fn quiesce(&self) {
        let all = self.allocated.load(Ordering::Relaxed);
        self.groups.wait_for(all, SPINS);
    }
}

impl SequenceSource for Sequence {
    fn allocated(&self) -> Seq {
        Sequence::allocated(self)
    }
}
