//! [`FilterBuilder`]: collects hashes of keys, then lays out the filter block.

use super::{BuildLevel, FilterPolicy, KeyHash, METADATA_LEN, bloom, legacy, ribbon};
use esker_codec::hash::{LEGACY_BLOOM_SEED, hash32};

/// Collects the hashes of a file's (or a partition's) keys: eight bytes each, adjacent duplicates
/// once.
#[derive(Debug)]
pub struct FilterBuilder {
    kind: BuilderKind,
    hashes: Vec<u64>,
    last_prefix: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum BuilderKind {
    Bloom { millibits: u32 },
    Legacy { bits: u32 },
    Ribbon { millibits: u32, one_in: f64 },
}

impl FilterBuilder {
    /// A builder for a file of this format version at this level; `None` when the policy builds no
    /// filter.
    pub fn new(
        policy: FilterPolicy,
        format_version: u32,
        level: BuildLevel,
    ) -> Option<FilterBuilder> {
        let kind = match policy {
            FilterPolicy::ReadOnly => return None,
            FilterPolicy::Bloom {
                millibits_per_key: 0,
            } => return None,
            FilterPolicy::Ribbon {
                millibits_per_key: 0,
                ..
            } => return None,
            FilterPolicy::Bloom { millibits_per_key } if format_version < 5 => {
                BuilderKind::Legacy {
                    bits: (millibits_per_key + 500) / 1000,
                }
            }
            FilterPolicy::Bloom { millibits_per_key } => BuilderKind::Bloom {
                millibits: millibits_per_key,
            },
            FilterPolicy::Ribbon {
                millibits_per_key: millibits,
                bloom_before_level,
            } => {
                let level = match level {
                    BuildLevel::Flush => -1,
                    BuildLevel::Level(n) => i32::from(n),
                    BuildLevel::Unknown => i32::MAX - 1,
                };
                if level < bloom_before_level {
                    BuilderKind::Bloom { millibits }
                } else {
                    BuilderKind::Ribbon {
                        millibits,
                        one_in: 1.0 / policy.false_positive_rate(),
                    }
                }
            }
        };
        Some(FilterBuilder {
            kind,
            hashes: Vec::new(),
            last_prefix: None,
        })
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        match self.kind {
            BuilderKind::Legacy { .. } => u64::from(hash32(key, LEGACY_BLOOM_SEED)),
            _ => KeyHash::of(key).0,
        }
    }

    /// Adds a user key (without timestamp), or a prefix where only prefixes are added.
    #[inline]
    pub fn add_key(&mut self, key: &[u8]) {
        let hash = self.hash(key);
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Adds a user key and its prefix, where both are wanted.
    pub fn add_key_and_prefix(&mut self, key: &[u8], prefix: &[u8]) {
        let (key, prefix) = (self.hash(key), self.hash(prefix));
        let (last_key, last_prefix) = (self.hashes.last().copied(), self.last_prefix);
        if Some(prefix) != last_prefix && prefix != key && Some(prefix) != last_key {
            self.hashes.push(prefix);
        }
        self.last_prefix = Some(prefix);
        if Some(key) != last_key && Some(key) != last_prefix {
            self.hashes.push(key);
        }
    }

    /// Keys and prefixes added.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Bytes of memory held.
    pub fn memory_usage(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>()
    }

    /// Bytes that a filter block of `keys` keys would take.
    pub fn block_len(&self, keys: usize) -> usize {
        if keys == 0 {
            return 0;
        }
        match self.kind {
            BuilderKind::Bloom { millibits } => bloom::data_len(keys, millibits) + METADATA_LEN,
            BuilderKind::Legacy { bits } => legacy::block_len(keys, bits),
            BuilderKind::Ribbon { millibits, one_in } => {
                let bloom = bloom::data_len(keys, millibits);
                let first = self.hashes.first().copied().unwrap_or(0);
                ribbon::data_len(keys, one_in, first, bloom).unwrap_or(bloom) + METADATA_LEN
            }
        }
    }

    /// The number of keys whose filter block takes about `bytes` bytes: where partitions are cut.
    /// At least 1.
    pub fn keys_for(&self, bytes: usize) -> usize {
        // At least one bit per key, so the answer lies below eight keys per byte.
        let (mut fits, mut too_many) = (1usize, bytes.saturating_mul(8).saturating_add(2));
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if self.block_len(middle) <= bytes {
                fits = middle
            } else {
                too_many = middle
            }
        }
        fits
    }

    /// The filter block of what was added since the last call; empty when that was nothing: then
    /// write no filter, or the empty block, both of which match everything.
    pub fn finish(&mut self) -> Vec<u8> {
        self.last_prefix = None;
        let hashes = std::mem::take(&mut self.hashes);
        if hashes.is_empty() {
            return Vec::new();
        }
        match self.kind {
            BuilderKind::Bloom { millibits } => bloom::build(&hashes, millibits),
            BuilderKind::Legacy { bits } => legacy::build(&hashes, bits),
            BuilderKind::Ribbon { millibits, one_in } => {
                let bloom_len = bloom::data_len(hashes.len(), millibits);
                ribbon::build(&hashes, one_in, bloom_len)
                    .unwrap_or_else(|| bloom::build(&hashes, millibits))
            }
        }
    }
}
