//! Events, and the trait of their listeners.
//!
//! Listeners are called by the thread that did the work, without any lock of the engine held, in
//! the order in which things happened to one job. They must return soon and must not panic.

use super::DbRef;
use crate::enums::CompressionType;
use esker_format::properties::TableProperties;
use esker_format::{FileNo, Level, Seq};
use esker_status::Error;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Declares an enum whose variants have a text for logs.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $text:literal, )+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
        }

        impl $name {
            /// The text that logs carry.
            pub fn text(self) -> &'static str {
                match self {
                    $( $name::$variant => $text, )+
                }
            }
        }
    };
}

reasons! {
    /// Why a memtable was flushed.
    FlushReason {
        /// The application asked.
        ManualFlush = "Manual Flush",
        /// It was full.
        WriteBufferFull = "Write Buffer Full",
        /// All memtables together were too large.
        WriteBufferManager = "Write Buffer Manager",
        /// The logs together were too large.
        WalFull = "WAL Full",
        /// Reads had paid for a compaction of it.
        AutoCompaction = "Auto Compaction",
        /// The database was recovered.
        Recovery = "Recovery",
        /// An error was overcome.
        ErrorRecovery = "Error Recovery",
        /// The database closes.
        ShutDown = "Shut down",
        /// A file was ingested.
        ExternalFileIngestion = "External File Ingestion",
        /// A range was compacted by hand.
        ManualCompaction = "Manual Compaction",
        /// A list of live files was asked for.
        GetLiveFiles = "Get Live Files",
        /// It held too many range deletions.
        TooManyRangeDeletions = "Memtable Max Range Deletions",
    }
}

reasons! {
    /// Why files were compacted.
    CompactionReason {
        /// Not said.
        Unknown = "Unknown",
        /// Level 0 had too many files.
        LevelL0FilesNum = "LevelL0FilesNum",
        /// A level was too large.
        LevelMaxLevelSize = "LevelMaxLevelSize",
        /// Universal: too much space was taken.
        UniversalSizeAmplification = "UniversalSizeAmplification",
        /// Universal: runs were of similar size.
        UniversalSizeRatio = "UniversalSizeRatio",
        /// Universal: there were too many runs.
        UniversalSortedRunNum = "UniversalSortedRunNum",
        /// FIFO: files were too large together.
        FifoMaxSize = "FIFOMaxSize",
        /// FIFO: small files were merged.
        FifoReduceNumFiles = "FIFOReduceNumFiles",
        /// FIFO: files were too old.
        FifoTtl = "FIFOTtl",
        /// The application asked.
        ManualCompaction = "ManualCompaction",
        /// Files were marked.
        FilesMarkedForCompaction = "FilesMarkedForCompaction",
        /// Garbage on the last level could go.
        BottommostFiles = "BottommostFiles",
        /// Data was too old.
        Ttl = "Ttl",
        /// A file was due for rewriting.
        PeriodicCompaction = "PeriodicCompaction",
        /// A file came from outside.
        ExternalSstIngestion = "ExternalSstIngestion",
        /// Level 0 was merged within itself.
        L0IntraLevel = "LevelL0IntraLevel",
        /// Live values were moved out of blob files.
        ForcedBlobGc = "ForcedBlobGC",
        /// Round robin took files with a pressing neighbour.
        RoundRobinTtl = "RoundRobinTtl",
        /// Reads had paid for it.
        ReadTriggered = "ReadTriggered",
    }
}

reasons! {
    /// Which job made a file.
    TableFileReason {
        /// A flush.
        Flush = "flush",
        /// A compaction.
        Compaction = "compaction",
        /// Recovery.
        Recovery = "recovery",
        /// Repair, or a tool.
        Misc = "misc",
    }
}

reasons! {
    /// Background work that an error stopped.
    BackgroundErrorReason {
        /// A flush.
        Flush = "flush",
        /// A compaction.
        Compaction = "compaction",
        /// A write to the log.
        Write = "write",
        /// An insertion into a memtable.
        Memtable = "memtable",
        /// A write to the MANIFEST.
        ManifestWrite = "manifest write",
        /// A flush of unlogged data.
        FlushNoWal = "flush without log",
        /// A write to the MANIFEST about unlogged data.
        ManifestWriteNoWal = "manifest write without log",
    }
}

