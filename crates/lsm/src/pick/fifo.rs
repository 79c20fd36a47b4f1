//! FIFO compaction: the oldest files are dropped, unread.
//!
//! First files past their time to live, then what exceeds the limit of sizes, then, if allowed,
//! small files of level 0 are merged, then a file that is old enough for another temperature is
//! rewritten. One plan at a time.

use super::inputs::{Context, whole_epochs};
use super::leveled::cheap_span;
use super::{PickContext, Policy};
use crate::file::FileMeta;
use crate::plan::{Busy, CompactionReason, LevelInputs, Plan, PlanKind};
use crate::score::targets;
use crate::version::Version;
use esker_format::Level;
use std::ops::Range;
use std::sync::Arc;

/// Tiers of smaller files are not told apart.
const SMALLEST_TIER: u64 = 10 << 10;

/// The next compaction of a FIFO tree.
pub(super) fn pick(cx: &Context<'_>) -> Option<Plan> {
    if !cx.busy.is_empty() {
        return None;
    }
    let mut plan = cx
        .expired()
        .or_else(|| cx.oversized())
        .or_else(|| cx.small_files())
        .or_else(|| cx.cooled())?;
    plan.score = fullness(cx.version, cx.policy);
    Some(plan)
}

/// How full the family is; 1 or more asks for a compaction.
pub fn score(version: &Version, policy: &Policy, busy: &Busy, moment: PickContext) -> f64 {
    let size = fullness(version, policy);
    let targets = targets(version, policy);
    if size >= 1.0 || pick(&Context::new(version, policy, &targets, busy, moment)).is_none() {
        size
    } else {
        1.0
    }
}

/// The part of its limit that the family takes.
fn fullness(version: &Version, policy: &Policy) -> f64 {
    data_bytes(version, policy) as f64 / limit(policy).max(1) as f64
}

/// The bytes that the family may have.
fn limit(policy: &Policy) -> u64 {
    let options = &policy.compaction_options_fifo;
    match options.max_data_files_size {
        0 => options.max_table_files_size,
        all => all,
    }
}

/// The bytes that count against the limit.
fn data_bytes(version: &Version, policy: &Policy) -> u64 {
    let tables = version.bytes();
    match policy.compaction_options_fifo.max_data_files_size {
        0 => tables,
        _ => tables.saturating_add(blob_bytes(version)),
    }
}

fn blob_bytes(version: &Version) -> u64 {
    let blobs = version.blob_files().values();
    blobs.fold(0, |sum, b| sum.saturating_add(b.total_bytes))
}

