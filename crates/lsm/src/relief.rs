//! Relief that a compaction brings to the writers of a tree: how many sorted runs it takes away,
//! and the bytes of entries that leave them.
//!
//! Level 0 is counted in tables. One that holds more than its share of the tree counts for
//! several, since merging tables within level 0 takes them away only for reads. Under universal
//! compaction the runs of all levels count, each as one however large it is: what a merge takes
//! away is all but one of its runs, and writers may bring a memtable for each.
//!
//! Pure functions of a version, its plans and the options.

use crate::overload::MOST_ABOVE;
use crate::plan::{Plan, PlanKind};
use crate::policy::{CompactionStyle, Policy};
use crate::version::Version;
use esker_format::Level;

/// The bytes above which a table of level 0 counts for more than one.
fn full_table(version: &Version, policy: &Policy) -> u64 {
    let stop = policy.stall_triggers.level0.stop_count().max(1) as u64;
    let share = (version.bytes() as f64 * MOST_ABOVE) as u64 / stop;
    share.max(policy.write_buffer_size).max(1)
}

/// The tables that level 0 counts as, by their bytes.
pub fn level0_weight(version: &Version, policy: &Policy) -> f64 {
    if policy.compaction_style == CompactionStyle::Universal {
        return version.sorted_runs() as f64;
    }
    let full = full_table(version, policy);
    let files = version.level(Level::L0).files().iter();
    files.map(|f| weight(f.size, full)).sum()
}

fn weight(bytes: u64, full: u64) -> f64 {
    (bytes as f64 / full as f64).max(1.0)
}

/// Relief of one compaction once it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Relief {
    /// Tables of level 0 that it takes; under universal compaction its runs.
    pub tables: usize,
    /// Those that it takes away, by [`level0_weight`].
    pub level0: f64,
    /// The part of the stack's room that it frees.
    pub stack: f64,
    /// Bytes of entries that leave level 0, or the stack where there is one.
    pub bytes: u64,
}

impl Relief {
    /// The relief of a plan of this tree, whose stack of runs may hold so many bytes; none where
    /// files only move, which says nothing about how fast merging is.
    pub fn of(
        plan: &Plan,
        version: &Version,
        policy: &Policy,
        room: Option<u64>,
    ) -> Option<Relief> {
        if plan.kind == PlanKind::TrivialMove {
            return None;
        }
        let mut out = match policy.compaction_style {
            CompactionStyle::Universal => Self::of_runs(plan, policy),
            _ => Self::of_level0(plan, version, policy),
        };
        if let Some(room) = room {
            // What level 0 brings to the stack is still to be merged.
            out.bytes = 0;
            let last = plan.output_level;
            if last.index() + 1 == version.num_levels() {
                let above = plan.files().filter(|(level, _)| *level < last);
                let sums = above.fold((0, 0), |n, (_, f)| (n.0 + f.size, n.1 + f.written_bytes()));
                out.stack = sums.0 as f64 / room.max(1) as f64;
                out.bytes = sums.1;
            }
        }
        Some(out)
    }

    fn of_level0(plan: &Plan, version: &Version, policy: &Policy) -> Relief {
        let full = full_table(version, policy);
        let (mut out, mut size) = (Relief::default(), 0);
        for (_, f) in plan.files().filter(|(level, _)| *level == Level::L0) {
            out.tables += 1;
            out.level0 += weight(f.size, full);
            size += f.size;
            out.bytes += f.written_bytes();
        }
        if out.tables > 0 && plan.output_level == Level::L0 {
            // It stays, in one table.
            out.level0 = (out.level0 - weight(size, full)).max(0.0);
            out.bytes = 0;
        }
        out
    }

    fn of_runs(plan: &Plan, policy: &Policy) -> Relief {
        let tables = plan.runs();
        let gone = tables.saturating_sub(1) as u64;
        Relief {
            tables,
            level0: gone as f64,
            stack: 0.0,
            bytes: gone * policy.write_buffer_size,
        }
    }
}
