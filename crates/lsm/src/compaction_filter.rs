//! Compaction filters: the application's decision on each key that a flush or compaction writes.
//!
//! A filter sees the newest version of each key (and merge operands that no snapshot needs), in key
//! order within one sub-compaction. It may be shared by several jobs at once.
//!
//! Callers: `compaction_stream` asks; the engine makes one filter per job from the factory.

use std::sync::Arc;

/// The value that the filter looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterValue<'a> {
    /// A plain value (also one that was read from a blob file).
    Value(&'a [u8]),
    /// A merge operand.
    MergeOperand(&'a [u8]),
    /// An encoded wide-column entity.
    Entity(&'a [u8]),
}

/// A filter's decision about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Keep it.
    Keep,
    /// ThreadSlot it into a deletion (dropped where nothing lies below).
    Remove,
    /// ThreadSlot it into a single deletion: for keys that are written at most once.
    Purge,
    /// Replace it by the plain value in the output buffer.
    ChangeValue,
    /// Replace it by the encoded wide-column entity in the output buffer. Not for merge operands.
    ChangeEntity,
    /// Drop it and every key before the user key in the output buffer, without leaving deletions;
    /// taken as [`Decision::Keep`] when that key is not after the present one.
    RemoveAndSkipUntil,
}

/// Decides about entries during flushes and compactions.
pub trait CompactionFilter: Send + Sync {
    /// The filter's name, for logs.
    fn name(&self) -> &str;

    /// Decides about one entry that lands at `level`. `out` is empty and takes a new value or a key
    /// to skip to.
    fn filter(&self, level: u8, key: &[u8], value: FilterValue<'_>, out: &mut Vec<u8>) -> Decision;

    /// Decides about an entry whose value is in a blob file by its key alone; `None` reads the
    /// value first.
    fn filter_blob_by_key(&self, level: u8, key: &[u8], out: &mut Vec<u8>) -> Option<Decision> {
        let _ = (level, key, out);
        None
    }

    /// `true` (RocksDB's only choice today) filters versions that a snapshot may still see;
    /// `false` leaves those alone.
    fn ignore_snapshots(&self) -> bool {
        true
    }
}

/// Facts about its job that a filter may know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterContext {
    /// The family's number.
    pub family: u32,
    /// True if the job reads everything that the family holds.
    pub is_full_compaction: bool,
    /// True if somebody asked for the job.
    pub is_manual_compaction: bool,
    /// True if the job is a flush.
    pub is_flush: bool,
    /// The level that the job writes to.
    pub output_level: u8,
}

/// Makes a filter for each job.
pub trait CompactionFilterFactory: Send + Sync {
    /// The factory's name, for OPTIONS files.
    fn name(&self) -> &str;
    /// The filter of one job; `None` filters nothing.
    fn create(&self, context: &FilterContext) -> Option<Arc<dyn CompactionFilter>>;
    /// Returns whether flushes are filtered as well; RocksDB's default is no.
    fn should_filter_flush(&self) -> bool {
        false
    }
}

/// Removes entries with an empty value (`RemoveEmptyValueCompactionFilter`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveEmptyValues;

impl CompactionFilter for RemoveEmptyValues {
    fn name(&self) -> &str {
        "RemoveEmptyValueCompactionFilter"
    }
    fn filter(
        &self,
        _level: u8,
        _key: &[u8],
        value: FilterValue<'_>,
        _out: &mut Vec<u8>,
    ) -> Decision {
        match value {
            FilterValue::Value(v) | FilterValue::MergeOperand(v) if v.is_empty() => {
                Decision::Remove
            }
            _ => Decision::Keep,
        }
    }
}
