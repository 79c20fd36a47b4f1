//! The newest write of one key, by sequence number: what transactions look for conflicts with.
//!
//! Memtables are asked newest first: the open one, those that wait for their flush, and those that
//! stay after it. Each knows the sequence after which every write of the family went to it, so that
//! the first that begins at or before the sequence of interest ends the search. Any thread.

use super::get::{read_context, with_internal_key};
use crate::core::ReadCore;
use crate::family::{Family, View};
use crate::memtable::MemTable;
use crate::options::ReadOptions;
use esker_files::table::LookupKey;
use esker_format::Seq;
use esker_format::key::{trailer, user_key};
use esker_format::timestamp;
use esker_lsm::tombstone::{Clip, FragmentedTombstones};
use esker_status::Result;

/// The newest write of a key, as far as memory knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LatestWrite {
    /// It has this sequence number, which may lie before the one that was asked about.
    At(u64),
    /// The sequence and the timestamp of the write, in a family with timestamps.
    AtTimestamp(u64, Vec<u8>),
    /// There is none after the sequence that was asked about.
    NoneSince,
    /// Memtables do not reach back far enough: they hold every write after this sequence only, if
    /// any is known.
    Unknown(Option<u64>),
}

/// Looks for writes of `user` after `since`.
pub(crate) fn find(
    core: &ReadCore,
    family: &Family,
    user: &[u8],
    since: Seq,
    memory_only: bool,
) -> Result<LatestWrite> {
    let view = family.view();
    let size = family.order.timestamp_size();
    // The newest version sorts first.
    let newest = vec![timestamp::GREATEST; size];
    let at = |found: NewestWrite| match size {
        0 => LatestWrite::At(found.seq.0),
        _ => LatestWrite::AtTimestamp(found.seq.0, found.timestamp),
    };
    with_internal_key(user, (size > 0).then_some(&newest), Seq::MAX, |internal| {
        let mut reach = None;
        let mut joined = true;
        for mem in memtables(&view) {
            if let Some(found) = in_memtable(mem, internal, user_key(internal), size)? {
                return Ok(at(found));
            }
            match mem.begins_after().filter(|_| joined) {
                Some(seq) if seq <= since => return Ok(LatestWrite::NoneSince),
                Some(seq) => reach = Some(seq.0),
                // Older ones may hold the key all the same, but do not show how far back they
                // reach.
                None => joined = false,
            }
        }
        if memory_only {
            return Ok(LatestWrite::Unknown(reach));
        }
        Ok(match in_tables(core, family, &view, internal)? {
            Some(found) => at(found),
            None => LatestWrite::NoneSince,
        })
    })
}

/// A write that was found.
struct NewestWrite {
    seq: Seq,
    timestamp: Vec<u8>,
}

impl NewestWrite {
    fn new(internal: &[u8], size: usize) -> Self {
        NewestWrite {
            seq: Seq(trailer(internal) >> 8),
            timestamp: timestamp::of(user_key(internal), size).to_vec(),
        }
    }

    /// The newest range deletion of a key.
    fn covering(tombstones: &FragmentedTombstones, user: &[u8]) -> Option<Self> {
        let (seq, at) = tombstones.newest_covering(user, Seq::MAX)?;
        let timestamp = at.to_vec();
        Some(NewestWrite { seq, timestamp })
    }
}

/// The newer of two.
fn newer(a: Option<NewestWrite>, b: Option<NewestWrite>) -> Option<NewestWrite> {
    a.into_iter().chain(b).max_by_key(|found| found.seq)
}

/// The memtables of a view that join up, newest first.
fn memtables(view: &View) -> impl Iterator<Item = &MemTable> {
    std::iter::once(&view.mem)
        .chain(&view.immutable)
        .chain(&view.history)
        .map(|m| &**m)
}

/// The newest write in one memtable; a range deletion over the key counts.
fn in_memtable(
    mem: &MemTable,
    internal: &[u8],
    user: &[u8],
    size: usize,
) -> Result<Option<NewestWrite>> {
    if mem.is_empty() {
        return Ok(None);
    }
    let tombstones = mem.tombstones()?;
    let mut newest = tombstones.and_then(|t| NewestWrite::covering(&t, user));
    mem.get(internal, |key, _| {
        newest = newer(newest.take(), Some(NewestWrite::new(key, size)));
        false
    });
    Ok(newest)
}

/// The newest write in the tables; they hold older writes level by level.
fn in_tables(
    core: &ReadCore,
    family: &Family,
    view: &View,
    internal: &[u8],
) -> Result<Option<NewestWrite>> {
    let size = family.order.timestamp_size();
    let key = LookupKey::new(internal, size);
    let ctx = read_context(&ReadOptions::default());
    let mut newest = None;
    for (level, file) in view.version.candidates(internal) {
        let table = core.tables.get(file, level, &family.reading)?;
        if let Some(t) = table.tombstones()? {
            let clip = Clip::from_boundaries(&file.smallest, &file.largest, &family.order);
            if clip.contains(&family.order, key.user()) {
                newest = newer(newest, NewestWrite::covering(t, key.user()));
            }
        }
        table.reader.get(&ctx, &key, |entry| {
            newest = newer(newest.take(), Some(NewestWrite::new(entry.key(), size)));
            false
        })?;
        if newest.is_some() {
            break;
        }
    }
    Ok(newest)
}
