//! What bytes mean: keys and their order, batches, log records, blocks, filters, footers, properties,
//! version edits, OPTIONS text and file names.
//!
//! No I/O and no policy: every function here turns values into bytes or bytes into values, checks
//! lengths before it believes them and never panics on bytes that came from a disk.
#![forbid(unsafe_code)]

pub mod block;
pub mod coding;
pub mod comparator;
pub mod cursor;
pub mod ids;
pub mod key;
pub mod prefix;
pub mod tombstone;

pub use comparator::{BYTEWISE_NAME, Comparator, KeyOrder};
pub use cursor::Cursor;
pub use ids::{FamilyId, FileNo, Level, Seq};
pub use key::{InternalKey, ParsedKey, ValueType};
pub use prefix::{PrefixExtractor, SliceTransform};
pub use tombstone::RawTombstone;
