//! Transactions that are prepared and neither committed nor undone: in a log that is replayed, and
//! in an open database.
//!
//! A section of the log holds the records of a prepared transaction between a begin and an end with
//! its name. Here a commit writes the records once more, with a record that undoes the section, in
//! one batch, in which the commit-time batch comes first: what is committed needs no section, and a
//! log can go as soon as its data is in tables. What is still prepared is written into each new log
//! at its start, so that the newest log has all of it. Recovery also understands a commit by name,
//! as RocksDB writes it.
//!
//! Thread-safety: [`PreparedTransactions`] changes under the log lock only.

use super::log_state::LogState;
use esker_format::Seq;
use esker_format::batch::{PrepareKind, Record, WriteBatch};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::{Mutex, Rank};
use std::collections::BTreeMap;

/// Names and batches.
pub(crate) type NamedBatches = BTreeMap<Vec<u8>, WriteBatch>;

/// The sections of logs that are replayed.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    prepared: NamedBatches,
    open: Option<WriteBatch>,
    were_met: bool,
}

impl Sections {
    /// Returns whether a section began at any time.
    pub(crate) fn were_met(&self) -> bool {
        self.were_met
    }

    /// Returns whether records belong to a section.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// A section begins.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.were_met = true;
        match self.open.replace(WriteBatch::new()) {
            None => Ok(()),
            Some(_) => Err(Error::corruption("a prepared section inside another")),
        }
    }

    /// A record of the section.
    pub(crate) fn add(&mut self, record: &Record<'_>) -> Result<()> {
        let Some(batch) = &mut self.open else {
            return Err(Error::corruption("a record outside of its section"));
        };
        match *record {
            Record::Put { family, key, value } => batch.put_cf(family, key, value),
            Record::Delete { family, key } => batch.delete_cf(family, key),
            Record::SingleDelete { family, key } => batch.single_delete_cf(family, key),
            Record::Merge {
                family,
                key,
                operand,
            } => batch.merge_cf(family, key, operand),
            Record::DeleteRange { family, begin, end } => batch.delete_range_cf(family, begin, end),
            Record::PutEntity {
                family,
                key,
                entity,
            } => batch.put_encoded_entity_cf(family, key, entity),
            Record::BlobIndex { family, key, index } => batch.put_blob_index_cf(family, key, index),
            _ => Err(Error::not_supported("a prepared record of this kind")),
        }
    }

    /// The section ends and has a name.
    pub(crate) fn end(&mut self, name: &[u8]) -> Result<()> {
        match self.open.take() {
            Some(batch) => {
                self.prepared.insert(name.to_vec(), batch);
                Ok(())
            }
            None => Err(Error::corruption(
                "a prepared section ends that did not begin",
            )),
        }
    }

    /// Takes a section out.
    pub(crate) fn take(&mut self, name: &[u8]) -> Option<WriteBatch> {
        self.prepared.remove(name)
    }

    /// Forgets a section that began in a batch that is given up.
    pub(crate) fn give_up(&mut self) {
        self.open = None;
    }

    /// Sections are whole in their batch.
    pub(crate) fn check_closed(&self) -> Result<()> {
        match self.open {
            None => Ok(()),
            Some(_) => Err(Error::corruption("a prepared section does not end")),
        }
    }

    /// Returns the transactions that are prepared at the end of the logs.
    pub(crate) fn into_prepared(self) -> NamedBatches {
        self.prepared
    }
}

/// Prepared transactions of an open database.
#[derive(Debug)]
pub(crate) struct PreparedTransactions {
    /// By name: the log record that prepares it anew.
    records: Mutex<NamedBatches>,
    /// Transactions that recovery found and no application has taken over.
    recovered: Mutex<NamedBatches>,
}

impl PreparedTransactions {
    pub(crate) fn new() -> Self {
        PreparedTransactions {
            records: Mutex::new(Rank::LEAF, NamedBatches::new()),
            recovered: Mutex::new(Rank::LEAF, NamedBatches::new()),
        }
    }

    /// Takes what recovery found.
    pub(crate) fn adopt(&self, found: NamedBatches) -> Result<()> {
        let mut records = NamedBatches::new();
        for (name, batch) in &found {
            records.insert(name.clone(), record_of(name, batch)?);
        }
        *self.records.lock() = records;
        *self.recovered.lock() = found;
        Ok(())
    }

    /// Takes the transactions that recovery found.
    pub(crate) fn take_recovered(&self) -> NamedBatches {
        std::mem::take(&mut *self.recovered.lock())
    }

    /// Takes note of what was prepared by `record`.
    pub(crate) fn add(&self, name: &[u8], record: WriteBatch) {
        self.records.lock().insert(name.to_vec(), record);
    }

    /// Forgets what was committed or undone.
    pub(crate) fn remove(&self, name: &[u8]) {
        self.records.lock().remove(name);
    }

    /// Writes all that is prepared into a new log, and syncs it: older logs may go from then on.
    pub(crate) fn write_into(&self, log: &mut LogState, next: Seq) -> Result<()> {
        // The log lock is held: no other thread looks at the records meanwhile.
        let mut records = std::mem::take(&mut *self.records.lock());
        if records.is_empty() || seeded(Bug::PreparedLeftBehind) {
            *self.records.lock() = records;
            return Ok(());
        }
        let written = records.values_mut().try_for_each(|record| {
            record.set_seq(next);
            log.append(&[record.data()])
        });
        *self.records.lock() = records;
        written.and_then(|()| log.sync_written())
    }
}

/// The log record that prepares `batch` as `name`, whether it was prepared before or not.
pub(crate) fn record_of(name: &[u8], batch: &WriteBatch) -> Result<WriteBatch> {
    let mut section = WriteBatch::with_capacity(batch.data_size() + 2 * name.len() + 16);
    section.mark_noop()?;
    section.append(batch, false)?;
    section.mark_end_prepare(PrepareKind::Committed, name)?;
    let mut record = WriteBatch::with_capacity(section.data_size() + name.len() + 16);
    record.mark_rollback(name)?;
    record.append(&section, false)?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::FamilyId;

    #[test]
    fn a_section_comes_back_as_it_went() -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put(b"a", b"1")?;
        batch.delete_cf(FamilyId(3), b"b")?;
        batch.single_delete(b"c")?;
        batch.merge(b"d", b"+")?;
        batch.delete_range_cf(FamilyId(3), b"e", b"f")?;
        let record = record_of(b"name", &batch)?;
        assert_eq!(record.count(), batch.count());
        let mut sections = Sections::default();
        for record in record.records() {
            match record? {
                Record::Rollback { xid } => assert!(sections.take(xid).is_none()),
                Record::BeginPrepare(_) => sections.begin()?,
                Record::EndPrepare { xid } => sections.end(xid)?,
                other => sections.add(&other)?,
            }
        }
        sections.check_closed()?;
        let back = sections.take(b"name").expect("it is there");
        assert_eq!(back.body(), batch.body());
        assert!(sections.into_prepared().is_empty());
        Ok(())
    }

    #[test]
    fn broken_sections_are_corruption() -> Result<()> {
        let mut sections = Sections::default();
        assert!(sections.end(b"x").is_err());
        sections.begin()?;
        assert!(sections.check_closed().is_err());
        assert!(sections.begin().is_err());
        Ok(())
    }
}
