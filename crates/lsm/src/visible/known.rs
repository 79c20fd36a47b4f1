//! Ranges that walks found deleted, and that later walks go past at once.
//!
//! A walk that passes over many deletions notes the range in which it saw nothing
//! ([`super::VisibleCursor::take_found`]); its owner keeps it where other cursors look it up
//! ([`KnownRanges`]). Nothing of it is written anywhere: a range only tells a walk where to go on.
//!
//! Off without [`super::VisibleOptions::known`], in orders with timestamps, and where the reader
//! limits or counts what it passes over.

use super::deleted::DeletedRange;
use esker_format::Seq;
use std::sync::Arc;

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
