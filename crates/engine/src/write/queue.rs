//! The writers that wait for the log lock, as their leader and their followers see them.
//!
//! A writer that finds the lock taken leaves its batch in the queue. The next holder of the lock
//! takes what waits as one group: a writer that comes along, one that was called, or the last
//! leader, which serves the queue when it is done with its own group. So a writer sleeps at most
//! once for a write, and is woken when that is done. The mechanism is [`esker_sync::handover`].

use super::group::Part;
use super::path::WritePath;
use super::touched::Touched;
use crate::options::WriteOptions;
use esker_format::batch::WriteBatch;
use esker_status::Error;
use esker_status::seeded::{Bug, seeded};
use esker_sync::handover::{self, Waiter};

/// A waiting writer.
pub(crate) type Follower = Waiter<WriteJob>;
/// The waiting writers.
pub(super) type WriteQueue = handover::WaitQueue<WriteJob>;

/// Groups that a leader takes from the queue after its own; then a waiting writer is woken to
/// lead.
const SERVED_GROUPS: usize = 8;

/// What a waiting writer wants, and what became of it.
#[derive(Debug, Default)]
pub(crate) struct WriteJob {
    /// None while a group has it.
    pub(super) batch: Option<WriteBatch>,
    pub(super) touched: Touched,
    pub(super) options: WriteOptions,
    pub(super) part: Option<Part>,
    pub(super) outcome: Outcome,
}

/// What became of a write.
#[derive(Debug, Default)]
pub(crate) enum Outcome {
    /// Nothing yet.
    #[default]
    Pending,
    /// It is visible.
    Written,
    /// It is not written, or not as it should be.
    Failed(Error),
    /// One of its families lets nobody in: to come again when it does, so that those behind need
    /// not wait.
    Aside,
}

impl WriteJob {
    /// The bytes of its batch.
    pub(super) fn bytes(&self) -> usize {
        self.batch.as_ref().map_or(0, WriteBatch::data_size)
    }
}

/// What a leader that has released the log lock owes: somebody leads those that queue.
#[derive(Debug)]
pub(super) struct Duty<'a>(Option<&'a WritePath>);

impl<'a> Duty<'a> {
    pub(super) fn of(path: &'a WritePath) -> Self {
        Duty(Some(path))
    }

    fn fulfil(mut self) {
        self.0 = None;
    }
}

impl Drop for Duty<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(path) = self.0
            && !seeded(Bug::QueueLeftAlone)
        {
            path.queue.call_front(true);
        }
    }
}

impl WritePath {
    /// A leader is done with its own group: leads the groups of those that sleep in the queue, a
    /// few of them.
    #[inline]
    pub(super) fn serve(&self, duty: Duty<'_>) {
        if self.queue.is_empty() {
            duty.fulfil();
        } else {
            self.serve_queue(duty);
        }
    }

    #[cold]
    fn serve_queue(&self, duty: Duty<'_>) {
        for _ in 0..SERVED_GROUPS {
            // The sync of others takes too long.
            match self.queue.front(|job| job.options.sync) {
                Some(false) => {}
                _ => return,
            }
            let Some(mut log) = self.try_lock() else {
                // Its holder will look here.
                return duty.fulfil();
            };
            let Ok(super::path::Turn::Done(group)) =
                self.run_group(&mut log, &WriteOptions::default(), None)
            else {
                // Something is to be waited for: not by this writer.
                return;
            };
            log.release(group.is_long()).fulfil();
            self.complete_many(group, None, &mut Ok(()));
        }
    }
}
