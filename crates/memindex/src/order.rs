//! The order of an index, and the eight-byte prefix that decides most comparisons.

use std::cmp::Ordering;

/// A total order on the keys of an index.
///
/// Monomorphised into every search, so that the byte-wise orders never call through a pointer.
pub trait IndexOrder: Send + Sync {
    /// A number that never contradicts the order: `compare(a, b) == Less` implies
    /// `prefix(a) <= prefix(b)`. It is kept in the node and compared first; only equal prefixes
    /// lead to
    /// [`IndexOrder::compare`]. An order that has no such number returns a constant.
    fn prefix(&self, key: &[u8]) -> u64;

    /// The order itself.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

/// The first eight bytes as a big-endian number; a shorter key is padded with zeros.
///
/// Padding makes a key and its zero-extended twin equal, which is why equal prefixes decide
/// nothing.
#[inline(always)]
pub fn bytewise_prefix(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => short_prefix(key),
    }
}

#[inline]
fn short_prefix(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    head[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(head)
}

/// Plain keys in byte-wise order.
#[derive(Clone, Copy, Debug, Default)]
pub struct BytewisePlain;

impl IndexOrder for BytewisePlain {
    #[inline(always)]
    fn prefix(&self, key: &[u8]) -> u64 {
        bytewise_prefix(key)
    }
    #[inline(always)]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

/// Internal keys (`user key ++ fixed64 trailer`): user keys byte-wise ascending, then trailers
/// descending.
///
/// A key shorter than its trailer counts as an empty user key with trailer zero.
///
/// Where most keys are expected to begin alike, the eight bytes after that are the prefix: keys
/// that do not begin so come before or after all those that do.
#[derive(Clone, Debug, Default)]
pub struct BytewiseInternal {
    expected: Box<[u8]>,
}

impl BytewiseInternal {
    /// The order, for user keys of which most begin with `expected`. It is the same order whatever
    /// is expected.
    pub fn expecting(expected: &[u8]) -> Self {
        BytewiseInternal {
            expected: expected.into(),
        }
    }

    #[inline]
    fn prefix_behind(&self, user: &[u8]) -> u64 {
        match user.strip_prefix(&*self.expected) {
            Some(rest) => bytewise_prefix(rest),
            None if *user < *self.expected => 0,
            None => u64::MAX,
        }
    }
}

#[inline(always)]
fn split(key: &[u8]) -> (&[u8], u64) {
    match key.split_last_chunk::<8>() {
        Some((user, trailer)) => (user, u64::from_le_bytes(*trailer)),
        None => (&[], 0),
    }
}

impl IndexOrder for BytewiseInternal {
    #[inline(always)]
    fn prefix(&self, key: &[u8]) -> u64 {
        let user = split(key).0;
        if self.expected.is_empty() {
            bytewise_prefix(user)
        } else {
            self.prefix_behind(user)
        }
    }
    #[inline(always)]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let ((a, at), (b, bt)) = (split(a), split(b));
        a.cmp(b).then(bt.cmp(&at))
    }
}
