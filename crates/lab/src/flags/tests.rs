//! The parser against gflags' syntax, and the table against itself.

use super::*;

#[test]
fn accepts_all_spellings() {
    let flags = Flags::parse(&[
        "--num=5",
        "-threads=2",
        "--value_size",
        "400",
        "--histogram",
        "--nosync",
    ]);
    let flags = flags.expect("all are known");
    assert_eq!(
        (
            flags.int("num"),
            flags.int("threads"),
            flags.int("value_size")
        ),
        (5, 2, 400)
    );
    assert!(flags.flag("histogram") && !flags.flag("sync"));
    assert!(flags.is_set("sync") && !flags.is_set("seed"));
    assert_eq!(flags.int("key_size"), 16);
    assert_eq!(Flags::parse(&["--num=0x10"]).expect("hex").int("num"), 16);
}

#[test]
fn refuses_unknown_flags_unless_tolerated() {
    let failure = Flags::parse(&["--thread=3"]).expect_err("unknown");
    assert!(
        failure.to_string().contains("did you mean --threads?"),
        "{failure}"
    );
    assert!(Flags::parse(&["--gone=1", "--undefok=other,gone"]).is_ok());
    assert!(Flags::parse(&["stray"]).is_err());
}

#[test]
fn json_without_a_value_is_standard_output_and_ycsb_has_its_experiment() {
    let json = |args: &[&str]| Flags::parse(args).expect("known").text("json").to_string();
    assert_eq!(json(&["--json"]), "-");
    assert_eq!(json(&["--json", "--num=5"]), "-");
    assert_eq!(json(&["--json", "file"]), "file");
    assert_eq!(json(&["--json=file"]), "file");
    let ycsb = Flags::parse(&["--YCSB=a"])
        .expect_err("unknown")
        .to_string();
    assert!(ycsb.contains("esker lab ycsb"), "{ycsb}");
}

#[test]
fn refuses_wrong_types_and_unsupported_values() {
    for bad in [
        "--num=many",
        "--sync=maybe",
        "--compression_ratio=x",
        "--num",
    ] {
        assert!(Flags::parse(&[bad]).is_err(), "{bad}");
    }
    assert!(Flags::parse(&["--use_blob_db=true"]).is_err());
    assert!(Flags::parse(&["--use_blob_db=false"]).is_ok());
}

#[test]
fn the_table_is_sound() {
    for (i, flag) in FLAGS.iter().enumerate() {
        assert_eq!(
            position(flag.name),
            Some(i),
            "--{} is declared twice",
            flag.name
        );
        flag.check(flag.default)
            .unwrap_or_else(|e| panic!("--{}: {e}", flag.name));
        assert!(!flag.about().is_empty(), "--{} has no doc", flag.name);
        let is_run = flag.fate == Fate::Run;
        assert!(
            !is_run || !flag.doc.is_empty(),
            "--{} has no doc",
            flag.name
        );
    }
}

/// Flags that scripts in the wild pass; none may be unknown.
const USED: &str = "benchmarks db wal_dir use_existing_db num reads writes deletes threads duration seed
    key_size value_size batch_size seek_nexts reverse_iterator histogram report_file
    report_interval_seconds stats_interval_seconds stats_per_interval statistics perf_level undefok
    benchmark_write_rate_limit benchmark_read_rate_limit readwritepercent num_column_families
    bgwriter_num sync disable_wal memtablerep write_buffer_size max_write_buffer_number
    allow_concurrent_memtable_write enable_pipelined_write merge_operator delayed_write_rate
    db_write_buffer_size wal_bytes_per_sync max_total_wal_size use_single_deletes compaction_style
    compaction_pri num_levels target_file_size_base max_bytes_for_level_base
    max_bytes_for_level_multiplier level_compaction_dynamic_level_bytes
    level0_file_num_compaction_trigger level0_slowdown_writes_trigger level0_stop_writes_trigger
    soft_pending_compaction_bytes_limit hard_pending_compaction_bytes_limit max_background_jobs
    subcompactions disable_auto_compactions max_compaction_bytes compaction_readahead_size
    universal_size_ratio universal_min_merge_width universal_max_merge_width
    universal_max_size_amplification_percent universal_compression_size_percent
    universal_allow_trivial_move universal_max_read_amp periodic_compaction_seconds
    rate_limiter_bytes_per_sec block_size cache_size cache_type cache_numshardbits
    cache_index_and_filter_blocks cache_high_pri_pool_ratio pin_l0_filter_and_index_blocks_in_cache
    pin_top_level_index_and_filter partition_index_and_filters metadata_block_size bloom_bits
    use_ribbon_filter compression_type compression_level compression_ratio compression_max_dict_bytes
    min_level_to_compress bottommost_compression format_version prepopulate_block_cache
    verify_checksum open_files prefix_size use_direct_reads use_direct_io_for_flush_and_compaction
    mmap_read bytes_per_sync async_io multiread_batched enable_blob_files min_blob_size
    blob_file_size blob_compression_type enable_blob_garbage_collection
    blob_garbage_collection_age_cutoff blob_garbage_collection_force_threshold transaction_db
    options_file";

