//! Going backward: the child meets the versions of a key oldest first, so the newest visible one is
//! known only when the next key is reached; its value waits in the buffer. Where the child knows
//! that the entry before is of another key, the entry is shown where it is.

use super::cursor::{At, ScanDirection, VersionBound, VisibleCursor};
use esker_format::key::user_key;
use esker_format::{Cursor, ParsedKey, ValueType};
use esker_status::{Error, Result};

/// The state of a key, given its versions up to some point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing visible yet, or deleted.
    Absent,
    /// `saved_value` holds the base of this kind; operands (oldest first) lie above it.
    Base(ValueType),
    /// Operands over nothing.
    Operands,
}

impl<C: Cursor> VisibleCursor<C> {
    /// Finds the previous key to show; the child stands before it, or on its oldest version.
    pub(super) fn find_backward(&mut self) {
        self.walk_backward();
        if self.notes.as_ref().is_some_and(|n| n.has_open_run()) {
            self.close_run_backward();
        }
        if self.walks_deleted {
            self.close_deleted(false);
        }
    }

    #[inline(always)]
    fn walk_backward(&mut self) {
        debug_assert_eq!(self.direction, ScanDirection::Backward);
        self.at = At::Invalid;
        while self.child.valid() {
            let user = user_key(self.child.key());
            if self.out_of_range(user, false) {
                return;
            }
            if self.shows_in_place() {
                self.kind = ValueType::Value;
                self.at = At::Child;
                return;
            }
            self.saved_key.clear();
            self.saved_key.extend_from_slice(user_key(self.child.key()));
            match self.resolve_backward() {
                Ok(true) => return self.show_saved(),
                Ok(false) if self.error.is_some() => return,
                Ok(false) if self.is_deleted => {
                    self.note_deletion_before();
                    self.pass_deleted(false);
                }
                Ok(false) => {}
                Err(e) => return self.fail(e),
            }
        }
        self.ended();
    }

    /// Returns whether the child's entry, the oldest version of its key, is the newest as well, and
    /// a plain value that the reader sees.
    #[inline]
    fn shows_in_place(&self) -> bool {
        if self.ts > 0 || !self.tombstones.is_empty() {
            return false;
        }
        let key = ParsedKey::parse(self.child.key());
        key.is_ok_and(|key| key.kind == ValueType::Value && key.seq <= self.options.snapshot)
            && self.child.prev_is_another_key()
    }

    /// Walks the versions of `saved_key` from its oldest on and leaves the child before all of
    /// them; `true` when the key is shown.
    fn resolve_backward(&mut self) -> Result<bool> {
        let mut state = State::Absent;
        let mut seen = 0;
        self.is_deleted = false;
        self.operands.clear();
        self.operand_bytes.clear();
        while self.child.valid() {
            let key = ParsedKey::parse(self.child.key())?;
            if self.compare(key.user, &self.saved_key).is_ne() {
                break;
            }
            if !self.sees(&key) {
                // Everything nearer the start of the key is newer still, or (with timestamps) not
                // for us.
                if self.ts == 0 {
                    self.leave_key_backward()?;
                    break;
                }
            } else {
                state = self.absorb_backward(state)?;
            }
            seen += 1;
            if seen > 1 && !self.count_skip() {
                return Ok(false);
            }
            if seen > self.options.max_sequential_skip {
                return self.resolve_by_seek();
            }
            self.child.prev();
        }
        if !self.child.valid() {
            self.child.status()?;
        }
        self.show_backward(state, false)
    }

