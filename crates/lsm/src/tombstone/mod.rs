//! Range deletions: cut into fragments that do not overlap, clipped to files, asked by readers and
//! by compactions.
//!
//! - [`FragmentedTombstones`]: the tombstones of one source (memtable or file), immutable and
//!   shared.
//! - [`ClippedTombstones`]: those of a file, limited to the file's boundaries, which is what the
//!   file may delete; tables hold their tombstones whole.
//! - [`ReadTombstones`]: every source of a read view; answers "is this version deleted" along a
//!   scan.
//! - [`CompactionTombstones`]: the tombstones of a compaction's inputs; what they allow to drop and
//!   what each output file must hold.
//!
//! With user-defined timestamps a range is one of keys without timestamps, and the deletion has a
//! timestamp of its own: a reader at an older one does not see it. A compaction drops what a
//! deletion hides, and in the end the deletion, only once its timestamp is below
//! `full_history_ts_low`. Sequences alone say whether a version is older than a deletion, since
//! timestamps do not decrease from write to write.

mod clip;
mod compaction;
mod fragment;
mod read;

pub use clip::{Clip, ClippedTombstones};
pub use compaction::{CompactionTombstones, DropRules, FilePoints, OutputBounds, RangeProbe};
pub use fragment::{Fragment, FragmentedTombstones};
pub use read::{LevelTombstones, ReadTombstones};
