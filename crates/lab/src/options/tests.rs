//! Flags as option strings.

use super::*;

fn plan(args: &[&str]) -> OpenPlan {
    let flags = Flags::parse(args).expect("known flags");
    open_plan(&flags, Path::new("/db")).expect("a valid plan")
}

fn value<'a>(options: &'a Pairs, name: &str) -> Option<&'a str> {
    options
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, v)| v.as_str())
}

#[test]
fn passes_given_flags_and_differing_defaults_only() {
    let plan = plan(&[
        "--write_buffer_size=1048576",
        "--open_files=100",
        "--block_size=8192",
    ]);
    assert_eq!(value(&plan.options, "write_buffer_size"), Some("1048576"));
    assert_eq!(value(&plan.options, "max_open_files"), Some("100"));
    assert_eq!(
        value(&plan.options, "level_compaction_dynamic_level_bytes"),
        Some("false")
    );
    assert_eq!(
        value(&plan.options, "compression"),
        Some("kSnappyCompression")
    );
    assert_eq!(value(&plan.options, "num_levels"), None);
    assert_eq!(value(&plan.table, "block_size"), Some("8192"));
}

#[test]
fn translates_choices() {
    let plan = plan(&[
        "--compaction_style=1",
        "--universal_max_size_amplification_percent=80",
        "--compression_type=lz4",
        "--min_level_to_compress=2",
        "--num_levels=4",
        "--bloom_bits=10",
        "--compression_level=3",
    ]);
    assert_eq!(
        value(&plan.options, "compaction_style"),
        Some("kCompactionStyleUniversal")
    );
    assert_eq!(
        value(&plan.options, "compaction_options_universal"),
        Some("{max_size_amplification_percent=80;}")
    );
    assert_eq!(
        value(&plan.options, "compression_per_level"),
        Some("kNoCompression:kNoCompression:kLZ4Compression:kLZ4Compression")
    );
    assert_eq!(value(&plan.options, "compression_opts"), Some("{level=3;}"));
    assert_eq!(
        value(&plan.table, "filter_policy"),
        Some("bloomfilter:10:false")
    );
}

#[test]
fn free_options_replace_flags_and_keep_nested_braces() {
    let plan = plan(&[
        "--options=compression=kZSTD;a={b=1;c=2};",
        "--compression_type=lz4",
    ]);
    assert_eq!(value(&plan.options, "compression"), Some("kZSTD"));
    assert_eq!(value(&plan.options, "a"), Some("{b=1;c=2}"));
    assert!(split_options("novalue").is_err());
}

#[test]
fn caches() {
    let lru = plan(&["--cache_size=1000", "--cache_numshardbits=4"]).cache;
    let text = render(&lru_cache_options(&lru));
    assert_eq!(
        text,
        "block_cache={capacity=1000;num_shard_bits=4;high_pri_pool_ratio=0;};"
    );
    assert_eq!(
        render(&lru_cache_options(&plan(&["--cache_size=0"]).cache)),
        "no_block_cache=true;"
    );
    assert_eq!(
        plan(&["--cache_type=hyper_clock_cache"]).cache.policy,
        CachePolicy::HyperClock
    );
    assert_eq!(lru.tier, None, "it is asked for");
    let tiered = plan(&[
        "--use_compressed_secondary_cache",
        "--compressed_secondary_cache_size=4000000",
        "--compressed_secondary_cache_compression_type=zstd",
    ]);
    let tier = TierPlan {
        capacity: 4_000_000,
        shard_bits: 6,
        codec: "kZSTD",
        level: 32767,
    };
    assert_eq!(tiered.cache.tier, Some(tier));
    assert_eq!(
        tiered.beyond_one_family(),
        Some("use_compressed_secondary_cache")
    );
}
