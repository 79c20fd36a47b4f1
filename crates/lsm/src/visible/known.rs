//! Ranges that walks found deleted, and that later walks go past at once.
//!
//! A walk that passes over many deletions notes the range in which it saw nothing
//! ([`VisibleCursor::take_found`]); its owner keeps it where other cursors look it up
//! ([`KnownRanges`]). Nothing of it is written anywhere: a range only tells a walk where to go on.
//!
//! Off without [`super::VisibleOptions::known`], in orders with timestamps, and where the reader
//! limits or counts what it passes over.

use super::cursor::{VersionBound, VisibleCursor};
use super::deleted::DeletedRange;
use super::options::VisibleOptions;
use esker_format::{Cursor, KeyOrder, Seq};
use esker_status::seeded::{Bug, seeded};
use std::sync::Arc;

/// Deletions of a walk that are worth a range. Tests that check assertions meet short ones.
const LEAST_DELETIONS: u32 = if cfg!(debug_assertions) { 2 } else { 16 };
/// As many beside a range that is known make it longer.
const LEAST_BESIDE: u32 = if cfg!(debug_assertions) { 1 } else { 8 };
/// The first deletions of a walk are looked up, and one in as many after that.
const LOOK_UP_EVERY: u32 = 8;

/// The state that a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderPlace {
    /// The newest write.
    pub snapshot: Seq,
    /// The number of the view.
    pub view: u64,
    /// The changes of the tree that were neither writes nor merges of them, before the view.
    pub epoch: u64,
}

/// Ranges in which nothing is visible.
pub trait KnownRanges: std::fmt::Debug + Send + Sync {
    /// Returns whether there may be any.
    fn is_any(&self) -> bool;
    /// The range that holds `key`, if the reader sees nothing in it.
    fn covering(&self, key: &[u8], reader: &ReaderPlace) -> Option<Arc<DeletedRange>>;
}

/// Where a reader looks up known ranges.
#[derive(Clone, Debug)]
pub struct KnownDeletions {
    /// The ranges.
    pub ranges: Arc<dyn KnownRanges>,
    /// The number of the reader's view.
    pub view: u64,
    /// See [`ReaderPlace::epoch`].
    pub epoch: u64,
}

/// A range in which a walk saw nothing.
#[derive(Clone, Debug)]
pub struct FoundRange {
    /// The range.
    pub range: DeletedRange,
    /// The state in which nothing is visible in it.
    pub place: ReaderPlace,
    /// The known ranges in it, which the walk went past.
    pub known: Vec<Arc<DeletedRange>>,
}

/// What a walk saw since the key that it showed last.
#[derive(Debug)]
pub(super) struct DeletedWalk {
    source: KnownDeletions,
    is_open: bool,
    /// Deletions that no known range has.
    deletions: u32,
    /// Nothing is visible in between; the end is not part of it.
    begin: Vec<u8>,
    end: Vec<u8>,
    known: Vec<Arc<DeletedRange>>,
    found: Option<Box<FoundRange>>,
}

impl DeletedWalk {
    pub(super) fn wanted(options: &VisibleOptions) -> Option<Box<Self>> {
        let counts = options.min_deleted_run > 0
            || options.hidden_limits.is_any()
            || options.order.timestamp_size() > 0;
        let source = options.known.clone().filter(|_| !counts)?;
        Some(Box::new(DeletedWalk {
            source,
            is_open: false,
            deletions: 0,
            begin: Vec::new(),
            end: Vec::new(),
            known: Vec::new(),
            found: None,
        }))
    }

    /// The cursor goes to another reader: what this one found and did not take is lost.
    pub(super) fn change_reader(&mut self, epoch: u64) {
        self.source.epoch = epoch;
        self.found = None;
        self.reset();
    }

    fn place(&self, snapshot: Seq) -> ReaderPlace {
        ReaderPlace {
            snapshot,
            view: self.source.view,
            epoch: self.source.epoch,
        }
    }

    /// Forgets what was seen.
    pub(super) fn reset(&mut self) {
        self.is_open = false;
        self.deletions = 0;
        self.known.clear();
    }

    #[inline]
    fn is_any(&self) -> bool {
        self.source.ranges.is_any()
    }

    fn covering(&self, key: &[u8], snapshot: Seq) -> Option<Arc<DeletedRange>> {
        self.source.ranges.covering(key, &self.place(snapshot))
    }

    fn push(&mut self, key: &[u8], forward: bool, order: &KeyOrder) {
        if !self.is_open || forward {
            set(&mut self.end, key);
            if order.is_bytewise() {
                // The least key after it.
                self.end.push(0);
            }
        }
        if !self.is_open || !forward {
            set(&mut self.begin, key);
        }
        self.is_open = true;
    }

    /// Takes in a known range that the walk goes past.
    fn enter(&mut self, range: Arc<DeletedRange>, order: &KeyOrder) {
        if !self.is_open || order.compare(&range.begin, &self.begin).is_lt() {
            set(&mut self.begin, &range.begin);
        }
        if !self.is_open || order.compare(&range.end, &self.end).is_gt() {
            set(&mut self.end, &range.end);
        }
        self.is_open = true;
        self.known.push(range);
    }

    /// Ends a walk; going forward, `shown` is the key where it ended.
    fn close(&mut self, shown: Option<&[u8]>, snapshot: Seq) {
        let least = if self.known.is_empty() {
            LEAST_DELETIONS
        } else {
            LEAST_BESIDE
        };
        if let Some(shown) = shown {
            set(&mut self.end, shown);
            if seeded(Bug::DeletedRangeWidened) {
                self.end.push(0);
            }
        }
        if self.deletions >= least {
            self.found = Some(Box::new(FoundRange {
                range: DeletedRange {
                    begin: self.begin.clone(),
                    end: self.end.clone(),
                },
                place: self.place(snapshot),
                known: std::mem::take(&mut self.known),
            }));
        }
        self.reset();
    }
}

fn set(buffer: &mut Vec<u8>, to: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(to);
}

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

    /// Forgets what a walk saw that did not end.
    #[cold]
    pub(super) fn forget_deleted(&mut self) {
        self.walks_deleted = false;
        if let Some(known) = &mut self.known {
            known.reset();
        }
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
