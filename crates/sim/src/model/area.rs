//! Workloads that use one part of the engine more than the others.
//!
//! One seed in four is about a part: its options, its steps, where its log is cut and which of its
//! calls fail lean towards that part; the other seeds are about everything. Which part follows from
//! the seed, so a failure is replayed by its seed as any other, and who changed a part, or hunts a
//! bug in it, takes the seeds of [`seed_about`].
//!
//! Functions of values; used by one thread.

use crate::disk::{DiskLog, Ino, Node, Op};
use crate::fault::{Call, Class};
use crate::rng::Rng;
pub use esker_status::seeded::Area;
use std::collections::BTreeMap;

/// The parts.
const AREAS: &[Area] = &[
    Area::Log,
    Area::Manifest,
    Area::Tables,
    Area::Reading,
    Area::Ingestion,
    Area::Transactions,
    Area::Threads,
];

/// Returns the area of the workload of `seed`, when it has one.
pub fn area_of(seed: u64) -> Option<Area> {
    let about = seed % 4 == 3;
    about.then(|| AREAS[(seed / 4 % AREAS.len() as u64) as usize])
}

/// The `n`-th seed that is about `area`.
pub fn seed_about(area: Area, n: u64) -> u64 {
    let at = AREAS.iter().position(|a| *a == area).unwrap_or(0);
    (n * AREAS.len() as u64 + at as u64) * 4 + 3
}

/// A cache of a few blocks before a compressed tier of some more.
pub(super) const TIERED: &str = "{capacity=3000;num_shard_bits=0;\
    secondary_cache={compressed_secondary_cache://capacity=20000;num_shard_bits=0}}";

/// Options of a database that is about `area`, each with the values that it is drawn from.
pub(super) fn choices(area: Area) -> &'static [(&'static str, &'static [&'static str])] {
    match area {
        Area::Log => &[("max_total_wal_size", &["0", "1000"])],
        Area::Manifest => &[("max_manifest_file_size", &["500", "500", "2000"])],
        Area::Tables => &[
            ("db_write_buffer_size", &["2048", "6000"]),
            ("level0_file_num_compaction_trigger", &["2"]),
            ("target_file_size_base", &["4000"]),
            // What it counts covers for what else is not looked at.
            ("compaction_verify_record_count", &["true", "false"]),
        ],
        Area::Reading => &[
            ("db_write_buffer_size", &["2048", "6000"]),
            (
                "filter_policy",
                &["bloomfilter:10:false", "ribbonfilter:10"],
            ),
            ("prefix_extractor", &["nullptr", "rocksdb.FixedPrefix.3"]),
            ("block_size", &["256"]),
            ("memory_budget", &["0", "0", "2097152"]),
            ("save_block_cache", &["true"]),
            ("block_cache", &["64K", TIERED]),
            ("memtable_op_scan_flush_trigger", &["0", "0", "2"]),
        ],
        Area::Ingestion => &[
            ("db_write_buffer_size", &["2048", "6000"]),
            (
                "filter_policy",
                &["bloomfilter:10:false", "ribbonfilter:10"],
            ),
            ("prefix_extractor", &["rocksdb.FixedPrefix.3"]),
        ],
        Area::Transactions | Area::Threads => &[],
    }
}

/// The step that is done instead of the one drawn as `kind` (of a hundred): some of the writes are
/// flushes, syncs or compactions where those are what the part is about.
pub(super) fn turned(area: Option<Area>, kind: u64) -> u64 {
    const FLUSH_ONE: u64 = 76;
    const SYNC: u64 = 79;
    const COMPACT: u64 = 83;
    match (area, kind) {
        (Some(Area::Log), 52..62) => FLUSH_ONE,
        (Some(Area::Log), 62..66) => SYNC,
        (Some(Area::Manifest | Area::Tables | Area::Reading), 54..64) => FLUSH_ONE,
        (Some(Area::Tables | Area::Reading), 64..70) => COMPACT,
        _ => kind,
    }
}

/// How rarely something is done between the steps.
pub(super) fn rarely(area: Option<Area>) -> u64 {
    match area {
        Some(Area::Ingestion | Area::Transactions | Area::Threads) => 9,
        _ => 40,
    }
}

/// How many families there are at the start at least.
pub(super) fn families(area: Option<Area>) -> u64 {
    match area {
        Some(Area::Log | Area::Manifest) => 2,
        _ => 0,
    }
}

/// The files that `area` is about.
fn classes(area: Area) -> &'static [Class] {
    match area {
        Area::Log | Area::Transactions | Area::Threads => &[Class::Wal],
        Area::Manifest => &[Class::Manifest, Class::Current, Class::Options, Class::Temp],
        Area::Tables | Area::Reading | Area::Ingestion => &[Class::Table],
    }
}

/// A call on which `area` depends, and the files that it is about.
pub(crate) fn draw_call(area: Area, rng: &mut Rng) -> (Call, Class) {
    let calls: &[(Call, Class)] = match area {
        Area::Tables | Area::Reading | Area::Ingestion => &[
            (Call::Read, Class::Table),
            (Call::Read, Class::Table),
            (Call::OpenRead, Class::Table),
            (Call::Append, Class::Table),
        ],
        Area::Manifest => &[
            (Call::Append, Class::Manifest),
            (Call::Sync, Class::Manifest),
            (Call::Sync, Class::Manifest),
            (Call::Create, Class::Manifest),
            (Call::Sync, Class::Temp),
            (Call::Rename, Class::Current),
        ],
        Area::Log | Area::Transactions | Area::Threads => &[
            (Call::Append, Class::Wal),
            (Call::Sync, Class::Wal),
            (Call::Sync, Class::Wal),
            (Call::Create, Class::Wal),
        ],
    };
    *rng.pick(calls)
}

/// The positions of `log` behind operations on the files that `area` is about, without plain writes
/// to logs and tables.
pub(crate) fn telling(area: Area, log: &DiskLog) -> Vec<usize> {
    let mut kinds: BTreeMap<Ino, Class> = BTreeMap::new();
    let mut out = Vec::new();
    for (i, op) in log.ops.iter().enumerate() {
        let class = match op {
            Op::Create { at, file } | Op::Link { at, file } | Op::Remove { at, file } => {
                let class = Class::of_name(&at.1);
                kinds.insert(*file, class);
                Some(class)
            }
            Op::Rename { to, node, .. } => {
                let class = Class::of_name(&to.1);
                if let Node::File(file) = node {
                    kinds.insert(*file, class);
                }
                Some(class)
            }
            Op::Write { file, .. } if area == Area::Manifest => kinds.get(file).copied(),
            Op::Sync { file } => kinds.get(file).copied(),
            _ => None,
        };
        if class.is_some_and(|c| classes(area).contains(&c)) {
            out.push(i + 1);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_about_a_part_are_about_it() {
        for area in AREAS {
            for n in 0..20 {
                assert_eq!(area_of(seed_about(*area, n)), Some(*area));
            }
        }
        assert_eq!((0..28).filter(|s| area_of(*s).is_some()).count(), 7);
    }
}
