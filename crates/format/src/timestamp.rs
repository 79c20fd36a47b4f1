//! User-defined timestamps: several versions of a key, told apart by a time that the application
//! gives.
//!
//! An order whose [`KeyOrder::timestamp_size`] is above 0 has that many bytes of timestamp at the
//! end of every user key, in memtables, tables, logs and batches alike:
//!
//! ```text
//! internal key = key ++ timestamp ++ trailer
//! order        = key ascending, timestamp descending, sequence descending
//! ```
//!
//! A reader at timestamp `t` sees of each key the version with the greatest timestamp that is not
//! above `t`; a deletion is a version too.
//!
//! Invariants:
//! - The size belongs to the family for ever; every key of it that is stored has a timestamp.
//! - Whatever groups or bounds keys (filters, prefixes, levels, iterate bounds, compaction ranges,
//!   "the same key") compares without timestamps ([`KeyOrder::compare_without_timestamp`]);
//!   whatever orders versions compares with them.
//! - The application gives a key timestamps that do not decrease from write to write. A point read
//!   ends at the newest source (a memtable, a table) that has a version it sees, as RocksDB's does;
//!   only iterators would notice a greater one in an older source.
//! - A range deletion stores its timestamp at the end of both its keys. Its range is one of keys
//!   without timestamps.
//! - Bytes of 0xff are the greatest timestamp and bytes of 0 the smallest, as in RocksDB: the first
//!   and the last place among the versions of a key. [`GREATEST`] and [`SMALLEST`] say so by name.
//! - An order without timestamps has none of this on its paths: the size is 0, and what depends on
//!   it was chosen when a cursor, a table or a memtable was made.
//!
//! Rejected: timestamps in the value (a compaction would have to read values, and a seek could not
//! find a version); a separate index by time (two things to keep in step, and no files that RocksDB
//! reads); a number instead of bytes (RocksDB lets the application choose size and order).

pub use crate::comparator::{GREATEST, SMALLEST};

use crate::KeyOrder;
use std::cmp::Ordering;

/// The part of a user key before its timestamp of `size` bytes; empty for a key that is too short.
#[inline]
pub fn bare(user: &[u8], size: usize) -> &[u8] {
    &user[..user.len().saturating_sub(size)]
}

/// The timestamp of `size` bytes at the end of a user key; all of a key that is too short.
#[inline]
pub fn of(user: &[u8], size: usize) -> &[u8] {
    &user[user.len().saturating_sub(size)..]
}

/// Compares the timestamps of two user keys of `order`; larger is later.
pub fn compare_of(order: &KeyOrder, a: &[u8], b: &[u8]) -> Ordering {
    let size = order.timestamp_size();
    order.compare_timestamp(of(a, size), of(b, size))
}

/// A timestamp for messages, as RocksDB prints it: the number in an order with 64-bit timestamps of
/// its own, bytes in hexadecimal otherwise.
pub fn text(order: &KeyOrder, timestamp: &[u8]) -> String {
    match (order, timestamp.first_chunk::<8>()) {
        (KeyOrder::BytewiseU64Ts | KeyOrder::ReverseBytewiseU64Ts, Some(number)) => {
            u64::from_le_bytes(*number).to_string()
        }
        _ => timestamp.iter().map(|b| format!("{b:02X}")).collect(),
    }
}
