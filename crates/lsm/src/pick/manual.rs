//! Compactions that the user asks for: a range, level by level, and moving a level.
//!
//! [`steps`] says which levels to go through; the engine carries out each step with [`plan_step`]
//! until it reports [`Step::Done`], installing every plan before it asks again with the version
//! that followed. Other plans begin and end between the steps and while one waits, so a step names
//! no level that depends on the tree: where level 0 goes is decided when it is planned.

use super::inputs::{Context, clean_cut, disjoint, level0_closure};
use super::{CompactionStyle, Policy};
use crate::edit::TreeEdit;
use crate::file::{FileMeta, compare_boundary};
use crate::plan::{Busy, CompactionReason, LevelInputs, Plan, PlanKind, Ticket, hull};
use crate::score::targets;
use crate::version::Version;
use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The rule by which the deepest level of the range is rewritten; RocksDB's
/// `BottommostLevelCompaction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum BottommostLevelCompaction {
    /// No.
    Skip = 0,
    /// If there is a compaction filter.
    #[default]
    IfHaveCompactionFilter = 1,
    /// Yes.
    Force = 2,
    /// Yes, but not the files that this very compaction wrote.
    ForceOptimized = 3,
}

impl BottommostLevelCompaction {
    const ALL: [BottommostLevelCompaction; 4] = [
        BottommostLevelCompaction::Skip,
        BottommostLevelCompaction::IfHaveCompactionFilter,
        BottommostLevelCompaction::Force,
        BottommostLevelCompaction::ForceOptimized,
    ];

    /// RocksDB's number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The value with RocksDB's number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// A range of user keys to compact; `None` is unbounded. Both ends are inclusive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualRange {
    /// The first user key.
    pub begin: Option<Vec<u8>>,
    /// The last user key.
    pub end: Option<Vec<u8>>,
}

/// The files that a step compacts, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// All levels at once into one (universal and FIFO).
    AllLevels(Level),
    /// Level 0 into the base of the version that is planned on.
    Level0ToBase,
    /// A sorted level into the next.
    OneDown(Level),
    /// A sorted level into itself.
    Rewrite(Level),
}

/// One stage of a manual compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManualStep {
    /// The kind of work that it does.
    pub kind: StepKind,
    /// The path that its files are written to.
    pub output_path: u32,
    /// Files with this number or a higher one are left alone: they are this compaction's own.
    pub ignore_files_from: Option<FileNo>,
}

impl ManualStep {
    /// Into the first path, of files with any number.
    pub fn new(kind: StepKind) -> Self {
        ManualStep {
            kind,
            output_path: 0,
            ignore_files_from: None,
        }
    }
}

/// The next action in a step.
#[derive(Clone, Debug)]
pub enum Step {
    /// The step is complete.
    Done,
    /// A running plan is in the way: ask again when one finished.
    Conflict,
    /// Carry out the plan, then go on at `next`; `None` when the plan ends the step.
    Run {
        /// The plan to carry out.
        plan: Box<Plan>,
        /// Where the step goes on.
        next: Option<InternalKey>,
    },
}

