//! Where a family's blocks are cached: the option `block_cache`.
//!
//! RocksDB's text forms make a new LRU cache: a size, or `{capacity=...;num_shard_bits=...;...}`.
//! With a member `id`, which RocksDB does not have, they make a cache of that kind, and with
//! `secondary_cache` one before a compressed tier, whose text is RocksDB's of such a cache:
//! `compressed_secondary_cache://capacity=...;compression_type=...`. Programs give one that they
//! share. A later text takes the place of an object given before, as everywhere in
//! options; `null` brings back the default, a clock of 32 MB.
//!
//! `blob_cache` has the same forms, and `nullptr`, its default, for none: each family then makes a
//! cache of its own.

use super::value::OptionValue;
use esker_cache::{CacheKind, CacheOptions};
use esker_codec::compress::Codec;
use esker_files::table::{BlockCache, CompressedTierOptions, new_block_cache};
use esker_format::options_text::parse_pairs;
use esker_status::{Error, Result};
use std::sync::Arc;

/// Whose cache holds the blocks of a family's tables.
#[derive(Clone)]
pub enum BlockCacheSource {
    /// One that the database makes; its families with the same limits share it.
    Own(CacheOptions),
    /// A cache of these options before a second tier of compressed blocks.
    Tiered(CacheOptions, CompressedTierOptions),
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
            BlockCacheSource::Own(limits) | BlockCacheSource::Tiered(limits, _) => *limits,
            BlockCacheSource::Shared(cache) => cache.options(),
        }
    }

    /// The limits of the second tier of the cache that will be made.
    pub fn tier(&self) -> Option<CompressedTierOptions> {
        match self {
            BlockCacheSource::Tiered(_, tier) => Some(*tier),
            _ => None,
        }
    }

    /// Returns whether both make a cache, with the same limits.
    pub fn makes_same(&self, other: &BlockCacheSource) -> bool {
        let is_shared = |s: &BlockCacheSource| matches!(s, BlockCacheSource::Shared(_));
        !is_shared(self)
            && !is_shared(other)
            && (self.limits(), self.tier()) == (other.limits(), other.tier())
    }

    /// The cache of the application, or a new one.
    pub fn make(&self) -> Arc<BlockCache> {
        match self {
            BlockCacheSource::Shared(given) => Arc::clone(given),
            own => Arc::new(new_block_cache(own.limits(), own.tier())),
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
        let tier = self.tier().map(print_tier);
        if limits == CacheOptions::lru(limits.capacity) && tier.is_none() {
            return limits.capacity.to_string();
        }
        let tier = tier.unwrap_or_default();
        let common = format!(
            "capacity={};num_shard_bits={};strict_capacity_limit={};",
            limits.capacity.print(),
            limits.num_shard_bits.print(),
            limits.strict_capacity_limit.print(),
        );
        match limits.kind {
            CacheKind::Lru => format!(
                "{{{common}high_pri_pool_ratio={};low_pri_pool_ratio={};{tier}}}",
                limits.high_pri_pool_ratio.print(),
                limits.low_pri_pool_ratio.print(),
            ),
            CacheKind::AUTO_CLOCK => format!("{{id={};{common}{tier}}}", limits.kind.name()),
            CacheKind::HyperClock {
                estimated_entry_charge,
            } => format!(
                "{{id={};{common}estimated_entry_charge={};{tier}}}",
                limits.kind.name(),
                estimated_entry_charge.print(),
            ),
        }
    }

    fn parse_into(&mut self, text: &str) -> Result<()> {
        if !text.contains('=') && text.contains("://") {
            return Err(
                Error::not_supported(format!("{text:?} is not a built-in cache"))
                    .with_hint("give the application's own object through the typed interface"),
            );
        }
        *self = if text.contains('=') {
            parse_limits(text)?
        } else if text.starts_with("null") {
            BlockCacheSource::default()
        } else {
            let mut limits = CacheOptions::lru(0);
            limits.capacity.parse_into(text)?;
            BlockCacheSource::Own(limits)
        };
        Ok(())
    }
}

