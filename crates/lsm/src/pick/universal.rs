//! Universal compaction: whole sorted runs, merged when they are many or alike.
//!
//! A run is a file of level 0 or a whole deeper level, newest first. In this order: runs that are
//! due for rewriting, space amplification, runs of similar size, too many runs, marked files, files
//! that reads search in vain. Only neighbouring runs are merged, and the result lies just above the
//! next older run. Two things take less than whole runs: files of the last two kinds, which go down
//! as in a leveled tree, and slices (`slice`) of the oldest two levels. What all plans may occupy
//! together is bounded by `space`. While writers are held back, runs that are alike or too many are
//! merged many at a time (`docs/decisions/0010-universal-under-pressure.md`).

mod slice;
mod space;

use super::inputs::{
    Context, ExpandDirection, bytes, clean_cut, disjoint, level0_closure, same_run,
};
use super::{CompactionStopStyle, Policy};
use crate::blob_groups::extra_groups;
use crate::file::FileMeta;
use crate::overload::GATHERED_MOST;
use crate::plan::{Busy, CompactionReason, LevelInputs, Plan, PlanKind};
use crate::version::Version;
use esker_format::Level;
use slice::Slice;
use space::Space;
pub use space::space_bound;
use std::ops::Range;
use std::sync::Arc;

struct Run<'a> {
    level: Level,
    files: &'a [Arc<FileMeta>],
    bytes: u64,
    compensated: u64,
    busy: bool,
}

fn sum(runs: &[Run<'_>]) -> u64 {
    runs.iter().fold(0u64, |n, r| n.saturating_add(r.bytes))
}

/// How few runs a merge may take because they are alike or too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    /// As few as the options allow.
    Least,
    /// As many as gather while writers are held back.
    MinRuns,
}

/// Reasons for plans, the most urgent first.
const REASONS: [(CompactionReason, Width); 8] = [
    (CompactionReason::PeriodicCompaction, Width::Least),
    (CompactionReason::UniversalSizeAmplification, Width::Least),
    (CompactionReason::UniversalSizeRatio, Width::MinRuns),
    (CompactionReason::UniversalSortedRunNum, Width::MinRuns),
    (CompactionReason::UniversalSizeRatio, Width::Least),
    (CompactionReason::UniversalSortedRunNum, Width::Least),
    (CompactionReason::FilesMarkedForCompaction, Width::Least),
    (CompactionReason::ReadTriggered, Width::Least),
];

/// The next compaction of a universal tree.
pub(super) fn pick(cx: &Context<'_>) -> Option<Plan> {
    let runs = runs(cx);
    let space = Space::of(cx);
    let mut too_large = None;
    for (reason, width) in REASONS {
        let Some(plan) = cx.wanted(reason, width, &runs) else {
            continue;
        };
        if space.takes(&plan) {
            return Some(plan);
        }
        too_large.get_or_insert(plan);
    }
    cx.smaller(&runs, too_large?, &space)
}

/// The widest merge of the newest runs that reads have paid for.
pub(super) fn pick_for_reads(cx: &Context<'_>) -> Option<Plan> {
    let runs = runs(cx);
    let extra = (runs.len() + extra_groups(cx.version)).checked_sub(1)?;
    let paid = |count: &usize| cx.is_paid(count - 1, extra, sum(&runs[..*count]));
    let count = (2..=runs.len()).rev().find(paid)?;
    let plan = cx.merge_runs(&runs, 0..count, CompactionReason::ReadTriggered)?;
    Space::of(cx).takes(&plan).then_some(plan)
}

/// The run of level 0 that a table is of, again into its place.
pub(super) fn rewrite_run(
    cx: &Context<'_>,
    f: &FileMeta,
    reason: CompactionReason,
) -> Option<Plan> {
    let runs = runs(cx);
    let has = |r: &Run<'_>| r.files.iter().any(|one| one.number == f.number);
    let at = runs.iter().position(|r| r.level == Level::L0 && has(r))?;
    let mut plan = cx.merge_runs(&runs, at..at + 1, reason)?;
    plan.kind = PlanKind::Merge;
    Some(plan)
}

