//! Properties that are one number.

use super::tables;
use crate::core::Core;
use crate::family::{Family, View};
use crate::job::scheduler::{moment, off_peak, policy_at};
use crate::options::CompactionStyle;
use esker_lsm::pick::{PickContext, pick_assessed};
use esker_lsm::version::Version;
use esker_sync::atomic::Ordering::Relaxed;

/// The names, without the prefix `rocksdb.`.
pub(super) const NAMES: [&str; 47] = [
    "num-immutable-mem-table",
    "num-immutable-mem-table-flushed",
    "mem-table-flush-pending",
    "compaction-pending",
    "background-errors",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "size-all-mem-tables",
    "num-entries-active-mem-table",
    "num-entries-imm-mem-tables",
    "num-deletes-active-mem-table",
    "num-deletes-imm-mem-tables",
    "estimate-num-keys",
    "estimate-table-readers-mem",
    "is-file-deletions-enabled",
    "num-snapshots",
    "oldest-snapshot-time",
    "oldest-snapshot-sequence",
    "num-live-versions",
    "current-super-version-number",
    "estimate-live-data-size",
    "min-log-number-to-keep",
    "min-obsolete-sst-number-to-keep",
    "base-level",
    "total-sst-files-size",
    "live-sst-files-size",
    "obsolete-sst-files-size",
    "estimate-pending-compaction-bytes",
    "num-running-flushes",
    "num-running-compactions",
    "num-running-compaction-sorted-runs",
    "compaction-abort-count",
    "actual-delayed-write-rate",
    "is-write-stopped",
    "estimate-oldest-key-time",
    "block-cache-capacity",
    "block-cache-usage",
    "block-cache-pinned-usage",
    "num-blob-files",
    "total-blob-file-size",
    "live-blob-file-size",
    "live-blob-file-garbage-size",
    "esker.compaction-bytes-written",
    "esker.flush-bytes-written",
    "esker.overtaken-plans",
    "esker.merge-yields",
    "esker.merge-yield-micros",
];

pub(super) fn number(core: &Core, family: &Family, name: &str) -> Option<u64> {
    let name = name.strip_prefix("rocksdb.")?;
    let view = family.view();
    memory(family, &view, name)
        .or_else(|| tree(core, family, &view, name))
        .or_else(|| jobs(core, family, &view, name))
        .or_else(|| caches(family, name))
}