/// The stages that compact a range, into the first path. `next_file` is the next file number at
/// this moment.
pub fn steps(
    version: &Version,
    policy: &Policy,
    range: &ManualRange,
    bottommost: BottommostLevelCompaction,
    has_filter: bool,
    next_file: FileNo,
) -> Vec<ManualStep> {
    let last = Level((version.num_levels() - 1) as u8);
    match policy.compaction_style {
        CompactionStyle::Level => {}
        CompactionStyle::Universal => return vec![ManualStep::new(StepKind::AllLevels(last))],
        _ => return vec![ManualStep::new(StepKind::AllLevels(Level::L0))],
    }
    let (lo, hi) = (range.begin.as_deref(), range.end.as_deref());
    let met: Vec<Level> = (0..=last.0)
        .map(Level)
        .filter(|l| version.overlaps_level(*l, lo, hi))
        .collect();
    let (Some(first), Some(deepest)) = (met.first().copied(), met.last().copied()) else {
        return Vec::new();
    };
    // With dynamic levels, plans that run meanwhile may move files further down, and the last level
    // is where all of them end.
    let bottom = if policy.level_compaction_dynamic_level_bytes {
        last
    } else {
        deepest.max(Level(1).min(last))
    };
    let mut out = Vec::new();
    if first == Level::L0 && last > Level::L0 {
        let base = || FileNo(targets(version, policy).base_level.0.into());
        out.push(ManualStep {
            ignore_files_from: seeded(Bug::BaseOfAnotherVersion).then(base),
            ..ManualStep::new(StepKind::Level0ToBase)
        });
    }
    // From level 1 on: the base may move up until level 0 has gone down.
    let sorted = first.0.max(1)..bottom.0;
    out.extend(sorted.map(|l| ManualStep::new(StepKind::OneDown(Level(l)))));
    let rewrite = match bottommost {
        BottommostLevelCompaction::Skip => false,
        BottommostLevelCompaction::IfHaveCompactionFilter => has_filter,
        BottommostLevelCompaction::Force | BottommostLevelCompaction::ForceOptimized => true,
    };
    // What came down may only have been moved, so the level that it came to is rewritten in any
    // case.
    if rewrite {
        let all = bottommost == BottommostLevelCompaction::Force;
        out.push(ManualStep {
            ignore_files_from: (!all).then_some(next_file),
            ..ManualStep::new(StepKind::Rewrite(bottom))
        });
    }
    out
}

/// The next plan of a step; `from` is where the plan before it said to go on.
pub fn plan_step(
    version: &Version,
    policy: &Policy,
    busy: &Busy,
    step: &ManualStep,
    range: &ManualRange,
    from: Option<&InternalKey>,
) -> Step {
    let targets = targets(version, policy);
    let cx = Context::for_user(version, policy, &targets, busy);
    match step.kind {
        StepKind::AllLevels(output) => cx.all_levels(output, step),
        StepKind::Level0ToBase => cx.manual_level0(step, range),
        StepKind::OneDown(level) => cx.manual_level(level, Level(level.0 + 1), step, range, from),
        StepKind::Rewrite(level) => cx.manual_level(level, level, step, range, from),
    }
}

