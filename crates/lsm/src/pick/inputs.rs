//! Steps that all pickers share: from first files to complete, conflict-free inputs.
//!
//! Rules kept here: files of a sorted level that share a user key at their cut go together (a clean
//! cut); level 0 files that overlap go together; no file is in two plans; no two running plans
//! write into one range of a level.

use super::{CompactionStyle, PickContext, Policy, WriterState};
use crate::blob_groups::{RegroupedValues, regrouped};
use crate::file::{FileMeta, compare_boundary};
use crate::load::Zone;
use crate::plan::{
    Busy, CompactionReason, LevelInputs, Plan, PlanKind, hull, is_bottommost, spanned,
};
use crate::read_demand::ReadDemand;
use crate::score::{Targets, max_compaction_bytes, max_output_file_size};
use crate::space::{PendingSpace, SpaceUse};
use crate::version::Version;
use crate::weight::Weights;
use esker_format::{InternalKey, KeyOrder, Level, Seq};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// The state that a picker looks at.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) version: &'a Version,
    pub(super) policy: &'a Policy,
    pub(super) busy: &'a Busy,
    pub(super) moment: PickContext,
    pub(super) targets: &'a Targets,
    pub(super) weights: Weights,
    /// Space of the tree against its bound, where there is one.
    pub(super) space: Option<SpaceUse>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        version: &'a Version,
        policy: &'a Policy,
        targets: &'a Targets,
        busy: &'a Busy,
        moment: PickContext,
    ) -> Self {
        Context {
            version,
            policy,
            busy,
            moment,
            targets,
            weights: Weights::of(version),
            space: None,
        }
    }

    /// Sets the space of the tree against its bound, as its assessment has it.
    pub(super) fn in_space(self, space: Option<SpaceUse>) -> Self {
        Context { space, ..self }
    }

    /// For what a user asks for: the tree is to be in shape, whatever writers do.
    pub(super) fn for_user(
        version: &'a Version,
        policy: &'a Policy,
        targets: &'a Targets,
        busy: &'a Busy,
    ) -> Self {
        let moment = PickContext {
            now: 0,
            oldest_snapshot: Seq::ZERO,
            draining: true,
            writers: WriterState::Resting,
            paced: Zone::Calm,
            reads: ReadDemand::default(),
            beside: PendingSpace::default(),
        };
        let space = SpaceUse::of(version, policy, targets.base_level);
        Context::new(version, policy, targets, busy, moment).in_space(space)
    }
}

/// Sum of file sizes.
pub(super) fn bytes(files: &[Arc<FileMeta>]) -> u64 {
    files.iter().fold(0, |sum, f| sum.saturating_add(f.size))
}

/// Grows a range of a sorted level's files until no user key is on both sides of a cut.
pub(super) fn clean_cut(
    order: &KeyOrder,
    files: &[Arc<FileMeta>],
    mut range: Range<usize>,
) -> Range<usize> {
    let touch = |left: usize| {
        compare_boundary(
            order,
            files[left].largest.as_bytes(),
            files[left + 1].smallest.as_bytes(),
        )
        .is_ge()
    };
    if range.is_empty() {
        return range;
    }
    while range.start > 0 && touch(range.start - 1) {
        range.start -= 1;
    }
    while range.end < files.len() && touch(range.end - 1) {
        range.end += 1;
    }
    range
}

/// The level 0 files that meet `[lo, hi]`, those that meet one of them, and so on; in level order.
pub(super) fn level0_closure(
    version: &Version,
    lo: &InternalKey,
    hi: &InternalKey,
) -> Vec<Arc<FileMeta>> {
    let order = version.order();
    let files = version.level(Level::L0).files();
    let (mut lo, mut hi) = (lo, hi);
    let mut taken = vec![false; files.len()];
    let mut grew = true;
    while grew {
        grew = false;
        for (f, taken) in files.iter().zip(&mut taken).filter(|(_, taken)| !**taken) {
            let meets = compare_boundary(order, f.smallest.as_bytes(), hi.as_bytes()).is_le()
                && compare_boundary(order, f.largest.as_bytes(), lo.as_bytes()).is_ge();
            if !meets {
                continue;
            }
            (*taken, grew) = (true, true);
            (lo, hi) = spanned(order, (lo, hi), (&f.smallest, &f.largest));
        }
    }
    files
        .iter()
        .zip(taken)
        .filter(|(_, taken)| *taken)
        .map(|(f, _)| f.clone())
        .collect()
}

