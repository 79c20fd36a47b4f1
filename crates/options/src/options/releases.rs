//! Tests of OPTIONS files as RocksDB's releases wrote them, older and newer than the catalogue.

use super::*;
use crate::options::text::{LoadRules, LoadedOptions};
use esker_status::Result;

/// The options that each release wrote with its defaults and some compression, put together from
/// its tables of options.
const OLD: [(&str, &str); 5] = [
    ("4.13.0", include_str!("../../tests/data/OPTIONS-4.13.0")),
    ("5.8.0", include_str!("../../tests/data/OPTIONS-5.8.0")),
    ("5.18.3", include_str!("../../tests/data/OPTIONS-5.18.3")),
    ("6.1.2", include_str!("../../tests/data/OPTIONS-6.1.2")),
    ("6.20.3", include_str!("../../tests/data/OPTIONS-6.20.3")),
];

fn strictly(text: &str) -> Result<LoadedOptions> {
    let rules = LoadRules {
        strict: true,
        ..LoadRules::default()
    };
    load_options_text(text, rules)
}

#[test]
fn files_of_old_releases_load_without_remarks() {
    for (release, text) in OLD {
        let loaded = strictly(text).unwrap_or_else(|e| panic!("{release}: {e}"));
        assert_eq!(loaded.version, release);
        assert!(loaded.remarks.is_empty(), "{release}: {:?}", loaded.remarks);
        let (name, family) = &loaded.families[0];
        assert_eq!(name, "default");
        assert_eq!(family.max_bytes_for_level_multiplier_additional, [1; 7]);
        assert_eq!(family.max_bytes_for_level_multiplier, 10.0);
        assert_eq!(family.table.read_amp_bytes_per_bit, 0, "{release}");
        assert_eq!(loaded.db.max_manifest_file_size, u64::MAX, "{release}");
    }
}

#[test]
fn lists_with_braces_around_their_items_are_lists() -> Result<()> {
    let (_, text) = OLD[4];
    let family = &strictly(text)?.families[0].1;
    let per_level = [
        CompressionType::None,
        CompressionType::Lz4,
        CompressionType::Zstd,
    ];
    assert_eq!(family.compression_per_level, per_level);
    let mut family = FamilyOptions::default();
    family.set("max_bytes_for_level_multiplier_additional", "1:{2}:{3}")?;
    assert_eq!(family.max_bytes_for_level_multiplier_additional, [1, 2, 3]);
    for wrong in ["1:{2", "1:{2}3", "1:{}"] {
        let set = family.set("max_bytes_for_level_multiplier_additional", wrong);
        assert!(set.is_err(), "{wrong}");
    }
    Ok(())
}

#[test]
fn compression_by_position_and_sizes_of_memtables_are_read() -> Result<()> {
    let mut family = FamilyOptions::default();
    family.set_list("compression_opts=-13:4:1;memtable=vector:1024")?;
    let opts = family.compression_opts.clone();
    assert_eq!((opts.window_bits, opts.level, opts.strategy), (-13, 4, 1));
    assert_eq!(family.memtable_factory, MemtableKind::Vector);
    family.set("bottommost_compression_opts", "-14:6:0:4096:65536:true")?;
    let opts = &family.bottommost_compression_opts;
    assert!(opts.enabled && opts.parallel_threads == 1);
    assert_eq!(
        (opts.max_dict_bytes, opts.zstd_max_train_bytes),
        (4096, 65_536)
    );
    family.set("compression_opts", "-14:6:0:0:0:3:false:77:false")?;
    let opts = &family.compression_opts;
    assert!(!opts.enabled && !opts.use_zstd_dict_trainer);
    assert_eq!((opts.parallel_threads, opts.max_dict_buffer_bytes), (3, 77));
    for wrong in ["-14:4", "4", "a:b:c", "1:2:3:4:5:true:7:8:true:10"] {
        assert!(family.set("compression_opts", wrong).is_err(), "{wrong}");
    }
    assert!(family.set("memtable", "vector:many").is_err());
    Ok(())
}

#[test]
fn the_lower_half_of_a_wide_read_amp_is_the_value() -> Result<()> {
    let (_, text) = OLD[1];
    for (said, meant) in [
        ("8589934592", 0),
        ("17179869184", 0),
        ("8589934600", 8),
        ("64", 64),
    ] {
        let text = text.replace(
            "read_amp_bytes_per_bit=8589934592",
            &format!("read_amp_bytes_per_bit={said}"),
        );
        let table = &strictly(&text)?.families[0].1.table;
        assert_eq!(table.read_amp_bytes_per_bit, meant, "{said}");
    }
    let wrong = text.replace(
        "read_amp_bytes_per_bit=8589934592",
        "read_amp_bytes_per_bit=many",
    );
    assert!(strictly(&wrong).is_err());
    // No other number is taken by half.
    let wrong = text.replace("format_version=2", "format_version=8589934594");
    assert!(strictly(&wrong).is_err());
    Ok(())
}

/// A file of RocksDB 12 with values of known names that are not known here.
fn of_the_future() -> String {
    include_str!("../../tests/data/OPTIONS-11.9.0")
        .replace("rocksdb_version=11.9.0", "rocksdb_version=12.1.0")
        .replace(
            "wal_recovery_mode=kPointInTimeRecovery",
            "wal_recovery_mode=kAskTheOracle",
        )
        .replace("max_background_jobs=2", "max_background_jobs=auto")
        .replace(
            "compaction_style=kCompactionStyleLevel",
            "compaction_style=kCompactionStyleWoven",
        )
        .replace(
            "compaction_options_universal={",
            "compaction_options_universal={weave=7;",
        )
        .replace("size_ratio=1;}", "size_ratio=9;}")
        .replace("  checksum=kXXH3", "  checksum=kBlake9")
        .replace("num_levels=7", "num_levels=5")
}

#[test]
fn unknown_values_of_a_newer_release_are_passed_over_where_the_caller_goes_on() -> Result<()> {
    let go_on = LoadRules {
        ignore_unknown: true,
        ..LoadRules::default()
    };
    let loaded = load_options_text(&of_the_future(), go_on)?;
    let mut passed: Vec<_> = loaded.remarks.iter().map(|r| r.option.as_str()).collect();
    passed.sort_unstable();
    let expected = [
        "checksum",
        "compaction_options_universal",
        "compaction_style",
        "max_background_jobs",
        "wal_recovery_mode",
    ];
    assert_eq!(passed, expected);
    let (db, family) = (&loaded.db, &loaded.families[0].1);
    assert_eq!(db.wal_recovery_mode, WalRecoveryMode::PointInTimeRecovery);
    assert_eq!(family.num_levels, 5, "what can be read is taken");
    let size_ratio = family.compaction_options_universal.size_ratio;
    assert_eq!(size_ratio, 9, "members beside an unknown one are taken");
    Ok(())
}

#[test]
fn unknown_values_are_refused_without_leave_and_in_files_that_are_not_newer() {
    let text = of_the_future();
    assert!(load_options_text(&text, LoadRules::default()).is_err());
    let go_on = LoadRules {
        ignore_unknown: true,
        strict: true,
    };
    assert!(load_options_text(&text, go_on).is_ok());
    for release in ["11.9.0", "10.4.2", "6.20.3"] {
        let named = format!("rocksdb_version={release}");
        let text = text.replace("rocksdb_version=12.1.0", &named);
        let error =
            load_options_text(&text, go_on).expect_err("all its names and values are known");
        assert!(error.to_string().contains("OPTIONS ["), "{error}");
    }
}
