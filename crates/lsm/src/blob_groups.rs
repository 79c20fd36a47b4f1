//! Sorted groups of blob files in a tree: which of them values leave in a merge, and how many a
//! walk meets.
//!
//! All medium values that one flush or one merge writes are a group, of the level that their keys
//! go to. A value moves when its key does, and only into one of the last two levels: above, a merge
//! passes its index on. In the level of its group it stays, unless a table there refers to more
//! than [`GROUPS_MOST`]: what overlaps that much is written anew with the merge that comes by, or
//! with one that scans have paid for. Universal trees number their levels from the last run up, so
//! that the rule is one of the last two runs; where all runs lie in level 0, as with one level, no
//! value moves. Pure functions of a version.

use crate::file::FileMeta;
use crate::version::Version;
use esker_format::blob_groups::{BlobGroup, BlobGroups, BlobTier};
use esker_format::{FileNo, Level};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most groups of one level that a table refers to before they are written anew: a walk reads so
/// many blob files ahead.
pub const GROUPS_MOST: usize = 8;
/// Tables that stand for all of a level.
const TABLES_ASKED: usize = 4;

/// Values that leave the groups that they are in, for one of a merge's output.
#[derive(Clone, Debug, Default)]
pub struct RegroupedValues {
    /// The files that they leave, ascending.
    pub files: Arc<[FileNo]>,
    /// Bytes of their records.
    pub bytes: u64,
}

/// The files of groups that a table refers to, with the bytes of its values. A table that does not
/// say it may refer to all from its oldest one on.
fn groups_of<'v>(
    version: &'v Version,
    table: &'v FileMeta,
) -> Box<dyn Iterator<Item = (FileNo, BlobGroup, u64)> + 'v> {
    let Some(oldest) = table.oldest_blob_file else {
        return Box::new(std::iter::empty());
    };
    let all = version.blob_files();
    match table.blob_shares.get() {
        Some(shares) => Box::new(shares.iter().filter_map(move |(file, bytes)| {
            let group = all.get(&file)?.tier.group()?;
            Some((file, group, bytes))
        })),
        None => Box::new(all.range(oldest..).filter_map(|(file, blob)| {
            let group = blob.tier.group()?;
            Some((*file, group, 0))
        })),
    }
}

/// The groups that a table refers to.
fn count(version: &Version, table: &FileMeta) -> usize {
    let groups = groups_of(version, table).map(|(_, group, _)| group.number);
    groups.collect::<BTreeSet<_>>().len()
}

/// Groups beyond the first that a walk meets in the last level: the mean of some tables.
pub fn extra_groups(version: &Version) -> usize {
    let deepest = version.deepest_level();
    let Some(deepest) = deepest.filter(|_| !version.blob_files().is_empty()) else {
        return 0;
    };
    let tables = version.level(deepest).files();
    let asked = tables.iter().step_by(tables.len().div_ceil(TABLES_ASKED));
    let extra = asked.map(|f| count(version, f).saturating_sub(1));
    let (sum, tables) = extra.fold((0, 0), |(sum, n), extra| (sum + extra, n + 1));
    sum / tables.max(1)
}

/// Returns whether a merge into `output` moves medium values: it is one of the last two levels.
fn moves_values(version: &Version, output: Level) -> bool {
    let last = version.deepest_level().unwrap_or(Level::L0).max(output);
    output > Level::L0 && output.0 + 1 >= last.0
}

/// Values that leave their groups in a merge of `tables` into `output`. Values move from the level
/// `first` of a tree on.
pub(crate) fn regrouped<'f>(
    version: &Version,
    first: Option<Level>,
    tables: impl Iterator<Item = &'f Arc<FileMeta>> + Clone,
    output: Level,
) -> RegroupedValues {
    if first.is_none_or(|first| output < first) || !moves_values(version, output) {
        return RegroupedValues::default();
    }
    let mut left = BTreeSet::new();
    for table in tables.clone() {
        let overlaps = count(version, table) > GROUPS_MOST;
        let groups = groups_of(version, table);
        let leaves = groups.filter(|(_, group, _)| overlaps || group.level < output);
        left.extend(leaves.map(|(file, ..)| file));
    }
    of_files(left, tables)
}

/// All values of some tables that are in groups leave these.
pub(crate) fn gathered<'f>(
    version: &Version,
    tables: impl Iterator<Item = &'f Arc<FileMeta>> + Clone,
) -> RegroupedValues {
    let files = tables.clone().flat_map(|f| groups_of(version, f));
    of_files(files.map(|(file, ..)| file).collect(), tables)
}

fn of_files<'f>(
    files: BTreeSet<FileNo>,
    tables: impl Iterator<Item = &'f Arc<FileMeta>>,
) -> RegroupedValues {
    let share = |f: &Arc<FileMeta>| -> u64 {
        let shares = files.iter().filter_map(|file| f.blob_share(*file));
        shares.fold(0, u64::saturating_add)
    };
    RegroupedValues {
        bytes: tables.map(share).fold(0, u64::saturating_add),
        files: files.iter().copied().collect(),
    }
}

/// Groups beyond the first that a table refers to, and the bytes of its values in all of them.
pub(crate) fn overlap(version: &Version, table: &FileMeta) -> (usize, u64) {
    let bytes = groups_of(version, table).map(|(.., bytes)| bytes);
    let bytes = bytes.fold(0, u64::saturating_add);
    (count(version, table).saturating_sub(1), bytes)
}

/// Returns whether the tiers of some blob files of a tree are not known.
pub fn has_unknown(version: &Version) -> bool {
    let mut blobs = version.blob_files().values();
    blobs.any(|b| b.tier == BlobTier::Unknown)
}

/// The tree in which blob files whose tier nobody said are of the groups that tables name, and of
/// large values where none does.
pub fn with_tiers(version: &Version, named: &BlobGroups) -> Version {
    let mut next = version.clone();
    for (number, blob) in Arc::make_mut(&mut next.blobs) {
        if blob.tier == BlobTier::Unknown {
            let known = named.of(*number).map(BlobTier::Medium);
            Arc::make_mut(blob).file.tier = known.unwrap_or(BlobTier::Large);
        }
    }
    next
}

/// The blob files of a level's groups in sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSums {
    /// Groups.
    pub groups: usize,
    /// Their files.
    pub files: usize,
    /// Bytes of their records.
    pub bytes: u64,
    /// Bytes of those that no table refers to.
    pub garbage: u64,
}

/// The groups of a tree, by level.
pub fn sums(version: &Version) -> BTreeMap<Level, GroupSums> {
    let mut seen = BTreeSet::new();
    let mut levels: BTreeMap<Level, GroupSums> = BTreeMap::new();
    for blob in version.blob_files().values() {
        let Some(group) = blob.tier.group() else {
            continue;
        };
        let sums = levels.entry(group.level).or_default();
        sums.groups += usize::from(seen.insert(group));
        sums.files += 1;
        sums.bytes = sums.bytes.saturating_add(blob.total_bytes);
        sums.garbage = sums.garbage.saturating_add(blob.garbage_bytes);
    }
    levels
}