/// Returns whether two neighbours of level 0 are of one sorted run: what a merge writes has one
/// epoch.
pub(super) fn same_run(a: &FileMeta, b: &FileMeta) -> bool {
    a.epoch == b.epoch && a.epoch != 0
}

/// Grows a range of level 0's files until no run is on both sides of a cut: a merge of a part would
/// give its output the epoch that the rest has.
pub(super) fn whole_epochs(files: &[Arc<FileMeta>], mut range: Range<usize>) -> Range<usize> {
    while range.start > 0 && same_run(&files[range.start - 1], &files[range.start]) {
        range.start -= 1;
    }
    while range.end < files.len() && same_run(&files[range.end - 1], &files[range.end]) {
        range.end += 1;
    }
    range
}

/// Returns whether some files, of any levels, are pairwise disjoint by user key.
pub(super) fn disjoint(order: &KeyOrder, files: &[&Arc<FileMeta>]) -> bool {
    let mut sorted = files.to_vec();
    sorted.sort_by(|a, b| order.compare_internal(a.smallest.as_bytes(), b.smallest.as_bytes()));
    sorted
        .windows(2)
        .all(|w| compare_boundary(order, w[0].largest.as_bytes(), w[1].smallest.as_bytes()).is_lt())
}

impl<'a> Context<'a> {
    pub(super) fn order(&self) -> &'a KeyOrder {
        self.version.order()
    }
    /// Of boundaries of files ([`compare_boundary`]).
    pub(super) fn compare(&self, a: &InternalKey, b: &InternalKey) -> Ordering {
        compare_boundary(self.order(), a.as_bytes(), b.as_bytes())
    }
    pub(super) fn files(&self, level: Level) -> &'a [Arc<FileMeta>] {
        self.version.level(level).files()
    }
    pub(super) fn is_busy(&self, f: &FileMeta) -> bool {
        self.busy.contains(f.number)
    }
    /// There is one at least.
    pub(super) fn last_level(&self) -> Level {
        Level((self.version.num_levels() - 1) as u8)
    }
    pub(super) fn is_shaped_by_cost(&self) -> bool {
        self.policy.is_shaped_by_cost()
    }
    /// The most bytes of one compaction: with a bound on space a quarter of the room that it
    /// leaves, and no less than a few tables.
    pub(super) fn max_compaction_bytes(&self) -> u64 {
        let most = max_compaction_bytes(self.policy);
        let least = self
            .policy
            .target_file_size_base
            .saturating_mul(4)
            .min(most);
        let quarter = |space: SpaceUse| (space.bound - space.live) / 4;
        self.space
            .map_or(most, |space| quarter(space).clamp(least, most))
    }

    /// Returns whether newer runs hide so much that they are to be merged.
    pub(super) fn hides_too_much(&self) -> bool {
        let beside = self.moment.beside;
        self.space.is_some_and(|space| space.hides_too_much(beside))
    }

    /// The clean-cut files of a sorted level that meet `[lo, hi]`.
    pub(super) fn overlapping(
        &self,
        level: Level,
        lo: &InternalKey,
        hi: &InternalKey,
    ) -> Range<usize> {
        let files = self.version.level(level);
        let range = files.overlapping(self.order(), Some(lo.as_bytes()), Some(hi.as_bytes()));
        clean_cut(self.order(), files.files(), range)
    }

    /// Files of a level that go with `files` (overlap closure at level 0, clean cut below).
    fn complete(&self, level: Level, lo: &InternalKey, hi: &InternalKey) -> Vec<Arc<FileMeta>> {
        if level == Level::L0 {
            return level0_closure(self.version, lo, hi);
        }
        self.files(level)[self.overlapping(level, lo, hi)].to_vec()
    }

    /// Completes `start` with the files of the output level, grows it where that is free, and makes
    /// the plan. `None` when it would meet a running plan.
    pub(super) fn merge_down(
        &self,
        start: LevelInputs,
        output_level: Level,
        reason: CompactionReason,
        grow: ExpandDirection,
    ) -> Option<Plan> {
        if start.files.is_empty() || self.busy.any_of(&start.files) {
            return None;
        }
        let mut inputs = vec![start];
        if output_level != inputs[0].level {
            let (lo, hi) = hull(self.order(), &inputs[0].files)?;
            let range = self.overlapping(output_level, lo, hi);
            let output = self.files(output_level)[range].to_vec();
            if self.busy.any_of(&output) {
                return None;
            }
            if !output.is_empty() {
                if let Some(grown) = self.grown(&inputs[0], output_level, &output, grow) {
                    inputs[0].files = grown;
                }
                inputs.push(LevelInputs {
                    level: output_level,
                    files: output,
                });
            }
        }
        self.plan(inputs, output_level, reason)
    }

    /// More files of the start level that cost no more files of the output level.
    fn grown(
        &self,
        start: &LevelInputs,
        output_level: Level,
        output: &[Arc<FileMeta>],
        grow: ExpandDirection,
    ) -> Option<Vec<Arc<FileMeta>>> {
        let order = self.order();
        let (start_lo, _) = hull(order, &start.files)?;
        let (all_lo, all_hi) = hull(order, start.files.iter().chain(output))?;
        let from = match grow {
            ExpandDirection::Right => start_lo,
            ExpandDirection::BothWays => all_lo,
        };
        let limit = self.max_compaction_bytes().saturating_mul(2);
        let worth = |files: &[Arc<FileMeta>]| {
            files.len() > start.files.len()
                && !self.busy.any_of(files)
                && bytes(files).saturating_add(bytes(output)) < limit
        };
        let wide = self.complete(start.level, from, all_hi);
        if worth(&wide) {
            let (lo, hi) = hull(order, &wide)?;
            if self.overlapping(output_level, lo, hi).len() == output.len() {
                return Some(wide);
            }
        }
        if start.level == Level::L0 {
            return None;
        }
        let within = self.within(start.level, from, all_hi);
        let keeps = start
            .files
            .iter()
            .all(|f| within.iter().any(|w| w.number == f.number));
        (keeps && worth(&within)).then_some(within)
    }

    /// The files of a sorted level that lie inside `[lo, hi]` and can be cut off cleanly.
    fn within(&self, level: Level, lo: &InternalKey, hi: &InternalKey) -> Vec<Arc<FileMeta>> {
        let order = self.order();
        let files = self.files(level);
        let inside = |f: &FileMeta| {
            compare_boundary(order, f.smallest.as_bytes(), lo.as_bytes()).is_ge()
                && compare_boundary(order, f.largest.as_bytes(), hi.as_bytes()).is_le()
        };
        let touch = |left: usize| {
            compare_boundary(
                order,
                files[left].largest.as_bytes(),
                files[left + 1].smallest.as_bytes(),
            )
            .is_ge()
        };
        let Some(mut from) = files.iter().position(|f| inside(f)) else {
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

    /// A plan of complete inputs; `None` when it would meet a running plan.
    pub(super) fn plan(
        &self,
        inputs: Vec<LevelInputs>,
        output_level: Level,
        reason: CompactionReason,
    ) -> Option<Plan> {
        let path = match self.policy.compaction_style {
            CompactionStyle::Level if self.policy.has_paths() => {
                self.policy.path_of_level(output_level)
            }
            _ => 0,
        };
        self.plan_to(inputs, output_level, path, reason)
    }

    /// Plans as [`Self::plan`] does, with the path that the plan's files go to.
    pub(super) fn plan_to(
        &self,
        mut inputs: Vec<LevelInputs>,
        output_level: Level,
        output_path: u32,
        reason: CompactionReason,
    ) -> Option<Plan> {
        inputs.retain(|i| !i.files.is_empty());
        let order = self.order();
        let (lo, hi) = hull(order, inputs.iter().flat_map(|i| &i.files))?;
        let passes = (inputs.first()?.level, output_level);
        if inputs.iter().any(|i| self.busy.any_of(&i.files))
            || self.busy.writes_between(order, passes, lo, hi)
            || self.busy.goes_past(order, output_level, lo, hi)
        {
            return None;
        }
        let grandparents = self.grandparents(output_level, lo, hi);
        let coming_below = self.busy.outputs_below(order, output_level, (lo, hi));
        let bottommost =
            coming_below.is_empty() && is_bottommost(self.version, &inputs, output_level);
        let first = self.policy.blob_groups_from;
        let tables = inputs.iter().flat_map(|i| &i.files);
        let mut plan = Plan {
            reason,
            regrouped: regrouped(self.version, first, tables, output_level),
            inputs,
            output_level,
            output_path,
            grandparents,
            bottommost,
            coming_below,
            max_output_file_size: max_output_file_size(
                self.policy,
                output_level,
                self.targets.base_level,
            ),
            max_compaction_bytes: self.max_compaction_bytes(),
            ..Plan::default()
        };
        if !self.has_room_for(&plan) {
            plan.regrouped = RegroupedValues::default();
        }
        self.with_edges_of_a_run(&mut plan);
        if self.may_move(&plan) {
            plan.kind = PlanKind::TrivialMove;
        }
        Some(plan)
    }

    /// Bytes that plans may still write under a bound on space.
    pub(super) fn room(&self) -> Option<u64> {
        let space = self.space?;
        Some(space.room(self.moment.beside, self.busy.output_bytes()))
    }

    /// Returns whether a bound on space has room for the values that a plan moves, which can wait.
    fn has_room_for(&self, plan: &Plan) -> bool {
        self.room().is_none_or(|room| plan.room_needed() <= room)
    }

    /// The files below the output where files of the output should end: those of the first level
    /// that has any in the range. With sizes by cost, those of all levels below that end where what
    /// lies uppermost does: a merge that goes on meets those, and a stack of runs keeps its edges.
    fn grandparents(
        &self,
        output_level: Level,
        lo: &InternalKey,
        hi: &InternalKey,
    ) -> Vec<Arc<FileMeta>> {
        if output_level == Level::L0 {
            return Vec::new();
        }
        let below = output_level.index() + 1..self.version.num_levels();
        let mut levels = below.map(|l| {
            let level = Level(l as u8);
            &self.files(level)[self.overlapping(level, lo, hi)]
        });
        if !self.is_shaped_by_cost() {
            let first = levels.find(|files| !files.is_empty());
            return first.unwrap_or_default().to_vec();
        }
        let is_run = self.is_tiered_run(output_level);
        let edges = levels.fold(Vec::new(), |upper, files| {
            let is_edge = |f: &&Arc<FileMeta>| !is_run || self.is_narrow(f);
            self.laid_over(upper, files.iter().filter(is_edge))
        });
        edges.into_iter().map(|e| Arc::clone(e.ends_with)).collect()
    }

    /// Returns whether a column as wide as this is of a size of which several run beside each
    /// other.
    fn is_narrow(&self, f: &FileMeta) -> bool {
        let last = self.last_level();
        let met = &self.files(last)[self.overlapping(last, &f.smallest, &f.largest)];
        met.len() < 2 || bytes(met) <= self.max_compaction_bytes() / 4
    }

    /// `upper` and those of `lower` that meet none of them, in order. Both are sorted and disjoint.
    ///
    /// A file ends short of the edge that it was cut at, by the keys it does not have. What is cut
    /// where it ends may have those, and would meet both sides of the edge further down. So where a
    /// file of `lower` reaches out of what lies over it, and meets nothing else there, its end is
    /// the edge of both.
    fn laid_over<'f>(
        &self,
        upper: Vec<RangeTop<'f>>,
        lower: impl Iterator<Item = &'f Arc<FileMeta>>,
    ) -> Vec<RangeTop<'f>> {
        let is_before = |a: &InternalKey, b: &InternalKey| self.compare(a, b).is_lt();
        let mut all = Vec::with_capacity(upper.len());
        let mut upper = upper.into_iter().peekable();
        for file in lower {
            while let Some(over) = upper.next_if(|over| !is_before(&file.largest, over.from)) {
                all.push(over);
            }
            match all.last_mut() {
                Some(over) if !is_before(&over.ends_with.largest, &file.smallest) => {
                    if is_before(&over.ends_with.largest, &file.largest) {
                        over.ends_with = file;
                    }
                }
                _ => all.push(RangeTop {
                    from: &file.smallest,
                    ends_with: file,
                }),
            }
        }
        all.extend(upper);
        all
    }

    /// Returns whether the inputs may become files of the output level as they are.
    fn may_move(&self, plan: &Plan) -> bool {
        let [input] = &*plan.inputs else { return false };
        if !self.policy.allow_trivial_move || input.level >= plan.output_level {
            return false;
        }
        // A file stays in the path where it is.
        let lies = |f: &Arc<FileMeta>| self.policy.path_of(f) == plan.output_path;
        if !input.files.iter().all(lies) {
            return false;
        }
        let refs: Vec<_> = input.files.iter().collect();
        if input.level == Level::L0 && !disjoint(self.order(), &refs) {
            return false;
        }
        // A moved file that meets much of the level below would make a costly merge there.
        let below = Level(plan.output_level.0 + 1);
        input.files.iter().all(|f| {
            let range = self.overlapping(below, &f.smallest, &f.largest);
            f.size.saturating_add(bytes(&self.files(below)[range])) <= self.max_compaction_bytes()
        })
    }
}

/// The uppermost files in a range of keys: where the range begins, and the file that ends it.
struct RangeTop<'f> {
    from: &'f InternalKey,
    ends_with: &'f Arc<FileMeta>,
}

/// How inputs of the start level may grow when the output level's stay the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpandDirection {
    /// Towards larger keys only (round robin).
    Right,
    /// Both ways.
    BothWays,
}
