//! Leveled compaction: which level, which file of it, and what goes along.
//!
//! Levels by score; level 0 into the base level with everything that overlaps, or within itself
//! when the way down is blocked or too costly; a merge goes on through levels that hold too much
//! ([`super`], `tiered`, where runs lie above the base); then marked files, old bottommost files,
//! expired files. Where the first choice meets a running plan the next one is tried.

use super::inputs::{Context, ExpandDirection, bytes, clean_cut, level0_closure, whole_epochs};
use super::{CompactionPri, Policy};
use crate::file::{FileMeta, compare_boundary};
use crate::load::Zone;
use crate::overload::MIN_FILES_FOR_INTRA_L0;
use crate::plan::{CompactionReason, LevelInputs, Plan, PlanKind, hull};
use crate::score::{ALWAYS_MET, base_over_target, max_output_file_size, scores_at, targets};
use crate::version::Version;
use crate::writers::level0_zone;
use esker_format::{InternalKey, Level};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

/// The most that a merge may meet in the next level and still go on into it, as a part of what it
/// would meet there on average. Forecasts of trees that keep up write a tenth less with parts of
/// 0.6 and 0.7, and only half of that less with 0.5 and 0.9.
const LITTLE_MET: f64 = 0.7;
/// More files are not moved at once.
const MAX_MULTI_TRIVIAL_MOVE: usize = 4;

/// The next compaction of a leveled tree.
pub(super) fn pick(cx: &Context<'_>) -> Option<Plan> {
    if cx.version.num_levels() < 2 {
        return None;
    }
    let targets = cx.targets;
    let weights = cx.weights;
    let scores = scores_at(cx.version, cx.policy, targets, cx.busy, weights, cx.moment);
    if let Some(top) = cx.uppermost_run() {
        let plan = cx.pick_tiered(top, scores.of(Level::L0));
        return plan.or_else(|| cx.pick_marked());
    }
    if let Some(plan) = cx.l0_first() {
        return Some(plan);
    }
    let mut level0_waits = false;
    for &(level, score) in scores.by_need.iter().take_while(|(_, score)| *score >= 1.0) {
        // While level 0 waits for the base level, the base level starts nothing of its own.
        if level0_waits && level == targets.base_level {
            continue;
        }
        let plan = if level == Level::L0 {
            cx.pick_level0()
        } else {
            cx.pick_level(level)
        };
        if let Some(plan) = plan {
            let mut plan = cx.extend_multilevel(plan);
            plan.score = score;
            return Some(plan);
        }
        level0_waits |= level == Level::L0;
    }
    cx.pick_marked()
}

/// Where level 0 goes: see [`crate::score::targets`].
pub fn base_level(version: &Version, policy: &Policy) -> Level {
    targets(version, policy).base_level
}

