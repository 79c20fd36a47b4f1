//! The meaning of bytes: keys and their order, batches, log records, blocks, filters, footers,
//! properties, version edits, OPTIONS text and file names.
//!
//! No I/O and no policy: every function here turns values into bytes or bytes into values, checks
//! lengths before it believes them and never panics on bytes that came from a disk.
#![forbid(unsafe_code)]

pub mod batch;
pub mod blob;
pub mod blob_groups;
pub mod blob_refs;
pub mod block;
pub mod coding;
pub mod comparator;
pub mod cursor;
pub mod edit;
pub mod entry_batch;
pub mod file_name;
pub mod filter;
pub mod footer;
pub mod ids;
pub mod key;
pub mod log;
mod named_enum;
pub mod options_text;
pub mod prefix;
pub mod properties;
pub mod saved_cache;
pub mod timestamp;
pub mod tombstone;
pub mod unique_id;
pub mod wide_column;

pub use comparator::{BYTEWISE_NAME, Comparator, KeyOrder};
pub use cursor::Cursor;
pub use ids::{FamilyId, FileNo, Level, Seq};
pub use key::{InternalKey, ParsedKey, ValueType};
pub use prefix::{PrefixExtractor, SliceTransform};
pub use tombstone::RawTombstone;
