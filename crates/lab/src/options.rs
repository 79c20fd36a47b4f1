//! From flags to what an engine opens with: lists of RocksDB option names and values.
//!
//! Only flags that were given become options, plus the few where `db_bench`'s default differs from
//! RocksDB's. Both engines of a comparison therefore get the same explicit list, and a library that
//! predates an option is not bothered with it.

use std::path::Path;

use crate::flags::{FLAGS, Fate, Flags};
use crate::store::{CachePlan, CachePolicy, OpenPlan, SessionPlan};
use crate::{Failure, Result};

/// Flags whose default is `db_bench`'s and not RocksDB's, and which are therefore always passed.
const ALWAYS: &[&str] = &[
    "delayed_write_rate",
    "enable_pipelined_write",
    "level_compaction_dynamic_level_bytes",
    "format_version",
];

/// Joins options as RocksDB's option strings do.
pub fn render(options: &[(String, String)]) -> String {
    options
        .iter()
        .map(|(name, value)| format!("{name}={value};"))
        .collect()
}

/// The table options that describe an LRU block cache.
pub fn lru_cache_options(cache: &CachePlan) -> Vec<(String, String)> {
    let pair = |name: &str, value: String| (name.to_string(), value);
    match cache.capacity {
        0 => vec![pair("no_block_cache", "true".into())],
        n if n < 0 => Vec::new(),
        n => vec![pair(
            "block_cache",
            format!(
                "{{capacity={n};num_shard_bits={};high_pri_pool_ratio={};}}",
                cache.shard_bits, cache.high_priority_ratio
            ),
        )],
    }
}

fn compression(name: &str) -> Result<&'static str> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "none" => "kNoCompression",
        "snappy" => "kSnappyCompression",
        "zlib" => "kZlibCompression",
        "bzip2" => "kBZip2Compression",
        "lz4" => "kLZ4Compression",
        "lz4hc" => "kLZ4HCCompression",
        "zstd" => "kZSTD",
        _ => return Err(Failure::new(format!("unknown compression `{name}`"))),
    })
}

fn choose(flags: &Flags, name: &str, choices: &[&str]) -> Result<String> {
    let choice = usize::try_from(flags.int(name))
        .ok()
        .and_then(|i| choices.get(i));
    let choice = choice
        .ok_or_else(|| Failure::new(format!("--{name}={}: no such choice", flags.int(name))))?;
    Ok((*choice).to_string())
}

/// What to open, for these flags.
///
/// # Errors
/// A value that no option corresponds to.
pub fn open_plan(flags: &Flags, path: &Path) -> Result<OpenPlan> {
    let mut options = Vec::new();
    let mut table = Vec::new();
    for flag in FLAGS {
        if !flags.is_set(flag.name) && !ALWAYS.contains(&flag.name) {
            continue;
        }
        let value = flags.text(flag.name).to_string();
        match flag.fate {
            Fate::Option(_) if value.is_empty() => {}
            Fate::Option(name) => options.push((name.to_string(), value)),
            Fate::Table(name) => table.push((name.to_string(), value)),
            _ => {}
        }
    }
    compaction_options(flags, &mut options)?;
    compression_options(flags, &mut options)?;
    other_options(flags, &mut options)?;
    table_options(flags, &mut table)?;
    for option in split_options(flags.text("options"))? {
        options.retain(|(name, _)| *name != option.0);
        options.push(option);
    }
    Ok(OpenPlan {
        path: path.to_path_buf(),
        must_exist: false,
        options,
        table,
        cache: cache_plan(flags)?,
        statistics: flags.flag("statistics"),
    })
}

fn cache_plan(flags: &Flags) -> Result<CachePlan> {
    let policy = match flags.text("cache_type") {
        "lru_cache" => CachePolicy::Lru,
        "hyper_clock_cache" | "auto_hyper_clock_cache" => CachePolicy::HyperClock,
        other => return Err(Failure::new(format!("unknown cache_type `{other}`"))),
    };
    Ok(CachePlan {
        capacity: flags.int("cache_size"),
        shard_bits: flags.int("cache_numshardbits"),
        high_priority_ratio: flags.number("cache_high_pri_pool_ratio"),
        policy,
    })
}

type Pairs = Vec<(String, String)>;

fn push(options: &mut Pairs, name: &str, value: impl ToString) {
    options.push((name.to_string(), value.to_string()));
}

