//! Merges of level 0 on threads of higher priority.
//!
//! Threads of compactions give way to all others ([`super::workers`]), and most of what they do
//! blocks no writer. A merge of level 0 into the levels below is different: until it ends its
//! tables still count, writers are slowed down by them, and no other merge may take level 0 down.
//! Beside other compactions it would have the processor for a part of the time that it works, and
//! level 0 grows meanwhile. So it runs on a thread with the share of a flush.
//!
//! Such threads are apart from the others, since niceness cannot be taken back without privileges.
//! The thread of the compaction waits meanwhile, so the limit on jobs holds. A hand-over takes some
//! 50 microseconds; the syncs at the end of the smallest merge take longer.
//!
//! Left out are merges within level 0 and those of universal trees, all of whose tables are at
//! level 0: they are all that such a tree has.

use super::compact::run_plan;
use crate::core::Core;
use crate::family::Family;
use crate::options::CompactionStyle;
use esker_format::Level;
use esker_lsm::plan::{Plan, PlanKind};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::{Arc, Mutex, Rank};

/// Whether writers wait for `plan`.
pub(super) fn blocks_writers(family: &Family, plan: &Plan) -> bool {
    plan.kind == PlanKind::Merge
        && plan.start_level() == Level::L0
        && plan.output_level > Level::L0
        && family.options.load().compaction_style == CompactionStyle::Level
}

/// Carries out a plan, which is registered as running, on a thread that is not patient, and waits
/// for it. Where there is none, the caller's does. A panic goes on in the caller.
pub(super) fn run_high_priority(core: &Arc<Core>, family: &Arc<Family>, plan: &Plan) -> Result<()> {
    let done = Arc::new(Mutex::new(Rank::LEAF, None));
    let merge = {
        let (core, family, plan) = (Arc::clone(core), Arc::clone(family), plan.clone());
        let done = Arc::clone(&done);
        move || {
            let outcome = run_plan(&core, &family, &plan);
            *done.lock() = Some(outcome);
        }
    };
    let executor = &core.services.env.executor;
    match executor.spawn("esker-comp-l0", Box::new(merge)) {
        Ok(_) if seeded(Bug::MergeToldEarly) => return Ok(()),
        Ok(thread) => thread.join(),
        Err(e) => {
            core.services
                .info_log
                .warn(format_args!("a thread for level 0 could not start: {e}"));
            return run_plan(core, family, plan);
        }
    }
    let outcome = done.lock().take();
    outcome.unwrap_or_else(|| Err(Error::aborted("a merge ended without an outcome")))
}