impl Context<'_> {
    fn all_levels(&self, output: Level, step: &ManualStep) -> Step {
        let levels = (0..self.version.num_levels()).map(|l| Level(l as u8));
        let inputs: Vec<_> = levels
            .map(|level| LevelInputs {
                level,
                files: self.files(level).to_vec(),
            })
            .filter(|i| !i.files.is_empty())
            .collect();
        let misplaced = inputs.last().is_some_and(|deepest| deepest.level > output);
        if inputs.is_empty() || misplaced {
            return Step::Done;
        }
        self.manual(inputs, output, step, None)
    }

    fn manual_level0(&self, step: &ManualStep, range: &ManualRange) -> Step {
        let (lo, hi) = (range.begin.as_deref(), range.end.as_deref());
        let met: Vec<_> = self
            .version
            .overlapping_files(Level::L0, lo, hi)
            .cloned()
            .collect();
        let Some((lo, hi)) = hull(self.order(), &met) else {
            return Step::Done;
        };
        if self.busy.takes_level0() {
            return Step::Conflict;
        }
        let files = level0_closure(self.version, lo, hi);
        let listed = step.ignore_files_from;
        let listed = listed.filter(|_| seeded(Bug::BaseOfAnotherVersion));
        let base = self.targets.base_level;
        self.with_output(
            LevelInputs {
                level: Level::L0,
                files,
            },
            listed.map_or(base, |n| Level(n.0 as u8)),
            step,
            None,
        )
    }

    fn manual_level(
        &self,
        level: Level,
        output: Level,
        step: &ManualStep,
        range: &ManualRange,
        from: Option<&InternalKey>,
    ) -> Step {
        let order = self.order();
        let edge = |user: &Vec<u8>, seq, kind| InternalKey::new(user, seq, kind);
        let begin = range
            .begin
            .as_ref()
            .map(|user| edge(user, Seq::MAX, ValueType::SEEK));
        let end = range
            .end
            .as_ref()
            .map(|user| edge(user, Seq::ZERO, ValueType::Deletion));
        let lo = from.or(begin.as_ref()).map(InternalKey::as_bytes);
        let files = self.files(level);
        let mut met = self.version.level(level).overlapping(
            order,
            lo,
            end.as_ref().map(InternalKey::as_bytes),
        );
        let own = |f: &FileMeta| {
            step.ignore_files_from
                .is_some_and(|limit| f.number >= limit)
        };
        met.start += files[met.clone()].iter().take_while(|f| own(f)).count();
        met.end = met.start + files[met.clone()].iter().take_while(|f| !own(f)).count();
        if met.is_empty() {
            return Step::Done;
        }
        let limit = if level == output {
            u64::MAX
        } else {
            self.max_compaction_bytes()
        };
        let mut total = 0u64;
        let fitting = files[met.clone()].iter().take_while(|f| {
            let fits = total == 0 || total < limit;
            total = total.saturating_add(f.size);
            fits
        });
        let count = fitting.count();
        let taken = clean_cut(order, files, met.start..met.start + count);
        // Left of the start may lie what the plan before took along; right of it lies what is next.
        let next = files
            .get(taken.end..met.end.max(taken.end))
            .and_then(<[_]>::first)
            .map(|f| f.smallest.clone());
        self.with_output(
            LevelInputs {
                level,
                files: files[taken].to_vec(),
            },
            output,
            step,
            next,
        )
    }

    fn with_output(
        &self,
        start: LevelInputs,
        output: Level,
        step: &ManualStep,
        next: Option<InternalKey>,
    ) -> Step {
        let mut inputs = Vec::with_capacity(2);
        if let Some((lo, hi)) = hull(self.order(), &start.files)
            && start.level != output
        {
            let files = self.files(output)[self.overlapping(output, lo, hi)].to_vec();
            inputs.push(LevelInputs {
                level: output,
                files,
            });
        }
        inputs.insert(0, start);
        self.manual(inputs, output, step, next)
    }

    fn manual(
        &self,
        inputs: Vec<LevelInputs>,
        output: Level,
        step: &ManualStep,
        next: Option<InternalKey>,
    ) -> Step {
        let reason = CompactionReason::ManualCompaction;
        let Some(mut plan) = self.plan_to(inputs, output, step.output_path, reason) else {
            return Step::Conflict;
        };
        plan.manual = true;
        Step::Run {
            plan: Box::new(plan),
            next,
        }
    }
}

/// A change of levels without a job: tables go to another level as they are.
#[derive(Clone, Debug)]
pub struct Move {
    /// The change of the tree.
    pub edit: TreeEdit,
    /// Where the tables go.
    pub to: Level,
    /// The levels that they pass, both ends included, and the range of keys: nothing else may be
    /// put there until the edit is installed.
    pub passes: (RangeInclusive<Level>, InternalKey, InternalKey),
}

impl Move {
    fn new(order: &KeyOrder, files: &[Arc<FileMeta>], from: Level, to: Level) -> Option<Self> {
        let (lo, hi) = hull(order, files)?;
        Some(Move {
            edit: TreeEdit {
                deleted: files.iter().map(|f| (from, f.number)).collect(),
                added: files.iter().map(|f| (to, f.clone())).collect(),
                ..TreeEdit::default()
            },
            to,
            passes: (from.min(to)..=from.max(to), lo.clone(), hi.clone()),
        })
    }

    /// Marks the tables, and the levels that they pass, as taken.
    pub fn reserve(&self, busy: &mut Busy) -> Ticket {
        let files = self.edit.deleted.iter().map(|(_, n)| *n).collect();
        busy.reserve(files, Some(self.passes.clone()))
    }

    /// The level that they pass into which a running plan puts tables of their range.
    fn met_by(&self, order: &KeyOrder, busy: &Busy) -> Option<Level> {
        if seeded(Bug::MovePastOutputs) {
            return None;
        }
        let (levels, lo, hi) = &self.passes;
        let mut levels = (levels.start().0..=levels.end().0).map(Level);
        levels.find(|level| busy.meets_output(order, *level, lo, hi))
    }
}

