//! Filters: a few bits per key that answer "is this key certainly not in this file?".
//!
//! Three kinds are stored in table files: the cache-local Bloom filter (format version 5 and
//! above), the legacy Bloom filter (below), and the Standard128 Ribbon filter. A filter block names
//! its own kind in its last five bytes ([`FilterReader::parse`]); the policy only decides what is
//! written ([`FilterPolicy`], [`FilterBuilder`]). The caller hashes a key once ([`KeyHash`]) and
//! asks any number of filters. Damaged or unknown filters match everything, because a filter may
//! only ever say "no" truthfully. Readers are plain values over bytes that the caller keeps;
//! builders belong to one thread.

mod bloom;
mod builder;
mod legacy;
mod policy;
mod reader;
mod ribbon;

pub use builder::FilterBuilder;
pub use policy::{BuildLevel, FilterPolicy};
pub use reader::FilterReader;

/// Bytes after the filter's data: kind and parameters.
pub(crate) const METADATA_LEN: usize = 5;

/// The hash of a key, computed once and asked of many filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHash(pub u64);

impl KeyHash {
    /// Hashes a user key (without timestamp) or a prefix of one.
    #[inline]
    pub fn of(key: &[u8]) -> KeyHash {
        KeyHash(esker_codec::hash::hash64(key))
    }
}

#[cfg(test)]
mod tests;
