//! From flags to what an engine opens with: lists of RocksDB option names and values.
//!
//! Only flags that were given become options, plus the few where `db_bench`'s default differs from
//! RocksDB's. Both engines of a comparison therefore get the same explicit list, and a library that
//! predates an option is not bothered with it.

use std::path::Path;

use crate::flags::{FLAGS, Fate, FlagType, Flags};
use crate::store::{CachePlan, CachePolicy, OpenPlan, SessionPlan, TierPlan, Transactions};
use crate::{Failure, Result};

/// Flags whose default is `db_bench`'s and not RocksDB's, and which are therefore always passed.
const ALWAYS: &[&str] = &[
    "delayed_write_rate",
    "enable_pipelined_write",
    "level_compaction_dynamic_level_bytes",
    "format_version",
    "pin_top_level_index_and_filter",
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
    // Versions before 7.9 do not know it.
    let low = match cache.low_priority_ratio {
        0.0 => String::new(),
        ratio => format!("low_pri_pool_ratio={ratio};"),
    };
    match cache.capacity {
        0 => vec![pair("no_block_cache", "true".into())],
        n if n < 0 => Vec::new(),
        n => vec![pair(
            "block_cache",
            format!(
                "{{capacity={n};num_shard_bits={};high_pri_pool_ratio={};{low}}}",
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

/// Makes the plan of the opening, for these flags.
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
        // `t` and `yes` are words of gflags alone.
        let value = match flag.kind {
            FlagType::Bool => flags.flag(flag.name).to_string(),
            _ => flags.text(flag.name).to_string(),
        };
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
        read_only: flags.flag("readonly"),
        options_file: flags.text("options_file").into(),
        options,
        table,
        cache: cache_plan(flags)?,
        statistics: flags.flag("statistics"),
        databases: flags.count("num_multi_db").max(1) as usize,
        in_directories: flags.count("num_multi_db") > 1,
        families: flags.count("num_column_families").max(1) as usize,
        shares: shares(flags)?,
        transactions: transactions(flags)?,
    })
}

/// How often each family is met, as sums up to 100; empty for all alike.
fn shares(flags: &Flags) -> Result<Vec<u64>> {
    let text = flags.text("column_family_distribution");
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = || {
        let families = flags.int("num_column_families");
        Failure::new(format!(
            "--column_family_distribution={text}: {families} numbers are wanted, 100 together"
        ))
    };
    let mut sum = 0;
    let mut sums = Vec::new();
    for part in text.split(',') {
        sum += part.trim().parse::<u64>().map_err(|_| wrong())?;
        sums.push(sum);
    }
    let fits = sum == 100 && sums.len() as u64 == flags.count("num_column_families");
    if fits { Ok(sums) } else { Err(wrong()) }
}

fn transactions(flags: &Flags) -> Result<Transactions> {
    let (pessimistic, optimistic) = (
        flags.flag("transaction_db"),
        flags.flag("optimistic_transaction_db"),
    );
    match (pessimistic, optimistic) {
        (true, true) => Err(Failure::new(
            "--transaction_db and --optimistic_transaction_db exclude each other",
        )),
        (true, false) => Ok(Transactions::Pessimistic),
        (false, true) => Ok(Transactions::Optimistic),
        (false, false) => Ok(Transactions::None),
    }
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
        low_priority_ratio: flags.number("cache_low_pri_pool_ratio"),
        policy,
        tier: tier_plan(flags)?,
    })
}

fn tier_plan(flags: &Flags) -> Result<Option<TierPlan>> {
    if !flags.flag("use_compressed_secondary_cache") {
        return Ok(None);
    }
    Ok(Some(TierPlan {
        capacity: flags.count("compressed_secondary_cache_size"),
        shard_bits: flags.int("compressed_secondary_cache_numshardbits"),
        codec: compression(flags.text("compressed_secondary_cache_compression_type"))?,
        level: flags.int("compressed_secondary_cache_compression_level"),
    }))
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
            let value = match name {
                "stop_style" => choose(flags, flag.name, &STOP_STYLES)?,
                _ => flags.text(flag.name).to_string(),
            };
            push(&mut universal, name, value);
        }
    }
    fifo_options(flags, options);
    if !universal.is_empty() {
        push(
            options,
            "compaction_options_universal",
            format!("{{{}}}", render(&universal)),
        );
    }
    Ok(())
}

const STOP_STYLES: [&str; 2] = [
    "kCompactionStopStyleSimilarSize",
    "kCompactionStopStyleTotalSize",
];

/// Flags of FIFO compaction, with the member of its options and the factor of its unit.
const FIFO: [(&str, &str, i64); 4] = [
    (
        "fifo_compaction_max_table_files_size_mb",
        "max_table_files_size",
        1 << 20,
    ),
    ("fifo_age_for_warm", "age_for_warm", 1),
    (
        "fifo_compaction_max_data_files_size_mb",
        "max_data_files_size",
        1 << 20,
    ),
    ("fifo_compaction_ttl", "ttl", 1),
];

