//! A tree that cannot keep up: a stack of sorted runs above the last level, which goes down slice
//! by slice.
//!
//! While writers bring more than leveled merging could take away, each batch of level 0 becomes a
//! sorted run of its own, in the empty level above all others ([`crate::score`],
//! `redirect_l0_above_base`, says when that begins). Tables that meet nothing in the level below
//! fall into it unread, so at each key the runs lie on each other without gaps. A *slice* is a
//! range of keys with all that lies there, from the uppermost run to the last level: one merge
//! takes it down, and its bytes are written once on their way, with as many of the last level as it
//! meets. That is the least where the most runs lie on each other, so slices wait for that.
//!
//! Invariants:
//! - A slice has, for each table in it, all older tables that meet it, so that nothing newer ends
//!   up below something older.
//! - A batch goes down into an empty level, or one that is nearly so. Runs fall out of that level,
//!   and where the stack is full they leave it with their slice, whatever that costs. Only where
//!   level 0 has no room left does it go into the uppermost run.
//! - A batch is large: a part of the last level, or more memtables than level 0 has room for
//!   more. Until then level 0 merges in itself.
//!
//! The cost: with runs of `r` bytes in `n` levels over a last one of `l`, each byte is written once
//! into level 0, once more within it, once into its run, and `l / (n r)` times with a slice. The
//! stack is half full on average, `n r / 2`.
//!
//! Writers go by how full the stack is ([`crate::stack`]), which batches do not change.
//!
//! Tables of a run end where those of all levels below them do (their grandparents), or a slice
//! would grow by a table to each side with every level.
//!
//! Sources: runs that wait for each other above a leveled last level are lazy leveling (Dayan and
//! Idreos, "Dostoevsky", SIGMOD 2018); merges of a part of a level at a time, and what choosing it
//! by overlap is worth, are in Sarkar and others, "Constructing and Analyzing the LSM Compaction
//! Design Space", VLDB 2021. What was rejected is in `docs/decisions/0009-columns.md`.

use super::inputs::{Context, ExpandDirection, clean_cut};
use super::multilevel::MultiLevelSlice;
use crate::load::Zone;
use crate::overload::{MAX_SLICE_TABLES, MIN_FILES_FOR_INTRA_L0, SMALL_PART, TABLES_OF_RUN};
use crate::plan::{CompactionReason, LevelInputs, Plan, PlanKind};
use crate::stack::{self, bytes_of_run};
use crate::writers::level0_zone;
use esker_format::Level;

