//! Stack of runs above the base of an overloaded leveled tree: its room, and the part of it that is
//! taken.
//!
//! Pure functions of a version, its targets and the options. What follows for writers and pickers
//! is the load of the tree ([`crate::load`]).

use crate::overload::{RUN_MEMTABLES, RUN_PART};
use crate::policy::Policy;
use crate::score::Targets;
use crate::version::Version;

/// The most bytes that the stack of a tree with these targets should ever hold; none where no runs
/// lie above the base. Slices begin where the most runs lie on each other, so half of it is usual.
pub(crate) fn room(version: &Version, policy: &Policy, targets: &Targets) -> Option<u64> {
    if !policy.is_shaped_by_cost() {
        return None;
    }
    let lowest = targets.lowest_unnecessary_level?.index();
    let (last, above) = version.levels().split_last()?;
    let runs = above.get(1..=lowest)?;
    if runs.iter().all(|l| l.is_empty()) {
        return None;
    }
    let run = bytes_of_run(policy, last.bytes());
    Some((above.len() as f64 * run) as u64)
}

/// The part of its room that a stack takes, from 0 on.
pub(crate) fn part(version: &Version, room: u64) -> f64 {
    let above = version.levels().split_last().map_or(&[][..], |(_, l)| l);
    let bytes: u64 = above.iter().map(|l| l.bytes()).sum();
    bytes as f64 / room.max(1) as f64
}

/// How large a batch is over a last level of `last` bytes.
pub(crate) fn bytes_of_run(policy: &Policy, last: u64) -> f64 {
    let most = policy.write_buffer_size as f64 * RUN_MEMTABLES;
    (last as f64 * RUN_PART).min(most)
}
