//! The order of user keys, and the order of internal keys that follows from it.
//!
//! [`KeyOrder`] is what the engine carries: the byte-wise orders are enum variants that compare
//! without a call through a pointer; anything else is the user's [`Comparator`]. Two keys that
//! compare equal are the same key to the database.

use crate::key::{TRAILER_LEN, trailer, user_key};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// RocksDB's name for the order by unsigned bytes.
pub const BYTEWISE_NAME: &str = "leveldb.BytewiseComparator";
/// RocksDB's name for the reverse of it.
pub const REVERSE_BYTEWISE_NAME: &str = "rocksdb.ReverseBytewiseComparator";
/// The byte that the greatest timestamp, which sorts first, consists of.
pub const GREATEST: u8 = 0xff;
/// The byte that the smallest timestamp, which sorts last, consists of.
pub const SMALLEST: u8 = 0;

/// RocksDB's name for byte order with a descending 8-byte timestamp suffix.
pub const BYTEWISE_U64TS_NAME: &str = "leveldb.BytewiseComparator.u64ts";
/// RocksDB's name for reverse byte order with a descending 8-byte timestamp suffix.
pub const REVERSE_BYTEWISE_U64TS_NAME: &str = "rocksdb.ReverseBytewiseComparator.u64ts";

/// An order of user keys that the application defines.
///
/// It must be a total order that never changes for a database, and must not panic. The name is
/// stored in the MANIFEST and checked at every open.
pub trait Comparator: Send + Sync {
    /// Names the order, for ever.
    fn name(&self) -> &str;
    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
    /// Returns whether keys with different bytes can compare equal. Hash indexes and, unless
    /// [`Comparator::filters_by_bytes`] says otherwise, filters are then not used.
    fn can_keys_with_different_bytes_be_equal(&self) -> bool {
        true
    }
    /// Returns whether filters may be used, which tell keys apart by their bytes: a key is then
    /// found only by the bytes that it was written with.
    fn filters_by_bytes(&self) -> bool {
        !self.can_keys_with_different_bytes_be_equal()
    }
    /// May shorten `start` to a key in `[start, limit)`; index blocks get smaller.
    fn find_shortest_separator(&self, _start: &mut Vec<u8>, _limit: &[u8]) {}
    /// May shorten `key` to a key that is not below it.
    fn find_short_successor(&self, _key: &mut Vec<u8>) {}
    /// Bytes of user-defined timestamp at the end of each key; 0 for none.
    fn timestamp_size(&self) -> usize {
        0
    }
    /// Compares without timestamps. Only asked when [`Comparator::timestamp_size`] is not 0.
    fn compare_without_timestamp(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare(a, b)
    }
    /// Compares two timestamps; larger is later. Only asked when [`Comparator::timestamp_size`] is
    /// not 0.
    ///
    /// The default takes them for versions of the empty key, of which the later sorts first.
    fn compare_timestamp(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare(b, a)
    }
}

/// The order of a family's keys. Cheap to clone.
#[derive(Clone, Default)]
pub enum KeyOrder {
    /// Unsigned bytes, ascending.
    #[default]
    Bytewise,
    /// Unsigned bytes, descending.
    ReverseBytewise,
    /// Unsigned bytes ascending, then the last eight bytes (a little-endian timestamp) descending.
    BytewiseU64Ts,
    /// Unsigned bytes descending, then the last eight bytes (a little-endian timestamp) descending.
    ReverseBytewiseU64Ts,
    /// The application's own.
    Custom(Arc<dyn Comparator>),
}

fn split_ts(k: &[u8]) -> (&[u8], u64) {
    match k.split_last_chunk::<8>() {
        Some((key, ts)) => (key, u64::from_le_bytes(*ts)),
        None => (k, 0),
    }
}

impl KeyOrder {
    /// The built-in order with this name.
    pub fn builtin(name: &str) -> Option<KeyOrder> {
        Some(match name {
            BYTEWISE_NAME | "BytewiseComparator" | "" => KeyOrder::Bytewise,
            REVERSE_BYTEWISE_NAME | "ReverseBytewiseComparator" => KeyOrder::ReverseBytewise,
            BYTEWISE_U64TS_NAME => KeyOrder::BytewiseU64Ts,
            REVERSE_BYTEWISE_U64TS_NAME => KeyOrder::ReverseBytewiseU64Ts,
            _ => return None,
        })
    }

