//! Range deletions: cut into fragments that do not overlap, clipped to files, asked by readers and by
//! compactions.
//!
//! - [`FragmentedTombstones`]: the tombstones of one source (memtable or file), immutable and shared.
//! - [`ClippedTombstones`]: those of a file, limited to the file's boundaries, which is what the file may
//!   delete; tables hold their tombstones whole.
//! - [`ReadTombstones`]: every source of a read view; answers "is this version deleted" along a scan.
//! - [`CompactionTombstones`]: the tombstones of a compaction's inputs; what they allow to drop and what
//!   each output file must hold.
//!
//! Families with user-defined timestamps have no range deletions here: they are refused by name.

mod clip;
mod compaction;
mod fragment;
mod read;

pub use clip::{Clip, ClippedTombstones};
pub use compaction::{CompactionTombstones, DropRules, FilePoints, OutputBounds, RangeProbe};
pub use fragment::{Fragment, FragmentedTombstones};
pub use read::{LevelTombstones, ReadTombstones};