reasons! {
    /// State of writers: free, slowed down or stopped.
    StallCondition {
        /// They are not.
        Normal = "normal",
        /// They are slowed down.
        Delayed = "delayed",
        /// They wait.
        Stopped = "stopped",
    }
}

/// A flush.
#[derive(Clone, Debug)]
pub struct FlushInfo {
    /// The database.
    pub database: DbRef,
    /// The family.
    pub family: String,
    /// The family's number.
    pub family_id: u32,
    /// The job's number.
    pub job: u64,
    /// Why.
    pub reason: FlushReason,
    /// Memtables that were flushed together.
    pub memtables: usize,
    /// The table file, once there is one; `None` when nothing was left to write.
    pub file: Option<PathBuf>,
    /// Its number.
    pub file_no: Option<FileNo>,
    /// Its size in bytes.
    pub file_bytes: u64,
    /// Entries that were read.
    pub entries: u64,
    /// Oldest sequence number in it.
    pub smallest_seq: Seq,
    /// Newest sequence number in it.
    pub largest_seq: Seq,
    /// True if writers were slowed down when it ended.
    pub triggered_slowdown: bool,
    /// True if writers were stopped when it ended.
    pub triggered_stop: bool,
    /// Microseconds that it took; 0 when it begins.
    pub elapsed_us: u64,
    /// The oldest blob file that the table refers to.
    pub oldest_blob_file: Option<FileNo>,
    /// Properties of the table, once there is one.
    pub properties: Option<Arc<TableProperties>>,
    /// The blob files that were written.
    pub blob_files: Vec<BlobFileShare>,
    /// The codec of new blob files.
    pub blob_compression: CompressionType,
}

/// A file that a compaction read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionFile {
    /// Where it was, or is now.
    pub level: Level,
    /// Its number.
    pub file_no: FileNo,
    /// The oldest blob file that it refers to.
    pub oldest_blob_file: Option<FileNo>,
}

/// Counters of a compaction, or of a part of one; all 0 when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionFigures {
    /// Processor time in microseconds.
    pub cpu_us: u64,
    /// Entries that were read.
    pub input_entries: u64,
    /// Entries that were written.
    pub output_entries: u64,
    /// Deletions that were read.
    pub input_deletions: u64,
    /// Entries that newer ones hid.
    pub replaced_entries: u64,
    /// Deletions that were dropped with nothing left to delete.
    pub expired_deletions: u64,
    /// Bytes of keys that were read, before any encoding.
    pub input_key_bytes: u64,
    /// Bytes of values that were read, before any encoding.
    pub input_value_bytes: u64,
    /// Entries of corrupt form.
    pub corrupt_entries: u64,
    /// Single deletions dropped without meeting a value.
    pub single_deletions_fallen_through: u64,
    /// Single deletions that met something else than one value.
    pub single_deletions_mismatched: u64,
    /// Blobs that were read.
    pub blobs_read: u64,
    /// Bytes of them.
    pub blob_bytes_read: u64,
}

/// A compaction.
#[derive(Clone, Debug)]
pub struct CompactionInfo {
    /// The database.
    pub database: DbRef,
    /// The family.
    pub family: String,
    /// The family's number.
    pub family_id: u32,
    /// The job's number.
    pub job: u64,
    /// Why.
    pub reason: CompactionReason,
    /// First level of the inputs.
    pub base_input_level: Level,
    /// Level of the outputs.
    pub output_level: Level,
    /// Files that are read.
    pub input_files: Vec<FileNo>,
    /// Files that were written; empty when it begins.
    pub output_files: Vec<FileNo>,
    /// Bytes of the inputs.
    pub input_bytes: u64,
    /// Bytes of the outputs.
    pub output_bytes: u64,
    /// Entries that were read.
    pub input_entries: u64,
    /// Entries that were written.
    pub output_entries: u64,
    /// True if files were moved and not rewritten.
    pub is_trivial_move: bool,
    /// True if the application asked for it.
    pub is_manual: bool,
    /// Parts that it was split into.
    pub subcompactions: usize,
    /// Microseconds that it took; 0 when it begins.
    pub elapsed_us: u64,
    /// How it ended; `None` while it runs and when it went well.
    pub error: Option<Error>,
    /// The files that are read, with their places.
    pub inputs: Vec<CompactionFile>,
    /// The files that were written, with their places; empty when it begins.
    pub outputs: Vec<CompactionFile>,
    /// Where the files are: the inputs, and the outputs once they are there.
    pub paths: BTreeMap<FileNo, PathBuf>,
    /// Properties of the tables: the inputs, and the outputs once they are there.
    pub properties: BTreeMap<FileNo, Arc<TableProperties>>,
    /// The codec of the outputs.
    pub compression: CompressionType,
    /// Files of level 0 when it was told.
    pub level0_files: usize,
    /// The blob files that were written.
    pub blob_files: Vec<BlobFileShare>,
    /// Values that nothing refers to any more, by blob file.
    pub blob_garbage: Vec<BlobFileShare>,
    /// The codec of new blob files.
    pub blob_compression: CompressionType,
    /// True if it reads everything that the family holds.
    pub is_full: bool,
    /// Its counters.
    pub figures: CompactionFigures,
}

