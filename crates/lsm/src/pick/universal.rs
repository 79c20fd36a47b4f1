//! Universal compaction: whole sorted runs, merged when they are many or alike.
//!
//! A run is a file of level 0 or a whole deeper level, newest first. In this order: runs that are due
//! for rewriting, space amplification, runs of similar size, too many runs, marked files. Only
//! neighbouring runs are merged, and the result lies just above the next older run.

use super::inputs::{Context, bytes, disjoint};
use super::{Moment, Policy};
use crate::file::FileMeta;
use crate::plan::{Busy, CompactionReason, LevelInputs, Plan, PlanKind};
use crate::score::targets;
use crate::version::Version;
use esker_format::Level;
use std::ops::Range;
use std::sync::Arc;

struct Run<'a> {
    level: Level,
    files: &'a [Arc<FileMeta>],
    bytes: u64,
    compensated: u64,
    busy: bool,
}

/// The next compaction of a universal tree.
pub fn pick(version: &Version, policy: &Policy, busy: &Busy, moment: Moment) -> Option<Plan> {
    let targets = targets(version, policy);
    let cx = Context {
        version,
        policy,
        busy,
        moment,
        targets: &targets,
    };
    let runs = runs(&cx);
    let trigger = policy.level0_file_num_compaction_trigger.max(1) as usize;
    let full = runs.len() >= trigger;
    let options = &policy.compaction_options_universal;
    let too_many = || {
        let idle = runs.iter().filter(|r| !r.busy).count();
        let most = idle.checked_sub(trigger).filter(|most| *most > 0)? + 1;
        cx.similar(&runs, None, most, CompactionReason::UniversalSortedRunNum)
    };
    cx.due_runs(&runs)
        .or_else(|| full.then(|| cx.size_amplification(&runs)).flatten())
        .or_else(|| {
            let ratio = Some(options.size_ratio);
            full.then(|| {
                cx.similar(
                    &runs,
                    ratio,
                    usize::MAX,
                    CompactionReason::UniversalSizeRatio,
                )
            })
            .flatten()
        })
        .or_else(|| full.then(too_many).flatten())
        .or_else(|| cx.marked_runs(&runs))
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
        compensated: files
            .iter()
            .fold(0, |sum, f| sum.saturating_add(f.compensated_size())),
        busy: cx.busy.any_of(files),
    };
    let level0 = cx.files(Level::L0).chunks(1).map(|f| run(Level::L0, f));
    let deeper = (1..cx.version.num_levels()).map(|l| Level(l as u8));
    let deeper = deeper
        .map(|l| run(l, cx.files(l)))
        .filter(|r| !r.files.is_empty());
    level0.chain(deeper).collect()
}

impl<'a> Context<'a> {
    fn last_level(&self) -> Level {
        Level((self.version.num_levels() - 1) as u8)
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
        let sum = |runs: &[Run<'a>]| runs.iter().fold(0u64, |n, r| n.saturating_add(r.bytes));
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
        let files: Vec<_> = plan.inputs.iter().flat_map(|i| &i.files).collect();
        let movable = self.policy.compaction_options_universal.allow_trivial_move
            && self.policy.allow_trivial_move
            && output > Level::L0
            && !only_rewrites
            && reason != CompactionReason::PeriodicCompaction
            && files.iter().all(|f| self.policy.path_of(f) == path);
        plan.kind = if movable && disjoint(self.order(), &files) {
            PlanKind::TrivialMove
        } else {
            PlanKind::Merge
        };
        Some(plan)
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

    /// Everything, when what lies above the oldest run is too large beside it.
    fn size_amplification(&self, runs: &[Run<'a>]) -> Option<Plan> {
        let (base, newer) = runs.split_last()?;
        if base.busy {
            return None;
        }
        let from = newer
            .iter()
            .rposition(|r| r.busy)
            .map_or(0, |busy| busy + 1);
        let above = newer[from..]
            .iter()
            .fold(0u64, |sum, r| sum.saturating_add(r.compensated));
        let percent = u128::from(
            self.policy
                .compaction_options_universal
                .max_size_amplification_percent,
        );
        if from == newer.len() || u128::from(above) * 100 < percent * u128::from(base.bytes) {
            return None;
        }
        self.merge_runs(
            runs,
            from..runs.len(),
            CompactionReason::UniversalSizeAmplification,
        )
    }

    /// The newest span of idle runs in which each is at most `ratio` percent larger than those before it
    /// (or of any size, when `None`).
    fn similar(
        &self,
        runs: &[Run<'a>],
        ratio: Option<u32>,
        most: usize,
        reason: CompactionReason,
    ) -> Option<Plan> {
        let options = &self.policy.compaction_options_universal;
        let most = most.min(options.max_merge_width as usize);
        let least = (options.min_merge_width as usize).max(2);
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
                if options.stop_style_similar_size {
                    if grown(next.bytes).is_some_and(|grown| grown < u128::from(size)) {
                        break;
                    }
                    size = next.compensated;
                } else {
                    size = size.saturating_add(next.compensated);
                }
                to += 1;
            }
            (to - from >= least)
                .then(|| self.merge_runs(runs, from..to, reason))
                .flatten()
        })
    }

    /// From the run of a marked file to the next older one.
    fn marked_runs(&self, runs: &[Run<'a>]) -> Option<Plan> {
        let marked = |r: &Run<'_>| !r.busy && r.files.iter().any(|f| f.is_marked());
        runs.iter()
            .enumerate()
            .filter(|(_, r)| marked(r))
            .find_map(|(from, run)| {
                let to = from + 2;
                if runs.get(from + 1).is_none_or(|next| next.busy) || run.level == self.last_level()
                {
                    return None;
                }
                self.merge_runs(runs, from..to, CompactionReason::FilesMarkedForCompaction)
            })
    }
}
