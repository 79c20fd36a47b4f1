//! Block-based tables (SST files): reading, walking, building.
//!
//! A table is data blocks, a filter, an index, range tombstones, properties and a footer (`format`
//! says what the bytes mean). [`TableReader`] opens a file once and is shared by all readers;
//! [`TableCursor`] walks it; [`TableBuilder`] writes one.
//!
//! Callers: the engine's read path, flush, compaction, ingestion and the command line.
//! Thread-safety: a reader is immutable after opening and shared; cursors and builders belong to
//! one thread at a time.

mod admin;
mod block_file;
mod builder;
mod builder_index;
mod cached;
mod compressed_tier;
mod context;
mod cursor;
mod fetch;
mod filter;
mod filter_block;
mod filter_builder;
mod filter_match;
mod fresh;
mod lookup;
mod observer;
mod open;
mod options;
mod parallel;
mod partitions;
mod prefetch;
mod reader;
mod salvage;
mod samples;
mod search;
mod stages;
mod walks;
mod warm;
mod windows;
mod work;

pub use admin::{Anchor, BlockInfo, BlockKind};
pub use builder::{TABLE_BUILDERS, TableBuilder, TableSummary};
pub use cached::{BlockCache, CachedBlock, cache_name};
pub use compressed_tier::{CompressedTierOptions, new_block_cache};
pub use context::{FoundEntry, LookupKey, PinnedBlockValue, ReadContext, ReadCounters};
pub use cursor::TableCursor;
pub use filter_block::FilterBlock;
pub use fresh::PrepopulateTarget;
pub use lookup::BlockLocation;
pub use observer::{BlockRole, FilterOutcome, TableObserver};
pub use open::read_properties;
pub use options::{
    DataBlockIndexType, IndexShortening, IndexType, TableBuilderOptions, TableOptions,
    TableReaderOptions,
};
pub use parallel::CompressionThreads;
pub use reader::{Meta, TableReader};
pub use salvage::{DamagedRange, Salvage, SalvageCounts, SalvageOptions};
pub use stages::{Stage, StageClock, StageTimes};
pub use walks::WalkLengths;
pub use warm::{LoadThrottle, LoadedBlocks};
pub use work::{
    READ_KINDS, ReadFigure, ReadWork, add_read_work, count_down, hold_read_work, mark_read_work,
    read_work_since_mark, release_read_work, reset_read_work, set_read_work,
    set_read_work_counting,
};