/// One key range of a compaction.
#[derive(Clone, Debug)]
pub struct SubcompactionInfo {
    /// The family.
    pub family: String,
    /// The family's number.
    pub family_id: u32,
    /// The job's number.
    pub job: u64,
    /// The range's number in the job, from 0 on.
    pub part: usize,
    /// Why.
    pub reason: CompactionReason,
    /// First level of the inputs.
    pub base_input_level: Level,
    /// Level of the outputs.
    pub output_level: Level,
    /// The codec of the outputs.
    pub compression: CompressionType,
    /// The codec of new blob files.
    pub blob_compression: CompressionType,
    /// How it ended; `None` while it runs and when it went well.
    pub error: Option<Error>,
    /// Its counters.
    pub figures: CompactionFigures,
}

/// A table file that was made, or could not be.
#[derive(Clone, Debug)]
pub struct TableFileCreation {
    /// The family.
    pub family: String,
    /// The job's number.
    pub job: u64,
    /// By which kind of job.
    pub reason: TableFileReason,
    /// The file.
    pub file: PathBuf,
    /// Its number.
    pub file_no: FileNo,
    /// Its size in bytes.
    pub file_bytes: u64,
    /// Entries in it.
    pub entries: u64,
    /// The failure.
    pub error: Option<Error>,
}

/// A table file that was deleted, or could not be.
#[derive(Clone, Debug)]
pub struct TableFileDeletion {
    /// The job's number.
    pub job: u64,
    /// The file.
    pub file: PathBuf,
    /// Its number.
    pub file_no: FileNo,
    /// The failure.
    pub error: Option<Error>,
}

/// A blob file that was made, or could not be.
#[derive(Clone, Debug)]
pub struct BlobFileCreation {
    /// The family.
    pub family: String,
    /// The job's number.
    pub job: u64,
    /// By which kind of job.
    pub reason: TableFileReason,
    /// The file.
    pub file: PathBuf,
    /// Its number.
    pub file_no: FileNo,
    /// Values in it.
    pub blobs: u64,
    /// Bytes of their records.
    pub blob_bytes: u64,
    /// The failure.
    pub error: Option<Error>,
}

/// A blob file that was deleted, or could not be.
#[derive(Clone, Debug)]
pub struct BlobFileDeletion {
    /// The job's number.
    pub job: u64,
    /// The file.
    pub file: PathBuf,
    /// Its number.
    pub file_no: FileNo,
    /// The failure.
    pub error: Option<Error>,
}

/// Values of a blob file: those that a job wrote, or those that it made garbage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobFileShare {
    /// The file.
    pub file: PathBuf,
    /// Its number.
    pub file_no: FileNo,
    /// The values.
    pub blobs: u64,
    /// Bytes of their records.
    pub blob_bytes: u64,
}

/// A memtable that takes no more writes.
#[derive(Clone, Debug)]
pub struct MemtableInfo {
    /// The family.
    pub family: String,
    /// First sequence number that may be in it.
    pub earliest_seq: Seq,
    /// First sequence number in it.
    pub first_seq: Seq,
    /// Entries in it.
    pub entries: u64,
    /// Deletions among them.
    pub deletes: u64,
    /// Bytes of memory.
    pub bytes: u64,
}

