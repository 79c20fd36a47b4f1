//! Space of a tree against a bound in percent of what is alive in it, and the garbage in it.
//!
//! Live bytes are those that a compaction of everything would leave. They are not known before, but
//! for a part: a sorted run has no key twice, so the largest run is alive, but for what newer runs
//! delete. A run weighs its tables and the values in blob files that they refer to. What else there
//! is takes space, and is one of two kinds:
//!
//! - *garbage*: values of blob files that no table refers to. It is known to the byte and goes when
//!   the other values of its files have moved;
//! - *hidden*: all that lies outside the largest run. Newer entries hide older ones there, as many
//!   as there are at most, and a merge into the last level shows how many. It costs the keys alone
//!   where values are in blob files, and moves none.
//!
//! Jobs have a part of the room for themselves: writers stop before it. It is as large as the next
//! merge of the runs above the oldest, which takes them together with what memtables bring: what
//! writers have filled up a merge can always relieve. Pure functions of a version and the options.

use crate::file::FileMeta;
use crate::load::{StallTrigger, Zone};
use crate::policy::{CompactionStyle, Policy};
use crate::version::{BlobFile, TreeBlob, Version};
use esker_format::{FileNo, Level};
use esker_status::seeded::{Bug, seeded};
use std::sync::Arc;

/// Bytes of a blob file beside its records: header and footer.
const BLOB_FILE_EDGES: u64 = 62;

/// Space of a tree against its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceUse {
    /// Bytes that are alive, at least.
    pub live: u64,
    /// Bytes of all tables and blob files.
    pub taken: u64,
    /// Bytes of blob files that no table refers to.
    pub garbage: u64,
    /// Bytes that newer runs may hide.
    pub hidden: u64,
    /// Bytes of the runs above the oldest that one merge takes together, and may write.
    pub upper_runs: u64,
    /// Bytes that all may take.
    pub bound: u64,
}

/// Bytes that take space, or will, beside the files of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingSpace {
    /// In memtables: the next merge has to find room for them.
    pub memtables: u64,
    /// In obsolete files that are not deleted yet.
    pub obsolete: u64,
    /// Those of them that go as soon as running jobs have ended, or are being deleted.
    pub leaving: u64,
}

impl PendingSpace {
    /// All of them.
    pub fn total(self) -> u64 {
        self.memtables.saturating_add(self.obsolete)
    }
}

/// Bytes of a table, and of what its entries refer to.
fn weight(f: &FileMeta) -> u64 {
    f.size.saturating_add(f.blob_bytes().unwrap_or(0))
}

/// A sorted run in sums.
#[derive(Clone, Copy, Default)]
struct RunWeight {
    weight: u64,
    /// Bytes of its tables.
    tables: u64,
    entries: u64,
    deletions: u64,
    /// Bytes that its range deletions cover.
    covered: u64,
}

impl RunWeight {
    fn of(files: &[Arc<FileMeta>]) -> RunWeight {
        files.iter().fold(RunWeight::default(), |sum, f| {
            let (entries, deletions) = f.stats.get().map_or((0, 0), |s| s.points());
            RunWeight {
                weight: sum.weight.saturating_add(weight(f)),
                tables: sum.tables.saturating_add(f.size),
                entries: sum.entries + entries,
                deletions: sum.deletions + deletions,
                covered: sum
                    .covered
                    .saturating_add(f.compensated_range_deletion_size),
            }
        })
    }
}

/// The sorted runs of a tree.
fn runs(version: &Version) -> Vec<RunWeight> {
    let is_one = |a: &Arc<FileMeta>, b: &Arc<FileMeta>| a.epoch == b.epoch && a.epoch != 0;
    let (level0, below) = version.levels().split_at(1);
    let level0 = level0.iter().flat_map(|l| l.files().chunk_by(is_one));
    let below = below.iter().map(|l| l.files()).filter(|f| !f.is_empty());
    level0.chain(below).map(RunWeight::of).collect()
}

/// Bytes of the largest run that no other one deletes.
fn live_of_largest(runs: &[RunWeight]) -> u64 {
    let Some(at) = (0..runs.len()).max_by_key(|at| runs[*at].weight) else {
        return 0;
    };
    let largest = runs[at];
    let others = runs.iter().enumerate().filter(|(i, _)| *i != at);
    let (deleted, covered) = others.fold((0u64, 0u64), |n, (_, run)| {
        (n.0 + run.deletions, n.1.saturating_add(run.covered))
    });
    let mean = largest.weight / largest.entries.max(1);
    let gone = deleted.saturating_mul(mean).saturating_add(covered);
    largest.weight - gone.min(largest.weight)
}

impl SpaceUse {
    /// The space of a tree whose options bound it. Level 0 of a leveled one goes down to `base`.
    pub fn of(version: &Version, policy: &Policy, base: Level) -> Option<SpaceUse> {
        let merges = [CompactionStyle::Level, CompactionStyle::Universal];
        let percent = policy.max_space_amplification_percent;
        if percent == 0 || !merges.contains(&policy.compaction_style) {
            return None;
        }
        let runs = runs(version);
        let blobs = version.blob_files().values();
        let (mut in_files, mut garbage, mut live_blobs) = (0u64, 0u64, 0u64);
        for blob in blobs {
            in_files = in_files.saturating_add(blob.total_bytes + BLOB_FILE_EDGES);
            garbage = garbage.saturating_add(blob.garbage_bytes);
            live_blobs = live_blobs.saturating_add(blob.live_bytes());
        }
        let mut live = live_of_largest(&runs);
        if version.files().any(|(_, f)| f.blob_bytes().is_none()) {
            // Nobody looked into all tables: their values count as alive until then.
            live = live.saturating_add(live_blobs);
        }
        if seeded(Bug::SpaceWithoutGarbage) {
            in_files = live_blobs;
            garbage = 0;
        }
        let taken = version.bytes().saturating_add(in_files);
        let live = live.min(taken.saturating_sub(garbage));
        Some(SpaceUse {
            live,
            taken,
            garbage,
            hidden: taken.saturating_sub(garbage).saturating_sub(live),
            upper_runs: match policy.compaction_style {
                CompactionStyle::Level => level0_and_base(version, base),
                _ => all_but_the_oldest(&runs),
            },
            bound: bound(live, percent, policy),
        })
    }

