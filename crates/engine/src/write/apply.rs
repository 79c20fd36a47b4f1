//! From the records of a batch to memtables: the one way in, for writers and for recovery alike.

use super::prepared::Sections;
use crate::memtable::MemTable;
use esker_format::batch::{PrepareKind, Record, Records, WriteBatch};
use esker_format::{FamilyId, Seq, ValueType};
use esker_status::{Error, Result};

/// Where the records of each family go.
pub(crate) trait Memtables {
    /// Runs `f` on the memtable that takes the family's records; `Ok(false)` when they are to be
    /// skipped.
    fn with(&mut self, family: FamilyId, f: impl FnOnce(&MemTable) -> Result<()>) -> Result<bool>;

    /// The record as the family's order has its keys.
    #[inline]
    fn adjust<'r>(&self, record: Record<'r>) -> Result<Record<'r>> {
        Ok(record)
    }

    /// Bytes of timestamp in the keys of a family; `None` for one that is not there.
    fn timestamp_size(&self, _family: FamilyId) -> Option<usize> {
        None
    }

    /// Returns the prepared sections of the logs, when they are replayed.
    #[inline]
    fn sections(&mut self) -> Option<&mut Sections> {
        None
    }
}

/// Inserts every counted record, the first at `first`, each at the next sequence number; returns
/// how many numbers that took. Records of families that `to` skips take their number all the same;
/// prepared ones take theirs when they are committed.
pub(crate) fn insert(mut records: Records<'_>, first: Seq, to: &mut impl Memtables) -> Result<u64> {
    let mut seq = first;
    for record in records.by_ref() {
        let record = record?;
        if !record.is_counted() {
            if let Some(committed) = mark(&record, to)? {
                for record in committed.records() {
                    insert_one(&record?, &mut seq, to)?;
                }
            }
            continue;
        }
        let record = to.adjust(record)?;
        if to.sections().is_some_and(|s| s.is_open()) {
            if let Some(sections) = to.sections() {
                sections.add(&record)?;
            }
            continue;
        }
        insert_one(&record, &mut seq, to)?;
    }
    if let Some(sections) = to.sections() {
        sections.check_closed()?;
    }
    Ok(seq.0 - first.0)
}

#[inline]
fn insert_one(record: &Record<'_>, seq: &mut Seq, to: &mut impl Memtables) -> Result<()> {
    let family = record.family().unwrap_or(FamilyId::DEFAULT);
    to.with(family, |mem| add(mem, *seq, record))?;
    *seq = seq.next();
    Ok(())
}

/// Takes a record that counts for nothing; returns the batch of the transaction that it commits.
fn mark(record: &Record<'_>, to: &mut impl Memtables) -> Result<Option<WriteBatch>> {
    match (record, to.sections()) {
        // The writer of a rollback knows what is in memory.
        (Record::LogData(_) | Record::Noop | Record::Rollback { .. }, None) => Ok(None),
        (Record::LogData(_) | Record::Noop, Some(_)) => Ok(None),
        (Record::BeginPrepare(PrepareKind::Committed), Some(sections)) => {
            sections.begin().map(|()| None)
        }
        (Record::EndPrepare { xid }, Some(sections)) => sections.end(xid).map(|()| None),
        (Record::Rollback { xid }, Some(sections)) => {
            sections.take(xid);
            Ok(None)
        }
        // Without its section it was in tables before the section's log went.
        (Record::Commit { xid }, Some(sections)) => Ok(sections.take(xid)),
        (Record::CommitWithTimestamp { timestamp, xid }, Some(sections)) => {
            let section = sections.take(xid);
            section.map(|s| stamped(s, timestamp, to)).transpose()
        }
        _ => Err(Error::not_supported(
            "the log holds records of two-phase commit under a policy other than write-committed",
        )
        .with_hint("open the database with the program that wrote it, and let it finish")),
    }
}

/// The section with the timestamp of its commit in its keys, which have room for it. Families that
/// are gone have no need of it.
fn stamped(section: WriteBatch, timestamp: &[u8], to: &impl Memtables) -> Result<WriteBatch> {
    let mut batch = WriteBatch::from_bytes(section.into_bytes())?;
    batch.update_timestamps(timestamp, |family| {
        Some(to.timestamp_size(family).unwrap_or(0))
    })?;
    Ok(batch)
}

fn add(mem: &MemTable, seq: Seq, record: &Record<'_>) -> Result<()> {
    match *record {
        Record::Put { key, value, .. } => mem.add(seq, ValueType::Value, key, value),
        Record::Delete { key, .. } => mem.add_deletion(seq, key),
        Record::SingleDelete { key, .. } => mem.add(seq, ValueType::SingleDeletion, key, b""),
        Record::Merge { key, operand, .. } => mem.add(seq, ValueType::Merge, key, operand),
        Record::DeleteRange { begin, end, .. } => mem.add_range_tombstone(seq, begin, end),
        Record::PutEntity { key, entity, .. } => {
            mem.add(seq, ValueType::WideColumnEntity, key, entity)
        }
        Record::BlobIndex { key, index, .. } => mem.add(seq, ValueType::BlobIndex, key, index),
        Record::TimedPut { key, packed, .. } => {
            mem.add(seq, ValueType::ValuePreferredSeqno, key, packed)
        }
        _ => Err(Error::corruption(
            "a record that takes a sequence number but holds no data",
        )),
    }
}

#[cfg(test)]
mod tests;
