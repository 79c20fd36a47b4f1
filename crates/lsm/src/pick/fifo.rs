//! FIFO compaction: the oldest files are dropped, unread.
//!
//! First files past their time to live, then what exceeds `max_table_files_size`, then, if allowed,
//! small files of level 0 are merged. One plan at a time.

use super::inputs::Context;
use super::leveled::cheap_span;
use super::{Moment, Policy};
use crate::file::FileMeta;
use crate::plan::{Busy, CompactionReason, LevelInputs, Plan, PlanKind};
use crate::score::targets;
use crate::version::Version;
use esker_format::Level;
use std::sync::Arc;

/// The next compaction of a FIFO tree.
pub fn pick(version: &Version, policy: &Policy, busy: &Busy, moment: Moment) -> Option<Plan> {
    if !busy.is_empty() {
        return None;
    }
    let targets = targets(version, policy);
    let cx = Context {
        version,
        policy,
        busy,
        moment,
        targets: &targets,
    };
    cx.expired()
        .or_else(|| cx.oversized())
        .or_else(|| cx.small_files())
}

/// How full the family is; 1 or more asks for a compaction.
pub fn score(version: &Version, policy: &Policy, busy: &Busy, moment: Moment) -> f64 {
    let limit = policy.compaction_options_fifo.max_table_files_size.max(1);
    let size = version.bytes() as f64 / limit as f64;
    if size >= 1.0 || pick(version, policy, busy, moment).is_none() {
        size
    } else {
        1.0
    }
}

impl Context<'_> {
    /// Expired files at the old end of level 0; if dropping them is not enough, size decides instead.
    fn expired(&self) -> Option<Plan> {
        let (ttl, now) = (self.policy.ttl, self.moment.now);
        if ttl == 0 || now <= ttl {
            return None;
        }
        let born = |f: &FileMeta| {
            if f.oldest_ancestor_time != 0 {
                f.oldest_ancestor_time
            } else {
                f.file_creation_time
            }
        };
        let expired = |f: &&Arc<FileMeta>| born(f) != 0 && born(f) < now - ttl;
        let files = self.files(Level::L0);
        let count = files.iter().rev().take_while(expired).count();
        let gone = files[files.len() - count..]
            .iter()
            .fold(0u64, |sum, f| sum.saturating_add(f.size));
        let left = self.version.bytes().saturating_sub(gone);
        if count == 0 || left > self.policy.compaction_options_fifo.max_table_files_size {
            return None;
        }
        self.drop_files(
            Level::L0,
            files[files.len() - count..].to_vec(),
            CompactionReason::FifoTtl,
        )
    }

    /// The oldest files until the rest fits. A tree that was leveled before loses its deepest level first,
    /// lowest keys first.
    fn oversized(&self) -> Option<Plan> {
        let limit = self.policy.compaction_options_fifo.max_table_files_size;
        let mut left = self.version.bytes();
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
            left = left.saturating_sub(f.size);
            gone.push(f.clone());
        }
        if level == Level::L0 {
            gone.reverse();
        }
        self.drop_files(level, gone, CompactionReason::FifoMaxSize)
    }

    fn small_files(&self) -> Option<Plan> {
        if !self.policy.compaction_options_fifo.allow_compaction {
            return None;
        }
        let trigger = (self.policy.level0_file_num_compaction_trigger as usize).max(2);
        let most = self.policy.write_buffer_size.saturating_mul(11) / 10;
        let count = cheap_span(self, trigger, most)?;
        let files = self.files(Level::L0)[..count].to_vec();
        let inputs = vec![LevelInputs {
            level: Level::L0,
            files,
        }];
        self.plan(inputs, Level::L0, CompactionReason::FifoReduceNumFiles)
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
