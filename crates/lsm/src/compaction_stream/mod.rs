//! The entries that a flush or compaction keeps of its merged input, in the order in which they are
//! written.
//!
//! [`CompactionStream`] applies RocksDB's rules to the versions of each key, newest first:
//! - a version is dropped when a newer one of the same key lies in the same snapshot stripe (rule
//!   A);
//! - a deletion is dropped when nothing older can exist below, or, at the bottom, when nothing
//!   under it remains;
//! - a single deletion goes together with the value it meets;
//! - operands are merged down to their base, to the end of the key at the bottom, or partially;
//! - a range deletion in the same stripe drops what it covers;
//! - the compaction filter decides about the newest version of each key, and about operands that no
//!   snapshot needs;
//! - at the bottom, a version that every snapshot sees gets sequence zero.
//!
//! Large values go into blob files at the end of it all ([`CompactionStream::place_value`]).
//!
//! A key is copied once (its trailer may change); a plain value is a slice of the input's. Nothing
//! is allocated per entry once the buffers are warm.
//!
//! In families with timestamps every version with its own timestamp is a key of its own, and
//! deletions stay: history is kept whole. Below `full_history_ts_low` it is not: there all versions
//! of a key are one key to the rules above, and what reaches the bottom loses its timestamp with
//! its sequence. A read at or above that timestamp sees no difference.
//!
//! Callers: flush and compaction jobs, one stream per sub-compaction. Not shared between threads.

mod blob_flow;
mod blobs;
mod filter;
mod merge;
mod operands;
mod rules;
mod stream;

pub use blobs::{ValueSink, count_refs};
pub use stream::{CompactionStream, KeyProbe, StreamCounters, StreamOptions};