fn compaction_options(flags: &Flags, options: &mut Pairs) -> Result<()> {
    let styles = [
        "kCompactionStyleLevel",
        "kCompactionStyleUniversal",
        "kCompactionStyleFIFO",
        "kCompactionStyleNone",
    ];
    if flags.is_set("compaction_style") {
        push(
            options,
            "compaction_style",
            choose(flags, "compaction_style", &styles)?,
        );
    }
    let priorities = [
        "kByCompensatedSize",
        "kOldestLargestSeqFirst",
        "kOldestSmallestSeqFirst",
        "kMinOverlappingRatio",
        "kRoundRobin",
    ];
    if flags.is_set("compaction_pri") {
        push(
            options,
            "compaction_pri",
            choose(flags, "compaction_pri", &priorities)?,
        );
    }
    if flags.is_set("subcompactions") {
        push(options, "max_subcompactions", flags.int("subcompactions"));
    }
    let mut universal = Vec::new();
    for flag in FLAGS
        .iter()
        .filter(|flag| flag.name.starts_with("universal_"))
    {
        let unset = flags.text(flag.name) == flag.default;
        if flags.is_set(flag.name) && !unset {
            let name = flag
                .name
                .strip_prefix("universal_")
                .expect("the filter looked at it");
            push(&mut universal, name, flags.text(flag.name));
        }
    }
    if !universal.is_empty() {
        push(
            options,
            "compaction_options_universal",
            format!("{{{}}}", render(&universal)),
        );
    }
    Ok(())
}

fn compression_options(flags: &Flags, options: &mut Pairs) -> Result<()> {
    let kind = compression(flags.text("compression_type"))?;
    push(options, "compression", kind);
    let bottommost = flags.text("bottommost_compression");
    if !bottommost.is_empty() {
        push(options, "bottommost_compression", compression(bottommost)?);
    }
    let first = flags.int("min_level_to_compress");
    if first >= 0 {
        let levels: Vec<&str> = (0..flags.int("num_levels"))
            .map(|level| {
                if level < first {
                    "kNoCompression"
                } else {
                    kind
                }
            })
            .collect();
        push(options, "compression_per_level", levels.join(":"));
    }
    let mut details = Vec::new();
    for (flag, name) in [
        ("compression_level", "level"),
        ("compression_max_dict_bytes", "max_dict_bytes"),
        ("compression_zstd_max_train_bytes", "zstd_max_train_bytes"),
    ] {
        if flags.is_set(flag) {
            push(&mut details, name, flags.int(flag));
        }
    }
    if !details.is_empty() {
        push(
            options,
            "compression_opts",
            format!("{{{}}}", render(&details)),
        );
    }
    Ok(())
}

fn other_options(flags: &Flags, options: &mut Pairs) -> Result<()> {
    if flags.flag("enable_blob_files") {
        push(
            options,
            "blob_compression_type",
            compression(flags.text("blob_compression_type"))?,
        );
    }
    if flags.count("prefix_size") > 0 {
        push(
            options,
            "prefix_extractor",
            format!("fixed:{}", flags.int("prefix_size")),
        );
    }
    if flags.text("memtablerep") != "skip_list" {
        push(options, "memtable_factory", flags.text("memtablerep"));
    }
    Ok(())
}

fn table_options(flags: &Flags, table: &mut Pairs) -> Result<()> {
    let bits = flags.int("bloom_bits");
    if bits >= 0 {
        let policy = if flags.flag("use_ribbon_filter") {
            format!("ribbonfilter:{bits}")
        } else {
            format!("bloomfilter:{bits}:false")
        };
        push(table, "filter_policy", policy);
    }
    if flags.flag("partition_index_and_filters") {
        push(table, "index_type", "kTwoLevelIndexSearch");
        push(table, "partition_filters", "true");
    }
    if flags.is_set("checksum_type") {
        let kinds = ["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"];
        push(table, "checksum", choose(flags, "checksum_type", &kinds)?);
    }
    match flags.int("prepopulate_block_cache") {
        0 => {}
        1 => push(table, "prepopulate_block_cache", "kFlushOnly"),
        n => {
            return Err(Failure::new(format!(
                "--prepopulate_block_cache={n}: no such choice"
            )));
        }
    }
    Ok(())
}

/// Splits an option string at the semicolons outside braces.
fn split_options(text: &str) -> Result<Pairs> {
    let mut depth = 0i32;
    let mut options = Vec::new();
    let parts = text.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ';' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let pair = part.split_once('=');
        let (name, value) =
            pair.ok_or_else(|| Failure::new(format!("--options: `{part}` is not name=value")))?;
        push(&mut options, name.trim(), value.trim());
    }
    Ok(options)
}

/// What a thread's session is made with, for these flags.
pub fn session_plan(flags: &Flags) -> SessionPlan {
    SessionPlan {
        sync: flags.flag("sync"),
        disable_wal: flags.flag("disable_wal"),
        verify_checksums: flags.flag("verify_checksum"),
        readahead_size: flags.count("readahead_size") as usize,
        async_io: flags.flag("async_io"),
        batched_multi_get: flags.flag("multiread_batched"),
    }
}

#[cfg(test)]
mod tests;
