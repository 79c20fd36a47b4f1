//! Load of one family, by its view and options: what its gate, listeners, the ledger and the pace
//! of its writers go by.
//!
//! The scale and its zones are those of pickers ([`esker_lsm::load`]); the pace is
//! [`esker_lsm::pace`].

use super::drain::DrainStats;
use crate::family::{Family, View};
use crate::observe::StallCause;
use crate::options::{CompactionStyle, FamilyOptions};
use esker_lsm::assessment::Assessment;
use esker_lsm::load::{Load, LoadCause, Zone};
use esker_lsm::pace::{Limit, Reading, WriterLimits};
use esker_lsm::pick::universal::space_bound;
use esker_lsm::space::PendingSpace;
use esker_lsm::version::Version;
use esker_lsm::writers::WriterState;
use esker_sync::atomic::Ordering;

/// Kinds of jobs of which another may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeJobs {
    pub(crate) flush: bool,
    pub(crate) compaction: bool,
}

/// The load of a family whose jobs have done so much.
pub(crate) fn load(
    view: &View,
    options: &FamilyOptions,
    tree: &Assessment,
    drain: &DrainStats,
) -> Load {
    let triggers = options.stall_triggers();
    let runs = triggers.runs(tree.tables as f64, tree.stack);
    let load = triggers.load(view.immutable.len(), runs, tree.pending_compaction_bytes);
    Load {
        space: space_load(view, tree, drain),
        ..load
    }
}

/// The load of the space that is taken, against a bound in percent of what is alive. Writers stop
/// for it only while a compaction runs: else nothing would let them go on.
fn space_load(view: &View, tree: &Assessment, drain: &DrainStats) -> f64 {
    let Some(space) = &tree.space else {
        return 0.0;
    };
    let beside = beside_tables(view, drain);
    let load = space.load(beside, drain.projected_output());
    if drain.is_compacting() {
        load
    } else {
        load.min(Zone::Stop.begin().next_down())
    }
}

/// Bytes that take space, or will, beside the files of the tree.
pub(crate) fn beside_tables(view: &View, drain: &DrainStats) -> PendingSpace {
    let (obsolete, leaving) = drain.obsolete();
    PendingSpace {
        memtables: view.unflushed().map(|mem| mem.data_bytes()).sum(),
        obsolete,
        leaving,
    }
}

/// Tells whether one more memtable to flush, and one more table at level 0, would hold writers
/// back. False while there is too little for any background work to begin, which waiting would not
/// change.
pub(crate) fn flush_would_stall(view: &View, options: &FamilyOptions, tree: &Assessment) -> bool {
    let (waiting, tables) = (view.immutable.len(), tree.tables);
    let as_i32 = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    if as_i32(waiting) < options.min_write_buffer_number_to_merge
        && as_i32(tables) < options.level0_file_num_compaction_trigger
    {
        return false;
    }
    let waiting = waiting + usize::from(!view.mem.is_empty());
    let triggers = options.stall_triggers();
    let load = triggers.load(waiting, (tables + 1) as f64, tree.pending_compaction_bytes);
    load.zone() >= Zone::Slow
}

/// The cause that listeners, tickers and the ledger name.
pub(crate) fn stall_cause(cause: LoadCause) -> StallCause {
    match cause {
        LoadCause::Memtables => StallCause::MemtableLimit,
        LoadCause::Runs => StallCause::L0FileCountLimit,
        // What compactions owe to a bound on space, too.
        LoadCause::Debt | LoadCause::Space => StallCause::PendingCompactionBytes,
    }
}

/// The space of a universal tree beyond its bound, with `projected_output` bytes that
/// merges may still write, in memtables.
fn space_overrun(version: &Version, projected_output: u64, options: &FamilyOptions) -> f64 {
    let percent = options
        .compaction_options_universal
        .max_peak_size_amplification_percent;
    if percent == 0 || options.compaction_style != CompactionStyle::Universal {
        return 0.0;
    }
    let trigger = u64::try_from(options.level0_file_num_compaction_trigger).unwrap_or(1);
    let memtable = options.write_buffer_size as u64;
    let bound = space_bound(version, percent, memtable, trigger);
    let beyond = (version.bytes().saturating_add(projected_output)).saturating_sub(bound);
    beyond as f64 / memtable.max(1) as f64
}

impl Family {
    /// The state of its writers, and the zone of the load that paces them, for the pickers.
    pub(crate) fn writer_state(&self, now_us: u64) -> (WriterState, Zone) {
        let flushed_us = self.flushed_us.load(Ordering::Relaxed);
        let since = (flushed_us != u64::MAX).then(|| now_us.saturating_sub(flushed_us));
        let state = WriterState::of(self.gate.is_throttling(now_us), since);
        let paced = match state {
            WriterState::Resting => Zone::Calm,
            WriterState::Writing => Zone::of(self.pace.lock().load()),
        };
        (state, paced)
    }

    /// Returns whether writers rest for long enough to merge for reads beside them: not as long as
    /// otherwise where deletions are not merged yet.
    pub(crate) fn rests_for_reads(&self, view: &View, now_us: u64) -> bool {
        let flushed_us = self.flushed_us.load(Ordering::Relaxed);
        let since = (flushed_us != u64::MAX).then(|| now_us.saturating_sub(flushed_us));
        let since = since.map(|us| (us as f64 * view.haste()) as u64);
        WriterState::of(self.gate.is_throttling(now_us), since) == WriterState::Resting
    }

    /// How fast writers may go, at a moment of the clock, and how many memtables wait to be
    /// flushed. `tree` is that of `view`; `first` is the drain to go by before any was measured, in
    /// bytes a second.
    pub(crate) fn pace(
        &self,
        view: &View,
        tree: &Assessment,
        now_us: u64,
        first: f64,
        free: FreeJobs,
    ) -> (Limit, usize) {
        let waiting = view.immutable.iter().map(|m| m.data_bytes()).sum();
        let options = self.options.load();
        let drain = &self.drain;
        let reading = Reading {
            now_us,
            filled: view.mem.data_bytes(),
            waiting: view.immutable.len(),
            left: drain.left_to_flush(waiting),
            flush_rate: drain.flush_rate(),
            is_flush_free: free.flush,
            level0: tree.level0 - drain.level0_done(),
            stack: tree.stack.map(|part| part - drain.stack_done()),
            beyond: space_overrun(&view.version, drain.projected_output(), &options),
            tables: tree.tables,
            idle: tree.tables.saturating_sub(drain.level0_taken()),
            is_compaction_free: free.compaction,
            relief_us: drain.level0_relief_us(now_us),
            drained: drain.drained(),
            is_compacting: drain.is_compacting(),
            debt: tree.pending_compaction_bytes,
            space: space_load(view, tree, drain),
        };
        let limits = WriterLimits {
            compaction: f64::from(options.level0_file_num_compaction_trigger),
            triggers: options.stall_triggers(),
            memtable: options.write_buffer_size as f64,
        };
        let limit = self.pace.lock().limit(&reading, &limits, first);
        (limit, reading.waiting)
    }
}
