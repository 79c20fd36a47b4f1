//! From the records of a batch to memtables: the one way in, for writers and for recovery alike.

use crate::memtable::MemTable;
use esker_format::batch::{Record, Records};
use esker_format::{FamilyId, Seq, ValueType};
use esker_status::{Error, Result};

/// Where the records of each family go.
pub(crate) trait Memtables {
    /// Runs `f` on the memtable that takes the family's records; `Ok(false)` when they are to be skipped.
    fn with(&mut self, family: FamilyId, f: impl FnOnce(&MemTable) -> Result<()>) -> Result<bool>;

    /// The record as the family's order has its keys.
    #[inline]
    fn adjust<'r>(&self, record: Record<'r>) -> Result<Record<'r>> {
        Ok(record)
    }
}

/// Inserts every counted record, the first at `first`, each at the next sequence number; returns how many
/// numbers that took. Records of families that `to` skips take their number all the same.
pub(crate) fn insert(mut records: Records<'_>, first: Seq, to: &mut impl Memtables) -> Result<u64> {
    let mut seq = first;
    for record in records.by_ref() {
        let record = record?;
        if !record.is_counted() {
            check_marker(&record)?;
            continue;
        }
        let record = to.adjust(record)?;
        let family = record.family().unwrap_or(FamilyId::DEFAULT);
        to.with(family, |mem| add(mem, seq, &record))?;
        seq = seq.next();
    }
    Ok(seq.0 - first.0)
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

/// Markers of two-phase commit need a transaction layer that keeps what is prepared.
fn check_marker(record: &Record<'_>) -> Result<()> {
    match record {
        Record::LogData(_) | Record::Noop => Ok(()),
        _ => Err(
            Error::not_supported("the log holds records of two-phase commit").with_hint(
                "open the database with the transaction layer that wrote it, and let it finish",
            ),
        ),
    }
}

#[cfg(test)]
mod tests;
