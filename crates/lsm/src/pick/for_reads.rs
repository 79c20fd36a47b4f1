//! Merges that pay for themselves in reads.
//!
//! A merge takes place when reads have paid as much for the runs that it removes as it takes itself
//! ([`crate::read_demand`]). This is the rule of ski rental: whenever the reads end, reads and
//! merges together took at most twice the time of the best choice. A tree that is not read is never
//! touched, and what writers bring is merged as before: a plan for reads is made only where nothing
//! else is to be done, and while writers rest.
//!
//! Groups of blob files that overlap in the last level cost walks as runs do, and are written anew
//! in the same way.
//!
//! Beside that, RocksDB's `read_triggered_compaction_threshold` asks for single files: those that
//! reads search in vain too often for their size. The pickers take them last of all that is marked.

use super::CompactionStyle;
use super::inputs::{Context, bytes, clean_cut};
use super::universal;
use crate::blob_groups::{extra_groups, gathered, overlap, regrouped};
use crate::file::FileMeta;
use crate::plan::{CompactionReason, LevelInputs, Plan, hull};
use crate::read_demand::{LEAST_DEBT_NS, walked_runs};
use esker_format::Level;
use esker_status::seeded::{Bug, seeded};
use std::sync::Arc;

/// Runs that can be merged, and what that takes.
struct Candidate {
    removes: usize,
    bytes: u64,
    from: Level,
}

/// The merge that reads have paid for, if there is one.
pub(super) fn pick(cx: &Context<'_>) -> Option<Plan> {
    let moment = &cx.moment;
    let writers_rest = moment.reads.writers_rest || !moment.expects_flushes();
    let rests = !moment.is_paced() && writers_rest && cx.busy.is_empty();
    if moment.reads.debt_ns < LEAST_DEBT_NS || !cx.policy.compaction_for_reads || !rests {
        return None;
    }
    let runs = match cx.policy.compaction_style {
        CompactionStyle::Level => cx.level_for_reads(),
        CompactionStyle::Universal => universal::pick_for_reads(cx),
        CompactionStyle::Fifo | CompactionStyle::None => return None,
    };
    runs.or_else(|| cx.groups_for_reads())
}

