//! Helpers that tests of decisions share: trees from pictures, and the plan for one as text.
#![allow(dead_code, reason = "each test uses a part of it")]

use esker_format::{KeyOrder, Level, Seq};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::file::{FileMeta, FileStats};
use esker_lsm::load::Zone;
use esker_lsm::pick::{PickContext, Policy, WriterState};
use esker_lsm::plan::{Busy, Plan};
use esker_lsm::read_demand::ReadDemand;
use esker_lsm::shape::{draw_plan, parse};
use esker_lsm::space::PendingSpace;
use esker_lsm::version::Version;
use std::sync::Arc;

pub(crate) const NOW: PickContext = PickContext {
    now: 1_000_000,
    oldest_snapshot: Seq(1_000_000),
    draining: false,
    writers: WriterState::Resting,
    paced: Zone::Calm,
    reads: ReadDemand {
        debt_ns: 0,
        merge_pace: None,
        writers_rest: false,
    },
    beside: PendingSpace {
        memtables: 0,
        obsolete: 0,
        leaving: 0,
    },
};

pub(crate) fn tree(text: &str) -> Version {
    parse(text, KeyOrder::Bytewise, 7).expect("the picture is a valid tree")
}

/// Levels of 10M, growing tenfold, not dynamic.
pub(crate) fn fixed() -> Policy {
    Policy {
        level_compaction_dynamic_level_bytes: false,
        max_bytes_for_level_base: 10 << 20,
        target_file_size_base: 2 << 20,
        ..Policy::default()
    }
}

pub(crate) fn dynamic() -> Policy {
    Policy {
        level_compaction_dynamic_level_bytes: true,
        level_shape_by_cost: false,
        ..fixed()
    }
}

/// The next compaction. Writers write if the newest table of level 0 is of this second or the one
/// before.
pub(crate) fn pick(v: &Version, policy: &Policy, busy: &Busy, moment: PickContext) -> Option<Plan> {
    let newest = v.level(Level::L0).files().first();
    let created = newest.map_or(0, |f| f.file_creation_time);
    let is_new = created != 0 && (created..created + 2).contains(&moment.now);
    let writers = match moment.writers {
        WriterState::Resting if is_new => WriterState::Writing,
        other => other,
    };
    esker_lsm::pick::pick(v, policy, busy, PickContext { writers, ..moment })
}

pub(crate) fn picked(v: &Version, policy: &Policy) -> String {
    draw_plan(pick(v, policy, &Busy::new(), NOW).as_ref())
}

pub(crate) fn with_times(v: &Version, ancestor: u64, created: u64, deletions: u64) -> Version {
    let mut edit = TreeEdit::default();
    for (level, f) in v.files() {
        let mut new = FileMeta::from(esker_format::edit::NewFile::from(&**f));
        (new.oldest_ancestor_time, new.file_creation_time) = (ancestor, created);
        let stats = FileStats {
            num_entries: 10,
            num_deletions: deletions,
            ..FileStats::default()
        };
        new.stats.set(stats).expect("fresh");
        edit.added.push((level, Arc::new(new)));
    }
    apply(&Version::empty(v.order().clone(), v.num_levels()), &[edit]).expect("valid")
}
