//! The writers that wait for the log lock, as their leader and their followers see them.
//!
//! A writer that finds the lock taken leaves its batch in the queue. The next holder of the lock
//! takes what waits as one group: a writer that comes along, one that was called, or the last
//! leader, which serves the queue when it is done with its own group. So a writer sleeps at most
//! once for a write, and is woken when that is done. The mechanism is [`esker_sync::handover`].

use super::path::{Duty, LeaderOutcome, WritePath};
use crate::options::WriteOptions;

/// Groups that a leader takes from the queue after its own; then a waiting writer is woken to
/// lead.
const SERVED_GROUPS: usize = 8;

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
            let Ok(LeaderOutcome::Done(group)) =
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