impl Context<'_> {
    /// Returns whether reads have paid for a merge of `bytes` that removes some of the `of` runs
    /// beyond the first.
    pub(super) fn is_paid(&self, removes: usize, of: usize, bytes: u64) -> bool {
        let demand = &self.moment.reads;
        let paid = u128::from(demand.debt_ns) * removes as u128;
        removes > 0 && u128::from(demand.merge_ns(bytes)) * of as u128 <= paid
    }

    /// Files that reads search in vain more often than `read_triggered_compaction_threshold`
    /// allows, the most searched first. Not those of the last level, which have nowhere to go; of
    /// level 0 all, as its files can be merged with each other.
    pub(super) fn files_read_in_vain(&self) -> Vec<(Level, &Arc<FileMeta>)> {
        let threshold = self.policy.read_triggered_compaction_threshold;
        let Some(deepest) = self.version.deepest_level().filter(|_| threshold > 0.0) else {
            return Vec::new();
        };
        let is_wanted = |level: Level, f: &FileMeta| {
            (level < deepest || level == Level::L0) && !self.is_busy(f)
        };
        // Readers go on counting: each figure is looked at once.
        let wanted = self
            .version
            .files()
            .filter(|(level, f)| is_wanted(*level, f));
        let mut rated: Vec<_> = wanted
            .map(|(level, f)| (f.collapsible_reads_per_byte(), level, f))
            .filter(|(reads, _, _)| *reads > threshold)
            .collect();
        rated.sort_by(|a, b| b.0.total_cmp(&a.0));
        rated.into_iter().map(|(_, level, f)| (level, f)).collect()
    }

    /// The runs, and the groups of blob files, that a walk goes through beyond the first.
    fn extra_runs(&self) -> usize {
        walked_runs(self.version, 0).saturating_sub(1)
    }

    /// Tables of the last level whose values lie in several groups: these go into one.
    fn groups_for_reads(&self) -> Option<Plan> {
        self.policy.blob_groups_from?;
        let groups = extra_groups(self.version);
        let last = self.version.deepest_level().filter(|l| *l > Level::L0)?;
        let files = self.files(last);
        let costs = |f: &FileMeta| {
            let (extra, values) = overlap(self.version, f);
            (extra > 0).then(|| f.size.saturating_add(values))
        };
        let all = files.iter().filter_map(|f| costs(f));
        let all = all.fold(0, u64::saturating_add);
        if !self.is_paid(groups, self.extra_runs(), all) {
            return None;
        }
        let from = files.iter().position(|f| costs(f).is_some())?;
        let most = self.max_compaction_bytes();
        let mut sum = 0u64;
        let fits = |f: &&Arc<FileMeta>| {
            sum = sum.saturating_add(costs(f).unwrap_or(most));
            sum <= most
        };
        let count = files[from..].iter().take_while(fits).count().max(1);
        let reason = CompactionReason::ReadTriggered;
        let mut plan = self.rewrite_range(last, from..from + count, reason)?;
        plan.regrouped = gathered(self.version, plan.files().map(|(_, f)| f));
        Some(plan)
    }

    /// A part of the uppermost level that is cheapest to empty, into the next that holds anything.
    fn level_for_reads(&self) -> Option<Plan> {
        let extra = self.extra_runs();
        let deepest = self.version.deepest_level()?;
        let levels = (0..deepest.0.max(1)).map(Level);
        let candidates = levels.filter_map(|level| self.emptied(level));
        let cheapest = candidates.min_by_key(|c| c.bytes / c.removes as u64)?;
        if !self.is_paid(cheapest.removes, extra, cheapest.bytes) {
            return None;
        }
        let reason = CompactionReason::ReadTriggered;
        let (level, to) = (cheapest.from, self.next_run(cheapest.from)?);
        if level == Level::L0 {
            let oldest = self.files(Level::L0).last()?;
            if seeded(Bug::ReadsMergeNewestAlone) {
                let newest = self.files(Level::L0)[..1].to_vec();
                let inputs = vec![LevelInputs {
                    level,
                    files: newest,
                }];
                return self.plan(inputs, to, reason);
            }
            return self.level0_down(oldest, to, reason);
        }
        self.by_priority(level).into_iter().find_map(|i| {
            let range = clean_cut(self.order(), self.files(level), i..i + 1);
            self.sorted_down(level, range, to, reason)
        })
    }

    /// The merge that empties a level: the runs that it removes and the bytes that it takes.
    fn emptied(&self, level: Level) -> Option<Candidate> {
        let files = self.files(level);
        let to = self.next_run(level)?;
        let below = self.files(to);
        let (lo, hi) = hull(self.order(), files)?;
        let met = bytes(&below[self.overlapping(to, lo, hi)]);
        let runs = if level == Level::L0 { files.len() } else { 1 };
        let removes = runs - usize::from(below.is_empty());
        (removes > 0).then(|| Candidate {
            removes,
            bytes: bytes(files)
                .saturating_add(met)
                .saturating_add(self.values_moved(level, to)),
            from: level,
        })
    }

    /// Bytes of the medium values that go with the files of a level into another group.
    fn values_moved(&self, level: Level, to: Level) -> u64 {
        let Some(first) = self.policy.blob_groups_from else {
            return 0;
        };
        regrouped(self.version, Some(first), self.files(level).iter(), to).bytes
    }

    /// Where the files of a level go: the next level that holds any, or the base level.
    fn next_run(&self, level: Level) -> Option<Level> {
        let mut below = (level.0 + 1..self.version.num_levels() as u8).map(Level);
        let next = below.find(|l| !self.files(*l).is_empty());
        next.or((level == Level::L0).then_some(self.targets.base_level))
    }
}