#[test]
fn scripts_flags_are_known() {
    for name in USED.split_whitespace() {
        assert!(position(name).is_some(), "--{name}");
    }
}

#[test]
fn help_names_every_flag() {
    let text = help();
    assert!(
        FLAGS
            .iter()
            .all(|flag| text.contains(&format!("--{}=", flag.name)))
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let args = [
        "--gone=1",
        "--num=many",
        "--lost",
        "--use_blob_db",
        "stray",
        "--thread=2",
    ];
    let said = Flags::parse(&args).expect_err("six are wrong").to_string();
    for part in [
        "--gone",
        "--num: `many` is not an integer",
        "--lost",
        "--use_blob_db=true is not supported",
        "`stray`",
        "did you mean --threads?",
        "--undefok=gone,lost,thread tolerates these",
    ] {
        assert!(said.contains(part), "no {part} in:\n{said}");
    }
}

#[test]
fn names_to_tolerate_are_united() {
    let args = [
        "--undefok=gone",
        "--gone=1",
        "--lost",
        "--undefok=more,lost",
    ];
    assert!(Flags::parse(&args).is_ok());
    assert!(Flags::parse(&["--nolost", "--undefok=lost"]).is_ok());
    assert!(Flags::parse(&["--undefok", "gone", "--gone=1"]).is_ok());
}

#[test]
fn what_is_asked_comes_before_what_is_wrong() {
    let asked = |args: &[&str]| Flags::parse(args).map(|flags| flags.asked);
    assert_eq!(asked(&["--version"]), Ok(Some(InfoRequest::Version)));
    assert_eq!(asked(&["--helpshort"]), Ok(Some(InfoRequest::Help)));
    assert_eq!(asked(&["--num=1"]), Ok(None));
}

/// The flags of RocksDB 11.8's benchmark.sh that were unknown, and so made each of its jobs fail.
#[test]
fn benchmark_sh_could_not_run_for_one_flag() {
    for name in [
        "delete_obsolete_files_period_micros",
        "blob_cache_numshardbits",
        "blob_cache_size",
        "blob_file_starting_level",
        "cache_low_pri_pool_ratio",
        "compaction_measure_io_stats",
        "prepopulate_blob_cache",
        "transaction_sets",
        "use_blob_cache",
        "use_shared_block_and_blob_cache",
    ] {
        assert!(Flags::parse(&[format!("--{name}=1")]).is_ok(), "--{name}");
    }
}

/// A flag that is said to drive the program has to be looked at somewhere.
#[test]
fn no_flag_that_runs_something_is_ignored() {
    fn read(directory: &std::path::Path, text: &mut String) {
        for entry in std::fs::read_dir(directory).expect("the sources").flatten() {
            let path = entry.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "table" {
                read(&path, text);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                *text += &std::fs::read_to_string(&path).expect("a source");
            }
        }
    }
    let mut text = String::new();
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    read(&sources, &mut text);
    // Families of flags whose names are put together.
    let made = |name: &str| {
        ["universal_", "keyrange_dist_", "mix_"]
            .iter()
            .any(|p| name.starts_with(p))
            || ["_theta", "_k", "_sigma"].iter().any(|p| name.ends_with(p))
    };
    let ignored: Vec<&str> = FLAGS
        .iter()
        .filter(|flag| flag.fate == Fate::Run && !made(flag.name))
        .map(|flag| flag.name)
        .filter(|name| !text.contains(&format!("\"{name}\"")))
        .collect();
    assert!(ignored.is_empty(), "nothing looks at {ignored:?}");
}
