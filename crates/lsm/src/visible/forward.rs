//! Going forward: the newest visible version of each key, hidden ones skipped.

use super::cursor::{At, ScanDirection, VersionBound, VisibleCursor};
use esker_format::key::{TRAILER_LEN, seq_of, user_key};
use esker_format::{Cursor, ParsedKey, Seq, ValueType};
use esker_status::{Error, Result};
use std::cmp::Ordering;

/// The meaning of an entry to the walk.
enum Verdict {
    Show,
    Settle(ValueType),
    Merge,
    /// Deleted: the key's older versions are hidden.
    Hide,
    /// Deleted by a range: a whole stretch may be.
    HideRange,
}

/// Does not show an entry.
pub(super) fn unseen(_key: &[u8], _value: &[u8]) {}

impl<C: Cursor> VisibleCursor<C> {
    /// Finds the next key to show from where the child stands; with `skipping`, after `saved_key`.
    #[inline]
    pub(super) fn find_forward(&mut self, skipping: bool) {
        self.find_forward_showing(skipping, &mut unseen);
    }

    /// Shows the child's entry, which has a key of its own, where it is a plain value and nothing
    /// else has to be asked: most are. False where there is more to do.
    #[inline(always)]
    pub(super) fn show_plain(&mut self, show: &mut impl FnMut(&[u8], &[u8])) -> bool {
        let asks = self.ts > 0 || self.options.upper.is_some() || self.prefix.is_some();
        if asks || !self.tombstones.is_empty() || !self.child.valid() {
            return false;
        }
        let (internal, value) = self.child.entry();
        let Some((user, trailer)) = internal.split_last_chunk::<TRAILER_LEN>() else {
            return false;
        };
        let trailer = u64::from_le_bytes(*trailer);
        let is_plain = trailer as u8 == ValueType::Value as u8;
        if !is_plain || Seq(trailer >> 8) > self.options.snapshot {
            return false;
        }
        self.kind = ValueType::Value;
        self.at = At::Child;
        show(user, value);
        true
    }

    /// As [`Self::find_forward`]. An entry that the child stands on, with nothing to be done to it,
    /// is shown at once to `show`, while it is at hand; says whether one was.
    #[inline]
    pub(super) fn find_forward_showing(
        &mut self,
        skipping: bool,
        show: &mut impl FnMut(&[u8], &[u8]),
    ) -> bool {
        let shown = self.walk_forward(skipping, show);
        if self.notes.as_ref().is_some_and(|n| n.has_open_run()) {
            self.close_run_forward();
        }
        if self.walks_deleted {
            self.close_deleted(true);
        }
        shown
    }

    #[inline(always)]
    fn walk_forward(&mut self, mut skipping: bool, show: &mut impl FnMut(&[u8], &[u8])) -> bool {
        debug_assert_eq!(self.direction, ScanDirection::Forward);
        let mut run = 0;
        let mut ranged = 0;
        self.at = At::Invalid;
        while self.child.valid() {
            let (internal, value) = self.child.entry();
            let key = match ParsedKey::parse(internal) {
                Ok(key) => key,
                Err(e) => {
                    self.fail(e);
                    return false;
                }
            };
            if self.out_of_range(key.user, true) {
                return false;
            }
            let hidden = skipping && self.compare(key.user, &self.saved_key) != Ordering::Greater;
            let seen = self.sees(&key);
            if hidden || !seen {
                if !hidden && !skipping_same(self, key.user) {
                    // A key written after the snapshot: remember it, to seek to what the reader
                    // sees of it.
                    self.saved_key.clear();
                    self.saved_key.extend_from_slice(user_key(self.child.key()));
                    run = 0;
                    skipping = false;
                }
                self.counters.recent_skipped += u64::from(!hidden);
                if !self.count_skip() {
                    return false;
                }
                run += 1;
                self.step_or_reseek(hidden, &mut run);
                continue;
            }
            run = 0;
            if key.kind == ValueType::Value && self.tombstones.is_empty() {
                self.kind = ValueType::Value;
                self.at = At::Child;
                show(&key.user[..key.user.len().saturating_sub(self.ts)], value);
                return true;
            }
            let (seq, kind) = (key.seq, key.kind);
            match self.judge(seq, kind) {
                Err(e) => {
                    self.fail(e);
                    return false;
                }
                Ok(Verdict::Show) => {
                    self.kind = ValueType::Value;
                    self.at = At::Child;
                    return false;
                }
                Ok(Verdict::Settle(kind)) => {
                    self.show_settled(kind);
                    return false;
                }
                Ok(Verdict::Merge) => {
                    self.show_merged();
                    return false;
                }
                Ok(verdict) => {
                    self.saved_key.clear();
                    self.saved_key.extend_from_slice(user_key(self.child.key()));
                    skipping = true;
                    let is_deletion = matches!(verdict, Verdict::Hide);
                    self.counters.deletions_skipped += u64::from(is_deletion);
                    if is_deletion && self.notes.is_some() {
                        self.note_deletion();
                    }
                    if !self.count_skip() {
                        return false;
                    }
                    if is_deletion && self.known.is_some() && self.pass_deleted(true) {
                        ranged = 0;
                        continue;
                    }
                    ranged = if matches!(verdict, Verdict::HideRange) {
                        ranged + 1
                    } else {
                        0
                    };
                    if ranged < 4 || !self.skip_covered() {
                        self.child.next();
                    } else {
                        ranged = 0;
                    }
                }
            }
        }
        self.ended();
        false
    }

