//! Options as lines of the LOG, in the form in which RocksDB prints them at open: tools look for
//! `Options.write_buffer_size: 67108864`.

use super::catalogue::{Entry, OptionSet};
use super::{CompressionType, DbOptions, FamilyOptions, TableSettings};
use esker_cache::CacheKind;
use esker_format::options_text::parse_pairs;

/// Flags are digits in the LOG, and enums lose their decoration where RocksDB has a plain name.
fn plain(entry_type: &str, value: &str) -> String {
    match value {
        "true" if entry_type == "bool" => "1".to_owned(),
        "false" if entry_type == "bool" => "0".to_owned(),
        "kNoCompression" => "NoCompression".to_owned(),
        "kDisableCompressionOption" => "Disabled".to_owned(),
        _ => value
            .strip_prefix('k')
            .and_then(|v| v.strip_suffix("Compression"))
            .map_or_else(|| value.to_owned(), str::to_owned),
    }
}

fn line(out: &mut Vec<String>, name: &str, value: &str) {
    out.push(format!("{:>48}: {value}", format!("Options.{name}")));
}

fn entry<S>(out: &mut Vec<String>, options: &S, entry: &Entry<S>) {
    let (name, value) = (entry.info.name, (entry.get)(options));
    if value.starts_with('{')
        && let Ok(members) = parse_pairs(&value)
        && !members.is_empty()
    {
        for (member, value) in members {
            let kind = if value == "true" || value == "false" {
                "bool"
            } else {
                ""
            };
            line(out, &format!("{name}.{member}"), &plain(kind, &value));
        }
        return;
    }
    let value = if value.is_empty() { "" } else { &value };
    line(out, name, &plain(entry.info.value_type, value));
}

/// An option of the kind that is given through the typed interface only.
const COLLECTORS: &str = "table_properties_collectors";

/// The number of a table option whose values have names: RocksDB prints those of tables as numbers.
fn number(table: &TableSettings, name: &str) -> Option<String> {
    let number = match name {
        "index_type" => table.index_type.number(),
        "index_block_search_type" => table.index_block_search_type.number(),
        "data_block_index_type" => table.data_block_index_type.number(),
        "index_shortening" => table.index_shortening.number(),
        "checksum" => table.checksum.number(),
        "prepopulate_block_cache" => table.prepopulate_block_cache.number(),
        _ => return None,
    };
    Some(number.to_string())
}

/// Returns the lines before the options: features of this build, and formats that it reads. Tools
/// look for some of these texts.
pub fn build_lines() -> Vec<String> {
    let mut out = Vec::new();
    for codec in CompressionType::ALL {
        if let Some(built) = codec.codec() {
            let is_there = u8::from(built.is_supported());
            out.push(format!("{} supported: {is_there}", codec.name()));
        }
    }
    let (hardware, machine) = crc_instructions();
    let at_build = if cfg!(any(target_feature = "sse4.2", target_feature = "crc")) {
        "Supported on"
    } else {
        "Not supported on"
    };
    // Instructions are chosen at run time; RocksDB knows only what it was compiled for.
    out.push(format!(
        "Fast CRC32 supported: {} at run time; when compiled: {at_build} {machine}",
        u8::from(hardware)
    ));
    out.push("Jemalloc supported: 0".to_owned());
    out.push(format!(
        "Tables are read up to format_version: {NEWEST_TABLES}"
    ));
    out
}

/// The newest format of block-based tables.
const NEWEST_TABLES: u32 = 7;

/// Returns whether this processor computes CRC-32C itself, and its kind.
fn crc_instructions() -> (bool, &'static str) {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return (std::arch::is_x86_feature_detected!("sse4.2"), "x86");
    #[cfg(target_arch = "aarch64")]
    return (std::arch::is_aarch64_feature_detected!("crc"), "Arm64");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return (false, std::env::consts::ARCH);
}

/// The database's options, one line each.
pub fn db_lines(options: &DbOptions) -> Vec<String> {
    let mut out = Vec::new();
    for e in DbOptions::entries() {
        entry(&mut out, options, e);
    }
    out
}

