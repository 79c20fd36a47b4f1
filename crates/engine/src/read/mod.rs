//! Reads: a view, a sequence number, and the runs of the view from newest to oldest.
//!
//! The view is taken before the sequence: what a view holds, it holds for every sequence published
//! later, while a view taken after the sequence could already miss versions that a compaction found
//! unneeded.

pub(crate) mod bucket;
mod cursors;
pub(crate) mod get;
pub(crate) mod iter;
pub(crate) mod latest;
pub(crate) mod multi;
pub(crate) mod pinned;
mod sample;
pub(crate) mod source;

pub use iter::DbIterator;
pub use latest::LatestWrite;
pub use pinned::PinnedValue;
