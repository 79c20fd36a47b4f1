//! The strict checker of a tree: what must hold before another engine may see the MANIFEST.
//!
//! [`crate::edit::apply`] checks what an edit can have broken; [`verify`] checks everything, for
//! open, for tests and for the doctor. RocksDB 11.9 drops every table of a family whose version
//! fails these checks, so nothing that fails them may ever be written.

use crate::file::{FileMeta, compare_boundary, sort_newest_first};
use crate::version::{BlobFile, Version};
use esker_format::{FileNo, KeyOrder, Level, ParsedKey, Seq};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// One file alone: boundaries that parse and are in order, and sequences that are.
pub fn file(order: &KeyOrder, f: &FileMeta) -> Result<()> {
    let wrong = |what: String| Error::corruption(format!("table {}: {what}", f.number));
    if f.timestamps_stripped && order.timestamp_size() > 0 {
        return Err(Error::not_supported(format!(
            "table {}: its keys lost their timestamps (persist_user_defined_timestamps)",
            f.number
        ))
        .with_hint("open the column family with the same comparator without timestamps"));
    }
    for edge in [&f.smallest, &f.largest] {
        let key = ParsedKey::parse(edge.as_bytes()).map_err(|e| wrong(e.message().to_owned()))?;
        if key.user.len() < order.timestamp_size() {
            return Err(wrong("a boundary is shorter than its timestamp".to_owned()));
        }
    }
    let (smallest, largest) = (f.smallest.as_bytes(), f.largest.as_bytes());
    if smallest != largest && order.compare_internal(smallest, largest).is_gt() {
        return Err(wrong(format!(
            "smallest key {:?} is after largest key {:?}",
            f.smallest, f.largest
        )));
    }
    if f.smallest_seq > f.largest_seq {
        return Err(wrong(format!(
            "smallest sequence {} exceeds largest {}",
            f.smallest_seq, f.largest_seq
        )));
    }
    if f.largest_seq >= Seq::MAX {
        return Err(wrong(format!(
            "largest sequence {} is reserved",
            f.largest_seq
        )));
    }
    if f.number == FileNo(0) || f.number >= FileNo::LIMIT {
        return Err(wrong("the number is out of range".to_owned()));
    }
    if f.tail_size > f.size {
        return Err(wrong(format!(
            "tail of {} bytes in a file of {}",
            f.tail_size, f.size
        )));
    }
    Ok(())
}

/// Two neighbours of a sorted level: disjoint as internal keys.
pub fn neighbours(order: &KeyOrder, level: Level, left: &FileMeta, right: &FileMeta) -> Result<()> {
    if order
        .compare_internal(left.largest.as_bytes(), right.smallest.as_bytes())
        .is_lt()
    {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "level {level}: table {} ends at {:?}, at or after {:?} where table {} begins",
        left.number, left.largest, right.smallest, right.number
    )))
}

/// Level 0: files of one epoch number do not overlap.
pub fn level0(order: &KeyOrder, files: &[Arc<FileMeta>]) -> Result<()> {
    let mut by_epoch: BTreeMap<u64, Vec<&FileMeta>> = BTreeMap::new();
    for f in files.iter().filter(|f| f.epoch != 0) {
        by_epoch.entry(f.epoch).or_default().push(f);
    }
    for same in by_epoch.values_mut().filter(|same| same.len() > 1) {
        same.sort_by(|a, b| order.compare_internal(a.smallest.as_bytes(), b.smallest.as_bytes()));
        for pair in same.windows(2) {
            if compare_boundary(
                order,
                pair[0].largest.as_bytes(),
                pair[1].smallest.as_bytes(),
            )
            .is_ge()
            {
                return Err(Error::corruption(format!(
                    "level 0: tables {} and {} have epoch {} and overlap",
                    pair[0].number, pair[1].number, pair[0].epoch
                )));
            }
        }
    }
    Ok(())
}

/// A table that would come to lie on the wrong side of another: newer data below older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaking {
    /// The table that leaves its level.
    pub table: FileNo,
    /// Where it is.
    pub from: Level,
    /// Where its data goes.
    pub to: Level,
    /// A table that stays, has keys of the same range and may be older, or newer on a way up.
    pub passed: FileNo,
    /// The level of that one.
    pub at: Level,
}

impl fmt::Display for Overtaking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overtaking {
            table,
            from,
            to,
            passed,
            at,
        } = self;
        write!(
            f,
            "table {table} of level {from} would go to level {to} past table {passed} of level {at}"
        )
    }
}

/// Tells whether a seeded bug is without the guard that would take its edge away.
fn is_unguarded() -> bool {
    let bugs = [
        Bug::ReadsMergeNewestAlone,
        Bug::BaseOfAnotherVersion,
        Bug::MovePastOutputs,
        Bug::MoveUnreserved,
        Bug::FilesBetweenLeft,
        Bug::IngestPastOutputs,
    ];
    bugs.into_iter().any(seeded)
}

