//! Which compaction to run next: pure decisions over a version.
//!
//! [`pick`] is asked again after every change of the tree and after every plan that was registered
//! in [`Busy`], until it has nothing more to start. A flush always writes to level 0
//! ([`FLUSH_OUTPUT_LEVEL`]). What the user asks for is planned in [`manual`]. Nothing here blocks,
//! allocates much or remembers anything.

pub mod fifo;
mod for_reads;
mod for_space;
mod inputs;
pub mod leveled;
pub mod manual;
mod multilevel;
mod path;
mod recheck;
pub mod tiered;
pub mod universal;
pub mod urgency;

pub use crate::policy::{
    CompactionPri, CompactionStopStyle, CompactionStyle, FifoSettings, FileTemperatureAge, Policy,
    Temperature, UniversalSettings,
};
pub use crate::writers::{PickContext, WriterState};
pub use recheck::{Recheck, recheck};

use crate::assessment::Assessment;
use crate::plan::{Busy, Plan};
use crate::version::Version;
use esker_format::Level;
use inputs::Context;

/// The next compaction that the tree needs and that can start beside those that run.
pub fn pick(version: &Version, policy: &Policy, busy: &Busy, moment: PickContext) -> Option<Plan> {
    if policy.disable_auto_compactions {
        return None;
    }
    let assessment = Assessment::of(version, policy);
    pick_assessed(version, policy, &assessment, busy, moment)
}

/// Picks as [`pick`] does, with the tree's assessment at hand, which says how the levels should be.
/// The plan's urgency compares it with plans of other trees ([`urgency`]).
pub fn pick_assessed(
    version: &Version,
    policy: &Policy,
    assessment: &Assessment,
    busy: &Busy,
    moment: PickContext,
) -> Option<Plan> {
    if policy.disable_auto_compactions {
        return None;
    }
    let targets = &assessment.targets;
    let picker = match policy.compaction_style {
        CompactionStyle::Level => leveled::pick,
        CompactionStyle::Universal => universal::pick,
        CompactionStyle::Fifo => fifo::pick,
        CompactionStyle::None => return None,
    };
    let cx = Context::new(version, policy, targets, busy, moment).in_space(assessment.space);
    let usual = || picker(&cx).or_else(|| for_reads::pick(&cx));
    let mut plan = match &cx.space {
        None => usual()?,
        Some(space) => for_space::pick(&cx, space, usual)?,
    };
    plan.urgency = urgency::of(&plan, policy, assessment);
    Some(plan)
}

/// Where flushes write.
pub const FLUSH_OUTPUT_LEVEL: Level = Level::L0;
