//! Asking the compaction filter.

use super::stream::{CompactionStream, ValueAt};
use crate::compaction_filter::{CompactionFilter, Decision, FilterValue};
use esker_format::key::{append_internal, user_key};
use esker_format::{Cursor, Seq, ValueType, wide_column};
use esker_status::{Error, Result};
use std::sync::Arc;

impl<C: Cursor> CompactionStream<'_, C> {
    /// Applies the filter to the newest version of a key; `true` when the input is to skip to
    /// `skip_until`.
    pub(super) fn filter_entry(&mut self) -> Result<bool> {
        let Some(filter) = self.options.filter.as_ref().map(Arc::clone) else {
            return Ok(false);
        };
        if !matches!(
            self.kind,
            ValueType::Value | ValueType::BlobIndex | ValueType::WideColumnEntity
        ) || (!filter.ignore_snapshots() && self.seq <= self.latest_snapshot)
        {
            return Ok(false);
        }
        let level = self.options.level.0;
        let user = user_key(&self.current_key);
        self.value_buf.clear();
        let decision = match self.kind {
            ValueType::BlobIndex => self.filter_blob(filter.as_ref())?,
            ValueType::WideColumnEntity => self.filter_entity(filter.as_ref())?,
            _ => filter.filter(
                level,
                user,
                FilterValue::Value(self.input.value()),
                &mut self.value_buf,
            ),
        };
        self.apply_decision(decision)
    }

    fn filter_blob(&mut self, filter: &dyn CompactionFilter) -> Result<Decision> {
        let level = self.options.level.0;
        let user = user_key(&self.current_key);
        if let Some(decision) = filter.filter_blob_by_key(level, user, &mut self.value_buf) {
            return Ok(decision);
        }
        let mut blob = Vec::new();
        self.options
            .resolver
            .blob(self.bare_key(), self.input.value(), &mut blob)?;
        self.count_reads((1, blob.len() as u64));
        self.value_buf.clear();
        let user = user_key(&self.current_key);
        Ok(filter.filter(level, user, FilterValue::Value(&blob), &mut self.value_buf))
    }

    fn filter_entity(&mut self, filter: &dyn CompactionFilter) -> Result<Decision> {
        let mut whole = Vec::new();
        let read = self.join_entity(self.input.value(), &mut whole)?;
        self.count_reads(read);
        let (level, user) = (self.options.level.0, user_key(&self.current_key));
        let entity = FilterValue::Entity(&whole);
        Ok(filter.filter(level, user, entity, &mut self.value_buf))
    }

    fn apply_decision(&mut self, decision: Decision) -> Result<bool> {
        match decision {
            Decision::Keep => {}
            Decision::Remove | Decision::Purge => {
                let gone = match (decision, self.options.order.timestamp_size()) {
                    (Decision::Purge, _) => ValueType::SingleDeletion,
                    (_, 0) => ValueType::Deletion,
                    _ => ValueType::DeletionWithTimestamp,
                };
                self.set_trailer(self.seq, gone);
                self.value_at = ValueAt::Empty;
                self.counters.num_record_drop_user += 1;
            }
            Decision::ChangeValue => {
                self.set_trailer(self.seq, ValueType::Value);
                self.value_at = ValueAt::Buffer;
            }
            Decision::ChangeEntity => {
                wide_column::decode(&self.value_buf).map_err(|_| {
                    Error::invalid_argument("the compaction filter made a malformed entity")
                })?;
                self.set_trailer(self.seq, ValueType::WideColumnEntity);
                self.value_at = ValueAt::Buffer;
            }
            Decision::RemoveAndSkipUntil => return Ok(self.set_skip_target()),
        }
        Ok(false)
    }

    /// Takes the user key in `value_buf` as the skip target, when it lies ahead.
    pub(super) fn set_skip_target(&mut self) -> bool {
        if self
            .options
            .order
            .compare(&self.value_buf, user_key(&self.current_key))
            .is_le()
        {
            return false;
        }
        self.skip_until.clear();
        append_internal(
            &mut self.skip_until,
            &self.value_buf,
            Seq::MAX,
            ValueType::SEEK,
        );
        true
    }

    /// Moves the input to `skip_until`.
    pub(super) fn skip_input(&mut self) {
        // A reference that is passed over unseen would never count as garbage.
        if !self.options.must_count_input_entries && !self.options.counts_blobs {
            return self.input.seek(&self.skip_until);
        }
        while self.input.valid()
            && self
                .options
                .order
                .compare_internal(self.input.key(), &self.skip_until)
                .is_lt()
            && self.keep_going()
        {
            self.advance_input();
        }
    }
}
