//! Writers that wait, and groups of them: the values that the write path passes between threads.
//!
//! A writer that finds the log lock taken leaves its batch in the queue as a [`WriteJob`]. The next
//! holder of the lock takes what waits as one [`WriteGroup`]. A batch that is offered to its writer
//! is an [`OfferedBatch`] of the group's [`InsertGroup`]. The queue itself is
//! [`esker_sync::handover`].
//!
//! Invariants: a follower is told after its group was published, once; its batch is back in its job
//! before.

use crate::family::backpressure::batch_families::BatchFamilies;
use crate::options::WriteOptions;
use esker_format::Seq;
use esker_format::batch::WriteBatch;
use esker_status::Error;
use esker_sync::atomic::AtomicUsize;
use esker_sync::handover::Waiter;
use esker_sync::{Arc, Mutex};

/// For a group of at least this many records the next leader is woken before it is inserted.
const LONG_RECORDS: u64 = 256;

/// A waiting writer.
pub(crate) type Follower = Waiter<WriteJob>;

/// Request of a waiting writer, and its outcome.
#[derive(Debug, Default)]
pub(crate) struct WriteJob {
    /// None while a group has it.
    pub(super) batch: Option<WriteBatch>,
    pub(super) touched: BatchFamilies,
    pub(super) options: WriteOptions,
    pub(super) part: Option<OfferedBatch>,
    pub(super) outcome: Outcome,
}

/// Outcome of a write.
#[derive(Debug, Default)]
pub(crate) enum Outcome {
    /// Nothing yet.
    #[default]
    Pending,
    /// It is visible.
    Written,
    /// It is not written, or not as it should be.
    Failed(Error),
    /// One of its families admits no writers: to come again when it does, so that those behind need
    /// not wait.
    Aside,
}

impl WriteJob {
    /// The bytes of its batch.
    pub(super) fn bytes(&self) -> usize {
        self.batch.as_ref().map_or(0, WriteBatch::data_size)
    }
}

/// A logged group.
#[derive(Debug)]
pub(crate) struct WriteGroup {
    /// Where the leader's own batch begins, and the group.
    pub(super) first: Seq,
    /// Sequence numbers of the whole group.
    pub(super) count: u64,
    pub(super) members: Vec<Member>,
    /// It was synced, and so will be those behind it: the device is not to wait for inserts.
    pub(super) is_synced: bool,
    /// A leader that waits to be told, when its batch was never in the queue.
    pub(super) leader: Option<Arc<Follower>>,
}

/// A follower's part of a group.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) follower: Arc<Follower>,
    /// None while its writer has it.
    pub(super) batch: Option<WriteBatch>,
    pub(super) first: Seq,
    pub(super) error: Option<Error>,
}

/// A group that several threads insert.
#[derive(Debug)]
pub(super) struct InsertGroup {
    /// Threads and batches that are not done.
    pub(super) pending: AtomicUsize,
    pub(super) group: Mutex<Option<WriteGroup>>,
}

/// A batch that is offered to its writer.
#[derive(Debug)]
pub(super) struct OfferedBatch {
    pub(super) first: Seq,
    pub(super) assembly: Arc<InsertGroup>,
}

impl WriteGroup {
    pub(super) fn new(first: Seq, count: u64, members: Vec<Member>) -> Self {
        WriteGroup {
            first,
            count,
            members,
            is_synced: false,
            leader: None,
        }
    }

    /// Returns whether a thread is worth waking that logs the next group while this one is
    /// inserted.
    pub(super) fn is_long(&self) -> bool {
        self.is_synced || self.count >= LONG_RECORDS
    }

    /// Tells its writers the outcome.
    pub(super) fn tell(self) {
        for member in self.members {
            member.follower.with_job(|job| {
                if member.batch.is_some() {
                    job.batch = member.batch;
                }
                if let Some(e) = member.error {
                    job.outcome = Outcome::Failed(e);
                } else if matches!(job.outcome, Outcome::Pending) {
                    job.outcome = Outcome::Written;
                }
            });
            member.follower.finish();
        }
        if let Some(leader) = self.leader {
            leader.finish();
        }
    }
}
