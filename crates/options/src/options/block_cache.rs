//! Where a family's blocks are cached: the option `block_cache`.
//!
//! RocksDB's text forms make a new cache: a size, or `{capacity=...;num_shard_bits=...;...}`.
//! Programs give one that they share. A later text takes the place of an object given before, as
//! everywhere in options.

use super::value::OptionValue;
use esker_cache::CacheOptions;
use esker_files::table::BlockCache;
use esker_format::options_text::parse_pairs;
use esker_status::{Error, Result};
use std::sync::Arc;

/// Whose cache holds the blocks of a family's tables.
#[derive(Clone)]
pub enum BlockCacheSource {
    /// One that the database makes; its families with the same limits share it.
    Own(CacheOptions),
    /// One that other families and databases use too.
    Shared(Arc<BlockCache>),
}

impl BlockCacheSource {
    /// A cache of the database's own with this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        BlockCacheSource::Own(CacheOptions::with_capacity(bytes))
    }

    /// The limits of the cache, or of the one that will be made.
    pub fn limits(&self) -> CacheOptions {
        match self {
            BlockCacheSource::Own(limits) => *limits,
            BlockCacheSource::Shared(cache) => cache.options(),
        }
    }
}

impl Default for BlockCacheSource {
    fn default() -> Self {
        BlockCacheSource::Own(CacheOptions::default())
    }
}

impl std::fmt::Debug for BlockCacheSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.print())
    }
}

impl OptionValue for BlockCacheSource {
    const TYPE: &'static str = "size or {capacity=...}";

    fn print(&self) -> String {
        let limits = self.limits();
        if limits == CacheOptions::with_capacity(limits.capacity) {
            return limits.capacity.to_string();
        }
        format!(
            "{{capacity={};num_shard_bits={};strict_capacity_limit={};high_pri_pool_ratio={};low_pri_pool_ratio={};}}",
            limits.capacity.print(),
            limits.num_shard_bits.print(),
            limits.strict_capacity_limit.print(),
            limits.high_pri_pool_ratio.print(),
            limits.low_pri_pool_ratio.print(),
        )
    }

    fn parse_into(&mut self, text: &str) -> Result<()> {
        let mut limits = CacheOptions::default();
        if text.contains("://") {
            return Err(
                Error::not_supported(format!("{text:?} is not a built-in cache"))
                    .with_hint("give the application's own object through the typed interface"),
            );
        } else if text.contains('=') {
            limits.capacity = 0;
            for (member, value) in parse_pairs(text)? {
                match member.as_str() {
                    "capacity" => limits.capacity.parse_into(&value)?,
                    "num_shard_bits" => limits.num_shard_bits.parse_into(&value)?,
                    "strict_capacity_limit" => limits.strict_capacity_limit.parse_into(&value)?,
                    "high_pri_pool_ratio" => limits.high_pri_pool_ratio.parse_into(&value)?,
                    "low_pri_pool_ratio" => limits.low_pri_pool_ratio.parse_into(&value)?,
                    _ => {
                        return Err(Error::invalid_argument(format!(
                            "a cache has no option {member:?}"
                        )));
                    }
                }
            }
        } else if !text.starts_with("null") {
            limits.capacity.parse_into(text)?;
        }
        *self = BlockCacheSource::Own(limits);
        Ok(())
    }
}
