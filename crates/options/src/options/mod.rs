//! Options: a catalogue of every RocksDB option, and the structs that follow from it.
//!
//! [`DbOptions`] and [`FamilyOptions`] are flat and carry RocksDB's names; their rows in `db.rs`,
//! `family.rs`, `table.rs` and `nested.rs` are the only place where an option is named. Everything
//! else here reads those rows through [`OptionSet`].
//!
//! There is one way to open a database: with [`crate::options::Options`], which holds the flat
//! structs and is filled in field by field or by RocksDB's names. [`Settings`] is a smaller, typed
//! set of choices from which it follows.

mod block_cache;
mod builder;
mod call_chain;
pub mod catalogue;
mod chain;
pub mod collector;
mod compat;
mod convert;
mod db;
pub mod dump;
mod family;
pub mod file_checksum;
mod io;
mod lint;
pub mod names;
mod nearest;
mod nested;
pub mod nested_value;
mod open;
mod order;
pub mod partitioner;
mod paths;
mod prefix;
#[cfg(test)]
mod releases;
mod resolve;
mod retired;
mod table;
mod temperature;
#[cfg(test)]
mod tests;
pub mod text;
pub mod value;
mod wal_filter;

pub use crate::enums::{
    AccessHint, BackgroundIoKind, BlockSearchType, BottommostLevelCompaction, CacheTier,
    ChecksumKind, CompactionPri, CompactionStopStyle, CompactionStyle, CompressionType,
    DataBlockIndexType, IndexShortening, IndexType, InfoLogLevel, MemtableKind, PinningTier,
    PrepopulateBlobCache, PrepopulateBlockCache, TableFormat, Temperature, WalRecoveryMode,
};
pub use block_cache::{BlobCacheSource, BlockCacheSource};
pub use builder::{
    Admission, Compaction, Compression, Durability, Jobs, Leveled, Memory, Observe, Settings,
    Table, Universal, Wal,
};
pub use call_chain::behind_prefix;
pub use catalogue::{Change, Entry, Fate, Group, Info, Known, OptionSet};
pub use collector::{
    CollectorContext, CompactOnDeletion, EntryKind, TablePropertiesCollector,
    TablePropertiesCollectorFactory,
};
pub use compat::compat_markdown;
pub use db::DbOptions;
pub use esker_format::prefix::{PrefixExtractor, SliceTransform};
pub use esker_lsm::policy::{FifoSettings, FileTemperatureAge, UniversalSettings};
pub use family::FamilyOptions;
pub use file_checksum::{FileChecksumCrc32c, FileChecksumGenFactory, FileChecksumGenerator};
pub use io::{
    BlobGarbageCollectionPolicy, CompactFilesOptions, CompactRangeOptions, FlushOptions,
    ImportOptions, IngestOptions, ReadOptions, ReadTier, SizeOptions, SnapshotRef, TableFilter,
    WaitForCompactOptions, WriteOptions,
};
pub use lint::{Finding, Severity, check, lint};
pub use nested::{CompressionSettings, MetadataCacheSettings};
pub use open::Options;
pub use partitioner::{
    FixedPrefixPartitions, PartitionContext, SstPartitioner, SstPartitionerFactory,
};
pub use paths::DbPath;
pub use resolve::JobLimits;
pub use retired::{RETIRED, Retired, Section};
pub use table::TableSettings;
pub use text::{LoadRules, LoadedOptions, Remark, load_options_text, print_options_text};
pub use value::OptionValue;
pub use wal_filter::{WalDecision, WalFilter};
