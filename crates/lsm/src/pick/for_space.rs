//! Plans for trees with a bound on their space ([`crate::space`]).
//!
//! When room runs short, what wins more goes first: a collection of the blob files with the largest
//! part of garbage, or a merge into the last level, which shows what newer runs hide. A blob file
//! goes when its last value has moved, so tables that refer to the same files follow one another: a
//! file that was begun has more garbage than before, and stays chosen. No plan begins that does not
//! find room for what it writes, unless nothing runs or leaves that could make some while writers
//! wait: then the one that needs least.

use super::CompactionStyle;
use super::inputs::{Context, clean_cut};
use super::universal;
use crate::file::FileMeta;
use crate::load::Zone;
use crate::plan::{CompactionReason, Plan};
use crate::space::{SpaceUse, to_collect};
use crate::writers::level0_zone;
use esker_format::{FileNo, Level};
use std::sync::Arc;

const REASON: CompactionReason = CompactionReason::ForcedBlobGarbageCollection;

/// The next plan of a tree with such a bound; `usual` is that of one without.
pub(super) fn pick(
    cx: &Context<'_>,
    space: &SpaceUse,
    usual: impl Fn() -> Option<Plan>,
) -> Option<Plan> {
    let room = cx.room()?;
    let fits = |plan: &Plan| plan.room_needed() <= room;
    // Universal merges are sliced where they do not fit, and begin or not by themselves.
    let is_sized = cx.policy.compaction_style == CompactionStyle::Universal;
    let is_crowded = level0_zone(cx.version, cx.policy) >= Zone::Slow;
    if is_crowded && let Some(plan) = usual().filter(fits) {
        return Some(plan);
    }
    let relief = cx.for_space(space, room);
    if let Some(plan) = relief.as_ref().filter(|plan| fits(plan)) {
        return Some(plan.clone());
    }
    let usual = usual();
    if let Some(plan) = usual.as_ref().filter(|plan| is_sized || fits(plan)) {
        return Some(plan.clone());
    }
    // What leaves makes room in a moment.
    let is_waiting = cx.busy.is_empty() && cx.moment.beside.leaving == 0;
    let may_pass = is_waiting && (is_crowded || space.is_short(cx.moment.beside));
    let waiting = relief.into_iter().chain(usual).filter(|_| may_pass);
    waiting.min_by_key(Plan::room_needed)
}

impl Context<'_> {
    /// The plan that makes most room.
    fn for_space(&self, space: &SpaceUse, room: u64) -> Option<Plan> {
        let most = room / 2;
        if let Some(plan) = self.merge_into_last_level() {
            return Some(plan);
        }
        if !space.is_short(self.moment.beside) {
            return None;
        }
        self.collect(&to_collect(self.version, most), most)
    }

    /// Merges the level above the last one, or a part of it, into that. Universal trees do so by
    /// themselves.
    fn merge_into_last_level(&self) -> Option<Plan> {
        if self.policy.compaction_style != CompactionStyle::Level || !self.hides_too_much() {
            return None;
        }
        let last = self.version.deepest_level()?;
        let mut above = (0..last.0).rev().map(Level);
        let level = above.find(|l| !self.files(*l).is_empty())?;
        let reason = CompactionReason::LevelMaxLevelSize;
        if level == Level::L0 {
            let oldest = self.files(level).last()?;
            return self.level0_down(oldest, self.targets.base_level, reason);
        }
        self.by_priority(level).into_iter().find_map(|i| {
            let range = clean_cut(self.order(), self.files(level), i..i + 1);
            self.sorted_down(level, range, last, reason)
        })
    }

    /// Values leave these blob files: the deepest tables that refer to one of them, up to `most`
    /// bytes.
    fn collect(&self, blobs: &[FileNo], most: u64) -> Option<Plan> {
        if blobs.is_empty() {
            return None;
        }
        let deepest = self.version.deepest_level()?;
        let mut levels = (0..=deepest.0).rev().map(Level);
        let mut plan = levels.find_map(|level| self.collect_level(level, blobs, most))?;
        plan.moved_bytes = plan.files().map(|(_, f)| moved(f, blobs)).sum();
        plan.collected = blobs.into();
        Some(plan)
    }

    fn collect_level(&self, level: Level, blobs: &[FileNo], most: u64) -> Option<Plan> {
        let files = self.files(level);
        let refers = |f: &Arc<FileMeta>| {
            !self.is_busy(f) && blobs.iter().any(|b| f.blob_share(*b).is_some())
        };
        let mut wanted = (0..files.len()).filter(|i| refers(&files[*i]));
        if level == Level::L0 {
            return wanted.find_map(|i| self.collect_level0(&files[i]));
        }
        let most = most.min(self.max_compaction_bytes());
        let from = wanted.next()?;
        let mut sum = 0u64;
        let fits = |f: &&Arc<FileMeta>| {
            sum = sum.saturating_add(f.size).saturating_add(moved(f, blobs));
            refers(f) && sum <= most
        };
        let count = files[from..].iter().take_while(fits).count().max(1);
        self.rewrite_range(level, from..from + count, REASON)
    }

    fn collect_level0(&self, f: &FileMeta) -> Option<Plan> {
        match self.policy.compaction_style {
            CompactionStyle::Universal => universal::rewrite_run(self, f, REASON),
            _ => self.level0_down(f, self.targets.base_level, REASON),
        }
    }
}

/// Bytes of the values of `f` that leave these blob files.
fn moved(f: &FileMeta, blobs: &[FileNo]) -> u64 {
    blobs.iter().filter_map(|b| f.blob_share(*b)).sum()
}
