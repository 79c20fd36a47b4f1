//! Whether the writers of one family have to stop, and what listeners are told of them: pure
//! functions of its view and options.
//!
//! The triggers are those that pickers go by ([`esker_lsm::stall_triggers`]).

use crate::family::View;
use crate::observe::StallCause;
use crate::options::FamilyOptions;
use esker_lsm::writers::level0_tables;

/// How one family holds its writers back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// Writers go at full speed.
    None,
    /// Writers are past a slowdown trigger: how fast they go says the pace.
    Slow(StallCause),
    /// Writers wait.
    Stop(StallCause),
}

/// The pressure that follows from a family's view and options.
pub(crate) fn pressure(
    view: &View,
    options: &FamilyOptions,
    pending_compaction_bytes: u64,
) -> Pressure {
    let level0 = level0_tables(&view.version, options.compaction_style);
    pressure_of(
        view.immutable.len(),
        level0,
        options,
        pending_compaction_bytes,
    )
}

/// Whether one more memtable to flush, and one more table at level 0, would hold writers back.
/// False while there is too little for any background work to begin, which waiting would not
/// change.
pub(crate) fn flush_would_stall(
    view: &View,
    options: &FamilyOptions,
    pending_compaction_bytes: u64,
) -> bool {
    let waiting = view.immutable.len();
    let level0 = level0_tables(&view.version, options.compaction_style);
    let as_i32 = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    if as_i32(waiting) < options.min_write_buffer_number_to_merge
        && as_i32(level0) < options.level0_file_num_compaction_trigger
    {
        return false;
    }
    let waiting = waiting + usize::from(!view.mem.is_empty());
    pressure_of(waiting, level0 + 1, options, pending_compaction_bytes) != Pressure::None
}

/// The pressure of memtables that wait to be flushed and of tables at level 0, by their numbers.
fn pressure_of(
    waiting: usize,
    level0: usize,
    options: &FamilyOptions,
    pending_compaction_bytes: u64,
) -> Pressure {
    let stop_at = options.memtables_max();
    if waiting >= stop_at {
        return Pressure::Stop(StallCause::MemtableLimit);
    }
    let triggers = options.stall_triggers();
    let (level0, debt) = (level0 as f64, pending_compaction_bytes as f64);
    if level0 >= triggers.level0.stop {
        return Pressure::Stop(StallCause::L0FileCountLimit);
    }
    if debt >= triggers.debt.stop {
        return Pressure::Stop(StallCause::PendingCompactionBytes);
    }
    let merged = usize::try_from(options.min_write_buffer_number_to_merge).unwrap_or(0);
    if stop_at > 3 && waiting + 1 >= stop_at && waiting > merged {
        Pressure::Slow(StallCause::MemtableLimit)
    } else if level0 >= triggers.level0.slowdown {
        Pressure::Slow(StallCause::L0FileCountLimit)
    } else if debt >= triggers.debt.slowdown {
        Pressure::Slow(StallCause::PendingCompactionBytes)
    } else {
        Pressure::None
    }
}