    /// The name that the MANIFEST stores.
    pub fn name(&self) -> &str {
        match self {
            KeyOrder::Bytewise => BYTEWISE_NAME,
            KeyOrder::ReverseBytewise => REVERSE_BYTEWISE_NAME,
            KeyOrder::BytewiseU64Ts => BYTEWISE_U64TS_NAME,
            KeyOrder::ReverseBytewiseU64Ts => REVERSE_BYTEWISE_U64TS_NAME,
            KeyOrder::Custom(c) => c.name(),
        }
    }

    /// Returns whether this is plain byte order: fast paths may compare prefixes as integers.
    #[inline]
    pub fn is_bytewise(&self) -> bool {
        matches!(self, KeyOrder::Bytewise)
    }

    /// Returns whether keys without their timestamps are in plain byte order.
    pub fn is_bytewise_without_timestamp(&self) -> bool {
        matches!(self, KeyOrder::Bytewise | KeyOrder::BytewiseU64Ts)
    }

    /// Bytes of timestamp at the end of each user key.
    #[inline]
    pub fn timestamp_size(&self) -> usize {
        match self {
            KeyOrder::Bytewise | KeyOrder::ReverseBytewise => 0,
            KeyOrder::BytewiseU64Ts | KeyOrder::ReverseBytewiseU64Ts => 8,
            KeyOrder::Custom(c) => c.timestamp_size(),
        }
    }

    /// Returns whether keys with different bytes can be equal.
    pub fn can_keys_with_different_bytes_be_equal(&self) -> bool {
        match self {
            KeyOrder::Custom(c) => c.can_keys_with_different_bytes_be_equal(),
            _ => false,
        }
    }

    /// Returns whether filters, which tell keys apart by their bytes, may be used.
    pub fn filters_by_bytes(&self) -> bool {
        match self {
            KeyOrder::Custom(c) => c.filters_by_bytes(),
            _ => true,
        }
    }

    /// Compares two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::Bytewise => a.cmp(b),
            _ => self.compare_slow(a, b),
        }
    }

    #[inline(never)]
    fn compare_slow(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::Bytewise => a.cmp(b),
            KeyOrder::ReverseBytewise => b.cmp(a),
            KeyOrder::BytewiseU64Ts => {
                let ((ka, ta), (kb, tb)) = (split_ts(a), split_ts(b));
                ka.cmp(kb).then(tb.cmp(&ta))
            }
            KeyOrder::ReverseBytewiseU64Ts => {
                let ((ka, ta), (kb, tb)) = (split_ts(a), split_ts(b));
                kb.cmp(ka).then(tb.cmp(&ta))
            }
            KeyOrder::Custom(c) => c.compare(a, b),
        }
    }

    /// Returns whether two user keys are the same key.
    #[inline]
    pub fn equal(&self, a: &[u8], b: &[u8]) -> bool {
        match self {
            KeyOrder::Custom(c) => c.compare(a, b).is_eq(),
            _ => a == b,
        }
    }

    /// Returns whether two user keys are versions of one key: the same but for their timestamps.
    #[inline]
    pub fn same_without_timestamp(&self, a: &[u8], b: &[u8]) -> bool {
        match self {
            KeyOrder::Bytewise | KeyOrder::ReverseBytewise => a == b,
            _ => self.compare_without_timestamp(a, b).is_eq(),
        }
    }

    /// Compares two internal keys: user keys ascending, then trailers descending.
    #[inline]
    pub fn compare_internal(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.compare(user_key(a), user_key(b)) {
            Ordering::Equal => trailer(b).cmp(&trailer(a)),
            unequal => unequal,
        }
    }

    /// May shorten `start` (a user key) to a user key in `[start, limit)`.
    pub fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        match self {
            KeyOrder::Bytewise => bytewise_separator(start, limit),
            KeyOrder::Custom(c) => c.find_shortest_separator(start, limit),
            _ => {}
        }
    }

    /// May shorten `key` (a user key) to a user key that is not below it.
    pub fn find_short_successor(&self, key: &mut Vec<u8>) {
        match self {
            KeyOrder::Bytewise => bytewise_successor(key),
            KeyOrder::Custom(c) => c.find_short_successor(key),
            _ => {}
        }
    }

    /// Compares user keys without their timestamps, where the order has them.
    pub fn compare_without_timestamp(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::BytewiseU64Ts => split_ts(a).0.cmp(split_ts(b).0),
            KeyOrder::ReverseBytewiseU64Ts => split_ts(b).0.cmp(split_ts(a).0),
            KeyOrder::Custom(c) if c.timestamp_size() > 0 => c.compare_without_timestamp(a, b),
            _ => self.compare(a, b),
        }
    }

    /// Compares user keys that are given without their timestamps.
    pub fn compare_bare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::BytewiseU64Ts => a.cmp(b),
            KeyOrder::ReverseBytewiseU64Ts => b.cmp(a),
            KeyOrder::Custom(c) if c.timestamp_size() > 0 => {
                let full = |key: &[u8]| {
                    let mut full = key.to_vec();
                    full.resize(key.len() + c.timestamp_size(), SMALLEST);
                    full
                };
                c.compare_without_timestamp(&full(a), &full(b))
            }
            _ => self.compare(a, b),
        }
    }

    /// Compares two timestamps; larger is later. Equal in an order that has none.
    pub fn compare_timestamp(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::BytewiseU64Ts | KeyOrder::ReverseBytewiseU64Ts => {
                split_ts(a).1.cmp(&split_ts(b).1)
            }
            KeyOrder::Custom(c) if c.timestamp_size() > 0 => c.compare_timestamp(a, b),
            _ => Ordering::Equal,
        }
    }
}

