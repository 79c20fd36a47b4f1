//! Recovery: from a directory to an open database.
//!
//! The MANIFEST is folded with the same [`esker_lsm::edit::apply`] that running changes go through,
//! and the logs are replayed through the same [`crate::write::apply::insert`]; what they hold is
//! flushed by the same code as any memtable. Nothing in the directory is changed before everything
//! that must be read has been read and found good. [`follow`] does the same again and again, for a
//! database that another process writes.

pub(crate) mod blob_tiers;
pub(crate) mod create;
pub(crate) mod evidence;
pub(crate) mod fold;
pub(crate) mod follow;
mod latest_options;
pub(crate) mod replay;
pub(crate) mod sweep;

pub use latest_options::load_latest_options;
