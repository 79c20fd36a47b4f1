//! What a batch must be like: once it is in the log it is too late to refuse it.

use super::path::WritePath;
use crate::family::backpressure::batch_families::BatchFamilies;
use crate::timestamp;
use esker_format::FamilyId;
use esker_format::batch::{Record, WriteBatch};
use esker_status::{Error, Result};

impl WritePath {
    /// A batch may name only families that exist, operands need an operator, and a range must not
    /// end before it begins: once the batch is in the log it is too late to refuse it. Returns the
    /// families.
    pub(super) fn check_families(
        &self,
        batch: &WriteBatch,
        ignore_missing: bool,
    ) -> Result<BatchFamilies> {
        if batch.has_begin_prepare() || batch.has_end_prepare() || batch.has_commit() {
            return Err(Error::not_supported(
                "records of two-phase commit in a batch to be written",
            ));
        }
        if self.families.may_have_timestamps() || batch.has_timestamps() {
            self.check_timestamps(batch)?;
        } else if batch.count() == 1 && matches!(batch.body().first(), Some(0x00 | 0x01 | 0x07)) {
            return Ok(BatchFamilies::one(FamilyId::DEFAULT));
        }
        let mut touched = BatchFamilies::NONE;
        for record in batch.records() {
            let record = record?;
            let Some(id) = record.family() else { continue };
            if id != FamilyId::DEFAULT && !self.families.contains(id) {
                if ignore_missing {
                    continue;
                }
                return Err(Error::invalid_argument(format!(
                    "the batch names column family {id}, which does not exist"
                )));
            }
            touched.add(id);
            if matches!(record, Record::Merge { .. }) {
                self.check_merge(id)?;
            }
            if let Record::DeleteRange { begin, end, .. } = record
                && let Some(family) = self.families.get(id)
                && family.order.compare_without_timestamp(begin, end).is_gt()
            {
                return Err(Error::invalid_argument(
                    "a range deletion ends before it begins",
                ));
            }
        }
        Ok(touched)
    }

    /// Keys have timestamps where their families want them, and nowhere else.
    #[cold]
    fn check_timestamps(&self, batch: &WriteBatch) -> Result<()> {
        let size = |id| {
            let family = self.families.get(id);
            family.map_or(0, |f| f.order.timestamp_size())
        };
        batch.check_timestamps(size, |id| match self.families.get(id) {
            Some(family) => timestamp::needed(&family),
            None => Error::invalid_argument("a key without a timestamp"),
        })
    }

    fn check_merge(&self, id: FamilyId) -> Result<()> {
        match self.families.get(id) {
            Some(f) if f.merge_operator.is_none() => Err(Error::not_supported(format!(
                "merge in column family {} without a merge operator",
                f.name
            ))
            .with_hint("set merge_operator in the family's options")),
            _ => Ok(()),
        }
    }
}
