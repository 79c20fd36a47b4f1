//! When the writers of a tree are pressed: the marks and the rules that pickers share with what
//! slows writers down.
//!
//! A tree is near its slowdown from [`NEAR`] of the trigger on: needs count from there, writers are
//! paced from there, and level 0 no longer waits for more tables. It is near its stop from
//! [`near_stop`] on: level 0 merges in itself first, and writers go only as fast as what comes
//! fits until a merge ends. Whether writers are held back at this moment is for their gate to say
//! ([`PickContext::throttled`]); whether they bring tables follows from the tree
//! (`recent_flush`).

use crate::policy::{PickContext, Policy};
use crate::version::Version;
use esker_format::Level;

/// The part of a slowdown trigger from which on a tree is near it.
pub const NEAR: f64 = 0.75;

/// Fewer files of level 0 are not merged among themselves.
pub const MIN_FILES_FOR_INTRA_L0: usize = 4;

/// Seconds without a new table at level 0 after which writers rest.
pub const REST_SECONDS: u64 = 2;

/// The tables of level 0 from which on what comes during a merge of seconds may not fit: halfway
/// from the slowdown to the stop.
pub fn near_stop(slowdown: f64, stop: f64) -> f64 {
    slowdown.midpoint(stop)
}

/// Whether level 0 is near its stop.
pub(crate) fn l0_near_stop_trigger(version: &Version, policy: &Policy) -> bool {
    let slow = f64::from(policy.level0_slowdown_writes_trigger);
    let near = near_stop(slow, f64::from(policy.level0_stop_writes_trigger));
    version.level(Level::L0).len() as f64 >= near.floor()
}

/// Whether tables come to level 0 so fast that more of them should go down together. Not so where
/// they are about to slow writers down, and where it is not known when they came.
pub(crate) fn frequent_flushes(version: &Version, policy: &Policy, moment: PickContext) -> bool {
    let slowdown = f64::from(policy.level0_slowdown_writes_trigger);
    let is_near = slowdown >= 0.0 && version.level(Level::L0).len() as f64 >= slowdown * NEAR;
    !is_near && recent_flush(version, moment)
}

/// Whether a table came to level 0 a moment ago. Not where it is not known when they came.
pub(crate) fn recent_flush(version: &Version, moment: PickContext) -> bool {
    let newest = version.level(Level::L0).files().first();
    let came = newest.map_or(0, |f| f.file_creation_time);
    !moment.draining && came != 0 && (came..came.saturating_add(REST_SECONDS)).contains(&moment.now)
}
