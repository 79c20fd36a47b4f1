//! Administration that stops writers, and how those wait that meet an obstacle at the log.
//!
//! A counter stands beside the log lock. Leaders look at it and go on when it is 0; the log lock
//! stays free meanwhile, so the thread that stopped them can take it. Thread-safety: everything may
//! be called by any thread.

use super::path::{LogGuard, Obstacle, WritePath};
use super::stall_tracker::{StallGuard, StallReason};
use crate::observe::StallCause;
use esker_status::Result;
use esker_sync::MutexGuard;
use esker_sync::atomic::Ordering;
use std::time::Duration;

/// No write begins while this lives; the log lock is free.
#[derive(Debug)]
pub(crate) struct StopWriters<'a>(&'a WritePath);

impl Drop for StopWriters<'_> {
    fn drop(&mut self) {
        let stops = &self.0.stops;
        stops.count.fetch_sub(1, Ordering::AcqRel);
        drop(stops.changed.0.lock());
        stops.changed.1.notify_all();
    }
}

impl WritePath {
    /// Lets no write begin until what is returned is dropped. Writes that hold the log lock go on:
    /// once the lock was taken and in-flight writes have ended
    /// ([`quiesce`](super::sequence::Sequence::quiesce)), memtables stay as they are.
    pub(crate) fn stop_writers(&self) -> StopWriters<'_> {
        self.stops.count.fetch_add(1, Ordering::AcqRel);
        StopWriters(self)
    }

    /// Lets no write begin until [`WritePath::release_writers`]; what was written is handed to the
    /// operating system.
    pub(crate) fn hold_writers(&self) -> Result<()> {
        self.stops.count.fetch_add(1, Ordering::AcqRel);
        let flushed = {
            let mut log = self.lock();
            self.sequence.quiesce();
            self.save(&mut log, false)
        };
        match flushed {
            Ok(()) => {
                self.stops.holds.fetch_add(1, Ordering::AcqRel);
                Ok(())
            }
            Err(e) => {
                drop(StopWriters(self));
                Err(e)
            }
        }
    }

    /// Takes one [`WritePath::hold_writers`] back; false when there is none.
    pub(crate) fn release_writers(&self) -> bool {
        let held = self
            .stops
            .holds
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1))
            .is_ok();
        if held {
            drop(StopWriters(self));
        }
        held
    }

    /// Waits until writers may go on, at most a tenth of a second. The log lock must not be held.
    #[cold]
    pub(super) fn wait_for_obstacle(&self, obstacle: &Obstacle, held: &mut StallGuard<'_>) {
        if self.is_stopped() {
            held.during(StallReason::of_database(StallCause::Administration), || {
                self.wait_for_administration();
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
        self.stops.count.load(Ordering::Acquire) > 0
    }

    pub(super) fn wait_for_administration(&self) {
        let (lock, changed) = &self.stops.changed;
        let mut waiting = lock.lock();
        if self.is_stopped() {
            changed.wait_for(&mut waiting, Duration::from_millis(100));
        }
    }

    /// Waits until administration is done, away from the log lock, for which it stands in line
    /// itself. For writers whose batch is not queued.
    #[cold]
    pub(super) fn wait_for_stop_writers(&self, held: &mut StallGuard<'_>) {
        held.during(StallReason::of_database(StallCause::Administration), || {
            while self.is_stopped() && !self.background_cv.is_closing() {
                self.wait_for_administration();
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