/// Runs that wait to be merged, as a share of the trigger; 1 or more asks for a compaction.
pub fn score(version: &Version, policy: &Policy, busy: &Busy) -> f64 {
    let level0 = version
        .level(Level::L0)
        .files()
        .iter()
        .filter(|f| !busy.contains(f.number))
        .count();
    let deeper = version
        .levels()
        .iter()
        .skip(1)
        .filter_map(|l| l.files().first());
    let runs = level0 + deeper.filter(|f| !busy.contains(f.number)).count();
    runs as f64 / f64::from(policy.level0_file_num_compaction_trigger.max(1))
}

fn runs<'a>(cx: &Context<'a>) -> Vec<Run<'a>> {
    let run = |level, files: &'a [Arc<FileMeta>]| Run {
        level,
        files,
        bytes: files.iter().fold(0, |sum, f| sum.saturating_add(f.size)),
        compensated: cx.weights.tables(files),
        busy: cx.busy.any_of(files),
    };
    let level0 = cx.files(Level::L0).chunk_by(|a, b| same_run(a, b));
    let level0 = level0.map(|files| run(Level::L0, files));
    let deeper = (1..cx.version.num_levels()).map(|l| Level(l as u8));
    let deeper = deeper
        .map(|l| run(l, cx.files(l)))
        .filter(|r| !r.files.is_empty());
    level0.chain(deeper).collect()
}