impl Context<'_> {
    /// The weight of a file: its own bytes and, where blob files count, as large a part of them.
    fn weight(&self, f: &FileMeta) -> u64 {
        let tables = u128::from(self.version.bytes().max(1));
        let all = u128::from(data_bytes(self.version, self.policy));
        u64::try_from(u128::from(f.size) * all / tables).unwrap_or(u64::MAX)
    }

    /// Returns whether all writes of a file are at least `age` seconds old.
    fn is_older(&self, f: &FileMeta, age: u64) -> bool {
        let newest = f.newest_time();
        newest != 0 && self.moment.now > age && newest < self.moment.now - age
    }

    /// Expired files at the old end of level 0; if dropping them is not enough, size decides
    /// instead.
    fn expired(&self) -> Option<Plan> {
        let ttl = self.policy.ttl;
        if ttl == 0 {
            return None;
        }
        let files = self.files(Level::L0);
        let expired = files.iter().rev().take_while(|f| self.is_older(f, ttl));
        let count = expired.count();
        let gone = &files[files.len() - count..];
        let left = gone
            .iter()
            .fold(data_bytes(self.version, self.policy), |left, f| {
                left.saturating_sub(self.weight(f))
            });
        if count == 0 || left > limit(self.policy) {
            return None;
        }
        self.drop_files(Level::L0, gone.to_vec(), CompactionReason::FifoTtl)
    }

    /// The oldest files until the rest fits. A tree that was leveled before loses its deepest level
    /// first, lowest keys first.
    fn oversized(&self) -> Option<Plan> {
        let limit = limit(self.policy);
        let mut left = data_bytes(self.version, self.policy);
        let level = self.version.deepest_level()?;
        let files = self.files(level);
        let mut gone = Vec::new();
        let mut oldest: Box<dyn Iterator<Item = &Arc<FileMeta>>> = if level == Level::L0 {
            Box::new(files.iter().rev())
        } else {
            Box::new(files.iter())
        };
        while left > limit {
            let Some(f) = oldest.next() else { break };
            left = left.saturating_sub(self.weight(f));
            gone.push(f.clone());
        }
        if level == Level::L0 {
            gone.reverse();
        }
        self.drop_files(level, gone, CompactionReason::FifoMaxSize)
    }

    fn small_files(&self) -> Option<Plan> {
        let options = &self.policy.compaction_options_fifo;
        if !options.allow_compaction {
            return None;
        }
        let by_tiers = options.use_kv_ratio_compaction
            && options.max_data_files_size > 0
            && options.max_data_files_size >= options.max_table_files_size;
        let files = if by_tiers {
            self.tier()?
        } else {
            let trigger = (self.policy.level0_file_num_compaction_trigger as usize).max(2);
            let most = self.policy.write_buffer_size.saturating_mul(11) / 10;
            0..cheap_span(self, trigger, most)?
        };
        let inputs = vec![LevelInputs {
            level: Level::L0,
            files: self.files(Level::L0)[whole_epochs(self.files(Level::L0), files)].to_vec(),
        }];
        self.plan(inputs, Level::L0, CompactionReason::FifoReduceNumFiles)
    }

    /// Neighbouring files of the lowest tier that has enough bytes for a file of the next. Tiers
    /// grow by the trigger, so that a write is merged as often as there are tiers.
    fn tier(&self) -> Option<Range<usize>> {
        let files = self.files(Level::L0);
        let trigger = u64::from(self.policy.level0_file_num_compaction_trigger);
        let only_level0 = self.version.deepest_level()? == Level::L0;
        if !only_level0 || trigger < 2 || (files.len() as u64) < trigger {
            return None;
        }
        let tables = u128::from(self.version.bytes());
        let all = tables + u128::from(blob_bytes(self.version));
        let target = match self.policy.max_compaction_bytes {
            // The tables' part of the limit, in as many files as the trigger says.
            0 => u128::from(limit(self.policy)) * tables / all.max(1) / u128::from(trigger),
            given => u128::from(given),
        };
        let target = u64::try_from(target).unwrap_or(u64::MAX);
        let mut sizes: Vec<u64> = std::iter::successors(Some(target), |size| Some(size / trigger))
            .take_while(|size| *size >= SMALLEST_TIER)
            .collect();
        if sizes.is_empty() {
            sizes.push(target);
        }
        sizes.iter().rev().find_map(|size| filling(files, *size))
    }

    /// A file whose age has another temperature than its own, the oldest first.
    fn cooled(&self) -> Option<Plan> {
        let ages = (self.policy.compaction_options_fifo)
            .file_temperature_age_thresholds
            .as_slice();
        if ages.is_empty() || self.version.deepest_level()? > Level::L0 {
            return None;
        }
        let wanted = |f: &FileMeta| {
            let reached = ages.iter().rev().find(|a| self.is_older(f, a.age));
            reached.map(|a| a.temperature.number())
        };
        let oldest = self.files(Level::L0).iter().rev();
        let mut old = oldest.map_while(|f| Some((f, wanted(f)?)));
        let (file, temperature) = old.find(|(f, wanted)| f.temperature != *wanted)?;
        let inputs = vec![LevelInputs {
            level: Level::L0,
            files: vec![Arc::clone(file)],
        }];
        let mut plan = self.plan(inputs, Level::L0, CompactionReason::ChangeTemperature)?;
        plan.temperature = temperature;
        Some(plan)
    }

    fn drop_files(
        &self,
        level: Level,
        files: Vec<Arc<FileMeta>>,
        reason: CompactionReason,
    ) -> Option<Plan> {
        let mut plan = self.plan(vec![LevelInputs { level, files }], level, reason)?;
        plan.kind = PlanKind::Delete;
        Some(plan)
    }
}

/// The oldest neighbours that are all smaller than `size`, and together at least that and not over
/// twice as large once they reach it.
fn filling(files: &[Arc<FileMeta>], size: u64) -> Option<Range<usize>> {
    let mut end = files.len();
    while end > 0 {
        let mut start = end;
        let mut sum = 0u64;
        while start > 0 && files[start - 1].size < size {
            let grown = sum.saturating_add(files[start - 1].size);
            if sum >= size && grown > size.saturating_mul(2) {
                break;
            }
            (sum, start) = (grown, start - 1);
        }
        if end - start >= 2 && sum >= size {
            return Some(start..end);
        }
        end = start.min(end - 1);
    }
    None
}