fn fifo_options(flags: &Flags, options: &mut Pairs) {
    let mut fifo = Vec::new();
    for (flag, name, unit) in &FIFO {
        if flags.is_set(flag) && *name == "ttl" {
            push(options, "ttl", flags.text(flag));
        } else if flags.is_set(flag) {
            push(&mut fifo, name, flags.int(flag).saturating_mul(*unit));
        }
    }
    for (flag, name) in [
        ("fifo_compaction_allow_compaction", "allow_compaction"),
        (
            "fifo_compaction_use_kv_ratio_compaction",
            "use_kv_ratio_compaction",
        ),
    ] {
        if flags.is_set(flag) {
            push(&mut fifo, name, flags.flag(flag));
        }
    }
    if !fifo.is_empty() {
        let value = format!("{{{}}}", render(&fifo));
        push(options, "compaction_options_fifo", value);
    }
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
        ("compression_parallel_threads", "parallel_threads"),
        ("compression_max_dict_buffer_bytes", "max_dict_buffer_bytes"),
    ] {
        if flags.is_set(flag) {
            push(&mut details, name, flags.int(flag));
        }
    }
    if flags.is_set("compression_use_zstd_dict_trainer") {
        let trained = flags.flag("compression_use_zstd_dict_trainer");
        push(&mut details, "use_zstd_dict_trainer", trained);
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
    if flags.text("wal_compression") != "none" {
        let codec = compression(flags.text("wal_compression"))?;
        push(options, "wal_compression", codec);
    }
    let growth = flags.text("max_bytes_for_level_multiplier_additional");
    if !growth.is_empty() {
        let name = "max_bytes_for_level_multiplier_additional";
        push(options, name, growth.replace(',', ":"));
    }
    if flags.flag("memtable_use_huge_page") {
        push(options, "memtable_huge_page_size", 2048 * 1024);
    }
    let hint = flags.count("memtable_insert_with_hint_prefix_size");
    if hint > 0 {
        let name = "memtable_insert_with_hint_prefix_extractor";
        push(options, name, format!("fixed:{hint}"));
    }
    if flags.flag("file_checksum") {
        let name = "file_checksum_gen_factory";
        push(options, name, "FileChecksumGenCrc32cFactory");
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
    index_options(flags, table)?;
    if flags.is_set("checksum_type") {
        let kinds = ["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"];
        push(table, "checksum", choose(flags, "checksum_type", &kinds)?);
    }
    match flags.int("prepopulate_block_cache") {
        0 => {}
        1 => push(table, "prepopulate_block_cache", "kFlushOnly"),
        2 => push(table, "prepopulate_block_cache", "kFlushAndCompaction"),
        n => {
            return Err(Failure::new(format!(
                "--prepopulate_block_cache={n}: no such choice"
            )));
        }
    }
    Ok(())
}

fn index_options(flags: &Flags, table: &mut Pairs) -> Result<()> {
    let partitioned = flags.flag("partition_index_and_filters");
    let kinds = [
        (
            "kTwoLevelIndexSearch",
            partitioned || flags.flag("partition_index"),
        ),
        (
            "kBinarySearchWithFirstKey",
            flags.flag("index_with_first_key"),
        ),
        ("kHashSearch", flags.flag("use_hash_search")),
    ];
    let mut wanted = kinds.iter().filter(|kind| kind.1);
    if let Some((kind, _)) = wanted.next() {
        push(table, "index_type", kind);
    }
    if wanted.next().is_some() {
        return Err(Failure::new("there is one kind of index for a table"));
    }
    if flags.flag("use_hash_search") && flags.count("prefix_size") == 0 {
        return Err(Failure::new("--use_hash_search needs a --prefix_size"));
    }
    if partitioned {
        push(table, "partition_filters", "true");
    }
    if flags.is_set("index_shortening_mode") {
        let modes = [
            "kNoShortening",
            "kShortenSeparators",
            "kShortenSeparatorsAndSuccessor",
        ];
        let mode = choose(flags, "index_shortening_mode", &modes)?;
        push(table, "index_shortening", mode);
    }
    if flags.flag("use_data_block_hash_index") {
        let kind = "kDataBlockBinaryAndHash";
        push(table, "data_block_index_type", kind);
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

/// Makes the plan of a thread's session, for these flags.
pub fn session_plan(flags: &Flags) -> SessionPlan {
    SessionPlan {
        sync: flags.flag("sync"),
        disable_wal: flags.flag("disable_wal"),
        verify_checksums: flags.flag("verify_checksum"),
        readahead_size: flags.count("readahead_size") as usize,
        async_io: flags.flag("async_io"),
        batched_multi_get: flags.flag("multiread_batched"),
        adaptive_readahead: flags.flag("adaptive_readahead"),
        auto_readahead_size: flags.flag("auto_readahead_size"),
        total_order_seek: flags.flag("total_order_seek"),
        prefix_same_as_start: flags.flag("prefix_same_as_start"),
        auto_prefix_mode: flags.flag("auto_prefix_mode"),
        tailing: flags.flag("use_tailing_iterator"),
        auto_refresh: flags.flag("auto_refresh_iterator_with_snapshot"),
        explicit_snapshot: flags.flag("explicit_snapshot"),
        lock_timeout_ms: flags.int("transaction_lock_timeout"),
        set_snapshot: flags.flag("transaction_set_snapshot"),
    }
}

#[cfg(test)]
mod tests;
