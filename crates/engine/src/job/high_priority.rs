//! Merges of level 0 on threads of higher priority.
//!
//! Threads of compactions give way to all others ([`super::workers`]), and nobody waits for most of
//! what they do. A merge of level 0 into the levels below is different: until it ends its tables
//! still count, writers are slowed down by them, and no other merge may take level 0 down. Beside
//! other compactions it would have the processor for a part of the time that it works, and level 0
//! grows meanwhile. So it gets a thread with the share of a flush.
//!
//! A thread of its own for each, since niceness cannot be taken back without privileges: starting
//! one takes a twentieth of a millisecond, and only merges of [`WORTH_A_THREAD`] get one.
//!
//! Left out are merges within level 0 and those of universal trees, all of whose tables are at
//! level 0: they are all that such a tree has.

use super::compact::run_plan;
use crate::core::Core;
use crate::family::Family;
use crate::options::CompactionStyle;
use esker_format::Level;
use esker_lsm::plan::{Plan, PlanKind};
use esker_status::Result;
use esker_sync::{Arc, Mutex, Rank};

/// Bytes of a merge that takes longer than a thread takes to start.
const WORTH_A_THREAD: u64 = 1 << 20;

/// Whether writers wait for `plan`, and long enough.
pub(super) fn blocks_writers(family: &Family, plan: &Plan) -> bool {
    plan.kind == PlanKind::Merge
        && plan.start_level() == Level::L0
        && plan.output_level > Level::L0
        && plan.input_bytes() >= WORTH_A_THREAD
        && family.options.load().compaction_style == CompactionStyle::Level
}

/// Carries out a plan, which is registered as running, on a thread that is not patient, and waits
/// for it. Where none starts, the caller's does.
pub(super) fn run_high_priority(core: &Arc<Core>, family: &Arc<Family>, plan: &Plan) -> Result<()> {
    let done = Arc::new(Mutex::new(Rank::LEAF, None));
    let body = {
        let (core, family) = (Arc::clone(core), Arc::clone(family));
        let (plan, done) = (plan.clone(), Arc::clone(&done));
        Box::new(move || {
            let result = run_plan(&core, &family, &plan);
            *done.lock() = Some(result);
        })
    };
    match core.services.env.executor.spawn("esker-comp-l0", body) {
        // A panic goes on in the caller.
        Ok(thread) => thread.join(),
        Err(e) => core
            .services
            .info_log
            .warn(format_args!("a thread for level 0 could not start: {e}")),
    }
    let done = done.lock().take();
    done.unwrap_or_else(|| run_plan(core, family, plan))
}