/// The first table that `leaving` would pass on their way to level `to`; `leaving` are all tables
/// that one change takes away from where they are in `version`.
///
/// On the way down no table that stays may have keys of the range, unless all of it is newer. On
/// the way up none may at all. Level 0 is in the order of epochs, and what a merge writes there has
/// the epoch of its oldest input.
pub fn overtaking<'f>(
    version: &Version,
    leaving: impl Iterator<Item = (Level, &'f Arc<FileMeta>)> + Clone,
    to: Level,
) -> Option<Overtaking> {
    if is_unguarded() {
        return None;
    }
    let gone: HashSet<FileNo> = leaving.clone().map(|(_, f)| f.number).collect();
    let stays = |x: &&Arc<FileMeta>| !gone.contains(&x.number);
    let level0 = version.level(Level::L0).files();
    let last = level0.iter().rposition(|f| gone.contains(&f.number));
    leaving.into_iter().find_map(|(from, f)| {
        let levels = if from <= to {
            from.0 + 1..=to.0
        } else {
            to.0..=from.0 - 1
        };
        let on_the_way = levels.filter(|l| *l > 0).map(Level).flat_map(|level| {
            let files = version.level(level);
            let (lo, hi) = (f.smallest.as_bytes(), f.largest.as_bytes());
            let met = files.overlapping(version.order(), Some(lo), Some(hi));
            let is_newer = |x: &FileMeta| from < to && x.smallest_seq > f.largest_seq;
            let met = files.files()[met].iter().filter(stays);
            met.filter(move |x| !is_newer(x)).map(move |x| (level, x))
        });
        let passed0 = match (from, to) {
            (Level::L0, _) => {
                let own = level0.iter().position(|x| x.number == f.number);
                let behind = own.map_or(0, |own| own + 1);
                // In itself level 0 keeps what is behind the last input behind the output.
                let end = last
                    .filter(|_| to == Level::L0)
                    .map_or(level0.len(), |n| n + 1);
                &level0[behind.min(end)..end]
            }
            (_, Level::L0) => level0,
            _ => &[],
        };
        // What comes up to level 0 lies there by its epoch.
        let is_passed = |x: &FileMeta| from == Level::L0 || x.epoch <= f.epoch;
        let passed0 = passed0.iter().filter(stays);
        let passed0 = passed0.filter(|x| is_passed(x) && meet(version.order(), f, x));
        let (at, passed) = on_the_way.chain(passed0.map(|x| (Level::L0, x))).next()?;
        Some(Overtaking {
            table: f.number,
            from,
            to,
            passed: passed.number,
            at,
        })
    })
}

/// Returns whether the sequence numbers of two files that have keys of one range interleave: then
/// these do not tell which is newer. `files` are in order by sequence, newest first.
pub fn interleave(order: &KeyOrder, files: &[Arc<FileMeta>]) -> bool {
    files.iter().enumerate().any(|(n, newer)| {
        let older = files[n + 1..].iter();
        let mut unsure = older.filter(|f| f.largest_seq >= newer.smallest_seq);
        unsure.any(|f| meet(order, newer, f))
    })
}

/// Tells whether two files have user keys of one range.
fn meet(order: &KeyOrder, a: &FileMeta, b: &FileMeta) -> bool {
    let begins_by_the_end_of = |a: &FileMeta, b: &FileMeta| {
        compare_boundary(order, a.smallest.as_bytes(), b.largest.as_bytes()).is_le()
    };
    begins_by_the_end_of(a, b) && begins_by_the_end_of(b, a)
}

/// A blob file: garbage within the totals, and something left when tables link to it.
pub fn blob(b: &BlobFile) -> Result<()> {
    let wrong = |what| Err(Error::corruption(format!("blob file {}: {what}", b.number)));
    if b.garbage_count > b.total_count || b.garbage_bytes > b.total_bytes {
        return wrong("more garbage than contents");
    }
    if b.linked_tables > 0 && b.garbage_count == b.total_count {
        return wrong("entirely garbage, but tables link to it");
    }
    Ok(())
}

/// Checks a whole version.
pub fn verify(v: &Version) -> Result<()> {
    let mut seen = HashSet::new();
    for (level, f) in v.files() {
        if !seen.insert(f.number) {
            return Err(Error::corruption(format!(
                "table {} is twice in the version (level {level})",
                f.number
            )));
        }
        file(v.order(), f)?;
    }
    for (level, files) in (0u8..).map(Level).zip(v.levels()) {
        if level == Level::L0 {
            verify_level0(v.order(), files.files())?;
            continue;
        }
        for pair in files.files().windows(2) {
            neighbours(v.order(), level, &pair[0], &pair[1])?;
        }
    }
    verify_blobs(v)
}

fn verify_level0(order: &KeyOrder, files: &[Arc<FileMeta>]) -> Result<()> {
    let mut sorted = files.to_vec();
    sort_newest_first(&mut sorted);
    if let Some((a, b)) = files
        .iter()
        .zip(&sorted)
        .find(|(a, b)| a.number != b.number)
    {
        let text = format!(
            "level 0 is not newest first: table {} where {} belongs",
            a.number, b.number
        );
        return Err(Error::corruption(text));
    }
    level0(order, files)
}

fn verify_blobs(v: &Version) -> Result<()> {
    let mut any_linked = false;
    for b in v.blob_files().values() {
        blob(b)?;
        let links = v
            .files()
            .filter(|(_, f)| f.oldest_blob_file == Some(b.number))
            .count() as u64;
        if links != b.linked_tables {
            let text = format!(
                "blob file {} counts {} linked tables of {links}",
                b.number, b.linked_tables
            );
            return Err(Error::corruption(text));
        }
        any_linked |= links > 0;
        if !any_linked {
            return Err(Error::corruption(format!(
                "blob file {} is older than all that tables link to",
                b.number
            )));
        }
    }
    Ok(())
}
