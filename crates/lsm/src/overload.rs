//! Numbers by which pickers shape trees that are overloaded, or about to be.
//!
//! Those of the scale of loads are in [`crate::load`], those of the pace of writers in
//! [`crate::pace`]. `docs/overload.md` lists them all, with what was measured without them.

/// Fewer files of level 0 are not merged among themselves: RocksDB's number.
pub const MIN_FILES_FOR_INTRA_L0: usize = 4;

/// Microseconds without a flush after which writers rest, and without a wait after which they are
/// not held back. A caller that asks once a second sees a wait.
pub const REST_US: u64 = 2_000_000;

/// Target size of a level-0 batch, as a part of the last level.
pub(crate) const RUN_PART: f64 = 0.15;

/// It is no larger than this many memtables: merged in itself, a dozen or more at a time, those are
/// some ten tables of level 0.
pub(crate) const RUN_MEMTABLES: f64 = 80.0;

/// The part of level 0, or of a batch of it, that counts as little: so much of a batch may stay in
/// level 0 or be in its way, and by so much of level 0 the base may be over its target when level 0
/// comes.
pub(crate) const SMALL_PART: f64 = 0.25;

/// The part of a tree that may lie above what it is merged into. While level 0 is less of the tree,
/// its tables count, and not their bytes. Once all above the last level is so much of that, no
/// first run begins above a base that fell behind: level 0 waits, which slows writers down.
pub(crate) const MOST_ABOVE: f64 = 0.5;

/// A slice is no wider than this many tables of the uppermost run, where compactions may be of any
/// size: the picker looks at each.
pub(crate) const MAX_SLICE_TABLES: usize = 16;

/// From so small a part of a run on a table of it ends where one below it does: a slice is as wide
/// as its widest table.
pub(crate) const TABLES_OF_RUN: u64 = 256;

/// The runs of a universal tree gather to this many times the trigger at most while writers are
/// held back.
pub(crate) const GATHERED_MOST: usize = 4;