    /// Bytes that plans may still write, with `beside` outside the tree and `running` that running
    /// plans may write.
    pub fn room(&self, beside: PendingSpace, running: u64) -> u64 {
        let running = if seeded(Bug::SpaceForgetsRunning) {
            0
        } else {
            running
        };
        let taken = (self.taken)
            .saturating_add(beside.total())
            .saturating_add(running);
        self.bound.saturating_sub(taken)
    }

    /// The load of the space, for writers: of the room without the reserve of jobs. Running plans
    /// count as far as they take more than that.
    pub fn load(&self, beside: PendingSpace, running: u64) -> f64 {
        let room = self.bound.saturating_sub(self.live) as f64;
        let mut merge = self.upper_runs.saturating_add(beside.memtables) as f64;
        if seeded(Bug::SpaceReserveTooSmall) {
            merge = 0.0;
        }
        let (least, most) = (1.0 - Zone::Near.begin(), Zone::Near.begin());
        let reserve = merge.clamp(room * least, room * most);
        let running = (running as f64 - reserve).max(0.0);
        let beyond = (self.taken - self.live).saturating_add(beside.total()) as f64 + running;
        let trigger = StallTrigger {
            slowdown: Zone::Near.begin(),
            stop: 1.0,
        };
        trigger.load(beyond / (room - reserve).max(1.0))
    }

    /// Tells whether values are to leave blob files for the garbage in them: as late as can be,
    /// since each file has more of it then.
    pub fn is_short(&self, beside: PendingSpace) -> bool {
        Zone::of(self.load(beside, 0)) >= Zone::Slow
    }

    /// Tells whether newer runs are to be merged into the last level: room runs short, and that may
    /// win more than a collection.
    pub fn hides_too_much(&self, beside: PendingSpace) -> bool {
        let is_near = Zone::of(self.load(beside, 0)) >= Zone::Near;
        is_near && self.hidden > 0 && self.hidden >= self.garbage
    }
}

/// Bytes that one merge of a leveled tree takes together. Where all lies in the base, a merge may
/// take little of it: that is the room of jobs then.
fn level0_and_base(version: &Version, base: Level) -> u64 {
    let is_last = version.deepest_level() == Some(base);
    let below = if is_last {
        0
    } else {
        version.level(base).bytes()
    };
    version.level(Level::L0).bytes().saturating_add(below)
}

/// Bytes that one merge of a universal tree takes together without its last run.
fn all_but_the_oldest(runs: &[RunWeight]) -> u64 {
    let above = runs.split_last().map_or(&[][..], |(_, above)| above);
    (above.iter()).fold(0, |sum, run| sum.saturating_add(run.tables))
}

/// Bytes that a tree may take of which so many are alive. As many memtables as start a merge, and
/// their merge, find room in any case.
fn bound(live: u64, percent: u32, policy: &Policy) -> u64 {
    let trigger = u64::from(policy.level0_file_num_compaction_trigger.max(1));
    let least = policy.write_buffer_size.saturating_mul(trigger * 2);
    let extra = u128::from(live) * u128::from(percent.saturating_sub(100)) / 100;
    let extra = u64::try_from(extra).unwrap_or(u64::MAX).max(least);
    live.saturating_add(extra)
}

/// Blob files that values are to leave for the garbage in them, ascending: those with the largest
/// part of garbage, however old they are. None has less than all files together, and what has to
/// move is at most `most` bytes, but for the first.
pub fn to_collect(version: &Version, most: u64) -> Vec<FileNo> {
    let part = |b: &BlobFile| b.garbage_bytes as f64 / b.total_bytes.max(1) as f64;
    let all = version.blob_files().values();
    let sums = all.clone().fold((0.0, 0.0), |n, b| {
        (n.0 + b.garbage_bytes as f64, n.1 + b.total_bytes as f64)
    });
    let mean = sums.0 / f64::max(sums.1, 1.0);
    let has_garbage = |b: &&Arc<TreeBlob>| b.garbage_bytes > 0 && part(b) >= mean;
    let mut found: Vec<_> = all.filter(has_garbage).collect();
    found.sort_by(|a, b| part(b).total_cmp(&part(a)).then(a.number.cmp(&b.number)));
    that_fit(&found, most)
}

/// The first of these files, ascending, as far as what has to move fits.
fn that_fit(found: &[&Arc<TreeBlob>], most: u64) -> Vec<FileNo> {
    let mut moved = 0u64;
    let fits = |b: &&&Arc<TreeBlob>| {
        let is_first = moved == 0;
        moved = moved.saturating_add(b.live_bytes());
        is_first || moved <= most
    };
    let mut files: Vec<_> = found.iter().take_while(fits).map(|b| b.number).collect();
    files.sort_unstable();
    files
}