/// Memtables and snapshots.
fn memory(family: &Family, view: &View, name: &str) -> Option<u64> {
    let waiting = &view.immutable;
    Some(match name {
        "num-immutable-mem-table" => waiting.len() as u64,
        "num-immutable-mem-table-flushed" => view.history.len() as u64,
        "mem-table-flush-pending" => {
            let least = family.options.load().min_write_buffer_number_to_merge;
            let least = usize::try_from(least).unwrap_or(1).max(1);
            u64::from(waiting.len() >= least)
        }
        "cur-size-active-mem-table" => view.mem.memory_usage() as u64,
        "cur-size-all-mem-tables" => view.memtable_bytes() as u64,
        "size-all-mem-tables" => (view.memtable_bytes() + view.history_bytes()) as u64,
        "num-entries-active-mem-table" => view.mem.entries(),
        "num-entries-imm-mem-tables" => waiting.iter().map(|m| m.entries()).sum(),
        "num-deletes-active-mem-table" => view.mem.deletions(),
        "num-deletes-imm-mem-tables" => waiting.iter().map(|m| m.deletions()).sum(),
        "estimate-num-keys" => estimate_num_keys(view),
        "current-super-version-number" => view.number,
        _ => return None,
    })
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

fn tree(core: &Core, family: &Family, view: &View, name: &str) -> Option<u64> {
    let version = &view.version;
    Some(match name {
        "estimate-table-readers-mem" => tables::reader_memory(core, version),
        "estimate-live-data-size" => tables::estimate_live_data(version),
        "num-live-versions" => family.live_versions().len() as u64,
        "base-level" => u64::from(family.assessed(version).tree.targets.base_level.0),
        "live-sst-files-size" => version.bytes(),
        "total-sst-files-size" => tables::bytes_of_all_versions(family),
        "obsolete-sst-files-size" => core.trees.obsolete_files.table_bytes(),
        "estimate-pending-compaction-bytes" => {
            family.assessed(&view.version).tree.pending_compaction_bytes
        }
        "min-log-number-to-keep" => core
            .trees
            .families
            .all()
            .iter()
            .map(|f| f.persisted_log.load(esker_sync::atomic::Ordering::Acquire))
            .min()
            .unwrap_or(0),
        "min-obsolete-sst-number-to-keep" => core
            .trees
            .numbers
            .oldest_writing()
            .map_or(u64::MAX, |n| n.0),
        "estimate-oldest-key-time" => oldest_key_time(core, family, version)?,
        "num-blob-files" => version.blob_files().len() as u64,
        "total-blob-file-size" | "live-blob-file-size" => {
            version.blob_files().values().map(|b| b.total_bytes).sum()
        }
        "live-blob-file-garbage-size" => {
            version.blob_files().values().map(|b| b.garbage_bytes).sum()
        }
        "esker.compaction-bytes-written" => {
            family.compaction_stats.totals().compaction().bytes_written
        }
        "esker.flush-bytes-written" => family.compaction_stats.totals().flush.bytes_written,
        _ => return None,
    })
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

fn jobs(core: &Core, family: &Family, view: &View, name: &str) -> Option<u64> {
    Some(match name {
        "compaction-pending" => u64::from(is_compaction_needed(core, family, view)),
        "background-errors" => core.services.health.errors(),
        "num-running-compactions" => core.background.jobs.lock().compactions as u64,
        "num-running-flushes" => core.background.jobs.lock().flushes as u64,
        "num-running-compaction-sorted-runs" => {
            let jobs = core.background.jobs.lock();
            jobs.busy.values().map(|b| b.sorted_runs() as u64).sum()
        }
        // Manual compactions that a caller has stopped and not allowed again.
        "compaction-abort-count" => core
            .background
            .jobs
            .lock()
            .manual_cancelled
            .max(0)
            .unsigned_abs(),
        "num-snapshots" => core.reads.snapshots.count() as u64,
        "oldest-snapshot-time" => core.reads.snapshots.oldest().map_or(0, |(_, t)| t),
        "oldest-snapshot-sequence" => core.reads.snapshots.oldest().map_or(0, |(s, _)| s.0),
        "is-file-deletions-enabled" => u64::from(core.trees.obsolete_files.is_enabled()),
        "actual-delayed-write-rate" => core.writes.admission.actual_delayed_write_rate(),
        "esker.overtaken-plans" => core.services.overtaken_plans.load(Relaxed),
        "esker.merge-yields" => core.services.yields.load(Relaxed),
        "esker.merge-yield-micros" => core.services.yielded_us.load(Relaxed),
        "is-write-stopped" => u64::from(core.writes.admission.is_stopped()),
        _ => return None,
    })
}

fn is_compaction_needed(core: &Core, family: &Family, view: &View) -> bool {
    let moment = PickContext {
        reads: family.read_demand(),
        ..moment(core, true)
    };
    let mut jobs = core.background.jobs.lock();
    let busy = jobs.busy.entry(family.id).or_default();
    let assessed = family.assessed(&view.version);
    let policy = policy_at(&assessed.policy, off_peak(core, moment.now));
    pick_assessed(&view.version, &policy, &assessed.tree, busy, moment).is_some()
}

fn caches(family: &Family, name: &str) -> Option<u64> {
    let figure: fn(&esker_files::table::BlockCache) -> usize = match name {
        "block-cache-capacity" => |c| c.capacity(),
        "block-cache-usage" => |c| c.usage(),
        "block-cache-pinned-usage" => |c| c.pinned_usage(),
        _ => return None,
    };
    family.reading.cache().map(|c| figure(&c) as u64)
}
