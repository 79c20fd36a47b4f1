//! Two-phase commit: a transaction's batch goes into the log when it is prepared and into memtables
//! when it is committed.
//!
//! These writes go past the queue: their records are in the log lock's hands with what is prepared
//! ([`super::prepared`]).

use super::path::{LogGuard, WritePath};
use super::prepared;
use crate::family::backpressure::batch_families::BatchFamilies;
use crate::health::ErrorSource;
use crate::options::WriteOptions;
use esker_format::batch::WriteBatch;
use esker_status::Result;

impl WritePath {
    /// Writes `batch` into the log as a prepared transaction; nothing of it is seen before it is
    /// committed.
    pub(crate) fn write_prepared(
        &self,
        options: &WriteOptions,
        name: &[u8],
        batch: &WriteBatch,
    ) -> Result<()> {
        self.health.check_writable()?;
        let touched = self.check_families(batch, false)?;
        let mut record = prepared::record_of(name, batch)?;
        let mut log = self.lock_to_write(options, &record, touched, false)?;
        record.set_seq(self.sequence.allocated().next());
        self.log_marker(&mut log, options, &record)?;
        self.prepared.add(name, record);
        Ok(())
    }

    /// Writes `batch` and undoes the section of the prepared transaction `name`, in one record of
    /// the log.
    pub(crate) fn write_committed(
        &self,
        options: &WriteOptions,
        name: &[u8],
        batch: &WriteBatch,
    ) -> Result<()> {
        self.health.check_writable()?;
        let touched = self.check_families(batch, options.ignore_missing_column_families)?;
        let mut whole = WriteBatch::with_capacity(batch.data_size() + name.len() + 8);
        whole.append(batch, false)?;
        whole.mark_rollback(name)?;
        // The section is in the log, so its end has to be there too.
        let mut options = *options;
        options.disable_wal = false;
        let options = &options;
        let batch = &mut whole;
        let mut log = self.lock_to_write(options, batch, touched, true)?;
        let group = self.log_prepared(&mut log, options, Some(&mut *batch))?;
        self.prepared.remove(name);
        let duty = log.release(group.is_long());
        self.complete(group, Some(batch), duty)
    }

    /// Undoes the section of the prepared transaction `name`.
    pub(crate) fn write_undone(&self, options: &WriteOptions, name: &[u8]) -> Result<()> {
        self.health.check_writable()?;
        let mut record = WriteBatch::new();
        record.mark_rollback(name)?;
        let mut log = self.lock_to_write(options, &record, BatchFamilies::NONE, false)?;
        record.set_seq(self.sequence.allocated().next());
        self.log_marker(&mut log, options, &record)?;
        self.prepared.remove(name);
        Ok(())
    }

    /// Appends a record that changes no memtable.
    fn log_marker(
        &self,
        log: &mut LogGuard<'_>,
        options: &WriteOptions,
        record: &WriteBatch,
    ) -> Result<()> {
        self.log_group(log, false, &[record.data()], options.sync)
            .inspect_err(|e| {
                self.health.report(ErrorSource::Wal, e);
                self.background_cv.notify();
            })
    }
}