/// Truncates `start` after the first byte that can be raised without reaching `limit`.
fn bytewise_separator(start: &mut Vec<u8>, limit: &[u8]) {
    let shared = start.iter().zip(limit).take_while(|(a, b)| a == b).count();
    if shared >= start.len() || shared >= limit.len() || start[shared] >= limit[shared] {
        return;
    }
    if start[shared] < 0xff && (start[shared] + 1 < limit[shared] || shared + 1 < limit.len()) {
        start[shared] += 1;
        start.truncate(shared + 1);
        return;
    }
    // The differing bytes are neighbours and `limit` ends there: raise a later byte instead.
    if let Some(at) = (shared + 1..start.len()).find(|&i| start[i] < 0xff) {
        start[at] += 1;
        start.truncate(at + 1);
    }
}

fn bytewise_successor(key: &mut Vec<u8>) {
    if let Some(at) = key.iter().position(|&b| b != 0xff) {
        key[at] += 1;
        key.truncate(at + 1);
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Length of a valid internal key for `user_len` bytes of user key.
pub fn internal_len(user_len: usize) -> usize {
    user_len + TRAILER_LEN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_stay_between() {
        let order = KeyOrder::Bytewise;
        let cases: &[(&[u8], &[u8])] = &[
            (b"abcdef", b"abzz"),
            (b"abc1xyz", b"abc2"),
            (b"abc\xff\xff", b"abd"),
            (b"a", b"b"),
            (b"", b"a"),
            (b"abc", b"abcd"),
            (b"\xff\xff", b"\xff\xff\x01"),
        ];
        for (a, b) in cases {
            let mut s = a.to_vec();
            order.find_shortest_separator(&mut s, b);
            assert!(
                s.as_slice() >= *a && s.as_slice() < *b,
                "{a:?} {b:?} gave {s:?}"
            );
        }
    }

    #[test]
    fn timestamps_sort_newest_first() {
        let order = KeyOrder::BytewiseU64Ts;
        let k = |u: &[u8], ts: u64| [u, &ts.to_le_bytes()].concat();
        assert_eq!(order.compare(&k(b"a", 5), &k(b"a", 3)), Ordering::Less);
        assert_eq!(order.compare(&k(b"a", 5), &k(b"b", 9)), Ordering::Less);
        assert_eq!(
            order.compare_without_timestamp(&k(b"a", 5), &k(b"a", 3)),
            Ordering::Equal
        );
    }
}
