//! The two classes of background threads, as RocksDB's pools HIGH and LOW.
//!
//! Writers wait for a flush, sooner or later, and never for one certain compaction. So flushes run
//! on threads of the high class, and compactions, as the deletion of files, on patient threads
//! ([`esker_env::Executor::spawn_patient`]): where processors are short, a flush ends in a third of
//! the time. Compactions that starve for it slow writers down by the tree's debt, which gives them
//! the processor back.
//!
//! A compaction that takes level 0 of a leveled tree down is in the high class, too: until it ends
//! its input tables still count, writers are slowed down by them, and no other merge may take level
//! 0 down. Left out are merges within level 0 and those of universal trees, all of whose tables are
//! at level 0: they are all that such a tree has.
//!
//! Where the space of a tree is bounded, writers stop until a merge has made room: each one that
//! relieves the load is in the high class.
//!
//! A thread stays in its class: niceness cannot be taken back without privileges.

use crate::family::Family;
use crate::options::CompactionStyle;
use esker_env::{Executor, JoinHandle};
use esker_format::Level;
use esker_lsm::pick::urgency::relieves_load;
use esker_lsm::plan::{Plan, PlanKind};
use esker_status::Result;

/// A class of background threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadClass {
    /// For what writers wait for.
    High,
    /// For what can wait; the threads are patient.
    Low,
}

/// Tells whether a compaction takes level 0 of a leveled tree down.
pub(super) fn takes_level0_down(family: &Family, plan: &Plan) -> bool {
    plan.kind != PlanKind::Delete
        && plan.start_level() == Level::L0
        && plan.output_level > Level::L0
        && family.options.load().compaction_style == CompactionStyle::Level
}

impl ThreadClass {
    /// The class for a compaction.
    pub(super) fn of_plan(family: &Family, plan: &Plan) -> Self {
        let makes_room = || family.is_space_bounded() && relieves_load(plan.urgency);
        if takes_level0_down(family, plan) || makes_room() {
            ThreadClass::High
        } else {
            ThreadClass::Low
        }
    }

    /// Runs `body` on a thread of the class.
    pub(super) fn spawn(
        self,
        executor: &dyn Executor,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn JoinHandle>> {
        match self {
            ThreadClass::High => executor.spawn(name, body),
            ThreadClass::Low => executor.spawn_patient(name, body),
        }
    }
}
