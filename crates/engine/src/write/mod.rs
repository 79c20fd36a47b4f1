//! The write path: from a batch to the log, the memtables and visibility.
//!
//! ```text
//!  writer -> path: checks, gates                                  no lock
//!              |
//!            queue: log lock free? -- no --> wait; a leader takes the batch, or this thread leads
//!              | yes: leader
//!            gate.make_room     full memtables are switched       log lock
//!            take the group     own batch + queued ones           log lock
//!            env.write          one record for the group          log lock
//!            env.sync           if one of them asked for it       log lock
//!              |                                                  released: the next group starts
//!            env.apply          each batch into its memtables     no lock
//!            sequence           published in order, writers told  no lock
//!            serve              groups of those asleep in the queue
//! ```
//!
//! A thread that finds the log lock free is the *leader*. It takes the batches that wait in the
//! queue with its own as one *group*: consecutive sequence numbers, one record of the log, one
//! sync. It releases the lock, inserts the group, publishes it, and wakes each *follower* once. The
//! next group is logged meanwhile. No thread has to be woken for writes to go on: a thread that
//! comes along takes a free log lock with all that queues, and a leader that is done serves those
//! that sleep. A group that is inserted before the one in front of it leaves its publication to
//! that one's publisher.
//!
//! [`queue`] has this order and nothing else: what it does with a group are the three calls of
//! [`WriteEnv`], what may hold a group back is [`WriteGate`]. [`log`] and [`memtables`] are the
//! environment of a database, which [`path`] puts together.
//! `docs/decisions/0001-write-path.md` has the reasons and the rejected designs.
//!
//! Invariants: a batch is in the log before it is in a memtable; memtables are switched by the
//! holder of the log lock while no group is in flight ([`sequence::Sequence::quiesce`]); what is
//! published is a prefix of what was allocated; a write returns when it is visible.
//!
//! Thread-safety: any thread may call everything; what takes the log's state is for the holder of
//! the log lock.

pub(crate) mod apply;
mod contention;
pub(crate) mod group;
mod insertion;
pub(crate) mod log;
pub(crate) mod log_state;
pub(crate) mod memtables;
pub(crate) mod path;
pub(crate) mod perf_timing;
pub(crate) mod prepared;
pub(crate) mod queue;
pub(crate) mod sequence;
pub(crate) mod spare_log;
mod switch;

use crate::family::backpressure::batch_families::BatchFamilies;
use crate::family::backpressure::stall_tracker::{StallGuard, StallReason};
use crate::options::WriteOptions;
use esker_format::Seq;
use esker_format::batch::WriteBatch;
use esker_status::Result;
use group::WriteJob;

/// The environment of the queue: what is done with a group.
pub(crate) trait WriteEnv {
    /// The state of the log, which the log lock protects.
    type Log;

    /// Appends a group to the log, unless it skips the log.
    fn write(&self, log: &mut Self::Log, record: &GroupRecord<'_>) -> Result<()>;

    /// Makes what was appended survive power loss.
    fn sync(&self, log: &mut Self::Log) -> Result<()>;

    /// Inserts a logged batch into the memtables, its first entry at `first`. The log lock is not
    /// held by the caller.
    fn apply(&self, batch: &WriteBatch, first: Seq) -> Result<()>;
}

/// The reasons for which a group may not begin.
pub(crate) trait WriteGate: WriteEnv {
    /// A reason to wait, as the leader found it.
    type Obstacle;

    /// Makes room for the next group: returns what the leader has to wait for first, without the
    /// log lock.
    fn make_room(
        &self,
        log: &mut Self::Log,
        next: &NextGroup<'_>,
    ) -> Result<Option<Self::Obstacle>>;

    /// Tells whether some family admits no writers.
    fn holds_any(&self) -> bool;

    /// Tells whether a queued batch has to wait for one of its families.
    fn holds(&self, job: &WriteJob) -> bool;

    /// The reason for which all writers have to wait, other than for a leader.
    fn holds_all(&self) -> Option<StallReason>;

    /// Waits for an obstacle: not for long when the caller's batch is in the queue, where another
    /// leader may take it. The log lock is not held.
    fn wait(&self, obstacle: &Self::Obstacle, is_queued: bool, held: &mut StallGuard<'_>);
}

/// A group as the log gets it.
#[derive(Debug)]
pub(crate) struct GroupRecord<'a> {
    /// The bytes of the record.
    pub(crate) parts: &'a [&'a [u8]],
    /// The group skips the log.
    pub(crate) disable_wal: bool,
    /// Batches, their entries with a sequence number, and their bytes.
    pub(crate) writes: u64,
    pub(crate) keys: u64,
    pub(crate) bytes: u64,
}

/// A group that is about to be taken.
#[derive(Debug)]
pub(crate) struct NextGroup<'a> {
    pub(crate) options: &'a WriteOptions,
    /// The leader's batch; none when it is in the queue.
    pub(crate) own: Option<(&'a WriteBatch, BatchFamilies)>,
}
