//! Tests of the catalogue, of text forms and of resolution.

use super::*;
use esker_cache::CacheOptions;
use esker_codec::Codec;
use esker_files::table::{BlockCache, CompressedTierOptions};

const WRITTEN_BY_7_8: &str = include_str!("../../tests/data/OPTIONS-7.8.3");
const WRITTEN_BY_11: &str = include_str!("../../tests/data/OPTIONS-11.9.0");

#[test]
fn every_name_stands_once_and_prints_what_it_parses() {
    fn check<S: OptionSet>() {
        let defaults = S::default();
        let mut names: Vec<_> = S::entries().iter().map(|e| e.info.name).collect();
        names.extend(
            RETIRED
                .iter()
                .filter(|r| r.section == S::SECTION)
                .map(|r| r.name),
        );
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(
            names.len(),
            count,
            "a name appears twice in {:?}",
            S::SECTION
        );
        for entry in S::entries() {
            let text = (entry.get)(&defaults);
            let mut other = S::default();
            (entry.set)(&mut other, &text).unwrap_or_else(|e| panic!("{}: {e}", entry.info.name));
            assert_eq!((entry.get)(&other), text, "{}", entry.info.name);
            assert!(
                entry.info.doc.trim().ends_with('.'),
                "{} has no sentence",
                entry.info.name
            );
        }
    }
    check::<DbOptions>();
    check::<FamilyOptions>();
    check::<TableSettings>();
    check::<CompressionSettings>();
    check::<UniversalSettings>();
    check::<FifoSettings>();
    check::<MetadataCacheSettings>();
}

#[test]
fn files_of_both_versions_load_without_remarks() {
    for text in [WRITTEN_BY_7_8, WRITTEN_BY_11] {
        let loaded = load_options_text(
            text,
            LoadRules {
                strict: true,
                ..LoadRules::default()
            },
        )
        .expect("it loads");
        assert!(loaded.remarks.is_empty(), "{:?}", loaded.remarks);
        assert_eq!(loaded.families[0].0, "default");
    }
}

#[test]
fn defaults_are_those_of_rocksdb_11_except_the_format_version() {
    let loaded = load_options_text(WRITTEN_BY_11, LoadRules::default()).expect("it loads");
    // The file is what RocksDB wrote for its defaults, resolved by it.
    let mut family = FamilyOptions::default().resolve();
    family.table.format_version = 7;
    let differences = loaded.families[0].1.changes_from(&family);
    assert!(differences.is_empty(), "{differences:?}");
    let table = loaded.families[0].1.table.changes_from(&family.table);
    assert!(table.is_empty(), "{table:?}");
    let mut db = DbOptions::default().resolve();
    db.create_if_missing = true;
    // Retired by 11.x: its files do not hold them.
    let differences = loaded.db.changes_from(&db);
    assert!(differences.is_empty(), "{differences:?}");
}

#[test]
fn printed_files_load_again_as_they_were() {
    let mut db = DbOptions::default();
    db.set_list(
        "max_background_jobs=7;wal_dir=a#b:c;max_manifest_space_amp_pct=33;wal_compression=kZSTD",
    )
    .expect("valid");
    let mut family = FamilyOptions::default();
    family
        .set_list(
            "compression_per_level=kNoCompression:kLZ4Compression:kZSTD;prefix_extractor=rocksdb.FixedPrefix.6;\
             compaction_options_universal={size_ratio=9;max_read_amp=8;max_peak_size_amplification_percent=40};\
             compaction_options_fifo={file_temperature_age_thresholds={{temperature=kWarm;age=10;}:{temperature=kCold;age=20;}};};compression_opts={level=3;max_compressed_bytes_per_kb=800};\
             memtable_max_range_deletions=5;table={block_size=16k;filter_policy=ribbonfilter:10:2}",
        )
        .expect("valid");
    let text = print_options_text(
        &db,
        [("default", &FamilyOptions::default()), ("a \"b\"", &family)],
    );
    let loaded = load_options_text(
        &text,
        LoadRules {
            strict: true,
            ..LoadRules::default()
        },
    )
    .expect("it loads");
    assert_eq!(loaded.db.changes_from(&db), []);
    assert_eq!(loaded.families[1].1.changes_from(&family), []);
    assert_eq!(loaded.families[1].0, "a \"b\"");
    assert!(loaded.remarks.is_empty(), "{:?}", loaded.remarks);
}

