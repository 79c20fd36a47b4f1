//! When a tree for which nothing is to be done has to be looked at again although it did not
//! change.
//!
//! Time alone makes files expire and lets writers rest; snapshots that are released let deletions
//! go. A caller that keeps [`Recheck`] beside a tree need not ask [`super::pick`] every second. A
//! moment may be named at which nothing is due after all, never the other way round.

use super::{CompactionStyle, PickContext, Policy, WriterState};
use crate::file::FileMeta;
use crate::overload::REST_US;
use crate::version::Version;
use esker_format::{Level, Seq};

/// Moments and changes that make [`super::pick`] worth another call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recheck {
    /// Unix seconds: files have an age then.
    pub at: Option<u64>,
    /// Microseconds until writers rest.
    pub in_us: Option<u64>,
    /// The oldest snapshot (or, without any, the last sequence) lies above this.
    pub above: Option<Seq>,
}

/// When a tree that was looked at in `moment` is to be looked at again.
pub fn recheck(version: &Version, policy: &Policy, moment: PickContext) -> Recheck {
    if policy.disable_auto_compactions || policy.compaction_style == CompactionStyle::None {
        return Recheck::default();
    }
    let leveled = policy.compaction_style == CompactionStyle::Level;
    let above = if leveled {
        bottommost_waits_for(version, moment.oldest_snapshot)
    } else {
        None
    };
    let goes_by_writers = leveled || moment.is_paced();
    let in_us = (goes_by_writers && moment.writers == WriterState::Writing).then_some(REST_US);
    let times = ages(policy).flat_map(|age| version.files().flat_map(move |(_, f)| old_at(f, age)));
    let later = times.filter(|at| moment.now != 0 && *at > moment.now);
    Recheck {
        at: later.min(),
        in_us,
        above,
    }
}

/// The ages that mean something.
fn ages(policy: &Policy) -> impl Iterator<Item = u64> {
    let temperatures = match policy.compaction_style {
        CompactionStyle::Fifo => policy
            .compaction_options_fifo
            .file_temperature_age_thresholds
            .as_slice(),
        _ => &[],
    };
    [policy.ttl, policy.periodic_compaction_seconds]
        .into_iter()
        .filter(|age| *age > 0)
        .chain(temperatures.iter().map(|t| t.age))
}

/// The first second in which a file is older than `age`, by each of the times that count somewhere.
fn old_at(f: &FileMeta, age: u64) -> impl Iterator<Item = u64> {
    let births = [
        f.oldest_ancestor_time,
        f.file_creation_time,
        f.newest_time(),
    ];
    let known = births.into_iter().filter(|birth| *birth != 0);
    known.map(move |birth| birth.saturating_add(age).saturating_add(1))
}

/// The oldest write of which a file with nothing below waits to be out of every snapshot's sight:
/// the least `largest_seq` among the files whose deletions could go then.
fn bottommost_waits_for(version: &Version, oldest_snapshot: Seq) -> Option<Seq> {
    let garbage = |f: &FileMeta| f.stats.get().is_some_and(|s| s.num_deletions > 1);
    let waits = version.files().filter(|(level, f)| {
        *level > Level::L0 && f.largest_seq.0 != 0 && f.largest_seq >= oldest_snapshot && garbage(f)
    });
    waits.map(|(_, f)| f.largest_seq).min()
}