impl Context<'_> {
    /// The level of the uppermost run, while there are runs above the base that the data needs and
    /// writers bring more.
    pub(super) fn uppermost_run(&self) -> Option<Level> {
        let lowest = self.targets.lowest_unnecessary_level?;
        let mut above = (1..self.last_level().0).map(Level);
        let top = above.find(|l| !self.files(*l).is_empty())?;
        let is_stack = self.is_shaped_by_cost() && top <= lowest;
        (is_stack && self.moment.expects_flushes()).then_some(top)
    }

    /// The next compaction of a tree with a stack of runs. `level0` is the score of level 0.
    pub(super) fn pick_tiered(&self, top: Level, level0: f64) -> Option<Plan> {
        if let Some(plan) = self.pick_trivial_move() {
            return Some(plan);
        }
        let (due, full) = (self.is_l0_batch_due(top), self.is_level0_full());
        // Level 0 that is full merges in itself first: the way down takes seconds.
        let plan = if due && !full {
            self.l0_batch_down(top)
        } else {
            self.intra_l0_of_tiered(full)
        };
        let plan = plan.or_else(|| full.then(|| self.l0_batch_down(top)).flatten());
        if let Some(mut plan) = plan {
            plan.score = level0.max(1.0);
            return Some(plan);
        }
        // What lies in the way of a batch that is due ends soon, if nothing else begins there.
        (!due).then(|| self.cheapest_slice(top)).flatten()
    }

    /// Returns whether level 0 holds a batch, and hardly anything is in its way.
    fn is_l0_batch_due(&self, top: Level) -> bool {
        let level0 = self.version.level(Level::L0).bytes() as f64;
        let rest = if top == Level(1) {
            self.version.level(top).bytes()
        } else {
            0
        };
        level0 >= self.bytes_of_run()
            && rest as f64 <= level0 * SMALL_PART
            && !self.moves_l0_batch()
    }

    /// Returns whether a batch is on its way down: it has the oldest table.
    fn moves_l0_batch(&self) -> bool {
        let oldest = self.files(Level::L0).last();
        oldest.is_some_and(|f| self.is_busy(f))
    }

    fn is_level0_full(&self) -> bool {
        level0_zone(self.version, self.policy) >= Zone::Critical
    }

    /// Merges the newest tables of level 0, where those that are worth it are many, or all are more
    /// than there is room for. Tables of a batch that is on its way count until it ends, so there
    /// are to be few.
    fn intra_l0_of_tiered(&self, full: bool) -> Option<Plan> {
        self.newest_of_level0(if full {
            MIN_FILES_FOR_INTRA_L0
        } else {
            self.intra_l0_threshold_beside_merge() / 2
        })
    }

    fn bytes_of_run(&self) -> f64 {
        bytes_of_run(self.policy, self.version.level(self.last_level()).bytes())
    }

    /// Level 0 into the level above the uppermost run, or into that where there is none. Its newest
    /// tables stay, as long as they are a small part: they come while others are on their way and
    /// merge in themselves then.
    fn l0_batch_down(&self, top: Level) -> Option<Plan> {
        let to = Level((top.0 - 1).max(1));
        let level0 = self.files(Level::L0);
        let mut stays = (self.version.level(Level::L0).bytes() as f64 * SMALL_PART) as u64;
        let newest = level0.iter().take_while(|f| {
            let left = stays.checked_sub(f.size);
            stays = left.unwrap_or(stays);
            left.is_some()
        });
        let start = LevelInputs {
            level: Level::L0,
            files: level0[newest.count()..].to_vec(),
        };
        self.merge_down(
            start,
            to,
            CompactionReason::LevelL0FilesNum,
            ExpandDirection::Right,
        )
    }

    /// Returns whether what goes there is a run of a stack, or a part of one.
    pub(super) fn is_tiered_run(&self, level: Level) -> bool {
        let lowest = self.targets.lowest_unnecessary_level;
        level > Level::L0
            && lowest.is_some_and(|lowest| level <= lowest)
            && self.is_shaped_by_cost()
    }

    /// Has the outputs of a plan end with the tables below them where it writes a run.
    pub(super) fn with_edges_of_a_run(&self, plan: &mut Plan) {
        if self.is_tiered_run(plan.output_level) {
            let part = plan.input_bytes() / TABLES_OF_RUN;
            plan.edge_bytes = Some(part.min(plan.max_output_file_size / 4));
            plan.max_output_file_size = plan.max_output_file_size.saturating_mul(2);
        }
    }

    /// Tables that meet nothing in the next level go there; what lies lowest goes first, so that
    /// what lies above may follow.
    fn pick_trivial_move(&self) -> Option<Plan> {
        let reason = CompactionReason::LevelMaxLevelSize;
        let levels = (1..self.last_level().0).rev().map(Level);
        levels
            .flat_map(|level| (0..self.files(level).len()).map(move |at| (level, at)))
            .filter(|(level, at)| self.meets_nothing_below(*level, *at))
            .find_map(|(level, at)| {
                let range = clean_cut(self.order(), self.files(level), at..at + 1);
                let plan = self.sorted_down(level, range, Level(level.0 + 1), reason)?;
                (plan.kind == PlanKind::TrivialMove).then_some(plan)
            })
    }

    /// Returns whether a table has nothing directly below it.
    fn meets_nothing_below(&self, level: Level, at: usize) -> bool {
        let f = &self.files(level)[at];
        let below = Level(level.0 + 1);
        !self.is_busy(f) && self.overlapping(below, &f.smallest, &f.largest).is_empty()
    }

    /// The slice that meets least in the last level for what it brings; a wider one where that is
    /// better still. With few tables of level 0 there is little load: slices go down whatever
    /// they meet, until the tree has its usual shape again.
    fn cheapest_slice(&self, top: Level) -> Option<Plan> {
        let slices = (0..self.files(top).len()).flat_map(|from| self.slices_from(top, from));
        let cheapest = slices.min_by(|a, b| a.overlap_ratio().total_cmp(&b.overlap_ratio()))?;
        let is_loaded = self.files(Level::L0).len() >= MIN_FILES_FOR_INTRA_L0;
        let may_wait = top > Level(1) && is_loaded;
        if may_wait && cheapest.overlap_ratio() > self.max_overlap_ratio() {
            return None;
        }
        let inputs = cheapest.inputs(self);
        let reason = CompactionReason::LevelMaxLevelSize;
        self.plan(inputs, self.last_level(), reason)
    }

    /// The most that a slice may meet for what it brings: below a stack that is nearly empty as
    /// much as one meets where the stack is full. Writers are held back as the stack fills up, and
    /// then it does not wait for cheaper ones.
    fn max_overlap_ratio(&self) -> f64 {
        let last = self.last_level();
        let runs = f64::from(last.0.saturating_sub(1).max(1));
        let where_full =
            self.version.level(last).bytes() as f64 / (runs * self.bytes_of_run()).max(1.0);
        let room = stack::room(self.version, self.policy, self.targets);
        let free = room.map_or(1.0, |room| 1.0 - stack::part(self.version, room));
        where_full / free.max(f64::MIN_POSITIVE)
    }

    /// The slices below one table of the uppermost run, two, and so on, as long as they are free
    /// and not too large. A single one may be, where nothing else runs: two that take seconds would
    /// leave no job to merge level 0 in itself.
    fn slices_from(&self, top: Level, from: usize) -> impl Iterator<Item = MultiLevelSlice> {
        let limit = self.max_compaction_bytes() / 2;
        let most = move |tables: usize| {
            if tables == 1 && self.busy.is_empty() {
                u64::MAX
            } else {
                limit
            }
        };
        let ends = from + 1..=self.files(top).len().min(from + MAX_SLICE_TABLES);
        ends.map_while(move |end| {
            let range = clean_cut(self.order(), self.files(top), from..end);
            let slice = MultiLevelSlice::of(self, top, range)?;
            (slice.bytes() <= most(end - from)).then_some(slice)
        })
    }
}
