//! The cursors of an iterator that was not placed yet.
//!
//! Such an iterator stands at its first entry. Finding it takes a seek, which most programs replace
//! by one of their own, so it is made when somebody first asks for the entry.

use super::super::cursors::{IteratorCursors, MergedRuns};
use super::DbIterator;
use crate::read::get::check_due;
use crate::ttl;
use esker_lsm::visible::VisibleCursor;
use esker_status::{Error, Result};
use std::cell::{OnceCell, RefCell};

/// Cursors at their first entry, or why they cannot be shown there.
type FirstEntry = Result<Box<IteratorCursors>, (Error, Box<IteratorCursors>)>;

/// Cursors before the first seek; empty in an iterator that was placed.
pub(super) struct LazyCursor {
    /// None once somebody asked.
    cursors: RefCell<Option<Box<IteratorCursors>>>,
    first: OnceCell<Option<FirstEntry>>,
}

impl LazyCursor {
    pub(super) fn new(cursors: Option<Box<IteratorCursors>>) -> Self {
        LazyCursor {
            cursors: RefCell::new(cursors),
            first: OnceCell::new(),
        }
    }

    /// Returns whether the iterator still waits to be placed.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.first.get(), Some(Some(_))) || self.cursors.borrow().is_some()
    }

    /// Returns whether somebody asked for the first entry.
    pub(super) fn was_asked(&self) -> bool {
        self.first.get().is_some()
    }

    /// The cursor at its first entry, which `check` has passed.
    pub(super) fn first(
        &self,
        check: impl FnOnce(&VisibleCursor<MergedRuns>) -> Result<()>,
    ) -> Option<&VisibleCursor<MergedRuns>> {
        let first = self.first.get_or_init(|| {
            let mut cursors = self.cursors.take()?;
            cursors.cursor.seek_to_first();
            Some(match check(&cursors.cursor) {
                Ok(()) => Ok(cursors),
                Err(e) => Err((e, cursors)),
            })
        });
        let placed = first.as_ref()?.as_ref().ok()?;
        Some(&placed.cursor)
    }

    /// Why the first entry cannot be shown, if somebody asked for it.
    pub(super) fn status(&self) -> Result<()> {
        match self.first.get() {
            Some(Some(Ok(cursors))) => cursors.cursor.status(),
            Some(Some(Err((e, _)))) => Err(e.clone()),
            _ => Ok(()),
        }
    }

    /// Shows the cursors, placed or not, to `change`.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut IteratorCursors)) {
        if let Some(cursors) = self.cursors.get_mut() {
            change(cursors);
        } else if let Some(Some(Ok(cursors))) = self.first.get_mut() {
            change(cursors);
        }
    }

    /// Takes the cursors out.
    pub(super) fn take(&mut self) -> Option<FirstEntry> {
        let before = self.cursors.take();
        match self.first.take() {
            Some(first) => first,
            None => before.map(Ok),
        }
    }
}

impl DbIterator {
    /// Returns whether it was placed by a seek or a move, or has failed. One that was not stands at
    /// its first entry.
    pub fn is_placed(&self) -> bool {
        self.cursors.is_some() || !self.unplaced.is_waiting()
    }

    /// The cursor at the first entry, of an iterator that was not placed.
    #[cold]
    pub(super) fn first(&self) -> Option<&VisibleCursor<MergedRuns>> {
        self.unplaced.first(|cursor| {
            check_due(&self.core, self.due_us)?;
            if self.time_len > 0 && cursor.valid() {
                ttl::stored_time(cursor.value())?;
            }
            Ok(())
        })
    }

    /// Takes the cursors over that were not placed, or stand at their first entry.
    #[cold]
    pub(super) fn settle(&mut self) {
        match self.unplaced.take() {
            None => {}
            Some(Ok(cursors)) => self.cursors = Some(cursors),
            Some(Err((e, cursors))) => self.failure = Some((e, Some(cursors))),
        }
    }
}
