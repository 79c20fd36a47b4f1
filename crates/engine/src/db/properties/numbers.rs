//! Properties that are one number, each one row: its name without the prefix `rocksdb.`, what it is
//! the number of, and the function that has it. Metrics are made of the same rows.

use super::tables;
use crate::core::Core;
use crate::family::{Family, View};
use crate::job::scheduler::{moment, off_peak, policy_at};
use crate::options::CompactionStyle;
use crate::registry::Jobs;
use esker_files::table::BlockCache;
use esker_lsm::off_peak::OffPeak;
use esker_lsm::pick::{PickContext, pick_assessed};
use esker_lsm::plan::Busy;
use esker_lsm::version::Version;
use esker_sync::Arc;
use esker_sync::atomic::Ordering::{Acquire, Relaxed};
use std::cell::OnceCell;

/// The owner of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberOf {
    /// A family.
    Family,
    /// The database: every family has it.
    Database,
    /// A block cache, which several families may share.
    Cache,
    /// A family, for those who ask for it: it takes long to find out, or reads files.
    Asked,
}

/// The input of compaction picking that all families of a database share, found out once.
pub(super) type SharedContext = OnceCell<(PickContext, OffPeak)>;

/// A family that numbers are asked of, and what several of them need.
pub(super) struct NumberSource<'a> {
    core: &'a Core,
    family: &'a Family,
    view: &'a View,
    moment: &'a SharedContext,
    versions: OnceCell<Vec<Arc<Version>>>,
}

impl<'a> NumberSource<'a> {
    pub(super) fn new(
        core: &'a Core,
        family: &'a Family,
        view: &'a View,
        moment: &'a SharedContext,
    ) -> Self {
        NumberSource {
            core,
            family,
            view,
            moment,
            versions: OnceCell::new(),
        }
    }

    fn versions(&self) -> &[Arc<Version>] {
        self.versions.get_or_init(|| self.family.live_versions())
    }

    fn moment(&self) -> &(PickContext, OffPeak) {
        self.moment.get_or_init(|| {
            let moment = moment(self.core, true);
            let hours = off_peak(self.core, moment.now);
            (moment, hours)
        })
    }
}