/// A change in how writers are held back.
#[derive(Clone, Debug)]
pub struct StallInfo {
    /// The family.
    pub family: String,
    /// How it is.
    pub current: StallCondition,
    /// How it was.
    pub previous: StallCondition,
}

/// A file that came from outside.
#[derive(Clone, Debug)]
pub struct IngestInfo {
    /// The database.
    pub database: DbRef,
    /// The family.
    pub family: String,
    /// Where it came from.
    pub external_file: PathBuf,
    /// Its present name.
    pub internal_file: PathBuf,
    /// The sequence number that its entries have.
    pub global_seq: Seq,
    /// Where it was put.
    pub level: Level,
    /// Properties of the table.
    pub properties: Arc<TableProperties>,
}

/// An error that stopped writing.
#[derive(Clone, Debug)]
pub struct BackgroundErrorInfo {
    /// The work that failed.
    pub reason: BackgroundErrorReason,
    /// The error.
    pub error: Error,
    /// True if the database will try by itself to go on.
    pub auto_recovery: bool,
}

/// A recovery from such an error.
#[derive(Clone, Debug)]
pub struct RecoveryInfo {
    /// The error it is about.
    pub error: Error,
    /// Tries so far.
    pub attempts: u32,
    /// The error of the last try; `None` when the database goes on.
    pub outcome: Option<Error>,
}

/// Hears of what happens. Every method does nothing unless it is overridden.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::observe::{EventListener, FlushInfo};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Default)]
/// struct Flushed(AtomicU64);
/// impl EventListener for Flushed {
///     fn on_flush_completed(&self, info: &FlushInfo) {
///         self.0.fetch_add(info.entries, Ordering::Relaxed);
///     }
/// }
///
/// let flushed = Arc::new(Flushed::default());
/// let mut options = esker::Options::new().create_if_missing(true);
/// options.db.listeners.push(flushed.clone());
/// let db = esker::Db::open(dir.path(), options)?;
/// db.put("key", "value")?;
/// db.flush()?;
/// db.close()?;
/// assert_eq!(flushed.0.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
pub trait EventListener: Send + Sync {
    /// A flush begins.
    fn on_flush_begin(&self, _info: &FlushInfo) {}
    /// A flush ended and its table is part of the tree.
    fn on_flush_completed(&self, _info: &FlushInfo) {}
    /// A compaction begins.
    fn on_compaction_begin(&self, _info: &CompactionInfo) {}
    /// A compaction ended; its outputs are part of the tree unless there was an error.
    fn on_compaction_completed(&self, _info: &CompactionInfo) {}
    /// A key range of a compaction begins.
    fn on_subcompaction_begin(&self, _info: &SubcompactionInfo) {}
    /// A key range of a compaction was written, or could not be.
    fn on_subcompaction_completed(&self, _info: &SubcompactionInfo) {}
    /// A table file was made, or could not be.
    fn on_table_file_created(&self, _info: &TableFileCreation) {}
    /// A table file was deleted, or could not be.
    fn on_table_file_deleted(&self, _info: &TableFileDeletion) {}
    /// A blob file was made, or could not be.
    fn on_blob_file_created(&self, _info: &BlobFileCreation) {}
    /// A blob file was deleted, or could not be.
    fn on_blob_file_deleted(&self, _info: &BlobFileDeletion) {}
    /// A memtable takes no more writes.
    fn on_memtable_sealed(&self, _info: &MemtableInfo) {}
    /// Writers are held back in another way than before.
    fn on_stall_conditions_changed(&self, _info: &StallInfo) {}
    /// A file from outside is part of the tree.
    fn on_external_file_ingested(&self, _info: &IngestInfo) {}
    /// An error stopped writing.
    fn on_background_error(&self, _info: &BackgroundErrorInfo) {}
    /// The database tries to go on after an error.
    fn on_error_recovery_begin(&self, _info: &RecoveryInfo) {}
    /// A recovery ended, well or not.
    fn on_error_recovery_end(&self, _info: &RecoveryInfo) {}
}

impl std::fmt::Debug for dyn EventListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventListener")
    }
}
