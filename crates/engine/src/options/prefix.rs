//! Prefix extractors: which part of a key prefix filters and prefix seeks go by.

use super::value::OptionValue;
use esker_status::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// Takes the prefix of a key. Called from any thread; must not panic.
///
/// The prefix must be a head of the key, and keys in order must have prefixes in order.
pub trait SliceTransform: Send + Sync {
    /// Names the extractor; table files store it, and a filter built by another name is not used.
    fn name(&self) -> &str;
    /// The prefix of a key that is [in the domain](SliceTransform::in_domain).
    fn transform<'a>(&self, key: &'a [u8]) -> &'a [u8];
    /// Whether `key` has a prefix at all.
    fn in_domain(&self, key: &[u8]) -> bool;
    /// The length that full prefixes have, where there is one.
    fn full_length(&self) -> Option<usize> {
        None
    }
}

/// Keys of at least `n` bytes have their first `n` bytes as prefix: `rocksdb.FixedPrefix.n`.
#[derive(Clone, Debug)]
pub struct FixedPrefix {
    len: usize,
    name: String,
}

impl FixedPrefix {
    /// Prefixes of `len` bytes.
    pub fn new(len: usize) -> Self {
        FixedPrefix {
            len,
            name: format!("rocksdb.FixedPrefix.{len}"),
        }
    }
}

impl SliceTransform for FixedPrefix {
    fn name(&self) -> &str {
        &self.name
    }
    #[inline]
    fn transform<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        key.get(..self.len).unwrap_or(key)
    }
    #[inline]
    fn in_domain(&self, key: &[u8]) -> bool {
        key.len() >= self.len
    }
    fn full_length(&self) -> Option<usize> {
        Some(self.len)
    }
}

/// Every key has its first `n` bytes, or all of it, as prefix: `rocksdb.CappedPrefix.n`.
#[derive(Clone, Debug)]
pub struct CappedPrefix {
    len: usize,
    name: String,
}

impl CappedPrefix {
    /// Prefixes of at most `len` bytes.
    pub fn new(len: usize) -> Self {
        CappedPrefix {
            len,
            name: format!("rocksdb.CappedPrefix.{len}"),
        }
    }
}

impl SliceTransform for CappedPrefix {
    fn name(&self) -> &str {
        &self.name
    }
    #[inline]
    fn transform<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        &key[..key.len().min(self.len)]
    }
    #[inline]
    fn in_domain(&self, _key: &[u8]) -> bool {
        true
    }
    fn full_length(&self) -> Option<usize> {
        Some(self.len)
    }
}

/// Every key is its own prefix: `rocksdb.Noop`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopPrefix;

impl SliceTransform for NoopPrefix {
    fn name(&self) -> &str {
        "rocksdb.Noop"
    }
    #[inline]
    fn transform<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        key
    }
    #[inline]
    fn in_domain(&self, _key: &[u8]) -> bool {
        true
    }
}

/// The built-in extractor with this name, or with a short form: `fixed:4`, `capped:4`, `noop`.
pub fn builtin_prefix(name: &str) -> Option<Arc<dyn SliceTransform>> {
    let length = |head: &str| {
        name.strip_prefix(head)
            .and_then(|n| n.parse::<usize>().ok())
    };
    if let Some(len) = length("rocksdb.FixedPrefix.").or_else(|| length("fixed:")) {
        return Some(Arc::new(FixedPrefix::new(len)));
    }
    if let Some(len) = length("rocksdb.CappedPrefix.").or_else(|| length("capped:")) {
        return Some(Arc::new(CappedPrefix::new(len)));
    }
    matches!(name, "rocksdb.Noop" | "noop").then(|| Arc::new(NoopPrefix) as Arc<dyn SliceTransform>)
}

impl fmt::Debug for dyn SliceTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl OptionValue for Option<Arc<dyn SliceTransform>> {
    const TYPE: &'static str = "prefix extractor";
    fn print(&self) -> String {
        self.as_ref()
            .map_or_else(|| "nullptr".to_owned(), |p| p.name().to_owned())
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        *self = match text {
            "nullptr" | "" => None,
            _ => Some(
                builtin_prefix(
                    text.strip_prefix("id=")
                        .unwrap_or(text)
                        .trim_end_matches(';'),
                )
                .ok_or_else(|| {
                    Error::not_supported(format!("{text:?} is no built-in prefix extractor"))
                })?,
            ),
        };
        Ok(())
    }
}
