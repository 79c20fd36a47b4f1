//! Where a family's blocks are cached: the option `block_cache`.
//!
//! RocksDB's text forms make a new LRU cache: a size, or `{capacity=...;num_shard_bits=...;...}`.
//! With a member `id`, which RocksDB does not have, they make a cache of that kind. Programs give
//! one that they share. A later text takes the place of an object given before, as everywhere in
//! options; `null` brings back the default, a clock of 32 MB.

use super::value::OptionValue;
use esker_cache::{CacheKind, CacheOptions};
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
        if limits == CacheOptions::lru(limits.capacity) {
            return limits.capacity.to_string();
        }
        let common = format!(
            "capacity={};num_shard_bits={};strict_capacity_limit={};",
            limits.capacity.print(),
            limits.num_shard_bits.print(),
            limits.strict_capacity_limit.print(),
        );
        match limits.kind {
            CacheKind::Lru => format!(
                "{{{common}high_pri_pool_ratio={};low_pri_pool_ratio={};}}",
                limits.high_pri_pool_ratio.print(),
                limits.low_pri_pool_ratio.print(),
            ),
            CacheKind::AUTO_CLOCK => format!("{{id={};{common}}}", limits.kind.name()),
            CacheKind::HyperClock {
                estimated_entry_charge,
            } => format!(
                "{{id={};{common}estimated_entry_charge={};}}",
                limits.kind.name(),
                estimated_entry_charge.print(),
            ),
        }
    }

    fn parse_into(&mut self, text: &str) -> Result<()> {
        if text.contains("://") {
            return Err(
                Error::not_supported(format!("{text:?} is not a built-in cache"))
                    .with_hint("give the application's own object through the typed interface"),
            );
        }
        let limits = if text.contains('=') {
            parse_limits(text)?
        } else if text.starts_with("null") {
            CacheOptions::default()
        } else {
            let mut limits = CacheOptions::lru(0);
            limits.capacity.parse_into(text)?;
            limits
        };
        *self = BlockCacheSource::Own(limits);
        Ok(())
    }
}

/// The kind that `id` names, by RocksDB's class or by `db_bench`'s `--cache_type`.
fn kind_of(id: &str) -> Result<CacheKind> {
    match id {
        "LRUCache" | "lru_cache" => Ok(CacheKind::Lru),
        "HyperClockCache" | "hyper_clock_cache" => Ok(CacheKind::AUTO_CLOCK),
        "AutoHyperClockCache" | "auto_hyper_clock_cache" => Ok(CacheKind::AUTO_CLOCK),
        "FixedHyperClockCache" | "fixed_hyper_clock_cache" => Ok(CacheKind::HyperClock {
            estimated_entry_charge: FIXED_CHARGE,
        }),
        _ => Err(Error::invalid_argument(format!("there is no cache {id:?}"))
            .with_hint("LRUCache, AutoHyperClockCache or FixedHyperClockCache")),
    }
}

/// The charge of an entry where a fixed table is asked for without one: two blocks of 4 KB.
const FIXED_CHARGE: usize = 8 << 10;

fn parse_limits(text: &str) -> Result<CacheOptions> {
    let mut limits = CacheOptions::lru(0);
    let members = parse_pairs(text)?;
    if let Some((_, id)) = members.iter().find(|(member, _)| member == "id") {
        limits.kind = kind_of(id)?;
    }
    for (member, value) in members {
        match (member.as_str(), &mut limits.kind) {
            ("id", _) => {}
            ("capacity", _) => limits.capacity.parse_into(&value)?,
            ("num_shard_bits", _) => limits.num_shard_bits.parse_into(&value)?,
            ("strict_capacity_limit", _) => limits.strict_capacity_limit.parse_into(&value)?,
            ("high_pri_pool_ratio", CacheKind::Lru) => {
                limits.high_pri_pool_ratio.parse_into(&value)?
            }
            ("low_pri_pool_ratio", CacheKind::Lru) => {
                limits.low_pri_pool_ratio.parse_into(&value)?
            }
            (
                "estimated_entry_charge",
                CacheKind::HyperClock {
                    estimated_entry_charge,
                },
            ) => estimated_entry_charge.parse_into(&value)?,
            (_, kind) => {
                return Err(Error::invalid_argument(format!(
                    "a cache of the kind {} has no option {member:?}",
                    kind.name()
                )));
            }
        }
    }
    Ok(limits)
}
