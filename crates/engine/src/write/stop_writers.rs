//! How writers wait for administration, and for an obstacle that they meet at the log.
//!
//! [`Stops`](crate::family::backpressure::stops::Stops) has the counter that stops them.
//! Thread-safety: everything may be called by any thread.

use super::path::{LogGuard, Obstacle, WritePath};
use crate::family::backpressure::stall_tracker::{StallGuard, StallReason};
use crate::family::backpressure::stops::StopWriters;
use crate::observe::StallCause;
use esker_status::Result;
use esker_sync::MutexGuard;

impl WritePath {
    /// Lets no write begin until what is returned is dropped. Writes that hold the log lock go on:
    /// once the lock was taken and in-flight writes have ended
    /// ([`quiesce`](super::sequence::Sequence::quiesce)), memtables stay as they are.
    pub(crate) fn stop_writers(&self) -> StopWriters<'_> {
        self.stops.stop()
    }

    /// Lets no write begin until [`WritePath::release_writers`]; what was written is handed to the
    /// operating system.
    pub(crate) fn hold_writers(&self) -> Result<()> {
        let stopped = self.stops.stop();
        let flushed = {
            let mut log = self.lock();
            self.sequence.quiesce();
            self.save(&mut log, false)
        };
        flushed?;
        stopped.hold();
        Ok(())
    }

    /// Takes one [`WritePath::hold_writers`] back; false when there is none.
    pub(crate) fn release_writers(&self) -> bool {
        self.stops.release()
    }

    /// Waits until writers may go on, at most a tenth of a second. The log lock must not be held.
    #[cold]
    pub(super) fn wait_for_obstacle(&self, obstacle: &Obstacle, held: &mut StallGuard<'_>) {
        if self.is_stopped() {
            held.during(StallReason::of_database(StallCause::Administration), || {
                self.stops.wait();
            });
        } else if self.buffers.must_stall() {
            let reason = StallReason::of_database(StallCause::WriteBufferManagerLimit);
            held.during(reason, || self.buffers.wait());
        } else if let Obstacle::Family(family) = obstacle {
            self.admission.wait_stopped(family, held);
        }
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stops.is_stopped()
    }

    /// Waits until administration is done, away from the log lock, for which it stands in line
    /// itself. For writers whose batch is not queued.
    #[cold]
    pub(super) fn wait_for_stop_writers(&self, held: &mut StallGuard<'_>) {
        held.during(StallReason::of_database(StallCause::Administration), || {
            while self.is_stopped() && !self.is_closed() {
                self.stops.wait();
            }
        });
    }

    /// Waits without the log lock until writers may go on, and takes it again. For leaders whose
    /// batch is not queued: while they wait for the lock, they block no other writer.
    #[cold]
    pub(super) fn release_log_and_wait(
        &self,
        log: &mut LogGuard<'_>,
        obstacle: &Obstacle,
        held: &mut StallGuard<'_>,
    ) {
        let state = log.state.as_mut().expect("held by the leader");
        MutexGuard::unlocked(state, || {
            // Others may have nothing to wait for.
            self.queue.call_front(true);
            if self.is_stopped() {
                self.wait_for_stop_writers(held);
            } else {
                self.wait_for_obstacle(obstacle, held);
            }
        });
    }
}