/// The kind and the limits of the block cache, as RocksDB prints them.
fn cache_lines(out: &mut Vec<String>, table: &TableSettings) {
    if table.no_block_cache {
        return;
    }
    let limits = table.block_cache.limits();
    out.push(format!("  block_cache_name: {}", limits.kind.name()));
    out.push("  block_cache_options:".to_owned());
    out.push(format!("    capacity : {}", limits.capacity));
    out.push(format!("    num_shard_bits : {}", limits.shard_bits()));
    let strict = u8::from(limits.strict_capacity_limit);
    out.push(format!("    strict_capacity_limit : {strict}"));
    if let Some(tier) = table.block_cache.tier() {
        out.push(format!(
            "    secondary_cache : compressed, capacity {}, {}",
            tier.capacity,
            tier.codec.option_name()
        ));
    }
    match limits.kind {
        CacheKind::Lru => {
            for (name, ratio) in [
                ("high_pri_pool_ratio", limits.high_pri_pool_ratio),
                ("low_pri_pool_ratio", limits.low_pri_pool_ratio),
            ] {
                out.push(format!("    {name}: {ratio:.3}"));
            }
        }
        CacheKind::HyperClock {
            estimated_entry_charge,
        } => out.push(format!(
            "    estimated_entry_charge: {estimated_entry_charge}"
        )),
    }
}

/// A family's options, one line each, with a title before them.
pub fn family_lines(name: &str, options: &FamilyOptions) -> Vec<String> {
    let mut out = vec![format!(
        "--------------- Options for column family [{name}]:"
    )];
    let given = FamilyOptions::entries().iter();
    for e in given.filter(|e| e.info.name != COLLECTORS) {
        entry(&mut out, options, e);
    }
    let collectors = &options.table_properties_collector_factories;
    let collectors: String = collectors
        .iter()
        .map(|c| format!("{}; ", c.description()))
        .collect();
    line(&mut out, COLLECTORS, &collectors);
    out.push("           table_factory options: ".to_owned());
    for e in super::TableSettings::entries() {
        let value = number(&options.table, e.info.name)
            .unwrap_or_else(|| plain(e.info.value_type, &(e.get)(&options.table)));
        if e.info.name == "block_cache" {
            cache_lines(&mut out, &options.table);
        } else {
            out.push(format!("  {}: {value}", e.info.name));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_ones_that_tools_look_for() {
        let db = db_lines(&DbOptions::default());
        let family = family_lines("default", &FamilyOptions::default());
        let has = |lines: &[String], text: &str| lines.iter().any(|l| l.trim_start() == text);
        assert!(has(&db, "Options.create_if_missing: 0"), "{db:#?}");
        assert!(has(&db, "Options.max_open_files: -1"), "{db:#?}");
        assert!(
            has(&family, "Options.write_buffer_size: 67108864"),
            "{family:#?}"
        );
        assert!(has(&family, "Options.num_levels: 7"), "{family:#?}");
        assert!(has(&family, "block_size: 4096"), "{family:#?}");
        assert!(has(&family, "data_block_index_type: 0"), "{family:#?}");
        assert!(has(&family, "checksum: 4"), "{family:#?}");
        assert!(
            family
                .iter()
                .any(|l| l.contains("Options.compression_opts.window_bits: -14")),
            "{family:#?}"
        );
        assert_eq!(db.len(), {
            let mut names: Vec<_> = db.iter().collect();
            names.sort();
            names.dedup();
            names.len()
        });
        assert!(family[0].contains("[default]"));
    }

    #[test]
    fn collectors_are_described() {
        let mut family = FamilyOptions::default();
        let mut rule = super::super::CompactOnDeletion::new(5, 10);
        rule.ratio = 0.5;
        family
            .table_properties_collector_factories
            .push(std::sync::Arc::new(rule));
        let lines = family_lines("default", &family);
        let wanted = "Options.table_properties_collectors: CompactOnDeletionCollector \
            (Sliding window size = 5 Deletion trigger = 10 Deletion ratio = 0.5); ";
        assert_eq!(lines.iter().filter(|l| l.ends_with(wanted)).count(), 1);
        let lines = build_lines();
        assert!(
            lines.contains(&"kZSTD supported: 1".to_owned()),
            "{lines:?}"
        );
        assert!(lines.contains(&"Jemalloc supported: 0".to_owned()));
        assert!(lines.iter().any(|l| l.starts_with("Fast CRC32 supported:")));
    }

    #[test]
    fn values_are_plain() {
        assert_eq!(plain("bool", "true"), "1");
        assert_eq!(plain("String", "true"), "true");
        assert_eq!(plain("", "kLZ4Compression"), "LZ4");
        assert_eq!(plain("", "kSnappyCompression"), "Snappy");
        assert_eq!(plain("", "kNoCompression"), "NoCompression");
        assert_eq!(plain("", "kCompactionStyleLevel"), "kCompactionStyleLevel");
    }
}
