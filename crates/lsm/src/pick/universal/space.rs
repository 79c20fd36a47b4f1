//! A bound for the space that a universal tree takes while it is compacted.
//!
//! A merge needs its outputs beside its inputs until it is installed; one of everything doubles the
//! tree. With `max_peak_size_amplification_percent` all tables, and what running merges may still
//! write ([`Plan::room_needed`]), stay within this many percent above the largest run, which is
//! what is taken to be alive: a run has no key twice. A plan that does not fit is replaced by a
//! smaller one, or waits until running ones are done. When none runs the smallest one does, so that
//! a tree over its bound shrinks; a small tree, in which memtables weigh more than runs, has no
//! bound that matters. While such a merge takes all the room there is, memtables that are flushed
//! beside it are merged all the same, as many as start a merge at a time: what that takes for a
//! moment is little beside the bound, and runs that pile up hold writers back. The room that
//! `max_space_amplification_percent` leaves ([`crate::space`]) holds for plans in the same way.

use super::slice::Slice;
use super::{Run, Width, sum};
use crate::pick::UniversalSettings;
use crate::pick::inputs::Context;
use crate::plan::{CompactionReason, Plan, PlanKind};
use crate::version::Version;
use esker_format::Level;

/// The bytes that a universal tree may take with a bound of this many percent above its largest
/// run: what running merges may still write included. `trigger` runs of a memtable start a merge.
pub fn space_bound(version: &Version, percent: u32, memtable: u64, trigger: u64) -> u64 {
    let tables = version.level(Level::L0).files().iter().map(|f| f.size);
    let below = version.levels().iter().skip(1).map(|l| l.bytes());
    let alive = tables.chain(below).max().unwrap_or(0);
    let extra = u128::from(alive) * u128::from(percent) / 100;
    // As many memtables as start a merge, and their merge.
    let least = memtable.saturating_mul(trigger.max(1) * 2);
    let extra = u64::try_from(extra).unwrap_or(u64::MAX).max(least);
    alive.saturating_add(extra)
}

/// The percentage of the bytes that just find room above the largest run, themselves in percent of
/// that run, at which everything is merged: the rest is for what comes while it is merged.
const FULL_PERCENT: u32 = 60;
/// Where that is less, merges of everything cost as much as slices do.
const FULL_PERCENT_LEAST: u32 = 20;

/// How many percent of the oldest run may lie above it for a merge of everything to find room; none
/// without a bound, nor where such merges would be too many. Once it finds none, what is left are
/// slices, each of which meets several times its size.
pub(super) fn percent_that_fits(options: &UniversalSettings) -> Option<u32> {
    let bound = options.max_peak_size_amplification_percent;
    let fits = u64::from(bound.checked_sub(100)?);
    let percent = u32::try_from(fits * u64::from(FULL_PERCENT) / 100).unwrap_or(u32::MAX);
    (percent >= FULL_PERCENT_LEAST).then_some(percent)
}

/// The space that plans may take.
pub(super) struct Space {
    /// Bytes that new plans may write; `None` without a bound.
    room: Option<u64>,
}

impl Space {
    pub(super) fn of(cx: &Context<'_>) -> Self {
        let policy = cx.policy;
        let options = &policy.compaction_options_universal;
        let percent = options.max_peak_size_amplification_percent;
        let alive = cx.room();
        if percent == 0 {
            return Space { room: alive };
        }
        let trigger = u64::from(policy.level0_file_num_compaction_trigger);
        let bound = space_bound(cx.version, percent, policy.write_buffer_size, trigger);
        let taken = cx.version.bytes().saturating_add(cx.busy.output_bytes());
        let room = bound.saturating_sub(taken);
        Space {
            room: Some(alive.map_or(room, |alive| alive.min(room))),
        }
    }

    /// Returns whether the plan's outputs find room.
    pub(super) fn takes(&self, plan: &Plan) -> bool {
        plan.kind != PlanKind::Merge || self.room.is_none_or(|room| plan.room_needed() <= room)
    }
}

impl<'a> Context<'a> {
    /// Returns the plan to carry out instead of one that finds no room.
    pub(super) fn smaller(&self, runs: &[Run<'a>], too_large: Plan, space: &Space) -> Option<Plan> {
        let slice = Slice {
            most_bytes: space
                .room
                .unwrap_or(u64::MAX)
                .min(self.max_compaction_bytes()),
            ..Slice::LEAST
        };
        let fits = self.slice(runs, slice).or_else(|| self.newer_runs(runs));
        if let Some(plan) = fits.filter(|plan| space.takes(plan)) {
            return Some(plan);
        }
        if !self.busy.is_empty() {
            return self.memtables(runs);
        }
        let least = self.slice(runs, Slice::LEAST);
        let smaller = least.or_else(|| self.newer_runs(runs)).filter(|plan| {
            plan.kind != PlanKind::Merge || plan.input_bytes() < too_large.input_bytes()
        });
        Some(smaller.unwrap_or(too_large))
    }

    /// The newest runs of level 0 that no job merges, as many as start a merge, when they are no
    /// larger than memtables.
    fn memtables(&self, runs: &[Run<'a>]) -> Option<Plan> {
        let trigger = self.policy.level0_file_num_compaction_trigger.max(2) as usize;
        let gathered = self.least_width(Width::MinRuns, runs);
        let width = trigger.max(gathered.unwrap_or(trigger));
        let most = (self.policy.write_buffer_size).saturating_mul(width as u64);
        let idle = |r: &&Run<'_>| r.level == Level::L0 && !r.busy;
        let idle = runs.iter().take_while(idle).count();
        let from = (runs[..idle].windows(width)).position(|span| sum(span) <= most)?;
        self.merge_runs(
            runs,
            from..from + width,
            CompactionReason::UniversalSortedRunNum,
        )
    }

    /// The runs of level 0 into the level above the oldest run, where slices can be taken of them.
    fn newer_runs(&self, runs: &[Run<'a>]) -> Option<Plan> {
        let (oldest, newer) = runs.split_last()?;
        let above = newer.last()?;
        if oldest.level < Level(2) || above.level > Level::L0 || newer.iter().any(|r| r.busy) {
            return None;
        }
        let reason = CompactionReason::UniversalSizeAmplification;
        self.merge_runs(runs, 0..newer.len(), reason)
    }
}