#[test]
fn unknown_names_are_refused_unless_the_file_is_newer_and_the_caller_goes_on() {
    let text = WRITTEN_BY_11.replace("[DBOptions]\n", "[DBOptions]\n  next_great_thing=1\n");
    let go_on = LoadRules {
        ignore_unknown: true,
        ..LoadRules::default()
    };
    assert!(
        load_options_text(&text, go_on).is_err(),
        "11.9 has no such option"
    );
    let newer = text.replace("rocksdb_version=11.9.0", "rocksdb_version=12.1.0");
    assert!(load_options_text(&newer, LoadRules::default()).is_err());
    let loaded = load_options_text(&newer, go_on).expect("it loads");
    assert_eq!(loaded.remarks.len(), 1);
    assert_eq!(loaded.remarks[0].option, "next_great_thing");
}

#[test]
fn objects_of_the_application_become_remarks() {
    let text = WRITTEN_BY_7_8.replace(
        "comparator=leveldb.BytewiseComparator",
        "comparator=their.own.Comparator\n  merge_operator=CatOp",
    );
    let loaded = load_options_text(&text, LoadRules::default()).expect("it loads");
    let values: Vec<_> = loaded.remarks.iter().map(|r| r.value.as_str()).collect();
    assert_eq!(values, ["their.own.Comparator", "CatOp"]);
    assert!(
        load_options_text(
            &text,
            LoadRules {
                strict: true,
                ..LoadRules::default()
            }
        )
        .is_err()
    );
}

#[test]
fn a_failed_list_changes_nothing() {
    let mut family = FamilyOptions::default();
    for list in [
        "write_buffer_size=1m;num_levels=x",
        "write_buffer_size=1m;nonsense=1",
        "write_buffer_size=1m;enable_blob_direct_write=true",
        "write_buffer_size",
    ] {
        assert!(family.set_list(list).is_err(), "{list}");
        assert_eq!(family.write_buffer_size, 64 << 20, "{list}");
    }
}

#[test]
fn members_can_be_set_one_by_one() {
    let mut family = FamilyOptions::default();
    family
        .set("compaction_options_universal.size_ratio", "17")
        .expect("valid");
    assert_eq!(family.compaction_options_universal.size_ratio, 17);
    assert_eq!(family.compaction_options_universal.min_merge_width, 2);
    family
        .set("disable_data_sync", "1")
        .expect_err("a name of the other section");
    let mut db = DbOptions::default();
    db.set("disable_data_sync", "1")
        .expect("retired names are accepted");
}

#[test]
fn resolution_keeps_triggers_in_order() {
    let mut family = FamilyOptions::default();
    family
        .set_list("level0_file_num_compaction_trigger=30;level0_slowdown_writes_trigger=5;level0_stop_writes_trigger=2;write_buffer_size=1")
        .expect("valid");
    let r = family.resolve();
    assert_eq!(
        (
            r.level0_slowdown_writes_trigger,
            r.level0_stop_writes_trigger
        ),
        (30, 30)
    );
    assert_eq!(
        (r.write_buffer_size, r.arena_block_size),
        (64 << 10, 8 << 10)
    );
    assert_eq!(r.max_compaction_bytes, 25 * (64 << 20));
    let db = DbOptions {
        max_background_jobs: 8,
        ..DbOptions::default()
    };
    assert_eq!(
        db.job_limits(),
        JobLimits {
            flushes: 2,
            most_flushes: 4,
            compactions: 6
        }
    );
}

