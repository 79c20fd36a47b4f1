//! The newest write of one key, by sequence number: what transactions look for conflicts with.
//!
//! Memtables are asked newest first: the open one, those that wait for their flush, and those that stay after it.
//! Each knows the sequence after which every write of the family went to it, so that the first that begins at or
//! before the sequence of interest ends the search. Any thread.

use super::get::{read_context, with_internal_key};
use crate::core::Core;
use crate::family::{Family, View};
use crate::memtable::MemTable;
use crate::options::ReadOptions;
use esker_files::table::LookupKey;
use esker_format::Seq;
use esker_format::key::trailer;
use esker_status::{Error, Result};

/// What is known of the newest write of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatestWrite {
    /// It has this sequence number, which may lie before the one that was asked about.
    At(u64),
    /// There is none after the sequence that was asked about.
    NoneSince,
    /// Memtables do not reach back far enough: they hold every write after this sequence only, if any is known.
    Unknown(Option<u64>),
}

/// Looks for writes of `user` after `since`.
pub(crate) fn find(
    core: &Core,
    family: &Family,
    user: &[u8],
    since: Seq,
    memory_only: bool,
) -> Result<LatestWrite> {
    if family.order.timestamp_size() > 0 {
        return Err(Error::not_supported(
            "looking for conflicts in a column family whose keys have timestamps",
        ));
    }
    let view = family.view();
    with_internal_key(user, None, Seq::MAX, |internal| {
        let mut reach = None;
        let mut joined = true;
        for mem in memtables(&view) {
            if let Some(seq) = in_memtable(mem, internal, user)? {
                return Ok(LatestWrite::At(seq.0));
            }
            match mem.begins_after().filter(|_| joined) {
                Some(seq) if seq <= since => return Ok(LatestWrite::NoneSince),
                Some(seq) => reach = Some(seq.0),
                // Older ones may hold the key all the same, but do not show how far back they reach.
                None => joined = false,
            }
        }
        if memory_only {
            return Ok(LatestWrite::Unknown(reach));
        }
        Ok(match in_tables(core, family, &view, internal)? {
            Some(seq) => LatestWrite::At(seq.0),
            None => LatestWrite::NoneSince,
        })
    })
}

/// The memtables of a view that join up, newest first.
fn memtables(view: &View) -> impl Iterator<Item = &MemTable> {
    std::iter::once(&view.mem)
        .chain(&view.immutable)
        .chain(&view.history)
        .map(|m| &**m)
}

/// The newest write in one memtable; a range deletion over the key counts.
fn in_memtable(mem: &MemTable, internal: &[u8], user: &[u8]) -> Result<Option<Seq>> {
    if mem.is_empty() {
        return Ok(None);
    }
    let mut newest = mem.covering_seq(user, Seq::MAX)?;
    mem.get(internal, |key, _| {
        newest = newest.max(Seq(trailer(key) >> 8));
        false
    });
    Ok((newest > Seq::ZERO).then_some(newest))
}

/// The newest write in the tables; they hold older writes level by level.
fn in_tables(core: &Core, family: &Family, view: &View, internal: &[u8]) -> Result<Option<Seq>> {
    let key = LookupKey::new(internal, 0);
    let ctx = read_context(&ReadOptions::default());
    let mut newest = None;
    for (level, file) in view.version.candidates(internal) {
        let table = core.tables.get(file, level, &family.reading)?;
        if let Some(t) = table.tombstones()? {
            let clip = esker_lsm::tombstone::Clip::from_boundaries(&file.smallest, &file.largest);
            if clip.contains(&family.order, key.user()) {
                let covering = t.max_covering_seq(key.user(), Seq::MAX);
                newest = newest.max((covering > Seq::ZERO).then_some(covering));
            }
        }
        table.reader.get(&ctx, &key, |entry| {
            newest = newest.max(Some(Seq(trailer(entry.key()) >> 8)));
            false
        })?;
        if newest.is_some() {
            break;
        }
    }
    Ok(newest)
}
