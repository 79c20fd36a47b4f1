//! Operands: collected newest first, then merged with their base, with nothing at the end of the
//! key's history, or with each other.

use super::stream::{CompactionStream, ValueAt};
use crate::compaction_filter::{Decision, FilterValue};
use crate::merge_operator::{Base, FailureScope, MergeOperator, full_merge, missing_operator};
use crate::point::strip_preferred_seqno;
use esker_format::key::user_key;
use esker_format::{Cursor, ParsedKey, Seq, ValueType, timestamp};
use esker_status::{Error, Result};

/// How the collection of operands ended.
enum OperandsEnd {
    /// The input stands on a base of this kind, whose bytes are in `MergeState::base`; `None`: it
    /// is as good as absent.
    AtBase(Option<ValueType>),
    /// At another key or the end of the input.
    KeyFinished,
    /// At a version that an older snapshot sees, or at one that is no operand with no operand left.
    Interrupted,
    /// The filter asked to skip.
    Skip,
}

impl<C: Cursor> CompactionStream<'_, C> {
    /// Merges from the operand that the input stands on. `previous` is the snapshot before its
    /// stripe.
    pub(super) fn merge_from_input(&mut self, previous: Option<Seq>) -> Result<()> {
        let operator = self
            .options
            .merge_operator
            .clone()
            .ok_or_else(missing_operator)?;
        self.merge.clear();
        let ended = self.collect_operands(previous)?;
        if let OperandsEnd::Skip = ended {
            self.merge.clear();
            self.has_current_user_key = false;
            self.skip_input();
            return Ok(());
        }
        if !self.merge.is_active() {
            // Every operand was filtered or covered: they hide nothing.
            self.has_current_user_key = false;
            return Ok(());
        }
        self.merge_collected(operator.as_ref(), &ended)?;
        self.take_merge_output();
        Ok(())
    }

    fn collect_operands(&mut self, previous: Option<Seq>) -> Result<OperandsEnd> {
        let mut first = true;
        while self.input.valid() {
            let key = ParsedKey::parse(self.input.key())?;
            let (seq, kind) = (key.seq, key.kind);
            if !first {
                // Below the history that is kept, older operands are merged into the newest.
                if !(self.input_is_same_version() || self.is_old && self.input_is_same_key()) {
                    return Ok(OperandsEnd::KeyFinished);
                }
                if previous.is_some_and(|p| seq <= p) {
                    return Ok(OperandsEnd::Interrupted);
                }
            }
            if kind != ValueType::Merge {
                return self.reach_base(seq, kind);
            }
            if !first {
                self.count_input(kind);
            }
            first = false;
            if self.take_operand(seq)? {
                return Ok(OperandsEnd::Skip);
            }
            self.advance_input();
            if !self.keep_going() {
                return Ok(OperandsEnd::Interrupted);
            }
        }
        self.input.status()?;
        Ok(OperandsEnd::KeyFinished)
    }

    /// Adds the input's operand, unless a range deletion or the filter removes it; `true`: skip
    /// ahead.
    fn take_operand(&mut self, seq: Seq) -> Result<bool> {
        let mut decision = Decision::Keep;
        if let Some(filter) = &self.options.filter
            && seq > self.latest_snapshot
        {
            self.value_buf.clear();
            let user = user_key(&self.current_key);
            let operand = FilterValue::MergeOperand(self.input.value());
            decision = filter.filter(self.options.level.0, user, operand, &mut self.value_buf);
            if decision == Decision::RemoveAndSkipUntil {
                if self.set_skip_target() {
                    return Ok(true);
                }
                decision = Decision::Keep;
            }
        }
        if self
            .tombstones
            .should_drop(user_key(&self.current_key), seq)
        {
            self.counters.num_record_drop_hidden += 1;
            self.counters.num_record_drop_range_del += 1;
            return Ok(false);
        }
        match decision {
            Decision::Keep | Decision::RemoveAndSkipUntil => {
                self.merge.push(seq, self.input.value())
            }
            Decision::ChangeValue => self.merge.push(seq, &self.value_buf),
            Decision::Remove | Decision::Purge => self.counters.num_record_drop_user += 1,
            Decision::ChangeEntity => {
                return Err(Error::not_supported(
                    "a compaction filter that turns an operand into an entity",
                ));
            }
        }
        Ok(false)
    }

    /// The input stands on something that is no operand.
    fn reach_base(&mut self, seq: Seq, kind: ValueType) -> Result<OperandsEnd> {
        if !self.merge.is_active() {
            return Ok(OperandsEnd::Interrupted);
        }
        if self
            .tombstones
            .should_drop(user_key(&self.current_key), seq)
        {
            return Ok(OperandsEnd::AtBase(None));
        }
        let value = self.input.value();
        self.merge.base.clear();
        let kind = match kind {
            ValueType::Value => {
                self.merge.base.extend_from_slice(value);
                kind
            }
            ValueType::WideColumnEntity => {
                let mut base = std::mem::take(&mut self.merge.base);
                let joined = self.join_entity(value, &mut base);
                self.merge.base = base;
                self.count_reads(joined?);
                kind
            }
            ValueType::ValuePreferredSeqno => {
                self.merge
                    .base
                    .extend_from_slice(strip_preferred_seqno(value)?.0);
                ValueType::Value
            }
            ValueType::BlobIndex => {
                let ts = self.options.order.timestamp_size();
                let bare = timestamp::bare(user_key(&self.current_key), ts);
                self.options
                    .resolver
                    .blob(bare, value, &mut self.merge.base)?;
                self.count_reads((1, self.merge.base.len() as u64));
                ValueType::Value
            }
            ValueType::RangeDeletion => {
                return Err(Error::corruption("a range deletion is among point entries"));
            }
            _ => return Ok(OperandsEnd::AtBase(None)),
        };
        Ok(OperandsEnd::AtBase(Some(kind)))
    }

    fn merge_collected(&mut self, operator: &dyn MergeOperator, ended: &OperandsEnd) -> Result<()> {
        let base = match ended {
            OperandsEnd::AtBase(kind) => *kind,
            OperandsEnd::KeyFinished if self.bottom && (self.ts == 0 || self.is_old) => None,
            _ => return self.merge_partially(operator),
        };
        let user = timestamp::bare(user_key(&self.current_key), self.ts);
        let mut result = std::mem::take(&mut self.merge.result);
        let below = match base {
            None => Base::None,
            Some(ValueType::WideColumnEntity) => Base::Entity(&self.merge.base),
            Some(_) => Base::Value(&self.merge.base),
        };
        let merged = full_merge(
            operator,
            user,
            below,
            &self.merge.oldest_first(),
            &mut result,
        );
        self.merge.result = result;
        match merged {
            Ok(kind) => {
                self.merge.collapse(kind);
                if let OperandsEnd::AtBase(_) = ended {
                    if let Ok(key) = ParsedKey::parse(self.input.key()) {
                        self.count_input(key.kind);
                    }
                    self.advance_input();
                }
            }
            Err(failure) if failure.scope == FailureScope::MustMerge => {
                self.merge.in_progress = true
            }
            Err(failure) => return Err(failure.error),
        }
        Ok(())
    }

    fn merge_partially(&mut self, operator: &dyn MergeOperator) -> Result<()> {
        self.merge.in_progress = true;
        let enough = if operator.allow_single_operand() {
            1
        } else {
            2
        };
        if self.merge.outputs.len() < enough {
            return Ok(());
        }
        let mut result = std::mem::take(&mut self.merge.result);
        result.clear();
        let user = timestamp::bare(user_key(&self.current_key), self.ts);
        let merged = operator.partial_merge(user, &self.merge.oldest_first(), &mut result);
        self.merge.result = result;
        if merged {
            if u32::try_from(self.merge.result.len()).is_err() {
                return Err(Error::corruption("merge result exceeds 4 GiB"));
            }
            self.merge.collapse(ValueType::Merge);
        }
        Ok(())
    }

    /// Makes the merge's present entry the current one.
    pub(super) fn take_merge_output(&mut self) {
        if let Some((seq, kind)) = self
            .merge
            .outputs
            .get(self.merge.at)
            .map(|o| (o.seq, o.kind))
        {
            self.set_trailer(seq, kind);
            self.value_at = ValueAt::Buffer;
            self.valid = true;
        }
    }
}