    /// Takes in the child's entry, which is newer than all taken so far.
    fn absorb_backward(&mut self, state: State) -> Result<State> {
        let key = ParsedKey::parse(self.child.key())?;
        let (seq, kind) = (key.seq, key.kind);
        if self.ts > 0 {
            // The timestamp shown is that of the newest visible version.
            self.saved_key.clear();
            self.saved_key.extend_from_slice(key.user);
            self.saved_seq = seq;
        }
        let covered =
            !self.tombstones.is_empty() && self.tombstones.covers(&self.saved_key, seq)?;
        if covered {
            self.counters.range_deleted += 1;
        }
        let clear = |this: &mut Self| {
            this.operands.clear();
            this.operand_bytes.clear();
        };
        match kind {
            _ if covered => {
                clear(self);
                self.is_deleted = false;
                Ok(State::Absent)
            }
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp => {
                clear(self);
                self.saved_value.clear();
                self.is_deleted = true;
                Ok(self.deleted_as(kind))
            }
            ValueType::Merge => {
                self.push_operand();
                Ok(if state == State::Absent {
                    State::Operands
                } else {
                    state
                })
            }
            ValueType::RangeDeletion => {
                Err(Error::corruption("a range deletion is among point entries"))
            }
            base => {
                clear(self);
                self.saved_value.clear();
                self.saved_value.extend_from_slice(self.child.value());
                Ok(State::Base(base))
            }
        }
    }

    /// A key that is deleted: nothing, or an entry where versions are shown one by one.
    fn deleted_as(&self, kind: ValueType) -> State {
        if self.folds || self.ts == 0 {
            State::Absent
        } else {
            State::Base(kind)
        }
    }

    fn show_backward(&mut self, state: State, newest_first: bool) -> Result<bool> {
        match state {
            State::Absent => return Ok(false),
            State::Base(kind) if self.operands.is_empty() => self.settle_shown(kind)?,
            State::Base(kind) => self.merge_saved(Some(kind), newest_first)?,
            State::Operands => self.merge_saved(None, newest_first)?,
        }
        Ok(true)
    }

    /// Moves the child before every version of `saved_key`: a step, or a seek when there are many.
    fn leave_key_backward(&mut self) -> Result<()> {
        for _ in 0..=self.options.max_sequential_skip {
            if !self.child.valid() {
                return self.child.status();
            }
            if self
                .compare(user_key(self.child.key()), &self.saved_key)
                .is_ne()
            {
                return Ok(());
            }
            self.child.prev();
        }
        self.counters.reseeks += 1;
        self.aim_at_saved(VersionBound::First);
        self.child.seek_for_prev(&self.target);
        Ok(())
    }

    /// A key with many versions: seeks to the newest visible one and reads downward from there.
    fn resolve_by_seek(&mut self) -> Result<bool> {
        self.counters.reseeks += 1;
        self.is_deleted = false;
        self.operands.clear();
        self.operand_bytes.clear();
        self.aim_at_saved(VersionBound::Visible);
        self.child.seek(&self.target);
        let mut state = State::Absent;
        let mut first = true;
        while self.child.valid() {
            let key = ParsedKey::parse(self.child.key())?;
            if self.compare(key.user, &self.saved_key).is_ne() {
                break;
            }
            if !self.sees(&key) {
                self.child.next();
                continue;
            }
            if first && self.ts > 0 {
                self.saved_seq = key.seq;
                let user = key.user.to_vec();
                self.saved_key = user;
            }
            first = false;
            let key = ParsedKey::parse(self.child.key())?;
            let covered =
                !self.tombstones.is_empty() && self.tombstones.covers(key.user, key.seq)?;
            match key.kind {
                _ if covered => break,
                kind @ (ValueType::Deletion
                | ValueType::SingleDeletion
                | ValueType::DeletionWithTimestamp) => {
                    if state == State::Absent {
                        self.saved_value.clear();
                        self.is_deleted = true;
                        state = self.deleted_as(kind);
                    }
                    break;
                }
                ValueType::Merge => {
                    state = State::Operands;
                    self.push_operand();
                    self.child.next();
                }
                base => {
                    state = State::Base(base);
                    self.saved_value.clear();
                    self.saved_value.extend_from_slice(self.child.value());
                    break;
                }
            }
        }
        if !self.child.valid() {
            self.child.status()?;
        }
        self.aim_at_saved(VersionBound::First);
        self.child.seek_for_prev(&self.target);
        if !self.child.valid() {
            self.child.status()?;
        }
        self.show_backward(state, true)
    }
}