#[test]
fn the_linter_names_contradictions_and_is_silent_about_defaults() {
    let db = DbOptions::default();
    let defaults = FamilyOptions::default();
    assert_eq!(lint(&db, [("default", &defaults)]), []);
    let cases = [
        (
            "level0_stop_writes_trigger=3",
            "level0_stop_writes_trigger",
            Severity::Advice,
        ),
        (
            "table={index_type=kHashSearch}",
            "index_type",
            Severity::Error,
        ),
        ("table={block_align=true}", "block_align", Severity::Error),
        (
            "table={format_version=1}",
            "format_version",
            Severity::Error,
        ),
        (
            "compression=kXpressCompression",
            "compression",
            Severity::Error,
        ),
        (
            "memtable_whole_key_filtering=true",
            "memtable_whole_key_filtering",
            Severity::Advice,
        ),
        ("num_levels=1", "num_levels", Severity::Error),
        (
            "enable_blob_files=true;min_blob_size=40;enable_blob_garbage_collection=true",
            "min_blob_size",
            Severity::Advice,
        ),
        (
            "enable_blob_files=true;min_medium_blob_size=40;enable_blob_garbage_collection=true",
            "min_medium_blob_size",
            Severity::Advice,
        ),
        (
            "min_medium_blob_size=512;min_large_blob_size=512",
            "min_large_blob_size",
            Severity::Error,
        ),
        (
            "enable_blob_files=true;min_blob_size=4096",
            "enable_blob_garbage_collection",
            Severity::Advice,
        ),
        (
            "bottommost_compression_opts={level=9}",
            "bottommost_compression_opts",
            Severity::Advice,
        ),
    ];
    for (list, option, severity) in cases {
        let mut family = FamilyOptions::default();
        family
            .set_list(list)
            .expect("each value by itself is valid");
        let findings = lint(&db, [("default", &family)]);
        assert!(
            findings
                .iter()
                .any(|f| f.option == option && f.severity == severity),
            "{list} gave {findings:?}"
        );
        assert_eq!(
            check(&db, [("default", &family)]).is_err(),
            severity == Severity::Error,
            "{list}"
        );
    }
    // Something collects the garbage, and the values are worth it.
    for collects in [
        "enable_blob_garbage_collection=true",
        "max_space_amplification_percent=130",
    ] {
        let mut family = FamilyOptions::default();
        let list = format!("enable_blob_files=true;min_blob_size=4096;{collects}");
        family.set_list(&list).expect("valid");
        assert_eq!(lint(&db, [("default", &family)]), [], "{collects}");
    }
    let refused = FamilyOptions {
        enable_blob_direct_write: true,
        ..FamilyOptions::default()
    };
    let error = check(&db, [("f", &refused)]).expect_err("a typed value is refused too");
    assert!(
        error.to_string().contains("enable_blob_direct_write"),
        "{error}"
    );
}

#[test]
fn the_typed_set_begins_with_the_defaults_and_names_win() {
    let options = Settings::default();
    assert_eq!(
        options
            .database()
            .expect("valid")
            .changes_from(&DbOptions::default()),
        []
    );
    assert_eq!(
        options
            .family()
            .expect("valid")
            .changes_from(&FamilyOptions::default()),
        []
    );
    let mut options = Settings::default();
    options.memory.memtable_bytes = 1 << 20;
    options.compaction = Compaction::Fifo { total_bytes_max: 9 };
    let options = options
        .set_list("write_buffer_size=2m;max_background_jobs=5;table={block_size=8k}")
        .expect("valid");
    let family = options.family().expect("valid");
    assert_eq!(
        (family.write_buffer_size, family.table.block_size),
        (2 << 20, 8 << 10)
    );
    assert_eq!(family.compaction_options_fifo.max_table_files_size, 9);
    assert_eq!(options.database().expect("valid").max_background_jobs, 5);
    assert!(options.set("no_such_option", "1").is_err());
}

