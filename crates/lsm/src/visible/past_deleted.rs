//! Walks that note what they find deleted, and go past what others found.

use super::cursor::{VersionBound, VisibleCursor};
use super::deleted::DeletedRange;
use super::deleted_walk::LOOK_UP_EVERY;
use super::known::FoundRange;
use esker_format::Cursor;
use std::sync::Arc;

impl<C: Cursor> VisibleCursor<C> {
    /// Returns whether there is something for [`VisibleCursor::take_found`].
    #[inline]
    pub fn has_found(&self) -> bool {
        self.known
            .as_ref()
            .is_some_and(|known| known.found.is_some())
    }

    /// The range in which the last move saw nothing, if it passed over many deletions.
    #[inline]
    pub fn take_found(&mut self) -> Option<Box<FoundRange>> {
        self.known.as_mut()?.found.take()
    }

    /// Returns the known range that holds `target`, where a walk is to begin.
    #[inline]
    pub(super) fn known_at(&mut self, target: &[u8]) -> Option<Arc<DeletedRange>> {
        let known = self.known.as_ref()?;
        if !known.is_any() || self.options.max_skippable_internal_keys > 0 {
            return None;
        }
        self.enter_known_at(target)
    }

    #[inline(never)]
    fn enter_known_at(&mut self, target: &[u8]) -> Option<Arc<DeletedRange>> {
        let known = self.known.as_mut()?;
        let range = known.covering(target, self.options.snapshot)?;
        self.walks_deleted = true;
        known.enter(Arc::clone(&range), &self.options.order);
        Some(range)
    }

    /// Takes note of `saved_key`, which is deleted. True if it lies in a known range: the child is
    /// behind that then, as the walk goes.
    pub(super) fn pass_deleted(&mut self, forward: bool) -> bool {
        let Some(known) = &mut self.known else {
            return false;
        };
        if self.options.max_skippable_internal_keys > 0 {
            return false;
        }
        self.walks_deleted = true;
        known.deletions += 1;
        known.push(&self.saved_key, forward, &self.options.order);
        let n = known.deletions;
        if !(n <= 2 || n.is_multiple_of(LOOK_UP_EVERY)) || !known.is_any() {
            return false;
        }
        let Some(range) = known.covering(&self.saved_key, self.options.snapshot) else {
            return false;
        };
        known.deletions -= 1;
        known.enter(Arc::clone(&range), &self.options.order);
        if forward {
            self.set_target(&range.end, VersionBound::First);
            self.child.seek(&self.target);
        } else {
            self.set_target(&range.begin, VersionBound::First);
            self.child.seek_for_prev(&self.target);
        }
        self.counters.reseeks += 1;
        true
    }

    /// A walk over deletions, or past a known range, has ended.
    #[inline(never)]
    pub(super) fn close_deleted(&mut self, forward: bool) {
        self.walks_deleted = false;
        let Some(mut known) = self.known.take() else {
            return;
        };
        if self.error.is_some() {
            known.reset();
        } else {
            let is_shown = forward && self.valid();
            known.close(is_shown.then(|| self.full_key()), self.options.snapshot);
        }
        self.known = Some(known);
    }
}
