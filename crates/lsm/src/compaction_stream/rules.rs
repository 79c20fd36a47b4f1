//! The rules that drop, keep or change the versions of a key.

use super::stream::{CompactionStream, ValueAt};
use crate::point::strip_preferred_seqno;
use esker_format::key::user_key;
use esker_format::{Cursor, ParsedKey, Seq, ValueType};
use esker_status::{Error, Result};

fn is_value(kind: ValueType) -> bool {
    matches!(
        kind,
        ValueType::Value
            | ValueType::BlobIndex
            | ValueType::WideColumnEntity
            | ValueType::ValuePreferredSeqno
    )
}

impl<C: Cursor> CompactionStream<'_, C> {
    /// Takes entries from the input until one is to be written, or the input ends.
    pub(super) fn next_from_input(&mut self) {
        self.at_next = false;
        self.valid = false;
        while !self.valid && self.error.is_none() && self.input.valid() && self.keep_going() {
            if let Err(e) = self.one_entry() {
                return self.fail(e);
            }
        }
    }

    fn one_entry(&mut self) -> Result<()> {
        let (seq, kind) = match ParsedKey::parse(self.input.key()) {
            Ok(key) if key.kind != ValueType::RangeDeletion => (key.seq, key.kind),
            Ok(_) => {
                return Err(Error::corruption("a range deletion is among point entries"));
            }
            Err(e) => {
                self.counters.num_input_corrupt_records += 1;
                return Err(e);
            }
        };
        self.count_input(kind);
        self.value_at = ValueAt::Input;
        let mut skip = false;
        if !self.has_current_user_key || !self.input_is_same_version() {
            let is_hidden_history = self.ts > 0 && self.enter_history();
            self.current_key.clear();
            self.current_key.extend_from_slice(self.input.key());
            (self.seq, self.kind) = (seq, kind);
            if !is_hidden_history {
                self.current_sequence = Seq::MAX;
                self.current_snapshot = Seq::ZERO;
            }
            self.has_current_user_key = true;
            self.has_outputted_key = false;
            self.last_key_seq_zeroed = false;
            if self.options.filter.is_some() {
                skip = self.filter_entry()?;
            }
        } else {
            self.set_trailer(seq, kind);
        }
        let last_sequence = self.current_sequence;
        let last_snapshot = self.current_snapshot;
        self.current_sequence = self.seq;
        let (snapshot, previous) = self.stripe(self.seq);
        self.current_snapshot = snapshot;
        if skip {
            self.skip_input();
            return Ok(());
        }
        if self.clear_and_output_next_key {
            return self.output_cleared_value();
        }
        if self.kind == ValueType::SingleDeletion {
            return self.single_deletion(previous);
        }
        if last_sequence != Seq::MAX && last_snapshot <= snapshot {
            // Rule A: a newer version of the key is visible to every reader that could see this
            // one.
            self.counters.num_record_drop_hidden += 1;
            self.advance_input();
            return Ok(());
        }
        self.visible_version(previous)
    }

    /// Counts the entry that the input stands on.
    #[inline]
    pub(super) fn count_input(&mut self, kind: ValueType) {
        let c = &mut self.counters;
        c.num_input_records += 1;
        c.total_input_raw_key_bytes += self.input.key().len() as u64;
        c.total_input_raw_value_bytes += self.input.value().len() as u64;
        match kind {
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp => {
                c.num_input_deletion_records += 1;
            }
            ValueType::ValuePreferredSeqno => c.num_input_timed_put_records += 1,
            _ => {}
        }
    }

    /// A version that some snapshot sees.
    #[inline]
    #[allow(clippy::collapsible_match)] // A guard cannot borrow the stream to ask about deeper levels.
    fn visible_version(&mut self, previous: Option<Seq>) -> Result<()> {
        match self.kind {
            ValueType::DeletionWithTimestamp if !self.is_old => {}
            ValueType::Deletion | ValueType::DeletionWithTimestamp => {
                let settled =
                    !self.options.allow_ingest_behind && self.seq <= self.earliest_snapshot;
                if settled && self.gone_beyond() {
                    self.counters.num_record_drop_obsolete += 1;
                    self.counters.num_optimized_del_drop_obsolete += u64::from(!self.bottom);
                    self.advance_input();
                    return Ok(());
                }
                if self.bottom {
                    self.deletion_at_the_bottom(previous);
                    return Ok(());
                }
            }
            ValueType::ValuePreferredSeqno => {
                if self.seq <= self.earliest_snapshot && (self.bottom || self.gone_beyond()) {
                    return self.settle_preferred_seqno();
                }
            }
            ValueType::Merge => return self.merge_from_input(previous),
            _ => {}
        }
        if self
            .tombstones
            .should_drop(user_key(&self.current_key), self.seq)
        {
            self.drop_covered();
        } else {
            self.valid = true;
        }
        Ok(())
    }

    fn drop_covered(&mut self) {
        self.counters.num_record_drop_hidden += 1;
        self.counters.num_record_drop_range_del += 1;
        self.advance_input();
    }

    /// A value under a single deletion that had to stay: it is not read any more.
    fn output_cleared_value(&mut self) -> Result<()> {
        if !is_value(self.kind) {
            return Err(Error::corruption(
                "a single deletion was kept for something that is not a value",
            ));
        }
        self.set_trailer(self.seq, ValueType::Value);
        self.value_at = ValueAt::Empty;
        self.clear_and_output_next_key = false;
        self.valid = true;
        Ok(())
    }

    /// Skips the versions that the deletion hides; keeps it only when older ones remain.
    fn deletion_at_the_bottom(&mut self, previous: Option<Seq>) {
        self.advance_input();
        while self.input_is_same_key()
            && previous.is_none_or(|p| self.input_seq() > p)
            && self.keep_going()
        {
            self.advance_input();
        }
        if self.error.is_none() && self.input_is_same_key() {
            self.value_at = ValueAt::Empty;
            self.valid = true;
            self.at_next = true;
        }
    }

    fn settle_preferred_seqno(&mut self) -> Result<()> {
        let (value, preferred) = strip_preferred_seqno(self.input.value())?;
        let len = value.len();
        let user = user_key(&self.current_key);
        if self.tombstones.should_drop(user, self.seq) {
            self.drop_covered();
            return Ok(());
        }
        self.valid = true;
        let settled = preferred.min(self.seq);
        if self.tombstones.should_drop(user, settled) {
            // With its preferred sequence a range deletion would cover it: leave it as it is.
            return Ok(());
        }
        self.counters.num_timed_put_swap_preferred_seqno += u64::from(self.seq != Seq::ZERO);
        self.set_trailer(settled, ValueType::Value);
        self.value_at = ValueAt::InputHead(len);
        Ok(())
    }

    /// A single deletion: peeks at what it meets. `previous` is the snapshot before its stripe.
    fn single_deletion(&mut self, previous: Option<Seq>) -> Result<()> {
        self.value_at = ValueAt::Empty;
        self.advance_input();
        if self.ts > 0 && !self.is_old {
            // Readers at older timestamps still need what it deletes, so it stays too.
            self.valid = true;
        } else if self.input_is_same_key() {
            let next = ParsedKey::parse(self.input.key())?;
            let (next_seq, next_kind) = (next.seq, next.kind);
            if self.last_key_seq_zeroed {
                self.counters.num_record_drop_hidden += 1;
                self.counters.num_record_drop_obsolete += 1;
                self.advance_input();
            } else if previous.is_none_or(|p| next_seq > p) {
                self.single_deletion_meets(next_kind)?;
            } else {
                self.valid = true;
            }
        } else {
            self.single_deletion_alone();
        }
        self.at_next = self.valid;
        Ok(())
    }

    /// Nothing lies under the single deletion in this input.
    fn single_deletion_alone(&mut self) {
        self.has_current_user_key = false;
        let settled = !self.options.allow_ingest_behind && self.seq <= self.earliest_snapshot;
        if settled && self.gone_beyond() {
            self.counters.num_record_drop_obsolete += 1;
            self.counters.num_single_del_fallthru += 1;
            self.counters.num_optimized_del_drop_obsolete += u64::from(!self.bottom);
        } else if self.last_key_seq_zeroed {
            self.counters.num_record_drop_hidden += 1;
            self.counters.num_record_drop_obsolete += 1;
        } else {
            self.valid = true;
        }
    }

    /// The entry under the single deletion is in the same stripe.
    fn single_deletion_meets(&mut self, next: ValueType) -> Result<()> {
        match next {
            ValueType::SingleDeletion => {
                self.counters.num_record_drop_obsolete += 1;
                self.counters.num_single_del_mismatch += 1;
            }
            ValueType::Deletion => {
                self.counters.num_record_drop_obsolete += 1;
                self.counters.num_single_del_mismatch += 1;
                if self.options.enforce_single_del_contracts {
                    let key = user_key(&self.current_key).escape_ascii().to_string();
                    return Err(Error::corruption(format!(
                        "key {key} has a SingleDelete over a Delete"
                    ))
                    .with_hint("do not mix Delete and SingleDelete on one key"));
                }
                // The single deletion is gone: the deletion under it must not count as hidden by
                // it.
                self.has_current_user_key = false;
            }
            _ if self.has_outputted_key
                || self.seq <= self.options.earliest_write_conflict_snapshot
                || self.seq <= self.earliest_snapshot =>
            {
                self.counters.num_single_del_mismatch += u64::from(!is_value(next));
                self.counters.num_record_drop_hidden += 1;
                self.counters.num_record_drop_obsolete += 1;
                self.advance_input();
            }
            _ => {
                // A conflict check may need to know of the deletion: keep it, and a value without
                // its bytes.
                self.valid = true;
                self.clear_and_output_next_key = is_value(next);
            }
        }
        Ok(())
    }
}
