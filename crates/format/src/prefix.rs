//! Prefix extractors: which leading bytes of a key filters and hash indexes know it by.
//!
//! The name is stored in each table; a filter is asked about prefixes only when the names agree.

use std::fmt;
use std::sync::Arc;

/// An extractor that the application defines (RocksDB's `SliceTransform`).
pub trait SliceTransform: Send + Sync {
    /// Names the transform, for ever.
    fn name(&self) -> &str;
    /// The prefix of a key that is in the domain; it must be a prefix of `key`'s bytes.
    fn transform<'a>(&self, key: &'a [u8]) -> &'a [u8];
    /// Returns whether the key has a prefix.
    fn in_domain(&self, key: &[u8]) -> bool;
    /// The length that full prefixes have, where there is one.
    fn full_length(&self) -> Option<usize> {
        None
    }
}

/// A prefix extractor. Works on user keys without timestamps. Cheap to clone.
#[derive(Clone)]
pub enum PrefixExtractor {
    /// The first `n` bytes; shorter keys have none.
    Fixed(usize),
    /// The first `n` bytes, or the whole of a shorter key.
    Capped(usize),
    /// The whole key.
    Noop,
    /// The application's own.
    Custom(Arc<dyn SliceTransform>),
}

impl PrefixExtractor {
    /// The built-in extractor with this name: `rocksdb.FixedPrefix.6`, `fixed:6`,
    /// `rocksdb.CappedPrefix.7`, `capped:7`, `rocksdb.Noop`.
    pub fn builtin(name: &str) -> Option<PrefixExtractor> {
        let number = |s: &str| s.parse::<usize>().ok();
        for p in ["rocksdb.FixedPrefix.", "fixed:"] {
            if let Some(n) = name.strip_prefix(p) {
                return number(n).map(PrefixExtractor::Fixed);
            }
        }
        for p in ["rocksdb.CappedPrefix.", "capped:"] {
            if let Some(n) = name.strip_prefix(p) {
                return number(n).map(PrefixExtractor::Capped);
            }
        }
        (name == "rocksdb.Noop").then_some(PrefixExtractor::Noop)
    }

    /// The name that tables store.
    pub fn name(&self) -> String {
        match self {
            PrefixExtractor::Fixed(n) => format!("rocksdb.FixedPrefix.{n}"),
            PrefixExtractor::Capped(n) => format!("rocksdb.CappedPrefix.{n}"),
            PrefixExtractor::Noop => "rocksdb.Noop".to_string(),
            PrefixExtractor::Custom(c) => c.name().to_string(),
        }
    }

    /// The prefix of `key`, or `None` when the key is outside the extractor's domain.
    #[inline]
    pub fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            PrefixExtractor::Fixed(n) => key.get(..*n),
            PrefixExtractor::Capped(n) => Some(&key[..key.len().min(*n)]),
            PrefixExtractor::Noop => Some(key),
            PrefixExtractor::Custom(c) => c.in_domain(key).then(|| c.transform(key)),
        }
    }
}

impl fmt::Debug for PrefixExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
