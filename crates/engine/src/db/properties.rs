//! Properties by RocksDB's names: what the database says about itself in numbers and text.

use super::Db;
use crate::core::Core;
use crate::family::{Family, FamilyHandle};
use crate::observe::Ticker;
use esker_format::Level;
use esker_sync::atomic::Ordering::Relaxed;

impl Core {
    /// Counts one point read that found `len` bytes, or nothing.
    #[inline]
    pub(crate) fn count_get(&self, len: Option<usize>) {
        if let Some(s) = &self.statistics {
            s.add(Ticker::NumberKeysRead, 1);
            s.add(Ticker::BytesRead, len.unwrap_or(0) as u64);
        }
    }
}

impl Db {
    /// The property `name` of the default family; `None` for a name that does not exist.
    pub fn property(&self, name: &str) -> Option<String> {
        self.property_cf(&self.default_family_handle(), name)
    }

    /// The property `name` of `family`.
    pub fn property_cf(&self, family: &FamilyHandle, name: &str) -> Option<String> {
        text(self.core(), &family.0, name)
            .or_else(|| number(self.core(), &family.0, name).map(|n| n.to_string()))
    }

    /// The property `name` of `family` as a number.
    pub fn int_property(&self, family: &FamilyHandle, name: &str) -> Option<u64> {
        number(self.core(), &family.0, name)
    }
}

fn text(core: &Core, family: &Family, name: &str) -> Option<String> {
    let name = name.strip_prefix("rocksdb.")?;
    let version = family.view_guard().version.clone();
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        let level: u8 = level.parse().ok()?;
        return (usize::from(level) < version.num_levels())
            .then(|| version.level(Level(level)).len().to_string());
    }
    match name {
        "levelstats" => {
            let mut out = String::from("Level Files Size(MB)\n--------------------\n");
            for l in 0..version.num_levels() {
                let level = version.level(Level(l as u8));
                out.push_str(&format!(
                    "{l:>3} {:>8} {:>8.0}\n",
                    level.len(),
                    level.bytes() as f64 / 1048576.0
                ));
            }
            Some(out)
        }
        "dbstats" | "stats" => Some(format!(
            "Cumulative stall: {} us, delayed {} us, stopped {} us\n",
            core.stalls.total_us(crate::observe::StallKind::Delay)
                + core.stalls.total_us(crate::observe::StallKind::Stop),
            core.stalls.total_us(crate::observe::StallKind::Delay),
            core.stalls.total_us(crate::observe::StallKind::Stop),
        )),
        _ => None,
    }
}

fn number(core: &Core, family: &Family, name: &str) -> Option<u64> {
    let view = family.view_guard();
    let version = &view.version;
    Some(match name.strip_prefix("rocksdb.")? {
        "num-immutable-mem-table" => view.immutable.len() as u64,
        "mem-table-flush-pending" => u64::from(!view.immutable.is_empty()),
        "cur-size-active-mem-table" => view.mem.data_bytes(),
        "cur-size-all-mem-tables" | "size-all-mem-tables" => view.memtable_bytes() as u64,
        "num-entries-active-mem-table" => view.mem.entries(),
        "num-deletes-active-mem-table" => view.mem.deletions(),
        "estimate-pending-compaction-bytes" => family.pending_compaction_bytes(&view),
        "num-running-compactions" => core.jobs.lock().compactions as u64,
        "num-running-flushes" => core.jobs.lock().flushes as u64,
        "num-snapshots" => core.snapshots.count() as u64,
        "oldest-snapshot-time" => core.snapshots.oldest().map_or(0, |(_, t)| t),
        "oldest-snapshot-sequence" => core.snapshots.oldest().map_or(0, |(s, _)| s.0),
        "total-sst-files-size" | "live-sst-files-size" => version.bytes(),
        "current-super-version-number" => view.number,
        "actual-delayed-write-rate" => core.admission.actual_delayed_write_rate(),
        "is-write-stopped" => u64::from(core.admission.is_stopped()),
        "background-errors" => u64::from(core.health.error().is_some()),
        "compaction-bytes-written" => family.traffic.compaction_bytes_written(),
        "flush-bytes-written" => family.traffic.flush().bytes_written.load(Relaxed),
        _ => return None,
    })
}