impl<'a> Context<'a> {
    /// A plan for `reason`, when the runs give cause.
    fn wanted(&self, reason: CompactionReason, width: Width, runs: &[Run<'a>]) -> Option<Plan> {
        let options = &self.policy.compaction_options_universal;
        let trigger = self.policy.level0_file_num_compaction_trigger.max(1) as usize;
        let full = runs.len() >= trigger;
        match reason {
            CompactionReason::PeriodicCompaction => self.due_runs(runs),
            CompactionReason::FilesMarkedForCompaction => {
                let idle = self.version.files().filter(|(_, f)| !self.is_busy(f));
                let marked = idle.filter(|(_, f)| f.is_marked()).collect();
                self.files_down(marked, runs, reason)
            }
            CompactionReason::ReadTriggered => {
                self.files_down(self.files_read_in_vain(), runs, reason)
            }
            // Too much may be hidden by newer runs before they are many.
            _ if !full && !self.hides_too_much() => None,
            CompactionReason::UniversalSizeAmplification => self.size_amplification(runs),
            CompactionReason::UniversalSizeRatio => {
                let least = self.least_width(width, runs)?;
                self.similar(runs, Some(options.size_ratio), (least, usize::MAX), reason)
            }
            _ => {
                let idle = runs.iter().filter(|r| !r.busy).count();
                let excess = idle.checked_sub(self.most_runs(runs)).filter(|n| *n > 0)?;
                let least = self.least_width(width, runs)?;
                self.similar(runs, None, (least, excess + 1), reason)
            }
        }
    }

    /// How many runs a read may meet before some are merged, whatever their sizes.
    fn most_runs(&self, runs: &[Run<'a>]) -> usize {
        let options = &self.policy.compaction_options_universal;
        let trigger = self.policy.level0_file_num_compaction_trigger.max(1) as usize;
        match usize::try_from(options.max_read_amp) {
            Ok(0) if options.stop_style == CompactionStopStyle::TotalSize => {
                self.runs_of_a_full_tree(runs)
            }
            Ok(0) | Err(_) => trigger,
            Ok(most) => most,
        }
    }

    /// How many runs there are when each, from a memtable's size up, is as large as the size ratio
    /// lets it become beside those before it, and the last as large as the largest run is.
    fn runs_of_a_full_tree(&self, runs: &[Run<'a>]) -> usize {
        let growth = 1.0 + f64::from(self.policy.compaction_options_universal.size_ratio) / 100.0;
        let largest = runs.iter().map(|r| r.bytes).max().unwrap_or(0) as f64;
        let (mut count, mut size) = (1, self.policy.write_buffer_size.max(1) as f64);
        let mut newer = 0.0;
        while size < largest {
            newer += size;
            size = growth * newer;
            count += 1;
        }
        count
    }

    /// The fewest runs that a merge of this width takes; none for one that has to wait.
    fn least_width(&self, width: Width, runs: &[Run<'a>]) -> Option<usize> {
        let options = &self.policy.compaction_options_universal;
        let least = (options.min_merge_width as usize).max(2);
        let gather = self.moment.is_paced();
        match width {
            Width::MinRuns => {
                let most = options.max_merge_width as usize;
                gather.then(|| least.max(self.gathered(runs).min(most)))
            }
            // Once nothing runs, what has gathered is all there is to do.
            Width::Least => (!gather || self.busy.is_empty()).then_some(least),
        }
    }

    /// How many runs gather before they are merged while writers are held back. Such a tree has
    /// more runs than it should whatever is merged, and each entry is written the fewer times the
    /// more runs go together: they gather for half of the way from the trigger to where writers
    /// slow down, and no further than half of the way to where they stop behind the runs that are
    /// being merged.
    fn gathered(&self, runs: &[Run<'a>]) -> usize {
        let trigger = self.policy.level0_file_num_compaction_trigger.max(1) as usize;
        let half_to = |mark: usize, taken: usize| mark.saturating_sub(trigger + taken) / 2;
        let busy = runs.iter().filter(|r| r.busy).count();
        let level0 = self.policy.stall_triggers.level0;
        let slow = half_to(level0.slowdown_count(), 0);
        let stop = half_to(level0.stop_count(), busy);
        slow.min(stop).min(GATHERED_MOST * trigger)
    }

    /// Merges neighbouring runs; the output lies just above the next older one.
    fn merge_runs(
        &self,
        runs: &[Run<'a>],
        range: Range<usize>,
        reason: CompactionReason,
    ) -> Option<Plan> {
        let output = match runs.get(range.end) {
            None => self.last_level(),
            Some(next) => Level(next.level.0.saturating_sub(1)),
        };
        let mut inputs: Vec<LevelInputs> = Vec::new();
        for run in &runs[range.clone()] {
            match inputs.last_mut().filter(|i| i.level == run.level) {
                Some(same) => same.files.extend(run.files.iter().cloned()),
                None => inputs.push(LevelInputs {
                    level: run.level,
                    files: run.files.to_vec(),
                }),
            }
        }
        let expected = match reason {
            _ if !self.policy.has_paths() => 0,
            // All that is newer will be merged into it.
            CompactionReason::UniversalSizeRatio | CompactionReason::UniversalSortedRunNum => {
                sum(&runs[..range.end])
            }
            CompactionReason::FilesMarkedForCompaction => bytes(self.files(output)),
            _ => sum(&runs[range.clone()]),
        };
        let path = self.policy.path_of_run(expected);
        let only_rewrites = inputs.len() == 1 && inputs[0].level == output;
        let mut plan = self.plan_to(inputs, output, path, reason)?;
        self.finish(&mut plan, only_rewrites);
        Some(plan)
    }

    /// Sets what all plans of universal trees have: files move only where the options allow it, and
    /// are cut at the next run's only when slices are to be taken later.
    fn finish(&self, plan: &mut Plan, only_rewrites: bool) {
        let options = &self.policy.compaction_options_universal;
        let files: Vec<_> = plan.inputs.iter().flat_map(|i| &i.files).collect();
        let movable = options.allow_trivial_move
            && self.policy.allow_trivial_move
            && plan.output_level > Level::L0
            && !only_rewrites
            && plan.reason != CompactionReason::PeriodicCompaction
            && files
                .iter()
                .all(|f| self.policy.path_of(f) == plan.output_path);
        plan.kind = if movable && disjoint(self.order(), &files) {
            PlanKind::TrivialMove
        } else {
            PlanKind::Merge
        };
        if self.policy.takes_slices() {
            // A file that meets less than two of the next run's makes slices that are not much
            // larger than itself.
            plan.max_compaction_bytes = self.policy.target_file_size_base / 2 * 3;
        } else {
            plan.max_compaction_bytes = u64::MAX;
            plan.grandparents.clear();
        }
        plan.score = score(self.version, self.policy, self.busy);
    }

    /// The oldest runs, when any file is older than the period.
    fn due_runs(&self, runs: &[Run<'a>]) -> Option<Plan> {
        let (period, now) = (self.policy.periodic_compaction_seconds, self.moment.now);
        let written = |f: &FileMeta| {
            if f.file_creation_time != 0 {
                f.file_creation_time
            } else {
                f.oldest_ancestor_time
            }
        };
        let due = |f: &FileMeta| written(f) != 0 && now > period && written(f) < now - period;
        if period == 0
            || !self
                .version
                .files()
                .any(|(_, f)| due(f) && !self.is_busy(f))
        {
            return None;
        }
        let from = runs.iter().rposition(|r| r.busy).map_or(0, |busy| busy + 1);
        let alone = from + 1 == runs.len() && runs[from].level == self.last_level();
        if from == runs.len() || (alone && !runs[from].files.iter().any(|f| due(f))) {
            return None;
        }
        self.merge_runs(runs, from..runs.len(), CompactionReason::PeriodicCompaction)
    }

    /// Everything, when what lies above the oldest run is too large beside it; with `incremental` a
    /// slice.
    fn size_amplification(&self, runs: &[Run<'a>]) -> Option<Plan> {
        let reason = CompactionReason::UniversalSizeAmplification;
        let options = &self.policy.compaction_options_universal;
        let (base, newer) = runs.split_last()?;
        if base.busy {
            return None;
        }
        let from = newer
            .iter()
            .rposition(|r| r.busy)
            .map_or(0, |busy| busy + 1);
        if !self.is_too_large(&newer[from..], base) {
            return None;
        }
        let from = from + self.left_to_others(&newer[from..], base);
        if options.incremental {
            let newer = compensated(&newer[from..]).max(1) as f64;
            let slice = Slice {
                most_bytes: self.max_compaction_bytes() / 2,
                // A slice may cost this much more than its share of everything would.
                most_fanout: base.bytes as f64 / newer * 1.8,
            };
            if let Some(plan) = self.slice(runs, slice) {
                return Some(plan);
            }
        }
        self.merge_runs(runs, from..runs.len(), reason)
    }

    /// Returns whether `newer` is more than the percentage of `base` that may be wasted.
    fn is_too_large(&self, newer: &[Run<'a>], base: &Run<'a>) -> bool {
        let options = &self.policy.compaction_options_universal;
        let percent = options.max_size_amplification_percent;
        let percent = percent.min(space::percent_that_fits(options).unwrap_or(percent));
        let is_large =
            || u128::from(compensated(newer)) * 100 >= u128::from(percent) * u128::from(base.bytes);
        !newer.is_empty() && (self.hides_too_much() || is_large())
    }

    /// How many of the newest runs of level 0 a merge of `newer` into `base` leaves to merges
    /// beside it: writers stop when many wait while it runs. It must be worth its while without
    /// them, and take nine tenths of what it would.
    fn left_to_others(&self, newer: &[Run<'a>], base: &Run<'a>) -> usize {
        let options = &self.policy.compaction_options_universal;
        let level0 = newer.iter().filter(|r| r.level == Level::L0).count();
        let stop = self.policy.stall_triggers.level0.stop_count();
        // Runs that may still come before writers stop.
        let room = stop.saturating_sub(newer.len() + 1);
        let most = level0
            .saturating_sub(1)
            .min(newer.len().saturating_sub(1))
            .min((options.max_merge_width as usize).saturating_sub(room));
        let least = (options.min_merge_width as usize)
            .saturating_sub(room)
            .min(most);
        let enough = compensated(newer) / 10 * 9;
        let fits = |left: usize| {
            let rest = &newer[left..];
            self.is_too_large(rest, base) && compensated(rest) >= enough
        };
        let left = (least..=most).take_while(|left| fits(*left)).last();
        left.unwrap_or(0)
    }

    /// The newest span of idle runs in which each is at most `ratio` percent larger than those
    /// before it (or of any size, when `None`).
    fn similar(
        &self,
        runs: &[Run<'a>],
        ratio: Option<u32>,
        (least, most): (usize, usize),
        reason: CompactionReason,
    ) -> Option<Plan> {
        let options = &self.policy.compaction_options_universal;
        let most = most.min(options.max_merge_width as usize);
        let grown = |size: u64| ratio.map(|r| u128::from(size) * (100 + u128::from(r)) / 100);
        (0..runs.len()).find_map(|from| {
            if runs[from].busy {
                return None;
            }
            let mut size = runs[from].compensated;
            let mut to = from + 1;
            while let Some(next) = runs.get(to).filter(|next| !next.busy && to - from < most) {
                if grown(size).is_some_and(|grown| grown < u128::from(next.bytes)) {
                    break;
                }
                if options.stop_style == CompactionStopStyle::SimilarSize {
                    if grown(next.bytes).is_some_and(|grown| grown < u128::from(size)) {
                        break;
                    }
                    size = next.compensated;
                } else {
                    size = size.saturating_add(next.compensated);
                }
                to += 1;
            }
            if to - from < least {
                return None;
            }
            let mut plan = self.merge_runs(runs, from..to, reason)?;
            plan.uncompressed = self.stays_uncompressed(runs, &runs[to..]);
            Some(plan)
        })
    }

    /// Returns whether what lies below a merge, `older`, is as much of the data as has to be
    /// compressed.
    fn stays_uncompressed(&self, runs: &[Run<'a>], older: &[Run<'a>]) -> bool {
        let percent = self
            .policy
            .compaction_options_universal
            .compression_size_percent;
        u64::try_from(percent).is_ok_and(|percent| {
            let all = u128::from(compensated(runs)) * u128::from(percent);
            !older.is_empty() && u128::from(sum(older)) * 100 >= all
        })
    }

    /// One of `files` with what it meets at the next level that has files. Where level 0 is the
    /// only level, the newest of them and all that is older.
    fn files_down(
        &self,
        files: Vec<(Level, &Arc<FileMeta>)>,
        runs: &[Run<'a>],
        reason: CompactionReason,
    ) -> Option<Plan> {
        if self.version.num_levels() == 1 {
            let is_one = |f: &Arc<FileMeta>| files.iter().any(|(_, one)| Arc::ptr_eq(one, f));
            let marked = |r: &Run<'_>| !r.busy && r.files.iter().any(is_one);
            let (_, newer) = runs.split_last()?;
            let from = newer.iter().position(marked)?;
            let idle = runs[from..].iter().take_while(|r| !r.busy).count();
            let range = (idle > 1).then_some(from..from + idle)?;
            return self.merge_runs(runs, range, reason);
        }
        let mut files = files.into_iter();
        files.find_map(|(level, f)| self.file_down(level, f, reason))
    }

    fn file_down(&self, level: Level, f: &FileMeta, reason: CompactionReason) -> Option<Plan> {
        let below = (level.index() + 1..self.version.num_levels()).map(|l| Level(l as u8));
        let output = match below.into_iter().find(|l| !self.files(*l).is_empty()) {
            Some(output) => output,
            None if level == Level::L0 => self.last_level(),
            // Nothing older is there that its deletions could free.
            None => return None,
        };
        let files = if level == Level::L0 {
            if self.busy.takes_level0() {
                return None;
            }
            level0_closure(self.version, &f.smallest, &f.largest)
        } else {
            let at = self.version.level(level).position(f.number)?;
            let range = clean_cut(self.order(), self.files(level), at..at + 1);
            self.files(level)[range].to_vec()
        };
        let start = LevelInputs { level, files };
        let mut plan = self.merge_down(start, output, reason, ExpandDirection::BothWays)?;
        plan.output_path = self.policy.path_of_run(bytes(self.files(output)));
        self.finish(&mut plan, false);
        Some(plan)
    }
}

fn compensated(runs: &[Run<'_>]) -> u64 {
    runs.iter()
        .fold(0u64, |sum, r| sum.saturating_add(r.compensated))
}
