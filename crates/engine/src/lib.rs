//! Esker: an embedded LSM storage engine that reads and writes RocksDB's files.
//!
//! A [`Db`] is a directory of ordered key-value families. Writes go to a log and to memory, and
//! from there to sorted tables that background jobs merge; reads see one consistent state and never
//! block writers.
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().expect("a directory");
//! use esker::{Db, Options};
//!
//! let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
//! db.put("key", "value")?;
//! assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
//! db.delete("key")?;
//! assert_eq!(db.get("key")?, None);
//! # Ok(())
//! # }
//! ```
//!
//! The codecs `lz4`, `zstd`, `zlib`, `bzip2` and `snappy` are features, all of them default; a C
//! compiler is needed for the first two. What needs a codec that is left out gets
//! [`ErrorKind::NotSupported`] with the feature to enable.
#![forbid(unsafe_code)]

mod core;
mod db;
mod family;
mod health;
mod job;
mod memtable;
mod metadata;
mod ranks;
mod read;
mod recover;
mod registry;
mod repair;
mod snapshot;
mod sst_file_reader;
mod sst_file_writer;
mod store;
mod timestamp;
mod tree;
pub mod ttl;
mod write;

pub use db::BoundFamily as Family;
pub use db::{
    CheckpointOptions, CheckpointReport, ClosedDb, Db, DbBuilder, DestroyReport, Direction,
    Entries, EntriesFrom, FamilyDescriptor, IngestArg, IteratorMode, KeyRange, Keys, LiveFile,
    LogReport, MemoryUsage, OpenMode, OperationSampling, PropertyMap, Timestamped, TransactionLog,
    Values, WalFile, WalKind, read_table_properties,
};
pub use esker_cache::{CacheKind, CacheOptions};
pub use esker_codec as codec;
pub use esker_env::{self as env, Env};
pub use esker_files::table::{BlockCache, CachedBlock, CompressedTierOptions, new_block_cache};
pub use esker_format::FamilyId;
pub use esker_format::batch::WriteBatch;
pub use esker_format::comparator::{Comparator, KeyOrder};
pub use esker_format::file_name::{self, FileKind};
pub use esker_format::properties::TableProperties;
pub use esker_lsm::compaction_filter::{
    CompactionFilter, CompactionFilterFactory, Decision, FilterContext, FilterValue,
};
pub use esker_lsm::merge_operator::MergeOperator;
use esker_options::{memory, runtime};
#[doc(inline)]
pub use esker_options::{observe, options};
pub use esker_status::{Error, ErrorKind, LockHolder, Result, Subcode};
pub use esker_sync::memory::{Allocator, declare_allocator};
pub use family::FamilyHandle;
pub use health::{ErrorSource, HealthState};
pub use memory::{
    BudgetDecision, BudgetReason, BudgetSide, BudgetSlopes, BudgetSource, BudgetState,
    MemoryBudget, MemoryBudgetOptions, SstFileManager, WriteBufferManager,
};
pub use memtable::memtable_arenas;
pub use metadata::{
    BlobMeta, ExportedFiles, FamilyMeta, FamilyMetaOptions, LevelMeta, LiveFileMeta,
};
pub use observe::DbRef;
pub use options::{
    CompactFilesOptions, CompactRangeOptions, DbOptions, DbPath, FamilyOptions, FlushOptions,
    ImportOptions, IngestOptions, Options, ReadOptions, Settings, SizeOptions, SnapshotRef,
    WaitForCompactOptions, WalDecision, WalFilter, WriteOptions,
};
pub use read::{DbIterator, LatestWrite, PinnedValue};
pub use recover::load_latest_options;
pub use repair::{LostRange, RepairMode, RepairOptions, RepairReport, SalvagedTable, SetAside};
pub use runtime::{IoPriority, RateLimiter, RateLimiterMode, RateLimiterOptions};
pub use snapshot::Snapshot;
pub use sst_file_reader::{SstFileIterator, SstFileReader};
pub use sst_file_writer::{ExternalFileInfo, SstFileWriter};

/// Merge operators: RocksDB's, and those of a program.
pub mod merge_operator {
    pub use esker_lsm::closures::merge_from_fn as from_fn;
    pub use esker_lsm::merge_operator::*;
}

/// Compaction filters: the decisions of a program on what compactions write.
pub mod compaction_filter {
    pub use esker_lsm::closures::filter_from_fn as from_fn;
    pub use esker_lsm::compaction_filter::*;
}
