//! What to do: the inputs and the output of one compaction, decided and not yet begun.
//!
//! A plan is a value; the engine turns it into a job and the job's outcome into an edit. [`Busy`] is
//! what running plans occupy, so that no two take one input or write overlapping ranges of one level.

use crate::file::FileMeta;
use esker_format::{FileNo, InternalKey, Level};
use std::sync::Arc;

/// Why a compaction runs; the numbers are RocksDB's `CompactionReason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum CompactionReason {
    /// Not known.
    #[default]
    Unknown = 0,
    /// Leveled: level 0 has too many files.
    LevelL0FilesNum = 1,
    /// Leveled: a level is larger than its target.
    LevelMaxLevelSize = 2,
    /// Universal: too much space for what is alive.
    UniversalSizeAmplification = 3,
    /// Universal: runs of similar size.
    UniversalSizeRatio = 4,
    /// Universal: too many runs.
    UniversalSortedRunNum = 5,
    /// FIFO: the files together are too large.
    FifoMaxSize = 6,
    /// FIFO: too many small files.
    FifoReduceNumFiles = 7,
    /// FIFO: files have expired.
    FifoTtl = 8,
    /// The user asked.
    ManualCompaction = 9,
    /// Files were marked by their builder or by the user.
    FilesMarkedForCompaction = 10,
    /// Old versions in bottommost files are no longer protected by a snapshot.
    BottommostFiles = 11,
    /// Files have expired.
    Ttl = 12,
    /// A flush (for listeners only).
    Flush = 13,
    /// External files join level 0 (for listeners only).
    ExternalSstIngestion = 14,
    /// Files are old enough to be rewritten.
    PeriodicCompaction = 15,
    /// A file moves to another temperature.
    ChangeTemperature = 16,
    /// Blob garbage is too high.
    ForcedBlobGarbageCollection = 17,
    /// Round-robin time to live.
    RoundRobinTtl = 18,
    /// A level was refitted.
    RefitLevel = 19,
}

/// How a plan is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PlanKind {
    /// Read, merge and write.
    #[default]
    Merge,
    /// Only the MANIFEST changes: the files go to the output level as they are.
    TrivialMove,
    /// The files are dropped (FIFO).
    Delete,
}

/// Inputs of one level, in the level's order.
#[derive(Clone, Debug, Default)]
pub struct LevelInputs {
    /// Their level.
    pub level: Level,
    /// The files.
    pub files: Vec<Arc<FileMeta>>,
}

/// One compaction.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Why.
    pub reason: CompactionReason,
    /// How.
    pub kind: PlanKind,
    /// Whether the user asked for it.
    pub manual: bool,
    /// By level, ascending; the last may be the output level. No entry is empty.
    pub inputs: Vec<LevelInputs>,
    /// Where the result goes.
    pub output_level: Level,
    /// Files of the level below the output that the inputs meet: where outputs should be cut.
    pub grandparents: Vec<Arc<FileMeta>>,
    /// Whether nothing at or below the output level, outside the inputs, holds a key of the range.
    pub bottommost: bool,
    /// Outputs are cut at this size.
    pub max_output_file_size: u64,
    /// An output is cut when it meets more grandparent bytes than this.
    pub max_compaction_bytes: u64,
    /// The level's score when it was picked.
    pub score: f64,
    /// Round robin: where the next pick at a level starts, for the edit.
    pub cursor: Option<(Level, InternalKey)>,
}

/// What running plans occupy.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    pub(crate) running: Vec<Running>,
    next: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) ticket: u64,
    pub(crate) files: Vec<FileNo>,
    pub(crate) takes_level0: bool,
    pub(crate) output_level: Level,
    pub(crate) smallest: InternalKey,
    pub(crate) largest: InternalKey,
}

/// Proof that a plan is registered as running; give it back with [`Busy::release`].
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket(u64);
