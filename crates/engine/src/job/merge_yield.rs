//! Merges of deep levels give their slot away for a while.
//!
//! `max_background_jobs` is 2 by default, and one merge of deep levels lasts for seconds to
//! minutes. A flush, or a job that takes level 0 down, may be due meanwhile and has no slot:
//! writers feel that. So a merge looks between its steps, which are some thousand entries or a
//! block of large ones, whether a job that is more urgent waits for a slot
//! ([`Background::slot_wanted`]). If so it waits, and its slot counts as free for jobs of the high
//! class alone. It goes on when it can have the slot back and nothing more urgent waits for it, and
//! after [`WINDOW_S`] seconds in any case.
//!
//! Before it waits again it works for as long as it has waited, so a merge gets half of the time
//! under any load. It holds no lock meanwhile, and what it has taken stays its own. Callers that
//! close the database, abort compactions or wait until none runs end the wait.
//!
//! Merges that callers ask for do not yield, as in RocksDB: a caller waits for them, and they are
//! beside the limit on jobs, so no job waits for their slots.

use crate::core::Background;
use crate::family::backpressure::write_controller::STOP_LOOK;
use crate::health::HealthState;
use crate::registry::Jobs;
use esker_format::Level;
use esker_lsm::pace::WINDOW_S;
use esker_lsm::plan::{Plan, PlanKind};
use esker_status::seeded::{Bug, seeded};
use std::time::Duration;

/// Tells whether a compaction that the scheduler started yields.
pub(super) fn may_yield(plan: &Plan) -> bool {
    plan.kind == PlanKind::Merge && plan.start_level() > Level::L0
}

/// Waits of one merge.
#[derive(Debug)]
pub(super) struct MergeYield {
    urgency: f64,
    /// It does not wait before, by the clock.
    not_before_us: u64,
    /// How often it has waited, and how long.
    pub(super) count: u64,
    pub(super) us: u64,
}

impl MergeYield {
    pub(super) fn of(plan: &Plan) -> Self {
        MergeYield {
            urgency: plan.urgency,
            not_before_us: 0,
            count: 0,
            us: 0,
        }
    }

    /// Waits if a more urgent job needs the slot. To be called between steps, without locks.
    pub(super) fn yield_slot(&mut self, background: &Background) {
        if background.slot_wanted() <= self.urgency {
            return;
        }
        let clock = &background.services.env.clock;
        let began_us = clock.now_us();
        if began_us < self.not_before_us || !self.lend(background) {
            return;
        }
        background.cv.notify();
        let longest = Duration::from_secs_f64(WINDOW_S);
        let mut waited_us = 0;
        loop {
            let seen = background.cv.changes();
            if self.take_back(background, Duration::from_micros(waited_us) >= longest) {
                break;
            }
            // Not all that ends the wait is told.
            background.cv.wait_past(seen, STOP_LOOK);
            waited_us = clock.now_us().saturating_sub(began_us);
        }
        self.not_before_us = clock.now_us().saturating_add(waited_us);
        self.count += 1;
        self.us += waited_us;
        background.services.note_yield(waited_us);
    }

    /// Gives the slot away, unless nobody needs it any more.
    fn lend(&self, background: &Background) -> bool {
        let limits = background.services.options.load().job_limits();
        let mut jobs = background.jobs.lock();
        let is_needed = background.slot_wanted() > self.urgency
            && !jobs.may_relieve(&limits)
            && !must_go_on(background, &jobs);
        if is_needed {
            jobs.yielding += 1;
            background.update_free_jobs(&jobs);
        }
        is_needed
    }

    /// Takes the slot back, if it may or is to be so `now`.
    fn take_back(&self, background: &Background, now: bool) -> bool {
        let limits = background.services.options.load().job_limits();
        let mut jobs = background.jobs.lock();
        let is_free = || jobs.may_relieve(&limits) && background.slot_wanted() <= self.urgency;
        let is_over = if seeded(Bug::YieldNeverResumes) {
            background.cv.is_closing()
        } else {
            now || must_go_on(background, &jobs) || is_free()
        };
        if is_over {
            jobs.yielding -= 1;
            background.update_free_jobs(&jobs);
        }
        is_over
    }
}

/// Tells whether nothing starts that a merge could wait for, or somebody waits for the merge.
fn must_go_on(background: &Background, jobs: &Jobs) -> bool {
    background.cv.is_closing()
        || background.compaction_abort.check().is_err()
        || jobs.paused > 0
        || jobs.compactions_paused > 0
        || background.services.health.state() != HealthState::Running
}
