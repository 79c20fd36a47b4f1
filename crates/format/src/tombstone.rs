//! A range deletion as the range-deletion block and the memtable hold it.
//!
//! Callers: the table reader and the memtable yield these, `lsm`'s fragmenter takes them. A plain
//! value.

use crate::ids::Seq;

/// One range deletion: it hides entries with a sequence below `seq` in `[start, end)`.
///
/// Tombstones of one source may overlap and come in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RawTombstone {
    /// The first user key that is gone.
    pub start: Vec<u8>,
    /// The first user key that is not.
    pub end: Vec<u8>,
    /// The write that deleted them.
    pub seq: Seq,
}