/// Real RocksDB loads what is printed here. Skipped, and said so, where `ldb` is not installed.
#[test]
fn ldb_opens_a_database_by_a_printed_file() {
    use std::process::Command;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let db_path = directory.path().join("db");
    let run = |args: &[&str]| {
        let db = format!("--db={}", db_path.display());
        Command::new("ldb").arg(db).args(args).output()
    };
    let Ok(made) = run(&["--create_if_missing", "put", "k", "v"]) else {
        eprintln!("skipped: ldb is not installed");
        return;
    };
    assert!(made.status.success(), "{made:?}");
    let mut db = DbOptions::default();
    db.set_list("max_manifest_space_amp_pct=33;max_background_jobs=5")
        .expect("valid");
    let mut family = FamilyOptions::default();
    family
        .set_list(
            "compression_per_level=kNoCompression:kZSTD;prefix_extractor=rocksdb.FixedPrefix.6;num_levels=5;\
             compression_opts={level=3;max_compressed_bytes_per_kb=800};compaction_options_fifo={allow_compaction=true};\
             table={filter_policy=ribbonfilter:10:2}",
        )
        .expect("valid");
    let text = print_options_text(&db, [("default", &family)]);
    let newest = std::fs::read_dir(&db_path)
        .expect("it lists")
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| n.starts_with("OPTIONS-"))
        .max()
        .expect("ldb wrote an OPTIONS file");
    std::fs::write(db_path.join(newest), text).expect("it is written");
    let got = run(&["--try_load_options", "get", "k"]).expect("it runs");
    assert!(
        got.status.success(),
        "{}",
        String::from_utf8_lossy(&got.stderr)
    );
    assert_eq!(String::from_utf8_lossy(&got.stdout).trim(), "v");
    // Proof that the file was loaded: a damaged one is refused.
    let broken = print_options_text(&db, [("default", &family)])
        .replace("num_levels=5", "num_levels=5\n  nonsense=1");
    let newest = std::fs::read_dir(&db_path)
        .expect("it lists")
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| n.starts_with("OPTIONS-"))
        .max()
        .expect("there is one");
    std::fs::write(db_path.join(newest), broken).expect("it is written");
    let refused = run(&["--try_load_options", "get", "k"]).expect("it runs");
    assert!(!refused.status.success(), "{refused:?}");
}