/// A property that is one number.
pub(super) struct NumberProperty {
    pub(super) name: &'static str,
    pub(super) of: NumberOf,
    /// It only grows, but for a reset.
    pub(super) is_counter: bool,
    pub(super) get: fn(&NumberSource<'_>) -> Option<u64>,
}

const fn row(
    name: &'static str,
    of: NumberOf,
    get: fn(&NumberSource<'_>) -> Option<u64>,
) -> NumberProperty {
    NumberProperty {
        name,
        of,
        is_counter: false,
        get,
    }
}

const fn counter(
    name: &'static str,
    of: NumberOf,
    get: fn(&NumberSource<'_>) -> Option<u64>,
) -> NumberProperty {
    NumberProperty {
        is_counter: true,
        ..row(name, of, get)
    }
}

use NumberOf as Of;

pub(super) const NUMBERS: [NumberProperty; 50] = [
    row("num-immutable-mem-table", Of::Family, |s| {
        Some(s.view.immutable.len() as u64)
    }),
    row("num-immutable-mem-table-flushed", Of::Family, |s| {
        Some(s.view.history.len() as u64)
    }),
    row("mem-table-flush-pending", Of::Family, |s| {
        Some(u64::from(is_flush_needed(s.family, s.view)))
    }),
    row("compaction-pending", Of::Family, |s| {
        Some(u64::from(is_compaction_needed(s)))
    }),
    counter("background-errors", Of::Database, |s| {
        Some(s.core.services.health.errors())
    }),
    row("cur-size-active-mem-table", Of::Family, |s| {
        Some(s.view.mem.memory_usage() as u64)
    }),
    row("cur-size-all-mem-tables", Of::Family, |s| {
        Some(s.view.memtable_bytes() as u64)
    }),
    row("size-all-mem-tables", Of::Family, |s| {
        Some((s.view.memtable_bytes() + s.view.history_bytes()) as u64)
    }),
    row("num-entries-active-mem-table", Of::Family, |s| {
        Some(s.view.mem.entries())
    }),
    row("num-entries-imm-mem-tables", Of::Family, |s| {
        Some(s.view.immutable.iter().map(|m| m.entries()).sum())
    }),
    row("num-deletes-active-mem-table", Of::Family, |s| {
        Some(s.view.mem.deletions())
    }),
    row("num-deletes-imm-mem-tables", Of::Family, |s| {
        Some(s.view.immutable.iter().map(|m| m.deletions()).sum())
    }),
    row("estimate-num-keys", Of::Family, |s| {
        Some(estimate_num_keys(s.view))
    }),
    row("estimate-table-readers-mem", Of::Family, |s| {
        Some(tables::reader_memory(s.core, &s.view.version))
    }),
    row("is-file-deletions-enabled", Of::Database, |s| {
        Some(u64::from(s.core.trees.obsolete_files.is_enabled()))
    }),
    row("num-snapshots", Of::Database, |s| {
        Some(s.core.reads.snapshots.count() as u64)
    }),
    row("oldest-snapshot-time", Of::Database, |s| {
        Some(s.core.reads.snapshots.oldest().map_or(0, |(_, t)| t))
    }),
    row("oldest-snapshot-sequence", Of::Database, |s| {
        Some(s.core.reads.snapshots.oldest().map_or(0, |(s, _)| s.0))
    }),
    row("num-live-versions", Of::Family, |s| {
        Some(s.versions().len() as u64)
    }),
    row("current-super-version-number", Of::Family, |s| {
        Some(s.view.number)
    }),
    row("estimate-live-data-size", Of::Family, |s| {
        Some(tables::estimate_live_data(&s.view.version))
    }),
    row("min-log-number-to-keep", Of::Database, |s| {
        Some(oldest_log_needed(s.core))
    }),
    row("min-obsolete-sst-number-to-keep", Of::Database, |s| {
        Some(
            s.core
                .trees
                .numbers
                .oldest_writing()
                .map_or(u64::MAX, |n| n.0),
        )
    }),
    row("base-level", Of::Family, |s| {
        Some(u64::from(
            s.family.assessed(&s.view.version).tree.targets.base_level.0,
        ))
    }),
    row("total-sst-files-size", Of::Family, |s| {
        Some(tables::bytes_of_all(s.versions()))
    }),
    row("live-sst-files-size", Of::Family, |s| {
        Some(s.view.version.bytes())
    }),
    row("obsolete-sst-files-size", Of::Database, |s| {
        Some(s.core.trees.obsolete_files.table_bytes())
    }),
    row("estimate-pending-compaction-bytes", Of::Family, |s| {
        Some(
            s.family
                .assessed(&s.view.version)
                .tree
                .pending_compaction_bytes,
        )
    }),
    row("num-running-flushes", Of::Database, |s| {
        Some(jobs(s.core, |j| j.flushes as u64))
    }),
    row("num-running-compactions", Of::Database, |s| {
        Some(jobs(s.core, |j| j.compactions as u64))
    }),
    row("num-running-compaction-sorted-runs", Of::Database, |s| {
        Some(jobs(s.core, |j| {
            j.busy.values().map(Busy::sorted_runs).sum::<usize>() as u64
        }))
    }),
    row("compaction-abort-count", Of::Database, |s| {
        Some(jobs(s.core, |j| j.manual_cancelled.max(0).unsigned_abs()))
    }),
    row("actual-delayed-write-rate", Of::Database, |s| {
        Some(s.core.writes.admission.actual_delayed_write_rate())
    }),
    row("is-write-stopped", Of::Database, |s| {
        Some(u64::from(s.core.writes.admission.is_stopped()))
    }),
    row("estimate-oldest-key-time", Of::Asked, |s| {
        oldest_key_time(s.core, s.family, &s.view.version)
    }),
    row("block-cache-capacity", Of::Cache, |s| {
        cache(s.family, BlockCache::capacity)
    }),
    row("block-cache-usage", Of::Cache, |s| {
        cache(s.family, BlockCache::usage)
    }),
    row("block-cache-pinned-usage", Of::Asked, |s| {
        cache(s.family, BlockCache::pinned_usage)
    }),
    row("blob-cache-capacity", Of::Asked, |s| {
        blob_cache(s.family, BlockCache::capacity)
    }),
    row("blob-cache-usage", Of::Asked, |s| {
        blob_cache(s.family, BlockCache::usage)
    }),
    row("blob-cache-pinned-usage", Of::Asked, |s| {
        blob_cache(s.family, BlockCache::pinned_usage)
    }),
    row("num-blob-files", Of::Family, |s| {
        Some(s.view.version.blob_files().len() as u64)
    }),
    row("total-blob-file-size", Of::Family, |s| {
        Some(blob_bytes(s.view))
    }),
    row("live-blob-file-size", Of::Family, |s| {
        Some(blob_bytes(s.view))
    }),
    row("live-blob-file-garbage-size", Of::Family, |s| {
        let blobs = s.view.version.blob_files().values();
        Some(blobs.map(|b| b.garbage_bytes).sum())
    }),
    counter("esker.compaction-bytes-written", Of::Family, |s| {
        Some(s.family.compaction_stats.bytes_written().1)
    }),
    counter("esker.flush-bytes-written", Of::Family, |s| {
        Some(s.family.compaction_stats.bytes_written().0)
    }),
    counter("esker.overtaken-plans", Of::Database, |s| {
        Some(s.core.services.overtaken_plans.load(Relaxed))
    }),
    counter("esker.merge-yields", Of::Database, |s| {
        Some(s.core.services.yields.load(Relaxed))
    }),
    counter("esker.merge-yield-micros", Of::Database, |s| {
        Some(s.core.services.yielded_us.load(Relaxed))
    }),
];

/// The number behind a name with its prefix; `None` where there is none.
pub(super) fn number(core: &Core, family: &Family, name: &str) -> Option<u64> {
    let name = name.strip_prefix("rocksdb.")?;
    let property = NUMBERS.iter().find(|property| property.name == name)?;
    let moment = SharedContext::new();
    (property.get)(&NumberSource::new(core, family, &family.view(), &moment))
}

fn jobs(core: &Core, number: impl Fn(&Jobs) -> u64) -> u64 {
    number(&core.background.jobs.lock())
}

fn is_flush_needed(family: &Family, view: &View) -> bool {
    let least = family.options.load().min_write_buffer_number_to_merge;
    let least = usize::try_from(least).unwrap_or(1).max(1);
    view.immutable.len() >= least
}

fn oldest_log_needed(core: &Core) -> u64 {
    let families = core.trees.families.all();
    let logs = families.iter().map(|f| f.persisted_log.load(Acquire));
    logs.min().unwrap_or(0)
}

fn blob_bytes(view: &View) -> u64 {
    let blobs = view.version.blob_files().values();
    blobs.map(|b| b.total_bytes).sum()
}

fn cache(family: &Family, figure: fn(&BlockCache) -> usize) -> Option<u64> {
    family.reading.cache().map(|c| figure(&c) as u64)
}

fn blob_cache(family: &Family, figure: fn(&BlockCache) -> usize) -> Option<u64> {
    family.reading.blob_cache().map(|c| figure(c) as u64)
}

/// Entries of memtables and tables, less twice the deletions.
fn estimate_num_keys(view: &View) -> u64 {
    let memtables = || std::iter::once(&view.mem).chain(&view.immutable);
    let entries: u64 = memtables().map(|m| m.entries()).sum();
    let deletions: u64 = memtables().map(|m| m.deletions()).sum();
    (entries + estimate_table_keys(&view.version)).saturating_sub(2 * deletions)
}

fn estimate_table_keys(version: &Version) -> u64 {
    let (mut files, mut known, mut live, mut deleted) = (0u64, 0u64, 0u64, 0u64);
    for (_, file) in version.files() {
        files += 1;
        if let Some(s) = file.stats.get() {
            known += 1;
            live += s.num_entries.saturating_sub(s.num_deletions);
            deleted += s.num_deletions;
        }
    }
    let net = live.saturating_sub(deleted);
    if known == 0 || known >= files {
        return net;
    }
    // Files that were not opened yet count as much as the ones that were.
    (net as f64 * files as f64 / known as f64) as u64
}

/// Known only where no compaction mixes old and new keys.
fn oldest_key_time(core: &Core, family: &Family, version: &Version) -> Option<u64> {
    let options = family.options.load();
    let fifo = &options.compaction_options_fifo;
    if options.compaction_style != CompactionStyle::Fifo || fifo.allow_compaction {
        return None;
    }
    let mut oldest = None;
    for (level, file) in version.files() {
        let table = core.trees.tables.get(file, level, &family.reading).ok()?;
        let time = table.reader.properties().oldest_key_time;
        oldest = Some(oldest.map_or(time, |o: u64| o.min(time)));
    }
    oldest.filter(|t| *t > 0)
}

fn is_compaction_needed(source: &NumberSource<'_>) -> bool {
    let (moment, hours) = source.moment();
    let moment = PickContext {
        reads: source.family.read_demand(),
        ..*moment
    };
    let version = &source.view.version;
    let assessed = source.family.assessed(version);
    let policy = policy_at(&assessed.policy, *hours);
    let idle = Busy::default();
    let jobs = source.core.background.jobs.lock();
    let busy = jobs.busy.get(&source.family.id).unwrap_or(&idle);
    pick_assessed(version, &policy, &assessed.tree, busy, moment).is_some()
}
