//! What is read off one family at a moment: what the pace of its writers goes by, and what its
//! pickers are told of them.

use super::drain::level0_of;
use super::pace::{Limit, Reading, WriterLimits};
use crate::family::Family;
use crate::options::{CompactionStyle, FamilyOptions};
use esker_lsm::pick::universal::space_bound;
use esker_lsm::version::Version;
use esker_lsm::writers::{WriterState, level0_tables};
use esker_sync::atomic::Ordering;

/// What a universal tree takes beyond the bound of its space, with `projected_output` bytes that
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
    /// What its writers do, for the pickers.
    pub(crate) fn writer_state(&self, now_us: u64) -> WriterState {
        let flushed_us = self.flushed_us.load(Ordering::Relaxed);
        let since = (flushed_us != u64::MAX).then(|| now_us.saturating_sub(flushed_us));
        WriterState::of(self.gate.is_throttling(now_us), since)
    }

    /// How fast writers may go, at a moment of the clock, and how many memtables wait to be
    /// flushed. `first` is the drain of level 0 to go by before any was measured, in bytes a
    /// second; `is_flush_free` says whether another flush may begin.
    pub(crate) fn pace(&self, now_us: u64, first: f64, is_flush_free: bool) -> (Limit, usize) {
        let view = self.view_guard();
        let waiting = view.immutable.iter().map(|m| m.data_bytes()).sum();
        let options = self.options.load();
        let level0 = level0_of(&view.version, &options);
        let tables = level0_tables(&view.version, options.compaction_style);
        let reading = Reading {
            now_us,
            filled: view.mem.data_bytes(),
            waiting: view.immutable.len(),
            left: self.drain.left_to_flush(waiting),
            flush_rate: self.drain.flush_rate(),
            is_flush_free,
            level0: level0 - self.drain.level0_done(),
            stack: self.drain.stack(),
            beyond: space_overrun(&view.version, self.drain.projected_output(), &options),
            tables,
            idle: tables.saturating_sub(self.drain.level0_taken()),
            relief_us: self.drain.level0_relief_us(now_us),
            drained: self.drain.level0_drained(),
            stack_drained: self.drain.stack_drained(),
            is_compacting: self.drain.is_compacting(),
            debt: self.drain.debt(),
        };
        let limits = WriterLimits::of(&options);
        let limit = self.pace.lock().update_rate(&reading, &limits, first);
        (limit, reading.waiting)
    }
}