#[test]
fn a_block_cache_is_a_size_or_a_list_of_limits() {
    let mut table = TableSettings::default();
    let default = "{id=AutoHyperClockCache;capacity=33554432;num_shard_bits=-1;\
                   strict_capacity_limit=false;}";
    assert_eq!(table.get("block_cache").as_deref(), Some(default));
    // As in RocksDB, a size makes an LRU cache.
    table.set("block_cache", "1M").expect("a size");
    assert_eq!(table.block_cache.limits(), CacheOptions::lru(1 << 20));
    table
        .set(
            "block_cache",
            "{capacity=8M;num_shard_bits=4;strict_capacity_limit=true;high_pri_pool_ratio=0.25;}",
        )
        .expect("limits");
    let limits = table.block_cache.limits();
    assert_eq!((limits.capacity, limits.num_shard_bits), (8 << 20, 4));
    assert!(limits.strict_capacity_limit);
    assert!((limits.high_pri_pool_ratio - 0.25).abs() < f64::EPSILON);

    let printed = table.get("block_cache").expect("a known name");
    let mut again = TableSettings::default();
    again
        .set("block_cache", &printed)
        .expect("what is printed can be read");
    assert_eq!(again.block_cache.limits(), limits);

    for (text, limits) in [
        (
            "{id=AutoHyperClockCache;capacity=4M}",
            CacheOptions::hyper_clock(4 << 20, 0),
        ),
        (
            "{capacity=4M;id=fixed_hyper_clock_cache;estimated_entry_charge=4K}",
            CacheOptions::hyper_clock(4 << 20, 4096),
        ),
        ("{capacity=4M;id=LRUCache}", CacheOptions::lru(4 << 20)),
    ] {
        table.set("block_cache", text).expect("limits");
        assert_eq!(table.block_cache.limits(), limits, "{text}");
        let printed = table.get("block_cache").expect("a known name");
        table.set("block_cache", &printed).expect("what is printed");
        assert_eq!(table.block_cache.limits(), limits, "{printed}");
    }

    let tiered = "{id=AutoHyperClockCache;capacity=1M;secondary_cache=\
                  {compressed_secondary_cache://capacity=4M;compression_type=kZSTD;level=3}}";
    table.set("block_cache", tiered).expect("a second tier");
    let tier = CompressedTierOptions {
        capacity: 4 << 20,
        codec: Codec::Zstd,
        level: 3,
        ..CompressedTierOptions::default()
    };
    assert_eq!(table.block_cache.tier(), Some(tier));
    assert_eq!(
        table.block_cache.limits(),
        CacheOptions::hyper_clock(1 << 20, 0)
    );
    let printed = table.get("block_cache").expect("a known name");
    table.set("block_cache", &printed).expect("what is printed");
    assert_eq!(table.block_cache.tier(), Some(tier), "{printed}");
    let single = "{capacity=1M;secondary_cache=compressed_secondary_cache://capacity=2M}";
    table.set("block_cache", single).expect("RocksDB's text");
    assert_eq!(table.block_cache.tier().map(|t| t.capacity), Some(2 << 20));

    let shared = BlockCache::new(CacheOptions::lru(1 << 16));
    table.block_cache = BlockCacheSource::Shared(std::sync::Arc::new(shared));
    assert_eq!(table.get("block_cache").as_deref(), Some("65536"));
    table.set("block_cache", "null").expect("no object");
    assert_eq!(table.block_cache.limits(), CacheOptions::default());

    for wrong in [
        "{capacty=1;}",
        "{capacity=many;}",
        "secondary://x",
        "many",
        "{id=ClockCache;capacity=1}",
        "{id=AutoHyperClockCache;high_pri_pool_ratio=0.5}",
        "{capacity=1;estimated_entry_charge=4096}",
        "{capacity=1;secondary_cache=nvm://x}",
        "{capacity=1;secondary_cache={compressed_secondary_cache://capacity=1;size=2}}",
        "{capacity=1;secondary_cache={compressed_secondary_cache://compression_type=kXpress}}",
    ] {
        assert!(table.set("block_cache", wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_stricter_age_counts_in_universal_trees() {
    let resolved = |list: &str| {
        let mut o = FamilyOptions::default();
        o.set_list(list).expect("valid");
        o.resolve().periodic_compaction_seconds
    };
    const MONTH: u64 = 30 * 24 * 60 * 60;
    let universal = "compaction_style=kCompactionStyleUniversal;";
    assert_eq!(resolved(universal), MONTH);
    assert_eq!(resolved(&format!("{universal}ttl=0")), MONTH);
    assert_eq!(resolved(&format!("{universal}ttl=50")), 50);
    let both = |ttl, period| {
        resolved(&format!(
            "{universal}ttl={ttl};periodic_compaction_seconds={period}"
        ))
    };
    assert_eq!(
        [both(50, 70), both(70, 50), both(50, 0), both(0, 0)],
        [50, 50, 50, 0]
    );
    assert_eq!(resolved("ttl=50"), 0, "a leveled tree without a filter");
}

#[test]
fn universal_and_fifo_options_that_contradict_each_other_are_errors() {
    let wrong = |list: &str| {
        let mut o = FamilyOptions::default();
        o.set_list(list).expect("valid");
        let found = lint(&DbOptions::default(), [("default", &o)]);
        found
            .iter()
            .filter(|f| f.severity == Severity::Error)
            .count()
    };
    let universal = "compaction_style=kCompactionStyleUniversal;compaction_options_universal=";
    for (amp, errors) in [(-2, 1), (-1, 0), (0, 0), (3, 1), (4, 0)] {
        assert_eq!(
            wrong(&format!("{universal}{{max_read_amp={amp}}}")),
            errors,
            "{amp}"
        );
    }
    let ages = |first, second| {
        format!(
            "compaction_options_fifo={{file_temperature_age_thresholds={{{{temperature=kWarm;age={first};}}:{{temperature=kCold;age={second};}}}}}}"
        )
    };
    assert_eq!(wrong(&ages(1, 2)), 1, "leveled");
    let fifo = "num_levels=1;compaction_style=kCompactionStyleFIFO;";
    assert_eq!(wrong(&format!("{fifo}{}", ages(1, 2))), 0);
    assert_eq!(wrong(&format!("{fifo}{}", ages(2, 2))), 1);
}