    #[inline]
    fn judge(&mut self, seq: Seq, kind: ValueType) -> Result<Verdict> {
        if !self.tombstones.is_empty() && self.tombstones.covers(user_key(self.child.key()), seq)? {
            self.counters.range_deleted += 1;
            return Ok(Verdict::HideRange);
        }
        Ok(match kind {
            ValueType::Value => Verdict::Show,
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp => {
                if self.folds || self.ts == 0 {
                    Verdict::Hide
                } else {
                    Verdict::Show
                }
            }
            ValueType::Merge => Verdict::Merge,
            ValueType::BlobIndex | ValueType::WideColumnEntity | ValueType::ValuePreferredSeqno => {
                Verdict::Settle(kind)
            }
            ValueType::RangeDeletion => {
                return Err(Error::corruption("a range deletion is among point entries"));
            }
        })
    }

    /// One step on, or past all that is hidden when there is much of it.
    #[inline]
    fn step_or_reseek(&mut self, hidden: bool, run: &mut u64) {
        if *run <= self.plain_steps {
            return self.child.next();
        }
        self.note_or_reseek(hidden, run);
    }

    /// Counts the entry where notes are taken, and steps on, or past all that is hidden when there
    /// is much of it.
    #[inline(never)]
    fn note_or_reseek(&mut self, hidden: bool, run: &mut u64) {
        if self.notes.is_some() {
            self.note_passed(hidden);
            if *run <= self.options.max_sequential_skip {
                return self.child.next();
            }
        }
        *run = 0;
        self.counters.reseeks += 1;
        // Past every version of a key that is done, or to the first version that the reader may
        // see.
        self.aim_at_saved(if hidden {
            VersionBound::Last
        } else {
            VersionBound::Visible
        });
        // With timestamps the target can lie behind: an old timestamp may have come in a late
        // write.
        if self
            .options
            .order
            .compare_internal(&self.target, self.child.key())
            .is_gt()
        {
            self.child.seek(&self.target);
        } else {
            self.child.next();
        }
    }

    /// Moves the runs that a range deletion empties past it.
    fn skip_covered(&mut self) -> bool {
        let Some((until, inclusive, first_run)) = self.tombstones.covered_until() else {
            return false;
        };
        let until = until.to_vec();
        self.set_target(
            &until,
            if inclusive {
                VersionBound::Last
            } else {
                VersionBound::First
            },
        );
        let skipped = self.child.skip_runs(first_run, &self.target);
        self.counters.reseeks += u64::from(skipped);
        skipped
    }

    /// Shows the child's entry through the value buffer.
    fn show_settled(&mut self, kind: ValueType) {
        self.saved_key.clear();
        self.saved_key.extend_from_slice(user_key(self.child.key()));
        self.saved_value.clear();
        self.saved_value.extend_from_slice(self.child.value());
        match self.settle_shown(kind) {
            Ok(()) => self.at = At::ChildKey,
            Err(e) => self.fail(e),
        }
    }

    /// Collects operands down to the base, and merges. The child ends past the entries used.
    fn show_merged(&mut self) {
        self.saved_key.clear();
        self.saved_key.extend_from_slice(user_key(self.child.key()));
        self.saved_seq = seq_of(self.child.key());
        self.operands.clear();
        self.operand_bytes.clear();
        match self
            .collect_operands()
            .and_then(|base| self.merge_saved(base, true))
        {
            Ok(()) => self.show_saved(),
            Err(e) => self.fail(e),
        }
    }

    /// Operands newest first; the base's bytes go to `saved_value`.
    fn collect_operands(&mut self) -> Result<Option<ValueType>> {
        loop {
            self.push_operand();
            self.child.next();
            if !self.child.valid() {
                self.child.status()?;
                return Ok(None);
            }
            let key = ParsedKey::parse(self.child.key())?;
            if self.compare(key.user, &self.saved_key).is_ne() {
                return Ok(None);
            }
            if !self.tombstones.is_empty() && self.tombstones.covers(key.user, key.seq)? {
                return Ok(None);
            }
            match key.kind {
                ValueType::Merge => {}
                ValueType::Deletion
                | ValueType::SingleDeletion
                | ValueType::DeletionWithTimestamp => {
                    return Ok(None);
                }
                kind => {
                    self.saved_value.clear();
                    self.saved_value.extend_from_slice(self.child.value());
                    return Ok(Some(kind));
                }
            }
        }
    }
}

/// Returns whether `saved_key` already is this key, so that invisible versions of one key count as
/// one run.
#[inline]
fn skipping_same<C: Cursor>(cursor: &VisibleCursor<C>, user: &[u8]) -> bool {
    // Before the first key nothing is saved, and an order with timestamps is not to see that.
    cursor.saved_key.len() >= cursor.ts && cursor.compare(user, &cursor.saved_key).is_eq()
}
