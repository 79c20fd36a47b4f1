//! The demand of reads on a tree: the time that they spend because it has several runs, and the
//! price of a merge that removes some.
//!
//! A read searches every sorted run, so each run beyond the first costs every read some time. A
//! walk reads values of every sorted group of blob files ([`crate::blob_groups`]), which it pays
//! for as for runs. The engine times a sample of the reads and adds up that part of their time
//! ([`extra_ns`]) as the debt of the tree. A merge costs what its bytes took in the merges before.

use crate::blob_groups::extra_groups;
use crate::file::FileStats;
use crate::version::Version;
use esker_format::Level;

/// Nanoseconds that a seek takes at least in one run.
const SEEK_NS: u64 = 500;
/// Nanoseconds that a point read which a filter ends takes at least in one run.
const GET_NS: u64 = 100;
/// A search of one run takes no more of processor and device: the rest is waiting, of which many
/// readers have some at the same time.
const LONGEST_NS: u64 = 10_000;
/// Nanoseconds to read, merge and write a byte, while no merge has shown them.
const MERGE_NS_PER_BYTE: f64 = 8.0;
/// The fastest and the slowest pace that a merge is expected to have.
const MERGE_PACES: (f64, f64) = (1.0, 100.0);
/// Trees are not looked at before their reads have paid this much: small ones are cheap to read.
pub const LEAST_DEBT_NS: u64 = 100_000_000;

/// Reads that stand for others of their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledReads {
    /// Point reads that searched tables.
    Gets {
        /// How many there were.
        count: u64,
        /// The time of all of them.
        took_ns: u64,
        /// The blocks of entries that they looked into.
        data_blocks: u64,
    },
    /// One seek of an iterator.
    Seek {
        /// Its time; 0 when unknown.
        took_ns: u64,
    },
}

/// The runs that a walk goes through: those of the tree, as many memtables, and the groups of blob
/// files beyond the first.
pub fn walked_runs(version: &Version, memtables: usize) -> usize {
    version.sorted_runs() + memtables + extra_groups(version)
}

/// The part of their time that reads spend because they search more than one run: those of the
/// tree, and as many memtables. Runs share the time of a seek evenly. Of point reads, it is what
/// they spend on blocks beyond one each, and on filters.
pub fn extra_ns(version: &Version, memtables: usize, reads: SampledReads) -> u64 {
    let runs = match reads {
        SampledReads::Gets { .. } => version.sorted_runs() + memtables,
        SampledReads::Seek { .. } => walked_runs(version, memtables),
    };
    let runs = runs as u64;
    let extra = runs.saturating_sub(1);
    match reads {
        SampledReads::Gets {
            count,
            took_ns,
            data_blocks,
        } => {
            let in_vain = data_blocks.saturating_sub(count).min(count * extra);
            let each = (took_ns / data_blocks.max(1)).min(LONGEST_NS);
            (in_vain * each).max(count * extra * GET_NS)
        }
        SampledReads::Seek { took_ns } => {
            extra * (took_ns / runs.max(1)).clamp(SEEK_NS, LONGEST_NS)
        }
    }
}

/// Reads pay so many times sooner at most for merges that drop entries.
const MOST_HASTE: f64 = 32.0;

/// How many times sooner seeks pay for the merges of a tree whose deletions have not met what they
/// delete: such a merge gives space back and shortens every walk, beside the runs that it removes.
/// One entry in a hundred halves the time. `deletions` are those of the memtables.
pub fn haste(version: &Version, deletions: u64) -> f64 {
    let Some(deepest) = version.deepest_level().filter(|l| *l > Level::L0) else {
        return 1.0;
    };
    let points = |stats: Option<&FileStats>| stats.map_or((0, 0), FileStats::points);
    let tables = version.level(Level::L0).files().iter();
    let waiting: u64 = tables.map(|f| points(f.stats.get()).1).sum();
    let last = version.level(deepest);
    // One table stands for all.
    let entries_per_byte = last.files().iter().find_map(|f| {
        let (entries, _) = points(f.stats.get());
        (entries > 0 && f.size > 0).then(|| entries as f64 / f.size as f64)
    });
    let entries = entries_per_byte.unwrap_or_default() * last.bytes() as f64;
    if entries < 1.0 {
        return 1.0;
    }
    (1.0 + 100.0 * (waiting + deletions) as f64 / entries).min(MOST_HASTE)
}

/// The demand of reads on a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadDemand {
    /// The time that they have paid for its runs, in nanoseconds.
    pub debt_ns: u64,
    /// Nanoseconds a byte of the merges before, if there were any.
    pub merge_pace: Option<f64>,
    /// Writers rest long enough for a merge that reads have paid for, if not for others.
    pub writers_rest: bool,
}

impl ReadDemand {
    /// The time to read, merge and write `bytes`.
    pub fn merge_ns(&self, bytes: u64) -> u64 {
        let (fastest, slowest) = MERGE_PACES;
        let pace = self.merge_pace.unwrap_or(MERGE_NS_PER_BYTE);
        (bytes as f64 * pace.clamp(fastest, slowest)) as u64
    }
}

/// Returns whether reads have paid for the flush of one of the memtables, which holds `bytes`.
pub fn is_flush_paid(version: &Version, memtables: usize, demand: &ReadDemand, bytes: u64) -> bool {
    let extra = walked_runs(version, memtables).saturating_sub(1);
    extra > 0 && demand.merge_ns(bytes) <= demand.debt_ns / extra as u64
}
