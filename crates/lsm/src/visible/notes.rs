//! What a cursor takes down on its way, for its owner: stretches of deleted keys, and how much of
//! the newest run is hidden.
//!
//! Most cursors take nothing down; they have no notes, and their walks do nothing for them.

use super::deleted::{DeletedRange, DeletedRun};
use super::hidden::HiddenCount;
use super::{VisibleCursor, VisibleOptions};
use esker_format::{Cursor, ParsedKey};

/// The notes of one cursor.
#[derive(Debug)]
pub(super) struct Notes {
    deleted: DeletedRun,
    hidden: HiddenCount,
}

impl Notes {
    /// None where none are wanted.
    pub(super) fn wanted(options: &VisibleOptions) -> Option<Box<Self>> {
        let limits = options.hidden_limits;
        if options.min_deleted_run == 0 && !limits.is_any() {
            return None;
        }
        let least = match options.order.timestamp_size() {
            0 => options.min_deleted_run,
            _ => 0,
        };
        let notes = || Notes {
            deleted: DeletedRun::new(least),
            hidden: HiddenCount::new(limits),
        };
        (least > 0 || limits.is_any()).then(|| Box::new(notes()))
    }

    /// Whether a stretch of deleted keys has begun.
    #[inline]
    pub(super) fn has_open_run(&self) -> bool {
        self.deleted.is_open()
    }

    /// A seek begins.
    #[cold]
    pub(super) fn begin_walk(&mut self) {
        self.deleted.reset();
        self.hidden.end_walk();
    }
}

impl<C: Cursor> VisibleCursor<C> {
    /// Whether it takes something down: its owner is to ask after each move.
    #[inline]
    pub fn takes_notes(&self) -> bool {
        self.notes.is_some()
    }

    /// The stretch of deleted keys that the last move met, if it was long enough.
    pub fn take_deleted_range(&mut self) -> Option<DeletedRange> {
        self.notes.as_mut()?.deleted.take()
    }

    /// A move is over; `is_step` for one to the next key. True once, when it passed over too many
    /// hidden entries of the newest run ([`VisibleOptions::hidden_limits`]).
    pub fn end_move(&mut self, is_step: bool) -> bool {
        let notes = self.notes.as_mut();
        notes.is_some_and(|notes| notes.hidden.end_move(is_step))
    }

    /// The use of the cursor is over, and another may begin. True when its last walk passed over
    /// too many hidden entries of the newest run.
    pub fn end_use(&mut self) -> bool {
        let Some(notes) = &mut self.notes else {
            return false;
        };
        notes.hidden.end_walk();
        let is_due = notes.hidden.end_move(false);
        notes.hidden = HiddenCount::new(self.options.hidden_limits);
        self.plain_steps = self.options.plain_steps();
        is_due
    }

    /// The deletion that the child stands on hides the older versions of `saved_key`.
    #[cold]
    pub(super) fn note_deletion(&mut self) {
        let is_newest = self.child.current_run() == 0;
        let Some(notes) = &mut self.notes else {
            return;
        };
        if notes.deleted.is_on() {
            notes.deleted.push(&self.saved_key);
        }
        if is_newest {
            notes.hidden.add();
        }
    }

    /// The entry that the child stands on is passed over, going forward.
    #[cold]
    pub(super) fn note_passed(&mut self, is_hidden: bool) {
        let is_seen = ParsedKey::parse(self.child.key()).is_ok_and(|key| self.sees(&key));
        let counts = is_hidden && is_seen && self.child.current_run() == 0;
        let Some(notes) = &mut self.notes else {
            return;
        };
        if counts {
            notes.hidden.add();
        }
        if !notes.hidden.is_on() {
            self.plain_steps = self.options.max_sequential_skip;
        }
    }

    /// A walk forward has ended.
    #[cold]
    pub(super) fn close_run_forward(&mut self) {
        let Some(mut notes) = self.notes.take() else {
            return;
        };
        if self.error.is_some() {
            notes.deleted.abandon();
        } else {
            let shown = self.valid().then(|| self.full_key());
            notes.deleted.close(shown);
        }
        self.notes = Some(notes);
    }

    /// A step backward begins.
    #[cold]
    pub(super) fn begin_prev(&mut self) {
        let Some(mut notes) = self.notes.take() else {
            return;
        };
        if notes.deleted.is_on() {
            notes.deleted.reset();
            notes.deleted.begin_before(self.full_key());
        }
        self.notes = Some(notes);
    }

    /// `saved_key` is deleted, going backward.
    #[cold]
    pub(super) fn note_deletion_before(&mut self) {
        if let Some(notes) = &mut self.notes
            && notes.deleted.is_on()
        {
            notes.deleted.push_before(&self.saved_key);
        }
    }

    /// A walk backward has ended.
    #[cold]
    pub(super) fn close_run_backward(&mut self) {
        let is_failed = self.error.is_some();
        let Some(notes) = &mut self.notes else {
            return;
        };
        if is_failed {
            notes.deleted.abandon();
        } else {
            notes.deleted.close(None);
        }
    }
}