impl Context<'_> {
    fn pick_level0(&self) -> Option<Plan> {
        let base = self.targets.base_level;
        if self.busy.takes_level0() {
            let merged = self.size_based_intra_l0();
            return merged.or_else(|| self.intra_l0(self.intra_l0_threshold_beside_merge()));
        }
        let reason = CompactionReason::LevelL0FilesNum;
        let moved = self
            .level0_move(base)
            .and_then(|start| self.plan(vec![start], base, reason));
        // Files below the moved range would be too costly to meet: merge after all.
        if let Some(plan) = moved.filter(|p| p.kind == PlanKind::TrivialMove) {
            return Some(plan);
        }
        if let Some(plan) = self.size_based_intra_l0() {
            return Some(plan);
        }
        let down = self.by_priority(Level::L0).into_iter().find_map(|i| {
            let first = &self.files(Level::L0)[i];
            self.level0_down(first, base, reason)
        });
        down.or_else(|| self.intra_l0(self.intra_l0_threshold()))
    }

    /// A level 0 file with all that overlaps it, into the base level.
    pub(super) fn level0_down(
        &self,
        first: &FileMeta,
        base: Level,
        reason: CompactionReason,
    ) -> Option<Plan> {
        if self.busy.takes_level0() {
            return None;
        }
        let files = level0_closure(self.version, &first.smallest, &first.largest);
        let start = LevelInputs {
            level: Level::L0,
            files,
        };
        self.merge_down(start, base, reason, ExpandDirection::BothWays)
    }

    /// The oldest level 0 files that meet neither each other nor the output level. When the output
    /// level is empty, only if those are all files: else one file would slip down at a time.
    fn level0_move(&self, output: Level) -> Option<LevelInputs> {
        let order = self.order();
        let all = self.files(Level::L0);
        let mut hull: Option<(&InternalKey, &InternalKey)> = None;
        let mut files: Vec<Arc<FileMeta>> = Vec::new();
        for f in all.iter().rev() {
            let (lo, hi) = match hull {
                None => (&f.smallest, &f.largest),
                Some((lo, hi))
                    if compare_boundary(order, f.largest.as_bytes(), lo.as_bytes()).is_lt() =>
                {
                    (&f.smallest, hi)
                }
                Some((lo, hi))
                    if compare_boundary(order, f.smallest.as_bytes(), hi.as_bytes()).is_gt() =>
                {
                    (lo, &f.largest)
                }
                Some(_) => break,
            };
            if !self.overlapping(output, lo, hi).is_empty() || self.is_busy(f) {
                break;
            }
            hull = Some((lo, hi));
            files.push(f.clone());
        }
        if files.is_empty() || (self.files(output).is_empty() && files.len() < all.len()) {
            return None;
        }
        files.reverse();
        Some(LevelInputs {
            level: Level::L0,
            files,
        })
    }

    /// Merges level 0 in itself while it is small beside the base level.
    fn size_based_intra_l0(&self) -> Option<Plan> {
        let files = self.files(Level::L0);
        let min_files = 2.max(self.policy.level0_file_num_compaction_trigger as usize);
        if files.len() < min_files {
            return None;
        }
        let level0 = self.weights.tables(files);
        let factor = self.policy.max_bytes_for_level_multiplier.max(10.0) * 2.0;
        if self.version.level(self.targets.base_level).bytes() as f64 <= level0 as f64 * factor {
            return None;
        }
        let count = files.iter().take_while(|f| !self.is_busy(f)).count();
        if count < min_files {
            return None;
        }
        self.within_level0(count)
    }

    /// Files of level 0 that are too many to wait for a way down.
    fn intra_l0_threshold(&self) -> usize {
        self.policy.level0_file_num_compaction_trigger as usize + 2
    }

    /// Files of level 0 that are too many to wait for the merge of it that runs. With sizes by cost
    /// those that are about to slow writers down: merging writes them once more, which is worth it
    /// where compactions cannot keep up. Then larger batches meet the base, and forecasts of such a
    /// tree write a third less than where level 0 waits.
    pub(super) fn intra_l0_threshold_beside_merge(&self) -> usize {
        if self.is_shaped_by_cost() {
            let slow = self.policy.stall_triggers.level0.slowdown_count();
            slow.max(self.intra_l0_threshold())
        } else {
            self.intra_l0_threshold()
        }
    }

    /// Returns the plan that comes before anything else when level 0 is about to slow writers down
    /// and cannot go down now. Where level 0 waits for an overgrown base, the base gives tables
    /// away; where neither can, level 0 merges in itself, which takes a fraction of a second, while
    /// the way down may be blocked for many. Level 0 does so too where the merge down would begin
    /// with little room for what comes until it ends.
    fn l0_first(&self) -> Option<Plan> {
        let threshold = self.intra_l0_threshold_beside_merge();
        if !self.is_shaped_by_cost() || self.files(Level::L0).len() < threshold {
            return None;
        }
        let base = self.targets.base_level;
        if self.busy.takes_level0()
            || self.busy.any_of(self.files(base))
            || level0_zone(self.version, self.policy) >= Zone::Critical
        {
            return self.intra_l0(threshold);
        }
        if !base_over_target(self.version, self.targets) {
            return None;
        }
        let given = self
            .pick_level(base)
            .map(|plan| self.extend_multilevel(plan));
        given.or_else(|| self.intra_l0(threshold))
    }

    /// Merges the newest level 0 files while the way down is blocked, when there are enough.
    pub(super) fn intra_l0(&self, threshold: usize) -> Option<Plan> {
        if self.files(Level::L0).len() < threshold {
            return None;
        }
        self.newest_of_level0(MIN_FILES_FOR_INTRA_L0)
    }

    /// Merges the newest level 0 files where there are enough that are worth it.
    pub(super) fn newest_of_level0(&self, least: usize) -> Option<Plan> {
        self.within_level0(cheap_span(self, least, u64::MAX)?)
    }

    fn within_level0(&self, count: usize) -> Option<Plan> {
        let files = self.files(Level::L0)[whole_epochs(self.files(Level::L0), 0..count)].to_vec();
        let inputs = vec![LevelInputs {
            level: Level::L0,
            files,
        }];
        self.plan(inputs, Level::L0, CompactionReason::LevelL0FilesNum)
    }

    /// The best file of a sorted level whose way down is free.
    fn pick_level(&self, level: Level) -> Option<Plan> {
        let output = Level(level.0 + 1);
        let reason = CompactionReason::LevelMaxLevelSize;
        if self.policy.compaction_pri == CompactionPri::RoundRobin {
            return self.round_robin(level, reason);
        }
        self.by_priority(level).into_iter().find_map(|i| {
            let range = clean_cut(self.order(), self.files(level), i..i + 1);
            self.sorted_down(level, range, output, reason)
        })
    }

    /// Files `range` of a sorted level, one level down.
    pub(super) fn sorted_down(
        &self,
        level: Level,
        range: Range<usize>,
        output: Level,
        reason: CompactionReason,
    ) -> Option<Plan> {
        let files = &self.files(level)[range.clone()];
        let (lo, hi) = hull(self.order(), files)?;
        if self.busy.any_of(files) || self.busy.writes_into(self.order(), output, lo, hi) {
            return None;
        }
        let range = if self.overlapping(output, lo, hi).is_empty() {
            self.extend_move(level, range, output, true)
        } else {
            range
        };
        let start = LevelInputs {
            level,
            files: self.files(level)[range].to_vec(),
        };
        self.merge_down(start, output, reason, ExpandDirection::BothWays)
    }

    /// A merge into a level that holds too much goes on into the next one where it would meet
    /// little there: what it brings would be written once more soon, and with less luck. So slices
    /// of several levels go down at once.
    fn extend_multilevel(&self, mut plan: Plan) -> Plan {
        while let Some(deeper) = self.extend_by_one_level(&plan) {
            plan = Plan {
                cursor: plan.cursor,
                ..deeper
            };
        }
        plan
    }

    fn extend_by_one_level(&self, plan: &Plan) -> Option<Plan> {
        let (level, below) = (plan.output_level, Level(plan.output_level.0 + 1));
        if !self.is_shaped_by_cost()
            || plan.kind != PlanKind::Merge
            || level == Level::L0
            || below.index() >= self.version.num_levels()
        {
            return None;
        }
        let held = self.version.level(level).bytes();
        if held <= self.targets.of(level) {
            return None;
        }
        let (lo, hi) = plan.range(self.order())?;
        let files = self.files(below)[self.overlapping(below, lo, hi)].to_vec();
        let (own, met) = (plan.input_bytes(), bytes(&files));
        let usual = self.version.level(below).bytes() as f64 / held as f64;
        if files.is_empty()
            || met as f64 > own as f64 * (usual * LITTLE_MET).max(ALWAYS_MET)
            || own.saturating_add(met) > self.most_to_go_on()
        {
            return None;
        }
        let mut inputs = plan.inputs.clone();
        inputs.push(LevelInputs {
            level: below,
            files,
        });
        self.plan(inputs, below, plan.reason)
    }

    /// Bytes of a merge that goes on. Beside one of level 0, which takes seconds, it has to end
    /// before level 0 is crowded: only then can that merge in itself.
    fn most_to_go_on(&self) -> u64 {
        if self.busy.takes_level0() {
            self.max_compaction_bytes() / 2
        } else {
            self.max_compaction_bytes()
        }
    }

    /// More neighbours that can move along with one file that meets nothing below.
    fn extend_move(
        &self,
        level: Level,
        range: Range<usize>,
        output: Level,
        leftwards: bool,
    ) -> Range<usize> {
        let files = self.files(level);
        if range.len() != 1 || !self.policy.allow_trivial_move || self.policy.has_paths() {
            return range;
        }
        let fits = |r: &Range<usize>, new: usize| {
            let (lo, hi) = (&files[r.start].smallest, &files[r.end - 1].largest);
            !self.is_busy(&files[new])
                && clean_cut(self.order(), files, r.clone()) == *r
                && self.overlapping(output, lo, hi).is_empty()
                && bytes(&files[r.clone()]) <= self.max_compaction_bytes()
        };
        let mut out = range;
        while out.len() < MAX_MULTI_TRIVIAL_MOVE
            && out.end < files.len()
            && fits(&(out.start..out.end + 1), out.end)
        {
            out.end += 1;
        }
        while leftwards
            && out.len() < MAX_MULTI_TRIVIAL_MOVE
            && out.start > 0
            && fits(&(out.start - 1..out.end), out.start - 1)
        {
            out.start -= 1;
        }
        out
    }

    /// The file after the cursor, and more to its right as long as the level is over its target.
    fn round_robin(&self, level: Level, reason: CompactionReason) -> Option<Plan> {
        let output = Level(level.0 + 1);
        let files = self.files(level);
        let first = *self.by_priority(level).first()?;
        let mut range = clean_cut(self.order(), files, first..first + 1);
        let (lo, hi) = hull(self.order(), &files[range.clone()])?;
        if self.overlapping(output, lo, hi).is_empty() {
            range = self.extend_move(level, range, output, false);
        }
        let idle = files
            .iter()
            .filter(|f| !self.is_busy(f))
            .fold(0u64, |sum, f| sum.saturating_add(f.size));
        let wanted = idle.saturating_sub(self.targets.of(level));
        let fits = |r: Range<usize>| {
            let (lo, hi) = hull(self.order(), &files[r.clone()])?;
            let below = &self.files(output)[self.overlapping(output, lo, hi)];
            let total = bytes(&files[r.clone()]).saturating_add(bytes(below));
            let free = !self.busy.any_of(&files[r]) && !self.busy.any_of(below);
            (free && !below.is_empty() && total <= self.max_compaction_bytes()).then_some(())
        };
        while range.end < files.len() && bytes(&files[range.clone()]) < wanted {
            let wider = clean_cut(self.order(), files, range.start..range.end + 1);
            if fits(wider.clone()).is_none() {
                break;
            }
            range = wider;
        }
        let start = LevelInputs {
            level,
            files: files[range].to_vec(),
        };
        let mut plan = self.merge_down(start, output, reason, ExpandDirection::Right)?;
        let last = plan.inputs[0].files.last()?.number;
        let next = files
            .iter()
            .skip_while(|f| f.number != last)
            .nth(1)
            .or(files.first())?;
        plan.cursor = Some((level, next.smallest.clone()));
        Some(plan)
    }

    /// The idle files of a level, the best to compact first, as indexes.
    pub(super) fn by_priority(&self, level: Level) -> Vec<usize> {
        let files = self.files(level);
        let mut order: Vec<usize> = (0..files.len())
            .filter(|i| !self.is_busy(&files[*i]))
            .collect();
        match self.policy.compaction_pri {
            CompactionPri::ByCompensatedSize => {
                order.sort_by_key(|i| Reverse(self.weights.table(&files[*i])))
            }
            CompactionPri::OldestLargestSeqFirst => order.sort_by_key(|i| files[*i].largest_seq),
            CompactionPri::OldestSmallestSeqFirst => order.sort_by_key(|i| files[*i].smallest_seq),
            CompactionPri::MinOverlappingRatio => {
                let ratios = self.overlap_ratios(level);
                let by_key = |a: &usize, b: &usize| {
                    self.order().compare_internal(
                        files[*a].smallest.as_bytes(),
                        files[*b].smallest.as_bytes(),
                    )
                };
                order.sort_by(|a, b| {
                    let rank = |i: &usize| (Reverse(files[*i].is_marked()), ratios[*i]);
                    rank(a).cmp(&rank(b)).then_with(|| by_key(a, b))
                });
            }
            CompactionPri::RoundRobin if level == Level::L0 => {
                order.sort_by_key(|i| files[*i].smallest_seq)
            }
            CompactionPri::RoundRobin => {
                let cursor = self.version.compact_cursor(level);
                let from = cursor.map_or(0, |cursor| {
                    files.partition_point(|f| {
                        self.order()
                            .compare_internal(f.smallest.as_bytes(), cursor.as_bytes())
                            .is_lt()
                    })
                });
                // The turn does not skip a file that is taken: it waits for it.
                return (from..files.len()).chain(0..from).collect();
            }
        }
        order
    }

    /// For each file of a level: bytes met below per byte of its own (in 1/1024), less for those
    /// near their time to live.
    fn overlap_ratios(&self, level: Level) -> Vec<u64> {
        let below = if level == Level::L0 {
            self.targets.base_level
        } else {
            Level(level.0 + 1)
        };
        let meets = self.version.level(below);
        let ratio = |f: &Arc<FileMeta>| {
            let range = meets.overlapping(
                self.order(),
                Some(f.smallest.as_bytes()),
                Some(f.largest.as_bytes()),
            );
            let met = u128::from(bytes(&meets.files()[range])) * 1024;
            let own =
                u128::from(self.weights.table(f).max(1)) * u128::from(self.age_boost(level, f));
            u64::try_from(met / own).unwrap_or(u64::MAX)
        };
        self.files(level).iter().map(ratio).collect()
    }

    /// 1 for young files, up to 10 for those close to the time to live.
    fn age_boost(&self, level: Level, f: &FileMeta) -> u64 {
        let (now, ttl) = (self.moment.now, self.policy.ttl);
        if ttl == 0 || now == 0 || level == Level::L0 || f.oldest_ancestor_time == 0 {
            return 1;
        }
        let over_half = now
            .saturating_sub(f.oldest_ancestor_time)
            .saturating_sub(ttl / 2);
        1 + over_half
            .saturating_mul(18)
            .checked_div(ttl)
            .unwrap_or(0)
            .min(9)
    }

    /// Files that something other than size asks to rewrite.
    fn pick_marked(&self) -> Option<Plan> {
        let deepest = self.version.deepest_level()?;
        let idle: Vec<(Level, &Arc<FileMeta>)> = self
            .version
            .files()
            .filter(|(_, f)| !self.is_busy(f))
            .collect();
        let above_last = |(level, _): &&(Level, &Arc<FileMeta>)| *level < deepest;
        let old = |limit: u64, time: u64| {
            time != 0 && self.moment.now > limit && time < self.moment.now - limit
        };

        // A mark asks for what a rewrite would drop. In level 0 it may hide older files of
        // the same level, also where no other level has files.
        let hides = |one: &&(Level, &Arc<FileMeta>)| one.0 == Level::L0 || above_last(one);
        let marked = idle.iter().filter(hides).filter(|(_, f)| f.is_marked());
        let marked = self.first_down(marked, CompactionReason::FilesMarkedForCompaction);
        let bottom = || {
            let mut bottom = idle
                .iter()
                .filter(|(level, f)| self.is_old_bottommost(*level, f));
            bottom.find_map(|(level, f)| self.rewrite(*level, f, CompactionReason::BottommostFiles))
        };
        let expired = || {
            let ttl = self.policy.ttl;
            let expired = idle
                .iter()
                .filter(above_last)
                .filter(|(_, f)| ttl > 0 && old(ttl, f.oldest_ancestor_time));
            self.first_down(expired, CompactionReason::Ttl)
        };
        let periodic = || self.pick_periodic(&idle, deepest, &old);
        let in_vain = || {
            let files = self.files_read_in_vain();
            self.first_down(files.iter(), CompactionReason::ReadTriggered)
        };
        let by_age = || expired().or_else(periodic);
        let of_garbage = || {
            let gc = self.policy.forced_blob_gc.as_ref()?;
            let oldest = self.version.forced_blob_gc(gc)?;
            let mut linked = idle
                .iter()
                .filter(|(_, f)| f.oldest_blob_file == Some(oldest));
            let reason = CompactionReason::ForcedBlobGarbageCollection;
            linked.find_map(|(level, f)| match *level {
                Level::L0 => self.level0_down(f, self.targets.base_level, reason),
                _ => self.rewrite(*level, f, reason),
            })
        };
        let wanted = marked.or_else(bottom).or_else(by_age);
        wanted.or_else(of_garbage).or_else(in_vain)
    }

    fn pick_periodic(
        &self,
        idle: &[(Level, &Arc<FileMeta>)],
        deepest: Level,
        old: &dyn Fn(u64, u64) -> bool,
    ) -> Option<Plan> {
        let period = self.policy.periodic_compaction_seconds;
        let written = |f: &FileMeta| {
            if f.file_creation_time != 0 {
                f.file_creation_time
            } else {
                f.oldest_ancestor_time
            }
        };
        let due = idle
            .iter()
            .filter(|(_, f)| period > 0 && old(period, written(f)));
        let reason = CompactionReason::PeriodicCompaction;
        due.into_iter().find_map(|(level, f)| {
            let down = self.policy.level_compaction_dynamic_level_bytes && *level < deepest;
            if down || *level == Level::L0 {
                self.down(*level, f, reason)
            } else {
                self.rewrite(*level, f, reason)
            }
        })
    }

    fn first_down<'f>(
        &self,
        mut files: impl Iterator<Item = &'f (Level, &'f Arc<FileMeta>)>,
        reason: CompactionReason,
    ) -> Option<Plan> {
        files.find_map(|(level, f)| self.down(*level, f, reason))
    }

    /// One file to the next level, with what must go along.
    fn down(&self, level: Level, f: &FileMeta, reason: CompactionReason) -> Option<Plan> {
        if level == Level::L0 {
            return self.level0_down(f, self.targets.base_level, reason);
        }
        let index = self.version.level(level).position(f.number)?;
        let range = clean_cut(self.order(), self.files(level), index..index + 1);
        let start = LevelInputs {
            level,
            files: self.files(level)[range].to_vec(),
        };
        self.merge_down(start, Level(level.0 + 1), reason, ExpandDirection::BothWays)
    }

    /// One file again into its own level.
    fn rewrite(&self, level: Level, f: &FileMeta, reason: CompactionReason) -> Option<Plan> {
        let index = self.version.level(level).position(f.number)?;
        self.rewrite_range(level, index..index + 1, reason)
    }

    /// Files of a sorted level again into it, with what cannot be cut off from them.
    pub(super) fn rewrite_range(
        &self,
        level: Level,
        range: Range<usize>,
        reason: CompactionReason,
    ) -> Option<Plan> {
        let range = clean_cut(self.order(), self.files(level), range);
        let mut plan = self.plan(
            vec![LevelInputs {
                level,
                files: self.files(level)[range].to_vec(),
            }],
            level,
            reason,
        )?;
        plan.max_output_file_size =
            max_output_file_size(self.policy, level, self.targets.base_level);
        Some(plan)
    }

    /// Returns whether a file with nothing below still carries deletions that no snapshot needs.
    fn is_old_bottommost(&self, level: Level, f: &Arc<FileMeta>) -> bool {
        let useful = f.largest_seq.0 != 0 && f.largest_seq < self.moment.oldest_snapshot;
        // One deletion may be what an earlier rewrite could not drop: two show that there is
        // something.
        let garbage = f.stats.get().is_some_and(|s| s.num_deletions > 1);
        let below = || (level.index() + 1..self.version.num_levels()).map(|l| Level(l as u8));
        level > Level::L0
            && useful
            && garbage
            && below().all(|l| self.overlapping(l, &f.smallest, &f.largest).is_empty())
    }
}

/// How many of the newest level 0 files to merge so that the bytes per file that goes away are
/// fewest.
pub(super) fn cheap_span(
    cx: &Context<'_>,
    min_files: usize,
    max_bytes_per_file: u64,
) -> Option<usize> {
    let files = cx.files(Level::L0);
    if cx.is_busy(files.first()?) {
        return None;
    }
    let (mut total, mut per_file, mut count) = (files[0].size, u64::MAX, 1);
    for f in &files[1..] {
        let grown = total.saturating_add(f.size);
        let cost = grown / count as u64;
        if cx.is_busy(f) || cost > per_file || grown > cx.max_compaction_bytes() {
            break;
        }
        (total, per_file, count) = (grown, cost, count + 1);
    }
    (count >= min_files && per_file < max_bytes_per_file).then_some(count)
}