/// Whose cache holds a family's values of blob files: `None` for no cache.
#[derive(Clone, Debug, Default)]
pub struct BlobCacheSource(pub Option<BlockCacheSource>);

impl BlobCacheSource {
    /// A cache that other families and databases use too; it may be their block cache.
    pub fn shared_with(cache: Arc<BlockCache>) -> Self {
        BlobCacheSource(Some(BlockCacheSource::Shared(cache)))
    }

    /// The cache, once there is one.
    pub fn shared(&self) -> Option<&Arc<BlockCache>> {
        match &self.0 {
            Some(BlockCacheSource::Shared(cache)) => Some(cache),
            _ => None,
        }
    }

    /// Makes the cache where only its limits are given.
    pub fn make(&mut self) {
        if let Some(source) = &self.0
            && self.shared().is_none()
        {
            *self = Self::shared_with(source.make());
        }
    }
}

impl OptionValue for BlobCacheSource {
    const TYPE: &'static str = BlockCacheSource::TYPE;

    fn print(&self) -> String {
        let none = || "nullptr".to_owned();
        self.0.as_ref().map_or_else(none, BlockCacheSource::print)
    }

    fn parse_into(&mut self, text: &str) -> Result<()> {
        *self = BlobCacheSource(if text.starts_with("null") {
            None
        } else {
            let mut source = BlockCacheSource::default();
            source.parse_into(text)?;
            Some(source)
        });
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

/// How RocksDB names a second tier that is built in.
const TIER: &str = "compressed_secondary_cache://";

fn print_tier(tier: CompressedTierOptions) -> String {
    format!(
        "secondary_cache={{{TIER}capacity={};num_shard_bits={};compression_type={};level={};}};",
        tier.capacity.print(),
        tier.num_shard_bits.print(),
        tier.codec.option_name(),
        tier.level.print(),
    )
}

fn parse_tier(text: &str) -> Result<CompressedTierOptions> {
    let Some(members) = text.trim().strip_prefix(TIER) else {
        return Err(
            Error::not_supported(format!("{text:?} is not a built-in second tier"))
                .with_hint(format!("{TIER}capacity=SIZE;compression_type=CODEC")),
        );
    };
    let mut tier = CompressedTierOptions::default();
    for (member, value) in parse_pairs(members)? {
        match member.as_str() {
            "capacity" => tier.capacity.parse_into(&value)?,
            "num_shard_bits" => tier.num_shard_bits.parse_into(&value)?,
            "level" => tier.level.parse_into(&value)?,
            "compression_type" => tier.codec = codec_of(&value)?,
            _ => {
                return Err(Error::invalid_argument(format!(
                    "a compressed second tier has no option {member:?}"
                ))
                .with_hint("capacity, num_shard_bits, compression_type or level"));
            }
        }
    }
    Ok(tier)
}

fn codec_of(name: &str) -> Result<Codec> {
    match Codec::from_option_name(name) {
        Some(codec) if codec != Codec::Xpress => codec.check_supported().map(|()| codec),
        _ => Err(
            Error::invalid_argument(format!("there is no codec {name:?}"))
                .with_hint("kNoCompression, kLZ4Compression, kZSTD or another of RocksDB's names"),
        ),
    }
}

fn parse_limits(text: &str) -> Result<BlockCacheSource> {
    let mut tier = None;
    let mut limits = CacheOptions::lru(0);
    let members = parse_pairs(text)?;
    if let Some((_, id)) = members.iter().find(|(member, _)| member == "id") {
        limits.kind = kind_of(id)?;
    }
    for (member, value) in members {
        match (member.as_str(), &mut limits.kind) {
            ("id", _) => {}
            ("secondary_cache", _) => tier = Some(parse_tier(&value)?),
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
    Ok(match tier {
        Some(tier) => BlockCacheSource::Tiered(limits, tier),
        None => BlockCacheSource::Own(limits),
    })
}