/// The move of all files of a level to another, as `change_level` asks; `None` when they are there
/// already.
///
/// The target and the levels between must be empty, no running plan may put tables there, and none
/// may take the files. Only a single file leaves level 0 or goes to it.
pub fn refit_level(version: &Version, busy: &Busy, from: Level, to: Level) -> Result<Option<Move>> {
    if to.index() >= version.num_levels() || from.index() >= version.num_levels() {
        return Err(Error::invalid_argument(format!(
            "level {to} is beyond the last level"
        )));
    }
    let files: &[Arc<FileMeta>] = version.level(from).files();
    if from == to {
        return Ok(None);
    }
    let Some(refit) = Move::new(version.order(), files, from, to) else {
        return Ok(None);
    };
    if busy.any_of(files) {
        return Err(Error::busy(format!(
            "files of level {from} are being compacted"
        )));
    }
    let between = if from < to {
        from.0 + 1..=to.0
    } else {
        to.0..=from.0 - 1
    };
    if let Some(level) = between.map(Level).find(|l| !version.level(*l).is_empty()) {
        let text = format!("cannot move level {from} to {to}: level {level} has files");
        return Err(Error::not_supported(text));
    }
    if from.min(to) == Level::L0 && files.len() > 1 {
        return Err(Error::not_supported(format!(
            "cannot move more than one file from level {from} to {to}"
        )));
    }
    if let Some(level) = refit.met_by(version.order(), busy) {
        let text = format!(
            "cannot move level {from} to {to}: a running compaction puts files into level {level}"
        );
        return Err(Error::not_supported(text));
    }
    Ok(Some(refit))
}

/// The plan that compacts the files `chosen` into `output`, in a path, with every file that must go
/// with them: those on the way down that overlap, and at level 0 those that are older.
///
/// `InvalidArgument` for a file that is not there or lies below `output`; `Aborted` when a running
/// plan is in the way.
pub fn plan_files(
    version: &Version,
    policy: &Policy,
    busy: &Busy,
    chosen: &[FileNo],
    output: Level,
    output_path: u32,
) -> Result<Plan> {
    if output.index() >= version.num_levels() {
        return Err(Error::invalid_argument(format!(
            "Output level for column family must between [0, {}].",
            version.num_levels() - 1
        )));
    }
    let mut by_level: Vec<Vec<Arc<FileMeta>>> = vec![Vec::new(); version.num_levels()];
    for number in chosen {
        let Some((level, file)) = version.find_file(*number) else {
            return Err(Error::invalid_argument(format!(
                "Specified compaction input file {number} does not exist."
            )));
        };
        if level > output {
            return Err(Error::invalid_argument(format!(
                "Cannot compact file to up level, input file: {number} level {level} > output level {output}"
            )));
        }
        by_level[level.index()].push(file.clone());
    }
    let targets = targets(version, policy);
    let cx = Context::for_user(version, policy, &targets, busy);
    let mut inputs: Vec<LevelInputs> = Vec::new();
    for (level, own) in (0..=output.0).map(Level).zip(&by_level) {
        let above = inputs.iter().flat_map(|i| &i.files);
        let Some((lo, hi)) = hull(cx.order(), above.chain(own)) else {
            continue;
        };
        if seeded(Bug::FilesBetweenLeft) && level != output && own.is_empty() {
            continue;
        }
        let files = match level {
            Level::L0 => level0_closure(version, lo, hi),
            _ => cx.files(level)[cx.overlapping(level, lo, hi)].to_vec(),
        };
        inputs.push(LevelInputs { level, files });
    }
    if inputs.is_empty() {
        return Err(Error::invalid_argument(
            "A compaction must contain at least one file.",
        ));
    }
    let plan = cx.plan_to(
        inputs,
        output,
        output_path,
        CompactionReason::ManualCompaction,
    );
    // A running merge within level 0 may span keys that none of its inputs meets, and be older.
    let goes_below_output = |plan: &Plan| {
        plan.start_level() == Level::L0
            && output > Level::L0
            && plan
                .range(cx.order())
                .is_some_and(|(lo, hi)| busy.meets_output(cx.order(), Level::L0, lo, hi))
    };
    let mut plan = plan
        .filter(|plan| !goes_below_output(plan))
        .ok_or_else(|| {
            Error::aborted(
                "Some of the necessary compaction input files are already being compacted",
            )
        })?;
    plan.manual = true;
    Ok(plan)
}

