//! The load of one family, by its view and options: what its gate, listeners and the ledger go by.
//!
//! The scale and its zones are those of pickers ([`esker_lsm::load`]). The stack of runs is not
//! part of it: that slows writers down by the pace and never stops them.

use crate::family::View;
use crate::observe::StallCause;
use crate::options::FamilyOptions;
use esker_lsm::load::{Load, LoadCause, Zone};
use esker_lsm::writers::level0_tables;

/// The load of a family, whose compactions owe `debt` bytes.
pub(crate) fn load(view: &View, options: &FamilyOptions, debt: u64) -> Load {
    let tables = level0_tables(&view.version, options.compaction_style);
    let triggers = options.stall_triggers();
    triggers.load(view.immutable.len(), tables, None, debt)
}

/// Tells whether one more memtable to flush, and one more table at level 0, would hold writers
/// back. False while there is too little for any background work to begin, which waiting would not
/// change.
pub(crate) fn flush_would_stall(view: &View, options: &FamilyOptions, debt: u64) -> bool {
    let waiting = view.immutable.len();
    let tables = level0_tables(&view.version, options.compaction_style);
    let as_i32 = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    if as_i32(waiting) < options.min_write_buffer_number_to_merge
        && as_i32(tables) < options.level0_file_num_compaction_trigger
    {
        return false;
    }
    let waiting = waiting + usize::from(!view.mem.is_empty());
    let load = options
        .stall_triggers()
        .load(waiting, tables + 1, None, debt);
    load.zone() >= Zone::Slow
}

/// The cause that listeners, tickers and the ledger name.
pub(crate) fn stall_cause(cause: LoadCause) -> StallCause {
    match cause {
        LoadCause::Memtables => StallCause::MemtableLimit,
        LoadCause::Runs => StallCause::L0FileCountLimit,
        LoadCause::Debt => StallCause::PendingCompactionBytes,
    }
}