/// The plan that merges all of level 0 in itself; `Aborted` when a running plan is in the way.
pub fn plan_level0(version: &Version, policy: &Policy, busy: &Busy) -> Result<Plan> {
    let targets = targets(version, policy);
    let cx = Context::for_user(version, policy, &targets, busy);
    let inputs = vec![LevelInputs {
        level: Level::L0,
        files: cx.files(Level::L0).to_vec(),
    }];
    let plan = cx.plan(inputs, Level::L0, CompactionReason::LevelL0FilesNum);
    plan.ok_or_else(|| Error::aborted("files of level 0 are being compacted"))
}

/// The files of a sorted level that lie wholly inside the user keys `[begin, end]` (`[begin, end)`
/// unless `include_end`) and can be taken away without older versions of a key coming to light in a
/// neighbour.
pub fn files_within(
    version: &Version,
    level: Level,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
    include_end: bool,
) -> Vec<Arc<FileMeta>> {
    let (order, files) = (version.order(), version.level(level).files());
    let inside = |f: &Arc<FileMeta>| {
        let from = |b| {
            order
                .compare_without_timestamp(f.smallest.user(), b)
                .is_ge()
        };
        let to = |e| match order.compare_without_timestamp(f.largest.user(), e) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => include_end,
            std::cmp::Ordering::Greater => false,
        };
        begin.is_none_or(from) && end.is_none_or(to)
    };
    let touch = |left: usize| {
        let (a, b) = (&files[left].largest, &files[left + 1].smallest);
        compare_boundary(order, a.as_bytes(), b.as_bytes()).is_ge()
    };
    let Some(mut from) = files.iter().position(&inside) else {
        return Vec::new();
    };
    let mut to = from + files[from..].iter().take_while(|f| inside(f)).count();
    while from < to && from > 0 && touch(from - 1) {
        from += 1;
    }
    while to > from && to < files.len() && touch(to - 1) {
        to -= 1;
    }
    files[from..to].to_vec()
}

/// The move of all files of level 0 to `to`; `None` when there are none.
///
/// `InvalidArgument` when they overlap each other, are being compacted, or the levels down to `to`
/// are not empty, or will not be when a running compaction ends.
pub fn promote_level0(version: &Version, busy: &Busy, to: Level) -> Result<Option<Move>> {
    let invalid = |what: &str| Err(Error::invalid_argument(what));
    if to == Level::L0 {
        return invalid("Invalid target level");
    }
    if to.index() >= version.num_levels() {
        return invalid("Target level does not exist");
    }
    let files = version.level(Level::L0).files();
    if busy.any_of(files) {
        return invalid("PromoteL0 called during L0 compaction");
    }
    if !disjoint(version.order(), &files.iter().collect::<Vec<_>>()) {
        return invalid("L0 has overlapping files");
    }
    if (1..=to.0).any(|l| !version.level(Level(l)).is_empty()) {
        return invalid("All levels up to target_level must be empty");
    }
    let promoted = Move::new(version.order(), files, Level::L0, to);
    let is_met = |m: &Move| m.met_by(version.order(), busy).is_some();
    if promoted.as_ref().is_some_and(is_met) {
        return invalid("A running compaction puts files into a level up to target_level");
    }
    Ok(promoted)
}

/// Makes a move a merge: for a manual compaction whose filter must see every entry.
pub fn forbid_move(plan: &mut Plan) {
    if plan.kind == PlanKind::TrivialMove {
        plan.kind = PlanKind::Merge;
    }
}
